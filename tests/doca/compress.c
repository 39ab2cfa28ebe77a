/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Deflate and LZ4: tasks decompress streams that zlib and lz4 made; a broken stream fails and
 * changes no buffer.
 */
#include <doca_compress.h>

#include <endian.h>
#include <lz4.h>
#include <lz4frame.h>
#include <zlib.h>

#include "compute/compress.h"
#include "serial_rig.h"

static struct doca_compress *compress_;
static struct doca_ctx *ctx;
static uint8_t text[300000], packed[400000];

void setUp(void)
{
	rig_up();
	OK(doca_compress_create(&dev, &compress_));
	ctx = doca_compress_as_ctx(compress_);
	OK(doca_compress_task_compress_deflate_set_conf(
		compress_, DONE_AND_ERROR(doca_compress_task_compress_deflate_completion_cb_t), 4));
	OK(doca_compress_task_decompress_deflate_set_conf(
		compress_, DONE_AND_ERROR(doca_compress_task_decompress_deflate_completion_cb_t),
		4));
	OK(doca_compress_task_decompress_lz4_stream_set_conf(
		compress_, DONE_AND_ERROR(doca_compress_task_decompress_lz4_stream_completion_cb_t),
		4));
	OK(doca_compress_task_decompress_lz4_block_set_conf(
		compress_, DONE_AND_ERROR(doca_compress_task_decompress_lz4_block_completion_cb_t),
		4));
	rig_start(ctx);
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (uint8_t)("the same words come again and again "[i % 36] +
				    (i * 2654435761u >> 29));
}

void tearDown(void)
{
	rig_stop(ctx);
	OK(doca_compress_destroy(compress_));
	rig_down();
}

/* -- one task of each kind, from the memory `from` to the memory `to` -- */

static uint32_t crc, other; /* checksums of the last task */

