/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ring.h - the ring of one producer towards one consumer, and the line in which the consumer gives
 * credit.
 *
 *   ring: memory of the producer, read by the consumer           credit page: memory of the
 *                                                                consumer, read by the producer
 *   +------------------------------+---------+                   line 0   asleep
 *   | payload, 56 bytes            | trailer |  slot 0           line 1+n tail, limit of ring n
 *   | ...                          |         |  slot 1 ...
 *
 * The trailer is one word, stored last. It holds a sequence number, position + 1, so neither side
 * shares an index on the fast path: a slot is ready when its number is the one expected. What it
 * held before, the number of one lap earlier (0 in the first lap), means empty; anything else is a
 * broken peer. A message of several slots has its first slot published last: with release, and who
 * sees it with acquire may look at the others.
 *
 * A producer that is destroyed withdraws the messages of regions whose data it does not know to
 * have been read: it marks their trailers, and its user may change the data after that. The
 * consumer skips a marked message, and reads the trailer again after it has copied data of a
 * region: if it is marked now, the message is skipped, too. The next message uses the receive,
 * whose buffer then may have been written behind the data of that message.
 *
 * Credit is one word as well: how many slots have been consumed, and up to which message the
 * producer may send.
 */
#ifndef COMCH_RING_H
#define COMCH_RING_H

#include <stdbool.h>

#include <gantry/shm.h>
#include <gantry/transport.h>

#define COMCH_SLOT_PAYLOAD 56u
/* room behind one word of immediate data: copied without a loop */
#define COMCH_BEHIND_WORD (COMCH_SLOT_PAYLOAD - 8)
#define COMCH_INLINE_MAX 4096u
#define COMCH_SLOTS_MIN 128u /* an inline message of the largest size fits with room to spare */
#define COMCH_SLOTS_MAX 65536u

struct comch_slot {
	uint8_t payload[COMCH_SLOT_PAYLOAD];
	uint64_t trailer;
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct comch_slot) == 64, "one cache line");

enum comch_kind {
	COMCH_K_IMM = 1, /* immediate data only */
	/* immediate data, then inline data, which goes on in the slots that follow */
	COMCH_K_INLINE,
	COMCH_K_REGION,  /* struct comch_region_send, then immediate data */
	COMCH_K_REGION2, /* struct comch_region_send; immediate data in the slot that follows */
	COMCH_K_MORE,    /* not the first slot of its message */
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

/* The trailer of a slot full of immediate data, the commonest of all messages. */
static inline uint64_t comch_full_word(uint64_t position)
{
	return comch_trailer_pack(
		(struct comch_trailer){(uint32_t)position + 1, COMCH_K_IMM, COMCH_SLOT_PAYLOAD, 0});
}

/* The trailer of a slot that is not the first of its message. */
static inline uint64_t comch_more_word(uint64_t position)
{
	return comch_trailer_pack(
		(struct comch_trailer){(uint32_t)position + 1, COMCH_K_MORE, 0, 0});
}

/*
 * Of the messages of several slots the commonest: whole words of data behind one word of immediate
 * data, up to the end of the second slot. The trailer of the first, and whether a trailer that is
 * ready is such.
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

/* Of `length` bytes of inline data behind imm_len bytes: how many lie in the first slot. */
static inline uint32_t comch_inline_here(uint32_t imm_len, uint32_t length)
{
	return length < COMCH_SLOT_PAYLOAD - imm_len ? length : COMCH_SLOT_PAYLOAD - imm_len;
}

/* And how many slots follow it. */
static inline uint32_t comch_more_slots(uint32_t imm_len, uint32_t length)
{
	return (imm_len + length - 1) / COMCH_SLOT_PAYLOAD;
}

#define COMCH_LINE_STRIDE 128u /* two lines: the prefetcher fetches them in pairs */
#define COMCH_PAGE_BYTES 8192u
#define COMCH_RINGS (COMCH_PAGE_BYTES / COMCH_LINE_STRIDE - 1) /* of one consumer */

struct comch_line {
	union {
		uint64_t credit; /* tail in the low half, limit in the high half */
		uint32_t asleep; /* of line 0: ring the doorbell */
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
