/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doca_comch.h - Comch: messages between a server on the DPU and clients on the host
 *
 * A server has a name and accepts connections. A client has one connection, which it opens when it
 * starts. doca_comch_consumer.h and doca_comch_producer.h add queues for bulk data.
 */
#ifndef DOCA_COMCH_H
#define DOCA_COMCH_H

#include <stddef.h>
#include <stdint.h>

#include <doca_error.h>
#include <doca_types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct doca_comch_client;
struct doca_comch_connection;
struct doca_comch_event_connection_status_changed;
struct doca_comch_event_consumer;
struct doca_comch_event_msg_recv;
struct doca_comch_server;
struct doca_comch_task_send;
struct doca_dev;
struct doca_dev_rep;
struct doca_devinfo;

/* Counters of a connection: messages and bytes that were sent and received. */
enum doca_comch_counter {
	DOCA_COMCH_COUNTER_SENT_MESSAGES = 1,
	DOCA_COMCH_COUNTER_SENT_BYTES = 2,
	DOCA_COMCH_COUNTER_RECV_MESSAGES = 3,
	DOCA_COMCH_COUNTER_RECV_BYTES = 4,
};

/*
 * A send completes when the program of the peer takes the message, in doca_pe_progress().
 *
 * Completion callbacks: the program owns the task again, and submits or frees it. The library
 * passes the user data of the task and of the context. Thread: in doca_pe_progress().
 */
typedef void (*doca_comch_task_send_completion_cb_t)(struct doca_comch_task_send *task,
						     union doca_data task_user_data,
						     union doca_data ctx_user_data);
/* A message arrived. recv_buffer is valid only during the call. msg_len: bytes. */
typedef void (*doca_comch_event_msg_recv_cb_t)(struct doca_comch_event_msg_recv *event,
					       uint8_t *recv_buffer, uint32_t msg_len,
					       struct doca_comch_connection *comch_connection);
/*
 * A client connected or disconnected. change_successful of a connection: 0 if the client has left
 * before the server accepted it; no further event of that connection follows. Of a disconnection: 0
 * if the client ended without a stop of its context.
 */
typedef void (*doca_comch_event_connection_status_changed_cb_t)(
	struct doca_comch_event_connection_status_changed *event,
	struct doca_comch_connection *comch_connection, uint8_t change_successful);
/* A consumer of the peer has started or ended. id: the id of the consumer, for send tasks. */
typedef void (*doca_comch_event_consumer_cb_t)(struct doca_comch_event_consumer *event,
					       struct doca_comch_connection *comch_connection,
					       uint32_t id);

/*
 * Set the user data of a connection.
 * Errors:
 *     NOT_CONNECTED  the connection has ended, and the library has released its data
 */
DOCA_STABLE doca_error_t doca_comch_connection_set_user_data(
	struct doca_comch_connection *connection, union doca_data user_data);

/* Get the user data that was set, or 0. */
DOCA_STABLE union doca_data doca_comch_connection_get_user_data(
	const struct doca_comch_connection *connection);

/*
 * Returns the server of the connection, or NULL if the connection belongs to a client. The callback
 * that reports the end of the connection may call this function, too.
 */
DOCA_STABLE struct doca_comch_server *doca_comch_server_get_server_ctx(
	const struct doca_comch_connection *connection);

/* Returns the client of the connection, or NULL if the connection belongs to a server. */
DOCA_STABLE struct doca_comch_client *doca_comch_client_get_client_ctx(
	const struct doca_comch_connection *connection);

/* Get the maximum length of a server name, in bytes with the NUL. */
DOCA_STABLE doca_error_t doca_comch_cap_get_max_name_len(const struct doca_devinfo *devinfo,
							 uint32_t *max_name_len);

/* Get the maximum length of a message, in bytes. */
DOCA_STABLE doca_error_t doca_comch_cap_get_max_msg_size(const struct doca_devinfo *devinfo,
							 uint32_t *size);

/* Get the maximum size of a receive queue in messages, and the maximum number of clients. */
DOCA_STABLE doca_error_t doca_comch_cap_get_max_recv_queue_size(const struct doca_devinfo *devinfo,
								uint32_t *size);
DOCA_STABLE doca_error_t doca_comch_cap_get_max_clients(const struct doca_devinfo *devinfo,
							uint32_t *num_clients);

/*
 * Create a server. Its name must be unique on the device and representor when the server starts.
 * The library copies the name.
 * Errors:
 *     NO_MEMORY       memory allocation failed
 *     INITIALIZATION  the device does not support servers
 */
DOCA_STABLE doca_error_t doca_comch_server_create(struct doca_dev *dev, struct doca_dev_rep *repr,
						  const char *name,
						  struct doca_comch_server **comch_server);

/*
 * Destroy the server.
 * Errors:
 *     IN_USE  the context is not idle
 */
DOCA_STABLE doca_error_t doca_comch_server_destroy(struct doca_comch_server *comch_server);

