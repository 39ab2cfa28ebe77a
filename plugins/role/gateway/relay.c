/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * relay.c - relays a session of an initiator to one session of the gateway with each target. A step
 * of the initiator completes after all legs have completed their part:
 *
 *      initiator    hello    query   export            queues, start    stop             (lost)
 *      legs         connect          re-export each    start each       close each       close each
 *
 * The initiator can export and unexport regions while its session runs.
 *
 * The gateway imports regions without mapping them and exports them again, so no payload passes
 * through this process.
 *
 * If the gateway loses a target, it ends the initiator's session. If it loses the initiator, it
 * ends the legs. In each case it closes the legs before it releases the regions, because the
 * targets access them until their legs are closed.
 */
#include "gateway.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CHILDREN 65535u /* limit of the children of one fan-out */

/* A leg has finished the current step. When all legs have finished it, answer the initiator. */
static void leg_done(struct leg *leg)
{
	struct relay *relay = leg->relay;

	leg->done = 1;
	for (uint32_t i = 0; i < relay->n_legs; i++)
		if (!relay->legs[i].done)
			return;
	if (!relay->tearing_down)
		relay->gateway->rh->session_continue(relay->session, 0);
}

static void begin_step(struct relay *relay)
{
	for (uint32_t i = 0; i < relay->n_legs; i++)
		relay->legs[i].done = 0;
}

static void on_ready(void *arg, struct gantry_client *client,
		     const struct gantry_volume_info *volume)
{
	struct leg *leg = arg;

	(void)client;
	leg->relay->volumes[leg - leg->relay->legs] = *volume;
	leg->relay->is_ready = 1;
	leg_done(leg);
}

static void on_exported(void *arg, struct gantry_client *client, const struct gantry_region *region)
{
	(void)client;
	(void)region;
	leg_done(arg);
}

static void on_unexported(void *arg, struct gantry_client *client, uint32_t handle)
{
	(void)client;
	(void)handle;
	leg_done(arg);
}

static void on_started(void *arg, struct gantry_client *client)
{
	(void)client;
	leg_done(arg);
}

static void free_relay(struct relay *relay)
{
	const struct gantry_role_host *rh = relay->gateway->rh;

	for (uint32_t i = 0; i < relay->n_legs; i++)
		if (relay->legs[i].client)
			rh->client_free(relay->legs[i].client);
	free(relay->volumes);
	free(relay->routes);
	free(relay);
}

static int all_closed(const struct relay *relay)
{
	for (uint32_t i = 0; i < relay->n_legs; i++)
		if (!relay->legs[i].closed)
			return 0;
	return 1;
}

/*
 * The session and all its legs have ended: continue the session, which then releases the regions.
 */
static void finish_teardown(struct relay *relay)
{
	const struct gantry_role_host *rh = relay->gateway->rh;
	struct gantry_session *session = relay->session;

	free_relay(relay);
	rh->session_continue(session, 0);
}

static int open_leg(struct leg *leg, uint32_t connect);

/*
 * A path has failed: new sessions try the next one first. Returns 1 if this session tries it, too,
 * because its volume is not known yet.
 */
static int try_next_path(struct leg *leg, const char *text)
{
	struct relay *relay = leg->relay;
	struct gateway *gateway = relay->gateway;
	const struct gantry_role_host *rh = gateway->rh;
	const uint32_t failed = leg->connect, next = (failed + 1) % rh->n_connects;

	if (gateway->conf->mode != GATEWAY_FAILOVER)
		return 0;
	gateway->path = next;
	if (relay->is_ready || ++relay->n_tried >= rh->n_connects)
		return 0;
	gantry_log_warn(rh->host, "connect[%u]: %s: trying connect[%u]", failed, text, next);
	rh->client_free(leg->client);
	leg->client = NULL;
	return open_leg(leg, next) == 0;
}

static void on_closed(void *arg, struct gantry_client *client, int reason, const char *text)
{
	struct leg *leg = arg;
	struct relay *relay = leg->relay;
	const struct gantry_role_host *rh = relay->gateway->rh;

	(void)client;
	if (!relay->tearing_down && !relay->is_lost && reason != 0 && try_next_path(leg, text))
		return;
	leg->closed = 1;
	if (relay->tearing_down) {
		if (all_closed(relay))
			finish_teardown(relay);
	} else if (reason != 0) {
		rh->session_refuse(relay->session, "target: %s", text);
		rh->session_continue(relay->session, reason);
		rh->session_end(relay->session, reason);
	} else {
		leg_done(leg);
	}
}

