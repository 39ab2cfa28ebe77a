/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * initiator.c - plugin interface of the initiator, the role that submits IO: a generated workload,
 * a copy of a file, or the replay of a trace.
 */
#define GANTRY_API_VERSION 1

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "initiator.h"

#define AT(field) offsetof(struct initiator_conf, field)

static const char *const patterns[] = {"read",      "write",  "readwrite", "randread",
				       "randwrite", "randrw", NULL};
static const char *const verify_modes[] = {"none", "stamp", NULL};
static const char *const speeds[] = {"original", "fast", NULL};

static const struct gantry_option workload_options[] = {
	{"pattern", GANTRY_OPT_CHOICE, AT(pattern), "randread", 0, 0, patterns, NULL,
	 "Order and kind of the IOs: sequential or random; reads, writes, or both."},
	{"read_percent", GANTRY_OPT_INT, AT(read_percent), "70", 0, 100, NULL, NULL,
	 "Share of reads in readwrite and randrw. With verify = \"stamp\", a write takes the place of a read while there are few written blocks to read."},
	{"block", GANTRY_OPT_SIZE, AT(block), "4KiB", 512, 64 << 20, NULL, NULL,
	 "Bytes of one IO."},
	{"depth", GANTRY_OPT_INT, AT(depth), "32", 1, 4096, NULL, NULL,
	 "IOs in flight on each lane."},
	{"time", GANTRY_OPT_TIME, AT(time_ns), "10s", 0, 0, NULL, NULL,
	 "How long to run; 0: no limit."},
	{"ops", GANTRY_OPT_INT, AT(ops), "0", 0, INT64_MAX, NULL, NULL,
	 "How many IOs to do on all lanes; 0: no limit."},
	{"rate", GANTRY_OPT_INT, AT(rate), "0", 0, 1000000000, NULL, NULL,
	 "IOs per second on all lanes; 0: no limit."},
	{"offset", GANTRY_OPT_SIZE, AT(offset), "0", 0, 0, NULL, NULL,
	 "Start of the used part of the volume."},
	{"size", GANTRY_OPT_SIZE, AT(size), "0", 0, 0, NULL, NULL,
	 "Bytes of the used part; 0: to the end."},
	{"seed", GANTRY_OPT_INT, AT(seed), "1", 0, INT64_MAX, NULL, NULL,
	 "Seed of the random numbers: the same seed gives the same IOs."},
	{"verify", GANTRY_OPT_CHOICE, AT(verify), "none", 0, 0, verify_modes, NULL,
	 "Check what reads return: stamp marks each written block with its offset, the number of the write, and the session."},
	{"flush_every", GANTRY_OPT_INT, AT(flush_every), "0", 0, INT64_MAX, NULL, NULL,
	 "Number of writes of a lane after which it flushes; 0: never."},
	{"fua", GANTRY_OPT_BOOL, AT(fua), "false", 0, 0, NULL, NULL,
	 "Each write is stable before it completes."},
	{"deadline", GANTRY_OPT_TIME, AT(deadline_ns), "10s", 1000, 4000000000000, NULL, NULL,
	 "Time limit of one IO."},
	{"ramp", GANTRY_OPT_TIME, AT(ramp_ns), "0s", 0, 0, NULL, NULL,
	 "Time to run before measuring."},
	GANTRY_OPTION_END,
};

static const struct gantry_option copy_options[] = {
	{"from", GANTRY_OPT_STRING, AT(copy_from), "", GANTRY_PATH_KEEP, 0, NULL, NULL,
	 "File or block device to copy into the volume."},
	{"to", GANTRY_OPT_STRING, AT(copy_to), "", GANTRY_PATH_REPLACE, 0, NULL, NULL,
	 "File or block device to copy the volume into."},
	{"block", GANTRY_OPT_SIZE, AT(copy_block), "1MiB", 512, 64 << 20, NULL, NULL,
	 "Largest length of one IO."},
	{"depth", GANTRY_OPT_INT, AT(copy_depth), "16", 1, 4096, NULL, NULL,
	 "IOs in flight on each lane."},
	{"size", GANTRY_OPT_SIZE, AT(copy_size), "0", 0, 0, NULL, NULL, "Bytes to copy; 0: all."},
	{"sparse", GANTRY_OPT_BOOL, AT(copy_sparse), "false", 0, 0, NULL, NULL,
	 "Write blocks of zeroes as holes: in a file, or in a volume that supports write zeroes. Holes of the source stay holes with or without this option."},
	{"verify", GANTRY_OPT_BOOL, AT(copy_verify), "false", 0, 0, NULL, NULL,
	 "Read each segment again after it is copied, and compare file and volume."},
	{"state", GANTRY_OPT_STRING, AT(copy_state), "", GANTRY_PATH_REPLACE, 0, NULL, NULL,
	 "State file: it records which segments are copied, so that an interrupted copy with the same file continues. Removed at the end of a complete copy."},
	{"segment", GANTRY_OPT_SIZE, AT(copy_segment), "256MiB", 512, 1ll << 40, NULL, NULL,
	 "Segment size. With state or verify, a lane flushes after each segment. Reduced so that each lane gets at least one segment."},
	GANTRY_OPTION_END,
};

