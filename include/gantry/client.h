/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * client.h - libgantry: block IO to a volume from a program. pkg-config: gantry.
 *
 *     gantry_volume_open("gantry:///volume0", NULL, &volume)        connects and starts the session
 *     gantry_queue_open(volume, &queue)                             one queue for each thread that
 *                                                                   issues IO
 *         gantry_queue_read(queue, buf, length, offset, done, arg)  also write, flush, discard,
 *                                                                   write_zeroes, extents
 *         gantry_queue_poll(queue)                                  calls done(arg, result)
 *     gantry_memory_register(volume, fd, ..., &memory)              exports memory of the program
 *     gantry_queue_close(&queue)
 *     gantry_volume_close(&volume)
 *
 * Threads   Several threads can use a volume at the same time, but its open and close must not
 *           overlap other calls. Only one thread at a time can use a queue: "the queue's thread"
 *           below. Inside `done`, only the submit functions of the queue may be called. Only
 *           gantry_queue_poll(), _wait(), _fence() and _close() call `done`, on the thread of their
 *           caller. `done` must return: neither an exception nor longjmp(3) may leave it. Each open
 *           volume has one internal thread for the connection and keepalives; no IO passes through
 *           it.
 * Errors    Functions return 0 or -errno; gantry_error() then has the text. An accepted IO
 *           completes exactly once, with 0 or -errno. An IO without a reply completes with
 *           -ETIMEDOUT after the io_timeout of the connection. That timeout starts when the stages
 *           of the volume's own role have passed the IO on, so it does not include a delay inside a
 *           stage.
 * Copies    The target accesses a buffer inside gantry_volume_buffers(), or inside memory of
 *           gantry_memory_register(), directly. For any other buffer the library copies the data
 *           once. Below, "exported memory" is the memory of these two functions.
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
struct gantry_memory;

/*
 * Callback: size or verifier of a volume has changed. It must return: neither an exception nor
 * longjmp(3) may leave it. It must not block, nor call functions of the library for this volume,
 * except gantry_volume_get_info(), nor take a lock that a thread holds during
 * gantry_memory_register(), gantry_memory_deregister() or gantry_volume_close().
 *
 * arg     changed_arg
 * info    properties of the volume, of which the size and the verifier can be new; valid during the
 *         call
 * thread  internal thread of the volume, with all signals blocked. It handles no other event until
 *         the callback returns. First call: possibly before gantry_volume_open() returns. Last
 *         call: before gantry_volume_close() returns 0
 * since   GANTRY_1.2
 */
typedef void gantry_changed_fn(void *arg, const struct gantry_volume_info *info);

/*
 * Parameters of gantry_volume_open(). A field that is 0 selects its default. Initialise with
 * GANTRY_VOLUME_ATTR_INIT, so that fields of later versions are 0.
 */
struct gantry_volume_attr {
	uint32_t struct_size; /* sizeof(struct gantry_volume_attr) */
	uint32_t queues;      /* number of queues that can be open at a time; default 1 */
	uint32_t depth;       /* IOs in flight on each queue; default 32 */
	/*
	 * longest IO with a buffer outside exported memory, in bytes; default: the lesser of 1 MiB
	 * and max_io of the volume
	 */
	uint32_t copy_bytes;
	uint64_t buffer_bytes; /* size of gantry_volume_buffers(); default 0 */
	/*
	 * calls of gantry_memory_register() that can be in effect at a time: up to 64; default 0. A
	 * server accepts its max_regions less one
	 */
	uint32_t memories;
	uint32_t reserved;          /* 0 */
	gantry_changed_fn *changed; /* default NULL: no calls */
	void *changed_arg;
};

#define GANTRY_VOLUME_ATTR_INIT \
	{ \
		sizeof(struct gantry_volume_attr), 0, 0, 0, 0, 0, 0, NULL, NULL \
	}

/*
 * gantry_volume_open - connect to a volume named by a URI
 *
 *     gantry:///NAME?device=dpu0&transport=shm-comch    a service of this machine
 *     gantry://HOST:PORT?transport=rdma-verbs           a service on a network
 *     gantry:///?config=FILE&role=NAME                  as gantry_volume_open_role()
 *
 * Blocks until the session is running, for at most the sum of the options `timeout` and
 * `control_timeout` of the connection.
 *
 * uri       see above
 * attr      NULL: all defaults. The library copies it
 * volume_p  out: the volume, whose session is running; NULL after an error
 * returns   0
 *     -EINVAL        the URI or the configuration is invalid
 *     -ENOENT        no such file or role
 *     -ECONNREFUSED  no listener accepted within the `timeout` of the connection
 *     -EBUSY         until that timeout, the listener was at a limit or had unfinished writes of an
 *                    ended session
 *     -EMFILE, -ENOMEM and similar: a resource of this process is exhausted
 *     -EACCES and others: the peer rejected the session
 * thread    any
 * since     GANTRY_1
 */
