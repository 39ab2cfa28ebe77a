/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rounds.c - the rounds of events that the driver applies to the processes
 *
 * A round: start all processes; warm up; measure; let a gateway fail, so that the clients continue
 * through the other one; let the service fail, stall or break replies; a storm of events; pause the
 * clients; measure again; end all processes; compare the store with the journal. The kinds of
 * rounds alternate: events hit only clients, only gateways, all processes; the volume is exchanged;
 * a target has its volume in memory. A process without events must hold no more resources at the
 * end than at the first measurement. The topologies alternate too.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "soak/driver.h"

/* Longest time until a target has replaced its connections to an NBD server, see gantry-nbd(7). */
#define RECONNECT_MS 2500

/* Events of a storm. With --near the run can be in an emulated machine: each takes seconds. */
#define EVENTS(d) ((d)->options.near ? 10u : (d)->options.kills > 1000 ? 150u : 30u)

enum round_kind {
	ROUND_CLIENTS,
	ROUND_GATEWAYS,
	ROUND_ALL,
	ROUND_EXCHANGE,
	ROUND_MEMORY,
	ROUND_KINDS
};

enum topology_kind { PLAIN, STRIPE, FAILOVER, NBD, RBD, TOPOLOGIES };

static const struct topology topologies[TOPOLOGIES] = {
	[PLAIN] = {.name = "plain", .targets = 1},
	[STRIPE] = {.name = "stripe", .targets = 2, .scratch = 1},
	[FAILOVER] = {.name = "failover", .targets = 1, .paths = 1},
	[NBD] = {.name = "nbd",
		 .targets = 1,
		 .service = CHILD_NBDKIT,
		 .unmeasured = 1u << CHILD_NBDKIT | 1u << CHILD_RELAY,
		 .scratch = 1},
	/* a killed target keeps its watch of the image for 10 s; librados connects as it needs */
	[RBD] = {.name = "rbd",
		 .targets = 1,
		 .service = CHILD_OSD,
		 .start_s = 30,
		 .unmeasured = 1u << CHILD_OSD | 1u << CHILD_TARGET,
		 .scratch = 1},
};

static const struct {
	enum round_kind kind;
	enum topology_kind topology;
} schedule[] = {
	{ROUND_CLIENTS, PLAIN}, {ROUND_ALL, PLAIN},      {ROUND_GATEWAYS, PLAIN},
	{ROUND_ALL, STRIPE},    {ROUND_EXCHANGE, PLAIN}, {ROUND_ALL, FAILOVER},
	{ROUND_MEMORY, PLAIN},  {ROUND_CLIENTS, NBD},    {ROUND_EXCHANGE, STRIPE},
	{ROUND_EXCHANGE, NBD},
};
#define SCHEDULE (sizeof(schedule) / sizeof(schedule[0]))

/* The rounds of a topology with its own files, if the options name it. */
static const enum round_kind kinds[] = {ROUND_CLIENTS,  ROUND_EXCHANGE, ROUND_ALL,
					ROUND_GATEWAYS, ROUND_EXCHANGE, ROUND_ALL};
#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

const struct topology *topology_find(const char *name)
{
	for (unsigned i = 0; i < TOPOLOGIES; i++)
		if (!strcmp(topologies[i].name, name))
			return &topologies[i];
	return NULL;
}

uint64_t total_kills(const struct driver *d)
{
	return d->kills[CHILD_TARGET] + d->kills[CHILD_GATEWAY] + d->kills[CHILD_CLIENT];
}

uint64_t total_writes(const struct driver *d)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < SOAK_CLIENTS; i++)
		n += atomic_load(&d->journal->clients[i].writes);
	return n;
}

int finished(const struct driver *d)
{
	if (d->options.seconds)
		return soak_ms() >= d->began + d->options.seconds * 1000;
	return total_kills(d) >= d->options.kills && total_writes(d) >= d->options.writes;
}

/* -- conditions -- */

static int in_state(struct driver *d, enum soak_state state)
{
	for (unsigned i = 0; i < SOAK_CLIENTS; i++)
		if (!d->children[CLIENT + i].pid ||
		    atomic_load(&d->journal->clients[i].state) != state)
			return 0;
	return all_run(d);
}

int all_running(struct driver *d)
{
	return in_state(d, SOAK_RUNNING);
}

static int all_paused(struct driver *d)
{
	return in_state(d, SOAK_PAUSED);
}

int all_foreign(struct driver *d)
{
	return in_state(d, SOAK_FOREIGN_VOLUME);
}

