/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * image_guest.c - the driver of the disk in a modelled guest, see image_guest.h
 *
 * The driver looks at the used ring of a queue only after an interrupt of this queue, so that an
 * interrupt that the device does not send leaves a request without an end.
 */
#include "image_guest.h"

#include <errno.h>
#include <linux/virtio_blk.h>
#include <linux/virtio_config.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "sim.h"

#define VISIBLE __attribute__((visibility("default")))
#define SECTOR 512u
#define SECTORS (SIM_BLOCK / SECTOR)
#define HEADER_STEP 64u
#define SEGMENT 16u /* after the header: the range of a discard or write of zeroes */
#define STATUS 32u  /* after the header: the status byte */
#define NO_STATUS 0xffu
#define RECONNECT_NS 4000000u
#define EXCHANGE_ONE_IN 24u /* steps: exchange the data region */
#define STOP_ONE_IN 48u     /* steps: stop and start a queue */

/* -- memory -- */

static uint8_t *part_of(const struct guest *guest, const struct guest_queue *queue)
{
	return guest->rings.at + queue->index * GUEST_QUEUE_BYTES;
}

static struct vring_avail *avail_of(const struct guest *guest, const struct guest_queue *queue)
{
	return (struct vring_avail *)(void *)(part_of(guest, queue) + GUEST_AVAIL);
}

static struct vring_used *used_of(const struct guest *guest, const struct guest_queue *queue)
{
	return (struct vring_used *)(void *)(part_of(guest, queue) + GUEST_USED);
}

static uint8_t *header_of(const struct guest *guest, const struct guest_queue *queue, uint32_t slot)
{
	return part_of(guest, queue) + GUEST_HEADERS + slot * HEADER_STEP;
}

/* Returns the guest-physical address of a place in `rings`. */
static uint64_t gpa_of(const struct guest *guest, const void *at)
{
	return GUEST_RINGS_GPA + (uint64_t)((const uint8_t *)at - guest->rings.at);
}

/* Returns the offset of the buffer of a request in `data`. */
static uint32_t buffer_at(const struct guest_queue *queue, uint32_t slot)
{
	return (queue->index * GUEST_DEPTH + slot) * GUEST_REQUEST_BYTES;
}

static void fill(uint8_t *data, size_t bytes, uint64_t value)
{
	for (size_t at = 0; at < bytes; at += SECTOR) {
		memcpy(data + at, &value, sizeof(value));
		memcpy(data + at + 504, &value, sizeof(value));
	}
}

/* The value that fill() wrote at both ends of each sector; UINT64_MAX: the values differ. */
static uint64_t word_of(const uint8_t *block)
{
	uint64_t value, other;

	memcpy(&value, block, sizeof(value));
	for (size_t at = 504; at < SIM_BLOCK; at += at % SECTOR == 0 ? 504 : 8) {
		memcpy(&other, block + at, sizeof(other));
		if (other != value)
			return UINT64_MAX;
	}
	return value;
}

static bool has_data(enum sim_op kind)
{
	return kind == SIM_READ || kind == SIM_WRITE || kind == SIM_FUA;
}

uint16_t guest_used_idx(const struct guest *guest, const struct guest_queue *queue)
{
	return __atomic_load_n(&used_of(guest, queue)->idx, __ATOMIC_ACQUIRE);
}

static uint32_t n_busy(const struct guest_queue *queue)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < GUEST_DEPTH; i++)
		n += queue->requests[i].busy;
	return n;
}

/* -- completions -- */

/* Store the words of the data: of a read, in the region that the device used. */
static void note_words(const struct guest *guest, const struct guest_queue *queue, uint32_t slot,
		       struct guest_request *r)
{
	const uint8_t *data = guest->data.at + buffer_at(queue, slot);

	if (r->kind == SIM_READ && guest->old.at && !guest->old_is_free &&
	    word_of(data) == GUEST_POISON)
		data = guest->old.at + buffer_at(queue, slot);
	for (uint32_t i = 0; i < r->n_blocks; i++)
		r->words[i] = word_of(data + i * SIM_BLOCK);
	r->kept = data == guest->data.at + buffer_at(queue, slot);
}