/* Define run(src, dst), which runs a task of this kind and stores its checksums. */
#define PLAIN_TASK(run, NAME, SUM) \
	static doca_error_t run(struct doca_buf *src, struct doca_buf *dst) \
	{ \
		struct doca_compress_task_##NAME *task; \
		doca_error_t result; \
\
		OK(doca_compress_task_##NAME##_alloc_init(compress_, src, dst, no_data, &task)); \
		result = run_task(doca_compress_task_##NAME##_as_task(task)); \
		crc = doca_compress_task_##NAME##_get_crc_cs(task); \
		other = doca_compress_task_##NAME##_get_##SUM##_cs(task); \
		doca_task_free(doca_compress_task_##NAME##_as_task(task)); \
		return result; \
	}
PLAIN_TASK(deflate_task, compress_deflate, adler)
PLAIN_TASK(inflate_task, decompress_deflate, adler)
PLAIN_TASK(block_task, decompress_lz4_block, xxh)

static doca_error_t stream_task(bool checksum, bool independent, struct doca_buf *src,
				struct doca_buf *dst)
{
	struct doca_compress_task_decompress_lz4_stream *task;
	doca_error_t result;

	OK(doca_compress_task_decompress_lz4_stream_alloc_init(compress_, checksum, independent,
							       src, dst, no_data, &task));
	TEST_ASSERT_EQUAL_INT(
		checksum, doca_compress_task_decompress_lz4_stream_get_has_block_checksum(task));
	TEST_ASSERT_EQUAL_INT(
		independent,
		doca_compress_task_decompress_lz4_stream_get_are_blocks_independent(task));
	result = run_task(doca_compress_task_decompress_lz4_stream_as_task(task));
	crc = doca_compress_task_decompress_lz4_stream_get_crc_cs(task);
	other = doca_compress_task_decompress_lz4_stream_get_xxh_cs(task);
	doca_task_free(doca_compress_task_decompress_lz4_stream_as_task(task));
	return result;
}

/* Store a raw stream of zlib in `packed`. Returns its length in bytes. */
static size_t zlib_stream(size_t n)
{
	z_stream z = {.next_in = text,
		      .avail_in = (uInt)n,
		      .next_out = packed,
		      .avail_out = sizeof(packed)};

	TEST_ASSERT_EQUAL_INT(Z_OK,
			      deflateInit2(&z, 9, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY));
	TEST_ASSERT_EQUAL_INT(Z_STREAM_END, deflate(&z, Z_FINISH));
	deflateEnd(&z);
	return sizeof(packed) - z.avail_out;
}

static void check_zlib_sums(size_t n)
{
	TEST_ASSERT_EQUAL_HEX32(crc32(0, text, (uInt)n), crc);
	TEST_ASSERT_EQUAL_HEX32(adler32(1, text, (uInt)n), other);
}

/* -- deflate -- */

static void a_stream_of_zlib_is_inflated(void)
{
	size_t n = zlib_stream(sizeof(text));
	struct doca_buf *src, *dst = room(1, sizeof(text) + 10);

	memcpy(from, packed, n);
	src = source(0, n);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, inflate_task(src, dst));
	TEST_ASSERT_EQUAL_INT(sizeof(text), length_of(dst));
	TEST_ASSERT_EQUAL_MEMORY(text, to + 1, sizeof(text));
	check_zlib_sums(sizeof(text));
	give_back(src, dst);
}

/* the checksums are those that zlib computes for the uncompressed data */
static void zlib_inflates_deflated_data(void)
{
	static uint8_t back[sizeof(text)];
	struct doca_buf *src, *dst = room(0, RIG_BYTES);
	z_stream z = {.next_out = back, .avail_out = sizeof(back)};

	memcpy(from, text, sizeof(text));
	src = source(0, sizeof(text));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, deflate_task(src, dst));
	check_zlib_sums(sizeof(text));
	TEST_ASSERT_TRUE(length_of(dst) < sizeof(text));
	z.next_in = to;
	z.avail_in = (uInt)length_of(dst);
	TEST_ASSERT_EQUAL_INT(Z_OK, inflateInit2(&z, -MAX_WBITS));
	TEST_ASSERT_EQUAL_INT(Z_STREAM_END, inflate(&z, Z_FINISH));
	TEST_ASSERT_EQUAL_INT(0, z.avail_in);
	inflateEnd(&z);
	TEST_ASSERT_EQUAL_MEMORY(text, back, sizeof(text));
	give_back(src, dst);
}

static void result_is_appended_to_the_data_of_the_buffer(void)
{
	size_t n = zlib_stream(1000);
	struct doca_buf *src, *dst = room(0, 2000);

	memcpy(from, packed, n);
	src = source(0, n);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, inflate_task(src, dst));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, inflate_task(src, dst));
	TEST_ASSERT_EQUAL_INT(2000, length_of(dst));
	TEST_ASSERT_EQUAL_MEMORY(text, to + 1000, 1000);
	/* the destination is full */
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, inflate_task(src, dst));
	give_back(src, dst);
}

static void lists_are_compressed_and_filled(void)
{
	struct doca_buf *src, *dst = in_pieces(room, 100000), *back;

	memcpy(from, text, 50000);
	src = in_pieces(source, 50000);
	set_apart(from, 50000);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, deflate_task(src, dst));
	put_together(from, 50000);
	check_zlib_sums(50000);
	put_together(to, 100000);
	memcpy(from + 100000, to, length_of(dst));
	give_back(src, NULL);
	src = source(100000, length_of(dst));
	back = room(200000, 50000);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, inflate_task(src, back));
	TEST_ASSERT_EQUAL_MEMORY(text, to + 200000, 50000);
	give_back(src, dst);
	give_back(back, NULL);
}

static void longer_lists_are_rejected(void)
{
	struct doca_buf *src = source(0, 64), *dst = longest_room();

	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, deflate_task(src, dst));
	lengthen(dst);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, deflate_task(src, dst));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, inflate_task(dst, src));
	give_back(src, dst);
}

