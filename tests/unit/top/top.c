/* SPDX-License-Identifier: BSD-3-Clause */
/* gantry top without its terminal: rows from reports, order, keys, the text of the screen. */
#include "top/top_columns.h"
#include "top/top_keys.h"
#include "top/top_model.h"
#include "top/top_screen.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unity.h"

static struct gn_top_model m;
static struct gn_top_screen screen;
static time_t clock_s;

void setUp(void)
{
	gn_top_init(&m, "/run/here", NULL);
	clock_s = 1000;
}

void tearDown(void)
{
	gn_top_fini(&m);
	gn_top_screen_fini(&screen);
}

/* JSON with ' instead of ", which is easier to read here. */
static json_t *json(const char *text)
{
	char buf[4096], *c;
	json_error_t error;
	json_t *tree;

	snprintf(buf, sizeof(buf), "%s", text);
	for (c = buf; *c; c++)
		if (*c == '\'')
			*c = '"';
	tree = json_loads(buf, 0, &error);
	TEST_ASSERT_NOT_NULL_MESSAGE(tree, error.text);
	return tree;
}

/* Take reports; silent: PIDs of processes without an answer. */
static void report_with(const char *list, const char *silent)
{
	json_t *pids = json(silent);

	gn_top_update(&m, json(list), pids, clock_s++);
	json_decref(pids);
}

static void report(const char *list)
{
	report_with(list, "[]");
}

#define TARGET(pid, elapsed, ops) \
	"{'pid': " pid ", 'elapsed_ns': " elapsed ", 'cpu_ns': " elapsed ", 'roles': {'store': {" \
	"'role': 'target', 'lanes': 1, 'counters': {'ops_done': " ops ", 'ops_failed': 0}," \
	" 'sessions': [{'id': '2967759cdcd69261', 'state': 'running', 'epoch': 2," \
	" 'in_state_ns': 65000000000, 'lanes': 2, 'depth': 16}], 'backend': {'held_ops': 5}}}}"

#define INITIATOR(pid, elapsed, ops, bucket) \
	"{'pid': " pid ", 'elapsed_ns': " elapsed ", 'cpu_ns': 0, 'roles': {'load': {" \
	"'role': 'initiator', 'elapsed_ns': " elapsed ", 'lanes': 1, 'depth': 4," \
	" 'lane_ops': [" ops "], 'lane_held_ops': [3], 'total': {'ops': " ops "}," \
	" 'reads': {'bytes': " ops ", 'latency': {'buckets': [10000, " bucket "]}}," \
	" 'hops': {'gateway': {'count': " ops ", 'mean_ns': 900}," \
	" 'target': {'count': " ops ", 'mean_ns': 600}, 'backend': {'count': " ops \
	", 'mean_ns': 300}," \
	" 'link': {'count': " ops ", 'mean_ns': 300}}, 'errors': {'io': 3}," \
	" 'connect': {'held_ops': 3}, 'client_sessions': [{'id': '2967759cdcd69261'," \
	" 'service': 'disk', 'state': 'waiting', 'epoch': 1, 'in_state_ns': 3000000000}]}}}"

static const struct gn_top_row *row(const char *key)
{
	for (size_t i = 0; i < m.n_rows; i++)
		if (strcmp(m.rows[i].key, key) == 0)
			return &m.rows[i];
	TEST_FAIL_MESSAGE(key);
	return NULL;
}

static double value(const char *key, enum gn_top_value which)
{
	return row(key)->value[which];
}

/* The keys of the rows shown, in their order, separated by blanks. */
static void shows(const char *expect)
{
	char keys[1024] = "";

	for (size_t i = 0; i < m.n_shown; i++) {
		strcat(keys, i ? " " : "");
		strcat(keys, m.order[i]->key);
	}
	TEST_ASSERT_EQUAL_STRING(expect, keys);
}

static const char *line(size_t i)
{
	TEST_ASSERT_TRUE(i < screen.n);
	return screen.lines[i].text;
}

static void has_line(const char *text)
{
	for (size_t i = 0; i < screen.n; i++)
		if (strstr(screen.lines[i].text, text))
			return;
	TEST_FAIL_MESSAGE(text);
}

static void press(const char *keys)
{
	for (; *keys; keys++)
		gn_top_press(&m, *keys);
}

/* -- rows -- */

