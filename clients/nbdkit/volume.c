/* SPDX-License-Identifier: BSD-3-Clause */
/* volume.c - the one volume that is open, and its queues. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include "server.h"

struct server_conf server_conf = { .queues = 16, .depth = 4, .piece = 256 * 1024 };

static struct {
	struct gantry_volume *volume; /* changes only while there is no connection */
	struct gantry_volume_info info;
	uint32_t piece;
	int lost;

	pthread_mutex_t lock; /* of all below, and of opening the volume again */
	pthread_cond_t given;
	struct server_queue *queues; /* server_conf.queues */
	struct server_queue *free;
	uint32_t opened;
	uint32_t connections;
} server = { .lock = PTHREAD_MUTEX_INITIALIZER, .given = PTHREAD_COND_INITIALIZER };

const struct gantry_volume_info *server_info(void)
{
	return &server.info;
}

uint32_t server_piece(void)
{
	return server.piece;
}

/* What the user called it, for messages. */
static const char *where(void)
{
	return server_conf.config ? server_conf.config : server_conf.uri;
}

static int connect_volume(void)
{
	struct gantry_volume_attr attr = GANTRY_VOLUME_ATTR_INIT;

	attr.queues = server_conf.queues;
	attr.depth = server_conf.depth;
	attr.copy_bytes = server_conf.piece;
	if (server_conf.uri)
		return gantry_volume_open(server_conf.uri, &attr, &server.volume);
	return gantry_volume_open_role(server_conf.config, server_conf.volume, &attr, &server.volume);
}

/* What NBD can say of it. */
static int describe_volume(void)
{
	struct gantry_volume_info *info = &server.info;

	gantry_volume_get_info(server.volume, info);
	server.piece = gantry_volume_copy_bytes(server.volume);
	if (info->size <= INT64_MAX && info->block_size && info->size % info->block_size == 0 && server.piece >= info->block_size)
		return 0;
	nbdkit_error("%s: a volume of %llu bytes in blocks of %u cannot be served: the size must be a multiple of the block, "
		     "and piece=%u no less than it",
		     where(), (unsigned long long)info->size, info->block_size, server.piece);
	return -1;
}

int server_open(void)
{
	server.queues = calloc(server_conf.queues, sizeof *server.queues);
	if (!server.queues) {
		nbdkit_error("out of memory");
		return -1;
	}
	if (connect_volume()) {
		nbdkit_error("cannot open the volume: %s", gantry_error());
		goto out_undo_queues;
	}
	if (describe_volume())
		goto out_undo_volume;
	__atomic_store_n(&server.lost, 0, __ATOMIC_RELAXED);
	return 0;

out_undo_volume:
	gantry_volume_close(&server.volume);
out_undo_queues:
	free(server.queues);
	server.queues = NULL;
	return -1;
}

void server_close(void)
{
	uint32_t i;

	for (i = 0; i < server.opened; i++)
		gantry_queue_close(&server.queues[i].queue);
	server.opened = 0;
	server.free = NULL;
	free(server.queues);
	server.queues = NULL;
	if (server.volume)
		gantry_volume_close(&server.volume);
}

int server_connect(void)
{
	int rc = 0;

	pthread_mutex_lock(&server.lock);
	if (!server.connections && __atomic_load_n(&server.lost, __ATOMIC_RELAXED))
		server_close();
	if (!server.volume)
		rc = server_open();
	if (!rc)
		server.connections++;
	pthread_mutex_unlock(&server.lock);
	return rc;
}

void server_disconnect(void)
{
	pthread_mutex_lock(&server.lock);
	server.connections--;
	pthread_mutex_unlock(&server.lock);
}

int server_lost(void)
{
	return !__atomic_exchange_n(&server.lost, 1, __ATOMIC_RELAXED);
}

/* Under the lock: one that nobody has used yet. */
static struct server_queue *open_one(void)
{
	struct server_queue *own = &server.queues[server.opened];

	if (gantry_queue_open(server.volume, &own->queue)) {
		nbdkit_error("cannot open a queue: %s", gantry_error());
		return NULL;
	}
	server.opened++;
	return own;
}

struct server_queue *server_take(void)
{
	struct server_queue *own;

	pthread_mutex_lock(&server.lock);
	while (!server.free && server.opened == server_conf.queues)
		pthread_cond_wait(&server.given, &server.lock);
	own = server.free;
	if (own)
		server.free = own->next;
	else
		own = open_one();
	pthread_mutex_unlock(&server.lock);
	return own;
}

void server_give(struct server_queue *queue)
{
	pthread_mutex_lock(&server.lock);
	queue->next = server.free;
	server.free = queue;
	pthread_mutex_unlock(&server.lock);
	pthread_cond_signal(&server.given);
}
