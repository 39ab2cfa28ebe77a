/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A whole connection of shm-comch gets frames from the input: any bytes, any order, with file
 * descriptors of several kinds. Between frames the peer writes to its ring and its credit page, and
 * the user at this end exports, sends, receives and copies. comch_frame_check() must not accept a
 * malformed frame, and such a frame must end the connection. At the end of the connection, the
 * process must have as many file descriptors and mappings, and as much memory, as before.
 *
 * Device and listener stay open from one input to the next. An input begins with a connection that
 * the device has not accepted. Time passes only when the input says so.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * A second copy of shm_frame.c with other names, which decides here whether a frame is malformed.
 * mutants.sh seeds bugs into the copy of the product only.
 */
#define comch_frame_check expected_check
#define comch_frame_init fill_frame
#include "../../plugins/transport/shm-comch/shm_frame.c"
#include "../../plugins/transport/shm-comch/shm_ring.h"
#include "fake/host.h"
#include "fuzz/quick_fd.h"
#include "fuzz/quick_map.h"
#include "fuzz/quick_socket.h"
#include "fuzz/require.h"
#include "fuzz/rewind.h"

#define RING_BYTES 65536u
#define DATA_BYTES 512u
#define TIME_NS 10000000ull /* unit of the time that an input lets pass */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FD_SEALED, FD_OPEN, FD_PAGE, FD_BELL, FD_NULL, FD_RING, FD_KINDS };

extern const struct gantry_plugin shm_comch_LTX_gantry_plugin;

static const struct gantry_transport_ops *ops;
static struct fake_host host;
static void *conf, *device, *listener, *conn, *region, *consumers[4], *producers[4];
static uint32_t n_consumers, n_producers;
static void *rma;
static struct gantry_region exported;
/* memory of the peer: FD_RING and FD_PAGE; *_used: bytes that this input has written */
static uint8_t *ring, *page;
static size_t ring_used, page_used;
static int is_copied; /* the user has written to a region of the peer */
static int kinds[FD_KINDS];
static char dir[] = "dir=/tmp/gantry-fuzz-XXXXXX";
static struct gantry_device_info info;
static int is_bad; /* the last frame was malformed */
/* resources of the device without a connection */
static unsigned fds_kept, maps_kept, blocks_kept;

/* Release the imported region, after its copies in flight have completed. */
static void release(void)
{
	if (!region)
		return;
	if (rma)
		ops->rma_flush(rma);
	ops->release_region(conn, region);
	region = NULL;
}

static void let_go(void)
{
	if (rma)
		ops->rma_destroy(rma);
	rma = NULL;
	while (n_producers)
		ops->producer_destroy(producers[--n_producers]);
	while (n_consumers)
		ops->consumer_destroy(consumers[--n_consumers]);
	release();
	if (conn)
		ops->disconnect(conn);
	conn = NULL;
}

static int on_accept(void *arg, void *c, const struct gantry_peer *peer, void **conn_arg_p)
{
	struct gantry_queue_attr attr = {.depth = 8, .max_data = DATA_BYTES};
	uint32_t id;

	(void)arg;
	(void)peer;
	conn = c;
	*conn_arg_p = NULL;
	if (ops->consumer_create(conn, &attr, &id, &consumers[0]) == 0)
		n_consumers = 1;
	return 0;
}

static void on_message(void *arg, void *c, const void *msg, size_t len)
{
	struct gantry_token token;
	struct gantry_region *r;

	(void)arg;
	require(c == conn && len >= 1 && len <= GANTRY_CTRL_MAX);
	if (len < sizeof(token) || len > sizeof(token) + 1 || region)
		return;
	memcpy(&token, msg, sizeof(token));
	/* a further byte requests GANTRY_IMPORT_KEEPS_PAGES */
	if (ops->import_region(conn, &token,
			       len > sizeof(token) ? GANTRY_IMPORT_MAP | GANTRY_IMPORT_KEEPS_PAGES
						   : GANTRY_IMPORT_MAP,
			       &r) == 0)
		region = r;
}

