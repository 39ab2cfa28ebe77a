/* SPDX-License-Identifier: BSD-3-Clause */
/* device.c - devices, their attributes, contexts and asynchronous events */
#include <endian.h>
#include <stdio.h>

#include "priv.h"

static struct fv_device devices[FAKE_DEVICES];
static unsigned n_devices;
static int set_up;

static void set_defaults(unsigned index)
{
	struct fv_device *device = &devices[index];
	struct fake_device *conf = &device->conf;

	memset(device, 0, sizeof(*device));
	snprintf(conf->name, sizeof(conf->name), "fake%u", index);
	strcpy(conf->attr.fw_ver, "1.0");
	conf->attr.node_guid = htobe64(0xfa4e000000000000ull + index);
	conf->attr.sys_image_guid = conf->attr.node_guid;
	conf->attr.max_mr_size = 1ull << 40;
	conf->attr.page_size_cap = 0xfffff000;
	conf->attr.max_qp = 1024;
	conf->attr.max_qp_wr = 4096;
	conf->attr.max_sge = conf->attr.max_sge_rd = 32;
	conf->attr.max_cq = 1024;
	conf->attr.max_cqe = 32767;
	conf->attr.max_mr = 8192;
	conf->attr.max_pd = 1024;
	conf->attr.max_qp_rd_atom = conf->attr.max_qp_init_rd_atom = 128;
	conf->attr.max_res_rd_atom = 4096;
	conf->attr.atomic_cap = IBV_ATOMIC_NONE;
	conf->attr.max_pkeys = 1;
	conf->attr.local_ca_ack_delay = 15;
	conf->attr.phys_port_cnt = 1;
	conf->max_inline = 256;
	conf->port = (struct ibv_port_attr){.state = IBV_PORT_ACTIVE,
					    .max_mtu = IBV_MTU_4096,
					    .active_mtu = IBV_MTU_1024,
					    .gid_tbl_len = FAKE_GIDS,
					    .max_msg_sz = 1u << 31,
					    .pkey_tbl_len = 1,
					    .active_width = 1,
					    .active_speed = 1,
					    .phys_state = 5,
					    .link_layer = IBV_LINK_LAYER_ETHERNET};
	conf->n_gids = 1;
	conf->gids[0] = (struct ibv_gid_entry){
		.port_num = 1, .gid_type = IBV_GID_TYPE_ROCE_V2, .ndev_ifindex = index + 1};
	memcpy(conf->gids[0].gid.raw, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\x63\0", 15);
	conf->gids[0].gid.raw[15] = (uint8_t)(index + 1);
}

static void default_devices(void)
{
	if (set_up)
		return;
	for (unsigned i = 0; i < FAKE_DEVICES; i++)
		set_defaults(i);
	n_devices = 2;
	set_up = 1;
}

struct fv_device *fv_device(unsigned index)
{
	default_devices();
	return &devices[index % FAKE_DEVICES];
}

unsigned fv_n_devices(void)
{
	default_devices();
	return n_devices;
}

struct fake_device *fake_device(unsigned index)
{
	struct fv_device *device;

	fv_lock();
	device = fv_device(index);
	fv_leave(0);
	return &device->conf;
}

void fake_devices(unsigned n)
{
	fv_lock();
	default_devices();
	n_devices = n < FAKE_DEVICES ? n : FAKE_DEVICES;
	fv_leave(0);
}

struct fv_context *fv_context(struct ibv_context *context)
{
	return FV_OF(context, struct fv_context, vctx.context);
}

struct fv_device *fv_device_of(const struct ibv_context *context)
{
	return FV_OF(context->device, struct fv_device, dev);
}

/* -- the list of devices -- */

struct ibv_device **ibv_get_device_list(int *num_devices)
{
	int err = FV_ENTER(ibv_get_device_list);
	struct {
		struct fv_obj obj;
		struct ibv_device *list[FAKE_DEVICES + 1];
	} *list = NULL;

	if (num_devices)
		*num_devices = 0;
	if (err)
		return fv_leave_ptr(NULL, err);
	default_devices();
	list = fv_alloc(sizeof(*list));
	for (unsigned i = 0; i < n_devices; i++) {
		struct ibv_device *dev = &devices[i].dev;

		dev->node_type = IBV_NODE_CA;
		dev->transport_type = IBV_TRANSPORT_IB;
		memcpy(dev->name, devices[i].conf.name, sizeof(dev->name));
		snprintf(dev->dev_name, sizeof(dev->dev_name), "uverbs%u", i);
		snprintf(dev->ibdev_path, sizeof(dev->ibdev_path), "/nowhere/%u", i);
		list->list[i] = dev;
	}
	if (num_devices)
		*num_devices = (int)n_devices;
	fv_add(FV_DEVICE_LIST, &list->obj, list->list);
	return fv_leave_ptr(list->list, 0);
}

void ibv_free_device_list(struct ibv_device **list)
{
	fv_lock();
	if (list && fv_check(FV_DEVICE_LIST, list, "ibv_free_device_list") == 0) {
		struct fv_obj *obj = (struct fv_obj *)(void *)list - 1;

		fv_remove(obj);
		free(obj);
	}
	fv_leave(0);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

int ibv_get_device_index(struct ibv_device *device)
{
	return (int)(FV_OF(device, struct fv_device, dev) - devices);
}

__be64 ibv_get_device_guid(struct ibv_device *device)
{
	return FV_OF(device, struct fv_device, dev)->conf.attr.node_guid;
}

/* -- contexts -- */

static int query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr,
		      size_t size)
{
	int err = FV_ENTER(ibv_query_port);
	struct fv_device *device = fv_device_of(context);

	if (!err && (port_num == 0 || port_num > device->conf.attr.phys_port_cnt))
		err = EINVAL;
	if (!err) {
		memset(attr, 0, size);
		memcpy(attr, &device->conf.port, size < sizeof(*attr) ? size : sizeof(*attr));
	}
	return fv_leave(err);
}

int ibv_query_port(struct ibv_context *context, uint8_t port_num,
		   struct _compat_ibv_port_attr *port_attr)
{
	return query_port(context, port_num, (struct ibv_port_attr *)(void *)port_attr,
			  offsetof(struct ibv_port_attr, port_cap_flags2));
}

static int query_device_ex(struct ibv_context *context,
			   const struct ibv_query_device_ex_input *input,
			   struct ibv_device_attr_ex *attr, size_t size)
{
	int err = FV_ENTER(ibv_query_device_ex);
	struct fv_device *device = fv_device_of(context);
	struct ibv_device_attr_ex full = {.orig_attr = device->conf.attr,
					  .odp_caps = device->conf.odp_caps,
					  .device_cap_flags_ex = device->conf.attr.device_cap_flags,
					  .phys_port_cnt_ex = device->conf.attr.phys_port_cnt};

	if (!err && input && input->comp_mask)
		err = EINVAL;
	if (!err) {
		memset(attr, 0, size);
		memcpy(attr, &full, size < sizeof(full) ? size : sizeof(full));
	}
	return fv_leave(err);
}

struct ibv_context *fv_context_open(struct fv_device *device, int hidden)
{
	struct fv_context *context = fv_alloc(sizeof(*context));
	struct ibv_context *base = &context->vctx.context;

	if (fv_bell_open(&context->bell) != 0) {
		free(context);
		return NULL;
	}
	device->dev.transport_type = IBV_TRANSPORT_IB;
	device->dev.node_type = IBV_NODE_CA;
	memcpy(device->dev.name, device->conf.name, sizeof(device->dev.name));
	context->device = device;
	context->last = &context->events;
	context->vctx.sz = sizeof(context->vctx);
	context->vctx.query_port = query_port;
	context->vctx.query_device_ex = query_device_ex;
	base->abi_compat = __VERBS_ABI_IS_EXTENDED;
	base->device = &device->dev;
	base->cmd_fd = -1;
	base->async_fd = context->bell.fd;
	base->num_comp_vectors = 1;
	pthread_mutex_init(&base->mutex, NULL);
	base->ops.poll_cq = fv_poll_cq;
	base->ops.req_notify_cq = fv_req_notify_cq;
	base->ops.post_send = fv_post_send;
	base->ops.post_recv = fv_post_recv;
	context->obj.hidden = hidden;
	fv_add(FV_CONTEXT, &context->obj, base);
	return base;
}

void fv_context_free(struct fv_context *context)
{
	struct fv_async *event;

	while ((event = context->events)) {
		context->events = event->next;
		free(event);
	}
	fv_bell_close(&context->bell);
	pthread_mutex_destroy(&context->vctx.context.mutex);
	fv_remove(&context->obj);
	free(context);
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	int err = FV_ENTER(ibv_open_device);
	struct ibv_context *context = NULL;

	if (!err && !(context = fv_context_open(FV_OF(device, struct fv_device, dev), 0)))
		err = EMFILE;
	return fv_leave_ptr(context, err);
}

int ibv_close_device(struct ibv_context *base)
{
	int err = FV_ENTER(ibv_close_device);

	if (!err)
		err = fv_check(FV_CONTEXT, base, "ibv_close_device");
	if (!err) {
		struct fv_context *context = fv_context(base);

		if (context->obj.hidden)
			fv_misuse("ibv_close_device(): the context is the connection manager's");
		else if (context->obj.users)
			fv_misuse("ibv_close_device(): %u objects of the context exist",
				  context->obj.users);
		else
			fv_context_free(context);
	}
	return fv_leave_errno(err);
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	int err = FV_ENTER(ibv_query_device);

	if (!err)
		*attr = fv_device_of(context)->conf.attr;
	return fv_leave(err);
}

/* -- GIDs and partition keys -- */

static const struct ibv_gid_entry *find_gid(struct ibv_context *context, uint32_t port_num,
					    uint32_t index)
{
	const struct fake_device *conf = &fv_device_of(context)->conf;

	for (unsigned i = 0; i < conf->n_gids; i++)
		if (conf->gids[i].port_num == port_num && conf->gids[i].gid_index == index)
			return &conf->gids[i];
	return NULL;
}

/* Returns zeros for an empty entry of the table. */
int ibv_query_gid(struct ibv_context *context, uint8_t port_num, int index, union ibv_gid *gid)
{
	int err = FV_ENTER(ibv_query_gid);
	const struct ibv_gid_entry *entry = find_gid(context, port_num, (uint32_t)index);

	if (!err &&
	    (port_num != 1 || index < 0 || index >= fv_device_of(context)->conf.port.gid_tbl_len))
		err = EINVAL;
	if (!err)
		memset(gid, 0, sizeof(*gid));
	if (!err && entry)
		*gid = entry->gid;
	return fv_leave_errno(err);
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t gid_index,
		      struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
	int err = FV_ENTER(ibv_query_gid_ex);
	const struct ibv_gid_entry *found = find_gid(context, port_num, gid_index);

	if (!err && (flags || entry_size != sizeof(*entry)))
		err = EINVAL;
	if (!err && !found)
		err = ENODATA;
	if (!err)
		*entry = *found;
	return fv_leave(err);
}

ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
			     size_t max_entries, uint32_t flags, size_t entry_size)
{
	int err = FV_ENTER(ibv_query_gid_table);
	const struct fake_device *conf = &fv_device_of(context)->conf;

	if (!err && (flags || entry_size != sizeof(*entries) || max_entries < conf->n_gids))
		err = EINVAL;
	if (!err)
		memcpy(entries, conf->gids, conf->n_gids * sizeof(*entries));
	fv_leave(0);
	return err ? -err : (ssize_t)conf->n_gids;
}

