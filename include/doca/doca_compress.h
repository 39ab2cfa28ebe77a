/* SPDX-License-Identifier: BSD-3-Clause */
/* doca_compress.h - tasks that compress by deflate, and decompress deflate and LZ4 */
#ifndef DOCA_COMPRESS_H
#define DOCA_COMPRESS_H

#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>

#include <doca_error.h>
#include <doca_types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct doca_buf;
struct doca_compress;
struct doca_compress_task_compress_deflate;
struct doca_compress_task_decompress_deflate;
struct doca_compress_task_decompress_lz4_block;
struct doca_compress_task_decompress_lz4_stream;
struct doca_ctx;
struct doca_dev;
struct doca_devinfo;

/*
 * Completion callbacks: the program owns the task again, and submits or frees it. The library
 * passes the user data of the task and of the context. Thread: in doca_pe_progress().
 */
typedef void (*doca_compress_task_compress_deflate_completion_cb_t)(
	struct doca_compress_task_compress_deflate *task, union doca_data task_user_data,
	union doca_data ctx_user_data);
typedef void (*doca_compress_task_decompress_deflate_completion_cb_t)(
	struct doca_compress_task_decompress_deflate *task, union doca_data task_user_data,
	union doca_data ctx_user_data);
typedef void (*doca_compress_task_decompress_lz4_stream_completion_cb_t)(
	struct doca_compress_task_decompress_lz4_stream *task, union doca_data task_user_data,
	union doca_data ctx_user_data);
typedef void (*doca_compress_task_decompress_lz4_block_completion_cb_t)(
	struct doca_compress_task_decompress_lz4_block *task, union doca_data task_user_data,
	union doca_data ctx_user_data);

/*
 * Create a context on an open device.
 * Errors:
 *     NO_MEMORY       memory allocation failed
 *     INITIALIZATION  never returned
 */
DOCA_EXPERIMENTAL doca_error_t doca_compress_create(struct doca_dev *dev,
						    struct doca_compress **compress);

/*
 * Destroy the context.
 * Errors:
 *     IN_USE  the context is not idle
 */
DOCA_EXPERIMENTAL doca_error_t doca_compress_destroy(struct doca_compress *compress);

/* Returns the object as a context, valid until the object is destroyed. Returns NULL for NULL. */
DOCA_EXPERIMENTAL struct doca_ctx *doca_compress_as_ctx(struct doca_compress *compress);

/* Get the maximum number of tasks of each type. */
DOCA_EXPERIMENTAL doca_error_t doca_compress_cap_get_max_num_tasks(struct doca_compress *compress,
								   uint32_t *max_num_tasks);

/*
 * Returns SUCCESS if the device supports deflate compression tasks, NOT_SUPPORTED if not. Never
 * returns DRIVER.
 */
DOCA_EXPERIMENTAL doca_error_t
doca_compress_cap_task_compress_deflate_is_supported(const struct doca_devinfo *devinfo);

/*
 * Get the maximum length of the source and of the result of the task, in bytes.
 * Errors:
 *     NOT_SUPPORTED  the device does not support the task
 */
DOCA_EXPERIMENTAL doca_error_t doca_compress_cap_task_compress_deflate_get_max_buf_size(
	const struct doca_devinfo *devinfo, uint64_t *max_buffer_size);

/* Get the maximum number of buffers in a source or destination list of the task. */
DOCA_EXPERIMENTAL doca_error_t doca_compress_cap_task_compress_deflate_get_max_buf_list_len(
	const struct doca_devinfo *devinfo, uint32_t *max_buf_list_len);

/*
 * Set the completion callbacks for success and for failure, and the number of tasks. Call before
 * start.
 * Errors:
 *     BAD_STATE      the context is started
 *     NOT_SUPPORTED  the library was built without zlib
 */
DOCA_EXPERIMENTAL doca_error_t doca_compress_task_compress_deflate_set_conf(
	struct doca_compress *compress,
	doca_compress_task_compress_deflate_completion_cb_t task_completion_cb,
	doca_compress_task_compress_deflate_completion_cb_t task_error_cb, uint32_t num_tasks);

/*
 * Allocate a task that compresses the data of src_buff as raw deflate and appends the result to
 * dst_buff.
 * Errors:
 *     BAD_STATE  the context is idle
 *     NO_MEMORY  all tasks are allocated
 */
DOCA_EXPERIMENTAL doca_error_t doca_compress_task_compress_deflate_alloc_init(
	struct doca_compress *compress, struct doca_buf const *src_buff, struct doca_buf *dst_buff,
	union doca_data user_data, struct doca_compress_task_compress_deflate **task);

