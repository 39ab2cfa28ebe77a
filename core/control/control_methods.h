/* SPDX-License-Identifier: BSD-3-Clause */
/* control_methods.h - the methods of the control socket of `gantry run` and `gantry copy` */
#ifndef GN_CONTROL_CONTROL_METHODS_H
#define GN_CONTROL_CONTROL_METHODS_H

#include "control/jsonrpc.h"
#include "report/report.h"
#include "topology/live.h"

/* What the methods work on. */
struct gn_controlled {
	struct gn_live live; /* on_difference and arg are set by the methods */
	const char *path;    /* of the configuration, absolute */
	/* Write a report to `report`, which the caller frees. Returns its tree or NULL. */
	json_t *(*report)(void *arg, struct gn_report *report);
	/* End each role that listens when it has no sessions; no new sessions. */
	void (*drain)(void *arg);
	void *arg;
};

/* The table for gn_control_open(). `arg` of its methods is a struct gn_controlled. */
extern const struct gn_rpc_method gn_control_methods[];

/* Reload the configuration as the method `reload` does, and log the result. */
void gn_control_reload(struct gn_controlled *controlled);

#endif
