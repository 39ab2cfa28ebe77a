/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * disk DEVICE SECONDS SEED [lose] - the checker of the soak test on a block device or a file
 *
 * Threads write and read with O_DIRECT. soak.h has the rules by which each read is judged; the
 * journal is memory of this process. Each thread owns a part of the blocks of a client. At the end
 * the program reads all blocks. It runs in a virtual machine whose disk is a volume, while the
 * processes that serve the volume are killed: see tests/vm/vhost-soak.sh.
 *
 * lose: seeded bug, one of 200 writes is not done.
 *
 * Exit status 1: a read was wrong, an IO failed, or an IO did not complete in HANG_MS.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "soak/soak.h"

#define PARTS 4u /* threads of each client */
#define PART_BLOCKS (SOAK_OWN / PARTS)
#define HOT_BLOCKS 16u /* of a part: every second IO goes to them */
#define HANG_MS 180000u
#define FUA_PERMILLE 20u
#define FLUSH_PERMILLE 10u
#define ZERO_PERCENT 12u

struct worker {
	pthread_t thread;
	uint32_t client, part;
	uint64_t rng;
	uint8_t *buf; /* SOAK_SPAN blocks */
};

static struct soak_journal *journal;
static struct worker workers[SOAK_CLIENTS * PARTS];
static const char *device;
static int fd, loses;
static _Atomic int ending;

static uint32_t below(struct worker *w, uint32_t n)
{
	return (uint32_t)(soak_random(&w->rng) % n);
}

static struct soak_client *client_of(const struct worker *w)
{
	return &journal->clients[w->client];
}

static void io_begins(const struct worker *w)
{
	atomic_store(&client_of(w)->slot[w->part], soak_ms());
}

static void io_ends(const struct worker *w)
{
	atomic_store(&client_of(w)->slot[w->part], 0);
}

static void failed(const struct worker *w, const char *what, uint32_t block)
{
	soak_report(journal, SOAK_STATUS, "%s of block %u of client %u: %s", what, block, w->client,
		    strerror(errno));
	atomic_store(&ending, 1);
}

/* Choose blocks of a part. Returns their number. */
static uint32_t choose(struct worker *w, uint32_t part_begin, uint32_t *first_p)
{
	const uint32_t at = below(w, below(w, 2) ? HOT_BLOCKS : PART_BLOCKS),
		       n = below(w, 10) < 6 ? 1 : 2 + below(w, SOAK_SPAN - 1);

	*first_p = part_begin + at;
	return at + n > PART_BLOCKS ? PART_BLOCKS - at : n;
}

/* -- reads -- */

static void check(struct worker *w, uint32_t first, uint32_t n, struct soak_window *windows,
		  const char *where)
{
	struct soak_block *blocks = journal->blocks[0];

	for (uint32_t i = 0; i < n; i++) {
		struct soak_window *window = &windows[i];
		uint32_t found;

		soak_window_end(window, &blocks[first + i]);
		if (soak_check(journal, w->buf + i * SOAK_BLOCK, first + i, window, &found, where))
			atomic_store(&ending, 1);
		else if (found != SOAK_MIXED && found > window->lo &&
			 (!soak_is_zero(found) || window->n <= 1))
			soak_raise(&blocks[first + i].seen, found);
	}
	atomic_fetch_add(&client_of(w)->reads, 1);
	atomic_fetch_add(&client_of(w)->blocks_read, n);
}

static void read_blocks(struct worker *w, uint32_t first, uint32_t n, const char *where)
{
	struct soak_window windows[SOAK_SPAN];
	const ssize_t bytes = (ssize_t)n * SOAK_BLOCK;

	memset(w->buf, 0xa5, (size_t)bytes);
	for (uint32_t i = 0; i < n; i++)
		soak_window_begin(&windows[i], &journal->blocks[0][first + i]);
	io_begins(w);
	if (pread(fd, w->buf, (size_t)bytes, (off_t)first * SOAK_BLOCK) != bytes)
		failed(w, where, first);
	else
		check(w, first, n, windows, where);
	io_ends(w);
}

static void read_some(struct worker *w)
{
	uint32_t first, n;

	n = choose(w, below(w, SOAK_CLIENTS * PARTS) * PART_BLOCKS, &first);
	read_blocks(w, first, n, "read");
}

/* -- writes -- */

static void issue(uint32_t first, uint32_t n, uint32_t seq)
{
	for (uint32_t b = first; b < first + n; b++) {
		struct soak_block *block = &journal->blocks[0][b];

		atomic_fetch_add(&block->n_issued, 1);
		if (soak_is_zero(seq))
			atomic_store(&block->zeroed, seq);
		atomic_store(&block->issued, seq);
	}
}

static void acknowledge(uint32_t first, uint32_t n, uint32_t seq)
{
	for (uint32_t b = first; b < first + n; b++) {
		struct soak_block *block = &journal->blocks[0][b];

		atomic_store(&block->acked, seq);
		atomic_store(&block->n_acked, atomic_load(&block->n_issued));
	}
}

/* Returns 0; -1 with errno. */
static int put(struct worker *w, uint32_t first, uint32_t n, uint32_t seq)
{
	const off_t offset = (off_t)first * SOAK_BLOCK;
	const size_t bytes = (size_t)n * SOAK_BLOCK;
	const struct iovec iov = {w->buf, bytes};

	for (uint32_t i = 0; i < n; i++)
		soak_fill(journal, w->buf + i * SOAK_BLOCK, first + i, seq);
	if (loses && atomic_load(&client_of(w)->writes) % 200 == 199)
		return 0;
	if (soak_is_zero(seq) &&
	    fallocate(fd, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, offset, (off_t)bytes) == 0)
		return 0;
	return pwritev2(fd, &iov, 1, offset, below(w, 1000) < FUA_PERMILLE ? RWF_DSYNC : 0) ==
			       (ssize_t)bytes
		       ? 0
		       : -1;
}

