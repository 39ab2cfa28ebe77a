/* SPDX-License-Identifier: BSD-3-Clause */
/* kernel.h - compare the running kernel with the oldest one that is supported. */
#ifndef GN_BASE_KERNEL_H
#define GN_BASE_KERNEL_H

#define GN_KERNEL_WHY 256

/*
 * Check that the kernel is at least Linux 5.14. A kernel whose version cannot be read is accepted.
 *
 * why      out, GN_KERNEL_WHY bytes. After -ENOSYS: object, problem and remedy, without newline
 * returns  0
 *          -ENOSYS: the kernel is older
 * thread   any
 */
int gn_kernel_check(char *why);

#endif
