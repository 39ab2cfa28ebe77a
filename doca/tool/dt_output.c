/* SPDX-License-Identifier: BSD-3-Clause */
/* dt_output.c - prints findings: text, JSON, JUnit XML and SARIF */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "tool/dt.h"

/* The first frame with a source line, or the first frame. */
static void place_of(const struct dt_finding *f, struct dt_place *place)
{
	size_t i;

	*place = (struct dt_place){0};
	for (i = 0; i < f->n_frames; i++) {
		dt_locate(f->frames[i], place);
		if (place->file)
			return;
	}
	if (f->made_at && !f->n_frames)
		dt_locate(f->made_at, place);
}

/* object: problem (key=value): remedy */
static void sentence(const struct dt_finding *f, char *out, size_t size)
{
	snprintf(out, size, "%s: %s: %s%s%s%s: %s", f->program, f->function, f->text,
		 *f->details ? " (" : "", f->details, *f->details ? ")" : "", f->remedy);
}

static void print_place(FILE *out, const char *how, const char *frame)
{
	struct dt_place place;

	dt_locate(frame, &place);
	if (place.file)
		fprintf(out, "    %s %s (%s:%d)\n", how, place.function ? place.function : "?",
			place.file, place.line);
	else
		fprintf(out, "    %s %s (%s)\n", how, place.function ? place.function : "?", frame);
}

/* Print how to repeat the run. */
static void print_command(FILE *out, const struct dt_options *o)
{
	size_t i, j;

	fputs("gantry doca: repeat: gantry doca check", out);
	if (o->has_seed)
		fprintf(out, " --seed %llu", (unsigned long long)o->first_seed);
	if (o->trouble)
		fprintf(out, " --trouble %s", o->trouble);
	if (o->card)
		fprintf(out, " --card %s", o->card);
	if (o->protect)
		fputs(" --protect", out);
	for (i = 0; i < o->n_programs; i++) {
		fputs(" --", out);
		for (j = 0; o->programs[i].argv[j]; j++)
			fprintf(out, " %s", o->programs[i].argv[j]);
	}
	fputc('\n', out);
}

void dt_print_text(FILE *out, const struct dt_findings *f, const struct dt_options *o)
{
	const struct dt_finding *x;
	char text[2048];
	bool all_well = true;
	size_t i;

	for (x = f->first; x; x = x->next) {
		sentence(x, text, sizeof(text));
		fprintf(out, "%s: %s [%s]\n", x->severity, text, x->rule);
		for (i = 0; i < x->n_frames; i++)
			print_place(out, i ? "by" : "at", x->frames[i]);
		if (x->made_at)
			print_place(out, "object created at", x->made_at);
		fprintf(out, "    guide: %s", x->section);
		fprintf(out, x->count > 1 ? "; seen %u times\n" : "\n", x->count);
	}
	for (i = 0; i < o->n_programs; i++) {
		all_well &= dt_ended_well(&o->programs[i]);
		if (!dt_ended_well(&o->programs[i]))
			fprintf(out, "gantry doca: %s: %s\n", o->programs[i].argv[0],
				dt_ending(&o->programs[i]));
	}
	fprintf(out, "gantry doca: findings=%zu, suppressed=%zu, calls=%llu", f->n, f->n_suppressed,
		(unsigned long long)f->n_calls);
	if (o->has_seed)
		fprintf(out, ", seed=%llu", (unsigned long long)o->first_seed);
	for (i = 0; i < f->n_trouble; i++)
		fprintf(out, ", %s=%llu", f->trouble[i].kind, (unsigned long long)f->trouble[i].n);
	fputc('\n', out);
	if (o->has_seed && (f->n || !all_well))
		print_command(out, o);
}

/* -- JSON -- */

static json_t *text_json(const char *text)
{
	json_t *s = text ? json_string(text) : json_null();

	return s ? s : json_string("?"); /* not UTF-8 */
}

static json_t *frame_json(const char *frame)
{
	struct dt_place place;

	dt_locate(frame, &place);
	return json_pack("{s:o, s:o, s:i, s:o}", "function", text_json(place.function), "file",
			 text_json(place.file), "line", place.line, "frame", text_json(frame));
}

static json_t *finding_json(const struct dt_finding *f)
{
	json_t *frames = json_array();
	size_t i;

	for (i = 0; i < f->n_frames; i++)
		json_array_append_new(frames, frame_json(f->frames[i]));
	return json_pack("{s:s, s:s, s:o, s:s, s:s, s:s, s:s, s:s, s:o, s:s, s:o, s:o, s:I}",
			 "rule", f->rule, "severity", f->severity, "program", text_json(f->program),
			 "function", f->function, "type", f->type, "address", f->address, "problem",
			 f->text, "remedy", f->remedy, "details", text_json(f->details), "section",
			 f->section, "frames", frames, "created_at",
			 f->made_at ? frame_json(f->made_at) : json_null(), "count",
			 (json_int_t)f->count);
}

static json_t *trouble_json(const struct dt_findings *f)
{
	json_t *object = json_object();
	size_t i;

	for (i = 0; i < f->n_trouble; i++)
		json_object_set_new(object, f->trouble[i].kind,
				    json_integer((json_int_t)f->trouble[i].n));
	return object;
}

