/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp.h - internal interface of the transport over TCP.
 *
 *   tcp_device         one entry of `devices`                     tcp_device.c
 *     tcp_listener     an address that accepts connections        tcp_listener.c
 *       tcp_pending    an accepted socket before its hello
 *     tcp_conn         a peer: control socket, regions            tcp_conn.c, tcp_control.c,
 *                                                                 tcp_records.c, tcp_import.c,
 *                                                                 tcp_region.c, tcp_direct.c
 *       tcp_lane       the queues of one thread                   tcp_lane.c
 *         tcp_link     a socket between two lanes:                tcp_link.c, tcp_output.c,
 *                      its queue of frames, accesses in flight    tcp_frames.c, tcp_relay.c,
 *                                                                 tcp_stream.c
 *         tcp_consumer, tcp_producer, tcp_rma                     tcp_queue.c, tcp_data.c,
 *                                                                 tcp_rma.c
 *
 * Threads. The control thread creates and destroys all objects. A lane and its links have a lock:
 * the thread of the lane holds it in each call of the data path, and the control thread when it
 * creates, destroys or revokes something. No thread waits while it holds the lock, and no thread
 * holds the locks of two lanes, except in the relay (tcp_relay.c). TCP has no device that accesses
 * memory by itself, so the owner of a region executes the accesses of its peer: the thread of the
 * lane when it polls, and the control thread for lanes that have no queues at this end, or that
 * their thread does not poll.
 *
 * Flow control. A message needs credit of its consumer; tcp_data.c has the rules for messages with
 * data. An access needs an entry in the table of accesses, of which the peer has stated the size.
 * So the queue of frames of a link always has room for what must be sent, and a peer that does not
 * read stops only its own senders.
 */
#ifndef TCP_H
#define TCP_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/queue.h>

#include <gantry/transport.h>

#include "../common/address.h"
#include "../common/cells.h"
#include "../common/done.h"
#include "../common/networks.h"
#include "../common/quota.h"
#include "tcp_wire.h"

#define TCP_DOMAIN 0x20706374u /* "tcp ": domain of imported regions */
#define TCP_RIGHTS (GANTRY_REMOTE_READ | GANTRY_REMOTE_WRITE)
#define TCP_REGIONS 256u          /* limit per connection of exports, and of imports */
#define TCP_CONSUMERS 256u        /* limit of consumers of the peer, per connection */
#define TCP_LANES 256u            /* limit of lanes per connection */
#define TCP_DIRECT_LANE TCP_LANES /* of this end, for the direct links of third parties */
#define TCP_LINKS 1024u           /* limit of links per connection */
#define TCP_PRODUCERS 64u         /* limit of producers of each end, per link */
#define TCP_ADDRESSES 8u          /* limit of addresses that are tried for one name */
#define TCP_RELAY_PIECES 32u      /* limit of pieces that a link relays at a time */
#define TCP_CHUNK_BYTES 65536u    /* bytes of an answer that go in one frame */
#define TCP_RELAY_BYTES 65536u    /* bytes of such a piece */
#define TCP_READ_BYTES 32768u     /* bytes that a link reads at a time, besides data of regions */
#define TCP_STREAM_SECRET 32u     /* bytes of the secret of the stream of a link */
#define TCP_INLINE 16384u         /* limit of data of a message that a send copies */

struct tcp_conf {
	int64_t max_depth;
	uint64_t max_region_bytes;
	uint64_t connect_timeout_ns, revoke_timeout_ns, dead_time_ns;
	int64_t max_connections;
	uint64_t buffer_bytes;
	uint8_t kernel_tls, direct;
	const char *direct_networks; /* text for tc_networks_parse() */
};

/* What an event of the epoll of the device is about: the first member of each such object. */
enum tcp_what { TCP_WAKE, TCP_LISTENING, TCP_PENDING, TCP_CONN, TCP_LANE, TCP_LINK_OF_LANE };
struct tcp_watch {
	enum tcp_what what;
};

struct tcp_device {
	struct tcp_watch watch; /* of `wake` */
	const struct gantry_host *host;
	const struct tcp_conf *conf;
	int epoll, wake; /* wake: eventfd; a lane writes to it to wake the control thread */
	bool in_progress;
	struct tc_networks direct_networks;
	/* those of services, and those that accept only direct links */
	LIST_HEAD(, tcp_listener) listeners;
	/* accepted sockets before their hello; dead: to free at the end of this progress */
	LIST_HEAD(, tcp_pending) pending, dead_pending;
	LIST_HEAD(, tcp_conn) conns;
	struct tcp_listener *dead; /* listeners to free at the end of this progress */
	uint32_t n_accepted;
	/* time until which no listen socket is watched, for lack of descriptors; 0: none */
	uint64_t accept_paused_ns;
	int n_events; /* delivered by this progress */
	pid_t pid;    /* process that opened the device: a forked child must not use it */
	uint64_t *connections, *protocol_errors, *kernel_tls_sockets; /* of the control thread */
	bool warned_kernel_tls;         /* a warning has been logged that the kernel has none */
	struct tc_cells sends, payload; /* counters of the lanes */
};

