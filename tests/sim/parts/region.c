/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * parts/region.c - a region of shm-comch: exported, imported, read and written by the importer's
 * lane, and revoked meanwhile
 *
 *     control 0, lane 0   own the region; the lane sends messages that name it, then the control
 *                         thread revokes it
 *     control 1, lane 1   import it; the lane reads the data that messages name, and writes to the
 *                         region by an rma until it must stop
 *
 * After the event `revoked`, the owner writes another value to the region. From then on no access
 * of the importer may reach it. In a variant the owner destroys the producer first, and then writes
 * to the data that messages name: the importer must not get the new data as a message. The owner
 * may then export other memory, which replaces the first region at the importer, with another
 * generation.
 */
#include <string.h>

#include "comch_pair.h"

#define DATA 32u
#define MESSAGES 4u
#define HANDLE 7u
#define AFTER 0x5a5a5a5au
#define WRITTEN 0x11111111u
#define OTHER 0x22222222u
#define REGION_BYTES (2 * MESSAGES * DATA) /* the importer writes to the second half */

static struct {
	uint32_t n, n_writes; /* number of messages; of writes by the rma */
	bool holds;           /* the user of the importer's connection imports the region */
	/* the owner waits until all messages were received before it revokes the region */
	bool waits;
	bool again; /* the owner exports other memory afterwards */
	/* the producer is destroyed while messages are unread, and their data is changed */
	bool leaves;
	bool mixes;       /* messages with odd numbers carry their data, and must arrive */
	uint32_t imm_len; /* bytes of immediate data of each message */
} as;

static struct gantry_region region, second, *imported;
static struct gantry_token token;
static struct comch_producer *producer;
static struct comch_consumer *consumer;
static struct comch_rma *rma;
static uint8_t bufs[MESSAGES][DATA];
static uint32_t n_got, n_refused, n_withdrawn;
static bool exported, destroyed, ready0, ready1, idle0, idle1, may_stop1, stopped1, received,
	closed[2];

/*
 * Only a few plain accesses separate conflicting steps of the control thread and a lane. So plain
 * accesses are points in a third of the schedules, and threads change often.
 */
static void tune(struct sim_rates *rates)
{
	rates->plain_points = sim_draw(3) == 0;
	rates->switch_one_in = 2u << sim_draw(4);
	rates->forwards = true;
}

static void begin(void)
{
	as.n = sim_draw(8) != 0 ? 1 + sim_draw(MESSAGES) : 0;
	as.n_writes = sim_draw(4);
	as.holds = sim_draw(2);
	as.waits = sim_draw(4) == 0;
	as.again = sim_draw(2);
	as.leaves = !as.waits && sim_draw(2);
	as.mixes = sim_draw(2);
	/* GANTRY_IMM_MAX: the message needs a second slot */
	as.imm_len = sim_draw(2) ? GANTRY_IMM_MAX : 8;
	producer = NULL;
	consumer = NULL;
	rma = NULL;
	imported = NULL;
	n_got = n_refused = n_withdrawn = 0;
	exported = destroyed = ready0 = ready1 = idle0 = idle1 = may_stop1 = stopped1 = received =
		closed[0] = closed[1] = false;
	memset(bufs, 0, sizeof(bufs));
	pair_begin();
}

static void finish(unsigned side)
{
	part_set(&closed[side]);
	while (!closed[1 - side] || pair_has_frames(side)) {
		pair_wait(side, &closed[1 - side]);
		pair_turn(side);
	}
	comch_queues_free(&pair[side].conn);
	comch_regions_free(&pair[side].conn);
}

static void turn_until(unsigned side, const uint32_t *value)
{
	while (*value == 0) {
		pair_wait(side, NULL);
		pair_turn(side);
	}
}

static void turn_until_set(unsigned side, const bool *flag)
{
	while (!*flag) {
		pair_wait(side, flag);
		pair_turn(side);
	}
}

/* -- the owner -- */

static void fill(const struct gantry_region *of, uint32_t bytes, uint32_t word)
{
	for (uint32_t at = 0; at < bytes; at += 4)
		memcpy((uint8_t *)of->addr + at, &word, 4);
}

static void destroy_producer(void)
{
	comch_producer_destroy(producer);
	producer = NULL;
	part_set(&destroyed);
}

