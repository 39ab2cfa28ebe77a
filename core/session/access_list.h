/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * access_list.h - which peers may open sessions on a listener, and with which rights: the rows of
 * `listen.allow`. Control thread.
 *
 * A row names an identity, which a peer on a network has proved to the record filter, or a user or
 * group of this machine, which the kernel reports. A gateway passes on the identity of its client
 * in HELLO. The server accepts that claim only from a peer whose row has `relay`; then both rows
 * limit the session.
 */
#ifndef GN_SESSION_ACCESS_LIST_H
#define GN_SESSION_ACCESS_LIST_H

#include "secure/auth.h"

#include <gantry/transport.h>

#include <stdbool.h>

struct gn_allow {
	char *identity; /* NULL: the row is for users of this machine */
	uint32_t *uids; /* of users, or of the members of a group */
	uint32_t n_uids;
	uint32_t gid;       /* UINT32_MAX: the row names no group */
	char **volumes;     /* names of services */
	uint32_t n_volumes; /* 0: every service */
	bool read_only;
	bool relay;            /* accept the identity that this peer claims for its client */
	uint64_t sessions;     /* limit of sessions at a time; 0: that of the listener */
	uint64_t lanes;        /* limit of lanes of each session; 0: that of the listener */
	uint64_t region_bytes; /* limit of the regions of each session; 0: that of the listener */
};

/* The rows of one listener, in the order of the configuration. */
struct gn_access {
	uint32_t n;
	struct gn_allow rows[];
};

/* Allocate n empty rows. Returns NULL without memory. */
struct gn_access *gn_access_new(uint32_t n);
/* True if both have the same rows; each may be NULL. */
bool gn_access_equal(const struct gn_access *a, const struct gn_access *b);
/* Free the rows and their members. *access_p may be NULL. */
void gn_access_free(struct gn_access **access_p);

/*
 * Find the first row for a peer and a service.
 *
 * identity  that the peer has proved; NULL: the kernel reports the peer
 * returns   the row, valid until the rows are freed; NULL: the peer has no access
 */
const struct gn_allow *gn_access_find(const struct gn_access *access, const char *service,
				      const char *identity, const struct gantry_peer *peer);

#endif
