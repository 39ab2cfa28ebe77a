/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * share.c - memory of a map in the hands of other processes.
 *
 * The owner listens on a Unix socket in the run directory, served by the thread of the library. An importer connects, names the
 * map by its secret and says what it wants; the answer carries the memfd. Both keep the connection: its end tells the
 * importer that the owner is gone, and the owner ends it when the map is stopped.
 */
#include "mmap/share.h"

#include "common/log.h"
#include "device/device.h"
#include "device/service.h"
#include "mmap/pages.h"
#include "mmap/share_wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

struct importer {
	struct importer *next;
	int fd;
	struct doca_mmap *mmap; /* NULL: has not asked yet */
	bool is_listed;
};

pthread_mutex_t gd_mmaps_lock = PTHREAD_MUTEX_INITIALIZER;

static struct importer *importers;
static struct gd_listener listener = {.fd = -1};

/* -- the owner -- */

static void unlist(struct importer *importer)
{
	struct importer **p = &importers;

	while (*p != importer)
		p = &(*p)->next;
	*p = importer->next;
	importer->is_listed = false;
}

/* Not locked; it is on no list any more. */
static void hang_up(struct importer *importer)
{
	gd_service_remove_fd(importer->fd);
	close(importer->fd);
	free(importer);
}

/* What an export of that kind lets be done; 0: there is none. Who has it by PCI may pass it on by RDMA. */
static uint32_t granted(const struct doca_mmap *mmap, uint32_t kind)
{
	const struct gd_share *s = mmap->share;
	uint32_t access = 0;

	if (s == NULL || s->fd < 0)
		return 0;
	if (kind == GD_BLOB_PCI && s->pci.kind != 0)
		access = s->pci.access;
	else if (kind == GD_BLOB_RDMA && s->rdma.kind != 0)
		access = s->rdma.access;
	else if (kind == GD_BLOB_RDMA && s->pci.kind != 0)
		access = gd_rdma_of_pci(s->pci.access);
	return access;
}

static void answer(struct importer *importer, const struct gd_share_ask *ask)
{
	struct doca_mmap *mmap = gd_mmap_owned(&ask->id);
	struct gd_share_reply reply = {.magic = GD_SHARE_MAGIC, .status = -EACCES};

	if (mmap != NULL && importer->mmap == NULL)
		reply.access = granted(mmap, ask->kind) & ask->access;
	if (reply.access != 0) {
		reply.status = 0;
		reply.addr = (uint64_t)(uintptr_t)mmap->addr;
		reply.length = mmap->length;
		reply.offset = mmap->share->offset;
		importer->mmap = mmap;
	}
	gd_wire_reply(importer->fd, &reply, reply.status == 0 ? mmap->share->fd : -1);
}

static void on_importer(void *arg)
{
	struct importer *importer = arg;
	struct gd_share_ask ask;
	int rc = -ENOTCONN;

	pthread_mutex_lock(&gd_mmaps_lock);
	if (!importer->is_listed) { /* somebody is about to hang up */
		pthread_mutex_unlock(&gd_mmaps_lock);
		return;
	}
	rc = gd_wire_read_ask(importer->fd, &ask);
	if (rc == 0)
		answer(importer, &ask);
	else if (rc != -EAGAIN)
		unlist(importer);
	pthread_mutex_unlock(&gd_mmaps_lock);
	if (rc != 0 && rc != -EAGAIN)
		hang_up(importer);
}

static void on_listener(void *arg)
{
	struct importer *importer;
	int fd;

	(void)arg;
	pthread_mutex_lock(&gd_mmaps_lock);
	while ((fd = gd_listener_accept(&listener)) >= 0) {
		importer = calloc(1, sizeof(*importer));
		if (importer == NULL) {
			close(fd);
			continue;
		}
		*importer = (struct importer){.next = importers, .fd = fd, .is_listed = true};
		importers = importer;
		if (gd_service_add_fd(fd, on_importer, importer) != DOCA_SUCCESS) {
			unlist(importer);
			close(fd);
			free(importer);
		}
	}
	pthread_mutex_unlock(&gd_mmaps_lock);
}

static void remove_socket(void)
{
	gd_listener_remove(&listener);
}

static void before_fork(void)
{
	pthread_mutex_lock(&gd_mmaps_lock);
}

static void after_fork_parent(void)
{
	pthread_mutex_unlock(&gd_mmaps_lock);
}

