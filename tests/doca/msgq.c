/* SPDX-License-Identifier: BSD-3-Clause */
/* msgq.c - message queues between the CPU and an emulated DPA, in both directions. */
#include <doca_comch_msgq.h>
#include <doca_dpa.h>
#include <doca_dpa_dev.h>
#include <doca_dpa_dev_comch_msgq.h>
#include <string.h>

#include "comch_rig.h"

#define N 5000u
#define DEPTH 16u
#define BAD(x) NEED_RESULT(DOCA_ERROR_INVALID_VALUE, x)

/* The objects of both sides of a test: a device, a DPA with one thread, an engine for the CPU. */
static struct side s;
static struct doca_dpa *dpa;
static struct doca_dpa_thread *thread;
static struct doca_comch_msgq *msgq;
static struct doca_comch_consumer *consumer;
static struct doca_comch_producer *producer;
static struct doca_comch_consumer_completion *comp;
static struct doca_dpa_completion *ends;
/* handles that a program gives to its code on the DPA */
static doca_dpa_dev_comch_consumer_completion_t dev_comp;
static doca_dpa_dev_comch_consumer_t dev_consumer;
static doca_dpa_dev_comch_producer_t dev_producer;
static doca_dpa_dev_completion_t dev_ends;
static uint32_t consumer_id, producer_id;

static void open_dpa(doca_dpa_func_t *func)
{
	side_open_dev(&s, "03:00.0");
	NEED_OK(doca_pe_create(&s.pe));
	NEED_OK(doca_dpa_cap_is_supported(doca_dev_as_devinfo(s.dev)));
	NEED_OK(doca_dpa_create(s.dev, &dpa));
	NEED_OK(doca_dpa_thread_create(dpa, &thread));
	NEED_OK(doca_dpa_thread_set_func_arg(thread, func, 7));
	NEED_RESULT(DOCA_ERROR_BAD_STATE, doca_dpa_thread_start(thread)); /* DPA not started */
	NEED_OK(doca_dpa_start(dpa));
	NEED_OK(doca_dpa_thread_start(thread));
	NEED_OK(doca_comch_msgq_create(s.dev, &msgq));
}

static void close_dpa(void)
{
	NEED_OK(doca_comch_msgq_stop(msgq));
	NEED_OK(doca_comch_msgq_destroy(msgq));
	NEED_RESULT(DOCA_ERROR_IN_USE, doca_dpa_destroy(dpa));
	NEED_OK(doca_dpa_thread_destroy(thread));
	NEED_OK(doca_dpa_stop(dpa));
	NEED_OK(doca_dpa_destroy(dpa));
	NEED_OK(doca_pe_destroy(s.pe));
	NEED_OK(doca_dev_close(s.dev));
}

/* -- from the CPU to the DPA -- */

static unsigned int taken; /* number of messages that the DPA has received */

/* One activation: receive all messages, acknowledge them, and request the next activation. */
static __dpa_global__ void take_all(uint64_t arg)
{
	doca_dpa_dev_comch_consumer_completion_element_t element;
	uint32_t n = 0, len, number;

	NEED(arg == 7);
	while (doca_dpa_dev_comch_consumer_get_completion(dev_comp, &element)) {
		const uint8_t *imm = doca_dpa_dev_comch_consumer_get_completion_imm(element, &len);

		memcpy(&number, imm, sizeof(number));
		NEED(number == taken && len == sizeof(number) + number % 29);
		NEED(doca_dpa_dev_comch_consumer_get_completion_producer_id(element) ==
		     producer_id);
		NEED(doca_dpa_dev_comch_consumer_get_completion_consumer_user_data(element) == 77);
		for (uint32_t i = sizeof(number); i < len; i++)
			NEED(imm[i] == (uint8_t)number);
		__atomic_store_n(&taken, number + 1, __ATOMIC_RELEASE);
		n++;
	}
	doca_dpa_dev_comch_consumer_completion_ack(dev_comp, n);
	doca_dpa_dev_comch_consumer_ack(dev_consumer, n);
	doca_dpa_dev_comch_consumer_completion_request_notification(dev_comp);
	doca_dpa_dev_thread_reschedule();
	NEED(!"reschedule returned");
}

