/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include <gantry/io.h>

#include "perf/numbered.h"

#define REPOST 8 /* post receives in batches of this size, or all when no message waits */
/* pauses after an empty poll over shared memory, as in the programs of limits/ */
#define PAUSES 1

void wait_a_little(struct peer *p)
{
	peer_idle(p);
	for (int i = 0; i < PAUSES && p->shares_lines; i++)
		relax();
}

void wrong(uint64_t seq, const char *what)
{
	fake_fail("message %llu: %s", (unsigned long long)seq, what);
}

/*
 * Mark both ends of the data. The receiver checks the marks only for the last message, so that the
 * measurement of a post does not include access to the data.
 */
static void mark_ends(char *data, uint64_t bytes)
{
	const uint64_t end = STOP;

	memcpy(data, &end, sizeof(end));
	memcpy(data + bytes - sizeof(end), &end, sizeof(end));
}

static int ends_marked(const char *data, uint64_t bytes)
{
	uint64_t first, last;

	memcpy(&first, data, sizeof(first));
	memcpy(&last, data + bytes - sizeof(last), sizeof(last));
	return first == STOP && last == STOP;
}

void refer(struct peer *p, uint64_t seq)
{
	p->word[1] = 0;
	p->word[2] = p->attr->data_bytes;
	if (seq == STOP && p->region.addr)
		mark_ends(p->region.addr, p->attr->data_bytes);
}

/*
 * Returns whether the reference is valid and, for the last message, whether it names the marked
 * data. Restores the two words of the message.
 */
static int follow(const struct peer *p, uint64_t word[7])
{
	const struct gantry_region *region = p->imported ? p->imported : &p->region;
	uint64_t offset = word[1], bytes = word[2], expected[7];

	fill_words(expected, word[0]);
	word[1] = expected[1];
	word[2] = expected[2];
	if (bytes != p->attr->data_bytes || !gantry_range_ok(offset, bytes, region->length))
		return 0;
	return word[0] != STOP || ends_marked((const char *)region->addr + offset, bytes);
}

void send_later(struct peer *p, uint64_t seq, const struct gantry_send *data, uint32_t flags,
		int rc)
{
	while (rc == -EAGAIN) {
		p->ops->flush(p->producer);
		wait_a_little(p);
		rc = data ? p->ops->data->send(p->producer, data, flags)
			  : p->ops->send(p->producer, p->word, sizeof(p->word), flags);
	}
	if (rc)
		wrong(seq, strerror(-rc));
}

void send_inlined(struct peer *p, uint64_t seq, uint32_t flags)
{
	struct gantry_send send = {
		.imm = &seq, .imm_len = sizeof(seq), .length = (uint32_t)p->attr->data_bytes};
	char data[MAX_INLINE];

	send.data = memset(data, (char)seq, p->attr->data_bytes);
	send_later(p, seq, &send, flags, p->ops->data->send(p->producer, &send, flags));
}

static uint64_t number_of_inlined(const struct peer *p, const struct gantry_msg *msg)
{
	uint64_t bytes = p->attr->data_bytes, seq;

	memcpy(&seq, msg->imm, sizeof(seq));
	if (msg->imm_len != sizeof(seq) || msg->length != bytes || p->buffer[0] != (char)seq ||
	    p->buffer[bytes - 1] != (char)seq)
		wrong(seq, "arrived damaged");
	return seq;
}

uint64_t number(const struct peer *p, const struct gantry_msg *msg)
{
	const uint64_t *word = (const void *)msg->imm;
	uint64_t copy[7];

	if (p->attr->inlined)
		return number_of_inlined(p, msg);
	if (p->attr->posted) {
		word = memcpy(copy, msg->imm, sizeof(copy));
		if (!follow(p, copy))
			wrong(word[0], "does not lead to its data");
	}
	if (msg->imm_len != sizeof(copy) || msg->status || !words_ok(word, word[0]))
		wrong(word[0], "arrived damaged");
	return word[0];
}

static void post_again(struct peer *p)
{
	peer_post(p, p->n_taken);
	p->n_taken = 0;
}

int poll_some(struct peer *p, struct gantry_msg *msgs, uint32_t max)
{
	int n = p->ops->poll_recv(p->consumer, msgs, max);

	if (n < 0)
		wrong(0, strerror(-n));
	p->n_taken += (uint32_t)n;
	if (p->n_taken >= REPOST || (n == 0 && p->n_taken))
		post_again(p);
	if (n == 0)
		wait_a_little(p);
	return n;
}

void await(struct peer *p, struct gantry_msg *msg)
{
	while (poll_some(p, msg, 1) == 0)
		;
	if (p->ops->data)
		p->ops->data->send_prefetch(p->producer);
}

/* Wait for the next message, which must have this number. */
void expect(struct peer *p, uint64_t seq)
{
	struct gantry_msg msg;

	await(p, &msg);
	if (number(p, &msg) != seq)
		wrong(seq, "not the one that was expected");
}

void write_data(struct peer *p, uint64_t seq)
{
	uint64_t *word = p->region.addr, n = p->attr->data_bytes / sizeof(*word);

	for (uint64_t i = 0; i < n; i++)
		word[i] = seq + i;
}

typedef uint64_t line __attribute__((vector_size(LINE)));

/* Add n lines, a multiple of four, to four independent sums. */
static inline __attribute__((always_inline)) void add_lines(const line *at, uint64_t n, line *sum)
{
	line a = {0}, b = {0}, c = {0}, d = {0};

	for (const line *end = at + n; at < end; at += 4) {
		a += at[0];
		b += at[1];
		c += at[2];
		d += at[3];
	}
	*sum = a + b + c + d;
}

static void add_plain(const line *at, uint64_t n, line *sum)
{
	add_lines(at, n, sum);
}

#ifdef __x86_64__
__attribute__((target("avx512f"))) static void add_wide(const line *at, uint64_t n, line *sum)
{
	add_lines(at, n, sum);
}
#define HAS_WIDE __builtin_cpu_supports("avx512f")
#else
#define add_wide add_plain
#define HAS_WIDE 0
#endif

void check_sum(const struct peer *p, uint64_t seq)
{
	uint64_t n = p->attr->data_bytes / sizeof(seq), all = 0;
	line sum;

	(HAS_WIDE ? add_wide : add_plain)(p->imported->addr, p->attr->data_bytes / LINE, &sum);
	for (unsigned i = 0; i < LINE / sizeof(seq); i++)
		all += sum[i];
	if (all != n * seq + n * (n - 1) / 2)
		wrong(seq, "is of data that is not what was written");
}
