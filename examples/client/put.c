/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * put.c - stores a file in a volume, reads it back and compares
 *
 *     cc -O2 -o put put.c $(pkg-config --cflags --libs gantry)
 *     truncate -s 64MiB volume.img
 *     gantry run put.conf --role store
 *     ./put gantry:///volume0 FILE
 *     ./put put.conf app FILE
 *
 * gantry runs in another terminal. The first form opens the volume that a URI names, the second form
 * opens the volume of a role in a configuration. The program is C11 and C++17. What it does after an
 * error:
 *
 *     -EAGAIN of a submit     wait for completions, then submit again
 *     -ETIMEDOUT, -ECANCELED  wait until no late write can change the volume, then repeat all
 *     -EIO of a flush         if the verifier has changed, acknowledged writes may be lost: repeat
 *                             all writes since the last successful flush
 *     any other error         end: the volume is full or read-only, or the session is lost
 *
 * The program can repeat writes because it knows their data and no other program writes to the same
 * blocks. It uses ordinary buffers, which the library copies, so it can use them again after any
 * error. A buffer of gantry_volume_buffers() saves that copy, but the server can still access it
 * after -ETIMEDOUT.
 */
#include <gantry/client.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ATTEMPTS 5
#define DEPTH 8

struct put {
	struct gantry_volume *volume;
	struct gantry_queue *queue;
	struct gantry_volume_info info;
	char *data, *copy; /* the file, and the data read back; whole blocks */
	uint64_t bytes;    /* length of data, and of copy */
	int error;         /* first error of the IOs of a pass */
};

static int failed(const char *what, const char *why)
{
	fprintf(stderr, "put: cannot %s: %s\n", what, why);
	return -1;
}

/* Completion of an IO: called from gantry_queue_wait(), with 0 or -errno. */
static void done(void *arg, int result)
{
	struct put *put = (struct put *)arg;

	if (result && !put->error)
		put->error = result;
}

static void wait_for_all(struct put *put)
{
	while (gantry_queue_inflight(put->queue))
		gantry_queue_wait(put->queue, -1);
}

/* -- passes: each returns 0 or -errno, and leaves no IO in flight -- */

enum direction { WRITE, READ };

static int submit(struct put *put, enum direction direction, uint64_t offset, uint64_t length)
{
	int rc;

	for (;;) {
		if (direction == WRITE)
			rc = gantry_queue_write(put->queue, put->data + offset, length, offset, 0,
						done, put);
		else
			rc = gantry_queue_read(put->queue, put->copy + offset, length, offset, done,
					       put);
		if (rc != -EAGAIN)
			return rc;
		gantry_queue_wait(put->queue, -1); /* the queue is full: wait for a completion */
	}
}

static int pass(struct put *put, enum direction direction)
{
	const uint64_t longest = gantry_volume_copy_bytes(put->volume);
	uint64_t length;
	int rc = 0;

	put->error = 0;
	for (uint64_t at = 0; at < put->bytes && !rc; at += length) {
		length = put->bytes - at < longest ? put->bytes - at : longest;
		rc = submit(put, direction, at, length);
	}
	if (rc)
		failed("submit an IO", gantry_error()); /* before another call replaces the text */
	wait_for_all(put);
	return rc ? rc : put->error;
}

/* A write is on stable storage when a later flush has succeeded. */
static int write_pass(struct put *put)
{
	int rc = pass(put, WRITE);

	if (!rc && gantry_op_in(GANTRY_OP_FLUSH, put->info.ops)) {
		rc = gantry_queue_flush(put->queue, done, put);
		wait_for_all(put);
	}
	return rc ? rc : put->error;
}

static int read_pass(struct put *put)
{
	return pass(put, READ);
}

/* -- errors -- */

/* Returns 1 if the same pass can succeed now. */
static int can_repeat(struct put *put, int rc)
{
	uint64_t verifier = put->info.verifier;

	switch (rc) {
	case -ETIMEDOUT:
	case -ECANCELED:
		rc = gantry_queue_fence(put->queue, -1);
		if (rc)
			failed("wait for late writes", gantry_error());
		return rc == 0;
	case -EIO:
		gantry_volume_get_info(put->volume, &put->info);
		return put->info.verifier != verifier;
	default:
		return 0;
	}
}

static int repeat(struct put *put, const char *what, int (*run)(struct put *put))
{
	int rc = run(put);

	for (int i = 1; rc && i < ATTEMPTS && can_repeat(put, rc); i++) {
		fprintf(stderr, "put: %s again after an error: %s\n", what, strerror(-rc));
		rc = run(put);
	}
	return rc ? failed(what, strerror(-rc)) : 0;
}

static int transfer(struct put *put)
{
	if (repeat(put, "write", write_pass) || repeat(put, "read", read_pass))
		return -1;
	if (memcmp(put->data, put->copy, put->bytes))
		return failed("read", "the volume has other data");
	printf("stored %llu bytes\n", (unsigned long long)put->bytes);
	return 0;
}

/* -- the file -- */

/* Read the whole file, and fill its last block with zeroes. */
static int load(struct put *put, FILE *file)
{
	const uint64_t block = put->info.block_size;
	long size;

	if (fseek(file, 0, SEEK_END) || (size = ftell(file)) < 0 || fseek(file, 0, SEEK_SET))
		return failed("read the file", strerror(errno));
	put->bytes = ((uint64_t)size + block - 1) / block * block;
	if (put->bytes > put->info.size)
		return failed("store the file", "it is longer than the volume");
	put->data = (char *)calloc(1, put->bytes + 1);
	put->copy = (char *)calloc(1, put->bytes + 1);
	if (!put->data || !put->copy)
		return failed("read the file", strerror(ENOMEM));
	if (fread(put->data, 1, (size_t)size, file) != (size_t)size)
		return failed("read the file", "it has changed, or cannot be read");
	return 0;
}

static int put_file(struct put *put, const char *path)
{
	FILE *file = fopen(path, "rb");
	int rc;

	if (!file)
		return failed(path, strerror(errno));
	rc = load(put, file);
	fclose(file);
	if (!rc)
		rc = transfer(put);
	free(put->data);
	free(put->copy);
	return rc;
}

int main(int argc, char **argv)
{
	struct gantry_volume_attr attr = GANTRY_VOLUME_ATTR_INIT;
	struct put put;
	int rc;

	if (argc != 3 && argc != 4) {
		fprintf(stderr, "usage: put URI FILE\n       put CONFIGURATION ROLE FILE\n");
		return 2;
	}
	memset(&put, 0, sizeof(put));
	attr.depth = DEPTH;
	rc = argc == 3 ? gantry_volume_open(argv[1], &attr, &put.volume)
		       : gantry_volume_open_role(argv[1], argv[2], &attr, &put.volume);
	if (rc) {
		failed("open the volume", gantry_error());
		return 1;
	}
	gantry_volume_get_info(put.volume, &put.info);
	rc = gantry_queue_open(put.volume, &put.queue);
	if (rc)
		failed("open a queue", gantry_error());
	else
		rc = put_file(&put, argv[argc - 1]);
	/* Close in this order also after an error. After that no server accesses our memory. */
	gantry_queue_close(&put.queue);
	gantry_volume_close(&put.volume);
	return rc ? 1 : 0;
}
