/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs.h - internal interface of the transport over RDMA.
 *
 *   vb_transport      one entry of `devices`                           vb_transport.c
 *     vb_listener     an address that accepts connections              vb_listener.c
 *     vb_conn         a peer: protection domain, control pipe,         vb_conn.c, vb_control.c,
 *                     regions                                          vb_region.c, vb_import.c
 *       vb_lane       the queues of one thread: completion channel,    vb_lane.c
 *                     pipes
 *         vb_pipe     a queue pair with its completion queue, slots    vb_pipe.c; connected in
 *                     and credit                                       vb_connect.c
 *         vb_consumer, vb_producer, vb_rma                             vb_consumer.c,
 *                                                                      vb_producer.c, vb_rma.c
 *
 * These objects use thin wrappers of libibverbs and librdmacm, one per file: vb_rdma.h.
 *
 * Threads. The control thread creates and destroys all objects, and handles connection events and
 * control pipes. The thread of a lane polls its pipes and accesses its consumer, producers and rma.
 * The control thread and the lanes share no lock. The control thread passes a pipe to its lane by
 * one release store when the pipe is up (vb_pipe.next of the lane's list). A lane reports an error
 * by `vb_conn.lost`.
 *
 * Credit. A pipe posts `slots` receives, and posts each again after its messages were polled. The
 * receiving side states how many messages it accepts, counted since the pipe came up: allowed =
 * received + min(free receives of its consumer, free slots). Each message in the other direction,
 * except a note, carries this number. If the sender would otherwise stall, the receiver writes the
 * number with a separate RDMA write. So each send finds a posted receive. If the consumer has no
 * free receive, send returns -EAGAIN.
 */
#ifndef VB_VERBS_H
#define VB_VERBS_H

#include <stdbool.h>
#include <sys/queue.h>

#include <gantry/transport.h>

#include "../common/address.h"
#include "../common/cells.h"
#include "../common/done.h"
#include "../common/networks.h"
#include "../common/quota.h"
#include "vb_rdma.h"
#include "vb_wire.h"

#define VB_DOMAIN 0x62726576u /* "verb": domain of imported regions */
#define VB_RIGHTS (GANTRY_REMOTE_READ | GANTRY_REMOTE_WRITE)
/* limit per connection of exported regions, of imported regions, and of registered regions */
#define VB_REGIONS 256
#define VB_CONSUMERS 256  /* limit of consumers of the peer, per connection */
#define VB_MAX_LANES 256  /* limit of lanes per connection */
#define VB_MAX_PIPES 1024 /* limit of pipes per connection */
/* limit of third parties whose memory is accessed directly, per connection */
#define VB_PEERS 64
#define VB_PIPES_PER_CONSUMER 16 /* limit of lanes of the peer that send to one consumer */
#define VB_DIRECT_KEY 16         /* bytes of the key of the proofs of direct pipes */
#define VB_POLL 32               /* limit of completions per poll */

enum { VB_SEPARATE, VB_SHARED }; /* values of the option data_qp */

/* Options of both plugins: VB_OPTIONS. */
struct vb_conf {
	const char *ibdev;  /* rdma-verbs: name of the RDMA device */
	const char *netdev; /* rxe: name of the network interface */
	uint8_t create;     /* rxe: create the soft-RoCE device if it is missing */
	uint8_t pad[3];
	uint32_t data_qp;      /* VB_SEPARATE, VB_SHARED */
	int64_t max_depth;     /* messages in a queue, and posted receives of a pipe */
	uint64_t inline_bytes; /* largest data of a message that is sent inline */
	int64_t retry_count, rnr_retry_count;
	uint64_t ack_timeout_ns, keepalive_ns, connect_timeout_ns, revoke_timeout_ns;
	uint64_t max_region_bytes;
	int64_t max_connections;
	const char *direct_networks; /* text for tc_networks_parse() */
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

struct vb_conn;
struct vb_lane;
struct vb_pipe;

struct vb_transport {
	const struct gantry_host *host;
	const struct vb_conf *conf;
	struct vb_device device;
	struct tc_networks direct_networks;
	struct rdma_event_channel *channel;
	struct vb_patience patience;
	int epoll, wake; /* wake: eventfd; a lane writes to it to wake the control thread */
	/* vb_progress() or vb_close() runs, and frees disconnected connections later */
	int in_progress;
	struct vb_conn *conns; /* all connections, linked by ->next */
	/* all listeners: those of services, and those that accept only direct pipes */
	LIST_HEAD(, vb_listener) listeners;
	uint32_t n_accepted; /* connections accepted by listeners */
	uint32_t sequence;   /* of the last request of this side; begins at a random number */
	int n_events;        /* events that this vb_progress() has delivered */
	int events_rc; /* last error of reading connection events, which has been logged; 0: none */
	pid_t pid;     /* process that opened the device: a forked child must not use it */
	uint64_t *doorbells, *connections, *protocol_errors; /* counters of the control thread */
	struct tc_cells lane_doorbells, lane_payload;        /* counters of the lanes */
};

/* Context of each rdma_cm_id. */
enum vb_what { VB_ID_LISTENER = 1, VB_ID_PIPE };
struct vb_id {
	enum vb_what what;
	void *object;
};

struct vb_listener {
	struct vb_transport *t;
	LIST_ENTRY(vb_listener) link;
	struct vb_id tag;
	struct rdma_cm_id *id;
	const struct gantry_conn_events *events; /* NULL: accepts direct pipes only */
	void *arg;
	struct sockaddr_storage addr; /* address and port on which it listens */
	char address[64];             /* the same as text */
};

/*
 * ASKED: the peer has been asked to connect. RESOLVING, ROUTING, CONNECTING: active side. ACCEPTED:
 * passive side.
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
	struct vb_async_event async; /* first member: context of the queue pair */
	struct vb_id tag;
	struct vb_conn *conn;
	/*
	 * lane of this side; NULL: the control pipe, or the passive side of a direct or data pipe
	 */
	struct vb_lane *lane;
	struct vb_pipe *next; /* next pipe of the lane: __atomic */
	struct vb_pipe *all;  /* next pipe of the connection: control thread */
	enum vb_kind kind;
	enum vb_end end;
	enum vb_pipe_state state; /* control thread */
	int up;                   /* __atomic: messages can be sent */
	/*
	 * __atomic: the queue pair is in the error state, so the lane can cancel outstanding
	 * requests
	 */
	int quiet;
	uint16_t connects_lane, listens_lane;
	struct vb_import_peer *peer; /* VB_DIRECT, active side: owner of the memory */
	struct rdma_cm_id *id;
	struct sockaddr_storage to; /* active side: address to connect to */
	/*
	 * `id` is bound to an address of this device, because the default route uses another device
	 */
	int bound;
	uint64_t deadline_ns; /* deadline of the current step of connecting; 0: none */
	struct vb_cq cq;
	struct vb_qp qp;

	/*
	 * One block of memory: the credit that the peer writes, which is registered separately; the
	 * credit that this side sends to the peer; send slots; receive slots.
	 */
	char *block;
	size_t block_bytes;
	struct ibv_mr *mr, *credit_mr;
	uint32_t slots, slot_bytes; /* number and size in bytes of the slots of each direction */
	/*
	 * limit of messages in flight in each direction: the smaller number of slots of the two
	 * ends
	 */
	uint32_t window;
	char *send_slots, *recv_slots;
	struct vb_credit *credit;     /* credit from the peer, which the peer writes by RDMA */
	struct vb_credit *credit_out; /* credit for the peer, which this side sends */
	uint64_t peer_credit_addr;
	uint32_t peer_credit_key;

	/*
	 * Sending. Thread: lane; for the control pipe: control. sent: messages sent; allowed:
	 * messages that the peer accepts. Both count since the pipe came up, modulo 2^32.
	 */
	uint32_t sent, allowed;
	uint32_t send_at; /* next send slot */
	/* equals qp.built while the last request of the chain consists of messages without data */
	uint32_t bare;
	/* ring of REGION messages whose data the peer has not fetched; at most `slots` */
	struct vb_region_send *region_sends;
	uint32_t region_mask, region_head, region_tail;
	/* Receiving. */
	uint32_t received; /* messages received */
	/* number of received messages in slots that have not been posted again */
	uint32_t waiting;
	uint32_t credit_sent; /* last value of `allowed` that was sent to the peer */
	/*
	 * taken: REGION messages of the peer whose data was fetched or discarded; taken_sent: value
	 * of `taken` that was last sent to the peer
	 */
	uint32_t taken, taken_sent;
	/* last value of `credit_sent` that was written to struct vb_credit of the peer */
	uint32_t written;
	uint32_t sent_then; /* `sent` at the last check for one-way traffic */
	uint64_t busy_ns;   /* time of the last completion, for the keepalive */
	int probing;        /* a keepalive probe is outstanding */
	/* with a record filter: of the request that established the pipe */
	uint32_t sequence;
	uint8_t proof[VB_PROOF];
};

struct vb_lane {
	struct vb_conn *conn;
	struct vb_lane *next; /* next lane of the connection */
	uint32_t number;
	uint32_t n_users; /* number of consumers, producers and rmas */
	uint32_t has_rma; /* number of rmas; only the control thread uses it */
	struct ibv_comp_channel *channel;
	struct vb_pipe *pipes; /* __atomic list of message, data and direct pipes that are up */
	struct vb_consumer *consumer; /* __atomic; at most one */
	/* destroyed consumers with a fetch in progress; freed with the lane */
	struct vb_consumer *gone;
	LIST_HEAD(, vb_producer) producers; /* control thread */
	uint64_t *doorbells, *payload_bytes;
};

/* A REGION message whose data the peer has not fetched yet. */
struct vb_region_send {
	struct vb_producer *producer; /* NULL: the producer has been destroyed */
	uint64_t cookie;
};

/* Purpose of a send request: `kind` of struct vb_send. */
enum vb_request { VB_R_MESSAGE, VB_R_CREDIT, VB_R_PROBE, VB_R_RMA, VB_R_FETCH };

/* A received message. */
struct vb_arrival {
	struct vb_pipe *pipe;
	uint32_t slot;
	uint16_t at; /* offset in the slot, bytes */
	/* last message of a slot: number of messages in the slot; other messages: 0 */
	uint16_t ends;
};

/* Slots of messages that were polled, to be posted again. */
struct vb_batch {
	struct vb_pipe *pipe;
	uint32_t slots[VB_POLL];
	uint32_t n, messages;
};

struct vb_consumer {
	struct vb_lane *lane;
	struct vb_consumer *next; /* next consumer in the list of destroyed consumers */
	int gone;
	uint32_t id, depth, max_data;
	/*
	 * ring of posted receives: depth rounded up to a power of two. All zero unless
	 * vb_post_recv_data() posts the receives
	 */
	struct gantry_recv *recvs;
	uint32_t recv_mask, recv_head, recv_tail;
	struct vb_arrival *arrivals; /* ring of the messages that arrived and were not polled */
	uint32_t mask, head, tail;
	char *bounce; /* destination of the fetch of the first arrival */
	struct ibv_mr *bounce_mr;
	/* state of the fetch of the data of the first arrival */
	enum { VB_F_NONE, VB_F_UNDER_WAY, VB_F_THERE } fetch;
	struct vb_import *fetching;
	int32_t fetch_status;
	/*
	 * Slots of the last poll. They are posted again at the next poll, after the replies to
	 * their messages.
	 */
	struct vb_batch taken;
	int busy; /* the last poll returned messages */
	/* credit might have changed: messages arrived or were taken, or receives were posted */
	int dirty;
	int prompt;                   /* GANTRY_QUEUE_PROMPT: vb_post_recv() sends credit itself */
	const struct vb_pipe *newest; /* newest pipe of the lane when credit was sent last */
	int broken;                   /* after a protocol error: polls return -EPROTO */
};

struct vb_producer {
	struct vb_lane *lane;
	LIST_ENTRY(vb_producer) link;
	struct vb_pipe *pipe; /* NULL until the pipe is up */
	uint32_t depth, max_data;
	uint32_t consumer_id, peer_lane;
	int gone;           /* __atomic: the consumer has been destroyed */
	uint32_t n_regions; /* sends with a region that have not been polled */
	uint64_t *cookies;  /* ring of cookies of sends whose data the peer has fetched */
	uint32_t mask, head, tail;
};

struct vb_rma {
	struct vb_lane *lane;
	uint32_t depth, n_out;
	struct tc_done done;
	struct vb_pipe *pipe; /* pipe for regions that the peer owns */
	/* message pipe of the lane, which carries notes; NULL until it is up */
	struct vb_pipe *notes;
};

/* Memory of this process that the peer can access. */
struct vb_export {
	/* __atomic; NULL: free slot. The other fields are set before this one */
	const struct gantry_region *region;
	int revoking;
	/* description that was sent to the peer. wire.direct: a third party owns the memory */
	struct vb_ctrl_region wire;
	struct ibv_mr *mr;
	void *mapped; /* mapping of a region that the user has not mapped; NULL: none */
	size_t mapped_bytes;
	uint64_t deadline_ns; /* time limit of the revocation */
};

/*
 * A third party whose memory this side accesses through direct pipes: it exported the memory to a
 * peer, which re-exported it.
 */
struct vb_import_peer {
	struct vb_import_peer *next; /* next owner of the connection */
	uint64_t session, secret;
	uint8_t key[VB_DIRECT_KEY]; /* with a record filter */
	struct sockaddr_storage addr;
	struct vb_pipe *pipes[VB_MAX_LANES]; /* __atomic; indexed by lane of this side */
};

/* Memory that the peer has exported. */
struct vb_import {
	struct gantry_region pub; /* handed out to users: region.transport points to this struct */
	struct vb_conn *conn;
	/*
	 * __atomic: generation and handle; 0: free slot. The other fields are set before this one
	 */
	uint64_t name;
	int revoking;      /* __atomic: the peer has revoked the export */
	uint32_t n_users;  /* import_region calls minus release_region calls */
	uint32_t fetching; /* __atomic: number of lanes that fetch from it */
	struct vb_ctrl_region wire;
	uint8_t direct_key[VB_DIRECT_KEY]; /* with a record filter */
	/*
	 * third party that owns the memory. NULL without wire.direct: the peer owns it. NULL with
	 * wire.direct: the address of the owner is outside direct_networks, and import_region
	 * fails.
	 */
	struct vb_import_peer *peer;
};

/* A request for a queue pair that was accepted. */
struct vb_seen {
	uint32_t sequence;
	uint16_t connects_lane, listens_lane;
	uint8_t kind;
};

struct vb_registered { /* local memory for rma: registered by the control thread, read by lanes */
	const struct gantry_region *region; /* __atomic; NULL: free slot */
	struct ibv_mr *mr;
};

/* A control message that waits for credit. */
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
	int lost;      /* __atomic: the first error, -errno; set by any thread: vb_conn_fail() */
	int said;      /* `closed` has been delivered */
	int accepting; /* accept of the user is being called */
	int accepted;  /* counted in t->n_accepted */
	/* reason of the peer for refusing the connection; "": none received */
	char refusal[VB_REFUSAL_TEXT];
	/* vb_disconnect() was called; the object stays until its last messages are sent */
	int freed;
	uint64_t leave_ns; /* time limit of sending the last messages; 0: none are sent */
	int said_bye;
	uint64_t session, secret;
	void *records; /* the record filter; NULL: not open, or none */
	int records_open;
	int started;                  /* the START message of the peer has arrived */
	uint64_t records_deadline_ns; /* time limit of its handshake; 0: none */
	uint64_t alert_ns;            /* time limit of sending its alert; 0: none */
	uint32_t peer_qpn;            /* number of the control queue pair of the peer */
	/* requests that were accepted, with a record filter */
	struct vb_seen *seen;
	uint32_t n_seen;
	/* secret for VB_DIRECT to memory of this side; 0: not disclosed */
	uint64_t direct_secret;
	uint8_t direct_key[VB_DIRECT_KEY]; /* set with direct_secret; with a record filter */
	struct sockaddr_storage to;        /* address of the peer */
	struct ibv_pd *pd;
	struct ibv_comp_channel *control_channel; /* member of the epoll set of the transport */
	struct vb_pipe *control;
	struct vb_pipe *pipes; /* all pipes, linked by ->all */
	struct vb_lane *lanes;
	uint32_t next_consumer;
	/* consumers of the peer */
	struct {
		uint32_t id, lane, max_data;
		int used;
	} remote[VB_CONSUMERS];
	struct vb_export exports[VB_REGIONS];
	uint32_t generation; /* generation of the last export of this side */
	uint32_t announced;  /* __atomic: generation of the peer's last export */
	struct vb_import imports[VB_REGIONS];
	struct vb_import_peer *peers;
	/* reason of the last failed import_region; "": only its error number */
	char import_error[160];
	struct vb_registered registered[VB_REGIONS];
	/* number of slots at the start of each table that have ever been used. Thread: control */
	uint32_t exports_used, imports_used, registered_used;
	struct vb_outgoing *out_head, **out_tail;
	struct vb_outgoing *held_head, **held_tail; /* until the record filter is open */
	uint32_t n_out;                             /* of both lists */
	uint32_t seen_consumer;                     /* highest consumer id of the peer */
	uint64_t probe_ns;                          /* time of the last keepalive probe */
	struct gantry_peer peer;
};