/*
 * The offsets of the targets of one volume depend on their sizes, so the relay keeps the size that
 * its client knows. A target rejects IO beyond its end.
 */
static void on_resized(void *arg, struct gantry_client *client, uint64_t size)
{
	struct leg *leg = arg;
	const struct relay *relay = leg->relay;
	const struct gantry_role_host *rh = relay->gateway->rh;

	(void)client;
	if (relay->tearing_down)
		return;
	if (relay->n_legs == 1)
		rh->session_resize(relay->session, size);
	else
		gantry_log_warn(
			rh->host,
			"target %u: the new size of %llu bytes is ignored: the volume has several targets",
			(unsigned)(leg - relay->legs), (unsigned long long)size);
}

static const struct gantry_client_events leg_events = {
	.ready = on_ready,
	.exported = on_exported,
	.started = on_started,
	.closed = on_closed,
	.unexported = on_unexported,
	.resized = on_resized,
};

/* Check that all children of `depth` descriptors can be in flight at the same time. */
static int check_depth(const struct relay *relay, char why[LAYOUT_WHY])
{
	uint32_t most;

	if (relay->n_legs == 1)
		return 0;
	most = MAX_CHILDREN /
	       layout_max_pieces(relay->gateway->conf, &relay->volume, relay->n_legs);
	if (relay->attr.depth <= most)
		return 0;
	snprintf(why, LAYOUT_WHY, "depth %u is too large for %u targets as one volume (limit=%u)",
		 relay->attr.depth, relay->n_legs, most);
	return -EINVAL;
}

/*
 * Present the secret of the client to the targets, so that the client can resume its session
 * through another gateway.
 */
static void use_secret(const struct gantry_role_host *rh, const struct gantry_session *session,
		       struct gantry_client *client)
{
	uint8_t secret[GANTRY_SECRET_BYTES];

	rh->session_secret(session, secret);
	rh->client_use_secret(client, secret);
	explicit_bzero(secret, sizeof(secret));
}

/* Connect a leg to an entry of `connect`. Returns 0 or -errno. */
static int open_leg(struct leg *leg, uint32_t connect)
{
	const struct relay *relay = leg->relay;
	const struct gantry_role_host *rh = relay->gateway->rh;
	int rc = rh->client_open(rh, connect, &relay->attr, &leg_events, leg, &leg->client);

	if (rc != 0)
		return rc;
	leg->connect = connect;
	use_secret(rh, relay->session, leg->client);
	return 0;
}

static int hello(void *role, struct gantry_session *session, const struct gantry_session_attr *attr)
{
	struct gateway *gateway = role;
	const struct gantry_role_host *rh = gateway->rh;
	uint32_t first = 0, n = rh->n_connects;
	struct relay *relay;
	int rc;

	relay = calloc(1, sizeof(*relay) + rh->n_connects * sizeof(struct leg));
	if (!relay)
		return -ENOMEM;
	relay->routes = calloc(attr->lanes, sizeof(struct route *));
	relay->volumes = calloc(rh->n_connects, sizeof(*relay->volumes));
	if (!relay->routes || !relay->volumes) {
		free(relay->volumes);
		free(relay->routes);
		free(relay);
		return -ENOMEM;
	}
	relay->gateway = gateway;
	relay->session = session;
	relay->attr = *attr;
	rh->session_set(session, relay);
	if (gateway->conf->mode == GATEWAY_FAILOVER) {
		first = gateway->path;
		n = 1;
	}
	for (uint32_t i = 0; i < n; i++) {
		struct leg *leg = &relay->legs[i];

		leg->relay = relay;
		rc = open_leg(leg, first + i);
		if (rc != 0)
			return rc;
		relay->n_legs = i + 1;
	}
	return -EINPROGRESS;
}

static int query(void *role, struct gantry_session *session, struct gantry_volume_info *volume)
{
	struct gateway *gateway = role;
	struct relay *relay = gateway->rh->session_user(session);
	char why[LAYOUT_WHY] = "";
	int rc;

	rc = layout_compose(gateway->conf, relay->volumes, relay->n_legs, &relay->volume, why);
	if (rc == 0)
		rc = layout_check_uuid(gateway->conf, &relay->volume, why);
	if (rc == 0)
		rc = check_depth(relay, why);
	if (rc != 0)
		gateway->rh->session_refuse(session, "%s", why);
	*volume = relay->volume;
	return rc;
}