int gantry_volume_open(const char *uri, const struct gantry_volume_attr *attr,
		       struct gantry_volume **volume_p);

/*
 * gantry_volume_open_role - connect to the volume that a role of a configuration file uses
 *
 * Does the same as gantry_volume_open(), but takes connection and stages from the role. The role
 * must connect to exactly one service, as an initiator does. The library ignores the other options
 * of the role.
 *
 * file      path of the configuration
 * role      name of the role; NULL: the only such role of the file
 * attr, volume_p, returns, thread, since: as for gantry_volume_open()
 */
int gantry_volume_open_role(const char *file, const char *role,
			    const struct gantry_volume_attr *attr, struct gantry_volume **volume_p);

/*
 * gantry_volume_close - end the session and free the volume
 *
 * volume_p  in: the volume. Out: NULL after 0
 * returns   0
 *     -EBUSY         a queue is open, or memory is registered: the volume is unchanged
 *     -EINVAL        in a child of the process that opened the volume: the volume is unchanged
 * thread    any
 * since     GANTRY_1
 */
int gantry_volume_close(struct gantry_volume **volume_p);

/*
 * gantry_volume_give_up - stop trying to resume lost sessions of a volume
 *
 * With the option `resume` of the connection, the library resumes a lost session. IOs in flight and
 * gantry_queue_close() wait meanwhile. After this call the library resumes no session, whether it
 * was lost before or is lost later. IOs in flight on a lost session then complete with -ENOTCONN
 * when their queue is polled, waited for or closed, and later IOs are rejected. A running session
 * continues. Idempotent; returns immediately.
 *
 * returns   0
 *     -EINVAL        in a child of the process that opened the volume
 * thread    any, also from inside `done`; not in a signal handler
 * since     GANTRY_1.1
 */
int gantry_volume_give_up(struct gantry_volume *volume);

/*
 * gantry_volume_get_info - get size, block size, operations, longest IO, UUID and verifier
 *
 * All of them except the verifier and the size stay the same while the volume is open. The verifier
 * changes when the session resumes and acknowledged writes that were not flushed might be lost. The
 * size changes when the store grows or shrinks, within about a second or when the session resumes;
 * IO beyond the new end fails with -ERANGE. `changed` of the attributes reports both.
 *
 * info      out: the properties
 * thread    any
 * since     GANTRY_1
 */
void gantry_volume_get_info(const struct gantry_volume *volume, struct gantry_volume_info *info);

/*
 * gantry_volume_copy_bytes - get the longest IO with a buffer outside exported memory
 *
 * returns   bytes; a multiple of the block size
 * thread    any
 * since     GANTRY_1
 */
uint32_t gantry_volume_copy_bytes(const struct gantry_volume *volume);

/*
 * gantry_volume_buffers - get the memory that the session has exported to the target
 *
 * The memory has attr.buffer_bytes bytes, is page aligned and zeroed. The caller divides it into
 * buffers. IO with these buffers needs no copy.
 *
 * bytes_p   out: size in bytes; may be NULL
 * returns   the address; NULL if attr.buffer_bytes was 0
 * thread    any
 * owner     the volume owns the memory
 * since     GANTRY_1
 */
void *gantry_volume_buffers(const struct gantry_volume *volume, uint64_t *bytes_p);

/*
 * gantry_memory_register - export memory of the program to the target
 *
 * IO with buffers in this memory needs no copy. The memory is a range of a memfd that is sealed
 * against shrinking and growing (F_SEAL_SHRINK, F_SEAL_GROW), and not against writing. The library
 * maps the range, and allocates missing pages of the whole memfd. Until the memory is deregistered,
 * no process may free pages of the memfd: a peer that detects freed pages ends the session.
 *
 * Blocks until the server has answered. While a lost session resumes, the call waits for the
 * resume; gantry_volume_give_up() ends that wait. If the server rejects the memory, the session
 * ends.
 *
 * fd        the memfd. The library duplicates it, so the program can close it
 * offset    bytes, a multiple of the page size: start of the range in the memfd
 * length    bytes, a multiple of the page size, above 0
 * addr      the address at which the program has mapped the range and has its buffers. The library
 *           does not access memory through it. NULL: the program has its buffers in the mapping of
 *           the library, gantry_memory_address()
 * memory_p  out: the memory; NULL after an error
 * returns   0
 *     -EINVAL        offset or length is no multiple of the page size; fd is no memfd; the
 *                    addresses wrap around; or in a child of the process that opened the volume
 *     -EPERM         the memfd is not sealed against shrinking and growing, or is sealed against
 *                    writing
 *     -ERANGE        the memfd is shorter than the range
 *     -EEXIST        the addresses overlap other exported memory of the volume
 *     -ENOSPC        attr.memories are registered
 *     -E2BIG         the memory is larger than a device or a server accepts
 *     -ENOMEM        pages or huge pages are missing, and cannot be allocated
 *     -EBADF         fd is not open
 *     -EMFILE        too many open files
 *     -ENOTCONN      the session is lost, also because a server has rejected the memory
 *     another -errno of fstat(2), fallocate(2) or mmap(2)
 * thread    any, but not inside `done`
 * owner     the program owns fd and its own mapping. It owns the memory object until
 *           gantry_memory_deregister()
 * since     GANTRY_1.2
 */
