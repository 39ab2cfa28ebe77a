/* SPDX-License-Identifier: BSD-3-Clause */
/* rbd.c - plugin interface of the rbd backend, which keeps a volume in an image of Ceph. */
#define GANTRY_API_VERSION 1

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../common/identity.h"
#include "../common/described.h"
#include "rbd.h"

#define CONF(member) offsetof(struct rbd_conf, member)

static const struct gantry_option options[] = {
	{"conf", GANTRY_OPT_STRING, CONF(conf), "", GANTRY_PATH_KEEP, 0, NULL, NULL,
	 "Configuration file of Ceph. Empty: the default of librados, such as /etc/ceph/ceph.conf."},
	{"user", GANTRY_OPT_STRING, CONF(user), "admin", 0, 0, NULL, NULL,
	 "Name of the user of Ceph, without \"client.\"."},
	{"cluster", GANTRY_OPT_STRING, CONF(cluster), "ceph", 0, 0, NULL, NULL,
	 "Name of the cluster, from which librados derives names of files."},
	{"pool", GANTRY_OPT_STRING, CONF(pool), "rbd", 0, 0, NULL, NULL, "Pool of the image."},
	{"namespace", GANTRY_OPT_STRING, CONF(namespace), "", 0, 0, NULL, NULL,
	 "Namespace of the image in the pool. Empty: the default namespace."},
	{"image", GANTRY_OPT_STRING, CONF(image), NULL, 0, 0, NULL, NULL,
	 "Image that holds the volume. Its exclusive lock is held while it is served."},
	{"snapshot", GANTRY_OPT_STRING, CONF(snapshot), "", 0, 0, NULL, NULL,
	 "Serve this snapshot of the image, read-only. Empty: the image itself."},
	{"read_only", GANTRY_OPT_BOOL, CONF(read_only), "false", 0, 0, NULL, NULL,
	 "Reject writes, and do not lock the image. Several processes may serve an image that they only read."},
	{"block", GANTRY_OPT_SIZE, CONF(block), "4KiB", 512, 65536, NULL, NULL,
	 "Block size: a power of two. Offset and length of each IO are multiples of it."},
	{"osd_op_timeout", GANTRY_OPT_TIME, CONF(osd_op_timeout_ns), "30s", 1000000000,
	 3600000000000, NULL, NULL,
	 "Time after which an operation of the cluster fails, rounded up to seconds. Must be longer than "
	 "the cluster needs to replace an OSD that has failed."},
	{"cache", GANTRY_OPT_BOOL, CONF(cache), "false", 0, 0, NULL, NULL,
	 "Use the writeback cache of librbd. After a restart or a timeout, clients must repeat writes "
	 "that they had not flushed."},
	IDENTITY_OPTION(
		struct rbd_conf,
		"derived from the cluster, the pool, the namespace, the image and the snapshot."),
	GANTRY_OPTION_END,
};

/* Describe the volume as far as the configuration determines it. */
static void describe(const struct rbd_conf *conf, struct gantry_volume_info *volume)
{
	int read_only = conf->read_only || *conf->snapshot;
	uint32_t ops = 1u << GANTRY_OP_NOP | 1u << GANTRY_OP_READ | 1u << GANTRY_OP_FLUSH |
		       1u << GANTRY_OP_EXTENTS;

	if (!read_only)
		ops |= GANTRY_OPS_WRITE;
	*volume = (struct gantry_volume_info){
		.block_size = (uint32_t)conf->block,
		.ops = ops,
		.flags = GANTRY_VOLUME_LISTS | (read_only ? GANTRY_VOLUME_READ_ONLY : 0),
		.max_io = RBD_MAX_IO,
	};
	identity_option(conf->uuid, volume->uuid);
}

static void check_options(const void *arg, struct gantry_check *check)
{
	const struct rbd_conf *conf = arg;

	volume_check(conf->uuid, 0, conf->block, check);
	if (!*conf->image)
		gantry_option_fault(check, "image", "is empty; write the name of an image");
	describe(conf, &check->volume);
	if ((check->flags & GANTRY_CHECK_MACHINE) && *conf->conf && access(conf->conf, R_OK))
		gantry_option_fault(check, "conf", "\"%s\": %s", conf->conf, strerror(errno));
}

static int check_size(const struct rbd_store *store)
{
	uint64_t size = store->client.size;

	if (size != 0 && size % store->conf->block == 0)
		return 0;
	gantry_log_error(
		store->host, "%s: the image has %llu bytes, not a multiple of the block size %llu",
		store->name, (unsigned long long)size, (unsigned long long)store->conf->block);
	return -EINVAL;
}

static int init_sync(struct rbd_store *store)
{
	pthread_condattr_t attr;
	int rc = pthread_condattr_init(&attr);

	if (rc)
		return -rc;
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	rc = pthread_cond_init(&store->wake, &attr);
	pthread_condattr_destroy(&attr);
	if (rc)
		return -rc;
	pthread_mutex_init(&store->mutex, NULL);
	return 0;
}

static void name_image(struct rbd_store *store)
{
	const struct rbd_conf *conf = store->conf;

	snprintf(store->name, sizeof store->name, "%.90s%s%.90s/%.90s%s%.90s", conf->pool,
		 *conf->namespace ? "/" : "", conf->namespace, conf->image,
		 *conf->snapshot ? "@" : "", conf->snapshot);
}

