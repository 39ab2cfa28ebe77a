/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doca_dev.h - devices (PCI functions of a card), and representors of functions on the other side
 * of the PCI bus
 */
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

/* Filters of doca_devinfo_rep_create_list(), as bits. */
enum doca_devinfo_rep_filter {
	DOCA_DEVINFO_REP_FILTER_ALL = 0,
	DOCA_DEVINFO_REP_FILTER_NET = 2,
	DOCA_DEVINFO_REP_FILTER_EMULATED = 4,
};

/*
 * List the devices of the profile of this process. The caller frees the list with
 * doca_devinfo_destroy_list(). Opened devices remain valid after that.
 * Errors:
 *     NO_MEMORY  memory allocation failed
 *     NOT_FOUND  there is no device, or the configuration is invalid, see the log
 */
DOCA_STABLE doca_error_t doca_devinfo_create_list(struct doca_devinfo ***dev_list,
						  uint32_t *nb_devs);

/* Free a list. Do not use its elements after that. Never returns IN_USE. */
DOCA_STABLE doca_error_t doca_devinfo_destroy_list(struct doca_devinfo **dev_list);

/*
 * List the representors of a device. filter: bits of doca_devinfo_rep_filter.
 * Errors:
 *     NOT_SUPPORTED  the device has no representor, or filter is EMULATED
 *     NO_MEMORY      memory allocation failed
 *     DRIVER         never returned
 */
DOCA_STABLE doca_error_t doca_devinfo_rep_create_list(struct doca_dev *dev, int filter,
						      struct doca_devinfo_rep ***dev_list_rep,
						      uint32_t *nb_devs_rep);

/* Free a list. Do not use its elements after that. Never returns IN_USE. */
DOCA_STABLE doca_error_t doca_devinfo_rep_destroy_list(struct doca_devinfo_rep **dev_list_rep);

/*
 * Open a device. All opens of a device return the same pointer and are counted.
 * Errors:
 *     NO_MEMORY  memory allocation failed
 *     NOT_CONNECTED, INITIALIZATION, NOT_SUPPORTED  never returned
 */
DOCA_STABLE doca_error_t doca_dev_open(struct doca_devinfo *devinfo, struct doca_dev **dev);

/*
 * Close a device: undo one open. NULL has no effect.
 * Errors:
 *     IN_USE  no other open remains, and objects created with the device still exist
 */
DOCA_STABLE doca_error_t doca_dev_close(struct doca_dev *dev);

/* Not supported. Returns NOT_SUPPORTED, never DRIVER or AGAIN. */
DOCA_EXPERIMENTAL doca_error_t doca_dev_accelerate_resource_reclaim(struct doca_dev *dev);

/*
 * Open a representor. All opens of a representor return the same pointer and are counted.
 * Errors:
 *     NO_MEMORY  memory allocation failed
 */
DOCA_STABLE doca_error_t doca_dev_rep_open(struct doca_devinfo_rep *devinfo,
					   struct doca_dev_rep **dev_rep);

/*
 * Close a representor: undo one open.
 * Errors:
 *     IN_USE  no other open remains, and a Comch server created with the representor exists
 */
DOCA_STABLE doca_error_t doca_dev_rep_close(struct doca_dev_rep *dev);

/* Returns the description of an open device. Returns NULL for NULL and for a closed device. */
DOCA_STABLE struct doca_devinfo *doca_dev_as_devinfo(const struct doca_dev *dev);

/* Returns the description of a representor. Returns NULL for NULL. */
DOCA_STABLE struct doca_devinfo_rep *doca_dev_rep_as_devinfo(struct doca_dev_rep *dev_rep);

/*
 * Get the PCI address as text, with a NUL: DOCA_DEVINFO_PCI_ADDR_SIZE bytes. Never returns
 * OPERATING_SYSTEM.
 */
DOCA_STABLE doca_error_t doca_devinfo_get_pci_addr_str(const struct doca_devinfo *devinfo,
						       char *pci_addr_str);

