/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * redact.c - write a configuration without the values that can be secrets
 *
 * No option of gantry holds a secret, but an option of another plugin can. A value can be a secret
 * if its key, or that of a group around it, has a word of a secret; or if it is a URI with a
 * password, or a text with such a key: "key=AQBx".
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/config_priv.h"

#define LEFT_OUT "(left out)"

/* A key is that of a secret if it contains one of `parts`, or ends in one of `words`. */
static const char *const parts[] = {"secret",     "password", "passwd",
				    "passphrase", "token",    "credential"};
static const char *const words[] = {"key", "keys", "psk", "pass", "auth"};

#define N_PARTS (sizeof(parts) / sizeof(parts[0]))
#define N_WORDS (sizeof(words) / sizeof(words[0]))

/* True if `text`, of n characters, ends in `word`, which no other letter or digit precedes. */
static bool ends_in_word(const char *text, size_t n, const char *word)
{
	size_t m = strlen(word);

	return n >= m && !strncasecmp(text + n - m, word, m) &&
	       (n == m || !isalnum((unsigned char)text[n - m - 1]));
}

/* True if the key of n characters names a secret. */
static bool names_secret(const char *key, size_t n)
{
	char copy[128];

	snprintf(copy, sizeof(copy), "%.*s", (int)(n < sizeof(copy) ? n : sizeof(copy) - 1), key);
	for (size_t i = 0; i < N_PARTS; i++)
		if (strcasestr(copy, parts[i]))
			return true;
	for (size_t i = 0; i < N_WORDS; i++)
		if (ends_in_word(key, n, words[i]))
			return true;
	return false;
}

/* True for "scheme://user:password@host", and for a text with "key=" or "token:" in it. */
static bool holds_secret(const char *value)
{
	const char *at = strstr(value, "://");

	if (at && at[3 + strcspn(at + 3, "@/?#")] == '@')
		return true;
	for (at = strpbrk(value, "=:"); at; at = strpbrk(at + 1, "=:")) {
		const char *start = at;

		while (start > value &&
		       (isalnum((unsigned char)start[-1]) || start[-1] == '_' || start[-1] == '-'))
			start--;
		if (start < at && names_secret(start, (size_t)(at - start)))
			return true;
	}
	return false;
}

/* secret: the key of a group around the setting names a secret. */
static void redact(config_setting_t *setting, bool secret)
{
	const char *name = config_setting_name(setting);

	secret = secret || (name && names_secret(name, strlen(name)));
	switch (config_setting_type(setting)) {
	case CONFIG_TYPE_GROUP:
	case CONFIG_TYPE_LIST:
	case CONFIG_TYPE_ARRAY:
		for (int i = 0; i < config_setting_length(setting); i++)
			redact(config_setting_get_elem(setting, (unsigned)i), secret);
		break;
	case CONFIG_TYPE_STRING:
		if (secret || holds_secret(config_setting_get_string(setting)))
			config_setting_set_string(setting, LEFT_OUT);
		break;
	case CONFIG_TYPE_INT:
		if (secret)
			config_setting_set_int(setting, 0);
		break;
	case CONFIG_TYPE_INT64:
		if (secret)
			config_setting_set_int64(setting, 0);
		break;
	case CONFIG_TYPE_FLOAT:
		if (secret)
			config_setting_set_float(setting, 0);
		break;
	default:
		break;
	}
}

/* Parse the text of a configuration again: the strings of the configuration are in use. */
static struct gn_config *copy_of(const struct gn_config *config, int *rc_p)
{
	struct gn_errs errs = {0};
	struct gn_config *copy;
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	*rc_p = -ENOMEM;
	if (!f)
		return NULL;
	gn_config_dump(config, f);
	copy = fclose(f) ? NULL : gn_config_open_text("", text, NULL, 0, &errs);
	if (errs.n)
		*rc_p = gn_errs_rc(&errs);
	gn_errs_fini(&errs);
	free(text);
	return copy;
}

int gn_config_dump_public(const struct gn_config *config, FILE *out)
{
	int rc;
	struct gn_config *copy = copy_of(config, &rc);

	if (!copy)
		return rc;
	redact(config_root_setting(&copy->cfg), false);
	gn_config_dump(copy, out);
	gn_config_close(&copy);
	return 0;
}
