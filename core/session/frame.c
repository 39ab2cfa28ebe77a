/* SPDX-License-Identifier: BSD-3-Clause */
#include "session/frame.h"

#include "base/log.h"

#include <errno.h>
#include <string.h>

static const struct {
	const char *name;
	/* bytes of payload of a request; bytes of payload of an answer, without the verdict */
	size_t request, answer;
} types[GN_FRAME_TYPES] = {
	[GN_FRAME_HELLO] = {"hello", sizeof(struct gn_hello), sizeof(struct gn_hello_answer)},
	[GN_FRAME_QUERY] = {"query", 0, sizeof(struct gantry_volume_info)},
	[GN_FRAME_EXPORT] = {"export", sizeof(struct gantry_token), 0},
	[GN_FRAME_QUEUES] = {"queues", sizeof(struct gn_queues), sizeof(struct gn_queues)},
	[GN_FRAME_START] = {"start", 0, 0},
	[GN_FRAME_STOP] = {"stop", 0, 0},
	[GN_FRAME_BYE] = {"bye", 0, 0},
	[GN_FRAME_PING] = {"ping", 0, 0},
	[GN_FRAME_END] = {"end", sizeof(struct gn_verdict), 0},
	[GN_FRAME_UNEXPORT] = {"unexport", sizeof(struct gn_unexport), 0},
	[GN_FRAME_VOLUME] = {"volume", sizeof(struct gn_volume_change), 0},
};

/* next[state][type]: the next state plus 1; 0: not permitted */
static const unsigned char next[GN_STATES][GN_FRAME_TYPES] = {
	[GN_NEW] = {[GN_FRAME_HELLO] = GN_GREETED + 1},
	[GN_GREETED] = {[GN_FRAME_QUERY] = GN_KNOWN + 1, [GN_FRAME_BYE] = GN_ENDED + 1},
	[GN_KNOWN] = {[GN_FRAME_EXPORT] = GN_KNOWN + 1,
		      [GN_FRAME_UNEXPORT] = GN_KNOWN + 1,
		      [GN_FRAME_QUEUES] = GN_QUEUED + 1,
		      [GN_FRAME_BYE] = GN_ENDED + 1},
	[GN_QUEUED] = {[GN_FRAME_START] = GN_RUNNING + 1, [GN_FRAME_BYE] = GN_ENDED + 1},
	[GN_RUNNING] = {[GN_FRAME_EXPORT] = GN_RUNNING + 1,
			[GN_FRAME_UNEXPORT] = GN_RUNNING + 1,
			[GN_FRAME_STOP] = GN_STOPPED + 1},
	[GN_STOPPED] = {[GN_FRAME_BYE] = GN_ENDED + 1},
};

static const char *const states[GN_STATES] = {"new",     "greeted", "known", "queued",
					      "running", "stopped", "ended"};

static void escape_text(struct gn_verdict *verdict)
{
	char raw[GN_FRAME_TEXT];
	size_t len;

	memcpy(raw, verdict->text, sizeof(raw));
	raw[sizeof(raw) - 1] = '\0';
	len = strlen(raw);
	/*
	 * Keep a text of printable ASCII characters whole. Escape any other text. The escaped text
	 * is longer and can be truncated.
	 */
	for (size_t i = 0; i < len; i++)
		if (raw[i] < ' ' || raw[i] > '~') {
			gn_escape(verdict->text, sizeof(verdict->text), raw, len);
			return;
		}
	memcpy(verdict->text, raw, sizeof(raw));
}

/* Take the verdict at the front of an answer or END. Returns 0 or -EPROTO. */
static int take_verdict(struct gn_parsed *p)
{
	if (p->payload_len < sizeof(p->verdict))
		return -EPROTO;
	memcpy(&p->verdict, p->payload, sizeof(p->verdict));
	if (p->verdict.status < 0 || p->verdict.status >= GANTRY_S_COUNT)
		return -EPROTO;
	escape_text(&p->verdict);
	p->payload = (const char *)p->payload + sizeof(p->verdict);
	p->payload_len -= sizeof(p->verdict);
	return 0;
}

int gn_frame_parse(const void *msg, size_t len, struct gn_parsed *p)
{
	memset(p, 0, sizeof(*p));
	if (len < sizeof(p->head) || len > GANTRY_CTRL_MAX)
		return -EPROTO;
	memcpy(&p->head, msg, sizeof(p->head));
	p->type = p->head.type & ~GN_FRAME_ANSWER;
	p->answer = (p->head.type & GN_FRAME_ANSWER) != 0;
	p->payload = (const char *)msg + sizeof(p->head);
	p->payload_len = len - sizeof(p->head);
	if (p->head.magic != GN_FRAME_MAGIC || p->head.version != GN_FRAME_VERSION ||
	    p->head.length != p->payload_len || p->type >= GN_FRAME_TYPES || !types[p->type].name)
		return -EPROTO;
	if (!p->answer && p->type != GN_FRAME_END)
		return p->payload_len == types[p->type].request ? 0 : -EPROTO;
	if (p->answer &&
	    (p->type == GN_FRAME_PING || p->type == GN_FRAME_END || p->type == GN_FRAME_VOLUME))
		return -EPROTO;
	if (take_verdict(p) != 0)
		return -EPROTO;
	return p->payload_len == (p->verdict.status == 0 ? types[p->type].answer : 0) ? 0 : -EPROTO;
}

size_t gn_frame_build(void *buf, unsigned type, uint32_t id, uint64_t session,
		      const struct gn_verdict *verdict, const void *payload, size_t payload_len)
{
	char *p = buf;
	size_t verdict_len = verdict ? sizeof(*verdict) : 0;
	struct gn_frame head = {
		.magic = GN_FRAME_MAGIC,
		.version = GN_FRAME_VERSION,
		.type = (uint16_t)(type | (verdict && type != GN_FRAME_END ? GN_FRAME_ANSWER : 0)),
		.length = (uint32_t)(verdict_len + payload_len),
		.id = id,
		.session = session,
	};

	memcpy(p, &head, sizeof(head));
	p += sizeof(head);
	if (verdict_len != 0)
		memcpy(p, verdict, verdict_len);
	p += verdict_len;
	if (payload_len != 0)
		memcpy(p, payload, payload_len);
	return sizeof(head) + verdict_len + payload_len;
}

int gn_state_next(enum gn_state state, unsigned type)
{
	if (type == GN_FRAME_PING)
		return state != GN_NEW ? (int)state : -EPROTO;
	if (state >= GN_STATES || type >= GN_FRAME_TYPES || next[state][type] == 0)
		return -EPROTO;
	return next[state][type] - 1;
}

const char *gn_frame_name(unsigned type)
{
	return type < GN_FRAME_TYPES && types[type].name ? types[type].name : "unknown frame";
}

const char *gn_state_name(enum gn_state state)
{
	return state < GN_STATES ? states[state] : "?";
}

#define LIMIT_BITS 10 /* of the mantissa */

uint16_t gn_limit_pack(uint64_t bytes)
{
	unsigned shift = 0;

	for (; bytes >> LIMIT_BITS != 0; shift++)
		bytes = (bytes >> 1) + (bytes & 1);
	return (uint16_t)(shift << LIMIT_BITS | bytes);
}

uint64_t gn_limit_unpack(uint16_t packed)
{
	const unsigned shift = packed >> LIMIT_BITS;
	const uint64_t mantissa = packed & ((1u << LIMIT_BITS) - 1);

	return packed == 0 || shift > 64 - LIMIT_BITS ? UINT64_MAX : mantissa << shift;
}
