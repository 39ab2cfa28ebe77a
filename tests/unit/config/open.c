/* SPDX-License-Identifier: BSD-3-Clause */
/* Valid and invalid configuration files: the exact messages that a user gets. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/config.h"
#include "unity.h"

static char dir[] = "/tmp/gantry-config-XXXXXX";
static struct gn_errs errs;
static char all[65536];

static void put(const char *name, const char *text, size_t n)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	TEST_ASSERT_GREATER_OR_EQUAL_INT(0, fd);
	TEST_ASSERT_EQUAL_INT((int64_t)n, write(fd, text, n));
	close(fd);
}

static void file(const char *name, const char *text)
{
	put(name, text, strlen(text));
}

/* Returns the messages since the last call, one per line. */
static const char *faults(void)
{
	size_t n = 0;

	all[0] = '\0';
	for (size_t i = 0; i < gn_errs_kept(&errs); i++)
		n += (size_t)snprintf(all + n, sizeof(all) - n, "%s%s", i ? "\n" : "",
				      errs.text[i]);
	gn_errs_fini(&errs);
	return all;
}

static const char *faults_of(const char *text)
{
	struct gn_config *config;

	file("t.cfg", text);
	config = gn_config_open("t.cfg", NULL, 0, &errs);
	TEST_ASSERT_TRUE(config ? errs.n == 0 : errs.n > 0);
	gn_config_close(&config);
	return faults();
}

static const char *dump_and_close(struct gn_config *config)
{
	static char dumped[4096];
	FILE *out = fmemopen(dumped, sizeof(dumped), "w");

	memset(dumped, 0, sizeof(dumped));
	gn_config_dump(config, out);
	fclose(out);
	gn_config_close(&config);
	return dumped;
}

static const char *dump_of(const char *text, const char *const *sets, size_t n)
{
	struct gn_config *config;

	file("t.cfg", text);
	config = gn_config_open("t.cfg", sets, n, &errs);
	return config ? dump_and_close(config) : faults();
}

void setUp(void)
{
	strcpy(dir + strlen(dir) - 6, "XXXXXX");
	TEST_ASSERT_NOT_NULL(mkdtemp(dir));
	TEST_ASSERT_EQUAL_INT(0, chdir(dir));
}

void tearDown(void)
{
	static const char *const names[] = {"t.cfg", "in.cfg",    "a.cfg",
					    "b.cfg", "sub/s.cfg", "link.cfg"};

	gn_errs_fini(&errs);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unlink(names[i]);
	rmdir("sub");
	TEST_ASSERT_EQUAL_INT(0, chdir("/"));
	rmdir(dir);
}

static void good_file_is_walked(void)
{
	struct gn_config *config;
	struct gn_conf_node *root, *list;

	file("t.cfg",
	     "runtime = { dirs = [ \"/a\", \"/b\" ]; };\nstages = ( { type = \"stats\"; },\n 5 );\n# the end");
	config = gn_config_open("t.cfg", NULL, 0, &errs);
	TEST_ASSERT_NOT_NULL(config);
	root = gn_config_root(config);
	TEST_ASSERT_TRUE(gn_conf_is_group(root));
	TEST_ASSERT_EQUAL_UINT(2, gn_conf_length(root));
	TEST_ASSERT_EQUAL_STRING("runtime", gn_conf_name(gn_conf_index(root, 0)));
	TEST_ASSERT_NULL(gn_conf_index(root, 2));
	TEST_ASSERT_NULL(gn_conf_name(root));
	TEST_ASSERT_EQUAL_STRING("", gn_conf_path(root));
	TEST_ASSERT_EQUAL_STRING("t.cfg", gn_conf_where(root));
	list = gn_conf_child(gn_conf_child(root, "runtime"), "dirs");
	TEST_ASSERT_TRUE(gn_conf_is_list(list));
	TEST_ASSERT_EQUAL_STRING("/b", gn_conf_string(gn_conf_index(list, 1)));
	list = gn_conf_child(root, "stages");
	TEST_ASSERT_TRUE(gn_conf_is_list(list));
	TEST_ASSERT_NULL(gn_conf_string(gn_conf_index(list, 1)));
	TEST_ASSERT_EQUAL_UINT(0, gn_conf_length(gn_conf_index(list, 1)));
	TEST_ASSERT_EQUAL_STRING("t.cfg:3", gn_conf_where(gn_conf_index(list, 1)));
	TEST_ASSERT_EQUAL_STRING("stages[1]", gn_conf_path(gn_conf_index(list, 1)));
	list = gn_conf_child(gn_conf_index(list, 0), "type");
	TEST_ASSERT_EQUAL_STRING("stages[0].type", gn_conf_path(list));
	gn_conf_fault(&errs, list, "no plugin \"%s\"", "stats");
	gn_conf_fault(&errs, root, "nothing here");
	TEST_ASSERT_EQUAL_STRING(
		"t.cfg:2: stages[0].type: no plugin \"stats\"\nt.cfg: nothing here", faults());
	gn_config_close(&config);
	TEST_ASSERT_NULL(config);
	gn_config_close(&config);
}

