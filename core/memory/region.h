/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * region.h - memory that can be exported: a sealed memfd, mapped here.
 *
 * A region whose peers may still touch it is not unmapped but goes to quarantine: its pages are
 * never used again by this process, and the quarantine is counted.
 */
#ifndef GN_MEMORY_REGION_H
#define GN_MEMORY_REGION_H

#include <gantry/role.h>

/* bytes > 0, rounded up to pages. flags: GANTRY_REGION_*. Zeroed. 0, -EINVAL, -ENOMEM, -errno. */
int gn_region_create(uint64_t bytes, int flags, struct gantry_region **region_p);
/*
 * quiet: nobody can touch it any more; else it goes to quarantine. Frees the region object either
 * way.
 */
void gn_region_destroy(struct gantry_region **region_p, int quiet);
/*
 * Move a region to pages that only this process has. Address and content stay the same, and
 * importers keep the old pages. A write of another thread to the region during the call may be
 * lost. The region cannot be exported any more. Copies at least 1 GB per second. Returns 0; -ENOMEM
 * or another -errno of the copy: the region is unchanged.
 */
int gn_region_withdraw(struct gantry_region *region);
/*
 * Whether all pages of the memfd that the region is in are allocated; 0 as well for a region
 * without a memfd.
 */
int gn_region_has_pages(const struct gantry_region *region);
/*
 * Allocate the missing pages of `bytes` from offset `at` on; the kernel needs up to 2 s for each
 * GiB. Returns 0; -ENOMEM or another -errno of mmap(2), madvise(2) or fallocate(2).
 */
int gn_region_make_pages(const struct gantry_region *region, uint64_t at, uint64_t bytes);
/* Bytes in quarantine in this process. Any thread. */
uint64_t gn_region_quarantined(void);

#endif
