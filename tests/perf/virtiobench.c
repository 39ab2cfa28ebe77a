/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * virtiobench.c - random reads of 4 KiB from a vhost-user-blk device
 *
 *     virtiobench SOCKET DEPTH MS MIB
 *
 * SOCKET of the device, DEPTH requests in flight, for MS milliseconds after a tenth of that, of the
 * first MIB of the volume. The front end polls the used ring, so the device sends no interrupts. It
 * sends a kick if the device asks for one. Each request is one indirect descriptor. With
 * VIRTIO_PACKED=1 in the environment the ring is packed. Prints thousands of requests per second,
 * all requests, and the kicks.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>

#include "walk/virtio_front.h"

#define BLOCK 4096u
#define PARTS 3u /* header, data, status */
#define MOST 32u

static struct {
	uint64_t n_blocks, n_done, n_kicks;
} bench;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static struct virtio_blk_outhdr *header(unsigned i)
{
	return (struct virtio_blk_outhdr *)(void *)at(HEADER + i * 32);
}

static void describe(unsigned i)
{
	const struct vring_desc part[PARTS] = {
		{GPA + HEADER + i * 32, sizeof(*header(i)), VRING_DESC_F_NEXT, 1},
		{GPA + DATA + i * BLOCK, BLOCK, VRING_DESC_F_WRITE | VRING_DESC_F_NEXT, 2},
		{GPA + HEADER + i * 32 + 16, 1, VRING_DESC_F_WRITE, 0}};
	const uint64_t table = TABLE + i * sizeof(part);

	for (uint32_t k = 0; k < PARTS; k++)
		set_entry(table, k, part[k]);
	descs()[i] = (struct vring_desc){GPA + table, sizeof(part), VRING_DESC_F_INDIRECT, 0};
	header(i)->type = VIRTIO_BLK_T_IN;
}

static void prepare(unsigned i)
{
	header(i)->sector = gantry_random_below(&random_state, bench.n_blocks) * (BLOCK / SECTOR);
	*at(HEADER + i * 32 + 16) = 0x55;
	add((uint16_t)i);
}

/* Make what was added visible to the device, and wake it if it sleeps. */
static void submit(void)
{
	if (!expose())
		return;
	eventfd_write(kick, 1);
	bench.n_kicks++;
}

/* Take what the device has returned, and submit as much again. */
static void turn(void)
{
	if (!has_used())
		return;
	while (has_used()) {
		const unsigned i = take_used().id;

		if (i >= MOST || *at(HEADER + i * 32 + 16) != VIRTIO_BLK_S_OK)
			fail("request %u failed", i);
		bench.n_done++;
		prepare(i);
	}
	submit();
}

/* Returns the requests that were done. */
static uint64_t run(uint64_t ns)
{
	const uint64_t end = now_ns() + ns, before = bench.n_done;

	while (now_ns() < end)
		for (unsigned i = 0; i < 1000; i++)
			turn();
	if (bench.n_done == before)
		fail("the device returns nothing");
	return bench.n_done - before;
}

int main(int argc, char **argv)
{
	const unsigned depth = argc == 5 ? (unsigned)atoi(argv[2]) : 0;
	const uint64_t ms = argc == 5 ? strtoull(argv[3], NULL, 10) : 0;
	uint64_t begin, n;

	if (!depth || depth > MOST || !ms)
		fail("usage: virtiobench SOCKET DEPTH MS MIB (DEPTH at most %u)", MOST);
	path = argv[1];
	uses_packed = getenv("VIRTIO_PACKED") != NULL;
	gantry_random_seed(&random_state, 1);
	set_up();
	bench.n_blocks = strtoull(argv[4], NULL, 10) << 20 >> 12;
	want_no_calls();
	for (unsigned i = 0; i < depth; i++) {
		describe(i);
		prepare(i);
	}
	submit();
	run(ms * 100000);
	begin = now_ns();
	n = run(ms * 1000000);
	printf("virtio_rate %.5g kIO/s\nvirtio_requests %llu\nvirtio_kicks %llu\n",
	       (double)n * 1e6 / (double)(now_ns() - begin), (unsigned long long)bench.n_done,
	       (unsigned long long)bench.n_kicks);
	return 0;
}
