/* SPDX-License-Identifier: BSD-3-Clause */
/* doca_dev.h - devices, and representors of the functions of the other side */
#ifndef DOCA_DEV_H
#define DOCA_DEV_H

#include <stddef.h>
#include <stdint.h>

#include <doca_error.h>
#include <doca_types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DOCA_DEVINFO_VUID_SIZE 128
#define DOCA_DEVINFO_IPV4_ADDR_SIZE 4
#define DOCA_DEVINFO_IPV6_ADDR_SIZE 16
#define DOCA_DEVINFO_MAC_ADDR_SIZE 6
#define DOCA_DEVINFO_IFACE_NAME_SIZE 256
#define DOCA_DEVINFO_IBDEV_NAME_SIZE 64
#define DOCA_DEVINFO_PCI_ADDR_SIZE 13
#define DOCA_DEVINFO_PCI_BDF_SIZE 8
#define DOCA_DEVINFO_REP_VUID_SIZE 128
#define DOCA_DEVINFO_REP_PCI_ADDR_SIZE 13
#define DOCA_DEVINFO_REP_PCI_BDF_SIZE 8

struct doca_dev;
struct doca_dev_rep;
struct doca_devinfo;
struct doca_devinfo_rep;

enum doca_devinfo_rep_filter {
	DOCA_DEVINFO_REP_FILTER_ALL = 0,
	DOCA_DEVINFO_REP_FILTER_NET = 2,
	DOCA_DEVINFO_REP_FILTER_EMULATED = 4,
};

/*
 * All devices of this process's profile. Free with doca_devinfo_destroy_list; opened devices
 * outlive it. Errors:
 * NO_MEMORY, NOT_FOUND.
 */
DOCA_STABLE doca_error_t doca_devinfo_create_list(struct doca_devinfo ***dev_list,
						  uint32_t *nb_devs);

/* Its elements are invalid then. Errors: IN_USE. */
DOCA_STABLE doca_error_t doca_devinfo_destroy_list(struct doca_devinfo **dev_list);

/*
 * Functions of the other side that this device stands for; filter: bits of doca_devinfo_rep_filter.
 * NOT_SUPPORTED:
 * it has none. Errors: NO_MEMORY, DRIVER.
 */
DOCA_STABLE doca_error_t doca_devinfo_rep_create_list(struct doca_dev *dev, int filter,
						      struct doca_devinfo_rep ***dev_list_rep,
						      uint32_t *nb_devs_rep);

/* Its elements are invalid then. Errors: IN_USE. */
DOCA_STABLE doca_error_t doca_devinfo_rep_destroy_list(struct doca_devinfo_rep **dev_list_rep);

/*
 * The same pointer for each open of the same device; counted. Errors: NO_MEMORY, NOT_CONNECTED,
 * INITIALIZATION, NOT_SUPPORTED.
 */
DOCA_STABLE doca_error_t doca_dev_open(struct doca_devinfo *devinfo, struct doca_dev **dev);

/* Give one reference back. NULL is fine. IN_USE: something was made with it and still is. */
DOCA_STABLE doca_error_t doca_dev_close(struct doca_dev *dev);

/* A hint for slow memory; there is none here. Errors: DRIVER, AGAIN, NOT_SUPPORTED. */
DOCA_EXPERIMENTAL doca_error_t doca_dev_accelerate_resource_reclaim(struct doca_dev *dev);

/* Open the representor of a list. Errors: NO_MEMORY. */
DOCA_STABLE doca_error_t doca_dev_rep_open(struct doca_devinfo_rep *devinfo,
					   struct doca_dev_rep **dev_rep);

/* Close it. Errors: IN_USE. */
DOCA_STABLE doca_error_t doca_dev_rep_close(struct doca_dev_rep *dev);

/* What the device is; valid while it is open. NULL for NULL. */
DOCA_STABLE struct doca_devinfo *doca_dev_as_devinfo(const struct doca_dev *dev);

/* What the representor is; valid while it is open. NULL for NULL. */
DOCA_STABLE struct doca_devinfo_rep *doca_dev_rep_as_devinfo(struct doca_dev_rep *dev_rep);

/* Its address as text, into DOCA_DEVINFO_PCI_ADDR_SIZE bytes. Errors: OPERATING_SYSTEM. */
DOCA_STABLE doca_error_t doca_devinfo_get_pci_addr_str(const struct doca_devinfo *devinfo,
						       char *pci_addr_str);

/*
 * Is it "0000:b1:00.0", or "b1:00.0" with domain 0? 1 or 0; INVALID_VALUE for another form. Errors:
 * OPERATING_SYSTEM.
 */
DOCA_STABLE doca_error_t doca_devinfo_is_equal_pci_addr(const struct doca_devinfo *devinfo,
							const char *pci_addr_str,
							uint8_t *is_equal);

/*
 * Address of its interface, in network order; size DOCA_DEVINFO_IPV4_ADDR_SIZE. Errors: NOT_FOUND,
 * OPERATING_SYSTEM.
 */
DOCA_STABLE doca_error_t doca_devinfo_get_ipv4_addr(const struct doca_devinfo *devinfo,
						    uint8_t *ipv4_addr, uint32_t size);

/*
 * Address of its interface, in network order; size DOCA_DEVINFO_IPV6_ADDR_SIZE. Errors:
 * OPERATING_SYSTEM.
 */
DOCA_STABLE doca_error_t doca_devinfo_get_ipv6_addr(const struct doca_devinfo *devinfo,
						    uint8_t *ipv6_addr, uint32_t size);