/* Connections are the parent's: our copies would hide its end from others. What was exported is not what we have now. */
static void after_fork_child(void)
{
	for (struct importer *i = importers, *next; i != NULL; i = next) {
		next = i->next;
		close(i->fd);
		free(i);
	}
	importers = NULL;
	gd_listener_forget(&listener);
	for (struct doca_mmap *m = gd_mmaps(); m != NULL; m = m->next) {
		struct gd_share *s = m->share;

		if (s == NULL)
			continue;
		if (s->conn >= 0)
			close(s->conn);
		s->conn = -1;
		if (m->imported) {
			s->gone = 1;
		} else {
			s->is_held = false;
			s->fd = -1;
		}
	}
	pthread_mutex_unlock(&gd_mmaps_lock);
}

/* The lock of the service is taken within ours; that of pages too, which has its handlers from the beginning. */
static void prepare(void)
{
	gd_service_watch_forks();
	pthread_atfork(before_fork, after_fork_parent, after_fork_child);
	atexit(remove_socket);
}

static doca_error_t listen_for_importers(void)
{
	doca_error_t result;

	if (listener.fd >= 0)
		return DOCA_SUCCESS;
	result = gd_listener_open(&listener);
	if (result != DOCA_SUCCESS)
		return result;
	result = gd_service_add_fd(listener.fd, on_listener, NULL);
	if (result != DOCA_SUCCESS)
		gd_listener_close(&listener);
	return result;
}

/* -- sharing and export -- */

static struct gd_share *make_share(struct doca_mmap *mmap)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct gd_share *s = mmap->share;

	pthread_once(&once, prepare);
	if (s != NULL)
		return s;
	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return NULL;
	s->fd = s->conn = -1;
	mmap->share = s;
	return s;
}

static bool others_write(uint32_t access)
{
	return (access & (DOCA_ACCESS_FLAG_PCI_READ_WRITE | DOCA_ACCESS_FLAG_RDMA_WRITE | DOCA_ACCESS_FLAG_RDMA_ATOMIC)) != 0;
}

static doca_error_t cannot_hold(const struct doca_mmap *mmap, int rc)
{
	static const struct {
		int rc;
		doca_error_t result;
		const char *why;
	} table[] = {
		{-EFAULT, DOCA_ERROR_INVALID_VALUE, "not all of it is mapped"},
		{-EACCES, DOCA_ERROR_NOT_PERMITTED, "the program itself has no such right to it"},
		{-EOPNOTSUPP, DOCA_ERROR_NOT_SUPPORTED, "the program has mapped it as shared; use private memory"},
		{-ENOMEM, DOCA_ERROR_NO_MEMORY, "there is not enough memory"},
		{-EFBIG, DOCA_ERROR_DRIVER, "the size of files is limited; see ulimit -f"},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].rc == rc) {
			gd_log(DOCA_LOG_LEVEL_ERROR, "memory at %p, %zu bytes, cannot be shared: %s", mmap->addr, mmap->length,
			       table[i].why);
			return table[i].result;
		}
	gd_log(DOCA_LOG_LEVEL_ERROR, "memory at %p, %zu bytes, cannot be shared: %s", mmap->addr, mmap->length, strerror(-rc));
	return DOCA_ERROR_DRIVER;
}

doca_error_t gd_share_hold(struct doca_mmap *mmap)
{
	struct gd_share *s = make_share(mmap);
	int rc;

	if (s == NULL)
		return DOCA_ERROR_NO_MEMORY;
	if (s->is_held)
		return DOCA_SUCCESS;
	rc = gd_pages_hold(mmap->addr, mmap->length, others_write(mmap->access), &s->fd);
	if (rc != 0)
		return cannot_hold(mmap, rc);
	s->offset = (uint64_t)(uintptr_t)mmap->addr;
	s->is_held = true;
	return DOCA_SUCCESS;
}

static doca_error_t fill_blob(struct doca_mmap *mmap, enum gd_blob_kind kind, struct gd_blob *blob)
{
	uint32_t flags = kind == GD_BLOB_PCI ? GD_PCI_FLAGS : GD_RDMA_FLAGS;

	if (mmap->imported) { /* the owner's, with other rights: whoever gets it asks the owner */
		*blob = mmap->share->pci;
		blob->kind = kind;
		blob->access = gd_rdma_of_pci(blob->access);
		return DOCA_SUCCESS;
	}
	*blob = (struct gd_blob){
		.id = mmap->id,
		.addr = (uint64_t)(uintptr_t)mmap->addr,
		.length = mmap->length,
		.access = mmap->access & flags,
		.kind = kind,
		.host = gd_host_id(),
	};
	memcpy(blob->path, listener.path, sizeof(blob->path));
	return DOCA_SUCCESS;
}

