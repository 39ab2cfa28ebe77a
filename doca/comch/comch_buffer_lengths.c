/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comch_buffer_lengths.c - the lengths of posted buffers, which producers of the peer read before
 * they send
 *
 * A side has one memory region for each connection. Only this side writes it; the peer reads it.
 * Each consumer of the side has a row of words, a ring with one word for each post. The upper half
 * of a word is the number of the post, counted from 1; the lower half is the length of its buffer.
 *
 * A producer that has sent n messages reads the word of post n + 1. If the post is missing, no
 * receive is available for its message, whatever other producers do. If the post is there, its
 * length is the limit for the message. But if other producers send to the same consumer, the
 * message can reach another buffer. If that buffer is too short, the receive task fails.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <gantry/memfd.h>
#include <gantry/shm.h>

#include "comch/comch_fast.h"

#define ROWS 128u
#define ROW_WORDS GD_FAST_POSTS
#define BYTES (ROWS * ROW_WORDS * sizeof(uint64_t))
/* handle of the region of posted lengths; the handles of maps count up from 1 */
#define HANDLE UINT32_MAX

struct gd_recv_credits {
	struct gantry_region region; /* exported until the link is closed */
	struct gantry_token token;
	bool is_sent; /* the token is sent or queued */
	uint64_t used[ROWS / 64];
};

/* -- memory of this side -- */

static struct gd_recv_credits *create(void)
{
	struct gd_recv_credits *credits = calloc(1, sizeof(*credits));
	void *addr;
	int fd;

	if (!credits)
		return NULL;
	fd = gantry_memfd_create("gantry-recv-credits", BYTES, 0);
	addr = fd < 0 ? MAP_FAILED : mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (addr != MAP_FAILED && gantry_memfd_populate(fd, 0, addr, BYTES, 1) == 0 &&
	    gantry_memfd_seal(fd, F_SEAL_FUTURE_WRITE) == 0) {
		madvise(addr, BYTES, MADV_DONTFORK);
		credits->region = (struct gantry_region){
			.addr = addr, .length = BYTES, .fd = fd, .rights = GANTRY_REMOTE_READ};
		return credits;
	}
	if (addr != MAP_FAILED)
		munmap(addr, BYTES);
	if (fd >= 0)
		close(fd);
	free(credits);
	return NULL;
}

static void destroy(struct gd_recv_credits *credits)
{
	munmap(credits->region.addr, BYTES);
	close(credits->region.fd);
	free(credits);
}

static int export_credits(struct doca_comch_connection *conn,
			  const struct gantry_transport_ops *ops)
{
	struct gd_recv_credits *credits = create();
	int rc;

	if (!credits)
		return -ENOMEM;
	rc = ops->export_region(conn->link, &credits->region, GANTRY_REMOTE_READ, HANDLE,
				&credits->token);
	if (rc)
		destroy(credits);
	else
		conn->recv_credits = credits;
	return rc;
}

/* Send the token of the memory to the peer. */
static int send_token(struct doca_comch_connection *conn)
{
	struct {
		struct gd_comch_head head;
		struct gantry_token token;
	} msg = {.head.op = GD_RECV_CREDITS, .token = conn->recv_credits->token};
	int rc = gd_conn_queue_bytes(conn, &msg, sizeof(msg));

	conn->recv_credits->is_sent = rc == 0;
	return rc;
}

int gd_recv_credit_open(struct doca_comch_connection *conn, uint32_t *row_p)
{
	const struct gantry_transport_ops *ops = gd_transport_ops(conn->transport);
	int rc = conn->recv_credits ? 0 : export_credits(conn, ops);
	struct gd_recv_credits *credits = conn->recv_credits;

	if (rc == 0 && !credits->is_sent)
		rc = send_token(conn);
	if (rc)
		return rc;
	for (uint32_t row = 0; row < ROWS; row++) {
		if (credits->used[row / 64] & 1ull << row % 64)
			continue;
		credits->used[row / 64] |= 1ull << row % 64;
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
	conn->recv_credits->used[row / 64] &= ~(1ull << row % 64);
}

uint64_t *gd_recv_credit_row(const struct doca_comch_connection *conn, uint32_t row)
{
	return (uint64_t *)conn->recv_credits->region.addr + (size_t)row * ROW_WORDS;
}

/* -- memory of the peer -- */

const char *gd_recv_credits_import(struct doca_comch_connection *conn, const void *token_bytes,
				   uint32_t len)
{
	const struct gantry_transport_ops *ops = gd_transport_ops(conn->transport);
	struct gantry_token token;

	if (len != sizeof(token) || conn->peer_recv_credits)
		return "protocol error: invalid or repeated token of the receive credits";
	memcpy(&token, token_bytes, sizeof(token));
	if (ops->import_region(conn->link, &token, GANTRY_IMPORT_MAP, &conn->peer_recv_credits) ||
	    conn->peer_recv_credits->length != BYTES)
		return "the receive credits of the peer cannot be mapped";
	return NULL;
}

const uint64_t *gd_recv_credit_of_peer(const struct doca_comch_connection *conn, uint32_t row)
{
	if (!conn->peer_recv_credits || row >= ROWS)
		return NULL;
	return (const uint64_t *)conn->peer_recv_credits->addr + (size_t)row * ROW_WORDS;
}

void gd_recv_credits_release(struct doca_comch_connection *conn)
{
	if (conn->peer_recv_credits)
		gd_transport_ops(conn->transport)
			->release_region(conn->link, conn->peer_recv_credits);
	conn->peer_recv_credits = NULL;
}

void gd_recv_credits_free(struct doca_comch_connection *conn)
{
	if (conn->recv_credits)
		destroy(conn->recv_credits);
	conn->recv_credits = NULL;
}