static uint64_t writes_before[SOAK_CLIENTS];

static void mark_progress(struct driver *d)
{
	for (unsigned i = 0; i < SOAK_CLIENTS; i++)
		writes_before[i] = atomic_load(&d->journal->clients[i].writes);
}

static int all_progressed(struct driver *d)
{
	for (unsigned i = 0; i < SOAK_CLIENTS; i++)
		if (atomic_load(&d->journal->clients[i].writes) < writes_before[i] + 20)
			return 0;
	return 1;
}

int progress(struct driver *d)
{
	mark_progress(d);
	return wait_for(d, all_progressed, "wait for acknowledged writes of each client");
}

static int quiesce(struct driver *d)
{
	int rc;

	atomic_store(&d->journal->command, SOAK_PAUSE);
	rc = wait_for(d, all_paused, "wait for the pause of each client");
	return rc;
}

/* -- the storm -- */

static struct child *victim;

/* The event hits an NBD server, or the relay before it. */
static int is_nbd(const struct child *c)
{
	return c->kind == CHILD_NBDKIT || c->kind == CHILD_RELAY;
}

/* A target ends if it finds no NBD server when it starts. So such an event waits for the target. */
static int victim_runs(struct driver *d)
{
	return victim->pid && !victim->ending && service_is_ready(d, victim->kind) &&
	       (!is_nbd(victim) || all_running(d));
}

/*
 * Apply one event. Only the seed determines the event and its process: if the process does not run,
 * the driver waits until it does.
 */
static int event(struct driver *d, const struct round *r)
{
	uint64_t what, stop;
	int restart;

	do
		victim = &d->children[draw(d, CHILDREN)];
	while (!victim->used || !(r->victims & (1u << victim->kind)));
	what = draw(d, 100);
	stop = draw(d, 4) ? draw(d, 300) : draw(d, 3000);
	restart = draw(d, 3) ? 0 : (int)draw(d, 200);
	if (wait_for(d, victim_runs, "wait for the start of a process"))
		return -1;
	if (d->options.verbose)
		printf("%8llu %s %s\n", (unsigned long long)(soak_ms() - d->began),
		       what < 75   ? "kill"
		       : what < 90 ? "stop"
				   : "term",
		       victim->name);
	if (victim->kind == CHILD_GATEWAY && draw(d, 2) && front_move(d, victim->index))
		return -1;
	/* the NBD server must execute all writes in quiesce_time after a loss, see stall.c */
	if (is_nbd(victim) && what >= 75 && what < 90) {
		child_stop(d, victim, (unsigned)stop % 300);
		return 0;
	}
	if (is_nbd(victim)) {
		child_kill(d, victim, -1);
		return service_start(d);
	}
	if (what < 75)
		child_kill(d, victim, restart);
	else if (what < 90)
		child_stop(d, victim, (unsigned)stop);
	else
		child_term(d, victim, restart);
	return 0;
}

static int storm(struct driver *d, const struct round *r)
{
	for (unsigned i = 0; i < EVENTS(d) && !finished(d); i++) {
		if (event(d, r))
			return -1;
		if (draw(d, 3) == 0 && progress(d))
			return -1;
		/* otherwise the next event follows without a pause */
		if (draw(d, 4) && wait_ms(d, draw(d, 60)))
			return -1;
		if (!d->options.seconds && total_kills(d) >= d->options.kills)
			break;
	}
	return 0;
}

/*
 * Kill a gateway, or stop it with IO that it has accepted. All clients must continue through the
 * other gateway. Afterwards the stopped gateway continues: IO that it sends then must have no
 * effect.
 */
static int fail_over(struct driver *d)
{
	struct child *gateway = &d->children[GATEWAY + draw(d, CLIENT - GATEWAY)];
	int stands = (int)draw(d, 2);

	victim = gateway;
	if (wait_for(d, victim_runs, "wait for the start of a gateway") ||
	    front_move(d, gateway->index))
		return -1;
	if (stands)
		child_stop(d, gateway, UINT_MAX);
	else
		child_kill(d, gateway, -1);
	if (progress(d))
		return -1;
	if (stands)
		gateway->continue_at = soak_ms();
	else
		child_start(d, gateway);
	d->fail_overs++;
	return progress(d);
}

