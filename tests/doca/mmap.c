/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory maps in one process: order of calls, and the documented error of each wrong call. */
#include <doca_buf.h>
#include <doca_buf_inventory.h>
#include <doca_dev.h>
#include <doca_mmap.h>
#include <sys/resource.h>

#include "captured.h"
#include "run_dir.h"

#define OK(call) TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, (call))
#define IS(error, call) TEST_ASSERT_EQUAL_INT(DOCA_ERROR_##error, (call))

static struct doca_devinfo **list;
static struct doca_dev *dev, *other;
static struct doca_mmap *map;
static char memory[10000];
static uint32_t n;

void setUp(void)
{
	OK(doca_devinfo_create_list(&list, &n));
	OK(doca_dev_open(list[0], &dev));
	OK(doca_dev_open(list[1], &other));
	OK(doca_mmap_create(&map));
}

void tearDown(void)
{
	if (map)
		OK(doca_mmap_destroy(map));
	OK(doca_dev_close(dev));
	OK(doca_dev_close(other));
	OK(doca_devinfo_destroy_list(list));
}

/* create, add_dev, set_permissions, set_memrange, start: the order of all programs */
static void start(uint32_t access)
{
	OK(doca_mmap_add_dev(map, dev));
	OK(doca_mmap_set_permissions(map, access));
	OK(doca_mmap_set_memrange(map, memory + 1, 9001));
	OK(doca_mmap_start(map));
}

static void pointers_that_are_null_are_refused(void)
{
	union doca_data data = {.u64 = 0};
	const void *desc;
	uint32_t number;
	uint8_t byte;
	size_t len;
	void *addr;

	IS(INVALID_VALUE, doca_mmap_create(NULL));
	IS(INVALID_VALUE, doca_mmap_destroy(NULL));
	IS(INVALID_VALUE, doca_mmap_start(NULL));
	IS(INVALID_VALUE, doca_mmap_stop(NULL));
	IS(INVALID_VALUE, doca_mmap_add_dev(NULL, dev));
	IS(INVALID_VALUE, doca_mmap_add_dev(map, NULL));
	IS(INVALID_VALUE, doca_mmap_rm_dev(NULL, dev));
	IS(INVALID_VALUE, doca_mmap_rm_dev(map, NULL));
	IS(INVALID_VALUE, doca_mmap_set_memrange(NULL, memory, 1));
	IS(INVALID_VALUE, doca_mmap_set_memrange(map, NULL, 1));
	IS(INVALID_VALUE, doca_mmap_set_memrange(map, memory, 0));
	IS(INVALID_VALUE, doca_mmap_set_memrange(map, memory, SIZE_MAX));
	IS(INVALID_VALUE, doca_mmap_get_memrange(NULL, &addr, &len));
	IS(INVALID_VALUE, doca_mmap_get_memrange(map, NULL, &len));
	IS(INVALID_VALUE, doca_mmap_get_memrange(map, &addr, NULL));
	IS(BAD_STATE, doca_mmap_get_memrange(map, &addr, &len)); /* the range is not set yet */
	IS(INVALID_VALUE, doca_mmap_set_free_cb(map, NULL, NULL));
	IS(INVALID_VALUE, doca_mmap_set_user_data(NULL, data));
	IS(INVALID_VALUE, doca_mmap_get_user_data(map, NULL));
	IS(INVALID_VALUE, doca_mmap_get_max_num_devices(map, NULL));
	IS(INVALID_VALUE, doca_mmap_get_num_bufs(NULL, &number));
	IS(INVALID_VALUE, doca_mmap_get_exported(map, NULL));
	IS(INVALID_VALUE, doca_mmap_get_from_export(NULL, &byte));
	IS(INVALID_VALUE, doca_mmap_export_pci(map, NULL, &desc, &len));
	IS(INVALID_VALUE, doca_mmap_export_pci(map, dev, NULL, &len));
	IS(INVALID_VALUE, doca_mmap_export_rdma(map, dev, &desc, NULL));
	IS(INVALID_VALUE, doca_mmap_export_rdma(NULL, dev, &desc, &len));
	IS(INVALID_VALUE, doca_mmap_create_from_export(NULL, NULL, 10, dev, &map));
	IS(INVALID_VALUE, doca_mmap_create_from_export(NULL, memory, 10, NULL, &map));
	IS(INVALID_VALUE, doca_mmap_create_from_export(NULL, memory, 10, dev, NULL));
	IS(INVALID_VALUE, doca_mmap_create_from_export(NULL, memory, 10, dev, &map));
	IS(INVALID_VALUE, doca_mmap_enable_thread_safety(NULL));
	IS(INVALID_VALUE, doca_mmap_cap_is_export_pci_supported(NULL, &byte));
	IS(INVALID_VALUE, doca_mmap_cap_is_create_from_export_pci_supported(list[0], NULL));
	OK(doca_mmap_cap_is_export_pci_supported(list[0], &byte));
	TEST_ASSERT_EQUAL_UINT8(1, byte);
	OK(doca_mmap_cap_is_create_from_export_pci_supported(list[1], &byte));
	TEST_ASSERT_EQUAL_UINT8(1, byte);
}

