/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The nbd backend against a server that misbehaves: it loses writes, closes at any byte, never
 * answers, answers wrong, or changes.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../../plugins/backend/nbd/nbd.h"
#include "fake/chain.h"
#include "nbd_server.h"
#include "unity.h"

#define KIB 1024u
#define LIMIT_NS 20000000000u /* longest wait for an event, on a busy machine */
#define QUIESCE_NS 400000000u

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

static struct nb_store *store(void)
{
	return chain.backend;
}

static uint64_t now(void)
{
	return host.pub.now_ns(&host.pub);
}

/* The deadline is long, because a reconnect can take long on a busy machine. */
static struct gantry_io *begin(unsigned opcode, uint64_t offset, uint32_t length, void *data)
{
	struct gantry_io *io = fake_io(&chain, opcode, offset, length, data);

	io->deadline_us = LIMIT_NS / 1000;
	TEST_ASSERT_EQUAL_INT(0, fake_submit(io));
	return io;
}

static unsigned end(struct gantry_io *io)
{
	uint64_t limit = now() + LIMIT_NS;

	while (io->busy) {
		fake_poll(&chain);
		TEST_ASSERT_TRUE_MESSAGE(now() < limit, "an IO does not complete");
	}
	return io->status;
}

static unsigned run(unsigned opcode, uint64_t offset, uint32_t length, void *data)
{
	return end(begin(opcode, offset, length, data));
}

static unsigned run_fua(unsigned opcode, uint64_t offset, uint32_t length, void *data)
{
	struct gantry_io *io = fake_io(&chain, opcode, offset, length, data);

	io->flags = GANTRY_IO_FUA;
	TEST_ASSERT_EQUAL_INT(0, fake_submit(io));
	return end(io);
}

static unsigned write_at(uint64_t offset, uint32_t length)
{
	return run(GANTRY_OP_WRITE, offset, length, out + offset);
}

static unsigned flush(void)
{
	return run(GANTRY_OP_FLUSH, 0, 0, NULL);
}

static void poll_for(uint64_t ns)
{
	uint64_t limit = now() + ns;

	while (now() < limit)
		fake_poll(&chain);
}

static void until_seen(unsigned command, unsigned n)
{
	uint64_t limit = now() + LIMIT_NS;

	while (server_get(&server, &server.seen[command]) < n) {
		fake_poll(&chain);
		TEST_ASSERT_TRUE_MESSAGE(now() < limit, "the server does not get a command");
	}
}

static struct gantry_volume_info volume(void)
{
	struct gantry_volume_info info = {.size = 0};

	chain.backend_ops->volume(chain.backend, &info);
	return info;
}

static void ok(unsigned status)
{
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, status);
}

/* -- IO -- */

static void history(void)
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

/* -- loss of connections -- */

static void the_flush_after_a_loss_fails_once(void)
{
	uint64_t verifier;

	OPEN_PLAIN();
	ok(write_at(0, 4 * KIB));
	ok(flush());
	ok(write_at(4 * KIB, 4 * KIB));
	verifier = volume().verifier;
	server_crash(&server, 1);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_IO, flush());
	TEST_ASSERT_NOT_EQUAL(verifier, volume().verifier);
	ok(run(GANTRY_OP_READ, 0, 8 * KIB, in));
	TEST_ASSERT_EQUAL_MEMORY(out, in, 4 * KIB);
	TEST_ASSERT_EQUAL_UINT(0, in[5 * KIB]);
	ok(write_at(4 * KIB, 4 * KIB));
	ok(flush());
	TEST_ASSERT_EQUAL_MEMORY(out, server.stable, 8 * KIB);
	TEST_ASSERT_EQUAL_UINT64(1, store()->epoch);
}

/* The server ends before it replies to the flush, so the outcome of the flush is not known. */
static void a_flush_in_flight_at_a_loss_fails(void)
{
	struct gantry_io *io;

	OPEN_PLAIN();
	ok(write_at(0, 4 * KIB));
	server_set(&server, &server.hold_before, 1u << SERVER_FLUSH);
	io = begin(GANTRY_OP_FLUSH, 0, 0, NULL);
	until_seen(SERVER_FLUSH, 1);
	server_crash(&server, 1);
	server_set(&server, &server.hold_before, 0);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_IO, end(io));
	ok(flush());
}

