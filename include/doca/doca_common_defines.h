/* SPDX-License-Identifier: BSD-3-Clause */
/* doca_common_defines.h - branch prediction hints */
#ifndef DOCA_COMMON_DEFINES_H
#define DOCA_COMMON_DEFINES_H

#define doca_likely(x) __builtin_expect(!!(x), 1)
#define doca_unlikely(x) __builtin_expect(!!(x), 0)

#endif
