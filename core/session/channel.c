/* SPDX-License-Identifier: BSD-3-Clause */
#include "session/channel.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/usdt.h"

#include <errno.h>
#include <string.h>

#define MISSED_BEATS 4
#define BEAT_STEPS 8 /* parts of a heartbeat interval; timers expire at multiples of a part */

/* Report a frame to the log and to the probe, except keepalives. */
static void log_frame(const struct gn_channel *ch, const char *what, unsigned type, uint32_t id,
		      int status)
{
	const char *frame = gn_frame_name(type);

	if (type == GN_FRAME_PING)
		return;
	GN_USDT_SESSION(ch->device->name, what, frame, ch->session, status);
	gn_log(GN_LOG_DEBUG, "session", "%s %s session=%016llx id=%u device=%s status=%d", what,
	       frame, (unsigned long long)ch->session, id, ch->device->name, status);
}

/*
 * Round the time up, so that the timers of many sessions of a process expire together and wake the
 * loop once.
 */
static void beat_at(struct gn_channel *ch, uint64_t at_ns)
{
	uint64_t step = ch->heartbeat_ns / BEAT_STEPS;

	gn_loop_set_timer(ch->device->loop, &ch->beat, (at_ns + step - 1) / step * step);
}

static void beat(void *arg)
{
	struct gn_channel *ch = arg;
	uint64_t now = gn_now_ns(), silent_ns = now - ch->heard_ns;

	if (silent_ns > MISSED_BEATS * ch->heartbeat_ns ||
	    (ch->asked_ns != 0 && now - ch->asked_ns > MISSED_BEATS * ch->heartbeat_ns)) {
		ch->silent(ch->arg);
		return;
	}
	if (silent_ns < ch->patience_ns) {
		beat_at(ch, ch->heard_ns + ch->patience_ns);
		return;
	}
	if (ch->session != 0) /* 0: no HELLO was received yet */
		gn_channel_send(ch, GN_FRAME_PING, GN_PING, NULL, NULL, 0);
	beat_at(ch, now + ch->heartbeat_ns);
}

uint64_t gn_features_over(const struct gn_device *device)
{
	struct gantry_device_info info = {.caps = 0};

	device->ops->info(device->dev, &info);
	return (info.caps & GANTRY_CAP_WRITE_IMM) != 0 ? GN_FEATURES
						       : GN_FEATURES & ~GN_FEATURE_NOTES;
}

void gn_channel_init(struct gn_channel *ch, struct gn_device *device, uint64_t heartbeat_ns,
		     bool connected, void (*silent)(void *arg), void *arg)
{
	*ch = (struct gn_channel){
		.device = device,
		.heartbeat_ns = heartbeat_ns,
		.patience_ns = connected ? heartbeat_ns * 3 / 2 : heartbeat_ns * 2,
		.beat = {.fn = beat, .arg = ch},
		.silent = silent,
		.arg = arg,
	};
}

static void restart_silence(struct gn_channel *ch)
{
	ch->heard_ns = gn_now_ns();
}

void gn_channel_start(struct gn_channel *ch)
{
	restart_silence(ch);
	beat_at(ch, ch->heard_ns + ch->patience_ns);
}

void gn_channel_stop(struct gn_channel *ch)
{
	gn_loop_clear_timer(ch->device->loop, &ch->beat);
	if (ch->conn)
		ch->device->ops->disconnect(ch->conn);
	ch->conn = NULL;
}

void gn_channel_received(struct gn_channel *ch, const struct gn_parsed *p)
{
	restart_silence(ch);
	log_frame(ch, p->answer ? "received answer to" : "received", p->type, p->head.id,
		  p->verdict.status);
}

bool gn_channel_take_ping(struct gn_channel *ch, uint32_t id)
{
	if ((id & GN_PING_ECHO) == 0) {
		gn_channel_send(ch, GN_FRAME_PING, id | GN_PING_ECHO, NULL, NULL, 0);
		return false;
	}
	if (ch->asked_ns == 0 || id != (ch->ask_id | GN_PING_ECHO))
		return false;
	ch->answered_ns = ch->asked_ns;
	ch->asked_ns = 0;
	return true;
}

void gn_channel_ask(struct gn_channel *ch)
{
	if (ch->asked_ns != 0)
		return;
	ch->asked_ns = gn_now_ns();
	ch->ask_id += GN_PING_NEXT;
	gn_channel_send(ch, GN_FRAME_PING, ch->ask_id, NULL, NULL, 0);
}

int gn_channel_send(struct gn_channel *ch, unsigned type, uint32_t id,
		    const struct gn_verdict *verdict, const void *payload, size_t payload_len)
{
	char buf[GANTRY_CTRL_MAX];
	size_t len;
	int rc;

	if (!ch->conn)
		return -ENOTCONN;
	len = gn_frame_build(buf, type, id, ch->session, verdict, payload, payload_len);
	rc = ch->device->ops->send_ctrl(ch->conn, buf, len);
	explicit_bzero(buf, len); /* a HELLO contains the secret */
	if (rc == 0)
		log_frame(ch, verdict && type != GN_FRAME_END ? "sent answer to" : "sent", type, id,
			  verdict ? verdict->status : 0);
	return rc;
}
