/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Common code of the transports: counters that outlive their queues, the ring of completed moves,
 * and copies.
 */
#include <string.h>

#include <gantry/copy.h>

#include "../plugins/transport/common/cells.h"
#include "../plugins/transport/common/done.h"
#include "fake/host.h"
#include "unity.h"

static struct fake_host host;

void setUp(void)
{
	fake_host_init(&host, "devices.wire");
}

static void destroyed_queue_keeps_its_count(void)
{
	struct tc_cells cells;
	uint64_t *cell[20], *again;

	TEST_ASSERT_EQUAL_INT(0, tc_cells_init(&cells, &host.pub, "payload_bytes"));
	TEST_ASSERT_EQUAL_UINT(1, cells.n); /* a report has the counter before the first queue */
	for (unsigned i = 0; i < 20; i++) {
		cell[i] = tc_cell_get(&cells, &host.pub);
		TEST_ASSERT_NOT_NULL(cell[i]);
		gantry_count(cell[i], 1);
	}
	tc_cell_put(&cells, NULL);
	tc_cell_put(&cells, cell[3]);
	again = tc_cell_get(&cells, &host.pub);
	TEST_ASSERT_EQUAL_PTR(cell[3], again);
	gantry_count(again, 4);
	TEST_ASSERT_EQUAL_UINT64(24, fake_counter(&host, "payload_bytes"));
	for (unsigned i = 0; i < 20; i++)
		tc_cell_put(&cells, cell[i]);
	for (unsigned i = 0; i < 20; i++)
		TEST_ASSERT_NOT_NULL(tc_cell_get(&cells, &host.pub));
	TEST_ASSERT_EQUAL_UINT(20, cells.n);
	tc_cells_fini(&cells);
}

static void completions_arrive_once_and_in_order(void)
{
	struct gantry_rma_done done[8];
	struct tc_done ring;
	uint64_t put = 0, taken = 0;

	TEST_ASSERT_EQUAL_INT(0, tc_done_init(&ring, 5));
	ring.head = ring.tail = UINT32_MAX - 3; /* the counters wrap soon */
	for (unsigned turn = 0; turn < 40; turn++) {
		int n;

		while (put - taken < 5) {
			TEST_ASSERT_EQUAL_INT(0, tc_done_full(&ring));
			tc_done_put(&ring, put, put % 3 ? 0 : -ENOTCONN);
			put++;
		}
		n = tc_done_take(&ring, done, 1 + turn % 8);
		TEST_ASSERT_EQUAL_INT(1 + turn % 8 < 5 ? 1 + turn % 8 : 5, n);
		for (int i = 0; i < n; i++, taken++) {
			TEST_ASSERT_EQUAL_UINT64(taken, done[i].cookie);
			TEST_ASSERT_EQUAL_INT(taken % 3 ? 0 : -ENOTCONN, done[i].status);
		}
	}
	while (!tc_done_full(&ring))
		tc_done_put(&ring, put++, 0);
	TEST_ASSERT_EQUAL_UINT64(8, put - taken);
	TEST_ASSERT_EQUAL_INT(8, tc_done_take(&ring, done, 8));
	TEST_ASSERT_EQUAL_INT(1, tc_done_empty(&ring));
	TEST_ASSERT_EQUAL_INT(0, tc_done_take(&ring, done, 8));
	tc_done_fini(&ring);
}

/* Copies from large regions use another method. Both methods copy exactly the range. */
static void copies_are_whole(void)
{
	static const size_t lengths[] = {1, 4095, 4096, 4097, 8191, 8192, 8193, 12288, 20000};
	static uint8_t from[20000], to[20002];
	static const uint64_t sizes[] = {0, 4096, GANTRY_COPY_COLD_FROM};

	for (size_t i = 0; i < sizeof(from); i++)
		from[i] = (uint8_t)(i * 7 + i / 251);
	for (unsigned i = 0; i < 3 * sizeof(lengths) / sizeof(lengths[0]); i++) {
		size_t n = lengths[i / 3];

		memset(to, 0xee, sizeof(to));
		gantry_copy_out(to + 1, from, n, sizes[i % 3]);
		TEST_ASSERT_EQUAL_MEMORY(from, to + 1, n);
		TEST_ASSERT_EQUAL_HEX8(0xee, to[0]);
		TEST_ASSERT_EQUAL_HEX8(0xee, to[n + 1]);
	}
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(destroyed_queue_keeps_its_count);
	RUN_TEST(completions_arrive_once_and_in_order);
	RUN_TEST(copies_are_whole);
	return UNITY_END();
}
