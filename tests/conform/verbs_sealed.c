/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs_sealed.c - queue pairs over RDMA with a record filter: private data and control messages
 * show no secret, each changed bit of private data is noticed, and forged and replayed requests are
 * refused. The other connections are undisturbed.
 *
 * Both ends have the record filter of filter.c (RIG_FILTER), or that of the core (RIG_SECURE). The
 * cases read secrets from the objects of the plugin, and compute proofs from doc/protocol.md.
 */
#include <stdio.h>
#include <stdlib.h>

#ifdef RIG_FILTER
#include "conform/filter.h"
#endif
#include "conform/rig.h"
#include "conform/verbs_raw.h"
#include "fake/verbs/verbs.h"
#include "verbs.h"

#define BYTES 65536u
#define BOTH (GANTRY_REMOTE_READ | GANTRY_REMOTE_WRITE)
#define HANDLE 0x4a5b6c7du

/* -- the wire -- */

static uint8_t seen[1u << 20]; /* private data, and SENDs on control queue pairs */
static size_t n_seen;
static struct {
	int byte;           /* of private data in which the spy flips a bit; -1: none */
	unsigned kind, end; /* end 0: of both ends */
} change = {.byte = -1};
static struct vb_sealed_hello last[VB_DIRECT + 1][VB_LISTENS + 1];
static int (*post_send)(struct ibv_qp *, struct ibv_send_wr *, struct ibv_send_wr **);

static void keep(const void *bytes, size_t n)
{
	if (n_seen + n > sizeof(seen))
		return;
	memcpy(seen + n_seen, bytes, n);
	n_seen += n;
}

static void see(uint8_t *data, unsigned len)
{
	struct vb_sealed_hello hello;

	keep(data, len);
	if (len < sizeof(hello))
		return;
	memcpy(&hello, data, sizeof(hello));
	if (hello.kind > VB_DIRECT || hello.end > VB_LISTENS)
		return;
	last[hello.kind][hello.end] = hello;
	if (change.byte < 0 || hello.kind != change.kind || (change.end && hello.end != change.end))
		return;
	data[change.byte] ^= (uint8_t)(1u << change.byte % 8);
	if (change.end || hello.end == VB_LISTENS)
		change.byte = -1;
}

static int spy(struct ibv_qp *qp, struct ibv_send_wr *first, struct ibv_send_wr **bad)
{
	for (struct ibv_send_wr *wr = first; wr; wr = wr->next)
		for (int i = 0; wr->opcode == IBV_WR_SEND && i < wr->num_sge; i++)
			keep((void *)(uintptr_t)wr->sg_list[i].addr, wr->sg_list[i].length);
	return post_send(qp, first, bad);
}

static void spy_on_wire(void)
{
	int n = 0;
	struct ibv_context **list = rdma_get_devices(&n);

	for (int i = 0; i < n; i++)
		if (list[i]->ops.post_send != spy) {
			post_send = list[i]->ops.post_send;
			list[i]->ops.post_send = spy;
		}
	rdma_free_devices(list);
	fake_cm_spy(see);
	n_seen = 0;
	change.byte = -1;
}

static int is_seen(const void *needle, size_t n)
{
	for (size_t i = 0; i + n <= n_seen; i++)
		if (memcmp(seen + i, needle, n) == 0)
			return 1;
	return 0;
}

#ifdef RIG_FILTER
void filter_spy(void)
{
}
#endif

/* -- secrets -- */

static void hidden(const char *what, const void *needle, size_t n)
{
	static const uint8_t zeros[16];

	if (memcmp(needle, zeros, n) != 0 && is_seen(needle, n))
		rig_fail_at(__FILE__, __LINE__, "the wire shows %s", what);
}

static void hide_all_of(const struct vb_conn *conn)
{
	hidden("the secret of a session", &conn->secret, sizeof(conn->secret));
	hidden("the secret of direct access", &conn->direct_secret, sizeof(conn->direct_secret));
	hidden("the key of direct access", conn->direct_key, sizeof(conn->direct_key));
	for (const struct vb_pipe *p = conn->pipes; p; p = p->all) {
		uint64_t addr = (uintptr_t)p->credit;

		hidden("the address of a credit word", &addr, sizeof(addr));
		if (p->credit_mr)
			hidden("the key of a credit word", &p->credit_mr->rkey, sizeof(uint32_t));
	}
	for (uint32_t i = 0; i < conn->exports_used; i++) {
		const struct vb_ctrl_region *r = &conn->exports[i].wire;

		hidden("the key of a region", &r->key, sizeof(r->key));
		hidden("the address of a region", &r->addr, sizeof(r->addr));
		hidden("a token", &r->handle, sizeof(r->handle));
	}
}

