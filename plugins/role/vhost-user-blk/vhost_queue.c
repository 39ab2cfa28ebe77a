/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vhost_queue.c - the queues of a device. Control thread.
 *
 * A queue is polled while its vring is started. It is drained before its vring stops, and before
 * the memory of its ring goes: see vhost_regions.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/virtio_blk.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "vhost.h"

/* memories that GET_INFLIGHT_FD creates for a front end, which can keep them: 8.4 MiB in all */
#define INFLIGHT_MAX 16u

/* -- start and stop -- */

struct change {
	struct vhost_queue *queue;
	const struct vhost_vring *vring;
};

static void change_on_lane(void *arg)
{
	const struct change *change = arg;
	struct vhost_queue *queue = change->queue;

	queue->call = change->vring->call;
	queue->err = change->vring->err;
	queue->is_enabled = change->vring->enabled && !queue->is_draining;
	/* an earlier descriptor, or none, may have missed requests that were returned */
	queue->wants_call = queue->ring.must_call = true;
}

static void change_queue(struct vhost_queue *queue)
{
	struct change change = {queue, &queue->role->device.vring[queue->index]};

	if (queue->is_polled)
		queue->role->rh->lane_call(queue->lane, change_on_lane, &change);
}

void *vhost_queue_inflight(const struct vhost_queue *queue)
{
	const struct vhost_role *role = queue->role;
	/* the driver can accept another kind of ring after SET_INFLIGHT_FD */
	const uint64_t bytes = vhost_inflight_bytes(role->inflight_num, role->device.features);

	if (!role->inflight || queue->index >= role->inflight_queues ||
	    role->device.vring[queue->index].num > role->inflight_num ||
	    (queue->index + 1) * bytes > role->inflight->length)
		return NULL;
	return (char *)role->inflight->addr + queue->index * bytes;
}

static bool is_eventfd(int fd)
{
	char path[64], name[32];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, name, sizeof(name) - 1);
	name[n > 0 ? n : 0] = '\0';
	return strcmp(name, "anon_inode:[eventfd]") == 0;
}

static bool is_stream(int fd)
{
	int domain = 0, type = 0;
	socklen_t bytes = sizeof(type);

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) == 0 && type == SOCK_STREAM &&
	       getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &bytes) == 0 && domain == AF_UNIX;
}

/*
 * The memory for requests in flight has a verifier for each queue after the rings. So a role that
 * is started again notices that the target may have lost writes of the guest meanwhile. It ends
 * with the configuration space of vhost_known.c.
 */
static uint64_t inflight_bytes(uint32_t queues, uint32_t num, uint64_t features)
{
	return queues * (vhost_inflight_bytes(num, features) + sizeof(uint64_t)) + VHOST_CONFIG_MAX;
}

/* Returns NULL if there is no memory for the verifier of the queue. */
static uint64_t *verifier_of(const struct vhost_queue *queue)
{
	const struct vhost_role *role = queue->role;
	const uint32_t queues = role->inflight_queues, num = role->inflight_num;
	const uint64_t features = role->device.features;
	uint64_t *verifiers;

	if (!vhost_queue_inflight(queue) || role->inflight->length < role->inflight_bytes)
		return NULL;
	verifiers = (uint64_t *)(void *)((char *)role->inflight->addr +
					 queues * vhost_inflight_bytes(num, features));
	if (__atomic_load_n(&verifiers[queue->index], __ATOMIC_RELAXED) == 0)
		__atomic_store_n(&verifiers[queue->index], role->volume.verifier, __ATOMIC_RELAXED);
	return &verifiers[queue->index];
}

