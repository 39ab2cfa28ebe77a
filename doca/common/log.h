/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log.h - what the library itself has to say, as lines of the "SDK" side of doca_log.h.
 *
 *     gd_log(DOCA_LOG_LEVEL_ERROR, "no device %s: see `gantry devices`", name);
 *
 * Shown: what the program's SDK backends let through; warnings and worse on stderr while it has
 * none. One line for an error that a user must understand, where it is decided: what was wrong,
 * where, and what to do. Never on the data path. Any thread; errno is kept.
 */
#ifndef GD_LOG_H
#define GD_LOG_H

#include <doca_log.h>

#define gd_log(level, ...) gd_log_at((level), __FILE__, __LINE__, __func__, __VA_ARGS__)

void gd_log_at(uint32_t level, const char *file, int line, const char *function, const char *format,
	       ...) __attribute__((format(printf, 5, 6)));

/* Is this one of the seven levels, or between two of them? */
#define GD_LOG_LEVEL_OK(level) \
	((level) >= DOCA_LOG_LEVEL_DISABLE && (level) <= DOCA_LOG_LEVEL_TRACE)

#endif
