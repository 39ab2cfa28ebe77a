/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * relay [MS [RATE]] - processor time, in percent of a CPU, of three processes that only relay a
 * word to the last one and back by eventfds, RATE (1000) times a second. A timer wakes the first
 * process. The second one is woken twice for each word, like a gateway.
 */
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "common.h"

#define PROCESSES 3

/* there: from the first process to the second, to the third; back: in reverse. */
static int there[2], back[2];

static int waits_for(int fd, int other)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET};
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	ev.data.fd = fd;
	if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &ev))
		die("epoll");
	ev.data.fd = other;
	if (other >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, other, &ev))
		die("epoll");
	return epoll;
}

/* Wait for an eventfd, at most for left_ns (0: no limit). Returns its fd; -1: timeout. */
static int wait_ring(int epoll, uint64_t left_ns)
{
	struct timespec left = {.tv_nsec = (long)left_ns};
	struct epoll_event ev;
	int n = epoll_pwait2(epoll, &ev, 1, left_ns ? &left : NULL, NULL);

	if (n < 0)
		die("epoll_pwait2");
	return n ? ev.data.fd : -1;
}

static void ring(int fd)
{
	uint64_t one = 1;

	if (write(fd, &one, sizeof(one)) != sizeof(one))
		die("write to an eventfd");
}

static void begin(uint64_t period_ns)
{
	uint64_t next = now_ns(), now;
	int epoll = waits_for(back[0], -1);

	for (;; next += period_ns) {
		now = now_ns();
		if (now < next)
			wait_ring(epoll, next - now);
		ring(there[0]);
		wait_ring(epoll, 0);
	}
}

static void pass_on(uint64_t ignored)
{
	int epoll = waits_for(there[0], back[1]);

	(void)ignored;
	for (;;)
		ring(wait_ring(epoll, 0) == there[0] ? there[1] : back[0]);
}

static void answer(uint64_t ignored)
{
	int epoll = waits_for(there[1], -1);

	(void)ignored;
	for (;;) {
		wait_ring(epoll, 0);
		ring(back[1]);
	}
}

static pid_t start(void (*fn)(uint64_t period_ns), uint64_t period_ns)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		fn(period_ns);
	}
	return pid;
}

static uint64_t used_ns(const pid_t *pids)
{
	uint64_t sum = 0;

	for (int i = 0; i < PROCESSES; i++) {
		struct timespec used;
		clockid_t clock;

		if (clock_getcpuclockid(pids[i], &clock) || clock_gettime(clock, &used))
			die("CPU time of a process");
		sum += (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
	}
	return sum;
}

int main(int argc, char **argv)
{
	uint64_t length = duration_ns(argc, argv, 1000),
		 rate = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000, before, start_ns;
	const uint64_t period = 1000000000u / (rate ? rate : 1);
	void (*const fns[PROCESSES])(uint64_t) = {begin, pass_on, answer};
	pid_t pids[PROCESSES];

	alarm(TOO_LONG_S);
	for (int i = 0; i < 2; i++) {
		there[i] = eventfd(0, EFD_CLOEXEC);
		back[i] = eventfd(0, EFD_CLOEXEC);
		if (there[i] < 0 || back[i] < 0)
			die("eventfd");
	}
	for (int i = PROCESSES - 1; i >= 0; i--)
		pids[i] = start(fns[i], period);
	usleep(200000); /* lint: allowed, the children have started by then */
	before = used_ns(pids);
	start_ns = now_ns();
	usleep((useconds_t)(length / 1000)); /* lint: allowed, the time that is measured */
	print_value("relay", (double)(used_ns(pids) - before) * 100 / (double)(now_ns() - start_ns),
		    "%");
	for (int i = 0; i < PROCESSES; i++)
		kill(pids[i], SIGKILL);
	return 0;
}
