/* SPDX-License-Identifier: BSD-3-Clause */
/* doca_rdma.c - RDMA contexts: create, configure, start, stop */
#include <stdlib.h>

#include "base/container_of.h"
#include "engine/pe.h"
#include "rdma/rdma.h"

#define DEFAULT_QUEUE 256u
/* By default peers have all rights that a map grants. */
#define DEFAULT_PERMISSIONS \
	(DOCA_ACCESS_FLAG_LOCAL_READ_WRITE | DOCA_ACCESS_FLAG_RDMA_READ | \
	 DOCA_ACCESS_FLAG_RDMA_WRITE | DOCA_ACCESS_FLAG_RDMA_ATOMIC)

static doca_error_t start(struct doca_ctx *ctx)
{
	struct doca_rdma *rdma = gd_rdma_of(ctx);
	struct gd_transport *transport;
	void *device;
	doca_error_t result = gd_transport_get_rdma(ctx->dev->info, &transport);
	char *scratch;

	if (result == DOCA_SUCCESS)
		result = gd_transport_need_data(transport);
	if (result != DOCA_SUCCESS)
		return result;
	rdma->transport = transport;
	rdma->ops = gd_transport_ops(transport);
	rdma->network = rdma->by_device = ctx->dev->info->network;
	gd_transport_info(transport, &rdma->limits);
	scratch = realloc(rdma->scratch, (size_t)rdma->limits.max_inline + GD_RDMA_PART);
	if (!scratch)
		return DOCA_ERROR_NO_MEMORY;
	rdma->scratch = scratch;
	STAILQ_INIT(&rdma->receives);
	rdma->n_receives = 0;
	rdma->live = NULL;
	gd_transport_lock(transport, &device);
	rdma->open = true;
	gd_transport_unlock(transport);
	gd_rdma_enlist(rdma);
	return DOCA_SUCCESS;
}

static void run_stopped(struct gd_event *event)
{
	gd_ctx_stopped(&gn_container_of(event, struct doca_rdma, stopped)->ctx);
}

/*
 * Disconnect all peers; messages without a receive task are lost. Returns SUCCESS: the context can
 * become idle immediately. But a program that stops the context in a callback expects IN_PROGRESS:
 * the function then returns IN_PROGRESS and posts the end as an event.
 */
static doca_error_t stop(struct doca_ctx *ctx)
{
	struct doca_rdma *rdma = gd_rdma_of(ctx);
	void *device;

	gd_transport_lock(rdma->transport, &device);
	rdma->open = false;
	if (rdma->listener)
		rdma->ops->unlisten(rdma->listener);
	rdma->listener = NULL;
	gd_rdma_guests_drop(rdma);
	gd_transport_unlock(rdma->transport);
	for (struct doca_rdma_connection *conn = rdma->conns; conn; conn = conn->next)
		if (conn->state != GD_RDMA_FREE)
			gd_rdma_conn_drop(conn, DOCA_ERROR_SHUTDOWN);
	gd_rdma_delist(rdma);
	gd_rdma_flush_receives(rdma, DOCA_ERROR_SHUTDOWN);
	if (!gd_pe_is_running(ctx->pe))
		return DOCA_SUCCESS;
	gd_pe_post(ctx->pe, &rdma->stopped);
	return DOCA_ERROR_IN_PROGRESS;
}

static const struct gd_ctx_ops rdma_ops = {
	.name = "RDMA",
	.start = start,
	.stop = stop,
	.poll = gd_rdma_poll,
	.arm = gd_rdma_arm,
	.sleep_until_event = gd_rdma_sleep_until_event,
	.rouse = gd_rdma_rouse,
};

doca_error_t gd_rdma_running(const struct doca_rdma *rdma)
{
	if (!rdma)
		return DOCA_ERROR_INVALID_VALUE;
	return rdma->ctx.state == DOCA_CTX_STATE_RUNNING ? DOCA_SUCCESS : DOCA_ERROR_BAD_STATE;
}

