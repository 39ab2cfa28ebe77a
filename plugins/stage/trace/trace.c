/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace.c - a stage that writes each descriptor, on the way down and back, to a file (format:
 * <gantry/trace.h>). It does not write the data.
 *
 * In a configuration: stages = ( { type = "trace"; path = "/var/tmp/load.trace"; } );
 *
 * Each lane collects records in its own buffer. It writes the buffer to the file when the buffer is
 * full, when its oldest record is older than `flush`, when the host drains the stage, and at stop.
 * If a write fails or the file reaches `limit`, the trace ends; IO continues.
 */
#define GANTRY_API_VERSION 1

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <gantry/stage.h>
#include <gantry/trace.h>

#define RECORDS (65536 / sizeof(struct gantry_trace_record)) /* records in one buffer */
#define CLOCK_READINGS 10                                    /* some of them are interrupted */

struct trace_conf {
	const char *path;
	uint64_t limit;
	uint64_t flush_ns;
	uint8_t enabled;
};

struct trace {
	const struct gantry_host *host;
	const struct trace_conf *conf;
	int fd;
	uint64_t start_ns;
	uint8_t enabled; /* lanes record; __atomic */
	/* protects the file, n_bytes and ended */
	pthread_mutex_t lock;
	uint64_t n_bytes; /* bytes in the file */
	int ended;
	uint32_t n_lanes;
	struct trace_lane **lanes;
};

struct trace_lane {
	struct trace *trace;
	struct gantry_lane *lane;
	/* n_records: written to the file; n_lost: dropped after the trace has ended */
	uint64_t n_records, n_lost;
	uint64_t oldest_ns; /* time of the first record in the buffer */
	uint32_t n;         /* records in the buffer; __atomic for the report */
	struct gantry_trace_record records[RECORDS];
} __attribute__((aligned(GANTRY_CACHE_LINE)));

static const struct gantry_option options[] = {
	{"path", GANTRY_OPT_STRING, offsetof(struct trace_conf, path), NULL, GANTRY_PATH_REPLACE, 0,
	 NULL, NULL, "File to write; an existing file is replaced."},
	{"limit", GANTRY_OPT_SIZE, offsetof(struct trace_conf, limit), "1GiB", 4096, INT64_MAX,
	 NULL, NULL, "Size at which the trace ends."},
	{"flush", GANTRY_OPT_TIME, offsetof(struct trace_conf, flush_ns), "1s", 1000000,
	 3600000000000, NULL, NULL, "Longest time that a record waits in memory."},
	{"enabled", GANTRY_OPT_BOOL | GANTRY_OPT_CHANGEABLE, offsetof(struct trace_conf, enabled),
	 "true", 0, 0, NULL, NULL, "Write records; false: pass descriptors on without a record."},
	GANTRY_OPTION_END,
};

/* Write all bytes. Returns 0 or -errno. *done_p: bytes written, also on failure. */
static int write_all(int fd, const void *data, size_t n, size_t *done_p)
{
	const char *at = data;

	*done_p = 0;

	while (n) {
		ssize_t rc = write(fd, at, n);

		if (rc < 0 && errno == EINTR)
			continue;
		if (rc <= 0)
			return rc ? -errno : -EIO;
		at += rc;
		n -= (size_t)rc;
		*done_p += (size_t)rc;
	}
	return 0;
}

/*
 * Set the start, and return its time of day. Traces of several processes are compared by these two
 * times, so both clocks have to be read at one time: use the reading that took least.
 */
static uint64_t start_clock(struct trace *trace)
{
	const struct gantry_host *host = trace->host;
	uint64_t unix_ns = 0, least = UINT64_MAX;

	for (unsigned i = 0; i < CLOCK_READINGS; i++) {
		const uint64_t before = host->now_ns(host);
		struct timespec now;
		uint64_t took;

		clock_gettime(CLOCK_REALTIME, &now);
		took = host->now_ns(host) - before;
		if (took >= least)
			continue;
		least = took;
		trace->start_ns = before + took / 2;
		unix_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	}
	return unix_ns;
}

static int write_head(struct trace *trace)
{
	struct gantry_trace_head head = {
		.magic = {'G', 'T', 'R', 'Y', 'T', 'R', 'C', '1'},
		.version = GANTRY_TRACE_VERSION,
		.head_bytes = sizeof head,
		.record_bytes = sizeof(struct gantry_trace_record),
		.start_unix_ns = start_clock(trace),
	};
	size_t done;

	snprintf(head.instance, sizeof head.instance, "%s", trace->host->name);
	trace->n_bytes = sizeof head;
	return write_all(trace->fd, &head, sizeof head, &done);
}

