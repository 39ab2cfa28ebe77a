/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pipeline.c - lanes, and the stages of a role on each of its lanes. Control thread, except where
 * noted.
 */
#include "pipeline/chain_watch.h"
#include "pipeline/pipeline_priv.h"

#include "base/log.h"

#include <gantry/latency.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct stage {
	const struct gn_plugin_instance *part;
	const struct gantry_stage_ops *ops;
	struct gn_host host;
	void *stage;
	void **selfs;                   /* instances of the stage, one for each lane */
	struct gn_watch_poller *checks; /* pollers of the lanes with check_stages */
	uint32_t n_started;
	uint32_t frame;
};

struct gn_pipeline {
	const char *owner;
	struct gn_lane *lanes;
	uint32_t n_lanes;
	uint32_t n_stages; /* number of open stages */
	struct stage stages[GANTRY_CHAIN_STAGES];
};

int gn_lane_init(struct gn_lane *lane, uint32_t index, uint32_t n_lanes, struct gn_host *host,
		 struct gn_worker *worker)
{
	*lane = (struct gn_lane){
		.pub = {.index = index, .n_lanes = n_lanes, .host = &host->pub, .core = lane},
		.name = host->name,
		.worker = worker,
	};
	lane->pub.now_ns = host->pub.now_ns(&host->pub);
	pthread_mutex_init(&lane->chains_lock, NULL);
	lane->double_completions = host->pub.counter(&host->pub, "double_completions");
	if (!lane->double_completions)
		return -ENOMEM;
	return gn_worker_add_clock(worker, &lane->pub.now_ns);
}

void gn_lane_fini(struct gn_lane *lane)
{
	if (lane->worker)
		gn_worker_remove_clock(lane->worker, &lane->pub.now_ns);
	lane->worker = NULL;
	gn_chain_leave_all(lane);
	free(lane->own_times);
	pthread_mutex_destroy(&lane->chains_lock);
}

static int add_poller(struct gn_pipeline *pl, struct stage *st, uint32_t l)
{
	struct gn_lane *lane = &pl->lanes[l];
	struct gantry_poller poller = {
		.poll = st->ops->poll, .wake_ns = st->ops->wake_ns, .self = st->selfs[l]};

	if (lane->check_stages) {
		st->checks[l] = (struct gn_watch_poller){.lane = lane,
							 .ops = st->ops,
							 .self = st->selfs[l],
							 .running = pl->n_stages};
		poller = (struct gantry_poller){
			.poll = gn_watch_poll, .wake_ns = gn_watch_wake_ns, .self = &st->checks[l]};
	}
	return gn_worker_add(lane->worker, &poller);
}

static int start_stage(struct gn_pipeline *pl, struct stage *st)
{
	st->selfs = calloc(pl->n_lanes, sizeof(*st->selfs));
	st->checks = calloc(pl->n_lanes, sizeof(*st->checks));
	if (!st->selfs || !st->checks)
		return -ENOMEM;
	for (uint32_t l = 0; l < pl->n_lanes; l++) {
		int rc = st->ops->start(st->stage, &pl->lanes[l].pub, &st->selfs[l]);

		rc = gn_host_returned(&st->host, st->part->name, "start", rc);
		if (rc == 0) {
			st->n_started++;
			rc = add_poller(pl, st, l);
		}
		if (rc != 0) {
			gn_log(GN_LOG_ERROR, pl->owner,
			       "stage %u, %s: cannot be started on lane %u: %s", pl->n_stages - 1,
			       st->part->name, l, strerror(-rc));
			return rc;
		}
	}
	return 0;
}

