/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pipe_events.c - every event of the connection manager in every state of a pipe, and how requests
 * are rejected.
 */
#include <stdio.h>

#include "unit/verbs/ends.h"

#define SERVICE "127.0.0.2:7471"
#define REMEDY ": raise it or close connections"

static struct vb_transport *ta, *tb;
static struct vb_conn *conn; /* connection of end a, which connects */

void setUp(void)
{
	fake_verbs_reset();
}

void tearDown(void)
{
	TEST_ASSERT_EQUAL_STRING("", fake_verbs_check_clean());
}

static void on_closed(void *arg, void *c, int why)
{
	struct end *end = arg;

	(void)c;
	end->n_closed++;
	end->reason = why;
}

static void on_connected(void *arg, void *c, const struct gantry_peer *peer)
{
	(void)arg;
	(void)c;
	(void)peer;
}

static char message[8];

static void on_message(void *arg, void *c, const void *msg, size_t len)
{
	(void)arg;
	(void)c;
	TEST_ASSERT_LESS_THAN(sizeof(message), len);
	memset(message, 0, sizeof(message));
	memcpy(message, msg, len);
}

static int refuse_with;
static struct vb_conn *accepted;

static int on_accept(void *arg, void *c, const struct gantry_peer *peer, void **conn_arg_p)
{
	(void)peer;
	*conn_arg_p = arg;
	if (!refuse_with)
		accepted = c;
	return refuse_with;
}

static const struct gantry_conn_events events = {
	.accept = on_accept, .connected = on_connected, .message = on_message, .closed = on_closed};

/* Start to connect, with a listener at the other end; process no event yet. */
static void begin(const char *settings)
{
	void *c = NULL;

	refuse_with = 0;
	accepted = NULL;
	ends_open_devices(settings, NULL, NULL);
	ta = a.device;
	tb = b.device;
	TEST_ASSERT_EQUAL_INT(0, vb_listen(tb, SERVICE, &events, &b, &b.listener));
	TEST_ASSERT_EQUAL_INT(0, vb_connect(ta, SERVICE, &events, &a, &c));
	a.conn = conn = c;
}

static void finish(void)
{
	b.conn = accepted;
	ends_close();
}

/* Process one event of a device. */
static void step(struct vb_transport *t)
{
	struct vb_event event;
	struct vb_id *tag;

	TEST_ASSERT_EQUAL_INT(1, vb_events_next(t->channel, &event));
	if (event.listen_id) {
		tag = event.listen_id->context;
		vb_on_request(tag->object, &event);
	} else {
		tag = event.id->context;
		vb_on_pipe_event(tag->object, &event);
	}
}

/* -- a pipe in each state -- */

static struct vb_pipe *resolving(void)
{
	step(ta); /* the route leads to another device: the address is resolved again */
	return conn->control;
}

/* Process events of end a until its control pipe has this state. */
static struct vb_pipe *until(enum vb_pipe_state state)
{
	while (conn->control->state != state)
		step(ta);
	return conn->control;
}

static struct vb_pipe *routing(void)
{
	return until(VB_P_ROUTING);
}

static struct vb_pipe *connecting(void)
{
	return until(VB_P_CONNECTING);
}

static struct vb_pipe *being_accepted(void)
{
	connecting();
	step(tb);
	return accepted->control;
}

static struct vb_pipe *up(void)
{
	being_accepted();
	return until(VB_P_UP);
}

static struct vb_pipe *dead(void)
{
	struct vb_pipe *pipe = up();

	vb_pipe_end(pipe);
	return pipe;
}

static struct vb_pipe *asked(void)
{
	up();
	step(tb);
	TEST_ASSERT_EQUAL_INT(0, vb_pipe_want(accepted, VB_DATA, 3, VB_NO_LANE));
	return accepted->pipes;
}

static struct vb_pipe *(*const makers[VB_P_STATES])(void) = {[VB_P_ASKED] = asked,
							     [VB_P_RESOLVING] = resolving,
							     [VB_P_ROUTING] = routing,
							     [VB_P_CONNECTING] = connecting,
							     [VB_P_ACCEPTED] = being_accepted,
							     [VB_P_UP] = up,
							     [VB_P_DEAD] = dead};

/* Effect of an event: the state after it, and the reason why the connection ended. */
struct outcome {
	int state, lost;
};

