/* SPDX-License-Identifier: BSD-3-Clause */
/* Erasure coding: recovery of any lost blocks, redundancy equal to that of isa-l, and updates. */
#include <doca_erasure_coding.h>

#include <isa-l/erasure_code.h>
#include <stdlib.h>

#include "compute/ec.h"
#include "serial_rig.h"

enum { K = 5, R = 3, BLOCK = 192 };

static struct doca_ec *ec;
static struct doca_ctx *ctx;
static uint8_t blocks[K + R][BLOCK]; /* data blocks, then redundancy blocks */

void setUp(void)
{
	rig_up();
	OK(doca_ec_create(&dev, &ec));
	ctx = doca_ec_as_ctx(ec);
	OK(doca_ec_task_create_set_conf(ec, DONE_AND_ERROR(doca_ec_task_create_completion_cb_t),
					2));
	OK(doca_ec_task_recover_set_conf(ec, DONE_AND_ERROR(doca_ec_task_recover_completion_cb_t),
					 2));
	OK(doca_ec_task_update_set_conf(ec, DONE_AND_ERROR(doca_ec_task_update_completion_cb_t),
					2));
	OK(doca_ec_task_galois_mul_set_conf(
		ec, DONE_AND_ERROR(doca_ec_task_galois_mul_completion_cb_t), 2));
	rig_start(ctx);
	for (int i = 0; i < K; i++)
		for (int j = 0; j < BLOCK; j++)
			blocks[i][j] = (uint8_t)rand();
}

void tearDown(void)
{
	rig_stop(ctx);
	OK(doca_ec_destroy(ec));
	rig_down();
}

static struct doca_ec_matrix *code(enum doca_ec_matrix_type type, size_t k, size_t r)
{
	struct doca_ec_matrix *matrix;

	OK(doca_ec_matrix_create(ec, type, k, r, &matrix));
	return matrix;
}

static doca_error_t create_task(const struct doca_ec_matrix *matrix, struct doca_buf *src,
				struct doca_buf *dst)
{
	struct doca_ec_task_create *task;
	doca_error_t result;

	OK(doca_ec_task_create_allocate_init(ec, matrix, src, dst, no_data, &task));
	TEST_ASSERT_EQUAL_PTR(matrix, doca_ec_task_create_get_coding_matrix(task));
	TEST_ASSERT_EQUAL_PTR(src, doca_ec_task_create_get_original_data_blocks(task));
	TEST_ASSERT_EQUAL_PTR(dst, doca_ec_task_create_get_rdnc_blocks(task));
	result = run_task(doca_ec_task_create_as_task(task));
	doca_task_free(doca_ec_task_create_as_task(task));
	return result;
}

static doca_error_t recover_task(const struct doca_ec_matrix *matrix, struct doca_buf *src,
				 struct doca_buf *dst)
{
	struct doca_ec_task_recover *task;
	doca_error_t result;

	OK(doca_ec_task_recover_allocate_init(ec, matrix, src, dst, no_data, &task));
	TEST_ASSERT_EQUAL_PTR(src, doca_ec_task_recover_get_available_blocks(task));
	TEST_ASSERT_EQUAL_PTR(dst, doca_ec_task_recover_get_recovered_data(task));
	result = run_task(doca_ec_task_recover_as_task(task));
	doca_task_free(doca_ec_task_recover_as_task(task));
	return result;
}

/* Store the redundancy of blocks[0..K) in blocks[K..). */
static void encode(const struct doca_ec_matrix *matrix)
{
	struct doca_buf *src, *dst = room(0, R * BLOCK);

	memcpy(from, blocks, K * BLOCK);
	src = source(0, K * BLOCK);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, create_task(matrix, src, dst));
	TEST_ASSERT_EQUAL_INT(R * BLOCK, length_of(dst));
	memcpy(blocks[K], to, R * BLOCK);
	give_back(src, dst);
}

static const enum doca_ec_matrix_type types[] = {DOCA_EC_MATRIX_TYPE_CAUCHY,
						 DOCA_EC_MATRIX_TYPE_VANDERMONDE};

