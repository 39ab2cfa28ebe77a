/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * virtio_user SOCKET COMMAND [ARGUMENT] - the front end of a vhost-user-blk device: a small driver
 *
 *      verify            reads and writes of many shapes, compared with a model; flush, serial
 *      zeroes            discards, writes zeroes, writes and reads, compared with a model
 *      segments          wrong requests to discard or write zeroes, which must change nothing
 *      no-zeroes         the device must not offer and not do discards and writes of zeroes
 *      run FILE          writes and verifies until FILE exists; prints the number of requests
 *      survive FILE      runs many requests at a time until FILE exists; connects again when the
 *                        device ends, which must return each request once
 *      many FILE         as survive, but ends when the device disconnects
 *      drain FILE        submits many requests, and creates FILE; the device must return all of
 *                        them before it disconnects
 *      stall PID         stops the target, which has this pid, while requests are in flight; the
 *                        device must answer messages in time, and return each request once
 *      hostile           breaks the ring in each way of a table; the device must notice, and work
 *                        after a reset
 *      messages          sends each wrong message of a table; the device must close the connection
 *      memory            memory that the device must refuse
 *      short             memory that a device that copies must refuse: the file is too short
 *      descriptors       gives the device descriptors that are no eventfds
 *      late-call         sends the descriptor for interrupts after a request has been returned
 *      huge              as another user than the device: huge pages
 *      large             memory in a file that is larger than the device accepts
 *      blocking          makes the eventfds of a queue block
 *      lost-ring         memory without the ring of a queue that runs
 *      gone              ends the connection while the device allocates memory
 *      half-broken       a request, and then a broken ring
 *      events            with event index: when the device asks for kicks, and when it calls
 *      status            breaks the ring; the device must set DEVICE_NEEDS_RESET, and work after
 *                        a reset
 *      left-over         stops a queue whose earlier device left requests in flight
 *      inflight          asks for memory for requests in flight again and again
 *      replace           exchanges the guest memory while the queue runs
 *      slots             adds and removes regions of memory while the queue runs
 *      slots-busy        removes a region that a slow request uses
 *      slots-waiting     removes a region that requests use which wait for a slot
 *      slots-hostile     regions that the device must refuse
 *      slots-large       a region that is larger than the servers accept
 *
 * With VIRTIO_EVENT_IDX=1 in the environment the driver negotiates the event index: it kicks the
 * device only if that asks for it, and the device calls only if the driver asks for it. With
 * VIRTIO_PACKED=1 it negotiates packed rings.
 *
 * With VIRTIO_UML=1 the front end is as user-mode Linux: memory without seals, and a socket
 * for interrupts.
 *
 * Exit status 1: the device did something wrong.
 */
#include "virtio_front.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static uint8_t model[MODEL], flat[1 << 18];

struct vring_used_elem wait_one(void)
{
	while (!want_call(0)) {
		struct pollfd p = {.fd = call, .events = POLLIN};
		eventfd_t value;

		if (poll(&p, 1, TIMEOUT_MS) != 1)
			fail("a request is not answered");
		eventfd_read(call, &value);
	}
	n_requests++;
	return take_used();
}

uint32_t wait_used(void)
{
	return wait_one().len;
}

/* Write the descriptors of a request: by a chain, by an indirect table, or by a chain to one. */
static void place(const struct vring_desc *d, uint32_t n)
{
	/* in a packed ring an indirect descriptor is alone */
	const uint32_t direct = below(3) == 0 ? 0 : below(2) == 0 || uses_packed ? n : 1 + below(2);

	for (uint32_t i = 0; i < n; i++) {
		struct vring_desc one = d[i];
		const uint32_t slot = i < direct ? i : i - direct;

		if (i + 1 < n) {
			one.flags |= VRING_DESC_F_NEXT;
			one.next = (uint16_t)(slot + 1);
		}
		if (i < direct)
			descs()[slot] = one;
		else
			set_entry(TABLE, slot, one);
	}
	if (direct < n)
		descs()[direct] = (struct vring_desc){GPA + TABLE, (n - direct) * 16,
						      VRING_DESC_F_INDIRECT, 0};
}

