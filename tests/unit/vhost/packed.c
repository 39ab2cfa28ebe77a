/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * packed.c - packed rings: wrap counters, buffer ids, event structures, and requests that an
 * earlier process took and did not return
 *
 * The driver here keeps a record of each request. The device can be killed before any of its
 * stores: then the next one must take each request that the driver misses exactly once.
 */
#include <setjmp.h>
#include <stdio.h>

static jmp_buf killed;
static unsigned stores_left; /* before the device is killed; 0: never */

/* A store of the device, or its end. */
#define __atomic_store_n(p, v, order) \
	do { \
		__typeof__(*(p)) value_of_store = (v); \
\
		if (stores_left != 0 && --stores_left == 0) \
			longjmp(killed, 1); \
		__atomic_store((p), &value_of_store, (order)); \
	} while (0)

#include "../../../plugins/role/vhost-user-blk/vhost_memory.c"
#include "../../../plugins/role/vhost-user-blk/vhost_packed.c"
#include "../../../plugins/role/vhost-user-blk/vhost_ring.c"
#include "../../../plugins/role/vhost-user-blk/vhost_split.c"
#undef __atomic_store_n
#include "unity.h"

#include <gantry/random.h>

#define MOST 16u
#define NEW 0x80008000u /* base of a new ring: both wrap counters are 1 */
#define PACKED (1ull << VIRTIO_F_RING_PACKED)
#define EVENTS (1ull << VIRTIO_RING_F_EVENT_IDX)
#define GPA 0x1000u
#define TABLE 0x800u /* in the guest: indirect tables, one for each buffer id */
#define INDIRECT 100 /* length of a chain: one descriptor with a table of two entries */

static uint8_t guest[4096] __attribute__((aligned(4096)));
static struct vring_packed_desc *const desc = (struct vring_packed_desc *)(void *)guest;
static struct vring_packed_desc_event *const driver_event =
	(struct vring_packed_desc_event *)(void *)(guest + 0x400);
static const struct vring_packed_desc_event *const device_event =
	(const struct vring_packed_desc_event *)(const void *)(guest + 0x500);
static uint64_t kept[128];
static const struct vhost_memory memory = {
	1, {{.gpa = GPA, .bytes = sizeof(guest), .uva = 0x9000, .addr = guest, .handle = 2}}};
static struct vhost_ring ring;
static struct vhost_chain chain;
static struct gantry_random random_state;
static bool taken[MOST]; /* by id: by the running process */
static uint16_t num;

/* -- the driver -- */

static struct {
	uint16_t avail, used; /* indices */
	bool avail_wrap, used_wrap;
	uint16_t n_free; /* descriptors */
} driver;

static struct record {
	unsigned n;       /* descriptors in the ring; 0: not in flight */
	unsigned n_parts; /* and in the chain, or in the table */
	uint32_t bytes;   /* of the first part; the others are one byte longer each */
	uint64_t order;   /* in which they were made available */
} records[MOST];
static uint64_t n_published;

static uint16_t flags_of(bool wrap)
{
	return (uint16_t)(wrap ? F_AVAIL : F_USED);
}

static void write_desc(uint16_t id, unsigned k, unsigned n, uint16_t flags)
{
	struct vring_packed_desc *d = &desc[driver.avail];

	d->addr = GPA;
	d->len = records[id].bytes + k;
	d->id = k + 1 == n ? id : 0xdead; /* only that of the last one counts */
	d->flags = (uint16_t)(flags | flags_of(driver.avail_wrap) |
			      (k + 1 < n ? VRING_DESC_F_NEXT : 0));
	if (++driver.avail == num) {
		driver.avail = 0;
		driver.avail_wrap = !driver.avail_wrap;
	}
	driver.n_free--;
}

/* Make a request available: a chain of n descriptors, or a table. */
static void publish(uint16_t id, unsigned n)
{
	struct vring_packed_desc *table =
		(struct vring_packed_desc *)(void *)(guest + TABLE + id * 32);

	TEST_ASSERT_EQUAL_UINT(0, records[id].n);
	records[id] = (struct record){n == INDIRECT ? 1 : n, n == INDIRECT ? 2 : n,
				      1 + (uint32_t)(n_published % 100), n_published};
	n_published++;
	if (n != INDIRECT) {
		for (unsigned k = 0; k < n; k++)
			write_desc(id, k, n, 0);
		return;
	}
	for (uint32_t k = 0; k < 2; k++) /* the id and these flags have no meaning here */
		table[k] = (struct vring_packed_desc){GPA, records[id].bytes + k,
						      VRING_DESC_F_WRITE,
						      VRING_DESC_F_NEXT | VRING_DESC_F_INDIRECT};
	write_desc(id, 0, 1, VRING_DESC_F_INDIRECT);
	desc[driver.avail ? driver.avail - 1 : num - 1].addr = GPA + TABLE + id * 32u;
	desc[driver.avail ? driver.avail - 1 : num - 1].len = 32;
}