static unsigned int n_sent, n_failed;
static doca_error_t status;

static void on_sent(struct doca_comch_producer_task_send *task, union doca_data task_data,
		    union doca_data ctx_data)
{
	(void)task_data;
	(void)ctx_data;
	n_sent++;
	doca_task_free(doca_comch_producer_task_send_as_task(task));
}

static void on_failed(struct doca_comch_producer_task_send *task, union doca_data task_data,
		      union doca_data ctx_data)
{
	(void)task_data;
	(void)ctx_data;
	n_failed++;
	status = doca_task_get_status(doca_comch_producer_task_send_as_task(task));
	doca_task_free(doca_comch_producer_task_send_as_task(task));
}

static void open_dpa_consumer(void)
{
	struct doca_ctx *ctx;

	NEED_RESULT(DOCA_ERROR_BAD_STATE, doca_comch_msgq_start(msgq)); /* no direction is set */
	NEED_OK(doca_comch_msgq_set_dpa_consumer(msgq, dpa));
	NEED_RESULT(DOCA_ERROR_NOT_PERMITTED, doca_comch_msgq_set_dpa_producer(msgq, dpa));
	NEED_OK(doca_comch_msgq_set_max_num_consumers(msgq, 1));
	NEED_OK(doca_comch_msgq_set_max_num_producers(msgq, 2));
	NEED_RESULT(DOCA_ERROR_BAD_STATE, doca_comch_msgq_consumer_create(msgq, &consumer));
	NEED_OK(doca_comch_msgq_start(msgq));
	NEED_OK(doca_comch_msgq_consumer_create(msgq, &consumer));
	ctx = doca_comch_consumer_as_ctx(consumer);
	NEED_OK(doca_ctx_set_datapath_on_dpa(ctx, dpa));
	BAD(doca_ctx_start(ctx)); /* no completion is set */
	NEED_OK(doca_comch_consumer_completion_create(&comp));
	NEED_OK(doca_comch_consumer_completion_set_dpa_thread(comp, thread));
	NEED_OK(doca_comch_consumer_completion_set_max_num_recv(comp, DEPTH));
	NEED_OK(doca_comch_consumer_completion_start(comp));
	NEED_OK(doca_comch_consumer_set_completion(consumer, comp, 77));
	BAD(doca_comch_consumer_set_dev_max_num_recv(consumer, 0));
	NEED_OK(doca_comch_consumer_set_dev_max_num_recv(consumer, DEPTH));
	NEED_RESULT(DOCA_ERROR_BAD_STATE,
		    doca_comch_consumer_get_dpa_handle(consumer, &dev_consumer));
	NEED_OK(doca_ctx_start(ctx)); /* no engine is needed */
	NEED_OK(doca_comch_consumer_get_dpa_handle(consumer, &dev_consumer));
	NEED_OK(doca_comch_consumer_completion_get_dpa_handle(comp, &dev_comp));
	NEED_OK(doca_comch_consumer_get_id(consumer, &consumer_id));
	NEED_OK(doca_comch_msgq_producer_create(msgq, &producer));
	ctx = doca_comch_producer_as_ctx(producer);
	NEED_RESULT(DOCA_ERROR_NOT_SUPPORTED, doca_ctx_set_datapath_on_dpa(ctx, dpa));
	NEED_OK(doca_pe_connect_ctx(s.pe, ctx));
	NEED_OK(doca_comch_producer_task_send_set_conf(producer, on_sent, on_failed, DEPTH));
	NEED_OK(doca_ctx_start(ctx));
	NEED_OK(doca_comch_producer_get_id(producer, &producer_id));
}

static doca_error_t send(uint32_t to, unsigned int number, struct doca_buf *buf)
{
	struct doca_comch_producer_task_send *task;
	uint8_t imm[32];
	doca_error_t result;

	memset(imm, (int)number, sizeof(imm));
	memcpy(imm, &number, sizeof(number));
	NEED_OK(doca_comch_producer_task_send_alloc_init(
		producer, buf, imm, (uint32_t)sizeof(number) + number % 29, to, &task));
	result = doca_task_submit(doca_comch_producer_task_send_as_task(task));
	if (result != DOCA_SUCCESS)
		doca_task_free(doca_comch_producer_task_send_as_task(task));
	return result;
}

