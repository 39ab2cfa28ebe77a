/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rxe.c - transport over soft-RoCE, which is RDMA over an Ethernet interface. Finds or creates the
 * soft-RoCE device of an interface. The transport itself is implemented in verbs-common.
 */
#define GANTRY_API_VERSION 1

#include <errno.h>
#include <string.h>

#include "rxe.h"
#include "verbs.h"

#define SYSFS "/sys/class/infiniband"

static const struct gantry_option options[] = {
	{"netdev", GANTRY_OPT_STRING, offsetof(struct vb_conf, netdev), "", 0, 0, NULL, NULL,
	 "Network interface of the soft-RoCE device: eth0. Empty: that of the only soft-RoCE device of the machine."},
	{"create", GANTRY_OPT_BOOL, offsetof(struct vb_conf, create), "false", 0, 0, NULL, NULL,
	 "Create the soft-RoCE device of netdev if it is missing, which needs CAP_NET_ADMIN. The device stays when "
	 "gantry ends."},
	VB_OPTIONS(struct vb_conf),
	GANTRY_OPTION_END,
};

static void report(const struct gantry_host *host, const char *netdev, const char *verb,
		   const char *name, int rc)
{
	if (rc)
		gantry_log_error(host, "cannot create a soft-RoCE device on %s: %s: %s", netdev,
				 strerror(-rc), rxe_advice(rc));
	else
		gantry_log_info(host, "%s soft-RoCE device %s on %s", verb, name, netdev);
}

/* Returns 0: open creates no device; -EAGAIN: it would create one; else: it would fail. */
static int try_create(const struct gantry_host *host, const struct vb_conf *conf)
{
	char name[RXE_NAME];
	int rc;

	if (!conf->create || rxe_find(SYSFS, conf->netdev, name) != -ENODEV)
		return 0;
	rc = rxe_may_create(SYSFS, conf->netdev, name);
	report(host, conf->netdev, "would create", name, rc);
	return rc ? rc : -EAGAIN;
}

static void rxe_check(const void *arg, struct gantry_check *check)
{
	const struct vb_conf *conf = arg;

	vb_check(conf, check);
	if (conf->create && !*conf->netdev)
		gantry_option_fault(check, "create",
				    "a device needs a network interface: set netdev");
	if (check->flags & GANTRY_CHECK_MACHINE)
		check->status = try_create(check->host, conf);
}

static int rxe_open(const struct gantry_host *host, const void *conf, void **device_p)
{
	const struct vb_conf *c = conf;
	char name[RXE_NAME];
	int rc = rxe_find(SYSFS, c->netdev, name);

	if (rc == -ENODEV && c->create) {
		rc = rxe_create(c->netdev, name);
		report(host, c->netdev, "created", name, rc);
	} else if (rc == -ENODEV)
		gantry_log_error(
			host,
			"there is no soft-RoCE device%s%s: as root, `modprobe rdma_rxe` and `rdma link add rxe0 "
			"type rxe netdev %s`, or set create = true",
			*c->netdev ? " on " : "", c->netdev, *c->netdev ? c->netdev : "eth0");
	else if (rc == -ENOTUNIQ)
		gantry_log_error(
			host,
			"there are several soft-RoCE devices: set netdev to the interface of one (see `rdma link`)");
	else if (rc)
		gantry_log_error(host, "cannot list soft-RoCE devices: %s", strerror(-rc));
	return rc ? rc : vb_transport_open(host, c, name, device_p);
}

static int is_rxe(const char *name)
{
	return rxe_is_one(SYSFS, name);
}

static int rxe_scan(const struct gantry_host *host, struct gantry_writer *w)
{
	return vb_transport_scan(host, w, is_rxe);
}

static const struct gantry_transport_ops ops = {
	.open = rxe_open, .scan = rxe_scan, VB_TRANSPORT_OPS};

GANTRY_PLUGIN(rxe) = {
	GANTRY_PLUGIN_HEAD,
	.kind = GANTRY_KIND_TRANSPORT,
	.name = "rxe",
	.version = "1",
	.summary =
		"message queues and remote memory over soft-RoCE: RDMA on any Ethernet interface",
	.options = options,
	.conf_size = sizeof(struct vb_conf),
	.ops_size = sizeof(ops),
	.ops = &ops,
	.check = rxe_check,
};
