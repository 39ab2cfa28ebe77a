/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * client.h - libgantry: volumes for programs. pkg-config: gantry.
 *
 *     gantry_volume_open("gantry:///volume0", NULL, &volume)        connects; the session is up
 *                                                                   when it returns
 *     gantry_queue_open(volume, &queue)                             one for each thread that issues
 *                                                                   IO
 *         gantry_queue_read(queue, buf, length, offset, done, arg)  and write, flush, discard,
 *                                                                   write_zeroes
 *         gantry_queue_poll(queue)                                  done(arg, result) is called
 *                                                                   from here
 *     gantry_queue_close(&queue)
 *     gantry_volume_close(&volume)
 *
 * Threads   A volume: any thread, but for open and close of the same one. A queue: one thread at a
 *           time, and not from inside `done` except to submit. `done` is only ever called by
 *           gantry_queue_poll, _wait and _close, on their caller's thread, and returns: no
 *           exception or longjmp leads out of it. Each open volume has one thread of its own for
 *           connection and heartbeat; no IO passes it.
 * Errors    Functions return 0 or -errno; gantry_error() then has the text. An IO that was accepted
 *           completes exactly once, with 0 or -errno. None waits for ever: -ETIMEDOUT comes after
 *           the io_timeout of the connection, which begins when stages of the volume's own role
 *           have let the IO pass. How long these hold it is theirs to say.
 * Copies    A buffer inside gantry_volume_buffers() is read and written by the target itself. Any
 *           other buffer costs one copy on this side.
 * Fork      Open volumes after a fork, not before.
 */
#ifndef GANTRY_CLIENT_H
#define GANTRY_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#include <gantry/io.h>
#include <gantry/volume.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gantry_volume;
struct gantry_queue;

/*
 * What a program asks for; 0 anywhere: the default. Start from GANTRY_VOLUME_ATTR_INIT, so that new
 * fields are 0.
 */
struct gantry_volume_attr {
	uint32_t struct_size; /* sizeof(struct gantry_volume_attr) */
	uint32_t queues;      /* that may be open at a time; 1 */
	uint32_t depth;       /* IOs in flight on each; 32 */
	/* longest IO with an ordinary buffer; 1 MiB, or the volume's max_io when that is less */
	uint32_t copy_bytes;
	uint64_t buffer_bytes; /* of memory for gantry_volume_buffers(); none */
};

#define GANTRY_VOLUME_ATTR_INIT \
	{ \
		sizeof(struct gantry_volume_attr), 0, 0, 0, 0 \
	}

/*
 * gantry_volume_open - connect to a volume named by a URI
 *
 *     gantry:///NAME?device=dpu0&transport=shm-comch    a service of this machine
 *     gantry://HOST:PORT?transport=rdma-verbs           one on a network
 *     gantry:///?config=FILE&role=NAME                  as gantry_volume_open_role()
 *
 * attr     NULL: all defaults; copied
 * returns  0 with *volume_p set: hello, query, export and start are done. -EINVAL: the URI or the
 *          configuration is wrong; -ENOENT: no such file or role; -ECONNREFUSED: no listener (after
 *          the timeout of the connection); -EBUSY: a limit of the listener was reached (until that
 *          timeout), or writes of an ended session are not finished; -EMFILE, -ENOMEM and others of
 *          that kind: what this process could not have; -EACCES and others: refused by the peer.
 *          *volume_p is NULL then.
 * blocks   until the session is up, at most `timeout` and `control_timeout` of the connection
 */
int gantry_volume_open(const char *uri, const struct gantry_volume_attr *attr,
		       struct gantry_volume **volume_p);

/*
 * gantry_volume_open_role - the same, with connection and stages of a role in a configuration file
 *
 * The role must be one that connects to one place, such as an initiator; what else it does is not
 * used. role NULL: the only such role of the file.
 */
int gantry_volume_open_role(const char *file, const char *role,
			    const struct gantry_volume_attr *attr, struct gantry_volume **volume_p);

/*
 * End the session and free everything. *volume_p becomes NULL. -EBUSY: a queue is open; nothing was
 * done.
 */
int gantry_volume_close(struct gantry_volume **volume_p);

/*
 * gantry_volume_give_up - wait no longer for a session that is lost
 *
 * With the option `resume` of the connection, IOs wait while a lost session is opened again, and so
 * does gantry_queue_close(). From now on a session that is lost is not opened again, nor one that
 * is lost already: IOs in flight complete with -ENOTCONN, when their queue is polled, waited for or
 * closed, and later ones are refused. A session that is up goes on. Idempotent.
 *
 * returns  0; -EINVAL in a child of the process that opened it
 * thread   any, also from inside `done`; not in a signal handler. Returns at once
 */
int gantry_volume_give_up(struct gantry_volume *volume);

/*
 * Size, block size, operations, longest IO, UUID and verifier. All but the verifier stay the same
 * for as long as the volume is open. The verifier changes when the session resumes and acknowledged
 * writes that were not flushed may be lost.
 */
void gantry_volume_get_info(const struct gantry_volume *volume, struct gantry_volume_info *info);

/* Longest IO with an ordinary buffer, bytes; a multiple of the block size. */
uint32_t gantry_volume_copy_bytes(const struct gantry_volume *volume);

