/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The gateway or the target is killed and restarted while a volume writes and reads. With `resume`,
 * no IO is lost, repeated or wrong, and the program sees no error. If the resume time expires, each
 * IO in flight fails exactly once.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <gantry/random.h>

#include "clients/served.h"
#include "unity.h"

#define BLOCK SERVED_BLOCK
#define BLOCKS 512u
#define DEPTH 16
#define FOR_EVER "{ type = \"fault\"; delay = \"1h\"; delay_rate = \"100%\"; }"

static struct gantry_volume *volume;
static struct gantry_queue *queue;

/* One IO at a time on a block, so that the block has the version of the last write. */
struct slot {
	struct served_io io;
	uint32_t block;
	int busy, reads;
	uint64_t own[BLOCK / 8], *data;
};

static struct slot slots[DEPTH];
static uint32_t versions[BLOCKS];
static uint8_t locked[BLOCKS];
static struct gantry_random chance;
static unsigned n_finished;

void setUp(void)
{
	memset(slots, 0, sizeof(slots));
	memset(versions, 0, sizeof(versions));
	memset(locked, 0, sizeof(locked));
	gantry_random_seed(&chance, 3);
	n_finished = 0;
	volume = NULL;
	queue = NULL;
}

void tearDown(void)
{
	served_finish(&queue, &volume);
}

static void serve(const struct served_options *options)
{
	struct gantry_volume_attr attr = GANTRY_VOLUME_ATTR_INIT;
	uint64_t bytes;
	uint8_t *shared;
	int rc;

	attr.depth = DEPTH;
	attr.buffer_bytes = (uint64_t)DEPTH * BLOCK;
	served_begin(options);
	served_start("store");
	served_start("bridge");
	rc = gantry_volume_open_role(served_file, "load", &attr, &volume);
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, rc, gantry_error());
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_open(volume, &queue));
	shared = gantry_volume_buffers(volume, &bytes);
	for (int i = 0; i < DEPTH; i++)
		slots[i].data = i % 2 ? slots[i].own
				      : (uint64_t *)(void *)(shared + (uint64_t)i * BLOCK);
}

static uint64_t word(uint32_t block, uint32_t i)
{
	return (uint64_t)versions[block] << 40 | (uint64_t)block << 16 | i;
}

static int issue(struct slot *s)
{
	uint64_t offset;

	s->block = (uint32_t)gantry_random_below(&chance, BLOCKS);
	if (locked[s->block])
		return 0;
	offset = (uint64_t)s->block * BLOCK;
	s->reads = versions[s->block] && gantry_random_below(&chance, 2);
	s->io.n = 0;
	s->busy = locked[s->block] = 1;
	if (s->reads) {
		memset(s->data, 0xee, BLOCK);
		return gantry_queue_read(queue, s->data, BLOCK, offset, served_done, &s->io);
	}
	versions[s->block]++;
	for (uint32_t i = 0; i < BLOCK / 8; i++)
		s->data[i] = word(s->block, i);
	return gantry_queue_write(queue, s->data, BLOCK, offset, 0, served_done, &s->io);
}

static void finish(struct slot *s)
{
	TEST_ASSERT_EQUAL_INT_MESSAGE(1, s->io.n, "completed twice");
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, s->io.result, "an IO failed");
	for (uint32_t i = 0; s->reads && i < BLOCK / 8; i++)
		TEST_ASSERT_EQUAL_HEX64_MESSAGE(word(s->block, i), s->data[i],
						"not what was written last");
	s->busy = locked[s->block] = 0;
	n_finished++;
}

/* Run until n more IOs have completed. */
static void run(unsigned n)
{
	uint64_t until = served_ms() + 60000;

	for (n += n_finished; n_finished < n;) {
		for (int i = 0; i < DEPTH; i++) {
			if (slots[i].busy && slots[i].io.n)
				finish(&slots[i]);
			if (!slots[i].busy)
				TEST_ASSERT_EQUAL_INT_MESSAGE(0, issue(&slots[i]), "refused");
		}
		gantry_queue_wait(queue, 1000);
		TEST_ASSERT_TRUE_MESSAGE(served_ms() < until, "it hangs");
	}
}

static void drain(void)
{
	while (gantry_queue_inflight(queue))
		gantry_queue_wait(queue, 1000);
	for (int i = 0; i < DEPTH; i++)
		if (slots[i].busy)
			finish(&slots[i]);
}

