/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rig.h - the engine between a fake role host and a test.
 *
 *     rig_begin(lanes); change rig.rh and rig as needed; rig_open(); rig_turn() until it runs
 *     rig_submit() ... rig_turn(): completed IOs are in rig.done
 *     rig_close(); rig_end()
 */
#ifndef CLIENTS_RIG_H
#define CLIENTS_RIG_H

#include "engine/engine_ops.h"
#include "fake/role_host.h"

#define RIG_SIZE (1u << 20) /* bytes of the volume */
#define RIG_BLOCK 4096u
#define RIG_SLOT 3000u /* requested bytes, which are rounded up to a block */
#define RIG_SHARED 8192u
#define RIG_DONE 64u /* completions that are kept */

struct rig_done {
	struct gantry_io *io;
	uint64_t offset;
	unsigned status;
};

struct rig {
	struct fake_host host;
	struct fake_role_host rh;
	struct gantry_engine *session;
	uint32_t depth, n_queues;
	unsigned n_ready, n_started, n_closed, n_done;
	struct rig_done done[RIG_DONE];    /* in order, with the values at completion */
	int reason;                        /* reason of the end of the session */
	char text[256];                    /* reason of the end as text */
	int keep;                          /* do not release the slots of completed IOs */
	uint64_t shared;                   /* bytes of shared memory; 0: RIG_SHARED */
	uint64_t pages_bytes;              /* sum of the bytes that all calls of `pages` reported */
	uint32_t regions;                  /* limit of further regions */
	unsigned n_exported, n_unexported; /* events of further regions */
	uint32_t last_handle;              /* of the last such event */
	unsigned n_resized;                /* events of a new size of the volume */
	uint64_t size;                     /* of the last such event */
	int ready_rc;                      /* if not 0, the callback `ready` returns it */
	int close_when_ready, close_with_pages;
	int close_in_event; /* close in the next `started`, `exported` or `unexported` */
};

extern struct rig rig;

void rig_begin(uint32_t n_lanes, uint32_t depth);
/* Returns the result of gn_engine_ops.open(); rig.session is NULL if it is not 0. */
int rig_open(uint32_t n_queues);
/* Do n turns of host and engine. */
void rig_turn(unsigned n);
/* Open a session, and turn until it accepts IO. Returns the first queue. */
struct gantry_engine_queue *rig_start(uint32_t n_queues);
/* Returns a descriptor in a free slot, for a block at this offset. */
struct gantry_io *rig_filled(struct gantry_engine_queue *queue, unsigned opcode, uint64_t offset);
struct gantry_io *rig_submit(struct gantry_engine_queue *queue, unsigned opcode, uint64_t offset);
/* Close the session in order. */
void rig_close(void);
/* Free the engine, which must not leak. quarantined: expected regions in quarantine. */
void rig_end(unsigned quarantined);

#define RIG_FAULT(...) fake_role_fault(&rig.rh, (struct fake_fault){__VA_ARGS__})

#endif
