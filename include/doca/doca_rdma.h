/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doca_rdma.h - RDMA: contexts and connections
 *
 * Two contexts connect in one of two ways. By details: each program calls doca_rdma_export(), sends
 * the details to the other program, and calls doca_rdma_connect(). By address: one program calls
 * doca_rdma_start_listen_to_port(), and the other program calls doca_rdma_connect_to_addr().
 */
#ifndef DOCA_RDMA_H
#define DOCA_RDMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <doca_error.h>
#include <doca_types.h>

/* Include the rdma_cm header if it is installed, for programs that rely on this include. */
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

/* Transport types. The library supports only reliable connections (RC). */
enum doca_rdma_transport_type {
	DOCA_RDMA_TRANSPORT_TYPE_RC = 0,
	DOCA_RDMA_TRANSPORT_TYPE_DC = 1,
};

/* Types of addresses. */
enum doca_rdma_addr_type {
	DOCA_RDMA_ADDR_TYPE_IPv4 = 0,
	DOCA_RDMA_ADDR_TYPE_IPv6 = 1,
	DOCA_RDMA_ADDR_TYPE_GID = 2,
};

struct rdma_cm_id;

struct doca_rdma_gid {
	uint8_t raw[DOCA_GID_BYTE_LENGTH];
};

/*
 * Callbacks of connections: a request of a peer, a connection established, a connection attempt
 * failed, a connection ended. The library passes the user data of the connection and of the
 * context. Thread: in doca_pe_progress().
 */
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
 * Create a context on an open device. The default is one reliable connection.
 * Errors:
 *     NO_MEMORY       memory allocation failed
 *     INITIALIZATION  never returned
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_create(struct doca_dev *dev, struct doca_rdma **rdma);

/*
 * Destroy the context.
 * Errors:
 *     BAD_STATE  the context is not idle
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_destroy(struct doca_rdma *rdma);

/* Returns the object as a context, valid until the object is destroyed. Returns NULL for NULL. */
DOCA_EXPERIMENTAL struct doca_ctx *doca_rdma_as_ctx(struct doca_rdma *rdma);

/*
 * Create a connection and the details that the peer needs for doca_rdma_connect(). The details
 * belong to the context. Call after start.
 * Errors:
 *     BAD_STATE           the context is not running
 *     FULL                the maximum number of connections exists
 *     CONNECTION_ABORTED  the device has no address, or the transport cannot listen, see the log
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_export(struct doca_rdma *rdma,
						const void **local_rdma_conn_details,
						size_t *local_rdma_conn_details_size,
						struct doca_rdma_connection **rdma_connection);

/*
 * Connect to the peer that exported the details. After SUCCESS the connection is being established.
 * The program may submit tasks immediately; they wait for the peer.
 * Errors:
 *     BAD_STATE           the context is not running, or the connection was not created by
 *                         doca_rdma_export() or is connected already
 *     CONNECTION_ABORTED  the transport cannot connect, see the log
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_connect(struct doca_rdma *rdma,
						 const void *remote_rdma_conn_details,
						 size_t remote_rdma_conn_details_size,
						 struct doca_rdma_connection *rdma_connection);

/*
 * Create an address from its type, its text and a port.
 * Errors:
 *     NO_MEMORY  memory allocation failed
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_addr_create(enum doca_rdma_addr_type addr_type,
						     const char *address, uint16_t port,
						     struct doca_rdma_addr **addr);

/*
 * Destroy the address.
 * Errors:
 *     BAD_STATE  the address belongs to a connection
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_addr_destroy(struct doca_rdma_addr *addr);

/*
 * Listen for peers that connect to an address of this machine and to a port. The library calls the
 * callbacks of doca_rdma_set_connection_state_callbacks(). The context must be running.
 * Errors:
 *     BAD_STATE           the context is not running, or listens already
 *     CONNECTION_ABORTED  the device has no address, or the transport cannot listen, see the log
 *     NOT_SUPPORTED       never returned
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_start_listen_to_port(struct doca_rdma *rdma,
							      uint16_t port);

/*
 * Stop listening. Established connections are not affected. Never returns NOT_SUPPORTED or
 * CONNECTION_ABORTED.
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_stop_listen_to_port(struct doca_rdma *rdma, uint16_t port);

/*
 * Accept a connection request, in the request callback or later. private_data may be NULL.
 * Errors:
 *     CONNECTION_ABORTED  the peer has given up, or the queues cannot be created
 *     NO_MEMORY           memory allocation failed
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_connection_accept(
	struct doca_rdma_connection *rdma_connection, void *private_data, uint8_t private_data_len);

/*
 * Reject a connection request.
 * Errors:
 *     CONNECTION_ABORTED  there is no request
 */