static void null_node_has_no_members(void)
{
	TEST_ASSERT_NULL(gn_conf_child(NULL, "x"));
	TEST_ASSERT_NULL(gn_conf_index(NULL, 0));
	TEST_ASSERT_NULL(gn_conf_string(NULL));
	TEST_ASSERT_EQUAL_UINT(0, gn_conf_length(NULL));
	TEST_ASSERT_FALSE(gn_conf_is_group(NULL));
	TEST_ASSERT_FALSE(gn_conf_is_list(NULL));
}

#define SYNTAX \
	"syntax error; look for a missing ; or quote or bracket in this line or the one before"

static void syntax_errors_are_reported_with_their_line(void)
{
	TEST_ASSERT_EQUAL_STRING("", faults_of(""));
	TEST_ASSERT_EQUAL_STRING("t.cfg:1: " SYNTAX, faults_of("a = ;"));
	TEST_ASSERT_EQUAL_STRING("t.cfg:2: unterminated bracket",
				 faults_of("a = {\n b = (\n 1;\n"));
	TEST_ASSERT_EQUAL_STRING(
		"t.cfg:2: duplicate setting name; the group has this key twice: keep one",
		faults_of("a = 1;\na = 2;"));
	TEST_ASSERT_EQUAL_STRING(
		"t.cfg:1: mismatched element type in array; all members of [ ] must have one type, "
		"use ( ) to mix",
		faults_of("a = [1, \"x\"];"));
	TEST_ASSERT_EQUAL_STRING("t.cfg:2: unterminated string; add \" at its end",
				 faults_of("a = 1;\nb = \"x;\n\n"));
	TEST_ASSERT_EQUAL_STRING("t.cfg:1: unterminated comment; add */ at its end",
				 faults_of("/* a = 1;\n"));
	TEST_ASSERT_EQUAL_STRING(
		"t.cfg:1: groups and lists are nested deeper than 32",
		faults_of(
			"a=((((((((((((((((((((((((((((((((((1))))))))))))))))))))))))))))))))));"));
}

static void numbers_that_would_be_cut(void)
{
	static const char *const bad[] = {
		"2147483648", "-2147483649", "4294967296",  "5000000000",
		"0xFFFFFFFF", "0x80000000",  "+2147483648",
	};
	static const char *const good[] = {
		"2147483647",   "-2147483648",          "0x7FFFFFFF",
		"5000000000L",  "5000000000LL",         "-5000000000L",
		"0xFFFFFFFFL",  "9223372036854775807L", "-9223372036854775808L",
		"5000000000.5", "+5000000000e2",        "\"5000000000\"",
		"017",
	};
	char text[128], want[256];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(text, sizeof(text), "x = 1;\n  a = %s;", bad[i]);
		snprintf(want, sizeof(want),
			 "t.cfg:2: %s does not fit into 32 bits and would be truncated; "
			 "append L, or write a size in quotes",
			 bad[i]);
		TEST_ASSERT_EQUAL_STRING(want, faults_of(text));
	}
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		snprintf(text, sizeof(text), "a = %s;", good[i]);
		TEST_ASSERT_EQUAL_STRING_MESSAGE("", faults_of(text), good[i]);
	}
	TEST_ASSERT_EQUAL_STRING(
		"t.cfg:1: 9223372036854775808L does not fit into 64 bits; write a smaller number",
		faults_of("a = 9223372036854775808L;"));
	TEST_ASSERT_EQUAL_STRING(
		"t.cfg:1: 99999999999999999999 does not fit into 64 bits; write a smaller number",
		faults_of("a = 99999999999999999999;"));
	TEST_ASSERT_EQUAL_STRING(
		"t.cfg:1: -9223372036854775809 does not fit into 64 bits; write a larger number",
		faults_of("a = -9223372036854775809;"));
	TEST_ASSERT_EQUAL_STRING(
		"t.cfg:1: 0xFFFFFFFFFFFFFFFFL does not fit into 64 bits; write a smaller number",
		faults_of("a = 0xFFFFFFFFFFFFFFFFL;"));
}

