/* SPDX-License-Identifier: BSD-3-Clause */
/* rbd_lane.c - executes IO: requests, completions of librbd, and the IO that waits. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "../common/outcome.h"
#include "rbd.h"

static uint64_t now(const struct rbd_lane *lane)
{
	const struct gantry_host *host = lane->store->host;

	return host->now_ns(host);
}

/* EROFS: the client has lost the lock, which is no property of the volume. */
static enum gantry_status status_of(int err)
{
	return err == EROFS ? GANTRY_S_IO : outcome_status(err);
}

static void finish(struct rbd_lane *lane, struct rbd_request *r, enum gantry_status status)
{
	struct gantry_io *io = r->io;
	uint64_t ns = now(lane) - r->start_ns;

	if (status != GANTRY_S_OK)
		rbd_count(&lane->store->n_errors);
	io->hop_ns[GANTRY_HOP_BACKEND] = ns > UINT32_MAX ? UINT32_MAX : (uint32_t)ns;
	io->status = (uint16_t)status;
	r->io = NULL;
	r->next = lane->free;
	lane->free = r;
	gantry_complete(io);
}

static void append_held(struct rbd_lane *lane, struct rbd_request *r)
{
	if (!lane->held || r->end_ns < lane->held_end_ns)
		lane->held_end_ns = r->end_ns;
	r->next = NULL;
	*lane->last_p = r;
	lane->last_p = &r->next;
}

/*
 * Let the request wait for osd_op_timeout at most. It fails before the deadline of its IO, so that
 * the reply reaches the client in time.
 */
static void limit_wait(const struct rbd_lane *lane, struct rbd_request *r)
{
	const uint64_t limit = now(lane) + lane->store->conf->osd_op_timeout_ns;
	const uint64_t due = outcome_due_ns(r->io, lane->store->conf->osd_op_timeout_ns);

	r->end_ns = due < limit ? due : limit;
}

static void hold(struct rbd_lane *lane, struct rbd_request *r)
{
	limit_wait(lane, r);
	append_held(lane, r);
	rbd_count(&lane->store->n_held);
}

void rbd_lane_wake(struct rbd_lane *lane)
{
	/* see rbd_lane_arm() */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&lane->armed, __ATOMIC_RELAXED) &&
	    __atomic_exchange_n(&lane->armed, 0, __ATOMIC_RELAXED))
		eventfd_write(lane->event_fd, 1);
}

/* Returns true if a failure of the step can leave a write that is not finished. */
static int changes_image(const struct rbd_request *r)
{
	return gantry_op_writes(r->io->opcode) || r->io->opcode == GANTRY_OP_FLUSH;
}

void rbd_lane_push(struct rbd_request *r)
{
	struct rbd_lane *lane = r->lane;

	task_push(&lane->done, &r->task);
	rbd_lane_wake(lane);
	__atomic_fetch_sub(&lane->in_flight, 1, __ATOMIC_RELEASE);
}

/*
 * librbd has executed a step. A thread of librbd calls it; several can call it for one lane at the
 * same time.
 */
static void rbd_lane_done(rbd_completion_t completion, void *arg)
{
	struct rbd_request *r = arg;
	struct rbd_lane *lane = r->lane;
	int64_t result = rbd_aio_get_return_value(completion);

	rbd_aio_release(completion);
	if (!__atomic_exchange_n(&r->issued, 0, __ATOMIC_RELAXED)) {
		rbd_count(&lane->store->n_repeated);
		return;
	}
	r->result = result;
	if (result == -ETIMEDOUT)
		rbd_count(&lane->store->n_timeouts);
	if (result < 0 && changes_image(r))
		rbd_keeper_failed(lane->store, (int)-result);
	rbd_lane_push(r);
}

static int start_io(rbd_image_t image, const struct gantry_io *io, rbd_completion_t completion)
{
	const struct gantry_pieces *pieces = io->data;
	int list = (io->flags & GANTRY_IO_LIST) != 0;

	switch (io->opcode) {
	case GANTRY_OP_READ:
		return list ? rbd_aio_readv(image, pieces->piece, (int)pieces->count, io->offset,
					    completion)
			    : rbd_aio_read(image, io->offset, io->length, io->data, completion);
	case GANTRY_OP_WRITE:
		return list ? rbd_aio_writev(image, pieces->piece, (int)pieces->count, io->offset,
					     completion)
			    : rbd_aio_write(image, io->offset, io->length, io->data, completion);
	case GANTRY_OP_WRITE_ZEROES:
		return rbd_aio_write_zeroes(image, io->offset, io->length, completion, 0, 0);
	case GANTRY_OP_DISCARD:
		return rbd_aio_discard(image, io->offset, io->length, completion);
	default:
		return rbd_aio_flush(image, completion);
	}
}

