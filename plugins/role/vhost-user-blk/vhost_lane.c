/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vhost_lane.c - polls a virtqueue. Lane's thread.
 *
 *      available --take--> request --submit--> IOs --complete--> answer --> used, interrupt
 *                             `--> waiting: no slot is free         `--> doubtful: a peer might
 *                                                                        still access the memory
 *
 * While the lane polls, the guest need not kick. Interrupts are sent once in each turn.
 */
#include <linux/virtio_blk.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "vhost.h"

#define TURN 32          /* limit of the requests that are taken in one turn */
#define DOUBT_NS 5000000 /* how often a lane that sleeps checks doubtful requests */

/* -- eventfds -- */

/*
 * The front end shares the open file description of an eventfd, and can remove O_NONBLOCK from it
 * at any time. So the lane does not rely on the flag.
 */

/*
 * Signal an eventfd or a socket. If it is full, a signal is pending, and the lane does not write.
 * The front end can still block the lane if it fills the descriptor between the two calls: the
 * kernel has no write to an eventfd that never blocks.
 */
static void signal_fd(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};

	/* POLLERR or POLLHUP: a socket that nothing reads any more */
	if (fd >= 0 && poll(&p, 1, 0) == 1 && p.revents == POLLOUT)
		eventfd_write(fd, 1);
}

/* Reset an eventfd. If the counter is 0, the read fails instead of blocking. */
static void reset_fd(int fd)
{
	eventfd_t value;
	struct iovec iov = {&value, sizeof(value)};

	(void)!preadv2(fd, &iov, 1, -1, RWF_NOWAIT);
}

/* -- lists -- */

void vhost_list_init(struct vhost_list *list)
{
	list->first = NULL;
	list->last_p = &list->first;
}

void vhost_list_add(struct vhost_list *list, struct vhost_request *request)
{
	request->next = NULL;
	*list->last_p = request;
	list->last_p = &request->next;
}

struct vhost_request *vhost_list_take(struct vhost_list *list)
{
	struct vhost_request *request = list->first;

	if (!request)
		return NULL;
	list->first = request->next;
	if (!list->first)
		list->last_p = &list->first;
	return request;
}

static void put_back(struct vhost_list *list, struct vhost_request *request)
{
	request->next = list->first;
	if (!list->first)
		list->last_p = &request->next;
	list->first = request;
}

/* -- answers -- */

static uint8_t status_of(const struct vhost_request *request)
{
	return request->status == GANTRY_S_OK            ? VIRTIO_BLK_S_OK
	       : request->status == GANTRY_S_UNSUPPORTED ? VIRTIO_BLK_S_UNSUPP
							 : VIRTIO_BLK_S_IOERR;
}

/*
 * Returns the length for the used ring: the bytes that the device has written, from the first on.
 * The status byte counts if no byte before it was left out.
 */
static uint32_t written(const struct vhost_request *request)
{
	const bool has_data = request->opcode == GANTRY_OP_READ && request->status == GANTRY_S_OK;
	const uint64_t bytes = has_data ? request->done : 0;

	return (uint32_t)(bytes + (bytes == request->in_bytes));
}

/* Forget a request, whether the guest got an answer or not. */
static void release(struct vhost_queue *queue, struct vhost_request *request)
{
	queue->busy[request->id] = 0;
	queue->n_vacating -= request->is_vacating;
	request->is_taken = request->is_vacating = request->is_abandoned = 0;
	request->next = queue->free;
	queue->free = request;
	queue->n_requests--;
}

/* The guest has got the error of a flush: the loss of earlier writes is reported. */
static void note_loss_reported(const struct vhost_queue *queue)
{
	if (queue->verifier)
		__atomic_store_n(queue->verifier,
				 __atomic_load_n(&queue->role->volume.verifier, __ATOMIC_RELAXED),
				 __ATOMIC_RELEASE);
}

void vhost_lane_answer(struct vhost_queue *queue, struct vhost_request *request)
{
	if (gantry_unlikely(request->is_abandoned)) {
		release(queue, request);
		return;
	}
	if (gantry_unlikely(request->reports_loss) && request->status == GANTRY_S_OK)
		request->status = GANTRY_S_IO;
	gantry_count(queue->counters.requests, 1);
	if (request->status != GANTRY_S_OK)
		gantry_count(queue->counters.failed, 1);
	if (!queue->is_broken && !request->is_lost) {
		__atomic_store_n(request->status_addr, status_of(request), __ATOMIC_RELAXED);
		vhost_ring_put(&queue->ring, request->id, written(request));
		queue->wants_call = true;
		/* after the answer: if this process ends in between, a later flush fails, too */
		if (request->status != GANTRY_S_OK && request->opcode == GANTRY_OP_FLUSH)
			note_loss_reported(queue);
	}
	if (gantry_unlikely(request->is_lost) && !queue->has_lost) {
		queue->has_lost = true;
		queue->role->rh->post(queue->role->rh, vhost_role_request_lost, queue->role);
	}
	release(queue, request);
}

