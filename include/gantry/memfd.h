/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memfd.h - create memory that is passed to another process as a file descriptor, and check such
 * memory of a peer before use.
 *
 * Needs _GNU_SOURCE. Any thread.
 */
#ifndef GANTRY_MEMFD_H
#define GANTRY_MEMFD_H

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#if !defined(MFD_CLOEXEC) || !defined(F_SEAL_FUTURE_WRITE)
#error "define _GNU_SOURCE before the first include"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* use explicit huge pages; the function fails with -ENOMEM if too few are reserved */
#define GANTRY_MEMFD_HUGE 0x1u

#define GANTRY_MEMFD_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define GANTRY_MEMFD_HUGETLBFS 0x958458f6ul
#define GANTRY_MEMFD_MODE 0644

#ifndef MADV_POPULATE_WRITE /* Linux 5.14 */
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

/*
 * gantry_memfd_create - create a memfd of `bytes` zeroed bytes
 *
 * The mode is 0644 instead of the 0777 of a new memfd. So a process of another user that gets a
 * read-only descriptor cannot reopen it for writing through /proc.
 *
 * name     shown in /proc only
 * bytes    more than 0; a multiple of the page size if the memory is to be mapped
 * flags    GANTRY_MEMFD_*
 * returns  the descriptor, with close-on-exec; the caller owns it
 *          -EINVAL: bytes is out of range
 *          -ENOMEM: out of memory or huge pages
 *          another -errno of memfd_create(2), fchmod(2), ftruncate(2) or fallocate(2)
 * thread   any
 */
static inline int gantry_memfd_create(const char *name, uint64_t bytes, unsigned int flags)
{
	unsigned int mfd = MFD_CLOEXEC | MFD_ALLOW_SEALING |
			   (flags & GANTRY_MEMFD_HUGE ? MFD_HUGETLB : 0);
	int fd, err;

	if (bytes == 0 || bytes > INT64_MAX)
		return -EINVAL;
	fd = memfd_create(name, mfd);
	if (fd < 0)
		return -errno;
	/* Without fallocate, a lack of huge pages would cause SIGBUS at the first access. */
	if (fchmod(fd, GANTRY_MEMFD_MODE) || ftruncate(fd, (off_t)bytes) ||
	    ((flags & GANTRY_MEMFD_HUGE) && fallocate(fd, 0, 0, (off_t)bytes))) {
		err = errno == ENOSPC ? ENOMEM : errno;
		close(fd);
		return -err;
	}
	return fd;
}

/*
 * gantry_memfd_seal - fix the size of a memfd permanently
 *
 * A peer then cannot truncate the memory and so cause SIGBUS in this process.
 *
 * more     F_SEAL_FUTURE_WRITE if only existing mappings are to be writable, else 0
 * returns  0
 *          -errno of fcntl(2)
 * thread   any
 */
static inline int gantry_memfd_seal(int fd, int more)
{
	return fcntl(fd, F_ADD_SEALS, GANTRY_MEMFD_SEALS | more) ? -errno : 0;
}

/*
 * gantry_memfd_populate - allocate the pages of a shared mapping before another process can touch
 * them
 *
 * The kernel charges a page to the memory control group of the process that allocates it. So the
 * owner of a memfd calls this before it passes the descriptor on. Pages that exist already stay
 * unchanged.
 *
 * fallocate(2) reports a lack of memory that would otherwise cause SIGBUS at a later access.
 * madvise(2) then clears and maps the pages. Together they take no longer than MAP_POPULATE.
 *
 * fd       the memfd. With -1 or a read-only descriptor only madvise(2) allocates, which needs
 *          Linux 5.14
 * offset   bytes: where the mapping begins in the memfd; a multiple of the page size
 * addr     the mapping, page aligned; PROT_WRITE if `write` is set
 * bytes    length of the mapping
 * write    whether to map the pages for writing as well
 * returns  0
 *          -ENOMEM: out of memory or huge pages; some pages can remain allocated
 *          another -errno of fallocate(2) or madvise(2)
 * thread   any
 */