static void each_queue_learns_of_a_loss(void)
{
	int queue[2];
	struct gantry_io *io;

	OPEN_PLAIN();
	ok(write_at(0, 4 * KIB));
	io = fake_io(&chain, GANTRY_OP_READ, 0, 512, in);
	io->owner = &queue[0];
	TEST_ASSERT_EQUAL_INT(0, fake_submit(io));
	ok(end(io));
	server_crash(&server, 1);
	for (unsigned turn = 0; turn < 2; turn++) {
		for (unsigned i = 0; i < 3; i++) {
			io = fake_io(&chain, GANTRY_OP_FLUSH, 0, 0, NULL);
			io->owner = i < 2 ? (void *)&queue[i] : &chain;
			TEST_ASSERT_EQUAL_INT(0, fake_submit(io));
			TEST_ASSERT_EQUAL_UINT(turn ? GANTRY_S_OK : GANTRY_S_IO, end(io));
		}
	}
}

static void a_loss_without_unflushed_writes_loses_nothing(void)
{
	uint64_t verifier;

	OPEN_PLAIN();
	ok(write_at(0, 4 * KIB));
	ok(flush());
	ok(run_fua(GANTRY_OP_WRITE, 4 * KIB, 4 * KIB, out + 4 * KIB));
	verifier = volume().verifier;
	server_crash(&server, 1);
	ok(flush());
	ok(run(GANTRY_OP_READ, 0, 8 * KIB, in));
	TEST_ASSERT_EQUAL_MEMORY(out, in, 8 * KIB);
	TEST_ASSERT_EQUAL_UINT64(verifier, volume().verifier);
	TEST_ASSERT_EQUAL_UINT64(1, store()->n_losses);
}

/* Start another lane of the backend, with one more connection. */
static void add_lane(void)
{
	fake_chain_init(&second, &host);
	fake_lane_init(&second.lane, &host, 1, 2);
	TEST_ASSERT_EQUAL_INT(0, chain.backend_ops->start(chain.backend, &second.lane, FAKE_IOS,
							  &second.backend_self));
	second.backend_ops = chain.backend_ops;
	second.hops[second.n_hops++] = (struct gantry_hop){.submit = second.backend_ops->submit,
							   .self = second.backend_self};
}

/* Run an IO of a session; `owner` is its queue. */
static unsigned run_as(struct fake_chain *lane, const void *session, void *owner, unsigned opcode)
{
	struct gantry_io *io = fake_io(lane, opcode, 0, opcode == GANTRY_OP_FLUSH ? 0 : 512, out);
	uint64_t limit = now() + LIMIT_NS;

	io->deadline_us = LIMIT_NS / 1000;
	io->owner = owner;
	lane->hops[lane->n_hops - 1].session = session;
	TEST_ASSERT_EQUAL_INT(0, fake_submit(io));
	while (io->busy) {
		fake_poll(lane);
		TEST_ASSERT_TRUE_MESSAGE(now() < limit, "an IO does not complete");
	}
	return io->status;
}

static void a_queue_learns_of_a_loss_before_its_first_io(void)
{
	int session[2], queue[3];

	server.flags |= SERVER_FLAG_MULTI;
	OPEN_PLAIN();
	add_lane();
	ok(run_as(&second, &session[1], &queue[2], GANTRY_OP_READ));
	ok(run_as(&chain, &session[0], &queue[0], GANTRY_OP_WRITE));
	server_crash(&server, 1);
	ok(run_as(&chain, &session[0], &queue[0], GANTRY_OP_READ));
	ok(run_as(&second, &session[0], &queue[1], GANTRY_OP_WRITE));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_IO,
			       run_as(&second, &session[0], &queue[1], GANTRY_OP_FLUSH));
	ok(run_as(&second, &session[0], &queue[1], GANTRY_OP_FLUSH));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_IO,
			       run_as(&chain, &session[0], &queue[0], GANTRY_OP_FLUSH));
	ok(run_as(&chain, &session[0], &queue[0], GANTRY_OP_FLUSH));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_IO,
			       run_as(&second, &session[1], &queue[2], GANTRY_OP_FLUSH));
}

