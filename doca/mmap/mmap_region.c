/* SPDX-License-Identifier: BSD-3-Clause */
/* mmap_region.c - the memory of a map as a region, and checks of its use */
#include "mmap/mmap_share.h"

#include <errno.h>

doca_error_t gd_mmap_check(const struct doca_mmap *mmap)
{
	/* not of a local map: another thread can be setting its share */
	const struct gd_share *s = mmap->imported ? mmap->share : NULL;

	if (!mmap->started)
		return DOCA_ERROR_BAD_STATE;
	return s && __atomic_load_n(&s->gone, __ATOMIC_ACQUIRE) ? DOCA_ERROR_IO_FAILED
								: DOCA_SUCCESS;
}

doca_error_t gd_mmap_copied(const struct doca_mmap *mmap)
{
	if (!mmap->imported)
		return DOCA_SUCCESS;
	/* pairs with on_owner(), which sets `gone` before it replaces the pages */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return gd_mmap_check(mmap);
}

static uint32_t rights(uint32_t access)
{
	uint32_t r = 0;

	if ((access & (DOCA_ACCESS_FLAG_PCI_READ_ONLY | DOCA_ACCESS_FLAG_PCI_READ_WRITE |
		       DOCA_ACCESS_FLAG_RDMA_READ)) != 0)
		r |= GANTRY_REMOTE_READ;
	if ((access & (DOCA_ACCESS_FLAG_PCI_READ_WRITE | DOCA_ACCESS_FLAG_RDMA_WRITE |
		       DOCA_ACCESS_FLAG_RDMA_ATOMIC)) != 0)
		r |= GANTRY_REMOTE_WRITE;
	return r;
}

static doca_error_t make_region(struct doca_mmap *mmap, enum gd_sharing sharing,
				struct gantry_region *region)
{
	doca_error_t result = gd_mmap_check(mmap);
	int fd = -ENOENT;

	if (result == DOCA_SUCCESS && !mmap->local)
		result = DOCA_ERROR_NOT_SUPPORTED;
	if (result == DOCA_SUCCESS && sharing != GD_REGION_OWN && !mmap->imported)
		result = gd_share_hold(mmap, sharing == GD_REGION_COMMON);
	if (result != DOCA_SUCCESS)
		return result;
	if (sharing != GD_REGION_OWN || mmap->imported)
		fd = gd_share_fd(mmap);
	if (fd < 0 && sharing != GD_REGION_OWN)
		return fd == -ENOMEM ? DOCA_ERROR_NO_MEMORY : DOCA_ERROR_NOT_SUPPORTED;
	*region = (struct gantry_region){
		.addr = mmap->local,
		.length = mmap->length,
		.fd = fd < 0 ? -1 : fd,
		.rights = rights(mmap->access),
		.fd_offset = fd >= 0 ? (uintptr_t)mmap->addr : 0,
	};
	return DOCA_SUCCESS;
}

doca_error_t gd_mmap_prepare_export(struct doca_mmap *mmap)
{
	doca_error_t result;

	pthread_mutex_lock(&gd_mmaps_lock);
	result = gd_share_hold(mmap, false);
	pthread_mutex_unlock(&gd_mmaps_lock);
	return result;
}

doca_error_t gd_mmap_region(struct doca_mmap *mmap, enum gd_sharing sharing,
			    struct gantry_region *region)
{
	doca_error_t result;

	pthread_mutex_lock(&gd_mmaps_lock);
	result = make_region(mmap, sharing, region);
	pthread_mutex_unlock(&gd_mmaps_lock);
	return result;
}