static int open_stage(struct gn_pipeline *pl, const struct gn_plugin_instance *part,
		      uint32_t *n_ctx_words)
{
	struct stage *st = &pl->stages[pl->n_stages];
	int rc;

	st->part = part;
	st->ops = part->ops;
	st->frame = *n_ctx_words;
	*n_ctx_words += st->ops->n_ctx_words;
	if (*n_ctx_words > GANTRY_IO_FRAMES) {
		gn_log(GN_LOG_ERROR, pl->owner,
		       "stage %u, %s: too many context words in a descriptor (limit %d for all stages): remove a stage",
		       pl->n_stages, part->name, GANTRY_IO_FRAMES);
		return -E2BIG;
	}
	gn_host_init(&st->host, "%s.stages[%u]", pl->owner, pl->n_stages);
	rc = gn_host_returned(&st->host, part->name, "open",
			      st->ops->open(&st->host.pub, part->conf, &st->stage));
	if (rc != 0) {
		gn_log(GN_LOG_ERROR, pl->owner, "stage %u, %s: cannot be opened: %s", pl->n_stages,
		       part->name, strerror(-rc));
		gn_host_fini(&st->host);
		return rc;
	}
	pl->n_stages++;
	return start_stage(pl, st);
}

void *gn_pipeline_stage(const struct gn_pipeline *pipeline, uint32_t index)
{
	return pipeline->stages[index].stage;
}

int gn_pipeline_open(const char *owner, const struct gn_plugin_instance *parts, uint32_t n,
		     struct gn_lane *lanes, uint32_t n_lanes, struct gn_pipeline **pipeline_p)
{
	struct gn_pipeline *pl;
	uint32_t n_ctx_words = 0;

	if (n > GANTRY_CHAIN_STAGES) {
		gn_log(GN_LOG_ERROR, owner, "too many stages (stages=%u, limit %d): remove some", n,
		       GANTRY_CHAIN_STAGES);
		return -E2BIG;
	}
	pl = calloc(1, sizeof(*pl));
	if (!pl)
		return -ENOMEM;
	pl->owner = owner;
	pl->lanes = lanes;
	pl->n_lanes = n_lanes;
	for (uint32_t i = 0; i < n; i++) {
		int rc = open_stage(pl, &parts[i], &n_ctx_words);

		if (rc != 0) {
			gn_pipeline_close(&pl);
			return rc;
		}
	}
	for (uint32_t l = 0; l < n_lanes; l++)
		lanes[l].pipeline = pl;
	*pipeline_p = pl;
	return 0;
}

static void close_stage(struct gn_pipeline *pl, struct stage *st)
{
	for (uint32_t l = 0; l < st->n_started; l++) {
		/*
		 * A stage without state for each lane returns the same `self` for all lanes. The
		 * first removal on a worker removes all pollers with that `self`.
		 */
		gn_worker_remove(pl->lanes[l].worker, st->selfs[l]);
		gn_worker_remove(pl->lanes[l].worker, &st->checks[l]);
		st->ops->stop(st->selfs[l]);
	}
	free(st->selfs);
	free(st->checks);
	st->ops->close(st->stage);
	gn_host_fini(&st->host);
}

void gn_pipeline_close(struct gn_pipeline **pipeline_p)
{
	struct gn_pipeline *pl = *pipeline_p;

	*pipeline_p = NULL;
	if (!pl)
		return;
	while (pl->n_stages > 0)
		close_stage(pl, &pl->stages[--pl->n_stages]);
	free(pl);
}

void gn_pipeline_hop(const struct gn_pipeline *pl, uint32_t i, uint32_t lane,
		     struct gantry_hop *hop)
{
	const struct stage *st = &pl->stages[i];

	*hop = (struct gantry_hop){
		.submit = st->ops->submit,
		.complete = st->ops->complete,
		.self = st->selfs[lane],
		.frame = st->frame < GANTRY_IO_FRAMES ? st->frame : 0,
	};
}

int gn_pipeline_stage_volume(const struct gn_pipeline *pl, uint32_t i,
			     struct gantry_volume_info *volume)
{
	const struct stage *st = &pl->stages[i];

	return st->ops->volume ? st->ops->volume(st->stage, volume) : 0;
}

