/* SPDX-License-Identifier: BSD-3-Clause */
/* topology.c - see topology.h */
#include "topology.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "scenario.h"

#define OSD_OP_TIMEOUT_S 1u
#define TEXT 8192u
#define DISK_NS 1000000u /* from here on a guest is likely to use its disk */
#define UUID "6f1c0f8b-5c2c-4f5e-9a53-000000000001" /* of volume 0 */

/* -- drawing -- */

static void draw_zeroes(struct sim_scenario *s)
{
	for (uint32_t i = 0; i < s->n_clients; i++) {
		s->jobs[i].shares[SIM_ZERO] = 1 + sim_draw(2);
		s->jobs[i].shares[SIM_ZERO_FUA] = sim_draw(2);
		s->jobs[i].shares[SIM_DISCARD] = sim_draw(3);
	}
}

static void draw_shape(struct sim_scenario *s)
{
	struct sim_topology *t = &s->topology;

	t->shape = s->gateway ? SIM_JOINED : SIM_EMBEDDED;
	t->lane_threads = sim_draw(4) == 0;
	t->remote_reads = sim_draw(4) == 0;
}

/* Let only target 1 have faults: clients of target 0 must not notice them. */
static void spare_target(struct sim_scenario *s)
{
	s->target_stage = s->gateway_stage = (struct sim_stage){0};
	s->disk = (struct sim_disk_faults){0};
	s->rates.stall_one_in = 0;
	s->io_timeout_ms = 320; /* an IO must not time out while its client pauses (think_ns) */
	for (uint32_t i = 0; i < s->n_faults; i++) {
		s->faults[i].kind = sim_draw(2) != 0 ? SIM_KILL_TARGET : SIM_STOP_TARGET;
		s->faults[i].client = 1;
	}
}

static void draw_exchanges(struct sim_scenario *s)
{
	s->resume |= sim_draw(4) != 0;
	for (uint32_t n = sim_draw(4) == 0 ? 2 : 1; n > 0; n--)
		s->faults[s->n_faults++] = (struct sim_fault){
			.kind = SIM_EXCHANGE,
			.client = sim_draw(s->topology.n_targets),
			.at_ns = (sim_draw(2) != 0 ? 200000u : 50000000u) + sim_draw(20000000),
			.down_ns = 1000000u + sim_draw(40000000)};
	for (uint32_t i = 0; i < s->n_clients; i++)
		s->jobs[i].think_ns += 1000000; /* sessions last until the exchange */
	s->topology.exchanges = true;
}

void sim_topology_draw(struct sim_scenario *s)
{
	s->topology.n_targets = 1;
	if (sim_draw(3) == 0)
		draw_zeroes(s);
	if (sim_draw(12) == 0)
		draw_shape(s);
	else if (s->n_clients > 1 && sim_draw(4) == 0)
		s->topology.n_targets = SIM_TARGETS;
	if (s->topology.n_targets == SIM_TARGETS && sim_draw(2) == 0)
		spare_target(s);
	if (s->topology.shape != SIM_EMBEDDED && s->n_faults != 0 && sim_draw(6) == 0)
		draw_exchanges(s);
	if (s->topology.shape == SIM_SEPARATE && s->gateway && s->topology.n_targets == 1 &&
	    !s->topology.exchanges && sim_draw(8) == 0) {
		s->topology.spans = true;
		s->topology.n_targets = SIM_TARGETS;
	}
}

/* Whether the target keeps its process, and so the volume of the backend `memory`. */
static bool spares_targets(const struct sim_scenario *s, const struct sim_fault *fault)
{
	switch (fault->kind) {
	case SIM_KILL_CLIENT:
	case SIM_STARVE_CLIENT:
		return true;
	case SIM_KILL_GATEWAY:
	case SIM_STOP_GATEWAY:
	case SIM_STARVE_GATEWAY:
		return s->topology.shape == SIM_SEPARATE;
	default:
		return false;
	}
}

/* Let the targets use the backend `memory`, and remove the faults that would end them. */
static void use_memory(struct sim_scenario *s)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < s->n_faults; i++)
		if (spares_targets(s, &s->faults[i]))
			s->faults[kept++] = s->faults[i];
	s->n_faults = kept;
	s->disk = (struct sim_disk_faults){0};
	s->topology.memory = true;
}

/*
 * With the backend `memory`, plain accesses are no points: a list is then copied in one step, as
 * the data of another IO is.
 */
