/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "base/log.h"
#include "cli/metrics_listen.h"
#include "report/report.h"
#include "trace/trace_format.h"

#define GLOBAL (GN_CLI_PLUGIN_DIR | GN_CLI_VERBOSE | GN_CLI_JSON | GN_CLI_HELP)
#define TOPOLOGY (GLOBAL | GN_CLI_ROLE | GN_CLI_SET)

static const struct gn_command commands[] = {
	{"run", "FILE", "run the roles of a configuration", TOPOLOGY | GN_CLI_REPORT, 1, 1,
	 gn_cli_run},
	{"check", "FILE",
	 "check a configuration and this machine, start nothing (-v: print all values)", TOPOLOGY,
	 1, 1, gn_cli_check},
	{"copy", "SRC DST",
	 "copy a volume (\"volume:\" or \"volume:ROLE\") to a file or block device, or back",
	 TOPOLOGY | GN_CLI_CONFIG | GN_CLI_COPY, 2, 2, gn_cli_copy},
	{"plugins", "[NAME]...", "list plugins with their versions and files",
	 GLOBAL | GN_CLI_OPTIONS | GN_CLI_CONFIG, 0, SIZE_MAX, gn_cli_plugins},
	{"devices", "[FILE]", "list the devices of this machine, and those of a configuration",
	 TOPOLOGY, 0, 1, gn_cli_devices},
	{"options", "[NAME]...",
	 "list the options of plugins and of the sections runtime, role, listen and connect",
	 GLOBAL | GN_CLI_CONFIG | GN_CLI_MDOC, 0, SIZE_MAX, gn_cli_options},
	{"env", "host|dpu", "print shell commands that prepare for programs written for DOCA",
	 GLOBAL, 1, 1, gn_cli_env},
	{"key", "new IDENTITY [FILE]",
	 "make the key of a peer on a network, and print it or add it to a file", GN_CLI_HELP, 2, 3,
	 gn_cli_key},
	{"new-plugin", "KIND NAME [DIR]",
	 "write the directory NAME with a plugin that works, its test and its Makefile",
	 GN_CLI_HELP, 2, 3, gn_cli_new_plugin},
	{"conform", "PLUGIN.so",
	 "test a plugin against the contract of its kind; see gantry conform --help", GN_CLI_RAW, 0,
	 SIZE_MAX, gn_cli_conform},
	{"doca", "COMMAND...", "tools for programs written for DOCA; see gantry doca --help",
	 GN_CLI_RAW, 0, SIZE_MAX, gn_cli_doca},
	{"stat", "[NAME]",
	 "print what running gantry processes do, or only the role NAME (-v: whole reports)",
	 GLOBAL | GN_CLI_DIR | GN_CLI_CONFIG | GN_CLI_WATCH | GN_CLI_OPENMETRICS, 0, 1,
	 gn_cli_stat},
	{"ctl", "[METHOD [VALUE]...]",
	 "list the methods of the control socket, or call one in a running process",
	 GLOBAL | GN_CLI_DIR | GN_CLI_CONFIG | GN_CLI_PID, 0, SIZE_MAX, gn_cli_ctl},
	{"metrics", "", "serve the metrics of running gantry processes by HTTP, for Prometheus",
	 GLOBAL | GN_CLI_DIR | GN_CLI_CONFIG | GN_CLI_LISTEN, 0, 0, gn_cli_metrics},
	{"top", "[NAME]", "show what running gantry processes do, again and again, in the terminal",
	 GLOBAL | GN_CLI_DIR | GN_CLI_CONFIG | GN_CLI_BATCH | GN_CLI_COUNT | GN_CLI_INTERVAL, 0, 1,
	 gn_cli_top},
	{"trace", "[NAME=]FILE...", /* lint: a word */
	 "print, sum up or convert what the stage trace has recorded", GLOBAL | GN_CLI_TRACE, 1,
	 SIZE_MAX, gn_cli_trace},
	{"version", "", "print the version", GLOBAL, 0, 0, gn_cli_version},
	{"vm", "FILE [MEMORY]",
	 "print the options of QEMU for a virtual machine with the disks of a configuration",
	 TOPOLOGY, 1, 2, gn_cli_vm},
	{NULL, NULL, NULL, 0, 0, 0, NULL},
};

