/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * docabench.h - one end of a connection of DOCA Comch, or the only end of a DMA measurement, with
 * its progress engine, device and memory; for the files of docabench
 */
#ifndef PERF_DOCABENCH_H
#define PERF_DOCABENCH_H

#include <doca_buf.h>
#include <doca_buf_inventory.h>
#include <doca_comch.h>
#include <doca_comch_consumer.h>
#include <doca_comch_producer.h>
#include <doca_ctx.h>
#include <doca_dev.h>
#include <doca_error.h>
#include <doca_mmap.h>
#include <doca_pe.h>

#include "perf/limits/bare.h"

#define CARD "03:00.0"
#define TASKS 1024u
#define WARM 200

struct end {
	struct doca_pe *pe;
	struct doca_dev *dev;
	struct doca_dev_rep *rep;
	struct doca_comch_server *server;
	struct doca_comch_client *client;
	struct doca_comch_connection *connection;
	struct doca_mmap *mmap;
	struct doca_buf_inventory *inventory;
	struct doca_comch_consumer *consumer;
	struct doca_comch_producer *producer;
	uint32_t peer;    /* id of the consumer of the other end */
	uint64_t *memory; /* messages to send, then received messages */
	struct doca_task *free[TASKS];
	uint64_t *words[TASKS]; /* words of the message of free[i] */
	uint32_t n_free;
	uint64_t expected; /* number of the next message */
	/* line: shared cache line of the limit `line`, see bare.h; at: its current value */
	uint64_t *line, at;
	unsigned turns; /* client: slices of that limit that the server has confirmed with TURN */
	int echoes, stopped;
	struct end *beside; /* the other end, if this thread progresses both, or NULL */
};

/* End the program: ok() if rc is not SUCCESS, wrong() for a wrong message or copy. */
void ok(doca_error_t rc, const char *what);
void wrong(uint64_t seq, const char *what);
struct doca_dev *open_device(const char *pci);
void connect_engine(struct end *e, struct doca_ctx *ctx);
void start(struct end *e, struct doca_ctx *ctx, const char *what); /* waits until ctx runs */
/* Create a started map of zeroed memory, and an inventory. */
void make_memory(struct end *e, size_t bytes, size_t bufs);

/* docabench_dma.c */
void measure_dma(size_t bytes, uint64_t length_ns, const char *name);
void measure_idle(uint64_t length_ns);

#endif
