/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * msgq_states.c - the states of message queues to and from a DPA, of their consumers and producers
 * on both sides, and of the completions of DPA consumers: in every state every operation is tried.
 */
#include <doca_comch_msgq.h>
#include <doca_dpa.h>
#include <doca_dpa_dev.h>
#include <doca_dpa_dev_comch_msgq.h>
#include <string.h>

#include "comch_rig.h"
#include "scarce.h"

#define LATE DOCA_ERROR_BAD_STATE
#define INVALID DOCA_ERROR_INVALID_VALUE
#define EMPTY DOCA_ERROR_NO_MEMORY
#define BUSY DOCA_ERROR_IN_USE
#define ONCE DOCA_ERROR_NOT_PERMITTED
#define GOES_ON DOCA_ERROR_IN_PROGRESS

static struct side s; /* provides the device and engine */
static struct doca_dpa *dpa;
static struct doca_dpa_thread *thread;
static struct doca_comch_msgq *msgq;
static struct doca_comch_consumer *consumer;
static struct doca_comch_producer *producer;
static struct doca_comch_consumer_completion *comp;
static struct doca_dpa_completion *ends;
static char journal[16];
static unsigned int n_done, n_failed;

static void open_dpa(void)
{
	side_open_dev(&s, "03:00.0");
	NEED_OK(doca_pe_create(&s.pe));
	NEED_OK(doca_dpa_create(s.dev, &dpa));
	NEED_OK(doca_dpa_thread_create(dpa, &thread));
	NEED_OK(doca_comch_msgq_create(s.dev, &msgq));
}

static void close_dpa(void)
{
	NEED_OK(doca_comch_msgq_destroy(msgq));
	NEED_OK(doca_dpa_thread_destroy(thread));
	NEED_OK(doca_dpa_stop(dpa));
	NEED_OK(doca_dpa_destroy(dpa));
	NEED_OK(doca_pe_destroy(s.pe));
	NEED_OK(doca_dev_close(s.dev));
}

static void on_state(const union doca_data data, struct doca_ctx *ctx, enum doca_ctx_states prev,
		     enum doca_ctx_states next)
{
	(void)data;
	NEED(ctx && prev != next && strlen(journal) + 1 < sizeof(journal));
	journal[strlen(journal)] = (char)('0' + next);
}

static void watch(struct doca_ctx *ctx, bool with_engine)
{
	memset(journal, 0, sizeof(journal));
	NEED_OK(doca_ctx_set_state_changed_cb(ctx, on_state));
	if (with_engine)
		NEED_OK(doca_pe_connect_ctx(s.pe, ctx));
}

/* -- the queue -- */

static doca_error_t q_dpa_consumer(void)
{
	return doca_comch_msgq_set_dpa_consumer(msgq, dpa);
}
static doca_error_t q_dpa_producer(void)
{
	return doca_comch_msgq_set_dpa_producer(msgq, dpa);
}
static doca_error_t q_consumers(void)
{
	return doca_comch_msgq_set_max_num_consumers(msgq, 1);
}
static doca_error_t q_producers(void)
{
	return doca_comch_msgq_set_max_num_producers(msgq, 1);
}
static doca_error_t q_start(void)
{
	return doca_comch_msgq_start(msgq);
}
static doca_error_t q_stop(void)
{
	return doca_comch_msgq_stop(msgq);
}
static doca_error_t q_destroy(void)
{
	return doca_comch_msgq_destroy(msgq);
}
static doca_error_t q_consumer(void)
{
	return doca_comch_msgq_consumer_create(msgq, &consumer);
}
static doca_error_t q_producer(void)
{
	return doca_comch_msgq_producer_create(msgq, &producer);
}

static const struct rig_row queue_rows[] = {
	/*                                     new       stopped   started   with both */
	{"set_dpa_consumer", q_dpa_consumer, {NOT_HERE, ONCE, LATE, LATE}},
	{"set_dpa_producer", q_dpa_producer, {NOT_HERE, ONCE, LATE, LATE}},
	{"set_max_num_consumers", q_consumers, {DOCA_SUCCESS, DOCA_SUCCESS, LATE, LATE}},
	{"set_max_num_producers", q_producers, {DOCA_SUCCESS, DOCA_SUCCESS, LATE, LATE}},
	{"start", q_start, {LATE, NOT_HERE, LATE, LATE}},
	{"stop", q_stop, {LATE, LATE, NOT_HERE, BUSY}},
	{"destroy", q_destroy, {NOT_HERE, NOT_HERE, LATE, LATE}},
	{"consumer_create", q_consumer, {LATE, LATE, NOT_HERE, EMPTY}},
	{"producer_create", q_producer, {LATE, LATE, NOT_HERE, EMPTY}},
};

