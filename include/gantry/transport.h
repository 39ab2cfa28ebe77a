/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * transport.h - a transport: devices, connections, message queues, remote memory.
 *
 * Objects and who may touch them
 *   device      one entry of `devices` in the configuration                 control thread
 *   listener    accepts connections for one service name                    control thread
 *   connection  a peer: control messages, regions, events                   control thread
 *   consumer    receive queue of a connection; one lane polls it made and destroyed by the control
 *               thread,
 *   producer    send queue towards one consumer of the peer; one lane used by one lane in between
 *   rma         remote read and write of imported regions; one lane
 *
 * Queues and rma of a connection that carry the same lane number are used by one thread: a
 * transport may let them share what it has (a queue pair, a completion queue). Lane numbers mean
 * the same at both ends.
 *
 * Events come only from progress() of the device, on the control thread. Nothing in this table
 * blocks.
 *
 * A message goes from a producer to a consumer in order. It consists of immediate data, which
 * arrives in the message itself, and of data, which arrives in the buffer that the receiver posted.
 * Small data travels inside the queue; the data of a region is copied exactly once, by the
 * consumer. A send while the consumer has nothing posted returns
 * -EAGAIN, and so does one that finds the queue full: poll and send again.
 *
 * When the peer dies, what it had published can still be polled; `closed` comes once, within 100
 * ms. After that sends return -ENOTCONN, and the owner destroys the queues and disconnects.
 *
 * A transport has at least open, close, info, progress and fd or wake_ns; listen, unlisten,
 * connect, send_ctrl and disconnect; create and destroy of consumers and producers; post_recv,
 * poll_recv and send; the first four slots of memory, and remote access where it cannot map. What
 * `info` says a device can, the table has functions for, or the device is refused. An empty slot
 * answers -ENOTSUP, or does nothing. The roles of gantry send immediate data only:
 * max_data is 0, and poll_send may be left out.
 *
 * Arguments that are out of their range are refused with -EINVAL, and change nothing.
 */
#ifndef GANTRY_TRANSPORT_H
#define GANTRY_TRANSPORT_H

#include <gantry/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GANTRY_CTRL_MAX 4096 /* bytes in a control message */
#define GANTRY_IMM_MAX 56    /* bytes of immediate data */

/* Rights that a region is exported with. */
#define GANTRY_REMOTE_READ 0x1u
#define GANTRY_REMOTE_WRITE 0x2u

/* What a transport can do. */
#define GANTRY_CAP_MAPPED 0x1u /* imported regions can be addressed by the CPU */
#define GANTRY_CAP_RMA 0x2u    /* remote read and write */
/* 0x4u was one that is now GANTRY_TRANSPORT_INSIDE */
/* a message sent after a remote write of the same lane arrives after its data, or not */
#define GANTRY_CAP_ORDERED 0x8u
/*   at all when that write fails, but for regions that are `unordered`; a flush of the */
/*   producer starts both */
/* memory of regions and queues is locked: it counts against RLIMIT_MEMLOCK */
#define GANTRY_CAP_PINS 0x10u
/* disconnect revokes each export that was sent over the connection */
#define GANTRY_CAP_DISCONNECT_REVOKES 0x20u
#define GANTRY_CAP_WRITE_IMM 0x40u /* remote writes with immediate data: rma_write_imm. 1.1 */

struct gantry_device_info {
	uint32_t caps;        /* GANTRY_CAP_* */
	uint32_t max_depth;   /* messages in a queue */
	uint32_t max_inline;  /* bytes of data that travel inside the queue */
	uint32_t max_regions; /* per connection */
	uint64_t max_region_bytes;
	uint32_t max_queues;  /* queue pairs that the device has; 0: no limit */
	uint32_t conn_queues; /* queue pairs that a connection takes by itself */
	uint32_t lane_queues; /* and each lane of it */
	uint32_t reserved;
	uint64_t conn_bytes; /* memory that a connection takes by itself */
	uint64_t lane_bytes; /* and each lane of it */
	char detail[96];     /* for people: where it lives, state */
};

/* What is true of all devices of a transport. */
#define GANTRY_TRANSPORT_INSIDE 0x1u /* reaches only peers in the same process */
/* the kernel reports the uid of each peer. The host treats a transport with */
#define GANTRY_TRANSPORT_UIDS 0x2u
/*   neither flag as a network, whose peers nothing authenticates. 1.1 */

