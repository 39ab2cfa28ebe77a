/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomic access to the memory of the peer, by atomic tasks and sync events; and tasks that are
 * rejected. A second build has contexts that do not map the memory of the peer, as over a network.
 */
#include <stdlib.h>
#include <string.h>

#include "rdma_rig.h"
#include "unity.h"

#define TAG ((union doca_data){.u64 = tag})
#define EVERYTHING \
	(DOCA_ACCESS_FLAG_LOCAL_READ_WRITE | DOCA_ACCESS_FLAG_RDMA_READ | \
	 DOCA_ACCESS_FLAG_RDMA_WRITE | DOCA_ACCESS_FLAG_RDMA_ATOMIC)

/* Operations of each side. Over an emulated network each of them takes milliseconds. */
static uint64_t rounds(void)
{
	return getenv("RDMA_TEST_IBDEV") ? 200 : 2000;
}

static uint64_t *cell(struct rig_side *s, size_t i)
{
	return (uint64_t *)(void *)s->memory + i;
}

/* A value that the library has changed for the peer: no lock orders the change and this read. */
static uint64_t shared_value(struct rig_side *s, size_t i)
{
	return __atomic_load_n(cell(s, i), __ATOMIC_SEQ_CST);
}

/* -- tasks -- */

static void add(struct rig_side *s, struct doca_buf *dst, struct doca_buf *result, uint64_t n,
		uint64_t tag)
{
	struct doca_rdma_task_atomic_fetch_add *task;

	OK(doca_rdma_task_atomic_fetch_add_allocate_init(s->rdma, s->conns[0], dst, result, n, TAG,
							 &task));
	OK(doca_task_submit(doca_rdma_task_atomic_fetch_add_as_task(task)));
}

static void swap(struct rig_side *s, struct doca_buf *dst, struct doca_buf *result, uint64_t from,
		 uint64_t to, uint64_t tag)
{
	struct doca_rdma_task_atomic_cmp_swp *task;

	OK(doca_rdma_task_atomic_cmp_swp_allocate_init(s->rdma, s->conns[0], dst, result, from, to,
						       TAG, &task));
	OK(doca_task_submit(doca_rdma_task_atomic_cmp_swp_as_task(task)));
}

static void event_add(struct rig_side *s, struct doca_sync_event_remote_net *event,
		      struct doca_buf *result, uint64_t n, uint64_t tag)
{
	struct doca_rdma_task_remote_net_sync_event_notify_add *task;

	OK(doca_rdma_task_remote_net_sync_event_notify_add_allocate_init(
		s->rdma, s->conns[0], event, result, n, TAG, &task));
	OK(doca_task_submit(doca_rdma_task_remote_net_sync_event_notify_add_as_task(task)));
}

/* -- atomic tasks -- */

/*
 * An atomic task appends the old value to the result buffer. The owner adds at the same time, and
 * no addition is lost.
 */
static void count_there(int fd)
{
	struct rig_side *s = rig_open(&(struct rig_wish){.max_conns = 1});
	struct doca_buf *remote, *result = rig_room(s, 0, 24);
	size_t length;

	OK(doca_rdma_cap_task_atomic_cmp_swp_is_supported(doca_dev_as_devinfo(s->dev)));
	OK(doca_rdma_cap_task_atomic_fetch_add_is_supported(doca_dev_as_devinfo(s->dev)));
	OK(doca_rdma_cap_task_remote_net_sync_event_notify_add_is_supported(
		doca_dev_as_devinfo(s->dev)));
	rig_connect(s, fd, 0);
	rig_import(s, fd);
	remote = rig_remote_data(s, 8, 8);
	add(s, remote, result, 5, 1);
	rig_end_ok(s, 1);
	swap(s, remote, result, 8, 40, 2); /* the value is 105, so it does not change */
	rig_end_ok(s, 2);
	swap(s, remote, result, 105, 41, 3);
	rig_end_ok(s, 3);
	OK(doca_buf_get_data_len(result, &length));
	CHECK(length == 24 && *cell(s, 0) == 100 && *cell(s, 1) == 105 && *cell(s, 2) == 105);
	swap(s, remote, NULL, 41, 0, 4);
	rig_end_ok(s, 4);
	rig_sync(fd);
	for (uint64_t i = 0; i < rounds(); i++) {
		add(s, remote, NULL, 1, i);
		rig_end_ok(s, i);
	}
	rig_tell(fd);
	rig_put(remote);
	rig_put(result);
	rig_close(s);
}

