/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/budget.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/checked.h"
#include "base/units.h"

#define TEXT_BYTES 160

static uint64_t plus(uint64_t a, uint64_t b)
{
	return gn_add_u64(a, b, &a) ? a : UINT64_MAX;
}

static uint64_t times(uint64_t a, uint64_t b)
{
	return gn_mul_u64(a, b, &a) ? a : UINT64_MAX;
}

/* -- sums -- */

/* Cost of a session without its lanes, and of each lane. */
struct price {
	uint64_t session, lane;
};

static struct price price_queue_pairs(const struct gn_demand *d)
{
	return (struct price){d->device->info.conn_queues, d->device->info.lane_queues};
}

static struct price price_queue_bytes(const struct gn_demand *d)
{
	return (struct price){d->device->info.conn_bytes, d->device->info.lane_bytes};
}

static struct price price_bounce(const struct gn_demand *d)
{
	return (struct price){0, d->bounce_bytes};
}

static struct price price_regions(const struct gn_demand *d)
{
	if (d->serves)
		return (struct price){0, 0};
	if (d->plan.io_bytes)
		return (struct price){0, times(d->plan.io_bytes, d->plan.depth)};
	return (struct price){d->plan.region_bytes, 0};
}

static struct price price_locked(const struct gn_demand *d)
{
	struct price parts[] = {price_queue_bytes(d), price_bounce(d), price_regions(d)},
		     sum = {0, 0};

	for (size_t i = 0;
	     i < sizeof(parts) / sizeof(parts[0]) && (d->device->info.caps & GANTRY_CAP_PINS);
	     i++) {
		sum.session = plus(sum.session, parts[i].session);
		sum.lane = plus(sum.lane, parts[i].lane);
	}
	return sum;
}

static uint64_t cost(const struct gn_demand *d, struct price price)
{
	return times(d->plan.sessions, plus(price.session, times(d->plan.lanes, price.lane)));
}

void gn_budget_sum(struct gn_budget *budget)
{
	budget->locked_bytes = 0;
	for (uint32_t i = 0; i < budget->n_devices; i++)
		budget->devices[i] = (struct gn_budget_device){.name = budget->devices[i].name,
							       .info = budget->devices[i].info};
	for (uint32_t i = 0; i < budget->n_demands; i++) {
		const struct gn_demand *d = &budget->demands[i];
		struct gn_budget_device *device = d->device;

		device->sessions += d->plan.sessions;
		device->lanes += (uint64_t)d->plan.sessions * d->plan.lanes;
		device->queue_pairs = plus(device->queue_pairs, cost(d, price_queue_pairs(d)));
		device->queue_bytes = plus(device->queue_bytes, cost(d, price_queue_bytes(d)));
		device->bounce_bytes = plus(device->bounce_bytes, cost(d, price_bounce(d)));
		device->region_bytes = plus(device->region_bytes, cost(d, price_regions(d)));
		budget->locked_bytes = plus(budget->locked_bytes, cost(d, price_locked(d)));
	}
}

void gn_budget_write(const struct gn_budget_device *device, struct gantry_writer *w)
{
	w->object(w, "needs");
	w->u64(w, "sessions", device->sessions);
	w->u64(w, "lanes", device->lanes);
	w->u64(w, "queue_pairs", device->queue_pairs);
	w->u64(w, "queue_memory_bytes", device->queue_bytes);
	w->u64(w, "bounce_memory_bytes", device->bounce_bytes);
	w->u64(w, "region_memory_bytes", device->region_bytes);
	w->end(w);
}

/* -- messages -- */

/* Format a number of bytes exactly, with the largest unit that divides it. */
static const char *exact_size(char *dst, uint64_t bytes)
{
	static const char *const units[] = {"", "KiB", "MiB", "GiB", "TiB"};
	size_t unit = 0;

	for (; bytes && bytes % 1024 == 0 && unit + 1 < sizeof(units) / sizeof(units[0]); unit++)
		bytes /= 1024;
	snprintf(dst, GN_UNITS_BYTES, "%" PRIu64 "%s", bytes, units[unit]);
	return dst;
}

/* Get the last part of an option name: "max_depth" of "listen.max_depth". */
static const char *leaf(const char *option)
{
	const char *dot = strrchr(option, '.');

	return dot ? dot + 1 : option;
}

