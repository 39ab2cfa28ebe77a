/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * server.h - nbdkit's plugin `gantry`: one volume for every client that speaks NBD.
 *
 *     plugin.c   what nbdkit calls
 *     volume.c   the one volume that is open, and its queues
 *     request.c  a request of NBD becomes one IO or several
 *     queue.c    a queue that several threads use
 *
 * nbdkit calls from threads of its own, many for each connection, and a call returns when the
 * request is done. Threads that are on the same processor share a queue: what one of them finds
 * completed it completes for all, and the target has few lanes to look at.
 */
#ifndef CLIENTS_NBDKIT_SERVER_H
#define CLIENTS_NBDKIT_SERVER_H

#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <sys/queue.h>

#include <gantry/client.h>

/* -- volume.c -- */

struct server_conf {
	char *config;       /* file, absolute; NULL: uri */
	const char *volume; /* role in it; NULL: the only one */
	const char *uri;
	uint32_t queues; /* 0: one for each processor */
	uint32_t depth;
	uint32_t piece; /* bytes */
};

extern struct server_conf server_conf;

/* Open the volume; 0, or -1 after nbdkit_error(). */
int server_open(void);
void server_close(void);

/*
 * Count a connection. Where the session was lost and no connection is left that knew it, the volume
 * is opened again.
 * 0, or -1 after nbdkit_error().
 */
int server_connect(void);
void server_disconnect(void);

/* Of the volume that is open; fixed as long as there is a connection. */
const struct gantry_volume_info *server_info(void);
uint32_t server_piece(void); /* longest IO with data, bytes */

/* For a request that the calling thread has got. */
struct server_queue *server_queue(void);

/* The session is lost. Returns 1 the first time, when it is worth a line in the log. */
int server_lost(void);

/* -- queue.c -- */

TAILQ_HEAD(server_waiters, server_waiter);

struct server_queue {
	pthread_mutex_t lock; /* to use the queue, and of all below */
	struct gantry_queue *queue;
	int watched; /* somebody will poll it when something comes; at_fd: he sleeps until then */
	int at_fd;
	struct server_waiters sleeping; /* those who need not: until theirs has completed */
	struct server_waiters outside;  /* who found it full */
	struct server_waiters woken;    /* to be told when the lock is free */
};

/* A thread with its IOs. */
struct server_waiter {
	struct server_queue *queue;
	uint32_t inflight; /* its IOs */
	int asleep;        /* in a list of the queue */
	sem_t wake;
	TAILQ_ENTRY(server_waiter) link;
};

/* 0, or -errno with gantry_error(). */
int server_queue_open(struct server_queue *queue, struct gantry_volume *volume);
void server_queue_close(struct server_queue *queue);

/* Take the lock for a request, and let go of it when the request is done. */
void server_enter(struct server_queue *queue);
void server_leave(struct server_queue *queue);

/*
 * Wait until an IO of the waiter has completed; where it has none, because the queue is full of
 * those of others, until any has. Under the lock, which is let go of meanwhile.
 */
void server_wait(struct server_waiter *waiter);
/* To be called by `done` of each IO; under the lock. */
void server_completed(struct server_waiter *waiter);

/* -- request.c -- */

/*
 * Do one request, in as many IOs as it takes.
 *
 * data     count bytes; NULL where the operation has none
 * flags    GANTRY_IO_FUA or 0
 * returns  0, or -1 after nbdkit_error() and nbdkit_set_error()
 */
int server_request(enum gantry_opcode opcode, void *data, uint32_t count, uint64_t offset,
		   unsigned flags);

#endif
