/* SPDX-License-Identifier: BSD-3-Clause */
/* vb_device.c - RDMA devices: list, limits and asynchronous events. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "vb_rdma.h"

#define PORT 1  /* the port to use on devices with several ports */
#define GIDS 16 /* gids that a scan reports, at most */
#define MAKE_ONE \
	"for soft-RoCE on an Ethernet interface: modprobe rdma_rxe; rdma link add rxe0 type rxe netdev eth0"

int vb_fd_unblock(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) || fcntl(fd, F_SETFD, FD_CLOEXEC)
		       ? -errno
		       : 0;
}

int vb_device_limits(struct ibv_context *context, struct vb_limits *limits)
{
	struct ibv_device_attr_ex ex;
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	uint32_t odp = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE |
		       IBV_ODP_SUPPORT_READ;
	int rc = ibv_query_device(context, &attr);

	if (!rc)
		rc = ibv_query_port(context, PORT, &port);
	if (rc)
		return rc > 0 ? -rc : rc;
	*limits = (struct vb_limits){
		.max_qp = (uint32_t)attr.max_qp,
		.max_qp_wr = (uint32_t)attr.max_qp_wr,
		.max_cqe = (uint32_t)attr.max_cqe,
		.max_mr = (uint32_t)attr.max_mr,
		.max_rd_atomic = (uint32_t)attr.max_qp_rd_atom,
		.max_init_rd_atomic = (uint32_t)attr.max_qp_init_rd_atom,
		.max_mr_bytes = attr.max_mr_size,
		.mtu = 128u << port.active_mtu,
		.port_up = port.state == IBV_PORT_ACTIVE,
	};
	if (ibv_query_device_ex(context, NULL, &ex) == 0)
		limits->odp = (ex.odp_caps.general_caps & IBV_ODP_SUPPORT) &&
			      (ex.odp_caps.per_transport_caps.rc_odp_caps & odp) == odp;
	return 0;
}

/* -- why there is no device -- */

/* Count the files that match a pattern, and those of them that can be read and written. */
static int count(const char *root, const char *pattern, int *usable_p)
{
	char path[PATH_MAX];
	glob_t found;
	int n = 0;

	*usable_p = 0;
	if (snprintf(path, sizeof(path), "%s%s", root, pattern) >= (int)sizeof(path) ||
	    glob(path, GLOB_NOSORT, NULL, &found))
		return 0;
	for (; n < (int)found.gl_pathc; n++)
		*usable_p += faccessat(AT_FDCWD, found.gl_pathv[n], R_OK | W_OK, AT_EACCESS) == 0;
	globfree(&found);
	return n;
}

int vb_device_why_none(const char *root)
{
	int usable, usable_cm;

	if (count(root, "/sys/class/infiniband/*", &usable) == 0)
		return -ENODEV;
	if (count(root, "/dev/infiniband/uverbs*", &usable) == 0 ||
	    count(root, "/dev/infiniband/rdma_cm", &usable_cm) == 0)
		return -ENOENT;
	return usable && usable_cm ? -EOPNOTSUPP : -EACCES;
}

/*
 * Returns the devices of librdmacm; NULL: none, *rc_p is the cause. librdmacm does not report what
 * is missing, so vb_device_why_none() finds it out.
 */
static struct ibv_context **devices(int *rc_p)
{
	struct ibv_context **list;

	errno = 0;
	list = rdma_get_devices(NULL);
	if (list && *list)
		return list;
	*rc_p = !list && (errno == ENOMEM || errno == EMFILE || errno == ENFILE)
			? -errno
			: vb_device_why_none("");
	if (list)
		rdma_free_devices(list);
	return NULL;
}

/* -- open -- */

static struct ibv_context *choose(struct ibv_context *const *list, const char *name, int *rc_p)
{
	struct ibv_context *found = NULL;
	int n = 0;

	for (; *list; list++)
		if (!*name || !strcmp(name, ibv_get_device_name((*list)->device))) {
			found = *list;
			n++;
		}
	*rc_p = n == 0 ? -ENODEV : n > 1 ? -ENOTUNIQ : 0;
	return found;
}

int vb_device_open(struct vb_device *dev, const char *name)
{
	int rc;

	*dev = (struct vb_device){.list = NULL};
	dev->list = devices(&rc);
	if (!dev->list)
		return rc;
	dev->context = choose(dev->list, name, &rc);
	if (rc == 0)
		rc = vb_device_limits(dev->context, &dev->limits);
	if (rc == 0)
		rc = vb_fd_unblock(dev->context->async_fd);
	if (rc != 0)
		vb_device_close(dev);
	return rc;
}

