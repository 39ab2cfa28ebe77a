/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * branch.h - mark conditions of the fast path that are nearly always true or false.
 */
#ifndef GANTRY_BRANCH_H
#define GANTRY_BRANCH_H

#define gantry_likely(condition) __builtin_expect(!!(condition), 1)
#define gantry_unlikely(condition) __builtin_expect(!!(condition), 0)

#endif