/*
 * The peer of a connection. pid -1: not known (another PID namespace). pid -1 and uid -1: not known
 * (another machine).
 */
struct gantry_peer {
	int32_t pid;
	uint32_t uid, gid;
	char address[64];
};

/*
 * A piece of memory that can be exported. Made by the host from a sealed memfd, or by a transport
 * at import.
 * addr is NULL where the memory is not mapped in this process; fd is -1 where there is none.
 */
struct gantry_region {
	void *addr;
	uint64_t length; /* bytes */
	int fd;          /* memfd that holds it, at fd_offset */
	uint32_t rights; /* GANTRY_REMOTE_*: what may be done with it from outside */
	uint64_t fd_offset;
	uint32_t handle; /* imported: name of it on that connection */
	/* imported: `kind` of the token, so that a transport knows its own; 0: made by the host */
	uint32_t domain;
	void *transport; /* imported: what the transport keeps with it */
	/*
	 * imported: remote writes to it are not ordered with messages, even with GANTRY_CAP_ORDERED
	 */
	uint32_t unordered;
	uint32_t reserved; /* 0 */
};

/* For import_region. A transport ignores the flags that it does not know. */
#define GANTRY_IMPORT_MAP 0x1u /* addr is wanted: only with GANTRY_CAP_MAPPED. 1.1 */
/* the peer must keep all pages of the memory. If it can free pages that this process */
#define GANTRY_IMPORT_KEEPS_PAGES 0x2u
/*   touches, the transport rejects a region in a file with holes, and ends the */
/*   connection when it finds that the peer has freed some, until release_region. 1.1 */

/*
 * An export, as it travels in a control message: plain bytes, meaningful only on the connection it
 * was made for.
 */
struct gantry_token {
	uint32_t kind; /* the transport's own number */
	uint32_t handle;
	uint64_t length;
	uint32_t rights;
	uint32_t generation;
	uint64_t opaque[4]; /* address, key or whatever the transport needs */
};

/*
 * Events of a connection. `arg` is what listen or connect got, or what `accept` answered. Those
 * that cannot come may be NULL: `accept` for who connects, `connected` for who listens, `revoked`
 * for who exports nothing.
 */
struct gantry_conn_events {
	/*
	 * A peer connected to a listener (arg: the listener's). Return 0 to take it, with the
	 * argument for its own events in *conn_arg_p; non-zero to refuse it: the transport then
	 * frees conn. send_ctrl may be called here: the peer gets the messages after `connected`,
	 * even if the owner calls disconnect at once.
	 */
	int (*accept)(void *arg, void *conn, const struct gantry_peer *peer, void **conn_arg_p);
	/* connect() got through. */
	void (*connected)(void *arg, void *conn, const struct gantry_peer *peer);
	/* A control message; valid during the call. */
	void (*message)(void *arg, void *conn, const void *msg, size_t len);
	/* A consumer of the peer appeared (up != 0) or went away. */
	void (*consumer)(void *arg, void *conn, uint32_t id, int up);
	/* The peer wants its region back: stop using it, then call release_region. */
	void (*revoke)(void *arg, void *conn, uint32_t handle);
	/*
	 * revoke_region() is done: no agent of the peer can touch the region any more. rc
	 * -ETIMEDOUT: not known. It comes as well, before `closed`, for each export that ends with
	 * its connection.
	 */
	void (*revoked)(void *arg, void *conn, uint32_t handle, int rc);
	/*
	 * The connection is over; comes once. reason: -ENOTCONN the peer died or left, -ETIMEDOUT,
	 * -EPROTO it broke the protocol, -ECONNREFUSED no listener at the address, or it ended
	 * before it accepted, -EACCES credentials, or `accept` refused, -EBUSY the peer cannot take
	 * another connection now. Nothing follows; the owner destroys its queues and calls
	 * disconnect.
	 */
	void (*closed)(void *arg, void *conn, int reason);
};

/*
 * Who waits for the consumer's fd hears each new signal, also while an old one stands (EPOLLET):
 * none need be cleared for it.
 */
#define GANTRY_QUEUE_EDGES 1u
/*
 * The peer hears of each receive when it is posted, not of several together: the lane may be busy,
 * and not come to poll. 1.1.
 */
#define GANTRY_QUEUE_PROMPT 2u

