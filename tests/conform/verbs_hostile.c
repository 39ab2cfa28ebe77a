/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs_hostile.c - a peer that speaks RDMA attacks end b, to which an honest peer is connected.
 * Every attack gets the expected answer, only the attacker is affected, no byte of memory changes,
 * and nothing leaks.
 *
 * The suite runs over the fake of the libraries (RIG_FAKE) or over real devices, which the
 * environment names as for verbs.c. RIG_FROM is the address of the attacker.
 */
#include "conform/verbs_hostile.h"

#include <stdio.h>
#include <stdlib.h>

#define BOTH (GANTRY_REMOTE_READ | GANTRY_REMOTE_WRITE)
#define BYTES 65536u
#define SEED 77

struct raw evil, more;
void *hostile_consumer;
unsigned hostile_taken;

static struct rig_queue *good;
static struct rig_rma *good_rma;
static struct rig_memory good_memory, memory;
static struct gantry_region *good_region;
static void *good_b;

/* -- the honest peer -- */

static void turn(void)
{
	struct gantry_msg msgs[8];
	int n;

	rig_turn();
	n = hostile_consumer ? rig.ops->poll_recv(hostile_consumer, msgs, 8) : 0;
	for (int i = 0; i < n; i++)
		hostile_taken += msgs[i].status == 0;
}

void hostile_begin(const char *setting)
{
	static char from[64], at[64];
	const char *host = getenv("RIG_HOST"), *own = getenv("RIG_FROM");
	struct gantry_token token;

	snprintf(at, sizeof(at), "%s", host ? host : "10.99.0.1");
	snprintf(from, sizeof(from), "%s", own ? own : "10.99.0.2");
	raw_place = (struct raw_place){.at = at, .from = from, .port = 7471, .turn = turn};
	if (setting) {
		rig.ops->close(rig.b.dev);
		free(rig.b.conf);
		rig_open_end(&rig.b, setting);
	}
	rig_connect();
	good_b = rig.b.conn;
	good = rig_queue_open(&rig.b, &rig.a, 8, 0);
	rig_memory_open(&good_memory, BYTES, BOTH);
	TEST_ASSERT_EQUAL_INT(0,
			      rig.ops->export_region(good_b, &good_memory.region, BOTH, 1, &token));
	rig_fence();
	TEST_ASSERT_EQUAL_INT(0, rig.ops->import_region(rig.a.conn, &token, 0, &good_region));
	good_rma = rig_rma_open(&rig.a, 4, 0);
	rig_memory_open(&memory, BYTES, BOTH);
	rig_fill(memory.bytes, BYTES, SEED);
}

void hostile_check_honest(void)
{
	static uint32_t seed;
	struct gantry_msg msg;
	uint8_t *local = rig.local.addr;

	seed++;
	TEST_ASSERT_EQUAL_INT(0, rig.a.n_closed);
	TEST_ASSERT_EQUAL_INT(0, rig.ops->post_recv(good->rx, 1));
	TEST_ASSERT_EQUAL_INT(0, rig_send_imm(good, 4711));
	rig_take(good, &msg);
	TEST_ASSERT_EQUAL_INT(0, msg.status);
	rig_fill(local, BYTES, seed);
	TEST_ASSERT_EQUAL_INT(
		0, rig_rma_move(good_rma, GANTRY_RMA_WRITE, local, good_region, 0, BYTES));
	TEST_ASSERT_TRUE(rig_filled(good_memory.bytes, BYTES, seed));
	TEST_ASSERT_TRUE_MESSAGE(rig_filled(memory.bytes, BYTES, SEED), "memory has changed");
}

/* End b releases all that does not belong to the honest peer. */
static void let_go(void)
{
	for (unsigned i = 0; i < RIG_CONNS; i++)
		if (rig.b.conns[i].conn && rig.b.conns[i].conn != good_b) {
			rig.b.conn = rig.b.conns[i].conn;
			rig_disconnect(&rig.b);
		}
	rig.b.conn = good_b;
}

void hostile_end(void)
{
	raw_close(&more);
	raw_close(&evil);
	let_go();
	hostile_check_honest();
	rig.ops->release_region(rig.a.conn, good_region);
	rig_close();
}

