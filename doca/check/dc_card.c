/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dc_card.c - limits of a card
 *
 * GANTRY_DOCA_CHECK_CARD names a file of lines "NAME = VALUE". A name is that of a function that
 * queries a capability, and the value the largest that it stores. "#" begins a comment.
 */
#include "check/dc_card.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/dc.h"

static uint64_t limits[DC_N_FUNCTIONS]; /* 0: none */
static bool is_set;

static void set_limit(const char *path, unsigned line, const char *name, uint64_t value)
{
	unsigned i;

	for (i = 0; i < DC_N_FUNCTIONS; i++)
		if (!strcmp(dc_functions[i].name, name) && dc_functions[i].kind == DC_CAPABILITY) {
			limits[i] = value;
			return;
		}
	fprintf(stderr,
		"gantry doca check: %s:%u: no such capability (name=%s): use the name of a function\n",
		path, line, name);
}

static __attribute__((constructor)) void read_card(void)
{
	const char *path = getenv("GANTRY_DOCA_CHECK_CARD");
	char line[512], name[256];
	unsigned long long value;
	unsigned number = 0;
	FILE *in;

	if (!path || !*path)
		return;
	in = fopen(path, "re");
	if (!in) {
		fprintf(stderr, "gantry doca check: %s: cannot read the limits of the card\n",
			path);
		return;
	}
	is_set = true;
	while (fgets(line, sizeof(line), in)) {
		number++;
		line[strcspn(line, "#\n")] = '\0';
		if (sscanf(line, " %255[a-z0-9_] = %llu", name, &value) == 2)
			set_limit(path, number, name, value);
		else if (line[strspn(line, " \t")])
			fprintf(stderr, "gantry doca check: %s:%u: not a line \"NAME = VALUE\"\n",
				path, number);
	}
	fclose(in);
}

void dc_card_refuse(struct dc_call *call)
{
	if (!is_set)
		return;
	call->refused = true;
	call->result = DOCA_ERROR_INVALID_VALUE;
}

uint64_t dc_card_limit(uint16_t capability, uint64_t value)
{
	const uint64_t limit = limits[capability];

	return limit && value > limit ? limit : value;
}

void dc_card_after(struct dc_call *call)
{
	const struct dc_function *f = &dc_functions[call->function];
	const uint8_t size = f->n_params ? f->params[f->n_params - 1].size : 0;
	const uint64_t limit = limits[call->function];
	void *value = (void *)(uintptr_t)(size ? call->args[f->n_params - 1] : 0);

	if (!limit || !value || call->result != DOCA_SUCCESS)
		return;
	if (size == 8 && *(uint64_t *)value > limit)
		*(uint64_t *)value = limit;
	else if (size == 4 && *(uint32_t *)value > limit)
		*(uint32_t *)value = (uint32_t)limit;
}
