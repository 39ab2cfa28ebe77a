/* SPDX-License-Identifier: BSD-3-Clause */
/* Pools of equal buffers, and arrays of elements. */
#include <doca_buf_array.h>
#include <doca_buf_pool.h>

#include "fake_map.h"
#include "unity.h"

enum { SIZE = 1024, N = 10, ELEMENT = 90 };

static _Alignas(64) uint8_t memory[SIZE];
static struct doca_mmap map;
static struct doca_buf_pool *pool;

void setUp(void)
{
	map = (struct doca_mmap)FAKE_MAP(memory + 1, SIZE - 1);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_pool_create(N, ELEMENT, &map, &pool));
}

void tearDown(void)
{
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_pool_destroy(pool));
}

static void expect_free(uint32_t expected)
{
	uint32_t n;

	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_pool_get_num_free_elements(pool, &n));
	TEST_ASSERT_EQUAL_UINT32(expected, n);
}

/* The pool returns every element once. Elements lie in the map, are aligned and do not overlap. */
static void test_elements(void)
{
	struct doca_buf *bufs[N], *more;
	uint8_t used[SIZE] = {0};
	int i, j;

	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_BAD_STATE, doca_buf_pool_buf_alloc(pool, &more));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_pool_set_element_alignment(pool, 4));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_pool_start(pool));
	for (i = 0; i < N; i++) {
		void *data;
		size_t len;

		expect_free((uint32_t)(N - i));
		TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_pool_buf_alloc(pool, &bufs[i]));
		doca_buf_get_data(bufs[i], &data);
		doca_buf_get_data_len(bufs[i], &len);
		TEST_ASSERT_EQUAL_size_t(0, len);
		doca_buf_get_len(bufs[i], &len);
		TEST_ASSERT_EQUAL_size_t(ELEMENT, len);
		TEST_ASSERT_EQUAL_UINT64(0, (uintptr_t)data % 4);
		for (j = 0; j < ELEMENT; j++)
			TEST_ASSERT_EQUAL_UINT8(0, used[(uint8_t *)data + j - memory]++);
	}
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_NO_MEMORY, doca_buf_pool_buf_alloc(pool, &more));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_IN_USE, doca_buf_pool_stop(pool));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_IN_USE, doca_buf_pool_destroy(pool));
	for (i = 0; i < N; i++)
		doca_buf_dec_refcount(bufs[i], NULL);
	expect_free(N);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_pool_stop(pool));
}

static void test_set_up_of_a_pool(void)
{
	union doca_data data;
	size_t alignment;

	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_buf_pool_set_element_alignment(pool, 3));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_pool_set_element_alignment(pool, 128));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_pool_get_element_alignment(pool, &alignment));
	TEST_ASSERT_EQUAL_size_t(128, alignment);
	/* the elements do not fit into the map */
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INITIALIZATION, doca_buf_pool_start(pool));
	doca_buf_pool_set_element_alignment(pool, 1);
	doca_buf_pool_set_user_data(pool, (union doca_data){.u64 = 3});
	map.started = false;
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_BAD_STATE, doca_buf_pool_start(pool));
	map.started = true;
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_pool_start(pool));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_BAD_STATE, doca_buf_pool_start(pool));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_BAD_STATE, doca_buf_pool_set_element_alignment(pool, 1));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_BAD_STATE,
			      doca_buf_pool_set_user_data(pool, (union doca_data){.u64 = 4}));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_pool_get_user_data(pool, &data));
	TEST_ASSERT_EQUAL_UINT64(3, data.u64);
}

/*
 * If the map was stopped or changed, the pool returns no buffer, and loses none.
 */
static void test_a_pool_whose_map_is_gone(void)
{
	struct doca_buf *buf;

	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_pool_start(pool));
	map.started = false;
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_BAD_STATE, doca_buf_pool_buf_alloc(pool, &buf));
	expect_free(N);
	map = (struct doca_mmap)FAKE_MAP(memory, ELEMENT);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_buf_pool_buf_alloc(pool, &buf));
	expect_free(N);
}

static void test_missing_arguments(void)
{
	struct doca_buf_pool *other;
	struct doca_buf *buf;

	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_buf_pool_create(0, 1, &map, &other));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_buf_pool_create(1, 0, &map, &other));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_buf_pool_create(1, 1, NULL, &other));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_buf_pool_start(NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_buf_pool_stop(NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_buf_pool_destroy(NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_buf_pool_buf_alloc(NULL, &buf));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_buf_pool_buf_alloc(pool, NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_buf_pool_get_num_elements(NULL, NULL));
}

static void test_array(void)
{
	struct doca_buf_arr *array;

	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_buf_arr_create(0, &array));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_arr_create(N, &array));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_BAD_STATE, doca_buf_arr_start(array));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_buf_arr_set_params(array, &map, 100, 24));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_buf_arr_set_params(array, &map, SIZE_MAX / 2, 0));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_arr_set_params(array, &map, 100, 23));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_arr_start(array));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_BAD_STATE, doca_buf_arr_set_params(array, &map, 100, 23));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_arr_stop(array));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_buf_arr_destroy(array));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_buf_arr_destroy(NULL));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_elements);
	RUN_TEST(test_set_up_of_a_pool);
	RUN_TEST(test_a_pool_whose_map_is_gone);
	RUN_TEST(test_missing_arguments);
	RUN_TEST(test_array);
	return UNITY_END();
}
