/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * crowd FILE ROLE N - open the volume of a role of a configuration N times, print "ready", keep all
 * sessions without IO until standard input ends, and close them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <gantry/client.h>

#define MOST 1024

static struct gantry_volume *volumes[MOST];

int main(int argc, char **argv)
{
	unsigned long n = argc == 4 ? strtoul(argv[3], NULL, 10) : 0;
	int rc = 0;
	char c;

	if (n < 1 || n > MOST) {
		fprintf(stderr, "usage: crowd FILE ROLE N (1 to %d)\n", MOST);
		return 2;
	}
	for (unsigned long i = 0; i < n && !rc; i++) {
		rc = gantry_volume_open_role(argv[1], argv[2], NULL, &volumes[i]);
		if (rc)
			fprintf(stderr, "crowd: session %lu: %s\n", i + 1, gantry_error());
	}
	if (!rc) {
		puts("ready");
		fflush(stdout);
		while (read(STDIN_FILENO, &c, 1) > 0)
			;
	}
	for (unsigned long i = 0; i < n; i++)
		if (volumes[i] && gantry_volume_close(&volumes[i]))
			rc = 1;
	return rc != 0;
}