/* -- vb_transport.c: the device and its event loop -- */
/*
 * Open a device. name: of the RDMA device. conf and host must live as long as the instance. Returns
 * 0 or -errno; logs the cause.
 */
int vb_transport_open(const struct gantry_host *host, const struct vb_conf *conf, const char *name,
		      void **device_p);
int vb_transport_scan(const struct gantry_host *host, struct gantry_writer *w,
		      int (*wanted)(const char *name));
void vb_close(void *device);
void vb_info(void *device, struct gantry_device_info *info);
int vb_fd(void *device);
int vb_progress(void *device);
uint64_t vb_wake_ns(void *device);
void vb_transport_wake(struct vb_transport *t); /* make vb_progress() run; any thread */
bool vb_usable(const struct vb_transport *t);   /* false in a forked child */
/* Add a descriptor to the epoll set. what: identifies it: a connection, or a member of `t`. */
int vb_transport_watch(struct vb_transport *t, int fd, void *what);
/* Free the disconnected connections whose last messages are sent, unless vb_progress() runs. */
void vb_transport_reap(struct vb_transport *t);
void vb_transport_dead(struct vb_transport *t); /* the device has failed: end all connections */

/* -- vb_records.c: the record filter of the host, if it has one -- */
void vb_records_start(struct vb_conn *conn); /* when the control pipe is up */
/* End the connection if the handshake exceeds the time limit. */
void vb_records_overdue(struct vb_conn *conn, uint64_t now_ns);
/* Seal and send a control message. The filter is open. Returns 0 or -errno. */
int vb_records_send(struct vb_conn *conn, enum vb_ctrl_kind kind, const void *body, size_t len);
/* Take a RECORD of the peer. Returns NULL, or the reason why it is invalid. */
const char *vb_records_receive(struct vb_conn *conn, const void *bytes, size_t len);
/* Handle START of the peer. Returns NULL, or the reason why it is invalid. */
const char *vb_records_on_start(struct vb_conn *conn, const struct vb_ctrl_start *start);

