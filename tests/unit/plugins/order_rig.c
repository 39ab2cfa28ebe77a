/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>

#include "order_rig.h"
#include "unity.h"

#define ROUNDS 10000u
#define EACH 3u     /* messages of a round */
#define SPINS 2000u /* checks before a thread yields the processor */

static const struct order_ends *ends;
static uint8_t bufs[ORDER_POSTS][ORDER_DATA];
static uint32_t n_sent, n_ready; /* atomic: messages sent; rounds in which the consumer arms */
static uint32_t n_lost, n_wrong, n_failed, n_spins;

static void wait_a_little(uint32_t *spins)
{
	if (++*spins % n_spins == 0)
		sched_yield();
}

static void wait_for(const uint32_t *count, uint32_t n)
{
	uint32_t spins = 0;

	while ((int32_t)(__atomic_load_n(count, __ATOMIC_ACQUIRE) - n) < 0)
		wait_a_little(&spins);
}

/* Wait for a few ns per step, to vary the timing of the two threads. */
static void dawdle(uint32_t n)
{
	for (volatile uint32_t i = 0; i < n; i++)
		;
}

/*
 * Returns the length of the data of message n, so that messages take one slot, two, many, or one
 * slot and a few bytes of another.
 */
static uint32_t length_of(uint32_t n)
{
	static const uint32_t lengths[] = {0, 64, 0, 700, 0, 104};

	return lengths[n % 6];
}

static uint32_t imm_len_of(uint32_t n)
{
	return length_of(n) ? 8 : GANTRY_IMM_MAX;
}

static void *send_all(void *arg)
{
	uint32_t words[ORDER_DATA / 4], spins = 0;
	struct gantry_send s = {.imm = words};

	(void)arg;
	for (uint32_t n = 0; n < ROUNDS * EACH; n++) {
		for (uint32_t i = 0; i < ORDER_DATA / 4; i++)
			words[i] = n;
		s.imm_len = imm_len_of(n);
		s.length = length_of(n);
		s.data = s.length ? words : NULL;
		if (n % EACH == EACH - 1) {
			wait_for(&n_ready, n / EACH + 1);
			dawdle(n / EACH % 31);
		}
		while (ends->data->send(ends->producer, &s, 0) == -EAGAIN)
			wait_a_little(&spins);
		__atomic_store_n(&n_sent, n + 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

static void check(const void *bytes, uint32_t length, uint32_t n)
{
	for (uint32_t at = 0; at < length; at += 4)
		n_wrong += memcmp((const char *)bytes + at, &n, 4) != 0;
}

static void post(uint32_t n)
{
	struct gantry_recv recv = {.buf = bufs[n % ORDER_POSTS], .length = ORDER_DATA, .cookie = n};

	n_failed += ends->data->post_recv(ends->consumer, &recv, 1) != 0;
}

static void take(uint32_t n)
{
	struct gantry_msg msg;
	uint32_t spins = 0;

	while (ends->ops->poll_recv(ends->consumer, &msg, 1) == 0)
		wait_a_little(&spins);
	n_wrong += msg.status != 0 || msg.cookie != n || msg.imm_len != imm_len_of(n) ||
		   msg.length != length_of(n);
	check(msg.imm, msg.imm_len, n);
	check(bufs[n % ORDER_POSTS], msg.length, n);
	post(n + ORDER_POSTS);
}

/* Wait for the doorbell of message n. If n was sent without a doorbell, count it as lost. */
static void wait_for_bell(uint32_t n)
{
	struct pollfd fd = {.fd = ends->bell, .events = POLLIN};
	uint32_t spins = 0;

	for (;;) {
		uint32_t sent = __atomic_load_n(&n_sent, __ATOMIC_ACQUIRE);

		if (poll(&fd, 1, 0) > 0)
			return;
		if (sent > n) {
			n_lost++;
			return;
		}
		wait_a_little(&spins);
	}
}

static void take_all(void)
{
	for (uint32_t n = 0; n < ROUNDS * EACH; n += EACH) {
		take(n);
		take(n + 1);
		__atomic_store_n(&n_ready, n / EACH + 1, __ATOMIC_RELEASE);
		dawdle(n / EACH % 257);
		if (ends->ops->consumer_arm(ends->consumer) == 0) {
			wait_for_bell(n + 2);
			ends->ops->consumer_disarm(ends->consumer);
		}
		take(n + 2);
	}
}

/*
 * Returns whether the process has only one processor. Then the two threads never run at the same
 * time, and the test checks only the transfer.
 */
static bool is_alone(void)
{
	cpu_set_t cpus;

	return sched_getaffinity(0, sizeof(cpus), &cpus) == 0 && CPU_COUNT(&cpus) == 1;
}

void order_pass_all(const struct order_ends *e)
{
	pthread_t sender;

	ends = e;
	n_spins = is_alone() ? 1 : SPINS;
	n_sent = n_ready = n_lost = n_wrong = n_failed = 0;
	for (uint32_t n = 0; n < ORDER_POSTS; n++)
		post(n);
	TEST_ASSERT_EQUAL_INT(0, pthread_create(&sender, NULL, send_all, NULL));
	take_all();
	pthread_join(sender, NULL);
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(0, n_wrong, "a message was looked at before it was there");
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(
		0, n_lost, "the consumer sleeps, its message is there, and nobody has rung");
	TEST_ASSERT_EQUAL_UINT32_MESSAGE(0, n_failed, "a receive was refused");
}
