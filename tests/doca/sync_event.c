/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sync events: a 64-bit value that several processes update and wait for, by calls and by tasks of
 * its context.
 */
#include <doca_ctx.h>
#include <doca_dev.h>
#include <doca_pe.h>
#include <doca_sync_event.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "doca/sync_event_rig.h"
#include "unity.h"

#define ALL UINT64_MAX
#define ROUNDS 1000000

/* -- alone -- */

static void test_value_is_set_added_to_and_waited_for(void)
{
	struct doca_sync_event *event = new_event();
	uint64_t value = 99;

	TEST_ASSERT_EQUAL(DOCA_ERROR_INVALID_VALUE, doca_sync_event_get(event, &value));
	MUST(doca_sync_event_start(event));
	MUST(doca_sync_event_get(event, &value));
	TEST_ASSERT_EQUAL_UINT64(0, value);
	MUST(doca_sync_event_update_set(event, 0x1205));
	MUST(doca_sync_event_update_add(event, 2, &value));
	TEST_ASSERT_EQUAL_UINT64_MESSAGE(0x1205, value, "update_add returns the value before");
	MUST(doca_sync_event_wait_eq(event, 0x1207, ALL));
	MUST(doca_sync_event_wait_eq_yield(event, 0x07, 0xff));
	MUST(doca_sync_event_wait_gt(event, 0x1206, ALL));
	MUST(doca_sync_event_wait_gt_yield(event, 0x11ff, 0xff00));
	MUST(doca_sync_event_wait_neq(event, 0x1206, ALL));
	MUST(doca_sync_event_wait_neq_yield(event, 0x08, 0xff));
	MUST(doca_sync_event_stop(event));
	MUST(doca_sync_event_destroy(event));
}

static void test_configuration_ends_at_start(void)
{
	struct doca_sync_event *event = new_event();
	uint64_t own = 7, value;

	MUST(doca_sync_event_start(event));
	TEST_ASSERT_EQUAL(DOCA_ERROR_INVALID_VALUE, doca_sync_event_start(event));
	TEST_ASSERT_EQUAL(DOCA_ERROR_INVALID_VALUE,
			  doca_sync_event_add_publisher_location_remote_pci(event));
	TEST_ASSERT_EQUAL(DOCA_ERROR_BAD_STATE, doca_sync_event_set_addr(event, &own));
	TEST_ASSERT_NULL(doca_sync_event_as_ctx(event));
	MUST(doca_sync_event_stop(event));
	TEST_ASSERT_EQUAL(DOCA_ERROR_INVALID_VALUE, doca_sync_event_stop(event));
	MUST(doca_sync_event_set_addr(event, &own));
	MUST(doca_sync_event_start(event));
	MUST(doca_sync_event_update_add(event, 1, &value));
	TEST_ASSERT_EQUAL_UINT64(7, value);
	TEST_ASSERT_EQUAL_UINT64(8, own);
	MUST(doca_sync_event_destroy(event));

	MUST(doca_sync_event_create(&event));
	TEST_ASSERT_EQUAL(DOCA_ERROR_INVALID_VALUE, doca_sync_event_start(event));
	MUST(doca_sync_event_destroy(event));
}

static void test_every_device_can_do_everything(void)
{
	const struct doca_devinfo *info = doca_dev_as_devinfo(dev);

	MUST(doca_sync_event_cap_is_create_from_export_supported(info));
	MUST(doca_sync_event_cap_is_export_to_remote_pci_supported(info));
	MUST(doca_sync_event_cap_is_export_to_remote_net_supported(info));
	MUST(doca_sync_event_cap_remote_net_is_create_from_export_supported(info));
	MUST(doca_sync_event_cap_task_get_is_supported(info));
	MUST(doca_sync_event_cap_task_notify_set_is_supported(info));
	MUST(doca_sync_event_cap_task_notify_add_is_supported(info));
	MUST(doca_sync_event_cap_task_wait_eq_is_supported(info));
	MUST(doca_sync_event_cap_task_wait_neq_is_supported(info));
	TEST_ASSERT_EQUAL(DOCA_ERROR_INVALID_VALUE,
			  doca_sync_event_cap_task_get_is_supported(NULL));
}

