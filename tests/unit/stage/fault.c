/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake/chain.h"
#include "unity.h"

#define MS 1000000u

static struct fake_host host;
static struct fake_chain chain;
static uint8_t data[16384], before[16384];
static uint8_t seen[16384];
static uint32_t seen_length;

static void note(struct gantry_io *io, void *arg)
{
	(void)arg;
	seen_length = io->length;
	if (io->data && io->opcode == GANTRY_OP_WRITE)
		memcpy(seen, io->data, io->length);
}

#define OPEN(...) \
	do { \
		TEST_ASSERT_EQUAL_INT( \
			0, fake_chain_stage(&chain, fake_plugin("fault"), \
					    fake_conf(fake_plugin("fault"), __VA_ARGS__, NULL))); \
		fake_chain_terminal(&chain); \
		chain.terminal.seen = note; \
	} while (0)

void setUp(void)
{
	fake_host_init(&host, "test");
	fake_chain_init(&chain, &host);
	for (size_t i = 0; i < sizeof data; i++)
		before[i] = data[i] = (uint8_t)(i * 5 + 1);
}

void tearDown(void)
{
	fake_chain_fini(&chain);
}

static struct gantry_io *submit(unsigned opcode)
{
	struct gantry_io *io = fake_io(&chain, opcode, 0,
				       gantry_op_has_data(opcode) ? sizeof data : 0,
				       gantry_op_has_data(opcode) ? data : NULL);

	TEST_ASSERT_EQUAL_INT(0, fake_submit(io));
	return io;
}

static unsigned status_of(unsigned opcode)
{
	struct gantry_io *io = submit(opcode);

	TEST_ASSERT_FALSE(io->busy);
	return io->status;
}

static uint64_t reported(const char *key)
{
	struct fake_report report;

	fake_chain_report(&chain, 0, &report);
	return fake_reported_u64(&report, key);
}

/* Returns how many bits differ. */
static unsigned distance(const uint8_t *a, const uint8_t *b)
{
	unsigned n = 0;

	for (size_t i = 0; i < sizeof data; i++)
		n += (unsigned)__builtin_popcount(a[i] ^ b[i]);
	return n;
}

static void stage_without_options_changes_nothing(void)
{
	OPEN("seed=3");
	for (unsigned i = 0; i < 100; i++)
		TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, status_of(GANTRY_OP_WRITE));
	TEST_ASSERT_EQUAL_UINT(0, distance(data, before));
	TEST_ASSERT_EQUAL_UINT64(0, fake_wake_ns(&chain));
}

static void wrong_rates_are_refused(void)
{
	static const char *const wrong[] = {"drop_rate=",     "drop_rate=lots", "drop_rate=1x",
					    "drop_rate=101%", "drop_rate=-1%",  "drop_rate=1.5",
					    "drop_rate=nan"};
	const struct gantry_plugin *plugin = fake_plugin("fault");

	for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++)
		TEST_ASSERT_EQUAL_INT(-EINVAL, fake_chain_stage(&chain, plugin,
								fake_conf(plugin, wrong[i], NULL)));
	TEST_ASSERT_EQUAL_UINT(sizeof wrong / sizeof *wrong, host.n_logged[GANTRY_LOG_ERROR]);
	TEST_ASSERT_TRUE(fake_logged(&host, "drop_rate: \"lots\" is no rate"));
}

/*
 * Set a locale that writes numbers with a comma: one of the system, or a new one of localedef.
 * Returns false if neither is available.
 */
static int set_comma_locale(void)
{
	const char *tmp = getenv("TMPDIR");
	char dir[256], command[600];
	int found;

	if (setlocale(LC_NUMERIC, "de_DE.UTF-8"))
		return 1;
	snprintf(dir, sizeof dir, "%s/gantry-locale-XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(dir))
		return 0;
	setenv("LOCPATH", dir, 1);
	snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >%s/log 2>&1",
		 dir, dir);
	found = system(command) >= 0 && setlocale(LC_NUMERIC, "de_DE.UTF-8");
	snprintf(command, sizeof command, "rm -r %s", dir);
	return system(command) == 0 && found;
}

/* The program that loads the stage can have set a locale with a decimal comma. */
static void rates_are_the_same_in_all_locales(void)
{
	int found = set_comma_locale(), rc;

	if (found)
		TEST_ASSERT_EQUAL_STRING(",", localeconv()->decimal_point);
	rc = fake_chain_stage(&chain, fake_plugin("fault"),
			      fake_conf(fake_plugin("fault"), "drop_rate=0.5%", NULL));
	setlocale(LC_NUMERIC, "C");
	TEST_ASSERT_EQUAL_INT(0, rc);
	if (!found)
		TEST_IGNORE_MESSAGE("no locale with a comma, and localedef makes none");
}

