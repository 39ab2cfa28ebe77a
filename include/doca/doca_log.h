/* SPDX-License-Identifier: BSD-3-Clause */
/* doca_log.h - log lines of programs and of the library */
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

enum doca_log_level {
	DOCA_LOG_LEVEL_DISABLE = 10,
	DOCA_LOG_LEVEL_CRIT = 20,
	DOCA_LOG_LEVEL_ERROR = 30,
	DOCA_LOG_LEVEL_WARNING = 40,
	DOCA_LOG_LEVEL_INFO = 50,
	DOCA_LOG_LEVEL_DEBUG = 60,
	DOCA_LOG_LEVEL_TRACE = 70,
};

typedef void (*log_flush_callback)(char *buf);

/* Least severe level that this backend writes, within the global limit. */
DOCA_EXPERIMENTAL doca_error_t
doca_log_backend_set_level_lower_limit(struct doca_log_backend *backend, uint32_t level);

/* Most severe level that this backend writes, within the global limit. */
DOCA_EXPERIMENTAL doca_error_t
doca_log_backend_set_level_upper_limit(struct doca_log_backend *backend, uint32_t upper_limit);

/* Make the limit final: the global one does not change it any more. */
DOCA_EXPERIMENTAL doca_error_t
doca_log_backend_set_level_lower_limit_strict(struct doca_log_backend *backend);
DOCA_EXPERIMENTAL doca_error_t
doca_log_backend_set_level_upper_limit_strict(struct doca_log_backend *backend);

/*
 * Least severe level of all backends of the program, those made later too. INFO at first; option -l
 * sets it.
 */
DOCA_EXPERIMENTAL doca_error_t doca_log_level_set_global_lower_limit(uint32_t level);

/* Most severe level of all backends of the program, those made later too. */
DOCA_EXPERIMENTAL doca_error_t doca_log_level_set_global_upper_limit(uint32_t upper_limit);

/* The level in force. */
DOCA_EXPERIMENTAL uint32_t doca_log_level_get_global_lower_limit(void);
DOCA_EXPERIMENTAL uint32_t doca_log_level_get_global_upper_limit(void);

/*
 * A number for the name of a source of lines. Works before main(). DOCA_LOG_REGISTER calls it.
 * Errors: NO_MEMORY.
 */
DOCA_EXPERIMENTAL doca_error_t doca_log_register_source(const char *source_name, int *source);

/* The number is free again. */
DOCA_EXPERIMENTAL doca_error_t doca_log_unregister_source(int source);

/*
 * Lines of the program go to a file. A backend lives as long as the process; what it writes to is
 * the caller's. Errors, of this and of all that make backends: NO_MEMORY.
 */
DOCA_EXPERIMENTAL doca_error_t doca_log_backend_create_with_file(FILE *fptr,
								 struct doca_log_backend **backend);

/* The same, to a file descriptor. */
DOCA_EXPERIMENTAL doca_error_t doca_log_backend_create_with_fd(int fd,
							       struct doca_log_backend **backend);

/* The same, into a buffer; the handler is called with each line. */
DOCA_EXPERIMENTAL doca_error_t doca_log_backend_create_with_buf(char *buf, size_t capacity,
								log_flush_callback handler,
								struct doca_log_backend **backend);

/* The same, to the system's log, under a name. */
DOCA_EXPERIMENTAL doca_error_t
doca_log_backend_create_with_syslog(const char *name, struct doca_log_backend **backend);

/* Least severe level that this backend of the library's own lines writes. */
DOCA_EXPERIMENTAL doca_error_t doca_log_backend_set_sdk_level(struct doca_log_backend *backend,
							      uint32_t level);

/* The library's own lines go to a file, INFO and what is more severe. */
DOCA_EXPERIMENTAL doca_error_t
doca_log_backend_create_with_file_sdk(FILE *fptr, struct doca_log_backend **backend);

/* The same, to a file descriptor. */
DOCA_EXPERIMENTAL doca_error_t
doca_log_backend_create_with_fd_sdk(int fd, struct doca_log_backend **backend);

/* The same, into a buffer; the handler is called with each line. */
DOCA_EXPERIMENTAL doca_error_t doca_log_backend_create_with_buf_sdk(
	char *buf, size_t capacity, log_flush_callback handler, struct doca_log_backend **backend);

/* The same, to the system's log, under a name. */
DOCA_EXPERIMENTAL doca_error_t
doca_log_backend_create_with_syslog_sdk(const char *name, struct doca_log_backend **backend);

/*
 * Least severe level of all backends of the library's own lines. INFO at first; option
 * --sdk-log-level sets it.
 */
DOCA_EXPERIMENTAL doca_error_t doca_log_level_set_global_sdk_limit(uint32_t level);

/* The level in force. */
DOCA_EXPERIMENTAL uint32_t doca_log_level_get_global_sdk_limit(void);

/*
 * The usual for a program: lines up to INFO to standard output, warnings and what is worse to
 * standard error.
 */
DOCA_EXPERIMENTAL doca_error_t doca_log_backend_create_standard(void);

/* Write one line to the backends whose limits let it pass. Any thread. */
DOCA_EXPERIMENTAL doca_error_t doca_log(uint32_t level, int source, const char *fname, int line,
					const char *func, const char *format, ...)
	__attribute__((format(printf, 6, 7)));

#ifdef __cplusplus
}
#endif

/* One line. The text is a format of printf; the file's DOCA_LOG_REGISTER names the source. */
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

/* Once in each file that logs: names the source of its lines, before main() begins. */
#define DOCA_LOG_REGISTER(source) \
	static int log_source; \
	static void __attribute__((constructor(101))) doca_log_register_this_file(void) \
	{ \
		doca_log_register_source(#source, &log_source); \
	}

#endif
