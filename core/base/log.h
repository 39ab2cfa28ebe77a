/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log.h - one line for people and machines about something that was decided.
 *
 *     2026-01-31T12:00:00.123Z warn shm-comch: peer dropped reason="bad index" conn=3
 *
 * The message says what happened; values follow it as key=value. Text of a peer goes through
 * gn_escape first. Never on the IO path: count there.
 */
#ifndef GN_BASE_LOG_H
#define GN_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gn_log_level { GN_LOG_ERROR, GN_LOG_WARN, GN_LOG_INFO, GN_LOG_DEBUG, GN_LOG_TRACE };
enum gn_log_form { GN_LOG_TEXT, GN_LOG_JSON };

#define GN_LOG_LINE_MAX 1024 /* bytes of a message; more is cut off */
#define GN_ESCAPE_MAX 64     /* bytes of peer text that one line shows */
/* a destination that is always large enough */
#define GN_ESCAPE_BYTES (4 * GN_ESCAPE_MAX + sizeof("..."))

/*
 * Writes one line if `level` is switched on, with one write(2), so that lines of several threads
 * and processes do not mix. who: the speaker, a plugin or room. Control characters in the message
 * come out as \xNN. Keeps errno. Any thread.
 */
void gn_log(enum gn_log_level level, const char *who, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Shows lines up to this level; info at start. Any thread. */
void gn_log_set_level(enum gn_log_level level);

/* "error" ... "trace". */
const char *gn_log_word(enum gn_log_level level);

/*
 * Would gn_log write a line of this level? For callers whose arguments are dear to make. Any
 * thread.
 */
bool gn_log_on(enum gn_log_level level);

/*
 * Where lines go and how they look; stderr and text at start. The descriptor stays the caller's.
 * Any thread.
 */
void gn_log_set_sink(int fd, enum gn_log_form form);

/*
 * A line that has not ended yet stands on the terminal at stderr: lines written there take its
 * place. Any thread.
 */
void gn_log_set_over(bool over);

/*
 * Give each line to a function of a program around the core, instead of writing it; NULL: write
 * again. Any thread.
 */
typedef void gn_log_hook(enum gn_log_level level, const char *who, const char *message);
void gn_log_set_hook(gn_log_hook *hook);

/* One per connection or other noisy object, zeroed at start; belongs to one thread. */
struct gn_log_limit {
	uint64_t window_ns;  /* when the current second began */
	uint32_t lines;      /* let through in it */
	uint32_t suppressed; /* held back since the last report */
};

/*
 * May one more line be written about this object? 10 a second are; the first line of a later second
 * is preceded by one that says how many were held back (with this level and who). Thread: owner of
 * the limit.
 */
bool gn_log_ratelimit(struct gn_log_limit *limit, enum gn_log_level level, const char *who);

/*
 * Makes foreign bytes fit for a log line: printable ASCII as it is, the rest and the backslash as
 * \xNN, "..." after GN_ESCAPE_MAX bytes or when dst is full. dst: size bytes, at least 1, always
 * terminated. Returns dst. Any thread.
 */
char *gn_escape(char *dst, size_t size, const void *src, size_t length);

#endif