static void delayed_io_continues_at_its_time(void)
{
	struct gantry_io *first, *second;

	OPEN("delay=2ms", "delay_rate=100%");
	first = submit(GANTRY_OP_READ);
	fake_advance(&chain.lane, MS);
	second = submit(GANTRY_OP_READ);
	TEST_ASSERT_EQUAL_UINT(0, chain.terminal.n_accepted);
	TEST_ASSERT_EQUAL_UINT64(chain.lane.now_ns + MS, fake_wake_ns(&chain));
	TEST_ASSERT_EQUAL_INT(0, fake_poll(&chain));
	fake_advance(&chain.lane, MS);
	TEST_ASSERT_EQUAL_INT(1, fake_poll(&chain));
	TEST_ASSERT_FALSE(first->busy);
	TEST_ASSERT_TRUE(second->busy);
	fake_advance(&chain.lane, MS);
	TEST_ASSERT_EQUAL_INT(1, fake_poll(&chain));
	TEST_ASSERT_FALSE(second->busy);
	TEST_ASSERT_EQUAL_UINT64(0, fake_wake_ns(&chain));
	TEST_ASSERT_EQUAL_UINT64(2, reported("delayed_ops"));
}

/* The time of the lane is that of its last turn, which can be long ago. */
static void delay_begins_when_the_io_arrives(void)
{
	OPEN("delay=2ms", "delay_rate=100%");
	host.now_ns += MS;
	submit(GANTRY_OP_READ);
	TEST_ASSERT_EQUAL_UINT64(host.now_ns + 2 * MS, fake_wake_ns(&chain));
}

static void delayed_io_waits_for_a_busy_path(void)
{
	OPEN("delay=1ms", "delay_rate=1");
	submit(GANTRY_OP_WRITE);
	submit(GANTRY_OP_WRITE);
	chain.terminal.refuse = -EAGAIN;
	chain.terminal.n_refuse = 2;
	fake_advance(&chain.lane, 2 * MS);
	fake_poll(&chain);
	fake_poll(&chain);
	TEST_ASSERT_EQUAL_UINT(0, chain.n_done);
	fake_poll(&chain);
	TEST_ASSERT_EQUAL_UINT(2, chain.n_done);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, chain.done[0]->status);
}

static void delayed_io_fails_when_the_path_rejects_it_for_good(void)
{
	struct gantry_io *io;

	OPEN("delay=1ms", "delay_rate=1");
	io = submit(GANTRY_OP_WRITE);
	chain.terminal.refuse = -ENODEV;
	chain.terminal.n_refuse = 1;
	fake_advance(&chain.lane, MS);
	fake_poll(&chain);
	TEST_ASSERT_FALSE(io->busy);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_IO, io->status);
	io = submit(GANTRY_OP_WRITE);
	/* SESSION_LOST, as without the delay: the client can resume the session */
	chain.terminal.refuse = -ENOTCONN;
	chain.terminal.n_refuse = 1;
	fake_advance(&chain.lane, MS);
	fake_poll(&chain);
	TEST_ASSERT_FALSE(io->busy);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_SESSION_LOST, io->status);
}

static void dropped_io_times_out_at_its_deadline(void)
{
	struct gantry_io *io, *soon;

	OPEN("drop_rate=100%");
	io = submit(GANTRY_OP_WRITE);
	soon = fake_io(&chain, GANTRY_OP_WRITE, 0, 4096, data);
	soon->deadline_us = 100;
	TEST_ASSERT_EQUAL_INT(0, fake_submit(soon));
	TEST_ASSERT_EQUAL_UINT64(chain.lane.now_ns + 100000, fake_wake_ns(&chain));
	fake_advance(&chain.lane, 100000);
	fake_poll(&chain);
	TEST_ASSERT_FALSE(soon->busy);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_TIMEOUT, soon->status);
	TEST_ASSERT_TRUE(io->busy);
	fake_advance(&chain.lane, 1000 * MS);
	fake_poll(&chain);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_TIMEOUT, io->status);
	TEST_ASSERT_EQUAL_UINT(2, chain.n_done);
	TEST_ASSERT_EQUAL_UINT(0, chain.terminal.n_accepted);
}

