/* SPDX-License-Identifier: BSD-3-Clause */
/* near.c - similarity of words, for hints about misspelled keys and values. */
#include <ctype.h>
#include <string.h>

#include "config/config_priv.h"

#define WORD_MAX 40

static int min_of(int a, int b)
{
	return a < b ? a : b;
}

static int same(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/*
 * Returns the Damerau-Levenshtein distance: the number of insertions, deletions, substitutions and
 * swaps of neighbours. Case is ignored. Both words have 1 to WORD_MAX letters.
 */
static int distance(const char *a, int n_a, const char *b, int n_b)
{
	int row[3][WORD_MAX + 1];

	for (int j = 0; j <= n_b; j++)
		row[0][j] = j;
	for (int i = 1; i <= n_a; i++) {
		int *current = row[i % 3], *before = row[(i + 2) % 3], *earlier = row[(i + 1) % 3];

		current[0] = i;
		for (int j = 1; j <= n_b; j++) {
			current[j] = min_of(min_of(before[j], current[j - 1]) + 1,
					    before[j - 1] + !same(a[i - 1], b[j - 1]));
			if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
				current[j] = min_of(current[j], earlier[j - 2] + 1);
		}
	}
	return row[n_a % 3][n_b];
}

int gn_config_near(const char *word, const char *known)
{
	size_t n_word = strlen(word), n_known = strlen(known);
	int d, allowed;

	if (n_word == 0 || n_known == 0 || n_word > WORD_MAX || n_known > WORD_MAX)
		return -1;
	allowed = n_known < 3 ? 0 : n_known < 5 ? 1 : 2;
	d = distance(word, (int)n_word, known, (int)n_known);
	return d <= allowed ? d : -1;
}

bool gn_config_nearer(const char *word, const char *known, int *errors_p)
{
	int errors = gn_config_near(word, known);

	if (errors < 0 || errors >= *errors_p)
		return false;
	*errors_p = errors;
	return true;
}
