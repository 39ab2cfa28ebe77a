/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vb_rdma.h - thin objects over libibverbs and librdmacm, one per file: device, event channel, id,
 * pd, mr, cq, qp.
 *
 * These objects do not depend on gantry's connections and messages. Each function returns 0 or
 * -errno unless its comment says otherwise. No function logs, and none blocks longer than a system
 * call. Each destroy function ignores zeroed memory.
 *
 * Destroy objects in this order: qp, id, cq, completion channel, mr, pd, event channel, device.
 */
#ifndef VB_RDMA_H
#define VB_RDMA_H

#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <gantry/plugin.h>

/* -- asynchronous events of a queue pair or completion queue -- */

/*
 * First member of the context of a qp or cq, in which vb_device_next_event() stores the type of an
 * asynchronous event. Two transports of one process on one device can each read the events of the
 * other, so the function only stores the type.
 */
struct vb_async_event {
	int event; /* __atomic; 0: no event; else enum ibv_event_type + 1 */
};

/* -- vb_device.c -- */

int vb_fd_unblock(int fd); /* sets O_NONBLOCK and FD_CLOEXEC */

struct vb_limits {
	uint32_t max_qp, max_qp_wr, max_cqe, max_mr;
	uint32_t max_rd_atomic;      /* concurrent incoming reads of a queue pair */
	uint32_t max_init_rd_atomic; /* concurrent outgoing reads of a queue pair */
	uint64_t max_mr_bytes;
	uint32_t mtu; /* MTU of port 1, in bytes */
	int port_up;  /* 1: port 1 is up */
	/*
	 * on-demand paging: memory can be registered without being pinned, for all operations used
	 * here
	 */
	int odp;
};

struct vb_device {
	struct ibv_context **list; /* from librdmacm, whose ids use these contexts */
	struct ibv_context *context;
	struct vb_limits limits;
};

/*
 * Open an RDMA device. name: as shown by `rdma link`; "": the only device. Returns 0, or
 *
 *     -ENODEV    no such device
 *     -ENOTUNIQ  name is "", and there are several devices
 *     -ENOENT, -EACCES, -EOPNOTSUPP
 *                as vb_device_why_none()
 *     -errno     of a system call
 */
int vb_device_open(struct vb_device *dev, const char *name);
void vb_device_close(struct vb_device *dev);
int vb_device_limits(struct ibv_context *context, struct vb_limits *limits);
/*
 * Read one asynchronous event, store it in the context of its object, and acknowledge it. Returns 1
 * and the type of the event; 0: no event; -errno.
 */
int vb_device_next_event(struct vb_device *dev, enum ibv_event_type *type_p);
/*
 * Write an object with name, state, limits and gids for each RDMA device for which `wanted` returns
 * true. `wanted` is NULL: all devices. Returns their number or -errno.
 */
int vb_device_scan(struct gantry_writer *w, int (*wanted)(const char *name));
/*
 * Find out why the libraries see no device. root: "", or a directory that contains /sys and /dev,
 * for tests. Returns
 *
 *     -ENODEV      the kernel has no RDMA device
 *     -ENOENT      files of the device in /dev are missing
 *     -EACCES      no access to the files of the device
 *     -EOPNOTSUPP  rdma-core has no driver for the device
 */
int vb_device_why_none(const char *root);
/* Returns the remedy for an error of vb_device_open() or vb_device_scan(), for a message. */
const char *vb_device_advice(int rc);

/* -- vb_events.c: a channel of connection events -- */

/* Copy of an event. The event itself is acknowledged when it is copied. */
struct vb_event {
	enum rdma_cm_event_type type;
	int status;
	/* id of the connection; for CONNECT_REQUEST a new id, which the caller owns */
	struct rdma_cm_id *id;
	struct rdma_cm_id *listen_id; /* id of the listener, for CONNECT_REQUEST */
	/*
	 * For events of a connection: limits of concurrent incoming and outgoing reads that the
	 * peer requests, from the perspective of this side.
	 */
	uint8_t responder_resources, initiator_depth;
	/*
	 * For CONNECT_REQUEST: the queue pair of this side gets these values, whatever
	 * vb_id_accept() sets.
	 */
	uint8_t retry_count, rnr_retry_count;
	uint32_t qpn; /* CONNECT_REQUEST, ESTABLISHED: number of the queue pair of the peer */
	uint8_t private_len;
	uint8_t private_data[255];
};

int vb_events_open(struct rdma_event_channel **channel_p); /* nonblocking, closed on exec */
void vb_events_close(struct rdma_event_channel **channel_p);
/* Returns 1: an event was read; 0: no event; -errno. */
int vb_events_next(struct rdma_event_channel *channel, struct vb_event *event);
/*
 * Returns -errno if the event ends a connection or a connection attempt; else 0. status: status of
 * the event.
 */
int vb_event_reason(enum rdma_cm_event_type type, int status);

/* -- vb_id.c: one end of a connection -- */

