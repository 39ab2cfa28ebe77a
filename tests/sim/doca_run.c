/* SPDX-License-Identifier: BSD-3-Clause */
/* doca_run.c - draws a scenario of a Comch server and its clients from a seed, and runs it */
#include "doca_run.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "doca_judge.h"
#include "judge.h"
#include "os.h"

#define MS 1000000ull
#define S (1000 * MS)
#define LIMIT_NS (120 * S) /* simulated time; a run that takes longer hangs */
#define LIMIT_STEPS 100000000ull
#define FAULTS 6u
#define SERVER 0u
#define SIDES (1 + SIM_DOCA_CLIENTS)

enum fault_kind { CLIENT_KILLED, SERVER_KILLED, FAULT_KINDS };

struct fault {
	uint32_t side;
	uint64_t at_ns, down_ns;
	bool done;
};

static struct scenario {
	struct sim_doca_job jobs[SIDES];
	uint32_t n_clients, n_faults;
	struct fault faults[FAULTS];
	uint64_t start_ns[SIDES];
	struct sim_rates rates;
} now;

static struct {
	struct sim_proc *proc;
	uint64_t start_at; /* SIM_NEVER: the program does not start again */
	bool is_over;      /* the program has ended in order */
} sides[SIDES];

const char *sim_doca_done_name(unsigned i)
{
	static const char *const names[] = {"messages", "sends", "receives"};

	return i < 3 ? names[i] : NULL;
}

const char *sim_doca_fault_name(unsigned i)
{
	static const char *const names[] = {"client killed", "server killed"};

	return i < FAULT_KINDS ? names[i] : NULL;
}

static void event(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void event(const char *format, ...)
{
	va_list ap;

	if (!sim_verbose)
		return;
	fprintf(sim_out, "%12.3f ms  ", (double)sim_now() / MS);
	va_start(ap, format);
	vfprintf(sim_out, format, ap);
	va_end(ap);
	fputc('\n', sim_out);
}

/* -- drawing a scenario -- */

/* Draw a time of any order of magnitude from `least` on. */
static uint64_t draw_time(uint64_t least, uint32_t magnitudes)
{
	uint64_t at = least << sim_draw(magnitudes);

	return at + sim_draw64() % at;
}

static void draw_jobs(struct scenario *s)
{
	static const uint32_t bytes[] = {64, 700, 2048, SIM_DOCA_BUF};
	struct sim_doca_job job = {
		.messages = 1u << sim_draw(5),
		.msg_tasks = 1 + sim_draw(SIM_DOCA_DEPTH),
		.recv_queue = 1u << sim_draw(6),
		.lanes = sim_draw(4) == 0 ? 0 : 1 + sim_draw(SIM_DOCA_LANES),
		.sends = 1u << sim_draw(5),
		.posts = 1u << sim_draw(5),
		.depth = 1u << sim_draw(5),
		.buf_bytes = bytes[sim_draw(4)],
		.imm_bytes = sim_draw(2) != 0 ? 8 + sim_draw(SIM_DOCA_IMM - 8 + 1) : sim_draw(9)};

	job.data_bytes = sim_draw(3) == 0 ? 40 : job.buf_bytes;
	job.exports = sim_draw(4) == 0;
	if (job.data_bytes > job.buf_bytes)
		job.data_bytes = job.buf_bytes;
	for (uint32_t i = 0; i < SIDES; i++) {
		s->jobs[i] = job;
		s->jobs[i].side = i;
		s->jobs[i].sessions = i == SERVER ? 1 : 1 + sim_draw(2);
		s->jobs[i].threads = job.lanes != 0 && sim_draw(3) == 0;
		s->start_ns[i] = i == SERVER ? 0 : draw_time(1000, 12);
	}
}

static void draw_faults(struct scenario *s)
{
	for (uint32_t i = 0; i < SIDES; i++) {
		if (sim_draw(2) == 0)
			s->jobs[i].rude = 1u << sim_draw(7);
		if (sim_draw(2) == 0)
			s->jobs[i].odd = 1u << sim_draw(5);
		if (sim_draw(2) == 0)
			s->jobs[i].think_ns = (uint32_t)draw_time(1000, 10);
	}
	s->jobs[SERVER].sessions += sim_draw(3) == 0 ? sim_draw(3) : 0;
	s->n_faults = sim_draw(3) == 0 ? 0 : 1 + sim_draw(4);
	for (uint32_t i = 0; i < s->n_faults; i++)
		s->faults[i] = (struct fault){.side = sim_draw(1 + s->n_clients),
					      .at_ns = draw_time(MS / 16, 8),
					      .down_ns = draw_time(MS / 16, 9)};
	if (sim_draw(2) == 0) {
		s->rates.stall_one_in = 200u << sim_draw(6);
		s->rates.stall_ns = MS << sim_draw(7);
	}
}

static void draw(struct scenario *s, uint64_t seed)
{
	sim_begin(seed);
	memset(s, 0, sizeof(*s));
	s->n_clients = 1 + sim_draw(SIM_DOCA_CLIENTS);
	draw_jobs(s);
	sim_rates_draw(&s->rates);
	s->rates.plain_points = false;
	if (sim_draw(5) != 0)
		draw_faults(s); /* otherwise the run is calm: each task has to succeed in time */
}

static void limit(struct scenario *s, const struct sim_limits *limits)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < s->n_faults; i++)
		if (!(limits->without_faults & 1u << i))
			s->faults[kept++] = s->faults[i];
	s->n_faults = kept;
	for (uint32_t i = 0; i < SIDES; i++) {
		struct sim_doca_job *job = &s->jobs[i];

		job->messages = (job->messages >> limits->ops_shift) + 1;
		job->sends >>= limits->ops_shift;
		if (i != SERVER && limits->without_clients & 1u << (i - 1))
			job->sessions = 0;
		if (limits->shallow)
			job->lanes = job->lanes != 0;
		if (limits->shallow)
			job->threads = false;
	}
	if (limits->strong) {
		s->rates.model = SIM_SC;
		s->rates.stall_one_in = 0;
	}
}

