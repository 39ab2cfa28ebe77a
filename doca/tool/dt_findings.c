/* SPDX-License-Identifier: BSD-3-Clause */
/* dt_findings.c - reads the records of a run (dc_report.c), and keeps each finding once */
#include <errno.h>
#include <fnmatch.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "tool/dt.h"

static const struct {
	const char *name, *severity, *section, *text, *remedy;
} rules[] = {
#define DC_ERROR "error"
#define DC_WARNING "warning"
#define DC_RULE(id, name, severity, section, text, remedy) {name, severity, section, text, remedy},
#include "check/rules.def"
};

#define N_RULES (sizeof(rules) / sizeof(rules[0]))
enum { N_FIELDS = 10 };

void dt_findings_init(struct dt_findings *f)
{
	*f = (struct dt_findings){0};
	f->last = &f->first;
}

bool dt_find_rule(const char *name, struct dt_finding *finding)
{
	size_t i;

	for (i = 0; i < N_RULES; i++) {
		if (strcmp(rules[i].name, name))
			continue;
		finding->rule = rules[i].name;
		finding->severity = rules[i].severity;
		finding->section = rules[i].section;
		finding->text = rules[i].text;
		finding->remedy = rules[i].remedy;
		return true;
	}
	return false;
}

void dt_print_rules(FILE *out, bool json)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < N_RULES; i++) {
		if (!json)
			fprintf(out, "%-30s %-8s %s: %s\n", rules[i].name, rules[i].severity,
				rules[i].section, rules[i].text);
		else
			json_array_append_new(
				list, json_pack("{s:s, s:s, s:s, s:s, s:s}", "rule", rules[i].name,
						"severity", rules[i].severity, "section",
						rules[i].section, "text", rules[i].text, "remedy",
						rules[i].remedy));
	}
	if (json) {
		json_dumpf(list, out, JSON_INDENT(2));
		fputc('\n', out);
	}
	json_decref(list);
}

static const char *name_of(const struct dt_options *o, int pid)
{
	size_t i;
	const char *slash;

	for (i = 0; i < o->n_programs; i++) {
		if (o->programs[i].pid != pid)
			continue;
		slash = strrchr(o->programs[i].argv[0], '/');
		return slash ? slash + 1 : o->programs[i].argv[0];
	}
	return "child process";
}

static bool is_same(const struct dt_finding *a, const struct dt_finding *b)
{
	return a->rule == b->rule && !strcmp(a->function, b->function) &&
	       !strcmp(a->program, b->program) && !strcmp(a->type, b->type) &&
	       a->n_frames == b->n_frames &&
	       (!a->n_frames || !strcmp(a->frames[0], b->frames[0])) &&
	       (a->n_frames || !strcmp(a->made_at ? a->made_at : "", b->made_at ? b->made_at : ""));
}

static void free_finding(struct dt_finding *finding)
{
	free(finding->function);
	free(finding->type);
	free(finding->address);
	free(finding->details);
	free(finding->program);
	free(finding->made_at);
	if (finding->n_frames)
		free(finding->frames[0]); /* all frames are parts of it */
	free(finding);
}

void dt_findings_reset_counts(struct dt_findings *f)
{
	while (f->n_trouble > 0)
		free(f->trouble[--f->n_trouble].kind);
	memset(f->trouble, 0, sizeof(f->trouble));
	f->n_calls = 0;
}

void dt_findings_fini(struct dt_findings *f)
{
	struct dt_finding *next;

	dt_findings_reset_counts(f);
	for (; f->first; f->first = next) {
		next = f->first->next;
		free_finding(f->first);
	}
	free(f->refused);
}

static void add(struct dt_findings *f, struct dt_finding *new)
{
	struct dt_finding *old;

	for (old = f->first; old; old = old->next)
		if (is_same(old, new)) {
			old->count++;
			free_finding(new);
			return;
		}
	*f->last = new;
	f->last = &new->next;
	f->n++;
}

static char *keep(const char *text)
{
	char *copy = strdup(text);

	if (!copy)
		exit(dt_fail(DT_USAGE, "out of memory"));
	return copy;
}

