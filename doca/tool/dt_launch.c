/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dt_launch.c - starts the programs in their order, and waits for them
 *
 * The next program starts when the one before has a running Comch server, has ended, or has run for
 * a second. A program that hangs is killed. After a crash or a hang the others have five seconds to
 * end. The programs stay in the process group of this one, so that they can read the terminal and
 * get its signals. What a program leaves running becomes a child of this process, which kills it at
 * the end of the run.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tool/dt.h"

enum { POLL_MS = 10, START_MS = 1000, GRACE_MS = 5000 };

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void pause_ms(unsigned ms)
{
	struct timespec t = {0, (long)ms * 1000000};

	nanosleep(&t, NULL);
}

/* -- what cannot be checked -- */

/* Find the file of a program as execvp(3) does. Returns false if there is none. */
static bool find_program(const char *name, char path[PATH_MAX])
{
	const char *dirs = getenv("PATH"), *end;

	if (strchr(name, '/'))
		return snprintf(path, PATH_MAX, "%s", name) < PATH_MAX && !access(path, X_OK);
	for (; dirs && *dirs; dirs = *end ? end + 1 : end) {
		end = strchrnul(dirs, ':');
		if (snprintf(path, PATH_MAX, "%.*s/%s", (int)(end - dirs), dirs, name) < PATH_MAX &&
		    !access(path, X_OK))
			return true;
	}
	return false;
}

/* True if the file is an executable of this machine without a dynamic linker. */
static bool is_static(const char *path)
{
	Elf64_Ehdr header;
	Elf64_Phdr segment;
	bool is_elf, has_linker = false;
	int fd = open(path, O_RDONLY | O_CLOEXEC), i;

	if (fd < 0)
		return false;
	is_elf = pread(fd, &header, sizeof(header), 0) == (ssize_t)sizeof(header) &&
		 !memcmp(header.e_ident, ELFMAG, SELFMAG) && header.e_ident[EI_CLASS] == ELFCLASS64;
	for (i = 0; is_elf && i < header.e_phnum; i++)
		if (pread(fd, &segment, sizeof(segment),
			  (off_t)(header.e_phoff + (size_t)i * sizeof(segment))) ==
			    (ssize_t)sizeof(segment) &&
		    segment.p_type == PT_INTERP)
			has_linker = true;
	close(fd);
	return is_elf && !has_linker;
}

static int judge_programs(const struct dt_options *o)
{
	char path[PATH_MAX];
	size_t i;

	for (i = 0; i < o->n_programs; i++) {
		const char *name = o->programs[i].argv[0];

		if (!find_program(name, path))
			return dt_fail(DT_USAGE, "%s: cannot run the program: %s", name,
				       strerror(errno));
		if (is_static(path))
			return dt_fail(
				DT_USAGE,
				"%s: the program is statically linked: link it with shared libraries",
				name);
	}
	return 0;
}

/* -- processes -- */

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
	(void)number;
	interrupted = 1;
}

static void catch_signals(void)
{
	const struct sigaction action = {.sa_handler = on_signal};

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
}

static void set_number(const char *name, uint64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	setenv(name, text, 1);
}

/* The address sanitizer wants to be the first library, although it works as a later one as well. */
static void allow_asan(void)
{
	const char *before = getenv("ASAN_OPTIONS");
	char options[4096];

	snprintf(options, sizeof(options), "%s%sverify_asan_link_order=0", before ? before : "",
		 before && *before ? ":" : "");
	setenv("ASAN_OPTIONS", options, 1);
}

static void prepare(const struct dt_program *p, const struct dt_options *o, const char *library,
		    const char *records, const uint64_t *seed)
{
	const char *before = getenv("LD_PRELOAD");
	char preload[2 * PATH_MAX];

	snprintf(preload, sizeof(preload), "%s%s%s", before ? before : "",
		 before && *before ? ":" : "", library);
	setenv("LD_PRELOAD", preload, 1);
	allow_asan();
	setenv("GANTRY_DOCA_CHECK", records, 1);
	set_number("GANTRY_DOCA_CHECK_STALL_MS", o->stall_ms);
	if (o->trace || o->svg)
		setenv("GANTRY_DOCA_CHECK_TRACE", "1", 1);
	if (o->protect)
		setenv("GANTRY_DOCA_CHECK_PROTECT", "1", 1);
	if (seed) {
		set_number("GANTRY_DOCA_CHECK_SEED", *seed);
		set_number("GANTRY_DOCA_CHECK_PROGRAM", (uint64_t)(p - o->programs));
	}
	unsetenv("GANTRY_DOCA_CHECK_TROUBLE");
	if (o->trouble)
		setenv("GANTRY_DOCA_CHECK_TROUBLE", o->trouble, 1);
	/* the profile belongs to one side, but each program needs the devices of its own side */
	if (o->n_programs > 1)
		unsetenv("GANTRY_DOCA_PROFILE");
	if (o->card)
		setenv("GANTRY_DOCA_CHECK_CARD", o->card, 1);
}

