/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lanes.c - each end has a thread for its lane, and the test is the control thread of both: pipes
 * connect and fail while the lanes send, fetch, and sleep.
 */
#include "unit/verbs/ends.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>

#define DEPTH 8u
#define BYTES 1024u
#define SLOTS 8u

enum { PING_PONG, STREAM };

/* The thread of the lane of one end, and its queues. */
struct lane {
	struct end *end;
	pthread_t thread;
	int mode, first;
	struct vb_consumer *rx;
	struct vb_producer *tx; /* __atomic; NULL until it is created */
	struct vb_rma *rma;     /* __atomic; NULL until it is created */
	/* out: memory of this end, to send from; far: of the other end, for remote access */
	struct shared *out, *far;
	uint64_t total, sent, taken, sent_regions, ended_regions, n_rma, n_rma_done;
	uint64_t rests;
	int lost;   /* the lane has seen the end of the connection */
	int failed; /* source line of the failure; 0: none */
	int done;   /* accessed with __atomic */
	uint8_t bufs[DEPTH][BYTES];
};

static struct lane lanes[2];

void setUp(void)
{
	fake_verbs_reset();
}

void tearDown(void)
{
	TEST_ASSERT_EQUAL_STRING("", fake_verbs_check_clean());
}

/* A check on the thread of a lane. The checks of Unity work only on the main thread. */
#define CHECK(what) \
	do { \
		if (!(what) && !l->failed) \
			l->failed = __LINE__; \
	} while (0)

static int has_region(const struct lane *l, uint64_t n)
{
	return l->mode == STREAM && n % 5 == 3;
}

static uint32_t length_of(uint64_t n)
{
	return 1 + (uint32_t)(n * 37 % BYTES);
}

static int send_one(struct lane *l, struct vb_producer *tx)
{
	uint64_t n = l->sent;
	struct gantry_send send = {.imm = &n, .imm_len = sizeof(n)};
	uint32_t slot = (uint32_t)(l->sent_regions % SLOTS) * BYTES;
	int rc;

	if (has_region(l, n)) {
		if (l->sent_regions - l->ended_regions == SLOTS)
			return -EAGAIN;
		send.length = length_of(n);
		send.region = &l->out->region;
		send.region_offset = slot;
		send.cookie = l->sent_regions;
		fill(l->out->bytes + slot, send.length, n);
	}
	rc = vb_send_data(tx, &send, n % 3 ? GANTRY_SEND_MORE : 0);
	CHECK(rc == 0 || rc == -EAGAIN || rc == -ENOTCONN);
	l->lost |= rc == -ENOTCONN;
	l->sent += rc == 0;
	l->sent_regions += rc == 0 && send.length;
	return rc;
}

static int may_send(const struct lane *l)
{
	return l->sent < l->total && (l->mode == STREAM || l->sent < l->taken + (uint64_t)l->first);
}

static int send_some(struct lane *l)
{
	struct vb_producer *tx = __atomic_load_n(&l->tx, __ATOMIC_ACQUIRE);
	uint64_t cookies[4], before = l->sent;
	int n;

	if (!tx)
		return 0;
	while (may_send(l) && send_one(l, tx) == 0)
		;
	vb_flush(tx);
	n = vb_poll_send(tx, cookies, 4);
	CHECK(n >= 0);
	for (int i = 0; i < n; i++)
		CHECK(cookies[i] == l->ended_regions++);
	return n + (l->sent != before);
}

static void check_message(struct lane *l, const struct gantry_msg *msg)
{
	uint64_t n = l->taken++, got;

	memcpy(&got, msg->imm, sizeof(got));
	CHECK(msg->imm_len == sizeof(got) && got == n);
	CHECK(msg->cookie == n % DEPTH);
	if (!has_region(l, n))
		CHECK(msg->status == 0 && msg->length == 0);
	else if (msg->status)
		CHECK(msg->status == -EFAULT);
	else
		CHECK(msg->length == length_of(n) && filled(l->bufs[msg->cookie], msg->length, n));
}

static int take_some(struct lane *l)
{
	struct gantry_msg msgs[5];
	int n = vb_poll_recv(l->rx, msgs, 5);

	CHECK(n >= 0);
	for (int i = 0; i < n; i++) {
		const struct gantry_recv recv = {.buf = l->bufs[msgs[i].cookie % DEPTH],
						 .length = BYTES,
						 .cookie = msgs[i].cookie};

		check_message(l, &msgs[i]);
		CHECK(vb_post_recv_data(l->rx, &recv, 1) == 0);
	}
	return n;
}

static int move_some(struct lane *l)
{
	struct vb_rma *rma = __atomic_load_n(&l->rma, __ATOMIC_ACQUIRE);
	struct gantry_rma_done done[4];
	int n;

	if (!rma)
		return 0;
	for (uint32_t slot; l->n_rma < l->total; l->n_rma++) {
		slot = (uint32_t)(l->n_rma % SLOTS);
		if (l->n_rma - l->n_rma_done == SLOTS)
			break;
		fill(l->end->bytes + slot * BYTES, BYTES, l->n_rma);
		if (rma_do(rma, l->end, GANTRY_RMA_WRITE, slot * BYTES, l->far,
			   (SLOTS + slot) * BYTES, BYTES, l->n_rma))
			break;
	}
	vb_rma_flush(rma);
	n = vb_rma_poll(rma, done, 4);
	for (int i = 0; i < n; i++) {
		CHECK(done[i].cookie == l->n_rma_done++);
		CHECK(done[i].status == 0 || done[i].status == -ENOTCONN);
		l->lost |= done[i].status != 0;
	}
	return n;
}

/*
 * Sleep until a message arrives. A lane that still has to send only yields the processor: it might
 * wait for credit, and the arrival of credit does not make a descriptor readable.
 */
