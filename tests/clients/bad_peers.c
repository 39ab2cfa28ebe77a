/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hostile peers that are permitted to connect. While a process of one user misbehaves, a process of
 * another user can still open the volume, write, and read back its data. Needs root, for a second
 * user.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../plugins/transport/shm-comch/shm_wire.h"
#include "clients/served.h"
#include "unity.h"

#define BLOCK SERVED_BLOCK
#define NOBODY 65534u
#define SOCKETS 200
#define REGION_MIB 64
#define PUNCH (1u << 20) /* bytes that each call of punch() frees */
#define WHY 512          /* bytes of the buffer for an error text */
#define VISITS 5
#define BLOCKS 16
#define FDS_MOST 64u   /* descriptors in a message */
#define FILES 512u     /* descriptor limit of the target, in the case about descriptors */
#define HALF_OPEN 60   /* connections; below listen.max_half_open, so the limit ends none of them */
#define CONSUMERS 384u /* consumers of a connection */
#define PAGE_BYTES 8192

static const struct served_options shared = {
	.device = "uids = \"0,65534\";",
	.backend = "type = \"memory\"; size = \"64MiB\";",
	.listen = "uids = \"0,65534\"; max_sessions = 8; max_region_bytes = \"64MiB\";",
	.connect = "timeout = \"50s\"; io_timeout = \"50s\";",
};

static struct gantry_volume *volume;
static struct gantry_queue *queue;
static struct gantry_volume_attr attr;
static pid_t bad;
static int said_ready;
static int ready; /* pipe: the peer writes a byte when it has all resources that it can get */

void setUp(void)
{
	attr = (struct gantry_volume_attr)GANTRY_VOLUME_ATTR_INIT;
	volume = NULL;
	queue = NULL;
	bad = 0;
	served_files = 0;
}

void tearDown(void)
{
	if (bad > 0) {
		kill(-bad, SIGKILL);
		waitpid(bad, NULL, 0);
		close(ready);
	}
	served_finish(&queue, &volume);
}

/* -- the hostile peer: a process, with its own process group, of another user -- */

static void say_ready(void)
{
	if (!said_ready && write(ready, "", 1) != 1)
		_exit(3);
	said_ready = 1;
}

static int connect_raw(void)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	snprintf(name.sun_path, sizeof(name.sun_path), "%s/04%%3A00.0/store.sock", served_dir);
	if (fd < 0)
		_exit(4);
	connect(fd, (struct sockaddr *)&name, sizeof(name)); /* the server may reject it */
	return fd;
}

static void send_hello(int fd)
{
	struct comch_frame frame = {.head = {.magic = COMCH_MAGIC,
					     .version = COMCH_VERSION,
					     .type = COMCH_HELLO,
					     .length = sizeof(struct comch_hello)}};

	if (send(fd, &frame, sizeof(frame.head) + sizeof(frame.hello), MSG_NOSIGNAL) < 0)
		return; /* the server has rejected the connection */
}

static void hang(void)
{
	say_ready();
	for (;;)
		pause();
}

static void sends_nothing(void)
{
	for (int i = 0; i < SOCKETS; i++)
		connect_raw();
	hang();
}

static void opens_no_session(void)
{
	for (int i = 0; i < SOCKETS; i++)
		send_hello(connect_raw());
	hang();
}

/* Sends single bytes, which are not frames. */
static void sends_single_bytes(void)
{
	for (unsigned n = 0;; n++) {
		int fd = connect_raw();

		if (send(fd, "", 1, MSG_NOSIGNAL) < 0 && n == UINT32_MAX)
			_exit(5);
		close(fd);
		if (n == SOCKETS)
			say_ready();
	}
}

