/* SPDX-License-Identifier: BSD-3-Clause */
/* region.c - conformance: export, import, revoke, re-export. */
#include <sys/mman.h>

#include "conform/rig.h"

#define BOTH (GANTRY_REMOTE_READ | GANTRY_REMOTE_WRITE)
#define BYTES 65536u

/* Export memory of `a` and send the token to `b` in a control message, as a session does. */
static void export_to_b(struct rig_memory *m, uint32_t rights, uint32_t handle,
			struct gantry_token *token)
{
	int n = rig.b.n_msgs;

	TEST_ASSERT_EQUAL_INT(
		0, rig.ops->export_region(rig.a.conn, &m->region, rights, handle, token));
	TEST_ASSERT_EQUAL_INT(0, rig_ctrl(&rig.a, token, sizeof(*token)));
	rig_until(rig.b.n_msgs, n + 1);
	TEST_ASSERT_EQUAL_UINT(sizeof(*token), rig.b.msg_len);
	memcpy(token, rig.b.msg, sizeof(*token));
}

static int mapped(void)
{
	return (rig.info.caps & GANTRY_CAP_MAPPED) != 0;
}

/*
 * As rig_fill and rig_filled, for memory of the peer: by remote access with q, or, if q is NULL,
 * through the mapping.
 */
static void far_fill(struct rig_rma *q, const struct gantry_region *r, uint64_t offset, uint32_t n,
		     uint32_t seed)
{
	uint8_t *local = q ? rig_local(n) : (uint8_t *)r->addr + offset;

	rig_fill(local, n, seed);
	if (!q)
		return;
	TEST_ASSERT_EQUAL_INT(0, rig_rma_move(q, GANTRY_RMA_WRITE, local, r, offset, n));
}

