/* SPDX-License-Identifier: BSD-3-Clause */
/* virtio_slots.c - regions of guest memory that come and go while the queue runs */
#include "virtio_front.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define SLOTS 8u /* default of memory_slots */
#define EXTRA (GPA + 4ull * HALF)
#define BYTES 16384u
#define STALLED 2u /* one has the slot, the other waits */

enum slot_message { GET_MAX_MEM_SLOTS = 36, ADD_MEM_REG = 37, REM_MEM_REG = 38 };

struct slot {
	uint64_t padding;
	struct region region;
};

static int extra_fd;
static char *extra;
static struct slot low_slot, high_slot, extra_slot;

static int make_file(int seals)
{
	const int fd = memfd_create("slot", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, HALF) || (seals && fcntl(fd, F_ADD_SEALS, seals)))
		fail("memfd");
	return fd;
}

static void make_slots(void)
{
	extra_fd = make_file(SEALS);
	extra = mmap(NULL, HALF, PROT_READ | PROT_WRITE, MAP_SHARED, extra_fd, 0);
	if (extra == MAP_FAILED)
		fail("mmap");
	low_slot.region = (struct region){GPA, HALF, (uintptr_t)low, 0};
	high_slot.region = (struct region){GPA + HALF, HALF, (uintptr_t)high, HALF + GAP};
	extra_slot.region = (struct region){EXTRA, HALF, (uintptr_t)extra, 0};
}

static void add_slot(const struct slot *slot, int fd)
{
	must(ADD_MEM_REG, slot, sizeof(*slot), &fd, 1);
}

/* with_fd: some front ends send a descriptor, which the device must ignore */
static void removed(const struct slot *slot, int with_fd)
{
	struct slot other = *slot;

	other.region.offset = 4096; /* does not matter */
	must(REM_MEM_REG, &other, sizeof(other), &extra_fd, with_fd ? 1 : 0);
}

/* Describe request i, whose data is in the extra region, or in the first one. */
static void describe(uint16_t i, uint32_t type, uint64_t data)
{
	const struct virtio_blk_outhdr header = {.type = type, .sector = i * BYTES / SECTOR};
	const uint64_t to = HEADER + i * 32u;
	struct vring_desc *d = &descs()[4 * i];

	memcpy(at(to), &header, sizeof(header));
	*at(to + sizeof(header)) = 0x55;
	d[0] = (struct vring_desc){GPA + to, sizeof(header), VRING_DESC_F_NEXT,
				   (uint16_t)(4 * i + 1)};
	d[1] = (struct vring_desc){
		data, BYTES,
		(uint16_t)(VRING_DESC_F_NEXT | (type == VIRTIO_BLK_T_IN ? VRING_DESC_F_WRITE : 0)),
		(uint16_t)(4 * i + 2)};
	d[2] = (struct vring_desc){GPA + to + sizeof(header), 1, VRING_DESC_F_WRITE, 0};
}

static void io(uint16_t i, uint32_t type, uint64_t data)
{
	describe(i, type, data);
	publish((uint16_t)(4 * i));
	wait_used();
	if (*at(HEADER + i * 32u + sizeof(struct virtio_blk_outhdr)) != VIRTIO_BLK_S_OK)
		fail("request with its data at 0x%llx failed", (unsigned long long)data);
}

/* Write from the extra region, and read into another part of it and into the first one. */
static void use_extra(unsigned round)
{
	memset(extra, (int)(round + 1), BYTES);
	memset(extra + BYTES, 0xee, BYTES);
	io(0, VIRTIO_BLK_T_OUT, EXTRA);
	io(0, VIRTIO_BLK_T_IN, EXTRA + BYTES);
	io(0, VIRTIO_BLK_T_IN, GPA + DATA);
	if (memcmp(extra, extra + BYTES, BYTES) != 0 || memcmp(extra, at(DATA), BYTES) != 0)
		fail("a read has wrong data");
}

/* A request in a region that has gone breaks the ring. */
static void use_removed(void)
{
	struct pollfd p = {.fd = err, .events = POLLIN};

	describe(0, VIRTIO_BLK_T_IN, EXTRA);
	publish(0);
	if (poll(&p, 1, TIMEOUT_MS) != 1)
		fail("the device does not notice a request in a region that has gone");
	stop_queue();
	reset_ring();
	start_queue(ring_base());
}

/* The region of the ring goes and comes: the device continues without another message. */
static void move_ring(void)
{
	uint32_t base;

	for (int i = 0; i < 5; i++) {
		removed(&low_slot, 0);
		if (i % 2) {
			removed(&high_slot, 1);
			add_slot(&high_slot, memory_fd);
		}
		enable_queue(); /* the device must accept a message about the queue */
		add_slot(&low_slot, memory_fd);
		use(3);
	}
	removed(&low_slot, 0);
	base = stop_queue();
	if (base != ring_base())
		fail("base 0x%x, not 0x%x", base, ring_base());
	add_slot(&low_slot, memory_fd);
	start_queue(base);
	use(3);
}

