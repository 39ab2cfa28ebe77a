/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file.h - a backend on a regular file or a block device.
 *
 *     look.c        whether the path can be opened, for gantry check
 *     open.c        the path: what it is, who else has it, how large it is, whether direct IO works
 *     below.c       loop devices: the file under one, and those that are attached to a file
 *     identity.c    which volume it is: the UUID
 *     device.c      the lasting name of a block device, for its UUID
 *     generation.c  the verifier, and the number in it that a failed sync raises
 *     request.c     one IO as a row of steps: what comes next, and what a result means; no system
 *                   calls
 *     sync.c        engine: a step is a system call on the lane's thread
 *     uring.c       engine: a step is an entry of the lane's io_uring
 *     file.c        the plugin
 */
#ifndef FILE_H
#define FILE_H

#include <pthread.h>
#include <stdint.h>
#include <sys/types.h>

#include <gantry/backend.h>

#define FILE_MAX_IO (16u << 20)
#define FILE_BOUNCE_BYTES (128u << 10) /* one step through a bounce buffer moves at most this */
#define FILE_ZERO_BYTES (256u << 10)   /* one step of writing zeroes */
#define FILE_RETRIES 3
#define FILE_MAX_REQUESTS 4096u /* of a lane */
#define FILE_NAME_BYTES 4352    /* a path, with a prefix and a suffix */

#define FILE_BELOW_MAX 4 /* nested loop devices */

#define FILE_UUID_ATTRIBUTE "user.gantry.uuid"
#define FILE_GENERATION_ATTRIBUTE "user.gantry.generation"

enum file_engine_choice { FILE_AUTO, FILE_URING, FILE_SYNC };