void sim_topology_draw_lists(struct sim_scenario *s)
{
	const struct sim_topology *t = &s->topology;

	s->topology.lists = true;
	for (uint32_t i = 0; i < s->n_clients; i++) {
		s->jobs[i].shares[SIM_EXTENTS] = 1 + sim_draw(2);
		if (!s->jobs[i].own)
			continue;
		s->jobs[i].shares[SIM_READ_LIST] = 2 + sim_draw(4);
		s->jobs[i].shares[SIM_WRITE_LIST] = 2 + sim_draw(4);
	}
	if (sim_draw(4) == 0 && t->shape != SIM_EMBEDDED && !t->exchanges && !t->spans &&
	    !s->rates.plain_points)
		use_memory(s);
}

void sim_topology_draw_tcp(struct sim_scenario *s)
{
	struct sim_topology *t = &s->topology;
	uint32_t legs = 1 + sim_draw(3);

	if (t->shape == SIM_EMBEDDED)
		return;
	t->tcp_back = t->shape == SIM_SEPARATE && s->gateway && legs & 1;
	t->tcp_front = !t->tcp_back || legs & 2;
	t->tcp_direct = t->tcp_front && t->tcp_back && sim_draw(2) == 0;
	t->tcp_revoke_ms = sim_scenario_is_smooth(s) || sim_draw(2) == 0 ? 1000 : 2u << sim_draw(6);
}

/* Most faults hit a guest that uses its disk. */
static void draw_disk_fault(struct sim_scenario *s)
{
	static const enum sim_fault_kind kinds[] = {SIM_KILL_DISK, SIM_KILL_DISK, SIM_STOP_DISK,
						    SIM_KILL_CLIENT, SIM_STARVE_DISK};
	const uint32_t at_ns = 50000u << sim_draw(8);

	s->faults[s->n_faults++] = (struct sim_fault){.kind = kinds[sim_draw(5)],
						      .at_ns = DISK_NS + at_ns + sim_draw(at_ns),
						      .down_ns = (uint64_t)(50000u << sim_draw(10)),
						      .one_in = 4u << sim_draw(6)};
}

/*
 * Draw a power cut of the target as the fault that matters: the guest flushes often. In some runs
 * the role is started again as well.
 */
static void draw_guest_cut(struct sim_scenario *s)
{
	struct sim_job *job = &s->jobs[0];

	s->disk = (struct sim_disk_faults){0};
	s->target_stage = s->gateway_stage = (struct sim_stage){0};
	s->io_timeout_ms = 1280;
	job->ops = 128;
	job->shares[SIM_FLUSH] = 1;
	s->faults[0] = (struct sim_fault){.kind = SIM_POWER_CUT,
					  .at_ns = DISK_NS + sim_draw(12000000),
					  .down_ns = 50000u << sim_draw(8)};
	s->n_faults = 1;
	if (sim_draw(2) == 0)
		draw_disk_fault(s);
}

/*
 * The guest waits for each request, also for one whose reply the stage `fault` drops: so it drops
 * none. A gateway cannot pass regions on from tcp to shm-comch or to mapped regions of loop.
 */
void sim_topology_draw_guest(struct sim_scenario *s)
{
	struct sim_job *job = &s->jobs[0];

	if (s->topology.shape == SIM_EMBEDDED || s->topology.spans || s->topology.exchanges)
		return;
	s->topology.guest = true;
	if (s->gateway && !s->topology.tcp_back)
		s->topology.tcp_front = false;
	s->target_stage.dropped = s->gateway_stage.dropped = 0;
	job->guest = SIM_GUEST | (sim_draw(4) != 0 ? SIM_GUEST_FLUSHES : 0) |
		     (sim_draw(2) != 0 ? SIM_GUEST_INDIRECT : 0) |
		     (sim_draw(2) != 0 ? SIM_GUEST_EVENTS : 0) |
		     (sim_draw(2) != 0 ? SIM_GUEST_EXCHANGES : 0);
	job->depth = job->depth > 4 ? 4 : job->depth;
	memset(job->shares, 0, sizeof(job->shares));
	job->shares[SIM_READ] = 4;
	job->shares[job->guest & SIM_GUEST_FLUSHES ? SIM_WRITE : SIM_FUA] = 4;
	job->shares[SIM_FLUSH] = job->guest & SIM_GUEST_FLUSHES ? sim_draw(3) : 0;
	job->shares[job->guest & SIM_GUEST_FLUSHES ? SIM_ZERO : SIM_ZERO_FUA] = sim_draw(2);
	job->shares[SIM_DISCARD] = sim_draw(2);
	if (sim_scenario_is_smooth(s) && s->n_faults == 0 && sim_draw(3) != 0)
		return;
	if (sim_draw(3) == 0)
		job->guest |= SIM_GUEST_LEAVES;
	if (job->guest & SIM_GUEST_FLUSHES && !s->topology.memory && s->topology.n_targets == 1 &&
	    sim_draw(4) == 0)
		draw_guest_cut(s);
	for (uint32_t n = sim_draw(4); n > 0; n--)
		draw_disk_fault(s);
}

