/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory regions: access is limited to the requested range and rights, and ends with
 * deregistration; memory is not pinned if RLIMIT_MEMLOCK forbids it.
 */
#include <sys/resource.h>

#include "rig.h"

#define ODP \
	(IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ)

static rlim_t memlock; /* RLIMIT_MEMLOCK as getrlimit() reports it */

/* Replaces getrlimit() of libc, to simulate a limit without changing the real one. */
int getrlimit(__rlimit_resource_t resource, struct rlimit *limit)
{
	int rc = prlimit(0, resource, NULL, limit);

	if (resource == RLIMIT_MEMLOCK)
		limit->rlim_cur = memlock;
	return rc;
}

void setUp(void)
{
	rig_init();
	memlock = 64 << 10;
}

void tearDown(void)
{
	rig_down();
	rig_clean();
}

static void test_flags(void)
{
	static const struct {
		uint32_t rights;
		int local;
		unsigned access;
	} rows[] = {
		{0, 0, 0},
		{0, 1, IBV_ACCESS_LOCAL_WRITE},
		{GANTRY_REMOTE_READ, 0, IBV_ACCESS_REMOTE_READ},
		{GANTRY_REMOTE_READ, 1, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_LOCAL_WRITE},
		{GANTRY_REMOTE_WRITE, 0, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE},
		{GANTRY_REMOTE_WRITE, 1, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE},
		{GANTRY_REMOTE_READ | GANTRY_REMOTE_WRITE, 0,
		 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE},
		{~(uint32_t)GANTRY_REMOTE_WRITE, 0, IBV_ACCESS_REMOTE_READ},
	};

	TEST_ASSERT_EQUAL_INT(0, rig_listen());
	TEST_ASSERT_EQUAL_INT(0, vb_pd_create(rig.a.id->verbs, &rig.a.pd));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		TEST_ASSERT_EQUAL_INT(0, vb_mr_create(rig.a.pd, rig.a.buf + 3, 100, rows[i].rights,
						      rows[i].local, &rig.a.mr));
		TEST_ASSERT_EQUAL_HEX32(rows[i].access, fake_mr_access(rig.a.mr));
		TEST_ASSERT_EQUAL_PTR(rig.a.buf + 3, rig.a.mr->addr);
		TEST_ASSERT_EQUAL_UINT64(100, rig.a.mr->length);
		TEST_ASSERT_EQUAL_INT(0, vb_mr_destroy(&rig.a.mr));
	}
}

static void test_rights_of_a_peer(void)
{
	rig.rights = GANTRY_REMOTE_READ;
	TEST_ASSERT_EQUAL_INT(0, rig_up());
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, rig_do(IBV_WR_RDMA_READ, 0, RIG_BYTES));
	TEST_ASSERT_EQUAL_INT(IBV_WC_REM_ACCESS_ERR, rig_do(IBV_WR_RDMA_WRITE, 0, 1));
	rig_down();
	rig.rights = GANTRY_REMOTE_WRITE;
	TEST_ASSERT_EQUAL_INT(0, rig_up());
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, rig_do(IBV_WR_RDMA_WRITE, 0, RIG_BYTES));
	TEST_ASSERT_EQUAL_INT(IBV_WC_REM_ACCESS_ERR, rig_do(IBV_WR_RDMA_READ, 0, 1));
}

static void test_range(void)
{
	static const struct {
		int64_t at;
		uint32_t length;
	} rows[] = {{-1, 1},       {-1, 2}, {RIG_BYTES, 1}, {RIG_BYTES - 1, 2}, {0, RIG_BYTES + 1},
		    {1, RIG_BYTES}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		TEST_ASSERT_EQUAL_INT(0, rig_up());
		TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, rig_do(IBV_WR_RDMA_WRITE, RIG_BYTES - 1, 1));
		/* end a first checks its own memory, which has RIG_BYTES */
		if (rows[i].length <= RIG_BYTES)
			TEST_ASSERT_EQUAL_INT(
				IBV_WC_REM_ACCESS_ERR,
				rig_do(IBV_WR_RDMA_WRITE, rows[i].at, rows[i].length));
		else
			TEST_ASSERT_EQUAL_INT(
				IBV_WC_LOC_PROT_ERR,
				rig_do(IBV_WR_RDMA_WRITE, rows[i].at, rows[i].length));
		rig_down();
	}
}

