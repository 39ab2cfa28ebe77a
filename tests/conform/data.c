/* SPDX-License-Identifier: BSD-3-Clause */
/* data.c - conformance: inline data of messages, and data of a region. */
#include "conform/rig.h"

#define BIG (1u << 20)
#define SLOTS 16u
#define SLOT_BYTES 4096u

/* Returns the maximum length of inline data of this device, but at most `most`. */
static uint32_t inline_up_to(uint32_t most)
{
	return rig.info.max_inline < most ? rig.info.max_inline : most;
}

static void check_data(struct rig_queue *q, uint8_t *buf, uint32_t imm_len, uint32_t length)
{
	uint8_t imm[GANTRY_IMM_MAX], data[8192];
	struct gantry_send send = {.imm = imm, .imm_len = imm_len, .data = data, .length = length};
	struct gantry_msg msg;

	rig_fill(imm, sizeof(imm), length);
	rig_fill(data, sizeof(data), length + 1);
	memset(buf, 0xaa, length + 64);
	TEST_ASSERT_EQUAL_INT(0, rig_post(q, buf, length, 7));
	TEST_ASSERT_EQUAL_INT(0, rig_send(q, &send));
	memset(data, 0, sizeof(data)); /* send has copied it */
	rig_take(q, &msg);
	TEST_ASSERT_EQUAL_INT(0, msg.status);
	TEST_ASSERT_EQUAL_UINT(imm_len, msg.imm_len);
	TEST_ASSERT_EQUAL_UINT(length, msg.length);
	TEST_ASSERT_EQUAL_UINT(7, msg.cookie);
	TEST_ASSERT_TRUE(rig_filled(msg.imm, imm_len, length));
	TEST_ASSERT_TRUE(rig_filled(buf, length, length + 1));
	TEST_ASSERT_EQUAL_UINT(0xaa, buf[length]); /* the byte behind the data is unchanged */
}

static void inline_data_of_all_sizes(void)
{
	uint32_t max = inline_up_to(8192);
	uint8_t *buf = rig_local(8192 + 64);
	struct rig_queue *q;

	rig_connect();
	q = rig_queue_open(&rig.b, &rig.a, 8, max);
	for (uint32_t length = 1; length <= max; length += length < 300 ? 1 : 53)
		check_data(q, buf, length % (GANTRY_IMM_MAX + 1), length);
	for (uint32_t imm_len = 0; imm_len <= GANTRY_IMM_MAX; imm_len += 8) {
		check_data(q, buf, imm_len, 1);
		check_data(q, buf, imm_len, GANTRY_IMM_MAX - imm_len + 1);
		check_data(q, buf, imm_len, max);
	}
	rig_queue_close(q);
}

static void data_that_is_too_long(void)
{
	static uint8_t data[65536];
	struct gantry_send send = {.data = data, .length = rig.info.max_inline + 1};
	uint8_t *buf = rig_local(BIG);
	struct rig_queue *q, *small;

	TEST_ASSERT_TRUE(send.length <= sizeof(data));
	rig_connect();
	q = rig_queue_open_lanes(&rig.b, 0, &rig.a, 0, 8, BIG);
	small = rig_queue_open_lanes(&rig.b, 1, &rig.a, 1, 8, 100);
	TEST_ASSERT_EQUAL_INT(0, rig_post(q, buf, BIG, 0));
	TEST_ASSERT_EQUAL_INT(0, rig_post(small, buf, BIG, 0));
	TEST_ASSERT_EQUAL_INT(-EMSGSIZE, rig_send(q, &send));
	send.length = 101;
	TEST_ASSERT_EQUAL_INT(-EMSGSIZE, rig_send(small, &send));
	send.length = inline_up_to(100);
	TEST_ASSERT_EQUAL_INT(0, rig_send(small, &send));
	send = (struct gantry_send){.length = 5};
	TEST_ASSERT_EQUAL_INT(-EINVAL, rig_send(q, &send)); /* a length without data or region */
	rig_queue_close(small);
	rig_queue_close(q);
}

