/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memory.c - a backend that keeps the volume in the memory of the process.
 *
 * All lanes share one private mapping, which the kernel fills with zeroes on first touch. An IO is
 * one memcpy between the mapping and the memory of the initiator. Like a disk, the backend does not
 * order IOs in flight on the same block.
 *
 * With the option `populate` the pages of the volume never change, so an RDMA device can register
 * them and move data to and from them directly. Then the data of an IO is already in place, and the
 * backend copies nothing.
 *
 * TLB and cache misses before the first byte take about half the time of a random 4 KiB copy. A
 * lane therefore holds one copy back until it gets the next IO or the turn ends. It prefetches the
 * first lines of an IO when it accepts the IO, so the misses overlap with the previous copy.
 */
#define GANTRY_API_VERSION 1

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <gantry/copy.h>

#include "../common/identity.h"
#include "../common/described.h"

#define HUGE_PAGE (2ull << 20)
/* clearing a shorter range costs less than returning its pages to the kernel */
#define RELEASE_FROM (64u << 10)
#define CHUNK_SHIFT 16 /* a chunk has 64 KiB, so that no block crosses its end */

struct memory_conf {
	const char *uuid;
	uint64_t size;
	uint64_t block;
	uint8_t huge_pages;
	uint8_t populate;
	uint8_t timing;
};

struct memory {
	uint8_t *base;
	uint64_t bytes; /* length of the mapping */
	uint64_t page;  /* bytes; granularity of madvise */
	int huge;       /* the mapping consists of reserved huge pages */
	/*
	 * one byte for each chunk, __atomic: 1 if a write was submitted since the start. A chunk
	 * with 0 reads as zeroes. NULL: all pages are populated
	 */
	uint8_t *written;
	int timing;
	const struct gantry_host *host;
	const struct memory_conf *conf;
	uint8_t uuid[16];
	uint64_t verifier; /* random: the content does not outlive this process */
};

struct memory_lane {
	struct memory *memory;
	struct gantry_io *held; /* IO whose data is prefetched and not yet copied; NULL: none */
};

static const struct gantry_option options[] = {
	{"size", GANTRY_OPT_SIZE, offsetof(struct memory_conf, size), "1GiB", 512, INT64_MAX, NULL,
	 NULL, "Size of the volume; a multiple of the block size."},
	{"block", GANTRY_OPT_SIZE, offsetof(struct memory_conf, block), "4KiB", 512, 65536, NULL,
	 NULL, "Block size: a power of two. Offset and length of each IO are multiples of it."},
	{"huge_pages", GANTRY_OPT_BOOL, offsetof(struct memory_conf, huge_pages), "false", 0, 0,
	 NULL, NULL,
	 "Use 2 MiB pages: reserved ones if enough are available, else transparent huge pages."},
	{"populate", GANTRY_OPT_BOOL, offsetof(struct memory_conf, populate), "false", 0, 0, NULL,
	 NULL,
	 "Prefault all memory at start, and keep the pages also when data is discarded. "
	 "A target with RDMA then moves data directly to and from it."},
	{"timing", GANTRY_OPT_BOOL, offsetof(struct memory_conf, timing), "false", 0, 0, NULL, NULL,
	 "Measure each copy and report it as the backend's part of the latency; costs about 50 ns for each IO."},
	IDENTITY_OPTION(struct memory_conf,
			"derived from the machine id, the name of the role and the size."),
	GANTRY_OPTION_END,
};