#define STAYS \
	{ \
		-1, 0 \
	}
#define ENDS(reason) \
	{ \
		-1, -(reason) \
	}
#define BECOMES(state) \
	{ \
		state, 0 \
	}

#define NOTHING \
	{ \
		STAYS, STAYS, STAYS, STAYS, STAYS, STAYS, STAYS \
	}

/* The columns of `in` are the states ASKED, RESOLVING, ROUTING, CONNECTING, ACCEPTED, UP, DEAD. */
static const struct {
	enum rdma_cm_event_type type;
	int status;
	struct outcome in[VB_P_STATES];
} rows[] = {
	{RDMA_CM_EVENT_ADDR_RESOLVED,
	 0,
	 {STAYS, BECOMES(VB_P_ROUTING), STAYS, STAYS, STAYS, STAYS, STAYS}},
	{RDMA_CM_EVENT_ADDR_ERROR,
	 -EHOSTUNREACH,
	 {STAYS, ENDS(EHOSTUNREACH), STAYS, STAYS, STAYS, STAYS, STAYS}},
	{RDMA_CM_EVENT_ROUTE_RESOLVED,
	 0,
	 {STAYS, STAYS, BECOMES(VB_P_CONNECTING), STAYS, STAYS, STAYS, STAYS}},
	{RDMA_CM_EVENT_ROUTE_ERROR,
	 -ETIMEDOUT,
	 {STAYS, STAYS, ENDS(ETIMEDOUT), STAYS, STAYS, STAYS, STAYS}},
	{RDMA_CM_EVENT_CONNECT_RESPONSE, 0, NOTHING},
	{RDMA_CM_EVENT_CONNECT_ERROR,
	 -EINVAL,
	 {STAYS, STAYS, STAYS, ENDS(EIO), ENDS(EIO), ENDS(ENOTCONN), STAYS}},
	{RDMA_CM_EVENT_UNREACHABLE,
	 -ETIMEDOUT,
	 {STAYS, STAYS, STAYS, ENDS(ETIMEDOUT), ENDS(ETIMEDOUT), ENDS(ENOTCONN), STAYS}},
	{RDMA_CM_EVENT_REJECTED,
	 8,
	 {STAYS, STAYS, STAYS, ENDS(ECONNREFUSED), ENDS(ENOTCONN), ENDS(ENOTCONN), STAYS}},
	/* an answer without the private data of gantry comes from another program */
	{RDMA_CM_EVENT_ESTABLISHED,
	 0,
	 {STAYS, STAYS, STAYS, ENDS(EPROTO), BECOMES(VB_P_UP), STAYS, STAYS}},
	{RDMA_CM_EVENT_DISCONNECTED,
	 0,
	 {STAYS, STAYS, STAYS, ENDS(ENOTCONN), ENDS(ENOTCONN), ENDS(ENOTCONN), STAYS}},
	{RDMA_CM_EVENT_DEVICE_REMOVAL,
	 0,
	 {ENDS(ENODEV), ENDS(ENODEV), ENDS(ENODEV), ENDS(ENODEV), ENDS(ENODEV), ENDS(ENODEV),
	  ENDS(ENODEV)}},
	{RDMA_CM_EVENT_MULTICAST_JOIN, 0, NOTHING},
	{RDMA_CM_EVENT_MULTICAST_ERROR, -EINVAL, NOTHING},
	{RDMA_CM_EVENT_ADDR_CHANGE, 0, NOTHING},
	{RDMA_CM_EVENT_TIMEWAIT_EXIT, 0, NOTHING},
	{99, 0, NOTHING}, /* an unknown type */
};

static void try_one(size_t row, int state)
{
	const struct outcome *want = &rows[row].in[state];
	struct vb_event event = {.type = rows[row].type, .status = rows[row].status};
	struct vb_pipe *pipe;
	char text[80];

	snprintf(text, sizeof(text), "%s in state %d", rdma_event_str(rows[row].type), state);
	fake_verbs_reset();
	begin(NULL);
	pipe = makers[state]();
	TEST_ASSERT_EQUAL_INT_MESSAGE(state, pipe->state, text);
	event.id = pipe->id;
	vb_on_pipe_event(pipe, &event);
	TEST_ASSERT_EQUAL_INT_MESSAGE(want->lost, pipe->conn->lost, text);
	TEST_ASSERT_EQUAL_INT_MESSAGE(want->state < 0 ? state : want->state, pipe->state, text);
	finish();
	fake_verbs_forgive(); /* this test sends the same event twice, and out of order */
	TEST_ASSERT_EQUAL_STRING_MESSAGE("", fake_verbs_check_clean(), text);
}

