/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * AES-GCM encryption and decryption, compared with the test cases of the authors of the mode
 * (McGrew and Viega, "The Galois/Counter Mode of Operation", appendix B).
 */
#include <doca_aes_gcm.h>

#include <stdio.h>

#include "serial_rig.h"

#define KEY "feffe9928665731c6d6a8f9467308308"
#define IV "cafebabefacedbaddecaf888"
#define AAD "feedfacedeadbeeffeedfacedeadbeefabaddad2"
#define ZEROS "00000000000000000000000000000000"
#define TEXT_60 \
	"d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72" \
	"1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39"
#define CIPHER_60 \
	"42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e" \
	"21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091"
#define CIPHER_60_OF_256 \
	"522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa" \
	"8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662"

enum { AAD_BYTES = 20, TEXT_BYTES = 60, TAG_BYTES = 16 };

/* In hexadecimal. The key has 128 or 256 bits. */
static const struct test_case {
	const char *key, *iv, *aad, *plain, *cipher, *tag;
} cases[] = {
	{ZEROS, "000000000000000000000000", "", "", "", "58e2fccefa7e3061367f1d57a4e7455a"},
	{ZEROS, "000000000000000000000000", "", ZEROS, "0388dace60b6a392f328c2b971b2fe78",
	 "ab6e47d42cec13bdf53a67b21257bddf"},
	{KEY, IV, "", TEXT_60 "1aafd255", CIPHER_60 "473f5985", "4d5c2af327cd64a62cf35abd2ba6fab4"},
	{KEY, IV, AAD, TEXT_60, CIPHER_60, "5bc94fbc3221a5db94fae95ae7121a47"},
	{KEY, "cafebabefacedbad", AAD, TEXT_60,
	 "61353b4c2806934a777ff51fa22a4755699b2a714fcdc6f83766e5f97b6c7423"
	 "73806900e49f24b22b097544d4896b424989b5e1ebac0f07c23f4598",
	 "3612d2e79e3b0785561be14aaca2fccb"},
	{ZEROS ZEROS, "000000000000000000000000", "", "", "", "530f8afbc74536b9a963b4f1c4cb738b"},
	{ZEROS ZEROS, "000000000000000000000000", "", ZEROS, "cea7403d4d606b6e074ec5d3baf39d18",
	 "d0d1c8a799996bf0265b98b5d48ab919"},
	{KEY KEY, IV, "", TEXT_60 "1aafd255", CIPHER_60_OF_256 "898015ad",
	 "b094dac5d93471bdec1a502270e3cc6c"},
	{KEY KEY, IV, AAD, TEXT_60, CIPHER_60_OF_256, "76fc6ece0f4e1768cddf8853bb2d551b"},
};

static struct doca_aes_gcm *aes_gcm;
static struct doca_ctx *ctx;
static struct doca_aes_gcm_key *key;
static uint8_t iv[12];

/* Store the bytes of hexadecimal text. Returns their number. */
static size_t unhex(const char *text, uint8_t *bytes)
{
	const size_t n = strlen(text) / 2;

	for (size_t i = 0; i < n; i++) {
		unsigned int byte;

		TEST_ASSERT_EQUAL_INT(1, sscanf(text + 2 * i, "%2x", &byte));
		bytes[i] = (uint8_t)byte;
	}
	return n;
}

static struct doca_aes_gcm_key *make_key(const char *text)
{
	struct doca_aes_gcm_key *made;
	uint8_t raw[32];

	OK(doca_aes_gcm_key_create(
		aes_gcm, raw, unhex(text, raw) == 16 ? DOCA_AES_GCM_KEY_128 : DOCA_AES_GCM_KEY_256,
		&made));
	return made;
}

void setUp(void)
{
	rig_up();
	OK(doca_aes_gcm_create(&dev, &aes_gcm));
	ctx = doca_aes_gcm_as_ctx(aes_gcm);
	OK(doca_aes_gcm_task_encrypt_set_conf(
		aes_gcm, DONE_AND_ERROR(doca_aes_gcm_task_encrypt_completion_cb_t), 4));
	OK(doca_aes_gcm_task_decrypt_set_conf(
		aes_gcm, DONE_AND_ERROR(doca_aes_gcm_task_decrypt_completion_cb_t), 2));
	rig_start(ctx);
	key = make_key(KEY);
	unhex(IV, iv);
	memset(from, 0, sizeof(from));
}

void tearDown(void)
{
	OK(doca_aes_gcm_key_destroy(key));
	OK(doca_aes_gcm_destroy(aes_gcm));
	rig_down();
}

static struct doca_aes_gcm_task_encrypt *encrypt_task(struct doca_buf *src, struct doca_buf *dst)
{
	struct doca_aes_gcm_task_encrypt *task;

