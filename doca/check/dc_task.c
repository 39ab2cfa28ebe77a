/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dc_task.c - rules for tasks: their order of calls, their buffers, and memory in flight
 *
 *     allocate -> submit -> callback -> submit again, or free
 *
 * The layer computes a checksum of each source when the task is submitted and when it completes.
 * Comch copies a control message when it is submitted, so such a task has no source here.
 */
#include "check/dc.h"

#include <doca_buf.h>
#include <doca_comch.h>
#include <doca_compress.h>
#include <doca_ctx.h>
#include <doca_dma.h>
#include <doca_pe.h>
#include <doca_sha.h>
#include <stdlib.h>
#include <string.h>

#include "check/dc_card.h"
#include "check/dc_protect.h"
#include "check/dc_trace.h"

/* Memory of tasks in flight. When the table is full, further tasks are not compared. */
enum { MAX_FLYING = 64 };
static struct flying {
	struct dc_range range;
	struct dc_object *task;
	unsigned slot;
	bool reads;
} flying[MAX_FLYING];
static unsigned n_flying;
static uint64_t serial;

/* A checksum; it does not need to resist an attacker. */
static uint64_t sum_of(struct dc_range r)
{
	const uint8_t *p = (const uint8_t *)r.start;
	size_t len = r.end - r.start;
	uint64_t a = len, b = ~a, words[2], last = 0;

	for (; len >= 16; p += 16, len -= 16) {
		memcpy(words, p, 16);
		a = (a ^ words[0]) * 0xbf58476d1ce4e5b9u;
		b = (b ^ words[1]) * 0x94d049bb133111ebu;
		a ^= a >> 29;
		b ^= b >> 31;
	}
	if (len >= 8) {
		memcpy(words, p, 8);
		a = (a ^ words[0]) * 0xbf58476d1ce4e5b9u;
		p += 8;
		len -= 8;
	}
	memcpy(&last, p, len);
	return (a ^ (a >> 29)) * 31 + (b ^ last) * 0xbf58476d1ce4e5b9u;
}

static bool is_rdma(const struct dc_object *task)
{
	return task->task.ctx && task->task.ctx->type == DC_T_doca_rdma;
}

static bool is_comch(const struct dc_object *task)
{
	return task->type == DC_T_doca_comch_producer_task_send ||
	       task->type == DC_T_doca_comch_consumer_task_post_recv;
}

/* -- allocation -- */

/* The function _set_conf() of the type of task that an allocation function returns. */
static uint16_t conf_function(uint16_t alloc)
{
	static uint16_t found[DC_N_FUNCTIONS];
	const char *name = dc_functions[alloc].name, *end = strstr(name, "_alloc");
	size_t len = end ? (size_t)(end - name) : 0;
	uint16_t i;

	if (!found[alloc]) {
		for (i = 1; i < DC_N_FUNCTIONS; i++)
			if (!strncmp(dc_functions[i].name, name, len) &&
			    !strcmp(dc_functions[i].name + len, "_set_conf"))
				break;
		found[alloc] = i;
	}
	return found[alloc];
}

static void set_bufs(struct dc_object *task, const struct dc_call *call)
{
	const struct dc_function *f = &dc_functions[call->function];
	unsigned i;

	for (i = 0; i < f->n_params; i++) {
		const uint8_t slot = f->params[i].slot;

		if (slot >= DC_MAX_SLOTS)
			continue;
		task->task.bufs[slot] = call->objects[i];
		task->task.reads[slot] = f->params[i].role == DC_CONST_OBJECT;
	}
}

void dc_task_before_alloc(struct dc_call *call)
{
	const struct dc_object *ctx = call->objects[0];

	if (ctx && dc_state(ctx) == DOCA_CTX_STATE_IDLE)
		DC_BREAKS(call, ALLOCATE_IDLE, DC_NO_DETAILS);
}

void dc_task_after_alloc(struct dc_call *call)
{
	const struct dc_function *f = &dc_functions[call->function];
	struct dc_object *ctx = call->objects[0], *task;
	unsigned out = f->n_params - 1u;

	if (!dc_succeeded(call) || !ctx || f->params[out].role != DC_OUT)
		return;
	task = dc_add(*(void **)(uintptr_t)call->args[out], f->params[out].type, call);
	if (!task)
		return;
	task->task.ctx = ctx;
	task->task.conf = dc_find_conf(ctx, conf_function(call->function));
	set_bufs(task, call);
}

void dc_task_before_set(struct dc_call *call)
{
	if (call->objects[0] && call->objects[0]->task.is_submitted)
		DC_BREAKS(call, CHANGE_IN_FLIGHT, DC_NO_DETAILS);
}

void dc_task_after_set(struct dc_call *call)
{
	if (call->objects[0])
		set_bufs(call->objects[0], call);
}

