/* SPDX-License-Identifier: BSD-3-Clause */
/* sim_config.h - the configuration of a build, without what the simulation does not have */
#include "config.h"
#undef HAVE_LIBURING
