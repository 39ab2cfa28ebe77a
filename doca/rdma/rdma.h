/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rdma.h - RDMA over gantry's transports: what its files share.
 *
 *   doca_rdma                 a context doca_rdma.c, caps.c
 *     gd_rdma_task            work of any kind: sends, receives, remote memory tasks.c,
 *                             remote_tasks.c
 *     doca_rdma_connection    what a program sees of a peer, and the tasks for it     conn.c cm.c
 *       gd_rdma_link          what the transport has of it: connection and queues     link.c
 *
 * Two threads. The engine's thread runs tasks (flow.c: messages; memory.c: reads and writes) and
 * owns connections. The service thread delivers the events of links, with the transport's lock
 * held: it greets peers, makes the queues, and finds memory for peers that want to reach it, so all
 * of that works while the program does something else. It tells the engine by events. Fields say
 * whose they are; what the lock guards is marked.
 *
 * A message is one or more gantry messages: a head and up to GD_RDMA_PART bytes in the immediate
 * data, more inline. A sender waits until the peer has a receive task: only so many messages are
 * let in.
 *
 * Where the memory of the peer is mapped here (devices without `network`) remote reads and writes
 * are plain copies, done when their turn comes. Else the peer's service thread exports the map that
 * the buffer belongs to, at its first use.
 */
#ifndef GD_RDMA_H
#define GD_RDMA_H

#include "buf/buf.h"
#include "device/device.h"
#include "engine/ctx.h"

#include <doca_rdma.h>
#include <doca_sync_event.h>

#include <stdbool.h>
#include <stdint.h>

#define GD_RDMA_DEPTH 64u  /* gantry messages on their way to one connection */
#define GD_RDMA_GUESTS 64u /* peers that have not said yet whom they want, of one context */
#define GD_RDMA_MAX_MESSAGE (1u << 30)
#define GD_RDMA_MAX_QUEUE 65536u /* tasks, as the capabilities say */
#define GD_RDMA_MAX_LIST 64u     /* buffers in a chain */

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

/*
 * Changes the peer's memory in one step with reading it: transports have no such operation, only
 * the CPU has.
 */
static inline bool gd_rdma_is_atomic(enum gd_rdma_kind kind)
{
	return kind == GD_RDMA_CMP_SWP || kind == GD_RDMA_FETCH_ADD || kind == GD_RDMA_EVENT_ADD;
}

/* -- what peers say -- */

/* of a connection: random, and a secret that only its blob tells */
struct gd_rdma_id {
	uint8_t bytes[16];
};

/* What doca_rdma_export gives out. */
struct gd_rdma_blob {
	uint32_t magic; /* GD_RDMA_MAGIC */
	uint16_t version;
	uint16_t zero;
	struct gd_rdma_id id;
	char service[64]; /* where the exporter listens */
};

#define GD_RDMA_MAGIC 0x4d445247u
#define GD_RDMA_VERSION 2u

/* Control messages of a link. */
enum gd_rdma_say {
	GD_RDMA_HELLO = 1, /* who connects says so first: struct gd_rdma_hello */
	GD_RDMA_WELCOME,   /* and is taken: the same */
	GD_RDMA_RESOLVE,   /* where is that memory? struct gd_rdma_resolve */
	GD_RDMA_RESOLVED,  /* the same, with the token */
};

struct gd_rdma_hello {
	uint32_t say;
	uint32_t magic;
	uint16_t version;
	uint16_t by_address;  /* connected by address, not by a blob: ids are zero */
	uint32_t max_inline;  /* bytes of data in one message that it takes */
	uint32_t permissions; /* what may be done to its memory: doca_access_flag */
	struct gd_rdma_id from, to;
};

struct gd_rdma_resolve {
	uint32_t say;
	uint32_t refused; /* doca_error_t */
	struct gd_mmap_id map;
	struct gantry_token token;
};

/* Head of a message, in its immediate data. */
struct gd_rdma_head {
	uint8_t kind;  /* enum doca_rdma_opcode */
	uint8_t first; /* begins a message */
	uint16_t zero;
	doca_be32_t imm;
	uint32_t length; /* bytes of the whole message; of its data for a write */
};

