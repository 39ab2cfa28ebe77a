/* SPDX-License-Identifier: BSD-3-Clause */
/* verbs_hostile.h - an attacker of end b, beside an honest peer: end a. */
#ifndef CONFORM_VERBS_HOSTILE_H
#define CONFORM_VERBS_HOSTILE_H

#include "conform/rig.h"
#include "conform/verbs_raw.h"

extern struct raw evil, more;  /* the connection of the attacker, and its other state */
extern void *hostile_consumer; /* of end b, for the attacker: polled during every wait */
extern unsigned hostile_taken; /* valid messages that the consumer took */

/* Connect the honest peer. setting: of end b, or NULL. */
void hostile_begin(const char *setting);
void hostile_end(void);
/* The honest peer has lost nothing, and no byte that the attacker tries to change has changed. */
void hostile_check_honest(void);
/* Connect the attacker; its connection at end b is rig.b.conn. */
void hostile_intrude(void);
void hostile_leave(void);
/*
 * Its connection has ended, with that reason unless it is 0, and with a warning that has the text
 * unless it is NULL; one warning at most.
 */
void hostile_check_dropped(const char *what, int reason, const char *text);

/* The cases. */
void hostile_words(void);

#endif
