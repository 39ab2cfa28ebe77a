/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comch.h - servers, clients and their connections.
 *
 *   end (server or client) --- connection* --- remote*     consumers of the peer
 *                                  |---------- shared*     maps that the peer may read, once each
 *                                  \---------- consumer*, producer* (files of their own)
 *
 * A connection is one connection of the transport. Its control messages carry struct gd_comch_head
 * and, after that, bytes of the program. Both sides say HELLO at once; what they then say is in
 * enum gd_comch_word.
 *
 * Threads: the service thread brings events, with the lock of the transport held; all of a
 * connection but its user data is only touched under that lock. What a program is to hear becomes a
 * note on its engine, in the order of arrival.
 *
 * Flow: a side sends no more messages than the receive queue of the peer holds, until the peer's
 * program has taken some (ACK).
 *
 * Leaving: BYE, then the peer's service thread answers BYE_OK after all that came before: only then
 * is the connection of the transport closed, so nothing that was sent gets lost. A peer that does
 * not answer is given up after a while.
 */
#ifndef GD_COMCH_H
#define GD_COMCH_H

#include <doca_comch.h>
#include <doca_comch_consumer.h>
#include <doca_comch_producer.h>

#include "device/device.h"
#include "engine/ctx.h"
#include "mmap/mmap.h"

#define GD_COMCH_VERSION 2
#define GD_COMCH_NAME_LEN 120u /* with its NUL */
#define GD_COMCH_MSG_SIZE 4080u
#define GD_COMCH_RECV_QUEUE 8192u /* most; messages */
#define GD_COMCH_RECV_DEFAULT 1024u
/* of consumers, which a program has yet to hear of: a peer that makes more is given up */
#define GD_COMCH_EVENTS 4096u
#define GD_COMCH_CLIENTS 512u
#define GD_COMCH_SEND_TASKS 8192u
#define GD_COMCH_IMM 32u /* bytes of immediate data */
#define GD_COMCH_BUF_SIZE (1u << 30)
#define GD_COMCH_SHARED 48u          /* maps of one connection that are shared at a time */
#define GD_COMCH_BYE_NS 500000000ull /* for a peer that does not answer */
#define GD_COMCH_RETRY_NS 2000000ull
#define GD_CONN_NO_TASKS 0x80000000u /* it is being forgotten */
#define GD_COMCH_BAD_ID 0xffffu      /* programs take it for "none", as they do 0 */

enum gd_comch_word {
	GD_HELLO = 1, /* a: size of messages, b: receive queue */
	GD_MESSAGE,   /* bytes of the program follow */
	GD_ACK,       /* a: messages that the program has taken, ever */
	GD_ROOMS,     /* the token of the memory that room.c is about follows */
	/*
	 * a: number of the transport's consumer, b: our id of it, c: its row there, above bytes of
	 * immediate data
	 */
	GD_CONSUMER,
	GD_BYE,
	GD_BYE_OK,
	GD_WORDS
};

struct gd_comch_head {
	uint16_t word;    /* enum gd_comch_word */
	uint16_t version; /* of HELLO; else 0 */
	uint32_t a, b, c;
};

_Static_assert(sizeof(struct gd_comch_head) + GD_COMCH_MSG_SIZE == GANTRY_CTRL_MAX,
	       "a message fits exactly");

enum gd_conn_state {
	GD_CONN_FORGOTTEN, /* all of it is zero: only its address is left, see names.c */
	GD_CONN_GREETING,  /* the peer has not said HELLO */
	GD_CONN_OPEN,
	GD_CONN_LEAVING, /* we said BYE */
	GD_CONN_LOST,    /* the peer left, or died; the program has or will hear of it */
	GD_CONN_OVER     /* nothing of it is left but this struct */
};

/* A consumer of the peer. */
struct gd_remote {
	struct gd_remote *next;
	uint32_t queue; /* the transport's number */
	uint32_t id;    /* 0: not told yet */
	uint32_t imm_len;
	uint32_t row;  /* of the lengths of its posted buffers */
	uint32_t refs; /* lock: the connection's, and each target's */
	uint32_t gone; /* shared with lanes */
};

/* A map that the peer may read. */
struct gd_shared {
	struct gd_mmap_id id;
	uint32_t moves;              /* value of mmap->moves when the map was shared */
	struct gantry_region region; /* the transport knows it by its address */
	enum { GD_SHARED_FREE, GD_SHARED_LIVE, GD_SHARED_LEAVING } state;
	uint32_t handle;
	uint32_t users; /* lock: producers that have it at hand */
};

