/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fake/chain.h"
#include "unity.h"

#define MS 1000000u
#define KIB 1024u

static struct fake_host host;
static struct fake_chain chain, second;
static int has_second;
static uint8_t data[1 << 20];
static int alice, bob; /* owners */
/* the owners of the accepted descriptors, in order */
static const void *order[4096];
static unsigned n_order;
static uint64_t n_bytes;

static void note(struct gantry_io *io, void *arg)
{
	(void)arg;
	order[n_order++ % 4096] = io->owner;
	n_bytes += gantry_op_has_data(io->opcode) ? io->length : 0;
}

#define OPEN(...) \
	do { \
		TEST_ASSERT_EQUAL_INT( \
			0, fake_chain_stage(&chain, fake_plugin("qos"), \
					    fake_conf(fake_plugin("qos"), __VA_ARGS__, NULL))); \
		fake_chain_terminal(&chain); \
		chain.terminal.seen = note; \
	} while (0)

#define CHANGE(...) \
	do { \
		void *conf = fake_conf(fake_plugin("qos"), __VA_ARGS__, NULL); \
		fake_plugin("qos")->change(chain.stages[0].stage, conf); \
		free(conf); \
	} while (0)

void setUp(void)
{
	fake_host_init(&host, "test");
	fake_chain_init(&chain, &host);
	chain.lane.n_lanes = 2;
	has_second = 0;
	n_order = 0;
	n_bytes = 0;
}

void tearDown(void)
{
	if (has_second)
		chain.stages[0].ops->drain(second.stages[0].self, NULL);
	if (chain.n_stages)
		fake_drain(&chain, NULL);
	fake_chain_fini(&chain);
}

static void pass_up(void *self, struct gantry_io *io)
{
	(void)self;
	gantry_complete(io);
}

/* Start the stage of the chain on a second lane. */
static void open_second(void)
{
	const struct gantry_stage_ops *ops = chain.stages[0].ops;

	fake_chain_init(&second, &host);
	second.lane.index = 1;
	second.lane.n_lanes = 2;
	second.stages[0].ops = ops;
	TEST_ASSERT_EQUAL_INT(
		0, ops->start(chain.stages[0].stage, &second.lane, &second.stages[0].self));
	second.n_stages = 1;
	second.hops[second.n_hops++] = (struct gantry_hop){
		.submit = ops->submit, .complete = pass_up, .self = second.stages[0].self};
	fake_chain_terminal(&second);
	second.terminal.seen = note;
	has_second = 1;
}

static void advance(uint64_t ns)
{
	fake_advance(&chain.lane, ns);
	second.lane.now_ns = chain.lane.now_ns;
}

static struct gantry_io *submit_on(struct fake_chain *on, void *owner, unsigned opcode,
				   uint32_t length)
{
	struct gantry_io *io = fake_io(on, opcode, 0, length, length ? data : NULL);

	io->owner = owner;
	TEST_ASSERT_EQUAL_INT(0, fake_submit(io));
	return io;
}

static struct gantry_io *submit(void *owner)
{
	return submit_on(&chain, owner, GANTRY_OP_READ, 4 * KIB);
}

static struct gantry_io *submit_bytes(uint32_t length)
{
	return submit_on(&chain, &alice, GANTRY_OP_WRITE, length);
}

static uint64_t reported(const char *key)
{
	struct fake_report report;

	fake_chain_report(&chain, 0, &report);
	return fake_reported_u64(&report, key);
}

/* Advance to the time at which the stage wants to be polled, and poll it. */
static void run_next(void)
{
	const uint64_t wake = fake_wake_ns(&chain);

	TEST_ASSERT_TRUE(wake != 0);
	advance(wake > chain.lane.now_ns ? wake - chain.lane.now_ns : 0);
	fake_poll(&chain);
}

static void stage_without_limits_holds_nothing(void)
{
	OPEN("burst=1ms");
	for (unsigned i = 0; i < 1000; i++)
		TEST_ASSERT_FALSE(submit(&alice)->busy);
	TEST_ASSERT_EQUAL_UINT64(0, fake_wake_ns(&chain));
	TEST_ASSERT_EQUAL_UINT64(0, reported("delayed_ops"));
}

