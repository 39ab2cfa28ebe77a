/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * session_client.h - the sessions that a role opens. Control thread, except where noted. The
 * functions implement those of struct gantry_role_host with the same name, which
 * include/gantry/role.h documents.
 */
#ifndef GN_SESSION_CLIENT_H
#define GN_SESSION_CLIENT_H

#include <gantry/role.h>

struct gn_role;

/*
 * Create the counters of late replies, one for each lane. They belong to the role, because clients
 * can be removed, but counters cannot. Returns 0 or -ENOMEM. Once for a role with connects.
 */
int gn_client_create_counters(struct gn_role *role);
int gn_client_open(struct gn_role *role, uint32_t connect, const struct gantry_session_attr *attr,
		   const struct gantry_client_events *events, void *arg,
		   struct gantry_client **client_p);
int gn_client_export(struct gantry_client *client, const struct gantry_region *region,
		     uint32_t rights, uint32_t handle);
int gn_client_unexport(struct gantry_client *client, uint32_t handle);
int gn_client_start(struct gantry_client *client);
int gn_client_hop(struct gantry_client *client, uint32_t index, struct gantry_lane *lane,
		  struct gantry_hop *terminal);
void gn_client_close(struct gantry_client *client);
void gn_client_abort(struct gantry_client *client);
void gn_client_free(struct gantry_client *client);
uint64_t gn_client_export_limit(const struct gantry_client *client);
uint64_t gn_client_export_quota(const struct gantry_client *client);
uint64_t gn_client_id(const struct gantry_client *client);
int gn_client_regions_released(const struct gantry_client *client);
/* lane's thread */
uint64_t gn_client_settled_ns(const struct gantry_client *client, uint32_t index);
void gn_client_expect(struct gantry_client *client, const struct gantry_volume_info *volume);
void gn_client_use_secret(struct gantry_client *client, const uint8_t secret[GANTRY_SECRET_BYTES]);
void gn_client_secret(const struct gantry_client *client, uint8_t secret[GANTRY_SECRET_BYTES]);
/* lane's thread */
uint32_t gn_client_late_writes(const struct gantry_client *client, uint32_t index);
/*
 * Returns the features of the open clients of the role that have this id, as far as all of them
 * have a feature; all bits if there are none.
 */
uint64_t gn_client_common_features(const struct gn_role *role, uint64_t id);
/* Returns the least limit of regions of these clients, in bytes, or `limit` if that is less. */
uint64_t gn_client_common_region_limit(const struct gn_role *role, uint64_t id, uint64_t limit);
/* Write the array `client_sessions` into the open object. */
void gn_client_report(const struct gn_role *role, struct gantry_writer *w);
/* Returns true if every client of the role has received its event `closed`. */
int gn_client_all_closed(const struct gn_role *role);
/* Close every client of the role. */
void gn_client_close_all(const struct gn_role *role);
/*
 * Free all clients of the role, open or not, without events. The caller must destroy the role
 * before the next turn of the loop.
 */
void gn_client_free_all(struct gn_role *role);

#endif
