/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comch_queues.c - Comch consumers and producers: limits, wrong tasks, many queues, and killed
 * peers.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "comch_fast_rig.h"

static struct side s; /* the side of this process */
static struct fast f, g, h;

static void open_server(size_t bytes)
{
	side_server(&s, RIG_NAME);
	side_start(&s);
	rig_tell(RIG_CLIENT, 'r');
	UNTIL(&s, s.n_connected);
	fast_open(&f, &s, bytes);
}

static void open_client(size_t bytes)
{
	rig_hear(RIG_CLIENT, 'r');
	side_client(&s, RIG_NAME);
	side_start(&s);
	fast_open(&f, &s, bytes);
}

static void close_server(void)
{
	UNTIL(&s, s.n_lost);
	fast_close(&f);
	side_stop(&s);
}

static void close_client(void)
{
	fast_close(&f);
	side_stop(&s);
}

/* -- large messages -- */

#define LARGE (64u << 20)

static void large_server(void)
{
	open_server(LARGE + 1);
	fast_start(&f);
	fast_post(&f, 1, LARGE);
	UNTIL(&f, f.n_received == 1);
	NEED(f.length == LARGE && f.data == f.mem + 1);
	for (size_t i = 0; i < LARGE; i += 4093)
		NEED(f.data[i] == (char)(i * 31));
	rig_tell(RIG_CLIENT, 'd');
	close_server();
}

static void large_client(void)
{
	open_client(LARGE + 3);
	fast_start(&f);
	UNTIL(&s, s.n_new);
	for (size_t i = 0; i < LARGE; i++)
		f.mem[3 + i] = (char)(i * 31);
	fast_send(&f, 3, LARGE, NULL, 0);
	UNTIL(&f, f.n_sent == 1);
	rig_hear(RIG_CLIENT, 'd');
	close_client();
}

static void a_message_of_64_MiB_goes_in_one_piece(void)
{
	rig_run(large_server, large_client);
}

/* -- many maps -- */

#define MAPS 120u

static void map_server(void)
{
	open_server(1 << 16);
	fast_start(&f);
	for (unsigned int i = 0; i < MAPS; i++) {
		fast_post(&f, 0, 10000);
		UNTIL(&f, f.n_received == i + 1);
		NEED(f.length == 10000 && f.data[0] == (char)i && f.data[9999] == (char)i);
	}
	close_server();
}

static void map_client(void)
{
	open_client(1 << 16);
	fast_start(&f);
	UNTIL(&s, s.n_new);
	for (unsigned int i = 0; i < MAPS; i++) {
		struct fast own = {.producer = f.producer, .to = s.consumer};
		struct fast made = {.side = NULL};

		/* a separate map for each message, with one producer */
		fast_open(&made, &s, 10000);
		memset(made.mem, (int)i, 10000);
		own.mmap = made.mmap;
		own.mem = made.mem;
		own.bytes = made.bytes;
		own.inventory = made.inventory;
		own.side = &s;
		fast_send(&own, 0, 10000, NULL, 0);
		UNTIL(&f, f.n_sent == i + 1);
		fast_close(&made);
	}
	close_client();
}

static void more_maps_than_a_connection_can_share_at_a_time_are_used_in_turn(void)
{
	rig_run(map_server, map_client);
}

/* -- memory that cannot be shared in place -- */

static void odd_server(void)
{
	open_server(1 << 16);
	fast_start(&f);
	fast_post(&f, 0, 30000);
	fast_post(&f, 0, 30000);
	UNTIL(&f, f.n_received == 1);
	NEED(f.length == 3000 && f.data[0] == 'o' && f.data[2999] == 'o');
	close_server();
}

static void odd_client(void)
{
	void *mem = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	open_client(1 << 16);
	NEED(mem != MAP_FAILED);
	fast_open_at(&g, &s, mem, 1 << 16);
	memset(mem, 'o', 1 << 16);
	UNTIL(&s, s.n_new);
	g.to = s.consumer;
	fast_add_producer(&g, FAST_TASKS);
	NEED_OK(doca_ctx_start(doca_comch_producer_as_ctx(g.producer)));
	fast_send(&g, 0, 3000, NULL, 0);
	UNTIL(&g, g.n_sent == 1);
	fast_send(&g, 0, 30000, NULL, 0);
	UNTIL(&g, g.n_failed == 1);
	fast_close(&g);
	munmap(mem, 1 << 16);
	close_client();
}

