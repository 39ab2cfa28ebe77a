/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/control_methods.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

/* The schema of a list of differences. */
#define DIFFERENCES \
	"{\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":[\"path\",\"from\",\"to\"]," \
	"\"properties\":{\"path\":{\"type\":\"string\"},\"from\":{\"type\":\"string\"}," \
	"\"to\":{\"type\":\"string\"}}}}"

static json_t *call_stat(void *arg, const json_t *params, struct gn_rpc_error *error)
{
	struct gn_controlled *controlled = arg;
	struct gn_report report;
	json_t *tree = json_incref(controlled->report(controlled->arg, &report));

	(void)params;
	gn_report_fini(&report);
	return tree ? tree : gn_rpc_fail(error, GN_RPC_INTERNAL, "out of memory");
}

static json_t *call_config(void *arg, const json_t *params, struct gn_rpc_error *error)
{
	const struct gn_controlled *controlled = arg;
	char *text = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&text, &n);
	json_t *result = NULL;

	(void)params;
	if (out) {
		gn_config_dump(gn_live_config(&controlled->live), out);
		if (fclose(out) == 0)
			result = json_pack("{so so}", "path", gn_report_string(controlled->path),
					   "text", gn_report_string(text));
	}
	free(text);
	return result ? result : gn_rpc_fail(error, GN_RPC_INTERNAL, "out of memory");
}

/* -- options -- */

static void add_option(void *arg, const char *path, const struct gantry_option *row,
		       const char *value)
{
	json_t *list = arg, *described;
	const struct gantry_option table[] = {*row, GANTRY_OPTION_END};

	described = gn_options_json(table);
	if (json_array_size(described)) {
		json_t *option = json_array_get(described, 0);

		json_object_del(option, "name");
		json_object_set_new(option, "path", gn_report_string(path));
		json_object_set_new(option, "value", gn_report_string(value));
		json_array_append(list, option);
	}
	json_decref(described);
}

static json_t *call_options(void *arg, const json_t *params, struct gn_rpc_error *error)
{
	const struct gn_controlled *controlled = arg;
	json_t *list = json_array();

	(void)params;
	(void)error;
	gn_live_each_option(&controlled->live, add_option, list);
	return json_pack("{so}", "options", list);
}

/* -- set and reload -- */

struct differences {
	json_t *changed, *kept;
	bool logs_kept; /* log also what cannot change */
};

static void log_difference(void *arg, bool is_changed, const char *path, const char *from,
			   const char *to)
{
	(void)arg;
	if (is_changed)
		gn_log(GN_LOG_WARN, "control", "%s: changed (from=%s, to=%s)", path, from, to);
	else
		gn_log(GN_LOG_WARN, "control",
		       "%s: cannot change while the process runs (from=%s, to=%s): restart the process",
		       path, from, to);
}

static void add_difference(void *arg, bool is_changed, const char *path, const char *from,
			   const char *to)
{
	struct differences *d = arg;

	if (is_changed || d->logs_kept)
		log_difference(NULL, is_changed, path, from, to);
	json_array_append_new(is_changed ? d->changed : d->kept,
			      json_pack("{so so so}", "path", gn_report_string(path), "from",
					gn_report_string(from), "to", gn_report_string(to)));
}

/* Join all messages to one error. */
static json_t *fail_errs(struct gn_rpc_error *error, int rc, struct gn_errs *errs)
{
	char text[sizeof(error->text)] = "";
	size_t n = 0;

	for (size_t i = 0; i < gn_errs_kept(errs) && n < sizeof(text); i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", i ? "; " : "",
				      errs->text[i]);
	gn_errs_fini(errs);
	return gn_rpc_fail(error,
			   rc == -ENOMEM   ? GN_RPC_INTERNAL
			   : rc == -EINVAL ? GN_RPC_PARAMS
					   : GN_RPC_REFUSED,
			   "%s", text[0] ? text : strerror(-rc));
}

/* Write the value of `set` as an override has it. Returns NULL for an unsupported type. */
static char *override_of(const char *path, const json_t *value)
{
	char *text = NULL;
	int n = -1;

	if (json_is_string(value))
		n = asprintf(&text, "%s=\"%s\"", path, json_string_value(value));
	else if (json_is_boolean(value))
		n = asprintf(&text, "%s=%s", path, json_is_true(value) ? "true" : "false");
	else if (json_is_integer(value))
		n = asprintf(&text, "%s=%lld", path, (long long)json_integer_value(value));
	return n < 0 ? NULL : text;
}

