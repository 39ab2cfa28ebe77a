/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rdma.h - thin objects over libibverbs and librdmacm, one per file: device, event channel, id, pd,
 * mr, cq, qp.
 *
 * They know nothing of gantry's connections and messages. Every function returns 0 or -errno, logs
 * nothing and never blocks longer than a system call. What a destroy function is given may be
 * zeroed memory: then it does nothing.
 * Objects go in this order: qp, id, cq, completion channel, mr, pd, event channel, device.
 */
#ifndef VB_RDMA_H
#define VB_RDMA_H

#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <gantry/plugin.h>

/* -- fate: how an object that the device may kill learns of it -- */

/*
 * First member of whatever is given as context to a qp or cq. Asynchronous events write the event's
 * number + 1 there; events of a device that two users share in one process are read by either of
 * them, so no more than this is done with it.
 */
struct vb_async_event {
	int event; /* __atomic; 0: alive */
};

/* -- device.c -- */

int vb_fd_unblock(int fd); /* does not block from now on, and is closed on exec */

struct vb_limits {
	uint32_t max_qp, max_qp_wr, max_cqe, max_mr;
	uint32_t max_rd_atomic;      /* reads that a queue pair can have under way, as responder */
	uint32_t max_init_rd_atomic; /* the same as initiator */
	uint64_t max_mr_bytes;
	uint32_t mtu; /* bytes of a packet */
	int port_up;  /* of port 1 */
	/* registers memory without pinning it, for all that is done on a queue pair */
	int odp;
};

struct vb_device {
	struct ibv_context **list; /* of librdmacm: the contexts that ids have */
	struct ibv_context *context;
	struct vb_limits limits;
};

/*
 * name: of an RDMA device as `rdma link` shows it, or "": the only one. -ENODEV: none so;
 * -ENOTUNIQ: several, say which; -ENOENT, -EACCES, -EOPNOTSUPP: see vb_device_why_none().
 */
int vb_device_open(struct vb_device *dev, const char *name);
void vb_device_close(struct vb_device *dev);
int vb_device_limits(struct ibv_context *context, struct vb_limits *limits);
/*
 * Read one asynchronous event, if there is one, mark the fate of its object, acknowledge it. 1 and
 * its type, 0: none.
 */
int vb_device_next_event(struct vb_device *dev, enum ibv_event_type *type_p);
/*
 * Write an object for each RDMA device that is `wanted`, NULL: all: name, state, limits, gids.
 * Returns how many or -errno.
 */
int vb_device_scan(struct gantry_writer *w, int (*wanted)(const char *name));
/*
 * Why the libraries see no device: -ENODEV: the kernel has none; -ENOENT: it has, but their files
 * in /dev are missing; -EACCES: they are not ours to use; -EOPNOTSUPP: no driver of rdma-core knows
 * them. root: "", or the folder in which to look for /sys and /dev.
 */
int vb_device_why_none(const char *root);
/* What to do about the error of vb_device_open or vb_device_scan, for a message. */
const char *vb_device_advice(int rc);

/* -- events.c: a channel of connection events -- */

/* A copy: the event itself is acknowledged before anybody looks at it. */
struct vb_event {
	enum rdma_cm_event_type type;
	int status;
	/* the connection's; of CONNECT_REQUEST a new one, which is now the caller's */
	struct rdma_cm_id *id;
	struct rdma_cm_id *listen_id; /* of CONNECT_REQUEST */
	/*
	 * of a connection's events: what the peer asks for, as seen from this side: reads that we
	 * shall answer, and may start
	 */
	uint8_t responder_resources, initiator_depth;
	/* of CONNECT_REQUEST: our queue pair gets them, whatever accepting says */
	uint8_t retry_count, rnr_retry_count;
	uint8_t private_len;
	uint8_t private_data[255];
};

int vb_events_open(struct rdma_event_channel **channel_p); /* does not block, is closed on exec */
void vb_events_close(struct rdma_event_channel **channel_p);
/* 1, 0: none, -errno */
int vb_events_next(struct rdma_event_channel *channel, struct vb_event *event);
/*
 * What an event that ends a connection, or an attempt at one, means as -errno; 0: it does not.
 * status: of the event.
 */
int vb_event_reason(enum rdma_cm_event_type type, int status);

/* -- id.c: an end of a connection -- */

#define VB_PRIVATE_MAX 56 /* bytes of private data in a connection request */
#define VB_REJECT_MAX 148 /* and in its rejection */