static void read_all(void)
{
	for (uint32_t block = 0; block < BLOCKS; block++) {
		if (!versions[block])
			continue;
		TEST_ASSERT_EQUAL_INT(
			0, served_read(queue, slots[1].own, BLOCK, (uint64_t)block * BLOCK));
		for (uint32_t i = 0; i < BLOCK / 8; i++)
			TEST_ASSERT_EQUAL_HEX64(word(block, i), slots[1].own[i]);
	}
}

static void test_client_resumes_after_the_gateway_is_killed(void)
{
	const struct served_options options = {.connect = "resume = \"50s\";"};

	serve(&options);
	for (int round = 0; round < 5; round++) {
		run(2000);
		served_kill("bridge", SIGKILL);
		served_start("bridge");
		run(200);
	}
	drain();
	read_all();
}

/* The target completes the IOs of the killed gateway before the new session begins. */
static void test_client_resumes_while_the_target_holds_ios_of_the_killed_gateway(void)
{
	const struct served_options options = {
		.connect = "resume = \"50s\";",
		.store_stages = "{ type = \"fault\"; delay = \"20ms\"; delay_rate = \"30%\"; }",
	};

	serve(&options);
	for (int round = 0; round < 3; round++) {
		run(100);
		served_kill("bridge", SIGKILL);
		served_start("bridge");
		run(50);
	}
	drain();
	read_all();
}

static void test_client_resumes_after_the_target_is_killed(void)
{
	struct served_options options = {.connect = "resume = \"50s\";"};
	char path[64], backend[256];

	snprintf(path, sizeof(path), "/tmp/gantry-clients-%d.img", (int)getpid());
	snprintf(backend, sizeof(backend),
		 "type = \"file\"; path = \"%s\"; create = true; size = \"16MiB\"; "
		 /* the killed target can hold the lock for a moment */
		 "lock_wait = \"30s\";",
		 path);
	options.backend = backend;
	serve(&options);
	for (int round = 0; round < 3; round++) {
		run(500);
		served_kill("store", SIGKILL);
		served_start("store");
		run(100);
	}
	drain();
	read_all();
	remove(path);
}

/*
 * The stage canceled an IO that it held, so the IO was never started: the client submits it again
 * without an error.
 */
static void test_client_resumes_after_the_target_stops_on_sigterm(void)
{
	struct served_options options = {.connect = "resume = \"50s\";", .store_stages = FOR_EVER};
	struct served_io ios[DEPTH];
	char path[64], backend[256];

	snprintf(path, sizeof(path), "/tmp/gantry-clients-%d.img", (int)getpid());
	snprintf(backend, sizeof(backend),
		 "type = \"file\"; path = \"%s\"; create = true; size = \"16MiB\";", path);
	options.backend = backend;
	memset(ios, 0, sizeof(ios));
	serve(&options);
	for (int i = 0; i < DEPTH; i++)
		TEST_ASSERT_EQUAL_INT(0,
				      gantry_queue_read(queue, slots[i].data, BLOCK,
							(uint64_t)i * BLOCK, served_done, &ios[i]));
	gantry_queue_poll(queue);
	served_kill("store", SIGTERM);
	options.store_stages = NULL;
	served_conf(&options);
	served_start("store");
	served_wait(queue, ios, DEPTH, DEPTH);
	for (int i = 0; i < DEPTH; i++)
		TEST_ASSERT_EQUAL_INT(0, ios[i].result);
	remove(path);
}

/* IOs fail before the volume reports the loss, so wait for it. */
static void expect_lost(int rc, const char *text)
{
	uint64_t until = served_ms() + 60000;

	do
		TEST_ASSERT_EQUAL_INT(rc, gantry_queue_flush(queue, served_done, NULL));
	while (!strstr(gantry_error(), text) && served_ms() < until);
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(gantry_error(), text), gantry_error());
}

static void test_ios_fail_when_the_resume_time_expires(void)
{
	const struct served_options options = {
		.connect = "resume = \"300ms\";",
		.store_stages = FOR_EVER,
	};
	struct served_io ios[DEPTH];

	memset(ios, 0, sizeof(ios));
	serve(&options);
	for (int i = 0; i < DEPTH; i++)
		TEST_ASSERT_EQUAL_INT(0,
				      gantry_queue_read(queue, slots[i].data, BLOCK,
							(uint64_t)i * BLOCK, served_done, &ios[i]));
	gantry_queue_poll(queue);
	served_kill("bridge", SIGKILL);
	served_wait(queue, ios, DEPTH, DEPTH);
	for (int i = 0; i < DEPTH; i++)
		TEST_ASSERT_EQUAL_INT(-ENOTCONN, ios[i].result);
	expect_lost(-ENOTCONN, "not resumed within 300 ms");
}