static void a_session_after_a_loss_flushes_without_an_error(void)
{
	int session[2], queue[2];

	OPEN_PLAIN();
	ok(run_as(&chain, &session[0], &queue[0], GANTRY_OP_WRITE));
	server_crash(&server, 1);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_IO,
			       run_as(&chain, &session[0], &queue[0], GANTRY_OP_FLUSH));
	ok(run_as(&chain, &session[1], &queue[1], GANTRY_OP_WRITE));
	ok(run_as(&chain, &session[1], &queue[1], GANTRY_OP_FLUSH));
}

/* The parts of a divided IO have other owners than the flushes of their queue. */
static void many_owners_cause_no_failed_flush(void)
{
	static char parts[4096];
	int session[2], queue[2];

	OPEN_PLAIN();
	ok(run_as(&chain, &session[0], &queue[0], GANTRY_OP_WRITE));
	server_crash(&server, 1);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_IO,
			       run_as(&chain, &session[0], &queue[0], GANTRY_OP_FLUSH));
	for (unsigned i = 0; i < sizeof parts; i++)
		ok(run_as(&chain, &session[1], &parts[i], GANTRY_OP_WRITE));
	ok(run_as(&chain, &session[0], &queue[0], GANTRY_OP_FLUSH));
	ok(run_as(&chain, &session[1], &queue[1], GANTRY_OP_FLUSH));
	/* when all entries are in use, each queue continues with the epoch of its session */
	for (unsigned i = 0; i < sizeof parts; i++)
		ok(run_as(&chain, &session[1], &parts[i], GANTRY_OP_FLUSH));
}

/* The second lane finds only later that its connection is outdated. */
static void a_loss_counts_once_for_all_lanes(void)
{
	struct pollfd p = {.events = POLLIN};

	server.flags |= SERVER_FLAG_MULTI;
	OPEN_PLAIN();
	add_lane();
	p.fd = chain.backend_ops->fd(second.backend_self);
	ok(run_as(&second, NULL, &second, GANTRY_OP_READ));
	while (chain.backend_ops->arm(second.backend_self))
		fake_poll(&second);
	pthread_mutex_lock(&server.lock);
	shutdown(server.fds[0], SHUT_RDWR);
	pthread_mutex_unlock(&server.lock);
	ok(write_at(0, 512));
	TEST_ASSERT_EQUAL_UINT64(1, store()->n_losses);
	TEST_ASSERT_EQUAL_INT_MESSAGE(1, poll(&p, 1, 0), "the other lane is not woken");
	ok(run_as(&second, NULL, &second, GANTRY_OP_READ));
	TEST_ASSERT_EQUAL_UINT64(1, store()->n_losses);
	TEST_ASSERT_EQUAL_UINT64(0, store()->epoch);
	ok(flush());
}

static void io_in_flight_at_a_loss_is_sent_again(void)
{
	struct gantry_io *io[2];

	OPEN_PLAIN();
	server_set(&server, &server.hold_before, 1u << SERVER_WRITE);
	io[0] = begin(GANTRY_OP_WRITE, 0, 4 * KIB, out);
	io[1] = begin(GANTRY_OP_WRITE, 4 * KIB, 4 * KIB, out + 4 * KIB);
	until_seen(SERVER_WRITE, 1);
	server_crash(&server, 1);
	poll_for(100000000);
	server_set(&server, &server.hold_before, 0);
	ok(end(io[0]));
	ok(end(io[1]));
	TEST_ASSERT_EQUAL_MEMORY(out, server.volume, 8 * KIB);
	ok(flush());
}

static void a_connection_that_closes_at_any_byte_loses_no_io(void)
{
	OPEN_PLAIN();
	for (unsigned n = 0; n < 16 + 20 + 8 + 512 + 16 + 32; n += n < 60 || n > 540 ? 1 : 37) {
		server_crash(&server, 0);
		/* so many short connections would take long */
		pthread_mutex_lock(&store()->lock);
		store()->delay_ns = 1000000;
		pthread_mutex_unlock(&store()->lock);
		pthread_mutex_lock(&server.lock);
		server.close_after = n;
		pthread_mutex_unlock(&server.lock);
		out[0] = (uint8_t)n;
		memset(in, 0xee, 512);
		ok(write_at(0, 512));
		ok(run(GANTRY_OP_READ, 0, 512, in));
		TEST_ASSERT_EQUAL_MEMORY(out, in, 512);
		(void)flush();
		ok(flush());
	}
	TEST_ASSERT_EQUAL_UINT(0, chain.n_stray);
}

