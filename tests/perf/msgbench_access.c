/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * msgbench_access.c - remote access: reads and writes of the memory of the other end, and exchanges
 * of writes
 */
#include <errno.h>

#include "perf/msgbench.h"

static void submit_access(const struct bench *b, struct peer *p, uint64_t seq)
{
	struct gantry_rma op = {.op = b->op,
				.length = (uint32_t)p->region.length,
				.local = p->region.addr,
				.local_region = &p->region,
				.remote = p->imported,
				.cookie = seq};
	int rc;

	while ((rc = p->ops->rma_submit(p->rma, &op)) == -EAGAIN)
		wait_a_little(p);
	if (rc)
		wrong(seq, strerror(-rc));
}

static unsigned take_accesses(struct peer *p, uint64_t after)
{
	struct gantry_rma_done done[TAKE];
	int n = p->ops->rma_poll(p->rma, done, TAKE);

	for (int i = 0; i < n; i++)
		if (done[i].status || done[i].cookie != ++after)
			wrong(after, "remote access failed, or ended out of order");
	return (unsigned)n;
}

/* -- remote writes both ways: the written memory is the message -- */

static uint64_t *last_word(const struct peer *p)
{
	return (uint64_t *)p->region.addr + p->region.length / sizeof(uint64_t) - 1;
}

/*
 * Write the whole region to the peer, with the number in the first and last word, and wait for the
 * completion. The answer can arrive before the completion.
 */
static void throw(const struct bench *b, struct peer *p, uint64_t seq)
{
	uint64_t *first = p->region.addr;

	*first = *last_word(p) = seq;
	submit_access(b, p, seq);
	p->ops->rma_flush(p->rma);
	while (take_accesses(p, seq - 1) == 0)
		;
}

/*
 * Wait for the peer's write of seq or STOP. The region is the source of the own writes and the
 * target of the peer's writes. So until then its last word is `thrown`, the last number that this
 * end has written (0: none).
 */
static uint64_t catch (struct peer *p, uint64_t seq, uint64_t thrown)
{
	const uint64_t *first = p->region.addr;
	uint64_t got;

	while ((got = __atomic_load_n(last_word(p), __ATOMIC_ACQUIRE)) == thrown)
		wait_a_little(p);
	if (*first != got || (got != seq && got != STOP))
		wrong(seq, "another number arrived, or the last word arrived before the first");
	return got;
}

uint64_t throws(const struct bench *b, struct peer *p, uint64_t seq, unsigned n)
{
	while (n--) {
		throw(b, p, seq + 1);
		seq += 2;
		catch (p, seq, seq - 1);
	}
	return seq;
}

void throw_back(const struct bench *b, struct peer *p)
{
	for (uint64_t seq = 1; catch (p, seq, seq - 1) != STOP; seq += 2)
		throw(b, p, seq + 1);
	expect(p, STOP);
	send_message(p, STOP, 0);
}

void throw_last(const struct bench *b, struct peer *p)
{
	throw(b, p, STOP);
}

/* -- reads and writes by one end -- */

static uint64_t accesses(const struct bench *b, struct peer *p, uint64_t seq, unsigned n)
{
	for (; n; n--) {
		submit_access(b, p, ++seq);
		p->ops->rma_flush(p->rma);
		while (take_accesses(p, seq - 1) == 0)
			;
	}
	return seq;
}

/* Write a number to the memory of the peer, read it back, and compare. */
static void check_access(const struct bench *b, struct peer *p, uint64_t seq)
{
	struct bench back = *b;
	uint64_t *word = p->region.addr;

	back.op = GANTRY_RMA_WRITE;
	*word = seq;
	seq = accesses(&back, p, seq, 1);
	*word = 0;
	back.op = GANTRY_RMA_READ;
	accesses(&back, p, seq, 1);
	if (*word != seq - 1)
		wrong(seq, "not what was written");
}

void measure_access(const struct bench *b, struct peer *p)
{
	uint64_t start = now_ns(), seq = accesses(b, p, 0, WARM), before = now_ns(),
		 end = before + b->length_ns, t;
	unsigned slice = slice_of(before - start, WARM);
	static struct stats stats;

	do {
		seq = accesses(b, p, seq, slice);
		t = now_ns();
		note(&stats, (double)(t - before) / slice);
		before = t;
	} while (t < end);
	check_access(b, p, seq);
	print_median(b->name, &stats, "ns");
}

void measure_accesses(const struct bench *b, struct peer *p)
{
	uint64_t seq = accesses(b, p, 0, ACCESS_DEPTH), taken = seq, first = seq, start = now_ns(),
		 t;

	do {
		while (seq - taken < ACCESS_DEPTH)
			submit_access(b, p, ++seq);
		p->ops->rma_flush(p->rma);
		taken += take_accesses(p, taken);
		t = now_ns();
	} while (t - start < b->length_ns);
	while (taken != seq)
		taken += take_accesses(p, taken);
	t = now_ns();
	check_access(b, p, seq);
	print_value(b->name,
		    (double)(seq - first) * (double)b->attr.data_bytes * 1e3 / (double)(t - start),
		    "MB/s");
}
