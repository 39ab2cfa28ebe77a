/* SPDX-License-Identifier: BSD-3-Clause */
/* endpoint.c - parse `listen` and `connect` of a role. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "session/frame.h"
#include "topology/topology_priv.h"

_Static_assert(GN_TOPOLOGY_LANES_MAX == GN_MAX_LANES,
	       "a session supports the configurable number of lanes");

#define CONNECTS_MAX 16
#define SECOND 1000000000ll

struct endpoint_conf {
	const char *device, *uids, *weights;
	struct gn_endpoint out;
};

#define TEXT(field) offsetof(struct endpoint_conf, field)
#define AT(field) offsetof(struct endpoint_conf, out.field)

/* clang-format off */
#define COMMON_ROWS \
	{"device", GANTRY_OPT_STRING, TEXT(device), NULL, 0, 0, NULL, NULL, "Name of an entry of devices."}, \
	{"name", GANTRY_OPT_STRING, AT(name), NULL, 0, 0, NULL, NULL, \
	 "The service: a name that services of the device maps, or the text that the transport uses."}, \
	{"control_timeout", GANTRY_OPT_TIME, AT(control_timeout_ns), "15s", 1000000, 600 * SECOND, NULL, NULL, \
	 "Longest wait for a reply, and for the next request of a peer that has not started IO " \
	 "yet; must be longer than connect.timeout of each gateway on the path between " \
	 "initiator and target."}, \
	{"heartbeat", GANTRY_OPT_TIME, AT(heartbeat_ns), "500ms", 1000000, 60 * SECOND, NULL, NULL, \
	 "Interval of keepalives; after four without a reply the session is lost."}, \
	{"io_timeout", GANTRY_OPT_TIME, AT(io_timeout_ns), "30s", 1000000, 600 * SECOND, NULL, NULL, \
	 "Deadline of an IO that has none."}
/* clang-format on */

const struct gantry_option gn_connect_options[] = {
	COMMON_ROWS,
	{"timeout", GANTRY_OPT_TIME, AT(connect_timeout_ns), "10s", 0, 3600 * SECOND, NULL, NULL,
	 "How long to keep trying while there is no listener at the service, or the listener is busy."},
	{"resume", GANTRY_OPT_TIME, AT(resume_ns), "0s", 0, 86400 * SECOND, NULL, NULL,
	 "How long programs and initiators try to resume a lost session; IO waits meanwhile. 0s: IO fails at once."},
	{"fence_timeout", GANTRY_OPT_TIME, AT(fence_timeout_ns), "30s", 1000000, 600 * SECOND, NULL,
	 NULL,
	 "Longest wait for the answer to an IO that has timed out; then the session ends. Until that answer, the "
	 "session holds back writes that overlap a timed-out write."},
	GANTRY_OPTION_END,
};

const struct gantry_option gn_listen_options[] = {
	COMMON_ROWS,
	{"sessions", GANTRY_OPT_INT, AT(exit_after), "0", 0, INT32_MAX, NULL, NULL,
	 "End after that many sessions; 0: serve until stopped."},
	{"max_sessions", GANTRY_OPT_INT, AT(max_sessions), "16", 1, 4096, NULL, NULL,
	 "Sessions of all peers at a time."},
	{"max_half_open", GANTRY_OPT_INT, AT(max_half_open), "64", 1, 4096, NULL, NULL,
	 "Most connections of one peer without an open session; the limit of all peers together is four times that."},
	{"max_peer_sessions", GANTRY_OPT_INT, AT(max_peer_sessions), "0", 0, 4096, NULL, NULL,
	 "Sessions of one peer at a time. 0: three quarters of max_sessions, at least 1; all of it if only one user may connect."},
	{"max_lanes", GANTRY_OPT_INT, AT(max_lanes), "16", 1, GN_TOPOLOGY_LANES_MAX, NULL, NULL,
	 "Lanes of a session."},
	{"max_depth", GANTRY_OPT_INT, AT(max_depth), "256", 1, 65535, NULL, NULL,
	 "IOs in flight on a lane of a session."},
	{"max_regions", GANTRY_OPT_INT, AT(max_regions), "16", 1, 4096, NULL, NULL,
	 "Regions of a session."},
	{"max_region_bytes", GANTRY_OPT_SIZE, AT(max_region_bytes), "4GiB", 4096, 1ll << 46, NULL,
	 NULL, "Bytes of all regions of a session."},
	{"max_peer_region_bytes", GANTRY_OPT_SIZE, AT(max_peer_region_bytes), "0", 0, 1ll << 46,
	 NULL, NULL,
	 "Bytes of all regions of one peer. 0: four times max_region_bytes; max_sessions times if only one user may connect."},
	{"max_peer_queue_memory", GANTRY_OPT_SIZE, AT(max_peer_queue_memory), "1GiB", 65536,
	 1ll << 46, NULL, NULL,
	 "Bytes of queues, of buffers for lists and of bounce buffers for all sessions of one peer."},
	{"move_memory", GANTRY_OPT_SIZE, AT(move_memory), "4MiB", 65536, 1ll << 30, NULL, NULL,
	 "Bounce buffers of each lane of a session, for a target on a device that cannot map regions."},
	{"direct_memory", GANTRY_OPT_SIZE, AT(direct_memory), "1GiB", 0, INT64_MAX, NULL, NULL,
	 "Largest volume in memory that is registered with the device for each session, if the role has no stages and the volume does not report extents: its data then needs no bounce buffers. 0: never."},
	{"weights", GANTRY_OPT_STRING, TEXT(weights), "", 0, 0, NULL, NULL,
	 "Weights of peers in the scheduling of a lane, 1 to 64, \"uid 1000=4, host 192.0.2.7=2\"; other peers have 1."},
	{"uids", GANTRY_OPT_STRING, TEXT(uids), "", 0, 0, NULL, NULL,
	 "Users who may connect, \"0,1000-1010\"; empty: only the user of the listener. Must be left out on a network."},
	GANTRY_OPTION_END,
};