/*
 * The library and the simplest functions of isa-l, with a matrix that isa-l makes, must give the
 * same redundancy.
 */
static void redundancy_is_that_of_isal(void)
{
	uint8_t a[(K + R) * K], expected;

	for (int t = 0; t < 2; t++) {
		struct doca_ec_matrix *matrix = code(types[t], K, R);

		encode(matrix);
		(t ? gf_gen_rs_matrix : gf_gen_cauchy1_matrix)(a, K + R, K);
		for (int r = 0; r < R; r++)
			for (int j = 0; j < BLOCK; j++) {
				expected = 0;
				/*
				 * The library divides each column by its cell in the first
				 * redundancy row. For Vandermonde this cell is 1.
				 */
				for (int c = 0; c < K; c++)
					expected ^= gf_mul(
						gf_mul(a[(K + r) * K + c], gf_inv(a[K * K + c])),
						blocks[c][j]);
				TEST_ASSERT_EQUAL_HEX8(expected, blocks[K + r][j]);
			}
		OK(doca_ec_matrix_destroy(matrix));
	}
}

/* For each set of 1 to R lost blocks, the first K remaining blocks restore them. */
static void any_lost_blocks_are_recovered(void)
{
	for (int t = 0; t < 2; t++) {
		struct doca_ec_matrix *matrix = code(types[t], K, R), *recover;

		encode(matrix);
		for (unsigned int lost = 1; lost < 1u << (K + R); lost++) {
			uint32_t missing[K + R], n = 0, there = 0;
			struct doca_buf *src, *dst;

			for (uint32_t i = 0; i < K + R; i++) {
				if (lost & 1u << i)
					missing[n++] = i;
				else if (there < K)
					memcpy(from + BLOCK * there++, blocks[i], BLOCK);
			}
			if (n > R) {
				REFUSED(INVALID_VALUE, doca_ec_matrix_create_recover(
							       ec, matrix, missing, n, &recover));
				continue;
			}
			OK(doca_ec_matrix_create_recover(ec, matrix, missing, n, &recover));
			src = source(0, K * BLOCK);
			dst = room(0, n * BLOCK);
			TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, recover_task(recover, src, dst));
			for (uint32_t i = 0; i < n; i++)
				TEST_ASSERT_EQUAL_MEMORY(blocks[missing[i]], to + i * BLOCK, BLOCK);
			give_back(src, dst);
			OK(doca_ec_matrix_destroy(recover));
		}
		OK(doca_ec_matrix_destroy(matrix));
	}
}

/*
 * The storage applications of DOCA use a code of 2 data blocks and 1 redundancy block. They give
 * the coding matrix to the recover task, not a recover matrix. They put the redundancy block in the
 * place of the lost data block.
 */
static void a_code_of_two_and_one_recovers_by_its_own_matrix(void)
{
	for (int t = 0; t < 2; t++) {
		struct doca_ec_matrix *matrix = code(types[t], 2, 1);
		struct doca_buf *src, *dst = room(0, BLOCK), *tail;

		memcpy(from, blocks, 2 * BLOCK);
		src = source(0, 2 * BLOCK);
		TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, create_task(matrix, src, dst));
		give_back(src, dst);
		for (int lost = 0; lost < 2; lost++) {
			memcpy(from, blocks, 2 * BLOCK);
			memcpy(from + lost * BLOCK, to, BLOCK);
			src = source(0, BLOCK);
			tail = source(BLOCK, BLOCK);
			OK(doca_buf_chain_list(src, tail));
			dst = room(4096, BLOCK);
			TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, recover_task(matrix, src, dst));
			TEST_ASSERT_EQUAL_MEMORY(blocks[lost], to + 4096, BLOCK);
			give_back(src, dst);
		}
		OK(doca_ec_matrix_destroy(matrix));
	}
}

