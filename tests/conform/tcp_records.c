/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp_records.c - control messages over TCP with a record filter. */
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "conform/filter.h"
#include "conform/rig.h"

/* The plugin sends its control messages by this function: the program exports its symbols. */
__attribute__((visibility("default"))) ssize_t send(int fd, const void *bytes, size_t n, int flags)
{
	static ssize_t (*next)(int, const void *, size_t, int);
	uint8_t *copy = malloc(n);
	ssize_t sent;

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "send");
	memcpy(copy, bytes, n);
	filter_search(copy, n);
	sent = next(fd, copy, n, flags);
	free(copy);
	return sent;
}

void filter_spy(void)
{
}

int main(void)
{
	UNITY_BEGIN();
	filter_cases();
	return UNITY_END();
}
