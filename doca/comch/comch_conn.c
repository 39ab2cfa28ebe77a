/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comch_conn.c - one connection, from HELLO to its end
 *
 *     GREETING -> REQUESTED -> OPEN -> LEAVING -> LOST -> OVER   this side leaves
 *         \-----------\----------\--------------> LOST -> OVER   the peer leaves, dies or sends
 *                                                                invalid data
 *
 * A client has no REQUESTED.
 *
 * The lock of the transport is held in all functions except the last section.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/container_of.h"
#include "comch/comch.h"
#include "common/gd_log.h"

#define REMEMBERED 256u

static const struct gantry_transport_ops *ops_of(const struct doca_comch_connection *conn)
{
	return gd_transport_ops(conn->transport);
}

doca_error_t gd_comch_error(int rc)
{
	static const struct {
		int rc;
		doca_error_t error;
	} errors[] = {
		{0, DOCA_SUCCESS},
		{-EAGAIN, DOCA_ERROR_AGAIN},
		{-ENOMEM, DOCA_ERROR_NO_MEMORY},
		{-ENOSPC, DOCA_ERROR_NO_MEMORY},
		{-EMFILE, DOCA_ERROR_NO_MEMORY},
		{-ENOTCONN, DOCA_ERROR_NOT_CONNECTED},
		{-EMSGSIZE, DOCA_ERROR_INVALID_VALUE},
		{-EINVAL, DOCA_ERROR_INVALID_VALUE},
		{-ENOENT, DOCA_ERROR_NOT_FOUND},
		{-EACCES, DOCA_ERROR_NOT_PERMITTED},
		{-EPERM, DOCA_ERROR_NOT_PERMITTED},
	};

	for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++)
		if (errors[i].rc == rc)
			return errors[i].error;
	return DOCA_ERROR_DRIVER;
}

/* -- control messages and messages of the program -- */

static int send_hello(struct doca_comch_connection *conn)
{
	return gd_conn_send_ctrl(conn, GD_HELLO, conn->end->max_msg_size, conn->end->recv_queue, 0);
}

int gd_conn_send(struct doca_comch_connection *conn, const void *msg, uint32_t len)
{
	struct {
		struct gd_comch_head head;
		uint8_t data[GD_COMCH_MSG_SIZE];
	} frame;
	int rc;

	if (conn->state != GD_CONN_OPEN)
		return -ENOTCONN;
	if (conn->ctrl_queue || conn->sent - conn->taken >= conn->window)
		return -EAGAIN;
	frame.head = (struct gd_comch_head){.op = GD_MESSAGE};
	memcpy(frame.data, msg, len);
	rc = ops_of(conn)->send_ctrl(conn->link, &frame, sizeof(frame.head) + len);
	if (rc == -EAGAIN)
		gd_end_wake(conn->end, GD_COMCH_RETRY_NS);
	if (rc)
		return rc;
	conn->sent++;
	conn->counters[0]++;
	conn->counters[1] += len;
	return 0;
}

static void acknowledge(struct doca_comch_connection *conn)
{
	conn->want_ack = gd_conn_send_ctrl(conn, GD_ACK, conn->delivered, 0, 0) == -EAGAIN;
	if (conn->want_ack)
		gd_end_wake(conn->end, GD_COMCH_RETRY_NS);
	else
		conn->acked = conn->delivered;
}

/* Answer BYE of the peer. */
static void answer_bye(struct doca_comch_connection *conn)
{
	gd_conn_send_ctrl(conn, GD_BYE_OK, conn->delivered, 0, 0);
	conn->got_bye = true;
	gd_conn_lose(conn);
}

void gd_conn_took(struct doca_comch_connection *conn)
{
	conn->delivered++;
	if (conn->state != GD_CONN_OPEN)
		return;
	acknowledge(conn);
	if (conn->owes_bye_ok && conn->delivered == conn->arrived)
		answer_bye(conn);
}

