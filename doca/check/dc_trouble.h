/* SPDX-License-Identifier: BSD-3-Clause */
/* dc_trouble.h - legal events that a program must expect, decided by a seed */
#ifndef DC_TROUBLE_H
#define DC_TROUBLE_H

#include <stdbool.h>

struct dc_call;
struct dc_object;

extern bool dc_trouble_is_on;

/* Decide whether this call is refused, with a documented error. Called with the lock held. */
void dc_trouble_before(struct dc_call *call);
/* True if a connection of the server fails: the program gets change_successful = 0. */
bool dc_trouble_connection(void);
/* Stop a context of the engine, as a fatal error or the peer does. Called without the lock. */
void dc_trouble_progress(struct dc_object *pe);

#endif
