/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comch_fast_rules.c - further rules of consumers and producers on which programs rely: permitted
 * calls in callbacks, tasks that are used again, one buffer in many tasks, ids. Both sides are in
 * one process, so that the test chooses each step of both.
 */
#include <string.h>

#include "comch_fast_rig.h"

static struct side s, c;
static struct fast f, peer; /* f: on the connection of the client; peer: of the server */

static void open_both(void)
{
	fast_open_both(&f, &c, &peer, &s, 1 << 20);
}

static void close_both(void)
{
	fast_close_both(&f, &peer);
}

/* -- calls that state callbacks can make -- */

static bool stop_at_once;
static unsigned int n_states;

static void on_producer_state(const union doca_data data, struct doca_ctx *ctx,
			      enum doca_ctx_states prev, enum doca_ctx_states next)
{
	NEED(data.ptr == &f && prev != next);
	n_states++;
	if (next != DOCA_CTX_STATE_RUNNING)
		return;
	if (stop_at_once)
		NEED_OK(doca_ctx_stop(ctx));
	else
		fast_send(&f, 0, 100, "i", 1);
}

static void on_consumer_state(const union doca_data data, struct doca_ctx *ctx,
			      enum doca_ctx_states prev, enum doca_ctx_states next)
{
	NEED(data.ptr == &peer && ctx && prev != next);
	n_states++;
	if (next == DOCA_CTX_STATE_RUNNING)
		fast_post(&peer, 0, 100);
}

static void busy_fast_callbacks(void)
{
	struct doca_ctx *producer, *consumer;

	open_both();
	fast_add_producer(&f, 4);
	fast_add_consumer(&peer, 4);
	producer = doca_comch_producer_as_ctx(f.producer);
	consumer = doca_comch_consumer_as_ctx(peer.consumer);
	NEED_OK(doca_ctx_set_state_changed_cb(producer, on_producer_state));
	NEED_OK(doca_ctx_set_state_changed_cb(consumer, on_consumer_state));
	stop_at_once = true;
	NEED_OK(doca_ctx_start(producer)); /* SUCCESS, although its callback has stopped it */
	NEED(state_of(producer) == DOCA_CTX_STATE_IDLE && n_states == 2);
	stop_at_once = false;
	NEED_RESULT(DOCA_ERROR_IN_PROGRESS, doca_ctx_start(consumer));
	UNTIL(&peer, state_of(consumer) == DOCA_CTX_STATE_RUNNING);
	UNTIL(&c, c.n_new == 1);
	NEED_OK(doca_ctx_start(producer));
	UNTIL(&peer, peer.n_received == 1);
	UNTIL(&f, f.n_sent == 1);
	NEED(peer.length == 100 && peer.imm_len == 1);
	close_both();
}

static void a_producer_sends_or_stops_and_a_consumer_posts_in_the_callback_of_RUNNING(void)
{
	rig_alone(busy_fast_callbacks);
}

/* -- a task that is used again, and its user data -- */

static unsigned int n_again;

static void produce_again(struct doca_comch_producer_task_send *task, union doca_data task_data,
			  union doca_data ctx_data)
{
	struct doca_task *t = doca_comch_producer_task_send_as_task(task);
	uint8_t imm[4];
	doca_error_t result;

	NEED(ctx_data.ptr == &f && task_data.u64 == n_again &&
	     doca_task_get_status(t) == DOCA_SUCCESS);
	if (++n_again == 1000) {
		f.n_sent++;
		doca_task_free(t);
		/* the field of a freed task is readable */
		NEED(doca_comch_producer_task_send_get_imm_data_len(task) == 4);
		return;
	}
	doca_task_set_user_data(t, (union doca_data){.u64 = n_again});
	memcpy(imm, &n_again, sizeof(imm));
	doca_comch_producer_task_send_set_imm_data(task, imm, sizeof(imm));
	/*
	 * as programs do, spin in the callback until submit succeeds; progress of the other engine
	 * posts a receive again
	 */
	while ((result = doca_task_submit(t)) == DOCA_ERROR_AGAIN)
		doca_pe_progress(peer.pe);
	NEED_OK(result);
}

static void produce_never(struct doca_comch_producer_task_send *task, union doca_data task_data,
			  union doca_data ctx_data)
{
	(void)task;
	(void)task_data;
	(void)ctx_data;
	NEED(!"a send failed");
}

