/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports: the calls of a writer build a tree, which is printed as text. */
#include "report/report.h"

#include <math.h>
#include <stdlib.h>

#include "unity.h"

static struct gn_report report;

void setUp(void)
{
	gn_report_init(&report);
}

void tearDown(void)
{
	gn_report_fini(&report);
}

/* Returns the text of the report, which the caller frees. */
static char *text(void)
{
	char *out = NULL;
	size_t n;
	FILE *f = open_memstream(&out, &n);

	gn_report_print_text(f, gn_report_tree(&report), 0);
	fclose(f);
	return out;
}

static void shows(const char *expect)
{
	char *out;

	TEST_ASSERT_NOT_NULL(gn_report_tree(&report));
	out = text();
	TEST_ASSERT_EQUAL_STRING(expect, out);
	free(out);
}

static void tree_has_the_written_values(void)
{
	struct gantry_writer *w = &report.w;

	w->object(w, "a");
	w->array(w, "list");
	w->u64(w, NULL, 7);
	w->object(w, NULL);
	w->boolean(w, "yes", 1);
	w->end(w);
	w->end(w);
	w->real(w, "half", 0.5);
	w->string(w, "word", "x");
	w->end(w);
	TEST_ASSERT_TRUE(gn_report_number(gn_report_tree(&report), "a.half", 0) == 0.5);
	TEST_ASSERT_TRUE(gn_report_number(gn_report_tree(&report), "a.none", 9) == 9);
	TEST_ASSERT_TRUE(gn_report_number(gn_report_tree(&report), "a.word", 9) == 9);
	TEST_ASSERT_EQUAL_INT(
		2, json_array_size(json_object_get(json_object_get(report.root, "a"), "list")));
}

static void write_progress(uint64_t done, uint64_t target, const char *unit)
{
	struct gantry_writer *w = &report.w;

	w->object(w, "progress");
	w->u64(w, "done", done);
	w->u64(w, "target", target);
	w->string(w, "unit", unit);
	w->end(w);
}

static void progress_has_its_unit(void)
{
	static const struct {
		uint64_t done, target;
		const char *unit, *text;
	} table[] = {
		{1500000000, 10000000000, "ns", "progress                  1.50s of 10s (15%)\n"},
		{4096, 8192, "bytes", "progress                  4KiB of 8KiB (50%)\n"},
		{7, 1000, "ops", "progress                  7 of 1000 ops (1%)\n"},
		{0, 0, "ops",
		 "progress\n  done                    0\n  target                  0\n  unit                    ops\n"},
	};

	for (unsigned i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		write_progress(table[i].done, table[i].target, table[i].unit);
		shows(table[i].text);
		tearDown();
		setUp();
	}
}

static void unbalanced_writers_give_no_tree(void)
{
	report.w.object(&report.w, "open");
	TEST_ASSERT_NULL(gn_report_tree(&report));
	report.w.end(&report.w);
	TEST_ASSERT_NOT_NULL(gn_report_tree(&report));
	report.w.end(&report.w);
	TEST_ASSERT_NULL(gn_report_tree(&report));
}

static void too_deep_gives_no_tree_and_stays_balanced(void)
{
	for (int i = 0; i < 2 * GN_REPORT_DEPTH; i++)
		report.w.object(&report.w, "deeper");
	report.w.u64(&report.w, "lost", 1);
	for (int i = 0; i < 2 * GN_REPORT_DEPTH; i++)
		report.w.end(&report.w);
	TEST_ASSERT_EQUAL_INT(0, report.depth);
	TEST_ASSERT_NULL(gn_report_tree(&report));
}

static void values_that_json_cannot_hold_are_replaced(void)
{
	struct gantry_writer *w = &report.w;

	w->u64(w, "huge", UINT64_MAX);
	w->real(w, "nan", NAN);
	w->string(w, "bytes_of_a_peer", "a\xff\xfe.b");
	w->string(w, "none", NULL);
	TEST_ASSERT_TRUE(gn_report_number(gn_report_tree(&report), "huge", 0) == (double)INT64_MAX);
	TEST_ASSERT_TRUE(gn_report_number(gn_report_tree(&report), "nan", 1) == 0);
	TEST_ASSERT_EQUAL_STRING(
		"a??.b", json_string_value(json_object_get(report.root, "bytes_of_a_peer")));
}

static void units_come_from_the_keys(void)
{
	struct gantry_writer *w = &report.w;

	w->u64(w, "block_bytes", 4096);
	w->u64(w, "bytes", 1 << 30);
	w->u64(w, "elapsed_ns", 250000000);
	w->real(w, "bytes_per_second", 2.0 * 1024 * 1024);
	w->real(w, "iops", 412345);
	w->u64(w, "queue_depth", 32);
	w->boolean(w, "direct", 0);
	shows("block                     4KiB\n"
	      "bytes                     1GiB\n"
	      "elapsed                   250ms\n"
	      "bytes per second          2MiB/s\n"
	      "iops                      412.3 k\n"
	      "queue depth               32\n"
	      "direct                    no\n");
}

static void percentiles_are_one_line(void)
{
	struct gantry_writer *w = &report.w;

	w->object(w, "latency");
	w->u64(w, "count", 5);
	w->u64(w, "p50_ns", 1000);
	w->u64(w, "p99_ns", 2000);
	w->u64(w, "p99_9_ns", 3000);
	w->end(w);
	w->object(w, "idle");
	w->u64(w, "count", 0);
	w->u64(w, "p50_ns", 0);
	w->u64(w, "p99_ns", 0);
	w->end(w);
	shows("latency                   p50 1us  p99 2us  p99.9 3us\n");
}

static void empty_groups_and_silent_counters_are_left_out(void)
{
	struct gantry_writer *w = &report.w;

	w->object(w, "errors");
	w->end(w);
	w->array(w, "stages");
	w->end(w);
	w->object(w, "counters");
	w->u64(w, "drops", 0);
	w->u64(w, "retries", 2);
	w->end(w);
	shows("counters\n"
	      "  retries                 2\n");
}

static void lists_are_joined_or_numbered(void)
{
	struct gantry_writer *w = &report.w;

	w->array(w, "pipeline");
	w->string(w, NULL, "stats");
	w->string(w, NULL, "link");
	w->end(w);
	w->array(w, "threads");
	w->object(w, NULL);
	w->u64(w, "turns", 3);
	w->end(w);
	w->end(w);
	shows("pipeline                  stats, link\n"
	      "threads 0\n"
	      "  turns                   3\n");
}

static void control_characters_do_not_reach_the_terminal(void)
{
	report.w.string(&report.w, "name", "a\033[31mb\nc");
	shows("name                      a?[31mb?c\n");
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(tree_has_the_written_values);
	RUN_TEST(progress_has_its_unit);
	RUN_TEST(unbalanced_writers_give_no_tree);
	RUN_TEST(too_deep_gives_no_tree_and_stays_balanced);
	RUN_TEST(values_that_json_cannot_hold_are_replaced);
	RUN_TEST(units_come_from_the_keys);
	RUN_TEST(percentiles_are_one_line);
	RUN_TEST(empty_groups_and_silent_counters_are_left_out);
	RUN_TEST(lists_are_joined_or_numbered);
	RUN_TEST(control_characters_do_not_reach_the_terminal);
	return UNITY_END();
}
