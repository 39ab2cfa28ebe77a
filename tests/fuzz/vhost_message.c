/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vhost_message.c - the messages of a vhost-user front end, and the state of the device
 *
 * The input is a sequence of messages, mostly of a correct size. Descriptors are numbers: each must
 * be closed once, and the device must not use one that it does not have, close one that a lane
 * uses, or give one to a lane that the role has rejected.
 */
#include <stdint.h>
#include <string.h>
#include <unistd.h>

static int fuzz_close(int fd);

#define close fuzz_close
#include "../../plugins/role/vhost-user-blk/vhost_device.c"
#undef close
#include "../../plugins/role/vhost-user-blk/vhost_message.c"
#include "fuzz/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FIRST_FD 1000
#define FDS 512
#define QUEUES 2u

static const uint8_t *input;
static size_t left;
static struct vhost_device device;
static uint8_t is_open[FDS], is_rejected[FDS];
static int lane_fds[QUEUES][3]; /* -1: the lane does not use one */
static int n_made;

static uint64_t bytes(unsigned n)
{
	uint64_t v = 0;

	for (; n && left; n--, left--)
		v = v << 8 | *input++;
	return v;
}

static int fuzz_close(int fd)
{
	require(fd >= FIRST_FD && fd < FIRST_FD + FDS && is_open[fd - FIRST_FD]);
	is_open[fd - FIRST_FD] = 0;
	return 0;
}

static int make_fd(void)
{
	require(n_made < FDS);
	is_open[n_made] = 1;
	is_rejected[n_made] = 0;
	return FIRST_FD + n_made++;
}

static void require_open(int fd)
{
	require(fd == -1 || (fd >= FIRST_FD && fd < FIRST_FD + FDS && is_open[fd - FIRST_FD]));
}

/* -- the role -- */

static int memory(struct vhost_device *d, struct vhost_message *m)
{
	const struct vhost_msg_region *region = m->payload.memory.region;

	(void)d;
	require(m->payload.memory.count <= VHOST_REGIONS_MAX);
	for (uint32_t i = 0; i < m->payload.memory.count; i++) {
		require(region[i].bytes != 0 && region[i].gpa + region[i].bytes > region[i].gpa);
		require_open(m->fds[i]);
		fuzz_close(m->fds[i]);
		m->fds[i] = -1;
	}
	return bytes(1) % 3 ? -EINPROGRESS : -EINVAL;
}

static int region_add(struct vhost_device *d, struct vhost_message *m)
{
	const struct vhost_msg_region *region = &m->payload.slot.region;

	require((d->protocol >> VHOST_P_MEM_SLOTS & 1) != 0);
	require(region->bytes != 0 && region->gpa + region->bytes > region->gpa &&
		region->uva + region->bytes > region->uva &&
		region->offset + region->bytes > region->offset);
	require(m->n_fds == 1);
	require_open(m->fds[0]);
	if (bytes(1) % 3 == 0)
		return -EEXIST; /* the caller closes the descriptor */
	fuzz_close(m->fds[0]);
	m->fds[0] = -1;
	return -EINPROGRESS;
}

static int region_remove(struct vhost_device *d, const struct vhost_msg_region *region)
{
	require((d->protocol >> VHOST_P_MEM_SLOTS & 1) != 0);
	require(region->bytes != 0 && region->gpa + region->bytes > region->gpa);
	return bytes(1) % 3 ? -EINPROGRESS : -ENOENT;
}

static int check_eventfd(struct vhost_device *d, int fd)
{
	(void)d;
	require(fd >= 0);
	require_open(fd);
	is_rejected[fd - FIRST_FD] = bytes(1) % 8 == 7;
	return is_rejected[fd - FIRST_FD] ? -EINVAL : 0;
}

static void require_accepted(int fd)
{
	require_open(fd);
	require(fd == -1 || !is_rejected[fd - FIRST_FD]);
}

static int vring(struct vhost_device *d, uint32_t index)
{
	const struct vhost_vring *v = &d->vring[index];

	require(index < QUEUES);
	require(!v->started || v->kick != -1);
	require_accepted(v->kick);
	require_accepted(v->call);
	require_accepted(v->err);
	for (unsigned i = 0; i < 3; i++)
		require_open(lane_fds[index][i]); /* the lane uses it until now */
	if (!v->started)
		return 0;
	if (lane_fds[index][0] == -1 && bytes(1) % 8 == 7)
		return -EINVAL; /* the queue cannot start */
	lane_fds[index][0] = v->kick;
	lane_fds[index][1] = v->call;
	lane_fds[index][2] = v->err;
	return 0;
}