#define TO(field) offsetof(struct gn_cli, field)

static const struct {
	const char *name;
	char letter;
	const char *arg;
	unsigned bit;
	const char *help;
	/* offset of the const char * or bool that the option sets; 0: apply_option() knows it */
	size_t text, flag;
} options[] = {
	{"role", 0, "NAME", GN_CLI_ROLE, "only this role; may be repeated", 0, 0},
	{"set", 0, "KEY.PATH=VALUE", GN_CLI_SET,
	 "override a value of the configuration; may be repeated", 0, 0},
	{"report", 0, "PAGE", GN_CLI_REPORT,
	 "at the end, write a page with drawings of the run (HTML)", TO(report), 0},
	{"config", 'c', "FILE", GN_CLI_CONFIG, "the configuration file", TO(config), 0},
	{"dir", 0, "DIR", GN_CLI_DIR, "directory of the sockets of running processes", TO(dir), 0},
	{"pid", 0, "PID", GN_CLI_PID, "only this process", 0, 0},
	{"watch", 0, "SECONDS", GN_CLI_WATCH, "print a table at this interval, with its rates", 0,
	 0},
	{"openmetrics", 0, NULL, GN_CLI_OPENMETRICS, "print metrics for Prometheus", 0,
	 TO(openmetrics)},
	{"listen", 0, "ADDRESS", GN_CLI_LISTEN,
	 "127.0.0.1:PORT, [::1]:PORT or unix:PATH (default: " GN_METRICS_LISTEN ")", TO(listen), 0},
	{"batch", 'b', NULL, GN_CLI_BATCH, "print the screens as text, without a terminal", 0,
	 TO(batch)},
	{"count", 'n', "COUNT", GN_CLI_COUNT, "end after this number of screens", 0, 0},
	{"interval", 'd', "SECONDS", GN_CLI_INTERVAL, "time between two screens (default 1)", 0, 0},
	{"format", 'f', GN_TRACE_FORMATS, GN_CLI_TRACE, "print in this format", TO(format), 0},
	{"summary", 's', NULL, GN_CLI_TRACE, "print sums instead of records", 0, TO(summary)},
	{"operation", 0, "OPERATION", GN_CLI_TRACE, "only these operations, with commas",
	 TO(trace_filter.operation), 0},
	{"time", 0, "FROM-TO", GN_CLI_TRACE, "only records of this time", TO(trace_filter.time), 0},
	{"offset", 0, "FROM-TO", GN_CLI_TRACE, "only IOs in this range of the volume",
	 TO(trace_filter.offset), 0},
	{"lane", 0, "LANE", GN_CLI_TRACE, "only this lane", TO(trace_filter.lane), 0},
	{"status", 0, "STATUS", GN_CLI_TRACE,
	 "only completions with these statuses, with commas; error: all but OK",
	 TO(trace_filter.status), 0},
	{"min-latency", 0, "TIME", GN_CLI_TRACE, "only completions with at least this latency",
	 TO(trace_filter.min_latency), 0},
	{"verify", 0, NULL, GN_CLI_COPY, "read each part again after it is copied, and compare", 0,
	 TO(verify)},
	{"state", 0, "FILE", GN_CLI_COPY,
	 "record in FILE what is copied; continue an interrupted copy with the same FILE",
	 TO(state), 0},
	{"options", 'o', NULL, GN_CLI_OPTIONS, "list the options of each plugin as well", 0,
	 TO(options)},
	{"mdoc", 0, NULL, GN_CLI_MDOC, "print items for the list of a manual page", 0, TO(mdoc)},
	{"json", 'j', NULL, GN_CLI_JSON, "print JSON", 0, TO(json)},
	{"plugin-dir", 'p', "DIR", GN_CLI_PLUGIN_DIR,
	 "search plugins only in this directory; may be repeated", 0, 0},
	{"verbose", 'v', NULL, GN_CLI_VERBOSE,
	 "log listeners and sessions, report all values; twice: also log control messages", 0, 0},
	{"help", 'h', NULL, GN_CLI_HELP, "show this help", 0, 0},
	{"version", 'V', NULL, GN_CLI_VERSION, "print the version; only without COMMAND", 0, 0},
};

