/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log.h - log lines.
 *
 *     2026-01-31T12:00:00.123Z warn shm-comch: peer dropped reason="bad index" conn=3
 *
 * A message states what happened, then values as key=value. Pass text of a peer through gn_escape()
 * first. Do not log on the IO path: use a counter there.
 */
#ifndef GN_BASE_LOG_H
#define GN_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gn_log_level { GN_LOG_ERROR, GN_LOG_WARN, GN_LOG_INFO, GN_LOG_DEBUG, GN_LOG_TRACE };
enum gn_log_form { GN_LOG_TEXT, GN_LOG_JSON };

#define GN_LOG_LINE_MAX 1024 /* bytes of a message; longer messages are truncated */
#define GN_ESCAPE_MAX 64     /* bytes of peer text that one line can contain */
/* size of a destination that gn_escape() never truncates */
#define GN_ESCAPE_BYTES (4 * GN_ESCAPE_MAX + sizeof("..."))

/*
 * Write one line if `level` is enabled. It uses one write(2), so lines of several threads and
 * processes do not mix. Control characters in the message become \xNN. Keeps errno. Any thread.
 *
 * source   the plugin instance or module that logs
 */
void gn_log(enum gn_log_level level, const char *source, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Enable lines up to this level; the default is info. Any thread. */
void gn_log_set_level(enum gn_log_level level);

/* Get the name of a level: "error" to "trace". */
const char *gn_log_word(enum gn_log_level level);

/*
 * True if gn_log() would write a line of this level. For callers whose arguments are expensive to
 * compute. Any thread.
 */
bool gn_log_on(enum gn_log_level level);

/*
 * Set the destination and format of lines; the default is stderr and text. The caller still owns
 * the descriptor. Any thread.
 */
void gn_log_set_sink(int fd, enum gn_log_form form);

/*
 * State whether stderr is a terminal with an unfinished line, such as progress. If it is, log lines
 * on stderr overwrite that line. Any thread.
 */
void gn_log_set_over(bool over);
/* Erase that line, if there is one, before other output on stderr. Any thread. */
void gn_log_erase_line(void);

/*
 * Pass each line to a hook of the embedding program instead of writing it; NULL: write lines again.
 * Any thread.
 */
typedef void gn_log_hook(enum gn_log_level level, const char *source, const char *message);
void gn_log_set_hook(gn_log_hook *hook);

/*
 * Rate limit of one connection or other source of many lines. Zeroed at first. Belongs to one
 * thread.
 */
struct gn_log_limit {
	uint64_t window_ns;  /* start of the current second */
	uint32_t lines;      /* lines written since window_ns */
	uint32_t suppressed; /* lines suppressed since the last report */
};

/*
 * Count a line of this object. Returns true if the caller must write the line: true for the first
 * 10 lines of each second. If lines of an earlier second were suppressed, this function first
 * writes a line with their number, with this level and source. Thread: owner of the limit.
 */
bool gn_log_ratelimit(struct gn_log_limit *limit, enum gn_log_level level, const char *source);

/*
 * Escape untrusted bytes for a log line: printable ASCII is kept; other bytes and the backslash
 * become \xNN. "..." follows after GN_ESCAPE_MAX bytes or when dst is full.
 *
 * dst      size bytes, at least 1; always terminated
 * returns  dst
 * thread   any
 */
char *gn_escape(char *dst, size_t size, const void *src, size_t length);

#endif