static void a_range_is_mandatory_and_set_once(void)
{
	void *addr;
	size_t len;

	IS(NOT_PERMITTED, doca_mmap_start(map));
	OK(doca_mmap_set_memrange(map, memory + 3, 5));
	IS(NOT_PERMITTED, doca_mmap_set_memrange(map, memory + 3, 5));
	OK(doca_mmap_get_memrange(map, &addr, &len));
	TEST_ASSERT_TRUE(addr == memory + 3 && len == 5);
	/* start without device and permissions, which are optional */
	OK(doca_mmap_start(map));
	IS(NOT_PERMITTED, doca_mmap_start(map));
	IS(BAD_STATE, doca_mmap_set_memrange(map, memory, 5));
}

static void nothing_can_be_set_after_start(void)
{
	union doca_data data = {.u64 = 7}, got;

	OK(doca_mmap_set_user_data(map, data));
	start(DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	IS(NOT_PERMITTED, doca_mmap_add_dev(map, other));
	IS(NOT_PERMITTED, doca_mmap_rm_dev(map, dev));
	IS(NOT_PERMITTED, doca_mmap_set_max_num_devices(map, 100));
	IS(BAD_STATE, doca_mmap_set_permissions(map, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE));
	IS(BAD_STATE, doca_mmap_set_free_cb(
			      map, (doca_mmap_memrange_free_cb_t *)(void *)doca_mmap_stop, NULL));
	IS(BAD_STATE, doca_mmap_set_user_data(map, data));
	IS(NOT_PERMITTED, doca_mmap_enable_thread_safety(map));
	OK(doca_mmap_get_user_data(map, &got));
	TEST_ASSERT_EQUAL_UINT64(7, got.u64);
	/* start again after a stop */
	OK(doca_mmap_stop(map));
	OK(doca_mmap_stop(map));
	OK(doca_mmap_add_dev(map, other));
	OK(doca_mmap_start(map));
}

static void devices_are_counted(void)
{
	uint32_t max;

	OK(doca_mmap_get_max_num_devices(map, &max));
	TEST_ASSERT_TRUE(max >= 2);
	OK(doca_mmap_add_dev(map, dev));
	IS(ALREADY_EXIST, doca_mmap_add_dev(map, dev));
	IS(NOT_FOUND, doca_mmap_rm_dev(map, other));
	OK(doca_mmap_set_max_num_devices(map, 1));
	IS(INVALID_VALUE, doca_mmap_set_max_num_devices(map, 0));
	IS(NO_MEMORY, doca_mmap_add_dev(map, other));
	OK(doca_mmap_rm_dev(map, dev));
	OK(doca_mmap_add_dev(map, other));
	OK(doca_mmap_get_max_num_devices(map, &max));
	TEST_ASSERT_EQUAL_UINT32(1, max);
}

static void invalid_flags_are_rejected(void)
{
	IS(INVALID_VALUE, doca_mmap_set_permissions(map, 128));
	IS(INVALID_VALUE, doca_mmap_set_permissions(map, DOCA_ACCESS_FLAG_PCI_READ_ONLY |
								 DOCA_ACCESS_FLAG_PCI_READ_WRITE));
	OK(doca_mmap_set_permissions(map, DOCA_ACCESS_FLAG_LOCAL_READ_ONLY));
	OK(doca_mmap_set_permissions(map, 1 | 2 | 4 | 8 | 32 | 64));
}

static void an_export_needs_its_flag_a_start_and_a_device_of_the_map(void)
{
	const void *pci, *again, *rdma;
	size_t len, rdma_len;
	uint8_t exported;

	IS(NOT_PERMITTED, doca_mmap_export_pci(map, dev, &pci, &len));
	start(DOCA_ACCESS_FLAG_PCI_READ_ONLY);
	IS(NOT_FOUND, doca_mmap_export_pci(map, other, &pci, &len));
	IS(NOT_PERMITTED, doca_mmap_export_rdma(map, dev, &rdma, &rdma_len));
	OK(doca_mmap_get_exported(map, &exported));
	TEST_ASSERT_EQUAL_UINT8(0, exported);
	OK(doca_mmap_export_pci(map, dev, &pci, &len));
	OK(doca_mmap_get_exported(map, &exported));
	TEST_ASSERT_EQUAL_UINT8(1, exported);
	/* a program on the DPU reads the descriptor into 512 bytes */
	TEST_ASSERT_TRUE(len > 0 && len <= 300);
	OK(doca_mmap_export_pci(map, dev, &again, &len));
	TEST_ASSERT_EQUAL_PTR(pci, again);
	/* MUST: stop of an exported map returns SUCCESS; programs treat an error as a failure */
	OK(doca_mmap_stop(map));
	OK(doca_mmap_get_exported(map, &exported));
	TEST_ASSERT_EQUAL_UINT8(0, exported);
	IS(NOT_PERMITTED, doca_mmap_export_pci(map, dev, &pci, &len));
}

static void an_export_by_rdma_needs_a_flag_of_rdma(void)
{
	const void *desc;
	size_t len;

	start(DOCA_ACCESS_FLAG_LOCAL_READ_WRITE | DOCA_ACCESS_FLAG_RDMA_READ |
	      DOCA_ACCESS_FLAG_RDMA_WRITE);
	IS(NOT_PERMITTED, doca_mmap_export_pci(map, dev, &desc, &len));
	IS(NOT_FOUND, doca_mmap_export_rdma(map, other, &desc, &len));
	OK(doca_mmap_export_rdma(map, dev, &desc, &len));
}

/* export rejects shared memory: its pages cannot be moved to a memfd for importers */
static void shared_memory_is_not_exported(void)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	const void *desc;
	size_t len;

	OK(doca_mmap_add_dev(map, dev));
	OK(doca_mmap_set_permissions(map,
				     DOCA_ACCESS_FLAG_PCI_READ_WRITE | DOCA_ACCESS_FLAG_RDMA_READ));
	OK(doca_mmap_set_memrange(map, page, 4096));
	OK(doca_mmap_start(map));
	IS(NOT_SUPPORTED, doca_mmap_export_pci(map, dev, &desc, &len));
	IS(NOT_SUPPORTED, doca_mmap_export_rdma(map, dev, &desc, &len));
	OK(doca_mmap_stop(map));
	munmap(page, 4096);
}

