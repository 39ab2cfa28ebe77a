/* SPDX-License-Identifier: BSD-3-Clause */
/* region.c - conformance: export, import, revoke, re-export; remote read and write. */
#include <sys/mman.h>

#include "conform/rig.h"

#define BOTH (GANTRY_REMOTE_READ | GANTRY_REMOTE_WRITE)
#define BYTES 65536u

/* An export of `a`, carried to `b` as a session would: in a control message. */
static void export_to_b(struct rig_memory *m, uint32_t rights, uint32_t handle, struct gantry_token *token)
{
	int n = rig.b.n_msgs;

	TEST_ASSERT_EQUAL_INT(0, rig.ops->export_region(rig.a.conn, &m->region, rights, handle, token));
	TEST_ASSERT_EQUAL_INT(0, rig.ops->send_ctrl(rig.a.conn, token, sizeof(*token)));
	rig_until(rig.b.n_msgs, n + 1);
	TEST_ASSERT_EQUAL_UINT(sizeof(*token), rig.b.msg_len);
	memcpy(token, rig.b.msg, sizeof(*token));
}

static int mapped(void)
{
	return (rig.info.caps & GANTRY_CAP_MAPPED) != 0;
}

static void both_see_the_same_memory(void)
{
	struct gantry_region *r = NULL;
	struct gantry_token token;
	struct rig_memory m;

	if (!mapped())
		TEST_IGNORE_MESSAGE("regions are not mapped");
	rig_connect();
	rig_memory_open(&m, BYTES, BOTH);
	export_to_b(&m, BOTH, 7, &token);
	TEST_ASSERT_EQUAL_INT(0, rig.ops->import_region(rig.b.conn, &token, 1, &r));
	TEST_ASSERT_EQUAL_UINT64(BYTES, r->length);
	TEST_ASSERT_EQUAL_UINT(7, r->handle);
	TEST_ASSERT_EQUAL_UINT(BOTH, r->rights);
	rig_fill(m.bytes, BYTES, 1);
	TEST_ASSERT_TRUE(rig_filled(r->addr, BYTES, 1));
	rig_fill(r->addr, BYTES, 2);
	TEST_ASSERT_TRUE(rig_filled(m.bytes, BYTES, 2));
	rig.ops->release_region(rig.b.conn, r);
	rig_close();
	rig_memory_close(&m);
}

static void import_without_an_address(void)
{
	struct gantry_region *r = NULL;
	struct gantry_token token;
	struct rig_memory m;

	rig_connect();
	rig_memory_open(&m, BYTES, BOTH);
	export_to_b(&m, BOTH, 7, &token);
	TEST_ASSERT_EQUAL_INT(0, rig.ops->import_region(rig.b.conn, &token, 0, &r));
	TEST_ASSERT_NULL(r->addr);
	TEST_ASSERT_EQUAL_UINT64(BYTES, r->length);
	rig.ops->release_region(rig.b.conn, r);
	if (!mapped())
		TEST_ASSERT_TRUE(rig.ops->import_region(rig.b.conn, &token, 1, &r) < 0);
	rig_close();
	rig_memory_close(&m);
}

static void import_twice_release_twice(void)
{
	struct gantry_region *r[2];
	struct gantry_token token;
	struct rig_memory m;

	rig_connect();
	rig_memory_open(&m, BYTES, BOTH);
	export_to_b(&m, BOTH, 7, &token);
	for (int i = 0; i < 2; i++)
		TEST_ASSERT_EQUAL_INT(0, rig.ops->import_region(rig.b.conn, &token, mapped(), &r[i]));
	rig.ops->release_region(rig.b.conn, r[0]);
	TEST_ASSERT_EQUAL_INT(0, rig.ops->revoke_region(rig.a.conn, 7));
	rig_until(rig.b.n_revoke, 1);
	rig_settle();
	TEST_ASSERT_EQUAL_INT(0, rig.a.n_revoked); /* one is still out */
	rig.ops->release_region(rig.b.conn, r[1]);
	rig_until(rig.a.n_revoked, 1);
	TEST_ASSERT_EQUAL_INT(0, rig.a.revoked_rc);
	TEST_ASSERT_EQUAL_UINT(7, rig.a.revoked);
	rig_close();
	rig_memory_close(&m);
}