/* A socket of a listener. A name can have several addresses. */
struct tcp_listen_socket {
	struct tcp_watch watch;
	struct tcp_listener *listener;
	int fd;
};

struct tcp_listener {
	LIST_ENTRY(tcp_listener) link;
	struct tcp_device *dev;
	const struct gantry_conn_events *events; /* NULL: accepts direct links only */
	void *arg;
	struct sockaddr_storage addr; /* of the first socket */
	uint32_t n_sockets;
	struct tcp_listen_socket sockets[TCP_ADDRESSES];
	char address[64];
	struct tcp_listener *next_dead;
};

struct tcp_pending {
	struct tcp_watch watch;
	LIST_ENTRY(tcp_pending) link;
	struct tcp_device *dev;
	struct tcp_listener *listener; /* NULL: it has ended */
	struct sockaddr_storage from;
	int fd;
	uint64_t deadline_ns;
	uint32_t n; /* bytes of `hello` that have arrived */
	struct tcp_hello hello;
	void *stream; /* of a link whose handshake has begun; NULL: none */
	bool is_free; /* the handshake counts in n_unproved of its connection */
};

/* Memory of this process that the peer can access. */
struct tcp_export {
	struct tcp_conn *conn;
	struct tcp_name name; /* control thread */
	uint64_t open;        /* atomic: the name as a number; 0: accesses are rejected */
	const struct gantry_region *region; /* NULL: unused. Control thread */
	uint8_t *at;
	struct tcp_import *relay;       /* memory of the peer of another connection; NULL: none */
	LIST_ENTRY(tcp_export) relayed; /* in the list of `relay` */
	uint64_t length, deadline_ns;   /* deadline_ns: of the revocation; 0: none */
	uint32_t rights;
	bool revoking;
	void *mapped; /* mapping of this transport; NULL: none */
	size_t mapped_bytes;
	int hold; /* of gantry_hold(), while `mapped` is set; -1: none */
};

/* The owner of memory that the peer has exported again, to which this end has links. */
struct tcp_owner {
	LIST_ENTRY(tcp_owner) entry;
	struct sockaddr_storage addr;
	uint64_t session;
	uint8_t secret[TCP_SECRET];
	struct tcp_link *links[TCP_LANES]; /* atomic: by number of the lane */
};

/* Memory of the peer, or of a third party. */
struct tcp_import {
	struct tcp_conn *conn;
	struct tcp_ctrl_region wire;
	struct tcp_owner *owner; /* NULL: accesses go to the peer */
	struct gantry_region pub;
	uint64_t name; /* 0: unused. Control thread */
	uint32_t n_users;
	uint32_t n_relayed;             /* atomic: accesses of relays in flight */
	LIST_HEAD(, tcp_export) relays; /* exports of it on other connections */
	bool revoking;
};

enum tcp_end { TCP_CONNECTS = 1, TCP_LISTENS };

/*
 * RESOLVING: a thread looks up the name. CONNECTING: the socket connects. GREETING: the hello is
 * sent. OVER: `closed` was delivered.
 */
enum tcp_conn_state { TCP_C_RESOLVING, TCP_C_CONNECTING, TCP_C_GREETING, TCP_C_UP, TCP_C_OVER };

/* A consumer of the peer. */
struct tcp_peer_consumer {
	uint32_t id; /* 0: unused */
	uint16_t lane;
	uint32_t max_data;
};

struct tcp_buffer { /* bytes to send */
	uint8_t *bytes;
	size_t from, to, room;
};

struct tcp_conn {
	struct tcp_watch watch;
	LIST_ENTRY(tcp_conn) link;
	struct tcp_device *dev;
	enum tcp_end end;
	enum tcp_conn_state state;
	const struct gantry_conn_events *events;
	void *arg;
	struct gantry_peer peer;
	uint64_t session;
	uint8_t secret[TCP_SECRET];
	int fd;
	bool accepting;         /* inside the callback `accept` */
	bool accepted;          /* counts in n_accepted */
	bool freed;             /* by disconnect: no more events */
	bool shut;              /* this end has sent its last byte */
	bool ended;             /* the peer has sent its last byte on the control socket */
	int lost;               /* atomic: the reason of the end; 0: none */
	int over;               /* atomic: no access of the peer is executed any more */
	uint64_t deadline_ns;   /* of connecting, or of leaving; 0: none */
	uint64_t link_end_ns;   /* atomic: the peer has ended a link; 0: no */
	uint64_t next_check_ns; /* next look for lanes that are not polled; 0: none */
	uint64_t stuck_ns;      /* next look for accesses that the peer does not execute */
	struct tcp_buffer out;
	void *records;          /* state of the record filter; NULL: none yet, or no filter */
	bool records_open;      /* its handshake has ended */
	struct tcp_buffer held; /* messages that wait for the end of its handshake */
	uint8_t in[TCP_CTRL_BYTES];
	uint32_t n_in;
	/* addresses to connect to, and the one that is tried or in use */
	struct sockaddr_storage to[TCP_ADDRESSES];
	uint32_t n_to, at;
	struct tcp_lookup *lookup; /* RESOLVING; else NULL */
	struct tcp_peer_consumer peer_consumers[TCP_CONSUMERS];
	uint32_t next_consumer; /* id of the last consumer of this end */
	LIST_HEAD(, tcp_lane) lanes;
	uint32_t n_links;
	uint32_t n_unproved;  /* free handshakes in use, see take_free() in tcp_listener.c */
	uint64_t unproved_ns; /* time up to which n_unproved has decreased */
	uint32_t n_direct;    /* direct links so far */
	/* with which third parties open direct links */
	uint64_t direct_session;
	uint8_t direct_secret[TCP_SECRET];
	LIST_HEAD(, tcp_owner) owners;
	uint32_t n_relays; /* exports that are relayed */
	/* atomic: by number of a lane, the link that relays of other connections use; NULL: none */
	struct tcp_link *fronts[TCP_LANES + 1];
	struct tcp_export exports[TCP_REGIONS];
	struct tcp_import imports[TCP_REGIONS];
	uint32_t n_revoking;            /* exports and imports that are being revoked */
	uint32_t generation, announced; /* of the last export, and of the last import */
	char refusal[TCP_REFUSED_TEXT];
};

