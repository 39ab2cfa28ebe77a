/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comch_note.c - notes: events of a connection for the program
 *
 * The service thread posts notes; the engine of the program delivers them one at a time, in order.
 * An end is not idle before its last note is delivered, so a note can use its connection. A change
 * of the end by a callback takes effect in later events. After the program has stopped the end or
 * disconnected the connection, the engine delivers no note.
 */
#include <stdlib.h>
#include <string.h>

#include "base/container_of.h"
#include "comch/comch.h"

struct doca_comch_event_msg_recv {
	struct gd_end *end;
};
struct doca_comch_event_connection_status_changed {
	struct gd_end *end;
};
struct doca_comch_event_consumer {
	struct gd_end *end;
};

struct note {
	struct gd_event event;
	struct doca_comch_connection *conn;
	enum gd_note_kind kind;
	uint32_t id, len;
	_Alignas(16) uint8_t data[];
};

static void deliver_connected(struct gd_end *end, struct note *note)
{
	struct doca_comch_event_connection_status_changed event = {end};

	gd_conn_lock(note->conn);
	note->conn->is_known = !end->is_server || gd_conn_accept(note->conn);
	gd_conn_unlock(note->conn);
	if (end->is_server)
		end->on_connect(&event, note->conn, note->conn->is_known);
	else
		gd_ctx_started(&end->ctx);
}

static void deliver_message(struct gd_end *end, struct note *note)
{
	struct doca_comch_event_msg_recv event = {end};
	bool discards;

	gd_conn_lock(note->conn);
	discards = note->conn->discards;
	if (!discards)
		gd_conn_took(note->conn);
	gd_conn_unlock(note->conn);
	if (!discards)
		end->on_message(&event, note->data, note->len, note->conn);
}

static void deliver_consumer(struct gd_end *end, struct note *note)
{
	const doca_comch_event_consumer_cb_t callback = note->kind == GD_NOTE_CONSUMER
								? end->on_consumer
								: end->on_expired;
	struct doca_comch_event_consumer event = {end};

	if (!callback)
		return;
	if (note->kind == GD_NOTE_CONSUMER) {
		gd_conn_lock(note->conn);
		gd_remote_known(note->conn, note->id);
		gd_conn_unlock(note->conn);
	}
	callback(&event, note->conn, note->id);
}

static void (*const deliver[])(struct gd_end *end, struct note *note) = {
	[GD_NOTE_CONNECTED] = deliver_connected,
	[GD_NOTE_MESSAGE] = deliver_message,
	[GD_NOTE_CONSUMER] = deliver_consumer,
	[GD_NOTE_EXPIRED] = deliver_consumer,
};

/*
 * The caller holds the lock; this function releases it. Do not use the connection or the end after
 * that.
 */
static void finish(struct doca_comch_connection *conn)
{
	struct gd_transport *transport = conn->transport;
	struct gd_end *end = conn->end;

	conn->n_notes--;
	end->n_notes--;
	gd_conn_settle(conn);
	gd_end_check(end);
	gd_transport_unlock(transport);
}

static void run_note(struct gd_event *event)
{
	struct note *note = gn_container_of(event, struct note, event);
	struct doca_comch_connection *conn = note->conn;

	if (!conn->end->stopping && !conn->disconnected)
		deliver[note->kind](conn->end, note);
	gd_conn_lock(conn);
	finish(conn);
	free(note);
}

static void run_announce(struct gd_event *event)
{
	struct doca_comch_connection *conn = gn_container_of(event, struct doca_comch_connection,
							     announce);

	gd_conn_lock(conn);
	conn->announces = false;
	if (conn->state == GD_CONN_OPEN)
		gd_conn_announce(conn);
	finish(conn);
}

/*
 * Report the end of a connection. A server continues; the change was successful if the peer ended
 * in order. A client stops; if it was not yet connected, its start fails and it becomes idle.
 */
static void run_lost(struct gd_event *event)
{
	struct doca_comch_connection *conn = gn_container_of(event, struct doca_comch_connection,
							     lost_note);
	struct doca_comch_event_connection_status_changed what = {conn->end};
	struct gd_end *end = conn->end;
	const bool never_ran = end->ctx.state == DOCA_CTX_STATE_STARTING;

	if (!end->stopping && conn->is_server && !conn->disconnected)
		end->on_disconnect(&what, conn, conn->got_bye);
	else if (!end->stopping && !conn->is_server && !never_ran)
		gd_ctx_fail(&end->ctx);
	gd_conn_lock(conn);
	finish(conn);
	if (never_ran)
		gd_ctx_stopped(&end->ctx);
}

static void post(struct doca_comch_connection *conn, struct gd_event *event)
{
	conn->n_notes++;
	conn->end->n_notes++;
	gd_pe_post(conn->end->ctx.pe, event);
}

/* Limit the consumer events. The receive queue limits the messages. */
static bool is_too_much(const struct doca_comch_connection *conn, enum gd_note_kind kind)
{
	return (kind == GD_NOTE_CONSUMER || kind == GD_NOTE_EXPIRED) &&
	       conn->n_notes - (conn->arrived - conn->delivered) >= GD_COMCH_EVENTS;
}

const char *gd_note(struct doca_comch_connection *conn, enum gd_note_kind kind, uint32_t id,
		    const void *data, uint32_t len)
{
	struct note *note;

	if (is_too_much(conn, kind))
		return "too many pending consumer events: the program does not progress its engine";
	note = malloc(sizeof(*note) + len);
	if (!note)
		return "out of memory";
	*note = (struct note){
		.event = {.run = run_note, .is_silent = true},
		.conn = conn,
		.kind = kind,
		.id = id,
		.len = len,
	};
	if (len)
		memcpy(note->data, data, len);
	post(conn, &note->event);
	return NULL;
}

void gd_note_lost(struct doca_comch_connection *conn)
{
	conn->lost_note = (struct gd_event){.run = run_lost, .is_silent = true};
	post(conn, &conn->lost_note);
}

void gd_note_announce(struct doca_comch_connection *conn)
{
	if (conn->announces)
		return;
	conn->announces = true;
	conn->announce =
		(struct gd_event){.run = run_announce, .is_silent = true, .is_first = true};
	post(conn, &conn->announce);
}
