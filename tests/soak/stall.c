/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stall.c - the service behind the backend breaks replies, or stops for longer than an IO may take
 *
 * gantry-nbd(7): an IO without a reply fails with EIO an eighth of its time before its deadline, at
 * most 500 ms. The server can execute the write later. It has done so when quiesce_time has passed
 * since the loss of the connection; this holds here because a server is stopped for less than
 * quiesce_time, and needs at most MARGIN_MS more to execute what its socket has.
 *
 * gantry-rbd(7): an operation fails with EIO after osd_op_timeout. The target fences its client
 * then, so the write cannot take effect after the next IO of the block. All other IO in flight
 * fails with EIO, too.
 */
#include <stdio.h>
#include <string.h>

#include "soak/driver.h"

#define SLACK_MS 20 /* a deadline loses some ms on its way to the target */
#define MARGIN_MS 1500
#define FENCED "a new client serves the image"

/* with --near: in an emulated machine, the registration of memory takes seconds */
#define NEAR_TIMEOUT_MS 5000
#define NBD_LIES_TIMEOUT_MS 3000
#define NBD_LIES_QUIESCE_MS 1000
#define NBD_STALLS_TIMEOUT_MS 2000
#define NBD_STOP_MIN_MS 2000
#define NBD_STOP_MAX_MS 2800
#define OSD_TIMEOUT_S 5 /* a target that starts on a busy machine needs more than 2 s */
#define OSD_STOP_MIN_MS 7000
#define OSD_STOP_MAX_MS 10000

void stall_choose(struct driver *d, struct round *r, int kills_target)
{
	const int is_nbd = d->topology->service == CHILD_NBDKIT,
		  is_osd = d->topology->service == CHILD_OSD;

	/*
	 * Clients wait for quiesce_time after each start of a target, and writes to the same blocks
	 * wait after each loss of a connection. Where the server stalls, that is longer than the
	 * deadline, so only few writes would succeed. With --near, deadlines are longer than a
	 * stop of the NBD server.
	 */
	r->stalls = (is_osd || (is_nbd && !d->options.near)) && !kills_target;
	r->lies = is_nbd && !r->stalls;
	r->quiesce_ms = 0;
	r->op_timeout_s = is_osd && r->stalls ? OSD_TIMEOUT_S : 0;
	d->journal->io_error_ms = r->op_timeout_s ? r->op_timeout_s * 1000 - SLACK_MS : 0;
	/* an IO that has no time until the service has started again would fail */
	if (is_osd)
		r->io_timeout = 20000;
	if (is_nbd)
		r->io_timeout = r->stalls ? NBD_STALLS_TIMEOUT_MS : NBD_LIES_TIMEOUT_MS;
	if (d->options.near && r->io_timeout < NEAR_TIMEOUT_MS)
		r->io_timeout = NEAR_TIMEOUT_MS;
	if (is_nbd) {
		r->quiesce_ms = r->stalls ? NBD_STOP_MAX_MS + MARGIN_MS : NBD_LIES_QUIESCE_MS;
		d->journal->io_error_ms = r->io_timeout -
					  (r->io_timeout / 8 < 500 ? r->io_timeout / 8 : 500) -
					  SLACK_MS;
	}
	d->journal->late_ms = r->quiesce_ms;
	d->journal->target_fences = r->op_timeout_s != 0;
	atomic_store(&d->journal->stalled, 0);
	atomic_store(&d->journal->timed_out_at, 0);
}

static uint64_t lies_before;

static uint64_t n_lies(const struct driver *d)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < SOAK_LIES; i++)
		n += atomic_load(&d->journal->lies[i]);
	return n;
}

static int each_lie(struct driver *d)
{
	return n_lies(d) >= lies_before + SOAK_LIES;
}

int lie(struct driver *d)
{
	lies_before = n_lies(d);
	return wait_for(d, each_lie, "wait for broken replies") || progress(d);
}

static unsigned fences;

static int is_fenced(struct driver *d)
{
	static uint64_t next;

	if (soak_ms() < next)
		return 0;
	next = soak_ms() + 50;
	return log_count(d, CHILD_TARGET, FENCED) > fences;
}

int stall(struct driver *d)
{
	struct child *c = service_draw(d);
	unsigned ms;

	if (!c)
		return 0;
	fences = log_count(d, CHILD_TARGET, FENCED);
	ms = c->kind == CHILD_OSD
		     ? OSD_STOP_MIN_MS + (unsigned)draw(d, OSD_STOP_MAX_MS - OSD_STOP_MIN_MS)
		     : NBD_STOP_MIN_MS + (unsigned)draw(d, NBD_STOP_MAX_MS - NBD_STOP_MIN_MS);
	if (!strcmp(d->options.bug, "short-stall"))
		ms = 100;
	if (d->options.verbose)
		printf("%8llu stall %s for %u ms\n", (unsigned long long)(soak_ms() - d->began),
		       c->name, ms);
	atomic_store(&d->journal->stalled, soak_ms());
	child_stop(d, c, ms);
	/* a client ends while its writes are held up */
	if (draw(d, 2)) {
		if (wait_ms(d, draw(d, ms)))
			return -1;
		child_kill(d, &d->children[CLIENT + draw(d, SOAK_CLIENTS)], 0);
	}
	d->stalls++;
	if (c->kind == CHILD_OSD) {
		if (wait_for(d, is_fenced, "wait for the target to replace its client"))
			return -1;
		d->fences += log_count(d, CHILD_TARGET, FENCED) - fences;
	}
	if (wait_for(d, all_running, "wait for each client to run") || progress(d))
		return -1;
	atomic_store(&d->journal->stalled, 0);
	return 0;
}
