/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm_frame.c - the table of all frames, and the check of a received frame. It makes no system
 * calls, so that a fuzzer can call it directly.
 */
#include <string.h>

#include "shm_wire.h"

struct rule {
	uint16_t min, max; /* smallest and largest body, bytes */
	uint8_t fds_min, fds_max;
	uint8_t phases; /* COMCH_P_*: phases in which the frame is permitted */
};

#define EXACT(type) sizeof(struct type), sizeof(struct type)

static const struct rule rules[COMCH_TYPES] = {
	[COMCH_HELLO] = {EXACT(comch_hello), 0, 0, COMCH_P_HELLO},
	[COMCH_BYE] = {0, 0, 0, 0, COMCH_P_HELLO | COMCH_P_OPEN},
	[COMCH_DATA] = {1, GANTRY_CTRL_MAX, 0, 0, COMCH_P_OPEN},
	[COMCH_CONSUMER] = {EXACT(comch_consumer_up), 2, 2, COMCH_P_OPEN},
	[COMCH_CONSUMER_GONE] = {EXACT(comch_id), 0, 0, COMCH_P_OPEN},
	[COMCH_PRODUCER] = {EXACT(comch_producer_up), 1, 1, COMCH_P_OPEN},
	[COMCH_PRODUCER_OK] = {EXACT(comch_producer_ok), 0, 0, COMCH_P_OPEN},
	[COMCH_PRODUCER_GONE] = {EXACT(comch_id), 0, 0, COMCH_P_OPEN},
	[COMCH_REGION] = {EXACT(comch_region_up), 1, 2, COMCH_P_OPEN},
	[COMCH_REGION_OK] = {EXACT(comch_id), 0, 0, COMCH_P_OPEN},
	[COMCH_REVOKE] = {EXACT(comch_id), 0, 0, COMCH_P_OPEN},
	[COMCH_RELEASED] = {EXACT(comch_id), 0, 0, COMCH_P_OPEN},
	[COMCH_REFUSED] = {EXACT(comch_refused), 0, 0, COMCH_P_HELLO | COMCH_P_OPEN},
};

const char *comch_frame_check(const struct comch_frame *frame, size_t len, unsigned int n_fds,
			      unsigned int phase)
{
	const struct rule *rule;

	if (len < COMCH_FRAME_MIN)
		return "frame shorter than its header";
	if (len > sizeof(*frame))
		return "frame longer than the maximum";
	if (frame->head.magic != COMCH_MAGIC)
		return "wrong magic";
	if (frame->head.version != COMCH_VERSION)
		return "wrong version";
	if (frame->head.type == 0 || frame->head.type >= COMCH_TYPES)
		return "unknown type";
	if (frame->head.zero != 0)
		return "reserved field is not zero";
	if (frame->head.length != len - COMCH_FRAME_MIN)
		return "length does not match";
	rule = &rules[frame->head.type];
	if (frame->head.length < rule->min || frame->head.length > rule->max)
		return "wrong length for its type";
	if (n_fds < rule->fds_min || n_fds > rule->fds_max)
		return "wrong number of descriptors";
	if (!(rule->phases & phase))
		return "out of order";
	return NULL;
}

void comch_frame_init(struct comch_frame *frame, enum comch_type type, uint32_t bytes)
{
	memset(frame, 0, COMCH_FRAME_MIN + (bytes < 64 ? bytes : 0));
	frame->head = (struct comch_head){
		.magic = COMCH_MAGIC,
		.version = COMCH_VERSION,
		.type = (uint16_t)type,
		.length = bytes,
	};
}
