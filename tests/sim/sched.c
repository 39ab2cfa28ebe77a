/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sched.c - simulated threads as coroutines, their store buffers, the clock
 */
#include "sim.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <gantry/branch.h>

#include "draw.h"
#include "lines.h"
#include "proc.h"

#define STORES 8u /* most stores in the buffer of a thread, not visible to other threads yet */
#define GUARD 4096u
#define LATE 4u
/* longest pause between two polls of a thread; an idle worker of the product pauses for 40 ns */
#define RELAX_NS 400u

/* of __builtin_setjmp(), which does not save signals and has no check of libc */
typedef void *context[5];

enum state { FREE, READY, BLOCKED, ENDED };

struct store {
	void *at;
	uint64_t value;
	uint8_t size;
	bool release;
};

struct thread {
	struct sim_thread pub;
	enum state state;
	struct store stores[STORES];
	uint32_t n_stores;
	/* sim_filter_bit() of each address in `stores`; other bits can be set, too */
	uint64_t filter;
	uintptr_t base; /* start of the code of its process: the trace has relative addresses */
	bool (*ready)(void *arg); /* while the state is BLOCKED */
	void *wait_arg;
	uint64_t deadline, checked;
	bool timed_out;
	int saved_errno;
	void *(*fn)(void *arg);
	void *arg, *result;
	context here;
	context start; /* the context of the slot before fn(arg), with an empty stack */
	bool has_start;
	uint8_t tls[SIM_TLS];
};

FILE *sim_out;
uint64_t sim_watched_reads, sim_watched_writes;
static struct thread threads[SIM_THREADS];
static uint8_t *stacks;
static struct thread *self; /* NULL: the environment */
static context home;
static int home_errno;
static struct sim_rates rates;
static uint64_t trace, steps, now_ns, steps_left, until_ns, generation, wake_at_ns;
static struct range {
	const uint8_t *at;
	size_t bytes;
} late[LATE]; /* see sim_late() */
static uint32_t n_late;
/* The memory of one plain access, until the next hook calls take_back(), which restores `was`. */
static struct {
	void *at;
	uint64_t was[2];
	uint8_t size;
	bool stores; /* the access is a write: take_back() moves its value to the store buffer */
} lent;
static uint32_t n_started, n_used; /* of this run: started threads; used slots */
static uint32_t n_buffered;        /* stores in the buffers of all threads */
/* number of accesses until a switch, and of points until a drain, drawn again after each */
static uint32_t to_switch, to_drain;
static enum sim_end end;
extern const char __executable_start[];

void sim_note(uint64_t value)
{
	trace = (trace ^ value) * 0x9e3779b97f4a7c15u;
	trace ^= trace >> 32;
}

uint64_t sim_trace(void)
{
	return trace;
}

uint64_t sim_now(void)
{
	return now_ns;
}

uint64_t sim_steps(void)
{
	return steps;
}

struct sim_thread *sim_self(void)
{
	return self ? &self->pub : NULL;
}

void sim_fail(const char *format, ...)
{
	FILE *out = sim_out ? sim_out : stderr;
	va_list ap;

	fprintf(out, "sim: ");
	va_start(ap, format);
	vfprintf(out, format, ap);
	va_end(ap);
	fprintf(out, " (thread %s)\n", self ? self->pub.name : "environment");
	fflush(out);
	abort();
}

/* -- store buffers -- */

/* Compute both filters again; called after each change of their inputs. */
static inline void set_watched(void)
{
	if (lent.at || rates.plain_points)
		sim_watched_reads = UINT64_MAX;
	else
		sim_watched_reads = self ? self->filter : 0;
	sim_watched_writes = n_late != 0 && rates.model != SIM_SC ? UINT64_MAX : sim_watched_reads;
}

/* memcpy() of 1, 2, 4 or 8 bytes without a call */
static inline void copy(void *to, const void *from, size_t bytes)
{
	switch (bytes) {
	case 1:
		memcpy(to, from, 1);
		break;
	case 2:
		memcpy(to, from, 2);
		break;
	case 4:
		memcpy(to, from, 4);
		break;
	case 8:
		memcpy(to, from, 8);
		break;
	default:
		memcpy(to, from, bytes);
	}
}

static void drain_one(struct thread *t, uint32_t i)
{
	const struct store s = t->stores[i];
	uint64_t filter = 0;

	copy(s.at, &s.value, s.size);
	n_buffered--;
	t->n_stores--;
	for (; i < t->n_stores; i++)
		t->stores[i] = t->stores[i + 1];
	for (i = 0; i < t->n_stores; i++)
		filter |= sim_filter_bit(t->stores[i].at);
	t->filter = filter;
	set_watched();
}