/* State of a store: whether a sync has failed. */
enum file_failure {
	FILE_SOUND,
	FILE_FAILING, /* a sync has failed: a lane increments the generation */
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
 * System calls of the sync engine, identity.c and generation.c; tests replace them. They return
 * -errno.
 */
struct file_calls {
	ssize_t (*read)(int fd, void *data, size_t n, off_t offset);
	ssize_t (*write)(int fd, const void *data, size_t n, off_t offset, int stable);
	ssize_t (*sync)(int fd);
	ssize_t (*allocate)(int fd, int mode, off_t offset, off_t n);
	int (*set_attribute)(int fd, const char *name, const char *value);
	int (*sync_all)(int fd); /* data and attributes */
	/* -errno: since the last call, the kernel failed to write back data of this file */
	int (*lost)(int fd);
};

/* What all lanes share. */
struct file_store {
	const struct gantry_host *host;
	const struct file_conf *conf;
	const struct file_engine *engine; /* that new lanes use */
	const struct file_calls *calls;
	int fd; /* the lock belongs to this open file description, and so does all IO */
	/* the locked backing files of the loop device, the nearest first */
	int below[FILE_BELOW_MAX];
	uint32_t n_below;
	char holder[64]; /* the user of the store after -EBUSY; "": another process */
	int is_device;
	int direct;
	int can_discard;
	uint64_t alignment; /* that direct IO wants of memory, bytes */
	uint64_t size;
	void *zeroes; /* FILE_ZERO_BYTES of them, for all lanes */
	uint8_t uuid[16];
	uint64_t place;          /* hash of all inputs of the verifier except the generation */
	uint64_t verifier;       /* __atomic relaxed: the lane whose sync failed changes it */
	pthread_mutex_t failing; /* held while a lane increments the generation: */
	uint64_t generation;
	/* set by any lane, never cleared: __atomic */
	/* enum file_failure; after a failed sync the content is unknown, so writes fail */
	int failed;
	int no_zero_range; /* the file system cannot */
	int no_stable;     /* no RWF_DSYNC: write, then sync */
	uint64_t n_errors, n_short, n_retries, n_bounced;
};

enum file_step { FILE_STEP_READ, FILE_STEP_WRITE, FILE_STEP_SYNC, FILE_STEP_ALLOCATE };

/* One IO on its way through the store. */
struct file_request {
	struct gantry_io *io;
	struct file_request *next; /* in the list of free ones */
	uint8_t *bounce;           /* FILE_BOUNCE_BYTES of aligned memory; NULL without direct IO */
	uint64_t start_ns;
	uint32_t done; /* bytes that are finished */
	uint8_t retries;
	uint8_t stalls; /* results without progress */
	/* errno of a stable write that is being retried without its sync */
	int stable_err;
	/* the step to do now */
	uint8_t step;   /* enum file_step */
	uint8_t stable; /* write through to the medium */
	int mode;       /* of allocate */
	uint8_t *data;
	uint64_t offset;
	uint32_t length;
};

struct file_lane {
	struct file_store *store;
	int witness; /* descriptor for calls->lost(); -1: none */
	struct file_request *requests, *free;
	uint32_t n_requests;
	void *bounce; /* all bounce buffers, one mapping */
	size_t bounce_bytes;
	const struct file_engine *engine_ops;
	void *engine; /* its own */
};

struct file_engine {
	const char *name;
	/* lane->requests is ready. 0 or -errno; the caller then uses another engine. */
	int (*start)(struct file_lane *lane);
	/* Do the request's step, then what file_step_done() asks for. */
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

/* look.c */

/* The slot `look` of the plugin. */
void file_look(const void *conf, const struct gantry_option_faults *faults);

/*
 * Check that a file of `have` bytes can hold the volume. Returns NULL if so; else `text`, with a
 * reason that follows the name of the file in a message.
 */
const char *file_size_fault(const struct file_conf *conf, uint64_t have, char *text, size_t bytes);

/* open.c */

/*
 * Open, lock, check, and fill the store. Logs why it fails. 0 or -errno. Control thread; may wait
 * for the lock.
 */
int file_store_open(struct file_store *store);
void file_store_close(struct file_store *store);

/*
 * Open another file description of the store, for calls->lost() of a lane. -1: not needed, or not
 * possible.
 */
int file_witness_open(const struct file_store *store);

/* identity.c */

/* Fill store->uuid. Call after file_generation has been loaded. 0; -errno, having logged why. */
int file_identity_find(struct file_store *store);

/* device.c */

enum file_name_scope {
	FILE_NAME_NONE,    /* no name */
	FILE_NAME_MACHINE, /* unique on this machine */
	FILE_NAME_WORLD,   /* unique everywhere */
};

/* The persistent name of the device whose sysfs directory is `dir`. */
enum file_name_scope file_device_name(const char *dir, char *out, size_t bytes);

/* generation.c */

/* Load the generation of an open file, and compute the verifier. */
void file_generation_load(struct file_store *store);

/*
 * Increment the generation, store it, and compute the verifier. If the generation cannot be stored,
 * log an error and use a random verifier. The caller holds store->failing, or no lane runs.
 */
void file_generation_raise(struct file_store *store);

/* below.c */

/*
 * Lock the backing files of a loop device, after store->fd has been locked. 0; -EBUSY: in use, and
 * store->holder names the user; another -errno. After a failure no backing file is locked.
 */
int file_below_take(struct file_store *store);
void file_below_drop(struct file_store *store);

/* request.c */

/*
 * Requests for n IOs at a time, FILE_MAX_REQUESTS at most, with bounce buffers where the store
 * needs them. 0 or -ENOMEM.
 */
int file_requests_create(struct file_lane *lane, uint32_t n);
void file_requests_destroy(struct file_lane *lane);

/*
 * Begin an IO: 1 when there is a step to issue, 0 when it has already completed, -EAGAIN when all
 * requests are in use.
 */
int file_request_begin(struct file_lane *lane, struct gantry_io *io,
		       struct file_request **request_p);

/* Do a step by a system call. Returns its result: bytes, 0, or -errno. */
ssize_t file_step_execute(const struct file_store *store, const struct file_request *request);

/*
 * Judge the result of a step (bytes, 0, or -errno). Returns 1 when another step is to be issued; 0
 * when the IO has completed and the request is free again.
 */
int file_step_done(struct file_lane *lane, struct file_request *request, ssize_t result);

#endif