/* How stubborn the device is before it gives a queue pair up. */
struct vb_patience {
	/* 0 .. 6; of packets that are not acknowledged. Never 7: rxe takes it as for ever */
	uint8_t retry_count;
	uint8_t rnr_retry_count; /* 0 .. 6; of sends that find no receive */
	uint8_t ack_timeout;     /* 4.096 us * 2^n; 0: the device's default */
};

/*
 * "192.0.2.7:4791", "[2001:db8::7]:4791"; numbers only, so that nothing waits for a name server.
 * -EINVAL.
 */
int vb_address_parse(const char *text, struct sockaddr_storage *addr);
void vb_address_print(const struct sockaddr *addr, char *text, size_t size);

int vb_id_create(struct rdma_event_channel *channel, void *context, struct rdma_cm_id **id_p);
void vb_id_destroy(struct rdma_cm_id **id_p); /* its qp is gone before */
/*
 * -EADDRINUSE, -EADDRNOTAVAIL, -ENODEV: no RDMA device has the address. Port 0: any;
 * rdma_get_src_port() tells.
 */
int vb_id_listen(struct rdma_cm_id *id, const struct sockaddr *addr, int backlog);
/* from: or NULL. */
int vb_id_resolve_addr(struct rdma_cm_id *id, const struct sockaddr *from,
		       const struct sockaddr *to, int timeout_ms);
int vb_id_resolve_route(struct rdma_cm_id *id, int timeout_ms);
/*
 * After ADDR_RESOLVED or CONNECT_REQUEST and before connecting. Ignores a kernel that cannot set
 * it.
 */
int vb_id_set_patience(struct rdma_cm_id *id, const struct vb_patience *patience);
int vb_id_connect(struct rdma_cm_id *id, const struct vb_limits *limits,
		  const struct vb_patience *patience, const void *private_data,
		  size_t len); /* -EMSGSIZE: more than VB_PRIVATE_MAX */
/*
 * request: the event that brought the id, for what the peer asked for. -EPROTO: it wants retries
 * without end.
 */
int vb_id_accept(struct rdma_cm_id *id, const struct vb_limits *limits,
		 const struct vb_patience *patience, const struct vb_event *request,
		 const void *private_data, size_t len);
/* -EMSGSIZE: more than VB_REJECT_MAX */
int vb_id_reject(struct rdma_cm_id *id, const void *private_data, size_t len);
void vb_id_disconnect(struct rdma_cm_id *id);

/* -- pd.c, mr.c -- */

int vb_pd_create(struct ibv_context *context, struct ibv_pd **pd_p);
void vb_pd_destroy(struct ibv_pd **pd_p);

/*
 * rights: GANTRY_REMOTE_* for the peer, least that will do; local != 0: the device itself may write
 * there (reads, receives). Memory is pinned, or paged on demand where it may not be and the device
 * can do without. -ENOMEM: mostly RLIMIT_MEMLOCK.
 */
int vb_mr_create(struct ibv_pd *pd, void *addr, uint64_t length, uint32_t rights, int local,
		 struct ibv_mr **mr_p);
/* After this no agent can touch the memory. -errno: it is still registered. */
int vb_mr_destroy(struct ibv_mr **mr_p);

/* -- cq.c -- */

struct vb_cq {
	struct vb_async_event fate; /* first: the cq's context points here */
	struct ibv_cq *cq;
	unsigned n_unacked; /* notifications taken from the channel */
};

/* does not block */
int vb_channel_create(struct ibv_context *context, struct ibv_comp_channel **channel_p);
void vb_channel_destroy(struct ibv_comp_channel **channel_p);
/*
 * Take all notifications that wait in a channel, for the queues they belong to. Returns how many.
 * The queues' thread.
 */
int vb_channel_drain(struct ibv_comp_channel *channel);
/*
 * n: completions that may wait in it. channel: or NULL. cq stays where it is. -E2BIG: more than the
 * device can.
 */
int vb_cq_create(struct ibv_context *context, const struct vb_limits *limits, uint32_t n,
		 struct ibv_comp_channel *channel, struct vb_cq *cq);
void vb_cq_destroy(struct vb_cq *cq); /* acknowledges what is left */
int vb_cq_arm(struct vb_cq *cq);

static inline int vb_cq_poll(struct vb_cq *cq, struct ibv_wc *wcs, int max)
{
	return ibv_poll_cq(cq->cq, max, wcs);
}

const char *vb_wc_text(const struct ibv_wc *wc);
/* What a failed completion means as -errno. IBV_WC_WR_FLUSH_ERR: -ECANCELED. */
int vb_wc_reason(enum ibv_wc_status status);

