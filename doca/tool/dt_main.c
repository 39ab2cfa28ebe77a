/* SPDX-License-Identifier: BSD-3-Clause */
/* dt_main.c - the command line of gantry-doca, which `gantry doca` starts */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/dt.h"

static int check(struct dt_options *o);
static int trace(struct dt_options *o);
static int run(struct dt_options *o);

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
	OUTPUT,
	SVG,
	THREAD_START_SHIM,
	TROUBLE,
	HELP
};

/* Bits of commands. */
enum { CHECK = 1, TRACE = 2, RUN = 4 };

static const struct command {
	const char *name, *help;
	unsigned bit;
	int (*run)(struct dt_options *o);
} commands[] = {
	{"check", "run programs and report where they break the rules of DOCA", CHECK, check},
	{"trace", "run programs and write a picture of their tasks over time", TRACE, trace},
	{"run", "run a program as it is, or with help against its faults", RUN, run},
};

static const struct {
	const char *name, *arg;
	enum option_id id;
	unsigned commands;
	const char *help;
} options[] = {
	{"card", "FILE", CARD, CHECK, "report and enforce the limits of a card"},
	{"json", NULL, JSON, CHECK, "print the findings as JSON"},
	{"junit", "FILE", JUNIT, CHECK, "also write the findings to FILE, in the format of JUnit"},
	{"output", "FILE", OUTPUT, TRACE, "write a trace for Chrome and Perfetto to FILE"},
	{"protect", NULL, PROTECT, CHECK,
	 "make the memory of sources read-only while their tasks are submitted"},
	{"rules", NULL, RULES, CHECK, "list the rules"},
	{"sarif", "FILE", SARIF, CHECK,
	 "also write the findings to FILE, in the format SARIF 2.1.0"},
	{"seed", "N", SEED, CHECK, "cause legal trouble that the seed N decides"},
	{"seeds", "A..B", SEEDS, CHECK,
	 "run once with each seed from A to B, until a run is not clean"},
	{"stall", "MS", STALL, CHECK,
	 "milliseconds without progress that are reported (default 3000)"},
	{"suppress", "FILE", SUPPRESS, CHECK, "do not report the findings that FILE lists"},
	{"svg", "FILE", SVG, TRACE, "write a drawing to FILE"},
	{"timeout", "S", TIMEOUT, CHECK | TRACE,
	 "seconds after which a run counts as hung (default 60)"},
	{"thread-start-shim", NULL, THREAD_START_SHIM, RUN,
	 "start each thread after its creator has stored the handle of the thread"},
	{"trouble", "KIND,...", TROUBLE, CHECK, "cause only these kinds of trouble"},
	{"help", NULL, HELP, CHECK | TRACE | RUN, "show this help"},
};

#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))
#define N_OPTIONS (sizeof(options) / sizeof(options[0]))
#define PROGRAM "[OPTION]... -- PROGRAM [ARG]..."
#define PROGRAMS PROGRAM " [-- PROGRAM [ARG]...]..."

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
		printf("  %-8s %s\n", commands[i].name, commands[i].help);
	puts("\n\"gantry doca COMMAND --help\" lists the options of a command. See "
	     "gantry-doca-check(1).");
	return DT_CLEAN;
}

static int command_help(const struct command *command)
{
	char left[32];
	size_t i;

	printf("gantry doca %s - %s\n\nUsage: gantry doca %s %s\n\nOptions:\n", command->name,
	       command->help, command->name, command->bit == RUN ? PROGRAM : PROGRAMS);
	for (i = 0; i < N_OPTIONS; i++) {
		if (!(options[i].commands & command->bit))
			continue;
		snprintf(left, sizeof(left), "--%s %s", options[i].name,
			 options[i].arg ? options[i].arg : "");
		printf("  %-18s %s\n", left, options[i].help);
	}
	if (command->bit == RUN) {
		puts("\nExit status: that of the program; 2 if it cannot be run.");
		return DT_CLEAN;
	}
	puts("\nExit status:\n"
	     "  0  no findings\n"
	     "  1  findings, or a program ended with an error\n"
	     "  2  the command line is wrong, or a program cannot be run\n"
	     "  3  a program crashed or hung, or a signal ended the run");
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
	o->has_seed = o->has_range = true;
	return number(first, UINT64_MAX, &o->first_seed) &&
	       number(dots + 2, UINT64_MAX, &o->last_seed) && o->first_seed <= o->last_seed;
}

