/* SPDX-License-Identifier: BSD-3-Clause */
/* Option tables: which value the struct gets, and the exact message for each invalid setting. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/config.h"
#include "config/config_priv.h"
#include "unity.h"

struct conf {
	const char *path;
	uint8_t direct;
	int64_t depth;
	int64_t bias;
	uint64_t block;
	uint64_t cache;
	uint64_t timeout;
	uint32_t pattern;
	const char *name;
	uint64_t rate;
	const char *host;
};

static const char *const patterns[] = {"randread", "randwrite", "seq", NULL};

static const struct gantry_option extra[] = {
	{"host", GANTRY_OPT_STRING, offsetof(struct conf, host), NULL, 0, 0, NULL, NULL, "Who."},
	{"rate", GANTRY_OPT_INT, offsetof(struct conf, rate), "7", 0, 0, NULL, NULL, "How fast."},
	GANTRY_OPTION_END,
};

static const struct gantry_option table[] = {
	{"path", GANTRY_OPT_STRING, offsetof(struct conf, path), NULL, 0, 0, NULL, NULL,
	 "File that holds the volume."},
	{"direct", GANTRY_OPT_BOOL, offsetof(struct conf, direct), "true", 0, 0, NULL, NULL,
	 "Past the page cache."},
	{"depth", GANTRY_OPT_INT, offsetof(struct conf, depth), "32", 1, 4096, NULL, NULL,
	 "IOs in flight."},
	{"bias", GANTRY_OPT_INT, offsetof(struct conf, bias), "-1", -5, 0, NULL, NULL,
	 "May be negative. Or 0."},
	{"block", GANTRY_OPT_SIZE, offsetof(struct conf, block), "4KiB", 512, 1 << 20, NULL, NULL,
	 "Bytes of an IO."},
	{"cache", GANTRY_OPT_SIZE, offsetof(struct conf, cache), "0", 4096, 0, NULL, NULL,
	 ".hidden \\ help"},
	{"timeout", GANTRY_OPT_TIME, offsetof(struct conf, timeout), "30s", 1000000, 3600000000000,
	 NULL, NULL, NULL},
	{"pattern", GANTRY_OPT_CHOICE, offsetof(struct conf, pattern), "seq", 0, 0, patterns, NULL,
	 "Order."},
	{"extra", GANTRY_OPT_GROUP, 0, "", 0, 0, NULL, extra, "More."},
	GANTRY_OPTION_END,
};

static char path[] = "/tmp/gantry-options-XXXXXX";
static struct gn_errs errs;
static struct conf conf;
static struct gn_config *config;
static char all[16384];

void setUp(void)
{
	memset(&conf, 0xee, sizeof(conf));
}

void tearDown(void)
{
	gn_errs_fini(&errs);
	gn_config_close(&config);
}

/*
 * Fill conf from this text by an option table. Returns the messages, one per line, without the file
 * name.
 */
static const char *by_table(const char *text, const struct gantry_option *rows,
			    const char *const *also)
{
	size_t n = 0;
	int fd, ret;

	strcpy(path + strlen(path) - 6, "XXXXXX");
	fd = mkstemp(path);
	TEST_ASSERT_GREATER_OR_EQUAL_INT(0, fd);
	TEST_ASSERT_EQUAL_INT((int64_t)strlen(text), write(fd, text, strlen(text)));
	close(fd);
	gn_config_close(&config);
	config = gn_config_open(path, NULL, 0, &errs);
	unlink(path);
	TEST_ASSERT_EQUAL_STRING("", errs.n ? errs.text[0] : "");
	ret = gn_conf_options(gn_config_root(config), rows, &conf, also, &errs);
	TEST_ASSERT_EQUAL_INT(errs.n ? -EINVAL : 0, ret);
	all[0] = '\0';
	for (size_t i = 0; i < gn_errs_kept(&errs); i++) {
		TEST_ASSERT_EQUAL_INT(0, strncmp(errs.text[i], path, strlen(path)));
		n += (size_t)snprintf(all + n, sizeof(all) - n, "%s%s", i ? "\n" : "",
				      errs.text[i] + strlen(path));
	}
	gn_errs_fini(&errs);
	return all;
}