/* Returns the reason for which a region cannot be re-exported, and the remedy. */
static const char *export_error(int rc)
{
	if (rc == -E2BIG)
		return "the limit of the next device is smaller; see the log of the gateway";
	if (rc == -EXDEV)
		return "memory not reachable by the next device: use one transport on both sides (gantry-gateway(7))";
	return strerror(-rc);
}

static int region(void *role, struct gantry_session *session, struct gantry_region *imported)
{
	struct gateway *gateway = role;
	struct relay *relay = gateway->rh->session_user(session);

	begin_step(relay);
	for (uint32_t i = 0; i < relay->n_legs; i++) {
		int rc = gateway->rh->client_export(relay->legs[i].client, imported,
						    imported->rights, imported->handle);

		if (rc != 0) {
			gateway->rh->session_refuse(
				session, "region %u of %llu bytes cannot be re-exported: %s",
				imported->handle, (unsigned long long)imported->length,
				export_error(rc));
			return rc;
		}
	}
	return -EINPROGRESS;
}

static int unexport(void *role, struct gantry_session *session, struct gantry_region *imported)
{
	struct gateway *gateway = role;
	struct relay *relay = gateway->rh->session_user(session);

	begin_step(relay);
	for (uint32_t i = 0; i < relay->n_legs; i++) {
		int rc = gateway->rh->client_unexport(relay->legs[i].client, imported->handle);

		if (rc != 0)
			return rc;
	}
	return -EINPROGRESS;
}

static int lane(void *role, struct gantry_session *session, struct gantry_lane *own, uint32_t index,
		struct gantry_hop *terminal)
{
	struct gateway *gateway = role;
	struct relay *relay = gateway->rh->session_user(session);

	if (relay->n_legs == 1)
		return gateway->rh->client_hop(relay->legs[0].client, index, own, terminal);
	return route_create(relay, own, index, &relay->routes[index], terminal);
}

static int start(void *role, struct gantry_session *session)
{
	struct gateway *gateway = role;
	struct relay *relay = gateway->rh->session_user(session);

	begin_step(relay);
	for (uint32_t i = 0; i < relay->n_legs; i++) {
		int rc = gateway->rh->client_start(relay->legs[i].client);

		if (rc != 0)
			return rc;
	}
	return -EINPROGRESS;
}

static void close_legs(struct relay *relay)
{
	begin_step(relay);
	for (uint32_t i = 0; i < relay->n_legs; i++)
		if (!relay->legs[i].closed)
			relay->gateway->rh->client_close(relay->legs[i].client);
}

static int stop(void *role, struct gantry_session *session)
{
	struct gateway *gateway = role;

	close_legs(gateway->rh->session_user(session));
	return -EINPROGRESS;
}

static int closed(void *role, struct gantry_session *session, int reason)
{
	struct gateway *gateway = role;
	struct relay *relay = gateway->rh->session_user(session);

	(void)reason;
	if (!relay)
		return 0;
	for (uint32_t i = 0; i < relay->attr.lanes; i++)
		route_destroy(relay->routes[i], gateway->rh);
	if (all_closed(relay)) {
		free_relay(relay);
		return 0;
	}
	relay->tearing_down = 1;
	close_legs(relay);
	return -EINPROGRESS;
}

/* The initiator is lost. Abort the legs, because no initiator waits for their IOs any more. */
static void lost(void *role, struct gantry_session *session)
{
	struct gateway *gateway = role;
	struct relay *relay = gateway->rh->session_user(session);

	if (!relay)
		return;
	relay->is_lost = 1; /* not a failure of the path */
	for (uint32_t i = 0; i < relay->n_legs; i++)
		if (!relay->legs[i].closed)
			gateway->rh->client_abort(relay->legs[i].client);
}

const struct gantry_server_ops relay_ops = {
	.hello = hello,
	.query = query,
	.region = region,
	.lane = lane,
	.start = start,
	.stop = stop,
	.closed = closed,
	.map_regions = 0,
	.lost = lost,
	.unexport = unexport,
};
