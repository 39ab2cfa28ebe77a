/* SPDX-License-Identifier: BSD-3-Clause */
/* doca_judge.c - see doca_judge.h */
#include "doca_judge.h"

#include <doca_error.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "image.h"
#include "proc.h"

#define TASKS 32768u
#define CONNS 512u
#define QUEUES 1024u
#define CONTEXTS 128u
#define NONE UINT32_MAX
#define VISIBLE_NS 1000000u /* after this time a store has left the buffer of its thread */
#define CALM_NS 20000000u   /* limit until a task completes, and its message arrives */

struct task {
	enum sim_doca_kind kind;
	uint32_t conn, queue; /* queue: only of a send or receive */
	uint32_t to, bytes, imm_bytes;
	bool refused, dropped, done, arrived, late; /* late: submitted while its queue stopped */
	int error;
	uint64_t began_ns, done_ns, arrived_ns;
	uint32_t next; /* next task of the same connection or queue */
};

struct conn {
	uint32_t side, peer;
	bool left, lost, killed;
	uint64_t over_ns;     /* when its program left the connection or was killed */
	uint32_t first, last; /* messages */
	uint32_t delivered;   /* the last message that arrived; NONE: no message did */
	uint64_t opened_ns;
	uint8_t blob[SIM_DOCA_BLOB]; /* descriptor of the map that this end has exported */
	size_t blob_bytes;
};

struct queue {
	uint32_t conn, id;
	bool consumer, stops;
	bool is_new, is_expired; /* the peer got these events about this consumer */
	bool has_dropped;        /* its program freed receives that messages can have used */
	/*
	 * Posted receives completed with an error when the consumer ended. So receives were left
	 * over, and each message that was sent before the stop had found a receive.
	 */
	bool has_flushed;
	bool has_reset; /* some receives failed because the peer had left */
	uint64_t stop_ns;
	uint32_t first, last; /* tasks */
};

static struct task tasks[TASKS];
static struct conn conns[CONNS];
static struct queue queues[QUEUES];
static struct context {
	const void *key; /* NULL: free */
	int pid, state;
} contexts[CONTEXTS];
static uint32_t n_tasks, n_conns, n_queues;
static const struct sim_doca_job *job;

void sim_doca_judge_begin(const struct sim_doca_job *of)
{
	n_tasks = n_conns = n_queues = 0;
	memset(contexts, 0, sizeof(contexts));
	job = of;
}

/* -- contents -- */

static void fill(uint8_t *data, uint32_t bytes, uint64_t seed)
{
	uint64_t x = (seed + 1) * 0x9e3779b97f4a7c15u;

	for (uint32_t i = 0; i < bytes; i++) {
		if (i % 8 == 0) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
		}
		data[i] = (uint8_t)(x >> (i % 8 * 8));
	}
	if (bytes >= sizeof(seed))
		memcpy(data, &seed, sizeof(seed));
}

static bool is_filled(const uint8_t *data, uint32_t bytes, uint64_t seed)
{
	static uint8_t wanted[SIM_DOCA_BUF];

	if (bytes > sizeof(wanted))
		return false;
	fill(wanted, bytes, seed);
	return bytes == 0 || memcmp(wanted, data, bytes) == 0;
}

/* -- connections -- */

uint32_t sim_doca_conn(uint32_t side)
{
	if (n_conns == CONNS)
		sim_fail("more than %u connections", CONNS);
	conns[n_conns] = (struct conn){.side = side,
				       .peer = NONE,
				       .first = NONE,
				       .last = NONE,
				       .delivered = NONE,
				       .opened_ns = sim_now()};
	sim_note(0x100000u + n_conns);
	return n_conns++;
}

static bool has_peer(const struct conn *c)
{
	return c->peer != NONE;
}

static bool is_over(const struct conn *c)
{
	return c->left || c->lost || c->killed;
}

/* Whether the connection may have ended, with or without an event for its program. */
static bool may_be_down(const struct conn *c)
{
	return is_over(c) || !has_peer(c) || conns[c->peer].left || conns[c->peer].killed ||
	       conns[c->peer].lost;
}

