/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sim.h - deterministic simulation: gantry's own objects run on a simulated scheduler, clock,
 * kernel and disk
 *
 * The product is compiled with -fsanitize=thread. The functions that the compiler calls at each
 * memory access come from hooks.c, so each access is a scheduling point. System calls and
 * functions of libc that block, or that read the clock or a random number, are replaced at link
 * time (wraps.list) by those of the os_*.c files. One thread of the host runs everything: simulated
 * threads are coroutines. Every decision is drawn from one seed, so a seed repeats a run exactly.
 *
 *     sched.c      coroutines, points, store buffers, the clock, the trace
 *     lines.c      which lines of memory several threads have used
 *     draw.c       random numbers
 *     hooks.c      functions that the compiler calls at each access
 *     heap.c       malloc: one arena for each simulated process
 *     proc.c       simulated processes: copies of the product's image, started and killed
 *     os_fd.c      descriptors, read and write, eventfd, timerfd, pipes, signalfd, pidfd
 *     os_epoll.c   epoll, poll
 *     os_socket.c  system calls of sockets
 *     os_unix.c    Unix sockets, with descriptors and credentials
 *     os_tcp.c     TCP sockets: bytes in pieces of drawn lengths
 *     os_memory.c  memfd, mmap
 *     os_disk.c    directories, files, and the effects of power cuts
 *     os_doca.c    mappings over mappings, for libgantry-doca
 *     os_thread.c  threads, mutexes, condition variables, semaphores
 *     os_misc.c    identities, time, random numbers, limits
 *
 * Code of the simulator runs between points: it is preempted only in functions whose comments say
 * so.
 */
#ifndef SIM_H
#define SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define SIM_PROCS 8u    /* most simulated processes at a time */
#define SIM_THREADS 64u /* most threads of all processes together */
#define SIM_STACK (512u << 10)
#define SIM_NEVER UINT64_MAX /* no deadline */
/* start of the mappings of simulated processes, each in a range of its own */
#define SIM_MAPPED ((uintptr_t)0x200000000000)
#define SIM_MAPPED_BYTES ((size_t)1 << 36) /* bytes of a range */

/* -- sched.c -- */

enum sim_model { SIM_SC, SIM_TSO, SIM_PSO };

struct sim_proc;

struct sim_thread {
	struct sim_proc *proc;
	char name[16];
	uint32_t id; /* number within the run: 1, 2, ... */
};

/* The schedule of a run. sim_rates_draw() draws it from the seed, or a test sets it. */
struct sim_rates {
	enum sim_model model;
	/*
	 * plain accesses are points, except those of a thread to its own stack; false: only atomic
	 * accesses and system calls
	 */
	bool plain_points;
	/* plain accesses are points only in lines of memory that several threads have used */
	bool only_shared;
	uint32_t switch_one_in; /* on average, one in this many accesses changes the thread */
	uint32_t call_one_in;   /* on average, one in this many system calls changes the thread */
	uint32_t drain_one_in;  /* at one in this many points a store leaves a buffer */
	uint32_t access_ns, call_ns; /* most simulated time of an access; of a system call */
	/* a plain read gets the value from the buffer of its thread; false: it drains the buffer */
	bool forwards;
	uint32_t stall_one_in; /* one in this many calls stalls the thread; 0: none */
	uint64_t stall_ns;     /* the longest stall */
};

/* Begin a run: no threads, time 0, all decisions from `seed`. */
void sim_begin(uint64_t seed);
void sim_rates_draw(struct sim_rates *rates);
void sim_rates_set(const struct sim_rates *rates);

/* Returns a number from 0 to n-1, drawn from the seed. n is at least 1. */
uint32_t sim_draw(uint32_t n);
uint64_t sim_draw64(void);
/* Add a value to the trace. Runs of the same seed have the same trace. */
void sim_note(uint64_t value);
uint64_t sim_trace(void);

/* Returns the simulated nanoseconds since the run began. */
uint64_t sim_now(void);
/*
 * Returns the running thread; NULL while the environment runs. The environment is the code of the
 * simulator that is no simulated thread: it calls sim_run(), and acts between two calls.
 */
struct sim_thread *sim_self(void);

