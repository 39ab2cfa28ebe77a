/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * iofloor [MS [DEPTH[:read|:write|:null|:relayed[:BYTES]]...]] - random access to the memory of
 * another process, by default reads of 4 KiB: a lower bound for a storage path over shared memory
 *
 * A client sends descriptors of 64 bytes over a ring. The server copies each block between its
 * memory and the buffer of the client (null: without the copy), and answers over a second ring.
 * There are no sessions, checks or statistics.
 *
 * relayed: reads, for which a third process relays descriptors and answers, as a gateway does. It
 * has the second CPU. Client and server share the first CPU; each yields it when it has no work.
 */
#include "common.h"

#define SLOTS 256u
#define PAGE 4096u
#define MAX_BLOCK (1ul << 20)
#define VOLUME (256ull << 20)
#define BURST 1024

enum op { READ, WRITE, NOTHING, RELAYED };

struct message {
	uint64_t offset, buffer, length, tag, op, spare[2];
	uint64_t seq;
} __attribute__((aligned(LINE)));

/* A ring in each direction. */
struct wire {
	struct message *requests, *replies;
};

struct path {
	/* near: of the client; far: of the server; without a relay both are equal */
	struct wire near, far;
	char *buffers;
	unsigned depth;
	enum op op;
	size_t block;
};

/* Allocate private, prefaulted memory, like the volume of a server. */
static char *make_volume(void)
{
	char *volume = mmap(NULL, VOLUME, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			    0);

	if (volume == MAP_FAILED)
		die("mmap");
	for (uint64_t at = 0; at < VOLUME; at += PAGE)
		*(volatile uint64_t *)(void *)(volume + at) = at;
	return volume;
}

static void wait_for(const struct path *path)
{
	if (path->op == RELAYED)
		sched_yield();
	else
		relax();
}

static void serve(void *arg)
{
	const struct path *path = arg;
	char *volume = make_volume();

	if (path->op == RELAYED)
		pin(nth_cpu(0));
	for (uint64_t at = 1;; at++) {
		struct message m, *slot = &path->far.requests[at % SLOTS],
				  *reply = &path->far.replies[at % SLOTS];

		while (load(&slot->seq) != at)
			wait_for(path);
		m = *slot;
		if (m.tag == STOP)
			return;
		if (m.op == READ || m.op == RELAYED)
			memcpy(path->buffers + m.buffer, volume + m.offset, m.length);
		else if (m.op == WRITE)
			memcpy(volume + m.offset, path->buffers + m.buffer, m.length);
		reply->tag = m.tag;
		store(&reply->seq, at);
	}
}

/* Relay the next message to the other ring. Returns false if there is no message. */
static int pass(struct message *from, struct message *to, uint64_t at, uint64_t *tag_p)
{
	struct message m, *slot = &from[at % SLOTS];

	if (load(&slot->seq) != at)
		return 0;
	m = *slot;
	*tag_p = m.tag;
	slot = &to[at % SLOTS];
	m.seq = slot->seq;
	*slot = m;
	store(&slot->seq, at);
	return 1;
}

static void relay(void *arg)
{
	const struct path *path = arg;
	uint64_t there = 1, back = 1, tag = 0;

	while (tag != STOP) {
		if (pass(path->near.requests, path->far.requests, there, &tag))
			there++;
		else if (pass(path->far.replies, path->near.replies, back, &tag))
			back++;
		else
			relax();
	}
}

struct client {
	const struct path *path;
	uint64_t sent, received, random;
	uint64_t offset[SLOTS]; /* requested offsets, by tag */
	unsigned free[SLOTS], n_free;
	int again; /* use the last requested offsets again, to read them */
};

static void request(struct client *c)
{
	struct message *slot = &c->path->near.requests[++c->sent % SLOTS];
	unsigned tag = c->free[--c->n_free];

	if (!c->again)
		c->offset[tag] = next_random(&c->random) % (VOLUME / c->path->block) *
				 c->path->block;
	slot->offset = c->offset[tag];
	slot->buffer = (uint64_t)tag * c->path->block;
	slot->length = c->path->block;
	slot->op = c->again ? READ : c->path->op;
	slot->tag = tag;
	store(&slot->seq, c->sent);
}

