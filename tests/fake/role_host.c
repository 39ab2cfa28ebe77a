/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine_ops.h"
#include "role_host.h"

#define MAX_TURNS 5000000u

enum step {
	STEP_IDLE,
	STEP_READY,
	STEP_EXPORTED,
	STEP_STARTED,
	STEP_RUNNING,
	STEP_CLOSE,
	STEP_CLOSED
};

struct gantry_chain {
	struct gantry_hop hops[3];
	struct gantry_io *ios;
	struct fake_role_host *rh;
};

static struct fake_role_host *of(const struct gantry_role_host *pub)
{
	return pub->core;
}

/* -- the volume -- */

static struct fake_fault *fault_of(struct fake_role_host *rh, const struct gantry_io *io)
{
	uint64_t n = rh->n_ops[io->opcode];

	for (unsigned i = 0; i < FAKE_FAULTS; i++) {
		struct fake_fault *f = &rh->faults[i];

		if (f->kind && f->opcode == io->opcode && n >= f->nth && n <= f->nth + f->more)
			return f;
	}
	return NULL;
}

static void do_write(struct fake_role_host *rh, struct gantry_io *io, const struct fake_fault *f)
{
	uint64_t offset = io->offset;
	uint32_t length = io->length;
	enum fake_fault_kind kind = f ? f->kind : 0;

	if (kind == FAKE_LOST || kind == FAKE_STATUS)
		return;
	if (kind == FAKE_MISDIRECTED)
		offset = (offset + length) % rh->volume.size;
	if (kind == FAKE_TORN || kind == FAKE_HALF_STATUS)
		length /= 2;
	if (kind == FAKE_TORN_SECTOR)
		length = 512;
	memcpy(rh->before + offset, rh->data + offset, length);
	memcpy(rh->data + offset, io->data, length);
	if (kind == FAKE_FLIPPED)
		rh->data[offset + length / 2] ^= 0x10;
}

static void do_read(struct fake_role_host *rh, struct gantry_io *io, const struct fake_fault *f)
{
	enum fake_fault_kind kind = f ? f->kind : 0;
	uint64_t offset = io->offset;

	if (kind == FAKE_UNMOVED || kind == FAKE_STATUS)
		return;
	if (kind == FAKE_MISDIRECTED)
		offset = (offset + io->length) % rh->volume.size;
	memcpy(io->data, (kind == FAKE_STALE ? rh->before : rh->data) + offset, io->length);
	if (kind == FAKE_FLIPPED)
		((uint8_t *)io->data)[3] ^= 0x01;
}

/* Report each chunk of FAKE_EXTENT bytes that is all zeroes as a hole. */
static void do_extents(const struct fake_role_host *rh, const struct gantry_io *io)
{
	struct gantry_extents extents = {0};
	uint32_t at, length;

	for (at = 0; at < io->length; at += length) {
		const uint8_t *data = rh->data + io->offset + at;

		length = io->length - at < FAKE_EXTENT ? io->length - at : FAKE_EXTENT;
		if (gantry_extents_add(&extents, length,
				       data[0] || memcmp(data, data + 1, length - 1)
					       ? 0
					       : GANTRY_EXTENT_HOLE | GANTRY_EXTENT_ZERO))
			break;
	}
	gantry_extents_finish(io, &extents);
	if (rh->bad_extents)
		((struct gantry_extents *)io->data)->count = GANTRY_EXTENTS_MAX + 1;
}

static void execute(struct fake_role_host *rh, struct gantry_io *io, const struct fake_fault *f)
{
	if (io->opcode == GANTRY_OP_WRITE)
		do_write(rh, io, f);
	else if (io->opcode == GANTRY_OP_READ)
		do_read(rh, io, f);
	else if (io->opcode == GANTRY_OP_WRITE_ZEROES || io->opcode == GANTRY_OP_DISCARD)
		memset(rh->data + io->offset, 0, io->length);
	else if (io->opcode == GANTRY_OP_EXTENTS)
		do_extents(rh, io);
	io->status = f && (f->kind == FAKE_STATUS || f->kind == FAKE_HALF_STATUS)
			     ? (uint16_t)f->status
			     : GANTRY_S_OK;
	io->hop_ns[GANTRY_HOP_TARGET] = 100;
	if (f && f->kind == FAKE_DOUBLED) {
		const struct gantry_hop *hop = io->hop;

		gantry_complete(io);
		io->hop = hop;
	}
	gantry_complete(io);
}

static const struct gantry_region *find_region(const struct fake_role_host *rh, uint32_t handle)
{
	if (handle == 1)
		return rh->region;
	return handle < FAKE_REGIONS ? rh->regions[handle] : NULL;
}

