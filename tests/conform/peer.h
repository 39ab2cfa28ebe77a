/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer.h - a peer in a separate process: the program conform/peer. It is executed, not forked, for
 * transports whose devices do not survive a fork.
 *
 * It is one end of the rig, this program the other. It runs one part up to the given step, reports
 * that through a pipe and stays there, until it is killed or gets the command to exit. Parts and
 * steps: peer_parts.c.
 */
#ifndef CONFORM_PEER_H
#define CONFORM_PEER_H

#include <sys/types.h>

#include "conform/rig.h"

struct peer {
	pid_t pid;
	int to, from;
	uint64_t died_ns; /* when its death was known */
};

extern struct peer peer;

/* end: 'a' or 'b'. */
void peer_start(char end, const char *part, const char *step);
/* Turns until it has reached the step. */
void peer_wait(void);
int peer_is_there(void);
/* Stop it at its current step, as if it hung. */
void peer_stop(void);
/* Kill it and wait for its death. */
void peer_kill(void);
/* Let it exit with status 0, without cleaning up. */
void peer_exit(void);
/* Turns until *what >= n, within the time limit of the transport, from the death on. */
void peer_told(const int *what, int n);
/* Turns for as long as a transport may take to report a death. */
void peer_untold(void);
/* The measured times are within the limit, except a few, for which the machine was too busy. */
void peer_times(void);

#endif
