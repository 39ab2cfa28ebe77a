/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uri.h - parser of gantry://[HOST:PORT]/[NAME][?KEY=VALUE[&KEY=VALUE]...], see gantry-client(3)
 *
 * A URI becomes settings of a configuration, in the form of `gantry run --set`, or names a file and
 * a role.
 */
#ifndef GC_URI_H
#define GC_URI_H

#include "base/arena.h"

#define GC_URI_MAX 4096  /* longest URI in bytes */
#define GC_URI_SHOWN 128 /* bytes of a URI that messages show */
#define GC_URI_SETS 64
#define GC_URI_ROLE "volume" /* name of the role that a URI describes */

struct gc_uri {
	/*
	 * config: path of the configuration, or NULL if `sets` is the configuration. role: name of
	 * the role, or NULL if the URI has none
	 */
	const char *config, *role;
	const char *sets[GC_URI_SETS];
	size_t n_sets;
	struct gn_arena arena;
};

/*
 * gc_uri_parse - parse a URI. Returns 0; -EINVAL with a message in `text`; -ENOMEM. The caller must
 * call gc_uri_fini() in each case.
 */
int gc_uri_parse(struct gc_uri *uri, const char *from, char *text, size_t text_bytes);
/* gc_uri_fini - free the strings of a parsed URI. */
void gc_uri_fini(struct gc_uri *uri);

#endif
