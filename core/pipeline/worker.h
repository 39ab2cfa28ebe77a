/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * worker.h - a thread that polls: the progress engine under one or more lanes.
 *
 * Lanes of several roles of one process may share a worker, so that a topology in one process runs to completion on
 * one core. A worker spins while there is work, then for a budget that follows how long waits have been, then sleeps.
 */
#ifndef GN_PIPELINE_WORKER_H
#define GN_PIPELINE_WORKER_H

#include <gantry/plugin.h>

struct gn_worker;

struct gn_worker_attr {
	const char *name; /* of the thread, up to 15 bytes */
	int cpu;          /* pin to it; -1: do not */
	uint64_t spin_ns; /* longest spin before sleeping; 0: sleep at once */
};

/* Start the thread. 0 or -errno. */
int gn_worker_create(const struct gn_worker_attr *attr, struct gn_worker **worker_p);
/* All pollers must have been removed. Joins the thread. */
void gn_worker_destroy(struct gn_worker **worker_p);

/* Run fn(arg) on the worker's thread and wait for it. From the worker's own thread: runs it at once. */
void gn_worker_call(struct gn_worker *worker, void (*fn)(void *arg), void *arg);

/* Add and remove pollers: from any thread (through gn_worker_call) or from the worker's own. 0, -ENOMEM. */
int gn_worker_add(struct gn_worker *worker, const struct gantry_poller *poller);
void gn_worker_remove(struct gn_worker *worker, void *self);

/* Time at the start of this turn; worker's thread. */
uint64_t gn_worker_now(const struct gn_worker *worker);

/* Turns, turns that found work, sleeps: for reports. */
void gn_worker_report(const struct gn_worker *worker, struct gantry_writer *w);

#endif
