/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * liar - a stage with a selectable bug, to show that the tests detect it. Only tests load it.
 *
 * It reports success for IO that it did not do, or did at the wrong place. The failures of the
 * stage `fault`, in contrast, are allowed by the contract.
 */
#define GANTRY_API_VERSION 1

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <gantry/stage.h>

#define FILLER 0x5a

enum lie {
	LIE_NONE,
	/* reports success without passing the IO on; a read returns FILLER, which no test writes */
	LIE_LOSE,
	LIE_MISDIRECT, /* does the IO on the next block */
	LIE_TEAR,      /* does only the first half of the IO */
	LIE_FORGET,    /* never completes the IO */
	LIE_LEAK,      /* opens a file and leaves it open */
	LIE_RACE,      /* all lanes write one word without synchronization */
	LIE_STICK,     /* submit never returns */
};

struct liar_conf {
	uint32_t lie, only;
	int64_t nth;
};

struct liar {
	const struct liar_conf *conf;
	uint64_t shared; /* all lanes write it without synchronization */
	uint64_t *told;  /* counter of lies */
};

struct liar_lane {
	struct liar *liar;
	uint64_t n;
};

static const char *const lies[] = {"none", "lose", "misdirect", "tear", "forget",
				   "leak", "race", "stick",     NULL};
static const char *const only[] = {"reads", "writes", NULL};

static const struct gantry_option options[] = {
	{"lie", GANTRY_OPT_CHOICE, offsetof(struct liar_conf, lie), "none", 0, 0, lies, NULL,
	 "The bug."},
	{"only", GANTRY_OPT_CHOICE, offsetof(struct liar_conf, only), "writes", 0, 0, only, NULL,
	 "Operations that it hits."},
	{"nth", GANTRY_OPT_INT, offsetof(struct liar_conf, nth), "100", 1, INT64_MAX, NULL, NULL,
	 "Every n-th of them."},
	GANTRY_OPTION_END,
};

static int liar_open(const struct gantry_host *host, const void *conf, void **stage_p)
{
	struct liar *liar = calloc(1, sizeof(*liar));

	if (!liar)
		return -ENOMEM;
	liar->conf = conf;
	liar->told = host->counter(host, "told");
	if (!liar->told) {
		free(liar);
		return -ENOMEM;
	}
	*stage_p = liar;
	return 0;
}

static int liar_start(void *stage, struct gantry_lane *lane, void **self_p)
{
	struct liar_lane *self = calloc(1, sizeof(*self));

	(void)lane;
	if (!self)
		return -ENOMEM;
	self->liar = stage;
	*self_p = self;
	return 0;
}

/* Restores the fields that were changed on the way down. */
static void liar_complete(void *self, struct gantry_io *io)
{
	const struct liar_lane *lane = self;

	if (*gantry_stage_ctx(io)) {
		if (lane->liar->conf->lie == LIE_MISDIRECT)
			io->offset ^= io->length;
		else
			io->length *= 2;
	}
	gantry_complete(io);
}

static int pass(struct gantry_io *io, uint64_t change, enum lie lie)
{
	int rc;

	*gantry_stage_ctx(io) = change;
	if (change && lie == LIE_MISDIRECT)
		io->offset ^= io->length;
	else if (change)
		io->length /= 2;
	rc = gantry_submit(io);
	if (rc && change && lie == LIE_MISDIRECT)
		io->offset ^= io->length;
	else if (rc && change)
		io->length *= 2;
	return rc;
}

static int liar_submit(void *self, struct gantry_io *io)
{
	struct liar_lane *lane = self;
	const struct liar_conf *conf = lane->liar->conf;

	if (conf->lie == LIE_RACE)
		lane->liar->shared++;
	if (io->opcode != (conf->only ? GANTRY_OP_WRITE : GANTRY_OP_READ) ||
	    ++lane->n % (uint64_t)conf->nth)
		return pass(io, 0, LIE_NONE);
	__atomic_fetch_add(lane->liar->told, 1, __ATOMIC_RELAXED);
	switch (conf->lie) {
	case LIE_LOSE:
		/* otherwise the buffer keeps its contents, which can be the expected data */
		if (io->opcode == GANTRY_OP_READ && io->data)
			memset(io->data, FILLER, io->length);
		io->status = GANTRY_S_OK;
		*gantry_stage_ctx(io) = 0;
		gantry_complete(io);
		return 0;
	case LIE_FORGET:
		return 0;
	case LIE_STICK:
		for (;;)
			pause();
	case LIE_MISDIRECT:
	case LIE_TEAR:
		return pass(io, 1, (enum lie)conf->lie);
	case LIE_LEAK:
		(void)!open("/dev/null", O_RDONLY | O_CLOEXEC);
		return pass(io, 0, LIE_NONE);
	default:
		return pass(io, 0, LIE_NONE);
	}
}

static void liar_stop(void *self)
{
	free(self);
}

static void liar_close(void *stage)
{
	free(stage);
}

static const struct gantry_stage_ops ops = {
	.open = liar_open,
	.start = liar_start,
	.submit = liar_submit,
	.complete = liar_complete,
	.stop = liar_stop,
	.close = liar_close,
	.n_ctx_words = 1,
};

GANTRY_PLUGIN(liar) = {
	GANTRY_PLUGIN_HEAD,
	.kind = GANTRY_KIND_STAGE,
	.name = "liar",
	.version = "1",
	.summary = "has a bug: for tests of tests",
	.options = options,
	.conf_size = sizeof(struct liar_conf),
	.ops_size = sizeof(ops),
	.ops = &ops,
};
