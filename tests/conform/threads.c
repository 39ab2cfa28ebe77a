/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * threads.c - conformance: two threads use the queues. A thread that finds no work sleeps, and is
 * woken.
 */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "conform/rig.h"

#define SLOTS 4u
#define SLOT_BYTES 4096u

struct lane {
	struct rig_queue *in, *out;
	uint32_t rounds;
	int sleeps, failed, first;
	int epoll; /* edge-triggered epoll fd of the lane; -1: the lane polls the consumer's fd */
};

/* Send when there is credit. Makes no turns, because only the thread of the rig can make them. */
static int send_in_time(struct rig_queue *q, const void *imm, uint32_t imm_len, uint32_t flags)
{
	uint64_t late = 0;
	int rc;

	while ((rc = rig.ops->send(q->tx, imm, imm_len, flags)) == -EAGAIN && !rig_late(&late, 0))
		sched_yield();
	return rc;
}

static int wait_fd(const struct lane *l)
{
	struct pollfd p = {.fd = rig.ops->consumer_fd(l->in->rx), .events = POLLIN};
	struct epoll_event ev;

	return l->epoll < 0 ? poll(&p, 1, 10000) : epoll_wait(l->epoll, &ev, 1, 10000);
}

/* Sleep until there is a message, as a lane does. */
static int wait_message(struct lane *l, struct gantry_msg *msg)
{
	int n;

	while ((n = rig.ops->poll_recv(l->in->rx, msg, 1)) == 0) {
		if (rig.ops->consumer_arm(l->in->rx) == 0) {
			l->sleeps++;
			if (wait_fd(l) != 1)
				return -ETIMEDOUT;
		}
		rig.ops->consumer_disarm(l->in->rx);
	}
	return n;
}

static void *ping(void *arg)
{
	struct lane *l = arg;

	for (uint32_t i = 0; i < l->rounds && !l->failed; i++) {
		struct gantry_msg msg;

		if (l->first || i)
			l->failed = send_in_time(l->out, &i, 4, 0);
		if (l->failed || (l->first && i + 1 == l->rounds))
			break;
		l->failed = wait_message(l, &msg) != 1 || msg.imm_len != 4;
		rig.ops->post_recv(l->in->rx, 1);
	}
	return NULL;
}

static int edges_of(const struct rig_queue *q)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET};
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	TEST_ASSERT_EQUAL_INT(0, epoll_ctl(epoll, EPOLL_CTL_ADD, rig.ops->consumer_fd(q->rx), &ev));
	return epoll;
}

/* No wake-up is lost, although both ends sleep whenever they find no work. */
static void play_ping_pong(bool edges)
{
	struct rig_queue *there, *back;
	struct lane a, b;
	pthread_t t;

	rig_need(RIG_SLEEP);
	rig_connect();
	rig.queue_flags = edges ? GANTRY_QUEUE_EDGES : 0;
	there = rig_queue_open(&rig.b, &rig.a, 4, 0);
	back = rig_queue_open(&rig.a, &rig.b, 4, 0);
	rig_warm(there);
	rig_warm(back);
	rig_lend(there);
	rig_lend(back);
	RIG_OK(rig.ops->post_recv(there->rx, 4));
	RIG_OK(rig.ops->post_recv(back->rx, 4));
	a = (struct lane){.in = back,
			  .out = there,
			  .rounds = rig_rounds(3000),
			  .first = 1,
			  .epoll = edges ? edges_of(back) : -1};
	b = (struct lane){.in = there,
			  .out = back,
			  .rounds = rig_rounds(3000),
			  .epoll = edges ? edges_of(there) : -1};
	TEST_ASSERT_EQUAL_INT(0, pthread_create(&t, NULL, ping, &b));
	ping(&a);
	pthread_join(t, NULL);
	RIG_RC(0, a.failed,
	       "send, poll_recv and the wait of a thread that sleeps: a wake-up was lost");
	RIG_RC(0, b.failed,
	       "send, poll_recv and the wait of a thread that sleeps: a wake-up was lost");
	RIG_HOLDS(a.sleeps + b.sleeps > 0, "sleeps of two threads that wait for each other");
	rig_queue_close(there);
	rig_queue_close(back);
	if (edges) {
		close(a.epoll);
		close(b.epoll);
	}
}

static void ping_pong_of_sleepers(void)
{
	play_ping_pong(false);
}

static void ping_pong_of_sleepers_with_edge_triggered_fds(void)
{
	play_ping_pong(true);
}

struct flow {
	struct rig_queue *q;
	struct rig_memory *m;
	uint32_t total;
	int failed, over; /* over: set with __atomic, when `failed` does not change any more */
};

static void *stream(void *arg)
{
	struct flow *f = arg;

	for (uint64_t i = 0; i < f->total && !f->failed; i++) {
		uint64_t imm[7] = {i, ~i, i * 3, i * 5, i * 7, i * 11, i * 13};

		f->failed = send_in_time(f->q, imm, sizeof(imm), i % 16 ? GANTRY_SEND_MORE : 0);
	}
	rig.ops->flush(f->q->tx);
	return NULL;
}

