/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vhost_role.c - plugin interface of vhost-user-blk, the role that serves a volume to a virtual
 * machine as a virtio disk. Control thread.
 *
 *      open session -> started: listen -> front ends come and go -> stop: hang up -> close session
 */
#define GANTRY_API_VERSION 1

#include <errno.h>
#include <linux/virtio_blk.h>
#include <linux/virtio_config.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include <endian.h>

#include <gantry/uuid.h>

#include "vhost.h"

/* wait for `closed` after a request was lost; then only this request was */
#define LOSS_NS 1000000000ull

#define AT(field) offsetof(struct vhost_conf, field)

static const char *const memory_modes[] = {"export", "copy", NULL};

static const struct gantry_option options[] = {
	{"socket", GANTRY_OPT_STRING, AT(socket), NULL, GANTRY_PATH_REPLACE, 0, NULL, NULL,
	 "Path of the Unix socket on which the virtual machine connects."},
	{"depth", GANTRY_OPT_INT, AT(depth), "128", 1, 4096, NULL, NULL,
	 "IOs in flight on each lane. Each has a buffer of 64 KiB."},
	{"read_only", GANTRY_OPT_BOOL, AT(read_only), "false", 0, 0, NULL, NULL,
	 "Offer the disk as read-only, also if the volume can be written."},
	{"serial", GANTRY_OPT_STRING, AT(serial), "", 0, 0, NULL, NULL,
	 "Serial number of the disk, up to 20 characters. Empty: digits of the UUID of the volume."},
	{"memory", GANTRY_OPT_CHOICE, AT(memory), "export", 0, 0, memory_modes, NULL,
	 "What the role does with the memory of the guest: export it, or copy all data."},
	{"drain_timeout", GANTRY_OPT_TIME, AT(drain_timeout_ns), "5s", 0, 3600000000000, NULL, NULL,
	 "Longest wait for requests in flight before a change of queue or memory; 0: no limit."},
	{"memory_slots", GANTRY_OPT_INT, AT(memory_slots), "8", 8, VHOST_SLOTS_MAX, NULL, NULL,
	 "Regions of guest memory at a time. The session needs one more: see max_regions of each server."},
	GANTRY_OPTION_END,
};

/* -- the configuration space -- */

void vhost_role_config(struct vhost_device *device, uint32_t offset, void *to, uint32_t bytes)
{
	const struct vhost_role *role =
		(struct vhost_role *)((char *)device - offsetof(struct vhost_role, device));
	const uint32_t most = htole32(vhost_segment_max(&role->volume) / 512);
	uint8_t space[VHOST_CONFIG_MAX] = {0};
	struct virtio_blk_config config = {.capacity = htole64(role->volume.size / 512),
					   .seg_max = htole32(VHOST_SEG_MAX),
					   .blk_size = htole32(role->volume.block_size),
					   .num_queues = htole16((uint16_t)role->n_queues)};

	_Static_assert(sizeof(config) <= sizeof(space), "the space has all fields");
	if (device->offered & 1ull << VIRTIO_BLK_F_DISCARD) {
		config.max_discard_sectors = most;
		config.max_discard_seg = htole32(1);
		config.discard_sector_alignment = htole32(role->volume.block_size / 512);
	}
	if (device->offered & 1ull << VIRTIO_BLK_F_WRITE_ZEROES) {
		config.max_write_zeroes_sectors = most;
		config.max_write_zeroes_seg = htole32(1);
		config.write_zeroes_may_unmap = 1; /* the backend decides */
	}
	memcpy(space, &config, sizeof(config));
	memcpy(to, space + offset, bytes);
}

static void offer(struct vhost_role *role)
{
	struct vhost_device *device = &role->device;
	const uint32_t ops = role->volume.ops;

	device->offered = 1ull << VIRTIO_F_VERSION_1 | 1ull << VHOST_F_PROTOCOL_FEATURES |
			  1ull << VIRTIO_F_RING_PACKED | 1ull << VIRTIO_RING_F_INDIRECT_DESC |
			  1ull << VIRTIO_RING_F_EVENT_IDX | 1ull << VIRTIO_BLK_F_SEG_MAX |
			  1ull << VIRTIO_BLK_F_BLK_SIZE;
	if (ops & 1u << GANTRY_OP_FLUSH)
		device->offered |= 1ull << VIRTIO_BLK_F_FLUSH;
	if (vhost_is_read_only(role))
		device->offered |= 1ull << VIRTIO_BLK_F_RO;
	else
		device->offered |= (uint64_t)gantry_op_in(GANTRY_OP_DISCARD, ops)
					   << VIRTIO_BLK_F_DISCARD |
				   (uint64_t)gantry_op_in(GANTRY_OP_WRITE_ZEROES, ops)
					   << VIRTIO_BLK_F_WRITE_ZEROES;
	if (role->n_queues > 1)
		device->offered |= 1ull << VIRTIO_BLK_F_MQ;
	device->protocol_offered = 1ull << VHOST_P_MQ | 1ull << VHOST_P_REPLY_ACK |
				   1ull << VHOST_P_BACKEND_REQ | 1ull << VHOST_P_CONFIG |
				   1ull << VHOST_P_INFLIGHT | 1ull << VHOST_P_MEM_SLOTS |
				   1ull << VHOST_P_STATUS;
}

