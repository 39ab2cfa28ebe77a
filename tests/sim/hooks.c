/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hooks.c - the functions that code compiled with -fsanitize=thread calls at each access of memory
 *
 * These functions do atomic operations themselves. The compiled code does a plain access after the
 * call. There is no call for accesses inside memcpy() and similar functions, for inline assembly,
 * and for the processor's counters.
 */
#include <gantry/branch.h>

#include "sim.h"

#define PC __builtin_return_address(0)

static inline bool is_watched(uint64_t filter, const void *at)
{
	return gantry_unlikely((filter & sim_filter_bit(at)) != 0);
}

#define PLAIN(n) \
	void __tsan_read##n(void *at); \
	void __tsan_write##n(void *at); \
	void __tsan_unaligned_read##n(void *at); \
	void __tsan_unaligned_write##n(void *at); \
	void __tsan_volatile_read##n(void *at); \
	void __tsan_volatile_write##n(void *at); \
	void __tsan_read##n(void *at) \
	{ \
		if (is_watched(sim_watched_reads, at)) \
			sim_plain_read(at, PC); \
	} \
	void __tsan_write##n(void *at) \
	{ \
		if (is_watched(sim_watched_writes, at)) \
			sim_plain_write(at, n, PC); \
	} \
	void __tsan_unaligned_read##n(void *at) \
	{ \
		if (is_watched(sim_watched_reads, at)) \
			sim_plain_read(at, PC); \
	} \
	void __tsan_unaligned_write##n(void *at) \
	{ \
		if (is_watched(sim_watched_writes, at)) \
			sim_plain_write(at, n, PC); \
	} \
	void __tsan_volatile_read##n(void *at) \
	{ \
		if (is_watched(sim_watched_reads, at)) \
			sim_plain_read(at, PC); \
	} \
	void __tsan_volatile_write##n(void *at) \
	{ \
		if (is_watched(sim_watched_writes, at)) \
			sim_plain_write(at, n, PC); \
	}
PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)

#define RMW(bits, type, name, result) \
	type __tsan_atomic##bits##_##name(type *at, type value, int order); \
	type __tsan_atomic##bits##_##name(type *at, type value, int order) \
	{ \
		type old; \
\
		(void)order; \
		sim_barrier(PC); \
		old = *at; \
		*at = (type)(result); \
		return old; \
	}

#define ATOMIC(bits, type) \
	type __tsan_atomic##bits##_load(const type *at, int order); \
	void __tsan_atomic##bits##_store(type *at, type value, int order); \
	int __tsan_atomic##bits##_compare_exchange_strong(type *at, type *expected, type value, \
							  int order, int failed); \
	int __tsan_atomic##bits##_compare_exchange_weak(type *at, type *expected, type value, \
							int order, int failed); \
	type __tsan_atomic##bits##_compare_exchange_val(type *at, type expected, type value, \
							int order, int failed); \
	type __tsan_atomic##bits##_load(const type *at, int order) \
	{ \
		(void)order; \
		return (type)sim_load(at, sizeof(type), PC); \
	} \
	void __tsan_atomic##bits##_store(type *at, type value, int order) \
	{ \
		sim_store(at, value, sizeof(type), order, PC); \
	} \
	RMW(bits, type, exchange, value) \
	RMW(bits, type, fetch_add, old + value) \
	RMW(bits, type, fetch_sub, old - value) \
	RMW(bits, type, fetch_and, old &value) \
	RMW(bits, type, fetch_or, old | value) \
	RMW(bits, type, fetch_xor, old ^ value) \
	int __tsan_atomic##bits##_compare_exchange_strong(type *at, type *expected, type value, \
							  int order, int failed) \
	{ \
		type old; \
\
		(void)order; \
		(void)failed; \
		sim_barrier(PC); \
		old = *at; \
		if (old == *expected) { \
			*at = value; \
			return 1; \
		} \
		*expected = old; \
		return 0; \
	} \
	int __tsan_atomic##bits##_compare_exchange_weak(type *at, type *expected, type value, \
							int order, int failed) \
	{ \
		return __tsan_atomic##bits##_compare_exchange_strong(at, expected, value, order, \
								     failed); \
	} \
	type __tsan_atomic##bits##_compare_exchange_val(type *at, type expected, type value, \
							int order, int failed) \
	{ \
		__tsan_atomic##bits##_compare_exchange_strong(at, &expected, value, order, \
							      failed); \
		return expected; \
	}
ATOMIC(8, uint8_t)
ATOMIC(16, uint16_t)
ATOMIC(32, uint32_t)
ATOMIC(64, uint64_t)

void __tsan_init(void);
void __tsan_func_entry(void *pc);
void __tsan_func_exit(void);
void __tsan_read_range(void *at, size_t bytes);
void __tsan_write_range(void *at, size_t bytes);
void __tsan_vptr_update(void **vptr, void *value);
void __tsan_vptr_read(void **vptr);
void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_signal_fence(int order);

void __tsan_init(void)
{
}

void __tsan_func_entry(void *pc)
{
	(void)pc;
}

void __tsan_func_exit(void)
{
}

void __tsan_read_range(void *at, size_t bytes)
{
	(void)bytes;
	if (is_watched(sim_watched_reads, at))
		sim_plain_read(at, PC);
}

void __tsan_write_range(void *at, size_t bytes)
{
	(void)bytes;
	if (is_watched(sim_watched_writes, at))
		sim_plain_write(at, 0, PC);
}

void __tsan_vptr_update(void **vptr, void *value)
{
	(void)value;
	sim_plain_write(vptr, sizeof(*vptr), PC);
}

void __tsan_vptr_read(void **vptr)
{
	sim_plain_read(vptr, PC);
}

void __tsan_atomic_thread_fence(int order)
{
	if (order == __ATOMIC_SEQ_CST)
		sim_barrier(PC);
}

void __tsan_atomic_signal_fence(int order)
{
	(void)order;
}