void sim_doca_leave(uint32_t conn)
{
	conns[conn].left = true;
	conns[conn].over_ns = sim_now();
	sim_note(0x200000u + conn);
}

void sim_doca_lost(uint32_t conn)
{
	struct conn *c = &conns[conn];
	const struct conn *peer = has_peer(c) ? &conns[c->peer] : NULL;

	sim_note(0x300000u + conn);
	if (c->left)
		sim_wrong("connection %u: a disconnection event after the program has left it",
			  conn);
	if (c->lost)
		sim_wrong("connection %u: a second disconnection event", conn);
	if (peer && !peer->left && !peer->killed)
		sim_wrong("connection %u: disconnected, although its peer %u is there", conn,
			  c->peer);
	c->lost = true;
}

void sim_doca_killed(uint32_t side, int pid)
{
	for (uint32_t i = 0; i < n_conns; i++)
		if (conns[i].side == side && !conns[i].killed && !is_over(&conns[i])) {
			conns[i].killed = true;
			conns[i].over_ns = sim_now();
		}
	/* the outcome of tasks in flight is unknown */
	for (uint32_t i = 0; i < n_tasks; i++)
		if (conns[tasks[i].conn].side == side && !tasks[i].done)
			tasks[i].dropped = true;
	for (uint32_t i = 0; i < n_conns; i++)
		if (conns[i].side == side)
			conns[i].killed = true;
	for (uint32_t i = 0; i < CONTEXTS; i++)
		if (contexts[i].pid == pid)
			contexts[i].key = NULL;
}

void sim_doca_export(uint32_t conn, const void *blob, size_t bytes)
{
	if (bytes > SIM_DOCA_BLOB)
		sim_fail("an export descriptor of %zu bytes", bytes);
	memcpy(conns[conn].blob, blob, bytes);
	conns[conn].blob_bytes = bytes;
}

size_t sim_doca_exported(uint32_t conn, uint8_t *blob)
{
	const struct conn *peer;

	if (!has_peer(&conns[conn]))
		return 0;
	peer = &conns[conns[conn].peer];
	memcpy(blob, peer->blob, peer->blob_bytes);
	return peer->blob_bytes;
}

/* The first message of a connection shows which connection is its peer. */
static void pair(uint32_t conn, uint32_t peer)
{
	if (peer >= n_conns || (conns[conn].side == 0) == (conns[peer].side == 0) ||
	    has_peer(&conns[conn]) || (has_peer(&conns[peer]) && conns[peer].peer != conn)) {
		sim_wrong("connection %u: a message of connection %u, which is not its peer", conn,
			  peer);
		return;
	}
	conns[conn].peer = peer;
	conns[peer].peer = conn;
}

/* -- tasks -- */

static uint32_t new_task(enum sim_doca_kind kind, uint32_t conn, uint32_t queue, uint32_t *first,
			 uint32_t *last)
{
	if (n_tasks == TASKS) {
		sim_wrong("more than %u tasks: a program does not end", TASKS);
		n_tasks--;
	}
	tasks[n_tasks] = (struct task){
		.kind = kind, .conn = conn, .queue = queue, .began_ns = sim_now(), .next = NONE};
	if (*first == NONE)
		*first = n_tasks;
	else
		tasks[*last].next = n_tasks;
	*last = n_tasks;
	sim_note((uint64_t)kind << 32 | n_tasks);
	return n_tasks++;
}

void sim_doca_dropped(uint32_t task)
{
	tasks[task].dropped = true;
	if (tasks[task].kind == SIM_DOCA_RECV)
		queues[tasks[task].queue].has_dropped = true;
}

/* Returns the consumer of the peer that a send is addressed to. NULL: there is none. */
static struct queue *consumer_of(const struct task *t)
{
	uint32_t peer = conns[t->conn].peer;

	for (uint32_t i = 0; i < n_queues; i++)
		if (queues[i].consumer && queues[i].conn == peer && queues[i].id == t->to)
			return &queues[i];
	return NULL;
}

