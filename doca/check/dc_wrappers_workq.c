/* SPDX-License-Identifier: BSD-3-Clause */
/* dc_wrappers_workq.c - the wrappers of the WorkQ interface, whose headers come first */
#include <doca_ctx.h>
#include <doca_dma.h>

#include "check/dc.h"

#include "check/wrappers_workq.inc"
