/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * iofloor [MS [DEPTH...]] - random reads of 4 KiB from another process's memory: what a storage path over shared memory
 * cannot be faster than.
 *
 * A client sends descriptors of 64 bytes over a ring, the server copies each block from its memory into the buffer of the
 * client and answers over a second ring. Nothing else happens: no sessions, no checks, no statistics.
 */
#include "common.h"

#define SLOTS 256u
#define BLOCK 4096u
#define VOLUME (256ull << 20)
#define BURST 1024

struct message {
	uint64_t offset, buffer, length, tag, spare[3];
	uint64_t seq;
} __attribute__((aligned(LINE)));

struct path {
	struct message *requests, *replies;
	char *buffers;
	unsigned depth;
};

/* As the volume of a server is: private memory, all of it there. */
static char *make_volume(void)
{
	char *volume = mmap(NULL, VOLUME, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (volume == MAP_FAILED)
		die("mmap");
	for (uint64_t at = 0; at < VOLUME; at += 4096)
		*(volatile uint64_t *)(void *)(volume + at) = at;
	return volume;
}

static void serve(void *arg)
{
	const struct path *path = arg;
	char *volume = make_volume();

	for (uint64_t at = 1;; at++) {
		struct message m, *slot = &path->requests[at % SLOTS], *reply = &path->replies[at % SLOTS];

		while (load(&slot->seq) != at)
			relax();
		m = *slot;
		if (m.tag == STOP)
			return;
		memcpy(path->buffers + m.buffer, volume + m.offset, m.length);
		reply->tag = m.tag;
		store(&reply->seq, at);
	}
}

struct client {
	const struct path *path;
	uint64_t sent, received, random;
	uint64_t offset[SLOTS]; /* asked for, by tag */
	unsigned free[SLOTS], n_free;
};

static void request(struct client *c)
{
	struct message *slot = &c->path->requests[++c->sent % SLOTS];
	unsigned tag = c->free[--c->n_free];

	slot->offset = c->offset[tag] = next_random(&c->random) % (VOLUME / BLOCK) * BLOCK;
	slot->buffer = (uint64_t)tag * BLOCK;
	slot->length = BLOCK;
	slot->tag = tag;
	store(&slot->seq, c->sent);
}

static unsigned replies(struct client *c)
{
	unsigned n = 0;

	while (c->received != c->sent) {
		const struct message *slot = &c->path->replies[(c->received + 1) % SLOTS];
		unsigned tag;

		if (load(&slot->seq) != c->received + 1)
			break;
		tag = (unsigned)slot->tag;
		c->free[c->n_free++] = tag;
		c->received++;
		n++;
	}
	return n;
}

static void ios(struct client *c, uint64_t until)
{
	while (c->received < until) {
		while (c->n_free)
			request(c);
		if (!replies(c))
			relax();
	}
}

/* Does every buffer hold the block that was asked for last? */
static void check(struct client *c)
{
	while (c->received != c->sent)
		replies(c);
	for (unsigned i = 0; i < c->path->depth; i++) {
		uint64_t first;

		memcpy(&first, c->path->buffers + (size_t)i * BLOCK, sizeof(first));
		if (first != c->offset[i]) {
			fprintf(stderr, "buffer %u does not hold its block\n", i);
			exit(1);
		}
	}
}

static void measure(unsigned depth, uint64_t length)
{
	static struct stats stats;
	struct path path = {.requests = share(SLOTS * sizeof(struct message)),
			    .replies = share(SLOTS * sizeof(struct message)),
			    .buffers = share((size_t)depth * BLOCK), .depth = depth};
	struct client c = {.path = &path, .random = 88172645463325252u};
	uint64_t start, before, t, first;
	char name[64];
	pid_t pid = run_beside(serve, &path);

	stats.n = 0;
	while (c.n_free < depth) {
		c.free[c.n_free] = c.n_free;
		c.n_free++;
	}
	ios(&c, 4 * BURST); /* until the server is there and the buffers have been touched */
	first = c.received;
	start = before = now_ns();
	do {
		ios(&c, c.received + BURST);
		t = now_ns();
		note(&stats, BURST * 1e6 / (double)(t - before));
		before = t;
	} while (t - start < length);
	first = c.received - first;
	check(&c);
	path.requests[(c.sent + 1) % SLOTS].tag = STOP;
	store(&path.requests[(c.sent + 1) % SLOTS].seq, c.sent + 1);
	join(pid);
	snprintf(name, sizeof(name), "iofloor_%u", depth);
	print_extremes(name, &stats, "kIO/s");
	print_value(name, (double)first * 1e6 / (double)(t - start), "kIO/s");
}

int main(int argc, char **argv)
{
	uint64_t length = duration_ns(argc, argv, 300);
	static const unsigned usual[] = {1, 32, 128};

	for (unsigned i = 0; argc < 3 && i < sizeof(usual) / sizeof(usual[0]); i++)
		measure(usual[i], length);
	for (int i = 2; i < argc; i++) {
		unsigned long depth = strtoul(argv[i], NULL, 10);

		if (depth < 1 || depth > SLOTS) {
			fprintf(stderr, "iofloor: %s: not a depth up to %u\n", argv[i], SLOTS);
			return 2;
		}
		measure((unsigned)depth, length);
	}
	return 0;
}
