/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Digests, in one step and part by part, compared with vectors of the standard and with libcrypto.
 */
#include <doca_sha.h>

#include <openssl/evp.h>

#include "serial_rig.h"

static struct doca_sha *sha;
static struct doca_ctx *ctx;

void setUp(void)
{
	rig_up();
	OK(doca_sha_create(&dev, &sha));
	ctx = doca_sha_as_ctx(sha);
	OK(doca_sha_task_hash_set_conf(sha, DONE_AND_ERROR(doca_sha_task_hash_completion_cb_t), 2));
	OK(doca_sha_task_partial_hash_set_conf(
		sha, DONE_AND_ERROR(doca_sha_task_partial_hash_completion_cb_t), 1));
	rig_start(ctx);
	for (size_t i = 0; i < RIG_BYTES; i++)
		from[i] = (uint8_t)(i * 7 + i / 255);
}

void tearDown(void)
{
	OK(doca_sha_destroy(sha));
	rig_down();
}

static const char *hex(const uint8_t *bytes, size_t n)
{
	static char text[129];

	for (size_t i = 0; i < n; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	return text;
}

static struct doca_sha_task_hash *hash_task(enum doca_sha_algorithm algorithm, struct doca_buf *src,
					    struct doca_buf *dst)
{
	struct doca_sha_task_hash *task;

	OK(doca_sha_task_hash_alloc_init(sha, algorithm, src, dst, no_data, &task));
	return task;
}

static struct doca_sha_task_partial_hash *partial_task(enum doca_sha_algorithm algorithm,
						       struct doca_buf *src, struct doca_buf *dst)
{
	struct doca_sha_task_partial_hash *task;

	OK(doca_sha_task_partial_hash_alloc_init(sha, algorithm, src, dst, no_data, &task));
	return task;
}

static void free_hash(struct doca_sha_task_hash *task)
{
	doca_task_free(doca_sha_task_hash_as_task(task));
}

static void free_partial(struct doca_sha_task_partial_hash *task)
{
	doca_task_free(doca_sha_task_partial_hash_as_task(task));
}

static void abc_has_the_digests_of_the_standard(void)
{
	static const char *const digests[] = {
		"a9993e364706816aba3e25717850c26c9cd0d89d",
		"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
		("ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
		 "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"),
	};

	memcpy(from, "abc", 3);
	for (int i = 0; i < 3; i++) {
		struct doca_buf *src = source(0, 3), *dst = room(1, 64);
		struct doca_sha_task_hash *task = hash_task((enum doca_sha_algorithm)i, src, dst);

		TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, run_task(doca_sha_task_hash_as_task(task)));
		TEST_ASSERT_EQUAL_INT(strlen(digests[i]) / 2, length_of(dst));
		TEST_ASSERT_EQUAL_STRING(digests[i], hex(to + 1, length_of(dst)));
		free_hash(task);
		give_back(src, dst);
	}
	TEST_ASSERT_EQUAL_INT(3, n_done);
	rig_stop(ctx);
}

static void lists_of_buffers_are_one_message(void)
{
	uint8_t expected[64];
	unsigned int n;
	struct doca_buf *src = in_pieces(source, 100000), *dst = in_pieces(room, 64);
	struct doca_sha_task_hash *task = hash_task(DOCA_SHA_ALGORITHM_SHA512, src, dst);

	EVP_Digest(from, 100000, expected, &n, EVP_sha512(), NULL);
	set_apart(from, 100000);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, run_task(doca_sha_task_hash_as_task(task)));
	put_together(to, 64);
	TEST_ASSERT_EQUAL_MEMORY(expected, to, 64);
	TEST_ASSERT_EQUAL_INT(64, length_of(dst));
	give_back(dst, NULL);
	put_together(from, 100000);
	dst = room(200, 100);
	OK(doca_sha_task_hash_set_dst(task, dst));
	OK(doca_sha_task_hash_set_algorithm(task, DOCA_SHA_ALGORITHM_SHA1));
	EVP_Digest(from, 100000, expected, &n, EVP_sha1(), NULL);
	set_apart(from, 100000);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, run_task(doca_sha_task_hash_as_task(task)));
	TEST_ASSERT_EQUAL_MEMORY(expected, to + 200, 20);
	TEST_ASSERT_EQUAL_INT(20, length_of(dst));
	TEST_ASSERT_EQUAL_PTR(src, doca_sha_task_hash_get_src(task));
	TEST_ASSERT_EQUAL_PTR(dst, doca_sha_task_hash_get_dst(task));
	TEST_ASSERT_EQUAL_INT(DOCA_SHA_ALGORITHM_SHA1, doca_sha_task_hash_get_algorithm(task));
	free_hash(task);
	give_back(src, dst);
	rig_stop(ctx);
}

