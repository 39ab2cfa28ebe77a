/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * initiator_stamp.c - the content of a verified block. Each unit records its offset, generation and
 * session in a header. The remaining content is derived from the header, so that any other content
 * is detected.
 */
#include <string.h>

#include "initiator.h"

#define STAMP_MAGIC 0x504d5453u /* "STMP" */
#define SECTOR 512u             /* smallest atomic write of a store */
#define CANDIDATES 16u          /* number of generations that a broken unit is compared with */

static uint32_t unit_crc(const struct gantry_host *host, const void *unit, uint32_t bytes)
{
	struct stamp head;
	uint32_t crc;

	memcpy(&head, unit, sizeof(head));
	head.crc32c = 0;
	crc = host->crc32c(0, &head, sizeof(head));
	return host->crc32c(crc, (const uint8_t *)unit + sizeof(head), bytes - sizeof(head));
}

void stamp_write(const struct gantry_host *host, void *unit, uint32_t bytes, uint64_t offset,
		 uint64_t generation, uint64_t session)
{
	struct stamp head = {.magic = STAMP_MAGIC,
			     .offset = offset,
			     .generation = generation,
			     .session = session};
	uint64_t seed = offset ^ (generation << 40) ^ session, state, word;
	uint8_t *at = unit;

	state = gantry_random_split(&seed);
	memcpy(at, &head, sizeof(head));
	for (uint32_t i = sizeof(head); i < bytes; i += 8) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		word = state ^ (state >> 29);
		memcpy(at + i, &word, 8);
	}
	head.crc32c = unit_crc(host, unit, bytes);
	memcpy(at, &head, sizeof(head));
}

static uint32_t equal_bytes(const uint8_t *a, const uint8_t *b, uint32_t n)
{
	uint32_t equal = 0;

	for (uint32_t i = 0; i < n; i++)
		equal += a[i] == b[i];
	return equal;
}

struct sectors {
	uint8_t known[STAMP_UNIT / SECTOR]; /* the sector equals that of a candidate */
	uint32_t n_known;
	/*
	 * number of sectors that differ from the sector of a candidate in less than half of their
	 * bytes
	 */
	uint32_t n_near;
	uint64_t oldest; /* oldest candidate that has a matching sector */
};

static void compare(const struct gantry_host *host, struct sectors *s, const uint8_t *unit,
		    uint32_t bytes, const struct stamp_want *want, uint64_t generation)
{
	uint8_t image[STAMP_UNIT];

	stamp_write(host, image, bytes, want->offset, generation, want->session);
	for (uint32_t i = 0; i < bytes / SECTOR; i++) {
		uint32_t equal;

		if (s->known[i])
			continue;
		equal = equal_bytes(unit + i * SECTOR, image + i * SECTOR, SECTOR);
		if (equal == SECTOR) {
			s->known[i] = 1;
			s->n_known++;
			s->oldest = generation;
		} else if (equal > SECTOR / 2) {
			s->n_near++;
		}
	}
}

/*
 * The checksum is wrong, or there is no header: compare the sectors with those of the last
 * generations that were issued.
 */
static enum stamp_state dissect(const struct gantry_host *host, const uint8_t *unit, uint32_t bytes,
				const struct stamp_want *want, int has_magic)
{
	struct sectors s = {.oldest = UINT64_MAX};
	uint64_t generation = want->issued;

	for (unsigned int i = 0; i < CANDIDATES && generation > 0; i++, generation--)
		compare(host, &s, unit, bytes, want, generation);
	if (s.n_near)
		return STAMP_CORRUPT;
	if (s.n_known == bytes / SECTOR)
		return s.oldest >= want->acked ? STAMP_GOOD : STAMP_TORN;
	if (s.n_known)
		return STAMP_TORN;
	return has_magic ? STAMP_CORRUPT : STAMP_NONE;
}

enum stamp_state stamp_read(const struct gantry_host *host, const void *unit, uint32_t bytes,
			    const struct stamp_want *want, struct stamp *found)
{
	memcpy(found, unit, sizeof(*found));
	if (found->magic != STAMP_MAGIC || found->crc32c != unit_crc(host, unit, bytes))
		return dissect(host, unit, bytes, want, found->magic == STAMP_MAGIC);
	if (found->session != want->session)
		return STAMP_FOREIGN;
	if (found->offset != want->offset)
		return STAMP_WRONG;
	if (found->generation < want->acked)
		return STAMP_OLD;
	return found->generation <= want->issued ? STAMP_GOOD : STAMP_CORRUPT;
}