bool gd_conn_accept(struct doca_comch_connection *conn)
{
	if (conn->state == GD_CONN_REQUESTED && send_hello(conn))
		gd_conn_lose(conn);
	if (conn->state == GD_CONN_REQUESTED)
		conn->state = GD_CONN_OPEN;
	return conn->state == GD_CONN_OPEN;
}

/* -- sends that wait, or are not acknowledged -- */

static void run_sent(struct gd_event *event)
{
	struct doca_comch_task_send *t = gn_container_of(event, struct doca_comch_task_send, sent);

	gd_task_end(&t->task, t->result);
}

static void end_send(struct doca_comch_connection *conn, struct doca_comch_task_send *t,
		     doca_error_t result)
{
	free(t->copy);
	t->copy = NULL;
	t->result = result;
	t->sent = (struct gd_event){.run = run_sent, .is_silent = true};
	gd_pe_post(conn->end->ctx.pe, &t->sent);
}

static struct doca_comch_task_send *take_waiting(struct doca_comch_connection *conn)
{
	struct doca_comch_task_send *t = conn->first;

	conn->first = t->next;
	if (!conn->first)
		conn->last = &conn->first;
	return t;
}

void gd_conn_fly(struct doca_comch_connection *conn, struct doca_comch_task_send *t)
{
	free(t->copy);
	t->copy = NULL;
	t->number = conn->sent;
	t->next = NULL;
	*conn->flown = t;
	conn->flown = &t->next;
}

void gd_conn_push(struct doca_comch_connection *conn)
{
	if (conn->want_ack && conn->state == GD_CONN_OPEN)
		acknowledge(conn);
	if (!gd_conn_flush_ctrl(conn))
		return;
	while (conn->first) {
		int rc = gd_conn_send(conn, conn->first->copy, conn->first->len);

		if (rc == -EAGAIN)
			return;
		if (rc)
			end_send(conn, take_waiting(conn), gd_comch_error(rc));
		else
			gd_conn_fly(conn, take_waiting(conn));
	}
}

static void fail_waiting(struct doca_comch_connection *conn)
{
	while (conn->first)
		end_send(conn, take_waiting(conn), DOCA_ERROR_NOT_CONNECTED);
}

static void end_flying(struct doca_comch_connection *conn, doca_error_t result)
{
	struct doca_comch_task_send *t = conn->flying;

	conn->flying = t->next;
	if (!conn->flying)
		conn->flown = &conn->flying;
	end_send(conn, t, result);
}

/* The program of the peer has not taken these messages, and never will. */
static void fail_flying(struct doca_comch_connection *conn)
{
	while (conn->flying)
		end_flying(conn, DOCA_ERROR_NOT_CONNECTED);
}

/* The program of the peer has taken `total` messages. false: a protocol error. */
static bool was_taken(struct doca_comch_connection *conn, uint32_t total)
{
	if (total - conn->taken > conn->sent - conn->taken)
		return false;
	conn->taken = total;
	while (conn->flying && (int32_t)(total - conn->flying->number) >= 0)
		end_flying(conn, DOCA_SUCCESS);
	return true;
}

/* -- creation and end -- */

static bool is_held(const struct doca_comch_connection *conn)
{
	return conn->refs || __atomic_load_n(&conn->n_tasks, __ATOMIC_ACQUIRE);
}

/*
 * A program can still pass a connection that is over to the library. If more than REMEMBERED
 * connections are over, release the oldest of them: only its address stays reserved.
 */