#define SERVED(elapsed, epoch, ops, bucket) \
	"[{'pid': 7, 'elapsed_ns': " elapsed ", 'cpu_ns': 0, 'roles': {'store': {" \
	"'role': 'target', 'sessions': [{'id': 'a', 'epoch': " epoch ", 'ops_done': " ops \
	", 'ops_failed': 5, 'bytes': " ops "000, 'latency': {'buckets': [10000, " bucket \
	", 20000, 9]}}, {'id': 'b', 'epoch': 1}]}}}]"

static void a_session_of_a_server_has_rates_and_latency(void)
{
	report(SERVED("1000000000", "1", "100", "1"));
	TEST_ASSERT_EQUAL_INT(5, value("7/store/se-a", GN_TOP_ERRORS));
	report(SERVED("3000000000", "1", "300", "100"));
	TEST_ASSERT_EQUAL_INT(100, value("7/store/se-a", GN_TOP_IOPS));
	TEST_ASSERT_EQUAL_INT(100000, value("7/store/se-a", GN_TOP_BYTES));
	TEST_ASSERT_EQUAL_INT(10000, value("7/store/se-a", GN_TOP_P999));
	TEST_ASSERT_EQUAL_INT(0, value("7/store/se-a", GN_TOP_ERRORS));
	TEST_ASSERT_TRUE(isnan(value("7/store/se-b", GN_TOP_IOPS)));
	report(SERVED("4000000000", "2", "7", "3")); /* resumed: it counts from 0 */
	TEST_ASSERT_EQUAL_INT(7, value("7/store/se-a", GN_TOP_IOPS));
	TEST_ASSERT_EQUAL_INT(20000, value("7/store/se-a", GN_TOP_P999));
}

static void rates_are_those_between_two_reports(void)
{
	report("[" TARGET("7", "2000000000", "4000") "]");
	TEST_ASSERT_EQUAL_INT(2000, value("7/store", GN_TOP_IOPS));
	report("[" TARGET("7", "4000000000", "5000") "]");
	TEST_ASSERT_EQUAL_INT(500, value("7/store", GN_TOP_IOPS));
	TEST_ASSERT_TRUE(isnan(value("7/store/se-2967759cdcd69261", GN_TOP_IOPS)));
	TEST_ASSERT_EQUAL_INT(2000000, value("7/store", GN_TOP_CPU));
	TEST_ASSERT_EQUAL_INT(5, value("7/store", GN_TOP_IN_FLIGHT));
	TEST_ASSERT_EQUAL_INT(27, value("7/store", GN_TOP_CREDITS));
	TEST_ASSERT_TRUE(isnan(value("7/store", GN_TOP_P99)));
	TEST_ASSERT_TRUE(isnan(value("7/store", GN_TOP_BYTES)));
	TEST_ASSERT_EQUAL_STRING("1 session", row("7/store")->state);
	TEST_ASSERT_EQUAL_STRING("resumed 1m05s", row("7/store/se-2967759cdcd69261")->state);
}

static void latency_and_errors_are_those_between_two_reports(void)
{
	report("[" INITIATOR("8", "1000000000", "100", "100") "]");
	report("[" INITIATOR("8", "2000000000", "300", "100, 50000, 200") "]");
	TEST_ASSERT_EQUAL_INT(200, value("8/load", GN_TOP_IOPS));
	TEST_ASSERT_EQUAL_INT(200, value("8/load", GN_TOP_BYTES));
	TEST_ASSERT_EQUAL_INT(50000, value("8/load", GN_TOP_P50));
	TEST_ASSERT_EQUAL_INT(50000, value("8/load", GN_TOP_P999));
	TEST_ASSERT_EQUAL_INT(0, value("8/load", GN_TOP_ERRORS));
	TEST_ASSERT_EQUAL_INT(1, value("8/load", GN_TOP_CREDITS));
	TEST_ASSERT_EQUAL_INT(200, value("8/load/0", GN_TOP_IOPS));
	TEST_ASSERT_EQUAL_STRING("waiting 3s", row("8/load")->state);
	TEST_ASSERT_EQUAL_STRING(">disk", row("8/load/cl-2967759cdcd69261")->name);
}

