/* SPDX-License-Identifier: BSD-3-Clause */
/* trouble.h - legal events that a program must expect, decided by a seed */
#ifndef DC_TROUBLE_H
#define DC_TROUBLE_H

#include <stdbool.h>

struct dc_call;

extern bool dc_trouble_is_on;

/* Decide whether this call is refused, and with which documented error. */
void dc_trouble_before(struct dc_call *call);

#endif
