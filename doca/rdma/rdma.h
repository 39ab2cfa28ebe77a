/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rdma.h - RDMA contexts on gantry transports: structures and functions that the files of this
 * module share
 *
 *   doca_rdma               a context                            doca_rdma.c, rdma_caps.c
 *     gd_rdma_task          a task of any type                   rdma_tasks.c, rdma_remote_tasks.c
 *     doca_rdma_connection  a connection as programs see it      rdma_conn.c, rdma_address.c
 *       gd_rdma_link        connection of the transport, queues  rdma_link.c
 *
 * Threads. The engine thread runs tasks (rdma_flow.c: messages; rdma_memory.c: reads and writes)
 * and owns connections. The service thread delivers the events of links, with the lock of the
 * transport held. It exchanges greetings with peers, creates the queues, and exports memory that
 * peers request, so these steps need no call of the program. It posts events to the engine. The
 * comment of a field names its thread, or says that the lock guards it.
 *
 * A message consists of one or more gantry messages: a head and up to GD_RDMA_PART bytes as
 * immediate data, and more bytes inline. A sender waits for a receive task of the peer: the
 * receiver posts only as many gantry receives as it has receive tasks.
 *
 * If the memory of the peer is mapped here (devices without `network`), the engine thread executes
 * remote reads and writes as plain copies. Otherwise the device executes them. The service thread
 * of the peer then exports the map of the buffer at its first use. It also executes atomic
 * operations on that memory.
 */
#ifndef GD_RDMA_H
#define GD_RDMA_H

#include <sys/queue.h>

#include "buf/buf.h"
#include "device/gd_device.h"
#include "engine/ctx.h"

#include <doca_rdma.h>
#include <doca_sync_event.h>

#include <stdbool.h>
#include <stdint.h>

#define GD_RDMA_DEPTH 64u  /* maximum number of gantry messages in flight on one connection */
#define GD_RDMA_GUESTS 64u /* maximum number of guests of a context: links without a connection */
#define GD_RDMA_MAX_MESSAGE (1u << 30)
#define GD_RDMA_MAX_QUEUE 65536u /* maximum number of tasks in a queue */
#define GD_RDMA_MAX_LIST 64u     /* maximum number of buffers in a list */

enum gd_rdma_kind {
	GD_RDMA_RECEIVE,
	GD_RDMA_SEND,
	GD_RDMA_SEND_IMM,
	GD_RDMA_READ,
	GD_RDMA_WRITE,
	GD_RDMA_WRITE_IMM,
	GD_RDMA_CMP_SWP,
	GD_RDMA_FETCH_ADD,
	GD_RDMA_EVENT_GET,
	GD_RDMA_EVENT_SET,
	GD_RDMA_EVENT_ADD,
	GD_RDMA_KINDS
};

/* Returns whether the task reads and changes memory of the peer atomically. */
static inline bool gd_rdma_is_atomic(enum gd_rdma_kind kind)
{
	return kind == GD_RDMA_CMP_SWP || kind == GD_RDMA_FETCH_ADD || kind == GD_RDMA_EVENT_ADD;
}

/* -- messages of peers -- */

/* identifies a connection: random, and a secret that only its blob contains */
struct gd_rdma_id {
	uint8_t bytes[16];
};

/* The connection details of doca_rdma_export(). */
struct gd_rdma_blob {
	uint32_t magic; /* GD_RDMA_MAGIC */
	uint16_t version;
	uint16_t zero;
	struct gd_rdma_id id;
	char service[64]; /* service on which the exporter listens */
};

#define GD_RDMA_MAGIC 0x4d445247u
#define GD_RDMA_VERSION 4u

/* Control messages of a link. */
enum gd_rdma_op {
	GD_RDMA_HELLO = 1,   /* first message, of the connecting side: struct gd_rdma_hello */
	GD_RDMA_WELCOME,     /* accepts the connection: struct gd_rdma_hello */
	GD_RDMA_RESOLVE,     /* requests the memory of a map: struct gd_rdma_resolve */
	GD_RDMA_RESOLVED,    /* answer with the token: struct gd_rdma_resolve */
	GD_RDMA_ATOMIC,      /* requests an atomic operation: struct gd_rdma_atomic */
	GD_RDMA_ATOMIC_DONE, /* answer with the previous value: struct gd_rdma_atomic */
};