static int far_filled(struct rig_rma *q, const struct gantry_region *r, uint64_t offset, uint32_t n,
		      uint32_t seed)
{
	uint8_t *local = q ? rig_local(n) : (uint8_t *)r->addr + offset;

	if (q)
		TEST_ASSERT_EQUAL_INT(0, rig_rma_move(q, GANTRY_RMA_READ, local, r, offset, n));
	return rig_filled(local, n, seed);
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
	TEST_ASSERT_EQUAL_INT(0, rig.ops->import_region(rig.b.conn, &token, GANTRY_IMPORT_MAP, &r));
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

/*
 * A client that lost its session replaces the mapping of its region by private memory. Late IO of
 * the importer must not change the private memory.
 */
static void exporter_replaces_its_mapping(void)
{
	struct gantry_region *r = NULL;
	struct gantry_token token;
	struct rig_memory m;

	if (!mapped())
		TEST_IGNORE_MESSAGE("regions are not mapped");
	rig_connect();
	rig_memory_open(&m, BYTES, BOTH);
	export_to_b(&m, BOTH, 7, &token);
	TEST_ASSERT_EQUAL_INT(0, rig.ops->import_region(rig.b.conn, &token, GANTRY_IMPORT_MAP, &r));
	rig_fill(m.bytes, BYTES, 1);
	TEST_ASSERT_EQUAL_PTR(m.bytes, mmap(m.bytes, BYTES, PROT_READ | PROT_WRITE,
					    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
	rig_fill(m.bytes, BYTES, 3);
	TEST_ASSERT_TRUE(rig_filled(r->addr, BYTES, 1));
	rig_fill(r->addr, BYTES, 2);
	TEST_ASSERT_TRUE(rig_filled(m.bytes, BYTES, 3));
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
		TEST_ASSERT_TRUE(rig.ops->import_region(rig.b.conn, &token, GANTRY_IMPORT_MAP, &r) <
				 0);
	rig_close();
	rig_memory_close(&m);
}

static void each_import_is_released(void)
{
	struct gantry_region *r[3];
	struct gantry_token token;
	struct rig_memory m;

	rig_connect();
	rig_memory_open(&m, BYTES, BOTH);
	export_to_b(&m, BOTH, 7, &token);
	for (int i = 0; i < 3; i++)
		TEST_ASSERT_EQUAL_INT(0,
				      rig.ops->import_region(rig.b.conn, &token, rig_map(), &r[i]));
	rig.ops->release_region(rig.b.conn, r[0]);
	TEST_ASSERT_EQUAL_INT(0, rig.ops->revoke_region(rig.a.conn, 7));
	rig_until(rig.b.n_revoke, 1);
	for (int i = 1; i < 3; i++) {
		rig_fence();
		TEST_ASSERT_EQUAL_INT(0, rig.a.n_revoked); /* b still has an import */
		rig.ops->release_region(rig.b.conn, r[i]);
	}
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
	struct rig_rma *q;

	rig_connect();
	rig_memory_open(&m, BYTES, BOTH);
	export_to_b(&m, BOTH, 9, &token);
	q = rig_rma_open(&rig.b, 4, 0);
	TEST_ASSERT_EQUAL_INT(0, rig.ops->import_region(rig.b.conn, &token, rig_map(), &r));
	TEST_ASSERT_EQUAL_INT(-ENOENT, rig.ops->revoke_region(rig.a.conn, 8));
	TEST_ASSERT_EQUAL_INT(0, rig.ops->revoke_region(rig.a.conn, 9));
	rig_until(rig.b.n_revoke, 1);
	TEST_ASSERT_EQUAL_UINT(9, rig.b.revoke);
	rig_fence();
	TEST_ASSERT_EQUAL_INT(0, rig.a.n_revoked);
	if (mapped()) /* the importer can use the region until it releases it */
		rig_fill(r->addr, BYTES, 5);
	else
		far_fill(q, r, 0, BYTES, 5);
	TEST_ASSERT_TRUE(rig_filled(m.bytes, BYTES, 5));
	rig.ops->release_region(rig.b.conn, r);
	rig_until(rig.a.n_revoked, 1);
	TEST_ASSERT_EQUAL_UINT(9, rig.a.revoked);
	TEST_ASSERT_EQUAL_INT(0, rig.a.revoked_rc);
	/* the token is of a revoked export */
	TEST_ASSERT_EQUAL_INT(-ENOENT, rig.ops->import_region(rig.b.conn, &token, 0, &r));
	TEST_ASSERT_EQUAL_INT(-ENOENT, rig.ops->revoke_region(rig.a.conn, 9));
	rig_fence();
	TEST_ASSERT_EQUAL_INT(1, rig.b.n_revoke);
	TEST_ASSERT_EQUAL_INT(1, rig.a.n_revoked);
	rig_close();
	rig_memory_close(&m);
}

static void region_that_was_not_imported_can_be_revoked(void)
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
	/* handle 1 is in use */
	TEST_ASSERT_TRUE(rig.ops->export_region(rig.a.conn, &m.region, BOTH, 1, &token) < 0);
	for (int i = 0; i < (int)rig_rounds(200); i++) {
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

static void forged_tokens_are_rejected(void)
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
	/* an exporter cannot import its own token */
	TEST_ASSERT_EQUAL_INT(-ENOENT, rig.ops->import_region(rig.a.conn, &token, 0, &r));
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
	TEST_ASSERT_EQUAL_INT(
		0, rig.ops->export_region(rig.a.conn, &m.region, GANTRY_REMOTE_READ, 1, &token));
	rig_close();
	rig_memory_close(&m);
}

/*
 * As a gateway does: export an import of one connection on another connection. The second import
 * has the same memory.
 */
static void re_export(uint32_t flags)
{
	struct gantry_region *mid = NULL, *far = NULL;
	struct gantry_token token;
	struct rig_memory m;
	struct rig_rma *q;
	void *near_b;

	rig_connect();
	near_b = rig.b.conn;
	rig_memory_open(&m, BYTES, BOTH);
	export_to_b(&m, BOTH, 3, &token);
	TEST_ASSERT_EQUAL_INT(0, rig.ops->import_region(rig.b.conn, &token, flags, &mid));
	rig_connect();
	TEST_ASSERT_EQUAL_INT(0, rig.ops->export_region(rig.b.conn, mid, BOTH, 30, &token));
	rig_fence();
	TEST_ASSERT_EQUAL_INT(0, rig.ops->import_region(rig.a.conn, &token, rig_map(), &far));
	TEST_ASSERT_EQUAL_UINT64(BYTES, far->length);
	TEST_ASSERT_EQUAL_UINT(0, mid->unordered);
	/*
	 * a network transport writes to the memory of a third party through separate queue pairs:
	 * these writes are not ordered with messages
	 */
	TEST_ASSERT_EQUAL_UINT((rig.info.caps & GANTRY_CAP_PINS) != 0, far->unordered);
	q = rig_rma_open(&rig.a, 4, 0);
	far_fill(q, far, 0, BYTES, 8);
	TEST_ASSERT_TRUE(rig_filled(m.bytes, BYTES, 8));
	rig_fill(m.bytes, BYTES, 7);
	TEST_ASSERT_TRUE(far_filled(q, far, 0, BYTES, 7));
	if (mapped()) {
		rig_fill(far->addr, BYTES, 9);
		TEST_ASSERT_TRUE(rig_filled(m.bytes, BYTES, 9));
	}
	rig_rma_close(q);
	rig.ops->release_region(rig.a.conn, far);
	rig_disconnect(&rig.a);
	rig_disconnect(&rig.b);
	rig.ops->release_region(near_b, mid);
	rig_close();
	rig_memory_close(&m);
}

static void re_export_of_a_mapped_region(void)
{
	if (!mapped())
		TEST_IGNORE_MESSAGE("regions are not mapped");
	re_export(GANTRY_IMPORT_MAP);
}

static void re_export_without_an_address(void)
{
	re_export(0);
}

/*
 * Export a region that was imported over another transport. The import has a mapping, or only a
 * file in which the region starts at an offset.
 */
static void region_of_another_transport(void)
{
	const uint32_t from = 8192 + 512; /* not at the start of a page */
	static int secret;
	struct gantry_token token;
	struct gantry_region *r;
	struct rig_memory m;
	struct rig_rma *q;

	rig_connect();
	rig_memory_open(&m, BYTES, BOTH);
	q = rig_rma_open(&rig.b, 4, 0);
	for (uint32_t i = 0; i < 2; i++) {
		struct gantry_region other = {.addr = i ? NULL : m.bytes + from,
					      .length = 16384,
					      .fd = m.region.fd,
					      .fd_offset = from,
					      .rights = BOTH,
					      .handle = 99,
					      .domain = 0x6f746872u,
					      .transport = &secret};

		rig_fill(m.bytes, BYTES, 1);
		TEST_ASSERT_EQUAL_INT(
			0, rig.ops->export_region(rig.a.conn, &other, BOTH, 30 + i, &token));
		rig_fence();
		TEST_ASSERT_EQUAL_INT(0,
				      rig.ops->import_region(rig.b.conn, &token, rig_access(), &r));
		TEST_ASSERT_EQUAL_UINT64(16384, r->length);
		far_fill(q, r, 0, 16384, 2 + i);
		TEST_ASSERT_TRUE(rig_filled(m.bytes, from, 1));
		TEST_ASSERT_TRUE(rig_filled(m.bytes + from, 16384, 2 + i));
		TEST_ASSERT_TRUE(far_filled(q, r, 0, 16384, 2 + i));
		rig.ops->release_region(rig.b.conn, r);
		TEST_ASSERT_EQUAL_INT(0, rig.ops->revoke_region(rig.a.conn, 30 + i));
		rig_until(rig.a.n_revoked, (int)i + 1);
		TEST_ASSERT_EQUAL_INT(0, rig.a.revoked_rc);
	}
	rig_close();
	rig_memory_close(&m);
}

/* A connection can export as many regions as the device reports, and no more. */
static void regions_are_counted(void)
{
	struct gantry_token token;
	struct rig_memory m;
	uint32_t n = 0;

	rig_connect();
	rig_memory_open(&m, 4096, BOTH);
	while (n < rig.info.max_regions) {
		TEST_ASSERT_EQUAL_INT(
			0, rig.ops->export_region(rig.a.conn, &m.region, BOTH, 100 + n, &token));
		n++;
		rig_settle();
	}
	TEST_ASSERT_EQUAL_INT(-ENOSPC,
			      rig.ops->export_region(rig.a.conn, &m.region, BOTH, 100 + n, &token));
	TEST_ASSERT_EQUAL_INT(0, rig.ops->revoke_region(rig.a.conn, 100));
	rig_until(rig.a.n_revoked, 1);
	TEST_ASSERT_EQUAL_INT(0,
			      rig.ops->export_region(rig.a.conn, &m.region, BOTH, 100 + n, &token));
	rig_close();
	rig_memory_close(&m);
}

/* Many regions are exported, imported and released in any order: no slot is lost. */
static void regions_come_and_go(void)
{
	struct gantry_region *r[4];
	struct gantry_token token[4];
	struct rig_memory m;

	rig_connect();
	rig_memory_open(&m, BYTES, BOTH);
	for (uint32_t round = 0; round < rig_rounds(400); round++) {
		uint32_t base = round * 4, n = rig.info.max_regions < 4 ? rig.info.max_regions : 4;

		for (uint32_t i = 0; i < n; i++) {
			export_to_b(&m, BOTH, base + i, &token[i]);
			TEST_ASSERT_EQUAL_INT(
				0, rig.ops->import_region(rig.b.conn, &token[i], 0, &r[i]));
		}
		for (uint32_t i = 0; i < n; i++)
			rig.ops->release_region(rig.b.conn, r[(i + round) % n]);
		for (uint32_t i = 0; i < n; i++) {
			int before = rig.a.n_revoked;

			TEST_ASSERT_EQUAL_INT(
				0,
				rig.ops->revoke_region(rig.a.conn, base + (n - 1 - i + round) % n));
			rig_until(rig.a.n_revoked, before + 1);
			TEST_ASSERT_EQUAL_INT(0, rig.a.revoked_rc);
		}
	}
	rig_close();
	rig_memory_close(&m);
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
	/* the revoke is reported before `closed`: no agent can touch the region */
	TEST_ASSERT_EQUAL_INT(1, rig.a.n_revoked);
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
	struct rig_rma *q;

	rig_connect();
	rig_memory_open(&m, BYTES, BOTH);
	part = m.region;
	part.addr = m.bytes + 8192;
	part.fd_offset = 8192;
	part.length = 10000;
	TEST_ASSERT_EQUAL_INT(0, rig.ops->export_region(rig.a.conn, &part, BOTH, 1, &token));
	rig_fence();
	TEST_ASSERT_EQUAL_INT(0, rig.ops->import_region(rig.b.conn, &token, rig_map(), &r));
	TEST_ASSERT_EQUAL_UINT64(10000, r->length);
	q = rig_rma_open(&rig.b, 4, 0);
	far_fill(q, r, 0, 10000, 3);
	TEST_ASSERT_TRUE(rig_filled(m.bytes + 8192, 10000, 3));
	TEST_ASSERT_EQUAL_UINT8(0, m.bytes[8191]);
	TEST_ASSERT_EQUAL_UINT8(0, m.bytes[18192]);
	if (mapped()) {
		rig_fill(r->addr, 10000, 4);
		TEST_ASSERT_TRUE(rig_filled(m.bytes + 8192, 10000, 4));
	}
	rig.ops->release_region(rig.b.conn, r);
	rig_close();
	rig_memory_close(&m);
}

void region_cases(void)
{
	RIG_CASE(both_see_the_same_memory);
	RIG_CASE(exporter_replaces_its_mapping);
	RIG_CASE(import_without_an_address);
	RIG_CASE(each_import_is_released);
	RIG_CASE(revoke_waits_for_release);
	RIG_CASE(region_that_was_not_imported_can_be_revoked);
	RIG_CASE(handle_can_be_used_again);
	RIG_CASE(forged_tokens_are_rejected);
	RIG_CASE(rights_can_only_shrink);
	RIG_CASE(re_export_of_a_mapped_region);
	RIG_CASE(re_export_without_an_address);
	RIG_CASE(region_of_another_transport);
	RIG_CASE(regions_are_counted);
	RIG_CASE(regions_come_and_go);
	RIG_CASE(exports_end_with_the_connection);
	RIG_CASE(region_in_the_middle_of_a_file);
}