static int map_volume(struct memory *m, uint64_t size)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS;
	void *base = MAP_FAILED;

	m->page = (uint64_t)sysconf(_SC_PAGESIZE);
	if (m->conf->huge_pages) {
		m->bytes = (size + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
		base = mmap(NULL, m->bytes, PROT_READ | PROT_WRITE, flags | MAP_HUGETLB, -1, 0);
		m->huge = base != MAP_FAILED;
		if (m->huge)
			m->page = HUGE_PAGE;
		else
			gantry_log_info(
				m->host,
				"no reserved huge pages for %llu bytes, using transparent ones",
				(unsigned long long)m->bytes);
	}
	if (base == MAP_FAILED) {
		m->bytes = (size + m->page - 1) & ~(m->page - 1);
		base = mmap(NULL, m->bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
	}
	if (base == MAP_FAILED)
		return -errno;
	if (m->conf->huge_pages && !m->huge)
		madvise(base, m->bytes, MADV_HUGEPAGE);
	m->base = base;
	return 0;
}

static void populate(struct memory *m)
{
	for (uint64_t at = 0; at < m->bytes; at += m->page)
		*(volatile uint8_t *)(m->base + at) = 0;
}

static void describe(const struct memory_conf *conf, struct gantry_volume_info *volume)
{
	volume_expect(conf->uuid, conf->size, conf->block, volume);
	volume->flags |= GANTRY_VOLUME_LISTS;
	/* a populated volume has no holes, and the host can use its mapping only without the bit */
	if (conf->populate)
		volume->ops &= ~(1u << GANTRY_OP_EXTENTS);
}

static void memory_check(const void *arg, struct gantry_check *check)
{
	const struct memory_conf *conf = arg;

	volume_check(conf->uuid, conf->size, conf->block, check);
	describe(conf, &check->volume);
}

static int memory_open(const struct gantry_host *host, const void *arg, void **backend_p)
{
	const struct memory_conf *conf = arg;
	struct memory *m;
	int rc;

	if (conf->size > SIZE_MAX - HUGE_PAGE) {
		gantry_log_error(host, "size %llu is more than the address space",
				 (unsigned long long)conf->size);
		return -ENOMEM;
	}
	m = calloc(1, sizeof *m);
	if (!m)
		return -ENOMEM;
	m->host = host;
	m->conf = conf;
	m->timing = conf->timing;
	rc = map_volume(m, conf->size);
	if (rc) {
		gantry_log_error(host, "cannot map %llu bytes: %s", (unsigned long long)conf->size,
				 strerror(-rc));
		free(m);
		return rc;
	}
	if (conf->populate)
		populate(m);
	else
		m->written = calloc((m->bytes >> CHUNK_SHIFT) + 1, 1);
	if (!conf->populate && !m->written) {
		munmap(m->base, m->bytes);
		free(m);
		return -ENOMEM;
	}
	identity_of_instance(host, conf->uuid, conf->size, m->uuid);
	m->verifier = identity_nonce();
	*backend_p = m;
	return 0;
}

static void memory_volume(void *backend, struct gantry_volume_info *volume)
{
	const struct memory *m = backend;

	describe(m->conf, volume);
	memcpy(volume->uuid, m->uuid, sizeof volume->uuid);
	volume->verifier = m->verifier;
}

static int memory_start(void *backend, struct gantry_lane *lane, uint32_t depth, void **self_p)
{
	struct memory_lane *self = gantry_zalloc_lines(sizeof *self);

	(void)lane;
	(void)depth;
	if (!self)
		return -ENOMEM;
	self->memory = backend;
	*self_p = self;
	return 0;
}

static void memory_stop(void *self)
{
	free(self);
}

/*
 * Zero a range. Whole pages are returned to the kernel, which supplies zeroes for them at the next
 * touch; the remainder is cleared. Reserved huge pages are kept, because none might be available at
 * the next touch. Pages of a populated volume are kept, because an RDMA device might have
 * registered them.
 */
static void wipe(struct memory *m, uint64_t offset, uint64_t length)
{
	uint64_t end = offset + length;
	uint64_t first = (offset + m->page - 1) & ~(m->page - 1);
	uint64_t last = end & ~(m->page - 1);

	if (m->huge || m->conf->populate || length < RELEASE_FROM || first >= last ||
	    madvise(m->base + first, last - first, MADV_DONTNEED)) {
		memset(m->base + offset, 0, length);
		return;
	}
	memset(m->base + offset, 0, first - offset);
	memset(m->base + last, 0, end - last);
}

static int is_written(const struct memory *m, uint64_t offset)
{
	return __atomic_load_n(&m->written[offset >> CHUNK_SHIFT], __ATOMIC_RELAXED);
}

static __attribute__((noinline)) void mark_chunks(struct memory *m, uint64_t first, uint64_t last)
{
	for (uint64_t at = first; m->written && at <= last; at++)
		__atomic_store_n(&m->written[at], 1, __ATOMIC_RELAXED);
}

/* Record that the range is written to, before the first byte is. */
static inline void mark_written(struct memory *m, uint64_t offset, uint32_t length)
{
	uint64_t first = offset >> CHUNK_SHIFT, last = (offset + length - 1) >> CHUNK_SHIFT;

	if (gantry_unlikely(first != last || !m->written ||
			    !__atomic_load_n(&m->written[first], __ATOMIC_RELAXED)))
		mark_chunks(m, first, last);
}

static __attribute__((noinline)) void report_extents(const struct memory *m,
						     const struct gantry_io *io)
{
	const uint64_t end = io->offset + io->length;
	struct gantry_extents extents = {.count = 0};
	uint64_t at = io->offset, next;
	int full = 0;

	for (; at < end && !full; at = next) {
		next = ((at >> CHUNK_SHIFT) + 1) << CHUNK_SHIFT;
		if (next > end)
			next = end;
		full = gantry_extents_add(
			&extents, (uint32_t)(next - at),
			is_written(m, at) ? 0 : GANTRY_EXTENT_HOLE | GANTRY_EXTENT_ZERO);
	}
	gantry_extents_finish(io, &extents);
}

/* Execute a read or write with a list. */
static __attribute__((noinline)) void copy_pieces(struct memory *m, const struct gantry_io *io)
{
	const struct gantry_pieces *pieces = io->data;
	uint8_t *place = m->base + io->offset;

	if (io->opcode == GANTRY_OP_WRITE)
		mark_written(m, io->offset, io->length);
	for (uint32_t i = 0; i < pieces->count; place += pieces->piece[i++].iov_len)
		if (io->opcode == GANTRY_OP_READ)
			memcpy(pieces->piece[i].iov_base, place, pieces->piece[i].iov_len);
		else
			memcpy(place, pieces->piece[i].iov_base, pieces->piece[i].iov_len);
}

static void execute(struct memory *m, struct gantry_io *io)
{
	uint8_t *place = m->base + io->offset;

	if (gantry_unlikely((io->flags & GANTRY_IO_LIST) != 0)) {
		copy_pieces(m, io);
		return;
	}
	switch (io->opcode) {
	case GANTRY_OP_READ:
		if (io->data != place)
			gantry_copy_out(io->data, place, io->length, m->bytes);
		break;
	case GANTRY_OP_WRITE:
		if (io->data != place)
			memcpy(place, io->data, io->length);
		break;
	case GANTRY_OP_WRITE_ZEROES:
	case GANTRY_OP_DISCARD:
		wipe(m, io->offset, io->length);
		break;
	case GANTRY_OP_EXTENTS:
		report_extents(m, io);
		break;
	default: /* nop and flush */
		break;
	}
}

static void finish(struct memory *m, struct gantry_io *io)
{
	if (gantry_unlikely(m->timing)) {
		uint64_t start = m->host->now_ns(m->host);

		execute(m, io);
		io->hop_ns[GANTRY_HOP_BACKEND] = (uint32_t)(m->host->now_ns(m->host) - start);
	} else {
		execute(m, io);
	}
	io->status = GANTRY_S_OK;
	gantry_complete(io);
}

static int memory_submit(void *self, struct gantry_io *io)
{
	struct memory_lane *lane = self;
	struct gantry_io *before = lane->held;
	uint8_t *volume = lane->memory->base + io->offset;

	/* data in pieces, or none */
	if (!gantry_op_has_data(io->opcode) || gantry_unlikely((io->flags & GANTRY_IO_LIST) != 0)) {
		finish(lane->memory, io);
		return 0;
	}
	if (io->opcode == GANTRY_OP_READ) {
		gantry_copy_soon(io->data, volume);
	} else {
		mark_written(lane->memory, io->offset, io->length);
		gantry_copy_soon(volume, io->data);
	}
	lane->held = io;
	if (before)
		finish(lane->memory, before);
	return 0;
}

static int memory_poll(void *self)
{
	struct memory_lane *lane = self;
	struct gantry_io *io = lane->held;

	if (!io)
		return 0;
	lane->held = NULL;
	finish(lane->memory, io);
	return 1;
}

static int memory_arm(void *self)
{
	return ((struct memory_lane *)self)->held != NULL;
}

static int memory_memory(void *backend, void **addr_p)
{
	const struct memory *m = backend;

	if (!m->conf->populate)
		return -ENOTSUP;
	*addr_p = m->base;
	return 0;
}

static void memory_report(void *backend, struct gantry_writer *w)
{
	struct memory *m = backend;

	identity_report(w, m->uuid, m->verifier);
	w->u64(w, "mapped_bytes", m->bytes);
	w->boolean(w, "huge_pages", m->huge);
}

static void memory_close(void *backend)
{
	struct memory *m = backend;

	munmap(m->base, m->bytes);
	free(m->written);
	free(m);
}

/* The backend needs no quiesce operation: an IO completes when its copy is done. */
static const struct gantry_backend_ops ops = {
	.open = memory_open,
	.volume = memory_volume,
	.start = memory_start,
	.submit = memory_submit,
	.poll = memory_poll,
	.arm = memory_arm,
	.stop = memory_stop,
	.report = memory_report,
	.close = memory_close,
	.memory = memory_memory,
};

GANTRY_PLUGIN(memory) = {
	GANTRY_PLUGIN_HEAD,
	.kind = GANTRY_KIND_BACKEND,
	.name = "memory",
	.version = "1",
	.summary = "keeps the volume in the memory of the process, until the process ends",
	.options = options,
	.conf_size = sizeof(struct memory_conf),
	.ops_size = sizeof ops,
	.ops = &ops,
	.check = memory_check,
};
