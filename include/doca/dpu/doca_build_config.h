/* SPDX-License-Identifier: BSD-3-Clause */
/* doca_build_config.h - profile dpu: the program runs on the card */
#ifndef DOCA_BUILD_CONFIG_H
#define DOCA_BUILD_CONFIG_H

#define DOCA_ARCH_DPU
#undef DOCA_ARCH_HOST
#define DOCA_ARCH_DPU_BF2 0

#if defined(__x86_64__) || defined(__i386__)
#define DOCA_ARCH_X86
#elif defined(__aarch64__) || defined(__arm__)
#define DOCA_ARCH_ARM
#endif

#endif
