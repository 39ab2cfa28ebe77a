/* SPDX-License-Identifier: BSD-3-Clause */
/* comch_fast.h - consumers and producers: structures and helpers that their files share */
#ifndef GD_COMCH_FAST_H
#define GD_COMCH_FAST_H

#include <errno.h>

#include <gantry/shm.h>

#include "base/container_of.h"
#include "comch/comch.h"
#include "common/gd_log.h"
#include "engine/pe.h"

#define GD_FAST_BATCH 16
#define GD_FAST_TASKS 16384u /* maximum number of tasks of one consumer or producer */
#define GD_FAST_POSTS 4096u  /* maximum number of tasks in a transport queue; a power of two */
#define GD_FAST_QUEUES 128u  /* reported maximum of consumers and of producers */
#define GD_FAST_HOLDS 8u     /* maximum number of maps that a producer holds */

struct doca_comch_consumer_task_post_recv {
	struct doca_task task;
	struct doca_buf *buf;
	struct gantry_recv recv; /* destination and its length, once posted */
	uint32_t producer, imm_len;
	uint8_t imm[GD_COMCH_IMM];
};

struct doca_comch_consumer {
	struct doca_ctx ctx;
	struct doca_comch_connection *conn;
	struct gd_active active;
	const struct gantry_transport_ops *ops;
	/* queue of the transport; NULL: no message can arrive */
	void *queue;
	struct doca_mmap *mmap; /* map of all buffers */
	struct gd_pool posts;
	struct doca_task *first, **last; /* posted tasks, in order */
	/* first task that waits because the queue of the transport is full */
	struct doca_task *beyond;
	uint32_t id, imm_max, row, depth;
	uint32_t n_posted, n_used;
	/*
	 * maximum number of messages of the next poll: 1 until messages come in pairs, since a
	 * second check costs time
	 */
	uint32_t batch;
	uint64_t *credits; /* ring of the lengths of the receives that this consumer has posted */
	/* producer of the same engine that sent a message after the last received one */
	struct doca_comch_producer *answers;
	struct gd_event started;
	/*
	 * only for a consumer of a MsgQ, which has no connection. The lock of the DPA guards the
	 * fields below
	 */
	struct doca_comch_msgq *msgq;
	struct doca_comch_consumer *next;
	bool is_running, is_notified;
	/* consumer on the CPU: messages that the engine has not delivered */
	struct doca_task *arrived, **arrived_last;
	struct gd_event arrival;
	/* consumer on the DPA */
	struct doca_comch_consumer_completion *completion;
	uint32_t completion_data, max_recv, credit;
};

/*
 * Immediate data of the transport: a head, the immediate data of the program padded to whole words,
 * then data of the buffer. A producer puts all data of the buffer there if it fits, or none. A
 * consumer also accepts the last bytes of longer data.
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

/* Offset of the buffer data behind imm_len bytes of immediate data. */
static inline uint32_t gd_fast_tail(uint32_t imm_len)
{
	return (imm_len + 7) & ~7u;
}

/*
 * Copy buffer data to or from the immediate data. The usual length is the maximum, for which the
 * compiler emits a copy without a loop.
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
	struct gd_hold *hold; /* on the map of `buf`, while the peer reads the data; else NULL */
	uint8_t imm[GD_COMCH_IMM];
};

/* A hold of a producer on a map that is exported on the connection. */
struct gd_hold {
	struct doca_mmap *mmap; /* compared together with its id, never dereferenced */
	struct gd_mmap_id id;
	struct gd_shared *shared; /* NULL: free */
	uint32_t n_inflight;
};

/* The queue of the transport to one consumer of the peer. */
struct gd_target {
	struct gd_target *next;
	struct gd_remote *remote;
	uint32_t id, imm_max;
	uint64_t n_sent;
	const uint64_t *credits; /* row of posted lengths of the consumer, or NULL */
	void *queue;
	struct doca_task *first, **last; /* tasks in flight: the peer has not yet read their data */
};

struct doca_comch_producer {
	struct doca_ctx ctx;
	struct doca_comch_connection *conn;
	struct gd_active active;
	const struct gantry_transport_ops *ops;
	struct gd_pool sends;
	uint32_t id, max_inline, n_inflight;
	uint32_t max_copied;      /* maximum bytes that the transport can copy into its queue */
	struct gd_target *target; /* list, the most recently used target first */
	struct gd_hold holds[GD_FAST_HOLDS];
	uint32_t next_hold, n_held;
	/*
	 * the next message. `imm` is not cleared: behind the data of the message, it has bytes of
	 * an earlier message to the same peer, which the consumer ignores
	 */
	struct gantry_send send;
	struct gd_fast_imm imm;
	/* only for a producer of a MsgQ, which has no connection */
	struct doca_comch_msgq *msgq;
	struct doca_dpa_completion *completion; /* producer on the DPA */
	/* its limit; sends whose requested completion the code has not taken, see msgq_dpa.c */
	uint32_t max_send, n_open;
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

/* The producer is about to stop: clear `answers` of all consumers of its engine. */
void gd_consumers_forget(const struct doca_comch_producer *p);

/*
 * comch_exports.c. Get a hold on a map, which is exported on the connection. AGAIN: all holds or
 * slots are in use. Other errors: the map cannot be exported.
 */
doca_error_t gd_hold_map(struct doca_comch_producer *p, struct doca_mmap *mmap,
			 struct gd_hold **hold_p);
/* Release the idle holds, because another producer of the connection needs a slot. */
void gd_hold_free_slots(struct doca_comch_producer *p);
/* Lock held. Release all holds that no task in flight uses. */
void gd_hold_release_idle(struct doca_comch_producer *p);

/* Additional steps when a consumer or producer of a MsgQ is destroyed. */
void gd_msgq_release_consumer(struct doca_comch_consumer *consumer);
void gd_msgq_release_producer(struct doca_comch_producer *producer);
/* Returns the depth of a queue for n tasks, limited by the transport. */
uint32_t gd_fast_depth(const struct gd_transport *transport, uint32_t n);
/* Any thread. Returns whether the peer has ended. Its earlier messages can still arrive. */
static inline bool gd_fast_is_lost(const struct doca_comch_connection *conn)
{
	return __atomic_load_n(&conn->lost, __ATOMIC_ACQUIRE);
}

#endif
