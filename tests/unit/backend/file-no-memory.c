/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The file backend while allocations fail. For each n, only allocation n fails, or all allocations
 * from number n on. The backend works, or fails with -ENOMEM and logs a reason. It leaks nothing,
 * and releases the lock of the file, so that it can be opened again.
 */
#include <errno.h>
#include <sys/mman.h>

#include "fake/shortage.h"
#include "file.h"

#define MOST 200 /* maximum number of allocations of one run */

static struct shortage shortage;
static uint8_t out[64 * KIB] __attribute__((aligned(4096))),
	in[sizeof(out) + 512] __attribute__((aligned(4096)));

void setUp(void)
{
	if (!shortage_can())
		TEST_IGNORE_MESSAGE("allocations cannot fail in this build");
	fake_plugin("file");
	folder_make();
	volume_make(MIB);
}

void tearDown(void)
{
	shortage_use(NULL);
	if (shortage_can())
		folder_remove();
}

/* Write from an aligned address and read to an unaligned one. These IOs allocate nothing. */
static void serve(void)
{
	memset(out, (int)shortage.at + 1, sizeof(out));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, run(GANTRY_OP_WRITE, 0, sizeof(out), out));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, run(GANTRY_OP_READ, 0, sizeof(out), in + 512));
	TEST_ASSERT_EQUAL_MEMORY(out, in + 512, sizeof(out));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, run(GANTRY_OP_WRITE_ZEROES, 0, sizeof(out), NULL));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, run(GANTRY_OP_DISCARD, 0, sizeof(out), NULL));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, run(GANTRY_OP_FLUSH, 0, 0, NULL));
}

/*
 * Open the backend while the allocations that `use` selects fail, and do IO. Only allocations of
 * plugins and libraries fail (shortage.foreign). fake_conf() belongs to the test program, so its
 * allocations succeed. Returns the result of open or start.
 */
static int once(struct shortage *use, const char *engine)
{
	int rc;

	fake_host_init(&host, "test");
	host.real_clock = 1;
	fake_chain_init(&chain, &host);
	shortage_use(use);
	rc = TRY(engine, "block=512");
	if (rc == 0)
		serve();
	fake_chain_fini(&chain);
	shortage_use(NULL);
	return rc;
}

struct left {
	long fds, blocks, maps;
};

static struct left left(void)
{
	return (struct left){shortage_entries("/proc/self/fd"), shortage_blocks(), shortage_maps()};
}

static void with_too_little(const char *engine, uint32_t at, uint32_t lasts)
{
	struct left before = left(), after;
	char where[1100];
	int rc;

	shortage = (struct shortage){.at = at, .lasts = lasts, .foreign = 1};
	rc = once(&shortage, engine);
	snprintf(where, sizeof(where), "%s, allocation %u of %u fails, of %s: %d, %.900s", engine,
		 at, shortage.n, shortage.file, rc, host.log);
	TEST_ASSERT_TRUE_MESSAGE(rc == 0 || (rc == -ENOMEM && shortage.failed), where);
	/* if a lane does not start, the caller of the backend logs the error, not the backend */
	TEST_ASSERT_TRUE_MESSAGE(!chain.backend == (rc && *host.log), where);
	/* a fallback to another method must have a reason */
	TEST_ASSERT_TRUE_MESSAGE(!fake_logged(&host, "cannot use") ||
					 fake_logged(&host, "Cannot allocate memory"),
				 where);
	after = left();
	TEST_ASSERT_EQUAL_INT64_MESSAGE(before.fds, after.fds, where);
	TEST_ASSERT_EQUAL_INT64_MESSAGE(before.blocks, after.blocks, where);
	TEST_ASSERT_EQUAL_INT64_MESSAGE(before.maps, after.maps, where);
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, once(NULL, engine), where);
}

static void walk(const char *engine, uint32_t least)
{
	for (uint32_t lasts = 0; lasts < 2; lasts++) {
		uint32_t n = 0;

		TEST_ASSERT_EQUAL_INT_MESSAGE(0, once(NULL, engine), host.log);
		do {
			with_too_little(engine, ++n, lasts);
			TEST_ASSERT_LESS_THAN(MOST, n);
		} while (shortage.failed);
		TEST_ASSERT_GREATER_OR_EQUAL(least, n);
	}
}

static void without_a_queue(void)
{
	walk("engine=sync", 6);
}

static void with_io_uring(void)
{
	TEST_ASSERT_EQUAL_INT(0, once(NULL, "engine=auto"));
	if (fake_logged(&host, "cannot use") || fake_logged(&host, "built without"))
		TEST_IGNORE_MESSAGE("no io_uring here");
	walk("engine=auto", 6);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(without_a_queue);
	RUN_TEST(with_io_uring);
	return UNITY_END();
}
