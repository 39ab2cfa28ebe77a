/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * chain.h - a chain of hops for stages and backends under test:
 *
 *     [guard] [owner] [stage] ... [terminal: scripted by the test, or a backend]
 *
 * Order of calls: fake_chain_init; fake_chain_stage for each stage; fake_chain_terminal or
 * fake_chain_backend; submit, poll, check; fake_chain_fini. All calls come from one thread.
 */
#ifndef FAKE_CHAIN_H
#define FAKE_CHAIN_H

#include <gantry/backend.h>
#include <gantry/stage.h>

#include "host.h"

#define FAKE_IOS 64

/* The scripted terminal. */
struct fake_terminal {
	int refuse; /* -errno that the next n_refuse submits return */
	unsigned n_refuse;
	int hold;        /* hold each IO until fake_finish() */
	uint16_t status; /* status of completions if it does not hold */
	/* called for each accepted IO, before the IO completes; can be NULL */
	void (*seen)(struct gantry_io *io, void *arg);
	void *arg;
	unsigned n_accepted;
	struct gantry_io *held[FAKE_IOS]; /* oldest first */
	unsigned n_held;
};

struct fake_chain {
	struct fake_host *host;
	struct gantry_lane lane;
	struct gantry_hop hops[GANTRY_CHAIN_STAGES + 3];
	unsigned n_hops;
	struct {
		const struct gantry_stage_ops *ops;
		void *stage, *self;
		void *conf;
	} stages[GANTRY_CHAIN_STAGES];
	unsigned n_stages;
	const struct gantry_backend_ops *backend_ops;
	void *backend, *backend_self, *backend_conf;
	struct fake_terminal terminal;
	struct gantry_io ios[FAKE_IOS];

	unsigned n_done; /* completions that reached the owner */
	/* completions of descriptors not in flight, which the guard caught */
	unsigned n_stray;
	struct gantry_io *done[FAKE_IOS]; /* the last FAKE_IOS completions, at index n % FAKE_IOS */
};

void fake_chain_init(struct fake_chain *chain, struct fake_host *host);
/*
 * Open and start a stage, and append it to the chain. Consumes conf. Returns the result of open or
 * start.
 */
int fake_chain_stage(struct fake_chain *chain, const struct gantry_plugin *plugin, void *conf);
/* End the chain with the scripted terminal. */
void fake_chain_terminal(struct fake_chain *chain);
/* End the chain with a backend. Consumes conf. Returns the result of open or start. */
int fake_chain_backend(struct fake_chain *chain, const struct gantry_plugin *plugin, void *conf);
/* Stop and close everything. */
void fake_chain_fini(struct fake_chain *chain);

/*
 * Begin a descriptor, fill it and set a deadline of 1 s. The test can change it before
 * fake_submit().
 */
struct gantry_io *fake_io(struct fake_chain *chain, unsigned opcode, uint64_t offset,
			  uint32_t length, void *data);
/* Call gantry_submit(). A rejected descriptor is free again. */
int fake_submit(struct gantry_io *io);
/*
 * Do fake_io and fake_submit, and poll until the IO completes. Returns its status. Ends the program
 * if that takes 10 s.
 */
unsigned fake_do(struct fake_chain *chain, unsigned opcode, uint64_t offset, uint32_t length,
		 void *data);
/* Poll every stage and the backend once. Returns the sum of their results. */
int fake_poll(struct fake_chain *chain);
void fake_drain(struct fake_chain *chain, const void *owner);
/* Returns the earliest wake_ns of the stages, 0: no stage has a timer. */
uint64_t fake_wake_ns(struct fake_chain *chain);
/* Complete the oldest descriptor that the terminal holds. */
void fake_finish(struct fake_chain *chain, unsigned status);
/* Get the report of stage `index`; index -1: of the backend. */
void fake_chain_report(struct fake_chain *chain, int index, struct fake_report *report);

#endif
