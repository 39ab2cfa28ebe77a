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
		union doca_data task_user_data, union doca_data ctx_user_data);
typedef void (*doca_comch_event_msg_recv_cb_t)(struct doca_comch_event_msg_recv *event, uint8_t *recv_buffer,
		uint32_t msg_len, struct doca_comch_connection *comch_connection);
typedef void (*doca_comch_event_connection_status_changed_cb_t)(
		struct doca_comch_event_connection_status_changed *event,
		struct doca_comch_connection *comch_connection, uint8_t change_successful);
typedef void (*doca_comch_event_consumer_cb_t)(struct doca_comch_event_consumer *event,
		struct doca_comch_connection *comch_connection, uint32_t id);

/* Returns doca_error_t; may be called in connect callback and on client after RUNNING. */
DOCA_STABLE doca_error_t doca_comch_connection_set_user_data(struct doca_comch_connection *connection,
		union doca_data user_data);

/* union doca_data by value; zero if unset. */
DOCA_STABLE union doca_data doca_comch_connection_get_user_data(const struct doca_comch_connection *connection);

/* Server owning the connection; NULL for client connections. Valid inside the disconnect callback. */
DOCA_STABLE struct doca_comch_server *doca_comch_server_get_server_ctx(
		const struct doca_comch_connection *connection);

/* Client owning the connection; NULL for server connections. */
DOCA_STABLE struct doca_comch_client *doca_comch_client_get_client_ctx(
		const struct doca_comch_connection *connection);

/* The most that the device takes. */
DOCA_STABLE doca_error_t doca_comch_cap_get_max_name_len(const struct doca_devinfo *devinfo,
		uint32_t *max_name_len);

/* Samples ask it and use min/equality with their own 4080. */
DOCA_STABLE doca_error_t doca_comch_cap_get_max_msg_size(const struct doca_devinfo *devinfo, uint32_t *size);

/* The most that the device takes. */
DOCA_STABLE doca_error_t doca_comch_cap_get_max_recv_queue_size(const struct doca_devinfo *devinfo, uint32_t *size);
DOCA_STABLE doca_error_t doca_comch_cap_get_max_clients(const struct doca_devinfo *devinfo, uint32_t *num_clients);

/* Needs dev, representor, NUL-terminated name; name length limit by cap. Errors: NO_MEMORY, INITIALIZATION. */
DOCA_STABLE doca_error_t doca_comch_server_create(struct doca_dev *dev, struct doca_dev_rep *repr, const char *name,
		struct doca_comch_server **comch_server);

/* IN_USE if not IDLE. */
DOCA_STABLE doca_error_t doca_comch_server_destroy(struct doca_comch_server *comch_server);

/* SUCCESS when the device can do it, NOT_SUPPORTED when not. */
DOCA_STABLE doca_error_t doca_comch_cap_server_is_supported(const struct doca_devinfo *devinfo);

/* Before start; must equal the client's value. Errors: BAD_STATE. */
DOCA_STABLE doca_error_t doca_comch_server_set_max_msg_size(struct doca_comch_server *comch_server, uint32_t size);

/* What was set, or the default. Errors: BAD_STATE. */
DOCA_STABLE doca_error_t doca_comch_server_get_max_msg_size(const struct doca_comch_server *comch_server,
		uint32_t *size);

/* Before start; per-context receive depth. Errors: BAD_STATE. */
DOCA_STABLE doca_error_t doca_comch_server_set_recv_queue_size(struct doca_comch_server *comch_server,
		uint32_t size);

/* What was set, or the default. */
DOCA_STABLE doca_error_t doca_comch_server_get_recv_queue_size(const struct doca_comch_server *comch_server,
		uint32_t *size);

/* Tells the device. Errors: BAD_STATE. */
DOCA_STABLE doca_error_t doca_comch_server_get_device(const struct doca_comch_server *comch_server,
		struct doca_dev **dev);

/* Tells the device rep. Errors: BAD_STATE. */
DOCA_STABLE doca_error_t doca_comch_server_get_device_rep(const struct doca_comch_server *comch_server,
		struct doca_dev_rep **rep);

/* The object as a context, until it is destroyed. NULL for NULL. */
DOCA_STABLE struct doca_ctx *doca_comch_server_as_ctx(struct doca_comch_server *comch_server);

/*
 * IN_USE with live producers/consumers on that connection; AGAIN if the notice cannot be queued; notifies the peer;
 * allowed inside connection callbacks.
 */
DOCA_STABLE doca_error_t doca_comch_server_disconnect(struct doca_comch_server *comch_server,
		struct doca_comch_connection *connection);

/* Needs dev and server name; connects at start. Errors: NO_MEMORY, INITIALIZATION. */
DOCA_STABLE doca_error_t doca_comch_client_create(struct doca_dev *dev, const char *name,
		struct doca_comch_client **comch_client);

/* IN_USE if not IDLE. */
DOCA_STABLE doca_error_t doca_comch_client_destroy(struct doca_comch_client *comch_client);

/* SUCCESS when the device can do it, NOT_SUPPORTED when not. */
DOCA_STABLE doca_error_t doca_comch_cap_client_is_supported(const struct doca_devinfo *devinfo);

/* Before start; must equal the server's value. Errors: BAD_STATE. */
DOCA_STABLE doca_error_t doca_comch_client_set_max_msg_size(struct doca_comch_client *comch_client, uint32_t size);