	OK(doca_aes_gcm_task_encrypt_alloc_init(aes_gcm, src, dst, key, iv, 12, TAG_BYTES,
						AAD_BYTES, no_data, &task));
	return task;
}

static struct doca_aes_gcm_task_decrypt *decrypt_task(struct doca_buf *src, struct doca_buf *dst)
{
	struct doca_aes_gcm_task_decrypt *task;

	OK(doca_aes_gcm_task_decrypt_alloc_init(aes_gcm, src, dst, key, iv, 12, TAG_BYTES,
						AAD_BYTES, no_data, &task));
	return task;
}

static doca_error_t encrypt(struct doca_buf *src, struct doca_buf *dst)
{
	struct doca_task *task = doca_aes_gcm_task_encrypt_as_task(encrypt_task(src, dst));
	const doca_error_t result = run_task(task);

	doca_task_free(task);
	return result;
}

static doca_error_t decrypt(struct doca_buf *src, struct doca_buf *dst)
{
	struct doca_task *task = doca_aes_gcm_task_decrypt_as_task(decrypt_task(src, dst));
	const doca_error_t result = run_task(task);

	doca_task_free(task);
	return result;
}

/* Store AAD and plaintext of a test case, and return their length. */
static size_t put_plain(const struct test_case *c, uint8_t *bytes)
{
	const size_t n = unhex(c->aad, bytes);

	return n + unhex(c->plain, bytes + n);
}

/* Store AAD, ciphertext and tag of a test case, and return their length. */
static size_t put_cipher(const struct test_case *c, uint8_t *bytes)
{
	size_t n = unhex(c->aad, bytes);

	n += unhex(c->cipher, bytes + n);
	return n + unhex(c->tag, bytes + n);
}

/* The test case with AAD and a key of 128 bits. */
static const struct test_case *const with_aad = &cases[3];

/* Compare the end of an encryption with a test case, for a tag of this size. */
static void encrypt_case(const struct test_case *c, uint32_t tag_size)
{
	struct doca_aes_gcm_key *of_case = make_key(c->key);
	struct doca_aes_gcm_task_encrypt *task;
	struct doca_buf *src = source(0, put_plain(c, from)), *dst = room(1, 256);
	uint8_t case_iv[12], expected[128];
	const size_t n = put_cipher(c, expected) - TAG_BYTES + tag_size;

	OK(doca_aes_gcm_task_encrypt_alloc_init(aes_gcm, src, dst, of_case, case_iv,
						(uint32_t)unhex(c->iv, case_iv), tag_size,
						(uint32_t)strlen(c->aad) / 2, no_data, &task));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, run_task(doca_aes_gcm_task_encrypt_as_task(task)));
	TEST_ASSERT_EQUAL_INT(n, length_of(dst));
	TEST_ASSERT_EQUAL_MEMORY(expected, to + 1, n);
	TEST_ASSERT_EQUAL_INT(0, to[1 + n]);
	doca_task_free(doca_aes_gcm_task_encrypt_as_task(task));
	give_back(src, dst);
	OK(doca_aes_gcm_key_destroy(of_case));
	memset(to, 0, 256);
}

static void decrypt_case(const struct test_case *c, uint32_t tag_size)
{
	struct doca_aes_gcm_key *of_case = make_key(c->key);
	struct doca_aes_gcm_task_decrypt *task;
	struct doca_buf *src = source(0, put_cipher(c, from) - TAG_BYTES + tag_size),
			*dst = room(1, 256);
	uint8_t case_iv[12], expected[128];
	const size_t n = put_plain(c, expected);

	OK(doca_aes_gcm_task_decrypt_alloc_init(aes_gcm, src, dst, of_case, case_iv,
						(uint32_t)unhex(c->iv, case_iv), tag_size,
						(uint32_t)strlen(c->aad) / 2, no_data, &task));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, run_task(doca_aes_gcm_task_decrypt_as_task(task)));
	TEST_ASSERT_EQUAL_INT(n, length_of(dst));
	if (n > 0)
		TEST_ASSERT_EQUAL_MEMORY(expected, to + 1, n);
	TEST_ASSERT_EQUAL_INT(0, to[1 + n]);
	doca_task_free(doca_aes_gcm_task_decrypt_as_task(task));
	give_back(src, dst);
	OK(doca_aes_gcm_key_destroy(of_case));
	memset(to, 0, 256);
}

static void known_messages_have_known_ciphertexts_and_tags(void)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		encrypt_case(&cases[i], 16);
		encrypt_case(&cases[i], 12);
		decrypt_case(&cases[i], 16);
		decrypt_case(&cases[i], 12);
	}
	rig_stop(ctx);
}