/* True if the function returns a result of a completed task. */
static bool is_result(uint16_t function)
{
	static uint8_t known[DC_N_FUNCTIONS]; /* 1: no, 2: yes */
	const char *name = dc_functions[function].name;

	if (!known[function])
		known[function] = 1 + (strstr(name, "_get_result") || strstr(name, "_get_crc_cs") ||
				       strstr(name, "_get_adler_cs") ||
				       strstr(name, "_get_xxh_cs") ||
				       strstr(name, "post_recv_get_imm_data") ||
				       strstr(name, "_get_producer_id") ||
				       !strcmp(name, "doca_task_get_status"));
	return known[function] == 2;
}

void dc_task_before_get(struct dc_call *call)
{
	const struct dc_object *task = call->objects[0];

	if (task && dc_types[task->type].is_task && task->task.is_submitted &&
	    is_result(call->function))
		DC_BREAKS(call, RESULT_IN_FLIGHT, DC_NO_DETAILS);
}

/* -- submission -- */

static void add_ranges(struct dc_object *task)
{
	unsigned i;

	for (i = 0; i < DC_MAX_SLOTS; i++) {
		task->task.places[i] = 0;
		if (!task->task.ranges[i].end || n_flying == MAX_FLYING)
			continue;
		flying[n_flying++] = (struct flying){task->task.ranges[i], task, i,
						     task->task.reads[i]};
		task->task.places[i] = (uint16_t)n_flying;
	}
}

static void remove_ranges(struct dc_object *task)
{
	struct flying *place;
	unsigned i;

	for (i = 0; i < DC_MAX_SLOTS; i++) {
		if (!task->task.places[i])
			continue;
		place = &flying[task->task.places[i] - 1];
		*place = flying[--n_flying];
		place->task->task.places[place->slot] = task->task.places[i];
		task->task.places[i] = 0;
	}
}

void dc_task_forget(struct dc_object *task)
{
	struct dc_object *ctx = task->task.ctx;
	unsigned i;

	if (!task->task.is_submitted)
		return;
	task->task.is_submitted = false;
	remove_ranges(task);
	for (i = 0; i < DC_MAX_SLOTS; i++)
		if (task->task.bufs[i] && task->task.bufs[i]->buf.n_in_flight)
			task->task.bufs[i]->buf.n_in_flight--;
	dc_unprotect(task);
	if (!ctx)
		return;
	ctx->ctx.n_in_flight--;
	if (ctx->ctx.engine)
		ctx->ctx.engine->pe.n_in_flight--;
}

static struct doca_buf *address_of(const struct dc_object *buf)
{
	return (struct doca_buf *)(uintptr_t)buf->address;
}

/* The bytes that a task reads from a buffer, or may write to it. Empty if the buffer is remote. */
static struct dc_range range_of(const struct dc_object *buf, bool reads)
{
	void *data, *head;
	size_t data_len, len;

	if (!buf || !buf->is_live || !buf->buf.mmap || buf->buf.mmap->mmap.is_import)
		return (struct dc_range){0, 0};
	if (DC_NEXT(doca_buf_get_data)(address_of(buf), &data) != DOCA_SUCCESS ||
	    DC_NEXT(doca_buf_get_data_len)(address_of(buf), &data_len) != DOCA_SUCCESS ||
	    DC_NEXT(doca_buf_get_head)(address_of(buf), &head) != DOCA_SUCCESS ||
	    DC_NEXT(doca_buf_get_len)(address_of(buf), &len) != DOCA_SUCCESS)
		return (struct dc_range){0, 0};
	if (reads)
		return (struct dc_range){(uintptr_t)data, (uintptr_t)data + data_len};
	return (struct dc_range){(uintptr_t)data + data_len, (uintptr_t)head + len};
}

static uint32_t list_length(const struct dc_object *buf)
{
	uint32_t n = 1;

	(void)DC_NEXT(doca_buf_get_list_len)(address_of(buf), &n);
	return n;
}

static bool overlap(struct dc_range a, struct dc_range b)
{
	return a.start < b.end && b.start < a.end;
}

/* Compare the memory of a new task with that of tasks in flight. RDMA keeps the order of tasks. */
static void judge_overlap(struct dc_call *call, const struct dc_object *task)
{
	const struct flying *other;
	unsigned i;

	for (i = 0; i < DC_MAX_SLOTS; i++) {
		const struct dc_range range = task->task.ranges[i];
		const bool reads = task->task.reads[i];

		if (!range.end)
			continue;
		for (other = flying; other < flying + n_flying; other++)
			if (overlap(range, other->range) && !(reads && other->reads))
				dc_report(reads || other->reads
						  ? DC_RULE_SOURCE_OVERLAPS_DESTINATION
						  : DC_RULE_DESTINATIONS_OVERLAP,
					  task, call->function, call->site,
					  "memory=%#lx, other task=%p", (unsigned long)range.start,
					  other->task->address);
	}
}

