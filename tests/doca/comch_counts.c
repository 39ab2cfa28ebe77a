/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comch_counts.c - a consumer and its producers after more messages than 32 bits can count, and
 * after half of that number.
 */
#include "comch/comch_fast.h"
#include "comch_fast_rig.h"

static struct side s, c;
static struct fast f, peer; /* f: on the connection of the client; peer: of the server */

static void open_both(void)
{
	fast_open_both(&f, &c, &peer, &s, 1 << 16);
	fast_add_consumer(&peer, FAST_TASKS);
	fast_start_consumer(&peer);
	fast_add_producer(&f, FAST_TASKS);
	NEED_OK(doca_ctx_start(doca_comch_producer_as_ctx(f.producer)));
	UNTIL(&c, c.n_new);
	f.to = c.consumer;
}

/* Pass one message of data: a send without a posted receive returns AGAIN, then succeeds. */
static void pass_one(unsigned int n)
{
	const unsigned int before = peer.n_received;

	NEED_RESULT(DOCA_ERROR_AGAIN, fast_try_send(&f, 0, 100, NULL, 0));
	fast_post(&peer, 0, 100 + n);
	fast_send(&f, 0, 100, NULL, 0);
	UNTIL(&peer, peer.n_received == before + 1);
	NEED(peer.length == 100);
}

/* Simulate n_others messages from other producers to this consumer. */
static void late(uint32_t n_others)
{
	open_both();
	peer.consumer->n_posted = peer.consumer->n_used = n_others;
	fast_post(&peer, 0, 100);
	fast_send(&f, 0, 100, NULL, 0);
	UNTIL(&peer, peer.n_received == 1);
	NEED(peer.length == 100);
	/*
	 * The posted buffer is too short. The producer cannot know that: other producers have used
	 * receives, so it does not know which buffer its message will reach. So the receive fails,
	 * not the send.
	 */
	fast_post(&peer, 0, 50);
	fast_send(&f, 0, 100, NULL, 0);
	UNTIL(&f, f.n_sent == 2);
	UNTIL(&peer, peer.n_flushed == 1);
	NEED(f.n_failed == 0 && peer.recv_status == DOCA_ERROR_INVALID_VALUE);
	fast_close_both(&f, &peer);
}

static void late_at_half(void)
{
	late(1u << 31);
}

static void late_at_more_than_half(void)
{
	late(3u << 30);
}

static void producer_sends_although_others_have_sent_many_messages(void)
{
	rig_alone(late_at_half);
	rig_alone(late_at_more_than_half);
}

/* Set all counters to n, and the ring of the lengths of posted buffers as it is after n posts. */
static void go_on_from(uint32_t n)
{
	struct doca_comch_consumer *consumer = peer.consumer;

	fast_post(&peer, 0, 100);
	fast_send(&f, 0, 100, NULL, 0);
	UNTIL(&peer, peer.n_received == 1);
	consumer->n_posted = consumer->n_used = f.producer->target->n_sent = n;
	for (uint32_t post = n - GD_FAST_POSTS; post != n; post++)
		consumer->credits[post % GD_FAST_POSTS] = (uint64_t)(post + 1) << 32 | 7;
}

static void wrap(void)
{
	open_both();
	go_on_from(UINT32_MAX - 10);
	for (unsigned int i = 0; i < 40; i++)
		pass_one(i);
	NEED(peer.consumer->n_posted == 29 && peer.consumer->n_used == 29);
	fast_post(&peer, 0, 50);
	/* longer than the posted buffer: the callback of the send reports an error */
	NEED_OK(fast_try_send(&f, 0, 100, NULL, 0));
	UNTIL(&f, f.n_failed == 1);
	NEED(f.send_status == DOCA_ERROR_INVALID_VALUE);
	fast_close_both(&f, &peer);
}

static void producer_continues_when_counts_wrap(void)
{
	rig_alone(wrap);
}

int main(void)
{
	rig_init();
	UNITY_BEGIN();
	RUN_TEST(producer_sends_although_others_have_sent_many_messages);
	RUN_TEST(producer_continues_when_counts_wrap);
	rig_fini();
	return UNITY_END();
}
