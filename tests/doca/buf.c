/* SPDX-License-Identifier: BSD-3-Clause */
/* Buffers and inventories: ranges, references, lists, and data that moves between them. */
#include <string.h>

#include "fake_map.h"
#include "unity.h"

enum { SIZE = 4096, N_BUFS = 8, FAR = 0x7000000 };

static uint8_t memory[SIZE], far_memory[SIZE];
static struct doca_mmap map, far_map;
static struct doca_buf_inventory *inventory;
static struct doca_buf *buf;

static struct doca_buf *by_addr(size_t offset, size_t len)
{
	struct doca_buf *new_buf = NULL;

	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS,
			      doca_buf_inventory_buf_get_by_addr(inventory, &map, memory + offset,
								 len, &new_buf));
	return new_buf;
}

static struct doca_buf *by_data(size_t offset, size_t len)
{
	struct doca_buf *new_buf = NULL;

	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS,
			      doca_buf_inventory_buf_get_by_data(inventory, &map, memory + offset,
								 len, &new_buf));
	return new_buf;
}

static void drop(struct doca_buf *old)
{
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_dec_refcount(old, NULL));
}

static uint32_t n_free(void)
{
	uint32_t n;

	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS,
			      doca_buf_inventory_get_num_free_elements(inventory, &n));
	return n;
}

static void expect(const struct doca_buf *one, const void *head, size_t len, const void *data,
		   size_t data_len)
{
	void *address;
	size_t n;

	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_get_head(one, &address));
	TEST_ASSERT_EQUAL_PTR(head, address);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_get_len(one, &n));
	TEST_ASSERT_EQUAL_size_t(len, n);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_get_data(one, &address));
	TEST_ASSERT_EQUAL_PTR(data, address);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_get_data_len(one, &n));
	TEST_ASSERT_EQUAL_size_t(data_len, n);
}

void setUp(void)
{
	size_t i;

	for (i = 0; i < SIZE; i++)
		memory[i] = (uint8_t)(i * 7 + i / 256);
	memset(far_memory, 0, SIZE);
	map = (struct doca_mmap)FAKE_MAP(memory, SIZE);
	far_map = (struct doca_mmap)FAKE_IMPORT(FAR, far_memory, SIZE,
						DOCA_ACCESS_FLAG_PCI_READ_WRITE);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_inventory_create(N_BUFS, &inventory));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_inventory_start(inventory));
}

void tearDown(void)
{
	TEST_ASSERT_EQUAL_UINT32(0, map.n_bufs);
	TEST_ASSERT_EQUAL_UINT32(0, far_map.n_bufs);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_inventory_stop(inventory));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_inventory_destroy(inventory));
}

/* -- inventory -- */

static void test_three_ways_to_get_a_buffer(void)
{
	struct doca_buf *a = by_addr(8, 100), *b = by_data(16, 50), *c;
	uint16_t references;

	expect(a, memory + 8, 100, memory + 8, 0);
	expect(b, memory + 16, 50, memory + 16, 50);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS,
			      doca_buf_inventory_buf_get_by_args(inventory, &map, memory, SIZE,
								 memory + 10, 20, &c));
	expect(c, memory, SIZE, memory + 10, 20);
	doca_buf_get_refcount(c, &references);
	TEST_ASSERT_EQUAL_UINT16(1, references);
	TEST_ASSERT_EQUAL_UINT32(3, map.n_bufs);
	drop(a);
	drop(b);
	drop(c);
}

static void test_ranges_outside_of_the_map_are_invalid(void)
{
	static const struct {
		ptrdiff_t offset;
		size_t len;
		ptrdiff_t data;
		size_t data_len;
	} bad[] = {
		{-1, 2, -1, 0}, {0, SIZE + 1, 0, 0}, {SIZE, 1, SIZE, 0}, {1, SIZE_MAX, 1, 0},
		{10, 10, 9, 1}, {10, 10, 10, 11},    {10, 10, 21, 0},    {10, 10, 12, SIZE_MAX},
	};
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		TEST_ASSERT_EQUAL_INT_MESSAGE(
			DOCA_ERROR_INVALID_VALUE,
			doca_buf_inventory_buf_get_by_args(
				inventory, &map, (void *)((uintptr_t)memory + bad[i].offset),
				bad[i].len, (void *)((uintptr_t)memory + bad[i].data),
				bad[i].data_len, &buf),
			"row");
	TEST_ASSERT_EQUAL_UINT32(N_BUFS, n_free());
	buf = by_addr(SIZE, 0); /* an empty range at the end belongs to the map */
	drop(buf);
}