static void check(struct fake_role_host *rh, const struct gantry_io *io)
{
	const struct gantry_volume_info *v = &rh->volume;
	const struct gantry_region *r = find_region(rh, io->region);

	rh->n_bad += !(v->ops & 1u << io->opcode) || !io->busy || (io->flags & ~GANTRY_IO_FLAGS);
	if (gantry_op_has_range(io->opcode)) {
		rh->n_bad += !io->length || io->length % v->block_size ||
			     (gantry_op_has_data(io->opcode) && io->length > v->max_io) ||
			     io->offset % v->block_size ||
			     !gantry_range_ok(io->offset, io->length, v->size);
		rh->last_offset = io->offset;
	}
	if (gantry_op_has_data(io->opcode))
		rh->n_bad += !r || !gantry_range_ok(io->region_offset, io->length, r->length) ||
			     (uint8_t *)r->addr + io->region_offset != io->data ||
			     io->region_offset % 4096;
	rh->last_deadline_us = io->deadline_us;
	rh->last_flags = io->flags;
}

static int volume_submit(void *self, struct gantry_io *io)
{
	struct fake_role_host *rh = self;
	struct fake_fault *f;

	check(rh, io);
	rh->n_ops[io->opcode]++;
	f = fault_of(rh, io);
	if (f && f->kind == FAKE_REFUSED)
		return f->rc;
	if (rh->seen)
		rh->seen(rh, io);
	if (rh->inline_completion) {
		execute(rh, io, f);
		return 0;
	}
	if (rh->n_held == FAKE_HELD)
		fake_fail("more than %d IOs in flight", FAKE_HELD);
	io->frame[0] = (uintptr_t)f;
	rh->held[rh->n_held++] = io;
	if (rh->n_held > rh->max_held)
		rh->max_held = rh->n_held;
	return 0;
}

static void complete_held(struct fake_role_host *rh, int lost)
{
	struct gantry_io *ios[FAKE_HELD];
	unsigned n = rh->n_held;

	memcpy(ios, rh->held, n * sizeof(ios[0]));
	rh->n_held = 0;
	for (unsigned i = 0; i < n; i++) {
		struct gantry_io *io = ios[rh->newest_first ? n - 1 - i : i];

		if (lost)
			gantry_fail(io, GANTRY_S_SESSION_LOST);
		else
			execute(rh, io, (struct fake_fault *)(uintptr_t)io->frame[0]);
	}
}

/* -- services -- */

static struct gantry_lane *get_lane(const struct gantry_role_host *pub, uint32_t index)
{
	return &of(pub)->lanes[index];
}

static struct fake_role_host *of_lane(struct gantry_lane *lane)
{
	return (struct fake_role_host *)((char *)(lane - lane->index) -
					 offsetof(struct fake_role_host, lanes));
}

static int poller_add(struct gantry_lane *lane, const struct gantry_poller *poller)
{
	of_lane(lane)->pollers[lane->index] = *poller;
	return 0;
}

static void poller_remove(struct gantry_lane *lane, void *self)
{
	struct gantry_poller *poller = &of_lane(lane)->pollers[lane->index];

	if (poller->self != self)
		fake_fail("poller_remove: not the one that was added");
	memset(poller, 0, sizeof(*poller));
}

static uint64_t connect_resume(const struct gantry_role_host *rh, uint32_t connect)
{
	const struct fake_role_host *fake = rh->core;

	if (connect != 0)
		fake_fail("connect_resume: there is no connect %u", connect);
	return fake->resume_ns;
}

static uint64_t client_id(const struct gantry_client *client)
{
	const struct fake_role_host *fake = (const struct fake_role_host *)client;

	return fake->attr.id != 0 ? fake->attr.id : 1;
}

static int after(const struct gantry_role_host *pub, uint64_t ns, void (*fn)(void *arg), void *arg)
{
	struct fake_role_host *rh = of(pub);

	for (unsigned i = 0; i < FAKE_LANES; i++) {
		if (rh->timers[i].at_ns)
			continue;
		rh->timers[i].at_ns = rh->host->now_ns + ns;
		rh->timers[i].fn = fn;
		rh->timers[i].arg = arg;
		return 0;
	}
	return -ENOMEM;
}

static void after_cancel(const struct gantry_role_host *pub, const void *arg)
{
	struct fake_role_host *rh = of(pub);

	for (unsigned i = 0; i < FAKE_LANES; i++)
		if (rh->timers[i].arg == arg)
			rh->timers[i].at_ns = 0;
}

