/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection domains: a queue pair of one domain cannot access memory of another domain. */
#include "rig.h"

void setUp(void)
{
	rig_init();
}

void tearDown(void)
{
	rig_down();
	rig_clean();
}

static void test_create_and_destroy(void)
{
	TEST_ASSERT_EQUAL_INT(0, rig_listen());
	TEST_ASSERT_EQUAL_INT(0, vb_pd_create(rig.a.id->verbs, &rig.a.pd));
	TEST_ASSERT_NOT_NULL(rig.a.pd);
	vb_pd_destroy(&rig.a.pd);
	TEST_ASSERT_NULL(rig.a.pd);
	vb_pd_destroy(&rig.a.pd);
	TEST_ASSERT_EQUAL_UINT(1, fake_verbs_calls("ibv_dealloc_pd"));
}

static void test_error(void)
{
	TEST_ASSERT_EQUAL_INT(0, rig_listen());
	fake_verbs_fail("ibv_alloc_pd", 1, ENOSPC);
	TEST_ASSERT_EQUAL_INT(-ENOSPC, vb_pd_create(rig.a.id->verbs, &rig.a.pd));
	TEST_ASSERT_NULL(rig.a.pd);
}

static void test_key_of_another_protection_domain_fails(void)
{
	struct ibv_mr *own, *other_mr;
	struct ibv_pd *other;

	TEST_ASSERT_EQUAL_INT(0, rig_up());
	TEST_ASSERT_EQUAL_INT(0, vb_pd_create(rig.b.id->verbs, &other));
	TEST_ASSERT_EQUAL_INT(
		0, vb_mr_create(other, rig.b.buf, RIG_BYTES, GANTRY_REMOTE_READ, 0, &other_mr));
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, rig_do(IBV_WR_RDMA_READ, 0, 64));
	own = rig.b.mr;
	rig.b.mr = other_mr;
	TEST_ASSERT_EQUAL_INT(IBV_WC_REM_ACCESS_ERR, rig_do(IBV_WR_RDMA_READ, 0, 64));
	rig.b.mr = own;
	TEST_ASSERT_EQUAL_INT(0, vb_mr_destroy(&other_mr));
	vb_pd_destroy(&other);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_create_and_destroy);
	RUN_TEST(test_error);
	RUN_TEST(test_key_of_another_protection_domain_fails);
	return UNITY_END();
}
