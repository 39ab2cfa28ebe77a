/* SPDX-License-Identifier: BSD-3-Clause */
/* doca_rdma.h - RDMA: contexts and connections */
#ifndef DOCA_RDMA_H
#define DOCA_RDMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <doca_error.h>
#include <doca_types.h>

/* For programs that lean on it, the rdma_cm header comes along where it is installed. */
#if defined(__has_include)
#if __has_include(<rdma/rdma_cma.h>)
#include <rdma/rdma_cma.h>
#endif
#endif
#ifndef IB_DEVICE_NAME_MAX
#define IB_DEVICE_NAME_MAX 64
#endif

#ifdef __cplusplus
extern "C" {
#endif

struct doca_ctx;
struct doca_dev;
struct doca_devinfo;
struct doca_rdma;
struct doca_rdma_addr;
struct doca_rdma_connection;

enum doca_rdma_transport_type {
	DOCA_RDMA_TRANSPORT_TYPE_RC = 0,
	DOCA_RDMA_TRANSPORT_TYPE_DC = 1,
};

enum doca_rdma_addr_type {
	DOCA_RDMA_ADDR_TYPE_IPv4 = 0,
	DOCA_RDMA_ADDR_TYPE_IPv6 = 1,
	DOCA_RDMA_ADDR_TYPE_GID = 2,
};

struct rdma_cm_id;

struct doca_rdma_gid {
	uint8_t raw[DOCA_GID_BYTE_LENGTH];
};

typedef void (*doca_rdma_connection_request_cb_t)(struct doca_rdma_connection *rdma_connection,
						  union doca_data ctx_user_data);
typedef void (*doca_rdma_connection_established_cb_t)(struct doca_rdma_connection *rdma_connection,
						      union doca_data connection_user_data,
						      union doca_data ctx_user_data);
typedef void (*doca_rdma_connection_failure_cb_t)(struct doca_rdma_connection *rdma_connection,
						  union doca_data connection_user_data,
						  union doca_data ctx_user_data);
typedef void (*doca_rdma_connection_disconnection_cb_t)(
	struct doca_rdma_connection *rdma_connection, union doca_data connection_user_data,
	union doca_data ctx_user_data);

/*
 * For a device that is open: reliable connections, one, unless set otherwise. Errors: NO_MEMORY,
 * INITIALIZATION.
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_create(struct doca_dev *dev, struct doca_rdma **rdma);

/* BAD_STATE when it is not idle. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_destroy(struct doca_rdma *rdma);

/* The object as a context, until it is destroyed. NULL for NULL. */
DOCA_EXPERIMENTAL struct doca_ctx *doca_rdma_as_ctx(struct doca_rdma *rdma);

/*
 * After start: a new connection, and what the peer needs to know to connect to it; that belongs to
 * the context.
 * FULL: no more connections. Errors: BAD_STATE, CONNECTION_ABORTED.
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_export(struct doca_rdma *rdma,
						const void **local_rdma_conn_details,
						size_t *local_rdma_conn_details_size,
						struct doca_rdma_connection **rdma_connection);

/*
 * Connect to what the peer exported. SUCCESS: on its way; tasks may be submitted, they wait for the
 * peer. Errors: BAD_STATE, CONNECTION_ABORTED.
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_connect(struct doca_rdma *rdma,
						 const void *remote_rdma_conn_details,
						 size_t remote_rdma_conn_details_size,
						 struct doca_rdma_connection *rdma_connection);

/* An address of the kind said, as text, and a port. Errors: NO_MEMORY. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_addr_create(enum doca_rdma_addr_type addr_type,
						     const char *address, uint16_t port,
						     struct doca_rdma_addr **addr);

/* Free it. BAD_STATE when it belongs to a connection. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_addr_destroy(struct doca_rdma_addr *addr);

/*
 * While it runs: wait for peers that connect to an address of this machine and that port; callbacks
 * tell of them.
 * Errors: BAD_STATE, NOT_SUPPORTED, CONNECTION_ABORTED.
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_start_listen_to_port(struct doca_rdma *rdma,
							      uint16_t port);

/* Wait for peers no longer; connections stay. Errors: NOT_SUPPORTED, CONNECTION_ABORTED. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_stop_listen_to_port(struct doca_rdma *rdma, uint16_t port);

/*
 * In the callback of a request, or later; private data may be NULL. Errors: CONNECTION_ABORTED,
 * NO_MEMORY.
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_connection_accept(
	struct doca_rdma_connection *rdma_connection, void *private_data, uint8_t private_data_len);

/* Refuse a request. Errors: CONNECTION_ABORTED. */
DOCA_EXPERIMENTAL doca_error_t
doca_rdma_connection_reject(struct doca_rdma_connection *rdma_connection);

/*
 * While it runs: connect to a peer that listens. Callbacks tell how it went. Errors: BAD_STATE,
 * NOT_SUPPORTED, CONNECTION_ABORTED.
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_connect_to_addr(struct doca_rdma *rdma,
							 struct doca_rdma_addr *addr,
							 union doca_data connection_user_data);

/*
 * End a connection. The library notifies the peer. The program may call this in the callback that
 * reports the end.
 * After this call the program receives no message of the connection. Tasks that have not ended fail
 * with CONNECTION_ABORTED. The library still calls the callbacks of tasks that have ended, and then
 * the callback of the disconnection or failure.
 * Errors: CONNECTION_ABORTED.
 */
DOCA_EXPERIMENTAL doca_error_t
doca_rdma_connection_disconnect(struct doca_rdma_connection *rdma_connection);

/*
 * A connection out of an rdma_cm_id of the program. Errors: FULL, BAD_STATE, NO_MEMORY,
 * NOT_SUPPORTED,
 * CONNECTION_ABORTED.
 */
DOCA_EXPERIMENTAL doca_error_t
doca_rdma_bridge_prepare_connection(struct doca_rdma *rdma, struct rdma_cm_id *cm_id,
				    struct doca_rdma_connection **rdma_connection);

/* Accept such a connection. Errors: BAD_STATE, NOT_SUPPORTED, CONNECTION_ABORTED. */
DOCA_EXPERIMENTAL doca_error_t
doca_rdma_bridge_accept(struct doca_rdma *rdma, void *private_data, uint8_t private_data_len,
			struct doca_rdma_connection *rdma_connection);

/* Such a connection is established. Errors: NOT_SUPPORTED. */
DOCA_EXPERIMENTAL doca_error_t
doca_rdma_bridge_established(struct doca_rdma *rdma, struct doca_rdma_connection *rdma_connection);

/* The most that the device takes. Errors: DRIVER. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_cap_get_max_recv_queue_size(
	const struct doca_devinfo *devinfo, uint32_t *max_recv_queue_size);
DOCA_EXPERIMENTAL doca_error_t doca_rdma_cap_get_max_send_queue_size(
	const struct doca_devinfo *devinfo, uint32_t *max_send_queue_size);
DOCA_EXPERIMENTAL doca_error_t doca_rdma_cap_get_max_send_buf_list_len(
	const struct doca_devinfo *devinfo, uint32_t *max_send_buf_list_len);
DOCA_EXPERIMENTAL doca_error_t
doca_rdma_cap_get_max_message_size(const struct doca_devinfo *devinfo, uint32_t *max_message_size);

/* Tells what the device can. Errors: DRIVER. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_cap_get_gid_table_size(const struct doca_devinfo *devinfo,
								uint32_t *gid_table_size);
DOCA_EXPERIMENTAL doca_error_t doca_rdma_cap_get_gid(const struct doca_devinfo *devinfo,
						     uint32_t start_index, uint32_t num_entries,
						     struct doca_rdma_gid *gid_array);

/* SUCCESS when the device can do it, NOT_SUPPORTED when not. Errors: DRIVER. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_cap_transport_type_is_supported(
	const struct doca_devinfo *devinfo, enum doca_rdma_transport_type transport_type);

/* Before start. Errors: NOT_SUPPORTED, BAD_STATE. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_set_send_queue_size(struct doca_rdma *rdma,
							     uint32_t send_queue_size);
DOCA_EXPERIMENTAL doca_error_t doca_rdma_set_recv_queue_size(struct doca_rdma *rdma,
							     uint32_t recv_queue_size);

/* Before start. Errors: BAD_STATE. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_set_max_send_buf_list_len(struct doca_rdma *rdma,
								   uint32_t max_send_buf_list_len);

/* Before start. Errors: NOT_SUPPORTED, BAD_STATE. */
DOCA_EXPERIMENTAL doca_error_t
doca_rdma_set_transport_type(struct doca_rdma *rdma, enum doca_rdma_transport_type transport_type);

/* Before start. Errors: NOT_SUPPORTED, BAD_STATE, UNEXPECTED. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_set_mtu(struct doca_rdma *rdma, enum doca_mtu_size mtu);

/*
 * Before start: what peers may do with maps of this side that allow it, bits of doca_access_flag;
 * local ones are ignored. Without it: all that the maps allow. Errors: BAD_STATE.
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_set_permissions(struct doca_rdma *rdma,
							 uint32_t permissions);

/* Before start. Errors: BAD_STATE, NOT_SUPPORTED. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_set_grh_enabled(struct doca_rdma *rdma,
							 uint8_t grh_enabled);

/* Before start: which address of the port. Errors: BAD_STATE. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_set_gid_index(struct doca_rdma *rdma, uint32_t gid_index);

/* Before start. Errors: BAD_STATE. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_set_sl(struct doca_rdma *rdma, uint32_t sl);
DOCA_EXPERIMENTAL doca_error_t doca_rdma_set_connection_request_timeout(struct doca_rdma *rdma,
									uint16_t timeout);

/* For the callbacks of this connection. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_connection_set_user_data(
	struct doca_rdma_connection *rdma_connection, union doca_data connection_user_data);

/* Before start. Errors: NOT_SUPPORTED, BAD_STATE. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_set_max_num_connections(struct doca_rdma *rdma,
								 uint16_t max_num_connections);
DOCA_EXPERIMENTAL doca_error_t doca_rdma_set_rnr_retry_count(struct doca_rdma *rdma,
							     uint8_t rnr_retry_count);

/* What was set, or the default. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_get_send_queue_size(const struct doca_rdma *rdma,
							     uint32_t *send_queue_size);

/* What was set, or the default. Errors: NOT_SUPPORTED, BAD_STATE. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_get_recv_queue_size(const struct doca_rdma *rdma,
							     uint32_t *recv_queue_size);

/* What was set, or the default. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_get_max_send_buf_list_len(const struct doca_rdma *rdma,
								   uint32_t *max_send_buf_list_len);
DOCA_EXPERIMENTAL doca_error_t doca_rdma_get_transport_type(
	const struct doca_rdma *rdma, enum doca_rdma_transport_type *transport_type);
DOCA_EXPERIMENTAL doca_error_t doca_rdma_get_mtu(const struct doca_rdma *rdma,
						 enum doca_mtu_size *mtu);
DOCA_EXPERIMENTAL doca_error_t doca_rdma_get_permissions(struct doca_rdma *rdma,
							 uint32_t *permissions);
DOCA_EXPERIMENTAL doca_error_t doca_rdma_get_grh_enabled(const struct doca_rdma *rdma,
							 uint8_t *grh_enabled);
DOCA_EXPERIMENTAL doca_error_t doca_rdma_get_gid_index(const struct doca_rdma *rdma,
						       uint32_t *gid_index);
DOCA_EXPERIMENTAL doca_error_t doca_rdma_get_sl(const struct doca_rdma *rdma, uint32_t *sl);
DOCA_EXPERIMENTAL doca_error_t
doca_rdma_get_connection_request_timeout(const struct doca_rdma *rdma, uint16_t *timeout);

/*
 * The address that it was connected to; it belongs to the connection. INVALID_VALUE when it was
 * made otherwise.
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_connection_get_addr(
	const struct doca_rdma_connection *rdma_connection, struct doca_rdma_addr **addr);

/* What an address was made of; the text belongs to it. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_addr_get_params(struct doca_rdma_addr *addr,
							 enum doca_rdma_addr_type *addr_type,
							 const char **address, uint16_t *port);

/* What was set, or 0. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_connection_get_user_data(
	const struct doca_rdma_connection *rdma_connection, union doca_data *connection_user_data);

/* A number that no other connection of the context has. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_connection_get_id(
	const struct doca_rdma_connection *rdma_connection, uint32_t *connection_id);

/* What was set, or the default. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_get_max_num_connections(struct doca_rdma *rdma,
								 uint16_t *max_num_connections);
DOCA_EXPERIMENTAL doca_error_t doca_rdma_get_rnr_retry_count(const struct doca_rdma *rdma,
							     uint8_t *rnr_retry_count);

/*
 * Before start: a peer asks, a connection is up, could not be made, is gone. Those that cannot
 * happen may be NULL.
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_set_connection_state_callbacks(
	struct doca_rdma *rdma, doca_rdma_connection_request_cb_t doca_rdma_connect_request_cb,
	doca_rdma_connection_established_cb_t doca_rdma_connect_established_cb,
	doca_rdma_connection_failure_cb_t doca_rdma_connect_failure_cb,
	doca_rdma_connection_disconnection_cb_t doca_rdma_disconnect_cb);

#ifdef __cplusplus
}
#endif

#include <doca_rdma_remote.h>
#include <doca_rdma_task.h>

#endif