static void test_access_after_destroy_fails(void)
{
	struct ibv_mr stale;

	TEST_ASSERT_EQUAL_INT(0, rig_up());
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, rig_do(IBV_WR_RDMA_WRITE, 0, 8));
	stale = *rig.b.mr;
	TEST_ASSERT_EQUAL_INT(0, vb_mr_destroy(&rig.b.mr));
	TEST_ASSERT_NULL(rig.b.mr);
	rig.b.mr = &stale;
	TEST_ASSERT_EQUAL_INT(IBV_WC_REM_ACCESS_ERR, rig_do(IBV_WR_RDMA_WRITE, 0, 8));
	rig.b.mr = NULL;
	TEST_ASSERT_EQUAL_INT(0, vb_mr_destroy(&rig.b.mr));
}

static void test_still_registered(void)
{
	TEST_ASSERT_EQUAL_INT(0, rig_up());
	fake_verbs_fail("ibv_dereg_mr", 1, EBUSY);
	TEST_ASSERT_EQUAL_INT(-EBUSY, vb_mr_destroy(&rig.b.mr));
	TEST_ASSERT_NOT_NULL(rig.b.mr);
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, rig_do(IBV_WR_RDMA_WRITE, 0, 8));
}

static int create(void)
{
	TEST_ASSERT_EQUAL_INT(0, rig_listen());
	TEST_ASSERT_EQUAL_INT(0, vb_pd_create(rig.a.id->verbs, &rig.a.pd));
	return vb_mr_create(rig.a.pd, rig.a.buf, RIG_BYTES, GANTRY_REMOTE_READ, 0, &rig.a.mr);
}

static void allow_odp(void)
{
	fake_device(0)->odp_caps.general_caps = IBV_ODP_SUPPORT;
	fake_device(0)->odp_caps.per_transport_caps.rc_odp_caps = ODP;
}

static void test_pinned(void)
{
	allow_odp();
	TEST_ASSERT_EQUAL_INT(0, create());
	TEST_ASSERT_EQUAL_HEX32(IBV_ACCESS_REMOTE_READ, fake_mr_access(rig.a.mr));
}

static void test_may_not_be_pinned(void)
{
	allow_odp();
	fake_verbs_fail("ibv_reg_mr", 1, ENOMEM);
	TEST_ASSERT_EQUAL_INT(0, create());
	TEST_ASSERT_EQUAL_HEX32(IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ON_DEMAND,
				fake_mr_access(rig.a.mr));
}

static void test_neither_pinned_nor_paged(void)
{
	allow_odp();
	fake_verbs_fail("ibv_reg_mr", FAKE_ALWAYS, ENOMEM);
	TEST_ASSERT_EQUAL_INT(-ENOMEM, create());
	TEST_ASSERT_NULL(rig.a.mr);
	TEST_ASSERT_EQUAL_UINT(2, fake_verbs_calls("ibv_reg_mr"));
}

static void expect_no_attempt(int error)
{
	fake_verbs_fail("ibv_reg_mr", 1, error);
	TEST_ASSERT_EQUAL_INT(-error, create());
	TEST_ASSERT_NULL(rig.a.mr);
	TEST_ASSERT_EQUAL_UINT(1, fake_verbs_calls("ibv_reg_mr"));
}

static void test_memory_is_just_short(void)
{
	memlock = RLIM_INFINITY;
	allow_odp();
	expect_no_attempt(ENOMEM);
}

static void test_another_error(void)
{
	allow_odp();
	expect_no_attempt(EFAULT);
}

static void test_device_pins(void)
{
	expect_no_attempt(ENOMEM);
}

/*
 * The registration fails, and then a query of the device fails, too. The returned error is that of
 * the registration.
 */
static void test_device_is_silent(void)
{
	allow_odp();
	fake_verbs_fail("ibv_query_device", 1, EIO);
	expect_no_attempt(ENOMEM);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_flags);
	RUN_TEST(test_rights_of_a_peer);
	RUN_TEST(test_range);
	RUN_TEST(test_access_after_destroy_fails);
	RUN_TEST(test_still_registered);
	RUN_TEST(test_pinned);
	RUN_TEST(test_may_not_be_pinned);
	RUN_TEST(test_neither_pinned_nor_paged);
	RUN_TEST(test_memory_is_just_short);
	RUN_TEST(test_another_error);
	RUN_TEST(test_device_pins);
	RUN_TEST(test_device_is_silent);
	return UNITY_END();
}
