/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exchange.c - exchanges the volume for another one, for a while
 *
 * If a target is started with another volume, each session ends with ESTALE: exchange_target().
 * If only the NBD server is started with an export of another size, the target rejects all IO:
 * exchange_export(). An export of the same size would not be noticed, because the UUID is derived
 * from the URI, see gantry-nbd(7). If the files of the stripes change places, or one is another
 * volume, the volume of the gateways has another UUID. A gateway that names the UUID rejects all
 * sessions: exchange_legs().
 */
#include <stdio.h>
#include <string.h>

#include "soak/driver.h"

#define ANOTHER_EXPORT "another export after a reconnect"
#define ANOTHER_VOLUME "the targets are another volume (uuid="
#define BYTES ((off_t)SOAK_BLOCKS * SOAK_BLOCK)

static int has(const struct driver *d, enum child_kind service)
{
	return d->topology->service == service;
}

static int bug(const struct driver *d, const char *name)
{
	return !strcmp(d->options.bug, name);
}

/* Choose the other volume. */
static void choose(struct driver *d, struct exchange *x)
{
	const off_t bytes = BYTES / d->topology->targets;

	*x = (struct exchange){.bytes = bytes};
	x->leg = (unsigned)draw(d, d->topology->targets);
	x->swap = d->topology->targets > 1 && draw(d, 2);
	/* the target of an NBD server only finds another size */
	if (has(d, CHILD_NBDKIT) || (d->topology->targets > 1 && draw(d, 2)))
		x->bytes = draw(d, 2) ? bytes / 2 : bytes * 2;
	if (bug(d, "same-size"))
		x->bytes = bytes;
}

static int no_target(struct driver *d)
{
	for (unsigned i = TARGET; i < GATEWAY; i++)
		if (d->children[i].pid)
			return 0;
	return 1;
}

/* End the targets, and the NBD server, so that none has the volume. */
static int end_targets(struct driver *d)
{
	for (unsigned i = TARGET; i < GATEWAY; i++) {
		if (!d->children[i].pid)
			continue;
		/* the image of a target that was killed cannot be deleted for some time */
		if (has(d, CHILD_OSD) && atomic_load(&d->journal->exchanged) == 2)
			child_term(d, &d->children[i], -1);
		else
			child_kill(d, &d->children[i], -1);
	}
	if (d->children[NBDKIT].pid)
		child_kill(d, &d->children[NBDKIT], -1);
	return wait_for(d, no_target, "wait for the end of the targets");
}

static int start_targets(struct driver *d)
{
	if (service_start(d))
		return -1;
	for (unsigned i = TARGET; i < GATEWAY; i++)
		if (d->children[i].used)
			child_start(d, &d->children[i]);
	return 0;
}

static int exchange_target(struct driver *d, const struct round *r)
{
	uint32_t stale[SOAK_CLIENTS];
	struct child *also;
	struct exchange x;

	choose(d, &x);
	for (unsigned i = 0; i < SOAK_CLIENTS; i++)
		stale[i] = atomic_load(&d->journal->clients[i].stale);
	atomic_store(&d->journal->exchanged, 1);
	/* an image can be renamed while a target serves it */
	if (has(d, CHILD_OSD) && store_exchange(d, &x))
		return -1;
	if (end_targets(d))
		return -1;
	if (!r->memory && !has(d, CHILD_OSD) && store_exchange(d, &x))
		return -1;
	if (start_targets(d))
		return -1;
	/* an event also hits a gateway or client */
	also = draw(d, 3) ? &d->children[GATEWAY + draw(d, NBDKIT - GATEWAY)] : NULL;
	if (also && also->kind == CHILD_GATEWAY && draw(d, 2) && front_move(d, also->index))
		return -1;
	if (also)
		child_kill(d, also, 0);
	if (wait_for(d, all_foreign, "wait for the end of each session of the replaced volume"))
		return -1;
	for (unsigned i = 0; i < SOAK_CLIENTS; i++)
		if (also != &d->children[CLIENT + i] &&
		    atomic_load(&d->journal->clients[i].stale) != stale[i] + 1)
			soak_report(d->journal, SOAK_STATUS,
				    "client %u: no session ended with ESTALE at the exchange", i);
	d->exchanges += !r->memory;
	d->losses += !!r->memory;
	if (r->memory)
		return tick(d);
	atomic_store(&d->journal->exchanged, 2);
	if (end_targets(d) || store_return(d, &x) || start_targets(d))
		return -1;
	atomic_store(&d->journal->exchanged, 0);
	return progress(d);
}