struct gantry_queue_attr {
	/* consumer: receives that can be posted; producer: messages in flight; 1 .. max_depth */
	uint32_t depth;
	uint32_t max_data;  /* bytes of data in one message; 0: immediate data only */
	uint32_t lane;      /* which thread uses it, see above */
	uint32_t flags;     /* consumer: GANTRY_QUEUE_* */
	const void *thread; /* names that thread within the process; NULL: not known */
};

/* For consumer_set_inline_handler: who takes a message of immediate data at once. */
struct gantry_inline_handler {
	const void *thread; /* of the consumer's lane, as in struct gantry_queue_attr */
	/*
	 * Inside the send of the producer; imm is its. 0, or -EAGAIN: not now, send it again later.
	 */
	int (*take)(void *arg, const void *imm, uint32_t imm_len);
	void *arg;
};

/* A posted receive: where the data of one message may be put. buf NULL: immediate data only. */
struct gantry_recv {
	void *buf;
	uint32_t length; /* bytes */
	uint32_t reserved;
	uint64_t cookie;
};

struct gantry_send {
	const void *imm; /* up to GANTRY_IMM_MAX bytes, copied before send returns */
	uint32_t imm_len;
	uint32_t length; /* bytes of data */
	/* up to max_inline bytes, copied before send returns; or */
	const void *data;
	/* an exported region that holds them at region_offset: not to be changed */
	const struct gantry_region *region;
	/*   until the completion of this send has been polled, or see producer_destroy */
	uint64_t region_offset;
	uint64_t cookie; /* of that completion */
};

#define GANTRY_SEND_MORE 0x1u /* more follows at once: the doorbell may wait for the last */

/* A message that arrived: a private copy. */
struct gantry_msg {
	uint8_t imm[GANTRY_IMM_MAX];
	uint32_t imm_len;
	/* 0; -EMSGSIZE: the posted buffer was too small; -EFAULT: the region was not readable */
	int32_t status;
	uint32_t length;   /* bytes put into the posted buffer */
	uint32_t producer; /* number of the sender among the producers of this consumer */
	uint64_t cookie;   /* of the receive that it used */
};

enum gantry_rma_op { GANTRY_RMA_READ, GANTRY_RMA_WRITE };

struct gantry_rma {
	uint32_t op;     /* enum gantry_rma_op */
	uint32_t length; /* bytes */
	void *local;     /* address in local_region */
	/* registered on the same connection; NULL: only without GANTRY_CAP_PINS */
	const struct gantry_region *local_region;
	const struct gantry_region *remote; /* imported on the same connection */
	uint64_t remote_offset;             /* bytes in it */
	uint64_t cookie;
};

struct gantry_rma_done {
	uint64_t cookie;
	int32_t status; /* 0, -EACCES, -ERANGE, -ENOTCONN */
	uint32_t reserved;
};

struct gantry_transport_ops {
	/* -- device -- */
	/*
	 * Make the device `host->name` from its options. Logs why it failed; -ENODEV and -ENOENT:
	 * this machine does not have it. -EAGAIN, with GANTRY_HOST_DRY_RUN only: it is not there,
	 * and would be made.
	 */
	int (*open)(const struct gantry_host *host, const void *conf, void **device_p);
	/*
	 * Describe what this machine has for the transport, whether or not the configuration uses
	 * it: one object per device with `name`, `state` and whatever limits and addresses are
	 * known. Called in an array, without a device. Returns how many, or -errno after a line in
	 * the log that says what is missing. Slot empty: nothing to find.
	 */
	int (*scan)(const struct gantry_host *host, struct gantry_writer *w);
	void (*close)(void *device); /* after all its connections and listeners */
	void (*info)(void *device, struct gantry_device_info *info);
	/*
	 * readable when progress has work; always the same. -1: progress is called at wake_ns only
	 */
	int (*fd)(void *device);
	/* Deliver events. Returns how many. Also to be called when wake_ns has come. */
	int (*progress)(void *device);
	uint64_t (*wake_ns)(void *device); /* absolute time, as of host->now_ns; 0: none */