static void burst_passes_at_once_and_the_rest_at_the_rate(void)
{
	static const char *const limits[] = {"iops=1000", "session_iops=1000"};

	for (unsigned i = 0; i < 2; i++) {
		if (i != 0) {
			tearDown();
			setUp();
		}
		OPEN(limits[i], "burst=10ms");
		for (unsigned n = 0; n < 20; n++)
			submit(&alice);
		TEST_ASSERT_EQUAL_UINT(10, chain.terminal.n_accepted);
		for (unsigned n = 1; n <= 10; n++) {
			TEST_ASSERT_EQUAL_UINT64(chain.lane.now_ns + MS, fake_wake_ns(&chain));
			advance(MS - 1);
			TEST_ASSERT_EQUAL_INT(0, fake_poll(&chain));
			advance(1);
			TEST_ASSERT_EQUAL_INT(1, fake_poll(&chain));
			TEST_ASSERT_EQUAL_UINT(10 + n, chain.terminal.n_accepted);
		}
		TEST_ASSERT_EQUAL_UINT64(10, reported("delayed_ops"));
		/* a pause of 3 ms allows three IOs, a long one not more than the burst */
		advance(3 * MS);
		for (unsigned n = 0; n < 4; n++)
			submit(&alice);
		TEST_ASSERT_EQUAL_UINT(23, chain.terminal.n_accepted);
		advance(1000 * MS);
		fake_poll(&chain);
		for (unsigned n = 0; n < 20; n++)
			submit(&alice);
		/* and the held one */
		TEST_ASSERT_EQUAL_UINT(23 + 1 + 10, chain.terminal.n_accepted);
	}
}

static void slow_limit_allows_one_io_at_once(void)
{
	OPEN("iops=2", "burst=1ms");
	TEST_ASSERT_FALSE(submit(&alice)->busy);
	TEST_ASSERT_TRUE(submit(&alice)->busy);
	advance(500 * MS);
	TEST_ASSERT_EQUAL_INT(1, fake_poll(&chain));
}

static void bytes_are_counted(void)
{
	OPEN("bandwidth=1000KiB", "burst=100ms");
	/* the bucket has 100 KiB */
	TEST_ASSERT_FALSE(submit_bytes(64 * KIB)->busy);
	TEST_ASSERT_FALSE(submit_bytes(36 * KIB)->busy);
	TEST_ASSERT_TRUE(submit_bytes(10 * KIB)->busy);
	TEST_ASSERT_EQUAL_UINT64(chain.lane.now_ns + 10 * MS, fake_wake_ns(&chain));
	advance(10 * MS);
	TEST_ASSERT_EQUAL_INT(1, fake_poll(&chain));
	/* no bytes: nothing to wait for */
	TEST_ASSERT_FALSE(submit_on(&chain, &alice, GANTRY_OP_FLUSH, 0)->busy);
	TEST_ASSERT_FALSE(submit_on(&chain, &alice, GANTRY_OP_DISCARD, 1 << 20)->busy);
}

static void io_larger_than_the_burst_waits_for_all_its_bytes(void)
{
	OPEN("bandwidth=1000KiB", "burst=100ms");
	TEST_ASSERT_TRUE(submit_bytes(500 * KIB)->busy);
	TEST_ASSERT_TRUE(submit_bytes(100 * KIB)->busy);
	advance(400 * MS);
	TEST_ASSERT_EQUAL_INT(1, fake_poll(&chain));
	advance(100 * MS);
	TEST_ASSERT_EQUAL_INT(1, fake_poll(&chain));
}

static void all_limits_apply(void)
{
	OPEN("iops=1000", "session_bandwidth=1000KiB", "burst=10ms");
	TEST_ASSERT_FALSE(submit_bytes(10 * KIB)->busy);
	TEST_ASSERT_TRUE(submit_bytes(4 * KIB)->busy);
	/* the other session has bytes */
	TEST_ASSERT_FALSE(submit(&bob)->busy);
	advance(4 * MS);
	TEST_ASSERT_EQUAL_INT(1, fake_poll(&chain));
	TEST_ASSERT_EQUAL_UINT64(1, reported("delayed_ops"));
}

