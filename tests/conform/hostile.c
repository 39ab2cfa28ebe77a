/* SPDX-License-Identifier: BSD-3-Clause */
#include <poll.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <gantry/memfd.h>

#include "conform/hostile.h"

struct evil evil;

static struct rig_queue *good;

void evil_raw(const void *bytes, size_t len, const int *fds, unsigned int n_fds)
{
	char control[CMSG_SPACE(sizeof(int) * 32)] __attribute__((aligned(8))) = {0};
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
	TEST_ASSERT_EQUAL_INT((int)len, sendmsg(evil.fd, &msg, MSG_NOSIGNAL));
}

void evil_frame(enum comch_type type, const void *body, uint32_t len, const int *fds,
		unsigned int n_fds)
{
	static struct comch_frame f;

	f.head = (struct comch_head){.magic = COMCH_MAGIC,
				     .version = COMCH_VERSION,
				     .type = (uint16_t)type,
				     .length = len};
	memcpy(f.data, body, len);
	evil_raw(&f, sizeof(f.head) + len, fds, n_fds);
}

void evil_expect(enum comch_type type, struct comch_frame *frame, int *fds)
{
	char control[CMSG_SPACE(sizeof(int) * 8)] __attribute__((aligned(8)));

	for (;;) {
		struct iovec iov = {frame, sizeof(*frame)};
		struct msghdr msg = {.msg_iov = &iov,
				     .msg_iovlen = 1,
				     .msg_control = control,
				     .msg_controllen = sizeof(control)};
		struct pollfd p = {.fd = evil.fd, .events = POLLIN};
		struct cmsghdr *c;
		int none[8];

		rig_settle();
		/* a listener that pauses goes on when a thread of the device has closed sockets */
		for (int i = 0; i < 1000 && poll(&p, 1, 10) == 0; i++)
			rig_settle();
		TEST_ASSERT_TRUE_MESSAGE(p.revents, "the server says nothing");
		TEST_ASSERT_TRUE(recvmsg(evil.fd, &msg, 0) >= (ssize_t)sizeof(frame->head));
		c = CMSG_FIRSTHDR(&msg);
		if (c) {
			int n = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
			int keep = frame->head.type == type && fds;

			memcpy(keep ? fds : none, CMSG_DATA(c), sizeof(int) * (unsigned int)n);
			for (int i = 0; i < n && !keep; i++)
				close(none[i]);
		}
		if (frame->head.type == type)
			return;
	}
}

void evil_memory(struct evil_memory *m, size_t bytes, int seals)
{
	m->bytes = bytes;
	m->fd = memfd_create("evil", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	TEST_ASSERT_TRUE(m->fd >= 0);
	TEST_ASSERT_EQUAL_INT(0, fallocate(m->fd, 0, 0, (off_t)bytes));
	m->p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0);
	TEST_ASSERT_TRUE(m->p != MAP_FAILED);
	if (seals)
		TEST_ASSERT_EQUAL_INT(0, fcntl(m->fd, F_ADD_SEALS, seals));
}

void evil_memory_close(struct evil_memory *m)
{
	if (m->p)
		munmap(m->p, m->bytes);
	if (m->p)
		close(m->fd);
	*m = (struct evil_memory){.fd = -1};
}

void evil_connect(int opened)
{
	struct comch_hello hello = {0};
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	struct comch_frame frame;
	int n = rig.b.n_accept;

	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s/vol.sock", rig.info.detail);
	evil.fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	TEST_ASSERT_EQUAL_INT(0, connect(evil.fd, (struct sockaddr *)&sun, sizeof(sun)));
	evil.conn = NULL;
	if (!opened)
		return;
	evil_frame(COMCH_HELLO, &hello, sizeof(hello), NULL, 0);
	rig_until(rig.b.n_accept, n + 1);
	evil.conn = rig.b.conn;
	evil_expect(COMCH_HELLO, &frame, NULL);
}

static void check_good_client(void)
{
	struct gantry_msg msg;
	int n = rig.b.n_msgs, m = rig.a.n_msgs;

	TEST_ASSERT_EQUAL_INT(0, rig.a.n_closed);
	TEST_ASSERT_EQUAL_INT(0, rig.ops->send_ctrl(rig.a.conn, "good", 4));
	rig_until(rig.b.n_msgs, n + 1);
	TEST_ASSERT_EQUAL_INT(0, rig.ops->send_ctrl(rig.b.conn, "good", 4));
	rig_until(rig.a.n_msgs, m + 1);
	TEST_ASSERT_EQUAL_INT(0, rig.ops->post_recv(good->rx, 1));
	TEST_ASSERT_EQUAL_INT(0, rig_send_imm(good, 4711));
	rig_take(good, &msg);
	TEST_ASSERT_EQUAL_INT(0, msg.status);
}

void evil_run(void (*attack)(void), int opened, const char *log)
{
	int closed = rig.b.n_closed, errors = (int)fake_counter(&rig.b.host, "protocol_errors"),
	    fds;
	void *good_b;

	rig_connect();
	good = rig_queue_open(&rig.b, &rig.a, 8, 0);
	good_b = rig.b.conn;
	fds = rig_fds();
	rig.b.disconnect_on_close = 1;
	evil_connect(opened);
	attack();
	rig_settle();
	if (log && opened)
		rig_until(rig.b.n_closed, closed + 1);
	if (log) {
		TEST_ASSERT_TRUE_MESSAGE(fake_logged(&rig.b.host, log), rig.b.host.log);
		TEST_ASSERT_EQUAL_INT(errors + 1, fake_counter(&rig.b.host, "protocol_errors"));
		TEST_ASSERT_EQUAL_UINT(1, rig.b.host.n_logged[GANTRY_LOG_WARN]);
		if (opened)
			TEST_ASSERT_EQUAL_INT(-EPROTO, rig.b.reason);
	}
	close(evil.fd);
	if (opened && !log)
		rig_until(rig.b.n_closed, closed + 1);
	rig_settle();
	evil_memory_close(&evil.ring);
	evil_memory_close(&evil.page);
	TEST_ASSERT_EQUAL_INT_MESSAGE(fds, rig_fds(), "descriptors of the attack are left");
	rig.b.conn = good_b;
	check_good_client();
	rig_queue_close(good);
}

int main(void)
{
	UNITY_BEGIN();
	frame_attacks();
	memory_attacks();
	page_attacks();
	ring_attacks();
	return UNITY_END();
}
