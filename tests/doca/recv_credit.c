/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory with the lengths of posted buffers: it is exported once for a connection, also if the
 * token cannot be sent to the peer.
 */
#include <errno.h>
#include <string.h>

#include "comch/comch_fast.h"
#include "unity.h"

static struct doca_comch_connection conn;
static const struct gantry_region *exported;
static uint64_t told; /* generation in the last token */
static uint32_t n_told;
static int export_rc, tell_rc;

/* Like a transport, reject a second export of a handle, and require the region to stay. */
static int export_region(void *link, const struct gantry_region *region, uint32_t rights,
			 uint32_t handle, struct gantry_token *token_p)
{
	(void)link;
	(void)rights;
	if (export_rc)
		return export_rc;
	if (exported)
		return -EEXIST;
	exported = region;
	*token_p = (struct gantry_token){.handle = handle, .generation = 77};
	return 0;
}

static int send_ctrl(void *link, const void *bytes, size_t len)
{
	struct gantry_token token;

	(void)link;
	if (tell_rc)
		return tell_rc;
	TEST_ASSERT_EQUAL_UINT(sizeof(struct gd_comch_head) + sizeof(token), len);
	memcpy(&token, (const char *)bytes + sizeof(struct gd_comch_head), sizeof(token));
	told = token.generation;
	n_told++;
	return 0;
}

static const struct gantry_transport_ops ops = {.export_region = export_region,
						.send_ctrl = send_ctrl};

/* The linker replaces gd_transport_ops() by this function. */
const struct gantry_transport_ops *__wrap_gd_transport_ops(const struct gd_transport *transport);
const struct gantry_transport_ops *__wrap_gd_transport_ops(const struct gd_transport *transport)
{
	(void)transport;
	return &ops;
}

void setUp(void)
{
	conn.link = &conn; /* the connection has a link */
	exported = NULL;
	export_rc = tell_rc = 0;
	n_told = 0;
	told = 0;
}

void tearDown(void)
{
	gd_recv_credits_free(&conn);
}

static void each_consumer_has_a_row(void)
{
	uint32_t row = 99;

	for (uint32_t i = 0; i < 3; i++) {
		TEST_ASSERT_EQUAL_INT(0, gd_recv_credit_open(&conn, &row));
		TEST_ASSERT_EQUAL_UINT(i, row);
		*gd_recv_credit_row(&conn, row) = i + 1;
	}
	gd_recv_credit_close(&conn, 1);
	TEST_ASSERT_EQUAL_INT(0, gd_recv_credit_open(&conn, &row));
	TEST_ASSERT_EQUAL_UINT(1, row);
	/* the credits of the closed consumer are cleared */
	TEST_ASSERT_EQUAL_UINT64(0, *gd_recv_credit_row(&conn, row));
	TEST_ASSERT_EQUAL_UINT(1, n_told);
	TEST_ASSERT_EQUAL_UINT64(77, told);
}

static void open_fails_if_the_peer_cannot_be_notified(void)
{
	uint32_t row = 99;

	tell_rc = -ENOTCONN;
	for (int i = 0; i < 2; i++) { /* both consumers fail in the same way */
		TEST_ASSERT_EQUAL_INT(-ENOTCONN, gd_recv_credit_open(&conn, &row));
		TEST_ASSERT_EQUAL_UINT(99, row);
		TEST_ASSERT_NOT_NULL(conn.recv_credits);
		/* the region stays until the link is closed */
		TEST_ASSERT_EQUAL_PTR(exported->addr, gd_recv_credit_row(&conn, 0));
	}
	tell_rc = 0;
	TEST_ASSERT_EQUAL_INT(0, gd_recv_credit_open(&conn, &row));
	TEST_ASSERT_EQUAL_INT(0, gd_recv_credit_open(&conn, &row));
	TEST_ASSERT_EQUAL_UINT(1, n_told);
	TEST_ASSERT_EQUAL_UINT64(77, told);
}

static void credits_that_cannot_be_exported_are_freed(void)
{
	uint32_t row = 99;

	export_rc = -ENOTCONN;
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, gd_recv_credit_open(&conn, &row));
	TEST_ASSERT_NULL(conn.recv_credits);
	export_rc = 0;
	TEST_ASSERT_EQUAL_INT(0, gd_recv_credit_open(&conn, &row));
	TEST_ASSERT_EQUAL_UINT(0, row);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(each_consumer_has_a_row);
	RUN_TEST(open_fails_if_the_peer_cannot_be_notified);
	RUN_TEST(credits_that_cannot_be_exported_are_freed);
	return UNITY_END();
}
