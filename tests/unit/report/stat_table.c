/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of gantry stat: rates and percentiles since the start, and between two reports. */
#include "report/stat_table.h"

#include <stdlib.h>
#include <string.h>

#include "unity.h"

#define HEAD "    PID ROLE              KIND          IOPS   BYTES/S     P50     P99 HELD  ERR\n"

void setUp(void)
{
}

void tearDown(void)
{
}

static json_t *reports(const char *text)
{
	json_t *list = json_loads(text, 0, NULL);

	TEST_ASSERT_NOT_NULL_MESSAGE(list, text);
	return list;
}

/* before: NULL for a table since the start. */
static void shows(const char *expect, const char *now, const char *before, const char *role)
{
	json_t *list = reports(now), *earlier = before ? reports(before) : NULL;
	char *out = NULL;
	size_t n;
	FILE *f = open_memstream(&out, &n);

	gn_stat_print_table(f, list, earlier, role);
	fclose(f);
	TEST_ASSERT_EQUAL_STRING(expect, out);
	free(out);
	json_decref(list);
	json_decref(earlier);
}

#define TARGET(elapsed, ops, failed) \
	"[{'pid': 7, 'elapsed_ns': " elapsed ", 'roles': {'store': {'role': 'target'," \
	" 'counters': {'ops_done': " ops ", 'ops_failed': " failed "}," \
	" 'sessions': [{'id': '2967759cdcd69261', 'state': 'running', 'peer_pid': 9," \
	" 'lanes': 2, 'depth': 32}], 'stages': [], 'backend': {'held_ops': 5}}}}]"

#define INITIATOR(elapsed, ops, buckets, others) \
	"[{'pid': 8, 'elapsed_ns': 9000000000, 'roles': {'load': {'role': 'initiator'," \
	" 'elapsed_ns': " elapsed ", 'total': {'ops': " ops "}," \
	" 'reads': {'bytes': 8192, 'latency': {'buckets': " buckets "}}," \
	" 'writes': {'bytes': 4096, 'latency': {'buckets': " others "}}," \
	" 'errors': {'io': 3}, 'connect': {'held_ops': 4}}}}]"

/* JSON with ' instead of ", which is easier to read here. */
static const char *json(char *buf, const char *text)
{
	char *c;

	strcpy(buf, text);
	for (c = buf; *c; c++)
		if (*c == '\'')
			*c = '"';
	return buf;
}
static char first[2048], second[2048];

static void a_server_counts_operations(void)
{
	shows(HEAD
	      "      7 store             target        2000         -       -       -    5    1\n"
	      "          session 2967759c running, peer 9, lanes 2, depth 32\n",
	      json(first, TARGET("2000000000", "4000", "1")), NULL, NULL);
}

static void rates_are_those_since_the_earlier_report(void)
{
	shows(HEAD
	      "      7 store             target         500         -       -       -    5    0\n"
	      "          session 2967759c running, peer 9, lanes 2, depth 32\n",
	      json(first, TARGET("4000000000", "5000", "1")),
	      json(second, TARGET("2000000000", "4000", "1")), NULL);
}

static void another_process_is_not_an_earlier_report(void)
{
	char other[2048];

	json(second, TARGET("2000000000", "4000", "1"));
	strcpy(other, second);
	*strchr(other, '7') = '6';
	shows(HEAD
	      "      7 store             target        1250         -       -       -    5    1\n"
	      "          session 2967759c running, peer 9, lanes 2, depth 32\n",
	      json(first, TARGET("4000000000", "5000", "1")), other, NULL);
}

static void a_process_that_started_again_has_no_earlier_report(void)
{
	/* the same PID, and a shorter run time */
	shows(HEAD
	      "      7 store             target        2500         -       -       -    5    1\n"
	      "          session 2967759c running, peer 9, lanes 2, depth 32\n",
	      json(first, TARGET("2000000000", "5000", "1")),
	      json(second, TARGET("9000000000", "4000", "1")), NULL);
	/* a counter of a role that is lower than before */
	shows(HEAD
	      "      7 store             target          10         -       -       -    5    0\n"
	      "          session 2967759c running, peer 9, lanes 2, depth 32\n",
	      json(first, TARGET("4000000000", "40", "0")),
	      json(second, TARGET("2000000000", "4000", "0")), NULL);
}

static void percentiles_are_of_reads_and_writes(void)
{
	/* 98 of 100 at 10 us, one at 20 us, one at 1 ms */
	shows(HEAD
	      "      8 load              initiator    12.0k      6KiB    10us    20us    4    3\n",
	      json(first, INITIATOR("2000000000", "24000", "[10000, 50, 1000000, 1]",
				    "[10000, 48, 20000, 1]")),
	      NULL, NULL);
}

static void percentiles_are_those_since_the_earlier_report(void)
{
	shows(HEAD
	      "      8 load              initiator     1111         0     1ms     1ms    4    0\n",
	      json(first, INITIATOR("2000000000", "24000", "[10000, 50, 1000000, 7]", "[]")),
	      json(second,
		   "[{'pid': 8, 'elapsed_ns': 0, 'roles': {'load': {'role': 'initiator',"
		   " 'elapsed_ns': 1, 'total': {'ops': 14000},"
		   " 'reads': {'bytes': 12288, 'latency': {'buckets': [10000, 50, 1000000, 1]}},"
		   " 'errors': {'io': 3}}}}]"),
	      NULL);
}

static void a_role_can_be_chosen(void)
{
	shows(HEAD, json(first, TARGET("2000000000", "4000", "1")), NULL, "other");
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(a_server_counts_operations);
	RUN_TEST(rates_are_those_since_the_earlier_report);
	RUN_TEST(another_process_is_not_an_earlier_report);
	RUN_TEST(a_process_that_started_again_has_no_earlier_report);
	RUN_TEST(percentiles_are_of_reads_and_writes);
	RUN_TEST(percentiles_are_those_since_the_earlier_report);
	RUN_TEST(a_role_can_be_chosen);
	return UNITY_END();
}
