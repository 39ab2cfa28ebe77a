/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * virtio_user SOCKET COMMAND [ARGUMENT] - the front end of a vhost-user-blk device: a small driver
 *
 *      verify            reads and writes of many shapes, compared with a model; flush, serial
 *      run FILE          writes and verifies until FILE exists; prints the number of requests
 *      survive FILE      as run; connects again when the device ends, which must answer the request
 *                        in flight
 *      hostile           breaks the ring in each way of a table; the device must notice, and work
 *                        after a reset
 *      messages          sends each wrong message of a table; the device must close the connection
 *      memory            memory that the device must refuse
 *      replace           exchanges the guest memory while the queue runs
 *
 * The guest memory is one memfd with two regions that are adjacent for the guest, and a gap in the
 * memfd. Exit status 1: the device did something wrong.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/virtio_blk.h>
#include <linux/virtio_config.h>
#include <linux/virtio_ring.h>
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

#define NUM 64u
#define HALF (1u << 20) /* bytes of a region */
#define GAP 65536u      /* between the regions, in the memfd */
#define GPA 0x40000000ull
#define MODEL (1u << 20)
#define SECTOR 512u
#define TIMEOUT_MS 60000
#define NEED_REPLY 8u
#define PROTOCOL (1ull << 0 | 1ull << 3 | 1ull << 9 | 1ull << 12)

#define DATA 0x10000u     /* guest memory: first address of data */
#define TABLE 0x8000u     /* of the indirect table */
#define HEADER 0xf000u    /* of the request header; the status byte follows */
#define AVAIL (NUM * 16u) /* ring */
#define USED 0x1000u

struct region {
	uint64_t gpa, bytes, uva, offset;
};

static struct gantry_random random_state;
static const char *path;
static int conn = -1, kick = -1, call = -1, err = -1, memory_fd = -1;
static char *low, *high; /* the regions here */
static uint64_t features;
static uint16_t avail_idx, used_idx;
static uint8_t model[MODEL], flat[1 << 18];
static uint32_t blk_size;
static unsigned long n_requests, n_reconnects;
/* what SET_INFLIGHT_FD sends, as QEMU does with padding */
static struct {
	uint64_t bytes, offset;
	uint16_t queues, num;
	uint32_t padding;
} inflight = {.queues = 1, .num = NUM};
static int inflight_fd = -1;

__attribute__((noreturn, format(printf, 1, 2))) static void fail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fputs("virtio_user: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	exit(1);
}

static uint32_t below(uint32_t n)
{
	return (uint32_t)gantry_random_below(&random_state, n);
}

/* Address here of a guest address, which counts from GPA. */
static char *at(uint64_t offset)
{
	return offset < HALF ? low + offset : high + (offset - HALF);
}

/* -- messages -- */

static void send_raw(const void *bytes, size_t n, const int *fds, unsigned n_fds)
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

static void send_message(uint32_t type, uint32_t flags, const void *payload, uint32_t bytes,
			 const int *fds, unsigned n_fds)
{
	uint32_t m[3 + 128] = {type, 1 | flags, bytes};

	if (bytes)
		memcpy(m + 3, payload, bytes);
	send_raw(m, 12 + bytes, fds, n_fds);
}

/* Receive a reply. Returns its bytes; 0: the connection has ended. */
static uint32_t reply(void *payload, uint32_t most)
{
	uint32_t m[3 + 128];
	struct pollfd p = {.fd = conn, .events = POLLIN};
	ssize_t n;

	if (poll(&p, 1, TIMEOUT_MS) != 1)
		fail("no reply");
	n = recv(conn, m, sizeof(m), 0);
	if (n <= 0)
		return 0;
	if (n < 12 || n != 12 + (ssize_t)m[2] || (m[1] & 7) != 5 || m[2] > most)
		fail("bad reply: %zd bytes, type %u, flags %x", n, m[0], m[1]);
	if (m[2])
		memcpy(payload, m + 3, m[2]);
	return m[2];
}