#define GD_RDMA_PART (GANTRY_IMM_MAX - (uint32_t)sizeof(struct gd_rdma_head))

/* -- tasks -- */

/* A task of any kind; the public types are this one under their own names. */
struct gd_rdma_task {
	struct doca_task task;
	enum gd_rdma_kind kind;
	struct doca_rdma_connection *conn; /* receive: where the message came from */
	const struct doca_buf *src;
	struct doca_buf *dst;
	struct doca_buf *result; /* of atomic operations: the value before; may be NULL */
	const struct doca_sync_event_remote_net *event;
	struct gd_rdma_remote *remote; /* that its pieces go to */
	uint64_t value, compare;
	doca_be32_t imm;
	/* while it runs: engine */
	size_t length, done;  /* bytes; done: sent, or handed to the device */
	uint32_t pieces;      /* of remote memory access, under way */
	bool accessed;        /* of a write with immediate data: the data is there */
	bool flies;           /* in conn->flying */
	doca_error_t trouble; /* why it fails */
	/* receive: its result */
	enum doca_rdma_opcode opcode;
	uint32_t result_len;
};

struct gd_rdma_list {
	struct doca_task *first, **last;
	uint32_t n;
};

void gd_rdma_list_init(struct gd_rdma_list *list);
void gd_rdma_list_add(struct gd_rdma_list *list, struct gd_rdma_task *task);
struct gd_rdma_task *gd_rdma_list_first(const struct gd_rdma_list *list); /* NULL: empty */
bool gd_rdma_list_remove(struct gd_rdma_list *list, struct gd_rdma_task *task);

/* -- links -- */

#define GD_RDMA_ASKED 0u
#define GD_RDMA_HERE 1u
#define GD_RDMA_REFUSED 2u /* or taken back; and the doca_error_t */

/*
 * Memory of the peer, as this link knows it. Made by the engine under the lock; stays until the
 * link goes.
 */
struct gd_rdma_remote {
	struct gd_rdma_remote *next;
	struct gd_mmap_id map;
	/* once `state` says so, and until it is given back: engine, under the lock */
	struct gantry_region *region;
	uint32_t state;  /* __atomic: asked for, here, or refused */
	uint32_t pieces; /* engine: under way to it */
};

/*
 * Memory of ours that the peer asked for (lock), or that this side's reads and writes use (engine,
 * changed under the lock).
 */
struct gd_rdma_local {
	struct gd_rdma_local *next;
	struct gd_mmap_id map;
	struct gantry_region region;
	struct gantry_token token;
};

struct gd_rdma_link {
	struct doca_rdma *rdma;
	struct gd_rdma_link *next;         /* of the guests */
	struct doca_rdma_connection *conn; /* lock. NULL: a guest */
	void *gantry;                      /* the transport's connection */
	bool asks;                         /* this side connects */
	bool welcome;                      /* lock: both sides know each other */
	bool lost;                         /* lock: `closed` came */
	uint32_t peer_id;                  /* lock: the peer's consumer, 0: not yet */
	uint32_t max_inline;               /* bytes that both take */
	uint32_t permissions;              /* of the peer; fixed before conn->up */
	struct gd_rdma_id from;            /* who the peer says it is */
	void *consumer, *producer, *rma;   /* lock until conn->up has run, then the engine's */
	char *bounce;                      /* GD_RDMA_DEPTH times max_inline of ours */
	uint32_t bounce_bytes;
	uint32_t next_handle;          /* lock */
	struct gd_rdma_local *exports; /* lock */
	struct gd_rdma_local *locals;
	uint32_t moves; /* engine: gd_pages_moves() when they were registered */
	struct gd_rdma_remote *remotes;
	bool gives_back; /* lock: conn->revoked is posted */
};

enum gd_rdma_state {
	GD_RDMA_FREE,
	GD_RDMA_EXPORTED,  /* waits for doca_rdma_connect */
	GD_RDMA_REQUESTED, /* the peer waits for an answer of the program */
	GD_RDMA_WAITING,   /* for the peer */
	GD_RDMA_UP,
	GD_RDMA_OVER, /* the program has yet to hear of it */
};