static inline void drain(struct thread *t)
{
	if (t->n_stores == 0)
		return;
	for (uint32_t i = 0; i < t->n_stores; i++)
		copy(t->stores[i].at, &t->stores[i].value, t->stores[i].size);
	n_buffered -= t->n_stores;
	t->n_stores = 0;
	t->filter = 0;
	set_watched();
}

void sim_drain_all(void)
{
	for (uint32_t i = 0; i < n_used; i++)
		drain(&threads[i]);
}

static void buffer(struct thread *t, void *at, uint64_t value, unsigned size, bool release)
{
	if (t->n_stores == STORES)
		drain_one(t, 0);
	n_buffered++;
	t->stores[t->n_stores++] = (struct store){at, value, (uint8_t)size, release};
	t->filter |= sim_filter_bit(at);
	set_watched();
}

/* The running thread has done its plain access: restore the memory, buffer the store. */
static __attribute__((noinline)) void take_back(void)
{
	uint64_t now[2] = {0};
	uint8_t *at = lent.at;

	lent.at = NULL;
	memcpy(now, at, lent.size);
	memcpy(at, lent.was, lent.size);
	for (unsigned i = 0; lent.stores && i * 8 < lent.size; i++)
		buffer(self, at + i * 8, now[i], lent.size - i * 8 < 8 ? lent.size - i * 8 : 8,
		       false);
	set_watched();
}

static inline void settle(void)
{
	if (gantry_unlikely(lent.at != NULL))
		take_back();
}

static void lend(void *at, unsigned size, bool stores)
{
	lent.at = at;
	lent.size = (uint8_t)size;
	lent.stores = stores;
	memcpy(lent.was, at, size);
	set_watched();
}

/* Returns a number of points, with this mean. A draw at each point would take more time. */
static uint32_t draw_interval(uint32_t one_in)
{
	return 1 + sim_high(sim_draw_word(), 2 * one_in - 1);
}

/*
 * Make one store of a drawn thread visible: its oldest, or with SIM_PSO a store that may overtake
 * older ones.
 */
static void drain_some(void)
{
	struct thread *t = &threads[sim_draw(n_used)];
	uint32_t i = 0, want;

	to_drain = draw_interval(rates.drain_one_in);
	if (t->n_stores == 0)
		return;
	if (rates.model == SIM_PSO) {
		want = sim_draw(t->n_stores);
		if (!t->stores[want].release)
			while (i < want && t->stores[i].at != t->stores[want].at)
				i++;
	}
	drain_one(t, i);
}

/* -- changing the thread -- */

static void use_tls(struct thread *t)
{
	struct sim_proc *proc = t->pub.proc;

	if (!proc || proc->tls_bytes == 0 || proc->tls_owner == t)
		return;
	if (proc->tls_owner)
		memcpy(((struct thread *)proc->tls_owner)->tls, proc->tls, proc->tls_bytes);
	memcpy(proc->tls, t->tls, proc->tls_bytes);
	proc->tls_owner = t;
}

/* Continue another thread, or the environment, without saving the current context. */
static _Noreturn void resume(struct thread *t)
{
	self = t;
	set_watched();
	if (!t) {
		errno = home_errno;
		__builtin_longjmp(home, 1);
	}
	use_tls(t);
	errno = t->saved_errno;
	__builtin_longjmp(t->here, 1);
}

static void go_to(struct thread *t)
{
	struct thread *me = self;

	if (t == me)
		return;
	me->saved_errno = errno;
	if (!__builtin_setjmp(me->here))
		resume(t);
}

/* Returns whether a blocked thread is ready now, and sets its state. */
static bool wakes(struct thread *t)
{
	bool is_ready = false;

	if (t->checked != generation && t->ready) {
		t->checked = generation;
		is_ready = t->ready(t->wait_arg);
	}
	if (!is_ready && t->deadline > now_ns)
		return false;
	t->timed_out = !is_ready;
	t->state = READY;
	return true;
}

static void pass_timer(void)
{
	if (now_ns >= wake_at_ns) {
		wake_at_ns = SIM_NEVER;
		generation++;
	}
}