static unsigned replies(struct client *c)
{
	unsigned n = 0;

	while (c->received != c->sent) {
		const struct message *slot = &c->path->near.replies[(c->received + 1) % SLOTS];
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
			wait_for(c->path);
	}
}

static void drain(struct client *c)
{
	while (c->received != c->sent)
		replies(c);
}

/* Set the first word of each buffer to its index plus 1 for writes, otherwise to 0. */
static void mark(const struct path *path)
{
	for (uint64_t i = 0; i < path->depth; i++) {
		uint64_t first = path->op == WRITE ? i + 1 : 0;

		memcpy(path->buffers + i * path->block, &first, sizeof(first));
	}
}

/*
 * Check that each buffer has the last requested block. After writes, read the blocks: each must
 * have the content of a written buffer.
 */
static void check(struct client *c)
{
	const struct path *path = c->path;

	drain(c);
	if (path->op == WRITE) {
		c->again = 1;
		while (c->n_free)
			request(c);
		drain(c);
	}
	for (unsigned i = 0; i < path->depth; i++) {
		uint64_t first;

		memcpy(&first, path->buffers + i * path->block, sizeof(first));
		if (path->op == WRITE ? first < 1 || first > path->depth
				      : path->op != NOTHING && first != c->offset[i]) {
			fprintf(stderr, "buffer %u does not hold its block\n", i);
			exit(1);
		}
	}
}

static struct wire make_wire(void)
{
	return (struct wire){share(SLOTS * sizeof(struct message)),
			     share(SLOTS * sizeof(struct message))};
}

static void measure(const char *spec, struct path path, uint64_t length)
{
	static struct stats stats;
	struct client c = {.path = &path, .random = 88172645463325252u};
	uint64_t start, before, t, first;
	char name[64];
	pid_t pid, between = 0;

	path.near = make_wire();
	path.far = path.op == RELAYED ? make_wire() : path.near;
	path.buffers = share(path.depth * path.block);
	mark(&path);
	pid = run_beside(serve, &path);
	if (path.op == RELAYED)
		between = run_beside(relay, &path);
	stats.n = 0;
	while (c.n_free < path.depth) {
		c.free[c.n_free] = c.n_free;
		c.n_free++;
	}
	ios(&c, 4 * BURST); /* waits for the server, and touches the buffers */
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
	path.near.requests[(c.sent + 1) % SLOTS].tag = STOP;
	store(&path.near.requests[(c.sent + 1) % SLOTS].seq, c.sent + 1);
	if (between)
		join(between);
	join(pid);
	snprintf(name, sizeof(name), "iofloor_%s", spec);
	print_extremes(name, &stats, "kIO/s");
	print_value(name, (double)first * 1e6 / (double)(t - start), "kIO/s");
}

/* DEPTH[:OP[:BYTES]] */
static int parse(const char *spec, struct path *path)
{
	static const char *const names[] = {"read", "write", "null", "relayed"};
	char *end, op[8] = "read";
	unsigned long depth = strtoul(spec, &end, 10), bytes = PAGE;

	if (*end && sscanf(end, ":%7[a-z]:%lu", op, &bytes) < 1)
		return -1;
	if (depth < 1 || depth > SLOTS || bytes < PAGE || bytes > MAX_BLOCK || bytes % PAGE)
		return -1;
	for (int i = 0; i < 4; i++)
		if (!strcmp(op, names[i])) {
			*path = (struct path){
				.depth = (unsigned)depth, .op = (enum op)i, .block = bytes};
			return 0;
		}
	return -1;
}

int main(int argc, char **argv)
{
	static const char *const usual[] = {"1", "32", "128"};
	uint64_t length = duration_ns(argc, argv, 300);
	int n = argc < 3 ? 3 : argc - 2;
	struct path path;

	for (int i = 0; i < n; i++) {
		const char *spec = argc < 3 ? usual[i] : argv[i + 2];

		if (parse(spec, &path)) {
			fprintf(stderr,
				"iofloor: %s: not DEPTH[:read|:write|:null|:relayed[:BYTES]] with a depth up to %u, "
				"whole pages up to 1 MiB\n",
				spec, SLOTS);
			return 2;
		}
		measure(spec, path, length);
	}
	return 0;
}