static void every_event_in_every_state(void)
{
	for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++)
		for (int state = 0; state < VB_P_STATES; state++)
			try_one(row, state);
}

/* -- the end of one pipe of several -- */

/* Expect one call of `closed`. Returns its reason. */
static int closed(struct end *end)
{
	ends_until(end->n_closed);
	ends_settle();
	TEST_ASSERT_EQUAL_INT(1, end->n_closed);
	return end->reason;
}

static void end_of_one_pipe_ends_all_pipes(void)
{
	begin(NULL);
	ends_settle();
	TEST_ASSERT_EQUAL_INT(0, vb_pipe_want(conn, VB_MESSAGES, 1, 2));
	ends_settle();
	TEST_ASSERT_EQUAL_INT(VB_MESSAGES, conn->pipes->kind);
	TEST_ASSERT_EQUAL_INT(VB_P_UP, conn->pipes->state);
	fake_cm_push(conn->pipes->id, RDMA_CM_EVENT_DISCONNECTED, 0, NULL, 0);
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, closed(&a));
	for (struct vb_pipe *p = conn->pipes; p; p = p->all)
		TEST_ASSERT_EQUAL_INT(VB_P_DEAD, p->state);
	finish();
}

static void removal_of_the_device_ends_all(void)
{
	begin(NULL);
	ends_settle();
	fake_cm_push(((struct vb_listener *)b.listener)->id, RDMA_CM_EVENT_DEVICE_REMOVAL, 0, NULL,
		     0);
	TEST_ASSERT_EQUAL_INT(-ENODEV, closed(&b));
	TEST_ASSERT_TRUE(fake_logged(&b.host, "has been removed or has failed"));
	finish();
}

/* -- connecting fails: which error, and which message -- */

static void fails(const char *what, int why, const char *text)
{
	TEST_ASSERT_EQUAL_INT_MESSAGE(why, closed(&a), what);
	TEST_ASSERT_TRUE_MESSAGE(fake_logged(&a.host, text), a.host.log);
	finish();
}

static void connect_fails_without_a_listener(void)
{
	begin(NULL);
	vb_unlisten(b.listener);
	b.listener = NULL;
	fails("nobody", -ECONNREFUSED, "no connection with 127.0.0.2:7471: no listener there");
}

static void no_such_address(void)
{
	void *c = NULL;

	begin(NULL);
	vb_disconnect(conn);
	TEST_ASSERT_EQUAL_INT(0, vb_connect(ta, "203.0.113.9:7471", &events, &a, &c));
	a.conn = c;
	fails("no device", -EHOSTUNREACH,
	      "no connection with 203.0.113.9:7471: no RDMA device has a route to it");
}

static void connect_fails_if_the_listener_rejects_it(void)
{
	begin(NULL);
	refuse_with = -EACCES;
	fails("user", -EACCES, "it refuses: the listener rejects the session");
}

static void too_many_connections(void)
{
	void *c = NULL;

	begin("max_connections=1");
	ends_settle();
	TEST_ASSERT_EQUAL_INT(0, vb_connect(ta, SERVICE, &events, &a, &c));
	TEST_ASSERT_EQUAL_INT(-EBUSY, closed(&a));
	TEST_ASSERT_TRUE(fake_logged(
		&a.host,
		"it refuses: busy: max_connections=1 reached by all hosts together" REMEDY));
	TEST_ASSERT_EQUAL_STRING("busy: max_connections=1 reached by all hosts together" REMEDY,
				 vb_refusal(c));
	vb_disconnect(c);
	finish();
}

