/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp_hostile_control.c - wrong hellos, and wrong messages on the control socket. */
#include "conform/tcp_hostile.h"

#include <stddef.h>
#include <unistd.h>

/* -- the hello -- */

#define FIELD(name) offsetof(struct tcp_hello, name), sizeof(((struct tcp_hello *)0)->name)

/* A hello that is valid except for one field. */
struct wrong_hello {
	const char *what;
	enum tcp_hello_kind kind;
	size_t at, bytes;
	uint64_t value;
	const char *log;
};

#define MALFORMED "malformed request"
#define NO_DIRECT "no such session accepts direct links"
#define NO_SESSION "no such session"

static const struct wrong_hello hellos[] = {
	{"no magic", TCP_CONTROL, FIELD(magic), 0, "does not belong to the protocol"},
	{"HTTP", TCP_CONTROL, FIELD(magic), 0x20544547, "does not belong to the protocol"},
	{"version 0", TCP_CONTROL, FIELD(version), 0, "other protocol version"},
	{"next version", TCP_CONTROL, FIELD(version), TCP_VERSION + 1, "other protocol version"},
	{"last version", TCP_CONTROL, FIELD(version), UINT16_MAX, "other protocol version"},
	{"kind 0", TCP_CONTROL, FIELD(kind), 0, MALFORMED},
	{"next kind", TCP_CONTROL, FIELD(kind), TCP_DIRECT + 1, MALFORMED},
	{"a record filter", TCP_CONTROL, FIELD(version), TCP_VERSION | TCP_RECORDS,
	 "only one end protects"},
	{"a direct link that is not offered", TCP_DIRECT, FIELD(zero), 0, NO_DIRECT},
	{"direct link to lane 256", TCP_DIRECT, FIELD(listens_lane), 256, MALFORMED},
	{"direct link without accesses", TCP_DIRECT, FIELD(ops), 0, MALFORMED},
	{"kind 255", TCP_CONTROL, FIELD(kind), 255, MALFORMED},
	{"session 0", TCP_CONTROL, FIELD(session), 0, MALFORMED},
	{"link of session 0", TCP_LINK, FIELD(session), 0, MALFORMED},
	{"lane 256 of the client", TCP_LINK, FIELD(connects_lane), 256, MALFORMED},
	{"last lane of the client", TCP_LINK, FIELD(connects_lane), UINT16_MAX, MALFORMED},
	{"lane 256 of the server", TCP_LINK, FIELD(listens_lane), 256, MALFORMED},
	{"last lane of the server", TCP_LINK, FIELD(listens_lane), UINT16_MAX, MALFORMED},
	{"no accesses", TCP_LINK, FIELD(ops), 0, MALFORMED},
	{"session that does not exist", TCP_LINK, FIELD(session), 1, NO_SESSION},
	{"last session", TCP_LINK, FIELD(session), UINT64_MAX, NO_SESSION},
	{"secret of no session", TCP_LINK, FIELD(secret), 0, NO_SESSION},
};

/* The victim refuses the hello on a socket of its own. */
static void send_wrong(const struct tcp_hello *hello, const char *what, const char *log)
{
	int fd = evil_socket();

	evil_send(fd, hello, sizeof(*hello));
	evil_until_end(fd);
	close(fd);
	log_check(what, 1, log);
}

static void wrong_hellos(void)
{
	honest_begin(NULL);
	evil_connect(&evil);
	for (size_t i = 0; i < sizeof(hellos) / sizeof(hellos[0]); i++) {
		const struct wrong_hello *w = &hellos[i];
		struct tcp_hello hello = evil_hello(&evil, w->kind);

		memset((char *)&hello + w->at, 0, w->bytes);
		memcpy((char *)&hello + w->at, &w->value,
		       w->bytes < sizeof(w->value) ? w->bytes : sizeof(w->value));
		send_wrong(&hello, w->what, w->log);
	}
	evil_leave(&evil);
	honest_end();
}

