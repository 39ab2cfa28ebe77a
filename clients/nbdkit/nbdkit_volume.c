/* SPDX-License-Identifier: BSD-3-Clause */
/* nbdkit_volume.c - the open volume, its queues, and the count of connections. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include "nbdkit_server.h"

#define MAX_DEFAULT_QUEUES 4

struct server_conf server_conf = {.queues = 0, .depth = 64, .piece = 256 * 1024};

static struct {
	struct gantry_volume *volume; /* changes only while there is no connection */
	struct gantry_volume_info info;
	uint32_t piece;
	int lost;

	pthread_mutex_t lock; /* protects all fields below, and the reopening of the volume */
	struct server_queue *queues;
	uint32_t n_queues;
	uint32_t connections;
} server = {.lock = PTHREAD_MUTEX_INITIALIZER};

const struct gantry_volume_info *server_info(void)
{
	return &server.info;
}

uint64_t server_size(void)
{
	struct gantry_volume_info info;

	gantry_volume_get_info(server.volume, &info);
	return info.size;
}

uint32_t server_piece(void)
{
	return server.piece;
}

/* Returns the name of the volume for messages, as the user gave it. */
static const char *where(void)
{
	return server_conf.config ? server_conf.config : server_conf.uri;
}

static int connect_volume(uint32_t n_queues)
{
	struct gantry_volume_attr attr = GANTRY_VOLUME_ATTR_INIT;

	attr.queues = n_queues;
	attr.depth = server_conf.depth;
	attr.copy_bytes = server_conf.piece;
	if (server_conf.uri)
		return gantry_volume_open(server_conf.uri, &attr, &server.volume);
	return gantry_volume_open_role(server_conf.config, server_conf.volume, &attr,
				       &server.volume);
}

/* Read the properties of the volume, and check that NBD can represent them. */
static int describe_volume(void)
{
	struct gantry_volume_info *info = &server.info;

	gantry_volume_get_info(server.volume, info);
	server.piece = gantry_volume_copy_bytes(server.volume);
	if (info->size <= INT64_MAX && info->block_size && info->size % info->block_size == 0 &&
	    server.piece >= info->block_size)
		return 0;
	nbdkit_error(
		"%s: volume cannot be served (size=%llu, block_size=%u, piece=%u): the size must be a multiple of the "
		"block size, and piece at least the block size",
		where(), (unsigned long long)info->size, info->block_size, server.piece);
	return -1;
}

/*
 * Returns the number of queues: one for each usable processor, because threads on one processor
 * share a queue.
 */
static uint32_t count_queues(void)
{
	cpu_set_t set;
	uint32_t n = 1;

	if (server_conf.queues)
		return server_conf.queues;
	if (!sched_getaffinity(0, sizeof(set), &set))
		n = (uint32_t)CPU_COUNT(&set);
	return n < MAX_DEFAULT_QUEUES ? n : MAX_DEFAULT_QUEUES;
}

static void close_queues(void)
{
	while (server.n_queues)
		server_queue_close(&server.queues[--server.n_queues]);
	free(server.queues);
	server.queues = NULL;
}

static int open_queues(uint32_t n)
{
	server.queues = calloc(n, sizeof *server.queues);
	if (!server.queues) {
		nbdkit_error("out of memory");
		return -1;
	}
	for (; server.n_queues < n; server.n_queues++)
		if (server_queue_open(&server.queues[server.n_queues], server.volume)) {
			nbdkit_error("cannot open a queue: %s", gantry_error());
			close_queues();
			return -1;
		}
	return 0;
}

int server_open(void)
{
	uint32_t n_queues = count_queues();

	if (connect_volume(n_queues)) {
		nbdkit_error("cannot open the volume: %s", gantry_error());
		return -1;
	}
	if (describe_volume() || open_queues(n_queues)) {
		gantry_volume_close(&server.volume);
		return -1;
	}
	__atomic_store_n(&server.lost, 0, __ATOMIC_RELAXED);
	return 0;
}

void server_close(void)
{
	if (!server.volume)
		return;
	close_queues();
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

struct server_queue *server_queue(void)
{
	int cpu = sched_getcpu();

	return &server.queues[cpu < 0 ? 0 : (uint32_t)cpu % server.n_queues];
}
