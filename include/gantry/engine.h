/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine.h - the client engine: a session with a region, and a queue for each of its lanes. The
 * core provides it to roles that issue IO of their own; the role initiator and libgantry use it.
 *
 *      session: open -> event `ready`, which calls memory
 *               -> event `pages` for each part of the region -> event `started` -> event `closed`
 *      IO:      gantry_engine_get -> fill the descriptor -> gantry_engine_submit -> `complete`
 *               -> gantry_engine_put
 *
 * Resume. If connect.resume is not 0, the engine resumes a lost session. The owner gets an event
 * only if verifier or size of the volume have changed. Meanwhile IOs wait. IOs that were in flight
 * are submitted again, in their order. If the resume does not succeed in time, the engine calls
 * `closed`. It calls `closed` with -ESTALE if it finds another volume, or the same volume without
 * its data.
 *
 * Verifier. A changed verifier means that acknowledged but unflushed writes might be lost. Then all
 * flushes in flight of a queue fail with GANTRY_S_IO; if there are none, its next flush fails once.
 *
 * A slot is a descriptor with its buffer, a part of the region. After the buffers of all
 * slots the region can contain shared memory, which the owner divides.
 *
 * Further regions. An owner with memory of its own exports it by `region_export`. A descriptor can
 * then name the handle of such a region instead of GANTRY_ENGINE_HANDLE. The engine does not
 * quarantine this memory: after a status that leaves the buffer in use, the owner must not use it
 * before n_doubtful of the queue is 0.
 *
 * session  of `open`
 * queue    a queue of a session
 * io       a descriptor of this queue
 * thread   lane's thread
 */
#ifndef GANTRY_ENGINE_H
#define GANTRY_ENGINE_H

#include <errno.h>

#include <gantry/role.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GANTRY_ENGINE_ALIGN 4096u
#define GANTRY_ENGINE_HANDLE 1u /* handle of the region of the engine */

struct gantry_engine; /* a session */
struct gantry_engine_queue;

/*
 * Events. Control thread. Never called inside `open`.
 *
 * arg  the argument of `open`
 */
struct gantry_engine_events {
	/*
	 * The volume is known: call `memory`. Returns 0; -errno: the session ends with this error.
	 *
	 * info  its properties; valid during the call
	 */
	int (*ready)(void *arg, const struct gantry_volume_info *info);
	/*
	 * The pages of `bytes` bytes at `at` are allocated. The calls cover the region in order,
	 * one part in each turn of the control thread. The owner can write to these bytes for the
	 * peer to read. May be NULL.
	 *
	 * at     address
	 * bytes  size
	 */
	void (*pages)(void *arg, void *at, uint64_t bytes);
	/* The owner can submit IO from now on. */
	void (*started)(void *arg);
	/*
	 * The session resumes, and the verifier of the volume has changed. May be NULL.
	 *
	 * verifier  the new one
	 */
	void (*verifier_changed)(void *arg, uint64_t verifier);
	/*
	 * The volume has a new size. If it changed while the session was lost, the engine calls
	 * this after the resume. May be NULL.
	 *
	 * size  the new one, in bytes
	 */
	void (*resized)(void *arg, uint64_t size);
	/*
	 * Last event: the session has ended. All IOs of the requesters and queues have completed;
	 * IOs that stages hold complete later.
	 *
	 * reason  0 after `close`, else -errno
	 * text    the problem, and where it occurred; valid during the call
	 */
	void (*closed)(void *arg, int reason, const char *text);
	/*
	 * IO can name a further region from now on. May be NULL for an owner without further
	 * regions.
	 *
	 * handle  of `region_export`
	 */
	void (*exported)(void *arg, uint32_t handle);
	/*
	 * No agent can access a further region any more, and its handle is free. May be NULL if
	 * `exported` is.
	 *
	 * handle  of `region_unexport`
	 */
	void (*unexported)(void *arg, uint32_t handle);
};

struct gantry_engine_attr {
	/*
	 * Index of the first path to the volume. All entries of `connect` from this one on are
	 * paths: the session opens and resumes on one that answers, and a lost session tries the
	 * next one first.
	 */
	uint32_t connect;
	uint32_t n_queues; /* queue i is on lane i of the role */
	uint32_t depth;    /* number of slots of each queue */
	/*
	 * A descriptor has completed. The function must call gantry_engine_completed first. If that
	 * returns 0, the caller owns the descriptor and its status until gantry_engine_put. May
	 * submit. Lane's thread.
	 */
	void (*complete)(void *queue, struct gantry_io *io);
	uint32_t regions; /* most regions of `region_export` at a time */
};

