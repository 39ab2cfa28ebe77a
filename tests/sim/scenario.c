/* SPDX-License-Identifier: BSD-3-Clause */
/* scenario.c - draws a scenario from a seed, leaves out parts of it, and prints it */
#include "scenario.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MS 1000000ull
#define PLAIN_ONE_IN 10u /* runs */
#define PLAIN_OPS 32u    /* most operations of a queue in such a run, which is slower */
#define SWAPS_ONE_IN 8u
#define LISTS_ONE_IN 4u
#define TCP_ONE_IN 4u
#define GUEST_ONE_IN 12u
#define REMOTE_ONE_IN 12u
#define LEGS_ONE_IN 3u

const char *sim_fault_name(enum sim_fault_kind kind)
{
	static const char *const names[SIM_FAULT_KINDS] = {
		[SIM_KILL_CLIENT] = "client killed",
		[SIM_KILL_GATEWAY] = "gateway killed",
		[SIM_KILL_TARGET] = "target killed",
		[SIM_STOP_GATEWAY] = "gateway stopped",
		[SIM_STOP_TARGET] = "target stopped",
		[SIM_POWER_CUT] = "power cut of the target",
		[SIM_BLACKOUT] = "power cut of all",
		[SIM_EXCHANGE] = "volume exchanged",
		[SIM_STARVE_CLIENT] = "client without memory",
		[SIM_STARVE_GATEWAY] = "gateway without memory",
		[SIM_STARVE_TARGET] = "target without memory",
		[SIM_KILL_DISK] = "disk killed",
		[SIM_STOP_DISK] = "disk stopped",
		[SIM_STARVE_DISK] = "disk without memory",
		[SIM_HANG_GATEWAY] = "gateway hangs",
		[SIM_HANG_TARGET] = "target hangs",
		[SIM_GROW] = "volume grows",
		[SIM_STALL_REMOTE] = "storage server stalls",
		[SIM_KILL_REMOTE] = "storage server killed",
		[SIM_CUT_REMOTE] = "power cut of the storage server",
		[SIM_REMOVE_REMOTE] = "volume of the storage server removed",
	};

	return names[kind];
}

const char *sim_condition_name(enum sim_condition condition)
{
	static const char *const names[SIM_CONDITIONS] = {"gateway",
							  "resume",
							  "asynchronous IO",
							  "no membarrier",
							  "gateway and target in one process",
							  "targets inside the clients",
							  "two targets",
							  "two targets with one volume",
							  "zeroes",
							  "exports while running",
							  "lists and extents",
							  "backend memory",
							  "TCP from the clients",
							  "TCP to the target",
							  "direct links over TCP",
							  "delays",
							  "drops",
							  "errors",
							  "double completions",
							  "slow disk",
							  "failed syncs",
							  "failed writes",
							  "stalls",
							  "plain accesses as points",
							  "guest",
							  "guest that exchanges memory",
							  "guest that leaves",
							  "two paths",
							  "a leg exchanged",
							  "backend rbd",
							  "backend nbd",
							  "nothing wrong"};

	return names[condition];
}

bool sim_scenario_is_smooth(const struct sim_scenario *s)
{
	return s->target_stage.delay_us == 0 && s->gateway_stage.delay_us == 0 &&
	       s->disk.slowest_ns == 0 && s->disk.sync_fails_one_in == 0 &&
	       s->disk.write_fails_one_in == 0 && s->rates.stall_one_in == 0 &&
	       s->remote.fails_one_in == 0 && s->remote.silent_one_in == 0 &&
	       s->remote.garbled_one_in == 0 && s->remote.short_one_in == 0 &&
	       s->remote.slowest_ns <= SIM_REMOTE_FAST_NS;
}

