/* SPDX-License-Identifier: BSD-3-Clause */
/* doca_buf_array.h - an array of equal elements of a memory map */
#ifndef DOCA_BUF_ARRAY_H
#define DOCA_BUF_ARRAY_H

#include <stddef.h>
#include <stdint.h>

#include <doca_error.h>
#include <doca_types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct doca_buf_arr;
struct doca_mmap;

/* An array of num_elem elements. Errors: NO_MEMORY. */
DOCA_EXPERIMENTAL doca_error_t doca_buf_arr_create(size_t num_elem, struct doca_buf_arr **buf_arr);

/*
 * Before start: the first element begins at start_offset of the map, the others follow. Errors:
 * BAD_STATE.
 */
DOCA_EXPERIMENTAL doca_error_t doca_buf_arr_set_params(struct doca_buf_arr *buf_arr,
						       struct doca_mmap *mmap, size_t elem_size,
						       uint64_t start_offset);

/* Set-up is over. Errors: BAD_STATE, NO_MEMORY. */
DOCA_EXPERIMENTAL doca_error_t doca_buf_arr_start(struct doca_buf_arr *buf_arr);

/* It can be set up again. */
DOCA_EXPERIMENTAL doca_error_t doca_buf_arr_stop(struct doca_buf_arr *buf_arr);

/* Free it; the map stays. */
DOCA_EXPERIMENTAL doca_error_t doca_buf_arr_destroy(struct doca_buf_arr *buf_arr);

#ifdef __cplusplus
}
#endif

#endif