static void test_null_is_refused(void)
{
	const uint8_t *blob;
	size_t sz;
	uint64_t value;

	TEST_ASSERT_EQUAL(DOCA_ERROR_INVALID_VALUE, doca_sync_event_create(NULL));
	TEST_ASSERT_EQUAL(DOCA_ERROR_INVALID_VALUE, doca_sync_event_destroy(NULL));
	TEST_ASSERT_EQUAL(DOCA_ERROR_INVALID_VALUE, doca_sync_event_start(NULL));
	TEST_ASSERT_EQUAL(DOCA_ERROR_INVALID_VALUE, doca_sync_event_stop(NULL));
	TEST_ASSERT_EQUAL(DOCA_ERROR_INVALID_VALUE, doca_sync_event_get(NULL, &value));
	TEST_ASSERT_EQUAL(DOCA_ERROR_INVALID_VALUE, doca_sync_event_update_set(NULL, 1));
	TEST_ASSERT_EQUAL(DOCA_ERROR_INVALID_VALUE, doca_sync_event_wait_eq(NULL, 1, 1));
	TEST_ASSERT_EQUAL(DOCA_ERROR_INVALID_VALUE,
			  doca_sync_event_export_to_remote_pci(NULL, dev, &blob, &sz));
	TEST_ASSERT_EQUAL(DOCA_ERROR_INVALID_VALUE,
			  doca_sync_event_export_to_remote_net(NULL, &blob, &sz));
	TEST_ASSERT_EQUAL(DOCA_ERROR_INVALID_VALUE, doca_sync_event_remote_net_destroy(NULL));
	TEST_ASSERT_NULL(doca_sync_event_as_ctx(NULL));
	TEST_ASSERT_NULL(doca_sync_event_task_get_as_doca_task(NULL));
}

/* -- tasks -- */

static unsigned n_done, n_failed;
static doca_error_t last_status;

static void on_done(struct doca_task *task, union doca_data task_data, union doca_data ctx_data)
{
	(void)task_data, (void)ctx_data;
	n_done++;
	last_status = doca_task_get_status(task);
}

static void on_failed(struct doca_task *task, union doca_data task_data, union doca_data ctx_data)
{
	(void)task_data, (void)ctx_data;
	n_failed++;
	last_status = doca_task_get_status(task);
}

struct tasks {
	struct doca_pe *pe;
	struct doca_sync_event *event;
	struct doca_ctx *ctx;
};

/* Start the event as a context with two tasks of each kind. */
static void run_as_ctx(struct tasks *t, struct doca_sync_event *event)
{
	t->event = event;
	t->ctx = doca_sync_event_as_ctx(event);
	TEST_ASSERT_NOT_NULL(t->ctx);
	TEST_ASSERT_EQUAL(DOCA_ERROR_INVALID_VALUE, doca_sync_event_start(event));
	MUST(doca_pe_create(&t->pe));
	MUST(doca_pe_connect_ctx(t->pe, t->ctx));
	MUST(doca_sync_event_task_get_set_conf(
		event, (doca_sync_event_task_get_completion_cb_t)on_done,
		(doca_sync_event_task_get_completion_cb_t)on_failed, 2));
	MUST(doca_sync_event_task_notify_set_set_conf(
		event, (doca_sync_event_task_notify_set_completion_cb_t)on_done,
		(doca_sync_event_task_notify_set_completion_cb_t)on_failed, 2));
	MUST(doca_sync_event_task_notify_add_set_conf(
		event, (doca_sync_event_task_notify_add_completion_cb_t)on_done,
		(doca_sync_event_task_notify_add_completion_cb_t)on_failed, 2));
	MUST(doca_sync_event_task_wait_eq_set_conf(
		event, (doca_sync_event_task_wait_eq_completion_cb_t)on_done,
		(doca_sync_event_task_wait_eq_completion_cb_t)on_failed, 2));
	MUST(doca_sync_event_task_wait_neq_set_conf(
		event, (doca_sync_event_task_wait_neq_completion_cb_t)on_done,
		(doca_sync_event_task_wait_neq_completion_cb_t)on_failed, 2));
	MUST(doca_ctx_start(t->ctx));
	n_done = n_failed = 0;
}

static void end_ctx(struct tasks *t)
{
	MUST(doca_ctx_stop(t->ctx));
	MUST(doca_sync_event_destroy(t->event));
	MUST(doca_pe_destroy(t->pe));
}

