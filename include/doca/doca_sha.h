/* SPDX-License-Identifier: BSD-3-Clause */
/* doca_sha.h - tasks that compute SHA-1, SHA-256 and SHA-512 digests */
#ifndef DOCA_SHA_H
#define DOCA_SHA_H

#include <stddef.h>
#include <stdint.h>

#include <doca_error.h>
#include <doca_types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct doca_buf;
struct doca_ctx;
struct doca_dev;
struct doca_devinfo;
struct doca_sha;
struct doca_sha_task_hash;
struct doca_sha_task_partial_hash;

/* Digest algorithms. */
enum doca_sha_algorithm {
	DOCA_SHA_ALGORITHM_SHA1 = 0,
	DOCA_SHA_ALGORITHM_SHA256 = 1,
	DOCA_SHA_ALGORITHM_SHA512 = 2,
};

/*
 * Completion callbacks: the program owns the task again, and submits or frees it. The library
 * passes the user data of the task and of the context. Thread: in doca_pe_progress().
 */
typedef void (*doca_sha_task_hash_completion_cb_t)(struct doca_sha_task_hash *task,
						   union doca_data task_user_data,
						   union doca_data ctx_user_data);
typedef void (*doca_sha_task_partial_hash_completion_cb_t)(struct doca_sha_task_partial_hash *task,
							   union doca_data task_user_data,
							   union doca_data ctx_user_data);

/*
 * Create a context on an open device.
 * Errors:
 *     NO_MEMORY  memory allocation failed
 */
DOCA_EXPERIMENTAL doca_error_t doca_sha_create(struct doca_dev *dev, struct doca_sha **sha);

/*
 * Destroy the context.
 * Errors:
 *     IN_USE  the context is not idle
 */
DOCA_EXPERIMENTAL doca_error_t doca_sha_destroy(struct doca_sha *sha);

/* Returns the object as a context, valid until the object is destroyed. Returns NULL for NULL. */
DOCA_EXPERIMENTAL struct doca_ctx *doca_sha_as_ctx(struct doca_sha *sha);

/*
 * Returns SUCCESS if the device supports hash tasks (second function: partial hash tasks) of the
 * algorithm, NOT_SUPPORTED if not.
 */
DOCA_EXPERIMENTAL doca_error_t doca_sha_cap_task_hash_get_supported(
	struct doca_devinfo const *devinfo, enum doca_sha_algorithm algorithm);
DOCA_EXPERIMENTAL doca_error_t doca_sha_cap_task_partial_hash_get_supported(
	struct doca_devinfo const *devinfo, enum doca_sha_algorithm algorithm);

/*
 * Get the maximum number of buffers in a list.
 * Errors:
 *     NOT_SUPPORTED  the library was built without libcrypto
 */
DOCA_EXPERIMENTAL doca_error_t doca_sha_cap_get_max_list_buf_num_elem(
	struct doca_devinfo const *devinfo, uint32_t *max_list_buf_num_elem);

/*
 * Get the maximum number of source bytes of one task.
 * Errors:
 *     NOT_SUPPORTED  the library was built without libcrypto
 */
DOCA_EXPERIMENTAL doca_error_t doca_sha_cap_get_max_src_buf_size(struct doca_devinfo const *devinfo,
								 uint64_t *max_src_buf_size);

/*
 * Get the length of a digest, in bytes.
 * Errors:
 *     NOT_SUPPORTED  the library was built without libcrypto
 */
DOCA_EXPERIMENTAL doca_error_t doca_sha_cap_get_min_dst_buf_size(struct doca_devinfo const *devinfo,
								 enum doca_sha_algorithm algorithm,
								 uint32_t *min_dst_buf_size);

/*
 * Get the block size of partial hashes, in bytes. The length of each part except the last must be a
 * multiple of it.
 * Errors:
 *     NOT_SUPPORTED  the library was built without libcrypto
 */
DOCA_EXPERIMENTAL doca_error_t doca_sha_cap_get_partial_hash_block_size(
	struct doca_devinfo const *devinfo, enum doca_sha_algorithm algorithm,
	uint32_t *partial_block_size);

/* Get the maximum number of tasks of each type. */
DOCA_EXPERIMENTAL doca_error_t doca_sha_cap_get_max_num_tasks(struct doca_sha *sha,
							      uint32_t *max_num_tasks);

/*
 * Set the completion callbacks for success and for failure, and the number of tasks as its base-2
 * logarithm. Call before start.
 * Errors:
 *     BAD_STATE  the context is started
 */
DOCA_EXPERIMENTAL doca_error_t doca_sha_task_hash_set_conf(
	struct doca_sha *sha, doca_sha_task_hash_completion_cb_t task_completion_cb,
	doca_sha_task_hash_completion_cb_t task_error_cb, uint8_t log_num_tasks);

/*
 * Allocate a task that appends the digest of the data of src_buff to dst_buff.
 * Errors:
 *     NO_MEMORY  all tasks are allocated
 *     BAD_STATE  the context is idle
 */