static bool has_device(const struct dc_object *map, const struct dc_object *dev)
{
	unsigned i;

	for (i = 0; i < map->mmap.n_devs; i++)
		if (map->mmap.devs[i] == dev)
			return true;
	return map->mmap.n_devs == DC_MAX_DEVS; /* it can have more devices than are recorded */
}

static void judge_buf(struct dc_call *call, const struct dc_object *task, unsigned slot)
{
	const struct dc_object *buf = task->task.bufs[slot], *map,
			       *dev = task->task.ctx ? task->task.ctx->dev : NULL;

	if (!buf->is_live) {
		dc_report(DC_RULE_USE_AFTER_DESTROY, buf, call->function, call->site, "task=%p",
			  task->address);
		return;
	}
	map = buf->buf.mmap;
	if (!map)
		return;
	if (!map->is_live) {
		dc_report(DC_RULE_USE_AFTER_DESTROY, map, call->function, call->site, "buffer=%p",
			  buf->address);
		return;
	}
	if (dev && !has_device(map, dev))
		dc_report(DC_RULE_MAP_WITHOUT_DEVICE, map, call->function, call->site,
			  "buffer=%p, devices=%u", buf->address, map->mmap.n_devs);
	if (!task->task.reads[slot] && !map->mmap.is_import && map->mmap.has_permissions &&
	    !(map->mmap.permissions &
	      (DOCA_ACCESS_FLAG_LOCAL_READ_WRITE | DOCA_ACCESS_FLAG_PCI_READ_WRITE)))
		dc_report(DC_RULE_DESTINATION_READ_ONLY, map, call->function, call->site,
			  "permissions=%#x", map->mmap.permissions);
	if (is_comch(task) && list_length(buf) > 1)
		DC_BREAKS(call, CHAIN_IN_COMCH, "buffers=%u", list_length(buf));
}

static uint64_t data_of_list(const struct dc_object *buf, bool space)
{
	struct doca_buf *b = address_of(buf);
	uint64_t total = 0;
	void *data, *head;
	size_t n, len;

	while (b) {
		if (DC_NEXT(doca_buf_get_data_len)(b, &n) != DOCA_SUCCESS ||
		    DC_NEXT(doca_buf_get_len)(b, &len) != DOCA_SUCCESS ||
		    DC_NEXT(doca_buf_get_data)(b, &data) != DOCA_SUCCESS ||
		    DC_NEXT(doca_buf_get_head)(b, &head) != DOCA_SUCCESS)
			break;
		total += space ? (size_t)((char *)head + len - ((char *)data + n)) : n;
		if (DC_NEXT(doca_buf_get_next_in_list)(b, &b) != DOCA_SUCCESS)
			break;
	}
	return total;
}

/* Capabilities of a memcpy: its length, and the length of its lists. */
static void judge_memcpy(struct dc_call *call, const struct dc_object *task)
{
	const struct dc_object *src = task->task.bufs[0], *dst = task->task.bufs[1];
	const struct doca_devinfo *info = dc_devinfo(task->task.ctx);
	uint64_t len, space, max;
	uint32_t max_list;

	if (!src || !dst || !src->is_live || !dst->is_live)
		return;
	len = data_of_list(src, false);
	space = data_of_list(dst, true);
	if (len == 0)
		DC_BREAKS(call, EMPTY_SOURCE, DC_NO_DETAILS);
	if (space < len)
		DC_BREAKS(call, DESTINATION_TOO_SMALL, "source=%llu, space=%llu",
			  (unsigned long long)len, (unsigned long long)space);
	if (info &&
	    DC_NEXT(doca_dma_cap_task_memcpy_get_max_buf_size)(info, &max) == DOCA_SUCCESS &&
	    len > dc_card_limit(DC_doca_dma_cap_task_memcpy_get_max_buf_size, max))
		DC_EXCEEDS(call, TASK_TOO_LONG, "bytes=%llu, limit=%llu", (unsigned long long)len,
			   (unsigned long long)max);
	if (info &&
	    DC_NEXT(doca_dma_cap_task_memcpy_get_max_buf_list_len)(info, &max_list) ==
		    DOCA_SUCCESS &&
	    (max_list = (uint32_t)dc_card_limit(DC_doca_dma_cap_task_memcpy_get_max_buf_list_len,
						max_list)) &&
	    (list_length(src) > max_list || list_length(dst) > max_list))
		DC_EXCEEDS(call, LIST_TOO_LONG, "source=%u, destination=%u, limit=%u",
			   list_length(src), list_length(dst), max_list);
}