/*
 * The functions of the engine that are not inline: `engine` of struct gantry_role_host.
 *
 * thread     control thread
 * ownership  arguments are valid during the call, unless stated otherwise
 */
struct gantry_engine_ops {
	/*
	 * Open a session.
	 *
	 * rh         host of a role that has at least one entry of `connect`
	 * attr       copied
	 * events     valid until `closed`
	 * arg        the argument of the events
	 * session_p  out: the session, which the caller frees with `free`
	 * returns    0
	 *            -errno: failed; the engine has logged the cause, and no event follows
	 */
	int (*open)(const struct gantry_role_host *rh, const struct gantry_engine_attr *attr,
		    const struct gantry_engine_events *events, void *arg,
		    struct gantry_engine **session_p);
	/*
	 * Create the region. Call it once, from `ready`. The engine allocates the pages before
	 * `started`, a part in each turn of the control thread: see `pages`. If the kernel has no
	 * memory, the session ends with -ENOMEM.
	 *
	 * slot_bytes    size of the buffer of each slot; rounded up to GANTRY_ENGINE_ALIGN
	 * shared_bytes  size of the memory after the buffers of all slots; the region must have at
	 *               least 1 byte
	 * flags         0 or GANTRY_REGION_HUGE
	 * returns       0
	 *               -errno: failed; the engine has logged the cause
	 */
	int (*memory)(struct gantry_engine *session, uint64_t slot_bytes, uint64_t shared_bytes,
		      int flags);
	/*
	 * Get the memory after the buffers of all slots, from `memory` on. Returns its address.
	 *
	 * offset_p  out: its offset in the region
	 */
	void *(*shared)(const struct gantry_engine *session, uint64_t *offset_p);
	/*
	 * Get a queue. Returns the queue, which is valid from `open` until `free`.
	 *
	 * index  number of the queue, from 0
	 */
	struct gantry_engine_queue *(*queue)(struct gantry_engine *session, uint32_t index);
	/*
	 * End the session by STOP and BYE; `closed` follows. Submit nothing after this call. A
	 * second call has no effect.
	 */
	void (*close)(struct gantry_engine *session);
	/*
	 * Do not resume the session if it is lost, and stop a resume in progress. A session whose
	 * resume is stopped ends with reason 0 and a text that contains the reason of the loss.
	 */
	void (*give_up)(struct gantry_engine *session);
	/*
	 * Make sure that no peer can access the region, after `closed`. The content of the region
	 * stays. The engine has tried it once before `closed`. An owner that uses the shared memory
	 * again must call the function until it returns 0. The buffers of slots need no call,
	 * because the engine quarantines them.
	 *
	 * returns   0
	 *           -errno of the copy, -ENOMEM for example: peers may still access the region;
	 *           call it again
	 */
	int (*withdraw)(struct gantry_engine *session);
	/*
	 * Export a further region. Call it between `started` and `closed`. A session that resumes
	 * exports the region again, without an event.
	 *
	 * region   of region_create or region_map
	 * handle   GANTRY_ENGINE_HANDLE + 1 to GANTRY_ENGINE_HANDLE + attr.regions, not in use
	 * returns  0: `exported` follows, unless the session ends before. If the peer rejects the
	 *          region, the session ends
	 *          -EINVAL: handle is out of range
	 *          -EEXIST: the handle is in use
	 *          -E2BIG: the region is larger than the device here or at the peer accepts
	 *          -ENOTCONN: the session has ended
	 * ownership  region must stay valid until `unexported` or `closed`
	 */
	int (*region_export)(struct gantry_engine *session, const struct gantry_region *region,
			     uint32_t handle);
	/*
	 * End the export of a further region. IO in flight that names it completes as
	 * client_unexport of role.h describes. While a resume is in progress, the engine waits for
	 * its end.
	 *
	 * handle   of `region_export`, after `exported`
	 * returns  0: `unexported` follows, unless the session ends before
	 *          -ENOENT: no region has this handle, it is not exported yet, or its export is
	 *          ending
	 *          -ENOTCONN: the session has ended
	 */
	int (*region_unexport)(struct gantry_engine *session, uint32_t handle);
	/*
	 * Get the limit of further exports: the peer is known to reject a region that is larger.
	 *
	 * returns  bytes; UINT64_MAX: no limit is known, or no session runs
	 */
	uint64_t (*export_limit)(const struct gantry_engine *session);
	/*
	 * Get what the servers on the path accept: they reject further exports with more bytes
	 * together. The value is rounded up by less than 0.2 %.
	 *
	 * returns  bytes; UINT64_MAX: no limit is known, or no session runs
	 */
	uint64_t (*export_quota)(const struct gantry_engine *session);
	/*
	 * Revoke the access of all peers to all regions, without waiting for IO: abort the
	 * connection of a session that is then resumed. IO in flight waits for the resume, or the
	 * owner takes it back by `reclaim`. Until the resume, `unexported` follows region_unexport
	 * without an answer of the peer, and the owner can submit IO that names a region after
	 * region_export.
	 *
	 * returns  0: the session is paused, or will be in a later turn
	 *          -ENOTSUP: the session is not resumed, or the transport can revoke the regions
	 *          only with the help of its peers
	 *          -ENOTCONN: the session has not started, or has ended
	 */
	int (*revoke_all)(struct gantry_engine *session);
	/* Free a session, after `closed`. No queue may have IO in flight. NULL has no effect. */
	void (*free)(struct gantry_engine *session);

