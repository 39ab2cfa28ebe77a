/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * common.h - functions for the programs that measure the machine: two CPUs, a clock, a child on the
 * other CPU, statistics
 *
 * A run is divided into slices, and each slice is timed separately. Each program prints lines
 * "NAME VALUE UNIT". NAME is the median of the slices, or the mean of the whole run if the header
 * of the program says so; NAME.min and NAME.max are the extremes of the slices.
 */
#ifndef PERF_COMMON_H
#define PERF_COMMON_H

#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LINE 64
#define STOP UINT64_MAX /* the sequence number that ends a run */
#define TOO_LONG_S 60   /* SIGALRM ends a run that takes longer, as it hangs */
#define N_SLICES 4096
#define SLICE_NS 20000u /* default length of a slice */
#ifdef __clang__
#define UNROLLED _Pragma("clang loop unroll(full)")
#else
#define UNROLLED _Pragma("GCC unroll 8")
#endif

#define load(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define store(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)

__attribute__((noreturn)) static inline void die(const char *what)
{
	perror(what);
	exit(1);
}

static inline uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb");
#else
	__asm__ volatile("" ::: "memory");
#endif
}

/*
 * Returns the CPU number `which` of those that the process was allowed to use at the first call, or
 * the last of them if there are fewer.
 */
static inline int nth_cpu(int which)
{
	static cpu_set_t set; /* the CPUs before the process pinned itself */
	int found = 0;

	if (CPU_COUNT(&set) == 0 && sched_getaffinity(0, sizeof(set), &set))
		die("sched_getaffinity");
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &set)) {
			found = cpu;
			if (which-- == 0)
				break;
		}
	return found;
}

static inline void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("sched_setaffinity");
}

/* Allocate memory that this process shares with its children. */
static inline void *share(size_t bytes)
{
	int fd = memfd_create("limit", MFD_CLOEXEC);
	void *p;

	if (fd < 0 || ftruncate(fd, (off_t)bytes))
		die("memfd");
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (p == MAP_FAILED)
		die("mmap");
	close(fd);
	return p;
}

/* Pin the caller to the first CPU, and run fn in a child on the second. */
static inline pid_t run_beside(void (*fn)(void *arg), void *arg)
{
	int own = nth_cpu(0), other = nth_cpu(1);
	pid_t pid;

	alarm(TOO_LONG_S);
	fflush(stdout);
	pid = fork();
	if (pid < 0)
		die("fork");
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(TOO_LONG_S);
		pin(other);
		fn(arg);
		fflush(stdout);
		_exit(0);
	}
	pin(own);
	return pid;
}

static inline void join(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid || status) {
		fprintf(stderr, "the child failed\n");
		exit(1);
	}
}

struct stats {
	double v[N_SLICES];
	unsigned n;
};

static inline void note(struct stats *s, double value)
{
	if (s->n < N_SLICES)
		s->v[s->n++] = value;
}

static inline int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/*
 * Returns the number of rounds for a slice, if n rounds took took_ns, so that the cost of the clock
 * is negligible.
 */
static inline unsigned slice_of(uint64_t took_ns, unsigned n)
{
	uint64_t one = took_ns / n + 1;

	return one >= SLICE_NS ? 1 : (unsigned)(SLICE_NS / one);
}

static inline void print_value(const char *name, double value, const char *unit)
{
	printf("%s %.4g %s\n", name, value, unit);
}

static inline void print_extremes(const char *name, struct stats *s, const char *unit)
{
	if (!s->n)
		return;
	qsort(s->v, s->n, sizeof(s->v[0]), compare);
	printf("%s.min %.4g %s\n%s.max %.4g %s\n", name, s->v[0], unit, name, s->v[s->n - 1], unit);
}

static inline void print_median(const char *name, struct stats *s, const char *unit)
{
	print_extremes(name, s, unit);
	print_value(name, s->n ? s->v[s->n / 2] : 0, unit);
}

/* Returns the duration in ns; the first argument has milliseconds. */
static inline uint64_t duration_ns(int argc, char **argv, unsigned dflt_ms)
{
	unsigned long ms = argc > 1 ? strtoul(argv[1], NULL, 10) : dflt_ms;

	return (ms ? ms : 1) * 1000000ull;
}

/* xorshift: spreads accesses well enough, at a negligible cost */
static inline uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Fill the seven words of a 56-byte message; all of them depend on its number seq. */
static inline void fill_words(uint64_t word[7], uint64_t seq)
{
	UNROLLED
	for (unsigned i = 0; i < 7; i++)
		word[i] = seq + i * 0x0101010101010101u;
}

static inline int words_ok(const uint64_t word[7], uint64_t seq)
{
	uint64_t wrong = 0;

	UNROLLED
	for (unsigned i = 0; i < 7; i++)
		wrong |= word[i] ^ (seq + i * 0x0101010101010101u);
	return wrong == 0;
}

#endif
