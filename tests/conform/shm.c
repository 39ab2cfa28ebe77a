/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm.c - the conformance suite over shm-comch: two devices that meet in a directory of this test.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "conform/rig.h"

static char dir[256] = "dir=";

struct rig_driver rig_driver = {
	.plugin = "shm-comch",
#ifdef RIG_UNMAPPED
	.setting = {dir, "pci=03:00.0", "mapped=false"},
#else
	.setting = {dir, "pci=03:00.0", "ring_slots=256"},
#endif
};

static void remove_dir(void)
{
	char pci[300];

	snprintf(pci, sizeof(pci), "%s/03%%3A00.0", dir + 4);
	/* not empty if the transport has left a socket or a lock file */
	if (rmdir(pci) || rmdir(dir + 4))
		printf("%s:%d:nothing_is_left_behind:FAIL: %s is not empty\n1 Tests 1 Failures 0 Ignored\n",
		       __FILE__, __LINE__, pci);
}

__attribute__((constructor)) static void make_dir(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(dir, sizeof(dir), "dir=%s/gantry-conform-XXXXXX",
		 tmp && strlen(tmp) < 100 ? tmp : "/tmp");
	if (!mkdtemp(dir + 4))
		abort();
	atexit(remove_dir);
}
