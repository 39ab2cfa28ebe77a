/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib_priv.h - private declarations of libgantry
 *
 *      volume.c    open and close                      any thread
 *      control.c   control thread of a volume          control thread
 *      queue.c     queues                              thread of the caller
 *      submit.c    check and submit IOs                thread of the caller
 *      error.c     gantry_error(), fork detection      any thread
 *      uri.c       parser of URIs                      control thread
 */
#ifndef GC_LIB_PRIV_H
#define GC_LIB_PRIV_H

#include <pthread.h>

#include <gantry/client.h>

#include "base/event_loop.h"
#include <gantry/engine.h>
#include "topology/topology.h"
#include "uri.h"

#define GC_TEXT 1024 /* bytes of a message */

/*
 * States of a volume:
 *
 *      LOADING --(session started)--> OPEN --(session ended)--> LOST
 *         `---------------------------------------------------> ENDED  (open failed, or closed)
 */
enum gc_state { GC_LOADING, GC_OPEN, GC_LOST, GC_ENDED };

struct gantry_volume {
	struct gantry_volume_attr attr; /* no field is 0, except buffer_bytes */
	unsigned forks;                 /* gc_forks() at the time of the open */

	char *uri, *file, *role; /* the volume to open: `uri`; if that is NULL, `role` of `file` */
	/* the URI or the file, for messages; truncated if it is longer */
	char name[GC_URI_SHOWN + 1];

	pthread_t thread;
	pthread_mutex_t lock; /* protects the fields up to `buffers_released` */
	pthread_cond_t changed;
	enum gc_state state;
	int rc;                       /* -errno: the reason why the volume is not OPEN */
	char text[GC_TEXT];           /* text of that reason */
	struct gantry_queue **queues; /* attr.queues entries; NULL: the queue is not open */
	/* the session has ended, and no peer can access `buffers` any more */
	int buffers_released;

	/* -- control thread only -- */
	struct gn_loop *loop;
	struct gn_topology_args args;
	struct gn_topo_embedded_role own;
	struct gn_topology topology;
	struct gc_uri parsed;
	struct gn_worker **workers; /* attr.queues entries */
	const struct gantry_role_host *rh;
	struct gantry_engine *session;
	struct gn_timer turns;          /* polls the workers while the volume closes */
	struct gn_timer withdraw_again; /* calls volume->rh->engine->withdraw() again */
	/* __atomic: the control thread writes it when the session resumes, any thread reads it */
	uint64_t verifier;
	/* ending: the volume is closing. session_closed: the event `closed` was received */
	int ending, session_closed;

	/* -- constant once the volume is OPEN -- */
	/* the verifier in it is not used: see `verifier`; `size` is accessed with atomics */
	struct gantry_volume_info info;
	uint32_t copy_bytes;
	uint8_t *buffers;
	uint64_t buffers_offset; /* offset of `buffers` in the region */
};

struct gc_request {
	gantry_done_fn *done;
	void *arg;
	void *copy_to; /* destination of a read into a buffer outside the region; else NULL */
};

struct gantry_queue {
	struct gantry_volume *volume;
	struct gn_worker *worker;
	struct gantry_engine_queue *engine;
	struct gc_request *requests;  /* indexed by slot */
	struct gantry_pieces *pieces; /* indexed by slot; for stages of IOs with lists */
	/* completed slots; gc_queue_done() adds to them while a thread is inside the worker */
	uint16_t *done;
	uint32_t n_done;
	uint16_t *reporting; /* completed slots whose `done` functions are being called */
	uint32_t n_open;     /* accepted IOs whose `done` was not called yet */
	int in_callbacks, closing;
	uint32_t index;
};

/* -- error.c -- */
int gc_error(int rc, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Set the error as gc_error() does, with a text of static lifetime. */
int gc_error_static(int rc, const char *text);
/*
 * Returns 0, or -EINVAL with the error set: this process is a child of the process that opened the
 * volume.
 */
int gc_check_fork(const struct gantry_volume *volume);
/* Returns the number of forks between the first process that used libgantry and this process. */
unsigned gc_forks(void);

/* -- volume.c -- */
void gc_volume_name(struct gantry_volume *volume, const char *name);

/* -- control.c -- */
/* Main function of the control thread. arg: the volume. */
void *gc_control_run(void *arg);
/* Ask the control thread to end. Any thread. */
void gc_control_stop(struct gantry_volume *volume);
/* Ask the control thread not to resume the session. Any thread. */
void gc_control_give_up(struct gantry_volume *volume);

/* -- submit.c -- */
/* Set the error text of a rejected IO: the session is lost, or a stage rejected it. Returns rc. */
int gc_refused(struct gantry_queue *queue, int rc);

/* -- queue.c -- */
void gc_queue_done(void *engine, struct gantry_io *io);

#endif