static void buffer_too_small(void)
{
	uint32_t length = inline_up_to(3000);
	uint8_t data[3000], *buf = rig_local(4096);
	struct gantry_send send = {.imm = "imm", .imm_len = 3, .data = data, .length = length};
	struct gantry_msg msg;
	struct rig_queue *q;

	rig_connect();
	q = rig_queue_open(&rig.b, &rig.a, 8, 4096);
	memset(buf, 0xaa, 4096);
	rig_fill(data, sizeof(data), 3);
	TEST_ASSERT_EQUAL_INT(0, rig_post(q, buf, length - 1, 1));
	TEST_ASSERT_EQUAL_INT(0, rig_post(q, NULL, 0, 2));
	TEST_ASSERT_EQUAL_INT(0, rig_post(q, buf, length, 3));
	for (uint64_t i = 1; i <= 3; i++) {
		TEST_ASSERT_EQUAL_INT(0, rig_send(q, &send));
		rig_take(q, &msg);
		TEST_ASSERT_EQUAL_UINT64(i, msg.cookie);
		TEST_ASSERT_EQUAL_UINT(3, msg.imm_len);
		TEST_ASSERT_EQUAL_INT(i < 3 ? -EMSGSIZE : 0, msg.status);
		TEST_ASSERT_EQUAL_UINT(i < 3 ? 0 : length, msg.length);
		if (i < 3)
			TEST_ASSERT_EQUAL_UINT(0xaa, buf[length - 1]);
	}
	TEST_ASSERT_TRUE(rig_filled(buf, length, 3));
	rig_queue_close(q);
}

/* Messages of many sizes, more than the queue holds at a time. */
static void sizes_mixed_through_a_full_queue(void)
{
	uint64_t sent = 0, taken = 0, total = rig_rounds(20000), late = 0;
	uint32_t sizes = inline_up_to(4096) + 1;
	uint8_t data[4096], *bufs[SLOTS];
	struct rig_queue *q;

	rig_connect();
	q = rig_queue_open(&rig.b, &rig.a, SLOTS, 4096);
	for (uint64_t i = 0; i < SLOTS; i++) {
		bufs[i] = rig_local(4096);
		TEST_ASSERT_EQUAL_INT(0, rig_post(q, bufs[i], 4096, i));
	}
	while (taken < total) {
		struct gantry_msg msg;
		int n;

		for (;;) {
			uint32_t length = (uint32_t)(sent * 7919 % sizes);
			struct gantry_send send = {
				.imm = &sent, .imm_len = 8, .data = data, .length = length};

			rig_fill(data, length, (uint32_t)sent);
			if (rig.ops->send(q->tx, &send, 0))
				break;
			sent++;
		}
		n = rig_poll(q, &msg, 1);
		rig_wait(&late, n);
		if (n == 0)
			continue;
		TEST_ASSERT_EQUAL_INT(1, n);
		TEST_ASSERT_EQUAL_MEMORY(&taken, msg.imm, 8);
		TEST_ASSERT_EQUAL_INT(0, msg.status);
		TEST_ASSERT_EQUAL_UINT(taken * 7919 % sizes, msg.length);
		TEST_ASSERT_TRUE(rig_filled(bufs[msg.cookie], msg.length, (uint32_t)taken));
		TEST_ASSERT_EQUAL_INT(0, rig_post(q, bufs[msg.cookie], 4096, msg.cookie));
		taken++;
	}
	rig_queue_close(q);
}

static void export_all(struct rig_memory *m, uint32_t rights, uint32_t handle,
		       struct gantry_token *token)
{
	TEST_ASSERT_EQUAL_INT(
		0, rig.ops->export_region(rig.a.conn, &m->region, rights, handle, token));
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
	uint8_t *buf = rig_local(BIG);
	struct gantry_token token;
	struct rig_memory m;
	struct rig_queue *q;

	rig_connect();
	rig_memory_open(&m, BIG, GANTRY_REMOTE_READ);
	export_all(&m, GANTRY_REMOTE_READ, 1, &token);
	q = rig_queue_open(&rig.b, &rig.a, 8, BIG);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint32_t imm_len = (uint32_t)(i * 8 > GANTRY_IMM_MAX ? GANTRY_IMM_MAX : i * 8);
		uint8_t imm[GANTRY_IMM_MAX];
		struct gantry_send send = {.imm = imm,
					   .imm_len = imm_len,
					   .length = sizes[i],
					   .region = &m.region,
					   .region_offset = BIG - sizes[i],
					   .cookie = 1000 + i};
		uint64_t cookie = 0;
		struct gantry_msg msg;
		int early;