static void run_timers(struct fake_role_host *rh)
{
	for (unsigned i = 0; i < FAKE_LANES; i++) {
		if (!rh->timers[i].at_ns || rh->timers[i].at_ns > rh->host->now_ns)
			continue;
		rh->timers[i].at_ns = 0;
		rh->timers[i].fn(rh->timers[i].arg);
	}
}

static void lane_call(struct gantry_lane *lane, void (*fn)(void *arg), void *arg)
{
	(void)lane;
	fn(arg);
}

/* A real guard stops a second completion. This one passes it on, to test the role. */
static void guard_complete(void *self, struct gantry_io *io)
{
	struct gantry_chain *chain = self;

	io->hop++;
	chain->hops[1].complete(chain->hops[1].self, io);
}

static int chain_create(struct gantry_lane *lane, const struct gantry_hop *owner,
			const struct gantry_hop *terminal, const struct gantry_volume_info *volume,
			uint32_t n, struct gantry_chain **chain_p, struct gantry_io **ios_p)
{
	struct gantry_chain *chain = calloc(1, sizeof(*chain));

	(void)volume;
	chain->ios = aligned_alloc(GANTRY_CACHE_LINE, n * sizeof(*chain->ios));
	memset(chain->ios, 0, n * sizeof(*chain->ios));
	chain->hops[0] = (struct gantry_hop){.complete = guard_complete, .self = chain};
	chain->hops[1] = *owner;
	chain->hops[2] = *terminal;
	for (uint32_t i = 0; i < n; i++) {
		chain->ios[i].hop = &chain->hops[1];
		chain->ios[i].slot = (uint16_t)i;
	}
	chain->rh = of_lane(lane);
	chain->rh->n_chains++;
	chain->rh->n_ends += terminal->submit == volume_submit;
	*chain_p = chain;
	*ios_p = chain->ios;
	return 0;
}

static void chain_destroy(struct gantry_chain *chain)
{
	chain->rh->n_chains--;
	chain->rh->n_ends -= chain->hops[2].submit == volume_submit;
	free(chain->ios);
	free(chain);
}

static void chain_resize(struct gantry_chain *chain, uint64_t size)
{
	chain->rh->chain_size = size;
}

static int region_create(const struct gantry_role_host *pub, uint64_t bytes, int flags,
			 struct gantry_region **region_p)
{
	struct gantry_region *region = calloc(1, sizeof(*region));

	of(pub)->region_flags = flags;
	region->addr = aligned_alloc(4096, bytes);
	region->length = bytes;
	region->fd = -1;
	of(pub)->region = region;
	of(pub)->n_regions++;
	*region_p = region;
	return 0;
}

static void region_destroy(const struct gantry_role_host *pub, struct gantry_region *region,
			   int quiet)
{
	of(pub)->n_regions--;
	of(pub)->n_quarantined += !quiet;
	of(pub)->region = NULL;
	free(region->addr);
	free(region);
}

static struct gantry_client *as_client(struct fake_role_host *rh)
{
	return (struct gantry_client *)rh;
}

static struct fake_role_host *of_client(struct gantry_client *client)
{
	return (struct fake_role_host *)client;
}

static int client_open(const struct gantry_role_host *pub, uint32_t connect,
		       const struct gantry_session_attr *attr,
		       const struct gantry_client_events *events, void *arg,
		       struct gantry_client **client_p)
{
	struct fake_role_host *rh = of(pub);

	(void)connect;
	if (rh->open_rc)
		return rh->open_rc;
	rh->attr = *attr;
	rh->events = events;
	rh->arg = arg;
	memset(rh->presented, 0, sizeof(rh->presented));
	rh->step = STEP_READY;
	memset(rh->regions, 0, sizeof(rh->regions));
	rh->n_exported = rh->exporting = rh->unexporting = 0;
	*client_p = as_client(rh);
	return 0;
}

static int client_export(struct gantry_client *client, const struct gantry_region *region,
			 uint32_t rights, uint32_t handle)
{
	struct fake_role_host *rh = of_client(client);
	const int is_own = region == rh->region;

	if (is_own != (handle == 1) || handle >= FAKE_REGIONS ||
	    rights != (GANTRY_REMOTE_READ | GANTRY_REMOTE_WRITE))
		rh->n_bad++;
	if (rh->export_rc)
		return rh->export_rc;
	if (rh->export_limit && region->length > rh->export_limit)
		return -E2BIG;
	if (rh->exporting || rh->unexporting || (rh->step != STEP_IDLE && rh->step != STEP_RUNNING))
		return -EBUSY;
	if (find_region(rh, is_own ? 0 : handle))
		return -EEXIST;
	if (is_own)
		rh->step = STEP_EXPORTED;
	else
		rh->exporting = handle;
	rh->regions[handle] = region;
	return 0;
}

