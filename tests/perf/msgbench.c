/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * msgbench TRANSPORT MODE [MS [SETTING...]] - messages over a transport plugin, through its whole public table of operations.
 *
 *   rtt        there and back, 56 bytes of immediate data                     ns, median of slices
 *   single     one way, each message submitted by itself                      M/s, mean of the run
 *   batch      one way, in batches of 32 with GANTRY_SEND_MORE and a flush    M/s, mean of the run
 *   inline:BYTES                there and back, data that travels in the queue ns, median of slices
 *   inlines:BYTES               the same one way, each submitted by itself     M/s, mean of the run
 *   post:BYTES                  there and back, a name of that much data in a  ns, median of slices
 *                               region that both have mapped: it stays there
 *   sum:BYTES  the same, all of it written before and summed by the other      ns, median, without the writing
 *   BYTES      data of a region, taken by the other side, and its answer      ns, median of slices
 *   read:BYTES, write:BYTES     remote access, one at a time                  ns, median of slices
 *   writes:BYTES, reads:BYTES   the same, 64 at a time                        MB/s, mean of the run
 *   pong:BYTES                  remote writes there and back, each seen in    ns, median of slices
 *                               memory (RDMA: the last byte comes last)
 *
 * Each message is numbered in each of its words, and each is checked; what is read back at the end is what was written
 * last. A setting is NAME=VALUE, for one end alone client:NAME=VALUE or server:NAME=VALUE; service=NAME is none of the
 * transport's. Two processes on two CPUs; for a transport that reaches only its own process, two threads.
 */
#include <errno.h>
#include <pthread.h>

#include "perf/limits/common.h"
#include "perf/numbered.h"

#define DEPTH 4096
#define DATA_DEPTH 16
#define ACCESS_DEPTH 64
#define BATCH 32
#define TAKE 64
#define WARM 50
#define SLICE_NS 20000u

enum mode { RTT, SINGLE, FLUSHED, INLINE, DATA, SUM, ACCESS, ACCESSES, PONG };

struct bench {
	enum mode mode;
	enum gantry_rma_op op;
	uint64_t length_ns;
	struct peer_attr attr;
	const char *name;
};

/* -- remote access -- */

static void submit_access(const struct bench *b, struct peer *p, uint64_t seq)
{
	struct gantry_rma op = {.op = b->op, .length = (uint32_t)p->region.length, .local = p->region.addr,
				.local_region = &p->region, .remote = p->imported, .cookie = seq};
	int rc;

	while ((rc = p->ops->rma_submit(p->rma, &op)) == -EAGAIN)
		wait_a_little(p);
	if (rc)
		wrong(seq, strerror(-rc));
}

static unsigned take_accesses(struct peer *p, uint64_t after)
{
	struct gantry_rma_done done[TAKE];
	int n = p->ops->rma_poll(p->rma, done, TAKE);

	for (int i = 0; i < n; i++)
		if (done[i].status || done[i].cookie != ++after)
			wrong(after, "remote access failed, or ended out of order");
	return (unsigned)n;
}

/* -- remote writes both ways: what comes to stand in memory is the message -- */

static uint64_t *last_word(const struct peer *p)
{
	return (uint64_t *)p->region.addr + p->region.length / sizeof(uint64_t) - 1;
}

/* Write the whole region, with the number at both ends. */
static void throw(const struct bench *b, struct peer *p, uint64_t seq)
{
	uint64_t *first = p->region.addr;

	*first = *last_word(p) = seq;
	submit_access(b, p, seq);
	p->ops->rma_flush(p->rma);
}

/* What the other side threw: seq, or STOP. Our own write that it answers (thrown; 0: none) has ended then, or is about to. */
static uint64_t catch(struct peer *p, uint64_t seq, uint64_t thrown)
{
	const uint64_t *first = p->region.addr;
	uint64_t got;

	while ((got = __atomic_load_n(last_word(p), __ATOMIC_ACQUIRE)) == thrown)
		wait_a_little(p);
	if (*first != got || (got != seq && got != STOP))
		wrong(seq, "is not what came, or its end stands there before its beginning");
	while (thrown && take_accesses(p, thrown - 1) == 0)
		;
	return got;
}

/* -- the server's lane -- */