struct doca_rdma_addr {
	bool is_lent; /* the library's: of a connection */
	enum doca_rdma_addr_type type;
	uint16_t port;
	char text[64];
};

struct doca_rdma_connection {
	struct doca_rdma *rdma;
	struct doca_rdma_connection *next;      /* of the context: all */
	struct doca_rdma_connection *next_live; /* engine: those with queues */
	uint32_t number;
	bool by_address; /* rdma_cm */
	bool lost;       /* engine: what it sent is read to the end */
	bool was_up;
	bool taken;               /* lock: else it may be given out again */
	enum gd_rdma_state state; /* engine */
	struct gd_rdma_id id, peer;
	struct gd_rdma_blob blob;
	bool knows_peer;             /* lock: doca_rdma_connect was called */
	void *listener;              /* lock */
	struct gd_rdma_link *link;   /* lock; of UP: the engine's */
	struct gd_rdma_link *parked; /* lock: the peer was faster than doca_rdma_connect */
	struct gd_event requested, up, closed, over, bell, revoked;
	bool armed;
	union doca_data user_data;
	struct doca_rdma_addr addr; /* that it connected to, if by_address; else empty */
	struct gd_rdma_list sends;  /* engine: tasks in order */
	struct gd_rdma_list flying; /* engine: and those that only wait for the device */
	uint32_t n_writes;          /* of flying: what a message may not overtake */
	/* engine: the message that is coming in */
	struct gd_rdma_task *receiving;
	uint32_t left;         /* bytes of it */
	uint32_t posted;       /* gantry receives */
	uint64_t free_bounces; /* bit mask */
};

struct doca_rdma {
	struct doca_ctx ctx;
	struct doca_rdma *next; /* of those that run: revoke.c */
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
	/* since it was started first */
	struct gd_transport *transport;
	const struct gantry_transport_ops *ops;
	struct gantry_device_info limits;
	bool network; /* peers have addresses, not names */
	/*
	 * remote memory is reached by the device, not mapped; a test may say so before it connects
	 */
	bool by_device;
	bool open;                          /* lock: new peers are welcome */
	struct doca_rdma_connection *conns; /* lock; engine may read */
	/* lock: the last whose end was told; nobody else's until the next ends */
	struct doca_rdma_connection *told;
	uint32_t n_conns; /* lock: not FREE */
	uint32_t n_numbers;
	struct gd_rdma_link *guests; /* lock */
	uint32_t n_guests;
	void *listener; /* lock: of start_listen_to_port */
	uint16_t port;
	struct doca_rdma_connection *live; /* engine */
	struct gd_rdma_list receives;      /* engine */
	struct gd_event stopped;
	char *scratch; /* engine: limits.max_inline + GD_RDMA_PART bytes */
};

/* -- doca_rdma.c -- */
static inline struct doca_rdma *gd_rdma_of(struct doca_ctx *ctx)
{
	return (struct doca_rdma *)ctx;
}

/* RUNNING, else BAD_STATE; INVALID_VALUE: NULL. */
doca_error_t gd_rdma_running(const struct doca_rdma *rdma);

/* -- caps.c -- */
/*
 * Address of the device's network, as a service text has it ("192.0.2.7", "[2001:db8::7]");
 * NOT_FOUND.
 */
doca_error_t gd_rdma_own_address(const struct doca_rdma *rdma, char *text, size_t size);

/* -- tasks.c -- */
void gd_rdma_tasks_init(struct doca_rdma *rdma);

/* -- conn.c -- */
/* Under the lock. A connection that is not FREE; FULL, NO_MEMORY. */
doca_error_t gd_rdma_conn_take(struct doca_rdma *rdma, enum gd_rdma_state state,
			       struct doca_rdma_connection **conn_p);
/* Undo it, unless it was used. */
void gd_rdma_conn_give(struct doca_rdma_connection *conn);
/*
 * Engine. Let the peer go, with queues, link and listeners; what waits for it ends with `status`.
 * The program is not told.
 */
