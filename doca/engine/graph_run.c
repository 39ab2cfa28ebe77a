/* SPDX-License-Identifier: BSD-3-Clause */
/* graph_run.c - runs of instances of a graph */
#include "engine/graph.h"

static void on_event(struct gd_event *event);

static void post(struct doca_graph_instance *instance)
{
	if (instance->posted)
		return;
	instance->posted = true;
	instance->event.run = on_event;
	gd_pe_post(instance->graph->pe, &instance->event);
}

static void make_ready(struct gd_node_run *run)
{
	struct doca_graph_instance *instance = run->instance;

	run->next_ready = NULL;
	*instance->ready_end = run;
	instance->ready_end = &run->next_ready;
}

static struct gd_node_run *take_ready(struct doca_graph_instance *instance)
{
	struct gd_node_run *run = instance->ready;

	instance->ready = run->next_ready;
	if (!instance->ready)
		instance->ready_end = &instance->ready;
	return run;
}

void gd_graph_run(struct doca_graph_instance *instance, struct gd_node_run *parent)
{
	instance->parent = parent;
	instance->status = DOCA_SUCCESS;
	instance->running = true;
	instance->n_active = 0;
	instance->n_left = instance->graph->n_nodes;
	instance->ready = NULL;
	instance->ready_end = &instance->ready;
	for (uint32_t i = 0; i < instance->graph->n_nodes; i++) {
		struct gd_node_run *run = &instance->runs[i];

		run->n_wait = run->node->n_before;
		if (run->n_wait == 0)
			make_ready(run);
	}
	post(instance);
}

/*
 * End a run: complete the parent node, or call the callback of the program. Do not touch the
 * instance after that.
 */
static void end(struct doca_graph_instance *instance);

/*
 * A node has completed. A separate event starts the next node, so the depth of the stack does not
 * grow with the graph.
 */
static void node_ended(struct gd_node_run *run, doca_error_t status)
{
	struct doca_graph_instance *instance = run->instance;
	const struct doca_graph_node *node = run->node;

	instance->n_active--;
	instance->n_left--;
	if (instance->status == DOCA_SUCCESS)
		instance->status = status;
	for (uint32_t i = 0; i < node->n_after && status == DOCA_SUCCESS; i++) {
		struct gd_node_run *after = &instance->runs[node->after[i]->index];

		if (--after->n_wait == 0)
			make_ready(after);
	}
	if (instance->n_left == 0 || (instance->status != DOCA_SUCCESS && instance->n_active == 0))
		end(instance);
	else if (instance->ready && instance->status == DOCA_SUCCESS)
		post(instance);
}

static void end(struct doca_graph_instance *instance)
{
	struct doca_graph *graph = instance->graph;
	struct gd_node_run *parent = instance->parent;
	doca_graph_completion_cb_t cb = instance->status == DOCA_SUCCESS ? graph->done_cb
									 : graph->error_cb;
	doca_error_t status = instance->status;

	if (instance->posted && gd_pe_withdraw(graph->pe, &instance->event))
		instance->posted = false;
	instance->running = false;
	if (parent)
		node_ended(parent, status);
	else
		cb(instance, instance->user_data, graph->user_data);
}

/* The engine calls this function instead of the callbacks of the task. */
static void task_ended(struct doca_task *task, void *arg)
{
	task->ended = NULL;
	task->ended_arg = NULL;
	node_ended(arg, task->status);
}

/* Submit the task of a node. AGAIN: the node stays ready, and a later event submits it again. */
static doca_error_t start_task(struct gd_node_run *run)
{
	struct doca_task *task = run->data.task;
	doca_error_t result;

	/* the task can be in flight in another run, which needs its completion */
	if (task->state != GD_TASK_TAKEN)
		return DOCA_ERROR_BAD_STATE;
	task->ended = task_ended;
	task->ended_arg = run;
	result = doca_task_submit(task);
	if (result != DOCA_SUCCESS) {
		task->ended = NULL;
		task->ended_arg = NULL;
	}
	return result;
}

/* Start one node. The node and the run can complete in this call. */
static void start_node(struct gd_node_run *run)
{
	struct doca_graph_instance *instance = run->instance;
	doca_error_t result;

	instance->n_active++;
	switch (run->node->kind) {
	case GD_NODE_USER:
		node_ended(run, run->node->cb(run->data.cookie));
		return;
	case GD_NODE_GRAPH:
		gd_graph_run(run->data.sub, run);
		return;
	default:
		break;
	}
	result = start_task(run);
	if (result == DOCA_ERROR_AGAIN) {
		instance->n_active--;
		make_ready(run);
		post(instance);
	} else if (result != DOCA_SUCCESS) {
		node_ended(run, result);
	}
}

static void on_event(struct gd_event *event)
{
	struct doca_graph_instance *instance = (struct doca_graph_instance *)event;
	struct gd_node_run *run;

	instance->posted = false;
	if (!instance->ready || instance->status != DOCA_SUCCESS)
		return;
	run = take_ready(instance);
	if (instance->ready)
		post(instance);
	start_node(run);
}