struct gd_rdma_hello {
	uint32_t op;
	uint32_t magic;
	uint16_t version;
	uint16_t by_address;  /* connected by address, not by a blob: ids are zero */
	uint32_t max_inline;  /* maximum inline bytes that the sender accepts in one message */
	uint32_t permissions; /* rights to the memory of the sender: doca_access_flag */
	struct gd_rdma_id from, to;
};

struct gd_rdma_resolve {
	uint32_t op;
	uint32_t error; /* 0 or the doca_error_t of a rejection */
	struct gd_mmap_id map;
	struct gantry_token token;
};

struct gd_rdma_atomic {
	uint32_t op;
	uint32_t kind;  /* enum gd_rdma_kind: an atomic one; 0 in an answer */
	uint32_t error; /* 0 or the doca_error_t of a rejection */
	uint32_t zero;
	struct gd_mmap_id map;
	uint64_t offset;         /* in the map */
	uint64_t compare, value; /* operands; the answer has the previous value in `value` */
};

/* Head of a message, in its immediate data. */
struct gd_rdma_head {
	uint8_t kind;  /* enum doca_rdma_opcode */
	uint8_t first; /* 1: first part of a message */
	uint16_t zero;
	doca_be32_t imm;
	uint32_t length; /* bytes of the whole message; for a write: of the written data */
};

#define GD_RDMA_PART (GANTRY_IMM_MAX - (uint32_t)sizeof(struct gd_rdma_head))

/* -- tasks -- */

/* A task of any type. The public types are this structure under their own names. */
struct gd_rdma_task {
	struct doca_task task;
	STAILQ_ENTRY(gd_rdma_task) link; /* in a list of the connection, or in doca_rdma.receives */
	enum gd_rdma_kind kind;
	struct doca_rdma_connection *conn; /* receive: connection of the message */
	const struct doca_buf *src;
	struct doca_buf *dst;
	struct doca_buf *result; /* atomic operations: destination of the old value, or NULL */
	const struct doca_sync_event_remote_net *event;
	struct gd_rdma_remote *remote; /* memory that its pieces access */
	uint64_t value, compare;
	doca_be32_t imm;
	/* state while the task runs; engine */
	size_t length, done; /* bytes; done: sent, or submitted to the device */
	uint32_t pieces;     /* remote accesses in flight */
	bool accessed;       /* write with immediate data: the data is written */
	bool is_asked;       /* atomic operation: the peer has the request */
	bool is_flying;      /* in conn->flying */
	doca_error_t error;  /* status of a failure */
	/* receive task: the received message */
	enum doca_rdma_opcode opcode;
	uint32_t result_len;
};

STAILQ_HEAD(gd_rdma_tasks, gd_rdma_task);

/* -- links -- */

#define GD_RDMA_PENDING 0u
#define GD_RDMA_IMPORTED 1u
#define GD_RDMA_REJECTED 2u /* rejected or revoked: this value plus the doca_error_t */

/*
 * What a link knows of a map of the peer. The engine creates the structure under the lock. The
 * structure exists until the link is destroyed.
 */
struct gd_rdma_remote {
	struct gd_rdma_remote *next;
	struct gd_mmap_id map;
	/* set before `state` becomes GD_RDMA_IMPORTED; the engine releases it under the lock */
	struct gantry_region *region;
	uint32_t state;  /* __atomic: requested, imported, or rejected */
	uint32_t pieces; /* engine: accesses in flight */
};

/*
 * Memory of this side: an export for the peer (under the lock), or a registration for accesses of
 * this side (the engine reads it, and changes it under the lock).
 */
struct gd_rdma_local {
	struct gd_rdma_local *next;
	struct gd_mmap_id map;
	struct gantry_region region;
	struct gantry_token token;
};

