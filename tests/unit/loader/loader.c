/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The loader, with plugins that have one defect each. The test compiles the plugins into a
 * temporary directory.
 */
#include "loader/loader.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gantry/backend.h>
#include <gantry/observer.h>
#include <gantry/role.h>
#include <gantry/stage.h>
#include <gantry/transport.h>

#include "unity.h"

#define HEAD "#include <gantry/stage.h>\nstatic const struct gantry_stage_ops ops = {0};\n"
#define REST(name) "GANTRY_KIND_STAGE, " name ", \"1\", \"test\", 0, 0, sizeof(ops), &ops};\n"
#define GOOD(ident, name) \
	HEAD "GANTRY_PLUGIN(" ident ") = {GANTRY_PLUGIN_HEAD, " REST("\"" name "\"")

static char dir[64], dir2[80];
static struct gn_loader *loader;
static const struct gn_plugin *plugin;

static int shell(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static int shell(const char *fmt, ...)
{
	char command[2048];
	__builtin_va_list args;

	__builtin_va_start(args, fmt);
	vsnprintf(command, sizeof(command), fmt, args);
	__builtin_va_end(args);
	return system(command);
}

/* Compile a source text into the plugin DIR/NAME.so. */
static void build(const char *name, const char *source)
{
	const char *cc = getenv("CC");
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s.c", dir, name);
	f = fopen(path, "w");
	TEST_ASSERT_NOT_NULL(f);
	fprintf(f, "#define GANTRY_API_VERSION 1\n%s", source);
	fclose(f);
	TEST_ASSERT_EQUAL_INT(0, shell("%s -shared -fPIC -I%s/../include -o %s/%s.so %s",
				       cc ? cc : "cc", TEST_SRCDIR, dir, name, path));
}

static void open_dirs(const char *first, const char *second)
{
	const char *dirs[] = {first, second}, *text;

	gn_loader_close(&loader); /* a test can open several, one after the other */
	TEST_ASSERT_EQUAL_INT(0, gn_loader_open(dirs, second ? 2 : 1, &loader, &text));
	TEST_ASSERT_NULL(text);
}

/*
 * Look up a plugin, and expect this error. The text must contain both pieces (piece2 can be NULL)
 * and the path of the file.
 */
static void fails(int rc, const char *name, const char *piece, const char *piece2)
{
	char path[128];

	open_dirs(dir, NULL);
	TEST_ASSERT_EQUAL_INT(rc, gn_loader_find(loader, 0, name, &plugin));
	snprintf(path, sizeof(path), "%s/%s.so: ", dir, name);
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(gn_loader_error(loader), path),
				     gn_loader_error(loader));
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(gn_loader_error(loader), piece),
				     gn_loader_error(loader));
	if (piece2)
		TEST_ASSERT_NOT_NULL_MESSAGE(strstr(gn_loader_error(loader), piece2),
					     gn_loader_error(loader));
}

static void refused(const char *name, const char *piece, const char *piece2)
{
	fails(-ENOEXEC, name, piece, piece2);
}

/* Expect that the loader rejects the file, because another user could have written it. */
static void unsafe(const char *name, const char *piece, const char *piece2)
{
	fails(-EPERM, name, piece, piece2);
}

void setUp(void)
{
	umask(022);
	strcpy(dir, "/tmp/gantry-loader-XXXXXX");
	TEST_ASSERT_NOT_NULL(mkdtemp(dir));
	snprintf(dir2, sizeof(dir2), "%s/second", dir);
	TEST_ASSERT_EQUAL_INT(0, mkdir(dir2, 0755));
}

void tearDown(void)
{
	gn_loader_close(&loader);
	shell("rm -rf %s", dir);
}

static void finds_and_completes_a_stage(void)
{
	const struct gantry_stage_ops *ops;
	void *self = NULL;

	build("two-words", GOOD("two_words", "two-words"));
	open_dirs(dir, NULL);
	TEST_ASSERT_EQUAL_INT(0, gn_loader_find(loader, GANTRY_KIND_STAGE, "two-words", &plugin));
	TEST_ASSERT_EQUAL_STRING("two-words", plugin->desc->name);
	ops = plugin->ops;
	TEST_ASSERT_TRUE(ops->open && ops->start && ops->submit && ops->complete && ops->poll &&
			 ops->wake_ns);
	TEST_ASSERT_TRUE(ops->drain && ops->stop && ops->report && ops->close);
	TEST_ASSERT_EQUAL_INT(0, ops->start(&ops, NULL, &self));
	TEST_ASSERT_TRUE(self == &ops);
	TEST_ASSERT_EQUAL_INT(0, ops->poll(self));
	TEST_ASSERT_EQUAL_UINT64(0, ops->wake_ns(self));
}

