/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * networks.c - the option direct_networks: the syntax of the list, and which addresses its networks
 * contain.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "verbs.h"
#include "unity.h"

static struct tc_networks networks;
static char why[160];

void setUp(void)
{
	why[0] = 0;
}

static bool has(const char *address)
{
	struct sockaddr_storage addr = {.ss_family = AF_INET};

	if (inet_pton(AF_INET, address, &((struct sockaddr_in *)&addr)->sin_addr) != 1) {
		addr.ss_family = AF_INET6;
		TEST_ASSERT_EQUAL_INT_MESSAGE(
			1, inet_pton(AF_INET6, address, &((struct sockaddr_in6 *)&addr)->sin6_addr),
			address);
	}
	return tc_networks_have(&networks, (struct sockaddr *)&addr);
}

static void list(const char *text, unsigned n)
{
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, tc_networks_parse(text, &networks, why, sizeof(why)),
				      text ? text : "NULL");
	TEST_ASSERT_EQUAL_UINT_MESSAGE(n, networks.n, text ? text : "NULL");
}

static void an_empty_list_has_no_address(void)
{
	static const char *const empty[] = {NULL, "", " ", " \t "};

	for (size_t i = 0; i < sizeof(empty) / sizeof(empty[0]); i++) {
		list(empty[i], 0);
		TEST_ASSERT_FALSE(has("0.0.0.0"));
		TEST_ASSERT_FALSE(has("127.0.0.1"));
		TEST_ASSERT_FALSE(has("::"));
		TEST_ASSERT_FALSE(has("::1"));
	}
}

static void addresses_of_networks(void)
{
	static const struct {
		const char *list, *in[4], *out[5];
		unsigned n;
	} rows[] = {
		{"192.0.2.0/24",
		 {"192.0.2.0", "192.0.2.255", "::ffff:192.0.2.7"},
		 {"192.0.1.255", "192.0.3.0", "::192.0.2.7", "2001:db8::1"},
		 1},
		{"10.99.0.2", {"10.99.0.2"}, {"10.99.0.3", "10.99.0.0"}, 1},
		{"10.99.0.2/32", {"10.99.0.2"}, {"10.99.0.3"}, 1},
		{"10.99.0.2/31", {"10.99.0.2", "10.99.0.3"}, {"10.99.0.1", "10.99.0.4"}, 1},
		{"128.0.0.0/1", {"128.0.0.0", "255.255.255.255"}, {"127.255.255.255"}, 1},
		{"0.0.0.0/0",
		 {"0.0.0.0", "255.255.255.255", "::ffff:10.0.0.1"},
		 {"::", "2001:db8::1"},
		 1},
		{"::/0",
		 {"::", "2001:db8::1", "fe80::1", "::1"},
		 {"10.0.0.1", "::ffff:10.0.0.1"},
		 1},
		{"2001:db8::/32",
		 {"2001:db8::", "2001:db8:ffff::1"},
		 {"2001:db7:ffff::", "2001:db9::", "32.1.13.184"},
		 1},
		{"2001:db8::8/125",
		 {"2001:db8::8", "2001:db8::f"},
		 {"2001:db8::7", "2001:db8::10"},
		 1},
		{"::1", {"::1"}, {"::2", "127.0.0.1", "0.0.0.1"}, 1},
		{"::ffff:192.0.2.0/120", {"192.0.2.9", "::ffff:192.0.2.9"}, {"192.0.3.0"}, 1},
		{"::ffff:0:0/96", {"0.0.0.0", "192.0.2.9"}, {"::1"}, 1},
		{"192.0.2.0/24,2001:db8::/32", {"192.0.2.1", "2001:db8::1"}, {"192.0.3.1"}, 2},
		{" 192.0.2.0/24 ,\t10.0.0.0/8 , 2001:db8::/32 ",
		 {"192.0.2.1", "10.255.0.1", "2001:db8::1"},
		 {"11.0.0.0"},
		 3},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		list(rows[i].list, rows[i].n);
		for (int k = 0; k < 4 && rows[i].in[k]; k++)
			TEST_ASSERT_TRUE_MESSAGE(has(rows[i].in[k]), rows[i].in[k]);
		for (int k = 0; k < 5 && rows[i].out[k]; k++)
			TEST_ASSERT_FALSE_MESSAGE(has(rows[i].out[k]), rows[i].out[k]);
	}
}