doca_error_t gd_share_export(struct doca_mmap *mmap, enum gd_blob_kind kind, bool here, const struct gd_blob **blob_p)
{
	doca_error_t result = DOCA_SUCCESS;
	struct gd_blob blob, *place;

	if (!mmap->imported) {
		result = listen_for_importers();
		if (result == DOCA_SUCCESS && here)
			result = gd_share_hold(mmap);
	}
	if (result != DOCA_SUCCESS)
		return result;
	if (make_share(mmap) == NULL)
		return DOCA_ERROR_NO_MEMORY;
	place = kind == GD_BLOB_PCI ? &mmap->share->pci : &mmap->share->rdma;
	if (place->kind == 0) {
		result = fill_blob(mmap, kind, &blob);
		if (result != DOCA_SUCCESS)
			return result;
		gd_blob_seal(&blob);
		*place = blob;
		if (mmap->imported)
			__atomic_fetch_or(&mmap->access, blob.access, __ATOMIC_RELAXED);
	}
	*blob_p = place;
	return DOCA_SUCCESS;
}

/* -- import -- */

static void on_owner(void *arg)
{
	struct gd_share *s = arg;
	char byte;

	if (recv(s->conn, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN)
		return;
	/* it has nothing to say but that it is over */
	__atomic_store_n(&s->gone, 1, __ATOMIC_RELEASE);
	gd_service_remove_fd(s->conn);
}

static doca_error_t map_memory(struct doca_mmap *map, struct gd_share *s)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), down = s->offset & (page - 1);
	int prot = PROT_READ | (others_write(map->access) ? PROT_WRITE : 0);

	s->base_bytes = map->length + down;
	s->base = mmap(NULL, s->base_bytes, prot, MAP_SHARED, s->fd, (off_t)(s->offset - down));
	if (s->base == MAP_FAILED) {
		s->base = NULL;
		gd_log(DOCA_LOG_LEVEL_ERROR, "%zu bytes of another process cannot be mapped: %s", map->length, strerror(errno));
		return errno == ENOMEM ? DOCA_ERROR_NO_MEMORY : DOCA_ERROR_DRIVER;
	}
	map->local = (char *)s->base + down;
	return DOCA_SUCCESS;
}

static doca_error_t ask_owner(struct doca_mmap *mmap, struct gd_share *s, const struct gd_blob *blob)
{
	struct gd_share_ask ask = {.magic = GD_SHARE_MAGIC, .kind = blob->kind, .access = blob->access, .id = blob->id};
	struct gd_share_reply reply;
	doca_error_t result;

	result = gd_wire_ask(blob, &ask, &reply, &s->conn, &s->fd);
	if (result != DOCA_SUCCESS)
		return result;
	mmap->access = reply.access;
	s->offset = reply.offset;
	result = map_memory(mmap, s);
	if (result == DOCA_SUCCESS)
		result = gd_service_add_fd(s->conn, on_owner, s);
	return result;
}

doca_error_t gd_share_import(struct doca_mmap *mmap, const struct gd_blob *blob, bool map)
{
	struct gd_share *s = make_share(mmap);
	doca_error_t result = DOCA_SUCCESS;

	if (s == NULL)
		return DOCA_ERROR_NO_MEMORY;
	mmap->id = blob->id;
	mmap->addr = (void *)(uintptr_t)blob->addr;
	mmap->length = blob->length;
	mmap->access = blob->access;
	if (map)
		result = ask_owner(mmap, s, blob);
	if (result != DOCA_SUCCESS) {
		gd_share_release(mmap);
		return result;
	}
	if (blob->kind == GD_BLOB_PCI)
		s->pci = *blob;
	else
		s->rdma = *blob;
	return DOCA_SUCCESS;
}

/* -- the end -- */

static struct importer *take_importers(const struct doca_mmap *mmap)
{
	struct importer *taken = NULL;

	for (struct importer *i = importers, *next; i != NULL; i = next) {
		next = i->next;
		if (i->mmap != mmap)
			continue;
		unlist(i);
		i->next = taken;
		taken = i;
	}
	return taken;
}

void gd_share_release(struct doca_mmap *mmap)
{
	struct importer *taken;
	struct gd_share *s;

	pthread_mutex_lock(&gd_mmaps_lock);
	s = mmap->share;
	mmap->share = NULL;
	taken = s != NULL ? take_importers(mmap) : NULL;
	pthread_mutex_unlock(&gd_mmaps_lock);
	while (taken != NULL) {
		struct importer *next = taken->next;

		hang_up(taken);
		taken = next;
	}
	if (s == NULL)
		return;
	if (s->is_held)
		gd_pages_drop(mmap->addr, mmap->length);
	if (s->conn >= 0) {
		gd_service_remove_fd(s->conn);
		close(s->conn);
	}
	if (s->base != NULL)
		munmap(s->base, s->base_bytes);
	if (mmap->imported && s->fd >= 0)
		close(s->fd);
	free(s);
}
