/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comch_rig.h - a Comch server and clients, each in a separate process, for tests that use only the
 * public headers.
 *
 * A test forks its sides before it opens any device (rig_run, rig_fork). A side exchanges single
 * letters with the test and with the other side, through pipes. If its condition is false, NEED
 * ends a side or fails the test, and prints the line.
 */
#ifndef COMCH_RIG_H
#define COMCH_RIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <doca_buf.h>
#include <doca_buf_inventory.h>
#include <doca_comch.h>
#include <doca_comch_consumer.h>
#include <doca_comch_producer.h>
#include <doca_ctx.h>
#include <doca_dev.h>
#include <doca_mmap.h>
#include <doca_pe.h>

#include "unity.h"

#define RIG_NAME "rig server"
#define RIG_DEADLINE_NS 10000000000ull

#define NEED(x) ((x) ? (void)0 : rig_die(__FILE__, __LINE__, #x))
#define NEED_OK(x) rig_need_result(__FILE__, __LINE__, #x, x, DOCA_SUCCESS)
#define NEED_RESULT(result, x) rig_need_result(__FILE__, __LINE__, #x, x, result)

__attribute__((noreturn)) void rig_die(const char *file, int line, const char *what);
void rig_need_result(const char *file, int line, const char *what, doca_error_t result,
		     doca_error_t wanted);
uint64_t rig_now(void);

/* The objects of one side, and the calls of its callbacks. */
struct side {
	struct doca_dev *dev;
	struct doca_dev_rep *rep;
	struct doca_pe *pe;
	struct doca_comch_server *server;
	struct doca_comch_client *client;
	struct doca_ctx *ctx;
	/* the last connection that was established or sent a message */
	struct doca_comch_connection *conn;
	unsigned int n_connected, n_lost, n_sent, n_failed, n_messages, n_new, n_expired;
	/* of these, connections and ends with change_successful 0 */
	unsigned int n_refused, n_broken;
	doca_error_t failed; /* status of the last send that failed */
	char text[4096];     /* the last message */
	uint32_t len;
	uint32_t consumer; /* last new consumer of the peer */
	/*
	 * callbacks in their order: states 0..3, C connected, D disconnected, m message, s sent,
	 * f failed, + new consumer, - expired consumer
	 */
	char journal[256];
	bool keep_tasks;     /* do not free tasks when they end */
	bool no_consumer_cb; /* set before side_configure(): no callbacks for consumers */
	struct doca_task *kept;
	/* the callbacks call these functions last, unless they are NULL */
	void (*on_message)(struct side *s);
	void (*on_connect)(struct side *s, struct doca_comch_connection *conn);
	void (*on_state)(struct side *s, enum doca_ctx_states next);
};

/*
 * Open the device (a server: and representor), create an engine, and create a server or client
 * with all its callbacks. Does not start it.
 */
void side_server(struct side *s, const char *name);
void side_client(struct side *s, const char *name);
void side_open_dev(struct side *s, const char *pci);
void side_open_rep(struct side *s);
/* Set all callbacks. Called by side_server() and side_client() after the creation. */
void side_configure(struct side *s, uint32_t n_tasks);
/* Start the context. For a client, wait until it runs. */
void side_start(struct side *s);
/* A server and its client in one process: return when both have reported the connection. */
void side_join(struct side *server, struct side *client);
/* Stop the context, wait until it is idle, and call side_close(). */
void side_stop(struct side *s);
/* Destroy all objects of an idle side. */
void side_close(struct side *s);
enum doca_ctx_states state_of(struct doca_ctx *ctx);

/*
 * A row of a state table: what a call returns in each of the states 0..3. NOT_HERE: the context has
 * no such state, or the call is a transition, which other tests take.
 */
struct rig_row {
	const char *what;
	doca_error_t (*call)(void);
	doca_error_t wanted[4];
};
#define NOT_HERE DOCA_ERROR_UNEXPECTED
/* Try all rows in the current state of the context; no call must change the state. */
void rig_try(struct doca_ctx *ctx, const struct rig_row *rows, size_t n);
#define TRY(ctx, rows) rig_try(ctx, rows, sizeof(rows) / sizeof(*(rows)))

doca_error_t side_try_send(struct side *s, const void *msg, uint32_t len);
void side_send(struct side *s, const char *text);

/*
 * Progress the engine until cond holds; at the deadline call rig_die(). UNTIL also progresses the
 * other sides that this thread has started, when the engine is idle.
 */
#define UNTIL_BY(step, s, cond) \
	do { \
		uint64_t until_ = rig_now() + RIG_DEADLINE_NS; \
		while (!(cond)) { \
			NEED(rig_now() < until_ && #cond); \
			if (!step((s)->pe)) \
				rig_yield(); \
		} \
	} while (0)
#define UNTIL(s, cond) UNTIL_BY(rig_step, s, cond)
#define UNTIL_ALONE(s, cond) UNTIL_BY(doca_pe_progress, s, cond)
bool rig_step(struct doca_pe *pe);
void rig_yield(void);

/* -- processes -- */

/* Run both sides as children; each must exit with status 0. */
void rig_run(void (*server)(void), void (*client)(void));
pid_t rig_fork(void (*role)(void));
/* Wait for a child, which must exit with status 0 or, if signal is not 0, by this signal. */
void rig_wait(pid_t pid, int signal);
/* Run a test in one child, which has both sides or needs only one. */
void rig_alone(void (*role)(void));
/* Letters between all processes of a test: each `to` is a separate pipe. */
enum { RIG_SERVER, RIG_CLIENT, RIG_TEST, RIG_PIPES };
void rig_tell(int to, char letter);
void rig_hear(int me, char letter);
bool rig_heard(int me, char letter); /* whether the letter has arrived; does not wait */
/*
 * Use the PCI functions that this configuration (the text of the file) defines; call it before a
 * side opens a device.
 */
void rig_configure(const char *text);
/* Create the pipes of a test; call it before the test forks. */
void rig_begin(void);
/* Set up the environment of the sides; call it once in main(). */
void rig_init(void);
void rig_fini(void);

#endif
