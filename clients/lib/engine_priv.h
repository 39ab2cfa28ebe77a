/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GC_ENGINE_PRIV_H
#define GC_ENGINE_PRIV_H

#include "engine.h"

/*
 *      OPENING --> RUNNING <--> PAUSED       lost, and to be opened again
 *           `---------+-----------+--> CLOSING --> CLOSED
 */
enum gc_phase { GC_OPENING, GC_RUNNING, GC_PAUSED, GC_CLOSING, GC_CLOSED };

struct gc_session {
	const struct gantry_role_host *rh;
	struct gc_session_attr attr;
	const struct gc_session_events *events;
	void *arg;
	struct gantry_client *client; /* NULL: between two */
	struct gantry_region *region;
	struct gantry_volume_info info;
	enum gc_phase phase;
	uint64_t slot_bytes, shared_offset;
	uint64_t pages_at; /* in the region: pages before it are allocated */
	int reason;        /* why it was closed from here; 0: the owner wanted it */
	int end_rc;        /* reason that `closed` reports */
	char text[256];

	/* a session that may be opened again */
	uint64_t resume_ns; /* for so long; 0: not at all */
	uint64_t id, lost_ns;
	uint64_t retry_ns; /* before the next attempt */
	uint32_t epoch;
	uint8_t secret[GANTRY_SECRET_BYTES]; /* all 0: the host of ABI 1.0 has none */
	int changed;                         /* during a resume: the verifier has changed */
	int late;                            /* the time is over */
	int ran;                             /* of this client: it was ready */
	int gave_up;                         /* while it was lost; `text` says so */
	int quiet; /* nobody can touch the region any more; see client_regions_released */
	struct gc_queue queues[];
};

/* Control thread. */
int gc_queue_init(struct gc_session *session, uint32_t index);
void gc_queue_fini(struct gc_queue *queue);
/* The descriptors, with a chain that ends in the gate. */
int gc_queue_make_chain(struct gc_queue *queue);
/*
 * The lane's thread takes the link `next`; what was in flight when the last one was lost goes
 * first. Returns how many.
 */
uint32_t gc_queue_up(struct gc_queue *queue);
/* It lets go of the link; what comes waits. */
void gc_queue_pause(struct gc_queue *queue);
/* For good: what waits completes with GANTRY_S_SESSION_LOST. */
void gc_queue_down(struct gc_queue *queue);

/* -- engine_resume.c -- */
/* The client is gone: open another one? 1: that has begun. text: why it is gone. */
int gc_resume_begin(struct gc_session *session, int reason, const char *text);
/* The other one is ready. 0; or -errno with session->text: it is not the same volume. */
int gc_resume_check(struct gc_session *session, const struct gantry_volume_info *info);
/* It has started. */
void gc_resume_done(struct gc_session *session, uint32_t n_again);

/* -- engine_session.c -- */
extern const struct gantry_client_events gc_client_events;
/* It is over: tell the owner. */
void gc_session_end(struct gc_session *session, int reason, const char *text);

#endif