static void shares_are_what_each_part_adds(void)
{
	char text[GN_TOP_CELL];
	size_t i = gn_top_find_column('H');

	report("[" INITIATOR("8", "1000000000", "100", "100") "]");
	TEST_ASSERT_TRUE(row("8/load")->has_share);
	/* link, gateway without target, target without backend, backend: 300 ns each */
	gn_top_print_cell(&gn_top_columns[i], row("8/load"), text);
	TEST_ASSERT_EQUAL_STRING("LLLGGGTTTBBB", text);
}

static void a_process_that_started_again_counts_from_its_start(void)
{
	report("[" TARGET("7", "9000000000", "90000") "]");
	report("[" TARGET("7", "2000000000", "4000") "]");
	TEST_ASSERT_EQUAL_INT(2000, value("7/store", GN_TOP_IOPS));
}

static void an_io_counts_once_in_the_totals(void)
{
	report("[" TARGET("7", "1000000000", "4000") "," INITIATOR(
		"8", "1000000000", "3000", "1") "," INITIATOR("9", "1000000000", "3500", "1") "]");
	TEST_ASSERT_EQUAL_INT(6500, m.total_iops);
	TEST_ASSERT_EQUAL_INT(6500, m.total_bytes);
	TEST_ASSERT_EQUAL_INT(3, m.n_processes);
	TEST_ASSERT_EQUAL_INT(1, m.n_served);
	TEST_ASSERT_EQUAL_INT(2, m.n_opened);
	gn_top_draw(&m, 80, 24, &screen);
	has_line(" 3 processes, 3 roles, 2 sessions");
}

static void a_process_that_does_not_answer_stays(void)
{
	report("[" TARGET("7", "1000000000", "4000") "]");
	report_with("[]", "[7]");
	TEST_ASSERT_EQUAL_STRING("silent", row("7/store")->state);
	TEST_ASSERT_EQUAL_INT(0, value("7/store", GN_TOP_IOPS));
	report("[" TARGET("7", "5000000000", "8000") "]");
	TEST_ASSERT_EQUAL_INT(1000, value("7/store", GN_TOP_IOPS));
}

static void a_process_that_ends_is_named(void)
{
	report("[" TARGET("7", "1000000000", "4000") "]");
	press(" ");
	report("[]");
	press(" ");
	TEST_ASSERT_EQUAL_STRING("process 7 has ended", m.notice);
	gn_top_draw(&m, 80, 24, &screen);
	TEST_ASSERT_EQUAL_STRING("process 7 has ended", line(1));
	TEST_ASSERT_EQUAL_STRING("no gantry process runs in /run/here: start one with gantry run",
				 line(3));
	gn_top_draw(&m, 40, 10, &screen);
	TEST_ASSERT_EQUAL_STRING("no gantry process runs in /run/here: sta", line(3));
	TEST_ASSERT_EQUAL_STRING("rt one with gantry run", line(4));
	clock_s += 60;
	report("[]");
	TEST_ASSERT_EQUAL_STRING("", m.notice);
}

static void only_one_role(void)
{
	m.only_role = "load";
	report("[" TARGET("7", "1000000000", "4000") "," INITIATOR("8", "1000000000", "3000",
								   "1") "]");
	shows("8/load 8/load/cl-2967759cdcd69261");
	report("[]");
	gn_top_draw(&m, 80, 24, &screen);
	has_line("no gantry process in /run/here has a role load");
}

/* Reports come from other processes: no value of any type may matter. */
static void strange_reports_are_survived(void)
{
	static const char *const strange[] = {
		"[]",
		"[1, null, 'x', []]",
		"[{'pid': 'x', 'roles': []}]",
		"[{'pid': 1, 'elapsed_ns': -1e308, 'cpu_ns': 1e308, 'roles': {'': 3, 'a': null,"
		" 'b': {'role': 7, 'sessions': [1, {}, {'id': 7}], 'lane_ops': ['x', 1e308, -5]}}}]",
		"[{'pid': 1, 'elapsed_ns': 1e308, 'roles': {'b': {'sessions': {}, 'lanes': 1e308,"
		" 'depth': -3, 'hops': {'link': {'count': 1, 'mean_ns': 1e308}}, 'counters':"
		" {'ops_done': 1e308, 'ops_failed': -4}, 'x': {'bytes': 1e308, 'latency': {'buckets':"
		" [-1, -9223372036854775808, 9223372036854775807, 9223372036854775807]}},"
		" 'client_sessions': [{'in_state_ns': -1}, {'in_state_ns': 1e308, 'lanes': 'y'}]}}}]",
	};

	for (size_t i = 0; i < 3 * sizeof(strange) / sizeof(strange[0]); i++) {
		report_with(strange[i % 5], i % 2 ? "[1, 'x']" : "[]");
		m.lanes_shown = true;
		gn_top_sort(&m);
		gn_top_draw(&m, 0, 0, &screen);
		gn_top_draw(&m, 40, 10, &screen);
		gn_top_open(&m);
		gn_top_draw(&m, 40, 10, &screen);
		gn_top_back(&m);
	}
	TEST_ASSERT_TRUE(screen.n == 10);
}

