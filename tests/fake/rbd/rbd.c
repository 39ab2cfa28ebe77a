/* SPDX-License-Identifier: BSD-3-Clause */
/* rbd.c - a fake of librados and librbd, see rbd.h. */
#include "rbd.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rados/librados.h>
#include <rbd/librbd.h>

#include "fake/host.h"

#define MAX_LATE 256
#define MAX_BLOCKED 65536

enum op_kind { OP_READ, OP_WRITE, OP_ZERO, OP_FLUSH };

struct client {
	unsigned number;
	struct client *next;
};

struct image {
	struct client *client;
	int read_only;
	rbd_update_callback_t watch;
	void *watch_arg;
	struct image *next;
	unsigned in_flight;
};

struct op {
	enum op_kind kind;
	struct image *image;
	uint64_t offset;
	size_t length;
	char *data; /* of a write: a copy */
	const struct iovec *pieces;
	int n_pieces;
	struct iovec piece;
	void (*callback)(rbd_completion_t c, void *arg);
	void *arg;
	ssize_t result;
	struct op *next;
};

struct late {
	unsigned client;
	uint64_t offset;
	size_t length;
	char *data;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_t worker;
static int worker_runs;
static char volume[FAKE_RBD_BYTES];
static uint64_t volume_size;
static struct {
	int error, n;
	unsigned calls;
} fns[FAKE_RBD_COUNT];
static int give_up, broken, n_broken, hold, hold_flush, n_repeat, reverse;
static unsigned n_unflushed, n_objects, n_clients;
static char owner[64], image_id[64];
static struct op *queue;
static struct late late[MAX_LATE];
static unsigned n_late;
static unsigned char blocked[MAX_BLOCKED];
static struct image *images;
static unsigned lock_owner; /* number of the client with the lock; 0: none */

/* Count a call. Returns 0, or the error that the test has set. */
static int enter(enum fake_rbd_fn fn)
{
	int rc = 0;

	pthread_mutex_lock(&mutex);
	fns[fn].calls++;
	if (fns[fn].n > 0) {
		fns[fn].n--;
		rc = fns[fn].error;
	}
	pthread_mutex_unlock(&mutex);
	return rc;
}

static void count_objects(int n)
{
	__atomic_fetch_add(&n_objects, (unsigned)n, __ATOMIC_SEQ_CST);
}

/* -- for tests -- */

void fake_rbd_reset(void)
{
	pthread_mutex_lock(&mutex);
	memset(fns, 0, sizeof fns);
	memset(volume, 0, sizeof volume);
	memset(blocked, 0, sizeof blocked);
	give_up = n_broken = hold = hold_flush = n_repeat = reverse = 0;
	n_unflushed = 0;
	lock_owner = 0;
	owner[0] = '\0';
	snprintf(image_id, sizeof image_id, "1234abcd");
	volume_size = FAKE_RBD_BYTES;
	while (n_late > 0)
		free(late[--n_late].data);
	pthread_mutex_unlock(&mutex);
	fake_rbd_reset_diffs();
	fake_rbd_setting("rbd_cache", "false");
	fake_rbd_setting("rbd_blocklist_on_break_lock", "true");
}

void fake_rbd_fail(enum fake_rbd_fn fn, int error, int n)
{
	pthread_mutex_lock(&mutex);
	fns[fn].error = error;
	fns[fn].n = n;
	pthread_mutex_unlock(&mutex);
}

unsigned fake_rbd_calls(enum fake_rbd_fn fn)
{
	unsigned n;

	pthread_mutex_lock(&mutex);
	n = fns[fn].calls;
	pthread_mutex_unlock(&mutex);
	return n;
}

static void set(int *flag, int value)
{
	pthread_mutex_lock(&mutex);
	*flag = value;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&mutex);
}

void fake_rbd_give_up(int on)
{
	set(&give_up, on);
}

void fake_rbd_break(int error, int n)
{
	set(&broken, error);
	set(&n_broken, n);
}

void fake_rbd_hold(int on)
{
	set(&hold, on);
}

void fake_rbd_hold_flush(int on)
{
	set(&hold_flush, on);
}

void fake_rbd_repeat(int n)
{
	set(&n_repeat, n);
}

