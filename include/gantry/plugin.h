/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plugin.h - the plugin ABI: what a shared object must export, and the services of the host.
 *
 * A plugin exports one constant, `gantry_plugin`, defined with GANTRY_PLUGIN(). It has no ELF
 * constructor and no global state: all state belongs to the instances that `open` returns. The host
 * reads the constant before it runs any code of the plugin. So `gantry plugins` can list a plugin
 * that cannot run on this machine.
 *
 * API version. The source of a plugin states the version of this interface that it was written for,
 * before the include:
 *
 *      #define GANTRY_API_VERSION 1
 *      #include <gantry/stage.h>
 *
 * A later header with another meaning of a function keeps the meaning of that version for the
 * plugin, or does not compile.
 *
 * ABI version. While the major number is 0, host and plugin must have the same major and minor
 * number: rebuild plugins with each release. From 1.0 on, only the major numbers must be equal. The
 * host rejects other plugins, and logs both numbers. doc/decisions/0015-abi-1.0.md lists what 1.0
 * freezes. A struct with a size (struct_size, ops_size) can grow at its end within a major number;
 * all other structs stay unchanged. The host fills missing and empty slots with stubs. Each release
 * that adds a slot, flag or constant raises the minor number by one. An implementation ignores
 * flags that it does not know. What has no `since` is in 0.1, the first version.
 */
#ifndef GANTRY_PLUGIN_H
#define GANTRY_PLUGIN_H

#include <gantry/check.h>
#include <gantry/count.h>
#include <gantry/io.h>
#include <gantry/option.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GANTRY_API_NEWEST 1
#if defined GANTRY_API_VERSION && (GANTRY_API_VERSION < 1 || GANTRY_API_VERSION > GANTRY_API_NEWEST)
#error "GANTRY_API_VERSION must be 1 to GANTRY_API_NEWEST"
#endif

#define GANTRY_PLUGIN_MAGIC 0x59525447u /* "GTRY" */
#define GANTRY_ABI_MAJOR 0
#define GANTRY_ABI_MINOR 1

enum gantry_kind {
	GANTRY_KIND_TRANSPORT = 1, /* ops: struct gantry_transport_ops */
	GANTRY_KIND_ROLE = 2,      /* ops: struct gantry_role_ops */
	GANTRY_KIND_BACKEND = 3,   /* ops: struct gantry_backend_ops */
	GANTRY_KIND_STAGE = 4,     /* ops: struct gantry_stage_ops */
	GANTRY_KIND_OBSERVER = 5   /* ops: struct gantry_observer_ops */
};

/*
 * What a plugin exports.
 *
 * conf    the options, as the option table describes them
 * ownership  arguments are valid during the call, unless stated otherwise
 */