static void names_cannot_control_the_terminal(void)
{
	report("[{'pid': 7, 'elapsed_ns': 1, 'roles': {'a\\u001b[2J\\u009bb': {'role': 'x\\ny'},"
	       "'a_name_that_is_longer_than_any_column_and_than_the_row_keeps_of_it_'"
	       ": {'role': 'target'}}}]");
	gn_top_draw(&m, 0, 0, &screen);
	has_line("a?[2J??b");
	has_line("x?y");
	has_line("a_name_that_is_lo ");
	for (size_t i = 0; i < screen.n; i++)
		for (const char *c = line(i); *c; c++)
			TEST_ASSERT_TRUE(*c >= ' ' && *c <= '~');
}

/* -- keys -- */

#define TWO(ops7, ops8) \
	"[" TARGET("7", "1000000000", ops7) "," INITIATOR("8", "1000000000", ops8, "1") "]"

static void rows_are_sorted_by_any_column(void)
{
	report(TWO("1000", "2000"));
	shows("7/store 7/store/se-2967759cdcd69261 8/load 8/load/cl-2967759cdcd69261");
	press("I");
	shows("8/load 8/load/cl-2967759cdcd69261 7/store 7/store/se-2967759cdcd69261");
	press("r");
	shows("7/store 7/store/se-2967759cdcd69261 8/load 8/load/cl-2967759cdcd69261");
	press("N");
	shows("8/load 8/load/cl-2967759cdcd69261 7/store 7/store/se-2967759cdcd69261");
	press("<");
	TEST_ASSERT_EQUAL_STRING("PID", gn_top_columns[m.column].title);
	press("<");
	TEST_ASSERT_EQUAL_STRING("STATE", gn_top_columns[m.column].title);
	press(">>>");
	TEST_ASSERT_EQUAL_STRING("KIND", gn_top_columns[m.column].title);
	press("B"); /* the target has no value */
	shows("8/load 8/load/cl-2967759cdcd69261 7/store 7/store/se-2967759cdcd69261");
}

static void lanes_can_be_shown(void)
{
	report(TWO("1000", "2000"));
	press("l");
	shows("7/store 7/store/se-2967759cdcd69261 8/load 8/load/0 8/load/cl-2967759cdcd69261");
	press("l");
	shows("7/store 7/store/se-2967759cdcd69261 8/load 8/load/cl-2967759cdcd69261");
}

static void the_selection_follows_its_row(void)
{
	report(TWO("1000", "2000"));
	press("I");
	gn_top_press(&m, GN_TOP_KEY_HOME);
	press("j");
	TEST_ASSERT_EQUAL_STRING("8/load/cl-2967759cdcd69261", m.selected);
	press("r");
	TEST_ASSERT_EQUAL_STRING("8/load/cl-2967759cdcd69261", m.selected);
	press("jjjjjjjj");
	TEST_ASSERT_EQUAL_STRING("8/load/cl-2967759cdcd69261", m.selected);
	gn_top_press(&m, GN_TOP_KEY_HOME);
	TEST_ASSERT_EQUAL_STRING("7/store", m.selected);
	press("k");
	TEST_ASSERT_EQUAL_STRING("7/store", m.selected);
	report("[" INITIATOR("8", "2000000000", "1", "1") "]");
	TEST_ASSERT_EQUAL_STRING("8/load", m.selected);
}

