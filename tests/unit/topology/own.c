/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A role of the embedding program replaces a role of the configuration: which role it can replace,
 * and which settings of that role it gets.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "topology/topology.h"
#include "unity.h"

#define DEVICES \
	"devices = { wire = { transport = \"loop\"; }; other = { transport = \"loop\"; }; };\n"
#define TARGET \
	"store = { role = \"target\"; listen = { device = \"wire\"; name = \"v\"; };" \
	" backend = { type = \"null\"; size = \"1MiB\"; }; };\n"
#define LOAD(name) \
	name " = { role = \"initiator\"; lanes = 5; connect = { device = \"wire\"; name = \"v\"; };" \
	     " stages = ( { type = \"noop\"; } ); workload = { depth = 1; }; };\n"
#define BARE "bare = { connect = { device = \"wire\"; name = \"v\"; }; };\n"
#define ROLES(text) DEVICES "roles = {\n" text "};\n"

/* -- a role -- */

static const struct gantry_role_host *seen;
static const void *conf_seen;
static unsigned n_closed;

static int own_open(const struct gantry_role_host *rh, const void *conf, void **role_p)
{
	seen = rh;
	conf_seen = conf;
	*role_p = &seen;
	return 0;
}

static int own_start(void *role)
{
	(void)role;
	return 0;
}

static void own_stop(void *role)
{
	(void)role;
}

static void own_close(void *role)
{
	(void)role;
	n_closed++;
}

static void own_report(void *role, struct gantry_writer *w)
{
	(void)role;
	(void)w;
}

static const struct gantry_role_ops ops = {
	.open = own_open,
	.start = own_start,
	.stop = own_stop,
	.close = own_close,
	.report = own_report,
};

/* -- topologies -- */

static struct gn_worker *workers[2];
static struct gn_topo_embedded_role own = {
	.name = "program", .ops = &ops, .conf = &workers, .n_lanes = 2, .workers = workers};
static struct gn_topology_args args;
static struct gn_topology topology;
static struct gn_errs errs;

void setUp(void)
{
	struct gn_worker_attr attr = {.driven = true};

	gn_log_set_level(GN_LOG_ERROR);
	args = (struct gn_topology_args){.verbose = 1, .own = &own};
	TEST_ASSERT_EQUAL_INT(0, gn_strlist_add(&args.plugin_dirs, TEST_PLUGINDIR));
	topology = (struct gn_topology){0};
	seen = NULL;
	n_closed = 0;
	for (int i = 0; i < 2; i++)
		TEST_ASSERT_EQUAL_INT(0, gn_worker_create(&attr, &workers[i]));
}

void tearDown(void)
{
	gn_topology_close(&topology);
	for (int i = 0; i < 2; i++)
		gn_worker_destroy(&workers[i]);
	gn_strlist_fini(&args.plugin_dirs);
	gn_strlist_fini(&args.roles);
	gn_strlist_fini(&args.sets);
	gn_errs_fini(&errs);
}

static int load(const char *text)
{
	return gn_topology_load_text(&topology, "the text", text, &args, &errs);
}

static void refused(int rc, const char *text, const char *message)
{
	TEST_ASSERT_EQUAL_INT(rc, load(text));
	TEST_ASSERT_EQUAL_UINT(1, errs.n);
	TEST_ASSERT_EQUAL_STRING(message, errs.text[0]);
}

/* Returns the role of the configuration that is replaced. */
static const struct gn_topo_role *selected(void)
{
	const struct gn_topo_role *found = NULL;

	for (uint32_t i = 0; i < topology.n_roles; i++) {
		if (!topology.roles[i].is_embedded)
			continue;
		TEST_ASSERT_NULL(found);
		found = &topology.roles[i];
	}
	TEST_ASSERT_NOT_NULL(found);
	TEST_ASSERT_TRUE(found->selected);
	return found;
}

/* Expect that the topology creates these roles. */
static void made(const char *names)
{
	char text[64] = "";

	for (uint32_t i = 0; i < topology.n_roles; i++)
		if (topology.roles[i].selected)
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s ",
				 topology.roles[i].name);
	TEST_ASSERT_EQUAL_STRING(names, text);
}

static void only_role_that_fits_is_selected(void)
{
	TEST_ASSERT_EQUAL_INT(0, load(ROLES(TARGET LOAD("load"))));
	TEST_ASSERT_EQUAL_STRING("load", selected()->name);
	made("store load "); /* the device reaches only this process: it must run `store`, too */
	TEST_ASSERT_FALSE(topology.roles[0].is_embedded);
	TEST_ASSERT_EQUAL_UINT(2, topology.roles[0].spec.n_lanes);
	TEST_ASSERT_EQUAL_STRING("program", selected()->spec.part.name);
	TEST_ASSERT_EQUAL_UINT(2, selected()->spec.n_lanes);
	TEST_ASSERT_EQUAL_UINT(1, selected()->spec.n_stages);
	TEST_ASSERT_TRUE(topology.devices[0].used);
	TEST_ASSERT_FALSE(topology.devices[1].used);
	TEST_ASSERT_NULL(topology.devices[1].plugin);
}