/* Advance the clock until a thread is ready. False: none will be, or not before until_ns. */
static bool pass_time(void)
{
	uint64_t next = wake_at_ns;
	bool alive = false;

	for (const struct thread *t = threads; t < threads + n_used; t++) {
		const bool hangs = sim_proc_hangs(t->pub.proc);
		const bool waits = t->state == BLOCKED || (t->state == READY && hangs);
		const uint64_t at = hangs ? t->pub.proc->hangs_until : t->deadline;

		alive |= waits;
		next = waits && at < next ? at : next;
	}
	if (!alive || next == SIM_NEVER) {
		end = alive ? SIM_STUCK : SIM_IDLE;
		if (until_ns == SIM_NEVER)
			return false;
	}
	if (next > until_ns || !alive) {
		now_ns = until_ns;
		end = SIM_TIME;
		return false;
	}
	if (next > now_ns)
		now_ns = next;
	return true;
}

/* Draw the next thread. Returns NULL to continue the environment; `end` is then set. */
static struct thread *choose(void)
{
	struct thread *ready[SIM_THREADS];
	uint32_t n;

	do {
		n = 0;
		pass_timer();
		for (struct thread *t = threads; t < threads + n_used; t++)
			if (!sim_proc_hangs(t->pub.proc) &&
			    (t->state == READY || (t->state == BLOCKED && wakes(t))))
				ready[n++] = t;
	} while (n == 0 && pass_time());
	return n != 0 ? ready[sim_high(sim_draw_word(), n)] : NULL;
}

void sim_pause(void)
{
	settle();
	end = SIM_ASKED;
	go_to(NULL);
}

/* A point: passed before each access and system call. */
static inline void step(uint64_t what, uint32_t ns)
{
	sim_note(what);
	steps++;
	now_ns += ns;
	if (gantry_unlikely(steps_left-- == 0)) {
		end = SIM_STEPS;
		go_to(NULL);
	} else if (gantry_unlikely(now_ns >= until_ns)) {
		end = SIM_TIME;
		go_to(NULL);
	}
}

void sim_access(bool atomic, const void *pc)
{
	settle();
	if (!self || (!atomic && !rates.plain_points))
		return;
	step((uint64_t)self->pub.id << 48 ^ (uint64_t)((uintptr_t)pc - self->base),
	     rates.access_ns);
	if (n_buffered != 0 && --to_drain == 0)
		drain_some();
	if (gantry_unlikely(--to_switch == 0)) {
		to_switch = draw_interval(rates.switch_one_in);
		go_to(choose());
	}
}

static void pass(uint32_t ns)
{
	struct thread *next;

	step((uint64_t)self->pub.id << 48 | 1, ns);
	/* a wait takes longer than an access, so more stores leave their buffers */
	for (int i = 0; n_buffered != 0 && i < 8; i++)
		if (--to_drain == 0)
			drain_some();
	next = choose();
	go_to(next == self ? choose() : next); /* prefers another thread */
}

void sim_pass(void)
{
	settle();
	if (self)
		pass(rates.access_ns);
}

void sim_relax(void)
{
	settle();
	if (self)
		pass(1 + sim_draw(RELAX_NS));
}

void sim_yield(void)
{
	settle();
	if (!self)
		return;
	drain(self);
	pass(1 + sim_draw(rates.call_ns));
}

static void stall(void)
{
	sim_block(NULL, NULL, now_ns + 1 + sim_draw64() % rates.stall_ns);
}

void sim_call(void)
{
	uint64_t word;

	settle();
	if (!self)
		return;
	drain(self);
	word = sim_draw_word();
	step((uint64_t)self->pub.id << 48, 1 + sim_high(word, rates.call_ns));
	if (rates.stall_one_in != 0 && sim_draw(rates.stall_one_in) == 0)
		stall();
	else if (sim_low(word, rates.call_one_in) == 0)
		go_to(choose());
}

bool sim_block(bool (*ready)(void *arg), void *arg, uint64_t deadline)
{
	if (!self)
		sim_fail("the environment cannot wait");
	settle();
	drain(self);
	self->state = BLOCKED;
	self->ready = ready;
	self->wait_arg = arg;
	self->deadline = deadline;
	self->checked = generation - 1;
	go_to(choose());
	return !self->timed_out;
}

void sim_changed(void)
{
	generation++;
}

void sim_wake_at(uint64_t at)
{
	if (at < wake_at_ns)
		wake_at_ns = at;
}

/* -- store buffers, for the hooks -- */

static struct store *own_store(const void *at)
{
	for (uint32_t i = self ? self->n_stores : 0; i-- > 0;)
		if (self->stores[i].at == at)
			return &self->stores[i]; /* the youngest store to this address */
	return NULL;
}

