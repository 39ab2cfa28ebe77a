/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * transport.h - a transport in memory whose peer is the test: the test connects and accepts, sends
 * control messages with any bytes, forges messages in a queue, and makes any operation fail.
 *
 *     struct fake_transport ft;
 *     fake_transport_init(&ft);
 *     gn_device_open(loop, "dev0", "fake", &fake_transport_ops, &ft, NULL, &device);
 *     conn = fake_dial(&ft, "volume0"); fake_ctrl_send(conn, ...); gn_loop_turn();
 *     fake_ctrl_recv(conn, ...);
 *     fake_transport_fini(&ft);
 *
 * gn_device_open() passes its argument `&ft` to the transport as the conf of the device.
 * fake_transport_fini() ends the program if the core has left the device, a listener, connection,
 * queue or imported region. Misuse of one of them ends the program in the wrong call.
 *
 * Events are delivered by progress, as in a real transport. The thread of a lane can use the queues
 * while the test reads them: every function takes the lock of the transport.
 */
#ifndef FAKE_TRANSPORT_H
#define FAKE_TRANSPORT_H

#include <gantry/transport.h>

#include <pthread.h>

/* Capacity of each queue of a connection, in messages; a power of two. */
#ifndef FAKE_MSGS
#define FAKE_MSGS 256
#endif
#ifndef FAKE_CTRLS
#define FAKE_CTRLS 64
#endif
/* longest message from the core to the test, in bytes */
#ifndef FAKE_CTRL_BYTES
#define FAKE_CTRL_BYTES GANTRY_CTRL_MAX
#endif
#define FAKE_EVENTS 256
#define FAKE_CONNS 64
#ifndef FAKE_QUEUES
#define FAKE_QUEUES 16
#endif
#define FAKE_ORDER 64
#ifndef FAKE_REGION_BYTES
#define FAKE_REGION_BYTES 65536
#endif

/* Operations that can be made to fail. */
enum fake_op {
	FAKE_LISTEN,
	FAKE_CONNECT,
	FAKE_SEND_CTRL,
	FAKE_EXPORT,
	FAKE_IMPORT,
	FAKE_REVOKE,
	FAKE_CONSUMER,
	FAKE_PRODUCER,
	FAKE_RMA,
	FAKE_REGISTER,
	FAKE_POST_RECV,
	FAKE_OPS
};

struct fake_queue {
	struct fake_conn *conn; /* NULL: not in use */
	uint32_t id;            /* of this consumer; producer: of the peer's consumer */
	uint32_t lane;
	uint32_t depth, posted;
	struct gantry_msg in[FAKE_MSGS]; /* consumer: messages not polled yet */
	uint32_t n_in;
	int poll_rc; /* consumer: if negative, what poll_recv returns */
	int fd;
	uint32_t armed;
	uint8_t out[FAKE_MSGS][GANTRY_IMM_MAX]; /* producer: messages that the test has not taken */
	uint32_t n_out, n_unflushed;
	uint32_t n_flushes, n_sends;
	int send_rc; /* producer: what send returns; 0: it accepts */
	uint32_t n_refused;
	const void *thread;             /* of the lane, as the core named it */
	struct gantry_local_peer *peer; /* consumer: the local peer that was set last */
	/* producer: each send also calls the local peer of this consumer; NULL: none */
	struct fake_queue *echo;
};

struct fake_rma {
	struct fake_conn *conn;
	uint32_t lane;
	const struct gantry_region *used; /* local memory of the last move */
	struct gantry_rma pending[FAKE_MSGS];
	uint32_t n_pending, n_flushed, n_submits;
	uint32_t notes[FAKE_MSGS]; /* notes that the test has not taken */
	uint32_t n_notes;
	int submit_rc; /* what submit returns; 0: it accepts */
	int note_rc;   /* if not 0, what a write with a note returns */
	int status;    /* completion status of moves */
	int hold;      /* do not complete moves */
};

struct fake_conn {
	struct fake_transport *ft;
	const struct gantry_conn_events *events;
	void *arg;
	char service[64];
	int by_core;         /* the core connected; else the test did */
	const char *refusal; /* set before fake_close(): the reason of the peer */
	int established, refused, closed, disconnected;
	struct {
		uint8_t bytes[FAKE_CTRL_BYTES];
		size_t len;
	} ctrl[FAKE_CTRLS]; /* from the core; the test has not taken them */
	unsigned n_ctrl;
	struct fake_queue consumers[FAKE_QUEUES], producers[FAKE_QUEUES];
	struct fake_rma rmas[FAKE_QUEUES];
	const struct gantry_region *registered[FAKE_QUEUES];
	/*
	 * the first calls, one letter each: W write, R read, N write with a note, S send, F flush
	 * of an rma, f flush of a producer
	 */
	char order[FAKE_ORDER];
	unsigned n_order;
	unsigned n_consumers, n_producers, n_rmas, n_imports, n_registered; /* existing objects */
	unsigned touched_queues, touched_rmas; /* entries used so far have a lower index */
	uint32_t exports[FAKE_QUEUES];         /* handles that the core exported */
	unsigned n_exports, n_revokes;         /* n_revokes: revokes by the core */
	/*
	 * The test sent a message that breaks the protocol: it had a wrong length, or no receive
	 * was posted. The core then ends the session, and need not flush its earlier replies.
	 */
	int is_broken;
	/*
	 * Values of ft->n_steps, which counts the disconnects and releases of the whole transport:
	 * their order shows which call came first. released_at: of the last released region.
	 */
	unsigned disconnected_at, released_at;
};