static int drain(struct vhost_device *d, uint32_t index)
{
	require(index < QUEUES && !d->vring[index].started);
	memset(lane_fds[index], 0xff, sizeof(lane_fds[index]));
	return bytes(1) % 2 ? 0 : -EINPROGRESS;
}

static int drain_all(struct vhost_device *d)
{
	for (uint32_t i = 0; i < QUEUES; i++)
		require(!d->vring[i].started);
	memset(lane_fds, 0xff, sizeof(lane_fds));
	return bytes(1) % 2 ? 0 : -EINPROGRESS;
}

static void config(struct vhost_device *d, uint32_t offset, void *to, uint32_t n)
{
	(void)d;
	require(offset <= VHOST_CONFIG_MAX && n <= VHOST_CONFIG_MAX - offset);
	memset(to, 1, n);
}

static int inflight_get(struct vhost_device *d, uint32_t queues, uint32_t num, uint64_t *bytes_p)
{
	(void)d;
	require(queues >= 1 && queues <= QUEUES && num >= 1 && num <= VHOST_RING_MAX);
	*bytes_p = 4096;
	return bytes(1) % 4 ? make_fd() : -ENOMEM;
}

static int inflight_set(struct vhost_device *d, struct vhost_message *m)
{
	require(!d->vring[0].started && !d->vring[1].started);
	require(m->payload.inflight.queues <= QUEUES);
	require_open(m->fds[0]);
	return 0;
}

static const struct vhost_device_ops ops = {.memory = memory,
					    .region_add = region_add,
					    .region_remove = region_remove,
					    .check_eventfd = check_eventfd,
					    .vring = vring,
					    .drain = drain,
					    .drain_all = drain_all,
					    .inflight_get = inflight_get,
					    .inflight_set = inflight_set,
					    .config = config};

/* -- messages -- */

static void fill_payload(struct vhost_message *m)
{
	for (uint32_t i = 0; i < m->size && left; i++)
		m->payload.bytes[i] = (uint8_t)bytes(1);
	switch (m->type) {
	case VHOST_GET_INFLIGHT_FD:
	case VHOST_SET_INFLIGHT_FD:
		m->payload.inflight.queues = (uint16_t)(bytes(1) % (QUEUES + 2));
		m->payload.inflight.num &= 0x7ff;
		break;
	case VHOST_SET_MEM_TABLE:
		if (bytes(1) % 4) {
			m->payload.memory.count = (m->size - 8) / 32;
			for (uint32_t i = 0; i < m->payload.memory.count; i++)
				m->payload.memory.region[i] = (struct vhost_msg_region){
					bytes(2), 1 + bytes(1), bytes(2), bytes(1)};
		}
		break;
	case VHOST_ADD_MEM_REG:
	case VHOST_REM_MEM_REG:
		if (bytes(1) % 4)
			m->payload.slot.region = (struct vhost_msg_region){bytes(2), 1 + bytes(1),
									   bytes(2), bytes(1)};
		break;
	case VHOST_SET_PROTOCOL_FEATURES:
		if (bytes(1) % 4)
			m->payload.u64 &= device.protocol_offered;
		break;
	case VHOST_SET_VRING_NUM:
		m->payload.state.num = 1u << bytes(1) % 12;
		m->payload.state.index %= QUEUES + 1;
		break;
	case VHOST_SET_VRING_ADDR:
		m->payload.addr.index %= QUEUES + 1;
		m->payload.addr.flags = bytes(1) % 4 == 3;
		break;
	case VHOST_GET_CONFIG:
	case VHOST_SET_CONFIG:
		m->payload.config.size = m->size - 12 + (bytes(1) % 8 == 7);
		m->payload.config.offset = (uint32_t)bytes(1);
		break;
	default:
		if (m->size == 8 && bytes(1) % 4)
			m->payload.u64 &= 1ull << 32 | 0xffff0103u;
	}
}