static void forget_oldest(struct gd_end *end)
{
	struct doca_comch_connection **p = &end->conns, **oldest = NULL, *conn;
	uint32_t n = 0, no_tasks = 0;

	for (; *p; p = &(*p)->next) {
		if ((*p)->state == GD_CONN_OVER && !is_held(*p)) {
			oldest = p;
			n++;
		}
	}
	if (n < REMEMBERED)
		return;
	conn = *oldest;
	if (!__atomic_compare_exchange_n(&conn->n_tasks, &no_tasks, GD_CONN_NO_TASKS, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return;
	*oldest = conn->next;
	gd_conn_free(conn);
}

struct doca_comch_connection *gd_conn_create(struct gd_end *end)
{
	struct doca_comch_connection *conn;

	forget_oldest(end);
	conn = gd_conn_alloc(end);
	if (!conn)
		return NULL;
	conn->end = end;
	conn->transport = end->transport;
	conn->is_server = end->is_server;
	conn->state = GD_CONN_GREETING;
	conn->last = &conn->first;
	conn->flown = &conn->flying;
	/* odd ids on the server, even ids on the client, so ids are unique on the connection */
	conn->next_id = end->is_server ? 1 : 2;
	conn->next_producer = 1;
	conn->next = end->conns;
	end->conns = conn;
	end->n_conns++;
	return conn;
}

void gd_conn_free(struct doca_comch_connection *conn)
{
	gd_conn_discard_ctrl(conn);
	free(conn->shared);
	gd_conn_forget(conn);
}

static void drop_remotes(struct doca_comch_connection *conn)
{
	struct gd_remote *remote;

	while ((remote = conn->remotes)) {
		conn->remotes = remote->next;
		__atomic_store_n(&remote->gone, 1, __ATOMIC_RELEASE);
		gd_remote_put(remote);
	}
}

void gd_conn_settle(struct doca_comch_connection *conn)
{
	if (conn->state != GD_CONN_LOST || conn->active)
		return;
	if (conn->link) {
		gd_recv_credits_release(conn);
		ops_of(conn)->disconnect(conn->link);
		gd_recv_credits_free(conn);
	}
	conn->link = NULL;
	gd_conn_discard_ctrl(conn);
	drop_remotes(conn);
	if (conn->n_notes) /* the last note is not yet delivered */
		return;
	conn->state = GD_CONN_OVER;
	if (conn->end)
		conn->end->n_conns--;
}

void gd_conn_lose(struct doca_comch_connection *conn)
{
	const enum gd_conn_state before = conn->state;

	if (before == GD_CONN_LOST || before == GD_CONN_OVER)
		return;
	__atomic_store_n(&conn->lost, 1, __ATOMIC_RELEASE);
	conn->state = GD_CONN_LOST;
	conn->deadline_ns = 0;
	fail_flying(conn);
	fail_waiting(conn);
	/*
	 * The program of a server was not notified of a connection in GREETING; that of a
	 * connection in REQUESTED gets a connection event without success. A connection in LEAVING
	 * was ended by the program itself.
	 */
	if (before == GD_CONN_OPEN || (before == GD_CONN_GREETING && !conn->is_server))
		gd_note_lost(conn);
	gd_conn_settle(conn);
	gd_end_check(conn->end);
}

int gd_conn_leave(struct doca_comch_connection *conn, bool force)
{
	const bool is_open = conn->state == GD_CONN_OPEN;
	const uint64_t limit_ns = conn->flying ? GD_COMCH_TAKE_NS : GD_COMCH_BYE_NS;
	int rc;

	if (!is_open && conn->state != GD_CONN_GREETING && conn->state != GD_CONN_REQUESTED)
		return 0;
	rc = (is_open && force ? gd_conn_queue_ctrl : gd_conn_send_ctrl)(conn, GD_BYE,
									 conn->delivered, 0, 0);
	if (is_open && rc == -EAGAIN)
		return rc;
	__atomic_store_n(&conn->lost, 1, __ATOMIC_RELEASE);
	conn->state = GD_CONN_LEAVING;
	fail_waiting(conn);
	if (!is_open || (rc && !conn->flying)) {
		gd_conn_lose(conn);
		return 0;
	}
	/* if BYE failed, the transport can still hold an ACK that a dead peer sent: wait, too */
	conn->deadline_ns = gn_now_ns() + limit_ns;
	gd_end_wake(conn->end, limit_ns);
	return 0;
}

void gd_conn_hurry(struct doca_comch_connection *conn)
{
	if (conn->state != GD_CONN_LEAVING || conn->is_rushed || !conn->flying ||
	    gd_conn_queue_ctrl(conn, GD_BYE, conn->delivered, 1, 0)) {
		gd_conn_lose(conn);
		return;
	}
	conn->is_rushed = true;
	conn->deadline_ns = gn_now_ns() + GD_COMCH_BYE_NS;
	gd_end_wake(conn->end, GD_COMCH_BYE_NS);
}

static void abort_conn(struct doca_comch_connection *conn, const char *why)
{
	gd_log(DOCA_LOG_LEVEL_ERROR, "Comch connection of \"%s\" closed: %s", conn->end->name, why);
	gd_conn_lose(conn);
}

/* -- control messages of the peer: each handler returns NULL, or an error message -- */

struct ctrl {
	struct gd_comch_head head;
	const uint8_t *data;
	uint32_t len;
};

static const char *on_hello(struct doca_comch_connection *conn, const struct ctrl *w)
{
	if (w->head.version != GD_COMCH_VERSION)
		return "the peer has another version of this library: install the same version on both sides";
	if (w->head.a != conn->end->max_msg_size) {
		if (conn->is_server)
			send_hello(conn); /* so that the client logs the reason, too */
		return "the peer has a different max_msg_size: set the same value on both sides";
	}
	if (w->head.b == 0 || w->head.b > GD_COMCH_RECV_QUEUE)
		return "protocol error: invalid size of the receive queue of the peer";
	conn->window = w->head.b;
	conn->state = conn->is_server ? GD_CONN_REQUESTED : GD_CONN_OPEN;
	conn->deadline_ns = 0;
	return gd_note(conn, GD_NOTE_CONNECTED, 0, NULL, 0);
}

static const char *on_message(struct doca_comch_connection *conn, const struct ctrl *w)
{
	if (w->len == 0 || w->len > conn->end->max_msg_size)
		return "protocol error: a message is empty or longer than max_msg_size";
	if (conn->arrived - conn->delivered >= conn->end->recv_queue)
		return "protocol error: the peer sent more messages than the receive queue holds";
	conn->arrived++;
	conn->counters[2]++;
	conn->counters[3] += w->len;
	return gd_note(conn, GD_NOTE_MESSAGE, 0, w->data, w->len);
}

static const char not_sent[] = "protocol error: the peer acknowledged messages that were not sent";

static const char *on_ack(struct doca_comch_connection *conn, const struct ctrl *w)
{
	if (!was_taken(conn, w->head.a))
		return not_sent;
	if (conn->state == GD_CONN_OPEN)
		gd_conn_push(conn);
	return NULL;
}

static const char *on_recv_credits(struct doca_comch_connection *conn, const struct ctrl *w)
{
	return gd_recv_credits_import(conn, w->data, w->len);
}

static const char *on_consumer_named(struct doca_comch_connection *conn, const struct ctrl *w)
{
	struct gd_remote *named = NULL;

	for (struct gd_remote *r = conn->remotes; r; r = r->next) {
		if (r->id == w->head.b && r->id)
			return "protocol error: the peer used one id for two consumers";
		if (r->queue == w->head.a && !r->id)
			named = r;
	}
	if (!named || w->head.b == 0 || w->head.b == GD_COMCH_BAD_ID ||
	    (w->head.c & 0xffff) > GD_COMCH_IMM)
		return "protocol error: the peer announced an invalid consumer";
	named->id = w->head.b;
	named->imm_len = w->head.c & 0xffff;
	named->row = w->head.c >> 16;
	return gd_note(conn, GD_NOTE_CONSUMER, named->id, NULL, 0);
}

static const char *on_bye(struct doca_comch_connection *conn, const struct ctrl *w)
{
	if (!was_taken(conn, w->head.a))
		return not_sent;
	if (conn->state == GD_CONN_GREETING && !conn->is_server)
		gd_log(DOCA_LOG_LEVEL_ERROR,
		       "Comch client \"%s\": cannot connect: the server has stopped",
		       conn->end->name);
	conn->discards = w->head.b != 0;
	conn->owes_bye_ok = true;
	if (conn->state != GD_CONN_OPEN || conn->discards || conn->delivered == conn->arrived)
		answer_bye(conn);
	return NULL;
}

static const char *on_bye_ok(struct doca_comch_connection *conn, const struct ctrl *w)
{
	if (conn->state != GD_CONN_LEAVING)
		return "protocol error: BYE_OK without BYE";
	if (!was_taken(conn, w->head.a))
		return not_sent;
	gd_conn_lose(conn);
	return NULL;
}

#define IN(state) (1u << (state))

/* The states in which each control message is valid, and whether it can have data. */
static const struct {
	const char *(*on)(struct doca_comch_connection *conn, const struct ctrl *w);
	unsigned int states;
	bool has_data;
} rules[GD_COMCH_OPS] = {
	[GD_HELLO] = {on_hello, IN(GD_CONN_GREETING), false},
	[GD_MESSAGE] = {on_message, IN(GD_CONN_OPEN), true},
	[GD_ACK] = {on_ack, IN(GD_CONN_OPEN) | IN(GD_CONN_LEAVING), false},
	[GD_RECV_CREDITS] = {on_recv_credits, IN(GD_CONN_OPEN), true},
	[GD_CONSUMER] = {on_consumer_named, IN(GD_CONN_OPEN), false},
	[GD_BYE] = {on_bye,
		    IN(GD_CONN_OPEN) | IN(GD_CONN_LEAVING) | IN(GD_CONN_GREETING) |
			    IN(GD_CONN_REQUESTED),
		    false},
	[GD_BYE_OK] = {on_bye_ok, IN(GD_CONN_LEAVING), false},
};

static const char *dispatch(struct doca_comch_connection *conn, const void *msg, size_t len)
{
	struct ctrl w = {.data = (const uint8_t *)msg + sizeof(w.head)};

	if (len < sizeof(w.head))
		return "protocol error: a control message is too short";
	memcpy(&w.head, msg, sizeof(w.head));
	w.len = (uint32_t)(len - sizeof(w.head));
	if (w.head.op >= GD_COMCH_OPS || !rules[w.head.op].on ||
	    (w.len && !rules[w.head.op].has_data))
		return "protocol error: unknown control message";
	if (!(rules[w.head.op].states & IN(conn->state))) {
		/* the peer sent the message before it received BYE */
		return conn->state == GD_CONN_LEAVING
			       ? NULL
			       : "protocol error: control message in the wrong state";
	}
	return rules[w.head.op].on(conn, &w);
}

static void on_ctrl(void *arg, void *link, const void *msg, size_t len)
{
	struct doca_comch_connection *conn = arg;
	const char *why;

	(void)link;
	if (conn->state == GD_CONN_LOST || conn->state == GD_CONN_OVER)
		return;
	why = dispatch(conn, msg, len);
	if (why)
		abort_conn(conn, why);
}

static void on_queue(void *arg, void *link, uint32_t number, int up)
{
	struct doca_comch_connection *conn = arg;
	struct gd_remote **p = &conn->remotes, *remote;
	const char *why = NULL;

	(void)link;
	if (conn->state != GD_CONN_OPEN && conn->state != GD_CONN_LEAVING)
		return;
	if (up) {
		remote = calloc(1, sizeof(*remote));
		if (!remote) {
			abort_conn(conn, "out of memory");
			return;
		}
		*remote = (struct gd_remote){.next = conn->remotes, .queue = number, .refs = 1};
		conn->remotes = remote;
		return;
	}
	while (*p && (*p)->queue != number)
		p = &(*p)->next;
	remote = *p;
	if (!remote)
		return;
	*p = remote->next;
	__atomic_store_n(&remote->gone, 1, __ATOMIC_RELEASE);
	if (remote->id && conn->state == GD_CONN_OPEN)
		why = gd_note(conn, GD_NOTE_EXPIRED, remote->id, NULL, 0);
	gd_remote_put(remote);
	if (why)
		abort_conn(conn, why);
}

/* -- other events of the transport -- */

static int on_accept(void *arg, void *link, const struct gantry_peer *peer, void **conn_arg_p)
{
	struct gd_end *end = arg;
	struct doca_comch_connection *conn;

	(void)peer;
	if (end->stopping || end->n_conns >= GD_COMCH_CLIENTS)
		return -EBUSY;
	conn = gd_conn_create(end);
	if (!conn)
		return -ENOMEM;
	conn->link = link;
	*conn_arg_p = conn;
	return 0;
}

static void on_connected(void *arg, void *link, const struct gantry_peer *peer)
{
	struct doca_comch_connection *conn = arg;

	(void)link;
	(void)peer;
	if (conn->state == GD_CONN_GREETING && send_hello(conn))
		gd_conn_lose(conn);
}

static void on_revoke(void *arg, void *link, uint32_t handle)
{
	(void)arg;
	(void)link;
	(void)handle; /* the only import, in comch_buffer_lengths.c, is never revoked */
}

static void on_revoked(void *arg, void *link, uint32_t handle, int rc)
{
	(void)link;
	(void)rc;
	gd_shared_revoked(arg, handle);
}

static void on_closed(void *arg, void *link, int reason)
{
	struct doca_comch_connection *conn = arg;

	(void)link;
	if (conn->state == GD_CONN_GREETING && !conn->is_server)
		gd_log(DOCA_LOG_LEVEL_ERROR, "Comch client \"%s\": cannot connect: %s",
		       conn->end->name,
		       reason == -ECONNREFUSED
			       ? "no server of that name on the device: start it first"
		       : reason == -EACCES
			       ? "the server has the maximum number of clients, or belongs to another user"
			       : strerror(-reason));
	gd_conn_lose(conn);
}

const struct gantry_conn_events gd_conn_events = {
	.accept = on_accept,
	.connected = on_connected,
	.message = on_ctrl,
	.consumer = on_queue,
	.revoke = on_revoke,
	.revoked = on_revoked,
	.closed = on_closed,
};

/* -- locks and references of consumers and producers -- */

const struct gantry_transport_ops *gd_conn_lock(struct doca_comch_connection *conn)
{
	void *device;

	return gd_transport_lock(conn->transport, &device);
}

void gd_conn_unlock(struct doca_comch_connection *conn)
{
	gd_transport_unlock(conn->transport);
}

struct gd_transport *gd_conn_lock_named(struct doca_comch_connection *conn)
{
	struct gd_transport *transport = __atomic_load_n(&conn->transport, __ATOMIC_ACQUIRE);
	void *device;

	if (transport)
		gd_transport_lock(transport, &device);
	return transport;
}

doca_error_t gd_conn_hold(struct doca_comch_connection *conn)
{
	struct gd_transport *transport = gd_conn_lock_named(conn);
	doca_error_t result = DOCA_ERROR_BAD_STATE;

	if (!transport)
		return result;
	if (conn->state == GD_CONN_OPEN && conn->is_known)
		result = gd_transport_need_data(transport);
	if (result == DOCA_SUCCESS)
		conn->refs++;
	gd_transport_unlock(transport);
	return result;
}

void gd_conn_release(struct doca_comch_connection *conn)
{
	struct gd_transport *transport = conn->transport;
	bool last;

	gd_conn_lock(conn);
	last = --conn->refs == 0 && !conn->end;
	if (last)
		gd_conn_free(conn);
	gd_transport_unlock(transport);
}

struct gd_remote *gd_remote_find(struct doca_comch_connection *conn, uint32_t id)
{
	struct gd_remote *remote = conn->remotes;

	while (remote && (remote->id != id || !remote->is_known))
		remote = remote->next;
	if (remote)
		remote->refs++;
	return remote;
}

void gd_remote_known(struct doca_comch_connection *conn, uint32_t id)
{
	for (struct gd_remote *remote = conn->remotes; remote; remote = remote->next)
		if (remote->id == id)
			remote->is_known = true;
}

void gd_remote_put(struct gd_remote *remote)
{
	if (--remote->refs == 0)
		free(remote);
}