/* Returns the version of the protocol of this end. */
static inline uint16_t vb_version(const struct vb_transport *t)
{
	return VB_VERSION | (t->host->records ? VB_RECORDS : 0);
}

/* -- vb_listener.c -- */
int vb_listen(void *device, const char *service, const struct gantry_conn_events *events, void *arg,
	      void **listener_p);
void vb_unlisten(void *listener);
const char *vb_listener_address(void *listener);
/*
 * Find or create the listener for direct pipes at the address of this connection. Returns 0 and its
 * address, or -errno.
 */
int vb_listen_direct(struct vb_conn *conn, struct sockaddr_storage *addr);
void vb_on_request(struct vb_listener *l, const struct vb_event *event); /* CONNECT_REQUEST */

/* -- vb_connect.c: pipes come up and end, on the active and the passive side -- */
/*
 * Establish the queue pair of these lanes, unless it exists or is being established. The server end
 * asks the client end to connect it. Returns 0 or -errno.
 */
int vb_pipe_want(struct vb_conn *conn, enum vb_kind kind, uint32_t local_lane, uint32_t peer_lane);
int vb_pipe_want_direct(struct vb_conn *conn, struct vb_import_peer *peer, uint32_t local_lane);
/* Active side: start to resolve the address. Returns 0 or -errno. */
int vb_pipe_connect(struct vb_pipe *pipe, const struct sockaddr *to);
/* As vb_pipe_equip(). Logs the cause of a failure. */
int vb_pipe_equip_or_log(struct vb_pipe *pipe);
/*
 * Passive side: accept the request of the peer, after vb_pipe_take_hello() and
 * vb_pipe_equip_or_log().
 */
