/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames on the wire: which frames are accepted or rejected, and which request is allowed in which
 * state.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gantry/random.h"
#include "session/frame.h"
#include "unity.h"

static uint8_t buf[GANTRY_CTRL_MAX];
static struct gn_parsed p;

/* Sizes of the payloads of frame.h, as numbers. */
static const struct {
	unsigned type;
	size_t request, answer;
} sizes[] = {
	{GN_FRAME_HELLO, 136, 32},   {GN_FRAME_QUERY, 0, 48}, {GN_FRAME_EXPORT, 8, 0},
	{GN_FRAME_QUEUES, 264, 264}, {GN_FRAME_START, 0, 0},  {GN_FRAME_STOP, 0, 0},
	{GN_FRAME_BYE, 0, 0},        {GN_FRAME_PING, 0, 0},   {GN_FRAME_UNEXPORT, 8, 0},
};
#define N_SIZES (sizeof(sizes) / sizeof(sizes[0]))

static int parse(size_t len)
{
	uint8_t *exact = malloc(len + 1); /* exact size, so that ASan detects reads beyond it */
	int rc;

	memcpy(exact, buf, len);
	rc = gn_frame_parse(exact, len, &p);
	free(exact);
	return rc;
}

static size_t build(unsigned type, const struct gn_verdict *verdict, size_t payload)
{
	uint8_t bytes[GANTRY_CTRL_MAX] = {0};

	return gn_frame_build(buf, type, 77, 0x1122334455667788ull, verdict, bytes, payload);
}

static void requests_have_their_exact_size(void)
{
	for (unsigned i = 0; i < N_SIZES; i++) {
		size_t len = build(sizes[i].type, NULL, sizes[i].request);

		TEST_ASSERT_EQUAL_UINT(24 + sizes[i].request, len);
		TEST_ASSERT_EQUAL_INT(0, parse(len));
		TEST_ASSERT_EQUAL_UINT(sizes[i].type, p.type);
		TEST_ASSERT_EQUAL_INT(0, p.answer);
		TEST_ASSERT_EQUAL_UINT(77, p.head.id);
		TEST_ASSERT_EQUAL_HEX64(0x1122334455667788ull, p.head.session);
		TEST_ASSERT_EQUAL_UINT(sizes[i].request, p.payload_len);
		TEST_ASSERT_EQUAL_INT(-EPROTO,
				      parse(build(sizes[i].type, NULL, sizes[i].request + 1)));
		if (sizes[i].request > 0)
			TEST_ASSERT_EQUAL_INT(
				-EPROTO, parse(build(sizes[i].type, NULL, sizes[i].request - 1)));
		for (size_t cut = 0; cut < len; cut++) {
			build(sizes[i].type, NULL, sizes[i].request);
			TEST_ASSERT_EQUAL_INT(-EPROTO, parse(cut));
		}
	}
}

static void answers_have_a_verdict_and_their_exact_size(void)
{
	const struct gn_verdict ok = {.status = 0},
				no = {.status = GANTRY_S_ACCESS, .text = "not you"};

	for (unsigned i = 0; i < N_SIZES; i++) {
		int legal = sizes[i].type != GN_FRAME_PING;
		size_t len = build(sizes[i].type, &ok, sizes[i].answer);

		TEST_ASSERT_EQUAL_INT(legal ? 0 : -EPROTO, parse(len));
		TEST_ASSERT_EQUAL_INT(-EPROTO,
				      parse(build(sizes[i].type, &ok, sizes[i].answer + 1)));
		TEST_ASSERT_EQUAL_INT(legal ? 0 : -EPROTO, parse(build(sizes[i].type, &no, 0)));
		if (legal) {
			TEST_ASSERT_EQUAL_INT(1, p.answer);
			TEST_ASSERT_EQUAL_INT(GANTRY_S_ACCESS, p.verdict.status);
			TEST_ASSERT_EQUAL_STRING("not you", p.verdict.text);
		}
		if (sizes[i].answer > 0)
			TEST_ASSERT_EQUAL_INT(-EPROTO,
					      parse(build(sizes[i].type, &no, sizes[i].answer)));
		build(sizes[i].type, &no, 0);
		TEST_ASSERT_EQUAL_INT(-EPROTO, parse(24 + sizeof(no) - 1));
	}
}