static const char *faults_of(const char *text)
{
	return by_table(text, table, NULL);
}

/* Returns the messages for this text, after a valid value of the required option. */
static const char *fault_of(const char *text)
{
	char full[256];

	snprintf(full, sizeof(full), "path = \"/x\"; %s", text);
	return faults_of(full);
}

static void defaults_replace_missing_options(void)
{
	TEST_ASSERT_EQUAL_STRING("", faults_of("path = \"/srv/v\";"));
	TEST_ASSERT_EQUAL_STRING("/srv/v", conf.path);
	TEST_ASSERT_EQUAL_UINT8(1, conf.direct);
	TEST_ASSERT_EQUAL_INT64(32, conf.depth);
	TEST_ASSERT_EQUAL_INT64(-1, conf.bias);
	TEST_ASSERT_EQUAL_UINT64(4096, conf.block);
	TEST_ASSERT_EQUAL_UINT64(0, conf.cache);
	TEST_ASSERT_EQUAL_UINT64(30000000000, conf.timeout);
	TEST_ASSERT_EQUAL_UINT32(2, conf.pattern);
	TEST_ASSERT_NULL(conf.host);
	TEST_ASSERT_EQUAL_UINT64(7, conf.rate);
}

static void faults_of_options_by_name(void)
{
	static const struct {
		const char *option, *says;
	} cases[] = {
		{"depth", ":2: depth: is odd"},           {"extra.rate", ":5: extra.rate: is odd"},
		{"extra.host", ":4: extra.host: is odd"}, {"more.of.it", ": more.of.it: is odd"},
		{"depth.less", ":2: depth.less: is odd"},
	};

	faults_of("path = \"/x\";\ndepth = 3;\nextra = {\n host = \"h\";\n rate = 1;\n};");
	TEST_ASSERT_NOT_NULL(config);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		gn_conf_fault_option(&errs, gn_config_root(config), cases[i].option, "is odd");
		TEST_ASSERT_NOT_NULL_MESSAGE(strstr(errs.text[i], cases[i].says), errs.text[i]);
	}
}

static void values_of_every_type(void)
{
	TEST_ASSERT_EQUAL_STRING(
		"",
		faults_of(
			"path = \"a\"; direct = false; depth = 4096; bias = -5; block = \"64KiB\";"
			"cache = 8589934592L; timeout = \"250ms\"; pattern = \"randread\";"
			"extra = { host = \"h\"; rate = 9000000000L; };"));
	TEST_ASSERT_EQUAL_UINT8(0, conf.direct);
	TEST_ASSERT_EQUAL_INT64(4096, conf.depth);
	TEST_ASSERT_EQUAL_INT64(-5, conf.bias);
	TEST_ASSERT_EQUAL_UINT64(65536, conf.block);
	TEST_ASSERT_EQUAL_UINT64(8589934592, conf.cache);
	TEST_ASSERT_EQUAL_UINT64(250000000, conf.timeout);
	TEST_ASSERT_EQUAL_UINT32(0, conf.pattern);
	TEST_ASSERT_EQUAL_STRING("h", conf.host);
	TEST_ASSERT_EQUAL_UINT64(9000000000, conf.rate);
	TEST_ASSERT_EQUAL_STRING("", fault_of("block = 4096;"));
	TEST_ASSERT_EQUAL_UINT64(4096, conf.block);
}

