/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The nbd backend: operations, URI, sleep of the lane; and a server that never answers, answers
 * wrong, or changes its export.
 */
#include <errno.h>
#include <poll.h>
#include <time.h>

#include "nbd_rig.h"

/* -- IO -- */

static void executes_each_operation(void)
{
	OPEN_PLAIN();
	TEST_ASSERT_EQUAL_UINT(512, volume().block_size);
	TEST_ASSERT_EQUAL_UINT64(SERVER_BYTES, volume().size);
	history();
}

static void works_without_structured_replies(void)
{
	server.no_structured = 1;
	OPEN_PLAIN();
	TEST_ASSERT_FALSE(volume().ops >> GANTRY_OP_EXTENTS & 1);
	history();
}

static void uses_several_connections(void)
{
	server.flags |= SERVER_FLAG_MULTI;
	OPEN("connections=4", "quiesce_time=0s");
	poll_for(300000000);
	history();
	TEST_ASSERT_EQUAL_UINT(4, server.n_conns);
}

static void several_connections_need_permission(void)
{
	TEST_ASSERT_EQUAL_INT(-EINVAL, TRY("connections=2"));
	TEST_ASSERT_TRUE(fake_logged(&host, "does not allow several connections"));
}

static void fua_without_the_flag_is_a_write_and_a_flush(void)
{
	server.flags &= ~SERVER_FLAG_FUA;
	OPEN_PLAIN();
	ok(run_fua(GANTRY_OP_WRITE, 0, 4 * KIB, out));
	TEST_ASSERT_EQUAL_UINT(1, server.executed[SERVER_FLUSH]);
	TEST_ASSERT_EQUAL_MEMORY(out, server.stable, 4 * KIB);
}

static void a_read_only_export_is_a_read_only_volume(void)
{
	server.flags |= SERVER_FLAG_READ_ONLY;
	OPEN_PLAIN();
	TEST_ASSERT_EQUAL_UINT(GANTRY_VOLUME_READ_ONLY, volume().flags);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_READ_ONLY, write_at(0, 512));
	ok(run(GANTRY_OP_READ, 0, 512, in));
	ok(flush());
}

static void extents_are_rounded_to_blocks(void)
{
	struct gantry_extents *extents = (void *)in;

	OPEN_PLAIN();
	ok(run(GANTRY_OP_EXTENTS, 0, 8 * KIB, in));
	/* data ends in the second block, and the hole that reads as zeroes in the fourth */
	TEST_ASSERT_EQUAL_UINT(3, extents->count);
	TEST_ASSERT_EQUAL_UINT(1024, extents->extent[0].length);
	TEST_ASSERT_EQUAL_UINT(0, extents->extent[0].flags);
	TEST_ASSERT_EQUAL_UINT(1024, extents->extent[1].length);
	TEST_ASSERT_EQUAL_UINT(GANTRY_EXTENT_HOLE | GANTRY_EXTENT_ZERO, extents->extent[1].flags);
	TEST_ASSERT_EQUAL_UINT(6 * KIB, extents->extent[2].length);
	TEST_ASSERT_EQUAL_UINT(GANTRY_EXTENT_HOLE, extents->extent[2].flags);
	TEST_ASSERT_TRUE(gantry_extents_are_valid(extents, 8 * KIB, 512));
}

static void nothing_completes_before_its_reply(void)
{
	static const unsigned opcodes[] = {GANTRY_OP_READ, GANTRY_OP_WRITE, GANTRY_OP_FLUSH,
					   GANTRY_OP_DISCARD, GANTRY_OP_WRITE_ZEROES};
	static const unsigned commands[] = {SERVER_READ, SERVER_WRITE, SERVER_FLUSH, SERVER_TRIM,
					    SERVER_ZERO};

	OPEN_PLAIN();
	for (unsigned i = 0; i < 5; i++) {
		struct gantry_io *io;

		server_set(&server, &server.hold, 1u << commands[i]);
		io = begin(opcodes[i], 0, opcodes[i] == GANTRY_OP_FLUSH ? 0 : 4096, out);
		until_seen(commands[i], 1);
		poll_for(20000000);
		TEST_ASSERT_TRUE(io->busy);
		server_set(&server, &server.hold, 0);
		ok(end(io));
	}
}