#define N_OPTIONS (sizeof(options) / sizeof(options[0]))
#define LONG_ONLY 256 /* getopt value of a long option: LONG_ONLY plus its row */

static int output_errno; /* -errno of the first failed write to stdout; 0: none */

void gn_cli_flush(void)
{
	errno = 0;
	if (fflush(stdout) && !output_errno)
		output_errno = -errno;
}

int gn_cli_print_json(const json_t *tree)
{
	int rc = tree ? gn_report_print_json(stdout, tree) : -ENOMEM;

	if (rc == -ENOMEM)
		return gn_cli_fail(GN_EXIT_FAILED, "out of memory");
	if (rc && !output_errno)
		output_errno = rc;
	return rc ? GN_EXIT_FAILED : GN_EXIT_OK;
}

/* Flush stdout. Returns `code`, or GN_EXIT_FAILED if a write failed, now or earlier. */
static int end_output(int code)
{
	gn_cli_flush();
	if (!output_errno && !ferror(stdout))
		return code;
	gn_cli_fail(GN_EXIT_FAILED, "cannot write the output%s%s", output_errno ? ": " : "",
		    output_errno ? strerror(-output_errno) : "");
	return code == GN_EXIT_OK ? GN_EXIT_FAILED : code;
}

void gn_cli_add_word(struct gn_strlist *words, const char *word)
{
	if (gn_strlist_add(words, word))
		exit(gn_cli_fail(GN_EXIT_FAILED, "out of memory"));
}

/* -- help -- */

static void print_options(const char *title, unsigned accepts)
{
	char left[48];

	printf("\n%s:\n", title);
	for (size_t i = 0; i < N_OPTIONS; i++) {
		if (!(options[i].bit & accepts))
			continue;
		snprintf(left, sizeof(left), "%c%c%c --%s %s", options[i].letter ? '-' : ' ',
			 options[i].letter ? options[i].letter : ' ', options[i].letter ? ',' : ' ',
			 options[i].name, options[i].arg ? options[i].arg : "");
		printf("  %-26s %s\n", left, options[i].help);
	}
}

static int help_command(const struct gn_command *command)
{
	printf("gantry %s - %s\n\nUsage: gantry %s [OPTION]...%s%s\n", command->name, command->help,
	       command->name, *command->args ? " " : "", command->args);
	print_options("Options", command->accepts);
	return GN_EXIT_OK;
}

static int help(void)
{
	puts("gantry - move storage IO between transports without touching the data\n\n"
	     "Usage: gantry COMMAND [OPTION]... [ARGUMENT]...\n\nCommands:");
	for (const struct gn_command *c = commands; c->name; c++)
		printf("  %-10s %-15s %s\n", c->name, c->args, c->help);
	print_options("Options of all commands", GLOBAL | GN_CLI_VERSION);
	puts("\nExit status:\n"
	     "  0  success\n"
	     "  1  an IO, a session or a device failed\n"
	     "  2  the command line or the configuration is wrong\n"
	     "  3  a signal ended the process before its work was done\n\n"
	     "\"gantry COMMAND --help\" lists the options of a command. See gantry(1) and gantry.conf(5).");
	return GN_EXIT_OK;
}

/* -- parsing -- */

static const char *hint(const struct gn_cli *cli)
{
	static char text[64];

	snprintf(text, sizeof(text), "see gantry %s%s--help", cli->command ? cli->command : "",
		 cli->command ? " " : "");
	return text;
}

/*
 * Build the two tables of getopt_long() from the option table. posix: stop at the first word that
 * is not an option.
 */
static void build_getopt(unsigned accepts, bool posix, char *letters, struct option *longs)
{
	char *at = stpcpy(letters, posix ? "+:" : ":");
	size_t n = 0;

	for (size_t i = 0; i < N_OPTIONS; i++) {
		if (!(options[i].bit & accepts))
			continue;
		longs[n++] = (struct option){options[i].name,
					     options[i].arg ? required_argument : no_argument, NULL,
					     (int)(LONG_ONLY + i)};
		if (options[i].letter) {
			*at++ = options[i].letter;
			at = stpcpy(at, options[i].arg ? ":" : "");
		}
	}
	longs[n] = (struct option){0};
}