/* Set the topology, and the processes that it has. */
static void use_topology(struct driver *d, const struct topology *topology)
{
	d->topology = topology;
	for (unsigned i = 0; i < CHILDREN; i++) {
		struct child *c = &d->children[i];

		c->used = c->kind == CHILD_TARGET   ? c->index < topology->targets
			  : c->kind == CHILD_RELAY  ? topology->service == CHILD_NBDKIT
			  : c->kind >= CHILD_NBDKIT ? c->kind == topology->service
						    : 1;
	}
}

static void choose(struct driver *d, struct round *r, enum round_kind kind)
{
	const unsigned all = 7u | 1u << CHILD_NBDKIT | 1u << CHILD_RELAY | 1u << CHILD_OSD;
	const unsigned victims[ROUND_KINDS] = {
		[ROUND_CLIENTS] = 1u << CHILD_CLIENT,
		[ROUND_GATEWAYS] = 1u << CHILD_GATEWAY,
		[ROUND_ALL] = all,
		[ROUND_EXCHANGE] = all,
		[ROUND_MEMORY] = 1u << CHILD_GATEWAY | 1u << CHILD_CLIENT,
	};

	r->memory = kind == ROUND_MEMORY;
	d->journal->flush_may_fail = d->topology->service == CHILD_NBDKIT;
	r->direct = (int)draw(d, 2);
	r->sync = draw(d, 3) == 0;
	r->io_timeout = draw(d, 2) ? 500 : 20000;
	r->heartbeat = draw(d, 2) ? 250 : 1000;
	r->lanes = 1 + (unsigned)draw(d, 3);
	r->crc = (int)draw(d, 2);
	r->mapped = draw(d, 3) != 0;
	r->victims = victims[kind];
	r->uuid = 0;
	stall_choose(d, r, !!(r->victims & 1u << CHILD_TARGET));
	if (d->options.near) /* see stall_choose() */
		r->heartbeat *= 5;
}

static void use_store(struct driver *d, int own)
{
	static uint8_t uuid[16];

	atomic_store(&d->journal->store, own ? 1 : 0);
	if (own) {
		memcpy(uuid, d->journal->uuid, sizeof(uuid));
		memset(d->journal->uuid, 0, sizeof(uuid));
		memset((void *)d->journal->blocks[1], 0, sizeof(d->journal->blocks[1]));
	} else {
		memcpy(d->journal->uuid, uuid, sizeof(uuid));
	}
}

static int begin_round(struct driver *d, const struct round *r)
{
	if (front_begin(d))
		return -1;
	if (conf_write(d, r)) {
		soak_report(d->journal, SOAK_STATUS, "%s cannot be written", d->conf);
		return -1;
	}
	if (r->memory || d->topology->scratch)
		use_store(d, 1);
	if (d->topology->scratch && store_create(d))
		return -1;
	if (service_start(d))
		return -1;
	atomic_store(&d->journal->command, SOAK_RUN);
	for (unsigned i = 0; i < NBDKIT; i++)
		if (d->children[i].used)
			child_start(d, &d->children[i]);
	return progress(d);
}

static int end_round(struct driver *d, struct round *r)
{
	int rc;

	atomic_store(&d->journal->command, SOAK_RUN);
	if (r->memory && exchange(d, r))
		return -1;
	if (wait_for(d, all_listen, "wait for each server to listen") || end_all(d))
		return -1;
	front_end(d);
	if (check_files(d))
		return -1;
	if (r->memory) {
		atomic_store(&d->journal->exchanged, 0);
		use_store(d, 0);
	}
	if (!strcmp(d->options.bug, "flip-old") || !strcmp(d->options.bug, "flip-torn"))
		store_damage(d, !strcmp(d->options.bug, "flip-torn"));
	rc = store_check(d);
	if (d->topology->scratch && !rc) {
		store_remove(d);
		use_store(d, 0);
	}
	return rc;
}

/* Measure processes that no event hits, with all sessions open and no IO in flight. */
static int measure(struct driver *d, const struct round *r, struct usage *base, int compare)
{
	const unsigned unmeasured = r->victims | d->topology->unmeasured;

	/* the target must have all its connections to the NBD server again */
	atomic_store(&d->journal->lies_on, 0);
	if (r->lies && !(unmeasured & 1u << CHILD_TARGET) && wait_ms(d, RECONNECT_MS))
		return -1;
	if (quiesce(d))
		return -1;
	for (unsigned i = 0; i < CHILDREN; i++) {
		const struct child *c = &d->children[i];

		if (!c->used || (unmeasured & 1u << c->kind))
			continue;
		if (compare ? check_usage(d, c, &base[i]) : usage_of(c, &base[i]))
			return -1;
	}
	atomic_store(&d->journal->lies_on, r->lies && !compare);
	atomic_store(&d->journal->command, SOAK_RUN);
	return 0;
}

