/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * parts/bell.c - the doorbell of shm-comch: one or two producers, and a consumer that sleeps
 * whenever its rings are empty
 *
 * Variants: producer and consumer each use a fence, or the consumer calls membarrier(2); the
 * consumer drains the descriptor of the bell, or waits for it edge-triggered.
 */
#include <poll.h>
#include <sys/epoll.h>

#include "comch_lanes.h"

static uint32_t n_each, batch, more;
static struct lanes_attr attr;
static int epoll;

static void begin(void)
{
	attr = (struct lanes_attr){.n_rings = 1 + (sim_draw(4) == 0),
				   .n_slots = 8,
				   .depth = 1 + sim_draw(4),
				   .credit_batch = 1,
				   .membarrier = sim_draw(2),
				   .edges = sim_draw(2)};
	n_each = 2 + sim_draw(5) / attr.n_rings;
	batch = 1 + sim_draw(3);
	more = sim_draw(2);
	lanes_begin(&attr);
}

static void open_bell(void)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLET};

	lanes_open_bell();
	if (!attr.edges)
		return;
	epoll = epoll_create1(EPOLL_CLOEXEC);
	if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, lanes.consumer.bell, &event) != 0)
		sim_fail("no epoll");
}

static void produce(uint32_t ring)
{
	for (uint32_t i = 0; ring < attr.n_rings && i < n_each;) {
		int rc = lanes_send(ring, i, more && i % 3 != 2 ? GANTRY_SEND_MORE : 0);

		PART_CHECK(rc == 0 || rc == -EAGAIN, "a send fails");
		if (rc == 0)
			i++;
		else
			part_spin();
	}
	if (ring < attr.n_rings)
		comch_flush(&lanes.producers[ring]);
}

static void *produce_first(void *arg)
{
	produce(0);
	return arg;
}

static void *produce_second(void *arg)
{
	produce(1);
	return arg;
}

static void sleep_until_rung(void)
{
	struct epoll_event event;

	if (attr.edges)
		epoll_wait(epoll, &event, 1, -1);
	else
		poll(&(struct pollfd){.fd = lanes.consumer.bell, .events = POLLIN}, 1, -1);
}

static void *consume(void *arg)
{
	struct gantry_msg m[4];

	for (uint32_t i = 0; i < attr.depth; i++)
		lanes_post();
	while (lanes.n_taken < n_each * attr.n_rings) {
		int n = comch_poll_recv(&lanes.consumer, m, batch);

		PART_CHECK(n >= 0 && (uint32_t)n <= batch, "a poll returns too many");
		for (int i = 0; i < n; i++)
			lanes_take(&m[i]);
		for (int i = 0; i < n; i++)
			lanes_post();
		if (n == 0) {
			if (comch_consumer_arm(&lanes.consumer) == 0)
				sleep_until_rung();
			comch_consumer_disarm(&lanes.consumer);
		}
	}
	return arg;
}

static const char *check(void)
{
	for (uint32_t i = 0; i < attr.n_rings; i++)
		if (lanes.n_got[i] != n_each || lanes.in[i].position != lanes.producers[i].position)
			return "a message is missing";
	return NULL;
}

const struct part part_bell = {.name = "bell",
			       .steps = 20000,
			       .begin = begin,
			       .open = open_bell,
			       .threads = {produce_first, consume, produce_second},
			       .check = check};