/* The options whose value is a number from 1 on, with the place of the value. */
static const struct {
	unsigned bit, max;
	const char *what;
	size_t offset; /* in struct gn_cli */
} numbers[] = {
	{GN_CLI_WATCH, 3600, "a number of seconds", offsetof(struct gn_cli, watch_s)},
	{GN_CLI_INTERVAL, 3600, "a number of seconds", offsetof(struct gn_cli, interval_s)},
	{GN_CLI_COUNT, 1000000000, "a number", offsetof(struct gn_cli, count)},
};

/* Store the value of an option that has a number. Returns -1: continue; or an exit code. */
static int apply_number(struct gn_cli *cli, size_t row, const char *text)
{
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		unsigned *value = (unsigned *)((char *)cli + numbers[i].offset);
		unsigned long n;
		char *end;

		if (numbers[i].bit != options[row].bit)
			continue;
		n = strtoul(text, &end, 10);
		if (*text < '0' || *text > '9' || *end || n == 0 || n > numbers[i].max)
			return gn_cli_fail(GN_EXIT_USAGE, "--%s: not %s from 1 to %u (value=%s)",
					   options[row].name, numbers[i].what, numbers[i].max,
					   text);
		*value = (unsigned)n;
	}
	return -1;
}

/* Parse a process id. Returns 0 for another text. */
static int parse_pid(const char *text)
{
	char *end;
	const unsigned long n = strtoul(text, &end, 10);

	return *text >= '0' && *text <= '9' && !*end && n <= INT_MAX ? (int)n : 0;
}

static void apply_option(struct gn_cli *cli, size_t row, const char *arg)
{
	const unsigned bit = options[row].bit;

	if (options[row].text)
		*(const char **)((char *)cli + options[row].text) = arg;
	else if (options[row].flag)
		*(bool *)((char *)cli + options[row].flag) = true;
	else if (bit == GN_CLI_PLUGIN_DIR)
		gn_cli_add_word(&cli->topology.plugin_dirs, arg);
	else if (bit == GN_CLI_ROLE)
		gn_cli_add_word(&cli->topology.roles, arg);
	else if (bit == GN_CLI_SET)
		gn_cli_add_word(&cli->topology.sets, arg);
	else if (bit == GN_CLI_PID)
		cli->pid = parse_pid(arg);
	else if (bit == GN_CLI_VERBOSE)
		cli->topology.verbose++;
}

static size_t row_of(int value)
{
	if (value >= LONG_ONLY)
		return (size_t)(value - LONG_ONLY);
	for (size_t i = 0; i < N_OPTIONS; i++)
		if (options[i].letter == value)
			return i;
	return N_OPTIONS;
}

/*
 * Parse options from argv[optind] on. Returns -1: continue; or the exit code after --help or an
 * error.
 */
