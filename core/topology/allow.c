/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * allow.c - parse `allow` of `listen`, a list of groups that name a peer each. Names of users and
 * groups of this machine are looked up when the configuration is loaded.
 */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topology/topology_priv.h"

#define ROWS_MAX 4096

struct row_conf {
	const char *identity, *user, *group;
	int64_t uid; /* -1: not set */
	uint64_t sessions, lanes, region_bytes;
	uint32_t access;
	uint8_t relay;
};

static const char *const access_words[] = {"rw", "ro", NULL};

#define AT(field) offsetof(struct row_conf, field)

const struct gantry_option gn_allow_options[] = {
	{"identity", GANTRY_OPT_STRING, AT(identity), "", 0, 0, NULL, NULL,
	 "A peer on a network, by the name that it proves (auth of the device)."},
	{"user", GANTRY_OPT_STRING, AT(user), "", 0, 0, NULL, NULL,
	 "A peer on this machine, by the name of its user."},
	{"uid", GANTRY_OPT_INT, AT(uid), "-1", -1, UINT32_MAX - 1, NULL, NULL,
	 "A peer on this machine, by the number of its user."},
	{"group", GANTRY_OPT_STRING, AT(group), "", 0, 0, NULL, NULL,
	 "Peers on this machine, by the name of a group of their user."},
	{"access", GANTRY_OPT_CHOICE, AT(access), "rw", 0, 0, access_words, NULL,
	 "ro: the peer can only read."},
	{"relay", GANTRY_OPT_BOOL, AT(relay), "false", 0, 0, NULL, NULL,
	 "The peer is a gateway whose statements about the identity of its clients are accepted."},
	{"sessions", GANTRY_OPT_INT, AT(sessions), "0", 0, 4096, NULL, NULL,
	 "Sessions of this peer at a time; 0: as the other limits of the listener permit."},
	{"lanes", GANTRY_OPT_INT, AT(lanes), "0", 0, GN_TOPOLOGY_LANES_MAX, NULL, NULL,
	 "Lanes of each session of this peer; 0: max_lanes."},
	{"region_bytes", GANTRY_OPT_SIZE, AT(region_bytes), "0", 0, 1ll << 46, NULL, NULL,
	 "Bytes of the regions of each session of this peer; 0: max_region_bytes."},
	GANTRY_OPTION_END,
};

static int no_memory(struct gn_topo_parse *p)
{
	gn_errs_no_memory(p->errs);
	return -ENOMEM;
}

static int add_uid(struct gn_allow *row, uint32_t uid)
{
	uint32_t *uids = realloc(row->uids, (row->n_uids + 1) * sizeof(*uids));

	if (!uids)
		return -ENOMEM;
	row->uids = uids;
	row->uids[row->n_uids++] = uid;
	return 0;
}

static int by_user(struct gn_topo_parse *p, struct gn_conf_node *group, const char *name,
		   struct gn_allow *row)
{
	const struct passwd *user = getpwnam(name);

	if (user)
		return add_uid(row, user->pw_uid) ? no_memory(p) : 0;
	gn_conf_fault(p->errs, gn_conf_child(group, "user"),
		      "this machine has no such user (user=%s): create it, or write uid = NUMBER",
		      name);
	return -EINVAL;
}

/* The primary group of a peer is compared by its number, and the members by the uid of the peer. */
static int by_group(struct gn_topo_parse *p, struct gn_conf_node *group, const char *name,
		    struct gn_allow *row)
{
	const struct group *found = getgrnam(name);

	if (!found) {
		gn_conf_fault(p->errs, gn_conf_child(group, "group"),
			      "this machine has no such group (group=%s): create it", name);
		return -EINVAL;
	}
	row->gid = found->gr_gid;
	for (char **member = found->gr_mem; *member; member++) {
		const struct passwd *user = getpwnam(*member);

		if (user && add_uid(row, user->pw_uid))
			return no_memory(p);
	}
	return 0;
}

static int by_identity(struct gn_topo_parse *p, struct gn_conf_node *group, const char *identity,
		       struct gn_allow *row)
{
	if (!gn_identity_ok(identity)) {
		gn_conf_fault(
			p->errs, gn_conf_child(group, "identity"),
			"\"%s\" is no identity; write 1 to %d letters, digits, dots, hyphens, underscores or @",
			identity, GN_IDENTITY_MAX);
		return -EINVAL;
	}
	row->identity = strdup(identity);
	return row->identity ? 0 : no_memory(p);
}

static int parse_peer(struct gn_topo_parse *p, struct gn_conf_node *group,
		      const struct row_conf *conf, struct gn_allow *row)
{
	if ((*conf->identity != 0) + (*conf->user != 0) + (*conf->group != 0) + (conf->uid >= 0) !=
	    1) {
		gn_conf_fault(p->errs, group,
			      "must name one peer: write one of identity, user, uid, group");
		return -EINVAL;
	}
	if (*conf->identity)
		return by_identity(p, group, conf->identity, row);
	if (*conf->user)
		return by_user(p, group, conf->user, row);
	if (*conf->group)
		return by_group(p, group, conf->group, row);
	return add_uid(row, (uint32_t)conf->uid) ? no_memory(p) : 0;
}

static int parse_volumes(struct gn_topo_parse *p, struct gn_conf_node *node, struct gn_allow *row)
{
	const unsigned n = gn_conf_length(node);

	if (!node)
		return 0;
	if (!gn_conf_is_list(node) || n == 0) {
		gn_conf_fault(p->errs, node, "must be a list of names: [ \"NAME\", ... ]");
		return -EINVAL;
	}
	row->volumes = calloc(n, sizeof(*row->volumes));
	if (!row->volumes)
		return no_memory(p);
	for (unsigned i = 0; i < n; i++) {
		const char *name = gn_conf_string(gn_conf_index(node, i));

		if (!name) {
			gn_conf_fault(p->errs, gn_conf_index(node, i),
				      "must be the name of a service: \"NAME\"");
			return -EINVAL;
		}
		row->volumes[i] = strdup(name);
		if (!row->volumes[i])
			return no_memory(p);
		row->n_volumes++;
	}
	return 0;
}

static int parse_row(struct gn_topo_parse *p, struct gn_conf_node *group, struct gn_allow *row)
{
	static const char *const also[] = {"volumes", NULL};
	struct row_conf conf = {.uid = -1};
	int rc = gn_conf_options(group, gn_allow_options, &conf, also, p->errs);

	if (rc)
		return rc;
	row->read_only = conf.access != 0; /* access_words */
	row->relay = conf.relay;
	row->sessions = conf.sessions;
	row->lanes = conf.lanes;
	row->region_bytes = conf.region_bytes;
	rc = parse_peer(p, group, &conf, row);
	return rc ? rc : parse_volumes(p, gn_conf_child(group, "volumes"), row);
}

int gn_topo_allow(struct gn_topo_parse *p, struct gn_conf_node *node, struct gn_endpoint *listen)
{
	const unsigned n = gn_conf_length(node);
	int rc = 0;

	if (!node)
		return 0;
	if (!gn_conf_is_list(node) || n > ROWS_MAX) {
		gn_conf_fault(
			p->errs, node,
			"must be a list of at most %d groups: ( { identity = \"NAME\"; }, ... )",
			ROWS_MAX);
		return -EINVAL;
	}
	listen->access = gn_access_new(n);
	if (!listen->access)
		return no_memory(p);
	for (unsigned i = 0; i < n; i++)
		if (parse_row(p, gn_conf_index(node, i), &listen->access->rows[i]))
			rc = -EINVAL;
	return rc;
}
