/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comch.h - Comch servers, clients and connections, as the files of this module share them
 *
 *   end (server or client) --- connection* --- remote*     consumers of the peer
 *                                  |---------- shared*     maps exported to the peer
 *                                  \---------- consumer*, producer*   (comch_fast.h)
 *
 * A connection uses one connection of the transport. Each control message begins with struct
 * gd_comch_head, which may be followed by data of the program:
 *
 *     client                     server
 *     HELLO  ------------------>                        the request
 *            <------------------ HELLO                  the program of the server progresses
 *     MESSAGE, ACK, RECV_CREDITS, CONSUMER <----->      any order, both directions
 *     BYE    ------------------>                        either side may send BYE
 *            <------------------ BYE_OK
 *
 * Threads: the service thread delivers events of the transport with the lock of the transport held.
 * That lock guards all fields of a connection except its user data. Events for the program become
 * notes (comch_note.c), which the engine delivers to the program in the order of arrival.
 *
 * Progress: what a card needs the progress of a program for, needs it here, too. The engine of the
 * server answers HELLO. The engine of a server or client sends ACK immediately before it delivers a
 * message, and the send of the message completes only then. The engine of a server or client
 * announces the consumers of its connections.
 *
 * Flow control: a side sends at most as many messages as the receive queue of the peer holds, until
 * the peer has acknowledged some by ACK.
 *
 * End: the side that leaves sends BYE, with the number of messages that its program has taken. The
 * peer answers BYE_OK, with its number, when its program has taken all earlier messages, so no
 * message is lost and the outcome of each send is known. If messages of the side that leaves are
 * not taken within GD_COMCH_TAKE_NS, it sends BYE again, with b = 1: the service thread of the peer
 * then discards them and answers. If the peer does not answer within GD_COMCH_BYE_NS, the first
 * side closes the connection anyway.
 */
#ifndef GD_COMCH_H
#define GD_COMCH_H

#include <doca_comch.h>
#include <doca_comch_consumer.h>
#include <doca_comch_producer.h>

#include "device/gd_device.h"
#include "engine/ctx.h"
#include "mmap/mmap.h"

#define GD_COMCH_VERSION 4
#define GD_COMCH_NAME_LEN 120u /* bytes, with the NUL */
#define GD_COMCH_MSG_SIZE 4080u
#define GD_COMCH_RECV_QUEUE 8192u /* maximum number of messages */
#define GD_COMCH_RECV_DEFAULT 1024u
/* Maximum of undelivered consumer events of a connection, which ends if the peer causes more. */
#define GD_COMCH_EVENTS 4096u
#define GD_COMCH_CLIENTS 512u
#define GD_COMCH_SEND_TASKS 8192u
#define GD_COMCH_IMM 32u /* bytes of immediate data */
#define GD_COMCH_BUF_SIZE (1u << 30)
#define GD_COMCH_SHARED 48u          /* maximum number of maps that a connection exports */
#define GD_COMCH_BYE_NS 500000000ull /* time limit for the answer to BYE */
/* time limit for the program of the peer to take the last messages of a side that leaves */
#define GD_COMCH_TAKE_NS 2000000000ull
#define GD_COMCH_RETRY_NS 2000000ull
#define GD_CONN_NO_TASKS 0x80000000u /* comch_handles.c releases the connection */
#define GD_COMCH_BAD_ID 0xffffu      /* programs use this id for "no consumer", like 0 */

enum gd_comch_op {
	GD_HELLO = 1,    /* a: max_msg_size, b: recv_queue */
	GD_MESSAGE,      /* data of the program follows */
	GD_ACK,          /* a: total number of messages that the program has taken */
	GD_RECV_CREDITS, /* the token of the memory of comch_buffer_lengths.c follows */
	/*
	 * a: number of the consumer in the transport, b: its id, c: its row (upper 16 bits, see
	 * comch_buffer_lengths.c) and its limit of immediate data in bytes (lower 16 bits)
	 */
	GD_CONSUMER,
	GD_BYE,    /* a: like ACK, b: 1: do not wait for the program */
	GD_BYE_OK, /* a: like ACK */
	GD_COMCH_OPS
};

struct gd_comch_head {
	uint16_t op;      /* enum gd_comch_op */
	uint16_t version; /* version of the protocol in HELLO; else 0 */
	uint32_t a, b, c;
};

_Static_assert(sizeof(struct gd_comch_head) + GD_COMCH_MSG_SIZE == GANTRY_CTRL_MAX,
	       "a message fits exactly");

