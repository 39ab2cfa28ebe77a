/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * msgbench TRANSPORT MODE [MS [SETTING...]] - measures messages over a transport plugin, through
 * its public table of operations
 *
 *   MODE           unit      measurement
 *   rtt            ns        round trip of 56 bytes of immediate data
 *   single         M/s       one way, each message submitted separately
 *   batch          M/s       one way, in batches of 32 with GANTRY_SEND_MORE and a flush
 *   inline:BYTES   ns        round trip of data that travels in the queue
 *   inlines:BYTES  M/s       such data one way, each message submitted separately
 *   post:BYTES     ns        round trip of a reference to that much data in a region that both ends
 *                            have mapped; the data stays there
 *   sum:BYTES      ns        as post; before the measurement, the sender writes all data, and the
 *                            receiver adds it up
 *   BYTES          ns        data of a region, which the receiver fetches, and its answer
 *   read:BYTES, write:BYTES    ns    remote access, one at a time
 *   reads:BYTES, writes:BYTES  MB/s  remote access, 64 at a time
 *   pong:BYTES     ns        exchange of remote writes; each end polls the last byte in memory,
 *                            which RDMA writes last
 *
 * Values are medians of slices; those of reads and writes are the mean of the run.
 *
 * Between the slices of the transport, the same ends also measure a limit of the machine, see
 * limits/bare.h. For rtt, post and inline over a transport by shared memory it is `line`, the round
 * trip of a cache line. For single, batch and inlines it is `ring`, messages through a bare ring.
 *
 * Each word of a message carries its number, and each message is checked. At the end the written
 * memory is checked. A setting is NAME=VALUE for both ends, client:NAME=VALUE or server:NAME=VALUE
 * for one end; service=NAME is a setting of msgbench. The ends are two processes on two CPUs, or
 * two threads if the transport reaches only its own process.
 */
#include <errno.h>
#include <pthread.h>

#include "perf/msgbench.h"

#define DEPTH 4096
#define DATA_DEPTH 16
#define BATCH 32
/* length of a slice: many laps of the ring, whose lines are not cached at the start */
#define FLOOD_NS 1000000u
#define RING_SLOTS 1024

/* -- the lane of the server -- */

/* Check the number in the first and the last word of the data. */
static void check_data(const struct peer *p, const struct gantry_msg *msg, uint64_t seq)
{
	uint64_t first, last, bytes = p->attr->data_bytes;

	memcpy(&first, p->buffer, sizeof(first));
	memcpy(&last, p->buffer + bytes - sizeof(last), sizeof(last));
	if (msg->length != bytes || first != seq || last != seq)
		wrong(seq, "wrong data");
}

static void answer(const struct bench *b, struct peer *p)
{
	struct gantry_msg msg;
	uint64_t seq, at = 0;

	for (uint64_t expected = 1;; expected++) {
		await(p, &msg);
		seq = number(p, &msg);
		if (seq == STOP)
			break;
		if (seq == TURN) {
			send_message(p, TURN, 0);
			at = line_answer(b->line, at, LINE_ROUNDS);
			expected--;
			continue;
		}
		if (seq != expected)
			wrong(seq, "out of order");
		if (b->mode == DATA)
			check_data(p, &msg, seq);
		else if (b->mode == SUM)
			check_sum(p, seq);
		send_message(p, seq, 0);
	}
	send_message(p, STOP, 0);
}

static void swallow_bare(struct peer *p, struct bare_ring *ring)
{
	send_message(p, TURN, 0);
	while (ring_take(ring) != STOP)
		;
	ring_tell(ring);
}

static void swallow(const struct bench *b, struct peer *p)
{
	struct bare_ring ring = b->ring;
	struct gantry_msg msgs[TAKE];
	uint64_t expected = 1;

	for (;;) {
		/* all receives have one buffer: check it before taking the next message */
		int n = poll_some(p, msgs, p->attr->inlined ? 1 : TAKE);

		for (int i = 0; i < n; i++) {
			uint64_t seq = number(p, &msgs[i]);

			if (seq == TURN) {
				swallow_bare(p, &ring);
				continue;
			}
			if (seq == STOP) {
				send_message(p, STOP, 0);
				return;
			}
			if (seq != expected++)
				wrong(seq, "out of order");
		}
	}
}