static void an_end_carries_a_verdict_and_is_never_an_answer(void)
{
	struct gn_verdict why = {.status = GANTRY_S_TIMEOUT, .text = "too slow"};

	TEST_ASSERT_EQUAL_INT(0, parse(build(GN_FRAME_END, &why, 0)));
	TEST_ASSERT_EQUAL_INT(0, p.answer);
	TEST_ASSERT_EQUAL_UINT(GN_FRAME_END, p.type);
	TEST_ASSERT_EQUAL_STRING("too slow", p.verdict.text);
	TEST_ASSERT_EQUAL_INT(-EPROTO, parse(build(GN_FRAME_END, &why, 1)));
	TEST_ASSERT_EQUAL_INT(-EPROTO, parse(build(GN_FRAME_END, NULL, 0)));
	TEST_ASSERT_EQUAL_INT(-EPROTO, parse(build(GN_FRAME_END | GN_FRAME_ANSWER, &why, 0)));
}

static void statuses_outside_the_table_are_refused(void)
{
	struct gn_verdict v = {.status = -1};

	TEST_ASSERT_EQUAL_INT(-EPROTO, parse(build(GN_FRAME_STOP, &v, 0)));
	v.status = GANTRY_S_COUNT;
	TEST_ASSERT_EQUAL_INT(-EPROTO, parse(build(GN_FRAME_STOP, &v, 0)));
	v.status = INT32_MIN;
	TEST_ASSERT_EQUAL_INT(-EPROTO, parse(build(GN_FRAME_END, &v, 0)));
}

static void heads_that_are_wrong_are_refused(void)
{
	struct gn_frame head;
	size_t len = build(GN_FRAME_QUERY, NULL, 0);

#define BAD(field, value) \
	build(GN_FRAME_QUERY, NULL, 0); \
	memcpy(&head, buf, sizeof(head)); \
	head.field = value; \
	memcpy(buf, &head, sizeof(head)); \
	TEST_ASSERT_EQUAL_INT(-EPROTO, parse(len));
	BAD(magic, GN_FRAME_MAGIC + 1)
	BAD(magic, 0)
	BAD(version, 0)
	BAD(version, GN_FRAME_VERSION + 1)
	BAD(type, 0)
	BAD(type, GN_FRAME_TYPES)
	BAD(type, 0x7fff)
	BAD(type, GN_FRAME_ANSWER)
	BAD(length, 1)
	BAD(length, UINT32_MAX)
#undef BAD
	TEST_ASSERT_EQUAL_INT(-EPROTO, gn_frame_parse(buf, GANTRY_CTRL_MAX + 1, &p));
	TEST_ASSERT_EQUAL_INT(-EPROTO, gn_frame_parse(buf, 0, &p));
}

static void text_of_a_peer_is_printable(void)
{
	struct gn_verdict v = {.status = GANTRY_S_IO};

	memset(v.text, 'x', sizeof(v.text));
	TEST_ASSERT_EQUAL_INT(0, parse(build(GN_FRAME_BYE, &v, 0)));
	TEST_ASSERT_EQUAL_UINT(GN_FRAME_TEXT - 1, strlen(p.verdict.text));
	for (unsigned c = 1; c < 256; c++) {
		memset(v.text, (int)c, sizeof(v.text));
		TEST_ASSERT_EQUAL_INT(0, parse(build(GN_FRAME_END, &v, 0)));
		TEST_ASSERT_TRUE(strlen(p.verdict.text) > 0 &&
				 strlen(p.verdict.text) < GN_FRAME_TEXT);
		for (const char *t = p.verdict.text; *t; t++)
			TEST_ASSERT_TRUE(*t >= ' ' && *t <= '~');
	}
}

/*
 * A second implementation of the table of frame.h: returns the state after a request, or -EPROTO.
 */
static int expected(enum gn_state state, unsigned type)
{
	switch (type) {
	case GN_FRAME_HELLO:
		return state == GN_NEW ? GN_GREETED : -EPROTO;
	case GN_FRAME_QUERY:
		return state == GN_GREETED ? GN_KNOWN : -EPROTO;
	case GN_FRAME_EXPORT:
	case GN_FRAME_UNEXPORT:
		return state == GN_KNOWN || state == GN_RUNNING ? (int)state : -EPROTO;
	case GN_FRAME_QUEUES:
		return state == GN_KNOWN ? GN_QUEUED : -EPROTO;
	case GN_FRAME_START:
		return state == GN_QUEUED ? GN_RUNNING : -EPROTO;
	case GN_FRAME_STOP:
		return state == GN_RUNNING ? GN_STOPPED : -EPROTO;
	case GN_FRAME_BYE:
		return state == GN_GREETED || state == GN_KNOWN || state == GN_QUEUED ||
				       state == GN_STOPPED
			       ? GN_ENDED
			       : -EPROTO;
	case GN_FRAME_PING:
		return state == GN_NEW ? -EPROTO : (int)state;
	default:
		return -EPROTO;
	}
}

