/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dc_protect.c - read-only sources
 *
 * Pages that belong only in part to a source stay writable, so the layer misses writes to them; the
 * checksum of dc_task.c sees those. The handler reports the instruction, makes the page writable
 * and lets the instruction run again.
 */
#include "check/dc_protect.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "check/dc.h"

static bool is_on;
static size_t page;
static struct sigaction previous;

static struct dc_range pages_of(const struct dc_object *task, unsigned slot)
{
	struct dc_range r = task->task.ranges[slot];

	if (!task->task.reads[slot] || !r.end)
		return (struct dc_range){0, 0};
	r.start = (r.start + page - 1) & ~(page - 1);
	r.end &= ~(page - 1);
	return r.end > r.start ? r : (struct dc_range){0, 0};
}

static void set_protection(const struct dc_object *task, int protection)
{
	struct dc_range r;
	unsigned i;

	if (!is_on)
		return;
	for (i = 0; i < DC_MAX_SLOTS; i++) {
		r = pages_of(task, i);
		if (r.end)
			(void)mprotect((void *)r.start, r.end - r.start, protection);
	}
}

void dc_protect(const struct dc_object *task)
{
	set_protection(task, PROT_READ);
}

void dc_unprotect(const struct dc_object *task)
{
	set_protection(task, PROT_READ | PROT_WRITE);
}

/* The handler looks for the task whose source has the address. */
struct fault {
	uintptr_t address;
	const struct dc_object *task;
};

static void find_fault(struct dc_object *o, void *arg)
{
	struct fault *f = arg;
	struct dc_range r;
	unsigned i;

	if (!dc_types[o->type].is_task || !o->task.is_submitted)
		return;
	for (i = 0; i < DC_MAX_SLOTS; i++) {
		r = pages_of(o, i);
		if (f->address >= r.start && f->address < r.end)
			f->task = o;
	}
}

static const void *instruction(const void *context)
{
#if defined(__x86_64__)
	return (const void *)((const ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
	return (const void *)((const ucontext_t *)context)->uc_mcontext.pc;
#else
	(void)context;
	return NULL;
#endif
}

/* A write of the program holds no lock of this layer. */
static void on_fault(int signal_number, siginfo_t *info, void *context)
{
	struct fault fault = {.address = (uintptr_t)info->si_addr};

	if (dc_thread.has_lock) { /* the memory of a source has gone */
		sigaction(signal_number, &previous, NULL);
		return;
	}
	dc_lock();
	dc_each(find_fault, &fault);
	if (fault.task) {
		dc_report(DC_RULE_SOURCE_WRITTEN, fault.task, DC_doca_task_submit,
			  instruction(context), "memory=%#lx", (unsigned long)fault.address);
		dc_unprotect(fault.task);
	}
	dc_unlock();
	if (!fault.task)
		sigaction(signal_number, &previous, NULL); /* the instruction faults again */
}

static __attribute__((constructor)) void start(void)
{
	struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};

	page = (size_t)sysconf(_SC_PAGESIZE);
	is_on = getenv("GANTRY_DOCA_CHECK_PROTECT") != NULL;
	if (is_on)
		sigaction(SIGSEGV, &action, &previous);
}
