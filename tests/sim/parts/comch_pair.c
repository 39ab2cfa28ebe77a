/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "comch_pair.h"

#define BLOCKS 6u
#define BLOCK_BYTES ((size_t)8192)
#define VIEWS 2u
#define FIRST_FD 1000 /* first descriptor of memory; the simulated kernel uses lower ones */
#define FRAMES 32u

/* A memfd, and its mappings. */
struct block {
	uint8_t *views[VIEWS];
	uint32_t n_fds, n_mapped; /* n_mapped: bit mask of used mappings */
	bool used, hidden[VIEWS];
	size_t bytes;
};

struct frame {
	struct comch_frame frame;
	int fds[COMCH_FDS_MAX];
};

struct pair_side pair[2];
static struct block blocks[BLOCKS];
static struct frame frames[2][FRAMES]; /* frames in flight towards each side */
static uint32_t first[2], n_frames[2];
static uint64_t payload;
/* an access of unmapped memory faults; in one of 64 schedules, since it takes long */
static bool faults;

/* -- memory -- */

static void make_blocks(void)
{
	uint8_t *views[VIEWS];

	part_shared_memory(BLOCKS * BLOCK_BYTES, views, VIEWS);
	for (size_t i = 0; i < BLOCKS; i++)
		for (size_t v = 0; v < VIEWS; v++)
			blocks[i].views[v] = views[v] + i * BLOCK_BYTES;
}

static void reset_blocks(void)
{
	if (!blocks[0].views[0])
		make_blocks();
	for (struct block *b = blocks; b < blocks + BLOCKS; b++) {
		for (size_t v = 0; v < VIEWS; v++) {
			if (b->hidden[v])
				mprotect(b->views[v], BLOCK_BYTES, PROT_READ | PROT_WRITE);
			b->hidden[v] = false;
		}
		if (b->used)
			memset(b->views[0], 0, BLOCK_BYTES);
		b->used = false;
		b->n_fds = b->n_mapped = 0;
	}
}

static struct block *block_of(int fd)
{
	return fd >= FIRST_FD && fd < FIRST_FD + (int)BLOCKS ? &blocks[fd - FIRST_FD] : NULL;
}

/* component.mk redirects calls of libc in shm_queues.c and shm_region.c to these functions. */
int pair_memfd_create(const char *name, unsigned flags);
int pair_ftruncate(int fd, off_t bytes);
int pair_fchmod(int fd, mode_t mode);
int pair_fallocate(int fd, int mode, off_t offset, off_t bytes);
int pair_fcntl(int fd, int command, ...);
int pair_open_file(const char *path, int flags, ...);
int pair_close(int fd);
void *pair_mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset);
int pair_munmap(void *at, size_t bytes);
int pair_madvise(void *at, size_t bytes, int advice);
bool pair_bell_ok(const struct comch_conn *conn, int fd);
int __wrap_close(int fd);

int pair_memfd_create(const char *name, unsigned flags)
{
	struct block *b = blocks;

	(void)name;
	(void)flags;
	sim_call();
	while (b->used)
		if (++b == blocks + BLOCKS)
			sim_fail("the pair has no more memory");
	b->used = true;
	b->n_fds = 1;
	return FIRST_FD + (int)(b - blocks);
}

int pair_ftruncate(int fd, off_t bytes)
{
	if ((size_t)bytes > BLOCK_BYTES)
		sim_fail("too much memory for the pair");
	block_of(fd)->bytes = (size_t)bytes;
	return 0;
}

int pair_fchmod(int fd, mode_t mode)
{
	(void)fd;
	(void)mode;
	return 0;
}

int pair_fallocate(int fd, int mode, off_t offset, off_t bytes)
{
	(void)fd;
	(void)mode;
	(void)offset;
	(void)bytes;
	return 0;
}

/* fcntl() of memory: accepts and ignores seals; a duplicate gets the same descriptor number. */
int pair_fcntl(int fd, int command, ...)
{
	struct block *b = block_of(fd);

	if (!b)
		sim_fail("fcntl %d of another descriptor", command);
	if (command != F_DUPFD_CLOEXEC)
		return command == F_GETFL ? O_RDWR : 0;
	b->n_fds++;
	return fd;
}

/*
 * shm_region.c opens a memfd again, as "/proc/self/fd/NUMBER", to export it without the write
 * right. No part exports such a region.
 */
int pair_open_file(const char *path, int flags, ...)
{
	(void)path;
	(void)flags;
	sim_fail("a region that may only be read");
}

int pair_close(int fd)
{
	struct block *b = block_of(fd);

	if (!b)
		return __wrap_close(fd);
	PART_CHECK(b->n_fds != 0, "a descriptor is closed twice");
	b->n_fds--;
	return 0;
}

