/* SPDX-License-Identifier: BSD-3-Clause */
/* trace_summary.c - counts, latencies and queue depths of the operations in traces */
#include "trace/trace_summary.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include <gantry/histogram.h>

#include "base/clock.h"
#include "base/units.h"

/* Sums of one operation. Those of completions include only completions with their submission. */
struct op_sums {
	uint64_t submitted, completed, errors;
	uint64_t bytes; /* of completions without an error */
	uint64_t paired, sequential, depth_sum, depth_max;
	struct gantry_histogram latency;
};

struct role_sums {
	uint64_t n, first_ns, last_ns;
	struct op_sums *ops[GANTRY_OP_COUNT]; /* NULL: no such operation */
	uint64_t unknown;                     /* events with an unknown operation */
};

struct gn_trace_summary {
	uint32_t n_roles;
	struct role_sums roles[];
};

static const double percentiles[] = {50, 90, 99, 99.9};

#define N_PERCENTILES (sizeof(percentiles) / sizeof(percentiles[0]))

struct gn_trace_summary *gn_trace_summary_new(uint32_t n_roles)
{
	struct gn_trace_summary *summary =
		calloc(1, sizeof(*summary) + n_roles * sizeof(summary->roles[0]));

	if (summary)
		summary->n_roles = n_roles;
	return summary;
}

void gn_trace_summary_free(struct gn_trace_summary *summary)
{
	if (!summary)
		return;
	for (uint32_t i = 0; i < summary->n_roles; i++)
		for (unsigned op = 0; op < GANTRY_OP_COUNT; op++)
			free(summary->roles[i].ops[op]);
	free(summary);
}

static void add_completion(struct op_sums *sums, const struct gn_trace_event *event)
{
	sums->completed++;
	if (event->io.status != GANTRY_S_OK)
		sums->errors++;
	else if (gantry_op_has_range(event->io.opcode))
		sums->bytes += event->io.length;
	if (!event->is_paired)
		return;
	sums->paired++;
	sums->sequential += event->pair.sequential;
	sums->depth_sum += event->pair.depth;
	if (event->pair.depth > sums->depth_max)
		sums->depth_max = event->pair.depth;
	gantry_histogram_record(&sums->latency, gn_trace_latency(event));
}

int gn_trace_summary_add(struct gn_trace_summary *summary, const struct gn_trace_event *event)
{
	struct role_sums *role = &summary->roles[event->role];
	struct op_sums **sums;

	if (!role->n++ || event->ns < role->first_ns)
		role->first_ns = event->ns;
	if (event->ns > role->last_ns)
		role->last_ns = event->ns;
	if (event->io.opcode >= GANTRY_OP_COUNT) {
		role->unknown++;
		return 0;
	}
	sums = &role->ops[event->io.opcode];
	if (!*sums)
		*sums = calloc(1, sizeof(**sums));
	if (!*sums)
		return -ENOMEM;
	if (event->is_complete)
		add_completion(*sums, event);
	else
		(*sums)->submitted++;
	return 0;
}

static double share(uint64_t part, uint64_t all)
{
	return all ? (double)part / (double)all : 0;
}

static void print_op(FILE *out, const char *name, const struct op_sums *sums)
{
	char text[GN_UNITS_BYTES];

	fprintf(out,
		"  %-12s %10" PRIu64 " %10" PRIu64 " %8" PRIu64 " %10s %6.1f%% %6.1f %5" PRIu64,
		name, sums->submitted, sums->completed, sums->errors,
		gn_size_format(text, sizeof(text), sums->bytes),
		100 * share(sums->sequential, sums->paired), share(sums->depth_sum, sums->paired),
		sums->depth_max);
	for (size_t i = 0; i < N_PERCENTILES; i++)
		fprintf(out, " %8s",
			gn_time_format(
				text, sizeof(text),
				gantry_histogram_percentile(&sums->latency, percentiles[i])));
	fprintf(out, " %8s\n",
		gn_time_format(text, sizeof(text), gantry_histogram_max(&sums->latency)));
}

void gn_trace_summary_print(const struct gn_trace_summary *summary, FILE *out,
			    const char *const *roles)
{
	char text[GN_UNITS_BYTES];

	for (uint32_t i = 0; i < summary->n_roles; i++) {
		const struct role_sums *role = &summary->roles[i];

		fprintf(out, "%s: %" PRIu64 " records in %s\n", roles[i], role->n,
			gn_time_format(text, sizeof(text), role->last_ns - role->first_ns));
		fprintf(out, "  %-12s %10s %10s %8s %10s %7s %6s %5s %8s %8s %8s %8s %8s\n",
			"operation", "submitted", "completed", "errors", "bytes", "seq", "depth",
			"max", "p50", "p90", "p99", "p99.9", "max");
		for (unsigned op = 0; op < GANTRY_OP_COUNT; op++)
			if (role->ops[op])
				print_op(out, gn_trace_op_name(op), role->ops[op]);
		if (role->unknown)
			fprintf(out, "  %" PRIu64 " records have an unknown operation\n",
				role->unknown);
	}
}

static json_t *op_json(const struct op_sums *sums)
{
	const struct gantry_histogram *h = &sums->latency;

	return json_pack("{sI sI sI sI sf s{sf sI} s{sI sI sI sI sI}}", "submitted",
			 (json_int_t)sums->submitted, "completed", (json_int_t)sums->completed,
			 "errors", (json_int_t)sums->errors, "bytes", (json_int_t)sums->bytes,
			 "sequential", share(sums->sequential, sums->paired), "depth", "mean",
			 share(sums->depth_sum, sums->paired), "max", (json_int_t)sums->depth_max,
			 "latency_ns", "p50", (json_int_t)gantry_histogram_percentile(h, 50), "p90",
			 (json_int_t)gantry_histogram_percentile(h, 90), "p99",
			 (json_int_t)gantry_histogram_percentile(h, 99), "p99.9",
			 (json_int_t)gantry_histogram_percentile(h, 99.9), "max",
			 (json_int_t)gantry_histogram_max(h));
}

static json_t *role_json(const struct role_sums *role, const char *name)
{
	json_t *ops = json_object();
	int rc = 0;

	for (unsigned op = 0; op < GANTRY_OP_COUNT; op++)
		if (role->ops[op])
			rc |= json_object_set_new(ops, gn_trace_op_name(op),
						  op_json(role->ops[op]));
	if (rc) {
		json_decref(ops);
		return NULL;
	}
	return json_pack("{ss sI sI sI so}", "role", name, "records", (json_int_t)role->n,
			 "duration_ns", (json_int_t)(role->last_ns - role->first_ns),
			 "unknown_records", (json_int_t)role->unknown, "operations", ops);
}

json_t *gn_trace_summary_json(const struct gn_trace_summary *summary, const char *const *roles)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < summary->n_roles; i++) {
		if (json_array_append_new(list, role_json(&summary->roles[i], roles[i]))) {
			json_decref(list);
			return NULL;
		}
	}
	return json_pack("{si so}", "schema", 1, "roles", list);
}
