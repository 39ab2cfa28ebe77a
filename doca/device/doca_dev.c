/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doca_dev.c - public functions of devices and representors: lists, open and close, properties
 *
 * A devinfo exists until the process ends; a list is an array of pointers. The library keeps a
 * closed device and reuses it for the next open. So a pointer to a closed device never dangles, and
 * functions that get it return an error.
 */
#include "device/device_list.h"

#include "common/gd_log.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EMULATED_RATE 100000000000ull /* bits per second */
#define FILTERS (DOCA_DEVINFO_REP_FILTER_NET | DOCA_DEVINFO_REP_FILTER_EMULATED)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards references and users */

/* Returns whether an untrusted pointer is one of the functions. */
static bool is_info(const struct doca_devinfo *info)
{
	struct doca_devinfo *const *all;
	uint32_t n;

	if (!info || gd_devices(&all, &n) != DOCA_SUCCESS)
		return false;
	for (uint32_t i = 0; i < n; i++)
		if (all[i] == info)
			return true;
	return false;
}

static bool is_rep(const struct doca_devinfo_rep *rep)
{
	struct doca_devinfo *const *all;
	uint32_t n;

	if (!rep || gd_devices(&all, &n) != DOCA_SUCCESS)
		return false;
	for (uint32_t i = 0; i < n; i++)
		if (all[i]->n_reps > 0 && rep >= all[i]->reps &&
		    rep < all[i]->reps + all[i]->n_reps)
			return true;
	return false;
}

/* -- lists -- */

doca_error_t doca_devinfo_create_list(struct doca_devinfo ***dev_list, uint32_t *nb_devs)
{
	struct doca_devinfo *const *all, **list;
	doca_error_t result;
	uint32_t n;

	if (!dev_list || !nb_devs)
		return DOCA_ERROR_INVALID_VALUE;
	result = gd_devices(&all, &n);
	if (result != DOCA_SUCCESS)
		return result;
	if (n == 0)
		return DOCA_ERROR_NOT_FOUND;
	list = calloc(n, sizeof(*list));
	if (!list)
		return DOCA_ERROR_NO_MEMORY;
	memcpy(list, all, n * sizeof(*list));
	*dev_list = list;
	*nb_devs = n;
	return DOCA_SUCCESS;
}

doca_error_t doca_devinfo_destroy_list(struct doca_devinfo **dev_list)
{
	if (!dev_list)
		return DOCA_ERROR_INVALID_VALUE;
	free(dev_list);
	return DOCA_SUCCESS;
}

bool gd_dev_is_open(const struct doca_dev *dev)
{
	return dev && __atomic_load_n(&dev->references, __ATOMIC_RELAXED) > 0;
}

bool gd_rep_is_open(const struct doca_dev_rep *rep)
{
	return rep && __atomic_load_n(&rep->references, __ATOMIC_RELAXED) > 0;
}

doca_error_t doca_devinfo_rep_create_list(struct doca_dev *dev, int filter,
					  struct doca_devinfo_rep ***dev_list_rep,
					  uint32_t *nb_devs_rep)
{
	struct doca_devinfo_rep **list;
	const struct doca_devinfo *info;

	if (!gd_dev_is_open(dev) || !dev_list_rep || !nb_devs_rep || (filter & ~FILTERS) != 0)
		return DOCA_ERROR_INVALID_VALUE;
	info = dev->info;
	if (info->n_reps == 0 || filter == DOCA_DEVINFO_REP_FILTER_EMULATED)
		return DOCA_ERROR_NOT_SUPPORTED;
	list = calloc(info->n_reps, sizeof(*list));
	if (!list)
		return DOCA_ERROR_NO_MEMORY;
	for (uint32_t i = 0; i < info->n_reps; i++)
		list[i] = &info->reps[i];
	*dev_list_rep = list;
	*nb_devs_rep = info->n_reps;
	return DOCA_SUCCESS;
}

