/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * transport.h - the interface of a transport: devices, connections, message queues, remote memory
 * access.
 *
 * Objects, and the thread that uses them
 *   device      one entry of `devices` in the configuration      control thread
 *   listener    accepts connections for one service name         control thread
 *   connection  a peer: control messages, regions, events        control thread
 *   consumer    receive queue of a connection                    lane's thread
 *   producer    send queue towards one consumer of the peer      lane's thread
 *   rma         remote reads and writes of imported regions      lane's thread
 *
 * The control thread creates and destroys consumers, producers and rma objects. Between these
 * calls, one lane uses each object.
 *
 * All queues and rma objects of a connection with the same lane number are used by one thread. So a
 * transport can let these objects share resources (a queue pair, a completion queue). A lane number
 * identifies the same lane at both ends.
 *
 * Events come only from progress() of the device, on the control thread. No function in this table
 * blocks.
 *
 * Messages of a producer arrive at its consumer in order. A message is up to GANTRY_IMM_MAX bytes
 * of immediate data. A send returns -EAGAIN if the consumer has posted no receive or the queue is
 * full: poll and send again.
 *
 * When the peer dies, the messages that it has published can still be polled. `closed` comes once,
 * within 100 ms; over a network, within 2 s. After that, sends return -ENOTCONN. The owner destroys
 * the queues and disconnects.
 *
 * Mandatory slots: open, close, info, progress, and fd or wake_ns; listen, unlisten, connect,
 * send_ctrl, disconnect; create and destroy of consumers and producers; post_recv, poll_recv, send;
 * export_region, import_region, release_region, revoke_region; and the rma slots for devices
 * without GANTRY_CAP_MAPPED. The host rejects a device whose `info` has a capability for which the
 * table has no functions. For any other NULL slot, the host substitutes a function that returns
 * -ENOTSUP or does nothing. Only programs of libgantry-doca send messages with data. A transport
 * for them has a second table, struct gantry_data_queue_ops.
 *
 * An argument that is out of range causes -EINVAL, and changes nothing.
 */
#ifndef GANTRY_TRANSPORT_H
#define GANTRY_TRANSPORT_H

#include <gantry/plugin.h>
#include <gantry/records.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GANTRY_CTRL_MAX 4096 /* limit of the bytes in a control message */
#define GANTRY_IMM_MAX 56    /* limit of the bytes of immediate data in a message */

/* Rights of an export. */
#define GANTRY_REMOTE_READ 0x1u  /* the peer can read the region */
#define GANTRY_REMOTE_WRITE 0x2u /* the peer can write to the region */

/* Capabilities of a device. */
#define GANTRY_CAP_MAPPED 0x1u /* imported regions can be mapped for access by the CPU */
#define GANTRY_CAP_RMA 0x2u    /* remote read and write */
/* 0x4u is unused: it was replaced by GANTRY_TRANSPORT_INSIDE */
/*
 * Remote writes are ordered with messages of the same lane: a message that is sent after a remote
 * write arrives after its data. If the write fails, the message never arrives. Remote writes to a
 * region that is `unordered` have no such order. flush of the producer starts the writes, too.
 */
#define GANTRY_CAP_ORDERED 0x8u
/* regions and queues are locked memory, which counts against RLIMIT_MEMLOCK */
#define GANTRY_CAP_PINS 0x10u
/* disconnect revokes each export that was sent over the connection */
#define GANTRY_CAP_DISCONNECT_REVOKES 0x20u
#define GANTRY_CAP_WRITE_IMM 0x40u /* remote writes with immediate data: rma_write_imm */

