/* SPDX-License-Identifier: BSD-3-Clause */
/* virtio_ring.c - the driver's side of a split or a packed ring */
#include "virtio_front.h"

#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#define F_AVAIL (1u << VRING_PACKED_DESC_F_AVAIL)
#define F_USED (1u << VRING_PACKED_DESC_F_USED)
#define WRAP_BIT 0x8000u
#define NEW_BASE 0x80008000u /* of a packed ring: both wrap counters are 1 */

/* A place in a packed ring, counted from the start of the ring. */
struct place {
	uint16_t index, wrap; /* wrap: the bit WRAP_BIT or 0 */
};

static uint16_t avail_idx, exposed_idx, used_idx;   /* of a split ring */
static struct vring_desc requests[NUM];             /* of a packed ring */
static struct place next_avail, next_used, exposed; /* of a packed ring */
static uint16_t lengths[NUM];                       /* descriptors of each request */
static uint16_t last_length;                        /* of the last request */
static uint16_t n_in_flight;                        /* descriptors */

/* -- packed rings -- */

static struct place advance(struct place place, uint16_t n)
{
	place.index = (uint16_t)(place.index + n);
	if (place.index >= NUM) {
		place.index = (uint16_t)(place.index - NUM);
		place.wrap ^= WRAP_BIT;
	}
	return place;
}

static uint16_t encode(struct place place)
{
	return place.index | place.wrap;
}

static struct vring_packed_desc_event *driver_event(void)
{
	return (struct vring_packed_desc_event *)(void *)(low + AVAIL);
}

/* Returns the event structure of the device: off_wrap, and the flags in the upper half. */
static uint32_t device_event(void)
{
	return __atomic_load_n((const uint32_t *)(const void *)(low + USED), __ATOMIC_RELAXED);
}

struct vring_packed_desc *packed(uint16_t i)
{
	return (struct vring_packed_desc *)(void *)low + i;
}

static void add_packed(uint16_t head)
{
	const uint16_t first = next_avail.index;
	uint16_t first_flags = 0, n = 0, i = head, flags;

	do {
		struct vring_packed_desc *d = packed(next_avail.index);

		flags = (uint16_t)(requests[i].flags | (next_avail.wrap ? F_AVAIL : F_USED));
		d->addr = requests[i].addr;
		d->len = requests[i].len;
		d->id = head;
		if (n == 0)
			first_flags = flags;
		else
			d->flags = flags;
		i = requests[i].next;
		next_avail = advance(next_avail, 1);
		n++;
	} while (flags & VRING_DESC_F_NEXT);
	lengths[head] = last_length = n;
	n_in_flight = (uint16_t)(n_in_flight + n);
	if (n_in_flight > NUM)
		fail("the ring is too small");
	__atomic_store_n(&packed(first)->flags, first_flags, __ATOMIC_RELEASE);
}

/* Returns 1 if the range of descriptors from a place up to another one has the event. */
static int has_event(struct place from, struct place to, uint16_t event)
{
	for (; encode(from) != encode(to); from = advance(from, 1))
		if (encode(from) == event)
			return 1;
	return 0;
}

static int expose_packed(void)
{
	const struct place from = exposed;
	uint32_t event;

	exposed = next_avail;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	event = device_event();
	switch (event >> 16) {
	case VRING_PACKED_EVENT_FLAG_ENABLE:
		return 1;
	case VRING_PACKED_EVENT_FLAG_DISABLE:
		return 0;
	case VRING_PACKED_EVENT_FLAG_DESC:
		if (uses_events)
			return has_event(from, next_avail, (uint16_t)event);
	}
	fail("the device has an event structure 0x%x", event);
}

static int is_used(struct place place)
{
	const uint16_t flags = __atomic_load_n(&packed(place.index)->flags, __ATOMIC_ACQUIRE);

	return (flags & (F_AVAIL | F_USED)) == (place.wrap ? F_AVAIL | F_USED : 0);
}

