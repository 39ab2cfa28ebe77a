/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <gantry/random.h>

#include "clients/served.h"
#include "unity.h"

#define SERVERS 4
#define PATIENCE_MS 60000

char served_file[128];
char served_dir[64];
unsigned served_files;
static char gate[128]; /* "": the backend has no gate */

static struct {
	char role[16];
	pid_t pid;
} servers[SERVERS];

static const char *or_empty(const char *text)
{
	return text ? text : "";
}

#ifdef SERVED_TCP
/* The address contains the number of the process, because other tests use TCP at the same time. */
static void print_devices(FILE *f, const char *settings)
{
	unsigned pid = (unsigned)getpid();
	char address[32];

	snprintf(address, sizeof(address), "127.%u.%u.%u", pid >> 16 & 255, pid >> 8 & 255,
		 pid & 255);
	fprintf(f,
		"devices = { front = { transport = \"tcp\"; auth = \"none\"; %s\n"
		"              services = { volume = \"%s:4791\"; }; };\n"
		"            back = { transport = \"tcp\"; auth = \"none\"; %s\n"
		"              services = { store = \"%s:4792\"; }; }; };\n",
		settings, address, settings, address);
}
#else
static void print_devices(FILE *f, const char *settings)
{
	fprintf(f,
		"devices = { front = { transport = \"shm-comch\"; dir = \"%s\"; pci = \"03:00.0\"; %s };\n"
		"            back = { transport = \"shm-comch\"; dir = \"%s\"; pci = \"04:00.0\"; %s }; };\n",
		served_dir, settings, served_dir, settings);
}
#endif

void served_conf(const struct served_options *o)
{
	FILE *f = fopen(served_file, "we");

	TEST_ASSERT_NOT_NULL(f);
	fprintf(f, "runtime = { stat = false; };\n");
	print_devices(f, or_empty(o->device));
	fprintf(f,
		"roles = {\n"
		"  store = { role = \"target\"; listen = { device = \"back\"; name = \"store\"; %s };\n"
		"            backend = { %s }; stages = ( %s ); };\n"
		"  bridge = { role = \"gateway\"; listen = { device = \"front\"; name = \"volume\"; %s };\n"
		"             connect = { device = \"back\"; name = \"store\"; %s }; stages = ( %s ); };\n"
		"  load = { role = \"initiator\"; connect = { device = \"front\"; name = \"volume\"; %s };\n"
		"           stages = ( %s ); };\n"
		"  direct = { role = \"initiator\"; connect = { device = \"back\"; name = \"store\"; %s }; };\n"
		"};\n",
		or_empty(o->listen),
		o->backend ? o->backend : "type = \"memory\"; size = \"16MiB\";",
		or_empty(o->store_stages), or_empty(o->listen), or_empty(o->bridge),
		or_empty(o->bridge_stages), or_empty(o->connect), or_empty(o->load_stages),
		or_empty(o->connect));
	fclose(f);
}

void served_begin(const struct served_options *options)
{
	static const struct served_options none = {.backend = NULL};
	const char *plugins = getenv("GANTRY_PLUGINS"), *build = getenv("top_builddir");
	char path[1024];

	TEST_ASSERT_NOT_NULL_MESSAGE(getenv("GANTRY"), "GANTRY names no program");
	/* the plugins of the build and the test plugins */
	snprintf(path, sizeof(path), "%s:%s/tests/.libs", or_empty(plugins), or_empty(build));
	if (plugins)
		setenv("GANTRY_PLUGIN_PATH", path, 1);
	strcpy(served_dir, "/tmp/gantry-clients.XXXXXX");
	TEST_ASSERT_NOT_NULL(mkdtemp(served_dir));
	snprintf(served_file, sizeof(served_file), "%s/served.conf", served_dir);
	served_conf(options ? options : &none);
}

static int slot_of(const char *role)
{
	for (int i = 0; i < SERVERS; i++)
		if (!strcmp(servers[i].role, role))
			return i;
	return -1;
}

pid_t served_start(const char *role)
{
	int i = slot_of("");
	pid_t pid;

	TEST_ASSERT_GREATER_OR_EQUAL(0, i);
	pid = fork();
	TEST_ASSERT_GREATER_OR_EQUAL(0, pid);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (served_files &&
		    setrlimit(RLIMIT_NOFILE, &(struct rlimit){served_files, served_files}) != 0)
			_exit(126);
		dup2(STDERR_FILENO, STDOUT_FILENO); /* standard output is for TAP only */
		execl(getenv("GANTRY"), "gantry", "run", served_file, "--role", role, (char *)NULL);
		_exit(127);
	}
	snprintf(servers[i].role, sizeof(servers[i].role), "%s", role);
	servers[i].pid = pid;
	return pid;
}

pid_t served_pid(const char *role)
{
	int i = slot_of(role);

	TEST_ASSERT_GREATER_OR_EQUAL(0, i);
	return servers[i].pid;
}

void served_signal(const char *role, int sig)
{
	int i = slot_of(role);

	TEST_ASSERT_GREATER_OR_EQUAL(0, i);
	kill(servers[i].pid, sig);
}

