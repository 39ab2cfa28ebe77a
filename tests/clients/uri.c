/* SPDX-License-Identifier: BSD-3-Clause */
/* Parsing of volume URIs, and the message for each invalid one. */
#include <errno.h>
#include <string.h>

#include "unity.h"
#include "uri.h"

/* The settings of the URI must be `sets`, each followed by a semicolon. */
static void says(const char *from, const char *sets)
{
	char all[8192] = "", text[256];
	struct gc_uri uri;

	TEST_ASSERT_EQUAL_INT_MESSAGE(0, gc_uri_parse(&uri, from, text, sizeof(text)), from);
	TEST_ASSERT_NULL(uri.config);
	for (size_t i = 0; i < uri.n_sets; i++) {
		strcat(all, uri.sets[i]);
		strcat(all, ";");
	}
	TEST_ASSERT_EQUAL_STRING(sets, all);
	gc_uri_fini(&uri);
}

static void wrong(const char *from, const char *why)
{
	char text[512];
	struct gc_uri uri;

	TEST_ASSERT_EQUAL_INT_MESSAGE(-EINVAL, gc_uri_parse(&uri, from, text, sizeof(text)), from);
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(text, why), text);
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(text, ": "), text);
	gc_uri_fini(&uri);
}

#define DPU0 "devices.dpu0.transport=\"shm-comch\";roles.volume.connect.device=\"dpu0\";"

static void test_uri_with_only_a_volume_name(void)
{
	says("gantry:///volume0", DPU0 "roles.volume.connect.name=\"volume0\";");
	says("gantry:///a%20b%2fc%3Fd", DPU0 "roles.volume.connect.name=\"a b/c?d\";");
	says("gantry:///42?", DPU0 "roles.volume.connect.name=\"42\";");
}

static void test_uri_with_devices_and_options(void)
{
	says("gantry:///v?device=wire&transport=loop",
	     "devices.wire.transport=\"loop\";roles.volume.connect.device=\"wire\";roles.volume.connect.name=\"v\";");
	says("gantry:///v?connect.io_timeout=5s&device.dir=%2Ftmp&device=d",
	     "devices.d.transport=\"shm-comch\";roles.volume.connect.device=\"d\";roles.volume.connect.name=\"v\";"
	     "roles.volume.connect.io_timeout=5s;devices.d.dir=/tmp;");
	says("gantry://192.0.2.7:7471?transport=rdma-verbs",
	     "devices.dpu0.transport=\"rdma-verbs\";roles.volume.connect.device=\"dpu0\";"
	     "roles.volume.connect.name=\"192.0.2.7:7471\";");
	says("gantry://h:1/?transport=x&&connect.a==",
	     "devices.dpu0.transport=\"x\";roles.volume.connect.device=\"dpu0\";"
	     "roles.volume.connect.name=\"h:1\";roles.volume.connect.a==;");
}

static void test_uri_with_a_file_and_a_role(void)
{
	char text[256];
	struct gc_uri uri;

	TEST_ASSERT_EQUAL_INT(0, gc_uri_parse(&uri, "gantry:///?config=/etc/a%26b.conf&role=load",
					      text, sizeof(text)));
	TEST_ASSERT_EQUAL_STRING("/etc/a&b.conf", uri.config);
	TEST_ASSERT_EQUAL_STRING("load", uri.role);
	TEST_ASSERT_EQUAL_size_t(0, uri.n_sets);
	gc_uri_fini(&uri);
	TEST_ASSERT_EQUAL_INT(0, gc_uri_parse(&uri, "gantry://?config=x", text, sizeof(text)));
	TEST_ASSERT_NULL(uri.role);
	gc_uri_fini(&uri);
}

static void test_mistakes_in_a_uri_are_reported(void)
{
	static char longest[GC_URI_MAX + 32] = "gantry:///", many[GC_URI_MAX] = "gantry:///v?";

	wrong("", "no gantry URI");
	wrong("volume0", "no gantry URI");
	wrong("nbd:///v", "write gantry:///NAME");
	wrong("gantry://", "names no volume");
	wrong("gantry:///", "names no volume");
	wrong("gantry:///v#x", "fragment");
	wrong("gantry://h:1/v?transport=x", "leave one of them out");
	wrong("gantry://h:1", "lacks the transport");
	wrong("gantry:///v?role=load", "needs config");
	wrong("gantry:///v?config=x", "excludes a place and all other keys");
	wrong("gantry:///?config=x&device=y", "excludes a place and all other keys");
	wrong("gantry:///?config=x&connect.a=y", "excludes a place and all other keys");
	wrong("gantry:///v?size=3",
	      "does not know \"size\"; known are config, role, device, transport, device.KEY and connect.KEY");
	wrong("gantry:///v?devices.x.y=1", "does not know");
	wrong("gantry:///v?device.=1", "names no option");
	wrong("gantry:///v?connect.a.b=1", "names no option");
	wrong("gantry:///v?device=a.b", "a name has letters");
	wrong("gantry:///v?device=a&device=b", "device twice");
	wrong("gantry:///v?device=", "device is empty");
	wrong("gantry:///v?x", "no KEY=VALUE");
	wrong("gantry:///v?=x", "no KEY=VALUE");
	wrong("gantry:///v%2", "two hexadecimal digits");
	wrong("gantry:///v%", "two hexadecimal digits");
	wrong("gantry:///v%zz", "two hexadecimal digits");
	wrong("gantry:///v%00", "control character");
	wrong("gantry:///v?connect.a=%0a", "control character");
	wrong("gantry:///v\x01", "control character");
	memset(longest + strlen(longest), 'v', GC_URI_MAX);
	wrong(longest, "longer than");
	for (int i = 0; i <= GC_URI_SETS; i++)
		strcat(many, "&device.a=1");
	wrong(many, "more than 64 settings");
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_uri_with_only_a_volume_name);
	RUN_TEST(test_uri_with_devices_and_options);
	RUN_TEST(test_uri_with_a_file_and_a_role);
	RUN_TEST(test_mistakes_in_a_uri_are_reported);
	return UNITY_END();
}
