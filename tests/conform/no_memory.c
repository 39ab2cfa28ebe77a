/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * no_memory.c - a transport while allocations fail. The test runs all operations of two ends, once
 * for each n: the n-th allocation of the plugin fails; or all allocations from the n-th on fail.
 * Over the fake of RDMA (RIG_FAKE), calls into the RDMA libraries fail in the same two ways. The
 * operation returns -ENOMEM, the remedy is logged, no peer waits without end, nothing leaks, and
 * afterwards all operations work.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gantry/transport.h>

#include "fake/host.h"
#include "fake/shortage.h"
#include "memory/region.h"
#include "unity.h"

#ifdef RIG_FAKE
#include "fake/verbs/verbs.h"
#define PLUGIN "rdma-verbs"
#define SERVICE "127.0.0.2:7471"
#define WORDS 20 /* control messages: later ones have to be queued */
static const char *const settings[] = {"inline=64", "ibdev=fake0", "ibdev=fake1",
				       "direct_networks=0.0.0.0/0"};
#elif defined(RIG_TCP)
#define PLUGIN "tcp"
#define SERVICE "127.0.0.2:0"
#define WORDS 200
static const char *const settings[] = {"connect_timeout=5s", "direct=true", "direct=false",
				       "direct_networks=127.0.0.0/8"};
#else
#define USES_DIR 1
#define PLUGIN "shm-comch"
#define SERVICE "volume"
#define WORDS 200
static char dir[64] = "dir=/tmp/gantry-no-memory-XXXXXX";
static const char *const settings[] = {dir, "ring_slots=256", "ring_slots=256", "mapped=true"};
#endif
/*
 * TURNS: turns after which an expected event counts as missing. TURN_NS: time of a turn. The
 * control thread of tcp looks for work of lanes only at times.
 */
#ifdef RIG_TCP
#define TURNS 20000
#define TURN_NS 10000
#else
#define TURNS 200
#define TURN_NS 0
#endif
#define BYTES 8192u
#define DATA 2048u  /* bytes of a message: more than a slot holds */
#define PATIENCE 60 /* seconds after which a process counts as hanging */
#define MOST 2000   /* maximum number of allocations of one run */

struct side {
	struct fake_host host;
	void *conf, *device, *listener, *conn, *rx, *tx, *rma;
	int n_connected, n_closed, reason, n_said, n_heard, n_revoke, n_revoked;
	uint32_t consumer; /* id of the consumer of the peer */
	struct gantry_region *local, *imported, *passed_on;
	int registered;
	struct gantry_token token, token_on;
};

static struct side a, b; /* a connects; b listens */
static const struct gantry_plugin *plugin;
static const struct gantry_transport_ops *ops;
static struct shortage *shortage; /* shared with the processes whose allocations fail */
static int is_short;              /* allocations of this process fail */

/* -- events -- */

static int on_accept(void *arg, void *conn, const struct gantry_peer *peer, void **conn_arg_p)
{
	struct side *s = arg;

	(void)peer;
	s->conn = conn;
	*conn_arg_p = s;
	return 0;
}

static void on_connected(void *arg, void *conn, const struct gantry_peer *peer)
{
	(void)conn, (void)peer;
	((struct side *)arg)->n_connected++;
}

static void on_message(void *arg, void *conn, const void *msg, size_t len)
{
	(void)conn, (void)msg, (void)len;
	((struct side *)arg)->n_heard++;
}

static void on_consumer(void *arg, void *conn, uint32_t id, int up)
{
	(void)conn;
	((struct side *)arg)->consumer = up ? id : 0;
}

static void on_revoke(void *arg, void *conn, uint32_t handle)
{
	(void)conn, (void)handle;
	((struct side *)arg)->n_revoke++;
}

static void on_revoked(void *arg, void *conn, uint32_t handle, int rc)
{
	(void)conn, (void)handle, (void)rc;
	((struct side *)arg)->n_revoked++;
}

static void on_closed(void *arg, void *conn, int reason)
{
	struct side *s = arg;

	(void)conn;
	s->n_closed++;
	s->reason = reason;
}

static const struct gantry_conn_events events = {.accept = on_accept,
						 .connected = on_connected,
						 .message = on_message,
						 .consumer = on_consumer,
						 .revoke = on_revoke,
						 .revoked = on_revoked,
						 .closed = on_closed};

