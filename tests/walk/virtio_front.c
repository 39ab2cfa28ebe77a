/* SPDX-License-Identifier: BSD-3-Clause */
/* virtio_front.c - a front end of vhost-user-blk: its messages and memory */
#include "virtio_front.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <gantry/random.h>

#define NEEDED (1ull << 3 | 1ull << 9) /* REPLY_ACK, CONFIG */
/* MQ, BACKEND_REQ, INFLIGHT_SHMFD, CONFIGURE_MEM_SLOTS, STATUS */
#define PROTOCOL (NEEDED | 1ull << 0 | 1ull << 5 | 1ull << 12 | 1ull << 15 | 1ull << 16)

const char *path;
int conn = -1, kick = -1, call = -1, err = -1, memory_fd = -1, inflight_fd = -1;
char *low, *high;
uint64_t capacity;
uint32_t blk_size, discard_max, zeroes_max;
unsigned long n_requests, n_reconnects;
int uses_events, uses_packed, is_uml;

static int call_end = -1; /* what the device gets for interrupts */

struct gantry_random random_state;

static uint64_t features;
/* what SET_INFLIGHT_FD sends, as QEMU does with padding */
static struct {
	uint64_t bytes, offset;
	uint16_t queues, num;
	uint32_t padding;
} inflight = {.queues = 1, .num = NUM};

void fail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fprintf(stderr, "%s: ", program_invocation_short_name);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	exit(1);
}

uint32_t below(uint32_t n)
{
	return (uint32_t)gantry_random_below(&random_state, n);
}

void fill_random(uint8_t *to, size_t bytes)
{
	uint64_t word = gantry_random_next(&random_state);

	/* all words differ; to draw each of them would take most of the time of a test */
	for (size_t i = 0; i < bytes; i += sizeof(word)) {
		memcpy(to + i, &word, bytes - i < sizeof(word) ? bytes - i : sizeof(word));
		word += 0x9e3779b97f4a7c15u;
	}
}

char *at(uint64_t offset)
{
	return offset < HALF ? low + offset : high + (offset - HALF);
}

/* -- messages -- */

void send_raw(const void *bytes, size_t n, const int *fds, unsigned n_fds)
{
	union {
		char bytes[CMSG_SPACE(64 * sizeof(int))];
		struct cmsghdr header;
	} control = {.bytes = {0}};
	struct iovec iov = {(void *)(uintptr_t)bytes, n};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	if (n_fds) {
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		control.header = (struct cmsghdr){.cmsg_len = CMSG_LEN(n_fds * sizeof(int)),
						  .cmsg_level = SOL_SOCKET,
						  .cmsg_type = SCM_RIGHTS};
		memcpy(CMSG_DATA(&control.header), fds, n_fds * sizeof(int));
	}
	if (sendmsg(conn, &msg, MSG_NOSIGNAL) != (ssize_t)n && errno != EPIPE)
		fail("sendmsg: %s", strerror(errno));
}

void send_message(uint32_t type, uint32_t flags, const void *payload, uint32_t bytes,
		  const int *fds, unsigned n_fds)
{
	uint32_t m[3 + 128] = {type, 1 | flags, bytes};

	if (bytes)
		memcpy(m + 3, payload, bytes);
	send_raw(m, 12 + bytes, fds, n_fds);
}

uint32_t reply(void *payload, uint32_t most)
{
	uint32_t m[3];
	struct pollfd p = {.fd = conn, .events = POLLIN};
	ssize_t n;

	if (poll(&p, 1, TIMEOUT_MS) != 1)
		fail("no reply");
	n = recv(conn, m, sizeof(m), MSG_WAITALL);
	if (n <= 0)
		return 0;
	if (n != sizeof(m) || (m[1] & 7) != 5 || m[2] > most)
		fail("bad reply: %zd bytes, type %u, flags %x, payload of %u bytes", n, m[0], m[1],
		     m[2]);
	if (m[2] && recv(conn, payload, m[2], MSG_WAITALL) != (ssize_t)m[2])
		fail("reply ends early");
	return m[2];
}

uint64_t ask(uint32_t type, const void *payload, uint32_t bytes)
{
	uint64_t value = 0;

	send_message(type, 0, payload, bytes, NULL, 0);
	if (reply(&value, sizeof(value)) != sizeof(value))
		fail("no answer to message %u", type);
	return value;
}

uint64_t tell(uint32_t type, const void *payload, uint32_t bytes, const int *fds, unsigned n_fds)
{
	uint64_t value = 1;

	send_message(type, NEED_REPLY, payload, bytes, fds, n_fds);
	if (reply(&value, sizeof(value)) != sizeof(value))
		fail("connection closed after message %u", type);
	return value;
}

void must(uint32_t type, const void *payload, uint32_t bytes, const int *fds, unsigned n_fds)
{
	if (tell(type, payload, bytes, fds, n_fds) != 0)
		fail("message %u failed", type);
}

/* -- set up -- */