#define VB_PRIVATE_MAX 56 /* bytes of private data in a connection request, at most */
#define VB_REJECT_MAX 148 /* bytes of private data in a rejection, at most */

/* Retries of the device before a queue pair fails. */
struct vb_patience {
	/* 0 .. 6: retransmissions of a packet. Not 7: soft-RoCE retries without limit */
	uint8_t retry_count;
	uint8_t rnr_retry_count; /* 0 .. 6: retries of a send that finds no receive */
	uint8_t ack_timeout;     /* n: the timeout is 4.096 us * 2^n; 0: default of the device */
};

int vb_id_create(struct rdma_event_channel *channel, void *context, struct rdma_cm_id **id_p);
void vb_id_destroy(struct rdma_cm_id **id_p); /* destroy its qp first */
/*
 * Listen. Port 0: any port; rdma_get_src_port() returns it. Returns 0, or
 *
 *     -EADDRINUSE             the address is in use
 *     -EADDRNOTAVAIL, -ENODEV no RDMA device has the address
 */
int vb_id_listen(struct rdma_cm_id *id, const struct sockaddr *addr, int backlog);
/* Start to resolve the address `to`. from: source address; NULL: any. */
int vb_id_resolve_addr(struct rdma_cm_id *id, const struct sockaddr *from,
		       const struct sockaddr *to, int timeout_ms);
int vb_id_resolve_route(struct rdma_cm_id *id, int timeout_ms);
/*
 * Set ack_timeout. Call it after ADDR_RESOLVED or CONNECT_REQUEST and before connecting. A kernel
 * without the option is not an error.
 */
int vb_id_set_patience(struct rdma_cm_id *id, const struct vb_patience *patience);
int vb_id_connect(struct rdma_cm_id *id, const struct vb_limits *limits,
		  const struct vb_patience *patience, const void *private_data,
		  size_t len); /* -EMSGSIZE: len exceeds VB_PRIVATE_MAX */
/*
 * Accept a connection. request: the event with the id, for the limits that the peer requests.
 * -EPROTO: the peer requests retries without limit.
 */
int vb_id_accept(struct rdma_cm_id *id, const struct vb_limits *limits,
		 const struct vb_patience *patience, const struct vb_event *request,
		 const void *private_data, size_t len);
/* -EMSGSIZE: len exceeds VB_REJECT_MAX. */
int vb_id_reject(struct rdma_cm_id *id, const void *private_data, size_t len);
void vb_id_disconnect(struct rdma_cm_id *id);

/* -- vb_pd.c, vb_mr.c -- */

int vb_pd_create(struct ibv_context *context, struct ibv_pd **pd_p);
void vb_pd_destroy(struct ibv_pd **pd_p);

/*
 * Register memory. rights: GANTRY_REMOTE_* of the peer; grant the fewest that suffice. local != 0:
 * the device itself writes the memory (reads, receives). The memory is pinned, unless
 * RLIMIT_MEMLOCK is too low and the device supports on-demand paging. -ENOMEM: usually
 * RLIMIT_MEMLOCK is too low.
 */
int vb_mr_create(struct ibv_pd *pd, void *addr, uint64_t length, uint32_t rights, int local,
		 struct ibv_mr **mr_p);
/* Deregister memory. Afterwards no agent can access it. -errno: it is still registered. */
int vb_mr_destroy(struct ibv_mr **mr_p);

/* -- vb_cq.c -- */

struct vb_cq {
	struct vb_async_event async; /* first member: the context of the cq points to it */
	struct ibv_cq *cq;
	unsigned n_unacked; /* notifications taken from the channel and not acknowledged */
};

/* The channel is nonblocking. */
int vb_channel_create(struct ibv_context *context, struct ibv_comp_channel **channel_p);
void vb_channel_destroy(struct ibv_comp_channel **channel_p);
/*
 * Take all pending notifications of a channel. Returns their number. Thread: the thread of the
 * completion queues.
 */
int vb_channel_drain(struct ibv_comp_channel *channel);
/*
 * Create a completion queue for n completions. channel: may be NULL. `cq` must not move. -E2BIG: n
 * exceeds the limit of the device.
 */
int vb_cq_create(struct ibv_context *context, const struct vb_limits *limits, uint32_t n,
		 struct ibv_comp_channel *channel, struct vb_cq *cq);
void vb_cq_destroy(struct vb_cq *cq); /* acknowledges the remaining notifications */
int vb_cq_arm(struct vb_cq *cq);

static inline int vb_cq_poll(struct vb_cq *cq, struct ibv_wc *wcs, int max)
{
	return ibv_poll_cq(cq->cq, max, wcs);
}

const char *vb_wc_text(const struct ibv_wc *wc);
/* Map the status of a failed completion to -errno. IBV_WC_WR_FLUSH_ERR: -ECANCELED. */
int vb_wc_reason(enum ibv_wc_status status);

/* -- vb_qp.c: a reliable queue pair; each chain of requests is posted with one doorbell -- */