static void close_dpa_consumer(void)
{
	NEED_RESULT(DOCA_ERROR_IN_USE, doca_comch_msgq_stop(msgq));
	NEED_OK(doca_ctx_stop(doca_comch_producer_as_ctx(producer)));
	NEED_OK(doca_comch_producer_destroy(producer));
	NEED_OK(doca_dpa_thread_stop(thread));
	NEED_OK(doca_ctx_stop(doca_comch_consumer_as_ctx(consumer)));
	NEED_RESULT(DOCA_ERROR_IN_USE, doca_comch_consumer_completion_stop(comp));
	NEED_OK(doca_comch_consumer_destroy(consumer));
	NEED_OK(doca_comch_consumer_completion_stop(comp));
	NEED_OK(doca_comch_consumer_completion_destroy(comp));
}

static void to_the_dpa(void)
{
	unsigned int n = 0;

	open_dpa(take_all);
	open_dpa_consumer();
	/* no credit: the DPA gives credit by an acknowledgement, and has not done so yet */
	NEED_RESULT(DOCA_ERROR_AGAIN, send(consumer_id, 0, NULL));
	NEED_OK(send(consumer_id + 1, 0, NULL));
	/* only immediate data is allowed */
	NEED_OK(send(consumer_id, 0, (struct doca_buf *)(void *)&s));
	UNTIL(&s, n_failed == 2);
	NEED(status == DOCA_ERROR_INVALID_VALUE);
	doca_dpa_dev_comch_consumer_ack(dev_consumer, DEPTH);
	NEED_OK(doca_dpa_thread_run(thread)); /* the thread requests notifications from now on */
	while (n < N) {
		const doca_error_t result = send(consumer_id, n, NULL);

		NEED(result == DOCA_SUCCESS || result == DOCA_ERROR_AGAIN);
		n += result == DOCA_SUCCESS;
		if (!doca_pe_progress(s.pe))
			rig_yield();
	}
	UNTIL(&s, n_sent == N && __atomic_load_n(&taken, __ATOMIC_ACQUIRE) == N);
	close_dpa_consumer();
	close_dpa();
}

static void messages_to_the_DPA_arrive_in_order_up_to_the_acknowledged_number(void)
{
	rig_begin();
	rig_wait(rig_fork(to_the_dpa), 0);
}

/* -- from the DPA to the CPU -- */

static char from[N * 8], into[N * 8];
static char sealed[8];
static doca_dpa_dev_mmap_t from_map, into_map, sealed_map, far_map;
static unsigned int n_put, n_done;
static unsigned int n_sends = DEPTH, n_ends = DEPTH; /* of the producer; of its completion queue */

/*
 * Send all messages: every third one with a copy before it, every fifth one with a completion. Take
 * each completion after the send. Then make calls that must be rejected.
 */