int vhost_queue_start(struct vhost_queue *queue)
{
	struct vhost_role *role = queue->role;
	const struct vhost_vring *vring = &role->device.vring[queue->index];
	struct gantry_poller poller = vhost_lane_poller;
	int rc = vhost_ring_init(&queue->ring, vring, &role->memory, vhost_queue_inflight(queue),
				 role->device.features);

	if (rc != 0) {
		role->device.fault = queue->ring.fault;
		return rc;
	}
	if (!is_eventfd(vring->kick)) {
		role->device.fault = "descriptor is not an eventfd";
		return -EINVAL;
	}
	role->inflight_bytes = inflight_bytes(role->inflight_queues, role->inflight_num,
					      role->device.features);
	rc = vhost_known_check(role);
	if (rc != 0)
		return rc;
	queue->fua = (role->volume.ops & 1u << GANTRY_OP_FLUSH) != 0 &&
		     (role->device.features & 1u << VIRTIO_BLK_F_FLUSH) == 0;
	queue->verifier = verifier_of(queue);
	queue->memory = role->memory;
	queue->call = vring->call;
	queue->err = vring->err;
	queue->kick = vring->kick;
	queue->is_enabled = vring->enabled;
	queue->abandons = false;
	queue->wants_call = true; /* the guest may have missed an interrupt */
	poller.self = queue;
	rc = role->rh->poller_add(queue->lane, &poller);
	queue->is_polled = rc == 0;
	queue->is_suspended = false;
	if (rc != 0)
		role->device.fault = "the kick descriptor cannot be polled";
	return rc;
}

void vhost_queue_resume(struct vhost_queue *queue)
{
	struct vhost_role *role = queue->role;
	struct vhost_ring *ring = &queue->ring;
	uint16_t id;
	int rc = vhost_ring_init(ring, &role->device.vring[queue->index], &role->memory,
				 vhost_queue_inflight(queue), role->device.features);

	/* the lane would break the ring: read the requests here first, vhost_queue_start() again */
	while (rc == 0 && vhost_ring_has_resubmit(ring))
		if (vhost_ring_take(ring, &role->memory, &queue->chain, &id) < 0)
			rc = -EFAULT;
	if (rc == 0)
		rc = vhost_queue_start(queue);
	if (rc != 0 && !queue->is_suspended)
		gantry_log_info(role->host,
				"queue suspended until the guest memory changes: %s (queue=%u)",
				ring->fault, queue->index);
	queue->is_suspended = rc != 0;
}

static void drain_on_lane(void *arg)
{
	struct vhost_queue *queue = arg;

	queue->is_enabled = false;
	queue->reports_drained = true;
}

void vhost_queue_drain(struct vhost_queue *queue)
{
	if (!queue->is_polled || queue->is_draining)
		return;
	queue->is_draining = true;
	queue->role->rh->lane_call(queue->lane, drain_on_lane, queue);
}

static bool is_draining(const struct vhost_role *role)
{
	for (uint32_t i = 0; i < role->n_queues; i++)
		if (role->queues[i].is_draining)
			return true;
	return false;
}

/* Returns true if a queue that has stopped has lost a request. */
static bool has_lost(const struct vhost_role *role)
{
	for (uint32_t i = 0; i < role->n_queues; i++)
		if (!role->queues[i].is_polled && role->queues[i].has_lost)
			return true;
	return false;
}

void vhost_queue_drained(void *arg)
{
	struct vhost_queue *queue = arg;
	struct vhost_role *role = queue->role;

	role->rh->poller_remove(queue->lane, queue);
	queue->is_polled = queue->is_draining = false;
	role->device.vring[queue->index].base = vhost_ring_base(&queue->ring);
	if (role->step != VHOST_MEMORY_STABLE) {
		vhost_regions_advance(role);
	} else if (role->drains_queue && !is_draining(role)) {
		role->drains_queue = false;
		/* requests without an answer: a peer might still access their memory */
		role->device.fault = "requests were lost with the session";
		vhost_socket_continue(role, has_lost(role) ? -EPROTO : 0);
	}
}

/* -- regions that go -- */

static void use_on_lane(void *arg)
{
	struct vhost_queue *queue = arg;

	queue->memory = queue->role->memory;
}

void vhost_queue_use_memory(struct vhost_queue *queue)
{
	queue->role->rh->lane_call(queue->lane, use_on_lane, queue);
}

static bool is_ring_in(const struct vhost_queue *queue, const struct vhost_memory *one)
{
	const struct vhost_vring *vring = &queue->role->device.vring[queue->index];

	return vhost_memory_at(one, vring->desc, 1) || vhost_memory_at(one, vring->avail, 1) ||
	       vhost_memory_at(one, vring->used, 1);
}

