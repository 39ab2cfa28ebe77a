/* SPDX-License-Identifier: BSD-3-Clause */
/* fast.h - consumers and producers: what their files share. */
#ifndef GD_COMCH_FAST_H
#define GD_COMCH_FAST_H

#include <errno.h>

#include <gantry/shm.h>

#include "base/container_of.h"
#include "comch/comch.h"
#include "common/log.h"
#include "engine/pe.h"

#define GD_FAST_BATCH 16
#define GD_FAST_TASKS 16384u /* of one consumer or producer */
#define GD_FAST_POSTS 4096u  /* of them that the transport is told of; a power of two */
#define GD_FAST_QUEUES 128u  /* consumers, or producers, that are worth making */
#define GD_FAST_HOLDS 8u     /* maps that a producer has at hand */

struct doca_comch_consumer_task_post_recv {
	struct doca_task task;
	struct doca_buf *buf;
	struct gantry_recv recv; /* where data goes, once posted, and how much of it */
	uint32_t producer, imm_len;
	uint8_t imm[GD_COMCH_IMM];
};

struct doca_comch_consumer {
	struct doca_ctx ctx;
	struct doca_comch_connection *conn;
	struct gd_active active;
	const struct gantry_transport_ops *ops;
	/* of the transport; while the consumer runs and a message can arrive */
	void *queue;
	struct doca_mmap *mmap; /* of all its buffers */
	struct gd_pool posts;
	struct doca_task *first, **last; /* posted, in order */
	/* the first of them that found the transport's queue full */
	struct doca_task *beyond;
	uint32_t id, imm_max, row, depth;
	uint32_t n_posted, n_used;
	/* messages that the next poll asks for: a look for a second takes time as well */
	uint32_t batch;
	uint64_t *rooms; /* its row of lengths, in turns */
	/* on the same engine: it sent when the last message had come */
	struct doca_comch_producer *answers;
	struct gd_event started;
	/* of a MsgQ: it has no connection; below, the lock of the DPA */
	struct doca_comch_msgq *msgq;
	struct doca_comch_consumer *next;
	bool is_running, is_notified;
	/* on the CPU: messages that its engine has yet to hear of */
	struct doca_task *arrived, **arrived_last;
	struct gd_event arrival;
	struct doca_comch_consumer_completion *completion; /* on the DPA */
	uint32_t completion_data, max_recv, credit;
};

/*
 * What is immediate data for the transport: a word about it, the immediate data of the program in
 * whole words, and behind that little data, or the last bytes of more, since there they cost
 * nothing. Producers here send all of it there, or none.
 */
#define GD_FAST_BYTES (GANTRY_IMM_MAX - 8)
struct gd_fast_imm {
	uint64_t head;
	uint8_t bytes[GD_FAST_BYTES];
};

_Static_assert(sizeof(struct gd_fast_imm) == GANTRY_IMM_MAX,
	       "as much as a message of the transport takes");

static inline uint64_t gd_fast_head(uint32_t producer, uint32_t imm_len, uint32_t tail_len)
{
	return (uint16_t)producer | (uint64_t)(uint8_t)imm_len << 16 | (uint64_t)tail_len << 24;
}

/* Where data begins behind that much immediate data. */
static inline uint32_t gd_fast_tail(uint32_t imm_len)
{
	return (imm_len + 7) & ~7u;
}

/*
 * What goes with the immediate data: mostly all that there is room for, which is copied without a
 * loop.
 */
static inline void gd_fast_copy(void *to, const void *from, uint32_t bytes)
{
	if (doca_likely(bytes == GD_FAST_BYTES))
		gantry_copy_fresh(to, from, GD_FAST_BYTES);
	else
		gantry_copy_fresh(to, from, bytes);
}

struct doca_comch_producer_task_send {
	struct doca_task task;
	const struct doca_buf *buf;
	uint32_t consumer, imm_len;
	struct gd_hold *hold; /* while its data is being read */
	uint8_t imm[GD_COMCH_IMM];
};

/* A map that is shared on the connection, held by a producer. */
struct gd_hold {
	struct doca_mmap *mmap; /* compared, with its id, never followed */
	struct gd_mmap_id id;
	struct gd_shared *shared; /* NULL: free */
	uint32_t n_inflight;
};

/* The queue of the transport towards one consumer of the peer. */
struct gd_target {
	struct gd_target *next;
	struct gd_remote *remote;
	uint32_t id, imm_max;
	uint64_t n_sent;
	const uint64_t *rooms; /* the row of its consumer, or NULL */
	void *queue;
	struct doca_task *first, **last; /* in flight: the peer has yet to read their data */
};

struct doca_comch_producer {
	struct doca_ctx ctx;
	struct doca_comch_connection *conn;
	struct gd_active active;
	const struct gantry_transport_ops *ops;
	struct gd_pool sends;
	uint32_t id, max_inline, n_inflight;
	uint32_t max_copied;      /* bytes that the transport can take into its queue */
	struct gd_target *target; /* the one used last comes first */
	struct gd_hold holds[GD_FAST_HOLDS];
	uint32_t next_hold, n_held;
	/* what goes next; where its immediate data leaves room, that of an earlier message stays */
	struct gantry_send send;
	struct gd_fast_imm imm;
	/* of a MsgQ: it has no connection */
	struct doca_comch_msgq *msgq;
	struct doca_dpa_completion *completion; /* on the DPA */
	uint32_t max_send;
	bool is_running;
};

static inline struct doca_comch_consumer *gd_consumer_of(const struct doca_ctx *ctx)
{
	return gn_container_of(ctx, struct doca_comch_consumer, ctx);
}

static inline struct doca_comch_producer *gd_producer_of(const struct doca_ctx *ctx)
{
	return gn_container_of(ctx, struct doca_comch_producer, ctx);
}

static inline struct doca_comch_consumer_task_post_recv *gd_recv_of(const struct doca_task *task)
{
	return gn_container_of(task, struct doca_comch_consumer_task_post_recv, task);
}

static inline struct doca_comch_producer_task_send *gd_send_of(const struct doca_task *task)
{
	return gn_container_of(task, struct doca_comch_producer_task_send, task);
}

/* It is about to stop: no consumer of its engine expects it to answer any more. */
void gd_consumers_forget(const struct doca_comch_producer *p);

/*
 * shared.c. A hold of this map, shared on the connection. AGAIN: all are in use; else it cannot be
 * shared.
 */
doca_error_t gd_hold_map(struct doca_comch_producer *p, struct doca_mmap *mmap,
			 struct gd_hold **hold_p);
/* Another producer of the connection waits for a map that nothing is in flight from. */
void gd_hold_make_room(struct doca_comch_producer *p);
/* Lock. Let go of those that nothing is in flight from. */
void gd_hold_let_go(struct doca_comch_producer *p);

/* Those of a MsgQ end as those of a connection do, but for this. */
void gd_msgq_release_consumer(struct doca_comch_consumer *consumer);
void gd_msgq_release_producer(struct doca_comch_producer *producer);
/* Depth of a queue for n tasks: as far as the transport goes. */
uint32_t gd_fast_depth(const struct gd_transport *transport, uint32_t n);
/* Any thread: the peer has ended. Messages that it sent before may still arrive. */
static inline bool gd_fast_is_lost(const struct doca_comch_connection *conn)
{
	return __atomic_load_n(&conn->lost, __ATOMIC_SEQ_CST);
}

#endif
