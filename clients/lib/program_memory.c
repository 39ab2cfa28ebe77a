/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * program_memory.c - memory of the program that the session exports. Any thread, and the control
 * thread.
 *
 *      register:    reserve an entry -> map (control) -> allocate pages -> export (control)
 *                   -> publish
 *      deregister:  retract -> unexport (control) -> unmap (control) -> release the entry
 *
 * The entries exist as long as the volume. A thread of a queue looks up a buffer without a lock:
 * `length` is 0 while no IO can use the entry. If it is the same before and after `start` was read,
 * both belong to the same registration, or to two registrations of the same length. The second case
 * finds the wrong memory only for a buffer of memory that another thread deregisters meanwhile,
 * which the contract forbids.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib_priv.h"

#define FIRST_HANDLE (GANTRY_ENGINE_HANDLE + 1)

int gc_memories_init(struct gantry_volume *volume)
{
	volume->memories = calloc(volume->attr.memories + 1ull, sizeof(*volume->memories));
	if (!volume->memories)
		return -ENOMEM;
	for (uint32_t i = 0; i < volume->attr.memories; i++) {
		volume->memories[i].volume = volume;
		volume->memories[i].index = i;
	}
	return 0;
}

/* -- look-ups -- */

struct gantry_memory *gc_memory_find(const struct gantry_volume *volume, const void *buf,
				     uint64_t *at_p, uint64_t *left_p)
{
	for (uint32_t i = 0; i < volume->attr.memories; i++) {
		struct gantry_memory *memory = &volume->memories[i];
		uint64_t length = __atomic_load_n(&memory->length, __ATOMIC_ACQUIRE), at;

		at = (uintptr_t)buf - __atomic_load_n(&memory->start, __ATOMIC_ACQUIRE);
		if (at >= length || __atomic_load_n(&memory->length, __ATOMIC_RELAXED) != length)
			continue;
		*at_p = at;
		*left_p = length - at;
		return memory;
	}
	return NULL;
}

void gc_memories_hold(struct gantry_volume *volume, uint64_t set)
{
	for (; set != 0; set &= set - 1)
		__atomic_add_fetch(&volume->memories[__builtin_ctzll(set)].n_ios, 1,
				   __ATOMIC_RELAXED);
}

void gc_memories_drop(struct gantry_volume *volume, uint64_t set)
{
	for (; set != 0; set &= set - 1)
		__atomic_sub_fetch(&volume->memories[__builtin_ctzll(set)].n_ios, 1,
				   __ATOMIC_RELEASE);
}

/* -- the control thread -- */

static void answer(struct gantry_memory *memory, int rc)
{
	struct gantry_volume *volume = memory->volume;

	pthread_mutex_lock(&volume->lock);
	memory->rc = rc;
	memory->is_waiting = 0;
	pthread_cond_broadcast(&volume->changed);
	pthread_mutex_unlock(&volume->lock);
}

static int is_pending(const struct gantry_volume *volume)
{
	for (uint32_t i = 0; i < volume->attr.memories; i++)
		if (volume->memories[i].is_pending)
			return 1;
	return 0;
}

int gc_memories_pending(const struct gantry_volume *volume)
{
	return volume->attr.memories != 0 && is_pending(volume);
}

/* An event of the engine follows: answer then. */
static void await_event(struct gantry_memory *memory)
{
	memory->is_pending = 1;
	gc_control_poll(memory->volume);
}

void gc_memory_event(struct gantry_volume *volume, uint32_t handle)
{
	struct gantry_memory *memory = &volume->memories[handle - FIRST_HANDLE];

	if (!memory->is_pending)
		return;
	memory->is_pending = 0;
	answer(memory, 0);
}

void gc_memories_closed(struct gantry_volume *volume)
{
	for (uint32_t i = 0; i < volume->attr.memories; i++) {
		struct gantry_memory *memory = &volume->memories[i];

		if (!memory->is_pending)
			continue;
		memory->is_pending = 0;
		answer(memory, -ENOTCONN);
	}
}

