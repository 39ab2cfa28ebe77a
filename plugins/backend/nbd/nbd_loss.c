/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbd_loss.c - what the loss of a connection means for the data.
 *
 * Acknowledged writes. The server can be another process after a reconnect, which never had the
 * writes that no flush covers. So if there are any, the loss begins a new epoch of the store: the
 * verifier changes, and the next flush of each queue fails. The store counts acknowledged writes,
 * and the part of them that a flush covers. If all are covered, nothing can be lost.
 *
 * A queue is named by the owner of its flushes, which no stage divides. A flush fails if the epoch
 * has changed since the last flush of its queue; at the first flush, since the first IO of its
 * session on any lane. A session whose first IO is a flush is treated like one that was there
 * before the loss: a former session of its client might have written.
 *
 * The backend does not learn that a session has ended. A later session at the same address
 * continues with the epoch of the former one, which is not newer than its own. So it can get a
 * failed flush without a loss, and it gets no success after a loss.
 *
 * Writes without a reply. The old server process can still execute them. The lane sends them again
 * on the new connection. Until the option quiesce_time has passed since the loss, no other write
 * that overlaps them is sent, and no new session starts.
 *
 * A target that was killed can leave writes in the server, too, and the next target does not know
 * them. So no session starts until quiesce_time has passed since the backend was opened.
 */
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>

#include "../common/identity.h"
#include "nbd.h"

#define LIVED_NS 1000000000u /* a connection that lives as long is no failed attempt */

void nb_loss_note(struct nb_conn *conn)
{
	struct nb_store *store = conn->lane->store;
	const struct gantry_host *host = store->host;
	const struct nb_lane *lane;
	uint64_t n;

	pthread_mutex_lock(&store->lock);
	if (conn->incarnation != store->incarnation) { /* outdated by a loss that is recorded */
		pthread_mutex_unlock(&store->lock);
		return;
	}
	__atomic_store_n(&store->incarnation, store->incarnation + 1, __ATOMIC_SEQ_CST);
	nb_count(&store->n_losses);
	if (host->now_ns(host) - conn->since_ns >= LIVED_NS)
		store->delay_ns = NB_FIRST_DELAY_NS;
	else
		store->delayed = 1;
	n = __atomic_load_n(&store->n_written, __ATOMIC_SEQ_CST); /* see is_outdated() */
	if (n != nb_get(&store->n_flushed)) {
		__atomic_store_n(&store->n_flushed, n, __ATOMIC_RELAXED);
		__atomic_store_n(&store->verifier, identity_nonce(), __ATOMIC_RELAXED);
		__atomic_store_n(&store->epoch, store->epoch + 1, __ATOMIC_RELEASE);
	}
	/* each lane must replace its connections */
	LIST_FOREACH (lane, &store->lanes, link)
		eventfd_write(lane->event_fd, 1);
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
	if (*mark == 0) {
		*mark = store->former_end_ns;
		for (uint32_t i = 0; i < store->n_late; i++)
			if (store->late[i].end_ns > *mark)
				*mark = store->late[i].end_ns;
	}
	pthread_mutex_unlock(&store->lock);
	return *mark > now ? -EAGAIN : 0;
}

/* -- sessions and queues -- */

static uint32_t hash_of(const void *key)
{
	return (uint32_t)((uintptr_t)key * UINT64_C(0x9e3779b97f4a7c15) >> 40);
}

/* Find the entry of a key, or a free one. When all entries are in use, forget them all. */
static struct nb_mark *find(struct nb_mark table[NB_MARKS], const void *key, int *forgot)
{
	uint32_t at = hash_of(key);

	for (uint32_t i = 0; i < NB_MARKS; i++) {
		struct nb_mark *mark = &table[(at + i) % NB_MARKS];

		if (!mark->key || mark->key == key)
			return mark;
	}
	memset(table, 0, NB_MARKS * sizeof *table);
	*forgot = 1;
	return &table[at % NB_MARKS];
}

/* IOs of a role that is no server have no session: they are the IOs of one client. */
static const void *session_of(const struct nb_store *store, const struct gantry_io *io)
{
	return io->hop->session ? io->hop->session : store;
}

/* Get the epoch of the first IO of the session, which can be this one. */
static uint64_t first_epoch(struct nb_store *store, const struct gantry_io *io)
{
	const void *session = session_of(store, io);
	struct nb_mark *mark;
	uint64_t epoch;

	pthread_mutex_lock(&store->lock);
	mark = find(store->sessions, session, &store->forgot);
	if (!mark->key) {
		int may_be_old = io->opcode == GANTRY_OP_FLUSH || store->forgot;

		*mark = (struct nb_mark){session, may_be_old ? 0 : store->epoch};
	}
	epoch = mark->epoch;
	pthread_mutex_unlock(&store->lock);
	return epoch;
}

void nb_session_note(struct nb_lane *lane, const struct gantry_io *io)
{
	const void *session = session_of(lane->store, io);
	const void **known = &lane->known[hash_of(session) % NB_MARKS];

	if (gantry_likely(*known == session))
		return;
	(void)first_epoch(lane->store, io);
	*known = session;
}

int nb_queue_takes_loss(struct nb_lane *lane, const struct gantry_io *io)
{
	uint64_t epoch = __atomic_load_n(&lane->store->epoch, __ATOMIC_ACQUIRE);
	struct nb_mark *queue;
	int forgot; /* unused: a queue that is unknown starts at the epoch of its session */

	if (gantry_likely(epoch == 0))
		return 0;
	queue = find(lane->queues, io->owner, &forgot);
	if (!queue->key)
		*queue = (struct nb_mark){io->owner, first_epoch(lane->store, io)};
	if (gantry_likely(queue->epoch == epoch))
		return 0;
	queue->epoch = epoch;
	nb_count(&lane->store->n_failed_flushes);
	return 1;
}