int vb_pipe_accept(struct vb_pipe *pipe, const struct vb_event *request);
/* handles all events but CONNECT_REQUEST */
void vb_on_pipe_event(struct vb_pipe *pipe, const struct vb_event *event);
/* Handle an asynchronous event of the pipe's queue pair or completion queue. Can free the pipe. */
void vb_pipe_async_event(struct vb_pipe *pipe, enum ibv_event_type event);
/* Handle a completion with an error: log it and end the connection. Thread: any. */
void vb_pipe_completion_failed(struct vb_pipe *pipe, const struct ibv_wc *wc);
void vb_pipe_end(struct vb_pipe *pipe); /* vb_pipe_fail(), then disconnect */
/* Fail the pipe if a step of connecting has exceeded its time. Returns true if so. */
bool vb_pipe_overdue(struct vb_pipe *pipe, uint64_t now_ns);

/* -- vb_pipe.c: resources, slots, credit. Threads: control and lane, each for its own pipes -- */
uint64_t vb_pipe_bytes(const struct vb_conf *conf, enum vb_kind kind); /* memory that a pipe pins */
/* Returns the largest max_depth that a device supports. */
uint32_t vb_depth_limit(const struct vb_conf *conf, const struct vb_limits *limits);
int vb_pipe_new(struct vb_conn *conn, enum vb_kind kind, enum vb_end end, struct vb_pipe **pipe_p);
/* Create mr, cq, qp and receives. The id must have a device. Returns 0 or -errno. */
int vb_pipe_equip(struct vb_pipe *pipe, struct ibv_comp_channel *channel);
/* moves the queue pair to the error state and sets `quiet` */
void vb_pipe_fail(struct vb_pipe *pipe);
void vb_pipe_free(struct vb_pipe *pipe); /* after its lane has stopped */
void vb_pipe_hello(const struct vb_pipe *pipe, struct vb_hello *hello);
/* Check and store the peer's private data. Returns 0 or -EPROTO. */
int vb_pipe_take_hello(struct vb_pipe *pipe, const struct vb_hello *hello);
/* Returns the number of messages that can be sent now. */
uint32_t vb_pipe_credit(struct vb_pipe *pipe);
/*
 * Get a slot for the next message, and its request. The caller fills the slot and calls
 * vb_pipe_push(). Returns NULL if there is no credit or no free request.
 */