static uint64_t ask(uint32_t type, const void *payload, uint32_t bytes)
{
	uint64_t value = 0;

	send_message(type, 0, payload, bytes, NULL, 0);
	if (reply(&value, sizeof(value)) != sizeof(value))
		fail("no answer to message %u", type);
	return value;
}

/* Send a message, which must succeed. Returns what REPLY_ACK says. */
static uint64_t tell(uint32_t type, const void *payload, uint32_t bytes, const int *fds,
		     unsigned n_fds)
{
	uint64_t value = 1;

	send_message(type, NEED_REPLY, payload, bytes, fds, n_fds);
	if (reply(&value, sizeof(value)) != sizeof(value))
		fail("connection closed after message %u", type);
	return value;
}

static void must(uint32_t type, const void *payload, uint32_t bytes, const int *fds, unsigned n_fds)
{
	if (tell(type, payload, bytes, fds, n_fds) != 0)
		fail("message %u failed", type);
}

/* -- set up -- */

static void connect_device(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	if (conn >= 0)
		close(conn);
	conn = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	strncpy(address.sun_path, path, sizeof(address.sun_path) - 1);
	if (connect(conn, (struct sockaddr *)&address, sizeof(address)))
		fail("connect: %s", strerror(errno));
}

static void negotiate(void)
{
	const uint64_t wanted = 1ull << VIRTIO_F_VERSION_1 | 1ull << VIRTIO_RING_F_INDIRECT_DESC |
				1ull << VIRTIO_BLK_F_FLUSH | 1ull << VIRTIO_BLK_F_SEG_MAX |
				1ull << VIRTIO_BLK_F_BLK_SIZE | 1ull << 30,
		       protocol = PROTOCOL;

	features = ask(1, NULL, 0) & wanted;
	if (!(features >> VIRTIO_F_VERSION_1 & 1) || !(features >> 30 & 1))
		fail("features 0x%llx", (unsigned long long)features);
	if ((ask(15, NULL, 0) & PROTOCOL) != PROTOCOL)
		fail("protocol features");
	send_message(16, 0, &protocol, 8, NULL, 0);
	must(3, NULL, 0, NULL, 0);
	must(2, &features, 8, NULL, 0);
}

static void read_config(void)
{
	struct {
		uint32_t offset, size, flags;
		struct virtio_blk_config config;
	} m = {.size = sizeof(m.config)};

	send_message(24, 0, &m, 12 + sizeof(m.config), NULL, 0);
	if (reply(&m, sizeof(m)) != 12 + sizeof(m.config))
		fail("no configuration");
	blk_size = m.config.blk_size;
	if (m.config.capacity * SECTOR < MODEL || m.config.seg_max < 2 || blk_size < SECTOR)
		fail("configuration: %llu sectors, seg_max %u, block %u",
		     (unsigned long long)m.config.capacity, m.config.seg_max, blk_size);
}

static void make_memory(int seals)
{
	if (memory_fd >= 0) {
		munmap(low, HALF);
		munmap(high, HALF);
		close(memory_fd);
	}
	memory_fd = memfd_create("guest", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (memory_fd < 0 || ftruncate(memory_fd, 2 * HALF + GAP) ||
	    (seals && fcntl(memory_fd, F_ADD_SEALS, seals)))
		fail("memfd");
	low = mmap(NULL, HALF, PROT_READ | PROT_WRITE, MAP_SHARED, memory_fd, 0);
	high = mmap(NULL, HALF, PROT_READ | PROT_WRITE, MAP_SHARED, memory_fd, HALF + GAP);
	if (low == MAP_FAILED || high == MAP_FAILED)
		fail("mmap");
}

static uint64_t set_memory(void)
{
	const struct {
		uint32_t count, padding;
		struct region region[2];
	} m = {2,
	       0,
	       {{GPA, HALF, (uintptr_t)low, 0}, {GPA + HALF, HALF, (uintptr_t)high, HALF + GAP}}};
	const int fds[2] = {memory_fd, memory_fd};

	return tell(5, &m, sizeof(m), fds, 2);
}

/* Let the device create the memory for requests in flight. */
static void get_inflight(void)
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

	send_message(31, 0, &inflight, sizeof(inflight), NULL, 0);
	if (recvmsg(conn, &msg, MSG_CMSG_CLOEXEC) != sizeof(m) || m[2] != sizeof(inflight) ||
	    !CMSG_FIRSTHDR(&msg))
		fail("no memory for requests in flight");
	memcpy(&inflight, m + 3, sizeof(inflight));
	memcpy(&inflight_fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(int));
	must(32, &inflight, sizeof(inflight), &inflight_fd, 1);
}

