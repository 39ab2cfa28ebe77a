/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wire.c - executes the oldest work request of a send queue when it can run. The wire reads the
 * memory at that time, not when the request is posted.
 */
#include "priv.h"

#define MAX_PARTS 64

static int held, cut, rnr_at_once;

/* A list of pieces of memory. */
struct parts {
	struct {
		char *ptr;
		uint64_t len;
	} part[MAX_PARTS];
	int n;
};

static int add(struct parts *parts, void *ptr, uint64_t len)
{
	if (len == 0)
		return 0;
	if (!ptr || parts->n == MAX_PARTS)
		return -1;
	parts->part[parts->n].ptr = ptr;
	parts->part[parts->n++].len = len;
	return 0;
}

/* Add the local memory of a scatter/gather list. Returns 0, or -1 if access is not allowed. */
static int add_local(struct parts *parts, const struct fv_qp *qp, const struct ibv_sge *sge, int n,
		     unsigned access)
{
	for (int i = 0; i < n; i++)
		if (sge[i].length &&
		    add(parts,
			fv_memory(sge[i].lkey, 0, qp->qp.pd, sge[i].addr, sge[i].length, access),
			sge[i].length) != 0)
			return -1;
	return 0;
}

/*
 * Small aligned data is stored as atomic words of 32 bits, with release order. A program can poll
 * such words by atomic loads, without a completion, and then sees all earlier writes. If one store
 * covered two words, the thread sanitizer would miss that order for the second word.
 */