/* The loader opens plugins as /proc/self/fd/N: a reused N must not return the previous plugin. */
static void two_plugins_are_not_confused(void)
{
	const struct gn_plugin *second;

	build("one", GOOD("one", "one"));
	build("two", GOOD("two", "two"));
	open_dirs(dir, NULL);
	TEST_ASSERT_EQUAL_INT(0, gn_loader_find(loader, 0, "one", &plugin));
	TEST_ASSERT_EQUAL_INT(0, gn_loader_find(loader, 0, "two", &second));
	TEST_ASSERT_EQUAL_STRING("one", plugin->desc->name);
	TEST_ASSERT_EQUAL_STRING("two", second->desc->name);
	TEST_ASSERT_EQUAL_INT(0, gn_loader_find(loader, 0, "one", &second));
	TEST_ASSERT_TRUE(plugin == second);
}

static void first_directory_wins(void)
{
	char path[128];

	build("one", GOOD("one", "one"));
	TEST_ASSERT_EQUAL_INT(0, shell("cp %s/one.so %s/one.so", dir, dir2));
	open_dirs(dir2, dir);
	TEST_ASSERT_EQUAL_INT(0, gn_loader_find(loader, 0, "one", &plugin));
	snprintf(path, sizeof(path), "%s/one.so", dir2);
	TEST_ASSERT_EQUAL_STRING(path, plugin->path);
}

static void longer_description_and_ops_are_taken(void)
{
	build("longer",
	      "#include <gantry/stage.h>\n"
	      "static const struct { struct gantry_stage_ops old; void *more[4]; } ops = {.old = {.n_ctx_words = 1}};\n"
	      "GANTRY_PLUGIN(longer) = {GANTRY_PLUGIN_MAGIC, GANTRY_ABI_MAJOR, GANTRY_ABI_MINOR, sizeof(struct gantry_plugin) + 64, 1,\n" REST(
		      "\"longer\""));
	open_dirs(dir, NULL);
	TEST_ASSERT_EQUAL_INT(0, gn_loader_find(loader, 0, "longer", &plugin));
	TEST_ASSERT_EQUAL_UINT32(1, ((const struct gantry_stage_ops *)plugin->ops)->n_ctx_words);
}

static void shorter_ops_are_completed(void)
{
	build("older", HEAD
	      "GANTRY_PLUGIN(older) = {GANTRY_PLUGIN_HEAD, GANTRY_KIND_STAGE, \"older\", \"1\", \"test\", 0, 0,\n"
	      "3 * sizeof(void *), &ops};\n");
	open_dirs(dir, NULL);
	TEST_ASSERT_EQUAL_INT(0, gn_loader_find(loader, 0, "older", &plugin));
	TEST_ASSERT_TRUE(((const struct gantry_stage_ops *)plugin->ops)->close != NULL);
}

static void finds_and_completes_an_observer(void)
{
	const struct gantry_observer_ops *ops;
	void *self = &self;

	build("seer",
	      "#include <gantry/observer.h>\nstatic const struct gantry_observer_ops ops = {0};\n"
	      "GANTRY_PLUGIN(seer) = {GANTRY_PLUGIN_HEAD, GANTRY_KIND_OBSERVER, \"seer\", \"1\", \"test\", 0, 0,\n"
	      "sizeof(ops), &ops};\n");
	open_dirs(dir, NULL);
	TEST_ASSERT_EQUAL_INT(0, gn_loader_find(loader, GANTRY_KIND_OBSERVER, "seer", &plugin));
	TEST_ASSERT_EQUAL_STRING("observer", gn_kind_name(plugin->desc->kind));
	ops = plugin->ops;
	TEST_ASSERT_EQUAL_INT(0, ops->open(NULL, NULL, &self));
	TEST_ASSERT_NULL(self);
	ops->progress(self, &(struct gantry_progress){.role = "load"});
	ops->close(self);
	TEST_ASSERT_EQUAL_INT(-ENOEXEC, gn_loader_find(loader, GANTRY_KIND_STAGE, "seer", &plugin));
	TEST_ASSERT_NOT_NULL(strstr(gn_loader_error(loader), "is an observer, not a stage"));
}

