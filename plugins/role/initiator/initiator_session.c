/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * initiator_session.c - the session of the initiator.
 *
 *     ready -> region exported -> started -> lanes run -> closed -> finished
 *
 * If the lanes end first, the initiator closes the session. If the session ends first, the lanes
 * stop and wait for the descriptors that stages still hold. The initiator reports its end to the
 * host after the session and all lanes have ended.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "initiator.h"

static void session_close(struct initiator *in)
{
	if (in->phase >= PHASE_CLOSING)
		return;
	in->phase = PHASE_CLOSING;
	in->rh->engine->close(in->engine);
}

static void session_fail(struct initiator *in)
{
	atomic_store(&in->failed, true);
	session_close(in);
}

/* Fill pages of the region with content that does not compress. */
static void fill_pages(void *arg, void *at, uint64_t bytes)
{
	struct initiator *in = arg;
	struct gantry_random random = in->content;

	for (uint64_t i = 0; i + 8 <= bytes; i += 8) {
		uint64_t word = gantry_random_next(&random);

		memcpy((uint8_t *)at + i, &word, sizeof(word));
	}
	in->content = random;
}

__attribute__((format(printf, 3, 4))) static void log_fault(const struct gantry_check *check,
							    const char *option, const char *fmt,
							    ...)
{
	const struct initiator *in = check->core;
	char text[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	gantry_log_error(in->host, "%s: %s", option, text);
}

static int ready(void *arg, const struct gantry_volume_info *info)
{
	struct initiator *in = arg;
	const struct gantry_check check = {.core = in, .fault = log_fault};
	int rc;

	in->volume = *info;
	rc = in->source->fits(in, info, &check);
	if (!rc)
		rc = in->source->setup(in);
	if (!rc)
		rc = in->rh->engine->memory(in->engine, in->block, 0,
					    in->conf->huge_pages ? GANTRY_REGION_HUGE : 0);
	gantry_random_seed(&in->content, (uint64_t)in->conf->seed);
	return rc;
}

static int lane_begin(struct lane *lane)
{
	struct initiator *in = lane->in;
	struct gantry_poller poller = lane_poller;
	int rc;

	rc = in->source->lane_setup(lane);
	if (rc)
		return rc;
	lane->queue = in->rh->engine->queue(in->engine, lane->index);
	lane->queue->user = lane;
	poller.self = lane;
	rc = in->rh->poller_add(lane->pub, &poller);
	lane->polled = !rc;
	return rc;
}

static void started(void *arg)
{
	struct initiator *in = arg;
	int rc = 0;

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
		/*
		 * If lanes run, the last lane that stops ends the session. If none runs, end the
		 * session here.
		 */
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

/* Release lanes and session. No IO is in flight. */
static void release(struct initiator *in)
{
	for (uint32_t i = 0; i < in->n_lanes; i++) {
		struct lane *lane = &in->lanes[i];

		if (lane->polled)
			in->rh->poller_remove(lane->pub, lane);
		in->source->lane_teardown(lane);
	}
	in->rh->engine->free(in->engine);
	in->engine = NULL;
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

static void closed(void *arg, int reason, const char *text)
{
	struct initiator *in = arg;

	(void)text; /* the host has already logged the text */
	if (reason)
		atomic_store(&in->failed, true);
	in->phase = PHASE_CLOSED;
	lanes_stop(in);
	finish(in);
}

static const struct gantry_engine_events events = {
	.ready = ready,
	.pages = fill_pages,
	.started = started,
	.closed = closed,
};

int session_open(struct initiator *in)
{
	struct gantry_engine_attr attr = {
		.n_queues = in->n_lanes, .depth = in->depth, .complete = lane_complete};
	int rc;

	in->phase = PHASE_OPENING;
	rc = in->rh->engine->open(in->rh, &attr, &events, in, &in->engine);
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
		/*
		 * after a loss of the session: without this call the lanes would wait for the IOs
		 * in flight
		 */
		in->rh->engine->give_up(in->engine);
		break;
	default:
		break;
	}
}