/* -- the attacker -- */

static int n_accepts, n_closes;
static unsigned n_warnings;
static size_t logged;

/* Connect the attacker; its connection at end b is rig.b.conn. */
void hostile_intrude(void)
{
	n_accepts = rig.b.n_accept;
	n_closes = rig.b.n_closed;
	n_warnings = rig.b.host.n_logged[GANTRY_LOG_WARN];
	logged = rig.b.host.log_used = 0;
	raw_connect(&evil);
	rig_until(rig.b.n_accept, n_accepts + 1);
	rig_settle();
}

/*
 * The connection of the attacker must have ended for this reason, with a warning that contains the
 * text. No other connection has ended.
 */
void hostile_check_dropped(const char *what, int reason, const char *text)
{
	char why[256];
	unsigned n;

	snprintf(why, sizeof(why), "%s: reason %d: %.160s", what, rig.b.reason, rig.b.host.log);
	TEST_ASSERT_TRUE_MESSAGE(raw_lost(&evil), why);
	rig_until(rig.b.n_closed, n_closes + 1);
	snprintf(why, sizeof(why), "%s: reason %d: %.160s", what, rig.b.reason, rig.b.host.log);
	TEST_ASSERT_TRUE_MESSAGE(!reason || rig.b.reason == reason, why);
	TEST_ASSERT_TRUE_MESSAGE(!text || fake_logged(&rig.b.host, text), why);
	/* one warning, or two if the device also reported an event */
	n = fake_logged(&rig.b.host, " ends: ") ? 2 : 1;
	TEST_ASSERT_TRUE_MESSAGE(rig.b.host.n_logged[GANTRY_LOG_WARN] <= n_warnings + n, why);
	TEST_ASSERT_EQUAL_INT_MESSAGE(n_closes + 1, rig.b.n_closed, why);
}

void hostile_leave(void)
{
	raw_close(&more);
	raw_close(&evil);
	rig_until(rig.b.n_closed, n_closes + 1);
	if (hostile_consumer)
		rig.ops->consumer_destroy(hostile_consumer);
	hostile_consumer = NULL;
	let_go();
	rig_settle();
}

/* -- connection requests -- */

enum { WHOLE = sizeof(struct vb_hello), NOTHING = -1, GARBAGE = -2 };

struct knock {
	const char *what;
	/*
	 * write `value` to the `len` bytes of the valid request at `offset`; offset NOTHING: send
	 * `len` zeros instead; GARBAGE: send other bytes instead
	 */
	int offset, len;
	uint64_t value;
	const char *text;
	int reason;
};

#define FIELD(f) (int)offsetof(struct vb_hello, f), (int)sizeof(((struct vb_hello *)0)->f)

static void check_refused(struct raw *raw, const char *what, const char *text, int reason)
{
	char why[256];

	snprintf(why, sizeof(why), "%s: up %d, refused %d: %.100s", what, raw->up, raw->refused,
		 raw->refusal.text);
	TEST_ASSERT_TRUE_MESSAGE(raw->refused && !raw->up, why);
	TEST_ASSERT_EQUAL_HEX32_MESSAGE(VB_MAGIC, raw->refusal.magic, why);
	TEST_ASSERT_TRUE_MESSAGE(strstr(raw->refusal.text, text) != NULL, why);
	TEST_ASSERT_EQUAL_INT_MESSAGE(reason, raw->refusal.reason, why);
}

static void knock(struct raw *raw, const struct knock *k, enum vb_kind kind, const struct raw *of)
{
	struct vb_hello hello;
	uint8_t bytes[56] = {0};

	raw_open(raw);
	hello = raw_hello(raw, kind, of);
	if (k->offset >= 0)
		memcpy((uint8_t *)&hello + k->offset, &k->value, (size_t)k->len);
	memcpy(bytes, &hello, sizeof(hello));
	if (k->offset == GARBAGE)
		memset(bytes, 0xa5, sizeof(bytes));
	raw_ask(raw, k->offset == NOTHING && !k->len ? NULL : bytes,
		k->offset == NOTHING   ? (size_t)k->len
		: k->offset == GARBAGE ? sizeof(bytes)
				       : sizeof(hello));
	check_refused(raw, k->what, k->text, k->reason);
	raw_close(raw);
}