static void wrong_magic(void)
{
	build("magic",
	      HEAD "GANTRY_PLUGIN(magic) = {0x1234, 0, 1, sizeof(struct gantry_plugin), 1, " REST(
		      "\"magic\""));
	refused("magic", "its magic number is 0x00001234", NULL);
}

static void wrong_major(void)
{
	build("major", HEAD
	      "GANTRY_PLUGIN(major) = {GANTRY_PLUGIN_MAGIC, 2, 0, sizeof(struct gantry_plugin), 1, " REST(
		      "\"major\""));
	refused("major", "wrong plugin ABI (plugin=2.0, gantry=0.1)", NULL);
}

static void another_minor_version_is_rejected_before_1_0(void)
{
	build("minor", HEAD
	      "GANTRY_PLUGIN(minor) = {GANTRY_PLUGIN_MAGIC, 0, 2, sizeof(struct gantry_plugin), 1, " REST(
		      "\"minor\""));
	refused("minor", "wrong plugin ABI (plugin=0.2, gantry=0.1): rebuild the plugin", NULL);
}

static void unknown_api_version(void)
{
	build("api", HEAD
	      "GANTRY_PLUGIN(api) = {GANTRY_PLUGIN_MAGIC, 0, 1, sizeof(struct gantry_plugin), 2, " REST(
		      "\"api\""));
	refused("api", "its API version is unknown (plugin=2, newest=1): install a newer gantry",
		NULL);
	build("apiless", HEAD
	      "GANTRY_PLUGIN(apiless) = {GANTRY_PLUGIN_MAGIC, 0, 1, sizeof(struct gantry_plugin), 0, " REST(
		      "\"apiless\""));
	refused("apiless", "(plugin=0, newest=1): define GANTRY_API_VERSION", NULL);
}

static void short_struct(void)
{
	build("brief",
	      HEAD "GANTRY_PLUGIN(brief) = {GANTRY_PLUGIN_MAGIC, 0, 1, 24, 1, " REST("\"brief\""));
	refused("brief", "its description has 24 bytes", NULL);
}

static void missing_symbol(void)
{
	build("nosym", "int nothing_of_the_kind;\n");
	refused("nosym", "no symbol nosym_LTX_gantry_plugin", NULL);
}

static void undefined_symbol(void)
{
	build("undef",
	      "extern int nobody_has_this(void);\nint f(void);\nint f(void) { return nobody_has_this(); }\n" GOOD(
		      "undef", "undef"));
	refused("undef", "does not load: undefined symbol: nobody_has_this", NULL);
}

static void corrupt_file(void)
{
	TEST_ASSERT_EQUAL_INT(0, shell("echo rubbish >%s/corrupt.so", dir));
	refused("corrupt", "does not load: ", NULL);
}

/*
 * Expect that the loader rejects this plugin with this text. gn_loader_probe() makes it load each
 * plugin in a child process first, so that a crash ends only the child.
 */
static void dies(const char *name, const char *piece)
{
	open_dirs(dir, NULL);
	gn_loader_probe(loader);
	TEST_ASSERT_EQUAL_INT(-ENOEXEC, gn_loader_find(loader, 0, name, &plugin));
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(gn_loader_error(loader), piece),
				     gn_loader_error(loader));
}

static void plugin_that_ends_the_process_when_loaded(void)
{
	build("crash",
	      "#include <stdlib.h>\n__attribute__((constructor)) static void f(void) { abort(); }\n" GOOD(
		      "crash", "crash"));
	dies("crash", "a process that loads it crashes (signal=6, ");
	build("leave",
	      "#include <unistd.h>\n__attribute__((constructor)) static void f(void) { _exit(0); }\n" GOOD(
		      "leave", "leave"));
	dies("leave", "loading it ends the process (exit status=0): install or rebuild it");
	build("late",
	      "#include <signal.h>\n__attribute__((destructor)) static void f(void) { raise(SIGSEGV); }\n" GOOD(
		      "late", "late"));
	dies("late", "a process that loads it crashes (signal=11, ");
	signal(SIGCHLD, SIG_IGN);
	dies("crash", "loading it ends the process: install or rebuild it");
	signal(SIGCHLD, SIG_DFL);
}

