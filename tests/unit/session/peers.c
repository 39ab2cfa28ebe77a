/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of peers of a listener: names, limits, and what each peer uses. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "session/peers.h"
#include "unity.h"

static struct gn_peers peers;
static const struct gn_amounts limit = {.of = {2, 3, 1000, 500}};

void setUp(void)
{
	memset(&peers, 0, sizeof(peers));
}

void tearDown(void)
{
	TEST_ASSERT_NULL_MESSAGE(LIST_FIRST(&peers.list), "an entry was left");
	for (int i = 0; i < GN_QUOTAS; i++)
		TEST_ASSERT_EQUAL_UINT64(0, peers.used.of[i]);
}

static void named(const char *expected, int32_t pid, uint32_t uid, const char *address)
{
	struct gantry_peer peer = {.pid = pid, .uid = uid};
	char name[GN_PEER_NAME];

	memcpy(peer.address, address, strlen(address));
	gn_peer_name(&peer, name);
	TEST_ASSERT_EQUAL_STRING(expected, name);
}

static void peer_is_a_user_or_else_a_host(void)
{
	char full[sizeof(((struct gantry_peer *)0)->address) + 1] = {0}, expected[GN_PEER_NAME];

	named("uid 1000", 7, 1000, "pid 7 uid 1000");
	named("uid 1000", 8, 1000, "pid 8 uid 1000");
	named("uid 4294967294", 8, UINT32_MAX - 1, "");
	named("host 192.0.2.7", -1, UINT32_MAX, "192.0.2.7:4791");
	named("host 192.0.2.7", -1, UINT32_MAX, "192.0.2.7:1");
	named("host 192.0.2.7", -1, UINT32_MAX, "192.0.2.7");
	named("host [2001:db8::7]", -1, UINT32_MAX, "[2001:db8::7]:4791");
	named("host [2001:db8::7]", -1, UINT32_MAX, "[2001:db8::7]");
	named("host 2001:db8::7", -1, UINT32_MAX, "2001:db8::7");
	named("host ", -1, UINT32_MAX, "");
	memset(full, 'h', sizeof(full) - 1); /* an address without a NUL byte */
	snprintf(expected, sizeof(expected), "host %s", full);
	named(expected, -1, UINT32_MAX, full);
}

static void a_peer_without_a_weight_has_one(void)
{
	static const struct gn_weight weights[] = {{"uid 1000", 4}, {"host 192.0.2.7", 2}};
	const struct gn_endpoint listen = {.weights = weights, .n_weights = 2};

	TEST_ASSERT_EQUAL_UINT32(4, gn_peer_weight(&listen, "uid 1000"));
	TEST_ASSERT_EQUAL_UINT32(2, gn_peer_weight(&listen, "host 192.0.2.7"));
	TEST_ASSERT_EQUAL_UINT32(1, gn_peer_weight(&listen, "uid 100"));
	TEST_ASSERT_EQUAL_UINT32(1, gn_peer_weight(&listen, "host 192.0.2.70"));
}

static void sessions_are_reserved_for_other_peers(void)
{
	static const struct {
		uint32_t max_sessions, max_peer_sessions;
		bool alone;
		uint64_t sessions;
	} table[] = {{16, 0, true, 16}, {16, 0, false, 12}, {1, 0, false, 1},
		     {2, 0, false, 1},  {3, 0, false, 2},   {4096, 0, false, 3072},
		     {16, 5, false, 5}, {16, 5, true, 5},   {16, 16, false, 16}};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const struct gn_endpoint listen = {.max_sessions = table[i].max_sessions,
						   .max_peer_sessions = table[i].max_peer_sessions};
		struct gn_amounts amounts;

		gn_peer_limits(&listen, table[i].alone, &amounts);
		TEST_ASSERT_EQUAL_UINT64(table[i].sessions, amounts.of[GN_QUOTA_SESSIONS]);
	}
}

static void memory_has_limits_of_its_own(void)
{
	struct gn_endpoint listen = {.max_sessions = 16,
				     .max_region_bytes = 1 << 20,
				     .max_half_open = 64,
				     .max_peer_queue_memory = 77};
	struct gn_amounts amounts;

	gn_peer_limits(&listen, false, &amounts);
	TEST_ASSERT_EQUAL_UINT64(4 << 20, amounts.of[GN_QUOTA_REGION_BYTES]);
	TEST_ASSERT_EQUAL_UINT64(64, amounts.of[GN_QUOTA_HALF_OPEN]);
	TEST_ASSERT_EQUAL_UINT64(77, amounts.of[GN_QUOTA_QUEUE_MEMORY]);
	gn_peer_limits(&listen, true, &amounts);
	TEST_ASSERT_EQUAL_UINT64(16 << 20, amounts.of[GN_QUOTA_REGION_BYTES]);
	listen.max_peer_region_bytes = 4096;
	gn_peer_limits(&listen, true, &amounts);
	TEST_ASSERT_EQUAL_UINT64(4096, amounts.of[GN_QUOTA_REGION_BYTES]);
	/* the largest values of both options: their product does not overflow */
	listen = (struct gn_endpoint){.max_sessions = 4096, .max_region_bytes = 1ull << 46};
	gn_peer_limits(&listen, true, &amounts);
	TEST_ASSERT_EQUAL_UINT64(1ull << 58, amounts.of[GN_QUOTA_REGION_BYTES]);
}

