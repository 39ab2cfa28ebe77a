/* SPDX-License-Identifier: BSD-3-Clause */
/* memory.c - what memory goes from one process to another. */
#include <gantry/memfd.h>

#include "comch.h"

/*
 * Whoever can write memory can punch holes into it, which its seals do not forbid. The next touch fills them with zeroes; but
 * for huge pages when there are no more of them, which is a SIGBUS. Processes of one user may end each other anyway.
 */
static bool may_vanish(const struct comch_conn *conn, int fd)
{
	struct statfs fs;

	return conn->peer.uid != conn->dev->uids[0] && fstatfs(fd, &fs) == 0 &&
	       (unsigned long)fs.f_type == GANTRY_MEMFD_HUGETLBFS;
}

int comch_memory_check(const struct comch_conn *conn, int fd, uint64_t min_bytes, uint64_t quota_bytes, const char **why_p)
{
	if (!may_vanish(conn, fd))
		return gantry_memfd_check(fd, min_bytes, quota_bytes, NULL, why_p);
	*why_p = "huge pages do not go from user to user, who could take them away again: huge_pages must be false there";
	return -EPERM;
}