static void revoke_waits_for_release(void)
{
	struct gantry_region *r = NULL;
	struct gantry_token token;
	struct rig_memory m;

	rig_connect();
	rig_memory_open(&m, BYTES, BOTH);
	export_to_b(&m, BOTH, 9, &token);
	TEST_ASSERT_EQUAL_INT(0, rig.ops->import_region(rig.b.conn, &token, mapped(), &r));
	TEST_ASSERT_EQUAL_INT(-ENOENT, rig.ops->revoke_region(rig.a.conn, 8));
	TEST_ASSERT_EQUAL_INT(0, rig.ops->revoke_region(rig.a.conn, 9));
	rig_until(rig.b.n_revoke, 1);
	TEST_ASSERT_EQUAL_UINT(9, rig.b.revoke);
	rig_settle();
	TEST_ASSERT_EQUAL_INT(0, rig.a.n_revoked);
	if (mapped())
		rig_fill(r->addr, BYTES, 5); /* it may still be used */
	rig.ops->release_region(rig.b.conn, r);
	rig_until(rig.a.n_revoked, 1);
	TEST_ASSERT_EQUAL_UINT(9, rig.a.revoked);
	TEST_ASSERT_EQUAL_INT(0, rig.a.revoked_rc);
	TEST_ASSERT_EQUAL_INT(-ENOENT, rig.ops->import_region(rig.b.conn, &token, 0, &r)); /* stale */
	TEST_ASSERT_EQUAL_INT(-ENOENT, rig.ops->revoke_region(rig.a.conn, 9));
	rig_settle();
	TEST_ASSERT_EQUAL_INT(1, rig.b.n_revoke);
	TEST_ASSERT_EQUAL_INT(1, rig.a.n_revoked);
	rig_close();
	rig_memory_close(&m);
}

static void revoke_of_what_nobody_imported(void)
{
	struct gantry_token token;
	struct rig_memory m;

	rig_connect();
	rig_memory_open(&m, BYTES, BOTH);
	export_to_b(&m, BOTH, 1, &token);
	TEST_ASSERT_EQUAL_INT(0, rig.ops->revoke_region(rig.a.conn, 1));
	rig_until(rig.a.n_revoked, 1);
	TEST_ASSERT_EQUAL_INT(0, rig.a.revoked_rc);
	rig_close();
	rig_memory_close(&m);
}

static void handle_can_be_used_again(void)
{
	struct gantry_token old, token;
	struct gantry_region *r = NULL;
	struct rig_memory m;

	rig_connect();
	rig_memory_open(&m, BYTES, BOTH);
	export_to_b(&m, BOTH, 1, &old);
	TEST_ASSERT_TRUE(rig.ops->export_region(rig.a.conn, &m.region, BOTH, 1, &token) < 0); /* unique */
	for (int i = 0; i < 200; i++) {
		TEST_ASSERT_EQUAL_INT(0, rig.ops->revoke_region(rig.a.conn, 1));
		rig_until(rig.a.n_revoked, i + 1);
		export_to_b(&m, BOTH, 1, &token);
		TEST_ASSERT_EQUAL_INT(-ENOENT, rig.ops->import_region(rig.b.conn, &old, 0, &r));
		TEST_ASSERT_EQUAL_INT(0, rig.ops->import_region(rig.b.conn, &token, 0, &r));
		rig.ops->release_region(rig.b.conn, r);
		old = token;
	}
	rig_close();
	rig_memory_close(&m);
}

