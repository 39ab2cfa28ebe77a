/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Functions that allocate return NO_MEMORY if an allocation fails, leak nothing, and work once
 * memory is available again. The order of the tests matters: some first calls allocate memory that
 * the library keeps until the process ends, such as its table of devices.
 */
#include <doca_argp.h>
#include <doca_buf.h>
#include <doca_buf_inventory.h>
#include <doca_dev.h>
#include <doca_dma.h>
#include <doca_log.h>
#include <doca_mmap.h>
#include <doca_pe.h>

#include "captured.h"
#include "scarce.h"

#define OK(call) TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, (call))
#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

DOCA_LOG_REGISTER(NO_MEMORY);

static struct doca_devinfo **list;
static struct doca_devinfo_rep **reps;
static struct doca_dev *dev;
static struct doca_dev_rep *rep;
static struct doca_mmap *map, *import;
static struct doca_buf_inventory *inventory;
static struct doca_pe *pe;
static struct doca_dma *dma;
static struct doca_argp_param *param;
static struct doca_argp_cmd *cmd;
static const void *blob;
static size_t blob_len;
static uint32_t n;
static char memory[10000];

void setUp(void)
{
	if (!scarce_can())
		TEST_IGNORE_MESSAGE("allocations cannot fail in this build");
}

/* -- pairs: a call, and the call that undoes it -- */

static doca_error_t create_list(void *arg)
{
	(void)arg;
	return doca_devinfo_create_list(&list, &n);
}

static void destroy_list(void *arg)
{
	(void)arg;
	OK(doca_devinfo_destroy_list(list));
}

static doca_error_t open_dev(void *arg)
{
	(void)arg;
	return doca_dev_open(list[0], &dev);
}

static void close_dev(void *arg)
{
	(void)arg;
	OK(doca_dev_close(dev));
}

static doca_error_t create_reps(void *arg)
{
	(void)arg;
	return doca_devinfo_rep_create_list(dev, DOCA_DEVINFO_REP_FILTER_ALL, &reps, &n);
}

static void destroy_reps(void *arg)
{
	(void)arg;
	OK(doca_devinfo_rep_destroy_list(reps));
}

static doca_error_t open_rep(void *arg)
{
	(void)arg;
	return doca_dev_rep_open(reps[0], &rep);
}

static void close_rep(void *arg)
{
	(void)arg;
	OK(doca_dev_rep_close(rep));
}

static doca_error_t create_map(void *arg)
{
	(void)arg;
	return doca_mmap_create(&map);
}

static void destroy_map(void *arg)
{
	(void)arg;
	OK(doca_mmap_destroy(map));
}

static doca_error_t add_dev(void *arg)
{
	(void)arg;
	return doca_mmap_add_dev(map, dev);
}

static void rm_dev(void *arg)
{
	(void)arg;
	OK(doca_mmap_rm_dev(map, dev));
}

/* The map keeps memory of earlier exports until it is stopped, so restart it. */
static void stop_map(void *arg)
{
	(void)arg;
	OK(doca_mmap_stop(map));
	OK(doca_mmap_start(map));
}

static doca_error_t exported(doca_error_t result)
{
	scarce_end();
	if (result != DOCA_SUCCESS)
		stop_map(NULL);
	return result;
}

static doca_error_t export_pci(void *arg)
{
	(void)arg;
	return exported(doca_mmap_export_pci(map, dev, &blob, &blob_len));
}

static doca_error_t export_rdma(void *arg)
{
	(void)arg;
	return exported(doca_mmap_export_rdma(map, dev, &blob, &blob_len));
}

static doca_error_t create_from_export(void *arg)
{
	(void)arg;
	return doca_mmap_create_from_export(NULL, blob, blob_len, dev, &import);
}

static void destroy_import(void *arg)
{
	(void)arg;
	OK(doca_mmap_destroy(import));
}

static doca_error_t create_inventory(void *arg)
{
	(void)arg;
	return doca_buf_inventory_create(3, &inventory);
}

static void destroy_inventory(void *arg)
{
	(void)arg;
	OK(doca_buf_inventory_destroy(inventory));
}

static doca_error_t create_pe(void *arg)
{
	(void)arg;
	return doca_pe_create(&pe);
}

static void destroy_pe(void *arg)
{
	(void)arg;
	OK(doca_pe_destroy(pe));
}

static doca_error_t create_dma(void *arg)
{
	(void)arg;
	return doca_dma_create(dev, &dma);
}

static void destroy_dma(void *arg)
{
	(void)arg;
	OK(doca_dma_destroy(dma));
}

static doca_error_t init_argp(void *arg)
{
	(void)arg;
	return doca_argp_init("program", NULL);
}

static void destroy_argp(void *arg)
{
	(void)arg;
	OK(doca_argp_destroy());
}

