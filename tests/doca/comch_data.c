/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comch_data.c - the fast path of Comch between processes: one test for each rule. The name of a
 * test is the rule.
 */
#include <stdlib.h>
#include <string.h>

#include "comch_fast_rig.h"

static struct side s; /* the side of this process */
static struct fast f, g;

/* Start a consumer and a producer, and wait for the consumer of the peer. */
static void meet(void)
{
	fast_start(&f);
	UNTIL(&s, s.n_new == 1);
}

/* The client leaves first, as programs do. */
static void close_server(void)
{
	fast_close(&f);
	UNTIL(&s, s.n_lost);
	side_stop(&s);
}

static void close_client(void)
{
	fast_close(&f);
	side_stop(&s);
}

/* -- a message to the peer and its answer, as in the vendor's sample -- */

static void sample(const char *mine, const char *theirs)
{
	fast_start(&f);
	fast_post(&f, 0, 4080);
	UNTIL(&s, s.n_new == 1);
	NEED(s.consumer != 0 && s.consumer != 0xffff);
	strcpy(f.mem + 8000, mine);
	fast_send(&f, 8000, strlen(mine), NULL, 0);
	UNTIL(&f, f.n_sent == 1 && f.n_received == 1);
	NEED(f.length == strlen(theirs) && memcmp(f.data, theirs, f.length) == 0 &&
	     f.data == f.mem);
	NEED(f.imm_len == 0 && f.from != 0);
}

static void sample_server(void)
{
	fast_open_server(&f, &s);
	sample("from the server", "from the client");
	close_server();
}

static void sample_client(void)
{
	fast_open_client(&f, &s);
	sample("from the client", "from the server");
	close_client();
}

static void MUST_a_message_goes_each_way_and_ids_are_not_0_and_not_ffff(void)
{
	rig_run(sample_server, sample_client);
}

/* -- announcements -- */

static void announcing_server(void)
{
	fast_open_server(&f, &s);
	fast_add_consumer(&f, 4);
	NEED_RESULT(DOCA_ERROR_IN_PROGRESS, doca_ctx_start(doca_comch_consumer_as_ctx(f.consumer)));
	/*
	 * the engine of the consumer makes no progress until the peer has seen the consumer, only
	 * the engine of the server
	 */
	UNTIL(&s, rig_heard(RIG_SERVER, 's'));
	NEED(strcmp(f.consumer_journal, "1") == 0);
	UNTIL(&f, state_of(doca_comch_consumer_as_ctx(f.consumer)) == DOCA_CTX_STATE_RUNNING);
	/* stop without progress of the connection's engine, then notify the peer by a message */
	NEED_OK(doca_ctx_stop(doca_comch_consumer_as_ctx(f.consumer)));
	NEED(strcmp(f.consumer_journal, "120") == 0);
	side_send(&s, "it is gone");
	UNTIL(&s, s.n_lost);
	close_server();
}

static void noticing_client(void)
{
	fast_open_client(&f, &s);
	UNTIL(&s, s.n_new == 1);
	rig_tell(RIG_SERVER, 's');
	UNTIL(&s, s.n_messages == 1);
	NEED(s.n_expired == 1 && strcmp(s.journal, "12+-m") == 0);
	close_client();
}

static void MUST_a_consumer_is_announced_without_its_own_engine_and_gone_before_the_next_message(
	void)
{
	rig_run(announcing_server, noticing_client);
}

/* -- credit -- */

static void late_server(void)
{
	fast_open_server(&f, &s);
	meet();
	rig_hear(RIG_SERVER, 'a');
	fast_post(&f, 0, 64);
	rig_tell(RIG_CLIENT, 'p');
	UNTIL(&f, f.n_received == 1);
	NEED(f.imm_len == 3 && memcmp(f.imm, "imm", 3) == 0 && f.length == 0);
	fast_post(&f, 0, 0); /* a receive for a message with only immediate data */
	UNTIL(&f, f.n_received == 2);
	NEED(f.imm_len == 32);
	close_server();
}