static struct gantry_region *import(struct rig_end *end, const struct gantry_token *token)
{
	struct gantry_region *r = NULL;

	RIG_OK(rig.ops->import_region(end->conn, token, 0, &r));
	return r;
}

/*
 * Use all kinds of queue pairs. End a exports memory to b on one connection; b re-exports it on
 * another connection of a, which accesses it by a direct queue pair.
 */
static void use_all_kinds(void)
{
	struct gantry_region *mid, *far;
	struct gantry_token token;
	struct rig_memory m;
	struct rig_queue *q;
	struct rig_rma *rma;

	rig_connect();
	rig_memory_open(&m, BYTES, BOTH);
	RIG_OK(rig.ops->export_region(rig.a.conn, &m.region, BOTH, HANDLE, &token));
	RIG_OK(rig_ctrl(&rig.a, &token, sizeof(token)));
	rig_fence();
	mid = import(&rig.b, &token);
	rig_connect();
	RIG_OK(rig.ops->export_region(rig.b.conn, mid, BOTH, HANDLE + 1, &token));
	rig_fence();
	far = import(&rig.a, &token);
	q = rig_queue_open(&rig.b, &rig.a, 4, 0);
	rig_warm(q);
	rma = rig_rma_open(&rig.a, 4, 0);
	rig_fill(rig.local.addr, BYTES, 5);
	RIG_OK(rig_rma_move(rma, GANTRY_RMA_WRITE, rig.local.addr, far, 0, BYTES));
	RIG_HOLDS(rig_filled(m.bytes, BYTES, 5), "memory as its owner sees it");
	RIG_HOLDS(last[VB_CONTROL][VB_LISTENS].magic && last[VB_MESSAGES][VB_LISTENS].magic &&
			  last[VB_DIRECT][VB_LISTENS].magic,
		  "kinds of queue pairs that the spy has seen");
	for (const struct vb_conn *c = ((struct vb_conn *)rig.a.conn)->t->conns; c; c = c->next)
		hide_all_of(c);
	for (const struct vb_conn *c = ((struct vb_conn *)rig.b.conn)->t->conns; c; c = c->next)
		hide_all_of(c);
	rig_queue_close(q);
	rig_rma_close(rma);
	rig.ops->release_region(rig.a.conn, far);
}

static void secrets_do_not_travel(void)
{
	spy_on_wire();
	use_all_kinds();
}

/* -- an honest connection, beside the attacked ones -- */

static struct rig_queue *good;
static void *good_a, *good_b;
static struct rig_memory memory;

static void begin(void)
{
	rig_connect();
	good_a = rig.a.conn;
	good_b = rig.b.conn;
	good = rig_queue_open(&rig.b, &rig.a, 4, 0);
	rig_warm(good);
	rig_memory_open(&memory, BYTES, BOTH);
	spy_on_wire();
}

static void check_honest(void)
{
	struct gantry_msg msg;

	RIG_OK(rig.ops->post_recv(good->rx, 1));
	RIG_OK(rig_send_imm(good, 4711));
	rig_take(good, &msg);
	RIG_NUM(0, msg.status, "status of a message of the honest peer");
}

/* Disconnect all connections but the honest one. */
static void drop_others(void)
{
	struct rig_end *ends[] = {&rig.a, &rig.b};

	for (int e = 0; e < 2; e++) {
		for (unsigned i = 0; i < RIG_CONNS; i++)
			if (ends[e]->conns[i].conn && ends[e]->conns[i].conn != good_a &&
			    ends[e]->conns[i].conn != good_b) {
				ends[e]->conn = ends[e]->conns[i].conn;
				rig_disconnect(ends[e]);
			}
	}
	rig_settle();
	rig.a.conn = good_a;
	rig.b.conn = good_b;
}

/* -- changed bits -- */