int ibv_query_pkey(struct ibv_context *context, uint8_t port_num, int index, __be16 *pkey)
{
	int err = FV_ENTER(ibv_query_pkey);

	(void)context;
	if (!err && (port_num != 1 || index != 0))
		err = EINVAL;
	if (!err)
		*pkey = htobe16(0xffff);
	return fv_leave_errno(err);
}

/* -- asynchronous events -- */

void fv_async(struct ibv_context *base, enum ibv_event_type type, void *element, struct fv_obj *obj)
{
	struct fv_context *context = fv_context(base);
	struct fv_async *event = fv_alloc(sizeof(*event));

	event->event.event_type = type;
	if (obj)
		event->event.element.qp = element;
	else
		event->event.element.port_num = (int)(intptr_t)element;
	event->obj = obj;
	*context->last = event;
	context->last = &event->next;
	fv_bell_ring(&context->bell);
}

void fv_async_forget(struct ibv_context *base, struct fv_obj *obj)
{
	struct fv_context *context = fv_context(base);
	struct fv_async **link = &context->events, *event;

	while ((event = *link)) {
		if (event->obj == obj) {
			*link = event->next;
			free(event);
		} else {
			link = &event->next;
		}
	}
	context->last = link;
	if (!context->events)
		fv_bell_quiet(&context->bell);
}

