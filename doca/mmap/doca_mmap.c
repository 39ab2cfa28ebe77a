/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doca_mmap.c - public functions of memory maps: configuration, start and stop, export and import
 *
 * One thread at a time configures and uses a map. All threads use the list of started maps. The
 * structures of destroyed maps are kept and reused, so that a program that uses a destroyed map
 * gets an error and does not crash.
 */
#include "mmap/mmap_share.h"

#include "base/clock.h"
#include "common/gd_log.h"
#include "device/gd_device.h"
#include "mmap/mmap_share_wire.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define DEVICES_AT_FIRST 64u
#define ALL_FLAGS (DOCA_ACCESS_FLAG_LOCAL_READ_WRITE | GD_PCI_FLAGS | GD_RDMA_FLAGS)

static struct doca_mmap *started, *spare;                /* under gd_mmaps_lock */
static pthread_cond_t unused = PTHREAD_COND_INITIALIZER; /* the last user of a map has ended */
static uint32_t last_handle;

/* -- the list of started maps -- */

struct doca_mmap *gd_mmaps(void)
{
	return started;
}

static bool is_id(const struct doca_mmap *mmap, const struct gd_mmap_id *id)
{
	return memcmp(&mmap->id, id, sizeof(*id)) == 0;
}

struct doca_mmap *gd_mmap_owned(const struct gd_mmap_id *id)
{
	struct doca_mmap *m = started;

	while (m && (m->imported || !is_id(m, id)))
		m = m->next;
	return m;
}

static bool by_rdma(const struct doca_mmap *mmap)
{
	return mmap->share && mmap->share->rdma.kind != 0 && mmap->local;
}

/* Lock held. */
static struct doca_mmap *find(const struct gd_mmap_id *id)
{
	struct doca_mmap *found = gd_mmap_owned(id);

	if (found && !by_rdma(found))
		found = NULL;
	for (struct doca_mmap *m = started; m && !found; m = m->next)
		if (is_id(m, id) && by_rdma(m))
			found = m;
	return found;
}

struct doca_mmap *gd_mmap_find(const struct gd_mmap_id *id)
{
	struct doca_mmap *found;

	pthread_mutex_lock(&gd_mmaps_lock);
	found = find(id);
	pthread_mutex_unlock(&gd_mmaps_lock);
	return found;
}

struct doca_mmap *gd_mmap_find_use(const struct gd_mmap_id *id)
{
	struct doca_mmap *found;

	pthread_mutex_lock(&gd_mmaps_lock);
	found = find(id);
	if (found)
		found->n_users++;
	pthread_mutex_unlock(&gd_mmaps_lock);
	return found;
}

struct doca_mmap *gd_mmap_use(uint32_t handle)
{
	struct doca_mmap *m;

	gd_share_watch_forks();
	pthread_mutex_lock(&gd_mmaps_lock);
	for (m = started; m && m->dpa_handle != handle; m = m->next)
		;
	if (m)
		m->n_users++;
	pthread_mutex_unlock(&gd_mmaps_lock);
	return m;
}

void gd_mmap_unuse(struct doca_mmap *mmap)
{
	pthread_mutex_lock(&gd_mmaps_lock);
	if (--mmap->n_users == 0)
		pthread_cond_broadcast(&unused);
	pthread_mutex_unlock(&gd_mmaps_lock);
}

static void enlist(struct doca_mmap *mmap)
{
	pthread_mutex_lock(&gd_mmaps_lock);
	mmap->started = mmap->was_started = true;
	mmap->next = started;
	started = mmap;
	pthread_mutex_unlock(&gd_mmaps_lock);
}

static void delist(struct doca_mmap *mmap)
{
	struct doca_mmap **p = &started;

	pthread_mutex_lock(&gd_mmaps_lock);
	while (*p && *p != mmap)
		p = &(*p)->next;
	if (*p)
		*p = mmap->next;
	mmap->started = false;
	while (mmap->n_users > 0)
		pthread_cond_wait(&unused, &gd_mmaps_lock);
	pthread_mutex_unlock(&gd_mmaps_lock);
}

/* -- create, start, stop and destroy -- */

static struct doca_mmap *allocate(void)
{
	struct doca_mmap *mmap;

