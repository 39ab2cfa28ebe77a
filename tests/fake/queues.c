/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * queues.c - the data path of the fake transport: queues and remote memory. A lane uses them while
 * the test reads them.
 */
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "host.h"
#include "transport/local_peer.h"
#include "transport_priv.h"

static void lock(struct fake_conn *conn)
{
	pthread_mutex_lock(&conn->ft->lock);
}

static void unlock(struct fake_conn *conn)
{
	pthread_mutex_unlock(&conn->ft->lock);
}

static void note(struct fake_conn *conn, char what)
{
	if (conn->n_order < FAKE_ORDER - 1)
		conn->order[conn->n_order++] = what;
}

/* The core must not use a queue after its destruction. */
static struct fake_conn *alive(const struct fake_queue *q)
{
	if (!q->conn)
		fake_fail("transport: use of a queue that was destroyed");
	return q->conn;
}

static void touch(unsigned *touched, unsigned index)
{
	if (*touched <= index)
		*touched = index + 1;
}

static struct fake_queue *unused(struct fake_conn *conn, struct fake_queue *queues)
{
	for (unsigned i = 0; i < FAKE_QUEUES; i++)
		if (!queues[i].conn) {
			touch(&conn->touched_queues, i);
			return &queues[i];
		}
	fake_fail("transport: too many queues");
}

