/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * crc.c - a stage for end-to-end CRC32C checksums of the data.
 *
 * Configure it in the initiator and in the target. Each end checks the checksums that the other end
 * computes:
 *
 *     load  = { role = "initiator"; ... stages = ( { type = "crc"; mode = "generate"; } ); };
 *     store = { role = "target";    ... stages = ( { type = "crc"; mode = "verify"; } ); };
 *
 *            on the way down                          on the way back
 *     write  initiator: compute the checksum
 *            target: check it before the store        (nothing)
 *     read   (nothing)                                target: compute the checksum
 *                                                     initiator: check it
 *
 * Mode "both" (the default) works at either end: it checks a checksum that is present, and computes
 * one that is missing. The name of a mode states what it does to writes. With `strict` a missing
 * checksum is an error, which detects an end without the stage. `strict` needs mode "generate" or
 * "verify", because the two ends expect checksums in opposite directions.
 *
 * The checksum is a field of the descriptor. In a gateway the data is not addressable, so the stage
 * passes each descriptor unchanged.
 */
#define GANTRY_API_VERSION 1

#include <errno.h>
#include <stdlib.h>

#include <gantry/stage.h>

enum crc_mode { CRC_BOTH, CRC_GENERATE, CRC_VERIFY };

struct crc_conf {
	uint32_t mode; /* enum crc_mode */
	uint8_t strict;
};

/*
 * What to do with the data of a write on the way down, or of a read on the way back. make: compute
 * a missing checksum; check: check a present one; need: fail if it is missing.
 */
struct crc_plan {
	uint8_t make, check, need;
};

struct crc_lane {
	const struct gantry_host *host;
	struct crc_plan write, read;
	int has_logged;
	uint64_t n_made, n_checked, n_missing, n_wrong;
} __attribute__((aligned(GANTRY_CACHE_LINE)));

struct crc {
	const struct gantry_host *host;
	const struct crc_conf *conf;
	uint32_t n_lanes;
	struct crc_lane *lanes;
};

static const char *const modes[] = {"both", "generate", "verify", NULL};

static const struct gantry_option options[] = {
	{"mode", GANTRY_OPT_CHOICE, offsetof(struct crc_conf, mode), "both", 0, 0, modes, NULL,
	 "generate: in an initiator: compute checksums of writes, check reads; verify: in a target: check writes, "
	 "compute checksums of reads; both: check data that has a checksum, compute one for data that has none."},
	{"strict", GANTRY_OPT_BOOL, offsetof(struct crc_conf, strict), "false", 0, 0, NULL, NULL,
	 "With mode generate or verify: data that lacks an expected checksum is an error."},
	GANTRY_OPTION_END,
};

static void crc_check(const void *arg, struct gantry_check *check)
{
	const struct crc_conf *conf = arg;

	if (conf->strict && conf->mode == CRC_BOTH)
		gantry_option_fault(
			check, "strict",
			"strict needs mode = \"generate\" (initiator) or \"verify\" (target)");
}

static int crc_open(const struct gantry_host *host, const void *arg, void **stage_p)
{
	const struct crc_conf *conf = arg;
	struct crc *crc;

	crc = calloc(1, sizeof *crc);
	if (!crc)
		return -ENOMEM;
	crc->host = host;
	crc->conf = conf;
	*stage_p = crc;
	return 0;
}

static int crc_start(void *stage, struct gantry_lane *lane, void **self_p)
{
	struct crc *crc = stage;
	const struct crc_conf *conf = crc->conf;
	struct crc_lane *self;

	if (!crc->lanes) {
		crc->lanes = gantry_zalloc_lines(lane->n_lanes * sizeof *crc->lanes);
		if (!crc->lanes)
			return -ENOMEM;
		crc->n_lanes = lane->n_lanes;
	}
	self = &crc->lanes[lane->index];
	self->host = crc->host;
	self->write = (struct crc_plan){conf->mode != CRC_VERIFY, conf->mode != CRC_GENERATE, 0};
	self->read = (struct crc_plan){conf->mode != CRC_GENERATE, conf->mode != CRC_VERIFY, 0};
	self->write.need = conf->strict && conf->mode == CRC_VERIFY;
	self->read.need = conf->strict && conf->mode == CRC_GENERATE;
	*self_p = self;
	return 0;
}