static void start_queue(uint16_t base)
{
	const uint32_t num[2] = {0, NUM}, first[2] = {0, base}, on[2] = {0, 1};
	const struct {
		uint32_t index, flags;
		uint64_t desc, used, avail, log;
	} addr = {0, 0, (uintptr_t)low, (uintptr_t)low + USED, (uintptr_t)low + AVAIL, 0};
	const uint64_t index = 0;

	must(8, num, 8, NULL, 0);
	must(10, first, 8, NULL, 0);
	must(9, &addr, sizeof(addr), NULL, 0);
	must(12, &index, 8, &kick, 1);
	must(13, &index, 8, &call, 1);
	must(14, &index, 8, &err, 1);
	must(18, on, 8, NULL, 0);
}

static uint16_t stop_queue(void)
{
	const uint32_t index[2] = {0, 0};
	uint32_t state[2];
	uint64_t value = ask(11, index, 8);

	memcpy(state, &value, sizeof(value));
	return (uint16_t)state[1];
}

static void reset_ring(void)
{
	memset(low, 0, DATA);
	avail_idx = used_idx = 0;
}

static void set_up(void)
{
	connect_device();
	negotiate();
	read_config();
	make_memory(F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW);
	if (set_memory() != 0)
		fail("guest memory is refused");
	kick = eventfd(0, EFD_CLOEXEC);
	call = eventfd(0, EFD_CLOEXEC);
	err = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	reset_ring();
	start_queue(0);
}

/* Set up a device that keeps its requests in flight in memory of the front end. */
static void set_up_inflight(void)
{
	stop_queue();
	get_inflight();
	start_queue(0);
}

/* -- requests -- */

static struct vring_desc *descs(void)
{
	return (struct vring_desc *)(void *)low;
}

static struct vring_avail *avail(void)
{
	return (struct vring_avail *)(void *)(low + AVAIL);
}

static struct vring_used *used(void)
{
	return (struct vring_used *)(void *)(low + USED);
}

static void publish(uint16_t head, uint16_t n)
{
	avail()->ring[avail_idx % NUM] = head;
	avail_idx = (uint16_t)(avail_idx + n);
	__atomic_store_n(&avail()->idx, avail_idx, __ATOMIC_RELEASE);
	eventfd_write(kick, 1);
}

/* Returns 0 if no device answers: that of a process that is ending can still accept. */
static int try_connect(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	uint64_t offered;

	conn = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	strncpy(address.sun_path, path, sizeof(address.sun_path) - 1);
	if (connect(conn, (struct sockaddr *)&address, sizeof(address)) == 0) {
		send_message(1, 0, NULL, 0, NULL, 0);
		if (reply(&offered, sizeof(offered)) == sizeof(offered))
			return 1;
	}
	close(conn);
	return 0;
}

/* The device has ended: connect to the next one, as QEMU does. */
static void reconnect(void)
{
	close(conn);
	for (int ms = 0; !try_connect(); ms += 20)
		if (ms > TIMEOUT_MS || poll(NULL, 0, 20) < 0)
			fail("no device to connect to again");
	negotiate();
	must(32, &inflight, sizeof(inflight), &inflight_fd, 1);
	if (set_memory() != 0)
		fail("guest memory is refused");
	start_queue(used()->idx);
	n_reconnects++;
}

