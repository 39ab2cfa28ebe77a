/* SPDX-License-Identifier: BSD-3-Clause */
/* idle.c - the idle policy of a worker; idle.h has the model. */
#include "pipeline/idle.h"

void gn_idle_init(struct gn_idle *idle, uint64_t max_spin_ns, uint64_t call_ns)
{
	uint64_t calls_ns = GN_IDLE_SWITCH_CALLS * call_ns;

	*idle = (struct gn_idle){
		.max_spin_ns = max_spin_ns,
		.switch_ns = calls_ns > GN_IDLE_SWITCH_NS ? calls_ns : GN_IDLE_SWITCH_NS,
		.credit = 2 * GN_IDLE_LONG,
	};
}

void gn_idle_set_spin(struct gn_idle *idle, uint64_t max_spin_ns)
{
	idle->max_spin_ns = max_spin_ns;
	idle->spin_ns = 0;
	idle->slept_ns = 0;
	idle->since_ns = 0;
}

/* Settle the credit for the last wait, and choose the spin budget of the next one. */
static void begin_wait(struct gn_idle *idle, uint64_t now_ns)
{
	/* a wait that spun and then slept is longer than one budget, so it is long */
	bool was_long = idle->slept_ns > 2 * idle->max_spin_ns - idle->spin_ns;

	if (idle->slept_ns > GN_IDLE_NEGLIGIBLE * idle->max_spin_ns)
		idle->credit = GN_IDLE_LONG;
	else if (was_long)
		idle->credit -= idle->credit < GN_IDLE_LONG ? idle->credit : GN_IDLE_LONG;
	else if (idle->credit < 2 * GN_IDLE_LONG)
		idle->credit++;
	idle->spin_ns = idle->credit >= GN_IDLE_LONG ? idle->max_spin_ns : 0;
	idle->slept_ns = 0;
	idle->since_ns = now_ns;
}

/* Returns how long the next wait pauses before it yields, and chooses the waits for a trial. */
static uint64_t choose_pause(struct gn_idle *idle)
{
	bool after_yield = idle->yielded;

	if (idle->tried)
		idle->pays = !after_yield;
	idle->yielded = false;
	idle->tried = idle->yield_ns == 0 && after_yield &&
		      (idle->pays || ++idle->n_untried % GN_IDLE_NEGLIGIBLE == 0);
	return idle->tried ? 2 * idle->switch_ns : idle->yield_ns;
}

enum gn_idle_step gn_idle_next(struct gn_idle *idle, uint64_t now_ns)
{
	if (idle->since_ns == 0) {
		idle->pause_ns = choose_pause(idle);
		begin_wait(idle, now_ns);
	}
	if (now_ns >= idle->since_ns + idle->spin_ns)
		return GN_IDLE_SLEEP;
	return now_ns >= idle->since_ns + idle->pause_ns ? GN_IDLE_YIELD : GN_IDLE_PAUSE;
}

bool gn_idle_is_near(const struct gn_idle *idle, uint64_t now_ns, uint64_t at_ns)
{
	return at_ns <= now_ns + idle->max_spin_ns;
}

uint64_t gn_idle_blocked(const struct gn_idle *idle, uint64_t now_ns)
{
	uint64_t from_ns = idle->since_ns + GN_IDLE_NEGLIGIBLE * GN_IDLE_NAP_NS;

	return now_ns < from_ns ? 0 : GN_IDLE_NAP_NS;
}

void gn_idle_yielded(struct gn_idle *idle, uint64_t took_ns)
{
	idle->yielded = true;
	if (took_ns > idle->switch_ns) {
		idle->yield_ns = 0;
		if (idle->since_ns != 0)
			idle->since_ns += took_ns - idle->switch_ns;
	} else if (idle->yield_ns < GN_IDLE_PAUSE_NS) {
		idle->yield_ns = idle->yield_ns != 0 ? 2 * idle->yield_ns : idle->switch_ns;
	}
	idle->pause_ns = idle->yield_ns;
}

void gn_idle_slept(struct gn_idle *idle, uint64_t now_ns)
{
	if (idle->since_ns != 0)
		idle->slept_ns = now_ns - idle->since_ns;
}
