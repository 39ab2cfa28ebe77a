/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * page_topology.c - draw the topology: a box for each role, in columns from the initiators to the
 * targets, and an arrow for each connect
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "report/page_draw.h"
#include "report/report.h"

/* Sizes in units of the drawing. A character of the font has a width of 7.3 units. */
enum {
	BOX = 200,
	GAP = 190,
	LINE = 18,
	PAD = 8,
	SPACE = 24, /* between two boxes of a column */
	BOX_CHARS = 25,
	GAP_CHARS = 23,
};

/* A role; or, if `role` is NULL, a service that no role of the file serves. */
struct node {
	const char *name;
	const json_t *role;
	unsigned column;
	int y, height;
};

struct drawing {
	FILE *out;
	const json_t *topology;
	struct node *nodes;
	size_t n_nodes, n_roles;
	int width, height;
};

static const char *text(const json_t *object, const char *key)
{
	const char *string = json_string_value(json_object_get(object, key));

	return string ? string : "";
}

static struct node *find(const struct drawing *d, const char *name)
{
	for (size_t i = 0; name && i < d->n_roles; i++)
		if (!strcmp(d->nodes[i].name, name))
			return &d->nodes[i];
	return NULL;
}

/* Get the node that a connect leads to. elsewhere: index of the next service outside of the file */
static struct node *target_of(const struct drawing *d, const json_t *connect, size_t *elsewhere)
{
	struct node *to = find(d, json_string_value(json_object_get(connect, "to")));

	return to ? to : &d->nodes[d->n_roles + (*elsewhere)++];
}

/*
 * Move each node behind the roles that connect to it. The number of rounds ends a loop of roles.
 */
static void set_columns(struct drawing *d)
{
	const json_t *connect;
	size_t k, elsewhere = 0;

	for (size_t round = 0; round < d->n_roles; round++) {
		elsewhere = 0;
		for (size_t i = 0; i < d->n_roles; i++)
			json_array_foreach (json_object_get(d->nodes[i].role, "connects"), k,
					    connect) {
				struct node *to = target_of(d, connect, &elsewhere);

				if (!to->name)
					to->name = text(connect, "service");
				if (to->column <= d->nodes[i].column && to != &d->nodes[i])
					to->column = d->nodes[i].column + 1;
			}
	}
	d->n_nodes = d->n_roles + elsewhere;
}

static int lines_of(const struct node *node)
{
	if (!node->role)
		return 2;
	return 2 + (json_object_get(node->role, "listen") != NULL) +
	       (int)json_array_size(json_object_get(node->role, "stages")) +
	       (json_object_get(node->role, "backend") != NULL);
}

static void place(struct drawing *d)
{
	unsigned columns = 0;

	for (size_t i = 0; i < d->n_nodes; i++)
		if (d->nodes[i].column + 1 > columns)
			columns = d->nodes[i].column + 1;
	for (unsigned column = 0; column < columns; column++) {
		int y = SPACE / 2;

		for (size_t i = 0; i < d->n_nodes; i++) {
			struct node *node = &d->nodes[i];

			if (node->column != column)
				continue;
			node->y = y;
			node->height = lines_of(node) * LINE + 2 * PAD;
			y += node->height + SPACE;
		}
		if (y > d->height)
			d->height = y;
	}
	d->width = (int)columns * (BOX + GAP) - GAP + 2 * PAD;
}

static int left_of(const struct node *node)
{
	return PAD + (int)node->column * (BOX + GAP);
}

/* Print a line of text, cut to `chars` characters with a '~' at the end. */
static void print_line(FILE *out, const char *class, int x, int y, size_t chars, const char *line)
{
	char shown[64];

	if ((size_t)snprintf(shown, chars + 1, "%s", line) > chars)
		shown[chars - 1] = '~';
	fprintf(out, "<text class=\"%s\" x=\"%d\" y=\"%d\">", class, x, y);
	gn_draw_text(out, shown);
	fputs("</text>\n", out);
}

