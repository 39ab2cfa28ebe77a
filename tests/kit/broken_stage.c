/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * broken_stage.c - a stage that holds each second IO for a turn, with a selectable bug, to show
 * that gantry conform finds it. Only tests load it.
 */
#define GANTRY_API_VERSION 1

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <gantry/stage.h>

#define MANY 40 /* IOs: some cases do more, most do not */

/* `bug` is a string, so that the cases of options do not try each bug. */
struct broken_conf {
	const char *bug;
	int64_t level;
};

struct broken {
	const char *bug;
	void *first, *second;
	struct gantry_io *head, *tail; /* held IOs; the word of each IO points to the next IO */
	uint64_t n;
};

static const struct gantry_option options[] = {
	{"bug", GANTRY_OPT_STRING, offsetof(struct broken_conf, bug), "none", 0, 0, NULL, NULL,
	 "The bug."},
	{"level", GANTRY_OPT_INT, offsetof(struct broken_conf, level), "1", 1, 9, NULL, NULL,
	 "No effect, without a bug."},
	GANTRY_OPTION_END,
};

static int has(const struct broken *b, const char *bug)
{
	return strcmp(b->bug, bug) == 0;
}

static int broken_open(const struct gantry_host *host, const void *arg, void **stage_p)
{
	const struct broken_conf *conf = arg;
	struct broken *b = calloc(1, sizeof(*b));

	if (!b)
		return -ENOMEM;
	(void)host;
	b->bug = conf->bug;
	if (has(b, "rejects-late") && conf->level == 9) {
		free(b);
		return -EINVAL;
	}
	b->first = malloc(100);
	if (!b->first) {
		if (!has(b, "leaks-without-memory"))
			free(b);
		return -ENOMEM;
	}
	*stage_p = b;
	return 0;
}

static void append(struct broken *b, struct gantry_io *io)
{
	*gantry_stage_ctx(io) = 0;
	if (b->head)
		*gantry_stage_ctx(b->tail) = (uintptr_t)io;
	else
		b->head = io;
	b->tail = io;
}

static struct gantry_io *take(struct broken *b)
{
	struct gantry_io *io = b->head;

	b->head = (struct gantry_io *)(uintptr_t)*gantry_stage_ctx(io);
	return io;
}

static int broken_submit(void *arg, struct gantry_io *io)
{
	struct broken *b = arg;
	int rc;

	if (++b->n % 2 == 0 && !has(b, "loses")) {
		append(b, io);
		return 0;
	}
	if (has(b, "loses") && b->n == MANY)
		return 0;
	if (has(b, "keeps-a-change") && io->opcode == GANTRY_OP_READ)
		io->offset += 512;
	rc = gantry_submit(io);
	if (has(b, "completes-early") && !rc && io->busy) {
		const struct gantry_hop *hop = io->hop;

		gantry_fail(io, GANTRY_S_IO);
		io->hop = hop;
	}
	if (has(b, "keeps-a-rejected-io") && rc == -EAGAIN)
		append(b, io);
	if (has(b, "hides-a-rejection") && rc == -EIO) {
		io->status = GANTRY_S_OK;
		gantry_complete(io);
		return 0;
	}
	return rc;
}

static void broken_complete(void *arg, struct gantry_io *io)
{
	const struct broken *b = arg;
	const struct gantry_hop *hop = io->hop;

	if (has(b, "hides-an-error") && io->status == GANTRY_S_IO)
		io->status = GANTRY_S_OK;
	gantry_complete(io);
	if (has(b, "completes-twice") && b->n > MANY && !io->busy) {
		io->hop = hop - 1;
		gantry_complete(io);
	}
}

static int broken_poll(void *arg)
{
	struct broken *b = arg;
	int n = 0;

	while (b->head) {
		struct gantry_io *io = take(b);
		int rc = gantry_submit(io);

		if (rc == -EAGAIN) {
			*gantry_stage_ctx(io) = (uintptr_t)b->head;
			b->head = io;
			break;
		}
		if (rc)
			gantry_fail(io, gantry_status_of_errno(rc));
		n++;
	}
	return n;
}

static void broken_drain(void *arg, const void *owner)
{
	struct broken *b = arg;
	struct gantry_io *io, *all = b->head;

	if (has(b, "drains-nothing") && owner)
		return;
	b->head = NULL;
	while ((io = all)) {
		all = (struct gantry_io *)(uintptr_t)*gantry_stage_ctx(io);
		if (owner && io->owner != owner)
			append(b, io);
		else
			gantry_fail(io, GANTRY_S_CANCELED);
	}
	if (has(b, "leaks-in-drain") && !owner)
		b->second = malloc(100);
}

static void broken_close(void *stage)
{
	struct broken *b = stage;

	free(b->first);
	free(b);
}

static const struct gantry_stage_ops ops = {
	.open = broken_open,
	.submit = broken_submit,
	.complete = broken_complete,
	.poll = broken_poll,
	.drain = broken_drain,
	.close = broken_close,
	.n_ctx_words = 1,
};

GANTRY_PLUGIN(broken_stage) = {
	GANTRY_PLUGIN_HEAD,
	.kind = GANTRY_KIND_STAGE,
	.name = "broken-stage",
	.version = "1",
	.summary = "has a bug: for tests of tests",
	.options = options,
	.conf_size = sizeof(struct broken_conf),
	.ops_size = sizeof(ops),
	.ops = &ops,
};
