/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doca_comch.c - public functions of servers, clients and connections: they check arguments and
 * call comch_end.c and comch_conn.c
 */
#include <doca_comch.h>

#include "base/container_of.h"
#include "comch/comch.h"
#include "common/gd_log.h"

static struct gd_end *of_server(const struct doca_comch_server *server)
{
	return server ? (struct gd_end *)(uintptr_t)&server->end : NULL;
}

static struct gd_end *of_client(const struct doca_comch_client *client)
{
	return client ? (struct gd_end *)(uintptr_t)&client->end : NULL;
}

static doca_error_t may_set(const struct gd_end *end)
{
	return gd_ctx_configurable(end ? &end->ctx : NULL, DOCA_ERROR_BAD_STATE);
}

/* -- common to servers and clients; an end may be NULL -- */

static doca_error_t set_number(struct gd_end *end, uint32_t *number, uint32_t value, uint32_t most)
{
	const doca_error_t result = may_set(end);

	if (result != DOCA_SUCCESS)
		return result;
	if (value == 0 || value > most)
		return DOCA_ERROR_INVALID_VALUE;
	*number = value;
	return DOCA_SUCCESS;
}

static doca_error_t get_number(const uint32_t *number, uint32_t *value)
{
	if (!number || !value)
		return DOCA_ERROR_INVALID_VALUE;
	*value = *number;
	return DOCA_SUCCESS;
}

static doca_error_t get_device(const struct gd_end *end, struct doca_dev **dev)
{
	if (!end || !dev)
		return DOCA_ERROR_INVALID_VALUE;
	*dev = end->ctx.dev;
	return DOCA_SUCCESS;
}

static doca_error_t set_sends(struct gd_end *end, doca_comch_task_send_completion_cb_t done,
			      doca_comch_task_send_completion_cb_t error, uint32_t n)
{
	if (!end || n > GD_COMCH_SEND_TASKS)
		return DOCA_ERROR_INVALID_VALUE;
	return gd_pool_conf(&end->sends, done, error, n, DOCA_ERROR_BAD_STATE);
}

static doca_error_t set_on_message(struct gd_end *end, doca_comch_event_msg_recv_cb_t callback)
{
	const doca_error_t result = callback ? may_set(end) : DOCA_ERROR_INVALID_VALUE;

	if (result == DOCA_SUCCESS)
		end->on_message = callback;
	return result;
}

static doca_error_t set_on_consumer(struct gd_end *end, doca_comch_event_consumer_cb_t new_consumer,
				    doca_comch_event_consumer_cb_t expired)
{
	const doca_error_t result = new_consumer && expired ? may_set(end)
							    : DOCA_ERROR_INVALID_VALUE;

	if (result != DOCA_SUCCESS)
		return result;
	end->on_consumer = new_consumer;
	end->on_expired = expired;
	return DOCA_SUCCESS;
}

/* Log that a function of this side cannot have a server or client. */
static void log_wrong_side(const char *what, const char *name, const struct doca_devinfo *info)
{
	const bool is_host = info->side == GD_HOST;

	if (!info->comch)
		gd_log(DOCA_LOG_LEVEL_ERROR,
		       "Comch %s \"%s\" cannot be created: the device has no transport of this machine (device=%s): use a device with transport shm-comch",
		       what, name, info->pci);
	else
		gd_log(DOCA_LOG_LEVEL_ERROR,
		       "Comch %s \"%s\" cannot be created: the device is a function of the %s (device=%s): build and run the program for the %s, after eval \"$(gantry env %s)\"",
		       what, name, is_host ? "host" : "DPU", info->pci, is_host ? "DPU" : "host",
		       is_host ? "dpu" : "host");
}

