/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs_hello.c - private data of RDMA connections with a record filter, changed on its way. End a
 * seals requests, of two connections; one end b reads them and seals replies, which end a reads.
 * An end accepts exactly the bytes that the other end has sealed, from the queue pair for which
 * they were sealed, with the credit that was sealed, and each request once.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/host.h"
#include "base/safe_path.h"
#include "fuzz/require.h"
#include "secure/auth.h"
#include "vb_hello.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ROUNDS 8
#define BYTES sizeof(struct vb_sealed_hello)

/* What an end has sealed, or the changed copy of it that arrives. */
struct sent {
	uint8_t bytes[VB_PRIVATE_MAX];
	size_t len;
	uint32_t qpn;
	struct vb_hello hello; /* what was sealed */
	bool is_of_conn_b;     /* of the connection of end b */
	bool is_taken;         /* end b has accepted it */
};

static struct gn_host hosts[2];
static struct vb_transport transports[2];
static struct vb_conn conn_a, conn_b, other_a, other_b;
static struct vb_import_peer owner, other_owner;

/* All that was sealed by the current input: requests at even places, replies at odd ones. */
static struct sent sent[2 * ROUNDS];
static unsigned n_sent;

static const uint8_t *input;
static size_t left;

static uint8_t byte(void)
{
	if (!left)
		return 0;
	left--;
	return *input++;
}

/* -- the connections -- */

static void open_transport(int listens, const char *keys)
{
	static struct ibv_device device = {.transport_type = IBV_TRANSPORT_IB};
	static struct ibv_context context = {.device = &device};
	const struct gn_auth_conf conf = {
		.mode = GN_AUTH_PSK, .identity = listens ? "" : "a", .keys = keys};

	gn_host_init(&hosts[listens], "fuzz");
	require(gn_auth_use(&hosts[listens], &conf) == 0);
	transports[listens].host = &hosts[listens].pub;
	transports[listens].device.context = &context;
}

/* Pass the output of one filter to the other. */
static void pass(const struct vb_conn *from, const struct vb_conn *to)
{
	uint8_t bytes[GANTRY_RECORDS_MAX];
	size_t n;

	while ((n = gn_auth_records.output(from->records, bytes, sizeof(bytes))) > 0)
		require(gn_auth_records.receive(to->records, bytes, n) == 0);
}

static void open_conns(struct vb_conn *a, struct vb_conn *b, struct vb_import_peer *peer,
		       uint8_t number)
{
	static const struct gantry_peer no_peer;
	struct vb_conn *const both[] = {a, b};

	for (int listens = 0; listens < 2; listens++) {
		struct vb_conn *conn = both[listens];

		conn->t = &transports[listens];
		conn->session = number;
		conn->secret = 1;
		conn->direct_secret = 1;
		memset(conn->direct_key, number, sizeof(conn->direct_key));
		require(gn_auth_records.open(&hosts[listens].pub, conn, listens, &no_peer,
					     &conn->records) == 0);
	}
	peer->session = number;
	memset(peer->key, number, sizeof(peer->key));
	pass(a, b);
	pass(b, a);
	pass(a, b);
	pass(b, a);
	for (int i = 0; i < 2; i++) {
		const char *text;

		require(gn_auth_records.state(both[i]->records, &text) == GANTRY_RECORDS_OPEN);
		both[i]->records_open = 1;
	}
}

static void setup(void)
{
	char path[] = "/tmp/gantry-fuzz-XXXXXX";
	const int fd = mkstemp(path);

	require(fd >= 0 && dprintf(fd, "a:%064d\n", 1) > 0);
	close(fd);
	open_transport(0, path);
	open_transport(1, path);
	unlink(path);
	open_conns(&conn_a, &conn_b, &owner, 1);
	open_conns(&other_a, &other_b, &other_owner, 2);
}

/* -- sealing -- */

static struct ibv_qp qp;
static struct ibv_mr credit_mr;

static struct vb_pipe make_pipe(struct vb_conn *conn, enum vb_end end, enum vb_kind kind,
				uint16_t connects_lane, uint16_t listens_lane)
{
	struct vb_pipe pipe = {.conn = conn,
			       .kind = kind,
			       .end = end,
			       .connects_lane = connects_lane,
			       .listens_lane = listens_lane};

	pipe.slots = pipe.slot_bytes = byte();
	pipe.credit = (struct vb_credit *)(uintptr_t)(byte() * 64u);
	pipe.credit_mr = &credit_mr;
	pipe.qp.qp = &qp;
	return pipe;
}

static struct sent *seal(struct vb_pipe *pipe)
{
	struct sent *s = &sent[n_sent++];

	*s = (struct sent){.is_of_conn_b = pipe->conn == &conn_a || pipe->conn == &conn_b};
	qp.qp_num = s->qpn = byte();
	credit_mr.rkey = byte();
	vb_pipe_hello(pipe, &s->hello);
	require(vb_hello_write(pipe, s->bytes, &s->len) == 0);
	require(s->len == BYTES);
	return s;
}

/* -- changing -- */

enum change {
	NOTHING,
	FLIP,       /* some bits */
	OVERWRITE,  /* from an offset, by the input */
	SPLICE,     /* from an offset, by something that was sealed before */
	QUEUE_PAIR, /* the number of another one */
	SHORTEN,
	SESSION, /* of the connection of end b */
	N_CHANGES
};

