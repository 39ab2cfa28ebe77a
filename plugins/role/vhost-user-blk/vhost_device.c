/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vhost_device.c - the state of a device: handlers of messages. No IO; struct vhost_device_ops has
 * the actions. Control thread.
 *
 *      SET_FEATURES -> SET_MEM_TABLE -> SET_VRING_NUM, _ADDR, _BASE -> SET_VRING_KICK: started
 *           -> SET_VRING_ENABLE: enabled -> GET_VRING_BASE: stopped, and drained
 *
 * A vring runs while it is started and enabled. Without VHOST_F_PROTOCOL_FEATURES each vring is
 * enabled. SET_STATUS 0 stops all vrings.
 */
#include "vhost_protocol.h"

#include <errno.h>
#include <linux/virtio_config.h>
#include <string.h>
#include <unistd.h>

static int fail(struct vhost_device *device, const char *fault)
{
	device->fault = fault;
	return -EPROTO;
}

static void answer(struct vhost_reply *reply, const struct vhost_message *m, const void *payload,
		   uint32_t bytes)
{
	const uint32_t header[3] = {m->type, VHOST_FLAG_VERSION | VHOST_FLAG_REPLY, bytes};

	memcpy(reply->data, header, sizeof(header));
	memcpy(reply->data + sizeof(header), payload, bytes);
	reply->bytes = VHOST_HEADER_BYTES + bytes;
}

static void answer_u64(struct vhost_reply *reply, const struct vhost_message *m, uint64_t value)
{
	answer(reply, m, &value, sizeof(value));
}

