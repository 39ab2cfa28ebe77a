/* SPDX-License-Identifier: BSD-3-Clause */
/* rbd_client.c - connects to the cluster, opens and locks the image, and closes both. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "../common/identity.h"
#include "rbd.h"

#define MAX_OWNERS 4
#define MAX_SETTINGS 256 /* settings of an image that librbd reports */
#define NS_PER_S 1000000000u

/* Log an error, but not the same one in each attempt to fence. */
#define client_error(store, quiet, ...) \
	((quiet) ? (void)0 : (void)gantry_log_error((store)->host, __VA_ARGS__))

/* Set the options on which the protocol depends. They override the configuration of Ceph. */
static int configure(const struct rbd_store *store, rados_t cluster)
{
	char seconds[24];
	int rc;

	snprintf(seconds, sizeof seconds, "%" PRIu64,
		 (store->conf->osd_op_timeout_ns + NS_PER_S - 1) / NS_PER_S);
	const char *const settings[][2] = {
		{"rados_osd_op_timeout", seconds},
		{"rados_mon_op_timeout", seconds},
		{"client_mount_timeout", seconds},
		{"rbd_cache", store->conf->cache ? "true" : "false"},
		{"rbd_blocklist_on_break_lock", "true"},
		{"rbd_non_blocking_aio", "true"},
	};

	for (unsigned i = 0; i < sizeof settings / sizeof *settings; i++) {
		rc = rados_conf_set(cluster, settings[i][0], settings[i][1]);
		if (rc)
			return rc;
	}
	return 0;
}

int rbd_client_connect(struct rbd_store *store, struct rbd_client *client, int quiet)
{
	const struct rbd_conf *conf = store->conf;
	char user[128];
	int rc;

	memset(client, 0, sizeof *client);
	snprintf(user, sizeof user, "client.%s", conf->user);
	rc = rados_create2(&client->cluster, conf->cluster, user, 0);
	if (rc) {
		client->cluster = NULL;
		client_error(store, quiet, "%s: cannot create a client of Ceph (user=%s): %s",
			     store->name, user, strerror(-rc));
		return rc;
	}
	rc = rados_conf_read_file(client->cluster, *conf->conf ? conf->conf : NULL);
	if (rc) {
		client_error(store, quiet,
			     "%s: cannot read the configuration of Ceph (conf=%s): %s", store->name,
			     *conf->conf ? conf->conf : "default", strerror(-rc));
		goto out_undo;
	}
	rc = configure(store, client->cluster);
	if (rc) {
		client_error(store, quiet, "%s: librados rejects an option: %s", store->name,
			     strerror(-rc));
		goto out_undo;
	}
	rc = rados_connect(client->cluster);
	if (rc) {
		client_error(
			store, quiet, "%s: cannot connect to the cluster (conf=%s, user=%s): %s",
			store->name, *conf->conf ? conf->conf : "default", user, strerror(-rc));
		goto out_undo;
	}
	rc = rados_getaddrs(client->cluster, &client->addresses);
	if (rc == 0)
		return 0;
	client_error(store, quiet, "%s: cannot get the address of this client: %s", store->name,
		     strerror(-rc));
out_undo:
	rbd_client_close(client);
	return rc;
}

/* Derive a UUID from the ids of the image, or of its snapshot. */
static int identify(struct rbd_store *store, struct rbd_client *client)
{
	const struct rbd_conf *conf = store->conf;
	char fsid[64] = "", id[RBD_ID_BYTES] = "", name[640];
	uint64_t snapshot = 0;
	int rc;

	rc = rados_cluster_fsid(client->cluster, fsid, sizeof fsid);
	if (rc < 0)
		return rc;
	rc = rbd_get_id(client->image, id, sizeof id);
	if (rc < 0)
		return rc;
	if (*conf->snapshot) {
		rc = rbd_snap_get_id(client->image, conf->snapshot, &snapshot);
		if (rc < 0)
			return rc;
	}
	snprintf(name, sizeof name, "rbd:%s:%" PRId64 ":%s:%s:%" PRIu64, fsid,
		 rados_ioctx_get_id(client->ioctx), conf->namespace, id, snapshot);
	identity_of_name(name, client->uuid);
	return 0;
}

/*
 * Check the options of the client that the metadata of the image or its pool can override. librbd
 * reports a value as the metadata has it, for example "1" or "True".
 */
static int check_settings(struct rbd_store *store, struct rbd_client *client, int quiet)
{
	rbd_config_option_t *options = calloc(MAX_SETTINGS, sizeof *options);
	int n = MAX_SETTINGS, has_writeback = store->conf->cache, is_persistent = 0, rc = -ENOMEM;

	if (options)
		rc = rbd_config_image_list(client->image, options, &n);
	if (rc) {
		client_error(store, quiet, "%s: cannot get the settings of the image: %s",
			     store->name, strerror(-rc));
		free(options);
		return rc;
	}
	for (int i = 0; i < n; i++) {
		const char *name = options[i].name, *value = options[i].value;

		if (!strcmp(name, "rbd_cache"))
			has_writeback = strcmp(value, "false") && strcmp(value, "0");
		if (!strcmp(name, "rbd_persistent_cache_mode") && strcmp(value, "disabled"))
			is_persistent = 1;
		if (!store->is_read_only && !strcmp(name, "rbd_blocklist_on_break_lock") &&
		    strcasecmp(value, "true") && strcmp(value, "1")) {
			client_error(store, quiet,
				     "%s: the metadata of the image or the pool disables the fence "
				     "of dead clients (rbd_blocklist_on_break_lock=%s): remove the "
				     "setting by `rbd config image rm` or `rbd config pool rm`",
				     store->name, value);
			rc = -EOPNOTSUPP;
		}
	}
	client->is_cached = has_writeback || is_persistent;
	rbd_config_image_list_cleanup(options, n);
	free(options);
	return rc;
}