static void count_here(int fd)
{
	struct rig_side *s = rig_open(&(struct rig_wish){.is_peer = true, .access = EVERYTHING});

	*cell(s, 1) = 100;
	rig_connect(s, fd, 0);
	rig_export(s, fd);
	rig_sync(fd);
	for (uint64_t i = 0; i < rounds(); i++)
		__atomic_fetch_add(cell(s, 1), 1, __ATOMIC_SEQ_CST);
	rig_hark(fd);
	CHECK(shared_value(s, 1) == 2 * rounds() && *cell(s, 0) == 0 && *cell(s, 2) == 0);
	rig_close(s);
}

static void atomic_tasks_return_the_previous_value_and_lose_no_update(void)
{
	rig_both(count_there, count_here);
}

/* An atomic task waits for an earlier write, and a later read waits for the atomic task. */
static void write_add_and_read(int fd)
{
	struct rig_side *s = rig_open(&(struct rig_wish){.max_conns = 1});
	struct doca_buf *own = rig_data(s, 0, 8), *back = rig_room(s, 64, 8), *target, *remote;

	rig_connect(s, fd, 0);
	rig_import(s, fd);
	target = rig_remote_room(s, 8, 8);
	remote = rig_remote_data(s, 8, 8);
	for (uint64_t i = 1; i <= 200; i++) {
		*cell(s, 0) = 10 * i;
		OK(doca_buf_reset_data_len(back));
		rig_write(s, s->conns[0], own, target, 1);
		add(s, remote, NULL, i, 2);
		rig_read(s, s->conns[0], remote, back, 3);
		for (uint64_t tag = 1; tag <= 3; tag++)
			rig_end_ok(s, tag);
		CHECK(*cell(s, 8) == 11 * i);
	}
	rig_tell(fd);
	rig_put(own);
	rig_put(back);
	rig_put(target);
	rig_put(remote);
	rig_close(s);
}

static void be_written(int fd)
{
	struct rig_side *s = rig_open(&(struct rig_wish){.is_peer = true, .access = EVERYTHING});

	rig_connect(s, fd, 0);
	rig_export(s, fd);
	rig_hark(fd);
	rig_close(s);
}

static void tasks_for_the_same_bytes_execute_in_order(void)
{
	rig_both(write_add_and_read, be_written);
}

/* -- a map that its owner stops -- */

/* The task fails, and its error stops the context. */
static void end_by_io_error(struct rig_side *s, int fd)
{
	enum doca_ctx_states state;

	FAILS(DOCA_ERROR_IO_FAILED, rig_end(s)->status);
	UNTIL(s,
	      doca_ctx_get_state(s->ctx, &state) == DOCA_SUCCESS && state == DOCA_CTX_STATE_IDLE);
	rig_tell(fd);
}

static void add_before_and_after_the_stop(int fd)
{
	struct rig_side *s = rig_open(&(struct rig_wish){.max_conns = 1});
	struct doca_buf *remote;

	rig_connect(s, fd, 0);
	rig_import(s, fd);
	remote = rig_remote_data(s, 8, 8);
	add(s, remote, NULL, 5, 1);
	rig_end_ok(s, 1);
	rig_sync(fd); /* the peer stops its map between these two lines */
	rig_sync(fd);
	add(s, remote, NULL, 5, 2);
	end_by_io_error(s, fd);
	rig_put(remote);
	rig_close(s);
}

