/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dc_rules.c - rules that follow from the kind of a function, and the life of objects
 *
 * The hooks of dc_memory.c, dc_comch.c and dc_task.c have the rules of single functions.
 */
#include "check/dc.h"

#include <doca_comch.h>
#include <doca_ctx.h>
#include <doca_dev.h>
#include <doca_pe.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check/dc_card.h"
#include "check/dc_report.h"
#include "check/dc_trace.h"

static int thread_id(void)
{
	static __thread int id __attribute__((tls_model("initial-exec")));

	if (!id)
		id = (int)syscall(SYS_gettid);
	return id;
}

uint64_t dc_stall_ns(void)
{
	static uint64_t ns;
	const char *text;

	if (!ns) {
		text = getenv("GANTRY_DOCA_CHECK_STALL_MS");
		ns = (text ? strtoull(text, NULL, 10) : 3000) * 1000000u;
	}
	return ns;
}

static bool is_workq(const struct dc_object *ctx)
{
	return ctx->type == DC_T_doca_workq_dma;
}

int dc_state(const struct dc_object *ctx)
{
	enum doca_ctx_states state = DOCA_CTX_STATE_IDLE;

	if (ctx->alias == ctx) /* never used as a context */
		return DOCA_CTX_STATE_IDLE;
	if (is_workq(ctx))
		return ctx->is_started ? DOCA_CTX_STATE_RUNNING : DOCA_CTX_STATE_IDLE;
	if (DC_NEXT(doca_ctx_get_state)((const struct doca_ctx *)ctx->alias->address, &state) !=
	    DOCA_SUCCESS)
		return DOCA_CTX_STATE_IDLE;
	return (int)state;
}

const char *dc_state_name(int state)
{
	static const char *const names[] = {"IDLE", "STARTING", "RUNNING", "STOPPING"};

	return state >= 0 && state < 4 ? names[state] : "?";
}

const struct doca_devinfo *dc_devinfo(const struct dc_object *o)
{
	const struct dc_object *dev = o && o->type == DC_T_doca_dev ? o : o ? o->dev : NULL;

	if (!dev || !dev->is_live)
		return NULL;
	return DC_NEXT(doca_dev_as_devinfo)((struct doca_dev *)(uintptr_t)dev->address);
}

bool dc_is_comch(const struct dc_object *ctx)
{
	return ctx->type == DC_T_doca_comch_server || ctx->type == DC_T_doca_comch_client ||
	       ctx->type == DC_T_doca_comch_consumer || ctx->type == DC_T_doca_comch_producer;
}

struct dc_conf *dc_find_conf(const struct dc_object *ctx, uint16_t function)
{
	struct dc_conf *c = ctx->ctx.confs;

	while (c && c->function != function)
		c = c->next;
	return c;
}

bool dc_is_set(const struct dc_object *ctx, uint16_t function)
{
	unsigned i;

	for (i = 0; i < ctx->ctx.n_set; i++)
		if (ctx->ctx.set[i] == function)
			return true;
	return false;
}

static bool is_object(const struct dc_param *p)
{
	return p->role == DC_OBJECT || p->role == DC_CONST_OBJECT;
}

static bool is_ctx(const struct dc_object *o)
{
	return o && !dc_types[o->type].is_task && dc_types[o->type].cast != DC_N_FUNCTIONS;
}

static bool is_device(uint16_t type)
{
	return type == DC_T_doca_dev || type == DC_T_doca_dev_rep;
}

/* -- objects of a call -- */

/* Functions that accept NULL as their object. */
static bool accepts_null(uint16_t function)
{
	return function == DC_doca_dev_close || function == DC_doca_dev_rep_close;
}

static void judge_ended(struct dc_call *call, const struct dc_object *o, unsigned i)
{
	enum dc_rule_id rule = DC_RULE_USE_AFTER_DESTROY;

	if (dc_functions[call->function].kind == DC_DESTROY && i == 0)
		rule = DC_RULE_DOUBLE_DESTROY;
	else if (o->type == DC_T_doca_devinfo || o->type == DC_T_doca_devinfo_rep)
		rule = DC_RULE_DEVINFO_OF_DESTROYED_LIST;
	else if (o->type == DC_T_doca_comch_connection)
		rule = DC_RULE_CONNECTION_ENDED;
	dc_report(rule, o, call->function, call->site, "argument=%u", i + 1);
}

