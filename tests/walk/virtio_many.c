/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * virtio_many.c - many requests at a time
 *
 * Request i uses descriptors PARTS * i onwards, memory and blocks of its own. So the device can
 * execute the requests in any order. It must return each of them once.
 */
#include "virtio_front.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define PARTS 4u /* header, two pieces of data, status */
#define REQUESTS (NUM / PARTS)
#define PIECE 4096u
#define BYTES (2 * PIECE)
#define FIRST_HEADER 0xe000u /* guest memory: header and status of each request, 32 bytes */

static struct one {
	int is_busy;
	uint32_t type;
	uint8_t data[BYTES]; /* in the volume */
} ones[REQUESTS];
static unsigned n_busy;
static unsigned long n_zeroes;
static int reconnects;
static uint64_t first_data = DATA;

/* Address of a piece of data: the pieces of a request are not adjacent. */
static char *piece_at(unsigned i, unsigned k)
{
	return at(first_data + (2 * i + k) * 2 * PIECE);
}

static void describe(unsigned i)
{
	const uint16_t in = ones[i].type == VIRTIO_BLK_T_IN ? VRING_DESC_F_WRITE : 0;
	struct vring_desc *d = &descs()[PARTS * i];

	d[0] = (struct vring_desc){GPA + FIRST_HEADER + i * 32, sizeof(struct virtio_blk_outhdr),
				   VRING_DESC_F_NEXT, (uint16_t)(PARTS * i + 1)};
	for (unsigned k = 0; k < 2; k++)
		d[1 + k] = (struct vring_desc){GPA + first_data + (2 * i + k) * 2 * PIECE, PIECE,
					       (uint16_t)(in | VRING_DESC_F_NEXT),
					       (uint16_t)(PARTS * i + 2 + k)};
	d[3] = (struct vring_desc){GPA + FIRST_HEADER + i * 32 + 16, 1, VRING_DESC_F_WRITE, 0};
	if (ones[i].type == VIRTIO_BLK_T_WRITE_ZEROES) {
		d[1].len = sizeof(struct virtio_blk_discard_write_zeroes);
		d[1].next = (uint16_t)(PARTS * i + 3);
	}
}

/* Fill the data of a request, and what the volume contains afterwards. */
static void make_data(unsigned i)
{
	const struct virtio_blk_discard_write_zeroes segment = {.sector = i * BYTES / SECTOR,
								.num_sectors = BYTES / SECTOR};

	if (ones[i].type == VIRTIO_BLK_T_WRITE_ZEROES) {
		memset(ones[i].data, 0, BYTES);
		memcpy(piece_at(i, 0), &segment, sizeof(segment));
		return;
	}
	if (ones[i].type == VIRTIO_BLK_T_OUT)
		fill_random(ones[i].data, BYTES);
	for (unsigned k = 0; k < 2; k++)
		if (ones[i].type == VIRTIO_BLK_T_IN)
			memset(piece_at(i, k), 0xee, PIECE);
		else
			memcpy(piece_at(i, k), ones[i].data + k * PIECE, PIECE);
}

static void submit(unsigned i, uint32_t type)
{
	const struct virtio_blk_outhdr header = {
		.type = type, .sector = type == VIRTIO_BLK_T_WRITE_ZEROES ? 0 : i * BYTES / SECTOR};

	ones[i].is_busy = 1;
	ones[i].type = type;
	n_busy++;
	memcpy(at(FIRST_HEADER + i * 32), &header, sizeof(header));
	*at(FIRST_HEADER + i * 32 + 16) = 0x55;
	make_data(i);
	describe(i);
	publish((uint16_t)(PARTS * i));
}

static uint32_t random_type(void)
{
	if (n_requests < REQUESTS) /* there is nothing to read yet */
		return VIRTIO_BLK_T_OUT;
	if (below(4) == 0 && zeroes_max >= BYTES / SECTOR)
		return VIRTIO_BLK_T_WRITE_ZEROES;
	return below(2) ? VIRTIO_BLK_T_IN : VIRTIO_BLK_T_OUT;
}

/* Submit requests until n are in flight, in a random order. */
static void submit_up_to(unsigned n)
{
	while (n_busy < n) {
		const unsigned i = below(REQUESTS);

		if (!ones[i].is_busy)
			submit(i, random_type());
	}
}

static void check_returned(void)
{
	const struct vring_used_elem element = take_used();
	const unsigned i = element.id / PARTS;

	int is_read;

	if (element.id % PARTS != 0 || i >= REQUESTS || !ones[i].is_busy)
		fail("request %u is returned, but is not in flight", element.id);
	is_read = ones[i].type == VIRTIO_BLK_T_IN;
	if (*at(FIRST_HEADER + i * 32 + 16) != VIRTIO_BLK_S_OK)
		fail("request %u failed", i);
	if (element.len != (is_read ? BYTES : 0) + 1)
		fail("request %u: %u bytes are written", i, element.len);
	for (unsigned k = 0; is_read && k < 2; k++)
		if (memcmp(piece_at(i, k), ones[i].data + k * PIECE, PIECE) != 0)
			fail("request %u: a read has wrong data", i);
	ones[i].is_busy = 0;
	n_busy--;
	n_requests++;
	n_zeroes += ones[i].type == VIRTIO_BLK_T_WRITE_ZEROES;
}

