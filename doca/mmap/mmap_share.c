/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mmap_share.c - the owner of maps that other processes import
 *
 * The owner listens on a Unix socket in the run directory. The service thread serves it. Both sides
 * keep the connection.
 *
 *     importer                         owner
 *     ask: id, kind, access  ------->  checks them against its exports
 *     maps the memory  <-------------  reply: a memfd for each run of pages
 *             ...
 *     replaces its mapping  <--------  REVOKE: doca_mmap_stop() was called
 *     RELEASED  -------------------->  doca_mmap_stop() returns
 *
 * An importer that ends its import sends RELEASED without a REVOKE. If its connection ends without
 * RELEASED, the memory can still be mapped: by the importer, if it only closed the connection, or
 * by a child process of the importer. In that case, and if an importer sends nothing for
 * GD_SILENT_NS, the owner replaces its own pages, and the importer keeps the old ones. The same
 * applies to a device of an RDMA peer that does not release the memory in time.
 */
#include "mmap/mmap_share.h"

#include "base/clock.h"
#include "common/gd_log.h"
#include "device/gd_device.h"
#include "device/service_thread.h"
#include "mmap/mmap_pages.h"
#include "mmap/mmap_share_wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/socket.h>
#include <unistd.h>

struct importer {
	struct importer *next;
	int fd;
	struct doca_mmap *mmap;   /* NULL: no request yet */
	bool is_listed, is_asked; /* is_asked: REVOKE was sent */
};

pthread_mutex_t gd_mmaps_lock = PTHREAD_MUTEX_INITIALIZER;

static pthread_cond_t changed; /* an importer left the list; CLOCK_MONOTONIC */
static struct importer *importers;
static struct gd_listener listener = {.fd = -1};

/* -- connections of importers -- */

static void unlist(struct importer *importer)
{
	struct importer **p = &importers;

	while (*p != importer)
		p = &(*p)->next;
	*p = importer->next;
	importer->is_listed = false;
	pthread_cond_broadcast(&changed);
}

/* Without the lock; the importer is not in the list. */
static void close_importer(struct importer *importer)
{
	gd_service_remove_fd(importer->fd);
	close(importer->fd);
	free(importer);
}

/*
 * Returns the rights of an export of that kind, 0 if there is none. A holder of a PCI export may
 * also import by RDMA, on behalf of its own peers.
 */
static uint32_t granted(const struct doca_mmap *mmap, uint32_t kind)
{
	const struct gd_share *s = mmap->share;
	uint32_t access = 0;

	if (!s || !s->is_held)
		return 0;
	if (kind == GD_BLOB_PCI && s->pci.kind != 0)
		access = s->pci.access;
	else if (kind == GD_BLOB_RDMA && s->rdma.kind != 0)
		access = s->rdma.access;
	else if (kind == GD_BLOB_RDMA && s->pci.kind != 0)
		access = gd_rdma_of_pci(s->pci.access);
	return access;
}

static int fill_runs(const struct doca_mmap *mmap, struct gd_share_reply *reply,
		     struct gd_run runs[GD_RUNS])
{
	int n = gd_pages_give(mmap->addr, mmap->length, runs, GD_RUNS);

	for (int i = 0; i < n; i++) {
		reply->runs[i].from = runs[i].from;
		reply->runs[i].to = runs[i].to;
	}
	reply->n_runs = n > 0 ? (uint32_t)n : 0;
	return n > 0 ? 0 : n;
}

static void answer_request(struct importer *importer, const struct gd_share_ask *ask)
{
	struct doca_mmap *mmap = gd_mmap_owned(&ask->id);
	struct gd_share_reply reply = {.magic = GD_SHARE_MAGIC, .status = -EACCES};
	struct gd_run runs[GD_RUNS];

	if (mmap && !importer->mmap)
		reply.access = granted(mmap, ask->kind) & ask->access;
	if (reply.access != 0)
		reply.status = fill_runs(mmap, &reply, runs);
	if (reply.status == 0) {
		reply.addr = (uint64_t)(uintptr_t)mmap->addr;
		reply.length = mmap->length;
		importer->mmap = mmap;
	}
	gd_wire_reply(importer->fd, &reply, runs);
}