/* Programs may read the fields of a task after doca_task_free(): DOCA allows it. */
static bool reads_freed_task(const struct dc_function *f, const struct dc_object *o)
{
	return f->kind == DC_GET && (dc_types[o->type].is_task || o->type == DC_T_doca_task);
}

static void find_objects(struct dc_call *call)
{
	const struct dc_function *f = &dc_functions[call->function];
	unsigned i;

	for (i = 0; i < f->n_params; i++) {
		const struct dc_param *p = &f->params[i];

		if (!is_object(p))
			continue;
		if (!call->args[i] && i == 0 && f->returns == DC_RETURNS_ERROR &&
		    !accepts_null(call->function))
			DC_BREAKS(call, NULL_OBJECT, "argument=1");
		call->objects[i] = dc_find((const void *)(uintptr_t)call->args[i], p->type);
		if (!call->objects[i])
			continue;
		if (!call->objects[i]->is_live) {
			if (!reads_freed_task(f, call->objects[i]))
				judge_ended(call, call->objects[i], i);
			call->objects[i] = NULL;
			continue;
		}
		if (p->type == DC_T_doca_ctx || p->type == DC_T_doca_task ||
		    p->type == DC_T_doca_workq_ctx)
			call->objects[i] = call->objects[i]->alias;
	}
}

/* -- threads -- */

static struct dc_object *engine_of(struct dc_object *o)
{
	struct dc_object *ctx;

	if (o->type == DC_T_doca_pe)
		return o;
	ctx = dc_ctx_of(o->type == DC_T_doca_comch_connection ? o->parent : o);
	return ctx ? ctx->ctx.engine : NULL;
}

/* Threads may create consumers and producers of one connection at any time. */
static void enter_engine(struct dc_call *call)
{
	const struct dc_function *f = &dc_functions[call->function];
	struct dc_object *engine;

	if (!call->objects[0] || f->params[0].role != DC_OBJECT || f->kind >= DC_GET ||
	    f->kind == DC_CREATE || f->kind == DC_AS_CTX || f->kind == DC_AS_TASK)
		return;
	engine = engine_of(call->objects[0]);
	if (!engine)
		return;
	if (!engine->pe.busy) {
		engine->pe.busy = thread_id();
		engine->pe.busy_in = call->function;
		call->engine = engine;
	} else if (engine->pe.busy != thread_id()) {
		dc_report(DC_RULE_ENGINE_IN_TWO_THREADS, engine, call->function, call->site,
			  "other call=%s, other thread=%d", dc_functions[engine->pe.busy_in].name,
			  engine->pe.busy);
	}
}

/* A consumer that runs and has no receive posted makes its peers wait. */
static void judge_consumer(struct dc_object *o, void *progress_call)
{
	const struct dc_call *call = progress_call;
	const uint64_t now = dc_now_ns();

	if (o->type != DC_T_doca_comch_consumer || o->ctx.engine != call->objects[0] ||
	    !o->ctx.confs)
		return;
	if (o->ctx.n_in_flight || dc_state(o) != DOCA_CTX_STATE_RUNNING)
		o->ctx.waits_since = 0;
	else if (!o->ctx.waits_since)
		o->ctx.waits_since = now;
	else if (now - o->ctx.waits_since > dc_stall_ns())
		dc_report(DC_RULE_NOTHING_POSTED, o, call->function, call->site,
			  "milliseconds=%llu",
			  (unsigned long long)(now - o->ctx.waits_since) / 1000000);
}

static void scan_consumers(struct dc_call *call, uint64_t now)
{
	struct dc_object *pe = call->objects[0];

	if (!pe->pe.n_comch || now - pe->pe.scanned_at < dc_stall_ns() / 8)
		return;
	pe->pe.scanned_at = now;
	dc_each(judge_consumer, call);
}