/* Create a thread that is ready to run fn(arg). NULL: there are too many threads. */
struct sim_thread *sim_thread_start(struct sim_proc *proc, const char *name, void *(*fn)(void *arg),
				    void *arg);
/* End the calling thread. */
_Noreturn void sim_thread_exit(void *result);
bool sim_thread_ended(const struct sim_thread *t);
/* Returns the value that the thread returned, and frees the thread. */
void *sim_thread_result(struct sim_thread *t);
/*
 * Stop the threads of a killed process. The stores in their buffers reach memory or are lost, as
 * drawn.
 */
void sim_threads_kill(struct sim_proc *proc);
/* Return to the environment from a thread that was killed. */
_Noreturn void sim_leave(void);

/* Called before the running thread accesses memory. `pc`: the address of the code. */
void sim_access(bool atomic, const void *pc);
/*
 * The running thread waits for another thread without a system call: other threads may run, and its
 * stores stay in the buffer.
 */
void sim_pass(void);
/* Like sim_pass(), for a pause between two polls, which takes more time. */
void sim_relax(void);
/* Like sim_pass(), for the system call sched_yield(). */
void sim_yield(void);
/*
 * Called before the running thread does a system call: makes all its stores visible. Another thread
 * can run at this point.
 */
void sim_call(void);
/*
 * Block the running thread until ready(arg) is true, or until `deadline`. The scheduler calls
 * ready() after each change; it must have no side effects. Returns false at the deadline.
 */
bool sim_block(bool (*ready)(void *arg), void *arg, uint64_t deadline);
/* Called when a state has changed for which a blocked thread can wait. */
void sim_changed(void);
/*
 * Set the time of the next change that no thread makes (a timer): the clock does not skip it. Must
 * be set again after it has passed.
 */
void sim_wake_at(uint64_t at);

enum sim_end {
	SIM_IDLE,  /* every thread has ended */
	SIM_STUCK, /* every thread is blocked, without a deadline or timer */
	SIM_STEPS, /* `steps` points have been passed */
	SIM_TIME,  /* the clock has reached `until` */
	SIM_ASKED, /* a thread called sim_pause(), or ended its process */
};
/* Run threads; called by the environment. */
enum sim_end sim_run(uint64_t steps, uint64_t until);
/* Return to the environment from a thread. */
void sim_pause(void);
/* The number of points of this run so far. */
uint64_t sim_steps(void);

/* Store buffers, for hooks.c. */
uint64_t sim_load(const void *at, unsigned size, const void *pc);
void sim_store(void *at, uint64_t value, unsigned size, int order, const void *pc);
/* Called before a read-modify-write or a full fence: a point that drains the thread's buffer. */
void sim_barrier(const void *pc);
/*
 * Filters of addresses, see sim_filter_bit(). If the bit of an address is set, the hook of a plain
 * access must call sim_plain_read() or sim_plain_write(), because the access is a point, or the
 * buffer of the running thread may have a store to the address, or the call must first restore
 * memory that sched.c changed for the access before (take_back()). If the bit is clear, the call
 * would have no effect, and the hook omits it.
 */
extern uint64_t sim_watched_reads, sim_watched_writes;
static inline uint64_t sim_filter_bit(const void *at)
{
	return 1ull << ((uintptr_t)at >> 2 & 63);
}
/*
 * sim_plain_read() and sim_plain_write() are called before a plain access, which the compiled code
 * does after the call. sim_plain_copy() is called instead of memcpy(), and copies the bytes.
 */
void sim_plain_read(void *at, const void *pc);
void sim_plain_write(void *at, unsigned size, const void *pc);
void sim_plain_copy(void *to, const void *from, size_t bytes, const void *pc);
/*
 * Until the end of the run, buffer plain writes to this memory like relaxed atomic stores: the
 * compiled code writes at once, and the next hook moves the value to the buffer. Only for memory
 * that no code without hooks writes.
 */
void sim_late(const void *at, size_t bytes);
/* Drain the buffers of all threads, as membarrier(2) does. */
void sim_drain_all(void);

/* The stream for the output of the simulator. */
extern FILE *sim_out;

/*
 * Print an error of the simulator, or a use of the kernel by the product that is not simulated, and
 * abort.
 */
_Noreturn void sim_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