/* Set up a new connection without SET_MEM_TABLE. */
static void set_up_slots(void)
{
	connect_device();
	negotiate();
	add_slot(&low_slot, memory_fd);
	add_slot(&high_slot, memory_fd);
	reset_ring();
	start_queue(ring_base());
}

void slots(void)
{
	const uint64_t n = ask(GET_MAX_MEM_SLOTS, NULL, 0);

	if (n != SLOTS)
		fail("%llu slots", (unsigned long long)n);
	make_slots();
	fill_model();
	for (unsigned i = 0; i < 10; i++) {
		add_slot(&extra_slot, extra_fd);
		use_extra(i);
		if (i == 9)
			break;
		removed(&extra_slot, i % 2);
		fill_model();
		use(5);
	}
	removed(&extra_slot, 0);
	use_removed();
	fill_model();
	move_ring();
	set_up_slots();
	verify();
	/* the connection ends while the region of the ring is removed */
	removed(&low_slot, 0);
	set_up_slots();
	verify();
}

/* Wait for a returned request. Returns its number. */
static unsigned returned(void)
{
	return wait_one().id / 4;
}

/*
 * A write from the extra region takes long. The device must not answer REM_MEM_REG before, and must
 * continue with reads in the first region meanwhile.
 */
void slots_busy(void)
{
	struct pollfd p = {.events = POLLIN};
	int is_returned = 0, n = 0;
	uint64_t value;

	make_slots();
	add_slot(&extra_slot, extra_fd);
	describe(0, VIRTIO_BLK_T_OUT, EXTRA);
	publish(0);
	poll(NULL, 0, 200); /* the lane takes it */
	p.fd = conn;
	send_message(REM_MEM_REG, NEED_REPLY, &extra_slot, sizeof(extra_slot), NULL, 0);
	while (poll(&p, 1, 0) == 0) {
		if (!is_returned) {
			describe(1, VIRTIO_BLK_T_IN, GPA + DATA);
			publish(4);
			if (returned() == 0) {
				is_returned = 1;
				returned(); /* the read */
			}
			n++;
		}
	}
	if (reply(&value, sizeof(value)) != sizeof(value) || value != 0)
		fail("the region cannot be removed");
	if (!is_returned && (!has_used() || returned() != 0))
		fail("the region has gone before the request that uses it is returned");
	if (n < 3)
		fail("%d reads while the region goes", n);
	printf("%d reads while the region goes\n", n);
	use(5);
}

/* Requests that wait for a slot of the queue use the region, too. */
void slots_waiting(void)
{
	uint64_t value;

	make_slots();
	add_slot(&extra_slot, extra_fd);
	for (uint16_t i = 0; i < STALLED; i++) {
		describe(i, VIRTIO_BLK_T_OUT, EXTRA + i * BYTES);
		publish((uint16_t)(4 * i));
	}
	poll(NULL, 0, 200); /* the lane takes them */
	send_message(REM_MEM_REG, NEED_REPLY, &extra_slot, sizeof(extra_slot), NULL, 0);
	if (reply(&value, sizeof(value)) != sizeof(value) || value != 0)
		fail("the region cannot be removed");
	if (!all_returned())
		fail("not all requests in the region are returned");
	for (uint16_t i = 0; i < STALLED; i++)
		if (*at(HEADER + i * 32u + sizeof(struct virtio_blk_outhdr)) != VIRTIO_BLK_S_OK)
			fail("request %u failed", i);
	while (has_used())
		take_used();
	use(1);
}

/* -- messages that break the rules -- */

static void must_fail(const char *what, uint32_t type, struct region region, int fd)
{
	const struct slot slot = {.region = region};

	if (tell(type, &slot, sizeof(slot), &fd, fd >= 0) != 1)
		fail("%s is accepted", what);
}

static void must_close(const char *what, uint32_t type, struct region region, uint32_t size,
		       unsigned n_fds)
{
	const struct slot slot = {.region = region};
	const int fds[2] = {extra_fd, extra_fd};
	uint64_t value;

	connect_device();
	negotiate();
	send_message(type, NEED_REPLY, &slot, size, fds, n_fds);
	if (reply(&value, sizeof(value)) != 0)
		fail("%s: the connection stays open", what);
}

