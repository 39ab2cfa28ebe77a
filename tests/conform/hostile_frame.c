/* SPDX-License-Identifier: BSD-3-Clause */
/* hostile_frame.c - malformed, misplaced and forged frames on the control socket. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "conform/hostile.h"

static struct comch_frame frame;
static void (*after_connect)(int fd); /* NULL: nothing happens after connect() */

/* Replaces connect(2), also for the plugin: a case can act before the client sends HELLO. */
__attribute__((visibility("default"))) int connect(int fd, const struct sockaddr *addr,
						   socklen_t len)
{
	int rc = (int)syscall(SYS_connect, fd, addr, len);

	if (rc == 0 && after_connect)
		after_connect(fd);
	return rc;
}

static const void *head(uint32_t magic, uint16_t version, uint16_t type, uint32_t length)
{
	frame.head = (struct comch_head){
		.magic = magic, .version = version, .type = type, .length = length};
	return &frame;
}

static void send_fds(enum comch_type type, uint32_t len, unsigned int n)
{
	static const uint8_t zeros[64];
	int fds[32] = {0};

	for (unsigned int i = 0; i < n; i++)
		fds[i] = open("/dev/null", O_RDWR | O_CLOEXEC);
	evil_frame(type, zeros, len, fds, n);
	for (unsigned int i = 0; i < n; i++)
		close(fds[i]);
}

ATTACK(one_byte, 1, "shorter than its header")
{
	evil_raw("x", 1, NULL, 0);
}

ATTACK(half_a_header, 1, "shorter than its header")
{
	evil_raw(head(COMCH_MAGIC, COMCH_VERSION, COMCH_DATA, 0), 15, NULL, 0);
}

ATTACK(one_byte_before_hello, 0, "shorter than its header")
{
	evil_raw("x", 1, NULL, 0);
}

ATTACK(empty_frame, 1, "empty frame")
{
	TEST_ASSERT_EQUAL_INT(0, send(evil.fd, "", 0, 0));
}

ATTACK(empty_frame_before_hello, 0, "empty frame")
{
	TEST_ASSERT_EQUAL_INT(0, send(evil.fd, "", 0, 0));
}

ATTACK(empty_frame_with_a_descriptor, 1, "empty frame")
{
	int fd = dup(0);

	evil_raw("", 0, &fd, 1);
	close(fd);
}

ATTACK(wrong_magic, 1, "wrong magic")
{
	evil_raw(head(0x12345678, 1, COMCH_DATA, 4), 20, NULL, 0);
}

ATTACK(wrong_version, 1, "wrong version")
{
	evil_raw(head(COMCH_MAGIC, COMCH_VERSION + 1, COMCH_DATA, 4), 20, NULL, 0);
}

ATTACK(wrong_version_in_hello, 0, "wrong version")
{
	evil_raw(head(COMCH_MAGIC, 9, COMCH_HELLO, 8), 24, NULL, 0);
}

ATTACK(type_zero, 1, "unknown type")
{
	evil_raw(head(COMCH_MAGIC, COMCH_VERSION, 0, 0), 16, NULL, 0);
}

ATTACK(type_unknown, 1, "unknown type")
{
	evil_raw(head(COMCH_MAGIC, COMCH_VERSION, COMCH_TYPES, 8), 24, NULL, 0);
}

ATTACK(type_huge, 1, "unknown type")
{
	evil_raw(head(COMCH_MAGIC, COMCH_VERSION, 0xffff, 8), 24, NULL, 0);
}

ATTACK(length_exceeds_the_frame, 1, "length does not match")
{
	evil_raw(head(COMCH_MAGIC, COMCH_VERSION, COMCH_DATA, 100), 20, NULL, 0);
}

ATTACK(length_is_below_the_frame, 1, "length does not match")
{
	evil_raw(head(COMCH_MAGIC, COMCH_VERSION, COMCH_DATA, 1), 20, NULL, 0);
}