static doca_error_t create_param(void *arg)
{
	(void)arg;
	return doca_argp_param_create(&param);
}

static void destroy_param(void *arg)
{
	(void)arg;
	OK(doca_argp_param_destroy(param));
}

static doca_error_t create_cmd(void *arg)
{
	(void)arg;
	return doca_argp_cmd_create(&cmd);
}

static void destroy_cmd(void *arg)
{
	(void)arg;
	OK(doca_argp_cmd_destroy(cmd));
}

static doca_error_t set_nothing(void *value, void *config)
{
	(void)value;
	(void)config;
	return DOCA_SUCCESS;
}

static doca_error_t start_argp(void *arg)
{
	static char words[][12] = {"program", "--first", "word", "--second", "2"};
	char *argv[] = {words[0], words[1], words[2], words[3], words[4], NULL};

	(void)arg;
	return doca_argp_start(5, argv);
}

/* -- in the order of a program -- */

/* The first list creates the table of devices, which the library keeps. */
static void test_first_list(void)
{
	const long before = scarce_held();

	for (unsigned i = 0; i < 3; i++) {
		scarce_after(i);
		TEST_ASSERT_EQUAL_INT(DOCA_ERROR_NO_MEMORY, create_list(NULL));
		TEST_ASSERT_TRUE(scarce_end());
		TEST_ASSERT_EQUAL_INT64(before, scarce_held());
	}
	OK(create_list(NULL));
	TEST_ASSERT_EQUAL_UINT32(2, n);
	destroy_list(NULL);
}

static void test_devices(void)
{
	TEST_ASSERT_GREATER_THAN(
		0, scarce_walk(DOCA_ERROR_NO_MEMORY, create_list, destroy_list, NULL));
	OK(create_list(NULL));
	TEST_ASSERT_GREATER_THAN(0, scarce_walk(DOCA_ERROR_NO_MEMORY, open_dev, close_dev, NULL));
	OK(open_dev(NULL));
	TEST_ASSERT_GREATER_THAN(
		0, scarce_walk(DOCA_ERROR_NO_MEMORY, create_reps, destroy_reps, NULL));
	OK(create_reps(NULL));
	TEST_ASSERT_GREATER_THAN(0, scarce_walk(DOCA_ERROR_NO_MEMORY, open_rep, close_rep, NULL));
}

/* The first export starts the thread of the library, whose memory the library keeps. */
static void first_export(void)
{
	for (unsigned i = 0;; i++) {
		doca_error_t result;

		scarce_after(i);
		result = export_rdma(NULL);
		if (!scarce_end())
			break;
		TEST_ASSERT_EQUAL_INT(DOCA_ERROR_NO_MEMORY, result);
	}
	stop_map(NULL);
}

static void test_maps(void)
{
	TEST_ASSERT_GREATER_THAN(0,
				 scarce_walk(DOCA_ERROR_NO_MEMORY, create_map, destroy_map, NULL));
	OK(create_map(NULL));
	TEST_ASSERT_GREATER_THAN(0, scarce_walk(DOCA_ERROR_NO_MEMORY, add_dev, rm_dev, NULL));
	OK(add_dev(NULL));
	OK(doca_mmap_set_memrange(map, memory, sizeof(memory)));
	OK(doca_mmap_set_permissions(map,
				     DOCA_ACCESS_FLAG_PCI_READ_WRITE | DOCA_ACCESS_FLAG_RDMA_READ));
	OK(doca_mmap_start(map));
	first_export();
	TEST_ASSERT_GREATER_THAN(0, scarce_walk(DOCA_ERROR_NO_MEMORY, export_rdma, stop_map, NULL));
	TEST_ASSERT_GREATER_THAN(0, scarce_walk(DOCA_ERROR_NO_MEMORY, export_pci, stop_map, NULL));
	OK(export_pci(NULL));
	OK(create_from_export(NULL)); /* the library keeps destroyed maps for later ones */
	destroy_import(NULL);
	TEST_ASSERT_GREATER_THAN(
		0, scarce_walk(DOCA_ERROR_NO_MEMORY, create_from_export, destroy_import, NULL));
	OK(doca_mmap_destroy(map));
}

static void test_objects(void)
{
	static const struct {
		doca_error_t (*make)(void *arg);
		void (*undo)(void *arg);
	} all[] = {
		{create_inventory, destroy_inventory},
		{create_pe, destroy_pe},
		{create_dma, destroy_dma},
		{init_argp, destroy_argp},
	};

	for (size_t i = 0; i < LENGTH(all); i++)
		TEST_ASSERT_GREATER_THAN(
			0, scarce_walk(DOCA_ERROR_NO_MEMORY, all[i].make, all[i].undo, NULL));
}

