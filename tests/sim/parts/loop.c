/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * parts/loop.c - a lane of the loop transport: messages of all kinds, credit, sleep; either end is
 * destroyed at any time
 *
 *     control     creates the queues while the consumer's lane polls; destroys the producer, then
 *                 writes to the region that its messages named; or destroys the consumer, while the
 *                 producer may still send
 *     producer    sends; stops when all messages are sent, or a send reports that the consumer was
 *                 destroyed
 *     consumer    receives; sleeps when its queue is empty
 */
#include <poll.h>
#include <string.h>

#include "../../../plugins/transport/loop/loop.h"
#include "part.h"

#define DATA 16u
#define MESSAGES 8u
/* the owner fills the region with this byte after no message can name the region any more */
#define AFTER 0xee

static struct {
	uint32_t n, depth, batch; /* number of messages; of receives; most messages of a poll */
	uint32_t kind;            /* kind of the first message, see kind_of() */
	uint32_t more;            /* GANTRY_SEND_MORE is used */
	/* messages until the consumer is destroyed; n: it is destroyed after the producer */
	uint32_t consumer_goes_after;
} as;

static struct loop_device dev;
static struct loop_conn a, b; /* a: of the producer; b: of the consumer */
static struct loop_consumer *consumer;
static struct loop_producer *producer;
static struct gantry_region region;
static uint8_t memory[MESSAGES * DATA], bufs[2 * MESSAGES][DATA];
static uint64_t payload;
static uint32_t n_got, n_posted;
static bool can_send, all_sent, all_got;

/* These functions replace those of files of the loop transport that are not linked. */
int loop_usable(const struct loop_conn *conn)
{
	(void)conn;
	return 0;
}

int loop_event(struct loop_conn *conn, enum loop_event_type type, uint32_t id, int rc,
	       const void *data, size_t len)
{
	(void)conn;
	(void)type;
	(void)id;
	(void)rc;
	(void)data;
	(void)len;
	return 0;
}

static uint64_t *counter(const struct gantry_host *host, const char *name)
{
	(void)host;
	(void)name;
	return &payload;
}

static void begin(void)
{
	static const struct loop_conf conf = {.max_depth = 64};
	static struct gantry_host host = {.counter = counter};

	as.n = 2 + sim_draw(MESSAGES - 1);
	as.depth = 1 + sim_draw(4);
	as.kind = sim_draw(4);
	as.batch = 1 + sim_draw(4);
	as.more = sim_draw(2);
	as.consumer_goes_after = sim_draw(4) == 0 ? sim_draw(as.n) : as.n;
	n_got = n_posted = 0;
	can_send = all_sent = all_got = false;
	dev = (struct loop_device){.host = &host, .conf = &conf};
	memset(&a, 0, sizeof(a));
	memset(&b, 0, sizeof(b));
	a.dev = b.dev = &dev;
	a.peer = &b;
	b.peer = &a;
	region = (struct gantry_region){.addr = memory, .length = sizeof(memory), .fd = -1};
	a.exports[0] = (struct loop_export){.rights = GANTRY_REMOTE_READ,
					    .length = sizeof(memory),
					    .addr = memory,
					    .region = &region};
	for (uint32_t i = 0; i < sizeof(memory); i++)
		memory[i] = (uint8_t)(100 + i / DATA);
	memset(bufs, 0, sizeof(bufs));
	consumer = NULL;
	producer = NULL;
}

static void open_consumer(void)
{
	const struct gantry_queue_attr attr = {.depth = as.depth, .max_data = DATA};
	uint32_t id;

	if (loop_consumer_create(&b, &attr, &id, (void **)&consumer) != 0)
		sim_fail("no consumer");
}

static void *control(void *arg)
{
	PART_CHECK(loop_producer_create(
			   &a, 1, &(struct gantry_queue_attr){.depth = as.depth, .max_data = DATA},
			   (void **)&producer) == 0,
		   "a producer cannot be created");
	sim_late(producer->ring->msgs, (producer->ring->mask + 1) * sizeof(struct loop_msg));
	sim_late(producer->ring->inline_data, (producer->ring->mask + 1) * DATA);
	part_set(&can_send);
	if (as.consumer_goes_after < as.n) {
		part_wait(&all_got);
		loop_consumer_destroy(consumer);
		consumer = NULL;
	}
	part_wait(&all_sent);
	loop_producer_destroy(producer);
	memset(memory, AFTER, sizeof(memory));
	if (consumer) {
		part_wait(&all_got);
		loop_consumer_destroy(consumer);
	}
	return arg;
}