struct doca_comch_task_send {
	struct doca_task task;
	struct doca_comch_connection *conn;
	const void *msg;
	uint32_t len;
	doca_error_t result;
	void *copy;           /* while it waits for its turn */
	struct gd_event sent; /* it had to wait, and has gone now */
	struct doca_comch_task_send *next;
};

/* A running consumer or producer. */
struct gd_active {
	struct gd_active *next; /* in the list of the connection */
	struct doca_ctx *ctx;
};

struct gd_end;
struct gd_word;

struct doca_comch_connection {
	struct doca_comch_connection *next;
	struct gd_end *end;             /* NULL: destroyed */
	struct gd_transport *transport; /* NULL: forgotten */
	void *link;                     /* the transport's connection; NULL: none */
	enum gd_conn_state state;
	uint32_t lost; /* shared with lanes: it does not work any more */
	/* shared with lanes: a producer wants a slot for a map, and all are held */
	uint32_t crowded;
	bool is_server;
	bool is_known; /* the program has been told of it: it is established */
	bool want_ack; /* the transport had no room for it */
	/* by the program, which gets no more events; thread of the end's engine */
	bool disconnected;
	uint64_t deadline_ns;
	uint32_t refs;            /* consumers and producers that exist */
	uint32_t n_busy;          /* consumers and producers that are not idle */
	struct gd_active *active; /* running consumers and producers: they use the link */
	/* sends that are allocated: of the engine, read by the service thread; GD_CONN_NO_TASKS */
	uint32_t n_tasks;
	uint32_t n_notes;
	struct gd_event lost_note;
	struct gd_word *words; /* that wait for room in the transport, before messages do */
	/* messages out */
	uint32_t window, sent, taken; /* the peer's queue; ours that it got, and its program took */
	struct doca_comch_task_send *first, **last; /* waiting */
	/* messages in */
	uint32_t arrived, delivered, acked;
	uint32_t next_id, next_producer, next_lane;
	struct gd_remote *remotes;
	struct gd_shared *shared; /* GD_COMCH_SHARED of them, once needed */
	uint32_t next_handle;
	struct gd_recv_credits *rooms; /* once a consumer was started here; and there */
	struct gantry_region *peer_rooms;
	uint64_t counters[4], shown[4];
	union doca_data user_data;
};

/* What a server and a client have in common. */
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
	/* below: lock */
	struct gd_transport *transport;
	void *listener;
	/* all, also those that are over; but those that are forgotten */
	struct doca_comch_connection *conns;
	struct gd_conn_block *blocks;
	uint32_t n_conns; /* in use */
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

/* end.c */
doca_error_t gd_end_create(struct doca_dev *dev, struct doca_dev_rep *rep, const char *name,
			   struct gd_end **end_p);
doca_error_t gd_end_destroy(struct gd_end *end);
doca_error_t gd_end_send(struct gd_end *end, struct doca_comch_connection *conn, const void *msg,
			 uint32_t len, struct doca_comch_task_send **task_p);
doca_error_t gd_end_disconnect(struct gd_end *end, struct doca_comch_connection *conn);
/* Lock. If it is stopping and nothing is left, its last event goes to the engine. */
void gd_end_check(struct gd_end *end);
/* Lock. Look at the deadlines and at what waits, this many ns from now. */
void gd_end_wake(struct gd_end *end, uint64_t ns);

/* conn.c: all with the lock held */
extern const struct gantry_conn_events gd_conn_events;
struct doca_comch_connection *gd_conn_create(struct gd_end *end);
void gd_conn_free(struct doca_comch_connection *conn);
/* A message of the program: 0, -EAGAIN, -ENOTCONN. */
int gd_conn_send(struct doca_comch_connection *conn, const void *msg, uint32_t len);
/* Send what waits. */
void gd_conn_push(struct doca_comch_connection *conn);
/* The program has taken a message. */
void gd_conn_took(struct doca_comch_connection *conn);
/* Begin to leave; -EAGAIN when force is not set and there is no room for the word. */
int gd_conn_leave(struct doca_comch_connection *conn, bool force);
/* It does not work any more, because of the peer: tell the program, fail what waits. */
void gd_conn_lose(struct doca_comch_connection *conn);
/* Close the transport's connection if nobody uses it any more. */
void gd_conn_settle(struct doca_comch_connection *conn);

/* A consumer of the peer, with a reference; NULL. */
struct gd_remote *gd_remote_find(struct doca_comch_connection *conn, uint32_t id);
void gd_remote_put(struct gd_remote *remote);

