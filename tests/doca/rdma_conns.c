/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections of RDMA: by blob and by address, several of one context, and disconnection. */
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rdma_rig.h"
#include "unity.h"

#define PORT 13579
#define CONNS 4u

/* -- by address -- */

/*
 * Store the address of the listener's device: on a network the first IPv4 address of the device;
 * else 127.0.0.1, because over shared memory every address is this machine.
 */
static void address_of(struct rig_side *s, char *text, size_t size)
{
	struct doca_rdma_gid gids[16];
	uint32_t n;

	snprintf(text, size, "127.0.0.1");
	OK(doca_rdma_cap_get_gid_table_size(doca_dev_as_devinfo(s->dev), &n));
	n = n < 16 ? n : 16;
	OK(doca_rdma_cap_get_gid(doca_dev_as_devinfo(s->dev), 0, n, gids));
	for (uint32_t i = n; i-- > 0;)
		if (gids[i].raw[10] == 0xff && gids[i].raw[11] == 0xff)
			inet_ntop(AF_INET, &gids[i].raw[12], text, (socklen_t)size);
}

static void say_address(struct rig_side *s, int fd)
{
	char address[64] = "";

	address_of(s, address, sizeof(address));
	rig_say(fd, address, sizeof(address));
}

static void listen_here(struct rig_side *s, int fd)
{
	OK(doca_rdma_start_listen_to_port(s->rdma, PORT));
	say_address(s, fd);
}

static void connect_there(struct rig_side *s, int fd)
{
	struct doca_rdma_addr *addr, *told;
	enum doca_rdma_addr_type type;
	const char *text;
	char address[64];
	uint16_t port;

	rig_hear(fd, address, sizeof(address));
	OK(doca_rdma_addr_create(DOCA_RDMA_ADDR_TYPE_IPv4, address, PORT, &addr));
	OK(doca_rdma_addr_get_params(addr, &type, &text, &port));
	CHECK(type == DOCA_RDMA_ADDR_TYPE_IPv4 && strcmp(text, address) == 0 && port == PORT);
	OK(doca_rdma_connect_to_addr(s->rdma, addr, (union doca_data){.u64 = 42}));
	OK(doca_rdma_addr_destroy(addr));
	if (s->n_established) {
		OK(doca_rdma_connection_get_addr(s->conns[0], &told));
		CHECK(told);
	}
}

static struct rig_side *open_side(bool is_peer, uint16_t max_conns)
{
	return rig_open(
		&(struct rig_wish){.is_peer = is_peer, .max_conns = max_conns, .callbacks = true});
}

/*
 * The usual client: gets the descriptor of the server's memory in a message, accesses the memory,
 * disconnects, and stops.
 */
static void client(int fd)
{
	struct rig_side *s = open_side(false, 0);
	struct doca_buf *room = rig_room(s, 0, 1024), *remote, *own;
	union doca_data data;
	size_t length;

	connect_there(s, fd);
	rig_until(s, &s->n_established, 1);
	OK(doca_rdma_connection_get_user_data(s->conns[0], &data));
	CHECK(data.u64 == 42);
	rig_receive(s, room, 1);
	rig_end_ok(s, 1);
	OK(doca_buf_get_data_len(room, &length));
	OK(doca_mmap_create_from_export(NULL, s->memory, length, s->dev, &s->remote));
	remote = rig_remote_data(s, 0, 100000);
	own = rig_room(s, 4096, 100000);
	rig_read(s, s->conns[0], remote, own, 2);
	rig_end_ok(s, 2);
	CHECK(rig_differs(s->memory + 4096, 100000, 9) == 100000);
	OK(doca_rdma_connection_disconnect(s->conns[0]));
	rig_put(room);
	rig_put(remote);
	rig_put(own);
	OK(doca_ctx_stop(s->ctx));
	rig_close(s);
}

