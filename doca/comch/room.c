/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * room.c - how long the posted buffers are, for the peer's producers to look at before they send.
 *
 * A side has one piece of memory for each connection, which only it writes and the peer reads. Each
 * of its consumers has a row of words there, one for each post, in turns: the number of the post,
 * counted from 1, above its length.
 *
 * A producer that has sent n messages looks at the word of post n + 1. Is that post not there yet,
 * then nothing is posted that could take its message, however many other producers there are. Is it
 * there, its length is the one that counts, unless others send to that consumer as well: then the
 * message may find another buffer, and if that is too short, the receiver hears.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <gantry/memfd.h>
#include <gantry/shm.h>

#include "comch/fast.h"

#define ROWS 128u
#define ROW_WORDS GD_FAST_POSTS
#define BYTES (ROWS * ROW_WORDS * sizeof(uint64_t))
#define HANDLE UINT32_MAX /* of the region; those of maps count from 1 */

struct gd_recv_credits {
	struct gantry_region region; /* exported until the link is closed */
	struct gantry_token token;
	bool is_told; /* the peer has the token, or will get it */
	uint64_t used[ROWS / 64];
};

/* -- ours -- */

static struct gd_recv_credits *create(void)
{
	struct gd_recv_credits *rooms = calloc(1, sizeof(*rooms));
	void *addr;
	int fd;

	if (!rooms)
		return NULL;
	fd = gantry_memfd_create("gantry-rooms", BYTES, 0);
	addr = fd < 0 ? MAP_FAILED : mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (addr != MAP_FAILED && gantry_memfd_populate(fd, 0, addr, BYTES, 1) == 0 &&
	    gantry_memfd_seal(fd, F_SEAL_FUTURE_WRITE) == 0) {
		madvise(addr, BYTES, MADV_DONTFORK);
		rooms->region = (struct gantry_region){
			.addr = addr, .length = BYTES, .fd = fd, .rights = GANTRY_REMOTE_READ};
		return rooms;
	}
	if (addr != MAP_FAILED)
		munmap(addr, BYTES);
	if (fd >= 0)
		close(fd);
	free(rooms);
	return NULL;
}

static void destroy(struct gd_recv_credits *rooms)
{
	munmap(rooms->region.addr, BYTES);
	close(rooms->region.fd);
	free(rooms);
}

static int make(struct doca_comch_connection *conn, const struct gantry_transport_ops *ops)
{
	struct gd_recv_credits *rooms = create();
	int rc;

	if (!rooms)
		return -ENOMEM;
	rc = ops->export_region(conn->link, &rooms->region, GANTRY_REMOTE_READ, HANDLE,
				&rooms->token);
	if (rc)
		destroy(rooms);
	else
		conn->rooms = rooms;
	return rc;
}

/* Give the peer the memory. */
static int tell(struct doca_comch_connection *conn)
{
	struct {
		struct gd_comch_head head;
		struct gantry_token token;
	} word = {.head.word = GD_ROOMS, .token = conn->rooms->token};
	int rc = gd_conn_tell_bytes(conn, &word, sizeof(word));

	conn->rooms->is_told = rc == 0;
	return rc;
}

int gd_recv_credit_open(struct doca_comch_connection *conn, uint32_t *row_p)
{
	const struct gantry_transport_ops *ops = gd_transport_ops(conn->transport);
	int rc = conn->rooms ? 0 : make(conn, ops);
	struct gd_recv_credits *rooms = conn->rooms;

	if (rc == 0 && !rooms->is_told)
		rc = tell(conn);
	if (rc)
		return rc;
	for (uint32_t row = 0; row < ROWS; row++) {
		if (rooms->used[row / 64] & 1ull << row % 64)
			continue;
		rooms->used[row / 64] |= 1ull << row % 64;
		for (uint32_t i = 0; i < ROW_WORDS; i++)
			if (gd_recv_credit_row(conn, row)[i])
				gantry_shm_st64(&gd_recv_credit_row(conn, row)[i], 0);
		*row_p = row;
		return 0;
	}
	return -ENOSPC;
}

void gd_recv_credit_close(struct doca_comch_connection *conn, uint32_t row)
{
	conn->rooms->used[row / 64] &= ~(1ull << row % 64);
}

uint64_t *gd_recv_credit_row(const struct doca_comch_connection *conn, uint32_t row)
{
	return (uint64_t *)conn->rooms->region.addr + (size_t)row * ROW_WORDS;
}

/* -- the peer's -- */

const char *gd_recv_credits_heard(struct doca_comch_connection *conn, const void *token_bytes,
				  uint32_t len)
{
	const struct gantry_transport_ops *ops = gd_transport_ops(conn->transport);
	struct gantry_token token;

	if (len != sizeof(token) || conn->peer_rooms)
		return "the peer's memory for lengths makes no sense";
	memcpy(&token, token_bytes, sizeof(token));
	if (token.length != BYTES ||
	    ops->import_region(conn->link, &token, GANTRY_IMPORT_MAP, &conn->peer_rooms))
		return "the peer's memory for lengths cannot be mapped";
	return NULL;
}

const uint64_t *gd_recv_credit_of_peer(const struct doca_comch_connection *conn, uint32_t row)
{
	if (!conn->peer_rooms || row >= ROWS)
		return NULL;
	return (const uint64_t *)conn->peer_rooms->addr + (size_t)row * ROW_WORDS;
}

void gd_recv_credits_let_go(struct doca_comch_connection *conn)
{
	if (conn->peer_rooms)
		gd_transport_ops(conn->transport)->release_region(conn->link, conn->peer_rooms);
	conn->peer_rooms = NULL;
}

void gd_recv_credits_free(struct doca_comch_connection *conn)
{
	if (conn->rooms)
		destroy(conn->rooms);
	conn->rooms = NULL;
}