doca_error_t doca_devinfo_rep_destroy_list(struct doca_devinfo_rep **dev_list_rep)
{
	if (!dev_list_rep)
		return DOCA_ERROR_INVALID_VALUE;
	free(dev_list_rep);
	return DOCA_SUCCESS;
}

/* -- open and close -- */

doca_error_t doca_dev_open(struct doca_devinfo *devinfo, struct doca_dev **dev)
{
	doca_error_t result = DOCA_ERROR_NO_MEMORY;

	if (!is_info(devinfo) || !dev)
		return DOCA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	if (!devinfo->dev && (devinfo->dev = calloc(1, sizeof(*devinfo->dev))))
		devinfo->dev->info = devinfo;
	if (devinfo->dev) {
		__atomic_fetch_add(&devinfo->dev->references, 1, __ATOMIC_RELAXED);
		*dev = devinfo->dev;
		result = DOCA_SUCCESS;
	}
	pthread_mutex_unlock(&lock);
	return result;
}

/*
 * Undo one open. INVALID_VALUE: the device or representor is closed; IN_USE: no other open remains,
 * and objects created with it exist.
 */
static doca_error_t drop(uint32_t *references, const uint32_t *users)
{
	doca_error_t result = DOCA_SUCCESS;

	pthread_mutex_lock(&lock);
	if (*references == 0)
		result = DOCA_ERROR_INVALID_VALUE;
	else if (*references == 1 && *users > 0)
		result = DOCA_ERROR_IN_USE;
	else
		__atomic_fetch_sub(references, 1, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&lock);
	return result;
}

doca_error_t doca_dev_close(struct doca_dev *dev)
{
	return !dev ? DOCA_SUCCESS : drop(&dev->references, &dev->users);
}

static void change_users(uint32_t *users, uint32_t by)
{
	pthread_mutex_lock(&lock);
	*users += by;
	pthread_mutex_unlock(&lock);
}

void gd_dev_hold(struct doca_dev *dev)
{
	if (dev)
		change_users(&dev->users, 1);
}

void gd_dev_release(struct doca_dev *dev)
{
	if (dev)
		change_users(&dev->users, (uint32_t)-1);
}

void gd_rep_hold(struct doca_dev_rep *rep)
{
	if (rep)
		change_users(&rep->users, 1);
}

void gd_rep_release(struct doca_dev_rep *rep)
{
	if (rep)
		change_users(&rep->users, (uint32_t)-1);
}

doca_error_t doca_dev_accelerate_resource_reclaim(struct doca_dev *dev)
{
	return gd_dev_is_open(dev) ? DOCA_ERROR_NOT_SUPPORTED : DOCA_ERROR_INVALID_VALUE;
}

doca_error_t doca_dev_rep_open(struct doca_devinfo_rep *devinfo, struct doca_dev_rep **dev_rep)
{
	doca_error_t result = DOCA_ERROR_NO_MEMORY;

	if (!is_rep(devinfo) || !dev_rep)
		return DOCA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	if (!devinfo->rep)
		devinfo->rep = calloc(1, sizeof(*devinfo->rep));
	if (devinfo->rep) {
		devinfo->rep->info = devinfo;
		devinfo->rep->dev = devinfo->of->dev;
		__atomic_fetch_add(&devinfo->rep->references, 1, __ATOMIC_RELAXED);
		*dev_rep = devinfo->rep;
		result = DOCA_SUCCESS;
	}
	pthread_mutex_unlock(&lock);
	return result;
}

doca_error_t doca_dev_rep_close(struct doca_dev_rep *dev)
{
	return !dev ? DOCA_ERROR_INVALID_VALUE : drop(&dev->references, &dev->users);
}

struct doca_devinfo *doca_dev_as_devinfo(const struct doca_dev *dev)
{
	return gd_dev_is_open(dev) ? dev->info : NULL;
}

struct doca_devinfo_rep *doca_dev_rep_as_devinfo(struct doca_dev_rep *dev_rep)
{
	return dev_rep ? dev_rep->info : NULL;
}

