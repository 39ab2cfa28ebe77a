/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fast-path.h - common part of both sides of the pair fast-path: a consumer and a producer on the
 * connection, and one message in each direction without a copy
 *
 * Call exchange() when the connection is established, after the events of consumers of the peer
 * were registered. It ends when both messages have arrived, or when one of them cannot arrive.
 */
#ifndef FAST_PATH_H
#define FAST_PATH_H

#include "comch.h"

#include <doca_buf.h>
#include <doca_buf_inventory.h>
#include <doca_comch_consumer.h>
#include <doca_comch_producer.h>
#include <doca_mmap.h>

/* The peer can write whole pages of the map, so the map is a page that holds nothing else. */
static struct {
	_Alignas(4096) char received[2048];
	char text[2048];
} memory;

static uint32_t peer_consumer; /* id of the consumer of the peer; 0, which is never an id: none */
static bool is_sent, is_received, is_lost;

struct fast {
	struct doca_pe *pe;
	struct doca_ctx *connection; /* context of the server or client */
	struct doca_mmap *mmap;
	struct doca_buf_inventory *inventory;
	struct doca_comch_consumer *consumer;
	struct doca_comch_producer *producer;
	bool is_started; /* consumer and producer run, unless they fail */
};

/* -- events of the server or client -- */

/* The library requires this callback. The programs send no message on the control path. */
static void on_message(struct doca_comch_event_msg_recv *event, uint8_t *text, uint32_t len,
		       struct doca_comch_connection *connection)
{
	(void)event;
	(void)text;
	(void)len;
	(void)connection;
}

static void on_new_consumer(struct doca_comch_event_consumer *event,
			    struct doca_comch_connection *connection, uint32_t id)
{
	(void)event;
	(void)connection;
	peer_consumer = id;
}

static void on_expired_consumer(struct doca_comch_event_consumer *event,
				struct doca_comch_connection *connection, uint32_t id)
{
	(void)event;
	(void)connection;
	(void)id;
	peer_consumer = 0;
}

/* -- completions: the program owns the task again, and frees it with its buffer -- */

static void received(struct doca_comch_consumer_task_post_recv *task, union doca_data task_data,
		     union doca_data ctx_data)
{
	struct doca_task *base = doca_comch_consumer_task_post_recv_as_task(task);
	struct doca_buf *buf = doca_comch_consumer_task_post_recv_get_buf(task);
	size_t length = 0;
	void *data = NULL;

	(void)task_data;
	(void)ctx_data;
	if (doca_task_get_status(base) == DOCA_SUCCESS) {
		doca_buf_get_data(buf, &data);
		doca_buf_get_data_len(buf, &length);
		printf("received: %.*s\n", (int)length, (const char *)data);
		is_received = true;
	} else {
		is_lost = true; /* also when the consumer stops before a message has arrived */
	}
	doca_buf_dec_refcount(buf, NULL);
	doca_task_free(base);
}

static void sent(struct doca_comch_producer_task_send *task, union doca_data task_data,
		 union doca_data ctx_data)
{
	struct doca_task *base = doca_comch_producer_task_send_as_task(task);
	const struct doca_buf *buf = doca_comch_producer_task_send_get_buf(task);

	(void)task_data;
	(void)ctx_data;
	is_sent = !failed("send", doca_task_get_status(base));
	is_lost |= !is_sent;
	doca_buf_dec_refcount((struct doca_buf *)(uintptr_t)buf, NULL);
	doca_task_free(base);
}

/* -- the steps -- */

static bool map_memory(struct fast *fast, struct doca_dev *dev)
{
	return !failed("map", doca_mmap_create(&fast->mmap)) &&
	       !failed("map", doca_mmap_add_dev(fast->mmap, dev)) &&
	       !failed("map", doca_mmap_set_memrange(fast->mmap, &memory, sizeof(memory))) &&
	       !failed("map",
		       doca_mmap_set_permissions(fast->mmap, DOCA_ACCESS_FLAG_PCI_READ_WRITE)) &&
	       !failed("map", doca_mmap_start(fast->mmap)) &&
	       !failed("buffers", doca_buf_inventory_create(2, &fast->inventory)) &&
	       !failed("buffers", doca_buf_inventory_start(fast->inventory));
}

/* Both are created before the engine is progressed: after that the connection may have ended. */
static bool create_queues(struct fast *fast, struct doca_comch_connection *connection)
{
	return !failed("consumer",
		       doca_comch_consumer_create(connection, fast->mmap, &fast->consumer)) &&
	       !failed("engine",
		       doca_pe_connect_ctx(fast->pe, doca_comch_consumer_as_ctx(fast->consumer))) &&
	       !failed("receive tasks", doca_comch_consumer_task_post_recv_set_conf(
						fast->consumer, received, received, 1)) &&
	       !failed("producer", doca_comch_producer_create(connection, &fast->producer)) &&
	       !failed("engine",
		       doca_pe_connect_ctx(fast->pe, doca_comch_producer_as_ctx(fast->producer))) &&
	       !failed("send tasks",
		       doca_comch_producer_task_send_set_conf(fast->producer, sent, sent, 1));
}