static int has_used(void)
{
	return __atomic_load_n(&used()->idx, __ATOMIC_ACQUIRE) != used_idx;
}

/* Wait for the answer to the request in flight. Returns the bytes written. */
static uint32_t wait_used(void)
{
	while (!has_used()) {
		struct pollfd p[2] = {{.fd = call, .events = POLLIN},
				      {.fd = inflight_fd < 0 ? -1 : conn, .events = POLLIN}};
		eventfd_t value;

		if (poll(p, 2, TIMEOUT_MS) < 1)
			fail("a request is not answered");
		if (p[1].revents)
			reconnect();
		else
			eventfd_read(call, &value);
	}
	n_requests++;
	return used()->ring[used_idx++ % NUM].len;
}

struct piece {
	uint64_t offset; /* in the guest memory */
	uint32_t bytes;
};

/* Write the descriptors of a request: by a chain, by an indirect table, or by a chain to one. */
static void place(const struct vring_desc *d, uint32_t n)
{
	const uint32_t direct = below(3) == 0 ? 0 : below(2) == 0 ? n : 1 + below(2);
	struct vring_desc *table = (struct vring_desc *)(void *)at(TABLE);

	for (uint32_t i = 0; i < n; i++) {
		struct vring_desc one = d[i];
		const uint32_t slot = i < direct ? i : i - direct;

		if (i + 1 < n) {
			one.flags |= VRING_DESC_F_NEXT;
			one.next = (uint16_t)(slot + 1);
		}
		*(i < direct ? &descs()[slot] : &table[slot]) = one;
	}
	if (direct < n)
		descs()[direct] = (struct vring_desc){GPA + TABLE, (n - direct) * 16,
						      VRING_DESC_F_INDIRECT, 0};
}

/* Do a request. Returns its status. */
static uint8_t request(uint32_t type, uint64_t sector, const struct piece *piece, uint32_t n)
{
	struct virtio_blk_outhdr header = {.type = type, .sector = sector};
	const uint16_t in = type == VIRTIO_BLK_T_OUT ? 0 : VRING_DESC_F_WRITE;
	struct vring_desc d[NUM];
	uint32_t bytes = 0, written;

	memcpy(at(HEADER), &header, sizeof(header));
	*at(HEADER + sizeof(header)) = 0x55;
	d[0] = (struct vring_desc){GPA + HEADER, sizeof(header), 0, 0};
	for (uint32_t i = 0; i < n; i++) {
		d[1 + i] = (struct vring_desc){GPA + piece[i].offset, piece[i].bytes, in, 0};
		bytes += piece[i].bytes;
	}
	d[1 + n] = (struct vring_desc){GPA + HEADER + sizeof(header), 1, VRING_DESC_F_WRITE, 0};
	place(d, n + 2);
	publish(0, 1);
	written = wait_used();
	if (written != (in ? bytes : 0) + 1)
		fail("%u bytes are written, not %u", written, bytes + 1);
	return (uint8_t)*at(HEADER + sizeof(header));
}

static void copy(const struct piece *piece, uint32_t n, int to_guest)
{
	uint8_t *p = flat;

	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < piece[i].bytes; k++, p++)
			if (to_guest)
				*at(piece[i].offset + k) = (char)*p;
			else
				*p = (uint8_t)*at(piece[i].offset + k);
}

/* Divide a request into pieces that do not overlap. Returns their number. */
static uint32_t divide(struct piece *piece, uint32_t bytes)
{
	const uint32_t unit = below(2) ? blk_size : SECTOR >> below(3), most = 1 + below(30);
	/* the request is in the first region, in the second, or in both */
	uint64_t offset = below(3) == 0 ? HALF - bytes / 2 / SECTOR * SECTOR
			  : below(2)    ? DATA + below(4) * unit
					: HALF + DATA + below(4) * unit;
	uint32_t n = 0;

	while (bytes != 0) {
		uint32_t part = n + 1 == most ? bytes : unit * (1 + below(bytes / unit));

		if (part > bytes)
			part = bytes;
		piece[n++] = (struct piece){offset, part};
		offset += part + (below(2) ? unit : 0);
		bytes -= part;
	}
	return n;
}