ATTACK(length_wraps, 1, "length does not match")
{
	evil_raw(head(COMCH_MAGIC, COMCH_VERSION, COMCH_DATA, 0xfffffff0), 16, NULL, 0);
}

ATTACK(data_without_data, 1, "wrong length")
{
	evil_raw(head(COMCH_MAGIC, COMCH_VERSION, COMCH_DATA, 0), 16, NULL, 0);
}

ATTACK(too_long, 1, "longer than the maximum")
{
	static uint8_t big[8192];

	memcpy(big, head(COMCH_MAGIC, COMCH_VERSION, COMCH_DATA, 8176), 16);
	evil_raw(big, sizeof(big), NULL, 0);
}

ATTACK(much_too_long, 1, "longer than the maximum")
{
	static uint8_t big[100000];

	memcpy(big, head(COMCH_MAGIC, COMCH_VERSION, COMCH_DATA, 99984), 16);
	evil_raw(big, sizeof(big), NULL, 0);
}

ATTACK(body_of_another_size, 1, "wrong length")
{
	evil_frame(COMCH_CONSUMER_GONE, "12345678abcd", 12, NULL, 0);
}

ATTACK(reserved_not_zero, 1, "reserved")
{
	frame.head = (struct comch_head){COMCH_MAGIC, COMCH_VERSION, COMCH_DATA, 4, 1};
	evil_raw(&frame, 20, NULL, 0);
}

ATTACK(data_with_a_descriptor, 1, "wrong number of descriptors")
{
	send_fds(COMCH_DATA, 4, 1);
}

ATTACK(region_without_its_descriptor, 1, "wrong number of descriptors")
{
	send_fds(COMCH_REGION, sizeof(struct comch_region_up), 0);
}

ATTACK(region_with_three_descriptors, 1, "too many descriptors")
{
	send_fds(COMCH_REGION, sizeof(struct comch_region_up), 3);
}

ATTACK(more_descriptors_than_fit, 1, "too many descriptors")
{
	send_fds(COMCH_REGION, sizeof(struct comch_region_up), 30);
}

ATTACK(consumer_with_one_descriptor, 1, "wrong number of descriptors")
{
	send_fds(COMCH_CONSUMER, sizeof(struct comch_consumer_up), 1);
}

ATTACK(hello_with_a_descriptor, 0, "wrong number of descriptors")
{
	send_fds(COMCH_HELLO, sizeof(struct comch_hello), 1);
}

ATTACK(hello_twice, 1, "out of order")
{
	struct comch_hello hello = {0};

	evil_frame(COMCH_HELLO, &hello, sizeof(hello), NULL, 0);
}

ATTACK(data_before_hello, 0, "out of order")
{
	evil_frame(COMCH_DATA, "early", 5, NULL, 0);
}

ATTACK(revoke_before_hello, 0, "out of order")
{
	struct comch_id id = {.id = 64};

	evil_frame(COMCH_REVOKE, &id, sizeof(id), NULL, 0);
}

ATTACK(unknown_consumer_is_gone, 1, "never existed")
{
	struct comch_id id = {.id = 7};

	evil_frame(COMCH_CONSUMER_GONE, &id, sizeof(id), NULL, 0);
}

ATTACK(unknown_producer_is_gone, 1, "never existed")
{
	struct comch_id id = {.id = 1};

	evil_frame(COMCH_PRODUCER_GONE, &id, sizeof(id), NULL, 0);
}

ATTACK(confirms_an_unknown_producer, 1, "never existed")
{
	struct comch_producer_ok ok = {.id = 1, .line = 0};

	evil_frame(COMCH_PRODUCER_OK, &ok, sizeof(ok), NULL, 0);
}

ATTACK(confirms_an_unknown_region, 1, "was not exported")
{
	struct comch_id id = {.id = 64};

	evil_frame(COMCH_REGION_OK, &id, sizeof(id), NULL, 0);
}