static void wrong_types(void)
{
	TEST_ASSERT_EQUAL_STRING(":1: path: is a number; write a string in double quotes",
				 faults_of("path = 5;"));
	TEST_ASSERT_EQUAL_STRING(":1: path: is a list; write a string in double quotes",
				 faults_of("path = (\"a\");"));
	TEST_ASSERT_EQUAL_STRING(":1: direct: is a string; write true or false, without quotes",
				 fault_of("direct = \"yes\";"));
	TEST_ASSERT_EQUAL_STRING(":1: direct: is a number; write true or false, without quotes",
				 fault_of("direct = 1;"));
	TEST_ASSERT_EQUAL_STRING(":1: depth: is a string; write a whole number, without quotes",
				 fault_of("depth = \"5\";"));
	TEST_ASSERT_EQUAL_STRING(
		":1: depth: is a number with a point; write a whole number, without quotes",
		fault_of("depth = 5.0;"));
	TEST_ASSERT_EQUAL_STRING(
		":1: block: is a bool; write a size in double quotes, such as \"4KiB\"",
		fault_of("block = true;"));
	TEST_ASSERT_EQUAL_STRING(
		":1: timeout: is a number; write a time in double quotes, such as \"250ms\"",
		fault_of("timeout = 10;"));
	TEST_ASSERT_EQUAL_STRING(
		":1: pattern: is a group; write one of \"randread\", \"randwrite\", \"seq\"",
		fault_of("pattern = { };"));
	TEST_ASSERT_EQUAL_STRING(":1: extra: is a string; write a group: { ... }",
				 fault_of("extra = \"x\";"));
}

static void values_out_of_range(void)
{
	TEST_ASSERT_EQUAL_STRING(":1: depth: 0 is out of range; write 1 to 4096",
				 fault_of("depth = 0;"));
	TEST_ASSERT_EQUAL_STRING(":1: depth: 4097 is out of range; write 1 to 4096",
				 fault_of("depth = 4097;"));
	TEST_ASSERT_EQUAL_STRING(":1: depth: 5000000000 is out of range; write 1 to 4096",
				 fault_of("depth = 5000000000L;"));
	TEST_ASSERT_EQUAL_STRING(":1: bias: 1 is out of range; write -5 to 0",
				 fault_of("bias = 1;"));
	TEST_ASSERT_EQUAL_STRING(":1: block: \"256\" is out of range; write 512 to 1MiB",
				 fault_of("block = \"256\";"));
	TEST_ASSERT_EQUAL_STRING(":1: block: 2097152 is out of range; write 512 to 1MiB",
				 fault_of("block = 2097152;"));
	TEST_ASSERT_EQUAL_STRING(":1: block: -1 is out of range; write 512 to 1MiB",
				 fault_of("block = -1;"));
	TEST_ASSERT_EQUAL_STRING(":1: cache: \"1K\" is out of range; write 4KiB or more",
				 fault_of("cache = \"1K\";"));
	TEST_ASSERT_EQUAL_STRING(
		":1: cache: \"16000000TiB\" is too large; write 4KiB to 8388607TiB",
		fault_of("cache = \"16000000TiB\";"));
	TEST_ASSERT_EQUAL_STRING(
		":1: cache: \"99999999999TiB\" is too large; write 4KiB to 8388607TiB",
		fault_of("cache = \"99999999999TiB\";"));
	TEST_ASSERT_EQUAL_STRING("", faults_of("path = \"/x\"; cache = \"8388607TiB\";"));
	TEST_ASSERT_EQUAL_STRING(":1: block: \"99999999999GiB\" is too large; write 512 to 1MiB",
				 fault_of("block = \"99999999999GiB\";"));
	TEST_ASSERT_EQUAL_STRING(":1: block: \"-4KiB\" is too small; write 512 to 1MiB",
				 fault_of("block = \"-4KiB\";"));
	TEST_ASSERT_EQUAL_STRING(":1: timeout: \"5us\" is out of range; write 1ms to 1h",
				 fault_of("timeout = \"5us\";"));
	TEST_ASSERT_EQUAL_STRING(":1: timeout: \"9999999h\" is too large; write 1ms to 1h",
				 fault_of("timeout = \"9999999h\";"));
}

