/* SPDX-License-Identifier: BSD-3-Clause */
/* main.c - the command line of gantry-doca, which `gantry doca` starts */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/tool.h"

static int check(int argc, char **argv);

static const struct {
	const char *name, *args, *help;
	int (*run)(int argc, char **argv);
} commands[] = {
	{"check", "[OPTION]... -- PROGRAM [ARG]... [-- PROGRAM [ARG]...]...",
	 "run programs and report where they break the rules of DOCA", check},
};

#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

enum option_id {
	JSON = 1,
	JUNIT,
	SARIF,
	SUPPRESS,
	SEEDS,
	SEED,
	CARD,
	PROTECT,
	STALL,
	TIMEOUT,
	RULES,
	HELP
};

static const struct {
	const char *name, *arg;
	enum option_id id;
	const char *help;
} options[] = {
	{"json", NULL, JSON, "print the findings as JSON"},
	{"junit", "FILE", JUNIT, "also write the findings to FILE, in the format of JUnit"},
	{"sarif", "FILE", SARIF, "also write the findings to FILE, in the format SARIF 2.1.0"},
	{"suppress", "FILE", SUPPRESS, "do not report the findings that FILE lists"},
	{"seed", "N", SEED, "cause legal trouble that the seed N decides"},
	{"seeds", "A..B", SEEDS, "run once with each seed from A to B, until a run is not clean"},
	{"card", "FILE", CARD, "report and enforce the limits of a card"},
	{"protect", NULL, PROTECT,
	 "make the memory of sources read-only while their tasks are submitted"},
	{"stall", "MS", STALL, "milliseconds without progress that are reported (default 3000)"},
	{"timeout", "S", TIMEOUT, "seconds after which a run counts as hung (default 60)"},
	{"rules", NULL, RULES, "list the rules"},
	{"help", NULL, HELP, "show this help"},
};

#define N_OPTIONS (sizeof(options) / sizeof(options[0]))

int dt_fail(int code, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fputs("gantry doca: ", stderr);
	vfprintf(stderr, fmt, args);
	fputc('\n', stderr);
	va_end(args);
	return code;
}

static int help(void)
{
	size_t i;

	puts("gantry doca - tools for programs written for DOCA\n\nCommands:");
	for (i = 0; i < N_COMMANDS; i++)
		printf("  gantry doca %s %s\n      %s\n", commands[i].name, commands[i].args,
		       commands[i].help);
	puts("\nSee gantry-doca-check(1).");
	return DT_CLEAN;
}

static int check_help(void)
{
	char left[32];
	size_t i;

	printf("gantry doca check - %s\n\nUsage: gantry doca check %s\n\nOptions:\n",
	       commands[0].help, commands[0].args);
	for (i = 0; i < N_OPTIONS; i++) {
		snprintf(left, sizeof(left), "--%s %s", options[i].name,
			 options[i].arg ? options[i].arg : "");
		printf("  %-18s %s\n", left, options[i].help);
	}
	puts("\nExit status:\n"
	     "  0  no findings\n"
	     "  1  findings\n"
	     "  2  the command line is wrong, or a program cannot be checked\n"
	     "  3  a program crashed or hung");
	return DT_CLEAN;
}

/* Parse a number from 0 to max. Returns false if the text is none. */
static bool number(const char *text, uint64_t max, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoull(text, &end, 0);
	return *text >= '0' && *text <= '9' && !*end && !errno && *value <= max;
}

static bool seeds(const char *text, struct dt_options *o)
{
	const char *dots = strstr(text, "..");
	char first[32];

	if (!dots || (size_t)(dots - text) >= sizeof(first))
		return false;
	memcpy(first, text, (size_t)(dots - text));
	first[dots - text] = '\0';
	o->has_seed = true;
	return number(first, UINT64_MAX, &o->first_seed) &&
	       number(dots + 2, UINT64_MAX, &o->last_seed) && o->first_seed <= o->last_seed;
}

/* Apply an option. Returns false if its value is not valid. */
static bool apply(struct dt_options *o, enum option_id id, const char *arg)
{
	uint64_t value = 0;
	bool ok = true;

	switch (id) {
	case JSON:
		o->json = true;
		break;
	case JUNIT:
		o->junit = arg;
		break;
	case SARIF:
		o->sarif = arg;
		break;
	case SUPPRESS:
		o->suppressions = arg;
		break;
	case CARD:
		o->card = arg;
		break;
	case PROTECT:
		o->protect = true;
		break;
	case SEED:
		ok = o->has_seed = number(arg, UINT64_MAX, &o->first_seed);
		o->last_seed = o->first_seed;
		break;
	case SEEDS:
		ok = seeds(arg, o);
		break;
	case STALL:
		ok = number(arg, 3600000, &value) && value;
		o->stall_ms = (unsigned)value;
		break;
	case TIMEOUT:
		ok = number(arg, 86400, &value) && value;
		o->timeout_s = (unsigned)value;
		break;
	case RULES:
	case HELP:
		break;
	}
	return ok;
}

/* Split the words after the options into programs, at each "--". Returns 0 or DT_USAGE. */
static int split(struct dt_options *o, int argc, char **argv)
{
	int i;

	for (i = 0; i < argc; i++) {
		if (!strcmp(argv[i], "--")) {
			argv[i] = NULL;
			continue;
		}
		if (i > 0 && argv[i - 1])
			continue;
		if (o->n_programs == DT_MAX_PROGRAMS)
			return dt_fail(DT_USAGE, "too many programs (limit=%d)", DT_MAX_PROGRAMS);
		o->programs[o->n_programs++].argv = &argv[i];
	}
	return o->n_programs ? 0
			     : dt_fail(DT_USAGE, "no program given; see gantry doca check --help");
}