static void tokens_are_not_believed(void)
{
	struct gantry_token token, bad;
	struct gantry_region *r = NULL;
	struct rig_memory m;

	rig_connect();
	rig_memory_open(&m, BYTES, BOTH);
	export_to_b(&m, BOTH, 1, &token);
	bad = token;
	bad.kind ^= 1;
	TEST_ASSERT_EQUAL_INT(-ENOENT, rig.ops->import_region(rig.b.conn, &bad, 0, &r));
	bad = token;
	bad.handle++;
	TEST_ASSERT_EQUAL_INT(-ENOENT, rig.ops->import_region(rig.b.conn, &bad, 0, &r));
	bad = token;
	bad.generation++;
	TEST_ASSERT_EQUAL_INT(-ENOENT, rig.ops->import_region(rig.b.conn, &bad, 0, &r));
	memset(&bad, 0xff, sizeof(bad));
	TEST_ASSERT_TRUE(rig.ops->import_region(rig.b.conn, &bad, 0, &r) < 0);
	memset(&bad, 0, sizeof(bad));
	TEST_ASSERT_TRUE(rig.ops->import_region(rig.b.conn, &bad, 0, &r) < 0);
	TEST_ASSERT_EQUAL_INT(-ENOENT, rig.ops->import_region(rig.a.conn, &token, 0, &r)); /* its own */
	bad = token;
	bad.rights = BOTH;
	bad.length = UINT64_MAX;
	TEST_ASSERT_TRUE(rig.ops->import_region(rig.b.conn, &bad, 0, &r) < 0);
	rig_close();
	rig_memory_close(&m);
}

static void rights_can_only_shrink(void)
{
	struct gantry_token token;
	struct rig_memory m;

	rig_connect();
	rig_memory_open(&m, BYTES, GANTRY_REMOTE_READ);
	TEST_ASSERT_TRUE(rig.ops->export_region(rig.a.conn, &m.region, BOTH, 1, &token) < 0);
	TEST_ASSERT_TRUE(rig.ops->export_region(rig.a.conn, &m.region, 0, 1, &token) < 0);
	TEST_ASSERT_EQUAL_INT(0, rig.ops->export_region(rig.a.conn, &m.region, GANTRY_REMOTE_READ, 1, &token));
	rig_close();
	rig_memory_close(&m);
}

/* The gateway's case: what one connection imported goes out on another, and is the same memory there. */
static void re_export(void)
{
	struct gantry_region *mid = NULL, *far = NULL;
	void *near_a = NULL, *near_b = NULL;
	struct gantry_token token;
	struct rig_memory m;
	int map;

	for (map = 0; map <= mapped(); map++) {
		int n = rig.a.n_connected;

		if (!rig.b.listener)
			rig_listen("vol");
		rig_start_connect("vol");
		rig_until(rig.a.n_connected, n + 1);
		rig_memory_open(&m, BYTES, BOTH);
		export_to_b(&m, BOTH, 3, &token);
		TEST_ASSERT_EQUAL_INT(0, rig.ops->import_region(rig.b.conn, &token, map, &mid));
		near_a = rig.a.conn;
		near_b = rig.b.conn;
		rig_start_connect("vol");
		rig_until(rig.a.n_connected, n + 2);
		TEST_ASSERT_EQUAL_INT(0, rig.ops->export_region(rig.b.conn, mid, BOTH, 30, &token));
		rig_settle();
		TEST_ASSERT_EQUAL_INT(0, rig.ops->import_region(rig.a.conn, &token, mapped(), &far));
		TEST_ASSERT_EQUAL_UINT64(BYTES, far->length);
		if (mapped()) {
			rig_fill(far->addr, BYTES, 9);
			TEST_ASSERT_TRUE(rig_filled(m.bytes, BYTES, 9));
		}
		rig.ops->release_region(rig.a.conn, far);
		rig_disconnect(&rig.a);
		rig_disconnect(&rig.b);
		rig.ops->release_region(near_b, mid);
		rig.ops->disconnect(near_a);
		rig.ops->disconnect(near_b);
		rig_memory_close(&m);
	}
}

static void exports_end_with_the_connection(void)
{
	struct gantry_token token;
	struct rig_memory m;

	rig_connect();
	rig_memory_open(&m, BYTES, BOTH);
	export_to_b(&m, BOTH, 5, &token);
	rig_disconnect(&rig.b);
	rig_until(rig.a.n_closed, 1);
	TEST_ASSERT_EQUAL_INT(1, rig.a.n_revoked); /* before it: nobody can touch it any more */
	TEST_ASSERT_EQUAL_UINT(5, rig.a.revoked);
	TEST_ASSERT_EQUAL_INT(0, rig.a.revoked_rc);
	rig_close();
	rig_memory_close(&m);
}