static void check_next(struct fast *fast)
{
	unsigned int n;

	NEED(fast->imm_len == 4 && fast->length == 64);
	memcpy(&n, fast->imm, sizeof(n));
	NEED(n == fast->n_received - 1);
}

static void same_producer_task(void)
{
	struct doca_comch_producer_task_send *task;
	uint8_t imm[4] = {0};

	open_both();
	fast_add_consumer(&peer, FAST_TASKS);
	peer.on_received = check_next;
	peer.keep = true;
	fast_start_consumer(&peer);
	fast_post(&peer, 0, 64);
	fast_post(&peer, 64, 64);
	UNTIL(&c, c.n_new == 1);
	fast_add_producer(&f, 4);
	NEED_OK(doca_comch_producer_task_send_set_conf(f.producer, produce_again, produce_never,
						       1));
	NEED_OK(doca_ctx_start(doca_comch_producer_as_ctx(f.producer)));
	NEED_OK(doca_comch_producer_task_send_alloc_init(f.producer, fast_buf(&f, 0, 64, 64), imm,
							 4, c.consumer, &task));
	while (doca_task_submit(doca_comch_producer_task_send_as_task(task)) == DOCA_ERROR_AGAIN)
		doca_pe_progress(peer.pe);
	UNTIL(&f, f.n_sent == 1);
	UNTIL(&peer, peer.n_received == 1000);
	NEED_OK(doca_buf_dec_refcount(
		(struct doca_buf *)(uintptr_t)doca_comch_producer_task_send_get_buf(task), NULL));
	peer.keep = false;
	close_both();
}

static void a_producer_sends_one_task_again_and_again_in_its_callback_and_spins_there(void)
{
	rig_alone(same_producer_task);
}

/* -- one buffer in many tasks; a send that fails changes no buffer; lists are refused -- */

#define SENDS 1024u

static void one_buffer(void)
{
	static struct doca_comch_producer_task_send *tasks[SENDS];
	struct doca_buf *buf;

	open_both();
	fast_add_consumer(&peer, SENDS);
	fast_start_consumer(&peer);
	for (size_t i = 0; i < SENDS; i++)
		fast_post(&peer, i * 1000, 1000);
	UNTIL(&c, c.n_new == 1);
	fast_add_producer(&f, SENDS);
	NEED_OK(doca_ctx_start(doca_comch_producer_as_ctx(f.producer)));
	buf = fast_buf(&f, 5000, 1000, 1000);
	memset(f.mem + 5000, 'o', 1000);
	for (size_t i = 0; i < SENDS; i++) {
		/* the end of each task drops one reference */
		NEED_OK(doca_buf_inc_refcount(buf, NULL));
		NEED_OK(doca_comch_producer_task_send_alloc_init(f.producer, buf, NULL, 0,
								 c.consumer, &tasks[i]));
	}
	for (size_t i = 0; i < SENDS; i++)
		UNTIL(&peer, doca_task_submit(doca_comch_producer_task_send_as_task(tasks[i])) ==
				     DOCA_SUCCESS);
	UNTIL(&peer, peer.n_received == SENDS);
	UNTIL(&f, f.n_sent == SENDS);
	for (size_t i = 0; i < SENDS; i++)
		NEED(peer.mem[i * 1000] == 'o' && peer.mem[i * 1000 + 999] == 'o');
	NEED_OK(doca_buf_dec_refcount(buf, NULL));
	close_both();
}

static void one_buffer_is_sent_by_many_tasks_at_a_time(void)
{
	rig_alone(one_buffer);
}

/* Submit a send of the buffer, which must fail with this status, and free its task. */
static void fails_with(struct doca_buf *buf, doca_error_t status)
{
	const unsigned int before = f.n_failed;
	struct doca_comch_producer_task_send *task;

	NEED_OK(doca_buf_inc_refcount(buf, NULL));
	NEED_OK(doca_comch_producer_task_send_alloc_init(f.producer, buf, NULL, 0, c.consumer,
							 &task));
	UNTIL(&peer, doca_task_submit(doca_comch_producer_task_send_as_task(task)) == DOCA_SUCCESS);
	UNTIL(&f, f.n_failed == before + 1);
	NEED(f.send_status == status);
}

