/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * budget.h - compare the demands of all roles of a process with the limits of its devices, and with
 * the memory that the process can lock.
 */
#ifndef GN_CLI_BUDGET_H
#define GN_CLI_BUDGET_H

#include <stdbool.h>

#include <gantry/role.h>

#include "config/config.h"

struct gn_budget_device {
	const char *name;
	struct gantry_device_info info;
	/* sums of all demands; UINT64_MAX on overflow */
	uint64_t sessions, lanes, queue_pairs;
	uint64_t queue_bytes, bounce_bytes, region_bytes;
};

/* Upper bounds of one `listen` or `connect` of a role. */
struct gn_demand {
	struct gn_budget_device *device;
	/* group of the role; option names of the plan are relative to it */
	struct gn_conf_node *role;
	/*
	 * the demand of a `listen`: its regions belong to the peers, so this process does not
	 * register them
	 */
	bool serves;
	struct gantry_plan plan;
	uint64_t bounce_bytes; /* bounce buffers of each lane */
};

struct gn_budget {
	struct gn_budget_device *devices;
	struct gn_demand *demands;
	uint32_t n_devices, n_demands;
	uint64_t locked_bytes; /* sum for devices with GANTRY_CAP_PINS */
};

/* Compute all sums. */
void gn_budget_sum(struct gn_budget *budget);

/*
 * Compare the demands and sums with the limits of the devices, and with the memory that the process
 * can lock (UINT64_MAX: no limit). Adds a fault for each demand that cannot be met, with its
 * remedy.
 */
void gn_budget_check(const struct gn_budget *budget, uint64_t memlock_bytes, struct gn_errs *errs);

/* Write the sums of a device into the current object. */
void gn_budget_write(const struct gn_budget_device *device, struct gantry_writer *w);

#endif
