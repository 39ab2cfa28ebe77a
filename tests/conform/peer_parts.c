/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer_parts.c - the program conform/peer: END PART STEP. It runs a part of a peer until it is
 * killed; peer.h starts and controls it.
 *
 * At a step the peer either makes no more turns, like a process that hangs (stay), or makes turns
 * (rest).
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "conform/rig.h"
#include "conform/tcp_secure.h"

#define BYTES 65536u

struct rig_driver rig_driver;
static const char *services[2], *until;
static char settings[1024];

static void say(void)
{
	if (write(3, "s", 1) != 1)
		_exit(1);
}

/* Wait for the command of the parent to exit, and exit; status 1 if the parent has ended. */
static void go(void)
{
	char c;

	_exit(read(0, &c, 1) != 1);
}

static void stay(const char *step)
{
	if (strcmp(step, until) != 0)
		return;
	say();
	go();
}

static void rest(const char *step)
{
	struct pollfd p = {.fd = 0, .events = POLLIN};

	if (strcmp(step, until) != 0)
		return;
	say();
	while (poll(&p, 1, 1) == 0)
		rig_turn();
	go();
}

static void connects(void)
{
	rig_start_connect(rig_service(0));
	stay("connecting");
	rig_until(rig.a.n_connected, 1);
	rig_register(&rig.a);
	stay("connected");
	rest("idle");
}

static void begin(void)
{
	rig_start_connect(rig_service(0));
	rig_until(rig.a.n_connected, 1);
	rig_register(&rig.a);
}

/* Send five messages to the consumer of the other end. */
static void sends(void)
{
	struct gantry_queue_attr attr = {.depth = 16, .max_data = 4096};
	uint32_t length = rig.info.max_inline < 1000 ? rig.info.max_inline : 1000;
	struct rig_queue *q = &rig.queues[0];
	uint8_t data[1000];

	begin();
	q->used = 1;
	rig_until(rig.a.n_up, 1);
	RIG_OK(rig.ops->producer_create(rig.a.conn, rig.a.up[0], &attr, &q->tx));
	rest("producer");
	for (uint64_t i = 0; i < 5; i++) {
		struct gantry_send send = {.imm = &i, .imm_len = 8, .data = data, .length = length};

		rig_fill(data, sizeof(data), (uint32_t)i);
		RIG_OK(rig.ops->data ? rig_send_data(q, &send) : rig_send(q, &i, sizeof(i)));
	}
	RIG_OK(rig_ctrl(&rig.a, "sent", 4));
	rest("sent");
}

static void receives(void)
{
	struct gantry_queue_attr attr = {.depth = 4, .max_data = 4096};
	struct rig_queue *q = &rig.queues[0];
	struct gantry_msg msg;

	begin();
	q->used = 1;
	RIG_OK(rig.ops->consumer_create(rig.a.conn, &attr, &q->id, &q->rx));
	rest("consumer");
	RIG_OK(rig.ops->post_recv(q->rx, 4));
	rest("posted");
	rig_take(q, &msg);
	rest("taken");
}

static void exports(void)
{
	static struct rig_memory m;
	struct gantry_token token;

	begin();
	rig_memory_open(&m, BYTES, 3);
	rig_fill(m.bytes, BYTES, 77);
	RIG_OK(rig.ops->export_region(rig.a.conn, &m.region, 3, 1, &token));
	RIG_OK(rig_ctrl(&rig.a, &token, sizeof(token)));
	rest("exported");
}

/*
 * Import the region whose token is in the first message of the other end. As the last step, write
 * to the region without end.
 */
static void imports(void)
{
	uint8_t *local = rig_local(BYTES);
	struct gantry_region *r = NULL;
	struct gantry_token token;
	struct rig_rma *q;

	begin();
	rig_until(rig.a.n_msgs, 1);
	memcpy(&token, rig.a.msg, sizeof(token));
	RIG_OK(rig.ops->import_region(rig.a.conn, &token, 0, &r));
	stay("imported");
	rest("idle");
	q = rig_rma_open(&rig.a, 16, 0);
	say();
	for (uint32_t i = 1;; i++) {
		rig_fill(local, BYTES, i);
		for (uint32_t k = 0; k < 16; k++)
			RIG_OK(rig_rma(q, GANTRY_RMA_WRITE, local + k * 4096, r, k * 4096, 4096,
				       k));
		for (uint32_t k = 0; k < 16; k++)
			RIG_OK(rig_rma_status(q, k));
	}
}

static void listens(void)
{
	rig_listen(rig_service(0));
	stay("listening");
	rest("serving");
	rig_until(rig.b.n_accept, 1);
	rest("accepted"); /* with a record filter, a handshake follows */
}

static const struct {
	const char *name;
	void (*play)(void);
} parts[] = {
	{"connects", connects}, {"sends", sends},     {"receives", receives},
	{"exports", exports},   {"imports", imports}, {"listens", listens},
};

static const char *part;

static void play(void)
{
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (strcmp(parts[i].name, part) == 0)
			parts[i].play();
	fake_fail("part %s has no step %s", part, until);
}

static const char *need(const char *name)
{
	const char *value = getenv(name);

	if (!value)
		fake_fail("%s is not set: conform/peer is started by other tests", name);
	return value;
}

int main(int argc, char **argv)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (argc != 4)
		fake_fail("usage: peer a|b PART STEP");
	part = argv[2];
	until = argv[3];
	services[0] = need("RIG_PEER_SERVICE");
	snprintf(settings, sizeof(settings), "%s", need("RIG_PEER_SETTINGS"));
	setenv(argv[1][0] == 'a' ? "RIG_A_SETTINGS" : "RIG_B_SETTINGS", settings, 1);
	rig_driver = (struct rig_driver){
		.plugin = need("RIG_PEER_PLUGIN"), .services = services, .one_end = argv[1][0]};
	if (getenv(SECURE_PEER))
		rig_driver.wrap = secure_wrap;
	UNITY_BEGIN();
	RUN_TEST(play);
	return 1;
}