static bool start(struct dt_program *p, const struct dt_options *o, const char *library,
		  const char *records, const uint64_t *seed)
{
	*p = (struct dt_program){.argv = p->argv};
	p->pid = fork();
	if (p->pid < 0)
		return false;
	if (p->pid == 0) {
		/* the program gantry, which started this one, ignores them */
		signal(SIGPIPE, SIG_DFL);
		signal(SIGXFSZ, SIG_DFL);
		prepare(p, o, library, records, seed);
		execvp(p->argv[0], p->argv);
		dt_fail(0, "%s: cannot run the program: %s", p->argv[0], strerror(errno));
		_exit(127);
	}
	return true;
}

/* True if the process has reported that a server runs. */
static bool is_ready(const char *records, pid_t pid)
{
	FILE *f = fopen(records, "re");
	char line[4096];
	bool ready = false;
	int of;

	while (f && !ready && fgets(line, sizeof(line), f))
		ready = sscanf(line, "ready\t%d", &of) == 1 && of == pid;
	if (f)
		fclose(f);
	return ready;
}

static bool crashed(const struct dt_program *p)
{
	return p->has_ended && !p->stopped && (p->hung || WIFSIGNALED(p->status));
}

static bool reap(struct dt_program *p)
{
	if (!p->has_ended && waitpid(p->pid, &p->status, WNOHANG) == p->pid)
		p->has_ended = true;
	return p->has_ended;
}

static void kill_program(struct dt_program *p)
{
	kill(p->pid, SIGKILL);
	waitpid(p->pid, &p->status, 0);
	p->has_ended = true;
}

/* Kill what the programs have left running. Each pass finds the children of those it has killed. */
static void kill_leftovers(void)
{
	char path[64];
	FILE *f;
	int pid, n;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	do {
		n = 0;
		f = fopen(path, "re");
		while (f && fscanf(f, "%d", &pid) == 1) {
			kill(pid, SIGKILL);
			waitpid(pid, NULL, 0);
			n++;
		}
		if (f)
			fclose(f);
	} while (n);
}

static void wait_for_start(struct dt_program *p, const char *records)
{
	const uint64_t end = now_ms() + START_MS;

	while (!reap(p) && !is_ready(records, p->pid) && !interrupted && now_ms() < end)
		pause_ms(POLL_MS);
}

static void wait_for_end(struct dt_options *o)
{
	uint64_t end = now_ms() + o->timeout_s * 1000ull;
	bool is_grace = false, any;
	size_t i;

	for (;;) {
		any = false;
		for (i = 0; i < o->n_programs; i++) {
			any |= !reap(&o->programs[i]);
			if (crashed(&o->programs[i]) && !is_grace) {
				is_grace = true;
				end = now_ms() + GRACE_MS < end ? now_ms() + GRACE_MS : end;
			}
		}
		if (!any)
			return;
		if (interrupted || now_ms() >= end)
			break;
		pause_ms(POLL_MS);
	}
	for (i = 0; i < o->n_programs; i++) {
		if (o->programs[i].has_ended)
			continue;
		kill_program(&o->programs[i]);
		o->programs[i].stopped = is_grace || interrupted;
		o->programs[i].hung = !o->programs[i].stopped;
	}
}

int dt_launch(struct dt_options *o, const char *library, const char *records, const uint64_t *seed)
{
	int code = judge_programs(o);
	size_t i;

	if (code)
		return code;
	if (access(library, R_OK))
		return dt_fail(
			DT_USAGE,
			"%s: the validation layer is missing: install it, or build with DOCA",
			library);
	unlink(records);
	catch_signals();
	for (i = 0; i < o->n_programs; i++) {
		if (!start(&o->programs[i], o, library, records, seed)) {
			code = dt_fail(DT_USAGE, "%s: cannot start the program: %s",
				       o->programs[i].argv[0], strerror(errno));
			kill_leftovers();
			return code;
		}
		if (i + 1 < o->n_programs)
			wait_for_start(&o->programs[i], records);
	}
	wait_for_end(o);
	kill_leftovers();
	for (i = 0; i < o->n_programs; i++)
		if (interrupted || crashed(&o->programs[i]))
			code = DT_CRASHED;
	return code;
}

const char *dt_ending(const struct dt_program *p)
{
	static char text[64];

	if (p->hung)
		return "hung: killed at the time limit";
	if (p->stopped)
		return interrupted ? "killed, because of a signal"
				   : "killed, because another program crashed";
	if (WIFSIGNALED(p->status))
		snprintf(text, sizeof(text), "crashed: signal %d (%s)", WTERMSIG(p->status),
			 strsignal(WTERMSIG(p->status)));
	else
		snprintf(text, sizeof(text), "exit status %d", WEXITSTATUS(p->status));
	return text;
}

bool dt_ended_well(const struct dt_program *p)
{
	return p->status == 0 && !p->hung && !p->stopped;
}
