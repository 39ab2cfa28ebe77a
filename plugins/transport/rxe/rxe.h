/* SPDX-License-Identifier: BSD-3-Clause */
/* rxe.h - find and create soft-RoCE devices of network interfaces. */
#ifndef RXE_H
#define RXE_H

#include <stddef.h>

#define RXE_NAME 64 /* bytes of a device name, as in the kernel */

/*
 * Find the soft-RoCE device of a network interface.
 *
 *     sysfs   path of /sys/class/infiniband
 *     netdev  name of the interface; "": use the only soft-RoCE device of this machine
 *     name    result: name of the device
 *
 * Returns 0, or
 *
 *     -ENODEV    no such device
 *     -ENOTUNIQ  several devices, and netdev is ""
 *     -ENOMEM    out of memory
 */
int rxe_find(const char *sysfs, const char *netdev, char name[RXE_NAME]);
int rxe_is_one(const char *sysfs, const char *name);
/*
 * Build the netlink request that creates a device. buf: aligned to 4 bytes. Returns its length, or
 * -EMSGSIZE.
 */
int rxe_request(void *buf, size_t size, const char *name, const char *netdev);
/*
 * Create the device rxe_NETDEV on an interface. Returns 0 or -errno of the kernel;
 * -EPROTONOSUPPORT: the kernel has no RDMA support.
 */
int rxe_create(const char *netdev, char name[RXE_NAME]);
/*
 * Check whether rxe_create() would succeed, without side effects. Sets `name`. Returns as
 * rxe_create().
 */
int rxe_may_create(const char *sysfs, const char *netdev, char name[RXE_NAME]);
/* Returns the remedy for an error of rxe_create() or rxe_may_create(), for a message. */
const char *rxe_advice(int rc);

#endif
