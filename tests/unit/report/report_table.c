/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of gantry run: what it shows of a report, and its width. */
#include "report/report_table.h"

#include <stdlib.h>
#include <string.h>

#include "unity.h"

#define HEAD "                       ops    IOPS   bytes/s      p50      p99    p99.9      max\n"

void setUp(void)
{
}

void tearDown(void)
{
}

/* Returns the table of a report, which the caller frees. report: JSON with ' instead of ". */
static char *table(const char *report)
{
	char *text = strdup(report), *out = NULL;
	json_t *tree;
	size_t n;
	FILE *f;

	for (char *c = text; *c; c++)
		*c = *c == '\'' ? '"' : *c;
	tree = json_loads(text, 0, NULL);
	TEST_ASSERT_NOT_NULL_MESSAGE(tree, text);
	f = open_memstream(&out, &n);
	gn_report_print_table(f, tree);
	fclose(f);
	json_decref(tree);
	free(text);
	return out;
}

static void shows(const char *expect, const char *report)
{
	char *out = table(report);

	TEST_ASSERT_EQUAL_STRING(expect, out);
	free(out);
}

#define LATENCY(n, p50, p99, p99_9, max) \
	"{'count': " n ", 'p50_ns': " p50 ", 'p99_ns': " p99 ", 'p99_9_ns': " p99_9 \
	", 'max_ns': " max ", 'buckets': [" p50 ", " n "]}"

static void each_column_has_its_value(void)
{
	shows("result ok, elapsed 2s, CPU 500ms\n"
	      "\n"
	      "load: initiator, lanes 1, depth 32, elapsed 2s\n" HEAD
	      "  reads               3000    1500   5.85MiB     10us     20us     30us     40us\n"
	      "  writes              1000     500   1.95MiB     11us     21us     31us     41us\n"
	      "  total               4000    2000   7.81MiB        -        -        -        -\n"
	      "  hop gateway         4000    2000         -      5us      6us      7us      8us\n"
	      "  hop target          2000    1000         -      1us      2us      3us      4us\n"
	      "\n"
	      "devices\n",
	      "{'result': 'ok', 'elapsed_ns': 2000000000, 'cpu_ns': 500000000, 'roles': {'load': {"
	      "'role': 'initiator', 'lanes': 1, 'depth': 32, 'elapsed_ns': 2000000000,"
	      "'reads': {'iops': 1500, 'bytes_per_second': 6144000, 'latency':" LATENCY(
		      "3000", "10000", "20000", "30000",
		      "40000") "},"
			       "'writes': {'iops': 500, 'bytes_per_second': 2048000, 'latency':" LATENCY(
				       "1000", "11000", "21000", "31000",
				       "41000") "},"
						"'total': {'ops': 4000, 'iops': 2000, 'bytes_per_second': 8192000},"
						"'hops': {'gateway':" LATENCY(
							"4000", "5000", "6000", "7000",
							"8000") ","
								"'target':" LATENCY("2000", "1000",
										    "2000", "3000",
										    "4000") "}}}}");
}

static void the_own_times_of_stages_have_rows(void)
{
	shows("result ok, elapsed 2s, CPU 0ns\n"
	      "\n"
	      "store: target\n" HEAD
	      "  in fault 75%        4000    2000         -      5us      6us      7us      8us\n"
	      "  in memory 25%       2000    1000         -      1us      2us      3us      4us\n"
	      "\n"
	      "devices\n",
	      "{'result': 'ok', 'elapsed_ns': 2000000000, 'roles': {'store': {'role': 'target',"
	      "'stages': [{'type': 'noop'}, {'type': 'fault', 'own_time_share': 0.75, 'own_time':" LATENCY(
		      "4000", "5000", "6000", "7000",
		      "8000") "}],"
			      "'backend': {'type': 'memory', 'own_time_share': 0.25, 'own_time':" LATENCY(
				      "2000", "1000", "2000", "3000", "4000") "}}}}");
}

static void a_number_of_ios_is_exact_as_long_as_it_fits(void)
{
	shows("result ok, elapsed 1s, CPU 0ns\n"
	      "\n"
	      "load: initiator\n" HEAD
	      "  reads            9999999 9999.9k         0     10us     20us     30us     40us\n"
	      "  writes             10.0M   10.0M         0     10us     20us     30us     40us\n"
	      "  total              20.0M   10.0M         0        -        -        -        -\n"
	      "\n"
	      "devices\n",
	      "{'result': 'ok', 'elapsed_ns': 1000000000, 'roles': {'load': {'role': 'initiator',"
	      "'reads': {'iops': 9999900, 'latency':" LATENCY(
		      "9999999", "10000", "20000", "30000",
		      "40000") "},"
			       "'writes': {'latency':" LATENCY(
				       "10000000", "10000", "20000", "30000",
				       "40000") "},"
						"'total': {'ops': 20000000, 'iops': 10000000, 'bytes_per_second': 0}}}}");
}

