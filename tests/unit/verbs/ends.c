/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit/verbs/ends.h"

#include <stdio.h>

#include <gantry/shm.h>

#define SERVICE "127.0.0.2:7471"

static const struct gantry_option options[] = {
	{"ibdev", GANTRY_OPT_STRING, offsetof(struct vb_conf, ibdev), "", 0, 0, NULL, NULL, ""},
	VB_OPTIONS(struct vb_conf),
	GANTRY_OPTION_END,
};

static const struct gantry_plugin plugin = {
	.name = "ends", .options = options, .conf_size = sizeof(struct vb_conf)};

struct end a, b;

/* -- events -- */

static int on_accept(void *arg, void *conn, const struct gantry_peer *peer, void **conn_arg_p)
{
	struct end *end = arg;

	(void)peer;
	end->conn = conn;
	*conn_arg_p = end;
	return 0;
}

static void on_connected(void *arg, void *conn, const struct gantry_peer *peer)
{
	(void)conn;
	(void)peer;
	((struct end *)arg)->n_connected++;
}

static void on_message(void *arg, void *conn, const void *msg, size_t len)
{
	(void)arg;
	(void)conn;
	(void)msg;
	(void)len;
}

static void on_consumer(void *arg, void *conn, uint32_t id, int up)
{
	struct end *end = arg;

	(void)conn;
	*(up ? &end->up : &end->down) = id;
	++*(up ? &end->n_up : &end->n_down);
}

static void on_revoke(void *arg, void *conn, uint32_t handle)
{
	(void)conn;
	(void)handle;
	((struct end *)arg)->n_revoke++;
}

static void on_revoked(void *arg, void *conn, uint32_t handle, int rc)
{
	struct end *end = arg;

	(void)conn;
	(void)handle;
	end->n_revoked++;
	end->revoked_rc = rc;
}

static void on_closed(void *arg, void *conn, int reason)
{
	struct end *end = arg;

	(void)conn;
	end->n_closed++;
	end->reason = reason;
}

static const struct gantry_conn_events events = {
	.accept = on_accept,
	.connected = on_connected,
	.message = on_message,
	.consumer = on_consumer,
	.revoke = on_revoke,
	.revoked = on_revoked,
	.closed = on_closed,
};

/* -- the ends -- */

static void open_end(struct end *end, const char *name, const char *ibdev, const char *both,
		     const char *own)
{
	const char *word[9] = {NULL};
	char *rest = NULL;

	*end = (struct end){.reason = 0};
	fake_host_init(&end->host, name);
	snprintf(end->settings, sizeof(end->settings), "%s %s %s", ibdev, both ? both : "",
		 own ? own : "");
	for (unsigned i = 0; i < 8 && (word[i] = strtok_r(i ? NULL : end->settings, " ", &rest));
	     i++)
		;
	end->conf = fake_conf(&plugin, word[0], word[1], word[2], word[3], word[4], word[5],
			      word[6], word[7], NULL);
	TEST_ASSERT_EQUAL_INT_MESSAGE(
		0, vb_transport_open(&end->host.pub, end->conf, end->conf->ibdev, &end->device),
		end->host.log);
	end->bytes = mmap(NULL, ENDS_LOCAL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			  0);
	TEST_ASSERT_TRUE(end->bytes != MAP_FAILED);
	end->local = (struct gantry_region){.addr = end->bytes, .length = ENDS_LOCAL, .fd = -1};
}

void ends_open_devices(const char *both, const char *of_a, const char *of_b)
{
	open_end(&a, "a", "ibdev=fake0", both, of_a);
	open_end(&b, "b", "ibdev=fake1", both, of_b);
}

static uint32_t last_handle; /* handle of the last export by share_begin() */

static void forget(struct end *end)
{
	end->conn = NULL;
	end->n_connected = end->n_closed = end->reason = end->n_up = end->n_down = end->n_revoke =
		end->n_revoked = 0;
	end->up = end->down = 0;
	end->host.log_used = 0;
}

