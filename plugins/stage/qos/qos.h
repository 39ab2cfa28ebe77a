/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * qos.h - internal interface of the stage qos.
 *
 *     bucket.c  limits, and the token buckets that enforce them
 *     flow.c    sessions: their buckets, and on each lane their queue of held descriptors
 *     qos.c     plugin interface; decides which descriptor passes
 *
 * An IO takes tokens of two resources, IOs and bytes, from the buckets of its session and from
 * those of the volume. All lanes share the buckets. A bucket is one word, the time at which it will
 * be full: taking tokens moves this time into the future. An account is what a lane has taken from
 * a bucket and not used yet. Its tokens can be reserved: taken before the bucket has them, so that
 * the time at which they are there is known.
 */
#ifndef QOS_H
#define QOS_H

#include <pthread.h>

#include <gantry/stage.h>

/* The unit of times in this stage: 1/32 ns. Rounding is then negligible for one IO of 512 bytes. */
#define QOS_TICKS_PER_NS 32u

enum qos_resource { QOS_IOS, QOS_BYTES, QOS_RESOURCES };

struct qos_conf {
	int64_t iops, session_iops;            /* 0: no limit */
	uint64_t bandwidth, session_bandwidth; /* bytes per second; 0: no limit */
	uint64_t burst_ns;
};

struct qos_limit {
	double ticks;   /* for one token; 0: no limit */
	uint64_t depth; /* ticks in which an empty bucket becomes full */
	uint64_t batch; /* tokens that a lane takes in advance from a bucket that has them */
};

struct qos_bucket {
	uint64_t full_at; /* ticks; __atomic */
};

struct qos_account {
	uint64_t credit;   /* tokens that the lane can use */
	uint64_t reserved; /* tokens that it can use from `due` on */
	uint64_t due;      /* ticks */
	uint64_t taken_ns; /* when tokens were last taken from the bucket */
};

/* A version of the limits. Only the buckets change, until the stage is closed. */
struct qos_limits {
	struct qos_bucket bucket[QOS_RESOURCES]; /* of the volume */
	struct qos_limit volume[QOS_RESOURCES] __attribute__((aligned(GANTRY_CACHE_LINE)));
	struct qos_limit session[QOS_RESOURCES];
	int limits_volume, limits_sessions;
	struct qos_limits *older;
};

/* A client session on all lanes. */
struct qos_session {
	struct qos_bucket bucket[QOS_RESOURCES];
	const void *key;
	const struct qos_limits *limits; /* version that the buckets belong to */
	uint32_t n_flows;
	struct qos_session *next;
};

enum qos_state {
	QOS_IDLE,    /* in no list */
	QOS_WAITING, /* the session is over its limit until `due` */
	QOS_READY,   /* the first descriptor has the tokens of the session */
	QOS_PASSING  /* gantry_submit() of the first descriptor runs */
};

/* A list of held descriptors. The stage context of a descriptor is the next one. */
struct qos_ios {
	struct gantry_io *first, *last;
};

/* A session on one lane. */
struct qos_flow {
	const void *key;
	struct qos_session *session;
	struct qos_ios ios; /* held descriptors, oldest first */
	struct qos_account account[QOS_RESOURCES];
	enum qos_state state;
	uint64_t due;                 /* ticks */
	struct qos_flow *next, *prev; /* in the list of its state */
	struct qos_flow *chain;       /* in the table */
};

struct qos_flows {
	struct qos_flow *first, *last;
};

#define QOS_TABLE 256u

struct qos {
	const struct gantry_host *host;
	struct qos_limits *limits; /* newest version; __atomic */
	pthread_mutex_t lock;      /* of the sessions; taken when a lane sees a session first */
	struct qos_session *sessions;
	uint32_t n_lanes;
	struct qos_lane **lanes;
};

struct qos_lane {
	struct qos *qos;
	struct gantry_lane *lane;
	struct qos_limits *limits; /* version that this lane applies */
	struct qos_account account[QOS_RESOURCES];
	uint32_t n_held;
	struct qos_flow *newest;   /* flow of the last descriptor */
	struct qos_flows waiting;  /* ordered by `due` */
	struct qos_flows ready;    /* in the order of their turns */
	uint64_t next_deadline_ns; /* not later than any deadline of a held descriptor */
	uint64_t n_delayed, n_expired, n_canceled;
	uint32_t n_flows, sweep_at;
	struct qos_flow *table[QOS_TABLE];
} __attribute__((aligned(GANTRY_CACHE_LINE)));

extern const struct gantry_option qos_options[];

/* Create a version of the limits. now: ticks. older: can be NULL. Returns NULL: out of memory. */
struct qos_limits *qos_limits_create(const struct qos_conf *conf, struct qos_limits *older,
				     uint64_t now);
int qos_limit_equal(const struct qos_limit *a, const struct qos_limit *b);

/*
 * Get tokens for accounts that have less than one IO or `bytes`: take what is missing from the
 * buckets, or reserve it. Returns 1: the accounts have the tokens; 0: they will, see qos_due().
 */
int qos_fill(struct qos_account *account, struct qos_bucket *bucket, const struct qos_limit *limit,
	     uint64_t bytes, uint64_t now_ns);
/* Return all tokens to the bucket. */
void qos_account_return(struct qos_account *account, struct qos_bucket *bucket,
			const struct qos_limit *limit);
/* Empty the bucket. now: ticks. */
void qos_bucket_empty(struct qos_bucket *bucket, const struct qos_limit *limit, uint64_t now);

static inline uint64_t qos_bytes(const struct gantry_io *io)
{
	return gantry_op_has_data(io->opcode) ? io->length : 0;
}

/*
 * Take the tokens of an IO from the accounts. Returns 1, or 0: a token is missing, none was taken,
 * and what is missing is reserved.
 */
static inline int qos_take(struct qos_account *account, struct qos_bucket *bucket,
			   const struct qos_limit *limit, const struct gantry_io *io,
			   uint64_t now_ns)
{
	const uint64_t bytes = qos_bytes(io);

	if (gantry_unlikely(account[QOS_IOS].credit < 1 || account[QOS_BYTES].credit < bytes) &&
	    !qos_fill(account, bucket, limit, bytes, now_ns))
		return 0;
	account[QOS_IOS].credit--;
	account[QOS_BYTES].credit -= bytes;
	return 1;
}

/* Undo qos_take(). */
static inline void qos_put(struct qos_account *account, const struct gantry_io *io)
{
	account[QOS_IOS].credit++;
	account[QOS_BYTES].credit += qos_bytes(io);
}

/* Get the time at which both accounts have their tokens. Returns ticks; 0: they have them. */
uint64_t qos_due(const struct qos_account *account);

/* Get the flow of a descriptor on this lane. Returns NULL: out of memory. */
struct qos_flow *qos_flow_find(struct qos_lane *lane, const struct gantry_io *io);
/* Free all flows of a lane that is stopped. */
void qos_flows_free(struct qos_lane *lane);
/* Apply new limits to the session of a flow. now: ticks. */
void qos_flow_change(struct qos_lane *lane, struct qos_flow *flow, const struct qos_limits *limits,
		     uint64_t now);
/* Put a flow at the end of a list, in order of `due` with state WAITING, or take it out. */
void qos_list_add(struct qos_lane *lane, struct qos_flow *flow, enum qos_state state);
void qos_list_remove(struct qos_lane *lane, struct qos_flow *flow);
void qos_list_add_first(struct qos_lane *lane, struct qos_flow *flow);

#endif