struct tcp_lane {
	struct tcp_watch watch; /* of `bell` */
	LIST_ENTRY(tcp_lane) entry;
	struct tcp_conn *conn;
	uint32_t number;
	pthread_mutex_t lock;
	int epoll;             /* of its links, while it has users; else -1 */
	int armed;             /* atomic: its thread sleeps, or it has no thread */
	int bell;              /* eventfd that relays ring while it is armed; -1: no link relays */
	int rung;              /* atomic */
	uint32_t n_users;      /* control thread */
	uint32_t n_rmas;       /* control thread */
	uint32_t n_polls;      /* atomic */
	uint32_t n_polls_seen; /* by the control thread */
	bool drained;          /* the last poll received data and emptied all sockets */
	LIST_HEAD(, tcp_link) links;
	struct tcp_consumer *consumer;
	uint64_t *sends, *payload; /* counters */
};

/*
 * Where the data of a message is. NONE: in a copy that no producer waits for, or there is no data.
 * LENT: in memory of the caller, until the end of its send. SLOT: in a slot of the producer.
 * REGION: in an exported region, or in a copy of it; the producer waits for the cookie.
 */
enum tcp_source { TCP_FROM_NONE, TCP_FROM_LENT, TCP_FROM_SLOT, TCP_FROM_REGION };

/* A frame to send, besides its 64 bytes. */
struct tcp_item {
	const uint8_t *data; /* NULL: none */
	uint32_t length;     /* bytes of data */
	uint16_t op;         /* WRITE: its access */
	bool owned;          /* free `data` when it has been sent */
	uint8_t source;      /* MESSAGE: enum tcp_source */
};

/* A read of the peer whose data is not sent completely. */
struct tcp_answer {
	const uint8_t *data;
	uint32_t left;                   /* bytes */
	uint16_t op;                     /* of the peer */
	bool last;                       /* the last answer of its read */
	const struct tcp_export *source; /* it reads this export; NULL: `piece` */
	struct tcp_relay_piece *piece;   /* it reads this piece of a relay; NULL: `source` */
};

/* The part of an answer that is being sent. */
struct tcp_chunk {
	struct tcp_frame frame;
	const uint8_t *data;
	uint32_t sent; /* bytes of both */
	bool open;     /* something is sent, but not all */
};

/* An access of this end, in flight. */
struct tcp_op {
	void *owner; /* NULL: it was destroyed */
	void (*ended)(void *owner, uint64_t cookie, int status);
	uint64_t cookie;
	uint8_t *local;        /* READ: where the data goes; NULL: nowhere */
	uint32_t length, done; /* bytes; of a read: of which have arrived */
	uint8_t kind;          /* TCP_READ, TCP_WRITE; 0: unused */
	bool sent;             /* its frame, with the data of a write: the peer can answer */
	uint16_t next;         /* next unused entry */
	uint32_t number;       /* of accesses of the link, in the order of their start */
};

/* A piece of an access of the peer, which this end relays to the owner of the memory. */
struct tcp_relay_piece {
	struct tcp_relay_piece *next;  /* of the list it is in */
	struct tcp_link *back, *front; /* front: the link that it is in flight on; NULL: none */
	struct tcp_import *im;
	uint8_t *bytes;
	uint32_t length;
	uint16_t op; /* of the peer */
	uint8_t kind;
	bool last; /* of its access */
	int status;
};

/* The relay of a link: to its peer it is the owner of memory that belongs to a third party. */
struct tcp_relay {
	struct tcp_relay_piece pieces[TCP_RELAY_PIECES];
	struct tcp_relay_piece *free;
	/* the access that is being cut into pieces; left 0: none */
	struct {
		struct tcp_import *im;
		const struct tcp_export *e;
		uint64_t offset;
		uint32_t left;
		uint16_t op;
		uint8_t kind;
		struct tcp_relay_piece *piece; /* its next piece; NULL: none */
		bool filled;                   /* the piece can be submitted */
	} now;
	struct tcp_link *unsent; /* front link with pieces that are not sent */
	/* pieces that the owner has answered: other threads append */
	pthread_mutex_t lock;
	struct tcp_relay_piece *done, **done_end;
	uint8_t *memory;
};