static void dropped_io_without_a_deadline_times_out_after_30_seconds(void)
{
	struct gantry_io *io;

	OPEN("drop_rate=100%");
	io = fake_io(&chain, GANTRY_OP_WRITE, 0, 4096, data);
	io->deadline_us = 0; /* IOs of an embedded role can have no deadline */
	TEST_ASSERT_EQUAL_INT(0, fake_submit(io));
	TEST_ASSERT_EQUAL_UINT64(chain.lane.now_ns + 30000ull * MS, fake_wake_ns(&chain));
	fake_poll(&chain);
	TEST_ASSERT_TRUE(io->busy);
	fake_advance(&chain.lane, 30000ull * MS);
	fake_poll(&chain);
	TEST_ASSERT_FALSE(io->busy);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_TIMEOUT, io->status);
}

static void drain_cancels_all_held_ios(void)
{
	OPEN("drop_nth=2", "delay_nth=3");
	chain.terminal.hold = 1;
	for (unsigned i = 0; i < 12; i++)
		submit(GANTRY_OP_READ);
	/* IOs 1, 5, 7, 11 are held; 2, 4, 6, 8, 10, 12 dropped; 3, 9 delayed */
	TEST_ASSERT_EQUAL_UINT(4, chain.terminal.n_held);
	fake_drain(&chain, NULL);
	TEST_ASSERT_EQUAL_UINT(8, chain.n_done);
	for (unsigned i = 0; i < 8; i++)
		TEST_ASSERT_EQUAL_UINT(GANTRY_S_CANCELED, chain.done[i]->status);
	TEST_ASSERT_EQUAL_UINT64(0, fake_wake_ns(&chain));
	while (chain.terminal.n_held)
		fake_finish(&chain, GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT(12, chain.n_done);
}

static void drain_of_one_owner_leaves_the_others(void)
{
	OPEN("delay=60s", "delay_nth=1");
	for (unsigned i = 0; i < 6; i++)
		/* the stage delays each IO */
		submit(GANTRY_OP_READ)->owner = i % 2 ? (void *)&chain : (void *)&host;
	fake_drain(&chain, &host);
	TEST_ASSERT_EQUAL_UINT(3, chain.n_done);
	for (unsigned i = 0; i < 3; i++)
		TEST_ASSERT_EQUAL_PTR(&host, chain.done[i]->owner);
	fake_drain(&chain, NULL);
	TEST_ASSERT_EQUAL_UINT(6, chain.n_done);
}

static void nth_fails_with_the_status_asked_for(void)
{
	OPEN("error_nth=3", "error=nospc");
	for (unsigned i = 1; i <= 9; i++)
		TEST_ASSERT_EQUAL_UINT(i % 3 ? GANTRY_S_OK : GANTRY_S_NOSPC,
				       status_of(GANTRY_OP_WRITE));
	TEST_ASSERT_EQUAL_UINT(6, chain.terminal.n_accepted);
	TEST_ASSERT_EQUAL_UINT64(3, reported("failed_ops"));
}

static void only_the_selected_operation_fails(void)
{
	OPEN("only=flush", "error_rate=100%");
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, status_of(GANTRY_OP_READ));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, status_of(GANTRY_OP_WRITE));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_IO, status_of(GANTRY_OP_FLUSH));
	TEST_ASSERT_EQUAL_UINT64(1, reported("seen_ops"));
}

static uint64_t history(const char *seed, int refuse)
{
	uint64_t hash = 0;

	fake_chain_init(&chain, &host);
	OPEN(seed, "error_rate=10%");
	chain.terminal.refuse = -EAGAIN;
	for (unsigned i = 0; i < 1000; i++) {
		struct gantry_io *io = fake_io(&chain, GANTRY_OP_WRITE, 0, 4096, data);

		chain.terminal.n_refuse = refuse && i % 3 == 0;
		while (gantry_submit(io))
			;
		hash = hash * 31 + io->status;
	}
	if (reported("failed_ops") < 60 || reported("failed_ops") > 140)
		TEST_FAIL_MESSAGE("10% of 1000 is about 100");
	fake_chain_fini(&chain);
	return hash;
}

static void same_seed_gives_the_same_faults(void)
{
	uint64_t seven = history("seed=7", 0);

	TEST_ASSERT_EQUAL_UINT64(seven, history("seed=7", 0));
	TEST_ASSERT_NOT_EQUAL(seven, history("seed=8", 0));
	/* the terminal rejects some submits */
	TEST_ASSERT_EQUAL_UINT64(seven, history("seed=7", 1));
}

