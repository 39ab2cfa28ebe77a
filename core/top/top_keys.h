/* SPDX-License-Identifier: BSD-3-Clause */
/* top_keys.h - the keys of gantry top; the help screen and gantry(1) list them */
#ifndef GN_TOP_TOP_KEYS_H
#define GN_TOP_TOP_KEYS_H

#include <stddef.h>

#include "top/top_model.h"

/* Keys without a character. */
enum gn_top_code {
	GN_TOP_KEY_NONE = 0,
	GN_TOP_KEY_ENTER = '\n',
	GN_TOP_KEY_ESCAPE = 0x1b,
	GN_TOP_KEY_BACKSPACE = 0x7f,
	GN_TOP_KEY_UP = 0x100,
	GN_TOP_KEY_DOWN,
	GN_TOP_KEY_LEFT,
	GN_TOP_KEY_RIGHT,
	GN_TOP_KEY_PAGE_UP,
	GN_TOP_KEY_PAGE_DOWN,
	GN_TOP_KEY_HOME,
	GN_TOP_KEY_END,
};

struct gn_top_key {
	const char *label; /* names of the keys, separated by blanks */
	int code[3];       /* 0: no further key */
	void (*run)(struct gn_top_model *m);
	const char *help;
};

extern const struct gn_top_key gn_top_keys[];
extern const size_t gn_top_n_keys;

/* Do what a key is for: a row of the table, or the letter of a column. Other keys are ignored. */
void gn_top_press(struct gn_top_model *m, int code);

#endif
