/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * page.h - the page of a run, which gantry run --report writes: one HTML file that needs no other
 * file, no network and no script. page.html is its template.
 */
#ifndef GN_REPORT_PAGE_H
#define GN_REPORT_PAGE_H

#include <jansson.h>
#include <stdio.h>

/*
 * Print the page.
 *
 * page     "report": the final report; "samples": as gn_samples_tree(); "topology", "machine",
 *          "config": as gn_page_topology(), gn_page_machine() and gn_page_config(). The page
 *          contains all of it as JSON
 * returns  0
 *          -ENOMEM
 */
int gn_page_print(FILE *out, const json_t *page);

#endif
