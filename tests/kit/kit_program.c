/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kit_program.c - gantry-conform: runs the cases of the kind of a plugin, each in a child process,
 * and prints TAP. `gantry conform` starts it.
 */
#include "kit/kit_program.h"

#include <getopt.h>
#include <libgen.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXIT_FAILED 1 /* a case has failed */
#define EXIT_USAGE 2  /* as `gantry`: the command line is wrong */
#define LIMIT_S 120   /* default of --limit */
#define LINE 4096

const char fake_plugin_dir[] = ""; /* load() sets TEST_PLUGINDIR */
struct kit_program kit_program;
struct rig_driver rig_driver;

static struct gn_strlist cases; /* names of all cases of the kind, then of those to run */
static const char *selected;    /* the case that this child process runs */
static unsigned limit_s = LIMIT_S;

static const struct {
	const char *name, *arg, *help;
	struct gn_strlist *words;
} options[] = {
	{"set", "KEY=VALUE", "option of the plugin; may be repeated", &kit_program.sets},
	{"listener", "KEY=VALUE", "option of the end of a transport that listens",
	 &kit_program.listener_sets},
	{"connector", "KEY=VALUE", "option of the end of a transport that connects",
	 &kit_program.connector_sets},
	{"service", "NAME", "service that the transport can serve; may be repeated",
	 &kit_program.services},
	{"case", "NAME", "run only this case; may be repeated", NULL},
	{"limit", "SECONDS", "time limit of a case (120)", NULL},
	{"discards", NULL, "reads of the backend do not return what was written", NULL},
	{"list", NULL, "print the names of the cases, run none", NULL},
	{"help", NULL, "show this help", NULL},
};

#define N_OPTIONS (sizeof(options) / sizeof(options[0]))

static const struct {
	unsigned kind;
	void (*cases)(void);
} kinds[] = {
	{GANTRY_KIND_TRANSPORT, kit_transport_cases}, {GANTRY_KIND_STAGE, kit_stage_cases},
	{GANTRY_KIND_BACKEND, kit_backend_cases},     {GANTRY_KIND_ROLE, kit_role_cases},
	{GANTRY_KIND_OBSERVER, kit_observer_cases},
};

__attribute__((noreturn, format(printf, 1, 2))) static void usage(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fputs("gantry conform: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
	exit(EXIT_USAGE);
}

static void add(struct gn_strlist *words, const char *word)
{
	if (gn_strlist_add(words, word))
		usage("out of memory");
}

static int help(void)
{
	char left[48];

	puts("gantry conform - test a plugin against the contract of its kind\n\n"
	     "Usage: gantry conform [OPTION]... PLUGIN.so\n\nOptions:");
	for (size_t i = 0; i < N_OPTIONS; i++) {
		snprintf(left, sizeof(left), "--%s %s", options[i].name,
			 options[i].arg ? options[i].arg : "");
		printf("  %s %-22s %s\n", strcmp(options[i].name, "help") ? "   " : "-h,", left,
		       options[i].help);
	}
	puts("\nThe output is TAP. Exit status: 0: no case has failed; 1: a case has failed;\n"
	     "2: the command line is wrong, or the plugin cannot be loaded. See gantry(1).");
	return 0;
}

/* -- the plugin -- */

/* Load the plugin as the host does, and let the suite find it by name. */
static void load(const char *path)
{
	char real[PATH_MAX], dir_text[PATH_MAX], name[NAME_MAX];
	const char *dir, *text, *base = strrchr(path, '/');
	static struct gn_loader *loader; /* as long as the plugin */
	size_t n;

	base = base ? base + 1 : path;
	n = strlen(base);
	if (n < 4 || n > 60 || strcmp(base + n - 3, ".so") != 0)
		usage("not the file of a plugin (path=%s): name a file NAME.so", path);
	snprintf(name, sizeof(name), "%.*s", (int)n - 3, base);
	snprintf(dir_text, sizeof(dir_text), "%s", path);
	if (!realpath(dirname(dir_text), real))
		usage("cannot find the plugin (path=%s): %s", path, strerror(errno));
	dir = real;
	if (gn_loader_open(&dir, 1, &loader, &text))
		usage("cannot load the plugin (path=%s): %s", path, text);
	gn_loader_probe(loader);
	if (gn_loader_find(loader, 0, name, &kit_program.loaded))
		usage("cannot load the plugin: %s", gn_loader_error(loader));
	kit_program.plugin = kit_program.loaded->desc;
	setenv("TEST_PLUGINDIR", real, 1);
}

/* Reject settings that the plugin does not accept, before a case runs. */
static void check_settings(void)
{
	const struct gn_strlist *all[] = {NULL, &kit_program.listener_sets,
					  &kit_program.connector_sets};
	char why[512];

	for (size_t i = 0; i < 3; i++) {
		kit_check_conf(all[i], why, sizeof(why));
		if (*why)
			usage("%s", why);
	}
}

/* -- cases -- */

static int note(const char *name)
{
	add(&cases, name);
	return 0;
}

static int is_selected(const char *name)
{
	return strcmp(name, selected) == 0;
}

static void walk_cases(void)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (kinds[i].kind == kit_program.plugin->kind)
			kinds[i].cases();
	kit_plugin_cases();
}

