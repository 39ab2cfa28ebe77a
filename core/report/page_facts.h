/* SPDX-License-Identifier: BSD-3-Clause */
/* page_facts.h - what the page of a run has besides the report. The caller owns each result. */
#ifndef GN_REPORT_PAGE_FACTS_H
#define GN_REPORT_PAGE_FACTS_H

#include <jansson.h>

#include "topology/topology.h"

/*
 * Describe the whole configuration: "devices" with their transports; "roles" with their plugins,
 * stages, backends and connects, and whether this process runs them. NULL: out of memory.
 */
json_t *gn_page_topology(const struct gn_topology *topology);

/* Describe the machine and the program. NULL: out of memory. */
json_t *gn_page_machine(void);

/* Get the configuration as text, without values that can be secrets. NULL: out of memory. */
json_t *gn_page_config(const struct gn_topology *topology);

#endif
