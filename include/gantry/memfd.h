/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memfd.h - memory that is handed to another process as a file descriptor, and the checks before one is accepted.
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

#define GANTRY_MEMFD_HUGE 0x1u /* explicit huge pages; fails with -ENOMEM when none are reserved */

#define GANTRY_MEMFD_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define GANTRY_MEMFD_HUGETLBFS 0x958458f6ul
#define GANTRY_MEMFD_MODE 0644

/*
 * Makes zeroed memory of `bytes` (more than 0; a multiple of the page size if it is to be mapped). The caller owns the
 * descriptor, which closes on exec. Another user who is given one for reading cannot make of it one for writing, which the mode
 * of a memfd, 0777, lets everybody do by way of /proc. name: for /proc only. Returns the descriptor, or -errno.
 */
static inline int gantry_memfd_create(const char *name, uint64_t bytes, unsigned int flags)
{
	unsigned int mfd = MFD_CLOEXEC | MFD_ALLOW_SEALING | (flags & GANTRY_MEMFD_HUGE ? MFD_HUGETLB : 0);
	int fd, err;

	if (bytes == 0 || bytes > INT64_MAX)
		return -EINVAL;
	fd = memfd_create(name, mfd);
	if (fd < 0)
		return -errno;
	/* Without fallocate the pages of a huge memfd are found missing by SIGBUS only. */
	if (fchmod(fd, GANTRY_MEMFD_MODE) || ftruncate(fd, (off_t)bytes) ||
	    ((flags & GANTRY_MEMFD_HUGE) && fallocate(fd, 0, 0, (off_t)bytes))) {
		err = errno == ENOSPC ? ENOMEM : errno;
		close(fd);
		return -err;
	}
	return fd;
}

/*
 * Fixes the size for ever, so that no peer can make us fault on memory that went away. more: F_SEAL_FUTURE_WRITE when
 * only the mappings that exist now may write, else 0. Returns 0 or -errno.
 */
static inline int gantry_memfd_seal(int fd, int more)
{
	return fcntl(fd, F_ADD_SEALS, GANTRY_MEMFD_SEALS | more) ? -errno : 0;
}

/*
 * May this descriptor, which a peer sent, be mapped? min_bytes: what the peer claims; quota_bytes: what it may have.
 * Returns 0, and the true size in *bytes_p unless that is NULL; or
 *	-EINVAL    not a regular file               -EPERM   could shrink or grow under us
 *	-ERANGE    smaller than claimed             -EDQUOT  larger than the quota
 *	-ENOMEM    huge pages without pages behind them
 * or another -errno of fstat and the like; then *reason_p, unless reason_p is NULL, is a text for the log.
 */
static inline int gantry_memfd_check(int fd, uint64_t min_bytes, uint64_t quota_bytes, uint64_t *bytes_p,
				     const char **reason_p)
{
	const char *unused;
	struct statfs fs;
	struct stat st;
	int seals;

	if (!reason_p)
		reason_p = &unused;
	*reason_p = "descriptor cannot be examined";
	if (fstat(fd, &st) || fstatfs(fd, &fs))
		return -errno;
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
	if ((unsigned long)fs.f_type == GANTRY_MEMFD_HUGETLBFS && st.st_blocks < (st.st_size + 511) / 512) {
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