static void failed_sends(void)
{
	struct doca_buf *buf, *second;
	size_t length;
	void *data;

	open_both();
	fast_add_consumer(&peer, 4);
	fast_start_consumer(&peer);
	fast_post(&peer, 0, 100);
	UNTIL(&c, c.n_new == 1);
	fast_add_producer(&f, 4);
	NEED_OK(doca_ctx_start(doca_comch_producer_as_ctx(f.producer)));
	buf = fast_buf(&f, 1000, 50000, 101);
	fails_with(buf, DOCA_ERROR_INVALID_VALUE);
	NEED_OK(doca_buf_set_data(buf, f.mem + 1100, 20000));
	fails_with(buf, DOCA_ERROR_INVALID_VALUE);
	NEED_OK(doca_buf_get_data_len(buf, &length));
	NEED_OK(doca_buf_get_data(buf, &data));
	NEED(length == 20000 && data == f.mem + 1100); /* the buffer is as before */
	second = fast_buf(&f, 0, 10, 10);
	NEED_OK(doca_buf_set_data(buf, f.mem + 1100, 10));
	NEED_OK(doca_buf_chain_list(buf, second));
	fails_with(buf, DOCA_ERROR_INVALID_VALUE);
	NEED_OK(doca_buf_unchain_list(buf, second));
	NEED_OK(doca_buf_dec_refcount(second, NULL));
	/* the posted receive is still valid */
	fast_send(&f, 0, 100, NULL, 0);
	UNTIL(&peer, peer.n_received == 1);
	NEED(peer.length == 100 && peer.n_flushed == 0);
	NEED_OK(doca_buf_dec_refcount(buf, NULL));
	UNTIL(&f, f.n_sent == 1);
	close_both();
}

static void sends_that_fail_change_no_buffer_and_lists_are_refused(void)
{
	rig_alone(failed_sends);
}

/* -- every length -- */

#define GUARD 16u
#define TO 4096u

static uint8_t byte_at(size_t i, size_t length, uint32_t imm_len)
{
	return (uint8_t)(1 + (i * 37 + length * 5 + imm_len * 11) % 255);
}

/* Send from and to each alignment within a word; bytes around the data must not change. */
static void one_length(size_t length, uint32_t imm_len)
{
	const size_t from = (length + imm_len) % 8, to = TO + GUARD + imm_len % 8;
	const unsigned int n = peer.n_received;
	uint8_t imm[32];

	for (uint32_t i = 0; i < imm_len; i++)
		imm[i] = byte_at(i, imm_len, 1);
	for (size_t i = 0; i < length; i++)
		f.mem[from + i] = (char)byte_at(i, length, imm_len);
	memset(peer.mem + to - GUARD, 0, length + 2 * GUARD);
	fast_post(&peer, to, length + 1);
	fast_send(&f, from, length, imm, imm_len);
	UNTIL(&peer, peer.n_received == n + 1);
	NEED(peer.length == length && peer.imm_len == imm_len &&
	     memcmp(peer.imm, imm, imm_len) == 0);
	for (size_t i = 0; i < length; i++)
		NEED((uint8_t)peer.mem[to + i] == byte_at(i, length, imm_len));
	for (size_t i = 0; i < GUARD; i++)
		NEED(peer.mem[to - GUARD + i] == 0 && peer.mem[to + length + i] == 0);
	UNTIL(&f, f.n_sent == n + 1);
}

static void every_length(void)
{
	open_both();
	fast_add_consumer(&peer, 4);
	fast_start_consumer(&peer);
	UNTIL(&c, c.n_new == 1);
	fast_add_producer(&f, 4);
	NEED_OK(doca_ctx_start(doca_comch_producer_as_ctx(f.producer)));
	for (uint32_t imm_len = 0; imm_len <= 32; imm_len++) {
		for (size_t length = 0; length <= 130; length++)
			one_length(length, imm_len);
		for (size_t length = 505; length <= 520; length++)
			one_length(length, imm_len);
	}
	close_both();
}

static void data_and_immediate_data_of_every_length_arrive_as_they_are(void)
{
	rig_alone(every_length);
}

/* -- credit -- */

static void idle_receiver(void)
{
	open_both();
	fast_start(&peer);
	UNTIL(&c, c.n_new == 1);
	fast_start(&f);
	fast_post(&peer, 0, 100);
	fast_send(&f, 0, 100, NULL, 0);
	UNTIL(&peer, peer.n_received == 1);
	for (int i = 0; i < 3; i++)
		fast_post(&peer, 0, 100);
	for (int i = 0; i < 3; i++)
		NEED_OK(fast_try_send(&f, 0, 100, NULL, 0));
	UNTIL(&peer, peer.n_received == 4);
	UNTIL(&f, f.n_sent == 4);
	close_both();
}

