/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file.h - internal interface of the file backend, which keeps a volume in a regular file or a
 * block device.
 *
 *     file_look.c        checks a configuration without opening the path, for gantry check
 *     file_open.c        opens and locks the path, determines its size, and tests direct IO
 *     file_below.c       locks the backing files of loop devices; detects loop devices on a file
 *     file_identity.c    determines the UUID of the volume
 *     file_device.c      determines the persistent name of a block device, for its UUID
 *     file_generation.c  computes the verifier; stores the generation, which a failed sync
 *                        increments
 *     file_request.c     divides one IO into steps and evaluates their results; makes no system
 *                        calls
 *     file_extents.c     finds the holes of a file, on the lane's thread or on another thread
 *     file_sync.c        engine: executes a step as a system call on the lane's thread
 *     file_uring.c       engine: executes a step as an entry of the lane's io_uring
 *     file.c             plugin interface
 */
#ifndef FILE_H
#define FILE_H

#include <pthread.h>
#include <stdint.h>
#include <sys/types.h>

#include <gantry/backend.h>

#include "../common/task_thread.h"

#define FILE_MAX_IO (16u << 20)
#define FILE_BOUNCE_BYTES (128u << 10) /* limit of a data step through a bounce buffer */
#define FILE_ZERO_BYTES (256u << 10)   /* limit of one data step of a write of zeroes */
#define FILE_RETRIES 3
#define FILE_MAX_REQUESTS 4096u /* limit of requests per lane */
#define FILE_NAME_BYTES 4352    /* size of a buffer for a path with a prefix and a suffix */

#define FILE_BELOW_MAX 4 /* limit of nested loop devices */

#define FILE_UUID_ATTRIBUTE "user.gantry.uuid"
#define FILE_GENERATION_ATTRIBUTE "user.gantry.generation"

enum file_engine_choice { FILE_AUTO, FILE_URING, FILE_SYNC };

/* State of a store: whether a sync has failed. */
enum file_failure {
	FILE_SOUND,
	FILE_FAILING, /* a sync has failed, and a lane is incrementing the generation */
	FILE_FAILED,
};

struct file_conf {
	const char *path;
	const char *uuid;
	uint64_t size;
	uint64_t block;
	uint64_t lock_wait_ns;
	uint32_t engine; /* enum file_engine_choice */
	uint8_t create;
	uint8_t direct;
	uint8_t read_only;
	uint8_t fsync;
};

/*
 * System calls of the sync engine, file_identity.c and file_generation.c; tests replace them. On
 * failure they return -errno.
 */
struct file_calls {
	ssize_t (*read)(int fd, void *data, size_t n, off_t offset);
	ssize_t (*write)(int fd, const void *data, size_t n, off_t offset, int stable);
	ssize_t (*sync)(int fd);
	ssize_t (*allocate)(int fd, int mode, off_t offset, off_t n);
	int (*set_attribute)(int fd, const char *name, const char *value);
	int (*sync_all)(int fd); /* syncs data and attributes */
	/* -errno: since the last call, the kernel failed to write back data of this file */
	int (*lost)(int fd);
	/* lseek with SEEK_DATA or SEEK_HOLE */
	off_t (*seek)(int fd, off_t offset, int whence);
};

/* State of a store, which all lanes share. */
struct file_store {
	const struct gantry_host *host;
	const struct file_conf *conf;
	const struct file_engine *engine; /* engine of lanes that start from now on */
	const struct file_calls *calls;
	int fd; /* the open file description that has the lock and does all IO */
	/*
	 * locked backing files of a loop device; entry 0 is the backing file of the device itself
	 */
	int below[FILE_BELOW_MAX];
	uint32_t n_below;
	char holder[64]; /* what uses the store, after -EBUSY; "": another process has locked it */
	int is_device;
	int direct;
	int can_discard;
	uint64_t alignment; /* alignment in bytes that direct IO needs for its memory */
	uint64_t size;
	void *zeroes; /* FILE_ZERO_BYTES zero bytes, read-only, shared by all lanes */
	uint8_t uuid[16];
	uint64_t place;          /* hash of all inputs of the verifier except the generation */
	uint64_t verifier;       /* __atomic relaxed: the lane whose sync failed changes it */
	pthread_mutex_t failing; /* a lane holds it while it increments the generation */
	uint64_t generation;
	/* Flags and counters: any lane sets them with __atomic, and no lane clears them. */
	/* enum file_failure. After a failed sync the content is unknown, so all writes fail. */
	int failed;
	int no_zero_range; /* the file system does not support FALLOC_FL_ZERO_RANGE */
	int no_stable;     /* RWF_DSYNC is not supported: write, then sync */
	uint64_t n_errors, n_short, n_retries, n_bounced;
};

enum file_step {
	FILE_STEP_READ,
	FILE_STEP_WRITE,
	FILE_STEP_SYNC,
	FILE_STEP_ALLOCATE,
	FILE_STEP_EXTENTS,
};

/* One IO in progress. */
struct file_request {
	struct task task; /* of the finder; first, for file_request_of() */
	struct gantry_io *io;
	struct file_request *next; /* next request in the list that has the request */
	ssize_t result;            /* of the step that another thread has executed */
	uint8_t *bounce;           /* FILE_BOUNCE_BYTES of aligned memory; NULL without direct IO */
	uint64_t start_ns;
	uint32_t done; /* bytes of the IO that are completed */
	uint8_t retries;
	uint8_t stalls; /* consecutive short results without progress */
	/* errno of a stable write that is being retried without its sync */
	int stable_err;
	/* the current step */
	uint8_t step;   /* enum file_step */
	uint8_t stable; /* 1: the write must reach the medium before it completes */
	int mode;       /* mode argument of fallocate(2) for FILE_STEP_ALLOCATE */
	uint8_t *data;
	uint64_t offset;
	uint32_t length;
};