/*
 * Compare the PCI address with text such as "0000:b1:00.0" or "b1:00.0" (domain 0). Stores 1 if
 * equal, 0 if not. Returns INVALID_VALUE for text of another form. Never returns OPERATING_SYSTEM.
 */
DOCA_STABLE doca_error_t doca_devinfo_is_equal_pci_addr(const struct doca_devinfo *devinfo,
							const char *pci_addr_str,
							uint8_t *is_equal);

/*
 * Get the IPv4 address of the interface, in network byte order. size: bytes, at least
 * DOCA_DEVINFO_IPV4_ADDR_SIZE.
 * Errors:
 *     NOT_FOUND         the interface has no IPv4 address
 *     OPERATING_SYSTEM  getifaddrs(3) failed
 */
DOCA_STABLE doca_error_t doca_devinfo_get_ipv4_addr(const struct doca_devinfo *devinfo,
						    uint8_t *ipv4_addr, uint32_t size);

/*
 * Get the IPv6 address of the interface, in network byte order. size: bytes, at least
 * DOCA_DEVINFO_IPV6_ADDR_SIZE.
 * Errors:
 *     OPERATING_SYSTEM  the interface has no IPv6 address, or getifaddrs(3) failed
 */
DOCA_STABLE doca_error_t doca_devinfo_get_ipv6_addr(const struct doca_devinfo *devinfo,
						    uint8_t *ipv6_addr, uint32_t size);

/*
 * Get the MAC address of the port. size: bytes, at least DOCA_DEVINFO_MAC_ADDR_SIZE. Never returns
 * NOT_SUPPORTED.
 */
DOCA_STABLE doca_error_t doca_devinfo_get_mac_addr(const struct doca_devinfo *devinfo,
						   uint8_t *mac_addr, uint32_t size);

/*
 * Get the name of the network interface. size: bytes, at least DOCA_DEVINFO_IFACE_NAME_SIZE.
 * Errors:
 *     OPERATING_SYSTEM  the function has no network interface
 */
DOCA_STABLE doca_error_t doca_devinfo_get_iface_name(const struct doca_devinfo *devinfo,
						     char *iface_name, uint32_t size);

/*
 * Get the name of the RDMA device, such as "mlx5_0". size: bytes, at least
 * DOCA_DEVINFO_IBDEV_NAME_SIZE.
 */
DOCA_STABLE doca_error_t doca_devinfo_get_ibdev_name(const struct doca_devinfo *devinfo,
						     char *ibdev_name, uint32_t size);

/*
 * Get the local identifier of an InfiniBand port.
 * Errors:
 *     NOT_SUPPORTED  always: the ports are Ethernet ports
 *     DRIVER         never returned
 */
DOCA_STABLE doca_error_t doca_devinfo_get_lid(const struct doca_devinfo *devinfo, uint16_t *lid);

/* Get the rate of the port, in bits per second. Never returns DRIVER. */
DOCA_EXPERIMENTAL doca_error_t doca_devinfo_get_active_rate(const struct doca_devinfo *devinfo,
							    uint64_t *active_rate);

/* Get the number of the function, which is unique on its card. Never returns DRIVER. */
DOCA_EXPERIMENTAL doca_error_t doca_devinfo_get_vhca_id(const struct doca_devinfo *devinfo,
							uint16_t *vhca_id);

/*
 * Stores 1 if the device can hot-plug functions (second function: moderate notifications), 0 if
 * not. Never returns DRIVER.
 */
DOCA_STABLE doca_error_t doca_devinfo_cap_is_hotplug_manager_supported(
	const struct doca_devinfo *devinfo, uint8_t *is_hotplug_manager);
DOCA_EXPERIMENTAL doca_error_t doca_devinfo_cap_is_notification_moderation_supported(
	const struct doca_devinfo *devinfo, uint8_t *is_notification_moderation_supported);

/*
 * Stores 1 if the device supports DOCA_DEVINFO_REP_FILTER_ALL, 0 if not. Never returns DRIVER or
 * NOT_SUPPORTED.
 */
