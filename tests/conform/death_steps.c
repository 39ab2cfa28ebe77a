/* SPDX-License-Identifier: BSD-3-Clause */
/* death_steps.c - shm-comch: a peer that is killed after each instruction of a send. */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conform/forked.h"

static uint32_t step_length;

static void part_sends_while_traced(void)
{
	struct gantry_queue_attr attr = {.depth = 16, .max_data = 4096};
	uint64_t seq = 0;
	uint8_t data[4096];
	struct gantry_send send = {.imm = &seq, .imm_len = 8, .data = data, .length = step_length};
	struct rig_queue q;

	forked_begin(NULL);
	rig_until(rig.a.n_up, 1);
	if (rig.ops->producer_create(rig.a.conn, rig.a.up[0], &attr, &q.tx))
		_exit(1);
	rig_fill(data, sizeof(data), 0);
	if (rig_send_data(&q, &send)) /* resolves symbols, so the traced send does not */
		_exit(1);
	seq = 1;
	rig_fill(data, sizeof(data), 1);
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		_exit(77);
	raise(SIGSTOP);
	rig.ops->data->send(q.tx, &send, 0);
	_exit(0); /* only the first run gets here: step() lets it run to its end */
}

/* Let the peer run k instructions. Returns how many it ran: fewer than k if it exited before. */
static uint32_t step(uint32_t k)
{
	int status;

	for (uint32_t i = 0; i < k; i++) {
		ptrace(PTRACE_SINGLESTEP, forked.pid, NULL, NULL);
		waitpid(forked.pid, &status, 0);
		if (WIFEXITED(status))
			return i;
	}
	kill(forked.pid, SIGKILL);
	waitpid(forked.pid, NULL, 0);
	return k;
}

/* Peer and tracer alternate, so one processor is faster: no other processor has to wake up. */
static uint32_t kill_after(uint32_t k)
{
	cpu_set_t all, one;
	int status;

	waitpid(forked.pid, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		TEST_IGNORE_MESSAGE("may not trace");
	TEST_ASSERT_TRUE(WIFSTOPPED(status));
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	TEST_ASSERT_EQUAL_INT(0, sched_getaffinity(0, sizeof(all), &all));
	sched_setaffinity(0, sizeof(one), &one);
	sched_setaffinity(forked.pid, sizeof(one), &one);
	k = step(k);
	TEST_ASSERT_EQUAL_INT(0, sched_setaffinity(0, sizeof(all), &all));
	return k;
}

/*
 * Check that the messages that arrived are complete and in order. The message that was being sent
 * can be missing. Returns their number.
 */
static uint32_t check_survivor(struct rig_queue *q, uint8_t bufs[][4096])
{
	struct gantry_msg msg;
	uint32_t n = 0;

	while (rig.ops->poll_recv(q->rx, &msg, 1) == 1) {
		uint64_t seq = n++;

		TEST_ASSERT_EQUAL_MEMORY(&seq, msg.imm, 8);
		TEST_ASSERT_EQUAL_INT(0, msg.status);
		TEST_ASSERT_EQUAL_UINT(step_length, msg.length);
		TEST_ASSERT_TRUE(rig_filled(bufs[msg.cookie], step_length, (uint32_t)seq));
	}
	TEST_ASSERT_TRUE(n == 1 || n == 2);
	return n;
}

static uint32_t killed_at(uint32_t k, uint32_t *steps_p)
{
	static uint8_t bufs[16][4096];
	struct gantry_msg none;
	struct rig_queue q;
	int closed = rig.b.n_closed;
	uint32_t n;
	siginfo_t info;

	fork_peer(part_sends_while_traced);
	accept_peer();
	forked_consumer(&q, bufs, 16);
	do { /* send credit until the peer stops before the traced send */
		rig_settle();
		rig.ops->poll_recv(q.rx, &none, 0);
		info.si_pid = 0;
		waitid(P_PID, (id_t)forked.pid, &info, WSTOPPED | WEXITED | WNOHANG | WNOWAIT);
	} while (info.si_pid == 0);
	*steps_p = kill_after(k);
	forked_close();
	rig_until(rig.b.n_closed, closed + 1);
	n = check_survivor(&q, bufs);
	rig.ops->consumer_destroy(q.rx);
	rig_disconnect(&rig.b);
	return n;
}

/* Kill the peer after each instruction, or, beyond max_runs, after every n-th instruction. */
static void killed_at_steps(uint32_t length, uint32_t max_runs)
{
	uint32_t runs = 0, with = 0, total, steps;

	step_length = length;
	rig_listen("vol");
	TEST_ASSERT_EQUAL_UINT(2, killed_at(UINT32_MAX, &total));
	if (total > 5000) /* the send contains code of a sanitizer */
		max_runs = 40;
	for (uint32_t k = 0; k < total; k += total / max_runs + 1, runs++)
		with += killed_at(k, &steps) == 2;
	TEST_ASSERT_TRUE(runs > 20);
	TEST_ASSERT_TRUE(with > 0 && with < runs); /* the message arrived in some runs only */
	TEST_ASSERT_EQUAL_INT(0, fake_counter(&rig.b.host, "protocol_errors"));
}

static void killed_at_each_step_of_a_send(void)
{
	killed_at_steps(0, 600);
}

static void killed_at_steps_of_a_long_send(void)
{
	killed_at_steps(1000, 150);
}

void step_cases(void)
{
	RUN_TEST(killed_at_each_step_of_a_send);
	RUN_TEST(killed_at_steps_of_a_long_send);
}