static void establish(enum vb_kind kind)
{
	const struct gantry_queue_attr attr = {.depth = 4, .lane = 1};
	struct gantry_token token;
	struct gantry_region *mid;
	void *rx = NULL, *tx = NULL, *near_a, *near_b;
	uint32_t id = 0;
	int n = rig.a.n_closed, up = rig.a.n_up;

	if (kind == VB_CONTROL) {
		rig_start_connect(rig_service(0));
		rig_until(rig.a.n_closed, n + 1);
		return;
	}
	change.kind = 0;
	rig_connect();
	near_a = rig.a.conn;
	near_b = rig.b.conn;
	if (kind == VB_DIRECT) {
		RIG_OK(rig.ops->export_region(near_a, &memory.region, BOTH, HANDLE, &token));
		rig_fence();
		mid = import(&rig.b, &token);
		rig_connect();
		RIG_OK(rig.ops->rma_create(rig.a.conn, &attr, &tx));
		RIG_OK(rig.ops->export_region(rig.b.conn, mid, BOTH, HANDLE, &token));
		rig_fence();
		change.kind = kind;
		import(&rig.a, &token);
		rig_until(rig.a.n_closed, n + 1);
		rig.ops->rma_destroy(tx);
		rig.ops->release_region(near_b, mid);
		return;
	}
	if (kind == VB_DATA) {
		change.kind = kind;
		RIG_OK(rig.ops->rma_create(near_a, &attr, &tx));
		rig_until(rig.a.n_closed, n + 1);
		rig.ops->rma_destroy(tx);
		return;
	}
	RIG_OK(rig.ops->consumer_create(near_b, &attr, &id, &rx));
	rig_until(rig.a.n_up, up + 1);
	change.kind = kind;
	RIG_OK(rig.ops->producer_create(near_a, id, &attr, &tx));
	rig_until(rig.a.n_closed, n + 1);
	rig.ops->producer_destroy(tx);
	rig.ops->consumer_destroy(rx);
}

static unsigned n_warnings(const struct rig_end *end)
{
	return end->host.n_logged[GANTRY_LOG_WARN] + end->host.n_logged[GANTRY_LOG_ERROR];
}

static void change_bits(enum vb_kind kind, enum vb_end end)
{
	begin();
	for (int i = 0; i < (int)sizeof(struct vb_sealed_hello); i++) {
		unsigned a = n_warnings(&rig.a), b = n_warnings(&rig.b);

		change.end = end;
		change.kind = kind;
		change.byte = i;
		establish(kind);
		rig_settle();
		if (change.byte >= 0)
			rig_fail_at(__FILE__, __LINE__, "no private data to change");
		/* end a also logs that its connection ends */
		if (n_warnings(&rig.a) > a + 2 || n_warnings(&rig.b) > b + 1)
			rig_fail_at(__FILE__, __LINE__, "byte %d: several lines: %s%s", i,
				    rig.a.host.log, rig.b.host.log);
		if (kind != VB_CONTROL && end == VB_CONNECTS &&
		    !fake_logged(kind == VB_DIRECT ? &rig.a.host : &rig.b.host, "refusing 10."))
			rig_fail_at(__FILE__, __LINE__, "byte %d: the request is not refused", i);
		rig.a.host.log_used = rig.b.host.log_used = 0;
		drop_others();
		check_honest();
	}
}

#define CASE_OF(name, ...) \
	static void name(void) \
	{ \
		__VA_ARGS__; \
	}

CASE_OF(changed_control_request, change_bits(VB_CONTROL, VB_CONNECTS))
CASE_OF(changed_control_reply, change_bits(VB_CONTROL, VB_LISTENS))
CASE_OF(changed_lane_request, change_bits(VB_MESSAGES, VB_CONNECTS))
CASE_OF(changed_lane_reply, change_bits(VB_MESSAGES, VB_LISTENS))
CASE_OF(changed_data_request, change_bits(VB_DATA, VB_CONNECTS))
CASE_OF(changed_data_reply, change_bits(VB_DATA, VB_LISTENS))
CASE_OF(changed_direct_request, change_bits(VB_DIRECT, VB_CONNECTS))
CASE_OF(changed_direct_reply, change_bits(VB_DIRECT, VB_LISTENS))

/* Both ends see the private data that they expect, but only START proves the session. */
static void control_session_changed_both_ways(void)
{
	begin();
	change.end = 0;
	change.kind = VB_CONTROL;
	change.byte = (int)offsetof(struct vb_sealed_hello, session) + 3;
	establish(VB_CONTROL);
	RIG_HOLDS(fake_logged(&rig.a.host, "belongs to another connection") ||
			  fake_logged(&rig.b.host, "belongs to another connection"),
		  "text in the log");
	drop_others();
	check_honest();
}