static doca_error_t check_server(const struct doca_dev *dev, const struct doca_dev_rep *rep,
				 const char *name)
{
	const bool has_rep = gd_rep_is_open(rep) && rep->dev == dev;

	if (doca_comch_cap_server_is_supported(dev->info) != DOCA_SUCCESS) {
		log_wrong_side("server", name, dev->info);
		return has_rep ? DOCA_ERROR_INITIALIZATION : DOCA_ERROR_INVALID_VALUE;
	}
	if (has_rep)
		return DOCA_SUCCESS;
	gd_log(DOCA_LOG_LEVEL_ERROR,
	       "Comch server \"%s\" cannot be created: no open representor of the device (device=%s): pass one of doca_devinfo_rep_create_list() after doca_dev_rep_open()",
	       name, dev->info->pci);
	return DOCA_ERROR_INVALID_VALUE;
}

/* -- servers -- */

doca_error_t doca_comch_server_create(struct doca_dev *dev, struct doca_dev_rep *repr,
				      const char *name, struct doca_comch_server **comch_server)
{
	struct gd_end *end;
	doca_error_t result;

	if (!gd_dev_is_open(dev) || !name || !comch_server)
		return DOCA_ERROR_INVALID_VALUE;
	result = check_server(dev, repr, name);
	if (result == DOCA_SUCCESS)
		result = gd_end_create(dev, repr, name, &end);
	if (result == DOCA_SUCCESS)
		*comch_server = gn_container_of(end, struct doca_comch_server, end);
	return result;
}

doca_error_t doca_comch_server_destroy(struct doca_comch_server *comch_server)
{
	return gd_end_destroy(of_server(comch_server));
}

struct doca_ctx *doca_comch_server_as_ctx(struct doca_comch_server *comch_server)
{
	return comch_server ? &comch_server->end.ctx : NULL;
}

doca_error_t doca_comch_server_set_max_msg_size(struct doca_comch_server *comch_server,
						uint32_t size)
{
	struct gd_end *end = of_server(comch_server);

	return set_number(end, end ? &end->max_msg_size : NULL, size, GD_COMCH_MSG_SIZE);
}

doca_error_t doca_comch_server_get_max_msg_size(const struct doca_comch_server *comch_server,
						uint32_t *size)
{
	return get_number(comch_server ? &comch_server->end.max_msg_size : NULL, size);
}

doca_error_t doca_comch_server_set_recv_queue_size(struct doca_comch_server *comch_server,
						   uint32_t size)
{
	struct gd_end *end = of_server(comch_server);

	return set_number(end, end ? &end->recv_queue : NULL, size, GD_COMCH_RECV_QUEUE);
}

doca_error_t doca_comch_server_get_recv_queue_size(const struct doca_comch_server *comch_server,
						   uint32_t *size)
{
	return get_number(comch_server ? &comch_server->end.recv_queue : NULL, size);
}

doca_error_t doca_comch_server_get_device(const struct doca_comch_server *comch_server,
					  struct doca_dev **dev)
{
	return get_device(of_server(comch_server), dev);
}

doca_error_t doca_comch_server_get_device_rep(const struct doca_comch_server *comch_server,
					      struct doca_dev_rep **rep)
{
	if (!comch_server || !rep)
		return DOCA_ERROR_INVALID_VALUE;
	*rep = comch_server->end.rep;
	return DOCA_SUCCESS;
}

doca_error_t doca_comch_server_disconnect(struct doca_comch_server *comch_server,
					  struct doca_comch_connection *connection)
{
	return gd_end_disconnect(of_server(comch_server), connection);
}

doca_error_t doca_comch_server_task_send_set_conf(
	struct doca_comch_server *comch_server,
	doca_comch_task_send_completion_cb_t task_completion_cb,
	doca_comch_task_send_completion_cb_t task_error_cb, uint32_t num_send_tasks)
{
	return set_sends(of_server(comch_server), task_completion_cb, task_error_cb,
			 num_send_tasks);
}

doca_error_t doca_comch_server_task_send_alloc_init(struct doca_comch_server *comch_server,
						    struct doca_comch_connection *peer,
						    const void *msg, uint32_t len,
						    struct doca_comch_task_send **task)
{
	return gd_end_send(of_server(comch_server), peer, msg, len, task);
}

doca_error_t doca_comch_server_event_msg_recv_register(struct doca_comch_server *comch_server,
						       doca_comch_event_msg_recv_cb_t recv_event_cb)
{
	return set_on_message(of_server(comch_server), recv_event_cb);
}