int dt_print_json(FILE *out, const struct dt_findings *f, const struct dt_options *o)
{
	json_t *findings = json_array(), *programs = json_array(), *root;
	const struct dt_finding *x;
	size_t i;
	int rc;

	for (x = f->first; x; x = x->next)
		json_array_append_new(findings, finding_json(x));
	for (i = 0; i < o->n_programs; i++)
		json_array_append_new(programs, json_pack("{s:o, s:s, s:b}", "program",
							  text_json(o->programs[i].argv[0]), "end",
							  dt_ending(&o->programs[i]), "ok",
							  dt_ended_well(&o->programs[i])));
	root = json_pack("{s:o, s:o, s:I, s:I}", "findings", findings, "programs", programs,
			 "suppressed", (json_int_t)f->n_suppressed, "calls",
			 (json_int_t)f->n_calls);
	if (root && o->has_seed) {
		json_object_set_new(root, "seed", json_integer((json_int_t)o->first_seed));
		json_object_set_new(root, "trouble", trouble_json(f));
	}
	rc = root ? json_dumpf(root, out, JSON_INDENT(2)) : -1;
	fputc('\n', out);
	json_decref(root);
	return rc ? dt_fail(DT_USAGE, "cannot write the findings as JSON") : 0;
}

/* -- JUnit -- */

static FILE *create(const char *path)
{
	FILE *out = fopen(path, "we");

	if (!out)
		dt_fail(DT_USAGE, "%s: cannot write the file: %s", path, strerror(errno));
	return out;
}

static int finish(FILE *out, const char *path)
{
	const bool failed = ferror(out);

	return fclose(out) || failed
		       ? dt_fail(DT_USAGE, "%s: cannot write the file: %s", path, strerror(errno))
		       : 0;
}

void dt_print_xml(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '<')
			fputs("&lt;", out);
		else if (*text == '>')
			fputs("&gt;", out);
		else if (*text == '&')
			fputs("&amp;", out);
		else if (*text == '"')
			fputs("&quot;", out);
		else
			fputc((unsigned char)*text < ' ' ? '?' : *text, out);
	}
}

/* Write a test case for each program that ended with an error. */
static void print_endings(FILE *out, const struct dt_options *o)
{
	size_t i;

	for (i = 0; i < o->n_programs; i++) {
		if (dt_ended_well(&o->programs[i]))
			continue;
		fputs("  <testcase classname=\"", out);
		dt_print_xml(out, o->programs[i].argv[0]);
		fputs("\" name=\"end\"><failure type=\"error\" message=\"", out);
		dt_print_xml(out, dt_ending(&o->programs[i]));
		fputs("\"/></testcase>\n", out);
	}
}

int dt_write_junit(const char *path, const struct dt_findings *f, const struct dt_options *o)
{
	FILE *out = create(path);
	const struct dt_finding *x;
	struct dt_place place;
	size_t n_failed = f->n, i;
	char text[2048];

	if (!out)
		return DT_USAGE;
	for (i = 0; i < o->n_programs; i++)
		n_failed += !dt_ended_well(&o->programs[i]);
	fprintf(out,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"gantry doca check\" tests=\"%zu\" failures=\"%zu\">\n",
		n_failed ? n_failed : 1, n_failed);
	if (!n_failed)
		fputs("  <testcase classname=\"doca\" name=\"rules\"/>\n", out);
	for (x = f->first; x; x = x->next) {
		place_of(x, &place);
		sentence(x, text, sizeof(text));
		fputs("  <testcase classname=\"", out);
		dt_print_xml(out, x->program);
		fprintf(out, "\" name=\"%s\"><failure type=\"%s\" message=\"", x->rule,
			x->severity);
		dt_print_xml(out, text);
		fputs("\">", out);
		if (place.file) {
			dt_print_xml(out, place.file);
			fprintf(out, ":%d", place.line);
		}
		fputs("</failure></testcase>\n", out);
	}
	print_endings(out, o);
	fputs("</testsuite>\n", out);
	return finish(out, path);
}

/* -- SARIF -- */

static json_t *sarif_result(const struct dt_finding *f)
{
	struct dt_place place;
	char text[2048];
	json_t *result, *location;

	place_of(f, &place);
	sentence(f, text, sizeof(text));
	result = json_pack("{s:s, s:s, s:{s:o}}", "ruleId", f->rule, "level", f->severity,
			   "message", "text", text_json(text));
	if (!place.file)
		return result;
	location = json_pack("{s:{s:{s:o}, s:{s:i}}}", "physicalLocation", "artifactLocation",
			     "uri", text_json(place.file), "region", "startLine",
			     place.line > 0 ? place.line : 1);
	json_object_set_new(result, "locations", json_pack("[o]", location));
	return result;
}

static json_t *sarif_rule(const struct dt_finding *f)
{
	return json_pack("{s:s, s:{s:s}, s:{s:s}}", "id", f->rule, "shortDescription", "text",
			 f->text, "help", "text", f->remedy);
}

static bool has_earlier(const struct dt_findings *f, const struct dt_finding *of)
{
	const struct dt_finding *x;

	for (x = f->first; x != of; x = x->next)
		if (x->rule == of->rule)
			return true;
	return false;
}

int dt_write_sarif(const char *path, const struct dt_findings *f)
{
	json_t *results = json_array(), *rules = json_array(), *root;
	const struct dt_finding *x;
	FILE *out = create(path);

	if (!out)
		return DT_USAGE;
	for (x = f->first; x; x = x->next) {
		json_array_append_new(results, sarif_result(x));
		if (!has_earlier(f, x))
			json_array_append_new(rules, sarif_rule(x));
	}
	root = json_pack("{s:s, s:[{s:{s:{s:s, s:s, s:o}}, s:o}]}", "version", "2.1.0", "runs",
			 "tool", "driver", "name", "gantry doca check", "version", GANTRY_VERSION,
			 "rules", rules, "results", results);
	if (!root || json_dumpf(root, out, JSON_INDENT(2)))
		dt_fail(DT_USAGE, "%s: cannot write the findings as SARIF", path);
	fputc('\n', out);
	json_decref(root);
	return finish(out, path);
}
