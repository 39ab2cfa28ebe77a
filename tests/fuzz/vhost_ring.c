/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vhost_ring.c - the walker of a virtqueue, with a guest that changes its memory between any two
 * loads
 *
 * The input determines the value of each load through gantry/shm.h: mostly one near that of a
 * correct guest. Each piece of an accepted request must be inside the memory of the guest. Each IO
 * must be one that the volume accepts. With event index the device must ask for kicks at its next
 * entry, and call exactly when it has returned the entry that the guest asked for.
 *
 * Of a packed ring several requests are in flight. Each must have a buffer id of its own, and all
 * together at most as many descriptors as the ring. Sometimes the device starts again, with
 * inflight memory that the front end has changed.
 */
#define GANTRY_SHM_TEST
#include <stdint.h>

uint64_t gantry_shm_test_load(const volatile void *p, unsigned int width);

#include "../../plugins/role/vhost-user-blk/vhost_memory.c"
#include "../../plugins/role/vhost-user-blk/vhost_packed.c"
#include "../../plugins/role/vhost-user-blk/vhost_request.c"
#include "../../plugins/role/vhost-user-blk/vhost_ring.c"
#include "../../plugins/role/vhost-user-blk/vhost_split.c"
#include "fuzz/require.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define GPA 0x10000u
#define BYTES 0x4000u /* of a region */
#define NUM 8u
#define BLOCK 1024u /* of the volume */
#define BLOCKS 64u
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
static struct vhost_ring ring;
static uint16_t loads[4]; /* of 16 bits, of a packed ring, since n_words was 0 */
static unsigned n_words;
static uint16_t n_in_flight, in_flight[NUM]; /* ids, of a packed ring */

/* what the device reads from a request */
static struct {
	struct virtio_blk_outhdr header;
	struct virtio_blk_discard_write_zeroes segment;
} content;
static unsigned content_at;
static int reads_content;

static uint8_t buffer[VHOST_SLOT_BYTES] __attribute__((aligned(4096)));
static struct gantry_io slot;
static struct vhost_conf conf;
static struct vhost_role role;
static struct vhost_queue queue;

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

static uint64_t length(void)
{
	const uint64_t kind = bytes(1);
	const uint64_t value = kind % 16 == 13 ? 1 /* a status */
			       : kind & 1      ? bytes(2)
					       : (kind >> 3) * 16;

	return kind % 16 == 15 ? bytes(4) : value;
}

/* Returns the second word of a descriptor: length, flags and successor. */
static uint64_t details(void)
{
	uint64_t value = length();

	value |= (bytes(1) % 8) << 32;
	return value | bytes(1) % (NUM + 1) << 48;
}

static int ring_is_packed(void)
{
	return ring.ops == &vhost_packed_ops;
}

/* Returns the flags of a descriptor of a packed ring: mostly one that is available. */
static uint64_t packed_flags(const uint8_t *at)
{
	const struct vhost_packed *p = &ring.packed;
	const size_t index = (size_t)(at - (const uint8_t *)p->desc) / sizeof(p->desc[0]);
	const int wrap = (index >= p->avail.index) == p->avail.wrap;
	const uint64_t kind = bytes(1);

	return kind % 8 | (wrap == (kind >= 0xf0) ? F_USED : F_AVAIL);
}

