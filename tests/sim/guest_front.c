/* SPDX-License-Identifier: BSD-3-Clause */
/* guest_front.c - the front end of vhost-user in a modelled guest, see image_guest.h */
#include <errno.h>
#include <fcntl.h>
#include <linux/virtio_blk.h>
#include <linux/virtio_config.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "image_guest.h"
#include "role/vhost-user-blk/vhost_protocol.h"
#include "sim.h"
#include "topology.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define LEAVE_ONE_IN 60u /* messages, of a guest with SIM_GUEST_LEAVES */

/* -- memory -- */

bool guest_memory_make(struct guest_memory *memory, size_t bytes)
{
	void *at = MAP_FAILED;

	memory->at = NULL;
	memory->fd = memfd_create("guest", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (memory->fd < 0)
		return false;
	if (ftruncate(memory->fd, (off_t)bytes) == 0 && fcntl(memory->fd, F_ADD_SEALS, SEALS) == 0)
		at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory->fd, 0);
	if (at == MAP_FAILED) {
		close(memory->fd);
		return false;
	}
	memory->at = at;
	return true;
}

void guest_memory_drop(struct guest_memory *memory, size_t bytes)
{
	munmap(memory->at, bytes);
	close(memory->fd);
	memory->at = NULL;
}

/* -- messages -- */

void guest_detach(struct guest *guest)
{
	if (guest->conn >= 0)
		close(guest->conn);
	guest->conn = -1;
	guest->is_attached = false;
}

static bool lost(struct guest *guest)
{
	guest_detach(guest);
	return false;
}

static bool send_message(struct guest *guest, uint32_t type, uint32_t flags, const void *payload,
			 uint32_t bytes, const int *fds, uint32_t n_fds)
{
	union {
		char bytes[CMSG_SPACE(2 * sizeof(int))];
		struct cmsghdr header;
	} control = {.bytes = {0}};
	uint32_t m[3 + 64] = {type, VHOST_FLAG_VERSION | flags, bytes};
	struct iovec iov = {m, VHOST_HEADER_BYTES + bytes};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	if (guest->job->guest & SIM_GUEST_LEAVES && sim_draw(LEAVE_ONE_IN) == 0)
		return lost(guest);
	memcpy(m + 3, payload, bytes);
	if (n_fds != 0) {
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		control.header = (struct cmsghdr){.cmsg_len = CMSG_LEN(n_fds * sizeof(int)),
						  .cmsg_level = SOL_SOCKET,
						  .cmsg_type = SCM_RIGHTS};
		memcpy(CMSG_DATA(&control.header), fds, n_fds * sizeof(int));
	}
	if (sendmsg(guest->conn, &msg, MSG_NOSIGNAL) != (ssize_t)iov.iov_len)
		return lost(guest);
	return true;
}

/* Receive n bytes. fd_p: out: a descriptor that comes with them; NULL: none is expected. */
static bool receive(struct guest *guest, void *to, size_t n, int *fd_p)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr header;
	} control;
	const uint64_t began_ns = sim_now();
	size_t done = 0;

	while (done < n) {
		struct iovec iov = {(char *)to + done, n - done};
		struct msghdr msg = {.msg_iov = &iov,
				     .msg_iovlen = 1,
				     .msg_control = &control,
				     .msg_controllen = sizeof(control)};
		ssize_t got = recvmsg(guest->conn, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

		if (got < 0 && errno == EAGAIN) {
			if (sim_now() - began_ns > GUEST_PATIENCE_NS)
				sim_wrong("guest: a message has no answer");
			guest_wait(guest);
			continue;
		}
		if (got <= 0)
			return lost(guest);
		if (CMSG_FIRSTHDR(&msg) && fd_p)
			memcpy(fd_p, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(*fd_p));
		done += (size_t)got;
	}
	return true;
}