static void change_once(struct sent *s)
{
	const enum change change = byte() % N_CHANGES;
	const size_t at = byte() % BYTES;

	if (change == FLIP)
		s->bytes[at] ^= byte();
	else if (change == OVERWRITE)
		for (size_t i = at; i < BYTES && left; i++)
			s->bytes[i] = byte();
	else if (change == SPLICE)
		memcpy(s->bytes + at, sent[byte() % n_sent].bytes + at, BYTES - at);
	else if (change == QUEUE_PAIR)
		s->qpn = byte();
	else if (change == SHORTEN)
		s->len = at;
	else if (change == SESSION)
		memcpy(s->bytes + offsetof(struct vb_sealed_hello, session), &conn_b.session,
		       sizeof(conn_b.session));
}

static struct sent change(const struct sent *of)
{
	struct sent s = *of;

	for (unsigned n = byte() % 4; n; n--)
		change_once(&s);
	return s;
}

/* -- reading -- */

static bool same(const struct sent *s, const struct sent *t)
{
	return s->len == t->len && s->qpn == t->qpn && memcmp(s->bytes, t->bytes, BYTES) == 0;
}

/* Returns the request of which this is an unchanged copy; NULL: none. */
static struct sent *find_request(const struct sent *s)
{
	for (unsigned i = 0; i < n_sent; i += 2)
		if (sent[i].is_of_conn_b && same(&sent[i], s))
			return &sent[i];
	return NULL;
}

/* Read what arrives. Returns false if it is not valid. */
static bool read_hello(const struct vb_conn *conn, const struct sent *s,
		       struct vb_greeting *greeting)
{
	struct vb_event event = {.qpn = s->qpn, .private_len = (uint8_t)s->len};
	const struct vb_sealed_hello *sealed = &greeting->sealed;

	memcpy(event.private_data, s->bytes, s->len);
	if (vb_hello_read(conn->t, &event, greeting))
		return false;
	require(s->len == BYTES && memcmp(sealed, s->bytes, BYTES) == 0);
	return true;
}

/* The greeting was accepted: its fields are those that were sealed. */
static void check_fields(const struct vb_greeting *greeting, const struct sent *s)
{
	const struct vb_hello *got = &greeting->hello, *due = &s->hello;

	require(got->credit_key == due->credit_key && got->credit_addr == due->credit_addr);
	require(got->kind == due->kind && got->end == due->end && got->session == due->session &&
		got->connects_lane == due->connects_lane &&
		got->listens_lane == due->listens_lane && got->slots == due->slots &&
		got->slot_bytes == due->slot_bytes && got->secret == 0);
}

static void give_request(const struct sent *s)
{
	struct sent *due = find_request(s);
	struct vb_greeting greeting;
	bool accepted;
	int rc;

	if (!read_hello(&conn_b, s, &greeting) || greeting.hello.kind == VB_CONTROL) {
		require(!due);
		return;
	}
	accepted = vb_hello_belongs(&conn_b, &greeting);
	require(accepted == (due != NULL));
	if (!accepted)
		return;
	check_fields(&greeting, due);
	rc = vb_hello_remember(&conn_b, &greeting);
	require(rc == (due->is_taken ? -EALREADY : 0));
	due->is_taken = true;
}

static void give_reply(const struct vb_pipe *asks, const struct sent *s, const struct sent *due)
{
	struct vb_greeting greeting;
	bool accepted = read_hello(asks->conn, s, &greeting) && vb_hello_answers(asks, &greeting);

	require(accepted == same(s, due));
	if (accepted)
		check_fields(&greeting, due);
}

/* -- a round: a request and its reply -- */

static void run_round(void)
{
	static const enum vb_kind kinds[] = {VB_MESSAGES, VB_DATA, VB_DIRECT};
	const enum vb_kind kind = kinds[byte() % 3];
	const bool ours = byte() % 4 != 0;
	const uint16_t connects_lane = byte();
	const uint16_t listens_lane = kind == VB_MESSAGES ? byte() : VB_NO_LANE;
	struct vb_pipe asks = make_pipe(ours ? &conn_a : &other_a, VB_CONNECTS, kind, connects_lane,
					listens_lane);
	struct vb_pipe answers;
	struct sent *request, *reply, arrives;

	if (kind == VB_DIRECT)
		asks.peer = ours ? &owner : &other_owner;
	request = seal(&asks);
	arrives = change(request);
	give_request(&arrives);
	answers = make_pipe(ours ? &conn_b : &other_b, VB_LISTENS, kind, asks.connects_lane,
			    asks.listens_lane);
	answers.sequence = asks.sequence;
	memcpy(answers.proof, asks.proof, sizeof(answers.proof));
	reply = seal(&answers);
	arrives = change(reply);
	give_reply(&asks, &arrives, reply);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!hosts[0].auth)
		setup();
	input = data;
	left = size;
	n_sent = 0;
	for (int i = 0; i < ROUNDS && left; i++)
		run_round();
	free(conn_b.seen);
	conn_b.seen = NULL;
	conn_b.n_seen = 0;
	transports[0].sequence = 0;
	return 0;
}
