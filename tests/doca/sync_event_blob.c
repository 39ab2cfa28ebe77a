/* SPDX-License-Identifier: BSD-3-Clause */
/* Export descriptors of sync events: which events have one, and the errors of invalid ones. */
#include <doca_dev.h>
#include <doca_mmap.h>
#include <doca_sync_event.h>

#include <stdlib.h>
#include <string.h>

#include "mmap/mmap_blob.h"
#include "doca/sync_event_rig.h"
#include "unity.h"

static void test_export_needs_its_location(void)
{
	struct doca_sync_event *event;
	const uint8_t *blob;
	size_t sz;
	uint64_t own = 0;

	MUST(doca_sync_event_create(&event));
	MUST(doca_sync_event_add_publisher_location_remote_net(event));
	MUST(doca_sync_event_add_subscriber_location_cpu(event, dev));
	TEST_ASSERT_EQUAL(DOCA_ERROR_INVALID_VALUE,
			  doca_sync_event_export_to_remote_net(event, &blob, &sz));
	MUST(doca_sync_event_start(event));
	TEST_ASSERT_NOT_EQUAL(DOCA_SUCCESS,
			      doca_sync_event_export_to_remote_pci(event, dev, &blob, &sz));
	MUST(doca_sync_event_export_to_remote_net(event, &blob, &sz));
	MUST(doca_sync_event_stop(event));
	MUST(doca_sync_event_set_addr(event, &own));
	MUST(doca_sync_event_start(event));
	TEST_ASSERT_EQUAL(DOCA_ERROR_NOT_SUPPORTED,
			  doca_sync_event_export_to_remote_net(event, &blob, &sz));
	MUST(doca_sync_event_destroy(event));
}

static void test_blob_of_one_kind_is_not_one_of_the_other(void)
{
	struct doca_sync_event *event = new_event(), *wrong;
	struct doca_sync_event_remote_net *net, *wrong_net;
	const uint8_t *blob;
	size_t sz;

	MUST(doca_sync_event_start(event));
	MUST(doca_sync_event_export_to_remote_net(event, &blob, &sz));
	MUST(doca_sync_event_remote_net_create_from_export(dev, blob, sz, &net));
	TEST_ASSERT_EQUAL(DOCA_ERROR_INVALID_VALUE,
			  doca_sync_event_create_from_export(dev, blob, sz, &wrong));
	MUST(doca_sync_event_export_to_remote_pci(event, dev, &blob, &sz));
	TEST_ASSERT_EQUAL(DOCA_ERROR_INVALID_VALUE,
			  doca_sync_event_remote_net_create_from_export(dev, blob, sz, &wrong_net));
	MUST(doca_sync_event_remote_net_destroy(net));
	MUST(doca_sync_event_destroy(event));
}

/*
 * Import with each byte of the blob changed, and with each length: the import either fails or
 * returns an event that can be used.
 */
static void test_bad_blob_is_an_error(void)
{
	struct doca_sync_event *event = new_event(), *bad;
	const uint8_t *blob;
	uint8_t *copy;
	size_t sz;
	uint64_t value;

	MUST(doca_sync_event_start(event));
	MUST(doca_sync_event_export_to_remote_pci(event, dev, &blob, &sz));
	for (size_t i = 0; i < sz; i++) {
		copy = malloc(i + 1);
		memcpy(copy, blob, i);
		TEST_ASSERT_NOT_EQUAL(DOCA_SUCCESS,
				      doca_sync_event_create_from_export(dev, copy, i, &bad));
		free(copy);
	}
	copy = malloc(sz);
	for (size_t i = 0; i < sz; i++) {
		memcpy(copy, blob, sz);
		copy[i] ^= 0x81;
		if (doca_sync_event_create_from_export(dev, copy, sz, &bad) != DOCA_SUCCESS)
			continue;
		MUST(doca_sync_event_get(bad, &value));
		MUST(doca_sync_event_destroy(bad));
	}
	free(copy);
	MUST(doca_sync_event_destroy(event));
}

/*
 * A peer exports read-only memory as an event. An importer could not update it, so import rejects
 * it.
 */
static void test_event_in_read_only_memory_cannot_be_imported(void)
{
	static _Alignas(8) char page[64];
	struct doca_sync_event *event = new_event(), *mute;
	const uint8_t *blob;
	uint8_t copy[1024];
	struct doca_mmap *map;
	const void *desc;
	size_t sz, length;

	MUST(doca_sync_event_start(event));
	MUST(doca_sync_event_export_to_remote_pci(event, dev, &blob, &sz));
	MUST(doca_mmap_create(&map));
	MUST(doca_mmap_add_dev(map, dev));
	MUST(doca_mmap_set_permissions(map, DOCA_ACCESS_FLAG_PCI_READ_ONLY));
	MUST(doca_mmap_set_memrange(map, page, sizeof(page)));
	MUST(doca_mmap_start(map));
	MUST(doca_mmap_export_pci(map, dev, &desc, &length));
	memcpy(copy, blob, sz);
	memcpy(copy + 8, &(uint64_t){(uintptr_t)page}, 8); /* address of the value */
	memcpy(copy + sz - length, desc, length);
	TEST_ASSERT_EQUAL(DOCA_ERROR_INVALID_VALUE,
			  doca_sync_event_create_from_export(dev, copy, sz, &mute));
	MUST(doca_mmap_destroy(map));
	MUST(doca_sync_event_destroy(event));
}

/*
 * The descriptor of an event of another machine, or of this machine before it was rebooted.
 */
static void test_an_event_of_another_machine_is_out_of_reach(void)
{
	struct doca_sync_event *event = new_event(), *far;
	struct doca_sync_event_remote_net *net;
	uint8_t copy[1024];
	struct gd_blob map;
	const uint8_t *blob;
	size_t sz;

	MUST(doca_sync_event_start(event));
	for (int i = 0; i < 2; i++) {
		MUST(i ? doca_sync_event_export_to_remote_net(event, &blob, &sz)
		       : doca_sync_event_export_to_remote_pci(event, dev, &blob, &sz));
		memcpy(copy, blob, sz);
		memcpy(&map, copy + sz - sizeof(map), sizeof(map));
		map.host ^= 1;
		gd_blob_seal(&map);
		memcpy(copy + sz - sizeof(map), &map, sizeof(map));
		TEST_ASSERT_EQUAL(
			DOCA_ERROR_NOT_SUPPORTED,
			i ? doca_sync_event_remote_net_create_from_export(dev, copy, sz, &net)
			  : doca_sync_event_create_from_export(dev, copy, sz, &far));
	}
	MUST(doca_sync_event_destroy(event));
}

int main(void)
{
	UNITY_BEGIN();
	dev = open_dev();
	RUN_TEST(test_export_needs_its_location);
	RUN_TEST(test_blob_of_one_kind_is_not_one_of_the_other);
	RUN_TEST(test_bad_blob_is_an_error);
	RUN_TEST(test_event_in_read_only_memory_cannot_be_imported);
	RUN_TEST(test_an_event_of_another_machine_is_out_of_reach);
	doca_dev_close(dev);
	return UNITY_END();
}
