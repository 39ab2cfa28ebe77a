/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A responder reads the list of a request once, checks the copy, and gives the pieces or a buffer
 * with their data to the terminal.
 */
#include "responder_rig.h"

#define HEAD 2048u /* offset of the list in the region */

static struct gantry_list_entry *list_at(uint64_t offset)
{
	return (struct gantry_list_entry *)(void *)(ft.memory + offset);
}

static void put(unsigned i, uint32_t region, uint32_t length, uint64_t offset)
{
	list_at(HEAD)[i] = (struct gantry_list_entry){region, length, offset};
}

static struct gantry_io listed(uint32_t tag, uint8_t opcode)
{
	struct gantry_io io = request(tag, opcode);

	io.flags = GANTRY_IO_LIST;
	io.region_offset = HEAD;
	return io;
}

/* Three pieces, which begin at 0, 700 and 1500, and have 24, 500 and 500 bytes. */
static void put_pieces(void)
{
	memset(ft.memory, 0x11, FAKE_REGION_BYTES);
	put(0, 1, 24, 0);
	put(1, 1, 500, 700);
	put(2, 1, 500, 1500);
	put(3, 99, 0, 0); /* not part of the list */
	memset(ft.memory, 'a', 24);
	memset(ft.memory + 700, 'b', 500);
	memset(ft.memory + 1500, 'c', 500);
}

static void begin(int moved, int native)
{
	rules.volume.flags |= GANTRY_VOLUME_LISTS;
	gn_io_rules_ready(&rules);
	takes_lists = native;
	make_port(moved);
	put_pieces();
}

static void expect_all(char value, const uint8_t *bytes, size_t n)
{
	TEST_ASSERT_EACH_EQUAL_CHAR(value, (const char *)bytes, n);
}

static void expect_gathered(const uint8_t *data)
{
	expect_all('a', data, 24);
	expect_all('b', data + 24, 500);
	expect_all('c', data + 524, 500);
}

/* The data of a read reached its pieces, and no other byte. */
static void expect_scattered(void)
{
	expect_all('A', ft.memory, 24);
	expect_all(0x11, ft.memory + 24, 700 - 24);
	expect_all('B', ft.memory + 700, 500);
	expect_all(0x11, ft.memory + 1200, 300);
	expect_all('C', ft.memory + 1500, 500);
	expect_all(0x11, ft.memory + 2000, HEAD - 2000);
}

static void fill(uint8_t *data)
{
	memset(data, 'A', 24);
	memset(data + 24, 'B', 500);
	memset(data + 524, 'C', 500);
}

static void a_backend_with_lists_gets_the_pieces(void)
{
	const struct gantry_pieces *pieces;

	begin(0, 1);
	ask(listed(1, GANTRY_OP_WRITE));
	TEST_ASSERT_EQUAL_UINT(1, n_held);
	TEST_ASSERT_EQUAL_UINT(GANTRY_IO_LIST, held[0]->flags);
	pieces = held[0]->data;
	memset(list_at(HEAD), 0xff, 4 * sizeof(struct gantry_list_entry)); /* the copy counts */
	TEST_ASSERT_EQUAL_UINT(3, pieces->count);
	TEST_ASSERT_EQUAL_PTR(ft.memory + 700, pieces->piece[1].iov_base);
	TEST_ASSERT_EQUAL_UINT(500, pieces->piece[1].iov_len);
	finish(GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, replied().status);
	TEST_ASSERT_EQUAL_UINT64(0, counted().list_bounces);
}

/* Each piece is moved in a turn of its own. */
static void settle(void)
{
	for (unsigned i = 0; i < 8; i++)
		fake_settle(&fw);
}

/* The buffer has the data before the backend sees the request, which has no list then. */
static void write_and_read(void)
{
	ask(listed(1, GANTRY_OP_WRITE));
	settle();
	TEST_ASSERT_EQUAL_UINT(1, n_held);
	TEST_ASSERT_EQUAL_UINT(0, held[0]->flags);
	expect_gathered(held[0]->data);
	finish(GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, replied().status);
	ask(listed(2, GANTRY_OP_READ));
	settle();
	TEST_ASSERT_EQUAL_UINT(1, n_held);
	fill(held[0]->data);
	finish(GANTRY_S_OK);
	settle();
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, replied().status);
	expect_scattered();
}

