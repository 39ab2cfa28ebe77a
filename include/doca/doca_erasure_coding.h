/* SPDX-License-Identifier: BSD-3-Clause */
/* doca_erasure_coding.h - redundancy blocks, and data blocks out of them */
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

enum doca_ec_matrix_type {
	DOCA_EC_MATRIX_TYPE_CAUCHY = 1,
	DOCA_EC_MATRIX_TYPE_VANDERMONDE = 2,
};

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

/* SUCCESS when the device can do it, NOT_SUPPORTED when not. */
DOCA_EXPERIMENTAL doca_error_t
doca_ec_cap_task_galois_mul_is_supported(const struct doca_devinfo *devinfo);

/* Before start: callbacks of success and of failure, and how many tasks there will be. */
DOCA_EXPERIMENTAL doca_error_t doca_ec_task_galois_mul_set_conf(
	struct doca_ec *ec, doca_ec_task_galois_mul_completion_cb_t successful_task_completion_cb,
	doca_ec_task_galois_mul_completion_cb_t error_task_completion_cb, uint32_t num_tasks);

/* Take a task: the matrix times the blocks of the source. Errors: NO_MEMORY. */
DOCA_EXPERIMENTAL doca_error_t doca_ec_task_galois_mul_allocate_init(
	struct doca_ec *ec, const struct doca_ec_matrix *coding_matrix,
	const struct doca_buf *src_buf, struct doca_buf *dst_buf, union doca_data user_data,
	struct doca_ec_task_galois_mul **task);

/* The task as a task of any kind; the same object. */
DOCA_EXPERIMENTAL struct doca_task *doca_ec_task_galois_mul_as_task(
	struct doca_ec_task_galois_mul *task);

/* The fields of a task, while it is not submitted. */
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

/* SUCCESS when the device can do it, NOT_SUPPORTED when not. */
DOCA_EXPERIMENTAL doca_error_t
doca_ec_cap_task_create_is_supported(const struct doca_devinfo *devinfo);

/* Before start: callbacks of success and of failure, and how many tasks there will be. */
DOCA_EXPERIMENTAL doca_error_t doca_ec_task_create_set_conf(
	struct doca_ec *ec, doca_ec_task_create_completion_cb_t successful_task_completion_cb,
	doca_ec_task_create_completion_cb_t error_task_completion_cb, uint32_t num_tasks);

/*
 * Take a task: redundancy blocks out of all data blocks, which follow each other in the source.
 * Errors: NO_MEMORY.
 */
DOCA_EXPERIMENTAL doca_error_t doca_ec_task_create_allocate_init(
	struct doca_ec *ec, const struct doca_ec_matrix *coding_matrix,
	const struct doca_buf *original_data_blocks, struct doca_buf *rdnc_blocks,
	union doca_data user_data, struct doca_ec_task_create **task);

/* The task as a task of any kind; the same object. */
DOCA_EXPERIMENTAL struct doca_task *doca_ec_task_create_as_task(struct doca_ec_task_create *task);

/* The fields of a task, while it is not submitted. */
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

/* SUCCESS when the device can do it, NOT_SUPPORTED when not. */
DOCA_EXPERIMENTAL doca_error_t
doca_ec_cap_task_update_is_supported(const struct doca_devinfo *devinfo);

/* Before start: callbacks of success and of failure, and how many tasks there will be. */
DOCA_EXPERIMENTAL doca_error_t doca_ec_task_update_set_conf(
	struct doca_ec *ec, doca_ec_task_update_completion_cb_t successful_task_completion_cb,
	doca_ec_task_update_completion_cb_t error_task_completion_cb, uint32_t num_tasks);

/*
 * Take a task: new redundancy blocks out of the old ones, when some data blocks have changed.
 * Errors: NO_MEMORY.
 */
DOCA_EXPERIMENTAL doca_error_t
doca_ec_task_update_allocate_init(struct doca_ec *ec, const struct doca_ec_matrix *update_matrix,
				  const struct doca_buf *original_updated_and_rdnc_blocks,
				  struct doca_buf *updated_rdnc_blocks, union doca_data user_data,
				  struct doca_ec_task_update **task);

/* The task as a task of any kind; the same object. */
DOCA_EXPERIMENTAL struct doca_task *doca_ec_task_update_as_task(struct doca_ec_task_update *task);

