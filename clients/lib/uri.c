/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uri.c - parser of gantry URIs
 */
#include "uri.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SCHEME "gantry://"
#define KNOWN "known are config, role, device, transport, device.KEY and connect.KEY"

struct parse {
	struct gc_uri *uri;
	const char *from;
	const char *device, *transport, *host, *name;
	char *text;
	size_t text_bytes;
};

struct pair {
	const char *key, *value;
};

__attribute__((format(printf, 2, 3))) static int wrong(struct parse *p, const char *fmt, ...)
{
	int n = snprintf(p->text, p->text_bytes, "%.*s: ", GC_URI_SHOWN, p->from);
	va_list ap;

	va_start(ap, fmt);
	if (n > 0 && (size_t)n < p->text_bytes)
		vsnprintf(p->text + n, p->text_bytes - (size_t)n, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

static int hex(char c)
{
	return isdigit((unsigned char)c)    ? c - '0'
	       : isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10
					    : -1;
}

/* Copy n bytes and decode %XX. Returns NULL with *rc_p set on error. */
static char *decode(struct parse *p, const char *from, size_t n, int *rc_p)
{
	char *to = gn_arena_alloc(&p->uri->arena, n + 1);
	size_t used = 0;

	*rc_p = -ENOMEM;
	for (size_t i = 0; to && i < n; i++) {
		int c = (unsigned char)from[i];

		if (c == '%') {
			int high = n - i > 2 ? hex(from[i + 1]) : -1,
			    low = n - i > 2 ? hex(from[i + 2]) : -1;

			if (high < 0 || low < 0) {
				*rc_p = wrong(p, "%% is not followed by two hexadecimal digits");
				return NULL;
			}
			c = high * 16 + low;
			i += 2;
		}
		if (c < 0x20 || c == 0x7f) {
			*rc_p = wrong(p, "contains a control character");
			return NULL;
		}
		to[used++] = (char)c;
	}
	return to;
}

__attribute__((format(printf, 2, 3))) static int set(struct parse *p, const char *fmt, ...)
{
	struct gc_uri *uri = p->uri;
	char line[GC_URI_MAX + 64];
	va_list ap;

	if (uri->n_sets == GC_URI_SETS)
		return wrong(p, "has more than %d settings", GC_URI_SETS);
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	uri->sets[uri->n_sets] = gn_arena_strdup(&uri->arena, line);
	return uri->sets[uri->n_sets++] ? 0 : -ENOMEM;
}

/*
 * True for a name of the configuration: letters, digits, '-', '_' and '*', not starting with a
 * digit.
 */
static int is_word(const char *text)
{
	return *text &&
	       !text[strspn(text,
			    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_*")] &&
	       !isdigit((unsigned char)*text);
}

/* Take a key that configures the URI itself. Returns 0, -EINVAL, or 1: another key. */
static int take_word(struct parse *p, const struct pair *pair)
{
	const struct {
		const char *key, **to;
	} words[] = {
		{"config", &p->uri->config},
		{"role", &p->uri->role},
		{"device", &p->device},
		{"transport", &p->transport},
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(pair->key, words[i].key))
			continue;
		if (*words[i].to)
			return wrong(p, "has %s twice", pair->key);
		if (!*pair->value)
			return wrong(p, "%s is empty", pair->key);
		*words[i].to = pair->value;
		return 0;
	}
	return 1;
}

/* Add an option of the device or of the connection. p->device must be set. */
static int take_option(struct parse *p, const struct pair *pair)
{
	const char *dot = strchr(pair->key, '.');

	if (!dot || (strncmp(pair->key, "device.", 7) && strncmp(pair->key, "connect.", 8)))
		return wrong(p, "does not know \"%.64s\"; " KNOWN, pair->key);
	if (!is_word(dot + 1))
		return wrong(p, "\"%.64s\" names no option", pair->key);
	if (*pair->key == 'd')
		return set(p, "devices.%s.%s=%s", p->device, dot + 1, pair->value);
	return set(p, "roles." GC_URI_ROLE ".%s=%s", pair->key, pair->value);
}

static int take_pair(struct parse *p, const char *from, size_t n, struct pair *pair)
{
	const char *equals = memchr(from, '=', n);
	int rc;

	if (!equals || equals == from)
		return wrong(p, "\"%.*s\" is no KEY=VALUE", n > 64 ? 64 : (int)n, from);
	pair->key = decode(p, from, (size_t)(equals - from), &rc);
	if (!pair->key)
		return rc;
	pair->value = decode(p, equals + 1, n - (size_t)(equals - from) - 1, &rc);
	return pair->value ? 0 : rc;
}

/* Parse the query, the part after '?'. */
static int take_query(struct parse *p, const char *query, struct pair *options, size_t *n_p)
{
	while (*query) {
		size_t n = strcspn(query, "&");
		struct pair pair;
		int rc = n ? take_pair(p, query, n, &pair) : 0;

		if (!rc && n)
			rc = take_word(p, &pair);
		if (rc == 1 && *n_p == GC_URI_SETS)
			return wrong(p, "has more than %d settings", GC_URI_SETS);
		if (rc == 1)
			options[(*n_p)++] = pair;
		else if (rc)
			return rc;
		query += n + (query[n] == '&');
	}
	return 0;
}

/*
 * Parse [HOST:PORT]/[NAME]. Returns the query, "" if there is none; NULL with *rc_p set on error.
 */
static const char *take_place(struct parse *p, const char *at, int *rc_p)
{
	size_t n_host = strcspn(at, "/?#"), n_name = 0;
	const char *name = at + n_host;

	if (*name == '/') {
		name++;
		n_name = strcspn(name, "?#");
	}
	if (name[n_name] == '#') {
		*rc_p = wrong(p, "has a fragment (#): write it as %%23");
		return NULL;
	}
	p->host = decode(p, at, n_host, rc_p);
	if (!p->host)
		return NULL;
	p->name = decode(p, name, n_name, rc_p);
	if (!p->name)
		return NULL;
	return name[n_name] ? name + n_name + 1 : "";
}

static int check_file(struct parse *p, size_t n_options)
{
	if (*p->host || *p->name || p->device || p->transport || n_options)
		return wrong(
			p,
			"config=FILE excludes a place and all other keys except role: write them into the file");
	return 0;
}

static int check_place(struct parse *p)
{
	if (p->uri->role)
		return wrong(p, "role needs config=FILE");
	if (*p->host && *p->name)
		return wrong(p, "has both HOST:PORT and NAME: leave one of them out");
	if (!*p->host && !*p->name)
		return wrong(
			p,
			"names no volume: write gantry:///NAME, gantry://HOST:PORT or gantry:///?config=FILE");
	if (*p->host && !p->transport)
		return wrong(p, "lacks the transport to that host: write ?transport=NAME");
	if (p->device && !is_word(p->device))
		return wrong(p, "device \"%.64s\": a name has letters, digits, - and _", p->device);
	return 0;
}

static int make_sets(struct parse *p, const struct pair *options, size_t n)
{
	int rc;

	if (!p->device)
		p->device = "dpu0";
	rc = set(p, "devices.%s.transport=\"%s\"", p->device,
		 p->transport ? p->transport : "shm-comch");
	if (!rc)
		rc = set(p, "roles." GC_URI_ROLE ".connect.device=\"%s\"", p->device);
	if (!rc)
		rc = set(p, "roles." GC_URI_ROLE ".connect.name=\"%s\"",
			 *p->host ? p->host : p->name);
	for (size_t i = 0; i < n && !rc; i++)
		rc = take_option(p, &options[i]);
	return rc;
}

int gc_uri_parse(struct gc_uri *uri, const char *from, char *text, size_t text_bytes)
{
	struct parse p = {.uri = uri, .from = from, .text = text, .text_bytes = text_bytes};
	struct pair options[GC_URI_SETS];
	size_t n = 0;
	const char *query;
	int rc;

	*uri = (struct gc_uri){.config = NULL};
	if (strnlen(from, GC_URI_MAX + 1) > GC_URI_MAX)
		return wrong(&p, "is longer than %d bytes", GC_URI_MAX);
	if (strncmp(from, SCHEME, strlen(SCHEME)))
		return wrong(&p, "is no gantry URI: write gantry:///NAME");
	query = take_place(&p, from + strlen(SCHEME), &rc);
	if (!query)
		return rc;
	rc = take_query(&p, query, options, &n);
	if (!rc)
		rc = uri->config ? check_file(&p, n) : check_place(&p);
	if (!rc && !uri->config)
		rc = make_sets(&p, options, n);
	return rc;
}

void gc_uri_fini(struct gc_uri *uri)
{
	gn_arena_fini(&uri->arena);
}
