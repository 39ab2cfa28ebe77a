/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * server.h - nbdkit's plugin `gantry`: one volume for every client that speaks NBD.
 *
 *	plugin.c   what nbdkit calls
 *	volume.c   the one volume that is open, and its queues
 *	request.c  a request of NBD becomes one IO or several
 *
 * nbdkit calls from threads of its own, many for each connection, and a call returns when the request is done. So a thread
 * takes a queue for as long as its request lasts. The queue that was given back last is taken first: when few requests
 * are under way, few lanes are in use, and what belongs to them is in the cache.
 */
#ifndef CLIENTS_NBDKIT_SERVER_H
#define CLIENTS_NBDKIT_SERVER_H

#include <stdint.h>

#include <gantry/client.h>

/* -- volume.c -- */

struct server_conf {
	char *config;       /* file, absolute; NULL: uri */
	const char *volume; /* role in it; NULL: the only one */
	const char *uri;
	uint32_t queues;
	uint32_t depth;
	uint32_t piece; /* bytes */
};

struct server_queue {
	struct gantry_queue *queue;
	struct server_queue *next; /* that is free */
};

extern struct server_conf server_conf;

/* Open the volume; 0, or -1 after nbdkit_error(). */
int server_open(void);
void server_close(void);

/*
 * Count a connection. Where the session was lost and no connection is left that knew it, the volume is opened again.
 * 0, or -1 after nbdkit_error().
 */
int server_connect(void);
void server_disconnect(void);

/* Of the volume that is open; fixed as long as there is a connection. */
const struct gantry_volume_info *server_info(void);
uint32_t server_piece(void); /* longest IO with data, bytes */

/* Take a queue; waits while all are taken. NULL after nbdkit_error(). */
struct server_queue *server_take(void);
void server_give(struct server_queue *queue);

/* The session is lost. Returns 1 the first time, when it is worth a line in the log. */
int server_lost(void);

/* -- request.c -- */

/*
 * Do one request, in as many IOs as it takes.
 *
 * data     count bytes; NULL where the operation has none
 * flags    GANTRY_IO_FUA or 0
 * returns  0, or -1 after nbdkit_error() and nbdkit_set_error()
 */
int server_request(enum gantry_opcode opcode, void *data, uint32_t count, uint64_t offset, unsigned flags);

#endif