/* Returns the only message for a --set option, or "" if there is none. */
static const char *set_fault(const char *set)
{
	static char text[300];
	int ret;

	tearDown();
	config = gn_config_open_text("--set", "path = \"/x\";", &set, 1, &errs);
	TEST_ASSERT_NOT_NULL(config);
	ret = gn_conf_options(gn_config_root(config), table, &conf, NULL, &errs);
	TEST_ASSERT_EQUAL_INT(errs.n > 0 ? -EINVAL : 0, ret);
	TEST_ASSERT_TRUE(errs.n <= 1);
	snprintf(text, sizeof(text), "%s", errs.n > 0 ? errs.text[0] : "");
	return text;
}

/* Values of --set have no quotes, so a number is text until the table gives its type. */
static void numbers_of_overrides(void)
{
	TEST_ASSERT_EQUAL_STRING(
		"--set: depth: \"99999999999999999999\" is too large; write 1 to 4096",
		set_fault("depth=99999999999999999999"));
	TEST_ASSERT_EQUAL_STRING(
		"--set: depth: \"-99999999999999999999\" is too small; write 1 to 4096",
		set_fault("depth=-99999999999999999999"));
	TEST_ASSERT_EQUAL_STRING(
		"--set: depth: \"0x10000000000000000\" is too large; write 1 to 4096",
		set_fault("depth=0x10000000000000000"));
	TEST_ASSERT_EQUAL_STRING("--set: depth: \"4GiB\" is not a whole number; write 1 to 4096",
				 set_fault("depth=4GiB"));
	TEST_ASSERT_EQUAL_STRING("--set: depth: \"1e3\" is not a whole number; write 1 to 4096",
				 set_fault("depth=1e3"));
	TEST_ASSERT_EQUAL_STRING("--set: depth: \"\" is not a whole number; write 1 to 4096",
				 set_fault("depth="));
	TEST_ASSERT_EQUAL_STRING("--set: depth: -1 is out of range; write 1 to 4096",
				 set_fault("depth=-1"));
	TEST_ASSERT_EQUAL_STRING("--set: depth: is a string; write a whole number, without quotes",
				 set_fault("depth=\"4\""));
	TEST_ASSERT_EQUAL_STRING("", set_fault("depth=0x10"));
	TEST_ASSERT_EQUAL_INT64(16, conf.depth);
	TEST_ASSERT_EQUAL_STRING(
		"--set: block: \"99999999999999999999\" is too large; write 512 to 1MiB",
		set_fault("block=99999999999999999999"));
	TEST_ASSERT_EQUAL_STRING("--set: block: -1 is out of range; write 512 to 1MiB",
				 set_fault("block=-1"));
	TEST_ASSERT_EQUAL_STRING(
		"--set: timeout: \"5\" is not a time; write a whole number with ns, us, ms, s, m or h",
		set_fault("timeout=5"));
	TEST_ASSERT_EQUAL_STRING(
		"--set: timeout: \"99999999999999999999s\" is too large; write 1ms to 1h",
		set_fault("timeout=99999999999999999999s"));
}

static void text_that_is_no_value(void)
{
	TEST_ASSERT_EQUAL_STRING(
		":1: block: \"4 apples\" is not a size; write a whole number with no unit (bytes), KiB, MiB, "
		"GiB, TiB (or K, M, G, T), KB, MB, GB or TB",
		fault_of("block = \"4 apples\";"));
	TEST_ASSERT_EQUAL_STRING(
		":1: timeout: \"10\" is not a time; write a whole number with ns, us, ms, s, m or h",
		fault_of("timeout = \"10\";"));
	TEST_ASSERT_EQUAL_STRING(
		":1: pattern: \"backwards\" is unknown; write one of \"randread\", \"randwrite\", \"seq\"",
		fault_of("pattern = \"backwards\";"));
	TEST_ASSERT_EQUAL_STRING(":1: pattern: \"randraed\" is unknown; did you mean \"randread\"?",
				 fault_of("pattern = \"randraed\";"));
}

