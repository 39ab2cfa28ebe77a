/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * failover GANTRY FILE ROLE N GATEWAY... - kill the gateway that a session uses N times during IO,
 * and measure how long no IO completes
 *
 * ROLE of the configuration FILE has a path through each GATEWAY, in this order. The program starts
 * the gateways. The IO thread keeps DEPTH reads and writes of BLOCK bytes in flight, and compares
 * each read with the last acknowledged write of its block. The main thread kills the gateway of the
 * path in use by SIGKILL, waits until the session has made progress on the next path, and starts
 * the killed gateway again. At the end, the IO thread reads all blocks.
 *
 * Prints the percentiles of the longest time between two completions around each kill:
 *	failover_p50 MS ms
 *	failover_p99 MS ms
 *	failover_max MS ms
 *	verified N blocks, M reads
 *
 * Exit status: 0: all IO succeeded and all reads were right; 1: otherwise, the reason is on the
 * standard error; 2: usage
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <gantry/client.h>

#define BLOCK 4096u
#define WORDS (BLOCK / 8)
#define BLOCKS 4096u
#define DEPTH 32u
#define PROGRESS 1000u /* completions that show that the path works: many times DEPTH */
#define LIMIT_MS 60000 /* longest wait for progress */
#define MOST_PATHS 4u

struct slot {
	uint64_t *buf;
	uint32_t block, seq;
	int is_read, busy;
};

static const char *gantry, *file, *role;
static struct gantry_volume *volume;
static struct gantry_queue *queue;
static struct slot slots[DEPTH];
static uint32_t acked[BLOCKS]; /* the last write of each block */
static uint8_t in_flight[BLOCKS];
static uint64_t rng = 1, last_ns;
static _Atomic uint64_t n_done, n_reads, longest_ns;
static _Atomic int ending, failed;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t mix(uint64_t z)
{
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static uint64_t word_of(uint32_t block, uint32_t seq, uint32_t i)
{
	return seq ? mix((uint64_t)seq << 32 | block) + i : 0;
}

/* -- the IO thread -- */

static void on_done(void *arg, int result)
{
	struct slot *s = arg;
	uint64_t now = now_ns(), gap = now - last_ns;

	last_ns = now;
	if (gap > atomic_load(&longest_ns))
		atomic_store(&longest_ns, gap);
	s->busy = 0;
	in_flight[s->block] = 0;
	if (result && !atomic_exchange(&failed, 1))
		fprintf(stderr, "failover: %s of block %u: %s: %s\n", s->is_read ? "read" : "write",
			s->block, strerror(-result), gantry_error());
	for (uint32_t i = 0; s->is_read && !result && i < WORDS; i++) {
		if (s->buf[i] == word_of(s->block, acked[s->block], i))
			continue;
		if (!atomic_exchange(&failed, 1))
			fprintf(stderr, "failover: block %u: word %u is not of write %u\n",
				s->block, i, acked[s->block]);
		break;
	}
	if (s->is_read)
		atomic_fetch_add(&n_reads, 1);
	else
		acked[s->block] = s->seq;
	atomic_fetch_add(&n_done, 1);
}

static void submit(struct slot *s, uint32_t block, int is_read)
{
	int rc;

	*s = (struct slot){.buf = s->buf, .block = block, .is_read = is_read, .busy = 1};
	s->seq = acked[block] + 1;
	for (uint32_t i = 0; i < WORDS; i++)
		s->buf[i] = is_read ? ~0u : word_of(block, s->seq, i);
	in_flight[block] = 1;
	rc = is_read ? gantry_queue_read(queue, s->buf, BLOCK, (uint64_t)block * BLOCK, on_done, s)
		     : gantry_queue_write(queue, s->buf, BLOCK, (uint64_t)block * BLOCK, 0, on_done,
					  s);
	if (rc)
		on_done(s, rc);
}

/* Fill the free slots: with random IO, or with reads of the blocks from *next on. */
static void fill(uint32_t *next)
{
	for (unsigned i = 0; i < DEPTH && !atomic_load(&failed); i++) {
		uint64_t draw = mix(rng += 0x9e3779b97f4a7c15u);
		uint32_t block = (uint32_t)(draw % BLOCKS);

		if (slots[i].busy || (!next && in_flight[block]) || (next && *next == BLOCKS))
			continue;
		submit(&slots[i], next ? (*next)++ : block, next || draw >> 63);
	}
}

static int busy(void)
{
	for (unsigned i = 0; i < DEPTH; i++)
		if (slots[i].busy)
			return 1;
	return 0;
}

static void wait_for_io(void)
{
	struct pollfd fd = {.fd = gantry_queue_fd(queue), .events = POLLIN};

	if (!gantry_queue_poll(queue) && !gantry_queue_arm(queue))
		poll(&fd, 1, 1000);
}

static void *do_io(void *arg)
{
	uint32_t next = 0;

	last_ns = now_ns();
	while (!atomic_load(&ending) && !atomic_load(&failed)) {
		fill(NULL);
		wait_for_io();
	}
	while (busy() && !atomic_load(&failed))
		wait_for_io();
	while ((next < BLOCKS || busy()) && !atomic_load(&failed)) {
		fill(&next);
		wait_for_io();
	}
	return arg;
}

/* -- the gateways -- */

/* Start a gateway, and wait until it listens; returns its pid, or -1. */
static pid_t start(const char *name)
{
	char text[8192] = "";
	size_t used = 0;
	ssize_t n = 1;
	int ends[2];
	pid_t pid;

	if (pipe(ends))
		return -1;
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(ends[1], STDOUT_FILENO);
		dup2(ends[1], STDERR_FILENO);
		execl(gantry, "gantry", "run", file, "--role", name, (char *)NULL);
		_exit(127);
	}
	close(ends[1]);
	while (!strstr(text, " listening ") && n > 0 && used < sizeof(text) - 1) {
		struct pollfd output = {.fd = ends[0], .events = POLLIN};

		n = poll(&output, 1, LIMIT_MS) > 0
			    ? read(ends[0], text + used, sizeof(text) - 1 - used)
			    : -1;
		used += n > 0 ? (size_t)n : 0;
		text[used] = '\0';
	}
	close(ends[0]); /* the gateway ignores SIGPIPE */
	if (strstr(text, " listening "))
		return pid;
	fprintf(stderr, "failover: %s does not listen: %s\n", name, text);
	return -1;
}