struct gd_rdma_link {
	struct doca_rdma *rdma;
	struct gd_rdma_link *next;         /* next guest */
	struct doca_rdma_connection *conn; /* lock. NULL: a guest, a link without a connection */
	void *gantry;                      /* connection of the transport */
	bool is_connector;                 /* this side connects */
	bool welcome;                      /* lock: the greetings are exchanged */
	bool lost;                         /* lock: the transport has reported the end */
	uint32_t peer_id;                  /* lock: consumer of the peer, 0: not known */
	uint32_t max_inline;               /* maximum inline bytes of both sides */
	uint32_t permissions;              /* rights granted by the peer; fixed before conn->up */
	struct gd_rdma_id from;            /* id that the peer claims */
	void *consumer, *producer, *rma;   /* lock until conn->up has run, then engine */
	char *bounce;                      /* GD_RDMA_DEPTH receive buffers of bounce_bytes each */
	uint32_t bounce_bytes;
	uint32_t next_handle;          /* lock */
	struct gd_rdma_local *exports; /* lock */
	struct gd_rdma_local *locals;
	uint32_t moves; /* engine: gd_pages_moves() at the registration */
	struct gd_rdma_remote *remotes;
	bool release_posted;       /* lock: conn->revoked is posted */
	uint32_t atomic_phase;     /* __atomic: see rdma_atomic.c */
	doca_error_t atomic_error; /* the answer, which the phase publishes */
	uint64_t atomic_value;
};

enum gd_rdma_state {
	GD_RDMA_FREE,
	GD_RDMA_EXPORTED,  /* waits for doca_rdma_connect() */
	GD_RDMA_REQUESTED, /* the peer waits for accept or reject */
	GD_RDMA_WAITING,   /* waits for the peer */
	GD_RDMA_UP,
	GD_RDMA_OVER, /* the end is not yet reported to the program */
};

struct doca_rdma_addr {
	bool is_lent; /* owned by a connection */
	enum doca_rdma_addr_type type;
	uint16_t port;
	char text[64];
};

struct doca_rdma_connection {
	struct doca_rdma *rdma;
	struct doca_rdma_connection *next;      /* next of all connections of the context */
	struct doca_rdma_connection *next_live; /* engine: next connection with queues */
	uint32_t number;
	bool by_address; /* connected by address */
	bool lost;       /* engine: the peer has ended; its messages are still read */
	bool was_up;
	bool taken;               /* lock: the structure is in use */
	enum gd_rdma_state state; /* engine */
	struct gd_rdma_id id, peer;
	struct gd_rdma_blob blob;
	bool knows_peer;           /* lock: doca_rdma_connect() was called */
	void *listener;            /* lock */
	struct gd_rdma_link *link; /* lock; in state UP: engine */
	/* lock: link of a peer that connected before doca_rdma_connect() */
	struct gd_rdma_link *parked;
	struct gd_event requested, up, closed, over, bell, revoked;
	bool armed;
	union doca_data user_data;
	struct doca_rdma_addr addr; /* if this side connected by address: the address; else empty */
	struct gd_rdma_tasks sends; /* engine: tasks, in order */
	struct gd_rdma_tasks flying; /* engine: tasks that wait only for the device */
	uint32_t n_writes; /* number of writes in flying: a message must not overtake them */
	/* engine: state of the incoming message */
	struct gd_rdma_task *receiving;
	uint32_t left;         /* remaining bytes */
	uint32_t posted;       /* posted gantry receives */
	uint64_t free_bounces; /* bit mask */
};

