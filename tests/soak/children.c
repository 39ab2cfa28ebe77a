/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * children.c - the processes of a run. Each is a child of the driver, which signals it by its pid.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "soak/driver.h"

#define START_MS 5000 /* limit until a process has installed its handler */

const char *const child_kinds[CHILD_KINDS] = {"target", "gateway", "client",
					      "nbdkit", "relay",   "osd"};

void children_init(struct driver *d)
{
	static const unsigned first[CHILD_KINDS] = {TARGET, GATEWAY, CLIENT, NBDKIT, RELAY, OSD};
	struct child *c;

	for (unsigned i = 0; i < CHILDREN; i++) {
		c = &d->children[i];
		for (unsigned kind = 0; kind < CHILD_KINDS; kind++)
			if (i >= first[kind])
				c->kind = (enum child_kind)kind;
		c->index = i - first[c->kind];
		snprintf(c->name, sizeof(c->name), "%s%u", child_kinds[c->kind], c->index);
	}
	prctl(PR_SET_CHILD_SUBREAPER, 1);
}

static void run_child(struct driver *d, const struct child *c, const char *seed)
{
	char log[128], fd[16], index[16];
	int out;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setpgid(0, 0); /* SIGINT of a terminal goes to the driver only */
	snprintf(log, sizeof(log), "%s/%s.log", d->dir, c->name);
	out = open(log, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
	dup2(out, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);
	if (c->kind == CHILD_CLIENT || c->kind == CHILD_RELAY)
		fcntl(d->journal_fd, F_SETFD, 0);
	if (c->kind >= CHILD_NBDKIT) {
		service_exec(d, c->kind);
		_exit(127);
	}
	if (c->kind != CHILD_CLIENT) {
		execl(d->program, "gantry", "run", d->conf, "--role", c->name, (char *)NULL);
		_exit(127);
	}
	snprintf(fd, sizeof(fd), "%d", d->journal_fd);
	snprintf(index, sizeof(index), "%u", c->index);
	execl(d->client, "client", fd, index, d->conf, c->name, seed, (char *)NULL);
	_exit(127);
}

static unsigned count(const char *path, const char *text)
{
	char line[2048];
	unsigned n = 0;
	FILE *f = fopen(path, "re");

	while (f && fgets(line, sizeof(line), f))
		n += strstr(line, text) != NULL;
	if (f)
		fclose(f);
	return n;
}

static unsigned times_listened(const struct driver *d, const struct child *c)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s.log", d->dir, c->name);
	return count(path, " listening ");
}

void child_start(struct driver *d, struct child *c)
{
	struct soak_client *client = &d->journal->clients[c->index];
	uint64_t state = d->options.seed + c->starts++ * CHILDREN + c->kind * SOAK_CLIENTS +
			 c->index;
	sigset_t signals;
	char seed[24];

	snprintf(seed, sizeof(seed), "%llu", (unsigned long long)soak_random(&state));
	if (c->kind == CHILD_CLIENT) {
		for (unsigned i = 0; i < SOAK_SLOTS; i++)
			atomic_store(&client->slot[i], 0);
		atomic_store(&client->state, SOAK_OPENING);
		atomic_store(&client->since, soak_ms());
	}
	service_before(d, c->kind);
	c->listened = times_listened(d, c);
	c->ending = c->stopped = 0;
	c->started = soak_ms();
	c->continue_at = c->restart_at = c->term_at = 0;
	/*
	 * a SIGTERM that comes before exec() must end the child, not run the handler of the driver
	 */
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	c->pid = fork();
	if (c->pid == 0) {
		signal(SIGINT, SIG_DFL);
		signal(SIGTERM, SIG_DFL);
		sigprocmask(SIG_UNBLOCK, &signals, NULL);
		run_child(d, c, seed);
	}
	sigprocmask(SIG_UNBLOCK, &signals, NULL);
	if (c->pid < 0) {
		soak_report(d->journal, SOAK_DIED, "%s: fork: %s", c->name, strerror(errno));
		c->pid = 0;
	}
}

static void report_death(struct driver *d, const struct child *c, int status)
{
	soak_report(d->journal, SOAK_DIED, "%s (pid %d) ended unexpectedly: %s %d%s", c->name,
		    (int)c->pid, WIFEXITED(status) ? "exit status" : "signal",
		    WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status),
		    c->ending == SIGTERM ? ", after SIGTERM" : "");
}

