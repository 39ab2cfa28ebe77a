/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * system.c - `./dev sim`: runs the scenarios of a range of seeds in worker processes, or one seed
 * with its timeline
 *
 * A range ends with statistics and coverage. SIGINT and SIGTERM end it early: it prints the
 * remaining range, and with --state FILE the next call continues there.
 *
 * With --shrink, a seed that fails runs again with parts of its scenario left out, as long as it
 * still fails. The remaining scenario is printed as options that repeat it.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "coverage.h"
#include "doca_judge.h"
#include "doca_run.h"
#include "judge.h"
#include "scenario.h"

#define WORKERS 64u
#define CHUNK 20u /* seeds that a worker takes at a time */
/* Most processor time of a seed: ends loops without a point. The slowest seeds take 20 s. */
#define SEED_SECONDS 60
#define FAILURES 16u    /* most failures that are printed */
#define SHRINK_RUNS 400 /* most runs that shrink a seed */

/* Shared by the workers. */
struct results {
	uint64_t next;    /* the next seed to run */
	uint64_t longest; /* points << 32 | seed, of the run with the most points */
	uint64_t n, bad, steps, ops[SIM_OPS][SIM_RESULTS], faults[SIM_FAULT_KINDS], ns;
	uint64_t conditions[SIM_CONDITIONS]; /* runs with each condition */
	uint64_t failed_allocations;
	uint64_t running[WORKERS]; /* the current seed of each worker */
	struct sim_coverage coverage;
	int interrupted;
	uint32_t n_failures;
	struct {
		uint64_t seed;
		char text[200];
	} failures[FAILURES];
};

static struct results *results;
static struct sim_limits limits; /* parts of a scenario that are left out */
static const char *image, *state_file;
static bool stop_at_first; /* stop at the first failure */
/* run only the seeds whose scenario has a guest, or this storage server */
static bool only_guests;
static enum sim_remote_kind only_remote;
static bool doca; /* run the scenarios of doca_run.c */

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void run_seed(uint64_t seed, const struct sim_limits *less, struct sim_outcome *outcome)
{
	static struct sim_scenario scenario; /* at the same address in each run */

	if (doca) {
		sim_doca_run(seed, less, outcome);
		return;
	}
	sim_scenario_draw(&scenario, seed);
	sim_scenario_limit(&scenario, less);
	if (sim_verbose)
		sim_scenario_print(&scenario);
	sim_scenario_run(&scenario, outcome);
}

static bool is_wanted(uint64_t seed)
{
	struct sim_scenario scenario;

	if (!only_guests && only_remote == SIM_NO_REMOTE)
		return true;
	sim_scenario_draw(&scenario, seed);
	sim_scenario_limit(&scenario, &limits);
	return (!only_guests || scenario.topology.guest) &&
	       (only_remote == SIM_NO_REMOTE || scenario.remote.kind == only_remote);
}

