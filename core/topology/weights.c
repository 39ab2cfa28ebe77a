/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * weights.c - parse the option `weights` of `listen`: PEER=N, PEER=N, where a PEER is "uid NUMBER"
 * or "host ADDRESS"
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "session/peers.h"
#include "topology/topology_priv.h"

#define WEIGHTS_MAX 64
#define WEIGHT_MAX 64

static const char *skip_spaces(const char *text)
{
	while (isspace((unsigned char)*text))
		text++;
	return text;
}

/* Get the length of the kind of a peer, "uid " or "host ", at the start of text. 0: invalid. */
static size_t kind_length(const char *text, size_t n)
{
	static const char *const kinds[] = {"uid ", "host "};

	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (n > strlen(kinds[i]) && strncmp(text, kinds[i], strlen(kinds[i])) == 0)
			return strlen(kinds[i]);
	return 0;
}

/* Copy the peer before the "=", in the form of gn_peer_name(). NULL: invalid, or out of memory. */
static const char *parse_peer(struct gn_topo_parse *p, const char *text, const char *equals)
{
	size_t n = (size_t)(equals - text), kind;
	char *peer;

	while (n > 0 && isspace((unsigned char)text[n - 1]))
		n--;
	kind = kind_length(text, n);
	if (kind == 0 || n >= GN_PEER_NAME ||
	    (text[0] == 'u' && strspn(text + kind, "0123456789") != n - kind))
		return NULL;
	peer = gn_arena_alloc(&p->topology->arena, n + 1);
	if (!peer) {
		gn_errs_no_memory(p->errs);
		return NULL;
	}
	memcpy(peer, text, n);
	peer[n] = '\0';
	return peer;
}

/* Parse one entry. Returns the text after it; NULL: invalid. */
static const char *parse_weight(struct gn_topo_parse *p, const char *text, struct gn_weight *weight)
{
	const char *equals = strchr(text, '='), *number;
	char *end;

	weight->peer = equals ? parse_peer(p, text, equals) : NULL;
	if (!weight->peer)
		return NULL;
	number = skip_spaces(equals + 1);
	if (!isdigit((unsigned char)*number))
		return NULL;
	weight->weight = (uint32_t)strtoul(number, &end, 10);
	if (weight->weight < 1 || weight->weight > WEIGHT_MAX || end - number > 2)
		return NULL;
	text = skip_spaces(end);
	if (*text == ',' && *skip_spaces(text + 1))
		return skip_spaces(text + 1);
	return *text ? NULL : text;
}

int gn_topo_weights(struct gn_topo_parse *p, struct gn_conf_node *node, const char *text,
		    struct gn_endpoint *listen)
{
	const char *const whole = text;
	struct gn_weight *list;

	text = skip_spaces(text);
	if (!*text)
		return 0;
	list = gn_arena_alloc(&p->topology->arena, WEIGHTS_MAX * sizeof(*list));
	if (!list) {
		gn_errs_no_memory(p->errs);
		return -ENOMEM;
	}
	listen->weights = list;
	listen->max_weight = 1; /* weight of peers that are not listed */
	while (*text && listen->n_weights < WEIGHTS_MAX) {
		struct gn_weight *weight = &list[listen->n_weights];

		text = parse_weight(p, text, weight);
		if (!text)
			break;
		if (weight->weight > listen->max_weight)
			listen->max_weight = weight->weight;
		listen->n_weights++;
	}
	if (text && !*text)
		return 0;
	gn_conf_fault(p->errs, node,
		      "\"%s\" is not a list of at most %d weights of 1 to %d; write such as "
		      "\"uid 1000=4, host 192.0.2.7=2\"",
		      whole, WEIGHTS_MAX, WEIGHT_MAX);
	return -EINVAL;
}