char *vb_pipe_slot(struct vb_pipe *pipe, const struct vb_send *send, struct ibv_send_wr **wr_p);
/*
 * Complete the request of a slot that the caller has filled with `bytes` bytes. Counts the message
 * as sent.
 */
void vb_pipe_push(struct vb_pipe *pipe, struct ibv_send_wr *wr, uint32_t bytes);
/*
 * Write a note into the slot whose receive it used, as a message for the lane's consumer. Returns
 * the bytes of the message.
 */
uint32_t vb_pipe_convert_note(struct vb_pipe *pipe, uint32_t slot, uint32_t note);
/* Returns true if a message without data can be added to the last request of the chain. */
bool vb_pipe_can_coalesce(const struct vb_pipe *pipe);
/*
 * Add a message of this kind and length to the last request, and count it as sent. Returns the
 * address at which the caller stores the message; NULL: the message needs another slot.
 */
struct vb_msg *vb_pipe_coalesce(struct vb_pipe *pipe, uint8_t kind, uint32_t bytes);
/*
 * Send credit to the peer. free_recvs: number of receives of the consumer that no message has
 * claimed; depth: depth of the consumer.
 *
 * vb_pipe_allow() returns the value of `allowed` for a message that is sent anyway.
 * vb_pipe_send_credit() sends the credit with a separate RDMA write if `when` justifies it. It
 * returns 1 if the send queue is full: the caller must try again later; else 0.
 */
