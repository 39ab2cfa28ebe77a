/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * layout.c - composes the volumes of several targets to one volume, and divides a range of it into
 * ranges of the targets.
 *
 *     concat    the targets in the order of the configuration
 *     stripe    chunks of one size: chunk k is chunk k / n of target k % n
 *
 *                   target 0   chunk 0   chunk 2   chunk 4
 *                   target 1   chunk 1   chunk 3   chunk 5
 */
#include "gateway.h"

#include <gantry/uuid.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/*
 * For functions that divide an IO: they push callee-saved registers. After a copy of data the store
 * buffer of the processor is full, so that the common path, an IO within one chunk, would wait for
 * these stores.
 */
#define NOT_INLINE __attribute__((noinline))
#define MAX_CHUNKS 64u /* limit of the chunks that one IO touches: bounds the descriptors */

/*
 * Combine the verifiers of two volumes. The result depends on both values and on their order.
 * Returns 0 (unknown) if one of them is 0.
 */
static uint64_t combine_verifiers(uint64_t first, uint64_t second)
{
	uint64_t both = gantry_mix64(gantry_mix64(0, first), second);

	if (first == 0 || second == 0)
		return 0;
	return both ? both : 1;
}

static void combine_uuids(uint8_t sum[GANTRY_UUID_BYTES], const uint8_t next[GANTRY_UUID_BYTES])
{
	if (gantry_uuid_is_known(next))
		gantry_uuid_derive(sum, next);
	else
		memset(sum, 0, GANTRY_UUID_BYTES);
}

/* Append the volume of one more target to `sum`, except its size. */
static void append(struct gantry_volume_info *sum, const struct gantry_volume_info *next)
{
	if (!next->block_size || (sum->block_size && next->block_size > sum->block_size))
		sum->block_size = next->block_size;
	if (next->max_io < sum->max_io)
		sum->max_io = next->max_io;
	/* the extents of several targets cannot be joined in one buffer */
	sum->ops &= next->ops & ~(1u << GANTRY_OP_EXTENTS);
	sum->flags |= next->flags;
	sum->flags &= ~GANTRY_VOLUME_LISTS; /* a list cannot be divided */
	combine_uuids(sum->uuid, next->uuid);
	sum->verifier = combine_verifiers(sum->verifier, next->verifier);
}

/*
 * Make the UUID depend on the arrangement of the targets. value: the chunk, or where the next
 * target begins.
 */
static void add_arrangement(struct gantry_volume_info *sum, enum gateway_mode mode, uint64_t value)
{
	uint8_t arrangement[GANTRY_UUID_BYTES] = {(uint8_t)mode};

	memcpy(&arrangement[8], &value, sizeof(value));
	gantry_uuid_derive(sum->uuid, arrangement);
}

/* Returns 0, or -errno with the reason in `why`. */
static int concat(const struct gateway_conf *conf, const struct gantry_volume_info *volumes,
		  uint32_t n, struct gantry_volume_info *sum, char why[LAYOUT_WHY])
{
	(void)conf;
	sum->size = 0;
	for (uint32_t i = 0; i < n; i++) {
		if (sum->block_size != 0 && sum->size % sum->block_size != 0) {
			snprintf(
				why, LAYOUT_WHY,
				"target %u begins at byte %llu, not at a multiple of the block size %u",
				i, (unsigned long long)sum->size, sum->block_size);
			return -EINVAL;
		}
		if (__builtin_add_overflow(sum->size, volumes[i].size, &sum->size)) {
			snprintf(why, LAYOUT_WHY,
				 "the targets together are larger than 2^64 bytes");
			return -ERANGE;
		}
		if (i + 1 < n) /* where the next target begins */
			add_arrangement(sum, GATEWAY_CONCAT, sum->size);
	}
	return 0;
}

static int stripe(const struct gateway_conf *conf, const struct gantry_volume_info *volumes,
		  uint32_t n, struct gantry_volume_info *sum, char why[LAYOUT_WHY])
{
	const uint64_t max_io = (MAX_CHUNKS - 1) * conf->chunk;
	uint64_t each = volumes[0].size;

	for (uint32_t i = 1; i < n; i++)
		if (volumes[i].size < each)
			each = volumes[i].size;
	if (sum->block_size != 0 && conf->chunk % sum->block_size != 0) {
		snprintf(why, LAYOUT_WHY, "chunk is not a multiple of the block size %u",
			 sum->block_size);
		return -EINVAL;
	}
	if (each < conf->chunk) {
		snprintf(why, LAYOUT_WHY, "a target is smaller than one chunk (bytes=%llu)",
			 (unsigned long long)each);
		return -EINVAL;
	}
	if (__builtin_mul_overflow(each - each % conf->chunk, (uint64_t)n, &sum->size)) {
		snprintf(why, LAYOUT_WHY, "the targets together are larger than 2^64 bytes");
		return -ERANGE;
	}
	if (sum->max_io > max_io)
		sum->max_io = (uint32_t)max_io;
	add_arrangement(sum, GATEWAY_STRIPE, conf->chunk);
	return 0;
}

int layout_compose(const struct gateway_conf *conf, const struct gantry_volume_info *volumes,
		   uint32_t n, struct gantry_volume_info *sum, char why[LAYOUT_WHY])
{
	int known = volumes[0].size != 0 && volumes[0].block_size != 0;

	*sum = volumes[0];
	for (uint32_t i = 1; i < n; i++) {
		append(sum, &volumes[i]);
		known = known && volumes[i].size != 0 && volumes[i].block_size != 0;
	}
	if (n == 1)
		return 0;
	sum->size = 0;
	if (!known) { /* before the targets are open; the UUID depends on their sizes */
		memset(sum->uuid, 0, sizeof(sum->uuid));
		return 0;
	}
	return (conf->mode == GATEWAY_STRIPE ? stripe : concat)(conf, volumes, n, sum, why);
}