/* Returns the id of a request that the device has returned; -1: there is none. */
static int see_used(void)
{
	const struct vring_packed_desc d = desc[driver.used];
	const bool is_used = ((d.flags & F_USED) != 0) == driver.used_wrap &&
			     ((d.flags & F_AVAIL) != 0) == driver.used_wrap;

	if (!is_used)
		return -1;
	TEST_ASSERT_TRUE(d.id < num);
	TEST_ASSERT_TRUE(records[d.id].n != 0);
	TEST_ASSERT_EQUAL_UINT(records[d.id].bytes, d.len);
	TEST_ASSERT_TRUE(d.flags & VRING_DESC_F_WRITE);
	driver.used = (uint16_t)(driver.used + records[d.id].n);
	if (driver.used >= num) {
		driver.used = (uint16_t)(driver.used - num);
		driver.used_wrap = !driver.used_wrap;
	}
	driver.n_free = (uint16_t)(driver.n_free + records[d.id].n);
	records[d.id].n = 0;
	return d.id;
}

/* -- the device -- */

static int init(uint32_t base, void *at_inflight, uint64_t features)
{
	const struct vhost_vring vring = {
		.num = num, .base = base, .desc = 0x9000, .avail = 0x9400, .used = 0x9500};

	return vhost_ring_init(&ring, &vring, &memory, at_inflight, features | PACKED);
}

static void begin(uint16_t entries, void *at_inflight, uint64_t features)
{
	memset(guest, 0, sizeof(guest));
	memset(kept, 0, sizeof(kept));
	memset(records, 0, sizeof(records));
	num = entries;
	driver.avail = driver.used = 0;
	driver.avail_wrap = driver.used_wrap = true;
	driver.n_free = num;
	TEST_ASSERT_EQUAL_INT(0, init(NEW, at_inflight, features));
}

/* Take a request. Returns its id; -1: there is none. The pieces must be those of the record. */
static int take(void)
{
	uint16_t id = MOST;
	const int rc = vhost_ring_take(&ring, &memory, &chain, &id);

	if (rc == 0)
		return -1;
	TEST_ASSERT_EQUAL_STRING("", ring.fault);
	TEST_ASSERT_EQUAL_INT(1, rc);
	TEST_ASSERT_TRUE(id < num && records[id].n != 0);
	TEST_ASSERT_EQUAL_UINT(records[id].n_parts, chain.n_out);
	for (uint32_t k = 0; k < chain.n_out; k++)
		TEST_ASSERT_EQUAL_UINT(records[id].bytes + k, chain.piece[k].bytes);
	return id;
}

static void put(int id)
{
	vhost_ring_put(&ring, (uint16_t)id, records[id].bytes);
}

static void expect_fault(const char *fault)
{
	uint16_t id;

	TEST_ASSERT_EQUAL_INT(-1, vhost_ring_take(&ring, &memory, &chain, &id));
	TEST_ASSERT_EQUAL_STRING(fault, ring.fault);
}

void tearDown(void)
{
	stores_left = 0;
}

/* -- order and wrap -- */

static void requests_are_returned_in_any_order_and_the_ring_wraps_around(void)
{
	begin(7, NULL, 0); /* chains cross the end of the ring at each place */
	for (unsigned i = 0; i < 100; i++) {
		publish(0, 2);
		publish(1, 1);
		publish(2, INDIRECT);
		publish(3, 3);
		for (int id = 0; id < 4; id++)
			TEST_ASSERT_EQUAL_INT(id, take());
		TEST_ASSERT_EQUAL_INT(-1, take());
		put(3);
		put(1);
		TEST_ASSERT_EQUAL_INT(3, see_used());
		TEST_ASSERT_EQUAL_INT(1, see_used());
		TEST_ASSERT_EQUAL_INT(-1, see_used());
		put(0);
		put(2);
		TEST_ASSERT_EQUAL_INT(0, see_used());
		TEST_ASSERT_EQUAL_INT(2, see_used());
		TEST_ASSERT_EQUAL_INT(-1, see_used());
	}
}