struct doca_rdma {
	struct doca_ctx ctx;
	struct doca_rdma *next; /* next running context, see rdma_revoke.c */
	struct gd_pool pools[GD_RDMA_KINDS];
	/* configuration */
	enum doca_rdma_transport_type transport_type;
	enum doca_mtu_size mtu;
	uint32_t send_queue_size, recv_queue_size, max_send_list, max_receive_list, permissions,
		gid_index, sl;
	uint16_t max_connections, request_timeout;
	uint8_t grh, rnr_retry;
	bool has_gid;
	doca_rdma_connection_request_cb_t request_cb;
	doca_rdma_connection_established_cb_t established_cb;
	doca_rdma_connection_failure_cb_t failure_cb;
	doca_rdma_connection_disconnection_cb_t disconnection_cb;
	/* since the first start */
	struct gd_transport *transport;
	const struct gantry_transport_ops *ops;
	struct gantry_device_info limits;
	bool network; /* peers have network addresses */
	/*
	 * the device accesses remote memory, which is not mapped; a test may set it before it
	 * connects
	 */
	bool by_device;
	bool open;                          /* lock: new links are accepted */
	struct doca_rdma_connection *conns; /* lock, but the engine reads it without the lock */
	/* lock: the connection whose end was reported last; not reused before the next report */
	struct doca_rdma_connection *last_reported;
	uint32_t n_conns; /* lock: connections that are not FREE */
	uint32_t n_numbers;
	struct gd_rdma_link *guests; /* lock */
	uint32_t n_guests;
	void *listener; /* lock: listener of doca_rdma_start_listen_to_port() */
	uint16_t port;
	struct doca_rdma_connection *live; /* engine */
	struct gd_rdma_tasks receives;     /* engine: receive tasks without a message */
	uint32_t n_receives;               /* engine: number of tasks in `receives` */
	struct gd_event stopped;
	char *scratch; /* engine: limits.max_inline + GD_RDMA_PART bytes */
};

/* -- doca_rdma.c -- */
static inline struct doca_rdma *gd_rdma_of(struct doca_ctx *ctx)
{
	return (struct doca_rdma *)ctx;
}

/* Returns SUCCESS if the context is RUNNING, else BAD_STATE. INVALID_VALUE: NULL. */
doca_error_t gd_rdma_running(const struct doca_rdma *rdma);

/* -- rdma_caps.c -- */
/*
 * Get the network address of the device in the notation of a service ("192.0.2.7",
 * "[2001:db8::7]"). NOT_FOUND: it has none.
 */
doca_error_t gd_rdma_own_address(const struct doca_rdma *rdma, char *text, size_t size);

/* -- rdma_tasks.c -- */
void gd_rdma_tasks_init(struct doca_rdma *rdma);

/* -- rdma_conn.c -- */
/* Lock held. Allocate a connection and set its state. FULL, NO_MEMORY. */
doca_error_t gd_rdma_conn_alloc(struct doca_rdma *rdma, enum gd_rdma_state state,
				struct doca_rdma_connection **conn_p);
/* Lock held. Free a connection. */
void gd_rdma_conn_free(struct doca_rdma_connection *conn);
/*
 * Engine. Close a connection with its queues, link and listener. Its pending tasks end with
 * `status`. The program is not notified.
 */
void gd_rdma_conn_drop(struct doca_rdma_connection *conn, doca_error_t status);
/*
 * Engine. Like gd_rdma_conn_drop(), but the program is notified of the end. fails: true if the
 * failed tasks also stop the context.
 */
void gd_rdma_conn_over(struct doca_rdma_connection *conn, doca_error_t status, bool fails);
void gd_rdma_conns_free(struct doca_rdma *rdma);

/* -- rdma_link.c. Under the lock -- */
/* Callbacks for links. `arg` of the callbacks of a listener is the context. */
extern const struct gantry_conn_events gd_rdma_events;
doca_error_t gd_rdma_link_connect(struct doca_rdma_connection *conn, void *device,
				  const char *service);
/* Attach an accepted link to its connection, send WELCOME and create the queues. */
doca_error_t gd_rdma_link_welcome(struct gd_rdma_link *link, struct doca_rdma_connection *conn);
/* Destroy a link and its queues, and disconnect the peer. */
void gd_rdma_link_destroy(struct gd_rdma_link *link);
void gd_rdma_guest_drop(struct gd_rdma_link *link); /* destroys a guest */
void gd_rdma_guests_drop(struct doca_rdma *rdma);

