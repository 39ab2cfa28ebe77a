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
	RIG_OK(rig_post_data(q, buf, length, 7));
	RIG_OK(rig_send_data(q, &send));
	memset(data, 0, sizeof(data)); /* send has copied it */
	rig_take(q, &msg);
	RIG_RC(0, msg.status, "status of a received message");
	RIG_NUM(imm_len, msg.imm_len, "imm_len of a received message");
	RIG_NUM(length, msg.length, "length of received data");
	RIG_NUM(7, msg.cookie, "cookie of the receive");
	RIG_HOLDS(rig_filled(msg.imm, imm_len, length), "received immediate data");
	RIG_HOLDS(rig_filled(buf, length, length + 1), "received data");
	RIG_NUM(0xaa, buf[length],
		"byte behind the received data: it does not change"); /* the byte behind the data is unchanged */
}

static void cookies_of_receives_in_order(void)
{
	struct gantry_recv recvs[8];
	struct gantry_msg msg;
	struct rig_queue *q;

	rig_need(RIG_DATA);
	rig_connect();
	q = rig_queue_open(&rig.b, &rig.a, 8, 0);
	for (uint64_t i = 0; i < 8; i++)
		recvs[i] = (struct gantry_recv){.cookie = ~i};
	RIG_OK(rig.ops->data->post_recv(q->rx, recvs, 8));
	for (uint64_t i = 0; i < 8; i++)
		RIG_OK(rig_send_data(q, &(struct gantry_send){.imm = &i, .imm_len = 8}));
	for (uint64_t i = 0; i < 8; i++) {
		rig_take(q, &msg);
		RIG_NUM(~i, msg.cookie, "cookies of receives come in order");
		RIG_SAME(&i, msg.imm, 8, "immediate data: messages arrive in order");
		RIG_RC(0, msg.status, "status of a received message");
		RIG_NUM(0, msg.length, "length of a message without data");
	}
	rig_queue_close(q);
}

/* Receives are announced when they are posted, without a poll of the consumer. */
static void prompt_receives_are_announced_when_posted(void)
{
	struct gantry_msg msg;
	struct rig_queue *q;

	rig_need(RIG_DATA);
	rig_connect();
	rig.queue_flags = GANTRY_QUEUE_PROMPT;
	q = rig_queue_open(&rig.b, &rig.a, 64, 0);
	RIG_OK(rig_post_data(q, NULL, 0, 0));
	RIG_OK(rig_send_imm(q, 0));
	rig_take(q, &msg); /* consumer and producer are connected */
	q->resting = 1;
	for (uint64_t i = 0; i < 3; i++)
		RIG_OK(rig_post_data(q, NULL, 0, i));
	for (uint64_t i = 0; i < 3; i++)
		RIG_OK(rig_send_imm(q, i));
	for (uint64_t i = 0; i < 3; i++) {
		RIG_OK(rig_post_data(q, NULL, 0, i)); /* also while messages wait */
		RIG_OK(rig_send_imm(q, 3 + i));
	}
	q->resting = 0;
	for (uint64_t i = 0; i < 6; i++) {
		rig_take(q, &msg);
		RIG_NUM((uint8_t)i, msg.imm[0], "immediate data: messages arrive in order");
	}
	rig_queue_close(q);
}