void *pair_mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset)
{
	struct block *b = block_of(fd);
	unsigned v = 0;

	(void)at;
	(void)prot;
	(void)flags;
	sim_call();
	PART_CHECK(b->n_fds != 0, "a closed descriptor is mapped");
	while (v < VIEWS && ((b->n_mapped >> v & 1) || b->hidden[v]))
		v++;
	if (offset != 0 || bytes > BLOCK_BYTES || v == VIEWS)
		sim_fail("a mapping that the pair does not have");
	b->n_mapped |= 1u << v;
	return b->views[v];
}

int pair_munmap(void *at, size_t bytes)
{
	(void)bytes;
	sim_call();
	for (struct block *b = blocks; b < blocks + BLOCKS; b++)
		for (size_t v = 0; v < VIEWS; v++)
			if (b->views[v] == at) {
				PART_CHECK(b->n_mapped & 1u << v, "memory is unmapped twice");
				b->n_mapped &= ~(1u << v);
				if (!faults)
					return 0;
				b->hidden[v] = true;
				mprotect(at, BLOCK_BYTES, PROT_NONE);
				return 0;
			}
	part_fail("munmap() of an address that is not mapped");
}

int pair_madvise(void *at, size_t bytes, int advice)
{
	(void)at;
	(void)bytes;
	(void)advice;
	return 0;
}

void pair_region(struct gantry_region *region, uint64_t bytes)
{
	int fd = pair_memfd_create("region", 0);

	*region = (struct gantry_region){.addr = pair_mmap(NULL, bytes, 0, 0, fd, 0),
					 .length = bytes,
					 .fd = fd,
					 .rights = GANTRY_REMOTE_READ | GANTRY_REMOTE_WRITE};
}

/* -- functions of the other files of the transport -- */

int comch_memory_check(const struct comch_conn *conn, const struct comch_memory *m,
		       char why[COMCH_WHY])
{
	(void)conn;
	(void)why;
	return block_of(m->fd) ? 0 : -EINVAL;
}

int comch_memory_check_frozen(const struct comch_conn *conn, const struct comch_memory *m,
			      char why[COMCH_WHY])
{
	return comch_memory_check(conn, m, why);
}

/* No part imports with GANTRY_IMPORT_KEEPS_PAGES. */
int comch_pages_begin(struct comch_conn *conn, struct comch_import *r)
{
	(void)conn;
	(void)r;
	part_fail("unexpected check of pages");
	return 0;
}

void comch_pages_end(struct comch_conn *conn, struct comch_import *r)
{
	(void)conn;
	(void)r;
}

void comch_conn_poison(struct comch_conn *conn, enum comch_corruption what)
{
	(void)conn;
	(void)what;
	part_fail("a correct peer is reported as broken");
}

int comch_conn_usable(const struct comch_conn *conn)
{
	return conn->state != COMCH_S_OPEN || __atomic_load_n(&conn->lost, __ATOMIC_RELAXED)
		       ? -ENOTCONN
		       : 0;
}

void comch_conn_close_fds(const struct comch_conn *conn, const int *fds, unsigned int n)
{
	(void)conn;
	for (unsigned i = 0; i < n; i++)
		pair_close(fds[i]);
}

void comch_device_kick(struct comch_device *dev)
{
	sim_call();
	pair[dev == &pair[1].dev].kicked = true;
	sim_changed();
}

bool pair_bell_ok(const struct comch_conn *conn, int fd)
{
	(void)conn;
	return fd > 2;
}

bool comch_conn_take_fds(struct comch_conn *conn, unsigned int n)
{
	(void)conn;
	(void)n;
	return true;
}

/* -- frames -- */

int comch_out_send(struct comch_conn *conn, const struct comch_frame *frame, const int *fds,
		   unsigned int n_fds)
{
	unsigned to = conn == &pair[0].conn;
	struct frame *f;

	sim_call();
	if (conn->lost)
		return -ENOTCONN;
	if (n_frames[to] == FRAMES)
		sim_fail("too many frames");
	f = &frames[to][(first[to] + n_frames[to]) % FRAMES];
	memcpy(&f->frame, frame, sizeof(frame->head) + frame->head.length);
	for (unsigned i = 0; i < COMCH_FDS_MAX; i++)
		f->fds[i] = i >= n_fds         ? -1
			    : block_of(fds[i]) ? pair_fcntl(fds[i], F_DUPFD_CLOEXEC, 0)
					       : fcntl(fds[i], F_DUPFD_CLOEXEC, 0);
	n_frames[to]++;
	sim_changed();
	return 0;
}

void comch_out_must(struct comch_conn *conn, const struct comch_frame *frame)
{
	comch_out_send(conn, frame, NULL, 0);
}

void comch_out_id(struct comch_conn *conn, enum comch_type type, uint32_t id)
{
	struct comch_frame frame;

	comch_frame_init(&frame, type, sizeof(frame.id));
	frame.id.id = id;
	comch_out_must(conn, &frame);
}