static void all_cut_numbers_are_named_but_not_in_comments_strings_and_names(void)
{
	TEST_ASSERT_EQUAL_STRING(
		"t.cfg:7: 3000000000 does not fit into 32 bits and would be truncated; "
		"append L, or write a size in quotes\n"
		"t.cfg:8: 4000000000 does not fit into 32 bits and would be truncated; "
		"append L, or write a size in quotes",
		faults_of("# 5000000000\n// 5000000000\n/* 5000000000\n 5000000000 */\n"
			  "a5000000000 = \"5000000000 \\\" 5000000000\"; b-5000000000 = 1;\n#* 1\n"
			  "c = [ 1, 3000000000 ];\nd = 4000000000;"));
}

static void files_that_cannot_be_read(void)
{
	struct gn_config *config = gn_config_open("absent.cfg", NULL, 0, &errs);

	TEST_ASSERT_NULL(config);
	TEST_ASSERT_EQUAL_STRING("cannot open absent.cfg: No such file or directory", faults());
	TEST_ASSERT_NULL(gn_config_open("/", NULL, 0, &errs));
	TEST_ASSERT_EQUAL_STRING("/ is a directory; name a file", faults());
	TEST_ASSERT_NULL(gn_config_open("/dev/null", NULL, 0, &errs));
	TEST_ASSERT_EQUAL_STRING("/dev/null is not a regular file; name a file", faults());
	TEST_ASSERT_NULL(gn_config_open("", NULL, 0, &errs));
	TEST_ASSERT_EQUAL_STRING("cannot open : No such file or directory", faults());
	put("t.cfg", "a = 1;\0b", 8);
	TEST_ASSERT_NULL(gn_config_open("t.cfg", NULL, 0, &errs));
	TEST_ASSERT_EQUAL_STRING("t.cfg contains a zero byte; it is not a text file", faults());
	TEST_ASSERT_EQUAL_INT(0, truncate("t.cfg", (1 << 20) + 1));
	TEST_ASSERT_NULL(gn_config_open("t.cfg", NULL, 0, &errs));
	TEST_ASSERT_EQUAL_STRING("t.cfg is larger than 1MiB; it is not a configuration", faults());
}

/*
 * Expect the message that the user gets who runs this test. For root, gn_path_open() checks the
 * file more strictly, and its message contains `problem`.
 */
static void rejected_for(const char *file, const char *problem)
{
	char text[256];

	if (geteuid() == 0)
		snprintf(text, sizeof(text), "%s: the file %s/%s %s", file, dir, file, problem);
	else
		snprintf(text, sizeof(text), "%s is writable by others; chmod go-w %s", file, file);
	TEST_ASSERT_EQUAL_STRING(text, faults());
}

