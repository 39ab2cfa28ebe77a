/* SPDX-License-Identifier: BSD-3-Clause */
/* sim_config.h - the configuration of a build; the engine on io_uring is image_engine.c */
#include "config.h"
#undef HAVE_LIBURING
#define HAVE_LIBURING 1