static void lists_of_buffers_are_one_message(void)
{
	uint8_t expected[128];
	const size_t plain = put_plain(with_aad, from), cipher = put_cipher(with_aad, expected);
	struct doca_buf *src = in_pieces(source, plain), *dst = in_pieces(room, cipher);

	set_apart(from, plain);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, encrypt(src, dst));
	TEST_ASSERT_EQUAL_INT(cipher, length_of(dst));
	put_together(to, cipher);
	TEST_ASSERT_EQUAL_MEMORY(expected, to, cipher);
	give_back(src, dst);
	memcpy(from, to, cipher);
	memset(to, 0, cipher);
	src = in_pieces(source, cipher);
	dst = in_pieces(room, plain);
	set_apart(from, cipher);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, decrypt(src, dst));
	TEST_ASSERT_EQUAL_INT(plain, length_of(dst));
	put_together(to, plain);
	put_plain(with_aad, expected);
	TEST_ASSERT_EQUAL_MEMORY(expected, to, plain);
	give_back(src, dst);
	rig_stop(ctx);
}

static void longer_lists_are_rejected(void)
{
	struct doca_buf *src = source(0, 64), *dst = longest_room();

	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, encrypt(src, dst));
	lengthen(dst);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, encrypt(src, dst));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, decrypt(dst, src));
	give_back(src, dst);
	rig_stop(ctx);
}

/* The result of a task is appended to the data that the destination has. */
static void results_are_appended(void)
{
	uint8_t expected[128];
	const size_t n = put_cipher(with_aad, expected);
	struct doca_buf *src = source(0, put_plain(with_aad, from)), *dst = room(0, 256);

	for (size_t i = 1; i <= 2; i++) {
		TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, encrypt(src, dst));
		TEST_ASSERT_EQUAL_INT(i * n, length_of(dst));
		TEST_ASSERT_EQUAL_MEMORY(expected, to + (i - 1) * n, n);
	}
	give_back(src, dst);
	rig_stop(ctx);
}

static struct doca_buf *in_same_memory(size_t offset, size_t length)
{
	struct doca_buf *buf;

	OK(doca_buf_inventory_buf_get_by_addr(inventory, &from_map, from + offset, length, &buf));
	return buf;
}

static void a_message_is_processed_in_place(void)
{
	uint8_t expected[128];
	const size_t plain = put_plain(with_aad, from), cipher = put_cipher(with_aad, expected);
	struct doca_buf *src = source(0, plain), *dst = in_same_memory(0, cipher);

	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, encrypt(src, dst));
	TEST_ASSERT_EQUAL_INT(cipher, length_of(dst));
	TEST_ASSERT_EQUAL_MEMORY(expected, from, cipher);
	give_back(src, dst);
	src = source(0, cipher);
	dst = in_same_memory(0, cipher);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, decrypt(src, dst));
	TEST_ASSERT_EQUAL_INT(plain, length_of(dst));
	put_plain(with_aad, expected);
	TEST_ASSERT_EQUAL_MEMORY(expected, from, plain);
	give_back(src, dst);
	rig_stop(ctx);
}

static void overlap_at_different_addresses_is_rejected(void)
{
	const size_t n = put_plain(with_aad, from);
	struct doca_buf *src = source(8, n), *before = in_same_memory(0, 200),
			*behind = in_same_memory(8 + n - 1, 200),
			*apart = in_same_memory(8 + n, 200);

	memmove(from + 8, from, n);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, encrypt(src, before));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, encrypt(src, behind));
	TEST_ASSERT_EQUAL_INT(0, length_of(before) + length_of(behind));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, encrypt(src, apart));
	give_back(src, before);
	give_back(behind, apart);
	rig_stop(ctx);
}

/* A change of any part of a message is found, and no plaintext is released. */
static void a_message_that_was_changed_fails(void)
{
	static const uint8_t zeros[TEXT_BYTES];
	const size_t n = put_cipher(with_aad, from);
	const size_t changed[] = {0, AAD_BYTES, AAD_BYTES + TEXT_BYTES, n - 1};
	struct doca_buf *src = source(0, n), *dst = room(0, 256);

	for (size_t i = 0; i < sizeof(changed) / sizeof(changed[0]); i++) {
		memset(to, 0xee, 256);
		from[changed[i]] ^= 1;
		TEST_ASSERT_EQUAL_INT(DOCA_ERROR_IO_FAILED, decrypt(src, dst));
		from[changed[i]] ^= 1;
		TEST_ASSERT_EQUAL_INT(0, length_of(dst));
		TEST_ASSERT_EQUAL_MEMORY(zeros, to + AAD_BYTES, TEXT_BYTES);
	}
	iv[11] ^= 1;
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_IO_FAILED, decrypt(src, dst));
	iv[11] ^= 1;
	/* a failure does not affect the next task */
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, decrypt(src, dst));
	TEST_ASSERT_EQUAL_INT(AAD_BYTES + TEXT_BYTES, length_of(dst));
	TEST_ASSERT_EQUAL_INT(1, n_done);
	TEST_ASSERT_EQUAL_INT(5, n_error);
	give_back(src, dst);
	rig_stop(ctx);
}