static void a_session_can_be_opened(void)
{
	report("[" TARGET("7", "1000000000", "4000") "]");
	press("j\n");
	gn_top_draw(&m, 80, 24, &screen);
	has_line("id                        2967759cdcd69261");
	has_line("in state                  65s");
	press("\x1b");
	TEST_ASSERT_EQUAL_INT(GN_TOP_LIST, m.mode);
	press("\n?");
	TEST_ASSERT_EQUAL_INT(GN_TOP_HELP, m.mode);
	press("h");
	TEST_ASSERT_EQUAL_INT(GN_TOP_DETAIL, m.mode);
	report("[]");
	gn_top_draw(&m, 80, 24, &screen);
	has_line("it has ended; Esc goes back to the list");
}

static void a_long_text_scrolls(void)
{
	report("[" TARGET("7", "1000000000", "4000") "]");
	press("h");
	gn_top_draw(&m, 80, 10, &screen);
	TEST_ASSERT_EQUAL_STRING("q                   quit", line(3));
	press("j");
	gn_top_draw(&m, 80, 10, &screen);
	TEST_ASSERT_EQUAL_STRING("h ?                 show these keys, or go back", line(3));
	gn_top_press(&m, GN_TOP_KEY_END);
	gn_top_draw(&m, 80, 10, &screen);
	TEST_ASSERT_EQUAL_INT(10, screen.n);
	has_line("S  STATE");
	gn_top_press(&m, GN_TOP_KEY_PAGE_UP);
	gn_top_press(&m, GN_TOP_KEY_HOME);
	gn_top_draw(&m, 80, 10, &screen);
	TEST_ASSERT_EQUAL_STRING("q                   quit", line(3));
}

static void a_long_list_scrolls_to_the_selection(void)
{
	char list[4096] = "[", each[128];

	for (int i = 100; i < 130; i++) {
		snprintf(each, sizeof(each), "%s{'pid': %d, 'roles': {'r': {'role': 'x'}}}",
			 i > 100 ? "," : "", i);
		strcat(list, each);
	}
	report(strcat(list, "]"));
	gn_top_draw(&m, 80, 10, &screen);
	TEST_ASSERT_EQUAL_INT(0, strncmp("    100 r ", line(3), 10));
	gn_top_press(&m, GN_TOP_KEY_PAGE_DOWN);
	gn_top_draw(&m, 80, 10, &screen);
	TEST_ASSERT_EQUAL_INT(0, strncmp("    106 r ", line(8), 10));
	TEST_ASSERT_EQUAL_INT(GN_TOP_SELECTED, screen.lines[8].style);
	gn_top_press(&m, GN_TOP_KEY_END);
	gn_top_draw(&m, 80, 10, &screen);
	TEST_ASSERT_EQUAL_INT(0, strncmp("    129 r ", line(8), 10));
	gn_top_draw(&m, 80, 40, &screen);
	TEST_ASSERT_EQUAL_INT(0, strncmp("    100 r ", line(3), 10));
}

static void a_pause_keeps_the_rows(void)
{
	report("[" TARGET("7", "1000000000", "1000") "]");
	press(" ");
	report("[" TARGET("7", "2000000000", "3000") "]");
	report("[" TARGET("7", "3000000000", "7000") "]");
	TEST_ASSERT_EQUAL_INT(1000, value("7/store", GN_TOP_IOPS));
	gn_top_draw(&m, 80, 24, &screen);
	TEST_ASSERT_EQUAL_STRING("paused", line(1));
	press("j\n"); /* the report of the rows still exists */
	gn_top_draw(&m, 80, 24, &screen);
	has_line("2967759cdcd69261");
	press(" ");
	TEST_ASSERT_EQUAL_INT(4000, value("7/store", GN_TOP_IOPS));
}

static void the_interval_has_limits(void)
{
	press("-");
	TEST_ASSERT_EQUAL_INT(1, m.interval_s);
	press("++-");
	TEST_ASSERT_EQUAL_INT(2, m.interval_s);
	m.interval_s = GN_TOP_MAX_INTERVAL_S;
	press("+");
	TEST_ASSERT_EQUAL_INT(GN_TOP_MAX_INTERVAL_S, m.interval_s);
	press("q");
	TEST_ASSERT_TRUE(m.quit);
}

/* -- tables and screen -- */

static void each_key_has_one_meaning(void)
{
	char seen[512] = "";

	for (size_t i = 0; i < gn_top_n_keys; i++)
		for (size_t j = 0; j < 3 && gn_top_keys[i].code[j]; j++)
			TEST_ASSERT_EQUAL_INT(0, seen[gn_top_keys[i].code[j]]++);
	for (size_t i = 0; i < gn_top_n_columns; i++)
		TEST_ASSERT_EQUAL_INT(0, seen[(unsigned char)gn_top_columns[i].letter]++);
}

