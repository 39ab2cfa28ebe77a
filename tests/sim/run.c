/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * run.c - runs a scenario: creates its files, starts its processes, injects its faults, and gets
 * the verdict of the judge
 */
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "held.h"
#include "judge.h"
#include "scenario.h"

/* longest operation in a run without faults; over TCP twice that, since it comes in small pieces */
#define CALM_NS 20000000u
#define MS 1000000ull
#define S (1000 * MS)
#define LIMIT_NS (600 * S)       /* simulated time; a run that takes longer hangs */
#define LIMIT_STEPS 200000000ull /* the longest of seeds 1-40000 takes 68 million */
#define RETRY_NS (50 * MS)
/* longer than every deadline of a server, and than every operation of the slowest disk */
#define REST_NS (20 * S)
#define START_NS (2 * S) /* limit for the start of a server */
#define PROBED_ONE_IN 4u /* runs */
/*
 * Probes in such a run. A probe is one more client, which runs after all others have ended; the
 * second probe must not change the heap of a server.
 */
#define PROBES 2u
#define PROBE_OPS 4u
/*
 * Bytes of heap that a server is allowed to keep for later sessions: counters, of which each takes
 * 144 bytes when it first counts, and tables. The most in 112,680 runs was 8992, of a gateway and a
 * target in one process, and 12608 if that process hangs.
 */
#define POOLS 16384u
/*
 * Bytes of heap that the stage qos is allowed to keep for lost sessions: it does not learn that a
 * session has ended, and keeps 416 bytes for each lane that the session used.
 */
#define QOS_BYTES 2048u
#define ALL_VOLUMES ((1u << SIM_VOLUMES) - 1)
#define STARTS 8u /* most starts of a client whose work is not finished */
/* Stalls and faults of stores end at this time, so that the run ends. A guest never gives up. */
#define CALM_AT_NS(guest) ((guest) ? 20 * S : 300 * S)
/* The disk starts after the servers, so that the first faults hit a guest that uses it. */
#define DISK_START_NS MS

bool sim_verbose;

/*
 * slots of processes; CLIENTS is the slot of the first client. DISK runs the role vhost-user-blk,
 * SWAP the role exporter
 */
enum place {
	TARGET,
	TARGET_1,
	GATEWAY,
	GATEWAY_1,
	DISK,
	CLIENTS,
	SWAP = CLIENTS + SIM_CLIENTS,
	SLOTS
};

static struct {
	struct sim_proc *proc;
	uint64_t start_at; /* time of the next start; SIM_NEVER: none */
	uint32_t n_starts;
	uint64_t starved_until; /* some allocations fail until this time; 0: none fails */
	uint32_t starved_one_in;
	bool was_starved;     /* since the process started, some allocations could fail */
	bool rested;          /* the process ran after the last client had ended */
	struct sim_held held; /* the resources of the process at that time, and after each probe */
	bool may_lack;        /* fewer resources are allowed, as an allocation failed */
} slots[SLOTS];
static const struct sim_scenario *now;
static uint64_t restarted_at; /* when a client started again; SIM_NEVER: none has */
static bool injected[SIM_FAULTS];
static uint64_t calm_at; /* when stalls and faults of stores end; SIM_NEVER: they have ended */
/*
 * After the last client has ended, a running server must have the same descriptors and mappings as
 * a server that has just started, and at most POOLS bytes of heap more. When the servers have
 * ended, no resource of the system may be in use.
 */
static enum phase {
	USED,    /* until the last client has ended */
	RESTING, /* servers run without clients, and no fault is injected */
	PROBING, /* in some runs: one more client, several times */
	ENDING,  /* servers have got SIGTERM */
	/*
	 * servers have started again: their resources are compared, and they remove the names that
	 * killed servers left
	 */
	AGAIN,
	LEAVING, /* servers have got SIGTERM */
	OVER
} phase;
static uint64_t phase_ends;
static struct sim_job probe; /* job of the client in PROBING */
static uint32_t n_probes;    /* probes that are not started yet */
static bool probe_failed;    /* one of this run */