/*
 * Submit the current step to librbd, or hold the request. The lane increments in_flight before it
 * reads the state. The keeper reads in_flight after the state has changed. So the keeper waits for
 * this request, or the lane does not use the image.
 */
static void issue(struct rbd_lane *lane, struct rbd_request *r)
{
	struct rbd_store *store = lane->store;
	rbd_completion_t completion;
	int state, rc;

	__atomic_fetch_add(&lane->in_flight, 1, __ATOMIC_SEQ_CST);
	state = rbd_state_get(store);
	if (gantry_unlikely(state != RBD_OPEN)) {
		__atomic_fetch_sub(&lane->in_flight, 1, __ATOMIC_RELEASE);
		if (state == RBD_LOST)
			finish(lane, r, GANTRY_S_IO);
		else
			hold(lane, r);
		return;
	}
	if (gantry_unlikely(r->io->opcode == GANTRY_OP_EXTENTS)) {
		limit_wait(lane, r);
		task_thread_add(&store->finder.thread, &r->task);
		return;
	}
	rc = rbd_aio_create_completion(r, rbd_lane_done, &completion);
	if (rc == 0) {
		__atomic_store_n(&r->issued, 1, __ATOMIC_RELEASE);
		rc = r->step == RBD_STEP_FLUSH ? rbd_aio_flush(store->client.image, completion)
					       : start_io(store->client.image, r->io, completion);
		if (rc == 0)
			return;
		__atomic_store_n(&r->issued, 0, __ATOMIC_RELEASE);
		rbd_aio_release(completion);
	}
	__atomic_fetch_sub(&lane->in_flight, 1, __ATOMIC_RELEASE);
	finish(lane, r, status_of(-rc));
}

/*
 * Evaluate the result of a step. A write with FUA is flushed before it completes: the cache of
 * librbd, if there is one, has no other way to write a single range through.
 */
static void step_done(struct rbd_lane *lane, struct rbd_request *r)
{
	const struct gantry_io *io = r->io;

	if (gantry_unlikely(r->result == RBD_NOT_EXECUTED)) {
		issue(lane, r);
	} else if (r->result < 0) {
		finish(lane, r, status_of((int)-r->result));
	} else if (io->opcode == GANTRY_OP_READ && r->result != (int64_t)io->length) {
		/* the image has become smaller */
		finish(lane, r, GANTRY_S_RANGE);
	} else if (r->step == RBD_STEP_IO && (io->flags & GANTRY_IO_FUA) &&
		   gantry_op_writes(io->opcode)) {
		r->step = RBD_STEP_FLUSH;
		issue(lane, r);
	} else {
		finish(lane, r, GANTRY_S_OK);
	}
}

int rbd_lane_submit(struct rbd_lane *lane, struct gantry_io *io)
{
	struct rbd_request *r = lane->free;

	if (!r)
		return -EAGAIN;
	if (gantry_op_writes(io->opcode) && lane->store->is_read_only) {
		gantry_fail(io, GANTRY_S_READ_ONLY);
		return 0;
	}
	if (io->opcode == GANTRY_OP_NOP) {
		io->status = GANTRY_S_OK;
		gantry_complete(io);
		return 0;
	}
	lane->free = r->next;
	r->io = io;
	r->step = RBD_STEP_IO;
	r->start_ns = now(lane);
	issue(lane, r);
	return 0;
}

/*
 * Issue the requests that wait if the state permits it; fail those that have waited too long. The
 * client may have repeated these, so they are not issued. issue() and finish() can hold new
 * requests, which wait for the next call.
 */
static int poll_held(struct rbd_lane *lane)
{
	struct rbd_request *r = lane->held, *next, *expired = NULL, **last_p = &expired;
	int is_fencing = rbd_state_get(lane->store) == RBD_FENCING, n = 0;
	uint64_t time = now(lane);

	if (is_fencing && time < lane->held_end_ns)
		return 0;
	lane->held = NULL;
	lane->last_p = &lane->held;
	for (; r; r = next) {
		next = r->next;
		if (time >= r->end_ns) {
			*last_p = r;
			last_p = &r->next;
		} else if (is_fencing) {
			append_held(lane, r);
		} else {
			issue(lane, r);
			n++;
		}
	}
	*last_p = NULL;
	for (r = expired; r; r = next, n++) {
		next = r->next;
		finish(lane, r, GANTRY_S_IO);
	}
	return n;
}