/* One thread sends as fast as it can, the other thread takes the messages. */
static void stream_between_threads(void)
{
	uint64_t taken = 0, bad = 0, late = 0;
	uint32_t posts = rig.info.max_depth < 64 ? rig.info.max_depth : 64;
	struct flow f = {.total = rig_rounds(100000)};
	struct gantry_msg msgs[32];
	struct rig_queue *q;
	pthread_t t;

	rig_connect();
	f.q = q = rig_queue_open(&rig.b, &rig.a,
				 256 < rig.info.max_depth ? 256 : rig.info.max_depth, 0);
	rig_warm(q);
	rig_lend(q);
	RIG_OK(rig.ops->post_recv(q->rx, posts));
	TEST_ASSERT_EQUAL_INT(0, pthread_create(&t, NULL, stream, &f));
	while (taken < f.total && !rig_late(&late, 0)) {
		int n = rig.ops->poll_recv(q->rx, msgs, 32);

		for (int i = 0; i < n; i++, taken++) {
			uint64_t imm[7];

			memcpy(imm, msgs[i].imm, sizeof(imm));
			bad += imm[0] != taken || imm[1] != ~taken || imm[3] != taken * 5 ||
			       imm[6] != taken * 13;
		}
		if (n > 0) {
			rig.ops->post_recv(q->rx, (uint32_t)n);
			late = 0;
		} else {
			rig_turn();
			sched_yield();
		}
	}
	pthread_join(t, NULL);
	RIG_RC(0, f.failed, "send of another thread");
	RIG_NUM(f.total, taken, "messages that arrived");
	RIG_NUM(0, bad, "messages with wrong order or data");
	rig_queue_close(q);
}

static void *stream_region(void *arg)
{
	struct flow *f = arg;
	uint64_t cookies[SLOTS], late = 0;
	uint32_t free_slots = (1u << SLOTS) - 1, done = 0;

	for (uint32_t i = 0; done < f->total && !f->failed;) {
		int slot = __builtin_ffs((int)free_slots) - 1, rc = -EAGAIN, n;
		struct gantry_send send = {.length = SLOT_BYTES,
					   .region = &f->m->region,
					   .cookie = (uint64_t)slot,
					   .region_offset = (uint64_t)slot * SLOT_BYTES,
					   .imm = &i,
					   .imm_len = 4};

		if (slot >= 0 && i < f->total) {
			rig_fill(f->m->bytes + send.region_offset, SLOT_BYTES, i);
			rc = rig.ops->data->send(f->q->tx, &send, 0);
		}
		if (rc == 0) {
			free_slots &= ~(1u << slot);
			i++;
		}
		n = rig.ops->data->poll_send(f->q->tx, cookies, SLOTS);
		for (int k = 0; k < n; k++, done++)
			free_slots |= 1u << cookies[k]; /* the slot can be reused */
		f->failed = (rc && rc != -EAGAIN) || rig_late(&late, rc == 0 || n);
		sched_yield();
	}
	__atomic_store_n(&f->over, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* The sender overwrites a buffer after its completion; the receiver never sees the new data. */
static void region_buffers_are_reused_after_completion(void)
{
	struct flow f = {.total = rig_rounds(2000)};
	uint8_t *bufs = rig_local(SLOTS * SLOT_BYTES), *buf = bufs;
	struct gantry_token token;
	struct gantry_msg msg;
	struct rig_memory m;
	struct rig_queue *q;
	uint32_t taken = 0, bad = 0;
	uint64_t late = 0;
	pthread_t t;

	rig_need(RIG_DATA);
	rig_connect();
	rig_memory_open(&m, SLOTS * SLOT_BYTES, GANTRY_REMOTE_READ);
	RIG_OK(rig.ops->export_region(rig.a.conn, &m.region, GANTRY_REMOTE_READ, 1, &token));
	f.q = q = rig_queue_open(&rig.b, &rig.a, SLOTS, SLOT_BYTES);
	f.m = &m;
	rig_warm(q);
	rig_lend(q);
	for (unsigned i = 0; i < SLOTS; i++)
		RIG_OK(rig_post_data(q, bufs + (size_t)i * SLOT_BYTES, SLOT_BYTES, 0));
	TEST_ASSERT_EQUAL_INT(0, pthread_create(&t, NULL, stream_region, &f));
	/* run until all messages and all completions have arrived */
	while (!__atomic_load_n(&f.over, __ATOMIC_ACQUIRE) ||
	       (!f.failed && taken < f.total && !rig_late(&late, 0))) {
		if (rig.ops->poll_recv(q->rx, &msg, 1) != 1) {
			rig_turn();
			sched_yield();
			continue;
		}
		bad += msg.status != 0 || memcmp(msg.imm, &taken, 4) != 0 ||
		       !rig_filled(buf, SLOT_BYTES, taken);
		rig_post_data(q, buf, SLOT_BYTES, 0);
		buf = bufs + (size_t)(++taken % SLOTS) * SLOT_BYTES;
		late = 0;
	}
	pthread_join(t, NULL);
	RIG_RC(0, f.failed, "send of another thread");
	RIG_NUM(f.total, taken, "messages that arrived");
	RIG_NUM(0, bad, "messages with wrong order or data");
	rig_queue_close(q);
}

void thread_cases(void)
{
	RIG_CASE(ping_pong_of_sleepers);
	RIG_CASE(ping_pong_of_sleepers_with_edge_triggered_fds);
	RIG_CASE(stream_between_threads);
	RIG_CASE(region_buffers_are_reused_after_completion);
}
