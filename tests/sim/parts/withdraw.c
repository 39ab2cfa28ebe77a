/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * parts/withdraw.c - core/memory/region.c: the owner withdraws a region from a peer that does not
 * release it
 *
 * The peer has a mapping of its own and continues to write. After gn_region_withdraw() has
 * returned, writes of the peer do not change the owner's memory, which keeps what the peer had
 * written before. Another thread of the owner writes to the region during the withdrawal, and none
 * of its writes is lost.
 */
#include <string.h>
#include <sys/mman.h>

#include "memory/region.h"
#include "part.h"

#define BYTES 4096u
#define WORDS 4u /* the peer writes these words, at both ends of the page */

static struct gantry_region *region;
static uint64_t *peer, before[WORDS];
static uint32_t n_writes, n_own_writes;
static bool withdrawn, peer_ended, writer_ended;

static void begin(void)
{
	n_writes = 1 + sim_draw(40);
	n_own_writes = 1 + sim_draw(40);
	withdrawn = peer_ended = writer_ended = false;
	region = NULL;
}

static uint64_t *word(uint64_t *memory, uint32_t i)
{
	return &memory[i % WORDS < WORDS / 2 ? i % WORDS : BYTES / 8 - 1 - i % WORDS];
}

static void open_region(void)
{
	PART_CHECK(gn_region_create(BYTES, 0, &region) == 0, "a region cannot be created");
	peer = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, region->fd, 0);
	PART_CHECK(peer != MAP_FAILED, "a region cannot be mapped");
	for (uint32_t i = 0; i < WORDS; i++)
		*word(peer, i) = 1;
}

static void *own(void *arg)
{
	uint64_t *memory = region->addr;

	for (uint32_t n = sim_draw(8); n > 0; n--)
		part_spin();
	PART_CHECK(gn_region_withdraw(region) == 0, "a region cannot be withdrawn");
	PART_CHECK(region->addr == memory && region->fd == -1, "a region has moved");
	for (uint32_t i = 0; i < WORDS; i++) {
		before[i] = *word(memory, i);
		PART_CHECK(before[i] != 0, "the content is lost");
	}
	part_wait(&peer_ended);
	part_wait(&writer_ended);
	for (uint32_t i = 0; i < WORDS; i++)
		PART_CHECK(*word(memory, i) == before[i],
			   "the peer wrote to a region that had been withdrawn");
	munmap(peer, BYTES);
	gn_region_destroy(&region, 1);
	withdrawn = true;
	return arg;
}

static void *write_on(void *arg)
{
	for (uint32_t i = 0; i < n_writes; i++) {
		*word(peer, i) = 2 + i;
		part_spin();
	}
	part_set(&peer_ended);
	return arg;
}

/* The other thread of the owner: write a word that the peer does not write, and read it again. */
static void *use(void *arg)
{
	uint64_t *memory = (uint64_t *)region->addr + BYTES / 16;

	for (uint64_t i = 1; i <= n_own_writes; i++) {
		*memory = i;
		part_spin();
		PART_CHECK(*memory == i, "a write of the owner is lost");
	}
	part_set(&writer_ended);
	return arg;
}

static const char *check(void)
{
	return withdrawn ? NULL : "the owner has not ended";
}

const struct part part_withdraw = {.name = "withdraw",
				   .steps = 20000,
				   .begin = begin,
				   .open = open_region,
				   .threads = {own, write_on, use},
				   .check = check};