struct gantry_device_info {
	uint32_t caps;        /* GANTRY_CAP_* */
	uint32_t max_depth;   /* limit of messages in a queue */
	uint32_t max_inline;  /* data queues: limit of bytes of data inside a queue entry */
	uint32_t max_regions; /* limit of exports of a connection */
	uint64_t max_region_bytes;
	uint32_t max_queues;  /* queue pairs of the device; 0: no limit */
	uint32_t conn_queues; /* queue pairs of a connection without its lanes */
	uint32_t lane_queues; /* queue pairs of each lane of a connection */
	uint32_t reserved;
	uint64_t conn_bytes; /* bytes of memory of a connection without its lanes */
	uint64_t lane_bytes; /* bytes of memory of each lane of a connection */
	char detail[96];     /* text for reports: location, state */
};

/* Properties of all devices of a transport: `flags` of struct gantry_transport_ops. */
#define GANTRY_TRANSPORT_INSIDE 0x1u /* reaches only peers in the same process */
/*
 * The kernel reports the uid of each peer. The host treats a transport with neither flag as a
 * network, whose peers are not authenticated.
 */
#define GANTRY_TRANSPORT_UIDS 0x2u

/*
 * The peer of a connection. pid -1: unknown, because the peer is in another PID namespace. pid -1
 * and uid -1: unknown, because the peer is on another machine.
 */
struct gantry_peer {
	int32_t pid;
	uint32_t uid, gid;
	char address[64];
};

/*
 * Memory that can be exported. The host creates a region from a sealed memfd; a transport creates
 * one at import. `addr` is NULL if the memory is not mapped in this process. `fd` is -1 if there is
 * no descriptor.
 */
struct gantry_region {
	void *addr;
	uint64_t length; /* bytes */
	int fd;          /* memfd that contains the memory, from fd_offset on */
	uint32_t rights; /* GANTRY_REMOTE_*: accesses that an export can permit to a peer */
	uint64_t fd_offset;
	uint32_t handle; /* imported: number of the export on that connection */
	/*
	 * imported: number by which a transport recognises its own regions. 0: made by the host
	 */
	uint32_t domain;
	void *transport; /* imported: private to the transport */
	/*
	 * imported: remote writes to it are not ordered with messages, even with GANTRY_CAP_ORDERED
	 */
	uint32_t unordered;
	/*
	 * imported: socket for gantry_hold(), valid until release_region. 0: the owner does not ask
	 * for reports
	 */
	int32_t hold_socket;
};

/* Flags of import_region. A transport ignores flags that it does not know. */
#define GANTRY_IMPORT_MAP 0x1u /* set addr. Only with GANTRY_CAP_MAPPED */
/*
 * The peer must keep all pages of the memory allocated. This flag matters if the peer can free
 * pages that this process accesses. The transport then rejects a region in a file with holes. Until
 * release_region, it ends the connection when it detects that the peer has freed pages.
 */
#define GANTRY_IMPORT_KEEPS_PAGES 0x2u

/*
 * Name of an export, valid only on its connection. The transport itself announces the export to the
 * peer, with length and rights. The caller sends the name to the peer in a control message.
 */
struct gantry_token {
	uint32_t handle;     /* chosen by the exporter */
	uint32_t generation; /* number of the export on its connection, given by the transport */
};

/*
 * Events of a connection. Control thread, from progress(). `arg` is the arg of listen or connect,
 * or the value that `accept` stored. `accept` may be NULL for a connecting side, `connected` for a
 * listening side, and `revoked` for a side that exports nothing.
 *
 * conn       the connection, the first argument of send_ctrl and of the other functions
 * arg        the argument of the events of this connection
 * peer       what is known of the peer; valid during the call
 * handle     the handle of the export
 * ownership  the transport owns conn until disconnect
 */
