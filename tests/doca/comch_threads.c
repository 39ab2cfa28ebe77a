/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comch_threads.c - several threads use one connection: one thread progresses its engine, and
 * others use consumers and producers. Both sides run in one process, for the thread sanitizer.
 */
#include <pthread.h>
#include <string.h>

#include "comch_fast_rig.h"

#define WORKERS 2
#define EACH 2000u

struct worker {
	pthread_t thread;
	struct side *side;
	struct fast fast;
	uint32_t to;
	unsigned int expected;
};

static struct side server, client;
static struct worker at_server[WORKERS], at_client[WORKERS];
static bool is_over;
static unsigned int n_ready;
static uint32_t seen[2][WORKERS * 2];
static unsigned int n_seen[2];

static void check(struct fast *fast)
{
	struct worker *w = (struct worker *)(void *)((char *)fast - offsetof(struct worker, fast));
	unsigned int n;

	NEED(fast->imm_len == sizeof(n));
	memcpy(&n, fast->imm, sizeof(n));
	NEED(n == w->expected++);
	for (size_t i = 0; i < fast->length; i++)
		NEED(fast->data[i] == (char)n);
}

static size_t length_of(unsigned int n)
{
	static const size_t lengths[] = {0, 64, 3000, 500};

	return lengths[n % 4];
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct fast *fast = &w->fast;
	unsigned int n = 0;

	fast->keep = true;
	fast->on_received = check;
	fast_start(fast);
	for (unsigned int i = 0; i < FAST_TASKS; i++)
		fast_post(fast, i * 4096, 4096);
	__atomic_add_fetch(&n_ready, 1, __ATOMIC_RELEASE);
	while ((fast->to = __atomic_load_n(&w->to, __ATOMIC_ACQUIRE)) == 0)
		rig_yield();
	while (n < EACH || fast->n_sent < EACH || w->expected < EACH) {
		doca_error_t result = DOCA_ERROR_AGAIN;
		size_t offset = (size_t)(FAST_TASKS + n % FAST_TASKS) * 4096;

		if (n < EACH && n - fast->n_sent < FAST_TASKS) {
			memset(fast->mem + offset, (int)n, length_of(n));
			result = fast_try_send(fast, offset, length_of(n), &n, sizeof(n));
			NEED(result == DOCA_SUCCESS || result == DOCA_ERROR_AGAIN);
		}
		n += result == DOCA_SUCCESS;
		if (!doca_pe_progress(fast->pe) && result != DOCA_SUCCESS)
			rig_yield();
	}
	__atomic_sub_fetch(&n_ready, 1, __ATOMIC_RELEASE);
	while (__atomic_load_n(&n_ready, __ATOMIC_ACQUIRE))
		rig_yield();
	fast->keep = false;
	fast_stop(fast);
	return NULL;
}

static void note_consumers(struct side *s, int i)
{
	if (s->n_new == n_seen[i])
		return;
	NEED(s->n_new == n_seen[i] + 1);
	seen[i][n_seen[i]++] = s->consumer;
}

static void start_workers(struct worker *w, struct side *s)
{
	for (int i = 0; i < WORKERS; i++) {
		fast_open(&w[i].fast, s, 2 * FAST_TASKS * 4096);
		NEED(pthread_create(&w[i].thread, NULL, work, &w[i]) == 0);
	}
}

static void stop_workers(struct worker *w)
{
	for (int i = 0; i < WORKERS; i++) {
		NEED(pthread_join(w[i].thread, NULL) == 0);
		NEED(w[i].expected == EACH);
		fast_close(&w[i].fast);
	}
}

static void *control(void *arg)
{
	const uint64_t until = rig_now() + 3 * RIG_DEADLINE_NS;
	struct side *s = arg;

	while (!__atomic_load_n(&is_over, __ATOMIC_ACQUIRE)) {
		NEED(rig_now() < until);
		if (!doca_pe_progress(s->pe))
			rig_yield();
	}
	return NULL;
}

static void both_sides(void)
{
	pthread_t thread;

	side_server(&server, RIG_NAME);
	side_start(&server);
	side_client(&client, RIG_NAME);
	side_start(&client);
	UNTIL(&server, server.n_connected == 1);
	start_workers(at_server, &server);
	start_workers(at_client, &client);
	while (n_seen[0] < WORKERS || n_seen[1] < WORKERS) {
		doca_pe_progress(server.pe);
		note_consumers(&server, 0);
		doca_pe_progress(client.pe);
		note_consumers(&client, 1);
		rig_yield();
	}
	while (__atomic_load_n(&n_ready, __ATOMIC_ACQUIRE) < 2 * WORKERS)
		rig_yield();
	for (int i = 0; i < WORKERS; i++) {
		__atomic_store_n(&at_server[i].to, seen[0][i], __ATOMIC_RELEASE);
		__atomic_store_n(&at_client[i].to, seen[1][i], __ATOMIC_RELEASE);
	}
	/*
	 * from now on, another thread progresses the control engine of the server; the control
	 * engine of the client makes no progress until the workers have ended
	 */
	NEED(pthread_create(&thread, NULL, control, &server) == 0);
	stop_workers(at_server);
	stop_workers(at_client);
	__atomic_store_n(&is_over, true, __ATOMIC_RELEASE);
	NEED(pthread_join(thread, NULL) == 0);
	side_stop(&client);
	side_stop(&server);
}

static void threads_share_a_connection_each_with_a_consumer_and_a_producer(void)
{
	rig_begin();
	rig_wait(rig_fork(both_sides), 0);
}

int main(void)
{
	rig_init();
	UNITY_BEGIN();
	RUN_TEST(threads_share_a_connection_each_with_a_consumer_and_a_producer);
	rig_fini();
	return UNITY_END();
}
