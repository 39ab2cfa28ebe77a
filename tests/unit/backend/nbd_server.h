/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbd_server.h - an NBD server in the process of a test, with one thread for each connection. It
 * keeps a volume in memory, of which a crash loses what no flush covers, and it can misbehave.
 */
#ifndef TEST_NBD_SERVER_H
#define TEST_NBD_SERVER_H

#include <pthread.h>
#include <stdint.h>

#define SERVER_BYTES (1u << 20)
#define SERVER_CONNS 4096
#define SERVER_NEVER UINT64_MAX

enum server_command {
	SERVER_READ,
	SERVER_WRITE,
	SERVER_CLOSE,
	SERVER_FLUSH,
	SERVER_TRIM,
	SERVER_ZERO = 6,
	SERVER_STATUS,
	SERVER_COMMANDS,
};

#define SERVER_FLAG_READ_ONLY 0x2u
#define SERVER_FLAG_FLUSH 0x4u
#define SERVER_FLAG_FUA 0x8u
#define SERVER_FLAG_TRIM 0x20u
#define SERVER_FLAG_ZERO 0x40u
#define SERVER_FLAG_MULTI 0x100u

/* All members are protected by `lock`. A test changes them between its IOs. */
struct server {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t listener;
	int listen_fd;
	char path[108];
	uint8_t volume[SERVER_BYTES]; /* what reads return */
	uint8_t stable[SERVER_BYTES]; /* what a crash leaves */
	uint64_t size;                /* of the export, for the next connection */
	unsigned flags;               /* SERVER_FLAG_*, for the next connection */
	unsigned no_structured;       /* the server does not know structured replies */
	unsigned deaf;                /* accept connections, and send nothing */
	unsigned hold;                /* bit for each command that gets no reply until 0 */
	unsigned hold_before;         /* the same, but the command is not even executed until 0 */
	unsigned error;               /* the errno of every reply; 0: success */
	unsigned short_read;          /* leave out the last 512 bytes of the reply of a read */
	unsigned wrong_cookie;
	unsigned wrong_magic;
	uint64_t close_after; /* bytes of replies after which the next connection closes once */
	int fds[SERVER_CONNS];
	pthread_t threads[SERVER_CONNS];
	unsigned n_conns;
	unsigned seen[SERVER_COMMANDS]; /* commands received */
	unsigned executed[SERVER_COMMANDS];
};

void server_start(struct server *server, const char *path);
void server_stop(struct server *server);
/* Close all connections. With `loses`, the volume is what the last flush has made stable. */
void server_crash(struct server *server, int loses);
/* Change a member under the lock, and wake the connections. */
void server_set(struct server *server, unsigned *member, unsigned value);
unsigned server_get(struct server *server, const unsigned *member);

#endif
