/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib_priv.h - private declarations of libgantry
 *
 *      volume.c    open and close                      any thread
 *      control.c   control thread of a volume          control thread
 *      queue.c     queues                              thread of the caller
 *      submit.c    check and submit IOs                thread of the caller
 *      program_memory.c  exported memory            any thread, control thread
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

#define GC_TEXT 1024        /* bytes of a message */
#define GC_MEMORIES_MAX 64u /* bits of gc_request.memories */

/*
 * States of a volume:
 *
 *      LOADING --(session started)--> OPEN --(session ended)--> LOST
 *         `---------------------------------------------------> ENDED  (open failed, or closed)
 */
enum gc_state { GC_LOADING, GC_OPEN, GC_LOST, GC_ENDED };

struct gantry_volume {
	struct gantry_volume_attr attr; /* as given, but queues and depth are not 0 */
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

	struct gantry_memory *memories; /* attr.memories entries */

	/* -- control thread only -- */
	struct gn_loop *loop;
	struct gn_topology_args args;
	struct gn_topo_embedded_role own;
	struct gn_topology topology;
	struct gc_uri parsed;
	struct gn_worker **workers; /* attr.queues entries */
	const struct gantry_role_host *rh;
	struct gantry_engine *session;
	/* polls the workers while the volume closes, or memory is exported or unexported */
	struct gn_timer turns;
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

/* Memory of gantry_memory_register(). */
struct gantry_memory {
	/* -- constant -- */
	struct gantry_volume *volume;
	uint32_t index; /* in volume->memories */

	/* -- __atomic; see program_memory.c -- */
	uint32_t n_ios;  /* accepted IOs with buffers in it, whose `done` was not called yet */
	uint64_t length; /* bytes; 0: no IO can use it */
	uintptr_t start; /* first address for the program */

	/* -- volume->lock protects them -- */
	int is_taken;
	int is_waiting;  /* the program waits for an answer of the control thread */
	int rc;          /* the answer */
	uintptr_t place; /* start, also before and after IO can use it; 0: not known */

	/* -- a thread of the program that has taken the entry, or the control thread for it -- */
	int fd; /* -1: none, or the region owns it */
	uint64_t offset, bytes;
	struct gantry_region *region; /* NULL: none */
	const char *why;              /* a literal: the problem of a failed registration */

	/* -- control thread only -- */
	int is_pending; /* an event of the engine gives the answer */
};

struct gc_request {
	gantry_done_fn *done;
	void *arg;
	void *copy_to;     /* destination of a read into a buffer outside the region; else NULL */
	uint64_t memories; /* bit i: volume->memories[i] has a buffer of the IO */
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
	uint64_t copied;     /* bytes that were copied to or from a slot */
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
/*
 * Poll the workers until gc_memories_pending() returns 0: an export or its end can need work on
 * them, and the program might poll no queue. Control thread.
 */
void gc_control_poll(struct gantry_volume *volume);

/* -- program_memory.c -- */
/* Allocate the entries. Returns 0 or -ENOMEM. */
int gc_memories_init(struct gantry_volume *volume);
/*
 * Find the memory that contains a buffer. Any thread.
 *
 * at_p      out: offset of the buffer in the memory
 * left_p    out: bytes from the buffer to the end of the memory
 * returns   the memory; NULL: none
 */
struct gantry_memory *gc_memory_find(const struct gantry_volume *volume, const void *buf,
				     uint64_t *at_p, uint64_t *left_p);
/* An IO uses the memories of a set, as in struct gc_request, or does not any more. Any thread. */
void gc_memories_hold(struct gantry_volume *volume, uint64_t set);
void gc_memories_drop(struct gantry_volume *volume, uint64_t set);
/* Returns 1 if a thread waits for an export or its end. Control thread. */
int gc_memories_pending(const struct gantry_volume *volume);
/* Events of the engine: exported and unexported, and closed. Control thread. */
void gc_memory_event(struct gantry_volume *volume, uint32_t handle);
void gc_memories_closed(struct gantry_volume *volume);

/* -- submit.c -- */
/* Set the error text of a rejected IO: the session is lost, or a stage rejected it. Returns rc. */
int gc_refused(struct gantry_queue *queue, int rc);

/* -- queue.c -- */
void gc_queue_done(void *engine, struct gantry_io *io);

#endif