static void map(void *arg)
{
	struct gantry_memory *memory = arg;
	const struct gantry_role_host *rh = memory->volume->rh;
	int rc = rh->region_map(rh, memory->fd, memory->offset, memory->bytes, &memory->region,
				&memory->why);

	if (rc == 0)
		memory->fd = -1;
	if (rc == 0 && memory->bytes > rh->engine->export_limit(memory->volume->session)) {
		memory->why = "larger than a device or a server accepts";
		rc = -E2BIG;
	}
	answer(memory, rc);
}

static void export(void *arg)
{
	struct gantry_memory *memory = arg;
	struct gantry_volume *volume = memory->volume;
	int rc = volume->rh->engine->region_export(volume->session, memory->region,
						   FIRST_HANDLE + memory->index);

	if (rc == 0) {
		await_event(memory);
		return;
	}
	memory->why = "cannot be exported";
	answer(memory, rc);
}

static void unexport(void *arg)
{
	struct gantry_memory *memory = arg;
	struct gantry_volume *volume = memory->volume;
	int rc = volume->rh->engine->region_unexport(volume->session, FIRST_HANDLE + memory->index);

	if (rc == 0)
		await_event(memory);
	else
		answer(memory, rc);
}

static void unmap(void *arg)
{
	struct gantry_memory *memory = arg;
	const struct gantry_role_host *rh = memory->volume->rh;

	if (memory->region)
		rh->region_destroy(rh, memory->region, 1);
	memory->region = NULL;
	answer(memory, 0);
}

/* -- threads of the program -- */

/* Run a function on the control thread, and wait for its answer. Returns the answer. */
static int call(struct gantry_memory *memory, void (*fn)(void *arg))
{
	struct gantry_volume *volume = memory->volume;
	int rc;

	pthread_mutex_lock(&volume->lock);
	memory->is_waiting = 1;
	pthread_mutex_unlock(&volume->lock);
	gn_loop_must_post(volume->loop, fn, memory);
	pthread_mutex_lock(&volume->lock);
	while (memory->is_waiting)
		pthread_cond_wait(&volume->changed, &volume->lock);
	rc = memory->rc;
	pthread_mutex_unlock(&volume->lock);
	return rc;
}

static struct gantry_memory *reserve(struct gantry_volume *volume)
{
	struct gantry_memory *memory = NULL;

	pthread_mutex_lock(&volume->lock);
	for (uint32_t i = 0; i < volume->attr.memories && !memory; i++)
		if (!volume->memories[i].is_taken)
			memory = &volume->memories[i];
	if (memory) {
		memory->is_taken = 1;
		memory->place = 0;
		memory->fd = -1;
		memory->region = NULL;
	}
	pthread_mutex_unlock(&volume->lock);
	return memory;
}

static void release(struct gantry_memory *memory)
{
	struct gantry_volume *volume = memory->volume;

	/* once the region is unmapped, another thread can map its own at the same addresses */
	pthread_mutex_lock(&volume->lock);
	memory->place = 0;
	pthread_mutex_unlock(&volume->lock);
	call(memory, unmap);
	if (memory->fd >= 0)
		close(memory->fd);
	memory->fd = -1;
	pthread_mutex_lock(&volume->lock);
	memory->is_taken = 0;
	pthread_mutex_unlock(&volume->lock);
}

static int overlaps(uintptr_t a, uint64_t a_bytes, uintptr_t b, uint64_t b_bytes)
{
	return a < b + b_bytes && b < a + a_bytes;
}

/*
 * Reserve the addresses of the program: a buffer must be in one memory. Returns 0, -EEXIST or
 * -EINVAL.
 */