/* The limit of one host leaves connections for other hosts. */
static void too_many_connections_of_one_host(void)
{
	void *c[3] = {NULL}, *other = NULL;

	begin("max_connections=4");
	ends_settle();
	TEST_ASSERT_NULL(vb_refusal(conn));
	for (int i = 0; i < 2; i++) {
		TEST_ASSERT_EQUAL_INT(0, vb_connect(ta, SERVICE, &events, &a, &c[i]));
		ends_settle();
	}
	TEST_ASSERT_EQUAL_INT(0, vb_connect(ta, SERVICE, &events, &a, &c[2]));
	TEST_ASSERT_EQUAL_INT(-EBUSY, closed(&a));
	TEST_ASSERT_EQUAL_STRING("busy: max_connections=4 allows 3 for host 10.99.0.1" REMEDY,
				 vb_refusal(c[2]));
	accepted = NULL;
	TEST_ASSERT_EQUAL_INT(0, vb_connect(tb, SERVICE, &events, &b, &other));
	ends_settle();
	TEST_ASSERT_NOT_NULL(accepted); /* accepted: it comes from another host */
	TEST_ASSERT_EQUAL_INT(0, b.n_closed);
	for (int i = 0; i < 3; i++)
		vb_disconnect(c[i]);
	vb_disconnect(other);
	finish();
}

/*
 * A message that a listener sends inside `accept` arrives, even if the listener disconnects before
 * the peer has finished connecting.
 */
static void message_of_a_listener_that_disconnects_arrives(void)
{
	begin(NULL);
	being_accepted();
	TEST_ASSERT_EQUAL_INT(0, vb_send_ctrl(accepted, "busy", 4));
	vb_disconnect(accepted);
	accepted = NULL;
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, closed(&a));
	TEST_ASSERT_EQUAL_STRING("busy", message);
	finish();
}

/* A disconnected peer that never finishes connecting is dropped at a deadline. */
static void peer_that_never_finishes_connecting_is_dropped(void)
{
	begin(NULL);
	being_accepted();
	TEST_ASSERT_EQUAL_INT(0, vb_send_ctrl(accepted, "busy", 4));
	vb_disconnect(accepted);
	TEST_ASSERT_EQUAL_PTR(accepted, tb->conns);
	b.host.now_ns += 1000000000;
	vb_progress(tb);
	TEST_ASSERT_NULL(tb->conns);
	accepted = NULL;
	finish();
}

static void inline_differs(void)
{
	void *c = NULL;

	ends_open_devices(NULL, NULL, "inline=256");
	refuse_with = 0;
	accepted = NULL;
	TEST_ASSERT_EQUAL_INT(0, vb_listen(b.device, SERVICE, &events, &b, &b.listener));
	TEST_ASSERT_EQUAL_INT(0, vb_connect(a.device, SERVICE, &events, &a, &c));
	a.conn = conn = c;
	ends_settle();
	/* the control pipe connects, because its slots do not depend on `inline` */
	TEST_ASSERT_EQUAL_INT(VB_C_UP, conn->state);
	TEST_ASSERT_EQUAL_INT(0, vb_pipe_want(conn, VB_MESSAGES, 0, 0));
	fails("inline", -EPROTO, "it refuses: the option inline differs at the two ends");
}

static void each_step_has_a_deadline(void)
{
	begin("connect_timeout=1s");
	for (int state = VB_P_RESOLVING; state <= VB_P_CONNECTING; state++) {
		TEST_ASSERT_EQUAL_INT(state, conn->control->state);
		TEST_ASSERT_EQUAL_UINT64(a.host.now_ns + 1000000000u, vb_wake_ns(ta));
		a.host.now_ns += 999999999u;
		vb_conn_progress(conn, a.host.now_ns);
		TEST_ASSERT_EQUAL_INT(0, a.n_closed);
		while (state < VB_P_CONNECTING && (int)conn->control->state == state)
			step(ta);
	}
	a.host.now_ns++;
	fails("silent", -ETIMEDOUT, "no connection with 127.0.0.2:7471: it did not answer in time");
}

static void pipe_not_connected_in_time_ends_the_connection(void)
{
	begin("connect_timeout=1s");
	ends_settle();
	TEST_ASSERT_EQUAL_INT(0, vb_pipe_want(accepted, VB_DATA, 0, VB_NO_LANE));
	b.host.now_ns += 1000000000u;
	vb_progress(tb);
	TEST_ASSERT_EQUAL_INT(-ETIMEDOUT, closed(&b));
	TEST_ASSERT_TRUE(
		fake_logged(&b.host, "the peer did not connect it in time (connect_timeout)"));
	finish();
}