static void write_some(uint64_t offset, uint32_t bytes)
{
	struct piece piece[NUM];
	const uint32_t n = divide(piece, bytes);

	for (uint32_t i = 0; i < bytes; i++)
		flat[i] = (uint8_t)gantry_random_next(&random_state);
	copy(piece, n, 1);
	memcpy(model + offset, flat, bytes);
	if (request(VIRTIO_BLK_T_OUT, offset / SECTOR, piece, n) != VIRTIO_BLK_S_OK)
		fail("write of %u bytes at %llu failed", bytes, (unsigned long long)offset);
}

static void read_some(uint64_t offset, uint32_t bytes)
{
	struct piece piece[NUM];
	const uint32_t n = divide(piece, bytes);

	memset(flat, 0xee, bytes);
	copy(piece, n, 1);
	if (request(VIRTIO_BLK_T_IN, offset / SECTOR, piece, n) != VIRTIO_BLK_S_OK)
		fail("read of %u bytes at %llu failed", bytes, (unsigned long long)offset);
	copy(piece, n, 0);
	if (memcmp(flat, model + offset, bytes) != 0)
		fail("a read has wrong data (offset=%llu, bytes=%u, pieces=%u)",
		     (unsigned long long)offset, bytes, n);
}

static void fill_model(void)
{
	for (uint32_t offset = 0; offset < MODEL; offset += 1 << 17)
		write_some(offset, 1 << 17);
}

static void use(unsigned n)
{
	const uint32_t blocks = MODEL / blk_size;

	while (n-- > 0) {
		const uint32_t count = 1 + below(sizeof(flat) / 2 / blk_size);
		const uint64_t offset = (uint64_t)below(blocks - count) * blk_size;

		if (below(2))
			write_some(offset, count * blk_size);
		else
			read_some(offset, count * blk_size);
	}
	if (request(VIRTIO_BLK_T_FLUSH, 0, NULL, 0) != VIRTIO_BLK_S_OK)
		fail("flush failed");
}

static void verify_all(void)
{
	for (uint32_t offset = 0; offset < MODEL; offset += 1 << 17)
		read_some(offset, 1 << 17);
}

static void verify(void)
{
	const struct piece id = {DATA, VIRTIO_BLK_ID_BYTES}, block = {DATA, blk_size},
			   odd = {DATA, 100};

	fill_model();
	use(400);
	verify_all();
	if (request(VIRTIO_BLK_T_GET_ID, 0, &id, 1) != VIRTIO_BLK_S_OK)
		fail("the serial number cannot be read");
	printf("serial %.20s\n", at(DATA));
	if (request(VIRTIO_BLK_T_IN, UINT64_MAX / SECTOR, &block, 1) != VIRTIO_BLK_S_IOERR ||
	    request(VIRTIO_BLK_T_IN, UINT64_MAX, &block, 1) != VIRTIO_BLK_S_IOERR ||
	    request(VIRTIO_BLK_T_IN, 0, &odd, 1) != VIRTIO_BLK_S_IOERR)
		fail("a read outside the disk or of no whole block succeeds");
	if (request(99, 0, NULL, 0) != VIRTIO_BLK_S_UNSUPP)
		fail("an unknown request succeeds");
	verify_all();
}

static void run(const char *until)
{
	fill_model();
	while (access(until, F_OK) != 0)
		use(50);
	verify_all();
	printf("%lu requests, %lu devices\n", n_requests, 1 + n_reconnects);
}

/* -- hostile rings -- */

#define W VRING_DESC_F_WRITE
#define N VRING_DESC_F_NEXT
#define I VRING_DESC_F_INDIRECT