ATTACK(releases_an_unknown_region, 1, "was not revoked")
{
	struct comch_id id = {.id = UINT32_MAX};

	evil_frame(COMCH_RELEASED, &id, sizeof(id), NULL, 0);
}

ATTACK(revokes_an_unknown_region, 1, "did not export")
{
	struct comch_id id = {.id = 65};

	evil_frame(COMCH_REVOKE, &id, sizeof(id), NULL, 0);
}

/* The server ignores frames that the attacker sends after BYE. */
ATTACK(sends_frames_after_bye, 1, NULL)
{
	evil_frame(COMCH_BYE, "", 0, NULL, 0);
	send_fds(COMCH_REGION, sizeof(struct comch_region_up), 1);
}

/* The attacker shuts down only the sending direction of its socket. */
ATTACK(half_closed, 1, NULL)
{
	shutdown(evil.fd, SHUT_WR);
}

/*
 * The attacker sends a thousand messages. The server delivers all of them, and keeps the connection
 * of the attacker and that of the good client.
 */
ATTACK(flood_of_messages, 1, NULL)
{
	int n = rig.b.n_msgs;

	for (int i = 0; i < 1000; i++) {
		evil_frame(COMCH_DATA, "flood", 5, NULL, 0);
		if (i % 10 == 9)
			rig_settle();
	}
	TEST_ASSERT_EQUAL_INT(n + 1000, rig.b.n_msgs);
}

/* The attacker never reads: the queue of the server for this peer is bounded. */
ATTACK(never_reads, 1, NULL)
{
	uint8_t msg[GANTRY_CTRL_MAX] = {0};
	int n = 0;

	while (n < 10000 && rig.ops->send_ctrl(rig.b.conn, msg, sizeof(msg)) == 0)
		n++;
	TEST_ASSERT_TRUE(n < 1000);
	TEST_ASSERT_EQUAL_INT(-EAGAIN, rig.ops->send_ctrl(rig.b.conn, msg, sizeof(msg)));
}

ATTACK(client_sends_refused_before_hello, 0, "sends REFUSED as a client")
{
	struct comch_refused refused = {.reason = COMCH_REASON_BUSY, .text = "busy"};

	evil_frame(COMCH_REFUSED, &refused, sizeof(refused), NULL, 0);
}

ATTACK(client_sends_refused_after_hello, 1, "sends REFUSED as a client")
{
	struct comch_refused refused = {.reason = COMCH_REASON_BUSY, .text = "busy"};

	evil_frame(COMCH_REFUSED, &refused, sizeof(refused), NULL, 0);
}

/* Expect that the raw client receives this reason, and then the end of the connection. */
static void refused_with(const char *text)
{
	struct comch_frame got;

	evil_expect(COMCH_REFUSED, &got, NULL);
	TEST_ASSERT_EQUAL_UINT(COMCH_REASON_BUSY, got.refused.reason);
	TEST_ASSERT_EQUAL_STRING(text, got.refused.text);
	TEST_ASSERT_EQUAL_INT(0, recv(evil.fd, &got, sizeof(got), 0));
}

/* Connect end a, and expect that the transport rejects it with this reason. */
static void client_is_refused_with(const char *text)
{
	int n = rig.a.n_closed;
	void *conn;

	rig_start_connect("vol");
	conn = rig.a.conn;
	rig_until(rig.a.n_closed, n + 1);
	TEST_ASSERT_EQUAL_INT(-EBUSY, rig.a.reason);
	TEST_ASSERT_EQUAL_STRING(text, rig.ops->refusal(conn));
	rig_disconnect(&rig.a);
}

#define HALF_OPEN 64u /* most half-open connections of a user */
#define REFUSAL 80u   /* bytes of a text */

/* Open as many connections as a user may have half-open. text: out: how a further one is refused */
static void reach_half_open_limit(int mine[HALF_OPEN], char text[REFUSAL])
{
	snprintf(text, REFUSAL,
		 "busy: limit of half-open connections=%u reached by uid %u: close connections",
		 HALF_OPEN, getuid());
	rig_listen("vol");
	for (unsigned i = 0; i < HALF_OPEN; i++) {
		evil_connect(0);
		mine[i] = evil.fd;
	}
	rig_settle();
}