struct gantry_conn_events {
	/*
	 * A peer has connected to a listener. The callback can call send_ctrl. The peer receives
	 * those messages after `connected`, even if the owner calls disconnect immediately
	 * afterwards.
	 *
	 * arg         the argument of listen
	 * conn_arg_p  out: the argument of the events of this connection
	 * returns     0: accept the connection
	 *             another value: reject it; the transport then frees conn
	 */
	int (*accept)(void *arg, void *conn, const struct gantry_peer *peer, void **conn_arg_p);
	/* connect() has succeeded. */
	void (*connected)(void *arg, void *conn, const struct gantry_peer *peer);
	/*
	 * A control message has arrived.
	 *
	 * msg  the message; valid during the call
	 * len  bytes, 1 to GANTRY_CTRL_MAX
	 */
	void (*message)(void *arg, void *conn, const void *msg, size_t len);
	/*
	 * The peer has created or destroyed a consumer.
	 *
	 * id  number of the consumer, for producer_create
	 * up  1: the consumer is created; 0: it is destroyed
	 */
	void (*consumer)(void *arg, void *conn, uint32_t id, int up);
	/* The peer revokes an export: stop all accesses, then call release_region. */
	void (*revoke)(void *arg, void *conn, uint32_t handle);
	/*
	 * revoke_region() is done. The event also comes, before `closed`, for each export that ends
	 * with its connection.
	 *
	 * rc  0: no agent of the peer can access the region any more
	 *     -ETIMEDOUT: the peer has not confirmed that, so an agent might still access it
	 */
	void (*revoked)(void *arg, void *conn, uint32_t handle, int rc);
	/*
	 * The connection has ended. Last event. The owner destroys its queues and calls disconnect.
	 *
	 * reason    -ENOTCONN: the peer died or disconnected
	 *           -ETIMEDOUT: the peer did not answer
	 *           -EPROTO: the peer violated the protocol; the transport has logged how
	 *           -ECONNREFUSED: no listener at the address, or the listener ended before it
	 *           accepted
	 *           -EACCES: the peer rejected the credentials of this process, or its `accept`
	 *           rejected the connection
	 *           -EBUSY: the peer cannot accept another connection now
	 */
	void (*closed)(void *arg, void *conn, int reason);
};

/*
 * The waiter uses the fd of the consumer edge-triggered (EPOLLET): every new message signals the
 * fd, and the transport need not drain it.
 */
#define GANTRY_QUEUE_EDGES 1u
/*
 * Publish each receive credit immediately instead of in batches. Set it if the lane can go without
 * a poll for a long time: without this flag, the credits of an incomplete batch are published only
 * when the lane polls. Only of a transport with data queues.
 */
#define GANTRY_QUEUE_PROMPT 2u

struct gantry_queue_attr {
	/*
	 * limit of posted receives of a consumer, or of messages in flight of a producer; 1 to
	 * max_depth
	 */
	uint32_t depth;
	/*
	 * bytes of data in one message; 0: immediate data only, and always for a transport without
	 * data queues
	 */
	uint32_t max_data;
	uint32_t lane;      /* lane number, the same at both ends */
	uint32_t flags;     /* consumer: GANTRY_QUEUE_* */
	const void *thread; /* identifies the lane's thread in this process; NULL: unknown */
};

/*
 * The user of a consumer, which the user of a producer on the same thread calls instead of `send`.
 * The host defines it; a transport only passes the pointer on. See consumer_set_local_peer.
 */
struct gantry_local_peer;

/* another send or flush follows immediately, so the transport can delay the doorbell until then */
#define GANTRY_SEND_MORE 0x1u

/*
 * A received message: a private copy. A transport without data queues sets only imm and imm_len.
 */
struct gantry_msg {
	uint8_t imm[GANTRY_IMM_MAX];
	uint32_t imm_len;
	/* 0; -EMSGSIZE: the posted buffer was too small; -EFAULT: the region could not be read */
	int32_t status;
	uint32_t length; /* bytes stored in the posted buffer */
	uint64_t cookie; /* cookie of the posted receive that the message used */
};

enum gantry_rma_op { GANTRY_RMA_READ, GANTRY_RMA_WRITE };

struct gantry_rma {
	uint32_t op;     /* enum gantry_rma_op */
	uint32_t length; /* bytes */
	void *local;     /* address in local_region */
	/* region registered on the same connection; may be NULL without GANTRY_CAP_PINS */
	const struct gantry_region *local_region;
	const struct gantry_region *remote; /* imported on the same connection */
	uint64_t remote_offset;             /* bytes, in the remote region */
	uint64_t cookie;
};

