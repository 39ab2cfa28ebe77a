/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine_resume.c - resumes a lost session. Control thread.
 *
 *      lost -> queues paused -> client freed
 *           -> (open a client with the same id and the next epoch) ... -> ready -> started
 *
 * The server answers HELLO after the lost session has been drained on the whole path to the volume.
 * From then on no peer accesses the buffers of the IOs that were in flight, and none of these IOs
 * can take effect after an IO that is submitted now.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <gantry/uuid.h>

#include "engine/engine_priv.h"

/*
 * Delay before the second attempt. It doubles with each attempt up to RETRY_MOST_NS: a server can
 * reject attempts for hours, and both ends log each attempt.
 */
#define RETRY_NS 50000000ull
#define RETRY_MOST_NS 1000000000ull
#define NS_PER_MS 1000000ull

static uint64_t now_ns(const struct gantry_engine *session)
{
	const struct gantry_host *host = session->rh->host;

	return host->now_ns(host);
}

static void schedule_attempt(struct gantry_engine *session);

/* End the session because no epoch is left: the server would reject the next epoch. */
static void end_without_epoch(struct gantry_engine *session)
{
	char text[sizeof(session->text)];

	snprintf(text, sizeof(text),
		 "%.160s; not resumed: no epoch is left (limit epoch=%u): open the volume again",
		 session->text, GANTRY_EPOCH_MAX);
	gn_engine_end(session, -ENOTCONN, text);
}

static void attempt(void *arg)
{
	struct gantry_engine *session = arg;
	struct gantry_session_attr wanted = {.id = session->id,
					     .lanes = session->attr.n_queues,
					     .depth = session->attr.depth,
					     .regions = 1 + session->attr.regions};

	if (session->phase != GN_ENGINE_PAUSED || session->client)
		return;
	if (session->epoch >= GANTRY_EPOCH_MAX) {
		end_without_epoch(session);
		return;
	}
	wanted.epoch = ++session->epoch;
	if (session->rh->client_open(session->rh, session->attr.connect + session->path, &wanted,
				     &gn_engine_client_events, session, &session->client)) {
		session->client = NULL;
		schedule_attempt(session);
	} else {
		session->rh->client_expect(session->client, &session->info);
		session->rh->client_use_secret(session->client, session->secret);
	}
}

/* End the session because the resume took too long. session->text has the reason of the loss. */
static void end_expired(struct gantry_engine *session)
{
	char text[sizeof(session->text)];

	snprintf(text, sizeof(text), "%.160s; not resumed within %llu ms", session->text,
		 (unsigned long long)(session->resume_ns / NS_PER_MS));
	gn_engine_end(session, -ENOTCONN, text);
}

static void no_memory(void *arg)
{
	struct gantry_engine *session = arg;

	if (session->phase == GN_ENGINE_PAUSED)
		end_expired(session);
}

/* Make the next attempt: the first immediately, later ones after growing delays. */
static void schedule_attempt(struct gantry_engine *session)
{
	uint64_t ns = session->retry_ns;

	session->retry_ns = ns ? 2 * ns : RETRY_NS;
	if (session->retry_ns > RETRY_MOST_NS)
		session->retry_ns = RETRY_MOST_NS;
	if (session->rh->after(session->rh, ns, attempt, session))
		session->rh->post(session->rh, no_memory, session);
}

/* resume_ns has elapsed. */
static void on_expired(void *arg)
{
	struct gantry_engine *session = arg;

	if (session->phase != GN_ENGINE_PAUSED)
		return;
	if (session->client)
		session->rh->client_abort(session->client);
	else
		end_expired(session);
}

static int pause_session(struct gantry_engine *session, const char *text)
{
	session->lost_ns = now_ns(session);
	session->retry_ns = 0;
	snprintf(session->text, sizeof(session->text), "%.160s", text);
	if (session->rh->after(session->rh, session->resume_ns, on_expired, session))
		return -ENOMEM;
	session->phase = GN_ENGINE_PAUSED;
	for (uint32_t i = 0; i < session->attr.n_queues; i++)
		gn_engine_queue_pause(&session->queues[i]);
	return 0;
}

