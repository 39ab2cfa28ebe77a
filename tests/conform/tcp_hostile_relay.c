/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp_hostile_relay.c - the victim relays: an attacker owns a region, and another attacker accesses
 * it through the victim.
 */
#include "conform/tcp_hostile.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define OWNED (8u << 20)

static struct evil owner = {.control = -1, .link = -1}, user = {.control = -1, .link = -1};
static struct gantry_region *region;

/* The owner exports a region, and the victim exports it to the user as {1, 1}. */
static void connect_both(void)
{
	const struct tcp_ctrl_region r = {.name = {7, 7}, .length = OWNED, .rights = EVIL_BOTH};
	struct gantry_token token = {.handle = 7, .generation = 7};

	evil_connect(&owner);
	evil_ctrl(&owner, TCP_CTRL_REGION, &r, sizeof(r));
	rig_settle();
	evil_link(&owner);
	RIG_OK(rig.ops->import_region(owner.conn, &token, 0, &region));
	evil_connect(&user);
	RIG_OK(rig.ops->export_region(user.conn, region, EVIL_BOTH, 1, &token));
	evil_link(&user);
}

static void leave_both(void)
{
	evil_leave(&user);
	rig.ops->release_region(owner.conn, region);
	evil_leave(&owner);
	log_begin();
}

static void send_frame(const struct evil *from, const struct tcp_frame *frame)
{
	evil_send(from->link, frame, sizeof(*frame));
}

/* Let the victim handle all that this end has sent. */
static void settle(const struct evil *at)
{
	int unread = 1; /* bytes that the kernel of the victim does not have yet */

	for (int i = 0; i < 1000 && unread > 0; i++) {
		rig_settle();
		RIG_HOLDS(ioctl(at->link, SIOCOUTQ, &unread) == 0, "ioctl of a socket");
	}
	rig_settle();
}

static uint16_t asked[OWNED / 65536]; /* numbers of the reads that count() has seen last */

/* Read the frames that have arrived. Returns how many are of this kind. */
static unsigned count(const struct evil *at, uint8_t kind)
{
	struct tcp_frame frame;
	unsigned n = 0;

	settle(at);
	while (recv(at->link, &frame, sizeof(frame), MSG_DONTWAIT) == sizeof(frame))
		if (frame.kind == kind && n < OWNED / 65536)
			asked[n++] = frame.queue;
	return n;
}

/* The owner answers the reads that count() has seen last. */
static void answer(unsigned n)
{
	struct tcp_frame data = {.kind = TCP_DATA, .length = 65536};
	static const uint8_t bytes[65536];

	for (unsigned i = 0; i < n; i++) {
		data.queue = asked[i];
		send_frame(&owner, &data);
		evil_send(owner.link, bytes, sizeof(bytes));
	}
}

/* The user releases the region that the victim revokes. */
static void revoke_region(void)
{
	const struct tcp_name one = {1, 1};
	int revoked = rig.b.n_revoked;

	RIG_OK(rig.ops->revoke_region(user.conn, 1));
	evil_ctrl(&user, TCP_CTRL_RELEASED, &one, sizeof(one));
	rig_until(rig.b.n_revoked, revoked + 1);
}

/*
 * The user reads more than the victim relays at a time, and the owner does not answer. After the
 * region was revoked, the victim must ask the owner for no further piece.
 */
static void revoke_while_a_read_waits(void)
{
	const struct tcp_frame read = {.kind = TCP_READ, .length = OWNED, .access = {{1, 1}, 0}};
	unsigned n;

	honest_begin(NULL);
	connect_both();
	send_frame(&user, &read);
	n = count(&owner, TCP_READ);
	RIG_HOLDS(n > 0 && n < OWNED / 65536, "pieces of a large read");
	revoke_region();
	answer(n);
	RIG_NUM(0, count(&owner, TCP_READ), "pieces after the region was revoked");
	rig_until(rig.b.n_closed, 1);
	leave_both();
	honest_end();
}

/*
 * The user reads more than the victim relays at a time, and receives nothing. So the answers of the
 * owner fill all pieces, and none is in flight. After the region was revoked, no piece that becomes
 * free must ask the owner for more.
 */