static bool has(uint64_t set, unsigned bit)
{
	return (set >> bit & 1) != 0;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* -- handlers: return as struct vhost_device_ops -- */

typedef int handler(struct vhost_device *device, struct vhost_message *m,
		    struct vhost_reply *reply);

static int get_features(struct vhost_device *device, struct vhost_message *m,
			struct vhost_reply *reply)
{
	answer_u64(reply, m, device->offered);
	return 0;
}

static int set_features(struct vhost_device *device, struct vhost_message *m,
			struct vhost_reply *reply)
{
	(void)reply;
	if (m->payload.u64 & ~device->offered)
		return fail(device, "features that were not offered");
	device->features = m->payload.u64;
	for (uint32_t i = 0; i < device->n_queues; i++)
		if (!has(device->features, VHOST_F_PROTOCOL_FEATURES))
			device->vring[i].enabled = true;
	return 0;
}

static int set_nothing(struct vhost_device *device, struct vhost_message *m,
		       struct vhost_reply *reply)
{
	(void)device;
	(void)m;
	(void)reply;
	return 0;
}

static int set_memory(struct vhost_device *device, struct vhost_message *m,
		      struct vhost_reply *reply)
{
	(void)reply;
	return device->ops->memory(device, m);
}

/* Returns the vring of a message; NULL: there is none, and device->fault is set. */
static struct vhost_vring *vring_of(struct vhost_device *device, uint64_t index)
{
	if (index < device->n_queues)
		return &device->vring[index];
	device->fault = "queue does not exist";
	return NULL;
}

/* The geometry of a vring changes only while it is stopped. Returns as vring_of(). */
static struct vhost_vring *stopped_vring(struct vhost_device *device, uint64_t index)
{
	struct vhost_vring *vring = vring_of(device, index);

	if (!vring || !vring->started)
		return vring;
	device->fault = "the queue is running";
	return NULL;
}

static int set_num(struct vhost_device *device, struct vhost_message *m, struct vhost_reply *reply)
{
	struct vhost_vring *vring = stopped_vring(device, m->payload.state.index);
	const uint32_t num = m->payload.state.num;

	(void)reply;
	if (!vring)
		return -EPROTO;
	if (num == 0 || num > VHOST_RING_MAX ||
	    ((num & (num - 1)) != 0 && !has(device->features, VIRTIO_F_RING_PACKED)))
		return fail(device, "size of the ring is not a power of two up to 1024");
	vring->num = num;
	return 0;
}

static int set_addr(struct vhost_device *device, struct vhost_message *m, struct vhost_reply *reply)
{
	struct vhost_vring *vring = stopped_vring(device, m->payload.addr.index);

	(void)reply;
	if (!vring)
		return -EPROTO;
	if (m->payload.addr.flags != 0)
		return fail(device, "logging of the ring is not supported");
	if (m->payload.addr.desc % 16 != 0 || m->payload.addr.avail % 2 != 0 ||
	    m->payload.addr.used % 4 != 0)
		return fail(device, "ring is not aligned");
	vring->desc = m->payload.addr.desc;
	vring->used = m->payload.addr.used;
	vring->avail = m->payload.addr.avail;
	return 0;
}

static int set_base(struct vhost_device *device, struct vhost_message *m, struct vhost_reply *reply)
{
	struct vhost_vring *vring = stopped_vring(device, m->payload.state.index);

	(void)reply;
	if (!vring)
		return -EPROTO;
	if (m->payload.state.num > UINT16_MAX && !has(device->features, VIRTIO_F_RING_PACKED))
		return fail(device, "base of the ring is larger than 65535");
	vring->base = m->payload.state.num;
	return 0;
}

static void answer_base(struct vhost_device *device, const struct vhost_message *m,
			struct vhost_reply *reply)
{
	const uint32_t index = m->payload.state.index;
	const uint32_t state[2] = {index, device->vring[index].base};

	close_fd(&device->vring[index].kick);
	close_fd(&device->vring[index].call);
	answer(reply, m, state, sizeof(state));
}

static int get_base(struct vhost_device *device, struct vhost_message *m, struct vhost_reply *reply)
{
	struct vhost_vring *vring = vring_of(device, m->payload.state.index);
	int rc;

	if (!vring)
		return -EPROTO;
	vring->started = false;
	rc = device->ops->drain(device, m->payload.state.index);
	if (rc == 0)
		answer_base(device, m, reply);
	return rc;
}

/*
 * Put the descriptor of a message, or none, into *slot. Returns 0, and the former one in *old_p, or
 * -errno.
 */
static int swap_fd(struct vhost_device *device, struct vhost_message *m, int *slot, int *old_p)
{
	if (m->n_fds == 1) {
		const int rc = device->ops->check_eventfd(device, m->fds[0]);

		if (rc != 0)
			return rc;
	}
	*old_p = *slot;
	*slot = -1;
	if (m->n_fds == 1) {
		*slot = m->fds[0];
		m->fds[0] = -1;
	}
	return 0;
}

/* A vring has changed. Returns as the action `vring`. */
static int change(struct vhost_device *device, struct vhost_vring *vring)
{
	const int rc = device->ops->vring(device, (uint32_t)(vring - device->vring));

	if (rc != 0)
		vring->started = false;
	return rc;
}

static int set_kick(struct vhost_device *device, struct vhost_message *m, struct vhost_reply *reply)
{
	struct vhost_vring *vring = stopped_vring(device, m->payload.u64 & 0xff);
	int old, rc;

	(void)reply;
	if (!vring)
		return -EPROTO;
	if (m->n_fds == 0)
		return fail(device, "a queue without a kick descriptor is not supported");
	rc = swap_fd(device, m, &vring->kick, &old);
	if (rc != 0)
		return rc;
	close_fd(&old);
	vring->started = true;
	return change(device, vring);
}

/* SET_VRING_CALL and SET_VRING_ERR, also while the queue runs. */
static int set_fd(struct vhost_device *device, struct vhost_message *m, struct vhost_reply *reply)
{
	struct vhost_vring *vring = vring_of(device, m->payload.u64 & 0xff);
	int old, rc;

	(void)reply;
	if (!vring)
		return -EPROTO;
	rc = swap_fd(device, m, m->type == VHOST_SET_VRING_CALL ? &vring->call : &vring->err, &old);
	if (rc != 0)
		return rc;
	rc = change(device, vring);
	close_fd(&old); /* the lane does not use it any more */
	return rc;
}

static int get_protocol(struct vhost_device *device, struct vhost_message *m,
			struct vhost_reply *reply)
{
	answer_u64(reply, m, device->protocol_offered);
	return 0;
}

static int set_protocol(struct vhost_device *device, struct vhost_message *m,
			struct vhost_reply *reply)
{
	(void)reply;
	if (m->payload.u64 & ~device->protocol_offered)
		return fail(device, "protocol features that were not offered");
	device->protocol = m->payload.u64;
	return 0;
}

static int get_queues(struct vhost_device *device, struct vhost_message *m,
		      struct vhost_reply *reply)
{
	answer_u64(reply, m, device->n_queues);
	return 0;
}

static int set_enable(struct vhost_device *device, struct vhost_message *m,
		      struct vhost_reply *reply)
{
	struct vhost_vring *vring = vring_of(device, m->payload.state.index);

	(void)reply;
	if (!vring)
		return -EPROTO;
	vring->enabled = m->payload.state.num != 0;
	return change(device, vring);
}

static int get_config(struct vhost_device *device, struct vhost_message *m,
		      struct vhost_reply *reply)
{
	device->ops->config(device, m->payload.config.offset, m->payload.config.data,
			    m->payload.config.size);
	answer(reply, m, &m->payload, m->size);
	return 0;
}

static int get_inflight(struct vhost_device *device, struct vhost_message *m,
			struct vhost_reply *reply)
{
	const uint32_t queues = m->payload.inflight.queues, num = m->payload.inflight.num;
	int fd;

	if (queues == 0 || queues > device->n_queues || num == 0 || num > VHOST_RING_MAX)
		return fail(device, "number of queues or size of the ring is wrong");
	fd = device->ops->inflight_get(device, queues, num, &m->payload.inflight.bytes);
	if (fd < 0)
		return fail(device, "no memory for the requests in flight");
	m->payload.inflight.offset = 0;
	answer(reply, m, &m->payload, m->size);
	reply->fd = fd;
	return 0;
}

static int set_inflight(struct vhost_device *device, struct vhost_message *m,
			struct vhost_reply *reply)
{
	(void)reply;
	for (uint32_t i = 0; i < device->n_queues; i++)
		if (device->vring[i].started)
			return fail(device, "a queue is running");
	if (m->payload.inflight.queues > device->n_queues ||
	    m->payload.inflight.num > VHOST_RING_MAX)
		return fail(device, "number of queues or size of the ring is wrong");
	return device->ops->inflight_set(device, m);
}

static int has_slots(struct vhost_device *device)
{
	return has(device->protocol, VHOST_P_MEM_SLOTS)
		       ? 0
		       : fail(device, "protocol feature was not accepted");
}

static int get_slots(struct vhost_device *device, struct vhost_message *m,
		     struct vhost_reply *reply)
{
	answer_u64(reply, m, device->n_slots);
	return has_slots(device);
}

static int add_region(struct vhost_device *device, struct vhost_message *m,
		      struct vhost_reply *reply)
{
	const int rc = has_slots(device);

	(void)reply;
	return rc != 0 ? rc : device->ops->region_add(device, m);
}

static int remove_region(struct vhost_device *device, struct vhost_message *m,
			 struct vhost_reply *reply)
{
	const int rc = has_slots(device);

	(void)reply;
	return rc != 0 ? rc : device->ops->region_remove(device, &m->payload.slot.region);
}

static int set_backend_fd(struct vhost_device *device, struct vhost_message *m,
			  struct vhost_reply *reply)
{
	(void)reply;
	if (!has(device->protocol, VHOST_P_BACKEND_REQ))
		return fail(device, "protocol feature was not accepted");
	close_fd(&device->backend_fd);
	device->backend_fd = m->fds[0];
	m->fds[0] = -1;
	return 0;
}

/* The vrings are stopped and drained: close their descriptors, as GET_VRING_BASE does. */
static void close_vrings(struct vhost_device *device)
{
	for (uint32_t i = 0; i < device->n_queues; i++) {
		close_fd(&device->vring[i].kick);
		close_fd(&device->vring[i].call);
	}
}

/* A driver can set each bit except NEEDS_RESET. The status 0 resets the device. */
static int set_status(struct vhost_device *device, struct vhost_message *m,
		      struct vhost_reply *reply)
{
	const uint64_t status = m->payload.u64;
	int rc;

	(void)reply;
	if (!has(device->protocol, VHOST_P_STATUS))
		return fail(device, "protocol feature was not accepted");
	if (status > UINT8_MAX)
		return fail(device, "status is larger than 255");
	if (status != 0) {
		device->status = (uint8_t)((status & ~(uint64_t)VIRTIO_CONFIG_S_NEEDS_RESET) |
					   (device->status & VIRTIO_CONFIG_S_NEEDS_RESET));
		return 0;
	}
	device->status = 0;
	for (uint32_t i = 0; i < device->n_queues; i++)
		device->vring[i].started = false;
	rc = device->ops->drain_all(device);
	if (rc == 0)
		close_vrings(device);
	return rc;
}

static int get_status(struct vhost_device *device, struct vhost_message *m,
		      struct vhost_reply *reply)
{
	if (!has(device->protocol, VHOST_P_STATUS))
		return fail(device, "protocol feature was not accepted");
	answer_u64(reply, m, device->status);
	return 0;
}

static handler *const handlers[VHOST_REQUEST_COUNT] = {
	[VHOST_GET_FEATURES] = get_features,
	[VHOST_SET_FEATURES] = set_features,
	[VHOST_SET_OWNER] = set_nothing,
	[VHOST_RESET_OWNER] = set_nothing,
	[VHOST_SET_MEM_TABLE] = set_memory,
	[VHOST_SET_VRING_NUM] = set_num,
	[VHOST_SET_VRING_ADDR] = set_addr,
	[VHOST_SET_VRING_BASE] = set_base,
	[VHOST_GET_VRING_BASE] = get_base,
	[VHOST_SET_VRING_KICK] = set_kick,
	[VHOST_SET_VRING_CALL] = set_fd,
	[VHOST_SET_VRING_ERR] = set_fd,
	[VHOST_GET_PROTOCOL_FEATURES] = get_protocol,
	[VHOST_SET_PROTOCOL_FEATURES] = set_protocol,
	[VHOST_GET_QUEUE_NUM] = get_queues,
	[VHOST_SET_VRING_ENABLE] = set_enable,
	[VHOST_SET_BACKEND_REQ_FD] = set_backend_fd,
	[VHOST_GET_CONFIG] = get_config,
	[VHOST_GET_INFLIGHT_FD] = get_inflight,
	[VHOST_SET_INFLIGHT_FD] = set_inflight,
	[VHOST_GET_MAX_MEM_SLOTS] = get_slots,
	[VHOST_ADD_MEM_REG] = add_region,
	[VHOST_REM_MEM_REG] = remove_region,
	[VHOST_SET_STATUS] = set_status,
	[VHOST_GET_STATUS] = get_status,
	[VHOST_SET_CONFIG] = set_nothing, /* no field of the configuration space can be written */
};

void vhost_device_init(struct vhost_device *device)
{
	device->features = device->protocol = 0;
	device->status = 0;
	device->backend_fd = -1;
	device->fault = "";
	for (uint32_t i = 0; i < VHOST_QUEUES_MAX; i++)
		device->vring[i] = (struct vhost_vring){.kick = -1, .call = -1, .err = -1};
}

void vhost_device_fini(struct vhost_device *device)
{
	close_fd(&device->backend_fd);
	for (uint32_t i = 0; i < VHOST_QUEUES_MAX; i++) {
		close_fd(&device->vring[i].kick);
		close_fd(&device->vring[i].call);
		close_fd(&device->vring[i].err);
	}
}

void vhost_device_config_change(void *header)
{
	const uint32_t fields[3] = {VHOST_BACKEND_CONFIG_CHANGE, VHOST_FLAG_VERSION, 0};

	memcpy(header, fields, sizeof(fields));
}

bool vhost_device_needs_reset(struct vhost_device *device)
{
	const uint8_t before = device->status;

	if (!has(device->protocol, VHOST_P_STATUS) || !has(device->features, VIRTIO_F_VERSION_1))
		return false;
	device->status |= VIRTIO_CONFIG_S_NEEDS_RESET;
	return before != device->status && (before & VIRTIO_CONFIG_S_DRIVER_OK) != 0;
}

/*
 * Add the answer of REPLY_ACK to a message without an answer of its own. An action that fails is
 * reported to a front end that asks for it, and otherwise ends the connection.
 */
static int finish(const struct vhost_device *device, const struct vhost_message *m, int rc,
		  struct vhost_reply *reply)
{
	const bool wants = (m->flags & VHOST_FLAG_NEED_REPLY) != 0 &&
			   has(device->protocol, VHOST_P_REPLY_ACK);

	if (rc == -EPROTO || reply->bytes != 0 || !wants)
		return rc;
	answer_u64(reply, m, rc != 0);
	reply->failure = rc != 0 ? device->fault : NULL;
	return 0;
}

int vhost_device_handle(struct vhost_device *device, struct vhost_message *m,
			struct vhost_reply *reply)
{
	int rc;

	reply->bytes = 0;
	reply->fd = -1;
	reply->failure = NULL;
	device->fault = "";
	rc = handlers[m->type](device, m, reply);
	if (rc != -EINPROGRESS)
		return finish(device, m, rc, reply);
	device->pending = *m;
	device->pending.n_fds = 0;
	return rc;
}

int vhost_device_continue(struct vhost_device *device, int rc, struct vhost_reply *reply)
{
	const struct vhost_message *m = &device->pending;

	reply->bytes = 0;
	reply->fd = -1;
	reply->failure = NULL;
	if (rc == 0 && m->type == VHOST_GET_VRING_BASE)
		answer_base(device, m, reply);
	if (rc == 0 && m->type == VHOST_SET_STATUS) {
		device->status = 0; /* a ring can have broken while it drained */
		close_vrings(device);
	}
	return finish(device, m, rc, reply);
}