/* -- steps: each returns 0, or the first -errno that one of the two ends gets -- */

static int open_side(struct side *s, const char *name, const char *own)
{
	fake_host_init(&s->host, name);
	s->conf = fake_conf(plugin, settings[0], own, settings[3], "max_depth=8", NULL);
	TEST_ASSERT_EQUAL_INT(0, gn_region_create(BYTES, 0, &s->local));
	return ops->open(&s->host.pub, s->conf, &s->device);
}

/*
 * Returns why the connection has been closed, or 0. Only the side that failed reports its error.
 * The other side reports -ENOTCONN, a lost peer.
 */
static int ended(void)
{
	if (a.n_closed && (!b.n_closed || a.reason != -ENOTCONN))
		return a.reason;
	return b.n_closed ? b.reason : 0;
}

static void turn_side(struct side *s)
{
	s->host.now_ns += TURN_NS;
	ops->progress(s->device);
	if (s->rx)
		ops->poll_recv(s->rx, NULL, 0);
}

static int turn(void)
{
	turn_side(&a);
	turn_side(&b);
	return ended();
}

/*
 * If rc is -ENOTCONN, make turns until the other end has logged or reported its reason. Returns
 * that reason, else rc.
 */
static int reason_of_end(int rc)
{
	for (int i = 0; i < TURNS && rc == -ENOTCONN; i++)
		rc = turn();
	/* a listener that rejects or closes the connection logs its reason */
	if ((rc == -ECONNREFUSED || rc == -EBUSY || rc == -ENOTCONN) &&
	    fake_logged(&b.host, strerror(ENOMEM)))
		return -ENOMEM;
	return rc;
}