static void region_in_the_middle_of_a_file(void)
{
	struct gantry_region part, *r = NULL;
	struct gantry_token token;
	struct rig_memory m;

	if (!mapped())
		TEST_IGNORE_MESSAGE("regions are not mapped");
	rig_connect();
	rig_memory_open(&m, BYTES, BOTH);
	part = m.region;
	part.addr = m.bytes + 8192;
	part.fd_offset = 8192;
	part.length = 10000;
	TEST_ASSERT_EQUAL_INT(0, rig.ops->export_region(rig.a.conn, &part, BOTH, 1, &token));
	rig_settle();
	TEST_ASSERT_EQUAL_INT(0, rig.ops->import_region(rig.b.conn, &token, 1, &r));
	rig_fill(r->addr, 10000, 4);
	TEST_ASSERT_TRUE(rig_filled(m.bytes + 8192, 10000, 4));
	rig.ops->release_region(rig.b.conn, r);
	rig_close();
	rig_memory_close(&m);
}

static int rma(void *q, int op, void *local, const struct gantry_region *r, uint64_t offset, uint32_t length, uint64_t c)
{
	struct gantry_rma rma = {.op = (uint32_t)op, .local = local, .remote = r, .remote_offset = offset,
				 .length = length, .cookie = c};
	int rc;

	rc = rig.ops->rma_submit(q, &rma);
	rig.ops->rma_flush(q);
	return rc;
}

static void wait_rma(void *q, uint64_t cookie)
{
	struct gantry_rma_done done = {.cookie = ~cookie};

	while (rig.ops->rma_poll(q, &done, 1) == 0)
		rig_settle();
	TEST_ASSERT_EQUAL_UINT64(cookie, done.cookie);
	TEST_ASSERT_EQUAL_INT(0, done.status);
}

static void remote_read_and_write(void)
{
	static uint8_t local[BYTES];
	struct gantry_region *r = NULL;
	struct gantry_token token;
	struct rig_memory m;
	void *q;

	rig_connect();
	rig_memory_open(&m, BYTES, BOTH);
	export_to_b(&m, BOTH, 1, &token);
	TEST_ASSERT_EQUAL_INT(0, rig.ops->import_region(rig.b.conn, &token, 0, &r));
	TEST_ASSERT_EQUAL_INT(0, rig.ops->rma_create(rig.b.conn, &(struct gantry_queue_attr){.depth = 4}, &q));
	for (uint32_t length = 1; length <= BYTES; length *= 2) {
		rig_fill(m.bytes, BYTES, length);
		TEST_ASSERT_EQUAL_INT(0, rma(q, GANTRY_RMA_READ, local, r, 0, length, length));
		wait_rma(q, length);
		TEST_ASSERT_TRUE(rig_filled(local, length, length));
		rig_fill(local, length, length + 1);
		TEST_ASSERT_EQUAL_INT(0, rma(q, GANTRY_RMA_WRITE, local, r, BYTES - length, length, 5));
		wait_rma(q, 5);
		TEST_ASSERT_TRUE(rig_filled(m.bytes + BYTES - length, length, length + 1));
	}
	rig.ops->rma_destroy(q);
	TEST_ASSERT_EQUAL_UINT64(2 * (2 * BYTES - 1), fake_counter(&rig.a.host, "payload_bytes") +
							      fake_counter(&rig.b.host, "payload_bytes"));
	rig.ops->release_region(rig.b.conn, r);
	rig_close();
	rig_memory_close(&m);
}