static int open_bad(struct gantry_volume **volume_p, struct gantry_queue **queue_p, uint32_t depth,
		    uint64_t buffers)
{
	struct gantry_volume_attr bad_attr = GANTRY_VOLUME_ATTR_INIT;
	int rc;

	bad_attr.depth = depth;
	bad_attr.copy_bytes = BLOCK;
	bad_attr.buffer_bytes = buffers;
	rc = gantry_volume_open_role(served_file, "direct", &bad_attr, volume_p);
	return rc != 0 ? rc : gantry_queue_open(*volume_p, queue_p);
}

/* Open as many sessions as possible; each exports as much memory as its limit permits. */
static void exports_up_to_its_limit(void)
{
	struct gantry_volume *v;
	struct gantry_queue *q;

	while (open_bad(&v, &q, 1, (REGION_MIB - 2) << 20) == 0)
		;
	hang();
}

static void ignore_done(void *arg, int result)
{
	(void)arg;
	(void)result;
}

/*
 * Keep the queue full of IOs of `bytes`, and call turn() between submissions. Returns when the
 * session is lost, with gantry_error() in `why`.
 */
static void flood(uint32_t depth, uint64_t bytes, void (*turn)(void *buffers, uint64_t bytes),
		  char why[WHY])
{
	uint64_t have;
	struct gantry_volume *v;
	struct gantry_queue *q;
	uint8_t *buffers;
	int rc = 0;

	if (open_bad(&v, &q, depth, (REGION_MIB - 2) << 20) != 0)
		_exit(6);
	buffers = gantry_volume_buffers(v, &have);
	for (unsigned n = 0; rc == 0 || rc == -EAGAIN; n++) {
		uint64_t at = n * bytes % (have - bytes);

		rc = n % 2 ? gantry_queue_write(q, buffers + at / BLOCK * BLOCK, bytes, 8 << 20, 0,
						ignore_done, NULL)
			   : gantry_queue_read(q, buffers + at / BLOCK * BLOCK, bytes, 8 << 20,
					       ignore_done, NULL);
		if (rc == -EAGAIN && !turn)
			say_ready();
		gantry_queue_poll(q);
		if (turn)
			turn(buffers, have);
	}
	/* the text has "just now" until the control thread has stored the reason of the loss */
	while (strstr(gantry_error(), "just now"))
		gantry_queue_flush(q, ignore_done, NULL);
	snprintf(why, WHY, "%s", gantry_error());
	gantry_queue_close(&q);
	gantry_volume_close(&v);
}

static void floods(void)
{
	char why[WHY];

	flood(256, BLOCK, NULL, why);
	_exit(7);
}

static void sends_the_largest(void)
{
	char why[WHY];

	flood(256, 32 << 20, NULL, why);
	_exit(7);
}

/*
 * Free another part of the memory in each call. madvise() fails with EACCES after the session is
 * lost: libgantry has then replaced the shared memory by private pages.
 */
static void punch(void *buffers, uint64_t bytes)
{
	static uint64_t at;

	if (madvise((uint8_t *)buffers + at, PUNCH, MADV_REMOVE) != 0 && errno != EACCES)
		_exit(8);
	at = (at + PUNCH) % bytes;
}

/* The target ends each session of this peer. */
static void punches_holes(void)
{
	char why[WHY];

	for (;;) {
		flood(32, 1 << 20, punch, why);
		if (!strstr(why,
			    "protocol error: pages of a region were freed or replaced (region="))
			_exit(17);
		say_ready();
	}
}

static void reconnects(void)
{
	for (unsigned n = 0;; n++) {
		struct gantry_volume *v;
		struct gantry_queue *q;

		if (open_bad(&v, &q, 1, 0) == 0) {
			gantry_queue_close(&q);
			gantry_volume_close(&v);
		}
		if (n == 20)
			say_ready();
	}
}

/* Sessions end because their processes exit. */
static void exits_and_reconnects(void)
{
	for (unsigned n = 0;; n++) {
		struct gantry_volume *v;
		struct gantry_queue *q;
		pid_t pid = fork();

		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			open_bad(&v, &q, 8, 1 << 20);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
		if (n == 10)
			say_ready();
	}
}

