/* SPDX-License-Identifier: BSD-3-Clause */
/* wrappers_workq.c - the wrappers of the functions of the WorkQ interface, whose headers come first */
#include <doca_ctx.h>
#include <doca_dma.h>

#include "check/check.h"

#include "check/wrappers_workq.inc"
