/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * progress.h - gives the progress of roles with work (GANTRY_ROLE_WORKS) to observers, once a
 * second and at the end of each role. The observers are those of the configuration and, if stderr
 * is a terminal, progress_line.h.
 *
 * The values are those that the role writes to its report: "progress" { "done", "target", "unit" }
 * in any unit, if the role knows its end, and "total" { "ops", "bytes" }. If "submitted" is 0, the
 * role waits for its peer.
 */
#ifndef GN_CLI_PROGRESS_H
#define GN_CLI_PROGRESS_H

#include "base/event_loop.h"
#include "topology/topology.h"

struct gn_observer;

struct gn_progress {
	struct gn_loop *loop; /* NULL: there is no observer */
	struct gn_topology *topology;
	struct gn_timer timer;
	uint64_t start_ns;
	struct gn_observer *observers;
	uint32_t n_observers; /* those that are open */
	bool *ended;          /* for each role: the observers know its end */
};

/* Open the observers. Returns 0; -ENOMEM; or -errno of `open`, after the cause was logged. */
int gn_progress_open(struct gn_progress *progress, struct gn_loop *loop,
		     struct gn_topology *topology);
/* Report the end of each role that has finished to the observers, once. */
void gn_progress_report_ends(struct gn_progress *progress);
/* Report the end of all roles, and close the observers. Idempotent. The roles still exist. */
void gn_progress_close(struct gn_progress *progress);

#endif
