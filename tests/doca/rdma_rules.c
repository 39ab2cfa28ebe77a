/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that an RDMA context permits in each state, and the errors of all other calls. */
#include <stdlib.h>
#include <string.h>

#include "rdma_rig.h"
#include "unity.h"

static void nothing(int fd)
{
	(void)fd;
}

static struct rig_side *plain(void)
{
	return rig_open(&(struct rig_wish){.max_conns = 1});
}

/* -- states -- */

static void states(int fd)
{
	struct rig_side *s = rig_open(&(struct rig_wish){.unstarted = true});
	struct doca_rdma *loose;
	enum doca_ctx_states state;

	(void)fd;
	OK(doca_rdma_create(s->dev, &loose));
	FAILS(DOCA_ERROR_NOT_CONNECTED, doca_ctx_start(doca_rdma_as_ctx(loose)));
	OK(doca_rdma_destroy(loose));
	OK(doca_ctx_stop(s->ctx)); /* stop of an idle context */
	OK(doca_ctx_start(s->ctx));
	OK(doca_ctx_get_state(s->ctx, &state));
	CHECK(state == DOCA_CTX_STATE_RUNNING);
	/* the callback ran inside start */
	CHECK(s->n_states == 1 && s->states[0] == DOCA_CTX_STATE_RUNNING);
	FAILS(DOCA_ERROR_BAD_STATE, doca_rdma_destroy(s->rdma));
	OK(doca_ctx_stop(s->ctx));
	/* the callback ran inside stop */
	CHECK(s->n_states == 2 && s->states[1] == DOCA_CTX_STATE_IDLE);
	OK(doca_ctx_stop(s->ctx));
	CHECK(s->n_states == 2);
	rig_close(s);
}

static void start_is_success_and_running_and_stop_is_synchronous_and_repeatable(void)
{
	rig_both(states, nothing);
}

static void flushed(int fd)
{
	struct rig_side *s = plain();
	struct doca_buf *buf = rig_room(s, 0, 100);
	struct doca_rdma_connection *conn;
	enum doca_ctx_states state;
	const void *blob;
	size_t size;

	(void)fd;
	OK(doca_rdma_export(s->rdma, &blob, &size, &conn));
	for (uint64_t i = 0; i < 5; i++)
		rig_receive(s, buf, i);
	rig_send(s, conn, NULL, 5); /* the send waits for a peer that never connects */
	FAILS(DOCA_ERROR_IN_PROGRESS, doca_ctx_stop(s->ctx));
	CHECK(s->n_ends == 0 && s->states[s->n_states - 1] == DOCA_CTX_STATE_STOPPING);
	for (unsigned i = 0; i < 6; i++)
		CHECK(rig_end(s)->status != DOCA_SUCCESS);
	UNTIL(s,
	      doca_ctx_get_state(s->ctx, &state) == DOCA_SUCCESS && state == DOCA_CTX_STATE_IDLE);
	CHECK(s->n_states == 3);                   /* RUNNING, STOPPING, IDLE */
	OK(doca_rdma_connection_disconnect(conn)); /* programs disconnect also after the end */
	rig_put(buf);
	rig_close(s);
}

static void stop_flushes_what_is_outstanding_and_ends_in_idle(void)
{
	rig_both(flushed, nothing);
}

static void stop_inside(struct rig_side *s, struct doca_task *task, const struct rig_end *end)
{
	(void)end;
	doca_task_free(task);
	FAILS(DOCA_ERROR_IN_PROGRESS, doca_ctx_stop(s->ctx));
	CHECK(s->states[s->n_states - 1] == DOCA_CTX_STATE_STOPPING);
}

static void stops_inside(int fd)
{
	struct rig_side *s = plain();
	enum doca_ctx_states state;

	s->hook = stop_inside;
	rig_connect(s, fd, 0);
	rig_receive(s, NULL, 1);
	UNTIL(s,
	      doca_ctx_get_state(s->ctx, &state) == DOCA_SUCCESS && state == DOCA_CTX_STATE_IDLE);
	CHECK(s->n_ends == 1 && s->n_states == 3);
	rig_tell(fd);
	rig_close(s);
}

static void send_one(int fd)
{
	struct rig_side *s = rig_open(&(struct rig_wish){.is_peer = true});

	rig_connect(s, fd, 0);
	rig_send(s, s->conns[0], NULL, 1);
	rig_end_ok(s, 1);
	rig_hark(fd);
	rig_close(s);
}