/* As in the samples: when progress returns 1, the only task has completed. */
static void expect_end(struct tasks *t, struct doca_task *task)
{
	unsigned before = n_done;

	MUST(doca_task_submit(task));
	TEST_ASSERT_EQUAL_UINT_MESSAGE(before, n_done, "no callback inside submit");
	while (doca_pe_progress(t->pe) == 0)
		;
	TEST_ASSERT_EQUAL_UINT_MESSAGE(before + 1, n_done,
				       "progress says 1 only when a task has ended");
	TEST_ASSERT_EQUAL(DOCA_SUCCESS, last_status);
	TEST_ASSERT_EQUAL(0, doca_pe_progress(t->pe));
	doca_task_free(task);
}

static void test_tasks_set_add_and_get_the_value(void)
{
	struct tasks t;
	union doca_data none = {.u64 = 0};
	struct doca_sync_event_task_get *get;
	struct doca_sync_event_task_notify_set *set;
	struct doca_sync_event_task_notify_add *add;
	uint64_t value = 0;

	run_as_ctx(&t, new_event());
	TEST_ASSERT_EQUAL_MESSAGE(DOCA_ERROR_NOT_PERMITTED,
				  doca_sync_event_task_get_set_conf(
					  t.event,
					  (doca_sync_event_task_get_completion_cb_t)on_done,
					  (doca_sync_event_task_get_completion_cb_t)on_failed, 2),
				  "set_conf after start is NOT_PERMITTED");
	MUST(doca_sync_event_task_notify_set_alloc_init(t.event, 40, none, &set));
	TEST_ASSERT_EQUAL_UINT64(40, doca_sync_event_task_notify_set_get_set_val(set));
	doca_sync_event_task_notify_set_set_set_val(set, 41);
	expect_end(&t, doca_sync_event_task_notify_set_as_doca_task(set));
	MUST(doca_sync_event_task_notify_add_alloc_init(t.event, 5, &value, none, &add));
	expect_end(&t, doca_sync_event_task_notify_add_as_doca_task(add));
	TEST_ASSERT_EQUAL_UINT64(41, value);
	MUST(doca_sync_event_task_get_alloc_init(t.event, &value, none, &get));
	expect_end(&t, doca_sync_event_task_get_as_doca_task(get));
	TEST_ASSERT_EQUAL_UINT64(46, value);
	end_ctx(&t);
}

static void test_waits_end_when_the_value_is_there(void)
{
	struct tasks t;
	union doca_data none = {.u64 = 0};
	struct doca_sync_event_task_wait_eq *eq, *eq2, *third;
	struct doca_sync_event_task_wait_neq *neq;

	run_as_ctx(&t, new_event());
	MUST(doca_sync_event_update_set(t.event, 3));
	MUST(doca_sync_event_task_wait_eq_alloc_init(t.event, 4, ALL, none, &eq));
	MUST(doca_sync_event_task_wait_eq_alloc_init(t.event, 0x100, 0xff00, none, &eq2));
	TEST_ASSERT_EQUAL(DOCA_ERROR_NO_MEMORY,
			  doca_sync_event_task_wait_eq_alloc_init(t.event, 4, ALL, none, &third));
	MUST(doca_sync_event_task_wait_neq_alloc_init(t.event, 3, 0xff, none, &neq));
	MUST(doca_task_submit(doca_sync_event_task_wait_eq_as_doca_task(eq)));
	MUST(doca_task_submit(doca_sync_event_task_wait_eq_as_doca_task(eq2)));
	MUST(doca_task_submit(doca_sync_event_task_wait_neq_as_doca_task(neq)));
	TEST_ASSERT_EQUAL(0, doca_pe_progress(t.pe));
	MUST(doca_sync_event_update_set(t.event, 0x103));
	while (doca_pe_progress(t.pe) != 0)
		;
	TEST_ASSERT_EQUAL_UINT_MESSAGE(1, n_done, "only the masked wait is over");
	MUST(doca_sync_event_update_set(t.event, 4));
	while (doca_pe_progress(t.pe) != 0)
		;
	TEST_ASSERT_EQUAL_UINT(3, n_done);
	TEST_ASSERT_EQUAL_UINT(0, n_failed);
	doca_task_free(doca_sync_event_task_wait_eq_as_doca_task(eq));
	doca_task_free(doca_sync_event_task_wait_eq_as_doca_task(eq2));
	doca_task_free(doca_sync_event_task_wait_neq_as_doca_task(neq));
	end_ctx(&t);
}

