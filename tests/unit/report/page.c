/* SPDX-License-Identifier: BSD-3-Clause */
/* The page of a run: its data, the escapes, and what the drawings show. */
#include "report/page.h"

#include <stdlib.h>
#include <string.h>

#include "unity.h"

#define EVIL "</script><b onclick='x'>&\\u001b"

void setUp(void)
{
}

void tearDown(void)
{
}

/* JSON with ' instead of ", except in EVIL */
static const char page_text[] =
	"{`schema`: 1, `report`: {`config`: `" EVIL "`, `result`: `ok`, `elapsed_ns`: 2000000000,"
	"`cpu_ns`: 1, `roles`: {`" EVIL "`: {`role`: `" EVIL "`,"
	"`reads`: {`latency`: {`count`: 4, `p50_ns`: 1023, `p99_ns`: 1151, `p99_9_ns`: 1151,"
	"`max_ns`: 1151, `buckets`: [1023, 3, 1151, 1]}},"
	"`hops`: {`gateway`: {`count`: 4, `mean_ns`: 400, `p50_ns`: 1, `p99_ns`: 1},"
	"`target`: {`count`: 4, `mean_ns`: 300, `p50_ns`: 1, `p99_ns`: 1},"
	"`backend`: {`count`: 4, `mean_ns`: 100, `p50_ns`: 1, `p99_ns`: 1},"
	"`link`: {`count`: 4, `mean_ns`: 600, `p50_ns`: 1, `p99_ns`: 1}},"
	"`stages`: [{`type`: `" EVIL "`, `own_time_share`: 0.25, `own_time`: {`count`: 4,"
	"`mean_ns`: 90, `p50_ns`: 80, `p99_ns`: 99, `buckets`: [95, 4]}}],"
	"`connect`: {`own_time_share`: 0.75, `own_time`: {`count`: 0}},"
	"`counters`: {`" EVIL "`: 7, `silent`: 0}}}, `devices`: {}},"
	"`samples`: {`interval_ns`: 1000000000, `roles`: {`" EVIL "`: ["
	"{`start_ns`: 0, `end_ns`: 1000000000, `iops`: 1000, `bytes_per_second`: 4096,"
	"`p50_ns`: 1000, `p99_ns`: 2000, `p99_9_ns`: 4000, `errors`: 0},"
	"{`start_ns`: 1000000000, `end_ns`: 2000000000, `iops`: 4000, `bytes_per_second`: 2048,"
	"`p50_ns`: 0, `p99_ns`: 0, `p99_9_ns`: 0, `errors`: 0}]}},"
	"`topology`: {`devices`: {`wire`: {`transport`: `" EVIL "`}},"
	"`roles`: {`" EVIL "`: {`role`: `" EVIL "`, `lanes`: 1, `here`: true, `stages`: [`" EVIL
	"`],"
	"`connects`: [{`service`: `" EVIL "`, `device`: `wire`, `to`: `store`},"
	"{`service`: `elsewhere`, `device`: `wire`, `to`: null}]},"
	"`store`: {`role`: `target`, `lanes`: 1, `here`: false, `connects`: [], `stages`: [],"
	"`listen`: {`service`: `" EVIL "`, `device`: `wire`}, `backend`: `memory`}}},"
	"`config`: `name = \\`" EVIL "\\`;\\n`, `machine`: {`cpu`: `" EVIL "`, `cores`: 4}}";

/* Returns the page tree, which the caller owns. */
static json_t *tree(void)
{
	char text[sizeof(page_text)];
	json_error_t error;
	json_t *page;

	strcpy(text, page_text);
	for (char *c = text; *c; c++)
		*c = *c == '`' ? '"' : *c;
	page = json_loads(text, 0, &error);
	TEST_ASSERT_NOT_NULL_MESSAGE(page, error.text);
	return page;
}

/* Returns the page, which the caller frees. */
static char *html(const json_t *page)
{
	char *out = NULL;
	size_t n;
	FILE *f = open_memstream(&out, &n);

	TEST_ASSERT_EQUAL_INT(0, gn_page_print(f, page));
	fclose(f);
	return out;
}

static unsigned count(const char *text, const char *word)
{
	unsigned n = 0;

	for (; (text = strstr(text, word)); text += strlen(word))
		n++;
	return n;
}

static void has(const char *out, const char *text)
{
	if (!strstr(out, text))
		TEST_FAIL_MESSAGE(text);
}

static void the_data_is_the_tree(void)
{
	json_t *page = tree(), *read;
	char *out = html(page), *start = strstr(out, "id=\"data\">"), *end;

	TEST_ASSERT_NOT_NULL(start);
	start = strchr(start, '{');
	end = strstr(start, "</script>");
	TEST_ASSERT_NOT_NULL(end);
	read = json_loadb(start, (size_t)(end - start), 0, NULL);
	TEST_ASSERT_TRUE(json_equal(page, read));
	json_decref(read);
	json_decref(page);
	free(out);
}

