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

struct doca_rdma_gid {
	uint8_t raw[DOCA_GID_BYTE_LENGTH];
};

typedef void (*doca_rdma_connection_request_cb_t)(struct doca_rdma_connection *rdma_connection,
		union doca_data ctx_user_data);
typedef void (*doca_rdma_connection_established_cb_t)(struct doca_rdma_connection *rdma_connection,
		union doca_data connection_user_data, union doca_data ctx_user_data);
typedef void (*doca_rdma_connection_failure_cb_t)(struct doca_rdma_connection *rdma_connection,
		union doca_data connection_user_data, union doca_data ctx_user_data);
typedef void (*doca_rdma_connection_disconnection_cb_t)(struct doca_rdma_connection *rdma_connection,
		union doca_data connection_user_data, union doca_data ctx_user_data);

/* RDMA object for an open device (RC, 1 connection by default). Errors: NO_MEMORY, INITIALIZATION. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_create(struct doca_dev *dev, struct doca_rdma **rdma);

/* BAD_STATE unless stopped. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_destroy(struct doca_rdma *rdma);

/* The object as a context, until it is destroyed. NULL for NULL. */
DOCA_EXPERIMENTAL struct doca_ctx *doca_rdma_as_ctx(struct doca_rdma *rdma);

/*
 * After start; each call makes a connection object and a blob (owned by library); FULL past max_num_connections.
 * Errors: BAD_STATE, CONNECTION_ABORTED.
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_export(struct doca_rdma *rdma, const void **local_rdma_conn_details,
		size_t *local_rdma_conn_details_size, struct doca_rdma_connection **rdma_connection);

/*
 * Feeds the peer's blob into a connection from export; succeeds before the peer has called connect. Doxygen text
 * "only in STARTING" contradicts the samples (RUNNING). Errors: BAD_STATE, CONNECTION_ABORTED.
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_connect(struct doca_rdma *rdma, const void *remote_rdma_conn_details,
		size_t remote_rdma_conn_details_size, struct doca_rdma_connection *rdma_connection);

/* Address object (IPv4 / IPv6 / GID text + port) for the rdma_cm path. Errors: NO_MEMORY. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_addr_create(enum doca_rdma_addr_type addr_type, const char *address,
		uint16_t port, struct doca_rdma_addr **addr);

/* Frees it. Errors: BAD_STATE. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_addr_destroy(struct doca_rdma_addr *addr);

/*
 * rdma_cm server side; in RUNNING; then requests arrive through callbacks. Errors: BAD_STATE, NOT_SUPPORTED,
 * CONNECTION_ABORTED.
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_start_listen_to_port(struct doca_rdma *rdma, uint16_t port);

/* Ends listening. Errors: NOT_SUPPORTED, CONNECTION_ABORTED. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_stop_listen_to_port(struct doca_rdma *rdma, uint16_t port);

/* Called inside the request callback, (connection, NULL, 0) in samples. Errors: CONNECTION_ABORTED, NO_MEMORY. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_connection_accept(struct doca_rdma_connection *rdma_connection,
		void *private_data, uint8_t private_data_len);

/* Refuses a pending request. Errors: CONNECTION_ABORTED. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_connection_reject(struct doca_rdma_connection *rdma_connection);

/*
 * rdma_cm client side; takes per-connection user data; outcome by callbacks. Errors: BAD_STATE, NOT_SUPPORTED,
 * CONNECTION_ABORTED.
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_connect_to_addr(struct doca_rdma *rdma, struct doca_rdma_addr *addr,
		union doca_data connection_user_data);

/* Ends a connection; SUCCESS expected also inside the disconnection callback. Errors: CONNECTION_ABORTED. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_connection_disconnect(struct doca_rdma_connection *rdma_connection);

/*
 * rdma_cm bridge: make a connection from an external rdma_cm_id. Errors: FULL, BAD_STATE, NO_MEMORY, NOT_SUPPORTED,
 * CONNECTION_ABORTED.
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_bridge_prepare_connection(struct doca_rdma *rdma, struct rdma_cm_id *cm_id,
		struct doca_rdma_connection **rdma_connection);

/* rdma_cm bridge: accept on it. Errors: BAD_STATE, NOT_SUPPORTED, CONNECTION_ABORTED. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_bridge_accept(struct doca_rdma *rdma, void *private_data,
		uint8_t private_data_len, struct doca_rdma_connection *rdma_connection);

/* rdma_cm bridge: mark it established. Errors: NOT_SUPPORTED. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_bridge_established(struct doca_rdma *rdma,
		struct doca_rdma_connection *rdma_connection);

/* The most that the device takes. Errors: DRIVER. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_cap_get_max_recv_queue_size(const struct doca_devinfo *devinfo,
		uint32_t *max_recv_queue_size);
DOCA_EXPERIMENTAL doca_error_t doca_rdma_cap_get_max_send_queue_size(const struct doca_devinfo *devinfo,
		uint32_t *max_send_queue_size);
DOCA_EXPERIMENTAL doca_error_t doca_rdma_cap_get_max_send_buf_list_len(const struct doca_devinfo *devinfo,
		uint32_t *max_send_buf_list_len);
DOCA_EXPERIMENTAL doca_error_t doca_rdma_cap_get_max_message_size(const struct doca_devinfo *devinfo,
		uint32_t *max_message_size);

/* Tells what the device can. Errors: DRIVER. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_cap_get_gid_table_size(const struct doca_devinfo *devinfo,
		uint32_t *gid_table_size);
DOCA_EXPERIMENTAL doca_error_t doca_rdma_cap_get_gid(const struct doca_devinfo *devinfo, uint32_t start_index,
		uint32_t num_entries, struct doca_rdma_gid *gid_array);

/* SUCCESS when the device can do it, NOT_SUPPORTED when not. Errors: DRIVER. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_cap_transport_type_is_supported(const struct doca_devinfo *devinfo,
		enum doca_rdma_transport_type transport_type);

/* Before start. Errors: NOT_SUPPORTED, BAD_STATE. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_set_send_queue_size(struct doca_rdma *rdma, uint32_t send_queue_size);
DOCA_EXPERIMENTAL doca_error_t doca_rdma_set_recv_queue_size(struct doca_rdma *rdma, uint32_t recv_queue_size);

/* Before start. Errors: BAD_STATE. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_set_max_send_buf_list_len(struct doca_rdma *rdma,
		uint32_t max_send_buf_list_len);

/* RC (0) or DC (1) before start. Errors: NOT_SUPPORTED, BAD_STATE. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_set_transport_type(struct doca_rdma *rdma,
		enum doca_rdma_transport_type transport_type);

/* Before start. Errors: NOT_SUPPORTED, BAD_STATE, UNEXPECTED. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_set_mtu(struct doca_rdma *rdma, enum doca_mtu_size mtu);

/* Before start; docs say RDMA flags only, programs also pass LOCAL_READ_WRITE: accept. Errors: BAD_STATE. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_set_permissions(struct doca_rdma *rdma, uint32_t permissions);

/* Before start. Errors: BAD_STATE, NOT_SUPPORTED. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_set_grh_enabled(struct doca_rdma *rdma, uint8_t grh_enabled);

/* Before start; samples' -g option. Errors: BAD_STATE. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_set_gid_index(struct doca_rdma *rdma, uint32_t gid_index);

/* Before start. Errors: BAD_STATE. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_set_sl(struct doca_rdma *rdma, uint32_t sl);
DOCA_EXPERIMENTAL doca_error_t doca_rdma_set_connection_request_timeout(struct doca_rdma *rdma, uint16_t timeout);

/* Per-connection data handed to connection callbacks. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_connection_set_user_data(struct doca_rdma_connection *rdma_connection,
		union doca_data connection_user_data);

/*
 * Before start; default 1 (samples rely on setting it for multi_conn). Type uint16_t. Errors: NOT_SUPPORTED,
 * BAD_STATE.
 */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_set_max_num_connections(struct doca_rdma *rdma,
		uint16_t max_num_connections);