static void test_mask_of_a_wait_is_whole_bytes(void)
{
	struct tasks t;
	union doca_data none = {.u64 = 0};
	struct doca_sync_event_task_wait_eq *eq;
	struct doca_task *task;

	run_as_ctx(&t, new_event());
	MUST(doca_sync_event_task_wait_eq_alloc_init(t.event, 1, 0xff0f, none, &eq));
	task = doca_sync_event_task_wait_eq_as_doca_task(eq);
	TEST_ASSERT_EQUAL(DOCA_ERROR_INVALID_VALUE, doca_task_try_submit(task));
	MUST(doca_task_submit(task));
	while (doca_pe_progress(t.pe) == 0)
		;
	TEST_ASSERT_EQUAL_UINT(1, n_failed);
	TEST_ASSERT_EQUAL(DOCA_ERROR_INVALID_VALUE, last_status);
	doca_task_free(task);
	end_ctx(&t);
}

static void test_stop_fails_wait_tasks(void)
{
	struct tasks t;
	union doca_data none = {.u64 = 0};
	struct doca_sync_event_task_wait_eq *eq, *dropped;
	enum doca_ctx_states state;

	run_as_ctx(&t, new_event());
	MUST(doca_sync_event_task_wait_eq_alloc_init(t.event, 1, ALL, none, &eq));
	MUST(doca_sync_event_task_wait_eq_alloc_init(t.event, 1, ALL, none, &dropped));
	MUST(doca_task_submit(doca_sync_event_task_wait_eq_as_doca_task(eq)));
	MUST(doca_task_submit(doca_sync_event_task_wait_eq_as_doca_task(dropped)));
	doca_task_free(doca_sync_event_task_wait_eq_as_doca_task(dropped));
	TEST_ASSERT_EQUAL(DOCA_ERROR_IN_PROGRESS, doca_ctx_stop(t.ctx));
	while (n_failed == 0)
		doca_pe_progress(t.pe);
	TEST_ASSERT_NOT_EQUAL(DOCA_SUCCESS, last_status);
	TEST_ASSERT_EQUAL(DOCA_ERROR_BAD_STATE, doca_sync_event_destroy(t.event));
	doca_task_free(doca_sync_event_task_wait_eq_as_doca_task(eq));
	do {
		doca_pe_progress(t.pe);
		MUST(doca_ctx_get_state(t.ctx, &state));
	} while (state != DOCA_CTX_STATE_IDLE);
	TEST_ASSERT_EQUAL_UINT(1, n_failed);
	TEST_ASSERT_EQUAL_UINT(0, n_done);
	end_ctx(&t);
}

/* -- two processes -- */

/* socket to the other process; each message has the blob of an event and an order */
static int peer_fd;

enum order { ADD, PONG, TASKS, FOR_EVER, FOR_EVER_TASK };

struct message {
	enum order order;
	uint32_t sz;
	uint8_t blob[1024];
};

/*
 * In the first round each of the two processes adds 1 and waits until both have done so. So their
 * later rounds run concurrently.
 */
static void add_rounds(struct doca_sync_event *event)
{
	uint64_t before;

	doca_sync_event_update_add(event, 1, &before);
	doca_sync_event_wait_gt_yield(event, 1, ALL);
	for (int i = 1; i < ROUNDS; i++)
		doca_sync_event_update_add(event, 1, &before);
}

/* The peer waits for an odd value, and makes it even. */
static bool pong(struct doca_sync_event *event)
{
	for (uint64_t i = 0; i < 100; i++)
		if (doca_sync_event_wait_eq_yield(event, 2 * i + 1, ALL) != DOCA_SUCCESS ||
		    doca_sync_event_update_set(event, 2 * i + 2) != DOCA_SUCCESS)
			return false;
	return true;
}