struct gantry_rma_done {
	uint64_t cookie;
	int32_t status; /* 0, -EACCES, -ERANGE, -ENOTCONN */
	uint32_t reserved;
};

/* -- messages with data -- */

/* A posted receive: buffer for the data of one message. buf NULL: immediate data only. */
struct gantry_recv {
	void *buf;
	uint32_t length; /* bytes */
	uint32_t reserved;
	uint64_t cookie;
};

struct gantry_send {
	const void *imm; /* up to GANTRY_IMM_MAX bytes, copied before send returns */
	uint32_t imm_len;
	uint32_t length; /* bytes of data; 0: immediate data only */
	/* data of up to max_inline bytes, copied before send returns; or NULL */
	const void *data;
	/*
	 * if `data` is NULL: exported region that contains the data, at region_offset. The data
	 * must not change until poll_send returns the cookie, or producer_destroy returns
	 */
	const struct gantry_region *region;
	uint64_t region_offset;
	uint64_t cookie; /* value that poll_send returns */
};

/*
 * The data queues of a transport: functions for messages with data, which only libgantry-doca uses.
 * Queues are created by the functions of struct gantry_transport_ops, with max_data in their
 * attributes. The data of a message is stored in the buffer that the receiver has posted. Data of
 * up to max_inline bytes travels inside the queue. Data that a send takes from a region is copied
 * exactly once, by the consumer. poll_recv receives the messages, in the order of their receives.
 *
 * When producer_destroy has returned, the caller can change the region data of every send, even if
 * poll_send has not returned its cookie. The peer has read the data by then, or never delivers it:
 * shm-comch drops the message, loop fails the receive with -EFAULT, and a connection over RDMA
 * ends. tcp copies the data that it has not sent.
 *
 * consumer   of consumer_create
 * producer   of producer_create
 * thread     lane's thread
 * ownership  arguments are valid during the call, unless stated otherwise
 */
struct gantry_data_queue_ops {
	uint32_t struct_size; /* sizeof(struct gantry_data_queue_ops) of the plugin */
	/*
	 * Post receives with buffers. After the first call for a consumer, its receives come only
	 * from this function. Returns 0; -ENOSPC: more than depth. NULL: not permitted.
	 *
	 * recvs  n receives. The buffers belong to the transport until poll_recv returns the cookie
	 * n      number of receives
	 */
	int (*post_recv)(void *consumer, const struct gantry_recv *recvs, uint32_t n);
	/*
	 * Send one message with data.
	 *
	 * send      the message; valid during the call
	 * flags     GANTRY_SEND_*
	 * returns   as `send` of struct gantry_transport_ops
	 * NULL      not permitted
	 */
	int (*send)(void *producer, const struct gantry_send *send, uint32_t flags);
	/*
	 * Get the cookies of the sends from regions whose data can change: the peer has copied it,
	 * or the transport has. After the end of the connection, the cookies of messages that were
	 * not sent do not come. Returns the number of cookies. NULL: not permitted.
	 *
	 * cookies  out: the cookies
	 * max      limit of their number
	 */
	int (*poll_send)(void *producer, uint64_t *cookies, uint32_t max);
	/*
	 * Prefetch the memory that the next send of this producer will write. The caller uses it
	 * after poll_recv, when a reply is likely. The call has no other effect. NULL: nothing to
	 * prefetch.
	 */
	void (*send_prefetch)(void *producer);
};

/*
 * The functions of a transport.
 *
 * device    what open stored in *device_p
 * listener  of listen
 * conn      a connection, of connect or `accept`
 * consumer  of consumer_create
 * producer  of producer_create
 * rma       of rma_create
 * service   a name or an address, 1 to 63 bytes
 * events    the callbacks; valid until the object is freed
 * arg       the first argument of the callbacks
 * attr      properties of the queue; valid during the call
 * handle    the handle of the export
 * thread    control thread
 * ownership  arguments are valid during the call, unless stated otherwise
 */
