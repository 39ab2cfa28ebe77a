/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <gantry/role.h>

#include "chain.h"

static void guard_complete(void *self, struct gantry_io *io)
{
	struct fake_chain *chain = self;

	io->hop++;
	chain->n_stray++;
}

static void owner_complete(void *self, struct gantry_io *io)
{
	struct fake_chain *chain = self;

	if (gantry_io_end(io))
		fake_fail("descriptor %u completed twice", io->slot);
	chain->done[chain->n_done++ % FAKE_IOS] = io;
}

static int terminal_submit(void *self, struct gantry_io *io)
{
	struct fake_terminal *t = self;

	if (t->n_refuse) {
		t->n_refuse--;
		return t->refuse;
	}
	t->n_accepted++;
	if (t->seen)
		t->seen(io, t->arg);
	if (t->hold) {
		t->held[t->n_held++] = io;
		return 0;
	}
	io->status = t->status;
	gantry_complete(io);
	return 0;
}

static int stage_pass_down(void *self, struct gantry_io *io)
{
	(void)self;
	return gantry_submit(io);
}

static void stage_pass_up(void *self, struct gantry_io *io)
{
	(void)self;
	gantry_complete(io);
}

void fake_chain_init(struct fake_chain *chain, struct fake_host *host)
{
	memset(chain, 0, sizeof *chain);
	chain->host = host;
	fake_lane_init(&chain->lane, host, 0, 1);
	chain->hops[0] = (struct gantry_hop){.complete = guard_complete, .self = chain};
	chain->hops[1] = (struct gantry_hop){.complete = owner_complete, .self = chain};
	chain->n_hops = 2;
	for (unsigned i = 0; i < FAKE_IOS; i++) {
		chain->ios[i].slot = (uint16_t)i;
		chain->ios[i].hop = &chain->hops[1];
		chain->ios[i].owner = chain;
	}
}

static uint64_t next_frame(const struct fake_chain *chain)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < chain->n_stages; i++)
		n += chain->stages[i].ops->n_ctx_words;
	if (n >= GANTRY_IO_FRAMES)
		return GANTRY_IO_FRAMES - 1;
	return n;
}

int fake_chain_stage(struct fake_chain *chain, const struct gantry_plugin *plugin, void *conf)
{
	const struct gantry_stage_ops *ops = plugin->ops;
	void *stage = NULL, *self;
	int rc = 0;

	if (plugin->kind != GANTRY_KIND_STAGE)
		fake_fail("%s is not a stage", plugin->name);
	rc = fake_check(chain->host, plugin, conf);
	if (!rc && ops->open)
		rc = ops->open(&chain->host->pub, conf, &stage);
	self = stage;
	if (!rc && ops->start) {
		rc = ops->start(stage, &chain->lane, &self);
		if (rc && ops->close)
			ops->close(stage);
	}
	if (rc) {
		free(conf);
		return rc;
	}
	chain->hops[chain->n_hops++] = (struct gantry_hop){
		.submit = ops->submit ? ops->submit : stage_pass_down,
		.complete = ops->complete ? ops->complete : stage_pass_up,
		.self = self,
		.frame = next_frame(chain),
	};
	chain->stages[chain->n_stages].ops = ops;
	chain->stages[chain->n_stages].stage = stage;
	chain->stages[chain->n_stages].self = self;
	chain->stages[chain->n_stages++].conf = conf;
	return 0;
}

void fake_chain_terminal(struct fake_chain *chain)
{
	chain->hops[chain->n_hops++] = (struct gantry_hop){.submit = terminal_submit,
							   .self = &chain->terminal};
}

int fake_chain_backend(struct fake_chain *chain, const struct gantry_plugin *plugin, void *conf)
{
	const struct gantry_backend_ops *ops = plugin->ops;
	int rc;

	if (plugin->kind != GANTRY_KIND_BACKEND)
		fake_fail("%s is not a backend", plugin->name);
	rc = fake_check(chain->host, plugin, conf);
	if (!rc)
		rc = ops->open(&chain->host->pub, conf, &chain->backend);
	if (rc) {
		free(conf);
		return rc;
	}
	chain->backend_self = chain->backend;
	if (ops->start)
		rc = ops->start(chain->backend, &chain->lane, FAKE_IOS, &chain->backend_self);
	if (rc) {
		if (ops->close)
			ops->close(chain->backend);
		free(conf);
		return rc;
	}
	chain->backend_ops = ops;
	chain->backend_conf = conf;
	chain->hops[chain->n_hops++] = (struct gantry_hop){.submit = ops->submit,
							   .self = chain->backend_self};
	return 0;
}

