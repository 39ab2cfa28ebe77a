/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbdkit_server.h - the nbdkit plugin `gantry`: serves one volume to NBD clients.
 *
 *     nbdkit_plugin.c   callbacks of nbdkit
 *     nbdkit_volume.c   the open volume and its queues
 *     nbdkit_request.c  divides a request of NBD into IOs
 *     nbdkit_queue.c    a queue that several threads share
 *
 * nbdkit calls the plugin from its own threads, many for each connection. Each call returns when
 * its request is done. Threads on the same processor share a queue. One of these threads completes
 * the IOs of all of them, and the target has few lanes to poll.
 */
#ifndef CLIENTS_NBDKIT_SERVER_H
#define CLIENTS_NBDKIT_SERVER_H

#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <sys/queue.h>

#include <gantry/client.h>

/* -- nbdkit_volume.c -- */

struct server_conf {
	char *config;       /* absolute path; NULL: `uri` is used */
	const char *volume; /* role in the file; NULL: the only one that connects */
	const char *uri;
	uint32_t queues; /* number of queues; 0: one for each processor, up to 4 */
	uint32_t depth;
	uint32_t piece; /* longest IO with data, in bytes */
};

extern struct server_conf server_conf;

/* Open the volume. Returns 0, or -1 after nbdkit_error(). */
int server_open(void);
/* Close the queues and the volume, if it is open. */
void server_close(void);

/*
 * Count a new connection. If the session was lost, and no older connection is left, open the volume
 * again. Returns 0, or -1 after nbdkit_error().
 */
int server_connect(void);
/* Count a closed connection. */
void server_disconnect(void);

/* Properties of the open volume; constant while there is a connection. Its size: server_size(). */
const struct gantry_volume_info *server_info(void);
/* Returns the size in bytes, which changes when the store grows or shrinks. */
uint64_t server_size(void);
uint32_t server_piece(void); /* longest IO with data, in bytes */

/* Returns the queue for a request of the calling thread. */
struct server_queue *server_queue(void);

/* Record that the session is lost. Returns 1 for the first call, which should be logged. */
int server_lost(void);

/* -- nbdkit_queue.c -- */

TAILQ_HEAD(server_waiters, server_waiter);

struct server_queue {
	pthread_mutex_t lock; /* protects the queue and all fields below */
	struct gantry_queue *queue;
	int watched;                    /* a thread is the watcher */
	int at_fd;                      /* the watcher sleeps at the fd */
	struct server_waiters sleeping; /* threads that wait for their own IOs */
	struct server_waiters outside;  /* threads without IOs that wait for a slot */
	struct server_waiters woken;    /* threads to wake after the lock is released */
};

/* A thread with its IOs in flight. */
struct server_waiter {
	struct server_queue *queue;
	uint32_t inflight; /* IOs of this thread in flight */
	int asleep;        /* 1: the thread is in one of the lists of the queue */
	sem_t wake;
	TAILQ_ENTRY(server_waiter) link;
};

/* Returns 0, or -errno with the text in gantry_error(). */
int server_queue_open(struct server_queue *queue, struct gantry_volume *volume);
/* Close a queue. No thread may use it. */
void server_queue_close(struct server_queue *queue);

/* Lock a queue for a request, and unlock it after the request. */
void server_enter(struct server_queue *queue);
void server_leave(struct server_queue *queue);

/*
 * Wait until an IO of the waiter has completed. If the waiter has no IO, because other threads use
 * all slots, wait until any IO has completed. The caller holds the lock, which is released during
 * the wait.
 */
void server_wait(struct server_waiter *waiter);
/* Each `done` function must call this function, with the lock. */
void server_completed(struct server_waiter *waiter);

/* -- nbdkit_request.c -- */

/*
 * Execute one request.
 *
 * data     count bytes; NULL if the operation has no data
 * flags    GANTRY_IO_FUA or 0
 * Returns  0, or -1 after nbdkit_error() and nbdkit_set_error()
 */
int server_request(enum gantry_opcode opcode, void *data, uint32_t count, uint64_t offset,
		   unsigned flags);

#endif
