/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dc_callback.c - callbacks of the program
 *
 * The library below gets functions of this file in place of each callback that a program registers.
 * They find the callback by the object of the event, and call it as code of the program.
 */
#include "check/dc.h"

#include <doca_comch.h>
#include <doca_ctx.h>
#include <doca_graph.h>
#include <doca_pe.h>
#include <doca_rdma.h>
#include <stdlib.h>

#include "check/dc_trace.h"
#include "check/dc_trouble.h"

/* Indexes of dc_object.callbacks. */
enum { STATE, MESSAGE, FIRST, SECOND, THIRD, FOURTH };

/* The object of a context, from an address of its own type. */
static struct dc_object *object_of(const void *address, uint16_t type)
{
	struct dc_object *o;

	dc_lock();
	o = dc_find(address, type);
	if (o && type == DC_T_doca_ctx)
		o = o->alias;
	dc_unlock();
	return o;
}

/* Deliver the held completions before the next callback, and return the depth to restore. */
static unsigned enter_program(void)
{
	if (dc_trouble_is_on)
		dc_trouble_release();
	return dc_enter_program();
}

/* -- tasks -- */

void dc_deliver_completion(const struct dc_completion *c)
{
	doca_task_completion_cb_t callback = NULL;
	struct dc_object *task;
	unsigned depth;

	dc_lock();
	task = dc_find_submitted(c->task);
	if (task && task->task.conf)
		callback = (doca_task_completion_cb_t)(uintptr_t)(c->failed
									  ? task->task.conf->error
									  : task->task.conf->done);
	if (task) {
		dc_trace_completed(task, c->failed);
		dc_task_completed(task);
	}
	dc_unlock();
	if (!callback)
		return;
	depth = enter_program();
	callback(c->task, c->task_data, c->ctx_data);
	dc_leave_program(depth);
}

static bool is_held(const struct dc_completion *c)
{
	const struct dc_object *task;
	bool held;

	if (!dc_trouble_is_on)
		return false;
	dc_lock();
	task = dc_find_submitted(c->task);
	held = task && dc_trouble_hold(task->task.ctx, c);
	dc_unlock();
	return held;
}

static void task_ended(const struct dc_completion *c)
{
	if (!is_held(c))
		dc_deliver_completion(c);
}

static void task_done(struct doca_task *task, union doca_data task_data, union doca_data ctx_data)
{
	task_ended(&(struct dc_completion){task, task_data, ctx_data, false});
}

static void task_failed(struct doca_task *task, union doca_data task_data, union doca_data ctx_data)
{
	task_ended(&(struct dc_completion){task, task_data, ctx_data, true});
}

/* -- states -- */

static void end_connection_of(struct dc_object *o, void *ctx)
{
	if (o->type == DC_T_doca_comch_connection && o->parent == ctx)
		dc_end_object(o, NULL);
}

static void state_changed(const union doca_data user_data, struct doca_ctx *ctx,
			  enum doca_ctx_states previous, enum doca_ctx_states next)
{
	struct dc_object *o = object_of(ctx, DC_T_doca_ctx);
	doca_ctx_state_changed_callback_t callback;
	unsigned depth;

	if (!o)
		return;
	callback = (doca_ctx_state_changed_callback_t)(uintptr_t)o->callbacks[STATE];
	dc_lock();
	dc_trace_state(o, (int)next);
	dc_unlock();
	depth = enter_program();
	callback(user_data, ctx, previous, next);
	dc_leave_program(depth);
	if (next != DOCA_CTX_STATE_IDLE)
		return;
	dc_lock();
	dc_each(end_connection_of, o);
	dc_unlock();
}

/* -- Comch -- */

static struct dc_object *server_of(const struct doca_comch_connection *connection)
{
	return object_of(DC_NEXT(doca_comch_server_get_server_ctx)(connection),
			 DC_T_doca_comch_server);
}

static struct dc_object *client_of(const struct doca_comch_connection *connection)
{
	return object_of(DC_NEXT(doca_comch_client_get_client_ctx)(connection),
			 DC_T_doca_comch_client);
}

static void deliver_message(const struct dc_object *ctx, struct doca_comch_event_msg_recv *event,
			    uint8_t *data, uint32_t len, struct doca_comch_connection *connection)
{
	unsigned depth;

	if (!ctx)
		return;
	depth = enter_program();
	((doca_comch_event_msg_recv_cb_t)(uintptr_t)ctx->callbacks[MESSAGE])(event, data, len,
									     connection);
	dc_leave_program(depth);
}

static void server_message(struct doca_comch_event_msg_recv *event, uint8_t *data, uint32_t len,
			   struct doca_comch_connection *connection)
{
	deliver_message(server_of(connection), event, data, len, connection);
}

static void client_message(struct doca_comch_event_msg_recv *event, uint8_t *data, uint32_t len,
			   struct doca_comch_connection *connection)
{
	deliver_message(client_of(connection), event, data, len, connection);
}