static void rejected_io_gets_the_same_fault_when_it_is_submitted_again(void)
{
	struct gantry_io *io, copy;

	OPEN("corrupt_nth=1", "short_nth=1");
	chain.terminal.refuse = -EAGAIN;
	chain.terminal.n_refuse = 5;
	io = fake_io(&chain, GANTRY_OP_WRITE, 0, sizeof data, data);
	copy = *io;
	for (unsigned i = 0; i < 5; i++) {
		TEST_ASSERT_EQUAL_INT(-EAGAIN, gantry_submit(io));
		TEST_ASSERT_EQUAL_MEMORY(&copy, io, GANTRY_CACHE_LINE);
		TEST_ASSERT_EQUAL_MEMORY(before, data, sizeof data);
	}
	TEST_ASSERT_EQUAL_INT(0, gantry_submit(io));
	TEST_ASSERT_EQUAL_UINT64(1, reported("seen_ops"));
	TEST_ASSERT_EQUAL_UINT64(1, reported("corrupted_ops"));
}

static void corrupt_write_differs_below_and_not_above(void)
{
	OPEN("corrupt_rate=100%");
	chain.terminal.hold = 1;
	submit(GANTRY_OP_WRITE);
	TEST_ASSERT_EQUAL_UINT(1, distance(seen, before));
	fake_finish(&chain, GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT(0, distance(data, before));
	TEST_ASSERT_EQUAL_UINT64(1, reported("corrupted_ops"));
}

static void corrupt_read_differs_above(void)
{
	OPEN("corrupt_rate=100%");
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, status_of(GANTRY_OP_READ));
	TEST_ASSERT_EQUAL_UINT(1, distance(data, before));
}

static void corruption_needs_data(void)
{
	OPEN("corrupt_rate=100%");
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, status_of(GANTRY_OP_FLUSH));
	TEST_ASSERT_EQUAL_INT(0, fake_submit(fake_io(&chain, GANTRY_OP_WRITE, 0, 4096, NULL)));
	chain.terminal.status = GANTRY_S_IO;
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_IO, status_of(GANTRY_OP_READ));
	TEST_ASSERT_EQUAL_UINT(0, distance(data, before));
	TEST_ASSERT_EQUAL_UINT64(0, reported("corrupted_ops"));
}

static void short_io_does_half_and_fails(void)
{
	struct gantry_io *io;

	OPEN("short_rate=100%");
	io = submit(GANTRY_OP_READ);
	TEST_ASSERT_EQUAL_UINT(sizeof data / 2, seen_length);
	TEST_ASSERT_EQUAL_UINT(sizeof data, io->length);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_IO, io->status);
	TEST_ASSERT_EQUAL_INT(0, fake_submit(fake_io(&chain, GANTRY_OP_READ, 0, 4096, data)));
	TEST_ASSERT_EQUAL_UINT(4096, seen_length); /* too small to shorten */
	TEST_ASSERT_EQUAL_UINT64(2, reported("shortened_ops"));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, status_of(GANTRY_OP_FLUSH));
}

static void duplicate_reaches_the_guard_only(void)
{
	OPEN("duplicate_nth=2");
	for (unsigned i = 0; i < 10; i++)
		TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, status_of(GANTRY_OP_WRITE));
	TEST_ASSERT_EQUAL_UINT(10, chain.n_done);
	TEST_ASSERT_EQUAL_UINT(5, chain.n_stray);
	TEST_ASSERT_EQUAL_UINT64(5, reported("duplicated_ops"));
	TEST_ASSERT_EQUAL_PTR(&chain.hops[1], chain.ios[0].hop);
}

/*
 * The owner of the IO. It leaves the IO busy, as an owner does that submits the IO again inside the
 * first completion. A second completion must not arrive: it would clear `busy`, and the test would
 * fail.
 */
static void begin_again(void *self, struct gantry_io *io)
{
	(void)self;
	if (chain.n_done++ != 0)
		io->busy = 0;
}

static void descriptor_in_use_again_is_not_completed_twice(void)
{
	struct gantry_io *io;

	OPEN("duplicate_rate=100%");
	chain.hops[1].complete = begin_again;
	io = submit(GANTRY_OP_WRITE);
	TEST_ASSERT_EQUAL_UINT(1, chain.n_done);
	TEST_ASSERT_EQUAL_UINT(0, chain.n_stray);
	TEST_ASSERT_TRUE(io->busy);
	TEST_ASSERT_EQUAL_UINT64(1, reported("spared_ops"));
}