static void a_chain_can_have_as_many_descriptors_as_the_ring(void)
{
	begin(5, kept, 0);
	for (unsigned i = 0; i < 4; i++) {
		publish(4, 5);
		TEST_ASSERT_EQUAL_INT(4, take());
		TEST_ASSERT_EQUAL_INT(-1, take());
		TEST_ASSERT_EQUAL_INT(0, init(NEW, kept, 0));
		TEST_ASSERT_EQUAL_INT(4, take());
		TEST_ASSERT_EQUAL_INT(-1, take());
		put(4);
		TEST_ASSERT_EQUAL_INT(0, init(NEW, kept, 0));
		TEST_ASSERT_EQUAL_INT(-1, take());
		TEST_ASSERT_EQUAL_INT(4, see_used());
	}
}

static void the_base_has_both_places_and_wrap_counters(void)
{
	begin(8, NULL, 0);
	TEST_ASSERT_EQUAL_HEX32(NEW, vhost_ring_base(&ring));
	publish(0, 5);
	publish(1, 3);
	TEST_ASSERT_EQUAL_INT(0, take());
	TEST_ASSERT_EQUAL_HEX32(0x80008005, vhost_ring_base(&ring));
	TEST_ASSERT_EQUAL_INT(1, take());
	TEST_ASSERT_EQUAL_HEX32(0x80000000, vhost_ring_base(&ring));
	put(1);
	TEST_ASSERT_EQUAL_HEX32(0x80030000, vhost_ring_base(&ring));
	put(0);
	TEST_ASSERT_EQUAL_HEX32(0x00000000, vhost_ring_base(&ring));
	TEST_ASSERT_EQUAL_INT(1, see_used());
	TEST_ASSERT_EQUAL_INT(0, see_used());
	TEST_ASSERT_EQUAL_INT(0, init(0x00000000, NULL, 0)); /* it continues there */
	publish(2, 2);
	TEST_ASSERT_EQUAL_INT(2, take());
	put(2);
	TEST_ASSERT_EQUAL_INT(2, see_used());
	TEST_ASSERT_EQUAL_HEX32(0x00020002, vhost_ring_base(&ring));
}

static void base_0_begins_a_ring_that_was_never_used(void)
{
	begin(8, NULL, 0);
	TEST_ASSERT_EQUAL_INT(0, init(0, NULL, 0));
	TEST_ASSERT_EQUAL_HEX32(NEW, vhost_ring_base(&ring));
	publish(0, 1);
	TEST_ASSERT_EQUAL_INT(0, init(0, NULL, 0));
	TEST_ASSERT_EQUAL_INT(0, take());
	put(0);
	TEST_ASSERT_EQUAL_INT(0, see_used());
}

static void a_wrong_base_is_refused(void)
{
	static const uint32_t wrong[] = {0x80008008,       0x80088000, 0x80018000,
					 0x00000001 << 16, 0x80000001, 0xffffffff};

	begin(8, NULL, 0);
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		TEST_ASSERT_EQUAL_INT(-EINVAL, init(wrong[i], NULL, 0));
	TEST_ASSERT_EQUAL_STRING("base of the ring is wrong", ring.fault);
}

static void a_ring_outside_the_memory_is_refused(void)
{
	struct vhost_vring vring = {
		.num = 8, .base = NEW, .desc = 0x9f90, .avail = 0x9400, .used = 0x9500};

	TEST_ASSERT_EQUAL_INT(-EFAULT, vhost_ring_init(&ring, &vring, &memory, NULL, PACKED));
	vring.desc = 0x9f80;
	TEST_ASSERT_EQUAL_INT(0, vhost_ring_init(&ring, &vring, &memory, NULL, PACKED));
	vring.avail = 0x9ffe;
	TEST_ASSERT_EQUAL_INT(-EFAULT, vhost_ring_init(&ring, &vring, &memory, NULL, PACKED));
	vring.avail = 0x9402;
	TEST_ASSERT_EQUAL_INT(-EFAULT, vhost_ring_init(&ring, &vring, &memory, NULL, PACKED));
	vring.avail = 0x9400;
	vring.used = 0xa000;
	TEST_ASSERT_EQUAL_INT(-EFAULT, vhost_ring_init(&ring, &vring, &memory, NULL, PACKED));
}