static void inline_data_of_all_sizes(void)
{
	uint32_t max = inline_up_to(8192);
	uint8_t *buf = rig_local(8192 + 64);
	struct rig_queue *q;

	rig_need(RIG_INLINE_DATA);
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

	rig_need(RIG_DATA);
	rig_connect();
	q = rig_queue_open_lanes(&rig.b, 0, &rig.a, 0, 8, BIG);
	small = rig_queue_open_lanes(&rig.b, 1, &rig.a, 1, 8, 100);
	RIG_OK(rig_post_data(q, buf, BIG, 0));
	RIG_OK(rig_post_data(small, buf, BIG, 0));
	if (send.length <= sizeof(data))
		RIG_RC(-EMSGSIZE, rig_send_data(q, &send),
		       "send of more than info.max_inline bytes");
	send.length = 101;
	RIG_RC(-EMSGSIZE, rig_send_data(small, &send), "send of more than max_data bytes");
	send.length = inline_up_to(100);
	RIG_OK(rig_send_data(small, &send));
	send = (struct gantry_send){.length = 5};
	RIG_RC(-EINVAL, rig_send_data(q, &send),
	       "send without data, or of a region that it must not use"); /* a length without data or region */
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

	rig_need(RIG_INLINE_DATA);
	rig_connect();
	q = rig_queue_open(&rig.b, &rig.a, 8, 4096);
	memset(buf, 0xaa, 4096);
	rig_fill(data, sizeof(data), 3);
	RIG_OK(rig_post_data(q, buf, length - 1, 1));
	RIG_OK(rig_post_data(q, NULL, 0, 2));
	RIG_OK(rig_post_data(q, buf, length, 3));
	for (uint64_t i = 1; i <= 3; i++) {
		RIG_OK(rig_send_data(q, &send));
		rig_take(q, &msg);
		RIG_NUM(i, msg.cookie, "cookies of receives come in order");
		RIG_NUM(3, msg.imm_len, "imm_len of a message that does not fit");
		RIG_RC(i < 3 ? -EMSGSIZE : 0, msg.status,
		       "status of a message whose buffer was too small twice");
		RIG_NUM(i < 3 ? 0 : length, msg.length,
			"length of a message whose buffer was too small twice");
		if (i < 3)
			RIG_NUM(0xaa, buf[length - 1],
				"buffer of a message that does not fit: no byte changes");
	}
	RIG_HOLDS(rig_filled(buf, length, 3), "received data");
	rig_queue_close(q);
}

/* Messages of many sizes, more than the queue holds at a time. */
static void sizes_mixed_through_a_full_queue(void)
{
	uint64_t sent = 0, taken = 0, total = rig_rounds(20000), late = 0;
	uint32_t sizes = inline_up_to(4096) + 1;
	uint8_t data[4096], *bufs[SLOTS];
	struct rig_queue *q;

	rig_need(RIG_DATA);
	rig_connect();
	q = rig_queue_open(&rig.b, &rig.a, SLOTS, 4096);
	for (uint64_t i = 0; i < SLOTS; i++) {
		bufs[i] = rig_local(4096);
		RIG_OK(rig_post_data(q, bufs[i], 4096, i));
	}
	while (taken < total) {
		struct gantry_msg msg;
		int n;

		for (;;) {
			uint32_t length = (uint32_t)(sent * 7919 % sizes);
			struct gantry_send send = {
				.imm = &sent, .imm_len = 8, .data = data, .length = length};

			rig_fill(data, length, (uint32_t)sent);
			if (rig.ops->data->send(q->tx, &send, 0))
				break;
			sent++;
		}
		n = rig_poll(q, &msg, 1);
		rig_wait(&late, n, "poll_recv() to return a message that send() accepted");
		if (n == 0)
			continue;
		RIG_RC(1, n, "poll_recv with room for one message");
		RIG_SAME(&taken, msg.imm, 8, "immediate data: messages arrive in order");
		RIG_RC(0, msg.status, "status of a received message");
		RIG_NUM(taken * 7919 % sizes, msg.length, "length of received data");
		RIG_HOLDS(rig_filled(bufs[msg.cookie], msg.length, (uint32_t)taken),
			  "received data");
		RIG_OK(rig_post_data(q, bufs[msg.cookie], 4096, msg.cookie));
		taken++;
	}
	rig_queue_close(q);
}

static void export_all(struct rig_memory *m, uint32_t rights, uint32_t handle,
		       struct gantry_token *token)
{
	RIG_OK(rig.ops->export_region(rig.a.conn, &m->region, rights, handle, token));
	rig_settle();
}

static void revoke(uint32_t handle)
{
	int n = rig.a.n_revoked;

	RIG_OK(rig.ops->revoke_region(rig.a.conn, handle));
	rig_until(rig.a.n_revoked, n + 1);
	RIG_RC(0, rig.a.revoked_rc, "rc of `revoked` after the peer released the region");
}

