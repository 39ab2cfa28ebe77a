/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sync events: settings and when they can be set, fields and number of their tasks, and events in
 * memory of the program.
 */
#include <doca_buf.h>
#include <doca_buf_inventory.h>
#include <doca_ctx.h>
#include <doca_dev.h>
#include <doca_mmap.h>
#include <doca_pe.h>
#include <doca_sync_event.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "doca/sync_event_rig.h"
#include "unity.h"

#define N 3 /* tasks of each kind */
#define REFUSED(error, call) TEST_ASSERT_EQUAL_MESSAGE(DOCA_ERROR_##error, (call), #call)

static const union doca_data tag = {.u64 = 9};

/* -- tasks -- */

static void never(struct doca_task *task, union doca_data task_data, union doca_data ctx_data)
{
	(void)task, (void)task_data, (void)ctx_data;
	TEST_FAIL_MESSAGE("nothing was submitted");
}

#define FN(name, rest) doca_sync_event_task_##name##rest
#define FIELD(name, what, made, other) \
	do { \
		TEST_ASSERT_TRUE(FN(name, _get_##what)(tasks[0]) == (made)); \
		FN(name, _set_##what)(tasks[0], other); \
		TEST_ASSERT_TRUE(FN(name, _get_##what)(tasks[0]) == (other)); \
		FN(name, _set_##what)(NULL, other); \
		TEST_ASSERT_TRUE(!FN(name, _get_##what)(NULL)); \
	} while (0)

/*
 * Test each kind of task: the configuration rejects invalid values and late calls, the number of
 * tasks is the configured one, and fields of tasks.
 */
#define KIND(name, arguments, fields) \
	static void set_up_##name(struct doca_sync_event *event, doca_error_t expected) \
	{ \
		FN(name, _completion_cb_t) cb = (FN(name, _completion_cb_t))(void (*)(void))never; \
\
		TEST_ASSERT_EQUAL_MESSAGE(expected, FN(name, _set_conf)(event, cb, cb, N), #name); \
		REFUSED(INVALID_VALUE, FN(name, _set_conf)(NULL, cb, cb, N)); \
		REFUSED(INVALID_VALUE, FN(name, _set_conf)(event, NULL, cb, N)); \
		REFUSED(INVALID_VALUE, FN(name, _set_conf)(event, cb, NULL, N)); \
		REFUSED(INVALID_VALUE, FN(name, _set_conf)(event, cb, cb, 0)); \
		MUST(doca_sync_event_cap_task_##name##_is_supported(doca_dev_as_devinfo(dev))); \
		REFUSED(INVALID_VALUE, doca_sync_event_cap_task_##name##_is_supported(NULL)); \
	} \
	static void take_all_##name(struct doca_sync_event *event) \
	{ \
		struct doca_sync_event_task_##name *tasks[N], *more; \
		uint64_t a, b; \
\
		(void)a, (void)b; \
		for (int i = 0; i < N; i++) \
			MUST(FN(name, _alloc_init)(event, arguments, tag, &tasks[i])); \
		more = tasks[0]; \
		REFUSED(NO_MEMORY, FN(name, _alloc_init)(event, arguments, tag, &more)); \
		TEST_ASSERT_EQUAL_PTR(tasks[0], more); /* a failed call does not change it */ \
		REFUSED(INVALID_VALUE, FN(name, _alloc_init)(NULL, arguments, tag, &more)); \
		REFUSED(INVALID_VALUE, FN(name, _alloc_init)(event, arguments, tag, NULL)); \
		TEST_ASSERT_NULL(FN(name, _as_doca_task)(NULL)); \
		TEST_ASSERT_EQUAL_UINT64( \
			9, doca_task_get_user_data(FN(name, _as_doca_task)(tasks[0])).u64); \
		fields; \
		for (int i = 0; i < N; i++) \
			doca_task_free(FN(name, _as_doca_task)(tasks[i])); \
	}
#define WITH(...) __VA_ARGS__

KIND(get, &a, FIELD(get, ret_val_ptr, &a, &b))
KIND(notify_set, 5, FIELD(notify_set, set_val, 5, 6))
KIND(notify_add, WITH(5, &a),
     WITH(FIELD(notify_add, inc_val, 5, 6); FIELD(notify_add, fetched_val_ptr, &a, &b)))
KIND(wait_eq, WITH(5, 0xff),
     WITH(FIELD(wait_eq, wait_val, 5, 6); FIELD(wait_eq, mask, 0xff, 0xff00)))
KIND(wait_neq, WITH(5, 0xff),
     WITH(FIELD(wait_neq, wait_val, 5, 6); FIELD(wait_neq, mask, 0xff, 0xff00)))

static const struct {
	void (*set_up)(struct doca_sync_event *event, doca_error_t expected);
	void (*take_all)(struct doca_sync_event *event);
} kinds[] = {
	{set_up_get, take_all_get},
	{set_up_notify_set, take_all_notify_set},
	{set_up_notify_add, take_all_notify_add},
	{set_up_wait_eq, take_all_wait_eq},
	{set_up_wait_neq, take_all_wait_neq},
};
#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

static void test_each_kind_of_task_has_its_fields_and_its_number(void)
{
	struct doca_sync_event *event = new_event();
	struct doca_ctx *ctx = doca_sync_event_as_ctx(event);
	struct doca_pe *pe;

	MUST(doca_pe_create(&pe));
	MUST(doca_pe_connect_ctx(pe, ctx));
	for (size_t i = 0; i < N_KINDS; i++)
		kinds[i].set_up(event, DOCA_SUCCESS);
	MUST(doca_ctx_start(ctx));
	for (size_t i = 0; i < N_KINDS; i++) {
		kinds[i].take_all(event);
		kinds[i].set_up(event, DOCA_ERROR_NOT_PERMITTED);
	}
	MUST(doca_ctx_stop(ctx));
	MUST(doca_sync_event_destroy(event));
	MUST(doca_pe_destroy(pe));
}

/* -- configuration -- */

/* Each setter is rejected now, also with a valid buffer and address. */
static void expect_setters_rejected(struct doca_sync_event *event, struct doca_buf *buf,
				    uint64_t *addr)
{
	REFUSED(INVALID_VALUE, doca_sync_event_add_publisher_location_cpu(event, dev));
	REFUSED(INVALID_VALUE, doca_sync_event_add_publisher_location_remote_pci(event));
	REFUSED(INVALID_VALUE, doca_sync_event_add_publisher_location_remote_net(event));
	REFUSED(INVALID_VALUE, doca_sync_event_add_subscriber_location_cpu(event, dev));
	REFUSED(INVALID_VALUE, doca_sync_event_add_subscriber_location_remote_pci(event));
	REFUSED(BAD_STATE, doca_sync_event_set_addr(event, addr));
	REFUSED(BAD_STATE, doca_sync_event_set_doca_buf(event, buf));
}

static struct doca_mmap *map_of(void *memory, size_t length, uint32_t access)
{
	struct doca_mmap *map;

	MUST(doca_mmap_create(&map));
	MUST(doca_mmap_set_memrange(map, memory, length));
	MUST(doca_mmap_set_permissions(map, access));
	MUST(doca_mmap_add_dev(map, dev));
	MUST(doca_mmap_start(map));
	return map;
}

static struct doca_buf *buf_at(struct doca_buf_inventory *inventory, struct doca_mmap *map,
			       void *at, size_t length)
{
	struct doca_buf *buf;

	MUST(doca_buf_inventory_buf_get_by_addr(inventory, map, at, length, &buf));
	return buf;
}

static void use_as_cell(struct doca_sync_event *event, uint64_t *cell)
{
	uint64_t before;

	*cell = 40;
	MUST(doca_sync_event_start(event));
	MUST(doca_sync_event_update_add(event, 2, &before));
	TEST_ASSERT_EQUAL_UINT64(40, before);
	TEST_ASSERT_EQUAL_UINT64(42, *cell);
}

static void test_an_event_lives_in_a_buffer_that_may_be_written(void)
{
	static uint64_t memory[4];
	struct doca_buf_inventory *inventory;
	struct doca_mmap *map = map_of(memory, sizeof(memory), DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	struct doca_mmap *fixed = map_of(memory, sizeof(memory), DOCA_ACCESS_FLAG_LOCAL_READ_ONLY);
	struct doca_sync_event *event = new_event();
	struct doca_buf *good, *odd, *tight, *read_only;
	const uint8_t *blob;
	size_t sz;

	MUST(doca_buf_inventory_create(4, &inventory));
	MUST(doca_buf_inventory_start(inventory));
	good = buf_at(inventory, map, &memory[1], 8);
	odd = buf_at(inventory, map, (char *)memory + 4, 8);
	tight = buf_at(inventory, map, &memory[3], 7);
	read_only = buf_at(inventory, fixed, &memory[1], 8);
	REFUSED(INVALID_VALUE, doca_sync_event_set_doca_buf(event, NULL));
	REFUSED(INVALID_VALUE, doca_sync_event_set_doca_buf(event, odd));
	REFUSED(INVALID_VALUE, doca_sync_event_set_doca_buf(event, tight));
	REFUSED(NOT_PERMITTED, doca_sync_event_set_doca_buf(event, read_only));
	REFUSED(INVALID_VALUE, doca_sync_event_set_addr(event, NULL));
	REFUSED(INVALID_VALUE,
		doca_sync_event_set_addr(event, (uint64_t *)(void *)((char *)memory + 4)));
	MUST(doca_sync_event_set_doca_buf(event, good));
	use_as_cell(event, &memory[1]);
	expect_setters_rejected(event, good, &memory[2]);
	REFUSED(NOT_SUPPORTED, doca_sync_event_export_to_remote_pci(event, dev, &blob, &sz));
	REFUSED(NOT_SUPPORTED, doca_sync_event_export_to_remote_net(event, &blob, &sz));
	MUST(doca_sync_event_stop(event));
	MUST(doca_sync_event_set_addr(event, &memory[2]));
	use_as_cell(event, &memory[2]);
	MUST(doca_sync_event_destroy(event));
	MUST(doca_buf_dec_refcount(good, NULL));
	MUST(doca_buf_dec_refcount(odd, NULL));
	MUST(doca_buf_dec_refcount(tight, NULL));
	MUST(doca_buf_dec_refcount(read_only, NULL));
	MUST(doca_buf_inventory_destroy(inventory));
	MUST(doca_mmap_destroy(map));
	MUST(doca_mmap_destroy(fixed));
}

/* An event that was created from an export is usable without configuration and start. */
static void test_an_imported_event_is_ready_and_cannot_be_set_up(void)
{
	struct doca_sync_event *event = new_event(), *import;
	uint64_t own, value;
	const uint8_t *blob;
	size_t sz;

	MUST(doca_sync_event_start(event));
	MUST(doca_sync_event_export_to_remote_pci(event, dev, &blob, &sz));
	MUST(doca_sync_event_create_from_export(dev, blob, sz, &import));
	MUST(doca_sync_event_update_set(import, 77));
	MUST(doca_sync_event_get(event, &value));
	TEST_ASSERT_EQUAL_UINT64(77, value);
	REFUSED(INVALID_VALUE, doca_sync_event_add_publisher_location_remote_net(import));
	REFUSED(INVALID_VALUE, doca_sync_event_add_subscriber_location_cpu(import, dev));
	REFUSED(BAD_STATE, doca_sync_event_set_addr(import, &own));
	REFUSED(NOT_SUPPORTED, doca_sync_event_export_to_remote_pci(import, dev, &blob, &sz));
	MUST(doca_sync_event_destroy(import));
	MUST(doca_sync_event_destroy(event));
}

/* An event needs a publisher and a subscriber location. */
static void test_start_needs_both_locations_and_a_device(void)
{
	struct doca_sync_event *event;

	MUST(doca_sync_event_create(&event));
	REFUSED(INVALID_VALUE, doca_sync_event_add_publisher_location_cpu(event, NULL));
	MUST(doca_sync_event_add_publisher_location_remote_pci(event));
	REFUSED(INVALID_VALUE, doca_sync_event_start(event));
	MUST(doca_sync_event_add_subscriber_location_remote_pci(event));
	REFUSED(INVALID_VALUE, doca_sync_event_start(event));
	MUST(doca_sync_event_add_subscriber_location_cpu(event, dev));
	MUST(doca_sync_event_start(event));
	MUST(doca_sync_event_destroy(event));
}

static void test_devices_of_an_event_cannot_be_closed(void)
{
	struct doca_dev *second;
	struct doca_sync_event *event;
	struct doca_devinfo **list;
	uint32_t n;

	MUST(doca_devinfo_create_list(&list, &n));
	TEST_ASSERT_TRUE(n > 1);
	MUST(doca_dev_open(list[1], &second));
	MUST(doca_devinfo_destroy_list(list));
	TEST_ASSERT_TRUE(second != dev);
	MUST(doca_sync_event_create(&event));
	MUST(doca_sync_event_add_publisher_location_cpu(event, dev));
	MUST(doca_sync_event_add_subscriber_location_cpu(event, second));
	MUST(doca_sync_event_add_publisher_location_cpu(event, second)); /* is there already */
	REFUSED(IN_USE, doca_dev_close(dev));
	REFUSED(IN_USE, doca_dev_close(second));
	MUST(doca_sync_event_start(event));
	MUST(doca_sync_event_stop(event));
	REFUSED(IN_USE, doca_dev_close(second));
	MUST(doca_sync_event_destroy(event));
	MUST(doca_dev_close(second));
}

/* -- calls before start -- */

static void test_nothing_is_read_set_or_waited_for_before_start(void)
{
	static doca_error_t (*const waits[])(struct doca_sync_event * event, uint64_t value,
					     uint64_t mask) = {
		doca_sync_event_wait_gt,  doca_sync_event_wait_gt_yield,
		doca_sync_event_wait_eq,  doca_sync_event_wait_eq_yield,
		doca_sync_event_wait_neq, doca_sync_event_wait_neq_yield,
	};
	struct doca_sync_event *event = new_event();
	const uint8_t *blob;
	uint64_t value;
	size_t sz;

	REFUSED(INVALID_VALUE, doca_sync_event_get(event, &value));
	REFUSED(INVALID_VALUE, doca_sync_event_update_add(event, 1, &value));
	REFUSED(INVALID_VALUE, doca_sync_event_update_set(event, 1));
	for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
		REFUSED(INVALID_VALUE, waits[i](event, 0, 0));
		REFUSED(INVALID_VALUE, waits[i](NULL, 0, 0));
	}
	REFUSED(INVALID_VALUE, doca_sync_event_export_to_remote_pci(event, dev, &blob, &sz));
	REFUSED(INVALID_VALUE, doca_sync_event_export_to_remote_net(event, &blob, &sz));
	MUST(doca_sync_event_start(event));
	REFUSED(INVALID_VALUE, doca_sync_event_get(event, NULL));
	REFUSED(INVALID_VALUE, doca_sync_event_update_add(event, 1, NULL));
	MUST(doca_sync_event_destroy(event));
}

int main(void)
{
	UNITY_BEGIN();
	dev = open_dev();
	RUN_TEST(test_each_kind_of_task_has_its_fields_and_its_number);
	RUN_TEST(test_an_event_lives_in_a_buffer_that_may_be_written);
	RUN_TEST(test_an_imported_event_is_ready_and_cannot_be_set_up);
	RUN_TEST(test_start_needs_both_locations_and_a_device);
	RUN_TEST(test_devices_of_an_event_cannot_be_closed);
	RUN_TEST(test_nothing_is_read_set_or_waited_for_before_start);
	doca_dev_close(dev);
	return UNITY_END();
}
