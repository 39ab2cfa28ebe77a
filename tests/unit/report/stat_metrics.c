/* SPDX-License-Identifier: BSD-3-Clause */
/* Metrics: families, labels and histograms of reports. */
#include "report/stat_metrics.h"

#include <stdlib.h>
#include <string.h>

#include "unity.h"

static char *metrics;
static const char *only; /* role; NULL: all */
static enum gn_metrics_format format;

void setUp(void)
{
	metrics = NULL;
	only = NULL;
	format = GN_METRICS_OPEN;
}

void tearDown(void)
{
	free(metrics);
}

/* Print the metrics of a report in which " is written as '. */
static void print(const char *text)
{
	char *copy = strdup(text), *c;
	json_t *list, *silent = json_pack("[i]", 4711);
	size_t n;
	FILE *f = open_memstream(&metrics, &n);

	for (c = copy; *c; c++)
		if (*c == '\'')
			*c = '"';
	list = json_loads(copy, 0, NULL);
	TEST_ASSERT_NOT_NULL_MESSAGE(list, copy);
	gn_stat_print_metrics(f, format, list, silent, only);
	fclose(f);
	json_decref(silent);
	json_decref(list);
	free(copy);
}

static void has(const char *line)
{
	const char *at = strstr(metrics, line);

	TEST_ASSERT_NOT_NULL_MESSAGE(at, line);
	TEST_ASSERT_TRUE_MESSAGE(at == metrics || at[-1] == '\n', line);
	TEST_ASSERT_NULL_MESSAGE(strstr(at + 1, line), line);
}

static void each_family_is_described_once(void)
{
	print("[]");
	has("# TYPE gantry_done_ops counter\n");
	has("# HELP gantry_done_ops IOs that the role has completed.\n");
	has("# TYPE gantry_io_latency_seconds histogram\n");
	has("# UNIT gantry_io_latency_seconds seconds\n");
	TEST_ASSERT_EQUAL_STRING("# EOF\n", strstr(metrics, "# EOF"));
}

#define SERVER \
	"'store': {'role': 'target', 'counters': {'ops_done': 40, 'sessions_opened': 2}," \
	" 'volume': {'size_bytes': 1048576}, 'backend': {'held_ops': 3}," \
	" 'sessions': [{'id': '29ab', 'lanes': 2, 'depth': 8}]}"

static void values_have_the_labels_of_their_subject(void)
{
	print("[{'pid': 7, 'config': 'a\\\"b', 'cpu_ns': 2500000000, 'roles': {" SERVER "},"
	      " 'devices': {'wire': {'counters': {'connections': 4}}}}]");
	has("gantry_process_cpu_seconds_total{pid=\"7\",config=\"a\\\"b\"} 2.5\n");
	has("gantry_done_ops_total{pid=\"7\",config=\"a\\\"b\",role=\"store\",kind=\"target\"} 40\n");
	has("gantry_held_ops{pid=\"7\",config=\"a\\\"b\",role=\"store\",kind=\"target\"} 3\n");
	has("gantry_session_lanes{pid=\"7\",config=\"a\\\"b\",role=\"store\",kind=\"target\","
	    "session=\"29ab\"} 2\n");
	has("gantry_device_connections_total{pid=\"7\",config=\"a\\\"b\",device=\"wire\"} 4\n");
	TEST_ASSERT_NULL(strstr(metrics, "gantry_failed_ops_total{"));
}

#define OF_READS "{pid=\"8\",role=\"load\",kind=\"initiator\",op=\"reads\""

static void buckets_of_a_histogram_add_up(void)
{
	print("[{'pid': 8, 'roles': {'load': {'role': 'initiator',"
	      " 'reads': {'bytes': 4096, 'latency': {'count': 10, 'mean_ns': 2000,"
	      " 'buckets': [959, 2, 1023, 1, 1151, 3, 2047, 1, 40000000000, 3]}}}}}]");
	has("gantry_io_bytes_total" OF_READS "} 4096\n");
	has("gantry_io_latency_seconds_bucket" OF_READS ",le=\"1.023e-06\"} 3\n");
	has("gantry_io_latency_seconds_bucket" OF_READS ",le=\"2.047e-06\"} 7\n");
	has("gantry_io_latency_seconds_bucket" OF_READS ",le=\"17.17986918\"} 7\n");
	has("gantry_io_latency_seconds_bucket" OF_READS ",le=\"+Inf\"} 10\n");
	has("gantry_io_latency_seconds_count" OF_READS "} 10\n");
	has("gantry_io_latency_seconds_sum" OF_READS "} 2e-05\n");
}

#define ERRORS "gantry_error_ops_total{pid=\"8\",role=\"load\",kind=\"initiator\",status="

static void errors_that_have_not_occurred_are_0(void)
{
	print("[{'pid': 8, 'roles': {'load': {'role': 'initiator', 'errors': {'IO': 6, 'x': 2}},"
	      " 'store': {'role': 'target'}}}]");
	has(ERRORS "\"IO\"} 6\n");
	has(ERRORS "\"TIMEOUT\"} 0\n");
	has(ERRORS "\"refused\"} 0\n");
	has(ERRORS "\"double_completions\"} 0\n");
	has(ERRORS "\"x\"} 2\n");
	TEST_ASSERT_NULL(strstr(metrics, "status=\"OK\""));
	TEST_ASSERT_NULL(strstr(metrics, "gantry_error_ops_total{pid=\"8\",role=\"store\""));
}