DOCA_EXPERIMENTAL doca_error_t
doca_rdma_connection_reject(struct doca_rdma_connection *rdma_connection);

/*
 * Connect to a peer that listens. A callback reports the result. The context must be running.
 * Errors:
 *     BAD_STATE           the context is not running
 *     CONNECTION_ABORTED  the maximum number of connections exists, memory allocation failed, or
 *                         the transport cannot connect, see the log
 *     NOT_SUPPORTED       never returned
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_connect_to_addr(struct doca_rdma *rdma,
							 struct doca_rdma_addr *addr,
							 union doca_data connection_user_data);

/*
 * End a connection. The library notifies the peer. The callback that reports the end may call this
 * function. After this call the program receives no message of the connection. Tasks that have not
 * completed fail with CONNECTION_ABORTED. The library still calls the callbacks of tasks that have
 * completed, and then the callback for the disconnection or the failure. Never returns
 * CONNECTION_ABORTED.
 */
DOCA_EXPERIMENTAL doca_error_t
doca_rdma_connection_disconnect(struct doca_rdma_connection *rdma_connection);

/*
 * Not supported: the transports create their connections themselves. Returns NOT_SUPPORTED, never
 * FULL, BAD_STATE, NO_MEMORY or CONNECTION_ABORTED.
 */
DOCA_EXPERIMENTAL doca_error_t
doca_rdma_bridge_prepare_connection(struct doca_rdma *rdma, struct rdma_cm_id *cm_id,
				    struct doca_rdma_connection **rdma_connection);

/* Not supported. Returns NOT_SUPPORTED, never BAD_STATE or CONNECTION_ABORTED. */
DOCA_EXPERIMENTAL doca_error_t
doca_rdma_bridge_accept(struct doca_rdma *rdma, void *private_data, uint8_t private_data_len,
			struct doca_rdma_connection *rdma_connection);

/* Not supported. Returns NOT_SUPPORTED. */
DOCA_EXPERIMENTAL doca_error_t
doca_rdma_bridge_established(struct doca_rdma *rdma, struct doca_rdma_connection *rdma_connection);

/*
 * Get the maximum number of receive tasks of a queue, of other tasks of a queue, of buffers in a
 * list of a send task, and of bytes in a message. Never returns DRIVER.
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_cap_get_max_recv_queue_size(
	const struct doca_devinfo *devinfo, uint32_t *max_recv_queue_size);
DOCA_EXPERIMENTAL doca_error_t doca_rdma_cap_get_max_send_queue_size(
	const struct doca_devinfo *devinfo, uint32_t *max_send_queue_size);
DOCA_EXPERIMENTAL doca_error_t doca_rdma_cap_get_max_send_buf_list_len(
	const struct doca_devinfo *devinfo, uint32_t *max_send_buf_list_len);
DOCA_EXPERIMENTAL doca_error_t
doca_rdma_cap_get_max_message_size(const struct doca_devinfo *devinfo, uint32_t *max_message_size);

/* Get the number of GIDs of the port, and GIDs from index start_index on. Never returns DRIVER. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_cap_get_gid_table_size(const struct doca_devinfo *devinfo,
								uint32_t *gid_table_size);
DOCA_EXPERIMENTAL doca_error_t doca_rdma_cap_get_gid(const struct doca_devinfo *devinfo,
						     uint32_t start_index, uint32_t num_entries,
						     struct doca_rdma_gid *gid_array);

/*
 * Returns SUCCESS if the device supports the transport type, NOT_SUPPORTED if not. Never returns
 * DRIVER.
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_cap_transport_type_is_supported(
	const struct doca_devinfo *devinfo, enum doca_rdma_transport_type transport_type);

/*
 * Set the size of the send queue or of the receive queue, in tasks. The library stores the value,
 * but does not use it. Call before start.
 * Errors:
 *     NOT_SUPPORTED  the library does not support the value
 *     BAD_STATE      the context is started
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_set_send_queue_size(struct doca_rdma *rdma,
							     uint32_t send_queue_size);
DOCA_EXPERIMENTAL doca_error_t doca_rdma_set_recv_queue_size(struct doca_rdma *rdma,
							     uint32_t recv_queue_size);

/*
 * Set the maximum number of buffers in a list of a send task. Call before start.
 * Errors:
 *     BAD_STATE  the context is started
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_set_max_send_buf_list_len(struct doca_rdma *rdma,
								   uint32_t max_send_buf_list_len);

/*
 * Set the transport type. Call before start.
 * Errors:
 *     NOT_SUPPORTED  the library does not support the value
 *     BAD_STATE      the context is started
 */