static void test_resume_to_another_volume_fails(void)
{
	const struct served_options options = {.connect = "resume = \"50s\";"};
	const struct served_options other = {.backend = "type = \"memory\"; size = \"8MiB\";"};
	struct served_io io = {0, 1};

	serve(&options);
	served_kill("bridge", SIGKILL);
	served_kill("store", SIGKILL);
	TEST_ASSERT_EQUAL_INT(0,
			      gantry_queue_read(queue, slots[0].data, BLOCK, 0, served_done, &io));
	served_conf(&other);
	served_start("store");
	served_start("bridge");
	served_wait(queue, &io, 1, 1);
	TEST_ASSERT_EQUAL_INT(-ESTALE, io.result);
	expect_lost(-ESTALE, "another ");
}

/* -- the program closes while the session resumes -- */

static const struct served_options long_resume = {
	.connect = "resume = \"10m\"; timeout = \"10m\"; control_timeout = \"10m\";"};

/* Submit as many IOs as the queue holds; no peer answers them. */
static void wait_for_resume(struct served_io *ios)
{
	memset(ios, 0, DEPTH * sizeof(*ios));
	serve(&long_resume);
	served_kill("bridge", SIGKILL);
	for (int i = 0; i < DEPTH; i++)
		TEST_ASSERT_EQUAL_INT(0,
				      gantry_queue_read(queue, slots[i].data, BLOCK,
							(uint64_t)i * BLOCK, served_done, &ios[i]));
	gantry_queue_poll(queue);
	TEST_ASSERT_EQUAL_UINT32(DEPTH, gantry_queue_inflight(queue));
}

static void expect_failed(const struct served_io *ios)
{
	for (int i = 0; i < DEPTH; i++) {
		TEST_ASSERT_EQUAL_INT(1, ios[i].n);
		TEST_ASSERT_EQUAL_INT(-ENOTCONN, ios[i].result);
	}
}

static void test_program_can_cancel_the_resume(void)
{
	struct served_io ios[DEPTH];

	wait_for_resume(ios);
	TEST_ASSERT_EQUAL_INT(0, gantry_volume_give_up(volume));
	TEST_ASSERT_EQUAL_INT(0, gantry_volume_give_up(volume));
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_close(&queue));
	expect_failed(ios);
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_open(volume, &queue));
	/*
	 * the text also has "; given up" if the control thread had noticed the loss before it
	 * handled gantry_volume_give_up()
	 */
	expect_lost(-ENOTCONN, "the peer is gone");
	TEST_ASSERT_EQUAL_INT(0, gantry_volume_give_up(volume));
}

static void *give_up(void *arg)
{
	(void)arg;
	return gantry_volume_give_up(volume) ? arg : NULL;
}

static void test_another_thread_can_cancel_the_resume_during_queue_close(void)
{
	struct served_io ios[DEPTH];
	void *failed = ios;
	pthread_t thread;

	wait_for_resume(ios);
	TEST_ASSERT_EQUAL_INT(0, pthread_create(&thread, NULL, give_up, ios));
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_close(&queue));
	pthread_join(thread, &failed);
	TEST_ASSERT_NULL(failed);
	expect_failed(ios);
	TEST_ASSERT_EQUAL_INT(0, gantry_volume_close(&volume));
}

static void test_canceling_the_resume_keeps_an_open_session(void)
{
	serve(&long_resume);
	run(100);
	TEST_ASSERT_EQUAL_INT(0, gantry_volume_give_up(volume));
	run(100);
	drain();
	read_all();
	served_kill("bridge", SIGKILL);
	while (served_read(queue, slots[1].own, BLOCK, 0) == 0)
		;
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, served_read(queue, slots[1].own, BLOCK, 0));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_client_resumes_after_the_gateway_is_killed);
	RUN_TEST(test_client_resumes_while_the_target_holds_ios_of_the_killed_gateway);
	RUN_TEST(test_client_resumes_after_the_target_is_killed);
	RUN_TEST(test_client_resumes_after_the_target_stops_on_sigterm);
	RUN_TEST(test_ios_fail_when_the_resume_time_expires);
	RUN_TEST(test_resume_to_another_volume_fails);
	RUN_TEST(test_program_can_cancel_the_resume);
	RUN_TEST(test_another_thread_can_cancel_the_resume_during_queue_close);
	RUN_TEST(test_canceling_the_resume_keeps_an_open_session);
	return UNITY_END();
}
