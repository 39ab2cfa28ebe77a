/* SPDX-License-Identifier: BSD-3-Clause */
/* loop.c - the conformance suite over the loop transport. */
#include "conform/rig.h"

struct rig_driver rig_driver = {.plugin = "loop"};
