/* SPDX-License-Identifier: BSD-3-Clause */
/* A file that was cut short: the linker would map it, and the process would die of a page that is not there. */
#include "loader/loader_priv.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CLASS (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32)

int gn_loader_check_whole(int fd, uint64_t size, char *why)
{
	ElfW(Ehdr) head;
	ElfW(Phdr) part;

	if (pread(fd, &head, sizeof(head), 0) != (ssize_t)sizeof(head) || memcmp(head.e_ident, ELFMAG, SELFMAG) ||
	    head.e_ident[EI_CLASS] != CLASS || head.e_phentsize != sizeof(part))
		return 0; /* the linker knows how to say that this is no shared object of this machine */
	for (unsigned i = 0; i < head.e_phnum; i++) {
		uint64_t at = head.e_phoff + (uint64_t)i * sizeof(part);

		if (at > size || size - at < sizeof(part) ||
		    pread(fd, &part, sizeof(part), (off_t)at) != (ssize_t)sizeof(part))
			break;
		if (part.p_type == PT_LOAD && (part.p_offset > size || part.p_filesz > size - part.p_offset))
			break;
		if (i + 1 == head.e_phnum)
			return 0;
	}
	snprintf(why, GN_WHY, "the file is cut short at %llu bytes; install it again", (unsigned long long)size);
	return -ENOEXEC;
}
