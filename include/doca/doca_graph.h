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

typedef void (*doca_graph_completion_cb_t)(struct doca_graph_instance *instance,
					   union doca_data instance_user_data,
					   union doca_data graph_user_data);
typedef doca_error_t (*doca_graph_user_node_cb_t)(void *cookie);

/* A graph on an engine. Errors: NO_MEMORY. */
DOCA_EXPERIMENTAL doca_error_t doca_graph_create(struct doca_pe *pe, struct doca_graph **graph);

/* It must be stopped. Errors: BAD_STATE. */
DOCA_EXPERIMENTAL doca_error_t doca_graph_destroy(struct doca_graph *graph);

/*
 * Before start: called when a run has gone well, or not; and how many there can be at a time.
 * Errors: BAD_STATE.
 */
DOCA_EXPERIMENTAL doca_error_t doca_graph_set_conf(struct doca_graph *graph,
						   doca_graph_completion_cb_t graph_completion_cb,
						   doca_graph_completion_cb_t graph_error_cb,
						   uint32_t num_instances);

/* Before start. Errors: BAD_STATE. */
DOCA_EXPERIMENTAL doca_error_t doca_graph_set_user_data(struct doca_graph *graph,
							union doca_data user_data);

/* What was set, or 0. */
DOCA_EXPERIMENTAL doca_error_t doca_graph_get_user_data(const struct doca_graph *graph,
							union doca_data *user_data);

/*
 * Before start: a step that is a task of the context. Until a dependency says otherwise it is one
 * of the first.
 * Errors: BAD_STATE, NO_MEMORY.
 */
DOCA_EXPERIMENTAL doca_error_t doca_graph_node_create_from_ctx(struct doca_graph *graph,
							       const struct doca_ctx *ctx,
							       struct doca_graph_node **node);

/* Before start: a step that is a call. Errors: BAD_STATE, NO_MEMORY. */
DOCA_EXPERIMENTAL doca_error_t doca_graph_node_create_from_user(struct doca_graph *graph,
								doca_graph_user_node_cb_t cb,
								struct doca_graph_node **node);

/*
 * Before start: a step that is a run of another graph. Errors: BAD_STATE, NO_MEMORY, NOT_PERMITTED.
 */
DOCA_EXPERIMENTAL doca_error_t doca_graph_node_create_from_graph(struct doca_graph *graph,
								 struct doca_graph *sub_graph,
								 struct doca_graph_node **node);

/*
 * Before start: `to` waits for `from`. NOT_PERMITTED: they would wait for each other. Errors:
 * BAD_STATE, NO_MEMORY.
 */
DOCA_EXPERIMENTAL doca_error_t doca_graph_add_dependency(struct doca_graph *graph,
							 struct doca_graph_node *from,
							 struct doca_graph_node *to);

/*
 * Its shape is final. Contexts of its steps must be running, and there is at least one. Errors:
 * BAD_STATE,
 * NO_MEMORY.
 */
DOCA_EXPERIMENTAL doca_error_t doca_graph_start(struct doca_graph *graph);

/* IN_USE while it has instances. */
DOCA_EXPERIMENTAL doca_error_t doca_graph_stop(struct doca_graph *graph);

/* One run of a started graph, to be repeated at will. Errors: BAD_STATE, NO_MEMORY. */
DOCA_EXPERIMENTAL doca_error_t doca_graph_instance_create(
	const struct doca_graph *graph, struct doca_graph_instance **graph_instance);

/* IN_USE while it runs. */
DOCA_EXPERIMENTAL doca_error_t
doca_graph_instance_destroy(struct doca_graph_instance *graph_instance);

/* For the callbacks of the graph. IN_USE while it runs. */
DOCA_EXPERIMENTAL doca_error_t doca_graph_instance_set_user_data(
	struct doca_graph_instance *graph_instance, union doca_data user_data);

/* What was set, or 0. */
DOCA_EXPERIMENTAL doca_error_t doca_graph_instance_get_user_data(
	const struct doca_graph_instance *graph_instance, union doca_data *user_data);

/*
 * The task of a step. Its own callbacks are not called when the graph runs it. Errors: BAD_STATE,
 * NOT_PERMITTED.
 */
DOCA_EXPERIMENTAL doca_error_t
doca_graph_instance_set_ctx_node_data(struct doca_graph_instance *graph_instance,
				      struct doca_graph_node *node, struct doca_task *task);

/* What the call of a step is given. Errors: BAD_STATE, NOT_PERMITTED. */
DOCA_EXPERIMENTAL doca_error_t doca_graph_instance_set_user_node_data(
	struct doca_graph_instance *graph_instance, struct doca_graph_node *node, void *cookie);

/* The run of the other graph that a step is. Errors: BAD_STATE, NOT_PERMITTED. */
DOCA_EXPERIMENTAL doca_error_t doca_graph_instance_set_sub_graph_node_data(
	struct doca_graph_instance *graph_instance, struct doca_graph_node *node,
	struct doca_graph_instance *sub_graph_instance);

/* Run it; one callback of the graph at the end. Errors: IN_USE. */
DOCA_EXPERIMENTAL doca_error_t
doca_graph_instance_submit(struct doca_graph_instance *graph_instance);

#ifdef __cplusplus
}
#endif

#endif