/* -- properties -- */

static doca_error_t store_text(char *to, uint32_t size, uint32_t needed, const char *text)
{
	if (!to || size < needed)
		return DOCA_ERROR_INVALID_VALUE;
	if (text[0] == '\0')
		return DOCA_ERROR_OPERATING_SYSTEM;
	snprintf(to, needed, "%s", text);
	return DOCA_SUCCESS;
}

static doca_error_t store_byte(const struct doca_devinfo *devinfo, uint8_t *to, bool value)
{
	if (!is_info(devinfo) || !to)
		return DOCA_ERROR_INVALID_VALUE;
	*to = value;
	return DOCA_SUCCESS;
}

static doca_error_t is_equal(const char *pci, const char *text, uint8_t *equal)
{
	char full[GD_PCI_FULL];

	if (!text || !equal || !gd_pci_parse(text, full))
		return DOCA_ERROR_INVALID_VALUE;
	*equal = strcmp(pci, full) == 0;
	return DOCA_SUCCESS;
}

doca_error_t doca_devinfo_get_pci_addr_str(const struct doca_devinfo *devinfo, char *pci_addr_str)
{
	if (!is_info(devinfo))
		return DOCA_ERROR_INVALID_VALUE;
	return store_text(pci_addr_str, DOCA_DEVINFO_PCI_ADDR_SIZE, DOCA_DEVINFO_PCI_ADDR_SIZE,
			  devinfo->pci);
}

doca_error_t doca_devinfo_is_equal_pci_addr(const struct doca_devinfo *devinfo,
					    const char *pci_addr_str, uint8_t *equal)
{
	return is_info(devinfo) ? is_equal(devinfo->pci, pci_addr_str, equal)
				: DOCA_ERROR_INVALID_VALUE;
}

doca_error_t doca_devinfo_get_iface_name(const struct doca_devinfo *devinfo, char *iface_name,
					 uint32_t size)
{
	if (!is_info(devinfo))
		return DOCA_ERROR_INVALID_VALUE;
	return store_text(iface_name, size, DOCA_DEVINFO_IFACE_NAME_SIZE, devinfo->iface);
}

doca_error_t doca_devinfo_get_ibdev_name(const struct doca_devinfo *devinfo, char *ibdev_name,
					 uint32_t size)
{
	if (!is_info(devinfo))
		return DOCA_ERROR_INVALID_VALUE;
	return store_text(ibdev_name, size, DOCA_DEVINFO_IBDEV_NAME_SIZE, devinfo->ibdev);
}

/* Get the first address of a family of an interface. NOT_FOUND: no such address. */
static doca_error_t interface_address(const char *iface, int family, void *to, size_t size)
{
	doca_error_t result = DOCA_ERROR_NOT_FOUND;
	struct ifaddrs *all, *i;

	if (getifaddrs(&all) != 0)
		return DOCA_ERROR_OPERATING_SYSTEM;
	for (i = all; i && result != DOCA_SUCCESS; i = i->ifa_next) {
		const void *from;

		if (!i->ifa_addr || i->ifa_addr->sa_family != family ||
		    strcmp(i->ifa_name, iface) != 0)
			continue;
		from = family == AF_INET ? (void *)&((struct sockaddr_in *)i->ifa_addr)->sin_addr
					 : (void *)&((struct sockaddr_in6 *)i->ifa_addr)->sin6_addr;
		memcpy(to, from, size);
		result = DOCA_SUCCESS;
	}
	freeifaddrs(all);
	return result;
}

/* Get the address of an interface. An emulated interface has the loopback address. */
static doca_error_t get_address(const struct doca_devinfo *devinfo, int family, void *to,
				size_t size)
{
	doca_error_t result = interface_address(devinfo->iface, family, to, size);

	if (result == DOCA_ERROR_NOT_FOUND && !devinfo->network)
		result = inet_pton(family, family == AF_INET ? "127.0.0.1" : "::1", to) == 1
				 ? DOCA_SUCCESS
				 : result;
	return result;
}