/* `value`: of the memory in the end. */
static void stop_the_map_with(int fd, uint64_t value)
{
	struct rig_side *s = rig_open(&(struct rig_wish){.is_peer = true, .access = EVERYTHING});

	rig_connect(s, fd, 0);
	rig_export(s, fd);
	rig_sync(fd);
	OK(doca_mmap_stop(s->map));
	rig_sync(fd);
	rig_hark(fd);
	CHECK(shared_value(s, 1) == value);
	rig_close(s);
}

static void stop_the_map(int fd)
{
	stop_the_map_with(fd, 5);
}

static void an_atomic_task_on_a_stopped_map_fails(void)
{
	rig_both(add_before_and_after_the_stop, stop_the_map);
}

/* The first access to the map comes after the stop. */
static void write_after_the_stop(int fd)
{
	struct rig_side *s = rig_open(&(struct rig_wish){.max_conns = 1});
	struct doca_buf *own = rig_data(s, 0, 64), *remote;

	rig_connect(s, fd, 0);
	rig_import(s, fd);
	remote = rig_remote_room(s, 64, 64);
	rig_sync(fd); /* the peer stops its map between these two lines */
	rig_sync(fd);
	rig_write(s, s->conns[0], own, remote, 1);
	end_by_io_error(s, fd);
	rig_put(own);
	rig_put(remote);
	rig_close(s);
}

static void stop_the_unused_map(int fd)
{
	stop_the_map_with(fd, 0);
}

static void the_first_task_on_a_stopped_map_fails(void)
{
	rig_both(write_after_the_stop, stop_the_unused_map);
}

/* -- sync events -- */

static struct doca_sync_event *give_event(struct rig_side *s, int fd)
{
	struct doca_sync_event *event;
	const uint8_t *blob;
	size_t size;

	OK(doca_sync_event_create(&event));
	OK(doca_sync_event_add_publisher_location_remote_net(event));
	OK(doca_sync_event_add_subscriber_location_cpu(event, s->dev));
	OK(doca_sync_event_start(event));
	OK(doca_sync_event_export_to_remote_net(event, &blob, &size));
	rig_say(fd, blob, size);
	return event;
}

static struct doca_sync_event_remote_net *take_event(struct rig_side *s, int fd)
{
	struct doca_sync_event_remote_net *event;
	uint8_t blob[1024];
	const size_t size = rig_hear(fd, blob, sizeof(blob));

	OK(doca_sync_event_remote_net_create_from_export(s->dev, blob, size, &event));
	return event;
}

static void notify_there(int fd)
{
	struct rig_side *s = rig_open(&(struct rig_wish){.max_conns = 1});
	struct doca_buf *result = rig_room(s, 0, 8);
	struct doca_sync_event_remote_net *event;

	rig_connect(s, fd, 0);
	event = take_event(s, fd);
	rig_hark(fd);
	event_add(s, event, result, 7, 1);
	rig_end_ok(s, 1);
	CHECK(*cell(s, 0) >= 1000);
	for (uint64_t i = 0; i < rounds(); i++) {
		event_add(s, event, NULL, 1, i);
		rig_end_ok(s, i);
	}
	rig_tell(fd);
	OK(doca_sync_event_remote_net_destroy(event));
	rig_put(result);
	rig_close(s);
}

static void count_notifications(int fd)
{
	struct rig_side *s = rig_open(&(struct rig_wish){.is_peer = true});
	struct doca_sync_event *event;
	uint64_t value;

	rig_connect(s, fd, 0);
	event = give_event(s, fd);
	OK(doca_sync_event_update_set(event, 0));
	for (uint64_t i = 0; i < 1000; i++)
		OK(doca_sync_event_update_add(event, 1, &value));
	rig_tell(fd);
	for (uint64_t i = 0; i < rounds(); i++)
		OK(doca_sync_event_update_add(event, 1, &value));
	/* waits for the additions of both sides; progresses no engine */
	OK(doca_sync_event_wait_eq_yield(event, 1007 + 2 * rounds(), UINT64_MAX));
	rig_hark(fd);
	OK(doca_sync_event_destroy(event));
	rig_close(s);
}