struct gantry_plugin {
	uint32_t magic; /* GANTRY_PLUGIN_MAGIC */
	uint16_t abi_major, abi_minor;
	uint32_t struct_size; /* sizeof(struct gantry_plugin) where the plugin was compiled */
	uint16_t api_version; /* GANTRY_API_VERSION of the source of the plugin */
	uint16_t kind;        /* enum gantry_kind */
	const char *name;     /* name in configurations; also the file name without ".so" */
	const char *version;
	const char *summary;                 /* one line */
	const struct gantry_option *options; /* NULL: none */
	uint32_t conf_size; /* bytes of the struct that the options fill; 0 without options */
	uint32_t ops_size;  /* sizeof(*ops) where the plugin was compiled */
	const void *ops;    /* functions; the type depends on `kind` */
	/*
	 * Report faults of a complete conf struct, and properties of the instance.
	 *
	 * The host calls it for each instance of a configuration, and does not call `open` if there
	 * are faults. `gantry check` calls it again with GANTRY_CHECK_MACHINE: before it opens a
	 * device or a stage, instead of opening a backend or an observer, and after it has opened a
	 * role.
	 *
	 * check    receives each fault, and the properties of this kind of plugin
	 * thread   control thread; no side effects. Without GANTRY_CHECK_MACHINE it must not
	 *          inspect the system
	 * NULL     the option table is sufficient
	 */
	void (*check)(const void *conf, struct gantry_check *check);
	/*
	 * Use new values of the options that are marked GANTRY_OPT_CHANGEABLE. The values are
	 * valid by the option table and by `check`. All other options are as `open` received them.
	 *
	 * instance  what `open` stored
	 * conf      all options; valid during the call, with its strings
	 * thread    control thread, while the lanes run
	 * NULL      the options cannot change while the instance runs
	 */
	void (*change)(void *instance, const void *conf);
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
 * Defines the constant `gantry_plugin` of a plugin. `ident` is the name with '_' instead of '-'.
 * libltdl finds the symbol by this prefix both in a shared object and in a statically linked
 * plugin.
 */
#define GANTRY_PLUGIN(ident) \
	GANTRY_LINKAGE GANTRY_EXPORT const struct gantry_plugin ident##_LTX_gantry_plugin; \
	const struct gantry_plugin ident##_LTX_gantry_plugin

/* The first fields of struct gantry_plugin, in order. The source must define GANTRY_API_VERSION. */
#define GANTRY_PLUGIN_HEAD \
	GANTRY_PLUGIN_MAGIC, GANTRY_ABI_MAJOR, GANTRY_ABI_MINOR, sizeof(struct gantry_plugin), \
		GANTRY_API_VERSION

enum gantry_log_level { GANTRY_LOG_ERROR, GANTRY_LOG_WARN, GANTRY_LOG_INFO, GANTRY_LOG_DEBUG };

struct gantry_records_ops; /* records.h */

/*
 * Services of the host for an instance; valid until the instance is closed. Any thread can call a
 * function unless its comment restricts that.
 *
 * host    this struct
 * thread  any thread
 * ownership  arguments are valid during the call, unless stated otherwise
 */
struct gantry_host {
	uint32_t struct_size;
	const char *name; /* name of the instance, for messages: "roles.bridge", "devices.dpu0" */
	void *core;       /* private to the host */