static const struct hostile {
	const char *what;
	struct vring_desc d[4]; /* an address below HALF counts from GPA */
	uint16_t head, n;       /* n: how far the index goes */
} hostiles[] = {
	{"a loop of one", {{HEADER, 16, N, 0}}, 0, 1},
	{"a loop of two", {{HEADER, 16, N, 1}, {DATA, 512, N, 0}}, 0, 1},
	{"a descriptor outside the table", {{HEADER, 16, N, NUM}}, 0, 1},
	{"a head outside the table", {{HEADER, 16, 0, 0}}, NUM, 1},
	{"an index that jumps", {{HEADER, 16, 0, 0}}, 0, NUM + 1},
	{"an address outside the memory", {{HEADER, 16, N, 1}, {~0ull - 511, 512, W, 0}}, 0, 1},
	{"an address that wraps around", {{HEADER, 16, N, 1}, {~0ull - 99, 512, W, 0}}, 0, 1},
	{"an end outside the memory", {{HEADER, 16, N, 1}, {DATA, 3 * HALF, W, 0}}, 0, 1},
	{"a length of 4 GiB", {{HEADER, 16, N, 1}, {DATA, ~0u, W | N, 2}, {DATA, ~0u, W, 0}}, 0, 1},
	{"no header", {{HEADER, 15, N, 1}, {HEADER + 16, 1, W, 0}}, 0, 1},
	{"no status", {{HEADER, 16, N, 1}, {DATA, 512, 0, 0}}, 0, 1},
	{"only an empty status", {{HEADER, 16, N, 1}, {DATA, 0, W, 0}}, 0, 1},
	{"readable after writable",
	 {{HEADER, 16, N, 1}, {DATA, 512, W | N, 2}, {DATA, 1, 0, 0}},
	 0,
	 1},
	{"a table outside the memory", {{~0ull - 4095, 64, I, 0}}, 0, 1},
	{"a table in two regions", {{HALF - 16, 64, I, 0}}, 0, 1},
	{"a table of a wrong length", {{TABLE, 24, I, 0}}, 0, 1},
	{"an empty table", {{TABLE, 0, I, 0}}, 0, 1},
	{"a table that is not aligned", {{TABLE + 1, 64, I, 0}}, 0, 1},
	{"a table with a successor", {{TABLE, 64, I | N, 1}, {HEADER, 16, 0, 0}}, 0, 1},
	{"a table in a table", {{0, 64, I, 0}}, 0, 1},
};

/* Wait until the device reports that the ring is broken. */
static void wait_broken(const char *what)
{
	struct pollfd p = {.fd = err, .events = POLLIN};
	eventfd_t value;

	if (poll(&p, 1, TIMEOUT_MS) != 1)
		fail("%s: the device does not notice", what);
	eventfd_read(err, &value);
	if (has_used())
		fail("%s: the request is answered", what);
}

static void hostile(void)
{
	fill_model();
	for (size_t i = 0; i < sizeof(hostiles) / sizeof(hostiles[0]); i++) {
		const struct hostile *h = &hostiles[i];

		for (unsigned k = 0; k < 4; k++) {
			descs()[k] = h->d[k];
			if (h->d[k].addr < 2 * HALF)
				descs()[k].addr += GPA;
		}
		publish(h->head, h->n);
		wait_broken(h->what);
		ask(1, NULL, 0); /* the device still answers */
		stop_queue();
		reset_ring();
		start_queue(0);
		use(2);
	}
	verify_all();
	printf("%zu rings\n", sizeof(hostiles) / sizeof(hostiles[0]));
}

/* -- hostile messages -- */

