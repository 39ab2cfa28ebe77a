/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine.h - how this project issues IO: a session with its region, and a queue for each of its
 * lanes.
 *
 *      gc_session_open -> `ready` (gc_session_memory) -> `pages` of the region -> exported ->
 *      `started` -> `closed` gc_queue_get -> fill the descriptor -> gc_queue_submit -> `complete`
 *      -> gc_queue_put
 *
 * Where the connect may be resumed, a lost session is opened again and nobody hears of it: IOs
 * wait, and those that were in flight are submitted again, in their order. If that does not succeed
 * in time, the engine calls `closed`. It calls `closed` with -ESTALE if it finds another volume, or
 * the same volume without its data. A changed verifier means that acknowledged but unflushed writes
 * may be lost. Then the flushes of a queue that are in flight fail with GANTRY_S_IO;
 * if there are none, its next flush fails once.
 *
 * It knows a role's host and nothing else of gantry, so that a plugin can be linked with it. A slot
 * is a descriptor with its part of the region. Behind the parts of all slots the region may have
 * memory that the owner divides.
 *
 * Threads   What belongs to a session: control thread. What belongs to a queue: its lane's thread.
 */
#ifndef GC_ENGINE_H
#define GC_ENGINE_H

#include <errno.h>

#include <gantry/role.h>

#define GC_SLOT_ALIGN 4096u
#define GC_REGION_HANDLE 1u /* of the only region */

struct gc_session;
struct gc_queue;

/* Control thread. None is called from inside gc_session_open. */
struct gc_session_events {
	/*
	 * Hello and query are done: call gc_session_memory. 0; or -errno, and the session ends with
	 * that reason.
	 */
	int (*ready)(void *arg, const struct gantry_volume_info *info);
	/*
	 * The pages of `bytes` bytes at `at` are allocated. The calls cover the region in order, a
	 * part in each turn of the control thread. The peer sees what the owner writes there. May
	 * be NULL.
	 */
	void (*pages)(void *arg, void *at, uint64_t bytes);
	/* IO may be submitted. */
	void (*started)(void *arg);
	/* The session resumes, and the volume has another verifier than before. May be NULL. */
	void (*verifier_changed)(void *arg, uint64_t verifier);
	/*
	 * The session is over, last event. What the link and the queues had has completed; what
	 * stages hold will.
	 * reason: 0 after gc_session_close, else -errno.
	 */
	void (*closed)(void *arg, int reason, const char *text);
};

struct gc_session_attr {
	uint32_t connect;  /* entry of `connect` */
	uint32_t n_queues; /* queue i is on lane i of the role */
	uint32_t depth;    /* slots of each */
	/*
	 * A descriptor comes back. It calls gc_queue_completed first; after 0 the descriptor is the
	 * caller's, with its status, until gc_queue_put. May submit. Lane's thread.
	 */
	void (*complete)(void *queue, struct gantry_io *io);
};

/* rh: of a role that connects. What failed has been logged. 0 or -errno; no event follows then. */
int gc_session_open(const struct gantry_role_host *rh, const struct gc_session_attr *attr,
		    const struct gc_session_events *events, void *arg,
		    struct gc_session **session_p);
/*
 * Make the region: slot_bytes for each slot, rounded up to GC_SLOT_ALIGN, and shared_bytes behind
 * them. Together they are at least one byte. flags: 0 or GANTRY_REGION_HUGE. To be called once,
 * from `ready`. The control thread allocates the pages before `started`, a part in each turn: see
 * `pages`. If the kernel has no memory, the session ends with -ENOMEM.
 */
int gc_session_memory(struct gc_session *session, uint64_t slot_bytes, uint64_t shared_bytes,
		      int flags);
/* End it: stop, bye, `closed`. Submit nothing from now on. Idempotent. */
void gc_session_close(struct gc_session *session);
/*
 * From now on it is not opened again when it is lost, and not any more when that has begun: then it
 * ends, with reason 0 and a text that says why it was lost.
 */
void gc_session_give_up(struct gc_session *session);
/* After `closed`; no queue may have anything in flight. NULL is legal. */
void gc_session_free(struct gc_session *session);

struct gc_queue *gc_session_queue(struct gc_session *session, uint32_t index);
/* From gc_session_memory on. */
const struct gantry_region *gc_session_region(const struct gc_session *session);
/* Bytes of the region before the shared memory. */
uint64_t gc_session_shared_offset(const struct gc_session *session);

enum gc_up {
	GC_DOWN,
	GC_UP,
	GC_UP_KEPT /* the session is opened again when it is lost */
};

/* Read it, and write `user`. */
struct gc_queue {
	struct gc_session *session;
	struct gantry_lane *lane;
	void *user;
	uint32_t index;
	uint32_t n_inflight; /* submitted, and not done */
	uint32_t n_waiting;  /* of these: refused with -EAGAIN, to be tried again */
	/* slots that are not used: somebody may still touch their buffers */
	uint32_t n_quarantined;
	uint64_t n_quarantines; /* how often a slot was put there */
	uint64_t n_doubtful;    /* IOs, also with other buffers, of which that may be true */
	uint64_t n_doubled;     /* completions of a slot at rest; ignored */
	int up;                 /* enum gc_up; not 0 between `started` and the end of the session */
	int down_rc;            /* error while not up: -ENOTCONN, -ESTALE */
	int paused;             /* the session is lost, and may be opened again */
	/* the verifier has changed, and no flush of this queue has failed since */
	int in_doubt;