/* Whether several threads have used the memory, for rates.only_shared. */
static bool is_shared(const void *at)
{
	/* shared memory, which processes map at different addresses */
	if ((uintptr_t)at - SIM_MAPPED < SIM_PROCS * SIM_MAPPED_BYTES)
		return true;
	if ((size_t)((const uint8_t *)at - stacks) < SIM_THREADS * (size_t)(SIM_STACK + GUARD))
		return false;
	return sim_line_use(at, self->pub.id);
}

/* Whether the memory is on the stack of the running thread. */
static inline bool is_on_own_stack(const void *at)
{
	const uint8_t *stack = stacks + (size_t)(self - threads) * (SIM_STACK + GUARD);

	return (size_t)((const uint8_t *)at - stack) < SIM_STACK + GUARD;
}

static inline void plain_point(const void *at, const void *pc)
{
	if (!self || is_on_own_stack(at) || (rates.only_shared && !is_shared(at)))
		settle();
	else
		sim_access(false, pc);
}

void sim_plain_read(void *at, const void *pc)
{
	const struct store *own;

	plain_point(at, pc);
	own = own_store(at);
	if (!own)
		return;
	if (rates.forwards) {
		lend(at, own->size, false);
		memcpy(at, &own->value, own->size);
	} else {
		drain(self);
	}
}

static bool is_late(const void *at)
{
	for (uint32_t i = 0; i < n_late; i++)
		if ((size_t)((const uint8_t *)at - late[i].at) < late[i].bytes)
			return self && rates.model != SIM_SC;
	return false;
}

void sim_plain_write(void *at, unsigned size, const void *pc)
{
	plain_point(at, pc);
	if (own_store(at))
		drain(self);
	if (n_late != 0 && is_late(at))
		lend(at, size, true);
}

void sim_plain_copy(void *to, const void *from, size_t bytes, const void *pc)
{
	size_t n;

	sim_access(false, pc);
	for (size_t i = 0; n_late != 0 && is_late(to) && i < bytes; i += n) {
		uint64_t word = 0;

		n = bytes - i < 8 ? bytes - i : 8;
		memcpy(&word, (const uint8_t *)from + i, n);
		buffer(self, (uint8_t *)to + i, word, (unsigned)n, false);
	}
	if (n_late != 0 && is_late(to))
		return;
	n = bytes <= 16 ? bytes : (bytes / 8 + 7) & ~(size_t)7;
	for (size_t i = 0; i < bytes; i += n) {
		if (i != 0)
			sim_access(true, pc);
		memcpy((uint8_t *)to + i, (const uint8_t *)from + i, bytes - i < n ? bytes - i : n);
	}
}

void sim_late(const void *at, size_t bytes)
{
	if (n_late == LATE)
		sim_fail("more than %u ranges of late memory", LATE);
	late[n_late++] = (struct range){at, bytes};
	set_watched();
}

uint64_t sim_load(const void *at, unsigned size, const void *pc)
{
	uint64_t value = 0;

	sim_access(true, pc);
	copy(&value, at, size);
	for (uint32_t i = 0; self && i < self->n_stores; i++)
		if (self->stores[i].at == at)
			value = self->stores[i].value; /* the last store is the youngest */
	return value;
}

void sim_store(void *at, uint64_t value, unsigned size, int order, const void *pc)
{
	sim_access(true, pc);
	if (!self || rates.model == SIM_SC || order == __ATOMIC_SEQ_CST) {
		if (self)
			drain(self);
		copy(at, &value, size);
		return;
	}
	buffer(self, at, value, size, order == __ATOMIC_RELEASE);
}

void sim_barrier(const void *pc)
{
	sim_access(true, pc);
	if (self)
		drain(self);
}

/* -- threads -- */

static struct thread *starting;

/* a function of its own: __builtin_longjmp() cannot jump within a function */
static __attribute__((noinline)) _Noreturn void back_home(void)
{
	__builtin_longjmp(home, 1);
}

static void first_step(void)
{
	if (!__builtin_setjmp(starting->start))
		back_home();
	sim_thread_exit(self->fn(self->arg));
}

/*
 * Set the coroutine of a slot to the state before fn(arg), with an empty stack. Only the first call
 * creates a context, which is slow.
 */
