/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbd_loss.c - what the loss of a connection means for the data.
 *
 * Acknowledged writes. The server can be another process after a reconnect, which never had the
 * writes that no flush covers. So if there are any, the loss begins a new epoch of the store: the
 * verifier changes, and the next flush of each queue fails. The store counts acknowledged writes,
 * and the part of them that a flush covers. If all are covered, nothing can be lost.
 *
 * A queue is named by io->owner, the object of a session on a lane. A queue whose first IO is a
 * flush after a loss is treated like one that was there before: another queue of its session might
 * have written.
 *
 * Writes without a reply. The old server process can still execute them. The lane sends them again
 * on the new connection. Until the option quiesce_time has passed since the loss, no other write
 * that overlaps them is sent, and no new session starts.
 */
#include <errno.h>

#include "../common/identity.h"
#include "nbd.h"

void nb_loss_note(struct nb_conn *conn)
{
	struct nb_store *store = conn->lane->store;
	uint64_t n;

	pthread_mutex_lock(&store->lock);
	if (conn->incarnation == store->incarnation) {
		__atomic_store_n(&store->incarnation, store->incarnation + 1, __ATOMIC_SEQ_CST);
		nb_count(&store->n_losses);
	}
	n = __atomic_load_n(&store->n_written, __ATOMIC_SEQ_CST); /* see is_outdated() */
	if (n != nb_get(&store->n_flushed)) {
		__atomic_store_n(&store->n_flushed, n, __ATOMIC_RELAXED);
		__atomic_store_n(&store->verifier, identity_nonce(), __ATOMIC_RELAXED);
		__atomic_store_n(&store->epoch, store->epoch + 1, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&store->lock);
}

/* -- writes without a reply -- */

static void drop_ended(struct nb_store *store, uint64_t now)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < store->n_late; i++)
		if (store->late[i].end_ns > now)
			store->late[n++] = store->late[i];
	__atomic_store_n(&store->n_late, n, __ATOMIC_RELAXED);
}

void nb_late_add(struct nb_store *store, const struct nb_request *request)
{
	const struct gantry_host *host = store->host;
	uint64_t now = host->now_ns(host), end = now + store->conf->quiesce_time_ns;
	struct nb_late *late;

	if (store->conf->quiesce_time_ns == 0)
		return;
	pthread_mutex_lock(&store->lock);
	drop_ended(store, now);
	if (store->n_late < NB_MAX_LATE) {
		late = &store->late[store->n_late];
		*late = (struct nb_late){request->io->offset, request->io->length, request->serial,
					 end};
		__atomic_store_n(&store->n_late, store->n_late + 1, __ATOMIC_RELAXED);
	} else {
		/* no serial: it also holds the request itself */
		store->late[NB_MAX_LATE - 1] = (struct nb_late){0, UINT64_MAX, 0, end};
	}
	pthread_mutex_unlock(&store->lock);
}

uint64_t nb_late_blocks(struct nb_store *store, const struct nb_request *request)
{
	const struct gantry_host *host = store->host;
	const struct gantry_io *io = request->io;
	uint64_t until = 0;

	if (gantry_likely(__atomic_load_n(&store->n_late, __ATOMIC_RELAXED) == 0))
		return 0;
	pthread_mutex_lock(&store->lock);
	drop_ended(store, host->now_ns(host));
	for (uint32_t i = 0; i < store->n_late; i++) {
		const struct nb_late *late = &store->late[i];

		if (late->serial != request->serial && late->end_ns > until &&
		    io->offset < late->length + late->offset &&
		    late->offset < io->offset + io->length)
			until = late->end_ns;
	}
	pthread_mutex_unlock(&store->lock);
	return until;
}

int nb_late_quiesce(struct nb_store *store, uint64_t *mark)
{
	const struct gantry_host *host = store->host;
	uint64_t now = host->now_ns(host);

	pthread_mutex_lock(&store->lock);
	drop_ended(store, now);
	if (*mark == 0)
		for (uint32_t i = 0; i < store->n_late; i++)
			if (store->late[i].end_ns > *mark)
				*mark = store->late[i].end_ns;
	pthread_mutex_unlock(&store->lock);
	return *mark > now ? -EAGAIN : 0;
}

/* -- queues -- */

static struct nb_queue *find(struct nb_lane *lane, const void *owner)
{
	uint32_t at = (uint32_t)(((uintptr_t)owner >> 4) * 0x9e3779b97f4a7c15u >> 40);

	for (uint32_t i = 0; i < NB_QUEUES; i++) {
		struct nb_queue *queue = &lane->queues[(at + i) % NB_QUEUES];

		if (!queue->used || queue->owner == owner)
			return queue;
	}
	return NULL;
}

/* All entries are in use: forget them all. From now on an unknown queue may be an old one. */
static struct nb_queue *make_space(struct nb_lane *lane, const void *owner)
{
	for (uint32_t i = 0; i < NB_QUEUES; i++)
		lane->queues[i].used = 0;
	lane->queues_full = 1;
	return find(lane, owner);
}

static struct nb_queue *queue_of(struct nb_lane *lane, const struct gantry_io *io)
{
	struct nb_queue *queue;

	if (gantry_likely(lane->last_queue && lane->last_owner == io->owner))
		return lane->last_queue;
	queue = find(lane, io->owner);
	if (!queue)
		queue = make_space(lane, io->owner);
	if (!queue->used) {
		int may_be_old = io->opcode == GANTRY_OP_FLUSH || lane->queues_full;

		queue->used = 1;
		queue->owner = io->owner;
		queue->epoch = may_be_old ? 0 : nb_get(&lane->store->epoch);
	}
	lane->last_owner = io->owner;
	lane->last_queue = queue;
	return queue;
}

void nb_queue_note(struct nb_lane *lane, const struct gantry_io *io)
{
	(void)queue_of(lane, io);
}

int nb_queue_takes_loss(struct nb_lane *lane, const struct gantry_io *io)
{
	struct nb_queue *queue = queue_of(lane, io);
	uint64_t epoch = __atomic_load_n(&lane->store->epoch, __ATOMIC_ACQUIRE);

	if (gantry_likely(queue->epoch == epoch))
		return 0;
	queue->epoch = epoch;
	nb_count(&lane->store->n_failed_flushes);
	return 1;
}
