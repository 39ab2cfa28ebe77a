/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pe.h - what a progress engine shares with the contexts on it.
 */
#ifndef GD_PE_H
#define GD_PE_H

#include "ctx.h"

/* Take a context off its engine. Thread of the engine. */
void gd_pe_remove(struct doca_ctx *ctx);
/* Is a context of this engine being polled right now? Then callbacks have to wait until that is over. */
bool gd_pe_is_polling(const struct doca_pe *pe);

/* Does a callback of this engine run right now, on this thread? */
bool gd_pe_is_running(const struct doca_pe *pe);

/* The last task of a context was given back: it may have become idle. */
void gd_ctx_task_freed(struct doca_ctx *ctx);
/* gd_ctx_fail(), but at the next doca_pe_progress: for callers that must not run callbacks. */
void gd_ctx_fail_later(struct doca_ctx *ctx);

/* The tasks of a pool go. */
void gd_pool_fini(struct gd_pool *pool);

#endif
