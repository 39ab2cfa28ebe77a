/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * quick_stream.h - TCP sockets without system calls, for fuzz targets that are the peer of a
 * transport
 *
 * A target links quick_stream.c with $(QUICK_STREAM_LDFLAGS) and quick_fd.c. All sockets of the
 * product are here: listeners, accepted sockets, and sockets that it connects, which are connected
 * at once. A stream is the number of a connected socket. What the product sends is counted and
 * dropped.
 */
#ifndef FUZZ_QUICK_STREAM_H
#define FUZZ_QUICK_STREAM_H

#include <stdbool.h>
#include <stddef.h>

#define QUICK_STREAMS 16

/* Connect to the product. Returns the stream, or -1: there are QUICK_STREAMS. */
int quick_stream_dial(void);
/* Returns the stream of the last socket that the product has connected, or -1. Asks once. */
int quick_stream_dialed(void);
/* Returns false if the product has closed the stream, or has not read enough. */
bool quick_stream_send(int stream, const void *bytes, size_t len);
/* End the stream, with RST or FIN. What was sent before can still be read after FIN. */
void quick_stream_end(int stream, bool reset);
/* The product can send n more bytes, until the next call; SIZE_MAX: any number. */
void quick_stream_allow(int stream, size_t n);
/* The product may read at most n bytes at a time. */
void quick_stream_cut(int stream, size_t n);
/* Close the streams of the peer. */
void quick_stream_hang_up(void);

#endif