/* active.c: lock */
void gd_active_add(struct doca_comch_connection *conn, struct gd_active *active,
		   struct doca_ctx *ctx);
/* The consumer or producer has stopped, and does not use the link any more. */
void gd_active_remove(struct doca_comch_connection *conn, struct gd_active *active);
/*
 * The connection is lost: wake the engines of all running consumers and producers, which then read
 * `lost`.
 */
void gd_active_wake(const struct doca_comch_connection *conn);
/* The consumer or producer is idle. The caller does not hold the lock. */
void gd_active_idle(struct doca_comch_connection *conn);

/* names.c: lock. All zero, or NULL: out of memory. */
struct doca_comch_connection *gd_conn_alloc(struct gd_end *end);
/* Only its address stays, until its end is destroyed. */
void gd_conn_forget(struct doca_comch_connection *conn);
/* The end is being destroyed: what is left goes with the last connection that somebody holds. */
void gd_conn_blocks_leave(struct gd_end *end);
/* Without the lock. Also when it is forgotten; NULL: the end is destroyed. */
struct gd_end *gd_conn_end(const struct doca_comch_connection *conn);

/* words.c: lock */
/* Say one word at once: 0 or -errno of send_ctrl; -EAGAIN also when others wait. */
int gd_conn_say(struct doca_comch_connection *conn, enum gd_comch_word word, uint32_t a, uint32_t b,
		uint32_t c);
/*
 * At once, or, in order, when there is room: no -EAGAIN. Bytes begin with a struct gd_comch_head.
 */
int gd_conn_tell(struct doca_comch_connection *conn, enum gd_comch_word word, uint32_t a,
		 uint32_t b, uint32_t c);
int gd_conn_tell_bytes(struct doca_comch_connection *conn, const void *bytes, uint32_t len);
/* Say what waits; false: some still does, and the timer is set. */
bool gd_conn_tell_rest(struct doca_comch_connection *conn);
/* A consumer is gone before the peer was told its number. */
void gd_conn_forget_consumer(struct doca_comch_connection *conn, uint32_t id);
void gd_conn_forget_words(struct doca_comch_connection *conn);

/* note.c: what a program is to hear; lock */
enum gd_note_kind { GD_NOTE_CONNECTED, GD_NOTE_MESSAGE, GD_NOTE_CONSUMER, GD_NOTE_EXPIRED };
/* Returns NULL, or what is wrong. */
const char *gd_note(struct doca_comch_connection *conn, enum gd_note_kind kind, uint32_t id,
		    const void *data, uint32_t len);
/* The last one of a connection. */
void gd_note_lost(struct doca_comch_connection *conn);

/* shared.c: lock. A map that was asked back is nobody's there any more. */
void gd_shared_revoked(struct doca_comch_connection *conn, uint32_t handle);

/* room.c: lock */
struct gd_recv_credits;
/* A row of words, all 0; undone by gd_recv_credit_close. 0 or -errno. */
int gd_recv_credit_open(struct doca_comch_connection *conn, uint32_t *row_p);
void gd_recv_credit_close(struct doca_comch_connection *conn, uint32_t row);
uint64_t *gd_recv_credit_row(const struct doca_comch_connection *conn, uint32_t row);
/* The peer named its memory: NULL, or what is wrong. */
const char *gd_recv_credits_heard(struct doca_comch_connection *conn, const void *token_bytes,
				  uint32_t len);
/* A row of the peer, for as long as the connection has a link; NULL: there is none. */
const uint64_t *gd_recv_credit_of_peer(const struct doca_comch_connection *conn, uint32_t row);
/* Before the link is closed, and after it. */
void gd_recv_credits_let_go(struct doca_comch_connection *conn);
void gd_recv_credits_free(struct doca_comch_connection *conn);

/*
 * For consumers and producers, which exist on an OPEN connection only: hold at create (else
 * BAD_STATE), release at destroy. What they do with the transport's connection is done with the
 * lock held.
 */
doca_error_t gd_conn_hold(struct doca_comch_connection *conn);
void gd_conn_release(struct doca_comch_connection *conn);
const struct gantry_transport_ops *gd_conn_lock(struct doca_comch_connection *conn);
/*
 * What a program names may be forgotten meanwhile: NULL, and nothing is locked; else undone by
 * gd_transport_unlock.
 */
struct gd_transport *gd_conn_lock_named(struct doca_comch_connection *conn);
void gd_conn_unlock(struct doca_comch_connection *conn);

/* Which error a negative errno of the transport is. */
doca_error_t gd_comch_error(int rc);

#endif