enum { NEW, STOPPED, STARTED, WITH_BOTH };

static void try_queue(int state)
{
	for (size_t i = 0; i < sizeof(queue_rows) / sizeof(*queue_rows); i++)
		if (queue_rows[i].wanted[state] != NOT_HERE)
			rig_need_result(__FILE__, state, queue_rows[i].what, queue_rows[i].call(),
					queue_rows[i].wanted[state]);
}

static void walk_queue(void)
{
	open_dpa();
	try_queue(NEW);
	NEED_OK(doca_comch_msgq_set_dpa_producer(msgq, dpa));
	NEED_RESULT(LATE, doca_comch_msgq_start(msgq)); /* the DPA must be started first */
	NEED_OK(doca_dpa_start(dpa));
	try_queue(STOPPED);
	NEED_OK(doca_comch_msgq_start(msgq));
	try_queue(STARTED);
	NEED_OK(doca_comch_msgq_consumer_create(msgq, &consumer));
	NEED_RESULT(BUSY, doca_comch_msgq_stop(msgq));
	NEED_OK(doca_comch_msgq_producer_create(msgq, &producer));
	try_queue(WITH_BOTH);
	NEED_OK(doca_comch_consumer_destroy(consumer));
	NEED_RESULT(BUSY, doca_comch_msgq_stop(msgq));
	NEED_OK(doca_comch_producer_destroy(producer));
	NEED_OK(doca_comch_msgq_stop(msgq));
	try_queue(STOPPED);
	NEED_RESULT(INVALID, doca_comch_msgq_set_max_num_consumers(msgq, 0));
	NEED_RESULT(INVALID, doca_comch_msgq_set_max_num_producers(msgq, 0));
	NEED_RESULT(BUSY, doca_dpa_destroy(dpa)); /* the queue uses the DPA */
	close_dpa();
}

/* A new queue, the only object of its device, keeps the device open. */
static void keep_device(void)
{
	side_open_dev(&s, "03:00.0");
	NEED_OK(doca_comch_msgq_create(s.dev, &msgq));
	NEED_RESULT(BUSY, doca_dev_close(s.dev));
	NEED_OK(doca_comch_msgq_destroy(msgq));
	NEED_OK(doca_dev_close(s.dev));
}

static void the_device_of_a_queue_is_not_closed(void)
{
	rig_alone(keep_device);
}

static void a_queue_goes_through_all_states_and_each_call_gives_what_is_documented(void)
{
	rig_alone(walk_queue);
}

/* -- on the CPU -- */

static void on_recv(struct doca_comch_consumer_task_post_recv *task, union doca_data task_data,
		    union doca_data ctx_data)
{
	struct doca_task *t = doca_comch_consumer_task_post_recv_as_task(task);

	(void)task_data;
	(void)ctx_data;
	*(doca_task_get_status(t) == DOCA_SUCCESS ? &n_done : &n_failed) += 1;
	doca_task_free(t);
}

static void on_send(struct doca_comch_producer_task_send *task, union doca_data task_data,
		    union doca_data ctx_data)
{
	struct doca_task *t = doca_comch_producer_task_send_as_task(task);

	(void)task_data;
	(void)ctx_data;
	*(doca_task_get_status(t) == DOCA_SUCCESS ? &n_done : &n_failed) += 1;
	doca_task_free(t);
}