static void serve(const struct bench *b, struct peer *p)
{
	if (b->mode == PONG)
		throw_back(b, p);
	else if (b->mode != SINGLE && b->mode != FLUSHED)
		answer(b, p);
	else
		swallow(b, p);
}

/* -- the lane of the client, which measures -- */

static void send_data(struct peer *p, uint64_t seq)
{
	struct gantry_send send = {.imm = p->word,
				   .imm_len = sizeof(p->word),
				   .length = (uint32_t)p->region.length,
				   .region = &p->region,
				   .cookie = seq};
	char *data = p->region.addr;

	memcpy(data, &seq, sizeof(seq));
	memcpy(data + p->region.length - sizeof(seq), &seq, sizeof(seq));
	fill_words(p->word, seq);
	send_later(p, seq, &send, 0, p->ops->data->send(p->producer, &send, 0));
}

static void take_back(struct peer *p, uint64_t seq)
{
	uint64_t cookie;

	while (p->ops->data->poll_send(p->producer, &cookie, 1) == 0)
		relax();
	if (cookie != seq)
		wrong(seq, "wrong cookie");
}

static uint64_t rounds(const struct bench *b, struct peer *p, uint64_t seq, unsigned n)
{
	if (b->mode == PONG)
		return throws(b, p, seq, n);
	while (n--) {
		seq++;
		if (b->mode == DATA)
			send_data(p, seq);
		else
			send_message(p, seq, 0);
		expect(p, seq);
		if (b->mode == DATA)
			take_back(p, seq);
	}
	return seq;
}

static void say_turn(struct peer *p)
{
	send_message(p, TURN, 0);
	expect(p, TURN);
}

static uint64_t slice_of_line(const struct bench *b, struct peer *p, uint64_t at,
			      struct stats *stats)
{
	uint64_t before;

	say_turn(p);
	before = now_ns();
	at = line_throw(b->line, at, LINE_ROUNDS);
	note(stats, (double)(now_ns() - before) / LINE_ROUNDS);
	return at;
}

static void measure_rounds(const struct bench *b, struct peer *p)
{
	uint64_t start = now_ns(), seq = rounds(b, p, 0, WARM), before = now_ns(),
		 end = before + b->length_ns, at = 0;
	unsigned slice = slice_of(before - start, WARM);
	int beside = p->shares_lines && (b->mode == RTT || b->mode == INLINE);
	static struct stats stats, line;

	do {
		before = now_ns();
		seq = rounds(b, p, seq, slice);
		note(&stats, (double)(now_ns() - before) / slice);
		if (beside)
			at = slice_of_line(b, p, at, &line);
	} while (now_ns() < end);
	if (b->mode == PONG)
		throw_last(b, p);
	send_message(p, STOP, 0);
	expect(p, STOP);
	print_beside(b->name, &stats, "line", &line, "ns");
}

/* Measures each round separately, without the preceding write of the data. */
static uint64_t rounds_of_sums(struct peer *p, uint64_t seq, unsigned n, struct stats *stats)
{
	uint64_t before;

	while (n--) {
		write_data(p, ++seq);
		before = now_ns();
		send_message(p, seq, 0);
		expect(p, seq);
		if (stats)
			note(stats, (double)(now_ns() - before));
	}
	return seq;
}

static void measure_sums(const struct bench *b, struct peer *p)
{
	uint64_t seq = rounds_of_sums(p, 0, WARM, NULL), end = now_ns() + b->length_ns;
	static struct stats stats;

	while (now_ns() < end)
		seq = rounds_of_sums(p, seq, 1, &stats);
	send_message(p, STOP, 0);
	expect(p, STOP);
	print_median(b->name, &stats, "ns");
}

static uint64_t flood(const struct bench *b, struct peer *p, uint64_t seq, unsigned n)
{
	while (n--) {
		seq++;
		send_message(p, seq, b->mode == FLUSHED && seq % BATCH ? GANTRY_SEND_MORE : 0);
	}
	return seq;
}

