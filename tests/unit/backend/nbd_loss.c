/* SPDX-License-Identifier: BSD-3-Clause */
/* The nbd backend against a server that loses writes, and closes its connections at any byte. */
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>

#include "nbd_rig.h"

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

/* Open two connections. The lane alternates between them, beginning with the first. */
static void open_two_connections(void)
{
	uint64_t limit = now() + LIMIT_NS;
	const struct nb_lane *lane;

	server.flags |= SERVER_FLAG_MULTI;
	OPEN("connections=2", "quiesce_time=0s");
	lane = chain.backend_self;
	while (!lane->conns[0].handle || !lane->conns[1].handle) {
		fake_poll(&chain);
		TEST_ASSERT_TRUE_MESSAGE(now() < limit, "the lane has no second connection");
	}
}

static void close_first_connection(void)
{
	pthread_mutex_lock(&server.lock);
	shutdown(server.fds[0], SHUT_RDWR);
	pthread_mutex_unlock(&server.lock);
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
	close_first_connection();
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
	open_two_connections();
	close_first_connection();
	chain.backend_ops->arm(chain.backend_self);
	poll_for(500000000);
	TEST_ASSERT_EQUAL_UINT(4, server.n_conns);
	TEST_ASSERT_EQUAL_UINT64(1, store()->n_losses);
	history();
}

/*
 * The server executes a flush and holds its reply. Meanwhile it acknowledges a write on the other
 * connection, which the flush does not cover.
 */
static void a_flush_covers_no_later_write(void)
{
	struct gantry_io *io;

	open_two_connections();
	server_set(&server, &server.hold, 1u << SERVER_FLUSH);
	io = begin(GANTRY_OP_FLUSH, 0, 0, NULL);
	until_seen(SERVER_FLUSH, 1);
	ok(write_at(0, 4 * KIB));
	server_set(&server, &server.hold, 0);
	ok(end(io));
	server_crash(&server, 1);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_IO, flush());
	ok(flush());
}

/*
 * In one poll, the lane detects the loss of its first connection and then receives the reply to a
 * write on the second one. A former server process may have sent this reply, so the lane must send
 * the write again.
 */
static void a_write_acknowledged_after_a_loss_is_sent_again(void)
{
	uint64_t limit = now() + LIMIT_NS;
	struct gantry_io *write, *read;

	open_two_connections();
	ok(run(GANTRY_OP_READ, 0, 512, in));
	server_set(&server, &server.hold, 1u << SERVER_WRITE);
	write = begin(GANTRY_OP_WRITE, 0, 4 * KIB, out);
	until_seen(SERVER_WRITE, 1);
	ok(run(GANTRY_OP_READ, 0, 512, in));
	read = begin(GANTRY_OP_READ, 0, 512, in); /* after the write, on its connection */
	close_first_connection();
	server_set(&server, &server.hold, 0);
	while (server_get(&server, &server.seen[SERVER_READ]) < 3) {
		sched_yield();
		TEST_ASSERT_TRUE_MESSAGE(now() < limit, "the server does not get the read");
	}
	chain.backend_ops->arm(chain.backend_self); /* the next poll examines idle connections */
	ok(end(write));
	ok(end(read));
	TEST_ASSERT_EQUAL_UINT(2, server_get(&server, &server.seen[SERVER_WRITE]));
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
	TEST_ASSERT_TRUE(now() - began >= 2000000000u);
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

int main(void)
{
	UNITY_BEGIN();
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
	RUN_TEST(a_flush_covers_no_later_write);
	RUN_TEST(a_write_acknowledged_after_a_loss_is_sent_again);
	RUN_TEST(short_connections_follow_each_other_slowly);
	RUN_TEST(an_overlapping_write_waits_for_a_late_write);
	RUN_TEST(sessions_wait_for_late_writes_of_a_former_target);
	return UNITY_END();
}