static void hasty_client(void)
{
	fast_open_client(&f, &s);
	meet();
	NEED_RESULT(DOCA_ERROR_AGAIN, fast_try_send(&f, 0, 0, "imm", 3));
	NEED_RESULT(DOCA_ERROR_AGAIN, fast_try_send(&f, 0, 10, "imm", 3));
	rig_tell(RIG_SERVER, 'a');
	rig_hear(RIG_CLIENT, 'p');
	fast_send(&f, 0, 0, "imm", 3); /* repeats the submit without any progress */
	fast_send(&f, 0, 0, "0123456789abcdef0123456789abcdef", 32);
	NEED(f.n_sent == 0);
	UNTIL(&f, f.n_sent == 2);
	close_client();
}

static void MUST_submit_returns_AGAIN_without_a_receive_and_polls_credit_itself(void)
{
	rig_run(late_server, hasty_client);
}

/* -- no thread progresses the control engines: all kinds of messages, each once and in order -- */

#define STREAM 20000u

struct number {
	uint32_t n, length;
};

static uint32_t expected;
static size_t length_of(uint32_t n)
{
	static const size_t lengths[] = {0, 8, 33, 64, 1000, 4096, 4097, 16000};

	return lengths[n * 7 % 8 ^ (n / 64 & 1)];
}

/* Check a message: its number is in the immediate data and in each word of the data. */
static void check(struct fast *fast)
{
	struct number number;

	NEED(fast->imm_len == sizeof(number));
	memcpy(&number, fast->imm, sizeof(number));
	NEED(number.n == expected && number.length == fast->length &&
	     fast->length == length_of(expected));
	for (size_t i = 0; i + 4 <= fast->length; i += 4) {
		uint32_t word;

		memcpy(&word, fast->data + i, 4);
		NEED(word == expected + i);
	}
	expected++;
}

static void stream_server(void)
{
	fast_open_server(&f, &s);
	meet();
	f.keep = true;
	f.on_received = check;
	for (uint32_t i = 0; i < FAST_TASKS; i++)
		fast_post(&f, i * 16000, 16000);
	UNTIL(&f, f.n_received == STREAM);
	f.keep = false;
	rig_tell(RIG_CLIENT, 'a');
	fast_stop(&f);
	NEED(f.n_flushed == FAST_TASKS && f.n_received == STREAM);
	close_server();
}

static void fill(size_t offset, uint32_t n)
{
	for (size_t i = 0; i + 4 <= length_of(n); i += 4) {
		uint32_t word = n + (uint32_t)i;

		memcpy(f.mem + offset + i, &word, 4);
	}
}

static void stream_client(void)
{
	uint32_t n = 0;

	fast_open_client(&f, &s);
	meet();
	UNTIL(&s, s.n_new == 1);
	while (n < STREAM) {
		struct number number = {n, (uint32_t)length_of(n)};
		size_t offset = n % FAST_TASKS * 16000;
		doca_error_t result = DOCA_ERROR_AGAIN;

		if (n - f.n_sent < FAST_TASKS) {
			fill(offset, n);
			result = fast_try_send(&f, offset, length_of(n), &number, sizeof(number));
			NEED(result == DOCA_SUCCESS || result == DOCA_ERROR_AGAIN);
		}
		n += result == DOCA_SUCCESS;
		doca_pe_progress(f.pe);
	}
	UNTIL(&f, f.n_sent == STREAM);
	NEED(f.n_failed == 0);
	rig_hear(RIG_CLIENT, 'a');
	close_client();
}

static void MUST_data_arrives_in_order_without_progress_of_the_control_engine(void)
{
	rig_run(stream_server, stream_client);
}

/* -- lengths -- */

static void measuring_server(void)
{
	fast_open_server(&f, &s);
	meet();
	fast_post(&f, 0, 100);
	fast_post(&f, 1000, 9000);
	fast_post(&f, 16000, 5000);
	fast_post(&f, 32000, 0);
	rig_tell(RIG_CLIENT, 'p');
	UNTIL(&f, f.n_received == 1);
	NEED(f.length == 100);
	UNTIL(&f, f.n_received == 2);
	NEED(f.length == 9000 && f.data[0] == 'y' && f.data[8999] == 'y');
	UNTIL(&f, f.n_received == 3);
	NEED(f.length == 5000);
	UNTIL(&f, f.n_received == 4);
	NEED(f.imm_len == 1);
	close_server();
}