doca_error_t doca_rdma_create(struct doca_dev *dev, struct doca_rdma **rdma)
{
	struct doca_rdma *new;

	if (!gd_dev_is_open(dev) || !rdma)
		return DOCA_ERROR_INVALID_VALUE;
	new = calloc(1, sizeof(*new));
	if (!new)
		return DOCA_ERROR_NO_MEMORY;
	gd_ctx_init(&new->ctx, &rdma_ops, dev);
	gd_rdma_tasks_init(new);
	STAILQ_INIT(&new->receives);
	new->stopped.run = run_stopped;
	new->mtu = DOCA_MTU_SIZE_1K_BYTES;
	new->send_queue_size = new->recv_queue_size = DEFAULT_QUEUE;
	new->max_send_list = new->max_receive_list = GD_RDMA_MAX_LIST;
	new->max_connections = 1;
	new->permissions = DEFAULT_PERMISSIONS;
	new->request_timeout = 2000;
	new->rnr_retry = 7;
	*rdma = new;
	return DOCA_SUCCESS;
}

doca_error_t doca_rdma_destroy(struct doca_rdma *rdma)
{
	doca_error_t result;

	if (!rdma)
		return DOCA_ERROR_INVALID_VALUE;
	result = gd_ctx_fini(&rdma->ctx, DOCA_ERROR_BAD_STATE);
	if (result != DOCA_SUCCESS)
		return result;
	gd_rdma_conns_free(rdma);
	free(rdma->scratch);
	free(rdma);
	return DOCA_SUCCESS;
}

struct doca_ctx *doca_rdma_as_ctx(struct doca_rdma *rdma)
{
	return rdma ? &rdma->ctx : NULL;
}

doca_error_t doca_rdma_set_connection_state_callbacks(
	struct doca_rdma *rdma, doca_rdma_connection_request_cb_t doca_rdma_connect_request_cb,
	doca_rdma_connection_established_cb_t doca_rdma_connect_established_cb,
	doca_rdma_connection_failure_cb_t doca_rdma_connect_failure_cb,
	doca_rdma_connection_disconnection_cb_t doca_rdma_disconnect_cb)
{
	if (!rdma || !doca_rdma_connect_established_cb || !doca_rdma_connect_failure_cb ||
	    !doca_rdma_disconnect_cb)
		return DOCA_ERROR_INVALID_VALUE;
	rdma->request_cb = doca_rdma_connect_request_cb;
	rdma->established_cb = doca_rdma_connect_established_cb;
	rdma->failure_cb = doca_rdma_connect_failure_cb;
	rdma->disconnection_cb = doca_rdma_disconnect_cb;
	return DOCA_SUCCESS;
}

/*
 * -- settings: values that the program may change before start; `otherwise` is the error for a
 * value out of range --
 */

#define SETTER(name, type, field, is_ok, otherwise) \
	doca_error_t doca_rdma_set_##name(struct doca_rdma *rdma, type value) \
	{ \
		doca_error_t result = gd_ctx_configurable(doca_rdma_as_ctx(rdma), \
							  DOCA_ERROR_BAD_STATE); \
\
		if (result == DOCA_SUCCESS && !(is_ok)) \
			result = otherwise; \
		if (result == DOCA_SUCCESS) \
			rdma->field = value; \
		return result; \
	}

#define WRONG_OR_TOO_MUCH (value ? DOCA_ERROR_NOT_SUPPORTED : DOCA_ERROR_INVALID_VALUE)

#define GETTER(name, type, field, constness) \
	doca_error_t doca_rdma_get_##name(constness struct doca_rdma *rdma, type *value) \
	{ \
		if (!rdma || !value) \
			return DOCA_ERROR_INVALID_VALUE; \
		*value = rdma->field; \
		return DOCA_SUCCESS; \
	}

SETTER(send_queue_size, uint32_t, send_queue_size, value > 0 && value <= GD_RDMA_MAX_QUEUE,
       WRONG_OR_TOO_MUCH)