static void before_progress(struct dc_call *call)
{
	struct dc_object *pe = call->objects[0];
	const uint64_t now = dc_now_ns();

	call->previous_engine = dc_thread.engine;
	if (!pe)
		return;
	if (dc_thread.engine == pe)
		DC_BREAKS(call, PROGRESS_IN_CALLBACK, DC_NO_DETAILS);
	if (pe->pe.has_work && now - pe->pe.progressed_at > dc_stall_ns())
		DC_BREAKS(call, ENGINE_NOT_PROGRESSED, "milliseconds=%llu, tasks in flight=%u",
			  (unsigned long long)(now - pe->pe.progressed_at) / 1000000,
			  pe->pe.n_in_flight);
	pe->pe.progressed_at = now;
	scan_consumers(call, now);
	dc_thread.engine = pe;
}

static void after_progress(struct dc_call *call)
{
	struct dc_object *pe = call->objects[0];

	if (pe && pe->is_live)
		pe->pe.has_work = pe->pe.n_in_flight > 0 || pe->pe.n_comch > 0;
	dc_thread.engine = call->previous_engine;
}

/* -- kinds -- */

static void before_configure(struct dc_call *call)
{
	struct dc_object *ctx = call->objects[0];
	int state;

	if (!is_ctx(ctx) || is_workq(ctx) || ctx->type == DC_T_doca_sync_event)
		return;
	state = dc_state(ctx);
	if (state != DOCA_CTX_STATE_IDLE)
		DC_BREAKS(call, CONFIGURE_STARTED, "state=%s", dc_state_name(state));
}

static void after_configure(struct dc_call *call)
{
	struct dc_object *o = call->objects[0];

	if (!is_ctx(o))
		return;
	if (!dc_succeeded(call)) {
		o->ctx.failed = call->function;
		return;
	}
	if (o->ctx.failed == call->function)
		o->ctx.failed = 0;
	if (!dc_is_set(o, call->function) && o->ctx.n_set < 16)
		o->ctx.set[o->ctx.n_set++] = call->function;
}

static void before_destroy(struct dc_call *call)
{
	struct dc_object *o = call->objects[0];
	int state;

	if (!is_ctx(o) || is_workq(o) || o->type == DC_T_doca_sync_event)
		return;
	state = dc_state(o);
	if (state != DOCA_CTX_STATE_IDLE)
		DC_BREAKS(call, DESTROY_RUNNING, "state=%s", dc_state_name(state));
}

static void release_context(struct dc_object *ctx)
{
	struct dc_object *pe = ctx->ctx.engine;

	if (!pe)
		return;
	pe->pe.n_contexts--;
	pe->pe.n_comch -= dc_is_comch(ctx);
	ctx->ctx.engine = NULL;
}

static void end_part_of(struct dc_object *o, void *arg)
{
	const struct dc_object *ctx = arg;

	if (dc_types[o->type].is_task && o->task.ctx == ctx) {
		dc_task_forget(o);
		dc_end_object(o, ctx->ended_at);
	}
	if (o->type == DC_T_doca_comch_connection && o->parent == ctx)
		dc_end_object(o, ctx->ended_at);
}

/* Objects with a rule that says what still uses them. */
static bool has_own_rule(const struct dc_object *o)
{
	return is_ctx(o) || is_device(o->type) || o->type == DC_T_doca_pe ||
	       o->type == DC_T_doca_mmap || o->type == DC_T_doca_buf_inventory ||
	       o->type == DC_T_doca_buf_pool;
}

static void after_destroy(struct dc_call *call)
{
	struct dc_object *o = call->objects[0];

	if (!o)
		return;
	if (!dc_succeeded(call) && o->n_users && !has_own_rule(o))
		DC_BREAKS(call, DESTROY_IN_USE, "users=%u", o->n_users);
	if (!dc_succeeded(call))
		return;
	if (is_device(o->type) && --o->device.n_open)
		return;
	if (is_ctx(o)) {
		release_context(o);
		o->ended_at = call->site;
		dc_each(end_part_of, o);
	}
	dc_end_object(o, call->site);
}

/* The library counts how often a device is open, and returns the same object. */
static struct dc_object *find_open(const void *address, uint16_t type)
{
	struct dc_object *o = is_device(type) ? dc_find(address, type) : NULL;

	return o && o->is_live ? o : NULL;
}

