/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kit_program.h - gantry-conform: the plugin under test and its options, for the cases of each kind
 *
 * The cases use the assertions of conform/rig.h. RIG_CASE() runs a case. The program runs each case
 * in a child process, so a crash or a hang of the plugin ends one case only.
 */
#ifndef KIT_PROGRAM_H
#define KIT_PROGRAM_H

#include "base/strlist.h"
#include "conform/rig.h"
#include "loader/loader.h"

struct kit_program {
	const struct gantry_plugin *plugin;
	const struct gn_plugin *loaded;   /* the same, as the loader has completed it */
	struct gn_strlist sets;           /* KEY=VALUE for every instance */
	struct gn_strlist listener_sets;  /* only for the end that listens */
	struct gn_strlist connector_sets; /* only for the end that connects */
	struct gn_strlist services;       /* services that a transport can serve */
	int discards;                     /* reads of the backend do not return what was written */
};

extern struct kit_program kit_program;

/*
 * Make the conf struct of the plugin from --set and from `more`, which may be NULL. Returns NULL if
 * the plugin has no options, or after an error. The caller frees the struct with free(); its
 * strings are never freed.
 *
 * why   out: the faults; "" without one
 */
void *kit_conf(const struct gn_strlist *more, char *why, size_t size);
/* Check the settings only: why, as above. */
void kit_check_conf(const struct gn_strlist *more, char *why, size_t size);
/* As kit_conf(), with one more setting KEY=VALUE; NULL: none. */
void *kit_conf_with(const char *setting, char *why, size_t size);
/*
 * Returns another copy of the conf struct from --set, which the caller frees with free(); NULL if
 * the plugin has no options. An error fails the case.
 */
void *kit_conf_copy(void);

/* Cases of plugins of every kind. */
void kit_plugin_cases(void);
/* Cases of each kind. */
void kit_transport_cases(void);
void kit_stage_cases(void);
void kit_backend_cases(void);
void kit_role_cases(void);
void kit_observer_cases(void);

/*
 * Open and close an instance of the plugin, with one lane if its kind has lanes. Returns the result
 * of the first function that failed.
 *
 * log   out: the first log messages of the plugin
 */
int kit_open_and_close(void *conf, char *log, size_t size);

#endif
