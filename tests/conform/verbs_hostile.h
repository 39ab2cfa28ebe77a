/* SPDX-License-Identifier: BSD-3-Clause */
/* verbs_hostile.h - an attacker of end b, beside an honest peer: end a. */
#ifndef CONFORM_VERBS_HOSTILE_H
#define CONFORM_VERBS_HOSTILE_H

#include "conform/rig.h"
#include "conform/verbs_raw.h"

/* of the attacker: evil is its first connection; more is a second one, or a further queue pair */
extern struct raw evil, more;
extern void *hostile_consumer; /* consumer of end b for the attacker; each turn polls it */
extern unsigned hostile_taken; /* valid messages that the consumer took */

/* Connect the honest peer. setting: an additional setting of end b, or NULL. */
void hostile_begin(const char *setting);
void hostile_end(void);
/* The honest peer has lost nothing, and no byte that the attacker tries to change has changed. */
void hostile_check_honest(void);
/* Connect the attacker; its connection at end b is rig.b.conn. */
void hostile_intrude(void);
void hostile_leave(void);
/*
 * Check that the connection of the attacker has ended, with at most one warning. what: name of the
 * attack, for the failure message. reason: that end b must report, 0: any. text: that the warning
 * must contain, NULL: there need be no warning.
 */
void hostile_check_dropped(const char *what, int reason, const char *text);

/* Run the cases of verbs_hostile_words.c. */
void hostile_words(void);

#endif
