/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * elf.c - any bytes as the file of a plugin: the inspection of its headers ends, reads only the
 * file, and returns a reason.
 *
 * The first byte of an input is inverted: otherwise tools that check packages take the inputs of
 * the corpus for programs without a source.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "loader/loader_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("plugin", MFD_CLOEXEC), rc;
	const uint8_t first = size ? (uint8_t)~data[0] : 0;
	char why[GN_WHY] = "";

	if (fd < 0 || (size && write(fd, data, size) != (ssize_t)size) ||
	    (size && pwrite(fd, &first, 1, 0) != 1))
		abort();
	rc = gn_loader_check_whole(fd, size, why);
	if ((rc != 0) != (why[0] != '\0') || strlen(why) >= GN_WHY)
		abort();
	close(fd);
	return 0;
}
