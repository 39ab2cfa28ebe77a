/* SPDX-License-Identifier: BSD-3-Clause */
/* nbd_rig.h - the nbd backend on a lane of the test, with a server in the same process */
#ifndef TEST_NBD_RIG_H
#define TEST_NBD_RIG_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../../plugins/backend/nbd/nbd.h"
#include "fake/chain.h"
#include "nbd_server.h"
#include "unity.h"

#define KIB 1024u
#define LIMIT_NS 20000000000u /* longest wait for an event, on a busy machine */

static struct fake_host host;
static struct fake_chain chain, second; /* lanes of one backend */
static struct server server;
static char dir[64], path[108], uri[160];
static uint8_t out[SERVER_BYTES], in[SERVER_BYTES];

#define TRY(...) \
	fake_chain_backend(&chain, fake_plugin("nbd"), \
			   fake_conf(fake_plugin("nbd"), uri, __VA_ARGS__, NULL))
#define OPEN(...) TEST_ASSERT_EQUAL_INT(0, TRY(__VA_ARGS__))
#define OPEN_PLAIN() OPEN("quiesce_time=0s")

void setUp(void)
{
	const char *tmp = getenv("TMPDIR");

	fake_host_init(&host, "test");
	host.real_clock = 1;
	fake_chain_init(&chain, &host);
	snprintf(dir, sizeof dir, "%.40s/gantry-XXXXXX", tmp && strlen(tmp) < 40 ? tmp : "/tmp");
	if (!mkdtemp(dir))
		fake_fail("%s: cannot make it", dir);
	snprintf(path, sizeof path, "%s/sock", dir);
	snprintf(uri, sizeof uri, "uri=nbd+unix:///?socket=%s", path);
	server_start(&server, path);
	for (size_t i = 0; i < sizeof out; i++)
		out[i] = (uint8_t)(i * 11 + i / 4096 + 1);
}

void tearDown(void)
{
	if (second.backend_self)
		chain.backend_ops->stop(second.backend_self);
	second.backend_self = NULL;
	fake_chain_fini(&chain);
	server_stop(&server);
	unlink(path);
	rmdir(dir);
}

static inline struct nb_store *store(void)
{
	return chain.backend;
}

static inline uint64_t now(void)
{
	return host.pub.now_ns(&host.pub);
}

/* The deadline is long, because a reconnect can take long on a busy machine. */
static inline struct gantry_io *begin(unsigned opcode, uint64_t offset, uint32_t length, void *data)
{
	struct gantry_io *io = fake_io(&chain, opcode, offset, length, data);

	io->deadline_us = LIMIT_NS / 1000;
	TEST_ASSERT_EQUAL_INT(0, fake_submit(io));
	return io;
}

static inline unsigned end(struct gantry_io *io)
{
	uint64_t limit = now() + LIMIT_NS;

	while (io->busy) {
		fake_poll(&chain);
		TEST_ASSERT_TRUE_MESSAGE(now() < limit, "an IO does not complete");
	}
	return io->status;
}

static inline unsigned run(unsigned opcode, uint64_t offset, uint32_t length, void *data)
{
	return end(begin(opcode, offset, length, data));
}

static inline unsigned run_fua(unsigned opcode, uint64_t offset, uint32_t length, void *data)
{
	struct gantry_io *io = fake_io(&chain, opcode, offset, length, data);

	io->flags = GANTRY_IO_FUA;
	TEST_ASSERT_EQUAL_INT(0, fake_submit(io));
	return end(io);
}

static inline unsigned write_at(uint64_t offset, uint32_t length)
{
	return run(GANTRY_OP_WRITE, offset, length, out + offset);
}

static inline unsigned flush(void)
{
	return run(GANTRY_OP_FLUSH, 0, 0, NULL);
}

static inline void poll_for(uint64_t ns)
{
	uint64_t limit = now() + ns;

	while (now() < limit)
		fake_poll(&chain);
}

static inline void until_seen(unsigned command, unsigned n)
{
	uint64_t limit = now() + LIMIT_NS;

	while (server_get(&server, &server.seen[command]) < n) {
		fake_poll(&chain);
		TEST_ASSERT_TRUE_MESSAGE(now() < limit, "the server does not get a command");
	}
}

static inline struct gantry_volume_info volume(void)
{
	struct gantry_volume_info info = {.size = 0};

	chain.backend_ops->volume(chain.backend, &info);
	return info;
}

static inline void ok(unsigned status)
{
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, status);
}

/* Write, zero, discard and flush, with and without FUA; compare the volume with the data. */
static inline void history(void)
{
	ok(run(GANTRY_OP_WRITE, 0, sizeof out, out));
	ok(flush());
	ok(run(GANTRY_OP_READ, 0, sizeof in, in));
	TEST_ASSERT_EQUAL_MEMORY(out, in, sizeof out);
	ok(run(GANTRY_OP_WRITE_ZEROES, 8 * KIB, 64 * KIB, NULL));
	ok(run(GANTRY_OP_DISCARD, 128 * KIB, 64 * KIB, NULL));
	ok(run_fua(GANTRY_OP_WRITE, 256 * KIB, 4 * KIB, out));
	TEST_ASSERT_EQUAL_MEMORY(out, server.stable + 256 * KIB, 4 * KIB);
	ok(run_fua(GANTRY_OP_WRITE_ZEROES, 512 * KIB, 4 * KIB, NULL));
	ok(run(GANTRY_OP_READ, 0, sizeof in, in));
	TEST_ASSERT_EQUAL_MEMORY(server.volume, in, sizeof in);
	TEST_ASSERT_EQUAL_UINT(0, in[9 * KIB] | in[130 * KIB] | in[513 * KIB]);
	TEST_ASSERT_EQUAL_UINT(0, chain.n_stray);
}

#endif