int rbd_lane_poll(struct rbd_lane *lane)
{
	struct task *task, *next;
	int n = 0;

	if (gantry_unlikely(lane->held != NULL))
		n = poll_held(lane);
	if (!task_is_waiting(&lane->done))
		return n;
	for (task = task_take_all(&lane->done); task; task = next, n++) {
		next = task->next;
		step_done(lane, rbd_request_of(task));
	}
	return n;
}

static void set_timer(struct rbd_lane *lane, uint64_t ns)
{
	const struct itimerspec timer = {.it_value = {.tv_sec = (time_t)(ns / 1000000000),
						      .tv_nsec = (long)(ns % 1000000000)}};

	timerfd_settime(lane->timer_fd, 0, &timer, NULL);
}

int rbd_lane_arm(struct rbd_lane *lane)
{
	__atomic_store_n(&lane->armed, 1, __ATOMIC_RELAXED);
	/*
	 * Another thread pushes a request or changes the state, and then reads `armed`. This thread
	 * sets `armed` and then reads both. With a fence on each side, at least one of the threads
	 * sees the store of the other.
	 */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (task_is_waiting(&lane->done))
		return 1;
	if (gantry_unlikely(lane->held != NULL)) {
		uint64_t end = lane->held_end_ns, time = now(lane);

		if (rbd_state_get(lane->store) != RBD_FENCING || time >= end)
			return 1;
		set_timer(lane, end - time);
	}
	return 0;
}

void rbd_lane_disarm(struct rbd_lane *lane)
{
	eventfd_t ignored;

	__atomic_store_n(&lane->armed, 0, __ATOMIC_RELAXED);
	eventfd_read(lane->event_fd, &ignored);
	if (gantry_unlikely(lane->held != NULL))
		set_timer(lane, 0);
}

static int open_fds(struct rbd_lane *lane)
{
	struct epoll_event event = {.events = EPOLLIN};

	lane->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	lane->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	lane->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (lane->event_fd < 0 || lane->timer_fd < 0 || lane->epoll_fd < 0 ||
	    epoll_ctl(lane->epoll_fd, EPOLL_CTL_ADD, lane->event_fd, &event) ||
	    epoll_ctl(lane->epoll_fd, EPOLL_CTL_ADD, lane->timer_fd, &event))
		return -errno;
	return 0;
}

static void free_lane(struct rbd_lane *lane)
{
	const int fds[] = {lane->event_fd, lane->timer_fd, lane->epoll_fd};

	for (unsigned i = 0; i < sizeof fds / sizeof *fds; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	free(lane->requests);
	free(lane);
}

int rbd_lane_create(struct rbd_store *store, uint32_t depth, struct rbd_lane **lane_p)
{
	struct rbd_lane *lane = gantry_zalloc_lines(sizeof *lane);
	uint32_t n = depth < 1 ? 1 : depth < RBD_MAX_REQUESTS ? depth : RBD_MAX_REQUESTS;
	int rc = -ENOMEM;

	if (!lane)
		return rc;
	lane->store = store;
	lane->event_fd = lane->timer_fd = lane->epoll_fd = -1;
	lane->last_p = &lane->held;
	lane->requests = gantry_zalloc_lines(n * sizeof *lane->requests);
	if (lane->requests)
		rc = open_fds(lane);
	if (rc) {
		free_lane(lane);
		return rc;
	}
	while (n-- > 0) {
		lane->requests[n].lane = lane;
		lane->requests[n].next = lane->free;
		lane->free = &lane->requests[n];
	}
	pthread_mutex_lock(&store->mutex);
	LIST_INSERT_HEAD(&store->lanes, lane, link);
	pthread_mutex_unlock(&store->mutex);
	*lane_p = lane;
	return 0;
}

void rbd_lane_destroy(struct rbd_lane *lane)
{
	/* the last instructions of a callback whose request is complete */
	while (__atomic_load_n(&lane->in_flight, __ATOMIC_ACQUIRE))
		sched_yield();
	pthread_mutex_lock(&lane->store->mutex);
	LIST_REMOVE(lane, link);
	pthread_mutex_unlock(&lane->store->mutex);
	free_lane(lane);
}