	pthread_mutex_lock(&gd_mmaps_lock);
	mmap = spare;
	if (mmap)
		spare = mmap->next;
	else
		mmap = malloc(sizeof(*mmap));
	if (mmap)
		*mmap = (struct doca_mmap){.is_alive = true,
					   .max_devs = DEVICES_AT_FIRST,
					   .dpa_handle = ++last_handle,
					   .access = DOCA_ACCESS_FLAG_LOCAL_READ_WRITE};
	pthread_mutex_unlock(&gd_mmaps_lock);
	return mmap;
}

static void free_map(struct doca_mmap *mmap)
{
	free(mmap->devs);
	pthread_mutex_lock(&gd_mmaps_lock);
	*mmap = (struct doca_mmap){.next = spare};
	spare = mmap;
	pthread_mutex_unlock(&gd_mmaps_lock);
}

static bool is_map(const struct doca_mmap *mmap)
{
	return mmap && mmap->is_alive;
}

/* Returns SUCCESS if a setter may change the map. `late`: the error after start. */
static doca_error_t may_set(const struct doca_mmap *mmap, doca_error_t late)
{
	if (!is_map(mmap))
		return DOCA_ERROR_INVALID_VALUE;
	return mmap->started || mmap->imported ? late : DOCA_SUCCESS;
}

doca_error_t doca_mmap_create(struct doca_mmap **mmap)
{
	struct doca_mmap *made;

	if (!mmap)
		return DOCA_ERROR_INVALID_VALUE;
	made = allocate();
	if (!made)
		return DOCA_ERROR_NO_MEMORY;
	*mmap = made;
	return DOCA_SUCCESS;
}

doca_error_t doca_mmap_start(struct doca_mmap *mmap)
{
	doca_error_t result = may_set(mmap, DOCA_ERROR_NOT_PERMITTED);

	if (result != DOCA_SUCCESS)
		return result;
	if (mmap->share) /* doca_mmap_stop() has failed */
		return DOCA_ERROR_NOT_PERMITTED;
	if (!mmap->has_range) {
		gd_log(DOCA_LOG_LEVEL_ERROR,
		       "memory map cannot start: it has no range: call doca_mmap_set_memrange() first");
		return DOCA_ERROR_NOT_PERMITTED;
	}
	if (getrandom(&mmap->id, sizeof(mmap->id), 0) != sizeof(mmap->id))
		return DOCA_ERROR_NO_MEMORY;
	enlist(mmap);
	return DOCA_SUCCESS;
}

static bool has_bufs(const struct doca_mmap *mmap)
{
	return !mmap->thread_safe && __atomic_load_n(&mmap->n_bufs, __ATOMIC_ACQUIRE) > 0;
}

static void stop_imported(struct doca_mmap *mmap)
{
	bool is_out = false;

	if (!gd_mmap_find(&mmap->id)) /* no other import of the map is exported */
		is_out = gd_rdma_revoke_map(&mmap->id, true, gn_now_ns() + GD_SILENT_NS);
	gd_share_release(mmap, is_out);
	mmap->local = NULL;
}

static doca_error_t stop(struct doca_mmap *mmap)
{
	delist(mmap);
	if (!mmap->imported)
		return gd_share_revoke(mmap);
	stop_imported(mmap);
	return DOCA_SUCCESS;
}

doca_error_t doca_mmap_stop(struct doca_mmap *mmap)
{
	if (!is_map(mmap))
		return DOCA_ERROR_INVALID_VALUE;
	if (has_bufs(mmap))
		return DOCA_ERROR_NOT_PERMITTED;
	return mmap->started || mmap->share ? stop(mmap) : DOCA_SUCCESS;
}

doca_error_t doca_mmap_destroy(struct doca_mmap *mmap)
{
	doca_error_t result = doca_mmap_stop(mmap);
	struct doca_mmap was;

	if (result != DOCA_SUCCESS)
		return result;
	was = *mmap;
	free_map(mmap);
	if (was.free_cb && was.was_started)
		was.free_cb(was.addr, was.length, was.free_opaque);
	return DOCA_SUCCESS;
}

/* -- devices -- */

static uint32_t find_dev(const struct doca_mmap *mmap, const struct doca_dev *dev)
{
	uint32_t i = 0;

	while (i < mmap->n_devs && mmap->devs[i] != dev)
		i++;
	return i;
}

