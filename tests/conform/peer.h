/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer.h - a peer in a separate process: the program conform/peer. It is executed, not forked, for
 * transports whose devices do not survive a fork.
 *
 * The peer is one end of the rig, this program the other. The peer runs one part up to the given
 * step, reports that through a pipe, and stays at the step until it is killed or gets the command
 * to exit. peer_parts.c lists parts and steps.
 */
#ifndef CONFORM_PEER_H
#define CONFORM_PEER_H

#include <sys/types.h>

#include "conform/rig.h"

struct peer {
	pid_t pid;
	int to, from;
	uint64_t died_ns; /* time at which waitpid() for the peer returned */
};

extern struct peer peer;

/* end: 'a' or 'b'. */
void peer_start(char end, const char *part, const char *step);
/* Make turns until the peer has reached the step. */
void peer_wait(void);
int peer_is_there(void);
/* Stop the peer with SIGSTOP. */
void peer_stop(void);
/* Kill the peer and wait for its death. */
void peer_kill(void);
/* Command the peer to exit with status 0, without cleanup. */
void peer_exit(void);
/* Make turns until *what >= n, which the transport must reach in closed_ms after the death. */
void peer_await_report(const int *what, int n);
/* Make turns for closed_ms, the time within which a transport reports a death. */
void peer_await_limit(void);
/* Check the times of all reports. A few can exceed the limit, because the machine was busy. */
void peer_times(void);

#endif