#define UNTIL(what) \
	do { \
		int rc_ = 0; \
\
		for (int turns_ = 0; !rc_ && !(what); turns_++) { \
			TEST_ASSERT_TRUE_MESSAGE(turns_ < TURNS, "timeout: " #what); \
			rc_ = turn(); \
		} \
		if (rc_) \
			return reason_of_end(rc_); \
	} while (0)
#define TRY(call) \
	do { \
		int rc_ = (call); \
\
		if (rc_) \
			return reason_of_end(rc_); \
	} while (0)

static int meet(void)
{
	const char *service;

	TRY(open_side(&a, "a", settings[1]));
	TRY(open_side(&b, "b", settings[2]));
	TRY(ops->listen(b.device, SERVICE, &events, &b, &b.listener));
	service = ops->listener_address ? ops->listener_address(b.listener) : SERVICE;
	TRY(ops->connect(a.device, service, &events, &a, &a.conn));
	UNTIL(a.n_connected && b.conn);
	return 0;
}

/* Send WORDS control messages: the later ones are queued, which needs memory. */
static int crowd(struct side *s)
{
	static const char word[GANTRY_CTRL_MAX];
	int rc;

	for (int i = 0; i < WORDS; i++, s->n_said++) {
		rc = ops->send_ctrl(s->conn, word, sizeof(word));
		if (rc)
			return rc == -EAGAIN ? 0 : reason_of_end(rc);
	}
	return 0;
}

static int make_queues(struct side *s)
{
	const struct gantry_queue_attr attr = {.depth = 4, .max_data = DATA};
	uint32_t id;

	if (ops->register_region)
		TRY(ops->register_region(s->conn, s->local));
	s->registered = ops->register_region != NULL;
	TRY(crowd(s));
	TRY(ops->consumer_create(s->conn, &attr, &id, &s->rx));
	return ops->post_recv(s->rx, 3);
}

static int join_queues(struct side *s)
{
	const struct gantry_queue_attr attr = {.depth = 4, .max_data = DATA};

	UNTIL(s->consumer);
	TRY(crowd(s)); /* the requests of b for queue pairs are queued behind these messages */
	TRY(ops->producer_create(s->conn, s->consumer, &attr, &s->tx));
	return ops->rma_create(s->conn, &attr, &s->rma);
}

static int sent(struct side *from, const struct gantry_send *what)
{
	int rc = ops->data ? ops->data->send(from->tx, what, 0)
			   : ops->send(from->tx, what->imm, what->imm_len, 0);

	TEST_ASSERT_TRUE(rc == 0 || rc == -EAGAIN || rc == -ENOTCONN || rc == -ENOMEM);
	return rc == 0;
}

static int received(struct side *to, struct gantry_msg *msg)
{
	return ops->poll_recv(to->rx, msg, 1) == 1;
}

/* Permit one message with data, or three without. */
static int post(struct side *to, uint32_t n)
{
	const struct gantry_recv recvs[] = {
		{.buf = NULL},
		{.buf = NULL},
		{.buf = NULL},
		{.buf = (char *)to->local->addr + DATA, .length = DATA}};

	return ops->data ? ops->data->post_recv(to->rx, n == 1 ? &recvs[3] : recvs, n)
			 : ops->post_recv(to->rx, n);
}

static int send_one(struct side *from, struct side *to, uint32_t bytes)
{
	uint32_t length = ops->data ? bytes : 0;
	const struct gantry_send what = {.imm = "message",
					 .imm_len = 8,
					 .length = length,
					 .region = length ? from->local : NULL,
					 .cookie = 7};
	struct gantry_msg msg = {.status = -1};
	uint64_t cookie = 0;

	TRY(post(to, 1));
	for (uint32_t i = 0; i < 4; i++) {
		UNTIL(sent(from, &what));
		UNTIL(received(to, &msg));
		/* only the last receive had a buffer for data */
		TEST_ASSERT_EQUAL_INT(length && i < 3 ? -EMSGSIZE : 0, msg.status);
		if (length)
			UNTIL(ops->data->poll_send(from->tx, &cookie, 1) == 1);
	}
	return post(to, 3);
}

static int imports(struct side *s, const struct gantry_token *token,
		   struct gantry_region **region_p, int *rc_p)
{
	*rc_p = ops->import_region(s->conn, token, 0, region_p);
	return *rc_p != -ENOENT;
}

static int submitted(struct side *s, const struct gantry_rma *what)
{
	struct gantry_rma_done done;

	ops->rma_poll(s->rma, &done, 1);
	return ops->rma_submit(s->rma, what) != -EAGAIN;
}

static int finished(struct side *s, struct gantry_rma_done *done)
{
	return ops->rma_poll(s->rma, done, 1) == 1;
}

static int move(struct side *s, struct gantry_region *from)
{
	const struct gantry_rma what = {.op = GANTRY_RMA_READ,
					.length = 64,
					.local = s->local->addr,
					.local_region = s->local,
					.remote = from};
	struct gantry_rma_done done = {.status = 1};

	UNTIL(submitted(s, &what));
	if (ops->rma_flush)
		ops->rma_flush(s->rma);
	UNTIL(finished(s, &done));
	TEST_ASSERT_TRUE(done.status == 0 || done.status == -ENOTCONN);
	return done.status ? reason_of_end(done.status) : 0;
}

/*
 * A re-export: end a exports a region to end b, end b exports its import to end a, and end a
 * imports this export, although the memory is its own.
 */
static int lend(void)
{
	int rc = 0;

	TRY(crowd(&a));
	TRY(ops->export_region(a.conn, a.local, a.local->rights, 1, &a.token));
	UNTIL(imports(&b, &a.token, &b.imported, &rc));
	TRY(rc);
	TRY(send_one(&a, &b, DATA));
	TRY(move(&b, b.imported));
	TRY(ops->export_region(b.conn, b.imported, GANTRY_REMOTE_READ, 1, &b.token_on));
	UNTIL(imports(&a, &b.token_on, &a.passed_on, &rc));
	TRY(rc);
	return move(&a, a.passed_on);
}

static void give_up(struct side *s, struct gantry_region **region_p)
{
	if (*region_p)
		ops->release_region(s->conn, *region_p);
	*region_p = NULL;
}

static int take_back(struct side *s, struct side *from, struct gantry_region **region_p)
{
	TRY(crowd(s));
	TRY(ops->revoke_region(s->conn, 1));
	UNTIL(from->n_revoke);
	TRY(crowd(from));
	give_up(from, region_p);
	UNTIL(s->n_revoked);
	return 0;
}

static void drop_queues(struct side *s)
{
	if (s->rma)
		ops->rma_destroy(s->rma);
	if (s->tx)
		ops->producer_destroy(s->tx);
	if (s->rx)
		ops->consumer_destroy(s->rx);
	s->rma = s->tx = s->rx = NULL;
}

static int part(void)
{
	TRY(take_back(&b, &a, &a.passed_on));
	TRY(take_back(&a, &b, &b.imported));
	/* handle 1 is free again */
	TRY(ops->export_region(a.conn, a.local, a.local->rights, 1, &a.token));
	TRY(crowd(&a));
	drop_queues(&a);
	UNTIL(b.consumer == 0 && b.n_heard == a.n_said && a.n_heard == b.n_said);
	return 0;
}

static int everything(void)
{
	TRY(meet());
	TRY(make_queues(&a));
	TRY(make_queues(&b));
	TRY(join_queues(&a));
	TRY(join_queues(&b));
	TRY(send_one(&b, &a, 0));
	TRY(lend());
	return part();
}

static void disconnect(struct side *s)
{
	drop_queues(s);
	if (s->conn) {
		give_up(s, &s->imported);
		give_up(s, &s->passed_on);
		if (s->registered)
			ops->unregister_region(s->conn, s->local);
		ops->disconnect(s->conn);
	}
	if (s->listener)
		ops->unlisten(s->listener);
}

static void end_side(struct side *s)
{
	if (s->device)
		ops->close(s->device);
	if (s->local)
		gn_region_destroy(&s->local, 1);
	free(s->conf);
}

static int once(void)
{
	int rc;

	memset(&a, 0, sizeof(a));
	memset(&b, 0, sizeof(b));
	rc = everything();
	disconnect(&a);
	disconnect(&b);
	/* over TCP an end sends its last bytes, and waits for those of the peer */
	for (int i = 0; i < 20 && a.device && b.device; i++) {
		ops->progress(a.device);
		ops->progress(b.device);
	}
	end_side(&a);
	end_side(&b);
	return rc;
}

/*
 * Returns whether a device logged the advice. advice NULL: whether b opened its device, or a device
 * logged anything. A transport must log why a device does not open, and the remedy, because its
 * caller does not know them; the caller logs other errors.
 */
static int is_said(const char *advice)
{
	if (!advice)
		return b.device || *a.host.log || *b.host.log;
	return fake_logged(&a.host, advice) || fake_logged(&b.host, advice);
}

static void begin(void)
{
#ifdef RIG_FAKE
	fake_verbs_reset();
	/*
	 * The first call of rdma_get_devices() opens contexts, which the library keeps. Make that
	 * call now, so that they do not count as leaks of the operations.
	 */
	rdma_free_devices(rdma_get_devices(NULL));
#endif
}

static void check_clean(const char *where)
{
#ifdef RIG_FAKE
	TEST_ASSERT_EQUAL_STRING_MESSAGE("", fake_verbs_check_clean(), where);
#else
	(void)where;
#endif
}

void setUp(void)
{
	begin();
}

void tearDown(void)
{
	fflush(NULL);
	if (is_short)
		_exit(1);
	check_clean("");
}

static void test_nothing_fails(void)
{
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, once(), b.host.log);
}

