/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm_pages.c - checks that the peer keeps the pages of imported regions.
 *
 * A region that its importer can write has no seal against writing, so its owner can free its
 * pages. While the kernel frees pages, a process that accesses them waits. Its access then
 * allocates new pages, which are charged to its cgroup. So this device ends the connection of a
 * peer that frees pages of a region which its user has imported with GANTRY_IMPORT_KEEPS_PAGES,
 * until the last release of that region. It does not check other regions: the DOCA library exports
 * ranges of one sparse file, and frees pages of it.
 *
 * fstat(2) counts the pages of a whole file, and does not wait while another process frees some.
 * The file must have all its pages at the import. The peer has freed pages if a later count is
 *
 *   - smaller than the size of the file, or
 *   - larger than the previous count: a freed page has been allocated again. The file cannot get
 *     pages beyond its end, because it is sealed against growing. It can lose pages beyond its
 *     end: a transparent huge page can extend beyond the end until the kernel splits it.
 *
 * A swapped page counts as present: shmem lowers the count only for pages that it frees. The pages
 * of fallocate(2) are dirty, so the kernel swaps them and never drops them.
 *
 * The check misses pages that the peer frees and allocates again between two checks. So the times
 * of the checks are random.
 */
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <gantry/memfd.h>

#include "shm_comch.h"

#define BLOCK 512u

static uint64_t next_check(uint64_t now_ns)
{
	uint64_t random;

	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random))
		random = now_ns;
	return now_ns + COMCH_PAGES_NS / 2 + random % COMCH_PAGES_NS;
}

static bool can_shrink(int fd)
{
	return !(fcntl(fd, F_GET_SEALS) & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE));
}

int comch_pages_begin(struct comch_conn *conn, struct comch_import *r)
{
	struct comch_device *dev = conn->dev;
	struct stat st;

	if (r->can_shrink || !can_shrink(r->fd))
		return 0;
	if (fstat(r->fd, &st))
		return -errno;
	r->blocks_min = ((uint64_t)st.st_size + BLOCK - 1) / BLOCK;
	r->blocks_max = (uint64_t)st.st_blocks;
	if (r->blocks_max < r->blocks_min) {
		snprintf(conn->import_error, sizeof(conn->import_error),
			 "the file of region %u has holes (blocks=%llu, "
			 "expected=%llu)",
			 r->handle, (unsigned long long)r->blocks_max,
			 (unsigned long long)r->blocks_min);
		return -ENOMEM;
	}
	r->can_shrink = true;
	conn->n_checked++;
	if (!dev->pages_ns)
		dev->pages_ns = next_check(comch_now(dev));
	if (!dev->deadline_ns || dev->pages_ns < dev->deadline_ns)
		dev->deadline_ns = dev->pages_ns;
	return 0;
}

void comch_pages_end(struct comch_conn *conn, struct comch_import *r)
{
	conn->n_checked -= r->can_shrink;
	r->can_shrink = false;
}

/* Returns true if the peer has kept the pages of the region; else ends the connection. */
static bool has_pages(struct comch_conn *conn, struct comch_import *r)
{
	char why[COMCH_REFUSED_TEXT];
	struct stat st;
	uint64_t blocks;

	if (!r->can_shrink || fstat(r->fd, &st))
		return true;
	blocks = (uint64_t)st.st_blocks;
	if (blocks >= r->blocks_min && blocks <= r->blocks_max) {
		r->blocks_max = blocks;
		return true;
	}
	snprintf(
		why, sizeof(why),
		"protocol error: pages of a region were freed or replaced (region=%u, blocks=%llu, expected=%llu)",
		r->handle, (unsigned long long)blocks,
		(unsigned long long)(blocks < r->blocks_min ? r->blocks_min : r->blocks_max));
	comch_conn_expel(conn, why);
	comch_regions_cut_off(conn);
	return false;
}

static void check_conn(struct comch_conn *conn)
{
	for (unsigned int i = 0; i < COMCH_REGIONS; i++)
		if (!has_pages(conn, &conn->imported[i]))
			return;
}

void comch_pages_check(struct comch_device *dev, uint64_t now_ns)
{
	struct comch_conn *conn, *next_conn;

	dev->pages_ns = 0;
	comch_each (conn, next_conn, &dev->conns) {
		if (!conn->n_checked || conn->state != COMCH_S_OPEN || conn->reason == -EPROTO)
			continue;
		check_conn(conn);
		dev->pages_ns = now_ns;
	}
	if (dev->pages_ns)
		dev->pages_ns = next_check(now_ns);
}
