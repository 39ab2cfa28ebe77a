/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * top_sampler.h - a thread that requests reports, so that a process that does not answer delays no
 * key
 */
#ifndef GN_CLI_TOP_SAMPLER_H
#define GN_CLI_TOP_SAMPLER_H

#include <jansson.h>

#include "cli/stat_view.h"

struct gn_top_sampler;

/*
 * Start the thread. It blocks all signals.
 *
 * fd_p     out: readable when gn_top_sampler_take() has reports; the sampler owns it
 * returns  0
 *          -ENOMEM: out of memory
 *          another -errno: of eventfd(2) or pthread_create(3)
 */
int gn_top_sampler_start(const struct gn_stat_view *view, struct gn_top_sampler **sampler_p,
			 int *fd_p);

/* Request reports; no effect while the thread still waits for earlier ones. */
void gn_top_sampler_ask(struct gn_top_sampler *sampler);

/*
 * Take the reports.
 *
 * list_p    out: the reports; the caller owns it
 * silent_p  out: PIDs of processes without an answer; the caller owns it
 * returns   false: there are none yet
 */
bool gn_top_sampler_take(struct gn_top_sampler *sampler, json_t **list_p, json_t **silent_p);

/* End the thread; waits for the reports that it has requested. NULL is allowed. */
void gn_top_sampler_stop(struct gn_top_sampler **sampler_p);

#endif