static void session_keeps_its_order(void)
{
	struct gantry_io *ios[8];

	OPEN("session_bandwidth=1000KiB", "burst=1ms");
	ios[0] = submit_bytes(64 * KIB);
	for (unsigned i = 1; i < 8; i++)
		ios[i] = i % 2 ? submit_on(&chain, &alice, GANTRY_OP_FLUSH, 0) : submit_bytes(512);
	for (unsigned i = 0; i < 1000 && chain.n_done < 8; i++)
		run_next();
	for (unsigned i = 0; i < 8; i++)
		TEST_ASSERT_EQUAL_PTR(ios[i], chain.done[i]);
}

static void session_over_its_limit_does_not_delay_another(void)
{
	OPEN("session_iops=1000", "iops=100000", "burst=1ms");
	for (unsigned i = 0; i < 20; i++)
		submit(&alice);
	TEST_ASSERT_EQUAL_UINT(1, chain.terminal.n_accepted);
	for (unsigned i = 0; i < 20; i++) {
		TEST_ASSERT_FALSE(submit(&bob)->busy);
		advance(MS);
		TEST_ASSERT_EQUAL_INT(i < 19 ? 1 : 0, fake_poll(&chain));
	}
}

static void sessions_take_turns(void)
{
	OPEN("iops=1000", "burst=1ms");
	for (unsigned i = 0; i < 31; i++)
		submit(&alice);
	for (unsigned i = 0; i < 5; i++)
		submit(&bob);
	for (unsigned i = 0; i < 12; i++) {
		advance(MS);
		TEST_ASSERT_EQUAL_INT(1, fake_poll(&chain));
	}
	/* the first one passed at once */
	for (unsigned i = 1; i <= 12; i++)
		TEST_ASSERT_EQUAL_PTR(i % 2 == 0 && i <= 10 ? &bob : &alice, order[i]);
}

static void new_io_does_not_take_the_tokens_of_a_held_one(void)
{
	struct gantry_io *held;

	OPEN("iops=1000", "session_iops=1000000", "burst=1ms");
	submit(&alice);
	held = submit(&alice);
	advance(MS);
	TEST_ASSERT_TRUE(submit(&bob)->busy);
	TEST_ASSERT_EQUAL_INT(1, fake_poll(&chain));
	TEST_ASSERT_FALSE(held->busy);
}

static void lanes_share_the_limit(void)
{
	unsigned before;

	OPEN("iops=1000", "burst=10ms");
	open_second();
	for (unsigned i = 0; i < 10; i++)
		submit(&alice);
	for (unsigned i = 0; i < 40; i++) {
		TEST_ASSERT_TRUE(submit(&alice)->busy);
		TEST_ASSERT_TRUE(submit_on(&second, &bob, GANTRY_OP_READ, 512)->busy);
	}
	before = n_order;
	for (unsigned i = 0; i < 40; i++) {
		advance(MS);
		fake_poll(&chain);
		fake_poll(&second);
	}
	TEST_ASSERT_EQUAL_UINT(40, n_order - before);
	/* also if one lane is always polled first */
	TEST_ASSERT_EQUAL_UINT(20, second.terminal.n_accepted);
}

static void lanes_share_the_limit_of_a_session(void)
{
	static const int session;

	OPEN("session_iops=1000", "burst=10ms");
	open_second();
	chain.hops[2].session = second.hops[2].session = &session;
	for (unsigned i = 0; i < 10; i++) {
		submit(&alice);
		submit_on(&second, &bob, GANTRY_OP_READ, 512);
	}
	TEST_ASSERT_EQUAL_UINT(10, n_order);
	for (unsigned i = 0; i < 10; i++) {
		advance(MS);
		fake_poll(&chain);
		fake_poll(&second);
	}
	TEST_ASSERT_EQUAL_UINT(20, n_order);
}