/* Returns SUCCESS if the device supports Comch servers, NOT_SUPPORTED if not. */
DOCA_STABLE doca_error_t doca_comch_cap_server_is_supported(const struct doca_devinfo *devinfo);

/*
 * Set the maximum length of a message, in bytes. Server and client must set the same value. Call
 * before start.
 * Errors:
 *     BAD_STATE  the context is started
 */
DOCA_STABLE doca_error_t doca_comch_server_set_max_msg_size(struct doca_comch_server *comch_server,
							    uint32_t size);

/*
 * Get the maximum length of a message that was set, or the default, in bytes. Never returns
 * BAD_STATE.
 */
DOCA_STABLE doca_error_t
doca_comch_server_get_max_msg_size(const struct doca_comch_server *comch_server, uint32_t *size);

/*
 * Set the size of the receive queue: how many messages of a connection can wait for the program.
 * Call before start.
 * Errors:
 *     BAD_STATE  the context is started
 */
DOCA_STABLE doca_error_t
doca_comch_server_set_recv_queue_size(struct doca_comch_server *comch_server, uint32_t size);

/* Get the size of the receive queue that was set, or the default, in messages. */
DOCA_STABLE doca_error_t
doca_comch_server_get_recv_queue_size(const struct doca_comch_server *comch_server, uint32_t *size);

/* Get the device or representor that the server was created with. Never returns BAD_STATE. */
DOCA_STABLE doca_error_t doca_comch_server_get_device(const struct doca_comch_server *comch_server,
						      struct doca_dev **dev);
DOCA_STABLE doca_error_t doca_comch_server_get_device_rep(
	const struct doca_comch_server *comch_server, struct doca_dev_rep **rep);

/* Returns the object as a context, valid until the object is destroyed. Returns NULL for NULL. */
DOCA_STABLE struct doca_ctx *doca_comch_server_as_ctx(struct doca_comch_server *comch_server);

/*
 * Disconnect one client. The library notifies the client. Callbacks may call this function. After
 * SUCCESS the library reports no event of the connection, not even its end. Send tasks that are
 * submitted still complete.
 * Errors:
 *     IN_USE         a consumer or producer of the connection is not idle
 *     AGAIN          the client does not read its messages: try again later
 *     INVALID_VALUE  the connection has ended
 */
DOCA_STABLE doca_error_t doca_comch_server_disconnect(struct doca_comch_server *comch_server,
						      struct doca_comch_connection *connection);

/*
 * Create a client of the server with that name. The client connects when it starts.
 * Errors:
 *     NO_MEMORY       memory allocation failed
 *     INITIALIZATION  the device does not support clients
 */
DOCA_STABLE doca_error_t doca_comch_client_create(struct doca_dev *dev, const char *name,
						  struct doca_comch_client **comch_client);

/*
 * Destroy the client.
 * Errors:
 *     IN_USE  the context is not idle
 */
DOCA_STABLE doca_error_t doca_comch_client_destroy(struct doca_comch_client *comch_client);

/* Returns SUCCESS if the device supports Comch clients, NOT_SUPPORTED if not. */
DOCA_STABLE doca_error_t doca_comch_cap_client_is_supported(const struct doca_devinfo *devinfo);

/*
 * Set the maximum length of a message, in bytes. Server and client must set the same value. Call
 * before start.
 * Errors:
 *     BAD_STATE  the context is started
 */
DOCA_STABLE doca_error_t doca_comch_client_set_max_msg_size(struct doca_comch_client *comch_client,
							    uint32_t size);

/*
 * Get the maximum length of a message that was set, or the default, in bytes. Never returns
 * BAD_STATE.
 */
DOCA_STABLE doca_error_t
doca_comch_client_get_max_msg_size(const struct doca_comch_client *comch_client, uint32_t *size);

/*
 * Set the size of the receive queue: how many messages of a connection can wait for the program.
 * Call before start.
 * Errors:
 *     BAD_STATE  the context is started
 */
DOCA_STABLE doca_error_t
doca_comch_client_set_recv_queue_size(struct doca_comch_client *comch_client, uint32_t size);

/* Get the size of the receive queue that was set, or the default, in messages. */
DOCA_STABLE doca_error_t
doca_comch_client_get_recv_queue_size(const struct doca_comch_client *comch_client, uint32_t *size);

/* Get the device that the client was created with. Never returns BAD_STATE. */
DOCA_STABLE doca_error_t doca_comch_client_get_device(const struct doca_comch_client *comch_client,
						      struct doca_dev **dev);

/* Returns the object as a context, valid until the object is destroyed. Returns NULL for NULL. */
DOCA_STABLE struct doca_ctx *doca_comch_client_as_ctx(struct doca_comch_client *comch_client);

/*
 * Get the connection of the client.
 * Errors:
 *     BAD_STATE  the client is idle
 */
DOCA_STABLE doca_error_t doca_comch_client_get_connection(
	const struct doca_comch_client *comch_client, struct doca_comch_connection **connection);

