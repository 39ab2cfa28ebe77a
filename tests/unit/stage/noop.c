/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "fake/chain.h"
#include "unity.h"

static struct fake_host host;
static struct fake_chain chain;

void setUp(void)
{
	fake_host_init(&host, "test");
	fake_chain_init(&chain, &host);
	TEST_ASSERT_EQUAL_INT(0, fake_chain_stage(&chain, fake_plugin("noop"), NULL));
	fake_chain_terminal(&chain);
}

void tearDown(void)
{
	fake_chain_fini(&chain);
}

static void descriptor_passes_unchanged(void)
{
	struct gantry_io before, *io = fake_io(&chain, GANTRY_OP_WRITE, 4096, 4096, NULL);

	before = *io;
	chain.terminal.hold = 1;
	TEST_ASSERT_EQUAL_INT(0, fake_submit(io));
	TEST_ASSERT_EQUAL_MEMORY(&before, io, GANTRY_CACHE_LINE);
	fake_finish(&chain, GANTRY_S_NOSPC);
	TEST_ASSERT_EQUAL_UINT(1, chain.n_done);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_NOSPC, io->status);
}

static void refusal_passes(void)
{
	struct gantry_io *io = fake_io(&chain, GANTRY_OP_READ, 0, 4096, NULL);

	chain.terminal.refuse = -EAGAIN;
	chain.terminal.n_refuse = 1;
	TEST_ASSERT_EQUAL_INT(-EAGAIN, fake_submit(io));
	TEST_ASSERT_EQUAL_UINT(0, chain.n_done);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, fake_do(&chain, GANTRY_OP_READ, 0, 4096, NULL));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(descriptor_passes_unchanged);
	RUN_TEST(refusal_passes);
	return UNITY_END();
}
