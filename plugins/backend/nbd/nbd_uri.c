/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbd_uri.c - the URI of the export: a check of its scheme, its text without credentials, and the
 * UUID that is derived from the text.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "../common/identity.h"
#include "nbd.h"

static const char *const schemes[] = {"nbd://",       "nbds://",      "nbd+unix://",
				      "nbds+unix://", "nbd+vsock://", "nbds+vsock://"};

static int has_prefix(const char *text, const char *prefix)
{
	return strncasecmp(text, prefix, strlen(prefix)) == 0;
}

const char *nb_uri_fault(const char *uri)
{
	int known = 0;

	for (unsigned i = 0; i < sizeof schemes / sizeof *schemes; i++)
		known |= has_prefix(uri, schemes[i]);
	if (!known)
		return "is not the URI of an NBD export; write such as \"nbd://host/export\" or "
		       "\"nbd+unix:///export?socket=/path\"";
	if (strlen(uri) >= NB_TEXT_BYTES)
		return "is too long (limit 511 bytes)";
	if (strstr(uri, "+unix:") && !strstr(uri, "?socket=") && !strstr(uri, "&socket="))
		return "has no socket; write such as \"nbd+unix:///export?socket=/path\"";
	return NULL;
}

/* Copy the parameter `socket` of a query, and no other one: they can name files with keys. */
static void copy_query(const char *query, char *out, size_t bytes)
{
	while (*query) {
		size_t n = strcspn(query, "&;");

		if (has_prefix(query, "socket=")) {
			snprintf(out, bytes, "?%.*s", (int)n, query);
			return;
		}
		query += n + (query[n] != '\0');
	}
}

void nb_uri_text(const char *uri, char text[NB_TEXT_BYTES])
{
	const char *place = strstr(uri, "://");
	size_t n_place, n_user, n;

	if (!place) {
		snprintf(text, NB_TEXT_BYTES, "%s", uri);
		return;
	}
	place += 3;
	n_place = strcspn(place, "?#");
	for (n_user = strcspn(place, "/?#"); n_user > 0 && place[n_user - 1] != '@'; n_user--)
		;
	snprintf(text, NB_TEXT_BYTES, "%.*s%.*s", (int)(place - uri), uri, (int)(n_place - n_user),
		 place + n_user);
	n = strlen(text);
	if (place[n_place] == '?')
		copy_query(place + n_place + 1, text + n, NB_TEXT_BYTES - n);
}

/* Returns true if the server of the URI is another one on each machine. */
static int is_local(const char *text)
{
	const char *place = strstr(text, "://") + 3;

	return strstr(text, "+unix:") || strstr(text, "+vsock:") ||
	       has_prefix(place, "localhost") || has_prefix(place, "127.") ||
	       has_prefix(place, "[::1]");
}

void nb_uri_uuid(const struct gantry_host *host, const char *text, uint8_t uuid[16])
{
	if (is_local(text))
		identity_of_machine(host, text, uuid);
	else
		identity_of_name(text, uuid);
}