static json_t *call_set(void *arg, const json_t *params, struct gn_rpc_error *error)
{
	struct gn_controlled *controlled = arg;
	const json_t *path = json_object_get(params, "path"),
		     *value = json_object_get(params, "value");
	struct differences d = {0};
	struct gn_errs errs = {0};
	char *set;
	int rc;

	if (!json_is_string(path) || !value || json_object_size(params) != 2)
		return gn_rpc_fail(
			error, GN_RPC_PARAMS,
			"set: path (a string) or value is missing, or there are other params: write set runtime.log debug");
	set = override_of(json_string_value(path), value);
	if (!set)
		return gn_rpc_fail(error, GN_RPC_PARAMS,
				   "set: value is not a string, an integer or a boolean");
	d = (struct differences){json_array(), json_array(), false};
	controlled->live.on_difference = add_difference;
	controlled->live.arg = &d;
	rc = gn_live_set(&controlled->live, set, &errs);
	free(set);
	json_decref(d.kept);
	if (rc == 0)
		return json_pack("{so}", "changed", d.changed);
	json_decref(d.changed);
	return fail_errs(error, rc, &errs);
}

static json_t *call_reload(void *arg, const json_t *params, struct gn_rpc_error *error)
{
	struct gn_controlled *controlled = arg;
	struct differences d = {json_array(), json_array(), true};
	struct gn_errs errs = {0};
	int rc;

	(void)params;
	controlled->live.on_difference = add_difference;
	controlled->live.arg = &d;
	rc = gn_live_reload(&controlled->live, &errs);
	if (rc == 0)
		return json_pack("{so so}", "changed", d.changed, "kept", d.kept);
	json_decref(d.changed);
	json_decref(d.kept);
	fail_errs(error, rc, &errs);
	if (error->code == GN_RPC_PARAMS) /* of the file, not of the request */
		error->code = GN_RPC_REFUSED;
	return NULL;
}

void gn_control_reload(struct gn_controlled *controlled)
{
	struct gn_errs errs = {0};

	controlled->live.on_difference = log_difference;
	if (gn_live_reload(&controlled->live, &errs) == 0)
		gn_log(GN_LOG_INFO, "control", "configuration reloaded (file=%s)",
		       controlled->path);
	for (size_t i = 0; i < gn_errs_kept(&errs); i++)
		gn_log(GN_LOG_ERROR, "control", "reload: nothing is changed: %s", errs.text[i]);
	gn_errs_fini(&errs);
}

static json_t *call_drain(void *arg, const json_t *params, struct gn_rpc_error *error)
{
	struct gn_controlled *controlled = arg;

	(void)params;
	(void)error;
	controlled->drain(controlled->arg);
	return json_object();
}

const struct gn_rpc_method gn_control_methods[] = {
	{"stat", "Return the report of the process.", NULL, "{\"type\":\"object\"}", call_stat},
	{"config", "Return the configuration with all overrides and changes.", NULL,
	 "{\"type\":\"object\",\"required\":[\"path\",\"text\"],\"properties\":{"
	 "\"path\":{\"type\":\"string\"},\"text\":{\"type\":\"string\"}}}",
	 call_config},
	{"options", "List the options that can change while the process runs.", NULL,
	 "{\"type\":\"object\",\"required\":[\"options\"],\"properties\":{\"options\":{\"type\":\"array\","
	 "\"items\":{\"type\":\"object\",\"required\":[\"path\",\"type\",\"value\"]}}}}",
	 call_options},
	{"set", "Change an option.",
	 "{\"type\":\"object\",\"required\":[\"path\",\"value\"],\"properties\":{"
	 "\"path\":{\"type\":\"string\"},\"value\":{\"type\":[\"string\",\"integer\",\"boolean\"]}}}",
	 "{\"type\":\"object\",\"required\":[\"changed\"],\"properties\":{\"changed\":" DIFFERENCES
	 "}}",
	 call_set},
	{"reload", "Read the configuration file again, and change the options that can change.",
	 NULL,
	 "{\"type\":\"object\",\"required\":[\"changed\",\"kept\"],\"properties\":{\"changed\":" DIFFERENCES
	 ",\"kept\":" DIFFERENCES "}}",
	 call_reload},
	{"drain", "Accept no more sessions, and end each role that listens after its last session.",
	 NULL, "{\"type\":\"object\"}", call_drain},
	{NULL, NULL, NULL, NULL, NULL},
};
