/* SPDX-License-Identifier: BSD-3-Clause */
#include "session/access_list.h"

#include <stdlib.h>
#include <string.h>

struct gn_access *gn_access_new(uint32_t n)
{
	struct gn_access *access = calloc(1, sizeof(*access) + n * sizeof(access->rows[0]));

	if (!access)
		return NULL;
	access->n = n;
	for (uint32_t i = 0; i < n; i++)
		access->rows[i].gid = UINT32_MAX;
	return access;
}

void gn_access_free(struct gn_access **access_p)
{
	struct gn_access *access = *access_p;

	*access_p = NULL;
	for (uint32_t i = 0; access && i < access->n; i++) {
		struct gn_allow *row = &access->rows[i];

		for (uint32_t k = 0; k < row->n_volumes; k++)
			free(row->volumes[k]);
		free(row->volumes);
		free(row->uids);
		free(row->identity);
	}
	free(access);
}

static bool row_equal(const struct gn_allow *a, const struct gn_allow *b)
{
	if (!a->identity != !b->identity ||
	    (a->identity && strcmp(a->identity, b->identity) != 0) || a->n_uids != b->n_uids ||
	    a->gid != b->gid || a->n_volumes != b->n_volumes || a->read_only != b->read_only ||
	    a->relay != b->relay || a->sessions != b->sessions || a->lanes != b->lanes ||
	    a->region_bytes != b->region_bytes)
		return false;
	for (uint32_t i = 0; i < a->n_uids; i++)
		if (a->uids[i] != b->uids[i])
			return false;
	for (uint32_t i = 0; i < a->n_volumes; i++)
		if (strcmp(a->volumes[i], b->volumes[i]) != 0)
			return false;
	return true;
}

bool gn_access_equal(const struct gn_access *a, const struct gn_access *b)
{
	if (!a || !b)
		return a == b;
	for (uint32_t i = 0; i < a->n && i < b->n; i++)
		if (!row_equal(&a->rows[i], &b->rows[i]))
			return false;
	return a->n == b->n;
}

static bool has_volume(const struct gn_allow *row, const char *service)
{
	for (uint32_t i = 0; i < row->n_volumes; i++)
		if (strcmp(row->volumes[i], service) == 0)
			return true;
	return row->n_volumes == 0;
}

static bool is_local(const struct gn_allow *row, const struct gantry_peer *peer)
{
	for (uint32_t i = 0; i < row->n_uids; i++)
		if (row->uids[i] == peer->uid)
			return true;
	return row->gid != UINT32_MAX && row->gid == peer->gid;
}

static bool is_peer(const struct gn_allow *row, const char *identity,
		    const struct gantry_peer *peer)
{
	if (identity)
		return row->identity && strcmp(row->identity, identity) == 0;
	return !row->identity && peer->uid != UINT32_MAX && is_local(row, peer);
}

const struct gn_allow *gn_access_find(const struct gn_access *access, const char *service,
				      const char *identity, const struct gantry_peer *peer)
{
	for (uint32_t i = 0; i < access->n; i++)
		if (is_peer(&access->rows[i], identity, peer) &&
		    has_volume(&access->rows[i], service))
			return &access->rows[i];
	return NULL;
}
