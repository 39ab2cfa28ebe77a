/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * component.c - many schedules of each protocol of gantry, at the level of its objects
 *
 *     component NAME|all FIRST LAST [-v] [-m sc|tso|pso] [-j PROCESSES]
 *
 * NAME is the name of a part (part.h), which tests one protocol. Each seed from FIRST to LAST is
 * one schedule. A schedule is bad if a check fails, if all threads are blocked, if it passes more
 * points (sim.h) than the part allows, or if the product faults. The hash
 * covers all traces: the same seeds have the same hash for every value of -j. -v prints each bad
 * seed with its rates. Exit status 1: there was a bad seed.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "part.h"
#include "proc.h"

#define WORKERS 64u

static const struct part *const parts[] = {
#define PART(name) &part_##name,
#include "parts/list.h"
#undef PART
};
#define N_PARTS (sizeof(parts) / sizeof(parts[0]))

/* The results of one worker, in memory that all workers share. */
struct tally {
	uint64_t n, n_bad, first_bad, hash, points;
	double seconds;
	char what[80];
};

static const char *const models[] = {"sc", "tso", "pso"};
static const char *bad; /* why the current schedule is bad; NULL: it is not */
static bool verbose;
static char output[64 << 10];
static int forced_model = -1;
static sigjmp_buf fault;

/* A line of the product's log. */
void sim_log(const char *source, const char *message);
void sim_log(const char *source, const char *message)
{
	if (verbose)
		printf("%s: %s\n", source, message);
}

void part_fail(const char *what)
{
	if (!bad)
		bad = what;
	if (sim_self())
		sim_pause();
	sim_fail("%s", what);
}

static bool is_set(void *flag)
{
	return *(bool *)flag;
}

void part_set(bool *flag)
{
	sim_call();
	*flag = true;
	sim_changed();
}

void part_wait(bool *flag)
{
	sim_call();
	if (!*flag)
		sim_block(is_set, flag, SIM_NEVER);
}

/*
 * Replaces memcpy() of the product by several accesses of memory, so that other threads can run
 * between them.
 */
void *part_memcpy(void *to, const void *from, size_t bytes);
void *part_memcpy(void *to, const void *from, size_t bytes)
{
	sim_plain_copy(to, from, bytes, __builtin_return_address(0));
	return to;
}

void part_shared_memory(size_t bytes, uint8_t **views, size_t n)
{
	int fd = memfd_create("part", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0)
		sim_fail("no memory for a part");
	for (size_t i = 0; i < n; i++) {
		views[i] = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd,
				0);
		if (views[i] == MAP_FAILED)
			sim_fail("no memory for a part");
	}
	close(fd);
}

static void on_fault(int signal)
{
	bad = signal == SIGABRT  ? "the simulator aborts"
	      : signal == SIGFPE ? "division by zero"
				 : "access of memory that is not mapped";
	siglongjmp(fault, 1);
}

static void catch_faults(void)
{
	static const int signals[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE};
	static uint8_t stack[64 << 10];
	struct sigaction act = {.sa_handler = on_fault, .sa_flags = SA_ONSTACK | SA_NODEFER};

	sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof(stack)}, NULL);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &act, NULL);
}

/* -- variables of the product -- */

/*
 * Sections of the product's objects, renamed by component.mk. The linker defines both ends of each
 * section that exists.
 */
#define SECTION(name) \
	extern uint8_t __start_product_##name[] __attribute__((weak)), \
		__stop_product_##name[] __attribute__((weak))
SECTION(data);
SECTION(data_rel);
SECTION(data_rel_local);
SECTION(bss);

static const struct section {
	uint8_t *start, *stop;
} sections[] = {
	{__start_product_data, __stop_product_data},
	{__start_product_data_rel, __stop_product_data_rel},
	{__start_product_data_rel_local, __stop_product_data_rel_local},
	{__start_product_bss, __stop_product_bss},
};
#define N_SECTIONS (sizeof(sections) / sizeof(sections[0]))
static uint8_t *initial[N_SECTIONS];

