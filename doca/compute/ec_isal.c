/* SPDX-License-Identifier: BSD-3-Clause */
/* ec_isal.c - matrices of erasure codes, and products of blocks */
#include <stdlib.h>
#include <string.h>

#include "compute/ec.h"

struct doca_ec_matrix *gd_ec_matrix_new(uint32_t rows, uint32_t columns)
{
	size_t cells = (size_t)rows * columns;
	struct doca_ec_matrix *matrix = calloc(1, sizeof(*matrix) + cells * 33);

	if (!matrix)
		return NULL;
	matrix->rows = rows;
	matrix->columns = columns;
	matrix->tables = (uint8_t *)(matrix + 1);
	matrix->cells = matrix->tables + cells * 32;
	return matrix;
}

void gd_ec_matrix_free(struct doca_ec_matrix *matrix)
{
	free(matrix);
}

#ifdef HAVE_LIBISAL

/*
 * pq_gen, xor_gen and gf_vect_mul of isa-l use non-temporal stores without a fence. A caller of
 * them must add the fence.
 */
#include <isa-l/erasure_code.h>

/*
 * Divide each column by its first cell, so that the first redundancy block is the sum of the data
 * blocks for both types. The code remains valid. With one redundancy block, the coding matrix then
 * also recovers any block from the others; programs rely on that.
 */
static void make_first_row_ones(struct doca_ec_matrix *matrix)
{
	for (uint32_t c = 0; c < matrix->columns; c++) {
		uint8_t by = gf_inv(matrix->cells[c]);

		for (uint32_t r = 0; r < matrix->rows; r++) {
			uint8_t *cell = &matrix->cells[r * matrix->columns + c];

			*cell = gf_mul(*cell, by);
		}
	}
}

void gd_ec_fill(struct doca_ec_matrix *matrix, enum doca_ec_matrix_type type)
{
	const uint32_t columns = matrix->columns;
	uint8_t x = 1;

	for (uint32_t r = 0; r < matrix->rows; r++) {
		uint8_t power = 1;

		for (uint32_t c = 0; c < columns; c++) {
			if (type == DOCA_EC_MATRIX_TYPE_CAUCHY)
				matrix->cells[r * columns + c] =
					gf_inv((uint8_t)((columns + r) ^ c));
			else
				matrix->cells[r * columns + c] = power;
			power = gf_mul(power, x);
		}
		x = gf_mul(x, 2);
	}
	if (type == DOCA_EC_MATRIX_TYPE_CAUCHY)
		make_first_row_ones(matrix);
}

/* Copy the row that computes block `index` from the data blocks. */
static void copy_row(uint8_t *row, const struct doca_ec_matrix *coding, uint32_t index)
{
	const uint32_t k = coding->columns;

	memset(row, 0, k);
	if (index < k)
		row[index] = 1;
	else
		memcpy(row, coding->cells + (size_t)(index - k) * k, k);
}

/* out = row x inverse */
static void multiply_row(uint8_t *out, const uint8_t *row, const uint8_t *inverse, uint32_t k)
{
	for (uint32_t c = 0; c < k; c++) {
		uint8_t sum = 0;

		for (uint32_t i = 0; i < k; i++)
			sum ^= gf_mul(row[i], inverse[(size_t)i * k + c]);
		out[c] = sum;
	}
}

doca_error_t gd_ec_fill_recover(struct doca_ec_matrix *matrix, const struct doca_ec_matrix *coding,
				const uint32_t *missing)
{
	const uint32_t k = coding->columns;
	uint8_t *there = malloc((size_t)k * k * 2), *inverse, row[GD_EC_BLOCKS_MAX];
	doca_error_t result = DOCA_ERROR_INVALID_VALUE;
	uint32_t n = 0, m = 0;

	if (!there)
		return DOCA_ERROR_NO_MEMORY;
	inverse = there + (size_t)k * k;
	for (uint32_t i = 0; n < k && i < k + coding->rows; i++) {
		if (m < matrix->rows && missing[m] == i)
			m++;
		else
			copy_row(there + (size_t)k * n++, coding, i);
	}
	if (n < k || gf_invert_matrix(there, inverse, (int)k) != 0)
		goto out;
	for (uint32_t r = 0; r < matrix->rows; r++) {
		copy_row(row, coding, missing[r]);
		multiply_row(matrix->cells + (size_t)r * k, row, inverse, k);
	}
	result = DOCA_SUCCESS;
out:
	free(there);
	return result;
}

void gd_ec_matrix_ready(struct doca_ec_matrix *matrix)
{
	ec_init_tables((int)matrix->columns, (int)matrix->rows, matrix->cells, matrix->tables);
}

void gd_ec_multiply(const struct doca_ec_matrix *matrix, size_t length, const uint8_t **in,
		    uint8_t **out)
{
	ec_encode_data((int)length, (int)matrix->columns, (int)matrix->rows, matrix->tables,
		       (unsigned char **)in, out);
}

#else

void gd_ec_fill(struct doca_ec_matrix *matrix, enum doca_ec_matrix_type type)
{
	(void)matrix, (void)type;
}

doca_error_t gd_ec_fill_recover(struct doca_ec_matrix *matrix, const struct doca_ec_matrix *coding,
				const uint32_t *missing)
{
	(void)matrix, (void)coding, (void)missing;
	return DOCA_ERROR_NOT_SUPPORTED;
}

void gd_ec_matrix_ready(struct doca_ec_matrix *matrix)
{
	(void)matrix;
}

void gd_ec_multiply(const struct doca_ec_matrix *matrix, size_t length, const uint8_t **in,
		    uint8_t **out)
{
	(void)matrix, (void)length, (void)in, (void)out;
}

#endif