static void a_file_that_others_can_write_is_refused(void)
{
	file("t.cfg", "a = 1;");
	TEST_ASSERT_EQUAL_INT(0, chmod("t.cfg", 0606));
	TEST_ASSERT_NULL(gn_config_open("t.cfg", NULL, 0, &errs));
	rejected_for("t.cfg",
		     "is writable by all users (owner=0, mode=0606): fix its owner or mode");
	TEST_ASSERT_EQUAL_INT(0, chmod("t.cfg", 0660));
	if (chown("t.cfg", 65534, 65534))
		TEST_IGNORE_MESSAGE("giving a file away takes root");
	TEST_ASSERT_NULL(gn_config_open("t.cfg", NULL, 0, &errs));
	rejected_for(
		"t.cfg",
		"belongs to neither root nor the user that runs gantry (owner=65534, mode=0660): fix its owner or "
		"mode, or list the owner in GANTRY_TRUST_UID");
}

static void group_of_a_trusted_owner_may_write(void)
{
	struct gn_config *config;

	file("t.cfg", "a = 1;");
	TEST_ASSERT_EQUAL_INT(0, chmod("t.cfg", 0660));
	config = gn_config_open("t.cfg", NULL, 0, &errs);
	TEST_ASSERT_NOT_NULL(config);
	gn_config_close(&config);
}

static void includes_are_relative_to_the_directory_of_the_file(void)
{
	char path[64];
	struct gn_config *config;
	struct gn_conf_node *node;

	TEST_ASSERT_EQUAL_INT(0, mkdir("sub", 0700));
	file("sub/s.cfg", "deep = 2;\n");
	file("in.cfg", "\nouter = 1;\n@include \"sub/s.cfg\"\n");
	file("t.cfg", "first = 0;\n  @include \"in.cfg\"\nlast = 3;");
	TEST_ASSERT_EQUAL_INT(0, chdir("/"));
	snprintf(path, sizeof(path), "%s/t.cfg", dir);
	config = gn_config_open(path, NULL, 0, &errs);
	TEST_ASSERT_EQUAL_STRING("", faults());
	node = gn_conf_child(gn_config_root(config), "deep");
	snprintf(path, sizeof(path), "%s/sub/s.cfg:1", dir);
	TEST_ASSERT_EQUAL_STRING(path, gn_conf_where(node));
	node = gn_conf_child(gn_config_root(config), "last");
	snprintf(path, sizeof(path), "%s/t.cfg:3", dir);
	TEST_ASSERT_EQUAL_STRING(path, gn_conf_where(node));
	gn_config_close(&config);
	TEST_ASSERT_EQUAL_INT(0, chdir(dir));
}

static void includes_that_are_refused(void)
{
	TEST_ASSERT_EQUAL_STRING("t.cfg:2: cannot open in.cfg: No such file or directory",
				 faults_of("\n@include \"in.cfg\"\n"));
	TEST_ASSERT_EQUAL_STRING(
		"t.cfg:1: include \"/etc/passwd\" is outside of directory .; name a file in it",
		faults_of("@include \"/etc/passwd\"\n"));
	TEST_ASSERT_EQUAL_STRING(
		"t.cfg:1: include \"../x.cfg\" is outside of directory .; name a file in it",
		faults_of("@include \"../x.cfg\"\n"));
	TEST_ASSERT_EQUAL_STRING(
		"t.cfg:1: include \"a/..\" is outside of directory .; name a file in it",
		faults_of("@include \"a/..\"\n"));
	TEST_ASSERT_EQUAL_STRING("t.cfg:1: include name with a backslash; rename the file",
				 faults_of("@include \".\\./x.cfg\"\n"));
	TEST_ASSERT_EQUAL_INT(0, symlink("/etc/passwd", "link.cfg"));
	TEST_ASSERT_EQUAL_STRING(
		"t.cfg:1: include \"link.cfg\" is outside of directory .; name a file in it",
		faults_of("@include \"link.cfg\"\n"));
	TEST_ASSERT_EQUAL_STRING("",
				 faults_of("# @include \"../x.cfg\"\n/*\n@include \"../x.cfg\"\n*/"
					   "a = \"\n@include \\\"../x.cfg\\\"\";\n"));
	file("in.cfg", "b = ;\n");
	TEST_ASSERT_EQUAL_STRING("in.cfg:1: " SYNTAX, faults_of("@include \"in.cfg\"\n"));
	file("in.cfg", "\nb = 5000000000;\n");
	TEST_ASSERT_EQUAL_STRING(
		"in.cfg:2: 5000000000 does not fit into 32 bits and would be truncated; "
		"append L, or write a size in quotes",
		faults_of("@include \"in.cfg\"\n"));
	TEST_ASSERT_EQUAL_INT(0, chmod("in.cfg", 0602));
	TEST_ASSERT_NOT_NULL(strstr(faults_of("@include \"in.cfg\"\n"), "t.cfg:1: in.cfg"));
}