static const char *process(struct comch_conn *conn, struct frame *f)
{
	switch ((enum comch_type)f->frame.head.type) {
	case COMCH_CONSUMER:
		return comch_on_consumer(conn, &f->frame.consumer, f->fds);
	case COMCH_CONSUMER_GONE:
		return comch_on_consumer_gone(conn, f->frame.id.id);
	case COMCH_PRODUCER:
		return comch_on_producer(conn, &f->frame.producer, f->fds);
	case COMCH_PRODUCER_OK:
		return comch_on_producer_ok(conn, &f->frame.ok);
	case COMCH_PRODUCER_GONE:
		return comch_on_producer_gone(conn, f->frame.id.id);
	case COMCH_REGION:
		return comch_on_region(conn, &f->frame.region, f->fds);
	case COMCH_REGION_OK:
		return comch_on_region_ok(conn, f->frame.id.id);
	case COMCH_REVOKE:
		return comch_on_revoke(conn, f->frame.id.id);
	case COMCH_RELEASED:
		return comch_on_released(conn, f->frame.id.id);
	default:
		return "a frame with the wrong type";
	}
}

void pair_turn(unsigned side)
{
	struct comch_conn *conn = &pair[side].conn;

	while (n_frames[side] != 0) {
		struct frame f = frames[side][first[side]++ % FRAMES];
		const char *why;

		n_frames[side]--;
		why = process(conn, &f);
		if (why)
			part_fail(why);
		for (unsigned i = 0; i < COMCH_FDS_MAX; i++)
			if (f.fds[i] >= 0)
				pair_close(f.fds[i]);
	}
	pair[side].kicked = false;
	if (pair[side].dev.retry) {
		pair[side].dev.retry = false;
		comch_regions_retry(conn);
	}
}

bool pair_has_frames(unsigned side)
{
	return n_frames[side] != 0;
}

struct waits {
	unsigned side;
	const bool *flag;
};

static bool has_work(void *arg)
{
	const struct waits *w = arg;

	return n_frames[w->side] != 0 || pair[w->side].kicked || (w->flag && *w->flag);
}

void pair_wait(unsigned side, const bool *flag)
{
	struct waits w = {side, flag};

	sim_call();
	if (!has_work(&w))
		sim_block(has_work, &w, SIM_NEVER);
}

/* -- events -- */

static void on_consumer(void *arg, void *conn, uint32_t id, int up)
{
	struct pair_side *side = arg;

	(void)conn;
	*(up ? &side->consumer_up : &side->consumer_down) = id;
}

static void on_revoke(void *arg, void *conn, uint32_t handle)
{
	(void)conn;
	((struct pair_side *)arg)->revoke = handle;
}

static void on_revoked(void *arg, void *conn, uint32_t handle, int rc)
{
	(void)conn;
	PART_CHECK(rc == 0, "a revoke ends without the release of the peer");
	((struct pair_side *)arg)->revoked = handle;
}

static uint64_t *counter(const struct gantry_host *host, const char *name)
{
	(void)host;
	(void)name;
	return &payload;
}

/* -- the pair -- */

void pair_begin(void)
{
	static const struct comch_conf conf = {
		.max_depth = 64, .ring_slots = COMCH_SLOTS_MIN, .max_bytes = 1 << 20, .mapped = 1};
	static const struct gantry_conn_events events = {
		.consumer = on_consumer, .revoke = on_revoke, .revoked = on_revoked};
	static const struct gantry_host host = {.counter = counter};
	bool membarrier = sim_draw(2);

	reset_blocks();
	faults = sim_draw(64) == 0;
	first[0] = first[1] = n_frames[0] = n_frames[1] = 0;
	for (unsigned i = 0; i < 2; i++) {
		struct comch_conn *conn = &pair[i].conn;

		memset(&pair[i], 0, sizeof(pair[i]));
		pair[i].dev.host = &host;
		pair[i].dev.conf = &conf;
		pair[i].dev.membarrier = membarrier;
		conn->dev = &pair[i].dev;
		conn->state = COMCH_S_OPEN;
		conn->events = &events;
		conn->arg = &pair[i];
		conn->membarrier = membarrier;
		conn->peer_room = 1 << 20;
		LIST_INIT(&conn->consumers);
		LIST_INIT(&conn->producers);
		LIST_INIT(&conn->remotes);
		LIST_INIT(&conn->rmas);
	}
}

void pair_open(void)
{
	for (unsigned i = 0; i < 2; i++)
		pair[i].dev.pid = getpid();
}

void pair_lose(void)
{
	sim_call();
	for (unsigned i = 0; i < 2; i++)
		__atomic_store_n(&pair[i].conn.lost, 1, __ATOMIC_RELAXED);
	sim_changed();
}

const char *pair_check(void)
{
	for (unsigned i = 0; i < 2; i++)
		if (pair[i].conn.n_rings != 0 || pair[i].conn.n_remotes != 0 ||
		    pair[i].conn.n_consumers != 0 || pair[i].conn.n_producers != 0)
			return "a queue was not released";
	for (struct block *b = blocks; b < blocks + BLOCKS; b++)
		if (b->n_mapped != 0)
			return "a mapping was not released";
		else if (b->n_fds != 0)
			return "a descriptor was not released";
	return NULL;
}