static void complete(struct guest *guest, struct guest_queue *queue, uint32_t id, uint32_t bytes)
{
	const uint32_t slot = id / GUEST_CHAIN;
	struct guest_request *r = &queue->requests[slot % GUEST_DEPTH];
	uint8_t status;

	if (id % GUEST_CHAIN != 0 || slot >= GUEST_DEPTH || !r->busy) {
		sim_wrong("guest: queue %u: descriptor %u was returned, which is not in flight",
			  queue->index, id);
		return;
	}
	status = __atomic_load_n(header_of(guest, queue, slot) + STATUS, __ATOMIC_RELAXED);
	if (status > VIRTIO_BLK_S_UNSUPP)
		sim_wrong("guest: operation %u ended with status %u", r->op, status);
	if (status == VIRTIO_BLK_S_OK &&
	    bytes != 1 + (r->kind == SIM_READ ? r->n_blocks * SIM_BLOCK : 0))
		sim_wrong("guest: operation %u: the device reports %u written bytes", r->op, bytes);
	r->busy = false;
	if (has_data(r->kind))
		note_words(guest, queue, slot, r);
	sim_op_end(r->op,
		   status == VIRTIO_BLK_S_OK      ? 0
		   : status == VIRTIO_BLK_S_IOERR ? -EIO
						  : -EOPNOTSUPP,
		   r->words);
}

/* Take the requests that the device has returned. */
static void take_used(struct guest *guest, struct guest_queue *queue)
{
	const struct vring_used *used = used_of(guest, queue);
	uint16_t idx;

	do {
		while ((idx = guest_used_idx(guest, queue)) != queue->used_idx) {
			const struct vring_used_elem *e = &used->ring[queue->used_idx % GUEST_RING];

			if ((uint16_t)(idx - queue->used_idx) > n_busy(queue)) {
				sim_wrong("guest: queue %u: %u requests returned, %u in flight",
					  queue->index, (uint16_t)(idx - queue->used_idx),
					  n_busy(queue));
				return;
			}
			queue->used_idx++;
			complete(guest, queue, __atomic_load_n(&e->id, __ATOMIC_RELAXED),
				 __atomic_load_n(&e->len, __ATOMIC_RELAXED));
		}
		/* with event index: the word after the ring asks for the next interrupt */
		__atomic_store_n(&avail_of(guest, queue)->ring[GUEST_RING], queue->used_idx,
				 __ATOMIC_RELAXED);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
	} while (guest_used_idx(guest, queue) != queue->used_idx);
}

/* No device accesses the buffer of a request that has completed, or that it has not taken. */
static void check_buffer(const struct guest *guest, const struct guest_queue *queue, uint32_t slot)
{
	const struct guest_request *r = &queue->requests[slot];
	const uint8_t *data = guest->data.at + buffer_at(queue, slot);

	for (uint32_t i = 0; r->kept && i < r->n_blocks; i++)
		if (word_of(data + i * SIM_BLOCK) != r->words[i])
			sim_wrong("guest: a buffer has changed after its request ended (op %u)",
				  r->op);
}

/* -- requests -- */

struct chain {
	struct vring_desc desc[GUEST_CHAIN];
	uint32_t n;
};

static void add(struct chain *chain, uint64_t gpa, uint32_t bytes, uint16_t flags)
{
	chain->desc[chain->n++] = (struct vring_desc){.addr = gpa, .len = bytes, .flags = flags};
}

/* Add the buffer of a request, in one to three pieces. */
static void add_data(struct chain *chain, uint64_t gpa, uint32_t bytes, uint16_t flags)
{
	const uint32_t unit = sim_draw(2) != 0 ? SECTOR : 1;

	for (uint32_t more = sim_draw(3); more > 0; more--) {
		const uint32_t part = (1 + sim_draw(bytes / unit - more)) * unit;

		add(chain, gpa, part, flags);
		gpa += part;
		bytes -= part;
	}
	add(chain, gpa, bytes, flags);
}