static bool is_kind(const char *name, size_t len)
{
	static const char *const kinds[] = {
#define DC_TROUBLE(id, kind, a, b, c, d) kind,
#include "check/trouble.def"
#undef DC_TROUBLE
	};
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strlen(kinds[i]) == len && !memcmp(kinds[i], name, len))
			return true;
	return false;
}

/* True if each name of the list is a kind of trouble. */
static bool are_kinds(const char *list)
{
	const char *end = strchr(list, ',');

	for (; end; list = end + 1, end = strchr(list, ','))
		if (!is_kind(list, (size_t)(end - list)))
			return false;
	return is_kind(list, strlen(list));
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
		o->has_range = false;
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
	case TROUBLE:
		ok = are_kinds(arg);
		o->trouble = arg;
		break;
	case RULES:
		o->rules = true;
		break;
	case OUTPUT:
		o->trace = arg;
		break;
	case SVG:
		o->svg = arg;
		break;
	case THREAD_START_SHIM:
		o->thread_start_shim = true;
		break;
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
	return o->n_programs ? 0 : dt_fail(DT_USAGE, "no program given; see gantry doca --help");
}

const char *dt_library(const char *name)
{
	static char path[PATH_MAX + 64];
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
	char *slash;

	path[n < 0 ? 0 : n] = '\0';
	slash = strrchr(path, '/');
	if (slash) {
		snprintf(slash, 64, "/.libs/%s", name);
		if (!access(path, R_OK))
			return path;
	}
	snprintf(path, sizeof(path), "%s/gantry/%s", GANTRY_LIBDIR, name);
	return path;
}

static const char *layer(void)
{
	return dt_library("libgantry-doca-check.so");
}

static int report(const struct dt_options *o, const struct dt_findings *f)
{
	int code = 0;

	if (o->json)
		code = dt_print_json(stdout, f, o);
	else
		dt_print_text(stderr, f, o);
	if (!code && o->junit)
		code = dt_write_junit(o->junit, f, o);
	if (!code && o->sarif)
		code = dt_write_sarif(o->sarif, f);
	return code;
}

static bool all_ended_well(const struct dt_options *o)
{
	size_t i;

	for (i = 0; i < o->n_programs; i++)
		if (!dt_ended_well(&o->programs[i]))
			return false;
	return true;
}

/* Run the programs once, and judge the run. seed NULL: cause no trouble. */
static int run_once(struct dt_options *o, const char *records, struct dt_findings *f,
		    const uint64_t *seed)
{
	int code, rc;

	dt_findings_reset_counts(f);
	code = dt_launch(o, layer(), records, seed);
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
	return code == DT_CLEAN && (f->n || !all_ended_well(o)) ? DT_FINDINGS : code;
}

/* Run once for each seed, until a run is not clean. */
static int run_seeds(struct dt_options *o, const char *records, struct dt_findings *f)
{
	uint64_t seed;
	int code;

	for (seed = o->first_seed;; seed++) {
		code = run_once(o, records, f, &seed);
		if (code != DT_CLEAN || seed == o->last_seed)
			break;
	}
	o->first_seed = seed;
	return code;
}

static int run_all(struct dt_options *o, const char *records, struct dt_findings *f)
{
	if (!o->has_seed || o->has_range) {
		const int code = run_once(o, records, f, NULL);

		if (code != DT_CLEAN || !o->has_seed) {
			o->has_seed = false;
			return code;
		}
	}
	return run_seeds(o, records, f);
}

