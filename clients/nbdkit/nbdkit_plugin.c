/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbdkit_plugin.c - the callbacks of the nbdkit plugin: parameters, properties of the volume,
 * requests. See nbdkit-plugin(3).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NBDKIT_API_VERSION 2
#define THREAD_MODEL NBDKIT_THREAD_MODEL_PARALLEL
#include <nbdkit-plugin.h>

#include "nbdkit_server.h"

#define MAX_QUEUES 64
#define MAX_DEPTH 256
#define MAX_PIECE (64 << 20) /* longest request of nbdkit, in bytes */
#define MIN_PREFERRED 4096   /* block size that file systems prefer, in bytes */

/* -- parameters -- */

static int set_number(const char *key, const char *value, int64_t max, uint32_t *number)
{
	int64_t n = nbdkit_parse_size(value);

	if (n < 0)
		return -1;
	if (n < 1 || n > max) {
		nbdkit_error("%s=%s: out of range (limits 1 and %lld)", key, value, (long long)max);
		return -1;
	}
	*number = (uint32_t)n;
	return 0;
}

static int set_config(const char *value)
{
	free(server_conf.config);
	server_conf.config = nbdkit_realpath(value);
	return server_conf.config ? 0 : -1;
}

static int server_config(const char *key, const char *value)
{
	if (!strcmp(key, "config"))
		return set_config(value);
	if (!strcmp(key, "volume"))
		server_conf.volume = value;
	else if (!strcmp(key, "uri"))
		server_conf.uri = value;
	else if (!strcmp(key, "queues"))
		return set_number(key, value, MAX_QUEUES, &server_conf.queues);
	else if (!strcmp(key, "depth"))
		return set_number(key, value, MAX_DEPTH, &server_conf.depth);
	else if (!strcmp(key, "piece"))
		return set_number(key, value, MAX_PIECE, &server_conf.piece);
	else {
		nbdkit_error("unknown parameter %s=%s: see nbdkit gantry --help", key, value);
		return -1;
	}
	return 0;
}

static int server_config_complete(void)
{
	if (!server_conf.config == !server_conf.uri) {
		nbdkit_error("no volume, or two: give either config=FILE, or uri=URI");
		return -1;
	}
	if (server_conf.uri && server_conf.volume) {
		nbdkit_error("volume=%s is a role of config=FILE; a URI names the volume itself",
			     server_conf.volume);
		return -1;
	}
	return 0;
}

static void server_unload(void)
{
	free(server_conf.config);
}

/* -- start and connections -- */

/*
 * Open and close the volume once before nbdkit forks. Threads do not survive a fork, so after_fork
 * opens the volume again. But nbdkit can report success to its caller before that, so this callback
 * must find the errors.
 */
static int server_get_ready(void)
{
	if (server_open())
		return -1;
	server_close();
	return 0;
}

static int server_after_fork(void)
{
	return server_open();
}

static void *server_open_connection(int readonly)
{
	(void)readonly;
	return server_connect() ? NULL : NBDKIT_HANDLE_NOT_NEEDED;
}

static void server_close_connection(void *handle)
{
	(void)handle;
	server_disconnect();
}

/* -- properties of the volume -- */

static int supports(enum gantry_opcode opcode)
{
	return !!(server_info()->ops & 1u << opcode);
}

/* nbdkit calls this function once for each connection: NBD cannot notify a client of a change. */
static int64_t server_get_size(void *handle)
{
	(void)handle;
	return (int64_t)server_size();
}

static int server_block_size(void *handle, uint32_t *minimum, uint32_t *preferred,
			     uint32_t *maximum)
{
	(void)handle;
	*minimum = server_info()->block_size;
	*preferred = *minimum > MIN_PREFERRED ? *minimum : MIN_PREFERRED;
	*maximum = MAX_PIECE;
	return 0;
}

static int server_can_write(void *handle)
{
	(void)handle;
	return supports(GANTRY_OP_WRITE) && !(server_info()->flags & GANTRY_VOLUME_READ_ONLY);
}

static int server_can_flush(void *handle)
{
	(void)handle;
	return supports(GANTRY_OP_FLUSH);
}

static int server_can_trim(void *handle)
{
	(void)handle;
	return supports(GANTRY_OP_DISCARD);
}

/*
 * Without this callback nbdkit writes zeroes by pwrite. WRITE_ZEROES sends no data, so it is never
 * slower than pwrite; this function is therefore the callback can_fast_zero as well.
 */
static int server_can_zero(void *handle)
{
	(void)handle;
	return supports(GANTRY_OP_WRITE_ZEROES);
}

static int server_can_extents(void *handle)
{
	(void)handle;
	return supports(GANTRY_OP_EXTENTS);
}

static int server_can_fua(void *handle)
{
	(void)handle;
	return supports(GANTRY_OP_FLUSH) ? NBDKIT_FUA_NATIVE : NBDKIT_FUA_NONE;
}