/* Write the header of a request, and make its descriptors. */
static void describe(const struct guest *guest, const struct guest_queue *queue, uint32_t slot,
		     uint32_t block, struct chain *chain)
{
	static const uint32_t types[SIM_OPS] = {
		[SIM_READ] = VIRTIO_BLK_T_IN,           [SIM_WRITE] = VIRTIO_BLK_T_OUT,
		[SIM_FUA] = VIRTIO_BLK_T_OUT,           [SIM_FLUSH] = VIRTIO_BLK_T_FLUSH,
		[SIM_ZERO] = VIRTIO_BLK_T_WRITE_ZEROES, [SIM_ZERO_FUA] = VIRTIO_BLK_T_WRITE_ZEROES,
		[SIM_DISCARD] = VIRTIO_BLK_T_DISCARD};
	const struct guest_request *r = &queue->requests[slot];
	uint8_t *at = header_of(guest, queue, slot);
	const struct virtio_blk_outhdr header = {.type = types[r->kind],
						 .sector = has_data(r->kind) ? block * SECTORS : 0};
	const struct virtio_blk_discard_write_zeroes segment = {
		.sector = block * SECTORS, .num_sectors = r->n_blocks * SECTORS};

	memcpy(at, &header, sizeof(header));
	memcpy(at + SEGMENT, &segment, sizeof(segment));
	at[STATUS] = NO_STATUS;
	chain->n = 0;
	add(chain, gpa_of(guest, at), sizeof(header), 0);
	if (has_data(r->kind))
		add_data(chain, GUEST_DATA_GPA + buffer_at(queue, slot), r->n_blocks * SIM_BLOCK,
			 r->kind == SIM_READ ? VRING_DESC_F_WRITE : 0);
	else if (r->kind != SIM_FLUSH)
		add(chain, gpa_of(guest, at + SEGMENT), sizeof(segment), 0);
	add(chain, gpa_of(guest, at + STATUS), 1, VRING_DESC_F_WRITE);
}

/* Write the descriptors to the ring, or to an indirect table. */
static void place(const struct guest *guest, const struct guest_queue *queue, uint32_t slot,
		  struct chain *chain)
{
	struct vring_desc *table = (struct vring_desc *)(void *)part_of(guest, queue),
			  *to = table + slot * GUEST_CHAIN;
	const bool indirect = (guest->features >> VIRTIO_RING_F_INDIRECT_DESC & 1) != 0 &&
			      sim_draw(4) != 0;
	const uint32_t first = indirect ? 0 : slot * GUEST_CHAIN;

	for (uint32_t i = 0; i + 1 < chain->n; i++) {
		chain->desc[i].flags |= VRING_DESC_F_NEXT;
		chain->desc[i].next = (uint16_t)(first + i + 1);
	}
	if (indirect) {
		struct vring_desc *apart =
			(struct vring_desc *)(void *)(part_of(guest, queue) + GUEST_TABLES) +
			slot * GUEST_CHAIN;

		memcpy(apart, chain->desc, chain->n * sizeof(*apart));
		*to = (struct vring_desc){.addr = gpa_of(guest, apart),
					  .len = chain->n * (uint32_t)sizeof(*apart),
					  .flags = VRING_DESC_F_INDIRECT};
	} else {
		memcpy(to, chain->desc, chain->n * sizeof(*to));
	}
}

static bool wants_kick(const struct guest *guest, const struct guest_queue *queue, uint16_t before)
{
	struct vring_used *used = used_of(guest, queue);

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if ((guest->features >> VIRTIO_RING_F_EVENT_IDX & 1) == 0)
		return (__atomic_load_n(&used->flags, __ATOMIC_RELAXED) & VRING_USED_F_NO_NOTIFY) ==
		       0;
	return vring_need_event(
		__atomic_load_n((uint16_t *)(void *)&used->ring[GUEST_RING], __ATOMIC_RELAXED),
		queue->avail_idx, before);
}

/* The device uses the old or the new region while they are exchanged. */
static void fill_buffers(const struct guest *guest, uint32_t at, uint64_t value)
{
	fill(guest->data.at + at, GUEST_REQUEST_BYTES, value);
	if (guest->old.at && !guest->old_is_free)
		fill(guest->old.at + at, GUEST_REQUEST_BYTES, value);
}

static void submit(struct guest *guest, struct guest_queue *queue, uint32_t slot)
{
	const struct sim_job *job = guest->job;
	struct guest_request *r = &queue->requests[slot];
	struct vring_avail *avail = avail_of(guest, queue);
	const uint16_t before = queue->avail_idx;
	uint64_t value = sim_new_value();
	struct chain chain;
	uint32_t block;

	check_buffer(guest, queue, slot);
	*r = (struct guest_request){
		.busy = true, .kind = sim_job_draw_op(job), .began_ns = sim_now()};
	r->n_blocks = 1 + sim_draw(job->io_blocks);
	block = sim_draw(job->blocks - r->n_blocks + 1);
	if (r->kind == SIM_ZERO || r->kind == SIM_ZERO_FUA || r->kind == SIM_DISCARD)
		value = 0;
	if (r->kind == SIM_FLUSH)
		r->n_blocks = 0;
	fill_buffers(guest, buffer_at(queue, slot), r->kind == SIM_READ ? GUEST_POISON : value);
	describe(guest, queue, slot, block, &chain);
	place(guest, queue, slot, &chain);
	r->op = sim_op_begin(job->client, queue->index, r->kind, block, r->n_blocks, value);
	queue->left--;
	avail->ring[before % GUEST_RING] = (uint16_t)(slot * GUEST_CHAIN);
	queue->avail_idx++;
	__atomic_store_n(&avail->idx, queue->avail_idx, __ATOMIC_RELEASE);
	if (wants_kick(guest, queue, before))
		eventfd_write(queue->kick, 1);
}

