/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "comch_messages.h"

static uint32_t first; /* index of the form of message 0 */

void message_begin(void)
{
	first = sim_draw(8);
}

/*
 * Messages have 8 forms, in turn. By form, a message takes this number of slots: 1 (full), 2, 1, 3,
 * 1 (not full), 1 (with data), 1, 2.
 */
static uint32_t length_of(uint32_t i)
{
	static const uint32_t lengths[] = {0, 64, 0, 140, 0, 24, 0, 104};

	return lengths[(first + i) % 8];
}

static uint32_t imm_len_of(uint32_t i)
{
	return length_of(i) != 0 ? 8 : (first + i) % 8 == 4 ? 12 : GANTRY_IMM_MAX;
}

int message_send(struct comch_producer *p, uint32_t i, uint32_t word, uint32_t flags)
{
	uint32_t words[MESSAGE_DATA / 4];
	struct gantry_send s = {.imm = words, .imm_len = imm_len_of(i), .length = length_of(i)};

	for (uint32_t k = 0; k < MESSAGE_DATA / 4; k++)
		words[k] = word;
	s.data = s.length != 0 ? words : NULL;
	return comch_send_data(p, &s, flags);
}

bool message_is(const void *bytes, uint32_t n, uint32_t word)
{
	for (uint32_t at = 0; at < n; at += 4)
		if (memcmp((const uint8_t *)bytes + at, &word, 4) != 0)
			return false;
	return true;
}

void message_check(const struct gantry_msg *m, const uint8_t *buf, uint32_t i, uint32_t word)
{
	PART_CHECK(m->status == 0, "a message is rejected");
	PART_CHECK(m->imm_len == imm_len_of(i) && m->length == length_of(i),
		   "a message is lost or delivered twice");
	PART_CHECK(message_is(m->imm, m->imm_len, word), "a message is wrong");
	PART_CHECK(message_is(buf, m->length, word), "data is wrong");
}