/* Without the option the serial number is the start of the UUID in hexadecimal digits. */
static void set_serial(struct vhost_role *role)
{
	const uint8_t *uuid = role->volume.uuid;

	snprintf(role->serial, sizeof(role->serial), "%s", role->conf->serial);
	if (*role->serial != '\0' || !gantry_uuid_is_known(uuid))
		return;
	for (unsigned i = 0; i < VHOST_SERIAL_BYTES / 2; i++)
		snprintf(role->serial + i * 2, 3, "%02x", uuid[i]);
}

/* -- the session -- */

static int ready(void *arg, const struct gantry_volume_info *info)
{
	struct vhost_role *role = arg;
	const uint32_t data = GANTRY_OPS_DATA;

	role->volume = *info;
	if ((info->ops & 1u << GANTRY_OP_READ) == 0 ||
	    ((info->ops & data) != data && !role->conf->read_only &&
	     (info->flags & GANTRY_VOLUME_READ_ONLY) == 0)) {
		gantry_log_error(role->host,
				 "the volume cannot be a disk (operations=0x%x): it does not "
				 "support reads and writes",
				 info->ops);
		return -EOPNOTSUPP;
	}
	set_serial(role);
	offer(role);
	return role->rh->engine->memory(role->engine, VHOST_SLOT_BYTES, 0, 0);
}

void vhost_role_check_end(struct vhost_role *role)
{
	if (role->phase != VHOST_IDLE || role->is_finished)
		return;
	if (!role->is_closed) {
		role->rh->engine->close(role->engine);
		return;
	}
	role->is_finished = true;
	role->rh->after_cancel(role->rh, &role->bound);
	role->rh->engine->free(role->engine);
	role->engine = NULL;
	role->rh->finished(role->rh, role->has_failed);
}

static void stop(struct vhost_role *role)
{
	role->is_stopping = true;
	if (role->phase == VHOST_CONNECTED) {
		vhost_socket_hang_up(role);
		return;
	}
	if (role->phase == VHOST_IDLE)
		vhost_socket_close(role);
	vhost_role_check_end(role);
}

static void end_after_loss(void *arg)
{
	struct vhost_role *role = arg;

	if (role->is_stopping)
		return;
	gantry_log_error(role->host,
			 "request lost, although the session runs: a stage or a peer reported the "
			 "end of the session: the role ends, because the guest gets no answer");
	role->has_failed = true;
	stop(role);
}

void vhost_role_request_lost(void *arg)
{
	struct vhost_role *role = arg;

	/* usually the session has ended, and `closed` follows */
	if (!role->is_stopping && role->rh->after(role->rh, LOSS_NS, end_after_loss, role) != 0)
		end_after_loss(role);
}

void vhost_role_ring_broken(void *arg)
{
	struct vhost_role *role = arg;

	/* the lane has logged the fault; without a channel the front end can ask for the status */
	if (role->phase == VHOST_CONNECTED && vhost_device_needs_reset(&role->device))
		vhost_socket_config_changed(role);
}

static void started(void *arg)
{
	struct vhost_role *role = arg;

	if (role->is_stopping)
		return;
	role->is_started = true;
	for (uint32_t i = 0; i < role->n_queues; i++) {
		role->queues[i].engine = role->rh->engine->queue(role->engine, i);
		role->queues[i].engine->user = &role->queues[i];
	}
	if (vhost_socket_open(role) != 0) {
		role->has_failed = true;
		stop(role);
	}
}

/* The guest may use the new size as soon as the front end reads the configuration space again. */
static void resized(void *arg, uint64_t size)
{
	struct vhost_role *role = arg;
	const char *fault;

	__atomic_store_n(&role->volume.size, size, __ATOMIC_RELAXED); /* lanes load it */
	fault = vhost_socket_config_changed(role);
	if (fault)
		gantry_log_warn(role->host,
				"new size of the volume cannot be reported to the front end: %s: "
				"restart the virtual machine to use it (bytes=%llu)",
				fault, (unsigned long long)size);
}

static void verifier_changed(void *arg, uint64_t verifier)
{
	struct vhost_role *role = arg;

	__atomic_store_n(&role->volume.verifier, verifier, __ATOMIC_RELAXED); /* lanes load it */
}

static void closed(void *arg, int reason, const char *text)
{
	struct vhost_role *role = arg;

	(void)text; /* the host has already logged the text */
	/* roles of one process stop at the same time */
	if (reason != 0 && !role->is_stopping)
		role->has_failed = true;
	role->is_closed = true;
	vhost_regions_session_ended(role);
	stop(role);
}

