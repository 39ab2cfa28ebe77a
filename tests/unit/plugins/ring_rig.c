/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "ring_rig.h"
#include "unity.h"

struct gantry_region rig_region = {.fd = -1};
uint8_t rig_memory[RIG_DATA];
static uint8_t bufs[RIG_POSTS][RIG_DATA];
static uint32_t most_imm, n_posted, n_sent, n_taken, n_regions, n_told;

/* Kind and length of message n vary with n. */
static uint32_t kind_of(uint32_t n)
{
	return n * 2654435761u >> 30;
}

static uint32_t length_of(uint32_t n)
{
	return kind_of(n) < 2 ? 0 : 1 + n * 40503u % 700;
}

static uint32_t imm_len_of(uint32_t n)
{
	return kind_of(n) == 0 ? most_imm : 4 + n % 50;
}

static void post(const struct gantry_transport_ops *ops, void *consumer)
{
	struct gantry_recv recv = {
		.buf = bufs[n_posted % RIG_POSTS], .length = RIG_DATA, .cookie = n_posted};

	TEST_ASSERT_TRUE(n_posted - n_taken <= RIG_POSTS);
	if (ops->data->post_recv(consumer, &recv, 1) == 0)
		n_posted++;
}

static void send_next(const struct gantry_transport_ops *ops, void *producer)
{
	uint32_t n = n_sent, imm[GANTRY_IMM_MAX / 4] = {n};
	struct gantry_send s = {
		.imm = imm, .imm_len = imm_len_of(n), .length = length_of(n), .cookie = n_regions};
	int rc;

	if (kind_of(n) == 2)
		s.data = rig_memory + n % 100;
	if (kind_of(n) == 3) {
		s.region = &rig_region;
		s.region_offset = n % 100;
	}
	rc = ops->data->send(producer, &s, n % 3 ? GANTRY_SEND_MORE : 0);
	if (rc == -EAGAIN)
		return;
	TEST_ASSERT_EQUAL_INT(0, rc);
	TEST_ASSERT_TRUE_MESSAGE(n_sent < n_posted, "sent without credit");
	n_sent++;
	n_regions += kind_of(n) == 3;
}

static void take_some(const struct gantry_transport_ops *ops, void *consumer)
{
	struct gantry_msg msgs[5];
	int n = ops->poll_recv(consumer, msgs, 5);

	TEST_ASSERT_TRUE(n >= 0);
	for (int i = 0; i < n; i++, n_taken++) {
		uint32_t number;

		memcpy(&number, msgs[i].imm, sizeof(number));
		TEST_ASSERT_EQUAL_UINT(n_taken, number);
		TEST_ASSERT_EQUAL_UINT(imm_len_of(n_taken), msgs[i].imm_len);
		TEST_ASSERT_EQUAL_UINT64(n_taken, msgs[i].cookie);
		TEST_ASSERT_EQUAL_UINT(length_of(n_taken), msgs[i].length);
		if (length_of(n_taken))
			TEST_ASSERT_EQUAL_MEMORY(rig_memory + n_taken % 100,
						 bufs[n_taken % RIG_POSTS], length_of(n_taken));
	}
	TEST_ASSERT_TRUE(n_taken <= n_sent);
}

static void poll_completions(const struct gantry_transport_ops *ops, void *producer)
{
	uint64_t told[3];
	int n = ops->data->poll_send(producer, told, 3);

	for (int i = 0; i < n; i++)
		TEST_ASSERT_EQUAL_UINT64(n_told++, told[i]);
	TEST_ASSERT_TRUE(n_told <= n_regions);
}

void rig_begin(void)
{
	for (uint32_t i = 0; i < RIG_DATA; i++)
		rig_memory[i] = (uint8_t)(i * 7);
	n_posted = n_sent = n_taken = n_regions = n_told = 0;
}

void rig_pass_all(const struct gantry_transport_ops *ops, void *consumer, void *producer,
		  uint32_t imm_max)
{
	uint32_t step = 1;

	most_imm = imm_max;
	for (uint32_t turn = 0; n_taken < RIG_MESSAGES || n_told < n_regions; turn++) {
		TEST_ASSERT_TRUE_MESSAGE(turn < 40 * RIG_MESSAGES, "nothing moves any more");
		step = step * 1103515245 + 12345;
		switch (step >> 29) {
		case 0:
		case 1:
		case 2:
			if (n_posted < RIG_MESSAGES)
				post(ops, consumer);
			break;
		case 3:
		case 4:
		case 5:
			if (n_sent < RIG_MESSAGES)
				send_next(ops, producer);
			break;
		case 6:
			/* for 256 turns the ring becomes empty, and then for 256 turns full */
			if (turn % 512 < 256 || turn % 16 == 0)
				take_some(ops, consumer);
			break;
		default:
			poll_completions(ops, producer);
			break;
		}
	}
}