static void check_end(int rc, const char *advice, const char *where)
{
	char text[600];

	snprintf(text, sizeof(text), "%s: %d, %.200s%.200s", where, rc, a.host.log, b.host.log);
	TEST_ASSERT_TRUE_MESSAGE(rc == 0 || (rc == -ENOMEM && is_said(advice)), text);
	check_clean(text);
}

/* -- calls into the libraries -- */

#ifdef RIG_FAKE
static void fail_everywhere(const char *function, const char *advice)
{
	unsigned calls = fake_verbs_calls(function);
	char where[80];

	TEST_ASSERT_EQUAL_INT(0, once());
	calls = fake_verbs_calls(function) - calls;
	TEST_ASSERT_TRUE_MESSAGE(calls, function);
	for (unsigned nth = 1; nth <= calls; nth++)
		for (int lasts = 0; lasts < 2; lasts++) {
			snprintf(where, sizeof(where), "%s, call %u%s", function, nth,
				 lasts ? " and all that follow" : "");
			(lasts ? fake_verbs_fail_from : fake_verbs_fail)(function, (int)nth,
									 ENOMEM);
			check_end(once(), advice, where);
			fake_verbs_fail(function, 1, 0);
		}
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, once(), where);
}

static void test_each_call_fails(void)
{
	static const char *const pinned[] = {"ibv_reg_mr", "ibv_create_cq", "rdma_create_qp"};
	static const char *const others[] = {
		"rdma_get_devices",
		"ibv_query_device",
		"rdma_create_event_channel",
		"rdma_create_id",
		"rdma_bind_addr",
		"rdma_listen",
		"rdma_resolve_addr",
		"rdma_resolve_route",
		"rdma_connect",
		"rdma_accept",
		"rdma_set_option",
		"ibv_alloc_pd",
		"ibv_create_comp_channel",
		"ibv_req_notify_cq",
		"ibv_modify_qp",
		"ibv_post_send",
		"ibv_post_recv",
	};

	for (size_t i = 0; i < sizeof(pinned) / sizeof(pinned[0]); i++)
		fail_everywhere(pinned[i], "LimitMEMLOCK");
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		fail_everywhere(others[i], NULL);
}
#endif

