/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rma.c - conformance: remote reads and writes, their order relative to messages, and memory that
 * they must not access.
 */
#include "conform/rig.h"

#define BOTH (GANTRY_REMOTE_READ | GANTRY_REMOTE_WRITE)
#define BYTES 65536u

static struct gantry_region *import_to_b(struct rig_memory *m, uint32_t rights, uint32_t handle)
{
	struct gantry_region *r = NULL;
	struct gantry_token token;

	RIG_OK(rig.ops->export_region(rig.a.conn, &m->region, rights, handle, &token));
	rig_fence();
	RIG_OK(rig.ops->import_region(rig.b.conn, &token, 0, &r));
	return r;
}

static void remote_read_and_write(void)
{
	uint8_t *local = rig_local(BYTES);
	struct gantry_region *r;
	struct rig_memory m;
	struct rig_rma *q;
	uint64_t moved;

	rig_need(RIG_RMA);
	rig_connect();
	rig_memory_open(&m, BYTES, BOTH);
	r = import_to_b(&m, BOTH, 1);
	q = rig_rma_open(&rig.b, 4, 0);
	for (uint32_t length = 1; length <= BYTES; length *= 2) {
		rig_fill(m.bytes, BYTES, length);
		memset(local, 0xaa, BYTES);
		RIG_OK(rig_rma_move(q, GANTRY_RMA_READ, local, r, 0, length));
		RIG_HOLDS(rig_filled(local, length, length), "data that was read");
		if (length < BYTES)
			RIG_NUM(0xaa, local[length],
				"byte behind the data that was read: it does not change");
		rig_fill(local, length, length + 1);
		RIG_OK(rig_rma_move(q, GANTRY_RMA_WRITE, local, r, BYTES - length, length));
		RIG_HOLDS(rig_filled(m.bytes + BYTES - length, length, length + 1),
			  "memory after a remote write");
	}
	rig_rma_close(q);
	if (rig_payload(&moved))
		RIG_NUM(2 * (2 * BYTES - 1), moved,
			"counter payload_bytes: each byte is copied once");
	rig.ops->release_region(rig.b.conn, r);
}

static void remote_access_is_checked(void)
{
	struct gantry_region *ro, *wo;
	uint8_t *local = rig_local(64);
	struct rig_rma *q, *other;
	struct rig_memory m, n;
	void *first_b;

	rig_need(RIG_RMA);
	rig_connect();
	first_b = rig.b.conn;
	rig_memory_open(&m, BYTES, BOTH);
	rig_memory_open(&n, BYTES, BOTH);
	ro = import_to_b(&m, GANTRY_REMOTE_READ, 1);
	wo = import_to_b(&n, GANTRY_REMOTE_WRITE, 2);
	q = rig_rma_open(&rig.b, 4, 0);
	RIG_RC(-EACCES, rig_rma(q, GANTRY_RMA_WRITE, local, ro, 0, 64, 0),
	       "rma_submit of a write without GANTRY_REMOTE_WRITE");
	RIG_RC(-EACCES, rig_rma(q, GANTRY_RMA_READ, local, wo, 0, 64, 0),
	       "rma_submit of a read without GANTRY_REMOTE_READ");
	RIG_RC(-ERANGE, rig_rma(q, GANTRY_RMA_READ, local, ro, BYTES - 63, 64, 0),
	       "rma_submit of a read that ends behind the region");
	RIG_RC(-ERANGE, rig_rma(q, GANTRY_RMA_READ, local, ro, BYTES, 1, 0),
	       "rma_submit of a read behind the region");
	RIG_RC(-ERANGE, rig_rma(q, GANTRY_RMA_READ, local, ro, UINT64_MAX - 10, 64, 0),
	       "rma_submit of a read whose end overflows");
	RIG_OK(rig_rma_move(q, GANTRY_RMA_READ, local, ro, BYTES - 64, 64));
	rig_connect();
	other = rig_rma_open(&rig.b, 4, 0);
	/* the region was imported on another connection */
	RIG_RC(-EACCES, rig_rma(other, GANTRY_RMA_READ, local, ro, 0, 64, 0),
	       "rma_submit with a region of another connection");
	rig_rma_close(other);
	rig.a.conn = rig.a.conns[0].conn;
	rig_disconnect(&rig.a);
	rig_until(rig.b.n_closed, 1);
	RIG_RC(-ENOTCONN, rig_rma(q, GANTRY_RMA_READ, local, ro, 0, 64, 0),
	       "rma_submit after the end of the connection");
	rig_rma_close(q);
	rig.ops->release_region(first_b, ro);
	rig.ops->release_region(first_b, wo);
}