static void longer_lists_are_rejected(void)
{
	struct doca_buf *src = source(0, 64), *dst = longest_room();
	struct doca_sha_task_hash *task = hash_task(DOCA_SHA_ALGORITHM_SHA512, src, dst);

	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, run_task(doca_sha_task_hash_as_task(task)));
	lengthen(dst);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, run_task(doca_sha_task_hash_as_task(task)));
	OK(doca_sha_task_hash_set_src(task, dst));
	OK(doca_sha_task_hash_set_dst(task, src));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, run_task(doca_sha_task_hash_as_task(task)));
	free_hash(task);
	give_back(src, dst);
	rig_stop(ctx);
}

/* As programs do: one task gets a new source for each part, and the last part is marked. */
static void partial_tasks_make_the_digest_of_the_whole(void)
{
	static const enum doca_sha_algorithm algorithms[] = {DOCA_SHA_ALGORITHM_SHA256,
							     DOCA_SHA_ALGORITHM_SHA512};
	uint8_t expected[64];
	unsigned int n;

	for (int i = 0; i < 2; i++) {
		struct doca_buf *src = source(0, 1280), *dst = room(0, 64);
		struct doca_sha_task_partial_hash *task = partial_task(algorithms[i], src, dst);

		TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS,
				      run_task(doca_sha_task_partial_hash_as_task(task)));
		TEST_ASSERT_EQUAL_INT(0, doca_sha_task_partial_hash_get_has_result(task));
		REFUSED(BAD_STATE, doca_sha_task_partial_hash_set_dst(task, dst));
		REFUSED(BAD_STATE,
			doca_sha_task_partial_hash_set_algorithm(task, DOCA_SHA_ALGORITHM_SHA1));
		OK(doca_buf_set_data(src, from + 0, 128));
		OK(doca_sha_task_partial_hash_set_src(task, src));
		TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS,
				      run_task(doca_sha_task_partial_hash_as_task(task)));
		TEST_ASSERT_EQUAL_INT(0, length_of(dst));
		OK(doca_buf_set_data(src, from + 128, 33));
		REFUSED(INVALID_VALUE,
			doca_task_try_submit(doca_sha_task_partial_hash_as_task(task)));
		OK(doca_sha_task_partial_hash_set_is_final_buf(task));
		TEST_ASSERT_EQUAL_INT(1, doca_sha_task_partial_hash_get_is_final(task));
		OK(doca_task_try_submit(doca_sha_task_partial_hash_as_task(task)));
		REFUSED(BAD_STATE, doca_sha_task_partial_hash_set_is_final_buf(task));
		while (doca_pe_progress(pe))
			;
		TEST_ASSERT_EQUAL_INT(1, doca_sha_task_partial_hash_get_has_result(task));
		memmove(from + 1280, from, 161);
		EVP_Digest(from, 1280 + 161, expected, &n, i ? EVP_sha512() : EVP_sha256(), NULL);
		TEST_ASSERT_EQUAL_INT(n, length_of(dst));
		TEST_ASSERT_EQUAL_MEMORY(expected, to, n);
		REFUSED(BAD_STATE, doca_sha_task_partial_hash_set_is_final_buf(task));
		TEST_ASSERT_EQUAL_INT(DOCA_ERROR_BAD_STATE,
				      run_task(doca_sha_task_partial_hash_as_task(task)));
		/* begin a new digest with the same task */
		OK(doca_sha_task_partial_hash_reset(task));
		TEST_ASSERT_EQUAL_INT(0, doca_sha_task_partial_hash_get_has_result(task));
		OK(doca_sha_task_partial_hash_set_is_final_buf(task));
		OK(doca_buf_reset_data_len(dst));
		TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS,
				      run_task(doca_sha_task_partial_hash_as_task(task)));
		EVP_Digest(from + 128, 33, expected, &n, i ? EVP_sha512() : EVP_sha256(), NULL);
		TEST_ASSERT_EQUAL_MEMORY(expected, to, n);
		free_partial(task);
		give_back(src, dst);
	}
	TEST_ASSERT_EQUAL_INT(2, n_error);
	rig_stop(ctx);
}

