/* SPDX-License-Identifier: BSD-3-Clause */
/* nbd.c - plugin interface of the nbd backend, which serves the export of an NBD server. */
#define GANTRY_API_VERSION 1

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../common/identity.h"
#include "nbd.h"

static const struct gantry_option options[] = {
	{"uri", GANTRY_OPT_STRING, offsetof(struct nb_conf, uri), NULL, 0, 0, NULL, NULL,
	 "URI of the export, such as \"nbd://host/export\", \"nbds://host\" (TLS) or "
	 "\"nbd+unix:///export?socket=/path\"."},
	{"connections", GANTRY_OPT_INT, offsetof(struct nb_conf, connections), "1", 1,
	 NB_MAX_CONNECTIONS, NULL, NULL,
	 "Connections of each lane. More than one in total needs a server that allows several (NBD_FLAG_CAN_MULTI_CONN)."},
	{"block", GANTRY_OPT_SIZE, offsetof(struct nb_conf, block), "0", 0, 65536, NULL, NULL,
	 "Block size: a power of two from 512 to 64 KiB. 0: the smallest that the server permits, at least 512."},
	{"read_only", GANTRY_OPT_BOOL, offsetof(struct nb_conf, read_only), "false", 0, 0, NULL,
	 NULL, "Reject writes, also if the export is writable."},
	{"connect_timeout", GANTRY_OPT_TIME, offsetof(struct nb_conf, connect_timeout_ns), "10s",
	 1000000, 3600000000000, NULL, NULL,
	 "Time in which the server must accept a connection and describe the export."},
	{"quiesce_time", GANTRY_OPT_TIME, offsetof(struct nb_conf, quiesce_time_ns), "5s", 0,
	 3600000000000, NULL, NULL,
	 "Time in which the server can still execute writes that it has not answered. After the loss of a connection, new "
	 "sessions and writes that overlap these writes wait; after the start of the target, new sessions wait."},
	{"tls_certificates", GANTRY_OPT_STRING, offsetof(struct nb_conf, tls_certificates), "", 0,
	 0, NULL, NULL,
	 "Directory with the certificates of this client, for nbds. Empty: where libnbd looks."},
	{"tls_psk_file", GANTRY_OPT_STRING, offsetof(struct nb_conf, tls_psk_file), "",
	 GANTRY_PATH_KEEP, 0, NULL, NULL,
	 "File with pre-shared keys, for nbds. Empty: use certificates."},
	{"tls_username", GANTRY_OPT_STRING, offsetof(struct nb_conf, tls_username), "", 0, 0, NULL,
	 NULL,
	 "User name of the pre-shared key. Empty: that of the URI, else that of the process."},
	IDENTITY_OPTION(
		struct nb_conf,
		"derived from the URI without its user name, and of a server on this machine also "
		"from the machine id."),
	GANTRY_OPTION_END,
};

/* -- the volume -- */

static uint32_t ops_of(const struct nb_conf *conf, const struct nb_export *export)
{
	uint32_t ops = 1u << GANTRY_OP_NOP | 1u << GANTRY_OP_READ;

	if (export->flush || export->read_only)
		ops |= 1u << GANTRY_OP_FLUSH;
	if (export->extents)
		ops |= 1u << GANTRY_OP_EXTENTS;
	if (conf->read_only || export->read_only)
		return ops;
	ops |= 1u << GANTRY_OP_WRITE;
	if (export->zero)
		ops |= 1u << GANTRY_OP_WRITE_ZEROES;
	if (export->trim)
		ops |= 1u << GANTRY_OP_DISCARD;
	return ops;
}

static void nbd_volume(void *backend, struct gantry_volume_info *volume)
{
	const struct nb_store *store = backend;
	int read_only = store->conf->read_only || store->export.read_only;

	*volume = (struct gantry_volume_info){
		.size = store->export.size,
		.block_size = store->block_size,
		.ops = ops_of(store->conf, &store->export),
		.flags = read_only ? GANTRY_VOLUME_READ_ONLY : 0,
		.max_io = store->max_io,
		.verifier = nb_get(&store->verifier),
	};
	memcpy(volume->uuid, store->uuid, sizeof volume->uuid);
}

static void nbd_check(const void *arg, struct gantry_check *check)
{
	const struct nb_conf *conf = arg;
	const char *fault = nb_uri_fault(conf->uri);

	if (fault)
		gantry_option_fault(check, "uri", "%s", fault);
	if (conf->block & (conf->block - 1) || (conf->block && conf->block < 512))
		gantry_option_fault(
			check, "block",
			"is not a power of two from 512 to 64 KiB; write such as \"4KiB\"");
	identity_check(conf->uuid, check);
	check->volume = (struct gantry_volume_info){
		.block_size = (uint32_t)conf->block,
		.flags = conf->read_only ? GANTRY_VOLUME_READ_ONLY : 0,
	};
	identity_option(conf->uuid, check->volume.uuid);
}

/* Find block size and max_io. Returns 0; -EINVAL: the export cannot be a volume (logged). */
static int fit(struct nb_store *store)
{
	const struct nb_export *export = &store->export;
	uint64_t block = store->conf->block ? store->conf->block : export->block;
	uint64_t max_io = export->max_io < NB_MAX_IO ? export->max_io : NB_MAX_IO;

	if (block < export->block || block > 65536 || (block & (block - 1))) {
		gantry_log_error(store->host,
				 "%s: block size not possible (block=%llu, server minimum=%llu): "
				 "set block to a power of two from that minimum to 64 KiB",
				 store->text, (unsigned long long)block,
				 (unsigned long long)export->block);
		return -EINVAL;
	}
	if (export->size == 0 || export->size % block) {
		gantry_log_error(store->host,
				 "%s: size is 0 or not a multiple of the block size (size=%llu, "
				 "block=%llu): resize the export, or set a smaller block",
				 store->text, (unsigned long long)export->size,
				 (unsigned long long)block);
		return -EINVAL;
	}
	if (max_io < block) {
		gantry_log_error(store->host,
				 "%s: requests of one block are too long for the server (limit "
				 "%llu, block=%llu): set a smaller block",
				 store->text, (unsigned long long)max_io,
				 (unsigned long long)block);
		return -EINVAL;
	}
	store->block_size = (uint32_t)block;
	store->max_io = (uint32_t)(max_io - max_io % block);
	return 0;
}

