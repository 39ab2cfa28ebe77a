/* SPDX-License-Identifier: BSD-3-Clause */
/* data.c - conformance: data inside the queue, and data of a region. */
#include <stdlib.h>

#include "conform/rig.h"

#define BIG (1u << 20)

static uint8_t buf[BIG];

static void check_data(struct rig_queue *q, uint32_t imm_len, uint32_t length)
{
	uint8_t imm[GANTRY_IMM_MAX], data[8192];
	struct gantry_send send = {.imm = imm, .imm_len = imm_len, .data = data, .length = length};
	struct gantry_msg msg;

	rig_fill(imm, sizeof(imm), length);
	rig_fill(data, sizeof(data), length + 1);
	memset(buf, 0xaa, length + 64);
	TEST_ASSERT_EQUAL_INT(0, rig_post(q, buf, length, 7));
	TEST_ASSERT_EQUAL_INT(0, rig_send(q, &send));
	memset(data, 0, sizeof(data)); /* it was copied */
	rig_take(q, &msg);
	TEST_ASSERT_EQUAL_INT(0, msg.status);
	TEST_ASSERT_EQUAL_UINT(imm_len, msg.imm_len);
	TEST_ASSERT_EQUAL_UINT(length, msg.length);
	TEST_ASSERT_EQUAL_UINT(7, msg.cookie);
	TEST_ASSERT_TRUE(rig_filled(msg.imm, imm_len, length));
	TEST_ASSERT_TRUE(rig_filled(buf, length, length + 1));
	TEST_ASSERT_EQUAL_UINT(0xaa, buf[length]); /* not one byte more */
}

static void inline_data_of_all_sizes(void)
{
	struct rig_queue q;

	rig_connect();
	rig_queue_open(&q, &rig.b, &rig.a, 8, rig.info.max_inline);
	for (uint32_t length = 1; length <= rig.info.max_inline; length += length < 300 ? 1 : 53)
		check_data(&q, length % (GANTRY_IMM_MAX + 1), length);
	for (uint32_t imm_len = 0; imm_len <= GANTRY_IMM_MAX; imm_len += 8) {
		check_data(&q, imm_len, 1);
		check_data(&q, imm_len, GANTRY_IMM_MAX - imm_len + 1);
		check_data(&q, imm_len, rig.info.max_inline);
	}
	rig_queue_close(&q);
}

static void data_that_is_too_long(void)
{
	static uint8_t data[65536];
	struct gantry_send send = {.data = data, .length = rig.info.max_inline + 1};
	struct rig_queue q, small;

	rig_connect();
	rig_queue_open(&q, &rig.b, &rig.a, 8, BIG);
	rig_queue_open(&small, &rig.b, &rig.a, 8, 100);
	TEST_ASSERT_EQUAL_INT(0, rig_post(&q, buf, BIG, 0));
	TEST_ASSERT_EQUAL_INT(0, rig_post(&small, buf, BIG, 0));
	TEST_ASSERT_EQUAL_INT(-EMSGSIZE, rig.ops->send(q.tx, &send, 0));
	send.length = 101;
	TEST_ASSERT_EQUAL_INT(-EMSGSIZE, rig.ops->send(small.tx, &send, 0));
	send.length = 100;
	TEST_ASSERT_EQUAL_INT(0, rig_send(&small, &send));
	send = (struct gantry_send){.length = 5};
	TEST_ASSERT_EQUAL_INT(-EINVAL, rig.ops->send(q.tx, &send, 0)); /* neither data nor region */
	rig_queue_close(&small);
	rig_queue_close(&q);
}

static void buffer_too_small(void)
{
	uint8_t data[3000];
	struct gantry_send send = {.imm = "imm", .imm_len = 3, .data = data, .length = sizeof(data)};
	struct gantry_msg msg;
	struct rig_queue q;

	rig_connect();
	rig_queue_open(&q, &rig.b, &rig.a, 8, 4096);
	memset(buf, 0xaa, 4096);
	rig_fill(data, sizeof(data), 3);
	TEST_ASSERT_EQUAL_INT(0, rig_post(&q, buf, 2999, 1));
	TEST_ASSERT_EQUAL_INT(0, rig_post(&q, NULL, 0, 2));
	TEST_ASSERT_EQUAL_INT(0, rig_post(&q, buf, 3000, 3));
	for (uint64_t i = 1; i <= 3; i++)
		TEST_ASSERT_EQUAL_INT(0, rig_send(&q, &send));
	for (uint64_t i = 1; i <= 2; i++) {
		rig_take(&q, &msg);
		TEST_ASSERT_EQUAL_INT(-EMSGSIZE, msg.status);
		TEST_ASSERT_EQUAL_UINT(0, msg.length);
		TEST_ASSERT_EQUAL_UINT64(i, msg.cookie);
		TEST_ASSERT_EQUAL_UINT(3, msg.imm_len);
		TEST_ASSERT_EQUAL_UINT(0xaa, buf[2999]);
	}
	rig_take(&q, &msg);
	TEST_ASSERT_EQUAL_INT(0, msg.status);
	TEST_ASSERT_TRUE(rig_filled(buf, 3000, 3));
	rig_queue_close(&q);
}