/* Try an access that must not succeed: it is rejected, or fails, or ends the connection. */
static void expect_no_access(struct rig_rma *q, enum gantry_rma_op op, uint8_t *local,
			     const struct gantry_region *r, uint64_t offset)
{
	int rc;

	memset(local, 0xee, 64);
	rc = rig_rma_move(q, op, local, r, offset, 64);
	RIG_HOLDS(rc == -EACCES || rc == -ERANGE || rc == -ENOTCONN,
		  "remote access that the export does not permit");
	RIG_HOLDS(rig_all(local, 64, 0xee),
		  "local memory of a rejected remote access: it does not change");
}

/* A peer that forges its rights or length gets no more access than was exported. */
static void forged_rights_give_no_access(void)
{
	static const struct {
		uint32_t rights, forged;
		uint64_t length;
		enum gantry_rma_op op;
		uint64_t offset;
	} lies[] = {
		{GANTRY_REMOTE_READ, BOTH, BYTES / 2, GANTRY_RMA_WRITE, 0},
		{GANTRY_REMOTE_WRITE, BOTH, BYTES / 2, GANTRY_RMA_READ, 0},
		{BOTH, BOTH, BYTES, GANTRY_RMA_READ, BYTES / 2},
		{BOTH, BOTH, BYTES, GANTRY_RMA_WRITE, BYTES / 2},
	};
	struct rig_memory m;

	rig_need(RIG_RMA);
	rig_memory_open(&m, BYTES, BOTH);
	rig_fill(m.bytes, BYTES, 1);
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		struct gantry_region half = m.region, *r = NULL;
		struct gantry_token token;
		struct rig_rma *q;

		half.length = BYTES / 2;
		rig_connect();
		RIG_OK(rig.ops->export_region(rig.a.conn, &half, lies[i].rights, 1, &token));
		rig_fence();
		RIG_OK(rig.ops->import_region(rig.b.conn, &token, 0, &r));
		/* over a network the exporter must check the forged rights and length */
		if (rig_has(RIG_NETWORK)) {
			r->rights = lies[i].forged;
			r->length = lies[i].length;
		}
		q = rig_rma_open(&rig.b, 4, 0);
		expect_no_access(q, lies[i].op, rig_local(64), r, lies[i].offset);
		rig_rma_close(q);
		rig.ops->release_region(rig.b.conn, r);
		RIG_HOLDS(rig_filled(m.bytes, BYTES, 1),
			  "memory that the export does not permit to write: it does not change");
		rig_disconnect(&rig.b);
		rig_disconnect(&rig.a);
		rig_settle();
	}
}