static inline int gantry_memfd_populate(int fd, uint64_t offset, void *addr, uint64_t bytes,
					int write)
{
	int rc;

	do
		rc = fallocate(fd, 0, (off_t)offset, (off_t)bytes);
	while (rc && errno == EINTR);
	if (rc && errno != EBADF)
		return errno == ENOSPC ? -ENOMEM : -errno;
	if (madvise(addr, bytes, write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) &&
	    (rc || errno != EINVAL))
		/* EFAULT: an access would raise SIGBUS */
		return errno == EFAULT ? -ENOMEM : -errno;
	return 0;
}

/*
 * gantry_memfd_check_pages - check that a memfd of a peer has as many pages as the peer exports
 *
 * The kernel charges a missing page to the process that touches it. The peer can still free pages
 * after the check unless the memfd has the seal F_SEAL_WRITE or F_SEAL_FUTURE_WRITE. Swapped pages
 * and huge pages count as present.
 *
 * bytes      length of the export: the memfd or a part of it
 * present_p  out: bytes of the memfd that have pages, at any offset; at most `bytes`
 * returns    0
 *            -ENOMEM: there are fewer pages than `bytes` need
 *            another -errno of fstat(2)
 * thread     any
 */
static inline int gantry_memfd_check_pages(int fd, uint64_t bytes, uint64_t *present_p)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	*present_p = (uint64_t)st.st_blocks * 512;
	if (*present_p < bytes)
		return -ENOMEM;
	*present_p = bytes;
	return 0;
}

/*
 * gantry_memfd_is_huge - find out whether a memfd has huge pages
 *
 * returns  1: huge pages; 0: ordinary pages
 *          -errno of fstatfs(2)
 * thread   any
 */
static inline int gantry_memfd_is_huge(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) ? -errno : (unsigned long)fs.f_type == GANTRY_MEMFD_HUGETLBFS;
}

/*
 * gantry_memfd_check - check that a descriptor of a peer can be mapped safely
 *
 * min_bytes    size that the peer claims
 * quota_bytes  largest size that the peer is permitted to export
 * bytes_p      out: the size; may be NULL
 * reason_p     out: text for the log, "" after success; may be NULL
 * returns      0
 *              -EINVAL: not a regular file
 *              -EPERM: not sealed against shrinking and growing
 *              -ERANGE: smaller than claimed
 *              -EDQUOT: larger than the quota
 *              -ENOMEM: the memfd has huge pages that are not reserved
 *              another -errno of fstat(2) or fstatfs(2)
 * thread       any
 * since        1.0
 */
static inline int gantry_memfd_check(int fd, uint64_t min_bytes, uint64_t quota_bytes,
				     uint64_t *bytes_p, const char **reason_p)
{
	const char *unused;
	struct stat st;
	int seals, huge;

	if (!reason_p)
		reason_p = &unused;
	*reason_p = "descriptor cannot be examined";
	if (fstat(fd, &st))
		return -errno;
	huge = gantry_memfd_is_huge(fd);
	if (huge < 0)
		return huge;
	if (!S_ISREG(st.st_mode)) {
		*reason_p = "not a memory file";
		return -EINVAL;
	}
	seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0 || (seals & (F_SEAL_SHRINK | F_SEAL_GROW)) != (F_SEAL_SHRINK | F_SEAL_GROW)) {
		*reason_p = "memory is not sealed against shrinking and growing";
		return -EPERM;
	}
	if ((uint64_t)st.st_size < min_bytes) {
		*reason_p = "memory is smaller than claimed";
		return -ERANGE;
	}
	if ((uint64_t)st.st_size > quota_bytes) {
		*reason_p = "memory exceeds the quota";
		return -EDQUOT;
	}
	if (huge && st.st_blocks < (st.st_size + 511) / 512) {
		*reason_p = "huge pages are not reserved";
		return -ENOMEM;
	}
	*reason_p = "";
	if (bytes_p)
		*bytes_p = (uint64_t)st.st_size;
	return 0;
}

#ifdef __cplusplus
}
#endif

#endif