static const struct gantry_engine_events events = {.ready = ready,
						   .started = started,
						   .verifier_changed = verifier_changed,
						   .resized = resized,
						   .closed = closed,
						   .exported = vhost_regions_exported,
						   .unexported = vhost_regions_unexported};

/* -- the role -- */

static void vhost_close(void *arg)
{
	struct vhost_role *role = arg;

	for (uint32_t i = 0; i < role->n_queues; i++)
		vhost_queue_close(&role->queues[i]);
	free(role->queues);
	free(role);
}

static int vhost_open(const struct gantry_role_host *rh, const void *conf, void **role_p)
{
	struct vhost_role *role = calloc(1, sizeof(*role));
	int rc = 0;

	if (!role)
		return -ENOMEM;
	role->rh = rh;
	role->host = rh->host;
	role->conf = conf;
	role->listen_fd = role->fd = -1;
	role->device.ops = &vhost_queue_ops;
	role->device.n_queues = rh->n_lanes;
	role->device.n_slots = (uint32_t)role->conf->memory_slots;
	vhost_device_init(&role->device);
	role->connections = rh->host->counter(rh->host, "front_ends_connected");
	role->queues = gantry_zalloc_lines(rh->n_lanes * sizeof(*role->queues));
	if (!role->connections || !role->queues || rh->n_lanes > VHOST_QUEUES_MAX)
		rc = rh->n_lanes > VHOST_QUEUES_MAX ? -EINVAL : -ENOMEM;
	for (uint32_t i = 0; i < rh->n_lanes && rc == 0; i++) {
		role->n_queues = i + 1;
		rc = vhost_queue_open(role, i);
	}
	if (rc == -EINVAL)
		gantry_log_error(rh->host, "too many lanes (lanes=%u, limit=%u): reduce lanes",
				 rh->n_lanes, VHOST_QUEUES_MAX);
	if (rc != 0)
		vhost_close(role);
	else
		*role_p = role;
	return rc;
}

static int vhost_start(void *arg)
{
	struct vhost_role *role = arg;
	const struct gantry_engine_attr attr = {
		.n_queues = role->n_queues,
		.depth = (uint32_t)role->conf->depth,
		.complete = vhost_lane_complete,
		.regions = vhost_copies(role) ? 0 : (uint32_t)role->conf->memory_slots};
	int rc = role->rh->engine->open(role->rh, &attr, &events, role, &role->engine);

	role->is_closed = rc != 0;
	return rc;
}

static void vhost_stop(void *arg)
{
	struct vhost_role *role = arg;

	if (role->is_stopping || role->is_finished)
		return;
	/* after a loss of the session: requests must not wait for it */
	if (role->engine)
		role->rh->engine->give_up(role->engine);
	stop(role);
}

static void vhost_report(void *arg, struct gantry_writer *w)
{
	const struct vhost_role *role = arg;

	w->string(w, "socket", role->conf->socket);
	w->boolean(w, "connected", role->phase == VHOST_CONNECTED);
	w->u64(w, "queues", role->n_queues);
}

static void vhost_check(const void *arg, struct gantry_check *check)
{
	const struct vhost_conf *conf = arg;
	const struct sockaddr_un address = {0};

	if (strlen(conf->socket) == 0 || strlen(conf->socket) >= sizeof(address.sun_path))
		gantry_option_fault(check, "socket", "the path is empty or too long (limit=%zu)",
				    sizeof(address.sun_path) - 1);
	if (strlen(conf->serial) > VIRTIO_BLK_ID_BYTES)
		gantry_option_fault(check, "serial", "longer than %d characters",
				    VIRTIO_BLK_ID_BYTES);
	if (!check->role)
		return;
	check->plans[0].depth = (uint32_t)conf->depth;
	check->plans[0].depth_option = "depth";
	check->plans[0].regions = conf->memory == VHOST_MEMORY_COPIED
					  ? 1
					  : 1 + (uint32_t)conf->memory_slots;
}

static const struct gantry_role_ops ops = {
	.open = vhost_open,
	.start = vhost_start,
	.stop = vhost_stop,
	.close = vhost_close,
	.report = vhost_report,
	.flags = GANTRY_ROLE_CONNECTS | GANTRY_ROLE_ONE_VOLUME | GANTRY_ROLE_VHOST_DISK,
};

GANTRY_PLUGIN(vhost_user_blk) = {
	GANTRY_PLUGIN_HEAD,
	.kind = GANTRY_KIND_ROLE,
	.name = "vhost-user-blk",
	.version = "1",
	.summary = "serves the volume to a virtual machine as a virtio disk",
	.options = options,
	.conf_size = sizeof(struct vhost_conf),
	.ops_size = sizeof ops,
	.ops = &ops,
	.check = vhost_check,
};