/* The control messages come from another queue pair than that of the request. */
static void control_queue_pair_of_another_number(void)
{
	int n;

	begin();
	n = rig.b.n_accept;
	rig_start_connect(rig_service(0));
	rig_until(rig.b.n_accept, n + 1);
	((struct vb_conn *)rig.b.conn)->peer_qpn++;
	n = rig.b.n_closed;
	rig_until(rig.b.n_closed, n + 1);
	RIG_RC(-EPROTO, rig.b.reason, "reason of `closed`");
	RIG_HOLDS(fake_logged(&rig.b.host, "belongs to another connection"), "text in the log");
	drop_others();
	check_honest();
}

/* -- control messages of a hostile peer, inside the filter -- */

enum edit { KEEP, DROP, TWICE, SHORTER, CHANGE };

static struct gantry_records_ops edited; /* of end a: edits a message before it is sealed */
static int (*seal_as_is)(void *conn_records, const void *msg, size_t len);
static struct {
	uint8_t kind; /* enum vb_ctrl_kind of the message */
	enum edit edit;
	size_t at; /* CHANGE: byte of the body; SHORTER: bytes less */
} edit_next;

static int edit_seal(void *conn_records, const void *msg, size_t len)
{
	enum edit edit = *(const uint8_t *)msg == edit_next.kind ? edit_next.edit : KEEP;
	uint8_t bytes[GANTRY_RECORDS_MAX];

	if (edit != KEEP)
		edit_next.edit = KEEP;
	memcpy(bytes, msg, len);
	if (edit == DROP)
		return 0;
	if (edit == CHANGE)
		bytes[1 + edit_next.at] ^= 1;
	if (edit == TWICE)
		RIG_OK(seal_as_is(conn_records, bytes, len));
	return seal_as_is(conn_records, bytes, edit == SHORTER ? len - edit_next.at : len);
}

static void use_edits(void)
{
	edited = *rig.a.host.pub.records;
	seal_as_is = edited.seal;
	edited.seal = edit_seal;
	rig.a.host.pub.records = &edited;
}

#define AT(f) offsetof(struct vb_ctrl_start, f)

static void hostile_messages_in_the_filter(void)
{
	static const struct {
		const char *what;
		uint8_t kind;
		enum edit edit;
		size_t at;
		const char *text;
	} rows[] = {
		{"START twice", VB_CTRL_START, TWICE, 0, "sends a second START"},
		{"short START", VB_CTRL_START, SHORTER, 1, "invalid length"},
		{"START of another session", VB_CTRL_START, CHANGE, AT(session),
		 "belongs to another connection"},
		{"START of another queue pair", VB_CTRL_START, CHANGE, AT(qpn),
		 "belongs to another connection"},
		{"no START", VB_CTRL_START, DROP, 0, "before START"},
		{"region without a key", VB_CTRL_REGION, SHORTER, 16, "invalid length"},
		{"half a key", VB_CTRL_REGION, SHORTER, 8, "invalid length"},
	};
	struct gantry_token token;

	begin();
	use_edits();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unsigned warnings = n_warnings(&rig.b);
		int n = rig.b.n_closed;

		edit_next.kind = rows[i].kind;
		edit_next.edit = rows[i].edit;
		edit_next.at = rows[i].at;
		rig.b.host.log_used = 0;
		rig_start_connect(rig_service(0));
		/* end a sends a region as soon as it can */
		for (uint64_t late = 0; rig.b.n_closed == n;) {
			int rc = rig.ops->export_region(rig.a.conn, &memory.region, BOTH, HANDLE,
							&token);

			rig_wait(&late, rc == 0, rows[i].what);
		}
		RIG_RC(-EPROTO, rig.b.reason, rows[i].what);
		RIG_NUM(warnings + 1, n_warnings(&rig.b), rows[i].what);
		if (!fake_logged(&rig.b.host, rows[i].text))
			rig_fail_at(__FILE__, __LINE__, "%s: %s", rows[i].what, rig.b.host.log);
		drop_others();
		check_honest();
	}
	rig.a.host.pub.records = rig.b.host.pub.records;
}

/* -- forged requests -- */

