/* SPDX-License-Identifier: BSD-3-Clause */
/* dt_source.c - finds function, file and line of a frame, from the debug information */
#include <stdlib.h>
#include <string.h>

#include "tool/dt.h"

#ifdef HAVE_LIBDW
#include <elfutils/libdwfl.h>

static char *debug_path;
static const Dwfl_Callbacks callbacks = {
	.find_elf = dwfl_build_id_find_elf,
	.find_debuginfo = dwfl_standard_find_debuginfo,
	.section_address = dwfl_offline_section_address,
	.debuginfo_path = &debug_path,
};

/* A module that was read before; debug information is read once. */
static struct module {
	struct module *next;
	const char *path;
	Dwfl *dwfl;
	Dwfl_Module *module;
} * modules;

static struct module *open_module(const char *path)
{
	struct module *m;

	for (m = modules; m; m = m->next)
		if (!strcmp(m->path, path))
			return m;
	m = calloc(1, sizeof(*m));
	if (!m)
		return NULL;
	m->path = strdup(path);
	m->dwfl = dwfl_begin(&callbacks);
	if (m->dwfl) {
		dwfl_report_begin(m->dwfl);
		m->module = dwfl_report_offline(m->dwfl, path, path, -1);
		dwfl_report_end(m->dwfl, NULL, NULL);
	}
	m->next = modules;
	modules = m;
	return m;
}

static void locate(const char *path, unsigned long offset, struct dt_place *place)
{
	struct module *m = open_module(path);
	Dwarf_Addr start, address;
	Dwfl_Line *line;

	if (!m || !m->module)
		return;
	dwfl_module_info(m->module, NULL, &start, NULL, NULL, NULL, NULL, NULL);
	address = start + offset - 1; /* the call, not the instruction after it */
	place->function = dwfl_module_addrname(m->module, address);
	line = dwfl_module_getsrc(m->module, address);
	if (line)
		place->file = dwfl_lineinfo(line, NULL, &place->line, NULL, NULL, NULL);
}
#else
static void locate(const char *path, unsigned long offset, struct dt_place *place)
{
	(void)path, (void)offset, (void)place;
}
#endif

void dt_locate(const char *frame, struct dt_place *place)
{
	const char *plus = strrchr(frame, '+');
	char *path;

	*place = (struct dt_place){.module = frame};
	if (!plus)
		return;
	path = strndup(frame, (size_t)(plus - frame));
	if (!path)
		return;
	place->module = path;
	locate(path, strtoul(plus + 1, NULL, 0), place);
}
