/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vhost_queue.c - the queues of a device, and its guest memory. Control thread.
 *
 * A queue is polled while its vring is started. It is drained before its vring stops, and before
 * the guest memory changes:
 *
 *      SET_MEM_TABLE -> map the new regions -> allocate their pages -> drain all queues
 *                    -> unexport the old regions -> export the new regions -> start the queues
 *                    -> answer
 *
 * So no peer accesses the old memory when SET_MEM_TABLE is answered.
 *
 * Peers reject a memfd that lacks pages, also outside the mapped regions. So the role allocates the
 * pages of the whole file.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/virtio_blk.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gantry/memfd.h>

#include "vhost.h"

/*
 * Bytes allocated in one turn of the control thread. The kernel needs up to a second to clear a
 * GiB, and between the parts the control thread must send heartbeats.
 */
#define ALLOCATE_STEP (16ull << 20)

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

/* Returns the memory for the requests in flight of a queue; NULL: there is none. */
static struct vhost_inflight *inflight_of(const struct vhost_queue *queue)
{
	const struct vhost_role *role = queue->role;

	if (!role->inflight || queue->index >= role->inflight_queues ||
	    role->device.vring[queue->index].num > role->inflight_num)
		return NULL;
	return (struct vhost_inflight *)(void *)((char *)role->inflight->addr +
						 queue->index *
							 vhost_inflight_bytes(role->inflight_num));
}

/*
 * The memory for requests in flight has a verifier for each queue after the rings. So a role that
 * is started again notices that the target may have lost writes of the guest meanwhile.
 */
static uint64_t inflight_bytes(uint32_t queues, uint32_t num)
{
	return queues * (vhost_inflight_bytes(num) + sizeof(uint64_t));
}

/* Returns NULL if there is no memory for the verifier of the queue. */
static uint64_t *verifier_of(const struct vhost_queue *queue)
{
	const struct vhost_role *role = queue->role;
	const uint32_t queues = role->inflight_queues, num = role->inflight_num;
	uint64_t *verifiers;

	if (!inflight_of(queue) || role->inflight->length < inflight_bytes(queues, num))
		return NULL;
	verifiers = (uint64_t *)(void *)((char *)role->inflight->addr +
					 queues * vhost_inflight_bytes(num));
	if (__atomic_load_n(&verifiers[queue->index], __ATOMIC_RELAXED) == 0)
		__atomic_store_n(&verifiers[queue->index], role->volume.verifier, __ATOMIC_RELAXED);
	return &verifiers[queue->index];
}

/* Start to poll the virtqueue. Returns 0 or -errno, with the fault of the device. */
static int start_queue(struct vhost_queue *queue)
{
	struct vhost_role *role = queue->role;
	const struct vhost_vring *vring = &role->device.vring[queue->index];
	struct gantry_poller poller = vhost_lane_poller;
	int rc = vhost_ring_init(&queue->ring, vring, &role->memory, inflight_of(queue),
				 (role->device.features & 1ull << VIRTIO_RING_F_EVENT_IDX) != 0);

	if (rc != 0) {
		role->device.fault = "a part of the ring is misaligned or not in one region";
		return rc;
	}
	queue->fua = (role->volume.ops & 1u << GANTRY_OP_FLUSH) != 0 &&
		     (role->device.features & 1u << VIRTIO_BLK_F_FLUSH) == 0;
	queue->verifier = verifier_of(queue);
	queue->memory = role->memory;
	queue->call = vring->call;
	queue->err = vring->err;
	queue->kick = vring->kick;
	queue->is_enabled = vring->enabled;
	queue->wants_call = true; /* the guest may have missed an interrupt */
	poller.self = queue;
	rc = role->rh->poller_add(queue->lane, &poller);
	queue->is_polled = rc == 0;
	if (rc != 0)
		role->device.fault = "the kick descriptor cannot be polled";
	return rc;
}

static void drain_on_lane(void *arg)
{
	struct vhost_queue *queue = arg;

	queue->is_enabled = false;
	queue->reports_drained = true;
}

static void drain_queue(struct vhost_queue *queue)
{
	if (!queue->is_polled || queue->is_draining)
		return;
	queue->is_draining = true;
	queue->role->rh->lane_call(queue->lane, drain_on_lane, queue);
}

/* -- guest memory -- */

static void drop_regions(struct vhost_role *role, struct gantry_region **region, uint32_t *n_p)
{
	for (uint32_t i = 0; i < *n_p; i++)
		role->rh->region_destroy(role->rh, region[i], 1);
	*n_p = 0;
}