int fq_consumer_create(void *arg, const struct gantry_queue_attr *attr, uint32_t *id_p,
		       void **consumer_p)
{
	struct fake_conn *conn = arg;
	int rc = fake_script(conn->ft, FAKE_CONSUMER);
	struct fake_queue *q;

	if (rc != 0 || attr->depth > conn->ft->max_depth)
		return rc != 0 ? rc : -EINVAL;
	q = unused(conn, conn->consumers);
	*q = (struct fake_queue){.conn = conn,
				 .id = conn->ft->next_consumer++,
				 .depth = attr->depth,
				 .thread = attr->thread,
				 .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
	conn->n_consumers++;
	*id_p = q->id;
	*consumer_p = q;
	return 0;
}

void fq_consumer_destroy(void *consumer)
{
	struct fake_queue *q = consumer;
	struct fake_conn *conn = alive(q);

	lock(conn);
	close(q->fd);
	q->conn = NULL;
	conn->n_consumers--;
	unlock(conn);
}

int fq_producer_create(void *arg, uint32_t consumer_id, const struct gantry_queue_attr *attr,
		       void **producer_p)
{
	struct fake_conn *conn = arg;
	int rc = fake_script(conn->ft, FAKE_PRODUCER);
	struct fake_queue *q;

	if (rc != 0)
		return rc;
	q = unused(conn, conn->producers);
	*q = (struct fake_queue){.conn = conn,
				 .id = consumer_id,
				 .lane = attr->lane,
				 .depth = attr->depth,
				 .thread = attr->thread,
				 .fd = -1};
	conn->n_producers++;
	*producer_p = q;
	return 0;
}

void fq_producer_destroy(void *producer)
{
	struct fake_queue *q = producer;
	struct fake_conn *conn = alive(q);

	lock(conn);
	if (q->n_unflushed != 0 && !conn->is_broken)
		fake_fail("transport: producer destroyed, and %u messages never had their doorbell",
			  q->n_unflushed);
	q->conn = NULL;
	conn->n_producers--;
	unlock(conn);
}

static int registered(const struct fake_conn *conn, const struct gantry_region *region)
{
	for (int i = 0; i < FAKE_QUEUES; i++)
		if (conn->registered[i] == region)
			return i;
	return -1;
}

int fq_register(void *arg, const struct gantry_region *region)
{
	struct fake_conn *conn = arg;
	int rc = fake_script(conn->ft, FAKE_REGISTER), slot = registered(conn, NULL);

	if (rc != 0)
		return rc;
	if (slot < 0 || registered(conn, region) >= 0)
		fake_fail("transport: too many regions registered, or one of them twice");
	conn->registered[slot] = region;
	conn->n_registered++;
	return 0;
}

void fq_unregister(void *arg, const struct gantry_region *region)
{
	struct fake_conn *conn = arg;
	int slot = registered(conn, region);

	if (slot < 0 || conn->disconnected)
		fake_fail("transport: region unregistered that was not registered, or too late");
	for (int i = 0; i < FAKE_QUEUES; i++)
		if (conn->rmas[i].conn && conn->rmas[i].used == region)
			fake_fail("transport: region unregistered while an rma may use it");
	conn->registered[slot] = NULL;
	conn->n_registered--;
}

/* The local memory of a move must be registered with the transport. */
static void check_local(struct fake_rma *rma, const struct gantry_rma *op)
{
	const struct gantry_region *region = op->local_region;

	if (!region || registered(rma->conn, region) < 0 ||
	    !gantry_range_ok((uint64_t)((char *)op->local - (char *)region->addr), op->length,
			     region->length))
		fake_fail("transport: rma of memory that is not registered");
	rma->used = region;
}

int fq_rma_create(void *arg, const struct gantry_queue_attr *attr, void **rma_p)
{
	struct fake_conn *conn = arg;
	int rc = fake_script(conn->ft, FAKE_RMA);

	for (unsigned i = 0; i < FAKE_QUEUES && rc == 0; i++)
		if (!conn->rmas[i].conn) {
			touch(&conn->touched_rmas, i);
			conn->rmas[i] = (struct fake_rma){.conn = conn, .lane = attr->lane};
			conn->n_rmas++;
			*rma_p = &conn->rmas[i];
			return 0;
		}
	return rc != 0 ? rc : -ENOMEM;
}

void fq_rma_destroy(void *arg)
{
	struct fake_rma *rma = arg;
	struct fake_conn *conn = rma->conn;

	if (!conn || rma->n_pending != 0)
		fake_fail("transport: rma destroyed twice, or with moves under way");
	rma->conn = NULL;
	conn->n_rmas--;
}

int fq_post_recv(void *consumer, uint32_t n)
{
	struct fake_queue *q = consumer;
	struct fake_conn *conn = alive(q);
	int rc = fake_script(conn->ft, FAKE_POST_RECV);

	lock(conn);
	if (rc == 0 && q->posted + q->n_in + n > q->depth)
		rc = -ENOSPC;
	if (rc == 0)
		q->posted += n;
	unlock(conn);
	return rc;
}

int fq_poll_recv(void *consumer, struct gantry_msg *msgs, uint32_t max)
{
	struct fake_queue *q = consumer;
	struct fake_conn *conn = alive(q);
	uint32_t n;
	int rc;

	lock(conn);
	rc = q->poll_rc;
	n = q->n_in < max ? q->n_in : max;
	memcpy(msgs, q->in, n * sizeof(msgs[0]));
	memmove(q->in, q->in + n, (q->n_in - n) * sizeof(msgs[0]));
	q->n_in -= n;
	unlock(conn);
	return n == 0 && rc != 0 ? rc : (int)n;
}

int fq_consumer_arm(void *consumer)
{
	struct fake_queue *q = consumer;
	struct fake_conn *conn = alive(q);
	int work;

	lock(conn);
	q->armed = 1;
	work = q->n_in != 0;
	unlock(conn);
	return work;
}

void fq_consumer_disarm(void *consumer)
{
	struct fake_queue *q = consumer;
	struct fake_conn *conn = alive(q);
	uint64_t count;

	lock(conn);
	q->armed = 0;
	if (read(q->fd, &count, sizeof(count)) < 0)
		count = 0; /* the doorbell was not rung */
	unlock(conn);
}

int fq_consumer_fd(void *consumer)
{
	return ((struct fake_queue *)consumer)->fd;
}

static void ring(const struct fake_queue *q)
{
	uint64_t one = 1;

	if (q->armed && write(q->fd, &one, sizeof(one)) < 0)
		fake_fail("transport: eventfd");
}

void fake_arrive(struct fake_queue *q, const void *imm, uint32_t len)
{
	struct fake_conn *conn = alive(q);

	lock(conn);
	if (q->n_in == FAKE_MSGS)
		fake_fail("transport: too many messages");
	q->in[q->n_in] = (struct gantry_msg){.imm_len = len};
	memcpy(q->in[q->n_in++].imm, imm, len);
	if (q->posted == 0 || len != GANTRY_IO_WIRE_BYTES)
		conn->is_broken = 1;
	if (q->posted > 0)
		q->posted--;
	ring(q);
	unlock(conn);
}

void fake_queue_break(struct fake_queue *q, int rc)
{
	lock(q->conn);
	q->poll_rc = rc;
	unlock(q->conn);
}

void fq_consumer_set_local_peer(void *consumer, struct gantry_local_peer *peer)
{
	struct fake_queue *q = consumer;

	q->peer = peer;
}

struct gantry_local_peer *const *fq_producer_local_peer(void *producer)
{
	static struct gantry_local_peer *const none;

	(void)producer;
	return &none;
}

static void echo(const struct fake_queue *q, const struct gantry_io *io)
{
	struct gantry_local_peer *peer = q->echo ? q->echo->peer : NULL;

	if (peer && peer->take_request)
		peer->take_request(peer, io);
	else if (peer)
		peer->take_reply(peer, io);
}

int fq_send(void *producer, const void *imm, uint32_t imm_len, uint32_t flags)
{
	struct fake_queue *q = producer;
	struct fake_conn *conn = alive(q);
	int rc;

	lock(conn);
	rc = conn->closed ? -ENOTCONN : q->send_rc;
	if (rc == 0 && q->n_out == FAKE_MSGS)
		rc = -EAGAIN;
	if (rc == 0) {
		if (imm_len > GANTRY_IMM_MAX)
			fake_fail("transport: not a descriptor");
		memset(q->out[q->n_out], 0, GANTRY_IMM_MAX);
		memcpy(q->out[q->n_out++], imm, imm_len);
		q->n_sends++;
		note(conn, 'S');
		q->n_unflushed = flags & GANTRY_SEND_MORE ? q->n_unflushed + 1 : 0;
	} else {
		q->n_refused++;
	}
	unlock(conn);
	if (rc == 0)
		echo(q, imm);
	return rc;
}

void fq_flush(void *producer)
{
	struct fake_queue *q = producer;
	struct fake_conn *conn = alive(q);

	lock(conn);
	q->n_flushes++;
	q->n_unflushed = 0;
	note(conn, 'f');
	for (int i = 0; i < FAKE_QUEUES; i++)
		if (conn->rmas[i].conn && conn->rmas[i].lane == q->lane)
			conn->rmas[i].n_flushed = conn->rmas[i].n_pending;
	unlock(conn);
}

int fake_taken(struct fake_queue *q, void *imm)
{
	struct fake_conn *conn = alive(q);
	int some;

	lock(conn);
	some = q->n_out != 0;
	if (some) {
		memcpy(imm, q->out[0], GANTRY_IMM_MAX);
		memmove(q->out[0], q->out[1], --q->n_out * sizeof(q->out[0]));
	}
	unlock(conn);
	return some;
}

void fake_queue_refuse(struct fake_queue *q, int rc)
{
	lock(q->conn);
	q->send_rc = rc;
	unlock(q->conn);
}

uint32_t fake_peek(struct fake_queue *q, const uint32_t *value)
{
	uint32_t now;

	lock(q->conn);
	now = *value;
	unlock(q->conn);
	return now;
}

/* The caller holds the lock. */
static int submit(struct fake_rma *rma, const struct gantry_rma *op, char what)
{
	int rc = rma->conn->closed ? -ENOTCONN : rma->submit_rc;

	if (rc == 0) {
		rma->pending[rma->n_pending++] = *op;
		rma->n_submits++;
		note(rma->conn, what);
	}
	return rc;
}

int fq_rma_submit(void *arg, const struct gantry_rma *op)
{
	struct fake_rma *rma = arg;
	int rc;

	check_local(rma, op);
	lock(rma->conn);
	rc = submit(rma, op, op->op == GANTRY_RMA_WRITE ? 'W' : 'R');
	unlock(rma->conn);
	return rc;
}

int fq_rma_write_imm(void *arg, const struct gantry_rma *op, uint32_t number)
{
	struct fake_rma *rma = arg;
	int rc;

	check_local(rma, op);
	if (op->op != GANTRY_RMA_WRITE || op->remote->unordered)
		fake_fail("transport: a note that cannot be");
	if (op->length > rma->conn->ft->max_noted)
		return -EMSGSIZE;
	lock(rma->conn);
	rc = rma->note_rc != 0 ? rma->note_rc : submit(rma, op, 'N');
	if (rc == 0)
		rma->notes[rma->n_notes++ % FAKE_MSGS] = number;
	unlock(rma->conn);
	return rc;
}

void fq_rma_flush(void *arg)
{
	struct fake_rma *rma = arg;

	lock(rma->conn);
	rma->n_flushed = rma->n_pending;
	note(rma->conn, 'F');
	unlock(rma->conn);
}

int fq_rma_poll(void *arg, struct gantry_rma_done *done, uint32_t max)
{
	struct fake_rma *rma = arg;
	struct fake_conn *conn = rma->conn;
	uint32_t n = 0;

	lock(conn);
	while (n < max && n < rma->n_flushed && !rma->hold) {
		const struct gantry_rma *op = &rma->pending[n];
		uint8_t *remote = conn->ft->memory + op->remote_offset;

		if (rma->status == 0 && op->op == GANTRY_RMA_READ)
			memcpy(op->local, remote, op->length);
		else if (rma->status == 0)
			memcpy(remote, op->local, op->length);
		done[n++] = (struct gantry_rma_done){.cookie = op->cookie, .status = rma->status};
	}
	memmove(rma->pending, rma->pending + n, (rma->n_pending - n) * sizeof(rma->pending[0]));
	rma->n_pending -= n;
	rma->n_flushed -= n;
	unlock(conn);
	return (int)n;
}

void fake_rma_set(struct fake_rma *rma, int submit_rc, int status, int hold)
{
	lock(rma->conn);
	rma->submit_rc = submit_rc;
	rma->status = status;
	rma->hold = hold;
	for (unsigned i = 0; i < FAKE_QUEUES && !hold; i++)
		ring(&rma->conn->consumers[i]); /* wake sleeping lanes: they can poll the moves */
	unlock(rma->conn);
}
