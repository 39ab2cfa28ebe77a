/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uri.h - gantry://[HOST:PORT]/[NAME][?KEY=VALUE[&KEY=VALUE]...], as in gantry-client(3)
 *
 * A URI becomes settings of a configuration, as `gantry run --set` takes them, or names a file and
 * a role.
 */
#ifndef GC_URI_H
#define GC_URI_H

#include "base/arena.h"

#define GC_URI_MAX 4096  /* bytes */
#define GC_URI_SHOWN 128 /* of them in messages */
#define GC_URI_SETS 64
#define GC_URI_ROLE "volume" /* the role that a URI describes */

struct gc_uri {
	const char *config, *role; /* config NULL: the settings say it all; role NULL: not given */
	const char *sets[GC_URI_SETS];
	size_t n_sets;
	struct gn_arena arena;
};

/* 0; -EINVAL with a message in text; -ENOMEM. Fini in either case. */
int gc_uri_parse(struct gc_uri *uri, const char *from, char *text, size_t text_bytes);
void gc_uri_fini(struct gc_uri *uri);

#endif
