/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trouble_cases.c - programs that expect all seeded trouble, and count it on stderr
 *
 * They fail if a task does not complete exactly once, or completes with wrong data.
 */
#include "cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_TASKS 8u
#define ROUNDS 500u
#define BYTES (N_BYTES / 2 / N_TASKS)
#define CONNECTIONS 20u
#define PROGRESSES 400u /* of each connection */

/* What the program met. */
static unsigned n_again, n_no_task, n_reordered, n_stopped, n_rejected, n_lost;

/* -- copies -- */

static unsigned n_completed, completions[N_TASKS];
static bool failed[N_TASKS];
static struct doca_ctx *copier;
static bool stops_next; /* the next completion stops the context */

static void stop_next(void)
{
	const doca_error_t error = doca_ctx_stop(copier);

	if (error != DOCA_ERROR_BAD_STATE) /* it stops already */
		MUST(error);
	stops_next = false;
}

static enum doca_ctx_states state_of(struct doca_ctx *ctx)
{
	enum doca_ctx_states state;

	MUST(doca_ctx_get_state(ctx, &state));
	return state;
}

static void completed(unsigned i, bool error)
{
	if (state_of(copier) == DOCA_CTX_STATE_IDLE) {
		fprintf(stderr, "task %u completed although its context is idle\n", i);
		exit(9);
	}
	for (unsigned later = i + 1; later < N_TASKS; later++)
		if (completions[later]) {
			n_reordered++;
			break;
		}
	completions[i]++;
	failed[i] = error;
	n_completed++;
	if (stops_next)
		stop_next();
}

static void done(struct doca_dma_task_memcpy *task, union doca_data i, union doca_data ctx)
{
	(void)task, (void)ctx;
	completed((unsigned)i.u64, false);
}

static void flushed(struct doca_dma_task_memcpy *task, union doca_data i, union doca_data ctx)
{
	(void)task, (void)ctx;
	completed((unsigned)i.u64, true);
}

/* Allocate and submit task i. false: the context does not run any more. */
static bool submit(struct dma *d, unsigned i, struct doca_dma_task_memcpy **task)
{
	doca_error_t error;

	MUST(doca_buf_inventory_buf_get_by_data(d->inventory, d->map, memory + (size_t)i * BYTES,
						BYTES, &d->src));
	MUST(doca_buf_inventory_buf_get_by_addr(
		d->inventory, d->map, memory + N_BYTES / 2 + (size_t)i * BYTES, BYTES, &d->dst));
	while ((error = doca_dma_task_memcpy_alloc_init(d->dma, d->src, d->dst,
							(union doca_data){.u64 = i}, task)) ==
	       DOCA_ERROR_NO_MEMORY)
		n_no_task++;
	MUST(error);
	while ((error = doca_task_submit(doca_dma_task_memcpy_as_task(*task))) == DOCA_ERROR_AGAIN)
		n_again++;
	if (error == DOCA_ERROR_BAD_STATE)
		return false;
	MUST(error);
	return true;
}

/* Free the task and its buffers. */
static void release(struct doca_dma_task_memcpy *task)
{
	struct doca_buf *src = (struct doca_buf *)doca_dma_task_memcpy_get_src(task),
			*dst = doca_dma_task_memcpy_get_dst(task);

	doca_task_free(doca_dma_task_memcpy_as_task(task));
	MUST(doca_buf_dec_refcount(src, NULL));
	MUST(doca_buf_dec_refcount(dst, NULL));
}

static void check(unsigned i)
{
	const uint8_t *src = memory + (size_t)i * BYTES, *dst = src + N_BYTES / 2;

	if (completions[i] == 1 && (failed[i] || !memcmp(src, dst, BYTES)))
		return;
	fprintf(stderr, "task %u: %u completions, or wrong data\n", i, completions[i]);
	exit(9);
}

static void copy_round(struct dma *d, uint8_t fill)
{
	struct doca_dma_task_memcpy *tasks[N_TASKS];
	const bool stops = fill % 8 == 0;
	unsigned n_submitted = 0, n_allocated = 0, i;

	copier = d->ctx;
	stops_next = stops;
	memset(memory, fill, N_BYTES / 2);
	memset(completions, 0, sizeof(completions));
	n_completed = 0;
	while (n_allocated < N_TASKS && submit(d, n_allocated, &tasks[n_allocated])) {
		n_allocated++;
		n_submitted++;
	}
	if (n_allocated < N_TASKS) /* its submission was rejected */
		n_allocated++;
	progress(d->pe, &n_completed, n_submitted);
	for (i = 0; i < n_submitted; i++)
		check(i);
	for (i = 0; i < n_allocated; i++)
		release(tasks[i]);
	if (state_of(d->ctx) == DOCA_CTX_STATE_RUNNING)
		return;
	n_stopped += !stops;
	wait_state(d->pe, d->ctx, DOCA_CTX_STATE_IDLE);
	MUST(doca_ctx_start(d->ctx));
}

static void copies(void)
{
	struct dma d;

	dma_open(&d);
	MUST(doca_dma_task_memcpy_set_conf(d.dma, done, flushed, N_TASKS));
	MUST(doca_ctx_start(d.ctx));
	for (unsigned i = 0; i < ROUNDS; i++)
		copy_round(&d, (uint8_t)(i + 1));
	dma_close(&d);
}

/* -- connections -- */

static void connection(struct doca_comch_event_connection_status_changed *event,
		       struct doca_comch_connection *conn, uint8_t successful)
{
	(void)event, (void)conn;
	if (!successful)
		n_rejected++;
}

static void end_of_connection(struct doca_comch_event_connection_status_changed *event,
			      struct doca_comch_connection *conn, uint8_t successful)
{
	(void)event, (void)conn, (void)successful;
}

static void connect_once(struct pair *p)
{
	struct doca_ctx *client = doca_comch_client_as_ctx(p->client);
	enum doca_ctx_states state;

	MUST(doca_ctx_start(client));
	while ((state = state_of(client)) == DOCA_CTX_STATE_STARTING)
		(void)doca_pe_progress(p->pe);
	for (unsigned i = 0; i < PROGRESSES && state == DOCA_CTX_STATE_RUNNING; i++) {
		(void)doca_pe_progress(p->pe);
		state = state_of(client);
	}
	if (state == DOCA_CTX_STATE_RUNNING)
		MUST(doca_ctx_stop(client));
	else
		n_lost++;
	wait_state(p->pe, client, DOCA_CTX_STATE_IDLE);
}

static void connections(void)
{
	struct pair p;

	pair_create(&p, (struct pair_skips){.connections = true});
	MUST(doca_comch_server_event_connection_status_changed_register(p.server, connection,
									end_of_connection));
	MUST(doca_ctx_start(doca_comch_server_as_ctx(p.server)));
	for (unsigned i = 0; i < CONNECTIONS; i++)
		connect_once(&p);
	pair_close(&p);
}

void meet_trouble(void)
{
	copies();
	connections();
	meet_path_trouble();
	fprintf(stderr,
		"again %u\nno_task %u\nreordered %u\nstopped %u\nnot_accepted %u\nlost %u\n",
		n_again, n_no_task, n_reordered, n_stopped, n_rejected, n_lost);
}
