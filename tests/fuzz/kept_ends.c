/* SPDX-License-Identifier: BSD-3-Clause */
/* kept_ends.c - see kept_ends.h */
#include "fuzz/kept_ends.h"

#include <stdio.h>

#include "fuzz/quick_fd.h"
#include "fuzz/rewind.h"

static char clean[256]; /* report of the fake for open devices without a connection */
static unsigned n_fds, n_blocks;
static int is_open;

void setUp(void)
{
}

void tearDown(void)
{
}

static void fail(const char *what, const char *more)
{
	fprintf(stderr, "%s: %s\n", what, more);
	abort();
}

static void close_at_exit(void)
{
	ends_close();
	if (fake_verbs_check_clean()[0])
		fail("left at exit", fake_verbs_check_clean());
}

/* Returns the number of lists of counters: a device creates one with its first lane. */
static unsigned n_lists(void)
{
	const struct vb_transport *ta = a.device, *tb = b.device;

	return (ta->lane_doorbells.room != 0) + (ta->lane_payload.room != 0) +
	       (tb->lane_doorbells.room != 0) + (tb->lane_payload.room != 0);
}

/*
 * Check that nothing of the connection is left with the device. Only the listener for direct pipes
 * may be left: vb_listen_direct() creates one for each address of the device, without events, and
 * it stays until vb_close(). This function closes it.
 */
static void check_device(struct end *end)
{
	struct vb_transport *t = end->device;
	struct vb_listener *direct = LIST_FIRST(&t->listeners);

	if (t->conns || t->n_accepted || t->in_progress)
		fail("left with the device", "connections");
	if (direct && (direct->events || LIST_NEXT(direct, link)))
		fail("left with the device", "listeners");
	if (direct)
		vb_unlisten(direct);
	if (t->lane_doorbells.n_free != t->lane_doorbells.n ||
	    t->lane_payload.n_free != t->lane_payload.n)
		fail("left with the device", "counters of lanes");
}

static void leave(void)
{
	ends_leave();
	check_device(&a);
	check_device(&b);
	fake_verbs_renumber();
}

/* Open the devices. A first connection makes the fake allocate the objects that it keeps. */
static void open_devices(const char *both)
{
	fake_verbs_reset();
	ends_open_devices(both, NULL, NULL);
	ends_connect();
	leave();
	rewind_trim();
	snprintf(clean, sizeof(clean), "%s", fake_verbs_check_clean());
	n_fds = quick_fd_count();
	n_blocks = rewind_count() - n_lists();
	is_open = 1;
	atexit(close_at_exit);
}

bool kept_ends_begin(const char *both)
{
	if (rewind_begin())
		return true;
	if (!is_open)
		open_devices(both);
	ends_connect();
	return false;
}

void kept_ends_leave(void)
{
	leave();
	if (strcmp(fake_verbs_check_clean(), clean) != 0)
		fail("left with the fake", fake_verbs_check_clean());
	if (quick_fd_count() != n_fds)
		fail("left", "file descriptors");
}

void kept_ends_end(void)
{
	rewind_end(n_blocks + n_lists());
}