static void export_again(void)
{
	pair_region(&second, REGION_BYTES);
	fill(&second, REGION_BYTES, OTHER);
	PART_CHECK(comch_export(&pair[0].conn, &second, GANTRY_REMOTE_READ | GANTRY_REMOTE_WRITE,
				HANDLE, &token) == 0,
		   "a region cannot be exported again");
	turn_until_set(0, &idle1);
	pair[0].revoked = 0;
	PART_CHECK(comch_revoke(&pair[0].conn, HANDLE) == 0, "comch_revoke() fails");
	turn_until(0, &pair[0].revoked);
}

static void *control0(void *arg)
{
	turn_until(0, &pair[0].consumer_up);
	PART_CHECK(comch_producer_create(
			   &pair[0].conn, pair[0].consumer_up,
			   &(struct gantry_queue_attr){.depth = MESSAGES, .max_data = DATA},
			   (void **)&producer) == 0,
		   "a producer cannot be created");
	pair_region(&region, REGION_BYTES);
	for (uint32_t i = 0; i < MESSAGES; i++)
		for (uint32_t at = 0, word = 100 + i; at < DATA; at += 4)
			memcpy((uint8_t *)region.addr + i * DATA + at, &word, 4);
	PART_CHECK(comch_export(&pair[0].conn, &region, GANTRY_REMOTE_READ | GANTRY_REMOTE_WRITE,
				HANDLE, &token) == 0,
		   "a region cannot be exported");
	part_set(&exported);
	part_set(&ready0);
	turn_until_set(0, &idle0);
	if (as.waits)
		turn_until_set(0, &received);
	if (as.leaves) {
		destroy_producer();
		fill(&region, MESSAGES * DATA, AFTER);
	}
	PART_CHECK(comch_revoke(&pair[0].conn, HANDLE) == 0, "comch_revoke() fails");
	turn_until(0, &pair[0].revoked);
	fill(&region, REGION_BYTES, AFTER);
	if (as.again)
		export_again();
	if (!as.leaves) {
		turn_until_set(0, &received);
		destroy_producer();
	}
	finish(0);
	return arg;
}

/* Whether the ring holds the data of message i. */
static bool is_copied(uint32_t i)
{
	return as.mixes && i % 2 == 1;
}

static void *lane0(void *arg)
{
	uint64_t cookies[4];

	part_wait(&ready0);
	for (uint32_t i = 0; i < as.n;) {
		uint32_t words[GANTRY_IMM_MAX / 4];
		struct gantry_send s = {.imm = words,
					.imm_len = as.imm_len,
					.region = &region,
					.region_offset = i * DATA,
					.length = DATA,
					.cookie = i};
		int rc;

		for (uint32_t at = 0; at < GANTRY_IMM_MAX / 4; at++)
			words[at] = 100 + i;
		if (is_copied(i))
			s = (struct gantry_send){
				.imm = words, .imm_len = as.imm_len, .data = words, .length = DATA};
		rc = comch_send_data(producer, &s, 0);
		PART_CHECK(rc == 0 || rc == -EAGAIN, "a send fails");
		if (rc == 0) {
			i++;
		} else {
			comch_poll_send(producer, cookies, 4);
			part_spin();
		}
	}
	part_set(&idle0);
	return arg;
}

/* -- the importer -- */

static bool has_come(void)
{
	return pair[1].conn.imported[0].ref != 0;
}

static void *control1(void *arg)
{
	const struct gantry_queue_attr attr = {.depth = MESSAGES, .max_data = DATA};
	uint32_t id;
	int rc;

	PART_CHECK(comch_consumer_create(&pair[1].conn, &attr, &id, (void **)&consumer) == 0,
		   "a consumer cannot be created");
	PART_CHECK(comch_rma_create(&pair[1].conn, &attr, (void **)&rma) == 0,
		   "an rma cannot be created");
	if (as.holds) {
		turn_until_set(1, &exported);
		while (!has_come()) {
			pair_wait(1, NULL);
			pair_turn(1);
		}
		rc = comch_import(&pair[1].conn, &token, 1, &imported);
		/* -ENOENT: the owner has already revoked it */
		PART_CHECK(rc == 0 || rc == -ENOENT, "a region cannot be imported");
	}
	part_set(&ready1);
	if (imported) {
		turn_until(1, &pair[1].revoke);
		part_set(&may_stop1);
		turn_until_set(1, &stopped1);
		comch_release(&pair[1].conn, imported);
	}
	turn_until_set(1, &idle1);
	turn_until_set(1, &idle0);
	comch_rma_destroy(rma);
	rma = NULL;
	comch_consumer_destroy(consumer);
	finish(1);
	return arg;
}