enum vb_credit_when {
	/*
	 * The last poll returned messages, and replies usually carry the credit. Write if three
	 * quarters of the depth are free and no message was sent since the last check.
	 */
	VB_CREDIT_BUSY,
	/*
	 * No message arrived. Write if three quarters of the depth are free, the peer has no credit
	 * left, or the peer waits for the end of a fetch.
	 */
	VB_CREDIT_IDLE,
	/* before the lane sleeps: write if credit or the end of a fetch is unsent */
	VB_CREDIT_LAST,
};
uint32_t vb_pipe_allow(struct vb_pipe *pipe, uint32_t free_recvs);
int vb_pipe_send_credit(struct vb_pipe *pipe, uint32_t free_recvs, uint32_t depth,
			enum vb_credit_when when);
/* Process a value of `allowed` from the peer. mask: its valid bits, 0xffff or all 32. */
void vb_pipe_take_credit(struct vb_pipe *pipe, uint32_t allowed, uint32_t mask);
/* Post the chain. An error ends the connection. */
void vb_pipe_post(struct vb_pipe *pipe);
/* Post n slots again. messages: number of messages that they held. */
void vb_pipe_repost(struct vb_pipe *pipe, const uint32_t *slots, uint32_t n, uint32_t messages);
int vb_pipe_probe(struct vb_pipe *pipe); /* keepalive: posts an empty write */

/* -- vb_lane.c -- */
/* Find or create a lane, and count one user more. */
int vb_lane_get(struct vb_conn *conn, uint32_t number, struct vb_lane **lane_p);
/* Count one user less. The lane stays until the connection ends. */
void vb_lane_put(struct vb_lane *lane);
/* Returns true if no thread uses the lane, but a fetch of a destroyed consumer is in progress. */
bool vb_lane_lingers(const struct vb_lane *lane);
void vb_lane_free(struct vb_lane *lane); /* call it after its pipes are freed */
/* Returns a pipe that is up, or NULL. */
struct vb_pipe *vb_lane_pipe(struct vb_lane *lane, enum vb_kind kind, uint32_t peer_lane);
/* Pass a pipe that is up to its lane. Thread: control. */
void vb_lane_add(struct vb_lane *lane, struct vb_pipe *pipe);
/* processes the completions of all its pipes; returns their number */
int vb_lane_poll(struct vb_lane *lane);
void vb_lane_flush(struct vb_lane *lane); /* posts all chains */
/* Drop the completions of an object that is being destroyed. */
void vb_lane_forget(struct vb_lane *lane, const void *object);

/* -- vb_conn.c -- */
int vb_conn_new(struct vb_transport *t, enum vb_end end, const struct gantry_conn_events *events,
		void *arg, struct vb_conn **conn_p);
int vb_connect(void *device, const char *service, const struct gantry_conn_events *events,
	       void *arg, void **conn_p);
