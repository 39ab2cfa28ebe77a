/* SPDX-License-Identifier: BSD-3-Clause */
/* kept_ends.c - see kept_ends.h */
#include "fuzz/kept_ends.h"

#include <stdio.h>

#include "fuzz/quick_fd.h"

static char clean[256]; /* what the fake says of devices that are open and have no connection */
static unsigned n_fds;
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

static void open_devices(const char *both)
{
	fake_verbs_reset();
	ends_open_devices(both, NULL, NULL);
	snprintf(clean, sizeof(clean), "%s", fake_verbs_check_clean());
	n_fds = quick_fd_count();
	is_open = 1;
	atexit(close_at_exit);
}

void kept_ends_connect(const char *both)
{
	if (!is_open)
		open_devices(both);
	ends_connect();
}

/*
 * A device has one listener for direct pipes at each of its addresses: vb_listen_direct() makes it,
 * vb_close() ends it.
 */
static void check_device(struct end *end)
{
	struct vb_transport *t = end->device;

	if (t->conns || t->n_accepted || t->in_progress)
		fail("left with the device", "connections");
	if (t->listeners && (t->listeners->events || t->listeners->next))
		fail("left with the device", "listeners");
	if (t->listeners)
		vb_unlisten(t->listeners);
	if (t->lane_doorbells.n_free != t->lane_doorbells.n ||
	    t->lane_payload.n_free != t->lane_payload.n)
		fail("left with the device", "counters of lanes");
}

void kept_ends_leave(void)
{
	ends_leave();
	check_device(&a);
	check_device(&b);
	fake_verbs_renumber();
	if (strcmp(fake_verbs_check_clean(), clean) != 0)
		fail("left with the fake", fake_verbs_check_clean());
	if (quick_fd_count() != n_fds)
		fail("left", "file descriptors");
}
