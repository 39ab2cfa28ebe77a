/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vhost_ring.c - the walker of a virtqueue, with a guest that changes its memory between any two
 * loads
 *
 * The input determines the value of each load through gantry/shm.h: mostly one near that of a
 * correct guest. Each piece of an accepted request must be inside the memory of the guest. With
 * event index the device must ask for kicks at its next entry, and call exactly when it has
 * returned the entry that the guest asked for.
 */
#define GANTRY_SHM_TEST
#include <stdint.h>

uint64_t gantry_shm_test_load(const volatile void *p, unsigned int width);

#include "../../plugins/role/vhost-user-blk/vhost_memory.c"
#include "../../plugins/role/vhost-user-blk/vhost_ring.c"
#include "fuzz/require.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define GPA 0x10000u
#define BYTES 0x4000u /* of a region */
#define NUM 8u
#define HOLE 0x1000u     /* between the second and the third region, for the guest */
#define LOADS_MAX 10000u /* of one call: more would be a loop */

static const uint8_t *input;
static size_t left;
static uint8_t *guest[3];
static struct vhost_memory memory;
static unsigned n_loads;
static uint16_t last_load; /* of 16 bits */
static int has_call;       /* the ring has decided about an interrupt since its start */
static uint16_t called;    /* index of the used ring at that time */

static uint64_t bytes(unsigned n)
{
	uint64_t v = 0;

	for (; n && left; n--, left--)
		v = v << 8 | *input++;
	return v;
}

static int is_guest(const uint8_t *p, uint64_t n)
{
	for (uint32_t i = 0; i < memory.n; i++) {
		const struct vhost_region *region = &memory.region[i];

		if (p >= region->addr && p + n <= region->addr + region->bytes)
			return 1;
	}
	return 0;
}

/* Returns an address in the memory of the guest, or near its ends. */
static uint64_t address(void)
{
	const uint64_t at = bytes(2);

	switch (at % 8) {
	case 0:
		return bytes(8);
	case 1:
		return GPA + 2 * BYTES - 64 + at / 8 % 128;
	case 2:
		return GPA - 8 + at / 8 % 16;
	default:
		return GPA + at % (3 * BYTES + HOLE) / 8 * 8;
	}
}

/* Returns the second word of a descriptor: length, flags and successor. */
static uint64_t details(void)
{
	const uint64_t kind = bytes(1), length = kind & 1 ? bytes(2) : (kind >> 3) * 16;

	return (kind % 16 == 15 ? bytes(4) : length) | (bytes(1) % 8) << 32 |
	       bytes(1) % (NUM + 1) << 48;
}

uint64_t gantry_shm_test_load(const volatile void *p, unsigned int width)
{
	const uint8_t *at = (const uint8_t *)(uintptr_t)p;

	require(width == 8 || width == 16 || width == 64);
	require(is_guest(at, width / 8) && (uintptr_t)p % (width / 8) == 0);
	require(++n_loads < LOADS_MAX);
	if (width == 8) /* of a header */
		return bytes(1);
	if (width == 64)
		return (uintptr_t)p % 16 == 0 ? address() : details();
	last_load = (uint16_t)(bytes(1) % 4 == 0 ? bytes(2) : bytes(1) % (NUM + 1));
	return last_load;
}

static void check(const struct vhost_chain *chain)
{
	uint64_t out = 0, in = 0;

	require(chain->n_out + chain->n_in <= VHOST_PIECES_MAX);
	for (uint32_t i = 0; i < chain->n_out + chain->n_in; i++) {
		const struct vhost_piece *piece = &chain->piece[i];
		const struct vhost_region *region = &memory.region[piece->handle - 2];

		require(piece->bytes != 0 && piece->handle - 2 < memory.n);
		require(piece->addr == region->addr + piece->offset);
		require(is_guest(piece->addr, piece->bytes));
		*(i < chain->n_out ? &out : &in) += piece->bytes;
	}
	require(out == chain->out_bytes && in == chain->in_bytes);
	require(out <= UINT32_MAX && in <= UINT32_MAX);
}

static uint16_t word(const void *p, uint32_t offset)
{
	uint16_t v;

	memcpy(&v, (const uint8_t *)p + offset, sizeof(v));
	return v;
}

/* The walker's decisions about kicks and interrupts, compared with what the event index means. */
static void use_events(struct vhost_ring *ring, bool on)
{
	const bool wants = vhost_ring_wants_call(ring);
	bool expected = !has_call;

	for (; called != ring->next_used; called++)
		expected |= called == last_load;
	has_call = 1;
	require(wants == expected);
	vhost_ring_notify(ring, on);
	require(word(ring->used, 4 + 8 * NUM) == (uint16_t)(ring->next_avail - !on));
	require(word(ring->used, 0) == 0);
}

static void use(struct vhost_ring *ring)
{
	static struct vhost_chain chain;
	uint8_t header[16], *status;
	uint16_t head = NUM;

	n_loads = 0;
	if (vhost_ring_take(ring, &head) != 1)
		return;
	require(head < NUM);
	if (vhost_ring_chain(ring, &memory, head, &chain) != 0) {
		require(ring->fault[0] != '\0');
		return;
	}
	check(&chain);
	if (vhost_chain_read(&chain, header, sizeof(header)) == 0)
		check(&chain);
	status = vhost_chain_status(&chain);
	require(!status || is_guest(status, 1));
	check(&chain);
	vhost_ring_put(ring, head, 1);
	if (ring->has_event_idx) {
		use_events(ring, bytes(1) % 2);
		return;
	}
	vhost_ring_wants_call(ring);
	vhost_ring_notify(ring, bytes(1) % 2);
}

static void make_memory(void)
{
	memory.n = 3;
	for (uint32_t i = 0; i < 3; i++) {
		guest[i] = aligned_alloc(4096, BYTES);
		require(guest[i] != NULL);
		memset(guest[i], 0, BYTES);
		memory.region[i] = (struct vhost_region){.gpa = GPA + i * BYTES + (i / 2) * HOLE,
							 .bytes = BYTES,
							 .uva = 0x70000000u + i * BYTES,
							 .addr = guest[i],
							 .handle = 2 + i};
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct vhost_vring vring = {.num = NUM,
					  .base = 3,
					  .desc = 0x70000000u,
					  .avail = 0x70000400u,
					  .used = 0x70000800u};
	static uint64_t kept[(sizeof(struct vhost_inflight) + NUM * 16) / 8];
	struct vhost_inflight *inflight = (struct vhost_inflight *)(void *)kept;
	static struct vhost_ring ring;
	uint64_t mode;

	if (!guest[0])
		make_memory();
	input = data;
	left = size;
	n_loads = 0;
	for (unsigned i = 0; i < sizeof(kept) / 8; i++)
		kept[i] = bytes(1) % 4 == 0 ? bytes(8) : bytes(1) % 2;
	mode = bytes(1);
	require(vhost_ring_init(&ring, &vring, &memory, mode % 2 ? inflight : NULL,
				(mode & 2) != 0) == 0);
	has_call = 0;
	called = ring.next_used;
	require(ring.n_resubmit <= NUM);
	for (int i = 0; i < 100 && left; i++) {
		ring.fault = "";
		use(&ring);
	}
	return 0;
}