	/* -- connection -- */
	/* service: a name or an address, 1 .. 63 bytes. -EADDRINUSE: another listener serves it. */
	int (*listen)(void *device, const char *service, const struct gantry_conn_events *events,
		      void *arg, void **listener_p);
	void (*unlisten)(void *listener); /* its connections live on */
	/*
	 * Starts connecting; ends with `connected` or `closed`. -errno only when it could not even
	 * start.
	 */
	int (*connect)(void *device, const char *service, const struct gantry_conn_events *events,
		       void *arg, void **conn_p);
	/*
	 * 1 .. GANTRY_CTRL_MAX bytes, in order: the peer knows by then what was exported and which
	 * consumers were made before. -EAGAIN: the peer does not read; -ENOTCONN.
	 */
	int (*send_ctrl)(void *conn, const void *msg, size_t len);
	/* End it (no event follows) and free it; the queues must be destroyed before. */
	void (*disconnect)(void *conn);

	/* -- memory -- */
	/*
	 * Let the peer of conn use a region (made by the host or imported from any connection:
	 * re-export). `handle` is the caller's choice, unique among the exports of the connection.
	 * The token is for the peer, which gets it in a control message. rights: not 0, and none
	 * that the region does not have: -EACCES. -ENOSPC: more than max_regions. The pages of a
	 * memfd must be allocated, see gantry_memfd_populate; -ENOMEM: pages are missing, and the
	 * kernel would charge the peer for them.
	 */
	int (*export_region)(void *conn, const struct gantry_region *region, uint32_t rights,
			     uint32_t handle, struct gantry_token *token_p);
	/*
	 * Take the export that the peer named. flags: GANTRY_IMPORT_*. The region belongs to the
	 * transport until release_region. As often as wanted: each import is released by itself,
	 * and the export stays until it is revoked. Nothing in a token is believed. -ENOENT: no
	 * such export, or one that was revoked, also where its handle names another now; -EPERM bad
	 * seals, -ERANGE, -ENOMEM: also if the file of the region has holes
	 * (GANTRY_IMPORT_KEEPS_PAGES).
	 */
	int (*import_region)(void *conn, const struct gantry_token *token, uint32_t flags,
			     struct gantry_region **region_p);
	/* signs off: no use of it after this */
	void (*release_region)(void *conn, struct gantry_region *region);
	/*
	 * Ask for an exported region back; ends with `revoked`, which waits for the last release.
	 * -ENOENT: no such export.
	 */
	int (*revoke_region)(void *conn, uint32_t handle);
	/*
	 * Let rma of this connection use memory of this process as their local side. Slot empty:
	 * nothing to do.
	 * Undone by unregister_region, after the last rma that uses it is destroyed. -ENOMEM: see
	 * RLIMIT_MEMLOCK.
	 */
	int (*register_region)(void *conn, const struct gantry_region *region);
	void (*unregister_region)(void *conn, const struct gantry_region *region);

	/*
	 * -- queues: a consumer has one producer, or several, of any lanes; -ENOENT: the peer has
	 * no such consumer --
	 */
	int (*consumer_create)(void *conn, const struct gantry_queue_attr *attr, uint32_t *id_p,
			       void **consumer_p);
	void (*consumer_destroy)(void *consumer);
	int (*producer_create)(void *conn, uint32_t consumer_id,
			       const struct gantry_queue_attr *attr, void **producer_p);
	/*
	 * The data of regions whose sends were not polled may be changed when this has returned.
	 * The peer has read it by then, or never delivers it: shm-comch drops the message, loop
	 * fails the receive with -EFAULT, and a connection over RDMA ends.
	 */
	void (*producer_destroy)(void *producer);
	/* depth and lane of it */
	int (*rma_create)(void *conn, const struct gantry_queue_attr *attr, void **rma_p);
	void (*rma_destroy)(void *rma);