static void wait_until_refused(int fd)
{
	struct pollfd hangup = {.fd = fd, .events = POLLRDHUP};

	after_connect = NULL;
	for (int i = 0; i < 60000 && poll(&hangup, 1, 1) == 0; i++)
		rig_settle();
	TEST_ASSERT_TRUE(hangup.revents & POLLRDHUP);
}

/* The server has refused the client and closed the socket before the client sends HELLO. */
static void reason_of_a_refusal_before_hello_is_kept(void)
{
	int mine[HALF_OPEN];
	char text[REFUSAL];

	reach_half_open_limit(mine, text);
	after_connect = wait_until_refused;
	client_is_refused_with(text);
	for (unsigned i = 0; i < HALF_OPEN; i++)
		close(mine[i]);
	rig_settle();
}

static void half_open_connections_of_a_user_are_bounded(void)
{
	int mine[HALF_OPEN];
	char text[REFUSAL];

	reach_half_open_limit(mine, text);
	for (int i = 0; i < 3; i++) {
		evil_connect(0);
		refused_with(text);
		close(evil.fd);
	}
	client_is_refused_with(text);
	close(mine[0]); /* now one connection below the limit */
	rig_settle();
	rig_start_connect("vol");
	rig_until(rig.a.n_connected, 1);
	TEST_ASSERT_NULL(rig.ops->refusal(rig.a.conn));
	for (unsigned i = 1; i < HALF_OPEN; i++)
		close(mine[i]);
	rig_settle();
}

/* Open and close more connections in succession than the device supports at the same time. */
static void connections_that_ended_do_not_count(void)
{
	rig_listen("vol");
	for (int i = 0; i < 1100; i++) {
		evil_connect(0);
		rig_settle();
		close(evil.fd);
		rig_settle();
	}
	rig_start_connect("vol");
	rig_until(rig.a.n_connected, 1);
}

/* If its backlog is full, a listener is reported as busy, not as missing. */
static void a_full_backlog_is_no_missing_listener(void)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	struct rlimit before, files;
	int mine[4200], n = 0;

	TEST_ASSERT_EQUAL_INT(0, getrlimit(RLIMIT_NOFILE, &before));
	files = before;
	files.rlim_cur = files.rlim_max;
	TEST_ASSERT_EQUAL_INT(0, setrlimit(RLIMIT_NOFILE, &files));
	rig_listen("vol");
	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s/vol.sock", rig.info.detail);
	for (; n < 4200; n++) {
		mine[n] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		TEST_ASSERT_GREATER_OR_EQUAL(0, mine[n]);
		if (connect(mine[n], (struct sockaddr *)&sun, sizeof(sun)))
			break;
	}
	TEST_ASSERT_EQUAL_INT(EAGAIN, errno);
	rig_start_connect("vol"); /* no connection is accepted before the next progress */
	TEST_ASSERT_EQUAL_STRING("busy: the backlog of the listener is full: try again",
				 rig.ops->refusal(rig.a.conn));
	rig_until(rig.a.n_closed, 1);
	TEST_ASSERT_EQUAL_INT(-EBUSY, rig.a.reason);
	rig_disconnect(&rig.a);
	for (int i = 0; i <= n; i++)
		close(mine[i]);
	rig_settle();
	setrlimit(RLIMIT_NOFILE, &before);
}

