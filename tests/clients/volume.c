/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libgantry as a program sees it, with servers in other processes: data in both directions, with
 * each kind of buffer.
 */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gantry/random.h>

#include "clients/served.h"
#include "unity.h"

#define BLOCK SERVED_BLOCK
#define BLOCKS (SERVED_BYTES / BLOCK)

static struct gantry_volume *volume;
static struct gantry_queue *queue;
static struct gantry_volume_attr attr;

void setUp(void)
{
	attr = (struct gantry_volume_attr)GANTRY_VOLUME_ATTR_INIT;
	served_begin(NULL);
}

void tearDown(void)
{
	served_finish(&queue, &volume);
}

static void open_all(const char *role)
{
	int rc = gantry_volume_open_role(served_file, role, &attr, &volume);

	TEST_ASSERT_EQUAL_INT_MESSAGE(0, rc, gantry_error());
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_open(volume, &queue));
}

static void close_all(void)
{
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_close(&queue));
	TEST_ASSERT_NULL(queue);
	TEST_ASSERT_EQUAL_INT(0, gantry_volume_close(&volume));
	TEST_ASSERT_NULL(volume);
}

/* -- data -- */

#define SLOTS 16
#define IO_BLOCKS 16u

/*
 * One IO of the mixture: random offset, length, buffer and operation. No other IO in flight uses
 * its blocks.
 */
struct mix {
	struct served_io io;
	int busy, reads;
	uint32_t block, n;
	uint8_t *own, *shared, *buf;
};

static struct mix mixes[SLOTS];
static uint64_t seeds[BLOCKS]; /* seed of the content of each block; 0: zeroes */
static uint8_t locked[BLOCKS];
static uint64_t next_seed;
static struct gantry_random mix_random;

static int is_zero(const uint8_t *buf)
{
	for (uint32_t i = 0; i < BLOCK; i++)
		if (buf[i])
			return 0;
	return 1;
}

static void expect_block(const uint8_t *buf, uint32_t block)
{
	int right = seeds[block] ? served_check(buf, BLOCK, seeds[block]) == BLOCK : is_zero(buf);

	TEST_ASSERT_TRUE_MESSAGE(right, "a block does not hold what was written last");
}

static int choose_place(struct mix *m)
{
	m->n = 1 + (uint32_t)gantry_random_below(&mix_random, IO_BLOCKS);
	/* few blocks, so that later IOs use them again */
	m->block = (uint32_t)gantry_random_below(&mix_random, BLOCKS / 16 - m->n);
	for (uint32_t i = 0; i < m->n; i++)
		if (locked[m->block + i])
			return -EBUSY;
	memset(locked + m->block, 1, m->n);
	return 0;
}

static int issue(struct mix *m)
{
	uint64_t length = (uint64_t)m->n * BLOCK, offset = (uint64_t)m->block * BLOCK;
	unsigned what = (unsigned)gantry_random_below(&mix_random, 10);

	m->buf = gantry_random_below(&mix_random, 2) ? m->own : m->shared;
	m->reads = what < 5;
	if (m->reads) {
		memset(m->buf, 0xee, length);
		return gantry_queue_read(queue, m->buf, length, offset, served_done, &m->io);
	}
	for (uint32_t i = 0; i < m->n; i++) {
		seeds[m->block + i] = what < 8 ? ++next_seed : 0;
		served_fill(m->buf + (uint64_t)i * BLOCK, BLOCK, next_seed);
	}
	if (what == 8)
		return gantry_queue_write_zeroes(queue, length, offset, GANTRY_IO_FUA, served_done,
						 &m->io);
	if (what == 9)
		return gantry_queue_discard(queue, length, offset, served_done, &m->io);
	return gantry_queue_write(queue, m->buf, length, offset, what == 7 ? GANTRY_IO_FUA : 0,
				  served_done, &m->io);
}

static void finish(struct mix *m)
{
	TEST_ASSERT_EQUAL_INT(1, m->io.n);
	TEST_ASSERT_EQUAL_INT(0, m->io.result);
	for (uint32_t i = 0; m->reads && i < m->n; i++)
		expect_block(m->buf + (uint64_t)i * BLOCK, m->block + i);
	memset(locked + m->block, 0, m->n);
	m->busy = 0;
	m->io.n = 0;
}

