/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doca_erasure_coding.c - erasure coding contexts: create, update and recover blocks
 *
 * Every task multiplies blocks by a matrix. The coding matrix computes redundancy blocks from data
 * blocks. A recovery matrix computes the missing blocks from the first available blocks, in their
 * order. An update matrix computes new redundancy blocks from the old and new content of each
 * changed data block and the old redundancy blocks. So all task types use one structure.
 */
#include <doca_erasure_coding.h>

#include <stdlib.h>
#include <string.h>

#include "buf/buf.h"
#include "common/gd_log.h"
#include "compute/ec.h"
#include "compute/serial.h"
#include "device/gd_device.h"

#define BLOCK_UNIT 64 /* bytes; the size of a block is a multiple of it */
#define MAX_BLOCK ((uint64_t)64 << 20)

enum kind { GALOIS_MUL, CREATE, UPDATE, RECOVER, N_KINDS };

struct doca_ec {
	struct gd_serial serial; /* must be first */
	struct gd_pool pools[N_KINDS];
};

struct ec_task {
	struct doca_task task; /* must be first */
	const struct doca_ec_matrix *matrix;
	const struct doca_buf *src;
	struct doca_buf *dst;
};

static const struct gd_ctx_ops ctx_ops = GD_SERIAL_CTX("erasure coding");

/* -- execution -- */

/*
 * Returns the size of the blocks of the source; 0: the source does not consist of the right number
 * of valid blocks.
 */
static size_t block_bytes(const struct ec_task *t)
{
	size_t length = gd_buf_data_bytes(t->src), block = length / t->matrix->columns;

	return block * t->matrix->columns == length && block % BLOCK_UNIT == 0 && block <= MAX_BLOCK
		       ? block
		       : 0;
}

static doca_error_t check(const struct doca_task *task)
{
	const struct ec_task *t = (const struct ec_task *)task;
	size_t block = t->matrix && t->src && t->dst ? block_bytes(t) : 0;

	if (!gd_serial_can_use(task->ctx, t->src, t->dst))
		return DOCA_ERROR_INVALID_VALUE;
	return block && gd_buf_room(t->dst) >= block * t->matrix->rows ? DOCA_SUCCESS
								       : DOCA_ERROR_INVALID_VALUE;
}

/* Find the blocks of a list. They are copied only if one of them is not contiguous. */
static doca_error_t find_blocks(struct gd_serial *serial, const struct ec_task *t, size_t block,
				const uint8_t **blocks)
{
	const struct doca_buf *buf;
	const uint8_t *data;
	doca_error_t result;
	size_t length;
	void *here;

	serial->read = t->src;
	for (uint32_t i = 0; i < t->matrix->columns; i++) {
		length = block;
		result = gd_buf_piece(t->src, false, i * block, &buf, &here, &length);
		if (result != DOCA_SUCCESS)
			return result;
		if (length < block)
			goto copy;
		blocks[i] = here;
	}
	return DOCA_SUCCESS;
copy:
	result = gd_serial_source(serial, t->src, &data, &length);
	for (uint32_t i = 0; result == DOCA_SUCCESS && i < t->matrix->columns; i++)
		blocks[i] = data + i * block;
	return result;
}

static doca_error_t run(struct gd_serial *serial, struct doca_task *task)
{
	struct ec_task *t = (struct ec_task *)task;
	const uint8_t *in[2 * GD_EC_BLOCKS_MAX];
	uint8_t *out[GD_EC_BLOCKS_MAX];
	struct gd_serial_dst room;
	size_t block;
	doca_error_t result = check(task);

	if (result != DOCA_SUCCESS)
		return result;
	block = block_bytes(t);
	result = find_blocks(serial, t, block, in);
	if (result == DOCA_SUCCESS)
		result = gd_serial_room(serial, t->dst, block * t->matrix->rows, &room);
	if (result != DOCA_SUCCESS)
		return result;
	for (uint32_t r = 0; r < t->matrix->rows; r++)
		out[r] = room.bytes + r * block;
	gd_ec_multiply(t->matrix, block, in, out);
	return gd_serial_put(&room, room.size);
}