/* The connection has ended. Without RELEASED the memory can still be mapped. */
static void end_import(struct importer *importer, int rc)
{
	if (importer->mmap && rc != GD_SHARE_RELEASED)
		importer->mmap->share->is_tainted = true;
	unlist(importer);
}

static void on_importer(void *arg)
{
	struct importer *importer = arg;
	struct gd_share_ask ask;
	int rc = -ENOTCONN;

	pthread_mutex_lock(&gd_mmaps_lock);
	if (!importer->is_listed) { /* another thread is about to close the connection */
		pthread_mutex_unlock(&gd_mmaps_lock);
		return;
	}
	rc = gd_wire_read_ask(importer->fd, &ask);
	if (rc == 0)
		answer_request(importer, &ask);
	else if (rc != -EAGAIN)
		end_import(importer, rc);
	pthread_mutex_unlock(&gd_mmaps_lock);
	if (rc != 0 && rc != -EAGAIN)
		close_importer(importer);
}

static void on_listener(void *arg)
{
	struct importer *importer;
	int fd;

	(void)arg;
	pthread_mutex_lock(&gd_mmaps_lock);
	while ((fd = gd_listener_accept(&listener)) >= 0) {
		importer = calloc(1, sizeof(*importer));
		if (!importer) {
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

static void init_changed(void)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&changed, &attr);
	pthread_condattr_destroy(&attr);
}

/*
 * In a child: close the connections of the parent, because open copies would hide the end of the
 * parent from peers. The exports do not describe the pages of the child.
 */
static void after_fork_child(void)
{
	for (struct importer *i = importers, *next; i; i = next) {
		next = i->next;
		close(i->fd);
		free(i);
	}
	importers = NULL;
	gd_listener_forget(&listener);
	for (struct doca_mmap *m = gd_mmaps(); m; m = m->next) {
		struct gd_share *s = m->share;

		m->n_users = 0;
		if (!s)
			continue;
		if (m->imported)
			gd_share_forget_import(s);
		s->is_held = s->is_tainted = false;
	}
	gd_share_forget_timer();
	init_changed();
	pthread_mutex_unlock(&gd_mmaps_lock);
}

/*
 * Lock order: gd_mmaps_lock, then the lock of the service and that of mmap_pages.c. fork(2) runs
 * the handlers that take locks in reverse order of their registration. So the handlers of the
 * service are registered before those of this file. Those of mmap_pages.c are registered at program
 * start.
 */
static void prepare(void)
{
	init_changed();
	gd_service_watch_forks();
	pthread_atfork(before_fork, after_fork_parent, after_fork_child);
	atexit(remove_socket);
}

void gd_share_watch_forks(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, prepare);
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

struct gd_share *gd_share_make(struct doca_mmap *mmap)
{
	struct gd_share *s = mmap->share;

	gd_share_watch_forks();
	if (s)
		return s;
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->fd = s->conn = -1;
	mmap->share = s;
	return s;
}

static bool peers_may_write(uint32_t access)
{
	return (access & (DOCA_ACCESS_FLAG_PCI_READ_WRITE | DOCA_ACCESS_FLAG_RDMA_WRITE |
			  DOCA_ACCESS_FLAG_RDMA_ATOMIC)) != 0;
}

static doca_error_t cannot_hold(const struct doca_mmap *mmap, int rc)
{
	static const struct {
		int rc;
		doca_error_t result;
		const char *why;
	} table[] = {
		{-EFAULT, DOCA_ERROR_INVALID_VALUE, "the range is not completely mapped"},
		{-EACCES, DOCA_ERROR_NOT_PERMITTED,
		 "the program itself may not access the memory that way"},
		{-EOPNOTSUPP, DOCA_ERROR_NOT_SUPPORTED,
		 "the program has mapped it as shared: use private memory"},
		{-ENOMEM, DOCA_ERROR_NO_MEMORY, "out of memory"},
		{-EFBIG, DOCA_ERROR_DRIVER, "the size of files is limited: raise ulimit -f"},
		{-EMFILE, DOCA_ERROR_DRIVER,
		 "too many open files: each exported map needs one: raise ulimit -n"},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].rc == rc) {
			gd_log(DOCA_LOG_LEVEL_ERROR,
			       "memory map cannot be exported (address=%p, bytes=%zu): %s",
			       mmap->addr, mmap->length, table[i].why);
			return table[i].result;
		}
	gd_log(DOCA_LOG_LEVEL_ERROR, "memory map cannot be exported (address=%p, bytes=%zu): %s",
	       mmap->addr, mmap->length, strerror(-rc));
	return DOCA_ERROR_DRIVER;
}