static void log_memory(const struct vhost_role *role, uint32_t index,
		       const struct vhost_msg_region *region, int rc, const char *why)
{
	gantry_log_error(
		role->host,
		"guest memory rejected: %s (region=%u, gpa=0x%llx, bytes=%llu): %s: use -object "
		"memory-backend-memfd,share=on,seal=on",
		why, index, (unsigned long long)region->gpa, (unsigned long long)region->bytes,
		strerror(-rc));
}

/*
 * Map memory of a descriptor. A process that can write to memory can punch holes into it, and an
 * access to a hole in huge pages raises SIGBUS if no huge page is free. So huge pages of another
 * user are rejected. Parameters as region_map.
 */
static int map_region(const struct vhost_role *role, int fd, uint64_t offset, uint64_t bytes,
		      struct gantry_region **region_p, const char **why_p)
{
	*why_p = "huge pages of another user, who can free them";
	if (role->is_foreign && gantry_memfd_is_huge(fd) > 0)
		return -EPERM;
	return role->rh->region_map(role->rh, fd, offset, bytes, region_p, why_p);
}

/* Map the regions of a message. Returns 0; or -errno, and some are mapped; logs the cause. */
static int map_regions(struct vhost_role *role, struct vhost_message *m)
{
	struct vhost_memory *memory = &role->next_memory;

	for (uint32_t i = 0; i < m->payload.memory.count; i++) {
		const struct vhost_msg_region *from = &m->payload.memory.region[i];
		const char *why;
		int rc = map_region(role, m->fds[i], from->offset, from->bytes,
				    &role->next_region[i], &why);

		if (rc != 0) {
			log_memory(role, i, from, rc, why);
			return rc;
		}
		m->fds[i] = -1;
		memory->region[i] = (struct vhost_region){.gpa = from->gpa,
							  .bytes = from->bytes,
							  .uva = from->uva,
							  .addr = role->next_region[i]->addr,
							  .handle = VHOST_FIRST_HANDLE + i};
		memory->n = i + 1;
	}
	return 0;
}

