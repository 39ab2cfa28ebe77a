/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bucket.c - limits and token buckets of the stage qos
 *
 * A bucket that holds less than `depth` is full at full_at > now, and its content in ticks is
 * now + depth - full_at. Lanes change full_at with a compare-and-swap, so no tokens are lost.
 */
#define GANTRY_API_VERSION 1

#include <stdlib.h>

#include "qos.h"

/*
 * The time whose tokens a lane takes in advance. At 1,000,000 IOs per second these are 100 IOs, so
 * the access to the shared bucket costs an IO less than 1 ns. It is a tenth of the smallest burst.
 */
#define BATCH_NS 100000u
/* limit of the ticks for one IO, so that no sum of times overflows: 52 days */
#define COST_MAX (UINT64_C(1) << 57)
/* tokens that a lane takes if there is no limit */
#define UNLIMITED_BATCH (UINT64_C(1) << 50)

const struct gantry_option qos_options[] = {
	{"iops", GANTRY_OPT_INT | GANTRY_OPT_CHANGEABLE, offsetof(struct qos_conf, iops), "0", 0,
	 INT64_MAX, NULL, NULL, "IOs per second of all clients; 0: no limit."},
	{"bandwidth", GANTRY_OPT_SIZE | GANTRY_OPT_CHANGEABLE, offsetof(struct qos_conf, bandwidth),
	 "0", 0, INT64_MAX, NULL, NULL,
	 "Bytes per second that all clients read and write; 0: no limit."},
	{"session_iops", GANTRY_OPT_INT | GANTRY_OPT_CHANGEABLE,
	 offsetof(struct qos_conf, session_iops), "0", 0, INT64_MAX, NULL, NULL,
	 "IOs per second of each session; 0: no limit."},
	{"session_bandwidth", GANTRY_OPT_SIZE | GANTRY_OPT_CHANGEABLE,
	 offsetof(struct qos_conf, session_bandwidth), "0", 0, INT64_MAX, NULL, NULL,
	 "Bytes per second that each session reads and writes; 0: no limit."},
	{"burst", GANTRY_OPT_TIME | GANTRY_OPT_CHANGEABLE, offsetof(struct qos_conf, burst_ns),
	 "100ms", 1000000, 3600000000000, NULL, NULL,
	 "Time whose share of each limit can pass at once after a pause."},
	GANTRY_OPTION_END,
};

static uint64_t cost(const struct qos_limit *limit, uint64_t tokens)
{
	const double ticks = (double)tokens * limit->ticks;

	return ticks < (double)COST_MAX ? (uint64_t)(ticks + 0.5) : COST_MAX;
}

static struct qos_limit limit_of(uint64_t rate, uint64_t burst_ns)
{
	struct qos_limit limit = {0};
	uint64_t one;

	if (rate == 0) {
		limit.batch = UNLIMITED_BATCH;
		return limit;
	}
	limit.ticks = 1e9 * QOS_TICKS_PER_NS / (double)rate;
	limit.batch = (uint64_t)((double)rate * (BATCH_NS / 1e9));
	one = cost(&limit, 1);
	limit.depth = burst_ns * QOS_TICKS_PER_NS;
	if (limit.depth < one)
		limit.depth = one;
	return limit;
}

int qos_limit_equal(const struct qos_limit *a, const struct qos_limit *b)
{
	/* the limits of an equal rate are equal bit by bit */
	return !(a->ticks < b->ticks) && !(a->ticks > b->ticks) && a->depth == b->depth;
}

void qos_bucket_empty(struct qos_bucket *bucket, const struct qos_limit *limit, uint64_t now)
{
	__atomic_store_n(&bucket->full_at, now + limit->depth, __ATOMIC_RELAXED);
}

struct qos_limits *qos_limits_create(const struct qos_conf *conf, struct qos_limits *older,
				     uint64_t now)
{
	const uint64_t rate[QOS_RESOURCES] = {(uint64_t)conf->iops, conf->bandwidth};
	const uint64_t session_rate[QOS_RESOURCES] = {(uint64_t)conf->session_iops,
						      conf->session_bandwidth};
	struct qos_limits *limits = gantry_zalloc_lines(sizeof *limits);

	if (!limits)
		return NULL;
	limits->older = older;
	for (unsigned r = 0; r < QOS_RESOURCES; r++) {
		limits->volume[r] = limit_of(rate[r], conf->burst_ns);
		limits->session[r] = limit_of(session_rate[r], conf->burst_ns);
		limits->limits_volume |= rate[r] != 0;
		limits->limits_sessions |= session_rate[r] != 0;
		if (!older)
			continue;
		if (qos_limit_equal(&limits->volume[r], &older->volume[r]))
			limits->bucket[r].full_at = __atomic_load_n(&older->bucket[r].full_at,
								    __ATOMIC_RELAXED);
		else
			qos_bucket_empty(&limits->bucket[r], &limits->volume[r], now);
	}
	return limits;
}

/* As qos_fill(), for one resource. */
static int fill(struct qos_account *account, struct qos_bucket *bucket,
		const struct qos_limit *limit, uint64_t need, uint64_t now_ns)
{
	const uint64_t now = now_ns * QOS_TICKS_PER_NS;
	uint64_t missing, take, full_at, next;

	if (account->reserved && account->due <= now) {
		account->credit += account->reserved;
		account->reserved = 0;
	}
	if (account->credit >= need)
		return 1;
	if (account->credit + account->reserved >= need)
		return 0;
	if (limit->batch == UNLIMITED_BATCH) {
		account->credit += limit->batch;
		return 1;
	}
	missing = need - account->credit - account->reserved;
	full_at = __atomic_load_n(&bucket->full_at, __ATOMIC_RELAXED);
	do {
		const uint64_t from = full_at > now ? full_at : now;

		take = missing + limit->batch;
		next = from + cost(limit, take);
		if (next > now + limit->depth) {
			take = missing;
			next = from + cost(limit, take);
		}
	} while (!__atomic_compare_exchange_n(&bucket->full_at, &full_at, next, 1, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	account->reserved += take;
	account->due = next > limit->depth ? next - limit->depth : 0;
	account->taken_ns = now_ns;
	if (account->due > now)
		return 0;
	account->credit += account->reserved;
	account->reserved = 0;
	return 1;
}

int qos_fill(struct qos_account *account, struct qos_bucket *bucket, const struct qos_limit *limit,
	     uint64_t bytes, uint64_t now_ns)
{
	const int has_io = fill(&account[QOS_IOS], &bucket[QOS_IOS], &limit[QOS_IOS], 1, now_ns);

	return fill(&account[QOS_BYTES], &bucket[QOS_BYTES], &limit[QOS_BYTES], bytes, now_ns) &&
	       has_io;
}

void qos_account_return(struct qos_account *account, struct qos_bucket *bucket,
			const struct qos_limit *limit)
{
	const uint64_t ticks = cost(limit, account->credit + account->reserved);
	uint64_t full_at = __atomic_load_n(&bucket->full_at, __ATOMIC_RELAXED), next;

	/* a lane can have taken the tokens from the bucket of an older version of the limits */
	do
		next = full_at > ticks ? full_at - ticks : 0;
	while (!__atomic_compare_exchange_n(&bucket->full_at, &full_at, next, 1, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED));
	account->credit = account->reserved = 0;
}

uint64_t qos_due(const struct qos_account *account)
{
	uint64_t due = 0;

	for (unsigned r = 0; r < QOS_RESOURCES; r++)
		if (account[r].reserved && account[r].due > due)
			due = account[r].due;
	return due;
}
