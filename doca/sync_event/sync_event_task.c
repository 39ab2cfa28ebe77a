/* SPDX-License-Identifier: BSD-3-Clause */
/* sync_event_task.c - sync events as contexts: their tasks, and the capabilities of devices */
#include "device/gd_device.h"
#include "sync_event/sync_event.h"

/* -- the context -- */

static doca_error_t start(struct doca_ctx *ctx)
{
	return gd_se_open((struct doca_sync_event *)ctx);
}

static void unlink_task(struct doca_sync_event *event, struct doca_task **at)
{
	struct doca_task *task = *at;

	*at = task->next;
	if (event->waiting_end == &task->next)
		event->waiting_end = at;
	task->next = NULL;
}

/* Fail the pending waits and destroy the cell. */
static doca_error_t stop(struct doca_ctx *ctx)
{
	struct doca_sync_event *event = (struct doca_sync_event *)ctx;

	while (event->waiting) {
		struct doca_task *task = event->waiting;

		unlink_task(event, &event->waiting);
		gd_task_done(task, DOCA_ERROR_SHUTDOWN);
	}
	gd_se_close(event);
	return DOCA_SUCCESS;
}

static uint64_t load(const struct doca_sync_event *event)
{
	return __atomic_load_n(event->cell, __ATOMIC_SEQ_CST);
}

static bool is_over(const struct gd_se_task *wait, const struct gd_pool *eq, uint64_t value)
{
	return ((value & wait->mask) == wait->value) == (wait->task.pool == eq);
}

/* Complete the first wait whose condition holds, or fail it if the owner of the cell has ended. */
static int poll(struct doca_ctx *ctx)
{
	struct doca_sync_event *event = (struct doca_sync_event *)ctx;
	bool gone;

	if (!event->waiting || !event->cell)
		return 0;
	/* read before the value, so that the last value of the owner is not missed */
	gone = gd_se_is_gone(event);
	for (struct doca_task **at = &event->waiting; *at; at = &(*at)->next) {
		struct doca_task *task = *at;
		bool over = is_over((struct gd_se_task *)task, &event->pools[GD_SE_WAIT_EQ],
				    load(event));

		if (!over && !gone)
			continue;
		unlink_task(event, at);
		gd_task_done(task, over ? DOCA_SUCCESS : DOCA_ERROR_IO_FAILED);
		return 1;
	}
	return 0;
}

/*
 * A change of the cell by another process signals nothing. So the engine must keep polling while a
 * task waits.
 */
static int arm(struct doca_ctx *ctx)
{
	return ((struct doca_sync_event *)ctx)->waiting != NULL;
}

const struct gd_ctx_ops gd_se_ctx_ops = {
	.name = "sync event", .start = start, .stop = stop, .poll = poll, .arm = arm};

/* -- what each kind does -- */

static struct doca_sync_event *event_of(const struct doca_task *task)
{
	return (struct doca_sync_event *)task->ctx;
}

static doca_error_t check_get(const struct doca_task *task)
{
	return !((const struct gd_se_task *)task)->out ? DOCA_ERROR_INVALID_VALUE : DOCA_SUCCESS;
}

static doca_error_t submit_get(struct doca_task *task)
{
	doca_error_t result = check_get(task);

	if (result == DOCA_SUCCESS)
		*((struct gd_se_task *)task)->out = load(event_of(task));
	gd_task_done(task, result);
	return DOCA_SUCCESS;
}

static doca_error_t submit_set(struct doca_task *task)
{
	__atomic_store_n(event_of(task)->cell, ((struct gd_se_task *)task)->value,
			 __ATOMIC_SEQ_CST);
	gd_task_done(task, DOCA_SUCCESS);
	return DOCA_SUCCESS;
}

static doca_error_t submit_add(struct doca_task *task)
{
	struct gd_se_task *add = (struct gd_se_task *)task;
	uint64_t before = __atomic_fetch_add(event_of(task)->cell, add->value, __ATOMIC_SEQ_CST);

	if (add->out)
		*add->out = before;
	gd_task_done(task, DOCA_SUCCESS);
	return DOCA_SUCCESS;
}

/* Check that each byte of the mask is 00 or FF: a wait compares whole bytes. */
static doca_error_t check_wait(const struct doca_task *task)
{
	const struct gd_se_task *wait = (const struct gd_se_task *)task;

	for (uint64_t rest = wait->mask; rest != 0; rest >>= 8)
		if ((rest & 0xff) != 0 && (rest & 0xff) != 0xff)
			return DOCA_ERROR_INVALID_VALUE;
	return DOCA_SUCCESS;
}

static doca_error_t submit_wait(struct doca_task *task)
{
	struct doca_sync_event *event = event_of(task);
	doca_error_t result = check_wait(task);

	if (result != DOCA_SUCCESS) {
		gd_task_done(task, result);
		return DOCA_SUCCESS;
	}
	task->next = NULL;
	if (!event->waiting)
		event->waiting_end = &event->waiting;
	*event->waiting_end = task;
	event->waiting_end = &task->next;
	return DOCA_SUCCESS;
}

static void withdraw_wait(struct doca_task *task)
{
	struct doca_sync_event *event = event_of(task);

	for (struct doca_task **at = &event->waiting; *at; at = &(*at)->next) {
		if (*at != task)
			continue;
		unlink_task(event, at);
		return;
	}
}

