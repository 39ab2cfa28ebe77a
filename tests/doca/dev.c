/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices and representors, with the calls by which programs search for them. */
#include <doca_clock.h>
#include <doca_comch.h>
#include <doca_comch_msgq.h>
#include <doca_compress.h>
#include <doca_dev.h>
#include <doca_dma.h>
#include <doca_dpa.h>
#include <doca_erasure_coding.h>
#include <doca_mmap.h>
#include <doca_mmap_advise.h>
#include <doca_rdma.h>
#include <doca_sha.h>
#include <doca_sync_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "unity.h"

static struct doca_devinfo **list;
static uint32_t n;

void setUp(void)
{
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_devinfo_create_list(&list, &n));
}

void tearDown(void)
{
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_devinfo_destroy_list(list));
}

static struct doca_devinfo *with_pci(const char *pci)
{
	uint8_t equal = 0;

	for (uint32_t i = 0; i < n; i++)
		if (doca_devinfo_is_equal_pci_addr(list[i], pci, &equal) == DOCA_SUCCESS && equal)
			return list[i];
	return NULL;
}

static void both_functions_are_there_without_a_configuration(void)
{
	char ibdev[DOCA_DEVINFO_IBDEV_NAME_SIZE], iface[DOCA_DEVINFO_IFACE_NAME_SIZE],
		pci[DOCA_DEVINFO_PCI_ADDR_SIZE];

	TEST_ASSERT_EQUAL_UINT32(2, n);
	TEST_ASSERT_EQUAL_PTR(list[0], with_pci("03:00.0"));
	TEST_ASSERT_EQUAL_PTR(list[1], with_pci("0000:b1:00.0"));
	TEST_ASSERT_EQUAL_PTR(list[1], with_pci("B1:00.0"));
	TEST_ASSERT_NULL(with_pci("0001:b1:00.0"));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_devinfo_get_pci_addr_str(list[0], pci));
	TEST_ASSERT_EQUAL_STRING("0000:03:00.0", pci);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS,
			      doca_devinfo_get_ibdev_name(list[0], ibdev, sizeof(ibdev)));
	TEST_ASSERT_EQUAL_STRING("mlx5_0", ibdev);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS,
			      doca_devinfo_get_iface_name(list[1], iface, sizeof(iface)));
	TEST_ASSERT_EQUAL_STRING("ens1f0np0", iface);
	/* storage programs read both names into 256 bytes */
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS,
			      doca_devinfo_get_ibdev_name(list[0], iface, sizeof(iface)));
}

static void invalid_address_is_rejected(void)
{
	static const char *const wrong[] = {
		"",        "b1", "b1:00", "b1:00.8", "b1:0g.0", "0000:b1:00.00", "0000-b1:00.0",
		"xb1:00.0"};
	uint8_t equal;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
				      doca_devinfo_is_equal_pci_addr(list[0], wrong[i], &equal));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_devinfo_is_equal_pci_addr(list[0], NULL, &equal));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_devinfo_is_equal_pci_addr(NULL, "b1:00.0", &equal));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_devinfo_is_equal_pci_addr(list[0], "b1:00.0", NULL));
}

/* doca_dev_open counts references and gives the same object */
static void opening_twice_gives_the_same_device(void)
{
	struct doca_dev *one, *two;

	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_dev_open(list[0], &one));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_dev_open(list[0], &two));
	TEST_ASSERT_EQUAL_PTR(one, two);
	TEST_ASSERT_EQUAL_PTR(list[0], doca_dev_as_devinfo(one));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_dev_close(one));
	TEST_ASSERT_EQUAL_PTR(list[0], doca_dev_as_devinfo(two));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_dev_close(two));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_dev_close(two));
	TEST_ASSERT_NULL(doca_dev_as_devinfo(two));
	TEST_ASSERT_NULL(doca_dev_as_devinfo(NULL));
}

/* MUST: programs close their device twice, the second time with NULL */
static void closing_no_device_is_success(void)
{
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_dev_close(NULL));
}