/* Send a message with descriptors. Returns 0, or -1 with errno set. */
static int send_fds(int to, const void *data, size_t bytes, const int *fds, unsigned n)
{
	union {
		char bytes[CMSG_SPACE(FDS_MOST * sizeof(int))];
		struct cmsghdr align;
	} control = {.bytes = {0}};
	struct iovec iov = {(void *)(uintptr_t)data, bytes};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = CMSG_SPACE(n * sizeof(int))};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(n * sizeof(int));
	memcpy(CMSG_DATA(cmsg), fds, n * sizeof(int));
	return sendmsg(to, &msg, MSG_NOSIGNAL) < 0 ? -1 : 0;
}

static int make_listener(struct sockaddr_in *name)
{
	socklen_t len = sizeof(*name);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	*name = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	if (bind(fd, (struct sockaddr *)name, len) || listen(fd, FDS_MOST) ||
	    getsockname(fd, (struct sockaddr *)name, &len))
		_exit(10);
	return fd;
}

/* Returns a socket whose last close(2) takes an hour, since no process receives its data. */
static int make_lingering(const struct sockaddr_in *name)
{
	const struct linger hour = {1, 3600};
	static const char data[1 << 16];
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (connect(fd, (const struct sockaddr *)name, sizeof(*name)) ||
	    setsockopt(fd, SOL_SOCKET, SO_LINGER, &hour, sizeof(hour)))
		_exit(11);
	while (send(fd, data, sizeof(data), MSG_DONTWAIT) > 0)
		;
	return fd;
}

/*
 * Send descriptors of n such sockets. The sender then exits, which does not linger, so the receiver
 * has the last descriptors, and its close would linger.
 */
static void send_lingering(int to, unsigned n)
{
	struct sockaddr_in name;
	int fds[FDS_MOST];
	pid_t pid;

	make_listener(&name); /* the listener stays open */
	pid = fork();
	if (pid == 0) {
		for (unsigned i = 0; i < n; i++)
			fds[i] = make_lingering(&name);
		_exit(send_fds(to, "", 1, fds, n) != 0 && errno == EBADF);
	}
	waitpid(pid, NULL, 0);
}

static void sends_lingering_sockets(void)
{
	send_lingering(connect_raw(), 1);
	send_lingering(connect_raw(), FDS_MOST);
	hang();
}

/* The server ends the connection for the first message, before it reads the later ones. */
static void leaves_lingering_sockets_unread(void)
{
	int fd = connect_raw();

	if (send(fd, "", 1, MSG_NOSIGNAL) < 0)
		_exit(12);
	for (int i = 0; i < 4; i++)
		send_lingering(fd, 1);
	hang();
}

/* The doorbells of a session are the datagram sockets of this process. */
static void rings_with_lingering_sockets(void)
{
	struct gantry_volume *v;
	struct gantry_queue *q;
	int type;

	if (open_bad(&v, &q, 1, 0) != 0)
		_exit(13);
	for (int fd = 3; fd < 256; fd++) {
		socklen_t len = sizeof(type);

		if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_DGRAM)
			send_lingering(fd, 1);
	}
	hang();
}

/* A connection without a session, and the next object that it announces. */
struct announcer {
	int fd;
	uint32_t next;
};

static int make_page(void)
{
	int fd = memfd_create("page", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || fallocate(fd, 0, 0, PAGE_BYTES) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE))
		_exit(14);
	return fd;
}

/*
 * Announce a consumer, or a region after CONSUMERS consumers: the target keeps a descriptor of
 * each. Returns 0, or -1 with errno set.
 */
