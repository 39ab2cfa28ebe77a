/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dc_object.c - the shadow: one record for each object that the program has created
 *
 * A record stays after the end of its object, so that a later use can be reported. The next object
 * at the same address takes it over. Records are never freed: the number of addresses is bounded.
 */
#include "check/dc.h"

#include <stdlib.h>
#include <string.h>

enum { N_BUCKETS = 1 << 14 };
static uint64_t n_added;
static struct dc_object *buckets[N_BUCKETS];

static struct dc_object **bucket(const void *address)
{
	uint64_t x = ((uintptr_t)address >> 3) * 0x9e3779b97f4a7c15u;

	return &buckets[(x >> 40) & (N_BUCKETS - 1)];
}

struct dc_object *dc_find(const void *address, uint16_t type)
{
	struct dc_object *o;

	if (!address)
		return NULL;
	for (o = *bucket(address); o; o = o->next)
		if (o->address == address && o->type == type)
			return o;
	return NULL;
}

struct dc_object *dc_find_submitted(const void *address)
{
	struct dc_object *o;

	for (o = *bucket(address); o; o = o->next)
		if (o->address == address && dc_types[o->type].is_task && o->is_live &&
		    o->task.is_submitted)
			return o;
	return NULL;
}

void dc_add_alias(struct dc_object *o, const void *address, uint16_t type)
{
	struct dc_object **at, *alias = dc_find(address, type);

	if (!address)
		return;
	if (!alias) {
		alias = calloc(1, sizeof(*alias));
		if (!alias)
			return;
		alias->address = address;
		alias->type = type;
		at = bucket(address);
		alias->next = *at;
		*at = alias;
	}
	alias->is_live = true;
	alias->alias = o;
	alias->made_at = o->made_at;
	alias->made_by = o->made_by;
	o->alias = alias;
}

/* The general task of a task is the result of a function that only converts the type. */
static void add_task_alias(struct dc_object *o)
{
	const uint16_t cast = dc_types[o->type].cast;

	if (dc_types[o->type].is_task && cast != DC_N_FUNCTIONS)
		dc_add_alias(o, ((void *(*)(void *))dc_next(cast))((void *)(uintptr_t)o->address),
			     DC_T_doca_task);
}

struct dc_object *dc_add(const void *address, uint16_t type, const struct dc_call *call)
{
	struct dc_object *o = dc_find(address, type), **at;

	if (!address)
		return NULL;
	if (!o) {
		o = calloc(1, sizeof(*o));
		if (!o)
			return NULL;
		at = bucket(address);
		o->next = *at;
		*at = o;
	} else {
		struct dc_object *next = o->next;

		memset(o, 0, sizeof(*o));
		o->next = next;
	}
	o->address = address;
	o->type = type;
	o->is_live = true;
	o->serial = ++n_added;
	o->made_at = call ? call->site : NULL;
	o->made_by = call ? call->function : DC_N_FUNCTIONS;
	o->alias = o;
	add_task_alias(o);
	return o;
}

void dc_end_object(struct dc_object *o, const void *site)
{
	if (!o->is_live)
		return;
	o->is_live = o->alias->is_live = false;
	o->ended_at = o->alias->ended_at = site;
	if (o->parent)
		o->parent->n_users--;
	if (o->dev)
		o->dev->n_users--;
}

uint64_t dc_n_added(void)
{
	return n_added;
}

void dc_each(void (*visit)(struct dc_object *object, void *arg), void *arg)
{
	unsigned i;
	struct dc_object *o;

	for (i = 0; i < N_BUCKETS; i++)
		for (o = buckets[i]; o; o = o->next)
			if (o->is_live)
				visit(o, arg);
}

struct dc_object *dc_ctx_of(struct dc_object *o)
{
	if (!o)
		return NULL;
	if (o->type == DC_T_doca_ctx || o->type == DC_T_doca_task)
		o = o->alias;
	if (dc_types[o->type].is_task)
		return o->task.ctx;
	return dc_types[o->type].cast != DC_N_FUNCTIONS ? o : NULL;
}
