/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dc_trace.c - records of tasks, states and connections, with times
 *
 * With GANTRY_DOCA_CHECK_TRACE, the file of dc_report.c has further records. NS is CLOCK_MONOTONIC,
 * which all processes of the machine share. CTX is the number of the context in its process.
 *
 *     task    PID NS begin|done|failed CTX TYPE ENGINE NAME NUMBER FLOW
 *     state   PID NS STATE CTX TYPE ENGINE
 *     connect PID NS begin|end CTX TYPE ENGINE
 *
 * FLOW joins the send of a producer with the receive that it completes: producer, consumer and the
 * number of the message between both; "-" for other tasks.
 */
#include "check/dc_trace.h"

#include <doca_comch_consumer.h>
#include <doca_comch_producer.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "check/dc.h"
#include "check/dc_report.h"

bool dc_trace_is_on;

/* Messages of this process between a producer and a consumer so far: sent, and received. */
static struct flow {
	uint32_t producer, consumer;
	uint64_t n;
} sent[256], received[256];

static unsigned long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (unsigned long long)t.tv_sec * 1000000000u + (unsigned long long)t.tv_nsec;
}

static unsigned long long engine_of(const struct dc_object *ctx)
{
	return ctx->ctx.engine ? (unsigned long long)ctx->ctx.engine->serial : 0;
}

/* The number of this message from the producer to the consumer, or 0 if the table is full. */
static uint64_t count_message(struct flow flows[256], uint32_t producer, uint32_t consumer)
{
	unsigned i;

	for (i = 0; i < 256; i++) {
		if (!flows[i].n) {
			flows[i].producer = producer;
			flows[i].consumer = consumer;
		}
		if (flows[i].producer == producer && flows[i].consumer == consumer)
			return ++flows[i].n;
	}
	return 0;
}

static void flow_of(const struct dc_object *task, bool begins, char out[64])
{
	const void *address = task->address;
	uint32_t producer = 0, consumer = 0;

	snprintf(out, 64, "-");
	if (task->type == DC_T_doca_comch_producer_task_send && begins) {
		if (DC_NEXT(doca_comch_producer_get_id)(task->task.ctx->address, &producer) !=
		    DOCA_SUCCESS)
			return;
		consumer = DC_NEXT(doca_comch_producer_task_send_get_consumer_id)(address);
	} else if (task->type == DC_T_doca_comch_consumer_task_post_recv && !begins) {
		if (DC_NEXT(doca_comch_consumer_get_id)(task->task.ctx->address, &consumer) !=
		    DOCA_SUCCESS)
			return;
		producer = DC_NEXT(doca_comch_consumer_task_post_recv_get_producer_id)(address);
	} else {
		return;
	}
	snprintf(out, 64, "%u.%u.%llu", producer, consumer,
		 (unsigned long long)count_message(begins ? sent : received, producer, consumer));
}

static void record_task(const struct dc_object *task, const char *what, unsigned long long ns)
{
	const struct dc_object *ctx = task->task.ctx;
	char flow[64];

	if (!ctx)
		return;
	flow_of(task, what[0] == 'b', flow);
	dc_record("task\t%d\t%llu\t%s\t%llu\t%s\t%llu\t%s\t%llu\t%s", (int)getpid(), ns, what,
		  (unsigned long long)ctx->serial, dc_types[ctx->type].name, engine_of(ctx),
		  dc_types[task->type].name, (unsigned long long)task->task.serial,
		  what[0] == 'f' ? "-" : flow);
}

void dc_trace_submit(struct dc_object *task)
{
	if (dc_trace_is_on)
		task->task.submitted_ns = now();
}

void dc_trace_submitted(const struct dc_object *task)
{
	if (dc_trace_is_on)
		record_task(task, "begin", task->task.submitted_ns);
}

void dc_trace_completed(const struct dc_object *task, bool failed)
{
	if (dc_trace_is_on)
		record_task(task, failed ? "failed" : "done", now());
}

void dc_trace_state(const struct dc_object *ctx, int state)
{
	if (dc_trace_is_on)
		dc_record("state\t%d\t%llu\t%s\t%llu\t%s\t%llu", (int)getpid(), now(),
			  dc_state_name(state), (unsigned long long)ctx->serial,
			  dc_types[ctx->type].name, engine_of(ctx));
}

void dc_trace_connection(const struct dc_object *ctx, bool begins)
{
	if (dc_trace_is_on)
		dc_record("connect\t%d\t%llu\t%s\t%llu\t%s\t%llu", (int)getpid(), now(),
			  begins ? "begin" : "end", (unsigned long long)ctx->serial,
			  dc_types[ctx->type].name, engine_of(ctx));
}

static __attribute__((constructor)) void start(void)
{
	dc_trace_is_on = getenv("GANTRY_DOCA_CHECK_TRACE") != NULL;
}
