/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib_priv.h - inside libgantry.
 *
 *      volume.c    open and close                         any thread
 *      control.c   a volume's life, from load to close    its control thread
 *      queue.c     queues                                 the caller's thread
 *      submit.c    what may be submitted                  the caller's thread
 *      error.c     gantry_error()
 *      uri.c       what a URI says
 */
#ifndef GC_LIB_PRIV_H
#define GC_LIB_PRIV_H

#include <pthread.h>

#include <gantry/client.h>

#include "base/loop.h"
#include "engine.h"
#include "topology/topology.h"
#include "uri.h"

#define GC_TEXT 1024 /* bytes of a message */

/*
 *      LOADING --(loaded, started)--> OPEN --(session over)--> LOST
 *         `-------------------------------------------------> ENDED  (failed, or closed)
 */
enum gc_state { GC_LOADING, GC_OPEN, GC_LOST, GC_ENDED };

struct gantry_volume {
	struct gantry_volume_attr attr; /* no field is 0, but buffer_bytes */
	unsigned forks;                 /* as it was when it was opened */

	char *uri, *file, *role;     /* what to open; uri NULL: file and role */
	char name[GC_URI_SHOWN + 1]; /* the URI or the file, for messages; cut when it is longer */

	pthread_t thread;
	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t changed;
	enum gc_state state;
	int rc;                       /* why it is not OPEN */
	char text[GC_TEXT];           /* the same for people */
	struct gantry_queue **queues; /* attr.queues entries, NULL: not open */

	/* control thread */
	struct gn_loop *loop;
	struct gn_topology_args args;
	struct gn_topo_embedded_role own;
	struct gn_topology topology;
	struct gc_uri parsed;
	struct gn_worker **workers; /* attr.queues entries */
	const struct gantry_role_host *rh;
	struct gc_session *session;
	struct gn_timer turns; /* while it is closed, see control.c */
	/* __atomic: the control thread writes it when the session resumes, any thread reads it */
	uint64_t verifier;
	int ending, over; /* to be closed; the session has had its `closed` */

	/* set before it is OPEN */
	struct gantry_volume_info info; /* except the verifier, see above */
	uint32_t copy_bytes;
	uint8_t *buffers;
	uint64_t buffers_offset; /* in the region */
};

struct gc_request {
	gantry_done_fn *done;
	void *arg;
	void *copy_to; /* of a read with an ordinary buffer; else NULL */
};

struct gantry_queue {
	struct gantry_volume *volume;
	struct gn_worker *worker;
	struct gc_queue *engine;
	struct gc_request *requests; /* by slot */
	uint16_t *done;              /* slots that have completed; whoever is inside the worker */
	uint32_t n_done;
	uint16_t *told;  /* those that the owner is telling about */
	uint32_t n_open; /* accepted, and not told */
	int telling, closing;
	uint32_t index;
};

/* -- error.c -- */
int gc_error(int rc, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same with a text that stays. */
int gc_error_static(int rc, const char *text);
/* Child of a process that opened the volume? 0, or -EINVAL with the error set. */
int gc_check_fork(const struct gantry_volume *volume);
/* How often this process has been forked off. */
unsigned gc_forks(void);

/* -- volume.c -- */
void gc_volume_name(struct gantry_volume *volume, const char *name);

/* -- control.c -- */
/* The control thread. arg: the volume. */
void *gc_control_run(void *arg);
/* Ask it to end; any thread. */
void gc_control_stop(struct gantry_volume *volume);
/* Not to be opened again; any thread. */
void gc_control_give_up(struct gantry_volume *volume);

/* -- submit.c -- */
/* Set the error text of a rejected IO: the session is lost, or a stage rejected it. Returns rc. */
int gc_refused(struct gantry_queue *queue, int rc);

/* -- queue.c -- */
void gc_queue_done(void *engine, struct gantry_io *io);

#endif