/*
 * A producer of the peer, at its consumer: messages that have arrived. A consumer with data has its
 * own list of them, see tcp_data.c; then the ring is always empty.
 */
struct tcp_peer_producer {
	TAILQ_ENTRY(tcp_peer_producer) entry;
	struct tcp_link *link; /* NULL: the producer has ended */
	uint16_t queue;
	bool asks;                 /* it has no credit, and needs some */
	bool recalled;             /* it has been asked to give its credit back */
	uint32_t serial;           /* of OPEN */
	uint32_t mask, head, tail; /* ring of messages */
	uint32_t allowed, sent;    /* credit, and the credit that was sent */
	struct tcp_frame ring[];
};

/*
 * ASKED: the peer has been asked to connect. HANDSHAKE: of the stream. GREETING: READY is missing.
 * CLOSED: nothing is sent or received any more.
 */
enum tcp_link_state {
	TCP_L_ASKED,
	TCP_L_CONNECTING,
	TCP_L_HANDSHAKE,
	TCP_L_GREETING,
	TCP_L_UP,
	TCP_L_CLOSED
};

struct tcp_link {
	struct tcp_watch watch;
	LIST_ENTRY(tcp_link) entry;
	struct tcp_lane *lane;
	uint32_t peer_lane;      /* TCP_LANES or more: it is a direct link */
	struct tcp_owner *owner; /* direct: to whom; NULL: the peer is the third party */
	enum tcp_link_state state;
	int fd;
	void *stream; /* of the host, which encrypts; NULL: the frames go in clear */
	bool blocked; /* the socket takes no more now */
	bool watched; /* its epoll reports when the socket takes more */
	bool urgent;  /* a frame waits that no call of the user will send */
	bool unread;  /* the last poll has not read all that the socket has */
	bool stalled; /* the relay has no piece, or the owner takes none: nothing is received */
	uint64_t deadline_ns;    /* of connecting; 0: none */
	struct tcp_relay *relay; /* NULL: it relays nothing */
	/* frames to send */
	struct tcp_frame *frames;
	struct tcp_item *items;
	uint32_t mask, head, tail; /* ring of both */
	uint32_t tail_sent;        /* bytes of the frame at `tail` that are sent */
	uint32_t reserved;         /* entries that messages and accesses leave free */
	/* answers to reads of the peer, and the chunk of one that is being sent */
	struct tcp_answer *answers;
	uint32_t answer_mask, answer_head, answer_tail;
	struct tcp_chunk chunk;
	/* received bytes, and the data of a frame that is being received */
	uint8_t *in;
	uint32_t in_from, in_to;
	struct {
		uint8_t *into; /* NULL: dropped */
		uint32_t rest; /* bytes that are missing; 0: a frame follows */
		uint32_t length;
		uint8_t kind; /* TCP_WRITE, TCP_DATA, TCP_MESSAGE */
		uint16_t op;
		const struct tcp_export *target; /* WRITE */
		struct tcp_arrival *arrival;     /* MESSAGE; NULL: its consumer was destroyed */
	} body;
	/* accesses of this end */
	struct tcp_op *ops;
	uint16_t n_ops, free_op; /* size of the table; first unused entry, n_ops: none */
	uint32_t n_out, limit;   /* in flight; that the peer accepts */
	uint32_t n_started;      /* so far */
	uint32_t n_unanswered;   /* accesses of the peer whose answer is not sent */
	/* for tcp_link_is_stuck() */
	uint32_t n_reads, n_reads_seen; /* times that bytes have arrived; at the last call */
	uint32_t n_quiet;               /* calls in a row without new bytes */
	struct tcp_producer *producers[TCP_PRODUCERS];
	uint32_t next_serial; /* of producers */
	struct tcp_peer_producer *sources[TCP_PRODUCERS];
	uint32_t n_sources; /* entries of `sources` from the first to the last that is in use */
};

/* A message at a consumer with data. LOST: its link has ended before all of its data. */
enum tcp_arrival_state { TCP_A_INCOMPLETE, TCP_A_COMPLETE, TCP_A_LOST };
struct tcp_arrival {
	struct tcp_frame frame;
	enum tcp_arrival_state state;
	int32_t status;
};

struct tcp_consumer {
	struct tcp_lane *lane;
	uint32_t id, depth, n_posted, n_used;
	TAILQ_HEAD(tcp_peer_producers, tcp_peer_producer) sources;
	bool prompt;               /* GANTRY_QUEUE_PROMPT */
	uint32_t max_data;         /* 0: without data */
	uint32_t mask;             /* rings by number of the receive: size - 1 */
	struct gantry_recv *recvs; /* zero for receives without a buffer */
	bool has_recvs;            /* some have a buffer or a cookie */
	/* with data: */
	struct tcp_arrival *arrivals; /* receives n_used to n_arrived have messages */
	uint32_t n_arrived;
	uint32_t n_granted; /* receives from n_arrived on that are credit of a source */
};

