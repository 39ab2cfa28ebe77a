/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * image_rbd.c - a double of librados and librbd over the storage server of remote.h
 *
 * A client is a connection to the server and a thread, which calls back. The server has one image,
 * the file whose path the double takes from the name of the configuration file. An operation that
 * the server has not executed after rados_osd_op_timeout completes with ETIMEDOUT, and the server
 * can still execute it.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <rados/librados.h>
#include <rbd/librbd.h>

#include "image.h"
#include "remote.h"
#include "sim.h"

#define PATH 64
#define NS_PER_S 1000000000u
#define NS_PER_MS 1000000u

struct operation {
	rbd_callback_t callback; /* NULL: a thread waits for it */
	void *arg;
	struct operation *next;
	uint64_t number, deadline_ns;
	int64_t result;
	int64_t success; /* the result of an operation that succeeds */
	bool done;
};

/* rados_t, rados_ioctx_t and rbd_image_t: the plugin has one image for each client. */
struct client {
	char path[PATH];
	uint64_t timeout_ns;
	int fd, event_fd; /* of the connection; wakes the thread */
	pthread_t thread;
	pthread_mutex_t lock; /* protects the fields below */
	pthread_cond_t changed;
	struct operation *in_flight; /* oldest first */
	bool connected, stop;
	pthread_mutex_t watch_lock; /* held during the callback */
	rbd_update_callback_t watch;
	void *watch_arg;
};

/* -- the thread -- */

static struct operation *take(struct client *client, uint64_t number)
{
	struct operation **at = &client->in_flight, *op;

	while (*at && (*at)->number != number)
		at = &(*at)->next;
	op = *at;
	if (!op)
		sim_fail("the storage server has completed an unknown operation");
	*at = op->next;
	return op;
}

/* Returns the next operation that has completed or timed out. Called with the lock. */
static struct operation *next_done(struct client *client, bool *resized)
{
	struct operation *op = client->in_flight;
	enum sim_remote_event event;
	uint64_t number;
	int result;

	event = sim_remote_event(client->fd, &number, &result);
	*resized = event == SIM_REMOTE_RESIZED;
	if (event == SIM_REMOTE_DONE) {
		op = take(client, number);
		op->result = result == 0 ? op->success : result;
		return op;
	}
	if (!op || op->deadline_ns > sim_now())
		return NULL;
	sim_remote_forget(client->fd, op->number);
	client->in_flight = op->next;
	op->result = -ETIMEDOUT;
	return op;
}

static void report_size(struct client *client)
{
	pthread_mutex_lock(&client->watch_lock);
	if (client->watch)
		client->watch(client->watch_arg);
	pthread_mutex_unlock(&client->watch_lock);
}

