/* SPDX-License-Identifier: BSD-3-Clause */
#include "session/channel.h"

#include "base/clock.h"

#include <errno.h>

#define BEATS_MISSED 4

static void beat(void *arg)
{
	struct gn_channel *ch = arg;
	uint64_t now = gn_now_ns();

	if (now - ch->heard_ns > BEATS_MISSED * ch->heartbeat_ns) {
		ch->silent(ch->arg);
		return;
	}
	if (ch->session != 0) /* else the peer has not said hello yet */
		gn_channel_send(ch, GN_FRAME_PING, GN_PING, NULL, NULL, 0);
	gn_loop_set_timer(ch->device->loop, &ch->beat, now + ch->heartbeat_ns);
}

void gn_channel_init(struct gn_channel *ch, struct gn_device *device, uint64_t heartbeat_ns, void (*silent)(void *arg),
		     void *arg)
{
	*ch = (struct gn_channel){
		.device = device,
		.heartbeat_ns = heartbeat_ns,
		.beat = {.fn = beat, .arg = ch},
		.silent = silent,
		.arg = arg,
	};
}

void gn_channel_start(struct gn_channel *ch)
{
	gn_channel_heard(ch);
	gn_loop_set_timer(ch->device->loop, &ch->beat, ch->heard_ns + ch->heartbeat_ns);
}

void gn_channel_stop(struct gn_channel *ch)
{
	gn_loop_clear_timer(ch->device->loop, &ch->beat);
	if (ch->conn != NULL)
		ch->device->ops->disconnect(ch->conn);
	ch->conn = NULL;
}

void gn_channel_heard(struct gn_channel *ch)
{
	ch->heard_ns = gn_now_ns();
}

void gn_channel_echo(struct gn_channel *ch, uint32_t id)
{
	if (id != GN_PING_ECHO)
		gn_channel_send(ch, GN_FRAME_PING, GN_PING_ECHO, NULL, NULL, 0);
}

int gn_channel_send(struct gn_channel *ch, unsigned type, uint32_t id, const struct gn_verdict *verdict,
		    const void *payload, size_t payload_len)
{
	char buf[GANTRY_CTRL_MAX];
	size_t len;

	if (ch->conn == NULL)
		return -ENOTCONN;
	len = gn_frame_build(buf, type, id, ch->session, verdict, payload, payload_len);
	return ch->device->ops->send_ctrl(ch->conn, buf, len);
}