static void run_mix(unsigned n_ops)
{
	uint64_t until = served_ms() + 120000;
	unsigned issued = 0, finished = 0;

	while (finished < n_ops) {
		for (int i = 0; i < SLOTS; i++) {
			struct mix *m = &mixes[i];

			if (m->busy && m->io.n) {
				finish(m);
				finished++;
			}
			if (m->busy || issued == n_ops || choose_place(m))
				continue;
			TEST_ASSERT_EQUAL_INT_MESSAGE(0, issue(m), gantry_error());
			m->busy = 1;
			issued++;
		}
		gantry_queue_wait(queue, 1000);
		TEST_ASSERT_TRUE_MESSAGE(served_ms() < until, "the mixture does not end");
	}
	TEST_ASSERT_EQUAL_UINT32(0, gantry_queue_inflight(queue));
}

/* Another session must read the same data, in larger pieces. */
static void expect_all(const char *role)
{
	uint8_t *buf = malloc(1 << 20);

	open_all(role);
	for (uint32_t at = 0; at < BLOCKS; at += (1 << 20) / BLOCK) {
		TEST_ASSERT_EQUAL_INT(0, served_read(queue, buf, 1 << 20, (uint64_t)at * BLOCK));
		for (uint32_t i = 0; i < (1 << 20) / BLOCK; i++)
			expect_block(buf + (uint64_t)i * BLOCK, at + i);
	}
	close_all();
	free(buf);
}

static void test_data_of_mixed_operations_is_as_written(void)
{
	uint64_t bytes;
	uint8_t *shared;

	memset(seeds, 0, sizeof(seeds));
	gantry_random_seed(&mix_random, 7);
	attr.depth = SLOTS;
	attr.buffer_bytes = SLOTS * IO_BLOCKS * BLOCK;
	served_start("store");
	served_start("bridge");
	open_all("load");
	shared = gantry_volume_buffers(volume, &bytes);
	TEST_ASSERT_EQUAL_UINT64(attr.buffer_bytes, bytes);
	TEST_ASSERT_EQUAL_UINT64(0, (uintptr_t)shared % 4096);
	TEST_ASSERT_TRUE(is_zero(shared));
	for (int i = 0; i < SLOTS; i++) {
		mixes[i] = (struct mix){.shared = shared + (uint64_t)i * IO_BLOCKS * BLOCK};
		mixes[i].own = malloc(IO_BLOCKS * BLOCK);
	}
	run_mix(4000);
	TEST_ASSERT_EQUAL_INT(0, served_flush(queue));
	for (int i = 0; i < SLOTS; i++)
		free(mixes[i].own);
	close_all();
	attr = (struct gantry_volume_attr)GANTRY_VOLUME_ATTR_INIT;
	expect_all("direct");
}

static void test_volume_reports_its_size_operations_and_buffers(void)
{
	struct gantry_volume_info info;
	uint64_t bytes = 1;

	served_start("store");
	TEST_ASSERT_EQUAL_INT(0, gantry_volume_open_role(served_file, "direct", NULL, &volume));
	gantry_volume_get_info(volume, &info);
	TEST_ASSERT_EQUAL_UINT64(SERVED_BYTES, info.size);
	TEST_ASSERT_EQUAL_UINT32(0, info.size % info.block_size);
	TEST_ASSERT_TRUE(info.ops & 1u << GANTRY_OP_WRITE_ZEROES);
	TEST_ASSERT_NULL(gantry_volume_buffers(volume, &bytes));
	TEST_ASSERT_EQUAL_UINT64(0, bytes);
	TEST_ASSERT_EQUAL_UINT32(1 << 20, gantry_volume_copy_bytes(volume));
	TEST_ASSERT_EQUAL_INT(0, gantry_volume_close(&volume));
	attr.copy_bytes = 3 * info.block_size + 1;
	TEST_ASSERT_EQUAL_INT(0, gantry_volume_open_role(served_file, "direct", &attr, &volume));
	TEST_ASSERT_EQUAL_UINT32(3 * info.block_size, gantry_volume_copy_bytes(volume));
	TEST_ASSERT_EQUAL_INT(0, gantry_volume_close(&volume));
	attr.copy_bytes = 1;
	TEST_ASSERT_EQUAL_INT(0, gantry_volume_open_role(served_file, "direct", &attr, &volume));
	TEST_ASSERT_EQUAL_UINT32(info.block_size, gantry_volume_copy_bytes(volume));
	TEST_ASSERT_EQUAL_INT(0, gantry_volume_close(&volume));
}

