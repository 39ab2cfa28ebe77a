/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * budget.h - what the roles of one process ask of its devices, beside what those have and what the
 * process may lock.
 */
#ifndef GN_CLI_BUDGET_H
#define GN_CLI_BUDGET_H

#include <stdbool.h>

#include <gantry/role.h>

#include "config/config.h"

struct gn_budget_device {
	const char *name;
	struct gantry_device_info info;
	/* what all demands come to; a number that does not fit is UINT64_MAX */
	uint64_t sessions, lanes, queue_pairs;
	uint64_t queue_bytes, bounce_bytes, region_bytes;
};

/* One `listen` or `connect` of a role: the most that it comes to. */
struct gn_demand {
	struct gn_budget_device *device;
	struct gn_conf_node *role; /* its group: options of the plan are named from here */
	bool serves;               /* a listen: regions are the peers', and not registered here */
	struct gantry_plan plan;
	uint64_t bounce_bytes; /* buffers of each lane, for data that has to be moved */
};

struct gn_budget {
	struct gn_budget_device *devices;
	struct gn_demand *demands;
	uint32_t n_devices, n_demands;
	uint64_t locked_bytes; /* of devices with GANTRY_CAP_PINS */
};

/* Fill the sums anew. */
void gn_budget_sum(struct gn_budget *budget);

/*
 * Compare the demands and sums with the limits of the devices, and with the memory that the process
 * may lock (UINT64_MAX: any amount). Adds a fault for each thing that cannot work, with what to
 * write instead.
 */
void gn_budget_check(const struct gn_budget *budget, uint64_t memlock_bytes, struct gn_errs *errs);

/* The sums of a device, into the object that is open. */
void gn_budget_write(const struct gn_budget_device *device, struct gantry_writer *w);

#endif