/*
 * Drop the hold of a range in the common memfd, which all Comch peers can read, because the range
 * is about to be exported. The change of `moves` makes Comch export the map again.
 */
static void leave_common(struct doca_mmap *mmap)
{
	gd_pages_drop(mmap->addr, mmap->length);
	mmap->share->is_held = false;
	__atomic_fetch_add(&mmap->moves, 1, __ATOMIC_RELEASE);
}

doca_error_t gd_share_hold(struct doca_mmap *mmap, bool common)
{
	struct gd_share *s = gd_share_make(mmap);
	int rc;

	if (!s)
		return DOCA_ERROR_NO_MEMORY;
	if (s->is_held && s->is_common && !common)
		leave_common(mmap);
	if (s->is_held)
		return DOCA_SUCCESS;
	rc = gd_pages_hold(mmap->addr, mmap->length, peers_may_write(mmap->access), common);
	if (rc != 0)
		return cannot_hold(mmap, rc);
	s->is_held = true;
	s->is_common = common;
	return DOCA_SUCCESS;
}

int gd_share_fd(const struct doca_mmap *mmap)
{
	const struct gd_share *s = mmap->share;
	struct gd_run run;
	int rc = -ENOENT;

	if (s && mmap->imported)
		return s->fd;
	if (s && s->is_held)
		rc = gd_pages_give(mmap->addr, mmap->length, &run, 1);
	return rc < 0 ? rc : run.fd;
}