static void submission_copies_the_initialization_vector(void)
{
	uint8_t expected[128];
	const size_t n = put_cipher(with_aad, expected);
	struct doca_buf *src = source(0, put_plain(with_aad, from)), *dst = room(0, 256);
	struct doca_task *task = doca_aes_gcm_task_encrypt_as_task(encrypt_task(src, dst));

	OK(doca_task_submit(task));
	memset(iv, 0, sizeof(iv));
	while (doca_pe_progress(pe))
		;
	TEST_ASSERT_EQUAL_MEMORY(expected, to, n);
	/* the next submission reads it again */
	OK(doca_buf_reset_data_len(dst));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, run_task(task));
	TEST_ASSERT_TRUE(memcmp(expected, to, n) != 0);
	unhex(IV, iv);
	OK(doca_buf_reset_data_len(dst));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, run_task(task));
	TEST_ASSERT_EQUAL_MEMORY(expected, to, n);
	doca_task_free(task);
	give_back(src, dst);
	rig_stop(ctx);
}

static void a_large_message_returns(void)
{
	const size_t n = RIG_BYTES - TAG_BYTES;
	struct doca_buf *src = source(0, n), *dst = room(0, RIG_BYTES);

	for (size_t i = 0; i < RIG_BYTES; i++)
		from[i] = (uint8_t)(i * 7 + i / 255);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, encrypt(src, dst));
	TEST_ASSERT_EQUAL_MEMORY(from, to, AAD_BYTES);
	TEST_ASSERT_TRUE(memcmp(from + AAD_BYTES, to + AAD_BYTES, 64) != 0);
	give_back(src, dst);
	memcpy(from, to, RIG_BYTES);
	src = source(0, RIG_BYTES);
	dst = room(0, RIG_BYTES);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, decrypt(src, dst));
	TEST_ASSERT_EQUAL_INT(n, length_of(dst));
	for (size_t i = 0; i < n; i++)
		TEST_ASSERT_EQUAL_INT((uint8_t)(i * 7 + i / 255), to[i]);
	give_back(src, dst);
	rig_stop(ctx);
}

static void tasks_have_their_fields(void)
{
	struct doca_buf *src = source(0, 64), *dst = room(0, 256), *src2 = source(0, 8),
			*dst2 = room(8, 8);
	struct doca_aes_gcm_key *key2 = make_key(KEY KEY);
	struct doca_aes_gcm_task_encrypt *e = encrypt_task(src, dst);
	struct doca_aes_gcm_task_decrypt *d = decrypt_task(src, dst);
	const uint8_t other[4] = {0};
	uint32_t n = 7;

	FIELD(doca_aes_gcm_task_encrypt_get_src, doca_aes_gcm_task_encrypt_set_src, e, src, src2);
	FIELD(doca_aes_gcm_task_encrypt_get_dst, doca_aes_gcm_task_encrypt_set_dst, e, dst, dst2);
	FIELD(doca_aes_gcm_task_encrypt_get_key, doca_aes_gcm_task_encrypt_set_key, e, key, key2);
	FIELD(doca_aes_gcm_task_encrypt_get_tag_size, doca_aes_gcm_task_encrypt_set_tag_size, e,
	      TAG_BYTES, 12);
	FIELD(doca_aes_gcm_task_encrypt_get_aad_size, doca_aes_gcm_task_encrypt_set_aad_size, e,
	      AAD_BYTES, 3);
	FIELD(doca_aes_gcm_task_decrypt_get_src, doca_aes_gcm_task_decrypt_set_src, d, src, src2);
	FIELD(doca_aes_gcm_task_decrypt_get_dst, doca_aes_gcm_task_decrypt_set_dst, d, dst, dst2);
	FIELD(doca_aes_gcm_task_decrypt_get_key, doca_aes_gcm_task_decrypt_set_key, d, key, key2);
	FIELD(doca_aes_gcm_task_decrypt_get_tag_size, doca_aes_gcm_task_decrypt_set_tag_size, d,
	      TAG_BYTES, 12);
	FIELD(doca_aes_gcm_task_decrypt_get_aad_size, doca_aes_gcm_task_decrypt_set_aad_size, d,
	      AAD_BYTES, 3);
	TEST_ASSERT_EQUAL_PTR(iv, doca_aes_gcm_task_encrypt_get_iv(e, &n));
	TEST_ASSERT_EQUAL_INT(12, n);
	doca_aes_gcm_task_encrypt_set_iv(e, other, 4);
	doca_aes_gcm_task_encrypt_set_iv(NULL, other, 4);
	TEST_ASSERT_EQUAL_PTR(other, doca_aes_gcm_task_encrypt_get_iv(e, &n));
	TEST_ASSERT_EQUAL_INT(4, n);
	TEST_ASSERT_NULL(doca_aes_gcm_task_encrypt_get_iv(NULL, &n));
	TEST_ASSERT_EQUAL_INT(0, n);
	doca_aes_gcm_task_decrypt_set_iv(d, other, 3);
	TEST_ASSERT_EQUAL_PTR(other, doca_aes_gcm_task_decrypt_get_iv(d, &n));
	TEST_ASSERT_EQUAL_INT(3, n);
	TEST_ASSERT_EQUAL_PTR(other, doca_aes_gcm_task_decrypt_get_iv(d, NULL));
	TEST_ASSERT_NULL(doca_aes_gcm_task_encrypt_as_task(NULL));
	TEST_ASSERT_NULL(doca_aes_gcm_task_decrypt_as_task(NULL));
	doca_task_free(doca_aes_gcm_task_encrypt_as_task(e));
	doca_task_free(doca_aes_gcm_task_decrypt_as_task(d));
	OK(doca_aes_gcm_key_destroy(key2));
	give_back(src, dst);
	give_back(src2, dst2);
	rig_stop(ctx);
}

