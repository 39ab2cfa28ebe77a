/* SPDX-License-Identifier: BSD-3-Clause */
/* unix_socket_hostile.c - a peer of examples/transport/unix-socket.c that sends invalid frames. */
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "conform/rig.h"

/* Connect to the listener of the rig. */
static int attacker(void)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(sun.sun_path + 1, sizeof(sun.sun_path) - 1, "gantry/%s", rig_service(0));
	TEST_ASSERT_TRUE(fd >= 0);
	TEST_ASSERT_EQUAL_INT(0, connect(fd, (struct sockaddr *)&sun, sizeof(sun)));
	return fd;
}

static void attack(const void *frame, size_t bytes)
{
	int fd;

	rig_listen(rig_service(0));
	fd = attacker();
	rig_until(rig.b.n_accept, 1);
	TEST_ASSERT_EQUAL_INT(bytes, send(fd, frame, bytes, MSG_NOSIGNAL));
	rig_until(rig.b.n_closed, 1);
	close(fd);
	RIG_RC(-EPROTO, rig.b.reason, "reason of `closed`");
	RIG_NUM(1, rig.b.host.n_logged[GANTRY_LOG_WARN], "number of warnings");
	RIG_HOLDS(fake_logged(&rig.b.host, "sends an invalid frame"), "text in the log");
}

static void short_frame_is_logged(void)
{
	attack("x", 1);
}

static void unknown_frame_is_logged(void)
{
	static const uint32_t frame[8] = {4711};

	attack(frame, sizeof(frame));
}

int main(void)
{
	UNITY_BEGIN();
	RIG_CASE(short_frame_is_logged);
	RIG_CASE(unknown_frame_is_logged);
	return UNITY_END();
}
