/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp_rma.c - remote reads and writes of imported regions, which the owner executes. */
#include <errno.h>
#include <stdlib.h>

#include "tcp.h"

int tcp_rma_create(void *arg, const struct gantry_queue_attr *attr, void **rma_p)
{
	struct tcp_conn *conn = arg;
	struct tcp_owner *owner;
	struct tcp_lane *lane;
	struct tcp_rma *rma;
	int rc;

	if (!tcp_conn_usable(conn))
		return -ENOTCONN;
	if (attr->depth == 0 || attr->depth > (uint32_t)conn->dev->conf->max_depth)
		return -EINVAL;
	rma = calloc(1, sizeof(*rma));
	if (!rma)
		return -ENOMEM;
	rma->depth = attr->depth;
	rc = tc_done_init(&rma->done, attr->depth);
	if (rc)
		goto out_free;
	rc = tcp_lane_get(conn, attr->lane, &lane);
	if (!rc)
		rc = tcp_lane_use(lane);
	if (rc)
		goto out_free;
	rc = tcp_link_want(lane, attr->lane, &rma->link);
	if (rc) {
		tcp_lane_put(lane);
		goto out_free;
	}
	LIST_FOREACH (owner, &conn->owners, entry)
		if (!rc)
			rc = tcp_direct_want(lane, owner);
	if (rc) {
		tcp_lane_put(lane);
		goto out_free;
	}
	lane->n_rmas++;
	*rma_p = rma;
	return 0;

out_free:
	tc_done_fini(&rma->done);
	free(rma);
	return rc;
}

void tcp_rma_destroy(void *arg)
{
	struct tcp_rma *rma = arg;
	struct tcp_lane *lane;
	struct tcp_link *link;

	if (!rma)
		return;
	lane = rma->link->lane;
	pthread_mutex_lock(&lane->lock);
	LIST_FOREACH (link, &lane->links, entry)
		tcp_link_forget(link, rma, NULL, NULL);
	pthread_mutex_unlock(&lane->lock);
	lane->n_rmas--;
	tcp_lane_put(lane);
	tc_done_fini(&rma->done);
	free(rma);
}

static int check(const struct tcp_rma *rma, const struct gantry_rma *op)
{
	const struct tcp_import *im = op->remote->transport;
	uint32_t right = op->op == GANTRY_RMA_READ ? GANTRY_REMOTE_READ : GANTRY_REMOTE_WRITE;

	if (tcp_lost(rma->link->lane->conn) || (!im->owner && rma->link->state == TCP_L_CLOSED))
		return -ENOTCONN;
	if (op->remote->domain != TCP_DOMAIN || im->conn != rma->link->lane->conn ||
	    !(im->pub.rights & right))
		return -EACCES;
	return gantry_range_ok(op->remote_offset, op->length, im->pub.length) ? 0 : -ERANGE;
}

static void ended(void *owner, uint64_t cookie, int status)
{
	struct tcp_rma *rma = owner;

	tc_done_put(&rma->done, cookie, status);
}

int tcp_rma_submit(void *arg, const struct gantry_rma *op)
{
	struct tcp_rma *rma = arg;
	struct tcp_lane *lane = rma->link->lane;
	const struct tcp_import *im = op->remote->transport;
	struct tcp_link *link;
	int rc;

	pthread_mutex_lock(&lane->lock);
	rc = check(rma, op);
	link = im->owner ? __atomic_load_n(&im->owner->links[lane->number], __ATOMIC_ACQUIRE)
			 : rma->link;
	if (!rc && (!link || rma->n_out == rma->depth))
		rc = -EAGAIN;
	if (!rc)
		rc = tcp_link_submit(
			link,
			&(struct tcp_access){.name = im->owner ? im->wire.owner_name
							       : im->wire.name,
					     .offset = op->remote_offset},
			&(struct tcp_op){.owner = rma,
					 .ended = ended,
					 .cookie = op->cookie,
					 .local = op->local,
					 .length = op->length,
					 .kind = op->op == GANTRY_RMA_READ ? TCP_READ : TCP_WRITE});
	if (!rc) {
		rma->n_out++;
		gantry_count(lane->payload, op->length);
	} else if (rc == -EAGAIN) {
		/* only what is sent completes, and only a completion frees an entry */
		tcp_lane_flush(lane);
	}
	pthread_mutex_unlock(&lane->lock);
	return rc;
}

void tcp_rma_flush(void *arg)
{
	struct tcp_lane *lane = ((struct tcp_rma *)arg)->link->lane;

	pthread_mutex_lock(&lane->lock);
	tcp_lane_flush(lane);
	pthread_mutex_unlock(&lane->lock);
}

/* End the accesses on links that have ended, or whose connection has. */
static void end_accesses(struct tcp_lane *lane)
{
	struct tcp_link *link;

	LIST_FOREACH (link, &lane->links, entry)
		if (link->n_out && (tcp_lost(lane->conn) || link->state == TCP_L_CLOSED))
			tcp_link_end_accesses(link);
}

int tcp_rma_poll(void *arg, struct gantry_rma_done *done, uint32_t max)
{
	struct tcp_rma *rma = arg;
	struct tcp_lane *lane = rma->link->lane;
	int n;

	pthread_mutex_lock(&lane->lock);
	if (tc_done_empty(&rma->done)) {
		tcp_lane_poll_unless_drained(lane);
		if (rma->n_out && tc_done_empty(&rma->done))
			end_accesses(lane);
	}
	n = tc_done_take(&rma->done, done, max);
	rma->n_out -= (uint32_t)n;
	pthread_mutex_unlock(&lane->lock);
	return n;
}