/*
 * The memory that the session exported, for buffers without a copy: attr.buffer_bytes, page
 * aligned, zeroed. How it is divided is the caller's. NULL with *bytes_p 0 when none was asked for.
 */
void *gantry_volume_buffers(const struct gantry_volume *volume, uint64_t *bytes_p);

/* Take one of attr.queues. -EBUSY: all are open. */
int gantry_queue_open(struct gantry_volume *volume, struct gantry_queue **queue_p);

/*
 * gantry_queue_close - complete all IOs of a queue and free the queue
 *
 * Waits until each IO in flight has completed; see gantry_volume_give_up(). Calls `done` as
 * gantry_queue_poll() does.
 * Then waits for the answers to IOs that timed out, or for the end of the session: the
 * fence_timeout of the connection at most. After the return no server can access a buffer of this
 * queue.
 *
 * When a session is lost, the library moves the memory of gantry_volume_buffers() to other pages.
 * Another thread's write to that memory may be lost if it coincides with the move.
 *
 * queue_p     in: the queue. Out: NULL after 0
 * returns     0
 *     -EBUSY      called from inside `done`: the queue is unchanged
 *     -EINVAL     in a child of the process that opened the volume: the queue is unchanged
 * thread      the queue's
 * since       GANTRY_1
 */
int gantry_queue_close(struct gantry_queue **queue_p);

/*
 * result: 0 or -errno. -ECANCELED: the IO was never started. After -ETIMEDOUT, -ENOTCONN,
 * -EOWNERDEAD and -ESTALE a server may still access a buffer of gantry_volume_buffers() until
 * gantry_queue_close() has returned. The library copies IO of any other memory, so no server
 * accesses that.
 */
typedef void gantry_done_fn(void *arg, int result);

/*
 * Submit one IO.
 *
 * offset, length   bytes, multiples of the block size, inside the volume; length up to max_io, or
 *                  copy_bytes when buf is not in gantry_volume_buffers()
 * buf              must stay until `done`
 * flags            GANTRY_IO_FUA on writes and write_zeroes, or 0
 * returns          0: accepted. -EAGAIN: depth IOs are in flight, poll first. -EINVAL, -EROFS,
 *                  -EOPNOTSUPP: it can never be done; -ERANGE: not inside the volume; -EMSGSIZE:
 *                  too long; -ENOTCONN: the session is lost. gantry_error() says more. When
 *                  refused, `done` is not called.
 */
int gantry_queue_read(struct gantry_queue *queue, void *buf, uint64_t length, uint64_t offset,
		      gantry_done_fn *done, void *arg);
int gantry_queue_write(struct gantry_queue *queue, const void *buf, uint64_t length,
		       uint64_t offset, unsigned flags, gantry_done_fn *done, void *arg);
int gantry_queue_flush(struct gantry_queue *queue, gantry_done_fn *done, void *arg);
int gantry_queue_discard(struct gantry_queue *queue, uint64_t length, uint64_t offset,
			 gantry_done_fn *done, void *arg);
int gantry_queue_write_zeroes(struct gantry_queue *queue, uint64_t length, uint64_t offset,
			      unsigned flags, gantry_done_fn *done, void *arg);

/* Move things on, without waiting. Returns how many IOs have completed. */
int gantry_queue_poll(struct gantry_queue *queue);

/*
 * gantry_queue_wait - poll until something has completed
 *
 * Spins for a moment, then sleeps, also through signals. timeout_ms -1: no limit; but every IO has
 * its own.
 * returns  how many IOs have completed; 0: time is over, or nothing is in flight
 */
int gantry_queue_wait(struct gantry_queue *queue, int timeout_ms);

/*
 * gantry_queue_fence - wait until no write of this queue that completed with -ETIMEDOUT can change
 * the volume any more
 *
 * A timeout does not stop an IO: a write may still reach the volume. The library holds back
 * overlapping writes of the same volume handle, on all queues. It cannot order writes of other
 * programs or other handles behind the late write.
 * They are ordered after this call has returned 0, or after the session has ended and a new session
 * has started. Calls `done` as gantry_queue_poll() does.
 *
 * timeout_ms  longest wait in milliseconds; -1: until the session ends, after fence_timeout at most
 * returns     0: no such write can change the volume any more
 *     -ETIMEDOUT  some of these writes are still not answered
 *     -ENOTCONN   the session is lost: these writes may be done or not
 *     -ESTALE     a resume found another volume
 *     -EBUSY      called from inside `done`
 *     -EINVAL     in a child of the process that opened the volume
 * thread      the queue's
 * since       GANTRY_1.1
 */
int gantry_queue_fence(struct gantry_queue *queue, int timeout_ms);

/*
 * For event loops: after gantry_queue_arm() has returned 0, this fd becomes readable when
 * gantry_queue_poll() should be called, which disarms. The fd is the queue's.
 */
int gantry_queue_fd(const struct gantry_queue *queue);
/* 0: wait for the fd. 1: there is work, call gantry_queue_poll() now. */
int gantry_queue_arm(struct gantry_queue *queue);

/* IOs in flight. */
uint32_t gantry_queue_inflight(const struct gantry_queue *queue);

/*
 * What the last function of this file that failed on this thread has to say: one line, valid until
 * the next fails.
 */
const char *gantry_error(void);

#ifdef __cplusplus
}
#endif

#endif