/* Each slice ends when all messages have arrived. */
static void slice_of_ring(struct bare_ring *ring, struct stats *stats)
{
	uint64_t before = now_ns(), first = ring->at;

	do
		for (unsigned i = 0; i < DEPTH; i++)
			ring_put(ring, ring->at + 1);
	while (now_ns() - before < FLOOD_NS);
	ring_put(ring, STOP);
	ring_drain(ring);
	note(stats, (double)(ring->at - first) * 1e3 / (double)(now_ns() - before));
}

static uint64_t slice_of_flood(const struct bench *b, struct peer *p, uint64_t seq,
			       struct stats *stats)
{
	uint64_t before = now_ns(), first = seq;

	do
		seq = flood(b, p, seq, DEPTH);
	while (now_ns() - before < FLOOD_NS);
	say_turn(p);
	note(stats, (double)(seq - first) * 1e3 / (double)(now_ns() - before));
	return seq;
}

static void measure_flood(const struct bench *b, struct peer *p)
{
	uint64_t seq = flood(b, p, 0, 4 * DEPTH), end = now_ns() + b->length_ns;
	struct bare_ring ring = b->ring;
	static struct stats stats, bare;

	say_turn(p);
	slice_of_ring(&ring, &bare);
	do {
		seq = slice_of_flood(b, p, seq, &stats);
		slice_of_ring(&ring, &bare);
	} while (now_ns() < end);
	send_message(p, STOP, 0);
	expect(p, STOP);
	print_beside(b->name, &stats, "ring", &bare, "M/s");
}

static void drive(const struct bench *b, struct peer *p)
{
	if (b->mode == PONG && p->shares_lines)
		fake_fail("%s copies data in any order: only RDMA brings the last byte last",
			  b->attr.transport);
	if (b->mode == ACCESS || b->mode == ACCESSES) {
		rounds(b, p, 0, 1); /* waits until both ends run */
		if (b->mode == ACCESS)
			measure_access(b, p);
		else
			measure_accesses(b, p);
		send_message(p, STOP, 0);
		expect(p, STOP);
	} else if (b->mode == RTT || b->mode == INLINE || b->mode == DATA || b->mode == PONG) {
		measure_rounds(b, p);
	} else if (b->mode == SUM) {
		measure_sums(b, p);
	} else {
		measure_flood(b, p);
	}
}

/* -- two threads -- */

struct both {
	const struct bench *bench;
	struct peer client, server;
};

static void *serve_thread(void *arg)
{
	struct both *both = arg;

	pin(nth_cpu(1));
	serve(both->bench, &both->server);
	return NULL;
}

static void run_threads(const struct bench *b, struct both *both)
{
	struct peer *peers[2] = {&both->client, &both->server};
	pthread_t thread;
	int first = nth_cpu(0);

	alarm(TOO_LONG_S);
	both->bench = b;
	peer_open(&both->client, &b->attr, 0, &both->server);
	peer_begin(&both->server);
	peer_begin(&both->client);
	peers_join(peers, 2);
	if (pthread_create(&thread, NULL, serve_thread, both))
		fake_fail("no thread");
	pin(first);
	drive(b, &both->client);
	pthread_join(thread, NULL);
	peers_part(peers, 2);
}

/* -- two processes -- */

struct beside {
	const struct bench *bench;
	int *listening; /* shared */
};

static void serve_process(void *arg)
{
	static struct peer server;
	struct peer *peers[1] = {&server};
	struct beside *beside = arg;

	peer_open(&server, &beside->bench->attr, 1, NULL);
	peer_begin(&server);
	store(beside->listening, 1);
	peers_join(peers, 1);
	serve(beside->bench, &server);
	peers_part(peers, 1);
}

static void run_processes(const struct bench *b)
{
	static struct peer client;
	struct peer *peers[1] = {&client};
	struct beside beside = {.bench = b, .listening = share(4096)};
	pid_t pid = run_beside(serve_process, &beside);

	while (!load(beside.listening))
		if (waitpid(pid, NULL, WNOHANG) != 0)
			fake_fail("the server ended");
	peer_open(&client, &b->attr, 0, NULL);
	peer_begin(&client);
	peers_join(peers, 1);
	drive(b, &client);
	peers_part(peers, 1);
	join(pid);
}

