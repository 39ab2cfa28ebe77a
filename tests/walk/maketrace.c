/* SPDX-License-Identifier: BSD-3-Clause */
/* maketrace FILE [OPCODE FLAGS OFFSET LENGTH]... - write a trace of these IOs, for replay */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gantry/trace.h>

int main(int argc, char **argv)
{
	struct gantry_trace_head head = {
		.version = GANTRY_TRACE_VERSION,
		.head_bytes = sizeof(head),
		.record_bytes = sizeof(struct gantry_trace_record),
		.n_lanes = 1,
		.instance = "by hand",
	};
	FILE *file = argc > 1 && argc % 4 == 2 ? fopen(argv[1], "w") : NULL;

	if (!file) {
		fputs("usage: maketrace FILE [OPCODE FLAGS OFFSET LENGTH]...\n", stderr);
		return 2;
	}
	memcpy(head.magic, GANTRY_TRACE_MAGIC, sizeof(head.magic));
	fwrite(&head, sizeof(head), 1, file);
	for (int i = 2; i < argc; i += 4) {
		struct gantry_trace_record record = {.time_ns = (uint64_t)i * 1000,
						     .direction = GANTRY_TRACE_SUBMIT};
		struct gantry_io io = {
			.opcode = (uint8_t)atoi(argv[i]),
			.flags = (uint8_t)atoi(argv[i + 1]),
			.offset = strtoull(argv[i + 2], NULL, 10),
			.length = (uint32_t)strtoul(argv[i + 3], NULL, 10),
		};

		memcpy(record.wire, &io, sizeof(record.wire));
		fwrite(&record, sizeof(record), 1, file);
	}
	return fclose(file) ? 1 : 0;
}
