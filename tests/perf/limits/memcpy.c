/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memcpy [MS [BYTES|dirty:BYTES...]] - ns of one copy in shared memory by one core, with source and
 * destination in its cache; with dirty, the other CPU has just written the whole source
 */
#include "common.h"

static void copy(char *to, const char *from, size_t bytes)
{
	memcpy(to, from, bytes);
	__asm__ volatile("" ::"r"(to) : "memory"); /* keeps the compiler from removing the copy */
}

static struct stats stats;

static void print_copies(const char *kind, size_t bytes)
{
	char name[64];

	snprintf(name, sizeof(name), "%s_%zu", kind, bytes);
	print_median(name, &stats, "ns");
	snprintf(name, sizeof(name), "%s_%zu.rate", kind, bytes);
	print_value(name, (double)bytes / stats.v[stats.n / 2], "GB/s");
}

static void measure(size_t bytes, uint64_t length)
{
	char *from = share(bytes), *to = share(bytes);
	unsigned n = bytes < 1u << 20 ? (unsigned)((1u << 20) / bytes) : 1;
	uint64_t end, before, t;

	stats.n = 0;
	memset(from, 1, bytes);
	copy(to, from, bytes);
	before = now_ns();
	end = before + length;
	do {
		for (unsigned i = 0; i < n; i++)
			copy(to, from, bytes);
		t = now_ns();
		note(&stats, (double)(t - before) / n);
		before = t;
	} while (t < end);
	munmap(from, bytes);
	munmap(to, bytes);
	print_copies("memcpy", bytes);
}

struct desk {
	uint64_t *line; /* odd value: request to write; even value: the data is written */
	char *from;
	size_t bytes;
};

static void write_beside(void *arg)
{
	struct desk *desk = arg;
	uint64_t seen;

	for (uint64_t expected = 1;; expected += 2) {
		while ((seen = load(desk->line)) != expected) {
			if (seen == STOP)
				return;
			relax();
		}
		memset(desk->from, (int)(expected >> 1), desk->bytes);
		store(desk->line, expected + 1);
	}
}

/*
 * Small copies are timed several at a time, because of the cost of the clock. Together they fit
 * into the cache of the writer.
 */
static void measure_dirty(size_t bytes, uint64_t length)
{
	unsigned n = bytes < 1u << 16 ? (unsigned)((1u << 16) / bytes) : 1;
	struct desk desk = {.line = share(4096), .from = share(n * bytes), .bytes = n * bytes};
	char *to = share(n * bytes);
	uint64_t at = 0, end = now_ns() + length, before, t;
	pid_t pid = run_beside(write_beside, &desk);

	stats.n = 0;
	do {
		store(desk.line, at + 1);
		at += 2;
		while (load(desk.line) != at)
			relax();
		before = now_ns();
		for (unsigned i = 0; i < n; i++)
			copy(to + i * bytes, desk.from + i * bytes, bytes);
		t = now_ns();
		note(&stats, (double)(t - before) / n);
	} while (t < end);
	store(desk.line, STOP);
	join(pid);
	munmap(desk.from, n * bytes);
	munmap(to, n * bytes);
	print_copies("dirty", bytes);
}

int main(int argc, char **argv)
{
	static const size_t usual[] = {4096, 65536, 1u << 20};
	uint64_t length = duration_ns(argc, argv, 100);

	pin(nth_cpu(0));
	for (unsigned i = 0; argc < 3 && i < sizeof(usual) / sizeof(usual[0]); i++)
		measure(usual[i], length);
	for (int i = 2; i < argc; i++) {
		int dirty = !strncmp(argv[i], "dirty:", 6);
		unsigned long bytes = strtoul(argv[i] + (dirty ? 6 : 0), NULL, 10);

		if (bytes < 1 || bytes > 1u << 30) {
			fprintf(stderr, "memcpy: %s: not a size up to 1 GiB\n", argv[i]);
			return 2;
		}
		(dirty ? measure_dirty : measure)(bytes, length);
	}
	return 0;
}
