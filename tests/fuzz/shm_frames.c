/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A whole connection of shm-comch fed with frames from the input: any bytes, any order, descriptors
 * of several kinds.
 * When it is over, the process has as many descriptors as before, and no frame that the check let
 * through was malformed. A malformed frame ends the connection.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../../plugins/transport/shm-comch/frame.c"
#include "../../plugins/transport/shm-comch/ring.h"
#include "fake/host.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FD_SEALED, FD_OPEN, FD_PAGE, FD_BELL, FD_NULL, FD_RING, FD_KINDS };

static const struct gantry_transport_ops *ops;
static struct fake_host host;
static void *conf, *device, *listener, *conn, *region, *consumers[4], *producers[4];
static uint32_t n_consumers, n_producers;
static int kinds[FD_KINDS];
static char dir[] = "dir=/tmp/gantry-fuzz-XXXXXX";
static struct gantry_device_info info;
static int is_bad; /* the last frame was malformed */

static void require(int ok)
{
	if (!ok)
		abort();
}

static unsigned int count_fds(void)
{
	struct pollfd fds[64];
	unsigned int n = 0;

	for (int fd = 0; fd < 64; fd++)
		fds[fd] = (struct pollfd){.fd = fd};
	require(poll(fds, 64, 0) >= 0);
	for (int fd = 0; fd < 64; fd++)
		n += !(fds[fd].revents & POLLNVAL);
	return n;
}

static void let_go(void)
{
	while (n_producers)
		ops->producer_destroy(producers[--n_producers]);
	while (n_consumers)
		ops->consumer_destroy(consumers[--n_consumers]);
	if (region)
		ops->release_region(conn, region);
	if (conn)
		ops->disconnect(conn);
	region = conn = NULL;
}

static int on_accept(void *arg, void *c, const struct gantry_peer *peer, void **conn_arg_p)
{
	struct gantry_queue_attr attr = {.depth = 8, .max_data = 512};
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
	if (len != sizeof(token) || region)
		return;
	memcpy(&token, msg, sizeof(token));
	if (ops->import_region(conn, &token, GANTRY_IMPORT_MAP, &r) == 0)
		region = r;
}

static void on_consumer(void *arg, void *c, uint32_t id, int up)
{
	struct gantry_queue_attr attr = {.depth = 8, .max_data = 512};

	(void)arg;
	if (up && n_producers < 4 &&
	    ops->producer_create(c, id, &attr, &producers[n_producers]) == 0)
		n_producers++;
}

static void on_revoke(void *arg, void *c, uint32_t handle)
{
	(void)arg;
	(void)handle;
	require(region != NULL);
	ops->release_region(c, region);
	region = NULL;
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

static void set_up(void)
{
	const struct gantry_plugin *plugin = fake_plugin("shm-comch");

	ops = plugin->ops;
	require(mkdtemp(dir + 4) != NULL);
	fake_host_init(&host, "fuzz");
	host.real_clock = 1;
	conf = fake_conf(plugin, dir, "ring_slots=128", NULL);
	require(ops->open(&host.pub, conf, &device) == 0);
	require(ops->listen(device, "fuzz", &events, NULL, &listener) == 0);
	ops->info(device, &info);
	kinds[FD_SEALED] = memory(65536, F_SEAL_SHRINK | F_SEAL_GROW);
	kinds[FD_OPEN] = memory(65536, 0);
	kinds[FD_PAGE] = memory(COMCH_PAGE_BYTES,
				F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE);
	kinds[FD_RING] = memory(65536, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE);
	kinds[FD_BELL] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	kinds[FD_NULL] = open("/dev/null", O_RDWR | O_CLOEXEC);
	atexit(remove_dir);
}

/* Returns whether it went: the other end may have hung up already. */
static int send_frame(int fd, const void *bytes, size_t len, const int *fds, unsigned int n_fds)
{
	char control[CMSG_SPACE(sizeof(int) * 4)] __attribute__((aligned(8))) = {0};
	struct iovec iov = {(void *)(uintptr_t)bytes, len};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	if (n_fds) {
		struct cmsghdr *c;

		msg.msg_control = control;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * n_fds);
	}
	return sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

/* What passed has exactly the body of its type. */
static void check_the_check(const struct comch_frame *f, size_t len, unsigned int n_fds)
{
	for (unsigned int phase = 1; phase < 4; phase++)
		if (!comch_frame_check(f, len, n_fds, phase))
			require(len >= sizeof(f->head) && len == sizeof(f->head) + f->head.length &&
				n_fds <= COMCH_FDS_MAX && f->head.type &&
				f->head.type < COMCH_TYPES && f->head.length <= GANTRY_CTRL_MAX);
}

/* One frame: how it is made, its length, its descriptors, its bytes. */
static size_t one_frame(int fd, const uint8_t *p, size_t left)
{
	static struct comch_frame f;
	size_t len = p[1], used = 4;
	unsigned int n_fds = p[2] % 5;
	int fds[4];

	for (unsigned int i = 0; i < n_fds; i++)
		fds[i] = kinds[(p[3] >> (2 * i)) % FD_KINDS];
	if (len > left - used)
		len = left - used;
	memset(&f, 0, sizeof(f.head));
	if (p[0] & 0x80) { /* raw */
		memcpy(&f, p + used, len);
	} else {
		memcpy(f.data, p + used, len);
		comch_frame_init(&f, COMCH_DATA, 0);
		f.head.type = p[0] % (COMCH_TYPES + 1);
		f.head.length = (uint32_t)len;
		len += sizeof(f.head);
	}
	check_the_check(&f, len, n_fds);
	is_bad = send_frame(fd, &f, len, fds, n_fds) &&
		 comch_frame_check(&f, len, n_fds, COMCH_P_HELLO | COMCH_P_OPEN);
	return used + (p[0] & 0x80 ? len : len - sizeof(f.head));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	unsigned int before;
	int fd;

	if (!device)
		set_up();
	host.log_used = 0;
	before = count_fds();
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	snprintf(sun.sun_path, sizeof(sun.sun_path), "%.80s/fuzz.sock", info.detail);
	require(fd >= 0 && connect(fd, (struct sockaddr *)&sun, sizeof(sun)) == 0);
	if (size && data[0] & 1) {
		struct comch_frame hello = {.hello = {0}};

		comch_frame_init(&hello, COMCH_HELLO, sizeof(hello.hello));
		send_frame(fd, &hello, sizeof(hello.head) + sizeof(hello.hello), NULL, 0);
	}
	for (size_t at = 1; at + 4 <= size;) {
		at += one_frame(fd, data + at, size - at);
		ops->progress(device);
		require(!is_bad || !conn);
	}
	close(fd);
	while (ops->progress(device))
		;
	let_go();
	ops->progress(device);
	require(count_fds() == before);
	return 0;
}