static void wrong_requests(void)
{
	static const char stranger[] = "does not belong to the protocol",
			  malformed[] = "malformed request";
	static const struct knock rows[] = {
		{"no private data", NOTHING, 0, 0, stranger, EPROTO},
		{"short private data", NOTHING, 8, 0, malformed, EPROTO},
		{"garbage", GARBAGE, 0, 0, stranger, EPROTO},
		{"magic", FIELD(magic), 0x4d445248, stranger, EPROTO},
		{"version", FIELD(version), VB_VERSION + 1, "other protocol version", EPROTO},
		{"no kind", FIELD(kind), 0, malformed, EPROTO},
		{"unknown kind", FIELD(kind), VB_DIRECT + 1, malformed, EPROTO},
		{"other end", FIELD(end), VB_LISTENS, malformed, EPROTO},
		{"no session", FIELD(session), 0, malformed, EPROTO},
		{"no slots", FIELD(slots), 0, malformed, EPROTO},
		{"other slots", FIELD(slot_bytes), UINT32_MAX, "inline differs", EPROTO},
	};
	int n;

	hostile_begin(NULL);
	n = rig.b.n_accept;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		knock(&evil, &rows[i], VB_CONTROL, NULL);
	TEST_ASSERT_EQUAL_INT(n, rig.b.n_accept);
	TEST_ASSERT_TRUE_MESSAGE(fake_logged(&rig.b.host, "refusing 10."), rig.b.host.log);
	hostile_end();
}

static void further(const char *what, enum vb_kind kind, int offset, int len, uint64_t value,
		    const char *text, int reason)
{
	const struct knock k = {what, offset, len, value, text, reason};

	knock(&more, &k, kind, &evil);
}

static void wrong_further_queue_pairs(void)
{
	static const char none[] = "no such session", no[] = "no such queue pair";
	struct vb_hello hello;

	hostile_begin(NULL);
	hostile_intrude();
	further("unknown session", VB_MESSAGES, FIELD(session), 4711, none, EACCES);
	further("no secret", VB_MESSAGES, FIELD(secret), 0, none, EACCES);
	further("wrong secret", VB_DATA, FIELD(secret), evil.hello.secret ^ 1, none, EACCES);
	further("the secret is not that of direct access", VB_DIRECT, FIELD(session),
		evil.hello.session, none, EACCES);
	further("no secret for direct access", VB_DIRECT, FIELD(secret), 0, none, EACCES);
	further("lane of who connects", VB_MESSAGES, FIELD(connects_lane), VB_NO_LANE, no, EPROTO);
	further("lane of who listens", VB_MESSAGES, FIELD(listens_lane), 256, no, EPROTO);
	further("too many lanes", VB_DATA, FIELD(listens_lane), 3, no, EPROTO);
	further("no lane", VB_DATA, FIELD(connects_lane), VB_NO_LANE, no, EPROTO);
	further("slots", VB_MESSAGES, FIELD(slots), 0, "malformed", EPROTO);
	further("other slots", VB_MESSAGES, FIELD(slot_bytes), 1, "inline differs", EPROTO);
	raw_open(&more);
	hello = raw_hello(&more, VB_DATA, &evil);
	raw_ask(&more, &hello, sizeof(hello));
	TEST_ASSERT_TRUE_MESSAGE(more.up, more.refusal.text);
	{
		static struct raw twice;
		const struct knock k = {"twice", FIELD(listens_lane), VB_NO_LANE, no, EBUSY};

		knock(&twice, &k, VB_DATA, &evil);
	}
	/* no attack above has ended the connection of the attacker: b still takes its messages */
	n_accepts = rig.b.n_msgs;
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, raw_ctrl(&evil, VB_CTRL_USER, "well", 4));
	rig_until(rig.b.n_msgs, n_accepts + 1);
	hostile_leave();
	hostile_end();
}

/* -- memory -- */

enum reach { OWN, OTHER, CREDIT };

struct access {
	const char *what;
	enum ibv_wr_opcode opcode;
	uint32_t rights; /* rights of the region */
	enum reach reach;
	uint32_t key; /* XORed with the key of the region */
	int64_t at;   /* offset from the start of the region */
	uint32_t len;
};

