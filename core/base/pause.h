/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pause.h - between two looks at a line of memory: leaves it to the one who writes it.
 */
#ifndef GN_BASE_PAUSE_H
#define GN_BASE_PAUSE_H

/* 10 to 60 ns, as the processor likes; nothing where it has no such instruction. */
static inline void gn_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile(
		"isb"); /* "yield" takes no time where a core has one thread, as those of DPUs do */
#endif
}

#endif