static void print(const struct scenario *s, uint64_t seed)
{
	const struct sim_doca_job *j = &s->jobs[0];

	fprintf(sim_out,
		"seed %" PRIu64
		": %u clients, %u messages of %u tasks, window %u; %u lanes, %u sends, depth %u, "
		"%u receives of %u bytes\n",
		seed, s->n_clients, j->messages, j->msg_tasks, j->recv_queue, j->lanes, j->sends,
		j->depth, j->posts, j->buf_bytes);
	fprintf(sim_out, "  memory model %d, 1 change of thread in %u accesses\n",
		(int)s->rates.model, s->rates.switch_one_in);
	for (uint32_t i = 0; i <= s->n_clients; i++)
		fprintf(sim_out, "  side %u: %u sessions%s, rude %u %%, odd %u %%, think %u ns\n",
			i, s->jobs[i].sessions, s->jobs[i].threads ? ", threads" : "",
			s->jobs[i].rude, s->jobs[i].odd, s->jobs[i].think_ns);
	for (uint32_t i = 0; i < s->n_faults; i++)
		fprintf(sim_out, "  side %u killed at %.3f ms for %.3f ms\n", s->faults[i].side,
			(double)s->faults[i].at_ns / MS, (double)s->faults[i].down_ns / MS);
}

/* -- processes -- */

static void *run_side(void *arg)
{
	void *(*fn)(void *) = (void *(*)(void *))sim_proc_symbol(sim_proc_self(), "sim_image_doca");

	return fn(&now.jobs[(uintptr_t)arg]);
}

static void start(uint32_t side)
{
	char name[24];

	snprintf(name, sizeof(name), side == SERVER ? "server" : "client %u", side);
	sides[side].proc = sim_proc_start(name, 0, run_side, (void *)(uintptr_t)side);
	sides[side].start_at = SIM_NEVER;
	if (!sides[side].proc)
		sim_fail("no process left");
	event("%s starts, pid %d", name, (int)sides[side].proc->pid);
}