static void large_sends_from_shared_memory_fail(void)
{
	rig_run(odd_server, odd_client);
}

/* -- more producers, each with its own map, than maps can be shared at a time -- */

#define PRODUCERS 60

static void choir_server(void)
{
	open_server(1 << 16);
	f.keep = true;
	fast_add_consumer(&f, FAST_TASKS);
	fast_start_consumer(&f);
	for (int i = 0; i < PRODUCERS; i++)
		fast_post(&f, 0, 10000);
	UNTIL(&f, f.n_received == 2 * PRODUCERS);
	f.keep = false;
	close_server();
}

static void choir_client(void)
{
	static struct fast voices[PRODUCERS];

	open_client(1 << 12);
	UNTIL(&s, s.n_new);
	for (int i = 0; i < PRODUCERS; i++) {
		fast_open(&voices[i], &s, 10000);
		fast_add_producer(&voices[i], 4);
		NEED_OK(doca_ctx_start(doca_comch_producer_as_ctx(voices[i].producer)));
	}
	for (unsigned int round = 0; round < 2; round++) {
		for (int i = 0; i < PRODUCERS; i++) {
			const uint64_t until = rig_now() + RIG_DEADLINE_NS;
			doca_error_t result;

			while ((result = fast_try_send(&voices[i], 0, 10000, NULL, 0)) ==
			       DOCA_ERROR_AGAIN) {
				NEED(rig_now() < until && "a map is let go of");
				for (int j = 0; j < PRODUCERS; j++)
					doca_pe_progress(voices[j].pe);
			}
			NEED_OK(result);
			UNTIL(&voices[i], voices[i].n_sent == round + 1);
		}
	}
	for (int i = 0; i < PRODUCERS; i++)
		fast_close(&voices[i]);
	close_client();
}

static void idle_producers_release_maps_for_other_producers(void)
{
	rig_run(choir_server, choir_client);
}

/* -- as many consumers as the limits permit -- */

#define CROWD 127

static void crowd_server(void)
{
	struct doca_comch_consumer *consumers[CROWD];

	open_server(1 << 16);
	for (int i = 0; i < CROWD; i++) {
		f.consumer = NULL;
		fast_add_consumer(&f, 4);
		memset(f.consumer_journal, 0, sizeof(f.consumer_journal));
		fast_start_consumer(&f);
		consumers[i] = f.consumer;
	}
	UNTIL(&s, s.n_messages == 1);
	for (int i = 0; i < CROWD; i++) {
		NEED_OK(doca_ctx_stop(doca_comch_consumer_as_ctx(consumers[i])));
		NEED_OK(doca_comch_consumer_destroy(consumers[i]));
	}
	f.consumer = NULL;
	close_server();
}

static void crowd_client(void)
{
	open_client(1 << 16);
	UNTIL(&s, s.n_new == CROWD);
	side_send(&s, "seen");
	UNTIL(&s, s.n_expired == CROWD);
	close_client();
}

static void a_connection_has_127_consumers(void)
{
	rig_run(crowd_server, crowd_client);
}

/* -- more receives than the transport accepts -- */

#define DEEP 5000u

static unsigned int in_order;

static void check_order(struct fast *fast)
{
	unsigned int n;

	NEED(fast->imm_len == sizeof(n));
	memcpy(&n, fast->imm, sizeof(n));
	NEED(n == in_order++);
}

static void deep_server(void)
{
	open_server(1 << 16);
	fast_add_consumer(&f, DEEP);
	f.on_received = check_order;
	fast_start_consumer(&f);
	for (unsigned int i = 0; i < DEEP; i++)
		fast_post(&f, 0, 0);
	rig_tell(RIG_CLIENT, 'p');
	UNTIL(&f, f.n_received == DEEP);
	close_server();
}

static void deep_client(void)
{
	open_client(1 << 16);
	fast_add_producer(&f, FAST_TASKS);
	NEED_OK(doca_ctx_start(doca_comch_producer_as_ctx(f.producer)));
	UNTIL(&s, s.n_new);
	rig_hear(RIG_CLIENT, 'p');
	for (unsigned int i = 0; i < DEEP; i++) {
		fast_send(&f, 0, 0, &i, sizeof(i));
		UNTIL(&f, f.n_sent == i + 1);
	}
	close_client();
}

static void thousands_of_receives_are_posted_and_used_in_order(void)
{
	rig_run(deep_server, deep_client);
}

/* -- wrong tasks -- */