/* Submit one request for extents, and wait for it. Returns its result. */
static int get_extents(struct gantry_extents *e, uint64_t length, uint64_t offset)
{
	struct served_io io = {0, 1};
	int rc = gantry_queue_extents(queue, e, length, offset, served_done, &io);

	if (rc != 0)
		return rc;
	served_wait(queue, &io, 1, 1);
	return io.result;
}

static void test_extents_are_holes_until_they_are_written(const char *role)
{
	struct gantry_extents e;
	char buf[BLOCK] = "";

	attr.copy_bytes = BLOCK;
	open_all(role);
	TEST_ASSERT_EQUAL_INT(0, get_extents(&e, SERVED_BYTES, 0));
	TEST_ASSERT_EQUAL_UINT(1, e.count);
	TEST_ASSERT_EQUAL_UINT(SERVED_BYTES, e.extent[0].length);
	TEST_ASSERT_EQUAL_UINT(GANTRY_EXTENT_HOLE | GANTRY_EXTENT_ZERO, e.extent[0].flags);
	TEST_ASSERT_EQUAL_INT(0, served_write(queue, buf, BLOCK, SERVED_BYTES / 2));
	TEST_ASSERT_EQUAL_INT(0, get_extents(&e, SERVED_BYTES, 0));
	TEST_ASSERT_EQUAL_UINT(3, e.count);
	TEST_ASSERT_EQUAL_UINT64(SERVED_BYTES, e.bytes);
	TEST_ASSERT_EQUAL_UINT(SERVED_BYTES / 2, e.extent[0].length);
	TEST_ASSERT_EQUAL_UINT(0, e.extent[1].flags);
	TEST_ASSERT_EQUAL_INT(-ERANGE, get_extents(&e, 2 * BLOCK, SERVED_BYTES - BLOCK));
	TEST_ASSERT_EQUAL_INT(-EINVAL, get_extents(&e, 512, 0));
	TEST_ASSERT_EQUAL_INT(-EINVAL, get_extents(NULL, BLOCK, 0));
	close_all();
}

#define PIECES 5

/*
 * Write and read pieces of odd lengths. `served_fill` of the whole data, cut at these places, is
 * compared by plain IO.
 */
static void test_pieces_are_the_data_of_one_io(const char *role)
{
	static const uint32_t length[PIECES] = {1, 4000, 95, 8000, 192};
	const uint32_t all = 3 * BLOCK;
	struct iovec iov[PIECES];
	struct served_io io = {0, 1};
	uint8_t data[3 * BLOCK], out[3 * BLOCK], *shared;
	uint32_t at = 0;
	uint64_t bytes;

	attr.buffer_bytes = 64 * 1024;
	open_all(role);
	shared = gantry_volume_buffers(volume, &bytes);
	served_fill(data, all, 11);
	for (unsigned i = 0; i < PIECES; at += length[i++]) {
		iov[i] = (struct iovec){shared + (PIECES - i) * 9001, length[i]};
		memcpy(iov[i].iov_base, data + at, length[i]);
	}
	TEST_ASSERT_EQUAL_UINT(all, at);
	TEST_ASSERT_EQUAL_INT_MESSAGE(
		0, gantry_queue_writev(queue, iov, PIECES, BLOCK, GANTRY_IO_FUA, served_done, &io),
		gantry_error());
	served_wait(queue, &io, 1, 1);
	TEST_ASSERT_EQUAL_INT(0, io.result);
	TEST_ASSERT_EQUAL_INT(0, served_read(queue, out, all, BLOCK));
	TEST_ASSERT_EQUAL_MEMORY(data, out, all);
	memset(shared, 0xee, 64 * 1024);
	io = (struct served_io){0, 1};
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_readv(queue, iov, PIECES, BLOCK, served_done, &io));
	served_wait(queue, &io, 1, 1);
	TEST_ASSERT_EQUAL_INT(0, io.result);
	for (unsigned i = 0, from = 0; i < PIECES; from += length[i++])
		TEST_ASSERT_EQUAL_MEMORY(data + from, iov[i].iov_base, length[i]);
	TEST_ASSERT_EQUAL_UINT8(0xee, shared[9001 - 1]);
	TEST_ASSERT_EQUAL_UINT8(0xee, shared[9001 + 192]);
	TEST_ASSERT_EQUAL_INT(-EINVAL, gantry_queue_readv(queue, iov, 0, 0, served_done, &io));
	iov[0].iov_base = data; /* not in the memory of the session */
	TEST_ASSERT_EQUAL_INT(-EINVAL, gantry_queue_readv(queue, iov, PIECES, 0, served_done, &io));
	close_all();
}