static void all_ios_after_a_disconnect_fail(void)
{
	OPEN("disconnect_after=3");
	for (unsigned i = 0; i < 3; i++)
		TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, status_of(GANTRY_OP_WRITE));
	for (unsigned i = 0; i < 5; i++)
		TEST_ASSERT_EQUAL_UINT(GANTRY_S_SESSION_LOST, status_of(GANTRY_OP_READ));
	TEST_ASSERT_EQUAL_UINT(3, chain.terminal.n_accepted);
	TEST_ASSERT_EQUAL_UINT64(5, reported("lost_ops"));
	TEST_ASSERT_EQUAL_UINT(1, host.n_logged[GANTRY_LOG_WARN]);
}

static void more_faults_than_the_limit_are_spared(void)
{
	OPEN("drop_rate=100%", "limit=2");
	for (unsigned i = 0; i < 5; i++)
		submit(GANTRY_OP_WRITE);
	TEST_ASSERT_EQUAL_UINT(3, chain.n_done);
	TEST_ASSERT_EQUAL_UINT64(3, reported("spared_ops"));
	fake_drain(&chain, NULL);
	TEST_ASSERT_EQUAL_UINT(5, chain.n_done);
	submit(GANTRY_OP_WRITE);
	TEST_ASSERT_EQUAL_UINT(5, chain.n_done);
	fake_drain(&chain, NULL);
}

/*
 * All kinds of faults together, with answers in any order: every IO completes once, and no buffer
 * of a write keeps a flipped bit.
 */
static void storm(void)
{
	unsigned n_sent = 0;

	OPEN("seed=11", "delay=50us", "delay_rate=20%", "drop_rate=5%", "error_rate=5%",
	     "short_rate=5%", "corrupt_rate=20%", "duplicate_rate=20%", "only=write");
	chain.terminal.hold = 1;
	while (n_sent < 20000) {
		while (n_sent - chain.n_done < 32 && n_sent < 20000) {
			submit(GANTRY_OP_WRITE)->deadline_us = 1000;
			n_sent++;
		}
		fake_advance(&chain.lane, 20000);
		fake_poll(&chain);
		for (unsigned i = 0; i < 8 && chain.terminal.n_held; i++)
			fake_finish(&chain, GANTRY_S_OK);
	}
	while (chain.terminal.n_held || fake_wake_ns(&chain)) {
		fake_advance(&chain.lane, 1000 * MS);
		fake_poll(&chain);
		while (chain.terminal.n_held)
			fake_finish(&chain, GANTRY_S_OK);
	}
	TEST_ASSERT_EQUAL_UINT(n_sent, chain.n_done);
	TEST_ASSERT_EQUAL_UINT64(reported("duplicated_ops"), chain.n_stray);
	TEST_ASSERT_EQUAL_UINT64(n_sent, reported("seen_ops"));
	TEST_ASSERT_EQUAL_MEMORY(before, data, sizeof data);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(stage_without_options_changes_nothing);
	RUN_TEST(wrong_rates_are_refused);
	RUN_TEST(rates_are_the_same_in_all_locales);
	RUN_TEST(delayed_io_continues_at_its_time);
	RUN_TEST(delay_begins_when_the_io_arrives);
	RUN_TEST(delayed_io_waits_for_a_busy_path);
	RUN_TEST(delayed_io_fails_when_the_path_rejects_it_for_good);
	RUN_TEST(dropped_io_times_out_at_its_deadline);
	RUN_TEST(dropped_io_without_a_deadline_times_out_after_30_seconds);
	RUN_TEST(drain_cancels_all_held_ios);
	RUN_TEST(drain_of_one_owner_leaves_the_others);
	RUN_TEST(nth_fails_with_the_status_asked_for);
	RUN_TEST(only_the_selected_operation_fails);
	RUN_TEST(same_seed_gives_the_same_faults);
	RUN_TEST(rejected_io_gets_the_same_fault_when_it_is_submitted_again);
	RUN_TEST(corrupt_write_differs_below_and_not_above);
	RUN_TEST(corrupt_read_differs_above);
	RUN_TEST(corruption_needs_data);
	RUN_TEST(short_io_does_half_and_fails);
	RUN_TEST(duplicate_reaches_the_guard_only);
	RUN_TEST(descriptor_in_use_again_is_not_completed_twice);
	RUN_TEST(all_ios_after_a_disconnect_fail);
	RUN_TEST(more_faults_than_the_limit_are_spared);
	RUN_TEST(storm);
	return UNITY_END();
}