static void inject(struct fault *fault)
{
	struct sim_proc *proc = sides[fault->side].proc;

	fault->done = true;
	if (!proc || !proc->alive || proc->dying)
		return;
	event("%s is killed", proc->name);
	sim_doca_killed(fault->side, proc->pid);
	sim_proc_kill_in_steps(proc, -SIGKILL);
	sides[fault->side].start_at = sim_now() + fault->down_ns;
}

static void reap(uint32_t side)
{
	struct sim_proc *proc = sides[side].proc;

	if (!proc || proc->alive)
		return;
	event("%s has ended, status %d", proc->name, proc->status);
	sides[side].is_over = proc->status == 0;
	sim_proc_reap(proc);
	sides[side].proc = NULL;
}

static bool clients_are_over(void)
{
	for (uint32_t i = 1; i <= now.n_clients; i++)
		if (!sides[i].is_over)
			return false;
	return true;
}

/* Take the actions that are due. Returns the time of the next action. */
static uint64_t act(void)
{
	uint64_t next = LIMIT_NS;

	for (uint32_t i = 0; i <= now.n_clients; i++) {
		reap(i);
		if (!sides[i].proc && sides[i].start_at <= sim_now())
			start(i);
		if (!sides[i].proc && sides[i].start_at < next)
			next = sides[i].start_at;
	}
	if (clients_are_over())
		now.jobs[SERVER].stop = true;
	for (uint32_t i = 0; i < now.n_faults; i++) {
		struct fault *fault = &now.faults[i];

		if (fault->done)
			continue;
		if (fault->at_ns <= sim_now()) {
			inject(fault);
			return sim_now();
		}
		if (fault->at_ns < next)
			next = fault->at_ns;
	}
	return next;
}

static bool is_over(void)
{
	return clients_are_over() && !sides[SERVER].proc && sides[SERVER].is_over;
}

static bool is_calm(const struct scenario *s)
{
	for (uint32_t i = 0; i <= s->n_clients; i++)
		if (s->jobs[i].rude != 0 || s->jobs[i].odd != 0 || s->jobs[i].think_ns != 0)
			return false;
	return s->n_faults == 0 && s->rates.stall_one_in == 0 && s->jobs[SERVER].sessions == 1;
}

void sim_doca_run(uint64_t seed, const struct sim_limits *limits, struct sim_outcome *outcome)
{
	static const struct sim_disk_faults no_faults;
	static const struct sim_course course = {
		.act = act, .is_over = is_over, .limit_ns = LIMIT_NS, .limit_steps = LIMIT_STEPS};
	char left[200];
	bool calm;

	draw(&now, seed);
	limit(&now, limits);
	if (sim_verbose)
		print(&now, seed);
	calm = is_calm(&now);
	sim_begin(seed ^ 0x5eed);
	sim_rates_set(&now.rates);
	sim_disk_begin(&no_faults);
	sim_judge_begin(false, false, 0);
	sim_doca_judge_begin(&now.jobs[SERVER]);
	memset(sides, 0, sizeof(sides));
	for (uint32_t i = 0; i < SIDES; i++)
		sides[i].start_at = i <= now.n_clients ? now.start_ns[i] : SIM_NEVER;
	outcome->verdict = sim_until_over(&course);
	if (!outcome->verdict && sim_files_left(left, sizeof(left))) {
		sim_wrong("open files after all programs ended, by references:%s", left);
		outcome->verdict = sim_judge_verdict_now();
	}
	if (!outcome->verdict)
		outcome->verdict = sim_doca_verdict(calm);
	outcome->trace = sim_trace();
	outcome->steps = sim_steps();
	outcome->ns = sim_now();
	outcome->conditions = outcome->failed_allocations = 0;
	memset(outcome->ops, 0, sizeof(outcome->ops));
	memset(outcome->faults, 0, sizeof(outcome->faults));
	for (unsigned i = 0; i < SIM_DOCA_KINDS; i++)
		outcome->ops[i][SIM_R_OK] = sim_doca_count((enum sim_doca_kind)i);
	for (uint32_t i = 0; i < now.n_faults; i++)
		outcome->faults[now.faults[i].side == SERVER ? SERVER_KILLED : CLIENT_KILLED] +=
			now.faults[i].done;
	sim_procs_clear();
}
