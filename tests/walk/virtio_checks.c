/* SPDX-License-Identifier: BSD-3-Clause */
/* virtio_checks.c - descriptors that change, and unusual orders of messages */
#include "virtio_front.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* A descriptor that is no eventfd fails, and the device keeps the former one. */
void descriptors(void)
{
	const uint64_t index = 0;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		fail("pipe");
	use(2);
	if (tell(SET_VRING_CALL, &index, 8, ends, 1) != 1)
		fail("a pipe is accepted for interrupts");
	use(2);
	if (tell(SET_VRING_ERR, &index, 8, ends, 1) != 1)
		fail("a pipe is accepted for errors");
	use(2);
	place_queue(stop_queue());
	if (tell(SET_VRING_KICK, &index, 8, ends, 1) != 1)
		fail("a pipe is accepted for kicks");
	enable_queue();
	if (set_memory() != 0) /* the device must not start the queue */
		fail("memory cannot be set");
	start_queue(avail_idx);
	use(2);
	verify_all();
}