static void server(int fd)
{
	struct rig_side *s = open_side(true, 0);
	struct doca_mmap *map;
	struct doca_buf *buf;
	const void *blob;
	size_t size;

	rig_fill(s->memory, RIG_BYTES, 9);
	listen_here(s, fd);
	rig_until(s, &s->n_established, 1);
	CHECK(s->n_requests == 1);
	OK(doca_mmap_export_rdma(s->map, s->dev, &blob, &size));
	OK(doca_mmap_create(&map));
	OK(doca_mmap_set_memrange(map, (void *)(uintptr_t)blob, size));
	OK(doca_mmap_add_dev(map, s->dev));
	OK(doca_mmap_start(map));
	OK(doca_buf_inventory_buf_get_by_data(s->inventory, map, (void *)(uintptr_t)blob, size,
					      &buf));
	rig_send(s, s->conns[0], buf, 1);
	rig_end_ok(s, 1);
	rig_until(s, &s->n_disconnected, 1);
	CHECK(s->n_failed == 0);
	rig_put(buf);
	OK(doca_mmap_destroy(map));
	OK(doca_rdma_stop_listen_to_port(s->rdma, PORT));
	FAILS(DOCA_ERROR_INVALID_VALUE, doca_rdma_stop_listen_to_port(s->rdma, PORT));
	OK(doca_ctx_stop(s->ctx));
	rig_close(s);
}

static void both_sides_of_a_connection_by_address_get_its_start_and_end(void)
{
	rig_both(client, server);
}

static void refused_client(int fd)
{
	struct rig_side *s = open_side(false, 0);

	connect_there(s, fd);
	rig_until(s, &s->n_failed, 1);
	CHECK(s->n_established == 0 && s->n_disconnected == 0);
	rig_sync(fd);
	rig_close(s);
}

static void refusing_server(int fd)
{
	struct rig_side *s = open_side(true, 0);

	s->refuses = true;
	listen_here(s, fd);
	rig_until(s, &s->n_requests, 1);
	rig_sync(fd);
	CHECK(s->n_established == 0 && s->n_failed == 0 && s->n_disconnected == 0);
	rig_close(s);
}

static void rejected_request_fails_at_the_client(void)
{
	rig_both(refused_client, refusing_server);
}

/* -- a new peer connects before the program has processed the end of the previous one -- */

static int talk;

static void accept_it(struct doca_rdma_connection *conn, union doca_data ctx)
{
	(void)ctx;
	OK(doca_rdma_connection_accept(conn, NULL, 0));
}

static void count_established(struct doca_rdma_connection *conn, union doca_data user_data,
			      union doca_data ctx)
{
	(void)conn, (void)user_data;
	((struct rig_side *)ctx.ptr)->n_established++;
}

static void count_failed(struct doca_rdma_connection *conn, union doca_data user_data,
			 union doca_data ctx)
{
	(void)conn, (void)user_data;
	((struct rig_side *)ctx.ptr)->n_failed++;
}

static void end_slowly(struct doca_rdma_connection *conn, union doca_data user_data,
		       union doca_data ctx)
{
	struct rig_side *s = ctx.ptr;

	(void)user_data;
	if (s->n_disconnected++ == 0) {
		say_address(s, talk);
		say_address(s, talk);
		rig_hark(talk);
	}
	/* as programs do, although the connection has ended */
	OK(doca_rdma_connection_disconnect(conn));
}

static void slow_server(int fd)
{
	struct rig_side *s = open_side(true, 1);

	talk = fd;
	OK(doca_rdma_set_connection_state_callbacks(s->rdma, accept_it, count_established,
						    count_failed, end_slowly));
	listen_here(s, fd);
	rig_until(s, &s->n_established, 1);
	rig_tell(fd);
	rig_until(s, &s->n_established, 2);
	CHECK(s->n_disconnected == 1 && s->n_failed == 0);
	rig_sync(fd);
	rig_close(s);
}

/* Of two requests for the only place, one is rejected, and the other is accepted. */
static void two_clients(int fd)
{
	struct rig_side *s[2] = {open_side(false, 0), open_side(false, 0)};
	unsigned has;

	connect_there(s[0], fd);
	rig_until(s[0], &s[0]->n_established, 1);
	rig_hark(fd); /* the connection is also established at the server */
	OK(doca_rdma_connection_disconnect(s[0]->conns[0]));
	rig_until(s[0], &s[0]->n_disconnected, 1);
	connect_there(s[0], fd);
	connect_there(s[1], fd);
	while (s[0]->n_failed + s[1]->n_failed == 0) {
		rig_progress(s[0]);
		rig_progress(s[1]);
	}
	has = s[0]->n_failed;
	rig_tell(fd);
	rig_until(s[has], &s[has]->n_established, 2 - has);
	rig_sync(fd);
	rig_close(s[0]);
	rig_close(s[1]);
}