static void test_inventory_runs_out(void)
{
	struct doca_buf *bufs[N_BUFS];
	int i;

	for (i = 0; i < N_BUFS; i++)
		bufs[i] = by_addr(0, 1);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_NO_MEMORY,
			      doca_buf_inventory_buf_get_by_addr(inventory, &map, memory, 1, &buf));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_NO_MEMORY,
			      doca_buf_inventory_buf_dup(inventory, bufs[0], &buf));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_inventory_expand(inventory, 1));
	buf = by_addr(0, 1);
	drop(buf);
	for (i = 0; i < N_BUFS; i++)
		drop(bufs[i]);
	TEST_ASSERT_EQUAL_UINT32(N_BUFS + 1, n_free());
}

/* MUST: destroy returns IN_USE until all buffers of the inventory are released. */
static void test_destroy_with_buffers_out_is_in_use(void)
{
	buf = by_addr(0, 1);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_IN_USE, doca_buf_inventory_destroy(inventory));
	drop(buf);
}

static void test_get_needs_start_of_both(void)
{
	TEST_ASSERT_EQUAL_INT(
		DOCA_ERROR_BAD_STATE,
		doca_buf_inventory_set_user_data(inventory, (union doca_data){.u64 = 1}));
	buf = by_addr(0, 1);
	doca_buf_inventory_stop(inventory);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_buf_inventory_buf_get_by_addr(inventory, &map, memory, 1, &buf));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_BAD_STATE, doca_buf_inventory_expand(inventory, 1));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_BAD_STATE,
			      doca_buf_inventory_buf_dup(inventory, buf, &buf));
	doca_buf_inventory_start(inventory);
	map.started = false;
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_buf_inventory_buf_get_by_addr(inventory, &map, memory, 1, &buf));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_NOT_PERMITTED,
			      doca_buf_inventory_buf_dup(inventory, buf, &buf));
	drop(buf);
}

static void test_dup_is_another_buffer_of_the_same_range(void)
{
	struct doca_buf *twin;

	doca_buf_inventory_buf_get_by_args(inventory, &map, memory, 100, memory + 10, 20, &buf);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_inventory_buf_dup(inventory, buf, &twin));
	expect(twin, memory, 100, memory + 10, 20);
	drop(buf);
	expect(twin, memory, 100, memory + 10, 20);
	drop(twin);
}

/* MUST: reuse moves a buffer to another range of its map without using the inventory. */
static void test_reuse_moves_a_buffer_within_its_map(void)
{
	uint32_t before;

	buf = by_data(0, 10);
	before = n_free();
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS,
			      doca_buf_inventory_buf_reuse_by_addr(buf, memory + 100, 200));
	expect(buf, memory + 100, 200, memory + 100, 0);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS,
			      doca_buf_inventory_buf_reuse_by_data(buf, memory + 300, 20));
	expect(buf, memory + 300, 20, memory + 300, 20);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_inventory_buf_reuse_by_args(buf, memory, SIZE,
										 memory + 1, 2));
	expect(buf, memory, SIZE, memory + 1, 2);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_buf_inventory_buf_reuse_by_addr(buf, memory + 100, SIZE));
	expect(buf, memory, SIZE, memory + 1, 2);
	TEST_ASSERT_EQUAL_UINT32(before, n_free());
	drop(buf);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_buf_inventory_buf_reuse_by_addr(buf, memory, 1));
}

/* MUST: a thread-safe map does not count its buffers, and can be destroyed before them. */
static void test_thread_safe_map_does_not_count(void)
{
	static struct doca_mmap safe;

	safe = (struct doca_mmap)FAKE_MAP(memory, SIZE);
	safe.thread_safe = true;
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_inventory_buf_get_by_addr(inventory, &safe,
									       memory, 1, &buf));
	TEST_ASSERT_EQUAL_UINT32(0, safe.n_bufs);
	memset(&safe, 0xff, sizeof(safe));
	drop(buf);
}

