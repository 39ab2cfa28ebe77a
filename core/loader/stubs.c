/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stubs.c - complete ops tables, so that callers need not check for NULL slots.
 *
 * Each kind has a table of stubs. A NULL in it marks a mandatory function.
 */
#include "loader/loader_priv.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gantry/observer.h>
#include <gantry/role.h>
#include <gantry/stage.h>

/* -- stubs of slots that several kinds have -- */

static int open_nothing(const struct gantry_host *host, const void *conf, void **self_p)
{
	(void)host;
	(void)conf;
	*self_p = NULL;
	return 0;
}

static int zero(void *self)
{
	(void)self;
	return 0;
}

/* arm: report work, so that a lane never sleeps if nothing else signals work of this object */
static int always_work(void *self)
{
	(void)self;
	return 1;
}

static int no_fd(void *self)
{
	(void)self;
	return -1;
}

static uint64_t no_timer(void *self)
{
	(void)self;
	return 0;
}

static void nothing(void *self)
{
	(void)self;
}

static void no_report(void *self, struct gantry_writer *w)
{
	(void)self;
	(void)w;
}

/* -- stage: passes every descriptor on -- */

static int stage_start(void *stage, struct gantry_lane *lane, void **self_p)
{
	(void)lane;
	*self_p = stage;
	return 0;
}

static int stage_submit(void *self, struct gantry_io *io)
{
	(void)self;
	return gantry_submit(io);
}

static void stage_complete(void *self, struct gantry_io *io)
{
	(void)self;
	gantry_complete(io);
}

static void stage_drain(void *self, const void *owner)
{
	(void)self;
	(void)owner;
}

static const struct gantry_stage_ops stage_stubs = {
	.open = open_nothing,
	.start = stage_start,
	.submit = stage_submit,
	.complete = stage_complete,
	.poll = zero,
	.wake_ns = no_timer,
	.drain = stage_drain,
	.stop = nothing,
	.report = no_report,
	.close = nothing,
};

/* -- backend -- */

static int backend_start(void *backend, struct gantry_lane *lane, uint32_t depth, void **self_p)
{
	(void)lane;
	(void)depth;
	*self_p = backend;
	return 0;
}

static int no_memory(void *backend, void **addr_p)
{
	(void)backend;
	(void)addr_p;
	return -ENOTSUP;
}

/* quiesce: a completed IO never changes the store later */
static int always_quiescent(void *backend, uint64_t *mark)
{
	(void)backend;
	(void)mark;
	return 0;
}

static const struct gantry_backend_ops backend_stubs = {
	.open = open_nothing,
	.start = backend_start,
	.poll = zero,
	.arm = zero,
	.disarm = nothing,
	.fd = no_fd,
	.stop = nothing,
	.report = no_report,
	.close = nothing,
	.memory = no_memory,
	.quiesce = always_quiescent,
};

/* -- role -- */

static const struct gantry_role_ops role_stubs = {
	.stop = nothing, /* the host ends its sessions */
	.close = nothing,
	.report = no_report,
};

/* -- observer -- */

static void no_progress(void *observer, const struct gantry_progress *p)
{
	(void)observer;
	(void)p;
}

static const struct gantry_observer_ops observer_stubs = {
	.open = open_nothing,
	.progress = no_progress,
	.close = nothing,
};

/* -- transport: unsupported functions return -ENOTSUP -- */

static int no_export(void *conn, const struct gantry_region *region, uint32_t rights,
		     uint32_t handle, struct gantry_token *token_p)
{
	(void)conn;
	(void)region;
	(void)rights;
	(void)handle;
	(void)token_p;
	return -ENOTSUP;
}

static int no_import(void *conn, const struct gantry_token *token, uint32_t flags,
		     struct gantry_region **region_p)
{
	(void)conn;
	(void)token;
	(void)flags;
	(void)region_p;
	return -ENOTSUP;
}

static void no_release(void *conn, struct gantry_region *region)
{
	(void)conn;
	(void)region;
}

static int no_revoke(void *conn, uint32_t handle)
{
	(void)conn;
	(void)handle;
	return -ENOTSUP;
}

static int no_rma_create(void *conn, const struct gantry_queue_attr *attr, void **rma_p)
{
	(void)conn;
	(void)attr;
	(void)rma_p;
	return -ENOTSUP;
}

static int no_rma_submit(void *rma, const struct gantry_rma *op)
{
	(void)rma;
	(void)op;
	return -ENOTSUP;
}

static uint64_t no_export_limit(void *conn)
{
	(void)conn;
	return UINT64_MAX;
}

