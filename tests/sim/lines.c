/* SPDX-License-Identifier: BSD-3-Clause */
/* lines.c - a hash table of lines of memory and their users */
#include "lines.h"

#include <string.h>

#include "sim.h"

#define LINE 64u
#define LINE_BITS 18
#define LINES (1u << LINE_BITS)
#define MOST (LINES / 2) /* used entries; more would make the search slow */
#define SEVERAL UINT32_MAX

static struct line {
	uintptr_t number; /* 0: not used */
	uint32_t user;    /* the only thread that has used the line; SEVERAL */
} lines[LINES];
static uint32_t n_lines;

void sim_lines_clear(void)
{
	if (n_lines != 0)
		memset(lines, 0, sizeof(lines));
	n_lines = 0;
}

/*
 * Returns the entry of a line. No entry replaces another one: which lines have the same hash
 * depends on where the host maps this program, but the schedule must not.
 */
static struct line *find(uintptr_t number)
{
	size_t i = (uint64_t)number * 0x9e3779b97f4a7c15 >> (64 - LINE_BITS);

	while (lines[i].number != 0 && lines[i].number != number)
		i = (i + 1) % LINES;
	return &lines[i];
}

bool sim_line_use(const void *at, uint32_t thread)
{
	struct line *line = find((uintptr_t)at / LINE);

	if (line->number == 0) {
		if (n_lines++ == MOST)
			sim_fail("threads use more than %u lines of memory", MOST);
		*line = (struct line){(uintptr_t)at / LINE, thread};
	}
	if (line->user != thread)
		line->user = SEVERAL;
	return line->user == SEVERAL;
}
