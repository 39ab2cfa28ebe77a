/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * chain.c - chains: the hops of one role on one lane, with their descriptors; and the count of the
 * descriptors that each hop holds.
 */
#include "pipeline/chain_watch.h"
#include "pipeline/pipeline_priv.h"

#include "io/pool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* gn_lane_count_held() does not count the guard, which is hop 0. */
#define FIRST_PLACE 1
#define BOUNCE_ALIGN ((size_t)4096)

struct gantry_chain {
	struct gn_lane *lane;          /* NULL: the lane was destroyed */
	LIST_ENTRY(gantry_chain) link; /* in the list of the lane */
	struct gantry_io *ios;
	uint32_t n;
	struct gantry_volume_info volume; /* of the terminal */
	/* the volume that the descriptors of each stage address, which it reads through its hop */
	struct gantry_volume_info volumes[GANTRY_CHAIN_STAGES];
	/* of all hops but the guard; NULL: the chain was never watched */
	struct gn_watch *watches;
	struct gn_visit *visits;       /* of all places but the owner; NULL: never measured */
	struct gantry_bounce *bounces; /* of all stages that need them; NULL: none */
	void *bounce_memory;
	size_t bounce_bytes;
	struct gantry_hop hops[GN_CHAIN_PLACES + 1];
};

static void guard_complete(void *lane, struct gantry_io *io)
{
	io->hop++;
	gn_watch_double(lane);
}

struct gantry_hop gn_lane_guard(struct gn_lane *lane)
{
	return (struct gantry_hop){
		.submit = gn_io_no_submit, .complete = guard_complete, .self = lane};
}

static uint32_t count_places(const struct gn_lane *lane)
{
	return gn_pipeline_length(lane->pipeline) + 2;
}

/* Prepare the watching hops. Returns 0 or -ENOMEM. */
static int add_watches(struct gantry_chain *chain)
{
	const uint32_t n = count_places(chain->lane);

	if (chain->watches)
		return 0;
	chain->watches = calloc(n, sizeof(*chain->watches));
	if (!chain->watches)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		chain->watches[i] = (struct gn_watch){
			.lane = chain->lane,
			.hop = chain->hops[FIRST_PLACE + i],
			.running = i + 1 < n ? i : 0,
			.next = i + 2 < n ? i + 1 : 0,
			.is_last = i + 1 == n,
		};
	return 0;
}

/* Prepare to measure: all but the switch, which the lane does. Returns 0 or -ENOMEM. */
static int add_visits(struct gantry_chain *chain)
{
	const uint32_t n = count_places(chain->lane);
	int rc = add_watches(chain);

	if (rc != 0 || chain->visits)
		return rc;
	chain->visits = calloc((size_t)(n - 1) * chain->n, sizeof(*chain->visits));
	if (!chain->visits)
		return -ENOMEM;
	for (uint32_t i = 1; i < n; i++) {
		chain->watches[i].visits = &chain->visits[(size_t)(i - 1) * chain->n];
		chain->watches[i].own_time = &chain->lane->own_times[i - 1];
	}
	return 0;
}

/* Put the watching hops, or those that they watch, in the chain. Lane's thread. */
static void set_hops(struct gantry_chain *chain)
{
	const uint32_t n = count_places(chain->lane);
	const bool watched = chain->lane->check_stages || chain->lane->measures;

	for (uint32_t i = 0; chain->watches && i < n; i++)
		chain->hops[FIRST_PLACE + i] = watched ? gn_watch_hop(&chain->watches[i])
						       : chain->watches[i].hop;
	/* an IO that is in flight now must not use a time of an earlier measurement */
	if (chain->visits)
		memset(chain->visits, 0, (size_t)(n - 1) * chain->n * sizeof(*chain->visits));
}

/*
 * Give each stage that needs it a bounce buffer for each descriptor. The kernel allocates a page
 * when a stage first uses it.
 */