static void connected(struct doca_comch_event_connection_status_changed *event,
		      struct doca_comch_connection *connection, uint8_t successful)
{
	struct dc_object *server = server_of(connection);
	unsigned depth;

	if (!server)
		return;
	if (successful && dc_trouble_connection()) {
		(void)DC_NEXT(doca_comch_server_disconnect)(
			(struct doca_comch_server *)(uintptr_t)server->address, connection);
		successful = 0;
	}
	if (successful) {
		dc_lock();
		dc_connection_begins(server, connection);
		dc_unlock();
	}
	depth = enter_program();
	((doca_comch_event_connection_status_changed_cb_t)(uintptr_t)server->callbacks[FIRST])(
		event, connection, successful);
	dc_leave_program(depth);
}

static void disconnected(struct doca_comch_event_connection_status_changed *event,
			 struct doca_comch_connection *connection, uint8_t successful)
{
	struct dc_object *server = server_of(connection);
	unsigned depth;

	if (!server)
		return;
	depth = enter_program();
	((doca_comch_event_connection_status_changed_cb_t)(uintptr_t)server->callbacks[SECOND])(
		event, connection, successful);
	dc_leave_program(depth);
	dc_lock();
	dc_connection_ends(connection);
	dc_unlock();
}

static void deliver_consumer(const struct dc_object *ctx, unsigned which,
			     struct doca_comch_event_consumer *event,
			     struct doca_comch_connection *connection, uint32_t id)
{
	unsigned depth;

	if (!ctx)
		return;
	depth = enter_program();
	((doca_comch_event_consumer_cb_t)(uintptr_t)ctx->callbacks[which])(event, connection, id);
	dc_leave_program(depth);
}

static void server_new_consumer(struct doca_comch_event_consumer *event,
				struct doca_comch_connection *connection, uint32_t id)
{
	deliver_consumer(server_of(connection), THIRD, event, connection, id);
}

static void server_expired_consumer(struct doca_comch_event_consumer *event,
				    struct doca_comch_connection *connection, uint32_t id)
{
	deliver_consumer(server_of(connection), FOURTH, event, connection, id);
}

static void client_new_consumer(struct doca_comch_event_consumer *event,
				struct doca_comch_connection *connection, uint32_t id)
{
	deliver_consumer(client_of(connection), THIRD, event, connection, id);
}

static void client_expired_consumer(struct doca_comch_event_consumer *event,
				    struct doca_comch_connection *connection, uint32_t id)
{
	deliver_consumer(client_of(connection), FOURTH, event, connection, id);
}

/* -- RDMA: a connection does not name its context, which is one of the engine in progress -- */

struct search {
	uint64_t user_data;
	struct dc_object *found;
};

static void seek_rdma(struct dc_object *o, void *arg)
{
	struct search *s = arg;

	if (o->type == DC_T_doca_rdma && o->ctx.engine && o->ctx.engine == dc_thread.engine &&
	    o->callbacks[FIRST] && (!s->found || o->ctx.user_data == s->user_data))
		s->found = o;
}

static void deliver_rdma(unsigned which, struct doca_rdma_connection *connection,
			 union doca_data user_data, union doca_data ctx_data, bool has_user_data)
{
	struct search search = {.user_data = ctx_data.u64};
	uint64_t callback;
	unsigned depth;

	dc_lock();
	dc_each(seek_rdma, &search);
	callback = search.found ? search.found->callbacks[which] : 0;
	dc_unlock();
	if (!callback)
		return;
	depth = enter_program();
	if (has_user_data)
		((doca_rdma_connection_established_cb_t)(uintptr_t)callback)(connection, user_data,
									     ctx_data);
	else
		((doca_rdma_connection_request_cb_t)(uintptr_t)callback)(connection, ctx_data);
	dc_leave_program(depth);
}

static void rdma_request(struct doca_rdma_connection *connection, union doca_data ctx_data)
{
	deliver_rdma(FIRST, connection, (union doca_data){.u64 = 0}, ctx_data, false);
}

static void rdma_established(struct doca_rdma_connection *connection, union doca_data user_data,
			     union doca_data ctx_data)
{
	deliver_rdma(SECOND, connection, user_data, ctx_data, true);
}

static void rdma_failure(struct doca_rdma_connection *connection, union doca_data user_data,
			 union doca_data ctx_data)
{
	deliver_rdma(THIRD, connection, user_data, ctx_data, true);
}

static void rdma_disconnection(struct doca_rdma_connection *connection, union doca_data user_data,
			       union doca_data ctx_data)
{
	deliver_rdma(FOURTH, connection, user_data, ctx_data, true);
}

/* -- graphs -- */

static void deliver_instance(unsigned which, struct doca_graph_instance *instance,
			     union doca_data instance_data, union doca_data graph_data)
{
	const struct dc_object *o = object_of(instance, DC_T_doca_graph_instance);
	unsigned depth;

	if (!o || !o->parent)
		return;
	depth = enter_program();
	((doca_graph_completion_cb_t)(uintptr_t)o->parent->callbacks[which])(
		instance, instance_data, graph_data);
	dc_leave_program(depth);
}

