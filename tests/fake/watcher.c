/* SPDX-License-Identifier: BSD-3-Clause */
/* watcher - an observer that writes one line of JSON for each of its calls. Only tests load it. */
#define GANTRY_API_VERSION 1

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <gantry/observer.h>

struct watcher_conf {
	const char *path;
	int fails_check;
};

struct watcher {
	int fd;
};

static const struct gantry_option options[] = {
	{"path", GANTRY_OPT_STRING, offsetof(struct watcher_conf, path), NULL, GANTRY_PATH_REPLACE,
	 0, NULL, NULL, "File for the calls."},
	{"fails_check", GANTRY_OPT_BOOL, offsetof(struct watcher_conf, fails_check), "false", 0, 0,
	 NULL, NULL, "The check for this machine has the result -EIO, without a fault."},
	GANTRY_OPTION_END,
};

static void watcher_check(const void *arg, struct gantry_check *check)
{
	const struct watcher_conf *conf = arg;

	if ((check->flags & GANTRY_CHECK_MACHINE) && conf->fails_check)
		check->status = -EIO;
}

static int watcher_open(const struct gantry_host *host, const void *arg, void **observer_p)
{
	const struct watcher_conf *conf = arg;
	struct watcher *watcher = malloc(sizeof(*watcher));

	if (!watcher)
		return -ENOMEM;
	watcher->fd = host->open_file(host, conf->path, O_WRONLY | O_CREAT | O_TRUNC);
	if (watcher->fd < 0) {
		int rc = watcher->fd;

		free(watcher);
		return rc;
	}
	dprintf(watcher->fd, "{\"call\": \"open\", \"name\": \"%s\"}\n", host->name);
	*observer_p = watcher;
	return 0;
}

static void watcher_progress(void *observer, const struct gantry_progress *p)
{
	static const char *const states[] = {
		[GANTRY_PROGRESS_WAITING] = "waiting",
		[GANTRY_PROGRESS_WORKING] = "working",
		[GANTRY_PROGRESS_DONE] = "done",
		[GANTRY_PROGRESS_FAILED] = "failed",
	};
	const struct watcher *watcher = observer;

	dprintf(watcher->fd,
		"{\"call\": \"progress\", \"role\": \"%s\", \"state\": \"%s\", \"elapsed_ns\": %" PRIu64
		", \"done\": %" PRIu64 ", \"target\": %" PRIu64
		", \"unit\": \"%s\", \"ops\": %" PRIu64 ", \"bytes\": %" PRIu64 "}\n",
		p->role, states[p->state], p->elapsed_ns, p->done, p->target, p->unit, p->ops,
		p->bytes);
}

static void watcher_close(void *observer)
{
	struct watcher *watcher = observer;

	dprintf(watcher->fd, "{\"call\": \"close\"}\n");
	close(watcher->fd);
	free(watcher);
}

static const struct gantry_observer_ops ops = {
	.open = watcher_open,
	.progress = watcher_progress,
	.close = watcher_close,
};

GANTRY_PLUGIN(watcher) = {
	GANTRY_PLUGIN_HEAD,
	.kind = GANTRY_KIND_OBSERVER,
	.name = "watcher",
	.version = "1",
	.summary = "writes its calls to a file",
	.options = options,
	.conf_size = sizeof(struct watcher_conf),
	.ops_size = sizeof(ops),
	.ops = &ops,
	.check = watcher_check,
};