/* `gantry check` must not open a trace, which would replace its file. The host checks the path. */
static void trace_check(const void *conf, struct gantry_check *check)
{
	(void)conf;
	check->status = -EAGAIN;
}

/* Open the file and write its header. */
static int open_file(struct trace *trace)
{
	/* O_NONBLOCK: a FIFO without a reader fails with ENXIO instead of blocking */
	const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_NOCTTY | O_NONBLOCK;
	int rc;

	trace->fd = trace->host->open_file(trace->host, trace->conf->path, flags);
	if (trace->fd < 0)
		return trace->fd;
	rc = fcntl(trace->fd, F_SETFL, O_APPEND) ? -errno : write_head(trace);
	if (rc)
		close(trace->fd);
	return rc;
}

static int trace_open(const struct gantry_host *host, const void *arg, void **stage_p)
{
	struct trace *trace = calloc(1, sizeof *trace);
	int rc;

	if (!trace)
		return -ENOMEM;
	pthread_mutex_init(&trace->lock, NULL);
	trace->host = host;
	trace->conf = arg;
	trace->enabled = trace->conf->enabled;
	rc = open_file(trace);
	if (rc) {
		gantry_log_error(host, "%s: cannot write a trace: %s", trace->conf->path,
				 rc == -ENXIO ? "this FIFO or socket has no reader"
					      : strerror(-rc));
		free(trace);
		return rc;
	}
	*stage_p = trace;
	return 0;
}

static int trace_start(void *stage, struct gantry_lane *lane, void **self_p)
{
	struct trace *trace = stage;
	struct trace_lane *self;

	if (!trace->lanes) {
		trace->lanes = calloc(lane->n_lanes, sizeof *trace->lanes);
		if (!trace->lanes)
			return -ENOMEM;
		trace->n_lanes = lane->n_lanes;
	}
	self = trace->lanes[lane->index];
	if (!self) {
		/* clears the buffer, so that the IO path takes no page fault */
		self = gantry_zalloc_lines(sizeof *self);
		if (!self)
			return -ENOMEM;
		self->trace = trace;
		__atomic_store_n(&trace->lanes[lane->index], self, __ATOMIC_RELEASE);
	}
	self->lane = lane;
	*self_p = self;
	return 0;
}

static void end_trace(struct trace *trace, const char *why)
{
	trace->ended = 1;
	gantry_log_warn(trace->host, "%s: trace ends: %s", trace->conf->path, why);
}

/*
 * Write records, unless the trace has ended or reaches its limit. Returns the number of whole
 * records added to the file.
 */
static uint32_t append(struct trace *trace, const struct gantry_trace_record *records, uint32_t n)
{
	size_t done = 0;
	int rc;

	if (trace->ended)
		return 0;
	if (trace->n_bytes + n * sizeof *records > trace->conf->limit) {
		end_trace(trace, "it has reached its limit");
		return 0;
	}
	rc = write_all(trace->fd, records, n * sizeof *records, &done);
	done -= done % sizeof *records;
	trace->n_bytes += done;
	if (rc) {
		end_trace(trace, strerror(-rc));
		/* a FIFO cannot be truncated: its reader gets the partial record */
		(void)!ftruncate(trace->fd, (off_t)trace->n_bytes);
	}
	return (uint32_t)(done / sizeof *records);
}

static void flush(struct trace_lane *lane)
{
	struct trace *trace = lane->trace;
	uint32_t n;

	if (!lane->n)
		return;
	pthread_mutex_lock(&trace->lock);
	n = append(trace, lane->records, lane->n);
	pthread_mutex_unlock(&trace->lock);
	gantry_count(&lane->n_records, n);
	gantry_count(&lane->n_lost, lane->n - n);
	__atomic_store_n(&lane->n, 0, __ATOMIC_RELAXED);
}

static void put(struct trace_lane *lane, uint64_t now_ns, const void *wire, unsigned direction)
{
	struct gantry_trace_record *record = &lane->records[lane->n];

	if (lane->n == 0)
		lane->oldest_ns = now_ns;
	*record = (struct gantry_trace_record){
		.time_ns = now_ns - lane->trace->start_ns,
		.direction = (uint8_t)direction,
		.lane = (uint16_t)lane->lane->index,
	};
	memcpy(record->wire, wire, sizeof record->wire);
	__atomic_store_n(&lane->n, lane->n + 1, __ATOMIC_RELAXED);
	if (lane->n == RECORDS)
		flush(lane);
}