/*
 * Returns the kind of message i. 0: GANTRY_IMM_MAX bytes of immediate data. The other kinds have 8
 * bytes of it; 1: no data; 2: data inside the message; 3: data in the region.
 */
static uint32_t kind_of(uint32_t i)
{
	return (i + as.kind) % 4;
}

static int send_one(uint32_t i, uint32_t flags)
{
	uint8_t imm[GANTRY_IMM_MAX], data[DATA];
	struct gantry_send s = {
		.imm = imm, .imm_len = kind_of(i) == 0 ? GANTRY_IMM_MAX : 8, .cookie = i};

	memset(imm, (int)(100 + i), sizeof(imm));
	memset(data, (int)(100 + i), sizeof(data));
	s.length = kind_of(i) > 1 ? DATA : 0;
	s.data = kind_of(i) == 2 ? data : NULL;
	s.region = kind_of(i) == 3 ? &region : NULL;
	s.region_offset = i * DATA;
	return loop_send_data(producer, &s, flags);
}

static void *produce(void *arg)
{
	uint64_t cookies[4];
	int rc = 0;

	part_wait(&can_send);
	for (uint32_t i = 0; i < as.n;) {
		rc = send_one(i, as.more && i % 3 != 2 ? GANTRY_SEND_MORE : 0);
		if (rc == -ENOTCONN && as.consumer_goes_after < as.n)
			break;
		PART_CHECK(rc == 0 || rc == -EAGAIN, "a send fails");
		PART_CHECK(rc != 0 || i < n_posted, "a message is sent without credit");
		if (rc == 0) {
			i++;
		} else {
			loop_poll_send(producer, cookies, 4);
			part_spin();
		}
	}
	loop_flush(producer);
	part_set(&all_sent);
	return arg;
}

static bool is(const uint8_t *bytes, uint32_t n, uint32_t value)
{
	for (uint32_t i = 0; i < n; i++)
		if (bytes[i] != value)
			return false;
	return true;
}

static void take(const struct gantry_msg *m)
{
	uint32_t i = n_got++;

	PART_CHECK(i < as.n, "a message is delivered twice");
	PART_CHECK(m->imm_len == (kind_of(i) == 0 ? GANTRY_IMM_MAX : 8),
		   "immediate data has the wrong length");
	PART_CHECK(is(m->imm, m->imm_len, 100 + i), "a message is wrong");
	PART_CHECK(m->cookie == i, "a receive is used out of order");
	if (m->status == -EFAULT && kind_of(i) == 3)
		return; /* the producer of the message was destroyed */
	PART_CHECK(m->status == 0, "a message is rejected");
	PART_CHECK(m->length == (kind_of(i) > 1 ? DATA : 0), "data has the wrong length");
	PART_CHECK(is(bufs[i], m->length, 100 + i), "data is wrong");
}

static void post(uint32_t first, uint32_t n)
{
	n_posted = first + n;
	for (uint32_t i = first; i < first + n; i++)
		PART_CHECK(loop_post_recv_data(consumer,
					       &(struct gantry_recv){
						       .buf = bufs[i], .length = DATA, .cookie = i},
					       1) == 0,
			   "a receive is rejected");
}

static void *consume(void *arg)
{
	struct gantry_msg m[4];

	post(0, as.depth);
	while (n_got < as.consumer_goes_after) {
		int n = loop_poll_recv(consumer, m, as.batch);

		PART_CHECK(n >= 0 && (uint32_t)n <= as.batch, "a poll returns too many");
		for (int i = 0; i < n; i++)
			take(&m[i]);
		if (n != 0) {
			post(n_got - (uint32_t)n + as.depth, (uint32_t)n);
		} else {
			if (loop_consumer_arm(consumer) == 0)
				poll(&(struct pollfd){.fd = consumer->bell, .events = POLLIN}, 1,
				     -1);
			loop_consumer_disarm(consumer);
		}
	}
	/* poll until the consumer has released the ring of the destroyed producer */
	if (as.consumer_goes_after == as.n)
		while (consumer->active != 0) {
			PART_CHECK(loop_poll_recv(consumer, m, as.batch) == 0,
				   "a message is delivered twice");
			part_spin();
		}
	part_set(&all_got);
	return arg;
}

static const char *check(void)
{
	return n_got < as.consumer_goes_after ? "a message is missing" : NULL;
}

const struct part part_loop = {.name = "loop",
			       .steps = 20000,
			       .begin = begin,
			       .open = open_consumer,
			       .threads = {control, produce, consume},
			       .check = check};