/* Receive an answer whose payload has this number of bytes. */
static bool receive_answer(struct guest *guest, uint32_t type, void *payload, uint32_t bytes,
			   int *fd_p)
{
	uint32_t m[3];

	if (!receive(guest, m, sizeof(m), fd_p))
		return false;
	if (m[0] != type || m[1] != (VHOST_FLAG_VERSION | VHOST_FLAG_REPLY) || m[2] != bytes) {
		sim_wrong("guest: the answer to message %u has type %u, flags %u, %u bytes", type,
			  m[0], m[1], m[2]);
		return lost(guest);
	}
	return receive(guest, payload, bytes, NULL);
}

static bool ask(struct guest *guest, uint32_t type, const void *payload, uint32_t bytes,
		uint64_t *value_p)
{
	return send_message(guest, type, 0, payload, bytes, NULL, 0) &&
	       receive_answer(guest, type, value_p, sizeof(*value_p), NULL);
}

/* Send a message with REPLY_ACK. A message that fails is treated like a lost connection. */
static bool must(struct guest *guest, uint32_t type, const void *payload, uint32_t bytes,
		 const int *fds, uint32_t n_fds)
{
	uint64_t value;

	if (!send_message(guest, type, VHOST_FLAG_NEED_REPLY, payload, bytes, fds, n_fds) ||
	    !receive_answer(guest, type, &value, sizeof(value), NULL))
		return false;
	return value == 0 || lost(guest);
}

bool guest_check_connection(struct guest *guest)
{
	struct pollfd p = {.fd = guest->conn, .events = POLLIN};

	/* a device that is attached sends nothing but the end of the connection */
	return poll(&p, 1, 0) != 1 || lost(guest);
}

/* -- the device -- */

static bool negotiate(struct guest *guest)
{
	const uint64_t needed = 1ull << VIRTIO_F_VERSION_1 | 1ull << VHOST_F_PROTOCOL_FEATURES,
		       protocol = 1ull << VHOST_P_MQ | 1ull << VHOST_P_REPLY_ACK |
				  1ull << VHOST_P_CONFIG | 1ull << VHOST_P_INFLIGHT;
	uint64_t offered, protocol_offered;

	if (!ask(guest, VHOST_GET_FEATURES, "", 0, &offered) ||
	    !ask(guest, VHOST_GET_PROTOCOL_FEATURES, "", 0, &protocol_offered))
		return false;
	if ((offered & needed) != needed || (protocol_offered & protocol) != protocol) {
		sim_wrong("guest: the device offers features %llx, %llx",
			  (unsigned long long)offered, (unsigned long long)protocol_offered);
		return lost(guest);
	}
	if (!guest->has_features) {
		uint64_t wanted = needed | 1ull << VIRTIO_BLK_F_SEG_MAX |
				  1ull << VIRTIO_BLK_F_BLK_SIZE | 1ull << VIRTIO_BLK_F_DISCARD |
				  1ull << VIRTIO_BLK_F_WRITE_ZEROES;

		if (guest->job->guest & SIM_GUEST_FLUSHES)
			wanted |= 1ull << VIRTIO_BLK_F_FLUSH;
		if (guest->job->guest & SIM_GUEST_INDIRECT)
			wanted |= 1ull << VIRTIO_RING_F_INDIRECT_DESC;
		if (guest->job->guest & SIM_GUEST_EVENTS)
			wanted |= 1ull << VIRTIO_RING_F_EVENT_IDX;
		guest->features = offered & wanted;
		guest->has_features = true;
	}
	return send_message(guest, VHOST_SET_PROTOCOL_FEATURES, 0, &protocol, sizeof(protocol),
			    NULL, 0) &&
	       must(guest, VHOST_SET_OWNER, "", 0, NULL, 0) &&
	       must(guest, VHOST_SET_FEATURES, &guest->features, sizeof(guest->features), NULL, 0);
}

