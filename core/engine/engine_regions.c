/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine_regions.c - additional regions, whose memory the owner provides. Control thread.
 *
 * A client has one request in flight at a time. So region_export and region_unexport record the
 * requested state, and gn_engine_regions_advance() makes the next request. A session that resumes
 * exports all wanted regions before it starts, because the IOs that it submits again name them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine_priv.h"

#define FIRST (GANTRY_ENGINE_HANDLE + 1)

int gn_engine_regions_init(struct gantry_engine *session)
{
	session->regions = calloc(session->attr.regions + 1ull, sizeof(*session->regions));
	return session->regions ? 0 : -ENOMEM;
}

void gn_engine_regions_fini(struct gantry_engine *session)
{
	free(session->regions);
	session->regions = NULL;
}

static struct gn_engine_region *find(struct gantry_engine *session, uint32_t handle)
{
	return handle >= FIRST && handle - FIRST < session->attr.regions
		       ? &session->regions[handle - FIRST]
		       : NULL;
}

int gn_engine_export(struct gantry_engine *session, const struct gantry_region *region,
		     uint32_t handle)
{
	struct gn_engine_region *r = find(session, handle);

	if (session->phase >= GN_ENGINE_CLOSING)
		return -ENOTCONN;
	if (!r)
		return -EINVAL;
	if (r->state != GN_ENGINE_REGION_UNUSED)
		return -EEXIST;
	if (session->phase == GN_ENGINE_RUNNING &&
	    region->length > session->rh->client_export_limit(session->client))
		return -E2BIG;
	*r = (struct gn_engine_region){.region = region, .state = GN_ENGINE_REGION_WANTED};
	gn_engine_regions_advance(session);
	return 0;
}

static void report_drained(void *arg)
{
	struct gantry_engine *session = arg;

	if (session->phase == GN_ENGINE_PAUSED && session->released)
		gn_engine_regions_drained(session);
}

int gn_engine_unexport(struct gantry_engine *session, uint32_t handle)
{
	struct gn_engine_region *r = find(session, handle);

	if (session->phase >= GN_ENGINE_CLOSING)
		return -ENOTCONN;
	if (!r || r->state == GN_ENGINE_REGION_UNUSED || r->state >= GN_ENGINE_REGION_UNWANTED ||
	    (!r->is_reported && session->phase != GN_ENGINE_PAUSED))
		return -ENOENT;
	r->state = GN_ENGINE_REGION_UNWANTED;
	if (session->phase == GN_ENGINE_PAUSED && session->released)
		session->rh->after(session->rh, 0, report_drained, session);
	gn_engine_regions_advance(session);
	return 0;
}

void gn_engine_regions_lost(struct gantry_engine *session)
{
	session->regions_busy = session->regions_open = session->is_starting = 0;
	for (uint32_t i = 0; i < session->attr.regions; i++) {
		struct gn_engine_region *r = &session->regions[i];

		r->is_exported = 0;
		if (r->state == GN_ENGINE_REGION_EXPORTING || r->state == GN_ENGINE_REGION_EXPORTED)
			r->state = GN_ENGINE_REGION_WANTED;
		else if (r->state == GN_ENGINE_REGION_UNEXPORTING)
			r->state = GN_ENGINE_REGION_UNWANTED;
	}
}

static void end_export(struct gantry_engine *session, struct gn_engine_region *r)
{
	*r = (struct gn_engine_region){.state = GN_ENGINE_REGION_UNUSED};
	session->events->unexported(session->arg, FIRST + (uint32_t)(r - session->regions));
}

void gn_engine_regions_drained(struct gantry_engine *session)
{
	for (uint32_t i = 0; i < session->attr.regions; i++)
		if (session->regions[i].state == GN_ENGINE_REGION_UNWANTED &&
		    !session->regions[i].is_exported)
			end_export(session, &session->regions[i]);
}

void gn_engine_region_exported(struct gantry_engine *session, const struct gantry_region *region)
{
	session->regions_busy = 0;
	for (uint32_t i = 0; i < session->attr.regions; i++) {
		struct gn_engine_region *r = &session->regions[i];

		if (r->region != region || r->state != GN_ENGINE_REGION_EXPORTING)
			continue;
		r->state = GN_ENGINE_REGION_EXPORTED;
		if (!r->is_reported) {
			r->is_reported = 1;
			session->events->exported(session->arg, FIRST + i);
		}
		return;
	}
}

void gn_engine_region_unexported(struct gantry_engine *session, uint32_t handle)
{
	struct gn_engine_region *r = find(session, handle);

	session->regions_busy = 0;
	if (r && r->state == GN_ENGINE_REGION_UNEXPORTING)
		end_export(session, r);
}

/* Request what the owner wants of one region. Returns 0 or -errno of the client. */
static int request(struct gantry_engine *session, struct gn_engine_region *r)
{
	const uint32_t handle = FIRST + (uint32_t)(r - session->regions);

	if (r->state == GN_ENGINE_REGION_UNWANTED) {
		r->state = GN_ENGINE_REGION_UNEXPORTING;
		return session->rh->client_unexport(session->client, handle);
	}
	r->state = GN_ENGINE_REGION_EXPORTING;
	r->is_exported = 1;
	return session->rh->client_export(session->client, r->region,
					  GANTRY_REMOTE_READ | GANTRY_REMOTE_WRITE, handle);
}

static int needs_request(const struct gn_engine_region *r)
{
	return r->state == GN_ENGINE_REGION_WANTED || r->state == GN_ENGINE_REGION_UNWANTED;
}

int gn_engine_regions_advance(struct gantry_engine *session)
{
	int rc = 0;

	for (uint32_t i = 0; i < session->attr.regions; i++) {
		struct gn_engine_region *r = &session->regions[i];

		/* an event can have closed the session */
		if (session->phase >= GN_ENGINE_CLOSING || !session->regions_open ||
		    session->regions_busy)
			break;
		if (r->state == GN_ENGINE_REGION_UNWANTED && !r->is_exported) {
			end_export(session, r); /* of an earlier client, which is drained */
		} else if (needs_request(r)) {
			session->regions_busy = 1;
			rc = request(session, r);
		}
	}
	/* -ENOTCONN: `closed` follows with the reason */
	if (rc && rc != -ENOTCONN)
		gn_engine_give_up(session, rc, "cannot export or unexport further memory: %s",
				  gn_engine_export_error(rc));
	return session->regions_busy;
}
