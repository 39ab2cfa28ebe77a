/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dc_trouble.c - seeded trouble
 *
 * GANTRY_DOCA_CHECK_SEED is the seed, and GANTRY_DOCA_CHECK_PROGRAM the number of this program of
 * the run. The seed decides the rate of each kind of trouble. The rate can be 0.
 * GANTRY_DOCA_CHECK_TROUBLE is a list of kinds, separated by commas; every other kind has the rate
 * 0. A decision depends on
 * the seed, the program, the thread and the number of its decisions, but not on time. So a program
 * of one thread gets the same decisions for the same calls. How the calls of two processes
 * interleave depends on the scheduler of the operating system.
 *
 * Refusals can repeat: after MAX_IN_A_ROW of them one call passes.
 */
#include "check/dc_trouble.h"

#include <doca_comch.h>
#include <doca_ctx.h>
#include <doca_pe.h>
#include <gantry/random.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check/dc.h"
#include "check/dc_report.h"

bool dc_trouble_is_on;

enum kind {
#define DC_TROUBLE(id, name, a, b, c, d) id,
#include "check/trouble.def"
#undef DC_TROUBLE
	N_KINDS
};

static const struct {
	const char *name;
	uint32_t choices[4];
} rates[N_KINDS] = {
#define DC_TROUBLE(id, name, a, b, c, d) [id] = {name, {a, b, c, d}},
#include "check/trouble.def"
#undef DC_TROUBLE
};

enum { MAX_IN_A_ROW = 100, MAX_LATE = 1000, MAX_HELD = 8, MAX_CREDITS = 3 };

static uint64_t seed, n_caused[N_KINDS];
static uint32_t one_in[N_KINDS];
static unsigned n_threads;

struct decisions {
	struct gantry_random random;
	bool is_seeded;
	unsigned in_a_row[N_KINDS];
	unsigned credits; /* sends of producers until doca_pe_progress() is called */
	struct dc_completion held[MAX_HELD];
	unsigned n_held;
	bool delivers;
};
static __thread struct decisions thread __attribute__((tls_model("initial-exec")));

static uint64_t next(void)
{
	if (!thread.is_seeded) {
		gantry_random_seed(&thread.random,
				   seed + __atomic_add_fetch(&n_threads, 1, __ATOMIC_RELAXED));
		thread.is_seeded = true;
	}
	return gantry_random_next(&thread.random);
}

static bool decide(enum kind kind)
{
	const unsigned max = kind == LATE ? MAX_LATE : MAX_IN_A_ROW;

	if (!one_in[kind] || next() % one_in[kind] || thread.in_a_row[kind] >= max) {
		thread.in_a_row[kind] = 0;
		return false;
	}
	thread.in_a_row[kind]++;
	n_caused[kind]++;
	return true;
}

static void refuse(struct dc_call *call, uint64_t result)
{
	call->refused = true;
	call->result = result;
}

/* True if the producer has no credit for this task. */
static bool lacks_credit(const struct dc_object *task)
{
	if (!one_in[CREDITS] || task->type != DC_T_doca_comch_producer_task_send)
		return false;
	if (thread.credits > 0) {
		thread.credits--;
		return false;
	}
	return decide(CREDITS);
}

static void before_submit(struct dc_call *call)
{
	if (decide(AGAIN) || lacks_credit(call->objects[0]))
		refuse(call, DOCA_ERROR_AGAIN);
}

static void before_progress(struct dc_call *call)
{
	if (one_in[CREDITS])
		thread.credits = (unsigned)(next() % (MAX_CREDITS + 1));
	if (decide(LATE))
		refuse(call, 0);
}

void dc_trouble_before(struct dc_call *call)
{
	const struct dc_function *f = &dc_functions[call->function];

	if (call->refused || !call->objects[0])
		return;
	if (call->function == DC_doca_task_submit || call->function == DC_doca_task_submit_ex ||
	    call->function == DC_doca_task_try_submit)
		before_submit(call);
	else if (f->kind == DC_TASK_ALLOC && decide(NO_TASK))
		refuse(call, DOCA_ERROR_NO_MEMORY);
	else if (call->function == DC_doca_pe_progress)
		before_progress(call);
}

bool dc_trouble_connection(void)
{
	return dc_trouble_is_on && decide(NOT_ACCEPTED);
}

/* -- contexts that stop by themselves -- */

/* True for a context whose tasks are independent of each other, and of a peer. */
static bool is_compute(const struct dc_object *o)
{
	return o->type == DC_T_doca_dma || o->type == DC_T_doca_compress ||
	       o->type == DC_T_doca_sha || o->type == DC_T_doca_ec || o->type == DC_T_doca_aes_gcm;
}