static doca_error_t c_imm(void)
{
	return doca_comch_consumer_set_imm_data_len(consumer, 32);
}
static doca_error_t c_posts(void)
{
	return doca_comch_consumer_task_post_recv_set_conf(consumer, on_recv, on_recv, 4);
}
static doca_error_t c_max(void)
{
	return doca_comch_consumer_set_dev_max_num_recv(consumer, 16);
}
static doca_error_t c_completion(void)
{
	return doca_comch_consumer_set_completion(consumer, comp, 1);
}
static doca_error_t c_on_dpa(void)
{
	return doca_ctx_set_datapath_on_dpa(doca_comch_consumer_as_ctx(consumer), dpa);
}
static doca_error_t c_start(void)
{
	return doca_ctx_start(doca_comch_consumer_as_ctx(consumer));
}
static doca_error_t c_stop(void)
{
	return doca_ctx_stop(doca_comch_consumer_as_ctx(consumer));
}
static doca_error_t c_destroy(void)
{
	return doca_comch_consumer_destroy(consumer);
}

static doca_error_t c_handle(void)
{
	doca_dpa_dev_comch_consumer_t handle;

	return doca_comch_consumer_get_dpa_handle(consumer, &handle);
}

static doca_error_t c_post(void)
{
	struct doca_comch_consumer_task_post_recv *task;
	doca_error_t result = doca_comch_consumer_task_post_recv_alloc_init(consumer, NULL, &task);

	if (result != DOCA_SUCCESS)
		return result;
	result = doca_task_submit(doca_comch_consumer_task_post_recv_as_task(task));
	if (result != DOCA_SUCCESS)
		doca_task_free(doca_comch_consumer_task_post_recv_as_task(task));
	return result;
}

static const struct rig_row cpu_consumer_rows[] = {
	/*                                    idle  starting  running  stopping */
	{"set_imm_data_len", c_imm, {DOCA_SUCCESS, LATE, LATE, LATE}},
	{"post_recv_set_conf", c_posts, {DOCA_SUCCESS, LATE, LATE, LATE}},
	{"set_dev_max_num_recv", c_max, {INVALID, LATE, LATE, LATE}},
	{"set_completion", c_completion, {INVALID, LATE, LATE, LATE}},
	{"get_dpa_handle", c_handle, {LATE, LATE, LATE, LATE}},
	{"datapath_on_dpa", c_on_dpa, {DOCA_ERROR_NOT_SUPPORTED, NOT_HERE, NOT_HERE, NOT_HERE}},
	{"submit", c_post, {EMPTY, LATE, DOCA_SUCCESS, DOCA_SUCCESS}},
	{"start", c_start, {NOT_HERE, LATE, LATE, LATE}},
	{"stop", c_stop, {DOCA_SUCCESS, NOT_HERE, NOT_HERE, GOES_ON}},
	{"destroy", c_destroy, {NOT_HERE, BUSY, BUSY, BUSY}},
};

static doca_error_t p_sends(void)
{
	return doca_comch_producer_task_send_set_conf(producer, on_send, on_send, 4);
}
static doca_error_t p_max(void)
{
	return doca_comch_producer_set_dev_max_num_send(producer, 16);
}
static doca_error_t p_completion(void)
{
	return doca_comch_producer_dpa_completion_attach(producer, ends);
}
static doca_error_t p_on_dpa(void)
{
	return doca_ctx_set_datapath_on_dpa(doca_comch_producer_as_ctx(producer), dpa);
}
static doca_error_t p_start(void)
{
	return doca_ctx_start(doca_comch_producer_as_ctx(producer));
}
static doca_error_t p_stop(void)
{
	return doca_ctx_stop(doca_comch_producer_as_ctx(producer));
}
static doca_error_t p_destroy(void)
{
	return doca_comch_producer_destroy(producer);
}

static doca_error_t p_handle(void)
{
	doca_dpa_dev_comch_producer_t handle;

	return doca_comch_producer_get_dpa_handle(producer, &handle);
}

/*
 * Send a message to the consumer. Submit needs a credit, which the DPA gives by
 * doca_dpa_dev_comch_consumer_ack().
 */
static doca_error_t p_send(void)
{
	struct doca_comch_producer_task_send *task;
	uint32_t id = 0;
	uint8_t imm = 1;
	doca_error_t result;

	NEED_OK(doca_comch_consumer_get_id(consumer, &id));
	result = doca_comch_producer_task_send_alloc_init(producer, NULL, &imm, 1, id, &task);
	if (result != DOCA_SUCCESS)
		return result;
	result = doca_task_submit(doca_comch_producer_task_send_as_task(task));
	if (result != DOCA_SUCCESS)
		doca_task_free(doca_comch_producer_task_send_as_task(task));
	return result;
}