void ends_connect(void)
{
	void *conn = NULL;

	forget(&a);
	forget(&b);
	last_handle = 0;
	TEST_ASSERT_EQUAL_INT(0, vb_listen(b.device, SERVICE, &events, &b, &b.listener));
	TEST_ASSERT_EQUAL_INT(0, vb_connect(a.device, SERVICE, &events, &a, &conn));
	a.conn = conn;
	ends_until(a.n_connected && b.conn && b.conn->state == VB_C_UP);
	TEST_ASSERT_EQUAL_INT(0, vb_register(a.conn, &a.local));
	TEST_ASSERT_EQUAL_INT(0, vb_register(b.conn, &b.local));
}

void ends_open(const char *both, const char *of_a, const char *of_b)
{
	ends_open_devices(both, of_a, of_b);
	ends_connect();
}

static void close_end(struct end *end)
{
	vb_disconnect(end->conn);
	if (end->listener)
		vb_unlisten(end->listener);
	vb_close(end->device);
	free(end->conf);
	munmap(end->bytes, ENDS_LOCAL);
	end->conn = NULL;
}

/* Disconnect all connections, also those to which the test has no pointer any more. */
static void disconnect_all(struct vb_transport *t)
{
	struct vb_conn *conn = t->conns;

	while (conn)
		if (conn->freed) {
			conn = conn->next;
		} else {
			vb_disconnect(conn);
			conn = t->conns; /* `next` of a freed connection is invalid: start again */
		}
}

void ends_leave(void)
{
	struct end *const ends[] = {&a, &b};

	for (int i = 0; i < 2; i++)
		disconnect_all(ends[i]->device);
	for (int i = 0; i < 4; i++)
		ends_turn();
	for (int i = 0; i < 2; i++) {
		ends[i]->host.now_ns += 2000000000u;
		ends[i]->conn = NULL;
	}
	ends_turn();
	vb_unlisten(b.listener);
	b.listener = NULL;
}

void ends_close(void)
{
	close_end(&a);
	close_end(&b);
}

void ends_turn(void)
{
	vb_progress(a.device);
	vb_progress(b.device);
}

void ends_settle(void)
{
	for (int i = 0; i < 20; i++)
		ends_turn();
}

/* -- queues -- */

struct vb_pipe *queue_pipe(const struct queue *q)
{
	return vb_lane_pipe(q->tx->lane, VB_MESSAGES, q->tx->peer_lane);
}

struct vb_pipe *queue_far_pipe(const struct queue *q)
{
	struct vb_lane *lane;

	for (lane = q->to->conn->lanes; lane && lane->number != q->tx->peer_lane; lane = lane->next)
		;
	return lane ? vb_lane_pipe(lane, VB_MESSAGES, q->tx->lane->number) : NULL;
}

void queue_join(struct queue *q, const struct queue *of, struct end *from, uint32_t lane,
		uint32_t depth)
{
	const struct gantry_queue_attr attr = {
		.depth = depth, .max_data = UINT32_MAX, .lane = lane};
	void *tx = NULL;

	*q = (struct queue){.to = of->to, .from = from, .id = of->id};
	TEST_ASSERT_EQUAL_INT(0, vb_producer_create(from->conn, of->id, &attr, &tx));
	q->tx = tx;
	ends_until(queue_pipe(q) && queue_far_pipe(q));
}

void queue_open(struct queue *q, struct end *to, uint32_t to_lane, struct end *from,
		uint32_t from_lane, uint32_t depth, uint32_t max_data)
{
	const struct gantry_queue_attr attr = {
		.depth = depth, .max_data = max_data, .lane = to_lane};
	struct queue of = {.to = to};
	void *rx = NULL;

	TEST_ASSERT_EQUAL_INT(0, vb_consumer_create(to->conn, &attr, &of.id, &rx));
	ends_until(from->up == of.id);
	queue_join(q, &of, from, from_lane,
		   depth < from->conf->max_depth ? depth : (uint32_t)from->conf->max_depth);
	q->rx = rx;
}