static void region_data_of_many_sizes(void)
{
	static const uint32_t sizes[] = {1, 56, 57, 4095, 4096, 4097, 65536, 300000, BIG};
	uint8_t *buf = rig_local(BIG);
	struct gantry_token token;
	struct rig_memory m;
	struct rig_queue *q;

	rig_need(RIG_DATA);
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
		RIG_OK(rig_post_data(q, buf, BIG, i));
		RIG_OK(rig_send_data(q, &send));
		early = rig_done(q, &cookie, 1);
		if (early) /* after the completion the sender can reuse the memory */
			memset(m.bytes, 0xee, BIG);
		rig_take(q, &msg);
		RIG_RC(0, msg.status, "status of a received message");
		RIG_NUM(sizes[i], msg.length, "length of received data");
		RIG_NUM(imm_len, msg.imm_len, "imm_len of a received message");
		RIG_HOLDS(rig_filled(msg.imm, imm_len, (uint32_t)i), "received immediate data");
		RIG_HOLDS(rig_filled(buf, sizes[i], sizes[i]), "received data of a region");
		RIG_NUM(1000 + i, early ? cookie : rig_take_done(q), "cookie of poll_send");
		rig_fence();
		RIG_RC(0, rig_done(q, &cookie, 1), "cookies of poll_send when no send is open");
	}
	rig_queue_close(q);
	revoke(1);
}

static void payload_is_copied_once(void)
{
	uint64_t before, after;
	uint8_t *buf = rig_local(65536);
	struct gantry_token token;
	struct gantry_msg msg;
	struct rig_memory m;
	struct rig_queue *q;

	rig_need(RIG_DATA);
	rig_payload(&before);
	rig_connect();
	rig_memory_open(&m, BIG, GANTRY_REMOTE_READ);
	export_all(&m, GANTRY_REMOTE_READ, 1, &token);
	q = rig_queue_open(&rig.b, &rig.a, 8, BIG);
	for (int i = 0; i < 8; i++) {
		struct gantry_send send = {.length = 65536, .region = &m.region};

		RIG_OK(rig_post_data(q, buf, 65536, 0));
		RIG_OK(rig_send_data(q, &send));
		rig_take(q, &msg);
		rig_take_done(q);
	}
	rig_queue_close(q);
	if (rig_payload(&after))
		RIG_NUM(8 * 65536, after - before,
			"counter payload_bytes: data of a region is copied once");
	revoke(1);
}

static void invalid_region_sends_are_rejected(void)
{
	struct gantry_region stranger = {.length = 4096, .fd = -1, .rights = 3};
	struct gantry_token token;
	struct gantry_send send;
	struct rig_memory m, w;
	struct gantry_msg msg;
	struct rig_queue *q;

	rig_need(RIG_DATA);
	rig_connect();
	rig_memory_open(&m, 65536, GANTRY_REMOTE_READ);
	rig_memory_open(&w, 4096, GANTRY_REMOTE_WRITE);
	export_all(&m, GANTRY_REMOTE_READ, 1, &token);
	export_all(&w, GANTRY_REMOTE_WRITE, 2, &token);
	q = rig_queue_open(&rig.b, &rig.a, 8, BIG);
	RIG_OK(rig_post_data(q, rig_local(BIG), BIG, 0));
	send = (struct gantry_send){.length = 4096, .region = &stranger};
	RIG_RC(-EINVAL, rig_send_data(q, &send),
	       "send without data, or of a region that it must not use");
	/* the region does not allow the peer to read */
	send = (struct gantry_send){.length = 4096, .region = &w.region};
	RIG_RC(-EINVAL, rig_send_data(q, &send),
	       "send without data, or of a region that it must not use");
	send = (struct gantry_send){
		.length = 4096, .region = &m.region, .region_offset = 65536 - 4095};
	RIG_RC(-EINVAL, rig_send_data(q, &send),
	       "send without data, or of a region that it must not use");
	send = (struct gantry_send){
		.length = 4096, .region = &m.region, .region_offset = UINT64_MAX - 100};
	RIG_RC(-EINVAL, rig_send_data(q, &send),
	       "send without data, or of a region that it must not use");
	send = (struct gantry_send){
		.length = 4096, .region = &m.region, .region_offset = 65536 - 4096};
	RIG_OK(rig_send_data(q, &send));
	rig_take(q, &msg);
	rig_take_done(q);
	rig_queue_close(q);
	revoke(1);
	revoke(2);
}