uint8_t request(uint32_t type, uint64_t sector, const struct piece *piece, uint32_t n)
{
	struct virtio_blk_outhdr header = {.type = type, .sector = sector};
	const uint16_t in = type == VIRTIO_BLK_T_OUT || type == VIRTIO_BLK_T_DISCARD ||
					    type == VIRTIO_BLK_T_WRITE_ZEROES
				    ? 0
				    : VRING_DESC_F_WRITE;
	struct vring_desc d[NUM];
	uint32_t bytes = 0, written, expected;
	uint8_t status;

	memcpy(at(HEADER), &header, sizeof(header));
	*at(HEADER + sizeof(header)) = 0x55;
	d[0] = (struct vring_desc){GPA + HEADER, sizeof(header), 0, 0};
	for (uint32_t i = 0; i < n; i++) {
		d[1 + i] = (struct vring_desc){GPA + piece[i].offset, piece[i].bytes, in, 0};
		bytes += piece[i].bytes;
	}
	d[1 + n] = (struct vring_desc){GPA + HEADER + sizeof(header), 1, VRING_DESC_F_WRITE, 0};
	place(d, n + 2);
	publish(0);
	written = wait_used();
	status = (uint8_t)*at(HEADER + sizeof(header));
	/* bytes that are written from the first on: the status byte follows the data */
	expected = !in || bytes == 0           ? 1
		   : status != VIRTIO_BLK_S_OK ? 0
		   : type == VIRTIO_BLK_T_GET_ID && bytes > VIRTIO_BLK_ID_BYTES
			   ? VIRTIO_BLK_ID_BYTES
			   : bytes + 1;
	if (written != expected)
		fail("%u bytes are written, not %u", written, expected);
	return status;
}

static void copy_part(uint64_t offset, uint8_t *p, size_t bytes, int to_guest)
{
	if (to_guest)
		memcpy(at(offset), p, bytes);
	else
		memcpy(p, at(offset), bytes);
}

/* A piece can be in both regions of the memory. */
static void copy(const struct piece *piece, uint32_t n, int to_guest)
{
	uint8_t *p = flat;

	for (uint32_t i = 0; i < n; p += piece[i++].bytes) {
		const uint64_t start = piece[i].offset, bytes = piece[i].bytes;
		const uint64_t first = start < HALF && HALF - start < bytes ? HALF - start : bytes;

		copy_part(start, p, first, to_guest);
		copy_part(start + first, p + first, bytes - first, to_guest);
	}
}

/* Divide a request into pieces that do not overlap. Returns their number. */
static uint32_t divide(struct piece *piece, uint32_t bytes)
{
	const uint32_t unit = below(2) ? blk_size : SECTOR >> below(3), most = 1 + below(30);
	/* the request is in the first region, in the second, or in both */
	uint64_t offset = below(3) == 0 ? HALF - bytes / 2 / SECTOR * SECTOR
			  : below(2)    ? DATA + below(4) * unit
					: HALF + DATA + below(4) * unit;
	uint32_t n = 0;

	while (bytes != 0) {
		uint32_t part = n + 1 == most ? bytes : unit * (1 + below(bytes / unit));

		if (part > bytes)
			part = bytes;
		piece[n++] = (struct piece){offset, part};
		offset += part + (below(2) ? unit : 0);
		bytes -= part;
	}
	return n;
}

static void write_some(uint64_t offset, uint32_t bytes)
{
	struct piece piece[NUM];
	const uint32_t n = divide(piece, bytes);

	fill_random(flat, bytes);
	copy(piece, n, 1);
	memcpy(model + offset, flat, bytes);
	if (request(VIRTIO_BLK_T_OUT, offset / SECTOR, piece, n) != VIRTIO_BLK_S_OK)
		fail("write of %u bytes at %llu failed", bytes, (unsigned long long)offset);
}

static void read_some(uint64_t offset, uint32_t bytes)
{
	struct piece piece[NUM];
	const uint32_t n = divide(piece, bytes);

	memset(flat, 0xee, bytes);
	copy(piece, n, 1);
	if (request(VIRTIO_BLK_T_IN, offset / SECTOR, piece, n) != VIRTIO_BLK_S_OK)
		fail("read of %u bytes at %llu failed", bytes, (unsigned long long)offset);
	copy(piece, n, 0);
	if (memcmp(flat, model + offset, bytes) != 0)
		fail("a read has wrong data (offset=%llu, bytes=%u, pieces=%u)",
		     (unsigned long long)offset, bytes, n);
}

void fill_model(void)
{
	for (uint32_t offset = 0; offset < MODEL; offset += 1 << 17)
		write_some(offset, 1 << 17);
}

