/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comch_fast_rig.h - a consumer and a producer on the connection of a side, with memory for both.
 */
#ifndef COMCH_FAST_RIG_H
#define COMCH_FAST_RIG_H

#include "comch_rig.h"

#define FAST_TASKS 64u

struct fast {
	struct side *side;
	char *mem;
	size_t bytes;
	struct doca_mmap *mmap;
	struct doca_buf_inventory *inventory;
	struct doca_pe *pe; /* engine of both */
	struct doca_comch_consumer *consumer;
	struct doca_comch_producer *producer;
	uint32_t to; /* consumer of the peer; initially the one that was reported to the side */
	unsigned int n_received, n_flushed, n_sent, n_failed;
	doca_error_t recv_status, send_status; /* of the last task that failed */
	size_t length;                         /* of the last received message */
	char *data;
	uint8_t imm[64];
	uint32_t imm_len, from;
	bool not_ours; /* the rig does not own `mem` */
	bool keep;     /* do not free buffers and tasks; post the receive again */
	bool hold;     /* do not free completed tasks: store them in `kept` */
	struct doca_task *kept;
	void (*on_received)(struct fast *f);
	char consumer_journal[64], producer_journal[64];
};

/* Create `bytes` of memory, a map that peers can write, an inventory, and an engine. */
void fast_open(struct fast *f, struct side *side, size_t bytes);
/*
 * Connect the sides of a test that has forked them, and call fast_open() with 1 MiB. The client
 * waits for the server.
 */
void fast_open_server(struct fast *f, struct side *side);
void fast_open_client(struct fast *f, struct side *side);
/* Like fast_open(), with memory of the caller. */
void fast_open_at(struct fast *f, struct side *side, void *mem, size_t bytes);
void fast_add_consumer(struct fast *f, uint32_t n_tasks); /* not started */
void fast_add_producer(struct fast *f, uint32_t n_tasks);
/* Start the consumer and wait until it runs; progresses only its engine. */
void fast_start_consumer(struct fast *f);
void fast_start(struct fast *f); /* both; creates missing ones */
void fast_post(struct fast *f, size_t offset, size_t length);
/* Send; length 0: only immediate data. Returns the result of the submit. */
doca_error_t fast_try_send(struct fast *f, size_t offset, size_t length, const void *imm,
			   uint32_t imm_len);
/* Send, and repeat while the result is AGAIN, without any progress. */
void fast_send(struct fast *f, size_t offset, size_t length, const void *imm, uint32_t imm_len);
struct doca_buf *fast_buf(struct fast *f, size_t offset, size_t length, size_t data_len);
void fast_stop(struct fast *f); /* stops and destroys both */
void fast_close(struct fast *f);

/* Open both sides in one process, each with an engine, so that the test chooses each step. */
void fast_open_both(struct fast *f, struct side *client, struct fast *peer, struct side *server,
		    size_t bytes);
void fast_close_both(struct fast *f, struct fast *peer);

#endif