static bool set_inflight(struct guest *guest)
{
	if (guest->inflight_fd < 0) {
		guest->inflight.queues = (uint16_t)guest->job->queues;
		guest->inflight.num = GUEST_RING;
		if (!send_message(guest, VHOST_GET_INFLIGHT_FD, 0, &guest->inflight,
				  sizeof(guest->inflight), NULL, 0) ||
		    !receive_answer(guest, VHOST_GET_INFLIGHT_FD, &guest->inflight,
				    sizeof(guest->inflight), &guest->inflight_fd))
			return false;
	}
	return must(guest, VHOST_SET_INFLIGHT_FD, &guest->inflight, sizeof(guest->inflight),
		    &guest->inflight_fd, 1);
}

bool guest_set_memory(struct guest *guest)
{
	const struct {
		uint32_t count, padding;
		struct vhost_msg_region region[2];
	} m = {2,
	       0,
	       {{GUEST_RINGS_GPA, GUEST_RINGS_BYTES, GUEST_RINGS_UVA, 0},
		{GUEST_DATA_GPA, GUEST_DATA_BYTES, GUEST_DATA_UVA, 0}}};
	const int fds[2] = {guest->rings.fd, guest->data.fd};

	if (!must(guest, VHOST_SET_MEM_TABLE, &m, sizeof(m), fds, 2))
		return false;
	guest_old_is_free(guest);
	return true;
}

bool guest_stop_queue(struct guest *guest, const struct guest_queue *queue, uint16_t *base_p)
{
	const uint32_t index[2] = {queue->index, 0};
	uint32_t state[2];
	uint64_t value;

	if (!ask(guest, VHOST_GET_VRING_BASE, index, sizeof(index), &value))
		return false;
	memcpy(state, &value, sizeof(value));
	*base_p = (uint16_t)state[1];
	return true;
}

bool guest_start_queue(struct guest *guest, const struct guest_queue *queue, uint16_t base)
{
	const uint32_t i = queue->index, num[2] = {i, GUEST_RING}, first[2] = {i, base},
		       on[2] = {i, 1};
	const uint64_t at = GUEST_RINGS_UVA + (uint64_t)i * GUEST_QUEUE_BYTES, index = i;
	const struct {
		uint32_t index, flags;
		uint64_t desc, used, avail, log;
	} addr = {i, 0, at, at + GUEST_USED, at + GUEST_AVAIL, 0};

	return must(guest, VHOST_SET_VRING_NUM, num, sizeof(num), NULL, 0) &&
	       must(guest, VHOST_SET_VRING_BASE, first, sizeof(first), NULL, 0) &&
	       must(guest, VHOST_SET_VRING_ADDR, &addr, sizeof(addr), NULL, 0) &&
	       must(guest, VHOST_SET_VRING_KICK, &index, sizeof(index), &queue->kick, 1) &&
	       must(guest, VHOST_SET_VRING_CALL, &index, sizeof(index), &queue->call, 1) &&
	       must(guest, VHOST_SET_VRING_ERR, &index, sizeof(index), &queue->err, 1) &&
	       must(guest, VHOST_SET_VRING_ENABLE, on, sizeof(on), NULL, 0);
}

static bool open_connection(struct guest *guest)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = SIM_DISK_SOCKET};

	guest->conn = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (guest->conn < 0)
		return false;
	return connect(guest->conn, (struct sockaddr *)&address, sizeof(address)) == 0 ||
	       lost(guest);
}

bool guest_attach(struct guest *guest)
{
	if (!open_connection(guest) || !negotiate(guest))
		return false;
	if (!guest->is_known)
		sim_guest_started(guest->job->client, guest->job->volume);
	guest->is_known = true;
	if (!set_inflight(guest) || !guest_set_memory(guest))
		return false;
	for (uint32_t i = 0; i < guest->job->queues; i++)
		if (!guest_start_queue(guest, &guest->queues[i],
				       guest_used_idx(guest, &guest->queues[i])))
			return false;
	guest->attached_ns = sim_now();
	guest->is_attached = true;
	return true;
}
