/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vhost_known.c - what the guest knows of the disk. Control thread.
 *
 * A front end such as QEMU reads the configuration space when it connects for the first time, and
 * not when it connects to a role that was started again. So the memory for requests in flight,
 * which the front end keeps, ends with the configuration space that the guest knows:
 *
 *      another geometry    no queue starts: the guest would use wrong blocks or limits
 *      another capacity    the role reports a change, until the front end has read the space
 */
#include <errno.h>
#include <string.h>

#include "vhost.h"

#define CAPACITY_BYTES 8u /* the first field of the configuration space */
#define REPORT_NS 1000000000ull
#define REPORTS 10u /* QEMU ignores a change while it starts the device, so report it again */

/* Returns the space that the guest knows; NULL: the front end keeps no memory for it. */
static uint8_t *known_of(const struct vhost_role *role)
{
	const struct gantry_region *inflight = role->inflight;

	if (!inflight || inflight->length < role->inflight_bytes)
		return NULL;
	return (uint8_t *)inflight->addr + inflight->length - VHOST_CONFIG_MAX;
}

static void report(void *arg)
{
	struct vhost_role *role = *(struct vhost_role **)arg;
	const uint8_t *known = known_of(role);
	uint8_t is[CAPACITY_BYTES];

	if (role->phase != VHOST_CONNECTED || !known || role->n_reports == 0)
		return;
	vhost_role_config(&role->device, 0, is, sizeof(is));
	if (memcmp(known, is, sizeof(is)) == 0)
		return;
	role->n_reports--;
	vhost_socket_config_changed(role);
	role->rh->after_cancel(role->rh, &role->reporter);
	role->rh->after(role->rh, REPORT_NS, report, &role->reporter);
}

int vhost_known_check(struct vhost_role *role)
{
	static const uint8_t unknown[CAPACITY_BYTES];
	uint8_t is[VHOST_CONFIG_MAX], *known = known_of(role);

	if (!known)
		return 0;
	vhost_role_config(&role->device, 0, is, sizeof(is));
	if (memcmp(known, unknown, sizeof(unknown)) == 0) {
		memcpy(known, is, sizeof(is));
		return 0;
	}
	if (memcmp(known + CAPACITY_BYTES, is + CAPACITY_BYTES, sizeof(is) - CAPACITY_BYTES) != 0) {
		role->device.fault =
			"the guest knows the disk with another block size, or with other limits: "
			"restore the volume, or restart the virtual machine";
		return -ESTALE;
	}
	role->reporter = role;
	role->n_reports = REPORTS;
	report(&role->reporter);
	return 0;
}

void vhost_known_read(struct vhost_device *device, uint32_t offset, void *to, uint32_t bytes)
{
	struct vhost_role *role =
		(struct vhost_role *)((char *)device - offsetof(struct vhost_role, device));
	uint8_t *known = known_of(role);

	vhost_role_config(device, offset, to, bytes);
	if (known && offset == 0 && bytes >= CAPACITY_BYTES)
		memcpy(known, to, CAPACITY_BYTES);
}

void vhost_known_clear(const struct gantry_region *inflight)
{
	memset(inflight->addr, 0, inflight->length - VHOST_CONFIG_MAX);
}
