/* SPDX-License-Identifier: BSD-3-Clause */
/* conf.c - writes the configuration of the processes of a round */
#include <stdio.h>
#include <string.h>

#include "soak/driver.h"

/* Write the stages of a role to `text`. */
static void stages(const struct driver *d, const struct round *r, enum child_kind kind,
		   char text[160])
{
	static const struct {
		const char *bug, *stage;
		enum child_kind kind;
	} lies[] = {
		{"lose", "{ type = \"liar\"; lie = \"lose\"; nth = 100; }", CHILD_TARGET},
		{"lose-read", "{ type = \"liar\"; lie = \"lose\"; only = \"reads\"; nth = 100; }",
		 CHILD_TARGET},
		{"misdirect", "{ type = \"liar\"; lie = \"misdirect\"; nth = 100; }", CHILD_TARGET},
		{"tear", "{ type = \"liar\"; lie = \"tear\"; nth = 100; }", CHILD_CLIENT},
		{"leak", "{ type = \"liar\"; lie = \"leak\"; nth = 100; }", CHILD_GATEWAY},
	};
	static const char *const crc[CHILD_KINDS] = {
		[CHILD_TARGET] = "{ type = \"crc\"; mode = \"verify\"; }",
		[CHILD_GATEWAY] = "{ type = \"stats\"; }",
		[CHILD_CLIENT] = "{ type = \"crc\"; mode = \"generate\"; }",
	};
	const char *bug = "";

	for (unsigned i = 0; i < sizeof(lies) / sizeof(lies[0]); i++)
		if (!strcmp(d->options.bug, lies[i].bug) && kind == lies[i].kind)
			bug = lies[i].stage;
	snprintf(text, 160, "stages = ( %s%s%s );", bug, *bug && r->crc ? ", " : "",
		 r->crc ? crc[kind] : "");
}

/* Write the devices. at_target() and at_gateway() write the endpoints that name them. */
static void write_devices(const struct driver *d, const struct round *r, FILE *f)
{
	const struct options *o = &d->options;

	if (o->near)
		fprintf(f,
			"devices = {\n  near = { %s auth = \"none\"; };\n  far = { %s auth = \"none\"; };\n"
			"  store = { %s auth = \"none\"; direct_networks = \"%s/32\"; };\n};\n",
			o->near, o->far, o->far, o->far_ip);
	else
		fprintf(f,
			"devices = {\n"
			"  front = { transport = \"shm-comch\"; dir = \"%s/run\"; pci = \"03:00.0\"; };\n"
			"  back = { transport = \"shm-comch\"; dir = \"%s/run\"; pci = \"04:00.0\"; mapped = %s; };\n};\n",
			d->dir, d->dir, r->mapped ? "true" : "false");
}

static void at_target(const struct driver *d, char at[160], int listens, unsigned i)
{
	if (d->options.near)
		snprintf(at, 160, "device = \"%s\"; name = \"%s:%u\";", listens ? "store" : "near",
			 d->options.far_ip, 7471 + 10 * i);
	else
		snprintf(at, 160, "device = \"back\"; name = \"store%u\";", i);
}

static void at_gateway(const struct driver *d, char at[160], int listens, unsigned i)
{
	if (d->options.near)
		snprintf(at, 160, "device = \"%s\"; name = \"%s:%u\";", listens ? "near" : "far",
			 d->options.near_ip, 7472 + i % (CLIENT - GATEWAY));
	else
		snprintf(at, 160, "device = \"front\"; name = \"%s%u\";",
			 listens || d->topology->paths ? "volume" : "client", i);
}