DOCA_STABLE doca_error_t doca_devinfo_rep_cap_is_filter_all_supported(
	const struct doca_devinfo *devinfo, uint8_t *filter_all_supported);

/*
 * Stores 1 if the device has NET representors, 0 if not. A program on the DPU uses this function to
 * select its device. Never returns DRIVER or NOT_SUPPORTED.
 */
DOCA_STABLE doca_error_t doca_devinfo_rep_cap_is_filter_net_supported(
	const struct doca_devinfo *devinfo, uint8_t *filter_net_supported);

/*
 * Stores 1 if the device supports DOCA_DEVINFO_REP_FILTER_EMULATED, 0 if not. Never returns DRIVER
 * or NOT_SUPPORTED.
 */
DOCA_STABLE doca_error_t doca_devinfo_rep_cap_is_filter_emulated_supported(
	const struct doca_devinfo *devinfo, uint8_t *filter_emulated_supported);

/*
 * Stores 1 if the device supports doca_dev_accelerate_resource_reclaim(), 0 if not. Never returns
 * DRIVER.
 */
DOCA_EXPERIMENTAL doca_error_t doca_devinfo_cap_is_accelerate_resource_reclaim_supported(
	const struct doca_devinfo *devinfo, uint8_t *is_accelerate_resource_reclaim);

/*
 * Get a unique name of the function that is the same after a restart. size: bytes, at least
 * DOCA_DEVINFO_REP_VUID_SIZE.
 */
DOCA_STABLE doca_error_t doca_devinfo_rep_get_vuid(const struct doca_devinfo_rep *devinfo_rep,
						   char *rep_vuid, uint32_t size);

/*
 * Get the PCI address of the represented function as text: DOCA_DEVINFO_REP_PCI_ADDR_SIZE bytes.
 * Never returns NO_MEMORY or UNEXPECTED.
 */
DOCA_STABLE doca_error_t
doca_devinfo_rep_get_pci_addr_str(const struct doca_devinfo_rep *devinfo_rep, char *pci_addr_str);

/* Get the type of the represented function. */
DOCA_STABLE doca_error_t doca_devinfo_rep_get_pci_func_type(
	const struct doca_devinfo_rep *devinfo_rep, enum doca_pci_func_type *pci_func_type);

/* Stores 1 if the represented function was hot-plugged, 0 if not. */
DOCA_STABLE doca_error_t doca_devinfo_rep_get_is_hotplug(const struct doca_devinfo_rep *devinfo_rep,
							 uint8_t *is_hotplug);

/*
 * Get the name of the network interface. size: bytes, at least DOCA_DEVINFO_IFACE_NAME_SIZE.
 * Errors:
 *     OPERATING_SYSTEM  the function has no network interface
 */
DOCA_EXPERIMENTAL doca_error_t doca_devinfo_rep_get_iface_name(
	const struct doca_devinfo_rep *devinfo_rep, char *iface_name, uint32_t size);

/* Get the number of the function, which is unique on its card. */
DOCA_EXPERIMENTAL doca_error_t
doca_devinfo_rep_get_vhca_id(const struct doca_devinfo_rep *devinfo_rep, uint16_t *vhca_id);

/*
 * Like doca_devinfo_is_equal_pci_addr(), for the represented function. Never returns NO_MEMORY or
 * UNEXPECTED.
 */
DOCA_STABLE doca_error_t doca_devinfo_rep_is_equal_pci_addr(
	const struct doca_devinfo_rep *devinfo_rep, const char *pci_addr_str, uint8_t *is_equal);

/* Get the type of the function: physical, virtual or subfunction. */
DOCA_EXPERIMENTAL doca_error_t doca_devinfo_get_pci_func_type(
	const struct doca_devinfo *devinfo, enum doca_pci_func_type *pci_func_type);

/*
 * Get the index of a subfunction.
 * Errors:
 *     NOT_SUPPORTED  the device is not a subfunction
 */
DOCA_EXPERIMENTAL doca_error_t doca_devinfo_get_sf_index(const struct doca_devinfo *devinfo,
							 uint32_t *sf_index);

#ifdef __cplusplus
}
#endif

#endif