struct tcp_producer {
	struct tcp_link *link;
	uint32_t consumer, sent, allowed;
	uint32_t serial; /* on its link */
	uint16_t queue;
	int gone;       /* atomic: its consumer was destroyed */
	bool opened;    /* OPEN is sent */
	bool must_ask;  /* its consumer has data, so it gives credit on request */
	bool asked;     /* ASK is sent, and no credit has arrived since then */
	bool returning; /* RETURN is not sent yet */
	uint32_t depth, max_data;
	uint32_t mask; /* rings of slots and of cookies: size - 1 */
	/* copies of data that the socket has not taken yet; NULL: without data */
	uint8_t *slots;
	uint32_t slot_bytes, slot_head, slot_tail;
	/* cookies of sends from regions: to tail: returned; to done: sent; to head: not sent */
	uint64_t *cookies;
	uint32_t cookie_head, cookie_done, cookie_tail;
};

struct tcp_rma {
	struct tcp_link *link;
	uint32_t depth, n_out;
	struct tc_done done;
};

/* -- tcp_device.c -- */
bool tcp_usable(const struct tcp_device *dev);
void tcp_wake(struct tcp_device *dev);
int tcp_watch(struct tcp_device *dev, int fd, uint32_t events, struct tcp_watch *watch);
void tcp_rewatch(struct tcp_device *dev, int fd, uint32_t events, struct tcp_watch *watch);
void tcp_unwatch(struct tcp_device *dev, int fd);
/*
 * Close a descriptor that the epoll can watch; -1: none. While a child between fork() and exec()
 * has a copy, close() alone leaves it in the epoll.
 */
void tcp_close_fd(struct tcp_device *dev, int fd);
uint64_t tcp_now(const struct tcp_device *dev);
uint16_t tcp_version(const struct tcp_device *dev); /* for the hello */
/* Set the smaller of two times; 0 is none. */
void tcp_earlier(uint64_t *first, uint64_t at);

/* -- tcp_socket.c -- */
/* Create a socket that does not block, with the options of the device. Returns the fd or -errno. */
int tcp_socket(const struct tcp_device *dev, int family);
void tcp_socket_options(const struct tcp_device *dev, int fd);
/* Start to connect to an address. Returns the fd or -errno. */
int tcp_socket_connect(const struct tcp_device *dev, const struct sockaddr *to);
/* Returns 0 if the socket has connected, or -errno. */
int tcp_socket_error(int fd);

/* -- tcp_lookup.c: the addresses of a name -- */
/* Parse HOST:PORT. Returns the number of addresses of a numeric HOST: 1; 0: a name; -EINVAL. */
int tcp_parse(const char *service, struct sockaddr_storage *addr);
/*
 * Start to look up the addresses of HOST:PORT in a thread, which wakes the device at its end.
 * Returns 0 or -errno.
 */
int tcp_lookup_start(const struct tcp_device *dev, const char *service, bool listens,
		     struct tcp_lookup **lookup_p);
/*
 * Returns the number of addresses, at most TCP_ADDRESSES; 0: not yet; -ENOENT: the name has no
 * address.
 */
int tcp_lookup_take(const struct tcp_lookup *lookup, struct sockaddr_storage *list);
/* Returns the reason of -ENOENT. */
const char *tcp_lookup_error(const struct tcp_lookup *lookup);
/* Wait for the result, until the time limit. Returns as tcp_lookup_take(). */
int tcp_lookup_wait(struct tcp_lookup *lookup, uint64_t limit_ns, struct sockaddr_storage *list);
/* Forget the lookup. Its thread can still run. NULL: nothing. */
void tcp_lookup_drop(struct tcp_lookup *lookup);

/* -- tcp_listener.c -- */
int tcp_listen(void *device, const char *service, const struct gantry_conn_events *events,
	       void *arg, void **listener_p);
void tcp_unlisten(void *listener);
const char *tcp_listener_address(void *listener);
void tcp_listeners_reap(struct tcp_device *dev);
void tcp_on_listen_socket(struct tcp_listen_socket *sock);
void tcp_accept_progress(struct tcp_device *dev, uint64_t now_ns);
void tcp_on_pending(struct tcp_pending *pending);
/* Close its socket and its stream; it is freed later. */
void tcp_pending_end(struct tcp_pending *pending);

/* Find or open the listener for direct links at this host. addr: in, out. Returns 0 or -errno. */
int tcp_listen_direct(struct tcp_device *dev, struct sockaddr_storage *addr);

/* -- tcp_direct.c -- */
/* The owner: add its address to the announcement of a region. */
void tcp_direct_offer(struct tcp_conn *conn, struct tcp_ctrl_region *wire);
/* The owner: accept the link of a third party. Returns NULL if there is no memory for it. */
struct tcp_link *tcp_direct_accept(struct tcp_conn *conn);
/* The owner: find the connection whose memory a third party may access. Returns NULL if none. */
struct tcp_conn *tcp_direct_find_conn(const struct tcp_device *dev, const struct tcp_hello *hello);
/* The gateway: pass the address of the owner on to the peer of conn. */
void tcp_direct_pass(const struct tcp_conn *conn, const struct tcp_import *im,
		     struct tcp_ctrl_region *wire);