/* Submit a task with a field that is invalid, with the check of the fields and without it. */
#define INVALID(type, task, set, reset) \
	do { \
		set; \
		REFUSED(INVALID_VALUE, \
			doca_task_try_submit(doca_aes_gcm_task_##type##_as_task(task))); \
		TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, \
				      run_task(doca_aes_gcm_task_##type##_as_task(task))); \
		TEST_ASSERT_EQUAL_INT(0, length_of(dst)); \
		reset; \
	} while (0)
#define INVALID_FIELD(type, task, field, wrong, right) \
	INVALID(type, task, doca_aes_gcm_task_##type##_set_##field(task, wrong), \
		doca_aes_gcm_task_##type##_set_##field(task, right))

static void invalid_encryption_fails(void)
{
	const uint32_t n = (uint32_t)put_plain(with_aad, from);
	struct doca_buf *src = source(0, n), *dst = room(0, n + TAG_BYTES),
			*small = room(0, n + TAG_BYTES - 1);
	struct doca_aes_gcm_task_encrypt *task = encrypt_task(src, dst);

	INVALID_FIELD(encrypt, task, src, NULL, src);
	INVALID_FIELD(encrypt, task, dst, NULL, dst);
	INVALID_FIELD(encrypt, task, dst, small, dst);
	INVALID_FIELD(encrypt, task, key, NULL, key);
	INVALID_FIELD(encrypt, task, tag_size, 13, TAG_BYTES);
	INVALID_FIELD(encrypt, task, aad_size, n + 1, AAD_BYTES);
	INVALID(encrypt, task, from_map.n_devs = 0, from_map.n_devs = 1);
	INVALID(encrypt, task, to_map.n_devs = 0, to_map.n_devs = 1);
	INVALID(encrypt, task, doca_aes_gcm_task_encrypt_set_iv(task, NULL, 12), );
	INVALID(encrypt, task, doca_aes_gcm_task_encrypt_set_iv(task, iv, 0), );
	INVALID(encrypt, task, doca_aes_gcm_task_encrypt_set_iv(task, iv, 13), );
	doca_aes_gcm_task_encrypt_set_iv(task, iv, 12);
	to_map.access = 0;
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_NOT_PERMITTED,
			      run_task(doca_aes_gcm_task_encrypt_as_task(task)));
	to_map.access = DOCA_ACCESS_FLAG_LOCAL_READ_WRITE;
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, run_task(doca_aes_gcm_task_encrypt_as_task(task)));
	doca_task_free(doca_aes_gcm_task_encrypt_as_task(task));
	give_back(src, dst);
	give_back(small, NULL);
	rig_stop(ctx);
}

static void invalid_decryption_fails(void)
{
	const uint32_t n = (uint32_t)put_cipher(with_aad, from);
	struct doca_buf *src = source(0, n), *dst = room(0, n - TAG_BYTES),
			*small = room(0, n - TAG_BYTES - 1), *short_src = source(0, TAG_BYTES - 1);
	struct doca_aes_gcm_task_decrypt *task = decrypt_task(src, dst);

	INVALID_FIELD(decrypt, task, src, NULL, src);
	INVALID_FIELD(decrypt, task, src, short_src, src);
	INVALID_FIELD(decrypt, task, dst, NULL, dst);
	INVALID_FIELD(decrypt, task, dst, small, dst);
	INVALID_FIELD(decrypt, task, key, NULL, key);
	INVALID_FIELD(decrypt, task, tag_size, 0, TAG_BYTES);
	INVALID_FIELD(decrypt, task, aad_size, n - TAG_BYTES + 1, AAD_BYTES);
	INVALID_FIELD(decrypt, task, aad_size, UINT32_MAX, AAD_BYTES);
	INVALID(decrypt, task, from_map.n_devs = 0, from_map.n_devs = 1);
	INVALID(decrypt, task, to_map.n_devs = 0, to_map.n_devs = 1);
	INVALID(decrypt, task, doca_aes_gcm_task_decrypt_set_iv(task, iv, 0), );
	doca_aes_gcm_task_decrypt_set_iv(task, iv, 12);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, run_task(doca_aes_gcm_task_decrypt_as_task(task)));
	doca_task_free(doca_aes_gcm_task_decrypt_as_task(task));
	give_back(src, dst);
	give_back(small, short_src);
	rig_stop(ctx);
}

/* A list can have more bytes than the memory, so it tests the maximum. */
static struct doca_buf *many_bytes(size_t n)
{
	struct doca_buf *list = source(0, n % RIG_BYTES ? n % RIG_BYTES : RIG_BYTES);

	while (length_of(list) < n)
		OK(doca_buf_chain_list(list, source(0, RIG_BYTES)));
	return list;
}

static void long_sources_are_rejected(void)
{
	struct doca_aes_gcm_task_encrypt *e;
	struct doca_aes_gcm_task_decrypt *d;
	struct doca_buf *src, *dst = room(0, 1);
	uint64_t max, max_decrypt;

	OK(doca_aes_gcm_cap_task_encrypt_get_max_buf_size(&info, &max));
	OK(doca_aes_gcm_cap_task_decrypt_get_max_buf_size(&info, &max_decrypt));
	TEST_ASSERT_TRUE(max_decrypt == max + TAG_BYTES);
	while (gd_buf_room(dst) < max + 2 * TAG_BYTES)
		OK(doca_buf_chain_list(dst, room(0, RIG_BYTES)));
	src = many_bytes(max + 1);
	e = encrypt_task(src, dst);
	REFUSED(INVALID_VALUE, doca_task_try_submit(doca_aes_gcm_task_encrypt_as_task(e)));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      run_task(doca_aes_gcm_task_encrypt_as_task(e)));
	OK(doca_buf_set_data(src, from, 0));
	OK(doca_task_try_submit(doca_aes_gcm_task_encrypt_as_task(e)));
	doca_task_free(doca_aes_gcm_task_encrypt_as_task(e));
	give_back(src, NULL);
	src = many_bytes(max_decrypt + 1);
	d = decrypt_task(src, dst);
	REFUSED(INVALID_VALUE, doca_task_try_submit(doca_aes_gcm_task_decrypt_as_task(d)));
	doca_task_free(doca_aes_gcm_task_decrypt_as_task(d));
	give_back(src, dst);
	rig_stop(ctx);
}

