/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * image_client.c - the programs of simulated processes: `gantry run`, and a client with libgantry
 */
#include "image.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <gantry/client.h>

#include "base/log.h"
#include "cli/cli.h"
#include "memory/region.h"
#include "sim.h"
#include "topology.h"

#define VISIBLE __attribute__((visibility("default")))
#define IN_FLIGHT 32u
#define IO_BLOCKS 2u /* blocks of the longest IO with data */
#define PIECES 4u    /* most pieces of an IO with a list */

extern __thread uint64_t sim_tls_probe;
__thread uint64_t sim_tls_probe;

VISIBLE void *sim_touch_tls(void);
VISIBLE void *sim_touch_tls(void)
{
	return &sim_tls_probe;
}

static void log_line(enum gn_log_level level, const char *who, const char *message)
{
	(void)level;
	sim_log(who, message);
	if (strstr(message, "exporter: ") && strstr(message, "memory has changed"))
		sim_wrong("%s", message);
}

VISIBLE void *sim_image_run(void *path)
{
	const char *words[] = {path};
	struct gn_cli cli = {.command = "run", .args = {.word = words, .n = 1}};

	gn_log_set_hook(log_line);
	exit(gn_cli_run(&cli));
}

VISIBLE uint64_t sim_image_quarantined(void)
{
	return gn_region_quarantined();
}

/* -- a program with libgantry -- */

struct io {
	struct user *user;
	uint32_t op;
	enum sim_op kind;
	uint32_t n_blocks;
	uint8_t *buffer;
	uint32_t n_pieces; /* 0: the data is in the buffer, in order */
	struct iovec pieces[PIECES];
	bool busy;
	bool touched; /* a server may access the buffer until the queue is closed */
	bool kept;    /* the buffer must still have `words`, as when its IO completed */
	uint64_t words[64];
};

struct user {
	const struct sim_job *job;
	struct gantry_volume *volume;
	struct gantry_queue *queue;
	uint32_t number, left;
	bool has_late; /* an IO has timed out since the last fence */
	uint8_t *own;  /* buffers from gantry_volume_buffers(); NULL: buffers from malloc() */
	struct io ios[IN_FLIGHT];
};

/* The value that fill() wrote at both ends of each sector; UINT64_MAX: the values differ. */
static uint64_t word_of(const uint8_t *block)
{
	uint64_t value, other;

	memcpy(&value, block, sizeof(value));
	for (size_t at = 504; at < SIM_BLOCK; at += at % 512 == 0 ? 504 : 8) {
		memcpy(&other, block + at, sizeof(other));
		if (other != value)
			return UINT64_MAX;
	}
	return value;
}

/* Whether the buffer of an IO has words: those of its data, or of an earlier IO. */
static bool has_words(enum sim_op kind)
{
	return kind != SIM_FLUSH && kind != SIM_EXTENTS;
}

/* Divide the buffer of an IO with a list into pieces of any length, in any order. */
static void draw_pieces(struct io *io)
{
	const size_t unit = sim_draw(2) != 0 ? 1 : 512;
	size_t left = (size_t)io->n_blocks * SIM_BLOCK, at = 0;
	const uint32_t n = 2 + sim_draw(PIECES - 1);

	for (uint32_t i = 0; i < n; i++) {
		const uint32_t most = (uint32_t)(left / unit) - (n - 1 - i);

		io->pieces[i].iov_len = i + 1 < n ? (1 + sim_draw(most)) * unit : left;
		io->pieces[i].iov_base = io->buffer + at;
		left -= io->pieces[i].iov_len;
		at += io->pieces[i].iov_len;
	}
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t other = i + sim_draw(n - i);
		const struct iovec piece = io->pieces[i];

		io->pieces[i] = io->pieces[other];
		io->pieces[other] = piece;
	}
	io->n_pieces = n;
}

/* Returns the data of an IO in order. `flat`: memory for it, if it has pieces. */
static const uint8_t *data_of(const struct io *io, uint8_t *flat)
{
	uint8_t *at = flat;

	for (uint32_t i = 0; i < io->n_pieces; at += io->pieces[i++].iov_len)
		memcpy(at, io->pieces[i].iov_base, io->pieces[i].iov_len);
	return io->n_pieces != 0 ? flat : io->buffer;
}