static void unknown_keys(void)
{
	const char *const also[] = {"type", "stages", NULL};

	TEST_ASSERT_EQUAL_STRING(":1: dephts: unknown key; did you mean \"depth\"?",
				 fault_of("dephts = 5;"));
	TEST_ASSERT_EQUAL_STRING(":1: tiemout: unknown key; did you mean \"timeout\"?",
				 fault_of("tiemout = \"5s\";"));
	TEST_ASSERT_EQUAL_STRING(
		":1: colour: unknown key; known here: path, direct, depth, bias, block, cache, timeout, "
		"pattern, extra",
		fault_of("colour = 5;"));
	TEST_ASSERT_EQUAL_STRING(":1: extra.hots: unknown key; did you mean \"host\"?",
				 fault_of("extra = { host = \"x\"; hots = \"y\"; };"));
	TEST_ASSERT_EQUAL_STRING(":1: typ: unknown key; did you mean \"type\"?",
				 by_table("path = \"x\"; type = \"t\"; typ = 1;", table, also));
	TEST_ASSERT_EQUAL_STRING("", by_table("type = \"t\"; stages = ();", NULL, also));
	TEST_ASSERT_EQUAL_STRING(":1: x: unknown key; known here: none",
				 by_table("x = 1;", NULL, NULL));
}

static void missing_keys(void)
{
	TEST_ASSERT_EQUAL_STRING(
		": \"path\" is missing; it must be given (File that holds the volume.)",
		faults_of(""));
	TEST_ASSERT_EQUAL_STRING(":3: extra: \"host\" is missing; it must be given (Who.)",
				 faults_of("path = \"x\";\n\nextra = { rate = 5; };"));
}

static void every_fault_is_reported(void)
{
	TEST_ASSERT_EQUAL_STRING(
		":4: xtra: unknown key; did you mean \"extra\"?\n"
		": \"path\" is missing; it must be given (File that holds the volume.)\n"
		":1: direct: is a number; write true or false, without quotes\n"
		":2: depth: 0 is out of range; write 1 to 4096\n"
		":3: block: is a group; write a size in double quotes, such as \"4KiB\"",
		faults_of("direct = 1;\ndepth = 0;\nblock = { };\nxtra = { };"));
}

static void option_table_of_a_node_that_is_no_group(void)
{
	struct gn_conf_node *node;

	TEST_ASSERT_EQUAL_STRING("", fault_of(""));
	node = gn_conf_child(gn_config_root(config), "path");
	TEST_ASSERT_EQUAL_INT(-EINVAL, gn_conf_options(node, table, &conf, NULL, &errs));
	TEST_ASSERT_EQUAL_STRING(":1: path: is a string; write a group: { ... }",
				 errs.text[0] + strlen(path));
	gn_errs_fini(&errs);
	TEST_ASSERT_EQUAL_INT(-EINVAL, gn_conf_options(NULL, table, &conf, NULL, &errs));
	TEST_ASSERT_EQUAL_STRING("\"path\" is missing; it must be given", errs.text[0]);
	TEST_ASSERT_EQUAL_INT(0, gn_conf_options(NULL, table + 1, &conf, NULL, &errs));
	TEST_ASSERT_EQUAL_INT64(32, conf.depth);
}

static void invalid_defaults_of_a_table_are_reported(void)
{
	static const struct gantry_option bad[] = {
		{"a", GANTRY_OPT_SIZE, offsetof(struct conf, block), "many", 0, 0, NULL, NULL,
		 NULL},
		{"b", GANTRY_OPT_CHOICE, offsetof(struct conf, pattern), "red", 0, 0, patterns,
		 NULL, NULL},
		{"c", GANTRY_OPT_BOOL, offsetof(struct conf, direct), "yes", 0, 0, NULL, NULL,
		 NULL},
		{"d", GANTRY_OPT_INT, offsetof(struct conf, depth), "5x", 0, 0, NULL, NULL, NULL},
		GANTRY_OPTION_END,
	};

	TEST_ASSERT_EQUAL_INT(-EINVAL, gn_conf_options(NULL, bad, &conf, NULL, &errs));
	TEST_ASSERT_EQUAL_UINT(4, errs.n);
	TEST_ASSERT_EQUAL_STRING("a: plugin bug: default \"many\" is invalid", errs.text[0]);
}

