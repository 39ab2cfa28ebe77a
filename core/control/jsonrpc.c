/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/jsonrpc.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/report.h"

json_t *gn_rpc_fail(struct gn_rpc_error *error, enum gn_rpc_code code, const char *fmt, ...)
{
	va_list args;

	error->code = code;
	va_start(args, fmt);
	vsnprintf(error->text, sizeof(error->text), fmt, args);
	va_end(args);
	return NULL;
}

/* -- rpc.discover -- */

/* Parse a schema of the table. `{}`, which any value matches, replaces an omitted one. */
static json_t *schema(const char *text)
{
	return json_loads(text ? text : "{}", 0, NULL);
}

/* List the params of a method: OpenRPC has a schema for each, not for the object. */
static json_t *params_list(const struct gn_rpc_method *method)
{
	json_t *object = schema(method->params), *list = json_array(), *row;
	const json_t *required = json_object_get(object, "required");
	const char *name;
	size_t i;

	json_object_foreach (json_object_get(object, "properties"), name, row) {
		bool mandatory = false;
		json_t *word;

		json_array_foreach ((json_t *)required, i, word)
			mandatory |= !strcmp(json_string_value(word), name);
		json_array_append_new(list, json_pack("{ss sb sO}", "name", name, "required",
						      mandatory, "schema", row));
	}
	json_decref(object);
	return list;
}

static json_t *discover(const struct gn_rpc_method *methods)
{
	json_t *list = json_array();

	for (; methods->name; methods++)
		json_array_append_new(list, json_pack("{ss ss ss so s{ss so}}", "name",
						      methods->name, "summary", methods->help,
						      "paramStructure", "by-name", "params",
						      params_list(methods), "result", "name",
						      "result", "schema", schema(methods->result)));
	return json_pack("{ss s{ss ss} so}", "openrpc", "1.3.2", "info", "title", "gantry control",
			 "version", "1", "methods", list);
}

/* -- requests -- */

static json_t *find_and_call(const struct gn_rpc_method *methods, void *arg, const char *name,
			     const json_t *params, struct gn_rpc_error *error)
{
	const struct gn_rpc_method *m = methods;

	if (!strcmp(name, "rpc.discover"))
		return discover(methods);
	while (m->name && strcmp(m->name, name) != 0)
		m++;
	if (!m->name)
		return gn_rpc_fail(error, GN_RPC_METHOD,
				   "unknown method; rpc.discover lists the methods");
	if (!m->params && json_object_size(params))
		return gn_rpc_fail(error, GN_RPC_PARAMS, "%s: the method has no params", name);
	return m->call(arg, params, error);
}

/* True if the request is well-formed: version, method, params and id have valid types. */
static bool is_request(const json_t *request)
{
	const char *version = json_string_value(json_object_get(request, "jsonrpc"));
	const json_t *id = json_object_get(request, "id");

	return version && !strcmp(version, "2.0") &&
	       json_is_string(json_object_get(request, "method")) &&
	       (!id || json_is_string(id) || json_is_number(id) || json_is_null(id));
}

/* Answer one request. Returns NULL for a notification. */
static json_t *answer_one(const struct gn_rpc_method *methods, void *arg, const json_t *request)
{
	struct gn_rpc_error error = {0};
	json_t *params = json_object_get(request, "params"), *result = NULL;
	json_t *id = json_object_get(request, "id"), *none = json_object();

	if (!is_request(request)) {
		id = NULL;
		gn_rpc_fail(
			&error, GN_RPC_REQUEST,
			"not a request of JSON-RPC 2.0: jsonrpc, method or id is missing or invalid");
	} else if (params && !json_is_object(params)) {
		gn_rpc_fail(&error, GN_RPC_PARAMS, "params is not an object");
	} else {
		result = find_and_call(methods, arg,
				       json_string_value(json_object_get(request, "method")),
				       params ? params : none, &error);
	}
	json_decref(none);
	if (is_request(request) && !id) {
		json_decref(result);
		return NULL;
	}
	if (!result && !error.code)
		gn_rpc_fail(&error, GN_RPC_INTERNAL, "out of memory");
	return result ? json_pack("{ss sO so}", "jsonrpc", "2.0", "id", id, "result", result)
		      : json_pack("{ss sO s{si so}}", "jsonrpc", "2.0", "id", id ? id : json_null(),
				  "error", "code", error.code, "message",
				  gn_report_string(error.text));
}

static json_t *answer_batch(const struct gn_rpc_method *methods, void *arg, const json_t *batch)
{
	json_t *list = json_array(), *request;
	size_t i;

	json_array_foreach ((json_t *)batch, i, request) {
		json_t *response = answer_one(methods, arg, request);

		if (response)
			json_array_append_new(list, response);
	}
	if (json_array_size(list))
		return list;
	json_decref(list);
	return NULL;
}

/* Make the response for a text that is not a request or a batch. */
static json_t *reject(enum gn_rpc_code code, const char *text)
{
	return json_pack("{ss sn s{si ss}}", "jsonrpc", "2.0", "id", "error", "code", code,
			 "message", text);
}

static json_t *answer(const struct gn_rpc_method *methods, void *arg, const char *text,
		      size_t length, size_t *n_p)
{
	json_error_t where;
	json_t *request = json_loadb(text, length, JSON_REJECT_DUPLICATES, &where), *response;
	char message[sizeof(where.text) + 64];

	*n_p = 1;
	if (!request) {
		snprintf(message, sizeof(message), "not JSON (column=%d): %s", where.column,
			 where.text);
		return reject(GN_RPC_PARSE, message);
	}
	*n_p = json_is_array(request) ? json_array_size(request) : 1;
	if (!json_is_array(request))
		response = answer_one(methods, arg, request);
	else if (json_array_size(request) && json_array_size(request) <= GN_RPC_BATCH_MAX)
		response = answer_batch(methods, arg, request);
	else
		response = reject(GN_RPC_REQUEST, "a batch has 1 to 16 requests");
	json_decref(request);
	return response;
}

char *gn_rpc_answer(const struct gn_rpc_method *methods, void *arg, const char *text, size_t length,
		    size_t *n_p)
{
	json_t *response = answer(methods, arg, text, length, n_p);
	char *line = response ? json_dumps(response, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
	size_t n = line ? strlen(line) : 0;
	char *ended = line ? realloc(line, n + 2) : NULL;

	json_decref(response);
	if (!ended) {
		free(line);
		return NULL;
	}
	memcpy(ended + n, "\n", 2);
	return ended;
}
