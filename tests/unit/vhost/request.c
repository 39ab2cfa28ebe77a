/* SPDX-License-Identifier: BSD-3-Clause */
/* Discards and writes of zeroes: the checks of a request, and the IO that it becomes. */
#include <stdio.h>

#include "../../../plugins/role/vhost-user-blk/vhost_memory.c"
#include "../../../plugins/role/vhost-user-blk/vhost_packed.c"
#include "../../../plugins/role/vhost-user-blk/vhost_request.c"
#include "../../../plugins/role/vhost-user-blk/vhost_ring.c"
#include "../../../plugins/role/vhost-user-blk/vhost_split.c"
#include "unity.h"

#define BLOCK 4096u
#define BLOCKS 1000u
#define MAX_IO (64u << 10)
#define UNIT (BLOCK / SECTOR)
#define ALL (GANTRY_OPS_WRITE | 1u << GANTRY_OP_READ | 1u << GANTRY_OP_FLUSH)
#define OUT 0
#define IN VRING_DESC_F_WRITE

static uint8_t guest[4096] __attribute__((aligned(4096)));
static const struct vhost_memory memory = {
	1, {{.gpa = 0x1000, .bytes = sizeof(guest), .uva = 0x9000, .addr = guest, .handle = 2}}};
static struct gantry_io io, submitted;
static unsigned n_submitted;
static uint16_t free_slots[1];
static struct vhost_io ios[1];
static uint64_t counted[2];
static const struct vhost_conf writable = {.serial = ""},
			       read_only = {.serial = "", .read_only = 1};
static struct vhost_role role;
static struct vhost_queue queue;
static struct vhost_request request;

static int submit(struct gantry_engine_queue *engine, struct gantry_io *one)
{
	(void)engine;
	submitted = *one;
	n_submitted++;
	return 0;
}

static const struct gantry_engine_ops engine_ops = {.submit_kept = submit};
static struct gantry_engine_queue engine = {
	.ops = &engine_ops, .up = GANTRY_ENGINE_UP_KEPT, .ios = &io, .free = free_slots};

static void set_up(void)
{
	role = (struct vhost_role){.conf = &writable,
				   .volume = {.size = (uint64_t)BLOCKS * BLOCK,
					      .block_size = BLOCK,
					      .ops = ALL,
					      .max_io = MAX_IO}};
	queue = (struct vhost_queue){.role = &role, .engine = &engine, .ios = ios};
	queue.counters.discards = &counted[0];
	queue.counters.zeroes = &counted[1];
	counted[0] = counted[1] = 0;
	engine.n_free = 1;
	n_submitted = 0;
	request = (struct vhost_request){.status = GANTRY_S_OK};
}

/* Write the chain of a request: header, `bytes` bytes of segments, and the status. */
static int parse(uint32_t type, uint64_t sector, uint32_t sectors, uint32_t flags, uint32_t bytes,
		 uint16_t in)
{
	const struct virtio_blk_outhdr header = {.type = htole32(type)};
	const struct virtio_blk_discard_write_zeroes segment = {htole64(sector), htole32(sectors),
								htole32(flags)};
	struct vring_desc *d = (struct vring_desc *)(void *)guest;
	struct vhost_ring ring = {.num = 8, .split = {.desc = d}, .fault = ""};

	memcpy(guest + 0x200, &header, sizeof(header));
	memcpy(guest + 0x301, &segment, sizeof(segment)); /* not aligned */
	d[0] = (struct vring_desc){0x1200, sizeof(header), VRING_DESC_F_NEXT, 1};
	d[1] = (struct vring_desc){0x1301, bytes, (uint16_t)(in | VRING_DESC_F_NEXT), 2};
	d[2] = (struct vring_desc){0x1400, 1, VRING_DESC_F_WRITE, 0};
	TEST_ASSERT_EQUAL_INT(0, read_chain(&ring, &memory, 0, &queue.chain));
	return vhost_request_init(&queue, &request);
}