static const struct rig_row cpu_producer_rows[] = {
	/*                                   idle  -  running  stopping */
	{"send_set_conf", p_sends, {DOCA_SUCCESS, NOT_HERE, LATE, LATE}},
	{"set_dev_max_num_send", p_max, {INVALID, NOT_HERE, LATE, LATE}},
	{"completion_attach", p_completion, {INVALID, NOT_HERE, LATE, LATE}},
	{"get_dpa_handle", p_handle, {LATE, NOT_HERE, LATE, LATE}},
	{"datapath_on_dpa", p_on_dpa, {DOCA_ERROR_NOT_SUPPORTED, NOT_HERE, NOT_HERE, NOT_HERE}},
	{"submit", p_send, {EMPTY, NOT_HERE, DOCA_SUCCESS, DOCA_SUCCESS}},
	{"start", p_start, {NOT_HERE, NOT_HERE, LATE, LATE}},
	{"stop", p_stop, {DOCA_SUCCESS, NOT_HERE, NOT_HERE, GOES_ON}},
	{"destroy", p_destroy, {NOT_HERE, NOT_HERE, BUSY, BUSY}},
};

/* -- on the DPA: no engine, no tasks -- */

static const struct rig_row dpa_consumer_rows[] = {
	/*                                 idle  -  running  - */
	{"set_imm_data_len", c_imm, {DOCA_SUCCESS, NOT_HERE, LATE, NOT_HERE}},
	{"post_recv_set_conf", c_posts, {INVALID, NOT_HERE, INVALID, NOT_HERE}},
	{"set_dev_max_num_recv", c_max, {DOCA_SUCCESS, NOT_HERE, LATE, NOT_HERE}},
	{"set_completion", c_completion, {ONCE, NOT_HERE, LATE, NOT_HERE}},
	{"get_dpa_handle", c_handle, {LATE, NOT_HERE, DOCA_SUCCESS, NOT_HERE}},
	{"datapath_on_dpa", c_on_dpa, {DOCA_SUCCESS, NOT_HERE, LATE, NOT_HERE}},
	{"submit", c_post, {EMPTY, NOT_HERE, EMPTY, NOT_HERE}},
	{"start", c_start, {NOT_HERE, NOT_HERE, LATE, NOT_HERE}},
	{"stop", c_stop, {DOCA_SUCCESS, NOT_HERE, NOT_HERE, NOT_HERE}},
	{"destroy", c_destroy, {NOT_HERE, NOT_HERE, BUSY, NOT_HERE}},
};

static const struct rig_row dpa_producer_rows[] = {
	/*                                   idle  -  running  - */
	{"send_set_conf", p_sends, {INVALID, NOT_HERE, INVALID, NOT_HERE}},
	{"set_dev_max_num_send", p_max, {DOCA_SUCCESS, NOT_HERE, LATE, NOT_HERE}},
	{"completion_attach", p_completion, {ONCE, NOT_HERE, LATE, NOT_HERE}},
	{"get_dpa_handle", p_handle, {LATE, NOT_HERE, DOCA_SUCCESS, NOT_HERE}},
	{"datapath_on_dpa", p_on_dpa, {DOCA_SUCCESS, NOT_HERE, LATE, NOT_HERE}},
	{"submit", p_send, {EMPTY, NOT_HERE, EMPTY, NOT_HERE}},
	{"start", p_start, {NOT_HERE, NOT_HERE, LATE, NOT_HERE}},
	{"stop", p_stop, {DOCA_SUCCESS, NOT_HERE, NOT_HERE, NOT_HERE}},
	{"destroy", p_destroy, {NOT_HERE, NOT_HERE, BUSY, NOT_HERE}},
};

static void walk_dpa_producer(void)
{
	struct doca_ctx *ctx = doca_comch_producer_as_ctx(producer);

	NEED_OK(doca_dpa_completion_create(dpa, 16, &ends));
	watch(ctx, false);
	NEED_OK(doca_comch_producer_dpa_completion_attach(producer, ends));
	NEED_RESULT(INVALID, doca_comch_producer_set_dev_max_num_send(producer, 0));
	/* number of sends not set, completion not started */
	NEED_RESULT(INVALID, doca_ctx_start(ctx));
	TRY(ctx, dpa_producer_rows);
	NEED_RESULT(INVALID, doca_ctx_start(ctx));
	NEED_OK(doca_dpa_completion_start(ends));
	NEED_OK(doca_ctx_start(ctx));
	TRY(ctx, dpa_producer_rows);
	NEED_OK(doca_ctx_stop(ctx));
	NEED(strcmp(journal, "20") == 0);
	TRY(ctx, dpa_producer_rows);
}

