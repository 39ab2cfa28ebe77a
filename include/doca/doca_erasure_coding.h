/* SPDX-License-Identifier: BSD-3-Clause */
/* doca_erasure_coding.h - erasure coding: redundancy blocks, and recovery of lost data blocks */
#ifndef DOCA_ERASURE_CODING_H
#define DOCA_ERASURE_CODING_H

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
struct doca_ec;
struct doca_ec_matrix;
struct doca_ec_task_create;
struct doca_ec_task_galois_mul;
struct doca_ec_task_recover;
struct doca_ec_task_update;

/* Types of coding matrices. */
enum doca_ec_matrix_type {
	DOCA_EC_MATRIX_TYPE_CAUCHY = 1,
	DOCA_EC_MATRIX_TYPE_VANDERMONDE = 2,
};

/*
 * Completion callbacks: the program owns the task again, and submits or frees it. The library
 * passes the user data of the task and of the context. Thread: in doca_pe_progress().
 */
typedef void (*doca_ec_task_galois_mul_completion_cb_t)(struct doca_ec_task_galois_mul *task,
							union doca_data task_user_data,
							union doca_data ctx_user_data);
typedef void (*doca_ec_task_create_completion_cb_t)(struct doca_ec_task_create *task,
						    union doca_data task_user_data,
						    union doca_data ctx_user_data);
typedef void (*doca_ec_task_update_completion_cb_t)(struct doca_ec_task_update *task,
						    union doca_data task_user_data,
						    union doca_data ctx_user_data);
typedef void (*doca_ec_task_recover_completion_cb_t)(struct doca_ec_task_recover *task,
						     union doca_data task_user_data,
						     union doca_data ctx_user_data);

/* Returns SUCCESS if the device supports multiplication tasks, NOT_SUPPORTED if not. */
DOCA_EXPERIMENTAL doca_error_t
doca_ec_cap_task_galois_mul_is_supported(const struct doca_devinfo *devinfo);

/*
 * Set the completion callbacks for success and for failure, and the number of tasks. Call before
 * start.
 * Errors:
 *     BAD_STATE      the context is started
 *     NOT_SUPPORTED  the library was built without isa-l
 */
DOCA_EXPERIMENTAL doca_error_t doca_ec_task_galois_mul_set_conf(
	struct doca_ec *ec, doca_ec_task_galois_mul_completion_cb_t successful_task_completion_cb,
	doca_ec_task_galois_mul_completion_cb_t error_task_completion_cb, uint32_t num_tasks);

/*
 * Allocate a task that multiplies the blocks of the source by a matrix.
 * Errors:
 *     BAD_STATE  the context is idle
 *     NO_MEMORY  all tasks are allocated
 */
DOCA_EXPERIMENTAL doca_error_t doca_ec_task_galois_mul_allocate_init(
	struct doca_ec *ec, const struct doca_ec_matrix *coding_matrix,
	const struct doca_buf *src_buf, struct doca_buf *dst_buf, union doca_data user_data,
	struct doca_ec_task_galois_mul **task);

/* Returns the generic task, for doca_task_submit() and doca_task_free(). It is the same object. */
DOCA_EXPERIMENTAL struct doca_task *doca_ec_task_galois_mul_as_task(
	struct doca_ec_task_galois_mul *task);

/* Set and get the fields of a task. Do not set a field while the task is submitted. */
DOCA_EXPERIMENTAL void doca_ec_task_galois_mul_set_coding_matrix(
	struct doca_ec_task_galois_mul *task, const struct doca_ec_matrix *coding_matrix);
DOCA_EXPERIMENTAL const struct doca_ec_matrix *doca_ec_task_galois_mul_get_coding_matrix(
	const struct doca_ec_task_galois_mul *task);
DOCA_EXPERIMENTAL void doca_ec_task_galois_mul_set_src_buf(struct doca_ec_task_galois_mul *task,
							   const struct doca_buf *src_buf);
DOCA_EXPERIMENTAL const struct doca_buf *doca_ec_task_galois_mul_get_src_buf(
	const struct doca_ec_task_galois_mul *task);