SETTER(recv_queue_size, uint32_t, recv_queue_size, value > 0 && value <= GD_RDMA_MAX_QUEUE,
       WRONG_OR_TOO_MUCH)
SETTER(max_send_buf_list_len, uint32_t, max_send_list, value > 0 && value <= GD_RDMA_MAX_LIST,
       DOCA_ERROR_INVALID_VALUE)
SETTER(transport_type, enum doca_rdma_transport_type, transport_type,
       value == DOCA_RDMA_TRANSPORT_TYPE_RC,
       value == DOCA_RDMA_TRANSPORT_TYPE_DC ? DOCA_ERROR_NOT_SUPPORTED : DOCA_ERROR_INVALID_VALUE)
SETTER(mtu, enum doca_mtu_size, mtu,
       value >= DOCA_MTU_SIZE_256_BYTES && value <= DOCA_MTU_SIZE_4K_BYTES,
       value == DOCA_MTU_SIZE_RAW_ETHERNET ? DOCA_ERROR_NOT_SUPPORTED : DOCA_ERROR_INVALID_VALUE)
SETTER(permissions, uint32_t, permissions, true, DOCA_SUCCESS)
SETTER(grh_enabled, uint8_t, grh, value <= 1, DOCA_ERROR_INVALID_VALUE)
SETTER(sl, uint32_t, sl, value < 16, DOCA_ERROR_INVALID_VALUE)
SETTER(connection_request_timeout, uint16_t, request_timeout, value > 0, DOCA_ERROR_INVALID_VALUE)
SETTER(max_num_connections, uint16_t, max_connections, value > 0, DOCA_ERROR_INVALID_VALUE)
SETTER(rnr_retry_count, uint8_t, rnr_retry, value <= 7, DOCA_ERROR_INVALID_VALUE)

GETTER(send_queue_size, uint32_t, send_queue_size, const)
GETTER(recv_queue_size, uint32_t, recv_queue_size, const)
GETTER(max_send_buf_list_len, uint32_t, max_send_list, const)
GETTER(transport_type, enum doca_rdma_transport_type, transport_type, const)
GETTER(mtu, enum doca_mtu_size, mtu, const)
GETTER(permissions, uint32_t, permissions, )
GETTER(grh_enabled, uint8_t, grh, const)
GETTER(gid_index, uint32_t, gid_index, const)
GETTER(sl, uint32_t, sl, const)
GETTER(connection_request_timeout, uint16_t, request_timeout, const)
GETTER(max_num_connections, uint16_t, max_connections, )
GETTER(rnr_retry_count, uint8_t, rnr_retry, const)

doca_error_t doca_rdma_set_gid_index(struct doca_rdma *rdma, uint32_t gid_index)
{
	const doca_error_t result = gd_ctx_configurable(doca_rdma_as_ctx(rdma),
							DOCA_ERROR_BAD_STATE);

	if (result != DOCA_SUCCESS)
		return result;
	rdma->gid_index = gid_index;
	rdma->has_gid = true;
	return DOCA_SUCCESS;
}

doca_error_t doca_rdma_task_receive_set_dst_buf_list_len(struct doca_rdma *rdma,
							 uint32_t buf_list_len)
{
	const doca_error_t result = gd_ctx_configurable(doca_rdma_as_ctx(rdma),
							DOCA_ERROR_BAD_STATE);

	if (result != DOCA_SUCCESS)
		return result;
	if (buf_list_len == 0 || buf_list_len > GD_RDMA_MAX_LIST)
		return DOCA_ERROR_INVALID_VALUE;
	rdma->max_receive_list = buf_list_len;
	return DOCA_SUCCESS;
}

doca_error_t doca_rdma_task_receive_get_dst_buf_list_len(const struct doca_rdma *rdma,
							 uint32_t *buf_list_len)
{
	if (!rdma || !buf_list_len)
		return DOCA_ERROR_INVALID_VALUE;
	*buf_list_len = rdma->max_receive_list;
	return DOCA_SUCCESS;
}
