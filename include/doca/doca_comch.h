/* SPDX-License-Identifier: BSD-3-Clause */
/* doca_comch.h - messages between host and DPU: server, client, connection */
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

enum doca_comch_counter {
	DOCA_COMCH_COUNTER_SENT_MESSAGES = 1,
	DOCA_COMCH_COUNTER_SENT_BYTES = 2,
	DOCA_COMCH_COUNTER_RECV_MESSAGES = 3,
	DOCA_COMCH_COUNTER_RECV_BYTES = 4,
};

typedef void (*doca_comch_task_send_completion_cb_t)(struct doca_comch_task_send *task,
						     union doca_data task_user_data,
						     union doca_data ctx_user_data);
typedef void (*doca_comch_event_msg_recv_cb_t)(struct doca_comch_event_msg_recv *event,
					       uint8_t *recv_buffer, uint32_t msg_len,
					       struct doca_comch_connection *comch_connection);
typedef void (*doca_comch_event_connection_status_changed_cb_t)(
	struct doca_comch_event_connection_status_changed *event,
	struct doca_comch_connection *comch_connection, uint8_t change_successful);
typedef void (*doca_comch_event_consumer_cb_t)(struct doca_comch_event_consumer *event,
					       struct doca_comch_connection *comch_connection,
					       uint32_t id);

/* At any time while it lives. */
DOCA_STABLE doca_error_t doca_comch_connection_set_user_data(
	struct doca_comch_connection *connection, union doca_data user_data);

/* What was set, or 0. */
DOCA_STABLE union doca_data doca_comch_connection_get_user_data(
	const struct doca_comch_connection *connection);

/* The server that it belongs to; NULL at the client. Still in the callback of its end. */
DOCA_STABLE struct doca_comch_server *doca_comch_server_get_server_ctx(
	const struct doca_comch_connection *connection);

/* The client that it belongs to; NULL at the server. */
DOCA_STABLE struct doca_comch_client *doca_comch_client_get_client_ctx(
	const struct doca_comch_connection *connection);

/* Longest name of a server, with its NUL. */
DOCA_STABLE doca_error_t doca_comch_cap_get_max_name_len(const struct doca_devinfo *devinfo,
							 uint32_t *max_name_len);

/* Longest message, in bytes. */
DOCA_STABLE doca_error_t doca_comch_cap_get_max_msg_size(const struct doca_devinfo *devinfo,
							 uint32_t *size);

/* The most that the device takes. */
DOCA_STABLE doca_error_t doca_comch_cap_get_max_recv_queue_size(const struct doca_devinfo *devinfo,
								uint32_t *size);
DOCA_STABLE doca_error_t doca_comch_cap_get_max_clients(const struct doca_devinfo *devinfo,
							uint32_t *num_clients);

/*
 * A server with a name that no other has on this device and representor. The name is copied.
 * Errors: NO_MEMORY, INITIALIZATION.
 */
DOCA_STABLE doca_error_t doca_comch_server_create(struct doca_dev *dev, struct doca_dev_rep *repr,
						  const char *name,
						  struct doca_comch_server **comch_server);

/* IN_USE when it is not idle. */
DOCA_STABLE doca_error_t doca_comch_server_destroy(struct doca_comch_server *comch_server);

/* SUCCESS when the device can do it, NOT_SUPPORTED when not. */
DOCA_STABLE doca_error_t doca_comch_cap_server_is_supported(const struct doca_devinfo *devinfo);

/* Before start; both sides need the same. Errors: BAD_STATE. */
DOCA_STABLE doca_error_t doca_comch_server_set_max_msg_size(struct doca_comch_server *comch_server,
							    uint32_t size);

/* What was set, or the default. Errors: BAD_STATE. */
DOCA_STABLE doca_error_t
doca_comch_server_get_max_msg_size(const struct doca_comch_server *comch_server, uint32_t *size);

/* Before start: how many messages may wait here. Errors: BAD_STATE. */
DOCA_STABLE doca_error_t
doca_comch_server_set_recv_queue_size(struct doca_comch_server *comch_server, uint32_t size);

/* What was set, or the default. */
DOCA_STABLE doca_error_t
doca_comch_server_get_recv_queue_size(const struct doca_comch_server *comch_server, uint32_t *size);

/* What it was made with. Errors: BAD_STATE. */
DOCA_STABLE doca_error_t doca_comch_server_get_device(const struct doca_comch_server *comch_server,
						      struct doca_dev **dev);
DOCA_STABLE doca_error_t doca_comch_server_get_device_rep(
	const struct doca_comch_server *comch_server, struct doca_dev_rep **rep);

/* The object as a context, until it is destroyed. NULL for NULL. */
DOCA_STABLE struct doca_ctx *doca_comch_server_as_ctx(struct doca_comch_server *comch_server);

/*
 * Disconnect one client. The library notifies the client. The program may call this inside
 * callbacks.
 * After SUCCESS the program gets no event of the connection, not even that of its end. Submitted
 * send tasks still end. Errors:
 *     IN_USE         a consumer or producer of the connection is not idle
 *     AGAIN          the client does not read its messages: try later
 *     INVALID_VALUE  the connection has ended
 */
DOCA_STABLE doca_error_t doca_comch_server_disconnect(struct doca_comch_server *comch_server,
						      struct doca_comch_connection *connection);

/*
 * A client of the server with that name. It connects at start. Errors: NO_MEMORY, INITIALIZATION.
 */
