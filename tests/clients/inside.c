/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A volume whose target runs in the same process, over the transport loop, with and without a
 * gateway. TSan builds run this test too.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <gantry/client.h>

#include "unity.h"

#define BLOCK 4096u
#define QUEUES 20u /* more than the default limit of a target, 16 lanes */
#define THREADS 3u
#define DEPTH 8u
#define BLOCKS 64u /* blocks of each thread */

static char file[64];
static struct gantry_volume *volume;

static void configure(const char *text)
{
	FILE *f = fopen(file, "we");

	TEST_ASSERT_NOT_NULL(f);
	fputs(text, f);
	fclose(f);
}

void setUp(void)
{
	int fd;

	setenv("GANTRY_PLUGIN_PATH", TEST_PLUGINDIR, 1);
	strcpy(file, "/tmp/gantry-inside.XXXXXX");
	fd = mkstemp(file);
	TEST_ASSERT_TRUE(fd >= 0);
	close(fd);
}

void tearDown(void)
{
	gantry_volume_close(&volume);
	unlink(file);
}

#define STORE \
	"store = { role = \"target\"; listen = { device = \"wire\"; name = \"disk\"; };\n" \
	"          backend = { type = \"memory\"; size = \"4MiB\"; }; };\n"

static const char direct[] =
	"devices = { wire = { transport = \"loop\"; }; };\nroles = {\n" STORE
	"load = { role = \"initiator\"; connect = { device = \"wire\"; name = \"disk\"; }; };\n};\n";

/*
 * A second target that the volume does not reach, with a backend that fails to open: the library
 * must not run it.
 */
static const char relayed[] =
	"devices = { wire = { transport = \"loop\"; }; };\nroles = {\n" STORE
	"bridge = { role = \"gateway\"; listen = { device = \"wire\"; name = \"volume0\"; }; stages = ( { type = \"stats\"; } );\n"
	"           connect = { device = \"wire\"; name = \"disk\"; }; };\n"
	"other = { role = \"target\"; listen = { device = \"wire\"; name = \"other\"; };\n"
	"          backend = { type = \"file\"; path = \"/nowhere/at/all\"; }; };\n"
	"load = { role = \"initiator\"; connect = { device = \"wire\"; name = \"volume0\"; }; };\n};\n";

/*
 * -- a thread with a queue: writes its blocks, then reads them, half of them in memory of the
 * volume --
 */

struct user {
	pthread_t thread;
	uint32_t index;
	struct gantry_queue *queue;
	unsigned n_done, n_failed, n_wrong;
	uint8_t ordinary[BLOCKS * BLOCK];
	int waits; /* the thread waits for the fd of its queue instead of polling */
};

static void done(void *arg, int result)
{
	struct user *u = arg;

	u->n_done++;
	u->n_failed += result != 0;
}

static uint8_t *buffer(struct user *u, uint32_t block)
{
	uint64_t bytes;
	uint8_t *shared = gantry_volume_buffers(volume, &bytes);

	return (block & 1 ? u->ordinary : shared + (uint64_t)u->index * BLOCKS * BLOCK) +
	       block * BLOCK;
}

static void fill(const struct user *u, uint8_t *at, uint32_t block)
{
	for (uint32_t i = 0; i < BLOCK; i += 4) {
		uint32_t word = (u->index << 24 | block << 12 | i) * 2654435761u;

		memcpy(at + i, &word, 4);
	}
}

static int is_filled(const struct user *u, const uint8_t *at, uint32_t block)
{
	uint8_t want[BLOCK];

	fill(u, want, block);
	return !memcmp(at, want, BLOCK);
}

static void wait_some(struct user *u)
{
	struct pollfd p = {.fd = gantry_queue_fd(u->queue), .events = POLLIN};

	if (!u->waits)
		gantry_queue_wait(u->queue, -1);
	else if (gantry_queue_arm(u->queue) || poll(&p, 1, 10000) == 1)
		gantry_queue_poll(u->queue);
}

static void pass(struct user *u, int writes)
{
	unsigned before = u->n_done;

	for (uint32_t i = 0; i < BLOCKS;) {
		uint64_t offset = ((uint64_t)u->index * BLOCKS + i) * BLOCK;
		uint8_t *at = buffer(u, i);
		int rc;

		if (writes)
			fill(u, at, i);
		else
			memset(at, 0, BLOCK);
		rc = writes ? gantry_queue_write(u->queue, at, BLOCK, offset, 0, done, u)
			    : gantry_queue_read(u->queue, at, BLOCK, offset, done, u);
		if (rc == -EAGAIN)
			wait_some(u);
		else
			i++;
		u->n_failed += rc && rc != -EAGAIN;
	}
	while (u->n_done - before < BLOCKS && !u->n_failed)
		wait_some(u);
}

static void *use(void *arg)
{
	struct user *u = arg;

	if (gantry_queue_open(volume, &u->queue)) {
		u->n_failed++;
		return NULL;
	}
	pass(u, 1);
	pass(u, 0);
	for (uint32_t i = 0; i < BLOCKS; i++)
		u->n_wrong += !is_filled(u, buffer(u, i), i);
	u->n_failed += gantry_queue_close(&u->queue) != 0;
	return NULL;
}