static void prepare(struct thread *t)
{
	static ucontext_t first, unused;
	struct thread *me = self;
	context back;

	if (t->has_start) {
		memcpy(&t->here, &t->start, sizeof(t->here));
		return;
	}
	getcontext(&first);
	first.uc_stack.ss_sp = stacks + (size_t)(t - threads) * (SIM_STACK + GUARD) + GUARD;
	first.uc_stack.ss_size = SIM_STACK;
	first.uc_link = NULL;
	makecontext(&first, first_step, 0);
	starting = t;
	memcpy(&back, &home, sizeof(back));
	if (!__builtin_setjmp(home))
		swapcontext(&unused, &first);
	memcpy(&home, &back, sizeof(back));
	self = me;
	set_watched();
	t->has_start = true;
	memcpy(&t->here, &t->start, sizeof(t->here));
}

struct sim_thread *sim_thread_start(struct sim_proc *proc, const char *name, void *(*fn)(void *arg),
				    void *arg)
{
	struct thread *t = threads;

	while (t < threads + SIM_THREADS && t->state != FREE)
		t++;
	if (t == threads + SIM_THREADS)
		return NULL;
	memset(t, 0, offsetof(struct thread, here));
	t->pub.proc = proc;
	t->pub.id = ++n_started;
	t->base = (uintptr_t)__executable_start -
		  (uintptr_t)sim_proc_place(proc, __executable_start);
	snprintf(t->pub.name, sizeof(t->pub.name), "%s", name);
	t->fn = fn;
	t->arg = arg;
	if (proc && proc->tls_bytes != 0)
		memcpy(t->tls, proc->tls_initial, proc->tls_bytes);
	prepare(t);
	t->state = READY;
	if (n_used < (uint32_t)(t - threads) + 1)
		n_used = (uint32_t)(t - threads) + 1;
	generation++;
	return &t->pub;
}

static void forget_tls(struct thread *t)
{
	if (t->pub.proc && t->pub.proc->tls_owner == t)
		t->pub.proc->tls_owner = NULL;
}

void sim_thread_exit(void *result)
{
	settle();
	drain(self);
	forget_tls(self);
	self->result = result;
	self->state = ENDED;
	generation++;
	resume(choose());
}

bool sim_thread_ended(const struct sim_thread *t)
{
	return ((const struct thread *)t)->state == ENDED;
}

void *sim_thread_result(struct sim_thread *t)
{
	struct thread *thread = (struct thread *)t;

	thread->state = FREE;
	return thread->result;
}

void sim_threads_kill(struct sim_proc *proc)
{
	for (uint32_t i = 0; i < n_used; i++) {
		struct thread *t = &threads[i];

		if (t->state == FREE || t->pub.proc != proc)
			continue;
		/* a drawn number of the oldest stores become visible; the other stores are lost */
		for (uint32_t n = t->n_stores != 0 ? sim_draw(t->n_stores + 1) : 0; n > 0; n--)
			drain_one(t, 0);
		n_buffered -= t->n_stores;
		t->n_stores = 0;
		t->filter = 0;
		t->state = FREE;
	}
	set_watched();
	proc->tls_owner = NULL;
	generation++;
}

void sim_leave(void)
{
	end = SIM_ASKED;
	resume(NULL);
}

/* -- runs -- */

void sim_begin(uint64_t seed)
{
	if (!stacks) {
		stacks = mmap(NULL, (size_t)SIM_THREADS * (SIM_STACK + GUARD),
			      PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
			      -1, 0);
		if (stacks == MAP_FAILED)
			sim_fail("no memory for stacks");
		for (size_t i = 0; i < SIM_THREADS; i++)
			mprotect(stacks + i * (SIM_STACK + GUARD), GUARD, PROT_NONE);
	}
	for (uint32_t i = 0; i < n_used; i++)
		threads[i].state = FREE;
	self = NULL; /* a fault in a thread can have ended the last run */
	n_used = n_started = n_late = n_buffered = 0;
	lent.at = NULL;
	set_watched();
	sim_draw_begin(seed);
	trace = steps = now_ns = generation = 0;
	wake_at_ns = SIM_NEVER;
}

void sim_rates_set(const struct sim_rates *r)
{
	rates = *r;
	if (rates.only_shared)
		sim_lines_clear();
	to_switch = draw_interval(rates.switch_one_in);
	to_drain = draw_interval(rates.drain_one_in);
	set_watched();
}

enum sim_end sim_run(uint64_t max_steps, uint64_t until)
{
	struct thread *t;

	steps_left = max_steps;
	until_ns = until;
	t = choose();
	if (!t)
		return end;
	home_errno = errno;
	if (!__builtin_setjmp(home))
		resume(t);
	return end;
}