static void on_consumer(void *arg, void *c, uint32_t id, int up)
{
	struct gantry_queue_attr attr = {.depth = 8, .max_data = DATA_BYTES};

	(void)arg;
	if (up && n_producers < 4 &&
	    ops->producer_create(c, id, &attr, &producers[n_producers]) == 0)
		n_producers++;
}

static void on_revoke(void *arg, void *c, uint32_t handle)
{
	(void)arg;
	(void)handle;
	require(c == conn && region);
	release();
}

static void on_revoked(void *arg, void *c, uint32_t handle, int rc)
{
	(void)arg;
	(void)c;
	(void)handle;
	(void)rc;
}

static void on_closed(void *arg, void *c, int reason)
{
	(void)arg;
	require(c == conn && reason < 0);
	let_go();
}

static const struct gantry_conn_events events = {.accept = on_accept,
						 .message = on_message,
						 .consumer = on_consumer,
						 .revoke = on_revoke,
						 .revoked = on_revoked,
						 .closed = on_closed};

static void remove_dir(void)
{
	ops->unlisten(listener);
	ops->close(device);
	free(conf);
	rmdir(info.detail);
	rmdir(dir + 4);
}

static int memory(size_t size, int seals)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	require(fd >= 0 && fallocate(fd, 0, 0, (off_t)size) == 0 &&
		(!seals || fcntl(fd, F_ADD_SEALS, seals) == 0));
	return fd;
}

/*
 * Create a file descriptor of each kind. The writable mappings of the peer are made first:
 * F_SEAL_FUTURE_WRITE forbids only later ones.
 */
static void make_kinds(void)
{
	kinds[FD_SEALED] = memory(65536, F_SEAL_SHRINK | F_SEAL_GROW);
	kinds[FD_OPEN] = memory(65536, 0);
	kinds[FD_PAGE] = memory(COMCH_PAGE_BYTES, F_SEAL_SHRINK | F_SEAL_GROW);
	kinds[FD_RING] = memory(RING_BYTES, F_SEAL_SHRINK | F_SEAL_GROW);
	ring = (uint8_t *)quick_map_share(kinds[FD_RING], RING_BYTES);
	page = (uint8_t *)quick_map_share(kinds[FD_PAGE], COMCH_PAGE_BYTES);
	exported = (struct gantry_region){.addr = quick_map_share(kinds[FD_SEALED], 65536),
					  .length = 65536,
					  .fd = kinds[FD_SEALED],
					  .rights = GANTRY_REMOTE_READ | GANTRY_REMOTE_WRITE};
	kinds[FD_BELL] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	require(fcntl(kinds[FD_PAGE], F_ADD_SEALS, F_SEAL_FUTURE_WRITE) == 0 &&
		fcntl(kinds[FD_RING], F_ADD_SEALS, F_SEAL_FUTURE_WRITE) == 0);
	kinds[FD_NULL] = open("/dev/null", O_RDWR | O_CLOEXEC);
}

static void say_hello(void)
{
	struct comch_frame hello = {.hello = {0}};

	comch_frame_init(&hello, COMCH_HELLO, sizeof(hello.hello));
	quick_socket_send(&hello, sizeof(hello.head) + sizeof(hello.hello), NULL, 0);
}

static void leave(void)
{
	quick_socket_hang_up();
	while (ops->progress(device))
		;
	let_go();
	ops->progress(device);
}

/* Open the device. A first connection lets it create the objects that it keeps. */
static void open_device(void)
{
	const struct gantry_plugin *plugin = &shm_comch_LTX_gantry_plugin;

	ops = plugin->ops;
	require(mkdtemp(dir + 4) != NULL);
	fake_host_init(&host, "fuzz");
	conf = fake_conf(plugin, dir, "ring_slots=128", NULL);
	require(ops->open(&host.pub, conf, &device) == 0);
	require(ops->listen(device, "fuzz", &events, NULL, &listener) == 0);
	ops->info(device, &info);
	make_kinds();
	atexit(remove_dir);
	quick_socket_connect();
	say_hello();
	ops->progress(device); /* accepts the connection */
	ops->progress(device);
	require(conn && n_consumers == 1);
	leave();
	rewind_trim();
	fds_kept = quick_fd_count();
	maps_kept = quick_map_count();
	blocks_kept = rewind_count();
}