static void revoke_while_all_pieces_wait(void)
{
	const struct tcp_frame read = {.kind = TCP_READ, .length = OWNED, .access = {{1, 1}, 0}};
	static uint8_t bytes[65536];
	unsigned n, all = 0;

	honest_begin("socket_buffer=64KiB");
	connect_both();
	send_frame(&user, &read);
	while ((n = count(&owner, TCP_READ)) > 0) {
		answer(n);
		all += n;
	}
	RIG_HOLDS(all >= 32 && all < OWNED / 65536, "pieces of a read whose answers wait");
	revoke_region();
	for (int i = 0; i < 200; i++) {
		while (recv(user.link, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
			;
		rig_settle();
	}
	RIG_NUM(0, count(&owner, TCP_READ), "pieces after the region was revoked");
	rig_until(rig.b.n_closed, 1);
	leave_both();
	honest_end();
}

/*
 * The user reads more than the victim relays at a time, and then a little. The little read must not
 * overtake any piece of the large one.
 */
static void read_behind_a_large_read(void)
{
	const struct tcp_frame large = {.kind = TCP_READ, .length = OWNED, .access = {{1, 1}, 0}},
			       small = {.kind = TCP_READ,
					.queue = 1,
					.length = 64,
					.access = {{1, 1}, 0}};
	struct tcp_frame data = {.kind = TCP_DATA}, read;
	static uint8_t bytes[65536];
	uint64_t at = 0;

	honest_begin(NULL);
	connect_both();
	send_frame(&user, &large);
	send_frame(&user, &small);
	for (uint32_t i = 0; i <= OWNED / sizeof(bytes); i++) {
		while (recv(user.link, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
			;
		RIG_NUM(sizeof(read), evil_read(owner.link, &read, sizeof(read)), "a piece");
		RIG_NUM(at % OWNED, read.access.offset, "offset of a piece");
		RIG_NUM(at < OWNED ? sizeof(bytes) : 64, read.length, "length of a piece");
		at += read.length;
		data.queue = read.queue;
		data.length = read.length;
		send_frame(&owner, &data);
		evil_send(owner.link, bytes, read.length);
	}
	log_check("two reads", 0, NULL);
	leave_both();
	honest_end();
}

/* The owner ends while pieces are in flight, and its connection before that of the user. */
static void owner_ends_before_the_user(void)
{
	const struct tcp_frame read = {.kind = TCP_READ, .length = OWNED, .access = {{1, 1}, 0}};

	honest_begin(NULL);
	for (int resets = 0; resets < 2; resets++) {
		connect_both();
		send_frame(&user, &read);
		RIG_HOLDS(count(&owner, TCP_READ) > 0, "pieces of a large read");
		revoke_region();
		if (resets) {
			evil_reset(owner.link);
			evil_reset(owner.control);
			owner.link = owner.control = -1;
		}
		rig.ops->release_region(owner.conn, region);
		evil_leave(&owner);
		send_frame(&user, &read);
		rig_settle();
		evil_leave(&user);
		log_begin();
	}
	honest_end();
}

/* Wrong answers of the owner do not reach the user, and end both connections only. */
static void wrong_answers_of_the_owner(void)
{
	static const struct tcp_frame wrong[] = {
		{.kind = TCP_DATA, .length = 65537},
		{.kind = TCP_DATA, .queue = 40, .length = 1},
		{.kind = TCP_ACK, .acks = {1, {0}}},
		{.kind = TCP_READ, .length = 1, .access = {{1, 1}, 0}},
		{.kind = 99},
	};
	const struct tcp_frame read = {.kind = TCP_READ, .length = OWNED, .access = {{1, 1}, 0}};

	honest_begin(NULL);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		connect_both();
		send_frame(&user, &read);
		RIG_HOLDS(count(&owner, TCP_READ) > 0, "pieces of a large read");
		send_frame(&owner, &wrong[i]);
		rig_until(rig.b.n_closed, 1);
		rig_settle();
		RIG_NUM(0, count(&user, TCP_DATA), "answers to the user");
		leave_both();
		honest_check();
	}
	honest_end();
}

/* The user writes beyond the region, without the right, or half. The owner gets no part of it. */
static void wrong_accesses_of_the_user(void)
{
	static const struct tcp_frame wrong[] = {
		{.kind = TCP_WRITE, .length = 2, .access = {{1, 1}, OWNED - 1}},
		{.kind = TCP_READ, .length = 1, .access = {{7, 7}, 0}},
		{.kind = TCP_WRITE, .length = UINT32_MAX, .access = {{1, 1}, 0}},
		{.kind = TCP_READ, .length = 2, .access = {{1, 1}, UINT64_MAX}},
	};
	const struct tcp_frame half = {.kind = TCP_WRITE, .length = 100, .access = {{1, 1}, 0}};

	honest_begin(NULL);
	for (size_t i = 0; i <= sizeof(wrong) / sizeof(wrong[0]); i++) {
		int cut = i == sizeof(wrong) / sizeof(wrong[0]);

		connect_both();
		send_frame(&user, cut ? &half : &wrong[i]);
		if (cut) {
			evil_send(user.link, "0123456789", 10);
			evil_reset(user.link);
			evil_reset(user.control);
			user.link = user.control = -1;
		}
		rig_until(rig.b.n_closed, 1);
		RIG_NUM(0, count(&owner, TCP_WRITE), "writes that reach the owner");
		leave_both();
		honest_check();
	}
	honest_end();
}

/*
 * With the option direct, a third party opens links to the owner of memory: here, to the victim. It
 * is bound by the session and the secret, and its errors end only its link.
 */
static void hostile_third_party(void)
{
	static struct evil twin = {.control = -1, .link = -1};
	struct tcp_ctrl_region r, r_twin;
	struct tcp_hello hello;
	const struct tcp_frame wrong = {.kind = 99};
	struct tcp_frame frame = {.kind = TCP_READ, .length = 64, .access = {{1, 1}, 0}};
	uint8_t bytes[64];
	int n;

	honest_begin("direct=true");
	evil_connect(&owner);
	twin.session = owner.session;
	evil_connect(&twin);
	evil_export(&owner, GANTRY_REMOTE_READ, 1);
	evil_expect(&owner, TCP_CTRL_REGION, &r, sizeof(r));
	evil_export(&twin, GANTRY_REMOTE_READ, 1);
	evil_expect(&twin, TCP_CTRL_REGION, &r_twin, sizeof(r_twin));
	hello = evil_hello(&owner, TCP_DIRECT);
	hello.session = r.session;
	for (unsigned i = 0; i <= TCP_SECRET; i++) {
		memcpy(hello.secret, r.secret, sizeof(hello.secret));
		if (i < TCP_SECRET)
			hello.secret[i] ^= 1;
		user.link = evil_socket();
		evil_send(user.link, &hello, sizeof(hello));
		if (i == TCP_SECRET)
			break;
		evil_until_end(user.link);
		close(user.link);
		log_check("a forged secret of a direct link", 1, "accepts direct links");
	}
	RIG_NUM(64, evil_read(user.link, bytes, sizeof(bytes)), "bytes of READY");
	send_frame(&user, &frame);
	RIG_NUM(64, evil_read(user.link, &frame, sizeof(frame)), "bytes of DATA");
	RIG_NUM(64, evil_read(user.link, bytes, sizeof(bytes)), "bytes of the region");
	send_frame(&user, &wrong);
	evil_until_end(user.link);
	log_check("an error of a third party", 1, "an unknown frame");
	n = rig.b.n_msgs;
	evil_ctrl(&owner, TCP_CTRL_USER, "alive", 5);
	rig_until(rig.b.n_msgs, n + 1);
	evil_leave(&user);
	evil_leave(&twin);
	evil_leave(&owner);
	honest_end();
}

void relay_attacks(void)
{
	RIG_CASE(hostile_third_party);
	RIG_CASE(revoke_while_a_read_waits);
	RIG_CASE(revoke_while_all_pieces_wait);
	RIG_CASE(read_behind_a_large_read);
	RIG_CASE(owner_ends_before_the_user);
	RIG_CASE(wrong_answers_of_the_owner);
	RIG_CASE(wrong_accesses_of_the_user);
}