/* A directory for the records of a run. */
struct place {
	char directory[PATH_MAX], records[PATH_MAX + 16];
};

static int make_place(struct place *at)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(at->directory, sizeof(at->directory), "%s/gantry-doca-XXXXXX",
		 tmp && *tmp ? tmp : "/tmp");
	if (!mkdtemp(at->directory))
		return dt_fail(DT_USAGE, "%s: cannot create the directory: %s", at->directory,
			       strerror(errno));
	snprintf(at->records, sizeof(at->records), "%s/records", at->directory);
	return 0;
}

static void remove_place(const struct place *at)
{
	unlink(at->records);
	rmdir(at->directory);
}

static int check(struct dt_options *o)
{
	struct dt_findings f;
	struct place at;
	int code, rc = make_place(&at);

	if (rc)
		return rc;
	dt_findings_init(&f);
	code = run_all(o, at.records, &f);
	remove_place(&at);
	rc = code == DT_USAGE ? code : report(o, &f);
	dt_findings_fini(&f);
	return rc ? rc : code;
}

static int trace(struct dt_options *o)
{
	struct place at;
	int code, rc;

	if (!o->trace && !o->svg)
		return dt_fail(DT_USAGE, "no file to write: name one with --output or --svg");
	rc = make_place(&at);
	if (rc)
		return rc;
	code = dt_launch(o, layer(), at.records, NULL);
	rc = code == DT_USAGE ? code : dt_write_trace(at.records, o);
	remove_place(&at);
	return rc ? rc : code;
}

/* Replace this process. The program gets all words after its name, also "--". */
static int run(struct dt_options *o)
{
	return dt_run(o->words, o->thread_start_shim);
}

static int parse(const struct command *command, int argc, char **argv, struct dt_options *o)
{
	struct option longs[N_OPTIONS + 1] = {{0}};
	size_t i, n = 0;
	int value;

	for (i = 0; i < N_OPTIONS; i++)
		if (options[i].commands & command->bit)
			longs[n++] = (struct option){
				options[i].name, options[i].arg ? required_argument : no_argument,
				NULL, (int)options[i].id};
	opterr = 0;
	while ((value = getopt_long(argc, argv, "+:ho:", longs, NULL)) != -1) {
		if (value == ':')
			return dt_fail(DT_USAGE,
				       "option %s needs a value; see gantry doca %s --help",
				       argv[optind - 1], command->name);
		if (value == '?' || (value == 'o' && command->bit != TRACE))
			return dt_fail(DT_USAGE, "unknown option %s; see gantry doca %s --help",
				       argv[optind - 1], command->name);
		if (value == HELP || value == 'h')
			return command_help(command);
		if (!apply(o, value == 'o' ? OUTPUT : (enum option_id)value, optarg))
			return dt_fail(DT_USAGE,
				       "option %s: value is not valid (value=%s); see gantry doca "
				       "%s --help",
				       argv[optind - 2], optarg, command->name);
	}
	return -1;
}

static int run_command(const struct command *command, int argc, char **argv)
{
	struct dt_options o = {.timeout_s = 60, .stall_ms = 3000};
	int rc = parse(command, argc, argv, &o);

	if (rc >= 0)
		return rc;
	if (o.rules) {
		dt_print_rules(stdout, o.json);
		return DT_CLEAN;
	}
	if (o.trouble && !o.has_seed)
		return dt_fail(DT_USAGE, "--trouble needs --seed or --seeds");
	o.words = argv + optind;
	if (!*o.words)
		return dt_fail(DT_USAGE, "no program given; see gantry doca %s --help",
			       command->name);
	rc = command->bit == RUN ? 0 : split(&o, argc - optind, argv + optind);
	return rc ? rc : command->run(&o);
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
			return run_command(&commands[i], argc - 1, argv + 1);
	return dt_fail(DT_USAGE, "unknown command \"%s\"; see gantry doca --help", argv[1]);
}