doca_error_t doca_comch_server_event_connection_status_changed_register(
	struct doca_comch_server *comch_server,
	doca_comch_event_connection_status_changed_cb_t connect_event_cb,
	doca_comch_event_connection_status_changed_cb_t disconnect_event_cb)
{
	struct gd_end *end = of_server(comch_server);
	const doca_error_t result = connect_event_cb && disconnect_event_cb
					    ? may_set(end)
					    : DOCA_ERROR_INVALID_VALUE;

	if (result != DOCA_SUCCESS)
		return result;
	end->on_connect = connect_event_cb;
	end->on_disconnect = disconnect_event_cb;
	return DOCA_SUCCESS;
}

doca_error_t doca_comch_server_event_consumer_register(
	struct doca_comch_server *comch_server,
	doca_comch_event_consumer_cb_t new_consumer_event_cb,
	doca_comch_event_consumer_cb_t expired_consumer_event_cb)
{
	return set_on_consumer(of_server(comch_server), new_consumer_event_cb,
			       expired_consumer_event_cb);
}

/* -- clients -- */

doca_error_t doca_comch_client_create(struct doca_dev *dev, const char *name,
				      struct doca_comch_client **comch_client)
{
	struct gd_end *end;
	doca_error_t result;

	if (!gd_dev_is_open(dev) || !name || !comch_client)
		return DOCA_ERROR_INVALID_VALUE;
	if (doca_comch_cap_client_is_supported(dev->info) != DOCA_SUCCESS) {
		log_wrong_side("client", name, dev->info);
		return DOCA_ERROR_INITIALIZATION;
	}
	result = gd_end_create(dev, NULL, name, &end);
	if (result == DOCA_SUCCESS)
		*comch_client = gn_container_of(end, struct doca_comch_client, end);
	return result;
}

doca_error_t doca_comch_client_destroy(struct doca_comch_client *comch_client)
{
	return gd_end_destroy(of_client(comch_client));
}

struct doca_ctx *doca_comch_client_as_ctx(struct doca_comch_client *comch_client)
{
	return comch_client ? &comch_client->end.ctx : NULL;
}

doca_error_t doca_comch_client_set_max_msg_size(struct doca_comch_client *comch_client,
						uint32_t size)
{
	struct gd_end *end = of_client(comch_client);

	return set_number(end, end ? &end->max_msg_size : NULL, size, GD_COMCH_MSG_SIZE);
}

doca_error_t doca_comch_client_get_max_msg_size(const struct doca_comch_client *comch_client,
						uint32_t *size)
{
	return get_number(comch_client ? &comch_client->end.max_msg_size : NULL, size);
}

doca_error_t doca_comch_client_set_recv_queue_size(struct doca_comch_client *comch_client,
						   uint32_t size)
{
	struct gd_end *end = of_client(comch_client);

	return set_number(end, end ? &end->recv_queue : NULL, size, GD_COMCH_RECV_QUEUE);
}

doca_error_t doca_comch_client_get_recv_queue_size(const struct doca_comch_client *comch_client,
						   uint32_t *size)
{
	return get_number(comch_client ? &comch_client->end.recv_queue : NULL, size);
}

doca_error_t doca_comch_client_get_device(const struct doca_comch_client *comch_client,
					  struct doca_dev **dev)
{
	return get_device(of_client(comch_client), dev);
}

/* A client creates its connection when it starts. */
doca_error_t doca_comch_client_get_connection(const struct doca_comch_client *comch_client,
					      struct doca_comch_connection **connection)
{
	if (!comch_client || !connection)
		return DOCA_ERROR_INVALID_VALUE;
	if (comch_client->end.ctx.state == DOCA_CTX_STATE_IDLE || !comch_client->end.conns)
		return DOCA_ERROR_BAD_STATE;
	*connection = comch_client->end.conns;
	return DOCA_SUCCESS;
}

