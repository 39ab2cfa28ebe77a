/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * parts/ring.c - a ring of shm-comch from its creation to its end: either end is destroyed at any
 * time, or the connection ends
 *
 *     control 0, lane 0   the producer's side
 *     control 1, lane 1   the consumer's side
 */
#include <poll.h>
#include <string.h>

#include "comch_pair.h"

#define DEPTH 8u
#define MESSAGES 6u

enum end { PRODUCER_ENDS, PRODUCER_CHANGES, CONSUMER_ENDS, CONNECTION_ENDS, ENDS };

static struct {
	enum end end;
	uint32_t n, depth, batch, more;
	/* the lane flushes; false: the destruction of the producer notifies the consumer */
	bool flushes;
	/* number of messages before one end is destroyed, or another producer replaces this one */
	uint32_t after;
} as;

static struct comch_producer *producer;
static struct comch_consumer *consumer;
static uint8_t bufs[DEPTH][MESSAGE_DATA];
static uint32_t n_sent, n_taken, n_posted, n_rings;
static uint32_t n_got[2]; /* messages received from the first ring, and from the second */
static bool lane0_may, lane0_idle, lane1_may, lane1_idle, closed[2];

static void begin(void)
{
	as.end = (enum end)sim_draw(ENDS);
	as.n = 1 + sim_draw(MESSAGES);
	as.depth = 1 + sim_draw(DEPTH);
	as.batch = 1 + sim_draw(4);
	as.more = sim_draw(2);
	as.flushes = sim_draw(2);
	as.after = as.end == PRODUCER_ENDS ? as.n : sim_draw(as.n);
	producer = NULL;
	consumer = NULL;
	n_sent = n_taken = n_posted = n_rings = 0;
	memset(n_got, 0, sizeof(n_got));
	memset(bufs, 0, sizeof(bufs));
	lane0_may = lane0_idle = lane1_may = lane1_idle = closed[0] = closed[1] = false;
	pair_begin();
}

/* -- the producer's side -- */

static void make_producer(uint32_t id)
{
	const struct gantry_queue_attr attr = {.depth = as.depth, .max_data = MESSAGE_DATA};
	int rc = comch_producer_create(&pair[0].conn, id, &attr, (void **)&producer);

	PART_CHECK(rc == 0 || rc == -ENOTCONN || rc == -ENOENT, "a producer cannot be created");
	if (rc != 0)
		producer = NULL;
	else
		n_rings++;
}

static bool both_closed(unsigned side)
{
	return closed[0] && closed[1] && !pair_has_frames(side);
}

static void finish(unsigned side)
{
	part_set(&closed[side]);
	while (!both_closed(side)) {
		pair_wait(side, &closed[1 - side]);
		pair_turn(side);
	}
	comch_queues_free(&pair[side].conn);
}

static void *control0(void *arg)
{
	while (pair[0].consumer_up == 0) {
		pair_wait(0, NULL);
		pair_turn(0);
	}
	make_producer(pair[0].consumer_up);
	part_set(&lane0_may);
	while (!lane0_idle) {
		pair_wait(0, &lane0_idle);
		pair_turn(0);
	}
	comch_producer_destroy(producer);
	producer = NULL;
	if (as.end == PRODUCER_CHANGES) {
		lane0_idle = false;
		make_producer(pair[0].consumer_up);
		part_set(&lane0_may);
		while (!lane0_idle) {
			pair_wait(0, &lane0_idle);
			pair_turn(0);
		}
		comch_producer_destroy(producer);
	}
	finish(0);
	return arg;
}

/* `at`: number of the message within its ring. */
static void send_some(uint32_t until)
{
	uint32_t at = 0;

	while (n_sent < until) {
		int rc = message_send(producer, at, 1 + n_sent,
				      as.more && n_sent % 3 != 2 ? GANTRY_SEND_MORE : 0);

		if (rc == -ENOTCONN && as.end >= CONSUMER_ENDS)
			return;
		PART_CHECK(rc == 0 || rc == -EAGAIN, "a send fails");
		/* while two rings exist, each can have credit for the same receives */
		PART_CHECK(rc != 0 || n_sent < n_posted || n_rings > 1,
			   "a message is sent without credit");
		if (rc == 0) {
			n_sent++;
			at++;
		} else {
			part_spin();
		}
	}
	if (as.flushes)
		comch_flush(producer);
}