static struct raw evil, more;
static const struct vb_conn *victim, *other; /* connections of end b */
static uint32_t sequence = 0x10203040;
static const struct gantry_records_ops *records; /* filter of end b */

struct context {
	uint8_t hello[40], request[16];
	uint32_t qpn;
} __attribute__((packed));

/* Compute a proof as doc/protocol.md states it. */
static void prove(const struct vb_conn *conn, const struct vb_sealed_hello *hello,
		  const uint8_t *request, uint32_t qpn, uint8_t *proof)
{
	struct context context = {.qpn = qpn};
	uint8_t data[32 + sizeof(context)] = "gantry rdma hello", mac[GANTRY_RECORDS_MAC];

	memcpy(context.hello, hello, sizeof(context.hello));
	if (request)
		memcpy(context.request, request, sizeof(context.request));
	memcpy(data + 32, &context, sizeof(context));
	if (hello->kind == VB_DIRECT) {
		records->mac(conn->direct_key, sizeof(conn->direct_key), data, sizeof(data), mac);
		memcpy(proof, mac, VB_PROOF);
	} else {
		records->export_secret(conn->records, "gantry rdma hello", &context,
				       sizeof(context), proof, VB_PROOF);
	}
}

static struct vb_sealed_hello request_of(enum vb_kind kind)
{
	struct vb_sealed_hello hello = {
		.magic = VB_MAGIC,
		.version = VB_VERSION | VB_RECORDS,
		.kind = (uint8_t)kind,
		.end = VB_CONNECTS,
		.session = victim->session,
		.sequence = ++sequence,
		.connects_lane = 3,
		.listens_lane = kind == VB_MESSAGES ? 3 : VB_NO_LANE,
		.slots = kind == VB_MESSAGES ? 8 : 0,
		.slot_bytes = kind == VB_MESSAGES ? sizeof(struct vb_msg) + 128 : 0,
	};

	return hello;
}

struct forged {
	const char *what;
	/* the proof is that of a request in which `len` bytes at `offset` are `value`; len 0: of
	 * the request itself */
	int offset, len;
	uint64_t value;
};

#define FIELD(f) \
	(int)offsetof(struct vb_sealed_hello, f), (int)sizeof(((struct vb_sealed_hello *)0)->f)

static void check_refused(struct raw *raw, const char *what, const char *text, int reason)
{
	if (raw->up || !raw->refused || raw->refusal.reason != reason ||
	    !strstr(raw->refusal.text, text))
		rig_fail_at(__FILE__, __LINE__, "%s: up %d, refused %d: reason %d: %.100s", what,
			    raw->up, raw->refused, raw->refusal.reason, raw->refusal.text);
}

/* Send the request of the attacker. Each refusal has one line in the log. */
static void ask(struct raw *raw, const void *hello, size_t len)
{
	unsigned lines = rig.b.host.n_logged[GANTRY_LOG_INFO], warnings = n_warnings(&rig.b);

	raw_ask(raw, hello, len);
	rig_settle();
	RIG_NUM(warnings, n_warnings(&rig.b), "warnings about a refused request");
	if (raw->refused)
		RIG_NUM(lines + 1, rig.b.host.n_logged[GANTRY_LOG_INFO],
			"lines about a refused request");
}

static void forge(const struct forged *f, enum vb_kind kind)
{
	struct vb_sealed_hello hello = request_of(kind), proven = hello;

	raw_open(&evil);
	memcpy((uint8_t *)&proven + f->offset, &f->value, (size_t)f->len);
	prove(victim, &proven, NULL, evil.id->qp->qp_num, hello.proof);
	ask(&evil, &hello, sizeof(hello));
	check_refused(&evil, f->what, "no such session", EACCES);
	raw_close(&evil);
}

static void open_victim(void)
{
	struct gantry_token token;

	begin();
	other = good_b;
	rig_connect();
	victim = rig.b.conn;
	records = rig.b.host.pub.records;
	/* the end that exports memory accepts direct queue pairs */
	RIG_OK(rig.ops->export_region(rig.b.conn, &memory.region, BOTH, 1, &token));
	rig_fence();
	raw_place = (struct raw_place){
		.at = "10.99.0.1", .from = "10.99.0.2", .port = 7471, .turn = rig_turn};
}

