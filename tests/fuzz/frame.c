/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * frame.c - control frames from any bytes: an accepted frame has the size of its type, and encoding
 * it again gives the same bytes.
 */
#include "fuzz/require.h"
#include "session/frame.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t again[GANTRY_CTRL_MAX];
	struct gn_parsed p;
	size_t len;

	if (gn_frame_parse(data, size, &p) != 0)
		return 0;
	require(p.type > 0 && p.type < GN_FRAME_TYPES);
	require((const uint8_t *)p.payload + p.payload_len == data + size);
	if (!p.answer && p.type != GN_FRAME_END) {
		len = gn_frame_build(again, p.type, p.head.id, p.head.session, NULL, p.payload,
				     p.payload_len);
		require(len == size && memcmp(again, data, size) == 0);
		return 0;
	}
	require(p.verdict.status >= 0 && p.verdict.status < GANTRY_S_COUNT);
	require(p.verdict.status == 0 || p.payload_len == 0);
	require(memchr(p.verdict.text, 0, sizeof(p.verdict.text)) != NULL);
	for (const char *c = p.verdict.text; *c; c++)
		require(*c >= ' ' && *c <= '~');
	len = gn_frame_build(again, p.type, p.head.id, p.head.session, &p.verdict, p.payload,
			     p.payload_len);
	require(len == size && memcmp(again, data, sizeof(struct gn_frame) + sizeof(int32_t)) == 0);
	return 0;
}