doca_error_t doca_devinfo_get_ipv4_addr(const struct doca_devinfo *devinfo, uint8_t *ipv4_addr,
					uint32_t size)
{
	if (!is_info(devinfo) || !ipv4_addr || size < DOCA_DEVINFO_IPV4_ADDR_SIZE)
		return DOCA_ERROR_INVALID_VALUE;
	return get_address(devinfo, AF_INET, ipv4_addr, DOCA_DEVINFO_IPV4_ADDR_SIZE);
}

doca_error_t doca_devinfo_get_ipv6_addr(const struct doca_devinfo *devinfo, uint8_t *ipv6_addr,
					uint32_t size)
{
	doca_error_t result;

	if (!is_info(devinfo) || !ipv6_addr || size < DOCA_DEVINFO_IPV6_ADDR_SIZE)
		return DOCA_ERROR_INVALID_VALUE;
	result = get_address(devinfo, AF_INET6, ipv6_addr, DOCA_DEVINFO_IPV6_ADDR_SIZE);
	return result == DOCA_ERROR_NOT_FOUND ? DOCA_ERROR_OPERATING_SYSTEM : result;
}

doca_error_t doca_devinfo_get_mac_addr(const struct doca_devinfo *devinfo, uint8_t *mac_addr,
				       uint32_t size)
{
	if (!is_info(devinfo) || !mac_addr || size < DOCA_DEVINFO_MAC_ADDR_SIZE)
		return DOCA_ERROR_INVALID_VALUE;
	memcpy(mac_addr, devinfo->mac, DOCA_DEVINFO_MAC_ADDR_SIZE);
	return DOCA_SUCCESS;
}

/* The ports are Ethernet ports, which have no LID. */
doca_error_t doca_devinfo_get_lid(const struct doca_devinfo *devinfo, uint16_t *lid)
{
	return is_info(devinfo) && lid ? DOCA_ERROR_NOT_SUPPORTED : DOCA_ERROR_INVALID_VALUE;
}

doca_error_t doca_devinfo_get_active_rate(const struct doca_devinfo *devinfo, uint64_t *active_rate)
{
	if (!is_info(devinfo) || !active_rate)
		return DOCA_ERROR_INVALID_VALUE;
	*active_rate = EMULATED_RATE;
	return DOCA_SUCCESS;
}

doca_error_t doca_devinfo_get_vhca_id(const struct doca_devinfo *devinfo, uint16_t *vhca_id)
{
	if (!is_info(devinfo) || !vhca_id)
		return DOCA_ERROR_INVALID_VALUE;
	*vhca_id = (uint16_t)(devinfo->index + 1);
	return DOCA_SUCCESS;
}

doca_error_t doca_devinfo_get_pci_func_type(const struct doca_devinfo *devinfo,
					    enum doca_pci_func_type *pci_func_type)
{
	if (!is_info(devinfo) || !pci_func_type)
		return DOCA_ERROR_INVALID_VALUE;
	*pci_func_type = DOCA_PCI_FUNC_TYPE_PF;
	return DOCA_SUCCESS;
}

/* No function is a subfunction. */
doca_error_t doca_devinfo_get_sf_index(const struct doca_devinfo *devinfo, uint32_t *sf_index)
{
	return is_info(devinfo) && sf_index ? DOCA_ERROR_NOT_SUPPORTED : DOCA_ERROR_INVALID_VALUE;
}

/* -- capabilities -- */

doca_error_t doca_devinfo_cap_is_hotplug_manager_supported(const struct doca_devinfo *devinfo,
							   uint8_t *is_hotplug_manager)
{
	return store_byte(devinfo, is_hotplug_manager, false);
}

doca_error_t doca_devinfo_cap_is_notification_moderation_supported(
	const struct doca_devinfo *devinfo, uint8_t *supported)
{
	return store_byte(devinfo, supported, false);
}

