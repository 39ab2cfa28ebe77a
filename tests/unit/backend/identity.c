/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The identities from which backends derive UUIDs: a name, the machine, and a block device as sysfs
 * shows it.
 */
#include "../plugins/backend/file/file_device.c"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fake/host.h"
#include "unity.h"

#define UUID "0e7a1ed7-5c2c-4f5e-9a53-6d6f1c0f8b11"

static char dir[200], out[FILE_NAME_BYTES];

void setUp(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(dir, sizeof dir, "%.150s/gantry-test-XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(dir))
		fake_fail("%s: cannot make it", dir);
	strcpy(out, "nothing");
}

void tearDown(void)
{
	char command[300];

	snprintf(command, sizeof command, "rm -r '%s'", dir);
	if (system(command))
		fake_fail("%s: cannot remove it", dir);
}

/* Create a file below the directory of the test, and the parent directory of the file. */
static void put(const char *name, const char *text)
{
	char path[400], *slash;
	FILE *f;

	snprintf(path, sizeof path, "%s/%s", dir, name);
	slash = strrchr(path, '/');
	*slash = '\0';
	mkdir(path, 0700);
	*slash = '/';
	f = fopen(path, "w");
	if (!f || fputs(text, f) < 0 || fclose(f))
		fake_fail("%s: cannot make it", path);
}

static void named(enum file_name_scope scope, const char *name)
{
	TEST_ASSERT_EQUAL_INT(scope, file_device_name(dir, out, sizeof out));
	TEST_ASSERT_EQUAL_STRING(name, out);
}

static void a_disk_has_its_wwid(void)
{
	put("device/wwid", "  naa.600508b1001c5e7f   \n");
	named(FILE_NAME_WORLD, "naa.600508b1001c5e7f");
	put("wwid", "eui.0025385b71b0a3c1\n");
	named(FILE_NAME_WORLD, "eui.0025385b71b0a3c1");
	put("dm/uuid", "LVM-abc\n");
	named(FILE_NAME_WORLD, "LVM-abc");
}

static void a_device_without_a_name_has_none(void)
{
	TEST_ASSERT_EQUAL_INT(FILE_NAME_NONE, file_device_name(dir, out, sizeof out));
	put("dm/uuid", "\n");
	put("wwid", "   \n");
	put("partition", "1\n");
	put("start", "2048\n");
	TEST_ASSERT_EQUAL_INT(FILE_NAME_NONE, file_device_name(dir, out, sizeof out));
}

static void partition_is_named_by_its_disk_and_start(void)
{
	put("wwid", "eui.0025385b71b0a3c1\n");
	put("p2/partition", "2\n");
	put("p2/start", "4096\n");
	strcat(dir, "/p2");
	TEST_ASSERT_EQUAL_INT(FILE_NAME_WORLD, file_device_name(dir, out, sizeof out));
	*strrchr(dir, '/') = '\0';
	TEST_ASSERT_EQUAL_STRING("eui.0025385b71b0a3c1 partition 2 start 4096", out);
}

static void loop_device_is_named_by_its_file_and_offset(void)
{
	char line[300], name[400];

	snprintf(line, sizeof line, "%s/disk\n", dir);
	put("loop/backing_file", line);
	put("loop/offset", "512\n");
	put("disk", "");
	snprintf(name, sizeof name, "loop %s/disk offset 512", dir);
	named(FILE_NAME_MACHINE, name);
	line[strlen(line) - 1] = '\0';
	if (setxattr(line, FILE_UUID_ATTRIBUTE, UUID, strlen(UUID), 0))
		TEST_IGNORE_MESSAGE("the file system of TMPDIR has no user attributes");
	named(FILE_NAME_WORLD, "loop " UUID " offset 512");
}

static void name_that_is_too_long_is_not_used(void)
{
	put("wwid", "eui.0025385b71b0a3c1\n");
	TEST_ASSERT_EQUAL_INT(FILE_NAME_NONE, file_device_name(dir, out, 10));
}

static void different_names_have_different_uuids_and_hashes(void)
{
	struct fake_host host, other;
	uint8_t a[16], b[16];

	fake_host_init(&host, "roles.a");
	fake_host_init(&other, "roles.b");
	identity_of_name("x", a);
	identity_of_machine(&host.pub, "x", b);
	TEST_ASSERT_TRUE(memcmp(a, b, 16) != 0);
	TEST_ASSERT_EQUAL_HEX8(0x50, a[6] & 0xf0); /* a UUID of version 5 */
	identity_of_machine(&host.pub, "x", a);
	TEST_ASSERT_EQUAL_MEMORY(b, a, 16);
	identity_of_instance(&host.pub, "", 4096, a);
	identity_of_instance(&other.pub, "", 4096, b);
	TEST_ASSERT_TRUE(memcmp(a, b, 16) != 0);
	identity_of_instance(&host.pub, "", 8192, b);
	TEST_ASSERT_TRUE(memcmp(a, b, 16) != 0);
	identity_of_instance(&host.pub, UUID, 8192, b);
	TEST_ASSERT_EQUAL_HEX8(0x0e, b[0]);
	TEST_ASSERT_TRUE(identity_hash("ab", 2) != identity_hash("ba", 2));
	TEST_ASSERT_TRUE(identity_nonce() != identity_nonce());
}

static void texts_that_are_no_uuids_are_refused(void)
{
	static const char *const wrong[] = {"",
					    "0",
					    UUID "0",
					    "0e7a1ed75c2c4f5e9a536d6f1c0f8b11",
					    "00000000-0000-0000-0000-000000000000",
					    "0e7a1ed7-5c2c-4f5e-9a53-6d6f1c0f8b1g"};
	char text[IDENTITY_TEXT];
	uint8_t uuid[16];

	for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++)
		TEST_ASSERT_EQUAL_INT_MESSAGE(-EINVAL, identity_parse(wrong[i], uuid), wrong[i]);
	TEST_ASSERT_EQUAL_INT(0, identity_parse("0E7A1ED7-5c2c-4f5e-9a53-6d6f1c0f8b11", uuid));
	identity_text(uuid, text);
	TEST_ASSERT_EQUAL_STRING(UUID, text);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(a_disk_has_its_wwid);
	RUN_TEST(a_device_without_a_name_has_none);
	RUN_TEST(partition_is_named_by_its_disk_and_start);
	RUN_TEST(loop_device_is_named_by_its_file_and_offset);
	RUN_TEST(name_that_is_too_long_is_not_used);
	RUN_TEST(different_names_have_different_uuids_and_hashes);
	RUN_TEST(texts_that_are_no_uuids_are_refused);
	return UNITY_END();
}
