/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * forked.h - a peer in a separate process, for the tests of shm-comch between processes.
 *
 * The parent is end b. The peer does its part, reports that through a pipe, and waits to be killed,
 * or to get the command to exit.
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
 * In the child: forked_open opens end a on a new device of the child, with one more setting or
 * NULL. forked_begin does the same, and then connects end a to "vol".
 */
void forked_open(const char *setting);
void forked_begin(const char *setting);
/* In the child: report that the part is done, and wait. */
void forked_ready(void);

void fork_peer(void (*part)(void));
/* wait_ready waits until the peer has done its part, accept_peer until it is connected. */
void wait_ready(void);
void accept_peer(void);
/* Send the signal to the peer and wait for its death. sig 0: wait until the peer exits. */
void reap(int sig);
void forked_close(void);
/* In the parent: create a consumer for the peer, and post n buffers. */
void forked_consumer(struct rig_queue *q, uint8_t bufs[][4096], int n);

void step_cases(void);
void name_cases(void);

#endif