static void an_update_makes_the_redundancy_of_new_data(void)
{
	struct doca_ec_matrix *matrix = code(DOCA_EC_MATRIX_TYPE_CAUCHY, K, R), *update;
	struct doca_ec_task_update *task;
	uint32_t changed[] = {1, 4};
	struct doca_buf *src, *dst = room(0, R * BLOCK);
	uint8_t *p = from;

	encode(matrix);
	for (int i = 0; i < 2; i++) {
		memcpy(p, blocks[changed[i]], BLOCK);
		memset(blocks[changed[i]], 0x5a + i, BLOCK);
		memcpy(p + BLOCK, blocks[changed[i]], BLOCK);
		p += 2 * BLOCK;
	}
	memcpy(p, blocks[K], R * BLOCK);
	OK(doca_ec_matrix_create_update(ec, matrix, changed, 2, &update));
	src = source(0, (4 + R) * BLOCK);
	OK(doca_ec_task_update_allocate_init(ec, update, src, dst, no_data, &task));
	TEST_ASSERT_EQUAL_PTR(update, doca_ec_task_update_get_update_matrix(task));
	TEST_ASSERT_EQUAL_PTR(src, doca_ec_task_update_get_original_updated_and_rdnc_blocks(task));
	TEST_ASSERT_EQUAL_PTR(dst, doca_ec_task_update_get_updated_rdnc_blocks(task));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, run_task(doca_ec_task_update_as_task(task)));
	doca_task_free(doca_ec_task_update_as_task(task));
	memcpy(from + 100000, to, R * BLOCK);
	give_back(src, dst);
	encode(matrix);
	TEST_ASSERT_EQUAL_MEMORY(blocks[K], from + 100000, R * BLOCK);
	OK(doca_ec_matrix_destroy(matrix));
	OK(doca_ec_matrix_destroy(update));
}

/* Blocks extend over several buffers of a list; the result goes to a list, too. */
static void lists_may_be_cut_anywhere(void)
{
	struct doca_ec_matrix *matrix = code(DOCA_EC_MATRIX_TYPE_CAUCHY, K, R);
	struct doca_buf *src, *dst = in_pieces(room, R * BLOCK);

	encode(matrix);
	src = in_pieces(source, K * BLOCK);
	set_apart(from, K * BLOCK);
	memset(to, 0, R * BLOCK);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, create_task(matrix, src, dst));
	put_together(to, R * BLOCK);
	TEST_ASSERT_EQUAL_MEMORY(blocks[K], to, R * BLOCK);
	TEST_ASSERT_EQUAL_INT(R * BLOCK, length_of(dst));
	give_back(src, dst);
	OK(doca_ec_matrix_destroy(matrix));
}

static void longer_lists_are_rejected(void)
{
	struct doca_ec_matrix *matrix = code(DOCA_EC_MATRIX_TYPE_CAUCHY, K, R);
	struct doca_buf *src = source(0, K * BLOCK), *dst = longest_room();

	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, create_task(matrix, src, dst));
	lengthen(dst);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, create_task(matrix, src, dst));
	give_back(src, dst);
	OK(doca_ec_matrix_destroy(matrix));
}

static void a_raw_matrix_multiplies(void)
{
	uint8_t raw[2 * 2] = {1, 1, 2, 3};
	struct doca_ec_matrix *matrix;
	struct doca_ec_task_galois_mul *task;
	struct doca_buf *src = source(0, 128), *dst = room(0, 128);

	memset(from, 0x80, 64);
	memset(from + 64, 0x01, 64);
	OK(doca_ec_matrix_create_from_raw(ec, raw, 2, 2, &matrix));
	OK(doca_ec_task_galois_mul_allocate_init(ec, matrix, src, dst, no_data, &task));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, run_task(doca_ec_task_galois_mul_as_task(task)));
	TEST_ASSERT_EQUAL_HEX8(0x81, to[0]);
	/* in GF(2^8), 2 * 0x80 is 0x100 reduced by the polynomial 0x11d; that is 0x1d */
	TEST_ASSERT_EQUAL_HEX8(0x1d ^ 0x03, to[64]);
	doca_task_free(doca_ec_task_galois_mul_as_task(task));
	give_back(src, dst);
	OK(doca_ec_matrix_destroy(matrix));
}