static enum sim_fault_kind draw_loss(enum sim_remote_kind kind)
{
	if (kind == SIM_RBD)
		return SIM_REMOVE_REMOTE;
	return sim_draw(2) == 0 ? SIM_KILL_REMOTE : SIM_CUT_REMOTE;
}

/* Most stalls of `rbd` are longer than osd_op_timeout. */
static void draw_remote_fault(struct sim_scenario *s)
{
	const bool stalls = sim_draw(2) == 0;
	const uint32_t at_ns = 50000u << sim_draw(10);

	s->faults[s->n_faults++] = (struct sim_fault){
		.kind = stalls ? SIM_STALL_REMOTE : draw_loss(s->remote.kind),
		.at_ns = at_ns + sim_draw(at_ns),
		.part = s->remote.kind == SIM_RBD ? sim_draw(SIM_REMOTE_PARTS + 1)
						  : SIM_REMOTE_PARTS,
		.down_ns = stalls && s->remote.kind == SIM_RBD && sim_draw(3) != 0
				   ? OSD_OP_TIMEOUT_S * 1000000000ull + sim_draw(1000000000)
				   : (uint64_t)(50000u << sim_draw(14))};
}

/* Let the targets stop while operations of `rbd` time out. */
static void draw_stop_in_stall(struct sim_scenario *s)
{
	const struct sim_fault *stall = &s->faults[s->n_faults - 1];

	s->faults[s->n_faults++] = (struct sim_fault){
		.kind = sim_draw(3) == 0 ? SIM_KILL_TARGET : SIM_STOP_TARGET,
		.client = sim_draw(s->topology.n_targets),
		.at_ns = stall->at_ns + OSD_OP_TIMEOUT_S * 1000000000ull + sim_draw(100000000),
		.down_ns = 1000000u + sim_draw(40000000)};
}

/* Let a target start again while the server can still execute writes of the former one. */
static void draw_quick_restart(struct sim_scenario *s)
{
	s->faults[s->n_faults++] =
		(struct sim_fault){.kind = SIM_KILL_TARGET,
				   .client = sim_draw(s->topology.n_targets),
				   .at_ns = 1000000u << sim_draw(8),
				   .down_ns = 100000u + sim_draw(SIM_REMOTE_LATE_NS / 4)};
}

void sim_topology_draw_remote(struct sim_scenario *s)
{
	struct sim_remote_faults *remote = &s->remote;

	if (s->topology.shape == SIM_EMBEDDED || s->topology.exchanges || s->topology.memory)
		return;
	remote->kind = sim_draw(2) == 0 ? SIM_RBD : SIM_NBD;
	remote->slowest_ns = SIM_REMOTE_FAST_NS >> sim_draw(6);
	if (sim_scenario_is_smooth(s) && s->n_faults == 0 && sim_draw(3) != 0)
		return;
	remote->slowest_ns <<= sim_draw(8);
	if (sim_draw(2) == 0)
		s->io_timeout_ms = 2560;
	if (sim_draw(4) == 0)
		remote->fails_one_in = 16u << sim_draw(6);
	/* the IO of the exporter has no deadline: without a reply it would last too long */
	if (remote->kind == SIM_NBD && !s->topology.swaps && sim_draw(4) == 0)
		remote->silent_one_in = 16u << sim_draw(6);
	if (remote->kind == SIM_NBD && sim_draw(4) == 0)
		remote->garbled_one_in = 16u << sim_draw(6);
	if (remote->kind == SIM_NBD && sim_draw(4) == 0)
		remote->short_one_in = 16u << sim_draw(6);
	for (uint32_t n = sim_draw(4); n > 0 && s->n_faults + 2 <= SIM_FAULTS; n--) {
		draw_remote_fault(s);
		if (s->faults[s->n_faults - 1].kind == SIM_STALL_REMOTE && sim_draw(2) == 0)
			draw_stop_in_stall(s);
	}
	if (remote->kind == SIM_NBD && s->n_faults < SIM_FAULTS && sim_draw(2) == 0)
		draw_quick_restart(s);
	/* no session starts earlier, because of quiesce_time */
	for (uint32_t i = 0; remote->kind == SIM_NBD && i < s->n_faults; i++)
		s->faults[i].at_ns += SIM_REMOTE_LATE_NS;
}