static void walk_cpu_consumer(void)
{
	struct doca_ctx *ctx = doca_comch_consumer_as_ctx(consumer);

	watch(ctx, true);
	NEED_RESULT(INVALID, doca_ctx_start(ctx)); /* no tasks */
	TRY(ctx, cpu_consumer_rows);
	NEED_RESULT(GOES_ON, doca_ctx_start(ctx));
	TRY(ctx, cpu_consumer_rows);
	NEED(doca_pe_progress(s.pe) == 1);
	TRY(ctx, cpu_consumer_rows);
	NEED(doca_pe_progress(s.pe) == 0 && n_done + n_failed == 0);
	NEED_RESULT(GOES_ON, doca_ctx_stop(ctx));
	TRY(ctx, cpu_consumer_rows);
	UNTIL(&s, state_of(ctx) == DOCA_CTX_STATE_IDLE);
	NEED(strcmp(journal, "1230") == 0 && n_failed == 2);
	/* stop the consumer before its engine has processed the start */
	NEED_RESULT(GOES_ON, doca_ctx_start(ctx));
	NEED_OK(doca_ctx_stop(ctx));
	NEED(strcmp(journal, "123010") == 0 && doca_pe_progress(s.pe) == 0);
	TRY(ctx, cpu_consumer_rows);
}

static void from_the_dpa(void)
{
	open_dpa();
	NEED_OK(doca_dpa_start(dpa));
	NEED_OK(doca_comch_msgq_set_dpa_producer(msgq, dpa));
	NEED_OK(doca_comch_msgq_start(msgq));
	NEED_OK(doca_comch_msgq_producer_create(msgq, &producer));
	NEED_OK(doca_comch_msgq_consumer_create(msgq, &consumer));
	NEED_OK(doca_comch_consumer_completion_create(&comp));
	walk_dpa_producer();
	walk_cpu_consumer();
	NEED_OK(doca_comch_consumer_completion_destroy(comp));
	NEED_OK(doca_comch_consumer_destroy(consumer));
	NEED_RESULT(BUSY, doca_dpa_completion_destroy(ends));
	NEED_OK(doca_comch_producer_destroy(producer));
	NEED_OK(doca_dpa_completion_stop(ends));
	NEED_OK(doca_dpa_completion_destroy(ends));
	NEED_OK(doca_comch_msgq_stop(msgq));
	close_dpa();
}

static void a_DPA_producer_and_a_CPU_consumer_go_through_all_states(void)
{
	rig_alone(from_the_dpa);
}

/* -- completions of DPA consumers -- */

static doca_error_t m_consumers(void)
{
	return doca_comch_consumer_completion_set_max_num_consumers(comp, 1);
}
static doca_error_t m_recv(void)
{
	return doca_comch_consumer_completion_set_max_num_recv(comp, 16);
}
static doca_error_t m_imm(void)
{
	return doca_comch_consumer_completion_set_imm_data_len(comp, 32);
}
static doca_error_t m_thread(void)
{
	return doca_comch_consumer_completion_set_dpa_thread(comp, thread);
}
static doca_error_t m_start(void)
{
	return doca_comch_consumer_completion_start(comp);
}
static doca_error_t m_stop(void)
{
	return doca_comch_consumer_completion_stop(comp);
}
static doca_error_t m_destroy(void)
{
	return doca_comch_consumer_completion_destroy(comp);
}

static doca_error_t m_handle(void)
{
	doca_dpa_dev_comch_consumer_completion_t handle;

	return doca_comch_consumer_completion_get_dpa_handle(comp, &handle);
}

