/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp.c - the conformance suite over TCP, on the loopback interface. RIG_DIRECT: memory of third
 * parties is accessed directly instead of through a relay. RIG_SECURE: with the record filter.
 */
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "conform/rig.h"
#ifdef RIG_SECURE
#include "conform/tcp_secure.h"
#endif

static char text[4][64];
/* without IPv6 the last one is NULL */
static const char *services[] = {text[0], text[1], text[2], text[3], NULL};
static const char *const no_services[] = {
	"127.0.0.1",      "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:47911x",
	"127.0.0.1:port", "[::1:47913", "::1:47913",       "vol",          NULL};

struct rig_driver rig_driver = {
	.plugin = "tcp",
#ifdef RIG_DIRECT
	.setting = {"revoke_timeout=1s", "direct=true", "direct_networks=127.0.0.0/8,::1"},
#else
	.setting = {"revoke_timeout=1s"},
#endif
	.revoke_ms = 1000,
	.services = services,
	.no_services = no_services,
	.slower = 10,
#ifdef RIG_SECURE
	.wrap = secure_wrap,
#endif
};

static bool has_ipv6(void)
{
	const struct sockaddr_in6 at = {.sin6_family = AF_INET6,
					.sin6_addr = IN6ADDR_LOOPBACK_INIT};
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool has = fd >= 0 && bind(fd, (const struct sockaddr *)&at, sizeof(at)) == 0;

	if (fd >= 0)
		close(fd);
	return has;
}

/* Other tests run at the same time, so each process has addresses or ports of its own. */
__attribute__((constructor)) static void name_services(void)
{
	unsigned pid = (unsigned)getpid(), port = 10000 + pid % 10000;

	for (unsigned i = 0; i < 2; i++)
		snprintf(text[i], sizeof(text[i]), "127.%u.%u.%u:%u", 1 + (pid >> 16) % 254,
			 (pid >> 8) % 256, pid % 255 + 1, 47911 + i);
	snprintf(text[2], sizeof(text[2]), "localhost:%u", port + 10000);
	snprintf(text[3], sizeof(text[3]), "[::1]:%u", port);
	if (!has_ipv6())
		services[3] = NULL;
}