/*
 * The target: find or create the owner of a region. *owner_p NULL: this end does not connect to it.
 * Returns 0; -EPROTO: too many owners; -ENOMEM.
 */
int tcp_direct_find(struct tcp_conn *conn, const struct tcp_ctrl_region *wire,
		    struct tcp_owner **owner_p);
/* The target: open the direct link of a lane, or of all lanes that access memory. */
int tcp_direct_want(struct tcp_lane *lane, struct tcp_owner *owner);
int tcp_direct_want_all(struct tcp_conn *conn, struct tcp_owner *owner);
void tcp_owners_free(struct tcp_conn *conn);

/* -- tcp_conn.c -- */
int tcp_conn_new(struct tcp_device *dev, enum tcp_end end, const struct gantry_conn_events *events,
		 void *arg, struct tcp_conn **conn_p);
int tcp_connect(void *device, const char *service, const struct gantry_conn_events *events,
		void *arg, void **conn_p);
void tcp_disconnect(void *conn);
const char *tcp_refusal(void *conn);
void tcp_on_conn(struct tcp_conn *conn, uint32_t events);
/* The server has accepted, and the client has read that. */
void tcp_conn_up(struct tcp_conn *conn);
void tcp_conn_ready(struct tcp_conn *conn); /* it is up, and its record filter is open */
/* End the connection: `closed` follows from progress. Any thread. */
void tcp_conn_fail(struct tcp_conn *conn, int reason);
/* As tcp_conn_fail(), for a protocol error. why: what the peer did. Any thread. */
void tcp_conn_broken(struct tcp_conn *conn, const char *why);
void tcp_conn_progress(struct tcp_conn *conn, uint64_t now_ns);
uint64_t tcp_conn_wake_ns(const struct tcp_conn *conn);
bool tcp_conn_usable(const struct tcp_conn *conn);
/* Returns true if a disconnected connection has sent its last bytes, or has exceeded its time. */
bool tcp_conn_drained(struct tcp_conn *conn, uint64_t now_ns);
void tcp_conn_destroy(struct tcp_conn *conn);
int tcp_lost(const struct tcp_conn *conn);

/* -- tcp_control.c -- */
int tcp_send_ctrl(void *conn, const void *msg, size_t len);
/* Send a control message, or queue it. Returns 0; -ENOMEM; -ENOTCONN. */
int tcp_control_put(struct tcp_conn *conn, enum tcp_ctrl_kind kind, const void *body, size_t len);
/* Queue bytes for the control socket. Returns 0 or -ENOMEM. */
int tcp_control_bytes(struct tcp_conn *conn, const void *bytes, size_t len);
/* Append a message to a buffer. Returns 0 or -ENOMEM. */
int tcp_buffer_put(struct tcp_buffer *b, enum tcp_ctrl_kind kind, const void *body, size_t len);
/* Process a message of the peer. Returns NULL, or the reason why it is invalid. */
const char *tcp_control_take(struct tcp_conn *conn, uint8_t kind, const void *body, size_t len);
void tcp_control_send(struct tcp_conn *conn);    /* sends what is queued */
void tcp_control_receive(struct tcp_conn *conn); /* reads and handles messages */

/* -- tcp_region.c -- */
int tcp_export(void *conn, const struct gantry_region *region, uint32_t rights, uint32_t handle,
	       struct gantry_token *token_p);
int tcp_revoke(void *conn, uint32_t handle);
int tcp_on_released(struct tcp_conn *conn, const struct tcp_name *name);
void tcp_exports_progress(struct tcp_conn *conn, uint64_t now_ns);
uint64_t tcp_exports_wake_ns(const struct tcp_conn *conn);
void tcp_exports_lost(struct tcp_conn *conn, bool without_events);
/* The owner of a relayed export is gone: reject all accesses to it. */
void tcp_export_orphan(struct tcp_export *e);
/*
 * Find the memory that an access of the peer names. Thread: lane. Returns NULL if the export does
 * not permit it.
 */
const struct tcp_export *tcp_export_find(struct tcp_conn *conn, const struct tcp_access *access,
					 uint32_t length, uint32_t right);

/* -- tcp_import.c -- */
int tcp_import(void *conn, const struct gantry_token *token, uint32_t flags,
	       struct gantry_region **region_p);
void tcp_release(void *conn, struct gantry_region *region);
int tcp_on_region(struct tcp_conn *conn, const struct tcp_ctrl_region *region);
int tcp_on_revoke(struct tcp_conn *conn, const struct tcp_name *name);
void tcp_imports_end(struct tcp_conn *conn);      /* ends their relays; the connection ends */
void tcp_imports_progress(struct tcp_conn *conn); /* releases what relays do not use any more */

