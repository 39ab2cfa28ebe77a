/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mmap_share_import.c - the importer of maps of other processes. The protocol is in mmap_share.c.
 *
 * When the owner revokes the memory, the service thread maps private pages over it. Threads that
 * copy at that moment continue in pages that no other process has. After the copy they find that
 * the map is gone. RELEASED is sent when no device uses the memory.
 */
#include "mmap/mmap_share.h"

#include "base/clock.h"
#include "common/gd_log.h"
#include "device/service_thread.h"
#include "mmap/mmap_share_wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NO_SANITIZE __attribute__((no_sanitize("address"), no_sanitize("thread"), noinline))
#define RETRY_NS 1000000ull /* between two checks whether devices have released the memory */
#define CHECK_MAX 64u       /* maximum number of maps of one check */
/* a revoked map of at most this size, such as that of a sync event, keeps its last content */
#define KEPT_BYTES 65536u

static void check_revoked(void *arg);

static struct gn_timer timer = {.fn = check_revoked};
static struct gd_share *revoked; /* under gd_mmaps_lock */

/* -- the mapping -- */

static doca_error_t cannot_map(const struct doca_mmap *map, int rc)
{
	gd_log(DOCA_LOG_LEVEL_ERROR,
	       "memory map cannot be imported: the memory cannot be mapped (bytes=%zu): %s",
	       map->length, strerror(-rc));
	return rc == -ENOMEM ? DOCA_ERROR_NO_MEMORY : DOCA_ERROR_DRIVER;
}

static int map_runs(struct gd_share *s, const struct gd_share_reply *reply,
		    const int memfds[GD_RUNS])
{
	const uint64_t from = reply->runs[0].from;

	s->base_bytes = reply->runs[reply->n_runs - 1].to - from;
	s->base = mmap(NULL, s->base_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		       -1, 0);
	if (s->base == MAP_FAILED) {
		s->base = NULL;
		return -errno;
	}
	for (uint32_t i = 0; i < reply->n_runs; i++)
		if (mmap((char *)s->base + (reply->runs[i].from - from),
			 reply->runs[i].to - reply->runs[i].from, s->prot, MAP_SHARED | MAP_FIXED,
			 memfds[i], (off_t)reply->runs[i].from) == MAP_FAILED)
			return -errno;
	return 0;
}

static NO_SANITIZE void copy_words(volatile uint64_t *to, const volatile uint64_t *from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] = from[i];
}

/*
 * Replace the mapping by private pages, atomically for all threads. Threads can be writing, so
 * copy_words() is not instrumented: a sanitizer would report a race.
 */