/* closing the last reference fails while an object of the device exists */
static void a_device_in_use_is_not_closed(void)
{
	struct doca_devinfo_rep **reps;
	struct doca_comch_server *server;
	struct doca_dev_rep *rep;
	struct doca_dev *dev;
	struct doca_dma *dma;
	uint32_t n_reps;

	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_dev_open(list[0], &dev));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_dev_open(list[0], &dev));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_dma_create(dev, &dma));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_dev_close(dev));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_IN_USE, doca_dev_close(dev));
	TEST_ASSERT_EQUAL_PTR(list[0], doca_dev_as_devinfo(dev));
	TEST_ASSERT_EQUAL_INT(
		DOCA_SUCCESS,
		doca_devinfo_rep_create_list(dev, DOCA_DEVINFO_REP_FILTER_NET, &reps, &n_reps));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_dev_rep_open(reps[0], &rep));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_devinfo_rep_destroy_list(reps));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_comch_server_create(dev, rep, "server", &server));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_dma_destroy(dma));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_IN_USE, doca_dev_close(dev));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_IN_USE, doca_dev_rep_close(rep));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_comch_server_destroy(server));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_dev_rep_close(rep));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_dev_close(dev));
}

static void closed_device_is_rejected_by_every_create(void)
{
	struct doca_comch_server *server;
	struct doca_mmap_advise *advise;
	struct doca_comch_client *client;
	struct doca_devinfo_rep **reps;
	struct doca_compress *compress;
	struct doca_comch_msgq *msgq;
	struct doca_sync_event *event;
	struct doca_clock *clock;
	struct doca_dev_rep *rep;
	struct doca_mmap *mmap;
	struct doca_rdma *rdma;
	struct doca_dev *dev;
	struct doca_dma *dma;
	struct doca_dpa *dpa;
	struct doca_sha *sha;
	struct doca_ec *ec;
	uint32_t n_reps;

	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_dev_open(list[0], &dev));
	TEST_ASSERT_EQUAL_INT(
		DOCA_SUCCESS,
		doca_devinfo_rep_create_list(dev, DOCA_DEVINFO_REP_FILTER_NET, &reps, &n_reps));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_dev_rep_open(reps[0], &rep));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_dev_rep_close(rep));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_comch_server_create(dev, rep, "server", &server));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_dev_rep_open(reps[0], &rep));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_dev_close(dev));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_comch_server_create(dev, rep, "server", &server));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_clock_create(dev, &clock));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_comch_client_create(dev, "server", &client));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_comch_msgq_create(dev, &msgq));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_compress_create(dev, &compress));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_dma_create(dev, &dma));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_dpa_create(dev, &dpa));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_ec_create(dev, &ec));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_mmap_advise_create(dev, &advise));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_rdma_create(dev, &rdma));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_sha_create(dev, &sha));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_mmap_create(&mmap));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_mmap_add_dev(mmap, dev));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_mmap_destroy(mmap));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_sync_event_create(&event));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_sync_event_add_publisher_location_cpu(event, dev));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_sync_event_add_subscriber_location_cpu(event, dev));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_sync_event_destroy(event));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_dev_rep_close(rep));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_devinfo_rep_destroy_list(reps));
}

static void an_open_device_outlives_its_list(void)
{
	char pci[DOCA_DEVINFO_PCI_ADDR_SIZE];
	struct doca_dev *dev;

	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_dev_open(list[1], &dev));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_devinfo_destroy_list(list));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS,
			      doca_devinfo_get_pci_addr_str(doca_dev_as_devinfo(dev), pci));
	TEST_ASSERT_EQUAL_STRING("0000:b1:00.0", pci);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_dev_close(dev));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_devinfo_create_list(&list, &n));
}