static void completions_come_in_order(void)
{
	uint64_t cookies[8], next = 0, sent = 0, total = rig_rounds(5000), late = 0;
	uint8_t *buf = rig_local(512);
	struct gantry_token token;
	struct gantry_msg msgs[8];
	struct rig_memory m;
	struct rig_queue *q;

	rig_need(RIG_DATA);
	rig_connect();
	rig_memory_open(&m, 65536, GANTRY_REMOTE_READ);
	export_all(&m, GANTRY_REMOTE_READ, 1, &token);
	q = rig_queue_open(&rig.b, &rig.a, 8, 65536);
	for (int i = 0; i < 8; i++)
		RIG_OK(rig_post_data(q, buf, 512, 0));
	while (next < total) {
		struct gantry_send send = {.length = 512, .region = &m.region, .cookie = sent};
		int n, done;

		while (sent < total && rig.ops->data->send(q->tx, &send, 0) == 0)
			send.cookie = ++sent;
		n = rig_poll(q, msgs, 3);
		for (int i = 0; i < n; i++)
			RIG_OK(rig_post_data(q, buf, 512, 0));
		done = rig_done(q, cookies, 8);
		for (int i = 0; i < done; i++)
			RIG_NUM(next++, cookies[i], "cookies of poll_send come in order");
		RIG_HOLDS(next <= sent, "poll_send returns each cookie once");
		rig_wait(
			&late, n + done,
			"messages of poll_recv(), and cookies of poll_send() for messages that were polled");
	}
	rig_queue_close(q);
	revoke(1);
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
		return rig.ops->data->send(x->q->tx, &send, 0);
	}
	if (length == 0)
		return rig.ops->data->send(x->q->tx, &send, 0);
	if (x->n_region - x->n_done == SLOTS)
		return -EAGAIN;
	rig_fill(x->m.bytes + slot * SLOT_BYTES, length, (uint32_t)x->sent);
	send.region = &x->m.region;
	send.region_offset = slot * SLOT_BYTES;
	if (rig.ops->data->send(x->q->tx, &send, 0))
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

	rig_need(RIG_DATA);
	rig_connect();
	rig_memory_open(&x.m, SLOTS * SLOT_BYTES, GANTRY_REMOTE_READ);
	export_all(&x.m, GANTRY_REMOTE_READ, 1, &token);
	x.q = rig_queue_open(&rig.b, &rig.a, SLOTS, SLOT_BYTES);
	for (uint64_t i = 0; i < SLOTS; i++) {
		bufs[i] = rig_local(SLOT_BYTES);
		RIG_OK(rig_post_data(x.q, bufs[i], SLOT_BYTES, i));
	}
	while (taken < total || x.n_done < x.n_region) {
		struct gantry_msg msg;
		int n, done;

		while (x.sent < total && send_mixed(&x) == 0)
			x.sent++;
		done = rig_done(x.q, &cookie, 1);
		if (done == 1)
			RIG_NUM(x.n_done++, cookie, "cookies of poll_send come in order");
		n = rig_poll(x.q, &msg, 1);
		rig_wait(
			&late, n + done,
			"messages of poll_recv(), and cookies of poll_send() for messages that were polled");
		if (n == 0)
			continue;
		RIG_RC(1, n, "poll_recv with room for one message");
		RIG_SAME(&taken, msg.imm, 8, "immediate data: messages arrive in order");
		RIG_RC(0, msg.status, "status of a received message");
		RIG_NUM(taken * 7919 % x.sizes, msg.length, "length of received data");
		RIG_HOLDS(rig_filled(bufs[msg.cookie], msg.length, (uint32_t)taken),
			  "received data");
		RIG_OK(rig_post_data(x.q, bufs[msg.cookie], SLOT_BYTES, msg.cookie));
		taken++;
	}
	rig_queue_close(x.q);
	revoke(1);
}

/* The buffer is too small for the data of a region: no byte of it changes. */
static void region_data_that_does_not_fit(void)
{
	static const uint32_t room[] = {0, 1, 65535, 65536};
	uint8_t *buf = rig_local(65536);
	struct gantry_token token;
	struct gantry_msg msg;
	struct rig_memory m;
	struct rig_queue *q;

	rig_need(RIG_DATA);
	rig_connect();
	rig_memory_open(&m, 65536, GANTRY_REMOTE_READ);
	export_all(&m, GANTRY_REMOTE_READ, 1, &token);
	q = rig_queue_open(&rig.b, &rig.a, 8, 65536);
	rig_fill(m.bytes, 65536, 9);
	memset(buf, 0xaa, 65536);
	for (uint64_t i = 0; i < 4; i++) {
		const struct gantry_send send = {
			.imm = "imm", .imm_len = 3, .length = 65536, .region = &m.region};

		RIG_OK(rig_post_data(q, room[i] ? buf : NULL, room[i], i));
		RIG_OK(rig_send_data(q, &send));
		rig_take(q, &msg);
		rig_take_done(q);
		RIG_NUM(i, msg.cookie, "cookies of receives come in order");
		RIG_NUM(3, msg.imm_len, "imm_len of a message that does not fit");
		RIG_RC(i < 3 ? -EMSGSIZE : 0, msg.status, "status of data of a region");
		RIG_NUM(i < 3 ? 0 : 65536, msg.length, "length of data of a region");
		if (i < 3)
			RIG_HOLDS(rig_all(buf, 65536, 0xaa),
				  "buffer of a message that does not fit");
	}
	RIG_HOLDS(rig_filled(buf, 65536, 9), "received data of a region");
	rig_queue_close(q);
	revoke(1);
}