/* What was set, or the default. Errors: BAD_STATE. */
DOCA_STABLE doca_error_t doca_comch_client_get_max_msg_size(const struct doca_comch_client *comch_client,
		uint32_t *size);

/* Before start. Errors: BAD_STATE. */
DOCA_STABLE doca_error_t doca_comch_client_set_recv_queue_size(struct doca_comch_client *comch_client,
		uint32_t size);

/* What was set, or the default. */
DOCA_STABLE doca_error_t doca_comch_client_get_recv_queue_size(const struct doca_comch_client *comch_client,
		uint32_t *size);

/* Tells the device. Errors: BAD_STATE. */
DOCA_STABLE doca_error_t doca_comch_client_get_device(const struct doca_comch_client *comch_client,
		struct doca_dev **dev);

/* The object as a context, until it is destroyed. NULL for NULL. */
DOCA_STABLE struct doca_ctx *doca_comch_client_as_ctx(struct doca_comch_client *comch_client);

/* The client's single connection; BAD_STATE before start. */
DOCA_STABLE doca_error_t doca_comch_client_get_connection(const struct doca_comch_client *comch_client,
		struct doca_comch_connection **connection);

/* The most that the device takes. */
DOCA_STABLE doca_error_t doca_comch_cap_get_max_send_tasks(const struct doca_devinfo *devinfo,
		uint32_t *max_send_tasks);

/* Before start: callbacks of success and of failure, and how many tasks there will be. Errors: BAD_STATE. */
DOCA_STABLE doca_error_t doca_comch_server_task_send_set_conf(struct doca_comch_server *comch_server,
		doca_comch_task_send_completion_cb_t task_completion_cb,
		doca_comch_task_send_completion_cb_t task_error_cb, uint32_t num_send_tasks);
DOCA_STABLE doca_error_t doca_comch_client_task_send_set_conf(struct doca_comch_client *comch_client,
		doca_comch_task_send_completion_cb_t task_completion_cb,
		doca_comch_task_send_completion_cb_t task_error_cb, uint32_t num_send_tasks);

/*
 * peer, msg pointer, len; msg copied at submit; len > max or 0 -> INVALID_VALUE; pool empty -> NO_MEMORY. Task has
 * no user_data argument (use doca_task_set_user_data).
 */
DOCA_STABLE doca_error_t doca_comch_server_task_send_alloc_init(struct doca_comch_server *comch_server,
		struct doca_comch_connection *peer, const void *msg, uint32_t len,
		struct doca_comch_task_send **task);

/* Same for the client's connection. Errors: NO_MEMORY. */
DOCA_STABLE doca_error_t doca_comch_client_task_send_alloc_init(struct doca_comch_client *comch_client,
		struct doca_comch_connection *peer, const void *msg, uint32_t len,
		struct doca_comch_task_send **task);

/* The task as a task of any kind; the same object. */
DOCA_STABLE struct doca_task *doca_comch_task_send_as_task(struct doca_comch_task_send *task);

/*
 * One callback (event, uint8_t *buf, uint32_t len, connection); buf valid only during the callback. Errors:
 * BAD_STATE.
 */
DOCA_STABLE doca_error_t doca_comch_server_event_msg_recv_register(struct doca_comch_server *comch_server,
		doca_comch_event_msg_recv_cb_t recv_event_cb);

/* Same for the client. Errors: BAD_STATE. */
DOCA_STABLE doca_error_t doca_comch_client_event_msg_recv_register(struct doca_comch_client *comch_client,
		doca_comch_event_msg_recv_cb_t recv_event_cb);

/* Connect and disconnect callbacks (event, connection, uint8_t change_successful). Errors: BAD_STATE. */
DOCA_STABLE doca_error_t doca_comch_server_event_connection_status_changed_register(
		struct doca_comch_server *comch_server,
		doca_comch_event_connection_status_changed_cb_t connect_event_cb,
		doca_comch_event_connection_status_changed_cb_t disconnect_event_cb);

/* Refreshes counters; CONNECTION_INPROGRESS / CONNECTION_ABORTED if not up. */
DOCA_STABLE doca_error_t doca_comch_connection_update_info(struct doca_comch_connection *comch_connection);

/* Reads counter SENT/RECV MESSAGES/BYTES. */
DOCA_STABLE doca_error_t doca_comch_connection_get_counter(const struct doca_comch_connection *comch_connection,
		enum doca_comch_counter counter_type, uint64_t *counter_value);

/*
 * new-consumer and expired-consumer callbacks (event, connection, uint32_t id) about the PEER's consumers; both must
 * be non-NULL. Errors: BAD_STATE.
 */
DOCA_STABLE doca_error_t doca_comch_server_event_consumer_register(struct doca_comch_server *comch_server,
		doca_comch_event_consumer_cb_t new_consumer_event_cb,
		doca_comch_event_consumer_cb_t expired_consumer_event_cb);

/* Same on the client. Errors: BAD_STATE. */
DOCA_STABLE doca_error_t doca_comch_client_event_consumer_register(struct doca_comch_client *comch_client,
		doca_comch_event_consumer_cb_t new_consumer_event_cb,
		doca_comch_event_consumer_cb_t expired_consumer_event_cb);

#ifdef __cplusplus
}
#endif

#endif
