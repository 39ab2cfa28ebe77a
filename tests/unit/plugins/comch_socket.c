/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames of shm-comch over a Unix socket that the peer closes at any point. */
#include <sys/socket.h>
#include <unistd.h>

static ssize_t recv_late(int fd, void *buf, size_t bytes, int flags);
#define recv recv_late
#include "../plugins/transport/shm-comch/shm_socket.c"
#undef recv
#include "unity.h"

#define FRAMES 3u

static int ends[2]; /* sockets of the tested end and of the peer */
/* number (from 1) of the frame before which the peer closes its socket; 0: never */
static uint32_t close_before;
static uint32_t n_taken;

/* Replaces recv(), which removes a frame from the socket after a recvmsg() that peeks at it. */
static ssize_t recv_late(int fd, void *buf, size_t bytes, int flags)
{
	if (++n_taken == close_before) {
		close(ends[1]);
		ends[1] = -1;
	}
	return recv(fd, buf, bytes, flags);
}

void setUp(void)
{
	n_taken = 0;
	close_before = 0;
	TEST_ASSERT_EQUAL_INT(0, socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
}

void tearDown(void)
{
	for (int i = 0; i < 2; i++)
		if (ends[i] >= 0)
			close(ends[i]);
}

static void send_frame(int fd, uint32_t id)
{
	struct comch_frame frame = {.id = {.id = id}};

	TEST_ASSERT_EQUAL_INT(sizeof(frame), comch_socket_send(fd, &frame, sizeof(frame), NULL, 0));
}

static void expect(uint32_t id)
{
	int fds[COMCH_FDS_MAX];
	struct comch_frame frame;
	const char *why = NULL;
	unsigned int n_fds;

	TEST_ASSERT_EQUAL_INT(id ? (int)sizeof(frame) : 0,
			      comch_socket_recv(ends[0], &frame, fds, &n_fds, &why));
	TEST_ASSERT_EQUAL_UINT(0, n_fds);
	if (id)
		TEST_ASSERT_EQUAL_UINT(id, frame.id.id);
}

/*
 * If the peer closes its socket with an unread frame of this end, the kernel reports ECONNRESET
 * once, to the next call of any kind.
 */
static void each_frame_comes_once_when_the_peer_closes(void)
{
	for (int is_unread = 0; is_unread < 2; is_unread++)
		for (uint32_t before = 1; before <= FRAMES; before++) {
			tearDown();
			setUp();
			if (is_unread)
				send_frame(ends[0], 99);
			for (uint32_t i = 1; i <= FRAMES; i++)
				send_frame(ends[1], i);
			close_before = before;
			for (uint32_t i = 1; i <= FRAMES; i++)
				expect(i);
			expect(0);
		}
}

static void each_frame_comes_once_when_the_peer_has_closed(void)
{
	send_frame(ends[0], 99);
	for (uint32_t i = 1; i <= FRAMES; i++)
		send_frame(ends[1], i);
	close(ends[1]);
	ends[1] = -1;
	for (uint32_t i = 1; i <= FRAMES; i++)
		expect(i);
	expect(0);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(each_frame_comes_once_when_the_peer_closes);
	RUN_TEST(each_frame_comes_once_when_the_peer_has_closed);
	return UNITY_END();
}