/*
 * The kernel routes a local address over the device that has this address. The transport still uses
 * the configured device.
 */
static void route_over_another_device(void)
{
	begin(NULL);
	ends_settle();
	TEST_ASSERT_EQUAL_INT(1, conn->control->bound);
	TEST_ASSERT_TRUE(conn->control->id->verbs == ta->device.context);
	TEST_ASSERT_EQUAL_INT(VB_C_UP, conn->state);
	finish();
}

static void no_address_on_our_device(void)
{
	fake_device(0)->n_gids = 0;
	begin(NULL);
	fails("other device", -ENODEV,
	      "it is reached by RDMA device fake1, and this transport uses fake0");
}

/* The address lookup times out, and there is no memory to repeat the lookup. */
static void no_memory_to_ask_again(void)
{
	static const struct vb_event silence = {.type = RDMA_CM_EVENT_ADDR_ERROR,
						.status = -ETIMEDOUT};

	begin(NULL);
	resolving();
	fake_verbs_fail("rdma_create_id", 1, ENOMEM);
	vb_on_pipe_event(conn->control, &silence);
	fails("not asked again", -ENOMEM,
	      "no connection with 127.0.0.2:7471: out of memory on this side");
}

static void limits_of_the_device(void)
{
	begin(NULL);
	ta->device.limits.max_qp_wr = 16;
	fails("small device", -E2BIG, "in a queue than RDMA device fake0 has (limit requests=");
}

static void set_limits(int max_qp_wr, int max_cqe)
{
	for (unsigned i = 0; i < 2; i++) {
		fake_device(i)->attr.max_qp_wr = max_qp_wr;
		fake_device(i)->attr.max_cqe = max_cqe;
	}
}

static void check_depth(const char *data_qp, int max_qp_wr, int max_cqe, unsigned most)
{
	void *device = NULL;
	struct queue q;
	char text[80];

	fake_verbs_reset();
	ends_open_devices(data_qp, NULL, NULL);
	set_limits(max_qp_wr, max_cqe);
	a.conf->max_depth = most + 1;
	TEST_ASSERT_EQUAL_INT(-E2BIG, vb_transport_open(&a.host.pub, a.conf, "fake0", &device));
	snprintf(text, sizeof(text), "max_depth = %u needs more requests or completions", most + 1);
	TEST_ASSERT_TRUE_MESSAGE(fake_logged(&a.host, text), a.host.log);
	snprintf(text, sizeof(text), "lower it to %u", most);
	TEST_ASSERT_TRUE_MESSAGE(fake_logged(&a.host, text), a.host.log);
	ends_close();
	/* with the reported depth, the largest queue pair can be created */
	snprintf(text, sizeof(text), "%s max_depth=%u", data_qp, most);
	ends_open(text, NULL, NULL);
	queue_open(&q, &b, 0, &a, 0, most, 64);
	queue_close(&q);
	ends_close();
	TEST_ASSERT_EQUAL_STRING("", fake_verbs_check_clean());
}

/*
 * A max_depth above the limit of the device is an error at open, before any peer connects. The
 * message has the largest valid depth.
 */
static void depth_beyond_the_device(void)
{
	check_depth("data_qp=separate", 100, 32767, 83);
	check_depth("data_qp=separate", 4096, 217, 100);
	check_depth("data_qp=shared", 100, 32767, 41);
	check_depth("data_qp=shared", 4096, 317, 100);
}

static void memory_may_not_be_locked(void)
{
	begin(NULL);
	fake_verbs_fail("ibv_reg_mr", FAKE_ALWAYS, ENOMEM);
	fake_verbs_fail("ibv_reg_mr_iova2", FAKE_ALWAYS, ENOMEM);
	fails("memory", -ENOMEM, "bytes for a connection");
}

