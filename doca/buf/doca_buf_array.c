/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doca_buf_array.c - arrays of elements of a map. They are for code of devices; this library only
 * checks their configuration.
 */
#include <doca_buf_array.h>

#include <stdint.h>
#include <stdlib.h>

#include "buf/buf.h"

struct doca_buf_arr {
	size_t n, size;
	uint64_t offset;
	struct doca_mmap *mmap;
	bool started;
};

doca_error_t doca_buf_arr_create(size_t num_elem, struct doca_buf_arr **array_p)
{
	struct doca_buf_arr *array;

	if (num_elem == 0 || !array_p)
		return DOCA_ERROR_INVALID_VALUE;
	array = calloc(1, sizeof(*array));
	if (!array)
		return DOCA_ERROR_NO_MEMORY;
	array->n = num_elem;
	*array_p = array;
	return DOCA_SUCCESS;
}

doca_error_t doca_buf_arr_set_params(struct doca_buf_arr *array, struct doca_mmap *mmap,
				     size_t elem_size, uint64_t start_offset)
{
	uint64_t bytes;

	if (!array || !mmap || elem_size == 0)
		return DOCA_ERROR_INVALID_VALUE;
	if (array->started)
		return DOCA_ERROR_BAD_STATE;
	if (__builtin_mul_overflow((uint64_t)array->n, (uint64_t)elem_size, &bytes) ||
	    __builtin_add_overflow(bytes, start_offset, &bytes) || bytes > mmap->length)
		return DOCA_ERROR_INVALID_VALUE;
	array->mmap = mmap;
	array->size = elem_size;
	array->offset = start_offset;
	return DOCA_SUCCESS;
}

doca_error_t doca_buf_arr_start(struct doca_buf_arr *array)
{
	if (!array)
		return DOCA_ERROR_INVALID_VALUE;
	if (!array->mmap || !array->mmap->started || array->started)
		return DOCA_ERROR_BAD_STATE;
	array->started = true;
	return DOCA_SUCCESS;
}

doca_error_t doca_buf_arr_stop(struct doca_buf_arr *array)
{
	if (!array)
		return DOCA_ERROR_INVALID_VALUE;
	array->started = false;
	return DOCA_SUCCESS;
}

doca_error_t doca_buf_arr_destroy(struct doca_buf_arr *array)
{
	if (!array)
		return DOCA_ERROR_INVALID_VALUE;
	free(array);
	return DOCA_SUCCESS;
}
