/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plugin.h - the plugin ABI: what a shared object must export, and what the host gives it.
 *
 * A plugin exports one constant, `gantry_plugin`, written with GANTRY_PLUGIN(). Nothing else
 * happens at load: no ELF constructor, no global state; all state hangs from the instance pointers
 * that `open` returns. The host reads the constant before any code of the plugin runs, so that
 * `gantry plugins` can list a plugin that would not work here.
 *
 * Compatibility: the major number must be equal; the minor number may differ. Structs that carry
 * their size, or come with one (ops_size), grow at their end; the host fills what a plugin does not
 * know, or leaves out, with stubs. All others, the tables of events that one side gives the other
 * among them, stay as they are within a major number; a plugin of another one is refused, with both
 * numbers. Each addition, of a slot, a flag or a constant, raises the minor number, once for all
 * that come with one release. Who does not know a flag ignores it.
 *
 * ABI history
 *   1.0  first version
 *   1.1  queues: GANTRY_QUEUE_PROMPT
 *        backends: expect, quiesce
 *        roles: expect, GANTRY_EPOCH_MAX, GANTRY_SECRET_BYTES
 *        transports: GANTRY_CAP_WRITE_IMM, rma_write_imm, send_prefetch, export_limit, import_error,
 *          max_connections, refusal, GANTRY_TRANSPORT_UIDS, GANTRY_IMPORT_MAP,
 *          GANTRY_IMPORT_KEEPS_PAGES
 *        hosts: open_file
 *        hosts of roles: client_export_limit, client_expect, client_late_writes, region_withdraw,
 *          client_use_secret, client_secret, session_secret
 *        volumes: uuid, verifier
 *        options: GANTRY_PATH_KEEP, GANTRY_PATH_REPLACE, GANTRY_PATH_VOLUME, GANTRY_PATH_DIRECTORY
 *        plugins: look
 *        memfds: gantry_memfd_populate, gantry_memfd_check_pages, and an export whose pages are not
 *          all allocated fails
 *        all: statuses STALE and BUSY, gantry_status_of_errno; branch.h
 */
#ifndef GANTRY_PLUGIN_H
#define GANTRY_PLUGIN_H

#include <gantry/count.h>
#include <gantry/io.h>
#include <gantry/option.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GANTRY_PLUGIN_MAGIC 0x59525447u /* "GTRY" */
#define GANTRY_ABI_MAJOR 1
#define GANTRY_ABI_MINOR 1

enum gantry_kind {
	GANTRY_KIND_TRANSPORT = 1, /* ops: struct gantry_transport_ops */
	GANTRY_KIND_ROLE = 2,      /* ops: struct gantry_role_ops */
	GANTRY_KIND_BACKEND = 3,   /* ops: struct gantry_backend_ops */
	GANTRY_KIND_STAGE = 4      /* ops: struct gantry_stage_ops */
};

struct gantry_plugin {
	uint32_t magic; /* GANTRY_PLUGIN_MAGIC */
	uint16_t abi_major, abi_minor;
	uint32_t struct_size; /* sizeof(struct gantry_plugin) where the plugin was compiled */
	uint32_t kind;        /* enum gantry_kind */
	const char *name; /* as configurations write it; also the name of the file without ".so" */
	const char *version;
	const char *summary;                 /* one line */
	const struct gantry_option *options; /* NULL: none */
	uint32_t conf_size; /* bytes of the struct that the options fill; 0 without options */
	uint32_t ops_size;  /* sizeof(*ops) where the plugin was compiled */
	const void *ops;    /* by kind */
	/*
	 * Look at a filled conf struct as a whole, before anything is opened; add a fault for each
	 * mistake. `open` is not called with a conf that has one. No side effects, no look at the
	 * machine. NULL: the rows say it all.
	 */
	void (*check)(const void *conf, const struct gantry_option_faults *faults);
	/*
	 * Compare a conf that `check` accepted with this machine. `gantry check` calls it.
	 *
	 * faults   receives each reason for which `open` would fail, and what to do instead
	 * thread   control thread; must not change, lock or wait for anything, and must not open a
	 *          device
	 * since    1.1. NULL: the host compares only paths, by their GANTRY_PATH_*
	 */
	void (*look)(const void *conf, const struct gantry_option_faults *faults);
};

#if defined __GNUC__
#define GANTRY_EXPORT __attribute__((visibility("default")))
#else
#define GANTRY_EXPORT
#endif

#ifdef __cplusplus
#define GANTRY_LINKAGE extern "C"
#else
#define GANTRY_LINKAGE extern
#endif

/*
 * The prefix that libltdl looks for lets the same source be loaded or linked in: `ident` is the
 * name, '-' as '_'.
 */
#define GANTRY_PLUGIN(ident) \
	GANTRY_LINKAGE GANTRY_EXPORT const struct gantry_plugin ident##_LTX_gantry_plugin; \
	const struct gantry_plugin ident##_LTX_gantry_plugin

