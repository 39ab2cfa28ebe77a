/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * traffic.c - random traffic between two ends, over a wire that releases requests one at a time. In
 * any order: each message arrives once, in order and complete; no send finds the receive queue
 * empty; no queue stalls.
 */
#include "unit/verbs/ends.h"

#define LANES 2u
#define SLOTS 8u
#define SLOT_BYTES 3000u
#define RMAS 6u
#define STEPS 6000u
#define SEEDS 4u      /* number of seeds; TRAFFIC_SEED replaces them */
#define PATIENCE 3000 /* maximum of rounds without progress */

struct set {
	const char *both, *of_a, *of_b;
	uint32_t depth;           /* depth of the queues */
	uint32_t deeper;          /* depth of the queues to b; 0: as `depth` */
	uint32_t max_inline;      /* inline limit of the devices, in bytes */
	uint32_t start, requests; /* initial counters: see pipe_begin_at */
};

/* Messages in one direction. */
struct way {
	struct queue q;
	struct shared memory; /* of the sender; the consumer fetches data from it */
	uint64_t sent, taken, posted;
	uint64_t sent_regions, ended_regions;
	uint8_t bufs[64][SLOT_BYTES];
	uint32_t depth;
};

/* Remote reads and writes of one end. */
struct reach {
	struct vb_rma *rma;
	struct end *end;
	uint32_t base;        /* offset in the local memory of this end */
	struct shared memory; /* RMAS slots of the other end */
	struct {
		int busy;
		enum gantry_rma_op op;
		uint64_t seed;
		uint32_t length;
	} slots[RMAS];
	uint64_t n, done;
};

static struct way ways[2 * LANES];
static struct reach reaches[2 * LANES];
static struct set set;

void setUp(void)
{
	fake_verbs_reset();
}

void tearDown(void)
{
	TEST_ASSERT_EQUAL_STRING("", fake_verbs_check_clean());
}

/* -- messages: the content of message n in a direction is a function of n -- */

enum { BARE, INLINE, REGION };

static uint32_t kind_of(uint64_t n)
{
	return (uint32_t)(n * 2654435761u >> 7) % 3;
}

static uint32_t length_of(uint64_t n)
{
	uint32_t most = kind_of(n) == INLINE ? (uint32_t)a.conf->inline_bytes : SLOT_BYTES;

	return kind_of(n) == BARE ? 0 : 1 + (uint32_t)(n * 40503u % most);
}

static int send_one(struct way *w)
{
	uint64_t n = w->sent;
	uint8_t data[SLOT_BYTES];
	struct gantry_send send = {
		.imm = &n, .imm_len = 8 + (uint32_t)(n % 3) * 20, .length = length_of(n)};
	uint8_t imm[GANTRY_IMM_MAX];
	uint32_t slot = (uint32_t)(w->sent_regions % SLOTS);
	int rc;

	fill(imm, sizeof(imm), n);
	memcpy(imm, &n, sizeof(n));
	send.imm = imm;
	if (kind_of(n) == INLINE) {
		fill(data, send.length, n);
		send.data = data;
	} else if (kind_of(n) == REGION) {
		if (w->sent_regions - w->ended_regions == SLOTS)
			return -EAGAIN;
		fill(w->memory.bytes + slot * SLOT_BYTES, send.length, n);
		send.region = &w->memory.region;
		send.region_offset = slot * SLOT_BYTES;
		send.cookie = w->sent_regions;
	}
	rc = vb_send_data(w->q.tx, &send, draw(2) ? GANTRY_SEND_MORE : 0);
	TEST_ASSERT_TRUE(rc == 0 || rc == -EAGAIN);
	memset(data, 0, sizeof(data));
	w->sent += rc == 0;
	w->sent_regions += rc == 0 && kind_of(n) == REGION;
	return rc;
}

static void check_message(struct way *w, const struct gantry_msg *msg)
{
	uint64_t n = w->taken++, got;
	uint8_t imm[GANTRY_IMM_MAX];

	fill(imm, sizeof(imm), n);
	memcpy(imm, &n, sizeof(n));
	memcpy(&got, msg->imm, sizeof(got));
	TEST_ASSERT_EQUAL_UINT64_MESSAGE(n, got, "order");
	TEST_ASSERT_EQUAL_UINT32(8 + n % 3 * 20, msg->imm_len);
	TEST_ASSERT_EQUAL_MEMORY(imm, msg->imm, msg->imm_len);
	TEST_ASSERT_EQUAL_UINT64_MESSAGE(n, msg->cookie, "receives are used in order");
	TEST_ASSERT_EQUAL_INT(0, msg->status);
	TEST_ASSERT_EQUAL_UINT32(length_of(n), msg->length);
	TEST_ASSERT_TRUE_MESSAGE(filled(w->bufs[n % w->depth], msg->length, n), "data");
}