void connect_device(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	if (conn >= 0)
		close(conn);
	conn = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	strncpy(address.sun_path, path, sizeof(address.sun_path) - 1);
	if (connect(conn, (struct sockaddr *)&address, sizeof(address)))
		fail("connect: %s", strerror(errno));
}

void negotiate(void)
{
	const uint64_t wanted = 1ull << VIRTIO_F_VERSION_1 | 1ull << VIRTIO_RING_F_INDIRECT_DESC |
				1ull << VIRTIO_BLK_F_FLUSH | 1ull << VIRTIO_BLK_F_SEG_MAX |
				1ull << VIRTIO_BLK_F_BLK_SIZE | 1ull << VIRTIO_BLK_F_DISCARD |
				1ull << VIRTIO_BLK_F_WRITE_ZEROES | 1ull << 30 |
				(uint64_t)uses_events << VIRTIO_RING_F_EVENT_IDX |
				(uint64_t)uses_packed << VIRTIO_F_RING_PACKED;
	uint64_t protocol;

	features = ask(GET_FEATURES, NULL, 0) & wanted;
	if (!(features >> VIRTIO_F_VERSION_1 & 1) || !(features >> 30 & 1) ||
	    (int)(features >> VIRTIO_RING_F_EVENT_IDX & 1) != uses_events ||
	    (int)(features >> VIRTIO_F_RING_PACKED & 1) != uses_packed)
		fail("features 0x%llx", (unsigned long long)features);
	protocol = ask(GET_PROTOCOL_FEATURES, NULL, 0) & PROTOCOL;
	if ((protocol & NEEDED) != NEEDED)
		fail("protocol features 0x%llx", (unsigned long long)protocol);
	send_message(SET_PROTOCOL_FEATURES, 0, &protocol, 8, NULL, 0);
	must(SET_OWNER, NULL, 0, NULL, 0);
	must(SET_FEATURES, &features, 8, NULL, 0);
}

/*
 * Check the limits of an operation that has one segment in a request. Returns its sectors; 0: the
 * device does not offer it.
 */
static uint32_t segment_limit(unsigned feature, uint32_t sectors, uint32_t n, uint32_t unit)
{
	const uint32_t block = blk_size / SECTOR;

	if (!(features >> feature & 1)) {
		if (sectors != 0 || n != 0)
			fail("limits of feature %u, which is not offered", feature);
		return 0;
	}
	if (sectors == 0 || sectors % block != 0 || n != 1 || unit != block)
		fail("feature %u: %u sectors, %u segments, unit %u", feature, sectors, n, unit);
	return sectors;
}

void read_config(void)
{
	/* up to the last field that all devices have */
	const uint32_t bytes = offsetof(struct virtio_blk_config, unused1);
	struct {
		uint32_t offset, size, flags;
		struct virtio_blk_config config;
	} m = {.size = bytes};

	send_message(GET_CONFIG, 0, &m, 12 + bytes, NULL, 0);
	if (reply(&m, sizeof(m)) != 12 + bytes)
		fail("no configuration");
	blk_size = m.config.blk_size;
	capacity = m.config.capacity;
	if (m.config.capacity * SECTOR < MODEL || m.config.seg_max < 2 || blk_size < SECTOR)
		fail("configuration: %llu sectors, seg_max %u, block %u",
		     (unsigned long long)m.config.capacity, m.config.seg_max, blk_size);
	discard_max = segment_limit(VIRTIO_BLK_F_DISCARD, m.config.max_discard_sectors,
				    m.config.max_discard_seg, m.config.discard_sector_alignment);
	zeroes_max = segment_limit(VIRTIO_BLK_F_WRITE_ZEROES, m.config.max_write_zeroes_sectors,
				   m.config.max_write_zeroes_seg, blk_size / SECTOR);
}

int open_channel(void)
{
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
		fail("socketpair: %s", strerror(errno));
	must(SET_BACKEND_REQ_FD, NULL, 0, &fds[1], 1);
	close(fds[1]);
	return fds[0];
}

void make_memory(int seals)
{
	make_large_memory(seals, 0);
}