void fake_rbd_reverse(int on)
{
	set(&reverse, on);
}

unsigned fake_rbd_held(void)
{
	unsigned n = 0;

	pthread_mutex_lock(&mutex);
	for (const struct op *op = queue; op; op = op->next)
		n++;
	pthread_mutex_unlock(&mutex);
	return n;
}

unsigned fake_rbd_unflushed(void)
{
	unsigned n;

	pthread_mutex_lock(&mutex);
	n = n_unflushed;
	pthread_mutex_unlock(&mutex);
	return n;
}

void fake_rbd_resize(uint64_t bytes)
{
	pthread_mutex_lock(&mutex);
	volume_size = bytes;
	for (struct image *image = images; image; image = image->next)
		if (image->watch)
			image->watch(image->watch_arg);
	pthread_mutex_unlock(&mutex);
}

void fake_rbd_owner(const char *name)
{
	pthread_mutex_lock(&mutex);
	snprintf(owner, sizeof owner, "%s", name ? name : "");
	pthread_mutex_unlock(&mutex);
}

void fake_rbd_rename(const char *id)
{
	pthread_mutex_lock(&mutex);
	snprintf(image_id, sizeof image_id, "%s", id);
	pthread_mutex_unlock(&mutex);
}

unsigned fake_rbd_objects(void)
{
	return __atomic_load_n(&n_objects, __ATOMIC_SEQ_CST);
}

/* -- execution -- */

static void land(void)
{
	for (unsigned i = 0; i < n_late; i++) {
		if (!blocked[late[i].client])
			memcpy(volume + late[i].offset, late[i].data, late[i].length);
		free(late[i].data);
	}
	n_late = 0;
}

static ssize_t read_data(const struct op *op)
{
	size_t done = 0, n = op->offset >= volume_size ? 0 : op->length;

	if (n > volume_size - op->offset)
		n = volume_size - op->offset;
	for (int i = 0; i < op->n_pieces && done < n; i++) {
		size_t part = op->pieces[i].iov_len < n - done ? op->pieces[i].iov_len : n - done;

		memcpy(op->pieces[i].iov_base, volume + op->offset + done, part);
		done += part;
	}
	return (ssize_t)n;
}

static ssize_t change(struct op *op)
{
	if (op->kind == OP_FLUSH) {
		n_unflushed = 0;
		return 0;
	}
	if (op->offset + op->length > volume_size)
		return -EINVAL;
	if (give_up && n_late < MAX_LATE) {
		late[n_late++] = (struct late){op->image->client->number, op->offset, op->length,
					       op->data};
		op->data = NULL;
		return -ETIMEDOUT;
	}
	memcpy(volume + op->offset, op->data, op->length);
	n_unflushed++;
	return 0;
}

static ssize_t execute(struct op *op)
{
	ssize_t result;

	if (blocked[op->image->client->number])
		return -ESHUTDOWN;
	if (op->kind == OP_READ) {
		result = read_data(op);
		land();
		return result;
	}
	if (op->image->read_only && op->kind != OP_FLUSH)
		return -EROFS;
	if (n_broken > 0) {
		n_broken--;
		return broken;
	}
	result = change(op);
	if (result != -ETIMEDOUT)
		land();
	return result;
}

/* Take the next operation that need not wait out of the queue. */
static struct op *take(void)
{
	struct op **best = NULL, *op;

	if (hold)
		return NULL;
	for (struct op **p = &queue; *p; p = &(*p)->next) {
		if (hold_flush && (*p)->kind == OP_FLUSH)
			continue;
		best = p;
		if (!reverse)
			break;
	}
	if (!best)
		return NULL;
	op = *best;
	*best = op->next;
	return op;
}

static void *work(void *arg)
{
	struct op *op;

	pthread_mutex_lock(&mutex);
	for (;;) {
		int twice;

		while (!(op = take())) {
			if (!worker_runs) {
				pthread_mutex_unlock(&mutex);
				return arg;
			}
			pthread_cond_wait(&changed, &mutex);
		}
		op->result = execute(op);
		twice = n_repeat > 0 && n_repeat--;
		pthread_mutex_unlock(&mutex);
		struct image *image = op->image;
		struct op copy = *op;

		op->callback(op, op->arg);
		if (twice) {
			struct op *again = malloc(sizeof *again);

			*again = copy;
			again->data = NULL;
			count_objects(1);
			again->callback(again, again->arg);
		}
		pthread_mutex_lock(&mutex);
		image->in_flight--;
		pthread_cond_broadcast(&changed);
	}
}

