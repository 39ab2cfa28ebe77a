/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ec.h - erasure codes by isa-l: sums of products in the field of 256 elements; without it there
 * are none.
 *
 * A matrix has a column for each block that goes in and a row for each that comes out.
 */
#ifndef GD_EC_H
#define GD_EC_H

#include <doca_erasure_coding.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GD_EC_BLOCKS_MAX 255 /* data and redundancy */

#ifdef HAVE_LIBISAL
#define GD_HAVE_EC true
#else
#define GD_HAVE_EC false
#endif

struct doca_ec_matrix {
	uint32_t rows, columns;
	uint8_t *cells;  /* row by row */
	uint8_t *tables; /* 32 bytes for each cell, made of it */
};

/* A matrix of zeros. NULL: no memory. Freeing NULL does nothing. */
struct doca_ec_matrix *gd_ec_matrix_new(uint32_t rows, uint32_t columns);
void gd_ec_matrix_free(struct doca_ec_matrix *matrix);

/* Fill the cells, then gd_ec_matrix_ready() once. */
void gd_ec_fill(struct doca_ec_matrix *matrix, enum doca_ec_matrix_type type);
/*
 * Rows that make the missing blocks of `coding` out of the first others. INVALID_VALUE: they cannot
 * be made; NO_MEMORY.
 */
doca_error_t gd_ec_fill_recover(struct doca_ec_matrix *matrix, const struct doca_ec_matrix *coding,
				const uint32_t *missing);
void gd_ec_matrix_ready(struct doca_ec_matrix *matrix);

/* out[row] = sum over columns of cell x in[column], each block `length` bytes. */
void gd_ec_multiply(const struct doca_ec_matrix *matrix, size_t length, const uint8_t **in,
		    uint8_t **out);

#endif