/* Returns a + b; UINT64_MAX: the sum is larger. */
static uint64_t sum(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

/* Returns true if an earlier region is in the same file. */
static bool has_earlier_region(const struct vhost_role *role, uint32_t index, const struct stat *st)
{
	struct stat other;

	for (uint32_t i = 0; i < index; i++)
		if (fstat(role->next_region[i]->fd, &other) == 0 && other.st_dev == st->st_dev &&
		    other.st_ino == st->st_ino)
			return true;
	return false;
}

/*
 * Compare each new region with what the peer accepts when the old regions are released, and their
 * files, whose pages are to be allocated, with that for all regions. Returns 0 or -errno; logs the
 * cause.
 */
static int check_limit(const struct vhost_role *role)
{
	uint64_t limit = role->rh->engine->export_limit(role->engine), largest = 0, files = 0,
		 all = 0;
	struct stat st;

	for (uint32_t i = 0; i < role->memory.n; i++)
		limit = sum(limit, role->memory.region[i].bytes);
	for (uint32_t i = 0; i < role->next_memory.n; i++) {
		uint64_t bytes = role->next_memory.region[i].bytes;

		if (fstat(role->next_region[i]->fd, &st))
			return -errno;
		largest = bytes > largest ? bytes : largest;
		all = sum(all, limit);
		if (!has_earlier_region(role, i, &st))
			files = sum(files, (uint64_t)st.st_size);
	}
	if (largest <= limit && files <= all)
		return 0;
	gantry_log_error(role->host,
			 "guest memory rejected: larger than a server accepts (regions=%u, "
			 "largest=%llu, files=%llu, limit=%llu): raise max_region_bytes "
			 "or max_bytes of the devices, or give the virtual machine less memory",
			 role->next_memory.n, (unsigned long long)largest,
			 (unsigned long long)files, (unsigned long long)limit);
	return -E2BIG;
}

static bool is_draining(const struct vhost_role *role)
{
	for (uint32_t i = 0; i < role->n_queues; i++)
		if (role->queues[i].is_draining)
			return true;
	return false;
}

static void unexport_all(struct vhost_role *role)
{
	role->step = VHOST_MEMORY_UNEXPORT;
	for (uint32_t i = 0; i < role->memory.n; i++)
		if (role->rh->engine->region_unexport(role->engine,
						      role->memory.region[i].handle) == 0)
			role->n_pending++;
}

static void export_all(struct vhost_role *role)
{
	role->step = VHOST_MEMORY_EXPORT;
	role->memory_rc = 0;
	role->memory = role->next_memory;
	memcpy(role->region, role->next_region, sizeof(role->region));
	role->next_memory.n = 0;
	for (uint32_t i = 0; i < role->memory.n; i++) {
		const struct vhost_region *region = &role->memory.region[i];
		int rc = role->rh->engine->region_export(role->engine, role->region[i],
							 region->handle);

		if (rc == 0) {
			role->n_pending++;
			continue;
		}
		if (rc == -E2BIG)
			gantry_log_error(role->host,
					 "guest memory is too large (region=%u, bytes=%llu): raise "
					 "max_region_bytes of the server and max_bytes of the "
					 "devices, or give the virtual machine less memory",
					 i, (unsigned long long)region->bytes);
		role->device.fault = "the guest memory cannot be exported";
		role->memory_rc = rc;
	}
}

/*
 * The new memory can be used: start the queues. The old memory is released, so after a failure no
 * queue can run: end the connection.
 */
static void finish_memory(struct vhost_role *role)
{
	int rc = role->memory_rc;

	role->step = VHOST_MEMORY_STABLE;
	for (uint32_t i = 0; i < role->n_queues && rc == 0; i++)
		if (role->device.vring[i].started)
			rc = start_queue(&role->queues[i]);
	vhost_socket_continue(role, rc != 0 ? -EPROTO : 0);
}

/* Make the next steps of a change of the memory, as far as they are possible now. */
static void advance_memory(struct vhost_role *role)
{
	if (role->step == VHOST_MEMORY_DRAIN && !is_draining(role))
		unexport_all(role);
	if (role->step == VHOST_MEMORY_UNEXPORT && role->n_pending == 0) {
		drop_regions(role, role->region, &role->memory.n);
		if (role->phase == VHOST_LEAVING) {
			role->step = VHOST_MEMORY_STABLE;
			vhost_socket_released(role);
			return;
		}
		export_all(role);
	}
	if (role->step == VHOST_MEMORY_EXPORT && role->n_pending == 0) {
		if (role->phase == VHOST_LEAVING)
			vhost_queue_release_all(role);
		else
			finish_memory(role);
	}
}

static void begin_memory_change(struct vhost_role *role)
{
	role->step = VHOST_MEMORY_DRAIN;
	for (uint32_t i = 0; i < role->n_queues; i++)
		drain_queue(&role->queues[i]);
}

void vhost_queue_release_all(struct vhost_role *role)
{
	drop_regions(role, role->next_region, &role->next_memory.n);
	role->drains_queue = false;
	if (role->n_pending != 0 ||
	    (role->step != VHOST_MEMORY_STABLE && role->step != VHOST_MEMORY_EXPORT))
		return; /* the change continues, and ends with the release */
	begin_memory_change(role);
	advance_memory(role);
}

void vhost_queue_exported(void *arg, uint32_t handle)
{
	struct vhost_role *role = arg;

	(void)handle;
	role->n_pending--;
	advance_memory(role);
}

void vhost_queue_unexported(void *arg, uint32_t handle)
{
	vhost_queue_exported(arg, handle);
}

void vhost_queue_session_ended(struct vhost_role *role)
{
	role->n_pending = 0;
	if (role->step != VHOST_MEMORY_STABLE)
		advance_memory(role);
}

void vhost_queue_drained(void *arg)
{
	struct vhost_queue *queue = arg;
	struct vhost_role *role = queue->role;

	role->rh->poller_remove(queue->lane, queue);
	queue->is_polled = queue->is_draining = false;
	role->device.vring[queue->index].base = queue->ring.next_avail;
	if (role->step != VHOST_MEMORY_STABLE) {
		advance_memory(role);
	} else if (role->drains_queue) {
		role->drains_queue = false;
		/* requests without an answer: a peer might still access their memory */
		role->device.fault = "requests were lost with the session";
		vhost_socket_continue(role, queue->has_lost ? -EPROTO : 0);
	}
}

/* -- actions of the device -- */

static struct vhost_role *role_of(struct vhost_device *device)
{
	return (struct vhost_role *)((char *)device - offsetof(struct vhost_role, device));
}

static void allocate(void *arg);

/* Continue in a later turn of the control thread. */
static void allocate_later(struct vhost_role *role)
{
	if (role->rh->after(role->rh, 0, allocate, role) != 0)
		role->rh->post(role->rh, allocate, role);
}

/* The pages are allocated, or cannot be allocated. */
static void end_allocation(struct vhost_role *role, int rc)
{
	if (rc == 0 || role->phase == VHOST_LEAVING) {
		begin_memory_change(role);
		advance_memory(role);
		return;
	}
	gantry_log_error(role->host,
			 "guest memory cannot be allocated (region=%u, offset=%llu): %s: give the "
			 "virtual machine less memory, or prealloc=on with huge pages",
			 role->allocating, (unsigned long long)role->allocated_at, strerror(-rc));
	role->device.fault = "the guest memory cannot be allocated";
	role->step = VHOST_MEMORY_STABLE;
	drop_regions(role, role->next_region, &role->next_memory.n);
	vhost_socket_continue(role, rc);
}

/* Allocate missing pages of the files of the new regions, a part in each turn. */
static void allocate(void *arg)
{
	struct vhost_role *role = arg;
	uint64_t left;
	struct stat st;
	int fd;

	if (role->step != VHOST_MEMORY_ALLOCATE)
		return;
	vhost_socket_check(role);
	if (role->phase == VHOST_LEAVING || role->allocating == role->next_memory.n) {
		end_allocation(role, 0);
		return;
	}
	fd = role->next_region[role->allocating]->fd;
	if (fstat(fd, &st)) {
		end_allocation(role, -errno);
		return;
	}
	left = (uint64_t)st.st_size - role->allocated_at;
	if (left == 0 || st.st_blocks >= (st.st_size + 511) / 512) {
		role->allocating++;
		role->allocated_at = 0;
	} else {
		left = left < ALLOCATE_STEP ? left : ALLOCATE_STEP;
		if (fallocate(fd, 0, (off_t)role->allocated_at, (off_t)left) == 0) {
			role->allocated_at += left;
		} else if (errno != EINTR) {
			end_allocation(role, errno == ENOSPC ? -ENOMEM : -errno);
			return;
		}
	}
	allocate_later(role);
}

static int memory(struct vhost_device *device, struct vhost_message *m)
{
	struct vhost_role *role = role_of(device);
	int rc;

	device->fault = "the guest memory cannot be used";
	rc = m->payload.memory.count == 0 ? -EINVAL : map_regions(role, m);
	if (rc == 0)
		rc = check_limit(role);
	if (rc != 0) {
		drop_regions(role, role->next_region, &role->next_memory.n);
		return rc;
	}
	role->step = VHOST_MEMORY_ALLOCATE;
	role->allocating = 0;
	role->allocated_at = 0;
	/* allocate() must run after this function has returned -EINPROGRESS */
	allocate_later(role);
	return -EINPROGRESS;
}

/*
 * The lane reads and writes the descriptors of a front end, and must not block: accept only
 * eventfds.
 */
static int check_eventfd(struct vhost_device *device, int fd)
{
	const int flags = fcntl(fd, F_GETFL);
	char path[64], name[32];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, name, sizeof(name) - 1);
	name[n > 0 ? n : 0] = '\0';
	if (strcmp(name, "anon_inode:[eventfd]") == 0 && flags >= 0 &&
	    fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0)
		return 0;
	device->fault = "descriptor is not an eventfd";
	return -EINVAL;
}