/* -- rdma_flow.c. Engine -- */
void gd_rdma_submit(struct doca_rdma_connection *conn, struct gd_rdma_task *task);
/* Returns whether the device of the context can use all buffers of a task. */
bool gd_rdma_is_on_device(const struct doca_task *base);
void gd_rdma_submit_receive(struct doca_rdma *rdma, struct gd_rdma_task *task);
int gd_rdma_poll(struct doca_ctx *ctx);
int gd_rdma_arm(struct doca_ctx *ctx);
int gd_rdma_sleep_until_event(struct doca_ctx *ctx, struct pollfd *fds, int max);
void gd_rdma_rouse(struct doca_ctx *ctx);
void gd_rdma_unarm(struct doca_rdma_connection *conn);
void gd_rdma_flow_up(struct doca_rdma_connection *conn); /* the queues exist now */
/* the queues are about to be destroyed */
void gd_rdma_flow_down(struct doca_rdma_connection *conn);
/* Complete all pending tasks with `status`. fails: true if that also stops the context. */
void gd_rdma_flush(struct doca_rdma_connection *conn, doca_error_t status, bool fails);
void gd_rdma_flush_receives(struct doca_rdma *rdma, doca_error_t status);

/* -- rdma_memory.c, rdma_device.c, rdma_atomic.c -- */
/* Returns the right that the peer must grant for a task type, a doca_access_flag. */
uint32_t gd_rdma_right(enum gd_rdma_kind kind);
enum gd_rdma_step {
	GD_RDMA_WAIT, /* waits for the peer or the device: call again */
	GD_RDMA_DONE, /* complete, or failed: task->error */
	GD_RDMA_OUT,  /* all pieces are submitted to the device */
};

/* Memory of the peer that a task accesses. */
struct gd_rdma_target {
	struct doca_mmap *map;
	char *addr; /* address in the process that owns the memory */
	size_t length;
};

/* Engine. Access the memory of the peer for a task. */
enum gd_rdma_step gd_rdma_access(struct doca_rdma_connection *conn, struct gd_rdma_task *task);
/* Like gd_rdma_access(), but the device executes the access. */
enum gd_rdma_step gd_rdma_device_access(struct doca_rdma_connection *conn,
					struct gd_rdma_task *task,
					const struct gd_rdma_target *target);
/* Execute an atomic operation on 8 bytes. Returns their previous value. */
uint64_t gd_rdma_change(enum gd_rdma_kind kind, uint64_t *cell, uint64_t compare, uint64_t value);
/* Engine. Request an atomic operation from the peer, and then wait for its answer. */
enum gd_rdma_step gd_rdma_atomic_ask(struct doca_rdma_connection *conn, struct gd_rdma_task *task,
				     const struct gd_rdma_target *target);
enum gd_rdma_step gd_rdma_atomic_answer(struct doca_rdma_connection *conn,
					struct gd_rdma_task *task);
/* engine: returns whether a piece has completed */
bool gd_rdma_device_poll(struct doca_rdma_connection *conn);
/* Lock held. Handle messages about memory. false: the message is invalid. */
bool gd_rdma_on_resolve(struct gd_rdma_link *link, const struct gd_rdma_resolve *ask);
bool gd_rdma_on_resolved(struct gd_rdma_link *link, const struct gd_rdma_resolve *answer);
bool gd_rdma_on_atomic(struct gd_rdma_link *link, const struct gd_rdma_atomic *request);
bool gd_rdma_on_atomic_done(struct gd_rdma_link *link, const struct gd_rdma_atomic *answer);
/* lock held; no piece is in flight */
void gd_rdma_forget_locals(struct gd_rdma_link *link);
/* call after the queues of the link are destroyed and before the link is disconnected */
void gd_rdma_memory_release(struct gd_rdma_link *link);
void gd_rdma_memory_free(struct gd_rdma_link *link); /* call after the release */

/* -- rdma_revoke.c -- */
/*
 * The list of started contexts. When a map is revoked, the peers and devices of each context in the
 * list must release it. enlist: when a context starts; delist: when it stops.
 */
void gd_rdma_enlist(struct doca_rdma *rdma);
void gd_rdma_delist(struct doca_rdma *rdma);
/* Lock held. The peer revokes memory that it has exported to this side. */
void gd_rdma_on_revoke(struct gd_rdma_link *link, uint32_t handle);
/* Lock held. The peer has released memory of this side, or can no longer access it. */
void gd_rdma_on_revoked(struct gd_rdma_link *link, uint32_t handle);
/* engine: release revoked memory that no task uses */
void gd_rdma_release_revoked(struct doca_rdma_connection *conn);

#endif