static void an_error_of_the_server_is_the_status(void)
{
	OPEN_PLAIN();
	server_set(&server, &server.error, 28);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_NOSPC, write_at(0, 512));
	server_set(&server, &server.error, 5);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_IO, run(GANTRY_OP_READ, 0, 512, in));
	server_set(&server, &server.error, 1);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_READ_ONLY, write_at(0, 512));
	server_set(&server, &server.error, 0);
	ok(write_at(0, 512));
	TEST_ASSERT_EQUAL_UINT64(0, store()->n_losses);
}

/* -- servers that do not answer, or answer wrong -- */

static unsigned run_limited(unsigned opcode, uint32_t length, uint32_t deadline_us)
{
	struct gantry_io *io = fake_io(&chain, opcode, 0, length, in);
	uint64_t began = now(), n_timeouts = store()->n_timeouts;

	io->deadline_us = deadline_us;
	TEST_ASSERT_EQUAL_INT(0, fake_submit(io));
	end(io);
	n_timeouts = store()->n_timeouts - n_timeouts;
	TEST_ASSERT_EQUAL_INT(n_timeouts, now() - began >= deadline_us * 850ull);
	return io->status;
}

static void no_reply_until_the_deadline_is_an_error(void)
{
	OPEN_PLAIN();
	server_set(&server, &server.hold, 1u << SERVER_READ);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_IO, run_limited(GANTRY_OP_READ, 4096, 100000));
	TEST_ASSERT_EQUAL_UINT64(1, store()->n_losses);
	server_set(&server, &server.hold, 0);
	ok(run(GANTRY_OP_READ, 0, 4096, in));
}

/* The IO has spent 9 of its 10 s before the backend gets it. */
static void a_deadline_counts_from_the_start_of_the_io(void)
{
	uint64_t began = now();
	struct gantry_io *io;

	OPEN_PLAIN();
	server_set(&server, &server.hold, 1u << SERVER_READ);
	io = fake_io(&chain, GANTRY_OP_READ, 0, 512, in);
	io->deadline_us = 10000000;
	io->start_ns -= 9000000000;
	TEST_ASSERT_EQUAL_INT(0, fake_submit(io));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_IO, end(io));
	TEST_ASSERT_TRUE(now() - began < 5000000000);
	server_set(&server, &server.hold, 0);
}

static void no_connection_until_the_deadline_is_an_error(void)
{
	OPEN("quiesce_time=0s", "connect_timeout=1s");
	server_set(&server, &server.deaf, 1);
	server_crash(&server, 0);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_IO, run_limited(GANTRY_OP_READ, 4096, 300000));
	server_set(&server, &server.deaf, 0);
	ok(run(GANTRY_OP_READ, 0, 4096, in));
}

static void a_short_reply_is_no_success(void)
{
	OPEN_PLAIN();
	server_set(&server, &server.short_read, 1);
	TEST_ASSERT_NOT_EQUAL(GANTRY_S_OK, run_limited(GANTRY_OP_READ, 4096, 300000));
	server_set(&server, &server.short_read, 0);
	ok(run(GANTRY_OP_READ, 0, 4096, in));
}

static void a_short_simple_reply_is_no_success(void)
{
	server.no_structured = 1;
	a_short_reply_is_no_success();
}

static void a_reply_that_libnbd_rejects_is_no_success(void)
{
	unsigned *const wrong[] = {&server.wrong_cookie, &server.wrong_magic};

	OPEN_PLAIN();
	for (unsigned i = 0; i < 2; i++) {
		server_set(&server, wrong[i], 1);
		TEST_ASSERT_EQUAL_UINT(GANTRY_S_IO, run_limited(GANTRY_OP_READ, 4096, 300000));
		server_set(&server, wrong[i], 0);
		ok(run(GANTRY_OP_READ, 0, 4096, in));
	}
}

static void another_size_after_a_reconnect_ends_io(void)
{
	OPEN_PLAIN();
	ok(write_at(0, 4 * KIB));
	pthread_mutex_lock(&server.lock);
	server.size /= 2;
	pthread_mutex_unlock(&server.lock);
	server_crash(&server, 0);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_IO, run(GANTRY_OP_READ, 0, 512, in));
	TEST_ASSERT_TRUE(fake_logged(&host, "another export after a reconnect (size changed)"));
	TEST_ASSERT_EQUAL_UINT64(SERVER_BYTES, volume().size);
	pthread_mutex_lock(&server.lock);
	server.size *= 2;
	pthread_mutex_unlock(&server.lock);
	for (uint64_t limit = now() + LIMIT_NS; run(GANTRY_OP_READ, 0, 512, in) != GANTRY_S_OK;)
		TEST_ASSERT_TRUE(now() < limit);
}

