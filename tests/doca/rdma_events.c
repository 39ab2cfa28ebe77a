/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sync events of an RDMA peer, programs that wait on a descriptor for events, and a peer that has
 * exited.
 */
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "rdma_rig.h"
#include "unity.h"

/* -- sync events -- */

static void own_an_event(int fd)
{
	struct rig_side *s = rig_begin(fd, true);
	struct doca_sync_event *event;
	const uint8_t *blob;
	size_t size;

	OK(doca_sync_event_create(&event));
	OK(doca_sync_event_add_publisher_location_remote_net(event));
	OK(doca_sync_event_add_subscriber_location_cpu(event, s->dev));
	OK(doca_sync_event_start(event));
	OK(doca_sync_event_update_set(event, 0x1122334455667788));
	OK(doca_sync_event_export_to_remote_net(event, &blob, &size));
	rig_say(fd, blob, size);
	/* blocks, and progresses no engine */
	OK(doca_sync_event_wait_gt(event, 0x2000000000000000, UINT64_MAX));
	rig_tell(fd);
	OK(doca_sync_event_stop(event));
	OK(doca_sync_event_destroy(event));
	rig_close(s);
}

static void use_an_event(int fd)
{
	struct rig_side *s = rig_begin(fd, false);
	struct doca_sync_event_remote_net *event;
	struct doca_buf *room = rig_room(s, 0, 8), *data = rig_data(s, 8, 8);
	uint64_t value = 0x2000000000000001;
	uint8_t blob[1024];
	size_t size = rig_hear(fd, blob, sizeof(blob));

	OK(doca_sync_event_remote_net_create_from_export(s->dev, blob, size, &event));
	rig_event_get(s, s->conns[0], event, room, 1);
	rig_end_ok(s, 1);
	CHECK(*(uint64_t *)s->memory == 0x1122334455667788);
	memcpy(s->memory + 8, &value, sizeof(value));
	rig_event_set(s, s->conns[0], event, data, 2);
	rig_end_ok(s, 2);
	rig_hark(fd);
	OK(doca_sync_event_remote_net_destroy(event));
	rig_put(room);
	rig_put(data);
	rig_close(s);
}

static void sync_event_is_read_and_set_while_its_owner_only_waits(void)
{
	rig_both(use_an_event, own_an_event);
}

/* -- waiting for events -- */

static void ping(int fd)
{
	struct rig_side *s = rig_begin(fd, false);
	struct doca_buf *data = rig_data(s, 0, 100), *room = rig_room(s, 4096, 100);

	s->progresses_wait = true;
	for (uint32_t i = 0; i < 100; i++) {
		OK(doca_buf_reset_data_len(room));
		rig_fill(s->memory, 100, i);
		rig_receive(s, room, 1);
		rig_send(s, s->conns[0], data, 2);
		OK(rig_end(s)->status);
		OK(rig_end(s)->status);
		CHECK(rig_differs(s->memory + 4096, 100, i + 1) == 100);
	}
	rig_put(data);
	rig_put(room);
	rig_close(s);
}

static void pong(int fd)
{
	struct rig_side *s = rig_begin(fd, true);
	struct doca_buf *data = rig_data(s, 0, 100), *room = rig_room(s, 4096, 100);

	s->progresses_wait = true;
	for (uint32_t i = 0; i < 100; i++) {
		OK(doca_buf_reset_data_len(room));
		rig_receive(s, room, 1);
		rig_end_ok(s, 1);
		CHECK(rig_differs(s->memory + 4096, 100, i) == 100);
		rig_fill(s->memory, 100, i + 1);
		rig_send(s, s->conns[0], data, 2);
		rig_end_ok(s, 2);
	}
	rig_put(data);
	rig_put(room);
	rig_close(s);
}

static void program_can_sleep_until_its_notification_handle_is_readable(void)
{
	rig_both(ping, pong);
}

/* -- a blob whose owner has exited -- */