/* -- tcp_lane.c -- */
int tcp_lane_get(struct tcp_conn *conn, uint32_t number, struct tcp_lane **lane_p);
/* Count a user more or less. Returns 0 or -errno. */
int tcp_lane_use(struct tcp_lane *lane);
void tcp_lane_put(struct tcp_lane *lane);
void tcp_lane_free(struct tcp_lane *lane);
void tcp_lane_watch(struct tcp_link *link); /* adds the socket of a link to the epoll of its lane */
void tcp_lane_watch_bell(struct tcp_lane *lane);
void tcp_lane_rewatch(struct tcp_link *link); /* when its socket takes more, or not */
/* The caller holds the lock. Returns the number of frames that were handled. */
int tcp_lane_poll(struct tcp_lane *lane);
/* As tcp_lane_poll(), but the first call after a poll that emptied all sockets only returns 0. */
int tcp_lane_poll_unless_drained(struct tcp_lane *lane);
void tcp_lane_flush(struct tcp_lane *lane);
/* Send what must not wait until the user sends something. last: before the lane sleeps. */
void tcp_lane_idle(struct tcp_lane *lane, bool last);
void tcp_lanes_poll_stalled(struct tcp_conn *conn); /* polls lanes that are not polled */

/* -- tcp_link.c: the caller holds the lock of the lane, except as stated -- */
/* Find or create the link of two lanes, and start to connect it. Takes the lock. */
int tcp_link_want(struct tcp_lane *lane, uint32_t peer_lane, struct tcp_link **link_p);
int tcp_link_new(struct tcp_lane *lane, uint32_t peer_lane, struct tcp_link **link_p);
struct tcp_link *tcp_link_find(const struct tcp_lane *lane, uint32_t peer_lane);
/* The client: start to connect a link. The server: ask for it. */
int tcp_link_start(struct tcp_link *link);
/* The server: take the socket of a pending socket, and its stream. */
void tcp_link_take(struct tcp_link *link, struct tcp_pending *pending);
void tcp_on_link(struct tcp_link *link); /* the socket has connected, or has bytes */
void tcp_link_up(struct tcp_link *link, uint32_t ops);
void tcp_link_close(struct tcp_link *link); /* closes the socket */
void tcp_link_free(struct tcp_link *link);
int tcp_link_receive(struct tcp_link *link); /* returns the number of frames */
void tcp_link_op_done(struct tcp_link *link, uint16_t op, int status);
/*
 * Submit an access. Returns 0; -EAGAIN: there is no room; -ENOTCONN.
 *
 *     access  the remote memory
 *     op      kind, owner, ended, cookie, local and length
 */
int tcp_link_submit(struct tcp_link *link, const struct tcp_access *access,
		    const struct tcp_op *op);
/*
 * To be called at equal intervals. Returns true if accesses of this end were in flight for at least
 * `limit` intervals, and nothing has arrived.
 */
bool tcp_link_is_stuck(struct tcp_link *link, uint32_t limit);
/* The connection has ended: complete all accesses of this end. */
void tcp_link_end_accesses(struct tcp_link *link);
/* Returns true if the link sends from the export, or receives into it. */
bool tcp_link_uses(const struct tcp_link *link, const struct tcp_export *e);
/*
 * The owner of accesses ends: their memory is not used any more. `done` is called for each of them
 * with `heir` instead of the owner; heir NULL: with nothing.
 */
void tcp_link_forget(struct tcp_link *link, const void *owner, void *heir,
		     void (*done)(void *heir, uint64_t cookie, int status));
/* The producer ends: copy the data of its messages that is not sent. */
void tcp_link_forget_producer(struct tcp_link *link, const struct tcp_producer *p);
/* The export ends: copy the data of messages that is not sent. */
void tcp_link_forget_source(struct tcp_link *link, const struct tcp_export *e);
/* Returns a direct link of the lane that has ended, as after tcp_link_new(), or NULL. */
struct tcp_link *tcp_link_reuse(struct tcp_lane *lane);

/* -- tcp_output.c: the caller holds the lock -- */
/* Returns the number of entries for messages and accesses. */
uint32_t tcp_link_room(const struct tcp_link *link);
/*
 * Returns true if OPEN, CREDIT, ASK or RECALL can be appended. If the socket takes nothing, the
 * entries that are left are for ACK, and for SHUT and RETURN of each producer.
 */
bool tcp_link_has_spare(const struct tcp_link *link);
/* Append a frame. There must be an entry. Returns the frame; *item_p: its item, cleared. */
struct tcp_frame *tcp_link_append(struct tcp_link *link, uint8_t kind, struct tcp_item **item_p);
/* Answer a read. The number of reads of the peer in flight is limited, so there is an entry. */
void tcp_link_answer(struct tcp_link *link, const struct tcp_answer *answer);
bool tcp_link_pending(const struct tcp_link *link); /* something is not sent */
void tcp_link_send(struct tcp_link *link);
void tcp_link_drop(struct tcp_link *link); /* forgets what is not sent */

/* -- tcp_frames.c: what each frame of the peer does -- */
void tcp_frame_take(struct tcp_link *link, const struct tcp_frame *frame);
/* Close the link, and end the connection of a peer that did what `why` says. */
void tcp_link_invalid(struct tcp_link *link, const char *why);
void tcp_body_done(struct tcp_link *link);

/* A frame's data follows: `into` is its place, or NULL to drop it. */
void tcp_body_expect(struct tcp_link *link, uint8_t kind, uint16_t op, uint32_t length,
		     uint8_t *into, const struct tcp_export *target);
void tcp_acknowledge(struct tcp_link *link, uint16_t op);