/* -- a lane that sleeps -- */

static void sleep_until_event(void)
{
	struct pollfd p = {.fd = chain.backend_ops->fd(chain.backend_self), .events = POLLIN};

	if (chain.backend_ops->arm(chain.backend_self) == 0)
		TEST_ASSERT_EQUAL_INT_MESSAGE(1, poll(&p, 1, 10000), "no event");
	fake_poll(&chain);
}

static void the_descriptor_wakes_the_lane(void)
{
	struct gantry_io *io;

	OPEN_PLAIN();
	io = begin(GANTRY_OP_READ, 0, 4096, in);
	while (io->busy)
		sleep_until_event();
	/* a reconnect */
	server_crash(&server, 0);
	io = begin(GANTRY_OP_READ, 0, 4096, in);
	while (io->busy)
		sleep_until_event();
	ok(io->status);
	/* a deadline */
	server_set(&server, &server.hold, 1u << SERVER_READ);
	io = fake_io(&chain, GANTRY_OP_READ, 0, 4096, in);
	io->deadline_us = 100000;
	TEST_ASSERT_EQUAL_INT(0, fake_submit(io));
	while (io->busy)
		sleep_until_event();
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_IO, io->status);
	server_set(&server, &server.hold, 0);
}

/* -- URI -- */

static void the_text_of_a_uri_has_no_user_name(void)
{
	uint8_t uuid[16];

	OPEN_PLAIN();
	memcpy(uuid, volume().uuid, sizeof uuid);
	fake_chain_fini(&chain);
	fake_chain_init(&chain, &host);
	snprintf(uri, sizeof uri, "uri=nbd+unix://user@/?socket=%s", path);
	OPEN_PLAIN();
	TEST_ASSERT_NULL(strstr(store()->text, "user"));
	TEST_ASSERT_NOT_NULL(strstr(store()->text, path));
	TEST_ASSERT_EQUAL_MEMORY(uuid, volume().uuid, sizeof uuid);
}

static void messages_have_no_credentials_of_a_wrong_uri(void)
{
	snprintf(uri, sizeof uri, "uri=nbd://user:secret@[::1/");
	TEST_ASSERT_NOT_EQUAL(0, TRY("connect_timeout=100ms"));
	TEST_ASSERT_TRUE(fake_logged(&host, "cannot parse the URI"));
	TEST_ASSERT_FALSE(fake_logged(&host, "secret"));
}

static void what_is_no_uri_is_rejected(void)
{
	static const char *const bad[] = {"uri=/dev/sda", "uri=http://host", "uri=nbd+unix:///x",
					  "uri=nbd:host"};

	for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
		void *conf = fake_conf(fake_plugin("nbd"), bad[i], NULL);

		TEST_ASSERT_EQUAL_INT(-EINVAL, fake_check(&host, fake_plugin("nbd"), conf));
		free(conf);
	}
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(executes_each_operation);
	RUN_TEST(works_without_structured_replies);
	RUN_TEST(uses_several_connections);
	RUN_TEST(several_connections_need_permission);
	RUN_TEST(fua_without_the_flag_is_a_write_and_a_flush);
	RUN_TEST(a_read_only_export_is_a_read_only_volume);
	RUN_TEST(extents_are_rounded_to_blocks);
	RUN_TEST(nothing_completes_before_its_reply);
	RUN_TEST(an_error_of_the_server_is_the_status);
	RUN_TEST(no_reply_until_the_deadline_is_an_error);
	RUN_TEST(a_deadline_counts_from_the_start_of_the_io);
	RUN_TEST(no_connection_until_the_deadline_is_an_error);
	RUN_TEST(a_short_reply_is_no_success);
	RUN_TEST(a_short_simple_reply_is_no_success);
	RUN_TEST(a_reply_that_libnbd_rejects_is_no_success);
	RUN_TEST(another_size_after_a_reconnect_ends_io);
	RUN_TEST(the_descriptor_wakes_the_lane);
	RUN_TEST(the_text_of_a_uri_has_no_user_name);
	RUN_TEST(messages_have_no_credentials_of_a_wrong_uri);
	RUN_TEST(what_is_no_uri_is_rejected);
	return UNITY_END();
}
