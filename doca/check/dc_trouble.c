/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dc_trouble.c - seeded trouble
 *
 * GANTRY_DOCA_CHECK_SEED is the seed, and GANTRY_DOCA_CHECK_PROGRAM the number of this program of
 * the run. The seed decides the rate of each kind of trouble, which can be 0. A decision depends on
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
#include <unistd.h>

#include "check/dc.h"
#include "check/dc_report.h"

bool dc_trouble_is_on;

enum kind {
	AGAIN,        /* a submission is refused with AGAIN */
	NO_TASK,      /* an allocation finds no free task */
	LATE,         /* doca_pe_progress() does nothing */
	NOT_ACCEPTED, /* a connection fails: change_successful = 0 */
	FATAL,        /* a context stops by itself */
	DISCONNECT,   /* a client loses its server */
	REORDER,      /* completions of independent tasks come in another order */
	N_KINDS
};

/* One in how many decisions is trouble; 0: never. The seed chooses one of each row. */
static const struct {
	const char *name;
	uint32_t choices[4];
} rates[N_KINDS] = {
	[AGAIN] = {"again", {0, 64, 8, 2}},    [NO_TASK] = {"no_task", {0, 0, 64, 8}},
	[LATE] = {"late", {0, 4, 2, 0}},       [NOT_ACCEPTED] = {"not_accepted", {0, 0, 0, 2}},
	[FATAL] = {"fatal", {0, 0, 0, 2000}},  [DISCONNECT] = {"disconnect", {0, 0, 0, 2000}},
	[REORDER] = {"reorder", {0, 0, 8, 2}},
};

enum { MAX_IN_A_ROW = 100, MAX_LATE = 1000, MAX_HELD = 8 };

static uint64_t seed, n_caused[N_KINDS];
static uint32_t one_in[N_KINDS];
static unsigned n_threads;

struct decisions {
	struct gantry_random random;
	bool is_seeded;
	unsigned in_a_row[N_KINDS];
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

void dc_trouble_before(struct dc_call *call)
{
	const struct dc_function *f = &dc_functions[call->function];

	if (call->refused || !call->objects[0])
		return;
	if (call->function == DC_doca_task_submit || call->function == DC_doca_task_submit_ex ||
	    call->function == DC_doca_task_try_submit) {
		if (decide(AGAIN))
			refuse(call, DOCA_ERROR_AGAIN);
	} else if (f->kind == DC_TASK_ALLOC) {
		if (decide(NO_TASK))
			refuse(call, DOCA_ERROR_NO_MEMORY);
	} else if (call->function == DC_doca_pe_progress) {
		if (decide(LATE))
			refuse(call, 0);
	}
}

bool dc_trouble_connection(void)
{
	return dc_trouble_is_on && decide(NOT_ACCEPTED);
}

/* -- contexts that stop by themselves -- */

struct choice {
	const struct dc_object *engine;
	bool is_client; /* choose a client; else a context with tasks of its own */
	struct dc_object *victim;
};

/* True for a context whose tasks are independent of each other, and of a peer. */
static bool is_compute(const struct dc_object *o)
{
	return o->type == DC_T_doca_dma || o->type == DC_T_doca_compress ||
	       o->type == DC_T_doca_sha || o->type == DC_T_doca_ec || o->type == DC_T_doca_aes_gcm;
}

static void choose(struct dc_object *o, void *arg)
{
	struct choice *c = arg;

	if (dc_types[o->type].is_task || dc_types[o->type].cast == DC_N_FUNCTIONS ||
	    o->ctx.engine != c->engine)
		return;
	if (c->is_client ? o->type != DC_T_doca_comch_client : !is_compute(o))
		return;
	if (dc_state(o) == DOCA_CTX_STATE_RUNNING)
		c->victim = o;
}

static void stop_one(const struct dc_object *pe, bool client)
{
	struct choice c = {.engine = pe, .is_client = client};

	dc_lock();
	dc_each(choose, &c);
	dc_unlock();
	if (c.victim)
		(void)DC_NEXT(doca_ctx_stop)(
			(struct doca_ctx *)(uintptr_t)c.victim->alias->address);
}

void dc_trouble_progress(struct dc_object *pe)
{
	if (!dc_trouble_is_on || !pe)
		return;
	if (decide(FATAL))
		stop_one(pe, false);
	if (decide(DISCONNECT))
		stop_one(pe, true);
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

static __attribute__((constructor)) void start(void)
{
	const char *text = getenv("GANTRY_DOCA_CHECK_SEED"),
		   *program = getenv("GANTRY_DOCA_CHECK_PROGRAM");
	uint64_t state;
	unsigned i;

	if (!text || !*text)
		return;
	state = strtoull(text, NULL, 10);
	dc_trouble_is_on = true;
	for (i = 0; i < N_KINDS; i++)
		one_in[i] = rates[i].choices[gantry_random_split(&state) % 4];
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
