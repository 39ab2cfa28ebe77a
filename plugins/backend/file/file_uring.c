/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file_uring.c - engine on io_uring, with one ring for each lane.
 *
 * The lane collects entries and submits them at the next poll. It submits them immediately when the
 * pending entries are at least as many as the entries in flight. So an idle disk starts
 * immediately, and a busy disk gets a growing batch for each system call. IO on a file in the page
 * cache completes during the system call, so one call is enough.
 *
 * The eventfd of the ring is enabled only between arm and disarm, so that the kernel does not write
 * to it for a lane that polls.
 */
#include <errno.h>
#include <liburing.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "file.h"

#define BATCH 32u
/* number of operations to probe: greater than the highest operation that has_operations() needs */
#define PROBED 64u

struct ring {
	struct io_uring uring;
	int event_fd;
	/* executes steps for which io_uring has no operation; not started for a block device */
	struct file_finder finder;
	int fd; /* descriptor of the store, or its index in the ring if it is registered */
	/*
	 * IOSQE_FIXED_FILE if the descriptor is registered, which saves a lookup and a reference
	 * for each IO
	 */
	unsigned fd_flags;
	uint32_t n_pending;   /* entries not yet submitted to the kernel */
	uint32_t n_in_flight; /* entries submitted and not completed */
};

static int has_operations(struct io_uring *uring)
{
	static const int needed[] = {IORING_OP_READ, IORING_OP_WRITE, IORING_OP_FSYNC,
				     IORING_OP_FALLOCATE};
	union {
		struct io_uring_probe head;
		uint8_t bytes[sizeof(struct io_uring_probe) +
			      PROBED * sizeof(struct io_uring_probe_op)];
	} probe = {.bytes = {0}};
	int all = io_uring_register_probe(uring, &probe.head, PROBED) == 0;

	for (unsigned i = 0; all && i < sizeof needed / sizeof *needed; i++)
		all = io_uring_opcode_supported(&probe.head, needed[i]);
	return all;
}

/*
 * With cooperative task runs the kernel processes completions when the lane enters the kernel,
 * instead of interrupting the lane. Kernels before 5.19 reject the flags.
 */
static int make_ring(unsigned n, struct io_uring *uring)
{
	int rc = io_uring_queue_init(n, uring,
				     IORING_SETUP_SUBMIT_ALL | IORING_SETUP_COOP_TASKRUN |
					     IORING_SETUP_TASKRUN_FLAG);

	return rc == -EINVAL ? io_uring_queue_init(n, uring, 0) : rc;
}

static int uring_start(struct file_lane *lane)
{
	struct ring *ring = gantry_zalloc_lines(sizeof *ring);
	int rc;

	if (!ring)
		return -ENOMEM;
	rc = make_ring(lane->n_requests, &ring->uring);
	if (rc)
		goto out_undo_alloc;
	rc = -ENOSYS;
	if (!has_operations(&ring->uring))
		goto out_undo_ring;
	ring->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (ring->event_fd < 0) {
		rc = -errno;
		goto out_undo_ring;
	}
	rc = io_uring_register_eventfd(&ring->uring, ring->event_fd);
	if (rc)
		goto out_undo_eventfd;
	rc = io_uring_cq_eventfd_toggle(&ring->uring, false);
	if (rc)
		goto out_undo_eventfd;
	ring->finder = (struct file_finder){.store = lane->store, .event_fd = ring->event_fd};
	rc = lane->store->is_device ? 0 : file_finder_start(&ring->finder);
	if (rc)
		goto out_undo_eventfd;
	ring->fd_flags = io_uring_register_files(&ring->uring, &lane->store->fd, 1)
				 ? 0
				 : IOSQE_FIXED_FILE;
	ring->fd = ring->fd_flags ? 0 : lane->store->fd;
	lane->engine = ring;
	return 0;

out_undo_eventfd:
	close(ring->event_fd);
out_undo_ring:
	io_uring_queue_exit(&ring->uring);
out_undo_alloc:
	free(ring);
	return rc;
}

static void uring_stop(struct file_lane *lane)
{
	struct ring *ring = lane->engine;

	if (!lane->store->is_device)
		task_thread_stop(&ring->finder.thread);
	/*
	 * The kernel tears down a ring in the background. Until then a ring that still has the
	 * file keeps a device open with O_EXCL, and the next owner gets EBUSY.
	 */
	if (ring->fd_flags)
		io_uring_unregister_files(&ring->uring);
	io_uring_queue_exit(&ring->uring);
	close(ring->event_fd);
	free(ring);
	lane->engine = NULL;
}