static int client_unexport(struct gantry_client *client, uint32_t handle)
{
	struct fake_role_host *rh = of_client(client);

	if (rh->exporting || rh->unexporting || (rh->step != STEP_IDLE && rh->step != STEP_RUNNING))
		return -EBUSY;
	if (handle == 1 || !find_region(rh, handle))
		return -ENOENT;
	rh->unexporting = handle;
	return 0;
}

static int client_start(struct gantry_client *client)
{
	of_client(client)->step = STEP_STARTED;
	return 0;
}

static int client_hop(struct gantry_client *client, uint32_t index, struct gantry_lane *lane,
		      struct gantry_hop *terminal)
{
	(void)index;
	(void)lane;
	*terminal = (struct gantry_hop){.submit = volume_submit, .self = of_client(client)};
	return 0;
}

static void client_close(struct gantry_client *client)
{
	if (of_client(client)->step != STEP_CLOSED)
		of_client(client)->step = STEP_CLOSE;
}

static void client_abort(struct gantry_client *client)
{
	of_client(client)->lose_rc = -ECANCELED;
}

static uint64_t client_export_quota(const struct gantry_client *client)
{
	(void)client;
	return UINT64_MAX;
}

static int client_regions_released(const struct gantry_client *client)
{
	return ((const struct fake_role_host *)client)->quiet;
}

static void client_expect(struct gantry_client *client, const struct gantry_volume_info *volume)
{
	(void)client;
	(void)volume;
}

static void client_use_secret(struct gantry_client *client,
			      const uint8_t secret[GANTRY_SECRET_BYTES])
{
	memcpy(of_client(client)->presented, secret, GANTRY_SECRET_BYTES);
}

static void client_secret(const struct gantry_client *client, uint8_t secret[GANTRY_SECRET_BYTES])
{
	memcpy(secret, ((const struct fake_role_host *)client)->secret, GANTRY_SECRET_BYTES);
}

static uint32_t client_late_writes(const struct gantry_client *client, uint32_t index)
{
	(void)client;
	(void)index;
	return 0;
}

static int region_withdraw(const struct gantry_role_host *pub, struct gantry_region *region)
{
	(void)region;
	of(pub)->n_withdrawn++;
	return of(pub)->withdraw_rc;
}

static uint64_t client_export_limit(const struct gantry_client *client)
{
	const struct fake_role_host *fake = (const struct fake_role_host *)client;

	return fake->export_limit ? fake->export_limit : UINT64_MAX;
}

static uint64_t client_settled_ns(const struct gantry_client *client, uint32_t index)
{
	const struct fake_role_host *rh = (const struct fake_role_host *)client;

	if (index >= rh->n_lanes)
		fake_fail("client_settled_ns: there is no lane %u", index);
	return rh->settled_ns;
}

static void client_free(struct gantry_client *client)
{
	if (of_client(client)->n_ends)
		fake_fail("client_free: chains end in it");
	of_client(client)->n_freed++;
}

static void finished(const struct gantry_role_host *pub, int status)
{
	of(pub)->finished++;
	of(pub)->status = status;
}

static void post(const struct gantry_role_host *pub, void (*fn)(void *arg), void *arg)
{
	struct fake_role_host *rh = of(pub);

	if (rh->n_posts == FAKE_LANES)
		fake_fail("more posts than lanes");
	rh->posts[rh->n_posts].fn = fn;
	rh->posts[rh->n_posts++].arg = arg;
}

/* -- turns -- */

/* Answer the request for a further region. */
static void answer(struct fake_role_host *rh)
{
	const uint32_t exported = rh->exporting, unexported = rh->unexporting;

	rh->exporting = rh->unexporting = 0;
	if (exported) {
		rh->exported[rh->n_exported++ % FAKE_REGIONS] = exported;
		rh->events->exported(rh->arg, as_client(rh), rh->regions[exported]);
	} else {
		rh->regions[unexported] = NULL;
		rh->events->unexported(rh->arg, as_client(rh), unexported);
	}
}