static int is_packed_desc(const uint8_t *at)
{
	const uint8_t *first = (const uint8_t *)ring.packed.desc;

	return ring_is_packed() && first && at >= first &&
	       at < first + NUM * sizeof(struct vring_desc);
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
static void use_events(bool on)
{
	const bool wants = vhost_ring_wants_call(&ring);
	bool expected = !has_call;

	for (; called != ring.split.next_used; called++)
		expected |= called == last_load;
	has_call = 1;
	require(wants == expected);
	vhost_ring_notify(&ring, on);
	require(word(ring.split.used, 4 + 8 * NUM) == (uint16_t)(ring.split.next_avail - !on));
	require(word(ring.split.used, 0) == 0);
}

/* -- requests -- */

/* Returns a sector or a number of sectors: mostly of the volume, or near its end. */
static uint64_t number(void)
{
	return bytes(1) % 8 == 7 ? bytes(8) : bytes(1) % (BLOCKS + 2) * (BLOCK / SECTOR);
}

static void make_content(void)
{
	static const uint32_t types[] = {VIRTIO_BLK_T_IN,      VIRTIO_BLK_T_OUT,
					 VIRTIO_BLK_T_FLUSH,   VIRTIO_BLK_T_GET_ID,
					 VIRTIO_BLK_T_DISCARD, VIRTIO_BLK_T_WRITE_ZEROES,
					 VIRTIO_BLK_T_DISCARD, VIRTIO_BLK_T_WRITE_ZEROES};
	const uint64_t kind = bytes(1);

	content.header.type = kind == 255 ? (uint32_t)bytes(4) : types[kind % 8];
	content.header.sector = number();
	content.segment.sector = number();
	content.segment.num_sectors = (uint32_t)number();
	content.segment.flags = bytes(1) % 4 == 3 ? (uint32_t)bytes(4) : (uint32_t)bytes(1) % 2;
	content_at = 0;
}

/* A request is read from its first byte on: the header, and then the segment. */
static uint64_t next_content(unsigned n)
{
	uint64_t value = 0;

	require(content_at + n <= sizeof(content));
	memcpy(&value, (const uint8_t *)&content + content_at, n);
	content_at += n;
	return value;
}

static void check_list(const struct gantry_io *io)
{
	const struct gantry_pieces *list = io->data;
	uint64_t sum = 0;

	require(list->count != 0 && list->count <= GANTRY_LIST_MAX);
	for (uint32_t i = 0; i < list->count; i++) {
		require(list->piece[i].iov_len != 0);
		require(is_guest(list->piece[i].iov_base, list->piece[i].iov_len));
		sum += list->piece[i].iov_len;
	}
	require(sum == io->length);
}

static void check_io(const struct gantry_io *io)
{
	const struct gantry_volume_info *volume = &role.volume;

	if (!gantry_op_has_range(io->opcode))
		return;
	require(io->length != 0 && io->length <= volume->max_io);
	require(((io->offset | io->length) & (volume->block_size - 1)) == 0);
	require(gantry_range_ok(io->offset, io->length, volume->size));
	require(!gantry_op_writes(io->opcode) || !conf.read_only);
	if (!gantry_op_has_data(io->opcode)) {
		const int is_discard = content.header.type == VIRTIO_BLK_T_DISCARD;

		require(io->opcode == (is_discard ? GANTRY_OP_DISCARD : GANTRY_OP_WRITE_ZEROES));
		require((volume->ops & 1u << io->opcode) != 0);
		require(content.segment.sector <= volume->size / SECTOR);
		require(io->offset == content.segment.sector * SECTOR);
		require(io->length == (uint64_t)content.segment.num_sectors * SECTOR);
		require(content.segment.flags <= (is_discard ? 0u : 1u));
	} else if (io->flags & GANTRY_IO_LIST) {
		check_list(io);
	} else if (io->region == GANTRY_ENGINE_HANDLE) {
		require(io->data == buffer && io->length <= VHOST_SLOT_BYTES);
	} else {
		require(is_guest(io->data, io->length));
	}
}

static int submit(struct gantry_engine_queue *engine_queue, struct gantry_io *one)
{
	check_io(one);
	one->status = GANTRY_S_OK;
	vhost_request_io_done(&queue, one);
	gantry_engine_put(engine_queue, one);
	return 0;
}

static const struct gantry_engine_ops engine_ops = {.submit_kept = submit};
static uint16_t free_slots[1];
static struct gantry_engine_queue engine = {.ops = &engine_ops,
					    .up = GANTRY_ENGINE_UP_KEPT,
					    .ios = &slot,
					    .free = free_slots,
					    .n_free = 1,
					    .memory = buffer};

static void make_queue(void)
{
	static struct gantry_pieces pieces[1];
	static struct vhost_io ios[1];
	static uint64_t counted;

	conf = (struct vhost_conf){.serial = "serial"};
	role = (struct vhost_role){.conf = &conf,
				   .volume = {.size = BLOCKS * BLOCK, .block_size = BLOCK}};
	conf.read_only = bytes(1) % 4 == 3;
	role.volume.ops = ~(uint32_t)bytes(1) | GANTRY_OPS_DATA;
	role.volume.flags = bytes(1) % 2 ? GANTRY_VOLUME_LISTS : 0;
	role.volume.max_io = BLOCK * (1 + (uint32_t)bytes(1) % 8);
	queue.role = &role;
	queue.engine = &engine;
	queue.ios = ios;
	queue.pieces = pieces;
	queue.fua = bytes(1) % 2;
	queue.counters = (struct vhost_counters){&counted, &counted, &counted, &counted,
						 &counted, &counted, &counted, &counted};
}

/* Turn the chain of the queue into a request, and do it. */
static void do_request(void)
{
	static struct vhost_request request;
	int rc;

	memset(&request, 0, offsetof(struct vhost_request, piece));
	make_content();
	reads_content = 1;
	rc = vhost_request_init(&queue, &request);
	reads_content = 0;
	check(&queue.chain);
	if (rc < 0)
		return;
	require(is_guest(request.status_addr, 1));
	if (rc == 0)
		require(vhost_request_submit(&queue, &request));
	require(request.is_submitted && request.n_ios == 0 && engine.n_free == 1);
}

uint64_t gantry_shm_test_load(const volatile void *p, unsigned int width)
{
	const uint8_t *at = (const uint8_t *)(uintptr_t)p;

	require(width == 8 || width == 16 || width == 64);
	require(is_guest(at, width / 8) && (uintptr_t)p % (width / 8) == 0);
	require(++n_loads < LOADS_MAX);
	if (reads_content)
		return next_content(width / 8);
	if (width == 64 && (uintptr_t)p % 16 == 0)
		return address();
	if (width == 64 && is_packed_desc(at)) {
		const uint64_t flags = packed_flags(at), id = bytes(1) % (NUM + 1);

		return length() | id << 32 | flags << 48;
	}
	if (width == 64)
		return details();
	if (is_packed_desc(at))
		return packed_flags(at);
	last_load = (uint16_t)(bytes(1) % 4 == 0 ? bytes(2) : bytes(1) % (NUM + 1));
	if (ring_is_packed() && bytes(1) % 2)
		last_load |= WRAP_BIT;
	loads[n_words++ % 4] = last_load;
	return last_load;
}

/* Take a request and do it. Returns 1 if there was one. */
static int take(uint16_t *id_p)
{
	int rc;

	n_loads = 0;
	rc = vhost_ring_take(&ring, &memory, &queue.chain, id_p);
	require(rc >= 0 || ring.fault[0] != '\0');
	require(rc == 1 ? *id_p < NUM : *id_p <= NUM); /* NUM: it is not set */
	if (rc != 1)
		return 0;
	check(&queue.chain);
	do_request();
	return 1;
}

static void use(void)
{
	uint16_t head = NUM;

	if (!take(&head))
		return;
	/* the request may have been one that writes to the ring */
	memset(ring.split.used, 0, sizeof(uint16_t));
	vhost_ring_put(&ring, head, 1);
	if (ring.has_event_idx) {
		use_events(bytes(1) % 2);
		return;
	}
	vhost_ring_wants_call(&ring);
	vhost_ring_notify(&ring, bytes(1) % 2);
}

/* -- packed rings -- */

/* Returns 1 if the device may call: it has returned n descriptors since the last decision. */
static int expects_call(uint16_t n)
{
	const struct vhost_packed_at event = decode_at(loads[1]);
	const unsigned flags = loads[0] % 4;
	struct vhost_packed_at at = ring.packed.used;
	int expected = !has_call;

	if (!ring.has_event_idx || flags == VRING_PACKED_EVENT_FLAG_DISABLE)
		return flags != VRING_PACKED_EVENT_FLAG_DISABLE;
	if (flags != VRING_PACKED_EVENT_FLAG_DESC)
		return expected || n != 0;
	for (uint16_t i = 0; i < n; i++) { /* back to the first of them */
		at.wrap ^= at.index == 0;
		at.index = (uint16_t)((at.index + NUM - 1) % NUM);
		expected |= at.index == event.index && at.wrap == event.wrap;
	}
	return expected;
}

static void use_packed_events(uint16_t n, bool on)
{
	const struct vhost_packed *p = &ring.packed;
	const uint16_t flags = !on                  ? VRING_PACKED_EVENT_FLAG_DISABLE
			       : ring.has_event_idx ? VRING_PACKED_EVENT_FLAG_DESC
						    : VRING_PACKED_EVENT_FLAG_ENABLE;
	bool wants;

	n_words = 0;
	wants = vhost_ring_wants_call(&ring);
	require(wants == expects_call(n));
	has_call |= ring.has_event_idx && loads[0] % 4 != VRING_PACKED_EVENT_FLAG_DISABLE;
	vhost_ring_notify(&ring, on);
	require(word(p->device, 2) == flags);
	if (flags == VRING_PACKED_EVENT_FLAG_DESC)
		require(word(p->device, 0) == (p->avail.index | (p->avail.wrap ? WRAP_BIT : 0)));
}

/* Return one of the requests in flight, in any order. Returns its number of descriptors. */
static uint16_t put_packed(void)
{
	const unsigned i = (unsigned)bytes(1) % n_in_flight;
	const uint16_t id = in_flight[i], n = ring.packed.buffer[id].n;
	const struct vhost_packed_at at = ring.packed.used;
	struct vring_packed_desc used;

	in_flight[i] = in_flight[--n_in_flight];
	vhost_ring_put(&ring, id, 77);
	memcpy(&used, &ring.packed.desc[at.index], sizeof(used));
	require(used.id == id && used.len == 77);
	require(used.flags == (VRING_DESC_F_WRITE | (at.wrap ? F_AVAIL | F_USED : 0)));
	require((ring.packed.used.wrap != at.wrap) == (at.index + n >= NUM));
	require((at.index + n) % NUM == ring.packed.used.index);
	return n;
}

static void use_packed(uint16_t *n_p)
{
	uint16_t id = NUM, sum = 0;

	if (bytes(1) % 4 && take(&id)) {
		for (unsigned i = 0; i < n_in_flight; i++)
			require(in_flight[i] != id);
		require(n_in_flight < NUM);
		in_flight[n_in_flight++] = id;
	}
	for (unsigned i = 0; i < n_in_flight; i++)
		sum = (uint16_t)(sum + ring.packed.buffer[in_flight[i]].n);
	for (uint32_t i = ring.resubmit_at; i < ring.n_resubmit; i++)
		sum = (uint16_t)(sum + ring.packed.n_left[ring.resubmit[i]]);
	require(sum <= ring.packed.n_taken && ring.packed.n_taken <= NUM);
	if (n_in_flight && bytes(1) % 2)
		*n_p = (uint16_t)(*n_p + put_packed());
	if (*n_p > NUM)
		*n_p = NUM;
	if (bytes(1) % 2) {
		use_packed_events(*n_p, bytes(1) % 2);
		if (ring.has_event_idx && loads[0] % 4 != VRING_PACKED_EVENT_FLAG_DISABLE)
			*n_p = 0;
	}
}

static void run_packed(struct vhost_vring *vring, uint8_t *kept, size_t n_kept, uint64_t features)
{
	uint16_t n = 0;

	for (int i = 0; i < 100 && left && ring.fault[0] == '\0'; i++) {
		use_packed(&n);
		if (!kept || bytes(1) % 16 != 15)
			continue;
		for (unsigned k = (unsigned)bytes(1) % 4; k > 0; k--) {
			const size_t at = bytes(2) % n_kept;

			kept[at] = (uint8_t)bytes(1);
		}
		n_loads = 0;
		if (vhost_ring_init(&ring, vring, &memory, kept, features) != 0) {
			require(ring.fault[0] != '\0');
			return;
		}
		n_in_flight = n = 0;
		has_call = 0;
	}
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
	struct vhost_vring vring = {.num = NUM,
				    .base = 3,
				    .desc = 0x70000000u,
				    .avail = 0x70000400u,
				    .used = 0x70000800u};
	/* of a split ring, or of a packed one */
	static uint64_t kept[(sizeof(struct vhost_inflight) + NUM * 16) / 8];
	static uint64_t packed_kept[(sizeof(struct vhost_inflight_packed) + NUM * 32) / 8];
	uint64_t mode, features;

	if (!guest[0])
		make_memory();
	input = data;
	left = size;
	n_loads = 0;
	make_queue();
	for (unsigned i = 0; i < sizeof(kept) / 8; i++)
		kept[i] = bytes(1) % 4 == 0 ? bytes(8) : bytes(1) % 2;
	mode = bytes(1);
	features = (mode & 2) != 0 ? 1ull << VIRTIO_RING_F_EVENT_IDX : 0;
	has_call = 0;
	if (mode >= 0xc0) {
		memset(packed_kept, 0, sizeof(packed_kept));
		n_in_flight = 0;
		vring.base = 0x80058005u;
		features |= 1ull << VIRTIO_F_RING_PACKED;
		require(vhost_ring_init(&ring, &vring, &memory, mode % 2 ? packed_kept : NULL,
					features) == 0);
		run_packed(&vring, mode % 2 ? (uint8_t *)packed_kept : NULL, sizeof(packed_kept),
			   features);
		return 0;
	}
	require(vhost_ring_init(&ring, &vring, &memory, mode % 2 ? kept : NULL, features) == 0);
	called = ring.split.next_used;
	require(ring.n_resubmit <= NUM);
	for (int i = 0; i < 100 && left; i++) {
		ring.fault = "";
		use();
	}
	return 0;
}
