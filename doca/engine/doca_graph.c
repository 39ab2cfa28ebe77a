/* SPDX-License-Identifier: BSD-3-Clause */
/* doca_graph.c - graphs, their nodes and their instances */
#include "engine/graph.h"

#include <stdlib.h>

doca_error_t doca_graph_create(struct doca_pe *pe, struct doca_graph **graph)
{
	if (!pe || !graph)
		return DOCA_ERROR_INVALID_VALUE;
	*graph = calloc(1, sizeof(**graph));
	if (!*graph)
		return DOCA_ERROR_NO_MEMORY;
	(*graph)->pe = pe;
	return DOCA_SUCCESS;
}

doca_error_t doca_graph_destroy(struct doca_graph *graph)
{
	struct doca_graph_node *node;

	if (!graph)
		return DOCA_ERROR_INVALID_VALUE;
	if (graph->started)
		return DOCA_ERROR_BAD_STATE;
	while ((node = graph->nodes)) {
		graph->nodes = node->next;
		free(node->after);
		free(node);
	}
	free(graph);
	return DOCA_SUCCESS;
}

static doca_error_t configurable(const struct doca_graph *graph)
{
	if (!graph)
		return DOCA_ERROR_INVALID_VALUE;
	return graph->started ? DOCA_ERROR_BAD_STATE : DOCA_SUCCESS;
}

doca_error_t doca_graph_set_conf(struct doca_graph *graph,
				 doca_graph_completion_cb_t graph_completion_cb,
				 doca_graph_completion_cb_t graph_error_cb, uint32_t num_instances)
{
	doca_error_t result = configurable(graph);

	if (result != DOCA_SUCCESS)
		return result;
	if (!graph_completion_cb || !graph_error_cb || num_instances == 0)
		return DOCA_ERROR_INVALID_VALUE;
	graph->done_cb = graph_completion_cb;
	graph->error_cb = graph_error_cb;
	graph->max_instances = num_instances;
	graph->has_conf = true;
	return DOCA_SUCCESS;
}

doca_error_t doca_graph_set_user_data(struct doca_graph *graph, union doca_data user_data)
{
	doca_error_t result = configurable(graph);

	if (result == DOCA_SUCCESS)
		graph->user_data = user_data;
	return result;
}

doca_error_t doca_graph_get_user_data(const struct doca_graph *graph, union doca_data *user_data)
{
	if (!graph || !user_data)
		return DOCA_ERROR_INVALID_VALUE;
	*user_data = graph->user_data;
	return DOCA_SUCCESS;
}

/* -- nodes -- */

static doca_error_t add_node(struct doca_graph *graph, enum gd_node_kind kind,
			     struct doca_graph_node **node_p)
{
	struct doca_graph_node *node = calloc(1, sizeof(*node));

	if (!node)
		return DOCA_ERROR_NO_MEMORY;
	node->graph = graph;
	node->kind = kind;
	node->index = graph->n_nodes++;
	node->next = graph->nodes;
	graph->nodes = node;
	if (kind != GD_NODE_USER)
		graph->n_work++;
	*node_p = node;
	return DOCA_SUCCESS;
}

doca_error_t doca_graph_node_create_from_ctx(struct doca_graph *graph, const struct doca_ctx *ctx,
					     struct doca_graph_node **node)
{
	doca_error_t result = !ctx || !node ? DOCA_ERROR_INVALID_VALUE : configurable(graph);

	if (result == DOCA_SUCCESS)
		result = add_node(graph, GD_NODE_CTX, node);
	if (result == DOCA_SUCCESS)
		(*node)->ctx = ctx;
	return result;
}

doca_error_t doca_graph_node_create_from_user(struct doca_graph *graph,
					      doca_graph_user_node_cb_t cb,
					      struct doca_graph_node **node)
{
	doca_error_t result = !cb || !node ? DOCA_ERROR_INVALID_VALUE : configurable(graph);

	if (result == DOCA_SUCCESS)
		result = add_node(graph, GD_NODE_USER, node);
	if (result == DOCA_SUCCESS)
		(*node)->cb = cb;
	return result;
}

/*
 * Returns whether `wanted` is the graph or one of its direct or indirect sub-graphs. The recursion
 * depth is the depth to which the program nests graphs.
 */
static bool contains(const struct doca_graph *graph, const struct doca_graph *wanted)
{
	if (graph == wanted)
		return true;
	for (const struct doca_graph_node *node = graph->nodes; node; node = node->next)
		if (node->kind == GD_NODE_GRAPH && contains(node->sub, wanted))
			return true;
	return false;
}

doca_error_t doca_graph_node_create_from_graph(struct doca_graph *graph,
					       struct doca_graph *sub_graph,
					       struct doca_graph_node **node)
{
	doca_error_t result = !sub_graph || !node ? DOCA_ERROR_INVALID_VALUE : configurable(graph);

	if (result == DOCA_SUCCESS && sub_graph->pe != graph->pe)
		result = DOCA_ERROR_INVALID_VALUE;
	if (result == DOCA_SUCCESS && contains(sub_graph, graph))
		result = DOCA_ERROR_NOT_PERMITTED;
	if (result == DOCA_SUCCESS)
		result = add_node(graph, GD_NODE_GRAPH, node);
	if (result == DOCA_SUCCESS)
		(*node)->sub = sub_graph;
	return result;
}