static void tasks_are_limited_flushed_and_withdrawn(void)
{
	struct doca_buf *src = source(0, 64), *dst = room(0, 4096);
	struct doca_aes_gcm_task_encrypt *e[4], *more;
	struct doca_aes_gcm_task_decrypt *d[2], *more_d;

	for (int i = 0; i < 4; i++)
		e[i] = encrypt_task(src, dst);
	for (int i = 0; i < 2; i++)
		d[i] = decrypt_task(src, dst);
	REFUSED(NO_MEMORY, doca_aes_gcm_task_encrypt_alloc_init(aes_gcm, src, dst, key, iv, 12, 16,
								0, no_data, &more));
	REFUSED(NO_MEMORY, doca_aes_gcm_task_decrypt_alloc_init(aes_gcm, src, dst, key, iv, 12, 16,
								0, no_data, &more_d));
	for (int i = 0; i < 4; i++)
		OK(doca_task_submit(doca_aes_gcm_task_encrypt_as_task(e[i])));
	for (int i = 0; i < 2; i++)
		doca_task_free(doca_aes_gcm_task_decrypt_as_task(d[i]));
	/* free the last task of the queue, and one in the middle: their callbacks must not run */
	doca_task_free(doca_aes_gcm_task_encrypt_as_task(e[3]));
	doca_task_free(doca_aes_gcm_task_encrypt_as_task(e[1]));
	REFUSED(IN_USE, doca_aes_gcm_destroy(aes_gcm));
	REFUSED(IN_PROGRESS, doca_ctx_stop(ctx));
	while (doca_pe_progress(pe))
		;
	TEST_ASSERT_EQUAL_INT(2, n_error);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_SHUTDOWN, status);
	TEST_ASSERT_EQUAL_INT(0, length_of(dst));
	doca_task_free(doca_aes_gcm_task_encrypt_as_task(e[0]));
	doca_task_free(doca_aes_gcm_task_encrypt_as_task(e[2]));
	while (doca_pe_progress(pe))
		;
	rig_stop(ctx);
	REFUSED(BAD_STATE, doca_aes_gcm_task_encrypt_alloc_init(aes_gcm, src, dst, key, iv, 12, 16,
								0, no_data, &more));
	REFUSED(BAD_STATE, doca_aes_gcm_task_decrypt_alloc_init(aes_gcm, src, dst, key, iv, 12, 16,
								0, no_data, &more_d));
	give_back(src, dst);
}