/* Announce a region to the attacker; its connection at end b is rig.b.conn. */
static struct vb_ctrl_region announce(struct raw *raw, uint32_t rights, uint32_t handle)
{
	struct vb_ctrl_region r;
	struct gantry_token token;
	const void *body;

	TEST_ASSERT_EQUAL_INT(
		0, rig.ops->export_region(rig.b.conn, &memory.region, rights, handle, &token));
	body = raw_heard(raw, VB_CTRL_REGION);
	TEST_ASSERT_NOT_NULL_MESSAGE(body, "no region is announced");
	memcpy(&r, body, sizeof(r));
	return r;
}

static void try_access(const struct access *a)
{
	struct vb_ctrl_region r;
	void *first;
	char why[128];
	int status;

	hostile_intrude();
	r = announce(&evil, a->rights, 1);
	first = rig.b.conn;
	if (a->reach == OTHER) { /* a region of another connection of the attacker */
		raw_connect(&more);
		rig_until(rig.b.n_accept, n_accepts + 2);
		r = announce(&more, a->rights, 1);
		rig.b.conn = first;
	}
	if (a->reach == CREDIT) {
		r.addr = evil.hello.credit_addr;
		r.key = evil.hello.credit_key;
	}
	memset(evil.out, 0xee, RAW_SLOT);
	status = raw_move(&evil, a->opcode, r.addr + (uint64_t)a->at, r.key ^ a->key, a->len);
	snprintf(why, sizeof(why), "%s: %s", a->what, ibv_wc_status_str(status));
	TEST_ASSERT_TRUE_MESSAGE(status == IBV_WC_REM_ACCESS_ERR, why);
	for (uint32_t i = 0; i < a->len && i < RAW_SLOT; i++)
		TEST_ASSERT_TRUE_MESSAGE((uint8_t)evil.out[i] == 0xee, why);
	hostile_check_dropped(a->what, 0, NULL);
	if (more.channel)
		TEST_ASSERT_EQUAL_INT_MESSAGE(IBV_WC_SUCCESS,
					      raw_ctrl(&more, VB_CTRL_USER, "well", 4), a->what);
	hostile_leave();
	hostile_check_honest();
}

static void access_outside_exported_memory(void)
{
	static const struct access rows[] = {
		{"write, wrong key", IBV_WR_RDMA_WRITE, BOTH, OWN, 0x1, 0, 64},
		{"read, wrong key", IBV_WR_RDMA_READ, BOTH, OWN, 0x7f00, 0, 64},
		{"write, key 0", IBV_WR_RDMA_WRITE, BOTH, OWN, UINT32_MAX, 0, 64},
		{"write past the end", IBV_WR_RDMA_WRITE, BOTH, OWN, 0, BYTES - 63, 64},
		{"read past the end", IBV_WR_RDMA_READ, BOTH, OWN, 0, BYTES, 1},
		{"write below the start", IBV_WR_RDMA_WRITE, BOTH, OWN, 0, -1, 64},
		{"read below the start", IBV_WR_RDMA_READ, BOTH, OWN, 0, -4096, 4096},
		{"write to what may be read", IBV_WR_RDMA_WRITE, GANTRY_REMOTE_READ, OWN, 0, 0, 64},
		{"read of what may be written", IBV_WR_RDMA_READ, GANTRY_REMOTE_WRITE, OWN, 0, 0,
		 64},
		{"write with the key of another connection", IBV_WR_RDMA_WRITE, BOTH, OTHER, 0, 0,
		 64},
		{"read with the key of another connection", IBV_WR_RDMA_READ, BOTH, OTHER, 0, 0,
		 64},
		{"read of the credit word", IBV_WR_RDMA_READ, BOTH, CREDIT, 0, 0, 8},
		{"write beyond the credit word", IBV_WR_RDMA_WRITE, BOTH, CREDIT, 0, 0, 16},
	};

	hostile_begin(NULL);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		try_access(&rows[i]);
	hostile_end();
}

