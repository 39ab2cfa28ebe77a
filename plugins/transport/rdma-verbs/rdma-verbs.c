/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rdma-verbs.c - transport over any device of libibverbs: InfiniBand, RoCE, iWARP, soft-RoCE. The
 * implementation is in verbs-common.
 */
#define GANTRY_API_VERSION 1

#include "verbs.h"

static const struct gantry_option options[] = {
	{"ibdev", GANTRY_OPT_STRING, offsetof(struct vb_conf, ibdev), "", 0, 0, NULL, NULL,
	 "RDMA device, as `rdma link` shows it without its port: mlx5_0. Empty: the only RDMA device of the "
	 "machine."},
	VB_OPTIONS(struct vb_conf),
	GANTRY_OPTION_END,
};

static int rdma_verbs_open(const struct gantry_host *host, const void *conf, void **device_p)
{
	const struct vb_conf *c = conf;

	return vb_transport_open(host, c, c->ibdev, device_p);
}

static int rdma_verbs_scan(const struct gantry_host *host, struct gantry_writer *w)
{
	return vb_transport_scan(host, w, NULL);
}

static const struct gantry_transport_ops ops = {
	.open = rdma_verbs_open, .scan = rdma_verbs_scan, VB_TRANSPORT_OPS};

GANTRY_PLUGIN(rdma_verbs) = {
	GANTRY_PLUGIN_HEAD,
	.kind = GANTRY_KIND_TRANSPORT,
	.name = "rdma-verbs",
	.version = "1",
	.summary = "message queues and remote memory over an RDMA device",
	.options = options,
	.conf_size = sizeof(struct vb_conf),
	.ops_size = sizeof(ops),
	.ops = &ops,
	.check = vb_check,
};
