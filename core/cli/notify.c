/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

/*
 * Convert a path, or "@NAME" for an abstract socket, to an address. Returns the length of the
 * address, or -errno.
 */
static int address_of(const char *name, struct sockaddr_un *address)
{
	size_t length = strlen(name);

	if ((name[0] != '/' && name[0] != '@') || length < 2)
		return -EAFNOSUPPORT;
	if (length >= sizeof(address->sun_path))
		return -ENAMETOOLONG;
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(address->sun_path, name, length);
	if (name[0] == '@')
		address->sun_path[0] = '\0';
	else
		length++; /* the length of a path includes its terminating 0 */
	return (int)(offsetof(struct sockaddr_un, sun_path) + length);
}

static int send_to(const char *name, const char *state)
{
	struct sockaddr_un address;
	int length = address_of(name, &address), fd, rc = 0;

	if (length < 0)
		return length;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (sendto(fd, state, strlen(state), MSG_DONTWAIT | MSG_NOSIGNAL,
		   (const struct sockaddr *)&address, (socklen_t)length) < 0)
		rc = -errno;
	close(fd);
	return rc;
}

void gn_notify(const char *state)
{
	const char *name = getenv("NOTIFY_SOCKET");
	char shown[GN_ESCAPE_BYTES];
	int rc;

	if (!name)
		return;
	rc = send_to(name, state);
	if (rc)
		gn_log(GN_LOG_WARN, "gantry", "NOTIFY_SOCKET=%s: cannot send %.*s: %s",
		       gn_escape(shown, sizeof(shown), name, strlen(name)),
		       (int)strcspn(state, "\n"), state, strerror(-rc));
}

void gn_notify_reload(void)
{
	struct timespec now;
	char text[64];

	clock_gettime(CLOCK_MONOTONIC, &now);
	snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%llu",
		 (unsigned long long)now.tv_sec * 1000000 + (unsigned long long)now.tv_nsec / 1000);
	gn_notify(text);
}

uint64_t gn_notify_watchdog_ns(void)
{
	const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
	unsigned long long n;
	char *end;

	if (!usec || *usec < '0' || *usec > '9' || (pid && atoi(pid) != (int)getpid()))
		return 0;
	errno = 0;
	n = strtoull(usec, &end, 10);
	return *end || errno || n > UINT64_MAX / GN_NS_PER_US ? 0 : n * GN_NS_PER_US;
}
