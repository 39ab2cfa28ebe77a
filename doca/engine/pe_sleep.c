/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pe_sleep.c - what an engine does that found nothing for a while: it offers its processor to
 * others.
 *
 * Usually by a yield. But where a thread that never yields wants the same processor, such as one
 * that reads a socket over and over, a yield gives that one all of its share of time, some
 * milliseconds, and a message that comes meanwhile waits for it. The kernel lets a thread that was
 * asleep go first. So after such a yield an engine sleeps instead, for a moment, until one of its
 * queues rings.
 */
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "engine/pe.h"

#define CROWDED_NS 200000ull /* a yield that took longer let one run that does not yield */
#define CROWDED_TURNS 2048   /* so many sleeps follow, before a yield tells again */
#define DOZE_NS 250000l      /* most of it: the thread may have others to look after */
#define MAX_FDS 16

/*
 * What to wait for, of all contexts; how many, or -1: one of them has work, or cannot say when it
 * has.
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

/* After arm(), whatever it said. */
static void disarm(struct doca_pe *pe)
{
	struct doca_ctx *ctx = pe->turn;

	do {
		ctx = ctx->next;
		if (ctx->poll && ctx->ops->rouse)
			ctx->ops->rouse(ctx);
	} while (ctx != pe->turn);
}

/* false: it cannot, or the program itself waits for the handle of the engine. */
static bool sleep_until_event(struct doca_pe *pe)
{
	const struct timespec most = {.tv_nsec = DOZE_NS};
	struct pollfd fds[MAX_FDS];
	uint64_t count;
	int n;

	if (!pe->turn || atomic_exchange(&pe->armed, true))
		return false;
	n = atomic_load(&pe->inbox) ? -1 : arm(pe, fds);
	if (n > 0 && ppoll(fds, (nfds_t)n, &most, NULL) > 0)
		pe->n_rung++;
	disarm(pe);
	if (!atomic_exchange(&pe->armed, false))
		while (read(pe->fd, &count, sizeof(count)) > 0)
			;
	return n > 0;
}

void gd_pe_offer(struct doca_pe *pe)
{
	uint64_t before_ns;

	if (pe->n_crowded) {
		pe->n_crowded--;
		if (sleep_until_event(pe))
			return;
	}
	before_ns = gn_now_ns();
	sched_yield();
	if (gn_now_ns() - before_ns > CROWDED_NS)
		pe->n_crowded = CROWDED_TURNS;
}