static void test_numbers_and_user_data(void)
{
	struct doca_buf_inventory *other;
	union doca_data data;
	uint32_t n;

	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_inventory_create(3, &other));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_inventory_get_user_data(other, &data));
	TEST_ASSERT_EQUAL_UINT64(0, data.u64);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS,
			      doca_buf_inventory_set_user_data(other, (union doca_data){.u64 = 7}));
	doca_buf_inventory_get_user_data(other, &data);
	TEST_ASSERT_EQUAL_UINT64(7, data.u64);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_inventory_get_num_elements(other, &n));
	TEST_ASSERT_EQUAL_UINT32(3, n);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_inventory_destroy(other));
}

/* -- references -- */

static void test_references(void)
{
	uint16_t n;

	buf = by_addr(0, 1);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_inc_refcount(buf, &n));
	TEST_ASSERT_EQUAL_UINT16(1, n);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_inc_refcount(buf, NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_dec_refcount(buf, &n));
	TEST_ASSERT_EQUAL_UINT16(3, n);
	drop(buf);
	TEST_ASSERT_EQUAL_UINT32(N_BUFS - 1, n_free());
	drop(buf);
	TEST_ASSERT_EQUAL_UINT32(N_BUFS, n_free());
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_BAD_STATE, doca_buf_dec_refcount(buf, NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_NOT_PERMITTED, doca_buf_inc_refcount(buf, NULL));
	buf = by_addr(0, 1);
	buf->references = UINT16_MAX;
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_TOO_BIG, doca_buf_inc_refcount(buf, NULL));
	buf->references = 1;
	drop(buf);
}

static void test_set_data_always_succeeds(void)
{
	buf = by_addr(0, 100);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_set_data(buf, memory + 10, 20));
	expect(buf, memory, 100, memory + 10, 20);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_set_data_len(buf, 30));
	expect(buf, memory, 100, memory + 10, 30);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_reset_data_len(buf));
	expect(buf, memory, 100, memory + 10, 0);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_set_data(buf, memory + SIZE, SIZE_MAX));
	TEST_ASSERT_EQUAL_size_t(0, gd_buf_room(buf));
	drop(buf);
}

/* -- lists -- */

static void expect_list(struct doca_buf *first, struct doca_buf *const *all, uint32_t n)
{
	struct doca_buf *at = first, *other;
	uint32_t i, length;
	uint8_t yes;

	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_get_list_len(first, &length));
	TEST_ASSERT_EQUAL_UINT32(n, length);
	for (i = 0; i < n; i++) {
		TEST_ASSERT_EQUAL_PTR(all[i], at);
		doca_buf_is_first_in_list(at, &yes);
		TEST_ASSERT_EQUAL_UINT8(i == 0, yes);
		doca_buf_is_last_in_list(at, &yes);
		TEST_ASSERT_EQUAL_UINT8(i == n - 1, yes);
		doca_buf_is_in_list(at, &yes);
		TEST_ASSERT_EQUAL_UINT8(n > 1, yes);
		TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_get_last_in_list(at, &other));
		TEST_ASSERT_EQUAL_PTR(all[n - 1], other);
		TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_get_next_in_list(at, &at));
	}
	TEST_ASSERT_NULL(at);
}

static void test_chain_and_unchain(void)
{
	struct doca_buf *all[4];
	uint32_t n;
	int i;

	for (i = 0; i < 4; i++) {
		all[i] = by_addr(0, 1);
		expect_list(all[i], &all[i], 1);
	}
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_chain_list(all[0], all[1]));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_chain_list(all[2], all[3]));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_chain_list_tail(all[0], all[1], all[2]));
	expect_list(all[0], all, 4);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_NOT_PERMITTED, doca_buf_get_list_len(all[1], &n));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_unchain_list(all[0], all[3]));
	expect_list(all[0], all, 3);
	expect_list(all[3], all + 3, 1);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_unchain_list(all[0], all[1]));
	expect_list(all[0], all, 1);
	expect_list(all[1], all + 1, 2);
	drop(all[0]);
	drop(all[1]);
	drop(all[3]);
	TEST_ASSERT_EQUAL_UINT32(N_BUFS, n_free());
}