static int take(struct way *w, uint32_t max)
{
	struct gantry_msg msgs[16];
	int n = vb_poll_recv(w->q.rx, msgs, max);

	TEST_ASSERT_TRUE_MESSAGE(n >= 0, "the queue broke");
	for (int i = 0; i < n; i++)
		check_message(w, &msgs[i]);
	return n;
}

static void post(struct way *w, uint32_t n)
{
	while (n-- && w->posted - w->taken < w->depth) {
		const struct gantry_recv recv = {.buf = w->bufs[w->posted % w->depth],
						 .length = SLOT_BYTES,
						 .cookie = w->posted};

		TEST_ASSERT_EQUAL_INT(0, vb_post_recv_data(w->q.rx, &recv, 1));
		w->posted++;
	}
}

static int ends(struct way *w)
{
	uint64_t cookies[3];
	int n = vb_poll_send(w->q.tx, cookies, 1 + draw(3));

	for (int i = 0; i < n; i++)
		TEST_ASSERT_EQUAL_UINT64_MESSAGE(w->ended_regions++, cookies[i], "ends of sends");
	return n;
}

/* -- remote access -- */

static void submit(struct reach *r)
{
	uint32_t slot = (uint32_t)(r->n % RMAS), at = slot * SLOT_BYTES;
	enum gantry_rma_op op = draw(2) ? GANTRY_RMA_READ : GANTRY_RMA_WRITE;
	uint32_t length = 1 + draw(SLOT_BYTES);
	uint8_t *local = r->end->bytes + r->base + at;
	int rc;

	if (r->slots[slot].busy)
		return;
	fill(op == GANTRY_RMA_READ ? r->memory.bytes + at : local, length, r->n);
	rc = rma_do(r->rma, r->end, op, r->base + at, &r->memory, at, length, r->n);
	TEST_ASSERT_TRUE(rc == 0 || rc == -EAGAIN);
	if (rc)
		return;
	r->slots[slot].busy = 1;
	r->slots[slot].op = op;
	r->slots[slot].seed = r->n++;
	r->slots[slot].length = length;
}

static int finish(struct reach *r)
{
	struct gantry_rma_done done[4];
	int n = vb_rma_poll(r->rma, done, 1 + draw(4));

	for (int i = 0; i < n; i++) {
		uint32_t slot = (uint32_t)(done[i].cookie % RMAS), at = slot * SLOT_BYTES;

		TEST_ASSERT_EQUAL_UINT64(r->done++, done[i].cookie);
		TEST_ASSERT_EQUAL_INT(0, done[i].status);
		TEST_ASSERT_TRUE(filled(r->end->bytes + r->base + at, r->slots[slot].length,
					r->slots[slot].seed));
		TEST_ASSERT_TRUE(
			filled(r->memory.bytes + at, r->slots[slot].length, r->slots[slot].seed));
		r->slots[slot].busy = 0;
	}
	return n;
}

/* -- one run -- */

static void open_lane(uint32_t lane)
{
	for (uint32_t i = 0; i < 2; i++) {
		struct end *from = i ? &b : &a, *to = i ? &a : &b;
		struct way *w = &ways[2 * lane + i];
		struct reach *r = &reaches[2 * lane + i];

		memset(w, 0, sizeof(*w));
		memset(r, 0, sizeof(*r));
		w->depth = i == 0 && set.deeper ? set.deeper : set.depth;
		queue_open(&w->q, to, lane, from, lane, w->depth, SLOT_BYTES);
		share_begin(&w->memory, from, to, SLOTS * SLOT_BYTES, GANTRY_REMOTE_READ);
		r->end = from;
		r->base = (2 * lane + i) * RMAS * SLOT_BYTES;
		if (i == 1)
			pipe_begin_at(queue_pipe(&w->q), set.start, set.requests);
	}
	for (uint32_t i = 0; i < 2; i++) {
		struct reach *r = &reaches[2 * lane + i];

		r->rma = rma_open(r->end, lane, set.depth < 4 ? 1 : 4);
		share_begin(&r->memory, i ? &a : &b, r->end, RMAS * SLOT_BYTES,
			    GANTRY_REMOTE_READ | GANTRY_REMOTE_WRITE);
	}
}