static void take(const struct gantry_msg *m)
{
	const uint32_t first = n_got + n_withdrawn;
	uint32_t word;

	memcpy(&word, m->imm, sizeof(word));
	PART_CHECK(m->cookie == n_got && word >= 100 + first && word < 100 + as.n,
		   "a message is lost or delivered twice");
	PART_CHECK(m->imm_len == as.imm_len && message_is(m->imm, as.imm_len, word),
		   "a message is wrong");
	for (uint32_t i = first; i < word - 100; i++, n_withdrawn++)
		PART_CHECK(as.leaves && !is_copied(i), "a message is left out");
	if (m->status == -EFAULT) {
		PART_CHECK(!is_copied(word - 100), "a message with data needs a region");
		n_refused++;
	} else {
		PART_CHECK(m->status == 0 && m->length == DATA, "a message is rejected");
		PART_CHECK(message_is(bufs[n_got], DATA, word),
			   "the region was read after its revoke, or its producer's end");
	}
	n_got++;
}

static void write_once(uint32_t i)
{
	static const uint32_t from[DATA / 4] = {WRITTEN, WRITTEN, WRITTEN, WRITTEN,
						WRITTEN, WRITTEN, WRITTEN, WRITTEN};
	const struct gantry_rma op = {.op = GANTRY_RMA_WRITE,
				      .local = (void *)(uintptr_t)from,
				      .remote = imported,
				      .remote_offset = (MESSAGES + i % MESSAGES) * DATA,
				      .length = DATA,
				      .cookie = i};
	struct gantry_rma_done done;

	PART_CHECK(comch_rma_submit(rma, &op) == 0, "a write is rejected");
	PART_CHECK(comch_rma_poll(rma, &done, 1) == 1 && done.cookie == i && done.status == 0,
		   "a write fails");
}

static void *lane1(void *arg)
{
	struct gantry_msg m[2];
	uint32_t n_written = 0;
	bool has_all = false;

	part_wait(&ready1);
	for (uint32_t i = 0; i < MESSAGES; i++)
		PART_CHECK(
			comch_post_recv_data(
				consumer,
				&(struct gantry_recv){.buf = bufs[i], .length = DATA, .cookie = i},
				1) == 0,
			"a receive is rejected");
	while (!has_all || (imported && !stopped1)) {
		const bool is_last = as.leaves && destroyed; /* no message is in flight */
		int n = comch_poll_recv(consumer, m, 2);

		PART_CHECK(n >= 0, "a poll fails");
		for (int i = 0; i < n; i++)
			take(&m[i]);
		has_all = n_got + n_withdrawn == as.n || (is_last && n == 0);
		if (has_all && !received)
			part_set(&received);
		if (imported && !stopped1) {
			if (may_stop1)
				part_set(&stopped1);
			else if (n_written < as.n_writes)
				write_once(n_written++);
		}
		if (n == 0)
			part_spin();
	}
	if (!received)
		part_set(&received);
	part_set(&idle1);
	return arg;
}

static const char *check(void)
{
	for (uint32_t i = n_got + n_withdrawn; i < as.n; i++)
		if (!as.leaves || is_copied(i))
			return "a message is missing";
	if (as.waits && n_refused != 0)
		return "a message that arrived before the revoke has lost its region";
	if (!message_is(region.addr, REGION_BYTES, AFTER))
		return "the region was written to after it had been revoked";
	for (unsigned i = 0; i < 2; i++)
		if (pair[i].conn.imported_bytes != 0 || pair[i].conn.exported_bytes != 0)
			return "the count of imported or exported bytes is not 0";
	return NULL;
}

const struct part part_region = {.name = "region",
				 .steps = 50000,
				 .tune = tune,
				 .begin = begin,
				 .open = pair_open,
				 .threads = {control0, lane0, control1, lane1},
				 .check = check};
