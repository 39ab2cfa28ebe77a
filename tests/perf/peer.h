/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer.h - one end of a connection over a transport plugin, with a queue in each direction, ready
 * for its lane.
 *
 * One of them may export a region as well: the client for messages with data, the server for remote
 * access by the client, which then has registered memory of the same size; or both, for access both
 * ways. All of it is the control side; the lanes of msgbench.c take over when peers_join has
 * returned, and hand back before peers_part is called.
 */
#ifndef PERF_PEER_H
#define PERF_PEER_H

#include <gantry/transport.h>

#include "fake/host.h"

#define PEER_SETTINGS 8

struct peer_attr {
	const char *transport;
	const char *settings
		[PEER_SETTINGS]; /* "name=value", up to a NULL; "client:name=value" for that end alone, or "server:" */
	const char *service;
	uint32_t depth;
	/* size of the region, and of a receive buffer at the server; 0: immediate data only */
	uint64_t data_bytes;
	/* remote access instead of messages with data: of the server's region, or */
	int rma;
	int both; /* with rma: of each other's */
	/*
	 * messages that name data in the client's region, which the server has mapped: nothing is
	 * copied
	 */
	int posted;
	/* data travels in the queue: no region, and both ends receive into a buffer */
	int inlined;
};

struct peer {
	const struct peer_attr *attr;
	const struct gantry_transport_ops *ops;
	uint32_t depth;   /* of the queues: what the device can, at most what was asked for */
	int shares_lines; /* polling touches lines that the other end writes */
	struct fake_host host;
	void *own_ops, *conf, *device, *listener, *conn, *consumer, *producer, *rma;
	struct gantry_region region;    /* what is exported, and with rma what is registered */
	struct gantry_region *imported; /* the other end's view of it */
	/* of what is exported, of what the other end exports */
	struct gantry_token own_token, token;
	struct gantry_send send; /* these words */
	uint64_t word[7] __attribute__((aligned(64)));
	uint32_t n_taken; /* receives that are to be posted again */
	char *buffer;     /* of receives: the server's, with `inlined` of both */
	uint32_t own_id, other_id;
	int is_server, owns_device;
	unsigned n_idle;
	int has_token, has_other, is_seen, has_regions, is_exported; /* steps done */
	int said_ready, heard_ready, said_set, heard_set, heard_bye, closed;
};

/*
 * Load the plugin and open its device; beside NULL: a device of its own, else the one of that peer.
 */
void peer_open(struct peer *p, const struct peer_attr *attr, int is_server, struct peer *beside);
/* Listen or connect. */
void peer_begin(struct peer *p);
/*
 * Make progress until all n peers (1, or both of one process) have connected and can send. Ends the
 * program if they cannot.
 */
void peers_join(struct peer *const *peers, int n);
/* Send the end message, wait for that of the peer, and free everything. */
void peers_part(struct peer *const *peers, int n);
/* Nothing came for a while: let the control side go on. Transports may still be connecting. */
void peer_idle(struct peer *p);
/* Post n receives again, with the buffer if there is one. */
void peer_post(struct peer *p, uint32_t n);

#endif
