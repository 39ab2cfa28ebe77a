/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vhost_regions.c - the guest memory of a device: its regions come and go. Control thread.
 *
 *      SET_MEM_TABLE  map the new regions -> allocate their pages -> drain all queues
 *                     -> unexport all old regions -> export the new regions -> start the queues
 *      ADD_MEM_REG    map the region -> allocate its pages -> export it
 *                     -> let the queues use it -> start suspended queues
 *      REM_MEM_REG    suspend the queues whose rings are in the region -> let no queue take
 *                     requests in it -> complete those in flight -> unexport it -> unmap it
 *
 * The device answers last. So no peer accesses memory that has gone when the message is answered.
 * While a region comes or goes, queues and requests that do not use it continue.
 *
 * A front end that changes a region removes it, and then adds it with its new properties. So a
 * queue whose ring is in a removed region is suspended until its ring is in the memory again. So is
 * a queue that has abandoned requests in a removed region, see vhost_bound.c, because it takes them
 * again when it starts.
 *
 * Peers reject a memfd that lacks pages, also outside the mapped regions. So the role allocates the
 * pages of the whole file.
 */
#include <errno.h>
#include <fcntl.h>
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

#define BUSY (1ull << 63) /* of role->pending */

static struct vhost_role *role_of(struct vhost_device *device)
{
	return (struct vhost_role *)((char *)device - offsetof(struct vhost_role, device));
}

/* -- the table -- */

static void destroy(const struct vhost_role *role, struct gantry_region *region)
{
	if (vhost_copies(role))
		vhost_unmap(region);
	else
		role->rh->region_destroy(role->rh, region, 1);
}

static void drop_next(struct vhost_role *role)
{
	for (uint32_t i = 0; i < role->next_memory.n; i++)
		destroy(role, role->next_region[i]);
	role->next_memory.n = 0;
}

/* Remove a region, which no peer can access, from the table. */
static void drop_region(struct vhost_role *role, uint32_t index)
{
	struct vhost_memory *memory = &role->memory;
	const uint32_t n = --memory->n - index;

	destroy(role, role->region[index]);
	memmove(&memory->region[index], &memory->region[index + 1], n * sizeof(memory->region[0]));
	memmove(&role->region[index], &role->region[index + 1], n * sizeof(role->region[0]));
}

/* Returns true if the change in progress removes the region. */
static bool goes(const struct vhost_role *role, uint32_t index)
{
	return role->change == VHOST_MEMORY_REPLACE ||
	       (role->change == VHOST_MEMORY_REMOVE &&
		role->memory.region[index].handle == role->going);
}

static uint32_t free_handle(const struct vhost_memory *memory)
{
	uint32_t handle = VHOST_FIRST_HANDLE;

	for (uint32_t i = 0; i < memory->n; i++)
		if (memory->region[i].handle == handle) {
			handle++;
			i = UINT32_MAX; /* compare with all regions again */
		}
	return handle;
}

static void log_memory(const struct vhost_role *role, uint32_t index,
		       const struct vhost_msg_region *region, int rc, const char *why)
{
	gantry_log_error(
		role->host, "guest memory rejected: %s (region=%u, gpa=0x%llx, bytes=%llu): %s%s",
		why, index, (unsigned long long)region->gpa, (unsigned long long)region->bytes,
		strerror(-rc),
		vhost_copies(role) ? ""
				   : ": use -object memory-backend-memfd,share=on,seal=on, "
				     "or memory=\"copy\"");
}

int vhost_regions_map(const struct vhost_role *role, int fd, uint64_t offset, uint64_t bytes,
		      struct gantry_region **region_p, const char **why_p)
{
	*why_p = "huge pages of another user: that user can free them";
	if (role->is_foreign && gantry_memfd_is_huge(fd) > 0)
		return -EPERM;
	return role->rh->region_map(role->rh, fd, offset, bytes, region_p, why_p);
}