/* -- guests that break the rules -- */

static void a_buffer_id_is_checked(void)
{
	begin(8, NULL, 0);
	publish(3, 1);
	TEST_ASSERT_EQUAL_INT(3, take());
	records[3].n = 0;
	publish(3, 2);
	expect_fault("buffer id is in use by another request");
	begin(8, NULL, 0);
	publish(8, 1);
	expect_fault("buffer id is not below the size of the ring");
}

static void a_chain_that_is_too_long_is_refused(void)
{
	begin(4, NULL, 0);
	publish(0, 3);
	TEST_ASSERT_EQUAL_INT(0, take());
	publish(1, 2); /* over the first descriptor of a request in flight */
	expect_fault("more descriptors than the ring has");
	begin(4, NULL, 0);
	publish(0, 4);
	desc[3].flags |= VRING_DESC_F_NEXT;
	expect_fault("descriptor of a chain is not available");
	begin(4, NULL, 0);
	publish(0, 4);
	desc[3].flags |= VRING_DESC_F_NEXT;
	desc[0].flags ^= F_AVAIL | F_USED; /* the next lap: the device does not see it yet */
	TEST_ASSERT_EQUAL_INT(-1, take());
}

static void a_descriptor_of_the_wrong_lap_is_not_taken(void)
{
	begin(4, NULL, 0);
	for (unsigned flags = 0; flags < 4; flags++) {
		desc[0].flags = (uint16_t)((flags & 1 ? F_AVAIL : 0) | (flags & 2 ? F_USED : 0));
		if (flags != 1)
			TEST_ASSERT_EQUAL_INT(-1, take());
	}
	publish(0, 3);
	desc[1].flags ^= F_AVAIL | F_USED;
	expect_fault("descriptor of a chain is not available");
}

static void an_indirect_descriptor_stands_alone(void)
{
	begin(4, NULL, 0);
	publish(0, INDIRECT);
	desc[0].flags |= VRING_DESC_F_NEXT;
	publish(1, 1);
	expect_fault("indirect descriptor is inside a chain");
	begin(4, NULL, 0);
	publish(0, 2);
	desc[1].flags |= VRING_DESC_F_INDIRECT;
	expect_fault("indirect descriptor is inside a chain");
}

/* -- events -- */

static void kicks_are_disabled_and_enabled(void)
{
	begin(4, NULL, 0);
	TEST_ASSERT_FALSE(vhost_ring_notify(&ring, false));
	TEST_ASSERT_EQUAL_UINT(VRING_PACKED_EVENT_FLAG_DISABLE, device_event->flags);
	TEST_ASSERT_FALSE(vhost_ring_notify(&ring, true));
	TEST_ASSERT_EQUAL_UINT(VRING_PACKED_EVENT_FLAG_ENABLE, device_event->flags);
	publish(0, 1);
	TEST_ASSERT_TRUE(vhost_ring_notify(&ring, true));
}

static void with_event_index_a_kick_is_asked_for_at_the_next_descriptor(void)
{
	begin(4, NULL, EVENTS);
	for (unsigned i = 0; i < 10; i++) {
		TEST_ASSERT_FALSE(vhost_ring_notify(&ring, true));
		TEST_ASSERT_EQUAL_UINT(VRING_PACKED_EVENT_FLAG_DESC, device_event->flags);
		TEST_ASSERT_EQUAL_UINT(driver.avail | (driver.avail_wrap ? WRAP_BIT : 0),
				       device_event->off_wrap);
		vhost_ring_notify(&ring, false);
		TEST_ASSERT_EQUAL_UINT(VRING_PACKED_EVENT_FLAG_DISABLE, device_event->flags);
		publish(0, 3);
		TEST_ASSERT_TRUE(vhost_ring_notify(&ring, true));
		put(take());
		TEST_ASSERT_EQUAL_INT(0, see_used());
	}
}

static void without_event_index_the_flags_decide_about_interrupts(void)
{
	begin(4, NULL, 0);
	TEST_ASSERT_TRUE(vhost_ring_wants_call(&ring));
	driver_event->flags = VRING_PACKED_EVENT_FLAG_DISABLE;
	TEST_ASSERT_FALSE(vhost_ring_wants_call(&ring));
	driver_event->flags = VRING_PACKED_EVENT_FLAG_DESC; /* not negotiated */
	TEST_ASSERT_TRUE(vhost_ring_wants_call(&ring));
}