void vb_disconnect(void *conn);
const char *vb_refusal(void *conn);
/* End the connection: `closed` follows from vb_progress(). Any thread. */
void vb_conn_fail(struct vb_conn *conn, int reason);
/*
 * As vb_conn_fail(), for a protocol error of the peer. why: what the peer did, such as "sends an
 * invalid message". Any thread.
 */
void vb_conn_broken(struct vb_conn *conn, const char *why);
void vb_conn_up(struct vb_conn *conn);    /* called when the control pipe is up */
void vb_conn_ready(struct vb_conn *conn); /* it is up, and its record filter is open */
/* Process control messages, deadlines, keepalive and `closed`. */
void vb_conn_progress(struct vb_conn *conn, uint64_t now_ns);
uint64_t vb_conn_wake_ns(const struct vb_conn *conn);
/*
 * Returns true if the connection is up or being accepted, and neither lost nor opened by a parent
 * process.
 */
bool vb_conn_usable(const struct vb_conn *conn);
/*
 * Returns true if a disconnected connection has sent its last messages, or has exceeded its time.
 */
bool vb_conn_left(struct vb_conn *conn, uint64_t now_ns);
void vb_conn_destroy(struct vb_conn *conn); /* frees it immediately */

/* -- vb_control.c -- */
int vb_send_ctrl(void *conn, const void *msg, size_t len);
/*
 * Send a control message, or queue it. Returns 0, or
 *
 *     -ENOMEM    it cannot be queued
 *     -ENOTCONN  the connection has ended, or ends now because too many messages are queued
 */
int vb_control_send(struct vb_conn *conn, enum vb_ctrl_kind kind, const void *body, size_t len);
/* As vb_control_send(), without the record filter, and also after the end of the connection. */
int vb_control_put(struct vb_conn *conn, enum vb_ctrl_kind kind, const void *body, size_t len);
void vb_control_send_held(struct vb_conn *conn); /* the record filter is open */
/* Process a message of the peer. Returns NULL, or the reason why it is invalid. */
const char *vb_control_take(struct vb_conn *conn, uint8_t kind, const void *body, size_t len);
/* Process the completions and messages of the control pipe. */
void vb_control_poll(struct vb_conn *conn);
void vb_control_rearm(struct vb_conn *conn); /* takes the notifications of its channel */
void vb_control_drop(struct vb_conn *conn);  /* drops all queued messages */

/* -- vb_region.c: memory of this process that the peer can access -- */
int vb_export(void *conn, const struct gantry_region *region, uint32_t rights, uint32_t handle,
	      struct gantry_token *token_p);
int vb_revoke(void *conn, uint32_t handle);
/*
 * Fill `ref`, by which the peer can fetch the data of an exported region. Thread: lane. Returns 0;
 * -EINVAL: the range is not exported for reading.
 */
int vb_export_ref(struct vb_conn *conn, const struct gantry_region *region, uint64_t offset,
		  uint32_t length, struct vb_msg_region *ref);
/* Handle RELEASED of the peer. Returns 0; -EPROTO: the caller ends the connection. */
int vb_on_released(struct vb_conn *conn, const struct vb_ctrl_handle *h);
/* ends revocations that have exceeded revoke_timeout */
void vb_exports_progress(struct vb_conn *conn, uint64_t now_ns);
uint64_t vb_exports_wake_ns(const struct vb_conn *conn);
/* The connection has ended, so the peer has no access: deliver `revoked` for all exports. */
void vb_exports_lost(struct vb_conn *conn);
void vb_exports_quiet(struct vb_conn *conn); /* vb_exports_lost() without events */
/* Log the cause and the remedy of a failed registration. */
void vb_explain_memory(const struct vb_transport *t, const char *what, uint64_t bytes, int rc);

/* -- vb_import.c: memory of the peer, and local memory for remote reads and writes -- */
int vb_import_region(void *conn, const struct gantry_token *token, uint32_t flags,
		     struct gantry_region **region_p);
const char *vb_import_error(void *conn);
void vb_release(void *conn, struct gantry_region *region);
/*
 * Begin a fetch of the data that `ref` names. Thread: lane. RELEASED is not sent until
 * vb_fetch_end(). Returns 0, or
 *
 *     -EAGAIN  the region has not been announced yet
 *     -EFAULT  the region has been revoked
 *     -EPROTO  `ref` is invalid
 */
int vb_fetch_begin(struct vb_conn *conn, const struct vb_msg_region *ref,
		   struct vb_import **import_p);
void vb_fetch_end(struct vb_import *import);
/*
 * Handle REGION and REVOKE of the peer. Return 0; -EPROTO, -ENOMEM: the caller ends the connection.
 */