/*
 * Returns whether `wanted` is `from` or a direct or indirect successor of it. Marks the visited
 * nodes.
 */
static bool leads_to(struct doca_graph_node *from, const struct doca_graph_node *wanted)
{
	if (from == wanted)
		return true;
	if (from->seen)
		return false;
	from->seen = true;
	for (uint32_t i = 0; i < from->n_after; i++)
		if (leads_to(from->after[i], wanted))
			return true;
	return false;
}

static bool would_close_a_cycle(struct doca_graph *graph, const struct doca_graph_node *from,
				struct doca_graph_node *to)
{
	for (struct doca_graph_node *node = graph->nodes; node; node = node->next)
		node->seen = false;
	return leads_to(to, from);
}

static bool has_dependency(const struct doca_graph_node *from, const struct doca_graph_node *to)
{
	for (uint32_t i = 0; i < from->n_after; i++)
		if (from->after[i] == to)
			return true;
	return false;
}

doca_error_t doca_graph_add_dependency(struct doca_graph *graph, struct doca_graph_node *from,
				       struct doca_graph_node *to)
{
	doca_error_t result = !from || !to ? DOCA_ERROR_INVALID_VALUE : configurable(graph);
	struct doca_graph_node **after;

	if (result != DOCA_SUCCESS)
		return result;
	if (from->graph != graph || to->graph != graph)
		return DOCA_ERROR_INVALID_VALUE;
	if (has_dependency(from, to) || would_close_a_cycle(graph, from, to))
		return DOCA_ERROR_NOT_PERMITTED;
	after = realloc(from->after, (from->n_after + 1) * sizeof(*after));
	if (!after)
		return DOCA_ERROR_NO_MEMORY;
	from->after = after;
	after[from->n_after++] = to;
	to->n_before++;
	return DOCA_SUCCESS;
}

/* -- start and stop -- */

/* Returns whether the context of the node is running, or its sub-graph is started. */
static bool is_ready(const struct doca_graph_node *node)
{
	switch (node->kind) {
	case GD_NODE_CTX:
		return node->ctx->state == DOCA_CTX_STATE_RUNNING &&
		       node->ctx->pe == node->graph->pe;
	case GD_NODE_GRAPH:
		return node->sub->started;
	default:
		return true;
	}
}

doca_error_t doca_graph_start(struct doca_graph *graph)
{
	doca_error_t result = configurable(graph);

	if (result != DOCA_SUCCESS)
		return result;
	if (!graph->has_conf || graph->n_work == 0)
		return DOCA_ERROR_BAD_STATE;
	for (const struct doca_graph_node *node = graph->nodes; node; node = node->next)
		if (!is_ready(node))
			return DOCA_ERROR_BAD_STATE;
	graph->started = true;
	return DOCA_SUCCESS;
}

doca_error_t doca_graph_stop(struct doca_graph *graph)
{
	if (!graph)
		return DOCA_ERROR_INVALID_VALUE;
	if (graph->n_instances != 0)
		return DOCA_ERROR_IN_USE;
	graph->started = false;
	return DOCA_SUCCESS;
}

/* -- instances -- */

doca_error_t doca_graph_instance_create(const struct doca_graph *graph_const,
					struct doca_graph_instance **instance_p)
{
	/*
	 * The vendor's interface requires the const. The graph counts its instances, so this
	 * function removes the const. doca_graph_create() allocated the graph as not const.
	 */
	struct doca_graph *graph = (struct doca_graph *)graph_const;
	struct doca_graph_instance *instance;

	if (!graph || !instance_p)
		return DOCA_ERROR_INVALID_VALUE;
	if (!graph->started)
		return DOCA_ERROR_BAD_STATE;
	if (graph->n_instances == graph->max_instances)
		return DOCA_ERROR_NO_MEMORY;
	instance = calloc(1, sizeof(*instance) + graph->n_nodes * sizeof(instance->runs[0]));
	if (!instance)
		return DOCA_ERROR_NO_MEMORY;
	instance->graph = graph;
	for (struct doca_graph_node *node = graph->nodes; node; node = node->next)
		instance->runs[node->index] = (struct gd_node_run){.instance = instance,
								   .node = node};
	graph->n_instances++;
	*instance_p = instance;
	return DOCA_SUCCESS;
}

static doca_error_t changeable(const struct doca_graph_instance *instance, doca_error_t busy)
{
	if (!instance)
		return DOCA_ERROR_INVALID_VALUE;
	return instance->running ? busy : DOCA_SUCCESS;
}

static void release_subs(struct doca_graph_instance *instance)
{
	for (uint32_t i = 0; i < instance->graph->n_nodes; i++)
		if (instance->runs[i].node->kind == GD_NODE_GRAPH && instance->runs[i].data.sub)
			instance->runs[i].data.sub->owner = NULL;
}