static void graph_done(struct doca_graph_instance *instance, union doca_data instance_data,
		       union doca_data graph_data)
{
	deliver_instance(FIRST, instance, instance_data, graph_data);
}

static void graph_failed(struct doca_graph_instance *instance, union doca_data instance_data,
			 union doca_data graph_data)
{
	deliver_instance(SECOND, instance, instance_data, graph_data);
}

/*
 * -- user nodes of graphs --
 *
 * A user node receives only the cookie of the program, so each callback needs a trampoline of its
 * own. The layer has N_NODES trampolines; it does not judge the calls of further callbacks.
 */

enum { N_NODES = 8 };
static doca_graph_user_node_cb_t nodes[N_NODES];

static doca_error_t run_node(unsigned i, void *cookie)
{
	const unsigned depth = enter_program();
	const doca_error_t result = nodes[i](cookie);

	dc_leave_program(depth);
	return result;
}

#define NODE(i) \
	static doca_error_t node_##i(void *cookie) \
	{ \
		return run_node(i, cookie); \
	}
NODE(0)
NODE(1)
NODE(2)
NODE(3)
NODE(4)
NODE(5)
NODE(6)
NODE(7)
static const doca_graph_user_node_cb_t node_functions[N_NODES] = {
	node_0, node_1, node_2, node_3, node_4, node_5, node_6, node_7,
};

static void replace_node(uint64_t *argument)
{
	const doca_graph_user_node_cb_t node = (doca_graph_user_node_cb_t)(uintptr_t)*argument;
	unsigned i;

	for (i = 0; node && i < N_NODES; i++) {
		if (nodes[i] && nodes[i] != node)
			continue;
		nodes[i] = node;
		*argument = (uint64_t)(uintptr_t)node_functions[i];
		return;
	}
}

/* -- registration -- */

#define ROW(function, argument, which, replacement) \
	{ \
		DC_##function, argument, which, (void (*)(void))(replacement) \
	}
static const struct {
	uint16_t function;
	uint8_t argument, which;
	void (*replacement)(void);
} rows[] = {
	ROW(doca_ctx_set_state_changed_cb, 1, STATE, state_changed),
	ROW(doca_comch_server_event_msg_recv_register, 1, MESSAGE, server_message),
	ROW(doca_comch_client_event_msg_recv_register, 1, MESSAGE, client_message),
	ROW(doca_comch_server_event_connection_status_changed_register, 1, FIRST, connected),
	ROW(doca_comch_server_event_connection_status_changed_register, 2, SECOND, disconnected),
	ROW(doca_comch_server_event_consumer_register, 1, THIRD, server_new_consumer),
	ROW(doca_comch_server_event_consumer_register, 2, FOURTH, server_expired_consumer),
	ROW(doca_comch_client_event_consumer_register, 1, THIRD, client_new_consumer),
	ROW(doca_comch_client_event_consumer_register, 2, FOURTH, client_expired_consumer),
	ROW(doca_rdma_set_connection_state_callbacks, 1, FIRST, rdma_request),
	ROW(doca_rdma_set_connection_state_callbacks, 2, SECOND, rdma_established),
	ROW(doca_rdma_set_connection_state_callbacks, 3, THIRD, rdma_failure),
	ROW(doca_rdma_set_connection_state_callbacks, 4, FOURTH, rdma_disconnection),
	ROW(doca_graph_set_conf, 1, FIRST, graph_done),
	ROW(doca_graph_set_conf, 2, SECOND, graph_failed),
};

static void replace(uint64_t *argument, uint64_t *kept, void (*replacement)(void))
{
	*kept = *argument;
	if (*argument)
		*argument = (uint64_t)(uintptr_t)replacement;
}

static void replace_task_callbacks(struct dc_call *call, struct dc_object *ctx)
{
	struct dc_conf *c = dc_find_conf(ctx, call->function);

	if (!c) {
		c = calloc(1, sizeof(*c));
		if (!c)
			return;
		c->function = call->function;
		c->next = ctx->ctx.confs;
		ctx->ctx.confs = c;
	}
	replace(&call->args[1], &c->done, (void (*)(void))task_done);
	replace(&call->args[2], &c->error, (void (*)(void))task_failed);
}

static bool has_callbacks(uint16_t function)
{
	const struct dc_function *f = &dc_functions[function];
	unsigned i;

	for (i = 0; i < f->n_params; i++)
		if (f->params[i].role == DC_CALLBACK)
			return true;
	return false;
}

void dc_replace_callbacks(struct dc_call *call)
{
	struct dc_object *o = call->objects[0];
	unsigned i;

	if (!o || !has_callbacks(call->function))
		return;
	if (dc_functions[call->function].kind == DC_TASK_CONF) {
		replace_task_callbacks(call, o);
		return;
	}
	if (call->function == DC_doca_graph_node_create_from_user)
		replace_node(&call->args[1]);
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].function == call->function)
			replace(&call->args[rows[i].argument], &o->callbacks[rows[i].which],
				rows[i].replacement);
}