void sim_topology_draw_legs(struct sim_scenario *s)
{
	const uint32_t leg = sim_draw(SIM_TARGETS);
	uint64_t at_ns = 10000000u + sim_draw(50000000); /* after the start of most sessions */

	if (!s->topology.spans || s->remote.kind != SIM_NO_REMOTE || s->n_faults + 2 > SIM_FAULTS)
		return;
	for (uint32_t n = 0; n < 2; n++) {
		s->faults[s->n_faults++] =
			(struct sim_fault){.kind = SIM_EXCHANGE,
					   .client = leg,
					   .at_ns = at_ns,
					   .down_ns = 1000000u + sim_draw(40000000)};
		at_ns += 1000000u + sim_draw(200000000);
	}
	for (uint32_t i = 0; i < s->n_clients; i++)
		s->jobs[i].think_ns += 1000000; /* sessions last until the exchange */
	s->topology.exchanges = true;
	s->topology.odd_size = sim_draw(2) != 0;
}

/*
 * Only a client that resumes its session changes the path. The exporter does not, and with it there
 * would be too many processes.
 */
void sim_topology_add_paths(struct sim_scenario *s)
{
	struct sim_topology *t = &s->topology;

	t->paths = s->seed % 8 == 6 && s->gateway && s->resume && t->shape == SIM_SEPARATE &&
		   !t->swaps;
	if (!t->paths || s->seed % 16 != 6)
		return;
	/* gateways that write received data into the memory of the clients */
	t->tcp_back = true;
	t->tcp_front = t->tcp_direct = false;
	t->tcp_revoke_ms = 1000;
}

/* Omit the operations that no client may submit. */
static void limit_shares(struct sim_scenario *s, uint32_t features)
{
	for (uint32_t i = 0; i < s->n_clients; i++) {
		uint32_t *shares = s->jobs[i].shares;

		if (features & SIM_NO_ZEROES)
			shares[SIM_ZERO] = shares[SIM_ZERO_FUA] = shares[SIM_DISCARD] = 0;
		if (!s->topology.lists)
			shares[SIM_READ_LIST] = shares[SIM_WRITE_LIST] = shares[SIM_EXTENTS] = 0;
	}
}

void sim_topology_limit(struct sim_scenario *s, uint32_t features)
{
	struct sim_topology *t = &s->topology;

	if (features & SIM_NO_SHAPE)
		t->shape = SIM_SEPARATE;
	if (features & SIM_NO_SWAPS || t->shape == SIM_EMBEDDED)
		t->swaps = false;
	if (features & SIM_ONE_TARGET) {
		t->n_targets = 1;
		t->spans = false;
	}
	if (features & SIM_NO_LISTS || t->spans) /* a gateway that joins two volumes has neither */
		t->lists = false;
	if (features & SIM_NO_TCP || t->shape == SIM_EMBEDDED)
		t->tcp_front = t->tcp_back = false;
	if (features & SIM_NO_TCP_DIRECT || !t->tcp_front || !t->tcp_back)
		t->tcp_direct = false;
	if (features & SIM_NO_PATHS || t->shape != SIM_SEPARATE)
		t->paths = false;
	if (features & SIM_NO_SERVER)
		s->remote.kind = SIM_NO_REMOTE;
	if (features & SIM_NO_GUEST || t->shape == SIM_EMBEDDED || t->spans)
		t->guest = false;
	if (!t->guest)
		s->jobs[0].guest = 0;
	limit_shares(s, features);
	for (uint32_t i = 0; i < s->n_clients; i++) {
		s->jobs[i].knows_uuids = t->exchanges && !t->spans;
		s->jobs[i].has_legs = t->exchanges && t->spans;
	}
	for (uint32_t i = 0; i < s->n_clients; i++)
		s->jobs[i].volume = t->shape == SIM_EMBEDDED ? i : i % t->n_targets;
	for (uint32_t i = 0; i < s->n_clients && t->spans; i++) {
		s->jobs[i].volume = 0;
		s->jobs[i].first = SIM_VOLUME_BLOCKS - s->jobs[i].blocks / 2;
	}
}

