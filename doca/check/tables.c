/* SPDX-License-Identifier: BSD-3-Clause */
/* tables.c - what generate.awk knows of each function and type */
#include "check/check.h"

#include "check/tables.inc"
