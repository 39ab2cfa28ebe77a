/* SPDX-License-Identifier: BSD-3-Clause */
/* doca_buf_array.h - arrays of equal elements in a memory map */
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

/*
 * Create an array of num_elem elements.
 * Errors:
 *     NO_MEMORY  memory allocation failed
 */
DOCA_EXPERIMENTAL doca_error_t doca_buf_arr_create(size_t num_elem, struct doca_buf_arr **buf_arr);

/*
 * Set the map, the size of an element in bytes, and the offset of the first element in the map.
 * Elements follow each other without gaps. Call before start.
 * Errors:
 *     BAD_STATE  the array is started
 */
DOCA_EXPERIMENTAL doca_error_t doca_buf_arr_set_params(struct doca_buf_arr *buf_arr,
						       struct doca_mmap *mmap, size_t elem_size,
						       uint64_t start_offset);

/*
 * Start the array.
 * Errors:
 *     BAD_STATE  the array is started or has no map, or the map is not started
 *     NO_MEMORY  never returned
 */
DOCA_EXPERIMENTAL doca_error_t doca_buf_arr_start(struct doca_buf_arr *buf_arr);

/* Stop the array. It can be configured again. */
DOCA_EXPERIMENTAL doca_error_t doca_buf_arr_stop(struct doca_buf_arr *buf_arr);

/* Destroy the array, but not its map. */
DOCA_EXPERIMENTAL doca_error_t doca_buf_arr_destroy(struct doca_buf_arr *buf_arr);

#ifdef __cplusplus
}
#endif

#endif
