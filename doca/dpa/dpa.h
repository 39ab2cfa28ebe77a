/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dpa.h - an emulated DPA and the message queues to and from it.
 *
 *   dpa --- thread*                  of this process; waits for activations
 *    |----- completion*              ends of sends of DPA producers
 *    \----- msgq* --- consumer*      one side of it on the DPA, the other a context on an engine
 *                \--- producer*
 *
 * One lock of the DPA guards all of that. Handles of code on the DPA are addresses of these
 * objects.
 */
#ifndef GD_DPA_H
#define GD_DPA_H

#include <doca_comch_msgq.h>
#include <doca_dpa.h>
#include <doca_dpa_dev.h>
#include <doca_dpa_dev_comch_msgq.h>

#include <pthread.h>
#include <setjmp.h>

#include "comch/fast.h"

struct doca_dpa {
	struct doca_dev *dev;
	pthread_mutex_t lock;
	pthread_cond_t changed; /* a receive was posted, a consumer left, or a thread is to end */
	bool started;
	uint32_t refs; /* threads, completions and queues */
};

struct doca_dpa_thread {
	struct doca_dpa *dpa;
	doca_dpa_func_t *func;
	uint64_t arg;
	pthread_t thread;
	pthread_cond_t wake;
	jmp_buf end; /* of the activation */
	bool started, is_due, quit, finished;
	uint32_t refs; /* completions that activate it */
};

/*
 * What has happened, for code on a DPA to find: a ring that one side puts into, and that code looks
 * at and then acknowledges; and the thread that may be activated then. First member of both kinds
 * of completions, so that handles are its address.
 */
struct gd_done {
	/* whose lock guards it: of its thread, or of its first consumer. NULL: neither yet */
	struct doca_dpa *dpa;
	struct doca_dpa_thread *thread; /* or NULL */
	bool armed;                     /* it is to be activated */
	bool started;
	uint32_t size, put, seen, acked; /* counts that wrap */
	uint32_t refs;                   /* producers or consumers */
};

struct doca_dpa_completion {
	struct gd_done done;
	uint32_t *user_data; /* of the producers, one each */
};

/* A message that came to a DPA consumer. */
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
	bool dpa_consumer; /* else the producers are on the DPA */
	bool has_direction, started;
	uint32_t max_consumers, max_producers, n_consumers, n_producers, next_consumer,
		next_producer;
	struct doca_comch_consumer *consumers; /* that run */
};

/* Not started: SUCCESS. INVALID_VALUE: NULL, or what is to be set is not valid; BAD_STATE. */
doca_error_t gd_done_may_set(const struct gd_done *done, bool valid);
/* INVALID_VALUE (NULL, another DPA), BAD_STATE. */
doca_error_t gd_done_set_thread(struct gd_done *done, struct doca_dpa_thread *thread);
/* Empty, with room for so many. */
void gd_done_start(struct gd_done *done, uint32_t size);
/* INVALID_VALUE (NULL), BAD_STATE, IN_USE. */
doca_error_t gd_done_stop(struct gd_done *done);
/* The thread is let go. INVALID_VALUE (NULL), IN_USE. */
doca_error_t gd_done_fini(struct gd_done *done);
/* Of what is started. INVALID_VALUE (NULL), BAD_STATE. */
doca_error_t gd_done_handle(const struct gd_done *done, uint64_t *handle);

/* Lock held. */
bool gd_done_is_full(const struct gd_done *done);
uint32_t gd_done_place(const struct gd_done *done); /* of what comes next */
void gd_done_put(struct gd_done *done);             /* it is there; activates the thread */

/* Code on the DPA. Handle 0: nothing. */
/* the next that was not looked at; false: none */
bool gd_done_next(uint64_t handle, uint32_t *place);
void gd_done_ack(uint64_t handle, uint64_t n); /* so many of those need no room any more */
void gd_done_arm(uint64_t handle);             /* activate the thread at the next one */

/* Does the calling thread of a DPA have to end? */
bool gd_dpa_must_quit(void);

extern const struct gd_ctx_ops gd_msgq_cpu_consumer, gd_msgq_cpu_producer, gd_msgq_dpa_consumer,
	gd_msgq_dpa_producer;
extern const struct gd_task_ops gd_msgq_recv, gd_msgq_send;

/* Lock held: the running consumer of that id; NULL. */
struct doca_comch_consumer *gd_msgq_find(struct doca_comch_msgq *msgq, uint32_t id);
/* Lock held. From a DPA producer to a consumer on the CPU, which has a receive posted. */
void gd_msgq_deliver(struct doca_comch_consumer *c, uint32_t producer, const uint8_t *imm,
		     uint32_t imm_len);

#endif