static void export_with_a_limit_of_files(void)
{
	const struct rlimit limit = {.rlim_cur = 4096, .rlim_max = 4096};
	const void *desc;
	size_t len;

	start(DOCA_ACCESS_FLAG_PCI_READ_WRITE | DOCA_ACCESS_FLAG_RDMA_READ);
	TEST_ASSERT_EQUAL_INT(0, setrlimit(RLIMIT_FSIZE, &limit));
	IS(DRIVER, doca_mmap_export_pci(map, dev, &desc, &len));
	IS(DRIVER, doca_mmap_export_rdma(map, dev, &desc, &len));
}

/* importers map a file, whose creation a limit of the process can prevent */
static void a_limit_of_the_process_is_an_error_of_the_driver(void)
{
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, captured(export_with_a_limit_of_files), captured_out);
	TEST_ASSERT_NOT_NULL(strstr(captured_err, "ulimit -f"));
}

static void unmapped_memory_is_not_exported(void)
{
	char *hole = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			  0);
	const void *desc;
	size_t len;

	munmap(hole + 4096, 4096);
	OK(doca_mmap_add_dev(map, dev));
	OK(doca_mmap_set_permissions(map, DOCA_ACCESS_FLAG_PCI_READ_WRITE));
	OK(doca_mmap_set_memrange(map, hole, 3 * 4096));
	OK(doca_mmap_start(map));
	IS(INVALID_VALUE, doca_mmap_export_pci(map, dev, &desc, &len));
	munmap(hole, 4096);
	munmap(hole + 8192, 4096);
}