static bool send_may_fail(const struct task *t, int error)
{
	const struct queue *to = consumer_of(t);

	switch (error) {
	case DOCA_ERROR_INVALID_VALUE:
		return t->bytes > job->buf_bytes;
	case DOCA_ERROR_NOT_FOUND:
		return !to || to->stops || may_be_down(&conns[t->conn]);
	case DOCA_ERROR_NOT_CONNECTED:
		return !to || to->stops || may_be_down(&conns[t->conn]);
	case DOCA_ERROR_CONNECTION_RESET:
		return may_be_down(&conns[t->conn]);
	case DOCA_ERROR_SHUTDOWN:
		return queues[t->queue].stops;
	default:
		return false;
	}
}

static bool may_end_with(const struct task *t, int error)
{
	const struct conn *c = &conns[t->conn];

	if (error == DOCA_SUCCESS)
		return t->kind != SIM_DOCA_SEND || (t->bytes <= job->buf_bytes && consumer_of(t));
	if (t->kind == SIM_DOCA_SEND)
		return send_may_fail(t, error);
	if (t->kind == SIM_DOCA_RECV)
		return error == DOCA_ERROR_CONNECTION_RESET
			       ? may_be_down(c)
			       : error == DOCA_ERROR_SHUTDOWN && queues[t->queue].stops;
	return error == DOCA_ERROR_NOT_CONNECTED ? may_be_down(c)
						 : error == DOCA_ERROR_SHUTDOWN && is_over(c);
}

void sim_doca_refused(uint32_t task, int error)
{
	struct task *t = &tasks[task];

	t->refused = true;
	t->error = error;
	t->done_ns = sim_now();
	sim_note((uint64_t)task << 8 | (uint8_t)error);
	if (t->arrived)
		sim_wrong("task %u was rejected, and what it sends has arrived", task);
	if (error == DOCA_ERROR_AGAIN
		    ? t->kind != SIM_DOCA_SEND
		    : error != DOCA_ERROR_NOT_CONNECTED && error != DOCA_ERROR_BAD_STATE)
		sim_wrong("task %u was rejected with error %d", task, error);
	if (error != DOCA_ERROR_AGAIN && !may_be_down(&conns[t->conn]) &&
	    (t->kind == SIM_DOCA_MESSAGE || !queues[t->queue].stops) &&
	    (t->kind != SIM_DOCA_SEND || !send_may_fail(t, error)))
		sim_wrong("task %u was rejected with error %d, although its connection works", task,
			  error);
}

void sim_doca_done(uint32_t task, int error)
{
	struct task *t = &tasks[task];

	sim_note((uint64_t)task << 8 | (uint8_t)error);
	if (t->done)
		sim_wrong("task %u completed twice", task);
	if (t->refused || t->dropped)
		sim_wrong("task %u completed, although it was %s", task,
			  t->refused ? "rejected" : "freed");
	t->done = true;
	t->error = error;
	t->done_ns = sim_now();
	if (t->kind != SIM_DOCA_RECV && error != DOCA_SUCCESS && t->arrived &&
	    t->kind == SIM_DOCA_MESSAGE)
		sim_wrong("message %u failed with error %d, and has arrived", task, error);
	if (!may_end_with(t, error))
		sim_wrong("task %u completed with error %d, which its situation does not allow",
			  task, error);
	if (t->kind == SIM_DOCA_RECV && error != DOCA_SUCCESS && !t->late)
		queues[t->queue].has_flushed = true;
	if (t->kind == SIM_DOCA_RECV && error == DOCA_ERROR_CONNECTION_RESET && !t->late)
		queues[t->queue].has_reset = true;
	if (t->kind == SIM_DOCA_RECV && error == DOCA_SUCCESS && !t->arrived)
		sim_wrong("receive %u completed, and nothing has arrived", task);
}

/* -- messages -- */

uint32_t sim_doca_message(uint32_t conn, uint8_t *data, uint32_t bytes)
{
	uint32_t task = new_task(SIM_DOCA_MESSAGE, conn, NONE, &conns[conn].first,
				 &conns[conn].last);

	tasks[task].bytes = bytes;
	fill(data, bytes, task);
	return task;
}

