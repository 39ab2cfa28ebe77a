/* SPDX-License-Identifier: BSD-3-Clause */
/* dc_tables.c - what generate.awk knows of each function and type */
#include "check/dc.h"

#include "check/tables.inc"
