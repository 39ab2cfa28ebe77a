/* SPDX-License-Identifier: BSD-3-Clause */
/* doca_clock.h - clocks of a device and of the host */
#ifndef DOCA_CLOCK_H
#define DOCA_CLOCK_H

#include <stdint.h>
#include <time.h>

#include <doca_dev.h>
#include <doca_error.h>
#include <doca_types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct doca_clock;

/* Types of clocks, one bit each. */
#define DOCA_CLOCK_NIC_FREE_RUNNING ((uint64_t)1 << 0)
#define DOCA_CLOCK_NIC_REAL_TIME ((uint64_t)1 << 1)
#define DOCA_CLOCK_NIC_DPA_TIMER ((uint64_t)1 << 8)
#define DOCA_CLOCK_HOST_COUNTER_CYCLES ((uint64_t)1 << 16)
#define DOCA_CLOCK_HOST_REAL_TIME ((uint64_t)1 << 17)
#define DOCA_CLOCK_HOST_MONOTONIC ((uint64_t)1 << 18)
#define DOCA_CLOCK_HOST_MONOTONIC_RAW ((uint64_t)1 << 19)

/* The time of a clock: `counter` of a clock that counts cycles, `ts` of all others. */
union doca_clock_timespec_t {
	struct timespec ts;
	uint64_t counter;
};

/* Returns SUCCESS if the device has the clock, NOT_SUPPORTED if not. */
DOCA_EXPERIMENTAL doca_error_t
doca_clock_cap_nic_free_running_is_supported(const struct doca_devinfo *devinfo);
DOCA_EXPERIMENTAL doca_error_t
doca_clock_cap_nic_real_time_is_supported(const struct doca_devinfo *devinfo);
DOCA_EXPERIMENTAL doca_error_t
doca_clock_cap_nic_dpa_timer_is_supported(const struct doca_devinfo *devinfo);

/*
 * Create an object that reads the clocks of an open device. The device cannot be closed before the
 * object is destroyed.
 */
DOCA_EXPERIMENTAL doca_error_t doca_clock_create(const struct doca_dev *dev,
						 struct doca_clock **clock);

/* Destroy the object that reads clocks. */
DOCA_EXPERIMENTAL doca_error_t doca_clock_destroy(struct doca_clock *clock);

/* Read one clock. */
DOCA_EXPERIMENTAL doca_error_t doca_clock_get_timestamp(const struct doca_clock *clock,
							uint64_t type,
							union doca_clock_timespec_t *ts);

/*
 * Read a clock and a clock of the device at the same time. error_margin_nsecs gets the maximum
 * difference between both reads, in nanoseconds.
 */
DOCA_EXPERIMENTAL doca_error_t
doca_clock_get_crosstimestamp(const struct doca_clock *clock, uint64_t primary_type,
			      uint64_t nic_type, union doca_clock_timespec_t *primary_ts,
			      union doca_clock_timespec_t *nic_ts, uint64_t *error_margin_nsecs);

#ifdef __cplusplus
}
#endif

#endif
