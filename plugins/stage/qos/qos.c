/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * qos.c - a stage that limits IOs and bytes per second, of each session and of all together
 *
 * In a configuration:
 *
 *     stages = ( { type = "qos"; iops = 50000; session_bandwidth = "200MiB"; } );
 *
 * Each session has a queue on each lane. The first descriptor of a queue waits for the tokens of
 * its session, while the queue is in the list `waiting`. Then it waits for its turn in the list
 * `ready`, whose first descriptor waits for the tokens of the volume:
 *
 *     IDLE -> WAITING -> READY -> PASSING -> IDLE, or WAITING or READY for the next descriptor
 *
 * So a session over its limit delays no other session, and the sessions of a lane share what the
 * volume allows in turns. A descriptor that can pass at once has no part in this.
 */
#define GANTRY_API_VERSION 1

#include <errno.h>
#include <stdlib.h>

#include "qos.h"

#define POLL_BOUND 64
/* Time after which an idle lane returns the tokens that it has taken in advance. */
#define CREDIT_NS 1000000u
/* Limit of the sleep of a lane that holds descriptors: a change of the options wakes no lane. */
#define SLEEP_MAX_NS 100000000u

static int qos_open(const struct gantry_host *host, const void *conf, void **stage_p)
{
	struct qos *qos = calloc(1, sizeof *qos);

	if (!qos)
		return -ENOMEM;
	qos->host = host;
	qos->limits = qos_limits_create(conf, NULL, 0);
	if (!qos->limits) {
		free(qos);
		return -ENOMEM;
	}
	pthread_mutex_init(&qos->lock, NULL);
	*stage_p = qos;
	return 0;
}

static void qos_change(void *stage, const void *conf)
{
	struct qos *qos = stage;
	struct qos_limits *limits = qos_limits_create(
		conf, qos->limits, qos->host->now_ns(qos->host) * QOS_TICKS_PER_NS);

	if (limits)
		__atomic_store_n(&qos->limits, limits, __ATOMIC_RELEASE);
	else
		gantry_log_error(qos->host, "limits not changed: out of memory");
}

static int qos_start(void *stage, struct gantry_lane *lane, void **self_p)
{
	struct qos *qos = stage;
	struct qos_lane *self;

	if (!qos->lanes) {
		qos->lanes = calloc(lane->n_lanes, sizeof *qos->lanes);
		if (!qos->lanes)
			return -ENOMEM;
		qos->n_lanes = lane->n_lanes;
	}
	self = qos->lanes[lane->index];
	if (!self) {
		self = gantry_zalloc_lines(sizeof *self);
		if (!self)
			return -ENOMEM;
		self->qos = qos;
		self->limits = qos->limits;
		__atomic_store_n(&qos->lanes[lane->index], self, __ATOMIC_RELEASE);
	}
	self->lane = lane;
	*self_p = self;
	return 0;
}

static inline int take_of_volume(struct qos_lane *lane, const struct gantry_io *io)
{
	struct qos_limits *limits = lane->limits;

	return !limits->limits_volume ||
	       qos_take(lane->account, limits->bucket, limits->volume, io, lane->lane->now_ns);
}

static inline int take_of_session(struct qos_lane *lane, struct qos_flow *flow,
				  const struct gantry_io *io)
{
	return !lane->limits->limits_sessions ||
	       qos_take(flow->account, flow->session->bucket, lane->limits->session, io,
			lane->lane->now_ns);
}

/* Get the time at which a held descriptor expires. Returns UINT64_MAX: never. */
static uint64_t deadline_of(const struct gantry_io *io)
{
	return io->deadline_us ? io->start_ns + (uint64_t)io->deadline_us * 1000 : UINT64_MAX;
}

static struct gantry_io *next_of(struct gantry_io *io)
{
	return (struct gantry_io *)(uintptr_t)*gantry_stage_ctx(io);
}

static void list_append(struct qos_ios *ios, struct gantry_io *io)
{
	*gantry_stage_ctx(io) = 0;
	if (ios->first)
		*gantry_stage_ctx(ios->last) = (uint64_t)(uintptr_t)io;
	else
		ios->first = io;
	ios->last = io;
}