/*
 * 1 s of load on both lanes, more than the limit allows: one lane always has IOs, the other one has
 * one IO in 50 turns.
 */
static void uneven_load_of_two_lanes_gets_the_whole_rate(void)
{
	unsigned sent = 0;
	uint64_t end;

	OPEN("iops=1000000", "burst=1ms");
	open_second();
	end = host.now_ns + 1000u * MS;
	for (unsigned i = 0; host.now_ns < end; i++) {
		for (; sent - chain.n_done < 60; sent++)
			submit(&alice);
		if (i % 50 == 0 && second.n_done == second.terminal.n_accepted)
			submit_on(&second, &bob, GANTRY_OP_READ, 512);
		advance(20000);
		fake_poll(&chain);
		fake_poll(&second);
	}
	/* the rate, the burst, and what passed in the last turn */
	TEST_ASSERT_TRUE(n_order >= 1000900 && n_order <= 1001100);
	TEST_ASSERT_TRUE(second.n_done >= 980);
}

/* Tokens that an idle lane has taken in advance come back. */
static void idle_lane_returns_its_tokens(void)
{
	OPEN("iops=100000", "burst=1ms");
	open_second();
	submit(&alice); /* takes ten tokens in addition */
	TEST_ASSERT_EQUAL_UINT64(chain.lane.now_ns + MS, fake_wake_ns(&chain));
	while (!submit_on(&second, &bob, GANTRY_OP_READ, 512)->busy)
		;
	TEST_ASSERT_EQUAL_UINT(90, n_order);
	/* the bucket refills by 100, and the lane returns ten: no more than the burst */
	advance(MS);
	TEST_ASSERT_EQUAL_INT(0, fake_poll(&chain));
	TEST_ASSERT_EQUAL_UINT64(0, fake_wake_ns(&chain));
	TEST_ASSERT_EQUAL_INT(1, fake_poll(&second));
	while (!submit_on(&second, &bob, GANTRY_OP_READ, 512)->busy)
		;
	TEST_ASSERT_EQUAL_UINT(90 + 1 + 100, n_order);
}

static void limits_change_while_ios_wait(void)
{
	OPEN("iops=1", "session_iops=0");
	submit(&alice);
	for (unsigned i = 0; i < 10; i++)
		submit(&alice);
	TEST_ASSERT_EQUAL_UINT(1, n_order);
	/* an empty bucket of 100 IOs */
	CHANGE("iops=1000");
	fake_poll(&chain);
	TEST_ASSERT_EQUAL_UINT(1, n_order);
	advance(2 * MS);
	fake_poll(&chain);
	TEST_ASSERT_EQUAL_UINT(3, n_order);
	/* now the session limits; the first descriptor waits for the volume already */
	CHANGE("session_iops=1000", "burst=1ms");
	fake_poll(&chain);
	TEST_ASSERT_EQUAL_UINT(4, n_order);
	advance(MS);
	fake_poll(&chain);
	TEST_ASSERT_EQUAL_UINT(5, n_order);
	CHANGE("iops=0");
	fake_poll(&chain);
	TEST_ASSERT_EQUAL_UINT(11, n_order);
	TEST_ASSERT_EQUAL_UINT64(0, fake_wake_ns(&chain));
}

static void waiting_lane_wakes_up_for_a_change(void)
{
	OPEN("iops=1");
	submit(&alice);
	submit(&alice)->deadline_us = 0;
	TEST_ASSERT_EQUAL_UINT64(chain.lane.now_ns + 100 * MS, fake_wake_ns(&chain));
}

static void drain_cancels_the_ios_of_an_owner(void)
{
	struct gantry_io *of_alice, *of_bob;

	OPEN("session_iops=10", "iops=15", "burst=1ms");
	submit(&alice);
	submit(&bob);
	of_alice = submit(&alice);
	of_bob = submit(&bob);
	fake_drain(&chain, &alice);
	TEST_ASSERT_FALSE(of_alice->busy);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_CANCELED, of_alice->status);
	TEST_ASSERT_TRUE(of_bob->busy);
	fake_drain(&chain, NULL);
	TEST_ASSERT_FALSE(of_bob->busy);
	TEST_ASSERT_EQUAL_UINT64(3, reported("canceled_ops"));
	TEST_ASSERT_EQUAL_UINT(0, chain.n_stray);
	TEST_ASSERT_EQUAL_UINT(4, chain.n_done);
}