/* The key of a revoked region gives no access, whether the attacker released it or not. */
static void stale_keys(void)
{
	hostile_begin(NULL);
	for (int agrees = 0; agrees < 2; agrees++) {
		struct vb_ctrl_handle h;
		struct vb_ctrl_region r;
		int n = rig.b.n_revoked;

		hostile_intrude();
		r = announce(&evil, BOTH, 1);
		TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS,
				      raw_move(&evil, IBV_WR_RDMA_READ, r.addr, r.key, 64));
		TEST_ASSERT_EQUAL_MEMORY(memory.bytes, evil.out, 64);
		TEST_ASSERT_EQUAL_INT(0, rig.ops->revoke_region(rig.b.conn, 1));
		h = (struct vb_ctrl_handle){.handle = 1, .generation = r.generation};
		TEST_ASSERT_NOT_NULL(raw_heard(&evil, VB_CTRL_REVOKE));
		if (agrees)
			TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS,
					      raw_ctrl(&evil, VB_CTRL_RELEASED, &h, sizeof(h)));
		rig_until(rig.b.n_revoked, n + 1);
		TEST_ASSERT_EQUAL_INT(0, rig.b.revoked_rc);
		n_warnings = rig.b.host.n_logged[GANTRY_LOG_WARN];
		TEST_ASSERT_EQUAL_INT(IBV_WC_REM_ACCESS_ERR,
				      raw_move(&evil, IBV_WR_RDMA_WRITE, r.addr, r.key, 64));
		hostile_check_dropped("stale key", 0, NULL);
		hostile_leave();
		hostile_check_honest();
	}
	hostile_end();
}

/* -- limits of time and connections -- */

#ifndef RIG_FAKE
/*
 * The attacker sends a connection request and does not read the answer. End b ends that connection
 * after connect_timeout.
 */
static void connection_that_is_never_established_ends(void)
{
	struct vb_hello hello;
	int n, m;

	hostile_begin("connect_timeout=1s");
	n = rig.b.n_accept;
	m = rig.b.n_closed;
	raw_open(&evil);
	evil.deaf = 1;
	hello = raw_hello(&evil, VB_CONTROL, NULL);
	raw_knock(&evil, &hello, sizeof(hello));
	rig_until(rig.b.n_accept, n + 1);
	hostile_check_honest();
	rig_until(rig.b.n_closed, m + 1);
	TEST_ASSERT_EQUAL_INT(-ETIMEDOUT, rig.b.reason);
	TEST_ASSERT_TRUE_MESSAGE(fake_logged(&rig.b.host, "did not finish connecting in time"),
				 rig.b.host.log);
	let_go();
	hostile_end();
}
#endif

#define GUESTS 3

static void too_many_connections_of_one_host(void)
{
	static struct raw guests[GUESTS];
	const struct knock k = {"one too many", FIELD(end), VB_CONNECTS,
				"busy: max_connections=6 allows 4 for host ", EBUSY};
	void *conns[GUESTS];
	int n;

	hostile_begin("max_connections=6");
	n = rig.b.n_closed;
	for (int i = 0; i < GUESTS; i++) {
		raw_connect(&guests[i]);
		conns[i] = rig.b.conn;
	}
	knock(&evil, &k, VB_CONTROL, NULL);
	hostile_check_honest();
	raw_close(&guests[1]);
	rig_until(rig.b.n_closed, n + 1);
	rig.b.conn = conns[1]; /* counts as a connection until b disconnects it, too */
	rig_disconnect(&rig.b);
	raw_connect(&guests[1]);
	knock(&evil, &k, VB_CONTROL, NULL);
	for (int i = 0; i < GUESTS; i++)
		raw_close(&guests[i]);
	rig_until(rig.b.n_closed, n + 1 + GUESTS);
	hostile_end();
}

int main(void)
{
	if (!rig_can_run())
		return 77;
	UNITY_BEGIN();
	RIG_CASE(wrong_requests);
	RIG_CASE(wrong_further_queue_pairs);
	RIG_CASE(access_outside_exported_memory);
	RIG_CASE(stale_keys);
	hostile_words();
#ifndef RIG_FAKE
	RIG_CASE(connection_that_is_never_established_ends);
#endif
	RIG_CASE(too_many_connections_of_one_host);
	return UNITY_END();
}
