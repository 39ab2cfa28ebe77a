/* SPDX-License-Identifier: BSD-3-Clause */
#include "memory/region.h"

#include "base/log.h"

#include <gantry/memfd.h>

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE_PAGE (2ull << 20)

static uint64_t quarantined;

static uint64_t round_up(uint64_t bytes, uint64_t unit)
{
	return (bytes + unit - 1) / unit * unit;
}

static int map_memfd(struct gantry_region *region, uint64_t bytes, int huge, int is_lazy)
{
	int rc;

	region->fd = gantry_memfd_create("gantry-region", bytes, huge ? GANTRY_MEMFD_HUGE : 0);
	if (region->fd < 0)
		return region->fd;
	region->addr = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, region->fd, 0);
	if (region->addr == MAP_FAILED) {
		rc = -errno;
		goto out_close;
	}
	rc = gantry_memfd_seal(region->fd, 0);
	if (rc == 0 && !is_lazy)
		rc = gantry_memfd_populate(region->fd, 0, region->addr, bytes, 1);
	if (rc != 0)
		goto out_unmap;
	/* a forked child must not share pages that a device writes to */
	madvise(region->addr, bytes, MADV_DONTFORK);
	madvise(region->addr, bytes, MADV_DONTDUMP);
	region->length = bytes;
	return 0;

out_unmap:
	munmap(region->addr, bytes);
out_close:
	close(region->fd);
	return rc;
}

int gn_region_create(uint64_t bytes, int flags, struct gantry_region **region_p)
{
	int is_lazy = (flags & GANTRY_REGION_LAZY) != 0;
	struct gantry_region *region;
	int rc = -ENOMEM;

	if (bytes == 0 || bytes > INT64_MAX - HUGE_PAGE)
		return -EINVAL;
	region = calloc(1, sizeof(*region));
	if (!region)
		return -ENOMEM;
	if (flags & GANTRY_REGION_HUGE) {
		rc = map_memfd(region, round_up(bytes, HUGE_PAGE), 1, is_lazy);
		if (rc != 0)
			gn_log(GN_LOG_WARN, "memory",
			       "no huge pages available (bytes=%llu), using ordinary pages: raise /proc/sys/vm/nr_hugepages",
			       (unsigned long long)bytes);
	}
	if (rc != 0)
		rc = map_memfd(region, round_up(bytes, (uint64_t)sysconf(_SC_PAGESIZE)), 0,
			       is_lazy);
	if (rc != 0) {
		free(region);
		return rc;
	}
	region->rights = GANTRY_REMOTE_READ | GANTRY_REMOTE_WRITE;
	*region_p = region;
	return 0;
}

/*
 * Map whole pages of a memfd that contain [offset, offset + bytes). A mapping of huge pages begins
 * and ends at a huge page. Returns the address of `offset`; MAP_FAILED.
 */
static void *map_around(int fd, uint64_t offset, uint64_t bytes, uint64_t page)
{
	uint64_t down = offset % page;
	char *base = mmap(NULL, round_up(bytes + down, page), PROT_READ | PROT_WRITE, MAP_SHARED,
			  fd, (off_t)(offset - down));

	return base == MAP_FAILED ? MAP_FAILED : base + down;
}

/* Undo map_around(). */
static void unmap_around(const struct gantry_region *region, uint64_t page)
{
	uint64_t down = region->fd_offset % page;

	munmap((char *)region->addr - down, round_up(region->length + down, page));
}

/* Returns the unit of mappings of a memfd, in bytes. */
static uint64_t page_of(int fd)
{
	struct stat st;

	if (gantry_memfd_is_huge(fd) > 0 && fstat(fd, &st) == 0)
		return (uint64_t)st.st_blksize;
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Check the arguments of gn_region_map(). Returns 0 or -errno. */
static int check_memfd(int fd, uint64_t offset, uint64_t bytes, const char **reason_p)
{
	uint64_t mask = (uint64_t)sysconf(_SC_PAGESIZE) - 1, end;
	int rc;

	*reason_p = "offset or length is not a multiple of the page size";
	if (bytes == 0 || ((offset | bytes) & mask) != 0 ||
	    __builtin_add_overflow(offset, bytes, &end) || end > INT64_MAX - HUGE_PAGE)
		return -EINVAL;
	rc = gantry_memfd_check(fd, end, UINT64_MAX, NULL, reason_p);
	if (rc == 0 && (fcntl(fd, F_GET_SEALS) & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)) != 0) {
		*reason_p = "memory is sealed against writing";
		return -EPERM;
	}
	return rc;
}

int gn_region_map(int fd, uint64_t offset, uint64_t bytes, struct gantry_region **region_p,
		  const char **reason_p)
{
	struct gantry_region *region;
	int rc = check_memfd(fd, offset, bytes, reason_p);

	if (rc != 0)
		return rc;
	*reason_p = "memory cannot be mapped";
	region = calloc(1, sizeof(*region));
	if (!region)
		return -ENOMEM;
	region->addr = map_around(fd, offset, bytes, page_of(fd));
	if (region->addr == MAP_FAILED) {
		rc = -errno;
		free(region);
		return rc;
	}
	region->fd = fd;
	region->fd_offset = offset;
	region->length = bytes;
	region->rights = GANTRY_REMOTE_READ | GANTRY_REMOTE_WRITE;
	madvise(region->addr, bytes, MADV_DONTFORK);
	madvise(region->addr, bytes, MADV_DONTDUMP);
	*reason_p = "";
	*region_p = region;
	return 0;
}

