/* SPDX-License-Identifier: BSD-3-Clause */
/* turn.c - the rig: waits for messages and events from one end to the other. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "conform/rig.h"

#define PATIENCE_NS 10000000000ull

/* Returns how long to wait for an expected event. */
uint64_t rig_patience_ns(void)
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
	if (rig.ops->data && q->tx && !q->lent && q->n_cookies < RIG_MSGS)
		n = rig.ops->data->poll_send(q->tx, q->cookies + q->n_cookies,
					     RIG_MSGS - q->n_cookies);
	q->n_cookies += n > 0 ? (uint32_t)n : 0;
}

/* Returns whether the timer of this device is due. If it has a later time: in *ms, at most *ms. */
static int is_due(const struct rig_end *end, int *ms)
{
	uint64_t at = end->wake_ns, now = end->host.real_clock ? rig_now_ns() : end->host.now_ns;

	if (at > now && (at - now) / 1000000 < (uint64_t)*ms)
		*ms = (int)((at - now) / 1000000) + 1;
	return at != 0 && at <= now;
}

int rig_stirs(int ms)
{
	struct pollfd fds[2] = {{.fd = rig.ops->fd(rig.a.dev), .events = POLLIN},
				{.fd = rig.ops->fd(rig.b.dev), .events = POLLIN}};

	if (is_due(&rig.a, &ms) || is_due(&rig.b, &ms))
		return 1;
	return poll(fds, 2, ms) > 0 || is_due(&rig.a, &ms) || is_due(&rig.b, &ms);
}

/*
 * Call progress() if the host would, and then set the timer, as the host does. Returns the number
 * of events.
 */
static int serve(struct rig_end *end)
{
	struct pollfd p = {.fd = rig.ops->fd(end->dev), .events = POLLIN};
	int ms = 0, n;

	if (!end->kicked && poll(&p, 1, 0) <= 0 && !is_due(end, &ms))
		return 0;
	end->kicked = 0;
	end->n_progress++;
	n = rig.ops->progress(end->dev);
	if (rig.a.unexplained || rig.b.unexplained)
		rig_fail_at(__FILE__, __LINE__,
			    "`closed` with -EPROTO: expected a warning of the transport that "
			    "states the cause, got none");
	end->wake_ns = rig.ops->wake_ns(end->dev);
	return n;
}

static int turn(void)
{
	int n = serve(&rig.a);

	if (rig.b.dev != rig.a.dev)
		n += serve(&rig.b);
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

int rig_late(uint64_t *end, int moved)
{
	uint64_t now = rig_now_ns();

	if (moved || *end == 0)
		*end = now + rig_patience_ns();
	return now > *end;
}

/* Let devices without a descriptor look for work. Returns whether there are such devices. */
static int kick_polled(void)
{
	struct rig_end *ends[2] = {&rig.a, &rig.b};
	int polled = 0;

	for (int i = 0; i < 2; i++)
		if (rig.ops->fd(ends[i]->dev) < 0)
			polled = ends[i]->kicked = 1;
	return polled;
}

void rig_settle(void)
{
	uint64_t end = 0;
	int polled, n;

	do {
		polled = kick_polled();
		n = turn();
		if (rig_late(&end, 0))
			rig_fail_wait(__FILE__, __LINE__, "the device to have no work", NULL, 0);
	} while (polled ? n > 0 : rig_stirs(0));
}

uint32_t rig_map(void)
{
	return rig_has(RIG_MAPPED) ? GANTRY_IMPORT_MAP : 0;
}

uint32_t rig_access(void)
{
	return rig_has(RIG_RMA) ? 0 : GANTRY_IMPORT_MAP;
}

void rig_wait_at(uint64_t *end, int moved, const char *what, const char *file, int line)
{
	if (rig_late(end, moved))
		rig_fail_wait(file, line, what, NULL, 0);
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
			rig_fail_wait(file, line, "", what, n);
		if (!moved) /* the fds of the devices do not signal queues */
			rig_stirs(rig.queues[0].used ? 1 : 50);
	}
}

void rig_fence(void)
{
	struct rig_end *ends[2] = {&rig.a, &rig.b};

	for (int i = 0; i < 2; i++) {
		int n = ends[!i]->n_msgs;

		RIG_OK(rig_ctrl(ends[i], "fence", 5));
		rig_until(ends[!i]->n_msgs, n + 1);
	}
	rig_settle();
}

int rig_ctrl(struct rig_end *end, const void *msg, size_t len)
{
	uint64_t late = 0;
	int rc;

	while ((rc = rig.ops->send_ctrl(end->conn, msg, len)) == -EAGAIN)
		rig_wait(&late, 0,
			 "send_ctrl() not to return -EAGAIN while the peer calls progress()");
	return rc;
}

uint32_t rig_rounds(uint32_t n)
{
	uint32_t slower = rig_driver.slower ? rig_driver.slower : 1;

	return n / slower > 8 ? n / slower : 8;
}