static void measuring_client(void)
{
	static const struct {
		size_t offset, length;
		doca_error_t status;
	} sends[] = {
		{0, 101, DOCA_ERROR_INVALID_VALUE},
		{0, 20000, DOCA_ERROR_INVALID_VALUE},
		{0, 100, DOCA_SUCCESS},
		{1000, 9001, DOCA_ERROR_INVALID_VALUE},
		{1000, 9000, DOCA_SUCCESS},
		{1000, 5001, DOCA_ERROR_INVALID_VALUE},
		{1000, 5000, DOCA_SUCCESS},
		/* the last receive accepts only immediate data */
		{1000, 1, DOCA_ERROR_INVALID_VALUE},
	};

	fast_open_client(&f, &s);
	meet();
	rig_hear(RIG_CLIENT, 'p');
	memset(f.mem, 'y', 20000);
	for (size_t i = 0; i < sizeof(sends) / sizeof(*sends); i++) {
		unsigned int sent = f.n_sent, failed = f.n_failed;

		f.send_status = DOCA_SUCCESS;
		fast_send(&f, sends[i].offset, sends[i].length, NULL, 0);
		UNTIL(&f, f.n_sent + f.n_failed == sent + failed + 1);
		NEED(f.send_status == sends[i].status);
	}
	fast_send(&f, 0, 0, "i", 1);
	UNTIL(&f, f.n_sent == 4);
	close_client();
}

static void data_longer_than_the_posted_buffer_is_INVALID_VALUE_for_the_sender(void)
{
	rig_run(measuring_server, measuring_client);
}

/* -- data is appended, and the length grows -- */

static void appending_server(void)
{
	struct doca_comch_consumer_task_post_recv *task;
	struct doca_buf *buf;

	fast_open_server(&f, &s);
	meet();
	buf = fast_buf(&f, 0, 30, 10);
	memset(f.mem, 'a', 10);
	NEED_OK(doca_comch_consumer_task_post_recv_alloc_init(f.consumer, NULL, &task));
	doca_comch_consumer_task_post_recv_set_buf(task, buf);
	NEED(doca_comch_consumer_task_post_recv_get_buf(task) == buf);
	NEED_OK(doca_task_try_submit(doca_comch_consumer_task_post_recv_as_task(task)));
	rig_tell(RIG_CLIENT, 'p');
	UNTIL(&f, f.n_received == 1);
	NEED(f.length == 30 && f.data == f.mem &&
	     memcmp(f.mem, "aaaaaaaaaabbbbbbbbbbbbbbbbbbbb", 30) == 0);
	close_server();
}

static void appending_client(void)
{
	fast_open_client(&f, &s);
	meet();
	rig_hear(RIG_CLIENT, 'p');
	memset(f.mem, 'b', 64);
	fast_send(&f, 0, 21, NULL, 0);
	UNTIL(&f, f.n_failed == 1);
	NEED(f.send_status == DOCA_ERROR_INVALID_VALUE);
	fast_send(&f, 0, 20, NULL, 0);
	UNTIL(&f, f.n_sent == 1);
	close_client();
}

static void received_data_is_appended_to_what_the_buffer_holds(void)
{
	rig_run(appending_server, appending_client);
}

/* -- teardown -- */