static void copy(char *to, char *from, uint64_t n)
{
	uint32_t *t = (void *)to, *f = (void *)from;

	if (n > 64 || ((uintptr_t)to | (uintptr_t)from | n) & 3) {
		memmove(to, from, n);
		return;
	}
	for (uint64_t i = 0; i < n / 4; i++)
		__atomic_store_n(&t[i], __atomic_load_n(&f[i], __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
}

/* Copy n bytes. Both lists have at least n bytes. */
static void move(struct parts *to, struct parts *from, uint64_t n)
{
	int t = 0, f = 0;
	uint64_t t_off = 0, f_off = 0, step;

	fv_counters.bytes += n;
	for (; n; n -= step) {
		step = n;
		if (step > to->part[t].len - t_off)
			step = to->part[t].len - t_off;
		if (step > from->part[f].len - f_off)
			step = from->part[f].len - f_off;
		copy(to->part[t].ptr + t_off, from->part[f].ptr + f_off, step);
		t_off += step;
		f_off += step;
		if (t_off == to->part[t].len)
			t++, t_off = 0;
		if (f_off == from->part[f].len)
			f++, f_off = 0;
	}
}

static struct fv_qp *find_peer(const struct fv_qp *qp)
{
	struct fv_qp *peer = fv_qp_find(qp->attr.dest_qp_num);

	return peer && peer != qp && peer->attr.dest_qp_num == qp->qp.qp_num &&
			       (peer->state == IBV_QPS_RTR || peer->state == IBV_QPS_RTS)
		       ? peer
		       : NULL;
}

/* The oldest work request fails with this status; all later ones are flushed. */
static void fail(struct fv_qp *qp, enum ibv_wc_status status)
{
	qp->state = IBV_QPS_ERR;
	fv_qp_sent(qp, status, 0);
	fv_qp_error(qp);
}

/* The peer received a request that it does not allow: both queue pairs fail. */
static void refuse(struct fv_qp *qp, struct fv_qp *peer, enum ibv_wc_status status)
{
	fv_qp_error(peer);
	fail(qp, status);
}

static int uses_receive(const struct fv_send *send)
{
	return send->wr.opcode != IBV_WR_RDMA_WRITE && send->wr.opcode != IBV_WR_RDMA_READ;
}

static void do_send(struct fv_qp *qp, struct fv_qp *peer, struct fv_send *send, struct parts *local)
{
	struct fv_recv *recv = &peer->rq[peer->rq_head];
	struct parts to = {.n = 0};
	uint64_t room = 0;

	for (int i = 0; i < recv->num_sge; i++)
		room += recv->sge[i].length;
	if (room < send->length) {
		fv_qp_received(peer, IBV_WC_LOC_LEN_ERR, send);
		refuse(qp, peer, IBV_WC_REM_INV_REQ_ERR);
	} else if (add_local(&to, peer, recv->sge, recv->num_sge, IBV_ACCESS_LOCAL_WRITE) != 0) {
		fv_qp_received(peer, IBV_WC_LOC_PROT_ERR, send);
		refuse(qp, peer, IBV_WC_REM_OP_ERR);
	} else {
		move(&to, local, send->length);
		fv_counters.sends++;
		fv_qp_received(peer, IBV_WC_SUCCESS, send);
		fv_qp_sent(qp, IBV_WC_SUCCESS, send->length);
	}
}

static void do_rdma(struct fv_qp *qp, struct fv_qp *peer, struct fv_send *send, struct parts *local)
{
	const int is_read = send->wr.opcode == IBV_WR_RDMA_READ;
	const unsigned access = is_read ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;
	struct parts remote = {.n = 0};

	if (is_read && peer->attr.max_dest_rd_atomic == 0) {
		refuse(qp, peer, IBV_WC_REM_INV_REQ_ERR);
		return;
	}
	if (send->length && (!(peer->attr.qp_access_flags & access) ||
			     add(&remote,
				 fv_memory(send->wr.wr.rdma.rkey, 1, peer->qp.pd,
					   send->wr.wr.rdma.remote_addr, send->length, access),
				 send->length) != 0)) {
		fv_async(peer->qp.context, IBV_EVENT_QP_ACCESS_ERR, &peer->qp, &peer->obj);
		refuse(qp, peer, IBV_WC_REM_ACCESS_ERR);
		return;
	}
	if (is_read) {
		move(local, &remote, send->length);
		fv_counters.reads++;
	} else {
		move(&remote, local, send->length);
		fv_counters.writes++;
	}
	if (uses_receive(send))
		fv_qp_received(peer, IBV_WC_SUCCESS, send);
	fv_qp_sent(qp, IBV_WC_SUCCESS, send->length);
}

/* Let a work request wait. The counters count each request once for each reason to wait. */
static int wait_for(struct fv_send *send, enum fv_wait wait)
{
	if (send->wait != wait) {
		send->tries = 0;
		if (wait == FV_LOST)
			fv_counters.lost++;
		else
			fv_counters.rnr_naks++;
	}
	send->wait = wait;
	return 0;
}

/* Execute the oldest work request of a queue. Returns 0 if it must wait or there is none. */
static int go(struct fv_qp *qp)
{
	struct fv_send *send = &qp->sq[qp->sq_head];
	struct parts local = {.n = 0};
	struct fv_qp *peer;

	if (qp->state != IBV_QPS_RTS || qp->sq_n == 0)
		return 0;
	if (send->wr.send_flags & IBV_SEND_INLINE)
		add(&local, send->bytes, send->length);
	else if (add_local(&local, qp, send->sge, send->wr.num_sge,
			   send->wr.opcode == IBV_WR_RDMA_READ ? IBV_ACCESS_LOCAL_WRITE : 0) != 0) {
		fail(qp, IBV_WC_LOC_PROT_ERR);
		return 1;
	}
	peer = cut ? NULL : find_peer(qp);
	if (!peer)
		return wait_for(send, FV_LOST);
	if (uses_receive(send) && peer->rq_n == 0) {
		wait_for(send, FV_RNR);
		if (qp->attr.rnr_retry != 0 && (!rnr_at_once || qp->attr.rnr_retry == 7))
			return 0;
		fail(qp, IBV_WC_RNR_RETRY_EXC_ERR);
	} else if (send->wr.opcode == IBV_WR_SEND || send->wr.opcode == IBV_WR_SEND_WITH_IMM) {
		do_send(qp, peer, send, &local);
	} else {
		do_rdma(qp, peer, send, &local);
	}
	return 1;
}

void fv_wire_run(struct fv_qp *qp)
{
	struct fv_qp *sender = fv_qp_find(qp->attr.dest_qp_num);

	if (held)
		return;
	while (go(qp))
		;
	while (sender && go(sender))
		;
}

/* Returns the queue pair whose oldest work request has the lowest number from seq on. */
static struct fv_qp *oldest(uint64_t seq)
{
	struct fv_qp *found = NULL, *qp;

	for (struct fv_obj *obj = fv_first(FV_QP); obj; obj = obj->next) {
		qp = obj->self;
		if (qp->sq_n && qp->sq[qp->sq_head].seq >= seq &&
		    (!found || qp->sq[qp->sq_head].seq < found->sq[found->sq_head].seq))
			found = qp;
	}
	return found;
}

/* Execute the first posted work request that can run. Returns 0 if none can. */
static int go_oldest(void)
{
	uint64_t seq = 0;
	struct fv_qp *qp;

	while ((qp = oldest(seq))) {
		seq = qp->sq[qp->sq_head].seq + 1;
		if (go(qp))
			return 1;
	}
	return 0;
}

int fv_wire_is_cut(void)
{
	return cut;
}

void fv_wire_reset(void)
{
	held = cut = rnr_at_once = 0;
}

/* -- for tests -- */

void fake_wire_cut(int on)
{
	fv_lock();
	cut = on;
	if (!on)
		fv_cm_healed();
	while (!on && !held && go_oldest())
		;
	fv_leave(0);
}

void fake_wire_rnr_at_once(int on)
{
	fv_lock();
	rnr_at_once = on;
	while (!held && go_oldest())
		;
	fv_leave(0);
}

void fake_wire_hold(int on)
{
	fv_lock();
	held = on;
	while (!held && go_oldest())
		;
	fv_leave(0);
}

int fake_wire_step(struct ibv_qp *qp)
{
	int went;

	fv_lock();
	went = qp ? go((struct fv_qp *)qp) : go_oldest();
	fv_leave(0);
	return went;
}

int fake_wire_step_any(unsigned number)
{
	unsigned n = 0;
	int went = 0;

	fv_lock();
	for (struct fv_obj *obj = fv_first(FV_QP); obj; obj = obj->next)
		n += ((struct fv_qp *)obj->self)->sq_n != 0;
	number = n ? number % n : 0;
	for (struct fv_obj *obj = fv_first(FV_QP); obj && !went; obj = obj->next)
		if (((struct fv_qp *)obj->self)->sq_n != 0 && number-- == 0)
			went = go(obj->self);
	fv_leave(0);
	return went;
}

unsigned fake_wire_waiting(struct ibv_qp *qp)
{
	unsigned n = 0;

	fv_lock();
	for (struct fv_obj *obj = fv_first(FV_QP); obj; obj = obj->next)
		if (!qp || obj->self == qp)
			n += ((struct fv_qp *)obj->self)->sq_n;
	fv_leave(0);
	return n;
}

/* A retry period of one queue passes. Returns 1 if its oldest send has no retries left. */
static int pass_period(struct fv_qp *qp)
{
	struct fv_send *send = &qp->sq[qp->sq_head];

	if (qp->state != IBV_QPS_RTS || qp->sq_n == 0 || send->wait == FV_GOES)
		return 0;
	send->tries++;
	if (send->wait == FV_LOST && send->tries > qp->attr.retry_cnt)
		fail(qp, IBV_WC_RETRY_EXC_ERR);
	else if (send->wait == FV_RNR && qp->attr.rnr_retry != 7 &&
		 send->tries > qp->attr.rnr_retry)
		fail(qp, IBV_WC_RNR_RETRY_EXC_ERR);
	else
		return 0;
	return 1;
}

unsigned fake_wire_timeout(unsigned n)
{
	unsigned failed = 0;

	fv_lock();
	while (n--)
		for (struct fv_obj *obj = fv_first(FV_QP); obj; obj = obj->next)
			failed += (unsigned)pass_period(obj->self);
	return (unsigned)fv_leave((int)failed);
}
