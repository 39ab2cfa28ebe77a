/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vhost_map.c - maps guest memory that is not exported: its data is copied, so the memory need not
 * be sealed. Control thread.
 *
 * A front end that truncates the file while it is mapped ends this process by SIGBUS.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gantry/memfd.h>

#include "vhost.h"

/* Returns 0; or -errno with the problem as text. */
static int check_file(int fd, uint64_t offset, uint64_t bytes, const char **why_p)
{
	const uint64_t mask = (uint64_t)sysconf(_SC_PAGESIZE) - 1;
	struct stat st;

	*why_p = "descriptor cannot be examined";
	if (fstat(fd, &st))
		return -errno;
	*why_p = "offset or length is not a multiple of the page size";
	if (((offset | bytes) & mask) != 0 || bytes == 0)
		return -EINVAL;
	*why_p = "not a file";
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	*why_p = "huge pages cannot be copied";
	if (gantry_memfd_is_huge(fd) != 0)
		return -ENOTSUP;
	*why_p = "file is too short";
	return offset <= (uint64_t)st.st_size && bytes <= (uint64_t)st.st_size - offset ? 0
											: -ERANGE;
}

int vhost_map(int fd, uint64_t offset, uint64_t bytes, struct gantry_region **region_p,
	      const char **why_p)
{
	struct gantry_region *region;
	void *addr;
	int rc = check_file(fd, offset, bytes, why_p);

	if (rc != 0)
		return rc;
	*why_p = "memory cannot be mapped";
	region = calloc(1, sizeof(*region));
	if (!region)
		return -ENOMEM;
	addr = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);
	if (addr == MAP_FAILED) {
		rc = -errno;
		free(region);
		return rc;
	}
	madvise(addr, bytes, MADV_DONTFORK);
	madvise(addr, bytes, MADV_DONTDUMP);
	region->addr = addr;
	region->fd = fd;
	region->fd_offset = offset;
	region->length = bytes;
	*region_p = region;
	return 0;
}

void vhost_unmap(struct gantry_region *region)
{
	munmap(region->addr, region->length);
	close(region->fd);
	free(region);
}