static inline struct file_request *file_request_of(struct task *task)
{
	return (struct file_request *)task;
}

struct file_lane {
	struct file_store *store;
	int witness; /* descriptor for calls->lost(); -1: none */
	struct file_request *requests, *free;
	uint32_t n_requests;
	void *bounce; /* one mapping with all bounce buffers */
	size_t bounce_bytes;
	const struct file_engine *engine_ops;
	void *engine; /* state of engine_ops */
};

struct file_engine {
	const char *name;
	/*
	 * Start the engine on a lane whose lane->requests is ready. Returns 0 or -errno; after an
	 * error the caller starts another engine.
	 */
	int (*start)(struct file_lane *lane);
	/*
	 * Execute the step of a request, and then each further step that file_step_done() requests.
	 */
	void (*issue)(struct file_lane *lane, struct file_request *request);
	int (*poll)(struct file_lane *lane);
	int (*arm)(struct file_lane *lane);
	void (*disarm)(struct file_lane *lane);
	int (*fd)(struct file_lane *lane);
	void (*stop)(struct file_lane *lane);
};

extern const struct file_engine file_engine_sync;
extern const struct file_engine file_engine_uring;
extern const struct file_calls file_calls;

/* file_look.c */

/* Compare the configuration with this machine, without opening the path. */
void file_look(const struct file_conf *conf, const struct gantry_check *check);

/* Get the size of the open file or device, in bytes. Returns 0 or -errno. */
int file_find_size(const struct file_store *store, uint64_t *size_p);

/*
 * Check that a file of `have` bytes can hold the volume. Returns NULL if it can. Otherwise returns
 * `text`, filled with the reason; in a message it follows the name of the file.
 */
const char *file_size_fault(const struct file_conf *conf, uint64_t have, char *text, size_t bytes);

/* file_open.c */

/*
 * Open, lock and check the path, and fill the store. Logs the cause of a failure. Returns 0 or
 * -errno. Thread: control; can block up to conf->lock_wait_ns for the lock.
 */
int file_store_open(struct file_store *store);
void file_store_close(struct file_store *store);

/*
 * Open another file description of the store, for calls->lost() of a lane. Returns a descriptor;
 * -1: the store needs none, or the open failed, which is logged.
 */
int file_witness_open(const struct file_store *store);

/* file_identity.c */

/*
 * Fill store->uuid. Call it after file_generation_load(). Returns 0 or -errno; logs the cause of a
 * failure.
 */
int file_identity_find(struct file_store *store);

/* file_device.c */

enum file_name_scope {
	FILE_NAME_NONE,    /* there is no name */
	FILE_NAME_MACHINE, /* the name is unique on this machine */
	FILE_NAME_WORLD,   /* the name is unique everywhere */
};

/* Find the persistent name of the device whose sysfs directory is `dir`. Returns its scope. */
enum file_name_scope file_device_name(const char *dir, char *out, size_t bytes);

/* file_generation.c */

/* Load the generation of an open file, and compute the verifier. */
void file_generation_load(struct file_store *store);

/*
 * Increment the generation, store it, and compute the verifier. If the generation cannot be stored,
 * log an error and use a random verifier. The caller holds store->failing, or no lane runs.
 */
void file_generation_raise(struct file_store *store);

/* file_below.c */

/*
 * Lock the backing files of a loop device. Call it after store->fd is locked. Returns 0 or -errno;
 * after a failure no backing file is locked.
 *
 *     -EBUSY  a backing file is in use; store->holder names the user
 *     -ELOOP  more than FILE_BELOW_MAX loop devices are nested
 */
int file_below_take(struct file_store *store);
void file_below_drop(struct file_store *store);

/* file_extents.c */

/*
 * Execute FILE_STEP_EXTENTS: write the extents to the buffer of the IO. Blocks while the file
 * system reads its metadata. Returns 0.
 */
ssize_t file_extents_find(const struct file_store *store, const struct file_request *request);

/*
 * A thread that executes FILE_STEP_EXTENTS for one lane, because io_uring has no such operation.
 * Its tasks are requests.
 */
struct file_finder {
	const struct file_store *store;
	int event_fd; /* eventfd that wakes the lane */
	struct task_thread thread;
	struct task *done; /* executed requests, which have `result` */
};

/* Start the thread. Returns 0 or -errno. Control thread. */
int file_finder_start(struct file_finder *finder);

/* file_request.c */

/*
 * Create requests for n concurrent IOs, FILE_MAX_REQUESTS at most, with bounce buffers if the store
 * uses direct IO. Returns 0 or -ENOMEM.
 */
int file_requests_create(struct file_lane *lane, uint32_t n);
void file_requests_destroy(struct file_lane *lane);

/*
 * Begin an IO. Returns 1: the caller must issue a step; 0: the IO has completed; -EAGAIN: all
 * requests are in use.
 */
int file_request_begin(struct file_lane *lane, struct gantry_io *io,
		       struct file_request **request_p);

/* Execute a step by a system call. Returns its result: bytes, 0, or -errno. */
ssize_t file_step_execute(const struct file_store *store, const struct file_request *request);

/*
 * Evaluate the result of a step (bytes, 0, or -errno). Returns 1: the caller must issue another
 * step; 0: the IO has completed and the request is free.
 */
int file_step_done(struct file_lane *lane, struct file_request *request, ssize_t result);

#endif