/*
 * All IOs of a request have completed. The guest may use its memory after the answer, so a request
 * whose memory a peer might still access waits.
 */
static void end(struct vhost_queue *queue, struct vhost_request *request)
{
	if (request->is_doubtful && !request->is_lost && !request->is_abandoned &&
	    queue->engine->n_doubtful != 0)
		vhost_list_add(&queue->doubtful, request);
	else
		vhost_lane_answer(queue, request);
}

void vhost_lane_complete(void *engine_queue, struct gantry_io *io)
{
	struct gantry_engine_queue *engine = engine_queue;
	struct vhost_queue *queue = engine->user;
	struct vhost_request *request;

	if (gantry_engine_completed(engine, io))
		return;
	request = queue->ios[io->slot].request;
	request->is_abandoned |= queue->is_reclaiming;
	vhost_request_io_done(queue, io);
	gantry_engine_put(engine, io);
	if (request->n_ios == 0 && request->is_submitted)
		end(queue, request);
}

static void settle(struct vhost_queue *queue)
{
	struct vhost_request *request;

	if (gantry_likely(!queue->doubtful.first) ||
	    (queue->engine->up && queue->engine->n_doubtful != 0))
		return;
	while ((request = vhost_list_take(&queue->doubtful))) {
		/* without a session no event reports when peers release the memory */
		request->is_lost |= !queue->engine->up;
		vhost_lane_answer(queue, request);
	}
}

/* -- requests -- */

static __attribute__((noinline)) void break_ring(struct vhost_queue *queue)
{
	const struct vhost_ring *ring = &queue->ring;

	queue->is_broken = true;
	gantry_count(queue->counters.broken, 1);
	queue->role->rh->post(queue->role->rh, vhost_role_ring_broken, queue->role);
	signal_fd(queue->err);
	gantry_log_warn(queue->role->host,
			"queue stopped: invalid ring: %s (queue=%u, %s=%llu): reset the device in "
			"the guest",
			ring->fault, queue->index, ring->fault_key,
			(unsigned long long)ring->fault_value);
}

/* Returns a request of the guest; NULL: there is none, or the ring is broken. */
static struct vhost_request *take(struct vhost_queue *queue)
{
	struct vhost_request *request = queue->free;
	uint16_t id;
	int rc = vhost_ring_take(&queue->ring, &queue->memory, &queue->chain, &id);

	if (rc == 0)
		return NULL;
	if (rc > 0 && (queue->busy[id] || !request))
		rc = vhost_ring_broken(&queue->ring, "descriptor is in use by another request",
				       "descriptor", id);
	if (rc < 0) {
		break_ring(queue);
		return NULL;
	}
	queue->free = request->next;
	queue->busy[id] = 1;
	queue->n_requests++;
	request->id = id;
	request->is_taken = 1;
	request->is_submitted = request->is_doubtful = request->is_lost = 0;
	request->reports_loss = 0;
	request->status = GANTRY_S_OK;
	request->n_ios = request->n = request->at = request->skip = 0;
	request->offset = request->bytes = request->done = 0;
	return request;
}

/* Submit a request. Returns false: the request waits for a slot. */
static bool submit(struct vhost_queue *queue, struct vhost_request *request)
{
	if (!vhost_request_submit(queue, request))
		return false;
	if (request->n_ios == 0)
		end(queue, request);
	return true;
}

/*
 * The session has ended, so slots in quarantine stay there: end requests that wait for a slot. The
 * guest gets no answer to them.
 */
static int end_waiting(struct vhost_queue *queue)
{
	struct vhost_request *request;
	int n = 0;

	for (; (request = vhost_list_take(&queue->waiting)); n++) {
		request->is_lost = request->is_submitted = 1;
		request->status = GANTRY_S_SESSION_LOST;
		if (request->n_ios == 0)
			end(queue, request);
	}
	return n;
}

static int submit_waiting(struct vhost_queue *queue)
{
	int n = 0;

	if (gantry_unlikely(!queue->engine->up))
		return end_waiting(queue);
	while (queue->waiting.first && queue->engine->n_free != 0) {
		struct vhost_request *request = vhost_list_take(&queue->waiting);

		if (!submit(queue, request)) {
			put_back(&queue->waiting, request);
			break;
		}
		n++;
	}
	return n;
}

/* Forget a request that the guest gets no answer to. */
static void forget(struct vhost_queue *queue, struct vhost_request *request)
{
	request->is_abandoned = request->is_submitted = 1;
	if (request->n_ios == 0)
		release(queue, request);
}

/*
 * Take back the IOs in flight when no peer can access the memory any more, and forget their
 * requests. A request with an IO that a stage holds is forgotten when that completes.
 */
