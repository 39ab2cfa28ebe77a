/* SPDX-License-Identifier: BSD-3-Clause */
/* dc_trouble.h - legal events that a program must expect, decided by a seed */
#ifndef DC_TROUBLE_H
#define DC_TROUBLE_H

#include <doca_pe.h>
#include <stdbool.h>

struct dc_call;
struct dc_object;

/* The arguments of the completion callback of a task. */
struct dc_completion {
	struct doca_task *task;
	union doca_data task_data, ctx_data;
	bool failed;
};

extern bool dc_trouble_is_on;

/* Decide whether this call is refused, with a documented error. Called with the lock held. */
void dc_trouble_before(struct dc_call *call);
/* True if a connection of the server fails: the program gets change_successful = 0. */
bool dc_trouble_connection(void);
/*
 * True if this completion is held: other completions of the engine overtake it. The layer delivers
 * it before the same call of doca_pe_progress() returns, and before any other callback runs. Called
 * with the lock held.
 */
bool dc_trouble_hold(const struct dc_object *ctx, const struct dc_completion *c);
/* Collect more completions of the engine, if some are held, and deliver all. */
void dc_trouble_end_progress(const struct dc_object *pe);
/* Deliver the completions that are held. Called without the lock. */
void dc_trouble_release(void);
/* Call the callback of the program. Called without the lock (dc_callback.c). */
void dc_deliver_completion(const struct dc_completion *c);

/* Stop a context of the engine, as a fatal error or the peer does. Called without the lock. */
void dc_trouble_progress(struct dc_object *pe);

#endif
