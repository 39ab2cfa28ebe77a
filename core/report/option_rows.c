/* SPDX-License-Identifier: BSD-3-Clause */
/* option_rows.c - tables of options as JSON */
#include "report/report.h"

static const char *const type_names[] = {
	[GANTRY_OPT_STRING] = "string", [GANTRY_OPT_BOOL] = "bool", [GANTRY_OPT_INT] = "int",
	[GANTRY_OPT_SIZE] = "size",     [GANTRY_OPT_TIME] = "time", [GANTRY_OPT_CHOICE] = "choice",
	[GANTRY_OPT_GROUP] = "group",
};

json_t *gn_options_json(const struct gantry_option *options)
{
	json_t *list = json_array();

	for (const struct gantry_option *o = options; o && o->name; o++) {
		json_t *row = json_pack("{ss ss so* so*}", "name", o->name, "type",
					type_names[gantry_option_type(o)], "default",
					o->dflt ? gn_report_string(o->dflt) : NULL, "help",
					o->help ? gn_report_string(o->help) : NULL);

		if (o->type & GANTRY_OPT_CHANGEABLE)
			json_object_set_new(row, "changeable", json_true());
		if (gantry_option_type(o) == GANTRY_OPT_GROUP)
			json_object_set_new(row, "options", gn_options_json(o->group));
		if (gantry_option_type(o) != GANTRY_OPT_STRING && (o->min || o->max)) {
			json_object_set_new(row, "min", json_integer(o->min));
			if (o->max >= o->min)
				json_object_set_new(row, "max", json_integer(o->max));
		}
		if (gantry_option_type(o) == GANTRY_OPT_CHOICE) {
			json_t *words = json_array();

			for (const char *const *word = o->choices; *word; word++)
				json_array_append_new(words, json_string(*word));
			json_object_set_new(row, "choices", words);
		}
		json_array_append_new(list, row);
	}
	return list;
}