static void begin(void)
{
	if (rewind_begin())
		return;
	if (!device)
		open_device();
	quick_socket_connect();
	rewind_mark();
}

/*
 * Check comch_frame_check(): a frame that it accepts in any phase must have a known type, the
 * length that its header states, and at most COMCH_FDS_MAX file descriptors.
 */
static void check_the_check(const struct comch_frame *f, size_t len, unsigned int n_fds)
{
	for (unsigned int phase = 1; phase < 4; phase++)
		if (!comch_frame_check(f, len, n_fds, phase))
			require(len >= sizeof(f->head) && len == sizeof(f->head) + f->head.length &&
				n_fds <= COMCH_FDS_MAX && f->head.type &&
				f->head.type < COMCH_TYPES && f->head.length <= GANTRY_CTRL_MAX);
}

/* -- the user at this end -- */

static void receive(unsigned how)
{
	static uint8_t buffer[DATA_BYTES]; /* shared by all receives */
	struct gantry_recv recv = {.buf = buffer, .length = DATA_BYTES};
	struct gantry_msg msgs[4];
	int n;

	if (!n_consumers)
		return;
	if (how & 1)
		ops->data->post_recv(consumers[0], &recv, 1);
	if (how & 2) {
		ops->consumer_arm(consumers[0]);
		ops->consumer_disarm(consumers[0]);
	}
	n = ops->poll_recv(consumers[0], msgs, 4);
	require(n <= 4);
	for (int i = 0; i < n; i++)
		require(msgs[i].imm_len <= GANTRY_IMM_MAX && msgs[i].length <= DATA_BYTES);
}

static void send_some(unsigned how, unsigned length)
{
	static const uint8_t data[DATA_BYTES];
	struct gantry_send send = {.imm = data, .imm_len = how % (GANTRY_IMM_MAX + 1), .cookie = 1};
	uint64_t cookies[8];
	int n;

	if (!n_producers)
		return;
	if (how & 64) {
		send.region = &exported;
		send.length = length;
	} else if (how & 128) {
		send.data = data;
		send.length = length;
	}
	ops->data->send(producers[length % n_producers], &send, length & 1 ? GANTRY_SEND_MORE : 0);
	ops->flush(producers[length % n_producers]);
	n = ops->data->poll_send(producers[length % n_producers], cookies, 8);
	require(n <= 8);
}

static void copy(unsigned how, unsigned offset)
{
	static uint8_t local[DATA_BYTES];
	struct gantry_queue_attr attr = {.depth = 4};
	struct gantry_rma op = {.op = how & 1 ? GANTRY_RMA_WRITE : GANTRY_RMA_READ,
				.length = how * 2,
				.local = local,
				.remote = region,
				.remote_offset = offset * 17};
	struct gantry_rma_done done[4];

	if (!rma && ops->rma_create(conn, &attr, &rma) != 0)
		rma = NULL;
	if (!rma || !region)
		return;
	is_copied = 1;
	ops->rma_submit(rma, &op);
	if (how & 2)
		require(ops->rma_poll(rma, done, 4) <= 4);
}

static void queues(unsigned how)
{
	struct gantry_queue_attr attr = {.depth = 8, .max_data = DATA_BYTES};
	uint32_t id;

	if (how & 1 && n_consumers < 4 &&
	    ops->consumer_create(conn, &attr, &id, &consumers[n_consumers]) == 0)
		n_consumers++;
	if (how & 2 && n_producers)
		ops->producer_destroy(producers[--n_producers]);
	if (how & 4 && n_consumers)
		ops->consumer_destroy(consumers[--n_consumers]);
}