/* Add a line "finding PID RULE FUNCTION TYPE ADDRESS TEXT FRAMES MADE-AT". */
static void add_line(struct dt_findings *f, char *fields[N_FIELDS], const struct dt_options *o)
{
	struct dt_finding *new = calloc(1, sizeof(*new));
	char *frame, *rest;

	if (!new)
		exit(dt_fail(DT_USAGE, "out of memory"));
	if (!dt_find_rule(fields[2], new)) {
		free(new);
		return;
	}
	new->count = 1;
	new->program = keep(name_of(o, atoi(fields[1])));
	new->function = keep(fields[3]);
	new->type = keep(fields[4]);
	new->address = keep(fields[5]);
	new->details = keep(strcmp(fields[6], "-") ? fields[6] : "");
	if (strcmp(fields[7], "-"))
		for (frame = strtok_r(keep(fields[7]), " ", &rest); frame && new->n_frames < 32;
		     frame = strtok_r(NULL, " ", &rest))
			new->frames[new->n_frames++] = frame;
	new->made_at = strcmp(fields[8], "-") ? keep(fields[8]) : NULL;
	add(f, new);
}

static void add_trouble(struct dt_findings *f, const char *kind, uint64_t n)
{
	struct dt_trouble *t = f->trouble;

	while (t < f->trouble + f->n_trouble && strcmp(t->kind, kind) != 0)
		t++;
	if (t == f->trouble + sizeof(f->trouble) / sizeof(f->trouble[0]))
		return;
	if (t == f->trouble + f->n_trouble) {
		t->kind = keep(kind);
		f->n_trouble++;
	}
	t->n += n;
}

int dt_findings_read(struct dt_findings *f, const char *records, const struct dt_options *o)
{
	FILE *in = fopen(records, "re");
	char line[8192], *fields[N_FIELDS], *rest;
	size_t n;

	if (!in && errno == ENOENT) /* no process has made a record */
		return 0;
	if (!in)
		return -errno;
	while (fgets(line, sizeof(line), in)) {
		line[strcspn(line, "\n")] = '\0';
		rest = line;
		for (n = 0; n < N_FIELDS && rest; n++)
			fields[n] = strsep(&rest, "\t");
		if (n >= 9 && !strcmp(fields[0], "finding"))
			add_line(f, fields, o);
		else if (n == 3 && !strcmp(fields[0], "calls"))
			f->n_calls += strtoull(fields[2], NULL, 10);
		else if (n == 4 && !strcmp(fields[0], "trouble"))
			add_trouble(f, fields[2], strtoull(fields[3], NULL, 10));
		else if (n == 3 && !strcmp(fields[0], "refused"))
			f->refused = keep(fields[2]);
	}
	fclose(in);
	return 0;
}

/* -- suppressions: lines of RULE [FUNCTION [FILE]], each a pattern of fnmatch(3) -- */

static bool matches(const struct dt_finding *finding, char *const words[3])
{
	struct dt_place place = {0};
	size_t i;

	if (fnmatch(words[0], finding->rule, 0) ||
	    (words[1] && fnmatch(words[1], finding->function, 0)))
		return false;
	if (!words[2])
		return true;
	for (i = 0; i < finding->n_frames; i++) {
		dt_locate(finding->frames[i], &place);
		if (place.file && !fnmatch(words[2], place.file, 0))
			return true;
		if (place.module && !fnmatch(words[2], place.module, 0))
			return true;
	}
	return false;
}

static void suppress(struct dt_findings *f, char *const words[3])
{
	struct dt_finding **at = &f->first, *gone;

	while (*at) {
		if (!matches(*at, words)) {
			at = &(*at)->next;
			continue;
		}
		gone = *at;
		*at = gone->next;
		free_finding(gone);
		f->n--;
		f->n_suppressed++;
	}
	f->last = at;
}

int dt_findings_suppress(struct dt_findings *f, const char *path)
{
	FILE *in;
	char line[1024], *words[3], *rest;
	struct dt_finding any;
	unsigned number = 0;

	if (!path)
		return 0;
	in = fopen(path, "re");
	if (!in)
		return dt_fail(DT_USAGE, "%s: cannot read the suppressions: %s", path,
			       strerror(errno));
	while (fgets(line, sizeof(line), in)) {
		number++;
		line[strcspn(line, "#\n")] = '\0';
		words[0] = strtok_r(line, " \t", &rest);
		words[1] = words[0] ? strtok_r(NULL, " \t", &rest) : NULL;
		words[2] = words[1] ? strtok_r(NULL, " \t", &rest) : NULL;
		if (!words[0])
			continue;
		if (!strpbrk(words[0], "*?[") && !dt_find_rule(words[0], &any)) {
			fclose(in);
			return dt_fail(
				DT_USAGE,
				"%s:%u: no such rule (rule=%s): list them with gantry doca check --rules",
				path, number, words[0]);
		}
		suppress(f, words);
	}
	fclose(in);
	return 0;
}
