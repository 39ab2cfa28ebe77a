/* SPDX-License-Identifier: BSD-3-Clause */
/* doca_graph.h - tasks that run in a given order */
#ifndef DOCA_GRAPH_H
#define DOCA_GRAPH_H

#include <stddef.h>
#include <stdint.h>

#include <doca_error.h>
#include <doca_types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct doca_ctx;
struct doca_graph;
struct doca_graph_instance;
struct doca_graph_node;
struct doca_pe;
struct doca_task;

typedef void (*doca_graph_completion_cb_t)(struct doca_graph_instance *instance, union doca_data instance_user_data,
		union doca_data graph_user_data);
typedef doca_error_t (*doca_graph_user_node_cb_t)(void *cookie);

/* Graph bound to a PE. Errors: NO_MEMORY. */
DOCA_EXPERIMENTAL doca_error_t doca_graph_create(struct doca_pe *pe, struct doca_graph **graph);

/* Must be stopped (BAD_STATE). */
DOCA_EXPERIMENTAL doca_error_t doca_graph_destroy(struct doca_graph *graph);

/* Graph success/error callbacks and number of instances. Errors: BAD_STATE. */
DOCA_EXPERIMENTAL doca_error_t doca_graph_set_conf(struct doca_graph *graph,
		doca_graph_completion_cb_t graph_completion_cb, doca_graph_completion_cb_t graph_error_cb,
		uint32_t num_instances);

/* Second argument of graph callbacks; before graph start. Errors: BAD_STATE. */
DOCA_EXPERIMENTAL doca_error_t doca_graph_set_user_data(struct doca_graph *graph, union doca_data user_data);

/* What was set, or the default. */
DOCA_EXPERIMENTAL doca_error_t doca_graph_get_user_data(const struct doca_graph *graph, union doca_data *user_data);

/* Node that will run one task of ctx; added as root. Errors: BAD_STATE, NO_MEMORY. */
DOCA_EXPERIMENTAL doca_error_t doca_graph_node_create_from_ctx(struct doca_graph *graph, const struct doca_ctx *ctx,
		struct doca_graph_node **node);

/* Node that runs a user callback returning doca_error_t. Errors: BAD_STATE, NO_MEMORY. */
DOCA_EXPERIMENTAL doca_error_t doca_graph_node_create_from_user(struct doca_graph *graph,
		doca_graph_user_node_cb_t cb, struct doca_graph_node **node);

/* Sub-graph node. Errors: BAD_STATE, NO_MEMORY, NOT_PERMITTED. */
DOCA_EXPERIMENTAL doca_error_t doca_graph_node_create_from_graph(struct doca_graph *graph,
		struct doca_graph *sub_graph, struct doca_graph_node **node);

/* (graph, from, to) before graph start; a cycle -> NOT_PERMITTED. Errors: BAD_STATE, NO_MEMORY. */
DOCA_EXPERIMENTAL doca_error_t doca_graph_add_dependency(struct doca_graph *graph, struct doca_graph_node *from,
		struct doca_graph_node *to);

/*
 * Freezes topology; needs >= 1 context node; all ctx nodes' contexts must already be started. Errors: BAD_STATE,
 * NO_MEMORY.
 */
DOCA_EXPERIMENTAL doca_error_t doca_graph_start(struct doca_graph *graph);

/* IN_USE while instances exist. */
DOCA_EXPERIMENTAL doca_error_t doca_graph_stop(struct doca_graph *graph);

/* Instance of a started graph. Errors: BAD_STATE, NO_MEMORY. */
DOCA_EXPERIMENTAL doca_error_t doca_graph_instance_create(const struct doca_graph *graph,
		struct doca_graph_instance **graph_instance);

/* IN_USE while running. */
DOCA_EXPERIMENTAL doca_error_t doca_graph_instance_destroy(struct doca_graph_instance *graph_instance);

/* First user-data argument of graph callbacks for this instance. Errors: IN_USE. */
DOCA_EXPERIMENTAL doca_error_t doca_graph_instance_set_user_data(struct doca_graph_instance *graph_instance,
		union doca_data user_data);

/* What was set, or the default. */
DOCA_EXPERIMENTAL doca_error_t doca_graph_instance_get_user_data(const struct doca_graph_instance *graph_instance,
		union doca_data *user_data);

/*
 * Attaches a doca_task to a ctx node; its own callbacks are not called when run by the graph. Errors: BAD_STATE,
 * NOT_PERMITTED.
 */
DOCA_EXPERIMENTAL doca_error_t doca_graph_instance_set_ctx_node_data(struct doca_graph_instance *graph_instance,
		struct doca_graph_node *node, struct doca_task *task);

/* Cookie given to the user node callback. Errors: BAD_STATE, NOT_PERMITTED. */
DOCA_EXPERIMENTAL doca_error_t doca_graph_instance_set_user_node_data(struct doca_graph_instance *graph_instance,
		struct doca_graph_node *node, void *cookie);

/* Before start. Errors: BAD_STATE, NOT_PERMITTED. */
DOCA_EXPERIMENTAL doca_error_t doca_graph_instance_set_sub_graph_node_data(
		struct doca_graph_instance *graph_instance, struct doca_graph_node *node,
		struct doca_graph_instance *sub_graph_instance);

/* Runs the instance; one graph callback at the end. Errors: IN_USE. */
DOCA_EXPERIMENTAL doca_error_t doca_graph_instance_submit(struct doca_graph_instance *graph_instance);

#ifdef __cplusplus
}
#endif

#endif
