/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * idle.h - what a worker without work does: pause, yield its processor, or sleep. The module makes
 * no system call and reads no clock: the worker passes the times, and acts.
 *
 * A wait begins with the first turn without work and ends with work:
 *
 *      pause for pause_ns -> yield until spin_ns -> sleep until an event
 *
 * Spin or sleep. Spinning costs the CPU time of the wait. Sleeping costs a sleep and a wake-up,
 * which the user estimates by `max_spin_ns`, the budget of a wait. So spinning pays in a short
 * wait, which ends within the budget. In a long wait the budget is wasted, but not more: spinning
 * never costs more than twice the best choice. A wait that slept immediately is short if it took
 * at most two budgets, because one of them was the cost of the sleep.
 *
 * The next wait is predicted from the last ones. Each short wait earns a credit of one. A long
 * wait costs GN_IDLE_LONG credits. A wait spins for the whole budget if the worker has that
 * credit, and sleeps immediately otherwise. The worker keeps at most twice that credit: one long
 * wait among short ones changes nothing, two end the spinning. Near and far waits that alternate,
 * e.g. for a reply and for the next request, never earn the credit. After a very long wait the
 * cost of a budget is negligible, and the peer that woke the worker is likely to send more: the
 * next wait spins.
 *
 * Pause or yield. A yield that took much longer than a system call has let another thread run: the
 * processor is contended, and the awaited thread is possibly on it. Then the next wait yields
 * immediately. Each yield that let no thread run was wasted, and doubles the pause before the next
 * one. Of a yield only the time of a switch counts as part of the wait, because the spin budget is
 * CPU time of this worker.
 *
 * A relay beside its target waits alternately for a thread of its processor and for another
 * processor. So on a contended processor the wait after a wait that yielded is tried with a pause
 * of two switches from time to time, and always while that ends the wait.
 *
 * Two waits need no prediction. A timer that is due within the budget is worth spinning. Blocked
 * work, e.g. for a full queue of the peer, has no event that ends the wait: the worker yields, and
 * after a long time polls at intervals.
 *
 * Measurements below: pairs of runs on a virtual machine with two CPUs (AMD EPYC; pause 19 ns,
 * system call 1.05 us, yield 1.4 us, yield to another thread 4.5 us), as ratios to the value that
 * is used. Rows are those of ./dev bench. The trials give 1.49 times the IOs in the row beside_1.
 */
#ifndef GN_PIPELINE_IDLE_H
#define GN_PIPELINE_IDLE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Credits that one long wait costs. With 1 the row busy (1000 IOs a second) takes 1.17 times the
 * CPU time; 4 and 12 do not differ. 12 wastes less if waits are a little longer than the budget.
 */
#define GN_IDLE_LONG 12
/*
 * A cost is negligible if it is a smaller part of the time than this, e.g. one spin budget after a
 * wait of 61 budgets. Without it, the median latency of 100 IOs a second at depth 1 (workload.rate)
 * is 1.3 times as long. It is also the number of waits for each trial of a pause, and therefore a
 * prime number: each wait of a periodic sequence is tried at some time.
 */
#define GN_IDLE_NEGLIGIBLE 61
/*
 * A yield has let another thread run if it took longer than this time, and than this number of
 * system calls, whose duration depends on the kernel. A yield that lets no thread run takes 1.3
 * calls, one that lets a thread run 4.3 calls. With the time alone each yield counts as contention:
 * the row null_1 is 0.52. The time is for processors with calls of 0.1 us, on which the calls alone
 * are shorter than a yield that lets no thread run.
 */
#define GN_IDLE_SWITCH_NS 1000ull
#define GN_IDLE_SWITCH_CALLS 3
/*
 * Longest pause before a yield. With 3 us the row read_128k is 0.95, because yields delay its waits
 * of about 10 us. With 100 us a worker notices late that the processor is contended: the row
 * three_1 is 0.08, and depth 1 of two processes on one CPU 0.49.
 */
#define GN_IDLE_PAUSE_NS 16000ull
/*
 * Interval of the polls of blocked work, after it was blocked for 61 intervals. The kernel ends a
 * shorter sleep late, by up to 50 us (timer slack). No row has blocked work for so long; without
 * the sleeps some runs of the simulation (./dev sim) did not end.
 */
#define GN_IDLE_NAP_NS 50000ull

enum gn_idle_step { GN_IDLE_PAUSE, GN_IDLE_YIELD, GN_IDLE_SLEEP };

struct gn_idle {
	uint64_t max_spin_ns; /* spin budget */
	uint64_t switch_ns;   /* a yield that takes longer has let another thread run */
	uint64_t yield_ns;    /* a wait pauses for this time before it yields; 0: contended */

	/* the current wait */
	uint64_t since_ns; /* its start; 0: there is none */
	uint64_t spin_ns;  /* it sleeps after this time: 0 or max_spin_ns */
	uint64_t pause_ns; /* it yields after this time: yield_ns, or longer in a trial */
	uint64_t slept_ns; /* its length at its last wake-up; 0: it has not slept */
	bool yielded;
	bool tried; /* it pauses although the processor is contended */

	unsigned credit;
	unsigned n_untried; /* waits without a trial, after a wait that yielded */
	bool pays;          /* the last trial ended during the pause */
};

/* call_ns: duration of a system call on this processor and kernel */
void gn_idle_init(struct gn_idle *idle, uint64_t max_spin_ns, uint64_t call_ns);
/* Change the spin budget. The next turn without work begins another wait. */
void gn_idle_set_spin(struct gn_idle *idle, uint64_t max_spin_ns);
/* Returns what the worker does now, after a turn without work. */
enum gn_idle_step gn_idle_next(struct gn_idle *idle, uint64_t now_ns);
/* Returns true if the worker must not sleep until the timer at_ns, because spinning pays. */
bool gn_idle_is_near(const struct gn_idle *idle, uint64_t now_ns, uint64_t at_ns);
/* Blocked work. Returns how long the worker sleeps before the next turn; 0: it yields. */
uint64_t gn_idle_blocked(const struct gn_idle *idle, uint64_t now_ns);
/* The worker has yielded for took_ns. */
void gn_idle_yielded(struct gn_idle *idle, uint64_t took_ns);
/* The worker has slept until now_ns. The wait continues until there is work. */
void gn_idle_slept(struct gn_idle *idle, uint64_t now_ns);

/* The wait is over: there was work, or the owner of the worker starts another wait. */
static inline void gn_idle_worked(struct gn_idle *idle)
{
	idle->since_ns = 0;
}

#endif