/*
 * Copy the data extents of the memfd: most pages of a region might never have been touched. The
 * kernel copies, because another thread can write through the old mapping at the same time. Returns
 * 0 or -errno.
 */
static int copy_extents(const struct gantry_region *region, char *to)
{
	off_t at = 0, end;

	while ((at = lseek(region->fd, at, SEEK_DATA)) >= 0) {
		end = lseek(region->fd, at, SEEK_HOLE);
		if (end < 0 || (uint64_t)end > region->length)
			end = (off_t)region->length;
		while (at < end) {
			ssize_t n = pread(region->fd, to + at, (size_t)(end - at), at);

			if (n == 0)
				return -EIO;
			if (n < 0 && errno != EINTR)
				return -errno;
			at += n > 0 ? n : 0;
		}
	}
	return 0;
}

/*
 * Map other pages at the address of the region in one step. Returns 0; -ENOMEM: the region is
 * unchanged.
 */
static int replace_pages(const struct gantry_region *region, void *pages)
{
	if (mremap(pages, region->length, region->length, MREMAP_MAYMOVE | MREMAP_FIXED,
		   region->addr) != MAP_FAILED)
		return 0;
	munmap(pages, region->length);
	return -ENOMEM;
}

/* Map the memfd privately. A page is still that of the memfd until copy_pages() has copied it. */
static int make_private(const struct gantry_region *region)
{
	void *pages = mmap(NULL, region->length, PROT_READ | PROT_WRITE, MAP_PRIVATE, region->fd,
			   0);

	return pages == MAP_FAILED ? -ENOMEM : replace_pages(region, pages);
}

/*
 * Let the kernel copy each page of a private mapping that is not copied yet. Nothing that another
 * thread writes is lost: it is in the memfd before the kernel copies the page, and in the copy
 * afterwards.
 */
static int copy_pages(const struct gantry_region *region)
{
	return madvise(region->addr, region->length, MADV_POPULATE_WRITE) == 0 ? 0 : -errno;
}

/*
 * Copy a region of huge pages to ordinary pages. make_private() would need as many further huge
 * pages, and the kernel frees private copies of huge pages when a peer punches a hole into the
 * memfd. What another thread writes during the call can be lost.
 */
static int copy_to_ordinary_pages(const struct gantry_region *region)
{
	void *pages = mmap(NULL, region->length, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int rc;

	if (pages == MAP_FAILED)
		return -ENOMEM;
	rc = copy_extents(region, pages);
	if (rc == 0)
		return replace_pages(region, pages);
	munmap(pages, region->length);
	return rc;
}

int gn_region_withdraw(struct gantry_region *region)
{
	int huge, rc;

	if (region->fd < 0)
		return copy_pages(region);
	huge = gantry_memfd_is_huge(region->fd) > 0;
	rc = huge ? copy_to_ordinary_pages(region) : make_private(region);
	if (rc != 0)
		return rc;
	close(region->fd);
	region->fd = -1;
	return huge ? 0 : copy_pages(region);
}

void gn_region_destroy(struct gantry_region **region_p, int released)
{
	struct gantry_region *region = *region_p;

	*region_p = NULL;
	if (!region)
		return;
	if (!released)
		__atomic_fetch_add(&quarantined, region->length, __ATOMIC_RELAXED);
	else if (region->fd >= 0)
		unmap_around(region, page_of(region->fd));
	else
		munmap(region->addr, region->length);
	if (region->fd >= 0)
		close(region->fd);
	free(region);
}

int gn_region_has_pages(const struct gantry_region *region)
{
	struct stat st;

	return region->fd >= 0 && fstat(region->fd, &st) == 0 &&
	       st.st_blocks >= (st.st_size + 511) / 512;
}

/* Maps a region without an address for the duration of the call. */
int gn_region_make_pages(const struct gantry_region *region, uint64_t at, uint64_t bytes)
{
	int writes = (region->rights & GANTRY_REMOTE_WRITE) != 0,
	    prot = PROT_READ | (writes ? PROT_WRITE : 0), rc;
	uint64_t begin = (region->addr ? (uintptr_t)region->addr : region->fd_offset) + at;
	uint64_t mask = (uint64_t)sysconf(_SC_PAGESIZE) - 1, down = begin & mask;
	void *base = (void *)(uintptr_t)(begin - down);

	if (!region->addr)
		base = mmap(NULL, bytes + down, prot, MAP_SHARED, region->fd,
			    (off_t)(begin - down));
	if (base == MAP_FAILED)
		return -errno;
	rc = gantry_memfd_populate(region->fd, (region->fd_offset + at) & ~mask, base, bytes + down,
				   writes);
	if (!region->addr)
		munmap(base, bytes + down);
	return rc;
}

uint64_t gn_region_quarantined(void)
{
	return __atomic_load_n(&quarantined, __ATOMIC_RELAXED);
}
