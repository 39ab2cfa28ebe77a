/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * topology.h - the processes of a scenario, their configurations and their volumes
 *
 *     SEPARATE   clients, perhaps a gateway, targets: a process each, joined by shm-comch or tcp
 *     JOINED     gateway and target in one process, joined by loop; clients reach the gateway by
 *                shm-comch or tcp
 *     EMBEDDED   each client has a target inside, joined by loop, and a volume of its own
 *
 * Some scenarios have two separate targets. Then each client uses the volume of one of them, and
 * all share one gateway if there is one. Faults of one target must not disturb the clients of the
 * other. Or the gateway joins the two volumes to one.
 *
 * In some scenarios client 1 is a guest: a modelled virtual machine, whose disk is served by one
 * more process with the role vhost-user-blk. The role is a client of the gateway or target.
 *
 * Volumes have numbers: the targets (the clients, if EMBEDDED) have the volumes 0 and 1;
 * SIM_EXCHANGE replaces them by 2 and 3. If a scenario exchanges volumes, the last byte of each
 * UUID is the number of the volume plus 1.
 */
#ifndef SIM_TOPOLOGY_H
#define SIM_TOPOLOGY_H

#include <stdbool.h>
#include <stdint.h>

#define SIM_VOLUMES 4u
#define SIM_VOLUME_BLOCKS 64u
#define SIM_TARGETS 2u
#define SIM_PATHS 2u /* gateways of a scenario with `paths` */
#define SIM_DISK_SOCKET "/run/disk.sock"

enum sim_shape { SIM_SEPARATE, SIM_JOINED, SIM_EMBEDDED, SIM_SHAPES };

struct sim_topology {
	enum sim_shape shape;
	/*
	 * each lane of each role has its own thread; false: lanes of several roles share a thread
	 */
	bool lane_threads;
	uint32_t n_targets;
	/* the gateway joins the volumes of two targets to one, whose middle all clients use */
	bool spans;
	bool exchanges; /* the run has volumes to exchange */
	bool odd_size;  /* those that are not used at first have another size */
	/* the target does not address loop regions: data moves by remote reads and writes */
	bool remote_reads;
	/* one more process reads volume 0 into regions that it exports and unexports meanwhile */
	bool swaps;
	/* clients with gantry_volume_buffers() also submit IO with lists; all ask for extents */
	bool lists;
	bool memory; /* the targets use the backend `memory`, which accepts lists */
	/*
	 * the legs that use TCP instead of shm-comch; direct: the gateway tells targets where the
	 * owners of regions listen
	 */
	bool tcp_front, tcp_back, tcp_direct;
	uint32_t tcp_revoke_ms; /* revoke_timeout; short: peers exceed it */
	/* client 1 is a guest, whose disk is a process with the role vhost-user-blk */
	bool guest;
	/* clients and disk have two paths to the targets, each through a gateway of its own */
	bool paths;
};

/* Parts of a topology that sim_limits can leave out, as bits. */
enum sim_feature {
	SIM_NO_SHAPE = 1,
	SIM_NO_ZEROES = 2,
	SIM_ONE_TARGET = 4,
	SIM_NO_SWAPS = 8,
	SIM_NO_LISTS = 16,
	SIM_NO_TCP = 32,
	SIM_NO_TCP_DIRECT = 64,
	SIM_NO_GUEST = 128,
	SIM_NO_PATHS = 256,
	SIM_NO_SERVER = 512,
	SIM_FEATURES = 10 /* bits */
};

struct sim_scenario;

/* Draw the topology, after all other draws of the scenario. */
void sim_topology_draw(struct sim_scenario *s);
/* Draw IO with lists, extents and the backend, after the topology and its faults. */
void sim_topology_draw_lists(struct sim_scenario *s);
/* Draw the legs that use TCP, after all other draws. */
void sim_topology_draw_tcp(struct sim_scenario *s);
/* Draw a guest and faults of its disk, after all other draws. */
void sim_topology_draw_guest(struct sim_scenario *s);
/* Draw a storage server behind the targets and its faults, after all other draws. */
void sim_topology_draw_remote(struct sim_scenario *s);
/*
 * Exchange a leg of a volume for a time, in some scenarios whose gateway joins two volumes; after
 * all other draws.
 */
void sim_topology_draw_legs(struct sim_scenario *s);
/* Give some scenarios two paths; after all draws, and without a draw. */
void sim_topology_add_paths(struct sim_scenario *s);
/* Returns the configuration of gateway `number`. */
const char *sim_topology_bridge(uint32_t number);
/* Leave out features, a bit mask of enum sim_feature. */
void sim_topology_limit(struct sim_scenario *s, uint32_t features);
void sim_topology_print(const struct sim_scenario *s);
/* Returns the first block of each volume in its store; 0: the store is the volume. */
uint32_t sim_topology_first_block(const struct sim_scenario *s);
/*
 * Returns the number of a block of a volume of a target, counted over the volumes of the clients: a
 * client's volume v begins at block v * SIM_VOLUME_BLOCKS.
 */
uint32_t sim_topology_block(const struct sim_scenario *s, uint32_t volume, uint32_t block);
/* Returns the path of the file that now has a volume. The file need not exist. */
const char *sim_topology_volume(uint32_t volume);
/* Returns the path of the configuration of target 0 or 1. */
const char *sim_topology_store(uint32_t target);
/* Append a few blocks to the volume of this target. */
void sim_topology_grow(uint32_t target);
/* Exchange the two volumes of this target. */
void sim_topology_exchange(uint32_t target);
struct sim_fault;
/* Let this fault of the storage server begin. Returns true if volumes can lose changes by it. */
bool sim_topology_inject_remote(const struct sim_fault *fault);
/* Whether the scenario has the stage qos. */
bool sim_topology_limits_io(const struct sim_scenario *s);
/* Create the configurations and volumes of a run. */
void sim_topology_files(const struct sim_scenario *s);

#endif
