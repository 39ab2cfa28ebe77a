/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * branch.h - branch prediction hints for conditions of the fast path.
 */
#ifndef GANTRY_BRANCH_H
#define GANTRY_BRANCH_H

#define gantry_likely(condition) __builtin_expect(!!(condition), 1)
#define gantry_unlikely(condition) __builtin_expect(!!(condition), 0)

#endif