int gantry_memory_register(struct gantry_volume *volume, int fd, uint64_t offset, uint64_t length,
			   void *addr, struct gantry_memory **memory_p);

/*
 * gantry_memory_address - get the address of the mapping that the library has made
 *
 * returns   the address of the first byte of the range, valid until gantry_memory_deregister()
 * thread    any
 * owner     the library owns the mapping
 * since     GANTRY_1.2
 */
void *gantry_memory_address(const struct gantry_memory *memory);

/*
 * gantry_memory_deregister - end the export of memory, and free its object
 *
 * Blocks until all servers have released the memory. After 0 no server can access it, also not for
 * an IO that timed out. Waits for a resume as gantry_memory_register() does.
 *
 * memory_p  in: the memory. Out: NULL after 0 and after -ENOTCONN
 * returns   0
 *     -EBUSY         IO with a buffer in the memory is in flight: the memory is unchanged
 *     -EINVAL        in a child of the process that opened the volume: the memory is unchanged
 *     -ENOTCONN      the session has ended. The object is freed, but a server that has not noticed
 *                    the end yet can still access the memory
 * thread    any, but not inside `done`. No other thread may submit IO with a buffer in the memory
 *           from the begin of the call on
 * since     GANTRY_1.2
 */
int gantry_memory_deregister(struct gantry_memory **memory_p);

/*
 * gantry_queue_open - open one of attr.queues queues
 *
 * queue_p   out: the queue; NULL after an error
 * returns   0
 *     -EBUSY         all queues are open
 *     -EINVAL        in a child of the process that opened the volume
 *     -ENOMEM        out of memory
 * thread    any
 * since     GANTRY_1
 */
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
 * When a session is lost, the library copies gantry_volume_buffers() to pages that no server can
 * access; their address stays the same. If there is no memory for the copy, the library logs it and
 * tries again every 100 ms, and gantry_queue_close() waits.
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
 * Completion callback of an IO.
 *
 * arg       as given at submit
 * result    0 or -errno
 *     -ECANCELED     the IO was never started
 *     -ETIMEDOUT, -ENOTCONN, -EOWNERDEAD, -ESTALE: a server can still access a buffer of
 *     gantry_volume_buffers() until gantry_queue_close() has returned, and a buffer in registered
 *     memory until gantry_memory_deregister() has returned 0. For a buffer in other memory the
 *     library copies the data, so no server accesses that buffer
 */
typedef void gantry_done_fn(void *arg, int result);

/*
 * gantry_queue_read, _write, _flush, _discard, _write_zeroes - submit one IO
 *
 * buf       valid until `done`
 * length    bytes, a multiple of the block size; at most max_io, or gantry_volume_copy_bytes() if
 *           buf is outside exported memory
 * offset    bytes, a multiple of the block size, inside the volume
 * flags     GANTRY_IO_FUA for write and write_zeroes, or 0
 * done      called once if the IO was accepted, else never
 * returns   0: accepted. After an error gantry_error() has details
 *     -EAGAIN        depth IOs are in flight: poll first
 *     -EINVAL        invalid argument
 *     -EROFS         the volume is read-only
 *     -EOPNOTSUPP    the volume does not support the operation
 *     -ERANGE        the range is not inside the volume
 *     -EMSGSIZE      length exceeds its limit
 *     -ENOTCONN      the session is lost
 *     another -errno a stage rejected the IO
 * thread    the queue's
 * since     GANTRY_1
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

/*
 * gantry_queue_readv, _writev - submit one IO whose data is in several pieces
 *
 * The volume needs GANTRY_VOLUME_LISTS in its flags.
 *
 * iov       the pieces, each inside exported memory, of any length but 0. The library copies the
 *           array; the pieces stay valid until `done`
 * n         number of pieces: 1 to GANTRY_LIST_MAX. The sum of their lengths is the length of the
 *           IO, a multiple of the block size: at most max_io and GANTRY_LIST_BYTES
 * flags     GANTRY_IO_FUA or 0
 * offset, done, thread: as for gantry_queue_read()
 * returns   as gantry_queue_read(), and
 *     -EOPNOTSUPP    the volume does not accept several pieces
 *     -EMSGSIZE      too many pieces or bytes
 * since     GANTRY_1.1
 */
