/* SPDX-License-Identifier: BSD-3-Clause */
/* sync_event_rig.h - a device and an event on it, for the tests of sync events. */
#ifndef DOCA_SYNC_EVENT_RIG_H
#define DOCA_SYNC_EVENT_RIG_H

#include <doca_dev.h>
#include <doca_sync_event.h>

#include "unity.h"

#define MUST(call) TEST_ASSERT_EQUAL_MESSAGE(DOCA_SUCCESS, (call), #call)

static struct doca_dev *dev;

static struct doca_dev *open_dev(void)
{
	struct doca_devinfo **list;
	uint32_t n;
	struct doca_dev *opened = NULL;

	if (doca_devinfo_create_list(&list, &n) != DOCA_SUCCESS || n == 0)
		return NULL;
	if (doca_dev_open(list[0], &opened) != DOCA_SUCCESS)
		opened = NULL;
	doca_devinfo_destroy_list(list);
	return opened;
}

/* Returns an event of this process that can be exported by PCI and over a network. */
static struct doca_sync_event *new_event(void)
{
	struct doca_sync_event *event;

	MUST(doca_sync_event_create(&event));
	MUST(doca_sync_event_add_publisher_location_cpu(event, dev));
	MUST(doca_sync_event_add_publisher_location_remote_pci(event));
	MUST(doca_sync_event_add_publisher_location_remote_net(event));
	MUST(doca_sync_event_add_subscriber_location_cpu(event, dev));
	MUST(doca_sync_event_add_subscriber_location_remote_pci(event));
	return event;
}

#endif