static void add_longest(uint64_t seed, uint64_t points)
{
	uint64_t this_one = points << 32 | (uint32_t)seed,
		 most = __atomic_load_n(&results->longest, __ATOMIC_RELAXED);

	while (this_one > most &&
	       !__atomic_compare_exchange_n(&results->longest, &most, this_one, false,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static void add(uint64_t seed, const struct sim_outcome *outcome)
{
	uint32_t i;

	add_longest(seed, outcome->steps);

	__atomic_fetch_add(&results->n, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&results->steps, outcome->steps, __ATOMIC_RELAXED);
	__atomic_fetch_add(&results->ns, outcome->ns, __ATOMIC_RELAXED);
	__atomic_fetch_add(&results->failed_allocations, outcome->failed_allocations,
			   __ATOMIC_RELAXED);
	for (i = 0; i < SIM_OPS; i++)
		for (uint32_t k = 0; k < SIM_RESULTS; k++)
			__atomic_fetch_add(&results->ops[i][k], outcome->ops[i][k],
					   __ATOMIC_RELAXED);
	for (i = 0; i < SIM_FAULT_KINDS; i++)
		__atomic_fetch_add(&results->faults[i], outcome->faults[i], __ATOMIC_RELAXED);
	for (i = 0; i < SIM_CONDITIONS; i++)
		__atomic_fetch_add(&results->conditions[i], outcome->conditions >> i & 1,
				   __ATOMIC_RELAXED);
	if (!outcome->verdict)
		return;
	__atomic_fetch_add(&results->bad, 1, __ATOMIC_RELAXED);
	i = __atomic_fetch_add(&results->n_failures, 1, __ATOMIC_RELAXED);
	if (i < FAILURES) {
		results->failures[i].seed = seed;
		snprintf(results->failures[i].text, sizeof(results->failures[i].text), "%s",
			 outcome->verdict);
	}
}

static void work(uint64_t last, uint64_t *running)
{
	static const struct itimerval limit = {.it_value.tv_sec = SEED_SECONDS};
	struct sim_outcome outcome;
	uint64_t seed;

	sim_images_load(image);
	while (!__atomic_load_n(&results->interrupted, __ATOMIC_RELAXED) &&
	       (seed = __atomic_fetch_add(&results->next, CHUNK, __ATOMIC_RELAXED)) <= last)
		for (uint64_t end = seed + CHUNK; seed < end && seed <= last; seed++) {
			if (stop_at_first && __atomic_load_n(&results->bad, __ATOMIC_RELAXED) != 0)
				return;
			if (!is_wanted(seed))
				continue;
			*running = seed;
			setitimer(ITIMER_PROF, &limit, NULL);
			run_seed(seed, &limits, &outcome);
			add(seed, &outcome);
			sim_coverage_move(&results->coverage);
		}
}

/* Returns the first seed that earlier calls have not finished. */
static uint64_t resumed(uint64_t first)
{
	unsigned long long next;
	FILE *f = state_file ? fopen(state_file, "r") : NULL;

	if (!f)
		return first;
	if (fscanf(f, "%llu", &next) == 1 && next > first)
		first = next;
	fclose(f);
	return first;
}

static void save(uint64_t next)
{
	FILE *f = state_file ? fopen(state_file, "w") : NULL;

	if (!f)
		return;
	fprintf(f, "%llu\n", (unsigned long long)next);
	fclose(f);
}

static void print_operations(void)
{
	static const char *const kinds[SIM_OPS] = {
		"reads",    "writes",           "FUA writes",
		"flushes",  "writes of zeroes", "FUA writes of zeroes",
		"discards", "reads of lists",   "writes of lists",
		"extents"};
	static const char *const names[SIM_RESULTS] = {
#define SIM_RESULT(name, err) #err,
		SIM_RESULT_LIST(SIM_RESULT)
#undef SIM_RESULT
			"other",
		"none, as the client was killed"};

	for (int i = 0; i < SIM_OPS; i++) {
		fprintf(sim_out, "%s: done %llu", kinds[i],
			(unsigned long long)results->ops[i][SIM_R_OK]);
		for (int k = SIM_R_OK + 1; k < SIM_RESULTS; k++)
			if (results->ops[i][k] != 0)
				fprintf(sim_out, ", %s %llu", names[k],
					(unsigned long long)results->ops[i][k]);
		fputc('\n', sim_out);
	}
}

static void print_reached(void)
{
	print_operations();
	for (int i = 0; i < SIM_FAULT_KINDS; i++)
		fprintf(sim_out, "%s %s %llu",
			i != 0 ? "," : "faults:", sim_fault_name((enum sim_fault_kind)i),
			(unsigned long long)results->faults[i]);
	fprintf(sim_out, "; %llu allocations failed\nruns with:",
		(unsigned long long)results->failed_allocations);
	for (int i = 0; i < SIM_CONDITIONS; i++)
		fprintf(sim_out, "%s %s %llu", i != 0 ? "," : "",
			sim_condition_name((enum sim_condition)i),
			(unsigned long long)results->conditions[i]);
	fputc('\n', sim_out);
	sim_coverage_print(&results->coverage, sim_out);
}

static void print_reached_by_doca(void)
{
	for (unsigned i = 0; i < SIM_OPS && sim_doca_done_name(i); i++)
		fprintf(sim_out, "%s %llu %s",
			i != 0 ? "," : "done:", (unsigned long long)results->ops[i][SIM_R_OK],
			sim_doca_done_name(i));
	for (unsigned i = 0; i < SIM_FAULT_KINDS && sim_doca_fault_name(i); i++)
		fprintf(sim_out, "%s %llu %s",
			i != 0 ? "," : "\nfaults:", (unsigned long long)results->faults[i],
			sim_doca_fault_name(i));
	fputc('\n', sim_out);
}

static void print_results(double took)
{
	fprintf(sim_out,
		"%llu seeds, %llu failed, %.1f a second, %.0f points and %.1f ms of simulated time each\n",
		(unsigned long long)results->n, (unsigned long long)results->bad,
		(double)results->n / took, (double)results->steps / (double)results->n,
		(double)results->ns / 1e6 / (double)results->n);
	fprintf(sim_out, "most points: %llu, in seed %llu\n",
		(unsigned long long)(results->longest >> 32),
		(unsigned long long)(uint32_t)results->longest);
	if (doca)
		print_reached_by_doca();
	else
		print_reached();
	for (uint32_t i = 0; i < results->n_failures && i < FAILURES; i++)
		fprintf(sim_out, "seed %llu: %s\n", (unsigned long long)results->failures[i].seed,
			results->failures[i].text);
}

static void on_signal(int signal)
{
	(void)signal;
	__atomic_store_n(&results->interrupted, 1, __ATOMIC_RELAXED);
}

static int run_range(uint64_t first, uint64_t last, uint32_t workers)
{
	double begin = seconds();
	int status, bad = 0;

	first = resumed(first);
	results = mmap(NULL, sizeof(*results), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	results->next = first;
	signal(SIGINT, on_signal); /* workers finish their current seeds */
	signal(SIGTERM, on_signal);
	for (uint32_t i = 0; i < workers; i++)
		if (fork() == 0) {
			work(last, &results->running[i]);
			results->running[i] = 0;
			_exit(0);
		}
	while (wait(&status) > 0 || errno == EINTR) {
		bad |= status != 0;
		if (bad && stop_at_first)
			/* a crash is a failure */
			__atomic_fetch_add(&results->bad, 1, __ATOMIC_RELAXED);
	}
	for (uint32_t i = 0; bad && i < workers; i++)
		if (results->running[i] != 0)
			fprintf(sim_out, "a worker has crashed or hung in seed %llu\n",
				(unsigned long long)results->running[i]);
	if (results->n != 0)
		print_results(seconds() - begin);
	if (results->next <= last && results->interrupted)
		fprintf(sim_out, "interrupted; to continue: ./dev sim%s %llu-%llu\n",
			doca ? " doca" : "", (unsigned long long)results->next,
			(unsigned long long)last);
	if (!bad && results->bad == 0)
		save(results->next <= last ? results->next : last + 1);
	return bad || results->bad != 0 || results->next <= last;
}

/* -- one seed -- */

static bool fails(uint64_t seed, const struct sim_limits *less)
{
	struct sim_outcome outcome;

	run_seed(seed, less, &outcome);
	return outcome.verdict != NULL;
}

/* Leave out the parts that the failure does not need. */
static void shrink(uint64_t seed)
{
	bool was_verbose = sim_verbose, smaller = true;
	int runs = 0;

	sim_verbose = false;
	while (smaller && runs < SHRINK_RUNS) {
		smaller = false;
		for (uint32_t step = 0; step < SIM_SHRINK_STEPS && runs < SHRINK_RUNS; step++) {
			struct sim_limits less = limits;

			if (!sim_limits_shrink(&less, step))
				continue;
			runs++;
			if (fails(seed, &less)) {
				limits = less;
				smaller = true;
			}
		}
	}
	sim_verbose = was_verbose;
}

static int run_one(uint64_t seed, bool small)
{
	struct sim_outcome outcome, again;
	char text[300];

	sim_images_load(image);
	if (small)
		shrink(seed);
	run_seed(seed, &limits, &outcome);
	if (sim_verbose && doca)
		sim_doca_print();
	else if (sim_verbose)
		sim_judge_print();
	fprintf(sim_out, "seed %llu: %s\n", (unsigned long long)seed,
		outcome.verdict ? outcome.verdict : "ok");
	sim_verbose = false;
	run_seed(seed, &limits, &again);
	fprintf(sim_out, "trace %016llx, %llu points, %.3f ms; again: %s\n",
		(unsigned long long)outcome.trace, (unsigned long long)outcome.steps,
		(double)outcome.ns / 1e6,
		again.trace == outcome.trace ? "the same"
					     : "A DIFFERENT TRACE: the run is not deterministic");
	sim_limits_print(&limits, text, sizeof(text));
	if (outcome.verdict)
		fprintf(sim_out, "repeat: ./dev sim%s --seed %llu%s\n", doca ? " doca" : "",
			(unsigned long long)seed, text);
	return outcome.verdict || again.trace != outcome.trace;
}

static int usage(void)
{
	fputs("usage: system --image FILE [doca] FIRST-LAST [-j WORKERS] [--state FILE] [--first]\n"
	      "                             [--guests] [--rbd | --nbd]\n"
	      "       system --image FILE [doca] --seed N [-v] [--shrink] [--limit OPTIONS]\n",
	      sim_out);
	return 2;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"image", 1, NULL, 'i'},  {"seed", 1, NULL, 's'},
						{"shrink", 0, NULL, 'S'}, {"state", 1, NULL, 'f'},
						{"first", 0, NULL, '1'},  {"limit", 1, NULL, 'l'},
						{"guests", 0, NULL, 'g'}, {"rbd", 0, NULL, 'r'},
						{"nbd", 0, NULL, 'n'},    {NULL, 0, NULL, 0}};
	static char unread[64 << 10]; /* buffer of stdout */
	uint64_t seed = 0, first = 1, last = 0;
	bool one = false, small = false;
	uint32_t workers = 1;
	char *dash;
	int c;

	/* without randomization, addresses are the same in each run */
	if (!(personality(0xffffffff) & ADDR_NO_RANDOMIZE) && personality(ADDR_NO_RANDOMIZE) >= 0)
		execv("/proc/self/exe", argv);
	/* discards output of the product; its log is part of the timeline */
	sim_out = fdopen(dup(STDOUT_FILENO), "w");
	setvbuf(sim_out, NULL, _IOLBF, 0);
	if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
		return 2;
	/*
	 * otherwise the first simulated process that prints a time would call tzset() and
	 * allocate the time zone in its own heap
	 */
	tzset();
	/* libc would allocate a buffer in the heap of a simulated process */
	setvbuf(stdout, unread, _IOFBF, sizeof(unread));
	setvbuf(stderr, NULL, _IONBF, 0);
	while ((c = getopt_long(argc, argv, "j:v", options, NULL)) != -1)
		switch (c) {
		case 'i':
			image = optarg;
			break;
		case 's':
			one = true;
			seed = strtoull(optarg, NULL, 0);
			break;
		case 'S':
			small = true;
			break;
		case 'f':
			state_file = optarg;
			break;
		case 'l':
			if (!sim_limits_parse(&limits, optarg))
				return usage();
			break;
		case '1':
			stop_at_first = true;
			break;
		case 'g':
			only_guests = true;
			break;
		case 'r':
			only_remote = SIM_RBD;
			break;
		case 'n':
			only_remote = SIM_NBD;
			break;
		case 'j':
			workers = (uint32_t)strtoul(optarg, NULL, 0);
			break;
		case 'v':
			sim_verbose = true;
			break;
		default:
			return usage();
		}
	if (!image || workers == 0 || workers > WORKERS)
		return usage();
	if (optind < argc && strcmp(argv[optind], "doca") == 0) {
		doca = true;
		optind++;
	}
	if (one)
		return run_one(seed, small);
	if (optind == argc)
		return usage();
	first = strtoull(argv[optind], &dash, 0);
	last = *dash == '-' ? strtoull(dash + 1, NULL, 0) : first;
	return run_range(first, last, workers);
}