/* Messages of many sizes, more than the queue holds at once. */
static void sizes_mixed_through_a_full_queue(void)
{
	static uint8_t bufs[16][4096];
	uint8_t data[4096];
	uint64_t sent = 0, taken = 0;
	struct rig_queue q;

	rig_connect();
	rig_queue_open(&q, &rig.b, &rig.a, 16, 4096);
	for (uint64_t i = 0; i < 16; i++)
		TEST_ASSERT_EQUAL_INT(0, rig_post(&q, bufs[i], 4096, i));
	while (taken < 20000) {
		struct gantry_msg msg;

		for (;;) {
			uint32_t length = (uint32_t)(sent * 7919 % 4097);
			struct gantry_send send = {.imm = &sent, .imm_len = 8, .data = data, .length = length};

			rig_fill(data, length, (uint32_t)sent);
			if (rig.ops->send(q.tx, &send, 0))
				break;
			sent++;
		}
		if (rig.ops->poll_recv(q.rx, &msg, 1) != 1)
			continue;
		TEST_ASSERT_EQUAL_MEMORY(&taken, msg.imm, 8);
		TEST_ASSERT_EQUAL_INT(0, msg.status);
		TEST_ASSERT_EQUAL_UINT(taken * 7919 % 4097, msg.length);
		TEST_ASSERT_TRUE(rig_filled(bufs[msg.cookie], msg.length, (uint32_t)taken));
		TEST_ASSERT_EQUAL_INT(0, rig_post(&q, bufs[msg.cookie], 4096, msg.cookie));
		taken++;
	}
	rig_queue_close(&q);
}

static void export_all(struct rig_memory *m, uint32_t rights, uint32_t handle, struct gantry_token *token)
{
	TEST_ASSERT_EQUAL_INT(0, rig.ops->export_region(rig.a.conn, &m->region, rights, handle, token));
	rig_settle();
}

static void revoke(uint32_t handle)
{
	int n = rig.a.n_revoked;

	TEST_ASSERT_EQUAL_INT(0, rig.ops->revoke_region(rig.a.conn, handle));
	rig_until(rig.a.n_revoked, n + 1);
	TEST_ASSERT_EQUAL_INT(0, rig.a.revoked_rc);
}

static void region_data_of_many_sizes(void)
{
	static const uint32_t sizes[] = {1, 56, 57, 4095, 4096, 4097, 65536, 300000, BIG};
	struct gantry_token token;
	struct rig_memory m;
	struct rig_queue q;

	rig_connect();
	rig_memory_open(&m, BIG, GANTRY_REMOTE_READ);
	export_all(&m, GANTRY_REMOTE_READ, 1, &token);
	rig_queue_open(&q, &rig.b, &rig.a, 8, BIG);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint32_t imm_len = (uint32_t)(i * 8 > GANTRY_IMM_MAX ? GANTRY_IMM_MAX : i * 8);
		uint8_t imm[GANTRY_IMM_MAX];
		struct gantry_send send = {.imm = imm, .imm_len = imm_len, .length = sizes[i], .region = &m.region,
					   .region_offset = BIG - sizes[i], .cookie = 1000 + i};
		struct gantry_msg msg;
		uint64_t cookie = 0;

		rig_fill(imm, sizeof(imm), (uint32_t)i);
		rig_fill(m.bytes + BIG - sizes[i], sizes[i], sizes[i]);
		memset(buf, 0, BIG);
		TEST_ASSERT_EQUAL_INT(0, rig_post(&q, buf, BIG, i));
		TEST_ASSERT_EQUAL_INT(0, rig_send(&q, &send));
		TEST_ASSERT_EQUAL_INT(0, rig.ops->poll_send(q.tx, &cookie, 1)); /* not before it has been copied */
		rig_take(&q, &msg);
		TEST_ASSERT_EQUAL_INT(0, msg.status);
		TEST_ASSERT_EQUAL_UINT(sizes[i], msg.length);
		TEST_ASSERT_EQUAL_UINT(imm_len, msg.imm_len);
		TEST_ASSERT_TRUE(rig_filled(msg.imm, imm_len, (uint32_t)i));
		TEST_ASSERT_TRUE(rig_filled(buf, sizes[i], sizes[i]));
		TEST_ASSERT_EQUAL_INT(1, rig.ops->poll_send(q.tx, &cookie, 1));
		TEST_ASSERT_EQUAL_UINT64(1000 + i, cookie);
		TEST_ASSERT_EQUAL_INT(0, rig.ops->poll_send(q.tx, &cookie, 1));
	}
	rig_queue_close(&q);
	revoke(1);
	rig_memory_close(&m);
}