void child_kill(struct driver *d, struct child *c, int restart_ms)
{
	int status;

	if (c->kind == CHILD_TARGET)
		atomic_fetch_add(&d->journal->target_kills, 1);
	c->ending = SIGKILL;
	kill(c->pid, SIGKILL);
	if (waitpid(c->pid, &status, 0) == c->pid &&
	    !(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL))
		report_death(d, c, status);
	c->pid = 0;
	c->stopped = 0;
	c->continue_at = c->term_at = 0;
	c->restart_at = restart_ms < 0 ? 0 : soak_ms() + (uint64_t)restart_ms;
	d->kills[c->kind]++;
}

void child_stop(struct driver *d, struct child *c, unsigned ms)
{
	kill(c->pid, SIGSTOP);
	c->stopped = 1;
	c->continue_at = soak_ms() + ms;
	d->stops++;
}

void child_term(struct driver *d, struct child *c, int restart_ms)
{
	kill(c->pid, SIGCONT);
	c->stopped = 0;
	c->continue_at = 0;
	c->ending = SIGTERM;
	c->term_at = soak_ms();
	c->restart_at = restart_ms < 0 ? 0 : soak_ms() + (uint64_t)restart_ms;
	kill(c->pid, SIGTERM);
	d->terms++;
}

static void reap(struct driver *d, struct child *c)
{
	int status, early, aborted;

	if (!c->pid || waitpid(c->pid, &status, WNOHANG) != c->pid)
		return;
	/* SIGTERM arrived before the process had installed its handler */
	early = WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM &&
		c->term_at < c->started + START_MS;
	/* an OSD of Ceph 16 can fail an assertion when it runs again: is_primary() */
	aborted = c->kind == CHILD_OSD && WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
	d->osd_aborts += (unsigned)aborted;
	if (!aborted && (c->ending != SIGTERM || (status != 0 && !early)))
		report_death(d, c, status);
	c->pid = 0;
	c->stopped = 0;
	c->continue_at = c->term_at = 0;
	if (aborted && !c->ending)
		c->restart_at = soak_ms();
}

/*
 * Write the state of all processes to DIR/NAME.stack: for each thread the state in the kernel, then
 * the stacks if gdb is installed. gdb is ended after some seconds: it can block without end on a
 * process that has threads of io_uring.
 */
static void dump_stacks(struct driver *d)
{
	char command[512];

	for (unsigned i = 0; i < CHILDREN; i++) {
		if (!d->children[i].pid)
			continue;
		snprintf(
			command, sizeof(command),
			"exec >%s/%s.stack 2>&1 </dev/null; cd /proc/%d/task && grep -s . */comm */wchan */syscall */schedstat; "
			"timeout -k 1 %d gdb -nx -p %d -batch -ex 'thread apply all bt' &",
			d->dir, d->children[i].name, (int)d->children[i].pid,
			d->options.bug[0] ? 3 : 20, (int)d->children[i].pid);
		if (system(command))
			continue;
	}
	poll(NULL, 0, d->options.bug[0] ? 4000 : 22000);
}

static int hangs(struct driver *d, const char *name, const char *what, uint64_t since)
{
	if (!since || soak_ms() < since + d->options.hang_ms)
		return 0;
	soak_report(d->journal, SOAK_HANG, "%s: %s for %llu ms (limit %llu)", name, what,
		    (unsigned long long)(soak_ms() - since),
		    (unsigned long long)d->options.hang_ms);
	dump_stacks(d);
	return 1;
}

static int find_hang(struct driver *d, struct child *c)
{
	struct soak_client *client = &d->journal->clients[c->index];
	uint32_t state;
	char text[64];

	if (!c->pid || c->stopped)
		return 0;
	if (hangs(d, c->name, "does not end after SIGTERM", c->term_at))
		return 1;
	if (c->kind != CHILD_CLIENT)
		return 0;
	for (unsigned i = 0; i < SOAK_SLOTS; i++) {
		snprintf(text, sizeof(text), "an IO of slot %u has not completed", i);
		if (hangs(d, c->name, text, atomic_load(&client->slot[i])))
			return 1;
	}
	state = atomic_load(&client->state);
	if (state != SOAK_OPENING && state != SOAK_SETTLING && state != SOAK_CLOSING)
		return 0;
	snprintf(text, sizeof(text), "is %s", soak_states[state]);
	return hangs(d, c->name, text, atomic_load(&client->since));
}