static void similar_names_have_a_small_distance(void)
{
	TEST_ASSERT_EQUAL_INT(0, gn_config_near("depth", "depth"));
	TEST_ASSERT_EQUAL_INT(1, gn_config_near("detph", "depth"));
	TEST_ASSERT_EQUAL_INT(1, gn_config_near("deph", "depth"));
	TEST_ASSERT_EQUAL_INT(1, gn_config_near("depths", "depth"));
	TEST_ASSERT_EQUAL_INT(0, gn_config_near("DEPTH", "depth"));
	TEST_ASSERT_EQUAL_INT(1, gn_config_near("Detph", "depth"));
	TEST_ASSERT_EQUAL_INT(-1, gn_config_near("width", "depth"));
	TEST_ASSERT_EQUAL_INT(2, gn_config_near("timeuot1", "timeout"));
	TEST_ASSERT_EQUAL_INT(-1, gn_config_near("ab", "ac"));
	TEST_ASSERT_EQUAL_INT(-1, gn_config_near("", "depth"));
	TEST_ASSERT_EQUAL_INT(
		-1,
		gn_config_near("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "depth"));
}

static const char *printed(enum gn_option_style style)
{
	FILE *out = fmemopen(all, sizeof(all), "w");

	gn_option_print(out, table, style, "");
	fclose(out);
	return all;
}

static void table_for_a_terminal(void)
{
	TEST_ASSERT_EQUAL_STRING(
		"  path                 string; must be given\n"
		"                       File that holds the volume.\n"
		"  direct               true | false; default true\n"
		"                       Past the page cache.\n"
		"  depth                number, 1 to 4096; default 32\n"
		"                       IOs in flight.\n"
		"  bias                 number, -5 to 0; default -1\n"
		"                       May be negative. Or 0.\n"
		"  block                size, 512 to 1MiB; default \"4KiB\"\n"
		"                       Bytes of an IO.\n"
		"  cache                size, 4KiB or more; default \"0\"\n"
		"                       .hidden \\ help\n"
		"  timeout              time, 1ms to 1h; default \"30s\"\n"
		"  pattern              choice, \"randread\", \"randwrite\", \"seq\"; default \"seq\"\n"
		"                       Order.\n"
		"  extra                group; optional\n"
		"                       More.\n"
		"  extra.host           string; must be given\n"
		"                       Who.\n"
		"  extra.rate           number; default 7\n"
		"                       How fast.\n",
		printed(GN_OPTION_TEXT));
}

static void table_for_a_manual(void)
{
	const char *text = printed(GN_OPTION_MDOC);

	TEST_ASSERT_EQUAL_PTR(
		text,
		strstr(text,
		       ".It Cm path Pq string\nFile that holds the volume.\nMust be given.\n"));
	TEST_ASSERT_NOT_NULL(strstr(
		text, ".It Cm bias Pq number\nMay be negative.\nOr 0.\n-5 to 0; default -1.\n"));
	TEST_ASSERT_NOT_NULL(strstr(
		text, ".It Cm cache Pq size\n\\&.hidden \\e help\n4KiB or more; default \"0\".\n"));
	TEST_ASSERT_NOT_NULL(strstr(text, ".It Cm extra.rate Pq number\nHow fast.\nDefault 7.\n"));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(defaults_replace_missing_options);
	RUN_TEST(faults_of_options_by_name);
	RUN_TEST(values_of_every_type);
	RUN_TEST(wrong_types);
	RUN_TEST(values_out_of_range);
	RUN_TEST(numbers_of_overrides);
	RUN_TEST(text_that_is_no_value);
	RUN_TEST(unknown_keys);
	RUN_TEST(missing_keys);
	RUN_TEST(every_fault_is_reported);
	RUN_TEST(option_table_of_a_node_that_is_no_group);
	RUN_TEST(invalid_defaults_of_a_table_are_reported);
	RUN_TEST(similar_names_have_a_small_distance);
	RUN_TEST(table_for_a_terminal);
	RUN_TEST(table_for_a_manual);
	return UNITY_END();
}