/* The local side must be registered memory, and no byte outside it is touched. */
static void local_memory_is_checked(void)
{
	struct gantry_region small, *r;
	struct gantry_rma rma = {.op = GANTRY_RMA_READ, .length = 64};
	uint8_t *local = rig_local(8192);
	struct rig_memory m;
	struct rig_rma *q;

	rig_need(RIG_RMA);
	rig_need(RIG_PINS);
	rig_connect();
	rig_memory_open(&m, BYTES, BOTH);
	rma.remote = r = import_to_b(&m, BOTH, 1);
	q = rig_rma_open(&rig.b, 4, 0);
	RIG_OK(rig_rma_move(q, GANTRY_RMA_READ, local, r, 0, 64));
	memset(local, 0xee, 8192);
	small = (struct gantry_region){.addr = local, .length = 4096, .fd = -1};
	rma.local_region = &small; /* a region that is not registered */
	rma.local = local;
	RIG_HOLDS(rig.ops->rma_submit(q->q, &rma) < 0,
		  "rma_submit with local memory that is not registered");
	RIG_OK(rig.ops->register_region(rig.b.conn, &small));
	rma.local = local + 4096 - 63; /* ends one byte behind the memory */
	RIG_HOLDS(rig.ops->rma_submit(q->q, &rma) < 0,
		  "rma_submit with local memory that is not registered");
	rma.local = local - 1;
	RIG_HOLDS(rig.ops->rma_submit(q->q, &rma) < 0,
		  "rma_submit with local memory that is not registered");
	rma.local = local;
	rma.local_region = NULL;
	RIG_HOLDS(rig.ops->rma_submit(q->q, &rma) < 0,
		  "rma_submit with local memory that is not registered");
	rig.ops->rma_flush(q->q);
	rig_fence();
	RIG_HOLDS(rig_all(local, 8192, 0xee),
		  "local memory of a rejected remote access: it does not change");
	rma.local_region = &small;
	rma.local = local + 4096 - 64;
	RIG_OK(rig.ops->rma_submit(q->q, &rma));
	rig.ops->rma_flush(q->q);
	RIG_OK(rig_rma_status(q, 0));
	RIG_HOLDS(rig_all(local + 4096 - 64, 64, 0), "data that was read");
	RIG_NUM(0xee, local[4096], "byte behind the local memory: it does not change");
	rig_rma_close(q);
	rig.ops->unregister_region(rig.b.conn, &small);
	rig.ops->release_region(rig.b.conn, r);
}

static void remote_queue_has_a_depth(void)
{
	struct gantry_rma_done done[16];
	uint8_t *local = rig_local(64);
	struct gantry_region *r;
	struct rig_memory m;
	struct rig_rma *q;
	uint32_t n = 1, got = 0;
	uint64_t late = 0;

	rig_need(RIG_RMA);
	rig_connect();
	rig_memory_open(&m, BYTES, BOTH);
	r = import_to_b(&m, BOTH, 1);
	q = rig_rma_open(&rig.b, 8, 0);
	/* after this read the queue is connected */
	RIG_OK(rig_rma(q, GANTRY_RMA_READ, local, r, 0, 64, 0));
	for (;; n++) {
		struct gantry_rma rma = {.local = local,
					 .local_region = &rig.local,
					 .remote = r,
					 .length = 64,
					 .cookie = n};

		if (rig.ops->rma_submit(q->q, &rma))
			break;
		RIG_HOLDS(n < 64, "rma_submit returns -EAGAIN when a queue of depth 8 is full");
	}
	rig.ops->rma_flush(q->q);
	RIG_HOLDS(n >= 8, "operations that a queue of depth 8 accepts");
	while (got < n) {
		int k = rig.ops->rma_poll(q->q, done, 3);

		RIG_HOLDS(k >= 0 && k <= 3, "rma_poll with room for 3 operations");
		for (int i = 0; i < k; i++) {
			RIG_NUM(got++, done[i].cookie, "cookies of rma_poll come in order");
			RIG_RC(0, done[i].status, "status of rma_poll");
		}
		rig_wait(&late, k, "rma_poll() to return an operation that rma_submit() accepted");
	}
	rig_fence();
	RIG_RC(0, rig.ops->rma_poll(q->q, done, 3), "rma_poll when no operation is open");
	rig_rma_close(q);
	rig.ops->release_region(rig.b.conn, r);
}

/*
 * If the peer disconnects, each accepted operation completes once, and no operation reads the
 * memory of the peer afterwards.
 */