static void open_volume(void)
{
	struct gantry_volume_attr attr = GANTRY_VOLUME_ATTR_INIT;

	attr.queues = QUEUES;
	attr.depth = DEPTH;
	attr.copy_bytes = BLOCK;
	attr.buffer_bytes = THREADS * BLOCKS * BLOCK;
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, gantry_volume_open_role(file, "load", &attr, &volume),
				      gantry_error());
}

static void threads_read_what_they_wrote(void)
{
	static struct user users[THREADS];

	open_volume();
	for (uint32_t i = 0; i < THREADS; i++) {
		memset(&users[i], 0, sizeof(users[i]));
		users[i].index = i;
		users[i].waits = i == 0;
		TEST_ASSERT_EQUAL_INT(0, pthread_create(&users[i].thread, NULL, use, &users[i]));
	}
	for (uint32_t i = 0; i < THREADS; i++) {
		pthread_join(users[i].thread, NULL);
		TEST_ASSERT_EQUAL_UINT(2 * BLOCKS, users[i].n_done);
		TEST_ASSERT_EQUAL_UINT(0, users[i].n_failed);
		TEST_ASSERT_EQUAL_UINT(0, users[i].n_wrong);
	}
	TEST_ASSERT_EQUAL_INT(0, gantry_volume_close(&volume));
}

static void a_target_in_the_program(void)
{
	configure(direct);
	threads_read_what_they_wrote();
	threads_read_what_they_wrote(); /* repeat with new sessions */
}

static void gateway_and_target_run_in_the_program(void)
{
	configure(relayed);
	threads_read_what_they_wrote();
}

static unsigned n_fds(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/*
 * With mapped = false the target moves data through bounce buffers. It replies to its last reads
 * before it has polled the completions of these moves. It runs on the workers of the queues, which
 * no thread polls after gantry_queue_close(). So gantry_volume_close() polls them.
 */
static void queue_close_polls_the_peer_in_the_same_process(void)
{
	static struct user u;
	unsigned before = 0;

	configure(
		"devices = { wire = { transport = \"loop\"; mapped = false; }; };\nroles = {\n" STORE
		"load = { role = \"initiator\"; connect = { device = \"wire\"; name = \"disk\"; }; };\n};\n");
	for (uint32_t n = 1; n <= 20; n++) {
		struct gantry_volume_attr attr = GANTRY_VOLUME_ATTR_INIT;

		attr.copy_bytes = BLOCKS * BLOCK;
		TEST_ASSERT_EQUAL_INT(0, gantry_volume_open_role(file, "load", &attr, &volume));
		TEST_ASSERT_EQUAL_INT(0, gantry_queue_open(volume, &u.queue));
		u.n_done = u.n_failed = 0;
		for (uint32_t i = 0; i < n; i++)
			TEST_ASSERT_EQUAL_INT(
				0, gantry_queue_read(u.queue, u.ordinary, 65536, 0, done, &u));
		TEST_ASSERT_EQUAL_INT(0, gantry_queue_close(&u.queue));
		TEST_ASSERT_EQUAL_UINT(n, u.n_done);
		TEST_ASSERT_EQUAL_INT(0, gantry_volume_close(&volume));
		if (n > 1)
			TEST_ASSERT_EQUAL_UINT(before, n_fds());
		before = n_fds();
	}
}

static void open_fails_if_no_role_of_the_program_listens(void)
{
	configure(
		"devices = { wire = { transport = \"loop\"; }; };\nroles = {\n"
		"load = { role = \"initiator\"; connect = { device = \"wire\"; name = \"disk\"; }; };\n};\n");
	TEST_ASSERT_EQUAL_INT(-EINVAL, gantry_volume_open_role(file, "load", NULL, &volume));
	TEST_ASSERT_NOT_NULL(strstr(gantry_error(), "reaches only this process"));
	TEST_ASSERT_NOT_NULL(strstr(gantry_error(), ":3:"));
}

static void open_reports_why_a_target_in_the_program_cannot_start(void)
{
	configure(
		"devices = { wire = { transport = \"loop\"; }; };\nroles = {\n"
		"store = { role = \"target\"; listen = { device = \"wire\"; name = \"disk\"; };\n"
		"          backend = { type = \"file\"; path = \"/nowhere/at/all\"; }; };\n"
		"load = { role = \"initiator\"; connect = { device = \"wire\"; name = \"disk\"; }; };\n};\n");
	TEST_ASSERT_TRUE(gantry_volume_open_role(file, "load", NULL, &volume) < 0);
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(gantry_error(), "/nowhere/at/all"), gantry_error());
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(a_target_in_the_program);
	RUN_TEST(gateway_and_target_run_in_the_program);
	RUN_TEST(queue_close_polls_the_peer_in_the_same_process);
	RUN_TEST(open_fails_if_no_role_of_the_program_listens);
	RUN_TEST(open_reports_why_a_target_in_the_program_cannot_start);
	return UNITY_END();
}
