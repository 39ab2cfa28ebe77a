/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * silent.c - the data path makes no system call while the peer polls. A worker moves messages and
 * data under a seccomp filter that traps system calls; any system call ends the process. The same
 * worker polls both ends, so neither end ever waits for the other.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/clock.h"
#include "conform/forked.h"
#include "pipeline/worker.h"

#define DEPTH 32u
#define ROUNDS 20000u
#define BYTES 4096u

enum end { QUIET, NO_FILTERS = 77, CALLED, LOST };

static struct rig_queue *there, *back;
static struct rig_memory memory;
static uint32_t round_no;
static int *call; /* number of the trapped system call, shared with the parent */

static void called(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	*call = info->si_syscall;
	_exit(CALLED);
}

/*
 * From now on the thread gets SIGSYS for each system call except exit_group() and sigaltstack().
 * The address sanitizer calls the latter when the process ends.
 */
static int forbid_calls(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sigaltstack, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
	};
	struct sock_fprog program = {sizeof code / sizeof *code, code};
	struct sigaction action = {.sa_sigaction = called, .sa_flags = SA_SIGINFO};

	return sigaction(SIGSYS, &action, NULL) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

/*
 * Fill the queue, with one flush for each message, or with one for all if `more` is set. Every
 * other message has data of a region. Then take all messages.
 */
static void move(struct rig_queue *q, int more)
{
	struct gantry_msg msgs[DEPTH];
	uint64_t cookies[DEPTH];
	uint32_t n = 0, sent = 0;

	while (sent < DEPTH) {
		struct gantry_send send = {.imm = &sent, .imm_len = sizeof(sent)};

		if (q == there && sent % 2) {
			send.region = &memory.region;
			send.length = BYTES;
		}
		if (rig.ops->data->send(q->tx, &send, more ? GANTRY_SEND_MORE : 0))
			_exit(LOST);
		sent++;
	}
	rig.ops->flush(q->tx);
	while (n < sent) {
		int got = rig.ops->poll_recv(q->rx, msgs, DEPTH);

		if (got <= 0)
			_exit(LOST);
		n += (uint32_t)got;
	}
	rig.ops->data->poll_send(q->tx, cookies, DEPTH);
}

static int post(struct rig_queue *q, uint8_t *bytes)
{
	struct gantry_recv recvs[DEPTH];

	for (uint32_t i = 0; i < DEPTH; i++)
		recvs[i] = (struct gantry_recv){.buf = bytes, .length = BYTES, .cookie = i};
	return bytes ? rig.ops->data->post_recv(q->rx, recvs, DEPTH)
		     : rig.ops->post_recv(q->rx, DEPTH);
}

/*
 * The first rounds can still make system calls, because the worker has slept and the queues have
 * just connected.
 */
static int silent_poll(void *self)
{
	static uint8_t bytes[BYTES];

	(void)self;
	if (post(there, bytes) || post(back, NULL))
		_exit(LOST);
	if (round_no == 8 && forbid_calls())
		_exit(NO_FILTERS);
	move(there, round_no % 2);
	move(back, round_no % 2);
	if (++round_no == ROUNDS)
		_exit(QUIET);
	return 1;
}

static int arm(void *self)
{
	(void)self;
	return rig.ops->consumer_arm(there->rx) + rig.ops->consumer_arm(back->rx);
}

/* Runs in a child, and never returns. */
static void run(void)
{
	struct gn_worker_attr attr = {.name = "silent", .cpu = -1};
	struct gantry_poller poller = {.poll = silent_poll, .arm = arm, .self = &poller};
	struct gantry_token token;
	struct gn_worker *worker;

	forked_open(NULL);
	gn_clock_init();
	rig_connect();
	rig_memory_open(&memory, BYTES, GANTRY_REMOTE_READ);
	if (rig.ops->export_region(rig.b.conn, &memory.region, GANTRY_REMOTE_READ, 1, &token))
		_exit(LOST);
	rig_fence();
	there = rig_queue_open(&rig.a, &rig.b, DEPTH, BYTES);
	back = rig_queue_open(&rig.b, &rig.a, DEPTH, 0);
	rig_warm(there);
	rig_warm(back);
	/* arm the consumers as before a sleep of the worker: the polls of rig_warm disarmed them */
	arm(NULL);
	if (gn_worker_create(&attr, &worker) || gn_worker_add(worker, &poller))
		_exit(LOST);
	for (;;)
		pause();
}

static void no_system_call_while_the_peer_polls(void)
{
	pid_t pid;
	int status;

	call = mmap(NULL, sizeof(*call), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	TEST_ASSERT_TRUE(call != MAP_FAILED);
	*call = -1;
	pid = fork();
	if (pid == 0)
		run();
	TEST_ASSERT_EQUAL_INT(pid, waitpid(pid, &status, 0));
	rig_close();
	rig_open(); /* opening a device removes the files of the dead child */
	if (WIFEXITED(status) && WEXITSTATUS(status) == NO_FILTERS)
		TEST_IGNORE_MESSAGE("no seccomp filters here");
	TEST_ASSERT_EQUAL_INT_MESSAGE(-1, *call,
				      "this is the number of the system call that was made");
	TEST_ASSERT_EQUAL_INT(QUIET, status);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(no_system_call_while_the_peer_polls);
	return UNITY_END();
}