void vhost_queue_vacate(struct vhost_queue *queue, uint32_t handle)
{
	struct vhost_vacate vacate = {.queue = queue};
	const struct vhost_memory *memory = &queue->role->memory;

	for (uint32_t i = 0; i < memory->n; i++) {
		struct vhost_memory *to = memory->region[i].handle == handle ? &vacate.going
									     : &vacate.staying;

		to->region[to->n++] = memory->region[i];
	}
	if (!queue->is_polled || queue->is_draining)
		return;
	if (is_ring_in(queue, &vacate.going)) {
		queue->is_suspended = true;
		vhost_queue_drain(queue);
		return;
	}
	queue->is_vacating = true;
	queue->role->rh->lane_call(queue->lane, vhost_lane_vacate, &vacate);
}

void vhost_queue_vacated(void *arg)
{
	struct vhost_queue *queue = arg;

	queue->is_vacating = false;
	vhost_regions_advance(queue->role);
}

/* -- actions of the device -- */

static struct vhost_role *role_of(struct vhost_device *device)
{
	return (struct vhost_role *)((char *)device - offsetof(struct vhost_role, device));
}

/*
 * The lane reads and writes the descriptors of a front end, and must not block: accept only
 * eventfds, and for interrupts and errors the stream sockets that user-mode Linux uses.
 */
static int check_eventfd(struct vhost_device *device, int fd)
{
	const int flags = fcntl(fd, F_GETFL);

	if ((is_eventfd(fd) || is_stream(fd)) && flags >= 0 &&
	    fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0)
		return 0;
	device->fault = "descriptor is not an eventfd";
	return -EINVAL;
}

static int vring(struct vhost_device *device, uint32_t index)
{
	struct vhost_role *role = role_of(device);
	struct vhost_queue *queue = &role->queues[index];

	if (!device->vring[index].started || queue->is_polled || queue->is_suspended) {
		change_queue(queue);
		return 0;
	}
	queue->is_broken = false;
	return vhost_queue_start(queue);
}

static int drain(struct vhost_device *device, uint32_t index)
{
	struct vhost_role *role = role_of(device);

	role->queues[index].is_suspended = false;
	if (!role->queues[index].is_polled)
		return 0;
	role->drains_queue = true;
	vhost_bound_start(role);
	vhost_queue_drain(&role->queues[index]);
	return -EINPROGRESS;
}

static int drain_all(struct vhost_device *device)
{
	struct vhost_role *role = role_of(device);

	for (uint32_t i = 0; i < role->n_queues; i++) {
		role->queues[i].is_suspended = false;
		role->drains_queue |= role->queues[i].is_polled;
		vhost_queue_drain(&role->queues[i]);
	}
	if (!role->drains_queue)
		return 0;
	vhost_bound_start(role);
	return -EINPROGRESS;
}

static bool is_started(const struct vhost_role *role)
{
	for (uint32_t i = 0; i < role->n_queues; i++)
		if (role->device.vring[i].started)
			return true;
	return false;
}

static void drop_offered(struct vhost_role *role)
{
	if (role->offered)
		role->rh->region_destroy(role->rh, role->offered, 1);
	role->offered = NULL;
}

/* Create role->offered. Returns 0 or -errno. */
static int make_offered(struct vhost_role *role, uint64_t bytes)
{
	if (role->n_offered == INFLIGHT_MAX)
		return -ENOSPC;
	role->n_offered++;
	drop_offered(role);
	return role->rh->region_create(role->rh, bytes, 0, &role->offered);
}

/*
 * The front end keeps the memory, so it outlives this process. It can ask for it again after each
 * reset of the guest, and gets the same memory, with zeroes, if no queue uses it.
 */
static int inflight_get(struct vhost_device *device, uint32_t queues, uint32_t num,
			uint64_t *bytes_p)
{
	struct vhost_role *role = role_of(device);
	const uint64_t bytes = inflight_bytes(queues, num, device->features);
	int fd, rc = 0;

	if (role->offered && role->offered_bytes == bytes && !is_started(role))
		vhost_known_clear(role->offered);
	else
		rc = make_offered(role, bytes);
	if (rc != 0)
		return rc;
	role->offered_bytes = bytes;
	*bytes_p = role->offered->length;
	fd = fcntl(role->offered->fd, F_DUPFD_CLOEXEC, 0);
	return fd < 0 ? -errno : fd;
}