static void a_partial_task_has_its_fields_and_its_number(void)
{
	struct doca_buf *src = source(0, 64), *src2 = source(64, 64), *dst = room(0, 64),
			*dst2 = room(64, 64);
	struct doca_sha_task_partial_hash *task[2], *more;

	for (int i = 0; i < 2; i++)
		task[i] = partial_task(DOCA_SHA_ALGORITHM_SHA256, src, dst);
	REFUSED(NO_MEMORY, doca_sha_task_partial_hash_alloc_init(sha, DOCA_SHA_ALGORITHM_SHA1, src,
								 dst, no_data, &more));
	TEST_ASSERT_EQUAL_PTR(src, doca_sha_task_partial_hash_get_src(task[0]));
	TEST_ASSERT_EQUAL_PTR(dst, doca_sha_task_partial_hash_get_dst(task[0]));
	TEST_ASSERT_EQUAL_INT(DOCA_SHA_ALGORITHM_SHA256,
			      doca_sha_task_partial_hash_get_algorithm(task[0]));
	TEST_ASSERT_EQUAL_INT(0, doca_sha_task_partial_hash_get_is_final(task[0]));
	OK(doca_sha_task_partial_hash_set_src(task[0], src2));
	OK(doca_sha_task_partial_hash_set_dst(task[0], dst2));
	OK(doca_sha_task_partial_hash_set_algorithm(task[0], DOCA_SHA_ALGORITHM_SHA512));
	TEST_ASSERT_EQUAL_PTR(src2, doca_sha_task_partial_hash_get_src(task[0]));
	TEST_ASSERT_EQUAL_PTR(dst2, doca_sha_task_partial_hash_get_dst(task[0]));
	TEST_ASSERT_EQUAL_INT(DOCA_SHA_ALGORITHM_SHA512,
			      doca_sha_task_partial_hash_get_algorithm(task[0]));
	REFUSED(INVALID_VALUE, doca_sha_task_partial_hash_set_src(task[0], NULL));
	REFUSED(INVALID_VALUE, doca_sha_task_partial_hash_set_dst(task[0], NULL));
	REFUSED(INVALID_VALUE,
		doca_sha_task_partial_hash_set_algorithm(task[0], (enum doca_sha_algorithm)3));
	TEST_ASSERT_NULL(doca_sha_task_partial_hash_get_src(NULL));
	TEST_ASSERT_NULL(doca_sha_task_partial_hash_get_dst(NULL));
	TEST_ASSERT_EQUAL_INT(0, doca_sha_task_partial_hash_get_algorithm(NULL));
	for (int i = 0; i < 2; i++)
		free_partial(task[i]);
	rig_stop(ctx);
	REFUSED(BAD_STATE, doca_sha_task_partial_hash_alloc_init(sha, DOCA_SHA_ALGORITHM_SHA1, src,
								 dst, no_data, &more));
	give_back(src, dst);
	give_back(src2, dst2);
}