DOCA_STABLE doca_error_t doca_comch_client_create(struct doca_dev *dev, const char *name,
						  struct doca_comch_client **comch_client);

/* IN_USE when it is not idle. */
DOCA_STABLE doca_error_t doca_comch_client_destroy(struct doca_comch_client *comch_client);

/* SUCCESS when the device can do it, NOT_SUPPORTED when not. */
DOCA_STABLE doca_error_t doca_comch_cap_client_is_supported(const struct doca_devinfo *devinfo);

/* Before start; both sides need the same. Errors: BAD_STATE. */
DOCA_STABLE doca_error_t doca_comch_client_set_max_msg_size(struct doca_comch_client *comch_client,
							    uint32_t size);

/* What was set, or the default. Errors: BAD_STATE. */
DOCA_STABLE doca_error_t
doca_comch_client_get_max_msg_size(const struct doca_comch_client *comch_client, uint32_t *size);

/* Before start: how many messages may wait here. Errors: BAD_STATE. */
DOCA_STABLE doca_error_t
doca_comch_client_set_recv_queue_size(struct doca_comch_client *comch_client, uint32_t size);

/* What was set, or the default. */
DOCA_STABLE doca_error_t
doca_comch_client_get_recv_queue_size(const struct doca_comch_client *comch_client, uint32_t *size);

/* What it was made with. Errors: BAD_STATE. */
DOCA_STABLE doca_error_t doca_comch_client_get_device(const struct doca_comch_client *comch_client,
						      struct doca_dev **dev);

/* The object as a context, until it is destroyed. NULL for NULL. */
DOCA_STABLE struct doca_ctx *doca_comch_client_as_ctx(struct doca_comch_client *comch_client);

/* Its one connection. BAD_STATE before start. */
DOCA_STABLE doca_error_t doca_comch_client_get_connection(
	const struct doca_comch_client *comch_client, struct doca_comch_connection **connection);

/* The most that the device takes. */
DOCA_STABLE doca_error_t doca_comch_cap_get_max_send_tasks(const struct doca_devinfo *devinfo,
							   uint32_t *max_send_tasks);

/*
 * Before start: callbacks of success and of failure, and how many tasks there will be. Errors:
 * BAD_STATE.
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
 * A message of len bytes, at least one, to a peer; it is copied when the task is submitted. User
 * data: by doca_task_set_user_data. NO_MEMORY: no task is left.
 */
DOCA_STABLE doca_error_t doca_comch_server_task_send_alloc_init(
	struct doca_comch_server *comch_server, struct doca_comch_connection *peer, const void *msg,
	uint32_t len, struct doca_comch_task_send **task);

/* The same to the server. Errors: NO_MEMORY. */
DOCA_STABLE doca_error_t doca_comch_client_task_send_alloc_init(
	struct doca_comch_client *comch_client, struct doca_comch_connection *peer, const void *msg,
	uint32_t len, struct doca_comch_task_send **task);

/* The task as a task of any kind; the same object. */
DOCA_STABLE struct doca_task *doca_comch_task_send_as_task(struct doca_comch_task_send *task);

/*
 * Before start, needed: called for each message; the bytes live as long as the call. Errors:
 * BAD_STATE.
 */
DOCA_STABLE doca_error_t doca_comch_server_event_msg_recv_register(
	struct doca_comch_server *comch_server, doca_comch_event_msg_recv_cb_t recv_event_cb);
DOCA_STABLE doca_error_t doca_comch_client_event_msg_recv_register(
	struct doca_comch_client *comch_client, doca_comch_event_msg_recv_cb_t recv_event_cb);

/*
 * Before start: callbacks for a client that has connected, and for a client that has left or died.
 * The program gets no event when it ends a connection itself: by doca_comch_server_disconnect, or
 * by a stop of the server. Errors: BAD_STATE.
 */
DOCA_STABLE doca_error_t doca_comch_server_event_connection_status_changed_register(
	struct doca_comch_server *comch_server,
	doca_comch_event_connection_status_changed_cb_t connect_event_cb,
	doca_comch_event_connection_status_changed_cb_t disconnect_event_cb);

/*
 * Have the counters brought up to date. CONNECTION_INPROGRESS or CONNECTION_ABORTED when it is not
 * up.
 */
DOCA_STABLE doca_error_t
doca_comch_connection_update_info(struct doca_comch_connection *comch_connection);

/* A counter, as of the last update. */
DOCA_STABLE doca_error_t
doca_comch_connection_get_counter(const struct doca_comch_connection *comch_connection,
				  enum doca_comch_counter counter_type, uint64_t *counter_value);

/*
 * Before start: called when the peer has started a consumer, and when one is gone. Both are needed.
 * Errors:
 * BAD_STATE.
 */
DOCA_STABLE doca_error_t
doca_comch_server_event_consumer_register(struct doca_comch_server *comch_server,
					  doca_comch_event_consumer_cb_t new_consumer_event_cb,
					  doca_comch_event_consumer_cb_t expired_consumer_event_cb);

/* The same for a client. Errors: BAD_STATE. */
DOCA_STABLE doca_error_t
doca_comch_client_event_consumer_register(struct doca_comch_client *comch_client,
					  doca_comch_event_consumer_cb_t new_consumer_event_cb,
					  doca_comch_event_consumer_cb_t expired_consumer_event_cb);

#ifdef __cplusplus
}
#endif

#endif
