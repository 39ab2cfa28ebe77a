/* SPDX-License-Identifier: BSD-3-Clause */
/* rbd.h - shared by the tests of the rbd backend: it runs over a fake of librbd. */
#ifndef TEST_RBD_H
#define TEST_RBD_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fake/chain.h"
#include "fake/rbd/rbd.h"
#include "unity.h"

#define KIB 1024u
#define TURNS 50000u
#define TIMEOUT_NS 2000000000ull

static struct fake_host host;
static struct fake_chain chain;
static uint8_t out[256 * KIB], in[256 * KIB];

#define TRY(...) \
	fake_chain_backend(&chain, fake_plugin("rbd"), \
			   fake_conf(fake_plugin("rbd"), "image=image", "osd_op_timeout=2s", \
				     __VA_ARGS__, NULL))
#define OPEN(...) TEST_ASSERT_EQUAL_INT(0, TRY(__VA_ARGS__))

void setUp(void)
{
	fake_rbd_reset();
	fake_host_init(&host, "test");
	fake_chain_init(&chain, &host);
	memset(in, 0xee, sizeof in);
	for (size_t i = 0; i < sizeof out; i++)
		out[i] = (uint8_t)(i * 7 + i / 4096 + 1);
}

void tearDown(void)
{
	fake_rbd_hold(0);
	fake_rbd_hold_flush(0);
	fake_rbd_hold_diff(0);
	fake_chain_fini(&chain);
	TEST_ASSERT_EQUAL_UINT(0, chain.n_stray);
	TEST_ASSERT_EQUAL_UINT(0, fake_rbd_objects());
}

static inline void pause_briefly(void)
{
	const struct timespec pause = {.tv_nsec = 100000};

	nanosleep(&pause, NULL); /* lint: allowed, threads of the fake and the backend work */
}

static inline const char *reported(const char *key)
{
	static struct fake_report report;
	static char text[64];
	const char *value;

	fake_chain_report(&chain, -1, &report);
	value = fake_reported(&report, key);
	snprintf(text, sizeof text, "%.*s", value ? (int)strcspn(value, "\n") : 0, value);
	return text;
}

static inline unsigned long n_reported(const char *key)
{
	return strtoul(reported(key), NULL, 10);
}

static inline void state_becomes(const char *state)
{
	for (unsigned i = 0; i < 20000 && strcmp(reported("state"), state) != 0; i++)
		pause_briefly();
	TEST_ASSERT_EQUAL_STRING(state, reported("state"));
}

static inline struct gantry_io *begin(unsigned opcode, unsigned flags, uint64_t offset,
				      uint32_t length, void *data)
{
	struct gantry_io *io = fake_io(&chain, opcode, offset, length, data);

	io->flags = (uint8_t)flags;
	TEST_ASSERT_EQUAL_INT(0, fake_submit(io));
	return io;
}

static inline unsigned end(struct gantry_io *io)
{
	for (unsigned turn = 0; io->busy && turn < TURNS; turn++)
		if (!fake_poll(&chain) && turn > 1000)
			pause_briefly();
	TEST_ASSERT_FALSE(io->busy);
	return io->status;
}

static inline unsigned run(unsigned opcode, unsigned flags, uint64_t offset, uint32_t length,
			   void *data)
{
	return end(begin(opcode, flags, offset, length, data));
}

#define OK(...) TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, run(__VA_ARGS__))
#define FAILS(status, ...) TEST_ASSERT_EQUAL_UINT(status, run(__VA_ARGS__))

#endif