DOCA_EXPERIMENTAL void doca_ec_task_galois_mul_set_dst_buf(struct doca_ec_task_galois_mul *task,
							   struct doca_buf *dst_buf);
DOCA_EXPERIMENTAL struct doca_buf *doca_ec_task_galois_mul_get_dst_buf(
	const struct doca_ec_task_galois_mul *task);

/* Returns SUCCESS if the device supports create tasks, NOT_SUPPORTED if not. */
DOCA_EXPERIMENTAL doca_error_t
doca_ec_cap_task_create_is_supported(const struct doca_devinfo *devinfo);

/*
 * Set the completion callbacks for success and for failure, and the number of tasks. Call before
 * start.
 * Errors:
 *     BAD_STATE      the context is started
 *     NOT_SUPPORTED  the library was built without isa-l
 */
DOCA_EXPERIMENTAL doca_error_t doca_ec_task_create_set_conf(
	struct doca_ec *ec, doca_ec_task_create_completion_cb_t successful_task_completion_cb,
	doca_ec_task_create_completion_cb_t error_task_completion_cb, uint32_t num_tasks);

/*
 * Allocate a task that computes redundancy blocks from all data blocks. The data blocks follow each
 * other in the source.
 * Errors:
 *     BAD_STATE  the context is idle
 *     NO_MEMORY  all tasks are allocated
 */
DOCA_EXPERIMENTAL doca_error_t doca_ec_task_create_allocate_init(
	struct doca_ec *ec, const struct doca_ec_matrix *coding_matrix,
	const struct doca_buf *original_data_blocks, struct doca_buf *rdnc_blocks,
	union doca_data user_data, struct doca_ec_task_create **task);

/* Returns the generic task, for doca_task_submit() and doca_task_free(). It is the same object. */
DOCA_EXPERIMENTAL struct doca_task *doca_ec_task_create_as_task(struct doca_ec_task_create *task);

/* Set and get the fields of a task. Do not set a field while the task is submitted. */
DOCA_EXPERIMENTAL void doca_ec_task_create_set_coding_matrix(
	struct doca_ec_task_create *task, const struct doca_ec_matrix *coding_matrix);
DOCA_EXPERIMENTAL const struct doca_ec_matrix *doca_ec_task_create_get_coding_matrix(
	const struct doca_ec_task_create *task);
DOCA_EXPERIMENTAL void doca_ec_task_create_set_original_data_blocks(
	struct doca_ec_task_create *task, const struct doca_buf *original_data_blocks);
DOCA_EXPERIMENTAL const struct doca_buf *doca_ec_task_create_get_original_data_blocks(
	const struct doca_ec_task_create *task);
DOCA_EXPERIMENTAL void doca_ec_task_create_set_rdnc_blocks(struct doca_ec_task_create *task,
							   struct doca_buf *rdnc_blocks);
DOCA_EXPERIMENTAL struct doca_buf *doca_ec_task_create_get_rdnc_blocks(
	const struct doca_ec_task_create *task);

/* Returns SUCCESS if the device supports update tasks, NOT_SUPPORTED if not. */
DOCA_EXPERIMENTAL doca_error_t
doca_ec_cap_task_update_is_supported(const struct doca_devinfo *devinfo);

/*
 * Set the completion callbacks for success and for failure, and the number of tasks. Call before
 * start.
 * Errors:
 *     BAD_STATE      the context is started
 *     NOT_SUPPORTED  the library was built without isa-l
 */
DOCA_EXPERIMENTAL doca_error_t doca_ec_task_update_set_conf(
	struct doca_ec *ec, doca_ec_task_update_completion_cb_t successful_task_completion_cb,
	doca_ec_task_update_completion_cb_t error_task_completion_cb, uint32_t num_tasks);

/*
 * Allocate a task that updates redundancy blocks after some data blocks have changed. The source
 * has the old and the new content of each changed data block, then the old redundancy blocks.
 * Errors:
 *     BAD_STATE  the context is idle
 *     NO_MEMORY  all tasks are allocated
 */
