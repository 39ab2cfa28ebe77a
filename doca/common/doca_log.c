/* SPDX-License-Identifier: BSD-3-Clause */
/* doca_log.c - log sources, backends and levels, of the program and of the library */
#include <doca_log.h>

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "common/gd_log.h"

#define LINE_MAX_BYTES 8192 /* longer lines are truncated */

/*
 * A backend. A backend of the program writes levels between two limits: `lower` is the most verbose
 * level, `upper` the most severe level. They follow the global limits until they are strict. A
 * backend of the library has only `lower`.
 */
struct doca_log_backend {
	struct doca_log_backend *next;
	bool sdk, busy;
	bool lower_strict, upper_strict;
	uint32_t lower, upper;
	uint32_t band_lower, band_upper; /* fixed range of levels */
	void (*write)(struct doca_log_backend *backend, int priority, char *line, size_t length);
	FILE *file;
	int fd;
	char *buf; /* buffer of the program; capacity bytes */
	size_t capacity;
	log_flush_callback flush;
	char *name; /* for syslog */
};

/* guards the variables below; recursive, because a flush callback can log */
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static struct doca_log_backend *backends;
static bool have_sdk;
static int n_standard; /* number of standard backends created, 0 to 2 */
static uint32_t lower_limit = DOCA_LOG_LEVEL_INFO, upper_limit = DOCA_LOG_LEVEL_CRIT;
static uint32_t sdk_limit = DOCA_LOG_LEVEL_INFO;
/* least severe level of the library that goes to standard error if it has no backend */
static uint32_t stderr_limit = DOCA_LOG_LEVEL_WARNING;
static char **sources; /* names; NULL: free */
static int n_sources;
/*
 * most verbose level of all backends, for lines of the program and of the library: more verbose
 * lines are dropped without the lock; __atomic
 */
static uint32_t shown[2] = {DOCA_LOG_LEVEL_DISABLE, DOCA_LOG_LEVEL_WARNING};

/* -- output -- */

static void write_fd(struct doca_log_backend *backend, int priority, char *line, size_t length)
{
	(void)priority;
	for (ssize_t n; length > 0; line += n, length -= (size_t)n) {
		n = write(backend->fd, line, length);
		if (n < 0 && errno != EINTR)
			return;
		n = n < 0 ? 0 : n;
	}
}

static void write_file(struct doca_log_backend *backend, int priority, char *line, size_t length)
{
	(void)priority;
	fwrite(line, 1, length, backend->file);
	fflush(backend->file);
}

static void write_buf(struct doca_log_backend *backend, int priority, char *line, size_t length)
{
	size_t n = length < backend->capacity ? length : backend->capacity - 1;

	(void)priority;
	memcpy(backend->buf, line, n);
	backend->buf[n] = '\0';
	backend->flush(backend->buf);
}

static void write_syslog(struct doca_log_backend *backend, int priority, char *line, size_t length)
{
	syslog(LOG_USER | priority, "%s: %.*s", backend->name, (int)length, line);
}

/* -- lines -- */

static const struct {
	const char *tag;
	int priority;
} levels[] = {{"CRT", LOG_CRIT}, {"ERR", LOG_ERR},   {"WRN", LOG_WARNING},
	      {"INF", LOG_INFO}, {"DBG", LOG_DEBUG}, {"TRC", LOG_DEBUG}};

static size_t level_index(uint32_t level)
{
	return level < DOCA_LOG_LEVEL_CRIT ? 0 : (level - DOCA_LOG_LEVEL_CRIT + 9) / 10;
}

static bool shows(const struct doca_log_backend *b, bool sdk, uint32_t level)
{
	if (b->sdk != sdk || b->busy || level > b->lower)
		return false;
	return sdk || (level >= b->upper && level <= b->band_lower && level >= b->band_upper);
}

/* Format "[HH:MM:SS:uuuuuu][pid][DOCA][ERR][file.c:LINE][function] text\n". Returns its length. */
static size_t format_line(char *out, uint32_t level, const char *file, int line,
			  const char *function, const char *format, va_list args)
{
	const char *base = file ? strrchr(file, '/') : NULL;
	struct timespec now;
	struct tm tm;
	size_t n;
	int ret;

	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &tm);
	ret = snprintf(out, LINE_MAX_BYTES,
		       "[%02d:%02d:%02d:%06ld][%d][DOCA][%s][%.200s:%d][%.200s] ", tm.tm_hour,
		       tm.tm_min, tm.tm_sec, now.tv_nsec / 1000, (int)getpid(),
		       levels[level_index(level)].tag,
		       base   ? base + 1
		       : file ? file
			      : "?",
		       line, function ? function : "?");
	n = ret > 0 ? (size_t)ret : 0;
	ret = vsnprintf(out + n, LINE_MAX_BYTES - 1 - n, format, args);
	n += ret > 0 ? (size_t)ret : 0;
	n = n < LINE_MAX_BYTES - 2 ? n : LINE_MAX_BYTES - 2;
	out[n++] = '\n';
	out[n] = '\0';
	return n;
}

