/* SPDX-License-Identifier: BSD-3-Clause */
/* The configuration as text without the values that can be secrets. */
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "unity.h"

void setUp(void)
{
}

void tearDown(void)
{
}

/* Returns the public text of a configuration, which the caller frees. */
static char *public_text(const char *text, const char *const *overrides, size_t n)
{
	struct gn_errs errs = {0};
	struct gn_config *config = gn_config_open_text("a.conf", text, overrides, n, &errs);
	char *out = NULL;
	size_t size;
	FILE *f = open_memstream(&out, &size);

	TEST_ASSERT_NOT_NULL_MESSAGE(config, errs.n ? errs.text[0] : "");
	TEST_ASSERT_EQUAL_INT(0, gn_config_dump_public(config, f));
	fclose(f);
	gn_config_close(&config);
	gn_errs_fini(&errs);
	return out;
}

static void hides(const char *setting)
{
	char *out = public_text(setting, NULL, 0);

	if (strstr(out, "hush") || strstr(out, "4711"))
		TEST_FAIL_MESSAGE(out);
	free(out);
}

static void keeps(const char *setting, const char *value)
{
	char *out = public_text(setting, NULL, 0);

	if (!strstr(out, value))
		TEST_FAIL_MESSAGE(out);
	free(out);
}

static void values_of_keys_that_name_a_secret_are_left_out(void)
{
	hides("a = { password = \"hush\"; };");
	hides("a = { Client_Secret = \"hush\"; };");
	hides("a = { key = \"hush\"; };");
	hides("a = { tls_psk = \"hush\"; };");
	hides("a = ( { token = 4711; } );");
	hides("a = { secrets = [ \"hush\", \"hush\" ]; };");
	hides("a = { credentials = { user = \"hush\"; n = 4711L; f = 4711.0; }; };");
}

static void texts_that_hold_a_secret_are_left_out(void)
{
	hides("a = { uri = \"nbd://user:hush@host/volume\"; };");
	hides("a = { options = \"id=admin,key=hush\"; };");
	hides("a = { options = \"password: hush\"; };");
}

static void other_values_are_shown(void)
{
	keeps("a = { path = \"/srv/volume.img\"; };", "\"/srv/volume.img\"");
	keeps("a = { address = \"192.0.2.7:7471\"; };", "\"192.0.2.7:7471\"");
	keeps("a = { uri = \"nbd://host/volume@1\"; };", "nbd://host/volume@1");
	keeps("a = { monkey = \"x\"; bypass = 3; };", "\"x\"");
	keeps("a = { monkey = \"x\"; bypass = 3; };", "bypass = 3");
	keeps("a = { big = 5000000000L; };", "5000000000");
}

static void overrides_are_included_and_the_configuration_is_unchanged(void)
{
	static const char *const overrides[] = {"a.password=hush", "a.lanes=3"};
	struct gn_errs errs = {0};
	struct gn_config *config = gn_config_open_text("a.conf", "a = { lanes = 1; };", overrides,
						       2, &errs);
	struct gn_conf_node *a = gn_conf_child(gn_config_root(config), "a");
	char *out = public_text("a = { lanes = 1; };", overrides, 2);
	FILE *null = fopen("/dev/null", "w");

	TEST_ASSERT_NOT_NULL(strstr(out, "lanes = 3"));
	TEST_ASSERT_NULL(strstr(out, "hush"));
	TEST_ASSERT_EQUAL_INT(0, gn_config_dump_public(config, null));
	TEST_ASSERT_EQUAL_STRING("hush", gn_conf_string(gn_conf_child(a, "password")));
	fclose(null);
	free(out);
	gn_config_close(&config);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(values_of_keys_that_name_a_secret_are_left_out);
	RUN_TEST(texts_that_hold_a_secret_are_left_out);
	RUN_TEST(other_values_are_shown);
	RUN_TEST(overrides_are_included_and_the_configuration_is_unchanged);
	return UNITY_END();
}
