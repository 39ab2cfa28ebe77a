/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * soak.h - the journal that the driver and its clients share, and the content of blocks.
 *
 * Each client owns a range of blocks. Only the owner writes them, one write at a time for each
 * block; every client reads all blocks. A write has a sequence number, which its client never uses
 * again. Each 8-byte word of a block carries the sequence number and a hash of run, block, sequence
 * number and index of the word. So each word identifies its write. An odd sequence number means a
 * write of zeroes or a discard: all words are 0. A block that was never written is 0, too.
 *
 * The journal is shared memory of the driver. It outlives each client:
 *     issued   the last write that was submitted, set before the submission
 *     acked    the last write that completed with success
 *     flushed  the last write that a flush or FUA has made stable: a power cut must not lose it
 *     seen     the last write that a read has returned as a whole
 *
 * Rules for a read, with lo = max(acked, seen) before its submission and hi = issued after its
 * completion:
 *     each word comes from a write from lo to hi
 *     if at most one write was in flight or in doubt during the read: from lo or from hi
 *     if no write was in flight or in doubt, all words come from one write
 * A write is in doubt if it failed, or if its client was killed. After the next session has
 * started, the owner reads the block. The write that it finds becomes the acknowledged write: a
 * write without effect at that time must never take effect. Such a block is not torn either, unless
 * the target was killed meanwhile: gantry-guarantees(7) promises no atomicity then.
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
#define SOAK_STORES 2u /* the file, and the store of a round: memory, or other files */

enum soak_kind {
	/* data is older than an acknowledged write: a write was lost, overtaken or done twice */
	SOAK_STALE,
	SOAK_TORN,    /* a block with parts of several writes */
	SOAK_LATE,    /* from a write that had no effect when settled, or was never submitted */
	SOAK_FOREIGN, /* data of another block or run, or not data of a write */
	SOAK_STATUS,  /* a status or an answer that is not allowed */
	SOAK_TWICE,   /* an IO completed twice */
	SOAK_HANG,    /* an IO or a step did not complete in time */
	SOAK_LEAK,    /* a process, file, descriptor, mapping, thread or memory was not released */
	SOAK_DIED,    /* a process ended by itself */
	SOAK_KINDS,
};
extern const char *const soak_kinds[SOAK_KINDS];

/* How nbd_relay breaks a reply of the NBD server. */
enum soak_lie {
	SOAK_LIE_SHORT,  /* a chunk with less data than the client has asked for */
	SOAK_LIE_LONG,   /* a chunk with more data */
	SOAK_LIE_COOKIE, /* the cookie of no request */
	SOAK_LIE_MAGIC,  /* a wrong magic number */
	SOAK_LIE_CUT,    /* one half of the reply, then the end of the connection */
	SOAK_LIE_TWICE,  /* the reply, and once more */
	SOAK_LIE_NEVER,  /* no reply */
	SOAK_LIES,
};
extern const char *const soak_lies[SOAK_LIES];

struct soak_block {
	_Atomic uint32_t issued, acked, flushed, seen;
	_Atomic uint32_t zeroed; /* the last submitted write of zeroes */
	/*
	 * n_issued: number of submitted writes. n_acked: value of n_issued at the last moment at
	 * which no write of the block was in flight or in doubt.
	 */
	_Atomic uint32_t n_issued, n_acked;
	_Atomic uint32_t kills; /* number of killed targets when the last write was submitted */
};

/* What a server does while another volume is behind it. */
enum { SOAK_REJECTS_IO = 1, SOAK_REJECTS_SESSIONS = 2 };

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

/* The counters cover all processes of this client. */
struct soak_client {
	_Atomic uint32_t state;
	_Atomic uint64_t since; /* ms: start of this state */
	_Atomic uint32_t seq;   /* the last sequence number that was used */
	_Atomic uint32_t stale; /* sessions that ended with ESTALE */
	_Atomic uint64_t writes, reads, blocks_read, flushes, timeouts, sessions;
	/* writes in doubt without effect; blocks torn by the end of a target */
	_Atomic uint64_t dropped, mixed;
	_Atomic uint64_t io_errors;        /* IOs that failed with EIO, without flushes */
	_Atomic uint64_t slot[SOAK_SLOTS]; /* ms: start of the IO; 0: no IO */
};

struct soak_record {
	_Atomic uint32_t ready;
	uint32_t kind;
	char text[236];
};

struct soak_journal {
	uint64_t run;           /* random number of this run, part of each word */
	uint32_t sync_permille; /* per mille of writes with FUA; half as many flushes */
	uint32_t can_discard;
	/* a flush may fail with EIO: the target cannot know whether its NBD server lost writes */
	uint32_t flush_may_fail;
	/*
	 * Age of an IO from which on it may fail with EIO, ms; 0: never. While the service does not
	 * answer, backends fail IO shortly before its deadline, or after a time limit of their own.
	 */
	uint32_t io_error_ms;
	/*
	 * When the target fences its client, all IO of this client fails with EIO. It does so after
	 * an IO has timed out, which can be an IO of a client that was killed.
	 */
	uint32_t target_fences;
	_Atomic uint64_t stalled;      /* ms: when the driver stopped the service; 0: it runs */
	_Atomic uint64_t timed_out_at; /* ms: last failure of an IO of that age */
	/* time in which a write can take effect that has failed with EIO, ms; 0: it cannot */
	uint32_t late_ms;
	uint32_t pace; /* ms between two rounds of submissions of a client */
	char bug[16];  /* seeded bug of the clients in the self test; "": none */
	_Atomic uint32_t command;
	_Atomic uint32_t store; /* index of the store in use */
	/* sessions end with ESTALE: another volume has the name, or memory was lost */
	_Atomic uint32_t exchanged;
	/* another volume is behind the server: 0, SOAK_REJECTS_IO, SOAK_REJECTS_SESSIONS */
	_Atomic uint32_t rejecting;
	_Atomic uint32_t target_kills;
	_Atomic uint32_t lies_on;         /* nbd_relay breaks replies */
	_Atomic uint64_t lies[SOAK_LIES]; /* number of broken replies */
	/* reads that failed because of a reply that was too short */
	_Atomic uint64_t short_reads;
	_Atomic uint64_t short_at; /* ms: time of the last such reply */
	_Atomic uint32_t n_records;
	/* UUID of the volume of this store; all 0: not known yet */
	uint8_t uuid[16];
	uint64_t verifier; /* verifier of this volume; changes only for memory */
	struct soak_record records[SOAK_RECORDS];
	struct soak_client clients[SOAK_CLIENTS];
	struct soak_block blocks[SOAK_STORES][SOAK_BLOCKS];
};

/* The writes whose data a read of one block can return. */
struct soak_window {
	uint32_t lo, hi, zeroed;
	/* n_acked: value before the read; n: number of writes that can be in between */
	uint32_t n_acked, n;
};

uint64_t soak_ms(void);
uint64_t soak_random(uint64_t *state);

/* Record an error; the driver ends the run. */
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
 * found    out: the write that all words come from, or SOAK_MIXED
 * where    text for the message of an error
 * returns  0; -1: an error was reported
 */
int soak_check(struct soak_journal *journal, const void *buf, uint32_t block,
	       const struct soak_window *window, uint32_t *found, const char *where);

/* Raise *at to at least `value`. */
static inline void soak_raise(_Atomic uint32_t *at, uint32_t value)
{
	uint32_t old = atomic_load(at);

	while (old < value && !atomic_compare_exchange_weak(at, &old, value))
		;
}

#endif