static void expect_io(uint32_t type, unsigned opcode, unsigned flags)
{
	set_up();
	queue.fua = flags != 0;
	TEST_ASSERT_EQUAL_INT(0, parse(type, 3 * UNIT, 5 * UNIT, 0, 16, OUT));
	memset(guest + 0x301, 0xff, 16); /* the guest changes the segment: the copy is used */
	TEST_ASSERT_TRUE(vhost_request_submit(&queue, &request));
	TEST_ASSERT_EQUAL_UINT(1, n_submitted);
	TEST_ASSERT_EQUAL_UINT(opcode, submitted.opcode);
	TEST_ASSERT_EQUAL_UINT(opcode == GANTRY_OP_WRITE_ZEROES ? flags : 0, submitted.flags);
	TEST_ASSERT_EQUAL_UINT64(3 * BLOCK, submitted.offset);
	TEST_ASSERT_EQUAL_UINT(5 * BLOCK, submitted.length);
	TEST_ASSERT_NULL(submitted.data);
	TEST_ASSERT_EQUAL_UINT64(opcode == GANTRY_OP_DISCARD, counted[0]);
	TEST_ASSERT_EQUAL_UINT64(opcode == GANTRY_OP_WRITE_ZEROES, counted[1]);
}

static void a_request_becomes_one_io(void)
{
	for (unsigned fua = 0; fua <= GANTRY_IO_FUA; fua += GANTRY_IO_FUA) {
		expect_io(VIRTIO_BLK_T_DISCARD, GANTRY_OP_DISCARD, fua);
		expect_io(VIRTIO_BLK_T_WRITE_ZEROES, GANTRY_OP_WRITE_ZEROES, fua);
	}
}

static void expect_status(unsigned status, const char *what)
{
	TEST_ASSERT_EQUAL_UINT_MESSAGE(status, request.status, what);
	TEST_ASSERT_EQUAL_PTR(guest + 0x400, request.status_addr);
}

static void segments_are_checked(void)
{
	static const struct {
		const char *what;
		uint64_t sector;
		uint32_t sectors, flags, bytes;
		uint16_t in;
		unsigned discard, zeroes; /* the status; OK with 0 sectors: done without an IO */
	} cases[] = {
		{"no sector", 0, 0, 0, 16, OUT, GANTRY_S_OK, GANTRY_S_OK},
		{"no sector at the end", BLOCKS * UNIT, 0, 0, 16, OUT, GANTRY_S_OK, GANTRY_S_OK},
		{"beyond the end", BLOCKS * UNIT, UNIT, 0, 16, OUT, GANTRY_S_RANGE, GANTRY_S_RANGE},
		{"across the end", (BLOCKS - 1) * UNIT, 2 * UNIT, 0, 16, OUT, GANTRY_S_RANGE,
		 GANTRY_S_RANGE},
		{"overflow to 0", 1ull << 55, UNIT, 0, 16, OUT, GANTRY_S_RANGE, GANTRY_S_RANGE},
		{"last sector", UINT64_MAX, UNIT, 0, 16, OUT, GANTRY_S_RANGE, GANTRY_S_RANGE},
		{"too long", 0, MAX_IO / SECTOR + UNIT, 0, 16, OUT, GANTRY_S_INVALID,
		 GANTRY_S_INVALID},
		{"longest", 0, UINT32_MAX, 0, 16, OUT, GANTRY_S_INVALID, GANTRY_S_INVALID},
		{"sector in a block", 1, UNIT, 0, 16, OUT, GANTRY_S_INVALID, GANTRY_S_INVALID},
		{"part of a block", 0, 1, 0, 16, OUT, GANTRY_S_INVALID, GANTRY_S_INVALID},
		{"unknown flag", 0, UNIT, 2, 16, OUT, GANTRY_S_UNSUPPORTED, GANTRY_S_UNSUPPORTED},
		{"unmap, no sector", 0, 0, 1, 16, OUT, GANTRY_S_UNSUPPORTED, GANTRY_S_OK},
		{"writable", 0, UNIT, 0, 16, IN, GANTRY_S_INVALID, GANTRY_S_INVALID},
		{"no segment", 0, UNIT, 0, 0, OUT, GANTRY_S_INVALID, GANTRY_S_INVALID},
		{"short", 0, UNIT, 0, 15, OUT, GANTRY_S_INVALID, GANTRY_S_INVALID},
		{"long", 0, UNIT, 0, 17, OUT, GANTRY_S_INVALID, GANTRY_S_INVALID},
		{"two segments", 0, UNIT, 0, 32, OUT, GANTRY_S_INVALID, GANTRY_S_INVALID},
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		set_up();
		TEST_ASSERT_EQUAL_INT(1,
				      parse(VIRTIO_BLK_T_DISCARD, cases[i].sector, cases[i].sectors,
					    cases[i].flags, cases[i].bytes, cases[i].in));
		expect_status(cases[i].discard, cases[i].what);
		set_up();
		TEST_ASSERT_EQUAL_INT(1, parse(VIRTIO_BLK_T_WRITE_ZEROES, cases[i].sector,
					       cases[i].sectors, cases[i].flags, cases[i].bytes,
					       cases[i].in));
		expect_status(cases[i].zeroes, cases[i].what);
	}
}

