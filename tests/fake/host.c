/* SPDX-License-Identifier: BSD-3-Clause */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/crc32c.h"
#include "base/safe_path.h"
#include "host.h"

void fake_fail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fputs("fake: ", stdout);
	vprintf(fmt, ap);
	putchar('\n');
	va_end(ap);
	fflush(stdout);
	abort();
}

__attribute__((format(printf, 3, 4))) static void host_log(const struct gantry_host *pub, int level,
							   const char *fmt, ...)
{
	struct fake_host *host = pub->core;
	size_t space = sizeof host->log - host->log_used;
	va_list ap;
	int n;

	host->n_logged[level]++;
	va_start(ap, fmt);
	n = vsnprintf(host->log + host->log_used, space, fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n + 1 < space) {
		host->log_used += (size_t)n;
		host->log[host->log_used++] = '\n';
		host->log[host->log_used] = '\0';
	}
}

static uint64_t host_now_ns(const struct gantry_host *pub)
{
	struct fake_host *host = pub->core;
	struct timespec ts;

	if (!host->real_clock)
		return host->now_ns;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static uint64_t *host_counter(const struct gantry_host *pub, const char *name)
{
	struct fake_host *host = pub->core;

	if (host->n_counters == FAKE_COUNTERS)
		return NULL;
	snprintf(host->counters[host->n_counters].name, sizeof host->counters[0].name, "%s", name);
	host->counters[host->n_counters].value = 0;
	return &host->counters[host->n_counters++].value;
}

static int host_open_file(const struct gantry_host *pub, const char *path, int flags)
{
	char why[GN_PATH_WHY];
	int fd = gn_path_open(path, flags, 0600, GN_PATH_OUTPUT, why);

	if (fd < 0 && why[0])
		gantry_log_error(pub, "%s", why);
	return fd;
}

void fake_host_init(struct fake_host *host, const char *name)
{
	memset(host, 0, sizeof *host);
	host->now_ns = 1000000000u;
	host->pub = (struct gantry_host){
		.struct_size = sizeof host->pub,
		.name = name,
		.core = host,
		.log = host_log,
		.now_ns = host_now_ns,
		.counter = host_counter,
		.open_file = host_open_file,
		.crc32c = gn_crc32c,
	};
}

int fake_logged(const struct fake_host *host, const char *text)
{
	return strstr(host->log, text) != NULL;
}

uint64_t fake_counter(const struct fake_host *host, const char *name)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < host->n_counters; i++)
		if (!strcmp(host->counters[i].name, name))
			sum += host->counters[i].value;
	return sum;
}

void fake_lane_init(struct gantry_lane *lane, struct fake_host *host, uint32_t index,
		    uint32_t n_lanes)
{
	*lane = (struct gantry_lane){
		.index = index,
		.n_lanes = n_lanes,
		.now_ns = host->now_ns,
		.host = &host->pub,
		.core = host,
	};
}

void fake_advance(struct gantry_lane *lane, uint64_t ns)
{
	struct fake_host *host = lane->core;

	host->now_ns += ns;
	lane->now_ns = host->now_ns;
}

const struct gantry_plugin *fake_plugin(const char *name)
{
	const char *folder =
		getenv("TEST_PLUGINDIR"); /* directory with other builds of the same plugins */
	char path[512], symbol[128];
	const struct gantry_plugin *plugin;
	void *so;

	snprintf(path, sizeof path, "%s/%s.so", folder ? folder : fake_plugin_dir, name);
	snprintf(symbol, sizeof symbol, "%s_LTX_gantry_plugin", name);
	for (char *c = symbol; *c; c++)
		if (*c == '-')
			*c = '_';
	so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!so)
		fake_fail("%s", dlerror());
	plugin = dlsym(so, symbol);
	if (!plugin)
		fake_fail("%s", dlerror());
	return plugin;
}