static void arrived(struct task *t, uint32_t task)
{
	t->arrived = true;
	t->arrived_ns = sim_now();
	if (t->refused)
		sim_wrong("task %u was rejected, and what it sends has arrived", task);
	if (t->kind == SIM_DOCA_MESSAGE && t->done && t->error != DOCA_SUCCESS)
		sim_wrong("message %u failed, and has arrived", task);
	sim_note(0x400000000u + task);
}

void sim_doca_message_event(uint32_t conn, const uint8_t *data, uint32_t bytes)
{
	struct conn *c = &conns[conn];
	uint64_t first = 0;
	uint32_t task;

	if (c->left || c->lost)
		sim_wrong("connection %u: a message after its end", conn);
	if (!has_peer(c) && bytes >= sizeof(first)) {
		memcpy(&first, data, sizeof(first));
		if (first < n_tasks && tasks[first].kind == SIM_DOCA_MESSAGE)
			pair(conn, tasks[first].conn);
	}
	if (!has_peer(c)) {
		/*
		 * pair() has found no peer: the sender of the message already has another peer, or
		 * no end has sent this message
		 */
		sim_wrong("connection %u: the first message of %u bytes is none that was sent",
			  conn, bytes);
		return;
	}
	task = conns[c->peer].delivered == NONE ? conns[c->peer].first
						: tasks[conns[c->peer].delivered].next;
	while (task != NONE &&
	       (tasks[task].refused || (tasks[task].done && tasks[task].error != DOCA_SUCCESS)))
		task = tasks[task].next;
	if (task == NONE || tasks[task].bytes != bytes || !is_filled(data, bytes, task)) {
		sim_wrong(
			"connection %u: a message of %u bytes is not the next one of its peer (%d)",
			conn, bytes, (int)task);
		return;
	}
	conns[c->peer].delivered = task;
	arrived(&tasks[task], task);
}

/* -- consumers and producers -- */

uint32_t sim_doca_queue(uint32_t conn, bool consumer, uint32_t id)
{
	if (n_queues == QUEUES)
		sim_fail("more than %u consumers and producers", QUEUES);
	for (uint32_t i = 0; i < n_queues; i++)
		if (queues[i].conn == conn && queues[i].consumer == consumer && queues[i].id == id)
			sim_wrong("connection %u: two queues have the id %u", conn, id);
	queues[n_queues] = (struct queue){
		.conn = conn, .id = id, .consumer = consumer, .first = NONE, .last = NONE};
	return n_queues++;
}

void sim_doca_queue_stop(uint32_t queue)
{
	queues[queue].stops = true;
	queues[queue].stop_ns = sim_now();
}

void sim_doca_consumer_event(uint32_t conn, uint32_t id, bool is_new)
{
	const struct conn *c = &conns[conn];
	struct queue *q = NULL;

	sim_note(0x500000u + id * 2 + is_new);
	if (c->left || c->lost)
		sim_wrong("connection %u: an event about consumer %u after its end", conn, id);
	for (uint32_t i = 0; i < n_queues && has_peer(c); i++)
		if (queues[i].consumer && queues[i].conn == c->peer && queues[i].id == id)
			q = &queues[i];
	if (!q) {
		if (has_peer(c))
			sim_wrong(
				"connection %u: an event about consumer %u, which its peer does not have",
				conn, id);
		return; /* the peer is known only when the connection's first message has arrived */
	}
	if (is_new ? q->is_new : (!q->is_new || q->is_expired))
		sim_wrong("connection %u: consumer %u is %s again", conn, id,
			  is_new ? "new" : "expired");
	if (!is_new && !q->stops && !may_be_down(c))
		sim_wrong("connection %u: consumer %u has expired, although it runs", conn, id);
	if (is_new)
		q->is_new = true;
	else
		q->is_expired = true;
}