static void unmap_is_a_hint(void)
{
	set_up();
	TEST_ASSERT_EQUAL_INT(0, parse(VIRTIO_BLK_T_WRITE_ZEROES, 0, UNIT,
				       VIRTIO_BLK_WRITE_ZEROES_FLAG_UNMAP, 16, OUT));
}

static void an_operation_that_the_volume_does_not_have_is_unsupported(void)
{
	set_up();
	role.volume.ops = ALL & ~(1u << GANTRY_OP_DISCARD);
	TEST_ASSERT_EQUAL_INT(1, parse(VIRTIO_BLK_T_DISCARD, 0, UNIT, 0, 16, OUT));
	expect_status(GANTRY_S_UNSUPPORTED, "discard");
	TEST_ASSERT_EQUAL_INT(0, parse(VIRTIO_BLK_T_WRITE_ZEROES, 0, UNIT, 0, 16, OUT));
	set_up();
	role.volume.ops = ALL & ~(1u << GANTRY_OP_WRITE_ZEROES);
	TEST_ASSERT_EQUAL_INT(1, parse(VIRTIO_BLK_T_WRITE_ZEROES, 0, UNIT, 0, 16, OUT));
	expect_status(GANTRY_S_UNSUPPORTED, "write zeroes");
	TEST_ASSERT_EQUAL_INT(0, parse(VIRTIO_BLK_T_DISCARD, 0, UNIT, 0, 16, OUT));
}

static void a_disk_that_is_read_only_is_not_changed(void)
{
	for (uint32_t type = VIRTIO_BLK_T_DISCARD; type <= VIRTIO_BLK_T_WRITE_ZEROES; type += 2) {
		set_up();
		role.conf = &read_only;
		TEST_ASSERT_EQUAL_INT(1, parse(type, 0, UNIT, 0, 16, OUT));
		expect_status(GANTRY_S_READ_ONLY, "option");
		set_up();
		role.volume.flags = GANTRY_VOLUME_READ_ONLY;
		TEST_ASSERT_EQUAL_INT(1, parse(type, 0, UNIT, 0, 16, OUT));
		expect_status(GANTRY_S_READ_ONLY, "volume");
	}
}

static void the_limit_is_whole_blocks(void)
{
	set_up();
	role.volume.max_io = MAX_IO + SECTOR;
	TEST_ASSERT_EQUAL_UINT(MAX_IO, vhost_segment_max(&role.volume));
	TEST_ASSERT_EQUAL_INT(0, parse(VIRTIO_BLK_T_DISCARD, 0, MAX_IO / SECTOR, 0, 16, OUT));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(a_request_becomes_one_io);
	RUN_TEST(segments_are_checked);
	RUN_TEST(unmap_is_a_hint);
	RUN_TEST(an_operation_that_the_volume_does_not_have_is_unsupported);
	RUN_TEST(a_disk_that_is_read_only_is_not_changed);
	RUN_TEST(the_limit_is_whole_blocks);
	return UNITY_END();
}