static void save_variables(void)
{
	for (size_t i = 0; i < N_SECTIONS; i++) {
		size_t bytes = (size_t)(sections[i].stop - sections[i].start);

		initial[i] = sim_host_alloc(bytes + 1);
		memcpy(initial[i], sections[i].start, bytes);
	}
}

static void reset_variables(void)
{
	for (size_t i = 0; i < N_SECTIONS; i++)
		memcpy(sections[i].start, initial[i],
		       (size_t)(sections[i].stop - sections[i].start));
}

/* -- a schedule -- */

static void *first_thread(void *arg)
{
	const struct part *part = arg;

	if (part->open)
		part->open();
	for (size_t i = 1; i < PART_THREADS && part->threads[i]; i++)
		if (!sim_thread_start(sim_self()->proc, part->name, part->threads[i], NULL))
			sim_fail("no thread left");
	return part->threads[0](NULL);
}

/*
 * A schedule of a part has fewer points than a run of whole processes (system.c), so threads change
 * and stores drain more often than with sim_rates_draw().
 */
static void draw_rates(const struct part *part, struct sim_rates *r)
{
	*r = (struct sim_rates){
		.model = (enum sim_model)sim_draw(3),
		.plain_points = sim_draw(8) == 0,
		.forwards = sim_draw(2),
		.switch_one_in = 2u << sim_draw(6),
		.call_one_in = 1u << sim_draw(4),
		.drain_one_in = 1u << sim_draw(6),
		.access_ns = 1,
		.call_ns = 100,
	};
	if (part->tune)
		part->tune(r);
	if (forced_model >= 0)
		r->model = (enum sim_model)forced_model;
	sim_rates_set(r);
}

static void run_one(const struct part *part, uint64_t seed, struct tally *tally)
{
	static struct sim_rates rates; /* static: it keeps its value over siglongjmp() */
	uint64_t n_points;

	bad = NULL;
	if (sigsetjmp(fault, 0) == 0) {
		sim_begin(seed);
		draw_rates(part, &rates);
		reset_variables();
		part->begin();
		if (!sim_proc_start(part->name, 1000, first_thread, (void *)(uintptr_t)part))
			sim_fail("no process left");
		switch (sim_run(part->steps, SIM_NEVER)) {
		case SIM_IDLE:
			bad = part->check();
			break;
		case SIM_STUCK:
			bad = "all threads are blocked";
			break;
		case SIM_STEPS:
			bad = "does not end";
			break;
		default:
			break;
		}
	}
	n_points = sim_steps();
	tally->hash += (sim_trace() ^ seed) * 0x9e3779b97f4a7c15u;
	tally->points += n_points;
	sim_begin(0); /* ends all threads, also those of a schedule that did not end */
	sim_procs_clear();
	if (!bad)
		return;
	if (tally->n_bad++ == 0) {
		tally->first_bad = seed;
		snprintf(tally->what, sizeof(tally->what), "%s", bad);
	}
	if (verbose)
		printf("%s: seed %llu: %s (%s%s, switch 1/%u, call 1/%u, drain 1/%u, %llu points)\n",
		       part->name, (unsigned long long)seed, bad, models[rates.model],
		       rates.plain_points ? ", plain" : "", rates.switch_one_in, rates.call_one_in,
		       rates.drain_one_in, (unsigned long long)n_points);
}

/* -- ranges of seeds -- */

static double cpu_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void run_range(const struct part *part, uint64_t first, uint64_t last, struct tally *tally)
{
	double start = cpu_s();

	for (uint64_t seed = first; seed <= last; seed++)
		run_one(part, seed, tally);
	tally->n = last - first + 1;
	tally->seconds = cpu_s() - start;
	fflush(stdout);
}

/*
 * Each worker, even a single one, is a child process. A part maps its memory with MAP_SHARED
 * (part_shared_memory()). If this process ran a part, its later children would inherit that memory,
 * and would use it together.
 */
