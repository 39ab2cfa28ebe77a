/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * event_loop.h - the control loop: file descriptors and timers on one thread. No IO passes through
 * it.
 *
 * Callbacks of fds, timers and posts run on the thread that runs the loop, one at a time. A caller
 * of a function marked "any thread" may hold a lock that a callback also takes, because these
 * functions do not wait for callbacks. Only gn_loop_remove_fd() waits for a callback.
 */
#ifndef GN_BASE_LOOP_H
#define GN_BASE_LOOP_H

#include <stdint.h>

struct gn_loop;

struct gn_loop *gn_loop_create(void); /* returns NULL with errno set if it fails */
void gn_loop_destroy(struct gn_loop **loop_p);
/*
 * Close the file descriptors of the loop in a child after fork(2): the child has no thread that
 * runs the loop. The child must not use or free the loop otherwise, because another thread of the
 * parent could have been using it during the fork.
 */
void gn_loop_abandon(struct gn_loop *loop);

/*
 * Watch an fd: fn runs in each turn in which it is readable, hung up or in error. Level-triggered.
 * Any thread. Returns 0 or -errno.
 */
int gn_loop_add_fd(struct gn_loop *loop, int fd, void (*fn)(void *arg), void *arg);
/*
 * Watch an fd: fn runs in each turn in which it is writable, hung up or in error. An fd can be
 * watched either for reading or for writing.
 */
int gn_loop_add_writer(struct gn_loop *loop, int fd, void (*fn)(void *arg), void *arg);
/*
 * Stop watching an fd, which must still be open. After the return fn does not run. A callback can
 * call this function, also for an fd that is ready in the same turn. Any thread. On a thread other
 * than that of the loop it waits until fn has returned, so the caller must not hold a lock that fn
 * takes.
 */
void gn_loop_remove_fd(struct gn_loop *loop, int fd);

/* A timer, in memory of the caller. at_ns 0: not set. Initialise fn and arg once. */
struct gn_timer {
	uint64_t at_ns;
	void (*fn)(void *arg);
	void *arg;
	/* list of the first timer of each time, sorted by time */
	struct gn_timer *next, *prev;
	/* circular list of the timers of one time, in the order of setting */
	struct gn_timer *same, *same_prev;
	uint32_t turn; /* turn in which it was set */
};

/*
 * Set or move a timer. A timer that a callback of a timer sets runs in the next turn at the
 * earliest. Any thread.
 */
void gn_loop_set_timer(struct gn_loop *loop, struct gn_timer *timer, uint64_t at_ns);
/*
 * Clear a timer. Any thread; on a thread other than that of the loop, fn can still be running after
 * the return.
 */
void gn_loop_clear_timer(struct gn_loop *loop, struct gn_timer *timer);

/* Run fn(arg) on the thread of the loop in its next turn. Any thread. Returns 0 or -ENOMEM. */
int gn_loop_post(struct gn_loop *loop, void (*fn)(void *arg), void *arg);
/*
 * Post as gn_loop_post() does, but never fail. When out of memory, it uses a reserve of the loop;
 * when that is empty, it retries until there is memory. Any thread. If many objects can post at the
 * same time, use gn_loop_post_own().
 */
void gn_loop_must_post(struct gn_loop *loop, void (*fn)(void *arg), void *arg);

/* A post in memory of the caller; zeroed at first. */
struct gn_post {
	/* position in a list; `at` is NULL while the post is not pending */
	struct gn_post *next, **at;
	void (*fn)(void *arg);
	void *arg;
	int place; /* private to the loop */
};

/*
 * Post as gn_loop_post() does, without allocation. While the post is pending, another call has no
 * effect. It is no longer pending when fn starts. Any thread.
 */
void gn_loop_post_own(struct gn_loop *loop, struct gn_post *post, void (*fn)(void *arg), void *arg);
/*
 * Cancel a post, before its memory is freed. Any thread; on a thread other than that of the loop,
 * fn can still be running after the return.
 */
void gn_loop_withdraw(struct gn_loop *loop, struct gn_post *post);

/*
 * Run until gn_loop_quit(). Returns the status of gn_loop_quit(); or -errno if epoll_wait(2) fails,
 * because a descriptor of the loop was closed.
 */
int gn_loop_run(struct gn_loop *loop);
/*
 * End gn_loop_run() after this turn. If gn_loop_run() has not been called yet, it will return
 * immediately. Any thread.
 */
void gn_loop_quit(struct gn_loop *loop, int status);
/*
 * For tests: run one turn. timeout_ms: longest wait; -1: until an event occurs. Returns the number
 * of ready fds, or -errno.
 */
int gn_loop_turn(struct gn_loop *loop, int timeout_ms);

#endif