static void a_part_of_the_wrong_size_fails_and_changes_nothing(void)
{
	uint8_t expected[64];
	unsigned int n;
	struct doca_buf *src = source(0, 100), *dst = room(0, 64);
	struct doca_sha_task_partial_hash *task = partial_task(DOCA_SHA_ALGORITHM_SHA1, src, dst);

	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      run_task(doca_sha_task_partial_hash_as_task(task)));
	OK(doca_buf_set_data(src, from, 64));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, run_task(doca_sha_task_partial_hash_as_task(task)));
	OK(doca_buf_set_data(src, from + 64, 10));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      run_task(doca_sha_task_partial_hash_as_task(task)));
	OK(doca_sha_task_partial_hash_set_is_final_buf(task));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, run_task(doca_sha_task_partial_hash_as_task(task)));
	EVP_Digest(from, 74, expected, &n, EVP_sha1(), NULL);
	TEST_ASSERT_EQUAL_MEMORY(expected, to, 20);
	free_partial(task);
	give_back(src, dst);
	rig_stop(ctx);
}

static void invalid_task_fails(void)
{
	struct doca_buf *src = source(0, 64), *dst = room(0, 31);
	struct doca_sha_task_hash *task = hash_task(DOCA_SHA_ALGORITHM_SHA256, src, dst);

	REFUSED(INVALID_VALUE, doca_task_try_submit(doca_sha_task_hash_as_task(task)));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, run_task(doca_sha_task_hash_as_task(task)));
	OK(doca_sha_task_hash_set_algorithm(task, DOCA_SHA_ALGORITHM_SHA1));
	from_map.n_devs = 0;
	REFUSED(INVALID_VALUE, doca_task_try_submit(doca_sha_task_hash_as_task(task)));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, run_task(doca_sha_task_hash_as_task(task)));
	from_map.n_devs = 1;
	to_map.access = 0;
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_NOT_PERMITTED, run_task(doca_sha_task_hash_as_task(task)));
	TEST_ASSERT_EQUAL_INT(0, length_of(dst));
	REFUSED(INVALID_VALUE, doca_sha_task_hash_set_algorithm(task, (enum doca_sha_algorithm)3));
	REFUSED(INVALID_VALUE, doca_sha_task_hash_set_src(task, NULL));
	REFUSED(INVALID_VALUE, doca_sha_task_hash_set_dst(task, NULL));
	REFUSED(INVALID_VALUE, doca_sha_task_hash_set_src(NULL, src));
	free_hash(task);
	give_back(src, dst);
	rig_stop(ctx);
}

static void tasks_are_limited_flushed_and_withdrawn(void)
{
	struct doca_buf *src = source(0, 64), *dst = room(0, 4096);
	struct doca_sha_task_hash *tasks[4], *more;

	for (int i = 0; i < 4; i++)
		tasks[i] = hash_task(DOCA_SHA_ALGORITHM_SHA1, src, dst);
	REFUSED(NO_MEMORY, doca_sha_task_hash_alloc_init(sha, DOCA_SHA_ALGORITHM_SHA1, src, dst,
							 no_data, &more));
	for (int i = 0; i < 4; i++)
		OK(doca_task_submit(doca_sha_task_hash_as_task(tasks[i])));
	/* free the last task of the queue, and one in the middle: their callbacks must not run */
	free_hash(tasks[3]);
	free_hash(tasks[1]);
	REFUSED(IN_USE, doca_sha_destroy(sha));
	REFUSED(IN_PROGRESS, doca_ctx_stop(ctx));
	while (doca_pe_progress(pe))
		;
	TEST_ASSERT_EQUAL_INT(2, n_error);
	TEST_ASSERT_TRUE(status != DOCA_SUCCESS);
	TEST_ASSERT_EQUAL_INT(0, length_of(dst));
	free_hash(tasks[0]);
	free_hash(tasks[2]);
	while (doca_pe_progress(pe))
		;
	rig_stop(ctx);
	REFUSED(BAD_STATE, doca_sha_task_hash_alloc_init(sha, DOCA_SHA_ALGORITHM_SHA1, src, dst,
							 no_data, &more));
	give_back(src, dst);
}