DOCA_EXPERIMENTAL doca_error_t
doca_ec_task_update_allocate_init(struct doca_ec *ec, const struct doca_ec_matrix *update_matrix,
				  const struct doca_buf *original_updated_and_rdnc_blocks,
				  struct doca_buf *updated_rdnc_blocks, union doca_data user_data,
				  struct doca_ec_task_update **task);

/* Returns the generic task, for doca_task_submit() and doca_task_free(). It is the same object. */
DOCA_EXPERIMENTAL struct doca_task *doca_ec_task_update_as_task(struct doca_ec_task_update *task);

/* Set and get the fields of a task. Do not set a field while the task is submitted. */
DOCA_EXPERIMENTAL void doca_ec_task_update_set_update_matrix(
	struct doca_ec_task_update *task, const struct doca_ec_matrix *update_matrix);
DOCA_EXPERIMENTAL const struct doca_ec_matrix *doca_ec_task_update_get_update_matrix(
	const struct doca_ec_task_update *task);
DOCA_EXPERIMENTAL void doca_ec_task_update_set_original_updated_and_rdnc_blocks(
	struct doca_ec_task_update *task, const struct doca_buf *original_updated_and_rdnc_blocks);
DOCA_EXPERIMENTAL const struct doca_buf *doca_ec_task_update_get_original_updated_and_rdnc_blocks(
	const struct doca_ec_task_update *task);
DOCA_EXPERIMENTAL void doca_ec_task_update_set_updated_rdnc_blocks(
	struct doca_ec_task_update *task, struct doca_buf *updated_rdnc_blocks);
DOCA_EXPERIMENTAL struct doca_buf *doca_ec_task_update_get_updated_rdnc_blocks(
	const struct doca_ec_task_update *task);

/* Returns SUCCESS if the device supports recover tasks, NOT_SUPPORTED if not. */
DOCA_EXPERIMENTAL doca_error_t
doca_ec_cap_task_recover_is_supported(const struct doca_devinfo *devinfo);

/*
 * Set the completion callbacks for success and for failure, and the number of tasks. Call before
 * start.
 * Errors:
 *     BAD_STATE      the context is started
 *     NOT_SUPPORTED  the library was built without isa-l
 */
DOCA_EXPERIMENTAL doca_error_t doca_ec_task_recover_set_conf(
	struct doca_ec *ec, doca_ec_task_recover_completion_cb_t successful_task_completion_cb,
	doca_ec_task_recover_completion_cb_t error_task_completion_cb, uint32_t num_tasks);

/*
 * Allocate a task that recovers missing blocks from available blocks.
 * Errors:
 *     BAD_STATE  the context is idle
 *     NO_MEMORY  all tasks are allocated
 */
DOCA_EXPERIMENTAL doca_error_t doca_ec_task_recover_allocate_init(
	struct doca_ec *ec, const struct doca_ec_matrix *recover_matrix,
	const struct doca_buf *available_blocks, struct doca_buf *recovered_data_blocks,
	union doca_data user_data, struct doca_ec_task_recover **task);

/* Returns the generic task, for doca_task_submit() and doca_task_free(). It is the same object. */
DOCA_EXPERIMENTAL struct doca_task *doca_ec_task_recover_as_task(struct doca_ec_task_recover *task);

/* Set and get the fields of a task. Do not set a field while the task is submitted. */
DOCA_EXPERIMENTAL void doca_ec_task_recover_set_recover_matrix(
	struct doca_ec_task_recover *task, const struct doca_ec_matrix *recover_matrix);
DOCA_EXPERIMENTAL const struct doca_ec_matrix *doca_ec_task_recover_get_recover_matrix(
	const struct doca_ec_task_recover *task);
DOCA_EXPERIMENTAL void doca_ec_task_recover_set_available_blocks(
	struct doca_ec_task_recover *task, const struct doca_buf *available_blocks);
