/* SPDX-License-Identifier: BSD-3-Clause */
#include "secure/auth_keys.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "secure/auth_priv.h"

static const char *const characters =
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._@-";

bool gn_identity_ok(const char *text)
{
	size_t n = strspn(text, characters);

	return n >= 1 && n <= GN_IDENTITY_MAX && !text[n];
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Parse a key. Returns NULL, or the problem and its remedy. */
static const char *parse_key(const char *text, size_t n, uint8_t key[GN_KEY_BYTES])
{
	if (n == 0)
		return "the key is empty: write 64 hexadecimal digits";
	for (size_t i = 0; i < n; i++)
		if (digit(text[i]) < 0)
			return "the key has a character that is not a hexadecimal digit: write 64 "
			       "hexadecimal digits";
	if (n != 2 * (size_t)GN_KEY_BYTES)
		return "the key has the wrong length: write 64 hexadecimal digits";
	for (size_t i = 0; i < GN_KEY_BYTES; i++)
		key[i] = (uint8_t)(digit(text[2 * i]) << 4 | digit(text[2 * i + 1]));
	return NULL;
}

/* Parse a line. Returns NULL, or the problem and its remedy. */
static const char *parse_line(const char *line, size_t n, struct gn_key *key)
{
	const char *colon = memchr(line, ':', n);
	size_t length = colon ? (size_t)(colon - line) : 0;

	if (!colon)
		return "no colon: write IDENTITY:KEY";
	if (length > GN_IDENTITY_MAX)
		return "the identity is too long: write at most 63 characters";
	memcpy(key->identity, line, length);
	key->identity[length] = '\0';
	if (strlen(key->identity) != length || !gn_identity_ok(key->identity))
		return "the identity is empty or has a forbidden character: write letters, digits "
		       "and . _ @ -";
	return parse_key(colon + 1, n - length - 1, key->key);
}

static size_t trimmed(const char *line, size_t n)
{
	while (n && strchr(" \t\r", line[n - 1]) && line[n - 1])
		n--;
	return n;
}

/* Append the key of a line, if it has one. Returns NULL, or the problem and its remedy. */
static const char *take_line(struct gn_keys *keys, const char *line, size_t n, unsigned number)
{
	struct gn_key *key = &keys->key[keys->n];
	const char *problem;

	n = trimmed(line, n);
	if (n == 0 || line[0] == '#')
		return NULL;
	key->line = number;
	problem = parse_line(line, n, key);
	keys->n++;
	return problem;
}

static int compare(const void *left, const void *right)
{
	const struct gn_key *a = left, *b = right;
	int order = strcmp(a->identity, b->identity);

	return order ? order : (a->line > b->line) - (a->line < b->line);
}

/* Sort the keys. Returns the line of an identity that an earlier line has; 0: none. */
static unsigned sort(struct gn_keys *keys)
{
	unsigned line = 0;

	qsort(keys->key, keys->n, sizeof(*keys->key), compare);
	for (size_t i = 1; i < keys->n && !line; i++)
		if (strcmp(keys->key[i - 1].identity, keys->key[i].identity) == 0)
			line = keys->key[i].line;
	return line;
}

static size_t count_lines(const char *text, size_t bytes)
{
	size_t n = 1;

	for (size_t i = 0; i < bytes; i++)
		n += text[i] == '\n';
	return n;
}

static int complain(struct gn_keys *keys, const char *path, unsigned line, const char *problem,
		    char *why)
{
	char where[16] = "";

	if (line)
		snprintf(where, sizeof(where), ":%u", line);
	snprintf(why, GN_PATH_WHY, "%.300s%s: %s", path, where, problem);
	gn_keys_fini(keys);
	return -EINVAL;
}

int gn_keys_parse(const char *path, const char *text, size_t bytes, struct gn_keys *keys, char *why)
{
	const char *problem = NULL, *end = text + bytes;
	unsigned line = 0, again;

	why[0] = '\0';
	keys->n = 0;
	keys->size = count_lines(text, bytes);
	keys->key = calloc(keys->size, sizeof(*keys->key));
	if (!keys->key)
		return -ENOMEM;
	for (const char *at = text; at < end && !problem;) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));

		stop = stop ? stop : end;
		problem = take_line(keys, at, (size_t)(stop - at), ++line);
		at = stop + (stop < end);
	}
	if (problem)
		return complain(keys, path, line, problem, why);
	if (keys->n == 0) {
		complain(keys, path, 0, "no key: add one with \"gantry key new\"", why);
		return -ENODATA;
	}
	again = sort(keys);
	if (again)
		return complain(keys, path, again,
				"the file has this identity twice: remove one of the lines", why);
	return 0;
}

int gn_keys_read(const char *path, struct gn_keys *keys, char *why)
{
	char *text;
	long n = auth_file_read(path, true, &text, why);
	int rc;

	*keys = (struct gn_keys){0};
	if (n < 0)
		return (int)n;
	rc = gn_keys_parse(path, text, (size_t)n, keys, why);
	auth_file_free(text, n);
	return rc;
}

void gn_keys_fini(struct gn_keys *keys)
{
	if (keys->key)
		OPENSSL_cleanse(keys->key, keys->size * sizeof(*keys->key));
	free(keys->key);
	*keys = (struct gn_keys){0};
}

const struct gn_key *gn_keys_find(const struct gn_keys *keys, const void *identity, size_t length)
{
	char wanted[GN_IDENTITY_MAX + 1] = "";
	const struct gn_key *found = NULL;

	if (length > GN_IDENTITY_MAX)
		length = 0;
	memcpy(wanted, identity, length);
	for (size_t i = 0; i < keys->n; i++)
		if (CRYPTO_memcmp(keys->key[i].identity, wanted, sizeof(wanted)) == 0)
			found = &keys->key[i];
	return length && strlen(wanted) == length ? found : NULL;
}