/* Add a fault about an option. option NULL: about the whole listen or connect. */
static void fault(const struct gn_demand *d, const char *option, struct gn_errs *errs,
		  const char *fmt, ...) __attribute__((format(printf, 4, 5)));

static void fault(const struct gn_demand *d, const char *option, struct gn_errs *errs,
		  const char *fmt, ...)
{
	char text[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	gn_conf_fault_option(errs, d->role,
			     option      ? option
			     : d->serves ? "listen"
					 : "connect",
			     text);
}

/*
 * Format a remedy: "; write max_depth = 12 or less"; "" if there is no option, or no number is
 * small enough.
 */
static const char *advice(char *dst, const char *option, uint64_t number)
{
	dst[0] = '\0';
	if (option && number)
		snprintf(dst, TEXT_BYTES, "; write %s = %" PRIu64 " or less", leaf(option), number);
	return dst;
}

/* Each queue needs two receives for each IO in flight, so that a reply never waits for a credit. */
static void check_depth(const struct gn_demand *d, struct gn_errs *errs)
{
	uint64_t need = 2ull * d->plan.depth;
	uint32_t max = d->device->info.max_depth;
	char text[TEXT_BYTES];

	if (max == 1)
		fault(d, NULL, errs,
		      "each IO in flight needs a queue of 2 entries; the device \"%s\" supports up to 1, so no IO can use it",
		      d->device->name);
	else if (max && need > max)
		fault(d, d->plan.depth_option, errs,
		      "%u IOs in flight need queues of %" PRIu64
		      " entries; the device \"%s\" supports up to %u%s",
		      d->plan.depth, need, d->device->name, max,
		      advice(text, d->plan.depth_option, max / 2));
}

static void check_regions(const struct gn_demand *d, struct gn_errs *errs)
{
	uint32_t max = d->device->info.max_regions;
	char text[TEXT_BYTES];

	if (max && d->plan.regions > max)
		fault(d, d->plan.regions_option, errs,
		      "a session has up to %u regions; the device \"%s\" supports up to %u%s",
		      d->plan.regions, d->device->name, max,
		      advice(text, d->plan.regions_option, max));
}

static void check_region_bytes(const struct gn_demand *d, struct gn_errs *errs)
{
	uint64_t max = d->device->info.max_region_bytes, fits = max,
		 n_ios = (uint64_t)d->plan.lanes * d->plan.depth;
	char now[GN_UNITS_BYTES], most[GN_UNITS_BYTES], better[GN_UNITS_BYTES],
		text[TEXT_BYTES] = "";
	const char *option = d->plan.bytes_option;

	if (!max || d->plan.region_bytes <= max)
		return;
	if (d->plan.io_bytes)
		fits = n_ios ? max / n_ios / 4096 * 4096 : 0;
	if (option && fits)
		snprintf(text, sizeof(text), "; write %s = \"%s\" or less", leaf(option),
			 exact_size(better, fits));
	fault(d, option, errs,
	      "a session has regions of up to %s; the device \"%s\" supports up to %s%s",
	      gn_size_format(now, sizeof(now), d->plan.region_bytes), d->device->name,
	      gn_size_format(most, sizeof(most), max), text);
}

/* Format the remedy that lowers the cost of a demand to `available`; "" if there is none. */
static const char *advise_less(char *dst, const struct gn_demand *d, struct price price,
			       uint64_t available)
{
	const struct gantry_plan *plan = &d->plan;
	uint64_t each = plus(price.session, times(plan->lanes, price.lane)), lanes;
	uint32_t sessions = plan->sessions_option ? 1 : plan->sessions;

	dst[0] = '\0';
	if (plan->sessions_option && each && available / each)
		return advice(dst, plan->sessions_option, available / each);
	available = sessions ? available / sessions : 0;
	lanes = price.lane && available > price.session ? (available - price.session) / price.lane
							: 0;
	if (!lanes || !plan->lanes_option)
		return dst;
	if (plan->sessions_option)
		snprintf(dst, TEXT_BYTES, "; write %s = 1 and %s = %" PRIu64 " or less",
			 leaf(plan->sessions_option), leaf(plan->lanes_option), lanes);
	else
		advice(dst, plan->lanes_option, lanes);
	return dst;
}

/*
 * Find the demand with the highest cost. device: search only demands of this device; NULL: search
 * all.
 */
static const struct gn_demand *most_expensive(const struct gn_budget *budget,
					      const struct gn_budget_device *device,
					      struct price (*price)(const struct gn_demand *d))
{
	const struct gn_demand *found = NULL;

	for (uint32_t i = 0; i < budget->n_demands; i++) {
		const struct gn_demand *d = &budget->demands[i];

		if ((!device || d->device == device) &&
		    (!found || cost(d, price(d)) > cost(found, price(found))))
			found = d;
	}
	return found;
}

static const char *describe_amount(const struct gn_demand *d)
{
	static char text[64];

	snprintf(text, sizeof(text), "%u session%s of %u lane%s", d->plan.sessions,
		 d->plan.sessions == 1 ? "" : "s", d->plan.lanes, d->plan.lanes == 1 ? "" : "s");
	return text;
}

static const char *amount_option(const struct gn_demand *d)
{
	return d->plan.sessions_option ? d->plan.sessions_option : d->plan.lanes_option;
}

static void check_queue_pairs(const struct gn_budget *budget, const struct gn_budget_device *device,
			      struct gn_errs *errs)
{
	const struct gn_demand *d = most_expensive(budget, device, price_queue_pairs);
	char total_text[TEXT_BYTES] = "", less[TEXT_BYTES];
	uint64_t max = device->info.max_queues, own_cost, other_cost;

	if (!d || !max || device->queue_pairs <= max)
		return;
	own_cost = cost(d, price_queue_pairs(d));
	other_cost = device->queue_pairs - own_cost;
	if (other_cost)
		snprintf(total_text, sizeof(total_text),
			 ", and all roles on the device together %" PRIu64, device->queue_pairs);
	advise_less(less, d, price_queue_pairs(d), other_cost < max ? max - other_cost : 0);
	fault(d, amount_option(d), errs,
	      "%s can need %" PRIu64 " queue pairs%s; the device \"%s\" supports up to %" PRIu64
	      "%s",
	      describe_amount(d), own_cost, total_text, device->name, max,
	      less[0] ? less : "; use another device for one of these roles");
}

static void check_memlock(const struct gn_budget *budget, uint64_t max, struct gn_errs *errs)
{
	const struct gn_demand *d = most_expensive(budget, NULL, price_locked);
	char now[GN_UNITS_BYTES], all[GN_UNITS_BYTES], most[GN_UNITS_BYTES],
		total_text[TEXT_BYTES] = "", less[TEXT_BYTES];
	uint64_t own_cost, other_cost,
		kib = budget->locked_bytes / 1024 + (budget->locked_bytes % 1024 != 0);

	if (!d || budget->locked_bytes <= max)
		return;
	own_cost = cost(d, price_locked(d));
	other_cost = budget->locked_bytes - own_cost;
	if (other_cost)
		snprintf(total_text, sizeof(total_text), ", the whole process %s",
			 gn_size_format(all, sizeof(all), budget->locked_bytes));
	advise_less(less, d, price_locked(d), other_cost < max ? max - other_cost : 0);
	fault(d, amount_option(d), errs,
	      "%s can lock %s of memory on the device \"%s\"%s, but the limit of this process is %s (RLIMIT_MEMLOCK); "
	      "raise it before the start with "
	      "\"ulimit -l %" PRIu64 "\", or LimitMEMLOCK=%" PRIu64 "K in a unit of systemd%s%s",
	      describe_amount(d), gn_size_format(now, sizeof(now), own_cost), d->device->name,
	      total_text, gn_size_format(most, sizeof(most), max), kib, kib, less[0] ? "; or" : "",
	      less[0]           ? less + 1
	      : d->bounce_bytes ? "; or lower move_memory"
				: "");
}

void gn_budget_check(const struct gn_budget *budget, uint64_t memlock_bytes, struct gn_errs *errs)
{
	for (uint32_t i = 0; i < budget->n_demands; i++) {
		check_depth(&budget->demands[i], errs);
		check_regions(&budget->demands[i], errs);
		check_region_bytes(&budget->demands[i], errs);
	}
	for (uint32_t i = 0; i < budget->n_devices; i++)
		check_queue_pairs(budget, &budget->devices[i], errs);
	check_memlock(budget, memlock_bytes, errs);
}