static void put_line(bool sdk, uint32_t level, const char *file, int line, const char *function,
		     const char *format, va_list args)
{
	int saved = errno, priority = levels[level_index(level)].priority;
	char text[LINE_MAX_BYTES];
	size_t length = format_line(text, level, file, line, function, format, args);

	pthread_mutex_lock(&lock);
	for (struct doca_log_backend *b = backends; b; b = b->next) {
		if (!shows(b, sdk, level))
			continue;
		b->busy = true;
		b->write(b, priority, text, length);
		b->busy = false;
	}
	if (sdk && !have_sdk)
		write_fd(&(struct doca_log_backend){.fd = STDERR_FILENO}, priority, text, length);
	pthread_mutex_unlock(&lock);
	errno = saved;
}

doca_error_t doca_log(uint32_t level, int source, const char *fname, int line, const char *func,
		      const char *format, ...)
{
	va_list args;

	if (!format || !GD_LOG_LEVEL_OK(level) || level == DOCA_LOG_LEVEL_DISABLE || source < 0)
		return DOCA_ERROR_INVALID_VALUE;
	if (level > __atomic_load_n(&shown[0], __ATOMIC_RELAXED))
		return DOCA_SUCCESS;
	va_start(args, format);
	put_line(false, level, fname, line, func, format, args);
	va_end(args);
	return DOCA_SUCCESS;
}

void gd_log_at(uint32_t level, const char *file, int line, const char *function, const char *format,
	       ...)
{
	va_list args;

	if (level > __atomic_load_n(&shown[1], __ATOMIC_RELAXED))
		return;
	va_start(args, format);
	put_line(true, level, file, line, function, format, args);
	va_end(args);
}

/* -- sources: one for each file of the program, registered before main() -- */

doca_error_t doca_log_register_source(const char *source_name, int *source)
{
	doca_error_t result = DOCA_ERROR_NO_MEMORY;
	char **more, *name;
	int i = 0;

	if (!source_name || !source)
		return DOCA_ERROR_INVALID_VALUE;
	name = strdup(source_name);
	if (!name)
		return DOCA_ERROR_NO_MEMORY;
	pthread_mutex_lock(&lock);
	while (i < n_sources && sources[i])
		i++;
	if (i == n_sources) {
		more = realloc(sources, ((size_t)i + 1) * sizeof(*sources));
		if (!more)
			goto out;
		sources = more;
		n_sources++;
	}
	sources[i] = name;
	name = NULL;
	*source = i;
	result = DOCA_SUCCESS;
out:
	pthread_mutex_unlock(&lock);
	free(name);
	return result;
}

doca_error_t doca_log_unregister_source(int source)
{
	doca_error_t result = DOCA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&lock);
	if (source >= 0 && source < n_sources && sources[source]) {
		free(sources[source]);
		sources[source] = NULL;
		result = DOCA_SUCCESS;
	}
	pthread_mutex_unlock(&lock);
	return result;
}

/* -- limits -- */

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Convert a level for the log of the core, which writes messages of the core and of plugins. */
static enum gn_log_level core_level(uint32_t level)
{
	if (level < DOCA_LOG_LEVEL_WARNING)
		return GN_LOG_ERROR;
	if (level < DOCA_LOG_LEVEL_INFO)
		return GN_LOG_WARN;
	if (level < DOCA_LOG_LEVEL_DEBUG)
		return GN_LOG_INFO;
	return level < DOCA_LOG_LEVEL_TRACE ? GN_LOG_DEBUG : GN_LOG_TRACE;
}

/* Lock held. Recompute the most verbose levels. */
static void refresh(void)
{
	uint32_t most[2] = {DOCA_LOG_LEVEL_DISABLE,
			    have_sdk ? DOCA_LOG_LEVEL_DISABLE : stderr_limit};

	for (struct doca_log_backend *b = backends; b; b = b->next) {
		uint32_t lower = b->sdk ? b->lower : least(b->lower, b->band_lower);

		if (lower > most[b->sdk])
			most[b->sdk] = lower;
	}
	__atomic_store_n(&shown[0], most[0], __ATOMIC_RELAXED);
	__atomic_store_n(&shown[1], most[1], __ATOMIC_RELAXED);
	gn_log_set_level(core_level(most[1]));
}

