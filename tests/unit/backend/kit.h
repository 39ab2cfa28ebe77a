/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kit.h - the contract of backend.h as rules that any backend can be checked against.
 */
#ifndef BACKEND_KIT_H
#define BACKEND_KIT_H

#include <gantry/backend.h>

#define KIT_SETTINGS 8

struct kit_subject {
	const struct gantry_plugin *plugin;
	const char *settings[KIT_SETTINGS]; /* up to a NULL */
	int stores;                         /* reads return what was written */
	int keeps;                          /* data survives close and open */
	int verifier_stays;                 /* the verifier is the same after close and open */
	/*
	 * From now on (1) complete each write before it has reached the store, with TIMEOUT, if the
	 * backend can; or no longer (0). NULL: it cannot.
	 */
	void (*give_up)(int on);
	unsigned long turns; /* calls of poll after which an IO counts as lost */
};

/* Check one subject against every rule. NULL; else the rule that it breaks. */
const char *kit_check(const struct kit_subject *subject);

/*
 * A backend for the kit itself: it completes writes early when told to, and breaks at most one
 * rule.
 */
enum kit_bug {
	KIT_SOUND,
	KIT_GEOMETRY, /* max_io is less than a block */
	KIT_UNKNOWN,  /* no verifier */
	KIT_RESTLESS, /* another verifier at each call */
	KIT_RENAMED,  /* another UUID at each open */
	KIT_STALE,    /* the same verifier at each open, though it forgets */
	KIT_REFUSES_FUA,
	KIT_LOSES,         /* a flush that never completes */
	KIT_TWICE,         /* a flush that completes twice */
	KIT_CHANGES,       /* the descriptor's length is another one at completion */
	KIT_BEYOND,        /* a write clears the byte behind it */
	KIT_READS_BEYOND,  /* a read clears the byte behind the memory of the IO */
	KIT_LIES,          /* quiesce returns 0 while a write is on its way */
	KIT_OVERTAKES,     /* a write that was given up lands after a newer one */
	KIT_NEVER_AT_REST, /* quiesce returns -EAGAIN for ever */
	KIT_ROUND_GROWS,   /* quiesce waits also for what was submitted during the round */
};

extern const struct gantry_plugin kit_fake;
void kit_fake_bug(enum kit_bug bug);
void kit_fake_give_up(int on);

#endif
