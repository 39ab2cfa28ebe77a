/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine.h - the engine: a session with one region, and a queue for each of its lanes. libgantry
 * and the role initiator issue IO through it.
 *
 *      session: gc_session_open -> event `ready`, which calls gc_session_memory
 *               -> event `pages` for each part of the region -> event `started` -> event `closed`
 *      IO:      gc_queue_get -> fill the descriptor -> gc_queue_submit -> `complete`
 *               -> gc_queue_put
 *
 * Resume. If connect.resume is not 0, the engine resumes a lost session without an event for the
 * owner. Meanwhile IOs wait. IOs that were in flight are submitted again, in their order. If the
 * resume does not succeed in time, the engine calls `closed`. It calls `closed` with -ESTALE if it
 * finds another volume, or the same volume without its data.
 *
 * Verifier. A changed verifier means that acknowledged but unflushed writes might be lost. Then all
 * flushes in flight of a queue fail with GANTRY_S_IO; if there are none, its next flush fails once.
 *
 * The engine calls the host only through struct gantry_role_host, so that a plugin can link the
 * engine. A slot is a descriptor with its buffer, a part of the region. After the buffers of all
 * slots the region can contain shared memory, which the owner divides.
 *
 * Threads: session functions run on the control thread, queue functions on the lane's thread.
 */
#ifndef GC_ENGINE_H
#define GC_ENGINE_H

#include <errno.h>

#include <gantry/role.h>

#define GC_SLOT_ALIGN 4096u
#define GC_REGION_HANDLE 1u /* handle of the only region */

struct gc_session;
struct gc_queue;

/* Events. Control thread. Never called inside gc_session_open. */
struct gc_session_events {
	/*
	 * The volume is known: call gc_session_memory. Returns 0, or a -errno with which the
	 * session ends.
	 */
	int (*ready)(void *arg, const struct gantry_volume_info *info);
	/*
	 * The pages of `bytes` bytes at `at` are allocated. The calls cover the region in order,
	 * one part in each turn of the control thread. The owner can write to these bytes for the
	 * peer to read. May be NULL.
	 */
	void (*pages)(void *arg, void *at, uint64_t bytes);
	/* The owner can submit IO from now on. */
	void (*started)(void *arg);
	/* The session resumes, and the verifier of the volume has changed. May be NULL. */
	void (*verifier_changed)(void *arg, uint64_t verifier);
	/*
	 * Last event: the session has ended. All IOs of the requesters and queues have completed;
	 * IOs that stages hold complete later.
	 * reason: 0 after gc_session_close, else -errno.
	 */
	void (*closed)(void *arg, int reason, const char *text);
};

struct gc_session_attr {
	uint32_t connect;  /* index of an entry of `connect` */
	uint32_t n_queues; /* queue i is on lane i of the role */
	uint32_t depth;    /* number of slots of each queue */
	/*
	 * A descriptor has completed. The function must call gc_queue_completed first. If that
	 * returns 0, the caller owns the descriptor and its status until gc_queue_put. May submit.
	 * Lane's thread.
	 */
	void (*complete)(void *queue, struct gantry_io *io);
};

/*
 * gc_session_open - open a session. rh: host of a role that has at least one entry of `connect`.
 *
 * Returns 0 or -errno. Logs a failure, after which no event follows.
 */
int gc_session_open(const struct gantry_role_host *rh, const struct gc_session_attr *attr,
		    const struct gc_session_events *events, void *arg,
		    struct gc_session **session_p);
/*
 * gc_session_memory - create the region. Call it once, from `ready`.
 *
 * slot_bytes    size of the buffer of each slot; rounded up to GC_SLOT_ALIGN
 * shared_bytes  size of the memory after the buffers of all slots; the region must have at least
 *               1 byte
 * flags         0 or GANTRY_REGION_HUGE
 *
 * The control thread allocates the pages before `started`, a part in each turn: see `pages`. If the
 * kernel has no memory, the session ends with -ENOMEM. Returns 0 or -errno.
 */
