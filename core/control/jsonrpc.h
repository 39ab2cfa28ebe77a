/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * jsonrpc.h - answer requests of JSON-RPC 2.0 by a table of methods
 *
 * A request is one JSON text: an object, or an array of up to GN_RPC_BATCH_MAX objects. Params are
 * passed by name. The method rpc.discover, which every table has implicitly, returns the table as
 * an OpenRPC document.
 */
#ifndef GN_CONTROL_JSONRPC_H
#define GN_CONTROL_JSONRPC_H

#include <jansson.h>
#include <stddef.h>

#define GN_RPC_BATCH_MAX 16

enum gn_rpc_code {
	GN_RPC_PARSE = -32700,   /* the text is not JSON */
	GN_RPC_REQUEST = -32600, /* the JSON is not a request */
	GN_RPC_METHOD = -32601,  /* no such method */
	GN_RPC_PARAMS = -32602,  /* missing, unknown or invalid params */
	GN_RPC_INTERNAL = -32603,
	GN_RPC_REFUSED = -32000, /* the params are valid, but the method cannot do this now */
};

struct gn_rpc_error {
	int code; /* enum gn_rpc_code; 0: no error */
	char text[512];
};

struct gn_rpc_method {
	const char *name;
	const char *help;   /* one sentence */
	const char *params; /* JSON schema of the object `params`; NULL: there are no params */
	const char *result; /* JSON schema of the result */
	/*
	 * Run the method. params: an object; empty if the request has none. Returns the result,
	 * which the caller owns; NULL: failed, and `error` has the cause.
	 */
	json_t *(*call)(void *arg, const json_t *params, struct gn_rpc_error *error);
};

/* Set an error. Returns NULL, for `return gn_rpc_fail(...)`. */
json_t *gn_rpc_fail(struct gn_rpc_error *error, enum gn_rpc_code code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * Run the methods of a request.
 *
 * methods  the table; its last row has a NULL name
 * arg      passed to the methods
 * text     the request; it need not end with a NUL
 * length   bytes of text
 * n_p      out: number of requests
 * returns  the response and a newline, which the caller frees; NULL: a notification, which has no
 *          response, or out of memory
 */
char *gn_rpc_answer(const struct gn_rpc_method *methods, void *arg, const char *text, size_t length,
		    size_t *n_p);

#endif
