/* SPDX-License-Identifier: BSD-3-Clause */
/* hostile_memory.c - invalid regions, rings and credit pages. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gantry/memfd.h>

#include "conform/hostile.h"

#define FIXED (F_SEAL_SHRINK | F_SEAL_GROW)
#define FROZEN (FIXED | F_SEAL_FUTURE_WRITE) /* the seals that queue memory must have */

static void region(const struct comch_region_up *up, size_t bytes, int seals)
{
	struct evil_memory m;

	evil_memory(&m, bytes, seals);
	evil_frame(COMCH_REGION, up, sizeof(*up), &m.fd, 1);
	evil_memory_close(&m);
}

static struct comch_region_up fine(void)
{
	return (struct comch_region_up){
		.ref = COMCH_REF(0, 1), .handle = 1, .length = 4096, .rights = 3};
}

/* Export a region with this descriptor as its hold_socket. */
static void held_region(int socket)
{
	const struct comch_region_up up = fine();
	struct evil_memory m;
	int fds[2];

	evil_memory(&m, 4096, FIXED);
	fds[0] = m.fd;
	fds[1] = socket;
	evil_frame(COMCH_REGION, &up, sizeof(up), fds, 2);
	evil_memory_close(&m);
}

ATTACK(region_with_a_file_as_its_hold_socket, 1, "no Unix seqpacket socket")
{
	int fd = eventfd(0, 0);

	held_region(fd);
	close(fd);
}

ATTACK(region_with_another_socket_as_its_hold_socket, 1, "no Unix seqpacket socket")
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	held_region(fd);
	close(fd);
}

ATTACK(region_unsealed, 1, "not sealed")
{
	struct comch_region_up up = fine();

	region(&up, 4096, 0);
}

ATTACK(region_that_can_shrink, 1, "not sealed")
{
	struct comch_region_up up = fine();

	region(&up, 4096, F_SEAL_GROW);
}

ATTACK(region_smaller_than_claimed, 1, "smaller than claimed")
{
	struct comch_region_up up = fine();

	up.length = 4097;
	region(&up, 4096, FIXED);
}

ATTACK(region_offset_behind_the_end, 1, "smaller than claimed")
{
	struct comch_region_up up = fine();

	up.fd_offset = 4096;
	region(&up, 4096, FIXED);
}

ATTACK(region_offset_wraps, 1, "exceeds any file")
{
	struct comch_region_up up = fine();

	up.fd_offset = UINT64_MAX - 100;
	region(&up, 4096, FIXED);
}

ATTACK(region_larger_than_the_quota, 1,
       "region 1 of 4611686018427387904 bytes exceeds the quota of the peer (exported=0, max_bytes of this device=68719476736)")
{
	struct comch_region_up up = fine();

	up.length = 1ull << 62;
	region(&up, 4096, FIXED);
}

/*
 * Only one page of 256 is allocated. The kernel would charge the other pages to the server that
 * touches them first.
 */
ATTACK(region_with_holes, 1, "region 1 has holes: 4096 of 1048576 bytes are present")
{
	struct comch_region_up up = fine();
	struct evil_memory m;

	up.length = 1 << 20;
	evil_memory(&m, up.length, FIXED);
	TEST_ASSERT_EQUAL_INT(0, fallocate(m.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4096,
					   (off_t)up.length - 4096));
	evil_frame(COMCH_REGION, &up, sizeof(up), &m.fd, 1);
	evil_memory_close(&m);
}

ATTACK(region_of_length_zero, 1, "malformed region")
{
	struct comch_region_up up = fine();

	up.length = 0;
	region(&up, 4096, FIXED);
}

ATTACK(region_without_rights, 1, "malformed region")
{
	struct comch_region_up up = fine();

	up.rights = 0;
	region(&up, 4096, FIXED);
}

ATTACK(region_with_unknown_rights, 1, "malformed region")
{
	struct comch_region_up up = fine();

	up.rights = 0x80000001;
	region(&up, 4096, FIXED);
}

ATTACK(region_of_generation_zero, 1, "old region")
{
	struct comch_region_up up = fine();

	up.ref = COMCH_REF(5, 0);
	region(&up, 4096, FIXED);
}

ATTACK(region_twice, 1, "twice")
{
	struct comch_region_up up = fine();

	region(&up, 4096, FIXED);
	up.ref = COMCH_REF(0, 2);
	region(&up, 4096, FIXED);
}

ATTACK(region_name_used_again, 1, "old region")
{
	struct comch_region_up up = fine();
	struct comch_id id = {.id = up.ref};

	region(&up, 4096, FIXED);
	evil_frame(COMCH_REVOKE, &id, sizeof(id), NULL, 0);
	rig_settle();
	region(&up, 4096, FIXED);
}

ATTACK(region_writable_only_by_its_owner, 1, "does not allow")
{
	struct comch_region_up up = fine();

	region(&up, 4096, FIXED | F_SEAL_FUTURE_WRITE);
}

