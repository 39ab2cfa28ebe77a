/* SPDX-License-Identifier: BSD-3-Clause */
/* dc_trace.h - records of what happened when, for `gantry doca trace` */
#ifndef DC_TRACE_H
#define DC_TRACE_H

#include <stdbool.h>

struct dc_object;

extern bool dc_trace_is_on;

/* All called with the lock held. */
/* Note the time of a submission; it is recorded when the submission has succeeded. */
void dc_trace_submit(struct dc_object *task);
void dc_trace_submitted(const struct dc_object *task);
void dc_trace_completed(const struct dc_object *task, bool failed);
void dc_trace_state(const struct dc_object *ctx, int state);
void dc_trace_connection(const struct dc_object *ctx, bool begins);

#endif