/* The event is at each place of two laps; requests of two descriptors are returned from each. */
static void an_interrupt_is_sent_when_the_event_is_crossed(void)
{
	for (uint16_t first = 0; first < 7; first++)
		for (uint16_t n = 0; n <= 3; n++)
			for (uint16_t event = 0; event < 14; event++) {
				const int distance = (event + 14 - first) % 14;

				begin(7, NULL, EVENTS);
				for (uint16_t i = 0; i < first; i++) {
					publish(0, 1);
					put(take());
					see_used();
				}
				driver_event->flags = VRING_PACKED_EVENT_FLAG_DISABLE;
				TEST_ASSERT_FALSE(vhost_ring_wants_call(&ring));
				driver_event->flags = VRING_PACKED_EVENT_FLAG_ENABLE;
				TEST_ASSERT_TRUE(vhost_ring_wants_call(&ring)); /* the first one */
				driver_event->flags = VRING_PACKED_EVENT_FLAG_DESC;
				driver_event->off_wrap = (uint16_t)(event % 7 |
								    (event < 7 ? WRAP_BIT : 0));
				for (uint16_t i = 0; i < n; i++) {
					publish(i, 2);
					put(take());
				}
				TEST_ASSERT_EQUAL_INT(distance < 2 * n,
						      vhost_ring_wants_call(&ring));
				TEST_ASSERT_FALSE(vhost_ring_wants_call(&ring)); /* once */
			}
}

static void after_a_start_an_interrupt_is_sent_once(void)
{
	begin(4, NULL, EVENTS);
	driver_event->flags = VRING_PACKED_EVENT_FLAG_DESC;
	driver_event->off_wrap = 3; /* of the next lap */
	TEST_ASSERT_TRUE(vhost_ring_wants_call(&ring));
	TEST_ASSERT_FALSE(vhost_ring_wants_call(&ring));
	ring.must_call = true;
	TEST_ASSERT_TRUE(vhost_ring_wants_call(&ring));
	TEST_ASSERT_FALSE(vhost_ring_wants_call(&ring));
}

/* -- requests in flight -- */

static unsigned below(unsigned n)
{
	return (unsigned)gantry_random_below(&random_state, n);
}

static int random_id(bool in_flight)
{
	for (unsigned i = 0; i < 4u * num; i++) {
		const unsigned id = below(num);

		if ((records[id].n != 0) == in_flight)
			return (int)id;
	}
	return -1;
}

static void publish_some(void)
{
	for (unsigned i = below(4); i > 0; i--) {
		const unsigned n = 1 + below(4);
		const int id = random_id(false);

		if (id >= 0 && (n == 4 ? 1 : n) <= driver.n_free)
			publish((uint16_t)id, n == 4 ? INDIRECT : n);
	}
}

/* The device takes and returns some requests. */
static void run_device(void)
{
	for (unsigned i = below(8); i > 0; i--) {
		const int id = random_id(true);

		if (below(2)) {
			const int t = take();

			if (t >= 0)
				taken[t] = true;
		} else if (id >= 0 && taken[id]) {
			taken[id] = false;
			put(id);
			/* the guest can look at any time */
			if (below(2))
				while (see_used() >= 0)
					;
		}
	}
}

static void start(void)
{
	TEST_ASSERT_EQUAL_INT(0, init(NEW, kept, 0));
}

/* Do a step of the device, up to `stores` stores; 0: all. Returns true if the step has ended. */
static bool survives(void (*step)(void), unsigned stores)
{
	stores_left = stores;
	if (setjmp(killed) != 0)
		return false;
	step();
	stores_left = 0;
	return true;
}

/* The next process takes each request that the guest misses once, those in flight in order. */
static void take_all(void)
{
	const uint32_t n_again = ring.n_resubmit;
	uint64_t order = 0;
	int id;

	memset(taken, 0, sizeof(taken));
	for (uint32_t i = 0; (id = take()) >= 0; i++) {
		TEST_ASSERT_FALSE(taken[id]);
		taken[id] = true;
		TEST_ASSERT_TRUE(i == 0 || i >= n_again || records[id].order > order);
		order = records[id].order;
	}
	for (uint16_t i = 0; i < num; i++)
		TEST_ASSERT_EQUAL_INT(records[i].n != 0, taken[i]);
}