/* Returns the generic task, for doca_task_submit() and doca_task_free(). It is the same object. */
DOCA_EXPERIMENTAL struct doca_task *doca_compress_task_compress_deflate_as_task(
	struct doca_compress_task_compress_deflate *task);

/* Set and get the fields of a task. Do not set a field while the task is submitted. */
DOCA_EXPERIMENTAL void doca_compress_task_compress_deflate_set_src(
	struct doca_compress_task_compress_deflate *task, struct doca_buf const *src_buff);
DOCA_EXPERIMENTAL struct doca_buf const *doca_compress_task_compress_deflate_get_src(
	const struct doca_compress_task_compress_deflate *task);
DOCA_EXPERIMENTAL void doca_compress_task_compress_deflate_set_dst(
	struct doca_compress_task_compress_deflate *task, struct doca_buf *dst_buff);
DOCA_EXPERIMENTAL struct doca_buf *doca_compress_task_compress_deflate_get_dst(
	const struct doca_compress_task_compress_deflate *task);

/* Returns the CRC-32 of the source data, as zlib computes it. */
DOCA_EXPERIMENTAL uint32_t doca_compress_task_compress_deflate_get_crc_cs(
	const struct doca_compress_task_compress_deflate *task);

/* Returns the Adler-32 checksum of the source data, as zlib computes it. */
DOCA_EXPERIMENTAL uint32_t doca_compress_task_compress_deflate_get_adler_cs(
	const struct doca_compress_task_compress_deflate *task);

/*
 * Returns SUCCESS if the device supports deflate decompression tasks, NOT_SUPPORTED if not. Never
 * returns DRIVER.
 */
DOCA_EXPERIMENTAL doca_error_t
doca_compress_cap_task_decompress_deflate_is_supported(const struct doca_devinfo *devinfo);

/*
 * Get the maximum length of the source and of the result of the task, in bytes.
 * Errors:
 *     NOT_SUPPORTED  the device does not support the task
 */
DOCA_EXPERIMENTAL doca_error_t doca_compress_cap_task_decompress_deflate_get_max_buf_size(
	const struct doca_devinfo *devinfo, uint64_t *max_buffer_size);

/* Get the maximum number of buffers in a source or destination list of the task. */
DOCA_EXPERIMENTAL doca_error_t doca_compress_cap_task_decompress_deflate_get_max_buf_list_len(
	const struct doca_devinfo *devinfo, uint32_t *max_buf_list_len);

/*
 * Set the completion callbacks for success and for failure, and the number of tasks. Call before
 * start.
 * Errors:
 *     BAD_STATE      the context is started
 *     NOT_SUPPORTED  the library was built without zlib
 */
DOCA_EXPERIMENTAL doca_error_t doca_compress_task_decompress_deflate_set_conf(
	struct doca_compress *compress,
	doca_compress_task_decompress_deflate_completion_cb_t task_completion_cb,
	doca_compress_task_decompress_deflate_completion_cb_t task_error_cb, uint32_t num_tasks);

/*
 * Allocate a task that decompresses raw deflate data of src_buff and appends the result to
 * dst_buff.
 * Errors:
 *     BAD_STATE  the context is idle
 *     NO_MEMORY  all tasks are allocated
 */
DOCA_EXPERIMENTAL doca_error_t doca_compress_task_decompress_deflate_alloc_init(
	struct doca_compress *compress, struct doca_buf const *src_buff, struct doca_buf *dst_buff,
	union doca_data user_data, struct doca_compress_task_decompress_deflate **task);

/* Returns the generic task, for doca_task_submit() and doca_task_free(). It is the same object. */
DOCA_EXPERIMENTAL struct doca_task *doca_compress_task_decompress_deflate_as_task(
	struct doca_compress_task_decompress_deflate *task);

/* Set and get the fields of a task. Do not set a field while the task is submitted. */
DOCA_EXPERIMENTAL void doca_compress_task_decompress_deflate_set_src(
	struct doca_compress_task_decompress_deflate *task, struct doca_buf const *src_buff);
DOCA_EXPERIMENTAL struct doca_buf const *doca_compress_task_decompress_deflate_get_src(
	const struct doca_compress_task_decompress_deflate *task);
DOCA_EXPERIMENTAL void doca_compress_task_decompress_deflate_set_dst(
	struct doca_compress_task_decompress_deflate *task, struct doca_buf *dst_buff);
