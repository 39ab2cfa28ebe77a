/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * quick_socket.h - the Unix sockets of a server without system calls, for fuzz targets that are
 * its client
 *
 * A target links quick_socket.c with $(QUICK_SOCKET_LDFLAGS) and quick_fd.c. The product has one
 * listener, and one connection at a time. bind() makes a file of the type of a socket. The client
 * is a process of the same user that never ends. It does not read, so the product can send only
 * about 250 messages, as over a socket of the kernel.
 */
#ifndef FUZZ_QUICK_SOCKET_H
#define FUZZ_QUICK_SOCKET_H

#include <stdbool.h>
#include <stddef.h>

#define QUICK_SOCKET_FDS 4u

/* Connect; the listener accepts later. The product must have closed the last connection before. */
void quick_socket_connect(void);
/*
 * Send a message with at most QUICK_SOCKET_FDS descriptors of quick_fd.c, which stay open until the
 * product has received or dropped the message. Returns false if the product has closed the
 * connection.
 */
bool quick_socket_send(const void *bytes, size_t len, const int *fds, unsigned n_fds);
/* Close the connection. */
void quick_socket_hang_up(void);

#endif