enum gd_conn_state {
	GD_CONN_FORGOTTEN, /* released: all fields are zero, see comch_handles.c */
	GD_CONN_GREETING,  /* HELLO of the peer has not arrived */
	GD_CONN_REQUESTED, /* only a server: its program has not progressed since HELLO arrived */
	GD_CONN_OPEN,
	GD_CONN_LEAVING, /* this side has sent BYE */
	GD_CONN_LOST,    /* the peer disconnected or died; a note reports it */
	GD_CONN_OVER     /* the link is closed */
};

/* A consumer of the peer. */
struct gd_remote {
	struct gd_remote *next;
	uint32_t queue; /* number in the transport */
	uint32_t id;    /* 0: GD_CONSUMER has not arrived */
	bool is_known;  /* the program was notified */
	uint32_t imm_len;
	uint32_t row;  /* row of its posted lengths, see comch_buffer_lengths.c */
	uint32_t refs; /* lock: one reference of the connection, one of each target */
	uint32_t gone; /* __atomic, any thread: the consumer has ended */
};

/* A map that is exported to the peer for reading. */
struct gd_shared {
	struct gd_mmap_id id;
	uint32_t moves; /* value of mmap->moves when the map was shared */
	/* the transport identifies the region by the address of this structure */
	struct gantry_region region;
	enum { GD_SHARED_FREE, GD_SHARED_LIVE, GD_SHARED_LEAVING } state;
	uint32_t handle;
	uint32_t users; /* lock: number of holds of producers */
};

struct doca_comch_task_send {
	struct doca_task task;
	struct doca_comch_connection *conn;
	const void *msg;
	uint32_t len;
	doca_error_t result;
	void *copy;           /* copy of the message, while the task waits */
	uint32_t number;      /* value of conn->sent after this message */
	struct gd_event sent; /* completes the task */
	struct doca_comch_task_send *next;
};

/* A running consumer or producer. */
struct gd_active {
	struct gd_active *next; /* next in the list of the connection */
	struct doca_ctx *ctx;
};

struct gd_end;
struct gd_ctrl_msg;

struct doca_comch_connection {
	struct doca_comch_connection *next;
	struct gd_end *end;             /* NULL: the end is destroyed */
	struct gd_transport *transport; /* NULL: the connection is released */
	void *link;                     /* connection of the transport; NULL: none */
	enum gd_conn_state state;
	uint32_t lost; /* __atomic, any thread: no new message can be sent */
	/* __atomic, any thread: a producer needs a slot of `shared`, and all slots are held */
	uint32_t crowded;
	bool is_server;
	bool is_known;    /* established: the program was notified */
	bool want_ack;    /* the queue of the transport was full: send ACK later */
	bool got_bye;     /* the peer has ended the connection in order */
	bool owes_bye_ok; /* answer BYE when the program has taken all messages */
	bool is_rushed;   /* this side has sent BYE with b = 1 */
	bool discards;    /* the peer has: messages that the program has not taken are discarded */
	/* thread of the engine: the program has disconnected, and gets no more events of it */
	bool disconnected;
	uint64_t deadline_ns;
	uint32_t refs;            /* existing consumers and producers */
	uint32_t n_busy;          /* consumers and producers that are not idle */
	struct gd_active *active; /* running consumers and producers: they use the link */
	/*
	 * allocated send tasks; written by the engine, read by the service thread.
	 * GD_CONN_NO_TASKS: no task can be allocated
	 */
	uint32_t n_tasks;
	uint32_t n_notes;
	struct gd_event lost_note;
	/* control messages that wait for the transport; data messages wait behind them */
	struct gd_ctrl_msg *ctrl_queue;
	/* GD_CONSUMER messages that wait for progress of the engine of the end */
	struct gd_ctrl_msg *held;
	struct gd_event announce; /* sends them */
	bool announces;           /* the event is posted */
	/* outgoing messages */
	/* size of the queue of the peer; messages sent; messages that its program has taken */
	uint32_t window, sent, taken;
	struct doca_comch_task_send *first, **last;   /* tasks that wait */
	struct doca_comch_task_send *flying, **flown; /* sent, and not acknowledged */
	/* incoming messages */
	uint32_t arrived, delivered, acked;
	uint32_t next_id, next_producer, next_lane;
	struct gd_remote *remotes;
	struct gd_shared *shared; /* GD_COMCH_SHARED elements, allocated at the first use */
	uint32_t next_handle;
	/* posted lengths of both sides; NULL before the first start of a consumer */
	struct gd_recv_credits *recv_credits;
	struct gantry_region *peer_recv_credits;
	uint64_t counters[4], shown[4];
	union doca_data user_data;
};