	/*
	 * -- queues --
	 *
	 * thread  lane's thread
	 */
	/*
	 * Count the writes of a queue that timed out and can still change the volume. Returns 1
	 * while a resume is in progress, because the count is not known during a resume. Call it
	 * only while queue->up.
	 */
	uint32_t (*late_writes)(const struct gantry_engine_queue *queue);
	/*
	 * Take back a waiting IO that was never in flight: the caller owns its slot again. Returns
	 * NULL if there is none.
	 */
	struct gantry_io *(*take_back)(struct gantry_engine_queue *queue);
	/*
	 * Take back all IOs of a queue while its session is paused: each completes with
	 * GANTRY_S_CANCELED or GANTRY_S_TIMEOUT, although the peer may have executed it. No peer
	 * accesses their buffers any more, and none of them takes effect after IO that is submitted
	 * from now on. An IO that a stage of the role holds completes later.
	 *
	 * returns  the number of IOs
	 *          -EAGAIN: the session is not paused, or a peer might access the regions
	 */
	int (*reclaim)(struct gantry_engine_queue *queue);

	/* -- private: called by the inline functions of this header -- */
	/* gantry_engine_submit() for a session that can be resumed, or has ended */
	int (*submit_kept)(struct gantry_engine_queue *queue, struct gantry_io *io);
	/*
	 * Handle the error rc of a chain that did not accept a descriptor. Returns 0 if the IO
	 * waits in the queue, else the error for the caller of gantry_engine_submit().
	 */
	int (*refused)(struct gantry_engine_queue *queue, struct gantry_io *io, int rc);
	/*
	 * Handle a failed IO. Returns 1: the session is lost, and the engine will submit the IO
	 * again; 0: the status is final.
	 */
	int (*failed)(struct gantry_engine_queue *queue, struct gantry_io *io);
	int (*poll_more)(struct gantry_engine_queue *queue);
	/* gantry_engine_put() for an IO whose status leaves the buffer in use */
	void (*put_doubtful)(struct gantry_engine_queue *queue, struct gantry_io *io);
};

enum gantry_engine_up {
	GANTRY_ENGINE_DOWN,
	GANTRY_ENGINE_UP,
	GANTRY_ENGINE_UP_KEPT /* the engine resumes the session when it is lost */
};

/*
 * The owner of a queue may read all fields before "private to the engine", and write `user`. A
 * queue has its own cache lines, because its lane writes to it for each IO.
 */
struct gantry_engine_queue {
	const struct gantry_engine_ops *ops;
	struct gantry_engine *session;
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
	int up;      /* enum gantry_engine_up; not 0 between `started` and the end of the session */
	int down_rc; /* error of a submit while not up: -ENOTCONN, -ESTALE */
	int paused;  /* the session is lost, and a resume is in progress */
	int revoked; /* while paused: no peer can access the regions */
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
	struct gantry_engine_kept *kept; /* indexed by slot; NULL: the session is not resumed */
	uint64_t n_kept;
	uint16_t *lost; /* slots that were in flight when the session was lost */
	uint32_t n_lost;
	struct gantry_hop next;  /* requester of the session that is being opened */
	uint8_t *memory;         /* address of the region */
	uint64_t buffers_offset; /* offset of the buffers of this queue in the region */
	uint64_t slot_bytes;
} __attribute__((aligned(GANTRY_CACHE_LINE)));

