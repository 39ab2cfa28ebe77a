/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GC_ENGINE_PRIV_H
#define GC_ENGINE_PRIV_H

#include "engine.h"

/*
 * engine_priv.h - the session of the engine, shared by engine_session.c, engine_queue.c and
 * engine_resume.c.
 *
 *      OPENING --> RUNNING <--> PAUSED       lost, resume in progress
 *           `---------+-----------+--> CLOSING --> CLOSED
 */
enum gc_phase { GC_OPENING, GC_RUNNING, GC_PAUSED, GC_CLOSING, GC_CLOSED };

struct gc_session {
	const struct gantry_role_host *rh;
	struct gc_session_attr attr;
	const struct gc_session_events *events;
	void *arg;
	struct gantry_client *client; /* NULL: between two attempts to resume */
	struct gantry_region *region;
	struct gantry_volume_info info;
	enum gc_phase phase;
	uint64_t slot_bytes, shared_offset;
	uint64_t pages_at; /* offset in the region: the pages before it are allocated */
	/* -errno with which the engine has closed the session; 0: the owner closed the session */
	int reason;
	int end_rc; /* reason that `closed` reports */
	char text[256];

	/* -- resume -- */
	uint64_t resume_ns; /* longest time for a resume; 0: do not resume */
	uint64_t id, lost_ns;
	uint64_t retry_ns; /* delay before the next attempt */
	uint32_t epoch;
	uint8_t secret[GANTRY_SECRET_BYTES];
	int changed; /* the verifier has changed; set during a resume */
	int expired; /* resume_ns has elapsed */
	int ran;     /* the event `ready` of this client was received */
	/* gc_session_give_up() was called during a resume; `text` mentions the call */
	int gave_up;
	int released; /* no peer can access the region any more; see client_regions_released */
	struct gc_queue queues[];
};

/* Control thread. */
int gc_queue_init(struct gc_session *session, uint32_t index);
void gc_queue_fini(struct gc_queue *queue);
/* Create the descriptors, with a chain that ends in the gate. */
int gc_queue_make_chain(struct gc_queue *queue);
/*
 * Start or resume a queue: the lane uses the requester `next`. IOs that were in flight when the
 * last session was lost are submitted first. Returns their number.
 */
uint32_t gc_queue_up(struct gc_queue *queue);
/* Detach the queue from its requester. IOs wait until the resume. */
void gc_queue_pause(struct gc_queue *queue);
/* End a queue: waiting IOs fail with down_rc. */
void gc_queue_down(struct gc_queue *queue);

/* -- engine_resume.c -- */
/*
 * The client has ended. Returns 1 if a resume has begun or continues; 0: the session ends. text:
 * reason of the loss.
 */
int gc_resume_begin(struct gc_session *session, int reason, const char *text);
/*
 * The new client is ready: compare its volume with that of the lost session. Returns 0, or -ESTALE
 * if they differ; session->text then has the difference.
 */
int gc_resume_check(struct gc_session *session, const struct gantry_volume_info *info);
/* The new client has started. n_again: IOs that are submitted again. */
void gc_resume_done(struct gc_session *session, uint32_t n_again);

/* -- engine_session.c -- */
extern const struct gantry_client_events gc_client_events;
/* End the session and call `closed`. */
void gc_session_end(struct gc_session *session, int reason, const char *text);

#endif