/* Common part of a server and a client: an end. */
struct gd_end {
	struct doca_ctx ctx;
	bool is_server;
	struct doca_dev_rep *rep;
	char name[GD_COMCH_NAME_LEN];
	uint32_t max_msg_size, recv_queue;
	struct gd_pool sends;
	doca_comch_event_msg_recv_cb_t on_message;
	doca_comch_event_connection_status_changed_cb_t on_connect, on_disconnect;
	doca_comch_event_consumer_cb_t on_consumer, on_expired;
	/* fields below: under the lock */
	struct gd_transport *transport;
	void *listener;
	/* all connections in any state except GD_CONN_FORGOTTEN */
	struct doca_comch_connection *conns;
	struct gd_conn_block *blocks;
	uint32_t n_conns; /* connections that are not OVER */
	uint32_t n_notes;
	bool stopping, is_ended;
	int timer; /* -1: none */
	struct gd_event ended;
};

struct doca_comch_server {
	struct gd_end end;
};
struct doca_comch_client {
	struct gd_end end;
};

/* comch_end.c */
doca_error_t gd_end_create(struct doca_dev *dev, struct doca_dev_rep *rep, const char *name,
			   struct gd_end **end_p);
doca_error_t gd_end_destroy(struct gd_end *end);
doca_error_t gd_end_send(struct gd_end *end, struct doca_comch_connection *conn, const void *msg,
			 uint32_t len, struct doca_comch_task_send **task_p);
doca_error_t gd_end_disconnect(struct gd_end *end, struct doca_comch_connection *conn);
/* Lock held. If the end is stopping and nothing is pending, post its last event. */
void gd_end_check(struct gd_end *end);
/*
 * Lock held. Run the timer after `ns` nanoseconds at the latest: it checks deadlines and retries
 * sends.
 */
void gd_end_wake(struct gd_end *end, uint64_t ns);

/* comch_conn.c: the lock is held */
extern const struct gantry_conn_events gd_conn_events;
struct doca_comch_connection *gd_conn_create(struct gd_end *end);
void gd_conn_free(struct doca_comch_connection *conn);
/*
 * Send a message of the program. 0, -EAGAIN (the receive queue of the peer or the transport is
 * full), -ENOTCONN, or another error of the transport.
 */
int gd_conn_send(struct doca_comch_connection *conn, const void *msg, uint32_t len);
/* A message was sent: its task completes when the peer acknowledges it. */
void gd_conn_fly(struct doca_comch_connection *conn, struct doca_comch_task_send *t);
/* Send the messages that wait. */
void gd_conn_push(struct doca_comch_connection *conn);
/* The program takes a message: send ACK. */
void gd_conn_took(struct doca_comch_connection *conn);
/* The program of a server progresses: answer HELLO. Returns whether the connection is open. */
bool gd_conn_accept(struct doca_comch_connection *conn);
/* The time limit for the answer to BYE is over. */
void gd_conn_hurry(struct doca_comch_connection *conn);
/* Send BYE. -EAGAIN: force is not set, and the transport is full. */
int gd_conn_leave(struct doca_comch_connection *conn, bool force);
/* The peer has ended the connection: notify the program and fail the sends that wait. */
void gd_conn_lose(struct doca_comch_connection *conn);
/* Close the connection of the transport if no consumer or producer uses it. */
void gd_conn_settle(struct doca_comch_connection *conn);

/* Returns a consumer of the peer that the program knows, with a new reference, or NULL. */
struct gd_remote *gd_remote_find(struct doca_comch_connection *conn, uint32_t id);
void gd_remote_put(struct gd_remote *remote);
/* The program is notified of a consumer. */
void gd_remote_known(struct doca_comch_connection *conn, uint32_t id);

/* comch_active.c: the lock is held */
void gd_active_add(struct doca_comch_connection *conn, struct gd_active *active,
		   struct doca_ctx *ctx);
/*
 * Check whether a consumer or producer can start. BAD_STATE: the connection is not established;
 * INVALID_VALUE: its server or client has no callback for new consumers.
 */
doca_error_t gd_active_check(const struct doca_comch_connection *conn, const char *what);
/* The consumer or producer has stopped and no longer uses the link. */
void gd_active_remove(struct doca_comch_connection *conn, struct gd_active *active);
/* The consumer or producer is idle. The caller does not hold the lock. */
void gd_active_idle(struct doca_comch_connection *conn);