static void large_codes_are_codes_too(void)
{
	struct doca_ec_matrix *matrix = code(DOCA_EC_MATRIX_TYPE_CAUCHY, 200, 55), *recover,
			      *update;
	struct doca_buf *src = source(0, 200 * 64), *dst = room(0, 55 * 64);
	uint32_t missing[55], all[200];
	uint8_t lost[55][64];

	for (uint32_t i = 0; i < 200 * 64; i++)
		from[i] = (uint8_t)rand();
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, create_task(matrix, src, dst));
	for (uint32_t i = 0; i < 55; i++) {
		missing[i] = i * 3;
		memcpy(lost[i], from + i * 3 * 64, 64);
	}
	for (uint32_t i = 0, n = 0; i < 255; i++)
		if (i >= 55 * 3 || i % 3)
			memmove(from + 64 * n++, i < 200 ? from + 64 * i : to + 64 * (i - 200), 64);
	OK(doca_ec_matrix_create_recover(ec, matrix, missing, 55, &recover));
	OK(doca_buf_reset_data_len(dst));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, recover_task(recover, src, dst));
	TEST_ASSERT_EQUAL_MEMORY(lost, to, sizeof(lost));
	for (uint32_t i = 0; i < 200; i++)
		all[i] = i;
	OK(doca_ec_matrix_create_update(ec, matrix, all, 200, &update));
	OK(doca_ec_matrix_destroy(matrix));
	OK(doca_ec_matrix_destroy(recover));
	OK(doca_ec_matrix_destroy(update));
	give_back(src, dst);
}

static void invalid_tasks_fail(void)
{
	struct doca_ec_matrix *matrix = code(DOCA_EC_MATRIX_TYPE_CAUCHY, 4, 2);
	struct doca_ec_task_create *task;
	static const size_t wrong[] = {0, 4 * 63, 4 * 64 + 1, 4 * 100};
	struct doca_buf *src = source(0, 256), *dst = room(0, 127);

	/* the destination is too short */
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, create_task(matrix, src, dst));
	give_back(dst, NULL);
	dst = room(0, 4096);
	give_back(src, NULL);
	src = source(0, 4096);
	for (int i = 0; i < 4; i++) {
		OK(doca_buf_set_data(src, from, wrong[i]));
		TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, create_task(matrix, src, dst));
	}
	OK(doca_ec_task_create_allocate_init(ec, matrix, src, dst, no_data, &task));
	REFUSED(INVALID_VALUE, doca_task_try_submit(doca_ec_task_create_as_task(task)));
	doca_ec_task_create_set_coding_matrix(task, NULL);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      run_task(doca_ec_task_create_as_task(task)));
	doca_task_free(doca_ec_task_create_as_task(task));
	OK(doca_buf_set_data(src, from, 256));
	to_map.access = 0;
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_NOT_PERMITTED, create_task(matrix, src, dst));
	TEST_ASSERT_EQUAL_INT(0, length_of(dst));
	give_back(src, dst);
	OK(doca_ec_matrix_destroy(matrix));
}

