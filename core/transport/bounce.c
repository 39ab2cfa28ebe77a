/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/bounce.h"

#include "base/clock.h"
#include "memory/pages.h"

#include <errno.h>
#include <stdlib.h>

#define BATCH 16

/* The buffer of one descriptor. */
struct buffer {
	uint64_t started_ns; /* start of the move; 0: the time is not measured */
	uint32_t first, n;   /* first page and number of pages; n 0: no buffer */
};

struct gn_bounce {
	struct gn_bounce_attr attr;
	struct gn_pages *pages;
	struct buffer *buffers;
};

int gn_bounce_create(const struct gn_bounce_attr *attr, struct gn_bounce **bounce_p)
{
	struct gn_bounce *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->attr = *attr;
	m->buffers = calloc(attr->n, sizeof(*m->buffers));
	if (!m->buffers ||
	    (!attr->is_store &&
	     gn_pages_create((uint32_t)(attr->memory->length / GN_PAGE_BYTES), &m->pages) != 0)) {
		gn_bounce_destroy(&m);
		return -ENOMEM;
	}
	*bounce_p = m;
	return 0;
}

void gn_bounce_destroy(struct gn_bounce **bounce_p)
{
	struct gn_bounce *m = *bounce_p;

	*bounce_p = NULL;
	if (!m)
		return;
	gn_pages_destroy(&m->pages);
	free(m->buffers);
	free(m);
}

int gn_bounce_attach(struct gn_bounce *m, struct gantry_io *io)
{
	struct buffer *b = &m->buffers[io->slot];
	uint32_t n = gn_page_count(gantry_io_buffer_bytes(io));

	if (m->attr.is_store) {
		io->data = (char *)m->attr.memory->addr + io->offset;
		return 0;
	}
	if (gn_pages_take(m->pages, n, &b->first) != 0)
		return -EAGAIN;
	b->n = n;
	io->data = (char *)m->attr.memory->addr + (size_t)b->first * GN_PAGE_BYTES;
	return 0;
}

void gn_bounce_detach(struct gn_bounce *m, struct gantry_io *io)
{
	struct buffer *b = &m->buffers[io->slot];

	if (b->n == 0)
		return;
	gn_pages_give(m->pages, b->first, b->n);
	b->n = 0;
	io->data = NULL;
}

int gn_bounce_fits(const struct gn_bounce *m, const struct gantry_io *io)
{
	return m->attr.is_store ||
	       gn_pages_fit(m->pages, gn_page_count(gantry_io_buffer_bytes(io)));
}

static struct gantry_rma begin(struct gn_bounce *m, struct gantry_io *io,
			       const struct gantry_region *region, enum gantry_rma_op op,
			       uint64_t started_ns)
{
	m->buffers[io->slot].started_ns = started_ns;
	return (struct gantry_rma){
		.op = op,
		.length = gantry_io_buffer_bytes(io),
		.local = io->data,
		.local_region = m->attr.memory,
		.remote = region,
		.remote_offset = io->region_offset,
		.cookie = io->slot,
	};
}

int gn_bounce_move(struct gn_bounce *m, struct gantry_io *io, const struct gantry_region *region,
		   enum gantry_rma_op op, uint64_t started_ns)
{
	struct gantry_rma rma = begin(m, io, region, op, started_ns);

	return m->attr.ops->rma_submit(m->attr.rma, &rma);
}

int gn_bounce_write_imm(struct gn_bounce *m, struct gantry_io *io,
			const struct gantry_region *region, uint32_t note)
{
	struct gantry_rma rma = begin(m, io, region, GANTRY_RMA_WRITE, 0);

	return m->attr.ops->rma_write_imm(m->attr.rma, &rma, note);
}

int gn_bounce_move_part(struct gn_bounce *m, struct gantry_io *io,
			const struct gantry_region *region, enum gantry_rma_op op,
			const struct gn_bounce_part *part)
{
	struct gantry_rma rma = begin(m, io, region, op, 0);

	rma.length = part->length;
	rma.local = (char *)io->data + part->at;
	rma.remote_offset = part->offset;
	return m->attr.ops->rma_submit(m->attr.rma, &rma);
}

static uint32_t took(uint64_t started_ns, uint64_t now_ns)
{
	uint64_t ns = now_ns > started_ns ? now_ns - started_ns : 0;

	return ns > UINT32_MAX ? UINT32_MAX : (uint32_t)ns;
}

int gn_bounce_poll(struct gn_bounce *m, void (*moved)(void *arg, struct gantry_io *io, int status),
		   void *arg)
{
	struct gantry_rma_done done[BATCH];
	int n = m->attr.ops->rma_poll(m->attr.rma, done, BATCH);
	uint64_t now_ns = 0;

	for (int i = 0; i < n; i++) {
		struct gantry_io *io;
		uint64_t started_ns;

		if (done[i].cookie >= m->attr.n)
			/* unknown cookie: the transport violates its contract */
			continue;
		io = &m->attr.ios[done[i].cookie];
		started_ns = m->buffers[io->slot].started_ns;
		if (started_ns != 0) {
			/* one reading of the clock for all moves of this poll */
			now_ns = now_ns != 0 ? now_ns : gn_fast_ns();
			io->hop_ns[GANTRY_HOP_DATA] = took(started_ns, now_ns);
		}
		moved(arg, io, done[i].status);
	}
	return n > 0 ? n : 0;
}

void gn_bounce_flush(struct gn_bounce *m)
{
	m->attr.ops->rma_flush(m->attr.rma);
}
