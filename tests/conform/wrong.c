/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wrong.c - the conformance suite over the transport loop with a seeded fault, or with another
 * valid property. The environment has its name: RIG_WRONG. The script other.sh checks the reports.
 */
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include "conform/rig.h"

static struct gantry_transport_ops real;

static int no_fd(void *device)
{
	(void)device;
	return -1;
}

static uint64_t soon_ns(void *device)
{
	(void)device;
	return rig_now_ns() + 1000000;
}

/* Valid: the host calls progress() every millisecond. */
static void polled(struct gantry_transport_ops *ops)
{
	ops->fd = no_fd;
	ops->wake_ns = soon_ns;
}

static void unreachable(struct gantry_transport_ops *ops)
{
	ops->fd = no_fd;
}

static int dead_fd(void *device)
{
	static int fd = -1;

	(void)device;
	if (fd < 0)
		fd = eventfd(0, EFD_CLOEXEC);
	return fd;
}

static void unsignalled(struct gantry_transport_ops *ops)
{
	ops->fd = dead_fd;
}

static void set_caps(void *device, struct gantry_device_info *info, uint32_t add, uint32_t remove)
{
	real.info(device, info);
	info->caps = (info->caps | add) & ~remove;
}

static void info_mapped(void *device, struct gantry_device_info *info)
{
	set_caps(device, info, 0, GANTRY_CAP_RMA | GANTRY_CAP_ORDERED);
}

/* Valid: no remote access, only mapped regions. */
static void mapped_only(struct gantry_transport_ops *ops)
{
	ops->info = info_mapped;
	ops->rma_create = NULL;
	ops->rma_submit = NULL;
	ops->rma_poll = NULL;
}

/* Valid: only immediate data in messages. */
static void no_data_queues(struct gantry_transport_ops *ops)
{
	ops->data = NULL;
}

static void info_write_imm(void *device, struct gantry_device_info *info)
{
	set_caps(device, info, GANTRY_CAP_WRITE_IMM, 0);
}

static void cap_without_slot(struct gantry_transport_ops *ops)
{
	ops->info = info_write_imm;
}

static int import_unmapped(void *conn, const struct gantry_token *token, uint32_t flags,
			   struct gantry_region **region_p)
{
	return real.import_region(conn, token, flags & ~GANTRY_IMPORT_MAP, region_p);
}

static void cap_not_provided(struct gantry_transport_ops *ops)
{
	ops->import_region = import_unmapped;
}

static int import_einval(void *conn, const struct gantry_token *token, uint32_t flags,
			 struct gantry_region **region_p)
{
	return real.import_region(conn, token, flags, region_p) ? -EINVAL : 0;
}

static void wrong_errno(struct gantry_transport_ops *ops)
{
	ops->import_region = import_einval;
}

static int import_writable(void *conn, const struct gantry_token *token, uint32_t flags,
			   struct gantry_region **region_p)
{
	int rc = real.import_region(conn, token, flags, region_p);

	if (rc == 0)
		mprotect((*region_p)->addr, (*region_p)->length, PROT_READ | PROT_WRITE);
	return rc;
}

static void writable(struct gantry_transport_ops *ops)
{
	ops->import_region = import_writable;
}

static int revoke_nothing(void *conn, uint32_t handle)
{
	(void)conn;
	(void)handle;
	return 0;
}

static void no_event(struct gantry_transport_ops *ops)
{
	ops->revoke_region = revoke_nothing;
}

static int send_nothing(void *producer, const void *imm, uint32_t imm_len, uint32_t flags)
{
	(void)producer;
	(void)imm;
	(void)imm_len;
	(void)flags;
	return 0;
}

static void no_message(struct gantry_transport_ops *ops)
{
	ops->send = send_nothing;
}

static struct gantry_conn_events silent_events;

static void closed_eproto(void *arg, void *conn, int reason)
{
	(void)reason;
	silent_events.closed(arg, conn, -EPROTO);
}

static int listen_silent(void *device, const char *service, const struct gantry_conn_events *events,
			 void *arg, void **listener_p)
{
	static struct gantry_conn_events changed;

	silent_events = changed = *events;
	changed.closed = closed_eproto;
	return real.listen(device, service, &changed, arg, listener_p);
}

static void silent(struct gantry_transport_ops *ops)
{
	ops->listen = listen_silent;
}

static const struct {
	const char *name;
	void (*change)(struct gantry_transport_ops *ops);
} changes[] = {
	{"polled", polled},
	{"mapped_only", mapped_only},
	{"no_data_queues", no_data_queues},
	{"unreachable", unreachable},
	{"unsignalled", unsignalled},
	{"cap_without_slot", cap_without_slot},
	{"cap_not_provided", cap_not_provided},
	{"wrong_errno", wrong_errno},
	{"writable", writable},
	{"no_event", no_event},
	{"no_message", no_message},
	{"silent", silent},
};

static void wrap(struct gantry_transport_ops *ops)
{
	const char *name = getenv("RIG_WRONG");

	real = *ops;
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
		if (name && strcmp(changes[i].name, name) == 0) {
			changes[i].change(ops);
			return;
		}
	fake_fail("RIG_WRONG names no change");
}

struct rig_driver rig_driver = {.plugin = "loop", .wrap = wrap, .slower = 50};