static void after_create(struct dc_call *call)
{
	const struct dc_function *f = &dc_functions[call->function];
	struct dc_object *o, *parent = NULL, *dev = NULL;
	unsigned i, out = f->n_params;

	if (!dc_succeeded(call))
		return;
	for (i = 0; i < f->n_params; i++) {
		if (f->params[i].role == DC_OUT)
			out = i;
		if (!call->objects[i])
			continue;
		if (!parent && f->params[i].type != DC_T_doca_dev)
			parent = call->objects[i];
		if (f->params[i].type == DC_T_doca_dev)
			dev = call->objects[i];
	}
	if (out == f->n_params)
		return;
	o = find_open(*(void **)(uintptr_t)call->args[out], f->params[out].type);
	if (o) {
		o->device.n_open++;
		return;
	}
	o = dc_add(*(void **)(uintptr_t)call->args[out], f->params[out].type, call);
	if (!o)
		return;
	if (is_device(o->type))
		o->device.n_open = 1;
	o->parent = parent;
	if (parent)
		parent->n_users++;
	o->dev = dev ? dev : parent ? parent->dev : NULL;
	if (o->dev)
		o->dev->n_users++;
}

static void after_as_ctx(struct dc_call *call)
{
	struct dc_object *o = call->objects[0];

	if (o && call->result && o->alias == o)
		dc_add_alias(o, (const void *)(uintptr_t)call->result,
			     is_workq(o) ? DC_T_doca_workq_ctx : DC_T_doca_ctx);
}

static void after_start(struct dc_call *call)
{
	if (call->objects[0] && dc_succeeded(call))
		call->objects[0]->is_started = true;
}

static void after_stop(struct dc_call *call)
{
	if (call->objects[0] && dc_succeeded(call))
		call->objects[0]->is_started = false;
}

static const struct dc_hook kind_hooks[DC_N_KINDS] = {
	[DC_CREATE] = {NULL, after_create},
	[DC_DESTROY] = {before_destroy, after_destroy},
	[DC_CONFIGURE] = {before_configure, after_configure},
	[DC_TASK_CONF] = {before_configure, after_configure},
	[DC_TASK_ALLOC] = {dc_task_before_alloc, dc_task_after_alloc},
	[DC_TASK_SET] = {dc_task_before_set, dc_task_after_set},
	[DC_GET] = {dc_task_before_get, NULL},
	[DC_START] = {NULL, after_start},
	[DC_STOP] = {NULL, after_stop},
	[DC_AS_CTX] = {NULL, after_as_ctx},
	[DC_CAPABILITY] = {NULL, dc_card_after},
};

/* -- contexts and engines -- */

/* Contexts that need at least one type of task, and functions that must be called before start. */
static const struct {
	uint16_t type, messages, connections;
} mandatory[] = {
	{DC_T_doca_comch_server, DC_doca_comch_server_event_msg_recv_register,
	 DC_doca_comch_server_event_connection_status_changed_register},
	{DC_T_doca_comch_client, DC_doca_comch_client_event_msg_recv_register, DC_N_FUNCTIONS},
	{DC_T_doca_comch_consumer, DC_N_FUNCTIONS, DC_N_FUNCTIONS},
	{DC_T_doca_comch_producer, DC_N_FUNCTIONS, DC_N_FUNCTIONS},
	{DC_T_doca_dma, DC_N_FUNCTIONS, DC_N_FUNCTIONS},
	{DC_T_doca_aes_gcm, DC_N_FUNCTIONS, DC_N_FUNCTIONS},
	{DC_T_doca_sha, DC_N_FUNCTIONS, DC_N_FUNCTIONS},
	{DC_T_doca_ec, DC_N_FUNCTIONS, DC_N_FUNCTIONS},
	{DC_T_doca_compress, DC_N_FUNCTIONS, DC_N_FUNCTIONS},
	{DC_T_doca_mmap_advise, DC_N_FUNCTIONS, DC_N_FUNCTIONS},
};

static bool is_missing(const struct dc_object *ctx, uint16_t function)
{
	return function != DC_N_FUNCTIONS && !dc_is_set(ctx, function);
}

/* The DPA side of a MsgQ has no tasks, and needs no engine. */
static bool is_of_msgq(const struct dc_object *ctx)
{
	return ctx->parent && ctx->parent->type == DC_T_doca_comch_msgq;
}

