/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * soak.h - the journal that the driver and its clients share, and the content of blocks.
 *
 * Each client owns a range of blocks. Only the owner writes them, one write at a time for each
 * block; every client reads all blocks. A write has a sequence number, which its client never uses
 * again. Each 8-byte word of a block carries the sequence number and a hash of run, block, sequence
 * number and index of the word. So each word shows the write that it came from. An odd sequence
 * number is a write of zeroes or a discard: all words are 0. A block that was never written is 0,
 * too.
 *
 * The journal is shared memory of the driver. It outlives each client:
 *     issued   the last write that was submitted, set before the submission
 *     acked    the last write that completed with success
 *     flushed  the last write that a flush or FUA has made stable: all that a power cut may not
 *              lose
 *     seen     the last write that a read has returned as a whole
 *
 * Rules for a read, with lo = max(acked, seen) before its submission and hi = issued after its
 * completion:
 *     each word is of a write from lo to hi; if there was one write at most, it is of lo or hi
 *     without a write in flight all words are of one write
 * A write is in doubt when its client was killed, or when it failed. When the next session has
 * started, the owner reads the block. What it finds becomes the acknowledged write: a write that
 * has no effect by then must never appear. Such a block is not torn either, unless the target was
 * killed meanwhile: gantry-guarantees(7) promises no atomicity then.
 */
#ifndef SOAK_H
#define SOAK_H

#include <stdatomic.h>
#include <stdint.h>

#define SOAK_BLOCK 4096u
#define SOAK_WORDS (SOAK_BLOCK / 8)
#define SOAK_CLIENTS 3u
#define SOAK_OWN 1024u /* blocks of each client */
#define SOAK_BLOCKS (SOAK_CLIENTS * SOAK_OWN)
#define SOAK_QUEUES 3u
#define SOAK_DEPTH 8u
#define SOAK_SLOTS (SOAK_QUEUES * SOAK_DEPTH)
#define SOAK_SPAN 8u /* most blocks of one IO */
#define SOAK_RECORDS 32u
#define SOAK_STORES 2u /* the file, and the memory of a target */

enum soak_kind {
	/* older than an acknowledged write: lost, overtaken, or a write that was done twice */
	SOAK_STALE,
	SOAK_TORN,    /* parts of several writes */
	SOAK_LATE,    /* a write that was found without effect, or was never submitted */
	SOAK_FOREIGN, /* data of another block, another run, or of no write */
	SOAK_STATUS,  /* a status or an answer that must not be */
	SOAK_TWICE,   /* completed twice */
	SOAK_HANG,    /* not completed in time */
	SOAK_LEAK,    /* a process, file, descriptor, mapping, thread or memory is left */
	SOAK_DIED,    /* a process ended by itself */
	SOAK_KINDS,
};
extern const char *const soak_kinds[SOAK_KINDS];

struct soak_block {
	_Atomic uint32_t issued, acked, flushed, seen;
	_Atomic uint32_t zeroed; /* the last submitted write of zeroes */
	/* writes submitted; that count at the last time none was in doubt */
	_Atomic uint32_t n_issued, n_acked;
	_Atomic uint32_t kills; /* of targets, when the last write was submitted */
};

enum soak_command { SOAK_RUN, SOAK_PAUSE };
enum soak_state {
	SOAK_OPENING,
	SOAK_SETTLING,
	SOAK_RUNNING,
	SOAK_PAUSED,
	SOAK_CLOSING,
	SOAK_FOREIGN_VOLUME,
	SOAK_ENDED
};
extern const char *const soak_states[];

/* Counters grow over all processes that were this client. */
struct soak_client {
	_Atomic uint32_t state;
	_Atomic uint64_t since; /* ms: begin of this state */
	_Atomic uint32_t seq;   /* the last number that was used */
	_Atomic uint32_t stale; /* sessions that ended with ESTALE */
	_Atomic uint64_t writes, reads, blocks_read, flushes, timeouts, sessions;
	/* writes in doubt without effect; blocks torn by the end of a target */
	_Atomic uint64_t dropped, mixed;
	_Atomic uint64_t slot[SOAK_SLOTS]; /* ms: begin of the IO; 0: none */
};

struct soak_record {
	_Atomic uint32_t ready;
	uint32_t kind;
	char text[236];
};

struct soak_journal {
	uint64_t run;           /* a number of this run, part of each word */
	uint32_t sync_permille; /* of writes with FUA; flushes are half as many */
	uint32_t can_discard;
	uint32_t pace; /* ms between two rounds of submissions of a client */
	char bug[16];  /* what the clients do wrong in the self test; "": nothing */
	_Atomic uint32_t command;
	_Atomic uint32_t store; /* the one in use */
	/* sessions end with ESTALE: another volume has the name, or memory was lost */
	_Atomic uint32_t exchanged;
	_Atomic uint32_t target_kills;
	_Atomic uint32_t n_records;
	/* of the volume that belongs to this store; all 0: not known yet */
	uint8_t uuid[16];
	uint64_t verifier; /* the same; matters for memory */
	struct soak_record records[SOAK_RECORDS];
	struct soak_client clients[SOAK_CLIENTS];
	struct soak_block blocks[SOAK_STORES][SOAK_BLOCKS];
};

/* What a read may return of one block. */
struct soak_window {
	uint32_t lo, hi, zeroed;
	uint32_t n_acked, n; /* before the read; writes that may be in between */
};

uint64_t soak_ms(void);
uint64_t soak_random(uint64_t *state);

/* Keep the record of an error; the driver ends the run. */
void soak_report(struct soak_journal *journal, enum soak_kind kind, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

void soak_fill(const struct soak_journal *journal, void *buf, uint32_t block, uint32_t seq);
static inline int soak_is_zero(uint32_t seq)
{
	return seq == 0 || (seq & 1);
}

void soak_window_begin(struct soak_window *window, const struct soak_block *block);
void soak_window_end(struct soak_window *window, const struct soak_block *block);

#define SOAK_MIXED UINT32_MAX
/*
 * soak_check - compare a block with its window
 *
 * found    out: the write that all words are of, or SOAK_MIXED
 * where    for the text of the error
 * returns  0; -1: reported
 */
int soak_check(struct soak_journal *journal, const void *buf, uint32_t block,
	       const struct soak_window *window, uint32_t *found, const char *where);

/* Raise a value to at least this. */
static inline void soak_raise(_Atomic uint32_t *at, uint32_t value)
{
	uint32_t old = atomic_load(at);

	while (old < value && !atomic_compare_exchange_weak(at, &old, value))
		;
}

#endif