int gantry_queue_readv(struct gantry_queue *queue, const struct iovec *iov, uint32_t n,
		       uint64_t offset, gantry_done_fn *done, void *arg);
int gantry_queue_writev(struct gantry_queue *queue, const struct iovec *iov, uint32_t n,
			uint64_t offset, unsigned flags, gantry_done_fn *done, void *arg);

/*
 * gantry_queue_extents - get which parts of a range are holes
 *
 * extents   out: valid in `done` if the result is 0. They begin at `offset` and can end before the
 *           range ends: `bytes` is the part that they cover. Submit again for the remainder. The
 *           memory stays valid until `done`
 * length    bytes, a multiple of the block size; may exceed max_io
 * offset, done, returns, thread: as for gantry_queue_read(); a server can also report extents that
 *           violate the rules: the result is then -EIO
 *     -EOPNOTSUPP    the volume does not report extents: treat all of it as data
 * since     GANTRY_1.1
 */
int gantry_queue_extents(struct gantry_queue *queue, struct gantry_extents *extents,
			 uint64_t length, uint64_t offset, gantry_done_fn *done, void *arg);

/*
 * gantry_queue_poll - process events of the queue without waiting, and call `done` for each
 * completed IO
 *
 * returns   number of IOs that completed
 * thread    the queue's
 * since     GANTRY_1
 */
int gantry_queue_poll(struct gantry_queue *queue);

/*
 * gantry_queue_wait - poll until at least one IO has completed
 *
 * Spins for a short time, then sleeps. A signal does not end the wait. Calls `done` as
 * gantry_queue_poll() does.
 *
 * timeout_ms  longest wait in milliseconds; -1: no limit, except the timeout of each IO
 * returns     number of IOs that completed; 0: the timeout expired, or no IO is in flight
 * thread      the queue's
 * since       GANTRY_1
 */
int gantry_queue_wait(struct gantry_queue *queue, int timeout_ms);

/*
 * gantry_queue_fence - wait until no write of this queue that completed with -ETIMEDOUT can change
 * the volume any more
 *
 * A timeout does not stop an IO: the write can still change the volume later (a late write). The
 * library holds back overlapping writes of the same volume handle, on all queues. It cannot order
 * writes of other programs or other handles after the late write. Such writes are ordered after it
 * only if they are submitted when this call has returned 0, or when the session has ended and a new
 * session has started. Calls `done` as gantry_queue_poll() does.
 *
 * timeout_ms  longest wait in milliseconds; -1: no limit, except that the library ends the session
 *             after fence_timeout without an answer
 * returns     0: no such write can change the volume any more
 *     -ETIMEDOUT  some of these writes are still not answered
 *     -ENOTCONN   the session is lost: whether these writes took effect is unknown
 *     -ESTALE     the session could not resume, because the server now serves another volume
 *     -EBUSY      called from inside `done`
 *     -EINVAL     in a child of the process that opened the volume
 * thread      the queue's
 * since       GANTRY_1.1
 */
int gantry_queue_fence(struct gantry_queue *queue, int timeout_ms);

/*
 * gantry_queue_fd - get the fd of the queue, for event loops
 *
 * After gantry_queue_arm() has returned 0, the fd becomes readable when gantry_queue_poll() has
 * work. gantry_queue_poll() disarms it.
 *
 * returns   the fd, which the queue owns
 * thread    the queue's
 * since     GANTRY_1
 */
int gantry_queue_fd(const struct gantry_queue *queue);
/*
 * gantry_queue_arm - prepare to wait for the fd
 *
 * returns   0: wait for the fd. 1: call gantry_queue_poll() now, because there is work
 * thread    the queue's
 * since     GANTRY_1
 */
int gantry_queue_arm(struct gantry_queue *queue);

/* gantry_queue_inflight - get the number of IOs in flight. Thread: the queue's. Since GANTRY_1. */
uint32_t gantry_queue_inflight(const struct gantry_queue *queue);

/*
 * gantry_queue_copied_bytes - get how many bytes the library has copied for IO of this queue
 *
 * IO with buffers in exported memory is not copied. The results of gantry_queue_extents() count.
 *
 * returns   bytes since gantry_queue_open()
 * thread    the queue's
 * since     GANTRY_1.2
 */
uint64_t gantry_queue_copied_bytes(const struct gantry_queue *queue);

/*
 * gantry_error - get the text of the last error of a libgantry function on this thread
 *
 * returns   one line, valid until the next error on this thread
 * thread    any
 * since     GANTRY_1
 */
const char *gantry_error(void);

#ifdef __cplusplus
}
#endif

#endif