/* programs open each device, list representors and compare their addresses */
static void the_dpu_has_the_representor_of_the_host(void)
{
	char vuid[DOCA_DEVINFO_REP_VUID_SIZE], pci[DOCA_DEVINFO_REP_PCI_ADDR_SIZE],
		iface[DOCA_DEVINFO_IFACE_NAME_SIZE];
	struct doca_devinfo_rep **reps;
	struct doca_dev_rep *rep;
	struct doca_dev *dev;
	enum doca_pci_func_type type;
	uint32_t n_reps;
	uint8_t equal, hotplug = 1;

	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_dev_open(list[0], &dev));
	TEST_ASSERT_EQUAL_INT(
		DOCA_SUCCESS,
		doca_devinfo_rep_create_list(dev, DOCA_DEVINFO_REP_FILTER_NET, &reps, &n_reps));
	TEST_ASSERT_EQUAL_UINT32(1, n_reps);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS,
			      doca_devinfo_rep_is_equal_pci_addr(reps[0], "b1:00.0", &equal));
	TEST_ASSERT_EQUAL_UINT8(1, equal);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_devinfo_rep_is_equal_pci_addr(reps[0], "nonsense", &equal));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_devinfo_rep_get_pci_addr_str(reps[0], pci));
	TEST_ASSERT_EQUAL_STRING("0000:b1:00.0", pci);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_devinfo_rep_get_vuid(reps[0], vuid, sizeof(vuid)));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_devinfo_rep_get_vuid(reps[0], vuid, sizeof(vuid) - 1));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS,
			      doca_devinfo_rep_get_iface_name(reps[0], iface, sizeof(iface)));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_devinfo_rep_get_pci_func_type(reps[0], &type));
	TEST_ASSERT_EQUAL_INT(DOCA_PCI_FUNC_TYPE_PF, type);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_devinfo_rep_get_is_hotplug(reps[0], &hotplug));
	TEST_ASSERT_EQUAL_UINT8(0, hotplug);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_dev_rep_open(reps[0], &rep));
	TEST_ASSERT_EQUAL_PTR(reps[0], doca_dev_rep_as_devinfo(rep));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_devinfo_rep_destroy_list(reps));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_dev_rep_close(rep));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_dev_rep_close(rep));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_NOT_SUPPORTED,
			      doca_devinfo_rep_create_list(dev, DOCA_DEVINFO_REP_FILTER_EMULATED,
							   &reps, &n_reps));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_devinfo_rep_create_list(dev, 1, &reps, &n_reps));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_devinfo_rep_create_list(NULL, 0, &reps, &n_reps));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_dev_close(dev));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_devinfo_rep_create_list(dev, 0, &reps, &n_reps));
}

/* storage programs select their side by this capability: 1 on the DPU, 0 on the host */
static void only_the_dpu_can_filter_by_net(void)
{
	struct doca_devinfo_rep **reps;
	struct doca_dev *dev;
	uint32_t n_reps;
	uint8_t can;

	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS,
			      doca_devinfo_rep_cap_is_filter_net_supported(list[0], &can));
	TEST_ASSERT_EQUAL_UINT8(1, can);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS,
			      doca_devinfo_rep_cap_is_filter_net_supported(list[1], &can));
	TEST_ASSERT_EQUAL_UINT8(0, can);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS,
			      doca_devinfo_rep_cap_is_filter_all_supported(list[0], &can));
	TEST_ASSERT_EQUAL_UINT8(1, can);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS,
			      doca_devinfo_rep_cap_is_filter_emulated_supported(list[0], &can));
	TEST_ASSERT_EQUAL_UINT8(0, can);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_dev_open(list[1], &dev));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_NOT_SUPPORTED,
			      doca_devinfo_rep_create_list(dev, 0, &reps, &n_reps));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_dev_close(dev));
}

