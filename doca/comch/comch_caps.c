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

/* Store a limit that holds for every device. */
static doca_error_t limit(const struct doca_devinfo *devinfo, uint32_t value, uint32_t *value_p)
{
	return gd_cap_u32(devinfo, true, value, value_p);
}

/* Store a limit for a device with Comch; NOT_SUPPORTED: the device has no Comch. */
static doca_error_t fast_limit(const struct doca_devinfo *devinfo, uint32_t value,
			       uint32_t *value_p)
{
	return gd_cap_u32(devinfo, devinfo && devinfo->comch, value, value_p);
}

/* Servers run on the DPU side, clients on the host side. */
doca_error_t doca_comch_cap_server_is_supported(const struct doca_devinfo *devinfo)
{
	return supported(devinfo, devinfo && devinfo->side == GD_DPU);
}

doca_error_t doca_comch_cap_client_is_supported(const struct doca_devinfo *devinfo)
{
	return supported(devinfo, devinfo && devinfo->side == GD_HOST);
}

doca_error_t doca_comch_cap_get_max_name_len(const struct doca_devinfo *devinfo,
					     uint32_t *max_name_len)
{
	return limit(devinfo, GD_COMCH_NAME_LEN, max_name_len);
}

doca_error_t doca_comch_cap_get_max_msg_size(const struct doca_devinfo *devinfo, uint32_t *size)
{
	return limit(devinfo, GD_COMCH_MSG_SIZE, size);
}

doca_error_t doca_comch_cap_get_max_recv_queue_size(const struct doca_devinfo *devinfo,
						    uint32_t *size)
{
	return limit(devinfo, GD_COMCH_RECV_QUEUE, size);
}

doca_error_t doca_comch_cap_get_max_clients(const struct doca_devinfo *devinfo,
					    uint32_t *num_clients)
{
	return limit(devinfo, GD_COMCH_CLIENTS, num_clients);
}

doca_error_t doca_comch_cap_get_max_send_tasks(const struct doca_devinfo *devinfo,
					       uint32_t *max_send_tasks)
{
	return limit(devinfo, GD_COMCH_SEND_TASKS, max_send_tasks);
}

doca_error_t doca_comch_consumer_cap_is_supported(const struct doca_devinfo *devinfo)
{
	return supported(devinfo, true);
}

doca_error_t doca_comch_consumer_cap_get_max_num_tasks(const struct doca_devinfo *devinfo,
						       uint32_t *max_num_tasks)
{
	return limit(devinfo, GD_FAST_TASKS, max_num_tasks);
}

doca_error_t doca_comch_consumer_cap_get_max_buf_size(const struct doca_devinfo *devinfo,
						      uint32_t *max_buf_size)
{
	return fast_limit(devinfo, GD_COMCH_BUF_SIZE, max_buf_size);
}

doca_error_t doca_comch_consumer_cap_get_max_buf_list_len(const struct doca_devinfo *devinfo,
							  uint32_t *max_buf_list_len)
{
	return fast_limit(devinfo, 1, max_buf_list_len);
}

doca_error_t doca_comch_consumer_cap_get_max_consumers(const struct doca_devinfo *devinfo,
						       uint32_t *max_consumers)
{
	return limit(devinfo, GD_FAST_QUEUES, max_consumers);
}

doca_error_t doca_comch_consumer_cap_get_max_imm_data_len(const struct doca_devinfo *devinfo,
							  uint32_t *max_imm_data_len)
{
	return limit(devinfo, GD_COMCH_IMM, max_imm_data_len);
}

doca_error_t doca_comch_producer_cap_is_supported(const struct doca_devinfo *devinfo)
{
	return supported(devinfo, true);
}

doca_error_t doca_comch_producer_cap_get_max_num_tasks(const struct doca_devinfo *devinfo,
						       uint32_t *max_num_tasks)
{
	return limit(devinfo, GD_FAST_TASKS, max_num_tasks);
}

doca_error_t doca_comch_producer_cap_get_max_buf_size(const struct doca_devinfo *devinfo,
						      uint32_t *max_buf_size)
{
	return fast_limit(devinfo, GD_COMCH_BUF_SIZE, max_buf_size);
}

doca_error_t doca_comch_producer_cap_get_max_buf_list_len(const struct doca_devinfo *devinfo,
							  uint32_t *max_buf_list_len)
{
	return fast_limit(devinfo, 1, max_buf_list_len);
}

doca_error_t doca_comch_producer_cap_get_max_producers(const struct doca_devinfo *devinfo,
						       uint32_t *max_producers)
{
	return limit(devinfo, GD_FAST_QUEUES, max_producers);
}

uint32_t gd_fast_depth(const struct gd_transport *transport, uint32_t n)
{
	struct gantry_device_info info;

	gd_transport_info(transport, &info);
	if (info.max_depth > GD_FAST_POSTS)
		info.max_depth = GD_FAST_POSTS;
	return n < info.max_depth ? n : info.max_depth;
}