static bool is_enabled(const struct trace_lane *lane)
{
	return __atomic_load_n(&lane->trace->enabled, __ATOMIC_RELAXED);
}

static int trace_submit(void *self, struct gantry_io *io)
{
	struct trace_lane *lane = self;
	const struct gantry_host *host = lane->trace->host;
	uint8_t wire[GANTRY_IO_WIRE_BYTES];
	uint64_t now_ns;
	int rc;

	if (!is_enabled(lane))
		return gantry_submit(io);
	now_ns = host->now_ns(host);

	/*
	 * Copy the descriptor first: if the chain accepts it, it can be changed or completed before
	 * gantry_submit() returns. A rejected descriptor is submitted again, so it is not recorded.
	 */
	memcpy(wire, io, sizeof wire);
	rc = gantry_submit(io);
	if (rc == 0)
		put(lane, now_ns, wire, GANTRY_TRACE_SUBMIT);
	return rc;
}

static void trace_complete(void *self, struct gantry_io *io)
{
	struct trace_lane *lane = self;
	const struct gantry_host *host = lane->trace->host;

	if (is_enabled(lane))
		put(lane, host->now_ns(host), io, GANTRY_TRACE_COMPLETE);
	gantry_complete(io);
}

static uint64_t trace_wake_ns(void *self)
{
	struct trace_lane *lane = self;

	return lane->n ? lane->oldest_ns + lane->trace->conf->flush_ns : 0;
}

static int trace_poll(void *self)
{
	struct trace_lane *lane = self;

	if (lane->n && lane->lane->now_ns >= trace_wake_ns(lane))
		flush(lane);
	return 0;
}

/*
 * The stage holds no descriptors. The host calls the last drain, without an owner, before the final
 * report.
 */
static void trace_drain(void *self, const void *owner)
{
	if (!owner)
		flush(self);
}

static void trace_stop(void *self)
{
	flush(self);
}

static void trace_report(void *stage, struct gantry_writer *w)
{
	struct trace *trace = stage;
	uint64_t n_records = 0, n_lost = 0, n_buffered = 0;

	for (uint32_t i = 0; i < trace->n_lanes; i++) {
		const struct trace_lane *lane = __atomic_load_n(&trace->lanes[i], __ATOMIC_ACQUIRE);

		if (!lane)
			continue;
		n_buffered += __atomic_load_n(&lane->n, __ATOMIC_RELAXED);
		n_records += __atomic_load_n(&lane->n_records, __ATOMIC_RELAXED);
		n_lost += __atomic_load_n(&lane->n_lost, __ATOMIC_RELAXED);
	}
	w->string(w, "path", trace->conf->path);
	w->boolean(w, "enabled", trace->enabled);
	w->u64(w, "written_records", n_records);
	w->u64(w, "buffered_records", n_buffered);
	w->u64(w, "lost_records", n_lost);
}

static void trace_close(void *stage)
{
	struct trace *trace = stage;

	if (close(trace->fd))
		gantry_log_warn(trace->host, "%s: %s", trace->conf->path, strerror(errno));
	for (uint32_t i = 0; i < trace->n_lanes; i++)
		free(trace->lanes[i]);
	free(trace->lanes);
	pthread_mutex_destroy(&trace->lock);
	free(trace);
}

static void trace_change(void *stage, const void *arg)
{
	struct trace *trace = stage;
	const struct trace_conf *conf = arg;

	__atomic_store_n(&trace->enabled, conf->enabled, __ATOMIC_RELAXED);
}

static const struct gantry_stage_ops ops = {
	.open = trace_open,
	.start = trace_start,
	.submit = trace_submit,
	.complete = trace_complete,
	.poll = trace_poll,
	.wake_ns = trace_wake_ns,
	.drain = trace_drain,
	.stop = trace_stop,
	.report = trace_report,
	.close = trace_close,
};

GANTRY_PLUGIN(trace) = {
	GANTRY_PLUGIN_HEAD,
	.kind = GANTRY_KIND_STAGE,
	.name = "trace",
	.version = "1",
	.summary = "writes each descriptor to a file, for inspection or replay",
	.options = options,
	.conf_size = sizeof(struct trace_conf),
	.ops_size = sizeof ops,
	.ops = &ops,
	.check = trace_check,
	.change = trace_change,
};