static struct gn_topo_device *find_device(struct gn_topo_parse *p, struct gn_conf_node *group,
					  const char *name)
{
	struct gn_topology *t = p->topology;
	char known[256] = "";

	for (unsigned i = 0; i < t->n_devices; i++) {
		size_t n = strlen(known);

		if (!strcmp(t->devices[i].name, name)) {
			t->devices[i].used = true;
			return &t->devices[i];
		}
		snprintf(known + n, sizeof(known) - n, "%s%s", n ? ", " : "", t->devices[i].name);
	}
	gn_conf_fault(p->errs, gn_conf_child(group, "device"),
		      "there is no device \"%s\"; the devices are: %s", name,
		      known[0] ? known : "none");
	return NULL;
}

static int parse_endpoint(struct gn_topo_parse *p, struct gn_conf_node *group,
			  const struct gantry_option *options, const char *const *also,
			  struct gn_endpoint *endpoint, struct gn_topo_device **device_p)
{
	struct endpoint_conf conf = {.uids = "", .weights = ""};

	if (gn_conf_options(group, options, &conf, also, p->errs)) {
		const char *device = gn_conf_string(gn_conf_child(group, "device"));

		if (device)
			find_device(p, group, device); /* report an unknown device as well */
		return -EINVAL;
	}
	*device_p = find_device(p, group, conf.device);
	if (!*conf.out.name || strlen(conf.out.name) > GN_SERVICE_MAX) {
		gn_conf_fault(p->errs, gn_conf_child(group, "name"),
			      "has %zu characters; 1 to %d are possible", strlen(conf.out.name),
			      GN_SERVICE_MAX);
		return -EINVAL;
	}
	*endpoint = conf.out;
	endpoint->where = gn_conf_where(group);
	endpoint->service = endpoint->name;
	if (!*device_p)
		return -EINVAL;
	endpoint->service = gn_service_text((*device_p)->node, endpoint->name);
	if (gn_topo_weights(p, gn_conf_child(group, "weights"), conf.weights, endpoint) ||
	    gn_topo_allow(p, gn_conf_child(group, "allow"), endpoint))
		return -EINVAL;
	return gn_topo_numbers(p, gn_conf_child(group, "uids"), conf.uids, UINT32_MAX - 1,
			       &endpoint->uids, &endpoint->n_uids);
}

int gn_topo_listen(struct gn_topo_parse *p, struct gn_topo_role *role, struct gn_conf_node *node)
{
	static const char *const also[] = {"allow", NULL};

	if (!node)
		return 0;
	role->listen = gn_arena_alloc(&p->topology->arena, sizeof(*role->listen));
	if (!role->listen)
		return -ENOMEM;
	role->spec.listen = role->listen;
	return parse_endpoint(p, node, gn_listen_options, also, role->listen, &role->listen_device);
}

int gn_topo_connect(struct gn_topo_parse *p, struct gn_topo_role *role, struct gn_conf_node *node)
{
	bool list = gn_conf_is_list(node);
	unsigned n = list ? gn_conf_length(node) : 1;
	int rc = 0;

	if (!node)
		return 0;
	if (list && (n == 0 || n > CONNECTS_MAX)) {
		gn_conf_fault(p->errs, node, "has %u entries; write 1 to %d", n, CONNECTS_MAX);
		return -EINVAL;
	}
	role->connects = gn_arena_alloc(&p->topology->arena, n * sizeof(*role->connects));
	role->connect_devices = gn_arena_alloc(&p->topology->arena,
					       n * sizeof(*role->connect_devices));
	if (!role->connects || !role->connect_devices)
		return -ENOMEM;
	for (unsigned i = 0; i < n; i++)
		if (parse_endpoint(p, list ? gn_conf_index(node, i) : node, gn_connect_options,
				   NULL, &role->connects[i], &role->connect_devices[i]))
			rc = -EINVAL;
	role->spec.connects = role->connects;
	role->spec.n_connects = n;
	return rc;
}