static int abandon_requests(struct vhost_queue *queue)
{
	struct vhost_request *request;
	int n;

	queue->is_reclaiming = true;
	n = queue->engine->ops->reclaim(queue->engine);
	queue->is_reclaiming = false;
	if (n < 0)
		return 0;
	while ((request = vhost_list_take(&queue->waiting)))
		forget(queue, request);
	while ((request = vhost_list_take(&queue->doubtful)))
		forget(queue, request);
	return n;
}

void vhost_lane_abandon(void *arg)
{
	struct vhost_queue *queue = arg;

	queue->abandons = true;
}

/*
 * Returns true if the queue may take a request. A queue that drains still takes those that an
 * earlier process left in flight, because the base of a stopped vring counts them as taken.
 */
static bool may_take(const struct vhost_queue *queue)
{
	return queue->is_enabled || (queue->reports_drained && !queue->abandons &&
				     vhost_ring_has_resubmit(&queue->ring));
}

/* Returns true if the queue drains, and is drained. */
static bool is_drained(const struct vhost_queue *queue)
{
	return queue->reports_drained && queue->n_requests == 0 &&
	       (queue->is_broken || queue->abandons || !vhost_ring_has_resubmit(&queue->ring));
}

static int take_requests(struct vhost_queue *queue)
{
	int n = 0;

	while (n < TURN && may_take(queue) && !queue->is_broken && !queue->waiting.first) {
		struct vhost_request *request = take(queue);
		int rc;

		if (!request)
			break;
		n++;
		rc = vhost_request_init(queue, request);
		if (rc < 0) {
			break_ring(queue);
			release(queue, request);
		} else if (rc > 0) {
			vhost_lane_answer(queue, request);
		} else if (!submit(queue, request)) {
			vhost_list_add(&queue->waiting, request);
		}
	}
	return n;
}

static void call(struct vhost_queue *queue)
{
	queue->wants_call = false;
	if (vhost_ring_wants_call(&queue->ring)) /* also for requests before the ring broke */
		signal_fd(queue->call);
}

/* -- a region that goes -- */

static bool uses(const struct vhost_request *request, const struct vhost_region *region)
{
	/* the rest of its ring memory was read when the request was taken */
	if ((uintptr_t)request->status_addr - (uintptr_t)region->addr < region->bytes)
		return true;
	for (uint32_t i = 0; i < request->n; i++)
		if (request->piece[i].handle == region->handle)
			return true;
	return false;
}

void vhost_lane_vacate(void *arg)
{
	const struct vhost_vacate *vacate = arg;
	struct vhost_queue *queue = vacate->queue;

	queue->memory = vacate->staying;
	queue->reports_vacated = true;
	for (uint32_t i = 0; i < VHOST_RING_MAX; i++) {
		struct vhost_request *request = &queue->requests[i];

		if (!request->is_taken || !uses(request, &vacate->going.region[0]))
			continue;
		request->is_vacating = 1;
		queue->n_vacating++;
	}
}

static bool is_vacated(const struct vhost_queue *queue)
{
	return queue->reports_vacated && queue->n_vacating == 0;
}

/* -- the poller -- */

static int poll_queue(void *self)
{
	struct vhost_queue *queue = self;
	const struct gantry_role_host *rh = queue->role->rh;
	int n = gantry_engine_poll(queue->engine);

	if (gantry_unlikely(queue->abandons))
		n += abandon_requests(queue);
	n += submit_waiting(queue);
	n += take_requests(queue);
	settle(queue);
	if (queue->wants_call)
		call(queue);
	if (gantry_unlikely(is_vacated(queue))) {
		queue->reports_vacated = false;
		rh->post(rh, vhost_queue_vacated, queue);
		n++;
	}
	if (gantry_unlikely(is_drained(queue))) {
		queue->reports_drained = false;
		rh->post(rh, vhost_queue_drained, queue);
		n++;
	}
	return n;
}

static int arm(void *self)
{
	struct vhost_queue *queue = self;

	if (queue->wants_call || is_drained(queue) || is_vacated(queue))
		return 1;
	if (!queue->is_enabled || queue->is_broken)
		return 0;
	/* no request is taken while others wait for a slot: sleep until an IO completes */
	if (queue->waiting.first)
		return queue->engine->n_free != 0 || !queue->engine->up;
	queue->is_armed = true;
	return vhost_ring_notify(&queue->ring, true);
}

static void disarm(void *self)
{
	struct vhost_queue *queue = self;

	reset_fd(queue->kick); /* also if the queue is stopped */
	if (queue->is_armed && !queue->is_broken)
		vhost_ring_notify(&queue->ring, false);
	queue->is_armed = false;
}

static uint64_t wake_ns(void *self)
{
	const struct vhost_queue *queue = self;

	return queue->doubtful.first ? queue->lane->now_ns + DOUBT_NS : 0;
}

static int fd(void *self)
{
	const struct vhost_queue *queue = self;

	return queue->kick;
}

const struct gantry_poller vhost_lane_poller = {
	.poll = poll_queue, .arm = arm, .disarm = disarm, .wake_ns = wake_ns, .fd = fd};