static void event(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void event(const char *format, ...)
{
	va_list ap;

	if (!sim_verbose)
		return;
	fprintf(sim_out, "%12.3f ms  ", (double)sim_now() / 1e6);
	va_start(ap, format);
	vfprintf(sim_out, format, ap);
	va_end(ap);
	fputc('\n', sim_out);
}

void sim_log(const char *source, const char *message)
{
	const struct sim_thread *t = sim_self();

	event("%s: %s: %s", t && t->proc ? t->proc->name : "?", source, message);
}

static uint8_t first_uuid[16];
static bool has_exchanged; /* a volume, in this run */

bool sim_is_first_uuid(const uint8_t uuid[16])
{
	static const uint8_t none[16];

	if (memcmp(first_uuid, none, sizeof(none)) == 0 && !has_exchanged)
		memcpy(first_uuid, uuid, sizeof(first_uuid));
	return memcmp(first_uuid, uuid, sizeof(first_uuid)) == 0;
}

/* -- processes -- */

static const char *file_of(unsigned slot)
{
	if (slot == SWAP)
		return "/etc/swap.conf";
	if (slot == DISK)
		return "/etc/disk.conf";
	return slot < GATEWAY ? sim_topology_store(slot - TARGET)
			      : sim_topology_bridge(slot - GATEWAY);
}

/* Whether the process of a slot is a guest. So is a probe then. */
static bool is_guest(unsigned slot)
{
	return slot == CLIENTS && now->topology.guest;
}

/* The first thread of a process looks up the program in the image of the process. */
static void *run_slot(void *arg)
{
	unsigned slot = (unsigned)(uintptr_t)arg;
	const bool runs = slot < CLIENTS || slot == SWAP;
	const char *symbol = runs             ? "sim_image_run"
			     : is_guest(slot) ? "sim_image_guest"
					      : "sim_image_client";
	void *(*fn)(void *) = (void *(*)(void *))sim_proc_symbol(sim_proc_self(), symbol);

	if (runs)
		return fn((void *)(uintptr_t)file_of(slot));
	return fn(phase == PROBING ? &probe : (void *)(uintptr_t)&now->jobs[slot - CLIENTS]);
}

static void start(unsigned slot)
{
	char name[24];

	if (slot == SWAP)
		snprintf(name, sizeof(name), "exporter");
	else if (slot < CLIENTS)
		snprintf(name, sizeof(name), "%s",
			 slot == TARGET      ? "target"
			 : slot == TARGET_1  ? "target 2"
			 : slot == GATEWAY   ? "gateway"
			 : slot == GATEWAY_1 ? "gateway 2"
					     : "disk");
	else if (is_guest(slot))
		snprintf(name, sizeof(name), "guest");
	else
		snprintf(name, sizeof(name), "client %u", slot - CLIENTS + 1);
	slots[slot].proc = sim_proc_start(name, 0, run_slot, (void *)(uintptr_t)slot);
	slots[slot].start_at = SIM_NEVER;
	if (slot >= CLIENTS && slots[slot].n_starts != 0)
		restarted_at = sim_now();
	slots[slot].n_starts++;
	if (!slots[slot].proc)
		sim_fail("no process left");
	slots[slot].proc->memory_fails_one_in = slots[slot].starved_one_in;
	slots[slot].was_starved = slots[slot].starved_one_in != 0;
	event("%s starts, pid %d", name, (int)slots[slot].proc->pid);
}

static bool is_running(unsigned slot)
{
	return slots[slot].proc && slots[slot].proc->alive && !slots[slot].proc->dying;
}

static void kill_slot(unsigned slot, uint64_t down_ns)
{
	if (!is_running(slot))
		return;
	event("%s is killed", slots[slot].proc->name);
	sim_proc_kill_in_steps(slots[slot].proc, -SIGKILL);
	slots[slot].start_at = sim_now() + down_ns;
}

/* The machine of the process loses its power: the process ends in one step. */
static void cut_slot(unsigned slot, uint64_t down_ns)
{
	kill_slot(slot, down_ns);
	if (slots[slot].proc)
		sim_proc_kill(slots[slot].proc, -SIGKILL);
}

/* Returns the kind of fault that replaces this one in the topology of the run. */
static enum sim_fault_kind kind_here(enum sim_fault_kind kind)
{
	if (now->topology.shape != SIM_EMBEDDED)
		return kind;
	if (kind >= SIM_STARVE_CLIENT)
		return SIM_STARVE_CLIENT;
	return kind == SIM_POWER_CUT || kind == SIM_BLACKOUT ? SIM_BLACKOUT : SIM_KILL_CLIENT;
}

/* Returns the slot of the process that the fault hits. */
static unsigned place_of(enum sim_fault_kind kind, uint32_t number)
{
	static const enum place places[SIM_FAULT_KINDS] = {
		CLIENTS, GATEWAY, TARGET,  GATEWAY, TARGET, TARGET, TARGET,
		TARGET,  CLIENTS, GATEWAY, TARGET,  DISK,   DISK,   DISK,
		GATEWAY, TARGET,  TARGET,  TARGET,  TARGET, TARGET, TARGET};

	if (places[kind] == CLIENTS)
		return CLIENTS + number;
	if (places[kind] == DISK)
		return DISK;
	if (places[kind] == TARGET)
		return TARGET + number % now->topology.n_targets;
	if (now->topology.shape == SIM_JOINED)
		return TARGET;
	return now->topology.paths ? GATEWAY + number % SIM_PATHS : GATEWAY;
}

/*
 * Let some allocations of the process fail, also if it starts again before `until`. one_in 0: no
 * allocation fails.
 */
static void starve(unsigned slot, uint32_t one_in, uint64_t until)
{
	slots[slot].starved_one_in = one_in;
	slots[slot].starved_until = until;
	slots[slot].was_starved |= one_in != 0;
	if (slots[slot].proc)
		slots[slot].proc->memory_fails_one_in = one_in;
	event("slot %u: %s", slot, one_in != 0 ? "allocations fail" : "allocations succeed again");
}

/* An NBD server is on the machine of the targets. */
static void cut_disks(bool whole, uint64_t down_ns)
{
	if (now->remote.kind == SIM_NBD)
		sim_remote_power_cut(down_ns);
	sim_disk_power_cut(whole);
	sim_judge_power_cut(ALL_VOLUMES);
}

static void inject(const struct sim_fault *fault)
{
	enum sim_fault_kind kind = kind_here(fault->kind);
	unsigned slot = place_of(kind, fault->client);

	switch (kind) {
	case SIM_STOP_GATEWAY:
	case SIM_STOP_TARGET:
	case SIM_STOP_DISK:
		if (!is_running(slot))
			break;
		event("%s gets SIGTERM", slots[slot].proc->name);
		sim_proc_signal(slots[slot].proc, SIGTERM);
		break;
	case SIM_HANG_GATEWAY:
	case SIM_HANG_TARGET:
		if (!is_running(slot))
			break;
		event("%s hangs", slots[slot].proc->name);
		slots[slot].proc->hangs_until = sim_now() + fault->down_ns;
		break;
	case SIM_POWER_CUT:
		for (slot = TARGET; slot < GATEWAY; slot++) /* all targets run on one machine */
			cut_slot(slot, fault->down_ns);
		cut_disks(false, fault->down_ns);
		break;
	case SIM_EXCHANGE:
		kill_slot(slot, fault->down_ns);
		has_exchanged = true;
		sim_topology_exchange(fault->client % now->topology.n_targets);
		event("the volume of %s is exchanged",
		      sim_topology_store(fault->client % now->topology.n_targets));
		break;
	case SIM_GROW:
		sim_topology_grow(fault->client % now->topology.n_targets);
		event("the volume of %s grows",
		      sim_topology_store(fault->client % now->topology.n_targets));
		break;
	case SIM_STALL_REMOTE:
	case SIM_KILL_REMOTE:
	case SIM_CUT_REMOTE:
	case SIM_REMOVE_REMOTE:
		event("%s", sim_fault_name(kind));
		if (sim_topology_inject_remote(fault))
			sim_judge_power_cut(ALL_VOLUMES);
		break;
	case SIM_BLACKOUT:
		for (slot = 0; slot < SLOTS; slot++)
			cut_slot(slot, fault->down_ns);
		cut_disks(true, fault->down_ns);
		break;
	case SIM_STARVE_CLIENT:
	case SIM_STARVE_GATEWAY:
	case SIM_STARVE_TARGET:
	case SIM_STARVE_DISK:
		starve(slot, fault->one_in, sim_now() + fault->down_ns);
		break;
	default:
		kill_slot(slot, fault->down_ns);
	}
}

/*
 * Reap a process that has ended. Servers, and clients with unfinished work, start again. After a
 * kill, kill_slot() has set the time of the start; otherwise it is set here.
 */
static void reap(unsigned slot)
{
	struct sim_proc *proc = slots[slot].proc;

	if (!proc || proc->alive)
		return;
	event("%s has ended, status %d", proc->name, proc->status);
	probe_failed |= phase == PROBING && slot == CLIENTS && proc->status != 0;
	if (sim_proc_left(proc))
		sim_wrong("%s ended without releasing:%s", proc->name, sim_proc_left(proc));
	if (slot >= CLIENTS && slot != SWAP && !is_guest(slot))
		sim_judge_ended(slot - CLIENTS + 1);
	if (slots[slot].start_at == SIM_NEVER && phase == USED && slot != SWAP &&
	    (slot < CLIENTS || (proc->status > 0 && slots[slot].n_starts < STARTS)))
		slots[slot].start_at = sim_now() + RETRY_NS;
	sim_proc_reap(proc);
	slots[slot].proc = NULL;
}

static bool clients_have_ended(void)
{
	for (unsigned slot = CLIENTS; slot < SLOTS; slot++)
		if (slots[slot].proc || slots[slot].start_at != SIM_NEVER)
			return false;
	return true;
}

static void calm_down(void)
{
	struct sim_rates rates = now->rates;

	rates.stall_one_in = 0;
	sim_rates_set(&rates);
	sim_disk_repair();
	sim_remote_repair();
	calm_at = SIM_NEVER;
}

/* End all faults. */
static void let_rest(void)
{
	calm_down();
	for (unsigned slot = 0; slot < SLOTS; slot++) {
		slots[slot].start_at = SIM_NEVER;
		if (slots[slot].proc)
			slots[slot].proc->hangs_until = 0;
		if (slots[slot].starved_one_in != 0)
			starve(slot, 0, 0);
	}
	if (now->topology.guest && !slots[DISK].proc)
		slots[DISK].start_at = sim_now() + RETRY_NS;
}

static void stop_servers(void)
{
	for (unsigned slot = 0; slot < CLIENTS; slot++)
		if (slots[slot].proc)
			sim_proc_signal(slots[slot].proc, SIGTERM);
}

/* Whether this is one of two gateways, of which a client uses one at a time. */
static bool is_on_a_path(unsigned slot)
{
	return now->topology.paths && slot >= GATEWAY && slot < DISK;
}

/*
 * A server without its disk has fewer resources than after the start of all servers. So has a
 * gateway if the disk uses the other one.
 */
static bool lacks_disk(unsigned slot)
{
	if (slot == DISK || !now->topology.guest)
		return false;
	return !is_running(DISK) || is_on_a_path(slot);
}

static void note_rested(void)
{
	for (unsigned slot = 0; slot < CLIENTS; slot++) {
		slots[slot].rested = is_running(slot) && !lacks_disk(slot);
		slots[slot].may_lack = slots[slot].was_starved;
		if (is_running(slot))
			sim_held_note(&slots[slot].held, slots[slot].proc);
	}
}

static void must_hold_the_same(unsigned slot, const struct sim_held *held,
			       const struct sim_held *before, size_t heap_bytes, const char *when)
{
	char text[200];

	if (sim_held_differs(held, before, heap_bytes, slots[slot].may_lack, text, sizeof(text)))
		sim_wrong("%s: its resources differ from those %s:%s", slots[slot].proc->name, when,
			  text);
}

/*
 * Returns the bytes of heap that a server is allowed to keep after a probe. The first probe can
 * fill pools. The second one finds the pools filled, unless a probe has failed, or the second probe
 * has used another path than the first one. A probe that loses its session and resumes it does not
 * fail.
 */
static size_t kept_after_probe(unsigned slot)
{
	if (n_probes != 0 || probe_failed || is_on_a_path(slot))
		return POOLS;
	return sim_topology_limits_io(now) ? QOS_BYTES : 0;
}

static void compare_probed(void)
{
	struct sim_held held;

	for (unsigned slot = 0; slot < CLIENTS; slot++) {
		if (!is_running(slot))
			continue;
		sim_held_note(&held, slots[slot].proc);
		must_hold_the_same(slot, &held, &slots[slot].held, kept_after_probe(slot),
				   "before the last client");
	}
}

static void compare_started(void)
{
	struct sim_held held;

	for (unsigned slot = 0; slot < CLIENTS; slot++) {
		if (slots[slot].n_starts != 0 && !is_running(slot))
			sim_wrong("slot %u does not start, although nothing is wrong", slot);
		else if (slots[slot].rested) {
			sim_held_note(&held, slots[slot].proc);
			must_hold_the_same(slot, &slots[slot].held, &held, POOLS,
					   "after its start");
		}
	}
}

static void start_servers(void)
{
	for (unsigned slot = 0; slot < CLIENTS; slot++)
		if (slots[slot].n_starts != 0)
			slots[slot].start_at = sim_now();
}

static bool all_servers_run(void)
{
	for (unsigned slot = 0; slot < CLIENTS; slot++)
		if (slots[slot].n_starts != 0 && !is_running(slot))
			return false;
	return true;
}

static void look_for_remains(void)
{
	char text[200];

	if (sim_files_left(text, sizeof(text)))
		sim_wrong("open files after all processes ended, by references:%s", text);
	if (sim_messages != 0)
		sim_wrong("%u messages in flight after all processes ended", sim_messages);
	/*
	 * names generation-* may remain: they keep the generation of a volume, which must outlive
	 * the target that raised it
	 */
	if (sim_disk_names("/run", "generation-", text, sizeof(text)) ||
	    sim_disk_names("/tmp", "", text, sizeof(text)))
		sim_wrong("names in the file system after all processes ended:%s", text);
}

static bool servers_have_ended(void)
{
	for (unsigned slot = 0; slot < CLIENTS; slot++)
		if (slots[slot].proc)
			return false;
	return true;
}

static void enter(enum phase next, uint64_t lasts_ns)
{
	phase = next;
	phase_ends = lasts_ns == SIM_NEVER ? SIM_NEVER : sim_now() + lasts_ns;
}

static void begin_rest(void)
{
	let_rest();
	n_probes = PROBES;
	probe_failed = false;
	if (now->topology.shape == SIM_EMBEDDED || sim_draw(PROBED_ONE_IN) != 0)
		n_probes = 0;
	probe = now->jobs[0];
	probe.ops = PROBE_OPS;
	enter(RESTING, servers_have_ended() ? 0 : REST_NS);
}

static void end_rest(void)
{
	if (phase == PROBING)
		compare_probed();
	note_rested();
	if (n_probes != 0 && all_servers_run()) {
		n_probes--;
		enter(PROBING, REST_NS);
		start(CLIENTS);
		return;
	}
	stop_servers();
	enter(ENDING, SIM_NEVER);
}

/* Enter the next phase if it is due. Returns true if an action is due immediately. */
static bool advance(void)
{
	enum phase before = phase;

	if (phase == USED && clients_have_ended()) {
		begin_rest();
		return true;
	}
	if (sim_now() >= phase_ends &&
	    (phase == RESTING || (phase == PROBING && clients_have_ended()))) {
		end_rest();
		return true;
	}
	if (phase == ENDING && servers_have_ended()) {
		start_servers();
		enter(AGAIN, START_NS);
	} else if (phase == AGAIN && sim_now() >= phase_ends) {
		compare_started();
		stop_servers();
		enter(LEAVING, SIM_NEVER);
	} else if (phase == LEAVING && servers_have_ended()) {
		look_for_remains();
		enter(OVER, SIM_NEVER);
	}
	return phase != before;
}

static bool is_over(void)
{
	return phase == OVER;
}

/* Returns the time of a fault. SIM_NEVER: the time is not known yet. */
static uint64_t due(const struct sim_fault *fault)
{
	if (!fault->after_start)
		return fault->at_ns;
	return restarted_at != SIM_NEVER ? restarted_at + fault->at_ns : SIM_NEVER;
}

/* Take the actions that are due. Returns the time of the next action. */
static uint64_t act(void)
{
	uint64_t next = LIMIT_NS;

	for (unsigned slot = 0; slot < SLOTS; slot++) {
		reap(slot);
		if (slots[slot].starved_one_in != 0 && slots[slot].starved_until <= sim_now())
			starve(slot, 0, 0);
		if (slots[slot].starved_one_in != 0 && slots[slot].starved_until < next)
			next = slots[slot].starved_until;
		if (!slots[slot].proc && slots[slot].start_at <= sim_now())
			start(slot);
		if (!slots[slot].proc && slots[slot].start_at < next)
			next = slots[slot].start_at;
	}
	if (advance())
		return sim_now();
	if (calm_at <= sim_now())
		calm_down();
	if (calm_at < next)
		next = calm_at;
	if (phase_ends > sim_now() && phase_ends < next)
		next = phase_ends;
	for (uint32_t i = 0; i < now->n_faults; i++) {
		const struct sim_fault *fault = &now->faults[i];

		if (injected[i] || phase != USED)
			continue;
		if (due(fault) <= sim_now()) {
			injected[i] = true;
			inject(fault);
			return sim_now();
		}
		if (due(fault) < next)
			next = due(fault);
	}
	return next;
}

/* Returns the value at both ends of each sector of a block. UINT64_MAX: the values differ. */
static uint64_t word_of(const uint64_t *block)
{
	for (uint32_t i = 63; i < SIM_BLOCK / 8; i += i % 64 == 0 ? 63 : 1)
		if (block[i] != block[0])
			return UINT64_MAX;
	return block[0];
}

/*
 * Pass the final content of the volumes to the judge, as the last read of each block. A volume of
 * the backend `memory` has ended with its target.
 */
static void read_volume(uint32_t volume)
{
	static uint64_t block[SIM_BLOCK / 8];
	const uint32_t first = sim_topology_first_block(now);

	for (uint32_t i = 0; i < SIM_VOLUME_BLOCKS + 2 * first; i++) {
		if (sim_disk_get(sim_topology_volume(volume), block, SIM_BLOCK,
				 (off_t)i * SIM_BLOCK) != SIM_BLOCK)
			continue;
		if (i >= first && i < first + SIM_VOLUME_BLOCKS)
			sim_judge_store(sim_topology_block(now, volume, i - first), word_of(block));
		else if (word_of(block) != 0)
			sim_wrong("a write changed a block outside the partition");
	}
}

static void read_volumes(void)
{
	sim_remote_settle();
	for (uint32_t volume = 0; volume < SIM_VOLUMES && !now->topology.memory; volume++)
		read_volume(volume);
}

const char *sim_until_over(const struct sim_course *course)
{
	while (!course->is_over()) {
		uint64_t next = course->act();
		enum sim_end end;

		if (next <= sim_now() || course->is_over())
			continue;
		end = sim_run(course->limit_steps - sim_steps(), next);
		if (sim_judge_verdict_now())
			return sim_judge_verdict_now();
		if (end == SIM_STEPS)
			return "the run does not end: limit of points";
		if (sim_now() >= course->limit_ns)
			return "a program does not end: limit of time";
	}
	return NULL;
}

/* Returns the longest time of an operation without faults. */
static uint64_t calm_ns(const struct sim_scenario *s)
{
	return s->topology.tcp_front || s->topology.tcp_back ? 2 * CALM_NS : CALM_NS;
}

/* Returns the volumes (a bit mask) whose clients must not notice any fault. */
static uint32_t calm_volumes(const struct sim_scenario *s)
{
	uint32_t calm = ALL_VOLUMES;

	if (!sim_scenario_is_smooth(s) || s->io_timeout_ms * (S / 1000) < calm_ns(s))
		return 0;
	for (uint32_t i = 0; i < s->n_faults; i++) {
		unsigned slot = place_of(kind_here(s->faults[i].kind), s->faults[i].client);

		if (s->faults[i].kind == SIM_GROW)
			continue;
		if (slot >= GATEWAY || s->faults[i].kind == SIM_POWER_CUT ||
		    s->faults[i].kind == SIM_BLACKOUT || s->faults[i].kind >= SIM_STALL_REMOTE)
			return 0;
		if (s->topology.spans)
			return 0;
		/* not calm: the two volumes of the target, which SIM_EXCHANGE exchanges */
		calm &= ~((1u | 1u << SIM_TARGETS) << (slot - TARGET));
	}
	return calm;
}

/*
 * Whether the backend `nbd` can lose a connection. It then executes writes again, and its verifier
 * changes.
 */
static bool can_lose_server(const struct sim_scenario *s)
{
	return s->remote.kind == SIM_NBD && (s->n_faults != 0 || !sim_scenario_is_smooth(s));
}

/* Whether a session can meet another volume, or a volume with another verifier. */
static bool volumes_can_change(const struct sim_scenario *s)
{
	if (s->topology.exchanges || s->topology.memory || s->disk.sync_fails_one_in != 0 ||
	    s->disk.write_fails_one_in != 0 || can_lose_server(s))
		return true;
	for (uint32_t i = 0; i < s->n_faults; i++)
		if (s->faults[i].kind == SIM_POWER_CUT || s->faults[i].kind == SIM_BLACKOUT)
			return true;
	return false;
}

/* Returns a message if an operation ended with ESTALE without a cause, else NULL. */
static const char *check_stale(const struct sim_scenario *s)
{
	for (int i = 0; i < SIM_OPS && !volumes_can_change(s); i++)
		if (sim_judge_count((enum sim_op)i, SIM_R_STALE) != 0)
			return "an operation failed with ESTALE, but no volume has changed";
	return NULL;
}

void sim_scenario_run(const struct sim_scenario *s, struct sim_outcome *outcome)
{
	static const struct sim_course course = {
		.act = act, .is_over = is_over, .limit_ns = LIMIT_NS, .limit_steps = LIMIT_STEPS};

	now = s;
	memset(injected, 0, sizeof(injected));
	enter(USED, SIM_NEVER);
	sim_begin(s->seed ^ 0x5eed);
	sim_rates_set(&s->rates);
	sim_has_membarrier = s->membarrier;
	sim_memory_failures = 0;
	restarted_at = SIM_NEVER;
	calm_at = CALM_AT_NS(s->topology.guest);
	sim_disk_begin(&s->disk);
	sim_remote_begin(&s->remote);
	sim_judge_begin(s->resume || can_lose_server(s), s->topology.spans,
			s->topology.guest ? 1 : 0);
	sim_topology_files(s);
	memset(slots, 0, sizeof(slots));
	memset(first_uuid, 0, sizeof(first_uuid));
	has_exchanged = false;
	for (unsigned slot = 0; slot < SLOTS; slot++)
		slots[slot].start_at = SIM_NEVER;
	for (uint32_t i = 0; i < s->topology.n_targets && s->topology.shape != SIM_EMBEDDED; i++)
		slots[TARGET + i].start_at = 0;
	if (s->gateway && s->topology.shape == SIM_SEPARATE)
		slots[GATEWAY].start_at = 0;
	if (s->topology.paths)
		slots[GATEWAY_1].start_at = 0;
	slots[DISK].start_at = s->topology.guest ? DISK_START_NS : SIM_NEVER;
	for (unsigned slot = CLIENTS; slot < CLIENTS + s->n_clients; slot++)
		slots[slot].start_at = s->jobs[slot - CLIENTS].ops != 0 ? 0 : SIM_NEVER;
	slots[SWAP].start_at = s->topology.swaps ? 0 : SIM_NEVER;
	outcome->conditions = sim_scenario_conditions(s);
	outcome->verdict = sim_until_over(&course);
	for (int i = 0; i < SIM_OPS; i++)
		for (int k = 0; k < SIM_RESULTS; k++)
			outcome->ops[i][k] = sim_judge_count((enum sim_op)i, (enum sim_result)k);
	read_volumes();
	if (!outcome->verdict)
		outcome->verdict = sim_judge_verdict();
	if (!outcome->verdict)
		outcome->verdict = check_stale(s);
	if (!outcome->verdict)
		outcome->verdict = sim_judge_calm(calm_volumes(s), calm_ns(s));
	outcome->trace = sim_trace();
	outcome->steps = sim_steps();
	outcome->ns = sim_now();
	outcome->failed_allocations = sim_memory_failures;
	memset(outcome->faults, 0, sizeof(outcome->faults));
	for (uint32_t i = 0; i < s->n_faults; i++)
		outcome->faults[s->faults[i].kind] += injected[i];
	sim_procs_clear();
}
