/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer.h - a peer in a process of its own: the program conform/peer, executed, not forked, so that
 * it holds for transports whose devices do not live through a fork.
 *
 * It is one end of the rig, this program the other. It does one part, goes on until the step of the
 * part that it was told, says so through a pipe and stays there, to be killed, or to be told to
 * exit. Parts and steps: peer_parts.c.
 */
#ifndef CONFORM_PEER_H
#define CONFORM_PEER_H

#include <sys/types.h>

#include "conform/rig.h"

struct peer {
	pid_t pid;
	int to, from;
	uint64_t died_ns; /* when it was known to be dead */
};

extern struct peer peer;

/* end: which one it is, 'a' or 'b'. */
void peer_start(char end, const char *part, const char *step);
/* Turns until it has come there. */
void peer_wait(void);
int peer_is_there(void);
/* Let it hang where it is. */
void peer_stop(void);
/* Kill it and wait for its death. */
void peer_kill(void);
/* Tell it to exit as it is, with 0. */
void peer_exit(void);
/* Until *what >= n, within the time that the transport has for it, from the death on. */
void peer_told(const int *what, int n);
/* Turns for as long as a transport may take to tell of a death. */
void peer_untold(void);
/*
 * The times that it took are within the limit, not counting a few that the machine was too busy
 * for.
 */
void peer_times(void);

#endif