/* A request of an attacker that has the key is accepted, and its reply is proven. */
static void check_accepted(enum vb_kind kind)
{
	struct vb_sealed_hello hello = request_of(kind), *reply = &last[kind][VB_LISTENS];
	uint8_t proof[VB_PROOF];

	raw_open(&more);
	prove(victim, &hello, NULL, more.id->qp->qp_num, hello.proof);
	ask(&more, &hello, sizeof(hello));
	if (!more.up)
		rig_fail_at(__FILE__, __LINE__, "a valid request: %.100s", more.refusal.text);
	RIG_NUM(hello.sequence, reply->sequence, "sequence of a reply");
	prove(victim, reply, hello.proof, victim->pipes->qp.qp->qp_num, proof);
	RIG_SAME(proof, reply->proof, VB_PROOF, "proof of a reply");
}

static void forge_all(enum vb_kind kind)
{
	static const struct forged rows[] = {
		{"proof of another session", FIELD(session), 4711},
		{"proof of another kind", FIELD(kind), VB_CONTROL},
		{"proof of the other direction", FIELD(end), VB_LISTENS},
		{"proof of another sequence number", FIELD(sequence), 1},
		{"proof of another lane of who connects", FIELD(connects_lane), 4},
		{"proof of another lane of who listens", FIELD(listens_lane), 4},
		{"proof of other slots", FIELD(slots), 9},
		{"proof of another credit key", FIELD(credit_key), 9},
		{"proof of another credit address", FIELD(credit_addr), 9},
	};
	struct vb_sealed_hello hello;

	open_victim();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		forge(&rows[i], kind);
	/* proven with the key of this connection, for the session of another one */
	raw_open(&evil);
	hello = request_of(kind);
	hello.session = other->session;
	prove(victim, &hello, NULL, evil.id->qp->qp_num, hello.proof);
	ask(&evil, &hello, sizeof(hello));
	check_refused(&evil, "session of another connection", "no such session", EACCES);
	raw_close(&evil);
	/* proven for another queue pair */
	raw_open(&evil);
	hello = request_of(kind);
	prove(victim, &hello, NULL, evil.id->qp->qp_num + 1, hello.proof);
	ask(&evil, &hello, sizeof(hello));
	check_refused(&evil, "proof of another queue pair", "no such session", EACCES);
	raw_close(&evil);
	raw_open(&evil);
	hello = request_of(kind);
	ask(&evil, &hello, sizeof(hello));
	check_refused(&evil, "no proof", "no such session", EACCES);
	raw_close(&evil);
	check_accepted(kind);
	raw_close(&more);
	drop_others();
	check_honest();
}

CASE_OF(forged_lane_requests, forge_all(VB_MESSAGES))
CASE_OF(forged_data_requests, forge_all(VB_DATA))
CASE_OF(forged_direct_requests, forge_all(VB_DIRECT))

/* Send a request from a queue pair that has the number of another one. */
static void ask_as(struct raw *raw, const struct vb_sealed_hello *hello, uint32_t qpn)
{
	struct rdma_conn_param param = {.private_data = hello,
					.private_data_len = sizeof(*hello),
					.retry_count = 6,
					.rnr_retry_count = 2,
					.qp_num = qpn};
	struct ibv_qp *qp = raw->id->qp;

	raw->id->qp = NULL;
	RIG_OK(rdma_connect(raw->id, &param));
	raw->id->qp = qp;
	for (uint64_t late = 0; !raw->up && !raw->refused && !raw->unanswered;) {
		rig_wait(&late, 0, "answer to a replayed request");
		raw_turn(raw);
	}
}

/* The private data of a request is sent again, by a queue pair that also has its number. */
static void replayed_request(enum vb_kind kind)
{
	struct vb_sealed_hello hello;

	open_victim();
	check_accepted(kind);
	hello = last[kind][VB_CONNECTS];
	raw_open(&evil);
	ask_as(&evil, &hello, more.id->qp->qp_num);
	check_refused(&evil, "replayed request", "the request was accepted before", EALREADY);
	raw_close(&evil);
	/* a peer that has the key cannot use a sequence number twice, either */
	raw_open(&evil);
	prove(victim, &hello, NULL, evil.id->qp->qp_num, hello.proof);
	ask(&evil, &hello, sizeof(hello));
	check_refused(&evil, "sequence number used twice", "the request was accepted before",
		      EALREADY);
	raw_close(&evil);
	raw_close(&more);
	rig_settle();
	/* nor after the end of the first queue pair */
	raw_open(&evil);
	prove(victim, &hello, NULL, evil.id->qp->qp_num, hello.proof);
	ask(&evil, &hello, sizeof(hello));
	RIG_HOLDS(evil.refused && !evil.up, "a replay after the end of the queue pair");
	raw_close(&evil);
	drop_others();
	check_honest();
}