static void memory_that_is_read_only_is_not_exported_for_writing(void)
{
	char *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const void *desc;
	size_t len;

	OK(doca_mmap_add_dev(map, dev));
	OK(doca_mmap_set_permissions(map, DOCA_ACCESS_FLAG_PCI_READ_WRITE));
	OK(doca_mmap_set_memrange(map, page, 4096));
	OK(doca_mmap_start(map));
	IS(NOT_PERMITTED, doca_mmap_export_pci(map, dev, &desc, &len));
	OK(doca_mmap_stop(map));
	OK(doca_mmap_set_permissions(map, DOCA_ACCESS_FLAG_PCI_READ_ONLY));
	OK(doca_mmap_start(map));
	OK(doca_mmap_export_pci(map, dev, &desc, &len));
	munmap(page, 4096);
}

static int n_freed;

static void free_memory(void *addr, size_t len, void *cookie)
{
	TEST_ASSERT_EQUAL_PTR(&n_freed, cookie);
	TEST_ASSERT_EQUAL_UINT64(100, len);
	free(addr);
	n_freed++;
}

/* programs free or unmap their memory in this callback */
static void destroy_calls_the_free_callback_of_a_started_map(void)
{
	char *mine = malloc(100);

	n_freed = 0;
	OK(doca_mmap_set_free_cb(map, free_memory, &n_freed));
	OK(doca_mmap_set_memrange(map, mine, 100));
	OK(doca_mmap_destroy(map));
	TEST_ASSERT_EQUAL_INT(0, n_freed);
	OK(doca_mmap_create(&map));
	OK(doca_mmap_set_free_cb(map, free_memory, &n_freed));
	OK(doca_mmap_set_memrange(map, mine, 100));
	OK(doca_mmap_start(map));
	OK(doca_mmap_stop(map));
	OK(doca_mmap_destroy(map));
	TEST_ASSERT_EQUAL_INT(1, n_freed);
	IS(INVALID_VALUE, doca_mmap_destroy(map)); /* it is an error, and no crash */
	IS(INVALID_VALUE, doca_mmap_start(map));
	map = NULL;
}

/* MUST: programs free their memory, or close their device, before they destroy the map */
static void memory_and_device_can_be_released_before_the_map(void)
{
	char *large = malloc(1 << 20), *small = malloc(100);
	struct doca_mmap *two;
	const void *desc;
	size_t len;

	memset(large, 1, 1 << 20);
	memset(small, 2, 100);
	OK(doca_mmap_add_dev(map, dev));
	OK(doca_mmap_set_permissions(map, DOCA_ACCESS_FLAG_PCI_READ_WRITE));
	OK(doca_mmap_set_memrange(map, large, 1 << 20));
	OK(doca_mmap_start(map));
	OK(doca_mmap_export_pci(map, dev, &desc, &len));
	OK(doca_mmap_create(&two));
	OK(doca_mmap_add_dev(two, dev));
	OK(doca_mmap_set_permissions(two, DOCA_ACCESS_FLAG_PCI_READ_WRITE));
	OK(doca_mmap_set_memrange(two, small, 100));
	OK(doca_mmap_start(two));
	OK(doca_mmap_export_pci(two, dev, &desc, &len));
	free(large);
	free(small);
	OK(doca_dev_close(dev));
	OK(doca_mmap_destroy(map));
	OK(doca_mmap_destroy(two));
	map = NULL;
	OK(doca_dev_open(list[0], &dev));
	small = malloc(100); /* malloc() fails or crashes if the heap is damaged */
	large = calloc(1, 1 << 20);
	TEST_ASSERT_EQUAL_INT(0, large[1000]);
	free(small);
	free(large);
}