/* The peer gets the event of the new consumer when it is running. */
static bool start_queues(struct fast *fast)
{
	struct doca_ctx *consumer = doca_comch_consumer_as_ctx(fast->consumer);
	const doca_error_t error = doca_ctx_start(consumer);

	if (error != DOCA_ERROR_IN_PROGRESS && failed("start the consumer", error))
		return false;
	fast->is_started = reaches(fast->pe, consumer, DOCA_CTX_STATE_RUNNING) &&
			   !failed("start the producer",
				   doca_ctx_start(doca_comch_producer_as_ctx(fast->producer)));
	return fast->is_started;
}

static bool runs(const struct doca_ctx *ctx)
{
	enum doca_ctx_states state;

	return doca_ctx_get_state(ctx, &state) == DOCA_SUCCESS && state == DOCA_CTX_STATE_RUNNING;
}

/* Progress once. Returns false if a message is lost, or the connection or a queue has ended. */
static bool goes_on(const struct fast *fast)
{
	if (!doca_pe_progress(fast->pe))
		nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
	return !is_lost && runs(fast->connection) &&
	       (!fast->is_started || (runs(doca_comch_consumer_as_ctx(fast->consumer)) &&
				      runs(doca_comch_producer_as_ctx(fast->producer))));
}

/*
 * Submit a task. AGAIN: its queue is full, or the peer has not posted its receive yet.
 * Frees the task and its buffer if it cannot be submitted.
 */
static bool submit(const struct fast *fast, struct doca_task *task, struct doca_buf *buf)
{
	doca_error_t error;

	do
		error = doca_task_submit(task);
	while (error == DOCA_ERROR_AGAIN && goes_on(fast));
	if (!failed("submit", error))
		return true;
	doca_task_free(task);
	doca_buf_dec_refcount(buf, NULL);
	return false;
}

/* Give the consumer the buffer for the message of the peer. NO_MEMORY: all tasks are in use. */
static bool post_receive(const struct fast *fast)
{
	struct doca_comch_consumer_task_post_recv *task;
	struct doca_buf *buf;
	doca_error_t error;

	if (failed("buffer",
		   doca_buf_inventory_buf_get_by_addr(fast->inventory, fast->mmap, memory.received,
						      sizeof(memory.received), &buf)))
		return false;
	do
		error = doca_comch_consumer_task_post_recv_alloc_init(fast->consumer, buf, &task);
	while (error == DOCA_ERROR_NO_MEMORY && goes_on(fast));
	if (!failed("receive", error))
		return submit(fast, doca_comch_consumer_task_post_recv_as_task(task), buf);
	doca_buf_dec_refcount(buf, NULL);
	return false;
}

/* Send to the consumer of the peer. */
static bool send_text(const struct fast *fast, const char *text)
{
	struct doca_comch_producer_task_send *task;
	struct doca_buf *buf;
	doca_error_t error;

	strcpy(memory.text, text);
	if (failed("buffer", doca_buf_inventory_buf_get_by_data(fast->inventory, fast->mmap,
								memory.text, strlen(text), &buf)))
		return false;
	do
		error = doca_comch_producer_task_send_alloc_init(fast->producer, buf, NULL, 0,
								 peer_consumer, &task);
	while (error == DOCA_ERROR_NO_MEMORY && goes_on(fast));
	if (!failed("send", error))
		return submit(fast, doca_comch_producer_task_send_as_task(task), buf);
	doca_buf_dec_refcount(buf, NULL);
	return false;
}

static void stop(struct fast *fast, struct doca_ctx *ctx)
{
	doca_ctx_stop(ctx); /* completes the receive, if there is one */
	reaches(fast->pe, ctx, DOCA_CTX_STATE_IDLE);
}

/* The server or client cannot disconnect before its consumers and producers are idle. */
static void close_fast(struct fast *fast)
{
	if (fast->producer) {
		stop(fast, doca_comch_producer_as_ctx(fast->producer));
		doca_comch_producer_destroy(fast->producer);
	}
	if (fast->consumer) {
		stop(fast, doca_comch_consumer_as_ctx(fast->consumer));
		doca_comch_consumer_destroy(fast->consumer);
	}
	if (fast->inventory)
		doca_buf_inventory_destroy(fast->inventory);
	if (fast->mmap)
		doca_mmap_destroy(fast->mmap);
}

/* Send the text to the peer, and print the text of the peer. Returns true if both succeeded. */
static bool exchange(struct doca_pe *pe, struct doca_dev *dev, struct doca_ctx *ctx,
		     struct doca_comch_connection *connection, const char *text)
{
	struct fast fast = {.pe = pe, .connection = ctx};
	bool good = map_memory(&fast, dev) && create_queues(&fast, connection) &&
		    start_queues(&fast) && post_receive(&fast);

	while (good && !peer_consumer)
		good = goes_on(&fast);
	good = good && send_text(&fast, text);
	while (good && !(is_sent && is_received))
		good = goes_on(&fast);
	close_fast(&fast);
	return good;
}

#endif