static void reply_of(const struct vhost_message *m, const struct vhost_reply *reply)
{
	uint32_t header[3];

	if (reply->bytes == 0)
		return;
	if (reply->fd >= 0)
		fuzz_close(reply->fd);
	require(reply->bytes >= VHOST_HEADER_BYTES && reply->bytes <= sizeof(reply->data));
	memcpy(header, reply->data, sizeof(header));
	require(header[0] == m->type && header[1] == 5 && header[2] + 12 == reply->bytes);
}

static void check_rings(void)
{
	for (uint32_t i = 0; i < QUEUES; i++) {
		const struct vhost_vring *v = &device.vring[i];

		require(v->num <= VHOST_RING_MAX && (v->num & (v->num - 1)) == 0);
		require(v->desc % 16 == 0 && v->avail % 2 == 0 && v->used % 4 == 0);
		for (unsigned k = 0; k < 3; k++)
			require_open(lane_fds[i][k]);
	}
}

/* The values of a byte are divided so that each file of the corpus keeps its meaning. */
static uint32_t random_type(void)
{
	const uint32_t b = (uint32_t)bytes(1), old = VHOST_SET_INFLIGHT_FD + 2;

	if (b < 7 * old)
		return b % old;
	return b % 4 != 3 ? VHOST_GET_MAX_MEM_SLOTS + b % 4 : VHOST_SET_STATUS + b / 4 % 2;
}

/* Returns 0: the connection ends. */
static int message(void)
{
	static struct vhost_reply reply;
	struct vhost_message m;
	uint32_t header[3] = {random_type(), 1 | bytes(1) % 16, 0};
	const char *fault;
	int rc, was;

	header[2] = bytes(1) % 8 == 7                      ? (uint32_t)bytes(4)
		    : header[0] == VHOST_SET_MEM_TABLE     ? 8 + 32 * (uint32_t)(bytes(1) % 10)
		    : header[0] == VHOST_GET_STATUS        ? 0
		    : header[0] == VHOST_SET_STATUS        ? 8
		    : header[0] >= VHOST_ADD_MEM_REG       ? 40
		    : header[0] >= VHOST_GET_MAX_MEM_SLOTS ? 0
		    : header[0] >= VHOST_GET_INFLIGHT_FD   ? 20
		    : header[0] >= VHOST_GET_CONFIG        ? 12 + (uint32_t)bytes(1)
		    : header[0] == VHOST_SET_VRING_ADDR    ? 40
		    : bytes(1) % 2                         ? 8
							   : 0;
	if (vhost_message_header(header, &m))
		return 0;
	require(m.size <= VHOST_PAYLOAD_MAX);
	fill_payload(&m);
	was = n_made;
	m.n_fds = m.type == VHOST_SET_MEM_TABLE && bytes(1) % 4
			  ? m.payload.memory.count % (VHOST_FDS_MAX + 1)
		  : m.type == VHOST_ADD_MEM_REG && bytes(1) % 4 ? 1
								: (uint32_t)bytes(1) % 3 % 2;
	for (uint32_t i = 0; i < m.n_fds; i++)
		m.fds[i] = make_fd();
	fault = vhost_message_parse(&m);
	rc = fault ? -EPROTO : vhost_device_handle(&device, &m, &reply);
	if (!fault)
		reply_of(&m, &reply);
	for (uint32_t i = 0; i < m.n_fds; i++)
		if (m.fds[i] >= 0)
			fuzz_close(m.fds[i]);
	if (rc == -EINPROGRESS) {
		rc = vhost_device_continue(&device, bytes(1) % 4 ? 0 : -EIO, &reply);
		reply_of(&device.pending, &reply);
	}
	check_rings();
	require(rc != -EINPROGRESS && (device.features & ~device.offered) == 0);
	return rc == 0 && was + (int)VHOST_FDS_MAX < FDS - (int)VHOST_FDS_MAX;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	input = data;
	left = size;
	n_made = 0;
	device = (struct vhost_device){.ops = &ops,
				       .offered = 0xf0000246ull,
				       .protocol_offered = 0x19209,
				       .n_slots = 8,
				       .n_queues = QUEUES};
	vhost_device_init(&device);
	memset(lane_fds, 0xff, sizeof(lane_fds));
	while (left && message())
		;
	vhost_device_fini(&device);
	for (int i = 0; i < n_made; i++)
		require(!is_open[i]);
	return 0;
}