static void broken_streams_fail_and_change_no_length(void)
{
	size_t n = zlib_stream(5000);
	struct doca_buf *src, *dst = room(0, 5001), *small = room(6000, 4999);

	memcpy(from, packed, n);
	src = source(0, n - 1);
	/* the stream is cut off */
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_IO_FAILED, inflate_task(src, dst));
	OK(doca_buf_set_data(src, from, n));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_TOO_BIG, inflate_task(src, small));
	OK(doca_buf_set_data(src, from, 0));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_IO_FAILED, inflate_task(src, dst));
	from[0] = 0x07; /* an invalid type of block */
	OK(doca_buf_set_data(src, from, n));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_IO_FAILED, inflate_task(src, dst));
	TEST_ASSERT_EQUAL_INT(0, length_of(dst) + length_of(small));
	memset(from, 0x55, 100);
	memcpy(from, text, 5000);
	OK(doca_buf_set_data(src, from, n));
	give_back(small, NULL);
	small = room(6000, 20);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_TOO_BIG, deflate_task(src, small));
	TEST_ASSERT_EQUAL_INT(0, length_of(small));
	give_back(src, dst);
	give_back(small, NULL);
}

/* -- LZ4 -- */

/*
 * Store the blocks of a frame of lz4 in `from`, without its header and end, as programs do. Stores
 * the checksum of the frame in *content. Returns the length of the blocks.
 */
static size_t lz4_blocks(bool checksum, bool independent, size_t n, uint32_t *content)
{
	LZ4F_preferences_t p = {
		.frameInfo = {.blockSizeID = LZ4F_max64KB,
			      .blockMode = independent ? LZ4F_blockIndependent : LZ4F_blockLinked,
			      .contentChecksumFlag = LZ4F_contentChecksumEnabled,
			      .blockChecksumFlag = checksum ? LZ4F_blockChecksumEnabled
							    : LZ4F_noBlockChecksum}};
	size_t length = LZ4F_compressFrame(packed, sizeof(packed), text, n, &p);

	TEST_ASSERT_FALSE(LZ4F_isError(length));
	memcpy(content, packed + length - 4, 4);
	memcpy(from, packed + 7, length - 7);
	return length - 7 - 8;
}

static void frames_of_lz4_are_decompressed(void)
{
	uint32_t content;

	for (int i = 0; i < 4; i++) {
		size_t n = lz4_blocks(i & 1, i & 2, sizeof(text), &content);
		struct doca_buf *src = source(0, n), *dst = room(3, sizeof(text));

		TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, stream_task(i & 1, i & 2, src, dst));
		TEST_ASSERT_EQUAL_INT(sizeof(text), length_of(dst));
		TEST_ASSERT_EQUAL_MEMORY(text, to + 3, sizeof(text));
		/* programs read the checksum of the frame as a big-endian number */
		TEST_ASSERT_EQUAL_HEX32(htobe32(content), other);
		TEST_ASSERT_EQUAL_HEX32(crc32(0, text, sizeof(text)), crc);
		OK(doca_buf_reset_data_len(dst));
		OK(doca_buf_set_data(src, from, n + 4)); /* with the end mark */
		TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, stream_task(i & 1, i & 2, src, dst));
		TEST_ASSERT_EQUAL_INT(sizeof(text), length_of(dst));
		give_back(src, dst);
	}
}

static void bytes_that_lz4_leaves_alone_are_copied(void)
{
	uint32_t content, seed = 1;
	struct doca_buf *src, *dst = in_pieces(room, 70000);
	size_t n;

	for (size_t i = 0; i < 70000; i++)
		text[i] = (uint8_t)((seed = seed * 1664525 + 1013904223) >> 24);
	n = lz4_blocks(true, true, 70000, &content);
	src = source(0, n);
	TEST_ASSERT_TRUE(n > 70000);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, stream_task(true, true, src, dst));
	put_together(to, 70000);
	TEST_ASSERT_EQUAL_MEMORY(text, to, 70000);
	TEST_ASSERT_EQUAL_HEX32(htobe32(content), other);
	give_back(src, dst);
	dst = room(0, 69999);
	src = source(0, n);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_IO_FAILED, stream_task(true, true, src, dst));
	give_back(src, dst);
}

