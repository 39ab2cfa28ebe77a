/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * priv.h - internal declarations of the fake. One lock protects everything: FV_ENTER takes it,
 * fv_leave*() releases it.
 */
#ifndef FAKE_VERBS_PRIV_H
#define FAKE_VERBS_PRIV_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "verbs.h"

/*
 * The headers of libibverbs define these names as macros. The fake defines the functions with these
 * names, so the macros must not apply.
 */
#undef ibv_get_device_list
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define FV_OF(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

/* Functions whose calls are counted, and can be made to fail. */
/* clang-format off */
#define FV_FUNCTIONS(X) \
	X(ibv_get_device_list) X(ibv_open_device) X(ibv_close_device) X(ibv_query_device) \
	X(ibv_query_device_ex) X(ibv_query_port) X(ibv_query_gid) X(ibv_query_gid_ex) \
	X(ibv_query_gid_table) X(ibv_query_pkey) X(ibv_get_async_event) X(ibv_ack_async_event) \
	X(ibv_fork_init) X(ibv_alloc_pd) X(ibv_dealloc_pd) X(ibv_reg_mr) X(ibv_reg_mr_iova) \
	X(ibv_reg_mr_iova2) X(ibv_reg_dmabuf_mr) X(ibv_rereg_mr) X(ibv_dereg_mr) \
	X(ibv_create_comp_channel) X(ibv_destroy_comp_channel) X(ibv_get_cq_event) \
	X(ibv_ack_cq_events) X(ibv_create_cq) X(ibv_resize_cq) X(ibv_destroy_cq) X(ibv_poll_cq) \
	X(ibv_req_notify_cq) X(ibv_create_qp) X(ibv_modify_qp) X(ibv_query_qp) X(ibv_destroy_qp) \
	X(ibv_post_send) X(ibv_post_recv) X(ibv_create_srq) X(rdma_create_event_channel) \
	X(rdma_destroy_event_channel) X(rdma_create_id) X(rdma_destroy_id) X(rdma_bind_addr) \
	X(rdma_listen) X(rdma_resolve_addr) X(rdma_resolve_route) X(rdma_create_qp) \
	X(rdma_destroy_qp) X(rdma_connect) X(rdma_accept) X(rdma_reject) X(rdma_establish) \
	X(rdma_disconnect) X(rdma_notify) X(rdma_get_cm_event) X(rdma_ack_cm_event) \
	X(rdma_set_option) X(rdma_migrate_id) X(rdma_init_qp_attr) X(rdma_get_devices)
/* clang-format on */

enum fv_fn {
#define FV_NAME(name) FV_FN_##name,
	FV_FUNCTIONS(FV_NAME)
#undef FV_NAME
		FV_FNS
};

enum fv_kind {
	FV_DEVICE_LIST,
	FV_CONTEXT,
	FV_PD,
	FV_MR,
	FV_COMP_CHANNEL,
	FV_CQ,
	FV_QP,
	FV_EVENT_CHANNEL,
	FV_ID,
	FV_CM_EVENT,
	FV_KINDS
};

/* The common part of every object. */
struct fv_obj {
	struct fv_obj *next, **link;
	void *self;       /* the pointer that the program has */
	unsigned users;   /* other objects that depend on it */
	unsigned unacked; /* events that the program got, not acknowledged */
	int hidden;       /* the program does not own it: not counted as a leak */
};

/* A file descriptor that is readable while an event is pending. */
struct fv_bell {
	int fd;
	int rung;
};

struct fv_async {
	struct fv_async *next;
	struct ibv_async_event event;
	struct fv_obj *obj; /* NULL: an event of the device */
};

struct fv_device {
	struct fake_device conf;
	struct ibv_device dev;
	unsigned live[FV_KINDS];
	struct ibv_context *cm_context; /* that the connection manager opened, or NULL */
	struct ibv_pd *cm_pd;
};

struct fv_context {
	struct fv_obj obj;
	struct fv_device *device;
	struct fv_bell bell;
	struct fv_async *events, **last;
	struct verbs_context vctx;
};

struct fv_pd {
	struct ibv_pd pd;
	struct fv_obj obj;
};

struct fv_mr {
	struct ibv_mr mr;
	struct fv_obj obj;
	uint64_t iova;
	unsigned access;
};

struct fv_comp_channel {
	struct ibv_comp_channel channel;
	struct fv_obj obj;
	struct fv_bell bell;
	struct fv_cq *first, **last; /* the CQs with a queued event */
};

struct fv_cqe {
	struct ibv_wc wc;
	uint32_t slots; /* slots of the queue that become free when this completion is polled */
	uint8_t is_recv, signalled;
};

struct fv_cq {
	struct ibv_cq cq;
	struct fv_obj obj;
	struct fv_comp_channel *channel;
	struct fv_cqe *ring;
	uint32_t head, n, size;
	int armed;       /* 1: for any completion, 2: for solicited ones */
	unsigned queued; /* events that wait in the channel */
	struct fv_cq *next_event;
};

/* Why a work request waits: not at all, for the wire or a peer, or for a receive. */
enum fv_wait { FV_GOES, FV_LOST, FV_RNR };

struct fv_send {
	struct ibv_send_wr wr; /* its sg_list is sge below */
	struct ibv_sge *sge;
	uint8_t *bytes; /* buffer for inline data */
	uint32_t length;
	uint64_t seq;
	unsigned tries;
	enum fv_wait wait;
};

struct fv_recv {
	uint64_t wr_id;
	struct ibv_sge *sge;
	int num_sge;
};

struct fv_qp {
	struct ibv_qp qp; /* qp.state: the last state that the program got */
	struct fv_obj obj;
	enum ibv_qp_state state;
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	struct fv_send *sq;
	uint32_t sq_head, sq_n; /* not executed yet */
	uint32_t sq_used;       /* slots in use */
	uint32_t sq_quiet;      /* executed since the last completion */
	uint32_t sq_signalled;  /* posted signalled requests, not polled yet */
	struct fv_recv *rq;
	uint32_t rq_head, rq_n, rq_used;
	struct ibv_sge *sges;
	uint8_t *bytes;
};

/* -- inject.c: lock, objects, misuse -- */

#define FV_ENTER(name) fv_enter(FV_FN_##name)

int fv_enter(enum fv_fn fn); /* returns the injected errno, or 0 */
void fv_lock(void);
int fv_leave(int err);                  /* returns err */
int fv_leave_errno(int err);            /* returns 0, or -1 with errno */
void *fv_leave_ptr(void *ptr, int err); /* returns ptr, or NULL with errno */
extern struct fake_counters fv_counters;

__attribute__((format(printf, 1, 2))) void fv_misuse(const char *fmt, ...);
void *fv_alloc(size_t size); /* zeroed memory; a lack of memory ends the program */
void fv_add(enum fv_kind kind, struct fv_obj *obj, void *self);
void fv_remove(struct fv_obj *obj);
struct fv_obj *fv_first(enum fv_kind kind);
/*
 * Check that an object exists and has this kind. If not (NULL included), records misuse of the
 * function. Returns 0 or EINVAL.
 */
int fv_check(enum fv_kind kind, const void *self, const char *function);
/* Record misuse if an object is destroyed while events of it are not acknowledged. */
void fv_check_acked(struct fv_obj *obj, const char *function);

int fv_bell_open(struct fv_bell *bell); /* returns 0 or an errno */
void fv_bell_close(struct fv_bell *bell);
void fv_bell_ring(struct fv_bell *bell);
void fv_bell_quiet(struct fv_bell *bell);
/* Waits without the lock. Returns 0 or an errno; EAGAIN: fd is nonblocking and not readable. */
int fv_bell_wait(int fd);

/* -- device.c -- */
struct fv_device *fv_device(unsigned index);
unsigned fv_n_devices(void);
struct fv_device *fv_device_of(const struct ibv_context *context);
struct fv_context *fv_context(struct ibv_context *context);
struct ibv_context *fv_context_open(struct fv_device *device, int hidden);
void fv_context_free(struct fv_context *context);
/* Queue an event for one context. obj: the object of the event; NULL: the device. */
void fv_async(struct ibv_context *context, enum ibv_event_type type, void *element,
	      struct fv_obj *obj);
void fv_async_forget(struct ibv_context *context, struct fv_obj *obj);
void fv_device_reset(void);

/* -- memory.c -- */
struct ibv_pd *fv_pd_alloc(struct ibv_context *context, int hidden);
void fv_pd_free(struct fv_pd *pd);
/* Returns the memory of a range of an MR; NULL if key, domain, range or access is wrong. */
void *fv_memory(uint32_t key, int remote, const struct ibv_pd *pd, uint64_t addr, uint64_t len,
		unsigned access);
void fv_memory_reset(void);
void fv_memory_renumber(void);

/* -- cq.c -- */
int fv_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int fv_req_notify_cq(struct ibv_cq *cq, int solicited_only);
void fv_cq_push(struct fv_cq *cq, const struct fv_cqe *cqe, int solicited);
void fv_cq_clean(struct fv_cq *cq, uint32_t qp_num);
void fv_cq_reset(void);

/* -- qp.c -- */
struct fv_qp *fv_qp_find(uint32_t qp_num);
int fv_qp_create(struct ibv_pd *pd, struct ibv_qp_init_attr *init, struct ibv_qp **qp_p);
int fv_qp_modify(struct fv_qp *qp, const struct ibv_qp_attr *attr, int mask);
int fv_qp_destroy(struct ibv_qp *qp, const char *function);
void fv_qp_error(struct fv_qp *qp);
void fv_qp_sent(struct fv_qp *qp, enum ibv_wc_status status, uint32_t byte_len);
void fv_qp_received(struct fv_qp *qp, enum ibv_wc_status status, const struct fv_send *send);
int fv_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int fv_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
void fv_qp_reset(void);
void fv_qp_renumber(void);

/* -- wire.c -- */
/* Execute those work requests that can run, of a queue pair and of its peer. */
void fv_wire_run(struct fv_qp *qp);
int fv_wire_is_cut(void);
void fv_wire_reset(void);

/* -- cm_event.c -- */
void fv_cm_healed(void);
void fv_cm_reset(void);

#endif
