/* SPDX-License-Identifier: BSD-3-Clause */
/* gantry stat: ask the running processes of a directory what they are doing. */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/report.h"
#include "cli/stat_server.h"

#define ANSWER_MAX (8u * 1024 * 1024)
#define TIMEOUT_S 5

static int is_socket_name(const struct dirent *item)
{
	size_t n = strlen(item->d_name), m = strlen(GN_STAT_SUFFIX);

	return n > m && !strcmp(item->d_name + n - m, GN_STAT_SUFFIX);
}

/* Read until the other side hangs up. A string for free(), or NULL. */
static char *read_all(int fd)
{
	size_t room = 64 * 1024, n = 0;
	char *text = malloc(room);

	while (text) {
		ssize_t got = read(fd, text + n, room - n - 1);

		if (got == 0) {
			text[n] = '\0';
			return text;
		}
		if (got < 0 || n + (size_t)got > ANSWER_MAX)
			break;
		n += (size_t)got;
		if (n + 1 == room) {
			char *grown = realloc(text, room *= 2);

			if (!grown)
				break;
			text = grown;
		}
	}
	free(text);
	return NULL;
}

/* The report of one process, or NULL: it has gone, or does not answer. */
static json_t *ask(const char *dir, const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const struct timeval patience = {.tv_sec = TIMEOUT_S};
	json_t *tree = NULL;
	char *text;
	int fd;

	if ((size_t)snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", dir, name) >= sizeof(address.sun_path))
		return NULL;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return NULL;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (!connect(fd, (struct sockaddr *)&address, sizeof(address))) {
		text = read_all(fd);
		tree = text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
		free(text);
	}
	close(fd);
	return tree;
}

static json_t *ask_all(const char *dir, const char *role)
{
	struct dirent **items = NULL;
	json_t *list = json_array();
	int n = scandir(dir, &items, is_socket_name, alphasort);

	for (int i = 0; i < n; i++) {
		json_t *tree = ask(dir, items[i]->d_name);

		if (tree && (!role || json_object_get(json_object_get(tree, "roles"), role)))
			json_array_append(list, tree);
		json_decref(tree);
		free(items[i]);
	}
	free(items);
	return list;
}

static void print(const json_t *list, const char *role)
{
	json_t *tree;
	size_t i;

	json_array_foreach((json_t *)list, i, tree) {
		const char *file = json_string_value(json_object_get(tree, "config"));

		printf("process %.0f  %s\n", gn_report_number(tree, "pid", 0), file ? file : "");
		if (role) {
			gn_report_print_text(stdout, json_object_get(json_object_get(tree, "roles"), role), 1);
			continue;
		}
		json_object_del(tree, "pid");
		json_object_del(tree, "config");
		json_object_del(tree, "schema");
		json_object_del(tree, "version");
		json_object_del(tree, "command");
		gn_report_print_text(stdout, tree, 1);
	}
}

int gn_cli_stat(const struct gn_cli *cli)
{
	const char *role = cli->args.n ? cli->args.word[0] : NULL;
	int code = GN_EXIT_OK;
	json_t *list, *tree;
	char dir[PATH_MAX];

	if (cli->dir)
		snprintf(dir, sizeof(dir), "%s", cli->dir);
	else
		gn_stat_dir(dir);
	list = ask_all(dir, role);
	if (cli->json) {
		tree = json_pack("{si sO}", "schema", 1, "processes", list);
		if (!tree || gn_report_print_json(stdout, tree))
			code = GN_EXIT_FAILED;
		json_decref(tree);
	} else if (json_array_size(list)) {
		print(list, role);
	}
	if (!json_array_size(list))
		code = gn_cli_fail(GN_EXIT_FAILED, "no running gantry process%s%s%s answers in %s; --dir DIR looks elsewhere",
				   role ? " with a role \"" : "", role ? role : "", role ? "\"" : "", dir);
	json_decref(list);
	return code;
}