void queue_close(struct queue *q)
{
	vb_producer_destroy(q->tx);
	vb_consumer_destroy(q->rx);
	q->tx = NULL;
	q->rx = NULL;
}

int queue_send(struct queue *q, uint64_t value, uint32_t flags)
{
	return vb_send(q->tx, &value, sizeof(value), flags);
}

int queue_send_region(struct queue *q, const struct shared *s, uint64_t offset, uint32_t length,
		      uint64_t cookie)
{
	const struct gantry_send send = {.imm = &cookie,
					 .imm_len = sizeof(cookie),
					 .length = length,
					 .region = &s->region,
					 .region_offset = offset,
					 .cookie = cookie};

	return vb_send_data(q->tx, &send, 0);
}

uint64_t queue_take(struct queue *q, struct gantry_msg *msg)
{
	struct gantry_msg own;
	uint64_t value;
	int n = 0;

	msg = msg ? msg : &own;
	for (int i = 0; n == 0 && i < 4; i++) /* data is fetched in several polls */
		n = vb_poll_recv(q->rx, msg, 1);
	TEST_ASSERT_EQUAL_INT_MESSAGE(1, n, "no message");
	TEST_ASSERT_TRUE(msg->imm_len >= sizeof(value));
	memcpy(&value, msg->imm, sizeof(value));
	return value;
}

void queue_transfer_credit(struct queue *q)
{
	struct gantry_msg msg;

	TEST_ASSERT_EQUAL_INT(0, vb_poll_recv(q->rx, &msg, 1));
	vb_lane_poll(q->tx->lane);
}

/* -- memory -- */

void share_begin(struct shared *s, struct end *owner, struct end *user, uint64_t bytes,
		 uint32_t rights)
{
	*s = (struct shared){.owner = owner, .user = user};
	s->bytes = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	TEST_ASSERT_TRUE(s->bytes != MAP_FAILED);
	s->region = (struct gantry_region){.addr = s->bytes,
					   .length = bytes,
					   .fd = -1,
					   .rights = GANTRY_REMOTE_READ | GANTRY_REMOTE_WRITE};
	TEST_ASSERT_EQUAL_INT(0,
			      vb_export(owner->conn, &s->region, rights, ++last_handle, &s->token));
	ends_turn(); /* the owner announces the region */
	ends_until(vb_import_region(user->conn, &s->token, 0, &s->imported) == 0);
}

void share_end(struct shared *s)
{
	int n = s->owner->n_revoked;

	if (s->imported)
		vb_release(s->user->conn, s->imported);
	if (vb_revoke(s->owner->conn, s->token.handle) == 0)
		ends_until(s->owner->n_revoked > n);
	munmap(s->bytes, s->region.length);
}

struct vb_rma *rma_open(struct end *end, uint32_t lane, uint32_t depth)
{
	const struct gantry_queue_attr attr = {.depth = depth, .lane = lane};
	int shared = end->conf->data_qp == VB_SHARED;
	struct vb_rma *rma;
	void *p = NULL;

	TEST_ASSERT_EQUAL_INT(0, vb_rma_create(end->conn, &attr, &p));
	rma = p;
	ends_until(vb_lane_pipe(rma->lane, shared ? VB_MESSAGES : VB_DATA,
				shared ? lane : VB_NO_LANE));
	return rma;
}

int rma_do(struct vb_rma *rma, struct end *end, enum gantry_rma_op op, uint32_t at,
	   const struct shared *s, uint64_t offset, uint32_t length, uint64_t cookie)
{
	const struct gantry_rma what = {.op = op,
					.length = length,
					.local = end->bytes + at,
					.local_region = &end->local,
					.remote = s->imported,
					.remote_offset = offset,
					.cookie = cookie};

	return vb_rma_submit(rma, &what);
}

