/* SPDX-License-Identifier: BSD-3-Clause */
/* shm_memory.c - checks memory that one process passes to another. */
#include <stdio.h>

#include <gantry/memfd.h>

#include "shm_comch.h"

/*
 * Returns true if an access to the memory can raise SIGBUS. A process that can write memory can
 * punch holes into it, whatever its seals. The next access fills a hole with zeroes, but a hole in
 * huge pages raises SIGBUS if no huge page is free. Between processes of one user this is accepted,
 * because they can end each other anyway.
 */
static bool can_lose_pages(const struct comch_conn *conn, int fd)
{
	return conn->peer.uid != conn->dev->uids[0] && gantry_memfd_is_huge(fd) > 0;
}

static int check_file(const struct comch_conn *conn, int fd, uint64_t min_bytes,
		      uint64_t quota_bytes, const char **why_p)
{
	if (!can_lose_pages(conn, fd))
		return gantry_memfd_check(fd, min_bytes, quota_bytes, NULL, why_p);
	*why_p =
		"huge pages cannot be passed between users, because their owner can free them: set huge_pages = false in its role";
	return -EPERM;
}

int comch_memory_check(const struct comch_conn *conn, const struct comch_memory *m,
		       char why[COMCH_WHY])
{
	const char *reason = "";
	uint64_t present = 0;
	int rc = check_file(conn, m->fd, m->offset + m->bytes, m->quota_bytes, &reason);

	if (rc) {
		snprintf(why, COMCH_WHY, "%s", reason);
		return rc;
	}
	rc = gantry_memfd_check_pages(m->fd, m->bytes, &present);
	if (rc)
		snprintf(why, COMCH_WHY, "%s %u has holes: %llu of %llu bytes are present", m->what,
			 m->number, (unsigned long long)present, (unsigned long long)m->bytes);
	return rc;
}

int comch_memory_check_frozen(const struct comch_conn *conn, const struct comch_memory *m,
			      char why[COMCH_WHY])
{
	int rc = comch_memory_check(conn, m, why);

	if (rc || (fcntl(m->fd, F_GET_SEALS) & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)))
		return rc;
	snprintf(why, COMCH_WHY, "%s %u is not sealed against writing", m->what, m->number);
	return -EPERM;
}