/* A link needs each bit of the secret, of the session that it names. */
static void forged_secrets(void)
{
	static struct evil second = {.control = -1, .link = -1};
	struct tcp_hello hello;

	honest_begin(NULL);
	evil_connect(&evil);
	evil_connect(&second);
	for (unsigned bit = 0; bit < 8 * TCP_SECRET; bit++) {
		hello = evil_hello(&evil, TCP_LINK);
		hello.secret[bit / 8] ^= (uint8_t)(1u << bit % 8);
		send_wrong(&hello, "one wrong bit", NO_SESSION);
	}
	hello = evil_hello(&evil, TCP_LINK);
	memcpy(hello.secret, second.secret, sizeof(hello.secret));
	send_wrong(&hello, "secret of another session", NO_SESSION);
	hello = evil_hello(&evil, TCP_LINK);
	close(evil.control);
	rig_until(rig.b.n_closed, 1);
	log_begin();
	send_wrong(&hello, "session that has ended", NO_SESSION);
	evil.control = -1;
	evil_leave(&evil);
	evil_leave(&second);
	honest_end();
}

/*
 * The client chooses the number of its session. A second session with the same number does not
 * take over links of the first one, and does not keep them away.
 */
static void sessions_of_the_same_number(void)
{
	static struct evil second = {.control = -1, .link = -1};

	honest_begin(NULL);
	evil_connect(&evil);
	second.session = evil.session;
	evil_connect(&second);
	RIG_HOLDS(memcmp(evil.secret, second.secret, TCP_SECRET) != 0, "secrets of two sessions");
	evil_link(&evil);
	evil_link(&second);
	evil_leave(&second);
	evil_leave(&evil);
	log_check("sessions of the same number", 0, NULL);
	honest_end();
}

/* -- control messages -- */

#define UNKNOWN "sends an unknown message"
#define SHAPE "sends a malformed message"
#define CONSUMER "announces an invalid consumer"
#define REGION "announces an invalid region"
#define NAME "revokes or releases a region that does not exist"

/* The victim has exported {1, 1}; the attacker {1, 1} and {5, 5}, and its consumer 3 is up. */
union body {
	struct tcp_ctrl_consumer consumer;
	struct tcp_ctrl_region region;
	struct tcp_name name;
	struct tcp_ctrl_link link;
	uint8_t bytes[GANTRY_CTRL_MAX];
};

struct wrong_message {
	const char *what;
	unsigned kind;
	uint16_t length;
	union body body;
	const char *log;
};

#define LEN(member) sizeof(((union body *)0)->member)
#define A_CONSUMER(...) \
	{ \
		.consumer = { __VA_ARGS__, 0 } \
	}
#define A_REGION(handle_, generation_, length_, rights_) \
	{ \
		.region = {.name = {handle_, generation_}, .length = length_, .rights = rights_ } \
	}
#define A_NAME(...) \
	{ \
		.name = { __VA_ARGS__ } \
	}
#define NOTHING \
	{ \
		.bytes = { 0 } \
	}