#define CHUNK_BLOCKS 2u
#define MARGIN_BLOCKS 8u /* blocks of a store before and after the partition */

/* The gateway alternates between the two targets of the volume; else one follows the other. */
static bool stripes(const struct sim_scenario *s)
{
	return s->topology.spans && s->seed % 2 == 1;
}

uint32_t sim_topology_block(const struct sim_scenario *s, uint32_t volume, uint32_t block)
{
	if (!stripes(s) || volume >= SIM_TARGETS)
		return volume * SIM_VOLUME_BLOCKS + block;
	return (block / CHUNK_BLOCKS * SIM_TARGETS + volume) * CHUNK_BLOCKS + block % CHUNK_BLOCKS;
}

/* The seed decides this without a draw, which would change the other scenarios. */
uint32_t sim_topology_first_block(const struct sim_scenario *s)
{
	const struct sim_topology *t = &s->topology;

	return s->seed % 16 == 5 && !t->memory && !t->exchanges ? MARGIN_BLOCKS : 0;
}

void sim_topology_print(const struct sim_scenario *s)
{
	static const char *const shapes[SIM_SHAPES] = {NULL, "gateway and target in one process",
						       "targets inside the clients"};
	const struct sim_topology *t = &s->topology;

	if (t->shape != SIM_SEPARATE)
		fprintf(sim_out, "  %s, %s, %s\n", shapes[t->shape],
			t->lane_threads ? "a thread for each lane"
					: "lanes of several roles on one thread",
			t->remote_reads ? "remote reads and writes" : "mapped regions");
	if (t->spans)
		fprintf(sim_out, "  two targets with one volume%s\n",
			stripes(s) ? ", in chunks of two blocks" : "");
	else if (t->n_targets > 1)
		fprintf(sim_out, "  two targets, client 2 uses the second\n");
	if (t->swaps)
		fprintf(sim_out,
			"  regions are exported and unexported while their session runs\n");
	if (s->jobs[0].shares[SIM_ZERO] != 0)
		fprintf(sim_out, "  writes of zeroes and discards\n");
	if (t->lists)
		fprintf(sim_out, "  lists and extents\n");
	if (t->memory)
		fprintf(sim_out, "  backend memory\n");
	if (s->remote.kind != SIM_NO_REMOTE)
		fprintf(sim_out,
			"  backend %s: operations of at most %.3f ms; one in %u fails, in %u has no reply, "
			"in %u an invalid one, in %u a short one\n",
			s->remote.kind == SIM_RBD ? "rbd" : "nbd",
			(double)s->remote.slowest_ns / 1e6, s->remote.fails_one_in,
			s->remote.silent_one_in, s->remote.garbled_one_in, s->remote.short_one_in);
	if (sim_topology_first_block(s) != 0)
		fprintf(sim_out, "  each volume is a partition of its store\n");
	if (t->guest)
		fprintf(sim_out, "  client 1 is a guest:%s%s%s%s%s\n",
			s->jobs[0].guest & SIM_GUEST_FLUSHES ? " flushes" : "",
			s->jobs[0].guest & SIM_GUEST_INDIRECT ? " indirect" : "",
			s->jobs[0].guest & SIM_GUEST_EVENTS ? " event-index" : "",
			s->jobs[0].guest & SIM_GUEST_LEAVES ? " leaves" : "",
			s->jobs[0].guest & SIM_GUEST_EXCHANGES ? " exchanges-memory" : "");
	if (t->paths)
		fprintf(sim_out, "  two gateways, each a path to the same targets\n");
	if (t->tcp_front || t->tcp_back)
		fprintf(sim_out, "  TCP:%s%s%s, revoke_timeout %u ms\n",
			t->tcp_front ? " from the clients" : "",
			t->tcp_back ? " to the targets" : "",
			t->tcp_direct ? ", targets connect to the clients" : "", t->tcp_revoke_ms);
}

/* -- configurations -- */

struct text {
	char at[TEXT];
	size_t n;
};

static void add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(struct text *text, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	text->n += (size_t)vsnprintf(text->at + text->n, TEXT - text->n, format, ap);
	va_end(ap);
	if (text->n >= TEXT)
		sim_fail("a configuration is too long");
}

static void put(const char *path, const struct text *text)
{
	if (sim_disk_put(path, text->at, text->n) != 0)
		sim_fail("%s cannot be created", path);
}