uint32_t sim_scenario_conditions(const struct sim_scenario *s)
{
	const struct sim_stage *t = &s->target_stage, *g = &s->gateway_stage;
	const bool is[SIM_CONDITIONS] = {
		[SIM_WITH_GATEWAY] = s->gateway,
		[SIM_WITH_RESUME] = s->resume,
		[SIM_WITH_ASYNC] = s->async,
		[SIM_WITHOUT_MEMBARRIER] = !s->membarrier,
		[SIM_WITH_ONE_PROCESS] = s->topology.shape == SIM_JOINED,
		[SIM_WITH_TARGETS_INSIDE] = s->topology.shape == SIM_EMBEDDED,
		[SIM_WITH_TWO_TARGETS] = s->topology.n_targets == SIM_TARGETS,
		[SIM_WITH_ONE_VOLUME] = s->topology.spans,
		[SIM_WITH_ZEROES] = s->jobs[0].shares[SIM_ZERO] != 0,
		[SIM_WITH_SWAPS] = s->topology.swaps,
		[SIM_WITH_LISTS] = s->topology.lists,
		[SIM_WITH_MEMORY] = s->topology.memory,
		[SIM_WITH_TCP_FRONT] = s->topology.tcp_front,
		[SIM_WITH_TCP_BACK] = s->topology.tcp_back,
		[SIM_WITH_TCP_DIRECT] = s->topology.tcp_direct,
		[SIM_WITH_DELAYS] = t->delayed != 0 || (s->gateway && g->delayed != 0),
		[SIM_WITH_DROPS] = t->dropped != 0 || (s->gateway && g->dropped != 0),
		[SIM_WITH_ERRORS] = t->failed != 0 || (s->gateway && g->failed != 0),
		[SIM_WITH_DOUBLES] = t->doubled != 0 || (s->gateway && g->doubled != 0),
		[SIM_WITH_SLOW_DISK] = s->disk.slowest_ns != 0,
		[SIM_WITH_BAD_SYNCS] = s->disk.sync_fails_one_in != 0,
		[SIM_WITH_BAD_WRITES] = s->disk.write_fails_one_in != 0,
		[SIM_WITH_STALLS] = s->rates.stall_one_in != 0,
		[SIM_WITH_PLAIN_POINTS] = s->rates.plain_points,
		[SIM_WITH_GUEST] = s->topology.guest,
		[SIM_WITH_GUEST_EXCHANGES] = (s->jobs[0].guest & SIM_GUEST_EXCHANGES) != 0,
		[SIM_WITH_GUEST_LEAVES] = (s->jobs[0].guest & SIM_GUEST_LEAVES) != 0,
		[SIM_WITH_PATHS] = s->topology.paths,
		[SIM_WITH_LEGS] = s->topology.spans && s->topology.exchanges,
		[SIM_WITH_RBD] = s->remote.kind == SIM_RBD,
		[SIM_WITH_NBD] = s->remote.kind == SIM_NBD,
		[SIM_CALM] = s->n_faults == 0 && sim_scenario_is_smooth(s)};
	uint32_t bits = 0;

	for (uint32_t i = 0; i < SIM_CONDITIONS; i++)
		bits |= (uint32_t)is[i] << i;
	return bits;
}

/* -- drawing -- */

/* Draw a time of any order of magnitude from `least` on. */
static uint64_t draw_time(uint64_t least, uint32_t magnitudes)
{
	uint64_t at = least << sim_draw(magnitudes);

	return at + sim_draw64() % at;
}

static void draw_job(struct sim_job *job, uint32_t number)
{
	uint64_t think_ns = draw_time(1000, 12);

	*job = (struct sim_job){.think_ns = (uint32_t)think_ns,
				.own = sim_draw(2),
				.client = number + 1,
				.queues = 1 + sim_draw(2),
				.depth = 1u << sim_draw(4),
				.ops = 8u << sim_draw(5),
				.blocks = 2u << sim_draw(sim_draw(2) != 0 ? 2 : 5),
				.io_blocks = 1 + sim_draw(2),
				.shares = {[SIM_READ] = 4,
					   [SIM_WRITE] = 4,
					   [SIM_FUA] = sim_draw(3),
					   [SIM_FLUSH] = sim_draw(3)}};
	strcpy(job->file, "/etc/load.conf");
}

static void draw_fault(struct sim_fault *fault, const struct sim_scenario *s)
{
	*fault = (struct sim_fault){.kind = (enum sim_fault_kind)sim_draw(SIM_DRAWN_KINDS),
				    .client = sim_draw(s->n_clients),
				    .at_ns = draw_time(MS / 16, 9),
				    .down_ns = draw_time(MS / 16, 12)};
	fault->after_start = sim_draw(4) == 0;
	if (fault->after_start)
		fault->at_ns = draw_time(MS / 64, 8);
	else if (fault != s->faults && sim_draw(3) == 0) /* soon after the previous fault */
		fault->at_ns = fault[-1].at_ns + draw_time(MS / 64, 8);
}

