/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * front.c - moves clients between the gateways, like an address that moves between machines
 *
 * Each client connects to a service with its own name. The directory of the device has the socket
 * volumeK.sock of gateway K, and a symbolic link clientN.sock to one of these sockets. The next
 * connection of client N goes through the gateway that the link names at that time; an existing
 * connection is not affected. Over a network, each client keeps its gateway. In a topology with
 * paths, the clients name the sockets of both gateways instead.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "soak/driver.h"

#define GATEWAYS (CLIENT - GATEWAY)
#define FRONT "03%3A00.0" /* the directory of the device `front`, see conf.c */

static int point(struct driver *d, unsigned client, unsigned gateway)
{
	char path[160], new[168], to[32];

	snprintf(path, sizeof(path), "%s/run/%s/client%u.sock", d->dir, FRONT, client);
	snprintf(new, sizeof(new), "%s.new", path);
	snprintf(to, sizeof(to), "volume%u.sock", gateway);
	if (symlink(to, new) || rename(new, path)) {
		soak_report(d->journal, SOAK_STATUS, "%s: %s", path, strerror(errno));
		return -1;
	}
	d->gateway_of[client] = gateway;
	return 0;
}

int front_begin(struct driver *d)
{
	char path[128];

	if (d->options.near)
		return 0;
	snprintf(path, sizeof(path), "%s/run", d->dir);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/run/%s", d->dir, FRONT);
	mkdir(path, 0700);
	for (unsigned i = 0; i < SOAK_CLIENTS; i++)
		if (point(d, i, i % GATEWAYS))
			return -1;
	return 0;
}

int front_move(struct driver *d, unsigned gateway)
{
	for (unsigned i = 0; i < SOAK_CLIENTS; i++) {
		if (d->options.near || d->topology->paths || d->gateway_of[i] != gateway ||
		    !strcmp(d->options.bug, "stay"))
			continue;
		if (point(d, i, (gateway + 1) % GATEWAYS))
			return -1;
		d->moves++;
	}
	return 0;
}

void front_end(struct driver *d)
{
	char path[160];

	for (unsigned i = 0; i < SOAK_CLIENTS; i++) {
		snprintf(path, sizeof(path), "%s/run/%s/client%u.sock", d->dir, FRONT, i);
		unlink(path);
	}
}