static void *lane0(void *arg)
{
	part_wait(&lane0_may);
	lane0_may = false;
	if (producer)
		send_some(as.end == PRODUCER_CHANGES ? as.after : as.n);
	part_set(&lane0_idle);
	if (as.end == PRODUCER_CHANGES) {
		part_wait(&lane0_may);
		if (producer)
			send_some(as.n);
		part_set(&lane0_idle);
	}
	return arg;
}

/* -- the consumer's side -- */

static void *control1(void *arg)
{
	const struct gantry_queue_attr attr = {.depth = as.depth, .max_data = MESSAGE_DATA};
	uint32_t id;

	PART_CHECK(comch_consumer_create(&pair[1].conn, &attr, &id, (void **)&consumer) == 0,
		   "a consumer cannot be created");
	part_set(&lane1_may);
	while (!lane1_idle) {
		pair_wait(1, &lane1_idle);
		pair_turn(1);
	}
	if (as.end == CONNECTION_ENDS)
		pair_lose();
	comch_consumer_destroy(consumer);
	finish(1);
	return arg;
}

static void post(void)
{
	const struct gantry_recv recv = {
		.buf = bufs[n_posted % DEPTH], .length = MESSAGE_DATA, .cookie = n_posted};

	n_posted++;
	PART_CHECK(comch_post_recv_data(consumer, &recv, 1) == 0, "a receive is rejected");
}

/* One ring replaces the other, but polls can return messages of both in any order. */
static void take(const struct gantry_msg *m)
{
	uint32_t at, word;
	bool second; /* the ring that replaces the other */

	PART_CHECK(m->imm_len >= sizeof(word), "a message is wrong");
	memcpy(&word, m->imm, sizeof(word));
	PART_CHECK(word >= 1 && word <= n_sent + 1, "a message is wrong");
	second = as.end == PRODUCER_CHANGES && word > as.after;
	at = word - 1 - (second ? as.after : 0);
	PART_CHECK(m->cookie == n_taken, "a receive is used out of order");
	PART_CHECK(at == n_got[second]++, "a message is lost or delivered twice");
	message_check(m, bufs[n_taken % DEPTH], at, word);
	n_taken++;
}

static bool has_all(void)
{
	return n_taken >= (as.end >= CONSUMER_ENDS ? as.after : as.n);
}

static void *lane1(void *arg)
{
	struct gantry_msg m[4];

	part_wait(&lane1_may);
	while (n_posted < as.depth)
		post();
	while (!has_all()) {
		int n = comch_poll_recv(consumer, m, as.batch);

		PART_CHECK(n >= 0 && (uint32_t)n <= as.batch, "a poll returns too many");
		for (int i = 0; i < n; i++)
			take(&m[i]);
		for (int i = 0; i < n; i++)
			post();
		if (n == 0) {
			if (comch_consumer_arm(consumer) == 0)
				poll(&(struct pollfd){.fd = consumer->bell, .events = POLLIN}, 1,
				     -1);
			comch_consumer_disarm(consumer);
		}
	}
	while (as.end < CONSUMER_ENDS &&
	       __atomic_load_n(&consumer->active, __ATOMIC_RELAXED) != 0) {
		PART_CHECK(comch_poll_recv(consumer, m, as.batch) == 0,
			   "a message is delivered twice");
		part_spin();
	}
	part_set(&lane1_idle);
	return arg;
}

static const char *check(void)
{
	return !has_all()       ? "a message is missing"
	       : n_taken > as.n ? "a message is delivered twice"
				: pair_check();
}

const struct part part_ring = {.name = "ring",
			       .steps = 50000,
			       .begin = begin,
			       .open = pair_open,
			       .threads = {control0, lane0, control1, lane1},
			       .check = check};