/* Map regions of a message. Returns 0; or -errno, and some are mapped; logs the cause. */
static int map_regions(struct vhost_role *role, struct vhost_message *m,
		       const struct vhost_msg_region *from, uint32_t n)
{
	struct vhost_memory *memory = &role->next_memory;

	for (uint32_t i = 0; i < n; i++, from++) {
		const char *why;
		int rc = vhost_copies(role)
				 ? vhost_map(m->fds[i], from->offset, from->bytes,
					     &role->next_region[i], &why)
				 : vhost_regions_map(role, m->fds[i], from->offset, from->bytes,
						     &role->next_region[i], &why);

		if (rc != 0) {
			log_memory(role, i, from, rc, why);
			return rc;
		}
		m->fds[i] = -1;
		memory->region[i] = (struct vhost_region){.gpa = from->gpa,
							  .bytes = from->bytes,
							  .uva = from->uva,
							  .addr = role->next_region[i]->addr};
		memory->n = i + 1;
	}
	return 0;
}

/* -- limits -- */

/* Returns a + b; UINT64_MAX: the sum is larger. */
static uint64_t sum(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

static bool is_same_file(const struct gantry_region *region, const struct stat *st)
{
	struct stat other;

	return fstat(region->fd, &other) == 0 && other.st_dev == st->st_dev &&
	       other.st_ino == st->st_ino;
}

/* Returns true if an earlier new region, or a region that stays, is in the same file. */
static bool has_earlier_region(const struct vhost_role *role, uint32_t index, const struct stat *st)
{
	for (uint32_t i = 0; i < index; i++)
		if (is_same_file(role->next_region[i], st))
			return true;
	for (uint32_t i = 0; i < role->memory.n; i++)
		if (!goes(role, i) && is_same_file(role->region[i], st))
			return true;
	return false;
}

/* Returns the bytes of the regions that go. */
static uint64_t going_bytes(const struct vhost_role *role)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < role->memory.n; i++)
		bytes += goes(role, i) ? role->memory.region[i].bytes : 0;
	return bytes;
}

/*
 * Compare the new regions with what all servers on the path accept. Returns 0, or -errno; logs the
 * cause.
 */
static int check_quota(const struct vhost_role *role)
{
	const uint64_t quota = sum(role->rh->engine->export_quota(role->engine), going_bytes(role));
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < role->next_memory.n; i++)
		bytes = sum(bytes, role->next_memory.region[i].bytes);
	if (bytes <= quota)
		return 0;
	gantry_log_error(
		role->host,
		"guest memory rejected: a server accepts less (regions=%u, bytes=%llu, "
		"limit=%llu): raise listen.max_region_bytes of each server on the path, and "
		"region_bytes of its listen.allow, or give the virtual machine less memory",
		role->next_memory.n, (unsigned long long)bytes, (unsigned long long)quota);
	return -E2BIG;
}

/*
 * Compare each new region with what the peer accepts when the old regions are released, and their
 * files, whose pages are to be allocated, with that for all regions. Returns 0 or -errno; logs the
 * cause.
 */
