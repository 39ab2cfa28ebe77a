/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * topology.h - which processes a scenario has, their configurations and their volumes
 *
 *     SEPARATE   clients, perhaps a gateway, targets: a process each, joined by shm-comch
 *     JOINED     gateway and target in one process, joined by loop; clients reach it by shm-comch
 *     EMBEDDED   each client has a target inside, joined by loop, and a volume of its own
 *
 * Separate targets are two in some scenarios. Then clients use the volume of the one or of the
 * other, all through the same gateway if there is one. Faults of one target must not disturb the
 * clients of the other.
 *
 * Volumes have numbers: 0 and 1 those of the targets (of the clients, if EMBEDDED), 2 and 3 those
 * that SIM_EXCHANGE puts behind their names. If a scenario exchanges volumes, the last byte of each
 * UUID is the number of the volume plus 1.
 */
#ifndef SIM_TOPOLOGY_H
#define SIM_TOPOLOGY_H

#include <stdbool.h>
#include <stdint.h>

#define SIM_VOLUMES 4u
#define SIM_VOLUME_BLOCKS 64u
#define SIM_TARGETS 2u

enum sim_shape { SIM_SEPARATE, SIM_JOINED, SIM_EMBEDDED, SIM_SHAPES };

struct sim_topology {
	enum sim_shape shape;
	/*
	 * each lane of each role has a thread of its own; false: lanes of several roles share one
	 */
	bool lane_threads;
	uint32_t n_targets;
	bool exchanges; /* there are volumes to exchange */
	/* loop regions are not addressed: data moves by remote reads and writes */
	bool remote_reads;
};

/* Parts of a topology that sim_limits leaves out, as bits. */
enum sim_feature {
	SIM_NO_SHAPE = 1,
	SIM_NO_ZEROES = 2,
	SIM_ONE_TARGET = 4,
	SIM_FEATURES = 3 /* bits */
};

struct sim_scenario;

/* After all other draws of the scenario. */
void sim_topology_draw(struct sim_scenario *s);
/* features: bits of enum sim_feature. */
void sim_topology_limit(struct sim_scenario *s, uint32_t features);
void sim_topology_print(const struct sim_scenario *s);
/* The file in which a volume is now. It need not exist. */
const char *sim_topology_volume(uint32_t volume);
/* The configuration of target 0 or 1. */
const char *sim_topology_store(uint32_t target);
/* Exchange the volume of this target for its other one. */
void sim_topology_exchange(uint32_t target);
/* Configurations and volumes of a run that begins. */
void sim_topology_files(const struct sim_scenario *s);

#endif