static __dpa_global__ void send_all(uint64_t arg)
{
	doca_dpa_dev_completion_element_t element;
	uint8_t long_imm[33] = {0};

	NEED(arg == 7);
	for (; n_put < N; n_put++) {
		const uint8_t wanted = n_put % 5 == 0;

		if (n_put % 3 == 0)
			doca_dpa_dev_comch_producer_dma_copy(
				dev_producer, consumer_id, into_map, (uintptr_t)into + n_put * 8ull,
				from_map, (uintptr_t)from + n_put * 8ull, 8, (uint8_t *)&n_put,
				sizeof(n_put), wanted);
		else
			doca_dpa_dev_comch_producer_post_send_imm_only(dev_producer, consumer_id,
								       (uint8_t *)&n_put,
								       sizeof(n_put), wanted);
		while (doca_dpa_dev_get_completion(dev_ends, &element)) {
			NEED(doca_dpa_dev_get_completion_user_data(element) == 55);
			doca_dpa_dev_completion_ack(dev_ends, 1);
			__atomic_add_fetch(&n_done, 1, __ATOMIC_RELEASE);
		}
	}
	/*
	 * these calls are rejected, and copy nothing: too long, outside the map, overlapping, into
	 * a read-only map, from a map of another device
	 */
	doca_dpa_dev_comch_producer_post_send_imm_only(dev_producer, consumer_id, long_imm,
						       sizeof(long_imm), 0);
	doca_dpa_dev_comch_producer_dma_copy(dev_producer, consumer_id, into_map,
					     (uintptr_t)into + sizeof(into) - 4, from_map,
					     (uintptr_t)from, 8, long_imm, 4, 0);
	doca_dpa_dev_comch_producer_dma_copy(dev_producer, consumer_id, from_map,
					     (uintptr_t)from + 4, from_map, (uintptr_t)from, 8,
					     long_imm, 4, 0);
	doca_dpa_dev_comch_producer_dma_copy(dev_producer, consumer_id, into_map,
					     (uintptr_t)into + 8, from_map, (uintptr_t)from, 8,
					     long_imm, sizeof(long_imm), 0);
	doca_dpa_dev_comch_producer_dma_copy(dev_producer, consumer_id, sealed_map,
					     (uintptr_t)sealed, from_map, (uintptr_t)from, 8,
					     long_imm, 4, 0);
	doca_dpa_dev_comch_producer_dma_copy(dev_producer, consumer_id, into_map,
					     (uintptr_t)into + 8, far_map, (uintptr_t)from, 8,
					     long_imm, 4, 0);
	/* all completions are taken, so this request does not activate the thread again */
	doca_dpa_dev_completion_request_notification(dev_ends);
	doca_dpa_dev_thread_finish();
}

static unsigned int n_received, n_flushed;

static void on_received(struct doca_comch_consumer_task_post_recv *task, union doca_data task_data,
			union doca_data ctx_data)
{
	unsigned int number;

	(void)task_data;
	(void)ctx_data;
	NEED(doca_comch_consumer_task_post_recv_get_imm_data_len(task) == sizeof(number));
	memcpy(&number, doca_comch_consumer_task_post_recv_get_imm_data(task), sizeof(number));
	NEED(number == n_received &&
	     doca_comch_consumer_task_post_recv_get_producer_id(task) == producer_id);
	/* the copy was done before the message arrived */
	NEED(memcmp(into + number * 8ul, number % 3 ? "\0\0\0\0\0\0\0" : from + number * 8ul, 8) ==
	     0);
	n_received++;
	NEED_OK(doca_task_submit(doca_comch_consumer_task_post_recv_as_task(task)));
}

static void on_flushed(struct doca_comch_consumer_task_post_recv *task, union doca_data task_data,
		       union doca_data ctx_data)
{
	(void)task_data;
	(void)ctx_data;
	n_flushed++;
	status = doca_task_get_status(doca_comch_consumer_task_post_recv_as_task(task));
	doca_task_free(doca_comch_consumer_task_post_recv_as_task(task));
}

static struct doca_mmap *map_for(struct doca_dev *dev, char *addr, size_t length, uint32_t access,
				 doca_dpa_dev_mmap_t *handle)
{
	struct doca_mmap *mmap;

	NEED_OK(doca_mmap_create(&mmap));
	NEED_OK(doca_mmap_add_dev(mmap, dev));
	NEED_OK(doca_mmap_set_permissions(mmap, access));
	NEED_OK(doca_mmap_set_memrange(mmap, addr, length));
	NEED_OK(doca_mmap_start(mmap));
	NEED_OK(doca_mmap_dev_get_dpa_handle(mmap, dev, handle));
	return mmap;
}

static struct doca_mmap *map(char *addr, size_t length, uint32_t access,
			     doca_dpa_dev_mmap_t *handle)
{
	return map_for(s.dev, addr, length, access, handle);
}

