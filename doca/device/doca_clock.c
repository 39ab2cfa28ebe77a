/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doca_clock.c - clocks. An emulated device uses the clocks of the host: the raw monotonic clock as
 * free-running clock and DPA timer, the real-time clock as real-time clock.
 */
#include <doca_clock.h>

#include <stdbool.h>
#include <stdlib.h>

#include "base/clock.h"
#include "device/gd_device.h"

#define CYCLES ((clockid_t)-1)
#define TRIES 5 /* reads of a pair of clocks; the fastest read is the result */

struct doca_clock {
	struct doca_dev *dev; /* held, so that it cannot be closed */
};

static const struct {
	uint64_t type;
	clockid_t id;
	bool nic;
} clocks[] = {
	{DOCA_CLOCK_NIC_FREE_RUNNING, CLOCK_MONOTONIC_RAW, true},
	{DOCA_CLOCK_NIC_REAL_TIME, CLOCK_REALTIME, true},
	{DOCA_CLOCK_NIC_DPA_TIMER, CLOCK_MONOTONIC_RAW, true},
	{DOCA_CLOCK_HOST_COUNTER_CYCLES, CYCLES, false},
	{DOCA_CLOCK_HOST_REAL_TIME, CLOCK_REALTIME, false},
	{DOCA_CLOCK_HOST_MONOTONIC, CLOCK_MONOTONIC, false},
	{DOCA_CLOCK_HOST_MONOTONIC_RAW, CLOCK_MONOTONIC_RAW, false},
};

/* Returns the index in the table; -1: unknown clock. */
static int find_clock(uint64_t type)
{
	for (size_t i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++)
		if (clocks[i].type == type)
			return (int)i;
	return -1;
}

static void read_clock(clockid_t id, union doca_clock_timespec_t *ts)
{
	if (id == CYCLES)
		ts->counter = gn_clock_ticks();
	else
		clock_gettime(id, &ts->ts);
}

/* Nanoseconds between two times of a clock that does not count cycles. */
static uint64_t distance(const union doca_clock_timespec_t *from,
			 const union doca_clock_timespec_t *to)
{
	int64_t ns = (int64_t)(to->ts.tv_sec - from->ts.tv_sec) * 1000000000 + to->ts.tv_nsec -
		     from->ts.tv_nsec;

	return ns > 0 ? (uint64_t)ns : 0;
}

static void move(union doca_clock_timespec_t *ts, uint64_t by)
{
	by += (uint64_t)ts->ts.tv_nsec;
	ts->ts.tv_sec += (time_t)(by / 1000000000);
	ts->ts.tv_nsec = (long)(by % 1000000000);
}

doca_error_t doca_clock_cap_nic_free_running_is_supported(const struct doca_devinfo *devinfo)
{
	return gd_cap(devinfo, true);
}

doca_error_t doca_clock_cap_nic_real_time_is_supported(const struct doca_devinfo *devinfo)
{
	return gd_cap(devinfo, true);
}

doca_error_t doca_clock_cap_nic_dpa_timer_is_supported(const struct doca_devinfo *devinfo)
{
	return gd_cap(devinfo, true);
}

doca_error_t doca_clock_create(const struct doca_dev *dev, struct doca_clock **clock)
{
	struct doca_clock *c;

	if (!gd_dev_is_open(dev) || !clock)
		return DOCA_ERROR_INVALID_VALUE;
	c = malloc(sizeof(*c));
	if (!c)
		return DOCA_ERROR_NO_MEMORY;
	c->dev = (struct doca_dev *)(uintptr_t)dev;
	gd_dev_hold(c->dev);
	*clock = c;
	return DOCA_SUCCESS;
}

doca_error_t doca_clock_destroy(struct doca_clock *clock)
{
	if (!clock)
		return DOCA_ERROR_INVALID_VALUE;
	gd_dev_release(clock->dev);
	free(clock);
	return DOCA_SUCCESS;
}

doca_error_t doca_clock_get_timestamp(const struct doca_clock *clock, uint64_t type,
				      union doca_clock_timespec_t *ts)
{
	int i = find_clock(type);

	if (!clock || !ts || i < 0)
		return DOCA_ERROR_INVALID_VALUE;
	read_clock(clocks[i].id, ts);
	return DOCA_SUCCESS;
}

/*
 * Read the primary clock between two reads of the device clock, and report the middle of those two
 * reads.
 */
doca_error_t doca_clock_get_crosstimestamp(const struct doca_clock *clock, uint64_t primary_type,
					   uint64_t nic_type,
					   union doca_clock_timespec_t *primary_ts,
					   union doca_clock_timespec_t *nic_ts,
					   uint64_t *error_margin_nsecs)
{
	int primary = find_clock(primary_type), nic = find_clock(nic_type);
	union doca_clock_timespec_t before, between, after;
	uint64_t best = UINT64_MAX;

	if (!clock || primary < 0 || nic < 0 || !clocks[nic].nic || !primary_ts || !nic_ts ||
	    !error_margin_nsecs)
		return DOCA_ERROR_INVALID_VALUE;
	for (int i = 0; i < TRIES; i++) {
		uint64_t took;

		read_clock(clocks[nic].id, &before);
		read_clock(clocks[primary].id, &between);
		read_clock(clocks[nic].id, &after);
		took = distance(&before, &after);
		if (took >= best)
			continue;
		best = took;
		*primary_ts = between;
		*nic_ts = before;
		move(nic_ts, took / 2);
	}
	*error_margin_nsecs = best / 2 + 1;
	return DOCA_SUCCESS;
}