static bool peer_tasks(struct tasks *t, struct doca_sync_event *event)
{
	union doca_data none = {.u64 = 0};
	struct doca_sync_event_task_wait_eq *eq;
	struct doca_sync_event_task_notify_set *set;

	run_as_ctx(t, event);
	MUST(doca_sync_event_task_wait_eq_alloc_init(event, 1, ALL, none, &eq));
	expect_end(t, doca_sync_event_task_wait_eq_as_doca_task(eq));
	MUST(doca_sync_event_task_notify_set_alloc_init(event, 2, none, &set));
	expect_end(t, doca_sync_event_task_notify_set_as_doca_task(set));
	MUST(doca_ctx_stop(t->ctx));
	return true;
}

/* A task of the peer waits for a value that never arrives. */
static bool wait_task_fails(struct tasks *t, struct doca_sync_event *event)
{
	union doca_data none = {.u64 = 0};
	struct doca_sync_event_task_wait_eq *eq;

	run_as_ctx(t, event);
	MUST(doca_sync_event_task_wait_eq_alloc_init(event, 77, ALL, none, &eq));
	MUST(doca_task_submit(doca_sync_event_task_wait_eq_as_doca_task(eq)));
	while (doca_pe_progress(t->pe) == 0)
		;
	doca_task_free(doca_sync_event_task_wait_eq_as_doca_task(eq));
	return doca_ctx_stop(t->ctx) == DOCA_SUCCESS && n_failed == 1 &&
	       last_status == DOCA_ERROR_IO_FAILED;
}

/* The program of the other process: executes orders until the connection ends. */
static int peer(void)
{
	struct message m;

	dev = open_dev();
	while (recv(peer_fd, &m, sizeof(m), 0) > 0) {
		struct doca_sync_event *event;
		doca_error_t result = doca_sync_event_create_from_export(dev, m.blob, m.sz, &event);
		struct tasks t = {.pe = NULL};
		bool ok = result == DOCA_SUCCESS;

		if (ok && m.order != TASKS && m.order != FOR_EVER_TASK)
			ok = doca_sync_event_start(event) == DOCA_SUCCESS;
		send(peer_fd, &result, sizeof(result), 0);
		if (!ok)
			continue;
		if (m.order == ADD)
			add_rounds(event);
		else if (m.order == PONG)
			ok = pong(event);
		else if (m.order == TASKS)
			ok = peer_tasks(&t, event);
		else if (m.order == FOR_EVER)
			ok = doca_sync_event_wait_eq(event, 77, ALL) == DOCA_ERROR_IO_FAILED;
		else
			ok = wait_task_fails(&t, event);
		if (m.order != TASKS && m.order != FOR_EVER_TASK)
			ok = ok && doca_sync_event_stop(event) == DOCA_SUCCESS;
		ok = ok && doca_sync_event_destroy(event) == DOCA_SUCCESS;
		ok = ok && (!t.pe || doca_pe_destroy(t.pe) == DOCA_SUCCESS);
		send(peer_fd, &ok, sizeof(ok), 0);
	}
	return 0;
}

/* Send the event to the peer. Returns the result of its import. */
static doca_error_t give(struct doca_sync_event *event, enum order order)
{
	struct message m = {.order = order};
	const uint8_t *blob;
	size_t sz;
	doca_error_t result;

	MUST(doca_sync_event_export_to_remote_pci(event, dev, &blob, &sz));
	TEST_ASSERT_TRUE_MESSAGE(sz < 1024, "the sample's buffer has 1024 bytes");
	memcpy(m.blob, blob, sz);
	m.sz = (uint32_t)sz;
	TEST_ASSERT_EQUAL(sizeof(m), send(peer_fd, &m, sizeof(m), 0));
	TEST_ASSERT_EQUAL(sizeof(result), recv(peer_fd, &result, sizeof(result), 0));
	return result;
}

static void expect_peer_ok(void)
{
	bool ok = false;

	TEST_ASSERT_EQUAL(sizeof(ok), recv(peer_fd, &ok, sizeof(ok), 0));
	TEST_ASSERT_TRUE(ok);
}

static void test_no_update_of_two_processes_is_lost(void)
{
	struct doca_sync_event *event = new_event();
	uint64_t value;

	MUST(doca_sync_event_start(event));
	MUST(give(event, ADD));
	add_rounds(event);
	expect_peer_ok();
	MUST(doca_sync_event_get(event, &value));
	TEST_ASSERT_EQUAL_UINT64(2 * ROUNDS, value);
	MUST(doca_sync_event_stop(event));
	MUST(doca_sync_event_destroy(event));
}

