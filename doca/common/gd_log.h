/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gd_log.h - log lines of the library itself, for the SDK backends of doca_log.h
 *
 *     gd_log(DOCA_LOG_LEVEL_ERROR, "device %s: not found: see `gantry devices`", name);
 *
 * The SDK backends of the program write the lines, within their levels. Without such a backend,
 * warnings and more severe lines go to standard error. The code that detects an error logs one line
 * for it: object, problem, remedy. Do not log on the data path. Any thread; errno is preserved.
 */
#ifndef GD_LOG_H
#define GD_LOG_H

#include <doca_log.h>

#define gd_log(level, ...) gd_log_at((level), __FILE__, __LINE__, __func__, __VA_ARGS__)

void gd_log_at(uint32_t level, const char *file, int line, const char *function, const char *format,
	       ...) __attribute__((format(printf, 5, 6)));

/* Returns whether a level is in the range of the seven levels. */
#define GD_LOG_LEVEL_OK(level) \
	((level) >= DOCA_LOG_LEVEL_DISABLE && (level) <= DOCA_LOG_LEVEL_TRACE)

#endif