static void recursive_includes_are_limited(void)
{
	TEST_ASSERT_EQUAL_STRING("t.cfg:1: too many includes; does \"t.cfg\" include itself?",
				 faults_of("@include \"t.cfg\"\n"));
	file("a.cfg",
	     "@include \"b.cfg\"\n@include \"b.cfg\"\n@include \"b.cfg\"\n@include \"b.cfg\"\n"
	     "@include \"b.cfg\"\n@include \"b.cfg\"\n@include \"b.cfg\"\n@include \"b.cfg\"\n");
	file("b.cfg",
	     "@include \"in.cfg\"\n@include \"in.cfg\"\n@include \"in.cfg\"\n@include \"in.cfg\"\n"
	     "@include \"in.cfg\"\n@include \"in.cfg\"\n@include \"in.cfg\"\n@include \"in.cfg\"\n");
	file("in.cfg", "# nothing\n");
	TEST_ASSERT_EQUAL_INT(
		0, strncmp("a.cfg:8: too many includes; ", faults_of("@include \"a.cfg\"\n"), 28));
}

static void overrides_replace_and_make(void)
{
	const char *const sets[] = {"a.b=8192", "a.c=5000000000", "d.e.f=true", "l.1.x=false",
				    "g=\"7\"",  "h=two words",    "i=-3",       "j=0x10",
				    "k=",       "m=1.5",          "n[0].t=x",   "n.1.t=y"};

	TEST_ASSERT_EQUAL_STRING(
		"a : \n{\n  b = \"8192\";\n  c = 5000000000L;\n};\nl = ( 1, \n  {\n    x = false;\n  } );\n"
		"d : \n{\n  e : \n  {\n    f = true;\n  };\n};\ng = \"7\";\nh = \"two words\";\ni = -3L;\n"
		"j = 16L;\nk = \"\";\nm = \"1.5\";\n"
		"n = ( \n  {\n    t = \"x\";\n  }, \n  {\n    t = \"y\";\n  } );\n",
		dump_of("a = { b = \"4KiB\"; }; l = ( 1, { x = 2; } );", sets,
			sizeof(sets) / sizeof(sets[0])));
}

static void settings_are_copied(void)
{
	static const char from[] =
		"a = ( { s = \"x\"; b = true; i = 3; f = 0.5; }, ( 5000000000L, [ 1, 2 ] ) );";
	struct gn_config *source = gn_config_open_text("from", from, NULL, 0, &errs);
	struct gn_config *config = gn_config_open_text("to", "g = { a = 1; k = 2; };", NULL, 0,
						       &errs);
	struct gn_conf_node *g = gn_conf_child(gn_config_root(config), "g");

	TEST_ASSERT_EQUAL_INT(0, gn_conf_copy(g, "a", gn_conf_child(gn_config_root(source), "a")));
	TEST_ASSERT_EQUAL_INT(0, gn_conf_copy(g, "n", gn_conf_child(gn_config_root(source), "a")));
	TEST_ASSERT_EQUAL_INT(0, gn_conf_copy(g, "n", NULL));
	TEST_ASSERT_EQUAL_INT(0, gn_conf_copy(g, "n", NULL));
	gn_config_close(&source);
	TEST_ASSERT_EQUAL_STRING("g : \n{\n  k = 2;\n  a = ( \n    {\n      s = \"x\";\n"
				 "      b = true;\n      i = 3;\n      f = 0.5;\n    }, "
				 "( 5000000000L, [ 1, 2 ] ) );\n};\n",
				 dump_and_close(config));
}