static void another_backend_gets_a_buffer(void)
{
	begin(0, 0);
	write_and_read();
	TEST_ASSERT_EQUAL_UINT64(2, counted().list_bounces);
	TEST_ASSERT_TRUE(port->as_peer.is_ready);
	ask(listed(3, GANTRY_OP_READ));
	ask(request(4, GANTRY_OP_FLUSH));
	finish(GANTRY_S_IO); /* a failed read changes nothing */
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_IO, replied().status);
	finish(GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT(4, replied().tag);
	expect_scattered();
}

static void pieces_are_moved_if_memory_is_not_mapped(void)
{
	max_noted = 1 << 20;
	ordered = 1;
	begin(1, 0);
	write_and_read();
	/* a list and three pieces each */
	TEST_ASSERT_EQUAL_UINT(8, rma->n_submits);
	TEST_ASSERT_EQUAL_UINT64(0, counted().list_bounces);
}

static void a_full_rma_queue_delays_the_pieces(void)
{
	begin(1, 0);
	fake_rma_set(rma, -EAGAIN, 0, 0);
	ask(listed(1, GANTRY_OP_WRITE));
	TEST_ASSERT_EQUAL_UINT(0, n_held);
	fake_rma_set(rma, 0, 0, 0);
	settle();
	TEST_ASSERT_EQUAL_UINT(1, n_held);
	expect_gathered(held[0]->data);
	finish(GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, replied().status);
	fake_rma_set(rma, 0, -EACCES, 0);
	ask(listed(2, GANTRY_OP_WRITE));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_ACCESS, replied().status);
}

struct bad {
	struct gantry_list_entry entry[2];
	uint8_t opcode;
	unsigned status;
};

static const struct bad bad_lists[] = {
	{{{1, 1000, 0}, {1, 25, 0}}, GANTRY_OP_READ, GANTRY_S_INVALID}, /* too long */
	{{{1, 2048, 0}, {0, 0, 0}}, GANTRY_OP_READ, GANTRY_S_INVALID},
	{{{1, UINT32_MAX, 0}, {0, 0, 0}}, GANTRY_OP_READ, GANTRY_S_RANGE},
	{{{1, 1000, 0}, {1, 0, 0}}, GANTRY_OP_READ, GANTRY_S_INVALID}, /* empty entry */
	{{{1, 1000, 0}, {0, 24, 0}}, GANTRY_OP_READ, GANTRY_S_ACCESS},
	{{{1, 1000, 0}, {4, 24, 0}}, GANTRY_OP_READ, GANTRY_S_ACCESS},
	{{{1, 1000, 0}, {UINT32_MAX, 24, 0}}, GANTRY_OP_READ, GANTRY_S_ACCESS},
	{{{1, 1000, 0}, {2, 24, 0}}, GANTRY_OP_READ, GANTRY_S_ACCESS}, /* rights of one piece */
	{{{1, 1000, 0}, {3, 24, 0}}, GANTRY_OP_WRITE, GANTRY_S_ACCESS},
	{{{1, 1000, 0}, {1, 24, REGION - 23}}, GANTRY_OP_READ, GANTRY_S_RANGE},
	{{{1, 1000, 0}, {1, 24, UINT64_MAX}}, GANTRY_OP_READ, GANTRY_S_RANGE},
};

static void check_bad_lists(void)
{
	struct gantry_io io;

	for (uint32_t i = 0; i < sizeof(bad_lists) / sizeof(bad_lists[0]); i++) {
		memcpy(list_at(HEAD), bad_lists[i].entry, sizeof(bad_lists[i].entry));
		ask(listed(i, bad_lists[i].opcode));
		TEST_ASSERT_EQUAL_UINT(bad_lists[i].status, replied().status);
	}
	for (unsigned i = 0; i < GANTRY_LIST_MAX; i++) /* more entries than the limit */
		put(i, 1, 15, 0);
	ask(listed(50, GANTRY_OP_READ));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_INVALID, replied().status);
	io = listed(51, GANTRY_OP_READ); /* the list goes on behind the end of its region */
	io.region_offset = REGION - 3 * sizeof(struct gantry_list_entry);
	for (unsigned i = 0; i < 3; i++)
		list_at(io.region_offset)[i] = (struct gantry_list_entry){1, 15, 0};
	ask(io);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_RANGE, replied().status);
	TEST_ASSERT_EQUAL_UINT(0, n_seen);
	TEST_ASSERT_EQUAL_UINT(0, n_broken);
	put_pieces(); /* afterwards all buffers are free */
	write_and_read();
}