static void remote_access_ends_with_the_connection(void)
{
	uint8_t *local = rig_local(BYTES);
	struct gantry_rma_done done;
	struct gantry_region *r;
	struct rig_memory m;
	struct rig_rma *q;
	uint32_t seen = 0;
	uint64_t late = 0;

	rig_need(RIG_RMA);
	rig_connect();
	rig_memory_open(&m, BYTES, BOTH);
	r = import_to_b(&m, BOTH, 1);
	q = rig_rma_open(&rig.b, 8, 0);
	rig_fill(m.bytes, BYTES, 1);
	for (uint32_t i = 0; i < 8; i++) {
		struct gantry_rma rma = {.op = GANTRY_RMA_READ,
					 .local = local,
					 .local_region = &rig.local,
					 .remote = r,
					 .length = BYTES,
					 .cookie = i};

		RIG_OK(rig_rma_submit(q, &rma));
		if (i == 3) /* later operations need not start before the disconnect */
			rig.ops->rma_flush(q->q);
	}
	rig_disconnect(&rig.a);
	rig_until(rig.b.n_closed, 1);
	rig_fill(m.bytes, BYTES, 2);
	while (seen != 0xff) {
		int n = rig.ops->rma_poll(q->q, &done, 1);

		if (n == 1) {
			RIG_HOLDS(done.cookie < 8 && !(seen & 1u << done.cookie),
				  "rma_poll returns each operation once");
			RIG_HOLDS(done.status == 0 || done.status == -ENOTCONN,
				  "status of rma_poll after the end of the connection");
			seen |= 1u << done.cookie;
		}
		rig_wait(&late, n, "rma_poll() to return an operation that rma_submit() accepted");
	}
	RIG_RC(0, rig.ops->rma_poll(q->q, &done, 1), "rma_poll when no operation is open");
	RIG_HOLDS(!rig_filled(local, BYTES, 2),
		  "remote read after the peer disconnected: it reads no new data");
	rig_rma_close(q);
	rig.ops->release_region(rig.b.conn, r);
}

struct ordered {
	struct rig_rma *rma;
	struct rig_queue *q;
	struct gantry_region *r;
	uint8_t *local;
};

/*
 * Write `length` bytes at the end of the region, in one or two writes, and send a message about it.
 * Returns the number of writes whose completions the caller must still take. On a device without
 * GANTRY_CAP_ORDERED it takes them itself before it sends, and returns 0.
 */
static uint32_t write_and_send(struct ordered *o, uint32_t round, uint32_t length)
{
	uint32_t parts = round % 3 == 2 && length > 1 ? 2 : 1,
		 more = round % 3 == 1 ? GANTRY_SEND_MORE : 0, at = 0;
	uint64_t late = 0;
	int rc;

	for (uint32_t i = 0; i < parts; i++) {
		uint32_t part = i + 1 < parts ? length / 2 : length - at;
		struct gantry_rma rma = {.op = GANTRY_RMA_WRITE,
					 .length = part,
					 .local = o->local + at,
					 .remote = o->r,
					 .local_region = &rig.local,
					 .remote_offset = BYTES - length + at,
					 .cookie = round};

		RIG_OK(rig_rma_submit(o->rma, &rma));
		at += part;
	}
	if (round % 3 == 0)
		rig.ops->rma_flush(o->rma->q);
	if (!(rig.info.caps & GANTRY_CAP_ORDERED))
		for (uint32_t i = 0; i < parts; i++) {
			rig.ops->rma_flush(o->rma->q);
			RIG_OK(rig_rma_status(o->rma, round));
		}
	while ((rc = rig.ops->send(o->q->tx, &round, 4, more)) == -EAGAIN)
		rig_wait(&late, 0,
			 "send() not to return -EAGAIN: the consumer has posted receives");
	RIG_RC(0, rc, "send or rma_write_imm with a posted receive");
	if (more)
		rig.ops->flush(o->q->tx);
	return rig.info.caps & GANTRY_CAP_ORDERED ? parts : 0;
}

/*
 * A peer that gets a message after a write sees the written data: the lane keeps the order, or the
 * writer waits for the completion of the write before it sends.
 */