static void function_that_is_no_code(void)
{
	build("misplaced",
	      "#include <gantry/stage.h>\n"
	      "static const struct gantry_stage_ops ops = {.stop = (void (*)(void *))4096};\n"
	      "GANTRY_PLUGIN(misplaced) = {GANTRY_PLUGIN_HEAD, " REST("\"misplaced\""));
	refused("misplaced", "the slot \"stop\" does not point to code", NULL);
}

static void cut_short(void)
{
	build("short", GOOD("short", "short"));
	TEST_ASSERT_EQUAL_INT(0, shell("truncate -s 4200 %s/short.so", dir));
	refused("short", "the file is truncated (size=4200 bytes)", NULL);
}

/* The test changes e_machine, the two bytes at offset 18 of the ELF header. */
static void for_another_machine(void)
{
	build("other", GOOD("other", "other"));
	TEST_ASSERT_EQUAL_INT(
		0,
		shell("printf '\\026\\000' | dd of=%s/other.so bs=1 seek=18 conv=notrunc status=none",
		      dir));
	refused("other", "wrong machine type (file=e_machine 22, this machine=", NULL);
}

static void wrong_name(void)
{
	build("alias",
	      "#include <gantry/stage.h>\nstatic const struct gantry_stage_ops ops = {0};\n"
	      "GANTRY_PLUGIN(alias) = {GANTRY_PLUGIN_HEAD, " REST("\"other\""));
	refused("alias", "the plugin name \"other\" differs", NULL);
}

static void missing_ops(void)
{
	build("noops",
	      "#include <gantry/stage.h>\nGANTRY_PLUGIN(noops) = {GANTRY_PLUGIN_HEAD, GANTRY_KIND_STAGE,\n"
	      "\"noops\", \"1\", \"test\", 0, 0, 0, 0};\n");
	refused("noops", "has no functions", NULL);
}

static void missing_slot(void)
{
	build("noslot",
	      "#include <gantry/role.h>\nstatic const struct gantry_role_ops ops = {0};\n"
	      "GANTRY_PLUGIN(noslot) = {GANTRY_PLUGIN_HEAD, GANTRY_KIND_ROLE, \"noslot\", \"1\", \"test\", 0, 0,\n"
	      "sizeof(ops), &ops};\n");
	refused("noslot", "does not have the function \"open\", which every role needs", NULL);
}

static int some(void *self)
{
	(void)self;
	return 0;
}

/*
 * A plugin that has to be polled, but has no file descriptor to wait for, cannot be armed: nothing
 * would wake the lane.
 */
static void plugin_without_a_descriptor_cannot_be_armed(void)
{
	struct gantry_transport_ops bare = {.fd = some}, level = {.fd = some, .consumer_fd = some};
	struct gantry_backend_ops polled = {.poll = some}, direct = {.poll = NULL},
				  woken = {.poll = some, .fd = some};

	gn_ops_complete(GANTRY_KIND_TRANSPORT, &bare);
	TEST_ASSERT_NOT_EQUAL(0, bare.consumer_arm(NULL));
	gn_ops_complete(GANTRY_KIND_TRANSPORT, &level);
	TEST_ASSERT_EQUAL_INT(0, level.consumer_arm(NULL));
	gn_ops_complete(GANTRY_KIND_BACKEND, &polled);
	TEST_ASSERT_NOT_EQUAL(0, polled.arm(NULL));
	gn_ops_complete(GANTRY_KIND_BACKEND, &direct);
	TEST_ASSERT_EQUAL_INT(0, direct.arm(NULL));
	gn_ops_complete(GANTRY_KIND_BACKEND, &woken);
	TEST_ASSERT_EQUAL_INT(0, woken.arm(NULL));
}

