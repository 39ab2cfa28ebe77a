/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * main.c - runs a fuzz target once with each file of its corpus, in builds without libFuzzer;
 * prints results in the format of Unity
 */
#include <dirent.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INPUT_BYTES (1u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int feed(const char *folder, const char *name)
{
	static uint8_t buffer[INPUT_BYTES];
	char path[4096];
	uint8_t *exact;
	FILE *file;
	size_t n;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "re");
	if (!file)
		return -1;
	n = fread(buffer, 1, sizeof(buffer), file);
	fclose(file);
	exact = malloc(n ? n : 1); /* exact size: ASan detects an access beyond the end */
	if (!exact)
		return -1;
	memcpy(exact, buffer, n);
	LLVMFuzzerTestOneInput(exact, n);
	free(exact);
	return 0;
}

int main(int argc, char **argv)
{
	const char *name = strrchr(argv[0], '/');
	struct dirent *entry;
	char folder[2048];
	unsigned n = 0, bad = 0;
	DIR *dir;

	(void)argc;
	setvbuf(stdout, NULL, _IOLBF, 0);
	snprintf(folder, sizeof(folder), "%s/fuzz/corpus/%s", TEST_SRCDIR,
		 name ? name + 1 : argv[0]);
	dir = opendir(folder);
	while (dir && (entry = readdir(dir))) {
		int rc;

		if (entry->d_name[0] == '.')
			continue;
		rc = feed(folder, entry->d_name);
		printf("%s:%d:%s:%s\n", __FILE__, __LINE__, entry->d_name,
		       rc ? "FAIL: cannot be read" : "PASS");
		n++;
		bad += rc != 0;
	}
	if (dir)
		closedir(dir);
	LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
	printf("%s:%d:empty_input:PASS\n%u Tests %u Failures 0 Ignored\n", __FILE__, __LINE__,
	       n + 1, bad);
	return bad != 0;
}
