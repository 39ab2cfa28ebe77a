/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/mover.h"

#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#define BATCH 16

struct gn_mover {
	const struct gantry_transport_ops *ops;
	void *rma;
	struct gantry_io *ios;
	uint32_t n;
	char *buffers; /* touched only when used */
	uint64_t *started_ns;
};

int gn_mover_create(const struct gantry_transport_ops *ops, void *rma, struct gantry_io *ios, uint32_t n,
		    struct gn_mover **mover_p)
{
	struct gn_mover *m = calloc(1, sizeof(*m));

	if (m == NULL)
		return -ENOMEM;
	*m = (struct gn_mover){.ops = ops, .rma = rma, .ios = ios, .n = n};
	m->started_ns = calloc(n, sizeof(*m->started_ns));
	m->buffers = mmap(NULL, (size_t)n * GN_MOVER_MAX_IO, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (m->buffers == MAP_FAILED)
		m->buffers = NULL;
	if (m->buffers == NULL || m->started_ns == NULL) {
		gn_mover_destroy(&m);
		return -ENOMEM;
	}
	*mover_p = m;
	return 0;
}

void gn_mover_destroy(struct gn_mover **mover_p)
{
	struct gn_mover *m = *mover_p;

	*mover_p = NULL;
	if (m == NULL)
		return;
	if (m->buffers != NULL)
		munmap(m->buffers, (size_t)m->n * GN_MOVER_MAX_IO);
	free(m->started_ns);
	free(m);
}

void gn_mover_attach(struct gn_mover *m, struct gantry_io *io)
{
	io->data = m->buffers + (size_t)io->slot * GN_MOVER_MAX_IO;
}

int gn_mover_move(struct gn_mover *m, struct gantry_io *io, const struct gantry_region *region, enum gantry_rma_op op)
{
	struct gantry_rma rma = {
		.op = op,
		.length = io->length,
		.local = io->data,
		.remote = region,
		.remote_offset = io->region_offset,
		.cookie = io->slot,
	};

	m->started_ns[io->slot] = gn_fast_ns();
	return m->ops->rma_submit(m->rma, &rma);
}

int gn_mover_poll(struct gn_mover *m, void (*moved)(void *arg, struct gantry_io *io, int status), void *arg)
{
	struct gantry_rma_done done[BATCH];
	int n = m->ops->rma_poll(m->rma, done, BATCH);

	for (int i = 0; i < n; i++) {
		struct gantry_io *io;
		uint64_t took;

		if (done[i].cookie >= m->n)
			continue; /* not one of ours: no transport that keeps its contract says this */
		io = &m->ios[done[i].cookie];
		took = gn_fast_ns() - m->started_ns[io->slot];
		io->hop_ns[GANTRY_HOP_DATA] = took > UINT32_MAX ? UINT32_MAX : (uint32_t)took;
		moved(arg, io, done[i].status);
	}
	return n > 0 ? n : 0;
}

void gn_mover_flush(struct gn_mover *m)
{
	m->ops->rma_flush(m->rma);
}
