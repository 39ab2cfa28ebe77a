/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * holders.h - the processes that map the memory which a client of a session has exported: the
 * server, and the processes to which it has exported the memory again. Control thread.
 *
 * A server that answers HELLO of a resumed session has drained the session on its own path to the
 * volume. That does not cover the processes of the former path. A stopped process, or one that has
 * not yet detected the end of its connection, can still write data that it has received before. So
 * each process that maps the memory reports to the client (gantry/hold.h), and the resumed session
 * waits until all processes of the former path have unmapped the memory or have ended.
 */
#ifndef GN_SESSION_HOLDERS_H
#define GN_SESSION_HOLDERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/event_loop.h"

/* limit of the reports of a client; further processes do not map its memory */
#define GN_HOLDERS_MOST 2048u

struct gn_holders;

LIST_HEAD(gn_holders_list, gn_holders);

/*
 * Create the holders of a client with this session id. socket_p: out: the socket for
 * gantry_hold(), which the caller closes after the transport has duplicated it. Returns 0 or
 * -errno.
 */
int gn_holders_create(struct gn_loop *loop, uint64_t session, struct gn_holders **holders_p,
		      int *socket_p);
/* Returns true if a process maps the memory. holders: NULL: none does. */
bool gn_holders_any(struct gn_holders *holders);
void gn_holders_free(struct gn_holders *holders);

/*
 * The client has ended: from now on gantry_hold() fails. If processes are left, put the holders
 * into the list until the last of them has unmapped the memory; else free them. Returns true if
 * processes are left.
 */
bool gn_holders_keep(struct gn_holders_list *list, struct gn_holders *holders);
/*
 * Returns the kept holders of this session id, or NULL. pid_p: out: a process that is left; 0: it
 * is not visible here.
 */
struct gn_holders *gn_holders_find(struct gn_holders_list *list, uint64_t session, int32_t *pid_p);
/* Returns true in the first call for these holders: the caller logs them. */
bool gn_holders_first_log(struct gn_holders *holders);
void gn_holders_free_all(struct gn_holders_list *list);

#endif