static int no_hold_exports(void *conn, int socket)
{
	(void)conn;
	(void)socket;
	return -ENOTSUP;
}

static const char *no_text(void *conn)
{
	(void)conn;
	return "";
}

static const char *null_text(void *object)
{
	(void)object;
	return NULL;
}

static int no_rma_write_imm(void *rma, const struct gantry_rma *op, uint32_t note)
{
	(void)rma;
	(void)op;
	(void)note;
	return -ENOTSUP;
}

static int no_rma_poll(void *rma, struct gantry_rma_done *done, uint32_t max)
{
	(void)rma;
	(void)done;
	(void)max;
	return 0;
}

static int no_scan(const struct gantry_host *host, struct gantry_writer *w)
{
	(void)host;
	(void)w;
	return 0;
}

static int no_register(void *conn, const struct gantry_region *region)
{
	(void)conn;
	(void)region;
	return 0;
}

static void no_unregister(void *conn, const struct gantry_region *region)
{
	(void)conn;
	(void)region;
}

static void no_set_local_peer(void *consumer, struct gantry_local_peer *peer)
{
	(void)consumer;
	(void)peer;
}

static struct gantry_local_peer *const *no_local_peer(void *producer)
{
	static struct gantry_local_peer *const none;

	(void)producer;
	return &none;
}

static const struct gantry_transport_ops transport_stubs = {
	.scan = no_scan,
	.fd = no_fd,
	.wake_ns = no_timer,
	.export_region = no_export,
	.import_region = no_import,
	.release_region = no_release,
	.revoke_region = no_revoke,
	.register_region = no_register,
	.unregister_region = no_unregister,
	.rma_create = no_rma_create,
	.rma_destroy = nothing,
	.consumer_arm = zero,
	.consumer_disarm = nothing,
	.consumer_fd = no_fd,
	.flush = nothing,
	.rma_submit = no_rma_submit,
	.rma_flush = nothing,
	.rma_poll = no_rma_poll,
	.consumer_set_local_peer = no_set_local_peer,
	.producer_local_peer = no_local_peer,
	.rma_write_imm = no_rma_write_imm,
	.export_limit = no_export_limit,
	.import_error = no_text,
	.refusal = null_text,
	.listener_address = null_text,
	.hold_exports = no_hold_exports,
};

static const struct gantry_data_queue_ops data_stubs = {.send_prefetch = nothing};

/* -- names and offsets of the slots -- */

struct slot {
	const char *name;
	size_t offset;
};

#define SLOT(kind, name) \
	{ \
#name, offsetof(struct gantry_##kind##_ops, name) \
	}
#define STAGE(name) SLOT(stage, name)
#define BACKEND(name) SLOT(backend, name)
#define ROLE(name) SLOT(role, name)
#define OBSERVER(name) SLOT(observer, name)
#define TRANSPORT(name) SLOT(transport, name)
#define DATA(name) SLOT(data_queue, name)

static const struct slot stage_slots[] = {
	STAGE(open),  STAGE(start), STAGE(submit), STAGE(complete), STAGE(poll), STAGE(wake_ns),
	STAGE(drain), STAGE(stop),  STAGE(report), STAGE(close),    {NULL, 0},
};

static const struct slot backend_slots[] = {
	BACKEND(open),  BACKEND(volume), BACKEND(start),   BACKEND(submit), BACKEND(poll),
	BACKEND(arm),   BACKEND(disarm), BACKEND(fd),      BACKEND(stop),   BACKEND(report),
	BACKEND(close), BACKEND(memory), BACKEND(quiesce), {NULL, 0},
};

static const struct slot role_slots[] = {
	ROLE(open), ROLE(start), ROLE(stop), ROLE(close), ROLE(report), {NULL, 0},
};

static const struct slot observer_slots[] = {
	OBSERVER(open),
	OBSERVER(progress),
	OBSERVER(close),
	{NULL, 0},
};

