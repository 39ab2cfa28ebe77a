/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comch_caps.c - capabilities and limits of Comch. The limits of this library apply: they are the
 * same for each device of shared memory.
 */
#include "comch/comch_fast.h"

static doca_error_t supported(const struct doca_devinfo *devinfo, bool can)
{
	return gd_cap(devinfo, devinfo && devinfo->comch && can);
}

/* LIMIT: the same for every device; FAST_LIMIT: only of a device with Comch */
#define LIMIT(name, limit) \
	doca_error_t doca_comch_##name(const struct doca_devinfo *devinfo, uint32_t *value_p) \
	{ \
		return gd_cap_u32(devinfo, true, limit, value_p); \
	}

#define FAST_LIMIT(name, limit) \
	doca_error_t doca_comch_##name(const struct doca_devinfo *devinfo, uint32_t *value_p) \
	{ \
		return gd_cap_u32(devinfo, devinfo && devinfo->comch, limit, value_p); \
	}

LIMIT(cap_get_max_name_len, GD_COMCH_NAME_LEN)
LIMIT(cap_get_max_msg_size, GD_COMCH_MSG_SIZE)
LIMIT(cap_get_max_recv_queue_size, GD_COMCH_RECV_QUEUE)
LIMIT(cap_get_max_clients, GD_COMCH_CLIENTS)
LIMIT(cap_get_max_send_tasks, GD_COMCH_SEND_TASKS)
LIMIT(consumer_cap_get_max_num_tasks, GD_FAST_TASKS)
FAST_LIMIT(consumer_cap_get_max_buf_size, GD_COMCH_BUF_SIZE)
FAST_LIMIT(consumer_cap_get_max_buf_list_len, 1)
LIMIT(consumer_cap_get_max_consumers, GD_FAST_QUEUES)
LIMIT(consumer_cap_get_max_imm_data_len, GD_COMCH_IMM)
LIMIT(producer_cap_get_max_num_tasks, GD_FAST_TASKS)
FAST_LIMIT(producer_cap_get_max_buf_size, GD_COMCH_BUF_SIZE)
FAST_LIMIT(producer_cap_get_max_buf_list_len, 1)
LIMIT(producer_cap_get_max_producers, GD_FAST_QUEUES)

/* Servers run on the DPU side, clients on the host side. */
doca_error_t doca_comch_cap_server_is_supported(const struct doca_devinfo *devinfo)
{
	return supported(devinfo, devinfo && devinfo->side == GD_DPU);
}

doca_error_t doca_comch_cap_client_is_supported(const struct doca_devinfo *devinfo)
{
	return supported(devinfo, devinfo && devinfo->side == GD_HOST);
}

doca_error_t doca_comch_consumer_cap_is_supported(const struct doca_devinfo *devinfo)
{
	return supported(devinfo, true);
}

doca_error_t doca_comch_producer_cap_is_supported(const struct doca_devinfo *devinfo)
{
	return supported(devinfo, true);
}

uint32_t gd_fast_depth(const struct gd_transport *transport, uint32_t n)
{
	struct gantry_device_info info;

	gd_transport_info(transport, &info);
	if (info.max_depth > GD_FAST_POSTS)
		info.max_depth = GD_FAST_POSTS;
	return n < info.max_depth ? n : info.max_depth;
}