static int replace_mapping(const struct gd_share *s)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	void *copy;

	if (s->base_bytes > KEPT_BYTES)
		return syscall(SYS_mmap, s->base, s->base_bytes, s->prot, flags | MAP_FIXED, -1,
			       0) == (long)s->base
			       ? 0
			       : -errno;
	copy = mmap(NULL, s->base_bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
	if (copy == MAP_FAILED)
		return -errno;
	copy_words(copy, s->base, s->base_bytes / sizeof(uint64_t));
	if (mprotect(copy, s->base_bytes, s->prot) == 0 &&
	    syscall(SYS_mremap, copy, s->base_bytes, s->base_bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
		    s->base) == (long)s->base)
		return 0;
	munmap(copy, s->base_bytes);
	return -ENOMEM;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* -- revocation -- */

static void unlist(const struct gd_share *s)
{
	struct gd_share **at = &revoked;

	while (*at && *at != s)
		at = &(*at)->next;
	if (*at)
		*at = s->next;
}

static size_t list_revoked(struct gd_mmap_id ids[CHECK_MAX])
{
	size_t n = 0;

	pthread_mutex_lock(&gd_mmaps_lock);
	for (const struct gd_share *s = revoked; s && n < CHECK_MAX; s = s->next)
		ids[n++] = s->id;
	pthread_mutex_unlock(&gd_mmaps_lock);
	return n;
}

static void release_revoked(const struct gd_mmap_id *id)
{
	pthread_mutex_lock(&gd_mmaps_lock);
	for (struct gd_share *s = revoked, *next; s; s = next) {
		next = s->next;
		if (memcmp(&s->id, id, sizeof(*id)) != 0)
			continue;
		unlist(s);
		close_fd(&s->fd);
		gd_wire_say(s->conn, GD_SHARE_RELEASED);
	}
	pthread_mutex_unlock(&gd_mmaps_lock);
}

static void check_revoked(void *arg)
{
	struct gd_mmap_id ids[CHECK_MAX];
	const size_t n = list_revoked(ids);
	bool waits = n == CHECK_MAX; /* the list can be longer */

	(void)arg;
	for (size_t i = 0; i < n; i++)
		if (gd_rdma_is_in_use(&ids[i], true))
			waits = true;
		else
			release_revoked(&ids[i]);
	if (waits)
		gd_service_set_timer(&timer, gn_now_ns() + RETRY_NS);
}

static void on_owner(void *arg)
{
	struct gd_share *s = arg;
	int word = gd_wire_read_word(s->conn);

	if (word == -EAGAIN)
		return;
	__atomic_store_n(&s->gone, 1, __ATOMIC_RELEASE);
	if (word != GD_SHARE_REVOKE || replace_mapping(s) != 0) {
		/* the owner has ended, or it replaces its pages after GD_SILENT_NS */
		gd_service_remove_fd(s->conn);
		return;
	}
	pthread_mutex_lock(&gd_mmaps_lock);
	s->next = revoked;
	revoked = s;
	pthread_mutex_unlock(&gd_mmaps_lock);
	check_revoked(NULL);
}

/* -- import, and its end -- */

static bool peers_may_write(uint32_t access)
{
	return (access & (DOCA_ACCESS_FLAG_PCI_READ_WRITE | DOCA_ACCESS_FLAG_RDMA_WRITE |
			  DOCA_ACCESS_FLAG_RDMA_ATOMIC)) != 0;
}

/*
 * Map the memory. If it is a single memfd, its file descriptor stays open, so that a transport can
 * export the memory.
 */
static doca_error_t map_memory(struct doca_mmap *map, struct gd_share *s,
			       const struct gd_share_reply *reply, int memfds[GD_RUNS])
{
	int rc;

	s->prot = PROT_READ | (peers_may_write(map->access) ? PROT_WRITE : 0);
	rc = map_runs(s, reply, memfds);
	if (rc != 0)
		return cannot_map(map, rc);
	map->local = (char *)s->base + (reply->addr - reply->runs[0].from);
	if (reply->n_runs == 1) {
		s->fd = memfds[0];
		memfds[0] = -1;
	}
	return DOCA_SUCCESS;
}

static doca_error_t ask_owner(struct doca_mmap *mmap, struct gd_share *s,
			      const struct gd_blob *blob)
{
	struct gd_share_ask ask = {.magic = GD_SHARE_MAGIC,
				   .kind = blob->kind,
				   .access = blob->access,
				   .id = blob->id};
	struct gd_share_reply reply;
	int memfds[GD_RUNS];
	doca_error_t result;

	result = gd_wire_ask(blob, &ask, &reply, &s->conn, memfds);
	if (result == DOCA_SUCCESS) {
		mmap->access = reply.access;
		result = map_memory(mmap, s, &reply, memfds);
	}
	for (uint32_t i = 0; i < GD_RUNS; i++)
		close_fd(&memfds[i]);
	if (result == DOCA_SUCCESS)
		result = gd_service_add_fd(s->conn, on_owner, s);
	return result;
}

doca_error_t gd_share_import(struct doca_mmap *mmap, const struct gd_blob *blob, bool map)
{
	struct gd_share *s = gd_share_make(mmap);
	doca_error_t result = DOCA_SUCCESS;

	if (!s)
		return DOCA_ERROR_NO_MEMORY;
	mmap->id = s->id = blob->id;
	mmap->addr = (void *)(uintptr_t)blob->addr;
	mmap->length = blob->length;
	mmap->access = blob->access;
	if (map)
		result = ask_owner(mmap, s, blob);
	if (result != DOCA_SUCCESS) {
		gd_share_release(mmap, false);
		return result;
	}
	if (blob->kind == GD_BLOB_PCI)
		s->pci = *blob;
	else
		s->rdma = *blob;
	return DOCA_SUCCESS;
}

void gd_share_release(struct doca_mmap *mmap, bool is_out)
{
	struct gd_share *s;

	pthread_mutex_lock(&gd_mmaps_lock);
	s = mmap->share;
	mmap->share = NULL;
	pthread_mutex_unlock(&gd_mmaps_lock);
	if (!s)
		return;
	if (s->conn >= 0)
		gd_service_remove_fd(s->conn);
	pthread_mutex_lock(&gd_mmaps_lock);
	unlist(s);
	pthread_mutex_unlock(&gd_mmaps_lock);
	if (s->base)
		munmap(s->base, s->base_bytes);
	close_fd(&s->fd);
	if (s->conn >= 0 && !is_out)
		gd_wire_say(s->conn, GD_SHARE_RELEASED);
	close_fd(&s->conn);
	free(s);
}

/* -- fork -- */

void gd_share_forget_import(struct gd_share *s)
{
	close_fd(&s->conn);
	close_fd(&s->fd);
	s->gone = 1;
	if (s->base && replace_mapping(s) != 0)
		/* a fault is better than a write to the memory of the owner */
		munmap(s->base, s->base_bytes);
}

void gd_share_forget_timer(void)
{
	timer = (struct gn_timer){.fn = check_revoked};
	revoked = NULL;
}