/* Submit some requests on a queue. */
static void submit_some(struct guest *guest)
{
	struct guest_queue *queue = &guest->queues[sim_draw(guest->job->queues)];

	if (queue->left == 0)
		queue = &guest->queues[guest->job->queues - 1 - queue->index];
	for (uint32_t i = 0; i < guest->job->depth && queue->left != 0; i++)
		if (!queue->requests[i].busy) {
			submit(guest, queue, i);
			if (sim_draw(4) == 0)
				break;
		}
}

/* -- the virtual machine -- */

static void check_time(const struct guest *guest, const struct guest_queue *queue)
{
	for (uint32_t i = 0; i < GUEST_DEPTH && guest->is_attached; i++) {
		const struct guest_request *r = &queue->requests[i];
		const uint64_t from = r->began_ns > guest->attached_ns ? r->began_ns
								       : guest->attached_ns;

		if (r->busy && sim_now() - from > GUEST_PATIENCE_NS)
			sim_wrong("guest: operation %u does not end", r->op);
	}
}

void guest_wait(struct guest *guest)
{
	struct pollfd p[1 + 2 * GUEST_QUEUES];
	const uint32_t n = guest->job->queues;

	if (guest->is_attached && sim_draw(2) == 0)
		submit_some(guest);
	p[0] = (struct pollfd){.fd = guest->conn, .events = POLLIN};
	for (uint32_t i = 0; i < n; i++) {
		p[1 + i] = (struct pollfd){.fd = guest->queues[i].call, .events = POLLIN};
		p[1 + n + i] = (struct pollfd){.fd = guest->queues[i].err, .events = POLLIN};
	}
	poll(p, 1 + 2 * n, guest->conn >= 0 ? 1000 : (int)(1 + sim_draw(RECONNECT_NS / 1000000)));
	for (uint32_t i = 0; i < n; i++) {
		struct guest_queue *queue = &guest->queues[i];
		eventfd_t value;

		if (p[1 + i].revents & POLLIN && eventfd_read(queue->call, &value) == 0)
			take_used(guest, queue);
		if (p[1 + n + i].revents & POLLIN)
			sim_wrong("guest: the device has stopped queue %u", i);
		check_time(guest, queue);
	}
}

void guest_old_is_free(struct guest *guest)
{
	if (!guest->old.at || guest->old_is_free)
		return;
	for (uint32_t i = 0; i < guest->job->queues; i++)
		take_used(guest, &guest->queues[i]);
	guest->old_is_free = true;
	fill(guest->old.at, GUEST_DATA_BYTES, GUEST_POISON);
}

/* Check that nothing has accessed the released memory, and drop it. */
static void drop_old(struct guest *guest)
{
	for (uint32_t at = 0; at < GUEST_DATA_BYTES; at += SIM_BLOCK)
		if (word_of(guest->old.at + at) != GUEST_POISON)
			sim_wrong("guest: memory has changed after SET_MEM_TABLE was answered");
	guest_memory_drop(&guest->old, GUEST_DATA_BYTES);
}

/*
 * Exchange the data region while requests are in flight. The device executes each of them in the
 * old or in the new region: so both have the data of writes, and neither has that of reads.
 */
static void exchange_memory(struct guest *guest)
{
	struct guest_memory next;

	if (guest->old.at && guest->old_is_free)
		drop_old(guest);
	if (guest->old.at || !guest_memory_make(&next, GUEST_DATA_BYTES))
		return;
	memcpy(next.at, guest->data.at, GUEST_DATA_BYTES);
	for (uint32_t i = 0; i < guest->job->queues; i++)
		for (uint32_t slot = 0; slot < GUEST_DEPTH; slot++) {
			const struct guest_request *r = &guest->queues[i].requests[slot];

			if (r->busy && r->kind == SIM_READ)
				fill(next.at + buffer_at(&guest->queues[i], slot),
				     GUEST_REQUEST_BYTES, GUEST_POISON);
		}
	guest->old = guest->data;
	guest->data = next;
	guest->old_is_free = false;
	guest_set_memory(guest);
}

