/* SPDX-License-Identifier: BSD-3-Clause */
/* doca_config.h - what a program is built for */
#ifndef DOCA_CONFIG_H
#define DOCA_CONFIG_H

#ifndef DOCA_DPA_DEVICE
#define DOCA_COMPAT_HELPERS
#endif

#include <doca_build_config.h>

#endif