static void open_dpa_producer(void)
{
	struct doca_ctx *ctx;

	NEED_OK(doca_comch_msgq_set_dpa_producer(msgq, dpa));
	NEED_OK(doca_comch_msgq_start(msgq));
	NEED_OK(doca_comch_msgq_producer_create(msgq, &producer));
	ctx = doca_comch_producer_as_ctx(producer);
	NEED_OK(doca_ctx_set_user_data(ctx, (union doca_data){.u64 = 55}));
	BAD(doca_ctx_start(ctx));
	NEED_OK(doca_dpa_completion_create(dpa, n_ends, &ends));
	NEED_OK(doca_dpa_completion_set_thread(ends, thread));
	NEED_OK(doca_dpa_completion_start(ends));
	NEED_OK(doca_comch_producer_dpa_completion_attach(producer, ends));
	NEED_OK(doca_comch_producer_set_dev_max_num_send(producer, n_sends));
	NEED_OK(doca_ctx_start(ctx));
	NEED_OK(doca_comch_producer_get_dpa_handle(producer, &dev_producer));
	NEED_OK(doca_dpa_completion_get_dpa_handle(ends, &dev_ends));
	NEED_OK(doca_comch_producer_get_id(producer, &producer_id));
	NEED_OK(doca_comch_msgq_consumer_create(msgq, &consumer));
	NEED_OK(doca_comch_consumer_get_id(consumer, &consumer_id));
	ctx = doca_comch_consumer_as_ctx(consumer);
	NEED_OK(doca_pe_connect_ctx(s.pe, ctx));
	NEED_OK(doca_comch_consumer_task_post_recv_set_conf(consumer, on_received, on_flushed,
							    DEPTH + 1));
	NEED_RESULT(DOCA_ERROR_IN_PROGRESS, doca_ctx_start(ctx));
	UNTIL(&s, state_of(ctx) == DOCA_CTX_STATE_RUNNING);
}

static void post(struct doca_buf *buf)
{
	struct doca_comch_consumer_task_post_recv *task;

	NEED_OK(doca_comch_consumer_task_post_recv_alloc_init(consumer, buf, &task));
	NEED_OK(doca_task_submit(doca_comch_consumer_task_post_recv_as_task(task)));
}

static void close_dpa_producer(void)
{
	struct doca_ctx *ctx = doca_comch_consumer_as_ctx(consumer);

	NEED_RESULT(DOCA_ERROR_IN_PROGRESS, doca_ctx_stop(ctx));
	UNTIL(&s, state_of(ctx) == DOCA_CTX_STATE_IDLE);
	NEED(n_flushed == DEPTH + 1);
	NEED_OK(doca_comch_consumer_destroy(consumer));
	NEED_OK(doca_ctx_stop(doca_comch_producer_as_ctx(producer)));
	NEED_RESULT(DOCA_ERROR_IN_USE, doca_dpa_completion_stop(ends));
	NEED_RESULT(DOCA_ERROR_IN_USE, doca_dpa_completion_destroy(ends));
	NEED_OK(doca_comch_producer_destroy(producer));
	NEED_OK(doca_dpa_completion_stop(ends));
	NEED_OK(doca_dpa_completion_destroy(ends));
}

static void from_the_dpa(void)
{
	struct side far = {.dev = NULL};
	struct doca_mmap *maps[4];

	open_dpa(send_all);
	side_open_dev(&far, "b1:00.0");
	open_dpa_producer();
	for (size_t i = 0; i < sizeof(from); i++)
		from[i] = (char)(1 + i % 100);
	maps[0] = map(from, sizeof(from), DOCA_ACCESS_FLAG_PCI_READ_ONLY, &from_map);
	maps[1] = map(into, sizeof(into), DOCA_ACCESS_FLAG_PCI_READ_WRITE, &into_map);
	maps[2] = map(sealed, sizeof(sealed), DOCA_ACCESS_FLAG_PCI_READ_ONLY, &sealed_map);
	maps[3] = map_for(far.dev, from, sizeof(from), DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, &far_map);
	NEED(doca_dpa_dev_comch_producer_is_consumer_empty(dev_producer, consumer_id) == 1);
	post((struct doca_buf *)(void *)&s); /* a buffer is no use here */
	UNTIL(&s, n_flushed == 1);
	NEED(status == DOCA_ERROR_INVALID_VALUE);
	NEED_OK(doca_dpa_thread_run(thread)); /* the thread waits, because no receive is posted */
	for (unsigned int i = 0; i < DEPTH; i++)
		post(NULL);
	/* each progress that returns 1 has called a callback */
	for (unsigned int told = 0; told < N;)
		if (doca_pe_progress(s.pe))
			NEED(n_received == ++told);
	UNTIL(&s, __atomic_load_n(&n_done, __ATOMIC_ACQUIRE) == N / 5);
	NEED(doca_dpa_dev_comch_producer_is_consumer_empty(dev_producer, consumer_id) == 0);
	NEED_OK(doca_dpa_thread_stop(thread));
	NEED(memcmp(into + 8, "\0\0\0\0\0\0\0", 8) == 0 && sealed[0] == 0);
	close_dpa_producer();
	for (int i = 0; i < 4; i++)
		NEED_OK(doca_mmap_destroy(maps[i]));
	NEED_OK(doca_dev_close(far.dev));
	close_dpa();
}

