/* SPDX-License-Identifier: BSD-3-Clause */
/* verbs_hostile.h - an attacker of end b, beside an honest peer: end a. */
#ifndef CONFORM_VERBS_HOSTILE_H
#define CONFORM_VERBS_HOSTILE_H

#include "conform/rig.h"
#include "conform/verbs_raw.h"

extern struct raw evil, more;  /* the attacker's connection, and what else it has */
extern void *hostile_consumer; /* of end b, for the attacker: polled while anything is waited for */
extern unsigned hostile_taken; /* good messages that it took */

/* The honest peer is connected. setting: of end b, or NULL. */
void hostile_begin(const char *setting);
void hostile_end(void);
/* It has lost nothing, and no byte that the attacker is after has changed. */
void hostile_check_honest(void);
/* The attacker is connected; end b's side of it is rig.b.conn. */
void hostile_intrude(void);
void hostile_leave(void);
/*
 * Its connection has ended, for that reason unless it is 0, with a line that has the text unless it
 * is NULL, and one at most.
 */
void hostile_check_dropped(const char *what, int reason, const char *text);

/* The cases. */
void hostile_words(void);

#endif