struct fake_event {
	struct fake_conn *conn;
	int type;
	int value;
	size_t len;
	uint8_t bytes[]; /* len of them */
};

struct fake_transport {
	pthread_mutex_t lock;
	/*
	 * Called first for each frame that the core sends. Returns 1 if it has processed the frame,
	 * which the test then does not get. NULL: the test gets all frames.
	 */
	int (*answers)(struct fake_conn *conn, const void *msg, size_t len);
	uint32_t caps, max_depth;
	uint64_t room;      /* maximum length of a region in bytes; 0: no limit */
	uint32_t max_noted; /* maximum length of a write with a note, in bytes */
	int event_fd;
	uint64_t wake_ns;
	unsigned n_progress, n_steps;
	int opened;
	struct {
		unsigned in; /* fail the in-th call from now; 0: none */
		int rc;
	} fail[FAKE_OPS];
	struct {
		const struct gantry_conn_events *events;
		void *arg;
		char service[64];
		int used;
	} listeners[8];
	struct fake_conn *conns[FAKE_CONNS]; /* all connections, also closed ones */
	unsigned n_conns;
	struct fake_event *events[FAKE_EVENTS];
	unsigned n_events;
	struct gantry_peer peer; /* peer of fake_dial(); at first with the uid of the test */
	/* socket of the last hold_exports, which the test closes; -1: hold_exports fails */
	int hold_socket;
	const char *import_error; /* text that import_error returns; NULL: "" */
	uint32_t skew_handle;     /* added to the handle of each import */
	int unmapped;             /* imported regions have no address, whatever the flags */
	uint32_t import_flags;    /* GANTRY_IMPORT_* of the last import */
	int keeps;                /* the peer does not answer a revoke */
	uint32_t next_consumer;
	uint8_t memory[FAKE_REGION_BYTES]; /* contents of imported regions */
};

extern const struct gantry_transport_ops fake_transport_ops;

void fake_transport_init(struct fake_transport *ft);
void fake_transport_fini(struct fake_transport *ft);
/* Allocate FAKE_SPARES spare connections, before the first transport exists. */
void fake_transport_spare(void);
/* Make the in-th call of an operation from now on return rc. */
void fake_fail_op(struct fake_transport *ft, enum fake_op op, unsigned in, int rc);

/* -- control plane: the test as the peer -- */

/*
 * Connect to a service of the core. Returns NULL if there is no listener. The next progress
 * delivers the events.
 */
struct fake_conn *fake_dial(struct fake_transport *ft, const char *service);
/*
 * Returns the connection that the core requested and that is neither accepted nor refused, or NULL.
 */
struct fake_conn *fake_pending(struct fake_transport *ft);
void fake_accept(struct fake_conn *conn);
/* Report to the core that the connection has ended for this reason. */
void fake_close(struct fake_conn *conn, int reason);
void fake_ctrl_send(struct fake_conn *conn, const void *msg, size_t len);
/* Take the oldest message of the core. Returns its length, or 0. buf: GANTRY_CTRL_MAX bytes. */
size_t fake_ctrl_recv(struct fake_conn *conn, void *buf);
void fake_revoke(struct fake_conn *conn, uint32_t handle);
/*
 * The peer has released a region that the core revoked; rc -ETIMEDOUT: it did not answer. Called
 * automatically if `keeps` is 0.
 */
void fake_revoked(struct fake_conn *conn, uint32_t handle, int rc);

/* -- queues -- */

/* A connection without a device, for tests of queues only. */
struct fake_conn *fake_conn_bare(struct fake_transport *ft);
/* Put a message into the consumer, as if the peer had sent it. */
void fake_arrive(struct fake_queue *consumer, const void *imm, uint32_t len);
/* Take the oldest message that the core sent. Returns 1, or 0 if there is none. */
int fake_taken(struct fake_queue *producer, void *imm);
void fake_queue_refuse(struct fake_queue *producer, int rc); /* rc 0: accept again */
void fake_queue_break(struct fake_queue *consumer, int rc);
/* Read a field of a queue under the lock. */
uint32_t fake_peek(struct fake_queue *queue, const uint32_t *value);
/* Set the results of moves; with hold 0, held moves can complete. */
void fake_rma_set(struct fake_rma *rma, int submit_rc, int status, int hold);

#endif