static const struct gd_serial_ops task_ops = GD_SERIAL_TASK(check, run);

/* -- the object -- */

doca_error_t doca_ec_create(struct doca_dev *dev, struct doca_ec **ec)
{
	struct doca_ec *e;

	if (!gd_dev_is_open(dev) || !ec)
		return DOCA_ERROR_INVALID_VALUE;
	if (!GD_HAVE_EC) {
		gd_log(DOCA_LOG_LEVEL_ERROR,
		       "erasure coding not supported: the library was built without isa-l: install isa-l and build it again");
		return DOCA_ERROR_NOT_SUPPORTED;
	}
	e = calloc(1, sizeof(*e));
	if (!e)
		return DOCA_ERROR_NO_MEMORY;
	gd_ctx_init(&e->serial.ctx, &ctx_ops, dev);
	for (int i = 0; i < N_KINDS; i++)
		gd_pool_init(&e->pools[i], &e->serial.ctx, &task_ops.ops, sizeof(struct ec_task));
	*ec = e;
	return DOCA_SUCCESS;
}

doca_error_t doca_ec_destroy(struct doca_ec *ec)
{
	return gd_serial_destroy(ec ? &ec->serial : NULL, DOCA_ERROR_BAD_STATE);
}

struct doca_ctx *doca_ec_as_ctx(struct doca_ec *ec)
{
	return ec ? &ec->serial.ctx : NULL;
}

doca_error_t doca_ec_cap_get_max_block_size(const struct doca_devinfo *devinfo,
					    uint64_t *max_block_size)
{
	return gd_cap_u64(devinfo, GD_HAVE_EC, MAX_BLOCK, max_block_size);
}

doca_error_t doca_ec_cap_get_max_buf_list_len(const struct doca_devinfo *devinfo,
					      uint32_t *max_buf_list_len)
{
	return gd_cap_u32(devinfo, true, GD_SERIAL_LIST_MAX, max_buf_list_len);
}

/* -- matrices -- */

/* Create a matrix for k data and r redundancy blocks. */
static doca_error_t new_code(struct doca_ec *ec, size_t k, size_t r,
			     struct doca_ec_matrix **matrix_p)
{
	if (!ec || !matrix_p || k == 0 || r == 0 || k > GD_EC_BLOCKS_MAX || r > GD_EC_BLOCKS_MAX ||
	    k + r > GD_EC_BLOCKS_MAX)
		return DOCA_ERROR_INVALID_VALUE;
	*matrix_p = gd_ec_matrix_new((uint32_t)r, (uint32_t)k);
	return *matrix_p ? DOCA_SUCCESS : DOCA_ERROR_NO_MEMORY;
}

doca_error_t doca_ec_matrix_create(struct doca_ec *ec, enum doca_ec_matrix_type type,
				   size_t data_block_count, size_t rdnc_block_count,
				   struct doca_ec_matrix **matrix)
{
	struct doca_ec_matrix *m;
	doca_error_t result;

	if (!matrix ||
	    (type != DOCA_EC_MATRIX_TYPE_CAUCHY && type != DOCA_EC_MATRIX_TYPE_VANDERMONDE))
		return DOCA_ERROR_INVALID_VALUE;
	result = new_code(ec, data_block_count, rdnc_block_count, &m);
	if (result != DOCA_SUCCESS)
		return result;
	gd_ec_fill(m, type);
	gd_ec_matrix_ready(m);
	*matrix = m;
	return DOCA_SUCCESS;
}

doca_error_t doca_ec_matrix_create_from_raw(struct doca_ec *ec, uint8_t *data,
					    size_t data_block_count, size_t rdnc_block_count,
					    struct doca_ec_matrix **matrix)
{
	struct doca_ec_matrix *m;
	doca_error_t result;