static doca_error_t append_dev(struct doca_mmap *mmap, struct doca_dev *dev)
{
	struct doca_dev **more = realloc(mmap->devs, (mmap->n_devs + 1) * sizeof(*more));

	if (!more)
		return DOCA_ERROR_NO_MEMORY;
	more[mmap->n_devs++] = dev;
	mmap->devs = more;
	return DOCA_SUCCESS;
}

doca_error_t doca_mmap_add_dev(struct doca_mmap *mmap, struct doca_dev *dev)
{
	doca_error_t result = may_set(mmap, DOCA_ERROR_NOT_PERMITTED);

	if (result != DOCA_SUCCESS)
		return result;
	if (!gd_dev_is_open(dev))
		return DOCA_ERROR_INVALID_VALUE;
	if (find_dev(mmap, dev) < mmap->n_devs)
		return DOCA_ERROR_ALREADY_EXIST;
	return mmap->n_devs < mmap->max_devs ? append_dev(mmap, dev) : DOCA_ERROR_NO_MEMORY;
}

doca_error_t doca_mmap_rm_dev(struct doca_mmap *mmap, struct doca_dev *dev)
{
	doca_error_t result = may_set(mmap, DOCA_ERROR_NOT_PERMITTED);
	uint32_t at;

	if (result != DOCA_SUCCESS)
		return result;
	if (!dev)
		return DOCA_ERROR_INVALID_VALUE;
	at = find_dev(mmap, dev);
	if (at == mmap->n_devs)
		return DOCA_ERROR_NOT_FOUND;
	mmap->devs[at] = mmap->devs[--mmap->n_devs];
	return DOCA_SUCCESS;
}

doca_error_t doca_mmap_set_max_num_devices(struct doca_mmap *mmap, uint32_t max_num_devices)
{
	doca_error_t result = may_set(mmap, DOCA_ERROR_NOT_PERMITTED);

	if (result != DOCA_SUCCESS)
		return result;
	if (max_num_devices == 0 || max_num_devices < mmap->n_devs)
		return DOCA_ERROR_INVALID_VALUE;
	mmap->max_devs = max_num_devices;
	return DOCA_SUCCESS;
}

/* -- settings -- */

doca_error_t doca_mmap_set_memrange(struct doca_mmap *mmap, void *addr, size_t len)
{
	if (!is_map(mmap) || !addr || len == 0 || (uintptr_t)addr > UINTPTR_MAX - len)
		return DOCA_ERROR_INVALID_VALUE;
	if (mmap->started && !mmap->imported)
		return DOCA_ERROR_BAD_STATE;
	if (mmap->imported || mmap->has_range)
		return DOCA_ERROR_NOT_PERMITTED;
	mmap->addr = mmap->local = addr;
	mmap->length = len;
	mmap->has_range = true;
	return DOCA_SUCCESS;
}

doca_error_t doca_mmap_set_permissions(struct doca_mmap *mmap, uint32_t access_mask)
{
	const uint32_t both = DOCA_ACCESS_FLAG_PCI_READ_ONLY | DOCA_ACCESS_FLAG_PCI_READ_WRITE;
	doca_error_t result = may_set(mmap, DOCA_ERROR_BAD_STATE);

	if (result != DOCA_SUCCESS)
		return result;
	if ((access_mask & ~ALL_FLAGS) != 0 || (access_mask & both) == both)
		return DOCA_ERROR_INVALID_VALUE;
	mmap->access = access_mask;
	return DOCA_SUCCESS;
}

doca_error_t doca_mmap_set_free_cb(struct doca_mmap *mmap, doca_mmap_memrange_free_cb_t *free_cb,
				   void *opaque)
{
	doca_error_t result = may_set(mmap, DOCA_ERROR_BAD_STATE);

	if (result == DOCA_SUCCESS && !free_cb)
		result = DOCA_ERROR_INVALID_VALUE;
	if (result != DOCA_SUCCESS)
		return result;
	mmap->free_cb = free_cb;
	mmap->free_opaque = opaque;
	return DOCA_SUCCESS;
}

doca_error_t doca_mmap_set_user_data(struct doca_mmap *mmap, union doca_data user_data)
{
	doca_error_t result = may_set(mmap, DOCA_ERROR_BAD_STATE);

	if (result == DOCA_SUCCESS)
		mmap->user_data = user_data;
	return result;
}

