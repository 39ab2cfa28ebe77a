/* SPDX-License-Identifier: BSD-3-Clause */
/* hold.c - conformance: a process that maps the memory of another reports that to its owner. */
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gantry/hold.h>

#include "conform/rig.h"

#define BOTH (GANTRY_REMOTE_READ | GANTRY_REMOTE_WRITE)
#define BYTES 65536u

/* The owner of the memory: the two ends of the socket of gantry_hold(). */
static int reports, hold_socket;

static void owner_opens(void)
{
	int ends[2];

	RIG_OK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends));
	reports = ends[0];
	hold_socket = ends[1];
}

static void owner_closes(void)
{
	close(reports);
	if (hold_socket >= 0)
		close(hold_socket);
}

static void owner_skips(const char *why)
{
	owner_closes();
	rig_skip("%s", why);
}

static int passes_the_socket_on(void)
{
	return rig.ops->hold_exports(rig.a.conn, hold_socket) == 0;
}

/* Returns the descriptor of the next report, or -1. */
static int next_report(void)
{
	char byte, control[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8)));
	struct iovec iov = {&byte, 1};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control,
			     .msg_controllen = sizeof(control)};
	int fd = -1;

	if (recvmsg(reports, &msg, MSG_CMSG_CLOEXEC) == 1 && CMSG_FIRSTHDR(&msg))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	return fd;
}

/* Expect one report. Returns its descriptor. */
static int one_report(void)
{
	int report = next_report();
	struct pollfd p = {.fd = report, .events = POLLIN};

	RIG_HOLDS(report >= 0, "a report of gantry_hold() when the memory is mapped");
	RIG_NUM(-1, next_report(), "a second report");
	RIG_NUM(0, poll(&p, 1, 0), "events of the report while the memory is mapped");
	return report;
}

static void report_has_ended(int report)
{
	struct pollfd p = {.fd = report, .events = POLLIN};

	poll(&p, 1, 0);
	RIG_HOLDS((p.revents & POLLHUP) != 0, "the report ends when the memory is unmapped");
	close(report);
}

static void end_export(uint32_t handle)
{
	RIG_OK(rig.ops->revoke_region(rig.a.conn, handle));
	rig_until(rig.a.n_revoked, 1);
}

static void own_memory_is_exported(void)
{
	struct gantry_region *r = NULL;
	struct gantry_token token;
	struct rig_memory m;
	int report;

	rig_connect();
	rig_memory_open(&m, BYTES, BOTH);
	owner_opens();
	if (!passes_the_socket_on())
		owner_skips("hold_exports: the transport passes no socket on");
	RIG_RC(-EALREADY, rig.ops->hold_exports(rig.a.conn, hold_socket),
	       "the second hold_exports of a connection");
	close(hold_socket);
	hold_socket = -1;
	RIG_OK(rig.ops->export_region(rig.a.conn, &m.region, BOTH, 7, &token));
	rig_fence();
	rig_rma_open(&rig.b, 4, 0);
	RIG_OK(rig.ops->import_region(rig.b.conn, &token, rig_access(), &r));
	RIG_HOLDS(r->hold_socket > 0, "hold_socket of an import");
	report = one_report();
	rig.ops->release_region(rig.b.conn, r);
	end_export(7);
	report_has_ended(report);
	owner_closes();
}

static struct rig_rma *rma;

/* Export memory of another process again. Returns 0 or -errno of the export. */
static int export_again(struct gantry_token *token)
{
	static struct gantry_region region;
	static int secret;
	struct rig_memory m;
	int rc;

	if (rig_has(RIG_PINS))
		owner_skips("a network card accesses the memory");
	rig_connect();
	if (rig_has(RIG_MAPPED) && !passes_the_socket_on())
		owner_skips("hold_exports: the transport passes no socket on");
	rig_memory_open(&m, BYTES, BOTH);
	region = (struct gantry_region){.length = BYTES,
					.fd = m.region.fd,
					.rights = BOTH,
					.handle = 99,
					.domain = 0x6f746872u,
					.transport = &secret,
					.hold_socket = hold_socket};
	rma = rig_rma_open(&rig.b, 4, 0);
	rc = rig.ops->export_region(rig.a.conn, &region, BOTH, 7, token);
	rig_fence();
	return rc;
}

/* Export memory of another process again, import and release it. Returns its report. */
static int map_again(void)
{
	struct gantry_region *r = NULL;
	struct gantry_token token;
	int report;

	owner_opens();
	RIG_OK(export_again(&token));
	RIG_OK(rig.ops->import_region(rig.b.conn, &token, rig_access(), &r));
	report = one_report();
	rig.ops->release_region(rig.b.conn, r);
	return report;
}

static void memory_of_another_process_is_exported_again(void)
{
	int report = map_again();

	end_export(7);
	report_has_ended(report);
	owner_closes();
}

static void report_ends_with_the_connection(void)
{
	int report = map_again();

	rig_rma_close(rma);
	rig_disconnect(&rig.b);
	rig_disconnect(&rig.a);
	report_has_ended(report);
	owner_closes();
}

/* The owner no longer waits for reports: the memory is not mapped. */
static void memory_of_an_owner_that_has_gone(void)
{
	struct gantry_region *r = NULL;
	struct gantry_token token;
	int rc;

	owner_opens();
	shutdown(reports, SHUT_RDWR);
	rc = export_again(&token);
	if (rc == 0)
		rc = rig.ops->import_region(rig.b.conn, &token, rig_access(), &r);
	RIG_RC(-EPIPE, rc, "export or import of memory whose owner has closed its socket");
	owner_closes();
}

void hold_cases(void)
{
	RIG_CASE(own_memory_is_exported);
	RIG_CASE(memory_of_another_process_is_exported_again);
	RIG_CASE(report_ends_with_the_connection);
	RIG_CASE(memory_of_an_owner_that_has_gone);
}