static int vring(struct vhost_device *device, uint32_t index)
{
	struct vhost_role *role = role_of(device);
	struct vhost_queue *queue = &role->queues[index];

	if (!device->vring[index].started || queue->is_polled) {
		change_queue(queue);
		return 0;
	}
	queue->is_broken = false;
	return start_queue(queue);
}

static int drain(struct vhost_device *device, uint32_t index)
{
	struct vhost_role *role = role_of(device);

	if (!role->queues[index].is_polled)
		return 0;
	role->drains_queue = true;
	drain_queue(&role->queues[index]);
	return -EINPROGRESS;
}

/* The front end keeps the memory, so it outlives this process. */
static int inflight_get(struct vhost_device *device, uint32_t queues, uint32_t num,
			uint64_t *bytes_p)
{
	struct vhost_role *role = role_of(device);
	struct gantry_region *region;
	int fd, rc = role->rh->region_create(role->rh, inflight_bytes(queues, num), 0, &region);

	if (rc != 0)
		return rc;
	*bytes_p = region->length;
	fd = fcntl(region->fd, F_DUPFD_CLOEXEC, 0);
	role->rh->region_destroy(role->rh, region, 1);
	return fd < 0 ? -errno : fd;
}

void vhost_queue_drop_inflight(struct vhost_role *role)
{
	if (role->inflight)
		role->rh->region_destroy(role->rh, role->inflight, 1);
	role->inflight = NULL;
}

static int inflight_set(struct vhost_device *device, struct vhost_message *m)
{
	struct vhost_role *role = role_of(device);
	const uint32_t queues = m->payload.inflight.queues, num = m->payload.inflight.num;
	const uint64_t bytes = m->payload.inflight.bytes;
	const char *why = "it is too small";
	int rc = -EINVAL;

	vhost_queue_drop_inflight(role);
	if (bytes >= queues * vhost_inflight_bytes(num))
		rc = map_region(role, m->fds[0], m->payload.inflight.offset, bytes, &role->inflight,
				&why);
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
	return 0;
}

const struct vhost_device_ops vhost_queue_ops = {.memory = memory,
						 .check_eventfd = check_eventfd,
						 .vring = vring,
						 .drain = drain,
						 .inflight_get = inflight_get,
						 .inflight_set = inflight_set,
						 .config = vhost_role_config};

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