static void broken_blocks_fail_and_change_no_length(void)
{
	uint32_t content;
	size_t n = lz4_blocks(true, true, 100000, &content);
	struct doca_buf *src = source(0, n), *dst = room(0, 100000);

	for (size_t cut = 1; cut < 8; cut++) {
		OK(doca_buf_set_data(src, from, n - cut));
		TEST_ASSERT_EQUAL_INT(DOCA_ERROR_IO_FAILED, stream_task(true, true, src, dst));
	}
	OK(doca_buf_set_data(src, from, n));
	from[n - 10] ^= 1;
	/* the checksum of the block shows the error */
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_IO_FAILED, stream_task(true, true, src, dst));
	from[n - 10] ^= 1;
	from[3] ^= 0x40; /* the header of the block now claims 1 GiB */
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_IO_FAILED, stream_task(true, true, src, dst));
	TEST_ASSERT_EQUAL_INT(0, length_of(dst));
	give_back(src, dst);
}

static void a_block_of_lz4_is_decompressed(void)
{
	int n = LZ4_compress_default((const char *)text, (char *)from, 60000, RIG_BYTES);
	struct doca_buf *src = source(0, (size_t)n), *dst = room(0, 60000);

	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, block_task(src, dst));
	TEST_ASSERT_EQUAL_INT(60000, length_of(dst));
	TEST_ASSERT_EQUAL_MEMORY(text, to, 60000);
	TEST_ASSERT_EQUAL_HEX32(crc32(0, text, 60000), crc);
	TEST_ASSERT_EQUAL_HEX32(htobe32(gd_xxh32(text, 60000)), other);
	OK(doca_buf_reset_data_len(dst));
	OK(doca_buf_set_data(src, from, (size_t)n - 1));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_IO_FAILED, block_task(src, dst));
	TEST_ASSERT_EQUAL_INT(0, length_of(dst));
	give_back(src, dst);
}

/* The vectors come from the specification of xxHash. */
static void xxhash_has_its_known_values(void)
{
	TEST_ASSERT_EQUAL_HEX32(0x02cc5d05, gd_xxh32((const uint8_t *)"", 0));
	TEST_ASSERT_EQUAL_HEX32(0x550d7456, gd_xxh32((const uint8_t *)"a", 1));
	TEST_ASSERT_EQUAL_HEX32(0x32d153ff, gd_xxh32((const uint8_t *)"abc", 3));
}

/*
 * Test each kind of task: the number of tasks is the configured one, fields of tasks, capabilities
 * of the device, and that the configuration rejects invalid values and late calls.
 */