/*
 * Entries that the kernel does not accept now (-EAGAIN, -EBUSY, -EINTR) stay in the ring for the
 * next poll.
 */
static void flush_pending(struct ring *ring)
{
	int rc = io_uring_submit(&ring->uring);
	uint32_t n = rc <= 0 ? 0 : (uint32_t)rc < ring->n_pending ? (uint32_t)rc : ring->n_pending;

	ring->n_pending -= n;
	ring->n_in_flight += n;
}

static void fill(struct io_uring_sqe *sqe, const struct ring *ring, const struct file_request *r)
{
	int fd = ring->fd;

	switch (r->step) {
	case FILE_STEP_READ:
		io_uring_prep_read(sqe, fd, r->data, r->length, r->offset);
		break;
	case FILE_STEP_WRITE:
		io_uring_prep_write(sqe, fd, r->data, r->length, r->offset);
		if (r->stable)
			sqe->rw_flags = RWF_DSYNC;
		break;
	case FILE_STEP_ALLOCATE:
		io_uring_prep_fallocate(sqe, fd, r->mode, (off_t)r->offset, (off_t)r->length);
		break;
	default:
		io_uring_prep_fsync(sqe, fd, IORING_FSYNC_DATASYNC);
		break;
	}
	io_uring_sqe_set_flags(sqe, ring->fd_flags);
	io_uring_sqe_set_data(sqe, (void *)r);
}

/*
 * Returns true if the pending entries must be submitted now. While a completion is waiting, the
 * next poll submits the entries anyway.
 */
static int must_submit(const struct ring *ring)
{
	return ring->n_pending >= BATCH ||
	       (ring->n_pending >= ring->n_in_flight && io_uring_cq_ready(&ring->uring) == 0);
}

static void uring_issue(struct file_lane *lane, struct file_request *request)
{
	struct ring *ring = lane->engine;
	struct io_uring_sqe *sqe;

	if (request->step == FILE_STEP_EXTENTS) {
		task_thread_add(&ring->finder.thread, &request->task);
		return;
	}
	sqe = io_uring_get_sqe(&ring->uring);
	if (!sqe) { /* not expected: the ring has an entry for each request */
		file_step_done(lane, request, -ENOMEM);
		return;
	}
	fill(sqe, ring, request);
	ring->n_pending++;
	if (must_submit(ring))
		flush_pending(ring);
}

/* Complete the requests that the finder has executed. Returns how many. */
static unsigned take_found(struct file_lane *lane, struct ring *ring)
{
	struct task *next, *task = task_take_all(&ring->finder.done);
	unsigned n = 0;

	for (; task; task = next, n++) {
		struct file_request *request = file_request_of(task);

		next = task->next;
		file_step_done(lane, request, request->result);
	}
	return n;
}

static int uring_poll(struct file_lane *lane)
{
	struct ring *ring = lane->engine;
	struct io_uring_cqe *cqes[BATCH];
	unsigned n, n_found = 0;

	if (gantry_unlikely(task_is_waiting(&ring->finder.done)))
		n_found = take_found(lane, ring);
	if (ring->n_pending)
		flush_pending(ring);
	n = io_uring_peek_batch_cqe(&ring->uring, cqes, BATCH);
	for (unsigned i = 0; i < n; i++) {
		struct file_request *request = io_uring_cqe_get_data(cqes[i]);
		int result = cqes[i]->res;

		io_uring_cqe_seen(&ring->uring, cqes[i]);
		ring->n_in_flight--;
		if (file_step_done(lane, request, result))
			uring_issue(lane, request);
	}
	return (int)(n + n_found);
}

static void uring_disarm(struct file_lane *lane)
{
	struct ring *ring = lane->engine;
	eventfd_t ignored;

	io_uring_cq_eventfd_toggle(&ring->uring, false);
	eventfd_read(ring->event_fd, &ignored);
}

static int uring_arm(struct file_lane *lane)
{
	struct ring *ring = lane->engine;

	io_uring_cq_eventfd_toggle(&ring->uring, true);
	/*
	 * The kernel posts a completion and then reads the flag. This side sets the flag and then
	 * reads the ring. With this fence, at least one of the two sees the store of the other.
	 */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return ring->n_pending || io_uring_cq_ready(&ring->uring) ||
	       task_is_waiting(&ring->finder.done);
}

static int uring_fd(struct file_lane *lane)
{
	struct ring *ring = lane->engine;

	return ring->event_fd;
}

const struct file_engine file_engine_uring = {
	.name = "uring",
	.start = uring_start,
	.issue = uring_issue,
	.poll = uring_poll,
	.arm = uring_arm,
	.disarm = uring_disarm,
	.fd = uring_fd,
	.stop = uring_stop,
};