/* Returns 0 if the device has disconnected, and the front end is not to connect again. */
static int wait_returned(int ms)
{
	struct pollfd p[2] = {{.fd = call, .events = POLLIN}, {.fd = conn, .events = POLLIN}};
	eventfd_t value;

	/* with event index the device calls after some of the requests, and not before */
	if (uses_events && want_call((uint16_t)(n_busy > 1 ? below(n_busy) : 0)))
		ms = 0;
	if (poll(p, 2, ms) < 1 && ms == TIMEOUT_MS)
		fail("%u requests are not returned", n_busy);
	if (p[0].revents)
		eventfd_read(call, &value);
	if (p[1].revents) {
		if (!reconnects)
			return 0;
		reconnect();
	}
	while (has_used())
		check_returned();
	return 1;
}

/* Write all blocks, so that each read has data to compare with. */
static void fill(void)
{
	for (unsigned i = 0; i < REQUESTS; i++)
		submit(i, VIRTIO_BLK_T_OUT);
	while (n_busy != 0)
		if (!wait_returned(TIMEOUT_MS))
			fail("the device has disconnected");
}

void many(const char *until)
{
	reconnects = inflight_fd >= 0;
	fill();
	while (access(until, F_OK) != 0) {
		submit_up_to(1 + below(REQUESTS));
		if (!wait_returned(TIMEOUT_MS)) {
			printf("%lu requests, then the device has disconnected\n", n_requests);
			return;
		}
	}
	while (n_busy != 0)
		if (!wait_returned(TIMEOUT_MS))
			return;
	for (unsigned k = 0; k < 10; k++) /* nothing is returned twice */
		wait_returned(20);
	printf("%lu requests, %lu writes of zeroes, %lu devices\n", n_requests, n_zeroes,
	       1 + n_reconnects);
}

void drain(const char *begun)
{
	struct pollfd p = {.fd = conn, .events = POLLIN};

	submit_up_to(REQUESTS);
	poll(NULL, 0, 500); /* the lane takes them: the role does not return others when it ends */
	close(open(begun, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	if (poll(&p, 1, TIMEOUT_MS) != 1)
		fail("the device does not disconnect");
	if (!all_returned())
		fail("the device has disconnected before it returned all requests");
}

/* -- a target that does not answer -- */

#define BOUND_MS 8000 /* limit of an answer; the role has a drain_timeout of 300 ms */

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/*
 * Fill the memory of the reads in flight, into which the target can have written until the device
 * answered.
 */
static void fill_reads(void)
{
	for (unsigned i = 0; i < REQUESTS; i++)
		for (unsigned k = 0; ones[i].is_busy && ones[i].type == VIRTIO_BLK_T_IN && k < 2;
		     k++)
			memset(piece_at(i, k), 0xee, PIECE);
}

/* No agent has written to the memory of a read in flight since. */
static void check_untouched(void)
{
	for (unsigned i = 0; i < REQUESTS; i++)
		for (unsigned k = 0;
		     ones[i].is_busy && ones[i].type == VIRTIO_BLK_T_IN && k < 2 * PIECE; k++)
			if (piece_at(i, k / PIECE)[k % PIECE] != (char)0xee)
				fail("memory of a request in flight has changed");
}

static void wait_all(void)
{
	while (n_busy != 0)
		wait_returned(TIMEOUT_MS);
}

/* GET_VRING_BASE is answered although the target is stopped. */
static void stop_stalled(pid_t target, int goes_on)
{
	const uint32_t base = stop_queue();

	while (has_used())
		check_returned();
	fill_reads();
	if (goes_on) {
		kill(target, SIGCONT);
		poll(NULL, 0, 1500); /* the session resumes */
		check_untouched();
	}
	if (has_used())
		fail("a queue that has stopped returns a request");
	start_queue(base);
}

/* A region without the ring, and with the data of no request or of all, goes and comes. */
static void move_stalled(void)
{
	const struct {
		uint64_t padding;
		struct region region;
	} slot = {0, {GPA + HALF, HALF, (uintptr_t)high, HALF + GAP}};

	must(38, &slot, sizeof(slot), NULL, 0);       /* REM_MEM_REG */
	must(37, &slot, sizeof(slot), &memory_fd, 1); /* ADD_MEM_REG */
}

void stall(pid_t target)
{
	reconnects = 1;
	fill();
	for (unsigned round = 0; round < 10; round++) {
		uint64_t begun, took;

		first_data = round < 5 ? DATA : HALF;
		/* some are returned, and not in the order of the available ring */
		submit_up_to(REQUESTS);
		wait_returned(20);
		kill(target, SIGSTOP);
		submit_up_to(REQUESTS);
		poll(NULL, 0, 50); /* the lane takes them */
		begun = now_ms();
		if (round % 5 < 2)
			stop_stalled(target, round % 5);
		else if (round % 5 == 2 && set_memory() != 0)
			fail("the memory cannot be set");
		else if (round % 5 == 3)
			move_stalled();
		else if (round % 5 == 4)
			reconnect();
		took = now_ms() - begun;
		printf("round %u: %llu ms\n", round, (unsigned long long)took);
		if (took > BOUND_MS)
			fail("answers take too long");
		kill(target, SIGCONT);
		wait_all();
		for (unsigned i = 0; i < 20; i++) {
			submit_up_to(1 + below(REQUESTS));
			wait_returned(TIMEOUT_MS);
		}
		wait_all();
	}
	for (unsigned k = 0; k < 10; k++) /* nothing is returned twice */
		wait_returned(20);
}
