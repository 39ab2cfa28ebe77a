/* SPDX-License-Identifier: BSD-3-Clause */
/* doca_log.h - logging of programs and of the library: sources, backends and level limits */
#ifndef DOCA_LOG_H
#define DOCA_LOG_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <doca_error.h>

#ifdef __cplusplus
extern "C" {
#endif

struct doca_log_backend;

/* Levels of log lines, from the most severe to the most verbose. */
enum doca_log_level {
	DOCA_LOG_LEVEL_DISABLE = 10,
	DOCA_LOG_LEVEL_CRIT = 20,
	DOCA_LOG_LEVEL_ERROR = 30,
	DOCA_LOG_LEVEL_WARNING = 40,
	DOCA_LOG_LEVEL_INFO = 50,
	DOCA_LOG_LEVEL_DEBUG = 60,
	DOCA_LOG_LEVEL_TRACE = 70,
};

/* Called when the buffer of the backend contains one line, which ends with a NUL. */
typedef void (*log_flush_callback)(char *buf);

/* Set the least severe level that the backend writes. */
DOCA_EXPERIMENTAL doca_error_t
doca_log_backend_set_level_lower_limit(struct doca_log_backend *backend, uint32_t level);

/* Set the most severe level that the backend writes. */
DOCA_EXPERIMENTAL doca_error_t
doca_log_backend_set_level_upper_limit(struct doca_log_backend *backend, uint32_t upper_limit);

/* Make the limit of the backend final: later changes of the global limit do not change it. */
DOCA_EXPERIMENTAL doca_error_t
doca_log_backend_set_level_lower_limit_strict(struct doca_log_backend *backend);
DOCA_EXPERIMENTAL doca_error_t
doca_log_backend_set_level_upper_limit_strict(struct doca_log_backend *backend);

/*
 * Set the least severe level of all backends of the program, including later ones. The default is
 * INFO. Option -l sets it.
 */
DOCA_EXPERIMENTAL doca_error_t doca_log_level_set_global_lower_limit(uint32_t level);

/* Set the most severe level of all backends of the program, including later ones. */
DOCA_EXPERIMENTAL doca_error_t doca_log_level_set_global_upper_limit(uint32_t upper_limit);

/* Return the least severe level (lower limit) and the most severe level (upper limit). */
DOCA_EXPERIMENTAL uint32_t doca_log_level_get_global_lower_limit(void);
DOCA_EXPERIMENTAL uint32_t doca_log_level_get_global_upper_limit(void);

/*
 * Allocate a number for a log source. DOCA_LOG_REGISTER calls this function before main().
 * Errors:
 *     NO_MEMORY  memory allocation failed
 */
DOCA_EXPERIMENTAL doca_error_t doca_log_register_source(const char *source_name, int *source);

/* Release the number of a log source. */
DOCA_EXPERIMENTAL doca_error_t doca_log_unregister_source(int source);

/*
 * Create a backend that writes lines of the program to a file. A backend exists until the process
 * ends. The caller keeps ownership of the file, descriptor or buffer.
 * Errors, also of the other functions that create a backend:
 *     NO_MEMORY  memory allocation failed
 */
DOCA_EXPERIMENTAL doca_error_t doca_log_backend_create_with_file(FILE *fptr,
								 struct doca_log_backend **backend);

/* Like doca_log_backend_create_with_file(), to a file descriptor. */
DOCA_EXPERIMENTAL doca_error_t doca_log_backend_create_with_fd(int fd,
							       struct doca_log_backend **backend);

/*
 * Like doca_log_backend_create_with_file(), to a buffer of `capacity` bytes. The library calls the
 * handler after each line.
 */
DOCA_EXPERIMENTAL doca_error_t doca_log_backend_create_with_buf(char *buf, size_t capacity,
								log_flush_callback handler,
								struct doca_log_backend **backend);

/* Like doca_log_backend_create_with_file(), to syslog(3), with a name in front of each line. */
DOCA_EXPERIMENTAL doca_error_t
doca_log_backend_create_with_syslog(const char *name, struct doca_log_backend **backend);

/* Set the least severe level of a backend for lines of the library. */
DOCA_EXPERIMENTAL doca_error_t doca_log_backend_set_sdk_level(struct doca_log_backend *backend,
							      uint32_t level);

/* Create a backend that writes lines of the library to a file, at level INFO and more severe. */
DOCA_EXPERIMENTAL doca_error_t
doca_log_backend_create_with_file_sdk(FILE *fptr, struct doca_log_backend **backend);

/* Like doca_log_backend_create_with_file_sdk(), to a file descriptor. */
DOCA_EXPERIMENTAL doca_error_t
doca_log_backend_create_with_fd_sdk(int fd, struct doca_log_backend **backend);

/*
 * Like doca_log_backend_create_with_file_sdk(), to a buffer of `capacity` bytes. The library calls
 * the handler after each line.
 */
DOCA_EXPERIMENTAL doca_error_t doca_log_backend_create_with_buf_sdk(
	char *buf, size_t capacity, log_flush_callback handler, struct doca_log_backend **backend);

/* Like doca_log_backend_create_with_file_sdk(), to syslog(3), with a name in front of each line. */
DOCA_EXPERIMENTAL doca_error_t
doca_log_backend_create_with_syslog_sdk(const char *name, struct doca_log_backend **backend);

/*
 * Set the least severe level of all backends for lines of the library. The default is INFO. Option
 * --sdk-log-level sets it.
 */
DOCA_EXPERIMENTAL doca_error_t doca_log_level_set_global_sdk_limit(uint32_t level);

/* Returns the least severe level for lines of the library. */
DOCA_EXPERIMENTAL uint32_t doca_log_level_get_global_sdk_limit(void);

/*
 * Create the standard backends of a program: INFO and less severe to standard output, WARNING and
 * more severe to standard error.
 */
DOCA_EXPERIMENTAL doca_error_t doca_log_backend_create_standard(void);

/* Write one line to all backends whose limits include the level. Any thread. */
DOCA_EXPERIMENTAL doca_error_t doca_log(uint32_t level, int source, const char *fname, int line,
					const char *func, const char *format, ...)
	__attribute__((format(printf, 6, 7)));

#ifdef __cplusplus
}
#endif

