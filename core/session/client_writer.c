/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * client_writer.c - who can access the exported memory of a client: the process of the server, if
 * the transport maps memory, until it has released the memory or has ended
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "session/client_priv.h"

int gn_client_disconnect_revokes(const struct gantry_client *c)
{
	struct gantry_device_info info = {.caps = 0};

	c->ep->device->ops->info(c->ep->device->dev, &info);
	return (info.caps & GANTRY_CAP_DISCONNECT_REVOKES) != 0;
}

bool gn_client_all_revoked(const struct gantry_client *c)
{
	for (uint32_t i = 0; i < c->n_exports; i++)
		if (!c->exports[i].revoked)
			return false;
	return true;
}

bool gn_client_server_writes(const struct gantry_client *c)
{
	return c->state >= GN_RUNNING && c->server_pid != 0 &&
	       (c->features & GN_FEATURE_NO_CPU) == 0;
}

bool gn_client_server_ended(const struct gantry_client *c, int reason)
{
	return c->server_pid < 0 ? reason != -EPROTO : gn_client_all_revoked(c);
}

void gn_client_forget_server(struct gantry_client *c)
{
	if (c->server_fd >= 0)
		close(c->server_fd);
	c->server_fd = -1;
	c->server_pid = 0;
	c->server_ended = false;
}

/* Keep a descriptor of the process at the other end, because its number can be reused later. */
void gn_client_note_server(struct gantry_client *c, const struct gantry_peer *peer)
{
	struct gantry_device_info info = {.caps = 0};

	gn_client_forget_server(c);
	c->ep->device->ops->info(c->ep->device->dev, &info);
	if ((info.caps & GANTRY_CAP_MAPPED) == 0 || gn_client_disconnect_revokes(c) ||
	    peer->pid == getpid())
		return;
	c->server_pid = peer->pid > 0 ? peer->pid : -1;
	if (peer->pid > 0)
		c->server_fd = (int)syscall(SYS_pidfd_open, peer->pid, 0);
}

int gn_client_writer(const struct gantry_client *c, int32_t *pid_p)
{
	int fd;

	*pid_p = c->server_pid;
	if (c->phase < GN_CLIENT_CLOSED || !gn_client_server_writes(c) || c->server_ended ||
	    c->released)
		return -ENOENT;
	if (c->server_fd < 0)
		return -ENOTSUP;
	fd = fcntl(c->server_fd, F_DUPFD_CLOEXEC, 3);
	return fd < 0 ? -errno : fd;
}