static void keep_only(const struct gn_strlist *wanted)
{
	for (size_t i = 0; i < wanted->n; i++)
		if (!gn_strlist_has(&cases, wanted->word[i]))
			usage("there is no such case (case=%s): see gantry conform --list",
			      wanted->word[i]);
	if (!wanted->n)
		return;
	gn_strlist_fini(&cases);
	cases = *wanted;
}

__attribute__((noreturn)) static void run_child(const char *name, int out)
{
	const struct rlimit no_core = {0, 0};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setrlimit(RLIMIT_CORE, &no_core);
	dup2(out, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);
	close(out);
	alarm(limit_s);
	selected = name;
	rig_driver.wanted = is_selected;
	UNITY_BEGIN();
	walk_cases();
	out = UNITY_END();
	fflush(stdout);
	_exit(out ? EXIT_FAILED : 0);
}

/* What one case has printed. */
struct outcome {
	char verdict;     /* 'P', 'F', 'I' of Unity; 0: the case did not end */
	char text[LINE];  /* reason of a failure or of a skip */
	char noise[LINE]; /* all other lines, as comments of TAP */
	size_t n_noise;
};

/* Parse FILE:LINE:NAME:VERDICT[: TEXT]. Returns whether the line is the verdict of this case. */
static int take_verdict(struct outcome *o, const char *name, const char *line)
{
	static const char *const verdicts[] = {":PASS", ":FAIL", ":IGNORE"};
	char pattern[160];

	for (size_t i = 0; i < 3; i++) {
		const char *at;

		snprintf(pattern, sizeof(pattern), ":%s%s", name, verdicts[i]);
		at = strstr(line, pattern);
		if (!at)
			continue;
		at += strlen(pattern);
		if (!o->verdict || verdicts[i][1] == 'F')
			o->verdict = verdicts[i][1];
		snprintf(o->text, sizeof(o->text), "%s", *at == ':' ? at + 2 : at);
		return 1;
	}
	return 0;
}

static int is_frame(const char *line)
{
	unsigned a, b, c;

	return !*line || *line == '-' || !strcmp(line, "OK") || !strcmp(line, "FAIL") ||
	       sscanf(line, "%u Tests %u Failures %u Ignored", &a, &b, &c) == 3;
}

static void note_noise(struct outcome *o, const char *line)
{
	int n = snprintf(o->noise + o->n_noise, sizeof(o->noise) - o->n_noise, "# %s\n", line);

	if (n > 0 && (size_t)n < sizeof(o->noise) - o->n_noise)
		o->n_noise += (size_t)n;
	else
		o->noise[o->n_noise] = '\0';
}