/* Before start. Errors: NOT_SUPPORTED, BAD_STATE. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_set_rnr_retry_count(struct doca_rdma *rdma, uint8_t rnr_retry_count);

/* What was set, or the default. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_get_send_queue_size(const struct doca_rdma *rdma,
		uint32_t *send_queue_size);

/* What was set, or the default. Errors: NOT_SUPPORTED, BAD_STATE. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_get_recv_queue_size(const struct doca_rdma *rdma,
		uint32_t *recv_queue_size);

/* What was set, or the default. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_get_max_send_buf_list_len(const struct doca_rdma *rdma,
		uint32_t *max_send_buf_list_len);
DOCA_EXPERIMENTAL doca_error_t doca_rdma_get_transport_type(const struct doca_rdma *rdma,
		enum doca_rdma_transport_type *transport_type);
DOCA_EXPERIMENTAL doca_error_t doca_rdma_get_mtu(const struct doca_rdma *rdma, enum doca_mtu_size *mtu);
DOCA_EXPERIMENTAL doca_error_t doca_rdma_get_permissions(struct doca_rdma *rdma, uint32_t *permissions);
DOCA_EXPERIMENTAL doca_error_t doca_rdma_get_grh_enabled(const struct doca_rdma *rdma, uint8_t *grh_enabled);
DOCA_EXPERIMENTAL doca_error_t doca_rdma_get_gid_index(const struct doca_rdma *rdma, uint32_t *gid_index);
DOCA_EXPERIMENTAL doca_error_t doca_rdma_get_sl(const struct doca_rdma *rdma, uint32_t *sl);
DOCA_EXPERIMENTAL doca_error_t doca_rdma_get_connection_request_timeout(const struct doca_rdma *rdma,
		uint16_t *timeout);

/* Tells the addr. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_connection_get_addr(const struct doca_rdma_connection *rdma_connection,
		struct doca_rdma_addr **addr);

/* Tells the params. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_addr_get_params(struct doca_rdma_addr *addr,
		enum doca_rdma_addr_type *addr_type, const char **address, uint16_t *port);

/* Reads per-connection data. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_connection_get_user_data(
		const struct doca_rdma_connection *rdma_connection, union doca_data *connection_user_data);

/* Tells the id. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_connection_get_id(const struct doca_rdma_connection *rdma_connection,
		uint32_t *connection_id);

/* What was set, or the default. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_get_max_num_connections(struct doca_rdma *rdma,
		uint16_t *max_num_connections);
DOCA_EXPERIMENTAL doca_error_t doca_rdma_get_rnr_retry_count(const struct doca_rdma *rdma,
		uint8_t *rnr_retry_count);

/* request, established, failure, disconnection; request may be NULL on clients. */
DOCA_EXPERIMENTAL doca_error_t doca_rdma_set_connection_state_callbacks(struct doca_rdma *rdma,
		doca_rdma_connection_request_cb_t doca_rdma_connect_request_cb,
		doca_rdma_connection_established_cb_t doca_rdma_connect_established_cb,
		doca_rdma_connection_failure_cb_t doca_rdma_connect_failure_cb,
		doca_rdma_connection_disconnection_cb_t doca_rdma_disconnect_cb);

#ifdef __cplusplus
}
#endif

#include <doca_rdma_remote.h>
#include <doca_rdma_task.h>

#endif
