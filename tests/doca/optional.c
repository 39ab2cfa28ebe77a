/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Optional libraries of a build: without such a library, the functions that need it exist, but
 * return DOCA_ERROR_NOT_SUPPORTED.
 */
#include <doca_aes_gcm.h>
#include <doca_compress.h>
#include <doca_dev.h>
#include <doca_erasure_coding.h>
#include <doca_sha.h>

#include "unity.h"

#ifdef HAVE_LIBCRYPTO
#define GCM DOCA_SUCCESS
#define SHA DOCA_SUCCESS
#else
#define GCM DOCA_ERROR_NOT_SUPPORTED
#define SHA DOCA_ERROR_NOT_SUPPORTED
#endif
#ifdef HAVE_ZLIB
#define DEFLATE DOCA_SUCCESS
#else
#define DEFLATE DOCA_ERROR_NOT_SUPPORTED
#endif
#ifdef HAVE_LZ4
#define LZ4 DOCA_SUCCESS
#else
#define LZ4 DOCA_ERROR_NOT_SUPPORTED
#endif
#ifdef HAVE_LIBISAL
#define EC DOCA_SUCCESS
#else
#define EC DOCA_ERROR_NOT_SUPPORTED
#endif

static struct doca_devinfo **list;
static struct doca_dev *dev;

void setUp(void)
{
	uint32_t n;

	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_devinfo_create_list(&list, &n));
	TEST_ASSERT_TRUE(n > 0);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_dev_open(list[0], &dev));
}

void tearDown(void)
{
	doca_dev_close(dev);
	doca_devinfo_destroy_list(list);
}

static void capabilities_match_the_build(void)
{
	uint64_t size;
	uint32_t n;

	TEST_ASSERT_EQUAL_INT(
		SHA, doca_sha_cap_task_hash_get_supported(list[0], DOCA_SHA_ALGORITHM_SHA256));
	TEST_ASSERT_EQUAL_INT(SHA, doca_sha_cap_task_partial_hash_get_supported(
					   list[0], DOCA_SHA_ALGORITHM_SHA256));
	TEST_ASSERT_EQUAL_INT(
		SHA, doca_sha_cap_get_min_dst_buf_size(list[0], DOCA_SHA_ALGORITHM_SHA256, &n));
	TEST_ASSERT_EQUAL_INT(GCM, doca_aes_gcm_cap_task_encrypt_is_supported(list[0]));
	TEST_ASSERT_EQUAL_INT(GCM, doca_aes_gcm_cap_task_decrypt_is_tag_96_supported(list[0]));
	TEST_ASSERT_EQUAL_INT(GCM, doca_aes_gcm_cap_task_decrypt_is_key_type_supported(
					   list[0], DOCA_AES_GCM_KEY_256));
	TEST_ASSERT_EQUAL_INT(GCM, doca_aes_gcm_cap_task_encrypt_get_max_buf_size(list[0], &size));
	TEST_ASSERT_EQUAL_INT(DEFLATE,
			      doca_compress_cap_task_compress_deflate_is_supported(list[0]));
	TEST_ASSERT_EQUAL_INT(DEFLATE, doca_compress_cap_task_decompress_deflate_get_max_buf_size(
					       list[0], &size));
	TEST_ASSERT_EQUAL_INT(LZ4,
			      doca_compress_cap_task_decompress_lz4_stream_is_supported(list[0]));
	TEST_ASSERT_EQUAL_INT(LZ4,
			      doca_compress_cap_task_decompress_lz4_block_is_supported(list[0]));
	TEST_ASSERT_EQUAL_INT(EC, doca_ec_cap_task_create_is_supported(list[0]));
	TEST_ASSERT_EQUAL_INT(EC, doca_ec_cap_get_max_block_size(list[0], &size));
}

static void objects_are_created_only_if_built(void)
{
	struct doca_aes_gcm *aes_gcm;
	struct doca_compress *compress;
	struct doca_sha *sha;
	struct doca_ec *ec;

	TEST_ASSERT_EQUAL_INT(GCM, doca_aes_gcm_create(dev, &aes_gcm));
	TEST_ASSERT_EQUAL_INT(SHA, doca_sha_create(dev, &sha));
	TEST_ASSERT_EQUAL_INT(DEFLATE, doca_compress_create(dev, &compress));
	TEST_ASSERT_EQUAL_INT(EC, doca_ec_create(dev, &ec));
	if (GCM == DOCA_SUCCESS)
		TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_aes_gcm_destroy(aes_gcm));
	if (SHA == DOCA_SUCCESS)
		TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_sha_destroy(sha));
	if (DEFLATE == DOCA_SUCCESS)
		TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_compress_destroy(compress));
	if (EC == DOCA_SUCCESS)
		TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_ec_destroy(ec));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(capabilities_match_the_build);
	RUN_TEST(objects_are_created_only_if_built);
	return UNITY_END();
}