static void step(uint32_t i)
{
	struct way *w = &ways[i];
	struct reach *r = &reaches[i];

	switch (draw(16)) {
	case 0 ... 1:
		post(w, 1 + draw(w->depth));
		break;
	case 2 ... 4:
		for (uint32_t n = draw(w->depth + 2); n && send_one(w) == 0; n--)
			;
		break;
	case 5:
		vb_flush(w->q.tx);
		break;
	case 6 ... 8:
		take(w, draw(17));
		break;
	case 9:
		ends(w);
		break;
	case 10:
		if (vb_consumer_arm(w->q.rx) == 0)
			TEST_ASSERT_TRUE(vb_consumer_free(w->q.rx) <= w->depth);
		vb_consumer_disarm(w->q.rx);
		break;
	case 11:
		submit(r);
		break;
	case 12:
		vb_rma_flush(r->rma);
		break;
	case 13:
		finish(r);
		break;
	case 14:
		ends_turn();
		break;
	default:
		for (uint32_t n = draw(30); n && fake_wire_step(NULL); n--)
			;
		break;
	}
}

/* Post all receives, flush, and take messages. Returns how many completions and messages came. */
static int drain(struct way *w)
{
	int n = ends(w);

	post(w, w->depth);
	vb_flush(w->q.tx);
	return n + take(w, 16);
}

static int is_drained(void)
{
	for (uint32_t i = 0; i < 2 * LANES; i++)
		if (ways[i].taken != ways[i].sent ||
		    ways[i].ended_regions != ways[i].sent_regions ||
		    reaches[i].done != reaches[i].n)
			return 0;
	return 1;
}

static void drain_all(void)
{
	fake_wire_hold(0);
	for (int idle = 0; !is_drained(); idle++) {
		for (uint32_t i = 0; i < 2 * LANES; i++) {
			vb_rma_flush(reaches[i].rma);
			idle = drain(&ways[i]) + finish(&reaches[i]) ? 0 : idle;
		}
		pipes_check();
		TEST_ASSERT_TRUE_MESSAGE(idle < PATIENCE, "it stands still");
	}
}

/* After the traffic, the producer can still send as many messages as there are receives. */
static void fill_up(struct way *w)
{
	const uint32_t window = queue_pipe(&w->q)->window,
		       most = w->depth < window ? w->depth : window;
	uint32_t sent = 0;

	post(w, w->depth);
	for (int i = 0; i < PATIENCE && sent < most; i++) {
		take(w, 0);
		sent += queue_send(&w->q, sent, 0) == 0;
	}
	TEST_ASSERT_EQUAL_UINT32(most, sent);
	TEST_ASSERT_EQUAL_INT(-EAGAIN, queue_send(&w->q, sent, 0));
	for (uint32_t i = 0; i < sent; i++)
		TEST_ASSERT_EQUAL_UINT64(i, queue_take(&w->q, NULL));
}

static void close_lane(uint32_t lane)
{
	for (uint32_t i = 2 * lane; i < 2 * lane + 2; i++) {
		vb_rma_destroy(reaches[i].rma);
		queue_close(&ways[i].q);
		share_end(&ways[i].memory);
		share_end(&reaches[i].memory);
	}
}

static void run_seed(uint64_t seed)
{
	draw_seed(seed);
	fake_device(0)->max_inline = fake_device(1)->max_inline = set.max_inline;
	ends_open(set.both, set.of_a, set.of_b);
	for (uint32_t lane = 0; lane < LANES; lane++)
		open_lane(lane);
	for (int part = 0; part < 3; part++) {
		fake_wire_hold(part != 1);
		for (uint32_t i = 0; i < STEPS / 3; i++) {
			step(draw(2 * LANES));
			pipes_check();
		}
		drain_all();
	}
	for (uint32_t i = 0; i < 2 * LANES; i++)
		fill_up(&ways[i]);
	TEST_ASSERT_EQUAL_INT(0, a.n_closed + b.n_closed);
	for (uint32_t lane = 0; lane < LANES; lane++)
		close_lane(lane);
	ends_close();
}

