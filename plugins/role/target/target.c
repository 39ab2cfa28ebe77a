/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * target.c - serves a volume: passes the descriptors of each session to the configured backend.
 *
 * The host checks operation, range, region and rights before a descriptor reaches the backend, so
 * this plugin only describes the volume.
 */
#define GANTRY_API_VERSION 1

#include <gantry/role.h>
#include <gantry/uuid.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct target {
	const struct gantry_role_host *rh;
};

static int hello(void *role, struct gantry_session *session, const struct gantry_session_attr *attr)
{
	(void)role;
	(void)session;
	(void)attr;
	return 0;
}

static int query(void *role, struct gantry_session *session, struct gantry_volume_info *volume)
{
	struct target *target = role;

	(void)session;
	target->rh->backend_volume(target->rh, volume);
	return 0;
}

/* The host resolves the addresses of descriptors that use a region. */
static int no_region(void *role, struct gantry_session *session, struct gantry_region *region)
{
	(void)role;
	(void)session;
	(void)region;
	return 0;
}

static int lane(void *role, struct gantry_session *session, struct gantry_lane *own, uint32_t index,
		struct gantry_hop *terminal)
{
	struct target *target = role;

	(void)session;
	(void)index;
	return target->rh->backend_hop(target->rh, own, terminal);
}

static int nothing(void *role, struct gantry_session *session)
{
	(void)role;
	(void)session;
	return 0;
}

static int closed(void *role, struct gantry_session *session, int reason)
{
	(void)role;
	(void)session;
	(void)reason;
	return 0;
}

static const struct gantry_server_ops server_ops = {
	.hello = hello,
	.query = query,
	.region = no_region,
	.lane = lane,
	.start = nothing,
	.stop = nothing,
	.closed = closed,
	.map_regions = 1,
	.unexport = no_region,
};

static int target_open(const struct gantry_role_host *rh, const void *conf, void **role_p)
{
	struct target *target = malloc(sizeof(*target));

	(void)conf;
	if (!target)
		return -ENOMEM;
	target->rh = rh;
	*role_p = target;
	return 0;
}

static int target_start(void *role)
{
	struct target *target = role;

	return target->rh->serve(target->rh, &server_ops, target);
}

static void target_close(void *role)
{
	free(role);
}

static void report_uuid(struct gantry_writer *w, const uint8_t uuid[16])
{
	char text[GANTRY_UUID_TEXT];

	w->string(w, "uuid", gantry_uuid_is_known(uuid) ? gantry_uuid_text(uuid, text) : "");
}

static void report_verifier(struct gantry_writer *w, uint64_t verifier)
{
	char text[17] = "";

	if (verifier)
		snprintf(text, sizeof(text), "%016" PRIx64, verifier);
	w->string(w, "verifier", text);
}

static void target_report(void *role, struct gantry_writer *w)
{
	struct target *target = role;
	struct gantry_volume_info volume;

	target->rh->backend_volume(target->rh, &volume);
	w->object(w, "volume");
	w->u64(w, "size_bytes", volume.size);
	w->u64(w, "block_bytes", volume.block_size);
	w->boolean(w, "read_only", (volume.flags & GANTRY_VOLUME_READ_ONLY) != 0);
	report_uuid(w, volume.uuid);
	report_verifier(w, volume.verifier);
	w->end(w);
}

static const struct gantry_role_ops ops = {
	.open = target_open,
	.start = target_start,
	.close = target_close,
	.report = target_report,
	.flags = GANTRY_ROLE_LISTENS | GANTRY_ROLE_STORES,
};

GANTRY_PLUGIN(target) = {
	GANTRY_PLUGIN_HEAD,
	.kind = GANTRY_KIND_ROLE,
	.name = "target",
	.version = "1",
	.summary = "serves the volume of a backend",
	.ops_size = sizeof(ops),
	.ops = &ops,
};
