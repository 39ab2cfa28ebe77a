/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine_session.c - the steps of an engine session: ready -> region created and exported -> chains
 * -> started -> closed. Control thread.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gantry/memfd.h>

#include "engine/engine_priv.h"

/*
 * Bytes allocated in one turn of the control thread. The kernel needs up to a second to clear a
 * GiB, and between the parts the control thread must send heartbeats.
 */
#define PAGES_STEP (16ull << 20)

/*
 * End the session. Posted by close_session() if there is no client: between two attempts to
 * resume.
 */
static void end_between(void *arg)
{
	struct gantry_engine *session = arg;

	if (session->phase == GN_ENGINE_CLOSING)
		gn_engine_end(session, session->reason, session->text);
}

static void close_session(struct gantry_engine *session)
{
	int paused = session->phase == GN_ENGINE_PAUSED;

	if (session->phase >= GN_ENGINE_CLOSING)
		return;
	session->phase = GN_ENGINE_CLOSING;
	if (!session->client)
		session->rh->post(session->rh, end_between, session);
	else if (paused)
		/* during a resume no IO is in flight, so the client need not send STOP and BYE */
		session->rh->client_abort(session->client);
	else
		session->rh->client_close(session->client);
}

void gn_engine_give_up(struct gantry_engine *session, int reason, const char *fmt, ...)
{
	char text[sizeof(session->text)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	/* during a resume the peer can have failed again: make another attempt */
	if (session->phase == GN_ENGINE_PAUSED) {
		gantry_log_warn(session->rh->host, "%s", text);
		session->rh->client_abort(session->client);
		return;
	}
	session->reason = reason;
	snprintf(session->text, sizeof(session->text), "%s", text);
	gantry_log_error(session->rh->host, "%s", session->text);
	close_session(session);
}

static int create_memory(struct gantry_engine *session, uint64_t slot_bytes, uint64_t shared_bytes,
			 int flags)
{
	uint64_t slots = (uint64_t)session->attr.depth * session->attr.n_queues, bytes;
	int rc = -EOVERFLOW;

	session->slot_bytes = (slot_bytes + GANTRY_ENGINE_ALIGN - 1) &
			      ~(uint64_t)(GANTRY_ENGINE_ALIGN - 1);
	if (!__builtin_mul_overflow(session->slot_bytes, slots, &session->shared_offset) &&
	    !__builtin_add_overflow(session->shared_offset, shared_bytes, &bytes))
		rc = session->rh->region_create(session->rh, bytes, flags | GANTRY_REGION_LAZY,
						&session->region);
	if (rc)
		gantry_log_error(
			session->rh->host,
			"cannot create a region (slots=%llu, slot_bytes=%llu, shared_bytes=%llu): %s",
			(unsigned long long)slots, (unsigned long long)session->slot_bytes,
			(unsigned long long)shared_bytes, strerror(-rc));
	return rc;
}

/*
 * Let the owner create the region. A resumed session has its region already, and the server has
 * compared uuid and verifier of its volume. Returns 0 or -errno. With an error the session is being
 * closed, except after -EAGAIN of gn_engine_resume_check().
 */
static int make_ready(struct gantry_engine *session, const struct gantry_volume_info *info)
{
	int rc;

	if (session->phase == GN_ENGINE_PAUSED) {
		rc = gn_engine_resume_check(session, info);
		if (rc == -EAGAIN)
			return rc;
	} else {
		session->info = *info;
		rc = session->events->ready(session->arg, info);
		session->reason = rc;
	}
	if (rc)
		close_session(session);
	return rc;
}

static int is_opening(const struct gantry_engine *session)
{
	return session->phase == GN_ENGINE_OPENING || session->phase == GN_ENGINE_PAUSED;
}

const char *gn_engine_export_error(int rc)
{
	return rc == -E2BIG     ? "longer than the device here or at the peer accepts"
	       : rc == -EXDEV   ? "the transport of the device cannot access the memory"
	       : rc == -ENOTSUP ? "the peer does not support it while a session runs"
				: strerror(-rc);
}

static void export_region(struct gantry_engine *session)
{
	int rc = session->rh->client_export(session->client, session->region,
					    GANTRY_REMOTE_READ | GANTRY_REMOTE_WRITE,
					    GANTRY_ENGINE_HANDLE);

	if (rc && rc != -ENOTCONN) /* -ENOTCONN: `closed` follows with the reason */
		gn_engine_give_up(session, rc, "cannot export the region of %llu bytes: %s",
				  (unsigned long long)session->region->length,
				  gn_engine_export_error(rc));
}

/*
 * Allocate all pages before the export, because the kernel charges a page to the process that
 * touches it first, which could be the peer. The region of a resumed session has its pages already.
 * A region that is larger than the peer accepts gets no pages: its export fails, and the device
 * reports why.
 */
static void make_pages(void *arg)
{
	struct gantry_engine *session = arg;
	uint64_t left = session->region->length - session->pages_at,
		 n = left < PAGES_STEP ? left : PAGES_STEP;
	int rc = 0;
	void *at;

	if (!is_opening(session))
		return;
	if (session->region->length > session->rh->client_export_limit(session->client))
		left = n = 0;
	at = (uint8_t *)session->region->addr + session->pages_at;
	if (n)
		rc = gantry_memfd_populate(session->region->fd, session->pages_at, at, n, 1);
	if (rc) {
		gn_engine_give_up(session, rc, "cannot allocate the region of %llu bytes: %s",
				  (unsigned long long)session->region->length, strerror(-rc));
		return;
	}
	session->pages_at += n;
	if (n && session->events->pages)
		session->events->pages(session->arg, at, n);
	if (!is_opening(session)) /* the owner has closed it in the event */
		return;
	if (n == left)
		export_region(session);
	else if (session->rh->after(session->rh, 0, make_pages, session))
		gn_engine_give_up(session, -ENOMEM, "out of memory");
}

static void client_ready(void *arg, struct gantry_client *client,
			 const struct gantry_volume_info *info)
{
	struct gantry_engine *session = arg;
	const int was_released = session->released;
	int rc;

	session->client = client;
	/* the server has drained the sessions of earlier clients */
	session->released = 1;
	session->rh->client_secret(session->client, session->secret);
	if (!is_opening(session)) /* the owner has closed the session */
		return;
	rc = make_ready(session, info);
	if (rc == -EAGAIN && session->phase == GN_ENGINE_PAUSED) {
		session->released = was_released; /* not the server of the volume */
		session->rh->client_abort(session->client);
	}
	if (rc)
		return;
	gn_engine_regions_drained(session);
	make_pages(session);
}

static int set_up_lane(struct gantry_engine *session, struct gantry_engine_queue *queue)
{
	int rc = session->rh->client_hop(session->client, queue->index, queue->lane, &queue->next);

	return rc || queue->chain ? rc : gn_engine_queue_make_chain(queue);
}

/* All regions are exported: start the session. */
static void start(struct gantry_engine *session)
{
	int rc = 0;

	session->regions_open = 0;
	session->is_starting = 1;
	for (uint32_t i = 0; i < session->attr.n_queues && !rc; i++)
		rc = set_up_lane(session, &session->queues[i]);
	if (!rc)
		rc = session->rh->client_start(session->client);
	if (rc)
		gn_engine_give_up(session, rc, "cannot set up %u lanes of depth %u: %s%s",
				  session->attr.n_queues, session->attr.depth, strerror(-rc),
				  rc == -EINVAL ? ": the device may limit the depth (max_depth)"
						: "");
}

static void client_exported(void *arg, struct gantry_client *client,
			    const struct gantry_region *region)
{
	struct gantry_engine *session = arg;

	(void)client;
	if (session->phase >= GN_ENGINE_CLOSING)
		return;
	session->regions_open = 1;
	if (region != session->region)
		gn_engine_region_exported(session, region);
	if (!gn_engine_regions_advance(session) && is_opening(session))
		start(session);
}

static void client_unexported(void *arg, struct gantry_client *client, uint32_t handle)
{
	struct gantry_engine *session = arg;

	(void)client;
	if (session->phase >= GN_ENGINE_CLOSING)
		return;
	gn_engine_region_unexported(session, handle);
	gn_engine_regions_advance(session);
}

static void client_started(void *arg, struct gantry_client *client)
{
	struct gantry_engine *session = arg;
	int again = session->phase == GN_ENGINE_PAUSED;
	uint32_t n = 0;

	if (!is_opening(session))
		return;
	session->phase = GN_ENGINE_RUNNING;
	session->regions_open = 1;
	session->is_starting = 0;
	session->id = session->rh->client_id(client);
	for (uint32_t i = 0; i < session->attr.n_queues; i++)
		n += gn_engine_queue_up(&session->queues[i]);
	if (again)
		gn_engine_resume_done(session, n);
	else
		session->events->started(session->arg);
	gn_engine_regions_advance(session);
}

static int withdraw(struct gantry_engine *session)
{
	const struct gantry_role_host *rh = session->rh;
	int rc;

	if (!session->region || session->released)
		return 0;
	rc = rh->region_withdraw(rh, session->region);
	session->released = !rc;
	return rc;
}

/*
 * End the session. A peer of a lost session might still have the region mapped, so withdraw the
 * region before `closed`.
 */
void gn_engine_end(struct gantry_engine *session, int reason, const char *text)
{
	int rc = withdraw(session);

	if (rc)
		gantry_log_warn(session->rh->host,
				"region cannot be revoked from the peers of a lost session "
				"(bytes=%llu): %s",
				(unsigned long long)session->region->length, strerror(-rc));
	session->phase = GN_ENGINE_CLOSED;
	session->end_rc = reason;
	explicit_bzero(session->secret, sizeof(session->secret));
	session->rh->after_cancel(session->rh, session);
	for (uint32_t i = 0; i < session->attr.n_queues; i++)
		gn_engine_queue_down(&session->queues[i]);
	session->events->closed(session->arg, reason, text);
}

/* Open the session on a path. Returns 0 or -errno. */
static int open_path(struct gantry_engine *session)
{
	const struct gantry_session_attr wanted = {.epoch = session->epoch,
						   .lanes = session->attr.n_queues,
						   .depth = session->attr.depth,
						   .regions = 1 + session->attr.regions};

	return session->rh->client_open(session->rh, session->attr.connect + session->path, &wanted,
					&gn_engine_client_events, session, &session->client);
}

/* A path has failed before the volume was known. Returns 1: the next path is being opened. */
static int open_next_path(struct gantry_engine *session, const char *text)
{
	if (session->phase != GN_ENGINE_OPENING || session->info.size != 0 ||
	    session->path + 1 >= session->n_paths)
		return 0;
	gantry_log_warn(session->rh->host, "connect[%u]: %s: trying connect[%u]",
			session->attr.connect + session->path, text,
			session->attr.connect + session->path + 1);
	session->rh->client_free(session->client);
	session->client = NULL;
	session->path++;
	return open_path(session) == 0;
}

static void client_closed(void *arg, struct gantry_client *client, int reason, const char *text)
{
	struct gantry_engine *session = arg;

	if (!session->rh->client_regions_released(client))
		session->released = 0;
	if (session->phase == GN_ENGINE_CLOSING)
		gn_engine_end(session, session->reason, *session->text ? session->text : text);
	else if (!gn_engine_resume_begin(session, reason, text) &&
		 !(reason != 0 && open_next_path(session, text)))
		gn_engine_end(session, reason, text);
}

void gn_engine_resized(struct gantry_engine *session, uint64_t size)
{
	session->info.size = size;
	for (uint32_t i = 0; i < session->attr.n_queues; i++)
		gn_engine_queue_resize(&session->queues[i]);
	if (session->events->resized)
		session->events->resized(session->arg, size);
}

static void client_resized(void *arg, struct gantry_client *client, uint64_t size)
{
	(void)client;
	gn_engine_resized(arg, size);
}

const struct gantry_client_events gn_engine_client_events = {
	.ready = client_ready,
	.exported = client_exported,
	.started = client_started,
	.closed = client_closed,
	.unexported = client_unexported,
	.resized = client_resized,
};

static void free_session(struct gantry_engine *session)
{
	const struct gantry_role_host *rh;
	uint64_t doubtful = 0;

	if (!session)
		return;
	rh = session->rh;
	for (uint32_t i = 0; i < session->attr.n_queues; i++) {
		doubtful += session->queues[i].n_doubtful;
		gn_engine_queue_fini(&session->queues[i]);
	}
	if (session->region)
		rh->region_destroy(rh, session->region, !doubtful || session->released);
	if (session->client)
		rh->client_free(session->client);
	gn_engine_regions_fini(session);
	explicit_bzero(session->secret, sizeof(session->secret));
	free(session);
}

static int open_session(const struct gantry_role_host *rh, const struct gantry_engine_attr *attr,
			const struct gantry_engine_events *events, void *arg,
			struct gantry_engine **session_p)
{
	struct gantry_engine *session =
		gantry_zalloc_lines(sizeof(*session) + attr->n_queues * sizeof(session->queues[0]));
	int rc;

	if (!session)
		return -ENOMEM;
	session->rh = rh;
	session->attr = *attr;
	session->n_paths = rh->n_connects - attr->connect;
	session->events = events;
	session->arg = arg;
	session->epoch = 1;
	session->released = 1;
	session->resume_ns = rh->connect_resume(rh, attr->connect);
	session->n_resumed = rh->host->counter(rh->host, "sessions_resumed");
	rc = session->n_resumed ? gn_engine_regions_init(session) : -ENOMEM;
	for (uint32_t i = 0; i < attr->n_queues && !rc; i++)
		rc = gn_engine_queue_init(session, i);
	if (!rc)
		rc = open_path(session);
	if (rc) {
		session->phase = GN_ENGINE_CLOSED;
		free_session(session);
		return rc;
	}
	*session_p = session;
	return 0;
}

static void stop_resuming(struct gantry_engine *session)
{
	size_t n;

	session->resume_ns = 0;
	if (session->phase != GN_ENGINE_PAUSED)
		return;
	n = strlen(session->text);
	snprintf(session->text + n, sizeof(session->text) - n, "; given up");
	close_session(session);
}

static struct gantry_engine_queue *get_queue(struct gantry_engine *session, uint32_t index)
{
	return &session->queues[index];
}

static void *get_shared(const struct gantry_engine *session, uint64_t *offset_p)
{
	*offset_p = session->shared_offset;
	return (uint8_t *)session->region->addr + session->shared_offset;
}

static uint64_t export_limit(const struct gantry_engine *session)
{
	return session->phase == GN_ENGINE_RUNNING
		       ? session->rh->client_export_limit(session->client)
		       : UINT64_MAX;
}

static uint64_t export_quota(const struct gantry_engine *session)
{
	return session->phase == GN_ENGINE_RUNNING
		       ? session->rh->client_export_quota(session->client)
		       : UINT64_MAX;
}

static int revoke_all(struct gantry_engine *session)
{
	const struct gantry_role_host *rh = session->rh;

	if (session->phase != GN_ENGINE_RUNNING && session->phase != GN_ENGINE_PAUSED)
		return -ENOTCONN;
	if (session->resume_ns == 0)
		return -ENOTSUP;
	if (session->phase == GN_ENGINE_PAUSED) {
		/* an attempt that has exported regions again, or starts without a new region */
		if (session->client &&
		    (session->regions_busy || session->regions_open || session->is_starting))
			rh->client_abort(session->client);
		return session->released ? 0 : -ENOTSUP;
	}
	if (!rh->client_regions_released(session->client))
		return -ENOTSUP;
	rh->client_abort(session->client);
	return 0;
}

const struct gantry_engine_ops gn_engine_ops = {
	.open = open_session,
	.memory = create_memory,
	.shared = get_shared,
	.queue = get_queue,
	.close = close_session,
	.give_up = stop_resuming,
	.withdraw = withdraw,
	.region_export = gn_engine_export,
	.region_unexport = gn_engine_unexport,
	.export_limit = export_limit,
	.export_quota = export_quota,
	.revoke_all = revoke_all,
	.free = free_session,
	.late_writes = gn_engine_late_writes,
	.take_back = gn_engine_take_back,
	.reclaim = gn_engine_reclaim,
	.submit_kept = gn_engine_submit_kept,
	.refused = gn_engine_refused,
	.failed = gn_engine_failed,
	.poll_more = gn_engine_poll_more,
	.put_doubtful = gn_engine_put_doubtful,
};