static void rest(struct lane *l)
{
	struct pollfd p = {.fd = vb_consumer_fd(l->rx), .events = POLLIN};

	if (l->mode == STREAM || may_send(l)) {
		sched_yield();
		return;
	}
	if (vb_consumer_arm(l->rx) == 0) {
		l->rests++;
		CHECK(poll(&p, 1, 20000) == 1); /* 0: no doorbell came */
	}
	vb_consumer_disarm(l->rx);
}

static int is_over(const struct lane *l)
{
	const int no_rma = l->mode == PING_PONG;

	if (l->failed)
		return 1;
	if (l->lost)
		return l->n_rma_done == l->n_rma;
	return l->sent == l->total && l->taken == l->total && l->ended_regions == l->sent_regions &&
	       (no_rma || l->n_rma_done == l->total);
}

static int is_done(const struct lane *l)
{
	return __atomic_load_n(&l->done, __ATOMIC_ACQUIRE);
}

static void *run(void *arg)
{
	struct lane *l = arg;

	for (uint32_t i = 0; i < DEPTH; i++) {
		const struct gantry_recv recv = {.buf = l->bufs[i], .length = BYTES, .cookie = i};

		CHECK(vb_post_recv_data(l->rx, &recv, 1) == 0);
	}
	while (!is_over(l))
		if (take_some(l) + send_some(l) + move_some(l) == 0 && !is_over(l))
			rest(l);
	__atomic_store_n(&l->done, 1, __ATOMIC_RELEASE);
	/* the other lane still needs the credit for the last messages */
	while (!is_done(&lanes[0]) || !is_done(&lanes[1])) {
		take_some(l);
		sched_yield();
	}
	return NULL;
}

/* -- control thread -- */

static struct shared memory[2];

/* Start the threads, which then work while their pipes connect. */
static void start(int mode, uint64_t total, const char *settings)
{
	const struct gantry_queue_attr attr = {.depth = DEPTH, .max_data = BYTES};
	uint32_t ids[2];

	ends_open(settings, NULL, NULL);
	for (int i = 0; i < 2; i++) {
		struct lane *l = &lanes[i];
		void *rx = NULL;

		memset(l, 0, sizeof(*l));
		*l = (struct lane){.end = i ? &b : &a,
				   .mode = mode,
				   .first = i == 0,
				   .total = total,
				   .out = &memory[i],
				   .far = &memory[!i]};
		share_begin(&memory[i], l->end, i ? &a : &b, 2 * SLOTS * BYTES,
			    GANTRY_REMOTE_READ | GANTRY_REMOTE_WRITE);
		TEST_ASSERT_EQUAL_INT(0, vb_consumer_create(l->end->conn, &attr, &ids[i], &rx));
		l->rx = rx;
	}
	ends_until(a.n_up == 1 && b.n_up == 1);
	for (int i = 0; i < 2; i++)
		TEST_ASSERT_EQUAL_INT(0, pthread_create(&lanes[i].thread, NULL, run, &lanes[i]));
	for (int i = 0; i < 2; i++) {
		void *p = NULL;

		ends_settle();
		TEST_ASSERT_EQUAL_INT(0,
				      vb_producer_create(lanes[i].end->conn, ids[!i], &attr, &p));
		__atomic_store_n(&lanes[i].tx, p, __ATOMIC_RELEASE);
		if (mode == PING_PONG)
			continue;
		TEST_ASSERT_EQUAL_INT(0, vb_rma_create(lanes[i].end->conn, &attr, &p));
		__atomic_store_n(&lanes[i].rma, p, __ATOMIC_RELEASE);
	}
}

static void finish(void)
{
	while (!is_done(&lanes[0]) || !is_done(&lanes[1])) {
		ends_turn();
		sched_yield();
	}
	for (int i = 0; i < 2; i++) {
		pthread_join(lanes[i].thread, NULL);
		TEST_ASSERT_EQUAL_INT_MESSAGE(0, lanes[i].failed, "line of the check that failed");
	}
	wire_check();
	for (int i = 0; i < 2; i++) {
		vb_rma_destroy(lanes[i].rma);
		vb_producer_destroy(lanes[i].tx);
		vb_consumer_destroy(lanes[i].rx);
	}
	for (int i = 0; i < 2; i++)
		if (a.n_closed)
			munmap(memory[i].bytes, memory[i].region.length);
		else
			share_end(&memory[i]);
	ends_close();
}

/* Each end waits for the ping of the other, so a lost wake-up would hang the test. */
static void sleeping_lane_is_woken(void)
{
	start(PING_PONG, 5000, NULL);
	finish();
	TEST_ASSERT_TRUE(lanes[0].rests + lanes[1].rests > 0);
}

static void traffic_both_ways(void)
{
	start(STREAM, 4000, "max_depth=16");
	finish();
}

static void traffic_on_one_queue_pair(void)
{
	fake_device(0)->max_inline = 0;
	start(STREAM, 4000, "max_depth=16 data_qp=shared");
	finish();
}

static void connection_is_lost(void)
{
	start(STREAM, UINT32_MAX, "max_depth=16");
	for (int i = 0; i < 200; i++) {
		ends_turn();
		sched_yield();
	}
	vb_conn_fail(b.conn, -ETIMEDOUT);
	finish();
	TEST_ASSERT_EQUAL_INT(1, a.n_closed);
	TEST_ASSERT_EQUAL_INT(1, b.n_closed);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(sleeping_lane_is_woken);
	RUN_TEST(traffic_both_ways);
	RUN_TEST(traffic_on_one_queue_pair);
	RUN_TEST(connection_is_lost);
	return UNITY_END();
}
