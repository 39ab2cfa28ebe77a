/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "clients/rig.h"
#include "unity.h"

struct rig rig;

static void close_in_event(void)
{
	if (rig.close_in_event)
		gn_engine_ops.close(rig.session);
	rig.close_in_event = 0;
}

static int on_ready(void *arg, const struct gantry_volume_info *info)
{
	(void)arg;
	TEST_ASSERT_EQUAL_UINT64(rig.rh.volume.size, info->size);
	rig.n_ready++;
	if (rig.ready_rc)
		return rig.ready_rc;
	if (rig.close_when_ready)
		gn_engine_ops.close(rig.session);
	return gn_engine_ops.memory(rig.session, RIG_SLOT, rig.shared ? rig.shared : RIG_SHARED, 0);
}

static void on_pages(void *arg, void *at, uint64_t bytes)
{
	(void)arg;
	TEST_ASSERT_EQUAL_PTR((uint8_t *)rig.rh.region->addr + rig.pages_bytes, at);
	TEST_ASSERT_EQUAL_UINT(0, rig.n_started);
	rig.pages_bytes += bytes;
	if (rig.close_with_pages)
		gn_engine_ops.close(rig.session);
}

static void on_started(void *arg)
{
	(void)arg;
	rig.n_started++;
	close_in_event();
}

static void on_closed(void *arg, int rc, const char *why)
{
	(void)arg;
	rig.n_closed++;
	rig.reason = rc;
	strncpy(rig.text, why, sizeof(rig.text) - 1);
}

static void on_exported(void *arg, uint32_t handle)
{
	(void)arg;
	rig.n_exported++;
	rig.last_handle = handle;
	close_in_event();
}

static void on_unexported(void *arg, uint32_t handle)
{
	(void)arg;
	rig.n_unexported++;
	rig.last_handle = handle;
	close_in_event();
}

static void on_resized(void *arg, uint64_t size)
{
	(void)arg;
	rig.n_resized++;
	rig.size = size;
}

static void on_complete(void *self, struct gantry_io *io)
{
	struct gantry_engine_queue *queue = self;

	if (gantry_engine_completed(queue, io))
		return;
	if (rig.n_done < RIG_DONE)
		rig.done[rig.n_done] =
			(struct rig_done){.io = io, .offset = io->offset, .status = io->status};
	rig.n_done++;
	if (!rig.keep)
		gantry_engine_put(queue, io);
}

void rig_begin(uint32_t n_lanes, uint32_t depth)
{
	memset(&rig, 0, sizeof(rig));
	rig.depth = depth;
	rig.reason = 1;
	fake_host_init(&rig.host, "roles.load");
	fake_role_init(&rig.rh, &rig.host, n_lanes, RIG_SIZE, RIG_BLOCK);
}

int rig_open(uint32_t n_queues)
{
	static const struct gantry_engine_events events = {.ready = on_ready,
							   .pages = on_pages,
							   .started = on_started,
							   .resized = on_resized,
							   .closed = on_closed,
							   .exported = on_exported,
							   .unexported = on_unexported};
	const struct gantry_engine_attr attr = {.n_queues = n_queues,
						.depth = rig.depth,
						.complete = on_complete,
						.regions = rig.regions};

	rig.n_queues = n_queues;
	return gn_engine_ops.open(&rig.rh.pub, &attr, &events, NULL, &rig.session);
}

void rig_turn(unsigned n)
{
	while (n--) {
		fake_role_turn(&rig.rh);
		for (uint32_t i = 0; i < rig.n_queues; i++)
			if (rig.n_started && !rig.n_closed)
				gantry_engine_poll(gn_engine_ops.queue(rig.session, i));
	}
}

struct gantry_engine_queue *rig_start(uint32_t n_queues)
{
	TEST_ASSERT_EQUAL_INT(0, rig_open(n_queues));
	rig_turn(5);
	/* allocating much memory takes several turns */
	for (unsigned i = 0; i < 100 && !rig.n_started; i++)
		rig_turn(1);
	TEST_ASSERT_EQUAL_UINT(1, rig.n_started);
	TEST_ASSERT_EQUAL_UINT(0, rig.n_closed);
	return gn_engine_ops.queue(rig.session, 0);
}

struct gantry_io *rig_filled(struct gantry_engine_queue *queue, unsigned opcode, uint64_t offset)
{
	struct gantry_io *io = gantry_engine_get(queue);

	TEST_ASSERT_NOT_NULL(io);
	gantry_engine_fill(queue, io, opcode, 0, offset, RIG_BLOCK,
			   gantry_engine_slot_offset(queue, io));
	return io;
}

struct gantry_io *rig_submit(struct gantry_engine_queue *queue, unsigned opcode, uint64_t offset)
{
	struct gantry_io *io = rig_filled(queue, opcode, offset);

	TEST_ASSERT_EQUAL_INT(0, gantry_engine_submit(queue, io));
	return io;
}

void rig_close(void)
{
	gn_engine_ops.close(rig.session);
	gn_engine_ops.close(rig.session);
	rig_turn(5);
	TEST_ASSERT_EQUAL_UINT(1, rig.n_closed);
	TEST_ASSERT_EQUAL_INT(0, rig.reason);
}

void rig_end(unsigned quarantined)
{
	gn_engine_ops.free(rig.session);
	rig.session = NULL;
	TEST_ASSERT_EQUAL_UINT(0, rig.rh.n_chains);
	TEST_ASSERT_EQUAL_UINT(0, rig.rh.n_regions);
	TEST_ASSERT_EQUAL_UINT(0, rig.rh.n_bad);
	TEST_ASSERT_EQUAL_UINT(quarantined, rig.rh.n_quarantined);
	fake_role_fini(&rig.rh);
}
