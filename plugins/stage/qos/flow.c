/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flow.c - the sessions of the stage qos: a table of flows on each lane, and one list of sessions,
 * which have the buckets that the flows of all lanes share
 *
 * The stage does not learn that a session has ended. A session with full buckets and without held
 * descriptors is equal to a new one, so a lane frees such flows when it has many.
 */
#define GANTRY_API_VERSION 1

#include <stdlib.h>

#include "qos.h"

#define SWEEP_MIN 128u

static const void *key_of(const struct gantry_io *io)
{
	return io->hop->session ? io->hop->session : io->owner;
}

static struct qos_flow **slot_of(struct qos_lane *lane, const void *key)
{
	const uint64_t hash = (uint64_t)(uintptr_t)key * UINT64_C(0x9e3779b97f4a7c15);

	return &lane->table[(hash >> 32) % QOS_TABLE];
}

/* Get the session of a flow, and count the flow. */
static struct qos_session *session_join(struct qos_lane *lane, const void *key)
{
	struct qos *qos = lane->qos;
	struct qos_session *session;

	pthread_mutex_lock(&qos->lock);
	for (session = qos->sessions; session && session->key != key;)
		session = session->next;
	if (!session) {
		session = gantry_zalloc_lines(sizeof *session);
		if (session) {
			session->key = key;
			session->limits = lane->limits;
			session->next = qos->sessions;
			qos->sessions = session;
		}
	}
	if (session)
		session->n_flows++;
	pthread_mutex_unlock(&qos->lock);
	return session;
}

static void session_leave(struct qos *qos, struct qos_session *session)
{
	struct qos_session **at = &qos->sessions;

	pthread_mutex_lock(&qos->lock);
	if (--session->n_flows == 0) {
		while (*at != session)
			at = &(*at)->next;
		*at = session->next;
		free(session);
	}
	pthread_mutex_unlock(&qos->lock);
}

static int is_as_new(const struct qos_flow *flow, uint64_t now)
{
	if (flow->state != QOS_IDLE || flow->ios.first)
		return 0;
	for (unsigned r = 0; r < QOS_RESOURCES; r++)
		if (__atomic_load_n(&flow->session->bucket[r].full_at, __ATOMIC_RELAXED) > now)
			return 0;
	return 1;
}

static void sweep(struct qos_lane *lane)
{
	const uint64_t now = lane->lane->now_ns * QOS_TICKS_PER_NS;

	lane->newest = NULL;
	for (unsigned i = 0; i < QOS_TABLE; i++)
		for (struct qos_flow **at = &lane->table[i], *flow; (flow = *at) != NULL;) {
			if (!is_as_new(flow, now)) {
				at = &flow->chain;
				continue;
			}
			*at = flow->chain;
			session_leave(lane->qos, flow->session);
			free(flow);
			lane->n_flows--;
		}
	lane->sweep_at = lane->n_flows < SWEEP_MIN / 2 ? SWEEP_MIN : 2 * lane->n_flows;
}

static struct qos_flow *flow_create(struct qos_lane *lane, const void *key)
{
	struct qos_flow *flow, **slot = slot_of(lane, key);

	if (lane->n_flows >= lane->sweep_at)
		sweep(lane);
	flow = gantry_zalloc_lines(sizeof *flow);
	if (!flow)
		return NULL;
	flow->key = key;
	flow->session = session_join(lane, key);
	if (!flow->session) {
		free(flow);
		return NULL;
	}
	flow->chain = *slot;
	*slot = flow;
	lane->n_flows++;
	return flow;
}

struct qos_flow *qos_flow_find(struct qos_lane *lane, const struct gantry_io *io)
{
	const void *key = key_of(io);
	struct qos_flow *flow = lane->newest;

	if (gantry_likely(flow && flow->key == key))
		return flow;
	for (flow = *slot_of(lane, key); flow && flow->key != key;)
		flow = flow->chain;
	if (!flow)
		flow = flow_create(lane, key);
	lane->newest = flow;
	return flow;
}

void qos_flows_free(struct qos_lane *lane)
{
	for (unsigned i = 0; i < QOS_TABLE; i++)
		for (struct qos_flow *flow; (flow = lane->table[i]) != NULL;) {
			lane->table[i] = flow->chain;
			session_leave(lane->qos, flow->session);
			free(flow);
		}
	lane->newest = NULL;
	lane->n_flows = 0;
}

void qos_flow_change(struct qos_lane *lane, struct qos_flow *flow, const struct qos_limits *limits,
		     uint64_t now)
{
	struct qos_session *session = flow->session;

	for (unsigned r = 0; r < QOS_RESOURCES; r++)
		if (!qos_limit_equal(&limits->session[r], &lane->limits->session[r]))
			flow->account[r] = (struct qos_account){0};
	pthread_mutex_lock(&lane->qos->lock);
	for (unsigned r = 0; session->limits != limits && r < QOS_RESOURCES; r++)
		if (!qos_limit_equal(&limits->session[r], &session->limits->session[r]))
			qos_bucket_empty(&session->bucket[r], &limits->session[r], now);
	session->limits = limits;
	pthread_mutex_unlock(&lane->qos->lock);
}

static struct qos_flows *list_of(struct qos_lane *lane, enum qos_state state)
{
	return state == QOS_WAITING ? &lane->waiting : &lane->ready;
}

static void insert(struct qos_flows *list, struct qos_flow *before, struct qos_flow *flow)
{
	flow->prev = before;
	flow->next = before ? before->next : list->first;
	if (flow->next)
		flow->next->prev = flow;
	else
		list->last = flow;
	if (before)
		before->next = flow;
	else
		list->first = flow;
}

void qos_list_add(struct qos_lane *lane, struct qos_flow *flow, enum qos_state state)
{
	struct qos_flows *list = list_of(lane, state);
	struct qos_flow *before = list->last;

	while (state == QOS_WAITING && before && before->due > flow->due)
		before = before->prev;
	flow->state = state;
	insert(list, before, flow);
}

void qos_list_add_first(struct qos_lane *lane, struct qos_flow *flow)
{
	flow->state = QOS_READY;
	insert(&lane->ready, NULL, flow);
}

void qos_list_remove(struct qos_lane *lane, struct qos_flow *flow)
{
	struct qos_flows *list = list_of(lane, flow->state);

	if (flow->prev)
		flow->prev->next = flow->next;
	else
		list->first = flow->next;
	if (flow->next)
		flow->next->prev = flow->prev;
	else
		list->last = flow->prev;
	flow->next = flow->prev = NULL;
	flow->state = QOS_IDLE;
}