static const struct slot transport_slots[] = {
	TRANSPORT(open),
	TRANSPORT(scan),
	TRANSPORT(close),
	TRANSPORT(info),
	TRANSPORT(fd),
	TRANSPORT(progress),
	TRANSPORT(wake_ns),
	TRANSPORT(listen),
	TRANSPORT(unlisten),
	TRANSPORT(connect),
	TRANSPORT(send_ctrl),
	TRANSPORT(disconnect),
	TRANSPORT(export_region),
	TRANSPORT(import_region),
	TRANSPORT(release_region),
	TRANSPORT(revoke_region),
	TRANSPORT(register_region),
	TRANSPORT(unregister_region),
	TRANSPORT(consumer_create),
	TRANSPORT(consumer_destroy),
	TRANSPORT(producer_create),
	TRANSPORT(producer_destroy),
	TRANSPORT(rma_create),
	TRANSPORT(rma_destroy),
	TRANSPORT(post_recv),
	TRANSPORT(poll_recv),
	TRANSPORT(consumer_arm),
	TRANSPORT(consumer_disarm),
	TRANSPORT(consumer_fd),
	TRANSPORT(send),
	TRANSPORT(flush),
	TRANSPORT(rma_submit),
	TRANSPORT(rma_flush),
	TRANSPORT(rma_poll),
	TRANSPORT(consumer_set_local_peer),
	TRANSPORT(producer_local_peer),
	TRANSPORT(rma_write_imm),
	TRANSPORT(export_limit),
	TRANSPORT(import_error),
	TRANSPORT(refusal),
	TRANSPORT(listener_address),
	TRANSPORT(hold_exports),
	{NULL, 0},
};

static const struct slot data_slots[] = {
	DATA(post_recv), DATA(send), DATA(poll_send), DATA(send_prefetch), {NULL, 0},
};

static const struct table {
	size_t size;
	const void *stubs;
	const struct slot *slots;
} data_table = {sizeof(data_stubs), &data_stubs, data_slots},
  kinds[] = {
	  [GANTRY_KIND_TRANSPORT] = {sizeof(transport_stubs), &transport_stubs, transport_slots},
	  [GANTRY_KIND_ROLE] = {sizeof(role_stubs), &role_stubs, role_slots},
	  [GANTRY_KIND_BACKEND] = {sizeof(backend_stubs), &backend_stubs, backend_slots},
	  [GANTRY_KIND_STAGE] = {sizeof(stage_stubs), &stage_stubs, stage_slots},
	  [GANTRY_KIND_OBSERVER] = {sizeof(observer_stubs), &observer_stubs, observer_slots},
};

typedef void (*any_fn)(void);

static any_fn get_slot(const void *ops, size_t offset)
{
	any_fn fn;

	memcpy(&fn, (const char *)ops + offset, sizeof(fn));
	return fn;
}

/*
 * Set `arm` to a stub that reports work, if the object is polled but cannot signal work: a sleeping
 * lane would not notice it.
 */
static void complete_wakeups(unsigned kind, void *ops)
{
	struct gantry_transport_ops *transport = kind == GANTRY_KIND_TRANSPORT ? ops : NULL;
	struct gantry_backend_ops *backend = kind == GANTRY_KIND_BACKEND ? ops : NULL;

	if (backend && backend->poll && !backend->fd && !backend->arm)
		backend->arm = always_work;
	if (transport && !transport->consumer_fd && !transport->consumer_arm)
		transport->consumer_arm = always_work;
}

/* Put the stubs into the empty slots. Returns the name of a slot that has no stub, or NULL. */
static const char *complete(const struct table *table, void *ops)
{
	const char *missing = NULL;

	for (const struct slot *slot = table->slots; slot->name; slot++) {
		any_fn stub = get_slot(table->stubs, slot->offset);

		if (get_slot(ops, slot->offset))
			continue;
		if (!stub && !missing)
			missing = slot->name;
		memcpy((char *)ops + slot->offset, &stub, sizeof(stub));
	}
	return missing;
}

const char *gn_ops_complete(unsigned kind, void *ops)
{
	complete_wakeups(kind, ops);
	return complete(&kinds[kind], ops);
}

static const struct {
	uint32_t caps; /* the function is needed if the device has any of these capabilities */
	struct slot slot;
} needs[] = {
	{GANTRY_CAP_MAPPED, TRANSPORT(export_region)},
	{GANTRY_CAP_MAPPED, TRANSPORT(import_region)},
	{GANTRY_CAP_RMA | GANTRY_CAP_WRITE_IMM, TRANSPORT(rma_create)},
	{GANTRY_CAP_RMA | GANTRY_CAP_WRITE_IMM, TRANSPORT(rma_submit)},
	{GANTRY_CAP_RMA | GANTRY_CAP_WRITE_IMM, TRANSPORT(rma_poll)},
	{GANTRY_CAP_WRITE_IMM, TRANSPORT(rma_write_imm)},
};

const char *gn_ops_missing(const struct gantry_transport_ops *ops, uint32_t caps)
{
	for (size_t i = 0; i < sizeof(needs) / sizeof(needs[0]); i++) {
		any_fn fn = get_slot(ops, needs[i].slot.offset);

		if ((caps & needs[i].caps) &&
		    (!fn || fn == get_slot(&transport_stubs, needs[i].slot.offset)))
			return needs[i].slot.name;
	}
	return NULL;
}