static const struct wrong {
	const char *what;
	uint32_t type, flags, size;
	uint64_t payload[2];
	unsigned n_fds;
} wrongs[] = {
	{"an unknown request", 99, 1, 0, {0}, 0},
	{"request 0", 0, 1, 0, {0}, 0},
	{"version 2", 1, 2, 0, {0}, 0},
	{"a reply", 1, 5, 0, {0}, 0},
	{"a payload that is too long", 2, 1, 16, {0}, 0},
	{"a payload of 4 GiB", 2, 1, ~0u, {0}, 0},
	{"features that were not offered", 2, 1, 8, {1ull << 63}, 0},
	{"protocol features that were not offered", 16, 1, 8, {1ull << 63}, 0},
	{"a queue that does not exist", 8, 1, 8, {(uint64_t)NUM << 32 | 16}, 0},
	{"a ring of 3 entries", 8, 1, 8, {3ull << 32}, 0},
	{"a ring of 65536 entries", 8, 1, 8, {65536ull << 32}, 0},
	{"more regions than the size", 5, 1, 8, {8}, 0},
	{"2^32 - 1 regions", 5, 1, 8, {~0u}, 0},
	{"a kick without memory", 12, 1, 8, {0}, 1},
	{"a kick without a descriptor", 12, 1, 8, {0}, 0},
	{"a descriptor with the flag for none", 13, 1, 8, {0x100}, 1},
	{"a descriptor that is no eventfd", 13, 1, 8, {0}, 1},
	{"8 descriptors too many", 13, 1, 8, {0}, 9},
	{"60 descriptors", 5, 1, 8, {0}, 60},
	{"memory for requests in flight of no queue", 31, 1, 20, {0}, 0},
	{"memory for requests in flight that is no memory", 32, 1, 20, {4096}, 1},
	{"a range outside the configuration", 24, 1, 12, {255ull | 8ull << 32}, 0},
};

static void messages(void)
{
	char c;

	for (size_t i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++) {
		const struct wrong *w = &wrongs[i];
		const uint32_t size = w->size < 20 ? w->size : 20;
		uint32_t m[8] = {w->type, w->flags, w->size};
		struct pollfd p = {.events = POLLIN};
		int fds[60];

		for (unsigned k = 0; k < 60; k++)
			fds[k] = STDIN_FILENO;
		memcpy(m + 3, w->payload, sizeof(w->payload));
		connect_device();
		send_raw(m, 12 + size, fds, w->n_fds);
		p.fd = conn;
		if (poll(&p, 1, TIMEOUT_MS) != 1 || recv(conn, &c, 1, 0) > 0)
			fail("%s: the connection is not closed", w->what);
	}
	set_up();
	verify();
	printf("%zu messages\n", sizeof(wrongs) / sizeof(wrongs[0]));
}

static void memory(void)
{
	connect_device();
	negotiate();
	make_memory(0);
	if (set_memory() != 1)
		fail("memory without seals is accepted");
	make_memory(F_SEAL_SHRINK);
	if (set_memory() != 1)
		fail("memory that can grow is accepted");
	set_up();
	verify();
}

static void replace(void)
{
	fill_model();
	for (unsigned i = 0; i < 10; i++) {
		uint16_t base;

		use(20);
		/* the rings are in the memory, so they stop first, as in a real guest */
		if (i % 2) {
			if (set_memory() != 0) /* the same memory, while the queue runs */
				fail("memory cannot be set again");
			continue;
		}
		base = stop_queue();
		if (base != avail_idx)
			fail("base %u, not %u", base, avail_idx);
		make_memory(F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW);
		if (set_memory() != 0)
			fail("memory cannot be replaced");
		reset_ring();
		start_queue(0);
	}
	verify_all();
}

int main(int argc, char **argv)
{
	const char *command = argc > 2 ? argv[2] : "";

	gantry_random_seed(&random_state, 5);
	path = argv[1];
	if (strcmp(command, "messages") == 0) {
		messages();
		return 0;
	}
	if (strcmp(command, "memory") == 0) {
		memory();
		return 0;
	}
	set_up();
	if (strcmp(command, "verify") == 0)
		verify();
	else if (strcmp(command, "run") == 0 && argc == 4)
		run(argv[3]);
	else if (strcmp(command, "survive") == 0 && argc == 4) {
		set_up_inflight();
		run(argv[3]);
	} else if (strcmp(command, "hostile") == 0)
		hostile();
	else if (strcmp(command, "replace") == 0)
		replace();
	else
		fail("usage: virtio_user SOCKET COMMAND [ARGUMENT]");
	return 0;
}
