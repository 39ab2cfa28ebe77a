/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dc_report.c - findings: lines of a file that the processes of one run share
 *
 * GANTRY_DOCA_CHECK names the file. Each line is one record of fields separated by tabs, written by
 * one write(2) with O_APPEND:
 *
 *     finding PID RULE FUNCTION TYPE ADDRESS TEXT FRAMES MADE-AT
 *     ready   PID                    a Comch server or RDMA listener runs
 *     calls   PID NUMBER             the number of calls that were judged, when the process exits
 *
 * A frame is MODULE+OFFSET; the reader of the file finds source lines. Without the variable, the
 * layer prints findings to stderr.
 */
#include "check/dc_report.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check/dc.h"

#define DC_RULE(id, name, severity, section, text, remedy) [DC_RULE_##id] = {name, text, remedy},
const struct dc_rule dc_rules[DC_N_RULES] = {
#include "check/rules.def"
};

enum { MAX_FRAMES = 24, MAX_LINE = 4096, N_SEEN = 4096 };

static int file = -1;
static uint64_t seen[N_SEEN];

static void open_file(void)
{
	const char *path = getenv("GANTRY_DOCA_CHECK");

	if (file < 0 && path && *path)
		file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
}

void dc_record(const char *fmt, ...)
{
	char line[MAX_LINE];
	va_list args;
	int n;

	open_file();
	if (file < 0)
		return;
	va_start(args, fmt);
	n = vsnprintf(line, sizeof(line) - 1, fmt, args);
	va_end(args);
	if (n < 0)
		return;
	if (n > MAX_LINE - 2)
		n = MAX_LINE - 2;
	line[n] = '\n';
	(void)!write(file, line, (size_t)n + 1);
}

/* Write a frame as MODULE+OFFSET. Returns the number of characters. */
static int print_frame(char *out, size_t size, const void *pc)
{
	Dl_info info;

	if (!pc || !dladdr(pc, &info) || !info.dli_fname)
		return snprintf(out, size, "?");
	return snprintf(out, size, "%s+%#lx", info.dli_fname,
			(unsigned long)((const char *)pc - (const char *)info.dli_fbase));
}

/* True if the code belongs to this library. */
static bool is_own(const void *pc)
{
	static const void *base;
	Dl_info info;

	if (!base && dladdr((const void *)&dc_record, &info))
		base = info.dli_fbase;
	return dladdr(pc, &info) && info.dli_fbase == base;
}

static void print_frames(char *out, size_t size, const void *site)
{
	void *frames[MAX_FRAMES];
	int n = backtrace(frames, MAX_FRAMES), i, first = 0;
	size_t used = 0;

	for (i = 0; i < n; i++)
		if (frames[i] == site)
			first = i;
	if (site && first == 0) { /* not on this stack */
		print_frame(out, size, site);
		return;
	}
	out[0] = '\0';
	for (i = first; i < n && used + 1 < size; i++) {
		if (is_own(frames[i]))
			continue;
		if (used)
			out[used++] = ' ';
		used += (size_t)print_frame(out + used, size - used, frames[i]);
	}
	if (used >= size) /* drop the frame that does not fit */
		*strrchr(out, ' ') = '\0';
}

static bool is_new(uint64_t key)
{
	unsigned i = (unsigned)(key % N_SEEN), tries;

	for (tries = 0; tries < N_SEEN; tries++, i = (i + 1) % N_SEEN) {
		if (seen[i] == key)
			return false;
		if (!seen[i]) {
			seen[i] = key;
			return true;
		}
	}
	return false;
}

void dc_report(enum dc_rule_id rule, const struct dc_object *object, uint16_t function,
	       const void *site, const char *fmt, ...)
{
	const struct dc_rule *r = &dc_rules[rule];
	const char *name = function < DC_N_FUNCTIONS ? dc_functions[function].name : "exit";
	char text[512], frames[2048], made[512] = "-";
	const void *place = site ? site : object ? object->made_at : NULL;
	va_list args;

	if (!is_new(((uint64_t)(uintptr_t)place * 0x9e3779b97f4a7c15u) ^
		    ((uint64_t)rule << 32 | function) ^ 1))
		return;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (site)
		print_frames(frames, sizeof(frames), site);
	else
		strcpy(frames, "-");
	if (object && object->made_at)
		print_frame(made, sizeof(made), object->made_at);
	open_file();
	if (file < 0)
		fprintf(stderr, "gantry doca check: %s: %s (%s): %s [%s]\n", name, r->text, text,
			r->remedy, r->name);
	dc_record("finding\t%d\t%s\t%s\t%s\t%p\t%s\t%s\t%s", (int)getpid(), r->name, name,
		  object ? dc_types[object->type].name : "-", object ? object->address : NULL,
		  *text ? text : "-", frames, made);
}
