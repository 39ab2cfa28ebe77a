/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * self_test.c - runs the soak test with seeded bugs: each must be reported as the right kind of
 * error
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "soak/driver.h"

static const struct {
	const char *topology; /* "": those of the schedule */
	const char *bug, *what;
	const char *kinds; /* one of these kinds must be reported first */
} bugs[] = {
	{"", "", "no bug: no error", ""},
	{"", "lose", "a write that is acknowledged and not done", "stale"},
	{"", "lose-read", "a read that is not done", "foreign"},
	{"", "misdirect", "a write to the wrong block", "foreign stale status"},
	{"", "doubled", "an old write that is done again later", "stale"},
	{"", "late", "a write that is done after its client has got an answer", "late"},
	{"", "twice", "an IO that completes twice", "twice"},
	{"", "forget", "an IO that never completes", "hang"},
	{"", "stay", "clients that stay with a gateway that has failed", "hang"},
	{"", "leak", "a descriptor that a gateway leaks", "leak"},
	{"", "leak-map", "a mapping that a client leaks", "leak"},
	{"", "leak-memory", "memory that a client leaks", "leak"},
	{"", "leak-thread", "a thread that a client leaks", "leak"},
	{"", "leak-file", "a file that a client leaves in the runtime directory", "leak"},
	{"", "leak-process", "a process that a killed client has started", "leak"},
	{"", "die", "a client that ends by itself, with status 0", "died"},
	{"", "flip-old", "an old block in the store", "stale"},
	{"", "flip-torn", "a torn block in the store", "torn"},
	{"", "tear", "a write whose second half is not done", "torn stale status"},
	{"stripe", "lose", "a write that is acknowledged and not done", "stale"},
	{"stripe", "misdirect", "a write to the wrong block", "foreign stale status"},
	{"stripe", "no-uuid", "gateways that accept any leg", "status"},
	{"failover", "lose", "a write that is acknowledged and not done", "stale"},
	{"failover", "stay", "clients that have the path of one gateway only", "hang"},
	{"nbd", "lose", "a write that is acknowledged and not done", "stale"},
	{"nbd", "misdirect", "a write to the wrong block", "foreign stale status"},
	{"nbd", "relay-lose", "a write that the server acknowledges and never gets", "stale"},
	{"nbd", "relay-late", "a write that the server does again later", "stale"},
	{"nbd", "relay-flip", "a server that changes data", "foreign"},
	{"nbd", "relay-error", "IO that fails although its server answers in time", "status"},
	{"nbd", "relay-mute", "a server that never answers", "hang"},
	{"nbd", "same-size", "another export, of the same size", "foreign status"},
	{"rbd", "lose", "a write that is acknowledged and not done", "stale"},
	{"rbd", "misdirect", "a write to the wrong block", "foreign stale status"},
	{"rbd", "flip-old", "a block of the image that another program has written", "foreign"},
	{"rbd", "same-uuid", "another image with the UUID of the first", "foreign status"},
	{"rbd", "short-stall", "a target that does not fence its client after a stall", "hang"},
	{"rbd", "unserved", "an image that is deleted", "status"},
};

static int one(const char *program, unsigned i)
{
	char command[1024], line[512], kind[32] = "";
	FILE *f;
	int rc;

	snprintf(command, sizeof(command),
		 "'%s' --bug '%s' --kills 4 --writes 8000 --hang-ms %u --limit 120 --seed %u %s %s",
		 program, bugs[i].bug, !strcmp(bugs[i].kinds, "hang") ? 10000u : 60000u, i + 1,
		 bugs[i].topology[0] ? "--topology" : "", bugs[i].topology);
	f = popen(command, "re");
	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f)) {
		printf("# %s", line);
		for (unsigned k = 0; k < SOAK_KINDS && !kind[0]; k++)
			if (!strncmp(line, soak_kinds[k], strlen(soak_kinds[k])) &&
			    line[strlen(soak_kinds[k])] == ':')
				snprintf(kind, sizeof(kind), "%s", soak_kinds[k]);
	}
	rc = pclose(f);
	if (WIFEXITED(rc) && WEXITSTATUS(rc) == SOAK_SKIPPED)
		return SOAK_SKIPPED;
	if (!bugs[i].kinds[0])
		return rc == 0 ? 0 : -1;
	return rc != 0 && kind[0] && strstr(bugs[i].kinds, kind) ? 0 : -1;
}

int self_test(const char *program)
{
	unsigned n = sizeof(bugs) / sizeof(bugs[0]), failed = 0;
	int rc;

	printf("1..%u\n", n);
	for (unsigned i = 0; i < n; i++) {
		rc = one(program, i);
		failed += rc < 0;
		printf("%sok %u - %s%s%s: %s%s%s\n", rc < 0 ? "not " : "", i + 1, bugs[i].topology,
		       bugs[i].topology[0] ? ": " : "", bugs[i].bug[0] ? bugs[i].bug : "none",
		       bugs[i].what, rc == SOAK_SKIPPED ? " # SKIP " : "",
		       rc == SOAK_SKIPPED ? service_lacks(topology_find(bugs[i].topology)->service)
					  : "");
	}
	return failed != 0;
}