static struct gantry_io *take_first(struct qos_lane *lane, struct qos_flow *flow)
{
	struct gantry_io *io = flow->ios.first;

	flow->ios.first = next_of(io);
	lane->n_held--;
	return io;
}

static void put_first(struct qos_lane *lane, struct qos_flow *flow, struct gantry_io *io)
{
	if (!flow->ios.first)
		flow->ios.last = io;
	*gantry_stage_ctx(io) = (uint64_t)(uintptr_t)flow->ios.first;
	flow->ios.first = io;
	lane->n_held++;
}

/* Put an idle flow with descriptors in the list that its first descriptor needs. */
static void enqueue(struct qos_lane *lane, struct qos_flow *flow)
{
	if (take_of_session(lane, flow, flow->ios.first)) {
		qos_list_add(lane, flow, QOS_READY);
		return;
	}
	flow->due = qos_due(flow->account);
	qos_list_add(lane, flow, QOS_WAITING);
}

static int hold(struct qos_lane *lane, struct qos_flow *flow, struct gantry_io *io)
{
	const uint64_t deadline_ns = deadline_of(io);

	list_append(&flow->ios, io);
	if (lane->n_held++ == 0 || deadline_ns < lane->next_deadline_ns)
		lane->next_deadline_ns = deadline_ns;
	gantry_count(&lane->n_delayed, 1);
	return 0;
}

static int submit_without_sessions(struct qos_lane *lane, struct gantry_io *io)
{
	int rc = gantry_submit(io);

	if (gantry_unlikely(rc != 0))
		qos_put(lane->account, io);
	return rc;
}

static int qos_submit(void *self, struct gantry_io *io)
{
	struct qos_lane *lane = self;
	const struct qos_limits *limits = lane->limits;
	struct qos_flow *flow;
	int rc;

	if (!limits->limits_sessions && lane->n_held == 0 && take_of_volume(lane, io))
		return submit_without_sessions(lane, io);
	flow = qos_flow_find(lane, io);
	if (!flow)
		return -EAGAIN;
	if (flow->state != QOS_IDLE)
		return hold(lane, flow, io);
	if (!take_of_session(lane, flow, io)) {
		flow->due = qos_due(flow->account);
		qos_list_add(lane, flow, QOS_WAITING);
		return hold(lane, flow, io);
	}
	if (lane->ready.first || !take_of_volume(lane, io)) {
		qos_list_add(lane, flow, QOS_READY);
		return hold(lane, flow, io);
	}
	rc = gantry_submit(io);
	if (gantry_unlikely(rc != 0)) {
		qos_put(lane->account, io);
		/* a completion during gantry_submit() can have freed the flow */
		flow = qos_flow_find(lane, io);
		if (flow)
			qos_put(flow->account, io);
	}
	return rc;
}

/* Pass on the first descriptor of a flow. Returns 0 or -EAGAIN: the chain is full. */
static int pass(struct qos_lane *lane, struct qos_flow *flow)
{
	struct gantry_io *io = take_first(lane, flow);
	int rc;

	qos_list_remove(lane, flow);
	/* a completion during gantry_submit() can submit or drain descriptors of this flow */
	flow->state = QOS_PASSING;
	rc = gantry_submit(io);
	flow->state = QOS_IDLE;
	if (rc == -EAGAIN) {
		qos_put(lane->account, io);
		put_first(lane, flow, io);
		qos_list_add_first(lane, flow);
		return rc;
	}
	if (flow->ios.first)
		enqueue(lane, flow);
	if (rc)
		gantry_fail(io, gantry_status_of_errno(rc));
	return 0;
}

/*
 * Move the held descriptors of an owner (NULL: of all) that expire at `time_ns` or before from a
 * flow to a list.
 */