bool gn_transport_is_network(const struct gantry_transport_ops *ops)
{
	return (ops->flags & (GANTRY_TRANSPORT_UIDS | GANTRY_TRANSPORT_INSIDE)) == 0;
}

bool gn_ops_serve_one_lane(unsigned kind, const void *ops)
{
	const struct gantry_stage_ops *stage = kind == GANTRY_KIND_STAGE ? ops : NULL;
	const struct gantry_backend_ops *backend = kind == GANTRY_KIND_BACKEND ? ops : NULL;

	return (stage && stage->open != open_nothing && stage->start == stage_start) ||
	       (backend && backend->open != open_nothing && backend->start == backend_start);
}

/*
 * Get the name of a missing function of remote access, if the table has others. The capabilities of
 * a device are known only once it is open.
 */
static const char *missing_rma_function(unsigned kind, const void *ops)
{
	const struct gantry_transport_ops *t = ops;

	if (kind != GANTRY_KIND_TRANSPORT ||
	    !(t->rma_create || t->rma_submit || t->rma_poll || t->rma_write_imm))
		return NULL;
	return gn_ops_missing(t, GANTRY_CAP_RMA);
}

/* Get the name of the first slot that does not point to code; NULL: all do. */
static const char *slot_without_code(const struct table *table, const void *ops)
{
	for (const struct slot *slot = table->slots; slot->name; slot++) {
		any_fn fn = get_slot(ops, slot->offset);

		if (fn && !gn_loader_is_code((const void *)(uintptr_t)fn))
			return slot->name;
	}
	return NULL;
}

/* Copy the table of a plugin, which has `size` bytes. Returns 0 or -ENOEXEC. */
static int copy_table(const struct table *table, void *ops, const void *from, size_t size,
		      char *why)
{
	const char *misplaced;

	memcpy(ops, from, size < table->size ? size : table->size);
	misplaced = slot_without_code(table, ops);
	if (!misplaced)
		return 0;
	snprintf(why, GN_WHY,
		 "the file is corrupt: the slot \"%s\" does not point to code: install it again",
		 misplaced);
	return -ENOEXEC;
}

/* Replace the table of data queues by a complete copy. Returns 0 or -ENOEXEC. */
static int complete_data(struct gantry_transport_ops *ops, struct gantry_data_queue_ops *data,
			 char *why)
{
	const char *missing;
	int rc = copy_table(&data_table, data, ops->data, ops->data->struct_size, why);

	if (rc)
		return rc;
	ops->data = data;
	missing = complete(&data_table, data);
	if (!missing)
		return 0;
	snprintf(why, GN_WHY,
		 "does not have the function \"%s\", which every transport with data queues needs",
		 missing);
	return -ENOEXEC;
}

int gn_plugin_ops(const struct gantry_plugin *desc, void **ops_p, char *why)
{
	const struct table *table = &kinds[desc->kind];
	void *ops = calloc(1, table->size + sizeof(data_stubs));
	struct gantry_transport_ops *transport = desc->kind == GANTRY_KIND_TRANSPORT ? ops : NULL;
	const char *missing, *half;

	if (!ops) {
		snprintf(why, GN_WHY, "out of memory");
		return -ENOMEM;
	}
	if (copy_table(table, ops, desc->ops, desc->ops_size, why))
		goto out_unfit;
	half = missing_rma_function(desc->kind, ops);
	missing = gn_ops_complete(desc->kind, ops);
	if (missing) {
		snprintf(why, GN_WHY, "does not have the function \"%s\", which every %s needs",
			 missing, gn_kind_name(desc->kind));
		goto out_unfit;
	}
	if (transport && transport->data && complete_data(transport, (void *)(transport + 1), why))
		goto out_unfit;
	if (half) {
		snprintf(why, GN_WHY, "has functions of remote access, but not \"%s\"", half);
		goto out_unfit;
	}
	if (desc->kind == GANTRY_KIND_STAGE && ((struct gantry_stage_ops *)ops)->n_ctx_words > 1) {
		snprintf(why, GN_WHY, "too many frame words (n_ctx_words=%u, limit 1)",
			 ((struct gantry_stage_ops *)ops)->n_ctx_words);
		goto out_unfit;
	}
	*ops_p = ops;
	return 0;

out_unfit:
	free(ops);
	return -ENOEXEC;
}