/* Returns 0; -EINVAL: the server does not allow that many connections, which is logged. */
static int allow_connections(const struct nb_store *store, uint64_t n)
{
	if (n <= 1 || store->export.multi_conn)
		return 0;
	gantry_log_error(store->host,
			 "%s: the server does not allow several connections (connections=%lld, all "
			 "lanes=%llu): set connections = 1 and one lane",
			 store->text, (long long)store->conf->connections, (unsigned long long)n);
	return -EINVAL;
}

/* -- life cycle -- */

static int connect_first(struct nb_store *store)
{
	char why[256];

	store->first = nb_dial(store, &store->export, why, sizeof why);
	if (store->first)
		return 0;
	gantry_log_error(store->host, "%s: cannot connect (%s): check the NBD server and the uri",
			 store->text, why);
	return -ECONNREFUSED;
}

static int nbd_open(const struct gantry_host *host, const void *conf, void **backend_p)
{
	struct nb_store *store = gantry_zalloc_lines(sizeof *store);
	int rc;

	if (!store)
		return -ENOMEM;
	store->host = host;
	store->conf = conf;
	store->verifier = identity_nonce();
	nb_uri_text(store->conf->uri, store->text);
	if (*store->conf->uuid)
		identity_option(store->conf->uuid, store->uuid);
	else
		nb_uri_uuid(host, store->text, store->uuid);
	store->former_end_ns = host->now_ns(host) + store->conf->quiesce_time_ns;
	rc = connect_first(store);
	if (!rc)
		rc = fit(store);
	if (!rc)
		rc = allow_connections(store, (uint64_t)store->conf->connections);
	if (!rc)
		rc = nb_connector_start(store);
	if (rc) {
		nbd_close(store->first);
		free(store);
		return rc;
	}
	*backend_p = store;
	return 0;
}

static int nbd_start(void *backend, struct gantry_lane *lane, uint32_t depth, void **self_p)
{
	struct nb_store *store = backend;
	struct nb_lane *self;
	int rc = allow_connections(store, lane->n_lanes * (uint64_t)store->conf->connections);

	if (!rc)
		rc = nb_lane_start(store, lane, depth, &self);
	if (rc)
		return rc;
	*self_p = self;
	return 0;
}

static int nbd_submit(void *self, struct gantry_io *io)
{
	return nb_lane_submit(self, io);
}

static int nbd_poll_lane(void *self)
{
	return nb_lane_poll(self);
}

static int nbd_arm(void *self)
{
	return nb_lane_arm(self);
}

static int nbd_fd(void *self)
{
	const struct nb_lane *lane = self;

	return lane->epoll_fd;
}

static void nbd_stop(void *self)
{
	nb_lane_stop(self);
}

static void nbd_report(void *backend, struct gantry_writer *w)
{
	const struct nb_store *store = backend;

	w->string(w, "uri", store->text);
	identity_report(w, store->uuid, nb_get(&store->verifier));
	w->u64(w, "size_bytes", store->export.size);
	w->boolean(w, "multi_conn", store->export.multi_conn);
	w->boolean(w, "changed", __atomic_load_n(&store->changed, __ATOMIC_RELAXED));
	w->u64(w, "connection_losses", nb_get(&store->n_losses));
	w->u64(w, "write_losses", nb_get(&store->epoch));
	w->u64(w, "connects", nb_get(&store->n_reconnects));
	w->u64(w, "failed_connects", nb_get(&store->n_failed_dials));
	w->u64(w, "resent_ops", nb_get(&store->n_resent));
	w->u64(w, "held_ops", nb_get(&store->n_held));
	w->u64(w, "timeout_ops", nb_get(&store->n_timeouts));
	w->u64(w, "failed_flush_ops", nb_get(&store->n_failed_flushes));
	w->u64(w, "error_ops", nb_get(&store->n_errors));
}

static void nbd_close_store(void *backend)
{
	struct nb_store *store = backend;

	nb_connector_stop(store);
	nbd_close(store->first);
	free(store);
}

static int nbd_quiesce(void *backend, uint64_t *mark)
{
	return nb_late_quiesce(backend, mark);
}

static const struct gantry_backend_ops ops = {
	.open = nbd_open,
	.volume = nbd_volume,
	.start = nbd_start,
	.submit = nbd_submit,
	.poll = nbd_poll_lane,
	.arm = nbd_arm,
	.fd = nbd_fd,
	.stop = nbd_stop,
	.report = nbd_report,
	.close = nbd_close_store,
	.quiesce = nbd_quiesce,
};

GANTRY_PLUGIN(nbd) = {
	GANTRY_PLUGIN_HEAD,
	.kind = GANTRY_KIND_BACKEND,
	.name = "nbd",
	.version = "1",
	.summary = "serves the export of an NBD server",
	.options = options,
	.conf_size = sizeof(struct nb_conf),
	.ops_size = sizeof ops,
	.ops = &ops,
	.check = nbd_check,
};
