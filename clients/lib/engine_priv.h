/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GC_ENGINE_PRIV_H
#define GC_ENGINE_PRIV_H

#include "engine.h"

enum gc_phase { GC_OPENING, GC_RUNNING, GC_CLOSING, GC_CLOSED };

struct gc_session {
	const struct gantry_role_host *rh;
	struct gc_session_attr attr;
	const struct gc_session_events *events;
	void *arg;
	struct gantry_client *client;
	struct gantry_region *region;
	struct gantry_volume_info info;
	enum gc_phase phase;
	uint64_t slot_bytes, shared_offset;
	int reason; /* why it was closed from here; 0: the owner wanted it */
	char text[256];
	struct gc_queue queues[];
};

/* Control thread. */
int gc_queue_init(struct gc_session *session, uint32_t index);
void gc_queue_fini(struct gc_queue *queue);
/* The descriptors, with a chain that ends in the gate. */
int gc_queue_make_chain(struct gc_queue *queue);
/* The lane's thread takes the link, or lets go of it: what waits completes with GANTRY_S_SESSION_LOST. */
void gc_queue_up(struct gc_queue *queue, const struct gantry_hop *link);
void gc_queue_down(struct gc_queue *queue);

#endif
