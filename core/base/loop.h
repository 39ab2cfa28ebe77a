/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loop.h - the control loop: fds that are ready and timers, on one thread. No IO passes here.
 *
 * Functions of fds, timers and posts run on the thread that runs the loop, one at a time. What is
 * called here may be called from any thread where it says so, with locks held that those functions
 * take; removing an fd is the exception.
 */
#ifndef GN_BASE_LOOP_H
#define GN_BASE_LOOP_H

#include <stdint.h>

struct gn_loop;

struct gn_loop *gn_loop_create(void); /* NULL with errno set */
void gn_loop_destroy(struct gn_loop **loop_p);
/*
 * In the child of a fork, which has no thread that runs it: close its descriptors. Nothing else of
 * it can be used, nor freed, since some other thread may have been at work on it.
 */
void gn_loop_abandon(struct gn_loop *loop);

/*
 * Watch an fd: fn runs at each turn at which it is readable, hung up or in error. Level-triggered.
 * Any thread. 0 or -errno.
 */
int gn_loop_add_fd(struct gn_loop *loop, int fd, void (*fn)(void *arg), void *arg);
/*
 * The same at each turn at which it takes what is written, hung up or in error. An fd is watched
 * for one of both.
 */
int gn_loop_add_writer(struct gn_loop *loop, int fd, void (*fn)(void *arg), void *arg);
/*
 * Legal from inside a callback, also for an fd that is readable in the same turn. The fd must still
 * be open. Any thread: on another one than the loop's it waits until fn has returned, so hold no
 * lock that fn takes. fn does not run again.
 */
void gn_loop_remove_fd(struct gn_loop *loop, int fd);

/* A timer lives in the caller's memory; at_ns 0: not set. Initialise fn and arg once. */
struct gn_timer {
	uint64_t at_ns;
	void (*fn)(void *arg);
	void *arg;
	struct gn_timer *next, *prev;      /* by time: the first one of each */
	struct gn_timer *same, *same_prev; /* in a circle, as they were set: those of one time */
	uint32_t turn;                     /* in which it was set */
};

/*
 * Again: moves it. What a timer's callback sets runs at the next turn at the earliest. Any thread.
 */
void gn_loop_set_timer(struct gn_loop *loop, struct gn_timer *timer, uint64_t at_ns);
/* On another thread than the loop's, fn may still be running. */
void gn_loop_clear_timer(struct gn_loop *loop, struct gn_timer *timer);

/* Run fn(arg) on the loop's thread at its next turn. Any thread. -ENOMEM. */
int gn_loop_post(struct gn_loop *loop, void (*fn)(void *arg), void *arg);
/*
 * The same for what cannot be left out: the loop has a reserve, and when that is used up, it tries
 * until there is memory. Any thread. What many may have to do at once needs posts of its own.
 */
void gn_loop_must_post(struct gn_loop *loop, void (*fn)(void *arg), void *arg);

/* A post in the caller's memory, all zero at first. */
struct gn_post {
	struct gn_post *next, **at; /* at NULL: not posted */
	void (*fn)(void *arg);
	void *arg;
	int place; /* the loop's */
};

/*
 * The same without memory. It is not posted any more when fn begins; until then it is posted but
 * once. Any thread.
 */
void gn_loop_post_own(struct gn_loop *loop, struct gn_post *post, void (*fn)(void *arg), void *arg);
/*
 * Before its memory goes: fn does not run any more. On another thread than the loop's, it may still
 * be running.
 */
void gn_loop_withdraw(struct gn_loop *loop, struct gn_post *post);

/*
 * Run until gn_loop_quit. Returns what quit was given, or -errno when it cannot wait: somebody
 * closed its descriptors.
 */
int gn_loop_run(struct gn_loop *loop);
/* At the end of this turn; before gn_loop_run: that one returns at once. Any thread. */
void gn_loop_quit(struct gn_loop *loop, int status);
/*
 * One turn, waiting at most timeout_ms (-1: until something happens). How many fds had something,
 * or -errno. For tests.
 */
int gn_loop_turn(struct gn_loop *loop, int timeout_ms);

#endif