	if (!data || !matrix)
		return DOCA_ERROR_INVALID_VALUE;
	result = new_code(ec, data_block_count, rdnc_block_count, &m);
	if (result != DOCA_SUCCESS)
		return result;
	memcpy(m->cells, data, data_block_count * rdnc_block_count);
	gd_ec_matrix_ready(m);
	*matrix = m;
	return DOCA_SUCCESS;
}

/* Returns whether there are 1 to `most` ascending indices below the limit. */
static bool good_indices(const uint32_t *indices, size_t n, size_t most, uint32_t limit)
{
	if (!indices || n == 0 || n > most)
		return false;
	for (size_t i = 0; i < n; i++)
		if (indices[i] >= limit || (i > 0 && indices[i] <= indices[i - 1]))
			return false;
	return true;
}

doca_error_t doca_ec_matrix_create_update(struct doca_ec *ec,
					  const struct doca_ec_matrix *coding_matrix,
					  uint32_t update_indices[], size_t n_updates,
					  struct doca_ec_matrix **matrix)
{
	struct doca_ec_matrix *m;
	uint32_t n = (uint32_t)n_updates;

	if (!ec || !coding_matrix || !matrix ||
	    !good_indices(update_indices, n_updates, coding_matrix->columns,
			  coding_matrix->columns))
		return DOCA_ERROR_INVALID_VALUE;
	m = gd_ec_matrix_new(coding_matrix->rows, 2 * n + coding_matrix->rows);
	if (!m)
		return DOCA_ERROR_NO_MEMORY;
	for (uint32_t r = 0; r < m->rows; r++) {
		uint8_t *row = m->cells + (size_t)r * m->columns;

		for (uint32_t i = 0; i < n; i++)
			row[2 * i] = row[2 * i + 1] =
				coding_matrix
					->cells[r * coding_matrix->columns + update_indices[i]];
		row[2 * n + r] = 1;
	}
	gd_ec_matrix_ready(m);
	*matrix = m;
	return DOCA_SUCCESS;
}

doca_error_t doca_ec_matrix_create_recover(struct doca_ec *ec,
					   const struct doca_ec_matrix *coding_matrix,
					   uint32_t missing_indices[], size_t n_missing,
					   struct doca_ec_matrix **matrix)
{
	struct doca_ec_matrix *m;
	doca_error_t result;

	if (!ec || !coding_matrix || !matrix ||
	    !good_indices(missing_indices, n_missing, coding_matrix->rows,
			  coding_matrix->columns + coding_matrix->rows))
		return DOCA_ERROR_INVALID_VALUE;
	m = gd_ec_matrix_new((uint32_t)n_missing, coding_matrix->columns);
	if (!m)
		return DOCA_ERROR_NO_MEMORY;
	result = gd_ec_fill_recover(m, coding_matrix, missing_indices);
	if (result != DOCA_SUCCESS) {
		gd_ec_matrix_free(m);
		return result;
	}
	gd_ec_matrix_ready(m);
	*matrix = m;
	return DOCA_SUCCESS;
}

doca_error_t doca_ec_matrix_destroy(struct doca_ec_matrix *matrix)
{
	if (!matrix)
		return DOCA_ERROR_INVALID_VALUE;
	gd_ec_matrix_free(matrix);
	return DOCA_SUCCESS;
}

/* -- tasks -- */

static doca_error_t set_conf(struct doca_ec *ec, enum kind kind, void *done_cb, void *error_cb,
			     uint32_t n)
{
	return ec ? gd_serial_conf(&ec->pools[kind], done_cb, error_cb, n, DOCA_ERROR_BAD_STATE)
		  : DOCA_ERROR_INVALID_VALUE;
}

static doca_error_t take(struct doca_ec *ec, enum kind kind, const struct doca_ec_matrix *matrix,
			 const struct doca_buf *src, struct doca_buf *dst,
			 union doca_data user_data, void **task_p)
{
	struct doca_task *task;
	struct ec_task *t;
	doca_error_t result;