/* Check the result of SIM_EXTENTS, and store what it states about each block. */
static void note_extents(struct io *io)
{
	const struct gantry_extents *extents = (const struct gantry_extents *)io->buffer;
	uint32_t at = 0;

	for (uint32_t i = 0; i < io->n_blocks; i++)
		io->words[i] = SIM_UNKNOWN;
	for (uint32_t i = 0; i < extents->count && i < GANTRY_EXTENTS_MAX; i++) {
		const struct gantry_extent *extent = &extents->extent[i];
		const uint32_t n = extent->length / SIM_BLOCK;

		if (n == 0 || extent->length % SIM_BLOCK != 0 || n > io->n_blocks - at ||
		    (extent->flags & ~GANTRY_EXTENT_FLAGS) != 0) {
			sim_wrong("client %u: extent %u of op %u: length %u, flags %u",
				  io->user->job->client, i, io->op, extent->length, extent->flags);
			return;
		}
		for (uint32_t k = 0; k < n && extent->flags & GANTRY_EXTENT_ZERO; k++)
			io->words[at + k] = 0;
		at += n;
	}
	if (at == 0 || extents->bytes != (uint64_t)at * SIM_BLOCK)
		sim_wrong("client %u: the extents of op %u cover %u blocks", io->user->job->client,
			  io->op, at);
}

/* Store the word of each block of the data. */
static void note_data(struct io *io)
{
	uint8_t flat[IO_BLOCKS * SIM_BLOCK];
	const uint8_t *data = data_of(io, flat);

	for (uint32_t i = 0; i < io->n_blocks; i++)
		io->words[i] = word_of(data + i * SIM_BLOCK);
}

static void done(void *arg, int result)
{
	struct io *io = arg;

	if (!io->busy)
		sim_wrong("client %u: an IO completed twice (op %u)", io->user->job->client,
			  io->op);
	io->busy = false;
	io->user->has_late |= result == -ETIMEDOUT;
	io->touched = result == -ETIMEDOUT || result == -ENOTCONN || result == -EOWNERDEAD ||
		      result == -ESTALE;
	io->kept = !io->touched && has_words(io->kind);
	if (has_words(io->kind))
		note_data(io);
	else if (io->kind == SIM_EXTENTS && result == 0)
		note_extents(io);
	sim_op_end(io->op, result, io->words);
}

/* No server accesses the buffer of an IO that has completed. */
static void check_buffer(const struct io *io)
{
	uint8_t flat[IO_BLOCKS * SIM_BLOCK];
	const uint8_t *data = io->kept ? data_of(io, flat) : NULL;

	for (uint32_t i = 0; data && i < io->n_blocks; i++)
		if (word_of(data + i * SIM_BLOCK) != io->words[i])
			sim_wrong("client %u: a buffer has changed after its IO completed (op %u)",
				  io->user->job->client, io->op);
}

enum sim_op sim_job_draw_op(const struct sim_job *job)
{
	uint32_t sum = 0, at;
	int op = 0;

	for (int i = 0; i < SIM_OPS; i++)
		sum += job->shares[i];
	at = sim_draw(sum);
	while (at >= job->shares[op])
		at -= job->shares[op++];
	return (enum sim_op)op;
}

static void fill(const struct io *io, uint8_t *data, uint64_t value)
{
	for (size_t i = 0; i < (size_t)io->n_blocks * SIM_BLOCK / 512; i++) {
		memcpy(data + i * 512, &value, sizeof(value));
		memcpy(data + i * 512 + 504, &value, sizeof(value));
	}
}

static void fill_pieces(const struct io *io, uint64_t value)
{
	uint8_t flat[IO_BLOCKS * SIM_BLOCK] = {0}, *at = flat;

	fill(io, flat, value);
	for (uint32_t i = 0; i < io->n_pieces; at += io->pieces[i++].iov_len)
		memcpy(io->pieces[i].iov_base, at, io->pieces[i].iov_len);
}