/*
 * Stop a queue: the device has returned the requests that it has taken, and accesses the memory of
 * no other request until the queue starts again.
 */
static void restart_queue(struct guest *guest, struct guest_queue *queue, bool starts)
{
	struct timespec pause = {.tv_nsec = 1000000};
	uint16_t base;

	if (!guest_stop_queue(guest, queue, &base))
		return;
	take_used(guest, queue);
	if (base != queue->used_idx)
		sim_wrong("guest: queue %u: the base is %u, and %u requests were returned",
			  queue->index, base, queue->used_idx);
	nanosleep(&pause, NULL); /* lint: allowed, the time is simulated */
	if (guest_used_idx(guest, queue) != queue->used_idx)
		sim_wrong("guest: queue %u: a request was returned while the queue was stopped",
			  queue->index);
	for (uint32_t i = 0; i < GUEST_DEPTH; i++) {
		const struct guest_request *r = &queue->requests[i];

		if (!r->busy)
			check_buffer(guest, queue, i);
		else if (r->kind == SIM_READ &&
			 word_of(guest->data.at + buffer_at(queue, i)) != GUEST_POISON)
			sim_wrong("guest: memory has changed after GET_VRING_BASE was answered");
	}
	if (starts)
		guest_start_queue(guest, queue, base);
}

static bool is_busy(const struct guest *guest)
{
	for (uint32_t i = 0; i < guest->job->queues; i++)
		if (n_busy(&guest->queues[i]) != 0)
			return true;
	return false;
}

static bool has_work(const struct guest *guest)
{
	for (uint32_t i = 0; i < guest->job->queues; i++)
		if (guest->queues[i].left != 0)
			return true;
	return is_busy(guest);
}

static void think(const struct sim_job *job)
{
	struct timespec ts = {.tv_nsec = (long)sim_draw(job->think_ns)};

	nanosleep(&ts, NULL); /* lint: allowed, the time is simulated */
}

static void step(struct guest *guest)
{
	if (sim_draw(8) == 0)
		think(guest->job);
	if (guest->job->guest & SIM_GUEST_EXCHANGES && sim_draw(EXCHANGE_ONE_IN) == 0)
		exchange_memory(guest);
	else if (sim_draw(STOP_ONE_IN) == 0)
		restart_queue(guest, &guest->queues[sim_draw(guest->job->queues)], true);
	if (guest->conn < 0)
		return;
	submit_some(guest);
	if (is_busy(guest))
		guest_wait(guest);
	guest_check_connection(guest);
}

static bool set_up(struct guest *guest)
{
	bool works = guest_memory_make(&guest->rings, GUEST_RINGS_BYTES) &&
		     guest_memory_make(&guest->data, GUEST_DATA_BYTES);

	guest->conn = guest->inflight_fd = -1;
	for (uint32_t i = 0; i < guest->job->queues; i++) {
		struct guest_queue *queue = &guest->queues[i];

		queue->index = i;
		queue->left = guest->job->ops;
		queue->kick = eventfd(0, EFD_CLOEXEC);
		queue->call = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		queue->err = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		works &= queue->kick >= 0 && queue->call >= 0 && queue->err >= 0;
	}
	return works;
}

/* Leave the device in order, or not. */
static void leave(struct guest *guest)
{
	const bool in_order = sim_draw(4) != 0;

	for (uint32_t i = 0; i < guest->job->queues && guest->is_attached && in_order; i++)
		restart_queue(guest, &guest->queues[i], false);
	if (guest->old.at && guest->old_is_free)
		drop_old(guest);
	guest_detach(guest);
}

VISIBLE void *sim_image_guest(void *arg)
{
	struct guest *guest = calloc(1, sizeof(*guest));

	if (!guest)
		_exit(1);
	guest->job = arg;
	if (!set_up(guest))
		_exit(1);
	while (has_work(guest))
		if (guest->conn >= 0)
			step(guest);
		else if (!guest_attach(guest))
			guest_wait(guest);
	leave(guest);
	_exit(0);
}