static void entries_live_as_long_as_references(void)
{
	struct gn_peer *a = gn_peers_get(&peers, "uid 1", &limit),
		       *b = gn_peers_get(&peers, "uid 2", &limit);

	TEST_ASSERT_NOT_EQUAL(a, b);
	TEST_ASSERT_EQUAL_PTR(a, gn_peers_get(&peers, "uid 1", &limit));
	gn_peers_put(a);
	TEST_ASSERT_EQUAL_PTR(a, gn_peers_get(&peers, "uid 1", &limit));
	gn_peers_put(b);
	gn_peers_put(a);
	gn_peers_put(a);
	gn_peers_put(NULL);
}

static void each_quota_of_each_peer_has_its_limit(void)
{
	struct gn_peer *a = gn_peers_get(&peers, "uid 1", &limit),
		       *b = gn_peers_get(&peers, "uid 2", &limit);

	for (int i = 0; i < GN_QUOTAS; i++) {
		enum gn_quota q = (enum gn_quota)i;
		uint64_t most = limit.of[i];

		TEST_ASSERT_EQUAL_INT(-EACCES, gn_peers_take(&peers, a, q, most + 1));
		TEST_ASSERT_EQUAL_INT(-EACCES, gn_peers_take(&peers, a, q, UINT64_MAX));
		TEST_ASSERT_EQUAL_INT(0, gn_peers_take(&peers, a, q, 1));
		TEST_ASSERT_EQUAL_INT(0, gn_peers_take(&peers, a, q, most - 1));
		TEST_ASSERT_EQUAL_INT(-EBUSY, gn_peers_take(&peers, a, q, 1));
		TEST_ASSERT_EQUAL_INT(-EBUSY, gn_peers_take(&peers, a, q, most));
		TEST_ASSERT_EQUAL_INT(0, gn_peers_take(&peers, a, q, 0));
		/* another peer is not affected */
		TEST_ASSERT_EQUAL_INT(0, gn_peers_take(&peers, b, q, most));
		TEST_ASSERT_EQUAL_UINT64(2 * most, peers.used.of[i]);
		gn_peers_give(&peers, a, q, 1);
		TEST_ASSERT_EQUAL_INT(-EBUSY, gn_peers_take(&peers, a, q, 2));
		TEST_ASSERT_EQUAL_INT(0, gn_peers_take(&peers, a, q, 1));
		gn_peers_give(&peers, a, q, most);
		gn_peers_give(&peers, b, q, most);
	}
	gn_peers_put(a);
	gn_peers_put(b);
}

static void largest_is_only_a_peer_with_more_than_the_asking_peer(void)
{
	struct gn_peer *p[3];

	for (int i = 0; i < 3; i++) {
		static const char *const names[] = {"uid 1", "uid 2", "uid 3"};

		p[i] = gn_peers_get(&peers, names[i], &limit);
	}
	TEST_ASSERT_NULL(gn_peers_largest(&peers, p[0], GN_QUOTA_SESSIONS));
	gn_peers_take(&peers, p[1], GN_QUOTA_SESSIONS, 2);
	gn_peers_take(&peers, p[2], GN_QUOTA_SESSIONS, 3);
	TEST_ASSERT_EQUAL_PTR(p[2], gn_peers_largest(&peers, p[0], GN_QUOTA_SESSIONS));
	TEST_ASSERT_EQUAL_PTR(p[2], gn_peers_largest(&peers, p[1], GN_QUOTA_SESSIONS));
	TEST_ASSERT_NULL(gn_peers_largest(&peers, p[2], GN_QUOTA_SESSIONS));
	TEST_ASSERT_NULL(gn_peers_largest(&peers, p[0], GN_QUOTA_HALF_OPEN));
	/* no peer has more than p[0]: none loses a session */
	gn_peers_take(&peers, p[0], GN_QUOTA_SESSIONS, 3);
	TEST_ASSERT_NULL(gn_peers_largest(&peers, p[0], GN_QUOTA_SESSIONS));
	gn_peers_give(&peers, p[0], GN_QUOTA_SESSIONS, 3);
	gn_peers_give(&peers, p[1], GN_QUOTA_SESSIONS, 2);
	gn_peers_give(&peers, p[2], GN_QUOTA_SESSIONS, 3);
	for (int i = 0; i < 3; i++)
		gn_peers_put(p[i]);
}

static void each_quota_names_its_option(void)
{
	TEST_ASSERT_EQUAL_STRING("listen.max_half_open", gn_quota_option(GN_QUOTA_HALF_OPEN));
	TEST_ASSERT_EQUAL_STRING("listen.max_peer_sessions", gn_quota_option(GN_QUOTA_SESSIONS));
	TEST_ASSERT_EQUAL_STRING("listen.max_peer_region_bytes",
				 gn_quota_option(GN_QUOTA_REGION_BYTES));
	TEST_ASSERT_EQUAL_STRING("listen.max_peer_queue_memory",
				 gn_quota_option(GN_QUOTA_QUEUE_MEMORY));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(peer_is_a_user_or_else_a_host);
	RUN_TEST(a_peer_without_a_weight_has_one);
	RUN_TEST(sessions_are_reserved_for_other_peers);
	RUN_TEST(memory_has_limits_of_its_own);
	RUN_TEST(entries_live_as_long_as_references);
	RUN_TEST(each_quota_of_each_peer_has_its_limit);
	RUN_TEST(largest_is_only_a_peer_with_more_than_the_asking_peer);
	RUN_TEST(each_quota_names_its_option);
	return UNITY_END();
}
