/* SPDX-License-Identifier: BSD-3-Clause */
/* rxe.h - soft-RoCE devices of network interfaces: finding and making them. */
#ifndef RXE_H
#define RXE_H

#include <stddef.h>

#define RXE_NAME 64 /* bytes of a device's name, as the kernel has it */

/*
 * Name of the soft-RoCE device on a network interface; netdev "": of the only one on this machine.
 * sysfs: where /sys/class/infiniband is. -ENODEV: none; -ENOTUNIQ: several, and no interface was
 * named; -ENOMEM: not known.
 */
int rxe_find(const char *sysfs, const char *netdev, char name[RXE_NAME]);
int rxe_is_one(const char *sysfs, const char *name);
/*
 * The request for a link, as netlink wants it: 4 byte aligned buf. Returns its bytes, or -EMSGSIZE.
 */
int rxe_request(void *buf, size_t size, const char *name, const char *netdev);
/*
 * Make a device on an interface, called rxe_NETDEV. 0 or -errno of the kernel; -EPROTONOSUPPORT: it
 * has no RDMA at all.
 */
int rxe_create(const char *netdev, char name[RXE_NAME]);
/*
 * Could it? Asks the kernel and changes nothing; the name it would have in name. 0 or -errno, as
 * rxe_create.
 */
int rxe_may_create(const char *sysfs, const char *netdev, char name[RXE_NAME]);
/* What to do about that error. */
const char *rxe_advice(int rc);

#endif
