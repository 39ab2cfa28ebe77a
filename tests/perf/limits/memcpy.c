/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memcpy [MS [BYTES...]] - nanoseconds for one copy on one core between shared memory, both sides warm.
 */
#include "common.h"

static void copy(char *to, const char *from, size_t bytes)
{
	memcpy(to, from, bytes);
	__asm__ volatile("" ::"r"(to) : "memory"); /* the copy is wanted */
}

static void measure(size_t bytes, uint64_t length)
{
	static struct stats stats;
	char *from = share(bytes), *to = share(bytes), name[64];
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
	snprintf(name, sizeof(name), "memcpy_%zu", bytes);
	print_median(name, &stats, "ns");
	snprintf(name, sizeof(name), "memcpy_%zu.rate", bytes);
	print_value(name, (double)bytes / stats.v[stats.n / 2], "GB/s");
}

int main(int argc, char **argv)
{
	static const size_t usual[] = {4096, 65536, 1u << 20};
	uint64_t length = duration_ns(argc, argv, 100);

	pin(nth_cpu(0));
	for (unsigned i = 0; argc < 3 && i < sizeof(usual) / sizeof(usual[0]); i++)
		measure(usual[i], length);
	for (int i = 2; i < argc; i++) {
		unsigned long bytes = strtoul(argv[i], NULL, 10);

		if (bytes < 1 || bytes > 1u << 30) {
			fprintf(stderr, "memcpy: %s: not a size up to 1 GiB\n", argv[i]);
			return 2;
		}
		measure(bytes, length);
	}
	return 0;
}
