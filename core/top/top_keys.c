/* SPDX-License-Identifier: BSD-3-Clause */
#include "top/top_keys.h"

#include <limits.h>

#include "top/top_columns.h"

static void up(struct gn_top_model *m)
{
	gn_top_move(m, -1);
}

static void down(struct gn_top_model *m)
{
	gn_top_move(m, 1);
}

static void page_up(struct gn_top_model *m)
{
	gn_top_move(m, -(long)m->page);
}

static void page_down(struct gn_top_model *m)
{
	gn_top_move(m, (long)m->page);
}

static void home(struct gn_top_model *m)
{
	gn_top_move(m, -(long)INT_MAX);
}

static void end(struct gn_top_model *m)
{
	gn_top_move(m, INT_MAX);
}

static void sort_by(struct gn_top_model *m, size_t column)
{
	m->column = column;
	m->reverse = false;
	gn_top_sort(m);
}

static void previous_column(struct gn_top_model *m)
{
	sort_by(m, (m->column + gn_top_n_columns - 1) % gn_top_n_columns);
}

static void next_column(struct gn_top_model *m)
{
	sort_by(m, (m->column + 1) % gn_top_n_columns);
}

static void reverse(struct gn_top_model *m)
{
	m->reverse = !m->reverse;
	gn_top_sort(m);
}

static void lanes(struct gn_top_model *m)
{
	m->lanes_shown = !m->lanes_shown;
	gn_top_sort(m);
}

static void longer(struct gn_top_model *m)
{
	if (m->interval_s < GN_TOP_MAX_INTERVAL_S)
		m->interval_s++;
}

static void shorter(struct gn_top_model *m)
{
	if (m->interval_s > 1)
		m->interval_s--;
}

static void help(struct gn_top_model *m)
{
	if (m->mode == GN_TOP_HELP) {
		gn_top_back(m);
		return;
	}
	m->mode_before_help = m->mode;
	m->mode = GN_TOP_HELP;
	m->first = 0;
}

static void quit(struct gn_top_model *m)
{
	m->quit = true;
}

const struct gn_top_key gn_top_keys[] = {
	{"q", {'q'}, quit, "quit"},
	{"h ?", {'h', '?'}, help, "show these keys, or go back"},
	{"Space", {' '}, gn_top_pause, "pause, or continue"},
	{"Enter Right",
	 {GN_TOP_KEY_ENTER, GN_TOP_KEY_RIGHT},
	 gn_top_open,
	 "show all values of the selected role or session"},
	{"Esc Left Backspace",
	 {GN_TOP_KEY_ESCAPE, GN_TOP_KEY_LEFT, GN_TOP_KEY_BACKSPACE},
	 gn_top_back,
	 "go back to the list"},
	{"Up k", {GN_TOP_KEY_UP, 'k'}, up, "select the row above, or scroll"},
	{"Down j", {GN_TOP_KEY_DOWN, 'j'}, down, "select the row below, or scroll"},
	{"PgUp", {GN_TOP_KEY_PAGE_UP}, page_up, "go one screen up"},
	{"PgDn", {GN_TOP_KEY_PAGE_DOWN}, page_down, "go one screen down"},
	{"Home", {GN_TOP_KEY_HOME}, home, "go to the first row"},
	{"End", {GN_TOP_KEY_END}, end, "go to the last row"},
	{"<", {'<'}, previous_column, "sort by the column to the left"},
	{">", {'>'}, next_column, "sort by the column to the right"},
	{"r", {'r'}, reverse, "reverse the order"},
	{"l", {'l'}, lanes, "show the lanes, or hide them"},
	{"+", {'+'}, longer, "make the interval one second longer"},
	{"-", {'-'}, shorter, "make the interval one second shorter"},
};
const size_t gn_top_n_keys = sizeof(gn_top_keys) / sizeof(gn_top_keys[0]);

void gn_top_press(struct gn_top_model *m, int code)
{
	const size_t column = gn_top_find_column(code);

	for (size_t i = 0; i < gn_top_n_keys && code; i++)
		for (size_t j = 0; j < sizeof(gn_top_keys[i].code) / sizeof(int); j++)
			if (gn_top_keys[i].code[j] == code) {
				gn_top_keys[i].run(m);
				return;
			}
	if (column < gn_top_n_columns)
		sort_by(m, column);
}