static void receives_count_at_once_while_their_engine_is_not_progressed(void)
{
	rig_alone(idle_receiver);
}

/* -- ids -- */

static void many_ids(void)
{
	struct doca_comch_consumer *first, *consumer;
	uint32_t id, last = 0;

	open_both();
	NEED_OK(doca_comch_consumer_create(s.conn, peer.mmap, &first));
	/*
	 * Each new consumer has an id that is greater by at least 2, so the ids exceed 0xffff. No
	 * id may be 0xffff, because programs use this value for "no consumer".
	 */
	for (int i = 0; i < 33000; i++) {
		NEED_OK(doca_comch_consumer_create(s.conn, peer.mmap, &consumer));
		NEED_OK(doca_comch_consumer_get_id(consumer, &id));
		NEED(id != 0 && id != 0xffff && id > last);
		last = id;
		NEED_OK(doca_comch_consumer_destroy(consumer));
	}
	NEED(last > 0xffff);
	NEED_OK(doca_comch_consumer_destroy(first));
	close_both();
}

static void MUST_ids_are_never_ffff_however_many_consumers_there_were(void)
{
	rig_alone(many_ids);
}

/* -- what the guide requires before the start -- */

static void without_callbacks(void)
{
	c.no_consumer_cb = true;
	open_both();
	fast_add_consumer(&f, 1);
	fast_add_producer(&f, 1);
	NEED_RESULT(DOCA_ERROR_INVALID_VALUE,
		    doca_ctx_start(doca_comch_consumer_as_ctx(f.consumer)));
	NEED_RESULT(DOCA_ERROR_INVALID_VALUE,
		    doca_ctx_start(doca_comch_producer_as_ctx(f.producer)));
	NEED(state_of(doca_comch_producer_as_ctx(f.producer)) == DOCA_CTX_STATE_IDLE);
	close_both();
}

static void consumers_and_producers_need_the_callbacks_for_consumers(void)
{
	rig_alone(without_callbacks);
}

static void with_a_map_of_no_device(void)
{
	struct doca_comch_consumer *consumer;
	struct doca_mmap *map;
	struct doca_mmap *own;

	open_both();
	NEED_OK(doca_mmap_create(&map));
	NEED_OK(doca_mmap_set_permissions(map, DOCA_ACCESS_FLAG_PCI_READ_WRITE));
	NEED_OK(doca_mmap_set_memrange(map, f.mem, f.bytes));
	NEED_OK(doca_mmap_start(map));
	NEED_RESULT(DOCA_ERROR_INVALID_VALUE, doca_comch_consumer_create(c.conn, map, &consumer));
	fast_start(&peer);
	fast_start(&f);
	UNTIL(&c, c.n_new == 1);
	fast_post(&peer, 0, 4096);
	own = f.mmap;
	f.mmap = map;
	fast_send(&f, 0, 100, NULL, 0);
	UNTIL(&f, f.n_failed == 1);
	NEED(f.send_status == DOCA_ERROR_INVALID_VALUE);
	f.mmap = own;
	NEED_OK(doca_mmap_destroy(map));
	close_both();
}

static void maps_must_be_for_the_device_of_the_connection(void)
{
	rig_alone(with_a_map_of_no_device);
}

int main(void)
{
	rig_init();
	UNITY_BEGIN();
	RUN_TEST(a_producer_sends_or_stops_and_a_consumer_posts_in_the_callback_of_RUNNING);
	RUN_TEST(a_producer_sends_one_task_again_and_again_in_its_callback_and_spins_there);
	RUN_TEST(one_buffer_is_sent_by_many_tasks_at_a_time);
	RUN_TEST(sends_that_fail_change_no_buffer_and_lists_are_refused);
	RUN_TEST(data_and_immediate_data_of_every_length_arrive_as_they_are);
	RUN_TEST(receives_count_at_once_while_their_engine_is_not_progressed);
	RUN_TEST(MUST_ids_are_never_ffff_however_many_consumers_there_were);
	RUN_TEST(consumers_and_producers_need_the_callbacks_for_consumers);
	RUN_TEST(maps_must_be_for_the_device_of_the_connection);
	rig_fini();
	return UNITY_END();
}