void vb_device_close(struct vb_device *dev)
{
	if (dev->list)
		rdma_free_devices(dev->list);
	*dev = (struct vb_device){.list = NULL};
}

/* Returns the object that the event applies to; NULL: none, or the whole device. */
static struct vb_async_event *async_of(const struct ibv_async_event *event)
{
	switch (event->event_type) {
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
		return event->element.qp->qp_context;
	case IBV_EVENT_CQ_ERR:
		return event->element.cq->cq_context;
	default:
		return NULL;
	}
}

int vb_device_next_event(struct vb_device *dev, enum ibv_event_type *type_p)
{
	struct ibv_async_event event;
	struct vb_async_event *async;

	if (ibv_get_async_event(dev->context, &event))
		return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? 0 : -errno;
	*type_p = event.event_type;
	async = async_of(&event);
	if (async)
		__atomic_store_n(&async->event, (int)event.event_type + 1, __ATOMIC_RELEASE);
	ibv_ack_async_event(&event);
	return 1;
}

/* -- scan -- */

static const char *port_state(enum ibv_port_state state)
{
	switch (state) {
	case IBV_PORT_ACTIVE:
		return "active";
	case IBV_PORT_ARMED:
	case IBV_PORT_INIT:
		return "starting";
	case IBV_PORT_DOWN:
		return "down";
	default:
		return "unknown";
	}
}

static void write_gids(struct ibv_context *context, int n, struct gantry_writer *w)
{
	static const union ibv_gid none;

	w->array(w, "gids");
	for (int i = 0; i < n && i < GIDS; i++) {
		char text[INET6_ADDRSTRLEN];
		union ibv_gid gid;

		if (ibv_query_gid(context, PORT, i, &gid) || !memcmp(&gid, &none, sizeof(gid)))
			continue;
		w->string(w, NULL, inet_ntop(AF_INET6, gid.raw, text, sizeof(text)));
	}
	w->end(w);
}

static void write_device(struct ibv_context *context, struct gantry_writer *w)
{
	struct ibv_port_attr port;
	struct vb_limits limits;

	w->object(w, NULL);
	w->string(w, "name", ibv_get_device_name(context->device));
	if (vb_device_limits(context, &limits) || ibv_query_port(context, PORT, &port)) {
		w->string(w, "state", "does not answer");
		w->end(w);
		return;
	}
	w->string(w, "state", port_state(port.state));
	w->u64(w, "mtu_bytes", limits.mtu);
	w->u64(w, "max_queue_pairs", limits.max_qp);
	w->u64(w, "max_requests", limits.max_qp_wr);
	w->u64(w, "max_completions", limits.max_cqe);
	w->u64(w, "max_regions", limits.max_mr);
	w->u64(w, "max_region_bytes", limits.max_mr_bytes);
	w->u64(w, "max_reads_under_way", limits.max_rd_atomic);
	w->boolean(w, "on_demand_paging", limits.odp);
	write_gids(context, port.gid_tbl_len, w);
	w->end(w);
}

int vb_device_scan(struct gantry_writer *w, int (*wanted)(const char *name))
{
	struct ibv_context **list;
	int n = 0, rc;

	list = devices(&rc);
	if (!list)
		return rc == -ENODEV ? 0 : rc;
	for (int i = 0; list[i]; i++)
		if (!wanted || wanted(ibv_get_device_name(list[i]->device))) {
			write_device(list[i], w);
			n++;
		}
	rdma_free_devices(list);
	return n;
}

const char *vb_device_advice(int rc)
{
	static const struct {
		int rc;
		const char *text;
	} rows[] = {
		{0, "there is no RDMA device; " MAKE_ONE},
		{-ENODEV, "no such RDMA device; " MAKE_ONE},
		{-ENOENT,
		 "/dev/infiniband/uverbs* or rdma_cm is missing: modprobe ib_uverbs rdma_ucm; "
		 "a container needs access to /dev/infiniband"},
		{-EACCES,
		 "no access to /dev/infiniband/uverbs* or rdma_cm: join the group that owns them, or see the udev rules "
		 "of rdma-core"},
		{-EOPNOTSUPP,
		 "no driver for the RDMA device: install those of rdma-core (ibverbs-providers)"},
		{-ENOTUNIQ, "there are several RDMA devices: name one with ibdev"},
		{-ENOMEM,
		 "allow this process more memory, and more locked memory: RLIMIT_MEMLOCK (ulimit -l, LimitMEMLOCK=)"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].rc == rc)
			return rows[i].text;
	return strerror(-rc);
}