static void wait_for_event(struct client *client)
{
	struct pollfd fds[] = {{.fd = client->fd, .events = POLLIN},
			       {.fd = client->event_fd, .events = POLLIN}};
	int ms = -1;
	eventfd_t n;

	pthread_mutex_lock(&client->lock);
	if (client->in_flight) {
		uint64_t deadline_ns = client->in_flight->deadline_ns, now_ns = sim_now();

		ms = deadline_ns <= now_ns
			     ? 0
			     : (int)((deadline_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS);
	}
	pthread_mutex_unlock(&client->lock);
	poll(fds, 2, ms);
	if (fds[1].revents)
		eventfd_read(client->event_fd, &n);
}

static void *run(void *arg)
{
	struct client *client = arg;
	bool stop = false;

	while (!stop) {
		struct operation *op;
		bool resized;

		pthread_mutex_lock(&client->lock);
		op = next_done(client, &resized);
		stop = client->stop && !op;
		if (op && !op->callback) {
			op->done = true;
			pthread_cond_broadcast(&client->changed);
		}
		pthread_mutex_unlock(&client->lock);
		if (op && op->callback)
			op->callback(op, op->arg);
		if (resized)
			report_size(client);
		if (!op && !resized && !stop)
			wait_for_event(client);
	}
	return NULL;
}

/* -- operations -- */

static int submit(struct client *client, struct operation *op, enum sim_remote_op kind,
		  uint64_t offset, size_t bytes, const struct iovec *data, int n)
{
	struct operation **at = &client->in_flight;

	pthread_mutex_lock(&client->lock);
	op->number = sim_remote_submit(
		client->fd,
		&(struct sim_remote_request){
			.op = kind, .offset = offset, .bytes = bytes, .data = data, .n = n});
	op->deadline_ns = sim_now() + client->timeout_ns;
	op->success = kind == SIM_REMOTE_READ ? (int64_t)bytes : 0;
	op->next = NULL;
	if (!*at)
		eventfd_write(client->event_fd, 1);
	while (*at)
		at = &(*at)->next;
	*at = op;
	pthread_mutex_unlock(&client->lock);
	return 0;
}

/* Wait for an answer of the cluster, as functions do that block. */
static int ask(struct client *client)
{
	struct operation op = {.callback = NULL};

	submit(client, &op, SIM_REMOTE_FLUSH, 0, 0, NULL, 0);
	pthread_mutex_lock(&client->lock);
	while (!op.done)
		pthread_cond_wait(&client->changed, &client->lock);
	pthread_mutex_unlock(&client->lock);
	return (int)op.result;
}

int rbd_aio_create_completion(void *arg, rbd_callback_t callback, rbd_completion_t *c)
{
	struct operation *op = calloc(1, sizeof(*op));

	if (!op)
		return -ENOMEM;
	op->callback = callback;
	op->arg = arg;
	*c = op;
	return 0;
}

void rbd_aio_release(rbd_completion_t c)
{
	free(c);
}

ssize_t rbd_aio_get_return_value(rbd_completion_t c)
{
	const struct operation *op = c;

	return (ssize_t)op->result;
}

static size_t sum(const struct iovec *data, int n)
{
	size_t bytes = 0;

	while (n-- > 0)
		bytes += data[n].iov_len;
	return bytes;
}

int rbd_aio_readv(rbd_image_t image, const struct iovec *data, int n, uint64_t offset,
		  rbd_completion_t c)
{
	return submit(image, c, SIM_REMOTE_READ, offset, sum(data, n), data, n);
}

int rbd_aio_writev(rbd_image_t image, const struct iovec *data, int n, uint64_t offset,
		   rbd_completion_t c)
{
	return submit(image, c, SIM_REMOTE_WRITE, offset, sum(data, n), data, n);
}

int rbd_aio_read(rbd_image_t image, uint64_t offset, size_t bytes, char *to, rbd_completion_t c)
{
	const struct iovec data = {to, bytes};

	return rbd_aio_readv(image, &data, 1, offset, c);
}

int rbd_aio_write(rbd_image_t image, uint64_t offset, size_t bytes, const char *from,
		  rbd_completion_t c)
{
	const struct iovec data = {(char *)(uintptr_t)from, bytes};

	return rbd_aio_writev(image, &data, 1, offset, c);
}

int rbd_aio_write_zeroes(rbd_image_t image, uint64_t offset, size_t bytes, rbd_completion_t c,
			 int flags, int op_flags)
{
	(void)flags;
	(void)op_flags;
	return submit(image, c, SIM_REMOTE_ZERO, offset, bytes, NULL, 0);
}

int rbd_aio_discard(rbd_image_t image, uint64_t offset, uint64_t bytes, rbd_completion_t c)
{
	return submit(image, c, SIM_REMOTE_DISCARD, offset, bytes, NULL, 0);
}

int rbd_aio_flush(rbd_image_t image, rbd_completion_t c)
{
	return submit(image, c, SIM_REMOTE_FLUSH, 0, 0, NULL, 0);
}

/* As in librbd, a diff includes the writes in flight, and the bounds of a part are any bytes. */
int rbd_diff_iterate2(rbd_image_t image, const char *from, uint64_t offset, uint64_t bytes,
		      uint8_t parent, uint8_t whole,
		      int (*part)(uint64_t offset, size_t bytes, int exists, void *arg), void *arg)
{
	struct client *client = image;
	int rc = ask(client);

	(void)from;
	(void)parent;
	(void)whole;
	for (uint64_t at = offset; rc == 0 && at < offset + bytes; at += SIM_BLOCK)
		if (!sim_remote_is_hole(client->fd, at, SIM_BLOCK))
			rc = part(at, SIM_BLOCK / 8, 1, arg);
	return rc;
}

/* -- the cluster -- */

int rados_create2(rados_t *cluster_p, const char *const cluster, const char *const user,
		  uint64_t flags)
{
	struct client *client = calloc(1, sizeof(*client));

	(void)cluster;
	(void)user;
	(void)flags;
	if (!client)
		return -ENOMEM;
	client->fd = client->event_fd = -1;
	pthread_mutex_init(&client->lock, NULL);
	pthread_mutex_init(&client->watch_lock, NULL);
	pthread_cond_init(&client->changed, NULL);
	*cluster_p = client;
	return 0;
}

int rados_conf_read_file(rados_t cluster, const char *path)
{
	struct client *client = cluster;

	snprintf(client->path, sizeof(client->path), "%s", path);
	return 0;
}

int rados_conf_set(rados_t cluster, const char *option, const char *value)
{
	struct client *client = cluster;

	if (strcmp(option, "rados_osd_op_timeout") == 0)
		client->timeout_ns = strtoull(value, NULL, 10) * NS_PER_S;
	return 0;
}

int rados_connect(rados_t cluster)
{
	struct client *client = cluster;
	int rc;

	client->fd = sim_remote_connect(client->path);
	if (client->fd < 0)
		return -errno;
	client->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (client->event_fd < 0)
		return -errno;
	rc = -pthread_create(&client->thread, NULL, run, client);
	client->connected = rc == 0;
	return rc;
}

void rados_shutdown(rados_t cluster)
{
	struct client *client = cluster;

	if (client->connected) {
		pthread_mutex_lock(&client->lock);
		client->stop = true;
		pthread_mutex_unlock(&client->lock);
		eventfd_write(client->event_fd, 1);
		pthread_join(client->thread, NULL);
	}
	if (client->event_fd >= 0)
		close(client->event_fd);
	if (client->fd >= 0)
		close(client->fd);
	pthread_cond_destroy(&client->changed);
	pthread_mutex_destroy(&client->watch_lock);
	pthread_mutex_destroy(&client->lock);
	free(client);
}

int rados_getaddrs(rados_t cluster, char **addresses)
{
	const struct client *client = cluster;
	char text[16];

	snprintf(text, sizeof(text), "%u", (unsigned)sim_remote_client(client->fd));
	*addresses = strdup(text);
	return *addresses ? 0 : -ENOMEM;
}

void rados_buffer_free(char *buffer)
{
	free(buffer);
}

int rados_cluster_fsid(rados_t cluster, char *buffer, size_t bytes)
{
	(void)cluster;
	return snprintf(buffer, bytes, "6f1a");
}

int rados_blocklist_add(rados_t cluster, char *address, uint32_t seconds)
{
	int rc = ask(cluster);

	(void)seconds;
	if (rc == 0)
		sim_remote_fence((uint32_t)strtoul(address, NULL, 10));
	return rc;
}

int rados_wait_for_latest_osdmap(rados_t cluster)
{
	const struct client *client = cluster;
	int rc = ask(cluster);

	if (rc == 0)
		sim_remote_update(client->fd);
	return rc;
}

int rados_ioctx_create(rados_t cluster, const char *pool, rados_ioctx_t *ioctx)
{
	(void)pool;
	*ioctx = cluster;
	return 0;
}

void rados_ioctx_destroy(rados_ioctx_t ioctx)
{
	(void)ioctx;
}

void rados_ioctx_set_namespace(rados_ioctx_t ioctx, const char *namespace)
{
	(void)ioctx;
	(void)namespace;
}

void rados_set_pool_full_try(rados_ioctx_t ioctx)
{
	(void)ioctx;
}

int64_t rados_ioctx_get_id(rados_ioctx_t ioctx)
{
	(void)ioctx;
	return 1;
}

/* -- the image -- */

int rbd_open(rados_ioctx_t ioctx, const char *name, rbd_image_t *image, const char *snapshot)
{
	(void)name;
	(void)snapshot;
	*image = ioctx;
	return ask(ioctx);
}

int rbd_open_read_only(rados_ioctx_t ioctx, const char *name, rbd_image_t *image,
		       const char *snapshot)
{
	return rbd_open(ioctx, name, image, snapshot);
}

int rbd_close(rbd_image_t image)
{
	struct client *client = image;
	int rc;

	pthread_mutex_lock(&client->lock);
	if (client->in_flight)
		sim_wrong("an image is closed while an operation is in flight");
	pthread_mutex_unlock(&client->lock);
	rc = ask(client);
	if (rc == 0)
		sim_remote_unlock(client->fd);
	return rc;
}

int rbd_lock_acquire(rbd_image_t image, rbd_lock_mode_t mode)
{
	struct client *client = image;
	int rc = ask(client);

	(void)mode;
	if (rc == 0 && sim_remote_lock(client->fd) != 0)
		rc = -EROFS;
	return rc;
}

int rbd_lock_get_owners(rbd_image_t image, rbd_lock_mode_t *mode, char **owners, size_t *n)
{
	(void)image;
	(void)owners;
	*mode = RBD_LOCK_MODE_EXCLUSIVE;
	*n = 0;
	return 0;
}

void rbd_lock_get_owners_cleanup(char **owners, size_t n)
{
	(void)owners;
	(void)n;
}

int rbd_config_image_list(rbd_image_t image, rbd_config_option_t *options, int *n)
{
	(void)image;
	(void)options;
	*n = 0;
	return 0;
}

void rbd_config_image_list_cleanup(rbd_config_option_t *options, int n)
{
	(void)options;
	(void)n;
}

int rbd_get_features(rbd_image_t image, uint64_t *features)
{
	(void)image;
	*features = RBD_FEATURE_EXCLUSIVE_LOCK;
	return 0;
}

int rbd_get_id(rbd_image_t image, char *id, size_t bytes)
{
	const struct client *client = image;

	snprintf(id, bytes, "%s", client->path);
	return 0;
}

int rbd_snap_get_id(rbd_image_t image, const char *name, uint64_t *id)
{
	(void)image;
	(void)name;
	*id = 0;
	return 0;
}

int rbd_get_size(rbd_image_t image, uint64_t *bytes)
{
	const struct client *client = image;
	int64_t size = sim_remote_size(client->fd);

	*bytes = size > 0 ? (uint64_t)size : 0;
	return size < 0 ? (int)size : 0;
}

int rbd_update_watch(rbd_image_t image, uint64_t *handle, rbd_update_callback_t callback, void *arg)
{
	struct client *client = image;

	pthread_mutex_lock(&client->watch_lock);
	client->watch = callback;
	client->watch_arg = arg;
	pthread_mutex_unlock(&client->watch_lock);
	*handle = 1;
	return 0;
}

int rbd_update_unwatch(rbd_image_t image, uint64_t handle)
{
	(void)handle;
	return rbd_update_watch(image, &handle, NULL, NULL);
}
