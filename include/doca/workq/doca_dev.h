/* SPDX-License-Identifier: BSD-3-Clause */
/* doca_dev.h - devices, for programs of the WorkQ interface (DOCA before tasks) */
#ifndef DOCA_WORKQ_DEV_H
#define DOCA_WORKQ_DEV_H

#include <doca_error.h>
#include <doca_types.h>

#include_next <doca_dev.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * List all devices. Free the list with doca_devinfo_list_destroy(). Opened devices remain valid
 * after that.
 */
static inline doca_error_t doca_devinfo_list_create(struct doca_devinfo ***dev_list,
						    uint32_t *nb_devs)
{
	return doca_devinfo_create_list(dev_list, nb_devs);
}

static inline doca_error_t doca_devinfo_list_destroy(struct doca_devinfo **dev_list)
{
	return doca_devinfo_destroy_list(dev_list);
}

#ifdef __cplusplus
}
#endif

#endif