static void detach(struct qos_lane *lane, struct qos_flow *flow, const void *owner,
		   uint64_t time_ns, struct qos_ios *detached)
{
	struct gantry_io *io, *next, *first = flow->ios.first;

	flow->ios = (struct qos_ios){NULL, NULL};
	for (io = first; io; io = next) {
		next = next_of(io);
		if ((!owner || io->owner == owner) && deadline_of(io) <= time_ns) {
			list_append(detached, io);
			lane->n_held--;
		} else {
			list_append(&flow->ios, io);
		}
	}
	if (flow->ios.first == first || (flow->state != QOS_READY && flow->state != QOS_WAITING))
		return;
	if (flow->state == QOS_READY)
		qos_put(flow->account, first);
	qos_list_remove(lane, flow);
	if (flow->ios.first)
		enqueue(lane, flow);
}

/*
 * Cancel descriptors as detach() selects them. A completion can submit new descriptors, which can
 * also be held; they stay held. Returns how many it has canceled.
 */
static uint64_t cancel(struct qos_lane *lane, const void *owner, uint64_t time_ns)
{
	struct qos_ios ios = {NULL, NULL};
	struct gantry_io *io, *next;
	uint64_t n = 0;

	for (unsigned i = 0; i < QOS_TABLE; i++)
		for (struct qos_flow *flow = lane->table[i]; flow; flow = flow->chain)
			if (flow->ios.first)
				detach(lane, flow, owner, time_ns, &ios);
	for (io = ios.first; io; io = next, n++) {
		next = next_of(io);
		gantry_fail(io, GANTRY_S_CANCELED);
	}
	return n;
}

static void qos_drain(void *self, const void *owner)
{
	struct qos_lane *lane = self;

	gantry_count(&lane->n_canceled, cancel(lane, owner, UINT64_MAX));
}

/* Cancel the expired descriptors, and find the next deadline. */
static void expire(struct qos_lane *lane)
{
	uint64_t n;

	n = cancel(lane, NULL, lane->lane->now_ns);
	lane->next_deadline_ns = UINT64_MAX;
	for (unsigned i = 0; i < QOS_TABLE; i++)
		for (struct qos_flow *flow = lane->table[i]; flow; flow = flow->chain)
			for (struct gantry_io *io = flow->ios.first; io; io = next_of(io))
				if (deadline_of(io) < lane->next_deadline_ns)
					lane->next_deadline_ns = deadline_of(io);
	gantry_count(&lane->n_expired, n);
}

/* Apply a new version of the limits. Descriptors that wait for a token are decided again. */
static void change(struct qos_lane *lane, struct qos_limits *limits)
{
	const uint64_t now = lane->lane->now_ns * QOS_TICKS_PER_NS;
	struct qos_flow *flow;

	for (unsigned r = 0; r < QOS_RESOURCES; r++)
		if (!qos_limit_equal(&limits->volume[r], &lane->limits->volume[r]))
			lane->account[r] = (struct qos_account){0};
	for (unsigned i = 0; i < QOS_TABLE; i++)
		for (flow = lane->table[i]; flow; flow = flow->chain)
			qos_flow_change(lane, flow, limits, now);
	lane->limits = limits;
	for (unsigned i = 0; i < QOS_TABLE; i++)
		for (flow = lane->table[i]; flow; flow = flow->chain)
			if (flow->state == QOS_WAITING) {
				qos_list_remove(lane, flow);
				enqueue(lane, flow);
			}
}

/* Return the time until which the lane can keep its tokens without using them; 0: it has none. */
static uint64_t credit_until_ns(const struct qos_lane *lane)
{
	uint64_t taken_ns = 0;

	for (unsigned r = 0; r < QOS_RESOURCES; r++)
		if ((lane->account[r].credit || lane->account[r].reserved) &&
		    lane->account[r].taken_ns > taken_ns)
			taken_ns = lane->account[r].taken_ns;
	return taken_ns ? taken_ns + CREDIT_NS : 0;
}

static void return_credit(struct qos_lane *lane)
{
	const uint64_t until = credit_until_ns(lane);

	if (until == 0 || until > lane->lane->now_ns)
		return;
	for (unsigned r = 0; r < QOS_RESOURCES; r++)
		if (lane->account[r].taken_ns != 0)
			qos_account_return(&lane->account[r], &lane->limits->bucket[r],
					   &lane->limits->volume[r]);
}

