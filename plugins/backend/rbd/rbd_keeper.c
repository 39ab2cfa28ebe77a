/* SPDX-License-Identifier: BSD-3-Clause */
/* rbd_keeper.c - thread that replaces a client after a timeout, and refreshes the size. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "rbd.h"

#define RETRY_NS 1000000000 /* between two attempts to fence */
#define DRAIN_NS 10000000   /* between two checks whether the old client has IO in flight */

static void wake_lanes(struct rbd_store *store)
{
	struct rbd_lane *lane;

	pthread_mutex_lock(&store->mutex);
	LIST_FOREACH (lane, &store->lanes, link)
		rbd_lane_wake(lane);
	pthread_mutex_unlock(&store->mutex);
}

static void set_state(struct rbd_store *store, int state)
{
	__atomic_store_n(&store->state, state, __ATOMIC_RELEASE);
	wake_lanes(store);
}

/* Sleep for the whole time, also if the store closes. */
static void keeper_sleep(long ns)
{
	struct timespec left = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};

	while (nanosleep(&left, &left) && errno == EINTR)
		;
}

/* Sleep, but not longer than until the store closes. Returns 1: the store closes. */
static int keeper_pause(struct rbd_store *store, long ns)
{
	struct timespec until;
	int end;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += ns;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&store->mutex);
	while (!store->must_end &&
	       pthread_cond_timedwait(&store->wake, &store->mutex, &until) != ETIMEDOUT)
		;
	end = store->must_end;
	pthread_mutex_unlock(&store->mutex);
	return end;
}

static int n_in_flight(struct rbd_store *store)
{
	struct rbd_lane *lane;
	int n = 0;

	pthread_mutex_lock(&store->mutex);
	LIST_FOREACH (lane, &store->lanes, link)
		n += __atomic_load_n(&lane->in_flight, __ATOMIC_SEQ_CST);
	pthread_mutex_unlock(&store->mutex);
	return n;
}

/* Steps 1 and 2 of the protocol in rbd.h. */
static int block_old(struct rbd_store *store, struct rbd_client *new, int quiet)
{
	int rc = rbd_client_connect(store, new, quiet);

	if (rc)
		return rc;
	rc = rados_blocklist_add(new->cluster, store->client.addresses, 0);
	if (rc == 0)
		rc = rados_wait_for_latest_osdmap(new->cluster);
	if (rc) {
		if (!quiet)
			gantry_log_error(store->host, "%s: cannot fence the old client (%s): %s",
					 store->name, store->client.addresses, strerror(-rc));
		rbd_client_close(new);
	}
	return rc;
}

/* Connect again after an error of step 4: this client, too, must have the map of step 2. */
static int connect_again(struct rbd_store *store, struct rbd_client *new, int quiet)
{
	int rc = rbd_client_connect(store, new, quiet);

	if (rc)
		return rc;
	rc = rados_wait_for_latest_osdmap(new->cluster);
	if (rc) {
		if (!quiet)
			gantry_log_error(store->host, "%s: cannot get the latest OSD map: %s",
					 store->name, strerror(-rc));
		rbd_client_close(new);
	}
	return rc;
}

/* Step 4 of the protocol. */
static int open_new(struct rbd_store *store, struct rbd_client *new, int quiet)
{
	int rc = new->cluster ? 0 : connect_again(store, new, quiet);

	if (rc == 0)
		rc = rbd_client_open(store, new, quiet);
	if (rc == 0 && memcmp(new->uuid, store->image_uuid, sizeof new->uuid) != 0) {
		gantry_log_error(store->host, "%s: another image has this name now", store->name);
		rbd_client_close(new);
		return -ESTALE;
	}
	return rc;
}

/*
 * A store that closes first adds its old client to the blocklist, also if that takes long.
 * Otherwise the old client would return the lock when it closes the image, and no other client
 * would fence it. If the process is killed meanwhile, the lock stays, and the next client fences
 * the old one.
 */