/* An imported map permits this after its start, because it is created as a started map. */
doca_error_t doca_mmap_enable_thread_safety(struct doca_mmap *mmap)
{
	if (!is_map(mmap))
		return DOCA_ERROR_INVALID_VALUE;
	if (mmap->started && !mmap->imported)
		return DOCA_ERROR_NOT_PERMITTED;
	mmap->thread_safe = true;
	return DOCA_SUCCESS;
}

/* -- getters -- */

doca_error_t doca_mmap_get_memrange(const struct doca_mmap *mmap, void **addr, size_t *len)
{
	if (!is_map(mmap) || !addr || !len)
		return DOCA_ERROR_INVALID_VALUE;
	if (!mmap->has_range)
		return DOCA_ERROR_BAD_STATE;
	*addr = mmap->addr;
	*len = mmap->length;
	return DOCA_SUCCESS;
}

doca_error_t doca_mmap_get_user_data(const struct doca_mmap *mmap, union doca_data *user_data)
{
	if (!is_map(mmap) || !user_data)
		return DOCA_ERROR_INVALID_VALUE;
	*user_data = mmap->user_data;
	return DOCA_SUCCESS;
}

doca_error_t doca_mmap_get_max_num_devices(const struct doca_mmap *mmap, uint32_t *max_num_devices)
{
	if (!is_map(mmap) || !max_num_devices)
		return DOCA_ERROR_INVALID_VALUE;
	*max_num_devices = mmap->max_devs;
	return DOCA_SUCCESS;
}

doca_error_t doca_mmap_get_num_bufs(const struct doca_mmap *mmap, uint32_t *num_bufs)
{
	if (!is_map(mmap) || !num_bufs)
		return DOCA_ERROR_INVALID_VALUE;
	/* 0: no thread still uses the memory; pairs with give_back_one() in doca_buf_inventory.c */
	*num_bufs = __atomic_load_n(&mmap->n_bufs, __ATOMIC_ACQUIRE);
	return DOCA_SUCCESS;
}

doca_error_t doca_mmap_get_exported(const struct doca_mmap *mmap, uint8_t *exported)
{
	const struct gd_share *s;

	if (!is_map(mmap) || !exported)
		return DOCA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&gd_mmaps_lock);
	s = mmap->share;
	*exported = s != NULL && !mmap->imported && (s->pci.kind != 0 || s->rdma.kind != 0);
	pthread_mutex_unlock(&gd_mmaps_lock);
	return DOCA_SUCCESS;
}

doca_error_t doca_mmap_get_from_export(const struct doca_mmap *mmap, uint8_t *from_export)
{
	if (!is_map(mmap) || !from_export)
		return DOCA_ERROR_INVALID_VALUE;
	*from_export = mmap->imported;
	return DOCA_SUCCESS;
}

static doca_error_t has_local(const struct doca_devinfo *devinfo, uint8_t *can)
{
	if (!devinfo || !can)
		return DOCA_ERROR_INVALID_VALUE;
	*can = devinfo->local != NULL;
	return DOCA_SUCCESS;
}

doca_error_t doca_mmap_cap_is_export_pci_supported(const struct doca_devinfo *devinfo,
						   uint8_t *mmap_export)
{
	return has_local(devinfo, mmap_export);
}

doca_error_t doca_mmap_cap_is_create_from_export_pci_supported(const struct doca_devinfo *devinfo,
							       uint8_t *from_export)
{
	return has_local(devinfo, from_export);
}

/* -- export and import -- */

/* A local map is exported only for its devices, an imported map for any open device. */
static doca_error_t may_export(const struct doca_mmap *mmap, const struct doca_dev *dev,
			       const void *desc, const void *len, uint32_t flags)
{
	if (!is_map(mmap) || !dev || !desc || !len)
		return DOCA_ERROR_INVALID_VALUE;
	if (!mmap->started)
		return DOCA_ERROR_NOT_PERMITTED;
	if (mmap->imported ? !gd_dev_is_open(dev) : find_dev(mmap, dev) == mmap->n_devs)
		return DOCA_ERROR_NOT_FOUND;
	return (gd_mmap_access(mmap) & flags) != 0 ? DOCA_SUCCESS : DOCA_ERROR_NOT_PERMITTED;
}