int tick(struct driver *d)
{
	uint64_t now = soak_ms();

	for (unsigned i = 0; i < CHILDREN; i++) {
		struct child *c = &d->children[i];

		reap(d, c);
		if (c->continue_at && now >= c->continue_at) {
			kill(c->pid, SIGCONT);
			c->stopped = 0;
			c->continue_at = 0;
		}
		if (!c->pid && c->restart_at && now >= c->restart_at)
			child_start(d, c);
		if (find_hang(d, c))
			break;
	}
	if (d->options.limit && now > d->began + d->options.limit * 1000)
		soak_report(d->journal, SOAK_HANG, "the run is not finished after %llu s",
			    (unsigned long long)d->options.limit);
	d->failed |= atomic_load(&d->journal->n_records) != 0;
	return d->failed || *d->interrupted;
}

int wait_ms(struct driver *d, uint64_t ms)
{
	uint64_t end = soak_ms() + ms;

	do {
		if (tick(d))
			return -1;
		poll(NULL, 0, 2);
	} while (soak_ms() < end);
	return 0;
}

int wait_for(struct driver *d, int (*true_yet)(struct driver *d), const char *what)
{
	uint64_t began = soak_ms();

	while (!true_yet(d)) {
		if (wait_ms(d, 1) || hangs(d, "driver", what, began))
			return -1;
	}
	if (soak_ms() - began > d->longest_wait) {
		d->longest_wait = soak_ms() - began;
		d->longest_what = what;
		d->longest_at = began - d->began;
	}
	return 0;
}

int all_run(struct driver *d)
{
	for (unsigned i = 0; i < CHILDREN; i++)
		if (d->children[i].used &&
		    (!d->children[i].pid || d->children[i].stopped || d->children[i].ending))
			return 0;
	return 1;
}

int all_listen(struct driver *d)
{
	for (unsigned i = 0; i < CLIENT; i++) {
		const struct child *c = &d->children[i];

		if (c->used && (!c->pid || times_listened(d, c) == c->listened))
			return 0;
	}
	return 1;
}

int no_child(struct driver *d)
{
	for (unsigned i = 0; i < CHILDREN; i++)
		if (d->children[i].pid)
			return 0;
	return 1;
}

static int no_client(struct driver *d)
{
	for (unsigned i = CLIENT; i < NBDKIT; i++)
		if (d->children[i].pid)
			return 0;
	return 1;
}

static int no_server(struct driver *d)
{
	for (unsigned i = 0; i < CLIENT; i++)
		if (d->children[i].pid)
			return 0;
	return 1;
}

static void term_some(struct driver *d, unsigned first, unsigned end)
{
	for (unsigned i = first; i < end; i++)
		if (d->children[i].pid && d->children[i].ending != SIGTERM)
			child_term(d, &d->children[i], -1);
}

int end_all(struct driver *d)
{
	for (unsigned i = 0; i < CHILDREN; i++)
		d->children[i].restart_at = 0;
	term_some(d, CLIENT, NBDKIT);
	if (wait_for(d, no_client, "wait for the end of all clients"))
		return -1;
	term_some(d, 0, CLIENT);
	if (wait_for(d, no_server, "wait for the end of all servers"))
		return -1;
	term_some(d, NBDKIT, CHILDREN);
	return wait_for(d, no_child, "wait for the end of the service");
}

unsigned log_count(struct driver *d, enum child_kind kind, const char *text)
{
	char path[128];
	unsigned n = 0;

	for (unsigned i = 0; i < CHILDREN; i++) {
		if (d->children[i].kind != kind)
			continue;
		snprintf(path, sizeof(path), "%s/%s.log", d->dir, d->children[i].name);
		n += count(path, text);
	}
	return n;
}

void kill_all(struct driver *d)
{
	/* clients first: otherwise they would report the end of their servers */
	for (unsigned i = CHILDREN; i-- > 0;) {
		if (!d->children[i].pid)
			continue;
		kill(d->children[i].pid, SIGKILL);
		waitpid(d->children[i].pid, NULL, 0);
		d->children[i].pid = 0;
	}
}