/* Returns the number of descriptors that the device has returned and the front end has not seen. */
static uint16_t count_used(void)
{
	struct place place = next_used;
	uint16_t n = 0;

	while (n < n_in_flight && is_used(place)) {
		const uint16_t id = packed(place.index)->id, length = id < NUM ? lengths[id] : 0;

		if (length == 0)
			fail("buffer id %u is returned, but is not in flight", id);
		n = (uint16_t)(n + length);
		place = advance(place, length);
	}
	return n;
}

static struct vring_used_elem take_packed(void)
{
	const struct vring_packed_desc d = *packed(next_used.index);

	if (d.id >= NUM || lengths[d.id] == 0)
		fail("buffer id %u is returned, but is not in flight", d.id);
	if ((d.flags & VRING_DESC_F_WRITE) == 0)
		fail("buffer id %u: the device has not written", d.id);
	next_used = advance(next_used, lengths[d.id]);
	n_in_flight = (uint16_t)(n_in_flight - lengths[d.id]);
	lengths[d.id] = 0;
	return (struct vring_used_elem){d.id, d.len};
}

static int want_packed_call(uint16_t more)
{
	/* a request has a descriptor at least; those before the last one have no more than it */
	uint16_t n = (uint16_t)(more * last_length);

	if (n_in_flight != 0 && n >= n_in_flight)
		n = (uint16_t)(n_in_flight - 1);
	if (uses_events) {
		driver_event()->off_wrap = encode(advance(next_used, n));
		__atomic_store_n(&driver_event()->flags, VRING_PACKED_EVENT_FLAG_DESC,
				 __ATOMIC_RELEASE);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
	}
	return count_used() > n;
}

/* -- both kinds -- */

void reset_ring(void)
{
	memset(low, 0, DATA);
	memset(requests, 0, sizeof(requests));
	memset(lengths, 0, sizeof(lengths));
	avail_idx = exposed_idx = used_idx = 0;
	next_avail = next_used = exposed = (struct place){0, WRAP_BIT};
	n_in_flight = 0;
	last_length = 1;
}

uint32_t ring_base(void)
{
	return uses_packed ? encode(next_avail) | (uint32_t)encode(next_used) << 16 : avail_idx;
}

uint32_t stale_base(void)
{
	return uses_packed ? NEW_BASE : used()->idx;
}

struct vring_desc *descs(void)
{
	return uses_packed ? requests : (struct vring_desc *)(void *)low;
}

void set_entry(uint64_t table, uint32_t i, struct vring_desc d)
{
	const struct vring_packed_desc entry = {d.addr, d.len, 0xffff, d.flags};

	if (uses_packed)
		memcpy(at(table + i * sizeof(d)), &entry, sizeof(entry));
	else
		memcpy(at(table + i * sizeof(d)), &d, sizeof(d));
}

struct vring_avail *avail(void)
{
	return (struct vring_avail *)(void *)(low + AVAIL);
}

struct vring_used *used(void)
{
	return (struct vring_used *)(void *)(low + USED);
}

void add(uint16_t head)
{
	if (uses_packed)
		add_packed(head);
	else
		avail()->ring[avail_idx++ % NUM] = head;
}

static uint16_t avail_event(void)
{
	return __atomic_load_n((const uint16_t *)(void *)&used()->ring[NUM], __ATOMIC_RELAXED);
}