	if (!ec || !matrix || !src || !dst || !task_p)
		return DOCA_ERROR_INVALID_VALUE;
	result = gd_serial_take(&ec->pools[kind], user_data, &task);
	if (result != DOCA_SUCCESS)
		return result;
	t = (struct ec_task *)task;
	t->matrix = matrix;
	t->src = src;
	t->dst = dst;
	*task_p = t;
	return DOCA_SUCCESS;
}

/*
 * Define the functions of a task type. NAME: its name; MATRIX, SRC, DST, GET_DST: its names of
 * these fields.
 */
#define KIND(NAME, kind, MATRIX, SRC, DST, GET_DST) \
	doca_error_t doca_ec_cap_task_##NAME##_is_supported(const struct doca_devinfo *devinfo) \
	{ \
		return gd_cap(devinfo, GD_HAVE_EC); \
	} \
	doca_error_t doca_ec_task_##NAME##_set_conf( \
		struct doca_ec *ec, \
		doca_ec_task_##NAME##_completion_cb_t successful_task_completion_cb, \
		doca_ec_task_##NAME##_completion_cb_t error_task_completion_cb, \
		uint32_t num_tasks) \
	{ \
		return set_conf(ec, kind, successful_task_completion_cb, error_task_completion_cb, \
				num_tasks); \
	} \
	doca_error_t doca_ec_task_##NAME##_allocate_init( \
		struct doca_ec *ec, const struct doca_ec_matrix *MATRIX, \
		const struct doca_buf *SRC, struct doca_buf *DST, union doca_data user_data, \
		struct doca_ec_task_##NAME **task) \
	{ \
		return take(ec, kind, MATRIX, SRC, DST, user_data, (void **)task); \
	} \
	struct doca_task *doca_ec_task_##NAME##_as_task(struct doca_ec_task_##NAME *task) \
	{ \
		return (struct doca_task *)task; \
	} \
	void doca_ec_task_##NAME##_set_##MATRIX(struct doca_ec_task_##NAME *task, \
						const struct doca_ec_matrix *MATRIX) \
	{ \
		if (task) \
			((struct ec_task *)task)->matrix = MATRIX; \
	} \
	const struct doca_ec_matrix *doca_ec_task_##NAME##_get_##MATRIX( \
		const struct doca_ec_task_##NAME *task) \
	{ \
		return task ? ((const struct ec_task *)task)->matrix : NULL; \
	} \
	void doca_ec_task_##NAME##_set_##SRC(struct doca_ec_task_##NAME *task, \
					     const struct doca_buf *SRC) \
	{ \
		if (task) \
			((struct ec_task *)task)->src = SRC; \
	} \
	const struct doca_buf *doca_ec_task_##NAME##_get_##SRC( \
		const struct doca_ec_task_##NAME *task) \
	{ \
		return task ? ((const struct ec_task *)task)->src : NULL; \
	} \
	void doca_ec_task_##NAME##_set_##DST(struct doca_ec_task_##NAME *task, \
					     struct doca_buf *DST) \
	{ \
		if (task) \
			((struct ec_task *)task)->dst = DST; \
	} \
	struct doca_buf *doca_ec_task_##NAME##_get_##GET_DST( \
		const struct doca_ec_task_##NAME *task) \
	{ \
		return task ? ((const struct ec_task *)task)->dst : NULL; \
	}

KIND(galois_mul, GALOIS_MUL, coding_matrix, src_buf, dst_buf, dst_buf)
KIND(create, CREATE, coding_matrix, original_data_blocks, rdnc_blocks, rdnc_blocks)
KIND(update, UPDATE, update_matrix, original_updated_and_rdnc_blocks, updated_rdnc_blocks,
     updated_rdnc_blocks)
KIND(recover, RECOVER, recover_matrix, available_blocks, recovered_data_blocks, recovered_data)