/* -- allocations -- */

struct left {
	long fds, blocks, maps;
};

static struct left left(void)
{
	begin();
	return (struct left){shortage_entries("/proc/self/fd"), shortage_blocks(), shortage_maps()};
}

/*
 * Runs in a separate process, because a signal can end it. After a failed assertion tearDown() ends
 * the process.
 */
static void with_too_little(void)
{
	struct left before, after;
	char where[160];
	int rc;

	is_short = 1;
	alarm(PATIENCE);
	TEST_ASSERT_EQUAL_INT(0, once());
	before = left();
	shortage_use(shortage);
	rc = once();
	shortage_use(NULL);
	snprintf(where, sizeof(where), "allocation %u of %u fails, of %s", shortage->at,
		 shortage->n, shortage->file);
	TEST_ASSERT_TRUE_MESSAGE(rc == 0 || shortage->failed, where);
	check_end(rc, NULL, where);
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, once(), where);
	after = left();
	TEST_ASSERT_EQUAL_INT64_MESSAGE(before.fds, after.fds, where);
	TEST_ASSERT_EQUAL_INT64_MESSAGE(before.blocks, after.blocks, where);
	TEST_ASSERT_EQUAL_INT64_MESSAGE(before.maps, after.maps, where);
	_exit(0);
}

static void run(uint32_t at, uint32_t lasts)
{
	char text[160];
	int status;
	pid_t pid;

	*shortage = (struct shortage){.at = at, .lasts = lasts, .foreign = 1};
	fflush(NULL);
	pid = fork();
	TEST_ASSERT_GREATER_OR_EQUAL(0, pid);
	if (pid == 0)
		with_too_little();
	TEST_ASSERT_EQUAL_INT(pid, waitpid(pid, &status, 0));
	snprintf(text, sizeof(text), "allocation %u, of %s, status %#x", at, shortage->file,
		 (unsigned)status);
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, status, text);
}

static void walk(uint32_t lasts)
{
	uint32_t n = 0;

	if (!shortage_can())
		TEST_IGNORE_MESSAGE("allocations cannot fail in this build");
	do {
		run(++n, lasts);
		TEST_ASSERT_LESS_THAN(MOST, n);
	} while (shortage->failed);
	TEST_ASSERT_GREATER_THAN(30, n);
}

static void test_one_allocation_fails(void)
{
	walk(0);
}

static void test_all_allocations_fail_from_one_on(void)
{
	walk(1);
}

#ifdef USES_DIR
/* The directories are not empty if the transport has left a socket. */
static void remove_dir(void)
{
	char card[96];

	snprintf(card, sizeof(card), "%s/00%%3A00.0", dir + 4);
	if (rmdir(card) || rmdir(dir + 4))
		fake_fail("%s is not empty", card);
}
#endif

int main(void)
{
	/* the limit of locked memory of an unprivileged process */
	const struct rlimit little = {.rlim_cur = 65536, .rlim_max = 65536};
	int failed;

	setrlimit(RLIMIT_MEMLOCK, &little);
#ifdef USES_DIR
	if (!mkdtemp(dir + 4))
		fake_fail("%s cannot be made", dir);
#endif
	plugin = fake_plugin(PLUGIN);
	ops = plugin->ops;
	shortage = mmap(NULL, sizeof(*shortage), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	if (shortage == MAP_FAILED)
		fake_fail("no memory to share");
	UNITY_BEGIN();
	RUN_TEST(test_nothing_fails);
#ifdef RIG_FAKE
	RUN_TEST(test_each_call_fails);
#endif
	RUN_TEST(test_one_allocation_fails);
	RUN_TEST(test_all_allocations_fail_from_one_on);
	failed = UNITY_END();
#ifdef USES_DIR
	remove_dir();
#endif
	return failed;
}
