/* SPDX-License-Identifier: BSD-3-Clause */
/* doca_clock.h - clocks of a device beside those of the host */
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

/* Kinds of clocks: one bit each. */
#define DOCA_CLOCK_NIC_FREE_RUNNING ((uint64_t)1 << 0)
#define DOCA_CLOCK_NIC_REAL_TIME ((uint64_t)1 << 1)
#define DOCA_CLOCK_NIC_DPA_TIMER ((uint64_t)1 << 8)
#define DOCA_CLOCK_HOST_COUNTER_CYCLES ((uint64_t)1 << 16)
#define DOCA_CLOCK_HOST_REAL_TIME ((uint64_t)1 << 17)
#define DOCA_CLOCK_HOST_MONOTONIC ((uint64_t)1 << 18)
#define DOCA_CLOCK_HOST_MONOTONIC_RAW ((uint64_t)1 << 19)

/* Time of one of them: `counter` of those that count, `ts` of the others. */
union doca_clock_timespec_t {
	struct timespec ts;
	uint64_t counter;
};

/* SUCCESS when the device has that clock, NOT_SUPPORTED when not. */
DOCA_EXPERIMENTAL doca_error_t
doca_clock_cap_nic_free_running_is_supported(const struct doca_devinfo *devinfo);
DOCA_EXPERIMENTAL doca_error_t
doca_clock_cap_nic_real_time_is_supported(const struct doca_devinfo *devinfo);
DOCA_EXPERIMENTAL doca_error_t
doca_clock_cap_nic_dpa_timer_is_supported(const struct doca_devinfo *devinfo);

/* The clocks of a device that is open. */
DOCA_EXPERIMENTAL doca_error_t doca_clock_create(const struct doca_dev *dev,
						 struct doca_clock **clock);

/* Free it. */
DOCA_EXPERIMENTAL doca_error_t doca_clock_destroy(struct doca_clock *clock);

/* Read one clock. */
DOCA_EXPERIMENTAL doca_error_t doca_clock_get_timestamp(const struct doca_clock *clock,
							uint64_t type,
							union doca_clock_timespec_t *ts);

/*
 * Read a clock of the host and one of the device at the same time, give or take so many
 * nanoseconds, or cycles when the host's clock counts them.
 */
DOCA_EXPERIMENTAL doca_error_t
doca_clock_get_crosstimestamp(const struct doca_clock *clock, uint64_t primary_type,
			      uint64_t nic_type, union doca_clock_timespec_t *primary_ts,
			      union doca_clock_timespec_t *nic_ts, uint64_t *error_margin_nsecs);

#ifdef __cplusplus
}
#endif

#endif