static int create(void *conn, const struct gantry_queue_attr *attr, void **rma_p)
{
	(void)conn;
	(void)attr;
	(void)rma_p;
	return 0;
}

/*
 * A capability of a device needs certain operations of the plugin. gn_ops_complete() fills missing
 * operations with stubs, and these count as missing.
 */
static void functions_that_a_capability_needs(void)
{
	struct gantry_transport_ops ops = {.rma_create = create};

	TEST_ASSERT_NULL(gn_ops_missing(&ops, GANTRY_CAP_ORDERED | GANTRY_CAP_PINS |
						      GANTRY_CAP_DISCONNECT_REVOKES));
	TEST_ASSERT_EQUAL_STRING("rma_submit", gn_ops_missing(&ops, GANTRY_CAP_RMA));
	gn_ops_complete(GANTRY_KIND_TRANSPORT, &ops);
	TEST_ASSERT_EQUAL_STRING("rma_submit", gn_ops_missing(&ops, GANTRY_CAP_RMA));
	TEST_ASSERT_EQUAL_STRING("rma_submit", gn_ops_missing(&ops, GANTRY_CAP_WRITE_IMM));
	TEST_ASSERT_EQUAL_STRING("export_region",
				 gn_ops_missing(&ops, GANTRY_CAP_MAPPED | GANTRY_CAP_RMA));
	TEST_ASSERT_NULL(gn_ops_missing(&ops, 0));
}

static void incomplete_functions_for_remote_access(void)
{
	build("half",
	      "#include <gantry/transport.h>\n#define F(t, name) .name = (__typeof__(((t *)0)->name))nothing\n"
	      "#define T(name) F(struct gantry_transport_ops, name)\nstatic int nothing(void) { return 0; }\n"
	      "static const struct gantry_transport_ops ops = {T(open), T(close), T(info), T(progress), T(listen),\n"
	      "T(unlisten), T(connect), T(send_ctrl), T(disconnect), T(consumer_create), T(consumer_destroy),\n"
	      "T(producer_create), T(producer_destroy), T(post_recv), T(poll_recv), T(send), T(rma_create),\n"
	      "T(rma_submit)};\n"
	      "GANTRY_PLUGIN(half) = {GANTRY_PLUGIN_HEAD, GANTRY_KIND_TRANSPORT, \"half\", \"1\", \"test\", 0, 0,\n"
	      "sizeof(ops), &ops};\n");
	refused("half", "has functions of remote access, but not \"rma_poll\"", NULL);
}

static void incomplete_data_queues(void)
{
	build("data",
	      "#include <gantry/transport.h>\n#define T(name) .name = (__typeof__(((struct gantry_transport_ops *)0)->name))nothing\n"
	      "static int nothing(void) { return 0; }\nstatic int post(void *c, const struct gantry_recv *r, uint32_t n)\n"
	      "{ (void)c; (void)r; return (int)n; }\n"
	      "static const struct gantry_data_queue_ops data = {.struct_size = sizeof(data), .post_recv = post};\n"
	      "static const struct gantry_transport_ops ops = {T(open), T(close), T(info), T(progress), T(listen),\n"
	      "T(unlisten), T(connect), T(send_ctrl), T(disconnect), T(consumer_create), T(consumer_destroy),\n"
	      "T(producer_create), T(producer_destroy), T(post_recv), T(poll_recv), T(send), .data = &data};\n"
	      "GANTRY_PLUGIN(data) = {GANTRY_PLUGIN_HEAD, GANTRY_KIND_TRANSPORT, \"data\", \"1\", \"test\", 0, 0,\n"
	      "sizeof(ops), &ops};\n");
	refused("data",
		"does not have the function \"send\", which every transport with data queues needs",
		NULL);
}

static void unknown_kind(void)
{
	build("kind", HEAD
	      "GANTRY_PLUGIN(kind) = {GANTRY_PLUGIN_HEAD, 77, \"kind\", \"1\", \"test\", 0, 0, sizeof(ops), &ops};\n");
	refused("kind", "unknown plugin kind 77", NULL);
}

static void too_many_frames(void)
{
	build("frames",
	      "#include <gantry/stage.h>\nstatic const struct gantry_stage_ops ops = {.n_ctx_words = 2};\n"
	      "GANTRY_PLUGIN(frames) = {GANTRY_PLUGIN_HEAD, " REST("\"frames\""));
	refused("frames", "too many frame words (n_ctx_words=2, limit 1)", NULL);
}