int gc_session_memory(struct gc_session *session, uint64_t slot_bytes, uint64_t shared_bytes,
		      int flags);
/*
 * gc_session_close - end the session by STOP and BYE; `closed` follows. Submit nothing after this
 * call. A second call has no effect.
 */
void gc_session_close(struct gc_session *session);
/*
 * gc_session_give_up - do not resume the session if it is lost, and stop a resume in progress. A
 * session whose resume is stopped ends with reason 0 and a text that contains the reason of the
 * loss.
 */
void gc_session_give_up(struct gc_session *session);
/*
 * gc_session_withdraw - make sure that no peer can access the region, after `closed`. The content
 * of the region stays. The engine has tried it once before `closed`. An owner that uses the shared
 * memory again must call the function until it returns 0. The buffers of slots need no call,
 * because the engine quarantines them.
 *
 * Returns 0
 * -errno       of the copy, -ENOMEM for example: peers may still access the region; call it again
 */
int gc_session_withdraw(struct gc_session *session);
/*
 * gc_session_free - free a session, after `closed`. No queue may have IO in flight. NULL has no
 * effect.
 */
void gc_session_free(struct gc_session *session);

/* Returns queue `index`. Valid from gc_session_open until gc_session_free. */
struct gc_queue *gc_session_queue(struct gc_session *session, uint32_t index);
/* Returns the region. Valid after gc_session_memory. */
const struct gantry_region *gc_session_region(const struct gc_session *session);
/* Returns the offset of the shared memory in the region. */
uint64_t gc_session_shared_offset(const struct gc_session *session);

enum gc_up {
	GC_DOWN,
	GC_UP,
	GC_UP_KEPT /* the engine resumes the session when it is lost */
};

/*
 * The owner of a queue may read all fields before "private to the engine", and write `user`. A
 * queue has its own cache lines, because its lane writes to it for each IO.
 */
struct gc_queue {
	struct gc_session *session;
	struct gantry_lane *lane;
	void *user;
	uint32_t index;
	uint32_t n_inflight; /* IOs that were submitted and have not completed */
	uint32_t n_waiting;  /* IOs that got -EAGAIN and will be submitted again */
	/* slots that are not reused, because a peer might still access their buffers */
	uint32_t n_quarantined;
	uint64_t n_quarantines; /* number of slots ever quarantined */
	/* IOs, with any buffer, that completed although a peer might still access the buffer */
	uint64_t n_doubtful;
	uint64_t n_doubled; /* completions of a free slot, which are ignored */
	int up;             /* enum gc_up; not 0 between `started` and the end of the session */
	int down_rc;        /* error of a submit while not up: -ENOTCONN, -ESTALE */
	int paused;         /* the session is lost, and a resume is in progress */
	/* the verifier has changed, and no flush of this queue has failed since */
	int in_doubt;

	/* -- private to the engine -- */
	struct gantry_io *ios;
	struct gantry_chain *chain;
	/* hop that the gate calls: a requester, closed_hop or paused_hop */
	struct gantry_hop next_hop;
	uint16_t *free; /* free slots, last in, first out */
	uint32_t n_free;
	/* slots, oldest first; start_ns of a descriptor is the time of its quarantine */
	uint16_t *quarantine;
	uint16_t *waiting; /* ring of slots; the oldest is at waiting_at */
	uint32_t waiting_at;
	struct gc_kept *kept; /* indexed by slot; NULL: the session is not resumed */
	uint64_t n_kept;
	uint16_t *lost; /* slots that were in flight when the session was lost */
	uint32_t n_lost;
	struct gantry_hop next;  /* requester of the session that is being opened */
	uint8_t *memory;         /* address of the region */
	uint64_t buffers_offset; /* offset of the buffers of this queue in the region */
	uint64_t slot_bytes;
} __attribute__((aligned(GANTRY_CACHE_LINE)));

