/* SPDX-License-Identifier: BSD-3-Clause */
/* scenario.c - what a seed decides, what of it is left out, and how it is printed */
#include "scenario.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MS 1000000ull

const char *sim_fault_name(enum sim_fault_kind kind)
{
	static const char *const names[SIM_FAULT_KINDS] = {
		"client killed",  "gateway killed",          "target killed",   "gateway stopped",
		"target stopped", "power cut of the target", "power cut of all"};

	return names[kind];
}

/* -- drawing -- */

/* A time of any order of magnitude from `least` on. */
static uint64_t draw_time(uint64_t least, uint32_t magnitudes)
{
	uint64_t at = least << sim_draw(magnitudes);

	return at + sim_draw64() % at;
}

static void draw_job(struct sim_job *job, uint32_t number)
{
	uint64_t think_ns = draw_time(1000, 12);

	*job = (struct sim_job){
		.think_ns = (uint32_t)think_ns,
		.client = number + 1, .queues = 1 + sim_draw(2), .depth = 1u << sim_draw(4), .ops = 8u << sim_draw(5),
		.blocks = 2u << sim_draw(5), .io_blocks = 1 + sim_draw(2),
		.shares = {[SIM_READ] = 4, [SIM_WRITE] = 4, [SIM_FUA] = sim_draw(2), [SIM_FLUSH] = sim_draw(2)}};
	strcpy(job->file, "/etc/load.conf");
	strcpy(job->role, "load");
}

static void draw_fault(struct sim_fault *fault, const struct sim_scenario *s)
{
	*fault = (struct sim_fault){.kind = (enum sim_fault_kind)sim_draw(SIM_FAULT_KINDS), .client = sim_draw(s->n_clients),
				    .at_ns = draw_time(MS / 16, 9), .down_ns = draw_time(MS, 8)};
}

static void draw_stage(struct sim_stage *stage)
{
	if (sim_draw(2) != 0)
		return;
	stage->delayed = sim_draw(2) * (1u << sim_draw(6));
	stage->dropped = sim_draw(4) == 0 ? 1u << sim_draw(3) : 0;
	stage->failed = sim_draw(4) == 0 ? 1u << sim_draw(3) : 0;
	stage->doubled = sim_draw(4) == 0 ? 1u << sim_draw(3) : 0;
	stage->delay_us = draw_time(10, 14);
}

/* After the rates. */
static void draw_faults(struct sim_scenario *s)
{
	s->n_faults = sim_draw(4) == 0 ? 0 : 1 + sim_draw(5);
	for (uint32_t i = 0; i < s->n_faults; i++)
		draw_fault(&s->faults[i], s);
	draw_stage(&s->target_stage);
	draw_stage(&s->gateway_stage);
	if (sim_draw(3) == 0)
		s->disk.slowest_ns = MS << sim_draw(7);
	if (sim_draw(8) == 0)
		s->disk.sync_fails_one_in = 2u << sim_draw(4);
	if (sim_draw(8) == 0)
		s->disk.write_fails_one_in = 4u << sim_draw(4);
	if (sim_draw(2) == 0) {
		s->rates.stall_one_in = 200u << sim_draw(6);
		s->rates.stall_ns = MS << sim_draw(9);
	}
}

void sim_scenario_draw(struct sim_scenario *s, uint64_t seed)
{
	sim_begin(seed);
	memset(s, 0, sizeof(*s));
	s->seed = seed;
	s->gateway = sim_draw(2) != 0;
	s->resume = sim_draw(2) != 0;
	s->n_clients = 1 + sim_draw(SIM_CLIENTS);
	for (uint32_t i = 0; i < s->n_clients; i++)
		draw_job(&s->jobs[i], i);
	s->heartbeat_ms = 20u << sim_draw(5);
	s->io_timeout_ms = 5u << sim_draw(8);
	s->spin_ns = sim_draw(3) == 0 ? 0 : 500u << sim_draw(7);
	sim_rates_draw(&s->rates);
	s->rates.plain_points = false;
	if (sim_draw(6) != 0)
		draw_faults(s); /* else nothing is wrong, and every operation has to succeed in time */
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
	return memcmp(&before, limits, sizeof(before)) != 0;
}

void sim_limits_print(const struct sim_limits *l, char *text, size_t bytes)
{
	static const struct sim_limits none;

	text[0] = 0;
	if (memcmp(l, &none, sizeof(none)) != 0)
		snprintf(text, bytes, " --limit %x,%x,%u,%u,%u", l->without_faults, l->without_clients, l->ops_shift, l->shallow,
			 l->strong);
}

bool sim_limits_parse(struct sim_limits *l, const char *text)
{
	return sscanf(text, "%x,%x,%u,%u,%u", &l->without_faults, &l->without_clients, &l->ops_shift, &l->shallow, &l->strong) == 5;
}

void sim_scenario_print(const struct sim_scenario *s)
{
	fprintf(sim_out, "seed %" PRIu64 ": %u clients%s, resume %s, io_timeout %" PRIu64 " ms, heartbeat %" PRIu64 " ms,\n",
		s->seed, s->n_clients, s->gateway ? " behind a gateway" : "", s->resume ? "on" : "off", s->io_timeout_ms,
		s->heartbeat_ms);
	fprintf(sim_out, "  memory model %d, 1 change of thread in %u accesses\n", (int)s->rates.model, s->rates.switch_one_in);
	for (uint32_t i = 0; i < s->n_clients; i++)
		fprintf(sim_out, "  client %u: %u queues, depth %u, %u operations each, %u blocks\n", i + 1, s->jobs[i].queues,
			s->jobs[i].depth, s->jobs[i].ops, s->jobs[i].blocks);
	for (uint32_t i = 0; i < s->n_faults; i++)
		fprintf(sim_out, "  %s at %.3f ms for %.3f ms\n", sim_fault_name(s->faults[i].kind),
			(double)s->faults[i].at_ns / MS, (double)s->faults[i].down_ns / MS);
}