static void fault_of_an_override_names_the_option_set(void)
{
	const char *const sets[] = {"a.b=1"};
	struct gn_config *config;

	file("t.cfg", "a = { b = 0; };");
	config = gn_config_open("t.cfg", sets, 1, &errs);
	gn_conf_fault(&errs, gn_conf_child(gn_conf_child(gn_config_root(config), "a"), "b"), "bad");
	TEST_ASSERT_EQUAL_STRING("--set: a.b: bad", faults());
	gn_config_close(&config);
}

static void fault_in_a_text_names_the_text(void)
{
	const char *const sets[] = {"a.b=1"}, *const wrong[] = {"a=1"};
	struct gn_config *config = gn_config_open_text("the text", "a = { b = 0; };", sets, 1,
						       &errs);

	gn_conf_fault(&errs, gn_conf_child(gn_conf_child(gn_config_root(config), "a"), "b"), "bad");
	TEST_ASSERT_EQUAL_STRING("the text: a.b: bad", faults());
	gn_config_close(&config);
	TEST_ASSERT_NULL(gn_config_open_text("the text", "a = { b = 0; };", wrong, 1, &errs));
	TEST_ASSERT_EQUAL_STRING("the text a=1: this is a group or a list; set one of its members",
				 faults());
}

static void invalid_overrides_are_rejected(void)
{
	const char *const sets[] = {
		"a",
		"=1",
		"a..b=1",
		".a=1",
		"a.=1",
		"g=1",
		"l=1",
		"l.0=1",
		"l.9.x=1",
		"l.0.x=1",
		"l.00x.x=1",
		"s.t=1",
		"1a=1",
		"g.sp ace=1",
		"g.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa=1",
		"l[0]a.x=1",
		"l[9].x=1"};

	TEST_ASSERT_EQUAL_STRING(
		"--set a: write KEY.PATH=VALUE\n"
		"--set =1: write KEY.PATH=VALUE\n"
		"--set a..b=1: the path has an empty or too long name, or a wrong separator\n"
		"--set .a=1: the path has an empty or too long name, or a wrong separator\n"
		"--set a.=1: the path has an empty or too long name, or a wrong separator\n"
		"--set g=1: this is a group or a list; set one of its members\n"
		"--set l=1: this is a group or a list; set one of its members\n"
		"--set l.0=1: only a member of a group can be set\n"
		"--set l.9.x=1: the path names a list element that does not exist, or continues after a key that is not a group or list\n"
		"--set l.0.x=1: only a member of a group can be set\n"
		"--set l.00x.x=1: the path names a list element that does not exist, or continues after a key that is not a group or list\n"
		"--set s.t=1: only a member of a group can be set\n"
		"--set 1a=1: invalid setting name\n"
		"--set g.sp ace=1: invalid setting name\n"
		"--set g.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa=1: the path has an empty or "
		"too long name, or a wrong separator\n"
		"--set l[0]a.x=1: the path has an empty or too long name, or a wrong separator\n"
		"--set l[9].x=1: the path names a list element that does not exist, or continues after a key that is not a group "
		"or list",
		dump_of("g = { x = 1; }; l = ( 1 ); s = 5;", sets, sizeof(sets) / sizeof(sets[0])));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(good_file_is_walked);
	RUN_TEST(null_node_has_no_members);
	RUN_TEST(syntax_errors_are_reported_with_their_line);
	RUN_TEST(numbers_that_would_be_cut);
	RUN_TEST(all_cut_numbers_are_named_but_not_in_comments_strings_and_names);
	RUN_TEST(files_that_cannot_be_read);
	RUN_TEST(a_file_that_others_can_write_is_refused);
	RUN_TEST(group_of_a_trusted_owner_may_write);
	RUN_TEST(includes_are_relative_to_the_directory_of_the_file);
	RUN_TEST(includes_that_are_refused);
	RUN_TEST(recursive_includes_are_limited);
	RUN_TEST(overrides_replace_and_make);
	RUN_TEST(settings_are_copied);
	RUN_TEST(fault_of_an_override_names_the_option_set);
	RUN_TEST(fault_in_a_text_names_the_text);
	RUN_TEST(invalid_overrides_are_rejected);
	return UNITY_END();
}
