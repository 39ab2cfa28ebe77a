/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * path_cases.c - a fast path that expects all seeded trouble
 *
 * Messages are numbered by their immediate data. The program fails if one is lost, doubled or out
 * of order while consumer and producer run, or if a task does not complete once.
 */
#include "cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 20u
#define N_MESSAGES 64u /* of a round */
#define MAX_TASKS 4u   /* of each end */

static struct doca_comch_connection *at_server; /* NULL: none */
static unsigned n_posted;                       /* receives complete in their order */
static unsigned n_receives, n_sends;            /* tasks that are submitted */
static unsigned n_stopped;                      /* rounds in which the path stopped */
static unsigned n_arrived, n_delivered;         /* messages of this round */

static void fail(const char *text, unsigned number)
{
	fprintf(stderr, "fast path: %s (number=%u, arrived=%u, delivered=%u)\n", text, number,
		n_arrived, n_delivered);
	exit(9);
}

static enum doca_ctx_states state_of(struct doca_ctx *ctx)
{
	enum doca_ctx_states state;

	MUST(doca_ctx_get_state(ctx, &state));
	return state;
}

static bool runs(struct doca_ctx *ctx)
{
	return state_of(ctx) == DOCA_CTX_STATE_RUNNING;
}

/* -- connection -- */

static void connected(struct doca_comch_event_connection_status_changed *event,
		      struct doca_comch_connection *connection, uint8_t successful)
{
	(void)event;
	if (successful)
		at_server = connection;
}

static void disconnected(struct doca_comch_event_connection_status_changed *event,
			 struct doca_comch_connection *connection, uint8_t successful)
{
	(void)event, (void)connection, (void)successful;
	at_server = NULL;
}

/* Connect until both ends have the connection: the server can lose it at first. */
static void open_connection(struct pair *p)
{
	struct doca_ctx *client;

	at_server = NULL;
	pair_create(p, (struct pair_skips){.connections = true});
	MUST(doca_comch_server_event_connection_status_changed_register(p->server, connected,
									disconnected));
	MUST(doca_ctx_start(doca_comch_server_as_ctx(p->server)));
	client = doca_comch_client_as_ctx(p->client);
	while (!at_server || !runs(client)) {
		if (state_of(client) == DOCA_CTX_STATE_IDLE)
			MUST(doca_ctx_start(client));
		(void)doca_pe_progress(p->pe);
	}
	p->at_server = at_server;
	MUST(doca_comch_client_get_connection(p->client, &p->at_client));
}

/* -- tasks -- */

static void end_receive(struct doca_comch_consumer_task_post_recv *task)
{
	MUST(doca_buf_dec_refcount(doca_comch_consumer_task_post_recv_get_buf(task), NULL));
	doca_task_free(doca_comch_consumer_task_post_recv_as_task(task));
	if (!n_receives--)
		fail("more receives than were submitted", 0);
}

static void arrived(struct doca_comch_consumer_task_post_recv *task, union doca_data a,
		    union doca_data b)
{
	unsigned number = 0;

	(void)a, (void)b;
	memcpy(&number, doca_comch_consumer_task_post_recv_get_imm_data(task), sizeof(number));
	if (number != n_arrived)
		fail("message lost, doubled or out of order", number);
	n_arrived++;
	end_receive(task);
}

static void not_arrived(struct doca_comch_consumer_task_post_recv *task, union doca_data a,
			union doca_data b)
{
	(void)a, (void)b;
	end_receive(task);
}

static void end_send(struct doca_comch_producer_task_send *task)
{
	doca_task_free(doca_comch_producer_task_send_as_task(task));
	if (!n_sends--)
		fail("more sends than were submitted", 0);
}

static void delivered(struct doca_comch_producer_task_send *task, union doca_data a,
		      union doca_data b)
{
	(void)a, (void)b;
	n_delivered++;
	end_send(task);
}

static void not_delivered(struct doca_comch_producer_task_send *task, union doca_data a,
			  union doca_data b)
{
	(void)a, (void)b;
	end_send(task);
}

/* Submit the task. Frees it, and returns false, if it cannot be submitted now. */
static bool submit(struct doca_task *task)
{
	const doca_error_t error = doca_task_submit(task);

	if (error == DOCA_SUCCESS)
		return true;
	if (error != DOCA_ERROR_AGAIN && error != DOCA_ERROR_NOT_CONNECTED)
		MUST(error);
	doca_task_free(task);
	return false;
}