__attribute__((constructor)) static void first_refresh(void)
{
	pthread_mutex_lock(&lock);
	refresh();
	pthread_mutex_unlock(&lock);
}

enum limit { LOWER, UPPER, SDK };

/* Set a limit of one backend, or (backend NULL) of all backends that follow the global limit. */
static void set_limit(struct doca_log_backend *backend, enum limit which, uint32_t level)
{
	for (struct doca_log_backend *b = backend ? backend : backends; b;
	     b = backend ? NULL : b->next) {
		if (which == UPPER && !b->sdk && (backend || !b->upper_strict))
			b->upper = level;
		else if (which == LOWER && !b->sdk && (backend || !b->lower_strict))
			b->lower = level;
		else if (which == SDK && b->sdk)
			b->lower = level;
	}
	refresh();
}

static doca_error_t set_backend(struct doca_log_backend *backend, enum limit which, uint32_t level)
{
	if (!backend || backend->sdk != (which == SDK) || !GD_LOG_LEVEL_OK(level))
		return DOCA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	set_limit(backend, which, level);
	pthread_mutex_unlock(&lock);
	return DOCA_SUCCESS;
}

static doca_error_t set_global(uint32_t *limit, enum limit which, uint32_t level)
{
	if (!GD_LOG_LEVEL_OK(level))
		return DOCA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	*limit = level;
	if (which == SDK)
		stderr_limit = level;
	set_limit(NULL, which, level);
	pthread_mutex_unlock(&lock);
	return DOCA_SUCCESS;
}

static uint32_t get_global(const uint32_t *limit)
{
	uint32_t level;

	pthread_mutex_lock(&lock);
	level = *limit;
	pthread_mutex_unlock(&lock);
	return level;
}

static doca_error_t set_strict(struct doca_log_backend *backend, bool lower)
{
	if (!backend || backend->sdk)
		return DOCA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	*(lower ? &backend->lower_strict : &backend->upper_strict) = true;
	pthread_mutex_unlock(&lock);
	return DOCA_SUCCESS;
}

doca_error_t doca_log_backend_set_level_lower_limit(struct doca_log_backend *backend,
						    uint32_t level)
{
	return set_backend(backend, LOWER, level);
}

doca_error_t doca_log_backend_set_level_upper_limit(struct doca_log_backend *backend,
						    uint32_t level)
{
	return set_backend(backend, UPPER, level);
}

doca_error_t doca_log_backend_set_sdk_level(struct doca_log_backend *backend, uint32_t level)
{
	return set_backend(backend, SDK, level);
}

doca_error_t doca_log_backend_set_level_lower_limit_strict(struct doca_log_backend *backend)
{
	return set_strict(backend, true);
}

doca_error_t doca_log_backend_set_level_upper_limit_strict(struct doca_log_backend *backend)
{
	return set_strict(backend, false);
}

doca_error_t doca_log_level_set_global_lower_limit(uint32_t level)
{
	return set_global(&lower_limit, LOWER, level);
}

doca_error_t doca_log_level_set_global_upper_limit(uint32_t level)
{
	return set_global(&upper_limit, UPPER, level);
}

doca_error_t doca_log_level_set_global_sdk_limit(uint32_t level)
{
	return set_global(&sdk_limit, SDK, level);
}

uint32_t doca_log_level_get_global_lower_limit(void)
{
	return get_global(&lower_limit);
}

uint32_t doca_log_level_get_global_upper_limit(void)
{
	return get_global(&upper_limit);
}

uint32_t doca_log_level_get_global_sdk_limit(void)
{
	return get_global(&sdk_limit);
}

/* -- backends: they exist until the process ends -- */

/* Add a backend. It owns model->name. backend_p may be NULL. */
static doca_error_t add(const struct doca_log_backend *model, struct doca_log_backend **backend_p)
{
	struct doca_log_backend *b = malloc(sizeof(*b)), **end;

	if (!b) {
		free(model->name);
		return DOCA_ERROR_NO_MEMORY;
	}
	*b = *model;
	pthread_mutex_lock(&lock);
	b->lower = b->sdk ? sdk_limit : lower_limit;
	b->upper = upper_limit;
	for (end = &backends; *end; end = &(*end)->next)
		;
	*end = b;
	have_sdk |= b->sdk;
	refresh();
	pthread_mutex_unlock(&lock);
	if (backend_p)
		*backend_p = b;
	return DOCA_SUCCESS;
}

