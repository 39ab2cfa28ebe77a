/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * devices.h - how the configuration of functions becomes transports: between devices.c and
 * transport.c.
 */
#ifndef GD_DEVICES_H
#define GD_DEVICES_H

#include "device/device.h"

#include "base/errs.h"
#include "config/config.h"
#include "loader/loader.h"

#define GD_TRANSPORT_OF_THE_CARD "shm-comch" /* where no configuration says another */
#define GD_PCI_FULL 13

/* One entry of a configuration, or the card that is always there. */
struct gd_wire {
	char name[64]; /* for messages: "devices.NAME" without its first part */
	const char *plugin;
	const char *card;
	struct gn_conf_node *node; /* its options; NULL: defaults. Lives as long as the process */
	/* filled by transport.c, under its lock */
	const struct gantry_transport_ops *ops;
	void *conf;
	struct gd_transport *open;
};

/*
 * Load the plugin of a wire and fill its options: faults, with their places, go to errs.
 * also_known: names in the entry that are not the plugin's. wide_p: whether its services are
 * addresses of a network. 0 or -errno. Any thread.
 */
int gd_wire_load(struct gd_wire *wire, const char *const *also_known, struct gn_errs *errs,
		 bool *wide_p);

/*
 * Before the first gd_wire_load: where the configuration says that plugins are, a list of strings;
 * NULL: it does not.
 */
void gd_plugin_dirs(struct gn_conf_node *list);

/* One line in the log for each message; frees them. */
void gd_log_errs(struct gn_errs *errs);

/* "BB:DD.F" or "DDDD:BB:DD.F" to the long form in small letters; false: it is neither. */
bool gd_pci_parse(const char *text, char pci[GD_PCI_FULL]);

#endif