static void too_many(void)
{
	struct region r = extra_slot.region;

	r.bytes = 4096;
	for (uint32_t i = 2; i <= SLOTS; i++, r.gpa += 4096, r.uva += 4096, r.offset += 4096) {
		const struct slot slot = {.region = r};

		if (i < SLOTS)
			add_slot(&slot, extra_fd);
		else
			must_fail("a region too many", ADD_MEM_REG, r, extra_fd);
	}
	for (uint32_t i = 2; i < SLOTS; i++) {
		const struct slot slot = {.region = {EXTRA + (i - 2) * 4096ull, 4096,
						     (uintptr_t)extra + (i - 2) * 4096ull, 0}};

		removed(&slot, 0);
	}
}

void slots_hostile(void)
{
	const struct region e = (make_slots(), extra_slot.region), l = low_slot.region;
	const int open_fd = make_file(0);
	struct region r;

	fill_model();
	for (int i = 0; i < 100; i++) {
		must_fail("the same region", ADD_MEM_REG, l, memory_fd);
		r = e, r.gpa = GPA + HALF / 2;
		must_fail("an address in use", ADD_MEM_REG, r, extra_fd);
		r = e, r.gpa = GPA - HALF + 4096;
		must_fail("an address in use", ADD_MEM_REG, r, extra_fd);
		r = e, r.uva = l.uva + 4096;
		must_fail("an address of the front end in use", ADD_MEM_REG, r, extra_fd);
		must_fail("a descriptor that is no memory", ADD_MEM_REG, e, STDIN_FILENO);
		must_fail("memory without seals", ADD_MEM_REG, e, open_fd);
		r = e, r.offset = 1ull << 40;
		must_fail("an offset outside of the file", ADD_MEM_REG, r, extra_fd);
		r = e, r.bytes = 1ull << 40;
		must_fail("a size outside of the file", ADD_MEM_REG, r, extra_fd);
		must_fail("the removal of an unknown region", REM_MEM_REG, e, extra_fd);
		r = l, r.bytes = HALF / 2;
		must_fail("the removal of a part", REM_MEM_REG, r, -1);
		r = l, r.uva += 4096;
		must_fail("the removal with another address", REM_MEM_REG, r, -1);
		r = l, r.gpa += 4096;
		must_fail("the removal with another address", REM_MEM_REG, r, -1);
	}
	too_many();
	for (int i = 0; i < 200; i++) {
		add_slot(&extra_slot, extra_fd);
		removed(&extra_slot, i % 2);
	}
	use(5);
	verify_all();
	r = e, r.bytes = 0;
	must_close("an empty region", ADD_MEM_REG, r, sizeof(struct slot), 1);
	must_close("an empty region", REM_MEM_REG, r, sizeof(struct slot), 1);
	r = e, r.gpa = ~0ull - 4095;
	must_close("an address that wraps around", ADD_MEM_REG, r, sizeof(struct slot), 1);
	r = e, r.uva = ~0ull - 4095;
	must_close("an address that wraps around", ADD_MEM_REG, r, sizeof(struct slot), 1);
	r = e, r.offset = ~0ull - 4095;
	must_close("an offset that wraps around", ADD_MEM_REG, r, sizeof(struct slot), 1);
	must_close("no descriptor", ADD_MEM_REG, e, sizeof(struct slot), 0);
	must_close("two descriptors", ADD_MEM_REG, e, sizeof(struct slot), 2);
	must_close("two descriptors", REM_MEM_REG, e, sizeof(struct slot), 2);
	must_close("a short message", ADD_MEM_REG, e, sizeof(struct slot) - 8, 1);
	connect_device(); /* without the protocol feature */
	send_message(ADD_MEM_REG, 0, &extra_slot, sizeof(extra_slot), &extra_fd, 1);
	if (reply(&r, sizeof(r)) != 0)
		fail("a message of a feature that was not accepted is answered");
	set_up_slots();
	verify();
}

/* Memory that is larger than the servers accept fails before the device allocates its pages. */
void slots_large(void)
{
	struct {
		uint32_t count, padding;
		struct region region;
	} table = {.count = 1};
	struct region r = {EXTRA, 1ull << 30, 1ull << 40, 0};
	struct stat st;

	make_slots();
	table.region = r;
	if (ftruncate(extra_fd = memfd_create("large", MFD_CLOEXEC | MFD_ALLOW_SEALING), 1 << 30) ||
	    fcntl(extra_fd, F_ADD_SEALS, SEALS))
		fail("memfd");
	must_fail("a region that is too large", ADD_MEM_REG, r, extra_fd);
	if (tell(SET_MEM_TABLE, &table, sizeof(table), &extra_fd, 1) != 1)
		fail("memory that is too large is accepted");
	if (fstat(extra_fd, &st) || st.st_blocks != 0)
		fail("memory that is too large is allocated");
	use(5);
	set_up_slots();
	verify();
}