CASE_OF(replayed_lane_request, replayed_request(VB_MESSAGES))
CASE_OF(replayed_direct_request, replayed_request(VB_DIRECT))

/* More requests than the connection first has space to remember: all are remembered. */
static void every_request_is_remembered(void)
{
	struct vb_sealed_hello first = {.magic = 0};

	open_victim();
	for (int i = 0; i < 70; i++) {
		check_accepted(VB_DIRECT);
		if (i == 0)
			first = last[VB_DIRECT][VB_CONNECTS];
		raw_close(&more);
		rig_settle();
	}
	raw_open(&evil);
	prove(victim, &first, NULL, evil.id->qp->qp_num, first.proof);
	ask(&evil, &first, sizeof(first));
	check_refused(&evil, "first request", "the request was accepted before", EALREADY);
	raw_close(&evil);
	drop_others();
	check_honest();
}

/* A connection remembers a limited number of requests, and refuses the next one. */
static void too_many_requests(void)
{
	const uint32_t limit = 16384;
	struct vb_sealed_hello hello;
	struct vb_conn *conn;

	open_victim();
	conn = rig.b.conn;
	free(conn->seen);
	conn->seen = calloc(limit, sizeof(*conn->seen));
	conn->n_seen = limit;
	raw_open(&evil);
	hello = request_of(VB_DIRECT);
	prove(victim, &hello, NULL, evil.id->qp->qp_num, hello.proof);
	ask(&evil, &hello, sizeof(hello));
	check_refused(&evil, "one request too many", "no such queue pair", ENOSPC);
	raw_close(&evil);
	drop_others();
	check_honest();
}

/* -- without the filter -- */

static void requests_without_the_filter(void)
{
	static const char text[] = "only one end protects control messages";
	struct vb_hello hello;

	open_victim();
	for (enum vb_kind kind = VB_CONTROL; kind <= VB_DIRECT; kind++) {
		raw_open(&evil);
		hello = raw_hello(&evil, kind, NULL);
		hello.session = victim->session;
		hello.secret = kind == VB_DIRECT ? victim->direct_secret : victim->secret;
		ask(&evil, &hello, sizeof(hello));
		check_refused(&evil, "request without the filter", text, EPROTO);
		raw_close(&evil);
	}
	drop_others();
	check_honest();
}

static void proof_for_an_end_without_the_filter(void)
{
	struct vb_sealed_hello hello;

	open_victim();
	hello = request_of(VB_MESSAGES);
	rig.b.host.pub.records = NULL;
	raw_open(&evil);
	ask(&evil, &hello, sizeof(hello));
	rig.b.host.pub.records = records;
	check_refused(&evil, "proof", "only one end protects control messages", EPROTO);
	raw_close(&evil);
	drop_others();
	check_honest();
}

int main(void)
{
	if (!rig_can_run())
		return 77;
	UNITY_BEGIN();
	RIG_CASE(secrets_do_not_travel);
	RIG_CASE(changed_control_request);
	RIG_CASE(changed_control_reply);
	RIG_CASE(changed_lane_request);
	RIG_CASE(changed_lane_reply);
	RIG_CASE(changed_data_request);
	RIG_CASE(changed_data_reply);
	RIG_CASE(changed_direct_request);
	RIG_CASE(changed_direct_reply);
	RIG_CASE(control_session_changed_both_ways);
	RIG_CASE(control_queue_pair_of_another_number);
	RIG_CASE(hostile_messages_in_the_filter);
	RIG_CASE(forged_lane_requests);
	RIG_CASE(forged_data_requests);
	RIG_CASE(forged_direct_requests);
	RIG_CASE(replayed_lane_request);
	RIG_CASE(replayed_direct_request);
	RIG_CASE(every_request_is_remembered);
	RIG_CASE(too_many_requests);
	RIG_CASE(requests_without_the_filter);
	RIG_CASE(proof_for_an_end_without_the_filter);
#ifdef RIG_FILTER
	TEST_ASSERT_EQUAL_UINT(0, n_filters);
#endif
	return UNITY_END();
}
