/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file.c - plugin interface of the file backend, which keeps a volume in a regular file or a block
 * device.
 */
#define GANTRY_API_VERSION 1

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../common/identity.h"
#include "../common/described.h"
#include "file.h"

static const char *const engines[] = {"auto", "uring", "sync", NULL};

static const struct gantry_option options[] = {
	{"path", GANTRY_OPT_STRING, offsetof(struct file_conf, path), NULL, GANTRY_PATH_VOLUME, 0,
	 NULL, NULL,
	 "Regular file or block device that holds the volume. It is locked (flock) while it is served."},
	{"size", GANTRY_OPT_SIZE, offsetof(struct file_conf, size), "0", 0, INT64_MAX, NULL, NULL,
	 "Size of the volume; 0: all of the file or device."},
	{"create", GANTRY_OPT_BOOL, offsetof(struct file_conf, create), "false", 0, 0, NULL, NULL,
	 "Create the file if it is missing, and extend it if it is smaller than size."},
	{"direct", GANTRY_OPT_BOOL, offsetof(struct file_conf, direct), "true", 0, 0, NULL, NULL,
	 "Bypass the page cache (O_DIRECT) if the file system supports it."},
	{"read_only", GANTRY_OPT_BOOL, offsetof(struct file_conf, read_only), "false", 0, 0, NULL,
	 NULL, "Reject writes. Several processes may serve one file that they only read."},
	{"block", GANTRY_OPT_SIZE, offsetof(struct file_conf, block), "4KiB", 512, 65536, NULL,
	 NULL, "Block size: a power of two. Offset and length of each IO are multiples of it."},
	{"engine", GANTRY_OPT_CHOICE, offsetof(struct file_conf, engine), "auto", 0, 0, engines,
	 NULL,
	 "How IO is executed: uring: asynchronously, by io_uring; sync: by blocking system calls; auto: uring if "
	 "it is permitted, else sync."},
	{"fsync", GANTRY_OPT_BOOL, offsetof(struct file_conf, fsync), "true", 0, 0, NULL, NULL,
	 "Execute flush and FUA. False is for scratch data: a power failure may lose writes that were acknowledged "
	 "as stable."},
	{"lock_wait", GANTRY_OPT_TIME, offsetof(struct file_conf, lock_wait_ns), "0s", 0, INT64_MAX,
	 NULL, NULL, "Time to wait at start until another process releases the lock of the file."},
	IDENTITY_OPTION(
		struct file_conf,
		"the attribute user.gantry.uuid of the file, which the target adds if it is missing; of a device: derived "
		"from its WWID; else from the machine id and the path."),
	GANTRY_OPTION_END,
};

static const struct file_engine *first_choice(const struct file_store *store)
{
#ifdef HAVE_LIBURING
	if (store->conf->engine != FILE_SYNC)
		return &file_engine_uring;
#else
	if (store->conf->engine == FILE_URING)
		gantry_log_warn(store->host, "built without io_uring, using the sync engine");
#endif
	return &file_engine_sync;
}

static int file_open(const struct gantry_host *host, const void *conf, void **backend_p)
{
	struct file_store *store = calloc(1, sizeof *store);
	int rc;

	if (!store) {
		gantry_log_error(host, "%s: %s", ((const struct file_conf *)conf)->path,
				 strerror(ENOMEM));
		return -ENOMEM;
	}
	store->host = host;
	store->conf = conf;
	store->calls = &file_calls;
	store->engine = first_choice(store);
	pthread_mutex_init(&store->failing, NULL);
	rc = file_store_open(store);
	if (rc) {
		pthread_mutex_destroy(&store->failing);
		free(store);
		return rc;
	}
	*backend_p = store;
	return 0;
}

/*
 * Describe the volume as far as the configuration determines it. Only the opened store determines
 * whether discard is supported, and the size if it is not configured.
 */
static void describe(const struct file_conf *conf, struct gantry_volume_info *volume)
{
	uint32_t ops = 1u << GANTRY_OP_NOP | 1u << GANTRY_OP_READ | 1u << GANTRY_OP_FLUSH |
		       1u << GANTRY_OP_EXTENTS;

	if (!conf->read_only)
		ops |= 1u << GANTRY_OP_WRITE | 1u << GANTRY_OP_WRITE_ZEROES |
		       1u << GANTRY_OP_DISCARD;
	*volume = (struct gantry_volume_info){
		.size = conf->size,
		.block_size = (uint32_t)conf->block,
		.ops = ops,
		.flags = conf->read_only ? GANTRY_VOLUME_READ_ONLY : 0,
		.max_io = FILE_MAX_IO,
	};
	identity_option(conf->uuid, volume->uuid);
}

static void file_check(const void *arg, struct gantry_check *check)
{
	const struct file_conf *conf = arg;

	volume_check(conf->uuid, conf->size, conf->block, check);
	describe(conf, &check->volume);
	if (check->flags & GANTRY_CHECK_MACHINE)
		file_look(conf, check);
}

/* The file or device can grow and shrink while it is served. */
static uint64_t current_size(const struct file_store *store)
{
	const struct file_conf *conf = store->conf;
	uint64_t size;

	if (file_find_size(store, &size))
		return store->size;
	if (conf->size && size > conf->size)
		size = conf->size;
	return size - size % conf->block;
}