static int check_limit(const struct vhost_role *role)
{
	uint64_t limit = sum(role->rh->engine->export_limit(role->engine), going_bytes(role)),
		 largest = 0, files = 0, all = 0;
	struct stat st;

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

/* -- steps of a change -- */

static bool is_draining(const struct vhost_role *role)
{
	for (uint32_t i = 0; i < role->n_queues; i++)
		if (role->queues[i].is_draining || role->queues[i].is_vacating)
			return true;
	return false;
}

/* The bit of a region in role->pending. */
static uint64_t bit_of(uint32_t handle)
{
	return 1ull << (handle - VHOST_FIRST_HANDLE);
}

static void unexport(struct vhost_role *role)
{
	role->step = VHOST_MEMORY_UNEXPORT;
	role->pending = BUSY; /* an event inside the calls must not end the step */
	for (uint32_t i = 0; i < role->memory.n; i++) {
		const uint32_t handle = role->memory.region[i].handle;

		if (!goes(role, i) || vhost_copies(role))
			continue;
		role->pending |= bit_of(handle);
		if (role->rh->engine->region_unexport(role->engine, handle) != 0)
			role->pending &= ~bit_of(handle);
	}
	role->pending &= ~BUSY;
}

static void drop_going(struct vhost_role *role)
{
	for (uint32_t i = role->memory.n; i-- > 0;)
		if (goes(role, i))
			drop_region(role, i);
}

/* Export a new region. Returns 0, and the region is in the table; or -errno. */
static int export(struct vhost_role *role, uint32_t index)
{
	struct vhost_memory *memory = &role->memory;
	struct vhost_region *region = &role->next_memory.region[index];
	int rc;

	region->handle = free_handle(memory);
	rc = vhost_copies(role) ? 0
				: role->rh->engine->region_export(
					  role->engine, role->next_region[index], region->handle);
	if (rc == 0) {
		if (!vhost_copies(role))
			role->pending |= bit_of(region->handle);
		role->region[memory->n] = role->next_region[index];
		memory->region[memory->n++] = *region;
		return 0;
	}
	destroy(role, role->next_region[index]);
	if (rc == -E2BIG)
		gantry_log_error(role->host,
				 "guest memory is too large (region=%u, bytes=%llu): raise "
				 "max_region_bytes of the server and max_bytes of the "
				 "devices, or give the virtual machine less memory",
				 index, (unsigned long long)region->bytes);
	role->device.fault = "the guest memory cannot be exported";
	return rc;
}

static void export_next(struct vhost_role *role)
{
	const uint32_t n = role->next_memory.n;

	role->step = VHOST_MEMORY_EXPORT;
	role->memory_rc = 0;
	role->next_memory.n = 0;
	for (uint32_t i = 0; i < n; i++) {
		const int rc = export(role, i);

		role->memory_rc = rc != 0 ? rc : role->memory_rc;
	}
	/* no IO is submitted before the session has resumed and exported the regions */
	if (role->pending != 0 && role->is_revoked &&
	    role->rh->engine->revoke_all(role->engine) == 0)
		role->pending = 0;
}

/*
 * The new memory can be used: start the queues. After a failure of SET_MEM_TABLE no queue can run,
 * because the old memory is released: end the connection.
 */
static void finish(struct vhost_role *role)
{
	const bool replaces = role->change == VHOST_MEMORY_REPLACE;
	int rc = role->memory_rc;

	role->step = VHOST_MEMORY_STABLE;
	for (uint32_t i = 0; i < role->n_queues && (rc == 0 || !replaces); i++) {
		struct vhost_queue *queue = &role->queues[i];

		if (queue->is_polled)
			vhost_queue_use_memory(queue);
		else if (role->device.vring[i].started && replaces)
			rc = vhost_queue_start(queue);
		else if (role->device.vring[i].started)
			vhost_queue_resume(queue);
	}
	vhost_socket_continue(role, rc != 0 && replaces ? -EPROTO : rc);
}

void vhost_regions_advance(struct vhost_role *role)
{
	if (role->step == VHOST_MEMORY_DRAIN && !is_draining(role))
		unexport(role);
	if (role->step == VHOST_MEMORY_UNEXPORT && role->pending == 0) {
		drop_going(role);
		if (role->phase == VHOST_LEAVING && role->change == VHOST_MEMORY_REPLACE) {
			role->step = VHOST_MEMORY_STABLE;
			vhost_socket_released(role);
			return;
		}
		export_next(role);
	}
	if (role->step == VHOST_MEMORY_EXPORT && role->pending == 0) {
		if (role->phase == VHOST_LEAVING)
			vhost_regions_release_all(role);
		else
			finish(role);
	}
}

/* Drain the queues as far as the change requires it. */
static void begin_change(struct vhost_role *role)
{
	role->step = VHOST_MEMORY_DRAIN;
	role->is_revoked = false;
	vhost_bound_start(role);
	for (uint32_t i = 0; i < role->n_queues; i++) {
		struct vhost_queue *queue = &role->queues[i];

		if (role->change == VHOST_MEMORY_REPLACE)
			vhost_queue_drain(queue);
		else if (role->change == VHOST_MEMORY_REMOVE)
			vhost_queue_vacate(queue, role->going);
	}
}

void vhost_regions_release_all(struct vhost_role *role)
{
	drop_next(role);
	role->drains_queue = false;
	if (role->pending != 0 ||
	    (role->step != VHOST_MEMORY_STABLE && role->step != VHOST_MEMORY_EXPORT))
		return; /* the change continues, and ends with the release */
	role->change = VHOST_MEMORY_REPLACE;
	begin_change(role);
	vhost_regions_advance(role);
}

void vhost_regions_exported(void *arg, uint32_t handle)
{
	struct vhost_role *role = arg;

	/* the event of a region that the role did not wait for comes late */
	if ((role->pending & bit_of(handle)) == 0)
		return;
	role->pending &= ~bit_of(handle);
	vhost_regions_advance(role);
}

void vhost_regions_unexported(void *arg, uint32_t handle)
{
	vhost_regions_exported(arg, handle);
}

void vhost_regions_revoked(struct vhost_role *role)
{
	role->is_revoked = true;
	if (role->step != VHOST_MEMORY_EXPORT)
		return;
	role->pending = 0;
	vhost_regions_advance(role);
}

void vhost_regions_session_ended(struct vhost_role *role)
{
	role->pending = 0;
	if (role->step != VHOST_MEMORY_STABLE)
		vhost_regions_advance(role);
}

/* -- pages -- */

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
	if (role->phase == VHOST_LEAVING)
		role->change = VHOST_MEMORY_REPLACE;
	if (rc == 0 || role->phase == VHOST_LEAVING) {
		begin_change(role);
		vhost_regions_advance(role);
		return;
	}
	gantry_log_error(role->host,
			 "guest memory cannot be allocated (region=%u, offset=%llu): %s: give the "
			 "virtual machine less memory, or prealloc=on with huge pages",
			 role->allocating, (unsigned long long)role->allocated_at, strerror(-rc));
	role->device.fault = "the guest memory cannot be allocated";
	role->step = VHOST_MEMORY_STABLE;
	drop_next(role);
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

/* -- actions of the device -- */

/* Add n regions of a message, in later turns. Returns as struct vhost_device_ops. */
static int add(struct vhost_role *role, struct vhost_message *m,
	       const struct vhost_msg_region *from, uint32_t n)
{
	int rc;

	role->device.fault = "the guest memory cannot be used";
	rc = map_regions(role, m, from, n);
	if (rc == 0 && !vhost_copies(role))
		rc = check_quota(role);
	if (rc == 0 && !vhost_copies(role))
		rc = check_limit(role);
	if (rc != 0) {
		drop_next(role);
		return rc;
	}
	role->step = VHOST_MEMORY_ALLOCATE;
	role->allocating = vhost_copies(role) ? role->next_memory.n : 0; /* else: all of them */
	role->allocated_at = 0;
	/* allocate() must run after this function has returned -EINPROGRESS */
	allocate_later(role);
	return -EINPROGRESS;
}

int vhost_regions_set(struct vhost_device *device, struct vhost_message *m)
{
	struct vhost_role *role = role_of(device);
	const uint32_t n = m->payload.memory.count;

	device->fault = "the guest memory cannot be used";
	if (n == 0)
		return -EINVAL;
	role->change = VHOST_MEMORY_REPLACE;
	return add(role, m, m->payload.memory.region, n);
}

int vhost_regions_add(struct vhost_device *device, struct vhost_message *m)
{
	struct vhost_role *role = role_of(device);
	const struct vhost_msg_region *from = &m->payload.slot.region;
	const struct vhost_memory *memory = &role->memory;

	for (uint32_t i = 0; i < memory->n; i++) {
		const struct vhost_region *r = &memory->region[i];

		if (vhost_ranges_overlap(from->gpa, from->bytes, r->gpa, r->bytes) ||
		    vhost_ranges_overlap(from->uva, from->bytes, r->uva, r->bytes)) {
			device->fault = "regions overlap";
			return -EEXIST;
		}
	}
	if (memory->n >= device->n_slots) {
		gantry_log_error(role->host,
				 "guest memory rejected: too many regions (limit memory_slots=%u): "
				 "raise memory_slots, and max_regions of each server, or give the "
				 "virtual machine fewer memory devices",
				 device->n_slots);
		device->fault = "too many regions";
		return -ENOSPC;
	}
	role->change = VHOST_MEMORY_ADD;
	return add(role, m, from, 1);
}

static void begun(void *arg)
{
	vhost_regions_advance(arg);
}

int vhost_regions_remove(struct vhost_device *device, const struct vhost_msg_region *region)
{
	struct vhost_role *role = role_of(device);

	for (uint32_t i = 0; i < role->memory.n; i++) {
		const struct vhost_region *r = &role->memory.region[i];

		if (r->gpa != region->gpa || r->uva != region->uva || r->bytes != region->bytes)
			continue;
		role->change = VHOST_MEMORY_REMOVE;
		role->going = r->handle;
		begin_change(role);
		/* if no queue runs, no lane reports */
		role->rh->post(role->rh, begun, role);
		return -EINPROGRESS;
	}
	device->fault = "region does not exist";
	return -ENOENT;
}