static void io_that_waits_until_its_deadline_is_canceled(void)
{
	struct gantry_io *first, *soon, *last;

	OPEN("iops=1", "burst=1ms");
	submit(&alice);
	first = submit(&alice);
	soon = fake_io(&chain, GANTRY_OP_READ, 0, 512, data);
	soon->deadline_us = 5000;
	soon->owner = &alice;
	TEST_ASSERT_EQUAL_INT(0, fake_submit(soon));
	last = submit(&alice);
	last->deadline_us = 0; /* none */
	TEST_ASSERT_EQUAL_UINT64(chain.lane.now_ns + 5 * MS, fake_wake_ns(&chain));
	advance(5 * MS);
	fake_poll(&chain);
	TEST_ASSERT_FALSE(soon->busy);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_CANCELED, soon->status);
	TEST_ASSERT_TRUE(first->busy);
	advance(995 * MS);
	fake_poll(&chain);
	TEST_ASSERT_FALSE(first->busy); /* its token and its deadline come at the same time */
	TEST_ASSERT_TRUE(last->busy || last->status == GANTRY_S_OK);
	advance(1000u * MS);
	fake_poll(&chain);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, last->status);
	TEST_ASSERT_EQUAL_UINT64(2, reported("expired_ops"));
}

static void busy_path_keeps_order_and_tokens(void)
{
	struct gantry_io *ios[3];

	OPEN("iops=1000", "session_iops=1000", "burst=1ms");
	for (unsigned i = 0; i < 3; i++)
		ios[i] = submit(&alice);
	chain.terminal.refuse = -EAGAIN;
	chain.terminal.n_refuse = 2;
	advance(MS);
	TEST_ASSERT_EQUAL_INT(0, fake_poll(&chain));
	TEST_ASSERT_EQUAL_INT(0, fake_poll(&chain));
	TEST_ASSERT_EQUAL_INT(1, fake_poll(&chain));
	TEST_ASSERT_FALSE(ios[1]->busy);
	TEST_ASSERT_TRUE(ios[2]->busy);
	advance(MS);
	chain.terminal.refuse = -ENOTCONN;
	chain.terminal.n_refuse = 1;
	fake_poll(&chain);
	TEST_ASSERT_FALSE(ios[2]->busy);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_SESSION_LOST, ios[2]->status);
}

/* A lane whose chain is full keeps its timer, although the first IO has its tokens. */
static void busy_path_keeps_the_timer(void)
{
	struct gantry_io *soon;

	OPEN("iops=1000", "burst=1ms");
	submit(&alice);
	submit(&alice);
	chain.terminal.refuse = -EAGAIN;
	chain.terminal.n_refuse = 100;
	advance(MS);
	TEST_ASSERT_EQUAL_INT(0, fake_poll(&chain));
	TEST_ASSERT_EQUAL_UINT64(chain.lane.now_ns + 100 * MS, fake_wake_ns(&chain));
	soon = fake_io(&chain, GANTRY_OP_READ, 0, 512, data);
	soon->deadline_us = 5000;
	soon->owner = &alice;
	TEST_ASSERT_EQUAL_INT(0, fake_submit(soon));
	TEST_ASSERT_EQUAL_UINT64(chain.lane.now_ns + 5 * MS, fake_wake_ns(&chain));
}

/* The lanes return tokens that they took after the buckets were copied for a new version. */
static void returned_tokens_do_not_underflow(void)
{
	OPEN("iops=100000", "burst=1ms");
	open_second();
	CHANGE("iops=100000", "session_iops=1000000", "burst=1ms");
	submit(&alice); /* takes ten tokens in addition */
	submit_on(&second, &bob, GANTRY_OP_READ, 512);
	advance(MS);
	fake_poll(&chain);
	fake_poll(&second);
	for (unsigned i = 0; i < 50; i++)
		TEST_ASSERT_FALSE(submit(&alice)->busy);
}