ATTACK(region_in_a_regular_file, 1, "not sealed")
{
	char name[] = "/tmp/gantry-evil-XXXXXX";
	struct comch_region_up up = fine();
	int fd = mkstemp(name);

	unlink(name);
	TEST_ASSERT_EQUAL_INT(0, ftruncate(fd, 4096));
	evil_frame(COMCH_REGION, &up, sizeof(up), &fd, 1);
	close(fd);
}

ATTACK(region_in_a_device, 1, "not a memory file")
{
	struct comch_region_up up = fine();
	int fd = open("/dev/zero", O_RDWR | O_CLOEXEC);

	evil_frame(COMCH_REGION, &up, sizeof(up), &fd, 1);
	close(fd);
}

ATTACK(region_in_a_pipe, 1, "not a memory file")
{
	struct comch_region_up up = fine();
	int fds[2];

	TEST_ASSERT_EQUAL_INT(0, pipe(fds));
	evil_frame(COMCH_REGION, &up, sizeof(up), fds, 1);
	close(fds[0]);
	close(fds[1]);
}

/* A connection has COMCH_REGIONS slots: one region more than that uses a slot that is in use. */
ATTACK(more_regions_than_slots, 1, "twice")
{
	for (uint32_t i = 0; i < COMCH_REGIONS + 1; i++) {
		struct comch_region_up up = fine();

		up.ref = COMCH_REF(i % COMCH_REGIONS, 1 + i / COMCH_REGIONS);
		up.handle = i;
		region(&up, 4096, FIXED);
		rig_settle();
	}
}

static void consumer(uint32_t id, uint32_t depth, size_t bytes, int seals, int bell)
{
	struct comch_consumer_up up = {.id = id, .depth = depth, .max_data = 4096};
	struct evil_memory m;
	int fds[2];

	evil_memory(&m, bytes, seals);
	fds[0] = m.fd;
	fds[1] = bell;
	evil_frame(COMCH_CONSUMER, &up, sizeof(up), fds, 2);
	evil_memory_close(&m);
	close(bell);
}

ATTACK(consumer_page_unsealed, 1, "not sealed")
{
	consumer(1, 16, COMCH_PAGE_BYTES, 0, eventfd(0, EFD_NONBLOCK));
}

ATTACK(consumer_page_that_can_be_punched, 1, "credit page 1 is not sealed against writing")
{
	consumer(1, 16, COMCH_PAGE_BYTES, FIXED, eventfd(0, EFD_NONBLOCK));
}

ATTACK(consumer_page_too_small, 1, "smaller than claimed")
{
	consumer(1, 16, 4096, FROZEN, eventfd(0, EFD_NONBLOCK));
}

ATTACK(consumer_page_too_large, 1, "exceeds the quota")
{
	consumer(1, 16, 1 << 20, FROZEN, eventfd(0, EFD_NONBLOCK));
}

ATTACK(consumer_bell_is_a_file, 1, "doorbell")
{
	consumer(1, 16, COMCH_PAGE_BYTES, FROZEN, open("/dev/null", O_RDWR));
}

ATTACK(consumer_bell_blocks, 1, "doorbell")
{
	consumer(1, 16, COMCH_PAGE_BYTES, FROZEN, eventfd(0, 0));
}

ATTACK(consumer_of_depth_zero, 1, "malformed consumer")
{
	consumer(1, 0, COMCH_PAGE_BYTES, FROZEN, eventfd(0, EFD_NONBLOCK));
}

ATTACK(consumer_id_twice, 1, "malformed consumer")
{
	consumer(4, 16, COMCH_PAGE_BYTES, FROZEN, eventfd(0, EFD_NONBLOCK));
	consumer(4, 16, COMCH_PAGE_BYTES, FROZEN, eventfd(0, EFD_NONBLOCK));
}

ATTACK(too_many_consumers, 1, "too many consumers")
{
	for (uint32_t i = 1; i < 1000 && !rig.b.reason; i++) {
		consumer(i, 16, COMCH_PAGE_BYTES, FROZEN, eventfd(0, EFD_NONBLOCK));
		rig_settle();
	}
}

static void producer(uint32_t id, uint32_t to, uint32_t slots, size_t bytes, int seals)
{
	struct comch_producer_up up = {.id = id, .consumer = to, .slots = slots};
	struct evil_memory m;

	evil_memory(&m, bytes, seals);
	evil_frame(COMCH_PRODUCER, &up, sizeof(up), &m.fd, 1);
	evil_memory_close(&m);
}

/* Create a consumer of the server for the attacker. It is destroyed with the connection. */
static uint32_t their_consumer(void)
{
	struct gantry_queue_attr attr = {.depth = 16, .max_data = 4096};
	uint32_t id;
	void *c;

	TEST_ASSERT_EQUAL_INT(0, rig.ops->consumer_create(rig.b.conn, &attr, &id, &c));
	return id;
}

