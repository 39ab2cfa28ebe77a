/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * region.h - regions: memory that can be exported. A region is a sealed memfd that is mapped here,
 * or a part of one.
 *
 * A region that peers might still access is not unmapped but quarantined: this process never uses
 * its pages again, and counts its bytes.
 */
#ifndef GN_MEMORY_REGION_H
#define GN_MEMORY_REGION_H

#include <gantry/role.h>

/*
 * gn_region_create - create a zeroed region
 *
 * bytes  > 0; rounded up to pages
 * flags  GANTRY_REGION_*
 * Returns 0,
 * -EINVAL  bytes is 0 or too large
 * -ENOMEM  out of memory
 * -errno   of memfd_create(2), fcntl(2), mmap(2) or fallocate(2)
 * Control thread.
 */
int gn_region_create(uint64_t bytes, int flags, struct gantry_region **region_p);
/*
 * gn_region_map - create a region from memory of another process: [offset, offset + bytes) of a
 * memfd that is sealed against shrinking and growing. The memory is mapped here; it is neither
 * changed nor allocated.
 *
 * offset, bytes  multiples of the page size; bytes > 0
 * reason_p       out: the problem as text, a literal; "" after success
 * Returns 0; the region owns fd, and gn_region_destroy() closes it,
 * -EINVAL  offset or bytes is not a multiple of the page size, or not a regular file
 * -EPERM   not sealed, or sealed against writing
 * -ERANGE  the file is shorter
 * -ENOMEM  out of memory, or huge pages that are not reserved
 * -errno   of fstat(2), fstatfs(2) or mmap(2)
 * Control thread.
 */
int gn_region_map(int fd, uint64_t offset, uint64_t bytes, struct gantry_region **region_p,
		  const char **reason_p);
/*
 * gn_region_destroy - unmap a region if it is released, i.e. no peer or device can access it;
 * otherwise quarantine it. Frees the region object in both cases. Control thread.
 */
void gn_region_destroy(struct gantry_region **region_p, int released);
/*
 * gn_region_withdraw - move a region to private pages of this process. Address and content stay the
 * same, and importers keep the old pages. Other threads can write to the region during the call,
 * but in a region of huge pages such a write can be lost. The region cannot be exported any more.
 * Copies at least 1 GB/s.
 *
 * Returns 0; -ENOMEM or another -errno of the copy: importers can still access some of its pages,
 * so call the function again later, or quarantine the region. Control thread.
 */
int gn_region_withdraw(struct gantry_region *region);
/*
 * gn_region_has_pages - returns true if all pages of the memfd of a region are allocated; false
 * also for a region without a memfd.
 */
int gn_region_has_pages(const struct gantry_region *region);
/*
 * gn_region_make_pages - allocate the missing pages of `bytes` bytes from offset `at` on. The
 * kernel needs up to 2 s for each GiB.
 *
 * Returns 0; -ENOMEM or another -errno of mmap(2), madvise(2) or fallocate(2).
 */
int gn_region_make_pages(const struct gantry_region *region, uint64_t at, uint64_t bytes);
/* gn_region_quarantined - returns the bytes in quarantine in this process. Any thread. */
uint64_t gn_region_quarantined(void);

#endif
