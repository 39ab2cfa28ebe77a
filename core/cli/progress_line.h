/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * progress_line.h - an observer in the program: it shows the progress of a role with work as a line
 * on the standard error, which is rewritten each time. Of several roles it shows the first one
 * until that role ends. Log lines overwrite the line, see gn_log_set_over().
 */
#ifndef GN_CLI_PROGRESS_LINE_H
#define GN_CLI_PROGRESS_LINE_H

#include "pipeline/pipeline.h"

/* ops: struct gantry_observer_ops */
extern const struct gn_plugin_instance gn_progress_line;

#endif
