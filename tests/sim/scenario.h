/* SPDX-License-Identifier: BSD-3-Clause */
/* scenario.h - what one seed runs: processes, clients, faults, and the time of each */
#ifndef SIM_SCENARIO_H
#define SIM_SCENARIO_H

#include "image.h"
#include "judge.h"
#include "os.h"
#include "sim.h"
#include "topology.h"

#define SIM_CLIENTS 3u
#define SIM_FAULTS 16u

enum sim_fault_kind {
	SIM_KILL_CLIENT,
	SIM_KILL_GATEWAY,
	SIM_KILL_TARGET,
	SIM_STOP_GATEWAY, /* in order, by a signal */
	SIM_STOP_TARGET,
	SIM_POWER_CUT,   /* of the target's machine */
	SIM_BLACKOUT,    /* of all */
	SIM_DRAWN_KINDS, /* those before it are drawn by scenario.c, SIM_EXCHANGE by topology.c */
	/* the target is killed, and its file exchanged for another volume until the next time */
	SIM_EXCHANGE = SIM_DRAWN_KINDS,
	/* some of its allocations fail, as drawn last by scenario.c */
	SIM_STARVE_CLIENT,
	SIM_STARVE_GATEWAY,
	SIM_STARVE_TARGET,
	SIM_FAULT_KINDS
};

struct sim_fault {
	enum sim_fault_kind kind;
	uint32_t client;  /* 0 .. */
	bool after_start; /* at_ns counts from the moment at which a client has started again */
	uint64_t at_ns;
	uint64_t down_ns; /* until it is started again; without memory: how long allocations fail */
	uint32_t one_in;  /* without memory: allocations for each one that fails, on average */
};

/* The stage `fault` of a role. Shares are in percent; all 0: none. */
struct sim_stage {
	uint32_t delayed, dropped, failed, doubled;
	uint64_t delay_us;
};

/* All that a seed decides before the run begins; a shrunk scenario has less of it. */
struct sim_scenario {
	uint64_t seed;
	bool gateway; /* between clients and target */
	bool resume;
	bool async;      /* the target does IO beside its lane */
	bool membarrier; /* the kernel has it */
	uint32_t n_clients, n_faults;
	struct sim_job jobs[SIM_CLIENTS];
	struct sim_fault faults[SIM_FAULTS];
	struct sim_rates rates;
	struct sim_disk_faults disk;
	uint64_t io_timeout_ms, heartbeat_ms, spin_ns;
	struct sim_stage target_stage, gateway_stage;
	struct sim_topology topology;
};

/* What is left out of a scenario. All 0: nothing. */
struct sim_limits {
	uint32_t without_faults;   /* bits: of the faults of the scenario */
	uint32_t without_clients;  /* bits */
	uint32_t ops_shift;        /* each client does so many times half of its operations */
	uint32_t shallow;          /* 1: one queue, depth 1 for each client */
	uint32_t strong;           /* 1: stores are visible at once, no stalls */
	uint32_t without_features; /* bits of enum sim_feature */
};
#define SIM_SHRINK_STEPS 32u

void sim_scenario_draw(struct sim_scenario *scenario, uint64_t seed);

void sim_scenario_limit(struct sim_scenario *scenario, const struct sim_limits *limits);
/* Leave out one thing more. False: there is no such step. */
bool sim_limits_shrink(struct sim_limits *limits, uint32_t step);
/* As an option of the command line: " --limit ...", or nothing. */
void sim_limits_print(const struct sim_limits *limits, char *text, size_t bytes);
bool sim_limits_parse(struct sim_limits *limits, const char *text);

/* What is so during a whole run, and can be counted. */
enum sim_condition {
	SIM_WITH_GATEWAY,
	SIM_WITH_RESUME,
	SIM_WITH_ASYNC,
	SIM_WITHOUT_MEMBARRIER,
	SIM_WITH_ONE_PROCESS,    /* for gateway and target */
	SIM_WITH_TARGETS_INSIDE, /* the clients */
	SIM_WITH_TWO_TARGETS,
	SIM_WITH_ZEROES, /* and discards */
	SIM_WITH_DELAYS, /* of a stage, as the next three */
	SIM_WITH_DROPS,
	SIM_WITH_ERRORS,
	SIM_WITH_DOUBLES,
	SIM_WITH_SLOW_DISK,
	SIM_WITH_BAD_SYNCS,
	SIM_WITH_BAD_WRITES,
	SIM_WITH_STALLS,
	SIM_WITH_PLAIN_POINTS,
	SIM_CALM, /* nothing is wrong */
	SIM_CONDITIONS
};
/* Nothing is wrong but its faults. */
bool sim_scenario_is_smooth(const struct sim_scenario *scenario);
uint32_t sim_scenario_conditions(const struct sim_scenario *scenario); /* bits */
const char *sim_condition_name(enum sim_condition condition);

/* What the environment does during a run. */
struct sim_course {
	uint64_t (*act)(void); /* do what is due; returns the time at which something is due next */
	bool (*is_over)(void);
	uint64_t limit_ns, limit_steps;
};
/* Run until it is over. NULL; or what is wrong: the judge's verdict, or a limit was reached. */
const char *sim_until_over(const struct sim_course *course);

struct sim_outcome {
	const char *verdict; /* NULL: what the guarantees allow */
	uint64_t trace, steps, ns;
	uint32_t conditions;
	uint32_t ops[SIM_OPS][SIM_RESULTS], faults[SIM_FAULT_KINDS];
	uint32_t failed_allocations;
};
/* Run it. The same scenario has the same outcome. */
void sim_scenario_run(const struct sim_scenario *scenario, struct sim_outcome *outcome);
/* Print it in words. */
void sim_scenario_print(const struct sim_scenario *scenario);

const char *sim_fault_name(enum sim_fault_kind kind);
/* Print the log and each event of the processes while it runs. */
extern bool sim_verbose;

#endif
