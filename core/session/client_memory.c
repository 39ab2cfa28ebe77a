/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * client_memory.c - the processes that map the exported memory of a client, while its connection
 * exists and after that. Control thread.
 */
#include "session/client_priv.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <unistd.h>

/* a waiting session resumes at most this long after the last process has unmapped the memory */
#define LOOK_NS (10 * GN_NS_PER_MS)
/* a shorter wait is not logged: a process that does not hang unmaps the memory sooner */
#define NOTICE_NS GN_NS_PER_S

int gn_client_disconnect_revokes(const struct gantry_client *c)
{
	struct gantry_device_info info = {.caps = 0};

	c->ep->device->ops->info(c->ep->device->dev, &info);
	return (info.caps & GANTRY_CAP_DISCONNECT_REVOKES) != 0;
}

/* A relay exports memory of its own client, to which the processes report. */
int gn_client_ask_holders(struct gantry_client *c)
{
	int socket, rc;

	if (c->asks_holders || c->role->spec.listen)
		return 0;
	rc = gn_holders_create(c->role->loop, c->attr.id, &c->holders, &socket);
	if (rc != 0)
		return rc;
	rc = c->ep->device->ops->hold_exports(c->ch.conn, socket);
	close(socket);
	if (rc != 0) {
		gn_holders_free(c->holders);
		c->holders = NULL;
	}
	c->asks_holders = rc == 0 || rc == -ENOTSUP;
	return rc == -ENOTSUP ? 0 : rc;
}

void gn_client_keep_holders(struct gantry_client *c)
{
	if (gn_holders_keep(&c->role->former, c->holders))
		c->released = 0;
	c->holders = NULL;
}

static void log_wait(const struct gantry_client *c, struct gn_holders *holders, int32_t pid)
{
	if (gn_holders_first_log(holders))
		gn_log(GN_LOG_WARN, c->role->host.name,
		       "session waits id=%016llx: a process of its former path still maps its "
		       "memory (pid=%d): end that process, or let it continue",
		       (unsigned long long)c->attr.id, pid);
}

void gn_client_become_ready(void *arg)
{
	struct gantry_client *c = arg;
	const uint64_t now_ns = gn_now_ns();
	int32_t pid = 0;
	struct gn_holders *holders = gn_holders_find(&c->role->former, c->attr.id, &pid);

	if (!holders) {
		c->events->ready(c->arg, c, &c->volume);
		return;
	}
	if (c->waits_since_ns == 0)
		c->waits_since_ns = now_ns;
	if (now_ns - c->waits_since_ns >= NOTICE_NS)
		log_wait(c, holders, pid);
	/* give up before the server does, which ends a session without a request */
	if (now_ns - c->waits_since_ns < c->ep->control_timeout_ns / 2)
		gn_loop_set_timer(c->role->loop, &c->wait, now_ns + LOOK_NS);
	else
		gn_client_abandon(c, -EBUSY, "a process of the former path still maps the memory");
}
