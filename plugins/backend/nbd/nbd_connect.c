/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbd_connect.c - the thread that connects the handles of all lanes of a store. libnbd resolves
 * host names when it begins to connect, and blocks meanwhile. So a lane does not connect by itself.
 *
 * After a failure the delay until the next attempt doubles, from 50 ms to 2 s. A connection that is
 * lost within a second is a failure too; after a longer one the delay starts at 50 ms again.
 */
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>

#include "nbd.h"

#define LAST_DELAY_NS 2000000000u

/* Wait before the next attempt, and double the delay. */
static void delay(struct nb_store *store)
{
	struct timespec limit;
	uint64_t ns = store->delay_ns;

	store->delayed = 0;
	store->delay_ns = ns * 2 < LAST_DELAY_NS ? ns * 2 : LAST_DELAY_NS;

	clock_gettime(CLOCK_MONOTONIC, &limit);
	ns += (uint64_t)limit.tv_nsec;
	limit.tv_sec += (time_t)(ns / 1000000000);
	limit.tv_nsec = (long)(ns % 1000000000);
	while (!store->ending)
		if (pthread_cond_timedwait(&store->wake, &store->lock, &limit) == ETIMEDOUT)
			return;
}

/*
 * An export that has changed: every IO fails. A later attempt can find the former export again. The
 * lanes of all connections that wait are woken, so that their IOs fail at once.
 */
static void refuse(struct nb_store *store, const char *what)
{
	struct nb_conn *conn;

	if (__atomic_load_n(&store->changed, __ATOMIC_RELAXED))
		return;
	gantry_log_error(
		store->host,
		"%s: another export after a reconnect (%s changed): every IO fails; serve the "
		"former export there, or restart the target",
		store->text, what);
	__atomic_store_n(&store->changed, 1, __ATOMIC_RELAXED);
	pthread_mutex_lock(&store->lock);
	LIST_FOREACH (conn, &store->wanted, wanted_link)
		eventfd_write(conn->lane->event_fd, 1);
	pthread_mutex_unlock(&store->lock);
}

/* Returns the handle, or NULL if the attempt has failed. Called without the lock. */
static struct nbd_handle *try_once(struct nb_store *store, int *logged)
{
	struct nb_export export;
	char why[256];
	struct nbd_handle *h = nb_dial(store, &export, why, sizeof why);
	const char *what = h ? nb_export_differs(&store->export, &export) : NULL;

	if (what) {
		refuse(store, what);
		nbd_close(h);
		h = NULL;
	} else if (h) {
		__atomic_store_n(&store->changed, 0, __ATOMIC_RELAXED);
		nb_count(&store->n_reconnects);
		gantry_log_info(store->host, "%s: connected", store->text);
		*logged = 0;
		return h;
	} else if (!*logged && !__atomic_load_n(&store->ending, __ATOMIC_RELAXED)) {
		gantry_log_warn(store->host, "%s: cannot connect (%s): check the NBD server",
				store->text, why);
		*logged = 1;
	}
	nb_count(&store->n_failed_dials);
	return h;
}

static void deliver(struct nb_conn *conn, struct nbd_handle *h, uint64_t incarnation)
{
	conn->wanted = 0;
	LIST_REMOVE(conn, wanted_link);
	conn->fresh_incarnation = incarnation;
	__atomic_store_n(&conn->fresh, h, __ATOMIC_RELEASE);
	eventfd_write(conn->lane->event_fd, 1);
}

static void *run(void *arg)
{
	struct nb_store *store = arg;
	int logged = 0; /* the failure of an attempt since the last success */

	pthread_mutex_lock(&store->lock);
	while (!store->ending) {
		uint64_t incarnation = store->incarnation;
		struct nbd_handle *h;

		if (LIST_EMPTY(&store->wanted)) {
			pthread_cond_wait(&store->wake, &store->lock);
			continue;
		}
		if (store->delayed) {
			delay(store);
			continue;
		}
		pthread_mutex_unlock(&store->lock);
		h = try_once(store, &logged);
		pthread_mutex_lock(&store->lock);
		if (h && !LIST_EMPTY(&store->wanted)) {
			deliver(LIST_FIRST(&store->wanted), h, incarnation);
		} else if (h) {
			nbd_close(h);
		} else {
			delay(store);
		}
	}
	pthread_mutex_unlock(&store->lock);
	return NULL;
}

int nb_connector_start(struct nb_store *store)
{
	pthread_condattr_t attr;
	int rc;

	pthread_mutex_init(&store->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&store->wake, &attr);
	pthread_condattr_destroy(&attr);
	LIST_INIT(&store->wanted);
	LIST_INIT(&store->lanes);
	store->delay_ns = NB_FIRST_DELAY_NS;
	rc = pthread_create(&store->thread, NULL, run, store);
	if (rc) {
		pthread_cond_destroy(&store->wake);
		pthread_mutex_destroy(&store->lock);
	}
	return -rc;
}

void nb_connector_stop(struct nb_store *store)
{
	pthread_mutex_lock(&store->lock);
	__atomic_store_n(&store->ending, 1, __ATOMIC_RELAXED);
	pthread_cond_broadcast(&store->wake);
	pthread_mutex_unlock(&store->lock);
	pthread_join(store->thread, NULL);
	pthread_cond_destroy(&store->wake);
	pthread_mutex_destroy(&store->lock);
}

void nb_connector_want(struct nb_conn *conn)
{
	struct nb_store *store = conn->lane->store;

	pthread_mutex_lock(&store->lock);
	if (!conn->wanted) {
		conn->wanted = 1;
		LIST_INSERT_HEAD(&store->wanted, conn, wanted_link);
		pthread_cond_broadcast(&store->wake);
	}
	pthread_mutex_unlock(&store->lock);
}

void nb_connector_forget(struct nb_conn *conn)
{
	struct nb_store *store = conn->lane->store;

	pthread_mutex_lock(&store->lock);
	if (conn->wanted)
		LIST_REMOVE(conn, wanted_link);
	conn->wanted = 0;
	pthread_mutex_unlock(&store->lock);
	nbd_close(conn->fresh);
	conn->fresh = NULL;
}