doca_error_t doca_comch_client_task_send_set_conf(
	struct doca_comch_client *comch_client,
	doca_comch_task_send_completion_cb_t task_completion_cb,
	doca_comch_task_send_completion_cb_t task_error_cb, uint32_t num_send_tasks)
{
	return set_sends(of_client(comch_client), task_completion_cb, task_error_cb,
			 num_send_tasks);
}

doca_error_t doca_comch_client_task_send_alloc_init(struct doca_comch_client *comch_client,
						    struct doca_comch_connection *peer,
						    const void *msg, uint32_t len,
						    struct doca_comch_task_send **task)
{
	return gd_end_send(of_client(comch_client), peer, msg, len, task);
}

doca_error_t doca_comch_client_event_msg_recv_register(struct doca_comch_client *comch_client,
						       doca_comch_event_msg_recv_cb_t recv_event_cb)
{
	return set_on_message(of_client(comch_client), recv_event_cb);
}

doca_error_t doca_comch_client_event_consumer_register(
	struct doca_comch_client *comch_client,
	doca_comch_event_consumer_cb_t new_consumer_event_cb,
	doca_comch_event_consumer_cb_t expired_consumer_event_cb)
{
	return set_on_consumer(of_client(comch_client), new_consumer_event_cb,
			       expired_consumer_event_cb);
}

struct doca_task *doca_comch_task_send_as_task(struct doca_comch_task_send *task)
{
	return task ? &task->task : NULL;
}

/* -- connections -- */

doca_error_t doca_comch_connection_set_user_data(struct doca_comch_connection *connection,
						 union doca_data user_data)
{
	if (!connection)
		return DOCA_ERROR_INVALID_VALUE;
	if (!__atomic_load_n(&connection->transport, __ATOMIC_RELAXED)) /* released */
		return DOCA_ERROR_NOT_CONNECTED;
	connection->user_data = user_data;
	return DOCA_SUCCESS;
}

union doca_data doca_comch_connection_get_user_data(const struct doca_comch_connection *connection)
{
	return connection ? connection->user_data : (union doca_data){.u64 = 0};
}

struct doca_comch_server *doca_comch_server_get_server_ctx(
	const struct doca_comch_connection *connection)
{
	struct gd_end *end = connection ? gd_conn_end(connection) : NULL;

	return end && end->is_server ? gn_container_of(end, struct doca_comch_server, end) : NULL;
}

struct doca_comch_client *doca_comch_client_get_client_ctx(
	const struct doca_comch_connection *connection)
{
	struct gd_end *end = connection ? gd_conn_end(connection) : NULL;

	return end && !end->is_server ? gn_container_of(end, struct doca_comch_client, end) : NULL;
}

doca_error_t doca_comch_connection_update_info(struct doca_comch_connection *comch_connection)
{
	struct gd_transport *transport;
	doca_error_t result;

	if (!comch_connection)
		return DOCA_ERROR_INVALID_VALUE;
	transport = gd_conn_lock_named(comch_connection);
	if (!transport)
		return DOCA_ERROR_CONNECTION_ABORTED;
	result = comch_connection->state != GD_CONN_GREETING &&
				 comch_connection->state != GD_CONN_REQUESTED &&
				 comch_connection->state != GD_CONN_OPEN
			 ? DOCA_ERROR_CONNECTION_ABORTED
		 : comch_connection->is_known ? DOCA_SUCCESS
					      : DOCA_ERROR_CONNECTION_INPROGRESS;
	for (int i = 0; i < 4 && result == DOCA_SUCCESS; i++)
		comch_connection->shown[i] = comch_connection->counters[i];
	gd_transport_unlock(transport);
	return result;
}

doca_error_t doca_comch_connection_get_counter(const struct doca_comch_connection *comch_connection,
					       enum doca_comch_counter counter_type,
					       uint64_t *counter_value)
{
	const unsigned int i = (unsigned int)counter_type - DOCA_COMCH_COUNTER_SENT_MESSAGES;

	if (!comch_connection || !counter_value || i >= 4)
		return DOCA_ERROR_INVALID_VALUE;
	*counter_value = comch_connection->shown[i];
	return DOCA_SUCCESS;
}