uint32_t sim_doca_send(uint32_t producer, uint32_t to, uint8_t *data, uint32_t bytes, uint8_t *imm,
		       uint32_t imm_bytes)
{
	struct queue *q = &queues[producer];
	uint32_t task = new_task(SIM_DOCA_SEND, q->conn, producer, &q->first, &q->last);

	tasks[task].to = to;
	tasks[task].bytes = bytes;
	tasks[task].imm_bytes = imm_bytes;
	fill(data, bytes, task);
	fill(imm, imm_bytes, (uint64_t)task + TASKS);
	return task;
}

uint32_t sim_doca_post(uint32_t consumer)
{
	struct queue *q = &queues[consumer];
	uint32_t task = new_task(SIM_DOCA_RECV, q->conn, consumer, &q->first, &q->last);

	tasks[task].late = q->stops;
	return task;
}

/*
 * Returns the first send with this content after the last send that has arrived. NONE: there is
 * none.
 */
static uint32_t find_send(const struct queue *producer, uint32_t to, const uint8_t *data,
			  uint32_t bytes, const uint8_t *imm, uint32_t imm_bytes)
{
	uint32_t from = producer->first;

	for (uint32_t i = producer->first; i != NONE; i = tasks[i].next)
		if (tasks[i].to == to && tasks[i].arrived)
			from = tasks[i].next;
	for (; from != NONE; from = tasks[from].next)
		if (tasks[from].to == to && !tasks[from].refused && tasks[from].bytes == bytes &&
		    tasks[from].imm_bytes == imm_bytes && is_filled(data, bytes, from) &&
		    is_filled(imm, imm_bytes, (uint64_t)from + TASKS))
			return from;
	return NONE;
}

void sim_doca_arrived(uint32_t task, uint32_t from, const uint8_t *data, uint32_t bytes,
		      const uint8_t *imm, uint32_t imm_bytes)
{
	const struct queue *consumer = &queues[tasks[task].queue], *producer = NULL;
	uint32_t peer = conns[consumer->conn].peer, send;

	for (uint32_t i = 0; i < n_queues && peer != NONE; i++)
		if (!queues[i].consumer && queues[i].conn == peer && queues[i].id == from)
			producer = &queues[i];
	if (!producer) {
		sim_wrong("receive %u: from producer %u, which the peer does not have", task, from);
		return;
	}
	send = find_send(producer, consumer->id, data, bytes, imm, imm_bytes);
	if (send == NONE) {
		sim_wrong(
			"receive %u: %u bytes with %u of immediate data are not what producer %u has sent next",
			task, bytes, imm_bytes, from);
		return;
	}
	tasks[task].arrived = true;
	tasks[task].bytes = bytes;
	arrived(&tasks[send], send);
}

/* -- states -- */

static bool is_legal(int before, int after)
{
	switch (before) {
	case 0: /* idle */
		return after == 1 || after == 2;
	case 1: /* starting */
		return after == 2 || after == 3 || after == 0;
	case 2: /* running */
		return after == 3 || after == 0;
	default: /* stopping */
		return after == 0;
	}
}

void sim_doca_state(const void *key, int before, int after)
{
	struct context *c = NULL;

	sim_note(0x600000u + (uint32_t)(before * 4 + after));
	for (uint32_t i = 0; i < CONTEXTS; i++)
		if (contexts[i].key == key)
			c = &contexts[i];
	for (uint32_t i = 0; i < CONTEXTS && !c; i++)
		if (!contexts[i].key) {
			c = &contexts[i];
			*c = (struct context){key, sim_proc_self()->pid, 0};
		}
	if (!c)
		sim_fail("more than %u contexts", CONTEXTS);
	if (c->state != before || !is_legal(before, after))
		sim_wrong("a context in state %d changes from %d to %d", c->state, before, after);
	c->state = after;
}

void sim_doca_destroyed(const void *key)
{
	for (uint32_t i = 0; i < CONTEXTS; i++)
		if (contexts[i].key == key) {
			if (contexts[i].state != 0)
				sim_wrong("a context in state %d was destroyed", contexts[i].state);
			contexts[i].key = NULL;
		}
}