static void judge_buffers(struct dc_call *call, struct dc_object *task)
{
	unsigned i;

	for (i = 0; i < DC_MAX_SLOTS; i++) {
		task->task.ranges[i] = (struct dc_range){0, 0};
		if (!task->task.bufs[i])
			continue;
		judge_buf(call, task, i);
		task->task.ranges[i] = range_of(task->task.bufs[i], task->task.reads[i]);
	}
	if (task->type == DC_T_doca_dma_task_memcpy)
		judge_memcpy(call, task);
	if (!is_rdma(task))
		judge_overlap(call, task);
	for (i = 0; i < DC_MAX_SLOTS; i++) {
		if (!task->task.bufs[i])
			continue;
		task->task.bufs[i]->buf.n_in_flight++;
		if (task->task.reads[i] && task->task.ranges[i].end)
			task->task.sums[i] = sum_of(task->task.ranges[i]);
	}
}

static void before_submit(struct dc_call *call)
{
	struct dc_object *task = call->objects[0], *ctx;

	if (!task)
		return;
	if (task->task.is_submitted) {
		DC_BREAKS(call, SUBMIT_SUBMITTED, DC_NO_DETAILS);
		call->objects[0] = NULL;
		return;
	}
	ctx = task->task.ctx;
	if (ctx && dc_state(ctx) != DOCA_CTX_STATE_RUNNING)
		DC_BREAKS(call, SUBMIT_NOT_RUNNING, "state=%s", dc_state_name(dc_state(ctx)));
	judge_buffers(call, task);
	task->task.submitted_at = call->site;
	task->task.serial = ++serial;
	task->task.is_submitted = true;
	if (!is_rdma(task))
		add_ranges(task);
	if (ctx)
		ctx->ctx.n_in_flight++;
	if (ctx && ctx->ctx.engine)
		ctx->ctx.engine->pe.n_in_flight++;
	dc_trace_submit(task);
	dc_protect(task);
}

/* A send that is refused again and again waits for a receive of the peer. */
static void judge_wait(struct dc_call *call, struct dc_object *ctx)
{
	const uint64_t now = dc_now_ns();

	if (call->result != DOCA_ERROR_AGAIN)
		ctx->ctx.waits_since = 0;
	else if (!ctx->ctx.waits_since)
		ctx->ctx.waits_since = now;
	else if (now - ctx->ctx.waits_since > dc_stall_ns())
		DC_BREAKS(call, SEND_WITHOUT_RECEIVE, "milliseconds=%llu",
			  (unsigned long long)(now - ctx->ctx.waits_since) / 1000000);
}

static void after_submit(struct dc_call *call)
{
	struct dc_object *task = call->objects[0];

	if (!task)
		return;
	/* after a success the task can have completed and been freed already, on another thread */
	if (dc_succeeded(call)) {
		dc_trace_submitted(task);
		if (task->type == DC_T_doca_comch_producer_task_send && task->task.ctx)
			task->task.ctx->ctx.waits_since = 0;
		return;
	}
	dc_task_forget(task);
	if (task->type == DC_T_doca_comch_producer_task_send && task->task.ctx)
		judge_wait(call, task->task.ctx);
}

/* -- end -- */

void dc_task_completed(struct dc_object *task)
{
	unsigned i;

	if (!task->task.is_submitted)
		return;
	for (i = 0; i < DC_MAX_SLOTS; i++)
		if (task->task.reads[i] && task->task.ranges[i].end && task->task.bufs[i] &&
		    task->task.bufs[i]->is_live &&
		    sum_of(task->task.ranges[i]) != task->task.sums[i])
			dc_report(DC_RULE_SOURCE_CHANGED, task, DC_doca_task_submit,
				  task->task.submitted_at, "memory=%#lx+%lu",
				  (unsigned long)task->task.ranges[i].start,
				  (unsigned long)(task->task.ranges[i].end -
						  task->task.ranges[i].start));
	dc_task_forget(task);
}

static void before_free(struct dc_call *call)
{
	struct dc_object *task = call->objects[0];

	if (task && task->task.is_submitted)
		DC_BREAKS(call, TASK_FREED_IN_FLIGHT, DC_NO_DETAILS);
}

static void after_free(struct dc_call *call)
{
	struct dc_object *task = call->objects[0];

	if (!task)
		return;
	dc_task_forget(task);
	dc_end_object(task, call->site);
}

const struct dc_hook dc_task_hooks[DC_N_FUNCTIONS] = {
	[DC_doca_task_submit] = {before_submit, after_submit},
	[DC_doca_task_submit_ex] = {before_submit, after_submit},
	[DC_doca_task_try_submit] = {before_submit, after_submit},
	[DC_doca_task_free] = {before_free, after_free},
	[DC_doca_task_set_user_data] = {dc_task_before_set, NULL},
};
