/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rbd.h - internal interface of the rbd backend, which keeps a volume in an image of Ceph.
 *
 *     rbd_client.c   connects to the cluster, opens and locks the image, and closes both
 *     rbd_keeper.c   thread that replaces a client after a timeout, and refreshes the size
 *     rbd_lane.c     executes IO: requests, completions of librbd, and the IO that waits
 *     rbd_extents.c  thread that finds the holes of the image
 *     rbd.c          plugin interface
 *
 * All lanes use one image, because librbd grants the exclusive lock to one handle. librbd calls
 * rbd_lane_done() on a thread of its own. It pushes the request to the list of the lane that
 * submitted it, and wakes this lane if it sleeps. rbd_set_image_notification() would not do: it has
 * one list and one fd for the image, from which one lane would have to pass completions to others.
 *
 * Protocol: no late write overtakes a newer one
 *
 *     A client of librados gives up an operation after rados_osd_op_timeout, but the OSD can still
 *     execute it. The backend has these states:
 *
 *     OPEN     lanes submit IO to the image.
 *     FENCING  a write has timed out, or the client has lost the lock. The callback sets the state
 *              before it reports this completion to a lane. Lanes keep new IO in a list. IO that
 *              was not submitted within osd_op_timeout, or shortly before its deadline, fails with
 *              GANTRY_S_IO. The keeper
 *                1. connects with a new client;
 *                2. adds the addresses of the old client to the blocklist of the cluster, which
 *                   gets a new epoch of the OSD map, and waits until the new client has this map;
 *                3. waits until librbd has called back for each IO of the old client, and until
 *                   a diff for extents has returned, and closes this client;
 *                4. opens and locks the image with the new client, and sets OPEN.
 *              After an error it starts again with the step that failed, once a second.
 *     LOST     another client has the lock or has fenced this one; or the old client had a
 *              writeback cache, which is lost with it. All IO fails until the target restarts.
 *
 *     Guarantee: an OSD executes an operation only after it has the map that the client of this
 *     operation has. So an OSD that executes an operation of the new client has the blocklist, and
 *     rejects operations of the old client from then on. A late write can change the image only
 *     before the first operation of the new client on the same objects. This client cannot observe
 *     it. quiesce() returns -EAGAIN while the state is FENCING, and 0 in the state OPEN: each later
 *     IO is ordered after all late writes.
 */
#ifndef RBD_H
#define RBD_H

#include <pthread.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rados/librados.h>
#include <rbd/librbd.h>

#include <gantry/backend.h>

#include "../common/task_thread.h"

#define RBD_MAX_IO (16u << 20)
#define RBD_MAX_REQUESTS 4096u     /* limit of requests per lane */
#define RBD_ID_BYTES 256           /* size of a buffer for an image id */
#define RBD_DIFF_BLOCKS (1u << 18) /* limit of the blocks of a diff: 1 GiB with blocks of 4 KiB */
/* result of a request for extents that must be issued again */
#define RBD_NOT_EXECUTED INT64_MIN

struct rbd_conf {
	const char *conf;
	const char *user;
	const char *cluster;
	const char *pool;
	const char *namespace;
	const char *image;
	const char *snapshot;
	const char *uuid;
	uint64_t block;
	uint64_t osd_op_timeout_ns;
	uint8_t read_only;
	uint8_t cache;
};

/* A connection to the cluster, and the image. Only the control thread and the keeper change it. */
struct rbd_client {
	rados_t cluster; /* NULL: not connected */
	rados_ioctx_t ioctx;
	rbd_image_t image; /* NULL: not open */
	char *addresses;   /* of this client, for the blocklist; rados_buffer_free() */
	uint64_t watch;
	int is_watching;
	int is_cached;    /* librbd has a writeback cache for the image */
	uint8_t uuid[16]; /* derived from the ids of the image, also with the option uuid */
	uint64_t size;
};

enum rbd_state {
	RBD_OPEN,
	RBD_FENCING,
	RBD_LOST,
};

LIST_HEAD(rbd_lanes, rbd_lane);

/* The thread that executes GANTRY_OP_EXTENTS. Its requests count as in flight for their lanes. */
struct rbd_finder {
	struct task_thread thread;
	uint8_t has_data[RBD_DIFF_BLOCKS];
};

