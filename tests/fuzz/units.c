/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * units.c - sizes and times from any text: formatting an accepted value and parsing it again gives
 * the same value.
 */
#include "base/units.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "fuzz/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[GN_UNITS_BYTES], escaped[GN_ESCAPE_BYTES];
	char *input = malloc(size + 1);
	uint64_t value, again;

	if (!input)
		return 0;
	memcpy(input, data, size);
	input[size] = '\0';
	if (gn_size_parse(input, &value) == 0 &&
	    !strchr(gn_size_format(text, sizeof(text), value), '.'))
		require(gn_size_parse(text, &again) == 0 && again == value);
	if (gn_time_parse(input, &value) == 0 &&
	    !strchr(gn_time_format(text, sizeof(text), value), '.'))
		require(gn_time_parse(text, &again) == 0 && again == value);
	gn_escape(escaped, size % sizeof(escaped) + 1, data, size);
	require(strlen(escaped) <= size % sizeof(escaped));
	for (const char *p = escaped; *p; p++)
		require(*p >= 0x20 && *p < 0x7f);
	free(input);
	return 0;
}