static void reserved_options(void)
{
	static const char *const names[] = {"transport", "services", "auth_keys"};

	for (size_t i = 0; i < 3; i++) {
		char source[600], name[16], expect[120];

		snprintf(name, sizeof(name), "own%zu", i);
		snprintf(
			source, sizeof(source),
			"#include <gantry/transport.h>\n"
			"static const struct gantry_option options[] = {"
			"{\"%s\", GANTRY_OPT_BOOL, 0, \"false\", 0, 0, 0, 0, \"h\"}, GANTRY_OPTION_END};\n"
			"static const struct gantry_transport_ops ops;\n"
			"GANTRY_PLUGIN(%s) = {GANTRY_PLUGIN_HEAD, GANTRY_KIND_TRANSPORT, \"%s\", \"1\", \"s\", "
			"options, 16, sizeof(ops), &ops};\n",
			names[i], name, name);
		build(name, source);
		snprintf(expect, sizeof(expect),
			 "its option \"%s\" has a name that gantry reserves", names[i]);
		refused(name, expect, NULL);
	}
}

static void bad_options(void)
{
	static const struct {
		const char *row, *expect;
	} tables[] = {
		{"{\"x\", GANTRY_OPT_INT, 4096, \"1\", 0, 0, 0, 0, \"h\"}, GANTRY_OPTION_END",
		 "outside its conf struct"},
		{"{\"x\", GANTRY_OPT_INT, 4, \"1\", 0, 0, 0, 0, \"h\"}, GANTRY_OPTION_END",
		 "is not aligned"},
		{"{\"x\", 99, 0, \"1\", 0, 0, 0, 0, \"h\"}, GANTRY_OPTION_END", "unknown type 99"},
		{"{\"X y\", GANTRY_OPT_INT, 0, \"1\", 0, 0, 0, 0, \"h\"}, GANTRY_OPTION_END",
		 "invalid option name, \"X y\""},
		{"{\"x\", GANTRY_OPT_CHOICE, 0, \"a\", 0, 0, 0, 0, \"h\"}, GANTRY_OPTION_END",
		 "a choice without words"},
		{"{\"x\", GANTRY_OPT_GROUP, 0, \"\", 0, 0, 0, 0, \"h\"}, GANTRY_OPTION_END",
		 "a group without rows"},
		{"{\"x\", GANTRY_OPT_INT, 0, \"1\", 0, 0, 0, 0, \"h\"}, {\"x\", GANTRY_OPT_INT, 0, \"1\", 0, 0, 0, 0, \"h\"},"
		 "GANTRY_OPTION_END",
		 "the option \"x\" twice"},
		{"{\"x\", GANTRY_OPT_INT, 0, \"5x\", 0, 0, 0, 0, \"h\"}, GANTRY_OPTION_END",
		 "option x: its default \"5x\" is not a number: correct"},
		{"{\"x\", GANTRY_OPT_INT, 0, \"99999999999999999999\", 0, 0, 0, 0, \"h\"}, GANTRY_OPTION_END",
		 "is not a number"},
		{"{\"x\", GANTRY_OPT_SIZE, 0, \"many\", 0, 0, 0, 0, \"h\"}, GANTRY_OPTION_END",
		 "is not a size"},
		{"{\"x\", GANTRY_OPT_SIZE, 0, \"15000000TiB\", 0, 0, 0, 0, \"h\"}, GANTRY_OPTION_END",
		 "is not a size"},
		{"{\"x\", GANTRY_OPT_TIME, 0, \"1\", 0, 0, 0, 0, \"h\"}, GANTRY_OPTION_END",
		 "is not a time"},
		{"{\"x\", GANTRY_OPT_BOOL, 0, \"yes\", 0, 0, 0, 0, \"h\"}, GANTRY_OPTION_END",
		 "is not a bool"},
		{"{\"x\", GANTRY_OPT_CHOICE, 0, \"c\", 0, 0, (const char *const[]){\"a\", 0}, 0, \"h\"}, GANTRY_OPTION_END",
		 "option x: its default \"c\" is not a choice"},
		{"{\"g\", GANTRY_OPT_GROUP, 0, \"\", 0, 0, 0, (const struct gantry_option[]){\n"
		 "{\"x\", GANTRY_OPT_TIME, 0, \"soon\", 0, 0, 0, 0, \"h\"}, GANTRY_OPTION_END}, \"h\"}, GANTRY_OPTION_END",
		 "option g.x: "},
	};

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		char source[1024], name[16];

		snprintf(name, sizeof(name), "opt%zu", i);
		snprintf(
			source, sizeof(source),
			HEAD
			"static const struct gantry_option options[] = {%s};\n"
			"GANTRY_PLUGIN(%s) = {GANTRY_PLUGIN_HEAD, GANTRY_KIND_STAGE, \"%s\", \"1\", \"t\", options, 16,\n"
			"sizeof(ops), &ops};\n",
			tables[i].row, name, name);
		build(name, source);
		refused(name, tables[i].expect, NULL);
	}
}