/* State that is needed to submit a slot again. */
struct gc_kept {
	uint64_t order;
	uint32_t deadline_us, crc32c;
	uint8_t flags;
	uint8_t again; /* number of resubmissions */
	/*
	 * The last submission was not sent: the peer does not have the buffer, whatever the status
	 * is.
	 */
	uint8_t unsent;
};

/* gc_queue_get - take a free slot. Returns NULL if there is none. */
static inline struct gantry_io *gc_queue_get(struct gc_queue *queue)
{
	return queue->n_free ? &queue->ios[queue->free[--queue->n_free]] : NULL;
}

/* Returns the offset in the region of the buffer of a slot. */
static inline uint64_t gc_slot_offset(const struct gc_queue *queue, const struct gantry_io *io)
{
	return queue->buffers_offset + io->slot * queue->slot_bytes;
}

static inline void *gc_slot_buffer(const struct gc_queue *queue, const struct gantry_io *io)
{
	return queue->memory + gc_slot_offset(queue, io);
}

/*
 * gc_io_fill - fill the first cache line of a descriptor. region_offset: offset of the data in the
 * region; ignored if the operation has no data.
 */
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

/* gc_queue_submit() for a session that can be resumed, or has ended. */
int gc_queue_submit_kept(struct gc_queue *queue, struct gantry_io *io);
/*
 * Handle the error rc of a chain that did not accept a descriptor. Returns 0 if the IO waits in the
 * queue, else the error for the caller of gc_queue_submit().
 */
int gc_queue_refused(struct gc_queue *queue, struct gantry_io *io, int rc);

/*
 * gc_queue_submit - submit a slot whose descriptor gc_io_fill() has filled.
 *
 * Returns 0: `complete` will be called, or has been called already
 * down_rc  the session has ended
 * -errno   a stage rejected the IO
 * After an error the caller still owns the slot; its status is GANTRY_S_OK, because no hop kept the
 * descriptor. Never -EAGAIN: such an IO waits in the queue, and later IOs wait after it.
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
 * gc_queue_failed - handle a failed IO. Returns 1: the session is lost, and the engine will submit
 * the IO again; 0: the status is final.
 */
int gc_queue_failed(struct gc_queue *queue, struct gantry_io *io);

/*
 * gc_queue_completed - record the completion of a descriptor; `complete` calls this function first.
 * Returns 0: the caller owns the descriptor. Otherwise the descriptor was free already, or the
 * engine will submit it again.
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

/* Slow path of gc_queue_poll(). */
int gc_queue_poll_more(struct gc_queue *queue);

/*
 * gc_queue_poll - submit waiting IOs, and release slots from quarantine. A poller of the lane must
 * call it. Returns the number of submitted IOs.
 */
static inline int gc_queue_poll(struct gc_queue *queue)
{
	return gantry_unlikely((queue->n_waiting | queue->n_doubtful) != 0)
		       ? gc_queue_poll_more(queue)
		       : 0;
}

/*
 * gc_queue_late_writes - count the writes of this queue that timed out and can still change the
 * volume. Returns 1 while a resume is in progress, because the count is not known during a resume.
 * Call it only while queue->up.
 */
uint32_t gc_queue_late_writes(const struct gc_queue *queue);

/*
 * gc_queue_take_back - take back a waiting IO that was never in flight: the caller owns its slot
 * again. Returns NULL if there is none.
 */
struct gantry_io *gc_queue_take_back(struct gc_queue *queue);

/* Implements gc_queue_put() for an IO whose status leaves the buffer in use. */
void gc_queue_put_doubtful(struct gc_queue *queue, struct gantry_io *io);

/*
 * gc_queue_put - release a slot that was not submitted or has completed. After a status that leaves
 * the buffer in use, a slot whose own buffer was used is quarantined. It is released when no peer
 * can access the buffer any more: the late reply arrived, or the session was resumed.
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
