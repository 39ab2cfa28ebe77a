/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pause.h - pause instruction for spin loops: it leaves the cache line to its writer.
 */
#ifndef GN_BASE_PAUSE_H
#define GN_BASE_PAUSE_H

/* Takes 10 to 60 ns, depending on the processor; no operation if it has no such instruction. */
static inline void gn_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile(
		/*
		 * not "yield", which takes no time on cores with one thread, such as those of DPUs
		 */
		"isb");
#endif
}

#endif