void fake_chain_fini(struct fake_chain *chain)
{
	for (unsigned i = 0; i < chain->n_stages; i++) {
		if (chain->stages[i].ops->stop)
			chain->stages[i].ops->stop(chain->stages[i].self);
		if (chain->stages[i].ops->close)
			chain->stages[i].ops->close(chain->stages[i].stage);
		free(chain->stages[i].conf);
	}
	chain->n_stages = 0;
	if (chain->backend_ops) {
		if (chain->backend_ops->stop)
			chain->backend_ops->stop(chain->backend_self);
		if (chain->backend_ops->close)
			chain->backend_ops->close(chain->backend);
		free(chain->backend_conf);
		chain->backend_ops = NULL;
	}
}

struct gantry_io *fake_io(struct fake_chain *chain, unsigned opcode, uint64_t offset,
			  uint32_t length, void *data)
{
	struct gantry_io *io = NULL;

	for (unsigned i = 0; i < FAKE_IOS && !io; i++)
		if (!chain->ios[i].busy)
			io = &chain->ios[i];
	if (!io)
		fake_fail("all %d descriptors are in flight", FAKE_IOS);
	if (chain->host->real_clock)
		chain->lane.now_ns = chain->host->pub.now_ns(&chain->host->pub);
	gantry_io_begin(io, chain->lane.now_ns);
	io->opcode = (uint8_t)opcode;
	io->flags = 0;
	io->offset = offset;
	io->length = length;
	io->region = 1;
	io->region_offset = 0;
	io->deadline_us = 1000000;
	io->crc32c = 0;
	io->data = data;
	return io;
}

int fake_submit(struct gantry_io *io)
{
	int rc = gantry_submit(io);

	if (rc)
		io->busy = 0;
	return rc;
}

unsigned fake_do(struct fake_chain *chain, unsigned opcode, uint64_t offset, uint32_t length,
		 void *data)
{
	struct gantry_io *io = fake_io(chain, opcode, offset, length, data);
	time_t limit = time(NULL) + 10;
	int rc = fake_submit(io);

	if (rc)
		fake_fail("submit of operation %u: %s", opcode, strerror(-rc));
	while (io->busy) {
		fake_poll(chain);
		if (time(NULL) > limit)
			fake_fail("operation %u does not end", opcode);
	}
	return io->status;
}

int fake_poll(struct fake_chain *chain)
{
	int n = 0;

	for (unsigned i = 0; i < chain->n_stages; i++)
		if (chain->stages[i].ops->poll)
			n += chain->stages[i].ops->poll(chain->stages[i].self);
	if (chain->backend_ops && chain->backend_ops->poll)
		n += chain->backend_ops->poll(chain->backend_self);
	return n;
}

void fake_drain(struct fake_chain *chain, const void *owner)
{
	for (unsigned i = 0; i < chain->n_stages; i++)
		if (chain->stages[i].ops->drain)
			chain->stages[i].ops->drain(chain->stages[i].self, owner);
}

uint64_t fake_wake_ns(struct fake_chain *chain)
{
	uint64_t first = 0;

	for (unsigned i = 0; i < chain->n_stages; i++) {
		uint64_t at = chain->stages[i].ops->wake_ns
				      ? chain->stages[i].ops->wake_ns(chain->stages[i].self)
				      : 0;

		if (at && (!first || at < first))
			first = at;
	}
	return first;
}

void fake_finish(struct fake_chain *chain, unsigned status)
{
	struct fake_terminal *t = &chain->terminal;
	struct gantry_io *io = t->held[0];

	if (!t->n_held)
		fake_fail("the terminal holds nothing");
	memmove(t->held, t->held + 1, --t->n_held * sizeof *t->held);
	gantry_fail(io, status);
}

void fake_chain_report(struct fake_chain *chain, int index, struct fake_report *report)
{
	fake_report_init(report);
	if (index < 0)
		chain->backend_ops->report(chain->backend, &report->pub);
	else
		chain->stages[index].ops->report(chain->stages[index].stage, &report->pub);
	if (report->depth)
		fake_fail("report: an object was not ended");
}