static void patient_server(void)
{
	open_server(1 << 16);
	fast_add_consumer(&f, 8);
	NEED_OK(doca_comch_consumer_set_imm_data_len(f.consumer, 8));
	NEED_RESULT(DOCA_ERROR_INVALID_VALUE, doca_comch_consumer_set_imm_data_len(f.consumer, 33));
	fast_start_consumer(&f);
	NEED_RESULT(DOCA_ERROR_BAD_STATE, doca_comch_consumer_set_imm_data_len(f.consumer, 4));
	fast_post(&f, 0, 64);
	fast_post(&f, 64, 64);
	rig_tell(RIG_CLIENT, 'p');
	UNTIL(&f, f.n_received == 2);
	NEED(f.imm_len == 8 && f.length == 5);
	/* destroy the consumer while the producer of the peer exists */
	fast_stop(&f);
	rig_tell(RIG_CLIENT, 'x');
	close_server();
}

static void end_of(doca_error_t status)
{
	UNTIL(&f, f.n_failed == 1);
	NEED(f.send_status == status);
	f.n_failed = 0;
}

static void wrong_receives(void)
{
	struct doca_comch_consumer_task_post_recv *recv;
	struct doca_buf *foreign, *first = fast_buf(&f, 0, 10, 0),
				  *second = fast_buf(&f, 10, 10, 0);
	struct doca_task *task;

	/* receives into a buffer of another map, and into a list, are rejected */
	fast_open(&g, &s, 4096);
	foreign = fast_buf(&g, 0, 10, 0);
	NEED_OK(doca_comch_consumer_task_post_recv_alloc_init(f.consumer, foreign, &recv));
	task = doca_comch_consumer_task_post_recv_as_task(recv);
	NEED_RESULT(DOCA_ERROR_INVALID_VALUE, doca_task_try_submit(task));
	NEED_OK(doca_task_submit(task)); /* submit accepts the task, whose error callback follows */
	UNTIL(&f, f.n_flushed == 1);
	NEED(f.recv_status == DOCA_ERROR_INVALID_VALUE);
	NEED_OK(doca_buf_chain_list(first, second));
	NEED_OK(doca_comch_consumer_task_post_recv_alloc_init(f.consumer, first, &recv));
	NEED_OK(doca_task_submit(doca_comch_consumer_task_post_recv_as_task(recv)));
	UNTIL(&f, f.n_flushed == 2);
	fast_close(&g);
}

static void wrong_sends(void)
{
	struct doca_comch_producer_task_send *send;
	uint8_t imm[64] = {1};

	NEED_RESULT(DOCA_ERROR_INVALID_VALUE,
		    doca_comch_producer_task_send_alloc_init(f.producer, NULL, imm, 33, s.consumer,
							     &send));
	NEED_RESULT(DOCA_ERROR_INVALID_VALUE,
		    doca_comch_producer_task_send_alloc_init(f.producer, NULL, NULL, 3, s.consumer,
							     &send));
	NEED_RESULT(DOCA_ERROR_INVALID_VALUE, doca_comch_producer_task_send_alloc_init(
						      f.producer, NULL, imm, 3, s.consumer, NULL));
	f.to = 77777; /* no consumer has this id */
	NEED_OK(fast_try_send(&f, 0, 5, NULL, 0));
	end_of(DOCA_ERROR_NOT_FOUND);
	f.to = s.consumer;
	/* one byte more than the 8 bytes that this consumer accepts */
	NEED_OK(fast_try_send(&f, 0, 0, imm, 9));
	end_of(DOCA_ERROR_INVALID_VALUE);
	/* fields of a task */
	NEED_OK(doca_comch_producer_task_send_alloc_init(f.producer, NULL, imm, 1, 77777, &send));
	doca_comch_producer_task_send_set_consumer_id(send, s.consumer);
	doca_comch_producer_task_send_set_imm_data(send, imm, 33);
	NEED_RESULT(DOCA_ERROR_INVALID_VALUE,
		    doca_task_try_submit(doca_comch_producer_task_send_as_task(send)));
	doca_comch_producer_task_send_set_imm_data(send, imm, 8);
	doca_comch_producer_task_send_set_buf(send, fast_buf(&f, 0, 10, 5));
	NEED(doca_comch_producer_task_send_get_consumer_id(send) == s.consumer);
	NEED(doca_comch_producer_task_send_get_imm_data_len(send) == 8 &&
	     doca_comch_producer_task_send_get_imm_data(send)[0] == 1);
	UNTIL(&f,
	      doca_task_try_submit(doca_comch_producer_task_send_as_task(send)) == DOCA_SUCCESS);
	UNTIL(&f, f.n_sent == 1);
	fast_send(&f, 0, 5, imm, 8);
	UNTIL(&f, f.n_sent == 2);
}