static void messages_and_copies_of_the_DPA_arrive_and_complete_in_order(void)
{
	rig_begin();
	rig_wait(rig_fork(from_the_dpa), 0);
}

/* -- limits of a producer on the DPA -- */

#define ENTRIES 2u

static __dpa_global__ void send_number(unsigned int number, uint8_t wanted)
{
	doca_dpa_dev_comch_producer_post_send_imm_only(dev_producer, consumer_id,
						       (uint8_t *)&number, sizeof(number), wanted);
}

/*
 * Two sends wait for their completions to be taken, so a third one with a completion is rejected,
 * and one without is not.
 */
static __dpa_global__ void send_too_many(uint64_t arg)
{
	doca_dpa_dev_completion_element_t element;

	NEED(arg == 7);
	send_number(0, 1);
	send_number(1, 1);
	send_number(99, 1);
	send_number(2, 0);
	NEED(doca_dpa_dev_get_completion(dev_ends, &element) == 1);
	doca_dpa_dev_completion_ack(dev_ends, 1);
	send_number(3, 1);
	NEED(doca_dpa_dev_get_completion(dev_ends, &element) == 1);
	NEED(doca_dpa_dev_get_completion(dev_ends, &element) == 1);
	NEED(doca_dpa_dev_get_completion(dev_ends, &element) == 0);
	__atomic_store_n(&n_done, 1, __ATOMIC_RELEASE);
	doca_dpa_dev_thread_finish();
}

static void overfill(void)
{
	open_dpa(send_too_many);
	open_dpa_producer();
	for (unsigned int i = 0; i < DEPTH + 1; i++)
		post(NULL);
	NEED_OK(doca_dpa_thread_run(thread));
	UNTIL(&s, n_received == 4 && __atomic_load_n(&n_done, __ATOMIC_ACQUIRE));
	NEED_OK(doca_dpa_thread_stop(thread));
	NEED(doca_pe_progress(s.pe) == 0);
	close_dpa_producer();
	close_dpa();
}

static void a_producer_of_the_DPA_has_a_limit_of_sends(void)
{
	n_sends = ENTRIES;
	rig_alone(overfill);
	n_sends = DEPTH;
}

static void no_requested_completion_is_dropped(void)
{
	n_ends = ENTRIES;
	rig_alone(overfill);
	n_ends = DEPTH;
}

/* -- misuse -- */