static void invalid_lists_fail(void)
{
	begin(0, 0);
	check_bad_lists();
}

static void invalid_lists_fail_if_memory_is_not_mapped(void)
{
	begin(1, 0);
	check_bad_lists();
}

static void descriptors_that_cannot_have_a_list_fail(void)
{
	struct gantry_io io;

	begin(0, 0);
	io = listed(1, GANTRY_OP_FLUSH);
	ask(io);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_INVALID, replied().status);
	io = listed(2, GANTRY_OP_READ); /* the list is not readable */
	io.region = 3;
	ask(io);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_ACCESS, replied().status);
	io = listed(3, GANTRY_OP_READ);
	io.region_offset = REGION - 15;
	ask(io);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_RANGE, replied().status);
	port->rules.volume.flags = 0;
	ask(listed(4, GANTRY_OP_READ));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_UNSUPPORTED, replied().status);
}

/* A read can overwrite its list: the responder does not read the list again. */
static void a_read_can_overwrite_its_list(void)
{
	struct gantry_io io;

	begin(0, 0);
	put(0, 1, 512, HEAD);
	put(1, 1, 512, 0);
	io = listed(1, GANTRY_OP_READ);
	ask(io);
	memset(held[0]->data, 'Z', 1024);
	finish(GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, replied().status);
	expect_all('Z', ft.memory, 512);
	expect_all('Z', ft.memory + HEAD, 512);
}

/* A region that only an entry names is in use until the request completes. */
static void a_region_of_an_entry_is_drained(void)
{
	begin(0, 1);
	put(1, 3, 500, 700);
	ask(listed(1, GANTRY_OP_READ));
	TEST_ASSERT_EQUAL_UINT(1, n_held);
	gn_responder_drain_region(port, 3);
	TEST_ASSERT_EQUAL_UINT(0, n_drained);
	ask(listed(2, GANTRY_OP_READ));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_ACCESS, replied().status);
	finish(GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT(1, n_drained);
}

static void a_list_that_arrives_after_the_deadline_is_canceled(void)
{
	struct gantry_io io = listed(1, GANTRY_OP_READ);

	begin(1, 0);
	io.deadline_us = 1000;
	fake_rma_set(rma, 0, 0, 1);
	ask(io);
	settle();
	no_reply();
	fake_clock_advance(GN_NS_PER_MS);
	settle(); /* the lane reads its clock */
	fake_rma_set(rma, 0, 0, 0);
	settle();
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_CANCELED, replied().status);
	TEST_ASSERT_EQUAL_UINT(0, n_seen);
}

static void abandoned_responder_ends_requests_with_lists(void)
{
	begin(1, 0);
	fake_rma_set(rma, -EAGAIN, 0, 0);
	for (uint32_t i = 0; i < DEPTH; i++)
		ask(listed(i, GANTRY_OP_WRITE));
	gn_responder_abandon(port);
	TEST_ASSERT_EQUAL_UINT(1, n_idle);
	TEST_ASSERT_EQUAL_UINT(0, n_seen);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(a_backend_with_lists_gets_the_pieces);
	RUN_TEST(another_backend_gets_a_buffer);
	RUN_TEST(pieces_are_moved_if_memory_is_not_mapped);
	RUN_TEST(a_full_rma_queue_delays_the_pieces);
	RUN_TEST(invalid_lists_fail);
	RUN_TEST(invalid_lists_fail_if_memory_is_not_mapped);
	RUN_TEST(descriptors_that_cannot_have_a_list_fail);
	RUN_TEST(a_read_can_overwrite_its_list);
	RUN_TEST(a_region_of_an_entry_is_drained);
	RUN_TEST(a_list_that_arrives_after_the_deadline_is_canceled);
	RUN_TEST(abandoned_responder_ends_requests_with_lists);
	return UNITY_END();
}
