/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * host.h - the services that every plugin instance gets: log, time, counters.
 */
#ifndef GN_BASE_HOST_H
#define GN_BASE_HOST_H

#include "base/log.h"

#include <gantry/plugin.h>

#include <pthread.h>

struct gn_counter {
	struct gn_counter *next;
	uint64_t value; /* written by one thread, read by any: __atomic relaxed */
	char name[48];
};

/* An instance's host. Embedded in whatever owns the instance; `pub` is what the plugin sees. */
struct gn_host {
	struct gantry_host pub;
	struct gn_counter *counters;
	pthread_mutex_t lock;      /* guards limit */
	struct gn_log_limit limit; /* of warnings: peers cause them */
	char name[96];
};

/* name: printf-like, "roles.%s", cut to 95 bytes. */
void gn_host_init(struct gn_host *host, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* GANTRY_HOST_* of all that are made from now on; 0 at first. Before there are threads. */
void gn_host_set_flags(uint32_t flags);
void gn_host_fini(struct gn_host *host); /* frees the counters */
/*
 * What a plugin's function has returned: 0 or -errno. A number above 0 is neither, a fault of the
 * plugin, whatever it has done: that is told, and -EPROTO from here on.
 */
int gn_host_returned(const struct gn_host *host, const char *plugin, const char *function, int rc);
/* Write the counters, cells of one name added up, as an object "counters" of a report. */
void gn_host_report(const struct gn_host *host, struct gantry_writer *w);
/* Value of a counter by name, 0 when there is none. */
uint64_t gn_host_counter(const struct gn_host *host, const char *name);

#endif
