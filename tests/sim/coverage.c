/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coverage.c - see coverage.h; a table lists the transitions of each machine, so that the report
 * can name those that were not reached
 */
#include "coverage.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "sim.h"

#define TRANSITIONS 20u

/*
 * Some transitions are never reached. A server goes from greeted or queued to ended if its client
 * closes in order while HELLO or QUEUES is in progress, and a client goes from retrying or
 * connecting to closing if its role closes it so early. Only the role initiator does so, when it is
 * stopped: a program with libgantry waits in gantry_volume_open(), and a gateway aborts its legs.
 * No simulated process runs the role initiator.
 */
static const struct machine {
	const char *name, *states[SIM_STATES];
	struct {
		uint8_t from, to;
	} transitions[TRANSITIONS]; /* unused: 0, 0 */
} machines[SIM_MACHINES] = {
	[SIM_CLIENT] = {.name = "client of a session",
			.states = {"new", "greeted", "known", "queued", "running", "stopped",
				   "ended"},
			.transitions = {{2, 2},
					{4, 4},
					{0, 1},
					{1, 2},
					{2, 3},
					{3, 4},
					{4, 5},
					{5, 6},
					{1, 6},
					{2, 6},
					{3, 6}}},
	[SIM_PHASE] = {.name = "phase of a client",
		       .states = {"retrying", "connecting", "open", "closing", "releasing", "ended",
				  "closed"},
		       .transitions = {{0, 1},
				       {1, 0},
				       {1, 2},
				       {2, 0},
				       {2, 3},
				       {3, 4},
				       {4, 5},
				       {5, 6},
				       {0, 3},
				       {1, 3},
				       {0, 5},
				       {1, 5},
				       {2, 5},
				       {3, 5}}},
	[SIM_SERVER] = {.name = "server of a session",
			.states = {"new", "greeted", "known", "queued", "running", "stopped",
				   "ended", "ending"},
			.transitions = {{2, 2},
					{4, 4},
					{0, 1},
					{1, 2},
					{2, 3},
					{3, 4},
					{4, 5},
					{5, 6},
					{1, 6},
					{2, 6},
					{3, 6},
					{0, 7},
					{1, 7},
					{2, 7},
					{3, 7},
					{4, 7},
					{5, 7},
					{6, 7}}},
	[SIM_VOLUME] = {.name = "volume of a client",
			.states = {"opening", "running", "paused", "closing", "closed"},
			.transitions = {{0, 1},
					{1, 2},
					{2, 1},
					{0, 3},
					{1, 3},
					{2, 3},
					{3, 4},
					{0, 4},
					{1, 4},
					{2, 4}}},
	[SIM_CONN] = {.name = "connection of shm-comch",
		      .states = {"none", "failed", "hello", "accept", "open", "dying", "closed",
				 "dead"},
		      .transitions = {{0, 2},
				      {0, 1},
				      {2, 3},
				      {2, 4},
				      {3, 4},
				      {1, 6},
				      {2, 6},
				      {4, 5},
				      {4, 6},
				      {5, 6},
				      {6, 7},
				      {1, 7},
				      {2, 1},
				      {2, 7},
				      {3, 7},
				      {4, 7},
				      {5, 7}}},
	/* no simulated process looks up a name; the server's connections begin as resolving */
	[SIM_TCP] =
		{.name = "connection of tcp",
		 .states = {"resolving", "connecting", "greeting", "up", "over"},
		 .transitions = {{0, 1}, {1, 2}, {2, 3}, {0, 3}, {0, 4}, {1, 4}, {2, 4}, {3, 4}}},
	[SIM_LINK] = {.name = "link of tcp",
		      .states = {"asked", "connecting", "handshake", "greeting", "up", "closed"},
		      /* the simulation has no record filter, and so no handshakes */
		      .transitions = {{0, 1},
				      {1, 3},
				      {3, 4},
				      {0, 4},
				      {0, 5},
				      {1, 5},
				      {3, 5},
				      {4, 5},
				      {5, 5},
				      {5, 0}}},
	[SIM_DISK] = {.name = "front end of a disk",
		      .states = {"idle", "connected", "leaving"},
		      .transitions = {{0, 1}, {1, 2}, {2, 0}}},
	[SIM_MEMORY] =
		{.name = "memory of a guest",
		 .states = {"stable", "allocate", "drain", "unexport", "export"},
		 .transitions =
			 {{0, 1}, {1, 2}, {1, 0}, {2, 3}, {3, 4}, {3, 0}, {4, 0}, {0, 2}, {4, 2}}},
};

static struct sim_coverage own; /* coverage of this process */

void sim_state_changed(enum sim_machine machine, int from, int to)
{
	if (from < 0 || from >= SIM_STATES || to < 0 || to >= SIM_STATES)
		sim_fail("state machine %d goes from %d to %d", (int)machine, from, to);
	if (from != 0 || to != 0) /* else a new object, which was cleared */
		own.transitions[machine][from][to]++;
}

void sim_coverage_move(struct sim_coverage *all)
{
	for (int m = 0; m < SIM_MACHINES; m++)
		for (int i = 0; i < SIM_STATES; i++)
			for (int k = 0; k < SIM_STATES; k++)
				__atomic_fetch_add(&all->transitions[m][i][k],
						   own.transitions[m][i][k], __ATOMIC_RELAXED);
	memset(&own, 0, sizeof(own));
}

static bool is_listed(const struct machine *m, int from, int to)
{
	for (unsigned i = 0; i < TRANSITIONS; i++)
		if (m->transitions[i].from == from && m->transitions[i].to == to &&
		    (from != 0 || to != 0))
			return true;
	return false;
}

static void print_machine(const struct machine *m, const uint64_t n[SIM_STATES][SIM_STATES],
			  FILE *out)
{
	const char *before = "not reached:";

	fprintf(out, "%s:", m->name);
	for (int i = 0; i < SIM_STATES; i++)
		for (int k = 0; k < SIM_STATES; k++)
			if (n[i][k] != 0)
				fprintf(out, " %s-%s%s %" PRIu64, m->states[i], m->states[k],
					is_listed(m, i, k) ? "" : " (not in the table)", n[i][k]);
	fputc('\n', out);
	for (int i = 0; i < SIM_STATES; i++)
		for (int k = 0; k < SIM_STATES; k++)
			if (n[i][k] == 0 && is_listed(m, i, k)) {
				fprintf(out, "%s %s-%s", before, m->states[i], m->states[k]);
				before = "";
			}
	if (*before == '\0')
		fputc('\n', out);
}

void sim_coverage_print(const struct sim_coverage *all, FILE *out)
{
	for (int m = 0; m < SIM_MACHINES; m++)
		print_machine(&machines[m], all->transitions[m], out);
}
