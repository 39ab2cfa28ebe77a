/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * launcher.c - an observer that shows the progress of long work on an icon of the desktop: in docks
 * and launchers that read the D-Bus signal com.canonical.Unity.LauncherEntry.Update
 *
 * The bar is the mean of all roles whose target is known. It disappears at the end; a failed role
 * marks the icon as urgent.
 */
#define GANTRY_API_VERSION 1

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unity.h>

#include <gantry/observer.h>

#define ROLES_MAX 64 /* roles with work of one process; more are not shown */

struct launcher_conf {
	const char *desktop;
};

struct role {
	char *name;
	double done; /* part of the work, 0 to 1 */
	bool ended;
};

struct launcher {
	const struct gantry_host *host;
	GDBusConnection *bus;
	UnityLauncherEntry *entry;
	struct role roles[ROLES_MAX];
	unsigned n_roles;
};

static const struct gantry_option options[] = {
	{"desktop", GANTRY_OPT_STRING, offsetof(struct launcher_conf, desktop), "gantry.desktop", 0,
	 0, NULL, NULL, "Desktop file whose icon shows the progress."},
	GANTRY_OPTION_END,
};

/*
 * Send what has changed. libunity sends from the default main context, and nothing else in the
 * process iterates that context.
 */
static void send_changes(void)
{
	while (g_main_context_iteration(NULL, FALSE))
		;
}

/* Without a desktop the work must go on: the observer then shows nothing. */
static int launcher_open(const struct gantry_host *host, const void *arg, void **observer_p)
{
	const struct launcher_conf *conf = arg;
	struct launcher *self = calloc(1, sizeof(*self));
	GError *error = NULL;

	if (!self)
		return -ENOMEM;
	self->host = host;
	self->bus = g_bus_get_sync(G_BUS_TYPE_SESSION, NULL, &error);
	if (self->bus) {
		g_dbus_connection_set_exit_on_close(self->bus, FALSE);
		self->entry = unity_launcher_entry_get_for_desktop_id(conf->desktop);
	} else {
		gantry_log_warn(host, "no progress is shown: no session bus: %s", error->message);
		g_error_free(error);
	}
	*observer_p = self;
	return 0;
}

/* Get the entry of a role; NULL: too many roles, or out of memory. */
static struct role *find_role(struct launcher *self, const char *name)
{
	for (unsigned i = 0; i < self->n_roles; i++)
		if (!strcmp(self->roles[i].name, name))
			return &self->roles[i];
	if (self->n_roles == ROLES_MAX || !(self->roles[self->n_roles].name = strdup(name)))
		return NULL;
	return &self->roles[self->n_roles++];
}

static void show(struct launcher *self)
{
	double sum = 0;
	bool works = false;

	for (unsigned i = 0; i < self->n_roles; i++) {
		sum += self->roles[i].done;
		works |= !self->roles[i].ended;
	}
	unity_launcher_entry_set_progress(self->entry, self->n_roles ? sum / self->n_roles : 0);
	unity_launcher_entry_set_progress_visible(self->entry, works);
	send_changes();
}

static void launcher_progress(void *observer, const struct gantry_progress *p)
{
	struct launcher *self = observer;
	struct role *role = self->entry && p->target ? find_role(self, p->role) : NULL;

	if (!self->entry)
		return;
	if (p->state == GANTRY_PROGRESS_FAILED)
		unity_launcher_entry_set_urgent(self->entry, TRUE);
	if (role) {
		role->done = (double)p->done / (double)p->target;
		role->ended = p->state >= GANTRY_PROGRESS_DONE;
	}
	show(self);
}

static void launcher_close(void *observer)
{
	struct launcher *self = observer;

	for (unsigned i = 0; i < self->n_roles; i++)
		self->roles[i].ended = true;
	if (self->entry) {
		show(self);
		g_dbus_connection_flush_sync(self->bus, NULL, NULL);
		g_object_unref(self->entry);
	}
	if (self->bus)
		g_object_unref(self->bus);
	for (unsigned i = 0; i < self->n_roles; i++)
		free(self->roles[i].name);
	free(self);
}

static const struct gantry_observer_ops ops = {
	.open = launcher_open,
	.progress = launcher_progress,
	.close = launcher_close,
};

GANTRY_PLUGIN(launcher) = {
	GANTRY_PLUGIN_HEAD,
	.kind = GANTRY_KIND_OBSERVER,
	.name = "launcher",
	.version = "1",
	.summary = "shows progress on an icon of the desktop",
	.options = options,
	.conf_size = sizeof(struct launcher_conf),
	.ops_size = sizeof(ops),
	.ops = &ops,
};
