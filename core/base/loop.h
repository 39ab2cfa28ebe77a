/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loop.h - the control loop: readable fds and timers, on one thread. No IO passes here.
 */
#ifndef GN_BASE_LOOP_H
#define GN_BASE_LOOP_H

#include <stdint.h>

struct gn_loop;

struct gn_loop *gn_loop_create(void); /* NULL with errno set */
void gn_loop_destroy(struct gn_loop **loop_p);

/* Watch an fd: fn runs at each turn at which it is readable, hung up or in error. Level-triggered. 0 or -errno. */
int gn_loop_add_fd(struct gn_loop *loop, int fd, void (*fn)(void *arg), void *arg);
/* Legal from inside a callback, also for an fd that is readable in the same turn. The fd must still be open. */
void gn_loop_remove_fd(struct gn_loop *loop, int fd);

/* A timer lives in the caller's memory; at_ns 0: not set. Initialise fn and arg once. */
struct gn_timer {
	uint64_t at_ns;
	void (*fn)(void *arg);
	void *arg;
	struct gn_timer *next, **prev_p;
	uint32_t turn; /* in which it was set */
};

/* Again: moves it. What a timer's callback sets runs at the next turn at the earliest. */
void gn_loop_set_timer(struct gn_loop *loop, struct gn_timer *timer, uint64_t at_ns);
void gn_loop_clear_timer(struct gn_loop *loop, struct gn_timer *timer);

/* Run fn(arg) on the loop's thread at its next turn. Any thread. -ENOMEM. */
int gn_loop_post(struct gn_loop *loop, void (*fn)(void *arg), void *arg);
/* The same for what cannot be left out: tries until there is memory for it, 32 bytes. Any thread. */
void gn_loop_must_post(struct gn_loop *loop, void (*fn)(void *arg), void *arg);

/* Run until gn_loop_quit. Returns what quit was given. */
int gn_loop_run(struct gn_loop *loop);
void gn_loop_quit(struct gn_loop *loop, int status);
/* One turn, waiting at most timeout_ms (-1: until something happens). For tests. */
int gn_loop_turn(struct gn_loop *loop, int timeout_ms);

#endif