static void write_some(struct worker *w)
{
	const uint32_t begin = w->client * SOAK_OWN + w->part * PART_BLOCKS,
		       seq = atomic_fetch_add(&client_of(w)->seq, 2) + 2 +
			     (below(w, 100) < ZERO_PERCENT);
	uint32_t first, n = choose(w, begin, &first);

	issue(first, n, seq);
	io_begins(w);
	if (put(w, first, n, seq))
		failed(w, "write", first);
	else
		acknowledge(first, n, seq);
	io_ends(w);
	atomic_fetch_add(&client_of(w)->writes, 1);
}

static void *work(void *arg)
{
	struct worker *w = arg;

	while (!atomic_load(&ending)) {
		const uint32_t draw = below(w, 1000);

		if (draw < 500) {
			read_some(w);
		} else if (draw < 500 + FLUSH_PERMILLE) {
			io_begins(w);
			if (fdatasync(fd))
				failed(w, "flush", 0);
			io_ends(w);
			atomic_fetch_add(&client_of(w)->flushes, 1);
		} else {
			write_some(w);
		}
	}
	return NULL;
}

/* -- the run -- */

static int hangs(void)
{
	for (uint32_t c = 0; c < SOAK_CLIENTS; c++)
		for (uint32_t p = 0; p < PARTS; p++) {
			const uint64_t since = atomic_load(&journal->clients[c].slot[p]);

			if (since != 0 && soak_ms() > since + HANG_MS)
				return 1;
		}
	return 0;
}

/* Wait for the end of the time, or of the first error. Returns 0; 1: an IO hangs. */
static int wait_for_end(uint64_t until)
{
	uint64_t said = soak_ms();

	while (!atomic_load(&ending) && soak_ms() < until) {
		poll(NULL, 0, 100);
		if (hangs()) {
			soak_report(journal, SOAK_HANG, "an IO takes longer than %u ms", HANG_MS);
			return 1;
		}
		if (soak_ms() < said + 2000)
			continue;
		said = soak_ms();
		printf("%llu writes\n", (unsigned long long)(journal->clients[0].writes +
							     journal->clients[1].writes +
							     journal->clients[2].writes));
		fflush(stdout);
	}
	atomic_store(&ending, 1);
	return 0;
}

static int report(void)
{
	const uint32_t n = atomic_load(&journal->n_records);
	uint64_t writes = 0, reads = 0, flushes = 0;

	for (uint32_t i = 0; i < SOAK_CLIENTS; i++) {
		writes += journal->clients[i].writes;
		reads += journal->clients[i].reads;
		flushes += journal->clients[i].flushes;
	}
	for (uint32_t i = 0; i < n && i < SOAK_RECORDS; i++)
		printf("%s: %s\n", soak_kinds[journal->records[i].kind], journal->records[i].text);
	printf("%s: %llu writes, %llu reads, %llu flushes, %u errors\n", device,
	       (unsigned long long)writes, (unsigned long long)reads, (unsigned long long)flushes,
	       n);
	return n != 0 || writes == 0;
}

/* Write the whole range, so that the journal knows all of it. */
static int prepare(struct worker *w)
{
	memset(w->buf, 0, SOAK_SPAN * SOAK_BLOCK);
	for (uint32_t b = 0; b < SOAK_BLOCKS; b += SOAK_SPAN)
		if (pwrite(fd, w->buf, SOAK_SPAN * SOAK_BLOCK, (off_t)b * SOAK_BLOCK) !=
		    (ssize_t)(SOAK_SPAN * SOAK_BLOCK))
			return -1;
	return 0;
}

int main(int argc, char **argv)
{
	uint64_t seed, until;

	if (argc < 4) {
		fprintf(stderr, "usage: disk DEVICE SECONDS SEED [lose]\n");
		return 2;
	}
	device = argv[1];
	seed = strtoull(argv[3], NULL, 10);
	loses = argc > 4 && !strcmp(argv[4], "lose");
	fd = open(device, O_RDWR | O_DIRECT | O_CLOEXEC);
	journal = mmap(NULL, sizeof(*journal), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);
	if (fd < 0 || journal == MAP_FAILED) {
		perror(device);
		return 2;
	}
	journal->run = seed * 0x9e3779b97f4a7c15u + 1;
	for (uint32_t i = 0; i < SOAK_CLIENTS * PARTS; i++) {
		workers[i].client = i % SOAK_CLIENTS;
		workers[i].part = i / SOAK_CLIENTS;
		workers[i].rng = seed * 1000 + i;
		workers[i].buf = aligned_alloc(SOAK_BLOCK, SOAK_SPAN * SOAK_BLOCK);
	}
	if (prepare(&workers[0])) {
		perror(device);
		return 2;
	}
	until = soak_ms() + strtoull(argv[2], NULL, 10) * 1000;
	for (uint32_t i = 0; i < SOAK_CLIENTS * PARTS; i++)
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			return 2;
	if (wait_for_end(until))
		return report();
	for (uint32_t i = 0; i < SOAK_CLIENTS * PARTS; i++)
		pthread_join(workers[i].thread, NULL);
	for (uint32_t b = 0; b < SOAK_BLOCKS && !atomic_load(&journal->n_records); b += SOAK_SPAN)
		read_blocks(&workers[0], b, SOAK_SPAN, "last read");
	return report();
}