void use(unsigned n)
{
	const uint32_t blocks = MODEL / blk_size;

	while (n-- > 0) {
		const uint32_t count = 1 + below(sizeof(flat) / 2 / blk_size);
		const uint64_t offset = (uint64_t)below(blocks - count) * blk_size;

		if (below(2))
			write_some(offset, count * blk_size);
		else
			read_some(offset, count * blk_size);
	}
	if (request(VIRTIO_BLK_T_FLUSH, 0, NULL, 0) != VIRTIO_BLK_S_OK)
		fail("flush failed");
}

void verify_all(void)
{
	for (uint32_t offset = 0; offset < MODEL; offset += 1 << 17)
		read_some(offset, 1 << 17);
}

void verify(void)
{
	const struct piece id = {DATA, VIRTIO_BLK_ID_BYTES}, block = {DATA, blk_size},
			   odd = {DATA, 100};

	fill_model();
	use(400);
	verify_all();
	if (request(VIRTIO_BLK_T_GET_ID, 0, &id, 1) != VIRTIO_BLK_S_OK)
		fail("the serial number cannot be read");
	printf("serial %.20s\n", at(DATA));
	if (request(VIRTIO_BLK_T_GET_ID, 0, &block, 1) != VIRTIO_BLK_S_OK)
		fail("the serial number cannot be read into a larger buffer");
	if (request(VIRTIO_BLK_T_IN, UINT64_MAX / SECTOR, &block, 1) != VIRTIO_BLK_S_IOERR ||
	    request(VIRTIO_BLK_T_IN, UINT64_MAX, &block, 1) != VIRTIO_BLK_S_IOERR ||
	    request(VIRTIO_BLK_T_IN, 0, &odd, 1) != VIRTIO_BLK_S_IOERR)
		fail("a read outside the disk or of no whole block succeeds");
	if (request(99, 0, NULL, 0) != VIRTIO_BLK_S_UNSUPP)
		fail("an unknown request succeeds");
	verify_all();
}

uint8_t segment(uint32_t type, uint64_t sector, uint32_t sectors, uint32_t flags)
{
	const struct virtio_blk_discard_write_zeroes range = {sector, sectors, flags};
	/* one piece, or two with a gap, on both sides of the end of a region too */
	const uint32_t first = below(2) ? sizeof(range) : 1 + below(sizeof(range) - 1);
	const uint64_t offset = below(2) ? DATA + below(64) : HALF - first;
	const struct piece piece[2] = {{offset, first},
				       {offset + first + below(2), sizeof(range) - first}};

	memcpy(flat, &range, sizeof(range));
	copy(piece, first < sizeof(range) ? 2 : 1, 1);
	return request(type, 0, piece, first < sizeof(range) ? 2 : 1);
}

/* Discard blocks, or write zeroes to them. The stores of the tests read as zeroes in both cases. */
static void wipe_some(void)
{
	const uint32_t type = below(2) ? VIRTIO_BLK_T_DISCARD : VIRTIO_BLK_T_WRITE_ZEROES;
	const uint32_t most = type == VIRTIO_BLK_T_DISCARD ? discard_max : zeroes_max;
	const uint32_t unit = blk_size / SECTOR, blocks = MODEL / blk_size;
	const uint32_t limit = most / unit < 64 ? most / unit : 64, count = 1 + below(limit);
	const uint32_t first = below(blocks - count);
	const uint32_t flags = type == VIRTIO_BLK_T_WRITE_ZEROES && below(2)
				       ? VIRTIO_BLK_WRITE_ZEROES_FLAG_UNMAP
				       : 0;

	if (segment(type, (uint64_t)first * unit, count * unit, flags) != VIRTIO_BLK_S_OK)
		fail("request of type %u: %u blocks at block %u failed", type, count, first);
	memset(model + (size_t)first * blk_size, 0, (size_t)count * blk_size);
}

static void zeroes(void)
{
	if (discard_max == 0 || zeroes_max == 0)
		fail("discards or writes of zeroes are not offered");
	fill_model();
	for (unsigned i = 0; i < 100; i++) {
		wipe_some();
		use(3);
	}
	verify_all();
	printf("%u sectors\n", zeroes_max);
}

static void no_zeroes(void)
{
	if (discard_max != 0 || zeroes_max != 0)
		fail("discards or writes of zeroes are offered");
	if (segment(VIRTIO_BLK_T_DISCARD, 0, 8, 0) == VIRTIO_BLK_S_OK ||
	    segment(VIRTIO_BLK_T_WRITE_ZEROES, 0, 8, 0) == VIRTIO_BLK_S_OK)
		fail("a disk that is read-only is changed");
}

