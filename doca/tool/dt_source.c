/* SPDX-License-Identifier: BSD-3-Clause */
/* dt_source.c - finds function, file and line of a frame, from the debug information */
#include <stdlib.h>
#include <string.h>

#include "tool/dt.h"

/* A module that was named before. Its debug information is read once. */
struct module {
	struct module *next;
	char *path;
	void *dwfl, *module;
};
static struct module *modules;

/* Find or add a module. Returns NULL when out of memory. */
static struct module *module_of(const char *path, size_t len)
{
	struct module *m;

	for (m = modules; m; m = m->next)
		if (!strncmp(m->path, path, len) && !m->path[len])
			return m;
	m = calloc(1, sizeof(*m));
	if (!m)
		return NULL;
	m->path = strndup(path, len);
	if (!m->path) {
		free(m);
		return NULL;
	}
	m->next = modules;
	modules = m;
	return m;
}

#ifdef HAVE_LIBDW
#include <elfutils/libdwfl.h>

static char *debug_path;
static const Dwfl_Callbacks callbacks = {
	.find_elf = dwfl_build_id_find_elf,
	.find_debuginfo = dwfl_standard_find_debuginfo,
	.section_address = dwfl_offline_section_address,
	.debuginfo_path = &debug_path,
};

static void open_module(struct module *m)
{
	m->dwfl = dwfl_begin(&callbacks);
	if (!m->dwfl)
		return;
	dwfl_report_begin(m->dwfl);
	m->module = dwfl_report_offline(m->dwfl, m->path, m->path, -1);
	dwfl_report_end(m->dwfl, NULL, NULL);
}

/*
 * Find the line of an address. dwfl_module_getsrc() is not sufficient: it needs a table of the
 * addresses of all units, which clang does not write.
 */
static void find_line(struct module *m, Dwarf_Addr address, struct dt_place *place)
{
	Dwarf_Die *unit = NULL;
	Dwarf_Line *line = NULL;
	Dwarf_Addr bias;

	while (!line && (unit = dwfl_module_nextcu(m->module, unit, &bias)))
		if (dwarf_haspc(unit, address - bias) == 1)
			line = dwarf_getsrc_die(unit, address - bias);
	if (!line)
		return;
	place->file = dwarf_linesrc(line, NULL, NULL);
	dwarf_lineno(line, &place->line);
}

static void locate(struct module *m, unsigned long offset, struct dt_place *place)
{
	Dwarf_Addr start, address;

	if (!m->dwfl)
		open_module(m);
	if (!m->module)
		return;
	dwfl_module_info(m->module, NULL, &start, NULL, NULL, NULL, NULL, NULL);
	address = start + offset - 1; /* the call, not the instruction after it */
	place->function = dwfl_module_addrname(m->module, address);
	find_line(m, address, place);
}
#else
static void locate(struct module *m, unsigned long offset, struct dt_place *place)
{
	(void)m, (void)offset, (void)place;
}
#endif

void dt_locate(const char *frame, struct dt_place *place)
{
	const char *plus = strrchr(frame, '+');
	struct module *m = plus ? module_of(frame, (size_t)(plus - frame)) : NULL;

	*place = (struct dt_place){.module = frame};
	if (!m)
		return;
	place->module = m->path;
	locate(m, strtoul(plus + 1, NULL, 0), place);
}
