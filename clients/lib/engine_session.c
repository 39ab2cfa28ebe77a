/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine_session.c - ready -> region made and exported -> chains -> started -> closed.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine_priv.h"

__attribute__((format(printf, 3, 4)))
static void give_up(struct gc_session *session, int reason, const char *fmt, ...)
{
	va_list ap;

	session->reason = reason;
	va_start(ap, fmt);
	vsnprintf(session->text, sizeof(session->text), fmt, ap);
	va_end(ap);
	gantry_log_error(session->rh->host, "%s", session->text);
	gc_session_close(session);
}

int gc_session_memory(struct gc_session *session, uint64_t slot_bytes, uint64_t shared_bytes, int huge_pages)
{
	uint64_t slots = (uint64_t)session->attr.depth * session->attr.n_queues, bytes;
	int rc = -EOVERFLOW;

	session->slot_bytes = (slot_bytes + GC_SLOT_ALIGN - 1) & ~(uint64_t)(GC_SLOT_ALIGN - 1);
	if (!__builtin_mul_overflow(session->slot_bytes, slots, &session->shared_offset) &&
	    !__builtin_add_overflow(session->shared_offset, shared_bytes, &bytes))
		rc = session->rh->region_create(session->rh, bytes, huge_pages, &session->region);
	if (rc)
		gantry_log_error(session->rh->host, "no region of %llu x %llu bytes and %llu bytes: %s",
				 (unsigned long long)slots, (unsigned long long)session->slot_bytes,
				 (unsigned long long)shared_bytes, strerror(-rc));
	return rc;
}

static void client_ready(void *arg, struct gantry_client *client, const struct gantry_volume_info *info)
{
	struct gc_session *session = arg;
	int rc;

	session->client = client;
	if (session->phase != GC_OPENING)
		return;
	session->info = *info;
	rc = session->events->ready(session->arg, info);
	if (rc) {
		session->reason = rc;
		gc_session_close(session);
	}
	if (session->phase != GC_OPENING) /* the owner may have closed it */
		return;
	rc = session->rh->client_export(client, session->region, GANTRY_REMOTE_READ | GANTRY_REMOTE_WRITE,
					GC_REGION_HANDLE);
	if (rc)
		give_up(session, rc, "cannot export the region of %llu bytes: %s",
			(unsigned long long)session->region->length, strerror(-rc));
}

static int set_up_lane(struct gc_session *session, struct gc_queue *queue)
{
	struct gantry_hop link;
	int rc = session->rh->client_hop(session->client, queue->index, queue->lane, &link);

	if (rc)
		return rc;
	rc = gc_queue_make_chain(queue);
	if (!rc)
		gc_queue_up(queue, &link);
	return rc;
}

static void client_exported(void *arg, struct gantry_client *client, const struct gantry_region *region)
{
	struct gc_session *session = arg;
	int rc = 0;

	(void)region;
	if (session->phase != GC_OPENING)
		return;
	for (uint32_t i = 0; i < session->attr.n_queues && !rc; i++)
		rc = set_up_lane(session, &session->queues[i]);
	if (!rc)
		rc = session->rh->client_start(client);
	if (rc)
		give_up(session, rc, "cannot set up %u lanes of depth %u: %s%s", session->attr.n_queues, session->attr.depth,
			strerror(-rc), rc == -EINVAL ? "; the device may have shorter queues (its max_depth)" : "");
}

static void client_started(void *arg, struct gantry_client *client)
{
	struct gc_session *session = arg;

	(void)client;
	if (session->phase != GC_OPENING)
		return;
	session->phase = GC_RUNNING;
	session->events->started(session->arg);
}

static void client_closed(void *arg, struct gantry_client *client, int reason, const char *text)
{
	struct gc_session *session = arg;

	(void)client;
	session->phase = GC_CLOSED;
	for (uint32_t i = 0; i < session->attr.n_queues; i++)
		gc_queue_down(&session->queues[i]);
	if (session->reason)
		session->events->closed(session->arg, session->reason, session->text);
	else
		session->events->closed(session->arg, reason, text);
}

static const struct gantry_client_events client_events = {
	.ready = client_ready,
	.exported = client_exported,
	.started = client_started,
	.closed = client_closed,
};

int gc_session_open(const struct gantry_role_host *rh, const struct gc_session_attr *attr,
		    const struct gc_session_events *events, void *arg, struct gc_session **session_p)
{
	struct gantry_session_attr wanted = {.epoch = 1, .lanes = attr->n_queues, .depth = attr->depth, .regions = 1};
	struct gc_session *session = calloc(1, sizeof(*session) + attr->n_queues * sizeof(session->queues[0]));
	int rc = 0;

	if (!session)
		return -ENOMEM;
	session->rh = rh;
	session->attr = *attr;
	session->events = events;
	session->arg = arg;
	for (uint32_t i = 0; i < attr->n_queues && !rc; i++)
		rc = gc_queue_init(session, i);
	if (!rc)
		rc = rh->client_open(rh, attr->connect, &wanted, &client_events, session, &session->client);
	if (rc) {
		session->phase = GC_CLOSED;
		gc_session_free(session);
		return rc;
	}
	*session_p = session;
	return 0;
}

void gc_session_close(struct gc_session *session)
{
	if (session->phase >= GC_CLOSING)
		return;
	session->phase = GC_CLOSING;
	session->rh->client_close(session->client);
}

void gc_session_free(struct gc_session *session)
{
	const struct gantry_role_host *rh;
	uint64_t doubtful = 0;

	if (!session)
		return;
	rh = session->rh;
	for (uint32_t i = 0; i < session->attr.n_queues; i++) {
		doubtful += session->queues[i].n_doubtful;
		gc_queue_fini(&session->queues[i]);
	}
	if (session->region)
		rh->region_destroy(rh, session->region, !doubtful || rh->client_quiet(session->client));
	if (session->client)
		rh->client_free(session->client);
	free(session);
}

struct gc_queue *gc_session_queue(struct gc_session *session, uint32_t index)
{
	return &session->queues[index];
}

const struct gantry_region *gc_session_region(const struct gc_session *session)
{
	return session->region;
}

uint64_t gc_session_shared_offset(const struct gc_session *session)
{
	return session->shared_offset;
}
