/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer.h - one end of a connection over a transport plugin, with a queue in each direction, ready
 * for its lane.
 *
 * An end can also export a region: the client for messages with data; the server for remote access
 * by the client, which then registers memory of the same size; or both, for access in both
 * directions. These functions are the control side. The lanes of msgbench.c run between the return
 * of peers_join and the call of peers_part.
 */
#ifndef PERF_PEER_H
#define PERF_PEER_H

#include <gantry/transport.h>

#include "fake/host.h"

#define PEER_SETTINGS 8

struct peer_attr {
	const char *transport;
	const char *settings
		[PEER_SETTINGS]; /* "name=value", ends with NULL; "client:name=value" or "server:name=value" for one end */
	const char *service;
	uint32_t depth;
	/* size of the region, and of a receive buffer at the server; 0: immediate data only */
	uint64_t data_bytes;
	/* remote access to the region of the server, instead of messages with data */
	int rma;
	int both; /* if rma is set: access in both directions */
	/*
	 * messages name data in the region of the client, which the server has mapped, without a
	 * copy
	 */
	int posted;
	/* messages contain their data: no region, and both ends receive into a buffer */
	int inlined;
};

struct peer {
	const struct peer_attr *attr;
	const struct gantry_transport_ops *ops;
	uint32_t depth;   /* of the queues: the requested depth, limited by the device */
	int shares_lines; /* polling reads cache lines that the other end writes */
	struct fake_host host;
	void *own_ops, *conf, *device, *listener, *conn, *consumer, *producer, *rma;
	struct gantry_region region;    /* the exported region; if rma is set, the registered one */
	struct gantry_region *imported; /* the imported region of the other end */
	/* own_token: of the own region; token: of the region of the other end */
	struct gantry_token own_token, token;
	uint64_t word[7] __attribute__((aligned(64)));
	uint32_t n_taken; /* number of receives to post again */
	char *buffer;     /* for receives of the server; if `inlined` is set, of both ends */
	uint32_t own_id, other_id;
	int is_server, owns_device;
	unsigned n_idle;
	int has_token, has_other, is_seen, has_regions, is_exported; /* finished steps */
	int said_ready, heard_ready, said_set, heard_set, heard_bye, closed;
};

/* Load the plugin and open its device. beside: use the device of that peer; NULL: open a device. */
void peer_open(struct peer *p, const struct peer_attr *attr, int is_server, struct peer *beside);
/* Listen or connect. */
void peer_begin(struct peer *p);
/*
 * Make progress until all n peers (1, or both ends of one process) have connected and can send.
 * Ends the program on failure.
 */
void peers_join(struct peer *const *peers, int n);
/* Send the end message, wait for that of the peer, and free everything. */
void peers_part(struct peer *const *peers, int n);
/* Run the control side after many empty polls: it can still be connecting. */
void peer_idle(struct peer *p);
/* Post n receives again, with the buffer if there is one. */
void peer_post(struct peer *p, uint32_t n);

#endif