ATTACK(producer_for_a_forged_consumer, 1, "never existed")
{
	producer(1, their_consumer() + 1, 256, 256 * 64, FROZEN);
}

ATTACK(producer_for_consumer_zero, 1, "never existed")
{
	producer(1, 0, 256, 256 * 64, FROZEN);
}

ATTACK(producer_with_a_ring_that_is_no_power_of_two, 1, "invalid number of slots")
{
	producer(1, their_consumer(), 300, 300 * 64, FROZEN);
}

ATTACK(producer_with_a_tiny_ring, 1, "invalid number of slots")
{
	producer(1, their_consumer(), 1, 4096, FROZEN);
}

ATTACK(producer_with_a_huge_ring, 1, "invalid number of slots")
{
	producer(1, their_consumer(), 1u << 31, 4096, FROZEN);
}

ATTACK(producer_with_a_short_ring, 1, "smaller than claimed")
{
	producer(1, their_consumer(), 4096, 4096, FROZEN);
}

ATTACK(producer_with_an_unsealed_ring, 1, "not sealed")
{
	producer(1, their_consumer(), 256, 256 * 64, 0);
}

ATTACK(producer_with_a_ring_that_can_be_punched, 1, "ring 1 is not sealed against writing")
{
	producer(1, their_consumer(), 256, 256 * 64, FIXED);
}

ATTACK(producer_with_a_ring_with_holes, 1, "ring 1 has holes: 0 of 16384 bytes are present")
{
	struct comch_producer_up up = {.id = 1, .consumer = their_consumer(), .slots = 256};
	struct evil_memory m;

	evil_memory(&m, 256 * 64, FIXED);
	TEST_ASSERT_EQUAL_INT(
		0, fallocate(m.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 256 * 64));
	evil_frame(COMCH_PRODUCER, &up, sizeof(up), &m.fd, 1);
	evil_memory_close(&m);
}

ATTACK(producer_id_twice, 1, "malformed producer")
{
	uint32_t to = their_consumer();

	producer(3, to, 256, 256 * 64, FROZEN);
	producer(3, to, 256, 256 * 64, FROZEN);
}

/*
 * A consumer accepts at most COMCH_RINGS producers. The server answers the further ones with
 * COMCH_NO_LINE, and does not end the connection. The descriptors of the rings do not stay open.
 */
ATTACK(too_many_producers, 1, NULL)
{
	uint32_t to = their_consumer();
	int fds = rig_fds();

	for (uint32_t i = 1; i < 300; i++) {
		producer(i, to, 256, 256 * 64, FROZEN);
		rig_settle();
		if (i % 20 == 0) {
			struct comch_frame f;

			evil_expect(COMCH_PRODUCER_OK, &f, NULL);
		}
	}
	TEST_ASSERT_TRUE(rig_fds() <= fds + 4);
}

void memory_attacks(void)
{
	RUN_TEST(region_with_a_file_as_its_hold_socket);
	RUN_TEST(region_with_another_socket_as_its_hold_socket);
	RUN_TEST(region_unsealed);
	RUN_TEST(region_that_can_shrink);
	RUN_TEST(region_smaller_than_claimed);
	RUN_TEST(region_offset_behind_the_end);
	RUN_TEST(region_offset_wraps);
	RUN_TEST(region_larger_than_the_quota);
	RUN_TEST(region_with_holes);
	RUN_TEST(region_of_length_zero);
	RUN_TEST(region_without_rights);
	RUN_TEST(region_with_unknown_rights);
	RUN_TEST(region_of_generation_zero);
	RUN_TEST(region_twice);
	RUN_TEST(region_name_used_again);
	RUN_TEST(region_writable_only_by_its_owner);
	RUN_TEST(region_in_a_regular_file);
	RUN_TEST(region_in_a_device);
	RUN_TEST(region_in_a_pipe);
	RUN_TEST(more_regions_than_slots);
	RUN_TEST(consumer_page_unsealed);
	RUN_TEST(consumer_page_that_can_be_punched);
	RUN_TEST(consumer_page_too_small);
	RUN_TEST(consumer_page_too_large);
	RUN_TEST(consumer_bell_is_a_file);
	RUN_TEST(consumer_bell_blocks);
	RUN_TEST(consumer_of_depth_zero);
	RUN_TEST(consumer_id_twice);
	RUN_TEST(too_many_consumers);
	RUN_TEST(producer_for_a_forged_consumer);
	RUN_TEST(producer_for_consumer_zero);
	RUN_TEST(producer_with_a_ring_that_is_no_power_of_two);
	RUN_TEST(producer_with_a_tiny_ring);
	RUN_TEST(producer_with_a_huge_ring);
	RUN_TEST(producer_with_a_short_ring);
	RUN_TEST(producer_with_an_unsealed_ring);
	RUN_TEST(producer_with_a_ring_that_can_be_punched);
	RUN_TEST(producer_with_a_ring_with_holes);
	RUN_TEST(producer_id_twice);
	RUN_TEST(too_many_producers);
}
