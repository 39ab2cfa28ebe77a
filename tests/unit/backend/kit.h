/* SPDX-License-Identifier: BSD-3-Clause */
/* kit.h - checks a backend against the contract of backend.h, rule by rule. */
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
	int any_verifier;    /* not known whether it is: the data that is left decides */
	void *(*conf)(void); /* returns the options, instead of `settings`; NULL: none */
	/*
	 * on 1: from now on each write completes with TIMEOUT before it reaches the store. on 0:
	 * writes complete normally again. NULL: a write of this backend never completes so early.
	 */
	void (*give_up)(int on);
	unsigned long turns; /* calls of poll after which an IO counts as lost */
};

/* Check one subject against every rule. Returns NULL, or the rule that it breaks. */
const char *kit_check(const struct kit_subject *subject);
/* Check one rule, by its number. kit_rule_name: NULL: there is no such rule. */
const char *kit_check_rule(const struct kit_subject *subject, unsigned i);
const char *kit_rule_name(unsigned i);

/*
 * A backend to test the kit itself: it completes writes early on request, and breaks at most one
 * rule.
 */
enum kit_bug {
	KIT_SOUND,
	KIT_GEOMETRY, /* max_io is less than a block */
	KIT_UNKNOWN,  /* the verifier is 0 */
	KIT_RESTLESS, /* a new verifier on each call */
	KIT_RENAMED,  /* a new UUID at each open */
	KIT_STALE,    /* the same verifier on each open, although the data is lost */
	KIT_REFUSES_FUA,
	KIT_LOSES,         /* a flush never completes */
	KIT_TWICE,         /* a flush completes twice */
	KIT_CHANGES,       /* the length of the descriptor has changed at completion */
	KIT_BEYOND,        /* a write clears the byte behind its range */
	KIT_READS_BEYOND,  /* a read clears the byte behind the memory of the IO */
	KIT_HIDES,         /* a block that was written is reported as a hole */
	KIT_LIES,          /* quiesce returns 0 while a write is in flight */
	KIT_OVERTAKES,     /* a write that timed out reaches the store after a newer one */
	KIT_NEVER_AT_REST, /* quiesce returns -EAGAIN without end */
	KIT_ROUND_GROWS,   /* quiesce also waits for IOs submitted during the round */
};

extern const struct gantry_plugin kit_fake;
void kit_fake_bug(enum kit_bug bug);
void kit_fake_give_up(int on);

#endif