static void write_is_visible_before_a_later_message(void)
{
	struct ordered o = {.local = rig_local(BYTES)};
	struct rig_memory m;

	rig_need(RIG_RMA);
	rig_connect();
	rig_memory_open(&m, BYTES, BOTH);
	o.r = import_to_b(&m, BOTH, 1);
	o.rma = rig_rma_open(&rig.b, 4, 2);
	o.q = rig_queue_open_lanes(&rig.a, 2, &rig.b, 2, 8, 0);
	for (uint32_t round = 0; round < rig_rounds(1000) + 8; round++) {
		uint32_t length = round * 7919 % BYTES + 1, open;
		struct gantry_msg msg;

		rig_fill(o.local, length, round);
		RIG_OK(rig.ops->post_recv(o.q->rx, 1));
		open = write_and_send(&o, round, length);
		rig_take(o.q, &msg);
		RIG_SAME(&round, msg.imm, 4, "immediate data of the message after the write");
		if (round % 3 == 2 && length > 1) {
			RIG_SAME(o.local, m.bytes + BYTES - length, length,
				 "memory when the message after the write arrives");
		} else {
			RIG_HOLDS(rig_filled(m.bytes + BYTES - length, length, round),
				  "memory when the message after the write arrives");
		}
		while (open--)
			RIG_OK(rig_rma_status(o.rma, round));
	}
	rig_queue_close(o.q);
	rig_rma_close(o.rma);
	rig.ops->release_region(rig.b.conn, o.r);
}

/* A read needs no rma_flush: the flush of a message on the same lane starts it too. */
static void read_goes_with_a_message(void)
{
	uint8_t *local = rig_local(BYTES);
	struct gantry_region *r;
	struct rig_memory m;
	struct rig_queue *q;
	struct rig_rma *rma;

	rig_need(RIG_RMA);
	rig_connect();
	rig_memory_open(&m, BYTES, BOTH);
	r = import_to_b(&m, BOTH, 1);
	rma = rig_rma_open(&rig.b, 4, 2);
	q = rig_queue_open_lanes(&rig.a, 2, &rig.b, 2, 8, 0);
	for (uint32_t round = 0; round < 16; round++) {
		struct gantry_rma op = {.op = GANTRY_RMA_READ,
					.local = local,
					.local_region = &rig.local,
					.remote = r,
					.length = BYTES,
					.cookie = round};
		struct gantry_msg msg;

		rig_fill(m.bytes, BYTES, round);
		RIG_OK(rig.ops->post_recv(q->rx, 1));
		RIG_OK(rig_rma_submit(rma, &op));
		RIG_OK(rig_send_imm(q, round));
		rig.ops->flush(q->tx);
		rig_take(q, &msg);
		RIG_OK(rig_rma_status(rma, round));
		RIG_HOLDS(rig_filled(local, BYTES, round), "data that was read");
	}
	rig_queue_close(q);
	rig_rma_close(rma);
	rig.ops->release_region(rig.b.conn, r);
}