static int announce(const struct announcer *a, int page, int bell)
{
	const int fds[] = {page, bell};
	struct comch_frame frame = {.head = {.magic = COMCH_MAGIC, .version = COMCH_VERSION}};
	int region = a->next >= CONSUMERS;

	if (region) {
		frame.head.type = COMCH_REGION;
		frame.head.length = sizeof(frame.region);
		frame.region = (struct comch_region_up){.ref = COMCH_REF(a->next - CONSUMERS, 1),
							.handle = a->next,
							.length = PAGE_BYTES,
							.rights = GANTRY_REMOTE_READ};
	} else {
		frame.head.type = COMCH_CONSUMER;
		frame.head.length = sizeof(frame.consumer);
		frame.consumer = (struct comch_consumer_up){.id = a->next + 1, .depth = 1};
	}
	return send_fds(a->fd, &frame, sizeof(frame.head) + frame.head.length, fds, region ? 1 : 2);
}

static void report_ready_if_accepted(const struct comch_frame *frame)
{
	char text[COMCH_REFUSED_TEXT];

	snprintf(
		text, sizeof(text),
		"busy: limit of file descriptors=%u reached by uid %u: end sessions, or raise ulimit -n of the "
		"listener",
		FILES / 4 * 3, NOBODY);
	if (frame->head.type == COMCH_REFUSED && strcmp(frame->refused.text, text) == 0)
		say_ready();
}

/* Whether the target has ended the connection. */
static int has_ended(int fd)
{
	struct comch_frame frame;
	int resets = 0;
	ssize_t n;

	do { /* the reset for unread messages precedes the error text of the target */
		n = recv(fd, &frame, sizeof(frame), MSG_DONTWAIT);
		if (n > 0)
			report_ready_if_accepted(&frame);
	} while (n > 0 || (n < 0 && errno == ECONNRESET && resets++ == 0));
	return n == 0 || (errno != EAGAIN && errno != ENOTCONN);
}

static void announces_up_to_its_limit(void)
{
	struct announcer all[HALF_OPEN];
	int page = make_page(), bells[2];
	unsigned n_ended = 0;

	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, bells))
		_exit(15);
	for (int i = 0; i < HALF_OPEN; i++)
		all[i].fd = -1;
	for (unsigned i = 0;; i = (i + 1) % HALF_OPEN) {
		struct announcer *a = &all[i];

		if (a->fd >= 0 && has_ended(a->fd)) {
			close(a->fd);
			a->fd = -1;
			if (++n_ended == SOCKETS && !said_ready)
				_exit(16); /* the target ends connections without a reason */
		}
		if (a->fd < 0) {
			*a = (struct announcer){.fd = connect_raw()};
			send_hello(a->fd);
		}
		while (a->next < CONSUMERS + COMCH_REGIONS && announce(a, page, bells[1]) == 0)
			a->next++;
	}
}

static void start_bad(void (*behave)(void))
{
	char byte;
	int ends[2];

	TEST_ASSERT_EQUAL_INT(0, pipe2(ends, 0));
	bad = fork();
	TEST_ASSERT_GREATER_OR_EQUAL(0, bad);
	if (bad == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setpgid(0, 0);
		close(ends[0]);
		ready = ends[1];
		if (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY))
			_exit(2);
		behave();
		_exit(1);
	}
	setpgid(bad, bad);
	close(ends[1]);
	ready = ends[0];
	TEST_ASSERT_EQUAL_INT_MESSAGE(1, read(ready, &byte, 1),
				      "the bad peer has ended before it was ready");
}

/* -- the other user -- */

