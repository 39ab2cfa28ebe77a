/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * IO of the file backend on real files. Every engine, with and without the page cache, produces the
 * same volume.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>

#include "file.h"

#define VOLUME MIB

static uint8_t out[VOLUME + 4096] __attribute__((aligned(4096)));
static uint8_t in[VOLUME + 4096] __attribute__((aligned(4096)));

void setUp(void)
{
	fake_host_init(&host, "test");
	host.real_clock = 1;
	fake_chain_init(&chain, &host);
	folder_make();
	volume_make(VOLUME);
	for (size_t i = 0; i < sizeof out; i++)
		out[i] = (uint8_t)(i * 11 + i / 4096 + 1);
	memset(in, 0xee, sizeof in);
}

void tearDown(void)
{
	fake_chain_fini(&chain);
	folder_remove();
}

static int all_zero(const uint8_t *p, size_t n)
{
	while (n--)
		if (*p++)
			return 0;
	return 1;
}

static void ok(unsigned opcode, unsigned flags, uint64_t offset, uint32_t length, void *data)
{
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, run_flags(opcode, flags, offset, length, data));
}

/* Do a sequence of operations, and compare the volume with the expected contents. */
static void history(void)
{
	ok(GANTRY_OP_WRITE, 0, 0, VOLUME, out);
	ok(GANTRY_OP_FLUSH, 0, 0, 0, NULL);
	ok(GANTRY_OP_READ, 0, 0, VOLUME, in);
	TEST_ASSERT_EQUAL_MEMORY(out, in, VOLUME);

	ok(GANTRY_OP_WRITE_ZEROES, 0, 8 * KIB, 64 * KIB, NULL);
	ok(GANTRY_OP_DISCARD, 0, 128 * KIB, 64 * KIB, NULL);
	ok(GANTRY_OP_WRITE, GANTRY_IO_FUA, 256 * KIB, 4 * KIB, out);
	ok(GANTRY_OP_WRITE_ZEROES, GANTRY_IO_FUA, 512 * KIB, 4 * KIB, NULL);
	ok(GANTRY_OP_READ, 0, 0, VOLUME, in);
	TEST_ASSERT_EQUAL_MEMORY(out, in, 8 * KIB);
	TEST_ASSERT_TRUE(all_zero(in + 8 * KIB, 64 * KIB));
	TEST_ASSERT_EQUAL_MEMORY(out + 72 * KIB, in + 72 * KIB, 56 * KIB);
	TEST_ASSERT_EQUAL_MEMORY(out, in + 256 * KIB, 4 * KIB);
	TEST_ASSERT_TRUE(all_zero(in + 512 * KIB, 4 * KIB));

	/* memory that is not aligned for direct IO */
	ok(GANTRY_OP_WRITE, 0, 300 * KIB, 200 * KIB, out + 8);
	ok(GANTRY_OP_READ, 0, 300 * KIB, 200 * KIB, in + 24);
	TEST_ASSERT_EQUAL_MEMORY(out + 8, in + 24, 200 * KIB);
}

static void sync_cached(void)
{
	OPEN("engine=sync", "direct=false");
	history();
}

static void sync_direct(void)
{
	OPEN("engine=sync", "direct=true");
	history();
	if (store()->direct)
		TEST_ASSERT_EQUAL_UINT64(4, store()->n_bounced);
	else
		TEST_ASSERT_TRUE(fake_logged(&host, "no direct IO here"));
}

static void uring(const char *direct)
{
	OPEN("engine=uring", direct);
	if (store()->engine && strcmp(store()->engine->name, "uring") != 0)
		TEST_IGNORE_MESSAGE("no io_uring here");
	history();
}

static void uring_cached(void)
{
	uring("direct=false");
}

static void uring_direct(void)
{
	uring("direct=true");
}

static void small_blocks_work_or_are_refused_with_advice(void)
{
	int rc = TRY("block=512", "direct=true");

	if (rc) {
		TEST_ASSERT_EQUAL_INT(-EINVAL, rc);
		TEST_ASSERT_TRUE(fake_logged(&host, "direct = false"));
		return;
	}
	ok(GANTRY_OP_WRITE, 0, 512, 512, out + 512);
	ok(GANTRY_OP_READ, 0, 512, 512, in + 1024);
	TEST_ASSERT_EQUAL_MEMORY(out + 512, in + 1024, 512);
}

static void memory_without_direct_io_falls_back_to_the_cache(void)
{
	char where[64];

	/*
	 * Whether a file in /dev/shm accepts O_DIRECT depends on the kernel. The data must be
	 * right in both cases.
	 */
	folder_remove();
	snprintf(where, sizeof where, "/dev/shm/gantry-test-%d", (int)getpid());
	snprintf(path, sizeof path, "%s", where);
	snprintf(path_setting, sizeof path_setting, "path=%s", path);
	volume_make(VOLUME);
	OPEN("direct=true");
	history();
	fake_chain_fini(&chain);
	unlink(path);
	folder_make();
}