static void the_device_is_killed_at_any_time(void)
{
	unsigned n_killed = 0;

	gantry_random_seed(&random_state, 3);
	for (uint16_t entries = 1; entries <= MOST; entries++) {
		begin(entries, kept, 0);
		memset(taken, 0, sizeof(taken));
		for (unsigned i = 0; i < 3000; i++) {
			publish_some();
			n_killed += !survives(run_device, 1 + below(40));
			if (below(2)) /* now, or after the start */
				while (see_used() >= 0)
					;
			n_killed += !survives(start, 1 + below(20));
			survives(start, 0);
			while (see_used() >= 0)
				;
			take_all();
		}
	}
	TEST_ASSERT_TRUE(n_killed > 10000);
}

/* A front end can write anything: the device refuses it, or takes at most what the ring has. */
static void a_front_end_that_changes_the_memory_harms_only_itself(void)
{
	unsigned n_refused = 0;

	gantry_random_seed(&random_state, 4);
	for (unsigned i = 0; i < 20000; i++) {
		uint16_t id;

		begin(8, kept, 0);
		publish(0, 2);
		publish(1, 3);
		take();
		take();
		for (unsigned k = 1 + below(4); k > 0; k--)
			((uint8_t *)kept)[16 + below(16 + 8 * 32)] =
				(uint8_t)(below(2) ? below(10) : below(256));
		if (init(NEW, kept, 0) != 0) {
			n_refused++;
			TEST_ASSERT_EQUAL_STRING(
				"the memory for requests in flight contradicts itself", ring.fault);
			continue;
		}
		TEST_ASSERT_TRUE(ring.n_resubmit <= 8);
		while (vhost_ring_take(&ring, &memory, &chain, &id) > 0) {
			TEST_ASSERT_TRUE(id < 8);
			vhost_ring_put(&ring, id, 1);
		}
	}
	TEST_ASSERT_TRUE(n_refused > 1000 && n_refused < 19000);
}

static void an_entry_of_two_requests_is_refused(void)
{
	struct vhost_inflight_packed *inflight = (struct vhost_inflight_packed *)(void *)kept;

	begin(8, kept, 0);
	publish(0, 2);
	publish(1, 2);
	take();
	take();
	inflight->entry[2].next = 1; /* entry 3 is part of none */
	TEST_ASSERT_EQUAL_INT(-EINVAL, init(NEW, kept, 0));
}

static void the_memory_has_the_size_of_its_kind(void)
{
	TEST_ASSERT_EQUAL_UINT(64, vhost_inflight_bytes(1, PACKED));
	TEST_ASSERT_EQUAL_UINT(32 + 7 * 32, vhost_inflight_bytes(7, PACKED));
	TEST_ASSERT_EQUAL_UINT(64, vhost_inflight_bytes(3, 0));
	begin(8, kept, 0);
	num = 7; /* another ring than that of the memory */
	TEST_ASSERT_EQUAL_INT(-EINVAL, init(NEW, kept, 0));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(requests_are_returned_in_any_order_and_the_ring_wraps_around);
	RUN_TEST(a_chain_can_have_as_many_descriptors_as_the_ring);
	RUN_TEST(the_base_has_both_places_and_wrap_counters);
	RUN_TEST(base_0_begins_a_ring_that_was_never_used);
	RUN_TEST(a_wrong_base_is_refused);
	RUN_TEST(a_ring_outside_the_memory_is_refused);
	RUN_TEST(a_buffer_id_is_checked);
	RUN_TEST(a_chain_that_is_too_long_is_refused);
	RUN_TEST(a_descriptor_of_the_wrong_lap_is_not_taken);
	RUN_TEST(an_indirect_descriptor_stands_alone);
	RUN_TEST(kicks_are_disabled_and_enabled);
	RUN_TEST(with_event_index_a_kick_is_asked_for_at_the_next_descriptor);
	RUN_TEST(without_event_index_the_flags_decide_about_interrupts);
	RUN_TEST(an_interrupt_is_sent_when_the_event_is_crossed);
	RUN_TEST(after_a_start_an_interrupt_is_sent_once);
	RUN_TEST(the_device_is_killed_at_any_time);
	RUN_TEST(a_front_end_that_changes_the_memory_harms_only_itself);
	RUN_TEST(an_entry_of_two_requests_is_refused);
	RUN_TEST(the_memory_has_the_size_of_its_kind);
	return UNITY_END();
}