static void bufs_keep_a_map_unless_it_is_thread_safe(void)
{
	struct doca_buf_inventory *inventory;
	struct doca_buf *buf;
	uint32_t bufs;

	OK(doca_buf_inventory_create(4, &inventory));
	OK(doca_buf_inventory_start(inventory));
	start(DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	OK(doca_buf_inventory_buf_get_by_addr(inventory, map, memory + 1, 100, &buf));
	OK(doca_mmap_get_num_bufs(map, &bufs));
	TEST_ASSERT_EQUAL_UINT32(1, bufs);
	IS(NOT_PERMITTED, doca_mmap_destroy(map));
	IS(NOT_PERMITTED, doca_mmap_stop(map));
	OK(doca_buf_dec_refcount(buf, NULL));
	OK(doca_mmap_stop(map));
	OK(doca_mmap_enable_thread_safety(map));
	OK(doca_mmap_start(map));
	OK(doca_buf_inventory_buf_get_by_addr(inventory, map, memory + 1, 100, &buf));
	OK(doca_mmap_get_num_bufs(map, &bufs));
	TEST_ASSERT_EQUAL_UINT32(0, bufs);
	OK(doca_mmap_destroy(map));
	map = NULL;
	OK(doca_buf_dec_refcount(buf, NULL));
	OK(doca_buf_inventory_destroy(inventory));
}

static void maps_have_handles_for_a_dpa(void)
{
	doca_dpa_dev_mmap_t handle = 0, second = 0;
	struct doca_mmap *two;

	OK(doca_mmap_create(&two));
	OK(doca_mmap_add_dev(two, dev));
	OK(doca_mmap_set_memrange(two, memory, 5));
	IS(NOT_PERMITTED, doca_mmap_dev_get_dpa_handle(two, dev, &second));
	OK(doca_mmap_start(two));
	start(DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	OK(doca_mmap_dev_get_dpa_handle(map, dev, &handle));
	OK(doca_mmap_dev_get_dpa_handle(two, dev, &second));
	TEST_ASSERT_TRUE(handle != 0 && handle != second);
	IS(NOT_FOUND, doca_mmap_dev_get_dpa_handle(map, other, &handle));
	OK(doca_mmap_destroy(two));
}

int main(void)
{
	int rc;

	make_run_dir();
	UNITY_BEGIN();
	RUN_TEST(pointers_that_are_null_are_refused);
	RUN_TEST(a_range_is_mandatory_and_set_once);
	RUN_TEST(nothing_can_be_set_after_start);
	RUN_TEST(devices_are_counted);
	RUN_TEST(invalid_flags_are_rejected);
	RUN_TEST(an_export_needs_its_flag_a_start_and_a_device_of_the_map);
	RUN_TEST(an_export_by_rdma_needs_a_flag_of_rdma);
	RUN_TEST(shared_memory_is_not_exported);
	RUN_TEST(a_limit_of_the_process_is_an_error_of_the_driver);
	RUN_TEST(unmapped_memory_is_not_exported);
	RUN_TEST(memory_that_is_read_only_is_not_exported_for_writing);
	RUN_TEST(destroy_calls_the_free_callback_of_a_started_map);
	RUN_TEST(memory_and_device_can_be_released_before_the_map);
	RUN_TEST(bufs_keep_a_map_unless_it_is_thread_safe);
	RUN_TEST(maps_have_handles_for_a_dpa);
	rc = UNITY_END();
	remove_run_dir();
	return rc;
}