struct gantry_transport_ops {
	/* -- device -- */
	/*
	 * Create the device `host->name` from its options. After an error the transport has logged
	 * the cause.
	 *
	 * host      services of the host; valid until close
	 * conf      the options; valid until close
	 * device_p  out: the device; the transport owns it until close
	 * returns   0
	 *           -ENODEV, -ENOENT: this machine does not have the device
	 *           another -errno: failed
	 * NULL      not permitted
	 */
	int (*open)(const struct gantry_host *host, const void *conf, void **device_p);
	/*
	 * Describe the devices of this machine that the transport can use, whether or not a
	 * configuration names them. Writes one object for each, with `name`, `state`, and the known
	 * limits and addresses, into an array that is open. Called without a device.
	 *
	 * host     services of the host; valid during the call
	 * w        the array
	 * returns  the number of devices
	 *          -errno: the transport has logged what is missing
	 * NULL     the transport has no such devices
	 */
	int (*scan)(const struct gantry_host *host, struct gantry_writer *w);
	/* Close the device, after its last connection and listener. NULL: not permitted. */
	void (*close)(void *device);
	/*
	 * Describe the device.
	 *
	 * info  out: the properties
	 * NULL  not permitted
	 */
	void (*info)(void *device, struct gantry_device_info *info);
	/*
	 * Get the fd that is readable when progress() has work.
	 *
	 * returns  the fd, the same in every call; -1: the host calls progress() only at wake_ns
	 * NULL     as if the function returned -1; not permitted without wake_ns
	 */
	int (*fd)(void *device);
	/*
	 * Deliver events. The host calls it when the fd is readable, and at wake_ns. Returns the
	 * number of events. NULL: not permitted.
	 */
	int (*progress)(void *device);
	/*
	 * Get the time of the next progress(). The host calls it after each progress().
	 *
	 * returns  an absolute time in nanoseconds, by the clock of host->now_ns; 0: none. Not 0 if
	 *          the fd is -1
	 * NULL     as if the function returned 0; not permitted without fd
	 */
	uint64_t (*wake_ns)(void *device);

	/* -- connection -- */
	/*
	 * Create a listener.
	 *
	 * arg         the first argument of `accept`
	 * listener_p  out: the listener; the transport owns it until unlisten
	 * returns     0
	 *             -EADDRINUSE: another listener has this service
	 *             another -errno: failed
	 * NULL        not permitted
	 */
	int (*listen)(void *device, const char *service, const struct gantry_conn_events *events,
		      void *arg, void **listener_p);
	/* Destroy a listener. Accepted connections continue. NULL: not permitted. */
	void (*unlisten)(void *listener);
	/*
	 * Start to connect. `connected` or `closed` follows.
	 *
	 * conn_p   out: the connection; the transport owns it until disconnect
	 * returns  0
	 *          -errno: could not start; no event follows
	 * NULL     not permitted
	 */
	int (*connect)(void *device, const char *service, const struct gantry_conn_events *events,
		       void *arg, void **conn_p);
	/*
	 * Send a control message. It arrives in order with other control messages, exports and
	 * creations of consumers. Returns 0; -EAGAIN: the peer does not read; -ENOTCONN: the
	 * connection has ended.
	 *
	 * msg   copied
	 * len   bytes, 1 to GANTRY_CTRL_MAX
	 * NULL  not permitted
	 */
	int (*send_ctrl)(void *conn, const void *msg, size_t len);
	/*
	 * End a connection and free it. No event follows. Destroy its queues first.
	 *
	 * NULL  not permitted
	 */
	void (*disconnect)(void *conn);