/* MUST: releasing the head of a list releases the whole list; other elements become invalid. */
static void test_release_of_the_head_releases_the_list(void)
{
	struct doca_buf *a = by_addr(0, 1), *b = by_addr(0, 1);

	doca_buf_chain_list(a, b);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_NOT_PERMITTED, doca_buf_dec_refcount(b, NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_NOT_PERMITTED, doca_buf_inc_refcount(b, NULL));
	drop(a);
	TEST_ASSERT_EQUAL_UINT32(N_BUFS, n_free());
}

static void test_chains_that_are_not_permitted(void)
{
	struct doca_buf *a = by_addr(0, 1), *b = by_addr(0, 1), *c = by_addr(0, 1);

	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_NOT_PERMITTED, doca_buf_chain_list(a, a));
	doca_buf_inc_refcount(b, NULL);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_NOT_PERMITTED, doca_buf_chain_list(a, b));
	drop(b);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_NOT_PERMITTED, doca_buf_chain_list_tail(a, c, b));
	doca_buf_chain_list(a, b);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_NOT_PERMITTED, doca_buf_chain_list(b, c));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_NOT_PERMITTED, doca_buf_chain_list(c, b));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_buf_unchain_list(a, c));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_buf_unchain_list(b, a));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_buf_unchain_list(a, NULL));
	drop(a);
	drop(c);
}

/* -- data -- */

static void test_addresses_of_an_imported_map(void)
{
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS,
			      doca_buf_inventory_buf_get_by_addr(inventory, &far_map,
								 (void *)(FAR + 16), 32, &buf));
	TEST_ASSERT_EQUAL_PTR(far_memory + 20, gd_buf_host(buf, (void *)(FAR + 20), 4));
	TEST_ASSERT_NULL(gd_buf_host(buf, (void *)(FAR + SIZE - 1), 2));
	TEST_ASSERT_NULL(gd_buf_host(buf, (void *)(FAR - 1), 1));
	TEST_ASSERT_NULL(gd_buf_host(buf, (void *)FAR, SIZE_MAX));
	far_map.local = NULL;
	TEST_ASSERT_NULL(gd_buf_host(buf, (void *)FAR, 1));
	drop(buf);
}

/*
 * MUST: a copy appends data_len bytes of the source to the data of the destination, whose data_len
 * grows by that length.
 */
static void test_copy_appends(void)
{
	struct doca_buf *src = by_data(0, 100), *dst;

	doca_buf_inventory_buf_get_by_args(inventory, &far_map, (void *)FAR, 1000,
					   (void *)(FAR + 10), 5, &dst);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, gd_buf_copy(dst, src));
	expect(dst, (void *)FAR, 1000, (void *)(FAR + 10), 105);
	TEST_ASSERT_EQUAL_MEMORY(memory, far_memory + 15, 100);
	TEST_ASSERT_EQUAL_UINT8(0, far_memory[14]);
	TEST_ASSERT_EQUAL_UINT8(0, far_memory[115]);
	drop(src);
	drop(dst);
}

static void test_copy_gathers_and_scatters(void)
{
	static const size_t from[3] = {10, 0, 90}, to[4] = {33, 1, 0, 66};
	struct doca_buf *src = NULL, *dst = NULL, *one;
	size_t i, at = 0;

	for (i = 0; i < 3; at += from[i++] + 50) {
		one = by_data(at, from[i]);
		if (src)
			doca_buf_chain_list(src, one);
		else
			src = one;
	}
	for (i = 0, at = 0; i < 4; at += to[i++]) {
		doca_buf_inventory_buf_get_by_addr(inventory, &far_map, (void *)(FAR + at), to[i],
						   &one);
		if (dst)
			doca_buf_chain_list(dst, one);
		else
			dst = one;
	}
	TEST_ASSERT_EQUAL_size_t(100, gd_buf_room(dst));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, gd_buf_copy(dst, src));
	TEST_ASSERT_EQUAL_MEMORY(memory, far_memory, 10);
	TEST_ASSERT_EQUAL_MEMORY(memory + 110, far_memory + 10, 90);
	for (one = dst, i = 0; one; one = one->next, i++)
		TEST_ASSERT_EQUAL_size_t(to[i], one->data_len);
	TEST_ASSERT_EQUAL_size_t(0, gd_buf_room(dst));
	TEST_ASSERT_EQUAL_size_t(100, gd_buf_data_bytes(dst));
	drop(src);
	drop(dst);
}