static void param_of(const char *name, enum doca_argp_type type)
{
	OK(create_param(NULL));
	doca_argp_param_set_long_name(param, name);
	doca_argp_param_set_description(param, "a value");
	doca_argp_param_set_callback(param, set_nothing);
	doca_argp_param_set_type(param, type);
	OK(doca_argp_register_param(param));
}

static void init_with_params(void *arg)
{
	if (arg)
		destroy_argp(NULL);
	OK(init_argp(NULL));
	param_of("first", DOCA_ARGP_TYPE_STRING);
	param_of("second", DOCA_ARGP_TYPE_INT);
}

static void test_parser(void)
{
	OK(init_argp(NULL));
	TEST_ASSERT_GREATER_THAN(
		0, scarce_walk(DOCA_ERROR_NO_MEMORY, create_param, destroy_param, NULL));
	TEST_ASSERT_GREATER_THAN(0,
				 scarce_walk(DOCA_ERROR_NO_MEMORY, create_cmd, destroy_cmd, NULL));
	destroy_argp(NULL);
	init_with_params(NULL);
	TEST_ASSERT_GREATER_THAN(
		0, scarce_walk(DOCA_ERROR_NO_MEMORY, start_argp, init_with_params, &map));
	destroy_argp(NULL);
}

/* -- the log; its backends stay as long as the process -- */

static struct doca_log_backend *backend;
static char line[100];
static int source;

static void ignore_log_text(char *text)
{
	(void)text;
}

static doca_error_t log_to_file(void *arg)
{
	return doca_log_backend_create_with_file(arg, &backend);
}

static doca_error_t log_to_file_sdk(void *arg)
{
	return doca_log_backend_create_with_file_sdk(arg, &backend);
}

static doca_error_t log_to_fd(void *arg)
{
	return doca_log_backend_create_with_fd(fileno(arg), &backend);
}

static doca_error_t log_to_fd_sdk(void *arg)
{
	return doca_log_backend_create_with_fd_sdk(fileno(arg), &backend);
}

static doca_error_t log_to_buf(void *arg)
{
	(void)arg;
	return doca_log_backend_create_with_buf(line, sizeof(line), ignore_log_text, &backend);
}

static doca_error_t log_to_buf_sdk(void *arg)
{
	(void)arg;
	return doca_log_backend_create_with_buf_sdk(line, sizeof(line), ignore_log_text, &backend);
}

static doca_error_t log_to_syslog(void *arg)
{
	(void)arg;
	return doca_log_backend_create_with_syslog("no memory", &backend);
}

static doca_error_t log_to_syslog_sdk(void *arg)
{
	(void)arg;
	return doca_log_backend_create_with_syslog_sdk("no memory", &backend);
}

static doca_error_t register_source(void *arg)
{
	(void)arg;
	return doca_log_register_source("source", &source);
}

static void stays(void *arg)
{
	(void)arg;
}

static void test_log(void)
{
	doca_error_t (*const all[])(void *arg) = {
		log_to_file,    log_to_file_sdk, log_to_fd,         log_to_fd_sdk,  log_to_buf,
		log_to_buf_sdk, log_to_syslog,   log_to_syslog_sdk, register_source};
	FILE *null = fopen("/dev/null", "w");

	TEST_ASSERT_NOT_NULL(null);
	for (size_t i = 0; i < LENGTH(all); i++)
		TEST_ASSERT_GREATER_THAN(0, scarce_walk(DOCA_ERROR_NO_MEMORY, all[i], stays, null));
}

/* If only the first of two backends was created, a later call must not create it again. */
static void log_by_halves(void)
{
	for (unsigned i = 0; i < 2; i++) {
		scarce_after(i);
		TEST_ASSERT_EQUAL_INT(DOCA_ERROR_NO_MEMORY, doca_log_backend_create_standard());
		TEST_ASSERT_TRUE(scarce_end());
	}
	OK(doca_log_backend_create_standard());
	DOCA_LOG_INFO("once");
	DOCA_LOG_ERR("once");
}

static void test_standard_log(void)
{
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, captured(log_by_halves), captured_out);
	TEST_ASSERT_EQUAL_INT(1, count(captured_out, "once"));
	TEST_ASSERT_EQUAL_INT(1, count(captured_err, "once"));
}

int main(void)
{
	if (getenv("GANTRY_PLUGINS"))
		setenv("GANTRY_PLUGIN_PATH", getenv("GANTRY_PLUGINS"), 1);
	/* no output: the library logs each failure */
	(void)doca_log_level_set_global_sdk_limit(DOCA_LOG_LEVEL_DISABLE);
	UNITY_BEGIN();
	RUN_TEST(test_first_list);
	RUN_TEST(test_devices);
	RUN_TEST(test_maps);
	RUN_TEST(test_objects);
	RUN_TEST(test_parser);
	RUN_TEST(test_standard_log);
	RUN_TEST(test_log);
	return UNITY_END();
}