static doca_error_t add_file(bool sdk, FILE *file, uint32_t band_lower, uint32_t band_upper,
			     struct doca_log_backend **backend_p)
{
	const struct doca_log_backend model = {.sdk = sdk,
					       .write = write_file,
					       .file = file,
					       .band_lower = band_lower,
					       .band_upper = band_upper};

	return file ? add(&model, backend_p) : DOCA_ERROR_INVALID_VALUE;
}

static doca_error_t add_fd(bool sdk, int fd, struct doca_log_backend **backend_p)
{
	const struct doca_log_backend model = {
		.sdk = sdk, .write = write_fd, .fd = fd, .band_lower = DOCA_LOG_LEVEL_TRACE};

	return fd >= 0 && backend_p ? add(&model, backend_p) : DOCA_ERROR_INVALID_VALUE;
}

static doca_error_t add_buf(bool sdk, char *buf, size_t capacity, log_flush_callback flush,
			    struct doca_log_backend **backend_p)
{
	const struct doca_log_backend model = {.sdk = sdk,
					       .write = write_buf,
					       .buf = buf,
					       .capacity = capacity,
					       .flush = flush,
					       .band_lower = DOCA_LOG_LEVEL_TRACE};

	return buf && capacity && flush && backend_p ? add(&model, backend_p)
						     : DOCA_ERROR_INVALID_VALUE;
}

static doca_error_t add_syslog(bool sdk, const char *name, struct doca_log_backend **backend_p)
{
	struct doca_log_backend model = {
		.sdk = sdk, .write = write_syslog, .band_lower = DOCA_LOG_LEVEL_TRACE};

	if (!name || !backend_p)
		return DOCA_ERROR_INVALID_VALUE;
	model.name = strdup(name);
	return model.name ? add(&model, backend_p) : DOCA_ERROR_NO_MEMORY;
}

doca_error_t doca_log_backend_create_with_file(FILE *fptr, struct doca_log_backend **backend)
{
	return backend ? add_file(false, fptr, DOCA_LOG_LEVEL_TRACE, 0, backend)
		       : DOCA_ERROR_INVALID_VALUE;
}

doca_error_t doca_log_backend_create_with_file_sdk(FILE *fptr, struct doca_log_backend **backend)
{
	return backend ? add_file(true, fptr, DOCA_LOG_LEVEL_TRACE, 0, backend)
		       : DOCA_ERROR_INVALID_VALUE;
}

doca_error_t doca_log_backend_create_with_fd(int fd, struct doca_log_backend **backend)
{
	return add_fd(false, fd, backend);
}

doca_error_t doca_log_backend_create_with_fd_sdk(int fd, struct doca_log_backend **backend)
{
	return add_fd(true, fd, backend);
}

doca_error_t doca_log_backend_create_with_buf(char *buf, size_t capacity,
					      log_flush_callback handler,
					      struct doca_log_backend **backend)
{
	return add_buf(false, buf, capacity, handler, backend);
}

doca_error_t doca_log_backend_create_with_buf_sdk(char *buf, size_t capacity,
						  log_flush_callback handler,
						  struct doca_log_backend **backend)
{
	return add_buf(true, buf, capacity, handler, backend);
}

doca_error_t doca_log_backend_create_with_syslog(const char *name,
						 struct doca_log_backend **backend)
{
	return add_syslog(false, name, backend);
}

doca_error_t doca_log_backend_create_with_syslog_sdk(const char *name,
						     struct doca_log_backend **backend)
{
	return add_syslog(true, name, backend);
}

doca_error_t doca_log_backend_create_standard(void)
{
	doca_error_t result = DOCA_SUCCESS;

	pthread_mutex_lock(&lock);
	if (n_standard == 0)
		result = add_file(false, stdout, DOCA_LOG_LEVEL_TRACE, DOCA_LOG_LEVEL_INFO, NULL);
	if (n_standard == 0 && result == DOCA_SUCCESS)
		n_standard = 1;
	if (n_standard == 1)
		result = add_file(false, stderr, DOCA_LOG_LEVEL_WARNING, 0, NULL);
	if (n_standard == 1 && result == DOCA_SUCCESS)
		n_standard = 2;
	pthread_mutex_unlock(&lock);
	return result;
}