static int submit(struct user *user, struct io *io, uint32_t block, uint64_t value)
{
	uint64_t offset = (uint64_t)block * SIM_BLOCK, bytes = (uint64_t)io->n_blocks * SIM_BLOCK;
	unsigned flags = io->kind == SIM_FUA || io->kind == SIM_ZERO_FUA ? GANTRY_IO_FUA : 0;

	switch (io->kind) {
	case SIM_READ:
		return gantry_queue_read(user->queue, io->buffer, bytes, offset, done, io);
	case SIM_WRITE:
	case SIM_FUA:
		fill(io, io->buffer, value);
		return gantry_queue_write(user->queue, io->buffer, bytes, offset, flags, done, io);
	case SIM_FLUSH:
		return gantry_queue_flush(user->queue, done, io);
	case SIM_ZERO:
	case SIM_ZERO_FUA:
		return gantry_queue_write_zeroes(user->queue, bytes, offset, flags, done, io);
	case SIM_READ_LIST:
		return gantry_queue_readv(user->queue, io->pieces, io->n_pieces, offset, done, io);
	case SIM_WRITE_LIST:
		fill_pieces(io, value);
		return gantry_queue_writev(user->queue, io->pieces, io->n_pieces, offset, 0, done,
					   io);
	case SIM_EXTENTS:
		return gantry_queue_extents(user->queue, (struct gantry_extents *)io->buffer, bytes,
					    offset, done, io);
	default:
		return gantry_queue_discard(user->queue, bytes, offset, done, io);
	}
}

/* Start one IO. Returns false if the session accepts no more IOs. */
static bool start(struct user *user, struct io *io)
{
	const struct sim_job *job = user->job;
	uint64_t value = sim_new_value();
	uint32_t block;
	int rc;

	if (user->own)
		check_buffer(io);
	io->user = user;
	io->kind = sim_job_draw_op(job);
	io->kept = false;
	io->n_pieces = 0;
	io->n_blocks = 1 + sim_draw(io->kind == SIM_EXTENTS ? job->blocks : job->io_blocks);
	block = job->first + sim_draw(job->blocks - io->n_blocks + 1);
	if (io->kind == SIM_ZERO || io->kind == SIM_ZERO_FUA || io->kind == SIM_DISCARD)
		value = 0;
	if (io->kind == SIM_FLUSH)
		io->n_blocks = 0;
	if (io->kind == SIM_READ_LIST || io->kind == SIM_WRITE_LIST)
		draw_pieces(io);
	io->op = sim_op_begin(job->client, user->number, io->kind, block, io->n_blocks, value);
	io->busy = true;
	rc = submit(user, io, block, value);
	if (rc == 0)
		return true;
	io->busy = false;
	sim_op_end(io->op, -ECANCELED, NULL); /* libgantry has rejected the IO: it has no effect */
	return rc == -EAGAIN;
}

static struct io *free_io(struct user *user)
{
	for (uint32_t i = 0; i < user->job->depth; i++)
		if (!user->ios[i].busy && !(user->own && user->ios[i].touched))
			return &user->ios[i];
	return NULL;
}

static void think(const struct sim_job *job)
{
	struct timespec ts = {.tv_nsec = (long)sim_draw(job->think_ns)};

	nanosleep(&ts, NULL); /* lint: allowed, the time is simulated */
}

/* Wait, with or without a limit, for the answers to the writes that have timed out. */
static void fence(struct user *user)
{
	uint64_t begin = sim_fence_begin();

	user->has_late = false;
	if (gantry_queue_fence(user->queue, sim_draw(2) != 0 ? -1 : 100) == 0)
		sim_fence_end(user->job->client, user->number, begin);
}

static uint32_t n_busy(const struct user *user)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < user->job->depth; i++)
		n += user->ios[i].busy;
	return n;
}

/*
 * The queue is closed, so no server accesses its buffers: the program writes to them, and must then
 * read what it wrote. Another thread can end the session at this time, which moves the memory: then
 * a buffer can also have its old content.
 */
static void use_buffers(struct user *user)
{
	const uint32_t n = user->job->depth * user->job->io_blocks * (SIM_BLOCK / 512);
	uint64_t before[IN_FLIGHT * 2 * (SIM_BLOCK / 512)], now, mark = sim_new_value();

	for (uint32_t i = 0; i < n; i++) {
		memcpy(&before[i], user->own + i * 512, 8);
		memcpy(user->own + i * 512, &mark, 8);
	}
	think(user->job);
	for (uint32_t i = 0; i < n; i++) {
		memcpy(&now, user->own + i * 512, 8);
		if (now != mark && now != before[i])
			sim_wrong("client %u: a buffer has changed after gantry_queue_close()",
				  user->job->client);
	}
}