static void add_device(struct text *text, const struct sim_topology *t, const char *name, bool tcp,
		       uint32_t number)
{
	if (!tcp) {
		add(text,
		    "%s = { transport = \"shm-comch\"; dir = \"/run/gantry\"; pci = \"0%u:00.0\"; };\n",
		    name, number);
		return;
	}
	add(text,
	    "%s = { transport = \"tcp\"; auth = \"none\"; direct = %s; "
	    "direct_networks = \"192.0.2.0/24\"; revoke_timeout = \"%ums\"; services = { ",
	    name, t->tcp_direct ? "true" : "false", t->tcp_revoke_ms);
	for (uint32_t volume = 0; volume < SIM_TARGETS; volume++)
		add(text, "volume%u = \"192.0.2.7:%u\"; other%u = \"192.0.2.7:%u\"; ", volume,
		    1000 * number + volume, volume, 1000 * number + 100 + volume);
	add(text, "}; };\n");
}

/* The common part of all configurations. */
static void begin(struct text *text, const struct sim_scenario *s)
{
	const struct sim_topology *t = &s->topology;

	text->n = 0;
	add(text,
	    "runtime = { stat = false; log = \"info\"; spin = \"%" PRIu64
	    "ns\"; threads = \"%s\"; };\ndevices = {\n",
	    s->spin_ns, t->lane_threads ? "separate" : "shared");
	add_device(text, t, "front", t->tcp_front, 3);
	add_device(text, t, "back", t->tcp_back, 4);
	add(text, "wire = { transport = \"loop\"; mapped = %s; };\n};\nroles = {\n",
	    t->remote_reads ? "false" : "true");
}

static void end(struct text *text, const char *path)
{
	add(text, "};\n");
	put(path, text);
}

/*
 * A quarter of the scenarios with the stage fault limits IOs, too. The seed decides this without a
 * draw, which would change the other scenarios.
 */
static bool has_limits(uint64_t seed)
{
	return seed % 4 == 3;
}

bool sim_topology_limits_io(const struct sim_scenario *s)
{
	return has_limits(s->seed) &&
	       (s->target_stage.delay_us != 0 || s->gateway_stage.delay_us != 0);
}

static const char *qos_of(uint64_t seed)
{
	if (!has_limits(seed))
		return "";
	return seed % 8 == 3 ? ", { type = \"qos\"; session_iops = 4000; burst = \"1ms\"; }"
			     : ", { type = \"qos\"; iops = 64000; bandwidth = \"64MiB\"; "
			       "session_bandwidth = \"8MiB\"; burst = \"1ms\"; }";
}

static void add_fault(struct text *text, const struct sim_stage *stage, uint64_t seed)
{
	add(text,
	    "{ type = \"fault\"; seed = %u; delay_rate = \"%u%%\"; delay = \"%lluus\"; "
	    "drop_rate = \"%u%%\"; error_rate = \"%u%%\"; duplicate_rate = \"%u%%\"; }%s",
	    (unsigned)seed & 0xffff, stage->delayed, (unsigned long long)stage->delay_us,
	    stage->dropped, stage->failed, stage->doubled, qos_of(seed));
}

/* first: first block of the partition; 0: there is none. */
static void add_stages(struct text *text, const struct sim_stage *stage, uint64_t seed,
		       uint32_t first)
{
	bool faulty = stage->delay_us != 0;

	if (!faulty && first == 0)
		return;
	add(text, "stages = ( ");
	if (faulty)
		add_fault(text, stage, seed);
	if (first != 0)
		add(text, "%s{ type = \"partition\"; offset = \"%u\"; length = \"%u\"; }",
		    faulty ? ", " : "", first * SIM_BLOCK, SIM_VOLUME_BLOCKS * SIM_BLOCK);
	add(text, " ); ");
}

/* path 0: the name of a target, or of the first gateway; 1: the name of the second gateway. */
static void add_end_point(struct text *text, const struct sim_scenario *s, const char *kind,
			  const char *device, uint32_t path, uint32_t volume)
{
	add(text, "%s { device = \"%s\"; name = \"%s%u\"; heartbeat = \"%" PRIu64 "ms\"; ", kind,
	    device, path == 0 ? "volume" : "other", volume, s->heartbeat_ms);
}