static struct fv_obj *affiliated(enum ibv_event_type type, void *element, const char *function)
{
	switch (type) {
	case IBV_EVENT_CQ_ERR:
		return fv_check(FV_CQ, element, function) ? NULL : &((struct fv_cq *)element)->obj;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return fv_check(FV_QP, element, function) ? NULL : &((struct fv_qp *)element)->obj;
	default:
		return NULL;
	}
}

void fake_async_push(unsigned index, enum ibv_event_type type, void *element)
{
	struct fv_device *device;
	struct fv_obj *obj;

	fv_lock();
	device = fv_device(index);
	obj = affiliated(type, element, "fake_async_push");
	if (obj) {
		/* the context is the first member of a queue pair or CQ */
		fv_async(*(struct ibv_context **)element, type, element, obj);
	} else {
		for (struct fv_obj *each = fv_first(FV_CONTEXT); each; each = each->next)
			if (fv_device_of(each->self) == device)
				fv_async(each->self, type, element, NULL);
	}
	fv_leave(0);
}

int ibv_get_async_event(struct ibv_context *base, struct ibv_async_event *out)
{
	int err = FV_ENTER(ibv_get_async_event);
	struct fv_context *context = fv_context(base);
	struct fv_async *event;

	while (!err && !context->events) {
		fv_leave(0);
		err = fv_bell_wait(base->async_fd);
		fv_lock();
	}
	if (err)
		return fv_leave_errno(err);
	event = context->events;
	context->events = event->next;
	if (!context->events) {
		context->last = &context->events;
		fv_bell_quiet(&context->bell);
	}
	*out = event->event;
	if (event->obj)
		event->obj->unacked++;
	fv_counters.async_events++;
	free(event);
	return fv_leave_errno(0);
}

/* The program need not acknowledge an event of the device, but can. */
void ibv_ack_async_event(struct ibv_async_event *event)
{
	struct fv_obj *obj;

	FV_ENTER(ibv_ack_async_event);
	fv_counters.async_acks++;
	obj = affiliated(event->event_type, event->element.qp, "ibv_ack_async_event");
	if (obj && obj->unacked == 0)
		fv_misuse("ibv_ack_async_event(): more acknowledged than got");
	else if (obj)
		obj->unacked--;
	fv_leave(0);
}

void fv_device_reset(void)
{
	struct fv_obj *obj;

	while ((obj = fv_first(FV_DEVICE_LIST))) {
		fv_remove(obj);
		free(obj);
	}
	while ((obj = fv_first(FV_CONTEXT)))
		fv_context_free(FV_OF(obj, struct fv_context, obj));
	set_up = 0;
	default_devices();
}
