/* SPDX-License-Identifier: BSD-3-Clause */
/* rma.c - remote read and write: a copy between local memory and a mapped region of the peer. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "comch.h"

int comch_rma_create(void *arg, const struct gantry_queue_attr *attr, void **rma_p)
{
	struct comch_conn *conn = arg;
	struct comch_rma *rma;
	uint32_t size = 1;
	int rc = comch_conn_usable(conn);

	if (rc)
		return rc;
	if (attr->depth == 0 || attr->depth > conn->dev->conf->max_depth)
		return -EINVAL;
	rc = comch_regions_map(conn);
	if (rc)
		return rc;
	while (size < attr->depth)
		size *= 2;
	rma = calloc(1, sizeof(*rma));
	if (!rma)
		return -ENOMEM;
	rma->done = calloc(size, sizeof(*rma->done));
	rma->payload = comch_cell_get(conn->dev);
	if (!rma->done || !rma->payload) {
		comch_cell_put(conn->dev, rma->payload);
		free(rma->done);
		free(rma);
		return -ENOMEM;
	}
	rma->conn = conn;
	rma->mask = size - 1;
	comch_list_append(&conn->rmas, &rma->link);
	*rma_p = rma;
	return 0;
}

void comch_rma_destroy(void *arg)
{
	struct comch_rma *rma = arg;

	if (!rma)
		return;
	comch_list_remove(&rma->link);
	comch_cell_put(rma->conn->dev, rma->payload);
	free(rma->done);
	free(rma);
}

int comch_rma_submit(void *arg, const struct gantry_rma *op)
{
	struct comch_rma *rma = arg;
	const struct comch_import *r = op->remote->transport;
	uint32_t right = op->op == GANTRY_RMA_READ ? GANTRY_REMOTE_READ : GANTRY_REMOTE_WRITE;
	char *remote;

	if (__builtin_expect(__atomic_load_n(&rma->conn->lost, __ATOMIC_RELAXED), 0))
		return -ENOTCONN;
	if (!r || r->conn != rma->conn || !r->addr)
		return -EACCES;
	if (!(r->rights & right))
		return -EACCES;
	if (!gantry_range_ok(op->remote_offset, op->length, r->length))
		return -ERANGE;
	if (rma->head - rma->tail > rma->mask)
		return -EAGAIN;
	remote = (char *)r->addr + op->remote_offset;
	if (op->op == GANTRY_RMA_READ)
		memcpy(op->local, remote, op->length);
	else
		memcpy(remote, op->local, op->length);
	gantry_count(rma->payload, op->length);
	rma->done[rma->head++ & rma->mask] = (struct gantry_rma_done){.cookie = op->cookie};
	return 0;
}

int comch_rma_poll(void *arg, struct gantry_rma_done *done, uint32_t max)
{
	struct comch_rma *rma = arg;
	uint32_t n = 0;

	for (; n < max && rma->tail != rma->head; n++)
		done[n] = rma->done[rma->tail++ & rma->mask];
	return (int)n;
}
