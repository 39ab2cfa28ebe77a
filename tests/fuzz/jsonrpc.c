/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * jsonrpc.c - requests of the control socket from any bytes: each response is JSON-RPC on one line.
 */
#include "control/jsonrpc.h"
#include "fuzz/require.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static json_t *call_echo(void *arg, const json_t *params, struct gn_rpc_error *error)
{
	(void)arg;
	if (json_object_get(params, "fail"))
		return gn_rpc_fail(error, GN_RPC_REFUSED, "refused");
	return json_incref((json_t *)params);
}

static const struct gn_rpc_method methods[] = {
	{"echo", "Return the params.", "{\"type\":\"object\"}", "{}", call_echo},
	{NULL, NULL, NULL, NULL, NULL},
};

static void look(const json_t *response)
{
	const json_t *result = json_object_get(response, "result"),
		     *error = json_object_get(response, "error");

	require(!strcmp(json_string_value(json_object_get(response, "jsonrpc")), "2.0"));
	require(json_object_get(response, "id") != NULL);
	require((result != NULL) != (error != NULL));
	require(!error || json_integer_value(json_object_get(error, "code")) <= -32000);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t n;
	char *text = gn_rpc_answer(methods, NULL, (const char *)data, size, &n);
	json_t *response, *one;
	size_t i;

	if (!text)
		return 0;
	require(strchr(text, '\n') == text + strlen(text) - 1);
	response = json_loads(text, 0, NULL);
	require(response != NULL);
	if (json_is_object(response))
		look(response);
	json_array_foreach (response, i, one)
		look(one);
	json_decref(response);
	free(text);
	return 0;
}