static void drop_inflight(struct vhost_role *role)
{
	if (role->inflight)
		role->rh->region_destroy(role->rh, role->inflight, 1);
	role->inflight = NULL;
}

void vhost_queue_drop_inflight(struct vhost_role *role)
{
	drop_inflight(role);
	drop_offered(role);
	role->n_offered = 0;
}

static int inflight_set(struct vhost_device *device, struct vhost_message *m)
{
	struct vhost_role *role = role_of(device);
	const uint32_t queues = m->payload.inflight.queues, num = m->payload.inflight.num;
	const uint64_t bytes = m->payload.inflight.bytes;
	const char *why = "it is too small";
	int rc = -EINVAL;

	drop_inflight(role);
	if (bytes >= queues * vhost_inflight_bytes(num, device->features))
		rc = vhost_regions_map(role, m->fds[0], m->payload.inflight.offset, bytes,
				       &role->inflight, &why);
	if (rc != 0) {
		gantry_log_warn(role->host,
				"memory for requests in flight cannot be used (bytes=%llu): %s",
				(unsigned long long)bytes, why);
		device->fault = "memory for requests in flight cannot be used";
		return rc;
	}
	m->fds[0] = -1;
	role->inflight_num = num;
	role->inflight_queues = queues;
	role->inflight_bytes = inflight_bytes(queues, num, device->features);
	return 0;
}

const struct vhost_device_ops vhost_queue_ops = {.memory = vhost_regions_set,
						 .region_add = vhost_regions_add,
						 .region_remove = vhost_regions_remove,
						 .check_eventfd = check_eventfd,
						 .vring = vring,
						 .drain = drain,
						 .drain_all = drain_all,
						 .inflight_get = inflight_get,
						 .inflight_set = inflight_set,
						 .config = vhost_known_read};

/* -- open and close -- */

static int make_counters(struct vhost_queue *queue)
{
	const struct gantry_host *host = queue->role->host;
	struct vhost_counters *c = &queue->counters;

	c->requests = host->counter(host, "guest_requests_ops");
	c->failed = host->counter(host, "guest_failed_ops");
	c->lists = host->counter(host, "guest_lists_ops");
	c->bounced = host->counter(host, "guest_bounced_ops");
	c->bounced_bytes = host->counter(host, "guest_bounced_bytes");
	c->broken = host->counter(host, "guest_broken_rings");
	c->discards = host->counter(host, "guest_discards_ops");
	c->zeroes = host->counter(host, "guest_write_zeroes_ops");
	return c->requests && c->failed && c->lists && c->bounced && c->bounced_bytes &&
			       c->broken && c->discards && c->zeroes
		       ? 0
		       : -ENOMEM;
}

int vhost_queue_open(struct vhost_role *role, uint32_t index)
{
	struct vhost_queue *queue = &role->queues[index];
	const size_t depth = (size_t)role->conf->depth;

	queue->role = role;
	queue->index = index;
	queue->lane = role->rh->lane(role->rh, index);
	queue->kick = queue->call = queue->err = -1;
	vhost_list_init(&queue->waiting);
	vhost_list_init(&queue->doubtful);
	queue->ios = calloc(depth, sizeof(*queue->ios));
	queue->pieces = calloc(depth, sizeof(*queue->pieces));
	queue->requests = calloc(VHOST_RING_MAX, sizeof(*queue->requests));
	if (!queue->ios || !queue->pieces || !queue->requests)
		return -ENOMEM;
	for (uint32_t i = 0; i < VHOST_RING_MAX; i++) {
		queue->requests[i].next = queue->free;
		queue->free = &queue->requests[i];
	}
	return make_counters(queue);
}

void vhost_queue_close(struct vhost_queue *queue)
{
	free(queue->requests);
	free(queue->pieces);
	free(queue->ios);
}
