/* SPDX-License-Identifier: BSD-3-Clause */
/* scenario.h - the scenario of a seed: processes, clients, faults, and their times */
#ifndef SIM_SCENARIO_H
#define SIM_SCENARIO_H

#include "image.h"
#include "judge.h"
#include "os.h"
#include "remote.h"
#include "sim.h"
#include "topology.h"

#define SIM_CLIENTS 3u
#define SIM_FAULTS 16u

enum sim_fault_kind {
	SIM_KILL_CLIENT,
	SIM_KILL_GATEWAY,
	SIM_KILL_TARGET,
	SIM_STOP_GATEWAY, /* by SIGTERM */
	SIM_STOP_TARGET,
	SIM_POWER_CUT,   /* power cut of the machine of the targets */
	SIM_BLACKOUT,    /* power cut of all machines */
	SIM_DRAWN_KINDS, /* scenario.c draws the kinds above, topology.c SIM_EXCHANGE */
	/* the target is killed, and its volume exchanged for another one until the next exchange */
	SIM_EXCHANGE = SIM_DRAWN_KINDS,
	/* some allocations fail; drawn last by scenario.c */
	SIM_STARVE_CLIENT,
	SIM_STARVE_GATEWAY,
	SIM_STARVE_TARGET,
	/* of the role vhost-user-blk; drawn by topology.c */
	SIM_KILL_DISK,
	SIM_STOP_DISK,
	SIM_STARVE_DISK,
	/* no thread of the process runs; drawn after all other draws by scenario.c */
	SIM_HANG_GATEWAY,
	SIM_HANG_TARGET,
	/* the file of the volume becomes larger; also drawn after all other draws */
	SIM_GROW,
	/* of the storage server behind the targets; drawn by topology.c, see remote.h */
	SIM_STALL_REMOTE,
	SIM_KILL_REMOTE,
	SIM_CUT_REMOTE,
	SIM_REMOVE_REMOTE,
	SIM_FAULT_KINDS
};

struct sim_fault {
	enum sim_fault_kind kind;
	/* the client, 0 ..; for a fault of a target: number of the target, modulo n_targets */
	uint32_t client;
	bool after_start; /* at_ns counts from the moment at which a client has started again */
	uint64_t at_ns;
	/* time until the restart; STARVE: how long allocations fail; HANG: until it continues */
	uint64_t down_ns;
	uint32_t part;   /* STALL_REMOTE: see sim_remote_stall() */
	uint32_t one_in; /* STARVE: one in this many allocations fails, on average */
};

/* The stage `fault` of a role. Shares are in percent; all 0: none. */
struct sim_stage {
	uint32_t delayed, dropped, failed, doubled;
	uint64_t delay_us;
};

/* All draws before the run begins; a shrunk scenario has fewer parts. */
struct sim_scenario {
	uint64_t seed;
	bool gateway; /* the scenario has a gateway between clients and target */
	bool resume;
	bool async;      /* the target uses an asynchronous engine */
	bool membarrier; /* the kernel has membarrier(2) */
	uint32_t n_clients, n_faults;
	struct sim_job jobs[SIM_CLIENTS];
	struct sim_fault faults[SIM_FAULTS];
	struct sim_rates rates;
	struct sim_disk_faults disk;
	uint64_t io_timeout_ms, heartbeat_ms, spin_ns;
	struct sim_stage target_stage, gateway_stage;
	struct sim_remote_faults remote;
	struct sim_topology topology;
};

/* The parts that are left out of a scenario. All 0: none. */
struct sim_limits {
	uint32_t without_faults;   /* bit mask of faults that are left out */
	uint32_t without_clients;  /* bit mask of clients that are left out */
	uint32_t ops_shift;        /* how often the number of operations of each client is halved */
	uint32_t shallow;          /* 1: one queue, depth 1 for each client */
	uint32_t strong;           /* 1: stores are visible immediately, no thread stalls */
	uint32_t without_features; /* bits of enum sim_feature */
};
#define SIM_SHRINK_STEPS 32u

void sim_scenario_draw(struct sim_scenario *scenario, uint64_t seed);