		rig_fill(imm, sizeof(imm), (uint32_t)i);
		rig_fill(m.bytes + BIG - sizes[i], sizes[i], sizes[i]);
		memset(buf, 0, BIG);
		TEST_ASSERT_EQUAL_INT(0, rig_post(q, buf, BIG, i));
		TEST_ASSERT_EQUAL_INT(0, rig_send(q, &send));
		early = rig_done(q, &cookie, 1);
		if (early) /* after the completion the sender can reuse the memory */
			memset(m.bytes, 0xee, BIG);
		rig_take(q, &msg);
		TEST_ASSERT_EQUAL_INT(0, msg.status);
		TEST_ASSERT_EQUAL_UINT(sizes[i], msg.length);
		TEST_ASSERT_EQUAL_UINT(imm_len, msg.imm_len);
		TEST_ASSERT_TRUE(rig_filled(msg.imm, imm_len, (uint32_t)i));
		TEST_ASSERT_TRUE(rig_filled(buf, sizes[i], sizes[i]));
		TEST_ASSERT_EQUAL_UINT64(1000 + i, early ? cookie : rig_take_done(q));
		rig_fence();
		TEST_ASSERT_EQUAL_INT(0, rig_done(q, &cookie, 1));
	}
	rig_queue_close(q);
	revoke(1);
	rig_memory_close(&m);
}

static uint64_t payload_bytes(void)
{
	return fake_counter(&rig.a.host, "payload_bytes") +
	       fake_counter(&rig.b.host, "payload_bytes");
}

static void payload_is_copied_once(void)
{
	uint64_t before = payload_bytes();
	uint8_t *buf = rig_local(65536);
	struct gantry_token token;
	struct gantry_msg msg;
	struct rig_memory m;
	struct rig_queue *q;

	rig_connect();
	rig_memory_open(&m, BIG, GANTRY_REMOTE_READ);
	export_all(&m, GANTRY_REMOTE_READ, 1, &token);
	q = rig_queue_open(&rig.b, &rig.a, 8, BIG);
	for (int i = 0; i < 8; i++) {
		struct gantry_send send = {.length = 65536, .region = &m.region};

		TEST_ASSERT_EQUAL_INT(0, rig_post(q, buf, 65536, 0));
		TEST_ASSERT_EQUAL_INT(0, rig_send(q, &send));
		rig_take(q, &msg);
		rig_take_done(q);
	}
	rig_queue_close(q);
	if (!rig_driver.uncounted)
		TEST_ASSERT_EQUAL_UINT64(8 * 65536, payload_bytes() - before);
	revoke(1);
	rig_memory_close(&m);
}

static void invalid_region_sends_are_rejected(void)
{
	struct gantry_region stranger = {.length = 4096, .fd = -1, .rights = 3};
	struct gantry_token token;
	struct gantry_send send;
	struct rig_memory m, w;
	struct gantry_msg msg;
	struct rig_queue *q;

	rig_connect();
	rig_memory_open(&m, 65536, GANTRY_REMOTE_READ);
	rig_memory_open(&w, 4096, GANTRY_REMOTE_WRITE);
	export_all(&m, GANTRY_REMOTE_READ, 1, &token);
	export_all(&w, GANTRY_REMOTE_WRITE, 2, &token);
	q = rig_queue_open(&rig.b, &rig.a, 8, BIG);
	TEST_ASSERT_EQUAL_INT(0, rig_post(q, rig_local(BIG), BIG, 0));
	send = (struct gantry_send){.length = 4096, .region = &stranger};
	TEST_ASSERT_EQUAL_INT(-EINVAL, rig_send(q, &send));
	/* the region does not allow the peer to read */
	send = (struct gantry_send){.length = 4096, .region = &w.region};
	TEST_ASSERT_EQUAL_INT(-EINVAL, rig_send(q, &send));
	send = (struct gantry_send){
		.length = 4096, .region = &m.region, .region_offset = 65536 - 4095};
	TEST_ASSERT_EQUAL_INT(-EINVAL, rig_send(q, &send));
	send = (struct gantry_send){
		.length = 4096, .region = &m.region, .region_offset = UINT64_MAX - 100};
	TEST_ASSERT_EQUAL_INT(-EINVAL, rig_send(q, &send));
	send = (struct gantry_send){
		.length = 4096, .region = &m.region, .region_offset = 65536 - 4096};
	TEST_ASSERT_EQUAL_INT(0, rig_send(q, &send));
	rig_take(q, &msg);
	rig_take_done(q);
	rig_queue_close(q);
	revoke(1);
	revoke(2);
	rig_memory_close(&w);
	rig_memory_close(&m);
}