static void serve_pieces(const struct served_options *options)
{
	served_conf(options);
	served_start("store");
	served_start("bridge");
	test_pieces_are_the_data_of_one_io("load");
}

static void test_pieces_pass_through_a_gateway(void)
{
	serve_pieces(&(struct served_options){.device = NULL});
}

static void test_pieces_are_moved_without_mapped_memory(void)
{
	serve_pieces(&(struct served_options){.device = "mapped = false;"});
}

/* A gateway and a target with stages; the checksums of the initiator are checked by the target. */
static void test_pieces_have_a_checksum(void)
{
	serve_pieces(&(struct served_options){
		.load_stages = "{ type = \"crc\"; mode = \"generate\"; strict = true; }",
		.bridge_stages = "{ type = \"crc\"; }, { type = \"fault\"; }",
		.store_stages = "{ type = \"crc\"; mode = \"verify\"; strict = true; }"});
}

static void test_pieces_of_a_backend_without_lists(void)
{
	char backend[256];

	snprintf(backend, sizeof(backend),
		 "type = \"file\"; path = \"%s/volume\"; size = \"16MiB\"; create = true;",
		 served_dir);
	serve_pieces(&(struct served_options){.backend = backend});
	unlink(strcat(strcpy(backend, served_dir), "/volume"));
}

static void test_extents_of_the_store(void)
{
	served_start("store");
	test_extents_are_holes_until_they_are_written("direct");
}

static void test_extents_pass_through_a_gateway(void)
{
	served_start("store");
	served_start("bridge");
	test_extents_are_holes_until_they_are_written("load");
}

/* The target has no mapped memory, so it moves the extents by a remote write. */
static void test_extents_are_moved_without_mapped_memory(void)
{
	const struct served_options options = {.device = "mapped = false;"};

	served_conf(&options);
	served_start("store");
	served_start("bridge");
	test_extents_are_holes_until_they_are_written("load");
}

static void test_extents_of_a_range_above_4_GiB_are_cut(void)
{
	const struct served_options options = {.backend = "type = \"null\"; size = \"64GiB\";"};
	struct gantry_extents e;

	served_conf(&options);
	served_start("store");
	open_all("direct");
	TEST_ASSERT_EQUAL_INT(0, get_extents(&e, 64ull << 30, 0));
	TEST_ASSERT_EQUAL_UINT(1, e.count);
	TEST_ASSERT_EQUAL_UINT(GANTRY_EXTENT_HOLE, e.extent[0].flags);
	TEST_ASSERT_TRUE(e.bytes > 1ull << 31 && e.bytes % BLOCK == 0);
	close_all();
}

/* A populated volume does not report extents. */
static void test_extents_of_a_volume_without_them_are_rejected(void)
{
	const struct served_options options = {
		.backend = "type = \"memory\"; size = \"16MiB\"; populate = true;"};
	struct gantry_extents e;

	served_conf(&options);
	served_start("store");
	open_all("direct");
	TEST_ASSERT_EQUAL_INT(-EOPNOTSUPP, get_extents(&e, BLOCK, 0));
	TEST_ASSERT_EQUAL_STRING("the volume does not support extents", gantry_error());
	close_all();
}

static void test_uri_opens_the_same_volume_as_a_configuration(void)
{
	char buf[BLOCK], uri[256];

	served_start("store");
	served_start("bridge");
	TEST_ASSERT_EQUAL_INT_MESSAGE(
		0,
		gantry_volume_open(served_uri("volume", "&connect.io_timeout=5s"), NULL, &volume),
		gantry_error());
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_open(volume, &queue));
	served_fill(buf, BLOCK, 9);
	TEST_ASSERT_EQUAL_INT(0, served_write(queue, buf, BLOCK, 0));
	close_all();
	snprintf(uri, sizeof(uri), "gantry:///?config=%s&role=direct", served_file);
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, gantry_volume_open(uri, NULL, &volume), gantry_error());
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_open(volume, &queue));
	memset(buf, 0, BLOCK);
	TEST_ASSERT_EQUAL_INT(0, served_read(queue, buf, BLOCK, 0));
	TEST_ASSERT_EQUAL_UINT64(BLOCK, served_check(buf, BLOCK, 9));
	close_all();
}

/* -- progress -- */

