/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doca_compress.c - compression contexts: deflate, decompression of deflate and LZ4, checksums of
 * the uncompressed data
 *
 * The four task types use one structure and differ only in the function that runs. A failed task
 * leaves both buffers unchanged.
 */
#include <doca_compress.h>

#include <endian.h>
#include <stdlib.h>

#include "buf/buf.h"
#include "common/gd_log.h"
#include "compute/compress.h"
#include "compute/serial.h"
#include "device/gd_device.h"

#define MAX_BYTES ((uint64_t)128 << 20) /* maximum length of a source and of a result */

enum kind { COMPRESS, DECOMPRESS, LZ4_STREAM, LZ4_BLOCK, N_KINDS };

struct doca_compress {
	struct gd_serial serial; /* must be first */
	struct gd_pool pools[N_KINDS];
	struct gd_zip *zip;
};

struct compress_task {
	struct doca_task task; /* must be first */
	const struct doca_buf *src;
	struct doca_buf *dst;
	uint32_t crc, adler, xxh;
	uint8_t has_block_checksum, are_blocks_independent;
};

static const struct gd_ctx_ops ctx_ops = GD_SERIAL_CTX("compress");

/* -- execution -- */

static doca_error_t check(const struct doca_task *task)
{
	const struct compress_task *t = (const struct compress_task *)task;

	if (!t->src || !t->dst || !gd_serial_can_use(task->ctx, t->src, t->dst) ||
	    gd_buf_data_bytes(t->src) > MAX_BYTES || gd_buf_room(t->dst) == 0)
		return DOCA_ERROR_INVALID_VALUE;
	return DOCA_SUCCESS;
}

/* Source and destination of a task, and the length of the result. */
struct ends {
	const uint8_t *source;
	size_t n;
	struct gd_serial_dst room;
	size_t length;
};

static doca_error_t get_ends(struct gd_serial *serial, const struct compress_task *t,
			     struct ends *e)
{
	doca_error_t result = check(&t->task);

	if (result == DOCA_SUCCESS)
		result = gd_serial_source(serial, t->src, &e->source, &e->n);
	if (result == DOCA_SUCCESS)
		result = gd_serial_room(serial, t->dst, MAX_BYTES, &e->room);
	e->length = e->room.size;
	return result;
}

static struct gd_zip *zip_of(struct gd_serial *serial)
{
	return ((struct doca_compress *)serial)->zip;
}

static doca_error_t run_compress(struct gd_serial *serial, struct doca_task *task)
{
	struct compress_task *t = (struct compress_task *)task;
	struct ends e;
	doca_error_t result = get_ends(serial, t, &e);

	if (result == DOCA_SUCCESS)
		result = gd_deflate(zip_of(serial), e.source, e.n, e.room.bytes, &e.length);
	if (result != DOCA_SUCCESS)
		return result;
	t->crc = gd_crc32(e.source, e.n);
	t->adler = gd_adler32(e.source, e.n);
	return gd_serial_put(&e.room, e.length);
}

/* Complete a decompression: compute the checksums and store the result. */
static doca_error_t put(struct compress_task *t, enum kind kind, const struct ends *e)
{
	t->crc = gd_crc32(e->room.bytes, e->length);
	if (kind == DECOMPRESS)
		t->adler = gd_adler32(e->room.bytes, e->length);
	else
		/* programs compare it with the checksum of a frame that they read as big-endian */
		t->xxh = htobe32(gd_xxh32(e->room.bytes, e->length));
	return gd_serial_put(&e->room, e->length);
}

static doca_error_t run_decompress(struct gd_serial *serial, struct doca_task *task)
{
	struct compress_task *t = (struct compress_task *)task;
	struct ends e;
	doca_error_t result = get_ends(serial, t, &e);

	if (result == DOCA_SUCCESS)
		result = gd_inflate(zip_of(serial), e.source, e.n, e.room.bytes, &e.length);
	return result == DOCA_SUCCESS ? put(t, DECOMPRESS, &e) : result;
}

static doca_error_t run_lz4_stream(struct gd_serial *serial, struct doca_task *task)
{
	struct compress_task *t = (struct compress_task *)task;
	struct ends e;
	doca_error_t result = get_ends(serial, t, &e);

	if (result == DOCA_SUCCESS)
		result = gd_lz4_stream(e.source, e.n, t->has_block_checksum,
				       t->are_blocks_independent, e.room.bytes, &e.length);
	return result == DOCA_SUCCESS ? put(t, LZ4_STREAM, &e) : result;
}

static doca_error_t run_lz4_block(struct gd_serial *serial, struct doca_task *task)
{
	struct compress_task *t = (struct compress_task *)task;
	struct ends e;
	doca_error_t result = get_ends(serial, t, &e);

	if (result == DOCA_SUCCESS)
		result = gd_lz4_block(e.source, e.n, e.room.bytes, &e.length);
	return result == DOCA_SUCCESS ? put(t, LZ4_BLOCK, &e) : result;
}

