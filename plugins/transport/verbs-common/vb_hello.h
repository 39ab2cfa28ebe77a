/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vb_hello.h - private data of requests and replies: written, read, and proven if both ends have a
 * record filter. Thread: control.
 */
#ifndef VB_HELLO_H
#define VB_HELLO_H

#include "verbs.h"

struct vb_greeting {
	/*
	 * With a record filter: without secret; the credit is masked until vb_hello_belongs()
	 * returns true.
	 */
	struct vb_hello hello;
	struct vb_sealed_hello sealed; /* with a record filter */
	uint32_t qpn;                  /* number of the queue pair of the peer */
};

/*
 * Make the private data of a request or reply of this side. The queue pair exists. Returns 0 or
 * -errno.
 *
 * bytes  out: at most VB_PRIVATE_MAX bytes
 * len_p  out: their number
 */
int vb_hello_write(struct vb_pipe *pipe, uint8_t *bytes, size_t *len_p);
/* Read the private data of a request or reply. Returns NULL, or the reason why it is invalid. */
const char *vb_hello_read(const struct vb_transport *t, const struct vb_event *event,
			  struct vb_greeting *request);
/*
 * Returns whether the request for a further queue pair proves that it belongs to the connection,
 * or, without a record filter, has its secret.
 */
bool vb_hello_belongs(const struct vb_conn *conn, struct vb_greeting *request);
/* The same of the reply to a request of this side. */
bool vb_hello_answers(const struct vb_pipe *pipe, struct vb_greeting *reply);
/*
 * Remember the request of a connection, with a record filter. Returns 0, or
 *
 *     -EALREADY  it was accepted before
 *     -ENOSPC    the connection has accepted too many requests
 *     -ENOMEM
 */
int vb_hello_remember(struct vb_conn *conn, const struct vb_greeting *request);
/* Returns the number that the proofs have of a queue pair; 0: the peer is not told it (iWARP). */
uint32_t vb_hello_qpn(const struct vb_transport *t, uint32_t qpn);

#endif