static void world_writable_file(void)
{
	build("open", GOOD("open", "open"));
	TEST_ASSERT_EQUAL_INT(0, shell("chmod 0777 %s/open.so", dir));
	unsafe("open", "the file is writable by all users", "fix its owner or mode");
}

static void world_writable_directory(void)
{
	build("exposed", GOOD("exposed", "exposed"));
	TEST_ASSERT_EQUAL_INT(0, chmod(dir, 0777));
	unsafe("exposed", dir, "is writable by all users");
}

static void foreign_owner(void)
{
	if (geteuid() != 0)
		TEST_IGNORE_MESSAGE("only root can give a file away");
	build("foreign", GOOD("foreign", "foreign"));
	TEST_ASSERT_EQUAL_INT(0, shell("chown 12345 %s/foreign.so", dir));
	unsafe("foreign", "belongs to neither root nor the user that runs gantry", NULL);
}

static void symbolic_link(void)
{
	build("real", GOOD("real", "real"));
	TEST_ASSERT_EQUAL_INT(0, shell("ln -s real.so %s/linked.so", dir));
	unsafe("linked", "is a symbolic link", NULL);
}

static void directory_in_place_of_a_file(void)
{
	TEST_ASSERT_EQUAL_INT(0, shell("mkdir %s/folder.so", dir));
	unsafe("folder", "is not a regular file", NULL);
}

static void wrong_kind_is_reported_with_the_actual_kind(void)
{
	build("one", GOOD("one", "one"));
	open_dirs(dir, NULL);
	TEST_ASSERT_EQUAL_INT(-ENOEXEC, gn_loader_find(loader, GANTRY_KIND_ROLE, "one", &plugin));
	TEST_ASSERT_NOT_NULL(strstr(gn_loader_error(loader), "is a stage, not a role"));
}

static void absent_plugin_names_the_directories(void)
{
	char expect[256];

	open_dirs(dir, dir2);
	TEST_ASSERT_EQUAL_INT(-ENOENT, gn_loader_find(loader, 0, "absent", &plugin));
	snprintf(expect, sizeof(expect), "no plugin \"absent\" in %s, %s", dir, dir2);
	TEST_ASSERT_EQUAL_STRING(expect, gn_loader_error(loader));
	TEST_ASSERT_EQUAL_INT(-EINVAL, gn_loader_find(loader, 0, "../evil", &plugin));
	TEST_ASSERT_EQUAL_INT(-EINVAL, gn_loader_find(loader, 0, "", &plugin));
}

/*
 * Plugins do not check the sizes of these structs, so from version 1.0 on a change of a size
 * requires a higher GANTRY_ABI_MAJOR.
 */