/* The fields of a task, while it is not submitted. */
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

/* SUCCESS when the device can do it, NOT_SUPPORTED when not. */
DOCA_EXPERIMENTAL doca_error_t
doca_ec_cap_task_recover_is_supported(const struct doca_devinfo *devinfo);

/* Before start: callbacks of success and of failure, and how many tasks there will be. */
DOCA_EXPERIMENTAL doca_error_t doca_ec_task_recover_set_conf(
	struct doca_ec *ec, doca_ec_task_recover_completion_cb_t successful_task_completion_cb,
	doca_ec_task_recover_completion_cb_t error_task_completion_cb, uint32_t num_tasks);

/* Take a task: the missing blocks out of those that are left. Errors: NO_MEMORY. */
DOCA_EXPERIMENTAL doca_error_t doca_ec_task_recover_allocate_init(
	struct doca_ec *ec, const struct doca_ec_matrix *recover_matrix,
	const struct doca_buf *available_blocks, struct doca_buf *recovered_data_blocks,
	union doca_data user_data, struct doca_ec_task_recover **task);

/* The task as a task of any kind; the same object. */
DOCA_EXPERIMENTAL struct doca_task *doca_ec_task_recover_as_task(struct doca_ec_task_recover *task);

/* The fields of a task, while it is not submitted. */
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

/* For a device that is open. Errors: NO_MEMORY. */
DOCA_EXPERIMENTAL doca_error_t doca_ec_create(struct doca_dev *dev, struct doca_ec **ec);

/* BAD_STATE when it is not idle. */
DOCA_EXPERIMENTAL doca_error_t doca_ec_destroy(struct doca_ec *ec);

/* The object as a context, until it is destroyed. NULL for NULL. */
DOCA_EXPERIMENTAL struct doca_ctx *doca_ec_as_ctx(struct doca_ec *ec);

/* The most that the device takes. Errors: NOT_SUPPORTED. */
DOCA_EXPERIMENTAL doca_error_t doca_ec_cap_get_max_block_size(const struct doca_devinfo *devinfo,
							      uint64_t *max_block_size);

/* The most that the device takes. */
DOCA_EXPERIMENTAL doca_error_t doca_ec_cap_get_max_buf_list_len(const struct doca_devinfo *devinfo,
								uint32_t *max_buf_list_len);

/*
 * What redundancy blocks are made with: kind, number of data blocks, number of redundancy blocks,
 * 255 together at most.
 * The first redundancy block is the exclusive or of all data blocks, whatever the kind.
 */
DOCA_EXPERIMENTAL doca_error_t doca_ec_matrix_create(struct doca_ec *ec,
						     enum doca_ec_matrix_type type,
						     size_t data_block_count,
						     size_t rdnc_block_count,
						     struct doca_ec_matrix **matrix);

/*
 * The same out of bytes of the caller's, which are copied: a row of data_block_count bytes for each
 * redundancy block
 */
DOCA_EXPERIMENTAL doca_error_t doca_ec_matrix_create_from_raw(struct doca_ec *ec, uint8_t *data,
							      size_t data_block_count,
							      size_t rdnc_block_count,
							      struct doca_ec_matrix **matrix);

/* Out of one to create: what an update of data blocks is made with; indices ascend. */
DOCA_EXPERIMENTAL doca_error_t doca_ec_matrix_create_update(
	struct doca_ec *ec, const struct doca_ec_matrix *coding_matrix, uint32_t update_indices[],
	size_t n_updates, struct doca_ec_matrix **matrix);

/*
 * Out of one to create: what missing blocks are recovered with, out of the first others, as many as
 * there are data blocks. Indices ascend; redundancy blocks count on after data blocks.
 */
DOCA_EXPERIMENTAL doca_error_t doca_ec_matrix_create_recover(
	struct doca_ec *ec, const struct doca_ec_matrix *coding_matrix, uint32_t missing_indices[],
	size_t n_missing, struct doca_ec_matrix **matrix);

/* No task may use it any more. */
DOCA_EXPERIMENTAL doca_error_t doca_ec_matrix_destroy(struct doca_ec_matrix *matrix);

#ifdef __cplusplus
}
#endif

#endif
