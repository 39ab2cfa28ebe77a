/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several queues on several threads, with a target on yet another thread of this process; for the
 * thread sanitizer too.
 */
#include <errno.h>
#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <gantry/client.h>
#include <gantry/random.h>

#include "base/event_loop.h"
#include "topology/topology.h"
#include "unity.h"

#define BLOCK 4096u
#define THREADS 4
#define DEPTH 8u
#define OPS 1500
#define BLOCKS (4096u / THREADS) /* blocks of each thread */

static char dir[64], file[96];

/* -- the target: a separate topology -- */

static struct gn_topology topology;
static struct gn_loop *loop;
static pthread_t server;

static void finished(void *arg, struct gn_topo_role *role)
{
	(void)arg;
	(void)role;
	gn_loop_quit(loop, 0);
}

static void *serve(void *arg)
{
	(void)arg;
	gn_loop_run(loop);
	gn_topology_close(&topology);
	gn_loop_destroy(&loop);
	return NULL;
}

static void stop(void *arg)
{
	(void)arg;
	for (uint32_t i = 0; i < topology.n_roles; i++)
		if (topology.roles[i].role)
			gn_role_stop(topology.roles[i].role);
}

static struct gn_topology_args args;

void setUp(void)
{
	struct gn_errs errs = {0};
	FILE *f;

	setenv("GANTRY_PLUGIN_PATH", TEST_PLUGINDIR, 1);
	strcpy(dir, "/tmp/gantry-threads.XXXXXX");
	TEST_ASSERT_NOT_NULL(mkdtemp(dir));
	snprintf(file, sizeof(file), "%s/threads.conf", dir);
	f = fopen(file, "we");
	TEST_ASSERT_NOT_NULL(f);
	fprintf(f,
		"devices = { wire = { transport = \"shm-comch\"; dir = \"%s\"; }; };\nroles = {\n"
		"store = { role = \"target\"; listen = { device = \"wire\"; name = \"store\"; };\n"
		"          backend = { type = \"memory\"; size = \"16MiB\"; }; };\n"
		"load = { role = \"initiator\"; connect = { device = \"wire\"; name = \"store\"; }; };\n};\n",
		dir);
	fclose(f);
	memset(&topology, 0, sizeof(topology));
	args = (struct gn_topology_args){.verbose = 0};
	gn_strlist_add(&args.roles, "store");
	TEST_ASSERT_EQUAL_INT(0, gn_topology_load(&topology, file, &args, &errs));
	loop = gn_loop_create();
	topology.role_finished = finished;
	TEST_ASSERT_EQUAL_INT(0, gn_topology_open(&topology, loop));
	TEST_ASSERT_EQUAL_INT(0, gn_topology_start(&topology));
	TEST_ASSERT_EQUAL_INT(0, pthread_create(&server, NULL, serve, NULL));
}

static void stop_server(void)
{
	if (!server)
		return;
	gn_loop_must_post(loop, stop, NULL);
	pthread_join(server, NULL);
	server = 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

void tearDown(void)
{
	stop_server();
	gn_strlist_fini(&args.roles);
	TEST_ASSERT_EQUAL_INT(0, nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS));
}

/* -- a thread with a queue: checked random reads and writes in its part of the volume -- */

struct user {
	struct gantry_volume *volume;
	pthread_t thread;
	uint32_t index;
	unsigned n_done, n_wrong, n_failed;
	int rc, lost; /* lost: errors are expected */
	uint32_t versions[BLOCKS];
	uint8_t busy[BLOCKS];
};

struct io {
	struct user *user;
	uint32_t block;
	int busy, reads;
	uint64_t data[BLOCK / 8];
};

static uint64_t content(const struct user *user, uint32_t block)
{
	return (uint64_t)user->versions[block] << 32 | (user->index * BLOCKS + block);
}

static void done(void *arg, int result)
{
	struct io *io = arg;
	struct user *user = io->user;

	user->n_done++;
	user->n_failed += result != 0;
	for (uint32_t i = 0; result == 0 && io->reads && user->versions[io->block] && i < BLOCK / 8;
	     i++)
		user->n_wrong += io->data[i] != content(user, io->block);
	user->busy[io->block] = 0;
	io->busy = 0;
}

static int issue(struct gantry_queue *queue, struct io *io, uint32_t block, int reads)
{
	struct user *user = io->user;
	uint64_t offset = (uint64_t)(user->index * BLOCKS + block) * BLOCK;

	io->block = block;
	io->reads = reads;
	if (reads)
		return gantry_queue_read(queue, io->data, BLOCK, offset, done, io);
	user->versions[block]++;
	for (uint32_t i = 0; i < BLOCK / 8; i++)
		io->data[i] = content(user, block);
	return gantry_queue_write(queue, io->data, BLOCK, offset, 0, done, io);
}