/* Connection requests of an attacker: their private data is a wrong struct vb_hello. */
static void malformed_requests_are_rejected(void)
{
	struct vb_hello good = {.magic = VB_MAGIC,
				.version = VB_VERSION,
				.kind = VB_CONTROL,
				.end = VB_CONNECTS,
				.session = 7,
				.slots = VB_CTRL_SLOTS,
				.slot_bytes = VB_CTRL_SLOT},
			queue = good, bad;
	struct vb_listener *l;

	begin(NULL);
	ends_settle();
	l = b.listener;
	queue.kind = VB_MESSAGES;
	queue.session = accepted->session;
	queue.secret = accepted->secret;
	queue.slots = 16;
	queue.slot_bytes = (uint32_t)sizeof(struct vb_msg) + 128;
	for (int i = 0; i < 12; i++) {
		bad = good;
		switch (i) {
		case 0:
			bad.magic++;
			break;
		case 1:
			bad.version++;
			break;
		case 2:
			bad.kind = 0;
			break;
		case 3:
			bad.kind = VB_DIRECT + 1;
			break;
		case 4:
			bad.end = VB_LISTENS;
			break;
		case 5:
			bad.session = 0;
			break;
		case 6:
			bad.slots = 0;
			break;
		case 7:
			bad.slot_bytes = 1;
			break;
		case 8:
			bad = queue;
			bad.session++;
			break; /* the session is unknown */
		case 9:
			bad = queue;
			bad.secret++;
			break; /* the secret is wrong */
		case 10:       /* the lane does not exist */
			bad = queue;
			bad.listens_lane = VB_MAX_LANES;
			break;
		default: /* a request of direct access has the secret of queues */
			bad = queue;
			bad.kind = VB_DIRECT;
			bad.slots = bad.slot_bytes = 0;
			bad.listens_lane = VB_NO_LANE;
		}
		fake_cm_push(l->id, RDMA_CM_EVENT_CONNECT_REQUEST, 0, &bad, sizeof(bad));
		vb_progress(tb);
		TEST_ASSERT_NULL_MESSAGE(tb->conns->next, "a connection was made");
		TEST_ASSERT_NULL_MESSAGE(tb->conns->pipes->all, "a pipe was made");
	}
	TEST_ASSERT_EQUAL_UINT(12, fake_verbs_calls("rdma_reject"));
	TEST_ASSERT_EQUAL_INT(0, a.n_closed + b.n_closed);
	finish();
}

static unsigned n_logged(const char *text)
{
	unsigned n = 0;

	for (const char *at = b.host.log; (at = strstr(at, text)); at++)
		n++;
	return n;
}

/*
 * An event that cannot be processed for lack of memory stays pending, and the device retries it in
 * each turn. It logs the error once.
 */
static void unreadable_events_are_logged_once(void)
{
	static const char said[] = "cannot read connection events: Cannot allocate memory";
	struct vb_listener *l;

	begin(NULL);
	ends_settle();
	l = b.listener;
	for (unsigned i = 1; i <= 2; i++) {
		fake_cm_push(l->id, RDMA_CM_EVENT_MULTICAST_ERROR, 0, NULL, 0);
		fake_verbs_fail("rdma_get_cm_event", FAKE_ALWAYS, ENOMEM);
		for (int turn = 0; turn < 20; turn++)
			vb_progress(tb);
		TEST_ASSERT_EQUAL_UINT(i, n_logged(said));
		fake_verbs_fail("rdma_get_cm_event", FAKE_ALWAYS, 0);
		vb_progress(tb);
	}
	TEST_ASSERT_EQUAL_INT(0, a.n_closed + b.n_closed);
	finish();
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(every_event_in_every_state);
	RUN_TEST(end_of_one_pipe_ends_all_pipes);
	RUN_TEST(removal_of_the_device_ends_all);
	RUN_TEST(connect_fails_without_a_listener);
	RUN_TEST(no_such_address);
	RUN_TEST(connect_fails_if_the_listener_rejects_it);
	RUN_TEST(too_many_connections);
	RUN_TEST(too_many_connections_of_one_host);
	RUN_TEST(message_of_a_listener_that_disconnects_arrives);
	RUN_TEST(peer_that_never_finishes_connecting_is_dropped);
	RUN_TEST(inline_differs);
	RUN_TEST(each_step_has_a_deadline);
	RUN_TEST(pipe_not_connected_in_time_ends_the_connection);
	RUN_TEST(route_over_another_device);
	RUN_TEST(no_address_on_our_device);
	RUN_TEST(no_memory_to_ask_again);
	RUN_TEST(limits_of_the_device);
	RUN_TEST(depth_beyond_the_device);
	RUN_TEST(memory_may_not_be_locked);
	RUN_TEST(malformed_requests_are_rejected);
	RUN_TEST(unreadable_events_are_logged_once);
	return UNITY_END();
}
