/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cases.h - programs that break one rule of the validation layer each
 *
 * A case is a function. With bad = true it breaks the rule of its name, otherwise it does the same
 * correctly and breaks no rule.
 */
#ifndef CASES_H
#define CASES_H

#include <doca_buf.h>
#include <doca_buf_inventory.h>
#include <doca_comch.h>
#include <doca_comch_consumer.h>
#include <doca_comch_producer.h>
#include <doca_ctx.h>
#include <doca_dev.h>
#include <doca_dma.h>
#include <doca_error.h>
#include <doca_mmap.h>
#include <doca_pe.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct test_case {
	const char *rule;
	void (*run)(bool bad);
};

extern const struct test_case memory_cases[], task_cases[], comch_cases[], leak_cases[];

/* Expect the trouble that a seed causes, and count it on stderr. The first calls the second. */
void meet_trouble(void);
void meet_path_trouble(void);

#define CASE(name) static void name(bool bad)
#define RULE(rule, name) \
	{ \
		rule, name \
	}
#define N_BYTES 65536u

/* -- parts of a correct program; each ends the process if a call fails that must not -- */

void must(doca_error_t error, const char *what);
#define MUST(call) must(call, #call)

extern uint8_t *memory; /* N_BYTES, aligned to pages */

struct doca_dev *open_device(const char *pci);
struct doca_mmap *new_map(struct doca_dev *dev, uint32_t permissions, bool started);
struct doca_buf_inventory *new_inventory(bool started);

/* Map, inventory and engine on the dpu function, and a DMA context that is connected. */
struct dma {
	struct doca_dev *dev;
	struct doca_mmap *map;
	struct doca_buf_inventory *inventory;
	struct doca_pe *pe;
	struct doca_dma *dma;
	struct doca_ctx *ctx;
	struct doca_buf *src, *dst;
	struct doca_dma_task_memcpy *task;
	struct doca_task *base;
};
void dma_open(struct dma *d);  /* configured */
void dma_start(struct dma *d); /* running */
void dma_task(struct dma *d);  /* with a task from the first to the second half of `memory` */
void dma_submit(struct dma *d);
void dma_wait(struct dma *d); /* until the task has completed */
void dma_free(struct dma *d); /* the task and its buffers */
void dma_close(struct dma *d);
extern unsigned n_done;

/* A server on the dpu function and a client of the host function, both on one engine. */
struct pair {
	struct doca_dev *dpu, *host;
	struct doca_dev_rep *rep;
	struct doca_pe *pe;
	struct doca_comch_server *server;
	struct doca_comch_client *client;
	struct doca_comch_connection *at_server, *at_client;
	struct doca_mmap *map;
	struct doca_buf_inventory *inventory;
	struct doca_comch_consumer *consumer; /* at the server */
	struct doca_comch_producer *producer; /* at the client */
};
struct pair_skips {
	bool messages, connections, consumers, tasks;
};
void pair_create(struct pair *p, struct pair_skips skips); /* configured */
void pair_open(struct pair *p);                            /* connected */
void pair_open_path(struct pair *p);                       /* with a consumer and a producer */
void pair_close_path(struct pair *p);
void pair_close(struct pair *p);
struct doca_buf *pair_buf(struct pair *p, size_t offset, size_t length, size_t data);
/* Progress the engine until the value at `is` is at least `n`, or five seconds have passed. */
void progress(struct doca_pe *pe, const unsigned *is, unsigned n);
/* Progress until the context has the state. */
void wait_state(struct doca_pe *pe, struct doca_ctx *ctx, enum doca_ctx_states state);
void stop(struct doca_pe *pe, struct doca_ctx *ctx);
extern unsigned n_connected, n_received, n_sent, n_consumers;
extern uint32_t consumer_id;

#endif