/* A word at each end of the data carries the number too. */
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
	uint64_t seq;

	for (uint64_t expected = 1;; expected++) {
		while (poll_some(p, &msg, 1) == 0)
			;
		seq = number(p, &msg);
		if (seq == STOP)
			break;
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

static void swallow(struct peer *p)
{
	struct gantry_msg msgs[TAKE];
	uint64_t expected = 1;

	for (;;) {
		int n = poll_some(p, msgs, p->attr->inlined ? 1 : TAKE); /* all receives have the same buffer */

		for (int i = 0; i < n; i++, expected++) {
			uint64_t seq = number(p, &msgs[i]);

			if (seq == STOP) {
				send_message(p, STOP, 0);
				return;
			}
			if (seq != expected)
				wrong(seq, "out of order");
		}
	}
}

static void throw_back(const struct bench *b, struct peer *p)
{
	for (uint64_t seq = 1; catch(p, seq, seq - 1) != STOP; seq += 2)
		throw(b, p, seq + 1);
	expect(p, STOP);
	send_message(p, STOP, 0);
}

static void serve(const struct bench *b, struct peer *p)
{
	if (b->mode == PONG)
		throw_back(b, p);
	else if (b->mode != SINGLE && b->mode != FLUSHED)
		answer(b, p);
	else
		swallow(p);
}

/* -- the client's lane: measures -- */

static void send_data(struct peer *p, uint64_t seq)
{
	struct gantry_send send = p->send;
	char *data = p->region.addr;

	send.length = (uint32_t)p->region.length;
	send.region = &p->region;
	send.cookie = seq;
	memcpy(data, &seq, sizeof(seq));
	memcpy(data + p->region.length - sizeof(seq), &seq, sizeof(seq));
	fill_words(p->word, seq);
	send_now(p, seq, &send, 0);
}

static void take_back(struct peer *p, uint64_t seq)
{
	uint64_t cookie;

	while (p->ops->poll_send(p->producer, &cookie, 1) == 0)
		relax();
	if (cookie != seq)
		wrong(seq, "wrong cookie");
}

static uint64_t throws(const struct bench *b, struct peer *p, uint64_t seq, unsigned n)
{
	while (n--) {
		throw(b, p, seq + 1);
		seq += 2;
		catch(p, seq, seq - 1);
	}
	return seq;
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

/* Rounds to be timed together: as many as make the clock's own time count for nothing, after some to get warm. */
static unsigned slice_of(uint64_t took_ns, unsigned n)
{
	uint64_t one = took_ns / n + 1;

	return one >= SLICE_NS ? 1 : (unsigned)(SLICE_NS / one);
}

static void measure_rounds(const struct bench *b, struct peer *p)
{
	uint64_t start = now_ns(), seq = rounds(b, p, 0, WARM), before = now_ns(), end = before + b->length_ns, t;
	unsigned slice = slice_of(before - start, WARM);
	static struct stats stats;

	do {
		seq = rounds(b, p, seq, slice);
		t = now_ns();
		note(&stats, (double)(t - before) / slice);
		before = t;
	} while (t < end);
	if (b->mode == PONG)
		throw(b, p, STOP);
	send_message(p, STOP, 0);
	expect(p, STOP);
	if (b->mode == PONG)
		while (take_accesses(p, STOP - 1) == 0)
			;
	print_median(b->name, &stats, "ns");
}

/* Each is noted by itself: what is written before is none of it. */
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

static void measure_flood(const struct bench *b, struct peer *p)
{
	uint64_t first = flood(b, p, 0, 4 * DEPTH), seq = first, start = now_ns(), before = start, t;
	static struct stats stats;

	do {
		seq = flood(b, p, seq, DEPTH);
		t = now_ns();
		note(&stats, DEPTH * 1e3 / (double)(t - before));
		before = t;
	} while (t - start < b->length_ns);
	send_message(p, STOP, 0);
	expect(p, STOP);
	t = now_ns();
	print_extremes(b->name, &stats, "M/s");
	print_value(b->name, (double)(seq - first) * 1e3 / (double)(t - start), "M/s");
}

static uint64_t accesses(const struct bench *b, struct peer *p, uint64_t seq, unsigned n)
{
	for (; n; n--) {
		submit_access(b, p, ++seq);
		p->ops->rma_flush(p->rma);
		while (take_accesses(p, seq - 1) == 0)
			;
	}
	return seq;
}

/* What was written last is what stands there. */
static void check_access(const struct bench *b, struct peer *p, uint64_t seq)
{
	struct bench back = *b;
	uint64_t *word = p->region.addr;

	back.op = GANTRY_RMA_WRITE;
	*word = seq;
	seq = accesses(&back, p, seq, 1);
	*word = 0;
	back.op = GANTRY_RMA_READ;
	accesses(&back, p, seq, 1);
	if (*word != seq - 1)
		wrong(seq, "not what was written");
}

static void measure_access(const struct bench *b, struct peer *p)
{
	uint64_t start = now_ns(), seq = accesses(b, p, 0, WARM), before = now_ns(), end = before + b->length_ns, t;
	unsigned slice = slice_of(before - start, WARM);
	static struct stats stats;

	do {
		seq = accesses(b, p, seq, slice);
		t = now_ns();
		note(&stats, (double)(t - before) / slice);
		before = t;
	} while (t < end);
	check_access(b, p, seq);
	print_median(b->name, &stats, "ns");
}

static void measure_accesses(const struct bench *b, struct peer *p)
{
	uint64_t seq = accesses(b, p, 0, ACCESS_DEPTH), taken = seq, first = seq, start = now_ns(), t;

	do {
		while (seq - taken < ACCESS_DEPTH)
			submit_access(b, p, ++seq);
		p->ops->rma_flush(p->rma);
		taken += take_accesses(p, taken);
		t = now_ns();
	} while (t - start < b->length_ns);
	while (taken != seq)
		taken += take_accesses(p, taken);
	t = now_ns();
	check_access(b, p, seq);
	print_value(b->name, (double)(seq - first) * (double)b->attr.data_bytes * 1e3 / (double)(t - start), "MB/s");
}

static void drive(const struct bench *b, struct peer *p)
{
	if (b->mode == PONG && p->shares_lines)
		fake_fail("%s copies data in any order: only RDMA brings the last byte last", b->attr.transport);
	if (b->mode == ACCESS || b->mode == ACCESSES) {
		rounds(b, p, 0, 1); /* both ends are there */
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
	fprintf(stderr, "usage: msgbench TRANSPORT MODE [MS [SETTING...]]\n"
			"modes: rtt single batch BYTES inline:BYTES inlines:BYTES post:BYTES sum:BYTES\n"
			"	read:BYTES write:BYTES pong:BYTES reads:BYTES writes:BYTES\n");
	return 2;
}

static int parse_region(struct bench *b, enum mode mode, uint32_t depth, const char *bytes)
{
	b->mode = mode;
	b->attr.depth = depth;
	b->attr.data_bytes = strtoull(bytes, NULL, 10);
	return b->attr.data_bytes < 4096 || b->attr.data_bytes > 64u << 20 || b->attr.data_bytes % 4096 ? -EINVAL : 0;
}

static int parse_access(struct bench *b, const char *text)
{
	b->attr.both = !strncmp(text, "pong:", 5);
	b->op = *text == 'r' ? GANTRY_RMA_READ : GANTRY_RMA_WRITE;
	b->attr.rma = 1;
	return parse_region(b, b->attr.both ? PONG : strncmp(text, "reads:", 6) && strncmp(text, "writes:", 7) ? ACCESS : ACCESSES,
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
		return parse_region(b, *argv[2] == 'p' ? RTT : SUM, DEPTH, strchr(argv[2], ':') + 1);
	} else if (strchr(argv[2], ':')) {
		return parse_access(b, argv[2]);
	} else {
		return parse_region(b, DATA, DATA_DEPTH, argv[2]);
	}
	return 0;
}

/* Asked in a process of its own: an RDMA library that was used before a fork is of no use after it. */
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

	if (waitpid(run_beside(ask, attr), &status, 0) < 0 || !WIFEXITED(status) || (WEXITSTATUS(status) | 3) != 3)
		fake_fail("no device");
	return WEXITSTATUS(status) == 3;
}

int main(int argc, char **argv)
{
	static struct both both;
	struct bench bench;

	if (parse(&bench, argc, argv))
		return usage();
	if (same_process(&bench.attr)) {
		peer_open(&both.server, &bench.attr, 1, NULL);
		run_threads(&bench, &both);
	} else {
		run_processes(&bench);
	}
	return 0;
}
