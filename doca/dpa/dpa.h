/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dpa.h - the emulated DPA, and message queues between the CPU and the DPA
 *
 *   dpa --- thread*                  a thread of this process; waits for activations
 *    |----- completion*              queue of completed sends of DPA producers
 *    \----- msgq* --- consumer*      one end is on the DPA, the other a context on an engine
 *                \--- producer*
 *
 * One lock of the DPA guards all of these objects. The handle of an object for code on the DPA is
 * its address.
 */
#ifndef GD_DPA_H
#define GD_DPA_H

#include <doca_comch_msgq.h>
#include <doca_dpa.h>
#include <doca_dpa_dev.h>
#include <doca_dpa_dev_comch_msgq.h>

#include <pthread.h>
#include <setjmp.h>

#include "comch/comch_fast.h"

struct doca_dpa {
	struct doca_dev *dev;
	pthread_mutex_t lock;
	/* signalled when a receive was posted, a consumer stopped, or a thread must end */
	pthread_cond_t changed;
	bool started;
	uint32_t refs; /* threads, completion queues and message queues */
};

struct doca_dpa_thread {
	struct doca_dpa *dpa;
	doca_dpa_func_t *func;
	uint64_t arg;
	pthread_t thread;
	pthread_cond_t wake;
	jmp_buf end; /* target of the jump that ends the activation */
	bool started, is_due, quit, finished;
	uint32_t refs; /* completion queues that activate the thread */
};

/*
 * A completion queue: a ring that the CPU or another DPA thread fills, that code on the DPA reads
 * and acknowledges, and the thread to activate. It is the first member of both types of completion
 * queues, so its address is the handle.
 */
struct gd_done {
	/* DPA whose lock guards the queue: that of its thread or first consumer. NULL: not set */
	struct doca_dpa *dpa;
	struct doca_dpa_thread *thread; /* thread to activate, or NULL */
	bool armed;                     /* the next entry activates the thread */
	bool started;
	uint32_t size, put, seen, acked; /* counters, which wrap */
	uint32_t refs;                   /* producers or consumers that use it */
};

/* A completed send. */
struct gd_dpa_sent {
	uint32_t user_data; /* of the producer */
	/* its producer, until code on the DPA takes the completion or the producer stops */
	struct doca_comch_producer *producer;
};

struct doca_dpa_completion {
	struct gd_done done;
	struct gd_dpa_sent *sent; /* ring */
};

/* A message for a consumer on the DPA. */
struct gd_dpa_msg {
	uint8_t imm[GD_COMCH_IMM];
	uint32_t imm_len, producer, user_data;
};

struct doca_comch_consumer_completion {
	struct gd_done done;
	struct gd_dpa_msg *msgs;
	uint32_t max_consumers, max_recv, imm_len;
};

struct doca_comch_msgq {
	struct doca_dev *dev;
	struct doca_dpa *dpa;
	bool dpa_consumer; /* false: the producers are on the DPA */
	bool has_direction, started;
	uint32_t max_consumers, max_producers, n_consumers, n_producers, next_consumer,
		next_producer;
	struct doca_comch_consumer *consumers; /* running consumers */
};

/*
 * Returns SUCCESS if the queue is not started. INVALID_VALUE: NULL, or `valid` is false; BAD_STATE:
 * started.
 */
doca_error_t gd_done_may_set(const struct gd_done *done, bool valid);
/*
 * Set the thread to activate. INVALID_VALUE: NULL, or a thread of another DPA; BAD_STATE: started.
 */
doca_error_t gd_done_set_thread(struct gd_done *done, struct doca_dpa_thread *thread);
/* Start the queue, empty, with `size` entries. */
void gd_done_start(struct gd_done *done, uint32_t size);
/* Stop the queue. INVALID_VALUE: NULL; BAD_STATE: not started; IN_USE: users exist. */
doca_error_t gd_done_stop(struct gd_done *done);
/* Release the thread. INVALID_VALUE: NULL; IN_USE: users exist. */
doca_error_t gd_done_fini(struct gd_done *done);
/* Get the handle of a started queue. INVALID_VALUE: NULL; BAD_STATE: not started. */
doca_error_t gd_done_handle(const struct gd_done *done, uint64_t *handle);

/* Lock held. */
bool gd_done_is_full(const struct gd_done *done);
uint32_t gd_done_place(const struct gd_done *done); /* index of the next entry */
void gd_done_put(struct gd_done *done); /* publish the next entry; activate the thread */

/* For code on the DPA. Handle 0 has no effect. */
/* get the next entry; false: none */
bool gd_done_next(uint64_t handle, uint32_t *place);
void gd_done_ack(uint64_t handle, uint64_t n); /* acknowledge n entries */
void gd_done_arm(uint64_t handle);             /* activate the thread at the next entry */

/* Returns whether the calling DPA thread must end. */
bool gd_dpa_must_quit(void);

extern const struct gd_ctx_ops gd_msgq_cpu_consumer, gd_msgq_cpu_producer, gd_msgq_dpa_consumer,
	gd_msgq_dpa_producer;
extern const struct gd_task_ops gd_msgq_recv, gd_msgq_send;

/* Lock held. Returns the running consumer with that id, or NULL. */
struct doca_comch_consumer *gd_msgq_find(struct doca_comch_msgq *msgq, uint32_t id);
/*
 * Lock held. Deliver a message of a DPA producer to a consumer on the CPU, which has a receive
 * posted.
 */
void gd_msgq_deliver(struct doca_comch_consumer *c, uint32_t producer, const uint8_t *imm,
		     uint32_t imm_len);

#endif
