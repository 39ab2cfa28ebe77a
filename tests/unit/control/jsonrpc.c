/* SPDX-License-Identifier: BSD-3-Clause */
/* The dispatcher of JSON-RPC 2.0: the cases of the specification, and the OpenRPC document */
#include <stdlib.h>
#include <string.h>

#include "control/jsonrpc.h"
#include "unity.h"

static unsigned n_calls;
static size_t n_requests; /* requests of the last text */

static json_t *call_subtract(void *arg, const json_t *params, struct gn_rpc_error *error)
{
	const json_t *from = json_object_get(params, "from"), *n = json_object_get(params, "n");

	TEST_ASSERT_EQUAL_PTR(&n_calls, arg);
	n_calls++;
	if (!json_is_integer(from) || !json_is_integer(n))
		return gn_rpc_fail(error, GN_RPC_PARAMS, "subtract: give from and n");
	return json_integer(json_integer_value(from) - json_integer_value(n));
}

static json_t *call_nothing(void *arg, const json_t *params, struct gn_rpc_error *error)
{
	(void)arg;
	(void)params;
	(void)error;
	return NULL;
}

static const struct gn_rpc_method methods[] = {
	{"subtract", "Subtract.",
	 "{\"type\":\"object\",\"required\":[\"from\"],\"properties\":{\"from\":{\"type\":\"integer\"},"
	 "\"n\":{\"type\":\"integer\"}}}",
	 "{\"type\":\"integer\"}", call_subtract},
	{"nothing", "Fail.", NULL, "{}", call_nothing},
	{NULL, NULL, NULL, NULL, NULL},
};

void setUp(void)
{
	n_calls = 0;
}

void tearDown(void)
{
}

/* Compare the response with the expected JSON; NULL: there is none. */
static void answers(const char *request, const char *expected)
{
	char *text = gn_rpc_answer(methods, &n_calls, request, strlen(request), &n_requests);
	json_t *got, *want;

	if (!expected) {
		TEST_ASSERT_NULL(text);
		return;
	}
	TEST_ASSERT_NOT_NULL(text);
	TEST_ASSERT_TRUE(text[strlen(text) - 1] == '\n');
	TEST_ASSERT_NULL(strchr(strchr(text, '\n') + 1, '\n'));
	got = json_loads(text, 0, NULL);
	want = json_loads(expected, 0, NULL);
	TEST_ASSERT_NOT_NULL_MESSAGE(want, expected);
	TEST_ASSERT_TRUE_MESSAGE(json_equal(got, want), text);
	json_decref(got);
	json_decref(want);
	free(text);
}

/* Compare the code of the error. */
static void fails(const char *request, int code)
{
	char *text = gn_rpc_answer(methods, &n_calls, request, strlen(request), &n_requests);
	json_t *got = json_loads(text, 0, NULL), *error = json_object_get(got, "error");

	TEST_ASSERT_EQUAL_INT_MESSAGE(code, json_integer_value(json_object_get(error, "code")),
				      text);
	TEST_ASSERT_TRUE(*json_string_value(json_object_get(error, "message")) != '\0');
	TEST_ASSERT_NOT_NULL(json_object_get(got, "id"));
	json_decref(got);
	free(text);
}

#define CALL(id, from) \
	"{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"subtract\",\"params\":{\"from\":" from \
	",\"n\":2}}"
#define NOTE "{\"jsonrpc\":\"2.0\",\"method\":\"subtract\",\"params\":{\"from\":1,\"n\":2}}"

static void call_has_its_result_and_its_id(void)
{
	answers(CALL("7", "44"), "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":42}");
	answers(CALL("\"a\"", "2"), "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"result\":0}");
	answers(CALL("null", "2"), "{\"jsonrpc\":\"2.0\",\"id\":null,\"result\":0}");
}

static void notification_is_run_and_has_no_response(void)
{
	answers(NOTE, NULL);
	answers("[" NOTE "," NOTE "]", NULL);
	TEST_ASSERT_EQUAL_UINT(3, n_calls);
}

static void batch_has_a_response_for_each_call(void)
{
	answers("[" CALL("1", "3") "," NOTE ",7," CALL("2", "4") "]",
		"[{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":1},"
		"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32600,\"message\":"
		"\"not a request of JSON-RPC 2.0: jsonrpc, method or id is missing or invalid\"}},"
		"{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":2}]");
	TEST_ASSERT_EQUAL_UINT(3, n_calls);
	TEST_ASSERT_EQUAL_size_t(4, n_requests);
	fails("[]", GN_RPC_REQUEST);
	fails("[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", GN_RPC_REQUEST);
}

static void invalid_requests_have_the_codes_of_the_specification(void)
{
	fails("", GN_RPC_PARSE);
	fails("{\"jsonrpc\"", GN_RPC_PARSE);
	fails("{\"a\":1,\"a\":1}", GN_RPC_PARSE);
	fails("{}", GN_RPC_REQUEST);
	fails("{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"nothing\"}", GN_RPC_REQUEST);
	fails("{\"jsonrpc\":\"2.0\",\"id\":[],\"method\":\"nothing\"}", GN_RPC_REQUEST);
	fails("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":5}", GN_RPC_REQUEST);
	fails("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"none\"}", GN_RPC_METHOD);
	fails("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"subtract\"}", GN_RPC_PARAMS);
	fails("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"subtract\",\"params\":[1,2]}",
	      GN_RPC_PARAMS);
	fails("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"nothing\",\"params\":{\"a\":1}}",
	      GN_RPC_PARAMS);
	fails("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"nothing\"}", GN_RPC_INTERNAL);
}

static void discover_lists_the_methods_with_their_schemas(void)
{
	static const char request[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"rpc.discover\"}";
	char *text = gn_rpc_answer(methods, &n_calls, request, strlen(request), &n_requests);
	json_t *got = json_loads(text, 0, NULL), *params;
	const char *version, *name, *type;
	int required;

	TEST_ASSERT_EQUAL_INT(0, json_unpack(got, "{s{ss s[{ss so s{s{ss}}}, {}!]}}", "result",
					     "openrpc", &version, "methods", "name", &name,
					     "params", &params, "result", "schema", "type", &type));
	TEST_ASSERT_EQUAL_STRING("subtract", name);
	TEST_ASSERT_EQUAL_STRING("integer", type);
	TEST_ASSERT_EQUAL_size_t(2, json_array_size(params));
	json_unpack(json_array_get(params, 0), "{ss sb}", "name", &name, "required", &required);
	TEST_ASSERT_EQUAL_STRING("from", name);
	TEST_ASSERT_TRUE(required);
	json_unpack(json_array_get(params, 1), "{ss sb}", "name", &name, "required", &required);
	TEST_ASSERT_EQUAL_STRING("n", name);
	TEST_ASSERT_FALSE(required);
	json_decref(got);
	free(text);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(call_has_its_result_and_its_id);
	RUN_TEST(notification_is_run_and_has_no_response);
	RUN_TEST(batch_has_a_response_for_each_call);
	RUN_TEST(invalid_requests_have_the_codes_of_the_specification);
	RUN_TEST(discover_lists_the_methods_with_their_schemas);
	return UNITY_END();
}