/* -- librbd: IO -- */

int rbd_aio_create_completion(void *cb_arg, rbd_callback_t complete_cb, rbd_completion_t *c)
{
	struct op *op;
	int rc = enter(FAKE_RBD_completion);

	if (rc)
		return rc;
	op = calloc(1, sizeof *op);
	if (!op)
		return -ENOMEM;
	op->callback = complete_cb;
	op->arg = cb_arg;
	count_objects(1);
	*c = op;
	return 0;
}

void rbd_aio_release(rbd_completion_t c)
{
	struct op *op = c;

	free(op->data);
	free(op);
	count_objects(-1);
}

ssize_t rbd_aio_get_return_value(rbd_completion_t c)
{
	const struct op *op = c;

	return op->result;
}

static int add(rbd_image_t image, rbd_completion_t c, enum op_kind kind, uint64_t offset,
	       size_t length)
{
	struct op *op = c, **p;
	int rc = enter(FAKE_RBD_submit);

	if (rc)
		return rc;
	op->kind = kind;
	op->image = image;
	op->offset = offset;
	op->length = length;
	pthread_mutex_lock(&mutex);
	op->image->in_flight++;
	for (p = &queue; *p; p = &(*p)->next)
		;
	op->next = NULL;
	*p = op;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&mutex);
	return 0;
}

int rbd_aio_readv(rbd_image_t image, const struct iovec *iov, int iovcnt, uint64_t off,
		  rbd_completion_t c)
{
	struct op *op = c;
	size_t length = 0;

	op->pieces = iov;
	op->n_pieces = iovcnt;
	for (int i = 0; i < iovcnt; i++)
		length += iov[i].iov_len;
	return add(image, c, OP_READ, off, length);
}

int rbd_aio_read(rbd_image_t image, uint64_t off, size_t len, char *buf, rbd_completion_t c)
{
	struct op *op = c;

	op->piece = (struct iovec){buf, len};
	op->pieces = &op->piece;
	op->n_pieces = 1;
	return add(image, c, OP_READ, off, len);
}

int rbd_aio_writev(rbd_image_t image, const struct iovec *iov, int iovcnt, uint64_t off,
		   rbd_completion_t c)
{
	struct op *op = c;
	size_t length = 0, done = 0;

	for (int i = 0; i < iovcnt; i++)
		length += iov[i].iov_len;
	op->data = malloc(length);
	if (!op->data)
		return -ENOMEM;
	for (int i = 0; i < iovcnt; i++) {
		memcpy(op->data + done, iov[i].iov_base, iov[i].iov_len);
		done += iov[i].iov_len;
	}
	return add(image, c, OP_WRITE, off, length);
}

int rbd_aio_write(rbd_image_t image, uint64_t off, size_t len, const char *buf, rbd_completion_t c)
{
	struct iovec piece = {(char *)buf, len};

	return rbd_aio_writev(image, &piece, 1, off, c);
}

static int add_zeroes(rbd_image_t image, uint64_t off, size_t len, rbd_completion_t c)
{
	struct op *op = c;

	op->data = calloc(1, len);
	return op->data ? add(image, c, OP_ZERO, off, len) : -ENOMEM;
}

int rbd_aio_write_zeroes(rbd_image_t image, uint64_t off, size_t len, rbd_completion_t c,
			 int zero_flags, int op_flags)
{
	(void)zero_flags;
	(void)op_flags;
	return add_zeroes(image, off, len, c);
}

int rbd_aio_discard(rbd_image_t image, uint64_t off, uint64_t len, rbd_completion_t c)
{
	return add_zeroes(image, off, len, c);
}

int rbd_aio_flush(rbd_image_t image, rbd_completion_t c)
{
	return add(image, c, OP_FLUSH, 0, 0);
}

/* -- librbd: images -- */