static void find_owner(struct rbd_store *store, rbd_image_t image)
{
	char *owners[MAX_OWNERS] = {NULL};
	size_t n = MAX_OWNERS;
	rbd_lock_mode_t mode;

	snprintf(store->owner, sizeof store->owner, "unknown");
	if (rbd_lock_get_owners(image, &mode, owners, &n) || n == 0)
		return;
	snprintf(store->owner, sizeof store->owner, "%s", owners[0]);
	rbd_lock_get_owners_cleanup(owners, n);
}

/*
 * Lock the image. A client that is alive rejects the request. librbd breaks the lock of a client
 * that is dead, after the cluster has dropped its watch (osd_client_watch_timeout: 30 s), and adds
 * this client to the blocklist.
 */
static int lock(struct rbd_store *store, struct rbd_client *client, int quiet)
{
	char *owners[MAX_OWNERS] = {NULL};
	size_t n = MAX_OWNERS;
	rbd_lock_mode_t mode;
	uint64_t features = 0;
	int rc = rbd_get_features(client->image, &features);

	if (rc == 0 && !(features & RBD_FEATURE_EXCLUSIVE_LOCK)) {
		client_error(
			store, quiet,
			"%s: the image has no exclusive lock: enable it by `rbd feature enable "
			"IMAGE exclusive-lock`, or set read_only = true",
			store->name);
		return -EOPNOTSUPP;
	}
	if (rc == 0 && !quiet && rbd_lock_get_owners(client->image, &mode, owners, &n) == 0 && n) {
		gantry_log_info(store->host, "%s: requesting the lock of the image (owner=%s)",
				store->name, owners[0]);
		rbd_lock_get_owners_cleanup(owners, n);
	}
	if (rc == 0)
		rc = rbd_lock_acquire(client->image, RBD_LOCK_MODE_EXCLUSIVE);
	if (rc == 0)
		return 0;
	find_owner(store, client->image);
	if (rc == -EROFS || rc == -EBUSY) {
		client_error(store, quiet, "%s: another client serves the image (owner=%s)",
			     store->name, store->owner);
		return -EBUSY;
	}
	client_error(store, quiet, "%s: cannot lock the image (owner=%s): %s", store->name,
		     store->owner, strerror(-rc));
	return rc;
}

static int open_image(struct rbd_store *store, struct rbd_client *client)
{
	const struct rbd_conf *conf = store->conf;
	int rc = rados_ioctx_create(client->cluster, conf->pool, &client->ioctx);

	if (rc) {
		client->ioctx = NULL;
		return rc;
	}
	rados_ioctx_set_namespace(client->ioctx, conf->namespace);
	/* a write to a full pool fails with ENOSPC or EDQUOT; otherwise librados would wait */
	rados_set_pool_full_try(client->ioctx);
	rc = store->is_read_only ? rbd_open_read_only(client->ioctx, conf->image, &client->image,
						      *conf->snapshot ? conf->snapshot : NULL)
				 : rbd_open(client->ioctx, conf->image, &client->image, NULL);
	if (rc)
		client->image = NULL;
	return rc;
}

int rbd_client_open(struct rbd_store *store, struct rbd_client *client, int quiet)
{
	int rc = open_image(store, client);

	if (rc) {
		client_error(store, quiet, "%s: cannot open %s: %s", store->name,
			     client->ioctx ? "the image" : "the pool", strerror(-rc));
		goto out_undo;
	}
	rc = check_settings(store, client, quiet);
	if (rc == 0 && !store->is_read_only)
		rc = lock(store, client, quiet);
	if (rc)
		goto out_undo;
	rc = rbd_update_watch(client->image, &client->watch, rbd_keeper_changed, store);
	client->is_watching = rc == 0;
	if (rc == 0)
		rc = identify(store, client);
	if (rc == 0)
		rc = rbd_get_size(client->image, &client->size);
	if (rc) {
		client_error(store, quiet, "%s: cannot get the properties of the image: %s",
			     store->name, strerror(-rc));
		goto out_undo;
	}
	return 0;

out_undo:
	rbd_client_close(client);
	return rc;
}

void rbd_client_close(struct rbd_client *client)
{
	if (client->is_watching)
		rbd_update_unwatch(client->image, client->watch);
	if (client->image)
		rbd_close(client->image);
	if (client->ioctx)
		rados_ioctx_destroy(client->ioctx);
	if (client->addresses)
		rados_buffer_free(client->addresses);
	if (client->cluster)
		rados_shutdown(client->cluster);
	memset(client, 0, sizeof *client);
}