	/*
	 * Write one line to the log. The host limits warnings of an instance to 10 per second. Not
	 * for the IO path: use a counter there.
	 *
	 * level      enum gantry_log_level
	 * fmt        text and arguments as for printf(3), without a line feed at the end
	 */
	void (*log)(const struct gantry_host *host, int level, const char *fmt, ...)
#ifdef __GNUC__
		__attribute__((format(printf, 3, 4)))
#endif
		;
	/* Get the monotonic time. Tests can control this clock. Returns nanoseconds. */
	uint64_t (*now_ns)(const struct gantry_host *host);
	/*
	 * Create a counter of this instance, which `gantry stat` and reports show. It starts at 0
	 * and has one writer (see gantry_count).
	 *
	 * name       snake_case, with a suffix that names the unit: _ns, _bytes, _ops. Reports add
	 *            the counters of one instance that have the same name
	 * returns    the counter
	 *            NULL: out of memory
	 * thread     control thread
	 * ownership  the counter belongs to the host; it is valid until the instance is closed
	 */
	uint64_t *(*counter)(const struct gantry_host *host, const char *name);
	/*
	 * Open a file that the plugin writes, at a path from the user.
	 *
	 * In a directory that all users can write to, such as /tmp, the host follows a link or
	 * opens a file only if that link or file belongs to this user, to root or to the owner of
	 * the directory.
	 *
	 * path     as the user has written it
	 * flags    as for open(2); O_CLOEXEC is added. O_CREAT creates a file with mode 0600, less
	 *          the umask. With O_PATH the host only checks the path
	 * returns  a descriptor, which the caller closes
	 *          -EPERM: the host rejects a link or a file of another user, and has logged an
	 *          error
	 *          another -errno of open(2)
	 * thread   control thread
	 * ownership  the caller closes the descriptor
	 */
	int (*open_file)(const struct gantry_host *host, const char *path, int flags);
	/*
	 * Compute the CRC32C (Castagnoli), as in iSCSI and NVMe.
	 *
	 * crc      0, or the result for the preceding bytes, to process a buffer in pieces
	 * data     n bytes
	 * n        bytes
	 * returns  the CRC
	 */
	uint32_t (*crc32c)(uint32_t crc, const void *data, size_t n);
	/* filter of control messages for a network transport (records.h); NULL: none */
	const struct gantry_records_ops *records;
};

/* `log` of the host, one for each level. */
#define gantry_log_error(host, ...) (host)->log(host, GANTRY_LOG_ERROR, __VA_ARGS__)
#define gantry_log_warn(host, ...) (host)->log(host, GANTRY_LOG_WARN, __VA_ARGS__)
#define gantry_log_info(host, ...) (host)->log(host, GANTRY_LOG_INFO, __VA_ARGS__)
#define gantry_log_debug(host, ...) (host)->log(host, GANTRY_LOG_DEBUG, __VA_ARGS__)

/*
 * A lane: the share of one role that one thread runs. Only that thread uses the objects of the
 * lane.
 */
struct gantry_lane {
	uint32_t index;   /* 0 .. n_lanes - 1 */
	uint32_t n_lanes; /* number of lanes of the role */
	/*
	 * time at the start of this turn of the worker: cheap to read, accurate to a few
	 * microseconds
	 */
	uint64_t now_ns;
	const struct gantry_host *host;
	void *core;
};

/*
 * An object that a lane polls. Only `poll` and `self` are mandatory.
 *
 * A lane that finds no work for a while prepares to sleep: it calls `arm` of every poller. If one
 * of them returns non-zero, work has arrived since the last poll: the lane disarms all pollers and
 * continues to poll. Otherwise the lane sleeps until an fd becomes readable or the earliest
 * `wake_ns` is reached. Then it polls, and calls `disarm` of every poller. A poller need not make
 * its fd readable while it is disarmed.
 *
 * self    the member `self`
 * thread  lane's thread; must not block
 * ownership  the owner of the poller owns self
 */
struct gantry_poller {
	/* Handle the work that there is. Returns the number of events it handled. */
	int (*poll)(void *self);
	/*
	 * From now on, make the fd readable when work arrives. Returns non-zero if there is work
	 * already. NULL: as if the function returned 0.
	 */
	int (*arm)(void *self);
	/* The lane is awake: the fd need not be signalled any more. NULL: nothing. */
	void (*disarm)(void *self);
	/* Get the absolute time of the next timer. Returns nanoseconds; 0: none. NULL: 0. */
	uint64_t (*wake_ns)(void *self);
	/* Get an fd that is readable when there is work. Returns the fd; -1: none. NULL: -1. */
	int (*fd)(void *self);
	void *self;
};

/*
 * Writer of reports: a tree of named values, printed as text or JSON. Keys are literals in
 * snake_case whose suffix names the unit: _ns, _bytes, _ops. Inside an array the key is NULL.
 *
 * w          the writer
 * key        name of the value; NULL inside an array
 * value      the value
 * thread     control thread, during the call that got the writer
 * ownership  the writer copies keys and texts
 */
struct gantry_writer {
	void *core;
	/* Open an object: the next values are its members, until `end`. */
	void (*object)(struct gantry_writer *w, const char *key);
	/* Open an array: the next values are its elements, until `end`. */
	void (*array)(struct gantry_writer *w, const char *key);
	/* Close the object or array that was opened last. */
	void (*end)(struct gantry_writer *w);
	/* Write an integer. */
	void (*u64)(struct gantry_writer *w, const char *key, uint64_t value);
	/* Write a number. */
	void (*real)(struct gantry_writer *w, const char *key, double value);
	/* Write a text. */
	void (*string)(struct gantry_writer *w, const char *key, const char *value);
	/* Write true, if value is not 0, or false. */
	void (*boolean)(struct gantry_writer *w, const char *key, int value);
};

#ifdef __cplusplus
}
#endif

#endif