/* Get the maximum number of send tasks of a server or client. */
DOCA_STABLE doca_error_t doca_comch_cap_get_max_send_tasks(const struct doca_devinfo *devinfo,
							   uint32_t *max_send_tasks);

/*
 * Set the completion callbacks for success and for failure, and the number of tasks. Call before
 * start.
 * Errors:
 *     BAD_STATE  the context is started
 */
DOCA_STABLE doca_error_t doca_comch_server_task_send_set_conf(
	struct doca_comch_server *comch_server,
	doca_comch_task_send_completion_cb_t task_completion_cb,
	doca_comch_task_send_completion_cb_t task_error_cb, uint32_t num_send_tasks);
DOCA_STABLE doca_error_t doca_comch_client_task_send_set_conf(
	struct doca_comch_client *comch_client,
	doca_comch_task_send_completion_cb_t task_completion_cb,
	doca_comch_task_send_completion_cb_t task_error_cb, uint32_t num_send_tasks);

/*
 * Allocate a task that sends a message to a peer. len: bytes, at least 1. The library copies the
 * message when the task is submitted; until then it must exist. Set user data with
 * doca_task_set_user_data().
 * Errors:
 *     NO_MEMORY      all tasks are allocated
 *     NOT_CONNECTED  the connection has ended, and the library has released its data
 */
DOCA_STABLE doca_error_t doca_comch_server_task_send_alloc_init(
	struct doca_comch_server *comch_server, struct doca_comch_connection *peer, const void *msg,
	uint32_t len, struct doca_comch_task_send **task);

/*
 * Like doca_comch_server_task_send_alloc_init(), to the server.
 * Errors:
 *     NO_MEMORY      all tasks are allocated
 *     NOT_CONNECTED  the connection has ended, and the library has released its data
 */
DOCA_STABLE doca_error_t doca_comch_client_task_send_alloc_init(
	struct doca_comch_client *comch_client, struct doca_comch_connection *peer, const void *msg,
	uint32_t len, struct doca_comch_task_send **task);

/* Returns the generic task, for doca_task_submit() and doca_task_free(). It is the same object. */
DOCA_STABLE struct doca_task *doca_comch_task_send_as_task(struct doca_comch_task_send *task);

/*
 * Set the callback for received messages, which is required. The message is valid only during the
 * callback. Call before start.
 * Errors:
 *     BAD_STATE  the context is started
 */
DOCA_STABLE doca_error_t doca_comch_server_event_msg_recv_register(
	struct doca_comch_server *comch_server, doca_comch_event_msg_recv_cb_t recv_event_cb);
DOCA_STABLE doca_error_t doca_comch_client_event_msg_recv_register(
	struct doca_comch_client *comch_client, doca_comch_event_msg_recv_cb_t recv_event_cb);

/*
 * Set the callbacks for a client that has connected, and for a client that has disconnected or
 * died. Both are required. Call before start. The library calls none of them when the program ends
 * a connection itself, by doca_comch_server_disconnect() or by a stop of the server.
 * Errors:
 *     BAD_STATE  the context is started
 */
DOCA_STABLE doca_error_t doca_comch_server_event_connection_status_changed_register(
	struct doca_comch_server *comch_server,
	doca_comch_event_connection_status_changed_cb_t connect_event_cb,
	doca_comch_event_connection_status_changed_cb_t disconnect_event_cb);

/*
 * Update the counters that doca_comch_connection_get_counter() returns.
 * Errors:
 *     CONNECTION_INPROGRESS  the connection is not yet established
 *     CONNECTION_ABORTED     the connection has ended
 */
DOCA_STABLE doca_error_t
doca_comch_connection_update_info(struct doca_comch_connection *comch_connection);

/* Get a counter as of the last doca_comch_connection_update_info(). */
DOCA_STABLE doca_error_t
doca_comch_connection_get_counter(const struct doca_comch_connection *comch_connection,
				  enum doca_comch_counter counter_type, uint64_t *counter_value);

/*
 * Set the callbacks for a consumer that the peer has started, and for a consumer that has ended.
 * Both are required. Call before start.
 * Errors:
 *     BAD_STATE  the context is started
 */
DOCA_STABLE doca_error_t
doca_comch_server_event_consumer_register(struct doca_comch_server *comch_server,
					  doca_comch_event_consumer_cb_t new_consumer_event_cb,
					  doca_comch_event_consumer_cb_t expired_consumer_event_cb);

/*
 * Like doca_comch_server_event_consumer_register(), for a client.
 * Errors:
 *     BAD_STATE  the context is started
 */
DOCA_STABLE doca_error_t
doca_comch_client_event_consumer_register(struct doca_comch_client *comch_client,
					  doca_comch_event_consumer_cb_t new_consumer_event_cb,
					  doca_comch_event_consumer_cb_t expired_consumer_event_cb);

#ifdef __cplusplus
}
#endif

#endif