static void an_event_of_the_peer_is_added_to_and_no_notification_is_lost(void)
{
	rig_both(notify_there, count_notifications);
}

/* -- tasks that are rejected: only this task fails, and its context stops -- */

struct refused {
	struct rig_side *s;
	struct doca_sync_event_remote_net *event;
	/* own: 64 bytes of data in this process; remote: 64 bytes of data of the peer */
	struct doca_buf *own, *remote;
};

static struct doca_buf *short_room(const struct refused *r)
{
	return rig_room(r->s, 4096, 7);
}

static void make_it_a_list(const struct refused *r)
{
	OK(doca_buf_chain_list(r->remote, rig_remote_data(r->s, 128, 8)));
}

static void add_at_an_odd_place(const struct refused *r, struct doca_buf **used)
{
	*used = rig_remote_data(r->s, 4, 8);
	add(r->s, *used, NULL, 1, 0);
}

static void add_to_a_list(const struct refused *r, struct doca_buf **used)
{
	(void)used;
	make_it_a_list(r);
	add(r->s, r->remote, NULL, 1, 0);
}

static void add_with_no_room_for_the_result(const struct refused *r, struct doca_buf **used)
{
	*used = short_room(r);
	add(r->s, r->remote, *used, 1, 0);
}

static void swap_with_no_room_for_the_result(const struct refused *r, struct doca_buf **used)
{
	*used = short_room(r);
	swap(r->s, r->remote, *used, 0, 1, 0);
}

static void add_to_memory_of_ours(const struct refused *r, struct doca_buf **used)
{
	(void)used;
	add(r->s, r->own, NULL, 1, 0);
}

static void add_to_nothing(const struct refused *r, struct doca_buf **used)
{
	(void)used;
	add(r->s, NULL, NULL, 1, 0);
}

static void get_an_event_with_no_room(const struct refused *r, struct doca_buf **used)
{
	*used = short_room(r);
	rig_event_get(r->s, r->s->conns[0], r->event, *used, 0);
}

static void get_an_event_to_nowhere(const struct refused *r, struct doca_buf **used)
{
	(void)used;
	rig_event_get(r->s, r->s->conns[0], r->event, NULL, 0);
}

static void get_no_event(const struct refused *r, struct doca_buf **used)
{
	*used = rig_room(r->s, 4096, 8);
	rig_event_get(r->s, r->s->conns[0], NULL, *used, 0);
}

static void set_an_event_to_more_than_it_holds(const struct refused *r, struct doca_buf **used)
{
	(void)used;
	rig_event_set(r->s, r->s->conns[0], r->event, r->own, 0);
}

static void set_an_event_to_nothing(const struct refused *r, struct doca_buf **used)
{
	(void)used;
	rig_event_set(r->s, r->s->conns[0], r->event, NULL, 0);
}

static void add_to_an_event_with_no_room(const struct refused *r, struct doca_buf **used)
{
	*used = short_room(r);
	event_add(r->s, r->event, *used, 1, 0);
}

static void add_to_no_event(const struct refused *r, struct doca_buf **used)
{
	(void)used;
	event_add(r->s, NULL, NULL, 1, 0);
}

static void read_from_a_list(const struct refused *r, struct doca_buf **used)
{
	*used = rig_room(r->s, 4096, 100);
	make_it_a_list(r);
	rig_read(r->s, r->s->conns[0], r->remote, *used, 0);
}

static void read_more_than_there_is_room_for(const struct refused *r, struct doca_buf **used)
{
	*used = rig_room(r->s, 4096, 63);
	rig_read(r->s, r->s->conns[0], r->remote, *used, 0);
}

static void write_more_than_there_is_room_for(const struct refused *r, struct doca_buf **used)
{
	*used = rig_remote_room(r->s, 0, 63);
	rig_write(r->s, r->s->conns[0], r->own, *used, 0);
}

static void write_to_a_list(const struct refused *r, struct doca_buf **used)
{
	(void)used;
	OK(doca_buf_reset_data_len(r->remote));
	make_it_a_list(r);
	rig_write_imm(r->s, r->s->conns[0], r->own, r->remote, 1, 0);
}