static void wrong_matrices_are_refused(void)
{
	struct doca_ec_matrix *matrix = code(DOCA_EC_MATRIX_TYPE_CAUCHY, 4, 2), *m;
	uint32_t twice[] = {1, 1}, down[] = {2, 1}, far[] = {6}, no_data_block[] = {4};
	uint8_t raw[4] = {0};

	REFUSED(INVALID_VALUE, doca_ec_matrix_create(NULL, DOCA_EC_MATRIX_TYPE_CAUCHY, 4, 2, &m));
	REFUSED(INVALID_VALUE, doca_ec_matrix_create(ec, (enum doca_ec_matrix_type)0, 4, 2, &m));
	REFUSED(INVALID_VALUE, doca_ec_matrix_create(ec, DOCA_EC_MATRIX_TYPE_CAUCHY, 0, 2, &m));
	REFUSED(INVALID_VALUE, doca_ec_matrix_create(ec, DOCA_EC_MATRIX_TYPE_CAUCHY, 4, 0, &m));
	REFUSED(INVALID_VALUE, doca_ec_matrix_create(ec, DOCA_EC_MATRIX_TYPE_CAUCHY, 200, 56, &m));
	REFUSED(INVALID_VALUE,
		doca_ec_matrix_create(ec, DOCA_EC_MATRIX_TYPE_CAUCHY, SIZE_MAX, 2, &m));
	REFUSED(INVALID_VALUE, doca_ec_matrix_create(ec, DOCA_EC_MATRIX_TYPE_CAUCHY, 4, 2, NULL));
	REFUSED(INVALID_VALUE, doca_ec_matrix_create_from_raw(ec, NULL, 2, 2, &m));
	REFUSED(INVALID_VALUE, doca_ec_matrix_create_recover(ec, matrix, twice, 2, &m));
	REFUSED(INVALID_VALUE, doca_ec_matrix_create_recover(ec, matrix, down, 2, &m));
	REFUSED(INVALID_VALUE, doca_ec_matrix_create_recover(ec, matrix, far, 1, &m));
	REFUSED(INVALID_VALUE, doca_ec_matrix_create_recover(ec, matrix, far, 0, &m));
	REFUSED(INVALID_VALUE, doca_ec_matrix_create_recover(ec, NULL, far, 1, &m));
	REFUSED(INVALID_VALUE, doca_ec_matrix_create_update(ec, matrix, no_data_block, 1, &m));
	REFUSED(INVALID_VALUE, doca_ec_matrix_create_update(ec, matrix, NULL, 1, &m));
	REFUSED(INVALID_VALUE, doca_ec_matrix_destroy(NULL));
	OK(doca_ec_matrix_destroy(matrix));
	/* a matrix that has no inverse */
	OK(doca_ec_matrix_create_from_raw(ec, raw, 2, 2, &matrix));
	REFUSED(INVALID_VALUE, doca_ec_matrix_create_recover(ec, matrix, (uint32_t[]){0}, 1, &m));
	OK(doca_ec_matrix_destroy(matrix));
}

/*
 * Test each kind of task: the number of tasks is the configured one, fields of tasks, capabilities
 * of the device, and that the configuration rejects invalid values and late calls.
 */