static int fill(struct gantry_queue *queue, struct user *user, struct io *ios,
		struct gantry_random *random)
{
	for (unsigned i = 0; i < DEPTH; i++) {
		uint32_t block = (uint32_t)gantry_random_below(random, BLOCKS);
		int rc;

		if (ios[i].busy || user->busy[block])
			continue;
		rc = issue(queue, &ios[i], block, (int)gantry_random_below(random, 2));
		if (rc)
			return rc;
		ios[i].busy = user->busy[block] = 1;
	}
	return 0;
}

static void *use(void *arg)
{
	struct user *user = arg;
	struct gantry_queue *queue;
	struct io *ios = calloc(DEPTH, sizeof(*ios));
	struct gantry_random random;
	int rc = gantry_queue_open(user->volume, &queue);

	gantry_random_seed(&random, user->index);
	for (unsigned i = 0; i < DEPTH; i++)
		ios[i].user = user;
	while (!rc && (user->lost || user->n_done < OPS)) {
		rc = fill(queue, user, ios, &random);
		gantry_queue_wait(queue, 1000);
	}
	user->rc = rc;
	if (queue)
		gantry_queue_close(&queue);
	free(ios);
	return NULL;
}

static struct user users[THREADS];

static void start_users(struct gantry_volume *volume, int lost)
{
	memset(users, 0, sizeof(users));
	for (uint32_t i = 0; i < THREADS; i++) {
		users[i].volume = volume;
		users[i].index = i;
		users[i].lost = lost;
		TEST_ASSERT_EQUAL_INT(0, pthread_create(&users[i].thread, NULL, use, &users[i]));
	}
}

static struct gantry_volume *open_volume(void)
{
	struct gantry_volume_attr attr = GANTRY_VOLUME_ATTR_INIT;
	struct gantry_volume *volume;
	int rc;

	attr.queues = THREADS;
	attr.depth = DEPTH;
	attr.copy_bytes = BLOCK;
	rc = gantry_volume_open_role(file, NULL, &attr, &volume);
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, rc, gantry_error());
	return volume;
}

static void test_a_queue_for_each_thread(void)
{
	struct gantry_volume *volume = open_volume();

	for (int round = 0; round < 2; round++) { /* other threads use the queues again */
		start_users(volume, 0);
		for (int i = 0; i < THREADS; i++) {
			pthread_join(users[i].thread, NULL);
			TEST_ASSERT_EQUAL_INT(0, users[i].rc);
			TEST_ASSERT_EQUAL_UINT(0, users[i].n_wrong);
			TEST_ASSERT_EQUAL_UINT(0, users[i].n_failed);
			TEST_ASSERT_GREATER_OR_EQUAL_UINT(OPS, users[i].n_done);
		}
	}
	TEST_ASSERT_EQUAL_INT(0, gantry_volume_close(&volume));
}

static void test_queues_of_all_threads_fail_when_the_session_ends(void)
{
	struct gantry_volume *volume = open_volume();

	start_users(volume, 1);
	stop_server();
	for (int i = 0; i < THREADS; i++) {
		pthread_join(users[i].thread, NULL);
		TEST_ASSERT_EQUAL_INT(-ENOTCONN, users[i].rc);
		TEST_ASSERT_EQUAL_UINT(0, users[i].n_wrong);
	}
	TEST_ASSERT_EQUAL_INT(0, gantry_volume_close(&volume));
}

static void *open_and_close(void *arg)
{
	(void)arg;
	for (int i = 0; i < 3; i++) {
		struct gantry_volume *volume;

		if (gantry_volume_open_role(file, "load", NULL, &volume))
			return (void *)1;
		if (gantry_volume_close(&volume))
			return (void *)1;
	}
	return NULL;
}

static void test_volumes_open_and_close_side_by_side(void)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		TEST_ASSERT_EQUAL_INT(0, pthread_create(&threads[i], NULL, open_and_close, NULL));
	for (int i = 0; i < THREADS; i++) {
		void *failed;

		pthread_join(threads[i], &failed);
		TEST_ASSERT_NULL(failed);
	}
}

int main(void)
{
	struct gantry_volume *none;

	/*
	 * this open fails; it only makes libgantry calibrate the clock of the process by
	 * gn_clock_init(). The target of this process reads the same clock, and gn_clock_init()
	 * must run before other threads exist.
	 */
	gantry_volume_open("", NULL, &none);
	UNITY_BEGIN();
	RUN_TEST(test_a_queue_for_each_thread);
	RUN_TEST(test_queues_of_all_threads_fail_when_the_session_ends);
	RUN_TEST(test_volumes_open_and_close_side_by_side);
	return UNITY_END();
}