static void judge_mandatory(struct dc_call *call, const struct dc_object *ctx)
{
	unsigned i;

	if (is_of_msgq(ctx))
		return;
	for (i = 0; i < sizeof(mandatory) / sizeof(mandatory[0]); i++) {
		if (mandatory[i].type != ctx->type)
			continue;
		if (!ctx->ctx.confs)
			DC_BREAKS(call, START_WITHOUT_TASKS, DC_NO_DETAILS);
		if (is_missing(ctx, mandatory[i].messages))
			DC_BREAKS(call, START_WITHOUT_MESSAGES, DC_NO_DETAILS);
		if (is_missing(ctx, mandatory[i].connections))
			DC_BREAKS(call, START_WITHOUT_CONNECTIONS, DC_NO_DETAILS);
	}
}

static void before_ctx_start(struct dc_call *call)
{
	struct dc_object *ctx = call->objects[0];
	int state;

	if (!ctx)
		return;
	state = dc_state(ctx);
	if (state != DOCA_CTX_STATE_IDLE) {
		DC_BREAKS(call, START_STARTED, "state=%s", dc_state_name(state));
		return;
	}
	if (!ctx->ctx.engine && ctx->type != DC_T_doca_sync_event && !is_of_msgq(ctx))
		DC_BREAKS(call, START_WITHOUT_ENGINE, DC_NO_DETAILS);
	judge_mandatory(call, ctx);
	if (ctx->ctx.failed)
		DC_BREAKS(call, ERROR_IGNORED, "failed function=%s",
			  dc_functions[ctx->ctx.failed].name);
}

/* Without a callback for states, the trace has those after calls that change them. */
static void trace_state(const struct dc_object *ctx)
{
	if (ctx && dc_trace_is_on && !ctx->callbacks[0])
		dc_trace_state(ctx, dc_state(ctx));
}

static void after_ctx_start(struct dc_call *call)
{
	struct dc_object *ctx = call->objects[0];

	if (!ctx)
		return;
	if (ctx->ctx.engine && (dc_succeeded(call) || call->result == DOCA_ERROR_IN_PROGRESS))
		ctx->ctx.engine->pe.progressed_at = dc_now_ns();
	trace_state(ctx);
	if (dc_succeeded(call) && ctx->type == DC_T_doca_comch_server)
		dc_record("ready\t%d", (int)getpid());
}

static void after_ctx_stop(struct dc_call *call)
{
	trace_state(call->objects[0]);
	if (call->objects[0] && call->result == DOCA_ERROR_IN_USE)
		DC_BREAKS(call, STOP_WITH_FAST_PATH, DC_NO_DETAILS);
}

static void before_connect_ctx(struct dc_call *call)
{
	struct dc_object *ctx = call->objects[1];
	int state;

	if (!ctx)
		return;
	state = dc_state(ctx);
	if (state != DOCA_CTX_STATE_IDLE)
		DC_BREAKS(call, CONNECT_STARTED, "state=%s", dc_state_name(state));
	else if (ctx->ctx.engine)
		DC_BREAKS(call, CONNECT_CONNECTED, DC_NO_DETAILS);
}

static void after_connect_ctx(struct dc_call *call)
{
	struct dc_object *pe = call->objects[0], *ctx = call->objects[1];

	if (!pe || !ctx || !dc_succeeded(call))
		return;
	ctx->ctx.engine = pe;
	pe->pe.n_contexts++;
	pe->pe.n_comch += dc_is_comch(ctx);
}

static void after_set_user_data(struct dc_call *call)
{
	if (call->objects[0] && dc_succeeded(call))
		call->objects[0]->ctx.user_data = call->args[1];
}

static void before_pe_destroy(struct dc_call *call)
{
	struct dc_object *pe = call->objects[0];

	if (!pe)
		return;
	if (pe->pe.n_contexts)
		DC_BREAKS(call, ENGINE_DESTROYED_EARLY, "contexts=%u", pe->pe.n_contexts);
	if (dc_thread.engine == pe)
		DC_BREAKS(call, ENGINE_DESTROYED_IN_CALLBACK, DC_NO_DETAILS);
}

static void before_request_notification(struct dc_call *call)
{
	struct dc_object *pe = call->objects[0];

	if (pe && pe->pe.n_contexts && pe->pe.n_comch == pe->pe.n_contexts)
		DC_BREAKS(call, WAIT_FOR_COMCH, "contexts=%u", pe->pe.n_contexts);
}

/* -- devices -- */

