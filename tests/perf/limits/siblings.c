/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * siblings [MS] - throughput of the two CPUs together, relative to one of them alone: 2 if they are
 * two cores, about 1.2 if they are threads of one core. The host of a virtual machine can change
 * this at any time.
 */
#include "common.h"

#define TURNS 2000

/* A calculation that keeps all integer units of a core busy. */
static uint64_t calculate(uint64_t seed)
{
	uint64_t a = seed, b = ~seed, c = seed + 1, d = seed + 2, e = seed + 3, f = seed + 4;

	for (unsigned i = 0; i < TURNS; i++) {
		a = (a ^ i) + 0x9e3779b97f4a7c15;
		b = (b ^ i) + 0xbf58476d1ce4e5b9;
		c = (c ^ i) + 0x94d049bb133111eb;
		d = (d ^ i) + 0xd6e8feb86659fd93;
		e = (e ^ i) + 0xa0761d6478bd642f;
		f = (f ^ i) + 0xe7037ed1a0b428db;
		/* keeps the compiler from combining the steps */
		__asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
	}
	return a ^ b ^ c ^ d ^ e ^ f;
}

static void calculate_beside(void *arg)
{
	uint64_t *line = arg, seed = 1;

	while (load(line) != STOP)
		line[LINE / sizeof(*line)] = seed = calculate(seed);
}

/* Returns the median time of one call in ns. */
static double call_ns(uint64_t length, uint64_t *result)
{
	static struct stats stats;
	uint64_t before = now_ns(), end = before + length, t;

	stats.n = 0;
	do {
		*result = calculate(*result);
		t = now_ns();
		note(&stats, (double)(t - before));
		before = t;
	} while (t < end);
	qsort(stats.v, stats.n, sizeof(stats.v[0]), compare);
	return stats.v[stats.n / 2];
}

int main(int argc, char **argv)
{
	uint64_t length = duration_ns(argc, argv, 10) / 2, *line = share(4096), result = 1;
	double alone, together;
	pid_t pid;

	pin(nth_cpu(0));
	alone = call_ns(length, &result);
	pid = run_beside(calculate_beside, line);
	while (!load(line + LINE / sizeof(*line)))
		relax();
	together = call_ns(length, &result);
	store(line, STOP);
	join(pid);
	print_value("siblings", 2 * alone / together, result ? "x" : "");
	return 0;
}