static void keys_belong_to_a_context(void)
{
	struct doca_buf *src = source(0, 64), *dst = room(0, 4096);
	struct doca_aes_gcm_task_encrypt *task;
	struct doca_aes_gcm_key *foreign;
	struct doca_aes_gcm *second;
	uint8_t raw[32] = {0};

	OK(doca_aes_gcm_create(&dev, &second));
	OK(doca_aes_gcm_key_create(second, raw, DOCA_AES_GCM_KEY_256, &foreign));
	REFUSED(IN_USE, doca_aes_gcm_destroy(second));
	REFUSED(INVALID_VALUE, doca_aes_gcm_task_encrypt_alloc_init(aes_gcm, src, dst, foreign, iv,
								    12, 16, 0, no_data, &task));
	task = encrypt_task(src, dst);
	doca_aes_gcm_task_encrypt_set_key(task, foreign);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      run_task(doca_aes_gcm_task_encrypt_as_task(task)));
	doca_task_free(doca_aes_gcm_task_encrypt_as_task(task));
	OK(doca_aes_gcm_key_destroy(foreign));
	OK(doca_aes_gcm_destroy(second));
	REFUSED(INVALID_VALUE, doca_aes_gcm_key_create(NULL, raw, DOCA_AES_GCM_KEY_128, &foreign));
	REFUSED(INVALID_VALUE,
		doca_aes_gcm_key_create(aes_gcm, NULL, DOCA_AES_GCM_KEY_128, &foreign));
	REFUSED(INVALID_VALUE,
		doca_aes_gcm_key_create(aes_gcm, raw, (enum doca_aes_gcm_key_type)3, &foreign));
	REFUSED(INVALID_VALUE, doca_aes_gcm_key_create(aes_gcm, raw, DOCA_AES_GCM_KEY_128, NULL));
	REFUSED(INVALID_VALUE, doca_aes_gcm_key_destroy(NULL));
	give_back(src, dst);
	rig_stop(ctx);
}

static void arguments(void)
{
	struct doca_buf *src = source(0, 64), *dst = room(0, 4096);
	struct doca_aes_gcm_task_encrypt *e;
	struct doca_aes_gcm_task_decrypt *d;
	struct doca_aes_gcm *second;

	REFUSED(INVALID_VALUE, doca_aes_gcm_task_encrypt_alloc_init(NULL, src, dst, key, iv, 12, 16,
								    0, no_data, &e));
	REFUSED(INVALID_VALUE, doca_aes_gcm_task_encrypt_alloc_init(aes_gcm, src, dst, key, iv, 0,
								    16, 0, no_data, &e));
	REFUSED(INVALID_VALUE, doca_aes_gcm_task_encrypt_alloc_init(aes_gcm, src, dst, key, iv, 12,
								    14, 0, no_data, &e));
	REFUSED(INVALID_VALUE, doca_aes_gcm_task_decrypt_alloc_init(aes_gcm, NULL, dst, key, iv, 12,
								    16, 0, no_data, &d));
	REFUSED(INVALID_VALUE, doca_aes_gcm_task_decrypt_alloc_init(aes_gcm, src, dst, key, iv, 12,
								    16, 0, no_data, NULL));
	REFUSED(BAD_STATE,
		doca_aes_gcm_task_encrypt_set_conf(
			aes_gcm, DONE_AND_ERROR(doca_aes_gcm_task_encrypt_completion_cb_t), 2));
	REFUSED(BAD_STATE,
		doca_aes_gcm_task_decrypt_set_conf(
			aes_gcm, DONE_AND_ERROR(doca_aes_gcm_task_decrypt_completion_cb_t), 2));
	OK(doca_aes_gcm_key_destroy(key));
	REFUSED(BAD_STATE, doca_aes_gcm_destroy(aes_gcm));
	key = make_key(KEY);
	rig_stop(ctx);
	REFUSED(INVALID_VALUE, doca_aes_gcm_create(NULL, &second));
	REFUSED(INVALID_VALUE, doca_aes_gcm_create(&dev, NULL));
	REFUSED(INVALID_VALUE, doca_aes_gcm_destroy(NULL));
	TEST_ASSERT_NULL(doca_aes_gcm_as_ctx(NULL));
	REFUSED(INVALID_VALUE, doca_aes_gcm_task_encrypt_set_conf(aes_gcm, NULL, NULL, 1));
	REFUSED(INVALID_VALUE,
		doca_aes_gcm_task_encrypt_set_conf(
			aes_gcm, DONE_AND_ERROR(doca_aes_gcm_task_encrypt_completion_cb_t), 0));
	REFUSED(INVALID_VALUE,
		doca_aes_gcm_task_decrypt_set_conf(
			aes_gcm, DONE_AND_ERROR(doca_aes_gcm_task_decrypt_completion_cb_t), 65537));
	give_back(src, dst);
}

