/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm_rma.c - remote read and write: copies between local memory and a mapped region of the peer.
 *
 * About half the time of a copy passes before its first byte arrives. So a read is held back until
 * the next access, whose first lines are prefetched before the held read is copied. A write is not
 * held back, because the caller might next send a message that announces its data.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shm_comch.h"

int comch_rma_create(void *arg, const struct gantry_queue_attr *attr, void **rma_p)
{
	struct comch_conn *conn = arg;
	struct comch_rma *rma;
	int rc = comch_conn_usable(conn);

	if (rc)
		return rc;
	if (attr->depth == 0 || attr->depth > conn->dev->conf->max_depth)
		return -EINVAL;
	rc = comch_regions_map(conn);
	if (rc)
		return rc;
	rma = calloc(1, sizeof(*rma));
	if (!rma)
		return -ENOMEM;
	rma->payload = tc_cell_get(&conn->dev->payload, conn->dev->host);
	if (!rma->payload || tc_done_init(&rma->done, attr->depth)) {
		tc_cell_put(&conn->dev->payload, rma->payload);
		free(rma);
		return -ENOMEM;
	}
	rma->conn = conn;
	LIST_INSERT_HEAD(&conn->rmas, rma, link);
	*rma_p = rma;
	return 0;
}

void comch_rma_destroy(void *arg)
{
	struct comch_rma *rma = arg;

	if (!rma)
		return;
	LIST_REMOVE(rma, link);
	tc_cell_put(&rma->conn->dev->payload, rma->payload);
	tc_done_fini(&rma->done);
	free(rma);
}

/*
 * Copy the read that is held back. The user must not release a region with an access in flight, but
 * the function checks that the region still exists.
 */
static void finish_held(struct comch_rma *rma)
{
	const struct comch_import *r = rma->held.from;

	rma->held.from = NULL;
	if (gantry_unlikely(__atomic_load_n(&rma->conn->lost, __ATOMIC_RELAXED))) {
		tc_done_set_last(&rma->done, -ENOTCONN);
	} else if (gantry_unlikely(__atomic_load_n(&r->ref, __ATOMIC_RELAXED) != rma->held.ref ||
				   !r->addr)) {
		tc_done_set_last(&rma->done, -EACCES); /* the user has released the region */
	} else {
		memcpy(rma->held.to, (const char *)r->addr + rma->held.offset, rma->held.length);
		gantry_count(rma->payload, rma->held.length);
	}
}

static void hold(struct comch_rma *rma, const struct comch_import *r, const struct gantry_rma *op)
{
	rma->held.from = r;
	rma->held.to = op->local;
	rma->held.offset = op->remote_offset;
	rma->held.ref = __atomic_load_n(&r->ref, __ATOMIC_RELAXED);
	rma->held.length = op->length;
}

int comch_rma_submit(void *arg, const struct gantry_rma *op)
{
	struct comch_rma *rma = arg;
	const struct comch_import *r = op->remote->transport;
	uint32_t right = op->op == GANTRY_RMA_READ ? GANTRY_REMOTE_READ : GANTRY_REMOTE_WRITE;
	char *remote;

	if (gantry_unlikely(__atomic_load_n(&rma->conn->lost, __ATOMIC_RELAXED)))
		return -ENOTCONN;
	if (!r || r->conn != rma->conn || !r->addr)
		return -EACCES;
	if (!(r->rights & right))
		return -EACCES;
	if (!gantry_range_ok(op->remote_offset, op->length, r->length))
		return -ERANGE;
	if (tc_done_full(&rma->done))
		return -EAGAIN;
	remote = (char *)r->addr + op->remote_offset;
	if (op->op == GANTRY_RMA_READ || rma->held.from)
		gantry_copy_soon(op->local, remote);
	if (rma->held.from)
		finish_held(rma);
	if (op->op == GANTRY_RMA_READ) {
		hold(rma, r, op);
	} else {
		gantry_copy_out(remote, op->local, op->length,
				op->local_region ? op->local_region->length : 0);
		gantry_count(rma->payload, op->length);
	}
	tc_done_put(&rma->done, op->cookie, 0);
	return 0;
}

void comch_rma_flush(void *arg)
{
	struct comch_rma *rma = arg;

	if (rma->held.from)
		finish_held(rma);
}

int comch_rma_poll(void *arg, struct gantry_rma_done *done, uint32_t max)
{
	struct comch_rma *rma = arg;

	comch_rma_flush(rma);
	return tc_done_take(&rma->done, done, max);
}
