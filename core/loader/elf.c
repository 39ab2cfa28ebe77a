/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A file that was cut short: the linker would map it, and the process would die of a page that is not there. And one for another
 * machine, of which the linker says that there is no such file.
 */
#include "loader/loader_priv.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CLASS (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32)

extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden"))); /* of this program, or library: the linker's */

/* dst: 24 bytes. */
static const char *machine_name(char *dst, unsigned machine)
{
	if (machine == EM_X86_64 || machine == EM_AARCH64)
		return machine == EM_X86_64 ? "x86-64" : "aarch64";
	snprintf(dst, 24, "number %u of ELF", machine);
	return dst;
}

int gn_loader_check_whole(int fd, uint64_t size, char *why)
{
	ElfW(Ehdr) head;
	ElfW(Phdr) part;
	char theirs[24], ours[24];

	if (pread(fd, &head, sizeof(head), 0) != (ssize_t)sizeof(head) || memcmp(head.e_ident, ELFMAG, SELFMAG) ||
	    head.e_ident[EI_CLASS] != CLASS || head.e_phentsize != sizeof(part))
		return 0; /* the linker knows how to say that this is no shared object */
	if (head.e_machine != __ehdr_start.e_machine) {
		snprintf(why, GN_WHY, "it is made for machines of another kind, %s, and this is %s; install the one for here",
			 machine_name(theirs, head.e_machine), machine_name(ours, __ehdr_start.e_machine));
		return -ENOEXEC;
	}
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