int layout_check_uuid(const struct gateway_conf *conf, const struct gantry_volume_info *sum,
		      char why[LAYOUT_WHY])
{
	static const char *const causes[] = {
		[GATEWAY_CONCAT] = "connect and the sizes of the targets",
		[GATEWAY_STRIPE] = "connect and chunk",
		[GATEWAY_FAILOVER] = "connect"};
	char is[GANTRY_UUID_TEXT];

	if (conf->uuid[0] == '\0' || strcasecmp(conf->uuid, gantry_uuid_text(sum->uuid, is)) == 0)
		return 0;
	snprintf(why, LAYOUT_WHY, "the targets are another volume (uuid=%s, expected=%s): check %s",
		 gantry_uuid_is_known(sum->uuid) ? is : "unknown", conf->uuid, causes[conf->mode]);
	return -ESTALE;
}

uint32_t layout_max_pieces(const struct gateway_conf *conf, const struct gantry_volume_info *sum,
			   uint32_t n)
{
	uint32_t chunks = (uint32_t)((sum->max_io - 1) / conf->chunk) + 2;

	return conf->mode == GATEWAY_STRIPE && chunks > n ? chunks : n;
}

static NOT_INLINE uint32_t split_concat(const struct layout *layout, const struct gantry_io *io,
					struct gantry_piece *pieces)
{
	/* cannot overflow: the host has checked the range */
	uint64_t end = io->offset + io->length, base = 0;
	uint32_t n = 0;

	for (uint32_t i = 0; i < layout->n; i++) {
		uint64_t from = io->offset > base ? io->offset : base;
		uint64_t to = base + layout->volumes[i].size;

		if (to > end)
			to = end;
		if (from < to)
			pieces[n++] = (struct gantry_piece){
				.terminal = i,
				.length = (uint32_t)(to - from),
				.offset = from - base,
				.skip = from - io->offset,
			};
		base += layout->volumes[i].size;
	}
	return n;
}

/*
 * Returns value / by. A division takes longer than the rest of a route, and most chunk sizes are
 * powers of two.
 */
static inline uint64_t quotient(uint64_t value, uint64_t by)
{
	return (by & (by - 1)) == 0 ? value >> __builtin_ctzll(by) : value / by;
}

/* Set a piece to the chunk with this index, from byte `inside` on. */
static inline void set_chunk(const struct layout *layout, uint64_t index, uint64_t inside,
			     uint32_t length, struct gantry_piece *piece)
{
	const uint64_t row = quotient(index, layout->n);

	piece->terminal = (uint32_t)(index - row * layout->n);
	piece->length = length;
	piece->offset = row * layout->conf->chunk + inside;
}

static NOT_INLINE uint32_t split_many_chunks(const struct layout *layout,
					     const struct gantry_io *io,
					     struct gantry_piece *pieces)
{
	const uint64_t chunk = layout->conf->chunk;
	uint64_t index = io->offset / chunk, inside = io->offset % chunk;
	uint32_t n = 0;

	for (uint64_t done = 0; done < io->length; index++, inside = 0) {
		uint64_t left = io->length - done;
		uint64_t length = chunk - inside < left ? chunk - inside : left;

		set_chunk(layout, index, inside, (uint32_t)length, &pieces[n]);
		pieces[n++].skip = done;
		done += length;
	}
	return n;
}

/* Divide a transfer: the chunks of one target do not follow each other in the memory. */
static inline uint32_t split_chunks(const struct layout *layout, const struct gantry_io *io,
				    struct gantry_piece *pieces)
{
	const uint64_t chunk = layout->conf->chunk;
	const uint64_t index = quotient(io->offset, chunk), inside = io->offset - index * chunk;

	if (io->length > chunk - inside)
		return split_many_chunks(layout, io, pieces);
	set_chunk(layout, index, inside, io->length, pieces);
	pieces->skip = 0;
	return 1;
}

/* Returns how many of the first `bytes` bytes of the volume target i has. */
static uint64_t part_of_target(const struct layout *layout, uint32_t i, uint64_t bytes)
{
	const uint64_t chunk = layout->conf->chunk, row = layout->n * chunk;
	uint64_t before = i * chunk, last = bytes % row;
	uint64_t part = last > before ? last - before : 0;

	return bytes / row * chunk + (part < chunk ? part : chunk);
}

/* Divide an IO without data: its range on a target has no gaps, and any length. */
static NOT_INLINE uint32_t split_ranges(const struct layout *layout, const struct gantry_io *io,
					struct gantry_piece *pieces)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < layout->n; i++) {
		uint64_t from = part_of_target(layout, i, io->offset);
		uint64_t to = part_of_target(layout, i, io->offset + io->length);

		if (from < to)
			pieces[n++] = (struct gantry_piece){
				.terminal = i, .length = (uint32_t)(to - from), .offset = from};
	}
	return n;
}

uint32_t layout_split(const struct layout *layout, const struct gantry_io *io,
		      struct gantry_piece *pieces)
{
	if (!gantry_op_has_range(io->opcode)) {
		for (uint32_t i = 0; i < layout->n; i++)
			pieces[i] = (struct gantry_piece){.terminal = i};
		return layout->n;
	}
	if (layout->conf->mode == GATEWAY_CONCAT)
		return split_concat(layout, io, pieces);
	return gantry_op_has_data(io->opcode) ? split_chunks(layout, io, pieces)
					      : split_ranges(layout, io, pieces);
}
