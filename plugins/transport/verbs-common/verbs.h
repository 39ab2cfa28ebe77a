/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs.h - the transport over RDMA: what its files share.
 *
 *   vb_transport      one entry of `devices`                                   transport.c
 *     vb_listener     an address where connections are taken                   listener.c
 *     vb_conn         a peer: protection domain, control pipe, regions conn.c control.c region.c
 *                     import.c
 *       vb_lane       a thread's share: completion channel, its pipes          lane.c
 *         vb_pipe     a queue pair, its completion queue, slots and credit pipe.c; made in
 *                     connect.c
 *         vb_consumer, vb_producer, vb_rma                                     consumer.c
 *                                                                              producer.c rma.c
 *
 * Below them are thin objects over the libraries, one per file: rdma.h.
 *
 * Threads. The control thread makes and destroys everything and drives connection events and
 * control pipes. The thread of a lane polls its pipes and touches its consumer, producers and rma.
 * Between the two there is no lock: a pipe is handed to its lane by one release store when it is up
 * (vb_pipe.next of the lane's list), and `vb_conn.lost` goes the other way round.
 *
 * Credit. A pipe has `slots` receives posted, always. The side that receives says how many messages
 * it takes, counted from the beginning: allowed = received + min(receives its consumer has free,
 * slots that are free). The number goes along with every message the other way but notes, and by an
 * RDMA write of its own when the sender would otherwise stand still.
 * So no send ever finds no receive, and a send that the consumer has no receive for is -EAGAIN.
 */
#ifndef VB_VERBS_H
#define VB_VERBS_H

#include <stdbool.h>

#include <gantry/transport.h>

#include "../common/cells.h"
#include "../common/done.h"
#include "rdma.h"
#include "wire.h"

#define VB_RIGHTS (GANTRY_REMOTE_READ | GANTRY_REMOTE_WRITE)
#define VB_REGIONS 256           /* exported, imported or registered by a connection, each */
#define VB_CONSUMERS 256         /* of the peer, on a connection */
#define VB_MAX_LANES 256         /* of a connection */
#define VB_MAX_PIPES 1024        /* the same */
#define VB_PEERS 64              /* whose memory is reached directly, of a connection */
#define VB_PIPES_PER_CONSUMER 16 /* lanes of the peer that can send to one consumer */
#define VB_POLL 32               /* completions taken at once */

enum { VB_SEPARATE, VB_SHARED }; /* data_qp */

/* What the options of both plugins fill: VB_OPTIONS. */
struct vb_conf {
	const char *ibdev;  /* rdma-verbs */
	const char *netdev; /* rxe */
	uint8_t create;     /* rxe: make the link when it is missing */
	uint8_t pad[3];
	uint32_t data_qp;      /* VB_SEPARATE, VB_SHARED */
	int64_t max_depth;     /* messages in a queue: receives posted per pipe */
	uint64_t inline_bytes; /* data that travels in a message */
	int64_t retry_count, rnr_retry_count;
	uint64_t ack_timeout_ns, keepalive_ns, connect_timeout_ns, revoke_timeout_ns;
	uint64_t max_region_bytes;
	int64_t max_connections;
	const char *direct_networks; /* vb_networks_parse */
};

/* clang-format off */
#define VB_OPTIONS(conf_) \
	{"data_qp", GANTRY_OPT_CHOICE, offsetof(conf_, data_qp), "separate", 0, 0, vb_data_qp_words, NULL, \
	 "Queue pairs of a lane: separate: messages never wait for more than 8 KiB of data; shared: data of any " \
	 "length and its reply are sent together."}, \
	{"max_depth", GANTRY_OPT_INT, offsetof(conf_, max_depth), "256", 2, 8192, NULL, NULL, \
	 "Largest depth of a queue, in messages, and number of receives posted on each message queue pair."}, \
	{"inline", GANTRY_OPT_SIZE, offsetof(conf_, inline_bytes), "128", 0, 4096, NULL, NULL, \
	 "Bytes of data that a message carries inline; longer data is fetched from the sender's region."}, \
	{"retry_count", GANTRY_OPT_INT, offsetof(conf_, retry_count), "6", 0, 6, NULL, NULL, \
	 "Retransmissions of a packet before its queue pair fails. (7 would mean no limit on soft-RoCE.)"}, \
	{"rnr_retry_count", GANTRY_OPT_INT, offsetof(conf_, rnr_retry_count), "6", 0, 6, NULL, NULL, \
	 "Retries of a message that finds no receive posted, which credits prevent."}, \
	{"ack_timeout", GANTRY_OPT_TIME, offsetof(conf_, ack_timeout_ns), "67ms", 0, 4000000000, NULL, NULL, \
	 "Time to wait for the acknowledgement of a packet; the device rounds up to 4.096 us times a power of two."}, \
	{"keepalive", GANTRY_OPT_TIME, offsetof(conf_, keepalive_ns), "250ms", 10000000, 60000000000, NULL, NULL, \
	 "Interval of the probes on an idle connection, which detect a dead network."}, \
	{"connect_timeout", GANTRY_OPT_TIME, offsetof(conf_, connect_timeout_ns), "5s", 100000000, 600000000000, NULL, \
	 NULL, "Timeout of each step of connecting."}, \
	{"revoke_timeout", GANTRY_OPT_TIME, offsetof(conf_, revoke_timeout_ns), "1s", 1000000, 600000000000, NULL, NULL, \
	 "Time that a peer has to release a revoked region; after that the device invalidates its key."}, \
	{"max_region_bytes", GANTRY_OPT_SIZE, offsetof(conf_, max_region_bytes), "64GiB", 4096, INT64_MAX, NULL, NULL, \
	 "Largest region that can be registered."}, \
	{"max_connections", GANTRY_OPT_INT, offsetof(conf_, max_connections), "256", 1, 65536, NULL, NULL, \
	 "Connections that all listeners of this device accept together. One host may have three quarters of them, " \
	 "and at least one."}, \
	{"direct_networks", GANTRY_OPT_STRING, offsetof(conf_, direct_networks), "", 0, 0, NULL, NULL, \
	 "Networks to which this side connects directly when a peer names an address in them, \"192.0.2.0/24, " \
	 "2001:db8::/32\": those of initiators that a gateway reaches over RDMA. Empty: none."}
/* clang-format on */

extern const char *const vb_data_qp_words[];

#define VB_NETWORKS 16

struct vb_network {
	uint8_t address[16]; /* IPv4 as ::ffff:a.b.c.d; all bits behind the prefix are 0 */
	unsigned bits;       /* of the prefix, in that form */
};

struct vb_networks {
	uint32_t n;
	struct vb_network list[VB_NETWORKS];
};

struct vb_conn;
struct vb_lane;
struct vb_pipe;

struct vb_transport {
	const struct gantry_host *host;
	const struct vb_conf *conf;
	struct vb_device device;
	struct vb_networks direct_networks;
	struct rdma_event_channel *channel;
	struct vb_patience patience;
	int epoll, wake;       /* wake: eventfd, a lane has something for the control thread */
	int in_progress;       /* what a callback destroys is freed at the end of it */
	struct vb_conn *conns; /* all of them, by ->next */
	struct vb_listener *listeners; /* all of them; those of direct pipes have no service */
	uint32_t n_accepted;           /* connections that listeners took */
	int n_events;                  /* that this progress() delivered */
	int events_rc; /* why none could be read at last, which was said; 0: they can */
	pid_t pid;     /* a forked child may use nothing */
	uint64_t *doorbells, *connections, *protocol_errors; /* counters of the control thread */
	struct tc_cells lane_doorbells, lane_payload;        /* and of the lanes */
};

/* What the context of every id points to. */
enum vb_what { VB_ID_LISTENER = 1, VB_ID_PIPE };
struct vb_id {
	enum vb_what what;
	void *object;
};

struct vb_listener {
	struct vb_transport *t;
	struct vb_listener *next;
	struct vb_id tag;
	struct rdma_cm_id *id;
	const struct gantry_conn_events *events; /* NULL: takes direct pipes only */
	void *arg;
	struct sockaddr_storage addr; /* with the port that it really has */
};

/*
 * ASKED: the peer was, to connect it. RESOLVING .. CONNECTING: active side; ACCEPTED: passive side
 */
enum vb_pipe_state {
	VB_P_ASKED,
	VB_P_RESOLVING,
	VB_P_ROUTING,
	VB_P_CONNECTING,
	VB_P_ACCEPTED,
	VB_P_UP,
	VB_P_DEAD,
	VB_P_STATES
};

struct vb_pipe {
	struct vb_async_event fate; /* first: the queue pair's context */
	struct vb_id tag;
	struct vb_conn *conn;
	/* of this side; NULL: control, or direct and data at the passive side */
	struct vb_lane *lane;
	struct vb_pipe *next; /* of the lane: __atomic */
	struct vb_pipe *all;  /* of the connection: control thread */
	enum vb_kind kind;
	enum vb_end end;
	enum vb_pipe_state state; /* control thread */
	int up;                   /* __atomic: messages may go */
	/* __atomic: the queue pair is in the error state, what is out may be ended */
	int quiet;
	uint16_t connects_lane, listens_lane;
	struct vb_import_peer *peer; /* VB_DIRECT, active side: whose memory */
	struct rdma_cm_id *id;
	struct sockaddr_storage to; /* active side */
	/* to an address of our device, since the route would have taken another */
	int bound;
	uint64_t deadline_ns; /* of the step of connecting */
	struct vb_cq cq;
	struct vb_qp qp;

	/*
	 * one block: credit word, registered by itself, for the peer; the copy that we send; send
	 * slots; receive slots
	 */
	char *block;
	size_t block_bytes;
	struct ibv_mr *mr, *credit_mr;
	uint32_t slots, slot_bytes; /* both directions */
	/* the fewer of our slots and the peer's: messages under way in one direction */
	uint32_t window;
	char *send_slots, *recv_slots;
	struct vb_credit *credit;     /* the peer writes here */
	struct vb_credit *credit_out; /* and we there: the copy that is sent */
	uint64_t peer_credit_addr;
	uint32_t peer_credit_key;

	/* sending: by the lane, or the control thread. Counts from the beginning, modulo 2^32 */
	uint32_t sent, allowed;
	uint32_t send_at; /* the next slot */
	/* qp.built, while the request that was built last is one of messages without data */
	uint32_t bare;
	/* ring: REGION messages whose data the peer has not taken; no more than slots */
	struct vb_region_send *region_sends;
	uint32_t region_mask, region_head, region_tail;
	/* receiving */
	uint32_t received;          /* messages that came */
	uint32_t waiting;           /* of them, in slots that were not given back */
	uint32_t told;              /* what the peer was told it may send */
	uint32_t taken, told_taken; /* REGION messages of the peer that are done with */
	uint32_t written;           /* of `told`: what stands in the peer's struct vb_credit */
	uint32_t sent_then;         /* when most of the credit was seen to have come back */
	uint64_t busy_ns;           /* when something came last: for the keepalive */
	int probing;                /* a keepalive is under way */
};

struct vb_lane {
	struct vb_conn *conn;
	struct vb_lane *next; /* of the connection */
	uint32_t number;
	uint32_t n_users; /* consumer, producers, rmas */
	uint32_t has_rma; /* of them: control thread */
	struct ibv_comp_channel *channel;
	struct vb_pipe *pipes; /* __atomic list: message, data and direct pipes that are up */
	struct vb_consumer *consumer; /* __atomic; at most one */
	/* whose last fetch may be under way: they stay as long as the lane */
	struct vb_consumer *gone;
	struct vb_producer *producers; /* control thread */
	uint64_t *doorbells, *payload_bytes;
};

/* Who waits for the peer to take the data of a REGION message. */
struct vb_region_send {
	struct vb_producer *producer; /* NULL: gone */
	uint64_t cookie;
};

/* What a send request was for: kind of struct vb_send. */
enum vb_request { VB_R_MESSAGE, VB_R_CREDIT, VB_R_PROBE, VB_R_RMA, VB_R_FETCH };

/* A message that came. */
struct vb_arrival {
	struct vb_pipe *pipe;
	uint32_t slot;
	uint16_t at;   /* bytes in it */
	uint16_t ends; /* how many messages the slot had, at the last of them; else 0 */
};

/* The slots of messages that were taken, to be posted again. */
struct vb_batch {
	struct vb_pipe *pipe;
	uint32_t slots[VB_POLL];
	uint32_t n, messages;
};

struct vb_consumer {
	struct vb_lane *lane;
	struct vb_consumer *next; /* of those that are gone */
	int gone;
	uint32_t id, depth, max_data;
	struct gantry_recv *recvs; /* ring of posted receives: depth rounded up */
	uint32_t recv_mask, recv_head, recv_tail;
	struct vb_arrival *arrivals; /* ring */
	uint32_t mask, head, tail;
	char *bounce; /* where the data of a region is fetched to: of the first arrival */
	struct ibv_mr *bounce_mr;
	enum { VB_F_NONE, VB_F_UNDER_WAY, VB_F_THERE } fetch; /* of the first arrival */
	struct vb_import *fetching;
	int32_t fetch_status;
	/* by the last poll; they go back when the next begins: what it answers goes first */
	struct vb_batch taken;
	int busy; /* it found something */
	/* the peers may have to be told: messages came or were taken, or receives posted */
	int dirty;
	int prompt;                   /* of those at once */
	const struct vb_pipe *newest; /* of the lane, when they were told last */
	int broken;                   /* -EPROTO */
};

struct vb_producer {
	struct vb_lane *lane;
	struct vb_producer *next;
	struct vb_pipe *pipe; /* once it is up */
	uint32_t number, depth, max_data;
	uint32_t consumer_id, peer_lane;
	int gone;           /* __atomic: its consumer went */
	uint32_t n_regions; /* sends with a region that were not polled */
	uint64_t *cookies;  /* ring of those of them that the peer has taken */
	uint32_t mask, head, tail;
};

struct vb_rma {
	struct vb_lane *lane;
	uint32_t depth, n_out;
	struct tc_done done;
	struct vb_pipe *pipe;  /* of this connection's own regions */
	struct vb_pipe *notes; /* of messages, once it is up */
};

/* Memory of this process that the peer may touch. */
struct vb_export {
	const struct gantry_region *region; /* __atomic; NULL: free. The rest is set before it */
	int revoking;
	struct vb_ctrl_region wire; /* what the peer was told; direct: it lives elsewhere */
	struct ibv_mr *mr;
	void *mapped; /* by us, from the region's memfd */
	size_t mapped_bytes;
	uint64_t deadline_ns; /* of revoking */
};

/*
 * Somebody whose memory is reached by pipes of our own: a connection that exported it to who
 * re-exported it.
 */
struct vb_import_peer {
	struct vb_import_peer *next; /* of the connection */
	uint64_t session, secret;
	struct sockaddr_storage addr;
	struct vb_pipe *pipes[VB_MAX_LANES]; /* __atomic; by lane of this side */
};

/* Memory of the peer that it announced. */
struct vb_import {
	struct gantry_region pub; /* what users get: region.transport is this */
	struct vb_conn *conn;
	/* __atomic: generation and handle; 0: free. The rest is set before it */
	uint64_t name;
	int revoking;      /* __atomic */
	uint32_t n_users;  /* import_region less release_region */
	uint32_t fetching; /* __atomic: lanes that read from it right now */
	struct vb_ctrl_region wire;
	/*
	 * NULL: the memory is that of the peer; if wire.direct is set, its address is outside
	 * direct_networks, and import fails
	 */
	struct vb_import_peer *peer;
};

struct vb_registered { /* local memory for rma: appended by the control thread, read by lanes */
	const struct gantry_region *region; /* __atomic; NULL: free */
	struct ibv_mr *mr;
};

/* A control message that waits for a credit. */
struct vb_outgoing {
	struct vb_outgoing *next;
	enum vb_ctrl_kind kind;
	size_t len;
	uint8_t body[];
};

enum vb_conn_state { VB_C_CONNECTING = 1, VB_C_UP, VB_C_OVER };

struct vb_conn {
	struct vb_transport *t;
	struct vb_conn *next;
	const struct gantry_conn_events *events;
	void *arg;
	enum vb_end end;
	enum vb_conn_state state;
	int lost;      /* __atomic: the first reason, -errno; any thread: vb_conn_fail */
	int said;      /* `closed` was delivered */
	int accepting; /* the user is being asked */
	int accepted;  /* counts in t->n_accepted */
	char refusal
		[VB_REFUSAL_TEXT]; /* why the peer refused the connection; "": no reason received */
	int freed;                 /* by the user: only its last messages are still on their way */
	uint64_t leave_ns;         /* of freed: that is given up */
	int said_bye;
	uint64_t session, secret;
	uint64_t direct_secret;     /* of VB_DIRECT to our memory; 0: not told to anybody */
	struct sockaddr_storage to; /* of the peer */
	struct ibv_pd *pd;
	struct ibv_comp_channel *control_channel; /* in the epoll set of the transport */
	struct vb_pipe *control;
	struct vb_pipe *pipes; /* all, by ->all */
	struct vb_lane *lanes;
	uint32_t next_consumer, next_producer;
	/* consumers of the peer */
	struct {
		uint32_t id, lane, max_data;
		int used;
	} remote[VB_CONSUMERS];
	struct vb_export exports[VB_REGIONS];
	uint32_t generation; /* of the last export */
	uint32_t announced;  /* __atomic: generation of the peer's last one */
	struct vb_import imports[VB_REGIONS];
	struct vb_import_peer *peers;
	char import_error[160]; /* of the last import_region; "": only its error number */
	struct vb_registered registered[VB_REGIONS];
	/* slots that were ever used, from the first: control thread */
	uint32_t exports_used, imports_used, registered_used;
	struct vb_outgoing *out_head, **out_tail;
	uint32_t n_out;
	uint32_t seen_consumer; /* the highest number of the peer's */
	uint64_t probe_ns;      /* when the last keepalive was sent */
	struct gantry_peer peer;
};

/* -- transport.c: the device and its event loop -- */
/* name: of the RDMA device. conf and host live as long as the instance. Logs why it failed. */
int vb_transport_open(const struct gantry_host *host, const struct vb_conf *conf, const char *name,
		      void **device_p);
const char *vb_check_service(const char *service);
uint32_t vb_max_connections(const void *conf);
int vb_transport_scan(const struct gantry_host *host, struct gantry_writer *w,
		      int (*wanted)(const char *name));
void vb_close(void *device);
void vb_info(void *device, struct gantry_device_info *info);
int vb_fd(void *device);
int vb_progress(void *device);
uint64_t vb_wake_ns(void *device);
void vb_transport_wake(struct vb_transport *t); /* any thread: let progress() run */
bool vb_usable(const struct vb_transport *t);   /* not in a forked child */
/* what: a connection, whose control channel it is */
int vb_transport_watch(struct vb_transport *t, int fd, void *what);
/* free the connections that are done with, unless progress() runs */
void vb_transport_reap(struct vb_transport *t);
void vb_transport_dead(struct vb_transport *t); /* the device is: all connections end */

/* -- listener.c -- */
int vb_listen(void *device, const char *service, const struct gantry_conn_events *events, void *arg,
	      void **listener_p);
void vb_unlisten(void *listener);
/*
 * A listener for direct pipes at the address of this connection, made at the first call; its
 * address in *addr.
 */
int vb_listen_direct(struct vb_conn *conn, struct sockaddr_storage *addr);
void vb_on_request(struct vb_listener *l, const struct vb_event *event); /* CONNECT_REQUEST */

/* -- connect.c: pipes come up and go down, active and passive side -- */
/*
 * Make the queue pair of these lanes unless it exists or is under way; asks the peer to where that
 * is the side that connects.
 */
int vb_pipe_want(struct vb_conn *conn, enum vb_kind kind, uint32_t local_lane, uint32_t peer_lane);
int vb_pipe_want_direct(struct vb_conn *conn, struct vb_import_peer *peer, uint32_t local_lane);
/* active: starts resolving */
int vb_pipe_connect(struct vb_pipe *pipe, const struct sockaddr *to);
/* vb_pipe_equip; logs why it failed */
int vb_pipe_fit_out(struct vb_pipe *pipe);
/* passive: it is equipped, the peer heard */
int vb_pipe_accept(struct vb_pipe *pipe, const struct vb_event *request);
/* everything but CONNECT_REQUEST */
void vb_on_pipe_event(struct vb_pipe *pipe, const struct vb_event *event);
/* its device has given it up. May free it */
void vb_pipe_fated(struct vb_pipe *pipe, enum ibv_event_type event);
/* any thread: a completion with an error */
void vb_pipe_broke(struct vb_pipe *pipe, const struct ibv_wc *wc);
void vb_pipe_end(struct vb_pipe *pipe); /* as vb_pipe_fail, and the peer is told */
/* a step of connecting took too long: handled */
bool vb_pipe_overdue(struct vb_pipe *pipe, uint64_t now_ns);

/* -- pipe.c: resources, slots, credit. Both threads, each for its own pipes -- */
uint64_t vb_pipe_bytes(const struct vb_conf *conf, enum vb_kind kind); /* memory that it pins */
/* the largest max_depth that fits a device */
uint32_t vb_depth_limit(const struct vb_conf *conf, const struct vb_limits *limits);
int vb_pipe_new(struct vb_conn *conn, enum vb_kind kind, enum vb_end end, struct vb_pipe **pipe_p);
/* its id has a device: mr, cq, qp, receives */
int vb_pipe_equip(struct vb_pipe *pipe, struct ibv_comp_channel *channel);
void vb_pipe_fail(struct vb_pipe *pipe); /* queue pair to the error state; `quiet` */
void vb_pipe_free(struct vb_pipe *pipe); /* after its lane has stopped */
void vb_pipe_hello(const struct vb_pipe *pipe, struct vb_hello *hello);
int vb_pipe_heard(struct vb_pipe *pipe, const struct vb_hello *hello); /* checked: 0 or -EPROTO */
/* messages that may be sent now */
uint32_t vb_pipe_credit(struct vb_pipe *pipe);
/*
 * Slot for the next message and its request: sge.length is still to be set. NULL: no credit or no
 * room.
 */
char *vb_pipe_slot(struct vb_pipe *pipe, const struct vb_send *send, struct ibv_send_wr **wr_p);
/* that slot is filled */
void vb_pipe_push(struct vb_pipe *pipe, struct ibv_send_wr *wr, uint32_t bytes);
/*
 * A note came in this slot: it is made a message there, for the lane's consumer. Returns its bytes.
 */
uint32_t vb_pipe_noted(struct vb_pipe *pipe, uint32_t slot, uint32_t note);
/*
 * The request that was built last has messages without data, has not gone, and its slot has room
 * for one more.
 */
bool vb_pipe_can_coalesce(const struct vb_pipe *pipe);
/*
 * That room, for a message of this kind and so many bytes, which is counted as sent. NULL: it needs
 * a slot of its own.
 */
struct vb_msg *vb_pipe_coalesce(struct vb_pipe *pipe, uint8_t kind, uint32_t bytes);
/*
 * What the peer may send, with free_recvs receives of the consumer unclaimed: for a message that
 * goes anyway; and by a write of its own if that is worth it, for a consumer of that depth. Returns
 * 1 when it would be, but has no room: tell it later.
 */
enum vb_tell {
	/* more comes, and most goes along with messages: if most of the depth has come back */
	VB_TELL_BUSY,
	/* nothing came: also if the peer stands still, or waits for the end of a fetch */
	VB_TELL_IDLE,
	VB_TELL_LAST, /* before going to sleep: if there is anything new at all */
};
uint32_t vb_pipe_allow(struct vb_pipe *pipe, uint32_t free_recvs);
int vb_pipe_tell(struct vb_pipe *pipe, uint32_t free_recvs, uint32_t depth, enum vb_tell when);
/* the peer says so, in the bits of mask */
void vb_pipe_told(struct vb_pipe *pipe, uint32_t allowed, uint32_t mask);
/* what was built; a failure ends the connection */
void vb_pipe_post(struct vb_pipe *pipe);
/* Post n slots again, that so many messages came in. */
void vb_pipe_give_back(struct vb_pipe *pipe, const uint32_t *slots, uint32_t n, uint32_t messages);
int vb_pipe_probe(struct vb_pipe *pipe); /* keepalive: an empty write */

/* -- lane.c -- */
/* found or made, with a user more */
int vb_lane_get(struct vb_conn *conn, uint32_t number, struct vb_lane **lane_p);
void vb_lane_put(struct vb_lane *lane); /* a user less; it stays until the connection ends */
/* no thread uses it, but a fetch of a consumer that is gone is under way */
bool vb_lane_lingers(const struct vb_lane *lane);
void vb_lane_free(struct vb_lane *lane); /* after its pipes */
/* that is up, or NULL */
struct vb_pipe *vb_lane_pipe(struct vb_lane *lane, enum vb_kind kind, uint32_t peer_lane);
/* control thread: hand over a pipe that is up */
void vb_lane_add(struct vb_lane *lane, struct vb_pipe *pipe);
int vb_lane_poll(struct vb_lane *lane);   /* completions of all its pipes; returns how many */
void vb_lane_flush(struct vb_lane *lane); /* post what was built */
/* it goes: no completion may be told to it */
void vb_lane_forget(struct vb_lane *lane, const void *object);

/* -- conn.c -- */
int vb_conn_new(struct vb_transport *t, enum vb_end end, const struct gantry_conn_events *events,
		void *arg, struct vb_conn **conn_p);
int vb_connect(void *device, const char *service, const struct gantry_conn_events *events,
	       void *arg, void **conn_p);
void vb_disconnect(void *conn);
const char *vb_refusal(void *conn);
/* any thread: over with it; `closed` follows from progress() */
void vb_conn_fail(struct vb_conn *conn, int reason);
void vb_conn_broken(
	struct vb_conn *conn,
	const char *why); /* any thread: the same, it ("sends ...") broke the protocol */
void vb_conn_up(struct vb_conn *conn); /* its control pipe is */
/* control messages, deadlines, keepalive, `closed` */
void vb_conn_progress(struct vb_conn *conn, uint64_t now_ns);
uint64_t vb_conn_wake_ns(const struct vb_conn *conn);
/* up or being accepted, not lost, not forked */
bool vb_conn_usable(const struct vb_conn *conn);
/* of a freed one: nothing is on its way any more */
bool vb_conn_left(struct vb_conn *conn, uint64_t now_ns);
void vb_conn_destroy(struct vb_conn *conn); /* at once */

/* -- control.c -- */
int vb_send_ctrl(void *conn, const void *msg, size_t len);
/*
 * Queued where it must. -ENOMEM; -ENOTCONN, also where so much waits already that the peer is given
 * up.
 */
int vb_control_send(struct vb_conn *conn, enum vb_ctrl_kind kind, const void *body, size_t len);
/* completions and messages of the control pipe */
void vb_control_poll(struct vb_conn *conn);
void vb_control_rearm(struct vb_conn *conn); /* its channel had something to say */
void vb_control_drop(struct vb_conn *conn);  /* forget what waits */

/* -- region.c: memory of ours that the peer may touch -- */
int vb_export(void *conn, const struct gantry_region *region, uint32_t rights, uint32_t handle,
	      struct gantry_token *token_p);
int vb_revoke(void *conn, uint32_t handle);
/*
 * How the peer may fetch the data of an exported region: for a lane. -EINVAL: not exported to be
 * read, or not so long.
 */
int vb_export_ref(struct vb_conn *conn, const struct gantry_region *region, uint64_t offset,
		  uint32_t length, struct vb_msg_region *ref);
/* the peer says so; -EPROTO ends it */
int vb_on_released(struct vb_conn *conn, const struct vb_ctrl_handle *h);
void vb_exports_progress(struct vb_conn *conn, uint64_t now_ns); /* revokes that are overdue */
uint64_t vb_exports_wake_ns(const struct vb_conn *conn);
/* the connection is over: nothing can be touched; `revoked` for all */
void vb_exports_lost(struct vb_conn *conn);
void vb_exports_quiet(struct vb_conn *conn); /* the same, and nobody is told */
/* Why rc of registering so much memory, for people. */
void vb_explain_memory(const struct vb_transport *t, const char *what, uint64_t bytes, int rc);

/* -- import.c: memory of the peer, and local memory for remote reads and writes of it -- */
int vb_import_region(void *conn, const struct gantry_token *token, uint32_t flags,
		     struct gantry_region **region_p);
const char *vb_import_error(void *conn);
void vb_release(void *conn, struct gantry_region *region);
/*
 * The data that the peer's ref names, to be fetched by a lane, which holds it until vb_fetch_end:
 * RELEASED waits so long. -EAGAIN: not announced yet; -EFAULT: taken back meanwhile; -EPROTO:
 * impossible.
 */
int vb_fetch_begin(struct vb_conn *conn, const struct vb_msg_region *ref,
		   struct vb_import **import_p);
void vb_fetch_end(struct vb_import *import);
/* messages of the peer; -EPROTO ends it */
int vb_on_region(struct vb_conn *conn, const struct vb_ctrl_region *r);
int vb_on_revoke(struct vb_conn *conn, const struct vb_ctrl_handle *h);
void vb_imports_progress(struct vb_conn *conn); /* sign off what no lane fetches from any more */
void vb_imports_free(struct vb_conn *conn);     /* and local memory */
int vb_register(void *conn, const struct gantry_region *region);
void vb_unregister(void *conn, const struct gantry_region *region);
/* Key of registered memory that holds length bytes at addr, for a lane. 0 or -EINVAL. */
int vb_local_key(struct vb_conn *conn, const struct gantry_region *region, const void *addr,
		 uint32_t length, uint32_t *lkey_p);

/* -- networks.c: the addresses that a peer may name -- */
/*
 * vb_networks_parse - read the option direct_networks
 *
 * text      "ADDRESS/BITS, ADDRESS"; "" or NULL: none
 * why       buffer of `size` bytes for the reason of -EINVAL
 * returns   0; -EINVAL: the text is not such a list
 */
int vb_networks_parse(const char *text, struct vb_networks *networks, char *why, size_t size);
bool vb_networks_have(const struct vb_networks *networks, const struct sockaddr *addr);
/* `check` of both plugins */
void vb_check_conf(const void *conf, const struct gantry_option_faults *faults);

/* -- consumer.c, producer.c, rma.c -- */
int vb_consumer_create(void *conn, const struct gantry_queue_attr *attr, uint32_t *id_p,
		       void **consumer_p);
void vb_consumer_destroy(void *consumer);
int vb_post_recv(void *consumer, const struct gantry_recv *recvs, uint32_t n);
int vb_poll_recv(void *consumer, struct gantry_msg *msgs, uint32_t max);
int vb_consumer_arm(void *consumer);
void vb_consumer_disarm(void *consumer);
int vb_consumer_fd(void *consumer);
/* from vb_lane_poll */
void vb_consumer_arrived(struct vb_consumer *c, const struct vb_arrival *arrival, uint32_t bytes);
void vb_consumer_fetched(struct vb_consumer *c, int status);
void vb_consumers_reap(struct vb_lane *lane); /* those that are gone; after its pipes */
/* receives that no message has claimed; 0 of NULL */
uint32_t vb_consumer_free(const struct vb_consumer *c);

int vb_producer_create(void *conn, uint32_t consumer_id, const struct gantry_queue_attr *attr,
		       void **producer_p);
void vb_producer_destroy(void *producer);
int vb_send(void *producer, const struct gantry_send *send, uint32_t flags);
void vb_flush(void *producer);
int vb_poll_send(void *producer, uint64_t *cookies, uint32_t max);

int vb_rma_create(void *conn, const struct gantry_queue_attr *attr, void **rma_p);
void vb_rma_destroy(void *rma);
int vb_rma_submit(void *rma, const struct gantry_rma *op);
int vb_rma_write_imm(void *rma, const struct gantry_rma *op, uint32_t note);
void vb_rma_flush(void *rma);
int vb_rma_poll(void *rma, struct gantry_rma_done *done, uint32_t max);
void vb_rma_ended(struct vb_rma *rma, uint64_t cookie, int status); /* from vb_lane_poll */

/* What both plugins do alike; each has its own open and scan. */
#define VB_TRANSPORT_OPS \
	.close = vb_close, .info = vb_info, .fd = vb_fd, .progress = vb_progress, \
	.wake_ns = vb_wake_ns, .listen = vb_listen, .unlisten = vb_unlisten, \
	.connect = vb_connect, .send_ctrl = vb_send_ctrl, .disconnect = vb_disconnect, \
	.export_region = vb_export, .refusal = vb_refusal, .import_region = vb_import_region, \
	.release_region = vb_release, .revoke_region = vb_revoke, .register_region = vb_register, \
	.unregister_region = vb_unregister, .consumer_create = vb_consumer_create, \
	.consumer_destroy = vb_consumer_destroy, .producer_create = vb_producer_create, \
	.producer_destroy = vb_producer_destroy, .rma_create = vb_rma_create, \
	.rma_destroy = vb_rma_destroy, .post_recv = vb_post_recv, .poll_recv = vb_poll_recv, \
	.consumer_arm = vb_consumer_arm, .consumer_disarm = vb_consumer_disarm, \
	.consumer_fd = vb_consumer_fd, .send = vb_send, .flush = vb_flush, \
	.poll_send = vb_poll_send, .rma_submit = vb_rma_submit, .rma_flush = vb_rma_flush, \
	.rma_poll = vb_rma_poll, .check_service = vb_check_service, \
	.rma_write_imm = vb_rma_write_imm, .max_connections = vb_max_connections, \
	.import_error = vb_import_error

#endif
