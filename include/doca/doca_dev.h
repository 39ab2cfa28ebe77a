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
 * Allocates an array of devinfo pointers and its count; must be freed with destroy_list; opened devices outlive it.
 * Errors: NO_MEMORY, NOT_FOUND.
 */
DOCA_STABLE doca_error_t doca_devinfo_create_list(struct doca_devinfo ***dev_list, uint32_t *nb_devs);

/* Frees the list; all its elements become invalid. Errors: IN_USE. */
DOCA_STABLE doca_error_t doca_devinfo_destroy_list(struct doca_devinfo **dev_list);

/*
 * Lists representors visible from an open device, filter bitmap (int). NOT_SUPPORTED where device has none. Errors:
 * NO_MEMORY, DRIVER.
 */
DOCA_STABLE doca_error_t doca_devinfo_rep_create_list(struct doca_dev *dev, int filter,
		struct doca_devinfo_rep ***dev_list_rep, uint32_t *nb_devs_rep);

/* Frees a representor list. Errors: IN_USE. */
DOCA_STABLE doca_error_t doca_devinfo_rep_destroy_list(struct doca_devinfo_rep **dev_list_rep);

/*
 * Opens or adds a reference: the same pointer comes back for the same device. Errors: NO_MEMORY, NOT_CONNECTED,
 * INITIALIZATION, NOT_SUPPORTED.
 */
DOCA_STABLE doca_error_t doca_dev_open(struct doca_devinfo *devinfo, struct doca_dev **dev);

/*
 * Drops one reference; last drop destroys. Must accept NULL with SUCCESS (samples close twice, second with NULL) -
 * NULL tolerance inferred. Errors: IN_USE.
 */
DOCA_STABLE doca_error_t doca_dev_close(struct doca_dev *dev);

/* Keeps resources cached on close; unused. Errors: DRIVER, AGAIN, NOT_SUPPORTED. */
DOCA_EXPERIMENTAL doca_error_t doca_dev_accelerate_resource_reclaim(struct doca_dev *dev);

/* Opens a representor from a list element. Errors: NO_MEMORY. */
DOCA_STABLE doca_error_t doca_dev_rep_open(struct doca_devinfo_rep *devinfo, struct doca_dev_rep **dev_rep);

/* Closes a representor. Errors: IN_USE. */
DOCA_STABLE doca_error_t doca_dev_rep_close(struct doca_dev_rep *dev);

/* devinfo for an open device (valid while open); NULL for a bad argument. */
DOCA_STABLE struct doca_devinfo *doca_dev_as_devinfo(const struct doca_dev *dev);

/* devinfo_rep of an open representor. */
DOCA_STABLE struct doca_devinfo_rep *doca_dev_rep_as_devinfo(struct doca_dev_rep *dev_rep);

/* Tells the pci addr str. Errors: OPERATING_SYSTEM. */
DOCA_STABLE doca_error_t doca_devinfo_get_pci_addr_str(const struct doca_devinfo *devinfo, char *pci_addr_str);

/*
 * Compares with "DDDD:BB:DD.F" or "BB:DD.F" (domain 0000 assumed); writes 0/1; malformed text -> INVALID_VALUE.
 * Errors: OPERATING_SYSTEM.
 */
DOCA_STABLE doca_error_t doca_devinfo_is_equal_pci_addr(const struct doca_devinfo *devinfo,
		const char *pci_addr_str, uint8_t *is_equal);

/* Tells the ipv4 addr. Errors: NOT_FOUND, OPERATING_SYSTEM. */
DOCA_STABLE doca_error_t doca_devinfo_get_ipv4_addr(const struct doca_devinfo *devinfo, uint8_t *ipv4_addr,
		uint32_t size);

/* Tells the ipv6 addr. Errors: OPERATING_SYSTEM. */
DOCA_STABLE doca_error_t doca_devinfo_get_ipv6_addr(const struct doca_devinfo *devinfo, uint8_t *ipv6_addr,
		uint32_t size);

/* Tells the mac addr. Errors: NOT_SUPPORTED. */
DOCA_STABLE doca_error_t doca_devinfo_get_mac_addr(const struct doca_devinfo *devinfo, uint8_t *mac_addr,
		uint32_t size);

/* Copies the netdev name; size must be >= DOCA_DEVINFO_IFACE_NAME_SIZE. Errors: OPERATING_SYSTEM. */
DOCA_STABLE doca_error_t doca_devinfo_get_iface_name(const struct doca_devinfo *devinfo, char *iface_name,
		uint32_t size);

/* Copies the IB device name (e.g. mlx5_0); size must be >= DOCA_DEVINFO_IBDEV_NAME_SIZE. */
DOCA_STABLE doca_error_t doca_devinfo_get_ibdev_name(const struct doca_devinfo *devinfo, char *ibdev_name,
		uint32_t size);