static void embedded_role_gets_lanes_connect_and_services(void)
{
	struct gn_loop *loop = gn_loop_create();

	TEST_ASSERT_EQUAL_INT(0, load(ROLES(TARGET BARE)));
	TEST_ASSERT_EQUAL_INT(0, gn_topology_open(&topology, loop));
	TEST_ASSERT_EQUAL_UINT(0, topology.n_workers);
	TEST_ASSERT_NOT_NULL(seen);
	TEST_ASSERT_TRUE(conf_seen == own.conf);
	TEST_ASSERT_EQUAL_UINT(2, seen->n_lanes);
	TEST_ASSERT_EQUAL_UINT(1, seen->n_connects);
	for (uint32_t i = 0; i < 2; i++) {
		uint64_t before = seen->lane(seen, i)->now_ns;

		/* the time of a driven worker advances only in calls of the test */
		do {
			gn_worker_enter(workers[i]);
			gn_worker_leave(workers[i]);
		} while (seen->lane(seen, i)->now_ns == before);
	}
	TEST_ASSERT_EQUAL_INT(0, gn_topology_start(&topology));
	gn_topology_close(&topology);
	TEST_ASSERT_EQUAL_UINT(1, n_closed);
	gn_loop_destroy(&loop);
}

static void one_of_several_roles_must_be_named(void)
{
	refused(-EINVAL, ROLES(TARGET LOAD("a") LOAD("b")),
		"the text: no role is named, and the program can use several; name one of: a, b");
	gn_errs_fini(&errs);
	gn_topology_close(&topology);
	gn_strlist_add(&args.roles, "b");
	TEST_ASSERT_EQUAL_INT(0, load(ROLES(TARGET LOAD("a") LOAD("b"))));
	TEST_ASSERT_EQUAL_STRING("b", selected()->name);
	made("store b ");
}

static void only_roles_reached_inside_the_process_are_created(void)
{
	TEST_ASSERT_EQUAL_INT(
		0,
		load("devices = { a = { transport = \"loop\"; }; b = { transport = \"loop\"; };\n"
		     " c = { transport = \"shm-comch\"; }; };\nroles = {\n"
		     "far = { role = \"target\"; listen = { device = \"c\"; name = \"v\"; };\n"
		     " backend = { type = \"null\"; size = \"1MiB\"; }; };\n"
		     "relay = { role = \"gateway\"; listen = { device = \"a\"; name = \"v\"; };\n"
		     " connect = { device = \"c\"; name = \"v\"; }; };\n"
		     "twin = { role = \"gateway\"; listen = { device = \"b\"; name = \"v\"; };\n"
		     " connect = { device = \"c\"; name = \"v\"; }; };\n"
		     "load = { role = \"initiator\"; connect = { device = \"a\"; name = \"v\"; }; };\n};\n"));
	made("relay load ");
}

static void connect_inside_the_process_needs_a_listener(void)
{
	refused(-EINVAL, ROLES(BARE),
		"the text:3: roles.bare.connect: connects to \"v\" on the device \"wire\", which reaches only this process, and no "
		"role of the file listens there");
}

static void file_without_a_connecting_role_is_rejected(void)
{
	refused(-ENOENT, ROLES(TARGET),
		"the text: no role that the program can use: add one that connects to one service, "
		"as an initiator does");
}

static void missing_plugin_is_not_reported_as_a_missing_role(void)
{
	TEST_ASSERT_EQUAL_INT(-EINVAL, load(ROLES(TARGET "load = { role = \"none\"; };\n")));
	TEST_ASSERT_EQUAL_UINT(1, errs.n);
	TEST_ASSERT_NOT_NULL_MESSAGE(
		strstr(errs.text[0], "roles.load.role: no plugin \"none\" in "), errs.text[0]);
}

static void unknown_role_name_is_rejected(void)
{
	gn_strlist_add(&args.roles, "lod");
	refused(-ENOENT, ROLES(TARGET LOAD("load")),
		"lod: the text has no such role; it has: store, load");
}

static void listening_role_cannot_be_embedded(void)
{
	gn_strlist_add(&args.roles, "store");
	TEST_ASSERT_EQUAL_INT(-EINVAL, load(ROLES(TARGET LOAD("load"))));
	TEST_ASSERT_EQUAL_STRING(
		"the text:3: roles.store.role: a program that uses libgantry can replace only a role that connects to one "
		"service, as an initiator does; \"target\" is no such role",
		errs.text[0]);
}

static void faults_are_reported_with_their_line(void)
{
	refused(-EINVAL, ROLES("bare = { connect = { device = \"wire\"; };\n };\n"),
		"the text:3: roles.bare.connect: \"name\" is missing; it must be given (The service: a name that services of "
		"the device maps, or the text that the transport uses.)");
}

static void a_text_can_be_overridden_like_a_file(void)
{
	gn_strlist_add(&args.sets, "roles.bare.connect.name=w");
	gn_strlist_add(&args.sets, "roles.store.listen.name=w");
	TEST_ASSERT_EQUAL_INT(0, load(ROLES(TARGET BARE) "# no newline at the end"));
	TEST_ASSERT_EQUAL_STRING("w", selected()->connects[0].service);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(only_role_that_fits_is_selected);
	RUN_TEST(embedded_role_gets_lanes_connect_and_services);
	RUN_TEST(one_of_several_roles_must_be_named);
	RUN_TEST(only_roles_reached_inside_the_process_are_created);
	RUN_TEST(connect_inside_the_process_needs_a_listener);
	RUN_TEST(file_without_a_connecting_role_is_rejected);
	RUN_TEST(missing_plugin_is_not_reported_as_a_missing_role);
	RUN_TEST(unknown_role_name_is_rejected);
	RUN_TEST(listening_role_cannot_be_embedded);
	RUN_TEST(faults_are_reported_with_their_line);
	RUN_TEST(a_text_can_be_overridden_like_a_file);
	return UNITY_END();
}