static void clumsy_client(void)
{
	open_client(1 << 16);
	fast_add_producer(&f, 4);
	fast_add_consumer(&f, 4);
	/* there are no tasks before start */
	NEED_RESULT(DOCA_ERROR_NO_MEMORY, fast_try_send(&f, 0, 5, NULL, 0));
	fast_start(&f);
	UNTIL(&s, s.n_new);
	f.to = s.consumer;
	rig_hear(RIG_CLIENT, 'p');
	wrong_receives();
	wrong_sends();
	rig_hear(RIG_CLIENT, 'x');
	UNTIL(&s, s.n_expired == 1);
	NEED_RESULT(DOCA_ERROR_NOT_CONNECTED, fast_try_send(&f, 0, 5, NULL, 0));
	close_client();
}

static void invalid_tasks_fail_by_callback_and_try_submit_rejects_them(void)
{
	rig_run(patient_server, clumsy_client);
}

/* -- a map without the right to be written from outside -- */

static void timid(void)
{
	static char mem[64];
	struct doca_comch_consumer *consumer;
	struct doca_mmap *mmap, *imported;
	const void *desc;
	size_t length;
	struct side client = {.dev = NULL};

	side_server(&s, RIG_NAME);
	side_start(&s);
	side_client(&client, RIG_NAME);
	NEED_RESULT(DOCA_ERROR_IN_PROGRESS, doca_ctx_start(client.ctx));
	UNTIL(&client, state_of(client.ctx) == DOCA_CTX_STATE_RUNNING);
	NEED_OK(doca_comch_client_get_connection(client.client, &client.conn));
	NEED_OK(doca_mmap_create(&mmap));
	NEED_OK(doca_mmap_add_dev(mmap, client.dev));
	NEED_OK(doca_mmap_set_memrange(mmap, mem, sizeof(mem)));
	/* a map that was not started */
	NEED_RESULT(DOCA_ERROR_INVALID_VALUE,
		    doca_comch_consumer_create(client.conn, mmap, &consumer));
	NEED_OK(doca_mmap_set_permissions(mmap, DOCA_ACCESS_FLAG_PCI_READ_ONLY));
	NEED_OK(doca_mmap_start(mmap));
	NEED_RESULT(DOCA_ERROR_NOT_PERMITTED,
		    doca_comch_consumer_create(client.conn, mmap, &consumer));
	NEED_RESULT(DOCA_ERROR_INVALID_VALUE,
		    doca_comch_consumer_create(client.conn, NULL, &consumer));
	/* an import of this map does not permit writes either */
	NEED_OK(doca_mmap_export_pci(mmap, client.dev, &desc, &length));
	NEED_OK(doca_mmap_create_from_export(NULL, desc, length, client.dev, &imported));
	NEED_RESULT(DOCA_ERROR_NOT_PERMITTED,
		    doca_comch_consumer_create(client.conn, imported, &consumer));
	NEED_OK(doca_mmap_destroy(imported));
	NEED_OK(doca_mmap_destroy(mmap));
	side_stop(&client);
	side_stop(&s);
}

static void a_consumer_needs_a_map_with_PCI_READ_WRITE(void)
{
	rig_begin();
	rig_wait(rig_fork(timid), 0);
}

/* -- several consumers and producers -- */

#define EACH 3000u

static unsigned int next_of[256];

static void check_by_producer(struct fast *fast)
{
	unsigned int n;

	NEED(fast->imm_len == sizeof(n) && fast->from < 256 && fast->from != 0);
	memcpy(&n, fast->imm, sizeof(n));
	NEED(n == next_of[fast->from]++);
}

static void shared_server(void)
{
	open_server(1 << 16);
	fast_start(&f);
	f.keep = true;
	f.on_received = check_by_producer;
	for (unsigned int i = 0; i < FAST_TASKS; i++)
		fast_post(&f, 0, 1000);
	UNTIL(&f, f.n_received == 3 * EACH);
	f.keep = false;
	rig_tell(RIG_CLIENT, 'd');
	close_server();
}