static void after_list(struct dc_call *call, unsigned list, unsigned count, uint16_t type)
{
	struct dc_object *parent;
	void **entries;
	uint32_t i, n;

	if (!dc_succeeded(call))
		return;
	entries = *(void ***)(uintptr_t)call->args[list];
	n = *(uint32_t *)(uintptr_t)call->args[count];
	parent = dc_find(entries,
			 (uint16_t)(type == DC_T_doca_devinfo ? DC_T_doca_devinfo_list
							      : DC_T_doca_devinfo_rep_list));
	for (i = 0; entries && i < n; i++) {
		struct dc_object *o = dc_find(entries[i], type);

		if (!o || !o->is_live)
			o = dc_add(entries[i], type, call);
		if (o)
			o->parent = parent;
	}
}

static void after_dev_list(struct dc_call *call)
{
	after_list(call, 0, 1, DC_T_doca_devinfo);
}

static void after_rep_list(struct dc_call *call)
{
	after_list(call, 2, 3, DC_T_doca_devinfo_rep);
}

static void end_entry(struct dc_object *o, void *arg)
{
	const struct dc_object *list = arg;

	if ((o->type != DC_T_doca_devinfo && o->type != DC_T_doca_devinfo_rep) || o->parent != list)
		return;
	o->parent = NULL;
	if (!o->n_users)
		dc_end_object(o, list->ended_at);
}

static void after_list_destroy(struct dc_call *call)
{
	if (call->objects[0] && dc_succeeded(call))
		dc_each(end_entry, call->objects[0]);
}

static void before_dev_close(struct dc_call *call)
{
	struct dc_object *dev = call->objects[0];

	if (dev && dev->device.n_open <= 1 && dev->n_users)
		DC_BREAKS(call, DEVICE_CLOSED_EARLY, "users=%u", dev->n_users);
}

static const struct dc_hook hooks[DC_N_FUNCTIONS] = {
	[DC_doca_pe_progress] = {before_progress, after_progress},
	[DC_doca_ctx_start] = {before_ctx_start, after_ctx_start},
	[DC_doca_ctx_stop] = {NULL, after_ctx_stop},
	[DC_doca_pe_connect_ctx] = {before_connect_ctx, after_connect_ctx},
	[DC_doca_ctx_set_user_data] = {NULL, after_set_user_data},
	[DC_doca_pe_destroy] = {before_pe_destroy, NULL},
	[DC_doca_pe_request_notification] = {before_request_notification, NULL},
	[DC_doca_devinfo_create_list] = {NULL, after_dev_list},
	[DC_doca_devinfo_rep_create_list] = {NULL, after_rep_list},
	[DC_doca_devinfo_destroy_list] = {NULL, after_list_destroy},
	[DC_doca_devinfo_rep_destroy_list] = {NULL, after_list_destroy},
	[DC_doca_dev_close] = {before_dev_close, NULL},
};

/* -- dispatch -- */

static const struct dc_hook *const all_hooks[] = {hooks, dc_memory_hooks, dc_comch_hooks,
						  dc_task_hooks};

static uint64_t n_calls;

void dc_rules_before(struct dc_call *call)
{
	const struct dc_hook *kind = &kind_hooks[dc_functions[call->function].kind];
	unsigned i;

	n_calls++;
	find_objects(call);
	enter_engine(call);
	if (kind->before)
		kind->before(call);
	for (i = 0; i < sizeof(all_hooks) / sizeof(all_hooks[0]); i++)
		if (all_hooks[i][call->function].before)
			all_hooks[i][call->function].before(call);
}

void dc_rules_after(struct dc_call *call)
{
	const struct dc_hook *kind = &kind_hooks[dc_functions[call->function].kind];
	unsigned i;

	if (call->engine)
		call->engine->pe.busy = 0;
	if (kind->after)
		kind->after(call);
	for (i = 0; i < sizeof(all_hooks) / sizeof(all_hooks[0]); i++)
		if (all_hooks[i][call->function].after)
			all_hooks[i][call->function].after(call);
}

static __attribute__((destructor)) void end(void)
{
	dc_lock();
	if (!n_calls)
		dc_refuse_dlopen();
	dc_report_leaks();
	dc_record("calls\t%d\t%llu", (int)getpid(), (unsigned long long)n_calls);
	dc_unlock();
}
