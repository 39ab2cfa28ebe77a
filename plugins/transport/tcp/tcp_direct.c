/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp_direct.c - links to the owner of memory that a peer has exported again. With the option
 * direct, an owner listens for such links, and announces its address and a secret with its regions;
 * a gateway passes both on. A target whose direct_networks have the address connects to it; any
 * other uses the relay of the gateway. Thread: control.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "tcp.h"

#define OWNERS 64u /* limit of owners of a connection */

/* -- the owner -- */

void tcp_direct_offer(struct tcp_conn *conn, struct tcp_ctrl_region *wire)
{
	struct sockaddr_storage addr;
	socklen_t bytes = sizeof(addr);

	if (!conn->dev->conf->direct || getsockname(conn->fd, (struct sockaddr *)&addr, &bytes) ||
	    tcp_listen_direct(conn->dev, &addr))
		return;
	tc_address_put(&addr, &wire->family, &wire->port, wire->address);
	wire->session = conn->direct_session;
	memcpy(wire->secret, conn->direct_secret, sizeof(wire->secret));
	wire->owner_name = wire->name;
}

/* Takes the same time wherever the secrets differ. */
static bool has_secret(const struct tcp_conn *conn, const struct tcp_hello *hello)
{
	uint8_t differs = 0;

	for (int i = 0; i < TCP_SECRET; i++)
		differs |= (uint8_t)(conn->direct_secret[i] ^ hello->secret[i]);
	return !differs;
}

struct tcp_conn *tcp_direct_find_conn(const struct tcp_device *dev, const struct tcp_hello *hello)
{
	struct tcp_conn *conn;

	/* with a record filter, the handshake of the stream proves the secret */
	LIST_FOREACH (conn, &dev->conns, link)
		if (conn->direct_session == hello->session && conn->state == TCP_C_UP &&
		    !conn->freed && !tcp_lost(conn) && dev->conf->direct &&
		    (dev->host->records || has_secret(conn, hello)))
			break;
	return conn;
}

struct tcp_link *tcp_direct_accept(struct tcp_conn *conn)
{
	struct tcp_link *link = NULL;
	struct tcp_lane *lane;

	if (tcp_lane_get(conn, TCP_DIRECT_LANE, &lane))
		return NULL;
	pthread_mutex_lock(&lane->lock);
	link = tcp_link_reuse(lane);
	if (!link)
		tcp_link_new(lane, TCP_LANES + conn->n_direct++, &link);
	pthread_mutex_unlock(&lane->lock);
	return link;
}

/* -- the gateway -- */

void tcp_direct_pass(const struct tcp_conn *conn, const struct tcp_import *im,
		     struct tcp_ctrl_region *wire)
{
	/* the owner and the peer must both have streams, and their secret never goes in clear */
	if (!conn->dev->conf->direct ||
	    (im->conn->dev->host->records != NULL) != (conn->dev->host->records != NULL))
		return;
	wire->owner_name = im->wire.owner_name;
	wire->session = im->wire.session;
	memcpy(wire->secret, im->wire.secret, sizeof(wire->secret));
	wire->family = im->wire.family;
	wire->port = im->wire.port;
	memcpy(wire->address, im->wire.address, sizeof(wire->address));
	wire->third = 1;
}

/* -- the target -- */

static bool get_address(const struct tcp_ctrl_region *wire, struct sockaddr_storage *addr)
{
	return wire->session && tc_address_get(addr, wire->family, wire->port, wire->address) == 0;
}

int tcp_direct_find(struct tcp_conn *conn, const struct tcp_ctrl_region *wire,
		    struct tcp_owner **owner_p)
{
	struct sockaddr_storage addr;
	struct tcp_owner *owner;
	uint32_t n = 0;

	*owner_p = NULL;
	if (!wire->third || !get_address(wire, &addr) ||
	    !tc_networks_have(&conn->dev->direct_networks, (struct sockaddr *)&addr))
		return 0;
	LIST_FOREACH (owner, &conn->owners, entry) {
		if (owner->session == wire->session &&
		    memcmp(owner->secret, wire->secret, TCP_SECRET) == 0)
			break;
		n++;
	}
	if (!owner && n == OWNERS)
		return -EPROTO;
	if (!owner) {
		owner = calloc(1, sizeof(*owner));
		if (!owner)
			return -ENOMEM;
		owner->session = wire->session;
		memcpy(owner->secret, wire->secret, TCP_SECRET);
		owner->addr = addr;
		LIST_INSERT_HEAD(&conn->owners, owner, entry);
	}
	*owner_p = owner;
	return 0;
}

int tcp_direct_want(struct tcp_lane *lane, struct tcp_owner *owner)
{
	struct tcp_link *link = NULL;
	int rc;

	if (owner->links[lane->number])
		return 0;
	pthread_mutex_lock(&lane->lock);
	rc = tcp_link_new(lane, TCP_LANES + lane->conn->n_direct++, &link);
	if (!rc) {
		link->owner = owner;
		rc = tcp_link_start(link);
	}
	pthread_mutex_unlock(&lane->lock);
	if (!rc) /* pairs with tcp_rma_submit(); the link stays until the connection ends */
		__atomic_store_n(&owner->links[lane->number], link, __ATOMIC_RELEASE);
	return rc;
}

int tcp_direct_want_all(struct tcp_conn *conn, struct tcp_owner *owner)
{
	struct tcp_lane *lane;
	int rc = 0;

	LIST_FOREACH (lane, &conn->lanes, entry)
		if (lane->n_rmas && !rc)
			rc = tcp_direct_want(lane, owner);
	return rc;
}

void tcp_owners_free(struct tcp_conn *conn)
{
	while (!LIST_EMPTY(&conn->owners)) {
		struct tcp_owner *owner = LIST_FIRST(&conn->owners);

		LIST_REMOVE(owner, entry);
		free(owner);
	}
}