static void arguments_and_capabilities(void)
{
	struct doca_sha_task_partial_hash *task;
	uint32_t n;
	uint64_t size;

	REFUSED(BAD_STATE, doca_sha_task_hash_set_conf(
				   sha, DONE_AND_ERROR(doca_sha_task_hash_completion_cb_t), 2));
	REFUSED(BAD_STATE,
		doca_sha_task_partial_hash_set_conf(
			sha, DONE_AND_ERROR(doca_sha_task_partial_hash_completion_cb_t), 2));
	rig_stop(ctx);
	REFUSED(INVALID_VALUE, doca_sha_create(NULL, &sha));
	REFUSED(INVALID_VALUE, doca_sha_create(&dev, NULL));
	REFUSED(INVALID_VALUE, doca_sha_destroy(NULL));
	TEST_ASSERT_NULL(doca_sha_as_ctx(NULL));
	REFUSED(INVALID_VALUE, doca_sha_task_hash_set_conf(sha, NULL, NULL, 1));
	REFUSED(INVALID_VALUE,
		doca_sha_task_hash_set_conf(sha, DONE_AND_ERROR(doca_sha_task_hash_completion_cb_t),
					    17));
	REFUSED(INVALID_VALUE,
		doca_sha_task_hash_set_conf(NULL,
					    DONE_AND_ERROR(doca_sha_task_hash_completion_cb_t), 1));
	REFUSED(INVALID_VALUE, doca_sha_task_partial_hash_alloc_init(NULL, DOCA_SHA_ALGORITHM_SHA1,
								     NULL, NULL, no_data, &task));
	REFUSED(INVALID_VALUE, doca_sha_task_partial_hash_reset(NULL));
	OK(doca_sha_cap_task_hash_get_supported(&info, DOCA_SHA_ALGORITHM_SHA1));
	OK(doca_sha_cap_task_partial_hash_get_supported(&info, DOCA_SHA_ALGORITHM_SHA512));
	REFUSED(INVALID_VALUE, doca_sha_cap_task_hash_get_supported(NULL, DOCA_SHA_ALGORITHM_SHA1));
	REFUSED(INVALID_VALUE,
		doca_sha_cap_task_hash_get_supported(&info, (enum doca_sha_algorithm) - 1));
	/* block sizes and digest sizes */
	for (int i = 0; i < 3; i++) {
		OK(doca_sha_cap_get_partial_hash_block_size(&info, (enum doca_sha_algorithm)i, &n));
		TEST_ASSERT_EQUAL_INT(i == DOCA_SHA_ALGORITHM_SHA512 ? 128 : 64, n);
		OK(doca_sha_cap_get_min_dst_buf_size(&info, (enum doca_sha_algorithm)i, &n));
		TEST_ASSERT_EQUAL_INT(((int[]){20, 32, 64})[i], n);
	}
	OK(doca_sha_cap_get_max_src_buf_size(&info, &size));
	TEST_ASSERT_TRUE(size >= 2 << 20);
	OK(doca_sha_cap_get_max_list_buf_num_elem(&info, &n));
	TEST_ASSERT_TRUE(n >= 2);
	OK(doca_sha_cap_get_max_num_tasks(sha, &n));
	TEST_ASSERT_TRUE(n >= 65536);
	REFUSED(INVALID_VALUE, doca_sha_cap_get_max_src_buf_size(&info, NULL));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(abc_has_the_digests_of_the_standard);
	RUN_TEST(lists_of_buffers_are_one_message);
	RUN_TEST(longer_lists_are_rejected);
	RUN_TEST(partial_tasks_make_the_digest_of_the_whole);
	RUN_TEST(a_partial_task_has_its_fields_and_its_number);
	RUN_TEST(a_part_of_the_wrong_size_fails_and_changes_nothing);
	RUN_TEST(invalid_task_fails);
	RUN_TEST(tasks_are_limited_flushed_and_withdrawn);
	RUN_TEST(arguments_and_capabilities);
	return UNITY_END();
}