static void draw_node(const struct drawing *d, const struct node *node)
{
	const bool here = json_is_true(json_object_get(node->role, "here"));
	const json_t *listen = json_object_get(node->role, "listen"), *stage;
	int x = left_of(node), y = node->y + PAD + LINE - 5;
	char line[256];
	size_t i;

	fputs("<g class=\"role\"><title>", d->out);
	gn_draw_text(d->out, node->name);
	fprintf(d->out,
		"</title>\n<rect class=\"box%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"6\"/>\n",
		here ? "" : " away", x, node->y, BOX, node->height);
	x += PAD;
	print_line(d->out, "name", x, y, BOX_CHARS, node->name);
	if (!node->role)
		snprintf(line, sizeof(line), "in another configuration");
	else if (here)
		snprintf(line, sizeof(line), "%s, lanes %.0f", text(node->role, "role"),
			 gn_report_number(node->role, "lanes", 0));
	else
		snprintf(line, sizeof(line), "%s, not run here", text(node->role, "role"));
	print_line(d->out, "detail", x, y += LINE, BOX_CHARS, line);
	if (listen) {
		snprintf(line, sizeof(line), "listen %s on %s", text(listen, "service"),
			 text(listen, "device"));
		print_line(d->out, "detail", x, y += LINE, BOX_CHARS, line);
	}
	json_array_foreach (json_object_get(node->role, "stages"), i, stage) {
		snprintf(line, sizeof(line), "stage %s", json_string_value(stage));
		print_line(d->out, "detail", x, y += LINE, BOX_CHARS, line);
	}
	if (json_object_get(node->role, "backend")) {
		snprintf(line, sizeof(line), "backend %s", text(node->role, "backend"));
		print_line(d->out, "detail", x, y + LINE, BOX_CHARS, line);
	}
	fputs("</g>\n", d->out);
}

/* index, of: the position among the connects of the role, spread over the height of its box */
static void draw_connect(const struct drawing *d, const struct node *from, const struct node *to,
			 const json_t *connect, size_t index, size_t of)
{
	const char *device = text(connect, "device");
	const json_t *known = json_object_get(json_object_get(d->topology, "devices"), device);
	int x1 = left_of(from) + BOX, x2 = left_of(to), y2 = to->y + to->height / 2;
	int y1 = from->y + (int)((2 * index + 1) * (size_t)from->height / (2 * of));
	int x = x1 + GAP / 2, y = (y1 + y2) / 2;
	char line[256];

	fputs("<g class=\"connect\"><title>", d->out);
	gn_draw_text(d->out, from->name);
	fputs(" connects to ", d->out);
	gn_draw_text(d->out, text(connect, "service"));
	fputs(" on device ", d->out);
	gn_draw_text(d->out, device);
	fprintf(d->out,
		"</title>\n<line class=\"flow\" x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" marker-end=\"url(#arrow)\"/>\n",
		x1, y1, x2 - 2, y2);
	print_line(d->out, "service", x, y - 6, GAP_CHARS, text(connect, "service"));
	snprintf(line, sizeof(line), "%s (%s)", device, text(known, "transport"));
	print_line(d->out, "device", x, y + LINE - 2, GAP_CHARS, line);
	fputs("</g>\n", d->out);
}

static void draw(const struct drawing *d)
{
	size_t k, elsewhere = 0;
	const json_t *connect;

	fprintf(d->out,
		"<svg id=\"topology\" viewBox=\"0 0 %d %d\" style=\"max-width:%dpx\" role=\"img\" "
		"aria-label=\"topology\">\n"
		"<defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"8\" "
		"markerHeight=\"8\" orient=\"auto\"><path class=\"tip\" d=\"M0 0L8 4L0 8z\"/></marker></defs>\n",
		d->width, d->height, d->width);
	for (size_t i = 0; i < d->n_nodes; i++)
		draw_node(d, &d->nodes[i]);
	for (size_t i = 0; i < d->n_roles; i++) {
		const json_t *connects = json_object_get(d->nodes[i].role, "connects");

		json_array_foreach ((json_t *)connects, k, connect)
			draw_connect(d, &d->nodes[i], target_of(d, connect, &elsewhere), connect, k,
				     json_array_size(connects));
	}
	fputs("</svg>\n", d->out);
}

void gn_draw_topology(FILE *out, const json_t *topology)
{
	const json_t *roles = json_object_get(topology, "roles"), *role;
	struct drawing d = {.out = out, .topology = topology};
	const char *name;
	size_t k = 0, n_connects = 0;

	d.n_roles = json_object_size(roles);
	json_object_foreach ((json_t *)roles, name, role)
		n_connects += json_array_size(json_object_get(role, "connects"));
	d.nodes = calloc(d.n_roles + n_connects + 1, sizeof(*d.nodes));
	if (!d.nodes)
		return;
	json_object_foreach ((json_t *)roles, name, role)
		d.nodes[k++] = (struct node){.name = name, .role = role};
	set_columns(&d);
	place(&d);
	draw(&d);
	free(d.nodes);
}