static void flush(void)
{
	for (int i = 0; i < 5; i++)
		fast_post(&f, 0, 64);
	/* one more receive that is freed in flight: it gets no callback */
	struct doca_comch_consumer_task_post_recv *task;
	struct doca_buf *buf = fast_buf(&f, 0, 64, 0);

	NEED_OK(doca_comch_consumer_task_post_recv_alloc_init(f.consumer, buf, &task));
	NEED_OK(doca_task_submit(doca_comch_consumer_task_post_recv_as_task(task)));
	NEED_OK(doca_buf_dec_refcount(buf, NULL));
	doca_task_free(doca_comch_consumer_task_post_recv_as_task(task));
	NEED_RESULT(DOCA_ERROR_IN_PROGRESS, doca_ctx_stop(doca_comch_consumer_as_ctx(f.consumer)));
	NEED_RESULT(DOCA_ERROR_IN_USE, doca_comch_consumer_destroy(f.consumer));
	UNTIL(&f, state_of(doca_comch_consumer_as_ctx(f.consumer)) == DOCA_CTX_STATE_IDLE);
	NEED(f.n_flushed == 5 && f.n_received == 0 && strcmp(f.consumer_journal, "1230") == 0);
	NEED_OK(doca_ctx_stop(doca_comch_producer_as_ctx(f.producer)));
	NEED(strcmp(f.producer_journal, "20") == 0);
}

static void orderly_server(void)
{
	struct doca_dev *dev;

	fast_open_server(&f, &s);
	meet();
	/* while producers or consumers run, stop and disconnect return IN_USE */
	NEED_RESULT(DOCA_ERROR_IN_USE, doca_ctx_stop(s.ctx));
	NEED_RESULT(DOCA_ERROR_IN_USE, doca_comch_server_disconnect(s.server, s.conn));
	NEED(state_of(s.ctx) == DOCA_CTX_STATE_RUNNING);
	flush();
	rig_tell(RIG_CLIENT, 'f');
	UNTIL(&s, s.n_expired == 1);
	NEED_OK(doca_comch_server_disconnect(s.server, s.conn));
	NEED_RESULT(DOCA_ERROR_BAD_STATE, doca_ctx_start(doca_comch_consumer_as_ctx(f.consumer)));
	NEED_RESULT(DOCA_ERROR_BAD_STATE, doca_ctx_start(doca_comch_producer_as_ctx(f.producer)));
	NEED_RESULT(DOCA_ERROR_BAD_STATE, doca_comch_producer_create(s.conn, &g.producer));
	NEED_RESULT(DOCA_ERROR_BAD_STATE, doca_comch_consumer_create(s.conn, f.mmap, &g.consumer));
	/* consumer and producer outlive their connection, but not their device */
	NEED_OK(doca_dev_open(doca_dev_as_devinfo(s.dev), &dev));
	side_stop(&s);
	NEED_RESULT(DOCA_ERROR_IN_USE, doca_dev_close(dev));
	fast_close(&f);
	NEED_OK(doca_dev_close(dev));
}

static void orderly_client(void)
{
	fast_open_client(&f, &s);
	meet();
	NEED_RESULT(DOCA_ERROR_IN_USE, doca_ctx_stop(s.ctx));
	UNTIL(&s, s.n_expired == 1);
	rig_hear(RIG_CLIENT, 'f');
	fast_stop(&f);
	UNTIL(&s, state_of(s.ctx) == DOCA_CTX_STATE_IDLE);
	NEED(strcmp(s.journal, "12+-30") == 0);
	fast_close(&f);
	side_close(&s);
}

static void consumers_and_producers_stop_before_their_connection_and_posted_receives_are_flushed(
	void)
{
	rig_run(orderly_server, orderly_client);
}

int main(void)
{
	rig_init();
	UNITY_BEGIN();
	RUN_TEST(MUST_a_message_goes_each_way_and_ids_are_not_0_and_not_ffff);
	RUN_TEST(
		MUST_a_consumer_is_announced_without_its_own_engine_and_gone_before_the_next_message);
	RUN_TEST(MUST_submit_returns_AGAIN_without_a_receive_and_polls_credit_itself);
	RUN_TEST(MUST_data_arrives_in_order_without_progress_of_the_control_engine);
	RUN_TEST(data_longer_than_the_posted_buffer_is_INVALID_VALUE_for_the_sender);
	RUN_TEST(received_data_is_appended_to_what_the_buffer_holds);
	RUN_TEST(
		consumers_and_producers_stop_before_their_connection_and_posted_receives_are_flushed);
	rig_fini();
	return UNITY_END();
}
