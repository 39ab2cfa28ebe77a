/* SPDX-License-Identifier: BSD-3-Clause */
/* region.c - conformance: export, import, revoke, re-export. */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "conform/rig.h"

#define BOTH (GANTRY_REMOTE_READ | GANTRY_REMOTE_WRITE)
#define BYTES 65536u

/* Export memory of `a` and send the token to `b` in a control message, as a session does. */
static void export_to_b(struct rig_memory *m, uint32_t rights, uint32_t handle,
			struct gantry_token *token)
{
	int n = rig.b.n_msgs;

	RIG_OK(rig.ops->export_region(rig.a.conn, &m->region, rights, handle, token));
	RIG_OK(rig_ctrl(&rig.a, token, sizeof(*token)));
	rig_until(rig.b.n_msgs, n + 1);
	RIG_NUM(sizeof(*token), rig.b.msg_len, "length of the message with the token");
	memcpy(token, rig.b.msg, sizeof(*token));
}

static struct gantry_region *import(struct rig_end *end, const struct gantry_token *token,
				    uint32_t flags)
{
	struct gantry_region *r = NULL;

	RIG_OK(rig.ops->import_region(end->conn, token, flags, &r));
	if (flags & GANTRY_IMPORT_MAP)
		RIG_HOLDS(
			r->addr,
			"addr after import_region with GANTRY_IMPORT_MAP on a device with GANTRY_CAP_MAPPED");
	return r;
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
	RIG_OK(rig_rma_move(q, GANTRY_RMA_WRITE, local, r, offset, n));
}

static int far_filled(struct rig_rma *q, const struct gantry_region *r, uint64_t offset, uint32_t n,
		      uint32_t seed)
{
	uint8_t *local = q ? rig_local(n) : (uint8_t *)r->addr + offset;

	if (q)
		RIG_OK(rig_rma_move(q, GANTRY_RMA_READ, local, r, offset, n));
	return rig_filled(local, n, seed);
}

static void both_see_the_same_memory(void)
{
	struct gantry_region *r;
	struct gantry_token token;
	struct rig_memory m;

	rig_need(RIG_MAPPED);
	rig_connect();
	rig_memory_open(&m, BYTES, BOTH);
	export_to_b(&m, BOTH, 7, &token);
	r = import(&rig.b, &token, GANTRY_IMPORT_MAP);
	RIG_NUM(BYTES, r->length, "length of an import");
	RIG_NUM(7, r->handle, "handle of an import");
	RIG_NUM(BOTH, r->rights, "rights of an import");
	rig_fill(m.bytes, BYTES, 1);
	RIG_HOLDS(rig_filled(r->addr, BYTES, 1), "memory as the importer sees it");
	rig_fill(r->addr, BYTES, 2);
	RIG_HOLDS(rig_filled(m.bytes, BYTES, 2), "memory as the exporter sees it");
	rig.ops->release_region(rig.b.conn, r);
}

/*
 * A client that lost its session replaces the mapping of its region by private memory. Late IO of
 * the importer must not change the private memory.
 */