/* Wait until `n` more IOs have completed. */
static int progress(uint64_t n)
{
	uint64_t before = atomic_load(&n_done), end = now_ns() + LIMIT_MS * 1000000ull;

	while (atomic_load(&n_done) < before + n && !atomic_load(&failed)) {
		if (now_ns() > end && !atomic_exchange(&failed, 1))
			fprintf(stderr, "failover: no progress for %u ms\n", LIMIT_MS);
		poll(NULL, 0, 1);
	}
	return atomic_load(&failed);
}

static int by_value(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* The nearest rank: the smallest of the values that `permille` of all do not exceed. */
static double percentile_ms(const uint64_t *gaps, size_t n, size_t permille)
{
	return (double)gaps[(n * permille + 999) / 1000 - 1] / 1e6;
}

static int kill_in_turn(pid_t *pids, char **names, unsigned n_paths, uint64_t *gaps, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		pid_t *pid = &pids[i % n_paths];
		int status;

		if (progress(PROGRESS))
			return -1;
		atomic_store(&longest_ns, 0);
		kill(*pid, SIGKILL);
		if (waitpid(*pid, &status, 0) != *pid || !WIFSIGNALED(status) ||
		    WTERMSIG(status) != SIGKILL) {
			fprintf(stderr, "failover: %s ended by itself\n", names[i % n_paths]);
			return -1;
		}
		if (progress(PROGRESS))
			return -1;
		gaps[i] = atomic_load(&longest_ns);
		*pid = start(names[i % n_paths]);
		if (*pid < 0)
			return -1;
	}
	return 0;
}

static int open_queue(void)
{
	struct gantry_volume_attr attr = GANTRY_VOLUME_ATTR_INIT;
	char *memory;

	attr.depth = DEPTH;
	attr.buffer_bytes = DEPTH * BLOCK;
	if (gantry_volume_open_role(file, role, &attr, &volume) ||
	    gantry_queue_open(volume, &queue)) {
		fprintf(stderr, "failover: %s: %s\n", role, gantry_error());
		return -1;
	}
	memory = gantry_volume_buffers(volume, &attr.buffer_bytes);
	for (unsigned i = 0; i < DEPTH; i++)
		slots[i].buf = (uint64_t *)(void *)(memory + (size_t)i * BLOCK);
	return 0;
}

static int measure(char **names, unsigned n_paths, uint64_t *gaps, size_t n)
{
	pid_t pids[MOST_PATHS] = {0};
	pthread_t thread;

	for (unsigned i = 0; i < n_paths; i++) {
		pids[i] = start(names[i]);
		if (pids[i] < 0)
			return -1;
	}
	if (open_queue() || pthread_create(&thread, NULL, do_io, NULL))
		return -1;
	if (kill_in_turn(pids, names, n_paths, gaps, n))
		atomic_store(&failed, 1);
	atomic_store(&ending, 1);
	pthread_join(thread, NULL);
	if (!atomic_load(&failed)) {
		gantry_queue_close(&queue);
		gantry_volume_close(&volume);
	}
	for (unsigned i = 0; i < n_paths; i++)
		if (pids[i] > 0)
			kill(pids[i], SIGTERM);
	return atomic_load(&failed);
}

int main(int argc, char **argv)
{
	size_t n = argc > 4 ? strtoul(argv[4], NULL, 10) : 0;
	uint64_t *gaps = calloc(n ? n : 1, sizeof(*gaps));
	unsigned n_paths = argc > 5 ? (unsigned)argc - 5 : 0;

	if (!n || n_paths < 2 || n_paths > MOST_PATHS || !gaps) {
		fprintf(stderr, "usage: failover GANTRY FILE ROLE N GATEWAY GATEWAY...\n");
		return 2;
	}
	gantry = argv[1];
	file = argv[2];
	role = argv[3];
	if (measure(argv + 5, n_paths, gaps, n))
		return 1;
	qsort(gaps, n, sizeof(*gaps), by_value);
	printf("failover_p50 %.1f ms\n", percentile_ms(gaps, n, 500));
	printf("failover_p99 %.1f ms\n", percentile_ms(gaps, n, 990));
	printf("failover_max %.1f ms\n", percentile_ms(gaps, n, 1000));
	printf("verified %u blocks, %llu reads\n", BLOCKS,
	       (unsigned long long)atomic_load(&n_reads));
	free(gaps);
	return 0;
}