static int open_image(rados_ioctx_t io, rbd_image_t *image_p, int read_only)
{
	struct image *image;
	int rc = enter(FAKE_RBD_open);

	if (rc)
		return rc;
	image = calloc(1, sizeof *image);
	if (!image)
		return -ENOMEM;
	image->client = io;
	image->read_only = read_only;
	pthread_mutex_lock(&mutex);
	image->next = images;
	images = image;
	pthread_mutex_unlock(&mutex);
	count_objects(1);
	*image_p = image;
	return 0;
}

int rbd_open(rados_ioctx_t io, const char *name, rbd_image_t *image, const char *snap_name)
{
	(void)snap_name;
	return strcmp(name, "image") ? -ENOENT : open_image(io, image, 0);
}

int rbd_open_read_only(rados_ioctx_t io, const char *name, rbd_image_t *image,
		       const char *snap_name)
{
	(void)snap_name;
	return strcmp(name, "image") ? -ENOENT : open_image(io, image, 1);
}

int rbd_close(rbd_image_t arg)
{
	struct image *image = arg, **p;

	pthread_mutex_lock(&mutex);
	while (image->in_flight > 0)
		pthread_cond_wait(&changed, &mutex);
	for (p = &images; *p != image; p = &(*p)->next)
		;
	*p = image->next;
	if (lock_owner == image->client->number)
		lock_owner = 0;
	pthread_mutex_unlock(&mutex);
	free(image);
	count_objects(-1);
	return 0;
}

int rbd_lock_acquire(rbd_image_t arg, rbd_lock_mode_t lock_mode)
{
	struct image *image = arg;
	int rc = enter(FAKE_RBD_lock);

	(void)lock_mode;
	if (rc)
		return rc;
	pthread_mutex_lock(&mutex);
	if (owner[0] || (lock_owner && !blocked[lock_owner]))
		rc = -EROFS;
	else
		lock_owner = image->client->number;
	pthread_mutex_unlock(&mutex);
	return rc;
}

int rbd_lock_get_owners(rbd_image_t image, rbd_lock_mode_t *lock_mode, char **lock_owners,
			size_t *max_lock_owners)
{
	(void)image;
	*lock_mode = RBD_LOCK_MODE_EXCLUSIVE;
	pthread_mutex_lock(&mutex);
	*max_lock_owners = owner[0] != '\0';
	if (owner[0])
		lock_owners[0] = strdup(owner);
	pthread_mutex_unlock(&mutex);
	return *max_lock_owners ? 0 : -ENOENT;
}

void rbd_lock_get_owners_cleanup(char **lock_owners, size_t lock_owner_count)
{
	while (lock_owner_count-- > 0)
		free(lock_owners[lock_owner_count]);
}

int rbd_get_features(rbd_image_t image, uint64_t *features)
{
	(void)image;
	*features = enter(FAKE_RBD_features) ? 0 : RBD_FEATURE_EXCLUSIVE_LOCK;
	return 0;
}

int rbd_get_size(rbd_image_t image, uint64_t *size)
{
	int rc = enter(FAKE_RBD_size);

	(void)image;
	pthread_mutex_lock(&mutex);
	*size = volume_size;
	pthread_mutex_unlock(&mutex);
	return rc;
}

int rbd_get_id(rbd_image_t image, char *id, size_t id_len)
{
	int rc = enter(FAKE_RBD_id);

	(void)image;
	pthread_mutex_lock(&mutex);
	snprintf(id, id_len, "%s", image_id);
	pthread_mutex_unlock(&mutex);
	return rc;
}

int rbd_snap_get_id(rbd_image_t image, const char *snapname, uint64_t *snap_id)
{
	(void)image;
	*snap_id = strlen(snapname);
	return 0;
}

int fake_rbd_view(const void *arg, const char **data_p, uint64_t *size_p)
{
	const struct image *image = arg;
	int rc = enter(FAKE_RBD_diff);

	pthread_mutex_lock(&mutex);
	*data_p = volume;
	*size_p = volume_size;
	if (rc == 0 && blocked[image->client->number])
		rc = -ESHUTDOWN;
	pthread_mutex_unlock(&mutex);
	return rc;
}