static void draw_stage(struct sim_stage *stage, const struct sim_scenario *s)
{
	if (sim_draw(2) != 0)
		return;
	stage->delayed = sim_draw(2) * (1u << sim_draw(6));
	stage->dropped = sim_draw(4) == 0 ? 1u << sim_draw(3) : 0;
	stage->failed = sim_draw(4) == 0 ? 1u << sim_draw(3) : 0;
	stage->doubled = sim_draw(4) == 0 ? 1u << sim_draw(3) : 0;
	stage->delay_us = sim_draw(2) != 0 ? draw_time(10, 14)
					   : (s->io_timeout_ms * 1000 / 4) << sim_draw(3);
}

/* Called after the rates have been drawn. */
static void draw_faults(struct sim_scenario *s)
{
	s->n_faults = sim_draw(4) == 0 ? 0 : 1 + sim_draw(5);
	for (uint32_t i = 0; i < s->n_faults; i++)
		draw_fault(&s->faults[i], s);
	draw_stage(&s->target_stage, s);
	draw_stage(&s->gateway_stage, s);
	if (sim_draw(2) == 0) /* so slow that some IOs miss their deadline */
		s->disk.slowest_ns = (s->io_timeout_ms * MS / 4) << sim_draw(5);
	else if (sim_draw(2) == 0)
		s->disk.slowest_ns = MS << sim_draw(7);
	s->disk.slow_one_in = 1u << sim_draw(6);
	if (sim_draw(8) == 0)
		s->disk.sync_fails_one_in = 4u << sim_draw(6);
	if (sim_draw(8) == 0)
		s->disk.write_fails_one_in = 4u << sim_draw(4);
	if (sim_draw(2) == 0) {
		s->rates.stall_one_in = 200u << sim_draw(6);
		s->rates.stall_ns = MS << sim_draw(9);
	}
}

/* Draw a power cut of the target as the only fault: all clients survive it, and flush often. */
static void draw_cut(struct sim_scenario *s)
{
	s->n_faults = 1;
	s->faults[0] = (struct sim_fault){.kind = SIM_POWER_CUT,
					  .at_ns = draw_time(MS / 4, 4),
					  .down_ns = draw_time(MS / 16, 8)};
	s->io_timeout_ms = 1280;
	for (uint32_t i = 0; i < s->n_clients; i++) {
		s->jobs[i].ops = 128;
		s->jobs[i].shares[SIM_FLUSH] = 1;
	}
}

/*
 * Draw faults that let allocations fail, while a process starts or later. Called after all other
 * draws, with a separate sequence of numbers, so that the rest of a scenario does not change.
 */
static void draw_starvation(struct sim_scenario *s)
{
	static const enum sim_fault_kind kinds[] = {SIM_STARVE_CLIENT, SIM_STARVE_GATEWAY,
						    SIM_STARVE_TARGET};

	sim_begin(s->seed ^ 0x3e3);
	if (sim_draw(5) != 0)
		return;
	for (uint32_t n = 1 + sim_draw(3); n > 0; n--)
		s->faults[s->n_faults++] =
			(struct sim_fault){.kind = kinds[sim_draw(3)],
					   .client = sim_draw(s->n_clients),
					   .after_start = sim_draw(6) == 0,
					   .at_ns = sim_draw(2) == 0 ? 0 : draw_time(MS / 64, 10),
					   .down_ns = draw_time(MS / 16, 11),
					   .one_in = 1u << sim_draw(8)};
}

/*
 * Draw whether plain accesses are points, which makes a run slower. Called like draw_starvation(),
 * with a separate sequence of numbers.
 */
static void draw_plain_points(struct sim_scenario *s)
{
	sim_begin(s->seed ^ 0x91a1);
	s->rates.plain_points = s->rates.only_shared = sim_draw(PLAIN_ONE_IN) == 0;
	for (uint32_t i = 0; i < s->n_clients && s->rates.plain_points; i++)
		if (s->jobs[i].ops > PLAIN_OPS)
			s->jobs[i].ops = PLAIN_OPS;
}

/* Draw whether one more process exports regions while its session runs. Called likewise. */
static void draw_swaps(struct sim_scenario *s)
{
	sim_begin(s->seed ^ 0x5a9);
	s->topology.swaps = sim_draw(SWAPS_ONE_IN) == 0;
}

/* Draw IO with lists and extents. Called likewise. */
static void draw_lists(struct sim_scenario *s)
{
	sim_begin(s->seed ^ 0x1157);
	if (sim_draw(LISTS_ONE_IN) == 0)
		sim_topology_draw_lists(s);
}

/* Draw which legs are TCP. Called likewise. */
static void draw_tcp(struct sim_scenario *s)
{
	sim_begin(s->seed ^ 0x7c9);
	if (sim_draw(TCP_ONE_IN) == 0)
		sim_topology_draw_tcp(s);
}