static void concurrent_writes_complete_once(void)
{
	struct gantry_io *ios[FAKE_IOS];

	OPEN("engine=auto");
	for (unsigned round = 0; round < 20; round++) {
		for (unsigned i = 0; i < FAKE_IOS; i++) {
			ios[i] = fake_io(&chain, GANTRY_OP_WRITE, i * 4096, 4096, out + i * 4096);
			TEST_ASSERT_EQUAL_INT(0, fake_submit(ios[i]));
		}
		for (unsigned turn = 0; chain.n_done < (round + 1) * FAKE_IOS && turn < 100000000u;
		     turn++)
			fake_poll(&chain);
		TEST_ASSERT_EQUAL_UINT((round + 1) * FAKE_IOS, chain.n_done);
		for (unsigned i = 0; i < FAKE_IOS; i++)
			TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, ios[i]->status);
	}
	TEST_ASSERT_EQUAL_UINT(0, chain.n_stray);
	ok(GANTRY_OP_READ, 0, 0, FAKE_IOS * 4096, in);
	TEST_ASSERT_EQUAL_MEMORY(out, in, FAKE_IOS * 4096);
}

static void time_in_the_backend_is_reported(void)
{
	struct gantry_io *io;

	OPEN("engine=auto");
	io = fake_io(&chain, GANTRY_OP_READ, 0, VOLUME, in);
	TEST_ASSERT_EQUAL_INT(0, fake_submit(io));
	while (io->busy)
		fake_poll(&chain);
	TEST_ASSERT_NOT_EQUAL(0, io->hop_ns[GANTRY_HOP_BACKEND]);
}

static void sleeping_lane_is_woken_by_the_fd(void)
{
	const struct gantry_backend_ops *ops;
	struct gantry_io *io;
	struct pollfd pfd = {.events = POLLIN};
	void *self;

	OPEN("engine=auto", "direct=true");
	ops = chain.backend_ops;
	self = chain.backend_self;
	pfd.fd = ops->fd(self);
	if (pfd.fd < 0)
		TEST_IGNORE_MESSAGE("no io_uring here");
	io = fake_io(&chain, GANTRY_OP_READ, 0, 64 * KIB, in);
	TEST_ASSERT_EQUAL_INT(0, fake_submit(io));
	/* not 0: the kernel has not got the submitted entry yet */
	TEST_ASSERT_NOT_EQUAL(0, ops->arm(self));
	ops->disarm(self);
	ops->poll(self);
	if (io->busy && !ops->arm(self))
		TEST_ASSERT_EQUAL_INT(1, poll(&pfd, 1, 10000));
	ops->disarm(self);
	while (io->busy)
		fake_poll(&chain);
	TEST_ASSERT_EQUAL_INT(0, poll(&pfd, 1, 0));
	/* a completion does not signal a lane that is not armed */
	ok(GANTRY_OP_READ, 0, 0, 64 * KIB, in);
	TEST_ASSERT_EQUAL_INT(0, poll(&pfd, 1, 0));
}

static void write_to_a_full_store_fails_with_NOSPC(void)
{
	struct rlimit before, limit;

	OPEN("engine=sync", "direct=false", "create=true", "size=1MiB");
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &before);
	limit = (struct rlimit){512 * KIB, before.rlim_max};
	setrlimit(RLIMIT_FSIZE, &limit);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_NOSPC, run(GANTRY_OP_WRITE, 768 * KIB, 4 * KIB, out));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_NOSPC, run(GANTRY_OP_WRITE, 508 * KIB, 8 * KIB, out));
	setrlimit(RLIMIT_FSIZE, &before);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, run(GANTRY_OP_WRITE, 768 * KIB, 4 * KIB, out));
}

static void io_behind_the_end_of_a_truncated_file_fails(void)
{
	OPEN("engine=auto", "direct=false");
	TEST_ASSERT_EQUAL_INT(0, truncate(path, 512 * KIB));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_IO, run(GANTRY_OP_READ, 508 * KIB, 8 * KIB, in));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_IO, run(GANTRY_OP_READ, 768 * KIB, 4 * KIB, in));
}

/* Every other block of the second half of the volume has data. */
static void write_every_other_block(void)
{
	for (uint64_t at = VOLUME / 2; at < VOLUME; at += 8 * KIB)
		ok(GANTRY_OP_WRITE, 0, at, 4 * KIB, out);
	ok(GANTRY_OP_FLUSH, 0, 0, 0, NULL);
}