static int reserve_place(struct gantry_memory *memory, void *addr)
{
	struct gantry_volume *volume = memory->volume;
	const uintptr_t place = (uintptr_t)(addr ? addr : memory->region->addr);
	int taken = overlaps(place, memory->bytes, (uintptr_t)volume->buffers,
			     volume->attr.buffer_bytes);

	if (place > UINTPTR_MAX - memory->bytes) {
		memory->why = "its addresses wrap around";
		return -EINVAL;
	}
	pthread_mutex_lock(&volume->lock);
	for (uint32_t i = 0; i < volume->attr.memories; i++) {
		const struct gantry_memory *other = &volume->memories[i];

		if (other != memory && other->is_taken && other->place != 0)
			taken |= overlaps(place, memory->bytes, other->place, other->bytes);
	}
	if (!taken)
		memory->place = place;
	pthread_mutex_unlock(&volume->lock);
	memory->why = "its addresses overlap other memory of the volume";
	return taken ? -EEXIST : 0;
}

/*
 * Allocate the pages of the whole file: servers reject a memfd that lacks pages. This thread
 * allocates them, so that the control thread sends heartbeats meanwhile.
 */
static int allocate(struct gantry_memory *memory)
{
	struct stat st;
	int rc;

	memory->why = "its pages cannot be allocated";
	if (fstat(memory->region->fd, &st))
		return -errno;
	if (st.st_blocks >= (st.st_size + 511) / 512)
		return 0;
	do
		rc = fallocate(memory->region->fd, 0, 0, st.st_size);
	while (rc && errno == EINTR);
	return rc == 0 ? 0 : errno == ENOSPC ? -ENOMEM : -errno;
}

static int set_up(struct gantry_memory *memory, int fd, void *addr)
{
	int rc;

	memory->why = "its descriptor cannot be duplicated";
	memory->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (memory->fd < 0)
		return -errno;
	rc = call(memory, map);
	if (rc == 0)
		rc = reserve_place(memory, addr);
	if (rc == 0)
		rc = allocate(memory);
	return rc ? rc : call(memory, export);
}

int gantry_memory_register(struct gantry_volume *volume, int fd, uint64_t offset, uint64_t length,
			   void *addr, struct gantry_memory **memory_p)
{
	struct gantry_memory *memory;
	const char *why;
	int rc = gc_check_fork(volume);

	*memory_p = NULL;
	if (rc)
		return rc;
	memory = reserve(volume);
	if (!memory)
		return gc_error(-ENOSPC,
				"too much registered memory (limit memories=%u): deregister some, "
				"or open the volume with more",
				volume->attr.memories);
	memory->offset = offset;
	memory->bytes = length;
	rc = set_up(memory, fd, addr);
	if (rc == 0) {
		__atomic_store_n(&memory->start, memory->place, __ATOMIC_RELEASE);
		__atomic_store_n(&memory->length, length, __ATOMIC_RELEASE);
		*memory_p = memory;
		return 0;
	}
	why = memory->why;
	release(memory);
	if (rc == -ENOTCONN)
		return gc_error_static(rc, "memory cannot be registered: the session is lost");
	return gc_error(rc, "memory cannot be registered (offset=%llu, length=%llu): %s: %s",
			(unsigned long long)offset, (unsigned long long)length, why, strerror(-rc));
}

void *gantry_memory_address(const struct gantry_memory *memory)
{
	return memory->region->addr;
}

int gantry_memory_deregister(struct gantry_memory **memory_p)
{
	struct gantry_memory *memory = *memory_p;
	int rc;

	if (!memory)
		return 0;
	rc = gc_check_fork(memory->volume);
	if (rc)
		return rc;
	if (__atomic_load_n(&memory->n_ios, __ATOMIC_ACQUIRE) != 0)
		return gc_error_static(-EBUSY, "IO with buffers in the memory is in flight");
	__atomic_store_n(&memory->length, 0, __ATOMIC_RELEASE);
	rc = call(memory, unexport);
	release(memory);
	*memory_p = NULL;
	return rc ? gc_error(rc, "the session has ended: a server might still access the memory")
		  : 0;
}