/* -- qp.c: a reliable queue pair whose requests are posted in chains, one doorbell each -- */

struct vb_qp_attr {
	uint32_t sends, recvs; /* requests that can be posted */
	uint32_t wakes;        /* and vb_qp_wake called */
	uint32_t inline_bytes; /* wanted; the device may give less: see max_inline */
	struct ibv_cq *cq;     /* of both directions: holds sends + recvs + wakes at least */
	struct vb_async_event *fate;
};

struct vb_send {         /* one request that was built: what to do when it is done */
	uint32_t kind;   /* the user's */
	uint32_t wanted; /* somebody waits for its completion */
	void *object;
	uint64_t cookie;
};

struct vb_qp {
	struct ibv_qp *qp;
	uint32_t max_inline;
	uint32_t mask;  /* size of the tables below - 1; a power of two */
	uint32_t depth; /* sends that may be out */
	/* sequence numbers of send requests: done <= posted <= built, built - done <= depth */
	uint32_t done, posted, built;
	uint32_t signalled;      /* the last one that was posted with a signal, + 1 */
	int wanted;              /* something in the chain is waited for */
	uint32_t lot_bytes;      /* that the remote accesses of the chain move, see VB_LOT_BYTES */
	struct ibv_send_wr *wrs; /* the chain being built */
	struct ibv_sge *sges;
	struct vb_send *sends; /* what is out */
	struct ibv_recv_wr *recv_wrs;
	struct ibv_sge *recv_sges;
	uint32_t max_recvs;
	uint64_t *doorbells; /* counter or NULL */
};

/* On an id that has its device. Limits are checked first: -E2BIG. */
int vb_qp_create(struct rdma_cm_id *id, struct ibv_pd *pd, const struct vb_limits *limits,
		 const struct vb_qp_attr *attr, struct vb_qp *qp);
void vb_qp_destroy(struct rdma_cm_id *id, struct vb_qp *qp);
/*
 * Into the error state: what is posted comes back or never completes, no packet of it is answered
 * any more.
 */
int vb_qp_fail(struct vb_qp *qp);

/* The data path: one thread. */
/*
 * The next send request, its single sge cleared and set up, to be filled in; NULL: depth reached.
 * `send` is copied.
 */
struct ibv_send_wr *vb_qp_build(struct vb_qp *qp, const struct vb_send *send);
/*
 * The same, in front of the request that was built last and has not been posted, which becomes the
 * last one again.
 */
struct ibv_send_wr *vb_qp_build_before(struct vb_qp *qp, const struct vb_send *send);
/*
 * Post what was built, with one doorbell. Its last request is signalled when something in the chain
 * is waited for, or when a quarter of the depth is out without a signal. 0 or -errno; then the
 * queue pair is of no use any more.
 */
int vb_qp_post(struct vb_qp *qp);
/*
 * A send completion came, wr_id of its wc: it and all before it are done. Calls each(arg, send,
 * status) in order; status
 * 0 or the -errno of this one (those before it: 0). each may build and post; what it is given is a
 * copy.
 */
void vb_qp_done(struct vb_qp *qp, uint64_t wr_id, int status,
		void (*each)(void *arg, const struct vb_send *send, int status), void *arg);
/* All that is out ends with status: after vb_qp_fail, when no completion will be waited for. */
void vb_qp_cancel(struct vb_qp *qp, int status,
		  void (*each)(void *arg, const struct vb_send *send, int status), void *arg);
/*
 * Post n receives, each at base + slots[i] * size, wr_id slots[i] | VB_RECV; one doorbell for up to
 * max_recvs of them.
 */
int vb_qp_recv(struct vb_qp *qp, char *base, uint32_t size, uint32_t lkey, const uint32_t *slots,
	       uint32_t n);

/*
 * An empty write, to wake who sleeps on the channel of the completion queue: the one request that
 * any thread may post.
 */
int vb_qp_wake(struct vb_qp *qp);

/*
 * A chain that moves so much is not made longer: its front moves while the next is built, and its
 * end is told while that one moves. A doorbell is nothing beside the time for so many bytes.
 */
#define VB_LOT_BYTES 65536u
#define VB_SHORT_BYTES 8192u /* a write that messages may wait for */

#define VB_RECV (1ull << 63) /* in a wr_id: a receive */
#define VB_WAKE (1ull << 62) /* vb_qp_wake */

static inline uint32_t vb_qp_room(const struct vb_qp *qp)
{
	return qp->depth - (qp->built - qp->done);
}

#endif