static doca_error_t fill_blob(struct doca_mmap *mmap, enum gd_blob_kind kind, struct gd_blob *blob)
{
	uint32_t flags = kind == GD_BLOB_PCI ? GD_PCI_FLAGS : GD_RDMA_FLAGS;

	/* descriptor of the original owner with RDMA rights: the importer connects to that owner */
	if (mmap->imported) {
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

doca_error_t gd_share_export(struct doca_mmap *mmap, enum gd_blob_kind kind, bool here,
			     const struct gd_blob **blob_p)
{
	doca_error_t result = DOCA_SUCCESS;
	struct gd_blob blob, *place;

	if (!mmap->imported) {
		result = listen_for_importers();
		if (result == DOCA_SUCCESS && here)
			result = gd_share_hold(mmap, false);
	}
	if (result != DOCA_SUCCESS)
		return result;
	if (!gd_share_make(mmap))
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

/* -- the end -- */

static void revoke_imports(const struct doca_mmap *mmap)
{
	for (struct importer *i = importers; i; i = i->next)
		if (i->mmap == mmap && !i->is_asked) {
			i->is_asked = true;
			gd_wire_say(i->fd, GD_SHARE_REVOKE);
		}
}

static bool has_importer(const struct doca_mmap *mmap)
{
	const struct importer *i = importers;

	while (i && i->mmap != mmap)
		i = i->next;
	return i != NULL;
}

/*
 * Wait until all importers have released the memory, at most until `end`. Returns whether an
 * importer still has it.
 */
static bool wait_for_importers(const struct doca_mmap *mmap, uint64_t end)
{
	const struct timespec until = {.tv_sec = (time_t)(end / 1000000000),
				       .tv_nsec = (long)(end % 1000000000)};
	int rc = 0;

	while (rc == 0 && has_importer(mmap))
		rc = pthread_cond_timedwait(&changed, &gd_mmaps_lock, &until);
	return has_importer(mmap);
}

static bool overlap(const struct doca_mmap *a, const struct doca_mmap *b)
{
	const uintptr_t mask = (uintptr_t)sysconf(_SC_PAGESIZE) - 1;
	const uintptr_t at = (uintptr_t)a->addr, bt = (uintptr_t)b->addr;

	return (at & ~mask) < bt + b->length && (bt & ~mask) < at + a->length;
}

/*
 * The replaced pages can also belong to other maps. Peers then have old pages of those maps: revoke
 * their imports, and increment `moves`.
 */
static void renew_neighbours(const struct doca_mmap *mmap)
{
	pthread_mutex_lock(&gd_mmaps_lock);
	for (struct doca_mmap *m = gd_mmaps(); m; m = m->next) {
		if (m->imported || !m->share || !overlap(m, mmap))
			continue;
		__atomic_fetch_add(&m->moves, 1, __ATOMIC_RELEASE);
		revoke_imports(m);
	}
	pthread_mutex_unlock(&gd_mmaps_lock);
}

static doca_error_t replace(struct doca_mmap *mmap, bool pinned)
{
	const int rc = gd_pages_replace(mmap->addr, mmap->length, pinned);

	renew_neighbours(mmap);
	if (rc == 0)
		return DOCA_SUCCESS;
	gd_log(DOCA_LOG_LEVEL_ERROR,
	       "memory map: cannot replace the pages that an importer did not release (address=%p, "
	       "bytes=%zu, error=%s): end that process, or stop the map again",
	       mmap->addr, mmap->length, strerror(-rc));
	return rc == -ENOMEM ? DOCA_ERROR_NO_MEMORY : DOCA_ERROR_OPERATING_SYSTEM;
}

static struct importer *take_importers(const struct doca_mmap *mmap)
{
	struct importer *taken = NULL;

	for (struct importer *i = importers, *next; i; i = next) {
		next = i->next;
		if (i->mmap != mmap)
			continue;
		unlist(i);
		i->next = taken;
		taken = i;
	}
	return taken;
}

static void drop(struct doca_mmap *mmap)
{
	struct importer *taken;
	struct gd_share *s;

	pthread_mutex_lock(&gd_mmaps_lock);
	s = mmap->share;
	mmap->share = NULL;
	taken = take_importers(mmap);
	pthread_mutex_unlock(&gd_mmaps_lock);
	while (taken) {
		struct importer *next = taken->next;

		close_importer(taken);
		taken = next;
	}
	if (s->is_held)
		gd_pages_drop(mmap->addr, mmap->length);
	free(s);
}

doca_error_t gd_share_revoke(struct doca_mmap *mmap)
{
	const uint64_t end = gn_now_ns() + GD_SILENT_NS;
	doca_error_t result = DOCA_SUCCESS;
	bool keeps, pinned;

	if (!mmap->share)
		return DOCA_SUCCESS;
	pthread_mutex_lock(&gd_mmaps_lock);
	revoke_imports(mmap);
	pthread_mutex_unlock(&gd_mmaps_lock);
	pinned = gd_rdma_revoke_map(&mmap->id, false, end);
	pthread_mutex_lock(&gd_mmaps_lock);
	keeps = wait_for_importers(mmap, end) || mmap->share->is_tainted;
	pthread_mutex_unlock(&gd_mmaps_lock);
	if (keeps || pinned)
		result = replace(mmap, pinned);
	if (result == DOCA_SUCCESS)
		drop(mmap);
	return result;
}
