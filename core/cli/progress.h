/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * progress.h - one line on a terminal about work that takes more than a second, rewritten each
 * second.
 *
 * It shows what the first role that works reports under these keys: "progress" { "done", "target" }
 * in any unit, if the role knows its end, and "total" { "ops", "bytes" }; with "submitted" 0, that
 * it waits for its peer.
 */
#ifndef GN_CLI_PROGRESS_H
#define GN_CLI_PROGRESS_H

#include "base/loop.h"
#include "topology/topology.h"

struct gn_progress {
	struct gn_loop *loop; /* NULL: stderr is no terminal */
	struct gn_topology *topology;
	struct gn_timer timer;
	uint64_t start_ns, last_ns;
	double last_ios, last_bytes;
	bool shown;
};

void gn_progress_open(struct gn_progress *progress, struct gn_loop *loop,
		      struct gn_topology *topology);
void gn_progress_close(struct gn_progress *progress);
/* Take the line away, because something else is about to be written; it comes back by itself. */
void gn_progress_clear(struct gn_progress *progress);

#endif
