/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * proc.h - a simulated process: an image of the product with its own globals, an arena for its
 * heap, descriptors, mappings
 */
#ifndef SIM_PROC_H
#define SIM_PROC_H

#include <sys/types.h>

#include "sim.h"

#define SIM_TLS 2048u /* bytes of thread-local variables of the product */
#define SIM_FDS 256u  /* most descriptors of a process */
#define SIM_MAPS 256u /* most mappings of a process */
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
	bool dying;             /* the killed process closes its descriptors one after the other */
	uint64_t hangs_until;   /* simulated time until which no thread of it runs */
	int status;             /* exit status, or minus the signal that killed it */
	struct sim_file *pidfd; /* see os_fd.c; NULL: no process has opened it */
	struct sim_image *image;
	struct sim_arena *arena;
	/*
	 * Thread-local variables. The code of the image accesses them at `tls`. At the moment they
	 * have the values of the thread tls_owner; sched.c exchanges them when the thread changes.
	 * tls_initial: the values for a new thread.
	 */
	uint8_t *tls, *tls_initial;
	size_t tls_bytes;
	void *tls_owner;
	uint32_t pending_signals;     /* bit mask of signals for the signalfd */
	uint32_t memory_fails_one_in; /* one in this many allocations fails; 0: none fails */
	/* depth of calls of libconfig, which does not check allocations: none fails in them */
	uint32_t memory_spared;
	struct sim_fd fds[SIM_FDS];
	struct sim_map maps[SIM_MAPS];
	uint32_t n_overs; /* replaced parts of its mappings, see `overs` in os_doca.c */
	void (*at_exit[SIM_AT_EXIT])(void);
	uint32_t n_at_exit;
	char left[160]; /* the resources that the process had at exit(), see sim_proc_left() */
	uint32_t n_files_open; /* streams of libc */
};

/* proc: NULL: the environment */
static inline bool sim_proc_hangs(const struct sim_proc *proc)
{
	return proc && proc->hangs_until > sim_now();
}

/*
 * Load the product's shared object SIM_PROCS times, each copy with its own globals. Called once.
 * Prints an error and exits if that fails. file NULL (component level): the product is linked to
 * this program, and there is one process.
 */
void sim_images_load(const char *file);
/*
 * Returns the address of a function of the product in the image of a process. Calls sim_fail() if
 * the image has no such function.
 */
void *sim_proc_symbol(const struct sim_proc *proc, const char *name);

/*
 * Start a process whose first thread runs fn(arg), with the globals, heap, descriptors and mappings
 * of a new program. Returns NULL if there are too many processes.
 */
struct sim_proc *sim_proc_start(const char *name, uid_t uid, void *(*fn)(void *arg), void *arg);
/*
 * Kill a process in one step: stop its threads, close its descriptors, remove its mappings. One of
 * its threads may call this.
 */
void sim_proc_kill(struct sim_proc *proc, int status);
/*
 * Kill a process by SIGKILL, as the kernel does: threads stop at once. While other processes run,
 * descriptors are closed one after the other, and the mappings are removed, in a drawn order and at
 * drawn moments. Then the end of the process is reported, and the environment continues.
 */
void sim_proc_kill_in_steps(struct sim_proc *proc, int status);
/* Deliver a signal to the signalfd of the process. */
void sim_proc_signal(struct sim_proc *proc, int signal);
/*
 * Record the resources of a process that has called exit(). A process that calls _exit() is not
 * expected to release them.
 */
void sim_proc_note_left(struct sim_proc *proc);
/*
 * Returns a text with the descriptors, mappings, streams and heap that a process had not released
 * when it called exit(). NULL: there were none. Regions in quarantine are not counted.
 */
const char *sim_proc_left(const struct sim_proc *proc);
/* Free the slot of a process that has ended. */
void sim_proc_reap(struct sim_proc *proc);
struct sim_proc *sim_proc_find(pid_t pid);
/* Returns the process of the running thread. Calls sim_fail() if there is none. */
struct sim_proc *sim_proc_self(void);
/* Kill and reap all processes, at the end of a run. */
void sim_procs_clear(void);

/* Returns an address in the code, relative to its image: all images and runs have the same. */
uint64_t sim_proc_place(const struct sim_proc *proc, const void *pc);

/* -- heap.c -- */
struct sim_arena *sim_arena_new(void);
void sim_arena_reset(struct sim_arena *arena);
/* Returns the bytes that the process has allocated and not freed. */
size_t sim_arena_used(const struct sim_arena *arena);
/* Whether the next allocation of the running process fails, as drawn. Failures are counted. */
bool sim_memory_fails(void);
extern uint32_t sim_memory_failures;
/* Allocates zeroed memory of the simulator, which outlives a process. Aborts on failure. */
void *sim_host_alloc(size_t bytes);
void sim_host_free(void *memory);

/* -- the end of a process, for each module of the kernel -- */
void sim_fds_close_all(struct sim_proc *proc);
/* Close the open descriptor that follows `before` lower ones. False: there are fewer. */
bool sim_fds_close_one(struct sim_proc *proc, uint32_t before);
/* Returns the kind of the file of a descriptor. NULL: the descriptor is closed. */
const char *sim_fd_kind(const struct sim_proc *proc, int fd);
void sim_maps_drop_all(struct sim_proc *proc);
/* Report the end of a process to the holders of its pidfd. */
void sim_pidfd_end(struct sim_proc *proc);

#endif