#define FN(name, rest) doca_compress_task_##name##rest
#define CAP(name, rest) doca_compress_cap_task_##name##rest
#define CALLBACKS(name) DONE_AND_ERROR(doca_compress_task_##name##_completion_cb_t)
#define KIND(name, alloc) \
	static void name##_has_fields(struct doca_buf *src, struct doca_buf *dst) \
	{ \
		struct doca_compress_task_##name *tasks[4], *more; \
		uint64_t size; \
		uint32_t n; \
\
		for (int i = 0; i < 4; i++) \
			OK(alloc(compress_, src, dst, no_data, &tasks[i])); \
		REFUSED(NO_MEMORY, alloc(compress_, src, dst, no_data, &more)); \
		REFUSED(INVALID_VALUE, alloc(NULL, src, dst, no_data, &more)); \
		REFUSED(INVALID_VALUE, alloc(compress_, NULL, dst, no_data, &more)); \
		REFUSED(INVALID_VALUE, alloc(compress_, src, NULL, no_data, &more)); \
		REFUSED(INVALID_VALUE, alloc(compress_, src, dst, no_data, NULL)); \
		FIELD(FN(name, _get_src), FN(name, _set_src), tasks[0], src, dst); \
		FIELD(FN(name, _get_dst), FN(name, _set_dst), tasks[0], dst, NULL); \
		REFUSED(INVALID_VALUE, doca_task_try_submit(FN(name, _as_task)(tasks[0]))); \
		TEST_ASSERT_NULL(FN(name, _as_task)(NULL)); \
		TEST_ASSERT_EQUAL_INT(0, FN(name, _get_crc_cs)(NULL)); \
		for (int i = 0; i < 4; i++) \
			doca_task_free(FN(name, _as_task)(tasks[i])); \
		OK(CAP(name, _is_supported)(&info)); \
		OK(CAP(name, _get_max_buf_size)(&info, &size)); \
		OK(CAP(name, _get_max_buf_list_len)(&info, &n)); \
		TEST_ASSERT_TRUE(size >= 2 << 20 && n >= 2); \
		REFUSED(INVALID_VALUE, CAP(name, _get_max_buf_size)(&info, NULL)); \
		REFUSED(INVALID_VALUE, CAP(name, _get_max_buf_list_len)(&info, NULL)); \
		REFUSED(BAD_STATE, FN(name, _set_conf)(compress_, CALLBACKS(name), 4)); \
		REFUSED(INVALID_VALUE, FN(name, _set_conf)(compress_, CALLBACKS(name), 0)); \
		REFUSED(INVALID_VALUE, FN(name, _set_conf)(compress_, NULL, NULL, 4)); \
	}

static doca_error_t alloc_stream(struct doca_compress *compress, const struct doca_buf *src,
				 struct doca_buf *dst, union doca_data data,
				 struct doca_compress_task_decompress_lz4_stream **task)
{
	return doca_compress_task_decompress_lz4_stream_alloc_init(compress, 1, 0, src, dst, data,
								   task);
}

KIND(compress_deflate, doca_compress_task_compress_deflate_alloc_init)
KIND(decompress_deflate, doca_compress_task_decompress_deflate_alloc_init)
KIND(decompress_lz4_stream, alloc_stream)
KIND(decompress_lz4_block, doca_compress_task_decompress_lz4_block_alloc_init)

static void each_kind_of_task_has_its_fields_and_its_number(void)
{
	struct doca_compress_task_decompress_lz4_stream *task;
	struct doca_buf *src = source(0, 10), *dst = room(0, 10);

	compress_deflate_has_fields(src, dst);
	decompress_deflate_has_fields(src, dst);
	decompress_lz4_stream_has_fields(src, dst);
	decompress_lz4_block_has_fields(src, dst);
	OK(alloc_stream(compress_, src, dst, no_data, &task));
	FIELD(FN(decompress_lz4_stream, _get_has_block_checksum),
	      FN(decompress_lz4_stream, _set_has_block_checksum), task, 1, 0);
	FIELD(FN(decompress_lz4_stream, _get_are_blocks_independent),
	      FN(decompress_lz4_stream, _set_are_blocks_independent), task, 0, 1);
	doca_task_free(FN(decompress_lz4_stream, _as_task)(task));
	TEST_ASSERT_EQUAL_INT(0, doca_compress_task_compress_deflate_get_adler_cs(NULL));
	TEST_ASSERT_EQUAL_INT(0, doca_compress_task_decompress_deflate_get_adler_cs(NULL));
	TEST_ASSERT_EQUAL_INT(0, doca_compress_task_decompress_lz4_stream_get_xxh_cs(NULL));
	TEST_ASSERT_EQUAL_INT(0, doca_compress_task_decompress_lz4_block_get_xxh_cs(NULL));
	give_back(src, dst);
}