DOCA_EXPERIMENTAL const struct doca_buf *doca_ec_task_recover_get_available_blocks(
	const struct doca_ec_task_recover *task);
DOCA_EXPERIMENTAL void doca_ec_task_recover_set_recovered_data_blocks(
	struct doca_ec_task_recover *task, struct doca_buf *recovered_data_blocks);
DOCA_EXPERIMENTAL struct doca_buf *doca_ec_task_recover_get_recovered_data(
	const struct doca_ec_task_recover *task);

/*
 * Create a context on an open device.
 * Errors:
 *     NO_MEMORY  memory allocation failed
 */
DOCA_EXPERIMENTAL doca_error_t doca_ec_create(struct doca_dev *dev, struct doca_ec **ec);

/*
 * Destroy the context.
 * Errors:
 *     BAD_STATE  the context is not idle
 */
DOCA_EXPERIMENTAL doca_error_t doca_ec_destroy(struct doca_ec *ec);

/* Returns the object as a context, valid until the object is destroyed. Returns NULL for NULL. */
DOCA_EXPERIMENTAL struct doca_ctx *doca_ec_as_ctx(struct doca_ec *ec);

/*
 * Get the maximum length of a block, in bytes.
 * Errors:
 *     NOT_SUPPORTED  the library was built without isa-l
 */
DOCA_EXPERIMENTAL doca_error_t doca_ec_cap_get_max_block_size(const struct doca_devinfo *devinfo,
							      uint64_t *max_block_size);

/* Get the maximum number of buffers in a list. */
DOCA_EXPERIMENTAL doca_error_t doca_ec_cap_get_max_buf_list_len(const struct doca_devinfo *devinfo,
								uint32_t *max_buf_list_len);

/*
 * Create the coding matrix for data_block_count data blocks and rdnc_block_count redundancy blocks,
 * at most 255 together. The first redundancy block is the exclusive or of all data blocks, for both
 * types.
 * Errors:
 *     NO_MEMORY  memory allocation failed
 */
DOCA_EXPERIMENTAL doca_error_t doca_ec_matrix_create(struct doca_ec *ec,
						     enum doca_ec_matrix_type type,
						     size_t data_block_count,
						     size_t rdnc_block_count,
						     struct doca_ec_matrix **matrix);

/*
 * Create a coding matrix from bytes, which the library copies: a row of data_block_count bytes for
 * each redundancy block.
 * Errors:
 *     NO_MEMORY  memory allocation failed
 */
DOCA_EXPERIMENTAL doca_error_t doca_ec_matrix_create_from_raw(struct doca_ec *ec, uint8_t *data,
							      size_t data_block_count,
							      size_t rdnc_block_count,
							      struct doca_ec_matrix **matrix);

/*
 * Create the matrix for an update from a coding matrix. update_indices: the changed data blocks,
 * ascending.
 * Errors:
 *     NO_MEMORY  memory allocation failed
 */
DOCA_EXPERIMENTAL doca_error_t doca_ec_matrix_create_update(
	struct doca_ec *ec, const struct doca_ec_matrix *coding_matrix, uint32_t update_indices[],
	size_t n_updates, struct doca_ec_matrix **matrix);

/*
 * Create the matrix for a recovery from a coding matrix. missing_indices: the missing blocks,
 * ascending; redundancy blocks are numbered after the data blocks. The recovery uses the first
 * available blocks, as many as there are data blocks.
 * Errors:
 *     INVALID_VALUE  the blocks cannot be recovered
 *     NO_MEMORY      memory allocation failed
 */
DOCA_EXPERIMENTAL doca_error_t doca_ec_matrix_create_recover(
	struct doca_ec *ec, const struct doca_ec_matrix *coding_matrix, uint32_t missing_indices[],
	size_t n_missing, struct doca_ec_matrix **matrix);

/* Destroy the matrix. Do not call it while a submitted task uses the matrix. */
DOCA_EXPERIMENTAL doca_error_t doca_ec_matrix_destroy(struct doca_ec_matrix *matrix);

#ifdef __cplusplus
}
#endif

#endif
