/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ec.h - erasure codes by isa-l: matrix products over GF(256). Without isa-l the functions return
 * NOT_SUPPORTED.
 *
 * A matrix has a column for each input block and a row for each output block.
 */
#ifndef GD_EC_H
#define GD_EC_H

#include <doca_erasure_coding.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GD_EC_BLOCKS_MAX 255 /* maximum number of data and redundancy blocks together */

#ifdef HAVE_LIBISAL
#define GD_HAVE_EC true
#else
#define GD_HAVE_EC false
#endif

struct doca_ec_matrix {
	uint32_t rows, columns;
	uint8_t *cells;  /* row by row */
	uint8_t *tables; /* 32 bytes for each cell, computed from it */
};

/* Create a zeroed matrix. Returns NULL if memory allocation fails. Freeing NULL has no effect. */
struct doca_ec_matrix *gd_ec_matrix_new(uint32_t rows, uint32_t columns);
void gd_ec_matrix_free(struct doca_ec_matrix *matrix);

/* Fill the cells. Then call gd_ec_matrix_ready() once. */
void gd_ec_fill(struct doca_ec_matrix *matrix, enum doca_ec_matrix_type type);
/*
 * Fill the rows that compute the missing blocks of `coding` from the first available blocks.
 * INVALID_VALUE: the blocks cannot be recovered; NO_MEMORY.
 */
doca_error_t gd_ec_fill_recover(struct doca_ec_matrix *matrix, const struct doca_ec_matrix *coding,
				const uint32_t *missing);
void gd_ec_matrix_ready(struct doca_ec_matrix *matrix);

/* out[row] = sum over columns of cell x in[column], each block `length` bytes. */
void gd_ec_multiply(const struct doca_ec_matrix *matrix, size_t length, const uint8_t **in,
		    uint8_t **out);

#endif