DOCA_EXPERIMENTAL struct doca_buf *doca_compress_task_decompress_deflate_get_dst(
	const struct doca_compress_task_decompress_deflate *task);

/* Returns the CRC-32 of the result. */
DOCA_EXPERIMENTAL uint32_t doca_compress_task_decompress_deflate_get_crc_cs(
	const struct doca_compress_task_decompress_deflate *task);

/* Returns the Adler-32 checksum of the result. */
DOCA_EXPERIMENTAL uint32_t doca_compress_task_decompress_deflate_get_adler_cs(
	const struct doca_compress_task_decompress_deflate *task);

/*
 * Returns SUCCESS if the device supports LZ4 stream tasks, NOT_SUPPORTED if not. Never returns
 * DRIVER.
 */
DOCA_EXPERIMENTAL doca_error_t
doca_compress_cap_task_decompress_lz4_stream_is_supported(const struct doca_devinfo *devinfo);

/*
 * Get the maximum length of the source and of the result of the task, in bytes.
 * Errors:
 *     NOT_SUPPORTED  the device does not support the task
 */
DOCA_EXPERIMENTAL doca_error_t doca_compress_cap_task_decompress_lz4_stream_get_max_buf_size(
	const struct doca_devinfo *devinfo, uint64_t *max_buffer_size);

/* Get the maximum number of buffers in a source or destination list of the task. */
DOCA_EXPERIMENTAL doca_error_t doca_compress_cap_task_decompress_lz4_stream_get_max_buf_list_len(
	const struct doca_devinfo *devinfo, uint32_t *max_buf_list_len);

/*
 * Set the completion callbacks for success and for failure, and the number of tasks. Call before
 * start.
 * Errors:
 *     BAD_STATE      the context is started
 *     NOT_SUPPORTED  the library was built without lz4
 */
DOCA_EXPERIMENTAL doca_error_t doca_compress_task_decompress_lz4_stream_set_conf(
	struct doca_compress *compress,
	doca_compress_task_decompress_lz4_stream_completion_cb_t task_completion_cb,
	doca_compress_task_decompress_lz4_stream_completion_cb_t task_error_cb, uint32_t num_tasks);

/*
 * Allocate a task that decompresses the blocks of an LZ4 frame without its header. Each block
 * begins with its length. has_block_checksum: a checksum follows each block.
 * are_blocks_independent: no block refers to an earlier block.
 * Errors:
 *     BAD_STATE  the context is idle
 *     NO_MEMORY  all tasks are allocated
 */
DOCA_EXPERIMENTAL doca_error_t doca_compress_task_decompress_lz4_stream_alloc_init(
	struct doca_compress *compress, uint8_t has_block_checksum, uint8_t are_blocks_independent,
	struct doca_buf const *src_buff, struct doca_buf *dst_buff, union doca_data user_data,
	struct doca_compress_task_decompress_lz4_stream **task);

/* Returns the generic task, for doca_task_submit() and doca_task_free(). It is the same object. */
DOCA_EXPERIMENTAL struct doca_task *doca_compress_task_decompress_lz4_stream_as_task(
	struct doca_compress_task_decompress_lz4_stream *task);

/* Set and get the fields of a task. Do not set a field while the task is submitted. */
DOCA_EXPERIMENTAL void doca_compress_task_decompress_lz4_stream_set_has_block_checksum(
	struct doca_compress_task_decompress_lz4_stream *task, uint8_t has_block_checksum);
DOCA_EXPERIMENTAL uint8_t doca_compress_task_decompress_lz4_stream_get_has_block_checksum(
	const struct doca_compress_task_decompress_lz4_stream *task);
DOCA_EXPERIMENTAL void doca_compress_task_decompress_lz4_stream_set_are_blocks_independent(
	struct doca_compress_task_decompress_lz4_stream *task, uint8_t are_blocks_independent);
DOCA_EXPERIMENTAL uint8_t doca_compress_task_decompress_lz4_stream_get_are_blocks_independent(
	const struct doca_compress_task_decompress_lz4_stream *task);
DOCA_EXPERIMENTAL void doca_compress_task_decompress_lz4_stream_set_src(
	struct doca_compress_task_decompress_lz4_stream *task, struct doca_buf const *src_buff);
DOCA_EXPERIMENTAL struct doca_buf const *doca_compress_task_decompress_lz4_stream_get_src(
	const struct doca_compress_task_decompress_lz4_stream *task);
