/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stat_rates.h - what a role did between two reports of its process: amounts, latency, and the
 * parts of the latency
 */
#ifndef GN_REPORT_STAT_RATES_H
#define GN_REPORT_STAT_RATES_H

#include <jansson.h>
#include <stdbool.h>

#include "report/role_work.h"

/* The parts of a latency, in the order in which an IO passes them. */
enum gn_stat_part {
	GN_STAT_LINK,
	GN_STAT_GATEWAY,
	GN_STAT_TARGET,
	GN_STAT_BACKEND,
	GN_STAT_DATA,
	GN_STAT_PARTS,
};

/* Names of the parts; their first letters differ. */
extern const char *const gn_stat_part_names[GN_STAT_PARTS];

/*
 * Find the report of the same process in a list. A report with a longer run time than `process` is
 * of an earlier process with the same PID. Returns NULL if there is none.
 */
const json_t *gn_stat_find_process(const json_t *list, const json_t *process);

/*
 * Calculate what a role did.
 *
 * process  report of its process
 * name     name of the role, which the process has
 * earlier  earlier report of the same process; NULL, or if its counters are higher: the interval
 *          begins with the measurement of the role
 * returns  the length of the interval in seconds
 */
double gn_stat_work(struct gn_work *work, const json_t *process, const char *name,
		    const json_t *earlier);

/*
 * Calculate what a session of a server did since an earlier report of its role; NULL: since the
 * session started.
 */
void gn_stat_session_work(struct gn_work *work, const json_t *session, const json_t *earlier);

/* IOs that the role has passed on, or its backend has, and that have not completed. */
double gn_stat_in_flight(const json_t *role);

/*
 * Calculate the share of each part in the latency of the IOs since the earlier report.
 *
 * role     the role in the report of its process
 * earlier  the same role in an earlier report; NULL: since the start
 * share    out: shares, whose sum is 1
 * returns  false: the role does not measure the parts, or had no IO
 */
bool gn_stat_shares(const json_t *role, const json_t *earlier, double share[GN_STAT_PARTS]);

/* Append the earlier reports of the processes that have not answered, for the next rates. */
void gn_stat_keep_silent(json_t *list, const json_t *before, const json_t *silent);

#endif
