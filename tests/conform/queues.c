/* SPDX-License-Identifier: BSD-3-Clause */
/* queues.c - the rig: queues, memory, remote access. */
#include <sys/mman.h>
#include <unistd.h>

#include <gantry/memfd.h>

#include "conform/rig.h"

static struct rig_queue *new_queue(void)
{
	for (unsigned i = 0; i < RIG_QUEUES; i++)
		if (!rig.queues[i].used) {
			memset(&rig.queues[i], 0, sizeof(rig.queues[i]));
			rig.queues[i].used = 1;
			return &rig.queues[i];
		}
	fake_fail("more than %d queues in a rig", RIG_QUEUES);
}

static void need_depth(uint32_t depth)
{
	if (depth > rig.info.max_depth)
		rig_skip("skipped: the device has no queues of depth %u (info.max_depth is %u)",
			 depth, rig.info.max_depth);
}

struct rig_queue *rig_queue_open_lanes(struct rig_end *rx, uint32_t rx_lane, struct rig_end *tx,
				       uint32_t tx_lane, uint32_t depth, uint32_t max_data)
{
	struct gantry_queue_attr attr = {
		.depth = depth, .max_data = max_data, .lane = rx_lane, .flags = rig.queue_flags};
	struct rig_queue *q;
	int ups = tx->n_up;

	need_depth(depth);
	q = new_queue();
	q->max_data = max_data;
	RIG_OK(rig.ops->consumer_create(rx->conn, &attr, &q->id, &q->rx));
	rig_until(tx->n_up, ups + 1);
	RIG_NUM(q->id, tx->up[ups % RIG_MSGS], "id of the announced consumer");
	attr.lane = tx_lane;
	RIG_OK(rig.ops->producer_create(tx->conn, q->id, &attr, &q->tx));
	rig_settle();
	return q;
}

struct rig_queue *rig_queue_open(struct rig_end *rx, struct rig_end *tx, uint32_t depth,
				 uint32_t max_data)
{
	return rig_queue_open_lanes(rx, 0, tx, 0, depth, max_data);
}

struct rig_queue *rig_queue_join(const struct rig_queue *of, struct rig_end *tx, uint32_t lane,
				 uint32_t depth)
{
	struct gantry_queue_attr attr = {.depth = depth, .max_data = of->max_data, .lane = lane};
	struct rig_queue *q;

	need_depth(depth);
	q = new_queue();
	q->id = of->id;
	q->max_data = of->max_data;
	RIG_OK(rig.ops->producer_create(tx->conn, q->id, &attr, &q->tx));
	rig_settle();
	return q;
}

void rig_queue_close_tx(struct rig_queue *q)
{
	if (q->tx)
		rig.ops->producer_destroy(q->tx);
	q->tx = NULL;
}

void rig_queue_close_rx(struct rig_queue *q)
{
	if (q->rx)
		rig.ops->consumer_destroy(q->rx);
	q->rx = NULL;
}

void rig_queue_close(struct rig_queue *q)
{
	rig_queue_close_tx(q);
	rig_queue_close_rx(q);
	q->used = 0;
	rig_settle();
}

/* Send a message. data: NULL: immediate data only, by `send` of struct gantry_transport_ops. */
static int send_some(struct rig_queue *q, const void *imm, uint32_t imm_len,
		     const struct gantry_send *data)
{
	uint64_t late = 0;
	int rc;

	for (;;) {
		if (rig.ops->data) /* only a hint: no effect on the result of send */
			rig.ops->data->send_prefetch(q->tx);
		rc = data ? rig.ops->data->send(q->tx, data, 0)
			  : rig.ops->send(q->tx, imm, imm_len, 0);
		if (rc != -EAGAIN)
			return rc;
		rig_wait(&late, 0,
			 "send() not to return -EAGAIN: the consumer has posted a receive, and the "
			 "producer must learn of it");
	}
}

int rig_send(struct rig_queue *q, const void *imm, uint32_t imm_len)
{
	return send_some(q, imm, imm_len, NULL);
}

int rig_send_data(struct rig_queue *q, const struct gantry_send *send)
{
	return send_some(q, NULL, 0, send);
}

int rig_send_imm(struct rig_queue *q, uint64_t value)
{
	return rig_send(q, &value, sizeof(value));
}

int rig_poll(struct rig_queue *q, struct gantry_msg *msgs, uint32_t max)
{
	uint32_t n = q->n_kept < max ? q->n_kept : max;

	if (n == 0)
		return rig.ops->poll_recv(q->rx, msgs, max);
	memcpy(msgs, q->kept, n * sizeof(*msgs));
	q->n_kept -= n;
	memmove(q->kept, q->kept + n, q->n_kept * sizeof(*msgs));
	return (int)n;
}

void rig_take(struct rig_queue *q, struct gantry_msg *msg)
{
	uint64_t late = 0;
	int n;

	memset(msg, 0xee, sizeof(*msg));
	while ((n = rig_poll(q, msg, 1)) == 0)
		rig_wait(&late, 0, "poll_recv() to return a message that send() accepted");
	RIG_RC(1, n, "poll_recv with room for one message");
}

int rig_done(struct rig_queue *q, uint64_t *cookies, uint32_t max)
{
	uint32_t n = q->n_cookies < max ? q->n_cookies : max;

	if (n == 0)
		return rig.ops->data->poll_send(q->tx, cookies, max);
	memcpy(cookies, q->cookies, n * sizeof(*cookies));
	q->n_cookies -= n;
	memmove(q->cookies, q->cookies + n, q->n_cookies * sizeof(*cookies));
	return (int)n;
}