static const struct gd_serial_ops task_ops[N_KINDS] = {
	[COMPRESS] = GD_SERIAL_TASK(check, run_compress),
	[DECOMPRESS] = GD_SERIAL_TASK(check, run_decompress),
	[LZ4_STREAM] = GD_SERIAL_TASK(check, run_lz4_stream),
	[LZ4_BLOCK] = GD_SERIAL_TASK(check, run_lz4_block),
};

static bool supports(enum kind kind)
{
	return kind == LZ4_STREAM || kind == LZ4_BLOCK ? GD_HAVE_LZ4 : GD_HAVE_DEFLATE;
}

/* -- the object -- */

doca_error_t doca_compress_create(struct doca_dev *dev, struct doca_compress **compress)
{
	struct doca_compress *c;

	if (!gd_dev_is_open(dev) || !compress)
		return DOCA_ERROR_INVALID_VALUE;
	if (!GD_HAVE_DEFLATE) {
		gd_log(DOCA_LOG_LEVEL_ERROR,
		       "compression not supported: the library was built without zlib: install zlib and build it again");
		return DOCA_ERROR_NOT_SUPPORTED;
	}
	c = calloc(1, sizeof(*c));
	if (!c)
		return DOCA_ERROR_NO_MEMORY;
	c->zip = gd_zip_new();
	if (!c->zip) {
		free(c);
		return DOCA_ERROR_NO_MEMORY;
	}
	gd_ctx_init(&c->serial.ctx, &ctx_ops, dev);
	for (int i = 0; i < N_KINDS; i++)
		gd_pool_init(&c->pools[i], &c->serial.ctx, &task_ops[i].ops,
			     sizeof(struct compress_task));
	*compress = c;
	return DOCA_SUCCESS;
}

doca_error_t doca_compress_destroy(struct doca_compress *compress)
{
	struct gd_zip *zip = compress ? compress->zip : NULL;
	doca_error_t result = gd_serial_destroy(compress ? &compress->serial : NULL,
						DOCA_ERROR_IN_USE);

	if (result == DOCA_SUCCESS)
		gd_zip_free(zip);
	return result;
}

struct doca_ctx *doca_compress_as_ctx(struct doca_compress *compress)
{
	return compress ? &compress->serial.ctx : NULL;
}

doca_error_t doca_compress_cap_get_max_num_tasks(struct doca_compress *compress,
						 uint32_t *max_num_tasks)
{
	if (!compress || !max_num_tasks)
		return DOCA_ERROR_INVALID_VALUE;
	*max_num_tasks = GD_SERIAL_TASKS_MAX;
	return DOCA_SUCCESS;
}

/* -- tasks -- */

static doca_error_t set_conf(struct doca_compress *compress, enum kind kind, void *done_cb,
			     void *error_cb, uint32_t n)
{
	if (!compress)
		return DOCA_ERROR_INVALID_VALUE;
	if (!supports(kind))
		return DOCA_ERROR_NOT_SUPPORTED;
	return gd_serial_conf(&compress->pools[kind], done_cb, error_cb, n, DOCA_ERROR_BAD_STATE);
}

static doca_error_t take(struct doca_compress *compress, enum kind kind, struct doca_buf const *src,
			 struct doca_buf *dst, union doca_data user_data, void **task_p)
{
	struct compress_task *t;
	struct doca_task *task;
	doca_error_t result;

	if (!compress || !src || !dst || !task_p)
		return DOCA_ERROR_INVALID_VALUE;
	result = gd_serial_take(&compress->pools[kind], user_data, &task);
	if (result != DOCA_SUCCESS)
		return result;
	t = (struct compress_task *)task;
	t->src = src;
	t->dst = dst;
	t->crc = t->adler = t->xxh = 0;
	*task_p = t;
	return DOCA_SUCCESS;
}

/*
 * Define the functions that every type has. struct doca_compress_task_NAME is a struct
 * compress_task.
 */
