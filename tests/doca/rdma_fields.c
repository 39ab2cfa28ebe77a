/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every setting of an RDMA context and every field of its tasks: getters return the value that was
 * set, and setters reject invalid values.
 */
#include <stdlib.h>

#include "rdma_rig.h"
#include "unity.h"

/* -- settings -- */

/*
 * The getter returns the default, then a valid value that was set. An invalid value is rejected and
 * changes nothing. After start the setter fails. Two functions: before start, and after it.
 */
#define SETTING(name, type, standard, good, bad) \
	static void name##_is_kept(struct doca_rdma *rdma) \
	{ \
		const uint32_t refused = (bad); \
		type value = (type)77; \
\
		OK(doca_rdma_get_##name(rdma, &value)); \
		CHECK(value == (type)(standard)); \
		OK(doca_rdma_set_##name(rdma, good)); \
		if (refused != ANY) \
			FAILS(DOCA_ERROR_INVALID_VALUE, \
			      doca_rdma_set_##name(rdma, (type)refused)); \
		OK(doca_rdma_get_##name(rdma, &value)); \
		CHECK(value == (type)(good)); \
		FAILS(DOCA_ERROR_INVALID_VALUE, doca_rdma_set_##name(NULL, good)); \
		FAILS(DOCA_ERROR_INVALID_VALUE, doca_rdma_get_##name(NULL, &value)); \
		FAILS(DOCA_ERROR_INVALID_VALUE, doca_rdma_get_##name(rdma, NULL)); \
	} \
	static void name##_is_late(struct doca_rdma *rdma) \
	{ \
		type value = (type)77; \
\
		FAILS(DOCA_ERROR_BAD_STATE, doca_rdma_set_##name(rdma, good)); \
		OK(doca_rdma_get_##name(rdma, &value)); \
		CHECK(value == (type)(good)); \
	}
#define ANY UINT32_MAX /* each value is valid */

SETTING(send_queue_size, uint32_t, 256, 77, 0)
SETTING(recv_queue_size, uint32_t, 256, 78, 0)
SETTING(max_send_buf_list_len, uint32_t, 64, 5, 65)
SETTING(transport_type, enum doca_rdma_transport_type, DOCA_RDMA_TRANSPORT_TYPE_RC,
	DOCA_RDMA_TRANSPORT_TYPE_RC, 2)
SETTING(mtu, enum doca_mtu_size, DOCA_MTU_SIZE_1K_BYTES, DOCA_MTU_SIZE_4K_BYTES, 99)
SETTING(grh_enabled, uint8_t, 0, 1, 2)
SETTING(gid_index, uint32_t, 0, 1, ANY)
SETTING(sl, uint32_t, 0, 3, 16)
SETTING(connection_request_timeout, uint16_t, 2000, 500, 0)
SETTING(max_num_connections, uint16_t, 1, 4, 0)
SETTING(rnr_retry_count, uint8_t, 7, 2, 8)

#define BOTH(name) \
	{ \
		name##_is_kept, name##_is_late \
	}
static const struct {
	void (*is_kept)(struct doca_rdma *rdma);
	void (*is_late)(struct doca_rdma *rdma);
} settings[] = {
	BOTH(send_queue_size),
	BOTH(recv_queue_size),
	BOTH(max_send_buf_list_len),
	BOTH(transport_type),
	BOTH(mtu),
	BOTH(grh_enabled),
	BOTH(gid_index),
	BOTH(sl),
	BOTH(connection_request_timeout),
	BOTH(max_num_connections),
	BOTH(rnr_retry_count),
};
#define N_SETTINGS (sizeof(settings) / sizeof(settings[0]))

static void set_lists(struct doca_rdma *rdma)
{
	uint32_t value;

	OK(doca_rdma_task_receive_get_dst_buf_list_len(rdma, &value));
	CHECK(value == 64);
	OK(doca_rdma_task_receive_set_dst_buf_list_len(rdma, 2));
	FAILS(DOCA_ERROR_INVALID_VALUE, doca_rdma_task_receive_set_dst_buf_list_len(rdma, 0));
	FAILS(DOCA_ERROR_INVALID_VALUE, doca_rdma_task_receive_set_dst_buf_list_len(rdma, 65));
	FAILS(DOCA_ERROR_INVALID_VALUE, doca_rdma_task_receive_set_dst_buf_list_len(NULL, 1));
	OK(doca_rdma_task_receive_get_dst_buf_list_len(rdma, &value));
	CHECK(value == 2);
	FAILS(DOCA_ERROR_INVALID_VALUE, doca_rdma_task_receive_get_dst_buf_list_len(rdma, NULL));
	FAILS(DOCA_ERROR_INVALID_VALUE, doca_rdma_task_receive_get_dst_buf_list_len(NULL, &value));
}

static void set_all(int fd)
{
	struct rig_side *s = rig_open(&(struct rig_wish){.unstarted = true});
	struct doca_rdma *rdma;
	uint32_t most;

	(void)fd;
	OK(doca_rdma_create(s->dev, &rdma));
	for (size_t i = 0; i < N_SETTINGS; i++)
		settings[i].is_kept(rdma);
	FAILS(DOCA_ERROR_NOT_SUPPORTED,
	      doca_rdma_set_transport_type(rdma, DOCA_RDMA_TRANSPORT_TYPE_DC));
	FAILS(DOCA_ERROR_NOT_SUPPORTED, doca_rdma_set_mtu(rdma, DOCA_MTU_SIZE_RAW_ETHERNET));
	OK(doca_rdma_cap_get_max_send_queue_size(doca_dev_as_devinfo(s->dev), &most));
	FAILS(DOCA_ERROR_NOT_SUPPORTED, doca_rdma_set_send_queue_size(rdma, most + 1));
	OK(doca_rdma_cap_get_max_recv_queue_size(doca_dev_as_devinfo(s->dev), &most));
	FAILS(DOCA_ERROR_NOT_SUPPORTED, doca_rdma_set_recv_queue_size(rdma, most + 1));
	OK(doca_rdma_get_permissions(rdma, &most));
	CHECK(most & DOCA_ACCESS_FLAG_RDMA_READ && most & DOCA_ACCESS_FLAG_RDMA_WRITE &&
	      most & DOCA_ACCESS_FLAG_RDMA_ATOMIC);
	FAILS(DOCA_ERROR_INVALID_VALUE, doca_rdma_get_permissions(rdma, NULL));
	FAILS(DOCA_ERROR_INVALID_VALUE, doca_rdma_set_permissions(NULL, 0));
	set_lists(rdma);
	OK(doca_pe_connect_ctx(s->pe, doca_rdma_as_ctx(rdma)));
	OK(doca_ctx_start(doca_rdma_as_ctx(rdma)));
	for (size_t i = 0; i < N_SETTINGS; i++)
		settings[i].is_late(rdma);
	FAILS(DOCA_ERROR_BAD_STATE, doca_rdma_set_permissions(rdma, 0));
	FAILS(DOCA_ERROR_BAD_STATE, doca_rdma_task_receive_set_dst_buf_list_len(rdma, 1));
	OK(doca_ctx_stop(doca_rdma_as_ctx(rdma)));
	OK(doca_rdma_destroy(rdma));
	rig_close(s);
}

static void settings_have_defaults_are_kept_and_are_late_after_start(void)
{
	rig_alone(set_all);
}

/* -- fields -- */

/* Check a field of `task`: it is `made` at first, then set to `other`. task NULL has no effect. */
#define FIELD(name, what, made, other) \
	do { \
		CHECK(doca_rdma_task_##name##_get_##what(task) == (made)); \
		doca_rdma_task_##name##_set_##what(task, other); \
		CHECK(doca_rdma_task_##name##_get_##what(task) == (other)); \
		doca_rdma_task_##name##_set_##what(NULL, other); \
		CHECK(!doca_rdma_task_##name##_get_##what(NULL)); \
	} while (0)

/* Values for fields. No task is submitted, so the values only have to be different. */
struct values {
	struct rig_side *s;
	struct doca_rdma_connection *conn, *conn2;
	struct doca_buf *src, *src2, *dst, *dst2;
	struct doca_sync_event_remote_net *event, *event2;
	union doca_data tag;
};

/*
 * Define a function that allocates a task of this type, converts it to a doca_task and back, checks
 * its fields, and allocates all tasks of the pool.
 */
#define TASK(name, arguments, fields) \
	static void name##_has_fields(const struct values *v) \
	{ \
		struct doca_rdma_task_##name *task, *none = NULL; \
		struct doca_task *base, *all[RIG_TASKS]; \
		unsigned n; \
\
		OK(doca_rdma_task_##name##_allocate_init(v->s->rdma, arguments, v->tag, &task)); \
		base = doca_rdma_task_##name##_as_task(task); \
		CHECK(base && !doca_rdma_task_##name##_as_task(none)); \
		CHECK(doca_task_get_user_data(base).u64 == v->tag.u64); \
		fields; \
		FAILS(DOCA_ERROR_INVALID_VALUE, \
		      doca_rdma_task_##name##_allocate_init(NULL, arguments, v->tag, &task)); \
		FAILS(DOCA_ERROR_INVALID_VALUE, \
		      doca_rdma_task_##name##_allocate_init(v->s->rdma, arguments, v->tag, NULL)); \
		for (n = 0; n < RIG_TASKS - 1; n++) { \
			OK(doca_rdma_task_##name##_allocate_init(v->s->rdma, arguments, v->tag, \
								 &task)); \
			all[n] = doca_rdma_task_##name##_as_task(task); \
		} \
		FAILS(DOCA_ERROR_NO_MEMORY, doca_rdma_task_##name##_allocate_init( \
						    v->s->rdma, arguments, v->tag, &task)); \
		doca_task_free(base); \
		while (n-- > 0) \
			doca_task_free(all[n]); \
	}
#define WITH(...) __VA_ARGS__
#define CONN(name) FIELD(name, rdma_connection, v->conn, v->conn2)

TASK(receive, WITH(v->dst), FIELD(receive, dst_buf, v->dst, v->dst2))
TASK(send, WITH(v->conn, v->src), WITH(CONN(send); FIELD(send, src_buf, v->src, v->src2)))
TASK(send_imm, WITH(v->conn, v->src, 5),
     WITH(CONN(send_imm); FIELD(send_imm, src_buf, v->src, v->src2);
	  FIELD(send_imm, immediate_data, 5, 6)))
TASK(read, WITH(v->conn, v->src, v->dst),
     WITH(CONN(read); FIELD(read, src_buf, v->src, v->src2); FIELD(read, dst_buf, v->dst, v->dst2)))
TASK(write, WITH(v->conn, v->src, v->dst),
     WITH(CONN(write); FIELD(write, src_buf, v->src, v->src2);
	  FIELD(write, dst_buf, v->dst, v->dst2)))
TASK(write_imm, WITH(v->conn, v->src, v->dst, 5),
     WITH(CONN(write_imm); FIELD(write_imm, src_buf, v->src, v->src2);
	  FIELD(write_imm, dst_buf, v->dst, v->dst2); FIELD(write_imm, immediate_data, 5, 6)))
TASK(atomic_cmp_swp, WITH(v->conn, v->dst, v->dst2, 5, 6),
     WITH(CONN(atomic_cmp_swp); FIELD(atomic_cmp_swp, dst_buf, v->dst, v->dst2);
	  FIELD(atomic_cmp_swp, result_buf, v->dst2, v->dst); FIELD(atomic_cmp_swp, cmp_data, 5, 7);
	  FIELD(atomic_cmp_swp, swap_data, 6, 8)))
TASK(atomic_fetch_add, WITH(v->conn, v->dst, v->dst2, 5),
     WITH(CONN(atomic_fetch_add); FIELD(atomic_fetch_add, dst_buf, v->dst, v->dst2);
	  FIELD(atomic_fetch_add, result_buf, v->dst2, v->dst);
	  FIELD(atomic_fetch_add, add_data, 5, 6)))
TASK(remote_net_sync_event_get, WITH(v->conn, v->event, v->dst),
     WITH(CONN(remote_net_sync_event_get);
	  FIELD(remote_net_sync_event_get, sync_event, v->event, v->event2);
	  FIELD(remote_net_sync_event_get, dst_buf, v->dst, v->dst2)))
TASK(remote_net_sync_event_notify_set, WITH(v->conn, v->event, v->src),
     WITH(CONN(remote_net_sync_event_notify_set);
	  FIELD(remote_net_sync_event_notify_set, sync_event, v->event, v->event2);
	  FIELD(remote_net_sync_event_notify_set, src_buf, v->src, v->src2)))
TASK(remote_net_sync_event_notify_add, WITH(v->conn, v->event, v->dst, 5),
     WITH(CONN(remote_net_sync_event_notify_add);
	  FIELD(remote_net_sync_event_notify_add, sync_event, v->event, v->event2);
	  FIELD(remote_net_sync_event_notify_add, result_buf, v->dst, v->dst2);
	  FIELD(remote_net_sync_event_notify_add, add_data, 5, 6)))

static void (*const tasks[])(const struct values *v) = {
	receive_has_fields,
	send_has_fields,
	send_imm_has_fields,
	read_has_fields,
	write_has_fields,
	write_imm_has_fields,
	atomic_cmp_swp_has_fields,
	atomic_fetch_add_has_fields,
	remote_net_sync_event_get_has_fields,
	remote_net_sync_event_notify_set_has_fields,
	remote_net_sync_event_notify_add_has_fields,
};

static void look_at_fields(int fd)
{
	struct values v = {.s = rig_open(&(struct rig_wish){.max_conns = 2}), .tag = {.u64 = 9}};
	char events[2];
	const void *blob;
	size_t size;

	(void)fd;
	OK(doca_rdma_export(v.s->rdma, &blob, &size, &v.conn));
	OK(doca_rdma_export(v.s->rdma, &blob, &size, &v.conn2));
	v.src = rig_data(v.s, 0, 8);
	v.src2 = rig_data(v.s, 8, 8);
	v.dst = rig_room(v.s, 16, 8);
	v.dst2 = rig_room(v.s, 24, 8);
	v.event = (void *)&events[0];
	v.event2 = (void *)&events[1];
	for (size_t i = 0; i < sizeof(tasks) / sizeof(tasks[0]); i++)
		tasks[i](&v);
	CHECK(doca_rdma_task_receive_get_result_len(NULL) == 0 &&
	      doca_rdma_task_read_get_result_len(NULL) == 0);
	CHECK(doca_rdma_task_receive_get_result_opcode(NULL) == DOCA_RDMA_OPCODE_RECV_SEND);
	CHECK(doca_rdma_task_receive_get_result_immediate_data(NULL) == 0);
	CHECK(!doca_rdma_task_receive_get_result_rdma_connection(NULL));
	CHECK(doca_rdma_task_remote_net_sync_event_get_get_result_len(NULL) == 0);
	rig_put(v.src);
	rig_put(v.src2);
	rig_put(v.dst);
	rig_put(v.dst2);
	rig_close(v.s);
}

static void fields_of_all_tasks_are_what_they_were_set_to(void)
{
	rig_alone(look_at_fields);
}

/* -- pools -- */

/*
 * For each kind of task: set_conf() without callbacks, tasks or context returns INVALID_VALUE. A
 * valid call returns `expected`, which is an error after start.
 */
#define CONF(name) \
	static void name##_is_configured(struct doca_rdma *rdma, doca_error_t expected) \
	{ \
		doca_rdma_task_##name##_completion_cb_t cb = \
			(doca_rdma_task_##name##_completion_cb_t)(void (*)(void))never; \
\
		FAILS(expected, doca_rdma_task_##name##_set_conf(rdma, cb, cb, 1)); \
		FAILS(DOCA_ERROR_INVALID_VALUE, \
		      doca_rdma_task_##name##_set_conf(NULL, cb, cb, 1)); \
		FAILS(DOCA_ERROR_INVALID_VALUE, \
		      doca_rdma_task_##name##_set_conf(rdma, NULL, cb, 1)); \
		FAILS(DOCA_ERROR_INVALID_VALUE, \
		      doca_rdma_task_##name##_set_conf(rdma, cb, NULL, 1)); \
		FAILS(DOCA_ERROR_INVALID_VALUE, \
		      doca_rdma_task_##name##_set_conf(rdma, cb, cb, 0)); \
		FAILS(DOCA_ERROR_INVALID_VALUE, doca_rdma_cap_task_##name##_is_supported(NULL)); \
	}

static void never(void)
{
	CHECK(!"called");
}

CONF(receive)
CONF(send)
CONF(send_imm)
CONF(read)
CONF(write)
CONF(write_imm)
CONF(atomic_cmp_swp)
CONF(atomic_fetch_add)
CONF(remote_net_sync_event_get)
CONF(remote_net_sync_event_notify_set)
CONF(remote_net_sync_event_notify_add)

static void (*const confs[])(struct doca_rdma *rdma, doca_error_t expected) = {
	receive_is_configured,
	send_is_configured,
	send_imm_is_configured,
	read_is_configured,
	write_is_configured,
	write_imm_is_configured,
	atomic_cmp_swp_is_configured,
	atomic_fetch_add_is_configured,
	remote_net_sync_event_get_is_configured,
	remote_net_sync_event_notify_set_is_configured,
	remote_net_sync_event_notify_add_is_configured,
};

static void configure(int fd)
{
	struct rig_side *s = rig_open(&(struct rig_wish){.unstarted = true});

	(void)fd;
	for (size_t i = 0; i < sizeof(confs) / sizeof(confs[0]); i++)
		confs[i](s->rdma, DOCA_SUCCESS);
	rig_start(s);
	for (size_t i = 0; i < sizeof(confs) / sizeof(confs[0]); i++)
		confs[i](s->rdma, DOCA_ERROR_BAD_STATE);
	rig_close(s);
}

/* The number of receive tasks limits the posted receives; the configured queue size does not. */
static void post_more_than_the_queue_says(int fd)
{
	struct rig_side *s = rig_open(&(struct rig_wish){.unstarted = true});
	struct doca_rdma_task_receive *posted[RIG_TASKS];

	(void)fd;
	OK(doca_rdma_set_recv_queue_size(s->rdma, 1));
	OK(doca_rdma_set_send_queue_size(s->rdma, 1));
	rig_start(s);
	for (int i = 0; i < RIG_TASKS; i++) {
		OK(doca_rdma_task_receive_allocate_init(s->rdma, NULL, (union doca_data){.u64 = 0},
							&posted[i]));
		OK(doca_task_submit(doca_rdma_task_receive_as_task(posted[i])));
	}
	for (int i = 0; i < RIG_TASKS; i++)
		doca_task_free(doca_rdma_task_receive_as_task(posted[i]));
	rig_close(s);
}

static void the_number_of_receives_is_that_of_their_tasks(void)
{
	rig_alone(post_more_than_the_queue_says);
}

static void pools_are_configured_before_start(void)
{
	rig_alone(configure);
}

int main(void)
{
	if (getenv("GANTRY_PLUGINS"))
		setenv("GANTRY_PLUGIN_PATH", getenv("GANTRY_PLUGINS"), 1);
	UNITY_BEGIN();
	RUN_TEST(settings_have_defaults_are_kept_and_are_late_after_start);
	RUN_TEST(fields_of_all_tasks_are_what_they_were_set_to);
	RUN_TEST(pools_are_configured_before_start);
	RUN_TEST(the_number_of_receives_is_that_of_their_tasks);
	return UNITY_END();
}