/* A note arrives in order with messages, and after the data that was written with it. */
static void note_arrives_after_its_data(void)
{
	struct ordered o = {.local = rig_local(BYTES)};
	uint32_t length, most = BYTES;
	struct rig_memory m;

	rig_need(RIG_WRITE_IMM);
	rig_connect();
	rig_memory_open(&m, BYTES, BOTH);
	o.r = import_to_b(&m, BOTH, 1);
	o.rma = rig_rma_open(&rig.b, 4, 2);
	o.q = rig_queue_open_lanes(&rig.a, 2, &rig.b, 2, 8, 0);
	for (uint32_t round = 0; round < rig_rounds(1000) + 8; round++) {
		struct gantry_rma rma = {.op = GANTRY_RMA_WRITE,
					 .local = o.local,
					 .local_region = &rig.local,
					 .remote = o.r};
		struct gantry_msg msg;
		uint64_t late = 0;
		int rc;

		RIG_OK(rig.ops->post_recv(o.q->rx, 1));
		if (round % 4 == 3) {
			RIG_OK(rig.ops->post_recv(o.q->rx, 1));
			RIG_OK(rig_send_imm(o.q, round));
		}
		do {
			rma.length = length = round * 7919 % most;
			rma.remote_offset = BYTES - length;
			rma.cookie = round;
			rig_fill(o.local, length, round);
			while ((rc = rig.ops->rma_write_imm(o.rma->q, &rma, ~round)) == -EAGAIN)
				rig_wait(
					&late, 0,
					"rma_write_imm() not to return -EAGAIN: the consumer has posted receives");
		} while (rc == -EMSGSIZE && (most = length) > 4096);
		RIG_RC(0, rc, "send or rma_write_imm with a posted receive");
		rig.ops->rma_flush(o.rma->q);
		if (round % 4 == 3) {
			rig_take(o.q, &msg);
			RIG_NUM(8, msg.imm_len,
				"imm_len of the message that was sent before rma_write_imm");
		}
		rig_take(o.q, &msg);
		RIG_NUM(4, msg.imm_len, "imm_len of the message of rma_write_imm");
		RIG_NUM(0, msg.length, "length of the message of rma_write_imm");
		RIG_SAME(&(uint32_t){~round}, msg.imm, 4, "immediate data of rma_write_imm");
		RIG_HOLDS(rig_filled(m.bytes + BYTES - length, length, round),
			  "memory when the message after the write arrives");
		RIG_OK(rig_rma_status(o.rma, round));
	}
	rig_queue_close(o.q);
	rig_rma_close(o.rma);
	rig.ops->release_region(rig.b.conn, o.r);
}

/* If a peer does not release a region, the region is reported as revoked after the time limit. */
static void region_that_the_peer_keeps_is_revoked_after_the_limit(void)
{
	uint8_t *local = rig_local(64);
	struct gantry_region *r;
	struct rig_memory m;
	struct rig_rma *q;
	uint64_t asked;

	rig_need(RIG_RMA);
	if (rig_driver.revoke_ms == 0)
		rig_skip("skipped: the device has no limit of the time of a revoke");
	rig_connect();
	rig_memory_open(&m, BYTES, BOTH);
	r = import_to_b(&m, BOTH, 1);
	q = rig_rma_open(&rig.b, 4, 0);
	RIG_OK(rig_rma_move(q, GANTRY_RMA_READ, local, r, 0, 64));
	asked = rig_now_ns();
	RIG_OK(rig.ops->revoke_region(rig.a.conn, 1));
	rig_until(rig.b.n_revoke, 1);
	rig_until(rig.a.n_revoked, 1);
	RIG_NUM(1, rig.a.revoked, "handle of the event `revoked`");
	RIG_RC(0, rig.a.revoked_rc, "rc of `revoked` after the limit of time");
	RIG_HOLDS(rig_now_ns() - asked >= rig_driver.revoke_ms * 1000000ull * 9 / 10,
		  "time from revoke_region to `revoked` while the peer has an import");
	rig_fill(m.bytes, BYTES, 6);
	expect_no_access(q, GANTRY_RMA_READ, local, r, 0);
	expect_no_access(q, GANTRY_RMA_WRITE, local, r, 0);
	RIG_HOLDS(rig_filled(m.bytes, BYTES, 6),
		  "memory that was reported as revoked: it does not change");
	rig_rma_close(q);
	rig.ops->release_region(rig.b.conn, r);
	rig_settle();
	RIG_RC(1, rig.a.n_revoked, "number of events `revoked` of one export");
}

void rma_cases(void)
{
	RIG_CASE(remote_read_and_write);
	RIG_CASE(remote_access_is_checked);
	RIG_CASE(forged_rights_give_no_access);
	RIG_CASE(local_memory_is_checked);
	RIG_CASE(remote_queue_has_a_depth);
	RIG_CASE(remote_access_ends_with_the_connection);
	RIG_CASE(read_goes_with_a_message);
	RIG_CASE(write_is_visible_before_a_later_message);
	RIG_CASE(note_arrives_after_its_data);
	RIG_CASE(region_that_the_peer_keeps_is_revoked_after_the_limit);
}