/* Draw whether client 1 is a guest. Called likewise. */
static void draw_guest(struct sim_scenario *s)
{
	sim_begin(s->seed ^ 0x6e57);
	if (sim_draw(GUEST_ONE_IN) == 0)
		sim_topology_draw_guest(s);
}

/*
 * The only fault: the first gateway hangs, so its sessions resume on the other path. It continues
 * while the clients still submit IO.
 */
static void hang_during_io(struct sim_scenario *s)
{
	s->heartbeat_ms = 20;
	s->io_timeout_ms = 640;
	s->target_stage.dropped = s->gateway_stage.dropped = 0;
	s->n_faults = 1;
	s->faults[0] = (struct sim_fault){.kind = SIM_HANG_GATEWAY,
					  .at_ns = 3 * MS + sim_draw64() % (32 * MS),
					  .down_ns = 2960 * MS + sim_draw64() % (120 * MS)};
	for (uint32_t i = 0; i < s->n_clients; i++) {
		s->jobs[i].ops = 256;
		s->jobs[i].think_ns = (uint32_t)draw_time(MS, 3);
	}
}

/*
 * Draw a server that hangs for longer than its peers wait for a heartbeat. Called after the draws
 * above, with a separate sequence of numbers.
 */
static void draw_hang(struct sim_scenario *s)
{
	sim_begin(s->seed ^ 0x4a9);
	if (s->n_faults == SIM_FAULTS || sim_draw(s->topology.paths ? 2 : 16) != 0)
		return;
	s->faults[s->n_faults++] = (struct sim_fault){
		.kind = sim_draw(4) != 0 ? SIM_HANG_GATEWAY : SIM_HANG_TARGET,
		.client = sim_draw(s->n_clients),
		.at_ns = draw_time(MS / 16, 9),
		.down_ns = (4 + sim_draw(6)) * s->heartbeat_ms * MS,
	};
	if (s->topology.paths && s->topology.tcp_back)
		hang_during_io(s);
}

/* Draw a storage server behind the targets. Called likewise. */
static void draw_remote(struct sim_scenario *s)
{
	sim_begin(s->seed ^ 0x4eb);
	if (sim_draw(REMOTE_ONE_IN) == 0)
		sim_topology_draw_remote(s);
}

/* Draw whether a leg of a volume is exchanged for a time. Called likewise. */
static void draw_legs(struct sim_scenario *s)
{
	sim_begin(s->seed ^ 0x1e6);
	if (sim_draw(LEGS_ONE_IN) == 0)
		sim_topology_draw_legs(s);
}

/*
 * Let the file of a volume grow, often while a process is down. If the targets form one volume,
 * only the last can grow. Called last, with a separate sequence of numbers.
 */
static void draw_growth(struct sim_scenario *s)
{
	const struct sim_topology *t = &s->topology;

	sim_begin(s->seed ^ 0x960);
	if (s->n_faults == SIM_FAULTS || t->shape == SIM_EMBEDDED || t->memory ||
	    s->remote.kind == SIM_NBD || sim_draw(6) != 0)
		return;
	s->faults[s->n_faults] = (struct sim_fault){
		.kind = SIM_GROW,
		.client = t->spans ? SIM_TARGETS - 1 : sim_draw(t->n_targets),
		.at_ns = s->n_faults != 0 && sim_draw(4) != 0
				 ? s->faults[sim_draw(s->n_faults)].at_ns + draw_time(MS / 16, 4)
				 : draw_time(MS / 16, 9)};
	s->n_faults++;
}

void sim_scenario_draw(struct sim_scenario *s, uint64_t seed)
{
	sim_begin(seed);
	memset(s, 0, sizeof(*s));
	s->seed = seed;
	s->gateway = sim_draw(2) != 0;
	s->resume = sim_draw(2) != 0;
	s->async = sim_draw(2) != 0;
	s->membarrier = sim_draw(4) != 0;
	s->n_clients = 1 + sim_draw(SIM_CLIENTS);
	for (uint32_t i = 0; i < s->n_clients; i++)
		draw_job(&s->jobs[i], i);
	s->heartbeat_ms = 20u << sim_draw(5);
	s->io_timeout_ms = 5u << sim_draw(sim_draw(2) != 0 ? 3 : 8);
	s->spin_ns = sim_draw(3) == 0 ? 0 : 500u << sim_draw(7);
	sim_rates_draw(&s->rates);
	s->rates.plain_points = false;
	if (s->resume && sim_draw(6) == 0)
		draw_cut(s);
	else if (sim_draw(6) != 0)
		draw_faults(s);
	else
		/* no faults: operations must succeed, also while the client pauses (think_ns) */
		s->io_timeout_ms = 320;
	sim_topology_draw(s);
	draw_starvation(s);
	draw_plain_points(s);
	draw_swaps(s);
	draw_lists(s);
	draw_tcp(s);
	draw_guest(s);
	sim_topology_add_paths(s);
	draw_hang(s);
	draw_remote(s);
	draw_legs(s);
	draw_growth(s);
}