static void every_state_and_type(void)
{
	for (unsigned state = 0; state < GN_STATES; state++)
		for (unsigned type = 0; type < GN_FRAME_TYPES + 3; type++)
			TEST_ASSERT_EQUAL_INT(expected((enum gn_state)state, type),
					      gn_state_next((enum gn_state)state, type));
	TEST_ASSERT_EQUAL_INT(-EPROTO, gn_state_next(GN_STATES, GN_FRAME_HELLO));
	TEST_ASSERT_EQUAL_INT(-EPROTO, gn_state_next(GN_NEW, UINT32_MAX));
}

static void names(void)
{
	TEST_ASSERT_EQUAL_STRING("hello", gn_frame_name(GN_FRAME_HELLO));
	TEST_ASSERT_EQUAL_STRING("end", gn_frame_name(GN_FRAME_END));
	TEST_ASSERT_EQUAL_STRING("unknown frame", gn_frame_name(0));
	TEST_ASSERT_EQUAL_STRING("unknown frame", gn_frame_name(GN_FRAME_TYPES));
	TEST_ASSERT_EQUAL_STRING("ended", gn_state_name(GN_ENDED));
	TEST_ASSERT_EQUAL_STRING("?", gn_state_name(GN_STATES));
}

/*
 * A frame with one flipped bit is rejected, or it is a valid frame with another type, id, session
 * or payload.
 */
static void frame_with_a_flipped_bit_is_rejected_or_remains_valid(void)
{
	struct gantry_random r;

	gantry_random_seed(&r, 11);
	for (int i = 0; i < 20000; i++) {
		unsigned n = (unsigned)gantry_random_below(&r, N_SIZES);
		size_t len = build(sizes[n].type, NULL, sizes[n].request);
		size_t bit = gantry_random_below(&r, len * 8);

		buf[bit / 8] ^= (uint8_t)(1u << (bit % 8));
		if (parse(len) == 0) {
			/* the bit is in the type, the id, the session or the payload */
			TEST_ASSERT_TRUE(bit / 8 == 6 || bit / 8 == 7 || bit / 8 >= 12);
			TEST_ASSERT_TRUE(p.payload_len <= len - sizeof(struct gn_frame));
			TEST_ASSERT_TRUE(p.type > 0 && p.type < GN_FRAME_TYPES);
		}
	}
}

static void limits_are_packed_and_rounded_up(void)
{
	for (unsigned bit = 0; bit < 64; bit++) {
		for (uint64_t more = 0; more < 3; more++) {
			const uint64_t bytes = (1ull << bit) + more * ((1ull << bit) / 5 + more);
			const uint64_t limit = gn_limit_unpack(gn_limit_pack(bytes));

			TEST_ASSERT_TRUE(limit >= bytes && limit - bytes <= bytes / 500);
		}
	}
	TEST_ASSERT_EQUAL_UINT64(1ull << 32, gn_limit_unpack(gn_limit_pack(1ull << 32)));
	TEST_ASSERT_EQUAL_UINT64(100ull << 30, gn_limit_unpack(gn_limit_pack(100ull << 30)));
	TEST_ASSERT_EQUAL_UINT64(UINT64_MAX, gn_limit_unpack(0));
	TEST_ASSERT_EQUAL_UINT64(UINT64_MAX, gn_limit_unpack(UINT16_MAX));
	TEST_ASSERT_EQUAL_UINT64(UINT64_MAX, gn_limit_unpack(gn_limit_pack(UINT64_MAX)));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(requests_have_their_exact_size);
	RUN_TEST(answers_have_a_verdict_and_their_exact_size);
	RUN_TEST(an_end_carries_a_verdict_and_is_never_an_answer);
	RUN_TEST(statuses_outside_the_table_are_refused);
	RUN_TEST(heads_that_are_wrong_are_refused);
	RUN_TEST(text_of_a_peer_is_printable);
	RUN_TEST(every_state_and_type);
	RUN_TEST(names);
	RUN_TEST(limits_are_packed_and_rounded_up);
	RUN_TEST(frame_with_a_flipped_bit_is_rejected_or_remains_valid);
	return UNITY_END();
}
