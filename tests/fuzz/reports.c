/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reports.c - gantry stat and gantry top from any two lists of reports, with a newline between
 * them: each line of a screen fits, and is printable.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/stat_metrics.h"
#include "report/stat_table.h"
#include "top/top_keys.h"
#include "top/top_screen.h"
#include "fuzz/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Returns a list: the text, or an empty list. */
static json_t *list_of(const char *text, size_t size)
{
	json_t *tree = json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL);

	if (json_is_array(tree))
		return tree;
	json_decref(tree);
	return json_array();
}

static void check_screen(struct gn_top_model *m, struct gn_top_screen *screen, unsigned width,
			 unsigned height)
{
	gn_top_draw(m, width, height, screen);
	require(!height || screen->n == height);
	for (size_t i = 0; i < screen->n; i++) {
		require(!width || strlen(screen->lines[i].text) <= width);
		for (const char *c = screen->lines[i].text; *c; c++)
			require(*c >= ' ' && *c <= '~');
	}
}

static void show(json_t *first, json_t *second)
{
	struct gn_top_screen screen = {0};
	json_t *silent = json_array();
	struct gn_top_model m;

	gn_top_init(&m, "/run", NULL);
	gn_top_update(&m, json_incref(first), silent, 1);
	check_screen(&m, &screen, 0, 0);
	gn_top_update(&m, json_incref(second), silent, 2);
	for (const char *key = "lIBjr\nj\x1b>h"; *key; key++) {
		gn_top_press(&m, *key);
		check_screen(&m, &screen, 80, 24);
	}
	json_decref(silent);
	gn_top_screen_fini(&screen);
	gn_top_fini(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data, *half = size ? memchr(text, '\n', size) : NULL;
	const size_t n = half ? (size_t)(half - text) : size;
	json_t *first = list_of(text, n), *second = list_of(text + n, size - n);
	FILE *out = fopen("/dev/null", "w");

	if (out) {
		gn_stat_print_table(out, second, first, NULL);
		for (int format = 0; format < GN_METRICS_FORMATS; format++)
			gn_stat_print_metrics(out, (enum gn_metrics_format)format, second, first,
					      NULL);
		fclose(out);
	}
	show(first, second);
	json_decref(first);
	json_decref(second);
	return 0;
}