static void read_outcome(struct outcome *o, const char *name, int fd)
{
	FILE *f = fdopen(fd, "r");
	char line[LINE];

	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		if (take_verdict(o, name, line) || is_frame(line))
			continue;
		note_noise(o, line);
	}
	if (f)
		fclose(f);
}

static void explain_end(struct outcome *o, int status)
{
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		snprintf(o->text, sizeof(o->text),
			 "expected to end within the limit, which it does not (limit=%us)",
			 limit_s);
	else if (WIFSIGNALED(status))
		snprintf(o->text, sizeof(o->text),
			 "expected to end, and was killed by signal %d (%s)", WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
	else
		snprintf(o->text, sizeof(o->text), "expected to end, and the process has exited");
}

/* Run a case and print its line. Returns whether it has failed. */
static int run_case(const char *name, size_t number)
{
	struct outcome o = {0};
	int fds[2], status = 0;
	pid_t pid;

	fflush(stdout);
	if (pipe(fds) || (pid = fork()) < 0)
		usage("cannot start a process: %s", strerror(errno));
	if (pid == 0) {
		close(fds[0]);
		run_child(name, fds[1]);
	}
	close(fds[1]);
	read_outcome(&o, name, fds[0]);
	waitpid(pid, &status, 0);
	if (!WIFEXITED(status) || !o.verdict) {
		o.verdict = 'F';
		explain_end(&o, status);
	}
	printf("%sok %zu - %s", o.verdict == 'F' ? "not " : "", number, name);
	if (o.verdict == 'I')
		printf(" # SKIP %s", o.text);
	putchar('\n');
	if (o.verdict == 'F')
		printf("# %s\n%s", o.text, o.noise);
	return o.verdict == 'F';
}

/* -- the command line -- */

static unsigned seconds(const char *text)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || !n || n > 3600)
		usage("--limit: not a number of seconds from 1 to 3600 (value=%s)", text);
	return (unsigned)n;
}

/* Returns whether the names of the cases are asked for. */
static int parse(int argc, char **argv, struct gn_strlist *wanted)
{
	struct option longs[N_OPTIONS + 1] = {0};
	int list = 0, row;

	for (size_t i = 0; i < N_OPTIONS; i++)
		longs[i] = (struct option){options[i].name,
					   options[i].arg ? required_argument : no_argument, NULL,
					   (int)i};
	opterr = 0;
	while ((row = getopt_long(argc, argv, ":h", longs, NULL)) != -1) {
		if (row == ':')
			usage("option %s needs a value; see gantry conform --help",
			      argv[optind - 1]);
		if (row == '?')
			usage("unknown option %s; see gantry conform --help", argv[optind - 1]);
		if (row == 'h')
			exit(help());
		if (options[row].words)
			add(options[row].words, optarg);
		else if (!strcmp(options[row].name, "case"))
			add(wanted, optarg);
		else if (!strcmp(options[row].name, "limit"))
			limit_s = seconds(optarg);
		else if (!strcmp(options[row].name, "discards"))
			kit_program.discards = 1;
		else if (!strcmp(options[row].name, "list"))
			list = 1;
		else
			exit(help());
	}
	if (argc - optind != 1)
		usage("usage: gantry conform [OPTION]... PLUGIN.so; see gantry conform --help");
	return list;
}

int main(int argc, char **argv)
{
	struct gn_strlist wanted = {0};
	const int list = parse(argc, argv, &wanted);
	size_t n_failed = 0;

	load(argv[optind]);
	rig_driver.wanted = note;
	walk_cases();
	keep_only(&wanted);
	if (!list)
		check_settings();
	for (size_t i = 0; list && i < cases.n; i++)
		puts(cases.word[i]);
	if (list)
		return 0;
	printf("1..%zu\n", cases.n);
	for (size_t i = 0; i < cases.n; i++)
		n_failed += (size_t)run_case(cases.word[i], i + 1);
	if (n_failed)
		printf("# %zu of %zu cases have failed\n", n_failed, cases.n);
	return n_failed ? EXIT_FAILED : 0;
}