static void fence(struct rbd_store *store)
{
	struct rbd_client new;
	int quiet = 0, rc;

	gantry_log_warn(store->host, "%s: %s (osd_op_timeout=%llu ms): replacing the client",
			store->name, strerror(__atomic_load_n(&store->why, __ATOMIC_RELAXED)),
			(unsigned long long)store->conf->osd_op_timeout_ns / 1000000);
	while (block_old(store, &new, quiet)) {
		quiet = 1;
		if (keeper_pause(store, RETRY_NS))
			keeper_sleep(RETRY_NS);
	}
	while (n_in_flight(store))
		if (keeper_pause(store, DRAIN_NS)) {
			rbd_client_close(&new);
			return;
		}
	rbd_client_close(&store->client);
	if (keeper_pause(store, 0)) {
		rbd_client_close(&new);
		return;
	}
	for (quiet = 0; (rc = open_new(store, &new, quiet)) != 0; quiet = 1) {
		if (rc == -EBUSY || rc == -ESTALE) {
			set_state(store, RBD_LOST);
			return;
		}
		if (keeper_pause(store, RETRY_NS))
			return;
	}
	store->client = new;
	__atomic_store_n(&store->size, new.size, __ATOMIC_RELAXED);
	rbd_count(&store->n_fences);
	gantry_log_warn(store->host, "%s: a new client serves the image", store->name);
	set_state(store, RBD_OPEN);
}

static void refresh(struct rbd_store *store)
{
	uint64_t size;

	if (rbd_state_get(store) == RBD_OPEN && rbd_get_size(store->client.image, &size) == 0)
		__atomic_store_n(&store->size, size, __ATOMIC_RELAXED);
}

static void *run(void *arg)
{
	struct rbd_store *store = arg;
	int must_fence, must_refresh;

	pthread_mutex_lock(&store->mutex);
	while (!store->must_end || store->must_fence) {
		must_fence = store->must_fence;
		must_refresh = store->must_refresh;
		if (!must_fence && !must_refresh) {
			pthread_cond_wait(&store->wake, &store->mutex);
			continue;
		}
		store->must_fence = store->must_refresh = 0;
		pthread_mutex_unlock(&store->mutex);
		if (must_fence)
			fence(store);
		else
			refresh(store);
		pthread_mutex_lock(&store->mutex);
	}
	pthread_mutex_unlock(&store->mutex);
	return NULL;
}

int rbd_keeper_start(struct rbd_store *store)
{
	return -pthread_create(&store->keeper, NULL, run, store);
}

void rbd_keeper_stop(struct rbd_store *store)
{
	pthread_mutex_lock(&store->mutex);
	store->must_end = 1;
	pthread_cond_broadcast(&store->wake);
	pthread_mutex_unlock(&store->mutex);
	pthread_join(store->keeper, NULL);
}

void rbd_keeper_changed(void *arg)
{
	struct rbd_store *store = arg;

	pthread_mutex_lock(&store->mutex);
	store->must_refresh = 1;
	pthread_cond_broadcast(&store->wake);
	pthread_mutex_unlock(&store->mutex);
}

/*
 * ETIMEDOUT  librados has given up an operation that an OSD can still execute
 * EROFS      the client has lost the lock
 * ESHUTDOWN  this client is on the blocklist: an administrator or another client has fenced it
 */
void rbd_keeper_failed(struct rbd_store *store, int error)
{
	int state = RBD_OPEN, next;

	if (error != ETIMEDOUT && error != EROFS && error != ESHUTDOWN)
		return;
	next = error == ESHUTDOWN || store->client.is_cached ? RBD_LOST : RBD_FENCING;
	if (!__atomic_compare_exchange_n(&store->state, &state, next, 0, __ATOMIC_SEQ_CST,
					 __ATOMIC_SEQ_CST))
		return;
	__atomic_store_n(&store->why, error, __ATOMIC_RELAXED);
	if (next == RBD_LOST) {
		gantry_log_error(store->host, "%s: %s: restart the target", store->name,
				 error == ESHUTDOWN ? "another client has fenced this one"
						    : "data of the writeback cache is lost");
		return;
	}
	pthread_mutex_lock(&store->mutex);
	store->must_fence = 1;
	pthread_cond_broadcast(&store->wake);
	pthread_mutex_unlock(&store->mutex);
}