static int usage(void)
{
	fprintf(stderr,
		"usage: msgbench TRANSPORT MODE [MS [SETTING...]]\n"
		"modes: rtt single batch BYTES inline:BYTES inlines:BYTES post:BYTES sum:BYTES\n"
		"	read:BYTES write:BYTES pong:BYTES reads:BYTES writes:BYTES\n");
	return 2;
}

static int parse_region(struct bench *b, enum mode mode, uint32_t depth, const char *bytes)
{
	b->mode = mode;
	b->attr.depth = depth;
	b->attr.data_bytes = strtoull(bytes, NULL, 10);
	return b->attr.data_bytes < 4096 || b->attr.data_bytes > 64u << 20 ||
			       b->attr.data_bytes % 4096
		       ? -EINVAL
		       : 0;
}

static int parse_access(struct bench *b, const char *text)
{
	b->attr.both = !strncmp(text, "pong:", 5);
	b->op = *text == 'r' ? GANTRY_RMA_READ : GANTRY_RMA_WRITE;
	b->attr.rma = 1;
	return parse_region(b,
			    b->attr.both                                                ? PONG
			    : strncmp(text, "reads:", 6) && strncmp(text, "writes:", 7) ? ACCESS
											: ACCESSES,
			    ACCESS_DEPTH, strchr(text, ':') + 1);
}

static int parse_inline(struct bench *b, const char *text)
{
	b->mode = text[6] == 's' ? SINGLE : INLINE;
	b->attr.inlined = 1;
	b->attr.data_bytes = strtoull(strchr(text, ':') + 1, NULL, 10);
	return b->attr.data_bytes == 0 || b->attr.data_bytes > MAX_INLINE ? -EINVAL : 0;
}

static int parse(struct bench *b, int argc, char **argv)
{
	if (argc < 3 || argc > 4 + PEER_SETTINGS)
		return -EINVAL;
	b->name = argv[2];
	b->length_ns = duration_ns(argc - 2, argv + 2, 300);
	b->attr = (struct peer_attr){.transport = argv[1], .service = "bench", .depth = DEPTH};
	for (int i = 4, n = 0; i < argc; i++)
		if (strncmp(argv[i], "service=", 8))
			b->attr.settings[n++] = argv[i];
		else
			b->attr.service = argv[i] + 8;
	if (!strcmp(argv[2], "rtt")) {
		b->mode = RTT;
	} else if (!strcmp(argv[2], "single")) {
		b->mode = SINGLE;
	} else if (!strcmp(argv[2], "batch")) {
		b->mode = FLUSHED;
	} else if (!strncmp(argv[2], "inline:", 7) || !strncmp(argv[2], "inlines:", 8)) {
		return parse_inline(b, argv[2]);
	} else if (!strncmp(argv[2], "post:", 5) || !strncmp(argv[2], "sum:", 4)) {
		b->attr.posted = 1;
		return parse_region(b, *argv[2] == 'p' ? RTT : SUM, DEPTH,
				    strchr(argv[2], ':') + 1);
	} else if (strchr(argv[2], ':')) {
		return parse_access(b, argv[2]);
	} else {
		return parse_region(b, DATA, DATA_DEPTH, argv[2]);
	}
	return 0;
}

/*
 * Ask the plugin whether it reaches only its own process. Runs in a separate process: an RDMA
 * library that was used before a fork does not work after it.
 */
static void ask(void *arg)
{
	static struct peer peer;

	peer_open(&peer, arg, 1, NULL);
	peer.ops->close(peer.device);
	_exit(peer.ops->flags & GANTRY_TRANSPORT_INSIDE ? 3 : 0);
}

static int same_process(struct peer_attr *attr)
{
	int status;

	if (waitpid(run_beside(ask, attr), &status, 0) < 0 || !WIFEXITED(status) ||
	    (WEXITSTATUS(status) | 3) != 3)
		fake_fail("no device");
	return WEXITSTATUS(status) == 3;
}

int main(int argc, char **argv)
{
	static struct both both;
	struct bench bench;

	if (parse(&bench, argc, argv))
		return usage();
	bench.line = share(4096);
	bench.ring = bare_ring(RING_SLOTS);
	if (same_process(&bench.attr)) {
		peer_open(&both.server, &bench.attr, 1, NULL);
		run_threads(&bench, &both);
	} else {
		run_processes(&bench);
	}
	return 0;
}