int rbd_update_watch(rbd_image_t arg, uint64_t *handle, rbd_update_callback_t watch_cb,
		     void *watch_arg)
{
	struct image *image = arg;
	int rc = enter(FAKE_RBD_watch);

	if (rc)
		return rc;
	pthread_mutex_lock(&mutex);
	image->watch = watch_cb;
	image->watch_arg = watch_arg;
	pthread_mutex_unlock(&mutex);
	*handle = 1;
	count_objects(1);
	return 0;
}

int rbd_update_unwatch(rbd_image_t arg, uint64_t handle)
{
	struct image *image = arg;

	(void)handle;
	pthread_mutex_lock(&mutex);
	image->watch = NULL;
	pthread_mutex_unlock(&mutex);
	count_objects(-1);
	return 0;
}

/* -- librados -- */

int rados_create2(rados_t *pcluster, const char *const clustername, const char *const name,
		  uint64_t flags)
{
	struct client *client;
	int rc = enter(FAKE_RBD_create);

	(void)clustername;
	(void)name;
	(void)flags;
	if (rc)
		return rc;
	client = calloc(1, sizeof *client);
	if (!client)
		return -ENOMEM;
	pthread_mutex_lock(&mutex);
	client->number = ++n_clients % MAX_BLOCKED;
	blocked[client->number] = 0;
	if (!worker_runs++ && pthread_create(&worker, NULL, work, NULL))
		fake_fail("cannot create the thread of the fake");
	pthread_mutex_unlock(&mutex);
	count_objects(1);
	*pcluster = client;
	return 0;
}

void rados_shutdown(rados_t cluster)
{
	int last;

	pthread_mutex_lock(&mutex);
	last = --worker_runs == 0;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&mutex);
	if (last)
		pthread_join(worker, NULL);
	free(cluster);
	count_objects(-1);
}

int rados_conf_read_file(rados_t cluster, const char *path)
{
	(void)cluster;
	(void)path;
	return enter(FAKE_RBD_conf);
}

int rados_conf_set(rados_t cluster, const char *option, const char *value)
{
	(void)cluster;
	(void)option;
	(void)value;
	return 0;
}

int rados_connect(rados_t cluster)
{
	(void)cluster;
	return enter(FAKE_RBD_connect);
}

int rados_getaddrs(rados_t cluster, char **addrs)
{
	const struct client *client = cluster;
	int rc = enter(FAKE_RBD_addrs);

	if (rc)
		return rc;
	*addrs = malloc(32);
	snprintf(*addrs, 32, "127.0.0.1:0/%u", client->number);
	return 0;
}

void rados_buffer_free(char *buf)
{
	free(buf);
}

int rados_blocklist_add(rados_t cluster, char *client_address, uint32_t expire_seconds)
{
	unsigned number = 0;
	int rc = enter(FAKE_RBD_blocklist);

	(void)cluster;
	(void)expire_seconds;
	if (rc)
		return rc;
	sscanf(client_address, "127.0.0.1:0/%u", &number);
	pthread_mutex_lock(&mutex);
	blocked[number] = 1;
	pthread_mutex_unlock(&mutex);
	return 0;
}

int rados_wait_for_latest_osdmap(rados_t cluster)
{
	(void)cluster;
	return enter(FAKE_RBD_osdmap);
}

int rados_cluster_fsid(rados_t cluster, char *buf, size_t len)
{
	int rc = enter(FAKE_RBD_fsid);

	(void)cluster;
	return rc ? rc : snprintf(buf, len, "2d6ab30e-1234-4321-8888-0123456789ab");
}

int rados_ioctx_create(rados_t cluster, const char *pool_name, rados_ioctx_t *ioctx)
{
	int rc = enter(FAKE_RBD_ioctx);

	if (rc == 0 && strcmp(pool_name, "rbd") != 0)
		rc = -ENOENT;
	if (rc == 0)
		*ioctx = cluster;
	return rc;
}

void rados_ioctx_destroy(rados_ioctx_t io)
{
	(void)io;
}

int64_t rados_ioctx_get_id(rados_ioctx_t io)
{
	(void)io;
	return 2;
}

void rados_ioctx_set_namespace(rados_ioctx_t io, const char *nspace)
{
	(void)io;
	(void)nspace;
}

void rados_set_pool_full_try(rados_ioctx_t io)
{
	(void)io;
}