static void remote_access_is_checked(void)
{
	struct gantry_region *ro = NULL, *wo = NULL;
	struct gantry_token token;
	struct rig_memory m, n;
	uint8_t local[64];
	void *q;

	rig_connect();
	rig_memory_open(&m, BYTES, BOTH);
	rig_memory_open(&n, BYTES, BOTH);
	export_to_b(&m, GANTRY_REMOTE_READ, 1, &token);
	TEST_ASSERT_EQUAL_INT(0, rig.ops->import_region(rig.b.conn, &token, 0, &ro));
	export_to_b(&n, GANTRY_REMOTE_WRITE, 2, &token);
	TEST_ASSERT_EQUAL_INT(0, rig.ops->import_region(rig.b.conn, &token, 0, &wo));
	TEST_ASSERT_EQUAL_INT(0, rig.ops->rma_create(rig.b.conn, &(struct gantry_queue_attr){.depth = 4}, &q));
	TEST_ASSERT_EQUAL_INT(-EACCES, rma(q, GANTRY_RMA_WRITE, local, ro, 0, 64, 0));
	TEST_ASSERT_EQUAL_INT(-EACCES, rma(q, GANTRY_RMA_READ, local, wo, 0, 64, 0));
	TEST_ASSERT_EQUAL_INT(-ERANGE, rma(q, GANTRY_RMA_READ, local, ro, BYTES - 63, 64, 0));
	TEST_ASSERT_EQUAL_INT(-ERANGE, rma(q, GANTRY_RMA_READ, local, ro, BYTES, 1, 0));
	TEST_ASSERT_EQUAL_INT(-ERANGE, rma(q, GANTRY_RMA_READ, local, ro, UINT64_MAX - 10, 64, 0));
	TEST_ASSERT_EQUAL_INT(0, rma(q, GANTRY_RMA_READ, local, ro, BYTES - 64, 64, 1));
	wait_rma(q, 1);
	rig_disconnect(&rig.a);
	rig_until(rig.b.n_closed, 1);
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, rma(q, GANTRY_RMA_READ, local, ro, 0, 64, 0));
	rig.ops->rma_destroy(q);
	rig.ops->release_region(rig.b.conn, ro);
	rig.ops->release_region(rig.b.conn, wo);
	rig_close();
	rig_memory_close(&n);
	rig_memory_close(&m);
}

static void remote_queue_has_a_depth(void)
{
	struct gantry_rma_done done[16];
	struct gantry_region *r = NULL;
	struct gantry_token token;
	struct rig_memory m;
	uint8_t local[64];
	int n = 0, got = 0;
	void *q;

	rig_connect();
	rig_memory_open(&m, BYTES, BOTH);
	export_to_b(&m, BOTH, 1, &token);
	TEST_ASSERT_EQUAL_INT(0, rig.ops->import_region(rig.b.conn, &token, 0, &r));
	TEST_ASSERT_EQUAL_INT(0, rig.ops->rma_create(rig.b.conn, &(struct gantry_queue_attr){.depth = 8}, &q));
	while (n < 64 && rma(q, GANTRY_RMA_READ, local, r, 0, 64, (uint64_t)n) == 0)
		n++;
	TEST_ASSERT_TRUE(n >= 8 && n < 64);
	while (got < n) {
		int k = rig.ops->rma_poll(q, done, 3);

		TEST_ASSERT_TRUE(k >= 0 && k <= 3);
		for (int i = 0; i < k; i++)
			TEST_ASSERT_EQUAL_UINT64(got++, done[i].cookie);
	}
	TEST_ASSERT_EQUAL_INT(0, rig.ops->rma_poll(q, done, 3));
	rig.ops->rma_destroy(q);
	rig.ops->release_region(rig.b.conn, r);
	rig_close();
	rig_memory_close(&m);
}

void region_cases(void)
{
	RIG_CASE(both_see_the_same_memory);
	RIG_CASE(import_without_an_address);
	RIG_CASE(import_twice_release_twice);
	RIG_CASE(revoke_waits_for_release);
	RIG_CASE(revoke_of_what_nobody_imported);
	RIG_CASE(handle_can_be_used_again);
	RIG_CASE(tokens_are_not_believed);
	RIG_CASE(rights_can_only_shrink);
	RIG_CASE(re_export);
	RIG_CASE(exports_end_with_the_connection);
	RIG_CASE(region_in_the_middle_of_a_file);
	RIG_CASE(remote_read_and_write);
	RIG_CASE(remote_access_is_checked);
	RIG_CASE(remote_queue_has_a_depth);
}