/*
 * All connections share one session, and the plugin caches nothing. So a flush covers the writes of
 * all connections.
 */
static int server_can_multi_conn(void *handle)
{
	(void)handle;
	return 1;
}

/* -- requests -- */

static unsigned fua(uint32_t flags)
{
	return flags & NBDKIT_FLAG_FUA ? GANTRY_IO_FUA : 0;
}

static int server_pread(void *handle, void *buf, uint32_t count, uint64_t offset, uint32_t flags)
{
	(void)handle;
	(void)flags;
	return server_request(GANTRY_OP_READ, buf, count, offset, 0);
}

static int server_pwrite(void *handle, const void *buf, uint32_t count, uint64_t offset,
			 uint32_t flags)
{
	(void)handle;
	/* the cast is safe, because a write only reads the buffer */
	return server_request(GANTRY_OP_WRITE, (void *)buf, count, offset, fua(flags));
}

static int server_flush(void *handle, uint32_t flags)
{
	(void)handle;
	(void)flags;
	return server_request(GANTRY_OP_FLUSH, NULL, 0, 0, 0);
}

/* GANTRY_OP_DISCARD has no FUA flag, so a flush follows a discard with FUA. */
static int server_trim(void *handle, uint32_t count, uint64_t offset, uint32_t flags)
{
	int rc = server_request(GANTRY_OP_DISCARD, NULL, count, offset, 0);

	return rc || !fua(flags) ? rc : server_flush(handle, 0);
}

/*
 * Do not use a discard, although NBD permits it: a volume need not read as zeroes after a discard.
 */
static int server_zero(void *handle, uint32_t count, uint64_t offset, uint32_t flags)
{
	(void)handle;
	return server_request(GANTRY_OP_WRITE_ZEROES, NULL, count, offset, fua(flags));
}

static uint32_t nbd_extent(uint32_t flags)
{
	return (flags & GANTRY_EXTENT_HOLE ? NBDKIT_EXTENT_HOLE : 0) |
	       (flags & GANTRY_EXTENT_ZERO ? NBDKIT_EXTENT_ZERO : 0);
}

/*
 * Report the extents of all blocks that the range touches. nbdkit ignores what is outside the
 * range, and accepts less than the range.
 */
static int server_extents(void *handle, uint32_t count, uint64_t offset, uint32_t flags,
			  struct nbdkit_extents *out)
{
	const uint64_t mask = server_info()->block_size - 1, first = offset & ~mask;
	const uint64_t end = (offset + count + mask) & ~mask, most = UINT32_MAX & ~mask;
	const uint32_t bytes = (uint32_t)(end - first < most ? end - first : most);
	struct gantry_extents in;
	uint64_t at = first;
	int rc;

	(void)handle;
	(void)flags;
	rc = server_request(GANTRY_OP_EXTENTS, &in, bytes, first, 0);
	for (uint32_t i = 0; rc == 0 && i < in.count; at += in.extent[i++].length)
		rc = nbdkit_add_extent(out, at, in.extent[i].length,
				       nbd_extent(in.extent[i].flags));
	return rc;
}

static struct nbdkit_plugin plugin = {
	.name = "gantry",
	.longname = "gantry volume",
	.version = PACKAGE_VERSION,
	.description = "Serves a volume of gantry. See nbdkit-gantry-plugin(1).",
	.config = server_config,
	.config_complete = server_config_complete,
	.config_help =
		"config=FILE     configuration of gantry; or uri=URI\n"
		"volume=NAME     the role in it that connects to the volume (the only such one)\n"
		"uri=URI         such as gantry:///volume0?device=dpu0; also without uri=\n"
		"queues=N        lanes of the session, 1 to 64 (one for each processor, up to 4)\n"
		"depth=N         IOs in flight on each lane, 1 to 256 (64)\n"
		"piece=SIZE      longer requests become several IOs (256K)",
	.magic_config_key = "uri",
	.unload = server_unload,
	.get_ready = server_get_ready,
	.after_fork = server_after_fork,
	.cleanup = server_close,
	.open = server_open_connection,
	.close = server_close_connection,
	.get_size = server_get_size,
	.block_size = server_block_size,
	.can_write = server_can_write,
	.can_flush = server_can_flush,
	.can_trim = server_can_trim,
	.can_zero = server_can_zero,
	.can_fast_zero = server_can_zero,
	.can_fua = server_can_fua,
	.can_multi_conn = server_can_multi_conn,
	.can_extents = server_can_extents,
	.pread = server_pread,
	.pwrite = server_pwrite,
	.flush = server_flush,
	.trim = server_trim,
	.zero = server_zero,
	.extents = server_extents,
};

struct nbdkit_plugin *plugin_init(void); /* the next line defines it */
NBDKIT_REGISTER_PLUGIN(plugin)