/* Log one line. The format is that of printf(3). DOCA_LOG_REGISTER of the file gives the source. */
#define DOCA_LOG(level, format, ...) \
	doca_log(level, log_source, __FILE__, __LINE__, __func__, format, ##__VA_ARGS__)
#define DOCA_LOG_CRIT(format, ...) DOCA_LOG(DOCA_LOG_LEVEL_CRIT, format, ##__VA_ARGS__)
#define DOCA_LOG_ERR(format, ...) DOCA_LOG(DOCA_LOG_LEVEL_ERROR, format, ##__VA_ARGS__)
#define DOCA_LOG_WARN(format, ...) DOCA_LOG(DOCA_LOG_LEVEL_WARNING, format, ##__VA_ARGS__)
#define DOCA_LOG_INFO(format, ...) DOCA_LOG(DOCA_LOG_LEVEL_INFO, format, ##__VA_ARGS__)
#define DOCA_LOG_DBG(format, ...) DOCA_LOG(DOCA_LOG_LEVEL_DEBUG, format, ##__VA_ARGS__)
#ifdef DOCA_LOGGING_ALLOW_TRACE
#define DOCA_LOG_TRC(format, ...) DOCA_LOG(DOCA_LOG_LEVEL_TRACE, format, ##__VA_ARGS__)
#else
#define DOCA_LOG_TRC(format, ...) \
	do { \
	} while (0)
#endif

/* Register the log source of a file before main() runs. Use it once in each file that logs. */
#define DOCA_LOG_REGISTER(source) \
	static int log_source; \
	static void __attribute__((constructor(101))) doca_log_register_this_file(void) \
	{ \
		doca_log_register_source(#source, &log_source); \
	}

#endif
