/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * proc.h - a simulated process: an image of the product with globals of its own, an arena for its
 * heap, descriptors, mappings
 */
#ifndef SIM_PROC_H
#define SIM_PROC_H

#include <sys/types.h>

#include "sim.h"

#define SIM_TLS 2048u /* bytes of thread-local variables of the product */
#define SIM_FDS 256u  /* of a process */
#define SIM_MAPS 256u /* of a process */
#define SIM_AT_EXIT 8u

struct sim_image; /* proc.c */
struct sim_file;  /* os_fd.c: an open file description */
struct sim_arena; /* heap.c */

struct sim_map {
	uint8_t *at; /* NULL: a free slot */
	size_t bytes;
	struct sim_file *file; /* NULL: anonymous */
	bool is_private;
};

struct sim_fd {
	struct sim_file *file; /* NULL: closed */
	bool cloexec;
};

struct sim_proc {
	char name[24];
	pid_t pid; /* 0: a free slot */
	uid_t uid;
	bool alive;
	bool dying; /* it was killed, and its descriptors close one after the other */
	int status; /* of its end: what it gave to exit(), or minus the signal that killed it */
	struct sim_file *pidfd; /* see os_fd.c; NULL: no process has opened it */
	struct sim_image *image;
	struct sim_arena *arena;
	uint8_t *tls, *tls_initial; /* of the image; the present values belong to tls_owner */
	size_t tls_bytes;
	void *tls_owner;
	uint32_t pending_signals;     /* bits; of its signalfd */
	uint32_t memory_fails_one_in; /* allocations; 0: none fails */
	/* calls of libconfig, which does not check what it allocates: nothing fails */
	uint32_t memory_spared;
	struct sim_fd fds[SIM_FDS];
	struct sim_map maps[SIM_MAPS];
	uint32_t n_overs; /* os_doca.c */
	void (*at_exit[SIM_AT_EXIT])(void);
	uint32_t n_at_exit;
	char left[160];        /* what it held when it called exit(), see sim_proc_left() */
	uint32_t n_files_open; /* streams of libc */
};

/*
 * Once: load the product's shared object SIM_PROCS times, each with globals of its own. wrong:
 * prints and exits.
 * NULL: the product is linked to this program, and there is one process (tests of components).
 */
void sim_images_load(const char *file);
/* The address of a function of the product in the image of a process. Fails if there is none. */
void *sim_proc_symbol(const struct sim_proc *proc, const char *name);

/*
 * A new process, whose first thread runs fn(arg); its globals, heap, descriptors and mappings are
 * as at the start of a program. NULL: there are too many.
 */
struct sim_proc *sim_proc_start(const char *name, uid_t uid, void *(*fn)(void *arg), void *arg);
/*
 * At once: threads stop where they are, descriptors are closed, mappings go. May be called by one
 * of its threads.
 */
void sim_proc_kill(struct sim_proc *proc, int status);
/*
 * SIGKILL, as the kernel executes it: threads stop at once. Descriptors close one after the other,
 * and the mappings go, while other processes run, in an order and at moments that are drawn. Then
 * its end is reported, and the environment continues.
 */
void sim_proc_kill_in_steps(struct sim_proc *proc, int status);
/* A signal for its signalfd. */
void sim_proc_signal(struct sim_proc *proc, int signal);
/*
 * The process has called exit() and ends: note what it holds. One that ends by _exit() gives
 * nothing back.
 */
void sim_proc_note_left(struct sim_proc *proc);
/*
 * Of a process that has called exit(): the descriptors, mappings, streams and heap that it had not
 * given back. NULL: none. Regions in quarantine are not counted.
 */
const char *sim_proc_left(const struct sim_proc *proc);
/* Forget an ended process. */
void sim_proc_reap(struct sim_proc *proc);
struct sim_proc *sim_proc_find(pid_t pid);
/* The process of the running thread. Fails if there is none. */
struct sim_proc *sim_proc_self(void);
/* All of them, at the end of a run. */
void sim_procs_clear(void);

/* A place in the code, the same for all images and all runs. */
uint64_t sim_proc_place(const struct sim_proc *proc, const void *pc);

/* -- heap.c -- */
struct sim_arena *sim_arena_new(void);
void sim_arena_reset(struct sim_arena *arena);
/* Bytes that the process has allocated and not freed. */
size_t sim_arena_used(const struct sim_arena *arena);
/* An allocation of the running process fails now, as drawn. Counted. */
bool sim_memory_fails(void);
extern uint32_t sim_memory_failures;
/* Memory of the simulator, which outlives a process. Zeroed. Fails if there is none. */
void *sim_host_alloc(size_t bytes);
void sim_host_free(void *memory);

/* -- the end of a process, per module of the kernel -- */
void sim_fds_close_all(struct sim_proc *proc);
/*
 * Close the open descriptor with this number of lower ones before it. False: there are not so many.
 */
bool sim_fds_close_one(struct sim_proc *proc, uint32_t before);
/* The kind of what a descriptor refers to. NULL: it is closed. */
const char *sim_fd_kind(const struct sim_proc *proc, int fd);
void sim_maps_drop_all(struct sim_proc *proc);
/* Processes that hold its pidfd see its end. */
void sim_pidfd_end(struct sim_proc *proc);

#endif
