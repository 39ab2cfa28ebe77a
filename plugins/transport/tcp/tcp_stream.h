/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp_stream.h - the record filter of a connection, and the streams of its links. Part of tcp.h. */
#ifndef TCP_STREAM_H
#define TCP_STREAM_H

#include "tcp.h"

/* -- tcp_records.c -- */
void tcp_records_start(struct tcp_conn *conn);
/* Send a message, or hold it until the handshake has ended. Returns 0 or -errno. */
int tcp_records_send(struct tcp_conn *conn, enum tcp_ctrl_kind kind, const void *body, size_t len);
/* Take bytes of the control socket. Returns NULL, or what the peer did wrong. */
const char *tcp_records_receive(struct tcp_conn *conn, const void *bytes, size_t len);
/*
 * Store what the hello of a link contains: the secret of the session, or with a record filter a
 * name that only both ends can compute, and that opens nothing without the secret of the stream.
 * Returns 0 or -errno.
 */
int tcp_link_secret(const struct tcp_conn *conn, uint32_t connects_lane, uint32_t listens_lane,
		    uint8_t secret[TCP_SECRET]);

/* Store the secret of the stream of a link. Returns 0 or -errno. */
int tcp_link_stream_secret(const struct tcp_conn *conn, const struct tcp_hello *hello,
			   uint8_t secret[TCP_STREAM_SECRET]);

/* -- tcp_stream.c -- */
/* Start the stream of a socket after its hello. Returns 0 or -errno. */
int tcp_stream_open(const struct tcp_device *dev, int fd, bool listens, const void *secret,
		    size_t bytes, const struct tcp_hello *hello, void **stream_p);
/* Free a stream. NULL: nothing. */
void tcp_stream_close(const struct tcp_device *dev, void *stream);
/* Continue a handshake. Returns 0; -EAGAIN: repeat it at *events_p, of epoll; -errno. */
int tcp_stream_handshake(struct tcp_device *dev, void *stream, uint32_t *events_p);
/* As sendmsg and recvmsg, but return -errno. n 0: send what is inside the stream. */
ssize_t tcp_link_write(struct tcp_link *link, struct iovec *iov, size_t n);
ssize_t tcp_link_read(struct tcp_link *link, struct iovec *iov, size_t n);
/* Returns true if the stream has bytes that the socket has not taken. */
bool tcp_link_unsent(const struct tcp_link *link);
/* Returns true if the stream has bytes of the peer, of which the socket reports nothing. */
bool tcp_link_inside(const struct tcp_link *link);
/* Shut down the sending direction. Returns false if it must be repeated. */
bool tcp_link_finish(struct tcp_link *link);

#endif