static int parse(struct gn_cli *cli, const struct gn_command *command, int argc, char **argv,
		 unsigned accepts)
{
	char letters[2 * N_OPTIONS + 4];
	struct option longs[N_OPTIONS + 1];
	int value;

	build_getopt(accepts, !command, letters, longs);
	opterr = 0;
	while ((value = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		size_t row = row_of(value);

		if (value == ':')
			return gn_cli_fail(GN_EXIT_USAGE, "option %s needs a value; %s",
					   argv[optind - 1], hint(cli));
		if (value == '?' && optopt && optopt < LONG_ONLY)
			return gn_cli_fail(GN_EXIT_USAGE, "unknown option -%c; %s", optopt,
					   hint(cli));
		if (value == '?' && optopt) /* optopt is a long option: LONG_ONLY plus its row */
			return gn_cli_fail(GN_EXIT_USAGE, "option --%s takes no value; %s",
					   options[optopt - LONG_ONLY].name, hint(cli));
		if (value == '?' || row == N_OPTIONS)
			return gn_cli_fail(GN_EXIT_USAGE, "unknown option %s; %s", argv[optind - 1],
					   hint(cli));
		if (options[row].bit == GN_CLI_HELP)
			return command ? help_command(command) : help();
		if (options[row].bit == GN_CLI_VERSION)
			return gn_cli_version(cli);
		apply_option(cli, row, optarg);
		if (options[row].bit == GN_CLI_PID && !cli->pid)
			return gn_cli_fail(GN_EXIT_USAGE, "--pid: not a process id (value=%s)",
					   optarg);
		if (apply_number(cli, row, optarg) >= 0)
			return GN_EXIT_USAGE;
	}
	return -1;
}

static const struct gn_command *find_command(const char *name)
{
	const struct gn_command *c = commands;

	while (c->name && strcmp(c->name, name))
		c++;
	return c->name ? c : NULL;
}

static int unknown_command(const struct gn_cli *cli, const char *name)
{
	const struct gn_command *nearest = NULL;
	int errors = GN_NEAR_NONE;

	for (const struct gn_command *c = commands; c->name; c++)
		if (gn_config_nearer(name, c->name, &errors))
			nearest = c;
	if (nearest)
		return gn_cli_fail(GN_EXIT_USAGE, "unknown command \"%s\"; did you mean \"%s\"?",
				   name, nearest->name);
	return gn_cli_fail(GN_EXIT_USAGE, "unknown command \"%s\"; %s", name, hint(cli));
}

static int dispatch(struct gn_cli *cli, int argc, char **argv)
{
	const struct gn_command *command;
	int code;

	code = parse(cli, NULL, argc, argv, GLOBAL | GN_CLI_VERSION);
	if (code >= 0)
		return code;
	if (optind == argc)
		return gn_cli_fail(GN_EXIT_USAGE, "no command given; %s", hint(cli));
	command = find_command(argv[optind]);
	if (!command && !strcmp(argv[optind], "help"))
		return help();
	if (!command && access(argv[optind], R_OK) == 0)
		return gn_cli_fail(GN_EXIT_USAGE,
				   "unknown command \"%s\"; to run that file: gantry run %s",
				   argv[optind], argv[optind]);
	if (!command)
		return unknown_command(cli, argv[optind]);
	cli->command = command->name;
	argc -= optind;
	argv += optind;
	optind = 0; /* restart getopt: with 0, glibc reads the option letters again */
	code = command->accepts & GN_CLI_RAW ? -1
					     : parse(cli, command, argc, argv, command->accepts);
	if (code >= 0)
		return code;
	if (command->accepts & GN_CLI_RAW)
		optind = 1;
	for (int i = optind; i < argc; i++)
		gn_cli_add_word(&cli->args, argv[i]);
	if (cli->args.n < command->min_args || cli->args.n > command->max_args)
		return gn_cli_fail(GN_EXIT_USAGE, "usage: gantry %s [OPTION]...%s%s; %s",
				   command->name, *command->args ? " " : "", command->args,
				   hint(cli));
	gn_log_set_level(cli->topology.verbose > 1 ? GN_LOG_DEBUG
			 : cli->topology.verbose   ? GN_LOG_INFO
						   : GN_LOG_WARN);
	return command->run(cli);
}

/*
 * Raise the soft limit of file descriptors to the hard limit. The usual soft limit of 1024 protects
 * programs that call select(2). A role with all its sessions needs more. Administrators can set the
 * hard limit.
 */
static void raise_fd_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur == limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/*
 * Open missing standard streams on /dev/null, so that reports and logs are not written to a file
 * that is opened later with the same number.
 */
static void keep_standard_streams(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

int main(int argc, char **argv)
{
	struct gn_cli cli = {.topology = {.probe = true}};
	int code;

	keep_standard_streams();
	unsetenv("LTDL_LIBRARY_PATH");
	if (getauxval(AT_SECURE))
		return gn_cli_fail(GN_EXIT_USAGE, "cannot run with more rights than the user has "
						  "(setuid, setgid or file capabilities)");
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a write beyond the file size limit then fails with EFBIG */
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	raise_fd_limit();
	code = dispatch(&cli, argc, argv);
	gn_strlist_fini(&cli.topology.plugin_dirs);
	gn_strlist_fini(&cli.topology.roles);
	gn_strlist_fini(&cli.topology.sets);
	gn_strlist_fini(&cli.args);
	return end_output(code);
}