	/* the engine's own */
	struct gantry_io *ios;
	struct gantry_chain *chain;
	struct gantry_hop link; /* where the gate leads */
	uint16_t *free;         /* slots at rest, the last one used on top */
	uint32_t n_free;
	uint16_t *quarantine; /* slots, the oldest first; since start_ns of their descriptors */
	uint16_t *waiting;    /* a ring of slots, oldest at waiting_at */
	uint32_t waiting_at;
	struct gc_kept *kept; /* by slot; NULL: the session is not opened again */
	uint64_t n_kept;
	uint16_t *lost; /* slots that were in flight when the session was lost */
	uint32_t n_lost;
	struct gantry_hop next;  /* the link of the session that is being opened */
	uint8_t *memory;         /* the region */
	uint64_t buffers_offset; /* in it, of the slots */
	uint64_t slot_bytes;
} __attribute__((aligned(GANTRY_CACHE_LINE))); /* its lane writes to it with each IO */

/* What is needed to submit a slot again. */
struct gc_kept {
	uint64_t order;
	uint32_t deadline_us, crc32c;
	uint8_t flags;
	uint8_t again; /* how often it was submitted again */
	/*
	 * the last submission was not sent: the peer does not have the buffer, whatever the status
	 */
	uint8_t unsent;
};

/* A slot at rest; NULL: none. */
static inline struct gantry_io *gc_queue_get(struct gc_queue *queue)
{
	return queue->n_free ? &queue->ios[queue->free[--queue->n_free]] : NULL;
}

/* Offset in the region of a slot's own buffer. */
static inline uint64_t gc_slot_offset(const struct gc_queue *queue, const struct gantry_io *io)
{
	return queue->buffers_offset + io->slot * queue->slot_bytes;
}

static inline void *gc_slot_buffer(const struct gc_queue *queue, const struct gantry_io *io)
{
	return queue->memory + gc_slot_offset(queue, io);
}

/* Fill the first line. region_offset: of the data, for operations that have some. */
static inline void gc_io_fill(const struct gc_queue *queue, struct gantry_io *io, unsigned opcode,
			      unsigned flags, uint64_t offset, uint32_t length,
			      uint64_t region_offset)
{
	int has_data = gantry_op_has_data(opcode);

	io->opcode = (uint8_t)opcode;
	io->flags = (uint8_t)flags;
	io->offset = offset;
	io->length = length;
	io->region = has_data ? GC_REGION_HANDLE : 0;
	io->region_offset = has_data ? region_offset : 0;
	io->data = has_data ? queue->memory + region_offset : NULL;
	io->deadline_us = 0;
	io->crc32c = 0;
	io->reserved = 0;
}

/* gc_queue_submit where the session may be opened again, or is over. */
int gc_queue_submit_kept(struct gc_queue *queue, struct gantry_io *io);
/* What is left to do when a chain has refused a descriptor. */
int gc_queue_refused(struct gc_queue *queue, struct gantry_io *io, int rc);

/*
 * Submit a slot whose first line is filled. 0: `complete` will be called, perhaps has been.
 * down_rc, or the error of a stage: refused, the slot is still the caller's, with the status OK: no
 * hop kept it. Never -EAGAIN: such an IO waits here, and others behind it.
 */
static inline int gc_queue_submit(struct gc_queue *queue, struct gantry_io *io)
{
	int rc;

	if (gantry_unlikely(queue->up != GC_UP))
		return gc_queue_submit_kept(queue, io);
	gantry_io_begin(io, queue->lane->now_ns);
	queue->n_inflight++;
	rc = gantry_likely(!queue->n_waiting) ? gantry_submit(io) : -EAGAIN;
	return gantry_likely(rc == 0) ? 0 : gc_queue_refused(queue, io, rc);
}

/*
 * Process a failed IO. 1: the session is lost, and the engine will submit the IO again. 0: its
 * status is final.
 */
int gc_queue_failed(struct gc_queue *queue, struct gantry_io *io);

/*
 * For `complete`. 0: the descriptor is the caller's again. Else it is not: it was at rest, or is to
 * be submitted again.
 */
static inline int gc_queue_completed(struct gc_queue *queue, struct gantry_io *io)
{
	if (gantry_unlikely(gantry_io_end(io))) {
		queue->n_doubled++;
		return -1;
	}
	if (gantry_unlikely(io->status != GANTRY_S_OK) && gc_queue_failed(queue, io))
		return -1;
	queue->n_inflight--;
	return 0;
}

int gc_queue_poll_more(struct gc_queue *queue);

/*
 * Submit what waits, take slots out of quarantine; to be called by a poller of the lane. Returns
 * how many were submitted.
 */
static inline int gc_queue_poll(struct gc_queue *queue)
{
	return gantry_unlikely((queue->n_waiting | queue->n_doubtful) != 0)
		       ? gc_queue_poll_more(queue)
		       : 0;
}

/*
 * Count the writes of this queue that timed out and may still change the volume. Returns 1 while a
 * resume is in progress, because the count is not known then. Only while queue->up.
 */
uint32_t gc_queue_late_writes(const struct gc_queue *queue);

/* One that waits, to be the caller's again as if it had been refused; NULL: none does. */
struct gantry_io *gc_queue_take_back(struct gc_queue *queue);

/* gc_queue_put after a status that is not quiet. */
void gc_queue_put_doubtful(struct gc_queue *queue, struct gantry_io *io);

/*
 * Give it back, not submitted or done. After a status that is not quiet a slot whose own buffer was
 * used is put into quarantine instead, until nobody can touch it any more: the answer has come
 * after all, or a session that was lost is up again.
 */
static inline void gc_queue_put(struct gc_queue *queue, struct gantry_io *io)
{
	if (gantry_unlikely(io->status != GANTRY_S_OK) &&
	    !gantry_status_buffer_released(io->status))
		gc_queue_put_doubtful(queue, io);
	else
		queue->free[queue->n_free++] = io->slot;
}

#endif