static void stop_inside_of_a_callback_is_in_progress_and_idle_comes_by_progress(void)
{
	rig_both(stops_inside, send_one);
}

/* -- settings -- */

static void settings(int fd)
{
	struct rig_side *s = rig_open(&(struct rig_wish){.unstarted = true});
	enum doca_rdma_transport_type type;
	uint32_t value;
	uint16_t n;
	uint8_t small;

	(void)fd;
	OK(doca_rdma_get_max_num_connections(s->rdma, &n));
	CHECK(n == 1);
	OK(doca_rdma_set_transport_type(s->rdma, DOCA_RDMA_TRANSPORT_TYPE_RC));
	OK(doca_rdma_get_transport_type(s->rdma, &type));
	CHECK(type == DOCA_RDMA_TRANSPORT_TYPE_RC);
	FAILS(DOCA_ERROR_NOT_SUPPORTED,
	      doca_rdma_set_transport_type(s->rdma, DOCA_RDMA_TRANSPORT_TYPE_DC));
	FAILS(DOCA_ERROR_INVALID_VALUE, doca_rdma_set_transport_type(s->rdma, 2));
	OK(doca_rdma_set_gid_index(s->rdma, 3));
	OK(doca_rdma_get_gid_index(s->rdma, &value));
	CHECK(value == 3);
	OK(doca_rdma_set_gid_index(s->rdma, 0));
	OK(doca_rdma_set_permissions(s->rdma, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE));
	OK(doca_rdma_get_permissions(s->rdma, &value));
	CHECK(value == DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	OK(doca_rdma_set_send_queue_size(s->rdma, 77));
	OK(doca_rdma_get_send_queue_size(s->rdma, &value));
	CHECK(value == 77);
	OK(doca_rdma_set_grh_enabled(s->rdma, 1));
	OK(doca_rdma_get_grh_enabled(s->rdma, &small));
	CHECK(small == 1);
	FAILS(DOCA_ERROR_INVALID_VALUE, doca_rdma_set_max_num_connections(s->rdma, 0));
	OK(doca_ctx_start(s->ctx));
	FAILS(DOCA_ERROR_BAD_STATE, doca_rdma_set_permissions(s->rdma, 0));
	FAILS(DOCA_ERROR_BAD_STATE, doca_rdma_set_gid_index(s->rdma, 0));
	FAILS(DOCA_ERROR_BAD_STATE, doca_rdma_set_max_num_connections(s->rdma, 2));
	FAILS(DOCA_ERROR_BAD_STATE,
	      doca_rdma_set_transport_type(s->rdma, DOCA_RDMA_TRANSPORT_TYPE_RC));
	rig_close(s);
}

static void settings_are_kept_and_are_late_after_start(void)
{
	rig_both(settings, nothing);
}

static void capabilities(int fd)
{
	struct rig_side *s = plain();
	const struct doca_devinfo *info = doca_dev_as_devinfo(s->dev);
	struct doca_rdma_gid gid;
	uint32_t value;

	(void)fd;
	OK(doca_rdma_cap_task_receive_is_supported(info));
	OK(doca_rdma_cap_task_send_is_supported(info));
	OK(doca_rdma_cap_task_send_imm_is_supported(info));
	OK(doca_rdma_cap_task_read_is_supported(info));
	OK(doca_rdma_cap_task_write_is_supported(info));
	OK(doca_rdma_cap_task_write_imm_is_supported(info));
	OK(doca_rdma_cap_task_remote_net_sync_event_get_is_supported(info));
	OK(doca_rdma_cap_task_remote_net_sync_event_notify_set_is_supported(info));
	FAILS(DOCA_ERROR_INVALID_VALUE, doca_rdma_cap_task_read_is_supported(NULL));
	OK(doca_rdma_cap_transport_type_is_supported(info, DOCA_RDMA_TRANSPORT_TYPE_RC));
	FAILS(DOCA_ERROR_NOT_SUPPORTED,
	      doca_rdma_cap_transport_type_is_supported(info, DOCA_RDMA_TRANSPORT_TYPE_DC));
	OK(doca_rdma_cap_get_max_message_size(info, &value));
	CHECK(value >= 1u << 20);
	OK(doca_rdma_cap_get_max_send_buf_list_len(info, &value));
	CHECK(value >= 16);
	OK(doca_rdma_cap_get_max_send_queue_size(info, &value));
	OK(doca_rdma_cap_get_max_recv_queue_size(info, &value));
	OK(doca_rdma_cap_task_receive_get_max_dst_buf_list_len(info, DOCA_RDMA_TRANSPORT_TYPE_RC,
							       &value));
	OK(doca_rdma_cap_get_gid_table_size(info, &value));
	CHECK(value >= 1);
	OK(doca_rdma_cap_get_gid(info, 0, 1, &gid));
	FAILS(DOCA_ERROR_INVALID_VALUE, doca_rdma_cap_get_gid(info, value, 1, &gid));
	rig_close(s);
}

static void device_reports_its_capabilities(void)
{
	rig_both(capabilities, nothing);
}

/* -- tasks -- */

static void pools(int fd)
{
	struct rig_side *s = plain();
	struct doca_rdma_task_send *tasks[RIG_TASKS], *one_more;
	struct doca_rdma_connection *conn;
	struct doca_buf *buf = rig_data(s, 0, 100);
	const union doca_data tag = {.u64 = 9};
	const void *blob;
	size_t size;

	(void)fd;
	OK(doca_rdma_export(s->rdma, &blob, &size, &conn));
	for (int i = 0; i < RIG_TASKS; i++)
		OK(doca_rdma_task_send_allocate_init(s->rdma, conn, buf, tag, &tasks[i]));
	FAILS(DOCA_ERROR_NO_MEMORY,
	      doca_rdma_task_send_allocate_init(s->rdma, conn, buf, tag, &one_more));
	CHECK(doca_task_get_user_data(doca_rdma_task_send_as_task(tasks[0])).u64 == 9);
	for (int i = 0; i < RIG_TASKS; i++) {
		doca_task_free(doca_rdma_task_send_as_task(tasks[i]));
		/* fields stay readable: programs read them after they have freed the task */
		CHECK(doca_rdma_task_send_get_src_buf(tasks[i]) == buf);
		CHECK(doca_rdma_task_send_get_rdma_connection(tasks[i]) == conn);
	}
	OK(doca_rdma_task_send_allocate_init(s->rdma, conn, buf, tag, &one_more));
	doca_task_free(doca_rdma_task_send_as_task(one_more));
	rig_put(buf);
	rig_close(s);
}

static void a_pool_has_so_many_tasks_whose_fields_outlive_them(void)
{
	rig_both(pools, nothing);
}

static void withdrawn(int fd)
{
	struct rig_side *s = plain();
	struct doca_rdma_task_receive *task;

	(void)fd;
	OK(doca_rdma_task_receive_allocate_init(s->rdma, NULL, (union doca_data){.u64 = 0}, &task));
	OK(doca_task_submit(doca_rdma_task_receive_as_task(task)));
	doca_task_free(doca_rdma_task_receive_as_task(task)); /* no callback is called for it */
	OK(doca_ctx_stop(s->ctx));
	CHECK(s->n_ends == 0);
	rig_close(s);
}

static void receive_that_is_freed_while_posted_is_withdrawn(void)
{
	rig_both(withdrawn, nothing);
}

static void judged(int fd)
{
	struct rig_side *s = plain();
	struct doca_buf *big = rig_data(s, 0, 1000), *small = rig_room(s, 5000, 10),
			*second = rig_room(s, 6000, 10), *far;
	struct doca_rdma_task_read *read;
	struct doca_mmap *bare;
	struct doca_rdma_task_write *write;
	struct doca_rdma_connection *conn;
	const union doca_data tag = {.u64 = 0};
	const void *blob;
	size_t size;

	(void)fd;
	OK(doca_rdma_export(s->rdma, &blob, &size, &conn));
	FAILS(DOCA_ERROR_INVALID_VALUE,
	      doca_rdma_task_read_allocate_init(s->rdma, NULL, big, small, tag, &read));
	FAILS(DOCA_ERROR_INVALID_VALUE,
	      doca_rdma_task_read_allocate_init(NULL, conn, big, small, tag, &read));
	OK(doca_rdma_task_read_allocate_init(s->rdma, conn, big, small, tag, &read));
	/* the destination is too short */
	FAILS(DOCA_ERROR_INVALID_VALUE, doca_task_try_submit(doca_rdma_task_read_as_task(read)));
	OK(doca_buf_chain_list(small, second));
	OK(doca_rdma_task_write_allocate_init(s->rdma, conn, big, small, tag, &write));
	/* the remote buffer is a list */
	FAILS(DOCA_ERROR_INVALID_VALUE, doca_task_try_submit(doca_rdma_task_write_as_task(write)));
	doca_task_free(doca_rdma_task_read_as_task(read));
	doca_task_free(doca_rdma_task_write_as_task(write));
	/* the map of a buffer is not for the device of the context */
	OK(doca_mmap_create(&bare));
	OK(doca_mmap_set_memrange(bare, s->memory, 4096));
	OK(doca_mmap_start(bare));
	OK(doca_buf_inventory_buf_get_by_data(s->inventory, bare, s->memory, 5, &far));
	OK(doca_rdma_task_read_allocate_init(s->rdma, conn, far, small, tag, &read));
	FAILS(DOCA_ERROR_INVALID_VALUE, doca_task_try_submit(doca_rdma_task_read_as_task(read)));
	doca_task_free(doca_rdma_task_read_as_task(read));
	rig_put(far);
	OK(doca_mmap_destroy(bare));
	CHECK(s->n_ends == 0);
	rig_put(big);
	rig_put(small);
	rig_close(s);
}

static void try_submit_rejects_an_invalid_task_and_leaves_it_to_the_program(void)
{
	rig_both(judged, nothing);
}

/* -- errors over a connection -- */

static void expect_failure(struct rig_side *s)
{
	enum doca_ctx_states state;

	CHECK(rig_end(s)->status != DOCA_SUCCESS);
	UNTIL(s,
	      doca_ctx_get_state(s->ctx, &state) == DOCA_SUCCESS && state == DOCA_CTX_STATE_IDLE);
	CHECK(s->states[s->n_states - 2] == DOCA_CTX_STATE_STOPPING &&
	      s->states[s->n_states - 1] == DOCA_CTX_STATE_IDLE);
}

static void overreach(int fd)
{
	struct rig_side *s = plain();
	struct doca_buf *own = rig_data(s, 0, 1000), *remote, *room = rig_room(s, 5000, 100);

	rig_connect(s, fd, 0);
	rig_import(s, fd);
	rig_receive(s, room, 2);
	remote = rig_remote_room(s, 0, 1000);
	rig_write(s, s->conns[0], own, remote, 1); /* the memory is exported only for reads */
	UNTIL(s, s->n_ends == 2);
	CHECK(s->ends[0].tag == 1 && s->ends[0].status == DOCA_ERROR_NOT_PERMITTED);
	/* the other task is flushed */
	CHECK(s->ends[1].tag == 2 && s->ends[1].status != DOCA_SUCCESS);
	s->n_seen = 1;
	expect_failure(s);
	rig_tell(fd);
	rig_put(own);
	rig_put(remote);
	rig_put(room);
	rig_close(s);
}

static void read_only(int fd)
{
	struct rig_side *s = rig_open(&(struct rig_wish){
		.is_peer = true,
		.access = DOCA_ACCESS_FLAG_LOCAL_READ_WRITE | DOCA_ACCESS_FLAG_RDMA_READ});

	rig_connect(s, fd, 0);
	rig_export(s, fd);
	rig_hark(fd);
	for (int i = 0; i < 1000; i++)
		CHECK(s->memory[i] == 0);
	rig_close(s);
}

static void a_write_to_memory_that_is_only_to_be_read_fails_and_stops_the_context(void)
{
	rig_both(overreach, read_only);
}

static void say_too_much(int fd)
{
	struct rig_side *s = plain();
	struct doca_buf *buf = rig_data(s, 0, 101);

	rig_connect(s, fd, 0);
	rig_send(s, s->conns[0], buf, 1);
	rig_end(s);
	rig_hark(fd);
	rig_put(buf);
	rig_close(s);
}

/* A receive without a buffer accepts only empty messages. */
static void take_nothing(int fd)
{
	struct rig_side *s = rig_open(&(struct rig_wish){.is_peer = true});

	rig_connect(s, fd, 0);
	rig_receive(s, NULL, 1);
	expect_failure(s);
	rig_tell(fd);
	rig_close(s);
}

static void take_too_little(int fd)
{
	struct rig_side *s = rig_open(&(struct rig_wish){.is_peer = true});
	struct doca_buf *buf = rig_room(s, 0, 100);
	size_t length;

	rig_connect(s, fd, 0);
	rig_receive(s, buf, 1);
	expect_failure(s);
	OK(doca_buf_get_data_len(buf, &length));
	CHECK(length == 0 && s->memory[0] == 0 && s->memory[100] == 0);
	rig_tell(fd);
	rig_put(buf);
	rig_close(s);
}

static void a_message_that_does_not_fit_fails_its_receive(void)
{
	rig_both(say_too_much, take_too_little);
	rig_both(say_too_much, take_nothing);
}

static void local_for_remote(int fd)
{
	struct rig_side *s = plain();
	struct doca_buf *one = rig_data(s, 0, 100), *two = rig_room(s, 1000, 100);

	rig_connect(s, fd, 0);
	rig_write(s, s->conns[0], one, two, 1); /* both are local buffers */
	expect_failure(s);
	rig_tell(fd);
	rig_put(one);
	rig_put(two);
	rig_close(s);
}

static void sit(int fd)
{
	struct rig_side *s = rig_open(&(struct rig_wish){.is_peer = true});

	rig_connect(s, fd, 0);
	rig_hark(fd);
	rig_close(s);
}

static void access_to_memory_that_the_peer_did_not_export_fails(void)
{
	rig_both(local_for_remote, sit);
}

static void reach_for_the_withdrawn(int fd)
{
	struct rig_side *s = plain();
	struct doca_buf *own = rig_room(s, 0, 1000), *remote;

	rig_connect(s, fd, 0);
	rig_import(s, fd);
	remote = rig_remote_data(s, 0, 1000);
	rig_sync(fd);
	do { /* the notice of the withdrawal can still be in flight */
		OK(doca_buf_reset_data_len(own));
		rig_read(s, s->conns[0], remote, own, 1);
	} while (rig_end(s)->status == DOCA_SUCCESS);
	s->n_seen--;
	expect_failure(s);
	rig_tell(fd);
	rig_put(own);
	rig_put(remote);
	rig_close(s);
}

static void withdraw(int fd)
{
	struct rig_side *s = rig_open(&(struct rig_wish){.is_peer = true});

	rig_connect(s, fd, 0);
	rig_export(s, fd);
	rig_hark(fd);
	OK(doca_mmap_stop(s->map));
	rig_tell(fd);
	rig_hark(fd);
	rig_close(s);
}

static void memory_of_a_stopped_map_cannot_be_accessed(void)
{
	rig_both(reach_for_the_withdrawn, withdraw);
}

/* -- misuse -- */

static void blobs(int fd)
{
	struct rig_side *s = plain();
	struct doca_rdma_connection *conn;
	char bent[4096];
	const void *blob;
	size_t size;

	(void)fd;
	OK(doca_rdma_export(s->rdma, &blob, &size, &conn));
	CHECK(size <= sizeof(bent));
	/* its own blob */
	FAILS(DOCA_ERROR_INVALID_VALUE, doca_rdma_connect(s->rdma, blob, size, conn));
	for (size_t i = 0; i < 8; i++) {
		memcpy(bent, blob, size);
		bent[i] ^= 1;
		FAILS(DOCA_ERROR_INVALID_VALUE, doca_rdma_connect(s->rdma, bent, size, conn));
	}
	memcpy(bent, blob, size);
	FAILS(DOCA_ERROR_INVALID_VALUE, doca_rdma_connect(s->rdma, bent, size - 1, conn));
	FAILS(DOCA_ERROR_INVALID_VALUE, doca_rdma_connect(s->rdma, bent, 0, conn));
	memset(bent + 24, 'x', size - 24); /* a service name without a terminating null */
	FAILS(DOCA_ERROR_INVALID_VALUE, doca_rdma_connect(s->rdma, bent, size, conn));
	rig_close(s);
}

static void invalid_blob_is_rejected(void)
{
	rig_both(blobs, nothing);
}

static void nulls(int fd)
{
	struct rig_side *s = rig_open(&(struct rig_wish){.unstarted = true});
	struct doca_rdma_connection *conn;
	struct doca_rdma_addr *addr;
	struct doca_rdma *rdma;
	const void *blob;
	size_t size;

	(void)fd;
	FAILS(DOCA_ERROR_INVALID_VALUE, doca_rdma_create(NULL, &rdma));
	FAILS(DOCA_ERROR_INVALID_VALUE, doca_rdma_create(s->dev, NULL));
	FAILS(DOCA_ERROR_INVALID_VALUE, doca_rdma_destroy(NULL));
	CHECK(!doca_rdma_as_ctx(NULL));
	/* export before start */
	FAILS(DOCA_ERROR_BAD_STATE, doca_rdma_export(s->rdma, &blob, &size, &conn));
	FAILS(DOCA_ERROR_BAD_STATE, doca_rdma_start_listen_to_port(s->rdma, 1));
	FAILS(DOCA_ERROR_INVALID_VALUE, doca_rdma_task_send_set_conf(s->rdma, NULL, NULL, 1));
	FAILS(DOCA_ERROR_INVALID_VALUE, doca_rdma_task_send_set_conf(NULL, NULL, NULL, 1));
	OK(doca_ctx_start(s->ctx));
	FAILS(DOCA_ERROR_INVALID_VALUE, doca_rdma_export(s->rdma, NULL, &size, &conn));
	FAILS(DOCA_ERROR_INVALID_VALUE, doca_rdma_connect(s->rdma, NULL, 1, NULL));
	FAILS(DOCA_ERROR_INVALID_VALUE, doca_rdma_connection_disconnect(NULL));
	FAILS(DOCA_ERROR_INVALID_VALUE, doca_rdma_connection_accept(NULL, NULL, 0));
	FAILS(DOCA_ERROR_INVALID_VALUE,
	      doca_rdma_connection_set_user_data(NULL, (union doca_data){.u64 = 0}));
	FAILS(DOCA_ERROR_INVALID_VALUE,
	      doca_rdma_addr_create(DOCA_RDMA_ADDR_TYPE_IPv4, NULL, 1, &addr));
	FAILS(DOCA_ERROR_INVALID_VALUE,
	      doca_rdma_addr_create(DOCA_RDMA_ADDR_TYPE_IPv4, "::1", 1, &addr));
	FAILS(DOCA_ERROR_INVALID_VALUE,
	      doca_rdma_addr_create(DOCA_RDMA_ADDR_TYPE_IPv6, "127.0.0.1", 1, &addr));
	FAILS(DOCA_ERROR_INVALID_VALUE, doca_rdma_addr_destroy(NULL));
	OK(doca_rdma_addr_create(DOCA_RDMA_ADDR_TYPE_GID, "0000:0000:0000:0000:0000:ffff:c000:0201",
				 1, &addr));
	OK(doca_rdma_addr_destroy(addr));
	FAILS(DOCA_ERROR_INVALID_VALUE,
	      doca_rdma_connect_to_addr(s->rdma, NULL, (union doca_data){.u64 = 0}));
	FAILS(DOCA_ERROR_INVALID_VALUE, doca_rdma_start_listen_to_port(s->rdma, 0));
	OK(doca_rdma_start_listen_to_port(s->rdma, 4711));
	FAILS(DOCA_ERROR_BAD_STATE, doca_rdma_start_listen_to_port(s->rdma, 4711));
	OK(doca_rdma_export(s->rdma, &blob, &size, &conn));
	FAILS(DOCA_ERROR_CONNECTION_ABORTED, doca_rdma_connection_accept(conn, NULL, 0));
	FAILS(DOCA_ERROR_CONNECTION_ABORTED, doca_rdma_connection_reject(conn));
	CHECK(!doca_rdma_task_send_as_task(NULL) && !doca_rdma_task_read_get_dst_buf(NULL));
	doca_rdma_task_write_set_src_buf(NULL, NULL);
	rig_close(s);
}

static void invalid_arguments_are_rejected_without_a_crash(void)
{
	rig_both(nulls, nothing);
}

int main(void)
{
	if (getenv("GANTRY_PLUGINS"))
		setenv("GANTRY_PLUGIN_PATH", getenv("GANTRY_PLUGINS"), 1);
	UNITY_BEGIN();
	RUN_TEST(start_is_success_and_running_and_stop_is_synchronous_and_repeatable);
	RUN_TEST(stop_flushes_what_is_outstanding_and_ends_in_idle);
	RUN_TEST(stop_inside_of_a_callback_is_in_progress_and_idle_comes_by_progress);
	RUN_TEST(settings_are_kept_and_are_late_after_start);
	RUN_TEST(device_reports_its_capabilities);
	RUN_TEST(a_pool_has_so_many_tasks_whose_fields_outlive_them);
	RUN_TEST(receive_that_is_freed_while_posted_is_withdrawn);
	RUN_TEST(try_submit_rejects_an_invalid_task_and_leaves_it_to_the_program);
	RUN_TEST(a_write_to_memory_that_is_only_to_be_read_fails_and_stops_the_context);
	RUN_TEST(a_message_that_does_not_fit_fails_its_receive);
	RUN_TEST(access_to_memory_that_the_peer_did_not_export_fails);
	RUN_TEST(memory_of_a_stopped_map_cannot_be_accessed);
	RUN_TEST(invalid_blob_is_rejected);
	RUN_TEST(invalid_arguments_are_rejected_without_a_crash);
	return UNITY_END();
}
