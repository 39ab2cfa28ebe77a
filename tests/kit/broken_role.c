/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * broken_role.c - the example scan.c with a selectable bug, to show that gantry conform finds it.
 * The bug is between the role and its host: the role gets a host with other functions.
 */
#include "../examples/role/scan.c"

struct broken_conf {
	const char *bug;
};

static const struct gantry_option broken_options[] = {
	{"bug", GANTRY_OPT_STRING, offsetof(struct broken_conf, bug), "none", 0, 0, NULL, NULL,
	 "The bug."},
	GANTRY_OPTION_END,
};

static const struct scan_conf scan_conf = {.block = 65536};
static const char *bug = "none";
static const struct gantry_role_host *real;
static struct gantry_role_host shown;
static struct gantry_client_events shown_events;
static struct gantry_hop shown_owner, real_owner, real_terminal;
static int lost;

static int has(const char *name)
{
	return strcmp(bug, name) == 0;
}

static void finished_as_it_pleases(const struct gantry_role_host *rh, int status)
{
	(void)rh;
	real->finished(real, has("hides-a-lost-session") && lost ? 0 : status);
}

static void complete_as_it_pleases(void *self, struct gantry_io *io)
{
	if (has("hides-a-failed-io") && io->status == GANTRY_S_IO)
		io->status = GANTRY_S_OK;
	if (has("counts-twice") && !io->busy)
		abort();
	real_owner.complete(self, io);
}

static int submit_as_it_pleases(void *self, struct gantry_io *io)
{
	int rc = real_terminal.submit(self, io);

	if (!has("gives-up-a-rejected-io") || rc != -EAGAIN)
		return rc;
	gantry_fail(io, GANTRY_S_CANCELED);
	return 0;
}

static int hop_of(struct gantry_client *client, uint32_t index, struct gantry_lane *lane,
		  struct gantry_hop *terminal)
{
	int rc = real->client_hop(client, index, lane, terminal);

	real_terminal = *terminal;
	if (has("gives-up-a-rejected-io"))
		terminal->submit = submit_as_it_pleases;
	return rc;
}

static int chain_of(struct gantry_lane *lane, const struct gantry_hop *owner,
		    const struct gantry_hop *terminal, const struct gantry_volume_info *volume,
		    uint32_t n, struct gantry_chain **chain_p, struct gantry_io **ios_p)
{
	real_owner = *owner;
	shown_owner = *owner;
	shown_owner.complete = complete_as_it_pleases;
	return real->chain_create(lane, &shown_owner, terminal, volume, n, chain_p, ios_p);
}

static void note_closed(void *arg, struct gantry_client *client, int reason, const char *text)
{
	lost = reason != 0;
	events.closed(arg, client, reason, text);
}

static int open_session(const struct gantry_role_host *rh, uint32_t connect,
			const struct gantry_session_attr *attr,
			const struct gantry_client_events *its, void *arg,
			struct gantry_client **client_p)
{
	int rc;

	(void)rh;
	shown_events = *its;
	shown_events.closed = note_closed;
	rc = real->client_open(real, connect, attr, &shown_events, arg, client_p);
	return has("ignores-a-failed-open") ? 0 : rc;
}

static int export_region(struct gantry_client *client, const struct gantry_region *region,
			 uint32_t rights, uint32_t handle)
{
	int rc = real->client_export(client, region, rights, handle);

	return has("ignores-a-failed-export") ? 0 : rc;
}

static void forget_region(const struct gantry_role_host *rh, struct gantry_region *region,
			  int released)
{
	(void)rh;
	if (!has("leaks-a-region"))
		real->region_destroy(real, region, released);
}

static int broken_open(const struct gantry_role_host *rh, const void *conf, void **role_p)
{
	bug = ((const struct broken_conf *)conf)->bug;
	lost = 0;
	real = rh;
	shown = *rh;
	shown.finished = finished_as_it_pleases;
	shown.client_hop = hop_of;
	shown.chain_create = chain_of;
	shown.client_open = open_session;
	shown.client_export = export_region;
	shown.region_destroy = forget_region;
	return scan_open(&shown, &scan_conf, role_p);
}

static void broken_stop(void *role)
{
	const struct scan *scan = role;

	if (has("ignores-stop") && scan->polled)
		return;
	if (has("ignores-an-early-stop") && !scan->polled)
		return;
	scan_stop(role);
}

static const struct gantry_role_ops broken_ops = {
	.open = broken_open,
	.start = scan_start,
	.stop = broken_stop,
	.close = free,
	.report = scan_report,
	.flags = GANTRY_ROLE_CONNECTS | GANTRY_ROLE_ONE_VOLUME | GANTRY_ROLE_WORKS,
};

GANTRY_PLUGIN(broken_role) = {
	GANTRY_PLUGIN_HEAD,
	.kind = GANTRY_KIND_ROLE,
	.name = "broken-role",
	.version = "1",
	.summary = "has a bug: for tests of tests",
	.options = broken_options,
	.conf_size = sizeof(struct broken_conf),
	.ops_size = sizeof(broken_ops),
	.ops = &broken_ops,
};