doca_error_t doca_graph_instance_destroy(struct doca_graph_instance *instance)
{
	doca_error_t result = changeable(instance, DOCA_ERROR_IN_USE);

	if (result != DOCA_SUCCESS)
		return result;
	if (instance->owner) {
		if (instance->owner->instance->running)
			return DOCA_ERROR_IN_USE;
		instance->owner->data.sub = NULL;
	}
	release_subs(instance);
	instance->graph->n_instances--;
	free(instance);
	return DOCA_SUCCESS;
}

doca_error_t doca_graph_instance_set_user_data(struct doca_graph_instance *instance,
					       union doca_data user_data)
{
	doca_error_t result = changeable(instance, DOCA_ERROR_IN_USE);

	if (result == DOCA_SUCCESS)
		instance->user_data = user_data;
	return result;
}

doca_error_t doca_graph_instance_get_user_data(const struct doca_graph_instance *instance,
					       union doca_data *user_data)
{
	if (!instance || !user_data)
		return DOCA_ERROR_INVALID_VALUE;
	*user_data = instance->user_data;
	return DOCA_SUCCESS;
}

/* Find the state of a node, if it has this type. */
static doca_error_t find_run(struct doca_graph_instance *instance,
			     const struct doca_graph_node *node, enum gd_node_kind kind,
			     struct gd_node_run **run)
{
	doca_error_t result = !node ? DOCA_ERROR_INVALID_VALUE
				    : changeable(instance, DOCA_ERROR_BAD_STATE);

	if (result != DOCA_SUCCESS)
		return result;
	if (node->graph != instance->graph)
		return DOCA_ERROR_INVALID_VALUE;
	if (node->kind != kind)
		return DOCA_ERROR_NOT_PERMITTED;
	*run = &instance->runs[node->index];
	return DOCA_SUCCESS;
}

doca_error_t doca_graph_instance_set_ctx_node_data(struct doca_graph_instance *instance,
						   struct doca_graph_node *node,
						   struct doca_task *task)
{
	struct gd_node_run *run;
	doca_error_t result = !task ? DOCA_ERROR_INVALID_VALUE
				    : find_run(instance, node, GD_NODE_CTX, &run);

	if (result == DOCA_SUCCESS && task->ctx != node->ctx)
		result = DOCA_ERROR_INVALID_VALUE;
	if (result == DOCA_SUCCESS)
		run->data.task = task;
	return result;
}

doca_error_t doca_graph_instance_set_user_node_data(struct doca_graph_instance *instance,
						    struct doca_graph_node *node, void *cookie)
{
	struct gd_node_run *run;
	doca_error_t result = find_run(instance, node, GD_NODE_USER, &run);

	if (result == DOCA_SUCCESS)
		run->data.cookie = cookie;
	return result;
}

doca_error_t doca_graph_instance_set_sub_graph_node_data(struct doca_graph_instance *instance,
							 struct doca_graph_node *node,
							 struct doca_graph_instance *sub)
{
	struct gd_node_run *run;
	doca_error_t result = !sub ? DOCA_ERROR_INVALID_VALUE
				   : find_run(instance, node, GD_NODE_GRAPH, &run);

	if (result == DOCA_SUCCESS && sub->graph != node->sub)
		result = DOCA_ERROR_INVALID_VALUE;
	if (result == DOCA_SUCCESS && (sub->owner || sub->running))
		result = DOCA_ERROR_NOT_PERMITTED;
	if (result != DOCA_SUCCESS)
		return result;
	if (run->data.sub)
		run->data.sub->owner = NULL;
	run->data.sub = sub;
	sub->owner = run;
	return DOCA_SUCCESS;
}

static doca_error_t check(const struct doca_graph_instance *instance);

static doca_error_t check_node(const struct gd_node_run *run)
{
	if (run->node->kind == GD_NODE_USER)
		return DOCA_SUCCESS;
	if (run->node->kind == GD_NODE_GRAPH)
		return !run->data.sub ? DOCA_ERROR_INVALID_VALUE : check(run->data.sub);
	if (!run->data.task)
		return DOCA_ERROR_INVALID_VALUE;
	return run->data.task->state == GD_TASK_SUBMITTED ? DOCA_ERROR_IN_USE : DOCA_SUCCESS;
}

/*
 * Check the data of all nodes, including those of sub-graphs: INVALID_VALUE if data is missing,
 * IN_USE if a task or an instance runs.
 */
static doca_error_t check(const struct doca_graph_instance *instance)
{
	doca_error_t result = instance->running ? DOCA_ERROR_IN_USE : DOCA_SUCCESS;

	for (uint32_t i = 0; i < instance->graph->n_nodes && result == DOCA_SUCCESS; i++)
		result = check_node(&instance->runs[i]);
	return result;
}

doca_error_t doca_graph_instance_submit(struct doca_graph_instance *instance)
{
	doca_error_t result = !instance ? DOCA_ERROR_INVALID_VALUE : check(instance);

	if (result == DOCA_SUCCESS && instance->owner)
		result = DOCA_ERROR_IN_USE;
	if (result == DOCA_SUCCESS)
		gd_graph_run(instance, NULL);
	return result;
}
