/* SPDX-License-Identifier: BSD-3-Clause */
/* image_loader.c - replaces core/loader/loader.c: the plugins are linked to the image */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "image_watch.h"
#include "loader/loader_priv.h"

extern const struct gantry_plugin loop_LTX_gantry_plugin, shm_comch_LTX_gantry_plugin,
	tcp_LTX_gantry_plugin, initiator_LTX_gantry_plugin, gateway_LTX_gantry_plugin,
	target_LTX_gantry_plugin, file_LTX_gantry_plugin, memory_LTX_gantry_plugin,
	nbd_LTX_gantry_plugin, null_LTX_gantry_plugin, rbd_LTX_gantry_plugin, crc_LTX_gantry_plugin,
	fault_LTX_gantry_plugin, noop_LTX_gantry_plugin, stats_LTX_gantry_plugin,
	trace_LTX_gantry_plugin, partition_LTX_gantry_plugin, qos_LTX_gantry_plugin,
	exporter_LTX_gantry_plugin, vhost_user_blk_LTX_gantry_plugin;

static const struct {
	const char *name;
	const struct gantry_plugin *desc;
} linked[] = {
	{"loop", &loop_LTX_gantry_plugin},
	{"shm-comch", &shm_comch_LTX_gantry_plugin},
	{"tcp", &tcp_LTX_gantry_plugin},
	{"initiator", &initiator_LTX_gantry_plugin},
	{"gateway", &gateway_LTX_gantry_plugin},
	{"target", &target_LTX_gantry_plugin},
	{"file", &file_LTX_gantry_plugin},
	{"memory", &memory_LTX_gantry_plugin},
	{"nbd", &nbd_LTX_gantry_plugin},
	{"null", &null_LTX_gantry_plugin},
	{"rbd", &rbd_LTX_gantry_plugin},
	{"crc", &crc_LTX_gantry_plugin},
	{"fault", &fault_LTX_gantry_plugin},
	{"noop", &noop_LTX_gantry_plugin},
	{"partition", &partition_LTX_gantry_plugin},
	{"qos", &qos_LTX_gantry_plugin},
	{"stats", &stats_LTX_gantry_plugin},
	{"trace", &trace_LTX_gantry_plugin},
	{"exporter", &exporter_LTX_gantry_plugin},
	{"vhost-user-blk", &vhost_user_blk_LTX_gantry_plugin},
};
#define LINKED (sizeof(linked) / sizeof(linked[0]))

struct gn_loader {
	struct gn_plugin plugins[LINKED]; /* ops NULL: not yet looked up */
	char error[GN_WHY];
};

int gn_loader_open(const char *const *dirs, size_t n_dirs, struct gn_loader **loader_p,
		   const char **text_p)
{
	(void)dirs;
	(void)n_dirs;
	*text_p = "out of memory";
	*loader_p = calloc(1, sizeof(**loader_p));
	return *loader_p ? 0 : -ENOMEM;
}

void gn_loader_probe(struct gn_loader *loader)
{
	(void)loader;
}

void gn_loader_close(struct gn_loader **loader_p)
{
	struct gn_loader *loader = *loader_p;

	*loader_p = NULL;
	for (size_t i = 0; loader && i < LINKED; i++)
		free((void *)(uintptr_t)loader->plugins[i].ops);
	free(loader);
}

static int fill(struct gn_loader *loader, struct gn_plugin *plugin,
		const struct gantry_plugin *desc, const char *name)
{
	void *ops;
	int rc = gn_loader_check(desc, name, loader->error);

	if (rc == 0)
		rc = gn_plugin_ops(desc, &ops, loader->error);
	if (rc != 0)
		return rc;
	if (strcmp(name, "file") == 0)
		sim_watch_backend(ops);
	*plugin = (struct gn_plugin){.desc = desc, .ops = ops, .path = name};
	return 0;
}

int gn_loader_find(struct gn_loader *loader, unsigned kind, const char *name,
		   const struct gn_plugin **plugin_p)
{
	for (size_t i = 0; i < LINKED; i++) {
		struct gn_plugin *plugin = &loader->plugins[i];
		int rc = 0;

		if (strcmp(linked[i].name, name) != 0 ||
		    (kind != 0 && linked[i].desc->kind != kind))
			continue;
		if (!plugin->ops)
			rc = fill(loader, plugin, linked[i].desc, name);
		*plugin_p = plugin;
		return rc;
	}
	return -ENOENT;
}

int gn_loader_each(struct gn_loader *loader,
		   int (*fn)(void *arg, const struct gn_plugin_file *file), void *arg)
{
	for (size_t i = 0; i < LINKED; i++) {
		struct gn_plugin_file file = {.path = linked[i].name, .name = linked[i].name};
		int rc;

		if (gn_loader_find(loader, 0, file.name, &file.plugin) != 0)
			file.why = loader->error;
		rc = fn(arg, &file);
		if (rc != 0)
			return rc;
	}
	return 0;
}

const char *gn_loader_error(const struct gn_loader *loader)
{
	return loader->error;
}

const char *gn_loader_dirs(const struct gn_loader *loader)
{
	(void)loader;
	return "the image";
}

bool gn_loader_is_code(const void *address)
{
	return address != NULL;
}

/*
 * Replaces the variables in which libgcc stores the features of the processor. They stay 0, which
 * means no extensions, so a run is the same on each machine.
 */
struct processor {
	unsigned vendor, type, subtype, features[1];
};
extern struct processor __cpu_model;
struct processor __cpu_model;
extern unsigned __cpu_features2[4];
unsigned __cpu_features2[4];
int __cpu_indicator_init(void);
int __cpu_indicator_init(void)
{
	return 0;
}