	/* -- memory -- */
	/*
	 * Let the peer of conn use a region: one of the host, or one imported from any connection
	 * (re-export).
	 *
	 * region    the memory; valid until `revoked` or `closed`
	 * rights    not 0; a subset of the rights of the region
	 * handle    chosen by the caller; unique among the exports of the connection
	 * token_p   out: the name of the export. The transport never gives the same name twice on
	 *           a connection
	 * returns   0
	 *           -EACCES: the region does not have these rights
	 *           -ENOSPC: more than max_regions
	 *           -ENOMEM: pages of the memfd are missing, and the kernel would charge the peer
	 *           for them (see gantry_memfd_populate)
	 *           -EXDEV: the transport cannot access the memory: fd is -1 and, if the transport
	 *           needs no file, addr is NULL
	 *           another -errno of gantry_hold()
	 * NULL      as if the function returned -ENOTSUP
	 */
	int (*export_region)(void *conn, const struct gantry_region *region, uint32_t rights,
			     uint32_t handle, struct gantry_token *token_p);
	/*
	 * Import an export that the transport of the peer has announced. The region belongs to the
	 * transport until release_region. The same export can be imported several times: each
	 * import is released separately, and the export continues until it is revoked.
	 *
	 * token     as the peer sent it: the transport must reject any name that is not that of an
	 *           announced export
	 * flags     GANTRY_IMPORT_*
	 * region_p  out: the region; the transport owns it until release_region
	 * returns   0
	 *           -ENOENT: no such export, or it is revoked, even if its handle is in use for
	 *           another export now
	 *           -EPERM: wrong seals
	 *           -ERANGE: the memory is smaller than announced
	 *           -ENOMEM: out of memory, or the file of the region has holes
	 *           (GANTRY_IMPORT_KEEPS_PAGES)
	 *           another -errno of gantry_hold()
	 * NULL      as if the function returned -ENOTSUP
	 */
	int (*import_region)(void *conn, const struct gantry_token *token, uint32_t flags,
			     struct gantry_region **region_p);
	/*
	 * End an import. The region must not be used any more.
	 *
	 * region  of import_region
	 * NULL    nothing
	 */
	void (*release_region)(void *conn, struct gantry_region *region);
	/*
	 * Revoke an export. `revoked` follows after the last release of the peer. Returns 0;
	 * -ENOENT: no such export. NULL: as if the function returned -ENOTSUP.
	 */
	int (*revoke_region)(void *conn, uint32_t handle);
	/*
	 * Let rma operations of this connection use memory of this process as their local side.
	 * Undo it with unregister_region after the last rma object that uses it is destroyed.
	 * Returns 0; -ENOMEM: see RLIMIT_MEMLOCK. NULL: no registration is necessary.
	 *
	 * region  the memory; valid until unregister_region
	 */
	int (*register_region)(void *conn, const struct gantry_region *region);
	/*
	 * Undo register_region. NULL: nothing.
	 *
	 * region  the same memory
	 */
	void (*unregister_region)(void *conn, const struct gantry_region *region);

	/* -- queues -- */
	/*
	 * Create a consumer. It has one or several producers of the peer, of any lanes. The peer
	 * gets the event `consumer`.
	 *
	 * id_p        out: number of the consumer, for producer_create of the peer
	 * consumer_p  out: the consumer; the transport owns it until consumer_destroy
	 * returns     0
	 *             -ENOTCONN: the connection has ended
	 *             another -errno: failed
	 * NULL        not permitted
	 */
	int (*consumer_create)(void *conn, const struct gantry_queue_attr *attr, uint32_t *id_p,
			       void **consumer_p);
	/* Destroy a consumer. The peer gets the event `consumer`. NULL: not permitted. */
	void (*consumer_destroy)(void *consumer);
	/*
	 * Create a producer for a consumer of the peer.
	 *
	 * consumer_id  number of the consumer
	 * producer_p   out: the producer; the transport owns it until producer_destroy
	 * returns      0
	 *              -ENOENT: the peer has no such consumer
	 *              -ENOTCONN: the connection has ended
	 *              another -errno: failed
	 * NULL         not permitted
	 */
	int (*producer_create)(void *conn, uint32_t consumer_id,
			       const struct gantry_queue_attr *attr, void **producer_p);
	/* Destroy a producer. Messages that were sent still arrive. NULL: not permitted. */
	void (*producer_destroy)(void *producer);
	/*
	 * Create an object for remote reads and writes.
	 *
	 * attr     only depth and lane matter
	 * rma_p    out: the object; the transport owns it until rma_destroy
	 * returns  0
	 *          -ENOTCONN: the connection has ended
	 *          another -errno: failed
	 * NULL     the transport has no remote reads and writes
	 */
	int (*rma_create)(void *conn, const struct gantry_queue_attr *attr, void **rma_p);
	/* Destroy such an object. No operation is in flight after the return. NULL: nothing. */
	void (*rma_destroy)(void *rma);