void make_large_memory(int seals, uint64_t more)
{
	if (memory_fd >= 0) {
		munmap(low, HALF);
		munmap(high, HALF);
		close(memory_fd);
	}
	memory_fd = memfd_create("guest", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (memory_fd < 0 || ftruncate(memory_fd, (off_t)(2 * HALF + GAP + more)) ||
	    (seals && fcntl(memory_fd, F_ADD_SEALS, seals)))
		fail("memfd");
	low = mmap(NULL, HALF, PROT_READ | PROT_WRITE, MAP_SHARED, memory_fd, 0);
	high = mmap(NULL, HALF, PROT_READ | PROT_WRITE, MAP_SHARED, memory_fd, HALF + GAP);
	if (low == MAP_FAILED || high == MAP_FAILED)
		fail("mmap");
}

void send_memory(uint32_t flags)
{
	const struct {
		uint32_t count, padding;
		struct region region[2];
	} m = {2,
	       0,
	       {{GPA, HALF, (uintptr_t)low, 0}, {GPA + HALF, HALF, (uintptr_t)high, HALF + GAP}}};
	const int fds[2] = {memory_fd, memory_fd};

	send_message(SET_MEM_TABLE, flags, &m, sizeof(m), fds, 2);
}

uint64_t set_memory(void)
{
	uint64_t value;

	send_memory(NEED_REPLY);
	if (reply(&value, sizeof(value)) != sizeof(value))
		fail("connection closed after SET_MEM_TABLE");
	return value;
}

int ask_inflight(uint16_t num)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	uint32_t m[3 + 6];
	struct iovec iov = {m, sizeof(m)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	int fd;

	inflight.num = num;
	send_message(GET_INFLIGHT_FD, 0, &inflight, sizeof(inflight), NULL, 0);
	if (recvmsg(conn, &msg, MSG_CMSG_CLOEXEC) != sizeof(m) || m[2] != sizeof(inflight) ||
	    !CMSG_FIRSTHDR(&msg))
		return -1;
	memcpy(&inflight, m + 3, sizeof(inflight));
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(int));
	return fd;
}

void set_inflight(void)
{
	must(SET_INFLIGHT_FD, &inflight, sizeof(inflight), &inflight_fd, 1);
}

/* Let the device create the memory for requests in flight. */
static void get_inflight(void)
{
	inflight_fd = ask_inflight(NUM);
	if (inflight_fd < 0)
		fail("no memory for requests in flight");
	set_inflight();
}

void place_queue(uint32_t base)
{
	const uint32_t num[2] = {0, NUM}, first[2] = {0, base};
	const struct {
		uint32_t index, flags;
		uint64_t desc, used, avail, log;
	} addr = {0, 0, (uintptr_t)low, (uintptr_t)low + USED, (uintptr_t)low + AVAIL, 0};

	must(SET_VRING_NUM, num, 8, NULL, 0);
	must(SET_VRING_BASE, first, 8, NULL, 0);
	must(SET_VRING_ADDR, &addr, sizeof(addr), NULL, 0);
}

void set_fd(uint32_t type, int fd)
{
	const uint64_t index = 0;

	must(type, &index, 8, &fd, 1);
}

void enable_queue(void)
{
	const uint32_t on[2] = {0, 1};

	must(SET_VRING_ENABLE, on, 8, NULL, 0);
}

void start_queue(uint32_t base)
{
	place_queue(base);
	set_fd(SET_VRING_KICK, kick);
	set_fd(SET_VRING_CALL, call_end);
	set_fd(SET_VRING_ERR, err);
	enable_queue();
}

uint32_t stop_queue(void)
{
	const uint32_t index[2] = {0, 0};
	uint32_t state[2];
	uint64_t value = ask(GET_VRING_BASE, index, 8);

	memcpy(state, &value, sizeof(value));
	return state[1];
}

/* User-mode Linux gets interrupts through a socket. */
static void make_call(void)
{
	int ends[2];

	if (!is_uml) {
		call = call_end = eventfd(0, EFD_CLOEXEC);
		return;
	}
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		fail("socketpair: %s", strerror(errno));
	call = ends[0];
	call_end = ends[1];
}

void set_up(void)
{
	connect_device();
	negotiate();
	read_config();
	make_memory(is_uml ? 0 : SEALS);
	if (set_memory() != 0)
		fail("guest memory is refused");
	kick = eventfd(0, EFD_CLOEXEC);
	make_call();
	err = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	reset_ring();
	start_queue(ring_base());
}

void set_up_inflight(void)
{
	stop_queue();
	get_inflight();
	start_queue(ring_base());
}

void *map_inflight(size_t *bytes_p)
{
	void *kept = mmap(NULL, inflight.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, inflight_fd,
			  (off_t)inflight.offset);

	if (kept == MAP_FAILED)
		fail("mmap: %s", strerror(errno));
	*bytes_p = inflight.bytes;
	return kept;
}

/* -- the next device -- */

/* Returns 0 if no device answers: that of a process that is ending can still accept. */
static int try_connect(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	uint64_t offered;

	conn = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	strncpy(address.sun_path, path, sizeof(address.sun_path) - 1);
	if (connect(conn, (struct sockaddr *)&address, sizeof(address)) == 0) {
		send_message(GET_FEATURES, 0, NULL, 0, NULL, 0);
		if (reply(&offered, sizeof(offered)) == sizeof(offered))
			return 1;
	}
	close(conn);
	return 0;
}

void reconnect(void)
{
	const uint32_t base = stale_base();

	close(conn);
	for (int ms = 0; !try_connect(); ms += 20)
		if (ms > TIMEOUT_MS || poll(NULL, 0, 20) < 0)
			fail("no device to connect to again");
	negotiate();
	set_inflight();
	if (set_memory() != 0)
		fail("guest memory is refused");
	start_queue(base);
	n_reconnects++;
}
