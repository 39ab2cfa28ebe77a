/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * volume_change.c - the size of a volume changes while sessions use it: new rules for the lanes of
 * each session, and the frame VOLUME for its client. Control thread.
 *
 * While sessions run, the host asks the backend of the role for its volume once a second. A role
 * without a backend, such as a gateway, reports the change by session_resize.
 */
#include "session/session_priv.h"

#include "base/clock.h"
#include "base/log.h"
#include "io/io_check.h"

#include <errno.h>

#define WATCH_NS GN_NS_PER_S /* interval of the calls of `volume` of the backend */

static void report_to_client(struct gantry_session *s)
{
	const struct gn_volume_change change = {.size = s->rules.volume.size};

	if (!s->volume_changed || s->state != GN_RUNNING || s->phase != GN_SESSION_OPEN)
		return;
	s->volume_changed = false;
	if ((s->features & GN_FEATURE_VOLUME) != 0)
		gn_channel_send(&s->ch, GN_FRAME_VOLUME, 0, NULL, &change, sizeof(change));
}

int gn_session_resize(struct gantry_session *s, uint64_t size)
{
	struct gantry_volume_info volume = s->terminal_volume;

	if (s->phase != GN_SESSION_OPEN || size == volume.size)
		return 0;
	volume.size = size;
	if (gn_pipeline_volume(s->role->pipeline, &volume) != 0 || gn_volume_fault(&volume))
		return -EINVAL;
	if (s->store.addr)
		return -EBUSY;
	s->terminal_volume.size = size;
	s->volume_changed = s->volume_changed || volume.size != s->rules.volume.size;
	s->rules.volume.size = volume.size;
	gn_io_rules_ready(&s->rules);
	for (uint32_t i = 0; i < s->n_lanes; i++)
		if (s->lanes[i].resp)
			gn_responder_size_changed(s->lanes[i].resp);
	report_to_client(s);
	return 0;
}

/*
 * Apply the size of the backend's volume to all sessions. The stages are not called again for a
 * size that was rejected.
 */
static void apply_size(struct gn_role *role, uint64_t size)
{
	struct gantry_session *s;

	if (size == role->server.rejected_size)
		return;
	LIST_FOREACH (s, &role->server.sessions, link)
		if (s->state >= GN_KNOWN && gn_session_resize(s, size) != 0 &&
		    size != role->server.rejected_size) {
			role->server.rejected_size = size;
			gn_log(GN_LOG_WARN, role->backend_host.name,
			       "%s: sessions keep their size of %llu bytes: the new size of %llu bytes is %s",
			       role->spec.backend->name, (unsigned long long)s->rules.volume.size,
			       (unsigned long long)size,
			       s->store.addr
				       ? "not possible for memory that a device has registered"
				       : "0 or not a multiple of the block size, or rejected by a stage");
		}
}

static void watch(void *arg)
{
	struct gn_role *role = arg;
	struct gantry_volume_info volume;
	const struct gantry_session *s;

	role->rh.backend_volume(&role->rh, &volume);
	if (volume.size != role->server.volume_size) {
		gn_log(GN_LOG_INFO, role->backend_host.name,
		       "the size of the volume has changed from %llu to %llu bytes",
		       (unsigned long long)role->server.volume_size,
		       (unsigned long long)volume.size);
		role->server.volume_size = volume.size;
		role->server.rejected_size = UINT64_MAX; /* none yet */
	}
	apply_size(role, volume.size);
	LIST_FOREACH (s, &role->server.sessions, link)
		if (s->state == GN_RUNNING && s->phase == GN_SESSION_OPEN)
			gn_loop_set_timer(role->loop, &role->server.watch, gn_now_ns() + WATCH_NS);
}

void gn_session_watch_volume(struct gantry_session *s)
{
	struct gn_server *sv = &s->role->server;

	report_to_client(s);
	if (!s->role->backend_ops || sv->watch.at_ns != 0)
		return;
	sv->volume_size = s->terminal_volume.size;
	sv->rejected_size = UINT64_MAX; /* none yet */
	sv->watch = (struct gn_timer){.fn = watch, .arg = s->role};
	gn_loop_set_timer(s->role->loop, &sv->watch, gn_now_ns() + WATCH_NS);
}