static void test_copy_begins_behind_the_last_data_of_a_list(void)
{
	struct doca_buf *src = by_data(0, 20), *a, *b, *c;

	doca_buf_inventory_buf_get_by_addr(inventory, &far_map, (void *)FAR, 100, &a);
	doca_buf_inventory_buf_get_by_args(inventory, &far_map, (void *)(FAR + 100), 10,
					   (void *)(FAR + 100), 3, &b);
	doca_buf_inventory_buf_get_by_addr(inventory, &far_map, (void *)(FAR + 200), 13, &c);
	doca_buf_chain_list(a, b);
	doca_buf_chain_list(a, c);
	TEST_ASSERT_EQUAL_size_t(20, gd_buf_room(a));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, gd_buf_copy(a, src));
	TEST_ASSERT_EQUAL_size_t(0, a->data_len);
	TEST_ASSERT_EQUAL_size_t(10, b->data_len);
	TEST_ASSERT_EQUAL_size_t(13, c->data_len);
	TEST_ASSERT_EQUAL_MEMORY(memory, far_memory + 103, 7);
	TEST_ASSERT_EQUAL_MEMORY(memory + 7, far_memory + 200, 13);
	drop(a);
	drop(src);
}

/* A rejected copy changes neither memory nor lengths. */
static void expect_refused(doca_error_t expected, struct doca_buf *dst, struct doca_buf *src)
{
	static const uint8_t zeroes[SIZE];
	const size_t before = dst->data_len;

	TEST_ASSERT_EQUAL_INT(expected, gd_buf_copy(dst, src));
	TEST_ASSERT_EQUAL_size_t(before, dst->data_len);
	TEST_ASSERT_EQUAL_MEMORY(zeroes, far_memory, SIZE);
}

static void test_copies_that_are_refused(void)
{
	struct doca_buf *src = by_data(0, 100), *dst, *more;

	doca_buf_inventory_buf_get_by_addr(inventory, &far_map, (void *)FAR, 99, &dst);
	expect_refused(DOCA_ERROR_INVALID_VALUE, dst, src); /* the destination is too short */
	doca_buf_inventory_buf_reuse_by_addr(dst, (void *)FAR, 200);
	far_map.access = DOCA_ACCESS_FLAG_PCI_READ_ONLY;
	expect_refused(DOCA_ERROR_NOT_PERMITTED, dst, src);
	far_map.access = DOCA_ACCESS_FLAG_PCI_READ_WRITE;
	doca_buf_set_data(src, memory + SIZE - 50, 100);
	expect_refused(DOCA_ERROR_INVALID_VALUE, dst, src); /* the data exceeds the map */
	doca_buf_set_data(src, memory, 50);
	more = by_data(50, 50);
	doca_buf_set_data(more, memory + SIZE, 50);
	doca_buf_chain_list(src, more);
	expect_refused(DOCA_ERROR_INVALID_VALUE, dst, src); /* only the second is invalid */
	doca_buf_set_data(more, memory, 50);
	map.local = NULL;
	expect_refused(DOCA_ERROR_INVALID_VALUE, dst, src); /* the map has no local memory */
	map.local = memory;
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, gd_buf_copy(dst, src));
	drop(src);
	drop(dst);
}