DOCA_EXPERIMENTAL void doca_compress_task_decompress_lz4_stream_set_dst(
	struct doca_compress_task_decompress_lz4_stream *task, struct doca_buf *dst_buff);
DOCA_EXPERIMENTAL struct doca_buf *doca_compress_task_decompress_lz4_stream_get_dst(
	const struct doca_compress_task_decompress_lz4_stream *task);

/*
 * Return the CRC-32 of the result, as zlib computes it (first function), and the xxHash-32 of the
 * result with reversed byte order (second function). The reversed xxHash-32 equals the content
 * checksum of an LZ4 frame, read as a big-endian number.
 */
DOCA_EXPERIMENTAL uint32_t doca_compress_task_decompress_lz4_stream_get_crc_cs(
	const struct doca_compress_task_decompress_lz4_stream *task);
DOCA_EXPERIMENTAL uint32_t doca_compress_task_decompress_lz4_stream_get_xxh_cs(
	const struct doca_compress_task_decompress_lz4_stream *task);

/*
 * Returns SUCCESS if the device supports LZ4 block tasks, NOT_SUPPORTED if not. Never returns
 * DRIVER.
 */
DOCA_EXPERIMENTAL doca_error_t
doca_compress_cap_task_decompress_lz4_block_is_supported(const struct doca_devinfo *devinfo);

/*
 * Get the maximum length of the source and of the result of the task, in bytes.
 * Errors:
 *     NOT_SUPPORTED  the device does not support the task
 */
DOCA_EXPERIMENTAL doca_error_t doca_compress_cap_task_decompress_lz4_block_get_max_buf_size(
	const struct doca_devinfo *devinfo, uint64_t *max_buffer_size);

/* Get the maximum number of buffers in a source or destination list of the task. */
DOCA_EXPERIMENTAL doca_error_t doca_compress_cap_task_decompress_lz4_block_get_max_buf_list_len(
	const struct doca_devinfo *devinfo, uint32_t *max_buf_list_len);

/*
 * Set the completion callbacks for success and for failure, and the number of tasks. Call before
 * start.
 * Errors:
 *     BAD_STATE      the context is started
 *     NOT_SUPPORTED  the library was built without lz4
 */
DOCA_EXPERIMENTAL doca_error_t doca_compress_task_decompress_lz4_block_set_conf(
	struct doca_compress *compress,
	doca_compress_task_decompress_lz4_block_completion_cb_t task_completion_cb,
	doca_compress_task_decompress_lz4_block_completion_cb_t task_error_cb, uint32_t num_tasks);

/*
 * Allocate a task that decompresses one LZ4 block.
 * Errors:
 *     BAD_STATE  the context is idle
 *     NO_MEMORY  all tasks are allocated
 */
DOCA_EXPERIMENTAL doca_error_t doca_compress_task_decompress_lz4_block_alloc_init(
	struct doca_compress *compress, struct doca_buf const *src_buff, struct doca_buf *dst_buff,
	union doca_data user_data, struct doca_compress_task_decompress_lz4_block **task);

/* Returns the generic task, for doca_task_submit() and doca_task_free(). It is the same object. */
DOCA_EXPERIMENTAL struct doca_task *doca_compress_task_decompress_lz4_block_as_task(
	struct doca_compress_task_decompress_lz4_block *task);

/* Set and get the fields of a task. Do not set a field while the task is submitted. */
DOCA_EXPERIMENTAL void doca_compress_task_decompress_lz4_block_set_src(
	struct doca_compress_task_decompress_lz4_block *task, struct doca_buf const *src_buff);
DOCA_EXPERIMENTAL struct doca_buf const *doca_compress_task_decompress_lz4_block_get_src(
	const struct doca_compress_task_decompress_lz4_block *task);
DOCA_EXPERIMENTAL void doca_compress_task_decompress_lz4_block_set_dst(
	struct doca_compress_task_decompress_lz4_block *task, struct doca_buf *dst_buff);
DOCA_EXPERIMENTAL struct doca_buf *doca_compress_task_decompress_lz4_block_get_dst(
	const struct doca_compress_task_decompress_lz4_block *task);

/* Like the functions of the LZ4 stream task. */
DOCA_EXPERIMENTAL uint32_t doca_compress_task_decompress_lz4_block_get_crc_cs(
	const struct doca_compress_task_decompress_lz4_block *task);
DOCA_EXPERIMENTAL uint32_t doca_compress_task_decompress_lz4_block_get_xxh_cs(
	const struct doca_compress_task_decompress_lz4_block *task);

#ifdef __cplusplus
}
#endif

#endif