/* -- invariants -- */

struct vb_pipe *pipe_peer(const struct vb_pipe *pipe)
{
	const struct vb_conn *other = pipe->conn == a.conn ? b.conn : a.conn;

	for (struct vb_pipe *p = other ? other->pipes : NULL; p; p = p->all)
		if (p->kind == pipe->kind && p->connects_lane == pipe->connects_lane &&
		    p->listens_lane == pipe->listens_lane)
			return p;
	return NULL;
}

static void begin_at(struct vb_pipe *pipe, uint32_t messages, uint32_t requests)
{
	struct vb_qp *qp = &pipe->qp;

	TEST_ASSERT_TRUE_MESSAGE(pipe->allowed == 0 && pipe->credit_sent == 0 &&
					 qp->done == qp->built,
				 "it has begun");
	pipe->sent = pipe->allowed = pipe->received = pipe->credit_sent = pipe->written = messages;
	pipe->region_head = pipe->region_tail = pipe->taken = pipe->taken_sent = messages;
	*pipe->credit = (struct vb_credit){.allowed = messages, .taken = messages};
	qp->done = qp->posted = qp->built = qp->signalled = requests;
}

void pipe_begin_at(struct vb_pipe *pipe, uint32_t messages, uint32_t requests)
{
	begin_at(pipe, messages, requests);
	begin_at(pipe_peer(pipe), messages, requests);
}

static void check_way(const struct vb_pipe *from, const struct vb_pipe *to)
{
	uint32_t under_way = from->sent - to->received, open = to->credit_sent - to->received;

	TEST_ASSERT_TRUE_MESSAGE(under_way <= to->window, "received what was not sent");
	TEST_ASSERT_TRUE_MESSAGE((int32_t)(from->allowed - from->sent) >= 0,
				 "sent what was not allowed");
	TEST_ASSERT_TRUE_MESSAGE((int32_t)(to->credit_sent - from->allowed) >= 0,
				 "allowed itself what it was not told");
	TEST_ASSERT_TRUE_MESSAGE(open <= to->window && open + to->waiting <= to->window,
				 "told more than there are receives");
	TEST_ASSERT_TRUE_MESSAGE(to->waiting <= to->slots, "more waits than there are slots");
	TEST_ASSERT_TRUE_MESSAGE(from->qp.built - from->qp.done <= from->qp.depth,
				 "more requests than fit");
	TEST_ASSERT_TRUE_MESSAGE(from->region_head - from->region_tail <= from->window,
				 "more regions than messages");
}

void pipes_check(void)
{
	for (struct vb_pipe *p = a.conn->pipes; p; p = p->all) {
		const struct vb_pipe *peer = p->kind == VB_MESSAGES ? pipe_peer(p) : NULL;

		if (!peer || p->state != VB_P_UP || peer->state != VB_P_UP)
			continue;
		check_way(p, peer);
		check_way(peer, p);
	}
	wire_check();
}

void wire_check(void)
{
	struct fake_counters n;

	fake_verbs_counters(&n);
	TEST_ASSERT_EQUAL_UINT64_MESSAGE(0, n.rnr_naks, "a send found no receive");
	TEST_ASSERT_EQUAL_UINT64_MESSAGE(0, n.overruns, "a completion was lost");
}

/* -- random numbers -- */

static uint64_t state;

void draw_seed(uint64_t seed)
{
	state = seed * 2 + 1;
}

uint32_t draw(uint32_t below)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((state >> 33) % below);
}

void fill(uint8_t *p, size_t n, uint64_t seed)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)((seed * 0x9e3779b97f4a7c15u + i * 0x85ebca6bu) >> 24);
}

int filled(const uint8_t *p, size_t n, uint64_t seed)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] != (uint8_t)((seed * 0x9e3779b97f4a7c15u + i * 0x85ebca6bu) >> 24))
			return 0;
	return 1;
}