static const struct gantry_option replay_options[] = {
	{"path", GANTRY_OPT_STRING, AT(replay_path), "", GANTRY_PATH_KEEP, 0, NULL, NULL,
	 "File written by the trace stage."},
	{"speed", GANTRY_OPT_CHOICE, AT(replay_speed), "original", 0, 0, speeds, NULL,
	 "Replay at the times of the trace, or as fast as possible."},
	{"depth", GANTRY_OPT_INT, AT(replay_depth), "64", 1, 4096, NULL, NULL,
	 "Limit of the IOs in flight on each lane."},
	GANTRY_OPTION_END,
};

static const struct gantry_option options[] = {
	{"workload", GANTRY_OPT_GROUP, 0, "", 0, 0, NULL, workload_options, "Generate IO."},
	{"copy", GANTRY_OPT_GROUP, 0, "", 0, 0, NULL, copy_options, "Copy a file instead."},
	{"replay", GANTRY_OPT_GROUP, 0, "", 0, 0, NULL, replay_options, "Replay a trace instead."},
	{"huge_pages", GANTRY_OPT_BOOL, AT(huge_pages), "false", 0, 0, NULL, NULL,
	 "Use huge pages for the region if they are available."},
	{"continue_on_error", GANTRY_OPT_BOOL, AT(continue_on_error), "false", 0, 0, NULL, NULL,
	 "Count failed IOs and continue, instead of stopping at the first one with exit status 1."},
	GANTRY_OPTION_END,
};

static int given(const char *text)
{
	return text && *text;
}

static void choose_source(struct initiator *in)
{
	const struct initiator_conf *conf = in->conf;

	if (given(conf->replay_path)) {
		in->source = &replay_source;
		in->depth = (uint32_t)conf->replay_depth;
	} else if (given(conf->copy_from) || given(conf->copy_to)) {
		in->source = given(conf->copy_from) ? &copy_in_source : &copy_out_source;
		in->depth = (uint32_t)conf->copy_depth;
	} else {
		in->source = &workload_source;
		in->depth = (uint32_t)conf->depth;
	}
	in->deadline_us = (uint32_t)(conf->deadline_ns / 1000);
}

static void initiator_close(void *role)
{
	struct initiator *in = role;

	for (uint32_t i = 0; i < in->n_lanes; i++) {
		struct lane *lane = &in->lanes[i];

		if (lane->event_fd >= 0)
			close(lane->event_fd);
		free(lane->stats);
	}
	if (in->source->teardown)
		in->source->teardown(in);
	free(in->lanes);
	free(in);
}

static int make_lane(struct initiator *in, struct lane *lane, uint32_t index)
{
	lane->in = in;
	lane->index = index;
	lane->pub = in->rh->lane(in->rh, index);
	lane->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	lane->stats = gantry_zalloc_lines(sizeof(*lane->stats));
	in->n_lanes++;
	if (lane->event_fd < 0)
		return -errno;
	return lane->stats ? 0 : -ENOMEM;
}

static int initiator_open(const struct gantry_role_host *rh, const void *conf, void **role_p)
{
	struct initiator *in = calloc(1, sizeof(*in));
	int rc;

	if (!in)
		return -ENOMEM;
	in->rh = rh;
	in->host = rh->host;
	in->conf = conf;
	choose_source(in);
	in->lanes = gantry_zalloc_lines(rh->n_lanes * sizeof(*in->lanes));
	rc = in->lanes ? 0 : -ENOMEM;
	for (uint32_t i = 0; i < rh->n_lanes && !rc; i++)
		rc = make_lane(in, &in->lanes[i], i);
	if (!rc)
		rc = in->source->prepare(in);
	if (rc)
		goto out_close;
	*role_p = in;
	return 0;
out_close:
	initiator_close(in);
	return rc;
}

static int initiator_start(void *role)
{
	return session_open(role);
}

static void initiator_stop(void *role)
{
	session_stop(role);
}

static void plan(const struct initiator *in, struct gantry_plan *plan)
{
	plan->depth = in->depth;
	plan->regions = 1;
	plan->io_bytes = slot_room(in->block);
	plan->region_bytes = plan->io_bytes * plan->lanes * plan->depth;
	plan->depth_option = in->source->depth_option;
	plan->bytes_option = in->source->block_option;
}

static void initiator_check(const void *arg, struct gantry_check *check)
{
	const struct initiator_conf *conf = arg;
	const struct initiator *in = check->role;
	int n = given(conf->copy_from) + given(conf->copy_to) + given(conf->replay_path);

	if (n > 1)
		gantry_option_fault(check, given(conf->copy_to) ? "copy.to" : "replay.path",
				    "set only one of copy.from, copy.to and replay.path");
	if (n == 0)
		workload_check(conf, check);
	if (in) {
		plan(in, &check->plans[0]);
		in->source->fits(in, &check->volumes[0], check);
	}
}

static const struct gantry_role_ops ops = {
	.open = initiator_open,
	.start = initiator_start,
	.stop = initiator_stop,
	.close = initiator_close,
	.report = initiator_report,
	.flags = GANTRY_ROLE_CONNECTS | GANTRY_ROLE_ONE_VOLUME | GANTRY_ROLE_WORKS,
};

GANTRY_PLUGIN(initiator) = {
	GANTRY_PLUGIN_HEAD,
	.kind = GANTRY_KIND_ROLE,
	.name = "initiator",
	.version = "1",
	.summary = "submits IO: a workload, a copy of a file, or the replay of a trace",
	.options = options,
	.conf_size = sizeof(struct initiator_conf),
	.ops_size = sizeof ops,
	.ops = &ops,
	.check = initiator_check,
};
