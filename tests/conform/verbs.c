/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs.c - the conformance suite over RDMA. RIG_FAKE: over the fake of the libraries; with
 * RIG_LATE also, the fake delivers messages only in later turns; with RIG_FILTER also, both ends
 * have the record filter of filter.c. Otherwise over devices of this machine, with the transport
 * rdma-verbs, or with rxe (RIG_RXE). RIG_SECURE: both ends have the record filter of the core.
 *
 * The environment names real devices, and RIG_HOST is the address of the device of end b:
 *     RIG_A_SETTINGS="ibdev=rxe1" RIG_B_SETTINGS="ibdev=rxe0" RIG_HOST=10.99.0.1 conform/verbs
 */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>

#include "conform/rig.h"

#ifdef RIG_SECURE
#include "conform/tcp_secure.h"
#define WRAP secure_wrap
#endif

#ifdef RIG_FAKE
#include "fake/verbs/verbs.h"
#ifdef RIG_LATE
#define LATE 1
#else
#define LATE 0
#endif
#ifdef RIG_FILTER
#include "conform/filter.h"
#define WRAP wrap
#endif
#ifdef RIG_SHARED
#define DATA_QP "data_qp=shared"
#else
#define DATA_QP "data_qp=separate"
#endif
#endif

static char text[9][64];
static const char *services[4], *no_services[8];

#ifdef RIG_FAKE
static unsigned next;

static void begin(void)
{
	fake_verbs_reset();
	/*
	 * The first call of rdma_get_devices() opens contexts, which the library keeps. Make that
	 * call before the case, so that they do not count as leaks of the case.
	 */
	rdma_free_devices(rdma_get_devices(NULL));
	fake_wire_hold(LATE);
	next = 1;
}

/* Execute posted requests in a random order that keeps only the order within each queue pair. */
static void turn(void)
{
	next = next * 1103515245u + 12345u;
	if (LATE)
		fake_wire_step_any(next >> 16);
}

#ifdef RIG_FILTER
static int (*open_device)(const struct gantry_host *host, const void *conf, void **device_p);

static int open_with_filter(const struct gantry_host *host, const void *conf, void **device_p)
{
	((struct gantry_host *)(uintptr_t)host)->records = &filter;
	return open_device(host, conf, device_p);
}

static void wrap(struct gantry_transport_ops *ops)
{
	if (ops->open != open_with_filter)
		open_device = ops->open;
	ops->open = open_with_filter;
}
#endif

static void threads(void)
{
	fake_wire_hold(0);
}

static void end(void)
{
	TEST_ASSERT_EQUAL_STRING("", fake_verbs_check_clean());
}
#else
static const char *missing(void)
{
	const char *a = getenv("RIG_A_SETTINGS"), *b = getenv("RIG_B_SETTINGS");
	glob_t devices;
	int rc = glob("/sys/class/infiniband/*", 0, NULL, &devices);

	globfree(&devices);
	if (rc)
		return "this machine has no RDMA device";
	return a && b && getenv("RIG_HOST")
		       ? NULL
		       : "RIG_A_SETTINGS, RIG_B_SETTINGS and RIG_HOST do not say which RDMA devices";
}
#endif

struct rig_driver rig_driver = {
#ifdef RIG_RXE
	.plugin = "rxe",
#else
	.plugin = "rdma-verbs",
#endif
#ifdef RIG_FAKE
	.a = {"ibdev=fake1", DATA_QP},
	.b = {"ibdev=fake0", DATA_QP},
	.begin = begin,
	.end = end,
	.turn = turn,
	.threads = threads,
	.slower = LATE ? 20 : 2,
#else
	.missing = missing,
	.slower = 100,
#endif
#ifdef WRAP
	.wrap = WRAP,
#endif
	.setting = {"revoke_timeout=1s", "direct_networks=0.0.0.0/0,::/0"},
	.revoke_ms = 1000,
	.services = services,
	.no_services = no_services,
};

/* Make the service names from the host and a port. */
__attribute__((constructor)) static void name_services(void)
{
	static const char *const good[] = {":7471", ":1024", ":65535"};
	static const char *const bad[] = {"", ":", ":65536", ":-1", ":7471x", ":port"};
	const char *host = getenv("RIG_HOST");
	unsigned n = 0;

	host = host ? host : "10.99.0.1";
	for (unsigned i = 0; i < sizeof(good) / sizeof(good[0]); i++, n++) {
		snprintf(text[n], sizeof(text[n]), "%s%s", host, good[i]);
		services[i] = text[n];
	}
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++, n++) {
		snprintf(text[n], sizeof(text[n]), "%s%s", host, bad[i]);
		no_services[i] = text[n];
	}
	no_services[6] = "vol";
}
