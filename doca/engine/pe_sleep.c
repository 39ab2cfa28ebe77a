/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pe_sleep.c - an idle engine yields its processor to other threads
 *
 * Usually it calls sched_yield(). But if a thread that never yields shares the processor, such as
 * one that polls a socket, a yield gives that thread a whole time slice of some milliseconds. A
 * message that arrives meanwhile is delayed. The kernel prefers a thread that wakes from sleep. So
 * after a long yield the engine sleeps instead, for a short time, until one of its queues signals
 * an fd.
 */
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "engine/pe.h"

#define LONG_YIELD_NS 200000ull /* a longer yield: a thread that never yields ran */
#define SLEEPS_PER_YIELD 2048   /* number of sleeps before the next yield measures again */
#define SLEEP_NS 250000l        /* maximum, ns: the thread can also serve other engines */
#define MAX_FDS 16

/*
 * Collect the fds to wait for, of all contexts. Returns their number, or -1 if a context has work
 * or cannot report it.
 */
static int arm(struct doca_pe *pe, struct pollfd *fds)
{
	struct doca_ctx *ctx = pe->turn;
	int n = 0;

	fds[n++] = (struct pollfd){.fd = pe->fd, .events = POLLIN};
	do {
		int more = 0;

		ctx = ctx->next;
		if (!ctx->poll)
			continue;
		if (ctx->ops->sleep_until_event)
			more = ctx->ops->sleep_until_event(ctx, fds + n, MAX_FDS - n);
		else if (!ctx->ops->arm || ctx->ops->arm(ctx))
			more = -1;
		if (more < 0)
			return -1;
		n += more;
	} while (ctx != pe->turn);
	return n;
}

/* Undo arm(), whatever it returned. */
static void disarm(struct doca_pe *pe)
{
	struct doca_ctx *ctx = pe->turn;

	do {
		ctx = ctx->next;
		if (ctx->poll && ctx->ops->rouse)
			ctx->ops->rouse(ctx);
	} while (ctx != pe->turn);
}

/*
 * Sleep until a queue signals. false: a context cannot report its work, or the program waits for
 * the handle of the engine.
 */
static bool sleep_until_event(struct doca_pe *pe)
{
	const struct timespec most = {.tv_nsec = SLEEP_NS};
	struct pollfd fds[MAX_FDS];
	int n, awake = GD_PE_AWAKE;
	uint64_t count;

	if (!pe->turn || !atomic_compare_exchange_strong(&pe->armed, &awake, GD_PE_SLEEPS))
		return false;
	n = atomic_load(&pe->inbox) ? -1 : arm(pe, fds);
	if (n > 0 && ppoll(fds, (nfds_t)n, &most, NULL) > 0)
		pe->n_sleeps_woken++;
	disarm(pe);
	if (!atomic_exchange(&pe->armed, GD_PE_AWAKE))
		while (read(pe->fd, &count, sizeof(count)) > 0)
			;
	return n > 0;
}

void gd_pe_yield(struct doca_pe *pe)
{
	uint64_t before_ns;

	if (pe->n_sleeps_left) {
		pe->n_sleeps_left--;
		if (sleep_until_event(pe))
			return;
	}
	before_ns = gn_now_ns();
	sched_yield();
	if (gn_now_ns() - before_ns > LONG_YIELD_NS)
		pe->n_sleeps_left = SLEEPS_PER_YIELD;
}