static doca_error_t export(struct doca_mmap *mmap, enum gd_blob_kind kind,
			   const struct doca_dev *dev, const void **export_desc,
			   size_t *export_desc_len)
{
	bool here = kind == GD_BLOB_PCI || !dev->info->network;
	const struct gd_blob *blob;
	doca_error_t result;

	pthread_mutex_lock(&gd_mmaps_lock);
	result = gd_share_export(mmap, kind, here, &blob);
	pthread_mutex_unlock(&gd_mmaps_lock);
	if (result != DOCA_SUCCESS)
		return result;
	*export_desc = blob;
	*export_desc_len = sizeof(*blob);
	return DOCA_SUCCESS;
}

doca_error_t doca_mmap_export_pci(struct doca_mmap *mmap, const struct doca_dev *dev,
				  const void **export_desc, size_t *export_desc_len)
{
	const uint32_t flags = DOCA_ACCESS_FLAG_PCI_READ_ONLY | DOCA_ACCESS_FLAG_PCI_READ_WRITE;
	doca_error_t result = may_export(mmap, dev, export_desc, export_desc_len, flags);

	if (result == DOCA_SUCCESS && mmap->imported)
		result = DOCA_ERROR_NOT_PERMITTED;
	return result == DOCA_SUCCESS ? export(mmap, GD_BLOB_PCI, dev, export_desc, export_desc_len)
				      : result;
}

/* A map imported over PCI can be exported again, a map imported over RDMA cannot. */
doca_error_t doca_mmap_export_rdma(struct doca_mmap *mmap, const struct doca_dev *dev,
				   const void **export_desc, size_t *export_desc_len)
{
	uint32_t flags = is_map(mmap) && mmap->imported ? GD_PCI_FLAGS : GD_RDMA_FLAGS;
	doca_error_t result = may_export(mmap, dev, export_desc, export_desc_len, flags);

	return result == DOCA_SUCCESS
		       ? export(mmap, GD_BLOB_RDMA, dev, export_desc, export_desc_len)
		       : result;
}

doca_error_t doca_mmap_dev_get_dpa_handle(struct doca_mmap *mmap, const struct doca_dev *dev,
					  doca_dpa_dev_mmap_t *dpa_mmap_handle)
{
	if (!is_map(mmap) || !dev || !dpa_mmap_handle)
		return DOCA_ERROR_INVALID_VALUE;
	if (!mmap->started)
		return DOCA_ERROR_NOT_PERMITTED;
	if (find_dev(mmap, dev) == mmap->n_devs)
		return DOCA_ERROR_NOT_FOUND;
	*dpa_mmap_handle = mmap->dpa_handle;
	return DOCA_SUCCESS;
}

static doca_error_t open_blob(const void *desc, size_t n, const struct doca_dev *dev,
			      struct gd_blob *blob, bool *map_p)
{
	const char *why = gd_blob_open(desc, n, blob);

	if (why) {
		gd_log(DOCA_LOG_LEVEL_ERROR,
		       "memory map cannot be imported: invalid export descriptor (bytes=%zu): %s",
		       n, why);
		return DOCA_ERROR_INVALID_VALUE;
	}
	*map_p = blob->kind == GD_BLOB_PCI || !dev->info->network;
	if (!*map_p || blob->host == gd_host_id())
		return DOCA_SUCCESS;
	gd_log(DOCA_LOG_LEVEL_ERROR,
	       "memory map cannot be imported: the memory is on another machine, and the device has no network transport (device=%s): use a device with transport rdma-verbs, rxe or tcp",
	       dev->info->pci);
	return DOCA_ERROR_NOT_SUPPORTED;
}

doca_error_t doca_mmap_create_from_export(const union doca_data *user_data, const void *export_desc,
					  size_t export_desc_len, struct doca_dev *dev,
					  struct doca_mmap **mmap)
{
	struct doca_mmap *made;
	doca_error_t result;
	struct gd_blob blob;
	bool map;

	if (!export_desc || !mmap || !gd_dev_is_open(dev))
		return DOCA_ERROR_INVALID_VALUE;
	result = open_blob(export_desc, export_desc_len, dev, &blob, &map);
	if (result != DOCA_SUCCESS)
		return result;
	made = allocate();
	if (!made)
		return DOCA_ERROR_NO_MEMORY;
	made->imported = made->has_range = true;
	if (user_data)
		made->user_data = *user_data;
	result = append_dev(made, dev);
	if (result == DOCA_SUCCESS)
		result = gd_share_import(made, &blob, map);
	if (result != DOCA_SUCCESS) {
		free_map(made);
		return result;
	}
	enlist(made);
	*mmap = made;
	return DOCA_SUCCESS;
}
