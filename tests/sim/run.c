/* SPDX-License-Identifier: BSD-3-Clause */
/* run.c - runs a scenario: its files, its processes, its faults in their time, and what the judge says of it */
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "judge.h"
#include "scenario.h"

#define MS 1000000ull
#define S (1000 * MS)
#define LIMIT_NS (300 * S)       /* simulated: by then each client has ended, or something hangs */
#define LIMIT_STEPS 200000000ull
#define STORE_BLOCKS 64u
#define RETRY_NS (50 * MS)
#define STARTS 8u /* of a client that ends before its work is done */

bool sim_verbose;

enum place { TARGET, GATEWAY, CLIENTS }; /* slots of processes: clients follow each other */
#define SLOTS (CLIENTS + SIM_CLIENTS)

static struct {
	struct sim_proc *proc;
	uint64_t start_at; /* SIM_NEVER: does not start again */
	uint32_t n_starts;
} slots[SLOTS];
static const struct sim_scenario *now;
static uint64_t restarted_at; /* when a client has started again; SIM_NEVER: none has */

static void event(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void event(const char *format, ...)
{
	va_list ap;

	if (!sim_verbose)
		return;
	fprintf(sim_out, "%12.3f ms  ", (double)sim_now() / 1e6);
	va_start(ap, format);
	vfprintf(sim_out, format, ap);
	va_end(ap);
	fputc('\n', sim_out);
}

void sim_log(const char *who, const char *message)
{
	const struct sim_thread *t = sim_self();

	event("%s: %s: %s", t != NULL && t->proc != NULL ? t->proc->name : "?", who, message);
}

/* -- configurations -- */

static void put(const char *path, const char *text)
{
	if (sim_disk_put(path, text, strlen(text)) != 0)
		sim_fail("%s cannot be made", path);
}

static void stage_text(const struct sim_stage *stage, uint64_t seed, char *text, size_t bytes)
{
	text[0] = 0;
	if (stage->delay_us != 0)
		snprintf(text, bytes, "stages = ( { type = \"fault\"; seed = %u; delay_rate = \"%u%%\"; delay = \"%lluus\"; "
			 "drop_rate = \"%u%%\"; error_rate = \"%u%%\"; duplicate_rate = \"%u%%\"; } );", (unsigned)seed & 0xffff,
			 stage->delayed, (unsigned long long)stage->delay_us, stage->dropped, stage->failed, stage->doubled);
}

#define DEVICE "{ transport = \"shm-comch\"; dir = \"/run/gantry\"; pci = \"%s\"; };\n"

/* The part that all configurations have. */
static void common_text(const struct sim_scenario *s, char *text, size_t bytes)
{
	snprintf(text, bytes, "runtime = { stat = false; log = \"info\"; spin = \"%" PRIu64 "ns\"; };\ndevices = {\nfront = " DEVICE
		 "back = " DEVICE "};\n", s->spin_ns, "03:00.0", "04:00.0");
}

static void make_files(const struct sim_scenario *s)
{
	static char text[4096];
	char common[400], stage[300], listen[60], connect[100];

	common_text(s, common, sizeof(common));
	snprintf(listen, sizeof(listen), "name = \"volume\"; heartbeat = \"%" PRIu64 "ms\"; };", s->heartbeat_ms);
	snprintf(connect, sizeof(connect), "name = \"volume\"; heartbeat = \"%" PRIu64 "ms\"; io_timeout = \"%" PRIu64 "ms\";",
		 s->heartbeat_ms, s->io_timeout_ms);
	stage_text(&s->target_stage, s->seed, stage, sizeof(stage));
	snprintf(text, sizeof(text), "%sroles = { store = { role = \"target\"; listen = { device = \"%s\"; %s\n"
		 "backend = { type = \"file\"; path = \"/vol/store.img\"; engine = \"%s\"; direct = false; }; %s }; };\n",
		 common, s->gateway ? "back" : "front", listen, s->async ? "uring" : "sync", stage);
	put("/etc/store.conf", text);
	stage_text(&s->gateway_stage, s->seed, stage, sizeof(stage));
	snprintf(text, sizeof(text), "%sroles = { bridge = { role = \"gateway\"; listen = { device = \"front\"; %s\n"
		 "connect = { device = \"back\"; %s }; %s }; };\n", common, listen, connect, stage);
	put("/etc/bridge.conf", text);
	snprintf(text, sizeof(text), "%sroles = { load = { role = \"initiator\"; connect = { device = \"front\"; %s\n"
		 "timeout = \"2s\"; %s }; }; };\n", common, connect, s->resume ? "resume = \"5s\";" : "");
	put("/etc/load.conf", text);
}

static void make_store(void)
{
	static uint8_t zeroes[STORE_BLOCKS * SIM_BLOCK];

	if (sim_disk_put("/vol/store.img", zeroes, sizeof(zeroes)) != 0)
		sim_fail("the store cannot be made");
}

/* -- processes -- */

static const char *file_of(unsigned slot)
{
	return slot == TARGET ? "/etc/store.conf" : "/etc/bridge.conf";
}

/* What runs in a process is looked up in its image by its first thread. */
static void *run_slot(void *arg)
{
	unsigned slot = (unsigned)(uintptr_t)arg;
	const char *symbol = slot < CLIENTS ? "sim_image_run" : "sim_image_client";
	void *(*fn)(void *) = (void *(*)(void *))sim_proc_symbol(sim_proc_self(), symbol);

	return fn(slot < CLIENTS ? (void *)(uintptr_t)file_of(slot) : (void *)(uintptr_t)&now->jobs[slot - CLIENTS]);
}

static void start(unsigned slot)
{
	char name[24];

	if (slot < CLIENTS)
		snprintf(name, sizeof(name), "%s", slot == TARGET ? "target" : "gateway");
	else
		snprintf(name, sizeof(name), "client %u", slot - CLIENTS + 1);
	slots[slot].proc = sim_proc_start(name, 0, run_slot, (void *)(uintptr_t)slot);
	slots[slot].start_at = SIM_NEVER;
	if (slot >= CLIENTS && slots[slot].n_starts != 0)
		restarted_at = sim_now();
	slots[slot].n_starts++;
	if (slots[slot].proc == NULL)
		sim_fail("no process left");
	event("%s starts, pid %d", name, (int)slots[slot].proc->pid);
}

static void kill_slot(unsigned slot, uint64_t down_ns)
{
	if (slots[slot].proc == NULL || !slots[slot].proc->alive)
		return;
	event("%s is killed", slots[slot].proc->name);
	sim_proc_kill(slots[slot].proc, -SIGKILL);
	slots[slot].start_at = sim_now() + down_ns;
}

static void inject(const struct sim_fault *fault)
{
	static const enum place places[SIM_FAULT_KINDS] = {CLIENTS, GATEWAY, TARGET, GATEWAY, TARGET, TARGET, TARGET};
	unsigned slot = places[fault->kind] + (fault->kind == SIM_KILL_CLIENT ? fault->client : 0);

	switch (fault->kind) {
	case SIM_STOP_GATEWAY:
	case SIM_STOP_TARGET:
		if (slots[slot].proc == NULL || !slots[slot].proc->alive)
			break;
		event("%s gets SIGTERM", slots[slot].proc->name);
		sim_proc_signal(slots[slot].proc, SIGTERM);
		break;
	case SIM_POWER_CUT:
		kill_slot(slot, fault->down_ns);
		sim_disk_power_cut(false);
		sim_judge_power_cut();
		break;
	case SIM_BLACKOUT:
		for (slot = 0; slot < SLOTS; slot++)
			kill_slot(slot, fault->down_ns);
		sim_disk_power_cut(true);
		sim_judge_power_cut();
		break;
	default:
		kill_slot(slot, fault->down_ns);
	}
}

/* A process that ended by itself: servers start again; a client too, if it has work left. */
static void reap(unsigned slot)
{
	struct sim_proc *proc = slots[slot].proc;

	if (proc == NULL || proc->alive)
		return;
	event("%s has ended, status %d", proc->name, proc->status);
	if (slot >= CLIENTS)
		sim_judge_ended(slot - CLIENTS + 1);
	if (slots[slot].start_at == SIM_NEVER && (slot < CLIENTS || (proc->status > 0 && slots[slot].n_starts < STARTS)))
		slots[slot].start_at = sim_now() + RETRY_NS;
	sim_proc_reap(proc);
	slots[slot].proc = NULL;
}

static bool clients_have_ended(void)
{
	for (unsigned slot = CLIENTS; slot < CLIENTS + now->n_clients; slot++)
		if (slots[slot].proc != NULL || slots[slot].start_at != SIM_NEVER)
			return false;
	return true;
}

/* SIM_NEVER: not yet known. */
static uint64_t due(const struct sim_fault *fault)
{
	if (!fault->after_start)
		return fault->at_ns;
	return restarted_at != SIM_NEVER ? restarted_at + fault->at_ns : SIM_NEVER;
}

/* Do what is due, and return when something is due next. */
static uint64_t act(bool *injected)
{
	uint64_t next = LIMIT_NS;

	for (unsigned slot = 0; slot < SLOTS; slot++) {
		reap(slot);
		if (slots[slot].proc == NULL && slots[slot].start_at <= sim_now())
			start(slot);
		if (slots[slot].start_at < next)
			next = slots[slot].start_at;
	}
	for (uint32_t i = 0; i < now->n_faults; i++) {
		const struct sim_fault *fault = &now->faults[i];

		if (injected[i])
			continue;
		if (due(fault) <= sim_now()) {
			injected[i] = true;
			inject(fault);
			return sim_now();
		}
		if (due(fault) < next)
			next = due(fault);
	}
	return next;
}

/* The value at both ends of each sector of a block; UINT64_MAX: they differ. */
static uint64_t word_of(const uint64_t *block)
{
	for (uint32_t i = 63; i < SIM_BLOCK / 8; i += i % 64 == 0 ? 63 : 1)
		if (block[i] != block[0])
			return UINT64_MAX;
	return block[0];
}

/* What is in the store at the end is the last read of each block. */
static void read_store(void)
{
	static uint64_t block[SIM_BLOCK / 8];

	for (uint32_t i = 0; i < STORE_BLOCKS; i++)
		if (sim_disk_get("/vol/store.img", block, SIM_BLOCK, (off_t)i * SIM_BLOCK) == SIM_BLOCK)
			sim_judge_store(i, word_of(block));
}

static const char *run_until_end(bool *injected)
{
	while (!clients_have_ended()) {
		uint64_t next = act(injected);
		enum sim_end end;

		if (next <= sim_now() || clients_have_ended())
			continue;
		end = sim_run(LIMIT_STEPS - sim_steps(), next);
		if (sim_judge_verdict_now() != NULL)
			return sim_judge_verdict_now();
		if (end == SIM_STEPS)
			return "the run does not end (steps)";
		if (sim_now() >= LIMIT_NS)
			return "a client does not end";
	}
	return NULL;
}

void sim_scenario_run(const struct sim_scenario *s, struct sim_outcome *outcome)
{
	bool injected[SIM_FAULTS] = {false};

	now = s;
	sim_begin(s->seed ^ 0x5eed);
	sim_rates_set(&s->rates);
	sim_has_membarrier = s->membarrier;
	restarted_at = SIM_NEVER;
	sim_disk_begin(&s->disk);
	sim_judge_begin(s->resume);
	make_files(s);
	make_store();
	memset(slots, 0, sizeof(slots));
	for (unsigned slot = 0; slot < SLOTS; slot++)
		slots[slot].start_at = SIM_NEVER;
	slots[TARGET].start_at = 0;
	if (s->gateway)
		slots[GATEWAY].start_at = 0;
	for (unsigned slot = CLIENTS; slot < CLIENTS + s->n_clients; slot++)
		slots[slot].start_at = s->jobs[slot - CLIENTS].ops != 0 ? 0 : SIM_NEVER;
	outcome->conditions = sim_scenario_conditions(s);
	outcome->verdict = run_until_end(injected);
	for (int i = 0; i < SIM_OPS; i++)
		for (int k = 0; k < SIM_RESULTS; k++)
			outcome->ops[i][k] = sim_judge_count((enum sim_op)i, (enum sim_result)k);
	read_store();
	if (outcome->verdict == NULL)
		outcome->verdict = sim_judge_verdict();
	if (outcome->verdict == NULL && outcome->conditions >> SIM_CALM & 1)
		outcome->verdict = sim_judge_calm();
	outcome->trace = sim_trace();
	outcome->steps = sim_steps();
	outcome->ns = sim_now();
	memset(outcome->faults, 0, sizeof(outcome->faults));
	for (uint32_t i = 0; i < s->n_faults; i++)
		outcome->faults[s->faults[i].kind] += injected[i];
	sim_procs_clear();
}
