/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define LINES_PER_S 10
#define ERASE_LINE "\r\033[K"

static const char *const words[] = {"error", "warn", "info", "debug", "trace"}; /* lint: a word */
static int max_level = GN_LOG_INFO;
static int sink_fd = STDERR_FILENO;
static int sink_form = GN_LOG_TEXT;
static bool over_line;
static gn_log_hook *line_hook;

struct line {
	size_t n;
	char text[6 * GN_LOG_LINE_MAX + 256];
};

const char *gn_log_word(enum gn_log_level level)
{
	return words[level];
}

void gn_log_set_level(enum gn_log_level level)
{
	__atomic_store_n(&max_level, (int)level, __ATOMIC_RELAXED);
}

bool gn_log_on(enum gn_log_level level)
{
	return (int)level <= __atomic_load_n(&max_level, __ATOMIC_RELAXED);
}

void gn_log_set_sink(int fd, enum gn_log_form form)
{
	__atomic_store_n(&sink_fd, fd, __ATOMIC_RELAXED);
	__atomic_store_n(&sink_form, (int)form, __ATOMIC_RELAXED);
}

void gn_log_set_over(bool over)
{
	__atomic_store_n(&over_line, over, __ATOMIC_RELAXED);
}

void gn_log_erase_line(void)
{
	if (__atomic_exchange_n(&over_line, false, __ATOMIC_RELAXED))
		fputs(ERASE_LINE, stderr);
}

void gn_log_set_hook(gn_log_hook *hook)
{
	__atomic_store_n(&line_hook, hook, __ATOMIC_RELAXED);
}

static void put(struct line *l, const char *text)
{
	while (*text && l->n < sizeof(l->text))
		l->text[l->n++] = *text++;
}

/*
 * Write text for a terminal or a file. Control characters are escaped, so text can neither move the
 * cursor nor end the line.
 */
static void put_plain(struct line *l, const char *text)
{
	char hex[8];

	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c < 0x20 || c == 0x7f)
			snprintf(hex, sizeof(hex), "\\x%02x", c);
		else
			snprintf(hex, sizeof(hex), "%c", c);
		put(l, hex);
	}
}

/*
 * Write text for a JSON string. Bytes that are not ASCII are encoded as Latin-1 code points, so the
 * line is valid.
 */
static void put_json(struct line *l, const char *text)
{
	char code[8];

	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			snprintf(code, sizeof(code), "\\%c", c);
		else if (c < 0x20 || c >= 0x7f)
			snprintf(code, sizeof(code), "\\u%04x", c);
		else
			snprintf(code, sizeof(code), "%c", c);
		put(l, code);
	}
}

static void put_time(struct line *l)
{
	char text[40], tail[16];
	struct timespec ts;
	struct tm tm;

	clock_gettime(CLOCK_REALTIME, &ts);
	gmtime_r(&ts.tv_sec, &tm);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(tail, sizeof(tail), ".%03dZ", (int)(ts.tv_nsec / 1000000));
	put(l, text);
	put(l, tail);
}

static void put_line(struct line *l, enum gn_log_level level, const char *source,
		     const char *message)
{
	bool json = __atomic_load_n(&sink_form, __ATOMIC_RELAXED) == GN_LOG_JSON;
	void (*put_text)(struct line *, const char *) = json ? put_json : put_plain;

	put(l, json ? "{\"time\":\"" : "");
	put_time(l);
	put(l, json ? "\",\"level\":\"" : " ");
	put(l, words[level]);
	put(l, json ? "\",\"who\":\"" : " ");
	put_text(l, source);
	put(l, json ? "\",\"message\":\"" : ": ");
	put_text(l, message);
	put(l, json ? "\"}\n" : "\n");
}

void gn_log(enum gn_log_level level, const char *source, const char *fmt, ...)
{
	gn_log_hook *hook = __atomic_load_n(&line_hook, __ATOMIC_RELAXED);
	char message[GN_LOG_LINE_MAX], name[32];
	int saved = errno;
	struct line l;
	va_list ap;

	if (!gn_log_on(level))
		return;
	va_start(ap, fmt);
	vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	snprintf(name, sizeof(name), "%s", source);
	if (hook) {
		hook(level, name, message);
		errno = saved;
		return;
	}
	l.n = 0;
	put(&l, __atomic_load_n(&over_line, __ATOMIC_RELAXED) &&
				__atomic_load_n(&sink_fd, __ATOMIC_RELAXED) == STDERR_FILENO
			? ERASE_LINE
			: "");
	put_line(&l, level, name, message);
	while (write(__atomic_load_n(&sink_fd, __ATOMIC_RELAXED), l.text, l.n) < 0 &&
	       errno == EINTR)
		;
	errno = saved;
}

bool gn_log_ratelimit(struct gn_log_limit *limit, enum gn_log_level level, const char *source)
{
	uint64_t now = gn_now_ns();

	if (limit->lines == 0 || now - limit->window_ns >= GN_NS_PER_S) {
		uint32_t held = limit->suppressed;

		*limit = (struct gn_log_limit){.window_ns = now};
		if (held)
			gn_log(level, source, "further lines were suppressed count=%u", held);
	}
	if (limit->lines == LINES_PER_S) {
		limit->suppressed++;
		return false;
	}
	limit->lines++;
	return true;
}

char *gn_escape(char *dst, size_t size, const void *src, size_t length)
{
	static const char digits[] = "0123456789abcdef";
	const unsigned char *p = src;
	size_t n = 0, i, kept = 0;

	/* kept: length of dst that leaves enough space for "..." after it */
	for (i = 0; i < length && i < GN_ESCAPE_MAX; i++) {
		bool plain = p[i] >= 0x20 && p[i] < 0x7f && p[i] != '\\';
		size_t need = plain ? 1 : 4;

		if (n + need + 1 > size)
			break;
		if (plain) {
			dst[n++] = (char)p[i];
		} else {
			dst[n++] = '\\';
			dst[n++] = 'x';
			dst[n++] = digits[p[i] >> 4];
			dst[n++] = digits[p[i] & 15];
		}
		if (n + sizeof("...") <= size)
			kept = n;
	}
	if (i < length) {
		n = kept;
		for (int dot = 0; dot < 3 && n + 1 < size; dot++)
			dst[n++] = '.';
	}
	dst[n] = '\0';
	return dst;
}
