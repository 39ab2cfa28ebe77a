/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fault.h"

static const char *const kinds[FAULT_COUNT] = {"drop",  "error",   "delay",
					       "short", "corrupt", "duplicate"};

static const char *const only[] = {"any", "read", "write", "flush", NULL};

/* names of enum gantry_status in its order, without OK */
static const char *const errors[] = {"io",       "nospc",       "range",     "access",
				     "invalid",  "unsupported", "timeout",   "session_lost",
				     "unknown",  "corrupt",     "read_only", "nomem",
				     "canceled", "stale",       "busy",      NULL};
_Static_assert(sizeof errors / sizeof *errors == GANTRY_S_COUNT, "a word for each status but OK");

#define RATE(name, kind, text) \
	{ \
		name, GANTRY_OPT_STRING, \
			offsetof(struct fault_conf, rate) + (kind) * sizeof(const char *), "0%", \
			0, 0, NULL, NULL, text \
	}
#define NTH(name, kind, text) \
	{ \
		name, GANTRY_OPT_INT, offsetof(struct fault_conf, nth) + (kind) * sizeof(int64_t), \
			"0", 0, INT64_MAX, NULL, NULL, text \
	}

const struct gantry_option fault_options[] = {
	{"seed", GANTRY_OPT_INT, offsetof(struct fault_conf, seed), "1", INT64_MIN, INT64_MAX, NULL,
	 NULL,
	 "Seed of the random numbers: the same seed injects the same faults into the same IOs of a lane."},
	{"only", GANTRY_OPT_CHOICE, offsetof(struct fault_conf, only), "any", 0, 0, only, NULL,
	 "Operations that are counted and can get faults; all others pass."},
	RATE("drop_rate", FAULT_DROP,
	     "Share of IOs that get no reply: held until their deadline, or for 30 s if they have none, then completed "
	     "with status timeout. As all rates: \"1%\" or \"0.01\"."),
	NTH("drop_nth", FAULT_DROP,
	    "Drop every n-th IO of a lane; 0: none. As for all of these, the first IO is number 1."),
	RATE("error_rate", FAULT_ERROR,
	     "Share of IOs that fail with the status of `error`, without being submitted."),
	NTH("error_nth", FAULT_ERROR, "Fail every n-th IO of a lane; 0: none."),
	{"error", GANTRY_OPT_CHOICE, offsetof(struct fault_conf, error), "io", 0, 0, errors, NULL,
	 "Status of an IO that this stage fails."},
	{"delay", GANTRY_OPT_TIME, offsetof(struct fault_conf, delay_ns), "1ms", 0, 3600000000000,
	 NULL, NULL, "Minimum time for which a delayed IO is held."},
	RATE("delay_rate", FAULT_DELAY, "Share of IOs that are delayed."),
	NTH("delay_nth", FAULT_DELAY, "Delay every n-th IO of a lane; 0: none."),
	RATE("short_rate", FAULT_SHORT,
	     "Share of reads and writes of which only the first half is executed, and which then fail with status io."),
	NTH("short_nth", FAULT_SHORT, "Cut every n-th IO of a lane short; 0: none."),
	RATE("corrupt_rate", FAULT_CORRUPT,
	     "Share of reads and writes with one bit flipped, if the data is addressable: not in a gateway."),
	NTH("corrupt_nth", FAULT_CORRUPT, "Flip a bit of every n-th IO of a lane; 0: none."),
	RATE("duplicate_rate", FAULT_DUPLICATE,
	     "Share of IOs that are completed twice, which the core must detect; skipped if the descriptor is in use "
	     "again."),
	NTH("duplicate_nth", FAULT_DUPLICATE, "Complete every n-th IO of a lane twice; 0: none."),
	{"disconnect_after", GANTRY_OPT_INT, offsetof(struct fault_conf, disconnect_after), "0", 0,
	 INT64_MAX, NULL, NULL,
	 "Number of IOs of a lane after which every IO fails with status session_lost; 0: never."},
	{"limit", GANTRY_OPT_INT, offsetof(struct fault_conf, limit), "4096", 1, 1 << 20, NULL,
	 NULL, "IOs of a lane that can have a fault at the same time; further IOs get none."},
	GANTRY_OPTION_END,
};

/* As strtod(), but with a point as decimal separator in any locale. */
static double parse_number(const char *text, char **end_p)
{
	locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	double number;

	*end_p = (char *)(uintptr_t)text;
	if (!c)
		return 0;
	number = strtod_l(text, end_p, c);
	freelocale(c);
	return number;
}

/* Convert "1%" or "0.01" to a fraction of 2^32. Returns 0 or -EINVAL. */
static int parse_rate(const char *text, uint64_t *threshold_p)
{
	char *end;
	double share = parse_number(text, &end);

	if (end == text)
		return -EINVAL;
	if (!strcmp(end, "%"))
		share /= 100;
	else if (*end)
		return -EINVAL;
	if (!(share >= 0 && share <= 1))
		return -EINVAL;
	*threshold_p = (uint64_t)(share * 4294967296.0 + 0.5);
	if (share > 0 && *threshold_p == 0)
		*threshold_p = 1;
	return 0;
}

void fault_check(const void *arg, struct gantry_check *check)
{
	const struct fault_conf *conf = arg;
	char option[32];
	uint64_t share;

	for (unsigned kind = 0; kind < FAULT_COUNT; kind++) {
		snprintf(option, sizeof option, "%s_rate", kinds[kind]);
		if (parse_rate(conf->rate[kind], &share))
			gantry_option_fault(
				check, option,
				"\"%.40s\" is no rate; write \"1%%\" or \"0.01\", from 0%% to 100%%",
				conf->rate[kind]);
	}
}

void fault_rates(struct fault *fault)
{
	for (unsigned kind = 0; kind < FAULT_COUNT; kind++)
		parse_rate(fault->conf->rate[kind], &fault->threshold[kind]);
}
