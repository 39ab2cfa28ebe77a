/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/stat_rates.h"

#include "report/report.h"

const char *const gn_stat_part_names[GN_STAT_PARTS] = {
	[GN_STAT_LINK] = "link",       [GN_STAT_GATEWAY] = "gateway", /* lint: a word */
	[GN_STAT_TARGET] = "target",                                  /* lint: a word */
	[GN_STAT_BACKEND] = "backend", [GN_STAT_DATA] = "data",
};

const json_t *gn_stat_find_process(const json_t *list, const json_t *process)
{
	const double now = gn_report_number(process, "elapsed_ns", 0);
	const json_t *other;
	size_t i;

	json_array_foreach ((json_t *)list, i, other)
		if (json_equal(json_object_get(other, "pid"), json_object_get(process, "pid")) &&
		    gn_report_number(other, "elapsed_ns", 0) <= now)
			return other;
	return NULL;
}

/* Returns the role in a report; NULL: it has none of this name. */
static const json_t *find_role(const json_t *process, const char *name)
{
	return json_object_get(json_object_get(process, "roles"), name);
}

double gn_stat_work(struct gn_work *work, const json_t *process, const char *name,
		    const json_t *earlier)
{
	const json_t *role = find_role(process, name), *old = find_role(earlier, name);

	*work = (struct gn_work){0};
	gn_work_add(work, role, 1);
	if (!old)
		return gn_work_seconds(process, role);
	gn_work_add(work, old, -1);
	if (work->ops >= 0 && work->errors >= 0)
		return gn_work_seconds(process, process) - gn_work_seconds(earlier, earlier);
	*work = (struct gn_work){0};
	gn_work_add(work, role, 1);
	return gn_work_seconds(process, role);
}

/* Returns the session of the same client and epoch in the report of a role; NULL: none. */
static const json_t *find_session(const json_t *role, const json_t *session)
{
	const json_t *other;
	size_t i;

	json_array_foreach (json_object_get(role, "sessions"), i, other)
		if (json_equal(json_object_get(other, "id"), json_object_get(session, "id")) &&
		    json_equal(json_object_get(other, "epoch"), json_object_get(session, "epoch")))
			return other;
	return NULL;
}

void gn_stat_session_work(struct gn_work *work, const json_t *session, const json_t *earlier)
{
	const json_t *old = find_session(earlier, session);

	*work = (struct gn_work){0};
	gn_work_add_session(work, session, 1);
	if (old)
		gn_work_add_session(work, old, -1);
}

double gn_stat_in_flight(const json_t *role)
{
	return gn_report_number(role, "connect.held_ops", 0) +
	       gn_report_number(role, "backend.held_ops", 0);
}

/* -- parts of the latency -- */

/* Returns the mean of the samples since the earlier report, in nanoseconds. 0: no samples. */
static double mean_since(const json_t *now, const json_t *earlier)
{
	const double n = gn_report_number(now, "count", 0),
		     old_n = gn_report_number(earlier, "count", 0),
		     sum = n * gn_report_number(now, "mean_ns", 0),
		     old_sum = old_n * gn_report_number(earlier, "mean_ns", 0);

	return n > old_n && sum > old_sum ? (sum - old_sum) / (n - old_n) : 0;
}

static double positive(double n)
{
	return n > 0 ? n : 0;
}

/*
 * The time in the gateway contains that in the target, which contains that in the backend and that
 * of moving the data. The link is what remains of the latency.
 */
bool gn_stat_shares(const json_t *role, const json_t *earlier, double share[GN_STAT_PARTS])
{
	const json_t *hops = json_object_get(role, "hops"), *old = json_object_get(earlier, "hops");
	double total = 0;
	int i;

	for (i = 0; i < GN_STAT_PARTS; i++)
		share[i] = mean_since(json_object_get(hops, gn_stat_part_names[i]),
				      json_object_get(old, gn_stat_part_names[i]));
	if (share[GN_STAT_GATEWAY] > 0)
		share[GN_STAT_GATEWAY] = positive(share[GN_STAT_GATEWAY] - share[GN_STAT_TARGET]);
	if (share[GN_STAT_TARGET] > 0)
		share[GN_STAT_TARGET] = positive(share[GN_STAT_TARGET] - share[GN_STAT_BACKEND] -
						 share[GN_STAT_DATA]);
	for (i = 0; i < GN_STAT_PARTS; i++)
		total += share[i];
	for (i = 0; i < GN_STAT_PARTS && total > 0; i++)
		share[i] /= total;
	return total > 0;
}

/* -- lists of reports -- */

void gn_stat_keep_silent(json_t *list, const json_t *before, const json_t *silent)
{
	json_t *old, *pid;
	size_t i, j;

	json_array_foreach ((json_t *)silent, i, pid)
		json_array_foreach ((json_t *)before, j, old)
			if (json_equal(json_object_get(old, "pid"), pid))
				json_array_append(list, old);
}