static void rejected_io_costs_nothing(void)
{
	OPEN("iops=1000", "session_iops=1000", "burst=1ms");
	chain.terminal.refuse = -EAGAIN;
	chain.terminal.n_refuse = 5;
	for (unsigned i = 0; i < 5; i++)
		TEST_ASSERT_EQUAL_INT(-EAGAIN,
				      fake_submit(fake_io(&chain, GANTRY_OP_READ, 0, 512, data)));
	TEST_ASSERT_FALSE(submit_on(&chain, &chain, GANTRY_OP_READ, 512)->busy);
	TEST_ASSERT_TRUE(submit_on(&chain, &chain, GANTRY_OP_READ, 512)->busy);
}

static void huge_and_tiny_limits_do_not_overflow(void)
{
	OPEN("iops=9223372036854775807", "bandwidth=9223372036854775807",
	     "session_iops=9223372036854775807", "session_bandwidth=9223372036854775807",
	     "burst=3600s");
	for (unsigned i = 0; i < 10000; i++) {
		TEST_ASSERT_FALSE(submit_bytes(UINT32_MAX)->busy);
		advance(1000);
	}
	CHANGE("bandwidth=1", "burst=1ms");
	fake_poll(&chain);
	submit_bytes(UINT32_MAX)->deadline_us = 0;
	submit_bytes(UINT32_MAX)->deadline_us = 0;
	for (unsigned i = 0; i < 1000; i++) {
		advance(3600000000000u);
		TEST_ASSERT_EQUAL_INT(0, fake_poll(&chain));
	}
	CHANGE("bandwidth=0");
	TEST_ASSERT_EQUAL_INT(2, fake_poll(&chain));
}

static void sessions_that_ended_are_forgotten(void)
{
	static char owners[5000];

	OPEN("session_iops=1000", "burst=1ms");
	for (unsigned i = 0; i < sizeof owners; i++) {
		TEST_ASSERT_FALSE(submit(&owners[i])->busy);
		TEST_ASSERT_TRUE(submit(&owners[i])->busy);
		advance(MS);
		TEST_ASSERT_EQUAL_INT(1, fake_poll(&chain));
	}
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(stage_without_limits_holds_nothing);
	RUN_TEST(burst_passes_at_once_and_the_rest_at_the_rate);
	RUN_TEST(slow_limit_allows_one_io_at_once);
	RUN_TEST(bytes_are_counted);
	RUN_TEST(io_larger_than_the_burst_waits_for_all_its_bytes);
	RUN_TEST(all_limits_apply);
	RUN_TEST(session_keeps_its_order);
	RUN_TEST(session_over_its_limit_does_not_delay_another);
	RUN_TEST(sessions_take_turns);
	RUN_TEST(new_io_does_not_take_the_tokens_of_a_held_one);
	RUN_TEST(lanes_share_the_limit);
	RUN_TEST(lanes_share_the_limit_of_a_session);
	RUN_TEST(uneven_load_of_two_lanes_gets_the_whole_rate);
	RUN_TEST(idle_lane_returns_its_tokens);
	RUN_TEST(limits_change_while_ios_wait);
	RUN_TEST(waiting_lane_wakes_up_for_a_change);
	RUN_TEST(drain_cancels_the_ios_of_an_owner);
	RUN_TEST(io_that_waits_until_its_deadline_is_canceled);
	RUN_TEST(busy_path_keeps_order_and_tokens);
	RUN_TEST(busy_path_keeps_the_timer);
	RUN_TEST(returned_tokens_do_not_underflow);
	RUN_TEST(rejected_io_costs_nothing);
	RUN_TEST(huge_and_tiny_limits_do_not_overflow);
	RUN_TEST(sessions_that_ended_are_forgotten);
	return UNITY_END();
}
