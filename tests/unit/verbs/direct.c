/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * direct.c - a peer announces the address of the owner of a region. The other end connects to that
 * address only if its option direct_networks lists the network; otherwise it logs the reason. Here
 * `a` is that peer, and forges its announcements.
 */
#include <arpa/inet.h>
#include <stdio.h>

#include "unit/verbs/ends.h"

#define NOBODY "10.99.0.1" /* address of a fake device, without a listener */
#define PORT 4711

static uint32_t generation;

void setUp(void)
{
	fake_verbs_reset();
	generation = 0;
}

void tearDown(void)
{
	TEST_ASSERT_EQUAL_STRING("", fake_verbs_check_clean());
}

/* Returns the announcement that a gateway sends for a region of a third party at this address. */
static struct vb_ctrl_region region_at(const char *address)
{
	const uint32_t next = ++generation;
	struct vb_ctrl_region r = {.addr = 4096,
				   .length = 4096,
				   .key = 1,
				   .handle = next,
				   .generation = next,
				   .rights = VB_RIGHTS,
				   .session = 7,
				   .secret = 8,
				   .direct = 1,
				   .port = PORT,
				   .family = AF_INET};

	if (inet_pton(AF_INET, address, r.address) != 1) {
		r.family = AF_INET6;
		TEST_ASSERT_EQUAL_INT_MESSAGE(1, inet_pton(AF_INET6, address, r.address), address);
	}
	return r;
}

static void announce(const struct vb_ctrl_region *r)
{
	TEST_ASSERT_EQUAL_INT(0, vb_control_send(a.conn, VB_CTRL_REGION, r, sizeof(*r)));
	ends_settle();
}

static int import(const struct vb_ctrl_region *r, struct gantry_region **region_p)
{
	const struct gantry_token token = {.handle = r->handle, .generation = r->generation};

	return vb_import_region(b.conn, &token, 0, region_p);
}

static unsigned direct_pipes(void)
{
	unsigned n = 0;

	for (const struct vb_pipe *p = b.conn->pipes; p; p = p->all)
		n += p->kind == VB_DIRECT;
	return n;
}

static void refused(const char *networks, const char *address, const char *shown)
{
	struct gantry_region *region = NULL;
	struct vb_ctrl_region r;
	struct vb_rma *early, *late;
	char setting[64], expected[160];

	fake_verbs_reset();
	generation = 0;
	snprintf(setting, sizeof(setting), "direct_networks=%s", networks);
	snprintf(expected, sizeof(expected), "%s is not in b.direct_networks", shown);
	ends_open(NULL, NULL, setting);
	early = rma_open(&b, 0, 4);
	r = region_at(address);
	announce(&r);
	TEST_ASSERT_EQUAL_STRING("", vb_import_error(b.conn));
	TEST_ASSERT_EQUAL_INT_MESSAGE(-EACCES, import(&r, &region), shown);
	TEST_ASSERT_EQUAL_STRING(expected, vb_import_error(b.conn));
	late = rma_open(&b, 1, 4);
	ends_settle();
	TEST_ASSERT_EQUAL_UINT_MESSAGE(0, direct_pipes(), shown);
	TEST_ASSERT_EQUAL_INT(VB_C_UP, b.conn->state);
	r = region_at(address); /* not announced: the import fails with another error */
	TEST_ASSERT_EQUAL_INT(-ENOENT, import(&r, &region));
	TEST_ASSERT_EQUAL_STRING("", vb_import_error(b.conn));
	vb_rma_destroy(early);
	vb_rma_destroy(late);
	ends_close();
	TEST_ASSERT_EQUAL_STRING("", fake_verbs_check_clean());
}

static void an_address_outside_the_networks_is_refused(void)
{
	refused("", NOBODY, NOBODY ":4711");
	refused("10.99.1.0/24", NOBODY, NOBODY ":4711");
	refused("::/0", NOBODY, NOBODY ":4711");
	refused("::/0", "::ffff:" NOBODY, "[::ffff:" NOBODY "]:4711");
	refused("0.0.0.0/0", "2001:db8::1", "[2001:db8::1]:4711");
}

static void connects(const char *networks, const char *address)
{
	struct gantry_region *region = NULL;
	struct vb_ctrl_region r;
	struct vb_rma *rma;
	char setting[64];

	fake_verbs_reset();
	generation = 0;
	snprintf(setting, sizeof(setting), "direct_networks=%s", networks);
	ends_open(NULL, NULL, setting);
	rma = rma_open(&b, 0, 4);
	r = region_at(address);
	announce(&r);
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, import(&r, &region), vb_import_error(b.conn));
	TEST_ASSERT_EQUAL_UINT(1, direct_pipes());
	vb_release(b.conn, region);
	vb_rma_destroy(rma);
	ends_close();
}