static const struct wrong_message messages[] = {
	{"kind 0", 0, 0, NOTHING, UNKNOWN},
	{"next kind", TCP_CTRL_BYE + 1, 0, NOTHING, UNKNOWN},
	{"last kind", 255, 16, NOTHING, UNKNOWN},
	{"welcome", TCP_CTRL_WELCOME, sizeof(struct tcp_welcome), NOTHING, "unexpected welcome"},
	{"refusal", TCP_CTRL_REFUSED, sizeof(struct tcp_refused), NOTHING, "unexpected refusal"},
	{"empty message", TCP_CTRL_USER, 0, NOTHING, "sends an empty message"},
	{"short consumer", TCP_CTRL_CONSUMER, LEN(consumer) - 1, A_CONSUMER(7, 0, 1), SHAPE},
	{"long consumer", TCP_CTRL_CONSUMER, LEN(consumer) + 1, A_CONSUMER(7, 0, 1), SHAPE},
	{"consumer 0", TCP_CTRL_CONSUMER, LEN(consumer), A_CONSUMER(0, 0, 1), CONSUMER},
	{"consumer on lane 256", TCP_CTRL_CONSUMER, LEN(consumer), A_CONSUMER(7, 256, 1), CONSUMER},
	{"consumer neither up nor down", TCP_CTRL_CONSUMER, LEN(consumer), A_CONSUMER(7, 0, 2),
	 CONSUMER},
	{"consumer twice", TCP_CTRL_CONSUMER, LEN(consumer), A_CONSUMER(3, 0, 1), CONSUMER},
	{"end of no consumer", TCP_CTRL_CONSUMER, LEN(consumer), A_CONSUMER(4, 0, 0), CONSUMER},
	{"short region", TCP_CTRL_REGION, LEN(region) - 1, A_REGION(6, 6, 1, 1), SHAPE},
	{"long region", TCP_CTRL_REGION, LEN(region) + 1, A_REGION(6, 6, 1, 1), SHAPE},
	{"region without bytes", TCP_CTRL_REGION, LEN(region), A_REGION(6, 6, 0, 1), REGION},
	{"region without rights", TCP_CTRL_REGION, LEN(region), A_REGION(6, 6, 1, 0), REGION},
	{"region with unknown rights", TCP_CTRL_REGION, LEN(region), A_REGION(6, 6, 1, 4), REGION},
	{"region of generation 0", TCP_CTRL_REGION, LEN(region), A_REGION(6, 0, 1, 1), REGION},
	{"region of an old generation", TCP_CTRL_REGION, LEN(region), A_REGION(6, 5, 1, 1), REGION},
	{"handle twice", TCP_CTRL_REGION, LEN(region), A_REGION(5, 6, 1, 1), REGION},
	{"short revoke", TCP_CTRL_REVOKE, LEN(name) - 1, A_NAME(1, 1), SHAPE},
	{"revoke of generation 0", TCP_CTRL_REVOKE, LEN(name), A_NAME(0, 0), NAME},
	{"revoke of another generation", TCP_CTRL_REVOKE, LEN(name), A_NAME(1, 2), NAME},
	{"revoke of another handle", TCP_CTRL_REVOKE, LEN(name), A_NAME(2, 1), NAME},
	{"long release", TCP_CTRL_RELEASED, LEN(name) + 1, A_NAME(1, 1), SHAPE},
	{"release of generation 0", TCP_CTRL_RELEASED, LEN(name), A_NAME(1, 0), NAME},
	{"release of a later generation", TCP_CTRL_RELEASED, LEN(name), A_NAME(1, 2), NAME},
	{"release of what was not revoked", TCP_CTRL_RELEASED, LEN(name), A_NAME(1, 1), NAME},
	{"a client asks for a link", TCP_CTRL_LINK, LEN(link), NOTHING, SHAPE},
	{"too long by a byte", TCP_CTRL_USER, GANTRY_CTRL_MAX + 1, NOTHING, "too long"},
	{"as long as can be", TCP_CTRL_USER, UINT16_MAX, NOTHING, "too long"},
};

/* Connect, with one consumer and two regions of each attacker. */
static void connect_with_objects(struct evil *peer)
{
	const struct tcp_ctrl_consumer consumer = {.id = 3, .up = 1};
	const struct tcp_ctrl_region one = {.name = {1, 1}, .length = 64, .rights = 1},
				     five = {.name = {5, 5}, .length = UINT64_MAX, .rights = 3};

	evil_connect(peer);
	evil_export(peer, EVIL_BOTH, 1);
	evil_ctrl(peer, TCP_CTRL_CONSUMER, &consumer, sizeof(consumer));
	evil_ctrl(peer, TCP_CTRL_REGION, &one, sizeof(one));
	evil_ctrl(peer, TCP_CTRL_REGION, &five, sizeof(five));
	log_check("valid messages", 0, NULL);
}

static void wrong_messages(void)
{
	honest_begin(NULL);
	for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
		const struct wrong_message *w = &messages[i];
		const struct tcp_ctrl head = {.kind = (uint8_t)w->kind, .length = w->length};

		connect_with_objects(&evil);
		evil_send(evil.control, &head, sizeof(head));
		if (w->length <= GANTRY_CTRL_MAX)
			evil_send(evil.control, &w->body, w->length);
		log_dropped(&evil, w->what, w->log);
		honest_check();
	}
	honest_end();
}

/* The tables of a connection are limited. */
static void too_many_consumers(void)
{
	honest_begin(NULL);
	evil_connect(&evil);
	for (uint32_t i = 1; i <= 257; i++) {
		const struct tcp_ctrl_consumer c = {.id = i, .lane = (uint16_t)(i % 256), .up = 1};

		if (i == 257)
			log_check("as many consumers as permitted", 0, NULL);
		evil_ctrl(&evil, TCP_CTRL_CONSUMER, &c, sizeof(c));
	}
	log_dropped(&evil, "too many consumers", CONSUMER);
	honest_end();
}