static void structs_without_a_size_stay_as_they_are(void)
{
#define STAYS(name, bytes) TEST_ASSERT_EQUAL_UINT_MESSAGE(bytes, sizeof(struct name), #name)
	if (sizeof(void *) != 8)
		TEST_IGNORE_MESSAGE("the numbers are those of 64 bits");
	STAYS(gantry_conn_events, 56);
	STAYS(gantry_client_events, 48);
	STAYS(gantry_server_ops, 80);
	STAYS(gantry_poller, 48);
	STAYS(gantry_writer, 64);
	STAYS(gantry_lane, 32);
	STAYS(gantry_device_info, 152);
	STAYS(gantry_peer, 76);
	STAYS(gantry_region, 56);
	STAYS(gantry_token, 8);
	STAYS(gantry_queue_attr, 24);
	STAYS(gantry_recv, 24);
	STAYS(gantry_send, 48);
	STAYS(gantry_msg, 80);
	STAYS(gantry_rma, 48);
	STAYS(gantry_rma_done, 16);
	STAYS(gantry_session_attr, 24);
	STAYS(gantry_piece, 24);
	STAYS(gantry_plan, 80);
#undef STAYS
}

static void relative_directory_is_refused(void)
{
	const char *dirs[] = {"plugins"}, *text = NULL;

	TEST_ASSERT_EQUAL_INT(-EINVAL, gn_loader_open(dirs, 1, &loader, &text));
	TEST_ASSERT_EQUAL_STRING("plugin directories must be absolute paths, and not empty", text);
	TEST_ASSERT_NULL(loader);
}

static int note(void *arg, const struct gn_plugin_file *file)
{
	char *at = (char *)arg + strlen(arg);

	sprintf(at, "%s=%s;", file->name, file->plugin ? "ok" : file->why);
	return 0;
}

static void listing_is_sorted_and_has_reasons(void)
{
	char text[2048] = "", expect[512];

	build("good", GOOD("good", "good"));
	TEST_ASSERT_EQUAL_INT(
		0, shell("cp %s/good.so %s/good.so; echo x >%s/Bad.so; echo x >%s/readme.txt", dir,
			 dir2, dir, dir));
	build("bare", "int x;\n");
	open_dirs(dir, dir2);
	TEST_ASSERT_EQUAL_INT(0, gn_loader_each(loader, note, text));
	snprintf(
		expect, sizeof(expect),
		"Bad=not the name of a plugin: a-z, 0-9 and -;bare=not a gantry plugin of that name: it has no symbol "
		"bare_LTX_gantry_plugin, which GANTRY_PLUGIN(bare) defines;good=ok;good=hidden by the plugin in %s;",
		dir);
	TEST_ASSERT_EQUAL_STRING(expect, text);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(finds_and_completes_a_stage);
	RUN_TEST(two_plugins_are_not_confused);
	RUN_TEST(first_directory_wins);
	RUN_TEST(longer_description_and_ops_are_taken);
	RUN_TEST(shorter_ops_are_completed);
	RUN_TEST(finds_and_completes_an_observer);
	RUN_TEST(wrong_magic);
	RUN_TEST(wrong_major);
	RUN_TEST(another_minor_version_is_rejected_before_1_0);
	RUN_TEST(unknown_api_version);
	RUN_TEST(short_struct);
	RUN_TEST(missing_symbol);
	RUN_TEST(undefined_symbol);
	RUN_TEST(corrupt_file);
	RUN_TEST(plugin_that_ends_the_process_when_loaded);
	RUN_TEST(function_that_is_no_code);
	RUN_TEST(cut_short);
	RUN_TEST(for_another_machine);
	RUN_TEST(wrong_name);
	RUN_TEST(missing_ops);
	RUN_TEST(missing_slot);
	RUN_TEST(plugin_without_a_descriptor_cannot_be_armed);
	RUN_TEST(functions_that_a_capability_needs);
	RUN_TEST(incomplete_functions_for_remote_access);
	RUN_TEST(incomplete_data_queues);
	RUN_TEST(unknown_kind);
	RUN_TEST(too_many_frames);
	RUN_TEST(reserved_options);
	RUN_TEST(bad_options);
	RUN_TEST(world_writable_file);
	RUN_TEST(world_writable_directory);
	RUN_TEST(foreign_owner);
	RUN_TEST(symbolic_link);
	RUN_TEST(directory_in_place_of_a_file);
	RUN_TEST(wrong_kind_is_reported_with_the_actual_kind);
	RUN_TEST(absent_plugin_names_the_directories);
	RUN_TEST(structs_without_a_size_stay_as_they_are);
	RUN_TEST(relative_directory_is_refused);
	RUN_TEST(listing_is_sorted_and_has_reasons);
	return UNITY_END();
}