void gd_se_tasks_init(struct doca_sync_event *event)
{
	static const struct gd_task_ops ops[GD_SE_N_KINDS] = {
		[GD_SE_GET] = {.check = check_get, .submit = submit_get},
		[GD_SE_SET] = {.submit = submit_set},
		[GD_SE_ADD] = {.submit = submit_add},
		[GD_SE_WAIT_EQ] = {.check = check_wait,
				   .submit = submit_wait,
				   .withdraw = withdraw_wait},
		[GD_SE_WAIT_NEQ] = {.check = check_wait,
				    .submit = submit_wait,
				    .withdraw = withdraw_wait},
	};

	for (int i = 0; i < GD_SE_N_KINDS; i++)
		gd_pool_init(&event->pools[i], &event->ctx, &ops[i], sizeof(struct gd_se_task));
}

static doca_error_t set_conf(struct doca_sync_event *event, enum gd_se_kind kind, void *done_cb,
			     void *error_cb, uint32_t n)
{
	return !event ? DOCA_ERROR_INVALID_VALUE
		      : gd_pool_conf(&event->pools[kind], done_cb, error_cb, n,
				     DOCA_ERROR_NOT_PERMITTED);
}

/* Allocate a task and set its fields. task_p: destination for the pointer to the public type. */
static doca_error_t take(struct doca_sync_event *event, enum gd_se_kind kind, uint64_t value,
			 uint64_t mask, uint64_t *out, union doca_data user_data, void *task_p)
{
	struct gd_se_task *task;

	if (!event || !task_p)
		return DOCA_ERROR_INVALID_VALUE;
	task = (struct gd_se_task *)gd_task_take(&event->pools[kind], user_data);
	if (!task)
		return DOCA_ERROR_NO_MEMORY;
	task->value = value;
	task->mask = mask;
	task->out = out;
	*(void **)task_p = task;
	return DOCA_SUCCESS;
}

#define SUPPORTED(what) \
	doca_error_t doca_sync_event_cap_##what##_supported(const struct doca_devinfo *devinfo) \
	{ \
		return gd_cap(devinfo, true); \
	}

/* A public task type and the functions that every type has. */
#define TASK(name, kind) \
	struct doca_sync_event_task_##name { \
		struct gd_se_task t; \
	}; \
	SUPPORTED(task_##name##_is) \
	doca_error_t doca_sync_event_task_##name##_set_conf( \
		struct doca_sync_event *event, \
		doca_sync_event_task_##name##_completion_cb_t completion_cb, \
		doca_sync_event_task_##name##_completion_cb_t error_cb, uint32_t num_tasks) \
	{ \
		return set_conf(event, kind, (void *)completion_cb, (void *)error_cb, num_tasks); \
	} \
	struct doca_task *doca_sync_event_task_##name##_as_doca_task( \
		struct doca_sync_event_task_##name *task) \
	{ \
		return !task ? NULL : &task->t.task; \
	}

/* Setter and getter of a field. */
#define FIELD(name, type, what, field) \
	void doca_sync_event_task_##name##_set_##what(struct doca_sync_event_task_##name *task, \
						      type what) \
	{ \
		if (task) \
			task->t.field = what; \
	} \
	type doca_sync_event_task_##name##_get_##what( \
		const struct doca_sync_event_task_##name *task) \
	{ \
		return !task ? (type)0 : task->t.field; \
	}

TASK(get, GD_SE_GET)
FIELD(get, uint64_t *, ret_val_ptr, out)

doca_error_t doca_sync_event_task_get_alloc_init(struct doca_sync_event *event,
						 uint64_t *ret_val_ptr, union doca_data user_data,
						 struct doca_sync_event_task_get **task)
{
	return take(event, GD_SE_GET, 0, 0, ret_val_ptr, user_data, task);
}

TASK(notify_set, GD_SE_SET)
FIELD(notify_set, uint64_t, set_val, value)

doca_error_t doca_sync_event_task_notify_set_alloc_init(
	struct doca_sync_event *event, uint64_t set_val, union doca_data user_data,
	struct doca_sync_event_task_notify_set **task)
{
	return take(event, GD_SE_SET, set_val, 0, NULL, user_data, task);
}

TASK(notify_add, GD_SE_ADD)
FIELD(notify_add, uint64_t, inc_val, value)
FIELD(notify_add, uint64_t *, fetched_val_ptr, out)

doca_error_t doca_sync_event_task_notify_add_alloc_init(
	struct doca_sync_event *event, uint64_t inc_val, uint64_t *fetched_val_ptr,
	union doca_data user_data, struct doca_sync_event_task_notify_add **task)
{
	return take(event, GD_SE_ADD, inc_val, 0, fetched_val_ptr, user_data, task);
}

TASK(wait_eq, GD_SE_WAIT_EQ)
FIELD(wait_eq, uint64_t, wait_val, value)
FIELD(wait_eq, uint64_t, mask, mask)

doca_error_t doca_sync_event_task_wait_eq_alloc_init(struct doca_sync_event *event,
						     uint64_t wait_val, uint64_t mask,
						     union doca_data user_data,
						     struct doca_sync_event_task_wait_eq **task)
{
	return take(event, GD_SE_WAIT_EQ, wait_val, mask, NULL, user_data, task);
}

TASK(wait_neq, GD_SE_WAIT_NEQ)
FIELD(wait_neq, uint64_t, wait_val, value)
FIELD(wait_neq, uint64_t, mask, mask)

doca_error_t doca_sync_event_task_wait_neq_alloc_init(struct doca_sync_event *event,
						      uint64_t wait_val, uint64_t mask,
						      union doca_data user_data,
						      struct doca_sync_event_task_wait_neq **task)
{
	return take(event, GD_SE_WAIT_NEQ, wait_val, mask, NULL, user_data, task);
}

/* capabilities: each device supports all */
SUPPORTED(is_create_from_export)
SUPPORTED(remote_net_is_create_from_export)
SUPPORTED(is_export_to_remote_pci)
SUPPORTED(is_export_to_remote_net)