static void *use_queue(void *arg)
{
	struct user *user = arg;
	const struct sim_job *job = user->job;
	struct io *io;
	bool works = gantry_queue_open(user->volume, &user->queue) == 0;

	if (!works)
		return NULL;
	for (uint32_t i = 0; i < job->depth; i++) {
		user->ios[i].buffer = user->own ? user->own + i * job->io_blocks * SIM_BLOCK
						: calloc(job->io_blocks, SIM_BLOCK);
		works &= user->ios[i].buffer != NULL;
	}
	while (works && user->left > 0) {
		if (sim_draw(8) == 0) {
			think(job);
			/* earlier IOs may not have been sent yet */
			gantry_queue_poll(user->queue);
		}
		if (user->has_late && sim_draw(8) == 0)
			fence(user);
		io = free_io(user);
		if (!io && n_busy(user) == 0)
			break; /* all buffers are in quarantine */
		if (!io || sim_draw(4) == 0) {
			works = gantry_queue_wait(user->queue, 1000) >= 0;
			continue;
		}
		works = start(user, io);
		user->left--;
	}
	gantry_queue_close(&user->queue);
	for (uint32_t i = 0; i < job->depth; i++) {
		if (user->ios[i].busy)
			sim_wrong(
				"client %u: an IO did not complete before gantry_queue_close() returned (op %u)",
				job->client, user->ios[i].op);
		if (!user->own)
			free(user->ios[i].buffer);
	}
	if (user->own)
		use_buffers(user);
	return NULL;
}

/* Returns the number of the volume that the session reached, from its UUID. */
static uint32_t number_of(const struct gantry_volume *volume)
{
	struct gantry_volume_info info;

	gantry_volume_get_info(volume, &info);
	if (info.uuid[15] == 0 || info.uuid[15] > SIM_VOLUMES) {
		sim_wrong("a volume has a UUID that was not given to it");
		return 0;
	}
	return info.uuid[15] - 1u;
}

static bool is_refused(const struct sim_job *job, const struct gantry_volume *volume)
{
	struct gantry_volume_info info;

	gantry_volume_get_info(volume, &info);
	return job->has_legs && !sim_is_first_uuid(info.uuid);
}

/* Use all queues of the volume. Returns the number of operations that are left. */
static uint32_t use_volume(const struct sim_job *job, struct gantry_volume *volume, uint64_t stride)
{
	struct user *users = calloc(job->queues, sizeof(*users));
	pthread_t threads[8];
	bool runs[8] = {false};
	uint64_t own_bytes;
	uint8_t *own = gantry_volume_buffers(volume, &own_bytes);
	uint32_t left = 0;

	if (!users)
		return job->ops;
	for (uint32_t i = 0; i < job->queues; i++) {
		users[i] =
			(struct user){.job = job, .volume = volume, .number = i, .left = job->ops};
		if (job->own)
			users[i].own = own + i * stride;
		if (i != 0)
			runs[i] = pthread_create(&threads[i], NULL, use_queue, &users[i]) == 0;
	}
	use_queue(&users[0]);
	for (uint32_t i = 1; i < job->queues; i++)
		if (runs[i])
			pthread_join(threads[i], NULL);
	for (uint32_t i = 0; i < job->queues; i++)
		left += users[i].left;
	free(users);
	return left;
}

VISIBLE void *sim_image_client(void *arg)
{
	const struct sim_job *job = arg;
	struct gantry_volume_attr attr = GANTRY_VOLUME_ATTR_INIT;
	struct gantry_volume *volume;
	uint32_t left;
	char role[16];
	int rc;

	snprintf(role, sizeof(role), "load%u", job->volume);
	attr.queues = job->queues;
	attr.depth = job->depth;
	attr.copy_bytes = job->io_blocks * SIM_BLOCK;
	if (job->own)
		attr.buffer_bytes = (uint64_t)job->queues * job->depth * attr.copy_bytes;
	sim_session_opens(job->client);
	rc = gantry_volume_open_role(job->file, role, &attr, &volume);
	if (rc != 0) {
		sim_log("client", gantry_error());
		exit(1);
	}
	if (is_refused(job, volume)) {
		sim_log("client", "another volume");
		gantry_volume_close(&volume);
		exit(1);
	}
	sim_session_started(job->client, job->knows_uuids ? number_of(volume) : job->volume);
	left = use_volume(job, volume, (uint64_t)job->depth * attr.copy_bytes);
	gantry_volume_close(&volume);
	exit(left != 0);
}