/*
 * Kill each process that events can hit, once. So the processes that measure() compares allocate
 * now what they allocate only once, at the first loss of a peer.
 */
static int warm_up(struct driver *d, const struct round *r)
{
	for (unsigned i = 0; i < CHILDREN; i++)
		if (d->children[i].used && !is_nbd(&d->children[i]) &&
		    (r->victims & (1u << d->children[i].kind)))
			child_kill(d, &d->children[i], 0);
	return wait_for(d, all_running, "wait for each client to run") || progress(d);
}

/* Let the service fail, stall and break replies. */
static int disturb(struct driver *d, const struct round *r)
{
	for (unsigned i = 0; d->topology->service && i < 3; i++) {
		if (wait_for(d, all_running, "wait for each client to run") || progress(d) ||
		    service_lose(d) || progress(d))
			return -1;
		if (r->stalls && i < (d->options.topology ? 2 : 1) && stall(d))
			return -1;
	}
	if (!d->topology->service)
		return 0;
	if (r->lies && lie(d))
		return -1;
	return wait_for(d, all_running, "wait for each client to run") || service_delete(d) ||
	       progress(d);
}

static int run_round(struct driver *d, enum round_kind kind)
{
	struct usage base[CHILDREN];
	struct round r;

	choose(d, &r, kind);
	if (d->options.verbose)
		printf("round %u: topology=%s victims=%x direct=%d sync=%d io_timeout=%u heartbeat=%u lanes=%u crc=%d mapped=%d\n",
		       kind, d->topology->name, r.victims, r.direct, r.sync, r.io_timeout,
		       r.heartbeat, r.lanes, r.crc, r.mapped);
	if (begin_round(d, &r) || warm_up(d, &r) || measure(d, &r, base, 0) || progress(d))
		return -1;
	if (kind == ROUND_EXCHANGE && exchange(d, &r))
		return -1;
	if ((r.victims & 1u << CHILD_GATEWAY) && !d->options.near && fail_over(d))
		return -1;
	if (disturb(d, &r))
		return -1;
	if (storm(d, &r))
		return -1;
	while (!d->options.seconds && total_kills(d) >= d->options.kills && !finished(d))
		if (progress(d))
			return -1;
	for (unsigned i = 0; d->options.bug[0] && i < 30; i++) /* time for a leak to grow */
		if (progress(d))
			return -1;
	if (measure(d, &r, base, 1))
		return -1;
	d->rounds++;
	return end_round(d, &r);
}

/* Returns the index of the kind of the first round: with most seeded bugs, an exchange. */
static uint64_t first_kind(const struct driver *d)
{
	return d->options.bug[0] && strcmp(d->options.bug, "short-stall");
}

/*
 * Choose topology and kind of the next round. Over a network, all rounds are plain, unless the
 * options name a topology.
 */
static enum round_kind next_round(struct driver *d)
{
	const unsigned i = (unsigned)((d->rounds + !!d->options.near) % SCHEDULE);
	const struct topology *topology =
		&topologies[d->options.near ? PLAIN : schedule[i].topology];
	enum round_kind kind = schedule[i].kind;

	if (d->options.topology)
		topology = d->options.topology;
	if (service_lacks(topology->service)) {
		printf("soak: no round with the topology %s: %s\n", topology->name,
		       service_lacks(topology->service));
		topology = &topologies[PLAIN];
	}
	if (topology->scratch && d->options.topology)
		kind = kinds[(d->rounds + first_kind(d)) % N_KINDS];
	use_topology(d, topology);
	return kind;
}

/*
 * A round over a network can take minutes. A topology of the options that has kinds of its own
 * needs one round with stalls and one with an exchange; a seeded bug is found in the first.
 */
static uint64_t least_rounds(const struct driver *d)
{
	if (d->options.near)
		return 1;
	if (d->options.topology && d->options.topology->scratch)
		return d->options.bug[0] ? 1 : 2;
	return SCHEDULE;
}

int run_rounds(struct driver *d)
{
	const uint64_t least = least_rounds(d);

	use_topology(d, &topologies[PLAIN]);
	if (store_create(d))
		return -1;
	while (!d->failed && !*d->interrupted && (!finished(d) || d->rounds < least))
		if (run_round(d, next_round(d)))
			return -1;
	return d->failed;
}
