/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * parts/credit.c - the credit of shm-comch: the producer sends more messages than there are
 * receives and slots, and the consumer announces credit in batches
 *
 * The producer polls for credit without a bell, as a lane does; the consumer never sleeps.
 */
#include "comch_lanes.h"

static uint32_t n, batch, holds;
static struct lanes_attr attr;

static void begin(void)
{
	attr = (struct lanes_attr){.n_rings = 1,
				   .n_slots = 4u << sim_draw(2),
				   .depth = 1 + sim_draw(6),
				   .membarrier = true};
	attr.credit_batch = 1 + sim_draw((attr.depth + 1) / 2);
	n = 6 + sim_draw(5);
	batch = 1 + sim_draw(4);
	holds = sim_draw(3); /* used receives that the consumer posts only after an empty poll */
	lanes_begin(&attr);
}

static void *produce(void *arg)
{
	struct comch_producer *p = &lanes.producers[0];

	for (uint32_t i = 0; i < n;) {
		int rc = lanes_send(0, i, i % 3 != 2 ? GANTRY_SEND_MORE : 0);

		PART_CHECK(rc == 0 || rc == -EAGAIN, "a send fails");
		PART_CHECK((int32_t)(p->limit - lanes.n_posted) <= 0, "more credit than receives");
		if (rc == 0)
			i++;
		else
			part_spin();
	}
	comch_flush(p);
	return arg;
}

static void *consume(void *arg)
{
	struct gantry_msg m[4];

	while (lanes.n_posted < attr.depth)
		lanes_post();
	while (lanes.n_taken < n) {
		int got = comch_poll_recv(&lanes.consumer, m, batch);

		PART_CHECK(got >= 0 && (uint32_t)got <= batch, "a poll returns too many");
		for (int i = 0; i < got; i++)
			lanes_take(&m[i]);
		while (lanes.n_taken + attr.depth > lanes.n_posted + (got != 0 ? holds : 0))
			lanes_post();
		if (got == 0)
			part_spin();
	}
	while (lanes.n_taken + attr.depth > lanes.n_posted)
		lanes_post();
	PART_CHECK(comch_poll_recv(&lanes.consumer, m, batch) == 0, "a message is delivered twice");
	return arg;
}

static const char *check(void)
{
	const struct comch_producer *p = &lanes.producers[0];
	const uint64_t all = comch_credit_pack((uint32_t)p->position, n + attr.depth);

	return lanes.n_got[0] != n                ? "a message is missing"
	       : lanes.page.ring[0].credit != all ? "credit is lost"
						  : NULL;
}

const struct part part_credit = {.name = "credit",
				 .steps = 100000,
				 .begin = begin,
				 .open = lanes_open_bell,
				 .threads = {produce, consume},
				 .check = check};
