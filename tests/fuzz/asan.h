/* SPDX-License-Identifier: BSD-3-Clause */
/* asan.h - the interface of ASan for substitutes; without ASan it does nothing. */
#ifndef FUZZ_ASAN_H
#define FUZZ_ASAN_H

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN 1
#endif
#endif
#ifndef WITH_ASAN
#define WITH_ASAN 0
#endif

#if WITH_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>
#define UNSEEN __attribute__((no_sanitize("address", "undefined", "coverage")))
#else /* without ASan, rewind.c has no arena */
#define UNSEEN
#define __asan_poison_memory_region(p, size) ((void)(p), (void)(size))
#define __asan_unpoison_memory_region(p, size) ((void)(p), (void)(size))
#define __lsan_register_root_region(p, size) ((void)(p), (void)(size))
#define __sanitizer_symbolize_pc(pc, format, text, size) ((void)snprintf(text, size, "%p", pc))
#endif

#endif