#define FN(name, rest) doca_ec_task_##name##rest
#define CALLBACKS(name) DONE_AND_ERROR(doca_ec_task_##name##_completion_cb_t)
#define KIND(name, matrix, src, dst, get_dst) \
	static void name##_has_fields(struct doca_ec_matrix *m, struct doca_ec_matrix *m2, \
				      struct doca_buf *a, struct doca_buf *b) \
	{ \
		struct doca_ec_task_##name *tasks[2], *more; \
\
		for (int i = 0; i < 2; i++) \
			OK(FN(name, _allocate_init)(ec, m, a, b, no_data, &tasks[i])); \
		REFUSED(NO_MEMORY, FN(name, _allocate_init)(ec, m, a, b, no_data, &more)); \
		REFUSED(INVALID_VALUE, FN(name, _allocate_init)(NULL, m, a, b, no_data, &more)); \
		REFUSED(INVALID_VALUE, FN(name, _allocate_init)(ec, NULL, a, b, no_data, &more)); \
		REFUSED(INVALID_VALUE, FN(name, _allocate_init)(ec, m, NULL, b, no_data, &more)); \
		REFUSED(INVALID_VALUE, FN(name, _allocate_init)(ec, m, a, NULL, no_data, &more)); \
		REFUSED(INVALID_VALUE, FN(name, _allocate_init)(ec, m, a, b, no_data, NULL)); \
		FIELD(FN(name, _get_##matrix), FN(name, _set_##matrix), tasks[0], m, m2); \
		FIELD(FN(name, _get_##src), FN(name, _set_##src), tasks[0], a, b); \
		FIELD(FN(name, _get_##get_dst), FN(name, _set_##dst), tasks[0], b, NULL); \
		REFUSED(INVALID_VALUE, doca_task_try_submit(FN(name, _as_task)(tasks[0]))); \
		TEST_ASSERT_NULL(FN(name, _as_task)(NULL)); \
		for (int i = 0; i < 2; i++) \
			doca_task_free(FN(name, _as_task)(tasks[i])); \
		OK(doca_ec_cap_task_##name##_is_supported(&info)); \
		REFUSED(INVALID_VALUE, doca_ec_cap_task_##name##_is_supported(NULL)); \
		REFUSED(BAD_STATE, FN(name, _set_conf)(ec, CALLBACKS(name), 2)); \
		REFUSED(INVALID_VALUE, FN(name, _set_conf)(NULL, CALLBACKS(name), 2)); \
		REFUSED(INVALID_VALUE, FN(name, _set_conf)(ec, CALLBACKS(name), 0)); \
		REFUSED(INVALID_VALUE, FN(name, _set_conf)(ec, NULL, NULL, 2)); \
	}

KIND(galois_mul, coding_matrix, src_buf, dst_buf, dst_buf)
KIND(create, coding_matrix, original_data_blocks, rdnc_blocks, rdnc_blocks)
KIND(update, update_matrix, original_updated_and_rdnc_blocks, updated_rdnc_blocks,
     updated_rdnc_blocks)
KIND(recover, recover_matrix, available_blocks, recovered_data_blocks, recovered_data)

static void each_kind_of_task_has_its_fields_and_its_number(void)
{
	struct doca_ec_matrix *m = code(DOCA_EC_MATRIX_TYPE_CAUCHY, 4, 2),
			      *m2 = code(DOCA_EC_MATRIX_TYPE_CAUCHY, 4, 2);
	struct doca_buf *src = source(0, 256), *dst = room(0, 128);

	galois_mul_has_fields(m, m2, src, dst);
	create_has_fields(m, m2, src, dst);
	update_has_fields(m, m2, src, dst);
	recover_has_fields(m, m2, src, dst);
	OK(doca_ec_matrix_destroy(m));
	OK(doca_ec_matrix_destroy(m2));
	give_back(src, dst);
}

static void arguments_and_capabilities(void)
{
	struct doca_ec *e;
	uint64_t size;
	uint32_t n;

	OK(doca_ec_cap_get_max_block_size(&info, &size));
	TEST_ASSERT_TRUE(size >= 1 << 20);
	OK(doca_ec_cap_get_max_buf_list_len(&info, &n));
	TEST_ASSERT_TRUE(n >= 2);
	REFUSED(INVALID_VALUE, doca_ec_create(NULL, &e));
	REFUSED(INVALID_VALUE, doca_ec_create(&dev, NULL));
	REFUSED(BAD_STATE, doca_ec_destroy(ec)); /* the context runs */
	REFUSED(INVALID_VALUE, doca_ec_destroy(NULL));
	TEST_ASSERT_NULL(doca_ec_as_ctx(NULL));
	REFUSED(INVALID_VALUE, doca_ec_cap_get_max_block_size(&info, NULL));
	REFUSED(INVALID_VALUE, doca_ec_cap_get_max_buf_list_len(&info, NULL));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(redundancy_is_that_of_isal);
	RUN_TEST(any_lost_blocks_are_recovered);
	RUN_TEST(a_code_of_two_and_one_recovers_by_its_own_matrix);
	RUN_TEST(an_update_makes_the_redundancy_of_new_data);
	RUN_TEST(lists_may_be_cut_anywhere);
	RUN_TEST(longer_lists_are_rejected);
	RUN_TEST(a_raw_matrix_multiplies);
	RUN_TEST(large_codes_are_codes_too);
	RUN_TEST(invalid_tasks_fail);
	RUN_TEST(wrong_matrices_are_refused);
	RUN_TEST(each_kind_of_task_has_its_fields_and_its_number);
	RUN_TEST(arguments_and_capabilities);
	return UNITY_END();
}