int gn_pipeline_volume(const struct gn_pipeline *pl, struct gantry_volume_info *volume)
{
	int rc = 0;

	for (uint32_t i = gn_pipeline_length(pl); i > 0 && rc == 0; i--)
		rc = gn_pipeline_stage_volume(pl, i - 1, volume);
	return rc;
}

void gn_pipeline_drain(struct gn_lane *lane, const void *owner)
{
	const struct gn_pipeline *pl = lane->pipeline;

	for (uint32_t i = 0; i < pl->n_stages; i++) {
		lane->running = i + 1;
		pl->stages[i].ops->drain(pl->stages[i].selfs[lane->pub.index], owner);
	}
	lane->running = 0;
}

void gn_pipeline_count(const struct gn_pipeline *pl, struct gn_place_counts *counts)
{
	uint32_t terminal = pl->n_stages + 1;

	*counts = (struct gn_place_counts){.pipeline = pl};
	for (uint32_t l = 0; l < pl->n_lanes; l++) {
		uint32_t held[GN_CHAIN_PLACES];

		gn_lane_count_held(&pl->lanes[l], NULL, held);
		for (uint32_t i = 0; i < GN_CHAIN_PLACES; i++) {
			counts->held[i] += held[i];
			counts->doubled[i == 0 ? terminal : i] +=
				__atomic_load_n(&pl->lanes[l].doubled[i], __ATOMIC_RELAXED);
		}
		for (uint32_t i = 0; pl->lanes[l].own_times && i < terminal; i++)
			counts->own_ns += gantry_histogram_load(&pl->lanes[l].own_times[i].sum);
	}
}

/* Write the own time of a place and its share in the time of the chain, if it was measured. */
static void report_own_time(const struct gn_place_counts *counts, uint32_t place,
			    struct gantry_writer *w)
{
	const struct gn_pipeline *pl = counts->pipeline;
	struct gantry_histogram *sum;

	if (!pl->lanes[0].own_times)
		return;
	sum = calloc(1, sizeof(*sum));
	if (!sum)
		return;
	for (uint32_t l = 0; l < pl->n_lanes; l++)
		if (pl->lanes[l].own_times)
			gantry_histogram_merge(sum, &pl->lanes[l].own_times[place - 1]);
	gantry_write_latency(w, "own_time", sum);
	w->real(w, "own_time_share",
		counts->own_ns != 0 ? (double)sum->sum / (double)counts->own_ns : 0);
	free(sum);
}

void gn_place_report(const struct gn_place_counts *counts, uint32_t place, struct gantry_writer *w)
{
	w->u64(w, "held_ops", counts->held[place]);
	w->u64(w, "double_completions", counts->doubled[place]);
	report_own_time(counts, place, w);
}

void gn_pipeline_report(const struct gn_pipeline *pl, const struct gn_place_counts *counts,
			struct gantry_writer *w)
{
	w->array(w, "stages");
	for (uint32_t i = 0; i < pl->n_stages; i++) {
		const struct stage *st = &pl->stages[i];

		w->object(w, NULL);
		w->string(w, "type", st->part->name);
		st->ops->report(st->stage, w);
		gn_place_report(counts, i + 1, w);
		gn_host_report(&st->host, w);
		w->end(w);
	}
	w->end(w);
}

bool gn_pipeline_needs_bounce(const struct gn_pipeline *pl, uint32_t i)
{
	return pl->stages[i].ops->needs_bounce != 0;
}

uint32_t gn_pipeline_count_bouncing(const struct gn_pipeline *pl)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < pl->n_stages; i++)
		n += gn_pipeline_needs_bounce(pl, i);
	return n;
}

const char *gn_pipeline_owner(const struct gn_pipeline *pl)
{
	return pl->owner;
}

uint32_t gn_pipeline_length(const struct gn_pipeline *pl)
{
	return pl->n_stages;
}

const char *gn_pipeline_stage_name(const struct gn_pipeline *pl, uint32_t i)
{
	return pl->stages[i].part->name;
}