static bool is_client(const struct dc_object *o)
{
	return o->type == DC_T_doca_comch_client;
}

static bool is_fast_path(const struct dc_object *o)
{
	return o->type == DC_T_doca_comch_consumer || o->type == DC_T_doca_comch_producer;
}

/* Which contexts each kind stops. */
static const struct {
	enum kind kind;
	bool (*is_of)(const struct dc_object *o);
} stops[] = {{FATAL, is_compute}, {DISCONNECT, is_client}, {PATH, is_fast_path}};

struct choice {
	const struct dc_object *engine;
	bool (*is_of)(const struct dc_object *o);
	struct dc_object *victim;
};

static void choose(struct dc_object *o, void *arg)
{
	struct choice *c = arg;

	if (dc_types[o->type].is_task || dc_types[o->type].cast == DC_N_FUNCTIONS ||
	    o->ctx.engine != c->engine || !c->is_of(o))
		return;
	if (dc_state(o) == DOCA_CTX_STATE_RUNNING)
		c->victim = o;
}

/* Returns false if there is none. */
static bool stop_one(const struct dc_object *pe, bool (*is_of)(const struct dc_object *o))
{
	struct choice c = {.engine = pe, .is_of = is_of};

	dc_lock();
	dc_each(choose, &c);
	dc_unlock();
	if (!c.victim)
		return false;
	(void)DC_NEXT(doca_ctx_stop)((struct doca_ctx *)(uintptr_t)c.victim->alias->address);
	return true;
}

void dc_trouble_progress(struct dc_object *pe)
{
	unsigned i;

	if (!dc_trouble_is_on || !pe)
		return;
	for (i = 0; i < sizeof(stops) / sizeof(stops[0]); i++)
		if (decide(stops[i].kind) && !stop_one(pe, stops[i].is_of))
			n_caused[stops[i].kind]--;
}

/*
 * -- completions in another order --
 *
 * A context is not idle before the program has freed its tasks. So a callback can stop a context
 * whose completions are held: they are delivered while it stops.
 */

bool dc_trouble_hold(const struct dc_object *ctx, const struct dc_completion *c)
{
	if (!dc_thread.engine || thread.delivers || thread.n_held == MAX_HELD || !is_compute(ctx))
		return false;
	if (!thread.n_held && !decide(REORDER))
		return false;
	thread.held[thread.n_held++] = *c;
	return true;
}

void dc_trouble_release(void)
{
	if (thread.delivers)
		return;
	thread.delivers = true;
	while (thread.n_held > 0) {
		const struct dc_completion c = thread.held[--thread.n_held];

		dc_deliver_completion(&c);
	}
	thread.delivers = false;
}

void dc_trouble_end_progress(const struct dc_object *pe)
{
	if (!pe)
		return;
	while (thread.n_held > 0 && thread.n_held < MAX_HELD &&
	       DC_NEXT(doca_pe_progress)((struct doca_pe *)(uintptr_t)pe->address))
		;
	dc_trouble_release();
}

/* -- start and end -- */

/* True if the list has the name. NULL: it has all. */
static bool is_listed(const char *list, const char *name)
{
	const size_t len = strlen(name);

	for (; list; list = strchr(list, ',') ? strchr(list, ',') + 1 : "") {
		if (!*list)
			return false;
		if (!strncmp(list, name, len) && (list[len] == ',' || !list[len]))
			return true;
	}
	return true;
}

static __attribute__((constructor)) void start(void)
{
	const char *text = getenv("GANTRY_DOCA_CHECK_SEED"),
		   *program = getenv("GANTRY_DOCA_CHECK_PROGRAM"),
		   *kinds = getenv("GANTRY_DOCA_CHECK_TROUBLE");
	uint64_t state;
	uint32_t rate;
	unsigned i;

	if (!text || !*text)
		return;
	state = strtoull(text, NULL, 10);
	dc_trouble_is_on = true;
	for (i = 0; i < N_KINDS; i++) {
		rate = rates[i].choices[gantry_random_split(&state) % 4];
		one_in[i] = is_listed(kinds, rates[i].name) ? rate : 0;
	}
	state += program ? strtoull(program, NULL, 10) : 0;
	seed = gantry_random_split(&state);
}

static __attribute__((destructor)) void end(void)
{
	unsigned i;

	for (i = 0; dc_trouble_is_on && i < N_KINDS; i++)
		if (n_caused[i])
			dc_record("trouble\t%d\t%s\t%llu", (int)getpid(), rates[i].name,
				  (unsigned long long)n_caused[i]);
}