	/*
	 * -- data path: the lane's thread; no allocation, no system call while the other side polls
	 * --
	 */
	/* Post n receives; recvs NULL: n without buffer and cookie. -ENOSPC: more than depth. */
	int (*post_recv)(void *consumer, const struct gantry_recv *recvs, uint32_t n);
	/*
	 * Take up to max messages that arrived. Returns how many; -EPROTO: the peer broke the
	 * queue, nothing more comes.
	 */
	int (*poll_recv)(void *consumer, struct gantry_msg *msgs, uint32_t max);
	/*
	 * As struct gantry_poller. The fd tells of the end of remote accesses of the same lane too;
	 * what ended before this call it need not tell: poll them once more after it.
	 */
	int (*consumer_arm)(void *consumer);
	void (*consumer_disarm)(void *consumer);
	int (*consumer_fd)(void *consumer);
	/* Send one message. 0, -EAGAIN, -ENOTCONN, -EMSGSIZE, -EINVAL. */
	int (*send)(void *producer, const struct gantry_send *send, uint32_t flags);
	/* Ring the doorbell for what was sent with GANTRY_SEND_MORE. */
	void (*flush)(void *producer);
	/* Cookies of sends with a region whose data has been copied; returns how many. */
	int (*poll_send)(void *producer, uint64_t *cookies, uint32_t max);
	/*
	 * 0, -EAGAIN, -ERANGE, -EACCES (also for a region of another connection), -ENOTCONN. It
	 * starts at the latest with rma_flush, or flush of a producer of the lane. What returned 0
	 * is polled once, also when the connection is lost: then with -ENOTCONN.
	 */
	int (*rma_submit)(void *rma, const struct gantry_rma *op);
	void (*rma_flush)(void *rma);
	int (*rma_poll)(void *rma, struct gantry_rma_done *done, uint32_t max);

	/*
	 * From now on (direct NULL: no longer) a message whose producer is used by the same thread
	 * may be given to direct->take instead of being queued, also when the connection is lost
	 * meanwhile. Copied. The lane's thread, or while it is stopped; NULL again before the
	 * consumer is destroyed. Slot empty: all are queued.
	 */
	void (*consumer_set_inline_handler)(void *consumer,
					    const struct gantry_inline_handler *direct);
	/*
	 * Who takes messages of this producer directly: take is NULL while nobody does, which any
	 * call may change. Instead of `send`, its lane's thread may call what stands there. Valid
	 * while the producer is. Slot empty: nobody.
	 */
	const struct gantry_inline_handler *(*producer_inline_handler)(void *producer);

	/* -- configuration -- */
	/*
	 * What is wrong with a service, as a text that may follow it ("is no address; write ...");
	 * NULL: nothing. Called without a device, and looks at the text only. Slot empty: any text
	 * will do.
	 */
	const char *(*check_service)(const char *service);
	uint32_t flags; /* GANTRY_TRANSPORT_* */

	/*
	 * Since 1.1, with GANTRY_CAP_WRITE_IMM, on the data path: a remote write as by rma_submit,
	 * to a region that is not `unordered`, with 4 bytes of immediate data (note). When all of
	 * the data has arrived, the consumer of the same lane at the peer receives a message: it
	 * uses one posted receive, `note` is its immediate data, its producer is 0. If the write
	 * fails, the message is never received. The peer's transport must have GANTRY_CAP_WRITE_IMM
	 * as well.
	 * -EAGAIN: the queue is full, or the consumer at the peer has no receive posted.
	 * -EMSGSIZE: the data is too long for this call; so is any longer data.
	 */
	int (*rma_write_imm)(void *rma, const struct gantry_rma *op, uint32_t note);

	/*
	 * Of the data path, and part of 1.1: what has just been polled is likely to be answered by
	 * the next send of this producer, so get ready what that will write to. Nothing else
	 * changes, and nothing need follow. Slot empty: nothing to get ready.
	 */
	void (*send_prefetch)(void *producer);

	/*
	 * Part of 1.1: bytes that one more export may have, as far as this end knows what the peer
	 * takes; that of more fails with -E2BIG. Slot empty: nothing is known.
	 */
	uint64_t (*export_limit)(void *conn);

	/*
	 * Report how many connections all listeners of a device can have at a time. The host
	 * rejects a configuration in which the roles of one process may accept more sessions than
	 * that on the device.
	 *
	 * conf     as for open
	 * returns  the number; 0: no limit
	 * thread   control thread; without a device. Must not inspect the system
	 * since    1.1. NULL: no limit
	 */
	uint32_t (*max_connections)(const void *conf);

	/*
	 * Report why the last import_region of a connection failed.
	 *
	 * returns  a text for the peer and the log, valid until the next import_region of conn; "":
	 *          only the error number
	 * thread   control thread
	 * since    1.1. NULL: always ""
	 */
	const char *(*import_error)(void *conn);

	/*
	 * Report why the peer refused this connection, or ended it.
	 *
	 * returns  the text of the peer, one line of printable characters, valid until disconnect;
	 *          NULL: the peer gave no reason
	 * thread   control thread; from `closed` on
	 * since    1.1. NULL: always NULL
	 */
	const char *(*refusal)(void *conn);
};

#ifdef __cplusplus
}
#endif

#endif