static void test_rights_of_both_sides(void)
{
	struct doca_buf *near_buf = by_data(0, 10), *far_buf;

	doca_buf_inventory_buf_get_by_data(inventory, &far_map, (void *)FAR, 10, &far_buf);
	doca_buf_reset_data_len(near_buf);
	far_map.access = 0;
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_NOT_PERMITTED, gd_buf_copy(near_buf, far_buf));
	far_map.access = DOCA_ACCESS_FLAG_PCI_READ_ONLY;
	map.access = DOCA_ACCESS_FLAG_LOCAL_READ_ONLY;
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_NOT_PERMITTED, gd_buf_copy(near_buf, far_buf));
	map.access = DOCA_ACCESS_FLAG_LOCAL_READ_WRITE;
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, gd_buf_copy(near_buf, far_buf));
	TEST_ASSERT_EQUAL_UINT8(0, memory[9]);
	drop(near_buf);
	drop(far_buf);
}

static void test_append_and_read(void)
{
	struct doca_buf *a = by_addr(0, 4), *b = by_addr(100, 6);
	char text[16] = "";

	doca_buf_chain_list(a, b);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, gd_buf_append(a, "0123456789a", 11));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, gd_buf_append(a, "01", 2));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, gd_buf_append(a, "23456789", 8));
	TEST_ASSERT_EQUAL_MEMORY("0123", memory, 4);
	TEST_ASSERT_EQUAL_MEMORY("456789", memory + 100, 6);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, gd_buf_read(a, 2, text, 7));
	TEST_ASSERT_EQUAL_STRING("2345678", text);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, gd_buf_read(a, 9, text, 1));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, gd_buf_read(a, 9, text, 2));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, gd_buf_read(a, 10, text, 1));
	drop(a);
}

static void test_missing_arguments(void)
{
	uint16_t references;
	uint32_t n;
	uint8_t yes;
	size_t size;
	void *address;

	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_buf_inventory_create(0, &inventory));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_buf_inventory_create(1, NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_buf_inventory_destroy(NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_buf_inventory_start(NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_buf_inventory_stop(NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_buf_inventory_expand(inventory, 0));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_buf_inventory_buf_get_by_addr(NULL, &map, memory, 1, &buf));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_buf_inventory_buf_get_by_addr(inventory, NULL, memory, 1, &buf));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_buf_inventory_buf_get_by_addr(inventory, &map, memory, 1, NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_buf_inventory_buf_get_by_addr(inventory, &map, NULL, 1, &buf));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_buf_inventory_buf_dup(inventory, NULL, &buf));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_buf_inventory_buf_reuse_by_data(NULL, memory, 1));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_buf_inventory_get_num_elements(NULL, &n));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_buf_inventory_get_num_free_elements(inventory, NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_buf_inventory_get_user_data(inventory, NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_buf_inc_refcount(NULL, NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_buf_dec_refcount(NULL, NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_buf_get_refcount(NULL, &references));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_buf_get_len(NULL, &size));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_buf_get_head(NULL, &address));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_buf_get_data(NULL, &address));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_buf_get_data_len(NULL, &size));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_buf_set_data(NULL, NULL, 0));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_buf_get_list_len(NULL, &n));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_buf_is_in_list(NULL, &yes));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_buf_chain_list(NULL, NULL));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_three_ways_to_get_a_buffer);
	RUN_TEST(test_ranges_outside_of_the_map_are_invalid);
	RUN_TEST(test_inventory_runs_out);
	RUN_TEST(test_destroy_with_buffers_out_is_in_use);
	RUN_TEST(test_get_needs_start_of_both);
	RUN_TEST(test_dup_is_another_buffer_of_the_same_range);
	RUN_TEST(test_reuse_moves_a_buffer_within_its_map);
	RUN_TEST(test_thread_safe_map_does_not_count);
	RUN_TEST(test_numbers_and_user_data);
	RUN_TEST(test_references);
	RUN_TEST(test_set_data_always_succeeds);
	RUN_TEST(test_chain_and_unchain);
	RUN_TEST(test_release_of_the_head_releases_the_list);
	RUN_TEST(test_chains_that_are_not_permitted);
	RUN_TEST(test_addresses_of_an_imported_map);
	RUN_TEST(test_copy_appends);
	RUN_TEST(test_copy_gathers_and_scatters);
	RUN_TEST(test_copy_begins_behind_the_last_data_of_a_list);
	RUN_TEST(test_copies_that_are_refused);
	RUN_TEST(test_rights_of_both_sides);
	RUN_TEST(test_append_and_read);
	RUN_TEST(test_missing_arguments);
	return UNITY_END();
}
