/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * host.h - a host for plugins under test: a log that can be searched, a clock that the test sets,
 * counters.
 *
 * A failure of these functions (unknown option, missing plugin) is an error of the test: they print
 * it and end the test program.
 */
#ifndef FAKE_HOST_H
#define FAKE_HOST_H

#include <gantry/plugin.h>

#define FAKE_COUNTERS 64
#define FAKE_REPORT_BYTES 16384

struct fake_host {
	struct gantry_host pub;
	uint64_t now_ns; /* time of the host; starts at 1 s */
	int real_clock;  /* use CLOCK_MONOTONIC instead */
	unsigned n_logged[GANTRY_LOG_DEBUG + 1];
	/* all lines so far, each with a newline; when the buffer is full, new lines are dropped */
	char log[16384];
	size_t log_used;
	struct {
		char name[64];
		uint64_t value;
	} counters[FAKE_COUNTERS];
	unsigned n_counters;
};

void fake_host_init(struct fake_host *host, const char *name);
/* Returns whether the log contains the text. */
int fake_logged(const struct fake_host *host, const char *text);
/* Returns the value of a counter, or 0 if it does not exist. */
uint64_t fake_counter(const struct fake_host *host, const char *name);

void fake_lane_init(struct gantry_lane *lane, struct fake_host *host, uint32_t index,
		    uint32_t n_lanes);
/* Advance the clock of the host, and the time of the lane. */
void fake_advance(struct gantry_lane *lane, uint64_t ns);

/*
 * The directory of plugins without TEST_PLUGINDIR in the environment. A program that is installed
 * defines it by itself, because it must not depend on the build directory.
 */
extern const char fake_plugin_dir[];
/* Load NAME.so from $TEST_PLUGINDIR, or from fake_plugin_dir. */
const struct gantry_plugin *fake_plugin(const char *name);

/*
 * Make the conf struct of a plugin from its defaults and from settings "name=value" (in a group:
 * "group.name=value"), up to a NULL argument. Strings point into the arguments. Returns NULL if the
 * plugin has no options. The caller frees the struct with free().
 */
void *fake_conf(const struct gantry_plugin *plugin, ...) __attribute__((sentinel));

/*
 * Let the plugin check a conf struct; its findings are logged as errors. Returns 0, or -EINVAL as
 * the host would.
 */
int fake_check(struct fake_host *host, const struct gantry_plugin *plugin, const void *conf);
/* Returns whether a transport accepts the text of a service. */
int fake_serves(const struct gantry_plugin *plugin, const void *conf, const char *service);

/* A report as lines "object.key=value". The key of an entry of an array is its index. */
struct fake_report {
	struct gantry_writer pub;
	char text[FAKE_REPORT_BYTES];
	size_t used;
	char path[256];
	struct {
		size_t path_len;
		int next; /* index of the next entry of an array, -1: object */
	} level[16];
	unsigned depth;
};

void fake_report_init(struct fake_report *report);
/* Returns the value of this path, as text up to a newline, or NULL if there is none. */
const char *fake_reported(const struct fake_report *report, const char *path);
/* Returns the value of this path as a number, or UINT64_MAX if there is none. */
uint64_t fake_reported_u64(const struct fake_report *report, const char *path);

/* Print an error of the test, and end the program. */
__attribute__((noreturn, format(printf, 1, 2))) void fake_fail(const char *fmt, ...);

#endif