static int add_bounce(struct gantry_chain *chain, uint32_t n_stages)
{
	const struct gn_pipeline *pl = chain->lane->pipeline;
	const size_t bytes = ((size_t)chain->volume.max_io + BOUNCE_ALIGN - 1) & -BOUNCE_ALIGN;
	const size_t n = (size_t)gn_pipeline_count_bouncing(pl) * chain->n;
	struct gantry_bounce *next;

	if (n == 0)
		return 0;
	if (__builtin_mul_overflow(n, bytes, &chain->bounce_bytes) || chain->bounce_bytes == 0)
		return -EINVAL;
	chain->bounces = next = calloc(n, sizeof(*next));
	chain->bounce_memory = mmap(NULL, chain->bounce_bytes, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (!chain->bounces || chain->bounce_memory == MAP_FAILED)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		next[i].buffer = (char *)chain->bounce_memory + i * bytes;
	for (uint32_t i = 0; i < n_stages; i++)
		if (gn_pipeline_needs_bounce(pl, i)) {
			chain->hops[FIRST_PLACE + 1 + i].bounce = next;
			next += chain->n;
		}
	return 0;
}

/* A stage that rejects a new size keeps the volume that it had. */
static void set_volumes(struct gantry_chain *chain, uint32_t n_stages)
{
	struct gantry_volume_info volume = chain->volume;

	for (uint32_t i = n_stages; i > 0; i--)
		if (gn_pipeline_stage_volume(chain->lane->pipeline, i - 1, &volume) == 0)
			chain->volumes[i - 1] = volume;
}

static void free_chain(struct gantry_chain *chain)
{
	if (chain->bounce_memory && chain->bounce_memory != MAP_FAILED)
		munmap(chain->bounce_memory, chain->bounce_bytes);
	free(chain->bounces);
	free(chain->visits);
	free(chain->watches);
	free(chain->ios);
	free(chain);
}

int gn_chain_create(struct gn_lane *lane, const struct gantry_hop *owner,
		    const struct gantry_hop *terminal, const struct gantry_volume_info *volume,
		    uint32_t n, struct gantry_chain **chain_p, struct gantry_io **ios_p)
{
	struct gantry_chain *chain;
	uint32_t n_stages = gn_pipeline_length(lane->pipeline);
	struct gantry_hop *hop;
	int rc;

	if (n == 0 || n > UINT16_MAX)
		return -EINVAL;
	chain = calloc(1, sizeof(*chain));
	if (!chain)
		return -ENOMEM;
	chain->lane = lane;
	chain->n = n;
	chain->ios = gn_io_pool(n, &chain->hops[1]);
	if (!chain->ios) {
		free(chain);
		return -ENOMEM;
	}
	hop = chain->hops;
	*hop++ = gn_lane_guard(lane);
	*hop++ = *owner;
	if (volume)
		chain->volume = *volume;
	for (uint32_t i = 0; i < n_stages; i++) {
		gn_pipeline_hop(lane->pipeline, i, lane->pub.index, hop);
		hop->session = owner->session;
		hop++->volume = volume ? &chain->volumes[i] : NULL;
	}
	*hop = *terminal;
	hop->session = owner->session;
	set_volumes(chain, n_stages);
	rc = add_bounce(chain, n_stages);
	if (rc == 0 && lane->check_stages)
		rc = add_watches(chain);
	if (rc == 0 && lane->measures)
		rc = add_visits(chain);
	if (rc != 0) {
		free_chain(chain);
		return rc;
	}
	set_hops(chain);
	pthread_mutex_lock(&lane->chains_lock);
	LIST_INSERT_HEAD(&lane->chains, chain, link);
	pthread_mutex_unlock(&lane->chains_lock);
	*chain_p = chain;
	*ios_p = chain->ios;
	return 0;
}

static void leave_lane(struct gantry_chain *chain)
{
	pthread_mutex_lock(&chain->lane->chains_lock);
	LIST_REMOVE(chain, link);
	pthread_mutex_unlock(&chain->lane->chains_lock);
}

void gn_chain_leave_all(struct gn_lane *lane)
{
	struct gantry_chain *chain;

	pthread_mutex_lock(&lane->chains_lock);
	LIST_FOREACH (chain, &lane->chains, link)
		chain->lane = NULL;
	LIST_INIT(&lane->chains);
	pthread_mutex_unlock(&lane->chains_lock);
}

void gn_chain_destroy(struct gantry_chain *chain)
{
	if (!chain)
		return;
	if (chain->lane)
		leave_lane(chain);
	free_chain(chain);
}

void gn_chain_enter_terminal(const struct gantry_chain *chain, const struct gantry_io *io)
{
	if (chain->visits && chain->lane->measures)
		gn_watch_enter(&chain->watches[io->hop - chain->hops - FIRST_PLACE], io);
}

/* -- measure -- */

static void switch_on_lane(void *arg)
{
	struct gn_lane *lane = arg;
	struct gantry_chain *chain;

	lane->measures = !lane->measures;
	pthread_mutex_lock(&lane->chains_lock);
	LIST_FOREACH (chain, &lane->chains, link)
		set_hops(chain);
	pthread_mutex_unlock(&lane->chains_lock);
}

static int prepare(struct gn_lane *lane)
{
	struct gantry_chain *chain;
	int rc = 0;

	if (!lane->own_times)
		lane->own_times = calloc(count_places(lane) - 1, sizeof(*lane->own_times));
	if (!lane->own_times)
		return -ENOMEM;
	pthread_mutex_lock(&lane->chains_lock);
	LIST_FOREACH (chain, &lane->chains, link)
		rc = rc != 0 ? rc : add_visits(chain);
	pthread_mutex_unlock(&lane->chains_lock);
	return rc;
}

int gn_lane_measure(struct gn_lane *lane, bool on)
{
	int rc;

	if (lane->measures == on)
		return 0;
	rc = on ? prepare(lane) : 0;
	if (rc == 0)
		gn_worker_call(lane->worker, switch_on_lane, lane);
	return rc;
}

void gn_chain_set_size(struct gantry_chain *chain, uint64_t size)
{
	chain->volume.size = size;
	if (chain->lane)
		set_volumes(chain, gn_pipeline_length(chain->lane->pipeline));
}

void gn_lane_name_place(const struct gn_lane *lane, uint32_t place, char name[GN_PLACE_NAME])
{
	if (place == 0)
		snprintf(name, GN_PLACE_NAME, "session");
	else if (place <= gn_pipeline_length(lane->pipeline))
		snprintf(name, GN_PLACE_NAME, "stages[%u] type=%s", place - 1,
			 gn_pipeline_stage_name(lane->pipeline, place - 1));
	else
		snprintf(name, GN_PLACE_NAME, "%s",
			 lane->terminal_name ? lane->terminal_name : "terminal");
}

/*
 * Returns the place of a hop. The terminal can pass a descriptor through another chain: a hop that
 * is not of this chain counts as the terminal.
 */
static uint32_t place_of(const struct gantry_chain *chain, const struct gantry_hop *hop)
{
	const uint32_t terminal = count_places(chain->lane) - 1;
	uintptr_t place = ((uintptr_t)hop - (uintptr_t)&chain->hops[FIRST_PLACE]) / sizeof(*hop);

	return place < terminal ? (uint32_t)place : terminal;
}

/*
 * The lane's thread can write the descriptors at the same time, without atomics: the count is only
 * for diagnosis.
 */
__attribute__((no_sanitize("thread"))) static void count_held(const struct gantry_chain *chain,
							      const void *owner,
							      uint32_t held[GN_CHAIN_PLACES])
{
	for (uint32_t i = 0; i < chain->n; i++) {
		const struct gantry_io *io = &chain->ios[i];
		const struct gantry_hop *hop = *(const struct gantry_hop *const volatile *)&io->hop;

		if ((!owner || io->owner == owner) && *(const volatile uint8_t *)&io->busy != 0)
			held[place_of(chain, hop)]++;
	}
}

void gn_lane_count_held(struct gn_lane *lane, const void *owner, uint32_t held[GN_CHAIN_PLACES])
{
	const struct gantry_chain *chain;

	memset(held, 0, GN_CHAIN_PLACES * sizeof(*held));
	pthread_mutex_lock(&lane->chains_lock);
	LIST_FOREACH (chain, &lane->chains, link)
		count_held(chain, owner, held);
	pthread_mutex_unlock(&lane->chains_lock);
}
