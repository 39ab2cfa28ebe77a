/* SPDX-License-Identifier: BSD-3-Clause */
/* turn.c - the rig: waits for messages and events from one end to the other. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "conform/rig.h"

#define PATIENCE_NS 10000000000ull

/* Returns how long to wait for an expected event. */
static uint64_t patience_ns(void)
{
	const char *ms = getenv("RIG_PATIENCE_MS");

	return ms ? strtoull(ms, NULL, 10) * 1000000u : PATIENCE_NS;
}

uint64_t rig_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Keep what arrives for rig_poll and rig_done. Errors are left to the next poll of the case. */
static void poll_queue(struct rig_queue *q)
{
	int n = 0;

	if (q->rx && !q->lent && !q->resting && q->n_kept < RIG_MSGS)
		n = rig.ops->poll_recv(q->rx, q->kept + q->n_kept, RIG_MSGS - q->n_kept);
	q->n_kept += n > 0 ? (uint32_t)n : 0;
	n = 0;
	if (q->tx && !q->lent && q->n_cookies < RIG_MSGS)
		n = rig.ops->poll_send(q->tx, q->cookies + q->n_cookies, RIG_MSGS - q->n_cookies);
	q->n_cookies += n > 0 ? (uint32_t)n : 0;
}

static int turn(void)
{
	int n = rig.ops->progress(rig.a.dev);

	if (rig.b.dev && rig.b.dev != rig.a.dev)
		n += rig.ops->progress(rig.b.dev);
	if (rig_driver.turn)
		rig_driver.turn();
	for (int i = 0; i < RIG_QUEUES; i++)
		if (rig.queues[i].used)
			poll_queue(&rig.queues[i]);
	return n;
}

void rig_turn(void)
{
	turn();
}

/* Wait up to ms milliseconds. Returns whether a device has work. */
static int device_stirs(int ms)
{
	struct pollfd fds[2] = {{.fd = rig.ops->fd(rig.a.dev), .events = POLLIN},
				{.fd = rig.ops->fd(rig.b.dev), .events = POLLIN}};

	return poll(fds, 2, ms) > 0;
}

int rig_late(uint64_t *end, int moved)
{
	uint64_t now = rig_now_ns();

	if (moved || *end == 0)
		*end = now + patience_ns();
	return now > *end;
}

static void fail_at(const char *what, int is, int n, const char *file, int line)
{
	char text[400];

	snprintf(text, sizeof(text), "%s:%d: %s, %d of %d", file, line, what, is, n);
	TEST_FAIL_MESSAGE(text);
}

void rig_settle(void)
{
	uint64_t end = 0;

	do {
		turn();
		if (rig_late(&end, 0))
			fail_at("a device always has something to do", 0, 1, __FILE__, __LINE__);
	} while (device_stirs(0));
}

uint32_t rig_map(void)
{
	return rig.info.caps & GANTRY_CAP_MAPPED ? GANTRY_IMPORT_MAP : 0;
}

int rig_has_rma(void)
{
	return (rig.info.caps & GANTRY_CAP_RMA) != 0;
}

uint32_t rig_access(void)
{
	return rig_has_rma() ? 0 : GANTRY_IMPORT_MAP;
}

void rig_wait_at(uint64_t *end, int moved, const char *file, int line)
{
	if (rig_late(end, moved))
		fail_at("nothing moves", 0, 1, file, line);
	if (!moved)
		turn();
}

void rig_until_at(const int *what, int n, const char *file, int line)
{
	uint64_t end = 0;

	while (*what < n) {
		int moved = turn();

		if (*what >= n)
			return;
		if (rig_late(&end, 0))
			fail_at("timeout", *what, n, file, line);
		if (!moved)
			device_stirs(
				rig.queues[0].used
					? 1
					: 50); /* the fds of the devices do not signal queues */
	}
}

void rig_fence(void)
{
	struct rig_end *ends[2] = {&rig.a, &rig.b};

	for (int i = 0; i < 2; i++) {
		int n = ends[!i]->n_msgs;

		TEST_ASSERT_EQUAL_INT(0, rig_ctrl(ends[i], "fence", 5));
		rig_until(ends[!i]->n_msgs, n + 1);
	}
	rig_settle();
}

int rig_ctrl(struct rig_end *end, const void *msg, size_t len)
{
	uint64_t late = 0;
	int rc;

	while ((rc = rig.ops->send_ctrl(end->conn, msg, len)) == -EAGAIN)
		rig_wait(&late, 0);
	return rc;
}

uint32_t rig_rounds(uint32_t n)
{
	uint32_t slower = rig_driver.slower ? rig_driver.slower : 1;

	return n / slower > 8 ? n / slower : 8;
}