#define OF_SESSION "{pid=\"7\",role=\"store\",kind=\"target\",session=\"29ab\""

static void a_session_that_runs_has_samples(void)
{
	print("[{'pid': 7, 'roles': {'store': {'role': 'target', 'sessions': ["
	      " {'id': '0', 'lanes': 0, 'ops_done': 0},"
	      " {'id': '29ab', 'lanes': 2, 'state': 'ending', 'ops_done': 4},"
	      " {'id': '29ab', 'lanes': 2, 'state': 'running', 'ops_done': 5, 'ops_failed': 6,"
	      "  'bytes': 7, 'latency': {'count': 8, 'mean_ns': 1000, 'buckets': [959, 8]}}]}}}]");
	has("gantry_session_done_ops_total" OF_SESSION "} 5\n");
	has("gantry_session_failed_ops_total" OF_SESSION "} 6\n");
	has("gantry_session_bytes_total" OF_SESSION "} 7\n");
	has("gantry_session_latency_seconds_count" OF_SESSION "} 8\n");
	has("gantry_session_latency_seconds_bucket" OF_SESSION ",le=\"1.023e-06\"} 8\n");
	TEST_ASSERT_NULL(strstr(metrics, "session=\"0\""));
}

static void a_stage_that_measures_has_its_number(void)
{
	print("[{'pid': 9, 'roles': {'bridge': {'role': 'gateway', 'stages': [{'type': 'x'},"
	      " {'read': {'done_bytes': 512, 'latency': {'count': 0}}}]}}}]");
	has("gantry_io_bytes_total{pid=\"9\",role=\"bridge\",kind=\"gateway\",stage=\"1\","
	    "op=\"read\"} 512\n");
}

#define OF_STAGE "{pid=\"9\",role=\"store\",kind=\"target\",stage="

static void own_times_have_the_stage_as_label(void)
{
	print("[{'pid': 9, 'roles': {'store': {'role': 'target', 'stages': [{'type': 'x'},"
	      " {'type': 'y', 'own_time': {'count': 4, 'mean_ns': 500, 'buckets': [1000, 4]}}],"
	      " 'backend': {'type': 'memory', 'own_time': {'count': 3}}}}}]");
	has("gantry_stage_time_seconds_count" OF_STAGE "\"1\"} 4\n");
	has("gantry_stage_time_seconds_sum" OF_STAGE "\"1\"} 2e-06\n");
	has("gantry_stage_time_seconds_count" OF_STAGE "\"backend\"} 3\n");
	TEST_ASSERT_NULL(strstr(metrics, "stage=\"0\""));
}

static void a_process_that_does_not_answer_has_a_sample(void)
{
	print("[{'pid': 7, 'config': 'c'}]");
	has("gantry_process_up{pid=\"7\",config=\"c\"} 1\n");
	has("gantry_process_up{pid=\"4711\"} 0\n");
}

static void resumes_are_those_of_a_client(void)
{
	print("[{'pid': 7, 'roles': {'load': {'role': 'initiator',"
	      " 'counters': {'sessions_resumed': 3}}}}]");
	has("gantry_sessions_resumed_total{pid=\"7\",role=\"load\",kind=\"initiator\"} 3\n");
}

static void the_classic_format_has_suffixes_in_families_and_no_units(void)
{
	format = GN_METRICS_CLASSIC;
	print("[{'pid': 7, 'cpu_ns': 1000000000}]");
	has("# TYPE gantry_process_cpu_seconds_total counter\n");
	has("# HELP gantry_process_cpu_seconds_total Processor time of the process.\n");
	has("# TYPE gantry_process_up gauge\n");
	has("gantry_process_cpu_seconds_total{pid=\"7\"} 1\n");
	TEST_ASSERT_NULL(strstr(metrics, "# UNIT"));
	TEST_ASSERT_NULL(strstr(metrics, "# EOF"));
}

static void only_the_metrics_of_a_role_can_be_printed(void)
{
	only = "other";
	print("[{'pid': 7, 'cpu_ns': 1, 'roles': {" SERVER ", 'other': {'role': 'gateway',"
	      " 'counters': {'ops_done': 5}}}}]");
	has("gantry_done_ops_total{pid=\"7\",role=\"other\",kind=\"gateway\"} 5\n");
	TEST_ASSERT_NULL(strstr(metrics, "store"));
	TEST_ASSERT_NULL(strstr(metrics, "gantry_process_cpu_seconds_total{"));
	TEST_ASSERT_NULL(strstr(metrics, "gantry_process_up{"));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(each_family_is_described_once);
	RUN_TEST(values_have_the_labels_of_their_subject);
	RUN_TEST(buckets_of_a_histogram_add_up);
	RUN_TEST(errors_that_have_not_occurred_are_0);
	RUN_TEST(a_session_that_runs_has_samples);
	RUN_TEST(a_stage_that_measures_has_its_number);
	RUN_TEST(own_times_have_the_stage_as_label);
	RUN_TEST(a_process_that_does_not_answer_has_a_sample);
	RUN_TEST(resumes_are_those_of_a_client);
	RUN_TEST(the_classic_format_has_suffixes_in_families_and_no_units);
	RUN_TEST(only_the_metrics_of_a_role_can_be_printed);
	return UNITY_END();
}
