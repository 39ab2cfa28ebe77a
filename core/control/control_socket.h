/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control_socket.h - the control socket of a process, DIR/PID.stat.sock: clients of the same user
 * and root send requests of JSON-RPC 2.0, one per line. gantry-control(7) describes it.
 *
 * The control thread never blocks on a client. In a turn of a client the thread receives once, and
 * answers one request. All clients together get GN_CONTROL_RATE turns per second on average, one
 * after another, so that they do not take the processor from the data path. A client that does not
 * read, or does not complete a request, is disconnected after a timeout.
 */
#ifndef GN_CONTROL_CONTROL_SOCKET_H
#define GN_CONTROL_CONTROL_SOCKET_H

#include "base/event_loop.h"
#include "control/jsonrpc.h"

#define GN_CONTROL_SUFFIX ".stat.sock"
#define GN_CONTROL_BACKLOG 4
#define GN_CONTROL_CLIENTS 16              /* connections; a further one replaces the oldest */
#define GN_CONTROL_LINE_MAX (256u * 1024)  /* bytes of a request */
#define GN_CONTROL_RATE 100                /* turns per second */
#define GN_CONTROL_TIMEOUT_NS 10000000000u /* for a request to arrive, and a response to be read */

struct gn_control;

/*
 * Start to listen. The process can run without it.
 *
 * dir        "": the default directory
 * methods    answers requests; `arg` is passed to it
 * control_p  out: the socket; NULL after an error
 * returns    0
 *            -errno: failed; the cause was logged
 */
int gn_control_open(struct gn_loop *loop, const char *dir, const struct gn_rpc_method *methods,
		    void *arg, struct gn_control **control_p);
void gn_control_close(struct gn_control **control_p); /* NULL is allowed here and below */
/* Remove the name of the socket, for an exit without gn_control_close(). */
void gn_control_unlink(const struct gn_control *control);

#endif