static void write_targets(const struct driver *d, const struct round *r, FILE *f)
{
	char text[160], at[160], path[128];

	stages(d, r, CHILD_TARGET, text);
	for (unsigned i = 0; i < d->topology->targets; i++) {
		at_target(d, at, 1, i);
		store_path(d, i, path);
		fprintf(f,
			"  target%u = { role = \"target\"; lanes = %u; %s\n"
			"              listen = { %s heartbeat = \"%ums\"; move_memory = \"256KiB\"; };\n"
			"              backend = { ",
			i, r->lanes, text, at, r->heartbeat);
		/*
		 * prefault all memory, and use few bounce buffers: memory that is faulted in later
		 * would look like a leak
		 */
		if (r->memory)
			fprintf(f, "type = \"memory\"; size = \"%u\"; populate = true; }; };\n",
				SOAK_BLOCKS * SOAK_BLOCK);
		else if (service_backend(d, r, f))
			fprintf(f, " }; };\n");
		else
			fprintf(f,
				"type = \"file\"; path = \"%s\"; lock_wait = \"30s\"; direct = %s; engine = \"%s\"; }; };\n",
				path, r->direct ? "true" : "false", r->sync ? "sync" : "auto");
	}
}

/* Returns how long a gateway waits for its target, s. A client waits longer for its gateway. */
static unsigned start_s(const struct driver *d)
{
	return d->topology->start_s ? d->topology->start_s : 10;
}

/* The UUID of the volume, which the clients have found. */
static void write_uuid(const struct driver *d, FILE *f)
{
	fprintf(f, "uuid = \"");
	for (unsigned i = 0; i < sizeof(d->journal->uuid); i++)
		fprintf(f, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
			d->journal->uuid[i]);
	fprintf(f, "\"; ");
}

/* Write `connect` of a gateway. */
static void write_to_targets(const struct driver *d, const struct round *r, FILE *f)
{
	const unsigned n = d->topology->targets;
	char to[160];

	if (n > 1)
		fprintf(f, "mode = \"stripe\"; chunk = \"%u\"; ", STRIPE_CHUNK);
	if (r->uuid && strcmp(d->options.bug, "no-uuid"))
		write_uuid(d, f);
	for (unsigned i = 0; i < n; i++) {
		at_target(d, to, 0, i);
		fprintf(f, "%s{ %s heartbeat = \"%ums\"; timeout = \"%us\"; }",
			i ? ", " : "connect = ( ", to, r->heartbeat, start_s(d));
	}
	fprintf(f, " );");
}

/* Write `connect` of a client: its gateway, or both as paths, its own first. */
static void write_to_gateways(const struct driver *d, const struct round *r, unsigned client,
			      FILE *f)
{
	const int paths = d->topology->paths, stays = !strcmp(d->options.bug, "stay");
	const unsigned n = CLIENT - GATEWAY, n_paths = paths && !stays ? n : 1;
	char to[160];

	for (unsigned i = 0; i < n_paths; i++) {
		at_gateway(d, to, 0, paths ? (client + i) % n : client);
		fprintf(f,
			"%s{ %s heartbeat = \"%ums\"; io_timeout = \"%ums\"; timeout = \"%s\"; "
			"control_timeout = \"%us\"; resume = \"%us\"; }",
			i ? ",\n                " : "connect = ( ", to, r->heartbeat, r->io_timeout,
			n_paths > 1 ? "500ms" : "40s", start_s(d) + 5, 4 * start_s(d));
	}
	fprintf(f, " );");
}

int conf_write(struct driver *d, const struct round *r)
{
	FILE *f = fopen(d->conf, "we");
	char text[160], at[160];

	if (!f)
		return -1;
	fprintf(f, "runtime = { stat = false; log = \"info\"; };\n");
	write_devices(d, r, f);
	fprintf(f, "roles = {\n");
	write_targets(d, r, f);
	stages(d, r, CHILD_GATEWAY, text);
	for (unsigned i = 0; i < CLIENT - GATEWAY; i++) {
		at_gateway(d, at, 1, i);
		fprintf(f,
			"  gateway%u = { role = \"gateway\"; lanes = %u; %s\n"
			"               listen = { %s heartbeat = \"%ums\"; };\n               ",
			i, r->lanes, text, at, r->heartbeat);
		write_to_targets(d, r, f);
		fprintf(f, " };\n");
	}
	stages(d, r, CHILD_CLIENT, text);
	for (unsigned i = 0; i < SOAK_CLIENTS; i++) {
		fprintf(f, "  client%u = { role = \"initiator\"; %s\n              ", i, text);
		write_to_gateways(d, r, i, f);
		fprintf(f, " };\n");
	}
	fprintf(f, "};\n");
	return fclose(f);
}