/* Find the layer: beside this program in a build tree, or where it is installed. */
static const char *library(void)
{
	static char path[PATH_MAX + 64];
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
	char *slash;

	path[n < 0 ? 0 : n] = '\0';
	slash = strrchr(path, '/');
	if (slash) {
		strcpy(slash, "/.libs/libgantry-doca-check.so");
		if (!access(path, R_OK))
			return path;
		strcpy(slash, "/libgantry-doca-check.so"); /* this program is in .libs itself */
		if (!access(path, R_OK))
			return path;
	}
	return GANTRY_LIBDIR "/gantry/libgantry-doca-check.so";
}

static int report(const struct dt_options *o, const struct dt_findings *f)
{
	int code = 0;

	if (o->json)
		code = dt_print_json(stdout, f, o);
	else
		dt_print_text(stderr, f, o);
	if (!code && o->junit)
		code = dt_write_junit(o->junit, f);
	if (!code && o->sarif)
		code = dt_write_sarif(o->sarif, f);
	return code;
}

/* Run the programs once, and judge the run. seed NULL: cause no trouble. */
static int run_once(struct dt_options *o, const char *records, struct dt_findings *f,
		    const uint64_t *seed)
{
	int code = dt_launch(o, library(), records, seed), rc;

	if (code == DT_USAGE)
		return code;
	rc = dt_findings_read(f, records, o);
	if (rc)
		return dt_fail(DT_USAGE, "%s: cannot read the records: %s", records, strerror(-rc));
	if (f->refused)
		return dt_fail(DT_USAGE, "%s", f->refused);
	rc = dt_findings_suppress(f, o->suppressions);
	if (rc)
		return rc;
	return code == DT_CLEAN && f->n ? DT_FINDINGS : code;
}

/* Compare how the programs ended with the run without trouble. */
static void compare(struct dt_options *o)
{
	size_t i;

	for (i = 0; i < o->n_programs && !o->changed; i++)
		if (o->programs[i].status != o->programs[i].usual)
			o->changed = &o->programs[i];
}

/* Run without trouble, then once for each seed, until a run is not clean. */
static int run_all(struct dt_options *o, const char *records, struct dt_findings *f)
{
	int code = run_once(o, records, f, NULL);
	uint64_t seed;
	size_t i;

	if (code != DT_CLEAN || !o->has_seed) {
		o->has_seed = false;
		return code;
	}
	for (i = 0; i < o->n_programs; i++)
		o->programs[i].usual = o->programs[i].status;
	for (seed = o->first_seed;; seed++) {
		code = run_once(o, records, f, &seed);
		if (code != DT_USAGE)
			compare(o);
		if (code == DT_CLEAN && o->changed)
			code = DT_FINDINGS;
		if (code != DT_CLEAN || seed == o->last_seed)
			break;
	}
	o->first_seed = seed;
	return code;
}

static int check_programs(struct dt_options *o)
{
	char directory[PATH_MAX], records[PATH_MAX + 16];
	const char *tmp = getenv("TMPDIR");
	struct dt_findings f;
	int code, rc;

	snprintf(directory, sizeof(directory), "%s/gantry-doca-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	if (!mkdtemp(directory))
		return dt_fail(DT_USAGE, "%s: cannot create the directory: %s", directory,
			       strerror(errno));
	snprintf(records, sizeof(records), "%s/records", directory);
	dt_findings_init(&f);
	code = run_all(o, records, &f);
	unlink(records);
	rmdir(directory);
	if (code == DT_USAGE)
		return code;
	rc = report(o, &f);
	return rc ? rc : code;
}

static int check(int argc, char **argv)
{
	struct dt_options o = {.timeout_s = 60, .stall_ms = 3000};
	struct option longs[N_OPTIONS + 1] = {{0}};
	bool rules = false;
	size_t i;
	int value, rc;

	for (i = 0; i < N_OPTIONS; i++)
		longs[i] = (struct option){options[i].name,
					   options[i].arg ? required_argument : no_argument, NULL,
					   (int)options[i].id};
	opterr = 0;
	while ((value = getopt_long(argc, argv, "+:h", longs, NULL)) != -1) {
		if (value == ':')
			return dt_fail(DT_USAGE,
				       "option %s needs a value; see gantry doca check --help",
				       argv[optind - 1]);
		if (value == '?')
			return dt_fail(DT_USAGE, "unknown option %s; see gantry doca check --help",
				       argv[optind - 1]);
		if (value == HELP || value == 'h')
			return check_help();
		rules |= value == RULES;
		if (!apply(&o, (enum option_id)value, optarg))
			return dt_fail(
				DT_USAGE,
				"option %s: value is not valid (value=%s); see gantry doca check --help",
				argv[optind - 2], optarg);
	}
	if (rules) {
		dt_print_rules(stdout, o.json);
		return DT_CLEAN;
	}
	rc = split(&o, argc - optind, argv + optind);
	return rc ? rc : check_programs(&o);
}

int main(int argc, char **argv)
{
	size_t i;

	if (argc < 2 || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		help();
		return argc < 2 ? DT_USAGE : DT_CLEAN;
	}
	for (i = 0; i < N_COMMANDS; i++)
		if (!strcmp(argv[1], commands[i].name))
			return commands[i].run(argc - 1, argv + 1);
	return dt_fail(DT_USAGE, "unknown command \"%s\"; see gantry doca --help", argv[1]);
}