static int qos_poll(void *self)
{
	struct qos_lane *lane = self;
	struct qos_limits *limits = __atomic_load_n(&lane->qos->limits, __ATOMIC_ACQUIRE);
	const uint64_t now = lane->lane->now_ns * QOS_TICKS_PER_NS;
	struct qos_flow *flow;
	int n = 0;

	if (gantry_unlikely(limits != lane->limits))
		change(lane, limits);
	if (!lane->ready.first)
		return_credit(lane);
	if (lane->n_held == 0)
		return 0;
	if (lane->lane->now_ns >= lane->next_deadline_ns)
		expire(lane);
	while ((flow = lane->waiting.first) && flow->due <= now) {
		qos_list_remove(lane, flow);
		enqueue(lane, flow);
	}
	while (n < POLL_BOUND && (flow = lane->ready.first) &&
	       take_of_volume(lane, flow->ios.first) && pass(lane, flow) == 0)
		n++;
	return n;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Convert ticks to nanoseconds, rounded up. */
static uint64_t ns_of(uint64_t ticks)
{
	return (ticks + QOS_TICKS_PER_NS - 1) / QOS_TICKS_PER_NS;
}

static uint64_t qos_wake_ns(void *self)
{
	struct qos_lane *lane = self;
	uint64_t wake, due;

	if (lane->n_held == 0)
		return credit_until_ns(lane);
	wake = earlier(lane->next_deadline_ns, lane->lane->now_ns + SLEEP_MAX_NS);
	if (lane->waiting.first)
		wake = earlier(wake, ns_of(lane->waiting.first->due));
	/* 0: the first descriptor has its tokens, and waits for the chain, which is full */
	if (lane->ready.first && (due = qos_due(lane->account)) != 0)
		wake = earlier(wake, ns_of(due));
	return wake;
}

static uint64_t sum(const struct qos *qos, size_t offset)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < qos->n_lanes; i++) {
		const struct qos_lane *lane = __atomic_load_n(&qos->lanes[i], __ATOMIC_ACQUIRE);

		if (lane)
			n += __atomic_load_n((const uint64_t *)((const char *)lane + offset),
					     __ATOMIC_RELAXED);
	}
	return n;
}

static void qos_report(void *stage, struct gantry_writer *w)
{
	const struct qos *qos = stage;

	w->u64(w, "delayed_ops", sum(qos, offsetof(struct qos_lane, n_delayed)));
	w->u64(w, "expired_ops", sum(qos, offsetof(struct qos_lane, n_expired)));
	w->u64(w, "canceled_ops", sum(qos, offsetof(struct qos_lane, n_canceled)));
}

static void qos_close(void *stage)
{
	struct qos *qos = stage;
	struct qos_limits *limits;

	for (uint32_t i = 0; i < qos->n_lanes; i++)
		if (qos->lanes[i]) {
			qos_flows_free(qos->lanes[i]);
			free(qos->lanes[i]);
		}
	while ((limits = qos->limits)) {
		qos->limits = limits->older;
		free(limits);
	}
	pthread_mutex_destroy(&qos->lock);
	free(qos->lanes);
	free(qos);
}

static const struct gantry_stage_ops ops = {
	.open = qos_open,
	.start = qos_start,
	.submit = qos_submit,
	.poll = qos_poll,
	.wake_ns = qos_wake_ns,
	.drain = qos_drain,
	.report = qos_report,
	.close = qos_close,
	.n_ctx_words = 1,
};

GANTRY_PLUGIN(qos) = {
	GANTRY_PLUGIN_HEAD,
	.kind = GANTRY_KIND_STAGE,
	.name = "qos",
	.version = "1",
	.summary = "limits IOs and bytes per second, of each session and of the volume",
	.options = qos_options,
	.conf_size = sizeof(struct qos_conf),
	.ops_size = sizeof ops,
	.ops = &ops,
	.change = qos_change,
};