static void disconnect_of_an_ended_connection_does_not_affect_a_new_one(void)
{
	rig_both(two_clients, slow_server);
}

static void lonely_client(int fd)
{
	struct rig_side *s = open_side(false, 0);

	connect_there(s, fd);
	rig_until(s, &s->n_failed, 1);
	rig_sync(fd);
	rig_close(s);
}

static void deaf_server(int fd)
{
	struct rig_side *s = open_side(true, 0);

	OK(doca_rdma_start_listen_to_port(s->rdma, PORT));
	OK(doca_rdma_stop_listen_to_port(s->rdma, PORT));
	say_address(s, fd);
	rig_sync(fd);
	rig_close(s);
}

static void connect_fails_without_a_listener(void)
{
	rig_both(lonely_client, deaf_server);
}

static void crowd(int fd)
{
	struct rig_side *s = open_side(false, CONNS);
	struct doca_buf *buf = rig_data(s, 0, 100);
	char address[64];
	struct doca_rdma_addr *addr;

	rig_hear(fd, address, sizeof(address));
	OK(doca_rdma_addr_create(DOCA_RDMA_ADDR_TYPE_IPv4, address, PORT, &addr));
	for (unsigned i = 0; i < CONNS; i++) {
		OK(doca_rdma_connect_to_addr(s->rdma, addr, (union doca_data){.u64 = i}));
		if (i + 1 < CONNS)
			rig_until(s, &s->n_established, i + 1);
	}
	/* the last connection exceeds the limit of the peer, which rejects it */
	rig_until(s, &s->n_failed, 1);
	CHECK(s->n_established == CONNS - 1);
	OK(doca_rdma_addr_destroy(addr));
	rig_fill(s->memory, 100, 1);
	for (unsigned i = 0; i < CONNS - 1; i++)
		rig_send_imm(s, s->conns[i], buf, i, i);
	for (unsigned i = 0; i < CONNS - 1; i++)
		OK(rig_end(s)->status);
	rig_hark(fd);
	rig_put(buf);
	rig_close(s);
}

/* Receives belong to the context: the next message of any connection uses the next receive. */
static void host_of_a_crowd(int fd)
{
	struct rig_side *s = open_side(true, CONNS - 1);
	const struct doca_rdma_connection *from[CONNS] = {NULL};
	struct doca_buf *bufs[CONNS];

	listen_here(s, fd);
	rig_until(s, &s->n_established, CONNS - 1);
	for (unsigned i = 0; i < CONNS - 1; i++) {
		bufs[i] = rig_room(s, i * 4096, 4096);
		rig_receive(s, bufs[i], i);
	}
	for (unsigned i = 0; i < CONNS - 1; i++) {
		const struct rig_end *end = rig_end(s);

		OK(end->status);
		CHECK(end->imm < CONNS - 1 && !from[end->imm] && end->length == 100);
		from[end->imm] = end->conn;
	}
	for (unsigned i = 0; i < CONNS - 1; i++) {
		bool is_known = false;

		for (unsigned k = 0; k < CONNS - 1; k++)
			is_known |= from[i] == s->conns[k];
		CHECK(is_known);
		for (unsigned k = 0; k < i; k++)
			CHECK(from[i] != from[k]);
		CHECK(rig_differs(s->memory + i * 4096, 100, 1) == 100);
		rig_put(bufs[i]);
	}
	rig_tell(fd);
	rig_until(s, &s->n_disconnected, CONNS - 1);
	rig_close(s);
}

static void connections_by_address_are_limited_to_the_configured_number(void)
{
	rig_both(crowd, host_of_a_crowd);
}

/* -- by blob -- */

