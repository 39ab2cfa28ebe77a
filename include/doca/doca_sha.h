/* SPDX-License-Identifier: BSD-3-Clause */
/* doca_sha.h - SHA-1, SHA-256 and SHA-512 */
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

enum doca_sha_algorithm {
	DOCA_SHA_ALGORITHM_SHA1 = 0,
	DOCA_SHA_ALGORITHM_SHA256 = 1,
	DOCA_SHA_ALGORITHM_SHA512 = 2,
};

typedef void (*doca_sha_task_hash_completion_cb_t)(struct doca_sha_task_hash *task,
						   union doca_data task_user_data,
						   union doca_data ctx_user_data);
typedef void (*doca_sha_task_partial_hash_completion_cb_t)(struct doca_sha_task_partial_hash *task,
							   union doca_data task_user_data,
							   union doca_data ctx_user_data);

/* For a device that is open. Errors: NO_MEMORY. */
DOCA_EXPERIMENTAL doca_error_t doca_sha_create(struct doca_dev *dev, struct doca_sha **sha);

/* It must be idle. Errors: IN_USE. */
DOCA_EXPERIMENTAL doca_error_t doca_sha_destroy(struct doca_sha *sha);

/* The object as a context, until it is destroyed. NULL for NULL. */
DOCA_EXPERIMENTAL struct doca_ctx *doca_sha_as_ctx(struct doca_sha *sha);

/* SUCCESS when the device can do it, NOT_SUPPORTED when not. */
DOCA_EXPERIMENTAL doca_error_t doca_sha_cap_task_hash_get_supported(
	struct doca_devinfo const *devinfo, enum doca_sha_algorithm algorithm);
DOCA_EXPERIMENTAL doca_error_t doca_sha_cap_task_partial_hash_get_supported(
	struct doca_devinfo const *devinfo, enum doca_sha_algorithm algorithm);

/* The most that the device takes. Errors: NOT_SUPPORTED. */
DOCA_EXPERIMENTAL doca_error_t doca_sha_cap_get_max_list_buf_num_elem(
	struct doca_devinfo const *devinfo, uint32_t *max_list_buf_num_elem);

/* Most bytes of one task. Errors: NOT_SUPPORTED. */
DOCA_EXPERIMENTAL doca_error_t doca_sha_cap_get_max_src_buf_size(struct doca_devinfo const *devinfo,
								 uint64_t *max_src_buf_size);

/* Bytes of a digest. Errors: NOT_SUPPORTED. */
DOCA_EXPERIMENTAL doca_error_t doca_sha_cap_get_min_dst_buf_size(struct doca_devinfo const *devinfo,
								 enum doca_sha_algorithm algorithm,
								 uint32_t *min_dst_buf_size);

/* Parts, but for the last, have a multiple of this many bytes. Errors: NOT_SUPPORTED. */
DOCA_EXPERIMENTAL doca_error_t doca_sha_cap_get_partial_hash_block_size(
	struct doca_devinfo const *devinfo, enum doca_sha_algorithm algorithm,
	uint32_t *partial_block_size);

/* The most that the device takes. */
DOCA_EXPERIMENTAL doca_error_t doca_sha_cap_get_max_num_tasks(struct doca_sha *sha,
							      uint32_t *max_num_tasks);

/*
 * Before start: callbacks of success and of failure, and how many tasks there will be. Errors:
 * BAD_STATE.
 */
DOCA_EXPERIMENTAL doca_error_t doca_sha_task_hash_set_conf(
	struct doca_sha *sha, doca_sha_task_hash_completion_cb_t task_completion_cb,
	doca_sha_task_hash_completion_cb_t task_error_cb, uint8_t log_num_tasks);

/* Take a task: digest of the data of src_buff into dst_buff. Errors: NO_MEMORY, BAD_STATE. */
DOCA_EXPERIMENTAL doca_error_t doca_sha_task_hash_alloc_init(
	struct doca_sha *sha, enum doca_sha_algorithm algorithm, struct doca_buf const *src_buf,
	struct doca_buf *dst_buf, union doca_data user_data, struct doca_sha_task_hash **task);

/* The fields of a task, while it is not submitted. */
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

/* The task as a task of any kind; the same object. */
DOCA_EXPERIMENTAL struct doca_task *doca_sha_task_hash_as_task(struct doca_sha_task_hash *task);

/*
 * Before start: callbacks of success and of failure, and how many tasks there will be. Errors:
 * BAD_STATE.
 */
DOCA_EXPERIMENTAL doca_error_t doca_sha_task_partial_hash_set_conf(
	struct doca_sha *sha, doca_sha_task_partial_hash_completion_cb_t task_completion_cb,
	doca_sha_task_partial_hash_completion_cb_t task_error_cb, uint8_t log_num_tasks);

/*
 * Take a task that is submitted once for each part of the data; dst_buff gets the digest with the
 * last. Errors:
 * NO_MEMORY, BAD_STATE.
 */
DOCA_EXPERIMENTAL doca_error_t doca_sha_task_partial_hash_alloc_init(
	struct doca_sha *sha, enum doca_sha_algorithm algorithm, struct doca_buf const *src_buf,
	struct doca_buf *dst_buf, union doca_data user_data,
	struct doca_sha_task_partial_hash **task);

/* Begin another digest. */
DOCA_EXPERIMENTAL doca_error_t
doca_sha_task_partial_hash_reset(struct doca_sha_task_partial_hash *task);

/* The fields of a task, while it is not submitted. */
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

/* The source that is set now is the last. Errors: BAD_STATE. */
DOCA_EXPERIMENTAL doca_error_t
doca_sha_task_partial_hash_set_is_final_buf(struct doca_sha_task_partial_hash *task);

/* The fields of a task, while it is not submitted. */
DOCA_EXPERIMENTAL uint8_t
doca_sha_task_partial_hash_get_is_final(struct doca_sha_task_partial_hash const *task);
DOCA_EXPERIMENTAL uint8_t
doca_sha_task_partial_hash_get_has_result(struct doca_sha_task_partial_hash const *task);

/* The task as a task of any kind; the same object. */
DOCA_EXPERIMENTAL struct doca_task *doca_sha_task_partial_hash_as_task(
	struct doca_sha_task_partial_hash *task);

#ifdef __cplusplus
}
#endif

#endif
