/* SPDX-License-Identifier: BSD-3-Clause */
/* dc_leaks.c - what the program has not released when its process exits */
#include "check/dc.h"

#include <doca_ctx.h>
#include <pthread.h>

static const struct {
	uint16_t type, rule;
} leaks[] = {
	{DC_T_doca_mmap, DC_RULE_LEAK_MAP},
	{DC_T_doca_buf, DC_RULE_LEAK_BUFFER},
	{DC_T_doca_buf_inventory, DC_RULE_LEAK_INVENTORY},
	{DC_T_doca_buf_pool, DC_RULE_LEAK_INVENTORY},
	{DC_T_doca_buf_arr, DC_RULE_LEAK_INVENTORY},
	{DC_T_doca_pe, DC_RULE_LEAK_ENGINE},
	{DC_T_doca_dev, DC_RULE_LEAK_DEVICE},
	{DC_T_doca_dev_rep, DC_RULE_LEAK_DEVICE},
	{DC_T_doca_devinfo_list, DC_RULE_LEAK_LIST},
	{DC_T_doca_devinfo_rep_list, DC_RULE_LEAK_LIST},
};

/* Objects that the library owns: connections, entries of lists, nodes and fields. */
static bool is_owned_by_library(const struct dc_object *o)
{
	return o->made_by == DC_N_FUNCTIONS || dc_functions[o->made_by].kind != DC_CREATE ||
	       o->type == DC_T_doca_graph_node || o->type == DC_T_doca_devinfo ||
	       o->type == DC_T_doca_devinfo_rep;
}

static uint64_t n_inherited; /* objects of the parent process */

static void report(struct dc_object *o, void *unused)
{
	enum dc_rule_id rule = DC_RULE_LEAK_OBJECT;
	unsigned i;

	(void)unused;
	if (o->serial <= n_inherited)
		return;
	if (dc_types[o->type].is_task) {
		rule = o->task.is_submitted ? DC_RULE_COMPLETION_NOT_POLLED : DC_RULE_LEAK_TASK;
		if (rule == DC_RULE_COMPLETION_NOT_POLLED &&
		    o->type == DC_T_doca_comch_consumer_task_post_recv)
			rule = DC_RULE_LEAK_TASK; /* no message has come */
	} else if (!dc_types[o->type].is_task && dc_types[o->type].cast != DC_N_FUNCTIONS) {
		rule = DC_RULE_LEAK_CONTEXT;
		if (o->type != DC_T_doca_workq_dma && dc_state(o) == DOCA_CTX_STATE_STOPPING)
			rule = DC_RULE_STOP_NOT_FINISHED;
	} else if (is_owned_by_library(o) || o->type == DC_T_doca_ctx ||
		   o->type == DC_T_doca_task || o->type == DC_T_doca_workq_ctx) {
		return;
	}
	for (i = 0; i < sizeof(leaks) / sizeof(leaks[0]); i++)
		if (leaks[i].type == o->type)
			rule = (enum dc_rule_id)leaks[i].rule;
	dc_report(rule, o, DC_N_FUNCTIONS, NULL, DC_NO_DETAILS);
}

static void forked(void)
{
	n_inherited = dc_n_added();
	dc_unlock();
}

static __attribute__((constructor)) void start(void)
{
	pthread_atfork(dc_lock, dc_unlock, forked);
}

void dc_report_leaks(void)
{
	dc_each(report, NULL);
}