static void another_family_is_in_no_network(void)
{
	const struct sockaddr addr = {.sa_family = AF_UNIX};

	list("0.0.0.0/0, ::/0", 2);
	TEST_ASSERT_FALSE(tc_networks_have(&networks, &addr));
}

static void mistakes(void)
{
	static const char none[] = "is not a network", bits[] = "has no prefix length",
			  behind[] = "has bits after its prefix";
	static const struct {
		const char *list, *word, *why;
	} rows[] = {
		{"any", "\"any\"", none},
		{"localhost/8", "\"localhost/8\"", none},
		{"192.0.2/24", "\"192.0.2/24\"", none},
		{"/24", "\"/24\"", none},
		{"192.0.2.7:7471", "\"192.0.2.7:7471\"", none},
		{"[::1]/128", "\"[::1]/128\"", none},
		{"fe80::1%eth0/64", "\"fe80::1%eth0/64\"", none},
		{"256.0.0.0/8", "\"256.0.0.0/8\"", none},
		{"192.0.2.0/33", "\"192.0.2.0/33\"", bits},
		{"192.0.2.0/", "\"192.0.2.0/\"", bits},
		{"192.0.2.0/-1", "\"192.0.2.0/-1\"", bits},
		{"192.0.2.0/+8", "\"192.0.2.0/+8\"", bits},
		{"192.0.2.0/ 24", "\"192.0.2.0/ 24\"", bits},
		{"192.0.2.0/24x", "\"192.0.2.0/24x\"", bits},
		{"192.0.2.0/24/8", "\"192.0.2.0/24/8\"", bits},
		{"2001:db8::/129", "\"2001:db8::/129\"", bits},
		{"2001:db8::/99999999999999999999", "\"2001:db8::/99999999999999999999\"", bits},
		{"192.0.2.7/24", "\"192.0.2.7/24\"", behind},
		{"2001:db8::1/32", "\"2001:db8::1/32\"", behind},
		{"1.0.0.0/0", "\"1.0.0.0/0\"", behind},
		{"::ffff:0:0/90", "\"::ffff:0:0/90\"", behind},
		{",", "\"\"", none},
		{"192.0.2.0/24,", "\"192.0.2.0/24\"", "is followed by a comma"},
		{"192.0.2.0/24, ,10.0.0.0/8", "\"\"", none},
		{"192.0.2.0/24 10.0.0.0/8", "\"192.0.2.0/24 10.0.0.0/8\"", bits},
		{"10.0.0.0/8, 192.0.2.1/24", "\"192.0.2.1/24\"", behind},
		{"0000000000000000000000000000000000000000000000000000000000000000000000000000",
		 "\"0000", "too long"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		TEST_ASSERT_EQUAL_INT_MESSAGE(
			-EINVAL, tc_networks_parse(rows[i].list, &networks, why, sizeof(why)),
			rows[i].list);
		TEST_ASSERT_EQUAL_PTR_MESSAGE(why, strstr(why, rows[i].word), why);
		TEST_ASSERT_NOT_NULL_MESSAGE(strstr(why, rows[i].why), why);
	}
}

static void as_many_as_fit(void)
{
	char text[(TC_NETWORKS + 1) * 12] = "";

	for (int i = 0; i < TC_NETWORKS; i++)
		strcat(text, i ? ",10.0.0.0/8" : "10.0.0.0/8");
	list(text, TC_NETWORKS);
	strcat(text, ",10.0.0.0/8");
	TEST_ASSERT_EQUAL_INT(-EINVAL, tc_networks_parse(text, &networks, why, sizeof(why)));
	TEST_ASSERT_EQUAL_STRING("has more than 16 networks", why);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(an_empty_list_has_no_address);
	RUN_TEST(addresses_of_networks);
	RUN_TEST(another_family_is_in_no_network);
	RUN_TEST(mistakes);
	RUN_TEST(as_many_as_fit);
	return UNITY_END();
}