static void capabilities(void)
{
	uint32_t n;
	uint64_t size;

	rig_stop(ctx);
	OK(doca_aes_gcm_cap_task_encrypt_is_supported(&info));
	OK(doca_aes_gcm_cap_task_decrypt_is_supported(&info));
	OK(doca_aes_gcm_cap_task_encrypt_is_tag_96_supported(&info));
	OK(doca_aes_gcm_cap_task_decrypt_is_tag_96_supported(&info));
	OK(doca_aes_gcm_cap_task_encrypt_is_tag_128_supported(&info));
	OK(doca_aes_gcm_cap_task_decrypt_is_tag_128_supported(&info));
	OK(doca_aes_gcm_cap_task_encrypt_is_key_type_supported(&info, DOCA_AES_GCM_KEY_128));
	OK(doca_aes_gcm_cap_task_decrypt_is_key_type_supported(&info, DOCA_AES_GCM_KEY_256));
	REFUSED(INVALID_VALUE, doca_aes_gcm_cap_task_encrypt_is_key_type_supported(
				       &info, (enum doca_aes_gcm_key_type)0));
	REFUSED(INVALID_VALUE,
		doca_aes_gcm_cap_task_decrypt_is_key_type_supported(NULL, DOCA_AES_GCM_KEY_128));
	OK(doca_aes_gcm_cap_task_encrypt_get_max_iv_len(&info, &n));
	TEST_ASSERT_EQUAL_INT(12, n);
	OK(doca_aes_gcm_cap_task_decrypt_get_max_iv_len(&info, &n));
	TEST_ASSERT_EQUAL_INT(12, n);
	OK(doca_aes_gcm_cap_task_encrypt_get_max_buf_size(&info, &size));
	TEST_ASSERT_TRUE(size >= 2 << 20);
	OK(doca_aes_gcm_cap_task_encrypt_get_max_list_buf_num_elem(&info, &n));
	TEST_ASSERT_TRUE(n >= 2);
	OK(doca_aes_gcm_cap_task_decrypt_get_max_list_buf_num_elem(&info, &n));
	TEST_ASSERT_TRUE(n >= 2);
	OK(doca_aes_gcm_cap_get_max_num_tasks(aes_gcm, &n));
	TEST_ASSERT_TRUE(n >= 65536);
	REFUSED(INVALID_VALUE, doca_aes_gcm_cap_get_max_num_tasks(NULL, &n));
	REFUSED(INVALID_VALUE, doca_aes_gcm_cap_task_encrypt_get_max_buf_size(&info, NULL));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(known_messages_have_known_ciphertexts_and_tags);
	RUN_TEST(lists_of_buffers_are_one_message);
	RUN_TEST(longer_lists_are_rejected);
	RUN_TEST(results_are_appended);
	RUN_TEST(a_message_is_processed_in_place);
	RUN_TEST(overlap_at_different_addresses_is_rejected);
	RUN_TEST(a_message_that_was_changed_fails);
	RUN_TEST(submission_copies_the_initialization_vector);
	RUN_TEST(a_large_message_returns);
	RUN_TEST(tasks_have_their_fields);
	RUN_TEST(invalid_encryption_fails);
	RUN_TEST(invalid_decryption_fails);
	RUN_TEST(long_sources_are_rejected);
	RUN_TEST(tasks_are_limited_flushed_and_withdrawn);
	RUN_TEST(keys_belong_to_a_context);
	RUN_TEST(arguments);
	RUN_TEST(capabilities);
	return UNITY_END();
}
