/* SPDX-License-Identifier: BSD-3-Clause */
/* held.c - see held.h */
#include "held.h"

#include <stdio.h>
#include <string.h>

static uint32_t *find_kind(struct sim_held *held, const char *kind)
{
	for (uint32_t i = 0; i < SIM_HELD_KINDS; i++) {
		if (!held->fds[i].kind)
			held->fds[i].kind = kind;
		if (strcmp(held->fds[i].kind, kind) == 0)
			return &held->fds[i].n;
	}
	sim_fail("more than %u kinds of descriptors", SIM_HELD_KINDS);
}

void sim_held_note(struct sim_held *held, const struct sim_proc *proc)
{
	memset(held, 0, sizeof(*held));
	for (int fd = 0; fd < (int)SIM_FDS; fd++)
		if (sim_fd_kind(proc, fd))
			(*find_kind(held, sim_fd_kind(proc, fd)))++;
	for (uint32_t i = 0; i < SIM_MAPS; i++)
		if (proc->maps[i].at) {
			held->n_maps++;
			held->map_bytes += proc->maps[i].bytes;
		}
	held->heap_bytes = sim_arena_used(proc->arena);
}

struct text {
	char *at;
	size_t n, room;
	bool may_lack;
};

static void add_difference(struct text *text, const char *what, size_t is, size_t was)
{
	if (is != was && (is > was || !text->may_lack) && text->n < text->room)
		text->n += (size_t)snprintf(text->at + text->n, text->room - text->n,
					    "%s %s %zu instead of %zu", text->n != 0 ? "," : "",
					    what, is, was);
}

bool sim_held_differs(const struct sim_held *held, const struct sim_held *before, size_t heap_bytes,
		      bool may_lack, char *text, size_t bytes)
{
	struct sim_held is = *held, was = *before;
	struct text all = {text, 0, bytes, may_lack};

	for (uint32_t i = 0; i < SIM_HELD_KINDS && was.fds[i].kind; i++)
		find_kind(&is, was.fds[i].kind); /* adds to `is` the kinds that only `was` has */
	for (uint32_t i = 0; i < SIM_HELD_KINDS && is.fds[i].kind; i++)
		add_difference(&all, is.fds[i].kind, is.fds[i].n, *find_kind(&was, is.fds[i].kind));
	add_difference(&all, "mappings", is.n_maps, was.n_maps);
	add_difference(&all, "bytes of mappings", is.map_bytes, was.map_bytes);
	if (is.heap_bytes > was.heap_bytes + heap_bytes)
		add_difference(&all, "bytes of heap", is.heap_bytes, was.heap_bytes);
	return all.n != 0;
}