static void misuse(void)
{
	struct doca_dpa *none;

	BAD(doca_comch_msgq_create(NULL, &msgq));
	BAD(doca_comch_msgq_destroy(NULL));
	BAD(doca_comch_msgq_start(NULL));
	BAD(doca_comch_msgq_stop(NULL));
	BAD(doca_comch_msgq_set_dpa_consumer(NULL, NULL));
	BAD(doca_comch_msgq_set_dpa_producer(NULL, NULL));
	BAD(doca_comch_msgq_set_max_num_consumers(NULL, 1));
	BAD(doca_comch_msgq_set_max_num_producers(NULL, 1));
	BAD(doca_comch_msgq_consumer_create(NULL, &consumer));
	BAD(doca_comch_msgq_producer_create(NULL, &producer));
	BAD(doca_comch_consumer_completion_create(NULL));
	BAD(doca_comch_consumer_completion_destroy(NULL));
	BAD(doca_comch_consumer_completion_start(NULL));
	BAD(doca_comch_consumer_completion_stop(NULL));
	BAD(doca_comch_consumer_completion_set_dpa_thread(NULL, NULL));
	BAD(doca_comch_consumer_completion_set_max_num_recv(NULL, 1));
	BAD(doca_comch_consumer_completion_set_imm_data_len(NULL, 1));
	BAD(doca_comch_consumer_completion_get_dpa_handle(NULL, &dev_comp));
	BAD(doca_comch_consumer_set_completion(NULL, NULL, 0));
	BAD(doca_comch_consumer_set_dev_max_num_recv(NULL, 1));
	BAD(doca_comch_consumer_get_dpa_handle(NULL, &dev_consumer));
	BAD(doca_comch_producer_set_dev_max_num_send(NULL, 1));
	BAD(doca_comch_producer_dpa_completion_attach(NULL, NULL));
	BAD(doca_comch_producer_get_dpa_handle(NULL, &dev_producer));
	BAD(doca_dpa_create(NULL, &none));
	BAD(doca_dpa_destroy(NULL));
	BAD(doca_dpa_start(NULL));
	BAD(doca_dpa_thread_create(NULL, &thread));
	BAD(doca_dpa_thread_run(NULL));
	BAD(doca_dpa_completion_create(NULL, 1, &ends));
	NEED(doca_dpa_dev_get_completion(0, NULL) == 0 &&
	     doca_dpa_dev_comch_consumer_get_completion(0, NULL) == 0);
	NEED(doca_dpa_dev_comch_producer_is_consumer_empty(0, 1) == 1);
	doca_dpa_dev_comch_consumer_ack(0, 1);
	doca_dpa_dev_comch_producer_post_send_imm_only(0, 1, NULL, 0, 0);
}

static __dpa_global__ void nothing(uint64_t arg)
{
	(void)arg;
}

static void stay_with_a_dpa(void)
{
	struct doca_dpa_thread *another_thread;
	struct doca_dpa *another;

	open_dpa(nothing);
	NEED_OK(doca_dpa_create(s.dev, &another));
	NEED_OK(doca_dpa_thread_create(another, &another_thread));
	NEED_OK(doca_comch_consumer_completion_create(&comp));
	NEED_OK(doca_comch_consumer_completion_set_dpa_thread(comp, thread));
	BAD(doca_comch_consumer_completion_set_dpa_thread(comp, another_thread));
	NEED_RESULT(DOCA_ERROR_IN_USE, doca_dpa_thread_destroy(thread));
	NEED_OK(doca_comch_consumer_completion_destroy(comp));
	NEED_OK(doca_dpa_completion_create(dpa, DEPTH, &ends));
	BAD(doca_dpa_completion_set_thread(ends, another_thread));
	NEED_OK(doca_dpa_completion_destroy(ends));
	NEED_OK(doca_dpa_thread_destroy(another_thread));
	NEED_OK(doca_dpa_destroy(another));
	NEED_OK(doca_comch_msgq_set_dpa_consumer(msgq, dpa));
	NEED_OK(doca_comch_msgq_start(msgq));
	close_dpa();
}

static void completions_have_no_thread_of_another_DPA(void)
{
	rig_begin();
	rig_wait(rig_fork(stay_with_a_dpa), 0);
}

static void null_objects_are_rejected(void)
{
	rig_begin();
	rig_wait(rig_fork(misuse), 0);
}

int main(void)
{
	rig_init();
	UNITY_BEGIN();
	RUN_TEST(messages_to_the_DPA_arrive_in_order_up_to_the_acknowledged_number);
	RUN_TEST(messages_and_copies_of_the_DPA_arrive_and_complete_in_order);
	RUN_TEST(a_producer_of_the_DPA_has_a_limit_of_sends);
	RUN_TEST(no_requested_completion_is_dropped);
	RUN_TEST(completions_have_no_thread_of_another_DPA);
	RUN_TEST(null_objects_are_rejected);
	rig_fini();
	return UNITY_END();
}