int expose(void)
{
	const uint16_t before = exposed_idx;
	uint16_t flags;

	if (uses_packed)
		return expose_packed();
	exposed_idx = avail_idx;
	__atomic_store_n(&avail()->idx, avail_idx, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	flags = __atomic_load_n(&used()->flags, __ATOMIC_RELAXED);
	if (!uses_events)
		return (flags & VRING_USED_F_NO_NOTIFY) == 0;
	if (flags != 0)
		fail("the device uses the flag against kicks");
	return vring_need_event(avail_event(), avail_idx, before);
}

void publish(uint16_t head)
{
	add(head);
	if (expose() || !uses_events)
		eventfd_write(kick, 1);
}

void publish_half(uint16_t head)
{
	struct place place = next_avail;
	uint16_t i = head;

	if (!uses_packed) {
		add(head);
		add(NUM); /* no descriptor */
	} else {
		for (place = advance(place, 1); requests[i].flags & VRING_DESC_F_NEXT;
		     place = advance(place, 1))
			i = requests[i].next;
		*packed(place.index) = (struct vring_packed_desc){
			GPA, 16, NUM, (uint16_t)(place.wrap ? F_AVAIL : F_USED)};
		add(head);
	}
	if (expose() || !uses_events)
		eventfd_write(kick, 1);
}

void want_no_calls(void)
{
	if (uses_packed)
		driver_event()->flags = VRING_PACKED_EVENT_FLAG_DISABLE;
	else
		avail()->flags = VRING_AVAIL_F_NO_INTERRUPT;
}

int want_call(uint16_t more)
{
	uint16_t n;

	if (uses_packed)
		return want_packed_call(more);
	if (uses_events) {
		__atomic_store_n(&avail()->ring[NUM], (uint16_t)(used_idx + more),
				 __ATOMIC_RELAXED);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
	}
	n = (uint16_t)(__atomic_load_n(&used()->idx, __ATOMIC_ACQUIRE) - used_idx);
	return n > more;
}

int is_asleep(void)
{
	if (!uses_packed)
		return avail_event() == avail_idx;
	return device_event() ==
	       (encode(next_avail) | (uint32_t)VRING_PACKED_EVENT_FLAG_DESC << 16);
}

int has_used(void)
{
	if (uses_packed)
		return is_used(next_used);
	return __atomic_load_n(&used()->idx, __ATOMIC_ACQUIRE) != used_idx;
}

struct vring_used_elem take_used(void)
{
	return uses_packed ? take_packed() : used()->ring[used_idx++ % NUM];
}

int all_returned(void)
{
	if (uses_packed)
		return count_used() == n_in_flight;
	return __atomic_load_n(&used()->idx, __ATOMIC_ACQUIRE) == avail_idx;
}

/* -- memory for requests in flight, as in the specification of vhost-user -- */

static void mark_packed(void *memory, uint16_t n)
{
	struct {
		uint64_t features;
		uint16_t version, num, free_head, old_free_head, used_idx, old_used_idx;
		uint8_t used_wrap_counter, old_used_wrap_counter, padding[7];
		struct {
			uint8_t inflight, padding;
			uint16_t next, last, num;
			uint64_t counter;
			uint16_t id, flags;
			uint32_t len;
			uint64_t addr;
		} desc[];
	} *kept = memory;

	for (uint16_t i = 0; i < n; i++) {
		const struct vring_packed_desc *d = packed(i);

		kept->desc[i].inflight = kept->desc[i].num = 1;
		kept->desc[i].last = i;
		kept->desc[i].counter = i;
		kept->desc[i].id = d->id;
		kept->desc[i].flags = d->flags;
		kept->desc[i].len = d->len;
		kept->desc[i].addr = d->addr;
	}
	kept->free_head = kept->old_free_head = n;
}

static void mark_split(void *memory, uint16_t n)
{
	struct {
		uint64_t features;
		uint16_t version, num, last_batch_head, used_idx;
		struct {
			uint8_t inflight, padding[5];
			uint16_t next;
			uint64_t counter;
		} desc[];
	} *kept = memory;

	for (uint16_t i = 0; i < n; i++) {
		kept->desc[i].inflight = 1;
		kept->desc[i].counter = i;
	}
}

void mark_inflight(uint16_t n)
{
	size_t bytes;
	void *memory = map_inflight(&bytes);

	if (uses_packed)
		mark_packed(memory, n);
	else
		mark_split(memory, n);
	munmap(memory, bytes);
}