static void test_an_event_loop(void)
{
	struct served_io io = {0, 1};
	struct pollfd pfd = {.events = POLLIN};
	char buf[BLOCK];
	int n = 0;

	served_start("store");
	open_all("direct");
	pfd.fd = gantry_queue_fd(queue);
	for (int i = 0; i < 200; i++) {
		io.n = 0;
		TEST_ASSERT_EQUAL_INT(0, gantry_queue_read(queue, buf, BLOCK, 0, served_done, &io));
		while (!io.n) {
			if (gantry_queue_arm(queue) == 0) {
				TEST_ASSERT_EQUAL_INT_MESSAGE(1, poll(&pfd, 1, 60000),
							      "nobody woke the loop");
				n++;
			}
			gantry_queue_poll(queue);
		}
		TEST_ASSERT_EQUAL_INT(0, io.result);
	}
	TEST_ASSERT_GREATER_THAN_INT(0, n); /* the loop has slept */
	close_all();
}

static void test_wait_returns_after_a_completion_or_a_lost_session(void)
{
	struct served_io io = {0, 1};
	char buf[BLOCK];
	uint64_t before = served_ms();

	served_start("store");
	open_all("direct");
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_wait(queue, -1)); /* nothing is in flight */
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_poll(queue));
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_read(queue, buf, BLOCK, 0, served_done, &io));
	TEST_ASSERT_EQUAL_UINT32(1, gantry_queue_inflight(queue));
	TEST_ASSERT_EQUAL_INT(1, gantry_queue_wait(queue, -1));
	TEST_ASSERT_EQUAL_INT(1, io.n);
	served_kill("store", SIGKILL);
	before = served_ms();
	while (gantry_queue_read(queue, buf, BLOCK, 0, served_done, &io) == 0)
		gantry_queue_wait(queue, 10);
	TEST_ASSERT_LESS_THAN_UINT64(20000, served_ms() - before);
	close_all();
}

/* The callback `done` can submit an IO: here the `done` of each IO submits the next IO. */
static char chain_buf[BLOCK];
static int chain_left, chain_close;

static void chain_done(void *arg, int result)
{
	struct gantry_queue *again = queue;

	(void)arg;
	TEST_ASSERT_EQUAL_INT(0, result);
	chain_close = gantry_queue_close(&again);
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_poll(queue));
	if (--chain_left > 0)
		TEST_ASSERT_EQUAL_INT(
			0, gantry_queue_read(queue, chain_buf, BLOCK, 0, chain_done, NULL));
}

static void test_submitting_from_inside_done(void)
{
	attr.depth = 1;
	served_start("store");
	open_all("direct");
	chain_left = 100;
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_read(queue, chain_buf, BLOCK, 0, chain_done, NULL));
	while (chain_left > 0)
		TEST_ASSERT_EQUAL_INT(1, gantry_queue_wait(queue, 60000));
	TEST_ASSERT_EQUAL_INT(-EBUSY, chain_close);
	close_all();
}

static void test_closing_with_much_in_flight(void)
{
	struct served_io ios[32] = {{0, 1}};
	static char buf[32][BLOCK];

	served_start("store");
	served_start("bridge");
	open_all("load");
	for (int i = 0; i < 32; i++)
		TEST_ASSERT_EQUAL_INT(
			0, gantry_queue_read(queue, buf[i], BLOCK, 0, served_done, &ios[i]));
	TEST_ASSERT_EQUAL_INT(-EBUSY, gantry_volume_close(&volume));
	TEST_ASSERT_NOT_NULL(volume);
	close_all();
	for (int i = 0; i < 32; i++) {
		TEST_ASSERT_EQUAL_INT(1, ios[i].n);
		TEST_ASSERT_EQUAL_INT(0, ios[i].result);
	}
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_close(&queue)); /* close of NULL succeeds */
	TEST_ASSERT_EQUAL_INT(0, gantry_volume_close(&volume));
}

static void test_queues_are_taken_and_given_back(void)
{
	struct gantry_queue *others[3] = {NULL};

	attr.queues = 3;
	served_start("store");
	TEST_ASSERT_EQUAL_INT(0, gantry_volume_open_role(served_file, "direct", &attr, &volume));
	for (int i = 0; i < 3; i++)
		TEST_ASSERT_EQUAL_INT(0, gantry_queue_open(volume, &others[i]));
	TEST_ASSERT_EQUAL_INT(-EBUSY, gantry_queue_open(volume, &queue));
	TEST_ASSERT_NULL(queue);
	TEST_ASSERT_NOT_NULL(strstr(gantry_error(), "limit queues=3"));
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_close(&others[1]));
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_open(volume, &queue));
	TEST_ASSERT_EQUAL_INT(0, served_flush(queue));
	for (int i = 0; i < 3; i++)
		TEST_ASSERT_EQUAL_INT(0, gantry_queue_close(&others[i]));
	close_all();
}