static void function_reports_its_addresses_and_capabilities(void)
{
	uint8_t ip4[4], ip6[16], mac[6], other[6], can;
	enum doca_pci_func_type type;
	uint64_t rate;
	uint32_t sf;
	uint16_t word;

	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_devinfo_get_ipv4_addr(list[0], ip4, sizeof(ip4)));
	TEST_ASSERT_EQUAL_UINT8(127, ip4[0]);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_devinfo_get_ipv6_addr(list[0], ip6, sizeof(ip6)));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_devinfo_get_ipv6_addr(list[0], ip6, 4));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_devinfo_get_mac_addr(list[0], mac, sizeof(mac)));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS,
			      doca_devinfo_get_mac_addr(list[1], other, sizeof(other)));
	TEST_ASSERT_TRUE(memcmp(mac, other, 6) != 0 && mac[0] == 2);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_NOT_SUPPORTED, doca_devinfo_get_lid(list[0], &word));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_devinfo_get_vhca_id(list[0], &word));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_devinfo_get_active_rate(list[0], &rate));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_devinfo_get_pci_func_type(list[0], &type));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_NOT_SUPPORTED, doca_devinfo_get_sf_index(list[0], &sf));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS,
			      doca_devinfo_cap_is_hotplug_manager_supported(list[0], &can));
	TEST_ASSERT_EQUAL_UINT8(0, can);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_devinfo_cap_is_hotplug_manager_supported(list[0], NULL));
}

/* addresses of interfaces come from the operating system, which can fail to return them */
static void errors_of_the_operating_system_are_returned(void)
{
	struct rlimit before, none;
	uint8_t ip[16];
	struct doca_dev *dev;

	TEST_ASSERT_EQUAL_INT(0, getrlimit(RLIMIT_NOFILE, &before));
	none = (struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max};
	TEST_ASSERT_EQUAL_INT(0, setrlimit(RLIMIT_NOFILE, &none));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_OPERATING_SYSTEM,
			      doca_devinfo_get_ipv4_addr(list[0], ip, 4));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_OPERATING_SYSTEM,
			      doca_devinfo_get_ipv6_addr(list[0], ip, 16));
	TEST_ASSERT_EQUAL_INT(0, setrlimit(RLIMIT_NOFILE, &before));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_dev_open(list[0], &dev));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_NOT_SUPPORTED, doca_dev_accelerate_resource_reclaim(dev));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_dev_close(dev));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_dev_accelerate_resource_reclaim(dev));
}

static void null_pointers_are_rejected(void)
{
	char text[DOCA_DEVINFO_IFACE_NAME_SIZE];
	struct doca_devinfo_rep *rep = (struct doca_devinfo_rep *)text;
	struct doca_devinfo *info = (struct doca_devinfo *)text;
	struct doca_dev *dev;

	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_devinfo_create_list(NULL, &n));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_devinfo_create_list(&list, NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_devinfo_destroy_list(NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_devinfo_rep_destroy_list(NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_dev_open(NULL, &dev));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_dev_open(info, &dev));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_dev_open(list[0], NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_devinfo_get_iface_name(info, text, sizeof(text)));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_devinfo_get_iface_name(list[0], text, sizeof(text) - 1));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_devinfo_get_ibdev_name(list[0], NULL, sizeof(text)));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_devinfo_rep_get_vuid(rep, text, sizeof(text)));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_dev_rep_close(NULL));
	TEST_ASSERT_NULL(doca_dev_rep_as_devinfo(NULL));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(both_functions_are_there_without_a_configuration);
	RUN_TEST(invalid_address_is_rejected);
	RUN_TEST(opening_twice_gives_the_same_device);
	RUN_TEST(closing_no_device_is_success);
	RUN_TEST(a_device_in_use_is_not_closed);
	RUN_TEST(closed_device_is_rejected_by_every_create);
	RUN_TEST(an_open_device_outlives_its_list);
	RUN_TEST(the_dpu_has_the_representor_of_the_host);
	RUN_TEST(only_the_dpu_can_filter_by_net);
	RUN_TEST(function_reports_its_addresses_and_capabilities);
	RUN_TEST(errors_of_the_operating_system_are_returned);
	RUN_TEST(null_pointers_are_rejected);
	return UNITY_END();
}