	/*
	 * -- data path --
	 *
	 * thread  lane's thread; no allocation, and no system call while the peer polls
	 */
	/*
	 * Permit the peer to send n more messages. Returns 0; -ENOSPC: more than depth. NULL: not
	 * permitted.
	 *
	 * n  number of receives
	 */
	int (*post_recv)(void *consumer, uint32_t n);
	/*
	 * Receive messages.
	 *
	 * msgs     out: the messages
	 * max      limit of their number
	 * returns  their number
	 *          -EPROTO: the peer corrupted the queue, and no message follows
	 * NULL     not permitted
	 */
	int (*poll_recv)(void *consumer, struct gantry_msg *msgs, uint32_t max);
	/*
	 * Make the fd readable when a message arrives, from now on, as `arm` of struct
	 * gantry_poller. The fd also signals completions of rma operations of the same lane. It
	 * need not signal operations that completed before consumer_arm: the lane calls rma_poll
	 * once more after consumer_arm.
	 *
	 * returns  0; 1: there is a message already
	 * NULL     as if the function returned 0; without consumer_fd the lane never sleeps
	 */
	int (*consumer_arm)(void *consumer);
	/* End consumer_arm. NULL: nothing. */
	void (*consumer_disarm)(void *consumer);
	/*
	 * Get the fd that is readable when a message has arrived.
	 *
	 * returns  the fd, the same in every call; -1: none
	 * NULL     as if the function returned -1
	 */
	int (*consumer_fd)(void *consumer);
	/*
	 * Send one message.
	 *
	 * imm       the immediate data, copied before send returns
	 * imm_len   bytes, up to GANTRY_IMM_MAX
	 * flags     GANTRY_SEND_*
	 * returns   0
	 *           -EAGAIN: the queue is full, or the consumer has posted no receive
	 *           -ENOTCONN: the connection has ended
	 *           -EINVAL: invalid argument
	 * NULL      not permitted
	 */
	int (*send)(void *producer, const void *imm, uint32_t imm_len, uint32_t flags);
	/* Ring the doorbell for messages that were sent with GANTRY_SEND_MORE. NULL: nothing. */
	void (*flush)(void *producer);
	/*
	 * Submit a remote read or write. It starts at the latest with rma_flush, or with flush of a
	 * producer of the lane. rma_poll returns each accepted operation once; after the end of the
	 * connection with -ENOTCONN.
	 *
	 * op        the operation; copied. Its memory belongs to the transport until rma_poll
	 *           returns the cookie
	 * returns   0: accepted
	 *           -EAGAIN: the queue is full
	 *           -ERANGE: outside a region
	 *           -EACCES: the region lacks the right, or belongs to another connection
	 *           -ENOTCONN: the connection has ended
	 * NULL      the transport has no remote reads and writes
	 */
	int (*rma_submit)(void *rma, const struct gantry_rma *op);
	/* Start the operations that were submitted. NULL: nothing. */
	void (*rma_flush)(void *rma);
	/*
	 * Get the operations that have completed.
	 *
	 * done     out: cookie and status of each
	 * max      limit of their number
	 * returns  their number
	 * NULL     the transport has no remote reads and writes
	 */
	int (*rma_poll)(void *rma, struct gantry_rma_done *done, uint32_t max);

