/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core.h - a role of the core with loop, worker and device. The test is its plugin and its peers.
 *
 *     fake_core_init(&fc); change fc.listen, fc.connect, fc.volume; fake_core_start(&fc, serves)
 *     conn = fake_dial(&fc.ft, "volume0"); fake_ask(&fc, conn, GN_FRAME_HELLO, ...)
 *     fake_core_fini(&fc): stops the role if it still runs, and ends the program on a leak
 */
#ifndef FAKE_CORE_H
#define FAKE_CORE_H

#include <stdbool.h>

#include "base/event_loop.h"
#include "session/frame.h"
#include "session/session_role.h"

#include "transport.h"

#define FAKE_SESSION 0x5e551077ull
#define FAKE_CORE_LANES 2
#define FAKE_CORE_HELD 64

/* The steps of a session, as calls to the server role. */
enum fake_step {
	FAKE_HELLO,
	FAKE_QUERY,
	FAKE_REGION,
	FAKE_LANE,
	FAKE_START,
	FAKE_STOP,
	FAKE_UNEXPORT,
	FAKE_STEPS
};

struct fake_core {
	struct gn_loop *loop;
	struct gn_worker *worker;
	struct fake_transport ft;
	struct gn_device *device;
	struct gn_endpoint listen, connect;
	const struct gantry_role_ops *ops; /* ops of the role; at first they use rc and n below */
	const void *conf; /* options of the role; NULL: the role uses the fake itself */
	const struct gn_plugin_instance *stages; /* stages of the role; at first none */
	uint32_t n_stages;
	struct gn_role *role;
	const struct gantry_role_host *rh;
	unsigned n_finished;
	int status; /* argument of finished */
	int serves;
	unsigned n_turns; /* of the loop in fake_core_turn(); at first 6 */
	/* set before fake_core_start: the lane has no thread, and fake_core_turn() polls it */
	int driven;
	/*
	 * Only with `driven`, in a test that replaces epoll_wait() by one that never sleeps:
	 * returns whether the last epoll_wait() would have slept; if so, fake_core_turn() returns.
	 */
	bool (*slept)(void);

	/* the role as a server: what its steps return, and how often they were called */
	int rc[FAKE_STEPS];
	const char *text; /* reason of a rejection by the role */
	unsigned n[FAKE_STEPS], n_closed, n_open;
	int closed_reason, closed_rc;   /* reason that `closed` got, and what it returns */
	struct gantry_session *session; /* the newest session */
	struct gantry_volume_info volume;
	struct gantry_io *held[FAKE_CORE_HELD]; /* IOs that reached the terminal */
	_Atomic unsigned n_held;
	_Atomic int hold; /* do not complete IOs */
	struct gantry_server_ops server_ops;
};

void fake_core_init(struct fake_core *fc);
void fake_core_start(struct fake_core *fc, int serves);
void fake_core_fini(struct fake_core *fc);
/* Run loop and worker until no work is left. */
void fake_core_turn(struct fake_core *fc);
/* Advance the clock, in steps of at most step_ns, and run loop and worker. */
void fake_core_pass(struct fake_core *fc, uint64_t ns, uint64_t step_ns);
/* Complete the IOs that the terminal holds. */
void fake_core_finish(struct fake_core *fc, unsigned status);

/* Returns the id of the session on conn. */
uint64_t fake_session(const struct fake_core *fc, const struct fake_conn *conn);
/* Send a request of that session as its peer, and call fake_core_turn(). */
void fake_ask(struct fake_core *fc, struct fake_conn *conn, unsigned type, uint32_t id,
	      const void *payload, size_t len);
/* Get the next frame that the core sent on conn, except heartbeats. Returns 1, or 0 for none. */
int fake_next_frame(struct fake_conn *conn, struct gn_parsed *parsed);
/* Write a valid payload of a request of this type. Returns its length. */
size_t fake_payload(unsigned type, void *buf);
/*
 * Write the payload of a target's answer of this type, for a volume of 1 MiB. Returns its length.
 */
size_t fake_answer_payload(unsigned type, const struct gn_hello_answer *hello,
			   const struct gn_queues *queues, void *buf);
/* Bring a new session to a state (GN_NEW: only connected), and take the replies. */
struct fake_conn *fake_reach(struct fake_core *fc, enum gn_state state);

#endif