DOCA_EXPERIMENTAL doca_error_t doca_sha_task_hash_alloc_init(
	struct doca_sha *sha, enum doca_sha_algorithm algorithm, struct doca_buf const *src_buf,
	struct doca_buf *dst_buf, union doca_data user_data, struct doca_sha_task_hash **task);

/* Set and get the fields of a task. Do not set a field while the task is submitted. */
DOCA_EXPERIMENTAL doca_error_t doca_sha_task_hash_set_src(struct doca_sha_task_hash *task,
							  struct doca_buf const *src_buf);
DOCA_EXPERIMENTAL struct doca_buf const *doca_sha_task_hash_get_src(
	struct doca_sha_task_hash const *task);
DOCA_EXPERIMENTAL doca_error_t doca_sha_task_hash_set_dst(struct doca_sha_task_hash *task,
							  struct doca_buf *dst_buf);
DOCA_EXPERIMENTAL struct doca_buf const *doca_sha_task_hash_get_dst(
	struct doca_sha_task_hash const *task);
DOCA_EXPERIMENTAL doca_error_t doca_sha_task_hash_set_algorithm(struct doca_sha_task_hash *task,
								enum doca_sha_algorithm algorithm);
DOCA_EXPERIMENTAL enum doca_sha_algorithm doca_sha_task_hash_get_algorithm(
	struct doca_sha_task_hash const *task);

/* Returns the generic task, for doca_task_submit() and doca_task_free(). It is the same object. */
DOCA_EXPERIMENTAL struct doca_task *doca_sha_task_hash_as_task(struct doca_sha_task_hash *task);

/*
 * Set the completion callbacks for success and for failure, and the number of tasks as its base-2
 * logarithm. Call before start.
 * Errors:
 *     BAD_STATE  the context is started
 */
DOCA_EXPERIMENTAL doca_error_t doca_sha_task_partial_hash_set_conf(
	struct doca_sha *sha, doca_sha_task_partial_hash_completion_cb_t task_completion_cb,
	doca_sha_task_partial_hash_completion_cb_t task_error_cb, uint8_t log_num_tasks);

/*
 * Allocate a task that computes a digest part by part. The program submits it once for each part.
 * The task appends the digest to dst_buff with the last part.
 * Errors:
 *     NO_MEMORY  all tasks are allocated
 *     BAD_STATE  the context is idle
 */
DOCA_EXPERIMENTAL doca_error_t doca_sha_task_partial_hash_alloc_init(
	struct doca_sha *sha, enum doca_sha_algorithm algorithm, struct doca_buf const *src_buf,
	struct doca_buf *dst_buf, union doca_data user_data,
	struct doca_sha_task_partial_hash **task);

/* Reset the task for another digest. */
DOCA_EXPERIMENTAL doca_error_t
doca_sha_task_partial_hash_reset(struct doca_sha_task_partial_hash *task);

/* Set and get the fields of a task. Do not set a field while the task is submitted. */
DOCA_EXPERIMENTAL doca_error_t doca_sha_task_partial_hash_set_src(
	struct doca_sha_task_partial_hash *task, struct doca_buf const *src_buf);
DOCA_EXPERIMENTAL struct doca_buf const *doca_sha_task_partial_hash_get_src(
	struct doca_sha_task_partial_hash const *task);
DOCA_EXPERIMENTAL doca_error_t doca_sha_task_partial_hash_set_dst(
	struct doca_sha_task_partial_hash *task, struct doca_buf *dst_buf);
DOCA_EXPERIMENTAL struct doca_buf const *doca_sha_task_partial_hash_get_dst(
	struct doca_sha_task_partial_hash const *task);
DOCA_EXPERIMENTAL doca_error_t doca_sha_task_partial_hash_set_algorithm(
	struct doca_sha_task_partial_hash *task, enum doca_sha_algorithm algorithm);
DOCA_EXPERIMENTAL enum doca_sha_algorithm doca_sha_task_partial_hash_get_algorithm(
	struct doca_sha_task_partial_hash const *task);

/*
 * Declare that the current source is the last part.
 * Errors:
 *     BAD_STATE  the digest is complete, or the task is submitted
 */
DOCA_EXPERIMENTAL doca_error_t
doca_sha_task_partial_hash_set_is_final_buf(struct doca_sha_task_partial_hash *task);

/*
 * Return 1 if the current source is the last part (first function), or if the task has stored the
 * digest (second function); else 0.
 */
DOCA_EXPERIMENTAL uint8_t
doca_sha_task_partial_hash_get_is_final(struct doca_sha_task_partial_hash const *task);
DOCA_EXPERIMENTAL uint8_t
doca_sha_task_partial_hash_get_has_result(struct doca_sha_task_partial_hash const *task);

/* Returns the generic task, for doca_task_submit() and doca_task_free(). It is the same object. */
DOCA_EXPERIMENTAL struct doca_task *doca_sha_task_partial_hash_as_task(
	struct doca_sha_task_partial_hash *task);

#ifdef __cplusplus
}
#endif

#endif