/* Waits poll shared memory; neither side progresses an engine. */
static void test_two_processes_wait_for_each_other(void)
{
	struct doca_sync_event *event = new_event();

	MUST(doca_sync_event_start(event));
	MUST(give(event, PONG));
	for (uint64_t i = 0; i < 100; i++) {
		MUST(doca_sync_event_update_set(event, 2 * i + 1));
		MUST(doca_sync_event_wait_eq(event, 2 * i + 2, ALL));
	}
	expect_peer_ok();
	MUST(doca_sync_event_destroy(event));
}

static void test_tasks_on_both_sides(void)
{
	struct tasks t;
	union doca_data none = {.u64 = 0};
	struct doca_sync_event_task_wait_eq *eq;
	struct doca_sync_event_task_notify_add *add;
	uint64_t before;

	run_as_ctx(&t, new_event());
	MUST(give(t.event, TASKS));
	MUST(doca_sync_event_task_notify_add_alloc_init(t.event, 1, &before, none, &add));
	expect_end(&t, doca_sync_event_task_notify_add_as_doca_task(add));
	MUST(doca_sync_event_task_wait_eq_alloc_init(t.event, 2, ALL, none, &eq));
	expect_end(&t, doca_sync_event_task_wait_eq_as_doca_task(eq));
	expect_peer_ok();
	end_ctx(&t);
}

static void test_a_wait_ends_with_the_owner_of_the_event(void)
{
	static const enum order orders[] = {FOR_EVER, FOR_EVER_TASK};

	for (unsigned i = 0; i < 2; i++) {
		struct doca_sync_event *event = new_event();

		MUST(doca_sync_event_start(event));
		MUST(give(event, orders[i]));
		MUST(doca_sync_event_destroy(event));
		expect_peer_ok();
	}
}

static void test_blob_of_an_event_that_is_gone(void)
{
	struct doca_sync_event *event = new_event();
	const uint8_t *blob;
	struct message m = {.order = PONG};
	size_t sz;
	doca_error_t result;

	MUST(doca_sync_event_start(event));
	MUST(doca_sync_event_export_to_remote_pci(event, dev, &blob, &sz));
	memcpy(m.blob, blob, sz);
	m.sz = (uint32_t)sz;
	MUST(doca_sync_event_destroy(event));
	TEST_ASSERT_EQUAL(sizeof(m), send(peer_fd, &m, sizeof(m), 0));
	TEST_ASSERT_EQUAL(sizeof(result), recv(peer_fd, &result, sizeof(result), 0));
	TEST_ASSERT_NOT_EQUAL(DOCA_SUCCESS, result);
}

int main(void)
{
	int fds[2], status, failures;
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
		return 1;
	alarm(120); /* limit for a side whose peer has failed */
	child = fork();
	if (child < 0)
		return 1;
	peer_fd = fds[child == 0];
	close(fds[child != 0]);
	if (child == 0) {
		alarm(120);
		return peer();
	}

	UNITY_BEGIN();
	dev = open_dev();
	RUN_TEST(test_value_is_set_added_to_and_waited_for);
	RUN_TEST(test_configuration_ends_at_start);
	RUN_TEST(test_every_device_can_do_everything);
	RUN_TEST(test_null_is_refused);
	RUN_TEST(test_tasks_set_add_and_get_the_value);
	RUN_TEST(test_waits_end_when_the_value_is_there);
	RUN_TEST(test_mask_of_a_wait_is_whole_bytes);
	RUN_TEST(test_stop_fails_wait_tasks);
	RUN_TEST(test_no_update_of_two_processes_is_lost);
	RUN_TEST(test_two_processes_wait_for_each_other);
	RUN_TEST(test_tasks_on_both_sides);
	RUN_TEST(test_a_wait_ends_with_the_owner_of_the_event);
	RUN_TEST(test_blob_of_an_event_that_is_gone);
	doca_dev_close(dev);
	failures = UNITY_END();
	close(peer_fd);
	if (waitpid(child, &status, 0) != child || status != 0)
		return 1;
	return failures;
}