static void completions_come_in_order(void)
{
	uint64_t cookies[8], next = 0, sent = 0, total = rig_rounds(5000), late = 0;
	uint8_t *buf = rig_local(512);
	struct gantry_token token;
	struct gantry_msg msgs[8];
	struct rig_memory m;
	struct rig_queue *q;

	rig_connect();
	rig_memory_open(&m, 65536, GANTRY_REMOTE_READ);
	export_all(&m, GANTRY_REMOTE_READ, 1, &token);
	q = rig_queue_open(&rig.b, &rig.a, 8, 65536);
	for (int i = 0; i < 8; i++)
		TEST_ASSERT_EQUAL_INT(0, rig_post(q, buf, 512, 0));
	while (next < total) {
		struct gantry_send send = {.length = 512, .region = &m.region, .cookie = sent};
		int n, done;

		while (sent < total && rig.ops->send(q->tx, &send, 0) == 0)
			send.cookie = ++sent;
		n = rig_poll(q, msgs, 3);
		for (int i = 0; i < n; i++)
			TEST_ASSERT_EQUAL_INT(0, rig_post(q, buf, 512, 0));
		done = rig_done(q, cookies, 8);
		for (int i = 0; i < done; i++)
			TEST_ASSERT_EQUAL_UINT64(next++, cookies[i]);
		TEST_ASSERT_TRUE(next <= sent);
		rig_wait(&late, n + done);
	}
	rig_queue_close(q);
	revoke(1);
	rig_memory_close(&m);
}

struct mix {
	struct rig_queue *q;
	struct rig_memory m;
	uint32_t sizes;
	uint64_t sent, n_region, n_done;
};

/* Send inline data if its length allows that, else data of a free slot of the region. */
static int send_mixed(struct mix *x)
{
	uint32_t length = (uint32_t)(x->sent * 7919 % x->sizes),
		 slot = (uint32_t)(x->n_region % SLOTS);
	struct gantry_send send = {
		.imm = &x->sent, .imm_len = 8, .length = length, .cookie = x->n_region};
	uint8_t data[SLOT_BYTES];

	if (length <= rig.info.max_inline && x->sent % 3) {
		rig_fill(data, length, (uint32_t)x->sent);
		send.data = data;
		return rig.ops->send(x->q->tx, &send, 0);
	}
	if (length == 0)
		return rig.ops->send(x->q->tx, &send, 0);
	if (x->n_region - x->n_done == SLOTS)
		return -EAGAIN;
	rig_fill(x->m.bytes + slot * SLOT_BYTES, length, (uint32_t)x->sent);
	send.region = &x->m.region;
	send.region_offset = slot * SLOT_BYTES;
	if (rig.ops->send(x->q->tx, &send, 0))
		return -EAGAIN;
	x->n_region++;
	return 0;
}

