/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp_hostile.h - a peer of the transport tcp that sends raw bytes.
 *
 * The victim is end b of the rig. An honest peer, end a, is connected through the same listener all
 * the time. Each attack logs at most one line, ends only the connection of the attacker, changes no
 * byte of memory that the attacker may not write, and leaves no descriptor.
 */
#ifndef CONFORM_TCP_HOSTILE_H
#define CONFORM_TCP_HOSTILE_H

#include <netinet/in.h>

#include "../../plugins/transport/tcp/tcp_wire.h"
#include "conform/rig.h"

#define EVIL_BOTH (GANTRY_REMOTE_READ | GANTRY_REMOTE_WRITE)
#define EVIL_BYTES 65536u /* of the export: the middle third of a memory */

/* An attacker. */
struct evil {
	int control, link; /* sockets; -1: none */
	void *conn;        /* its connection at the victim; NULL: none, or it has ended */
	uint64_t session;
	uint8_t secret[TCP_SECRET];
	uint32_t consumer_id;
	void *consumer; /* of the victim, on lane 0; each turn polls it. NULL: none */
	uint32_t taken; /* messages that the consumer took */
};

extern struct evil evil;

/* -- the honest peer -- */

/* A small socket buffer fills quickly; a long dead_time keeps TCP from ending the connection. */
#define EVIL_UNREAD "socket_buffer=4KiB dead_time=60s"

/* Connect the honest peer, and count descriptors. settings: words for the victim, or NULL. */
void honest_begin(const char *settings);
/* Check that it works: a message, a write and a read; and that no other memory has changed. */
void honest_check(void);
void honest_count_fds(void); /* the descriptors that are open now belong to the honest peer */
void honest_end(void);       /* also checks that no descriptor of an attack is left */
/* Permit `n` descriptors. Returns how many the system permits, at most n. */
unsigned honest_raise_fds(unsigned n);

/* -- the attacker -- */

/* Returns the address of the victim; port: another port there, or 0. */
struct sockaddr_in evil_address(uint16_t port);
int evil_socket(void); /* connect a socket to the victim */
void evil_connect_socket(int fd);
void evil_send(int fd, const void *bytes, size_t n);
/* Make turns until n bytes have arrived. Returns how many have before the end of the socket. */
size_t evil_read(int fd, void *bytes, size_t n);
/* Make turns until the victim has ended the socket; drops all that it has sent. */
void evil_until_end(int fd);
void evil_reset(int fd); /* close with RST */
struct tcp_hello evil_hello(const struct evil *from, enum tcp_hello_kind kind);
void evil_ctrl(const struct evil *from, unsigned kind, const void *body, size_t n);
/* Wait for a control message of this kind, and read its body. Returns the length. */
size_t evil_expect(const struct evil *from, enum tcp_ctrl_kind kind, void *body, size_t max);
/* Open the control socket, with the hello. */
void evil_connect(struct evil *peer);
/* Open the link of lane 0 of both ends. */
void evil_link(struct evil *peer);
/* Export the middle of the memory to the attacker, as {handle, 1} if that is the first one. */
void evil_export(struct evil *peer, uint32_t rights, uint32_t handle);
/* The victim opens a consumer on lane 0, and posts n receives. */
void evil_consumer(struct evil *peer, uint32_t depth, uint32_t n);
/* Close the sockets; the victim forgets the connection. */
void evil_leave(struct evil *peer);

/* -- the log of the victim -- */

void log_begin(void); /* forget all lines */
/* Check that the victim has logged `lines` lines, with this text if not NULL. what: the attack. */
void log_check(const char *what, unsigned lines, const char *text);
/*
 * Check that the victim has ended the connection of the attacker with a protocol error and one
 * line with this text.
 */
void log_dropped(struct evil *peer, const char *what, const char *text);

/* The cases of tcp_hostile_control.c, tcp_hostile_frame.c, tcp_hostile_many.c, ... */
void control_attacks(void);
void frame_attacks(void);
void cut_attacks(void);
void data_attacks(void);
void many_attacks(void);
void server_attacks(void);
void relay_attacks(void);

#endif
