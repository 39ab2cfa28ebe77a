/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pieces CONFIGURATION ROLE CONTENT - read and write a volume by lists and by plain IO
 *
 * The program has a model of the first MODEL_BYTES of the volume, which it compares with each read.
 * It writes the model to the file CONTENT, and prints a line "OFFSET LENGTH FLAGS" for each extent
 * of the volume. Exit status 1: an IO failed, or data or extents differ from the model.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include <gantry/client.h>
#include <gantry/random.h>

#define BLOCK 4096u
#define MODEL_BYTES (1u << 20)
#define IO_BLOCKS 16u
#define IOS 400
#define MOST 9u /* pieces of an IO */

static struct gantry_volume *volume;
static struct gantry_queue *queue;
static struct gantry_random random_state;
static uint8_t model[MODEL_BYTES], flat[IO_BLOCKS * BLOCK];
static uint8_t *shared; /* IO_BLOCKS blocks for pieces, then as many for plain IO */
static struct iovec pieces[MOST];

static void fail(const char *what)
{
	fprintf(stderr, "pieces: %s: %s\n", what, gantry_error());
	exit(1);
}

static uint32_t below(uint32_t n)
{
	return (uint32_t)gantry_random_below(&random_state, n);
}

static void on_done(void *arg, int result)
{
	*(int *)arg = result;
}

/* Wait for an IO. rc: the result of its submission; *result_p: 1 until it completes. */
static void finish(const char *what, int rc, const int *result_p)
{
	if (rc != 0)
		fail(what);
	while (*result_p == 1)
		gantry_queue_wait(queue, 1000);
	if (*result_p != 0) {
		fprintf(stderr, "pieces: %s: %s\n", what, strerror(-*result_p));
		exit(1);
	}
}

/* Divide the memory for pieces: lengths are any, and the order in memory is the reverse. */
static uint32_t divide(uint32_t bytes)
{
	const uint32_t n = 1 + below(MOST);
	uint8_t *end = shared + bytes;

	for (uint32_t i = 0; i < n; i++) {
		const uint32_t length = i + 1 < n ? 1 + below(bytes / 2) : bytes;

		end -= length;
		bytes -= length;
		pieces[i] = (struct iovec){end, length};
	}
	return n;
}

static void copy(uint32_t n, int to_pieces)
{
	uint8_t *at = flat;

	for (uint32_t i = 0; i < n; at += pieces[i++].iov_len)
		if (to_pieces)
			memcpy(pieces[i].iov_base, at, pieces[i].iov_len);
		else
			memcpy(at, pieces[i].iov_base, pieces[i].iov_len);
}

static void write_some(uint32_t bytes, uint64_t offset)
{
	uint8_t *plain = shared + sizeof(flat);
	int result = 1, rc;

	for (uint32_t i = 0; i < bytes; i++)
		flat[i] = (uint8_t)gantry_random_next(&random_state);
	memcpy(model + offset, flat, bytes);
	if (below(3) != 0) {
		const uint32_t n = divide(bytes);

		copy(n, 1);
		rc = gantry_queue_writev(queue, pieces, n, offset, 0, on_done, &result);
	} else {
		memcpy(plain, flat, bytes);
		rc = gantry_queue_write(queue, plain, bytes, offset, 0, on_done, &result);
	}
	finish("write", rc, &result);
}

static void read_some(uint32_t bytes, uint64_t offset, int by_list)
{
	uint8_t *plain = shared + sizeof(flat);
	int result = 1, rc;

	memset(shared, 0xee, 2 * sizeof(flat));
	if (by_list) {
		const uint32_t n = divide(bytes);

		rc = gantry_queue_readv(queue, pieces, n, offset, on_done, &result);
		finish("read of a list", rc, &result);
		copy(n, 0);
	} else {
		rc = gantry_queue_read(queue, plain, bytes, offset, on_done, &result);
		finish("read", rc, &result);
		memcpy(flat, plain, bytes);
	}
	if (memcmp(model + offset, flat, bytes) != 0) {
		fprintf(stderr, "pieces: a read%s has wrong data (offset=%llu, length=%u)\n",
			by_list ? " of a list" : "", (unsigned long long)offset, bytes);
		exit(1);
	}
}

static void check_zero(uint64_t at, uint64_t length)
{
	for (; length > 0 && at < MODEL_BYTES; at++, length--)
		if (model[at] != 0) {
			fprintf(stderr, "pieces: extents report data as zeroes (offset=%llu)\n",
				(unsigned long long)at);
			exit(1);
		}
}

static void print_extents(uint64_t size)
{
	static struct gantry_extents extents;

	for (uint64_t at = 0; at < size;) {
		int result = 1;
		int rc = gantry_queue_extents(queue, &extents, size - at, at, on_done, &result);

		finish("extents", rc, &result);
		for (uint32_t i = 0; i < extents.count; at += extents.extent[i++].length) {
			const struct gantry_extent *extent = &extents.extent[i];

			printf("%llu %u %u\n", (unsigned long long)at, extent->length,
			       extent->flags);
			if (extent->flags & GANTRY_EXTENT_ZERO)
				check_zero(at, extent->length);
		}
	}
}

static void use(void)
{
	const uint32_t blocks = MODEL_BYTES / BLOCK;

	for (int i = 0; i < IOS; i++) {
		const uint32_t n = 1 + below(IO_BLOCKS);
		const uint64_t offset = (uint64_t)below(blocks - n) * BLOCK;

		if (below(2) == 0)
			write_some(n * BLOCK, offset);
		else
			read_some(n * BLOCK, offset, below(3) != 0);
	}
	for (uint32_t at = 0; at < MODEL_BYTES; at += sizeof(flat)) {
		read_some(sizeof(flat), at, 0);
		read_some(sizeof(flat), at, 1);
	}
}

int main(int argc, char **argv)
{
	struct gantry_volume_attr attr = GANTRY_VOLUME_ATTR_INIT;
	struct gantry_volume_info info;
	FILE *file = argc == 4 ? fopen(argv[3], "w") : NULL;
	uint64_t bytes;

	if (!file) {
		fputs("usage: pieces CONFIGURATION ROLE CONTENT\n", stderr);
		return 2;
	}
	gantry_random_seed(&random_state, 7);
	attr.buffer_bytes = 2 * sizeof(flat);
	if (gantry_volume_open_role(argv[1], argv[2], &attr, &volume) != 0)
		fail("open");
	if (gantry_queue_open(volume, &queue) != 0)
		fail("queue");
	gantry_volume_get_info(volume, &info);
	shared = gantry_volume_buffers(volume, &bytes);
	use();
	print_extents(info.size);
	fwrite(model, 1, MODEL_BYTES, file);
	gantry_queue_close(&queue);
	gantry_volume_close(&volume);
	return fclose(file) ? 1 : 0;
}
