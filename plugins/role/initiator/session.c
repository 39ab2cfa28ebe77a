/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * session.c - the initiator's session: ready -> region exported -> started -> lanes run -> closed -> finished.
 *
 * The lanes may end first: then the session is closed. Or the session may: then the lanes stop, and what a stage still
 * holds comes back. In both cases the end is told to the host after the session and all lanes have ended.
 */
#include <errno.h>
#include <string.h>

#include "initiator.h"

static void session_close(struct initiator *in)
{
	if (in->phase >= PHASE_CLOSING)
		return;
	in->phase = PHASE_CLOSING;
	in->rh->client_close(in->client);
}

static void session_fail(struct initiator *in)
{
	atomic_store(&in->failed, true);
	session_close(in);
}

/* Touches every page, and gives writes a content that does not compress. */
static void fill_region(struct initiator *in)
{
	struct gantry_random random;
	uint8_t *at = in->region->addr;

	gantry_random_seed(&random, (uint64_t)in->conf->seed);
	for (uint64_t i = 0; i + 8 <= in->region->length; i += 8) {
		uint64_t word = gantry_random_next(&random);

		memcpy(at + i, &word, sizeof(word));
	}
}

static int make_region(struct initiator *in)
{
	const struct gantry_role_host *rh = in->rh;
	uint64_t bytes;
	int rc;

	in->slot_bytes = slot_room(in->block);
	bytes = in->slot_bytes * in->depth * in->n_lanes;
	rc = rh->region_create(rh, bytes, in->conf->huge_pages, &in->region);
	if (rc) {
		gantry_log_error(in->host, "no region of %llu bytes for %u lanes of %u slots: %s",
				 (unsigned long long)bytes, in->n_lanes, in->depth, strerror(-rc));
		return rc;
	}
	fill_region(in);
	for (uint32_t i = 0; i < in->n_lanes; i++) {
		struct lane *lane = &in->lanes[i];

		lane->buffers_offset = in->slot_bytes * in->depth * i;
		lane->buffers = (uint8_t *)in->region->addr + lane->buffers_offset;
	}
	return 0;
}

static void client_ready(void *arg, struct gantry_client *client, const struct gantry_volume_info *volume)
{
	struct initiator *in = arg;
	int rc;

	if (in->phase != PHASE_OPENING)
		return;
	in->client = client;
	in->volume = *volume;
	rc = in->source->setup(in);
	if (!rc)
		rc = make_region(in);
	if (rc) {
		session_fail(in);
		return;
	}
	rc = in->rh->client_export(client, in->region, GANTRY_REMOTE_READ | GANTRY_REMOTE_WRITE, REGION_HANDLE);
	if (rc) {
		gantry_log_error(in->host, "cannot export the region: %s", strerror(-rc));
		session_fail(in);
	}
}

static int make_chain(struct lane *lane)
{
	struct initiator *in = lane->in;
	struct gantry_hop owner = {.complete = lane_complete, .self = lane};
	struct gantry_hop terminal;
	int rc;

	rc = in->rh->client_hop(in->client, lane->index, lane->pub, &terminal);
	if (rc)
		return rc;
	return in->rh->chain_create(lane->pub, &owner, &terminal, in->depth, &lane->chain, &lane->ios);
}

static void client_exported(void *arg, struct gantry_client *client, const struct gantry_region *region)
{
	struct initiator *in = arg;
	int rc = 0;

	(void)region;
	if (in->phase != PHASE_OPENING)
		return;
	for (uint32_t i = 0; i < in->n_lanes && !rc; i++)
		rc = make_chain(&in->lanes[i]);
	if (!rc)
		rc = in->rh->client_start(client);
	if (rc) {
		gantry_log_error(in->host, "cannot set up the lanes of depth %u: %s%s", in->depth, strerror(-rc),
				 rc == -EINVAL ? "; the device may have shorter queues (its max_depth)" : "");
		session_fail(in);
	}
}

