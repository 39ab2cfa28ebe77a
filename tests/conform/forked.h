/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * forked.h - a peer in a process of its own, for the tests of shm-comch between processes.
 *
 * The parent is end b. The peer does its part, says so through a pipe, and waits to be killed, or
 * to be told to exit.
 */
#ifndef CONFORM_FORKED_H
#define CONFORM_FORKED_H

#include <sys/types.h>

#include "conform/rig.h"

struct forked {
	pid_t pid;
	int to_parent[2], to_child[2];
};

extern struct forked forked;

/*
 * In the child: end a is a device of this process, with one more setting or NULL; connected to
 * "vol".
 */
void forked_open(const char *setting);
void forked_begin(const char *setting);
/* In the child: say that the part is done, and wait. */
void forked_ready(void);

void fork_peer(void (*part)(void));
/* Until it has done its part; and until it has come in through the listener. */
void wait_ready(void);
void accept_peer(void);
/* With a signal, or 0: it is ending already. */
void reap(int sig);
void forked_close(void);
/* In the parent: a consumer for the peer, with n buffers posted. */
void forked_consumer(struct rig_queue *q, uint8_t bufs[][4096], int n);

void step_cases(void);
void name_cases(void);

#endif