static void three_producers(void)
{
	struct fast *const all[] = {&f, &g, &h};
	unsigned int done[3] = {0};

	open_client(1 << 16);
	fast_open(&g, &s, 1 << 16);
	fast_open(&h, &s, 1 << 16);
	UNTIL(&s, s.n_new);
	for (int i = 0; i < 3; i++) {
		fast_add_producer(all[i], FAST_TASKS);
		NEED_OK(doca_ctx_start(doca_comch_producer_as_ctx(all[i]->producer)));
	}
	for (unsigned int i = 0; done[0] + done[1] + done[2] < 3 * EACH; i++) {
		struct fast *fast = all[i % 3];
		unsigned int *n = &done[i % 3];
		doca_error_t result;

		doca_pe_progress(fast->pe);
		if (*n == EACH)
			continue;
		result = fast_try_send(fast, 0, i % 5 * 200, n, sizeof(*n));
		NEED(result == DOCA_SUCCESS || result == DOCA_ERROR_AGAIN ||
		     result == DOCA_ERROR_NO_MEMORY);
		*n += result == DOCA_SUCCESS;
	}
	for (int i = 0; i < 3; i++)
		UNTIL(all[i], all[i]->n_sent == EACH);
	rig_hear(RIG_CLIENT, 'd');
	fast_close(&g);
	fast_close(&h);
	close_client();
}

static void messages_of_several_producers_keep_the_order_of_each(void)
{
	rig_run(shared_server, three_producers);
}

/* -- death -- */

static void killed_server(void)
{
	open_server(1 << 16);
	fast_start(&f);
	fast_post(&f, 0, 20000);
	UNTIL(&s, s.n_messages == 1);
	rig_tell(RIG_TEST, 'k');
	UNTIL(&s, false);
}

static void bereaved_client(void)
{
	uint64_t from;

	open_client(1 << 16);
	fast_start(&f);
	fast_post(&f, 0, 64);
	UNTIL(&s, s.n_new);
	fast_send(&f, 0, 20000, NULL, 0); /* the peer does not read it */
	side_send(&s, "now");
	rig_hear(RIG_CLIENT, 'd');
	from = rig_now();
	UNTIL(&s, state_of(s.ctx) == DOCA_CTX_STATE_STOPPING);
	NEED(rig_now() - from < 100000000ull);
	UNTIL(&f, f.n_failed == 1);
	NEED(f.send_status == DOCA_ERROR_CONNECTION_RESET);
	NEED_RESULT(DOCA_ERROR_NOT_CONNECTED, fast_try_send(&f, 0, 5, NULL, 0));
	UNTIL(&f, f.n_flushed == 1);
	NEED(f.recv_status == DOCA_ERROR_CONNECTION_RESET);
	for (int i = 0; i < 20; i++)
		doca_pe_progress(s.pe);
	/* its consumer and producer still exist */
	NEED(state_of(s.ctx) == DOCA_CTX_STATE_STOPPING);
	fast_stop(&f);
	NEED(f.n_flushed == 1);
	UNTIL(&s, state_of(s.ctx) == DOCA_CTX_STATE_IDLE);
	fast_close(&f);
	side_close(&s);
}

static void when_the_peer_is_killed_tasks_fail_and_the_client_is_idle_after_its_queues_stopped(void)
{
	pid_t server, client;

	rig_begin();
	server = rig_fork(killed_server);
	client = rig_fork(bereaved_client);
	rig_hear(RIG_TEST, 'k');
	kill(server, SIGKILL);
	rig_wait(server, SIGKILL);
	rig_tell(RIG_CLIENT, 'd');
	rig_wait(client, 0);
}

int main(void)
{
	rig_init();
	UNITY_BEGIN();
	RUN_TEST(a_message_of_64_MiB_goes_in_one_piece);
	RUN_TEST(more_maps_than_a_connection_can_share_at_a_time_are_used_in_turn);
	RUN_TEST(large_sends_from_shared_memory_fail);
	RUN_TEST(idle_producers_release_maps_for_other_producers);
	RUN_TEST(a_connection_has_127_consumers);
	RUN_TEST(thousands_of_receives_are_posted_and_used_in_order);
	RUN_TEST(invalid_tasks_fail_by_callback_and_try_submit_rejects_them);
	RUN_TEST(a_consumer_needs_a_map_with_PCI_READ_WRITE);
	RUN_TEST(messages_of_several_producers_keep_the_order_of_each);
	RUN_TEST(
		when_the_peer_is_killed_tasks_fail_and_the_client_is_idle_after_its_queues_stopped);
	rig_fini();
	return UNITY_END();
}
