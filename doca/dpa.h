/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dpa.h - an emulated DPA and the message queues to and from it.
 *
 *   dpa --- thread*                  of this process; waits for activations
 *    |----- completion*              ends of sends of DPA producers
 *    \----- msgq* --- consumer*      one side of it on the DPA, the other a context on an engine
 *                \--- producer*
 *
 * One lock of the DPA guards all of that. Handles of code on the DPA are addresses of these objects.
 */
#ifndef GD_DPA_H
#define GD_DPA_H

#include <doca_comch_msgq.h>
#include <doca_dpa.h>
#include <doca_dpa_dev.h>
#include <doca_dpa_dev_comch_msgq.h>

#include <pthread.h>
#include <setjmp.h>

#include "comch_fast.h"

struct doca_dpa {
	struct doca_dev *dev;
	pthread_mutex_t lock;
	pthread_cond_t changed; /* room in a queue, or a thread is to end */
	bool started;
	uint32_t refs;          /* threads, completions and queues */
};

struct doca_dpa_thread {
	struct doca_dpa *dpa;
	doca_dpa_func_t *func;
	uint64_t arg;
	pthread_t thread;
	pthread_cond_t wake;
	jmp_buf end;            /* of the activation */
	bool started, is_due, quit, finished;
	uint32_t refs;          /* completions that activate it */
};

/* What a completion has in common with one of a consumer: a thread that it may be asked to activate. */
struct gd_bell {
	struct doca_dpa_thread *thread;
	bool armed;
};

/* A ring of what happened: put by one side, looked at and then acknowledged by code on the DPA. Counts that wrap. */
struct gd_done_ring {
	uint32_t size, put, seen, acked;
};

struct doca_dpa_completion {
	struct doca_dpa *dpa;
	struct gd_bell bell;
	struct gd_done_ring ring;
	uint32_t *user_data;    /* of the producers, one each */
	bool started;
	uint32_t refs;          /* producers */
};

/* A message that came to a DPA consumer. */
struct gd_dpa_msg {
	uint8_t imm[GD_COMCH_IMM];
	uint32_t imm_len, producer, user_data;
};

struct doca_comch_consumer_completion {
	struct doca_dpa *dpa;   /* of its thread, or of its first consumer */
	struct gd_bell bell;
	struct gd_done_ring ring;
	struct gd_dpa_msg *msgs;
	uint32_t max_consumers, max_recv, imm_len;
	bool started;
	uint32_t refs;          /* consumers */
};

struct doca_comch_msgq {
	struct doca_dev *dev;
	struct doca_dpa *dpa;
	bool dpa_consumer;      /* else the producers are on the DPA */
	bool has_direction, started;
	uint32_t max_consumers, max_producers, n_consumers, n_producers, next_consumer, next_producer;
	struct doca_comch_consumer *consumers; /* that run */
};

/* Lock held. */
bool gd_ring_is_full(const struct gd_done_ring *ring);
/* The place of the next one, and the bell rings. */
uint32_t gd_ring_put(struct gd_done_ring *ring, struct gd_bell *bell);
/* The next that was not seen; false: none. */
bool gd_ring_see(struct gd_done_ring *ring, uint32_t *place);
void gd_ring_ack(struct gd_done_ring *ring, uint32_t n);
void gd_bell_arm(const struct gd_done_ring *ring, struct gd_bell *bell);
/* Does the calling thread of a DPA have to end? */
bool gd_dpa_must_quit(void);

extern const struct gd_ctx_ops gd_msgq_cpu_consumer, gd_msgq_cpu_producer, gd_msgq_dpa_consumer, gd_msgq_dpa_producer;
extern const struct gd_task_ops gd_msgq_recv, gd_msgq_send;

/* Lock held: the running consumer of that id; NULL. */
struct doca_comch_consumer *gd_msgq_find(struct doca_comch_msgq *msgq, uint32_t id);
/* Lock held. From a DPA producer to a consumer on the CPU, which has a receive posted. */
void gd_msgq_deliver(struct doca_comch_consumer *c, uint32_t producer, const uint8_t *imm, uint32_t imm_len);

#endif