/* -- tcp_relay.c -- */
/* Prepare the links of a connection for the relay to a region. Thread: control. */
int tcp_relay_prepare(struct tcp_conn *conn, struct tcp_conn *owner);
/* As that, for a new link. */
int tcp_relay_link(struct tcp_link *link);
/* Relay an access of the peer. The caller holds the lock. */
void tcp_relay_start(struct tcp_link *link, const struct tcp_frame *frame,
		     const struct tcp_export *e);
void tcp_relay_filled(struct tcp_link *link); /* the data of a piece has arrived */
/* Go on with the access, and answer what is done. */
void tcp_relay_step(struct tcp_link *link);
void tcp_relay_collect(struct tcp_link *link);
void tcp_relay_send(struct tcp_link *link); /* sends the pieces */
/* Accesses to this memory end: fail those in flight. The caller holds the lock. Thread: control. */
void tcp_relay_forget(struct tcp_link *link, const struct tcp_import *im);
void tcp_relay_free(struct tcp_link *link);
void tcp_relay_piece_free(struct tcp_relay_piece *piece);
bool tcp_relay_has_work(struct tcp_link *link);
void tcp_on_bell(struct tcp_lane *lane);

/* -- tcp_queue.c -- */
int tcp_consumer_create(void *conn, const struct gantry_queue_attr *attr, uint32_t *id_p,
			void **consumer_p);
void tcp_consumer_destroy(void *consumer);
int tcp_producer_create(void *conn, uint32_t consumer_id, const struct gantry_queue_attr *attr,
			void **producer_p);
void tcp_producer_destroy(void *producer);
void tcp_producer_open(struct tcp_producer *p); /* sends OPEN; the link is up */
void tcp_on_consumer(struct tcp_conn *conn, const struct tcp_ctrl_consumer *c);
int tcp_post_recv(void *consumer, uint32_t n);
int tcp_poll_recv(void *consumer, struct gantry_msg *msgs, uint32_t max);
int tcp_consumer_arm(void *consumer);
void tcp_consumer_disarm(void *consumer);
int tcp_consumer_fd(void *consumer);
int tcp_send(void *producer, const void *imm, uint32_t imm_len, uint32_t flags);
void tcp_flush(void *producer);
/* Send the credit of the sources of a link that has changed; all, or only what is urgent. */
void tcp_credits(struct tcp_link *link, bool all);
int tcp_on_open(struct tcp_link *link, const struct tcp_frame *frame);
void tcp_peer_producer_end(struct tcp_link *link, uint16_t queue);
int tcp_producer_status(const struct tcp_producer *p); /* returns 0 or -ENOTCONN */
/* Returns 0: one message can be sent; -EAGAIN: there is no credit or no room; -ENOTCONN. */
int tcp_producer_prepare(struct tcp_producer *p);

/* -- tcp_data.c: messages with data. The caller holds the lock, except as stated -- */
extern const struct gantry_data_queue_ops tcp_data_ops;
/* Allocate what data needs. Returns 0 or -ENOMEM. */
int tcp_data_consumer_init(struct tcp_consumer *c, const struct gantry_queue_attr *attr);
int tcp_data_producer_init(struct tcp_producer *p);
void tcp_data_consumer_fini(struct tcp_consumer *c);
void tcp_data_producer_fini(struct tcp_producer *p);
/* Take a message for a consumer with data. Returns NULL, or what the peer did wrong. */
const char *tcp_data_arrived(struct tcp_link *link, struct tcp_peer_producer *s,
			     const struct tcp_frame *frame);
/* The data of a message has arrived, or the link has ended before. */
void tcp_data_body_end(struct tcp_link *link, enum tcp_arrival_state state);
/* The consumer of the lane ends: its buffers are not used any more. */
void tcp_data_forget_consumer(const struct tcp_lane *lane);
uint32_t tcp_data_take(struct tcp_consumer *c, struct gantry_msg *msgs, uint32_t max);
bool tcp_data_has_message(const struct tcp_consumer *c);
/* Distribute the free receives of a consumer with data as credit. */
void tcp_data_grant(struct tcp_consumer *c);
/* The producer needs credit. */
void tcp_data_ask(struct tcp_producer *p);
const char *tcp_on_ask(struct tcp_link *link, const struct tcp_frame *frame);
const char *tcp_on_recall(struct tcp_link *link, const struct tcp_frame *frame);
const char *tcp_on_return(struct tcp_link *link, const struct tcp_frame *frame);
/* A message with data, or a RETURN, has been sent. */
void tcp_data_sent(struct tcp_link *link, const struct tcp_frame *frame,
		   const struct tcp_item *item);

/* -- tcp_rma.c -- */
int tcp_rma_create(void *conn, const struct gantry_queue_attr *attr, void **rma_p);
void tcp_rma_destroy(void *rma);
int tcp_rma_submit(void *rma, const struct gantry_rma *op);
void tcp_rma_flush(void *rma);
int tcp_rma_poll(void *rma, struct gantry_rma_done *done, uint32_t max);

static inline uint64_t tcp_number(const struct tcp_name *name)
{
	return (uint64_t)name->generation << 32 | name->handle;
}

#include "tcp_stream.h"

#endif
