/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The owner of memory revokes it while a peer accesses it through the device: no access succeeds
 * after doca_mmap_stop.
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "device/gd_device.h"
#include "rdma_rig.h"
#include "unity.h"

#define MAPS 200u /* more maps than a connection can have at a time */
#define PIECE 65536u
#define READS 32u

/*
 * Import as over a network: the owner does not notify this process of its stop, and its memory is
 * not mapped here.
 */
static void import(struct rig_side *s, int fd)
{
	const bool network = s->dev->info->network;

	s->dev->info->network = true;
	rig_import(s, fd);
	s->dev->info->network = network;
}

/*
 * Make progress until the owner sends a byte. Before that the owner stops its map, and waits until
 * this engine has released the map.
 */
static void progress_until_the_owner_signals(struct rig_side *s, int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	UNTIL(s, poll(&p, 1, 0) == 1);
	rig_hark(fd);
}

/* -- stopped without a task in flight -- */

static void write_too_late(int fd)
{
	struct rig_side *s = rig_open(&(struct rig_wish){.max_conns = 1});
	struct doca_buf *own = rig_data(s, 0, 1000), *remote;

	rig_connect(s, fd, 0);
	import(s, fd);
	remote = rig_remote_room(s, 0, 1000);
	rig_fill(s->memory, 1000, 1);
	rig_write(s, s->conns[0], own, remote, 1);
	rig_end_ok(s, 1);
	rig_tell(fd);
	progress_until_the_owner_signals(s, fd);
	rig_fill(s->memory, 1000, 2);
	rig_write(s, s->conns[0], own, remote, 2);
	CHECK(rig_end(s)->status == DOCA_ERROR_IO_FAILED);
	rig_tell(fd);
	rig_put(own);
	rig_put(remote);
	rig_close(s);
}

static void stop_and_look(int fd)
{
	struct rig_side *s = rig_open(&(struct rig_wish){.is_peer = true});

	rig_connect(s, fd, 0);
	rig_export(s, fd);
	rig_hark(fd);
	CHECK(rig_differs(s->memory, 1000, 1) == 1000);
	OK(doca_mmap_stop(s->map));
	rig_tell(fd);
	rig_hark(fd);
	CHECK(rig_differs(s->memory, 1000, 1) == 1000);
	rig_close(s);
}

static void stopped_map_is_not_written_any_more(void)
{
	rig_both(write_too_late, stop_and_look);
}

/* -- one map after another -- */

static void read_many_maps(int fd)
{
	struct rig_side *s = rig_open(&(struct rig_wish){.max_conns = 1});

	rig_connect(s, fd, 0);
	for (uint32_t i = 0; i < MAPS; i++) {
		struct doca_buf *own = rig_room(s, 0, 1000), *remote;

		import(s, fd);
		remote = rig_remote_data(s, 0, 1000);
		rig_read(s, s->conns[0], remote, own, i);
		rig_end_ok(s, i);
		CHECK(rig_differs(s->memory, 1000, i) == 1000);
		rig_put(own);
		rig_put(remote);
		OK(doca_mmap_destroy(s->remote));
		s->remote = NULL;
		rig_tell(fd);
		progress_until_the_owner_signals(s, fd);
	}
	rig_close(s);
}

static void stop_many_maps(int fd)
{
	struct rig_side *s = rig_open(&(struct rig_wish){.is_peer = true});

	rig_connect(s, fd, 0);
	for (uint32_t i = 0; i < MAPS; i++) {
		rig_fill(s->memory, 1000, i);
		rig_export(s, fd);
		rig_hark(fd);
		OK(doca_mmap_stop(s->map));
		rig_tell(fd);
		OK(doca_mmap_start(s->map));
	}
	rig_close(s);
}

static void a_connection_sees_any_number_of_maps_that_are_stopped_in_between(void)
{
	rig_both(read_many_maps, stop_many_maps);
}

/* -- stopped while reads are in flight: reads that succeed have data from before the stop -- */

static void read_until_it_fails(int fd)
{
	struct rig_side *s = rig_open(&(struct rig_wish){.max_conns = 1});
	struct doca_buf *own[READS], *remote;
	enum doca_ctx_states state;
	unsigned n_read = 0;

	rig_connect(s, fd, 0);
	import(s, fd);
	remote = rig_remote_data(s, 0, PIECE);
	for (uint32_t i = 0; i < READS; i++) {
		own[i] = rig_room(s, i * PIECE, PIECE);
		rig_read(s, s->conns[0], remote, own[i], i);
	}
	for (;;) {
		const struct rig_end *end = rig_end(s);
		const uint64_t i = end->tag;

		if (end->status != DOCA_SUCCESS)
			break;
		CHECK(rig_differs(s->memory + i * PIECE, PIECE, 1) == PIECE);
		OK(doca_buf_reset_data_len(own[i]));
		rig_read(s, s->conns[0], remote, own[i], i);
		if (++n_read == READS)
			rig_tell(fd);
	}
	UNTIL(s,
	      doca_ctx_get_state(s->ctx, &state) == DOCA_SUCCESS && state == DOCA_CTX_STATE_IDLE);
	rig_tell(fd);
	for (uint32_t i = 0; i < READS; i++)
		rig_put(own[i]);
	rig_put(remote);
	rig_close(s);
}

static void stop_amid_reads(int fd)
{
	struct rig_side *s = rig_open(&(struct rig_wish){.is_peer = true});

	rig_fill(s->memory, PIECE, 1);
	rig_connect(s, fd, 0);
	rig_export(s, fd);
	rig_hark(fd);
	OK(doca_mmap_stop(s->map));
	rig_fill(s->memory, PIECE, 2);
	rig_hark(fd);
	rig_close(s);
}

static void reads_that_are_under_way_end_before_the_map_is_stopped_or_fail(void)
{
	rig_both(read_until_it_fails, stop_amid_reads);
}

/* -- a peer that does not progress -- */

static void hold_on(int fd)
{
	struct rig_side *s = rig_open(&(struct rig_wish){.max_conns = 1});
	struct doca_buf *own = rig_room(s, 0, 1000), *remote;

	rig_connect(s, fd, 0);
	import(s, fd);
	remote = rig_remote_data(s, 0, 1000);
	rig_read(s, s->conns[0], remote, own, 1);
	rig_end_ok(s, 1);
	rig_tell(fd);
	rig_hark(fd);
	rig_put(own);
	rig_put(remote);
	rig_close(s);
}

static void stop_all_the_same(int fd)
{
	struct rig_side *s = rig_open(&(struct rig_wish){.is_peer = true});

	rig_connect(s, fd, 0);
	rig_export(s, fd);
	rig_hark(fd);
	OK(doca_mmap_stop(s->map));
	rig_tell(fd);
	rig_close(s);
}

static void peer_without_progress_does_not_block_a_stop(void)
{
	rig_both(hold_on, stop_all_the_same);
}

int main(void)
{
	if (getenv("GANTRY_PLUGINS"))
		setenv("GANTRY_PLUGIN_PATH", getenv("GANTRY_PLUGINS"), 1);
	UNITY_BEGIN();
	RUN_TEST(stopped_map_is_not_written_any_more);
	RUN_TEST(a_connection_sees_any_number_of_maps_that_are_stopped_in_between);
	RUN_TEST(reads_that_are_under_way_end_before_the_map_is_stopped_or_fail);
	RUN_TEST(peer_without_progress_does_not_block_a_stop);
	return UNITY_END();
}
