/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * run_dir.h - a private run directory for the test, so that other programs cannot connect to
 * programs of the test.
 */
#ifndef TEST_RUN_DIR_H
#define TEST_RUN_DIR_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

static char run_dir[] = "/tmp/gantry-doca-XXXXXX";

static inline void make_run_dir(void)
{
	if (!mkdtemp(run_dir) || setenv("GANTRY_RUNDIR", run_dir, 1) != 0)
		abort();
}

static inline int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static inline void remove_run_dir(void)
{
	nftw(run_dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

#endif
