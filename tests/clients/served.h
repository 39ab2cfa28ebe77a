/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * served.h - servers in separate processes, for programs that use libgantry. SERVED_TCP: over TCP
 * instead of shared memory.
 *
 *	served_begin(); served_conf(...); served_start("store"); served_start("bridge")
 *	open volumes: role "load" goes through the bridge, "direct" to the store
 *	served_end()
 *
 * A test need not wait until a server listens: the open of a volume waits for it.
 */
#ifndef CLIENTS_SERVED_H
#define CLIENTS_SERVED_H

#include <gantry/client.h>
#include <sys/types.h>

#define SERVED_BYTES (16u << 20) /* bytes of the volume */
#define SERVED_BLOCK 4096u

/* Settings that are added to the default configuration. */
struct served_options {
	const char *device;  /* settings of both devices */
	const char *backend; /* NULL: memory */
	const char *connect, *listen, *load_stages, *store_stages, *bridge_stages;
	const char *bridge; /* settings of the bridge's connection to the store */
};

extern char served_file[128]; /* the configuration */
extern char served_dir[64];
/* RLIMIT_NOFILE of servers that start from now on; 0: that of the test */
extern unsigned served_files;

void served_begin(const struct served_options *options);
/* Write another configuration, for servers that start from now on. */
void served_conf(const struct served_options *options);
/* Run the role in a separate process. Returns the pid. */
pid_t served_start(const char *role);
pid_t served_pid(const char *role);
/* Send a signal to the process of the role, and wait for its end. */
void served_kill(const char *role, int sig);
/* Send a signal to the process of the role. */
void served_signal(const char *role, int sig);
void served_end(void);
/* For tearDown: close an open queue and volume, then end the servers as served_end() does. */
void served_finish(struct gantry_queue **queue, struct gantry_volume **volume);

/* -- a gate: the test plugin `gated` as the store's backend holds chosen IOs while it is shut -- */

/* Begin with these options and the gate shut, and start the store and the bridge. */
void served_gated(struct served_options options);
/* Release the held IOs. Can be called repeatedly; served_finish() calls it, too. */
void served_open_gate(void);
/*
 * Wait until the backend holds an IO; polls the queue meanwhile unless it is NULL. Fails the test
 * after a minute.
 */
void served_wait_gate(struct gantry_queue *queue);

/* The URI of the volume of the bridge or of the store, with `more` appended. */
const char *served_uri(const char *name, const char *more);

/* Milliseconds of a clock. */
uint64_t served_ms(void);

/* -- IOs with a count of completions -- */

struct served_io {
	int n;      /* how often it has completed */
	int result; /* result of the last completion */
};
gantry_done_fn served_done; /* arg: a struct served_io */

/* Submit one IO and wait for it. Returns the error of submit, or the result of the IO. */
int served_read(struct gantry_queue *queue, void *buf, uint64_t length, uint64_t offset);
int served_write(struct gantry_queue *queue, const void *buf, uint64_t length, uint64_t offset);
int served_flush(struct gantry_queue *queue);

/*
 * Like RUN_TEST of Unity, but repeats the test GANTRY_ROUNDS times, or runs it once if this
 * variable is not set.
 */
#define RUN_ROUNDS(test) served_repeat(test, #test, __LINE__)
void served_repeat(void (*test)(void), const char *name, int line);

/* Wait until `wanted` of the n IOs have completed; fails the test after a minute. */
void served_wait(struct gantry_queue *queue, const struct served_io *ios, int n, int wanted);

/* Fill memory; the seed and the offset determine each byte. */
void served_fill(void *buf, uint64_t bytes, uint64_t seed);
/* Returns the offset of the first byte that served_fill() did not write; `bytes`: none. */
uint64_t served_check(const void *buf, uint64_t bytes, uint64_t seed);

#endif