void sim_doca_closed(uint32_t side)
{
	for (uint32_t i = 0; i < n_tasks; i++)
		if (conns[tasks[i].conn].side == side && !tasks[i].done && !tasks[i].refused &&
		    !tasks[i].dropped)
			sim_wrong(
				"task %u has not completed, although all contexts of side %u were idle",
				i, side);
	for (uint32_t i = 0; i < n_conns; i++)
		if (conns[i].side == side && !is_over(&conns[i]))
			sim_wrong("connection %u has no end, although its program has ended", i);
}

/* -- the end -- */

static char text[200];

static const char *broken(const char *format, ...) __attribute__((format(printf, 1, 2)));
static const char *broken(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	return text;
}

/* Whether the message of this task must have arrived. */
static bool must_arrive(const struct task *t)
{
	const struct conn *c = &conns[t->conn];
	const struct queue *to;

	if (!t->done || t->error != DOCA_SUCCESS || c->killed || !has_peer(c) ||
	    conns[c->peer].killed)
		return false;
	if (t->kind == SIM_DOCA_MESSAGE)
		return !conns[c->peer].left;
	if (t->kind != SIM_DOCA_SEND)
		return false;
	to = consumer_of(t);
	/*
	 * several producers together can send more messages than the consumer has receives: a stop
	 * of the consumer drops those that have found none
	 */
	return to && !to->has_dropped &&
	       (!to->stops || (to->has_reset && c->left) ||
		(to->has_flushed && t->done_ns + VISIBLE_NS < to->stop_ns));
}

static const char *judge_calm(const struct task *t, uint32_t i)
{
	if (t->refused || t->kind == SIM_DOCA_RECV)
		return NULL;
	if (!t->done || t->error != DOCA_SUCCESS)
		return broken("task %u failed with error %d, although nothing was wrong", i,
			      t->done ? t->error : -1);
	if (t->done_ns - t->began_ns > CALM_NS ||
	    (t->arrived && t->arrived_ns - t->began_ns > CALM_NS))
		return broken(
			"task %u completed after %.3f ms, and arrived after %.3f ms, although nothing was wrong",
			i, (double)(t->done_ns - t->began_ns) / 1e6,
			(double)(t->arrived_ns - t->began_ns) / 1e6);
	return NULL;
}

const char *sim_doca_verdict(bool calm)
{
	for (uint32_t i = 0; i < n_tasks; i++) {
		const char *bad = calm ? judge_calm(&tasks[i], i) : NULL;

		if (bad)
			return bad;
		if (must_arrive(&tasks[i]) && !tasks[i].arrived)
			return broken("%s %u completed with success, and has not arrived",
				      tasks[i].kind == SIM_DOCA_MESSAGE ? "message" : "send", i);
	}
	return NULL;
}

uint32_t sim_doca_count(enum sim_doca_kind kind)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < n_tasks; i++)
		n += tasks[i].kind == kind && tasks[i].done && tasks[i].error == DOCA_SUCCESS;
	return n;
}

void sim_doca_print(void)
{
	static const char *const kinds[SIM_DOCA_KINDS] = {"message", "send", "receive"};

	for (uint32_t i = 0; i < n_conns; i++)
		fprintf(sim_out, "connection %u of side %u, peer %d, at %.3f us%s%s%s\n", i,
			conns[i].side, (int)conns[i].peer, (double)conns[i].opened_ns / 1e3,
			conns[i].left ? ", left" : "", conns[i].lost ? ", lost" : "",
			conns[i].killed ? ", killed" : "");
	for (uint32_t i = 0; i < n_tasks; i++) {
		const struct task *t = &tasks[i];

		fprintf(sim_out, "%4u %10.3f us - %10.3f us connection %u %s", i,
			(double)t->began_ns / 1e3, (double)t->done_ns / 1e3, t->conn,
			kinds[t->kind]);
		if (t->kind != SIM_DOCA_MESSAGE)
			fprintf(sim_out, " queue %u of id %u", t->queue, queues[t->queue].id);
		fprintf(sim_out, " to %u bytes %u imm %u error %d%s%s%s%s\n", t->to, t->bytes,
			t->imm_bytes, t->error, t->refused ? " rejected" : "",
			t->dropped ? " freed" : "", t->done ? " completed" : "",
			t->arrived ? " arrived" : "");
	}
}
