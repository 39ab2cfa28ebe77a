/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * graph.h - a graph of work, and one run of it.
 *
 * A graph is a plan: nodes, and which of them wait for which. An instance holds what one run needs,
 * node by node: a task, a cookie, or an instance of another graph. A run is a chain of events on
 * the engine of the graph: each event starts one node whose predecessors have ended; the end of a
 * node starts those that waited for it alone. After the first failure nothing more is started, and
 * the run ends when what was started has ended. All functions belong to the thread of the engine.
 */
#ifndef GD_GRAPH_H
#define GD_GRAPH_H

#include "engine/ctx.h"

#include <doca_graph.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gd_node_kind { GD_NODE_CTX, GD_NODE_USER, GD_NODE_GRAPH };

struct doca_graph_node {
	struct doca_graph *graph;
	struct doca_graph_node *next; /* of the graph */
	enum gd_node_kind kind;
	const struct doca_ctx *ctx;
	doca_graph_user_node_cb_t cb;
	struct doca_graph *sub;
	uint32_t index;                 /* in the graph */
	uint32_t n_before;              /* nodes that it waits for */
	struct doca_graph_node **after; /* nodes that wait for it */
	uint32_t n_after;
	bool seen; /* by a search */
};

struct doca_graph {
	struct doca_pe *pe;
	struct doca_graph_node *nodes;
	uint32_t n_nodes, n_work; /* n_work: of contexts or graphs */
	doca_graph_completion_cb_t done_cb, error_cb;
	uint32_t max_instances, n_instances;
	union doca_data user_data;
	bool started, has_conf;
};

/* What an instance knows of one node. */
struct gd_node_run {
	struct doca_graph_instance *instance;
	struct doca_graph_node *node;
	struct gd_node_run *next_ready;
	uint32_t n_wait; /* predecessors that have not ended */
	union {
		struct doca_task *task;
		void *cookie;
		struct doca_graph_instance *sub;
	} data;
};

struct doca_graph_instance {
	/* on the engine while something is ready, or the end is to be told */
	struct gd_event event;
	struct doca_graph *graph;
	union doca_data user_data;
	struct gd_node_run *ready, **ready_end;
	uint32_t n_active; /* nodes started and not ended */
	uint32_t n_left;   /* nodes not ended */
	bool running;
	bool posted;
	doca_error_t status; /* the first failure */
	/* the node of another instance that has this one as its data, or NULL */
	struct gd_node_run *owner;
	struct gd_node_run *parent; /* the node that this run is, or NULL */
	struct gd_node_run runs[];
};

/*
 * Begin a run: everything it needs is there, also in the graphs below. parent: the node that it is
 * of another run; NULL: none.
 */
void gd_graph_run(struct doca_graph_instance *instance, struct gd_node_run *parent);

#endif