static void visit(unsigned n)
{
	static uint8_t wrote[BLOCKS * BLOCK], seen[BLOCKS * BLOCK];
	int rc = gantry_volume_open_role(served_file, "direct", &attr, &volume);

	TEST_ASSERT_EQUAL_INT_MESSAGE(0, rc, gantry_error());
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_open(volume, &queue));
	served_fill(wrote, sizeof(wrote), n);
	for (unsigned i = 0; i < BLOCKS; i++)
		TEST_ASSERT_EQUAL_INT(
			0, served_write(queue, wrote + i * BLOCK, BLOCK, (uint64_t)i * BLOCK));
	TEST_ASSERT_EQUAL_INT(0, served_flush(queue));
	for (unsigned i = 0; i < BLOCKS; i++)
		TEST_ASSERT_EQUAL_INT(
			0, served_read(queue, seen + i * BLOCK, BLOCK, (uint64_t)i * BLOCK));
	TEST_ASSERT_EQUAL_MEMORY(wrote, seen, sizeof(wrote));
	TEST_ASSERT_EQUAL_INT(0, gantry_queue_close(&queue));
	TEST_ASSERT_EQUAL_INT(0, gantry_volume_close(&volume));
}

static void serve_both(const struct served_options *options)
{
	if (getuid() != 0)
		TEST_IGNORE_MESSAGE("needs root, for a second user");
	served_begin(options);
	TEST_ASSERT_EQUAL_INT(0, chmod(served_dir, 0711));
	TEST_ASSERT_EQUAL_INT(0, chmod(served_file, 0644));
	served_start("store");
	visit(0);
}

static void visit_beside(void (*behave)(void))
{
	start_bad(behave);
	for (unsigned n = 1; n <= VISITS; n++)
		visit(n);
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, waitpid(bad, NULL, WNOHANG), "the bad peer has ended");
}

static void works_beside(void (*behave)(void))
{
	serve_both(&shared);
	visit_beside(behave);
}

static void test_client_that_sends_nothing(void)
{
	works_beside(sends_nothing);
}

static void test_client_that_opens_no_session(void)
{
	works_beside(opens_no_session);
}

static void test_client_that_sends_single_bytes(void)
{
	works_beside(sends_single_bytes);
}

static void test_client_that_exports_up_to_its_limit(void)
{
	works_beside(exports_up_to_its_limit);
}

static void test_client_that_punches_holes_in_its_region(void)
{
	works_beside(punches_holes);
}

static void test_client_that_floods_with_small_ios(void)
{
	works_beside(floods);
}

static void test_client_that_sends_the_largest_ios(void)
{
	works_beside(sends_the_largest);
}

static void test_client_that_reconnects_in_a_loop(void)
{
	works_beside(reconnects);
}

static void test_client_that_exits_and_reconnects_in_a_loop(void)
{
	works_beside(exits_and_reconnects);
}

static void test_client_that_sends_lingering_sockets(void)
{
	works_beside(sends_lingering_sockets);
}

static void test_client_that_leaves_lingering_sockets_unread(void)
{
	works_beside(leaves_lingering_sockets_unread);
}

static void test_client_that_rings_with_lingering_sockets(void)
{
	works_beside(rings_with_lingering_sockets);
}

/* The target has FILES descriptors, so that it takes few connections to use them up. */
static void test_client_that_announces_consumers_up_to_its_limit(void)
{
	served_files = FILES;
	serve_both(&shared);
	visit_beside(announces_up_to_its_limit);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_ROUNDS(test_client_that_sends_nothing);
	RUN_ROUNDS(test_client_that_opens_no_session);
	RUN_ROUNDS(test_client_that_sends_single_bytes);
	RUN_ROUNDS(test_client_that_exports_up_to_its_limit);
	RUN_ROUNDS(test_client_that_punches_holes_in_its_region);
	RUN_ROUNDS(test_client_that_floods_with_small_ios);
	RUN_ROUNDS(test_client_that_sends_the_largest_ios);
	RUN_ROUNDS(test_client_that_reconnects_in_a_loop);
	RUN_ROUNDS(test_client_that_exits_and_reconnects_in_a_loop);
	RUN_ROUNDS(test_client_that_sends_lingering_sockets);
	RUN_ROUNDS(test_client_that_leaves_lingering_sockets_unread);
	RUN_ROUNDS(test_client_that_rings_with_lingering_sockets);
	RUN_ROUNDS(test_client_that_announces_consumers_up_to_its_limit);
	return UNITY_END();
}