static void exporter_replaces_its_mapping(void)
{
	struct gantry_region *r;
	struct gantry_token token;
	struct rig_memory m;

	rig_need(RIG_MAPPED);
	rig_connect();
	rig_memory_open(&m, BYTES, BOTH);
	export_to_b(&m, BOTH, 7, &token);
	r = import(&rig.b, &token, GANTRY_IMPORT_MAP);
	rig_fill(m.bytes, BYTES, 1);
	TEST_ASSERT_EQUAL_PTR(m.bytes, mmap(m.bytes, BYTES, PROT_READ | PROT_WRITE,
					    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
	rig_fill(m.bytes, BYTES, 3);
	RIG_HOLDS(rig_filled(r->addr, BYTES, 1), "memory as the importer sees it");
	rig_fill(r->addr, BYTES, 2);
	RIG_HOLDS(rig_filled(m.bytes, BYTES, 3),
		  "private memory that replaced the mapping of the exporter: it does not change");
	rig.ops->release_region(rig.b.conn, r);
}

static void import_without_an_address(void)
{
	struct gantry_region *r = NULL;
	struct gantry_token token;
	struct rig_memory m;

	rig_connect();
	rig_memory_open(&m, BYTES, BOTH);
	export_to_b(&m, BOTH, 7, &token);
	r = import(&rig.b, &token, 0);
	RIG_HOLDS(!r->addr, "addr of an import without GANTRY_IMPORT_MAP");
	RIG_NUM(BYTES, r->length, "length of an import");
	rig.ops->release_region(rig.b.conn, r);
	if (!rig_has(RIG_MAPPED))
		RIG_HOLDS(rig.ops->import_region(rig.b.conn, &token, GANTRY_IMPORT_MAP, &r) < 0,
			  "import_region with GANTRY_IMPORT_MAP, without GANTRY_CAP_MAPPED");
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
		r[i] = import(&rig.b, &token, rig_map());
	rig.ops->release_region(rig.b.conn, r[0]);
	RIG_OK(rig.ops->revoke_region(rig.a.conn, 7));
	rig_until(rig.b.n_revoke, 1);
	for (int i = 1; i < 3; i++) {
		rig_fence();
		RIG_RC(0, rig.a.n_revoked,
		       "number of events `revoked` while the peer has an import"); /* b still has an import */
		rig.ops->release_region(rig.b.conn, r[i]);
	}
	rig_until(rig.a.n_revoked, 1);
	RIG_RC(0, rig.a.revoked_rc, "rc of `revoked` after the peer released the region");
	RIG_NUM(7, rig.a.revoked, "handle of the event `revoked`");
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
	r = import(&rig.b, &token, rig_map());
	RIG_RC(-ENOENT, rig.ops->revoke_region(rig.a.conn, 8),
	       "revoke_region of a handle that was never exported");
	RIG_OK(rig.ops->revoke_region(rig.a.conn, 9));
	rig_until(rig.b.n_revoke, 1);
	RIG_NUM(9, rig.b.revoke, "handle of the event `revoke`");
	rig_fence();
	RIG_RC(0, rig.a.n_revoked, "number of events `revoked` while the peer has an import");
	if (rig_has(RIG_MAPPED)) /* the importer can use the region until it releases it */
		rig_fill(r->addr, BYTES, 5);
	else
		far_fill(q, r, 0, BYTES, 5);
	RIG_HOLDS(rig_filled(m.bytes, BYTES, 5), "memory as the exporter sees it");
	rig.ops->release_region(rig.b.conn, r);
	rig_until(rig.a.n_revoked, 1);
	RIG_NUM(9, rig.a.revoked, "handle of the event `revoked`");
	RIG_RC(0, rig.a.revoked_rc, "rc of `revoked` after the peer released the region");
	/* the token is of a revoked export */
	RIG_RC(-ENOENT, rig.ops->import_region(rig.b.conn, &token, 0, &r),
	       "import_region of a revoked export");
	RIG_RC(-ENOENT, rig.ops->revoke_region(rig.a.conn, 9), "revoke_region of a revoked export");
	rig_fence();
	RIG_RC(1, rig.b.n_revoke, "number of events `revoke` of one export");
	RIG_RC(1, rig.a.n_revoked, "number of events `revoked` of one export");
}

static void region_that_was_not_imported_can_be_revoked(void)
{
	struct gantry_token token;
	struct rig_memory m;

	rig_connect();
	rig_memory_open(&m, BYTES, BOTH);
	export_to_b(&m, BOTH, 1, &token);
	RIG_OK(rig.ops->revoke_region(rig.a.conn, 1));
	rig_until(rig.a.n_revoked, 1);
	RIG_RC(0, rig.a.revoked_rc, "rc of `revoked` after the peer released the region");
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
	RIG_HOLDS(rig.ops->export_region(rig.a.conn, &m.region, BOTH, 1, &token) < 0,
		  "export_region with a handle in use, or with rights that the region lacks");
	for (int i = 0; i < (int)rig_rounds(200); i++) {
		RIG_OK(rig.ops->revoke_region(rig.a.conn, 1));
		rig_until(rig.a.n_revoked, i + 1);
		export_to_b(&m, BOTH, 1, &token);
		RIG_RC(-ENOENT, rig.ops->import_region(rig.b.conn, &old, 0, &r),
		       "import_region of a revoked export whose handle is in use again");
		r = import(&rig.b, &token, 0);
		rig.ops->release_region(rig.b.conn, r);
		old = token;
	}
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
	bad.handle++;
	RIG_RC(-ENOENT, rig.ops->import_region(rig.b.conn, &bad, 0, &r),
	       "import_region with a forged token");
	bad = token;
	bad.generation++;
	RIG_RC(-ENOENT, rig.ops->import_region(rig.b.conn, &bad, 0, &r),
	       "import_region with a forged token");
	memset(&bad, 0xff, sizeof(bad));
	RIG_RC(-ENOENT, rig.ops->import_region(rig.b.conn, &bad, 0, &r),
	       "import_region with a forged token");
	memset(&bad, 0, sizeof(bad));
	RIG_RC(-ENOENT, rig.ops->import_region(rig.b.conn, &bad, 0, &r),
	       "import_region with a forged token");
	/* an exporter cannot import its own token */
	RIG_RC(-ENOENT, rig.ops->import_region(rig.a.conn, &token, 0, &r),
	       "import_region of an export of this end");
	rig_connect();
	RIG_RC(-ENOENT, rig.ops->import_region(rig.b.conn, &token, 0, &r),
	       "import_region of an export of another connection");
}

static void rights_can_only_shrink(void)
{
	struct gantry_token token;
	struct rig_memory m;

	rig_connect();
	rig_memory_open(&m, BYTES, GANTRY_REMOTE_READ);
	RIG_HOLDS(rig.ops->export_region(rig.a.conn, &m.region, BOTH, 1, &token) < 0,
		  "export_region with a handle in use, or with rights that the region lacks");
	RIG_HOLDS(rig.ops->export_region(rig.a.conn, &m.region, 0, 1, &token) < 0,
		  "export_region without rights");
	RIG_OK(rig.ops->export_region(rig.a.conn, &m.region, GANTRY_REMOTE_READ, 1, &token));
}

/* Returns whether this process can write to the byte at this address. */
static int is_writable(void *at)
{
	int fds[2], n;

	TEST_ASSERT_EQUAL_INT(0, pipe2(fds, O_CLOEXEC));
	TEST_ASSERT_EQUAL_INT(1, write(fds[1], "x", 1));
	n = (int)read(fds[0], at, 1); /* EFAULT, without a signal, if it is not writable */
	close(fds[0]);
	close(fds[1]);
	return n == 1;
}

/*
 * A peer in another process must not get a descriptor that can write: it could map the memory
 * again.
 */
static void check_read_only(const struct gantry_region *r)
{
	RIG_HOLDS(!is_writable(r->addr), "mapping of a read-only export");
	if (rig.ops->flags & GANTRY_TRANSPORT_INSIDE)
		return;
	RIG_HOLDS(mprotect(r->addr, 1, PROT_READ | PROT_WRITE) != 0,
		  "mprotect(PROT_WRITE) of a read-only export");
	if (r->fd < 0)
		return;
	RIG_NUM(O_RDONLY, fcntl(r->fd, F_GETFL) & O_ACCMODE,
		"access mode of the descriptor of a read-only export");
	RIG_HOLDS(mmap(NULL, 1, PROT_WRITE, MAP_SHARED, r->fd, 0) == MAP_FAILED,
		  "mmap(PROT_WRITE) of the descriptor of a read-only export");
}

/* The importer of a read-only export cannot write to it. */
static void read_only_export_cannot_be_written(void)
{
	struct gantry_region *r;
	struct gantry_token token;
	struct rig_memory m;

	rig_need(RIG_MAPPED);
	rig_connect();
	rig_memory_open(&m, BYTES, BOTH);
	rig_fill(m.bytes, BYTES, 1);
	export_to_b(&m, GANTRY_REMOTE_READ, 7, &token);
	r = import(&rig.b, &token, GANTRY_IMPORT_MAP);
	RIG_NUM(GANTRY_REMOTE_READ, r->rights, "rights of an import of a read-only export");
	check_read_only(r);
	rig.ops->release_region(rig.b.conn, r);
	RIG_HOLDS(rig_filled(m.bytes, BYTES, 1),
		  "memory of a read-only export: it does not change");
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
	mid = import(&rig.b, &token, flags);
	rig_connect();
	RIG_OK(rig.ops->export_region(rig.b.conn, mid, BOTH, 30, &token));
	rig_fence();
	far = import(&rig.a, &token, rig_map());
	RIG_NUM(BYTES, far->length, "length of an import");
	RIG_NUM(0, mid->unordered, "`unordered` of an import of memory of the peer");
	/*
	 * a device writes to the memory of a third party through separate queue pairs: these writes
	 * are not ordered with messages. Another network transport can do so, too
	 */
	if (rig_has(RIG_PINS))
		RIG_NUM(1, far->unordered, "`unordered` of an import of memory of a third party");
	else
		RIG_HOLDS(!far->unordered || rig_has(RIG_NETWORK),
			  "`unordered` of an import of memory of a third party");
	q = rig_rma_open(&rig.a, 4, 0);
	far_fill(q, far, 0, BYTES, 8);
	RIG_HOLDS(rig_filled(m.bytes, BYTES, 8), "memory as the exporter sees it");
	rig_fill(m.bytes, BYTES, 7);
	RIG_HOLDS(far_filled(q, far, 0, BYTES, 7), "memory as the importer sees it");
	if (rig_has(RIG_MAPPED)) {
		rig_fill(far->addr, BYTES, 9);
		RIG_HOLDS(rig_filled(m.bytes, BYTES, 9), "memory as the exporter sees it");
	}
	rig_rma_close(q);
	rig.ops->release_region(rig.a.conn, far);
	rig_disconnect(&rig.a);
	rig_disconnect(&rig.b);
	rig.ops->release_region(near_b, mid);
}

static void re_export_of_a_mapped_region(void)
{
	rig_need(RIG_MAPPED);
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
		RIG_OK(rig.ops->export_region(rig.a.conn, &other, BOTH, 30 + i, &token));
		rig_fence();
		r = import(&rig.b, &token, rig_access());
		RIG_NUM(16384, r->length, "length of an import");
		far_fill(q, r, 0, 16384, 2 + i);
		RIG_HOLDS(rig_filled(m.bytes, from, 1),
			  "memory before the exported part: it does not change");
		RIG_HOLDS(rig_filled(m.bytes + from, 16384, 2 + i),
			  "memory as the exporter sees it");
		RIG_HOLDS(far_filled(q, r, 0, 16384, 2 + i), "memory as the importer sees it");
		rig.ops->release_region(rig.b.conn, r);
		RIG_OK(rig.ops->revoke_region(rig.a.conn, 30 + i));
		rig_until(rig.a.n_revoked, (int)i + 1);
		RIG_RC(0, rig.a.revoked_rc, "rc of `revoked` after the peer released the region");
	}
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
		RIG_OK(rig.ops->export_region(rig.a.conn, &m.region, BOTH, 100 + n, &token));
		n++;
		rig_settle();
	}
	RIG_RC(-ENOSPC, rig.ops->export_region(rig.a.conn, &m.region, BOTH, 100 + n, &token),
	       "export_region beyond info.max_regions");
	RIG_OK(rig.ops->revoke_region(rig.a.conn, 100));
	rig_until(rig.a.n_revoked, 1);
	RIG_OK(rig.ops->export_region(rig.a.conn, &m.region, BOTH, 100 + n, &token));
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
			r[i] = import(&rig.b, &token[i], 0);
		}
		for (uint32_t i = 0; i < n; i++)
			rig.ops->release_region(rig.b.conn, r[(i + round) % n]);
		for (uint32_t i = 0; i < n; i++) {
			int before = rig.a.n_revoked;

			RIG_OK(rig.ops->revoke_region(rig.a.conn, base + (n - 1 - i + round) % n));
			rig_until(rig.a.n_revoked, before + 1);
			RIG_RC(0, rig.a.revoked_rc,
			       "rc of `revoked` after the peer released the region");
		}
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
	/* the revoke is reported before `closed`: no agent can touch the region */
	RIG_RC(1, rig.a.n_revoked, "number of events `revoked` of one export");
	RIG_NUM(5, rig.a.revoked, "handle of the event `revoked`");
	RIG_RC(0, rig.a.revoked_rc, "rc of `revoked` after the peer released the region");
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
	RIG_OK(rig.ops->export_region(rig.a.conn, &part, BOTH, 1, &token));
	rig_fence();
	r = import(&rig.b, &token, rig_map());
	RIG_NUM(10000, r->length, "length of an import");
	q = rig_rma_open(&rig.b, 4, 0);
	far_fill(q, r, 0, 10000, 3);
	RIG_HOLDS(rig_filled(m.bytes + 8192, 10000, 3), "memory as the exporter sees it");
	RIG_NUM(0, m.bytes[8191], "byte before the exported part: it does not change");
	RIG_NUM(0, m.bytes[18192], "byte behind the exported part: it does not change");
	if (rig_has(RIG_MAPPED)) {
		rig_fill(r->addr, 10000, 4);
		RIG_HOLDS(rig_filled(m.bytes + 8192, 10000, 4), "memory as the exporter sees it");
	}
	rig.ops->release_region(rig.b.conn, r);
}

/* Memory that only another transport reaches: it has no address here, and no file. */
static void region_out_of_reach_is_rejected(void)
{
	static int secret;
	const struct gantry_region other = {.length = 16384,
					    .fd = -1,
					    .rights = BOTH,
					    .handle = 99,
					    .domain = 0x6f746872u,
					    .transport = &secret};
	struct gantry_token token;

	rig_connect();
	RIG_RC(-EXDEV, rig.ops->export_region(rig.a.conn, &other, BOTH, 1, &token),
	       "export_region of memory that only another transport reaches");
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
	RIG_CASE(read_only_export_cannot_be_written);
	RIG_CASE(re_export_of_a_mapped_region);
	RIG_CASE(re_export_without_an_address);
	RIG_CASE(region_of_another_transport);
	RIG_CASE(region_out_of_reach_is_rejected);
	RIG_CASE(regions_are_counted);
	RIG_CASE(regions_come_and_go);
	RIG_CASE(exports_end_with_the_connection);
	RIG_CASE(region_in_the_middle_of_a_file);
}