/* The buffer has 64 bytes; the map extends beyond them. */
static void point_behind_the_buffer(const struct refused *r, size_t data_len)
{
	void *head;

	OK(doca_buf_get_head(r->remote, &head));
	OK(doca_buf_set_data(r->remote, (char *)head + 128, data_len));
}

static void write_behind_the_buffer(const struct refused *r, struct doca_buf **used)
{
	(void)used;
	point_behind_the_buffer(r, 0);
	rig_write(r->s, r->s->conns[0], r->own, r->remote, 0);
}

static void read_behind_the_buffer(const struct refused *r, struct doca_buf **used)
{
	*used = rig_room(r->s, 4096, 64);
	point_behind_the_buffer(r, 64);
	rig_read(r->s, r->s->conns[0], r->remote, *used, 0);
}

static void add_behind_the_buffer(const struct refused *r, struct doca_buf **used)
{
	(void)used;
	point_behind_the_buffer(r, 8);
	add(r->s, r->remote, NULL, 1, 0);
}

static void swap_what_is_to_be_swapped(const struct refused *r, struct doca_buf **used)
{
	(void)used;
	swap(r->s, r->remote, NULL, 0, 1, 0);
}

static void write_what_may_be_written(const struct refused *r, struct doca_buf **used)
{
	(void)used;
	OK(doca_buf_reset_data_len(r->remote));
	rig_write(r->s, r->s->conns[0], r->own, r->remote, 0);
}

static void read_what_may_be_read(const struct refused *r, struct doca_buf **used)
{
	*used = rig_room(r->s, 4096, 64);
	rig_read(r->s, r->s->conns[0], r->remote, *used, 0);
}

static void add_to_the_event(const struct refused *r, struct doca_buf **used)
{
	(void)used;
	event_add(r->s, r->event, NULL, 1, 0);
}

#define NO(what) (EVERYTHING & ~(uint32_t)DOCA_ACCESS_FLAG_RDMA_##what)
static const struct {
	void (*submit)(const struct refused *r, struct doca_buf **used);
	doca_error_t status;
	uint32_t access, permissions; /* of the peer's memory; of the peer's context; 0: all */
} refusals[] = {
	{add_at_an_odd_place, DOCA_ERROR_INVALID_VALUE, 0, 0},
	{add_to_a_list, DOCA_ERROR_INVALID_VALUE, 0, 0},
	{add_with_no_room_for_the_result, DOCA_ERROR_INVALID_VALUE, 0, 0},
	{swap_with_no_room_for_the_result, DOCA_ERROR_INVALID_VALUE, 0, 0},
	{add_to_memory_of_ours, DOCA_ERROR_INVALID_VALUE, 0, 0},
	{add_to_nothing, DOCA_ERROR_INVALID_VALUE, 0, 0},
	{get_an_event_with_no_room, DOCA_ERROR_INVALID_VALUE, 0, 0},
	{get_an_event_to_nowhere, DOCA_ERROR_INVALID_VALUE, 0, 0},
	{get_no_event, DOCA_ERROR_INVALID_VALUE, 0, 0},
	{set_an_event_to_more_than_it_holds, DOCA_ERROR_INVALID_VALUE, 0, 0},
	{set_an_event_to_nothing, DOCA_ERROR_INVALID_VALUE, 0, 0},
	{add_to_an_event_with_no_room, DOCA_ERROR_INVALID_VALUE, 0, 0},
	{add_to_no_event, DOCA_ERROR_INVALID_VALUE, 0, 0},
	{read_from_a_list, DOCA_ERROR_INVALID_VALUE, 0, 0},
	{read_more_than_there_is_room_for, DOCA_ERROR_INVALID_VALUE, 0, 0},
	{write_more_than_there_is_room_for, DOCA_ERROR_INVALID_VALUE, 0, 0},
	{write_to_a_list, DOCA_ERROR_INVALID_VALUE, 0, 0},
	{write_behind_the_buffer, DOCA_ERROR_INVALID_VALUE, 0, 0},
	{read_behind_the_buffer, DOCA_ERROR_INVALID_VALUE, 0, 0},
	{add_behind_the_buffer, DOCA_ERROR_INVALID_VALUE, 0, 0},
	{swap_what_is_to_be_swapped, DOCA_ERROR_NOT_PERMITTED, NO(ATOMIC), 0},
	{swap_what_is_to_be_swapped, DOCA_ERROR_NOT_PERMITTED, 0, NO(ATOMIC)},
	{write_what_may_be_written, DOCA_ERROR_NOT_PERMITTED, NO(WRITE), 0},
	{write_what_may_be_written, DOCA_ERROR_NOT_PERMITTED, 0, NO(WRITE)},
	{read_what_may_be_read, DOCA_ERROR_NOT_PERMITTED, NO(READ), 0},
	{read_what_may_be_read, DOCA_ERROR_NOT_PERMITTED, 0, NO(READ)},
	{add_to_the_event, DOCA_ERROR_NOT_PERMITTED, 0, NO(WRITE)},
};
static size_t at; /* index in the table, the same in both processes */