static void run(const char *until)
{
	fill_model();
	while (access(until, F_OK) != 0)
		use(50);
	verify_all();
	printf("%lu requests\n", n_requests);
}

static void replace(void)
{
	fill_model();
	for (unsigned i = 0; i < 10; i++) {
		uint32_t base;

		use(20);
		/* the rings are in the memory, so they stop first, as in a real guest */
		if (i % 2) {
			if (set_memory() != 0) /* the same memory, while the queue runs */
				fail("memory cannot be set again");
			continue;
		}
		base = stop_queue();
		if (base != ring_base())
			fail("base 0x%x, not 0x%x", base, ring_base());
		make_memory(is_uml ? 0 : SEALS);
		if (set_memory() != 0)
			fail("memory cannot be replaced");
		reset_ring();
		start_queue(ring_base());
	}
	verify_all();
}

int main(int argc, char **argv)
{
	const char *command = argc > 2 ? argv[2] : "";

	gantry_random_seed(&random_state, 5);
	path = argv[1];
	uses_events = getenv("VIRTIO_EVENT_IDX") != NULL;
	uses_packed = getenv("VIRTIO_PACKED") != NULL;
	is_uml = getenv("VIRTIO_UML") != NULL;
	if (strcmp(command, "short") == 0) {
		short_memory();
		return 0;
	}
	if (strcmp(command, "messages") == 0) {
		messages();
		return 0;
	}
	if (strcmp(command, "huge") == 0) {
		huge();
		return 0;
	}
	if (strcmp(command, "large") == 0) {
		large();
		return 0;
	}
	if (strcmp(command, "memory") == 0) {
		memory();
		return 0;
	}
	set_up();
	if (strcmp(command, "verify") == 0)
		verify();
	else if (strcmp(command, "run") == 0 && argc == 4)
		run(argv[3]);
	else if (strcmp(command, "survive") == 0 && argc == 4) {
		set_up_inflight();
		many(argv[3]);
	} else if (strcmp(command, "many") == 0 && argc == 4)
		many(argv[3]);
	else if (strcmp(command, "drain") == 0 && argc == 4)
		drain(argv[3]);
	else if (strcmp(command, "stall") == 0 && argc == 4) {
		set_up_inflight();
		stall(atoi(argv[3]));
	} else if (strcmp(command, "hostile") == 0)
		(uses_packed ? hostile_packed : hostile)();
	else if (strcmp(command, "segments") == 0)
		segments();
	else if (strcmp(command, "zeroes") == 0)
		zeroes();
	else if (strcmp(command, "no-zeroes") == 0)
		no_zeroes();
	else if (strcmp(command, "descriptors") == 0)
		descriptors();
	else if (strcmp(command, "late-call") == 0)
		late_call();
	else if (strcmp(command, "blocking") == 0)
		blocking();
	else if (strcmp(command, "lost-ring") == 0)
		lost_ring();
	else if (strcmp(command, "gone") == 0)
		gone();
	else if (strcmp(command, "half-broken") == 0)
		half_broken();
	else if (strcmp(command, "events") == 0)
		events();
	else if (strcmp(command, "status") == 0)
		status();
	else if (strcmp(command, "left-over") == 0)
		left_over();
	else if (strcmp(command, "inflight") == 0)
		inflight_again();
	else if (strcmp(command, "lost-request") == 0)
		lost_request();
	else if (strcmp(command, "lost-writes") == 0 && argc == 4)
		lost_writes(argv[3]);
	else if (strcmp(command, "new-size") == 0 && argc == 4)
		new_size(argv[3]);
	else if (strcmp(command, "resize") == 0 && argc == 4)
		resize(argv[3]);
	else if (strcmp(command, "replace") == 0)
		replace();
	else if (strcmp(command, "slots") == 0)
		slots();
	else if (strcmp(command, "slots-busy") == 0)
		slots_busy();
	else if (strcmp(command, "slots-waiting") == 0)
		slots_waiting();
	else if (strcmp(command, "slots-hostile") == 0)
		slots_hostile();
	else if (strcmp(command, "slots-large") == 0)
		slots_large();
	else
		fail("usage: virtio_user SOCKET COMMAND [ARGUMENT]");
	return 0;
}