static void add_path(struct text *text, const struct sim_scenario *s, const char *device,
		     uint32_t path, uint32_t volume)
{
	add_end_point(text, s, "", device, path, volume);
	add(text, "io_timeout = \"%" PRIu64 "ms\"; timeout = \"%s\"; %s}", s->io_timeout_ms,
	    s->topology.paths ? "200ms" : "2s", s->resume && path == 0 ? "resume = \"5s\"; " : "");
}

/* Add the connection of a client, with each of its paths. */
static void add_paths(struct text *text, const struct sim_scenario *s, const char *device,
		      uint32_t volume)
{
	add(text, "connect = ( ");
	add_path(text, s, device, 0, volume);
	if (s->topology.paths) {
		add(text, ", ");
		add_path(text, s, device, 1, volume);
	}
	add(text, " ); ");
}

/* Add the connection of a gateway to a target. */
static void add_target(struct text *text, const struct sim_scenario *s, const char *device,
		       uint32_t volume)
{
	add_end_point(text, s, "", device, 0, volume);
	add(text, "io_timeout = \"%" PRIu64 "ms\"; }", s->io_timeout_ms);
}

static void add_store(struct text *text, const struct sim_scenario *s, const char *device,
		      uint32_t volume)
{
	add(text, "store%u = { role = \"target\"; ", volume);
	add_end_point(text, s, "listen =", device, 0, volume);
	if (s->topology.memory)
		add(text,
		    "};\nbackend = { type = \"memory\"; size = \"%uKiB\"; uuid = \"%.35s%u\"; }; ",
		    SIM_VOLUME_BLOCKS * SIM_BLOCK / 1024, UUID, volume + 1);
	else if (s->remote.kind == SIM_RBD)
		add(text,
		    "};\nbackend = { type = \"rbd\"; conf = \"/vol/store%u.img\"; image = \"image\"; osd_op_timeout = \"%us\"; }; ",
		    volume, OSD_OP_TIMEOUT_S);
	else if (s->remote.kind == SIM_NBD)
		add(text,
		    "};\nbackend = { type = \"nbd\"; uri = \"nbd+unix:///?socket=/vol/store%u.img\"; block = \"4KiB\"; connections = %u; quiesce_time = \"%uns\"; connect_timeout = \"%ums\"; }; ",
		    volume, 1 + (unsigned)(s->seed / 2 % 2), SIM_REMOTE_LATE_NS,
		    s->seed / 4 % 2 ? 50u : 10000u);
	else
		add(text,
		    "};\nbackend = { type = \"file\"; path = \"/vol/store%u.img\"; engine = \"%s\"; direct = false; }; ",
		    volume, s->async ? "uring" : "sync");
	add_stages(text, &s->target_stage, s->seed, sim_topology_first_block(s));
	add(text, "};\n");
}

static void add_bridge(struct text *text, const struct sim_scenario *s, const char *back,
		       uint32_t path, uint32_t volume)
{
	add(text, "bridge%u = { role = \"gateway\"; ", volume);
	add_end_point(text, s, "listen =", "front", path, volume);
	add(text, "};\nconnect = ( ");
	add_target(text, s, back, volume);
	if (s->topology.spans) {
		add(text, ", ");
		add_target(text, s, back, volume + 1);
	}
	add(text, " ); ");
	if (stripes(s))
		add(text, "mode = \"stripe\"; chunk = \"%u\"; ", CHUNK_BLOCKS * SIM_BLOCK);
	add_stages(text, &s->gateway_stage, s->seed, 0);
	add(text, "};\n");
}

static void add_load(struct text *text, const struct sim_scenario *s, const char *device,
		     uint32_t volume)
{
	add(text, "load%u = { role = \"initiator\"; ", volume);
	add_paths(text, s, device, volume);
	add(text, "};\n");
}

static void add_swap(struct text *text, const struct sim_scenario *s)
{
	add(text,
	    "swap = { role = \"exporter\"; rounds = 3; strict = false; writes = false; lists = %s; ",
	    s->topology.lists ? "true" : "false");
	add_end_point(text, s, "connect =", "front", 0, 0);
	add(text, "io_timeout = \"%" PRIu64 "ms\"; timeout = \"2s\"; };\n};\n", s->io_timeout_ms);
}

static void add_disk(struct text *text, const struct sim_scenario *s)
{
	add(text,
	    "disk = { role = \"vhost-user-blk\"; socket = \"" SIM_DISK_SOCKET
	    "\"; lanes = %u; depth = 4; ",
	    s->jobs[0].queues);
	add_paths(text, s, "front", s->jobs[0].volume);
	add(text, "};\n");
}

