/* SPDX-License-Identifier: BSD-3-Clause */
/* oracle.c - fills blocks, and judges the results of reads. Shares no code with gantry. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "soak/soak.h"

const char *const soak_kinds[SOAK_KINDS] = {"stale", "torn", "late", "foreign", "status",
					    "twice", "hang", "leak", "died"};
const char *const soak_lies[SOAK_LIES] = {"short", "long",  "cookie", "magic",
					  "cut",   "twice", "never"};
const char *const soak_states[] = {"opening", "settling",       "running", "paused",
				   "closing", "foreign volume", "ended"};

uint64_t soak_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static uint64_t mix(uint64_t z)
{
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

uint64_t soak_random(uint64_t *state)
{
	return mix(*state += 0x9e3779b97f4a7c15u);
}

void soak_report(struct soak_journal *journal, enum soak_kind kind, const char *format, ...)
{
	uint32_t i = atomic_fetch_add(&journal->n_records, 1);
	struct soak_record *record;
	va_list args;

	if (i >= SOAK_RECORDS)
		return;
	record = &journal->records[i];
	record->kind = kind;
	va_start(args, format);
	vsnprintf(record->text, sizeof(record->text), format, args);
	va_end(args);
	atomic_store(&record->ready, 1);
}

static uint64_t base_of(const struct soak_journal *journal, uint32_t block, uint32_t seq)
{
	return mix(mix(journal->run + block) + seq);
}

static uint64_t word_of(uint64_t base, uint32_t seq, uint32_t i)
{
	return (uint64_t)seq << 32 | (uint32_t)(mix(base + i) >> 32);
}

void soak_fill(const struct soak_journal *journal, void *buf, uint32_t block, uint32_t seq)
{
	uint64_t base = base_of(journal, block, seq), word;

	if (soak_is_zero(seq)) {
		memset(buf, 0, SOAK_BLOCK);
		return;
	}
	for (uint32_t i = 0; i < SOAK_WORDS; i++) {
		word = word_of(base, seq, i);
		memcpy((char *)buf + i * sizeof(word), &word, sizeof(word));
	}
}

/* The order of these loads can only make the window wider, never too narrow. */
void soak_window_begin(struct soak_window *window, const struct soak_block *block)
{
	uint32_t acked, seen;

	window->n_acked = atomic_load(&block->n_acked);
	acked = atomic_load(&block->acked);
	seen = atomic_load(&block->seen);
	window->lo = acked > seen ? acked : seen;
}

void soak_window_end(struct soak_window *window, const struct soak_block *block)
{
	window->hi = atomic_load(&block->issued);
	window->zeroed = atomic_load(&block->zeroed);
	window->n = atomic_load(&block->n_issued) - window->n_acked;
}

static int allowed(const struct soak_window *w, uint32_t seq)
{
	return seq == w->lo || seq == w->hi || (w->n > 1 && seq > w->lo && seq < w->hi);
}

/*
 * Returns the write of zeroes that words of 0 come from; SOAK_MIXED: no write of zeroes is allowed.
 * If two are allowed, the words do not show which of them it is.
 */
static uint32_t zeroes_of(const struct soak_window *w)
{
	if (soak_is_zero(w->hi))
		return w->hi;
	if (w->n > 1 && w->zeroed > w->lo && w->zeroed < w->hi)
		return w->zeroed;
	return soak_is_zero(w->lo) ? w->lo : SOAK_MIXED;
}

/* Returns the kind of error of a word that no allowed write wrote. */
static enum soak_kind classify(const struct soak_journal *journal, uint64_t word, uint32_t i,
			       uint32_t block, const struct soak_window *w, char *text,
			       size_t bytes)
{
	uint32_t seq = (uint32_t)(word >> 32);

	if (word == 0) {
		snprintf(text, bytes, "zeroes");
		return SOAK_STALE;
	}
	if (!soak_is_zero(seq) && word_of(base_of(journal, block, seq), seq, i) == word) {
		snprintf(text, bytes, "write %u", seq);
		return seq < w->lo ? SOAK_STALE : SOAK_LATE;
	}
	for (uint32_t b = 0; b < SOAK_BLOCKS; b++)
		if (!soak_is_zero(seq) && word_of(base_of(journal, b, seq), seq, i) == word) {
			snprintf(text, bytes, "write %u of block %u", seq, b);
			return SOAK_FOREIGN;
		}
	snprintf(text, bytes, "%016llx, which no write wrote", (unsigned long long)word);
	return SOAK_FOREIGN;
}

int soak_check(struct soak_journal *journal, const void *buf, uint32_t block,
	       const struct soak_window *w, uint32_t *found, const char *where)
{
	uint32_t n_bad = 0, first_bad = 0, last = SOAK_MIXED, seq, zeroes = zeroes_of(w);
	uint64_t word, bad = 0, base = 0, first = 0;
	enum soak_kind kind;
	char text[64];
	int mixed = 0;

	for (uint32_t i = 0; i < SOAK_WORDS; i++) {
		memcpy(&word, (const char *)buf + i * sizeof(word), sizeof(word));
		seq = word ? (uint32_t)(word >> 32) : zeroes;
		first = i ? first : word;
		mixed |= word >> 32 != first >> 32;
		if (word && seq != last)
			base = base_of(journal, block, seq);
		last = word ? seq : last;
		if (word ? !soak_is_zero(seq) && allowed(w, seq) && word == word_of(base, seq, i)
			 : zeroes != SOAK_MIXED)
			continue;
		if (!n_bad++) {
			bad = word;
			first_bad = i;
		}
	}
	*found = mixed ? SOAK_MIXED : first ? (uint32_t)(first >> 32) : zeroes;
	if (!n_bad && (!mixed || w->n))
		return 0;
	if (n_bad)
		kind = classify(journal, bad, first_bad, block, w, text, sizeof(text));
	else
		snprintf(text, sizeof(text), "several writes"), kind = SOAK_TORN;
	if (mixed && kind != SOAK_FOREIGN)
		kind = SOAK_TORN;
	soak_report(
		journal, kind,
		"%s: block %u of client %u has %s in %u words from %u; allowed: %u to %u, writes=%u",
		where, block, block / SOAK_OWN, text, n_bad, first_bad, w->lo, w->hi, w->n);
	return -1;
}