doca_error_t doca_devinfo_cap_is_accelerate_resource_reclaim_supported(
	const struct doca_devinfo *devinfo, uint8_t *supported)
{
	return store_byte(devinfo, supported, false);
}

doca_error_t doca_devinfo_rep_cap_is_filter_all_supported(const struct doca_devinfo *devinfo,
							  uint8_t *supported)
{
	return store_byte(devinfo, supported, devinfo && devinfo->n_reps > 0);
}

doca_error_t doca_devinfo_rep_cap_is_filter_net_supported(const struct doca_devinfo *devinfo,
							  uint8_t *supported)
{
	return store_byte(devinfo, supported, devinfo && devinfo->n_reps > 0);
}

doca_error_t doca_devinfo_rep_cap_is_filter_emulated_supported(const struct doca_devinfo *devinfo,
							       uint8_t *supported)
{
	return store_byte(devinfo, supported, false);
}

/* -- representors -- */

doca_error_t doca_devinfo_rep_get_vuid(const struct doca_devinfo_rep *devinfo_rep, char *rep_vuid,
				       uint32_t size)
{
	return is_rep(devinfo_rep)
		       ? store_text(rep_vuid, size, DOCA_DEVINFO_REP_VUID_SIZE, devinfo_rep->vuid)
		       : DOCA_ERROR_INVALID_VALUE;
}

doca_error_t doca_devinfo_rep_get_pci_addr_str(const struct doca_devinfo_rep *devinfo_rep,
					       char *pci_addr_str)
{
	if (!is_rep(devinfo_rep))
		return DOCA_ERROR_INVALID_VALUE;
	return store_text(pci_addr_str, DOCA_DEVINFO_REP_PCI_ADDR_SIZE,
			  DOCA_DEVINFO_REP_PCI_ADDR_SIZE, devinfo_rep->pci);
}

doca_error_t doca_devinfo_rep_get_pci_func_type(const struct doca_devinfo_rep *devinfo_rep,
						enum doca_pci_func_type *pci_func_type)
{
	if (!is_rep(devinfo_rep) || !pci_func_type)
		return DOCA_ERROR_INVALID_VALUE;
	*pci_func_type = DOCA_PCI_FUNC_TYPE_PF;
	return DOCA_SUCCESS;
}

doca_error_t doca_devinfo_rep_get_is_hotplug(const struct doca_devinfo_rep *devinfo_rep,
					     uint8_t *is_hotplug)
{
	if (!is_rep(devinfo_rep) || !is_hotplug)
		return DOCA_ERROR_INVALID_VALUE;
	*is_hotplug = 0;
	return DOCA_SUCCESS;
}

doca_error_t doca_devinfo_rep_get_iface_name(const struct doca_devinfo_rep *devinfo_rep,
					     char *iface_name, uint32_t size)
{
	return is_rep(devinfo_rep) ? store_text(iface_name, size, DOCA_DEVINFO_IFACE_NAME_SIZE,
						devinfo_rep->iface)
				   : DOCA_ERROR_INVALID_VALUE;
}

doca_error_t doca_devinfo_rep_get_vhca_id(const struct doca_devinfo_rep *devinfo_rep,
					  uint16_t *vhca_id)
{
	if (!is_rep(devinfo_rep) || !vhca_id)
		return DOCA_ERROR_INVALID_VALUE;
	*vhca_id = (uint16_t)(0x100 + (devinfo_rep->of->index << 4) +
			      (devinfo_rep - devinfo_rep->of->reps));
	return DOCA_SUCCESS;
}

doca_error_t doca_devinfo_rep_is_equal_pci_addr(const struct doca_devinfo_rep *devinfo_rep,
						const char *pci_addr_str, uint8_t *equal)
{
	return is_rep(devinfo_rep) ? is_equal(devinfo_rep->pci, pci_addr_str, equal)
				   : DOCA_ERROR_INVALID_VALUE;
}
