/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_ctl.c - gantry ctl: call a method of the control socket of a running process */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli/cli.h"
#include "control/control_socket.h"
#include "control/control_methods.h"
#include "cli/stat_view.h"

#define ANSWER_S 10 /* longest wait for a response */

/* Call fn with each param of a method, in the order of its schema. */
static void each_param(const struct gn_rpc_method *method, void (*fn)(void *arg, const char *name),
		       void *arg)
{
	json_t *schema = json_loads(method->params ? method->params : "{}", 0, NULL), *row;
	const char *name;

	json_object_foreach (json_object_get(schema, "properties"), name, row)
		fn(arg, name);
	json_decref(schema);
}

static void append_param(void *arg, const char *name)
{
	char *words = arg;

	snprintf(words + strlen(words), 128 - strlen(words), " %s", name);
}

static int list_methods(void)
{
	for (const struct gn_rpc_method *m = gn_control_methods; m->name; m++) {
		char words[128];

		snprintf(words, sizeof(words), "%s", m->name);
		each_param(m, append_param, words);
		printf("  %-16s %s\n", words, m->help);
	}
	printf("  %-16s %s\n", "rpc.discover", "Return this list as an OpenRPC document.");
	return GN_EXIT_OK;
}

/* -- the request -- */

struct words {
	const struct gn_strlist *words;
	size_t next; /* index of the word for the next param */
	json_t *params;
};

/* The words true and false, and integers, have their types in JSON; other words are strings. */
static void add_param(void *arg, const char *name)
{
	struct words *w = arg;
	const char *word;
	json_t *value;

	if (w->next == w->words->n)
		return;
	word = w->words->word[w->next++];
	value = json_loads(word, JSON_DECODE_ANY, NULL);
	if (!json_is_boolean(value) && !json_is_integer(value)) {
		json_decref(value);
		value = gn_report_string(word);
	}
	json_object_set_new(w->params, name, value);
}

/* Build the request. NULL: a message was printed. */
static json_t *build_request(const struct gn_strlist *args)
{
	static const struct gn_rpc_method discover = {.name = "rpc.discover"};
	const struct gn_rpc_method *m = gn_control_methods;
	struct words w = {.words = args, .next = 1, .params = json_object()};

	while (m->name && strcmp(m->name, args->word[0]) != 0)
		m++;
	if (!m->name && strcmp(args->word[0], discover.name) == 0)
		m = &discover;
	if (m->name)
		each_param(m, add_param, &w);
	if (!m->name || w.next < args->n) {
		json_decref(w.params);
		gn_cli_fail(GN_EXIT_USAGE,
			    m->name ? "%s: too many values; gantry ctl lists the methods"
				    : "unknown method \"%s\"; gantry ctl lists the methods",
			    args->word[0]);
		return NULL;
	}
	return json_pack("{ss si ss so}", "jsonrpc", "2.0", "id", 1, "method", args->word[0],
			 "params", w.params);
}

/* -- the call -- */

static int connect_to(const struct gn_stat_view *view, int pid)
{
	const struct timeval limit = {.tv_sec = ANSWER_S};
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd;

	if ((size_t)snprintf(address.sun_path, sizeof(address.sun_path), "%s/%d" GN_CONTROL_SUFFIX,
			     view->dir, pid) >= sizeof(address.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	if (!connect(fd, (const struct sockaddr *)&address, sizeof(address)))
		return fd;
	close(fd);
	return -1;
}

/* Parse a response. Returns NULL with errno set if it is not JSON. */
static json_t *parse(const char *line)
{
	json_t *response = json_loads(line, 0, NULL);

	errno = response ? 0 : EPROTO;
	return response;
}

/* Send the request and receive the response. Returns NULL with errno set. */
static json_t *call(int fd, const json_t *request)
{
	char *text = json_dumps(request, JSON_COMPACT);
	FILE *stream = text ? fdopen(fd, "r+") : NULL;
	json_t *response = NULL;
	char *line = NULL;
	size_t size = 0;

	if (!stream) {
		free(text);
		close(fd);
		return NULL;
	}
	errno = 0;
	if (fprintf(stream, "%s\n", text) > 0 && !fflush(stream)) {
		if (getline(&line, &size, stream) > 0)
			response = parse(line);
		else if (!errno)
			errno = ECONNRESET; /* the process has ended, or rejected the connection */
	}
	free(text);
	free(line);
	fclose(stream);
	return response;
}

/* Print the result, or the error of the response. Returns an exit code. */
static int print_response(int pid, const json_t *response)
{
	const json_t *result = json_object_get(response, "result");
	const char *message =
		json_string_value(json_object_get(json_object_get(response, "error"), "message"));

	if (result)
		return gn_cli_print_json(result);
	return gn_cli_fail(GN_EXIT_FAILED, "process %d: %s", pid,
			   message ? message : "the response is not a response of JSON-RPC 2.0");
}

/* Choose the process. Returns its PID; 0: a message was printed. */
static int choose(const struct gn_stat_view *view)
{
	json_t *silent = json_array(), *list, *process;
	char pids[256] = "";
	int error, chosen = 0;
	size_t i, n = 0;

	list = gn_stat_view_ask(view, silent, &error);
	json_array_foreach (list, i, process) {
		int pid = (int)gn_report_number(process, "pid", 0);

		if (view->cli->pid && pid != view->cli->pid)
			continue;
		chosen = pid;
		n++;
		snprintf(pids + strlen(pids), sizeof(pids) - strlen(pids), " %d", pid);
	}
	if (n > 1)
		gn_cli_fail(0, "%zu processes answer:%s; choose one with --pid or -c", n, pids);
	else if (view->cli->pid && !n)
		gn_cli_fail(0, "no gantry process %d answers in %s", view->cli->pid, view->dir);
	else
		gn_stat_view_found(view, list, error);
	json_decref(list);
	json_decref(silent);
	return n == 1 ? chosen : 0;
}

static int call_method(const struct gn_stat_view *view, const json_t *request)
{
	int pid = choose(view), fd, code;
	json_t *response;

	if (!pid)
		return GN_EXIT_FAILED;
	fd = connect_to(view, pid);
	response = fd >= 0 ? call(fd, request) : NULL;
	if (!response)
		return gn_cli_fail(GN_EXIT_FAILED, "process %d: no response: %s", pid,
				   strerror(errno));
	code = print_response(pid, response);
	json_decref(response);
	return code;
}

int gn_cli_ctl(const struct gn_cli *cli)
{
	struct gn_stat_view view;
	json_t *request;
	int code;

	if (!cli->args.n)
		return list_methods();
	request = build_request(&cli->args);
	if (!request)
		return GN_EXIT_USAGE;
	code = gn_stat_view_open(cli, NULL, &view);
	if (code == GN_EXIT_OK)
		code = call_method(&view, request);
	gn_stat_view_close(&view);
	json_decref(request);
	return code;
}