static void try_it(int fd)
{
	struct refused r = {.s = rig_open(&(struct rig_wish){.max_conns = 1})};
	struct doca_buf *used = NULL;
	enum doca_ctx_states state;
	const struct rig_end *end;

	rig_connect(r.s, fd, 0);
	rig_import(r.s, fd);
	r.event = take_event(r.s, fd);
	r.own = rig_data(r.s, 0, 64);
	r.remote = rig_remote_data(r.s, 64, 64);
	refusals[at].submit(&r, &used);
	end = rig_end(r.s);
	FAILS(refusals[at].status, end->status);
	UNTIL(r.s,
	      doca_ctx_get_state(r.s->ctx, &state) == DOCA_SUCCESS && state == DOCA_CTX_STATE_IDLE);
	CHECK(r.s->n_ends == 1);
	rig_tell(fd);
	OK(doca_sync_event_remote_net_destroy(r.event));
	rig_put(r.own);
	rig_put(r.remote);
	if (used)
		rig_put(used);
	rig_close(r.s);
}

/* The peer of the rejected task: its memory must not change. */
static void be_tried(int fd)
{
	struct rig_side *s = rig_open(&(struct rig_wish){
		.is_peer = true,
		.permissions = refusals[at].permissions,
		.access = refusals[at].access ? refusals[at].access : EVERYTHING});
	struct doca_sync_event *event;
	uint64_t value;

	rig_fill(s->memory, 4096, 3);
	rig_connect(s, fd, 0);
	rig_export(s, fd);
	event = give_event(s, fd);
	rig_hark(fd);
	CHECK(rig_differs(s->memory, 4096, 3) == 4096);
	OK(doca_sync_event_get(event, &value));
	CHECK(value == 0);
	OK(doca_sync_event_destroy(event));
	rig_close(s);
}

static void invalid_or_forbidden_tasks_fail_and_change_nothing(void)
{
	for (at = 0; at < sizeof(refusals) / sizeof(refusals[0]); at++)
		rig_both(try_it, be_tried);
}

int main(void)
{
	if (getenv("GANTRY_PLUGINS"))
		setenv("GANTRY_PLUGIN_PATH", getenv("GANTRY_PLUGINS"), 1);
	UNITY_BEGIN();
	RUN_TEST(atomic_tasks_return_the_previous_value_and_lose_no_update);
	RUN_TEST(tasks_for_the_same_bytes_execute_in_order);
	RUN_TEST(an_atomic_task_on_a_stopped_map_fails);
	RUN_TEST(the_first_task_on_a_stopped_map_fails);
	RUN_TEST(an_event_of_the_peer_is_added_to_and_no_notification_is_lost);
	RUN_TEST(invalid_or_forbidden_tasks_fail_and_change_nothing);
	return UNITY_END();
}