static void file_volume(void *backend, struct gantry_volume_info *volume)
{
	const struct file_store *store = backend;

	describe(store->conf, volume);
	volume->size = current_size(store);
	if (!store->can_discard)
		volume->ops &= ~(1u << GANTRY_OP_DISCARD);
	memcpy(volume->uuid, store->uuid, sizeof volume->uuid);
	volume->verifier = __atomic_load_n(&store->verifier, __ATOMIC_RELAXED);
}

static int file_start(void *backend, struct gantry_lane *lane, uint32_t depth, void **self_p)
{
	struct file_store *store = backend;
	struct file_lane *self = gantry_zalloc_lines(sizeof *self);
	int rc;

	(void)lane;
	if (!self)
		return -ENOMEM;
	self->store = store;
	rc = file_requests_create(self, depth);
	if (rc)
		goto out_undo_alloc;
	rc = store->engine->start(self);
	if (rc && store->engine != &file_engine_sync) {
		gantry_log_warn(
			store->host, "cannot use io_uring here (%s), using the sync engine%s",
			strerror(-rc),
			rc == -ENOMEM
				? "; allow this process more memory, and more locked memory: `ulimit -l`, or LimitMEMLOCK= "
				  "of its service"
				: "");
		store->engine = &file_engine_sync;
		rc = store->engine->start(self);
	}
	if (rc)
		goto out_undo_requests;
	self->engine_ops = store->engine;
	self->witness = file_witness_open(store);
	*self_p = self;
	return 0;

out_undo_requests:
	file_requests_destroy(self);
out_undo_alloc:
	free(self);
	return rc;
}

static int file_submit(void *self, struct gantry_io *io)
{
	struct file_lane *lane = self;
	struct file_request *request;
	int rc = file_request_begin(lane, io, &request);

	if (rc < 0)
		return rc;
	if (rc)
		lane->engine_ops->issue(lane, request);
	return 0;
}

static int file_poll(void *self)
{
	struct file_lane *lane = self;

	return lane->engine_ops->poll(lane);
}

static int file_arm(void *self)
{
	struct file_lane *lane = self;

	return lane->engine_ops->arm(lane);
}

static void file_disarm(void *self)
{
	struct file_lane *lane = self;

	lane->engine_ops->disarm(lane);
}

static int file_fd(void *self)
{
	struct file_lane *lane = self;

	return lane->engine_ops->fd(lane);
}

static void file_stop(void *self)
{
	struct file_lane *lane = self;

	lane->engine_ops->stop(lane);
	if (lane->witness >= 0)
		close(lane->witness);
	file_requests_destroy(lane);
	free(lane);
}

static void file_report(void *backend, struct gantry_writer *w)
{
	struct file_store *store = backend;

	w->string(w, "path", store->conf->path);
	w->string(w, "engine", store->engine->name);
	w->boolean(w, "direct", store->direct);
	identity_report(w, store->uuid, __atomic_load_n(&store->verifier, __ATOMIC_RELAXED));
	w->boolean(w, "failed", __atomic_load_n(&store->failed, __ATOMIC_RELAXED) != FILE_SOUND);
	w->u64(w, "size_bytes", current_size(store));
	w->u64(w, "error_ops", __atomic_load_n(&store->n_errors, __ATOMIC_RELAXED));
	w->u64(w, "short_ops", __atomic_load_n(&store->n_short, __ATOMIC_RELAXED));
	w->u64(w, "retried_ops", __atomic_load_n(&store->n_retries, __ATOMIC_RELAXED));
	w->u64(w, "bounced_ops", __atomic_load_n(&store->n_bounced, __ATOMIC_RELAXED));
}

static void file_close(void *backend)
{
	struct file_store *store = backend;

	file_store_close(store);
	pthread_mutex_destroy(&store->failing);
	free(store);
}

/*
 * The backend needs no quiesce operation: an IO completes only after the kernel has finished all
 * its calls and ring entries. A request has one step at a time: the first transfer, the remainder
 * after a short result, a retry, or the sync of a write with FUA. The IO completes after the result
 * of the last step. io_uring posts a result after all parts of a direct IO have ended, also when
 * one failed. The backend never cancels an entry: the host stops a lane when no IO is in flight.
 * After the process is killed, the kernel can finish a write late, but it holds the lock of the
 * file until then.
 */
static const struct gantry_backend_ops ops = {
	.open = file_open,
	.volume = file_volume,
	.start = file_start,
	.submit = file_submit,
	.poll = file_poll,
	.arm = file_arm,
	.disarm = file_disarm,
	.fd = file_fd,
	.stop = file_stop,
	.report = file_report,
	.close = file_close,
};

GANTRY_PLUGIN(file) = {
	GANTRY_PLUGIN_HEAD,
	.kind = GANTRY_KIND_BACKEND,
	.name = "file",
	.version = "1",
	.summary = "keeps the volume in a regular file or a block device",
	.options = options,
	.conf_size = sizeof(struct file_conf),
	.ops_size = sizeof ops,
	.ops = &ops,
	.check = file_check,
};