static void run_workers(const struct part *part, uint64_t first, uint64_t last, unsigned n_workers,
			struct tally *tallies)
{
	uint64_t n = last - first + 1, each = n / n_workers;

	for (unsigned i = 0; i < n_workers; i++) {
		uint64_t from = first + i * each, to = i == n_workers - 1 ? last : from + each - 1;
		pid_t pid = fork();

		if (pid < 0) {
			perror("component: fork");
			exit(2);
		}
		if (pid == 0) {
			run_range(part, from, to, &tallies[i]);
			_exit(0);
		}
	}
	for (int status; wait(&status) > 0;)
		if (status != 0) {
			fprintf(stderr, "component: a worker process failed\n");
			exit(2);
		}
}

/* Returns the number of bad schedules. */
static uint64_t run_part(const struct part *part, uint64_t first, uint64_t last, unsigned n_workers,
			 struct tally *tallies)
{
	struct tally all = {.first_bad = UINT64_MAX};
	char found[160] = "";

	memset(tallies, 0, WORKERS * sizeof(*tallies));
	if (last - first + 1 < n_workers)
		n_workers = 1;
	run_workers(part, first, last, n_workers, tallies);
	for (unsigned i = 0; i < n_workers; i++) {
		const struct tally *t = &tallies[i];

		all.n += t->n;
		all.points += t->points;
		all.hash += t->hash;
		all.n_bad += t->n_bad;
		all.seconds += t->seconds;
		if (t->n_bad != 0 && t->first_bad < all.first_bad) {
			all.first_bad = t->first_bad;
			snprintf(found, sizeof(found), ", first %llu: %s",
				 (unsigned long long)t->first_bad, t->what);
		}
	}
	printf("%s: %llu schedules, %llu bad%s; %.0f a CPU second, %.0f points each, hash %016llx\n",
	       part->name, (unsigned long long)all.n, (unsigned long long)all.n_bad, found,
	       (double)all.n / all.seconds, (double)all.points / (double)all.n,
	       (unsigned long long)all.hash);
	fflush(stdout);
	return all.n_bad;
}

static int usage(void)
{
	fprintf(stderr,
		"usage: component NAME|all FIRST LAST [-v] [-m sc|tso|pso] [-j PROCESSES]\nparts:");
	for (size_t i = 0; i < N_PARTS; i++)
		fprintf(stderr, " %s", parts[i]->name);
	fprintf(stderr, "\n");
	return 2;
}

static bool set_model(const char *name)
{
	for (forced_model = 0; forced_model < 3 && strcmp(models[forced_model], name) != 0;
	     forced_model++)
		;
	return forced_model < 3;
}

int main(int argc, char **argv)
{
	uint64_t first, last, n_bad = 0;
	unsigned n_workers = 1, n_run = 0;
	struct tally *tallies;
	int opt;

	while ((opt = getopt(argc, argv, "vm:j:")) != -1) {
		if (opt == 'v')
			verbose = true;
		else if (opt == 'j')
			n_workers = (unsigned)atoi(optarg);
		else if (opt != 'm' || !set_model(optarg))
			return usage();
	}
	if (argc - optind != 3 || n_workers < 1 || n_workers > WORKERS)
		return usage();
	first = strtoull(argv[optind + 1], NULL, 0);
	last = strtoull(argv[optind + 2], NULL, 0);
	if (last < first)
		return usage();
	tallies = mmap(NULL, WORKERS * sizeof(*tallies), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (tallies == MAP_FAILED)
		return 2;
	/* static buffer: libc would allocate one in a simulated thread if that prints first */
	setvbuf(stdout, output, _IOFBF, sizeof(output));
	catch_faults();
	sim_images_load(NULL);
	save_variables();
	for (size_t i = 0; i < N_PARTS; i++) {
		if (strcmp(argv[optind], "all") != 0 && strcmp(argv[optind], parts[i]->name) != 0)
			continue;
		n_run++;
		n_bad += run_part(parts[i], first, last, n_workers, tallies);
	}
	return n_run == 0 ? usage() : n_bad != 0;
}