static void many_out(int fd)
{
	struct rig_side *s = rig_open(&(struct rig_wish){.max_conns = CONNS});
	struct doca_rdma_connection *one_more;
	struct doca_buf *bufs[CONNS];
	const void *blob;
	size_t size;

	for (unsigned i = 0; i < CONNS; i++)
		rig_connect(s, fd, i);
	FAILS(DOCA_ERROR_FULL, doca_rdma_export(s->rdma, &blob, &size, &one_more));
	for (uint32_t round = 0; round < 50; round++) {
		for (uint32_t i = 0; i < CONNS; i++) {
			bufs[i] = rig_data(s, i * 65536, 1000 + i * 9000);
			rig_fill(s->memory + i * 65536, 1000 + i * 9000, round * CONNS + i);
			rig_send_imm(s, s->conns[i], bufs[i], round * CONNS + i, 0);
		}
		for (uint32_t i = 0; i < CONNS; i++)
			OK(rig_end(s)->status);
		for (uint32_t i = 0; i < CONNS; i++)
			rig_put(bufs[i]);
	}
	rig_hark(fd);
	rig_close(s);
}

/* Fewer receives than messages: messages wait for receives, and each connection keeps its order. */
static void many_in(int fd)
{
	struct rig_side *s = rig_open(&(struct rig_wish){.is_peer = true, .max_conns = CONNS});
	uint32_t next[CONNS] = {0};

	for (unsigned i = 0; i < CONNS; i++)
		rig_connect(s, fd, i);
	for (uint32_t n = 0; n < 50 * CONNS; n++) {
		struct doca_buf *buf = rig_room(s, 0, 65536);
		const struct rig_end *end;
		uint32_t i;

		rig_receive(s, buf, n);
		end = rig_end(s);
		OK(end->status);
		i = end->imm % CONNS;
		CHECK(end->conn == s->conns[i] && end->imm / CONNS == next[i]++ &&
		      end->length == 1000 + i * 9000);
		CHECK(rig_differs(s->memory, end->length, end->imm) == end->length);
		rig_put(buf);
	}
	rig_tell(fd);
	rig_close(s);
}

static void connections_by_blob_beyond_the_limit_return_FULL(void)
{
	rig_both(many_out, many_in);
	rig_both(many_in, many_out);
}

static void stop_first(int fd)
{
	struct rig_side *s = open_side(false, 0);
	enum doca_ctx_states state;

	rig_connect(s, fd, 0);
	rig_until(s, &s->n_established, 1);
	rig_sync(fd);
	OK(doca_ctx_stop(s->ctx)); /* SUCCESS, although it is connected: no task is in flight */
	OK(doca_ctx_get_state(s->ctx, &state));
	CHECK(state == DOCA_CTX_STATE_IDLE);
	rig_hark(fd);
	/* the context can start and connect again */
	rig_start(s);
	s->n_established = 0;
	rig_connect(s, fd, 0);
	rig_until(s, &s->n_established, 1);
	rig_sync(fd);
	rig_close(s);
}

static void expect_the_disconnect(int fd)
{
	struct rig_side *s = open_side(true, 0);

	rig_connect(s, fd, 0);
	rig_until(s, &s->n_established, 1);
	rig_sync(fd);
	rig_until(s, &s->n_disconnected, 1);
	CHECK(s->n_failed == 0);
	rig_tell(fd);
	s->n_established = 0;
	rig_connect(s, fd, 0); /* the old connection does not count any more */
	rig_until(s, &s->n_established, 1);
	rig_sync(fd);
	rig_close(s);
}

static void connected_context_stops_at_once_and_the_peer_is_notified(void)
{
	rig_both(stop_first, expect_the_disconnect);
}

static void send_before_the_stop(int fd)
{
	struct rig_side *s = rig_open(&(struct rig_wish){.max_conns = 1});
	struct doca_buf *buf = rig_data(s, 0, 30000);

	rig_fill(s->memory, 30000, 4);
	rig_connect(s, fd, 0);
	rig_send(s, s->conns[0], buf, 1);
	rig_end_ok(s, 1);
	rig_put(buf);
	OK(doca_ctx_stop(s->ctx));
	rig_close(s);
}

static void receive_before_the_disconnect(int fd)
{
	struct rig_side *s = open_side(true, 0);
	struct doca_buf *buf = rig_room(s, 0, 30000);

	rig_connect(s, fd, 0);
	rig_receive(s, buf, 1);
	rig_end_ok(s, 1);
	CHECK(rig_differs(s->memory, 30000, 4) == 30000 && s->n_disconnected == 0);
	rig_until(s, &s->n_disconnected, 1);
	rig_put(buf);
	rig_close(s);
}