/* Returns the text of gantry(1); the caller frees it. */
static char *page(void)
{
	static const char name[] = TEST_SRCDIR "/../man/gantry.1";
	char *text = calloc(1, 1 << 20);
	FILE *f = fopen(name, "r");

	TEST_ASSERT_NOT_NULL_MESSAGE(f, name);
	TEST_ASSERT_TRUE(fread(text, 1, (1 << 20) - 1, f) > 0);
	fclose(f);
	return text;
}

static void the_manual_page_has_each_key_and_column(void)
{
	char *text = page(), item[256];

	for (size_t i = 0; i < gn_top_n_keys; i++) {
		const char *label = gn_top_keys[i].label, *quote = strchr(label, ' ') ? "\"" : "";

		snprintf(item, sizeof(item), "\n.It Ic %s%s%s%s Ta %s\n", quote,
			 *label == '-' ? "\\" : "", label, quote, gn_top_keys[i].help);
		TEST_ASSERT_NOT_NULL_MESSAGE(strstr(text, item), item);
	}
	for (size_t i = 0; i < gn_top_n_columns; i++) {
		snprintf(item, sizeof(item), "\n.It Ic %c Ta %s Ta %s\n", gn_top_columns[i].letter,
			 gn_top_columns[i].title, gn_top_columns[i].help);
		TEST_ASSERT_NOT_NULL_MESSAGE(strstr(text, item), item);
	}
	free(text);
}

static void the_screen_fits_each_size(void)
{
	report(TWO("1000", "2000"));
	for (unsigned width = 1; width < 300; width++)
		for (unsigned height = 1; height < 40; height += 3) {
			gn_top_draw(&m, width, height, &screen);
			TEST_ASSERT_TRUE(screen.n <= height);
			for (size_t i = 0; i < screen.n; i++)
				TEST_ASSERT_TRUE(strlen(line(i)) <= width);
		}
	gn_top_draw(&m, 39, 20, &screen);
	TEST_ASSERT_EQUAL_INT(1, screen.n);
	TEST_ASSERT_EQUAL_STRING("40x10 needed", line(0));
	gn_top_draw(&m, 40, 10, &screen);
	TEST_ASSERT_EQUAL_STRING("ROLE                  IOPS    BYTES/S", line(2));
	TEST_ASSERT_EQUAL_STRING("store                 1000          -", line(3));
	TEST_ASSERT_EQUAL_STRING("  >disk                  -          -", line(6));
	gn_top_draw(&m, 0, 0, &screen);
	TEST_ASSERT_EQUAL_STRING("    PID ROLE              KIND          IOPS    BYTES/S"
				 "      P50      P99    P99.9 FLIGHT CREDIT SHARES      "
				 "   ERR   CPU/IO STATE",
				 line(2));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(rates_are_those_between_two_reports);
	RUN_TEST(a_session_of_a_server_has_rates_and_latency);
	RUN_TEST(latency_and_errors_are_those_between_two_reports);
	RUN_TEST(shares_are_what_each_part_adds);
	RUN_TEST(a_process_that_started_again_counts_from_its_start);
	RUN_TEST(an_io_counts_once_in_the_totals);
	RUN_TEST(a_process_that_does_not_answer_stays);
	RUN_TEST(a_process_that_ends_is_named);
	RUN_TEST(only_one_role);
	RUN_TEST(strange_reports_are_survived);
	RUN_TEST(names_cannot_control_the_terminal);
	RUN_TEST(rows_are_sorted_by_any_column);
	RUN_TEST(lanes_can_be_shown);
	RUN_TEST(the_selection_follows_its_row);
	RUN_TEST(a_session_can_be_opened);
	RUN_TEST(a_long_text_scrolls);
	RUN_TEST(a_long_list_scrolls_to_the_selection);
	RUN_TEST(a_pause_keeps_the_rows);
	RUN_TEST(the_interval_has_limits);
	RUN_TEST(each_key_has_one_meaning);
	RUN_TEST(the_manual_page_has_each_key_and_column);
	RUN_TEST(the_screen_fits_each_size);
	return UNITY_END();
}