static void a_stage_measures_for_the_time_of_the_process(void)
{
	shows("result ok, elapsed 2s, CPU 0ns\n"
	      "\n"
	      "bridge: gateway, lanes 2\n" HEAD
	      "  stats read          1000     500   3.90MiB     10us     20us     30us     40us\n"
	      "  stats errors     IO 3\n"
	      "  stats            refused ops 2\n"
	      "\n"
	      "devices\n",
	      "{'result': 'ok', 'elapsed_ns': 2000000000, 'roles': {'bridge': {'role': 'gateway',"
	      "'lanes': 2, 'stages': [{'type': 'stats', 'read': {'done_ops': 1000, 'done_bytes': 8192000,"
	      "'latency':" LATENCY(
		      "1000", "10000", "20000", "30000",
		      "40000") "},"
			       "'errors': {'IO': 3}, 'refused_ops': 2, 'held_ops': 0}]}}}");
}

static void errors_resumes_and_counters_show_if_they_are_not_zero(void)
{
	shows("result failed, elapsed 0ns, CPU 0ns, quarantined 4KiB\n"
	      "\n"
	      "load: initiator\n"
	      "  errors           IO 3, TIMEOUT 2\n"
	      "  not completed    1 of 7\n"
	      "  verify           checked 5\n"
	      "  counters         quarantined 2, sessions resumed 1\n"
	      "  memory           failed, held ops 4\n"
	      "\n"
	      "devices\n"
	      "  wire             loop, connections 2\n",
	      "{'result': 'failed', 'quarantined_bytes': 4096, 'roles': {'load': {'role': 'initiator',"
	      "'submitted': 7, 'completed': 6, 'quarantined': 2, 'errors': {'IO': 3, 'TIMEOUT': 2},"
	      "'verify': {'checked': 5, 'torn': 0}, 'counters': {'sessions_resumed': 1, 'lost': 0},"
	      "'backend': {'type': 'memory', 'failed': true, 'direct': false, 'mapped_bytes': 4096,"
	      "'held_ops': 4}}},"
	      "'devices': {'wire': {'transport': 'loop', 'counters': {'connections': 2, 'lost': 0}}}}");
}

#define LONG "a123456789b123456789c123456789d123456789e123456789f123456789g123456789h123456789i"
#define HUGE_COUNT "9223372036854775807"
#define HUGE_LATENCY LATENCY(HUGE_COUNT, HUGE_COUNT, HUGE_COUNT, HUGE_COUNT, HUGE_COUNT)

static void no_line_has_more_than_80_columns(void)
{
	char *out = table(
		"{'result': '" LONG "', 'elapsed_ns': " HUGE_COUNT ", 'cpu_ns': " HUGE_COUNT ","
		"'quarantined_bytes': " HUGE_COUNT ", 'roles': {'" LONG "': {'role': '" LONG "',"
		"'lanes': " HUGE_COUNT ", 'depth': " HUGE_COUNT ", 'block_bytes': " HUGE_COUNT ","
		"'elapsed_ns': " HUGE_COUNT ", 'submitted': " HUGE_COUNT ", 'completed': 1,"
		"'" LONG "': {'iops': 1e300, 'bytes_per_second': 1e300, 'latency':" HUGE_LATENCY
		"},"
		"'middle': {'iops': 9999949999, 'bytes_per_second': 1099511627775,"
		"'latency':" LATENCY("9999960", "999999999", "9999999999999", "99999999999999",
				     "59999999999") "},"
						    "'total': {'ops': " HUGE_COUNT
						    ", 'iops': 1e300, 'bytes_per_second': 1e300},"
						    "'hops': {'" LONG "':" HUGE_LATENCY
						    "}, 'errors': {'" LONG "': " HUGE_COUNT ","
						    "'IO': " HUGE_COUNT ", 'TIMEOUT': " HUGE_COUNT
						    ", 'x': " HUGE_COUNT "},"
						    "'verify': {'" LONG "': 1}, 'counters': {'" LONG
						    "': " HUGE_COUNT "},"
						    "'stages': [{'type': '" LONG
						    "', 'errors': {'" LONG "': 1}, '" LONG
						    "': true}],"
						    "'backend': {'type': '" LONG "', '" LONG
						    "': " HUGE_COUNT "}}},"
						    "'devices': {'" LONG "': {'transport': '" LONG
						    "', 'counters': {'" LONG "': 1}}}}");
	char *rest = out, *line;

	while ((line = strsep(&rest, "\n")))
		if (strlen(line) > GN_TABLE_COLUMNS)
			TEST_FAIL_MESSAGE(line);
	free(out);
}

static void control_characters_do_not_reach_the_terminal(void)
{
	char *out = table("{'roles': {'a\\u001b[31mb': {'role': 'x\\ny'}}}");

	TEST_ASSERT_NOT_NULL(strstr(out, "\na?[31mb: x?y\n"));
	free(out);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(each_column_has_its_value);
	RUN_TEST(the_own_times_of_stages_have_rows);
	RUN_TEST(a_number_of_ios_is_exact_as_long_as_it_fits);
	RUN_TEST(a_stage_measures_for_the_time_of_the_process);
	RUN_TEST(errors_resumes_and_counters_show_if_they_are_not_zero);
	RUN_TEST(no_line_has_more_than_80_columns);
	RUN_TEST(control_characters_do_not_reach_the_terminal);
	return UNITY_END();
}