int gn_engine_resume_begin(struct gantry_engine *session, int reason, const char *text)
{
	int first = session->phase == GN_ENGINE_RUNNING;

	if (!session->resume_ns || !reason || (!first && session->phase != GN_ENGINE_PAUSED))
		return 0;
	session->n_stale = reason == -ESTALE || session->is_stale ? session->n_stale + 1 : 0;
	session->is_stale = 0;
	if (!first && session->n_stale >= session->n_paths)
		return 0; /* a retry would find other volumes again */
	if (first && pause_session(session, text))
		return 0;
	gn_engine_regions_lost(session);
	session->rh->client_free(session->client);
	session->client = NULL;
	session->path = (session->path + 1) % session->n_paths;
	if (now_ns(session) - session->lost_ns >= session->resume_ns) {
		end_expired(session);
		return 1;
	}
	schedule_attempt(session);
	if (session->released) /* the owner can close the session in an event */
		gn_engine_regions_drained(session);
	return 1;
}

/*
 * Compare the verifier. If it changed, acknowledged but unflushed writes might be lost: let the
 * next flush of each queue fail.
 */
static void note_verifier(struct gantry_engine *session, const struct gantry_volume_info *info)
{
	uint64_t was = session->info.verifier,
		 ms = (now_ns(session) - session->lost_ns) / NS_PER_MS;
	char uuid[GANTRY_UUID_TEXT];

	session->info.verifier = info->verifier;
	if (info->verifier != was && session->events->verifier_changed)
		session->events->verifier_changed(session->arg, info->verifier);
	if (info->verifier == 0 || was == 0 || info->verifier == was)
		return;
	session->changed = 1;
	gantry_log_warn(
		session->rh->host,
		"volume %s: acknowledged writes that were not flushed may be lost (verifier=%016llx, "
		"was=%016llx, session lost %llu ms ago): the next flush of each queue fails once",
		gantry_uuid_text(info->uuid, uuid), (unsigned long long)info->verifier,
		(unsigned long long)was, (unsigned long long)ms);
}

/*
 * Returns true unless the size shows another volume. A new size is accepted only if the verifier is
 * the same too: a UUID alone can belong to a path or an address.
 */
static bool size_fits(const struct gantry_volume_info *was, const struct gantry_volume_info *info)
{
	return info->size == was->size || (gantry_uuid_is_known(was->uuid) && was->verifier != 0 &&
					   info->verifier == was->verifier &&
					   memcmp(was->uuid, info->uuid, GANTRY_UUID_BYTES) == 0);
}

int gn_engine_resume_check(struct gantry_engine *session, const struct gantry_volume_info *info)
{
	const struct gantry_volume_info *was = &session->info;
	char text[sizeof(session->text)];

	if (size_fits(was, info) && info->block_size == was->block_size && info->ops == was->ops &&
	    info->flags == was->flags && info->max_io == was->max_io) {
		session->resumed_size = info->size;
		note_verifier(session, info);
		return 0;
	}
	if (!size_fits(was, info))
		snprintf(text, sizeof(text),
			 "another size, and UUID or verifier do not identify the volume "
			 "(bytes=%llu, the session had %llu)",
			 (unsigned long long)info->size, (unsigned long long)was->size);
	else
		snprintf(text, sizeof(text),
			 "another volume: its properties differ "
			 "(block=%u, the session had %u; ops=%x, %x; flags=%x, %x; max_io=%u, %u)",
			 info->block_size, was->block_size, info->ops, was->ops, info->flags,
			 was->flags, info->max_io, was->max_io);
	if (session->n_stale + 1 < session->n_paths) {
		gantry_log_warn(session->rh->host, "connect[%u]: %s: trying the next path",
				session->attr.connect + session->path, text);
		session->is_stale = 1;
		return -EAGAIN;
	}
	session->reason = -ESTALE;
	snprintf(session->text, sizeof(session->text), "%s", text);
	return -ESTALE;
}

/* Report a size that changed while the session was lost. */
static void report_size(struct gantry_engine *session)
{
	const uint64_t was = session->info.size, is = session->resumed_size;

	if (is == was)
		return;
	gantry_log_info(
		session->rh->host, "size of the volume changed id=%016llx bytes=%llu was=%llu",
		(unsigned long long)session->id, (unsigned long long)is, (unsigned long long)was);
	gn_engine_resized(session, is);
}

void gn_engine_resume_done(struct gantry_engine *session, uint32_t n_again)
{
	gantry_count(session->n_resumed, 1);
	session->changed = 0;
	session->rh->after_cancel(session->rh, session);
	session->text[0] = '\0';
	gantry_log_warn(
		session->rh->host,
		"session resumed id=%016llx epoch=%u path=%u after %llu ms, %u IOs submitted again",
		(unsigned long long)session->id, session->epoch, session->path,
		(unsigned long long)((now_ns(session) - session->lost_ns) / NS_PER_MS), n_again);
	report_size(session);
}