static void user(const uint8_t *p)
{
	struct gantry_token token;

	if (p[1] % 8 == 7)
		host.now_ns += p[2] * TIME_NS;
	if (!conn)
		return;
	switch (p[1] % 8) {
	case 0:
		ops->export_region(conn, &exported, 1 + p[2] % 3, p[3] % 8, &token);
		break;
	case 1:
		ops->revoke_region(conn, p[3] % 8);
		break;
	case 2:
		ops->send_ctrl(conn, ring, 1 + p[2]);
		break;
	case 3:
		receive(p[2]);
		break;
	case 4:
		send_some(p[2], p[3]);
		break;
	case 5:
		copy(p[2], p[3]);
		break;
	case 6:
		queues(p[2]);
		break;
	default:
		release();
		break;
	}
}

/* The peer writes to its ring or its credit page, from a given word on. */
static void write_shared(const uint8_t *p, const uint8_t *bytes, size_t len)
{
	size_t at = (p[2] | (p[3] & 15u) << 8) * 8u;
	size_t *used = p[3] & 128 ? &page_used : &ring_used;
	size_t size = p[3] & 128 ? COMCH_PAGE_BYTES : RING_BYTES;

	if (at + len > size)
		return;
	memcpy((p[3] & 128 ? page : ring) + at, bytes, len);
	if (*used < at + len)
		*used = at + len;
}

/* Clear shared memory, so that an input does not depend on earlier ones. */
static void clear_shared(void)
{
	memset(ring, 0, ring_used);
	memset(page, 0, page_used);
	if (is_copied)
		memset(exported.addr, 0, exported.length);
	ring_used = page_used = 0;
	is_copied = 0;
}

/*
 * One step of the input: p[0] is its kind, p[1] the number of bytes that follow p[3]. For a frame,
 * p[2] is the number of its file descriptors, p[3] selects their kinds. The kinds of a step:
 *     from 0x80    the peer sends the bytes as a frame
 *     from 0x60    the user acts; no bytes follow
 *     from 0x40    the peer writes the bytes to shared memory
 *     below        the peer sends a frame with a valid header; its type can be unknown
 */
static size_t one_step(const uint8_t *p, size_t left)
{
	static struct comch_frame f;
	size_t len = p[1], used = 4;
	unsigned int n = p[2] % (QUICK_SOCKET_FDS + 1);
	int fds[QUICK_SOCKET_FDS];

	if ((p[0] & 0xe0) == 0x60) {
		user(p);
		return used;
	}
	for (unsigned int i = 0; i < n; i++)
		fds[i] = kinds[(p[3] >> (2 * i)) % FD_KINDS];
	if (len > left - used)
		len = left - used;
	if ((p[0] & 0xe0) == 0x40) {
		write_shared(p, p + used, len);
		return used + len;
	}
	memset(&f, 0, sizeof(f.head));
	if (p[0] & 0x80) { /* a frame of any bytes */
		memcpy(&f, p + used, len);
	} else {
		memcpy(f.data, p + used, len);
		comch_frame_init(&f, COMCH_DATA, 0);
		f.head.type = p[0] % (COMCH_TYPES + 1);
		f.head.length = (uint32_t)len;
		len += sizeof(f.head);
	}
	check_the_check(&f, len, n);
	is_bad = quick_socket_send(&f, len, fds, n) &&
		 comch_frame_check(&f, len, n, COMCH_P_HELLO | COMCH_P_OPEN);
	return used + (p[0] & 0x80 ? len : len - sizeof(f.head));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	begin();
	host.log_used = 0;
	is_bad = 0;
	if (size && data[0] & 1)
		say_hello();
	for (size_t at = 1; at + 4 <= size;) {
		at += one_step(data + at, size - at);
		ops->progress(device);
		require(!is_bad || !conn);
	}
	leave();
	clear_shared();
	require(quick_fd_count() == fds_kept && quick_map_count() == maps_kept);
	rewind_end(blocks_kept);
	return 0;
}