struct vb_qp_attr {
	uint32_t sends, recvs; /* limits of posted requests */
	uint32_t wakes;        /* limit of posted vb_qp_wake() requests */
	/* requested bytes of inline data; the device can support less, see vb_qp.max_inline */
	uint32_t inline_bytes;
	/* completion queue of both directions, with at least sends + recvs + wakes entries */
	struct ibv_cq *cq;
	struct vb_async_event *async;
};

struct vb_send {         /* what the completion of a request needs */
	uint32_t kind;   /* defined by the user */
	uint32_t wanted; /* the user waits for its completion */
	void *object;
	uint64_t cookie;
};

struct vb_qp {
	struct ibv_qp *qp;
	uint32_t max_inline;
	uint32_t mask;  /* size of the tables below - 1; the size is a power of two */
	uint32_t depth; /* limit of outstanding sends */
	/* Free-running counts of send requests: done <= posted <= built, built - done <= depth. */
	uint32_t done, posted, built;
	uint32_t signalled; /* `posted` after the last signalled request */
	int wanted;         /* the chain has a request with `wanted` */
	/* bytes that the remote accesses of the chain move; at VB_POST_BYTES the chain is posted */
	uint32_t chain_bytes;
	struct ibv_send_wr *wrs; /* the chain being built */
	struct ibv_sge *sges;
	struct vb_send *sends; /* outstanding requests */
	struct ibv_recv_wr *recv_wrs;
	struct ibv_sge *recv_sges;
	uint32_t max_recvs;
	uint64_t *doorbells; /* counter or NULL */
};

/*
 * Create the queue pair of an id that has its device. -E2BIG: attr exceeds the limits of the
 * device.
 */
int vb_qp_create(struct rdma_cm_id *id, struct ibv_pd *pd, const struct vb_limits *limits,
		 const struct vb_qp_attr *attr, struct vb_qp *qp);
void vb_qp_destroy(struct rdma_cm_id *id, struct vb_qp *qp);
/*
 * Move the queue pair to the error state. Posted requests are flushed or never complete, and the
 * device answers no further packets for it.
 */
int vb_qp_fail(struct vb_qp *qp);

/* Data path. Thread: one thread at a time. */
/*
 * Append a send request to the chain. Returns it for the caller to fill in, with one cleared sge;
 * NULL: `depth` requests are outstanding. `send` is copied.
 */
struct ibv_send_wr *vb_qp_build(struct vb_qp *qp, const struct vb_send *send);
/*
 * Insert a send request before the last request of the chain, which must not have been posted.
 * Returns as vb_qp_build().
 */
struct ibv_send_wr *vb_qp_build_before(struct vb_qp *qp, const struct vb_send *send);
/*
 * Post the chain with one doorbell. Its last request is signalled if a request of the chain is
 * wanted, or if a quarter of the depth is outstanding without a signal. Returns 0; -errno: the
 * queue pair is unusable.
 */
int vb_qp_post(struct vb_qp *qp);
/*
 * Process a send completion. wr_id: from the work completion. The request and all requests before
 * it are done. Calls each(arg, send, status) in order, with a copy of `send`. `status` applies to
 * the last request; the others have 0. each() may build and post requests.
 */
void vb_qp_done(struct vb_qp *qp, uint64_t wr_id, int status,
		void (*each)(void *arg, const struct vb_send *send, int status), void *arg);
/*
 * Complete all outstanding requests with `status`. Call it after vb_qp_fail(), if no completion
 * will be polled.
 */
void vb_qp_cancel(struct vb_qp *qp, int status,
		  void (*each)(void *arg, const struct vb_send *send, int status), void *arg);
/*
 * Post n receives. Receive i is at base + slots[i] * size and has the wr_id slots[i] | VB_RECV. One
 * doorbell for up to max_recvs receives.
 */
int vb_qp_recv(struct vb_qp *qp, char *base, uint32_t size, uint32_t lkey, const uint32_t *slots,
	       uint32_t n);

/*
 * Post an empty write, to wake a thread that sleeps on the channel of the completion queue. Thread:
 * any. All other requests must be posted by one thread.
 */
int vb_qp_wake(struct vb_qp *qp);

/*
 * A chain that moves this many bytes is posted immediately. The device then executes it while the
 * lane builds the next one, and its completion is processed while the next one executes. Compared
 * with the transfer of these bytes, the cost of a doorbell is negligible.
 */
#define VB_POST_BYTES 65536u
/*
 * longest write, in bytes, that does not delay messages: it can go before them in a chain, and
 * carry a note on their queue pair
 */
#define VB_SHORT_BYTES 8192u

#define VB_RECV (1ull << 63) /* flag in a wr_id: the request is a receive */
#define VB_WAKE (1ull << 62) /* flag in a wr_id: vb_qp_wake() posted the request */

static inline uint32_t vb_qp_room(const struct vb_qp *qp)
{
	return qp->depth - (qp->built - qp->done);
}

#endif
