/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * graph.h - graphs, and runs of their instances
 *
 * A graph has nodes and the dependencies between them. An instance has the data for one run: a
 * task, a cookie or a sub-instance for each node. A run is a chain of events on the engine of the
 * graph. Each event starts one node whose predecessors have completed. The completion of a node
 * makes its successors ready. After the first failure no other node starts, and the run ends when
 * the started nodes have completed. All functions belong to the thread of the engine.
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
	struct doca_graph_node *next; /* next node of the graph */
	enum gd_node_kind kind;
	const struct doca_ctx *ctx;
	doca_graph_user_node_cb_t cb;
	struct doca_graph *sub;
	uint32_t index;                 /* index in the graph */
	uint32_t n_before;              /* number of predecessors */
	struct doca_graph_node **after; /* successors */
	uint32_t n_after;
	bool seen; /* visited by a search */
};

struct doca_graph {
	struct doca_pe *pe;
	struct doca_graph_node *nodes;
	uint32_t n_nodes, n_work; /* n_work: context and sub-graph nodes */
	doca_graph_completion_cb_t done_cb, error_cb;
	uint32_t max_instances, n_instances;
	union doca_data user_data;
	bool started, has_conf;
};

/* State of one node in an instance. */
struct gd_node_run {
	struct doca_graph_instance *instance;
	struct doca_graph_node *node;
	struct gd_node_run *next_ready;
	uint32_t n_wait; /* predecessors that have not completed */
	union {
		struct doca_task *task;
		void *cookie;
		struct doca_graph_instance *sub;
	} data;
};

struct doca_graph_instance {
	/* posted while a node is ready */
	struct gd_event event;
	struct doca_graph *graph;
	union doca_data user_data;
	struct gd_node_run *ready, **ready_end;
	uint32_t n_active; /* nodes started and not completed */
	uint32_t n_left;   /* nodes not completed */
	bool running;
	bool posted;
	doca_error_t status; /* first failure */
	/* the node of another instance that runs this instance, or NULL */
	struct gd_node_run *owner;
	struct gd_node_run *parent; /* the node that waits for this run, or NULL */
	struct gd_node_run runs[];
};

/*
 * Start a run. The caller has checked all node data. parent: the node of another run that this run
 * belongs to, or NULL.
 */
void gd_graph_run(struct doca_graph_instance *instance, struct gd_node_run *parent);

#endif
