/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm_ring.h - the ring from one producer to one consumer, and the line in which the consumer
 * returns credit.
 *
 *   ring: memory of the producer, read by the consumer           credit page: memory of the
 *                                                                consumer, read by the producer
 *   +------------------------------+---------+                   line 0   asleep
 *   | payload, 56 bytes            | trailer |  slot 0           line 1+n tail, limit of ring n
 *   | ...                          |         |  slot 1 ...
 *
 * The trailer is one word, stored last. It contains a sequence number, position + 1, so the fast
 * path has no shared index. A slot is ready if it has the expected number. The number of one lap
 * earlier (0 in the first lap) means that the slot is empty. Any other number is a protocol error.
 * Of a message with several slots the first slot is published last, with a release. A consumer that
 * sees the first slot with an acquire can read the other slots.
 *
 * A producer that is destroyed withdraws the messages of regions whose slots the consumer has not
 * returned. It marks their trailers, and then its user is free to change the data. The consumer
 * skips a marked message. After it has copied data of a region it reads the trailer again, and
 * skips the message if it is marked now. The next message uses the same receive, so bytes of the
 * buffer beyond the data of that message might have been written.
 *
 * Credit is one word as well: the number of consumed slots, and the number of messages that the
 * producer may send.
 */
#ifndef COMCH_RING_H
#define COMCH_RING_H

#include <stdbool.h>

#include <gantry/shm.h>
#include <gantry/transport.h>

#define COMCH_SLOT_PAYLOAD 56u
/*
 * bytes of a slot after 8 bytes of immediate data: a constant, so that they are copied without a
 * loop
 */
#define COMCH_BEHIND_WORD (COMCH_SLOT_PAYLOAD - 8)
#define COMCH_INLINE_MAX 4096u
#define COMCH_SLOTS_MIN 128u /* more than an inline message of the largest size needs */
#define COMCH_SLOTS_MAX 65536u

struct comch_slot {
	uint8_t payload[COMCH_SLOT_PAYLOAD];
	uint64_t trailer;
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct comch_slot) == 64, "one cache line");

enum comch_kind {
	COMCH_K_IMM = 1, /* immediate data only */
	/* immediate data, then inline data, which continues in the following slots */
	COMCH_K_INLINE,
	COMCH_K_REGION,  /* struct comch_region_send, then immediate data */
	COMCH_K_REGION2, /* struct comch_region_send; immediate data in the following slot */
	COMCH_K_MORE,    /* the slot is not the first of its message */
};

struct comch_region_send {
	uint32_t ref;
	uint32_t length; /* bytes */
	uint64_t offset; /* bytes, in the region */
};

#define COMCH_REGION_IMM (COMCH_SLOT_PAYLOAD - (uint32_t)sizeof(struct comch_region_send))

struct comch_trailer {
	uint32_t seq;
	uint8_t kind;    /* enum comch_kind */
	uint8_t imm_len; /* bytes */
	/* bytes of inline data; COMCH_K_REGION, COMCH_K_REGION2: 0 or COMCH_WITHDRAWN */
	uint16_t length;
};

#define COMCH_WITHDRAWN 1u

static inline uint64_t comch_trailer_pack(struct comch_trailer t)
{
	return t.seq | (uint64_t)t.kind << 32 | (uint64_t)t.imm_len << 40 |
	       (uint64_t)t.length << 48;
}

static inline struct comch_trailer comch_trailer_unpack(uint64_t word)
{
	return (struct comch_trailer){(uint32_t)word, (uint8_t)(word >> 32), (uint8_t)(word >> 40),
				      (uint16_t)(word >> 48)};
}

/* Returns the trailer of a slot full of immediate data, the most frequent message. */
static inline uint64_t comch_full_word(uint64_t position)
{
	return comch_trailer_pack(
		(struct comch_trailer){(uint32_t)position + 1, COMCH_K_IMM, COMCH_SLOT_PAYLOAD, 0});
}

/* Returns the trailer of a slot that is not the first of its message. */
static inline uint64_t comch_more_word(uint64_t position)
{
	return comch_trailer_pack(
		(struct comch_trailer){(uint32_t)position + 1, COMCH_K_MORE, 0, 0});
}

/*
 * The most frequent message of several slots: one word of immediate data, then whole words of data
 * that end in the second slot. comch_pair_word() is the trailer of its first slot. comch_is_pair()
 * recognises such a trailer, of a slot that is ready.
 */
static inline bool comch_fits_pair(uint32_t length)
{
	return length % 8 == 0 && length > COMCH_BEHIND_WORD &&
	       length <= COMCH_BEHIND_WORD + COMCH_SLOT_PAYLOAD;
}

static inline uint64_t comch_pair_word(uint64_t position, uint32_t length)
{
	return comch_trailer_pack((struct comch_trailer){(uint32_t)position + 1, COMCH_K_INLINE, 8,
							 (uint16_t)length});
}

static inline bool comch_is_pair(uint64_t position, uint64_t word)
{
	return (word & ~(UINT64_MAX << 48)) == comch_pair_word(position, 0) &&
	       comch_fits_pair((uint32_t)(word >> 48));
}

/* Returns how many of `length` bytes of inline data after imm_len bytes are in the first slot. */
static inline uint32_t comch_inline_here(uint32_t imm_len, uint32_t length)
{
	return length < COMCH_SLOT_PAYLOAD - imm_len ? length : COMCH_SLOT_PAYLOAD - imm_len;
}

/* Returns how many slots follow the first one. */
static inline uint32_t comch_more_slots(uint32_t imm_len, uint32_t length)
{
	return (imm_len + length - 1) / COMCH_SLOT_PAYLOAD;
}

#define COMCH_LINE_STRIDE 128u /* two cache lines: the prefetcher fetches them in pairs */
#define COMCH_PAGE_BYTES 8192u
/* limit of the rings of one consumer */
#define COMCH_RINGS (COMCH_PAGE_BYTES / COMCH_LINE_STRIDE - 1)

struct comch_line {
	union {
		uint64_t credit; /* tail in the low half, limit in the high half */
		uint32_t asleep; /* used in line 0 only; 1: the producers must ring the doorbell */
	};
	uint8_t rest[COMCH_LINE_STRIDE - 8];
} __attribute__((aligned(128)));

struct comch_page {
	struct comch_line asleep;
	struct comch_line ring[COMCH_RINGS];
};

_Static_assert(sizeof(struct comch_page) == COMCH_PAGE_BYTES, "two pages");

static inline uint64_t comch_credit_pack(uint32_t tail, uint32_t limit)
{
	return tail | (uint64_t)limit << 32;
}

#endif