static void payload_is_copied_once(void)
{
	uint64_t before = fake_counter(&rig.a.host, "payload_bytes") + fake_counter(&rig.b.host, "payload_bytes"), after;
	struct gantry_token token;
	struct gantry_msg msg;
	struct rig_memory m;
	struct rig_queue q;

	rig_connect();
	rig_memory_open(&m, BIG, GANTRY_REMOTE_READ);
	export_all(&m, GANTRY_REMOTE_READ, 1, &token);
	rig_queue_open(&q, &rig.b, &rig.a, 8, BIG);
	for (int i = 0; i < 8; i++) {
		struct gantry_send send = {.length = 65536, .region = &m.region};

		TEST_ASSERT_EQUAL_INT(0, rig_post(&q, buf, BIG, 0));
		TEST_ASSERT_EQUAL_INT(0, rig_send(&q, &send));
		rig_take(&q, &msg);
	}
	rig_queue_close(&q);
	after = fake_counter(&rig.a.host, "payload_bytes") + fake_counter(&rig.b.host, "payload_bytes");
	TEST_ASSERT_EQUAL_UINT64(8 * 65536, after - before);
	revoke(1);
	rig_memory_close(&m);
}

static void region_sends_that_cannot_be(void)
{
	struct gantry_region stranger = {.length = 4096, .fd = -1, .rights = 3};
	struct gantry_token token;
	struct gantry_send send;
	struct rig_memory m, w;
	struct rig_queue q;

	rig_connect();
	rig_memory_open(&m, 65536, GANTRY_REMOTE_READ);
	rig_memory_open(&w, 4096, GANTRY_REMOTE_WRITE);
	export_all(&m, GANTRY_REMOTE_READ, 1, &token);
	export_all(&w, GANTRY_REMOTE_WRITE, 2, &token);
	rig_queue_open(&q, &rig.b, &rig.a, 8, BIG);
	TEST_ASSERT_EQUAL_INT(0, rig_post(&q, buf, BIG, 0));
	send = (struct gantry_send){.length = 4096, .region = &stranger};
	TEST_ASSERT_EQUAL_INT(-EINVAL, rig.ops->send(q.tx, &send, 0));
	send = (struct gantry_send){.length = 4096, .region = &w.region}; /* the peer may not read it */
	TEST_ASSERT_EQUAL_INT(-EINVAL, rig.ops->send(q.tx, &send, 0));
	send = (struct gantry_send){.length = 4096, .region = &m.region, .region_offset = 65536 - 4095};
	TEST_ASSERT_EQUAL_INT(-EINVAL, rig.ops->send(q.tx, &send, 0));
	send = (struct gantry_send){.length = 4096, .region = &m.region, .region_offset = UINT64_MAX - 100};
	TEST_ASSERT_EQUAL_INT(-EINVAL, rig.ops->send(q.tx, &send, 0));
	send = (struct gantry_send){.length = 4096, .region = &m.region, .region_offset = 65536 - 4096};
	TEST_ASSERT_EQUAL_INT(0, rig_send(&q, &send));
	rig_queue_close(&q);
	revoke(1);
	revoke(2);
	rig_memory_close(&w);
	rig_memory_close(&m);
}

static void completions_come_in_order(void)
{
	struct gantry_token token;
	struct gantry_msg msgs[8];
	struct rig_memory m;
	struct rig_queue q;
	uint64_t cookies[8], next = 0, sent = 0;

	rig_connect();
	rig_memory_open(&m, 65536, GANTRY_REMOTE_READ);
	export_all(&m, GANTRY_REMOTE_READ, 1, &token);
	rig_queue_open(&q, &rig.b, &rig.a, 8, 65536);
	for (int i = 0; i < 8; i++)
		TEST_ASSERT_EQUAL_INT(0, rig_post(&q, buf, BIG, 0));
	while (next < 5000) {
		struct gantry_send send = {.length = 512, .region = &m.region, .cookie = sent};
		int n, done;

		while (rig.ops->send(q.tx, &send, 0) == 0)
			send.cookie = ++sent;
		n = rig.ops->poll_recv(q.rx, msgs, 3);
		for (int i = 0; i < n; i++)
			TEST_ASSERT_EQUAL_INT(0, rig_post(&q, buf, BIG, 0));
		done = rig.ops->poll_send(q.tx, cookies, 8);
		for (int i = 0; i < done; i++)
			TEST_ASSERT_EQUAL_UINT64(next++, cookies[i]);
	}
	rig_queue_close(&q);
	revoke(1);
	rig_memory_close(&m);
}

void data_cases(void)
{
	RIG_CASE(inline_data_of_all_sizes);
	RIG_CASE(data_that_is_too_long);
	RIG_CASE(buffer_too_small);
	RIG_CASE(sizes_mixed_through_a_full_queue);
	RIG_CASE(region_data_of_many_sizes);
	RIG_CASE(payload_is_copied_once);
	RIG_CASE(region_sends_that_cannot_be);
	RIG_CASE(completions_come_in_order);
}