static void listener_without_descriptors_reports_the_reason(void)
{
	struct rlimit before, files;

	TEST_ASSERT_EQUAL_INT(0, getrlimit(RLIMIT_NOFILE, &before));
	rig_listen("vol");
	evil_connect(0);
	files = before;
	/* the limit is the lowest free number: no descriptor can be opened */
	files.rlim_cur = (rlim_t)fcntl(evil.fd, F_DUPFD_CLOEXEC, 0);
	close((int)files.rlim_cur);
	TEST_ASSERT_EQUAL_INT(0, setrlimit(RLIMIT_NOFILE, &files));
	rig_settle();
	TEST_ASSERT_EQUAL_INT(0, setrlimit(RLIMIT_NOFILE, &before));
	refused_with(
		"busy: no file descriptor left in the listener: raise ulimit -n or close connections");
	close(evil.fd);
	rig_start_connect("vol");
	rig_until(rig.a.n_connected, 1);
}

/* The server closes connections that send nothing for two seconds. */
static void half_open_connections_end(void)
{
	int fds, mine[300];

	rig_connect();
	rig.b.host.real_clock = 0;
	fds = rig_fds();
	for (int i = 0; i < 300; i++) {
		evil_connect(0);
		mine[i] = evil.fd;
		rig_settle();
	}
	TEST_ASSERT_TRUE(rig_fds() < fds + 300 + 3 * 64);
	rig.b.host.now_ns += 3000000000u;
	rig.ops->progress(rig.b.dev);
	TEST_ASSERT_EQUAL_INT(fds + 300, rig_fds()); /* the server has closed its 300 ends */
	for (int i = 0; i < 300; i++)
		close(mine[i]);
	rig_settle();
	rig.b.host.real_clock = 1;
	TEST_ASSERT_EQUAL_INT(fds, rig_fds());
	TEST_ASSERT_EQUAL_INT(0, rig.ops->send_ctrl(rig.a.conn, "good", 4));
	rig_until(rig.b.n_msgs, 1);
}

void frame_attacks(void)
{
	RUN_TEST(one_byte);
	RUN_TEST(half_a_header);
	RUN_TEST(one_byte_before_hello);
	RUN_TEST(empty_frame);
	RUN_TEST(empty_frame_before_hello);
	RUN_TEST(empty_frame_with_a_descriptor);
	RUN_TEST(wrong_magic);
	RUN_TEST(wrong_version);
	RUN_TEST(wrong_version_in_hello);
	RUN_TEST(type_zero);
	RUN_TEST(type_unknown);
	RUN_TEST(type_huge);
	RUN_TEST(length_exceeds_the_frame);
	RUN_TEST(length_is_below_the_frame);
	RUN_TEST(length_wraps);
	RUN_TEST(data_without_data);
	RUN_TEST(too_long);
	RUN_TEST(much_too_long);
	RUN_TEST(body_of_another_size);
	RUN_TEST(reserved_not_zero);
	RUN_TEST(data_with_a_descriptor);
	RUN_TEST(region_without_its_descriptor);
	RUN_TEST(region_with_three_descriptors);
	RUN_TEST(more_descriptors_than_fit);
	RUN_TEST(consumer_with_one_descriptor);
	RUN_TEST(hello_with_a_descriptor);
	RUN_TEST(hello_twice);
	RUN_TEST(data_before_hello);
	RUN_TEST(revoke_before_hello);
	RUN_TEST(unknown_consumer_is_gone);
	RUN_TEST(unknown_producer_is_gone);
	RUN_TEST(confirms_an_unknown_producer);
	RUN_TEST(confirms_an_unknown_region);
	RUN_TEST(releases_an_unknown_region);
	RUN_TEST(revokes_an_unknown_region);
	RUN_TEST(sends_frames_after_bye);
	RUN_TEST(half_closed);
	RUN_TEST(flood_of_messages);
	RUN_TEST(never_reads);
	RUN_TEST(half_open_connections_end);
	RUN_TEST(client_sends_refused_before_hello);
	RUN_TEST(client_sends_refused_after_hello);
	RUN_TEST(reason_of_a_refusal_before_hello_is_kept);
	RUN_TEST(half_open_connections_of_a_user_are_bounded);
	RUN_TEST(connections_that_ended_do_not_count);
	RUN_TEST(a_full_backlog_is_no_missing_listener);
	RUN_TEST(listener_without_descriptors_reports_the_reason);
}