static void message_sent_before_a_stop_arrives_before_the_disconnect(void)
{
	rig_both(send_before_the_stop, receive_before_the_disconnect);
}

/* -- a killed peer -- */

static void die(int fd)
{
	struct rig_side *s = open_side(true, 0);

	rig_connect(s, fd, 0);
	rig_until(s, &s->n_established, 1);
	rig_export(s, fd);
	rig_say_pid(fd);
	rig_hark(fd); /* blocks until the process is killed */
	rig_hark(fd);
}

/*
 * The library reports the loss within 100 ms. On a busy machine the process may be scheduled much
 * later, hence this limit.
 */
#define DEATH_MS 2000

static void survive(int fd)
{
	struct rig_side *s = open_side(false, 0);
	struct doca_buf *buf = rig_data(s, 0, 1000);
	const struct rig_end *end;
	enum doca_ctx_states state;
	uint64_t killed_at;
	pid_t pid;

	rig_connect(s, fd, 0);
	rig_until(s, &s->n_established, 1);
	rig_import(s, fd);
	rig_send(s, s->conns[0], buf, 1); /* the peer has posted no receive */
	pid = rig_hear_pid(fd);
	CHECK(kill(pid, SIGKILL) == 0);
	killed_at = rig_now_ms();
	rig_until(s, &s->n_disconnected, 1);
	CHECK(rig_now_ms() - killed_at <= DEATH_MS);
	end = rig_end(s);
	CHECK(end->status != DOCA_SUCCESS && end->tag == 1);
	/* a task has failed: the context stops by itself */
	UNTIL(s,
	      doca_ctx_get_state(s->ctx, &state) == DOCA_SUCCESS && state == DOCA_CTX_STATE_IDLE);
	CHECK(s->states[s->n_states - 2] == DOCA_CTX_STATE_STOPPING);
	rig_put(buf);
	rig_close(s);
}

static void death_of_a_peer_is_reported_in_time_and_tasks_to_it_fail(void)
{
	TEST_ASSERT_TRUE(rig_run(survive, die, true));
}

static void survive_idle(int fd)
{
	struct rig_side *s = open_side(false, 0);
	struct doca_buf *buf = rig_room(s, 0, 1000);
	enum doca_ctx_states state;

	s->progresses_wait = true;
	rig_connect(s, fd, 0);
	rig_until(s, &s->n_established, 1);
	rig_import(s, fd);
	CHECK(kill(rig_hear_pid(fd), SIGKILL) == 0);
	rig_until(s, &s->n_disconnected, 1);
	OK(doca_ctx_get_state(s->ctx, &state));
	CHECK(state == DOCA_CTX_STATE_RUNNING); /* nothing has failed */
	rig_put(buf);
	rig_close(s);
}

static void death_of_a_peer_wakes_a_program_that_sleeps_on_the_handle(void)
{
	TEST_ASSERT_TRUE(rig_run(survive_idle, die, true));
}

int main(void)
{
	if (getenv("GANTRY_PLUGINS"))
		setenv("GANTRY_PLUGIN_PATH", getenv("GANTRY_PLUGINS"), 1);
	UNITY_BEGIN();
	RUN_TEST(both_sides_of_a_connection_by_address_get_its_start_and_end);
	RUN_TEST(rejected_request_fails_at_the_client);
	RUN_TEST(disconnect_of_an_ended_connection_does_not_affect_a_new_one);
	RUN_TEST(connect_fails_without_a_listener);
	RUN_TEST(connections_by_address_are_limited_to_the_configured_number);
	RUN_TEST(connections_by_blob_beyond_the_limit_return_FULL);
	RUN_TEST(connected_context_stops_at_once_and_the_peer_is_notified);
	RUN_TEST(message_sent_before_a_stop_arrives_before_the_disconnect);
	RUN_TEST(death_of_a_peer_is_reported_in_time_and_tasks_to_it_fail);
	RUN_TEST(death_of_a_peer_wakes_a_program_that_sleeps_on_the_handle);
	return UNITY_END();
}
