/* SPDX-License-Identifier: BSD-3-Clause */
/* doca_config.h - the build profile of a program, host or dpu */
#ifndef DOCA_CONFIG_H
#define DOCA_CONFIG_H

#ifndef DOCA_DPA_DEVICE
#define DOCA_COMPAT_HELPERS
#endif

#include <doca_build_config.h>

#endif