/* The first fields of every plugin, in order. */
#define GANTRY_PLUGIN_HEAD \
	GANTRY_PLUGIN_MAGIC, GANTRY_ABI_MAJOR, GANTRY_ABI_MINOR, sizeof(struct gantry_plugin)

enum gantry_log_level { GANTRY_LOG_ERROR, GANTRY_LOG_WARN, GANTRY_LOG_INFO, GANTRY_LOG_DEBUG };

/*
 * `gantry check`: look whether what `open` makes could be made, and make nothing: no file, no
 * directory, no link.
 */
#define GANTRY_HOST_DRY_RUN 0x1u

/*
 * What the host gives to an instance; valid until the instance is closed. Every function may be
 * called from any thread unless it says otherwise.
 */
struct gantry_host {
	uint32_t struct_size;
	uint32_t flags;   /* GANTRY_HOST_* */
	const char *name; /* of the instance, for messages: "roles.bridge", "devices.dpu0" */
	void *core;       /* the host's own */

	/*
	 * Write one line to the log; of warnings at most ten a second. Not for the IO path: count
	 * there instead.
	 */
	void (*log)(const struct gantry_host *host, int level, const char *fmt, ...)
#ifdef __GNUC__
		__attribute__((format(printf, 3, 4)))
#endif
		;
	/* Monotonic time in nanoseconds; turned by hand in tests. */
	uint64_t (*now_ns)(const struct gantry_host *host);
	/*
	 * A counter of this instance, shown by `gantry stat` and in reports. The cell belongs to
	 * the host, starts at 0 and has one writer (see gantry_count). Control thread; NULL when
	 * out of memory.
	 */
	uint64_t *(*counter)(const struct gantry_host *host, const char *name);
	/*
	 * Open a file that the plugin writes, at a path that the user has given.
	 *
	 * path   as the user has written it
	 * flags  as for open(2); O_CLOEXEC is added. O_CREAT makes a file with mode 0600, less the
	 *        umask. With O_PATH the host only checks the path
	 *
	 * In a directory that all users may write, such as /tmp, the host follows a link and opens
	 * a file only if they belong to this user, to root or to the owner of the directory.
	 *
	 * Returns a descriptor, which the caller closes, or:
	 *   -EPERM   the host rejects a link or a file of another user, and has logged it as an
	 *            error
	 *   -errno   of open(2)
	 * Thread: control. Since 1.1.
	 */
	int (*open_file)(const struct gantry_host *host, const char *path, int flags);
};

#define gantry_log_error(host, ...) (host)->log(host, GANTRY_LOG_ERROR, __VA_ARGS__)
#define gantry_log_warn(host, ...) (host)->log(host, GANTRY_LOG_WARN, __VA_ARGS__)
#define gantry_log_info(host, ...) (host)->log(host, GANTRY_LOG_INFO, __VA_ARGS__)
#define gantry_log_debug(host, ...) (host)->log(host, GANTRY_LOG_DEBUG, __VA_ARGS__)

/*
 * A lane: one thread's share of one role. Everything that belongs to a lane is used by its thread
 * only.
 */
struct gantry_lane {
	uint32_t index;   /* 0 .. n_lanes - 1 */
	uint32_t n_lanes; /* of the role */
	/* time at the start of this turn of the loop: cheap, good to a few microseconds */
	uint64_t now_ns;
	const struct gantry_host *host;
	void *core;
};

/*
 * Something that a lane polls. Only `poll` and `self` must be set.
 *
 * A lane that finds no work for a while prepares to sleep: it calls `arm` of every poller; if one
 * returns non-zero (work came meanwhile) all are disarmed and polling goes on; else the lane sleeps
 * until an fd becomes readable or the earliest `wake_ns` has come, then polls, and calls `disarm`
 * of every poller. Whether the fd was readable before `arm` does not matter.
 */
struct gantry_poller {
	int (*poll)(void *self); /* returns how many things it did; may not block */
	/* from now on make the fd readable when work comes; non-zero: work is there */
	int (*arm)(void *self);
	void (*disarm)(void *self);      /* awake again: signals are no longer needed */
	uint64_t (*wake_ns)(void *self); /* absolute time of the next timer, 0: none */
	int (*fd)(void *self);           /* readable when there is work; -1: none */
	void *self;
};

/*
 * Writer of reports: a tree of named values, shown as text or as JSON. Keys are literals in
 * snake_case and carry the unit as their ending: _ns, _bytes, _ops. Inside an array the key is
 * NULL.
 */
struct gantry_writer {
	void *core;
	void (*object)(struct gantry_writer *w, const char *key);
	void (*array)(struct gantry_writer *w, const char *key);
	void (*end)(struct gantry_writer *w);
	void (*u64)(struct gantry_writer *w, const char *key, uint64_t value);
	void (*real)(struct gantry_writer *w, const char *key, double value);
	void (*string)(struct gantry_writer *w, const char *key, const char *value);
	void (*boolean)(struct gantry_writer *w, const char *key, int value);
};

#ifdef __cplusplus
}
#endif

#endif