static uint32_t exchanged; /* bit mask of targets whose two volumes are exchanged */

const char *sim_topology_volume(uint32_t volume)
{
	static const char *const paths[SIM_VOLUMES] = {"/vol/store0.img", "/vol/store1.img",
						       "/vol/store2.img", "/vol/store3.img"};

	if (exchanged >> volume % SIM_TARGETS & 1)
		volume = (volume + SIM_TARGETS) % SIM_VOLUMES;
	return paths[volume];
}

/* margin: blocks of the store before and after the volume. sparse: the volume is a hole. */
static void make_volume(uint32_t volume, uint32_t margin, bool has_uuid, bool sparse)
{
	static uint8_t zeroes[(SIM_VOLUME_BLOCKS + 2 * MARGIN_BLOCKS) * SIM_BLOCK];
	const char *path = sim_topology_volume(volume);
	char uuid[] = UUID;

	uuid[sizeof(uuid) - 2] = (char)('1' + volume);
	if (sim_disk_put(path, sparse ? NULL : zeroes,
			 (SIM_VOLUME_BLOCKS + 2 * margin) * SIM_BLOCK) != 0 ||
	    (has_uuid && sim_disk_put_attribute(path, "user.gantry.uuid", uuid) != 0))
		sim_fail("%s cannot be created", path);
}

void sim_topology_grow(uint32_t target)
{
	if (sim_disk_grow(sim_topology_volume(target), (1 + sim_draw(4)) * SIM_BLOCK) != 0)
		sim_fail("the volume of target %u cannot grow", target);
}

void sim_topology_exchange(uint32_t target)
{
	if (sim_disk_swap(sim_topology_volume(target), sim_topology_volume(target + SIM_TARGETS)) !=
	    0)
		sim_fail("the volumes of target %u cannot be exchanged", target);
	exchanged ^= 1u << target;
}

bool sim_topology_inject_remote(const struct sim_fault *fault)
{
	if (fault->kind == SIM_STALL_REMOTE)
		sim_remote_stall(fault->down_ns, fault->part);
	else if (fault->kind == SIM_KILL_REMOTE)
		sim_remote_kill(fault->down_ns);
	else if (fault->kind == SIM_CUT_REMOTE)
		sim_remote_power_cut(fault->down_ns);
	else
		sim_remote_remove(fault->down_ns);
	return fault->kind == SIM_CUT_REMOTE;
}

const char *sim_topology_store(uint32_t target)
{
	return target == 0 ? "/etc/store0.conf" : "/etc/store1.conf";
}

const char *sim_topology_bridge(uint32_t number)
{
	return number == 0 ? "/etc/bridge0.conf" : "/etc/bridge1.conf";
}

void sim_topology_files(const struct sim_scenario *s)
{
	static struct text text;
	const struct sim_topology *t = &s->topology;
	uint32_t n_volumes = t->shape == SIM_EMBEDDED ? s->n_clients : t->n_targets;

	exchanged = 0;
	for (uint32_t i = 0; i < t->n_targets; i++) {
		begin(&text, s);
		add_store(&text, s,
			  t->shape == SIM_JOINED ? "wire"
			  : s->gateway           ? "back"
						 : "front",
			  i);
		if (t->shape == SIM_JOINED)
			add_bridge(&text, s, "wire", 0, i);
		end(&text, sim_topology_store(i));
	}
	for (uint32_t path = 0; path < SIM_PATHS; path++) {
		begin(&text, s);
		for (uint32_t i = 0; i < (t->spans ? 1 : t->n_targets); i++)
			add_bridge(&text, s, "back", path, i);
		end(&text, sim_topology_bridge(path));
	}
	begin(&text, s);
	for (uint32_t i = 0; i < n_volumes; i++) {
		add_load(&text, s, t->shape == SIM_EMBEDDED ? "wire" : "front", i);
		if (t->shape == SIM_EMBEDDED)
			add_store(&text, s, "wire", i);
		make_volume(i, sim_topology_first_block(s), t->exchanges, t->lists);
	}
	end(&text, "/etc/load.conf");
	begin(&text, s);
	add_swap(&text, s);
	end(&text, "/etc/swap.conf");
	begin(&text, s);
	add_disk(&text, s);
	end(&text, "/etc/disk.conf");
	for (uint32_t i = 0; i < t->n_targets && t->exchanges; i++)
		make_volume(i + SIM_TARGETS, t->odd_size ? 1 : 0, true, t->lists);
}