static void end_server(int i, int sig)
{
	kill(servers[i].pid, sig);
	waitpid(servers[i].pid, NULL, 0);
	servers[i].role[0] = '\0';
}

void served_kill(const char *role, int sig)
{
	int i = slot_of(role);

	TEST_ASSERT_GREATER_OR_EQUAL(0, i);
	end_server(i, sig);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

/* Uses no assertions, because a failed one would skip the rest of this clean-up. */
void served_end(void)
{
	for (int i = 0; i < SERVERS; i++)
		if (servers[i].role[0]) {
			kill(servers[i].pid, SIGCONT);
			end_server(i, SIGKILL);
		}
	if (served_dir[0])
		nftw(served_dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	served_dir[0] = '\0';
	gate[0] = '\0';
}

void served_gated(struct served_options options)
{
	char backend[256];
	int fd;

	served_begin(NULL);
	snprintf(gate, sizeof(gate), "%s/gate", served_dir);
	snprintf(backend, sizeof(backend), "type = \"gated\"; gate = \"%s\";", gate);
	options.backend = backend;
	served_conf(&options);
	fd = open(gate, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	TEST_ASSERT_GREATER_OR_EQUAL(0, fd);
	close(fd);
	served_start("store");
	served_start("bridge");
}

void served_open_gate(void)
{
	if (gate[0])
		remove(gate);
}

void served_wait_gate(struct gantry_queue *queue)
{
	uint64_t until = served_ms() + PATIENCE_MS;
	char reached[160];

	snprintf(reached, sizeof(reached), "%s.reached", gate);
	while (access(reached, F_OK) != 0) {
		if (queue)
			gantry_queue_wait(queue, 1);
		TEST_ASSERT_TRUE_MESSAGE(served_ms() < until,
					 "no IO reached the gate of the backend");
	}
	remove(reached);
}

void served_finish(struct gantry_queue **queue, struct gantry_volume **volume)
{
	served_open_gate(); /* a close waits for IOs that the gate holds */
	gantry_queue_close(queue);
	gantry_volume_close(volume);
	served_end();
}

const char *served_uri(const char *name, const char *more)
{
	static char uri[512];
	int front = !strcmp(name, "volume");

	snprintf(uri, sizeof(uri), "gantry:///%s?device=wire&device.dir=%s&device.pci=%s%s", name,
		 served_dir, front ? "03:00.0" : "04:00.0", more);
	return uri;
}

uint64_t served_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

void served_done(void *arg, int result)
{
	struct served_io *io = arg;

	io->n++;
	io->result = result;
}

void served_repeat(void (*test)(void), const char *name, int line)
{
	const char *rounds = getenv("GANTRY_ROUNDS");

	for (long n = rounds ? strtol(rounds, NULL, 10) : 1; n > 0; n--)
		UnityDefaultTestRun(test, name, line);
}

void served_wait(struct gantry_queue *queue, const struct served_io *ios, int n, int wanted)
{
	uint64_t until = served_ms() + PATIENCE_MS;

	for (;;) {
		int done = 0;

		for (int i = 0; i < n; i++) {
			TEST_ASSERT_LESS_OR_EQUAL_INT(1, ios[i].n);
			done += ios[i].n;
		}
		if (done >= wanted)
			return;
		TEST_ASSERT_TRUE_MESSAGE(served_ms() < until, "IOs do not complete");
		gantry_queue_wait(queue, 1000);
	}
}

static int finish(struct gantry_queue *queue, int rc, struct served_io *io)
{
	if (rc)
		return rc;
	served_wait(queue, io, 1, 1);
	return io->result;
}

int served_read(struct gantry_queue *queue, void *buf, uint64_t length, uint64_t offset)
{
	struct served_io io = {0, 1};

	return finish(queue, gantry_queue_read(queue, buf, length, offset, served_done, &io), &io);
}

int served_write(struct gantry_queue *queue, const void *buf, uint64_t length, uint64_t offset)
{
	struct served_io io = {0, 1};

	return finish(queue, gantry_queue_write(queue, buf, length, offset, 0, served_done, &io),
		      &io);
}

int served_flush(struct gantry_queue *queue)
{
	struct served_io io = {0, 1};

	return finish(queue, gantry_queue_flush(queue, served_done, &io), &io);
}

void served_fill(void *buf, uint64_t bytes, uint64_t seed)
{
	struct gantry_random random;
	uint64_t word;

	gantry_random_seed(&random, seed);
	for (uint64_t i = 0; i + sizeof(word) <= bytes; i += sizeof(word)) {
		word = gantry_random_next(&random);
		memcpy((char *)buf + i, &word, sizeof(word));
	}
}

uint64_t served_check(const void *buf, uint64_t bytes, uint64_t seed)
{
	struct gantry_random random;
	uint64_t word;

	gantry_random_seed(&random, seed);
	for (uint64_t i = 0; i + sizeof(word) <= bytes; i += sizeof(word)) {
		word = gantry_random_next(&random);
		if (memcmp((const char *)buf + i, &word, sizeof(word)))
			return i;
	}
	return bytes;
}