static void no_text_becomes_an_element(void)
{
	json_t *page = tree();
	char *out = html(page);

	TEST_ASSERT_EQUAL_UINT(1, count(out, "<script"));
	TEST_ASSERT_EQUAL_UINT(1, count(out, "</script"));
	TEST_ASSERT_EQUAL_UINT(0, count(out, "<b onclick"));
	TEST_ASSERT_EQUAL_UINT(0, count(out, "\x1b"));
	has(out, "&lt;/script&gt;&lt;b onclick=&#39;x&#39;&gt;&amp;?");
	json_decref(page);
	free(out);
}

static void nothing_comes_from_outside(void)
{
	static const char *const words[] = {
		"http:", "https:", " src=", " href=", "url(h", "@import", "<link", "<img"};
	json_t *page = tree();
	char *out = html(page);

	for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		TEST_ASSERT_EQUAL_UINT_MESSAGE(0, count(out, words[i]), words[i]);
	has(out, "default-src 'none'");
	json_decref(page);
	free(out);
}

static void the_hops_share_the_latency(void)
{
	json_t *page = tree();
	char *out = html(page);

	/* of 1000 ns: link 600, gateway 400 - 300, target 300 - 100, backend 100 */
	has(out, "data-key=\"link\" x=\"0.00\" y=\"2\" width=\"516.00\"");
	has(out, "data-key=\"gateway\" x=\"516.00\" y=\"2\" width=\"86.00\"");
	has(out, "data-key=\"target\" x=\"602.00\" y=\"2\" width=\"172.00\"");
	has(out, "data-key=\"backend\" x=\"774.00\" y=\"2\" width=\"86.00\"");
	TEST_ASSERT_EQUAL_UINT(0, count(out, "data-key=\"data\""));
	json_decref(page);
	free(out);
}

static void the_stages_share_the_time_of_the_chain(void)
{
	json_t *page = tree();
	char *out = html(page);

	has(out, "<h2>Time of each stage</h2>");
	has(out, "data-key=\"0\" x=\"0.00\" y=\"2\" width=\"215.00\"");
	has(out, "data-key=\"connect\" x=\"215.00\" y=\"2\" width=\"645.00\"");
	has(out, "<td>80ns</td><td>99ns</td><td>90ns</td><td>25.0 %</td>");
	TEST_ASSERT_EQUAL_UINT(1, count(out, "data-chart=\"own-time-histogram\""));
	json_decref(page);
	free(out);
}

static void the_series_have_steps_and_gaps(void)
{
	json_t *page = tree();
	char *out = html(page);

	/* 0 to 4000 at y 162 to 10, 0 to 2 s at x 84 to 824 */
	has(out, "data-key=\"iops\" d=\"M84.0 124.0H454.0V10.0H824.0\"");
	has(out, "data-key=\"bytes_per_second\" d=\"M84.0 10.0H454.0V86.0H824.0\"");
	has(out, "data-key=\"p50_ns\" d=\"M84.0 162.0H454.0\"");
	TEST_ASSERT_EQUAL_UINT(0, count(out, "data-chart=\"errors\""));
	json_decref(page);
	free(out);
}

static void the_topology_has_roles_and_connects(void)
{
	json_t *page = tree();
	char *out = html(page);

	TEST_ASSERT_EQUAL_UINT(3, count(out, "<g class=\"role\">"));
	TEST_ASSERT_EQUAL_UINT(2, count(out, "<rect class=\"box away\""));
	TEST_ASSERT_EQUAL_UINT(2, count(out, "<g class=\"connect\">"));
	has(out, ">backend memory</text>");
	has(out, ">in another configuration</text>");
	json_decref(page);
	free(out);
}

static void the_counters_that_are_not_zero_have_a_row(void)
{
	json_t *page = tree();
	char *out = html(page), *table = strstr(out, "<table id=\"counters\">");

	TEST_ASSERT_NOT_NULL(table);
	*strstr(table, "</table>") = '\0';
	TEST_ASSERT_EQUAL_UINT(2, count(table, "<tr>"));
	has(table, "</td><td>7</td>");
	json_decref(page);
	free(out);
}

static void a_page_without_values_has_no_drawings(void)
{
	json_t *page = json_object();
	char *out = html(page);

	TEST_ASSERT_EQUAL_UINT(0, count(out, "data-chart"));
	has(out, "</html>");
	json_decref(page);
	free(out);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(the_data_is_the_tree);
	RUN_TEST(no_text_becomes_an_element);
	RUN_TEST(nothing_comes_from_outside);
	RUN_TEST(the_hops_share_the_latency);
	RUN_TEST(the_stages_share_the_time_of_the_chain);
	RUN_TEST(the_series_have_steps_and_gaps);
	RUN_TEST(the_topology_has_roles_and_connects);
	RUN_TEST(the_counters_that_are_not_zero_have_a_row);
	RUN_TEST(a_page_without_values_has_no_drawings);
	return UNITY_END();
}