uint64_t rig_take_done(struct rig_queue *q)
{
	uint64_t late = 0, cookie = 0;
	int n;

	while ((n = rig_done(q, &cookie, 1)) == 0)
		rig_wait(&late, 0, "poll_send() to return the cookie of a message that was polled");
	RIG_RC(1, n, "poll_send with room for one cookie");
	return cookie;
}

int rig_post_data(struct rig_queue *q, void *buf, uint32_t length, uint64_t cookie)
{
	struct gantry_recv recv = {.buf = buf, .length = length, .cookie = cookie};

	return rig.ops->data->post_recv(q->rx, &recv, 1);
}

void rig_lend(struct rig_queue *q)
{
	q->lent = 1;
	if (rig_driver.threads)
		rig_driver.threads();
}

void rig_warm(struct rig_queue *q)
{
	struct gantry_msg msg;

	RIG_OK(rig.ops->post_recv(q->rx, 1));
	RIG_OK(rig_send_imm(q, 0));
	rig_take(q, &msg);
}

int rig_payload(uint64_t *sum_p)
{
	int n = 0;

	*sum_p = 0;
	for (int i = 0; i < 2; i++) {
		const struct fake_host *host = i ? &rig.b.host : &rig.a.host;

		for (unsigned k = 0; k < host->n_counters; k++)
			n += strcmp(host->counters[k].name, "payload_bytes") == 0;
		*sum_p += fake_counter(host, "payload_bytes");
	}
	return n > 0;
}

uint8_t *rig_local(uint32_t bytes)
{
	uint8_t *p = (uint8_t *)rig.local.addr + rig.local_used;

	rig.local_used += (bytes + 127) & ~63u;
	if (rig.local_used > RIG_LOCAL_BYTES)
		fake_fail("more than %u bytes of local memory", RIG_LOCAL_BYTES);
	return p;
}

void rig_memory_open(struct rig_memory *m, uint64_t bytes, uint32_t rights)
{
	int fd = gantry_memfd_create("conform", bytes, 0);

	TEST_ASSERT_TRUE(fd >= 0);
	m->bytes = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	TEST_ASSERT_TRUE(m->bytes != MAP_FAILED);
	TEST_ASSERT_EQUAL_INT(0, gantry_memfd_seal(fd, 0));
	TEST_ASSERT_EQUAL_INT(0, gantry_memfd_populate(fd, 0, m->bytes, bytes, 1));
	m->region = (struct gantry_region){
		.addr = m->bytes, .length = bytes, .fd = fd, .rights = rights};
	if (rig.n_memories == RIG_MEMORIES)
		fake_fail("more than %d memories in a rig", RIG_MEMORIES);
	rig.memories[rig.n_memories++] = *m;
}

void rig_fill(uint8_t *p, size_t n, uint32_t seed)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)((i * 2654435761u + seed * 40503u) >> 13);
}

int rig_filled(const uint8_t *p, size_t n, uint32_t seed)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] != (uint8_t)((i * 2654435761u + seed * 40503u) >> 13))
			return 0;
	return 1;
}

int rig_all(const uint8_t *p, size_t n, uint8_t byte)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] != byte)
			return 0;
	return 1;
}

struct rig_rma *rig_rma_open(struct rig_end *end, uint32_t depth, uint32_t lane)
{
	struct gantry_queue_attr attr = {.depth = depth, .lane = lane};
	struct rig_rma *q = rig.rmas;

	if (!rig_has(RIG_RMA))
		return NULL;
	need_depth(depth);
	while (q < rig.rmas + RIG_QUEUES && q->q)
		q++;
	if (q == rig.rmas + RIG_QUEUES)
		fake_fail("more than %d queues in a rig", RIG_QUEUES);
	RIG_OK(rig.ops->rma_create(end->conn, &attr, &q->q));
	rig_settle();
	return q;
}

void rig_rma_close(struct rig_rma *q)
{
	if (!q)
		return;
	if (q->q)
		rig.ops->rma_destroy(q->q);
	q->q = NULL;
}

int rig_rma_submit(struct rig_rma *q, const struct gantry_rma *rma)
{
	uint64_t late = 0;
	int rc;

	while ((rc = rig.ops->rma_submit(q->q, rma)) == -EAGAIN)
		rig_wait(&late, 0,
			 "rma_submit() not to return -EAGAIN on a queue with free entries");
	return rc;
}

int rig_rma(struct rig_rma *q, enum gantry_rma_op op, void *local,
	    const struct gantry_region *remote, uint64_t offset, uint32_t length, uint64_t cookie)
{
	struct gantry_rma rma = {.op = (uint32_t)op,
				 .local = local,
				 .local_region = &rig.local,
				 .remote = remote,
				 .remote_offset = offset,
				 .length = length,
				 .cookie = cookie};
	int rc = rig_rma_submit(q, &rma);

	rig.ops->rma_flush(q->q);
	return rc;
}

int rig_rma_status(struct rig_rma *q, uint64_t cookie)
{
	struct gantry_rma_done done = {.cookie = ~cookie};
	uint64_t late = 0;

	while (rig.ops->rma_poll(q->q, &done, 1) == 0)
		rig_wait(&late, 0, "rma_poll() to return an operation that rma_submit() accepted");
	RIG_NUM(cookie, done.cookie, "cookie of the oldest remote operation");
	return done.status;
}

int rig_rma_move(struct rig_rma *q, enum gantry_rma_op op, void *local,
		 const struct gantry_region *remote, uint64_t offset, uint32_t length)
{
	int rc = rig_rma(q, op, local, remote, offset, length, offset + length);

	return rc ? rc : rig_rma_status(q, offset + length);
}