static uint64_t before[SOAK_CLIENTS];
static unsigned rejections;

static int all_rejected(struct driver *d)
{
	static uint64_t next;

	for (unsigned i = 0; i < SOAK_CLIENTS; i++)
		if (atomic_load(&d->journal->clients[i].io_errors) == before[i])
			return 0;
	if (soak_ms() < next)
		return 0;
	next = soak_ms() + 50;
	return log_count(d, CHILD_TARGET, ANOTHER_EXPORT) > rejections;
}

/*
 * The NBD server starts with an export of another size, while the target runs. The relay breaks no
 * replies meanwhile: their IO could fail with EIO, too.
 */
static int exchange_export(struct driver *d)
{
	const uint32_t lies_on = atomic_load(&d->journal->lies_on);
	struct exchange x;

	choose(d, &x);
	rejections = log_count(d, CHILD_TARGET, ANOTHER_EXPORT);
	atomic_store(&d->journal->lies_on, 0);
	atomic_store(&d->journal->rejecting, SOAK_REJECTS_IO);
	child_kill(d, &d->children[NBDKIT], -1);
	if (store_exchange(d, &x) || service_start(d))
		return -1;
	for (unsigned i = 0; i < SOAK_CLIENTS; i++)
		before[i] = atomic_load(&d->journal->clients[i].io_errors);
	if (wait_for(d, all_rejected, "wait for the rejection of an export of another size"))
		return -1;
	if (draw(d, 2))
		child_kill(d, &d->children[CLIENT + draw(d, SOAK_CLIENTS)], 0);
	child_kill(d, &d->children[NBDKIT], -1);
	if (store_return(d, &x) || service_start(d) || progress(d))
		return -1;
	atomic_store(&d->journal->rejecting, 0);
	atomic_store(&d->journal->lies_on, lies_on);
	d->rejected_sizes++;
	return progress(d);
}

static int is_rejected(struct driver *d)
{
	static uint64_t next;

	if (soak_ms() < next)
		return 0;
	next = soak_ms() + 50;
	return log_count(d, CHILD_GATEWAY, ANOTHER_VOLUME) > rejections;
}

/* The gateways name the UUID of the volume, and reject each session of another one. */
static int exchange_legs(struct driver *d, struct round *r)
{
	struct exchange x;

	choose(d, &x);
	r->uuid = 1;
	if (conf_write(d, r)) {
		soak_report(d->journal, SOAK_STATUS, "%s cannot be written", d->conf);
		return -1;
	}
	for (unsigned i = GATEWAY; i < CLIENT; i++)
		child_kill(d, &d->children[i], 0);
	if (progress(d))
		return -1;
	rejections = log_count(d, CHILD_GATEWAY, ANOTHER_VOLUME);
	atomic_store(&d->journal->rejecting, SOAK_REJECTS_SESSIONS);
	if (end_targets(d) || store_exchange(d, &x) || start_targets(d) ||
	    wait_for(d, is_rejected, "wait for the rejection of another leg") ||
	    wait_ms(d, draw(d, 500)) || end_targets(d) || store_return(d, &x) || start_targets(d) ||
	    progress(d))
		return -1;
	atomic_store(&d->journal->rejecting, 0);
	d->rejected_legs++;
	return progress(d);
}

int exchange(struct driver *d, struct round *r)
{
	if (exchange_target(d, r))
		return -1;
	if (has(d, CHILD_NBDKIT) && exchange_export(d))
		return -1;
	return d->topology->targets > 1 ? exchange_legs(d, r) : 0;
}
