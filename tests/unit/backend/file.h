/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file.h - shared by the tests of the file backend: a directory for each program, with a volume in
 * it.
 */
#ifndef TEST_FILE_H
#define TEST_FILE_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../../plugins/backend/file/file.h"
#include "fake/chain.h"
#include "unity.h"

#define KIB 1024u
#define MIB (1024u * KIB)

static struct fake_host host;
static struct fake_chain chain;
static char dir[256], path[300], path_setting[320];

/* TRY opens the backend on the volume, with these settings; OPEN expects that it succeeds. */
#define TRY(...) \
	fake_chain_backend(&chain, fake_plugin("file"), \
			   fake_conf(fake_plugin("file"), path_setting, __VA_ARGS__, NULL))
#define OPEN(...) TEST_ASSERT_EQUAL_INT(0, TRY(__VA_ARGS__))

static inline void folder_make(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(dir, sizeof dir, "%s/gantry-test-XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(dir))
		fake_fail("%s: cannot make it", dir);
	snprintf(path, sizeof path, "%s/volume", dir);
	snprintf(path_setting, sizeof path_setting, "path=%s", path);
}

static inline void folder_remove(void)
{
	unlink(path);
	if (rmdir(dir))
		fake_fail("%s: something is left in it", dir);
}

static inline void volume_make(uint64_t bytes)
{
	FILE *f = fopen(path, "w");

	if (!f || ftruncate(fileno(f), (off_t)bytes) || fclose(f))
		fake_fail("%s: cannot make it", path);
}

static inline struct file_store *store(void)
{
	return chain.backend;
}

static inline unsigned run(unsigned opcode, uint64_t offset, uint32_t length, void *data)
{
	return fake_do(&chain, opcode, offset, length, data);
}

static inline unsigned run_flags(unsigned opcode, unsigned flags, uint64_t offset, uint32_t length,
				 void *data)
{
	struct gantry_io *io = fake_io(&chain, opcode, offset, length, data);

	io->flags = (uint8_t)flags;
	TEST_ASSERT_EQUAL_INT(0, fake_submit(io));
	for (unsigned turn = 0; io->busy && turn < 100000000u; turn++)
		fake_poll(&chain);
	TEST_ASSERT_FALSE(io->busy);
	return io->status;
}

#endif