static const struct rig_row completion_rows[] = {
	/*                                stopped       started   used by a consumer */
	{"set_max_num_consumers", m_consumers, {DOCA_SUCCESS, LATE, LATE}},
	{"set_max_num_recv", m_recv, {DOCA_SUCCESS, LATE, LATE}},
	{"set_imm_data_len", m_imm, {DOCA_SUCCESS, LATE, LATE}},
	{"set_dpa_thread", m_thread, {DOCA_SUCCESS, LATE, LATE}},
	{"get_dpa_handle", m_handle, {LATE, DOCA_SUCCESS, DOCA_SUCCESS}},
	{"start", m_start, {NOT_HERE, LATE, LATE}},
	{"stop", m_stop, {LATE, NOT_HERE, BUSY}},
	{"destroy", m_destroy, {NOT_HERE, NOT_HERE, BUSY}},
};

static void try_completion(int state)
{
	for (size_t i = 0; i < sizeof(completion_rows) / sizeof(*completion_rows); i++)
		if (completion_rows[i].wanted[state] != NOT_HERE)
			rig_need_result(__FILE__, state, completion_rows[i].what,
					completion_rows[i].call(),
					completion_rows[i].wanted[state]);
}

/* Getters return the values that were set; setters reject values that are out of range. */
static void numbers_of_completion(void)
{
	uint32_t n;

	NEED_RESULT(INVALID, doca_comch_consumer_completion_set_max_num_recv(comp, 0));
	NEED_RESULT(INVALID, doca_comch_consumer_completion_set_imm_data_len(comp, 33));
	NEED_RESULT(INVALID, doca_comch_consumer_completion_set_max_num_consumers(comp, 0));
	NEED_OK(doca_comch_consumer_completion_get_max_num_recv(comp, &n));
	NEED(n == 16);
	NEED_OK(doca_comch_consumer_completion_get_imm_data_len(comp, &n));
	NEED(n == 32);
	NEED_OK(doca_comch_consumer_completion_get_max_num_consumers(comp, &n));
	NEED(n == 1);
}

static void walk_dpa_consumer(void)
{
	struct doca_ctx *ctx = doca_comch_consumer_as_ctx(consumer);

	watch(ctx, false);
	NEED_OK(doca_comch_consumer_completion_create(&comp));
	try_completion(0);
	numbers_of_completion();
	NEED_OK(doca_comch_consumer_set_completion(consumer, comp, 1));
	/* the number of receives is not set, and the completion is not started */
	NEED_RESULT(INVALID, doca_ctx_start(ctx));
	TRY(ctx, dpa_consumer_rows);
	NEED_RESULT(INVALID, doca_ctx_start(ctx));
	NEED_OK(doca_comch_consumer_completion_start(comp));
	try_completion(2);
	NEED_OK(doca_ctx_start(ctx));
	TRY(ctx, dpa_consumer_rows);
	NEED_OK(doca_ctx_stop(ctx));
	NEED(strcmp(journal, "20") == 0);
	TRY(ctx, dpa_consumer_rows);
	NEED_OK(doca_ctx_start(ctx));
}

static void walk_cpu_producer(void)
{
	struct doca_ctx *ctx = doca_comch_producer_as_ctx(producer);
	doca_dpa_dev_comch_consumer_t handle;

	watch(ctx, true);
	NEED_RESULT(INVALID, doca_ctx_start(ctx)); /* no tasks */
	TRY(ctx, cpu_producer_rows);
	NEED_OK(doca_ctx_start(ctx));
	NEED_OK(doca_comch_consumer_get_dpa_handle(consumer, &handle));
	NEED_RESULT(DOCA_ERROR_AGAIN, p_send());
	doca_dpa_dev_comch_consumer_ack(handle, 1);
	TRY(ctx, cpu_producer_rows);
	NEED_RESULT(DOCA_ERROR_AGAIN, p_send());
	NEED_RESULT(GOES_ON, doca_ctx_stop(ctx)); /* the completion of the task was not delivered */
	TRY(ctx, cpu_producer_rows);
	UNTIL(&s, state_of(ctx) == DOCA_CTX_STATE_IDLE);
	NEED(strcmp(journal, "230") == 0 && n_done == 1 && n_failed == 1);
	TRY(ctx, cpu_producer_rows);
}

