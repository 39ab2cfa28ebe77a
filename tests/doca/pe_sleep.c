/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pe_sleep.c - an idle engine that shares its processor with a thread that never yields sleeps
 * until one of its queues signals an fd. If the engine yielded instead, that thread would run for a
 * whole time slice. The next message would wait for the end of the time slice.
 */
#include <poll.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "comch/comch_fast.h"
#include "comch_fast_rig.h"
#include "fake_ctx.h"
#include "engine/pe.h"

#define IDLE 128 /* idle rounds after which an engine yields its processor */

static struct doca_pe *pe;
static struct fake *fake;
static struct gd_ctx_ops ops; /* operations of the fake, with sleep_until_event */
static int bell, n_sleeps, n_rouses, n_run;
static bool is_busy;
static void (*meanwhile)(void); /* called when all queues are armed */
static struct gd_event event;

static int fake_sleep_until_event(struct doca_ctx *ctx, struct pollfd *fds, int max)
{
	(void)ctx;
	TEST_ASSERT_GREATER_THAN_INT(0, max);
	n_sleeps++;
	if (meanwhile)
		meanwhile();
	fds[0] = (struct pollfd){.fd = bell, .events = POLLIN};
	return is_busy ? -1 : 1;
}

static void fake_rouse(struct doca_ctx *ctx)
{
	(void)ctx;
	n_rouses++;
}

static void run(struct gd_event *e)
{
	(void)e;
	n_run++;
}

void setUp(void)
{
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_pe_create(&pe));
	fake = fake_create(pe, 0, NULL, NULL);
	ops = fake_ops;
	ops.sleep_until_event = fake_sleep_until_event;
	ops.rouse = fake_rouse;
	fake->ctx.ops = &ops;
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_ctx_start(&fake->ctx));
	bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	TEST_ASSERT_GREATER_OR_EQUAL_INT(0, bell);
	n_sleeps = n_rouses = n_run = 0;
	is_busy = false;
	meanwhile = NULL;
	event.run = run;
}

void tearDown(void)
{
	doca_ctx_stop(&fake->ctx);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, fake_destroy(fake));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_pe_destroy(pe));
	close(bell);
}

static void idle(void)
{
	for (int i = 0; i < IDLE; i++)
		TEST_ASSERT_EQUAL_UINT8(0, doca_pe_progress(pe));
}

static bool is_readable(int fd)
{
	return poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 0) == 1;
}

static void ring(void)
{
	TEST_ASSERT_EQUAL_INT(0, eventfd_write(bell, 1));
}

static void post(void)
{
	gd_pe_post(pe, &event);
}

static void test_idle_engine_sleeps_on_a_crowded_processor(void)
{
	pe->n_sleeps_left = 2;
	meanwhile = ring;
	idle();
	TEST_ASSERT_EQUAL_INT(1, n_sleeps);
	TEST_ASSERT_EQUAL_INT(1, n_rouses);
	TEST_ASSERT_EQUAL_UINT32(1, pe->n_sleeps_woken);
	TEST_ASSERT_EQUAL_UINT32(1, pe->n_sleeps_left);
	TEST_ASSERT_FALSE(atomic_load(&pe->armed));
}

static void test_event_ends_the_sleep_of_the_engine(void)
{
	pe->n_sleeps_left = 1;
	meanwhile = post;
	idle();
	TEST_ASSERT_EQUAL_UINT32(1, pe->n_sleeps_woken);
	TEST_ASSERT_EQUAL_UINT8(1, doca_pe_progress(pe));
	TEST_ASSERT_EQUAL_INT(1, n_run);
	/* the engine has cleared the signal of its fd, so the next wait does not see it */
	TEST_ASSERT_FALSE(is_readable(pe->fd));
}

static void test_pending_event_keeps_the_engine_awake(void)
{
	pe->n_sleeps_left = 1;
	for (int i = 0; i < IDLE - 1; i++)
		doca_pe_progress(pe);
	post();
	gd_pe_yield(pe);
	TEST_ASSERT_EQUAL_INT(0, n_sleeps);
	TEST_ASSERT_EQUAL_UINT8(1, doca_pe_progress(pe));
}

static void test_context_with_work_keeps_the_engine_awake(void)
{
	pe->n_sleeps_left = 1;
	is_busy = true;
	meanwhile = ring;
	idle();
	TEST_ASSERT_EQUAL_INT(1, n_sleeps);
	TEST_ASSERT_EQUAL_INT(1, n_rouses);
	TEST_ASSERT_EQUAL_UINT32(0, pe->n_sleeps_woken);
}

