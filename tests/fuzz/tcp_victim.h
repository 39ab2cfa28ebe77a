/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp_victim.h - a device of the transport tcp, and its user, for the targets tcp_frames (the
 * device listens) and tcp_control (it connects)
 *
 * The user has a consumer, exports and imports memory, sends and accesses remote memory, as the
 * input says. No byte of memory may change that no export permits to write, or after the export was
 * revoked. At the end of an input the device must have as many descriptors and as much memory as
 * before.
 */
#ifndef FUZZ_TCP_VICTIM_H
#define FUZZ_TCP_VICTIM_H

#include "fake/host.h"
#include "fuzz/quick_stream.h"
#include "fuzz/require.h"
#include "tcp.h"

#define VICTIM_CONNS 2

struct victim {
	void *device, *listener;
	struct tcp_conn *conns[VICTIM_CONNS]; /* conns[0] has the objects of the user */
	int control, link;                    /* streams of conns[0] */
	int links[QUICK_STREAMS];             /* streams of further sockets */
	unsigned n_links;
};
extern struct victim victim;

/*
 * Restore or create the state in which each input begins, with `setup`. warm: called before, for a
 * connection that lets the device create what it keeps.
 */
void victim_begin(void (*warm)(void), void (*setup)(void));
/* End all connections, and check what is left. */
void victim_end(void);
/* Connect the device to a stream of the peer; it becomes victim.conns[0]. */
void victim_connect(void);
/* Add a stream to victim.links, and send a hello of this kind for conns[which]. */
void victim_dial(unsigned kind, unsigned which, unsigned lanes);
void victim_turn(void);
/* Create the first objects of the user: a consumer on lane 0, and the exports {1, 1} and {2, 2}. */
void victim_equip(void);
/*
 * Do one step of the input: p[0] selects its kind, p[1] is the number of bytes that follow p[3].
 * The kinds of a step, p[0] % 8:
 *     0  bytes on the control socket
 *     1  a control message of kind p[2] & 31 with these bytes
 *     2  bytes on a link, p[2]
 *     3  a frame of kind p[3] & 15 on a link, p[2]; the bytes replace its fields; a message has
 *        p[3] / 16 * 8 bytes of data
 *     4  the user acts
 *     5  a new socket, with a hello of kind p[2] or with these bytes
 *     6  a socket, p[2], ends or is blocked
 *     7  time passes
 * Returns the number of bytes of the step.
 */
size_t victim_step(const uint8_t *p, size_t left);

#endif