static int open_store(const struct gantry_host *host, const void *arg, void **backend_p)
{
	const struct rbd_conf *conf = arg;
	struct rbd_store *store = calloc(1, sizeof *store);
	int rc;

	if (!store) {
		gantry_log_error(host, "%s: %s", conf->image, strerror(ENOMEM));
		return -ENOMEM;
	}
	store->host = host;
	store->conf = conf;
	store->is_read_only = conf->read_only || *conf->snapshot;
	LIST_INIT(&store->lanes);
	name_image(store);
	rc = init_sync(store);
	if (rc)
		goto out_undo_alloc;
	rc = rbd_client_connect(store, &store->client, 0);
	if (rc == 0)
		rc = rbd_client_open(store, &store->client, 0);
	if (rc)
		goto out_undo_sync;
	memcpy(store->image_uuid, store->client.uuid, sizeof store->image_uuid);
	if (*conf->uuid)
		identity_option(conf->uuid, store->uuid);
	else
		memcpy(store->uuid, store->image_uuid, sizeof store->uuid);
	store->size = store->client.size;
	store->verifier = store->client.is_cached ? identity_nonce()
						  : identity_hash(store->uuid, sizeof store->uuid);
	rc = check_size(store);
	if (rc == 0)
		rc = rbd_keeper_start(store);
	if (rc)
		goto out_undo_client;
	rc = rbd_finder_start(store);
	if (rc)
		goto out_undo_keeper;
	*backend_p = store;
	return 0;

out_undo_keeper:
	rbd_keeper_stop(store);
out_undo_client:
	rbd_client_close(&store->client);
out_undo_sync:
	pthread_mutex_destroy(&store->mutex);
	pthread_cond_destroy(&store->wake);
out_undo_alloc:
	free(store);
	return rc;
}

static uint64_t current_size(const struct rbd_store *store)
{
	uint64_t size = __atomic_load_n(&store->size, __ATOMIC_RELAXED);

	return size - size % store->conf->block;
}

static void get_volume(void *backend, struct gantry_volume_info *volume)
{
	const struct rbd_store *store = backend;

	describe(store->conf, volume);
	volume->size = current_size(store);
	memcpy(volume->uuid, store->uuid, sizeof volume->uuid);
	volume->verifier = store->verifier;
}

static int start(void *backend, struct gantry_lane *lane, uint32_t depth, void **self_p)
{
	struct rbd_lane *self;
	int rc = rbd_lane_create(backend, depth, &self);

	(void)lane;
	if (rc == 0)
		*self_p = self;
	return rc;
}

static int submit(void *self, struct gantry_io *io)
{
	return rbd_lane_submit(self, io);
}

static int poll_lane(void *self)
{
	return rbd_lane_poll(self);
}

static int arm(void *self)
{
	return rbd_lane_arm(self);
}

static void disarm(void *self)
{
	rbd_lane_disarm(self);
}

static int get_fd(void *self)
{
	const struct rbd_lane *lane = self;

	return lane->epoll_fd;
}

static void stop(void *self)
{
	rbd_lane_destroy(self);
}

static void report(void *backend, struct gantry_writer *w)
{
	static const char *const states[] = {"open", "fencing", "lost"};
	struct rbd_store *store = backend;

	w->string(w, "image", store->name);
	w->string(w, "state", states[rbd_state_get(store)]);
	identity_report(w, store->uuid, store->verifier);
	w->u64(w, "size_bytes", current_size(store));
	w->u64(w, "error_ops", __atomic_load_n(&store->n_errors, __ATOMIC_RELAXED));
	w->u64(w, "timeout_ops", __atomic_load_n(&store->n_timeouts, __ATOMIC_RELAXED));
	w->u64(w, "waited_ops", __atomic_load_n(&store->n_held, __ATOMIC_RELAXED));
	w->u64(w, "repeated_ops", __atomic_load_n(&store->n_repeated, __ATOMIC_RELAXED));
	w->u64(w, "fences", __atomic_load_n(&store->n_fences, __ATOMIC_RELAXED));
}

static void close_store(void *backend)
{
	struct rbd_store *store = backend;

	task_thread_stop(&store->finder.thread);
	rbd_keeper_stop(store);
	rbd_client_close(&store->client);
	pthread_mutex_destroy(&store->mutex);
	pthread_cond_destroy(&store->wake);
	free(store);
}

/*
 * See the protocol in rbd.h. The next fence concerns all IOs that were submitted before the first
 * call of a round. The mark is the number of fences at the first call, plus 1.
 */
static int quiesce(void *backend, uint64_t *mark)
{
	const struct rbd_store *store = backend;
	int state = rbd_state_get(store);
	uint64_t n_fences = __atomic_load_n(&store->n_fences, __ATOMIC_RELAXED);

	if (state == RBD_LOST)
		return -EIO;
	if (state == RBD_OPEN || (*mark != 0 && n_fences >= *mark))
		return 0;
	if (*mark == 0)
		*mark = n_fences + 1;
	return -EAGAIN;
}

static const struct gantry_backend_ops ops = {
	.open = open_store,
	.volume = get_volume,
	.start = start,
	.submit = submit,
	.poll = poll_lane,
	.arm = arm,
	.disarm = disarm,
	.fd = get_fd,
	.stop = stop,
	.report = report,
	.close = close_store,
	.quiesce = quiesce,
};

GANTRY_PLUGIN(rbd) = {
	GANTRY_PLUGIN_HEAD,
	.kind = GANTRY_KIND_BACKEND,
	.name = "rbd",
	.version = "1",
	.summary = "keeps the volume in an image of a Ceph cluster",
	.options = options,
	.conf_size = sizeof(struct rbd_conf),
	.ops_size = sizeof ops,
	.ops = &ops,
	.check = check_options,
};
