/* SPDX-License-Identifier: BSD-3-Clause */
/* lines.c - a hash table of lines of memory and their users */
#include "lines.h"

#include <string.h>

#define LINE 64u
#define LINES (1u << 16)
#define SEVERAL UINT32_MAX

static struct line {
	uintptr_t number;
	uint32_t user; /* the only thread that has used the line; SEVERAL; 0: no thread */
} lines[LINES];

void sim_lines_clear(void)
{
	memset(lines, 0, sizeof(lines));
}

bool sim_line_use(const void *at, uint32_t thread)
{
	uintptr_t number = (uintptr_t)at / LINE;
	struct line *line = &lines[(number ^ number >> 16 ^ number >> 32) % LINES];

	if (line->number != number)
		*line = (struct line){number, 0};
	if (line->user == SEVERAL)
		return true;
	line->user = line->user != 0 && line->user != thread ? SEVERAL : thread;
	return line->user == SEVERAL;
}