	/*
	 * Set the local peer of a consumer; NULL: remove it. The transport shows it to each
	 * producer of the consumer that has the same `thread` in its struct gantry_queue_attr.
	 *
	 * peer      not copied, valid until it is removed. Remove it before the consumer is
	 *           destroyed
	 * thread    lane's thread, or control thread while the lane is stopped
	 */
	void (*consumer_set_local_peer)(void *consumer, struct gantry_local_peer *peer);
	/*
	 * Get the place of the local peer of the consumer of this producer. The place is valid as
	 * long as the producer. It contains NULL if the consumer has no local peer, is on another
	 * thread, or has messages in its queue that the peer would not see in order. Any call into
	 * the transport on this thread can change it. While it is not NULL, the producer's lane
	 * calls the peer instead of `send`, also after the connection is lost.
	 *
	 * returns  the place, never NULL
	 * NULL     no producer has a local peer
	 */
	struct gantry_local_peer *const *(*producer_local_peer)(void *producer);

	uint32_t flags; /* GANTRY_TRANSPORT_* */

	/*
	 * Remote write as by rma_submit, with 4 bytes of immediate data. Needs GANTRY_CAP_WRITE_IMM
	 * at both ends. Lane's thread.
	 *
	 * When all of the data has arrived, the consumer of the same lane at the peer receives a
	 * message. It uses one posted receive; its immediate data is `note`, its producer is 0. If
	 * the write fails, the message never arrives. The remote region must not be `unordered`.
	 *
	 * op        the write, as for rma_submit
	 * note      immediate data of the message
	 * returns   as rma_submit, and:
	 *           -EAGAIN: the queue is full, or the consumer of the peer has posted no receive
	 *           -EMSGSIZE: the data is too long for this function; any longer data is, too
	 * NULL      the transport has no such writes
	 */
	int (*rma_write_imm)(void *rma, const struct gantry_rma *op, uint32_t note);

	/*
	 * Get the largest further export that the peer is known to accept. A larger export fails
	 * with -E2BIG. Slot NULL: the limit is unknown.
	 *
	 * returns  bytes; UINT64_MAX: the limit is unknown
	 */
	uint64_t (*export_limit)(void *conn);

	/*
	 * Report why the last import_region of a connection failed.
	 *
	 * returns  a text for the peer and the log, valid until the next import_region of conn; "":
	 *          there is only the error number
	 * thread   control thread
	 * NULL     there is only the error number
	 */
	const char *(*import_error)(void *conn);

	/*
	 * Report why the peer rejected this connection, or ended it.
	 *
	 * returns  the text of the peer, one line of printable characters, valid until disconnect;
	 *          NULL: the peer gave no reason
	 * thread   control thread; from `closed` on
	 * NULL     the transport reports no reasons
	 */
	const char *(*refusal)(void *conn);

	/*
	 * Report the address of a listener, in the form that `connect` takes. It has the port that
	 * the system chose if `listen` got port 0.
	 *
	 * returns  the text, valid until unlisten; NULL: the text that `listen` got
	 * thread   control thread
	 * NULL     as if the function returned NULL
	 */
	const char *(*listener_address)(void *listener);

	/*
	 * Request a report (gantry/hold.h) from each process that maps memory which is exported
	 * over this connection, directly or through relays. Applies to later exports of regions
	 * without `hold_socket`; a region with one is exported with its own.
	 *
	 * socket   for gantry_hold(); the transport duplicates it
	 * returns  0
	 *          -ENOTSUP: the peer does not map the memory
	 *          -EALREADY: the connection has a socket
	 *          -EMFILE: too many open files
	 * thread   control thread
	 * NULL     as if the function returned -ENOTSUP
	 */
	int (*hold_exports)(void *conn, int socket);

	/* the data queues; NULL: the transport has none, so libgantry-doca cannot use it */
	const struct gantry_data_queue_ops *data;
};

#ifdef __cplusplus
}
#endif

#endif