/* gantry_engine_get - take a free slot. Returns its descriptor; NULL: there is none. */
static inline struct gantry_io *gantry_engine_get(struct gantry_engine_queue *queue)
{
	return queue->n_free ? &queue->ios[queue->free[--queue->n_free]] : NULL;
}

/* gantry_engine_slot_offset - get the offset of the buffer of a slot in the region. Returns it. */
static inline uint64_t gantry_engine_slot_offset(const struct gantry_engine_queue *queue,
						 const struct gantry_io *io)
{
	return queue->buffers_offset + io->slot * queue->slot_bytes;
}

/* gantry_engine_slot_buffer - get the address of the buffer of a slot. Returns the address. */
static inline void *gantry_engine_slot_buffer(const struct gantry_engine_queue *queue,
					      const struct gantry_io *io)
{
	return queue->memory + gantry_engine_slot_offset(queue, io);
}

/*
 * gantry_engine_fill - fill the first cache line of a descriptor
 *
 * opcode         enum gantry_opcode
 * flags          GANTRY_IO_*
 * offset         bytes, from the start of the volume
 * length         bytes
 * region_offset  offset of the buffer in the region; ignored if the operation has none
 */
static inline void gantry_engine_fill(const struct gantry_engine_queue *queue, struct gantry_io *io,
				      unsigned opcode, unsigned flags, uint64_t offset,
				      uint32_t length, uint64_t region_offset)
{
	int has_buffer = gantry_op_has_buffer(opcode);

	io->opcode = (uint8_t)opcode;
	io->flags = (uint8_t)flags;
	io->offset = offset;
	io->length = length;
	io->region = has_buffer ? GANTRY_ENGINE_HANDLE : 0;
	io->region_offset = has_buffer ? region_offset : 0;
	io->data = has_buffer ? queue->memory + region_offset : NULL;
	io->deadline_us = 0;
	io->crc32c = 0;
	io->reserved = 0;
}

/*
 * gantry_engine_submit - submit a slot whose descriptor gantry_engine_fill() has filled
 *
 * returns  0: `complete` will be called, or has been called already
 *          -ENOTCONN, -ESTALE: the session has ended (`down_rc` of the queue)
 *          another -errno: a stage rejected the IO
 *
 * After an error the caller still owns the slot; its status is GANTRY_S_OK, because no hop kept the
 * descriptor. Never -EAGAIN: such an IO waits in the queue, and later IOs wait after it.
 */
static inline int gantry_engine_submit(struct gantry_engine_queue *queue, struct gantry_io *io)
{
	int rc;

	if (gantry_unlikely(queue->up != GANTRY_ENGINE_UP))
		return queue->ops->submit_kept(queue, io);
	gantry_io_begin(io, queue->lane->now_ns);
	queue->n_inflight++;
	rc = gantry_likely(!queue->n_waiting) ? gantry_submit(io) : -EAGAIN;
	return gantry_likely(rc == 0) ? 0 : queue->ops->refused(queue, io, rc);
}

/*
 * gantry_engine_completed - record the completion of a descriptor; `complete` calls it first
 *
 * returns  0: the caller owns the descriptor
 *          -1: the descriptor was free already, or the engine will submit it again
 */
static inline int gantry_engine_completed(struct gantry_engine_queue *queue, struct gantry_io *io)
{
	if (gantry_unlikely(gantry_io_end(io))) {
		queue->n_doubled++;
		return -1;
	}
	if (gantry_unlikely(io->status != GANTRY_S_OK) && queue->ops->failed(queue, io))
		return -1;
	queue->n_inflight--;
	return 0;
}

/*
 * gantry_engine_poll - submit waiting IOs, and release slots from quarantine. A poller of the lane
 * must call it. Returns the number of submitted IOs.
 */
static inline int gantry_engine_poll(struct gantry_engine_queue *queue)
{
	return gantry_unlikely((queue->n_waiting | queue->n_doubtful) != 0)
		       ? queue->ops->poll_more(queue)
		       : 0;
}

/*
 * gantry_engine_put - release a slot that was not submitted or has completed. After a status that
 * leaves the buffer in use, a slot whose own buffer was used is quarantined. It is released when no
 * peer can access the buffer any more: the late reply arrived, or the session was resumed.
 */
static inline void gantry_engine_put(struct gantry_engine_queue *queue, struct gantry_io *io)
{
	if (gantry_unlikely(io->status != GANTRY_S_OK) &&
	    !gantry_status_buffer_released(io->status))
		queue->ops->put_doubtful(queue, io);
	else
		queue->free[queue->n_free++] = io->slot;
}

#ifdef __cplusplus
}
#endif

#endif
