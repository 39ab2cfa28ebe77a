/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rxe_link.c - the search for soft-RoCE devices in a directory tree like sysfs, and the netlink
 * request that creates one.
 */
#include <errno.h>
#include <linux/netlink.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rdma/rdma_netlink.h>

#include "fake/shortage.h"
#include "rxe.h"
#include "unity.h"

static char root[] = "/tmp/gantry-rxe-XXXXXX";
static char name[RXE_NAME];

void setUp(void)
{
	strcpy(root + strlen(root) - 6, "XXXXXX");
	TEST_ASSERT_NOT_NULL(mkdtemp(root));
	strcpy(name, "?");
}

static void in_root(const char *device, const char *netdev, int add)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", root, device);
	if (add)
		TEST_ASSERT_EQUAL_INT(0, mkdir(path, 0700));
	snprintf(path, sizeof(path), "%s/%s/parent", root, device);
	if (add && netdev) {
		file = fopen(path, "w");
		TEST_ASSERT_NOT_NULL(file);
		fprintf(file, "%s\n", netdev);
		fclose(file);
	}
	if (!add) {
		unlink(path);
		*strrchr(path, '/') = 0;
		rmdir(path);
	}
}

void tearDown(void)
{
	static const char *const all[] = {"mlx5_0", "rxe0", "rxe1"};

	for (int i = 0; i < 3; i++)
		in_root(all[i], NULL, 0);
	TEST_ASSERT_EQUAL_INT(0, rmdir(root));
}

/* Without memory the search cannot tell whether a device exists, so none must be created. */
static void search_without_memory_fails(void)
{
	struct shortage shortage = {.at = 1, .foreign = 1};
	int rc;

	if (!shortage_can())
		TEST_IGNORE_MESSAGE("allocations cannot fail in this build");
	in_root("rxe0", "eth0", 1);
	shortage_use(&shortage);
	rc = rxe_find(root, "", name);
	shortage_use(NULL);
	TEST_ASSERT_EQUAL_UINT(1, shortage.failed);
	TEST_ASSERT_EQUAL_INT(-ENOMEM, rc);
	TEST_ASSERT_EQUAL_INT(0, rxe_find(root, "", name));
}

static void no_link_is_found(void)
{
	TEST_ASSERT_EQUAL_INT(-ENODEV, rxe_find("/nowhere/infiniband", "", name));
	TEST_ASSERT_EQUAL_INT(-ENODEV, rxe_find(root, "", name));
	in_root("mlx5_0", NULL, 1); /* a card: it has no attribute `parent` */
	TEST_ASSERT_EQUAL_INT(-ENODEV, rxe_find(root, "", name));
	TEST_ASSERT_EQUAL_INT(0, rxe_is_one(root, "mlx5_0"));
}

static void only_link_is_found_without_a_name(void)
{
	in_root("mlx5_0", NULL, 1);
	in_root("rxe0", "eth0", 1);
	TEST_ASSERT_EQUAL_INT(0, rxe_find(root, "", name));
	TEST_ASSERT_EQUAL_STRING("rxe0", name);
	TEST_ASSERT_EQUAL_INT(1, rxe_is_one(root, "rxe0"));
	TEST_ASSERT_EQUAL_INT(0, rxe_find(root, "eth0", name));
	TEST_ASSERT_EQUAL_INT(-ENODEV, rxe_find(root, "eth", name));
	TEST_ASSERT_EQUAL_INT(-ENODEV, rxe_find(root, "eth01", name));
}

static void one_of_several_links_needs_a_name(void)
{
	in_root("rxe0", "eth0", 1);
	in_root("rxe1", "eth1", 1);
	TEST_ASSERT_EQUAL_INT(-ENOTUNIQ, rxe_find(root, "", name));
	TEST_ASSERT_EQUAL_INT(0, rxe_find(root, "eth1", name));
	TEST_ASSERT_EQUAL_STRING("rxe1", name);
}

static void request_for_a_link(void)
{
	uint32_t buf[64];
	const struct nlmsghdr *head = (void *)buf;
	const char *end, *p;
	const struct {
		uint16_t type;
		const char *text;
	} want[] = {{RDMA_NLDEV_ATTR_DEV_NAME, "rxe_eth0"},
		    {RDMA_NLDEV_ATTR_LINK_TYPE, "rxe"},
		    {RDMA_NLDEV_ATTR_NDEV_NAME, "eth0"}};
	int n = rxe_request(buf, sizeof(buf), "rxe_eth0", "eth0");

	TEST_ASSERT_EQUAL_INT(n, (int)head->nlmsg_len);
	TEST_ASSERT_EQUAL_UINT16(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_NEWLINK),
				 head->nlmsg_type);
	TEST_ASSERT_EQUAL_UINT16(NLM_F_REQUEST | NLM_F_ACK, head->nlmsg_flags);
	p = (const char *)buf + NLMSG_HDRLEN;
	end = (const char *)buf + n;
	for (int i = 0; i < 3; i++) {
		const struct nlattr *attr = (const void *)p;

		TEST_ASSERT_TRUE(p + NLA_HDRLEN < end);
		TEST_ASSERT_EQUAL_UINT16(want[i].type, attr->nla_type);
		TEST_ASSERT_EQUAL_UINT16(NLA_HDRLEN + strlen(want[i].text) + 1, attr->nla_len);
		TEST_ASSERT_EQUAL_STRING(want[i].text, p + NLA_HDRLEN);
		p += NLA_ALIGN(attr->nla_len);
	}
	TEST_ASSERT_TRUE(p >= end);
	TEST_ASSERT_EQUAL_INT(-EMSGSIZE, rxe_request(buf, 40, "rxe_eth0", "eth0"));
}

static void name_of_a_link_that_can_be_created(void)
{
	TEST_ASSERT_EQUAL_INT(-ENODEV, rxe_may_create(root, "none9", name));
	TEST_ASSERT_EQUAL_STRING("rxe_none9", name);
	in_root("rxe_lo", NULL, 1);
	TEST_ASSERT_EQUAL_INT(-EEXIST, rxe_may_create(root, "lo", name));
	in_root("rxe_lo", NULL, 0);
	/* rxe_may_create() changes nothing: a second call has the same result */
	TEST_ASSERT_EQUAL_INT(rxe_may_create(root, "lo", name), rxe_may_create(root, "lo", name));
	TEST_ASSERT_EQUAL_STRING("rxe_lo", name);
}

static void advice(void)
{
	TEST_ASSERT_NOT_NULL(strstr(rxe_advice(-EPERM), "CAP_NET_ADMIN"));
	TEST_ASSERT_NOT_NULL(strstr(rxe_advice(-EINVAL), "modprobe rdma_rxe"));
	TEST_ASSERT_NOT_NULL(strstr(rxe_advice(-EPROTONOSUPPORT), "modprobe rdma_rxe"));
	TEST_ASSERT_NOT_NULL(strstr(rxe_advice(-ENODEV), "ip link"));
	TEST_ASSERT_EQUAL_STRING(strerror(EIO), rxe_advice(-EIO));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(no_link_is_found);
	RUN_TEST(search_without_memory_fails);
	RUN_TEST(only_link_is_found_without_a_name);
	RUN_TEST(one_of_several_links_needs_a_name);
	RUN_TEST(request_for_a_link);
	RUN_TEST(name_of_a_link_that_can_be_created);
	RUN_TEST(advice);
	return UNITY_END();
}