static void arguments_and_capabilities(void)
{
	struct doca_compress_task_compress_deflate *task;
	struct doca_buf *src = source(0, 10), *dst = room(0, 10);
	struct doca_compress *other_one;
	uint64_t size;
	uint32_t n;

	OK(doca_compress_cap_task_compress_deflate_is_supported(&info));
	OK(doca_compress_cap_task_decompress_deflate_is_supported(&info));
	OK(doca_compress_cap_task_decompress_lz4_stream_is_supported(&info));
	OK(doca_compress_cap_task_decompress_lz4_block_is_supported(&info));
	REFUSED(INVALID_VALUE, doca_compress_cap_task_compress_deflate_is_supported(NULL));
	OK(doca_compress_cap_task_compress_deflate_get_max_buf_size(&info, &size));
	TEST_ASSERT_TRUE(size >= 2 << 20);
	REFUSED(INVALID_VALUE,
		doca_compress_cap_task_decompress_deflate_get_max_buf_size(&info, NULL));
	OK(doca_compress_cap_task_decompress_lz4_stream_get_max_buf_list_len(&info, &n));
	TEST_ASSERT_TRUE(n >= 2);
	OK(doca_compress_cap_get_max_num_tasks(compress_, &n));
	TEST_ASSERT_TRUE(n >= 1024);
	REFUSED(INVALID_VALUE, doca_compress_create(NULL, &other_one));
	REFUSED(INVALID_VALUE, doca_compress_create(&dev, NULL));
	REFUSED(INVALID_VALUE, doca_compress_destroy(NULL));
	REFUSED(IN_USE, doca_compress_destroy(compress_));
	TEST_ASSERT_NULL(doca_compress_as_ctx(NULL));
	REFUSED(BAD_STATE,
		doca_compress_task_compress_deflate_set_conf(
			compress_,
			DONE_AND_ERROR(doca_compress_task_compress_deflate_completion_cb_t), 4));
	REFUSED(INVALID_VALUE,
		doca_compress_task_compress_deflate_set_conf(
			compress_,
			DONE_AND_ERROR(doca_compress_task_compress_deflate_completion_cb_t),
			UINT32_MAX));
	REFUSED(INVALID_VALUE, doca_compress_task_compress_deflate_alloc_init(compress_, NULL, dst,
									      no_data, &task));
	REFUSED(INVALID_VALUE, doca_compress_task_compress_deflate_alloc_init(compress_, src, NULL,
									      no_data, &task));
	REFUSED(INVALID_VALUE,
		doca_compress_task_compress_deflate_alloc_init(compress_, src, dst, no_data, NULL));
	OK(doca_compress_task_compress_deflate_alloc_init(compress_, src, dst, no_data, &task));
	TEST_ASSERT_EQUAL_PTR(src, doca_compress_task_compress_deflate_get_src(task));
	TEST_ASSERT_EQUAL_PTR(dst, doca_compress_task_compress_deflate_get_dst(task));
	doca_compress_task_compress_deflate_set_dst(task, NULL);
	REFUSED(INVALID_VALUE,
		doca_task_try_submit(doca_compress_task_compress_deflate_as_task(task)));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      run_task(doca_compress_task_compress_deflate_as_task(task)));
	doca_task_free(doca_compress_task_compress_deflate_as_task(task));
	give_back(src, dst);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(a_stream_of_zlib_is_inflated);
	RUN_TEST(zlib_inflates_deflated_data);
	RUN_TEST(result_is_appended_to_the_data_of_the_buffer);
	RUN_TEST(lists_are_compressed_and_filled);
	RUN_TEST(longer_lists_are_rejected);
	RUN_TEST(broken_streams_fail_and_change_no_length);
	RUN_TEST(frames_of_lz4_are_decompressed);
	RUN_TEST(bytes_that_lz4_leaves_alone_are_copied);
	RUN_TEST(broken_blocks_fail_and_change_no_length);
	RUN_TEST(a_block_of_lz4_is_decompressed);
	RUN_TEST(xxhash_has_its_known_values);
	RUN_TEST(each_kind_of_task_has_its_fields_and_its_number);
	RUN_TEST(arguments_and_capabilities);
	return UNITY_END();
}