static void run(struct set of)
{
	const char *seed = getenv("TRAFFIC_SEED");

	set = of;
	if (seed)
		run_seed(strtoull(seed, NULL, 10));
	for (uint64_t i = 1; i <= SEEDS && !seed; i++)
		run_seed(i);
}

static void shallow(void)
{
	run((struct set){.both = "max_depth=8", .depth = 8, .max_inline = 512});
}

static void deep(void)
{
	run((struct set){.both = "max_depth=64", .depth = 64, .max_inline = 512});
}

static void one_at_a_time(void)
{
	run((struct set){.both = "max_depth=2", .depth = 1, .max_inline = 512});
}

static void ends_of_different_depth(void)
{
	run((struct set){.of_a = "max_depth=5",
			 .of_b = "max_depth=11",
			 .depth = 5,
			 .deeper = 11,
			 .max_inline = 512});
}

static void nothing_inline(void)
{
	run((struct set){.both = "max_depth=6", .depth = 6});
}

static void some_inline(void)
{
	run((struct set){.both = "max_depth=16 inline=500", .depth = 9, .max_inline = 60});
}

static void shared_with_data(void)
{
	run((struct set){.both = "max_depth=8 data_qp=shared", .depth = 8});
}

/* The counters wrap during the run. */
static void wrap(void)
{
	run((struct set){.both = "max_depth=16",
			 .depth = 16,
			 .max_inline = 512,
			 .start = UINT32_MAX - 300,
			 .requests = UINT32_MAX - 200});
}

static void wrap_of_odd_depth(void)
{
	run((struct set){.both = "max_depth=10",
			 .depth = 10,
			 .start = UINT32_MAX - 300,
			 .requests = UINT32_MAX - 300});
}

static void half_a_wrap(void)
{
	run((struct set){.both = "max_depth=7",
			 .depth = 7,
			 .start = (1u << 31) - 300,
			 .requests = (1u << 31) - 200});
}

static void wrap_of_the_half(void)
{
	run((struct set){.both = "max_depth=16", .depth = 12, .start = (1u << 16) - 300});
}

/* The next call of the consumer posts taken slots again; the send of an answer does not. */
static void slots_are_posted_again_by_the_next_call_of_the_consumer(void)
{
	struct vb_consumer *c;
	struct vb_pipe *far;
	struct queue there, back;

	ends_open("max_depth=4", NULL, NULL);
	queue_open(&there, &b, 0, &a, 0, 4, 0);
	queue_open(&back, &a, 0, &b, 0, 4, 0);
	c = there.rx;
	TEST_ASSERT_EQUAL_INT(0, vb_post_recv(c, 3));
	queue_transfer_credit(&there);
	TEST_ASSERT_EQUAL_INT(0, vb_post_recv(back.rx, 4));
	queue_transfer_credit(&back);
	far = queue_far_pipe(&there);
	for (int way = 0; way < 3; way++) {
		c->prompt = way == 2;
		TEST_ASSERT_EQUAL_INT(0, queue_send(&there, 1, 0));
		TEST_ASSERT_EQUAL_UINT64(1, queue_take(&there, NULL));
		TEST_ASSERT_EQUAL_INT(0, queue_send(&back, 1, 0));
		TEST_ASSERT_EQUAL_UINT32(1, far->waiting);
		if (way == 0)
			TEST_ASSERT_EQUAL_INT(0, vb_poll_recv(c, NULL, 0));
		else if (way == 1)
			vb_consumer_arm(c);
		else
			TEST_ASSERT_EQUAL_INT(0, vb_post_recv(c, 1));
		TEST_ASSERT_EQUAL_UINT32(0, far->waiting);
		TEST_ASSERT_EQUAL_UINT64(1, queue_take(&back, NULL));
	}
	vb_consumer_disarm(c);
	queue_close(&there);
	queue_close(&back);
	ends_close();
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(shallow);
	RUN_TEST(deep);
	RUN_TEST(one_at_a_time);
	RUN_TEST(ends_of_different_depth);
	RUN_TEST(nothing_inline);
	RUN_TEST(some_inline);
	RUN_TEST(shared_with_data);
	RUN_TEST(wrap);
	RUN_TEST(wrap_of_odd_depth);
	RUN_TEST(half_a_wrap);
	RUN_TEST(wrap_of_the_half);
	RUN_TEST(slots_are_posted_again_by_the_next_call_of_the_consumer);
	return UNITY_END();
}