#define KIND(NAME, kind) \
	doca_error_t doca_compress_cap_task_##NAME##_is_supported( \
		const struct doca_devinfo *devinfo) \
	{ \
		return gd_cap(devinfo, supports(kind)); \
	} \
	doca_error_t doca_compress_cap_task_##NAME##_get_max_buf_size( \
		const struct doca_devinfo *devinfo, uint64_t *size) \
	{ \
		return gd_cap_u64(devinfo, supports(kind), MAX_BYTES, size); \
	} \
	doca_error_t doca_compress_cap_task_##NAME##_get_max_buf_list_len( \
		const struct doca_devinfo *devinfo, uint32_t *length) \
	{ \
		return gd_cap_u32(devinfo, true, GD_SERIAL_LIST_MAX, length); \
	} \
	doca_error_t doca_compress_task_##NAME##_set_conf( \
		struct doca_compress *compress, \
		doca_compress_task_##NAME##_completion_cb_t task_completion_cb, \
		doca_compress_task_##NAME##_completion_cb_t task_error_cb, uint32_t num_tasks) \
	{ \
		return set_conf(compress, kind, task_completion_cb, task_error_cb, num_tasks); \
	} \
	struct doca_task *doca_compress_task_##NAME##_as_task( \
		struct doca_compress_task_##NAME *task) \
	{ \
		return (struct doca_task *)task; \
	} \
	void doca_compress_task_##NAME##_set_src(struct doca_compress_task_##NAME *task, \
						 struct doca_buf const *src_buff) \
	{ \
		if (task) \
			((struct compress_task *)task)->src = src_buff; \
	} \
	struct doca_buf const *doca_compress_task_##NAME##_get_src( \
		const struct doca_compress_task_##NAME *task) \
	{ \
		return task ? ((const struct compress_task *)task)->src : NULL; \
	} \
	void doca_compress_task_##NAME##_set_dst(struct doca_compress_task_##NAME *task, \
						 struct doca_buf *dst_buff) \
	{ \
		if (task) \
			((struct compress_task *)task)->dst = dst_buff; \
	} \
	struct doca_buf *doca_compress_task_##NAME##_get_dst( \
		const struct doca_compress_task_##NAME *task) \
	{ \
		return task ? ((const struct compress_task *)task)->dst : NULL; \
	} \
	uint32_t doca_compress_task_##NAME##_get_crc_cs( \
		const struct doca_compress_task_##NAME *task) \
	{ \
		return task ? ((const struct compress_task *)task)->crc : 0; \
	}

/* PLAIN: allocation of a type without further fields. SUM: getter of the second checksum. */
#define PLAIN(NAME, kind) \
	doca_error_t doca_compress_task_##NAME##_alloc_init( \
		struct doca_compress *compress, struct doca_buf const *src_buff, \
		struct doca_buf *dst_buff, union doca_data user_data, \
		struct doca_compress_task_##NAME **task) \
	{ \
		return take(compress, kind, src_buff, dst_buff, user_data, (void **)task); \
	}
#define SUM(NAME, sum) \
	uint32_t doca_compress_task_##NAME##_get_##sum##_cs( \
		const struct doca_compress_task_##NAME *task) \
	{ \
		return task ? ((const struct compress_task *)task)->sum : 0; \
	}

KIND(compress_deflate, COMPRESS)
PLAIN(compress_deflate, COMPRESS)
SUM(compress_deflate, adler)
KIND(decompress_deflate, DECOMPRESS)
PLAIN(decompress_deflate, DECOMPRESS)
SUM(decompress_deflate, adler)
KIND(decompress_lz4_block, LZ4_BLOCK)
PLAIN(decompress_lz4_block, LZ4_BLOCK)
SUM(decompress_lz4_block, xxh)
KIND(decompress_lz4_stream, LZ4_STREAM)
SUM(decompress_lz4_stream, xxh)

doca_error_t doca_compress_task_decompress_lz4_stream_alloc_init(
	struct doca_compress *compress, uint8_t has_block_checksum, uint8_t are_blocks_independent,
	struct doca_buf const *src_buff, struct doca_buf *dst_buff, union doca_data user_data,
	struct doca_compress_task_decompress_lz4_stream **task)
{
	doca_error_t result = take(compress, LZ4_STREAM, src_buff, dst_buff, user_data,
				   (void **)task);

	if (result == DOCA_SUCCESS) {
		doca_compress_task_decompress_lz4_stream_set_has_block_checksum(*task,
										has_block_checksum);
		doca_compress_task_decompress_lz4_stream_set_are_blocks_independent(
			*task, are_blocks_independent);
	}
	return result;
}

void doca_compress_task_decompress_lz4_stream_set_has_block_checksum(
	struct doca_compress_task_decompress_lz4_stream *task, uint8_t has_block_checksum)
{
	if (task)
		((struct compress_task *)task)->has_block_checksum = has_block_checksum;
}

uint8_t doca_compress_task_decompress_lz4_stream_get_has_block_checksum(
	const struct doca_compress_task_decompress_lz4_stream *task)
{
	return task ? ((const struct compress_task *)task)->has_block_checksum : 0;
}

void doca_compress_task_decompress_lz4_stream_set_are_blocks_independent(
	struct doca_compress_task_decompress_lz4_stream *task, uint8_t are_blocks_independent)
{
	if (task)
		((struct compress_task *)task)->are_blocks_independent = are_blocks_independent;
}

uint8_t doca_compress_task_decompress_lz4_stream_get_are_blocks_independent(
	const struct doca_compress_task_decompress_lz4_stream *task)
{
	return task ? ((const struct compress_task *)task)->are_blocks_independent : 0;
}