/* Tells the lid. Errors: DRIVER, NOT_SUPPORTED. */
DOCA_STABLE doca_error_t doca_devinfo_get_lid(const struct doca_devinfo *devinfo, uint16_t *lid);

/* Tells the active rate. Errors: DRIVER. */
DOCA_EXPERIMENTAL doca_error_t doca_devinfo_get_active_rate(const struct doca_devinfo *devinfo,
		uint64_t *active_rate);

/* Tells the vhca id. Errors: DRIVER. */
DOCA_EXPERIMENTAL doca_error_t doca_devinfo_get_vhca_id(const struct doca_devinfo *devinfo, uint16_t *vhca_id);

/* 1 or 0. Errors: DRIVER. */
DOCA_STABLE doca_error_t doca_devinfo_cap_is_hotplug_manager_supported(const struct doca_devinfo *devinfo,
		uint8_t *is_hotplug_manager);
DOCA_EXPERIMENTAL doca_error_t doca_devinfo_cap_is_notification_moderation_supported(
		const struct doca_devinfo *devinfo, uint8_t *is_notification_moderation_supported);

/* 1 or 0. Errors: DRIVER, NOT_SUPPORTED. */
DOCA_STABLE doca_error_t doca_devinfo_rep_cap_is_filter_all_supported(const struct doca_devinfo *devinfo,
		uint8_t *filter_all_supported);

/*
 * Writes 1 if the device can list NET representors; used to pick the DPU-side device. Errors: DRIVER, NOT_SUPPORTED.
 */
DOCA_STABLE doca_error_t doca_devinfo_rep_cap_is_filter_net_supported(const struct doca_devinfo *devinfo,
		uint8_t *filter_net_supported);

/* 1 or 0. Errors: DRIVER, NOT_SUPPORTED. */
DOCA_STABLE doca_error_t doca_devinfo_rep_cap_is_filter_emulated_supported(const struct doca_devinfo *devinfo,
		uint8_t *filter_emulated_supported);

/* 1 or 0. Errors: DRIVER. */
DOCA_EXPERIMENTAL doca_error_t doca_devinfo_cap_is_accelerate_resource_reclaim_supported(
		const struct doca_devinfo *devinfo, uint8_t *is_accelerate_resource_reclaim);

/* Copies the representor's stable vendor id (size >= DOCA_DEVINFO_VUID_SIZE). */
DOCA_STABLE doca_error_t doca_devinfo_rep_get_vuid(const struct doca_devinfo_rep *devinfo_rep, char *rep_vuid,
		uint32_t size);

/* Tells the pci addr str. Errors: NO_MEMORY, UNEXPECTED. */
DOCA_STABLE doca_error_t doca_devinfo_rep_get_pci_addr_str(const struct doca_devinfo_rep *devinfo_rep,
		char *pci_addr_str);

/* Tells the pci func type. */
DOCA_STABLE doca_error_t doca_devinfo_rep_get_pci_func_type(const struct doca_devinfo_rep *devinfo_rep,
		enum doca_pci_func_type *pci_func_type);

/* Tells the is hotplug. */
DOCA_STABLE doca_error_t doca_devinfo_rep_get_is_hotplug(const struct doca_devinfo_rep *devinfo_rep,
		uint8_t *is_hotplug);

/* Tells the iface name. Errors: OPERATING_SYSTEM. */
DOCA_EXPERIMENTAL doca_error_t doca_devinfo_rep_get_iface_name(const struct doca_devinfo_rep *devinfo_rep,
		char *iface_name, uint32_t size);

/* Tells the vhca id. */
DOCA_EXPERIMENTAL doca_error_t doca_devinfo_rep_get_vhca_id(const struct doca_devinfo_rep *devinfo_rep,
		uint16_t *vhca_id);

/* Same matching rule as the devinfo variant. Errors: NO_MEMORY, UNEXPECTED. */
DOCA_STABLE doca_error_t doca_devinfo_rep_is_equal_pci_addr(const struct doca_devinfo_rep *devinfo_rep,
		const char *pci_addr_str, uint8_t *is_equal);

/* PF / VF / SF of the local device; in 3.3 samples/common.c used by the search-by-SF and search-by-iface helpers. */
DOCA_EXPERIMENTAL doca_error_t doca_devinfo_get_pci_func_type(const struct doca_devinfo *devinfo,
		enum doca_pci_func_type *pci_func_type);

/* SF number of an SF device. */
DOCA_EXPERIMENTAL doca_error_t doca_devinfo_get_sf_index(const struct doca_devinfo *devinfo, uint32_t *sf_index);

#ifdef __cplusplus
}
#endif

#endif