/* Address of its port; size DOCA_DEVINFO_MAC_ADDR_SIZE. Errors: NOT_SUPPORTED. */
DOCA_STABLE doca_error_t doca_devinfo_get_mac_addr(const struct doca_devinfo *devinfo,
						   uint8_t *mac_addr, uint32_t size);

/*
 * Name of its network interface; size at least DOCA_DEVINFO_IFACE_NAME_SIZE. Errors:
 * OPERATING_SYSTEM.
 */
DOCA_STABLE doca_error_t doca_devinfo_get_iface_name(const struct doca_devinfo *devinfo,
						     char *iface_name, uint32_t size);

/* Name of its RDMA device, "mlx5_0"; size at least DOCA_DEVINFO_IBDEV_NAME_SIZE. */
DOCA_STABLE doca_error_t doca_devinfo_get_ibdev_name(const struct doca_devinfo *devinfo,
						     char *ibdev_name, uint32_t size);

/* Local id of its port, on InfiniBand. Errors: DRIVER, NOT_SUPPORTED. */
DOCA_STABLE doca_error_t doca_devinfo_get_lid(const struct doca_devinfo *devinfo, uint16_t *lid);

/* Bits per second of its port. Errors: DRIVER. */
DOCA_EXPERIMENTAL doca_error_t doca_devinfo_get_active_rate(const struct doca_devinfo *devinfo,
							    uint64_t *active_rate);

/* A number that no other function of the card has. Errors: DRIVER. */
DOCA_EXPERIMENTAL doca_error_t doca_devinfo_get_vhca_id(const struct doca_devinfo *devinfo,
							uint16_t *vhca_id);

/* 1 or 0. Errors: DRIVER. */
DOCA_STABLE doca_error_t doca_devinfo_cap_is_hotplug_manager_supported(
	const struct doca_devinfo *devinfo, uint8_t *is_hotplug_manager);
DOCA_EXPERIMENTAL doca_error_t doca_devinfo_cap_is_notification_moderation_supported(
	const struct doca_devinfo *devinfo, uint8_t *is_notification_moderation_supported);

/* 1 or 0. Errors: DRIVER, NOT_SUPPORTED. */
DOCA_STABLE doca_error_t doca_devinfo_rep_cap_is_filter_all_supported(
	const struct doca_devinfo *devinfo, uint8_t *filter_all_supported);

/*
 * Writes 1 if the device can list NET representors; used to pick the DPU-side device. Errors:
 * DRIVER, NOT_SUPPORTED.
 */
DOCA_STABLE doca_error_t doca_devinfo_rep_cap_is_filter_net_supported(
	const struct doca_devinfo *devinfo, uint8_t *filter_net_supported);

/* 1 or 0. Errors: DRIVER, NOT_SUPPORTED. */
DOCA_STABLE doca_error_t doca_devinfo_rep_cap_is_filter_emulated_supported(
	const struct doca_devinfo *devinfo, uint8_t *filter_emulated_supported);

/* 1 or 0. Errors: DRIVER. */
DOCA_EXPERIMENTAL doca_error_t doca_devinfo_cap_is_accelerate_resource_reclaim_supported(
	const struct doca_devinfo *devinfo, uint8_t *is_accelerate_resource_reclaim);

/* A name that stays the same over restarts; size at least DOCA_DEVINFO_REP_VUID_SIZE. */
DOCA_STABLE doca_error_t doca_devinfo_rep_get_vuid(const struct doca_devinfo_rep *devinfo_rep,
						   char *rep_vuid, uint32_t size);

/*
 * Address of the function that it stands for, into DOCA_DEVINFO_REP_PCI_ADDR_SIZE bytes. Errors:
 * NO_MEMORY,
 * UNEXPECTED.
 */
DOCA_STABLE doca_error_t
doca_devinfo_rep_get_pci_addr_str(const struct doca_devinfo_rep *devinfo_rep, char *pci_addr_str);

/* Kind of the function that it stands for. */
DOCA_STABLE doca_error_t doca_devinfo_rep_get_pci_func_type(
	const struct doca_devinfo_rep *devinfo_rep, enum doca_pci_func_type *pci_func_type);

/* 1 when it was plugged in while the machine ran, or 0. */
DOCA_STABLE doca_error_t doca_devinfo_rep_get_is_hotplug(const struct doca_devinfo_rep *devinfo_rep,
							 uint8_t *is_hotplug);

/*
 * Name of its network interface; size at least DOCA_DEVINFO_IFACE_NAME_SIZE. Errors:
 * OPERATING_SYSTEM.
 */
DOCA_EXPERIMENTAL doca_error_t doca_devinfo_rep_get_iface_name(
	const struct doca_devinfo_rep *devinfo_rep, char *iface_name, uint32_t size);

/* A number that no other function of the card has. */
DOCA_EXPERIMENTAL doca_error_t
doca_devinfo_rep_get_vhca_id(const struct doca_devinfo_rep *devinfo_rep, uint16_t *vhca_id);

/* The same of the function that it stands for. Errors: NO_MEMORY, UNEXPECTED. */
DOCA_STABLE doca_error_t doca_devinfo_rep_is_equal_pci_addr(
	const struct doca_devinfo_rep *devinfo_rep, const char *pci_addr_str, uint8_t *is_equal);

/* Physical, virtual or subfunction. */
DOCA_EXPERIMENTAL doca_error_t doca_devinfo_get_pci_func_type(
	const struct doca_devinfo *devinfo, enum doca_pci_func_type *pci_func_type);

/* Number of a subfunction; NOT_SUPPORTED for others. */
DOCA_EXPERIMENTAL doca_error_t doca_devinfo_get_sf_index(const struct doca_devinfo *devinfo,
							 uint32_t *sf_index);

#ifdef __cplusplus
}
#endif

#endif