#define SHARERS 3u

/* Try to send without a receive. Returns 0: the consumer had offered this producer another one. */
static int want(struct rig_queue *q, const struct gantry_send *send)
{
	int rc = rig.ops->data->send(q->tx, send, 0);

	RIG_HOLDS(rc == 0 || rc == -EAGAIN, "send while no receive is posted");
	rig_settle();
	return rc;
}

/*
 * A consumer has one receive at a time. In each round a producer wants to send before it is posted,
 * and then leaves it to a random one: the receive that it may have been offered is not lost.
 */
static void idle_producers_keep_no_receive(void)
{
	struct rig_queue *q[SHARERS];
	uint8_t data[512], *buf = rig_local(512);
	uint32_t total = rig_rounds(1000), random = 12345;
	struct gantry_msg msg;

	rig_need(RIG_INLINE_DATA);
	rig_connect();
	q[0] = rig_queue_open(&rig.b, &rig.a, 8, 512);
	for (uint32_t i = 1; i < SHARERS; i++)
		q[i] = rig_queue_join(q[0], &rig.a, i == 1 ? 0 : i, 8);
	for (uint64_t i = 0; i < total; i++) {
		uint32_t length = inline_up_to(1 + (uint32_t)i % 512);
		struct gantry_send send = {.imm = &i, .imm_len = 8, .data = data, .length = length};
		int rc;

		random = random * 1664525 + 1013904223;
		rig_fill(data, length, (uint32_t)i);
		rc = want(q[(random >> 8) % SHARERS], &send);
		RIG_OK(rig_post_data(q[0], buf, 512, i));
		rig_settle();
		if (rc)
			RIG_OK(rig_send_data(q[(random >> 16) % SHARERS], &send));
		rig_take(q[0], &msg);
		RIG_SAME(&i, msg.imm, 8, "immediate data of a message");
		RIG_RC(0, msg.status, "status of a received message");
		RIG_NUM(i, msg.cookie, "cookie of the receive");
		RIG_HOLDS(rig_filled(buf, length, (uint32_t)i), "received data");
	}
	for (uint32_t i = SHARERS; i--;)
		rig_queue_close(q[i]);
}

/* Producers come and go without a message: the receives that they were offered are free again. */
static void producers_that_end_free_their_receives(void)
{
	uint32_t total = rig_rounds(200);
	uint8_t *buf = rig_local(64);
	struct rig_queue *q, *other;
	struct gantry_msg msg;

	rig_need(RIG_DATA);
	rig_connect();
	q = rig_queue_open(&rig.b, &rig.a, 8, 64);
	RIG_OK(rig_post_data(q, buf, 64, 1));
	for (uint32_t i = 0; i < total; i++) {
		rig_queue_close_tx(q);
		rig_settle();
		other = rig_queue_join(q, &rig.a, 0, 8);
		rig_settle();
		q->tx = other->tx;
		other->tx = NULL;
		rig_queue_close(other);
	}
	RIG_OK(rig_send_data(q, &(struct gantry_send){.imm = "x", .imm_len = 1}));
	rig_take(q, &msg);
	RIG_NUM(1, msg.cookie, "cookie of the receive");
	rig_queue_close(q);
}

struct sharer {
	struct rig_queue *q;
	uint64_t sent, taken;
};

/* Send the next message of a producer: its immediate data is the numbers of both. */
static int share(struct sharer *s, uint32_t who, uint8_t *data, uint32_t sizes)
{
	uint64_t imm[2] = {who, s->sent};
	uint32_t length = (uint32_t)(s->sent * 7919 % sizes);
	const struct gantry_send send = {
		.imm = imm, .imm_len = sizeof(imm), .data = data, .length = length};

	rig_fill(data, length, (uint32_t)s->sent + who);
	return rig.ops->data->send(s->q->tx, &send, 0);
}

