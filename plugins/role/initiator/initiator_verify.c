/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * initiator_verify.c - determines the permitted content of each block from the acknowledged writes,
 * and judges what was read.
 */
#include <stdio.h>
#include <string.h>

#include "initiator.h"

#define MAX_LOGGED 8u /* limit of logged findings; all are counted */
#define POISON 0xa5

static const char *const names[VERDICT_COUNT] = {
	[VERDICT_OK] = "ok",
	[VERDICT_UNVERIFIED] = "unverified",
	[VERDICT_WRONG_BLOCK] = "wrong_block",
	[VERDICT_STALE] = "stale",
	[VERDICT_TORN] = "torn",
	[VERDICT_CORRUPT] = "corrupt",
	[VERDICT_MISSING] = "missing",
	[VERDICT_FOREIGN] = "foreign",
};

const char *verify_name(enum verdict verdict)
{
	return names[verdict];
}

static uint32_t unit_bytes(const struct lane *lane)
{
	return lane->in->block < STAMP_UNIT ? (uint32_t)lane->in->block : STAMP_UNIT;
}

void verify_write(struct lane *lane, struct block_state *state, void *buf, uint64_t offset)
{
	uint32_t unit = unit_bytes(lane);

	state->issued++;
	for (uint64_t at = 0; at < lane->in->block; at += unit)
		stamp_write(lane->in->host, (uint8_t *)buf + at, unit, offset + at, state->issued,
			    lane->in->session);
}

void verify_write_done(struct block_state *state, unsigned status)
{
	if (status == GANTRY_S_OK)
		state->acked = state->issued;
	else if (!gantry_status_buffer_released(status))
		state->frozen = 1;
}

void verify_poison(struct lane *lane, void *buf)
{
	memset(buf, POISON, lane->in->block);
}

/* Returns one verdict for all units of a block. n: number of units in each state. */
static enum verdict judge(const uint64_t *n)
{
	uint64_t lost = n[STAMP_OLD] + n[STAMP_NONE] + n[STAMP_FOREIGN];

	if (n[STAMP_WRONG])
		return VERDICT_WRONG_BLOCK;
	if (n[STAMP_CORRUPT])
		return VERDICT_CORRUPT;
	if (n[STAMP_TORN] || (lost && n[STAMP_GOOD]))
		return VERDICT_TORN;
	if (n[STAMP_OLD])
		return VERDICT_STALE;
	if (n[STAMP_FOREIGN])
		return VERDICT_FOREIGN;
	return n[STAMP_NONE] ? VERDICT_MISSING : VERDICT_OK;
}

static void log_finding(struct lane *lane, const struct stamp_want *want, enum stamp_state state,
			const struct stamp *found, enum verdict verdict)
{
	struct initiator *in = lane->in;
	char text[160] = "no stamp";
	uint32_t n = atomic_fetch_add(&in->n_findings, 1);

	if (n >= MAX_LOGGED)
		return;
	if (state == STAMP_CORRUPT || state == STAMP_TORN)
		snprintf(text, sizeof(text), "content that does not match its checksum");
	else if (state != STAMP_NONE)
		snprintf(text, sizeof(text), "offset %llu, write %llu, session %016llx",
			 (unsigned long long)found->offset, (unsigned long long)found->generation,
			 (unsigned long long)found->session);
	gantry_log_error(
		in->host,
		"%s data at offset %llu: expected a write from number %llu (last acknowledged) to %llu (last issued) of session %016llx, found %s%s",
		names[verdict], (unsigned long long)want->offset, (unsigned long long)want->acked,
		(unsigned long long)want->issued, (unsigned long long)want->session, text,
		n + 1 == MAX_LOGGED ? " (further findings are counted only)" : "");
}

enum verdict verify_read_done(struct lane *lane, const struct block_state *state, const void *buf,
			      uint64_t offset)
{
	struct stamp_want want = {
		.session = lane->in->session, .acked = state->acked, .issued = state->issued};
	struct stamp_want bad_want = want;
	struct stamp found, bad = {0};
	enum stamp_state bad_state = STAMP_GOOD;
	uint64_t n[STAMP_NONE + 1] = {0};
	uint32_t unit = unit_bytes(lane);
	enum verdict verdict = VERDICT_UNVERIFIED;

	for (uint64_t at = 0; state->acked && at < lane->in->block; at += unit) {
		enum stamp_state is;

		want.offset = offset + at;
		is = stamp_read(lane->in->host, (const uint8_t *)buf + at, unit, &want, &found);
		n[is]++;
		if (is != STAMP_GOOD && bad_state == STAMP_GOOD) {
			bad_state = is;
			bad = found;
			bad_want = want;
		}
	}
	if (state->acked) {
		verdict = judge(n);
		gantry_count(&lane->stats->n_checked, 1);
	}
	gantry_count(&lane->stats->verdict[verdict], 1);
	if (verdict != VERDICT_OK && verdict != VERDICT_UNVERIFIED) {
		atomic_store(&lane->in->failed, true);
		log_finding(lane, &bad_want, bad_state, &bad, verdict);
	}
	return verdict;
}
