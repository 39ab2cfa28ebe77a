/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/strlist.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int gn_strlist_add(struct gn_strlist *words, const char *word)
{
	const char **grown = realloc(words->word, (words->n + 1) * sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	words->word = grown;
	words->word[words->n++] = word;
	return 0;
}

bool gn_strlist_has(const struct gn_strlist *words, const char *word)
{
	for (size_t i = 0; i < words->n; i++)
		if (!strcmp(words->word[i], word))
			return true;
	return false;
}

void gn_strlist_fini(struct gn_strlist *words)
{
	free(words->word);
	*words = (struct gn_strlist){0};
}