static void holes_are_reported(const char *engine)
{
	struct gantry_extents e;
	uint64_t at = 0;

	OPEN(engine, "direct=false");
	write_every_other_block();
	memset(&e, 0xee, sizeof e);
	ok(GANTRY_OP_EXTENTS, 0, 0, VOLUME, &e);
	TEST_ASSERT_TRUE(gantry_extents_are_valid(&e, VOLUME, 4096));
	TEST_ASSERT_EQUAL_UINT64(VOLUME, e.bytes);
	for (uint32_t i = 0; i < e.count; at += e.extent[i++].length) {
		ok(GANTRY_OP_READ, 0, at, 4 * KIB, in);
		if (e.extent[i].flags & GANTRY_EXTENT_ZERO)
			TEST_ASSERT_TRUE(all_zero(in, 4 * KIB));
	}
	if (e.count == 1)
		TEST_IGNORE_MESSAGE("the file system does not report holes");
	TEST_ASSERT_EQUAL_UINT(VOLUME / 2, e.extent[0].length);
	TEST_ASSERT_EQUAL_UINT(GANTRY_EXTENT_HOLE | GANTRY_EXTENT_ZERO, e.extent[0].flags);
	TEST_ASSERT_EQUAL_UINT(129, e.count);
	ok(GANTRY_OP_EXTENTS, 0, VOLUME / 2 + 4 * KIB, 4 * KIB, &e);
	TEST_ASSERT_EQUAL_UINT(1, e.count);
	TEST_ASSERT_EQUAL_UINT(GANTRY_EXTENT_HOLE | GANTRY_EXTENT_ZERO, e.extent[0].flags);
	ok(GANTRY_OP_EXTENTS, 0, VOLUME / 2, 4 * KIB, &e);
	TEST_ASSERT_EQUAL_UINT(0, e.extent[0].flags);
}

static void holes_are_reported_by_the_sync_engine(void)
{
	holes_are_reported("engine=sync");
}

static void holes_are_reported_by_another_thread_than_the_lane(void)
{
	holes_are_reported("engine=auto");
}

/* A block of the volume with data and a hole is data. */
static void extents_are_whole_blocks(void)
{
	struct gantry_extents e;

	OPEN("engine=auto", "direct=false", "block=64KiB");
	write_every_other_block();
	ok(GANTRY_OP_EXTENTS, 0, 0, VOLUME, &e);
	TEST_ASSERT_TRUE(gantry_extents_are_valid(&e, VOLUME, 65536));
	TEST_ASSERT_EQUAL_UINT(0, e.extent[e.count - 1].flags);
}

/* Until the host knows that the file has become smaller, reads beyond its end fail. */
static void what_a_file_has_lost_is_no_hole(void)
{
	struct gantry_extents e;

	OPEN("engine=auto", "direct=false");
	TEST_ASSERT_EQUAL_INT(0, truncate(path, 512 * KIB));
	ok(GANTRY_OP_EXTENTS, 0, 512 * KIB, 4 * KIB, &e);
	TEST_ASSERT_EQUAL_UINT(0, e.extent[0].flags);
	ok(GANTRY_OP_EXTENTS, 0, 0, VOLUME, &e);
	TEST_ASSERT_TRUE(gantry_extents_are_valid(&e, VOLUME, 4096));
	TEST_ASSERT_EQUAL_UINT64(VOLUME, e.bytes);
	TEST_ASSERT_EQUAL_UINT(0, e.extent[e.count - 1].flags);
	TEST_ASSERT_GREATER_OR_EQUAL_UINT(VOLUME - 512 * KIB, e.extent[e.count - 1].length);
}

/* The lane sleeps while the other thread executes the request. */
static void found_holes_wake_the_lane(void)
{
	struct gantry_extents e;

	OPEN("engine=auto", "direct=false");
	for (unsigned i = 0; i < 100; i++) {
		struct gantry_io *io = fake_io(&chain, GANTRY_OP_EXTENTS, 0, VOLUME, &e);

		TEST_ASSERT_EQUAL_INT(0, fake_submit(io));
		while (io->busy) {
			struct pollfd fd = {chain.backend_ops->fd(chain.backend_self), POLLIN, 0};

			if (chain.backend_ops->arm(chain.backend_self) == 0 && fd.fd >= 0)
				TEST_ASSERT_EQUAL_INT(1, poll(&fd, 1, -1));
			chain.backend_ops->disarm(chain.backend_self);
			fake_poll(&chain);
		}
		TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, io->status);
	}
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(sync_cached);
	RUN_TEST(sync_direct);
	RUN_TEST(uring_cached);
	RUN_TEST(uring_direct);
	RUN_TEST(small_blocks_work_or_are_refused_with_advice);
	RUN_TEST(memory_without_direct_io_falls_back_to_the_cache);
	RUN_TEST(concurrent_writes_complete_once);
	RUN_TEST(time_in_the_backend_is_reported);
	RUN_TEST(sleeping_lane_is_woken_by_the_fd);
	RUN_TEST(write_to_a_full_store_fails_with_NOSPC);
	RUN_TEST(io_behind_the_end_of_a_truncated_file_fails);
	RUN_TEST(holes_are_reported_by_the_sync_engine);
	RUN_TEST(holes_are_reported_by_another_thread_than_the_lane);
	RUN_TEST(extents_are_whole_blocks);
	RUN_TEST(what_a_file_has_lost_is_no_hole);
	RUN_TEST(found_holes_wake_the_lane);
	return UNITY_END();
}
