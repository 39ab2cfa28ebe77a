/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * host.h - the services of the host for each plugin instance: log, time, counters, files.
 */
#ifndef GN_BASE_HOST_H
#define GN_BASE_HOST_H

#include "base/log.h"

#include <gantry/plugin.h>

#include <pthread.h>

struct gn_auth;

struct gn_counter {
	struct gn_counter *next;
	uint64_t value; /* written by one thread, read by any: __atomic relaxed */
	char name[48];
};

/* Host of one plugin instance. The owner of the instance embeds it; the plugin sees `pub`. */
struct gn_host {
	struct gantry_host pub;
	struct gn_auth *auth; /* secure/auth.h; NULL: peers are not authenticated */
	struct gn_counter *counters;
	pthread_mutex_t lock;      /* guards `limit` */
	struct gn_log_limit limit; /* rate limit of warnings, because peers can cause them */
	char name[96];
};

/* name: printf format, such as "roles.%s"; truncated to 95 bytes. */
void gn_host_init(struct gn_host *host, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void gn_host_fini(struct gn_host *host); /* frees the counters */
/*
 * Check the return value of a plugin function. A value above 0 is a bug of the plugin: the function
 * logs it and returns -EPROTO. Other values are returned unchanged.
 */
int gn_host_returned(const struct gn_host *host, const char *plugin, const char *function, int rc);
/* Write the counters to a report, as an object "counters". Cells of the same name are added. */
void gn_host_report(const struct gn_host *host, struct gantry_writer *w);
/* Get the value of a counter by name; 0 if there is none. */
uint64_t gn_host_counter(const struct gn_host *host, const char *name);

#endif
