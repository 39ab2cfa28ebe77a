/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doca_graph.h - graphs: tasks, function calls and other graphs that run in a given order
 *
 * A graph has nodes and dependencies between them. An instance has the tasks and function arguments
 * of one run at a time. All functions belong to the thread of the engine.
 */
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

/* A run of an instance has ended. Thread: in doca_pe_progress(). */
typedef void (*doca_graph_completion_cb_t)(struct doca_graph_instance *instance,
					   union doca_data instance_user_data,
					   union doca_data graph_user_data);
/* Function of a user node. An error fails the run. */
typedef doca_error_t (*doca_graph_user_node_cb_t)(void *cookie);

/*
 * Create a graph that runs on an engine.
 * Errors:
 *     NO_MEMORY  memory allocation failed
 */
DOCA_EXPERIMENTAL doca_error_t doca_graph_create(struct doca_pe *pe, struct doca_graph **graph);

/*
 * Destroy the graph and its nodes.
 * Errors:
 *     BAD_STATE  the graph is started
 */
DOCA_EXPERIMENTAL doca_error_t doca_graph_destroy(struct doca_graph *graph);

/*
 * Set the callbacks for a run that succeeded and for a run that failed, and the maximum number of
 * instances. Call before start.
 * Errors:
 *     BAD_STATE  the graph is started
 */
DOCA_EXPERIMENTAL doca_error_t doca_graph_set_conf(struct doca_graph *graph,
						   doca_graph_completion_cb_t graph_completion_cb,
						   doca_graph_completion_cb_t graph_error_cb,
						   uint32_t num_instances);

/*
 * Set the user data of the graph. Call before start.
 * Errors:
 *     BAD_STATE  the graph is started
 */
DOCA_EXPERIMENTAL doca_error_t doca_graph_set_user_data(struct doca_graph *graph,
							union doca_data user_data);

/* Get the user data that was set, or 0. */
DOCA_EXPERIMENTAL doca_error_t doca_graph_get_user_data(const struct doca_graph *graph,
							union doca_data *user_data);

/*
 * Add a node that runs a task of a context. A node without a dependency starts at the beginning of
 * a run. Call before start.
 * Errors:
 *     BAD_STATE  the graph is started
 *     NO_MEMORY  memory allocation failed
 */
DOCA_EXPERIMENTAL doca_error_t doca_graph_node_create_from_ctx(struct doca_graph *graph,
							       const struct doca_ctx *ctx,
							       struct doca_graph_node **node);

/*
 * Add a node that calls a function of the program. Call before start.
 * Errors:
 *     BAD_STATE  the graph is started
 *     NO_MEMORY  memory allocation failed
 */
DOCA_EXPERIMENTAL doca_error_t doca_graph_node_create_from_user(struct doca_graph *graph,
								doca_graph_user_node_cb_t cb,
								struct doca_graph_node **node);

/*
 * Add a node that runs another graph of the same engine. Call before start.
 * Errors:
 *     BAD_STATE      the graph is started
 *     NO_MEMORY      memory allocation failed
 *     NOT_PERMITTED  sub_graph is the graph itself, or contains it
 */
DOCA_EXPERIMENTAL doca_error_t doca_graph_node_create_from_graph(struct doca_graph *graph,
								 struct doca_graph *sub_graph,
								 struct doca_graph_node **node);

/*
 * Let node `to` wait until node `from` has completed. Call before start.
 * Errors:
 *     BAD_STATE      the graph is started
 *     NO_MEMORY      memory allocation failed
 *     NOT_PERMITTED  the dependency exists already, or would close a cycle
 */
DOCA_EXPERIMENTAL doca_error_t doca_graph_add_dependency(struct doca_graph *graph,
							 struct doca_graph_node *from,
							 struct doca_graph_node *to);

/*
 * Start the graph: no node or dependency can be added after that.
 * Errors:
 *     BAD_STATE  the graph is started, has no configuration, or has only user nodes; or the context
 *                or sub-graph of a node does not run
 *     NO_MEMORY  never returned
 */
DOCA_EXPERIMENTAL doca_error_t doca_graph_start(struct doca_graph *graph);

/*
 * Stop the graph.
 * Errors:
 *     IN_USE  instances of the graph exist
 */
DOCA_EXPERIMENTAL doca_error_t doca_graph_stop(struct doca_graph *graph);

/*
 * Create an instance of a started graph. It can run any number of times, one run at a time.
 * Errors:
 *     BAD_STATE  the graph is not started
 *     NO_MEMORY  memory allocation failed, or the maximum number of instances exists
 */
DOCA_EXPERIMENTAL doca_error_t doca_graph_instance_create(
	const struct doca_graph *graph, struct doca_graph_instance **graph_instance);

/*
 * Destroy the instance.
 * Errors:
 *     IN_USE  the instance, or the instance that uses it as a sub-graph, runs
 */
DOCA_EXPERIMENTAL doca_error_t
doca_graph_instance_destroy(struct doca_graph_instance *graph_instance);

/*
 * Set the user data that the library passes to the callbacks of the graph.
 * Errors:
 *     IN_USE  the instance runs
 */
DOCA_EXPERIMENTAL doca_error_t doca_graph_instance_set_user_data(
	struct doca_graph_instance *graph_instance, union doca_data user_data);

/* Get the user data that was set, or 0. */
DOCA_EXPERIMENTAL doca_error_t doca_graph_instance_get_user_data(
	const struct doca_graph_instance *graph_instance, union doca_data *user_data);

/*
 * Set the task of a context node. When the graph runs the task, the library does not call the
 * callbacks of the task.
 * Errors:
 *     BAD_STATE      the instance runs
 *     NOT_PERMITTED  the node is not a context node
 */
DOCA_EXPERIMENTAL doca_error_t
doca_graph_instance_set_ctx_node_data(struct doca_graph_instance *graph_instance,
				      struct doca_graph_node *node, struct doca_task *task);

/*
 * Set the argument for the function of a user node.
 * Errors:
 *     BAD_STATE      the instance runs
 *     NOT_PERMITTED  the node is not a user node
 */
DOCA_EXPERIMENTAL doca_error_t doca_graph_instance_set_user_node_data(
	struct doca_graph_instance *graph_instance, struct doca_graph_node *node, void *cookie);

/*
 * Set the instance that a sub-graph node runs.
 * Errors:
 *     BAD_STATE      the instance runs
 *     NOT_PERMITTED  the node is not a sub-graph node, or sub_graph_instance runs or belongs to
 *                    another node
 */
DOCA_EXPERIMENTAL doca_error_t doca_graph_instance_set_sub_graph_node_data(
	struct doca_graph_instance *graph_instance, struct doca_graph_node *node,
	struct doca_graph_instance *sub_graph_instance);

/*
 * Run the instance. The library calls one callback of the graph when the run has ended.
 * Errors:
 *     IN_USE  the instance, a task of it or a sub-instance runs already, or the instance belongs to
 *             a sub-graph node
 */
DOCA_EXPERIMENTAL doca_error_t
doca_graph_instance_submit(struct doca_graph_instance *graph_instance);

#ifdef __cplusplus
}
#endif

#endif