/* The peer of the blob has died before it could connect. */
static void knock_at_the_dead(int fd)
{
	struct rig_side *s = rig_open(&(struct rig_wish){.callbacks = true});
	struct pollfd end = {.fd = fd, .events = POLLIN};
	struct doca_rdma_connection *conn;
	const void *blob;
	char peers[4096];
	size_t size, own_size;
	pid_t pid;

	size = rig_hear(fd, peers, sizeof(peers));
	pid = rig_hear_pid(fd);
	CHECK(kill(pid, SIGKILL) == 0);
	CHECK(poll(&end, 1, RIG_WAIT_MS) == 1); /* the dead peer's end of the socket is closed */
	/* the side with the smaller id connects: export until this side has the smaller one */
	for (;;) {
		OK(doca_rdma_export(s->rdma, &blob, &own_size, &conn));
		if (memcmp((const char *)blob + 8, peers + 8, 16) < 0)
			break;
		OK(doca_rdma_connection_disconnect(conn));
		rig_until(s, &s->n_failed, s->n_failed + 1);
	}
	s->n_failed = 0;
	OK(doca_rdma_connect(s->rdma, peers, size, conn));
	rig_until(s, &s->n_failed, 1);
	rig_close(s);
}

static void export_and_die(int fd)
{
	struct rig_side *s = rig_open(&(struct rig_wish){.is_peer = true, .callbacks = true});
	const void *blob;
	size_t size;

	OK(doca_rdma_export(s->rdma, &blob, &size, &s->conns[0]));
	rig_say(fd, blob, size);
	rig_say_pid(fd);
	rig_hark(fd);
}

static void a_peer_that_died_before_it_connected_is_a_failure(void)
{
	TEST_ASSERT_TRUE(rig_run(knock_at_the_dead, export_and_die, true));
}

/* -- messages of a disconnected connection -- */

#define UNREAD 3u

static struct rig_side *begin_with_callbacks(int fd, bool is_peer)
{
	struct rig_side *s = rig_open(&(struct rig_wish){.is_peer = is_peer, .callbacks = true});

	rig_connect(s, fd, 0);
	return s;
}

static void send_unread(int fd)
{
	struct rig_side *s = begin_with_callbacks(fd, true);
	struct doca_buf *data = rig_data(s, 0, 100);

	rig_send(s, s->conns[0], data, 0);
	rig_end_ok(s, 0);
	rig_hark(fd);
	for (uint32_t i = 1; i <= UNREAD; i++)
		rig_send(s, s->conns[0], data, i);
	for (uint32_t i = 1; i <= UNREAD; i++)
		rig_end_ok(s, i);
	rig_tell(fd);
	rig_until(s, &s->n_disconnected, 1);
	rig_put(data);
	rig_close(s);
}

/*
 * After the first message the peer sends more messages. They stay queued, because the engine makes
 * no more progress.
 */
static void disconnect_before_reading(int fd)
{
	struct rig_side *s = begin_with_callbacks(fd, false);
	struct doca_buf *rooms[UNREAD + 1];

	for (uint32_t i = 0; i <= UNREAD; i++) {
		rooms[i] = rig_room(s, 4096 * i, 100);
		rig_receive(s, rooms[i], i);
	}
	rig_end_ok(s, 0);
	while (doca_pe_progress(s->pe))
		;
	rig_tell(fd);
	rig_hark(fd);
	OK(doca_rdma_connection_disconnect(s->conns[0]));
	rig_until(s, &s->n_disconnected, 1);
	while (doca_pe_progress(s->pe))
		;
	CHECK(s->n_ends == 1); /* the posted receives wait for another connection */
	FAILS(DOCA_ERROR_IN_PROGRESS, doca_ctx_stop(s->ctx));
	for (uint32_t i = 1; i <= UNREAD; i++)
		FAILS(DOCA_ERROR_SHUTDOWN, rig_end(s)->status);
	for (uint32_t i = 0; i <= UNREAD; i++)
		rig_put(rooms[i]);
	rig_close(s);
}

static void nothing_of_a_connection_is_received_after_it_was_disconnected(void)
{
	rig_both(disconnect_before_reading, send_unread);
}

int main(void)
{
	if (getenv("GANTRY_PLUGINS"))
		setenv("GANTRY_PLUGIN_PATH", getenv("GANTRY_PLUGINS"), 1);
	UNITY_BEGIN();
	RUN_TEST(sync_event_is_read_and_set_while_its_owner_only_waits);
	RUN_TEST(program_can_sleep_until_its_notification_handle_is_readable);
	RUN_TEST(a_peer_that_died_before_it_connected_is_a_failure);
	RUN_TEST(nothing_of_a_connection_is_received_after_it_was_disconnected);
	return UNITY_END();
}
