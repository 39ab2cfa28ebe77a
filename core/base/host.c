/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/host.h"

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/log.h"
#include "base/safe_path.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void host_log(const struct gantry_host *pub, int level, const char *fmt, ...)
{
	static const enum gn_log_level levels[] = {GN_LOG_ERROR, GN_LOG_WARN, GN_LOG_INFO,
						   GN_LOG_DEBUG};
	struct gn_host *host = pub->core;
	char text[512];
	va_list ap;

	if (level == GANTRY_LOG_WARN) {
		bool may;

		pthread_mutex_lock(&host->lock);
		may = gn_log_ratelimit(&host->limit, GN_LOG_WARN, pub->name);
		pthread_mutex_unlock(&host->lock);
		if (!may)
			return;
	}
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	gn_log(level >= 0 && level <= GANTRY_LOG_DEBUG ? levels[level] : GN_LOG_DEBUG, pub->name,
	       "%s", text);
}

static uint64_t host_now(const struct gantry_host *pub)
{
	(void)pub;
	return gn_now_ns();
}

static uint64_t *host_counter(const struct gantry_host *pub, const char *name)
{
	struct gn_host *host = pub->core;
	struct gn_counter *c = gantry_zalloc_lines(sizeof(*c)), **end = &host->counters;

	if (!c)
		return NULL;
	snprintf(c->name, sizeof(c->name), "%s", name);
	while (*end)
		end = &(*end)->next;
	*end = c;
	return &c->value;
}

static int host_open_file(const struct gantry_host *pub, const char *path, int flags)
{
	char why[GN_PATH_WHY];
	int fd = gn_path_open(path, flags, 0600, GN_PATH_OUTPUT, why);

	if (fd < 0 && why[0])
		gn_log(GN_LOG_ERROR, pub->name, "%s", why);
	return fd;
}

void gn_host_init(struct gn_host *host, const char *fmt, ...)
{
	va_list ap;

	memset(host, 0, sizeof(*host));
	pthread_mutex_init(&host->lock, NULL);
	va_start(ap, fmt);
	vsnprintf(host->name, sizeof(host->name), fmt, ap);
	va_end(ap);
	host->pub = (struct gantry_host){
		.struct_size = sizeof(host->pub),
		.name = host->name,
		.core = host,
		.log = host_log,
		.now_ns = host_now,
		.counter = host_counter,
		.open_file = host_open_file,
		.crc32c = gn_crc32c,
	};
}

int gn_host_returned(const struct gn_host *host, const char *plugin, const char *function, int rc)
{
	if (rc <= 0)
		return rc;
	gn_log(GN_LOG_ERROR, host->name,
	       "%s: plugin bug: function %s returned %d, only 0 and -errno are valid", plugin,
	       function, rc);
	return -EPROTO;
}

void gn_host_fini(struct gn_host *host)
{
	for (struct gn_counter *c = host->counters, *next; c; c = next) {
		next = c->next;
		free(c);
	}
	host->counters = NULL;
	pthread_mutex_destroy(&host->lock);
}

/* Add the cells of one name: each lane can have its own cell. */
static uint64_t sum(const struct gn_counter *from, const char *name)
{
	uint64_t total = 0;

	for (const struct gn_counter *c = from; c; c = c->next)
		if (strcmp(c->name, name) == 0)
			total += __atomic_load_n(&c->value, __ATOMIC_RELAXED);
	return total;
}

static int seen_before(const struct gn_host *host, const struct gn_counter *c)
{
	for (const struct gn_counter *p = host->counters; p != c; p = p->next)
		if (strcmp(p->name, c->name) == 0)
			return 1;
	return 0;
}

void gn_host_report(const struct gn_host *host, struct gantry_writer *w)
{
	w->object(w, "counters");
	for (const struct gn_counter *c = host->counters; c; c = c->next)
		if (!seen_before(host, c))
			w->u64(w, c->name, sum(c, c->name));
	w->end(w);
}

uint64_t gn_host_counter(const struct gn_host *host, const char *name)
{
	return sum(host->counters, name);
}