static void deliver(struct fake_role_host *rh)
{
	int step = rh->step;

	if (rh->lose_rc) {
		complete_held(rh, 1);
		rh->step = STEP_CLOSED;
		rh->events->closed(rh->arg, as_client(rh), rh->lose_rc, "lost on purpose");
		rh->lose_rc = 0;
		return;
	}
	if (rh->exporting || rh->unexporting) {
		answer(rh);
		return;
	}
	if (step == STEP_IDLE || step == STEP_RUNNING || step == STEP_CLOSED)
		return;
	rh->step = step == STEP_STARTED ? STEP_RUNNING
		   : step == STEP_CLOSE ? STEP_CLOSED
					: STEP_IDLE;
	if (step == STEP_READY)
		rh->events->ready(rh->arg, as_client(rh), &rh->volume);
	else if (step == STEP_EXPORTED)
		rh->events->exported(rh->arg, as_client(rh), rh->region);
	else if (step == STEP_STARTED)
		rh->events->started(rh->arg, as_client(rh));
	else
		rh->events->closed(rh->arg, as_client(rh), 0, "");
}

static void run_posts(struct fake_role_host *rh)
{
	unsigned n = rh->n_posts;

	rh->n_posts = 0;
	for (unsigned i = 0; i < n; i++)
		rh->posts[i].fn(rh->posts[i].arg);
}

void fake_role_turn(struct fake_role_host *rh)
{
	deliver(rh);
	rh->host->now_ns += rh->turn_ns;
	run_timers(rh);
	for (uint32_t i = 0; i < rh->n_lanes; i++) {
		rh->lanes[i].now_ns = rh->host->now_ns;
		if (rh->pollers[i].poll)
			rh->pollers[i].poll(rh->pollers[i].self);
	}
	complete_held(rh, 0);
	run_posts(rh);
}

int fake_role_run(struct fake_role_host *rh)
{
	for (unsigned i = 0; !rh->finished; i++) {
		if (i == MAX_TURNS)
			fake_fail("the role does not finish");
		fake_role_turn(rh);
	}
	return rh->status;
}

uint64_t fake_role_wake_ns(struct fake_role_host *rh)
{
	uint64_t wake = 0;

	for (uint32_t i = 0; i < rh->n_lanes; i++) {
		uint64_t at = rh->pollers[i].wake_ns ? rh->pollers[i].wake_ns(rh->pollers[i].self)
						     : 0;

		if (at && (!wake || at < wake))
			wake = at;
	}
	return wake;
}

void fake_role_fault(struct fake_role_host *rh, struct fake_fault fault)
{
	for (unsigned i = 0; i < FAKE_FAULTS; i++) {
		if (!rh->faults[i].kind) {
			rh->faults[i] = fault;
			return;
		}
	}
	fake_fail("more than %d faults", FAKE_FAULTS);
}

void fake_role_init(struct fake_role_host *rh, struct fake_host *host, uint32_t n_lanes,
		    uint64_t size, uint32_t block_size)
{
	memset(rh, 0, sizeof(*rh));
	rh->host = host;
	rh->n_lanes = n_lanes;
	rh->turn_ns = 1000;
	for (uint32_t i = 0; i < n_lanes; i++)
		fake_lane_init(&rh->lanes[i], host, i, n_lanes);
	rh->volume = (struct gantry_volume_info){.size = size,
						 .block_size = block_size,
						 .ops = (1u << GANTRY_OP_COUNT) - 1,
						 .max_io = 1 << 20};
	rh->data = calloc(1, size);
	rh->before = calloc(1, size);
	rh->pub = (struct gantry_role_host){
		.struct_size = sizeof(rh->pub),
		.n_lanes = n_lanes,
		.n_connects = 1,
		.host = &host->pub,
		.core = rh,
		.engine = &gn_engine_ops,
		.lane = get_lane,
		.poller_add = poller_add,
		.poller_remove = poller_remove,
		.chain_create = chain_create,
		.chain_destroy = chain_destroy,
		.chain_resize = chain_resize,
		.region_create = region_create,
		.region_destroy = region_destroy,
		.client_open = client_open,
		.client_export = client_export,
		.client_unexport = client_unexport,
		.client_start = client_start,
		.client_hop = client_hop,
		.client_close = client_close,
		.client_free = client_free,
		.client_abort = client_abort,
		.client_regions_released = client_regions_released,
		.client_export_quota = client_export_quota,
		.finished = finished,
		.post = post,
		.lane_call = lane_call,
		.connect_resume = connect_resume,
		.client_id = client_id,
		.after = after,
		.after_cancel = after_cancel,
		.client_settled_ns = client_settled_ns,
		.client_export_limit = client_export_limit,
		.client_expect = client_expect,
		.client_late_writes = client_late_writes,
		.region_withdraw = region_withdraw,
		.client_use_secret = client_use_secret,
		.client_secret = client_secret,
	};
}

void fake_role_fini(struct fake_role_host *rh)
{
	free(rh->data);
	free(rh->before);
	rh->data = rh->before = NULL;
}