struct rbd_store {
	const struct gantry_host *host;
	const struct rbd_conf *conf;
	int is_read_only;
	struct rbd_client client; /* lanes use its image in the state OPEN */
	int state;                /* enum rbd_state; __atomic */
	int why;                  /* errno that ended the state OPEN; __atomic */
	uint8_t image_uuid[16]; /* of the first client; those that replace it must have the same */
	uint8_t uuid[16];       /* of the volume */
	uint64_t verifier;
	uint64_t size;   /* __atomic relaxed: the keeper changes it */
	char name[400];  /* of the image, for messages: "pool/namespace/image@snapshot" */
	char owner[200]; /* of the lock, if another client has it */
	pthread_t keeper;
	pthread_mutex_t mutex; /* of the fields below */
	pthread_cond_t wake;   /* one of them has changed */
	struct rbd_lanes lanes;
	int must_end, must_fence, must_refresh;
	/* counters: __atomic relaxed */
	uint64_t n_errors, n_timeouts, n_fences, n_repeated, n_held;
	struct rbd_finder finder;
};

/* What librbd executes for a request. */
enum rbd_step {
	RBD_STEP_IO,
	RBD_STEP_FLUSH, /* of an IO with FUA, after its write */
};

struct rbd_request {
	struct task task; /* of the finder, or in `done` of the lane; first, for rbd_request_of() */
	struct rbd_lane *lane;
	struct gantry_io *io;
	struct rbd_request *next; /* in the list `free` or `held` of the lane */
	uint64_t start_ns;        /* when the host submitted it */
	uint64_t end_ns;          /* when it fails if it still waits: held, or for the finder */
	int64_t result;           /* of the step: bytes, 0, -errno or RBD_NOT_EXECUTED */
	uint8_t step;             /* enum rbd_step */
	uint8_t issued;           /* __atomic: 1 from the issue to the callback of librbd */
};

static inline struct rbd_request *rbd_request_of(struct task *task)
{
	return (struct rbd_request *)task;
}

struct rbd_lane {
	struct rbd_store *store;
	LIST_ENTRY(rbd_lane) link;
	struct rbd_request *requests, *free;
	/* requests that wait for the state OPEN, in order; last_p: where the next one is added */
	struct rbd_request *held, **last_p;
	uint64_t held_end_ns; /* the earliest end_ns of them; undefined if there are none */
	int epoll_fd;         /* has the two below */
	int event_fd, timer_fd;
	/* what threads of librbd write, in a cache line of its own */
	struct task *done __attribute__((aligned(GANTRY_CACHE_LINE)));
	int armed;     /* __atomic: write to event_fd after the next push */
	int in_flight; /* __atomic: issued requests that rbd_lane_push() has not returned */
};

/* -- rbd_client.c: these functions block -- */

/*
 * Connect to the cluster with a new client. Logs the cause of an error unless `quiet`. Returns 0 or
 * -errno.
 */
int rbd_client_connect(struct rbd_store *store, struct rbd_client *client, int quiet);
/*
 * Open and lock the image. Returns 0; -EBUSY: another client has the lock, and store->owner names
 * it; -ESTALE: another image has this name now; or another -errno.
 */
int rbd_client_open(struct rbd_store *store, struct rbd_client *client, int quiet);
/* Close the image and the connection, as far as they are open. */
void rbd_client_close(struct rbd_client *client);

/* -- rbd_keeper.c -- */

int rbd_keeper_start(struct rbd_store *store);
void rbd_keeper_stop(struct rbd_store *store);
/* librbd reports that the header of the image has changed. Any thread. */
void rbd_keeper_changed(void *store);
/*
 * A write or flush has failed: leave the state OPEN if the error requires it. Any thread; the
 * caller reports the failure to a lane afterwards.
 */
void rbd_keeper_failed(struct rbd_store *store, int error);

/* -- rbd_extents.c -- */

/*
 * Start the finder, a thread whose tasks are requests with GANTRY_OP_EXTENTS. It returns each by
 * rbd_lane_push(): with RBD_NOT_EXECUTED if the state is not OPEN any more. The lane has counted
 * the request as in flight. Returns 0 or -errno.
 */
int rbd_finder_start(struct rbd_store *store);

/* -- rbd_lane.c -- */

int rbd_lane_create(struct rbd_store *store, uint32_t depth, struct rbd_lane **lane_p);
void rbd_lane_destroy(struct rbd_lane *lane);
int rbd_lane_submit(struct rbd_lane *lane, struct gantry_io *io);
int rbd_lane_poll(struct rbd_lane *lane);
int rbd_lane_arm(struct rbd_lane *lane);
void rbd_lane_disarm(struct rbd_lane *lane);
/*
 * Return a request with its result to its lane. Any thread. The lane can complete the request from
 * then on, but exists until in_flight, which this function decrements last, is 0.
 */
void rbd_lane_push(struct rbd_request *r);
/* Wake the lane if it sleeps. Any thread. */
void rbd_lane_wake(struct rbd_lane *lane);

static inline int rbd_state_get(const struct rbd_store *store)
{
	return __atomic_load_n(&store->state, __ATOMIC_SEQ_CST);
}

static inline void rbd_count(uint64_t *cell)
{
	__atomic_fetch_add(cell, 1, __ATOMIC_RELAXED);
}

#endif