static void the_loss_of_one_connection_replaces_all(void)
{
	server.flags |= SERVER_FLAG_MULTI;
	OPEN("connections=2", "quiesce_time=0s");
	poll_for(300000000);
	TEST_ASSERT_EQUAL_UINT(2, server.n_conns);
	pthread_mutex_lock(&server.lock);
	shutdown(server.fds[0], 2);
	pthread_mutex_unlock(&server.lock);
	chain.backend_ops->arm(chain.backend_self);
	poll_for(500000000);
	TEST_ASSERT_EQUAL_UINT(4, server.n_conns);
	TEST_ASSERT_EQUAL_UINT64(1, store()->n_losses);
	history();
}

static void short_connections_follow_each_other_slowly(void)
{
	uint64_t began;

	OPEN_PLAIN();
	began = now();
	for (unsigned i = 0; i < 3; i++) { /* 50 ms, 100 ms, 200 ms */
		server_crash(&server, 0);
		ok(run(GANTRY_OP_READ, 0, 512, in));
	}
	TEST_ASSERT_TRUE(now() - began >= 350000000);
	poll_for(1100000000);
	server_crash(&server, 0);
	ok(run(GANTRY_OP_READ, 0, 512, in));
	TEST_ASSERT_EQUAL_UINT64(NB_FIRST_DELAY_NS, store()->delay_ns);
}

/* -- writes that a former server still executes -- */

static void an_overlapping_write_waits_for_a_late_write(void)
{
	struct gantry_io *io, *next, *apart;
	uint64_t mark = 0, began;

	OPEN("quiesce_time=2s"); /* longer than a busy machine needs to the check below */
	server_set(&server, &server.hold_before, 1u << SERVER_WRITE);
	io = begin(GANTRY_OP_WRITE, 0, 4 * KIB, out);
	until_seen(SERVER_WRITE, 1);
	began = now();
	server_crash(&server, 0);
	until_seen(SERVER_WRITE, 2);
	next = begin(GANTRY_OP_WRITE, 2 * KIB, 4 * KIB, out + 64 * KIB);
	apart = begin(GANTRY_OP_WRITE, 64 * KIB, 512, out + 64 * KIB);
	TEST_ASSERT_EQUAL_INT(-EAGAIN, chain.backend_ops->quiesce(chain.backend, &mark));
	server_set(&server, &server.hold_before, 0); /* both servers execute the first write */
	ok(end(io));
	ok(end(apart));
	TEST_ASSERT_TRUE(next->busy);
	ok(end(next));
	TEST_ASSERT_TRUE(now() - began >= QUIESCE_NS);
	TEST_ASSERT_EQUAL_INT(0, chain.backend_ops->quiesce(chain.backend, &mark));
	TEST_ASSERT_EQUAL_MEMORY(out + 64 * KIB, server.volume + 2 * KIB, 4 * KIB);
	TEST_ASSERT_EQUAL_UINT64(1, store()->n_held);
}

static void sessions_wait_for_late_writes_of_a_former_target(void)
{
	uint64_t mark = 0;

	OPEN("quiesce_time=3600s");
	TEST_ASSERT_EQUAL_INT(-EAGAIN, chain.backend_ops->quiesce(chain.backend, &mark));
	store()->former_end_ns = now();
	mark = 0;
	TEST_ASSERT_EQUAL_INT(0, chain.backend_ops->quiesce(chain.backend, &mark));
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
	RUN_TEST(the_flush_after_a_loss_fails_once);
	RUN_TEST(a_flush_in_flight_at_a_loss_fails);
	RUN_TEST(each_queue_learns_of_a_loss);
	RUN_TEST(a_loss_without_unflushed_writes_loses_nothing);
	RUN_TEST(a_queue_learns_of_a_loss_before_its_first_io);
	RUN_TEST(a_session_after_a_loss_flushes_without_an_error);
	RUN_TEST(many_owners_cause_no_failed_flush);
	RUN_TEST(a_loss_counts_once_for_all_lanes);
	RUN_TEST(io_in_flight_at_a_loss_is_sent_again);
	RUN_TEST(a_connection_that_closes_at_any_byte_loses_no_io);
	RUN_TEST(the_loss_of_one_connection_replaces_all);
	RUN_TEST(short_connections_follow_each_other_slowly);
	RUN_TEST(an_overlapping_write_waits_for_a_late_write);
	RUN_TEST(sessions_wait_for_late_writes_of_a_former_target);
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