/* Inline data does not overtake earlier region data, which the receiver has to fetch. */
static void inline_and_region_data_in_order(void)
{
	uint64_t taken = 0, total = rig_rounds(6000), late = 0, cookie;
	struct mix x = {.sizes = SLOT_BYTES + 1};
	struct gantry_token token;
	uint8_t *bufs[SLOTS];

	rig_connect();
	rig_memory_open(&x.m, SLOTS * SLOT_BYTES, GANTRY_REMOTE_READ);
	export_all(&x.m, GANTRY_REMOTE_READ, 1, &token);
	x.q = rig_queue_open(&rig.b, &rig.a, SLOTS, SLOT_BYTES);
	for (uint64_t i = 0; i < SLOTS; i++) {
		bufs[i] = rig_local(SLOT_BYTES);
		TEST_ASSERT_EQUAL_INT(0, rig_post(x.q, bufs[i], SLOT_BYTES, i));
	}
	while (taken < total || x.n_done < x.n_region) {
		struct gantry_msg msg;
		int n, done;

		while (x.sent < total && send_mixed(&x) == 0)
			x.sent++;
		done = rig_done(x.q, &cookie, 1);
		if (done == 1)
			TEST_ASSERT_EQUAL_UINT64(x.n_done++, cookie);
		n = rig_poll(x.q, &msg, 1);
		rig_wait(&late, n + done);
		if (n == 0)
			continue;
		TEST_ASSERT_EQUAL_INT(1, n);
		TEST_ASSERT_EQUAL_MEMORY(&taken, msg.imm, 8);
		TEST_ASSERT_EQUAL_INT(0, msg.status);
		TEST_ASSERT_EQUAL_UINT(taken * 7919 % x.sizes, msg.length);
		TEST_ASSERT_TRUE(rig_filled(bufs[msg.cookie], msg.length, (uint32_t)taken));
		TEST_ASSERT_EQUAL_INT(0, rig_post(x.q, bufs[msg.cookie], SLOT_BYTES, msg.cookie));
		taken++;
	}
	rig_queue_close(x.q);
	revoke(1);
	rig_memory_close(&x.m);
}

#define UNREAD 3u

/*
 * Send three messages. The first two have region data; in a ring of shm-comch the first uses one
 * slot, and the second uses two, for its longer immediate data. The third has no data.
 */
static void send_unread(struct rig_queue *q, const struct rig_memory *m)
{
	uint8_t imm[GANTRY_IMM_MAX];

	memset(imm, 1, sizeof(imm));
	for (uint32_t i = 0; i < UNREAD; i++) {
		struct gantry_send send = {.imm = imm, .imm_len = i == 1 ? GANTRY_IMM_MAX : 8};

		if (i < UNREAD - 1) {
			send.length = 4096;
			send.region = &m->region;
		}
		TEST_ASSERT_EQUAL_INT(0, rig_send(q, &send));
	}
}

/*
 * The sender can change region data after it destroyed the producer: no message delivers changed
 * data, but the connection can end.
 */
static void changed_data_of_a_destroyed_producer(void)
{
	uint64_t late = 0;
	struct gantry_token token;
	struct gantry_msg msg = {.length = 1};
	struct rig_memory m;
	struct rig_queue *q;
	uint8_t *bufs[UNREAD];
	int n;

	rig_connect();
	rig_memory_open(&m, 4096, GANTRY_REMOTE_READ);
	export_all(&m, GANTRY_REMOTE_READ, 1, &token);
	q = rig_queue_open(&rig.b, &rig.a, 8, 4096);
	rig_warm(q);
	for (uint64_t i = 0; i < UNREAD; i++) {
		bufs[i] = rig_local(4096);
		TEST_ASSERT_EQUAL_INT(0, rig_post(q, bufs[i], 4096, i));
	}
	rig_settle();
	q->resting = 1;
	rig_fill(m.bytes, 4096, 1);
	send_unread(q, &m);
	rig_queue_close_tx(q);
	memset(m.bytes, 0xee, 4096);
	q->resting = 0;
	while (!rig.b.n_closed) {
		n = rig_poll(q, &msg, 1);
		rig_wait(&late, n);
		if (n != 1)
			continue;
		TEST_ASSERT_TRUE(msg.status == -EFAULT ||
				 (msg.status == 0 && rig_filled(bufs[msg.cookie], msg.length, 1)));
		if (msg.status == 0 && msg.length == 0)
			break; /* the last message */
	}
	rig_queue_close(q);
	if (rig.b.n_closed)
		rig_until(rig.a.n_closed, 1);
	else
		revoke(1);
	rig_memory_close(&m);
}

void data_cases(void)
{
	RIG_CASE(changed_data_of_a_destroyed_producer);
	RIG_CASE(inline_data_of_all_sizes);
	RIG_CASE(data_that_is_too_long);
	RIG_CASE(buffer_too_small);
	RIG_CASE(sizes_mixed_through_a_full_queue);
	RIG_CASE(region_data_of_many_sizes);
	RIG_CASE(payload_is_copied_once);
	RIG_CASE(invalid_region_sends_are_rejected);
	RIG_CASE(completions_come_in_order);
	RIG_CASE(inline_and_region_data_in_order);
}