static void to_the_dpa(void)
{
	struct doca_comch_consumer *second;

	open_dpa();
	NEED_OK(doca_dpa_start(dpa));
	NEED_OK(doca_comch_msgq_set_dpa_consumer(msgq, dpa));
	NEED_OK(doca_comch_msgq_start(msgq));
	NEED_OK(doca_comch_msgq_producer_create(msgq, &producer));
	NEED_OK(doca_comch_msgq_consumer_create(msgq, &consumer));
	walk_dpa_consumer();
	walk_cpu_producer();
	NEED_OK(doca_comch_msgq_consumer_create(msgq, &second));
	NEED_RESULT(DOCA_ERROR_FULL, doca_comch_consumer_set_completion(second, comp, 2));
	NEED_OK(doca_comch_consumer_destroy(second));
	NEED_OK(doca_comch_producer_destroy(producer));
	NEED_OK(doca_ctx_stop(doca_comch_consumer_as_ctx(consumer)));
	NEED_OK(doca_comch_consumer_destroy(consumer));
	try_completion(1);
	NEED_OK(doca_comch_consumer_completion_stop(comp));
	NEED_OK(doca_comch_consumer_completion_destroy(comp));
	NEED_OK(doca_comch_msgq_stop(msgq));
	close_dpa();
}

static void a_DPA_consumer_and_a_CPU_producer_go_through_all_states(void)
{
	rig_alone(to_the_dpa);
}

/* -- no memory: in the process of the test, because scarce_walk() uses assertions of Unity -- */

static doca_error_t make_queue(void *arg)
{
	return doca_comch_msgq_create(s.dev, arg);
}

static void undo_queue(void *arg)
{
	NEED_OK(doca_comch_msgq_destroy(*(struct doca_comch_msgq **)arg));
}

static doca_error_t make_consumer(void *arg)
{
	return doca_comch_msgq_consumer_create(msgq, arg);
}

static void undo_consumer(void *arg)
{
	NEED_OK(doca_comch_consumer_destroy(*(struct doca_comch_consumer **)arg));
}

static doca_error_t make_producer(void *arg)
{
	return doca_comch_msgq_producer_create(msgq, arg);
}

static void undo_producer(void *arg)
{
	NEED_OK(doca_comch_producer_destroy(*(struct doca_comch_producer **)arg));
}

static doca_error_t make_completion(void *arg)
{
	return doca_comch_consumer_completion_create(arg);
}

static void undo_completion(void *arg)
{
	NEED_OK(doca_comch_consumer_completion_destroy(
		*(struct doca_comch_consumer_completion **)arg));
}

static void create_fails_when_memory_is_exhausted(void)
{
	void *made;

	if (!scarce_can())
		TEST_IGNORE_MESSAGE("allocations cannot fail in this build");
	open_dpa();
	NEED_OK(doca_dpa_start(dpa));
	NEED_OK(doca_comch_msgq_set_dpa_consumer(msgq, dpa));
	NEED_OK(doca_comch_msgq_start(msgq));
	TEST_ASSERT_TRUE(scarce_walk(EMPTY, make_queue, undo_queue, &made) > 0);
	TEST_ASSERT_TRUE(scarce_walk(EMPTY, make_consumer, undo_consumer, &made) > 0);
	TEST_ASSERT_TRUE(scarce_walk(EMPTY, make_producer, undo_producer, &made) > 0);
	TEST_ASSERT_TRUE(scarce_walk(EMPTY, make_completion, undo_completion, &made) > 0);
	NEED_OK(doca_comch_consumer_completion_create(&comp));
	scarce_after(0);
	NEED_RESULT(EMPTY, doca_comch_consumer_completion_start(comp));
	TEST_ASSERT_TRUE(scarce_end());
	NEED_OK(doca_comch_consumer_completion_start(comp));
	NEED_OK(doca_comch_consumer_completion_stop(comp));
	NEED_OK(doca_comch_consumer_completion_destroy(comp));
	NEED_OK(doca_comch_msgq_stop(msgq));
	close_dpa();
}

int main(void)
{
	rig_init();
	UNITY_BEGIN();
	RUN_TEST(the_device_of_a_queue_is_not_closed);
	RUN_TEST(a_queue_goes_through_all_states_and_each_call_gives_what_is_documented);
	RUN_TEST(a_DPA_producer_and_a_CPU_consumer_go_through_all_states);
	RUN_TEST(a_DPA_consumer_and_a_CPU_producer_go_through_all_states);
	RUN_TEST(create_fails_when_memory_is_exhausted);
	rig_fini();
	return UNITY_END();
}