static void an_address_of_the_networks_is_connected(void)
{
	connects("10.99.0.0/24", NOBODY);
	connects("10.99.0.0/31", NOBODY);
	connects("0.0.0.0/0", NOBODY);
	connects("2001:db8::/32," NOBODY, NOBODY);
}

/* A forger can mix rejected and accepted addresses, and give one owner two addresses. */
static void address_of_a_rejected_region_is_never_connected(void)
{
	struct gantry_region *region = NULL;
	const struct gantry_queue_attr attr = {.depth = 4};
	struct vb_ctrl_region good, bad, own;
	void *rma = NULL;

	ends_open(NULL, NULL, "direct_networks=10.99.0.1");
	bad = region_at("10.99.0.2");
	announce(&bad);
	good = region_at("10.99.0.1");
	announce(&good);
	bad = region_at("10.99.0.2");
	announce(&bad);
	/* `direct` 0: this end must not connect to the address, and can only announce it further */
	own = region_at("10.99.0.2");
	own.direct = 0;
	announce(&own);
	/* the address has no listener: the pipe fails in a later turn */
	TEST_ASSERT_EQUAL_INT(0, vb_rma_create(b.conn, &attr, &rma));
	TEST_ASSERT_EQUAL_UINT(1, direct_pipes());
	for (const struct vb_pipe *p = b.conn->pipes; p; p = p->all)
		if (p->kind == VB_DIRECT)
			TEST_ASSERT_EQUAL_HEX32(
				inet_addr("10.99.0.1"),
				((const struct sockaddr_in *)&p->to)->sin_addr.s_addr);
	TEST_ASSERT_EQUAL_INT(-EACCES, import(&bad, &region));
	TEST_ASSERT_EQUAL_INT(0, import(&own, &region));
	vb_release(b.conn, region);
	vb_rma_destroy(rma);
	ends_close();
}

/* Data of a message is not fetched from a rejected region, or from a region of a third party. */
static void a_refused_region_is_not_fetched_from(void)
{
	struct vb_ctrl_region r;
	struct vb_msg_region ref;
	struct vb_import *im = NULL;

	ends_open(NULL, NULL, NULL);
	r = region_at(NOBODY);
	announce(&r);
	ref = (struct vb_msg_region){.handle = r.handle, .generation = r.generation, .length = 64};
	TEST_ASSERT_EQUAL_INT(-EPROTO, vb_fetch_begin(b.conn, &ref, &im));
	ends_close();
}

static void malformed_addresses_are_rejected(void)
{
	for (int i = 0; i < 6; i++) {
		struct vb_ctrl_region r;

		fake_verbs_reset();
		generation = 0;
		ends_open(NULL, NULL, "direct_networks=0.0.0.0/0,::/0");
		r = region_at(NOBODY);
		switch (i) {
		case 0:
			r.family = 0;
			break;
		case 1:
			r.family = AF_UNIX;
			break;
		case 2:
			r.family = UINT16_MAX;
			break;
		case 3:
			r.port = 0;
			break;
		case 4:
			r.session = 0;
			break;
		case 5:
			r.secret = 0;
			break;
		}
		announce(&r);
		ends_until(b.n_closed);
		TEST_ASSERT_EQUAL_INT(-EPROTO, b.reason);
		ends_close();
		TEST_ASSERT_EQUAL_STRING("", fake_verbs_check_clean());
	}
}

/* A reply to direct access does not have the secret with which a third party can open queues. */
static void the_answer_to_direct_access_has_no_secret(void)
{
	static const struct gantry_host host;
	struct vb_transport t = {.host = &host};
	struct vb_conn conn = {.t = &t, .session = 7, .secret = 8, .direct_secret = 9};
	struct vb_pipe pipe = {.conn = &conn, .kind = VB_DIRECT, .end = VB_LISTENS};
	struct vb_hello hello;

	vb_pipe_hello(&pipe, &hello);
	TEST_ASSERT_EQUAL_UINT64(7, hello.session);
	TEST_ASSERT_EQUAL_UINT64(0, hello.secret);
	pipe.kind = VB_CONTROL;
	vb_pipe_hello(&pipe, &hello);
	TEST_ASSERT_EQUAL_UINT64(8, hello.secret);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(the_answer_to_direct_access_has_no_secret);
	RUN_TEST(an_address_outside_the_networks_is_refused);
	RUN_TEST(an_address_of_the_networks_is_connected);
	RUN_TEST(address_of_a_rejected_region_is_never_connected);
	RUN_TEST(a_refused_region_is_not_fetched_from);
	RUN_TEST(malformed_addresses_are_rejected);
	return UNITY_END();
}
