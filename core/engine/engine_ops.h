/* SPDX-License-Identifier: BSD-3-Clause */
/* engine_ops.h - the engine of gantry/engine.h as a table, for hosts of roles */
#ifndef GN_ENGINE_ENGINE_OPS_H
#define GN_ENGINE_ENGINE_OPS_H

#include <gantry/engine.h>

extern const struct gantry_engine_ops gn_engine_ops;

#endif
