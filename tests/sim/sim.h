/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sim.h - deterministic simulation: gantry's own objects run on a simulated scheduler, clock,
 * kernel and disk
 *
 * The product is compiled with -fsanitize=thread, but the functions that the compiler calls at each
 * memory access are those of hooks.c, so each access is a scheduling point. System calls and
 * functions of libc that block, or that read the clock or a random number, are replaced at link
 * time (wraps.list) by those of the os_*.c files. One thread of the host runs everything: simulated
 * threads are coroutines. Every decision is drawn from one seed, so a seed repeats a run exactly.
 *
 *     sched.c      coroutines, points, store buffers, the clock, random numbers, the trace
 *     hooks.c      what the compiler calls at each access
 *     heap.c       malloc: one arena for each simulated process
 *     proc.c       simulated processes: copies of the product's image, started and killed
 *     os_fd.c      descriptors, epoll, poll, eventfd, timerfd
 *     os_unix.c    Unix sockets, with descriptors and credentials
 *     os_memory.c  memfd, mmap
 *     os_disk.c    directories, files, and what a power cut leaves of them
 *     os_doca.c    mappings over mappings, for libgantry-doca
 *     os_thread.c  threads, mutexes, condition variables, semaphores
 *     os_misc.c    identities, time, random numbers, limits
 *
 * Code of the simulator runs between points: nothing here is preempted unless it calls a function
 * that says so.
 */
#ifndef SIM_H
#define SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define SIM_PROCS 8u    /* simulated processes at a time */
#define SIM_THREADS 64u /* of all processes */
#define SIM_STACK (512u << 10)
#define SIM_NEVER UINT64_MAX /* a deadline */
/* where mappings of simulated processes begin, each process in its range */
#define SIM_MAPPED ((uintptr_t)0x200000000000)
#define SIM_MAPPED_BYTES ((size_t)1 << 36) /* of a range */

/* -- sched.c -- */

enum sim_model { SIM_SC, SIM_TSO, SIM_PSO };

struct sim_proc;

struct sim_thread {
	struct sim_proc *proc;
	char name[16];
	uint32_t id; /* of the run: 1, 2, ... */
};

/* How a run is scheduled. All of it is drawn from the seed by sim_rates(), or set by a test. */
struct sim_rates {
	enum sim_model model;
	/* plain accesses are points too; false: atomic accesses and system calls */
	bool plain_points;
	/* of plain accesses only those to lines of memory that several threads have used */
	bool only_shared;
	uint32_t switch_one_in;      /* accesses for each change of thread, on average */
	uint32_t call_one_in;        /* system calls for each change of thread */
	uint32_t drain_one_in;       /* points for each store that leaves a buffer */
	uint32_t access_ns, call_ns; /* simulated time that each takes, at most */
	/*
	 * a plain read of a store in the own buffer leaves it there; false: it empties the buffer
	 */
	bool forwards;
	uint32_t stall_one_in; /* calls for each stall of a thread; 0: none */
	uint64_t stall_ns;     /* the longest stall */
};

/* Begin a run: no threads, time 0, all decisions from `seed`. */
void sim_begin(uint64_t seed);
void sim_rates_draw(struct sim_rates *rates);
void sim_rates_set(const struct sim_rates *rates);

/* 0 .. n-1, drawn from the seed. n is at least 1. */
uint32_t sim_draw(uint32_t n);
uint64_t sim_draw64(void);
/* Add a value to the trace. Runs of the same seed have the same trace. */
void sim_note(uint64_t value);
uint64_t sim_trace(void);

/* Simulated nanoseconds since the run began. */
uint64_t sim_now(void);
/* The running thread; NULL while the environment runs. */
struct sim_thread *sim_self(void);

/* A new thread that is ready to run fn(arg). NULL: there are too many. */
struct sim_thread *sim_thread_start(struct sim_proc *proc, const char *name, void *(*fn)(void *arg),
				    void *arg);
/* End the calling thread. */
_Noreturn void sim_thread_exit(void *result);
bool sim_thread_ended(const struct sim_thread *t);
/* What it returned. The thread is forgotten. */
void *sim_thread_result(struct sim_thread *t);
/*
 * Threads of a killed process do not run again. What their store buffers hold reaches memory, or is
 * lost: as drawn.
 */
void sim_threads_kill(struct sim_proc *proc);
/* Return to the environment from a thread that was killed. */
_Noreturn void sim_leave(void);

/* An access of memory by the running thread, before it is done. `pc`: the place in the code. */
void sim_access(bool atomic, const void *pc);
/*
 * The running thread waits for another one without a system call: that one may run; stores stay in
 * the buffer.
 */
void sim_pass(void);
/* The same for a pause between two polls, in which more time passes. */
void sim_relax(void);
/* sched_yield(): the same as a system call. */
void sim_yield(void);
/*
 * A system call by the running thread, before it is done: all its stores are visible after it. May
 * change the thread.
 */
void sim_call(void);
/*
 * Block the running thread until ready(arg) is true, or until `deadline`. ready() must only look:
 * it is called whenever something has changed. Returns false at the deadline.
 */
bool sim_block(bool (*ready)(void *arg), void *arg, uint64_t deadline);
/* Something changed that a blocked thread may wait for. */
void sim_changed(void);
/*
 * A time at which something changes by itself (a timer): sim_now() stops there. Must be set again
 * after it has passed.
 */
void sim_wake_at(uint64_t at);

enum sim_end {
	SIM_IDLE,  /* every thread has ended */
	SIM_STUCK, /* every thread waits, and nothing will change */
	SIM_STEPS, /* `steps` points have been passed */
	SIM_TIME,  /* the clock has reached `until` */
	SIM_ASKED, /* a thread called sim_pause(), or ended its process */
};
/* The environment lets threads run. */
enum sim_end sim_run(uint64_t steps, uint64_t until);
/* Return to the environment from a thread. */
void sim_pause(void);
/* Points of this run so far. */
uint64_t sim_steps(void);

/* Store buffers, for hooks.c. */
uint64_t sim_load(const void *at, unsigned size, const void *pc);
void sim_store(void *at, uint64_t value, unsigned size, int order, const void *pc);
/* Before a read-modify-write or a full fence: a point, after which the thread's buffer is empty. */
void sim_barrier(const void *pc);
/*
 * Bits, by address: those of plain accesses that are more than an access now. They are points, or
 * the running thread's buffer may have a store to the address, or the access before needs its end.
 * sim_plain_read() and sim_plain_write() do nothing at others.
 */
extern uint64_t sim_watched;
static inline uint64_t sim_filter_bit(const void *at)
{
	return 1ull << ((uintptr_t)at >> 2 & 63);
}
/* Before a plain access, which the compiled code does itself; a copy is done here. */
void sim_plain_read(void *at, const void *pc);
void sim_plain_write(void *at, unsigned size, const void *pc);
void sim_plain_copy(void *to, const void *from, size_t bytes, const void *pc);
/*
 * Until the end of the run, plain writes to this memory are buffered like relaxed atomic stores: in
 * place of the compiled code, which writes at once, the next hook takes the value back. Only for
 * memory that no code without hooks writes.
 */
void sim_late(const void *at, size_t bytes);
/* The effect of membarrier(2): the buffers of all threads are empty. */
void sim_drain_all(void);

/* Where the simulator prints. */
extern FILE *sim_out;

/*
 * A fault of the simulator itself, or of the product's use of what it does not simulate: print and
 * abort.
 */
_Noreturn void sim_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