/* Several producers send as fast as they can: each gets receives, and its messages are in order. */
static void producers_share_receives(void)
{
	struct sharer sharers[SHARERS] = {{.sent = 0}};
	uint64_t total = rig_rounds(6000), left = SHARERS * total, late = 0, imm[2];
	uint32_t sizes = inline_up_to(2048) + 1;
	uint8_t data[2048], *bufs[4];
	struct rig_queue *q;

	rig_need(RIG_DATA);
	rig_connect();
	q = rig_queue_open(&rig.b, &rig.a, 4, 2048);
	for (uint32_t i = 0; i < SHARERS; i++)
		sharers[i].q = i ? rig_queue_join(q, &rig.a, i == 1 ? 0 : i, 4) : q;
	for (uint64_t i = 0; i < 4; i++) {
		bufs[i] = rig_local(2048);
		RIG_OK(rig_post_data(q, bufs[i], 2048, i));
	}
	while (left) {
		struct gantry_msg msg;
		int n;

		for (uint32_t i = 0; i < SHARERS; i++)
			while (sharers[i].sent < total && !share(&sharers[i], i, data, sizes))
				sharers[i].sent++;
		n = rig_poll(q, &msg, 1);
		rig_wait(&late, n, "a message of one of several producers");
		if (n == 0)
			continue;
		RIG_RC(0, msg.status, "status of a received message");
		memcpy(imm, msg.imm, sizeof(imm));
		RIG_HOLDS(imm[0] < SHARERS, "number of the producer of a message");
		RIG_NUM(sharers[imm[0]].taken++, imm[1], "number of a message of a producer");
		RIG_NUM(imm[1] * 7919 % sizes, msg.length, "length of received data");
		RIG_HOLDS(rig_filled(bufs[msg.cookie], msg.length, (uint32_t)(imm[1] + imm[0])),
			  "received data");
		RIG_OK(rig_post_data(q, bufs[msg.cookie], 2048, msg.cookie));
		left--;
	}
	for (uint32_t i = SHARERS; i--;)
		rig_queue_close(sharers[i].q);
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
		RIG_OK(rig_send_data(q, &send));
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

	rig_need(RIG_DATA);
	rig_connect();
	rig_memory_open(&m, 4096, GANTRY_REMOTE_READ);
	export_all(&m, GANTRY_REMOTE_READ, 1, &token);
	q = rig_queue_open(&rig.b, &rig.a, 8, 4096);
	rig_warm(q);
	for (uint64_t i = 0; i < UNREAD; i++) {
		bufs[i] = rig_local(4096);
		RIG_OK(rig_post_data(q, bufs[i], 4096, i));
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
		rig_wait(&late, n, "poll_recv() to return a message that send() accepted");
		if (n != 1)
			continue;
		RIG_HOLDS(
			msg.status == -EFAULT ||
				(msg.status == 0 && rig_filled(bufs[msg.cookie], msg.length, 1)),
			"message of a destroyed producer: -EFAULT, or the data at the time of the send");
		if (msg.status == 0 && msg.length == 0)
			break; /* the last message */
	}
	rig_queue_close(q);
	if (rig.b.n_closed)
		rig_until(rig.a.n_closed, 1);
	else
		revoke(1);
}

void data_cases(void)
{
	RIG_CASE(cookies_of_receives_in_order);
	RIG_CASE(prompt_receives_are_announced_when_posted);
	RIG_CASE(changed_data_of_a_destroyed_producer);
	RIG_CASE(inline_data_of_all_sizes);
	RIG_CASE(data_that_is_too_long);
	RIG_CASE(buffer_too_small);
	RIG_CASE(sizes_mixed_through_a_full_queue);
	RIG_CASE(region_data_of_many_sizes);
	RIG_CASE(region_data_that_does_not_fit);
	RIG_CASE(payload_is_copied_once);
	RIG_CASE(invalid_region_sends_are_rejected);
	RIG_CASE(completions_come_in_order);
	RIG_CASE(inline_and_region_data_in_order);
	RIG_CASE(idle_producers_keep_no_receive);
	RIG_CASE(producers_that_end_free_their_receives);
	RIG_CASE(producers_share_receives);
}