/* -- leaving out -- */

void sim_scenario_limit(struct sim_scenario *s, const struct sim_limits *limits)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < s->n_faults; i++)
		if (!(limits->without_faults & 1u << i))
			s->faults[kept++] = s->faults[i];
	s->n_faults = kept;
	for (uint32_t i = 0; i < s->n_clients; i++) {
		struct sim_job *job = &s->jobs[i];

		job->ops >>= limits->ops_shift;
		if (limits->without_clients & 1u << i)
			job->ops = 0;
		if (limits->shallow)
			job->queues = job->depth = 1;
	}
	if (limits->strong) {
		s->rates.model = SIM_SC;
		s->rates.stall_one_in = 0;
	}
	sim_topology_limit(s, limits->without_features);
}

bool sim_limits_shrink(struct sim_limits *limits, uint32_t step)
{
	struct sim_limits before = *limits;

	if (step < SIM_FAULTS)
		limits->without_faults |= 1u << step;
	else if (step < SIM_FAULTS + SIM_CLIENTS)
		limits->without_clients |= 1u << (step - SIM_FAULTS);
	else if (step == SIM_FAULTS + SIM_CLIENTS && limits->ops_shift < 4)
		limits->ops_shift++;
	else if (step == SIM_FAULTS + SIM_CLIENTS + 1)
		limits->shallow = 1;
	else if (step == SIM_FAULTS + SIM_CLIENTS + 2)
		limits->strong = 1;
	else if (step > SIM_FAULTS + SIM_CLIENTS + 2 &&
		 step <= SIM_FAULTS + SIM_CLIENTS + 2 + SIM_FEATURES)
		limits->without_features |= 1u << (step - SIM_FAULTS - SIM_CLIENTS - 3);
	return memcmp(&before, limits, sizeof(before)) != 0;
}

void sim_limits_print(const struct sim_limits *l, char *text, size_t bytes)
{
	static const struct sim_limits none;

	text[0] = 0;
	if (memcmp(l, &none, sizeof(none)) != 0)
		snprintf(text, bytes, " --limit %x,%x,%u,%u,%u,%x", l->without_faults,
			 l->without_clients, l->ops_shift, l->shallow, l->strong,
			 l->without_features);
}

bool sim_limits_parse(struct sim_limits *l, const char *text)
{
	return sscanf(text, "%x,%x,%u,%u,%u,%x", &l->without_faults, &l->without_clients,
		      &l->ops_shift, &l->shallow, &l->strong, &l->without_features) >= 5;
}

void sim_scenario_print(const struct sim_scenario *s)
{
	fprintf(sim_out,
		"seed %" PRIu64 ": %u clients%s, resume %s, io_timeout %" PRIu64
		" ms, heartbeat %" PRIu64 " ms,\n",
		s->seed, s->n_clients, s->gateway ? " behind a gateway" : "",
		s->resume ? "on" : "off", s->io_timeout_ms, s->heartbeat_ms);
	fprintf(sim_out, "  memory model %d, 1 change of thread in %u accesses, engine %s%s\n",
		(int)s->rates.model, s->rates.switch_one_in, s->async ? "uring" : "sync",
		s->membarrier ? "" : ", no membarrier");
	for (uint32_t i = 0; i < s->n_clients; i++)
		fprintf(sim_out,
			"  client %u: %u queues, depth %u, %u operations each, %u blocks\n", i + 1,
			s->jobs[i].queues, s->jobs[i].depth, s->jobs[i].ops, s->jobs[i].blocks);
	sim_topology_print(s);
	for (uint32_t i = 0; i < s->n_faults; i++)
		fprintf(sim_out, "  %s at %.3f ms%s for %.3f ms\n",
			sim_fault_name(s->faults[i].kind), (double)s->faults[i].at_ns / MS,
			s->faults[i].after_start ? " after a client has started again" : "",
			(double)s->faults[i].down_ns / MS);
}