void sim_scenario_limit(struct sim_scenario *scenario, const struct sim_limits *limits);
/*
 * Leave out one more part of the scenario. step: number of the part, less than SIM_SHRINK_STEPS.
 * Returns false if this part is left out already, or if no part has this number.
 */
bool sim_limits_shrink(struct sim_limits *limits, uint32_t step);
/* Print the limits as an option: " --limit ...", or nothing if there are none. */
void sim_limits_print(const struct sim_limits *limits, char *text, size_t bytes);
bool sim_limits_parse(struct sim_limits *limits, const char *text);

/* Properties of a whole run, for statistics. */
enum sim_condition {
	SIM_WITH_GATEWAY,
	SIM_WITH_RESUME,
	SIM_WITH_ASYNC,
	SIM_WITHOUT_MEMBARRIER,
	SIM_WITH_ONE_PROCESS,    /* gateway and target share a process */
	SIM_WITH_TARGETS_INSIDE, /* each client has its target in its process */
	SIM_WITH_TWO_TARGETS,
	SIM_WITH_ONE_VOLUME,
	SIM_WITH_ZEROES,     /* writes of zeroes and discards */
	SIM_WITH_SWAPS,      /* regions are exported and unexported while their session runs */
	SIM_WITH_LISTS,      /* IO with lists, and extents */
	SIM_WITH_MEMORY,     /* the backend `memory` */
	SIM_WITH_TCP_FRONT,  /* the leg from the clients is TCP */
	SIM_WITH_TCP_BACK,   /* the leg from the gateway to the target is TCP */
	SIM_WITH_TCP_DIRECT, /* targets connect to the clients over TCP */
	SIM_WITH_DELAYS,     /* a stage delays IOs; the next three are also effects of a stage */
	SIM_WITH_DROPS,
	SIM_WITH_ERRORS,
	SIM_WITH_DOUBLES,
	SIM_WITH_SLOW_DISK,
	SIM_WITH_BAD_SYNCS,
	SIM_WITH_BAD_WRITES,
	SIM_WITH_STALLS,
	SIM_WITH_PLAIN_POINTS,
	SIM_WITH_GUEST, /* client 1 is a guest */
	SIM_WITH_GUEST_EXCHANGES,
	SIM_WITH_GUEST_LEAVES,
	SIM_WITH_PATHS, /* two gateways, each a path to the same targets */
	SIM_WITH_LEGS,  /* a leg of the volume is exchanged for a time */
	SIM_WITH_RBD,   /* the backend `rbd`; next: `nbd` */
	SIM_WITH_NBD,
	SIM_CALM, /* no faults */
	SIM_CONDITIONS
};
/* Whether the scenario has no source of errors except its faults. */
bool sim_scenario_is_smooth(const struct sim_scenario *scenario);
uint32_t sim_scenario_conditions(const struct sim_scenario *scenario); /* bit mask */
const char *sim_condition_name(enum sim_condition condition);

/* The actions of the environment during a run. */
struct sim_course {
	/* takes the actions that are due; returns the time of the next one */
	uint64_t (*act)(void);
	bool (*is_over)(void);
	uint64_t limit_ns, limit_steps;
};
/*
 * Run until the end. Returns NULL, or the error: a verdict of the judge, or a limit that was
 * reached.
 */
const char *sim_until_over(const struct sim_course *course);

struct sim_outcome {
	const char *verdict; /* NULL: the run keeps the guarantees */
	uint64_t trace, steps, ns;
	uint32_t conditions;
	uint32_t ops[SIM_OPS][SIM_RESULTS], faults[SIM_FAULT_KINDS];
	uint32_t failed_allocations;
};
/* Run a scenario. The same scenario has the same outcome. */
void sim_scenario_run(const struct sim_scenario *scenario, struct sim_outcome *outcome);
/* Print a scenario as text. */
void sim_scenario_print(const struct sim_scenario *scenario);

const char *sim_fault_name(enum sim_fault_kind kind);
/* Print the log and each event of the processes during a run. */
extern bool sim_verbose;

#endif