static void post(struct pair *p)
{
	struct doca_comch_consumer_task_post_recv *task;
	struct doca_buf *buf = pair_buf(p, n_posted % MAX_TASKS * 64, 64, 0);

	if (doca_comch_consumer_task_post_recv_alloc_init(p->consumer, buf, &task) ==
		    DOCA_SUCCESS &&
	    submit(doca_comch_consumer_task_post_recv_as_task(task))) {
		n_posted++;
		n_receives++;
	} else {
		MUST(doca_buf_dec_refcount(buf, NULL));
	}
}

/* Returns false if the message could not be submitted. */
static bool send(struct pair *p, unsigned number)
{
	struct doca_comch_producer_task_send *task;

	if (doca_comch_producer_task_send_alloc_init(p->producer, NULL, (uint8_t *)&number,
						     sizeof(number), consumer_id,
						     &task) != DOCA_SUCCESS ||
	    !submit(doca_comch_producer_task_send_as_task(task)))
		return false;
	n_sends++;
	return true;
}

/* -- rounds -- */

static void open_path(struct pair *p)
{
	p->map = new_map(NULL, DOCA_ACCESS_FLAG_PCI_READ_WRITE, false);
	MUST(doca_mmap_add_dev(p->map, p->dpu));
	MUST(doca_mmap_start(p->map));
	p->inventory = new_inventory(true);
	MUST(doca_comch_consumer_create(p->at_server, p->map, &p->consumer));
	MUST(doca_pe_connect_ctx(p->pe, doca_comch_consumer_as_ctx(p->consumer)));
	MUST(doca_comch_consumer_task_post_recv_set_conf(p->consumer, arrived, not_arrived,
							 MAX_TASKS));
	MUST(doca_ctx_start(doca_comch_consumer_as_ctx(p->consumer)));
	MUST(doca_comch_producer_create(p->at_client, &p->producer));
	MUST(doca_pe_connect_ctx(p->pe, doca_comch_producer_as_ctx(p->producer)));
	MUST(doca_comch_producer_task_send_set_conf(p->producer, delivered, not_delivered,
						    MAX_TASKS));
	MUST(doca_ctx_start(doca_comch_producer_as_ctx(p->producer)));
}

static void finish(struct pair *p, struct doca_ctx *ctx)
{
	if (runs(ctx))
		MUST(doca_ctx_stop(ctx));
	wait_state(p->pe, ctx, DOCA_CTX_STATE_IDLE);
}

static void close_path(struct pair *p)
{
	finish(p, doca_comch_producer_as_ctx(p->producer));
	MUST(doca_comch_producer_destroy(p->producer));
	finish(p, doca_comch_consumer_as_ctx(p->consumer));
	MUST(doca_comch_consumer_destroy(p->consumer));
	if (n_sends || n_receives)
		fail("tasks are left after the path is idle", n_sends + n_receives);
	MUST(doca_buf_inventory_destroy(p->inventory));
	MUST(doca_mmap_destroy(p->map));
	finish(p, doca_comch_client_as_ctx(p->client));
	pair_close(p);
}

/* Send the messages. Returns false if consumer or producer stopped by themselves before the end. */
static bool pass_messages(struct pair *p)
{
	struct doca_ctx *consumer = doca_comch_consumer_as_ctx(p->consumer),
			*producer = doca_comch_producer_as_ctx(p->producer);
	unsigned next = 0;

	while (n_delivered < N_MESSAGES || n_arrived < N_MESSAGES) {
		if (runs(consumer) && n_receives < MAX_TASKS)
			post(p);
		while (n_consumers && next < N_MESSAGES && n_sends < MAX_TASKS && runs(producer) &&
		       send(p, next))
			next++;
		(void)doca_pe_progress(p->pe);
		if (!runs(producer) || (!runs(consumer) && n_consumers))
			return false;
	}
	return true;
}

void meet_path_trouble(void)
{
	struct pair p;
	unsigned i;

	for (i = 0; i < ROUNDS; i++) {
		n_arrived = n_delivered = 0;
		open_connection(&p);
		open_path(&p);
		n_stopped += !pass_messages(&p);
		close_path(&p);
	}
	fprintf(stderr, "path_stopped %u\n", n_stopped);
}