DOCA_EXPERIMENTAL doca_error_t
doca_rdma_set_transport_type(struct doca_rdma *rdma, enum doca_rdma_transport_type transport_type);

/*
 * Set the maximum transfer unit. The library stores the value, but does not use it. Call before
 * start.
 * Errors:
 *     NOT_SUPPORTED  the value is RAW_ETHERNET
 *     BAD_STATE      the context is started
 *     UNEXPECTED     never returned
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_set_mtu(struct doca_rdma *rdma, enum doca_mtu_size mtu);

/*
 * Set what peers may do with exported maps, within the rights of each map: bits of
 * doca_access_flag. The library ignores local bits. The default permits all that a map permits.
 * Call before start.
 * Errors:
 *     BAD_STATE  the context is started
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_set_permissions(struct doca_rdma *rdma,
							 uint32_t permissions);

/*
 * Set whether packets carry a global route header: 1 or 0. The library stores the value, but does
 * not use it. Call before start.
 * Errors:
 *     BAD_STATE      the context is started
 *     NOT_SUPPORTED  never returned
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_set_grh_enabled(struct doca_rdma *rdma,
							 uint8_t grh_enabled);

/*
 * Set which GID of the port the context uses. Call before start.
 * Errors:
 *     BAD_STATE  the context is started
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_set_gid_index(struct doca_rdma *rdma, uint32_t gid_index);

/*
 * Set the service level (0 to 15), or the timeout of connection requests in milliseconds (at least
 * 1). The library stores the value, but does not use it. Call before start.
 * Errors:
 *     BAD_STATE  the context is started
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_set_sl(struct doca_rdma *rdma, uint32_t sl);
DOCA_EXPERIMENTAL doca_error_t doca_rdma_set_connection_request_timeout(struct doca_rdma *rdma,
									uint16_t timeout);

/* Set the user data that the library passes to the callbacks of the connection. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_connection_set_user_data(
	struct doca_rdma_connection *rdma_connection, union doca_data connection_user_data);

/*
 * Set the maximum number of connections of the context, or the number of retries while the peer has
 * no receive task (0 to 7). The library stores the number of retries, but does not use it. Call
 * before start.
 * Errors:
 *     NOT_SUPPORTED  the library does not support the value
 *     BAD_STATE      the context is started
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_set_max_num_connections(struct doca_rdma *rdma,
								 uint16_t max_num_connections);
DOCA_EXPERIMENTAL doca_error_t doca_rdma_set_rnr_retry_count(struct doca_rdma *rdma,
							     uint8_t rnr_retry_count);

/* Get the size of the send queue that was set, or the default. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_get_send_queue_size(const struct doca_rdma *rdma,
							     uint32_t *send_queue_size);

/*
 * Get the size of the receive queue that was set, or the default. Never returns NOT_SUPPORTED or
 * BAD_STATE.
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_get_recv_queue_size(const struct doca_rdma *rdma,
							     uint32_t *recv_queue_size);

/* Get the parameter that the function of the same name with _set_ has set, or its default. */
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
 * Get the address that the connection was made to. The address belongs to the connection. Returns
 * INVALID_VALUE if the connection was not made by doca_rdma_connect_to_addr().
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_connection_get_addr(
	const struct doca_rdma_connection *rdma_connection, struct doca_rdma_addr **addr);

/* Get the type, text and port of an address. The text belongs to the address. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_addr_get_params(struct doca_rdma_addr *addr,
							 enum doca_rdma_addr_type *addr_type,
							 const char **address, uint16_t *port);

/* Get the user data that was set, or 0. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_connection_get_user_data(
	const struct doca_rdma_connection *rdma_connection, union doca_data *connection_user_data);

/* Get the number of the connection, which is unique in its context. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_connection_get_id(
	const struct doca_rdma_connection *rdma_connection, uint32_t *connection_id);

/* Get the parameter that the function of the same name with _set_ has set, or its default. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_get_max_num_connections(struct doca_rdma *rdma,
								 uint16_t *max_num_connections);
DOCA_EXPERIMENTAL doca_error_t doca_rdma_get_rnr_retry_count(const struct doca_rdma *rdma,
							     uint8_t *rnr_retry_count);

/*
 * Set the callbacks for a request of a peer, an established connection, a failed connection, and a
 * disconnection. The request callback may be NULL: the library then rejects requests.
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