static void log_first(struct crc_lane *lane, const struct gantry_io *io, const char *what)
{
	if (lane->has_logged)
		return;
	lane->has_logged = 1;
	gantry_log_error(lane->host,
			 "%s of %u bytes at %llu: %s; further errors of this lane are only counted",
			 io->opcode == GANTRY_OP_READ ? "read" : "write", io->length,
			 (unsigned long long)io->offset, what);
}

/* Returns the checksum of the data, which can be in several pieces. */
static uint32_t checksum(const struct crc_lane *lane, const struct gantry_io *io)
{
	const struct gantry_pieces *pieces = io->data;
	uint32_t crc = 0;

	if (gantry_likely((io->flags & GANTRY_IO_LIST) == 0))
		return lane->host->crc32c(0, io->data, io->length);
	for (uint32_t i = 0; i < pieces->count; i++)
		crc = lane->host->crc32c(crc, pieces->piece[i].iov_base, pieces->piece[i].iov_len);
	return crc;
}

/*
 * Compute or check the checksum as planned. Returns 0; -EILSEQ: the checksum is missing or wrong.
 */
static int apply(struct crc_lane *lane, const struct crc_plan *plan, struct gantry_io *io)
{
	if (!(io->flags & GANTRY_IO_CRC)) {
		if (plan->need) {
			gantry_count(&lane->n_missing, 1);
			log_first(lane, io, "has no checksum");
			return -EILSEQ;
		}
		if (plan->make) {
			io->crc32c = checksum(lane, io);
			io->flags |= GANTRY_IO_CRC;
			gantry_count(&lane->n_made, 1);
		}
		return 0;
	}
	if (!plan->check)
		return 0;
	gantry_count(&lane->n_checked, 1);
	if (io->crc32c == checksum(lane, io))
		return 0;
	gantry_count(&lane->n_wrong, 1);
	log_first(lane, io, "does not match its checksum");
	return -EILSEQ;
}

static int crc_submit(void *self, struct gantry_io *io)
{
	struct crc_lane *lane = self;
	uint8_t flags = io->flags;
	uint32_t crc32c = io->crc32c;
	int rc;

	if (io->opcode == GANTRY_OP_READ)
		io->flags &= (uint8_t)~GANTRY_IO_CRC; /* a read has no data on the way down */
	else if (io->opcode == GANTRY_OP_WRITE && io->data && apply(lane, &lane->write, io)) {
		gantry_fail(io, GANTRY_S_CORRUPT);
		return 0;
	}
	rc = gantry_submit(io);
	if (rc) {
		io->flags = flags;
		io->crc32c = crc32c;
	}
	return rc;
}

static void crc_complete(void *self, struct gantry_io *io)
{
	struct crc_lane *lane = self;

	if (io->opcode == GANTRY_OP_READ && io->status == GANTRY_S_OK && io->data &&
	    apply(lane, &lane->read, io))
		io->status = GANTRY_S_CORRUPT;
	gantry_complete(io);
}

static void crc_report(void *stage, struct gantry_writer *w)
{
	struct crc *crc = stage;
	uint64_t made = 0, checked = 0, missing = 0, wrong = 0;

	for (uint32_t i = 0; i < crc->n_lanes; i++) {
		made += __atomic_load_n(&crc->lanes[i].n_made, __ATOMIC_RELAXED);
		checked += __atomic_load_n(&crc->lanes[i].n_checked, __ATOMIC_RELAXED);
		missing += __atomic_load_n(&crc->lanes[i].n_missing, __ATOMIC_RELAXED);
		wrong += __atomic_load_n(&crc->lanes[i].n_wrong, __ATOMIC_RELAXED);
	}
	w->u64(w, "made_ops", made);
	w->u64(w, "checked_ops", checked);
	w->u64(w, "missing_ops", missing);
	w->u64(w, "wrong_ops", wrong);
}

static void crc_close(void *stage)
{
	struct crc *crc = stage;

	free(crc->lanes);
	free(crc);
}

static const struct gantry_stage_ops ops = {
	.open = crc_open,
	.start = crc_start,
	.submit = crc_submit,
	.complete = crc_complete,
	.report = crc_report,
	.close = crc_close,
};

GANTRY_PLUGIN(crc) = {
	GANTRY_PLUGIN_HEAD,
	.kind = GANTRY_KIND_STAGE,
	.name = "crc",
	.version = "1",
	.summary = "end-to-end checksums of the data, computed at one end and checked at the other",
	.options = options,
	.conf_size = sizeof(struct crc_conf),
	.ops_size = sizeof ops,
	.ops = &ops,
	.check = crc_check,
};