int vb_on_region(struct vb_conn *conn, const struct vb_ctrl_keyed_region *keyed);
int vb_on_revoke(struct vb_conn *conn, const struct vb_ctrl_handle *h);
/* releases revoked regions that no lane fetches from */
void vb_imports_progress(struct vb_conn *conn);
void vb_imports_free(struct vb_conn *conn); /* deregisters local memory as well */
int vb_register(void *conn, const struct gantry_region *region);
void vb_unregister(void *conn, const struct gantry_region *region);
/*
 * Store the key of the registered memory that contains `length` bytes at addr. Thread: lane.
 * Returns 0; -EINVAL: `region` is not registered, or does not contain them.
 */
int vb_local_key(struct vb_conn *conn, const struct gantry_region *region, const void *addr,
		 uint32_t length, uint32_t *lkey_p);

/* `check` of both plugins. */
void vb_check(const void *conf, struct gantry_check *check);

/* -- vb_consumer.c, vb_producer.c, vb_rma.c -- */
int vb_consumer_create(void *conn, const struct gantry_queue_attr *attr, uint32_t *id_p,
		       void **consumer_p);
void vb_consumer_destroy(void *consumer);
int vb_post_recv(void *consumer, uint32_t n);
int vb_post_recv_data(void *consumer, const struct gantry_recv *recvs, uint32_t n);
int vb_poll_recv(void *consumer, struct gantry_msg *msgs, uint32_t max);
int vb_consumer_arm(void *consumer);
void vb_consumer_disarm(void *consumer);
int vb_consumer_fd(void *consumer);
/* Called by vb_lane_poll(). */
void vb_consumer_arrived(struct vb_consumer *c, const struct vb_arrival *arrival, uint32_t bytes);
void vb_consumer_fetched(struct vb_consumer *c, int status);
/* frees destroyed consumers, after the pipes of the lane */
void vb_consumers_reap(struct vb_lane *lane);
/* Returns the receives that no message has claimed; 0 if c is NULL. */
uint32_t vb_consumer_free(const struct vb_consumer *c);

int vb_producer_create(void *conn, uint32_t consumer_id, const struct gantry_queue_attr *attr,
		       void **producer_p);
void vb_producer_destroy(void *producer);
int vb_send(void *producer, const void *imm, uint32_t imm_len, uint32_t flags);
int vb_send_data(void *producer, const struct gantry_send *send, uint32_t flags);
void vb_flush(void *producer);
int vb_poll_send(void *producer, uint64_t *cookies, uint32_t max);

int vb_rma_create(void *conn, const struct gantry_queue_attr *attr, void **rma_p);
void vb_rma_destroy(void *rma);
int vb_rma_submit(void *rma, const struct gantry_rma *op);
int vb_rma_write_imm(void *rma, const struct gantry_rma *op, uint32_t note);
void vb_rma_flush(void *rma);
int vb_rma_poll(void *rma, struct gantry_rma_done *done, uint32_t max);
void vb_rma_ended(struct vb_rma *rma, uint64_t cookie, int status); /* called by vb_lane_poll() */

extern const struct gantry_data_queue_ops vb_data_ops; /* vb_transport.c */

/* Operations that both plugins share; each has its own open and scan. */
#define VB_TRANSPORT_OPS \
	.close = vb_close, .info = vb_info, .fd = vb_fd, .progress = vb_progress, \
	.wake_ns = vb_wake_ns, .listen = vb_listen, .unlisten = vb_unlisten, \
	.connect = vb_connect, .send_ctrl = vb_send_ctrl, .disconnect = vb_disconnect, \
	.export_region = vb_export, .refusal = vb_refusal, \
	.listener_address = vb_listener_address, .import_region = vb_import_region, \
	.release_region = vb_release, .revoke_region = vb_revoke, .register_region = vb_register, \
	.unregister_region = vb_unregister, .consumer_create = vb_consumer_create, \
	.consumer_destroy = vb_consumer_destroy, .producer_create = vb_producer_create, \
	.producer_destroy = vb_producer_destroy, .rma_create = vb_rma_create, \
	.rma_destroy = vb_rma_destroy, .post_recv = vb_post_recv, .poll_recv = vb_poll_recv, \
	.consumer_arm = vb_consumer_arm, .consumer_disarm = vb_consumer_disarm, \
	.consumer_fd = vb_consumer_fd, .send = vb_send, .flush = vb_flush, \
	.rma_submit = vb_rma_submit, .rma_flush = vb_rma_flush, .rma_poll = vb_rma_poll, \
	.rma_write_imm = vb_rma_write_imm, .import_error = vb_import_error, .data = &vb_data_ops

#endif