/* comch_handles.c: the lock is held. Returns a zeroed connection, or NULL: out of memory. */
struct doca_comch_connection *gd_conn_alloc(struct gd_end *end);
/* Release the memory of a connection. Its address stays reserved until its end is destroyed. */
void gd_conn_forget(struct doca_comch_connection *conn);
/* The end is being destroyed: each block is freed with the last connection in it. */
void gd_conn_blocks_leave(struct gd_end *end);
/* Call without the lock; the connection can be released. Returns NULL if the end is destroyed. */
struct gd_end *gd_conn_end(const struct doca_comch_connection *conn);

/* comch_control.c: the lock is held */
/* Send a control message now. 0, or -errno of send_ctrl; -EAGAIN also if control messages wait. */
int gd_conn_send_ctrl(struct doca_comch_connection *conn, enum gd_comch_op op, uint32_t a,
		      uint32_t b, uint32_t c);
/*
 * Send a control message now, or queue it until the transport has space: never -EAGAIN. Bytes begin
 * with struct gd_comch_head.
 */
int gd_conn_queue_ctrl(struct doca_comch_connection *conn, enum gd_comch_op op, uint32_t a,
		       uint32_t b, uint32_t c);
int gd_conn_queue_bytes(struct doca_comch_connection *conn, const void *bytes, uint32_t len);
/* Send the queued control messages. false: some still wait, and the timer is set. */
bool gd_conn_flush_ctrl(struct doca_comch_connection *conn);
/* Announce a consumer at the next progress of the engine of the end. 0 or -ENOMEM. */
int gd_conn_hold_consumer(struct doca_comch_connection *conn, uint32_t a, uint32_t b, uint32_t c);
/* Send the announcements. */
void gd_conn_announce(struct doca_comch_connection *conn);
/* A consumer has ended: discard its queued GD_CONSUMER. */
void gd_conn_discard_consumer(struct doca_comch_connection *conn, uint32_t id);
void gd_conn_discard_ctrl(struct doca_comch_connection *conn);

/* comch_note.c: events for the program; the lock is held */
enum gd_note_kind { GD_NOTE_CONNECTED, GD_NOTE_MESSAGE, GD_NOTE_CONSUMER, GD_NOTE_EXPIRED };
/* Returns NULL, or an error message. */
const char *gd_note(struct doca_comch_connection *conn, enum gd_note_kind kind, uint32_t id,
		    const void *data, uint32_t len);
/* Post the last note of a connection: its end. */
void gd_note_lost(struct doca_comch_connection *conn);
/* Post an event that calls gd_conn_announce(), unless it is posted. */
void gd_note_announce(struct doca_comch_connection *conn);

/* comch_exports.c: the lock is held. The peer no longer uses a revoked map. */
void gd_shared_revoked(struct doca_comch_connection *conn, uint32_t handle);

/* comch_buffer_lengths.c: the lock is held */
struct gd_recv_credits;
/* Allocate a zeroed row of words; gd_recv_credit_close() releases it. 0 or -errno. */
int gd_recv_credit_open(struct doca_comch_connection *conn, uint32_t *row_p);
void gd_recv_credit_close(struct doca_comch_connection *conn, uint32_t row);
uint64_t *gd_recv_credit_row(const struct doca_comch_connection *conn, uint32_t row);
/* Import the memory of the peer. Returns NULL, or an error message. */
const char *gd_recv_credits_import(struct doca_comch_connection *conn, const void *token_bytes,
				   uint32_t len);
/* Returns a row of the peer, valid while the connection has a link; NULL: none. */
const uint64_t *gd_recv_credit_of_peer(const struct doca_comch_connection *conn, uint32_t row);
/* Call gd_recv_credits_release() before the link is closed, and the next function after that. */
void gd_recv_credits_release(struct doca_comch_connection *conn);
void gd_recv_credits_free(struct doca_comch_connection *conn);

/*
 * References of consumers and producers to a connection: gd_conn_hold() at create (BAD_STATE: the
 * connection is not established; NOT_SUPPORTED: it has no data queues), gd_conn_release() at
 * destroy. They hold the lock, by gd_conn_lock(), during their calls into the connection of the
 * transport.
 */
doca_error_t gd_conn_hold(struct doca_comch_connection *conn);
void gd_conn_release(struct doca_comch_connection *conn);
const struct gantry_transport_ops *gd_conn_lock(struct doca_comch_connection *conn);
/*
 * Lock a connection that the program passed, which the library can have released. Returns the
 * transport, for gd_transport_unlock(). NULL: the connection is released, and nothing is locked.
 */
struct gd_transport *gd_conn_lock_named(struct doca_comch_connection *conn);
void gd_conn_unlock(struct doca_comch_connection *conn);

/* Convert a negative errno of the transport to a DOCA error. */
doca_error_t gd_comch_error(int rc);

#endif