static int lane_begin(struct lane *lane)
{
	struct initiator *in = lane->in;
	struct gantry_poller poller = lane_poller;
	int rc;

	rc = in->source->lane_setup(lane);
	if (rc)
		return rc;
	for (uint32_t i = 0; i < in->depth; i++)
		lane->free[i] = (uint16_t)(in->depth - 1 - i);
	lane->n_free = in->depth;
	poller.self = lane;
	rc = in->rh->poller_add(lane->pub, &poller);
	lane->polled = !rc;
	return rc;
}

static void client_started(void *arg, struct gantry_client *client)
{
	struct initiator *in = arg;
	int rc = 0;

	(void)client;
	if (in->phase != PHASE_OPENING)
		return;
	in->phase = PHASE_RUNNING;
	in->cpu_start_s = report_cpu_s();
	in->start_ns = in->host->now_ns(in->host);
	in->measure_ns = in->start_ns + (in->source == &workload_source ? in->conf->ramp_ns : 0);
	for (uint32_t i = 0; i < in->n_lanes && !rc; i++)
		rc = lane_begin(&in->lanes[i]);
	if (rc) {
		gantry_log_error(in->host, "cannot start the lanes: %s", strerror(-rc));
		lane_fail(in);
		/* the lanes that run end by themselves; without any, nobody would */
		if (!in->lanes[0].polled)
			session_fail(in);
	}
}

static uint32_t count_polled(struct initiator *in)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < in->n_lanes; i++)
		n += (uint32_t)in->lanes[i].polled;
	return n;
}

/* No IO is in flight. */
static void release(struct initiator *in)
{
	uint64_t quarantined = 0;

	for (uint32_t i = 0; i < in->n_lanes; i++) {
		struct lane *lane = &in->lanes[i];

		if (lane->polled)
			in->rh->poller_remove(lane->pub, lane);
		if (lane->chain)
			in->rh->chain_destroy(lane->chain);
		lane->chain = NULL;
		lane->ios = NULL;
		in->source->lane_teardown(lane);
		quarantined += gantry_histogram_load(&lane->stats->n_quarantined);
	}
	if (in->region)
		in->rh->region_destroy(in->rh, in->region, !quarantined || in->rh->client_quiet(in->client));
	in->region = NULL;
	if (in->client)
		in->rh->client_free(in->client);
	in->client = NULL;
}

static void finish(struct initiator *in)
{
	if (in->phase != PHASE_CLOSED || in->n_done < count_polled(in))
		return;
	release(in);
	in->rh->finished(in->rh, atomic_load(&in->failed));
}

void session_lane_done(void *arg)
{
	struct lane *lane = arg;
	struct initiator *in = lane->in;

	in->n_done++;
	if (in->phase == PHASE_RUNNING && in->n_done == count_polled(in))
		session_close(in);
	finish(in);
}

static void client_closed(void *arg, struct gantry_client *client, int reason, const char *text)
{
	struct initiator *in = arg;

	(void)client;
	(void)text; /* the host has logged it */
	if (reason)
		atomic_store(&in->failed, true);
	in->phase = PHASE_CLOSED;
	lanes_stop(in);
	finish(in);
}

static const struct gantry_client_events events = {
	.ready = client_ready,
	.exported = client_exported,
	.started = client_started,
	.closed = client_closed,
};

int session_open(struct initiator *in)
{
	struct gantry_session_attr attr = {.epoch = 1, .lanes = in->n_lanes, .depth = in->depth, .regions = 1};
	int rc;

	in->phase = PHASE_OPENING;
	rc = in->rh->client_open(in->rh, 0, &attr, &events, in, &in->client);
	if (rc)
		in->phase = PHASE_CLOSED;
	return rc;
}

void session_stop(struct initiator *in)
{
	switch (in->phase) {
	case PHASE_IDLE:
		in->phase = PHASE_CLOSED;
		finish(in);
		break;
	case PHASE_OPENING:
		session_close(in);
		break;
	case PHASE_RUNNING:
		lanes_stop(in);
		break;
	default:
		break;
	}
}