void gd_rdma_conn_drop(struct doca_rdma_connection *conn, doca_error_t status);
/*
 * Engine. It is over: the same, and the program will be told. A status that fails tasks stops the
 * context.
 */
void gd_rdma_conn_over(struct doca_rdma_connection *conn, doca_error_t status, bool fails);
void gd_rdma_conns_free(struct doca_rdma *rdma);

/* -- link.c. Under the lock -- */
extern const struct gantry_conn_events gd_rdma_events; /* argument of a listener: the context */
doca_error_t gd_rdma_link_connect(struct doca_rdma_connection *conn, void *device,
				  const char *service);
/* The peer of a guest is the one: attach it and let it know. */
doca_error_t gd_rdma_link_welcome(struct gd_rdma_link *link, struct doca_rdma_connection *conn);
void gd_rdma_link_destroy(struct gd_rdma_link *link); /* with its queues; the peer is told */
void gd_rdma_guest_drop(struct gd_rdma_link *link);   /* of a guest */
void gd_rdma_guests_drop(struct doca_rdma *rdma);

/* -- flow.c. Engine -- */
void gd_rdma_submit(struct doca_rdma_connection *conn, struct gd_rdma_task *task);
void gd_rdma_submit_receive(struct doca_rdma *rdma, struct gd_rdma_task *task);
int gd_rdma_poll(struct doca_ctx *ctx);
int gd_rdma_arm(struct doca_ctx *ctx);
int gd_rdma_sleep_until_event(struct doca_ctx *ctx, struct pollfd *fds, int max);
void gd_rdma_rouse(struct doca_ctx *ctx);
void gd_rdma_unarm(struct doca_rdma_connection *conn);
void gd_rdma_flow_up(struct doca_rdma_connection *conn);   /* its queues are there */
void gd_rdma_flow_down(struct doca_rdma_connection *conn); /* and are about to go */
/* All that waits ends with status. */
void gd_rdma_flush(struct doca_rdma_connection *conn, doca_error_t status, bool fails);
void gd_rdma_flush_receives(struct doca_rdma *rdma, doca_error_t status);

/* -- memory.c, device.c -- */
enum gd_rdma_step {
	GD_RDMA_WAIT, /* for the peer or the device: come again */
	GD_RDMA_DONE, /* all of it is done, or failed: task->trouble */
	GD_RDMA_OUT,  /* all pieces are with the device */
};

/* What a task reads or changes in the peer's memory. */
struct gd_rdma_target {
	struct doca_mmap *map;
	char *addr; /* as the map has it: the owner's */
	size_t length;
};

/* engine */
enum gd_rdma_step gd_rdma_access(struct doca_rdma_connection *conn, struct gd_rdma_task *task);
/* The same, by the device. */
enum gd_rdma_step gd_rdma_device_access(struct doca_rdma_connection *conn,
					struct gd_rdma_task *task,
					const struct gd_rdma_target *target);
bool gd_rdma_device_poll(struct doca_rdma_connection *conn); /* engine: a piece has ended */
/* Under the lock: messages about memory. False: they make no sense. */
bool gd_rdma_on_resolve(struct gd_rdma_link *link, const struct gd_rdma_resolve *ask);
bool gd_rdma_on_resolved(struct gd_rdma_link *link, const struct gd_rdma_resolve *answer);
/* under the lock; while no piece is in flight */
void gd_rdma_forget_locals(struct gd_rdma_link *link);
void gd_rdma_memory_release(struct gd_rdma_link *link); /* before the link goes, after its queues */
void gd_rdma_memory_free(struct gd_rdma_link *link);    /* and after */

/* -- revoke.c -- */
/* of those from whose peers maps are taken back; as long as it runs */
void gd_rdma_enlist(struct doca_rdma *rdma);
void gd_rdma_delist(struct doca_rdma *rdma);
/* Under the lock. The peer asks for memory of its own; memory of ours is back. */
void gd_rdma_on_revoke(struct gd_rdma_link *link, uint32_t handle);
void gd_rdma_on_revoked(struct gd_rdma_link *link, uint32_t handle);
/* engine: what the peer asked for and nothing uses */
void gd_rdma_give_back(struct doca_rdma_connection *conn);

#endif
