/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uri.c - the URI of a volume from any text: the result has settings of one device and one role, or
 * a file.
 */
#include "fuzz/require.h"
#include "uri.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look(const struct gc_uri *uri)
{
	require(!uri->config || (*uri->config && !uri->n_sets));
	require(uri->config || (!uri->role && uri->n_sets >= 3));
	for (size_t i = 0; i < uri->n_sets; i++) {
		const char *set = uri->sets[i];

		require(!strncmp(set, "devices.", 8) || !strncmp(set, "roles.volume.connect.", 21));
		require(strchr(set, '=') > set);
		for (; *set; set++)
			require((unsigned char)*set >= 0x20);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *input = malloc(size + 1), text[512] = "";
	struct gc_uri uri;

	if (!input)
		return 0;
	memcpy(input, data, size);
	input[size] = '\0';
	if (gc_uri_parse(&uri, input, text, sizeof(text)) == 0)
		look(&uri);
	else
		require(text[0] != '\0');
	gc_uri_fini(&uri);
	free(input);
	return 0;
}