static void test_a_fork_leaves_the_volume_to_the_parent(void)
{
	char buf[BLOCK];
	int status = 1;
	pid_t pid;

	served_start("store");
	open_all("direct");
	pid = fork();
	if (pid == 0) {
		int rc = gantry_queue_read(queue, buf, BLOCK, 0, served_done, NULL) == -EINVAL &&
			 strstr(gantry_error(), "before a fork") &&
			 gantry_queue_close(&queue) == -EINVAL &&
			 gantry_volume_close(&volume) == -EINVAL && gantry_queue_poll(queue) == 0;

		_exit(rc ? 0 : 3);
	}
	waitpid(pid, &status, 0);
	TEST_ASSERT_EQUAL_INT(0, status);
	TEST_ASSERT_EQUAL_INT(0, served_read(queue, buf, BLOCK, 0));
	close_all();
}

/* Returns the bytes of memory that all regions of this process use. */
static uint64_t region_bytes(void)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	uint64_t sum = 0;

	TEST_ASSERT_NOT_NULL(dir);
	while ((entry = readdir(dir))) {
		char is[64] = "";
		struct stat st;

		if (readlinkat(dirfd(dir), entry->d_name, is, sizeof(is) - 1) > 0 &&
		    strstr(is, "gantry-region") && fstatat(dirfd(dir), entry->d_name, &st, 0) == 0)
			sum += (uint64_t)st.st_blocks * 512;
	}
	closedir(dir);
	return sum;
}

/*
 * The open allocates all memory that the IOs of the volume can need. Otherwise the kernel would
 * charge the cgroup of the target for pages that the target touches first.
 */
static void test_a_volume_has_all_its_memory_when_it_is_open(void)
{
	static uint8_t buf[BLOCK];

	served_start("store");
	attr.depth = 8;
	open_all("direct");
	TEST_ASSERT_EQUAL_UINT32(1 << 20, gantry_volume_copy_bytes(volume));
	TEST_ASSERT_EQUAL_UINT64(8 << 20, region_bytes());
	for (int i = 0; i < 100; i++)
		TEST_ASSERT_EQUAL_INT(0, served_write(queue, buf, BLOCK, (uint64_t)i * BLOCK));
	TEST_ASSERT_EQUAL_UINT64(8 << 20, region_bytes());
	close_all();
	TEST_ASSERT_EQUAL_UINT64(0, region_bytes());
	attr.copy_bytes = BLOCK;
	attr.buffer_bytes = 1 << 20;
	open_all("direct");
	TEST_ASSERT_EQUAL_UINT64((1 << 20) + 8 * BLOCK, region_bytes());
	close_all();
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_volume_reports_its_size_operations_and_buffers);
	RUN_TEST(test_uri_opens_the_same_volume_as_a_configuration);
	RUN_TEST(test_data_of_mixed_operations_is_as_written);
	RUN_TEST(test_extents_of_the_store);
	RUN_TEST(test_extents_pass_through_a_gateway);
	RUN_TEST(test_extents_are_moved_without_mapped_memory);
	RUN_TEST(test_extents_of_a_range_above_4_GiB_are_cut);
	RUN_TEST(test_extents_of_a_volume_without_them_are_rejected);
	RUN_TEST(test_pieces_pass_through_a_gateway);
	RUN_TEST(test_pieces_are_moved_without_mapped_memory);
	RUN_TEST(test_pieces_have_a_checksum);
	RUN_TEST(test_pieces_of_a_backend_without_lists);
	RUN_TEST(test_an_event_loop);
	RUN_TEST(test_wait_returns_after_a_completion_or_a_lost_session);
	RUN_TEST(test_submitting_from_inside_done);
	RUN_TEST(test_closing_with_much_in_flight);
	RUN_TEST(test_queues_are_taken_and_given_back);
	RUN_TEST(test_a_volume_has_all_its_memory_when_it_is_open);
	RUN_TEST(test_a_fork_leaves_the_volume_to_the_parent);
	return UNITY_END();
}
