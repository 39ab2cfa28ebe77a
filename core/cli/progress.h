/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * progress.h - a progress line on a terminal for work that takes more than a second. It is
 * rewritten each second.
 *
 * The line shows values that the first working role writes to its report: "progress" { "done",
 * "target" } in any unit, if the role knows its end, and "total" { "ops", "bytes" }. If "submitted"
 * is 0, the line states that the role waits for its peer.
 */
#ifndef GN_CLI_PROGRESS_H
#define GN_CLI_PROGRESS_H

#include "base/event_loop.h"
#include "topology/topology.h"

struct gn_progress {
	struct gn_loop *loop; /* NULL: stderr is not a terminal */
	struct gn_topology *topology;
	struct gn_timer timer;
	uint64_t start_ns, last_ns;
	double last_ios, last_bytes;
	bool shown;
};

void gn_progress_open(struct gn_progress *progress, struct gn_loop *loop,
		      struct gn_topology *topology);
void gn_progress_close(struct gn_progress *progress);
/* Erase the line before other output. It is written again within a second. */
void gn_progress_clear(struct gn_progress *progress);

#endif
