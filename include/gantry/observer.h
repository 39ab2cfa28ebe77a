/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * observer.h - the interface of an observer: a plugin that shows the progress of roles with work,
 * such as a long copy, outside of the process.
 *
 * Life cycle of an observer
 *   open      once for each entry of `observers`   control thread, before a role starts
 *   progress  while roles with work run            control thread
 *   close     once, after the last progress        control thread
 *
 * `gantry run` and `gantry copy` open observers. `gantry check` only checks them. libgantry ignores
 * them.
 *
 * Every slot may be NULL. gantry-host(3) describes what plugins use: the constant that it exports,
 * options and the log. Reports do not show the counters of an observer.
 */
#ifndef GANTRY_OBSERVER_H
#define GANTRY_OBSERVER_H

#include <gantry/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

enum gantry_progress_state {
	GANTRY_PROGRESS_WAITING = 0, /* the role has not submitted an IO: it waits for its peer */
	GANTRY_PROGRESS_WORKING = 1, /* the role submits IO */
	/* the role has ended without an error; done is less than target if the run ended early */
	GANTRY_PROGRESS_DONE = 2,
	/* the role has failed, or has not ended when the process ends */
	GANTRY_PROGRESS_FAILED = 3
};

/*
 * The progress of one role, from its report. The host allocates the struct, so it can grow at its
 * end. Pointers are valid during the call.
 */
struct gantry_progress {
	const char *role;    /* name of the role in the configuration */
	uint64_t elapsed_ns; /* time since the start of the run */
	uint64_t done;       /* at most target; 0 if target is 0 */
	uint64_t target;     /* value of `done` at the end; 0: the role knows no end, or not yet */
	const char *unit; /* unit of done and target: "bytes", "ops" or "ns"; "" without target */
	uint64_t ops, bytes; /* IOs that have completed without an error, and their bytes */
	uint32_t state;      /* enum gantry_progress_state */
};

/*
 * The functions of an observer.
 *
 * host      services of the host; valid until close
 * observer  what open stored in *observer_p
 * ownership  arguments are valid during the call, unless stated otherwise
 */
struct gantry_observer_ops {
	/*
	 * Create the observer from its options.
	 *
	 * conf        the options; valid until close
	 * observer_p  out: the object of the observer
	 * returns     0
	 *             -errno: failed; the observer has logged the cause. The run ends
	 * thread      control thread
	 * ownership   the observer owns *observer_p until close
	 * NULL        the observer has no object: `observer` is NULL
	 */
	int (*open)(const struct gantry_host *host, const void *conf, void **observer_p);
	/*
	 * Show the progress of a role. The host calls it about once a second for each role with
	 * work (GANTRY_ROLE_WORKS) that runs, and once after the end of that role, with
	 * GANTRY_PROGRESS_DONE or GANTRY_PROGRESS_FAILED. A role that did not start has no calls.
	 * If a second signal ends the process at once, that last call is omitted, as is close.
	 *
	 * p       the progress
	 * thread  control thread; must not block
	 * NULL    the observer shows nothing
	 */
	void (*progress)(void *observer, const struct gantry_progress *p);
	/* Free the observer. Control thread. NULL: nothing. */
	void (*close)(void *observer);
};

#ifdef __cplusplus
}
#endif

#endif