static void too_many_regions(void)
{
	honest_begin(NULL);
	evil_connect(&evil);
	for (uint32_t i = 1; i <= 257; i++) {
		const struct tcp_ctrl_region r = {.name = {i, i}, .length = 1, .rights = 1};

		if (i == 257)
			log_check("as many regions as permitted", 0, NULL);
		evil_ctrl(&evil, TCP_CTRL_REGION, &r, sizeof(r));
	}
	log_dropped(&evil, "too many regions", REGION);
	honest_end();
}

/*
 * The attacker reads nothing. What the victim sends waits in a queue of limited size, for the user
 * and for answers to the attacker.
 */
static void control_that_is_never_read(void)
{
	uint8_t msg[GANTRY_CTRL_MAX] = {0};
	int rc = 0;

	honest_begin(EVIL_UNREAD);
	evil_connect(&evil);
	for (int i = 0; i < 10000 && !rc; i++)
		rc = rig.ops->send_ctrl(evil.conn, msg, sizeof(msg));
	RIG_RC(-EAGAIN, rc, "send_ctrl to a peer that does not read");
	honest_check();
	for (uint32_t i = 1; i < 1000000 && !rig.b.n_closed; i++) {
		const struct tcp_ctrl_region r = {.name = {1, i}, .length = 1, .rights = 1};

		evil_ctrl(&evil, TCP_CTRL_REGION, &r, sizeof(r));
		evil_ctrl(&evil, TCP_CTRL_REVOKE, &r.name, sizeof(r.name));
		if (i % 64 == 0)
			rig_turn();
	}
	log_dropped(&evil, "a peer that does not read", "does not read its control messages");
	honest_end();
}

/* Hello, messages and frames arrive by single bytes, and honest data between them. */
static void one_byte_in_each_turn(void)
{
	const struct tcp_ctrl_consumer consumer = {.id = 3, .up = 1};
	const struct tcp_frame frame = {.kind = TCP_SHUT};
	struct {
		struct tcp_ctrl head;
		struct tcp_ctrl_consumer body;
	} msg = {{.kind = TCP_CTRL_CONSUMER, .length = sizeof(consumer)}, consumer};
	struct tcp_hello hello = {.session = 1};
	struct tcp_frame ready;
	int up;

	honest_begin(NULL);
	hello = evil_hello(&(struct evil){.session = 4242}, TCP_CONTROL);
	evil.session = hello.session;
	evil.control = evil_socket();
	for (size_t i = 0; i < sizeof(hello); i++) {
		evil_send(evil.control, (char *)&hello + i, 1);
		rig_turn();
		if (i % 16 == 0)
			honest_check();
	}
	evil_expect(&evil, TCP_CTRL_WELCOME, evil.secret, sizeof(evil.secret));
	evil.conn = rig.b.conn;
	up = rig.b.n_up;
	for (size_t i = 0; i < sizeof(msg); i++) {
		evil_send(evil.control, (char *)&msg + i, 1);
		rig_turn();
	}
	rig_until(rig.b.n_up, up + 1);
	hello = evil_hello(&evil, TCP_LINK);
	evil.link = evil_socket();
	for (size_t i = 0; i < sizeof(hello); i++) {
		evil_send(evil.link, (char *)&hello + i, 1);
		rig_turn();
	}
	RIG_NUM(sizeof(ready), evil_read(evil.link, &ready, sizeof(ready)), "bytes of READY");
	for (size_t i = 0; i < sizeof(frame); i++) {
		evil_send(evil.link, (const char *)&frame + i, 1);
		rig_turn();
	}
	honest_check();
	log_check("one byte in each turn", 0, NULL);
	evil_leave(&evil);
	honest_end();
}

void control_attacks(void)
{
	RIG_CASE(wrong_hellos);
	RIG_CASE(forged_secrets);
	RIG_CASE(sessions_of_the_same_number);
	RIG_CASE(wrong_messages);
	RIG_CASE(too_many_consumers);
	RIG_CASE(too_many_regions);
	RIG_CASE(control_that_is_never_read);
	RIG_CASE(one_byte_in_each_turn);
}