static void test_context_that_cannot_ring_keeps_the_engine_awake(void)
{
	ops.sleep_until_event = NULL;
	ops.arm = NULL;
	pe->n_sleeps_left = 1;
	post();
	doca_pe_progress(pe);
	idle();
	TEST_ASSERT_EQUAL_UINT32(0, pe->n_sleeps_woken);
	TEST_ASSERT_EQUAL_UINT32(0, n_sleeps);
}

/* If the program requests notification and sleeps itself, its request stays armed. */
static void test_notification_request_of_the_program_stays_armed(void)
{
	pe->n_sleeps_left = 1;
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_pe_request_notification(pe));
	idle();
	TEST_ASSERT_EQUAL_INT(0, n_sleeps);
	post();
	TEST_ASSERT_TRUE(is_readable(pe->fd));
	TEST_ASSERT_EQUAL_UINT8(1, doca_pe_progress(pe));
}

static void test_engine_without_contexts_does_not_sleep(void)
{
	struct doca_pe *other;

	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_pe_create(&other));
	other->n_sleeps_left = 1;
	for (int i = 0; i < IDLE; i++)
		TEST_ASSERT_EQUAL_UINT8(0, doca_pe_progress(other));
	TEST_ASSERT_EQUAL_UINT32(0, other->n_sleeps_woken);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_pe_destroy(other));
}

/* -- queues of Comch -- */

static struct side client, server;
static struct fast f, peer;

/* Let the context sleep; first consume rings of earlier events. */
static struct pollfd asleep(struct doca_ctx *ctx)
{
	struct pollfd fds[2];

	NEED(ctx->ops->sleep_until_event(ctx, fds, 0) == -1);
	for (ctx->ops->rouse(ctx);
	     ctx->ops->sleep_until_event(ctx, fds, 2) == 1 && is_readable(fds[0].fd);
	     ctx->ops->rouse(ctx))
		;
	return fds[0];
}

static void both_sides(void)
{
	struct doca_ctx *ctx, *producer;
	struct pollfd fd;

	fast_open_both(&f, &client, &peer, &server, 1 << 16);
	fast_add_consumer(&peer, FAST_TASKS);
	fast_start_consumer(&peer);
	fast_add_producer(&f, FAST_TASKS);
	ctx = doca_comch_consumer_as_ctx(peer.consumer);
	producer = doca_comch_producer_as_ctx(f.producer);
	NEED_OK(doca_ctx_start(producer));
	UNTIL(&client, client.n_new);
	f.to = client.consumer;
	fast_post(&peer, 0, 8192);
	fd = asleep(ctx);
	NEED(producer->ops->sleep_until_event(producer, NULL, 0) == 0);
	fast_send(&f, 0, 8192, NULL, 0);
	NEED(poll(&fd, 1, 10000) == 1);
	ctx->ops->rouse(ctx);
	NEED(ctx->ops->sleep_until_event(ctx, &fd, 1) == -1); /* a message is pending */
	NEED(producer->ops->sleep_until_event(producer, NULL, 0) ==
	     (f.producer->n_inflight ? -1 : 0));
	ctx->ops->rouse(ctx);
	UNTIL(&peer, peer.n_received == 1);
	UNTIL(&f, f.n_sent == 1);
	NEED(producer->ops->sleep_until_event(producer, NULL, 0) == 0);
	fast_close_both(&f, &peer);
}

static void test_message_wakes_a_sleeping_engine(void)
{
	rig_begin();
	rig_wait(rig_fork(both_sides), 0);
}

int main(void)
{
	rig_init();
	UNITY_BEGIN();
	RUN_TEST(test_idle_engine_sleeps_on_a_crowded_processor);
	RUN_TEST(test_event_ends_the_sleep_of_the_engine);
	RUN_TEST(test_pending_event_keeps_the_engine_awake);
	RUN_TEST(test_context_with_work_keeps_the_engine_awake);
	RUN_TEST(test_context_that_cannot_ring_keeps_the_engine_awake);
	RUN_TEST(test_notification_request_of_the_program_stays_armed);
	RUN_TEST(test_engine_without_contexts_does_not_sleep);
	RUN_TEST(test_message_wakes_a_sleeping_engine);
	rig_fini();
	return UNITY_END();
}
