/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device_list.h - interface between device_list.c (configuration) and device_transport.c
 * (transports)
 */
#ifndef GD_DEVICES_H
#define GD_DEVICES_H

#include "device/gd_device.h"

#include "base/errs.h"
#include "config/config.h"
#include "loader/loader.h"
#include "secure/auth.h"

#define GD_TRANSPORT_OF_THE_CARD "shm-comch" /* default transport */
#define GD_PCI_FULL 13

/* One entry of a configuration, or one default function. */
struct gd_wire {
	char name[64]; /* for messages: NAME of "devices.NAME" */
	const char *plugin;
	const char *card;
	struct gn_conf_node *node; /* options; NULL: defaults. Exists until the process ends */
	/* set by device_transport.c, under its lock */
	const struct gn_plugin *loaded;
	void *conf;
	struct gn_auth_conf auth; /* how peers on a network are authenticated */
	struct gd_transport *open;
};

/*
 * Load the plugin and fill its options. Errors of the configuration, with their positions, go to
 * errs. also_known: keys of the entry that do not belong to the plugin. 0 or -errno. Any thread.
 */
int gd_wire_load(struct gd_wire *wire, const char *const *also_known, struct gn_errs *errs);

/*
 * Set the plugin directories of the configuration, a list of strings, or NULL. Call before the
 * first gd_wire_load().
 */
void gd_plugin_dirs(struct gn_conf_node *list);

/* Log each message on one line, and free the messages. */
void gd_log_errs(struct gn_errs *errs);

/*
 * Convert "BB:DD.F" or "DDDD:BB:DD.F" to the long form in lower case. false: the text is neither.
 */
bool gd_pci_parse(const char *text, char pci[GD_PCI_FULL]);

#endif
