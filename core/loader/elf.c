/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * elf.c - inspect the headers of a shared object before the dynamic linker uses them
 *
 * The linker trusts a file: it maps what the program headers describe, and follows the addresses of
 * the dynamic section. A truncated or corrupt file can crash the process inside dlopen(3). The
 * inspection rejects a file in which
 *
 *     a segment is not inside the file, overlaps another segment, or is too large; an address of
 *     the dynamic section is not inside a segment, or its size is missing; a section of the section
 *     table, if the file has one, is not inside a segment with its rights.
 *
 * It does not inspect the content of tables such as relocations: see probe.c.
 */
#include "loader/loader_priv.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"

#define CLASS (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32)
#define PARTS_MAX 64    /* limit of program headers; usual files have about 10 */
#define DYNAMIC_MAX 512 /* limit of entries of the dynamic section; usual files have about 30 */
#define SECTIONS_MAX 4096
/* limits: bytes from the first to the last address of a plugin, and its alignment */
#define SPAN_MAX (1ull << 30)

/* ELF header of this program or library; the link editor defines the symbol */
extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

struct image {
	int fd;
	uint64_t size;
	char *why;
	ElfW(Ehdr) head;
	ElfW(Phdr) part[PARTS_MAX];
	ElfW(Dyn) dynamic[DYNAMIC_MAX];
	unsigned n_dynamic; /* number of entries before the DT_NULL */
};

/* Returns the name of a machine type for messages. dst: 24 bytes. */
static const char *machine_name(char *dst, unsigned machine)
{
	if (machine == EM_X86_64 || machine == EM_AARCH64)
		return machine == EM_X86_64 ? "x86-64" : "aarch64";
	snprintf(dst, 24, "e_machine %u", machine);
	return dst;
}

static int truncated(const struct image *image)
{
	snprintf(image->why, GN_WHY, "the file is truncated (size=%llu bytes): install it again",
		 (unsigned long long)image->size);
	return -ENOEXEC;
}

static int corrupt(const struct image *image, const char *what, const char *key, uint64_t value)
{
	snprintf(image->why, GN_WHY, "the file is corrupt: %s (%s=0x%llx): install it again", what,
		 key, (unsigned long long)value);
	return -ENOEXEC;
}

static bool is_inside(uint64_t at, uint64_t bytes, uint64_t size)
{
	return bytes <= size && at <= size - bytes;
}

/* Read from the file. Returns false if the file is too short. */
static bool read_at(const struct image *image, uint64_t at, void *dst, size_t bytes)
{
	return is_inside(at, bytes, image->size) &&
	       pread(image->fd, dst, bytes, (off_t)at) == (ssize_t)bytes;
}

/* -- segments -- */

/*
 * Get the segment that contains these addresses. in_file: search only the part of each segment that
 * is in the file. NULL: no such segment.
 */
static const ElfW(Phdr) *find_segment(const struct image *image, uint64_t at, uint64_t bytes,
				      bool in_file)
{
	for (unsigned i = 0; i < image->head.e_phnum; i++) {
		const ElfW(Phdr) *part = &image->part[i];

		if (part->p_type == PT_LOAD && at >= part->p_vaddr &&
		    is_inside(at - part->p_vaddr, bytes, in_file ? part->p_filesz : part->p_memsz))
			return part;
	}
	return NULL;
}

static bool is_alignment(uint64_t align)
{
	return (align & (align - 1)) == 0 && align <= SPAN_MAX;
}

/* Check the header of a loaded segment. last: in and out: end of the previous segment. */
static int check_load(const struct image *image, const ElfW(Phdr) *part, uint64_t *last)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t end;

	if (!is_inside(part->p_offset, part->p_filesz, image->size))
		return truncated(image);
	if (!gn_add_u64(part->p_vaddr, part->p_memsz, &end) || end > SPAN_MAX ||
	    part->p_filesz > part->p_memsz || part->p_memsz == 0)
		return corrupt(image, "size of a segment", "address", part->p_vaddr);
	if (!is_alignment(part->p_align) || (part->p_vaddr - part->p_offset) % page)
		return corrupt(image, "alignment of a segment", "address", part->p_vaddr);
	if (part->p_vaddr < *last)
		return corrupt(image, "segments overlap", "address", part->p_vaddr);
	*last = end;
	return 0;
}

/* Check a header that describes a part of a segment. */
static int check_part(const struct image *image, const ElfW(Phdr) *part)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t bytes = part->p_type == PT_TLS ? part->p_filesz : part->p_memsz;
	const ElfW(Phdr) *segment;

	switch (part->p_type) {
	case PT_DYNAMIC:
	case PT_TLS:
	case PT_NOTE:
	case PT_PHDR:
	case PT_GNU_PROPERTY:
	case PT_GNU_EH_FRAME:
		segment = find_segment(image, part->p_vaddr, bytes, true);
		if (!segment && part->p_type == PT_TLS && bytes == 0)
			break;
		if (!segment ||
		    part->p_offset - segment->p_offset != part->p_vaddr - segment->p_vaddr)
			return corrupt(image, "a program header is not inside a segment", "type",
				       part->p_type);
		if (part->p_type == PT_TLS && (part->p_memsz < bytes || part->p_memsz > SPAN_MAX))
			return corrupt(image, "size of thread-local storage", "bytes",
				       part->p_memsz);
		break;
	case PT_GNU_RELRO:
		segment = find_segment(image, part->p_vaddr, 1, false);
		if (!segment || !(segment->p_flags & PF_W) ||
		    part->p_memsz > segment->p_vaddr + segment->p_memsz + page - part->p_vaddr)
			return corrupt(image, "a program header is not inside a segment", "type",
				       part->p_type);
		break;
	default:
		return 0;
	}
	return is_alignment(part->p_align)
		       ? 0
		       : corrupt(image, "alignment of a program header", "type", part->p_type);
}

static int read_parts(struct image *image)
{
	const ElfW(Ehdr) *head = &image->head;
	unsigned n_dynamic = 0;
	uint64_t last = 0;
	int rc = 0;

	if (head->e_phnum == 0 || head->e_phnum > PARTS_MAX)
		return corrupt(image, "number of program headers", "number", head->e_phnum);
	if (!read_at(image, head->e_phoff, image->part, head->e_phnum * sizeof(image->part[0])))
		return truncated(image);
	for (unsigned i = 0; i < head->e_phnum && !rc; i++)
		if (image->part[i].p_type == PT_LOAD)
			rc = check_load(image, &image->part[i], &last);
	for (unsigned i = 0; i < head->e_phnum && !rc; i++) {
		rc = check_part(image, &image->part[i]);
		n_dynamic += image->part[i].p_type == PT_DYNAMIC;
	}
	return rc || n_dynamic == 1 ? rc : corrupt(image, "dynamic section", "number", n_dynamic);
}

/* -- the dynamic section -- */

/* Get the last entry with the tag, as the linker does; NULL: there is none. */
static const ElfW(Dyn) *find_tag(const struct image *image, uint64_t tag)
{
	for (unsigned i = image->n_dynamic; i > 0; i--)
		if ((uint64_t)image->dynamic[i - 1].d_tag == tag)
			return &image->dynamic[i - 1];
	return NULL;
}

static int read_dynamic(struct image *image)
{
	const ElfW(Phdr) *part = image->part;
	size_t n;

	while (part->p_type != PT_DYNAMIC)
		part++;
	n = part->p_filesz / sizeof(image->dynamic[0]);
	if (n > DYNAMIC_MAX)
		return corrupt(image, "size of the dynamic section", "bytes", part->p_filesz);
	if (!read_at(image, part->p_offset, image->dynamic, n * sizeof(image->dynamic[0])))
		return truncated(image);
	while (image->n_dynamic < n && image->dynamic[image->n_dynamic].d_tag != DT_NULL)
		image->n_dynamic++;
	if (image->n_dynamic == n)
		return corrupt(image, "dynamic section has no end", "entries", n);
	return 0;
}

/*
 * An entry of the dynamic section that is an address: the bytes at the address must be inside a
 * segment.
 */
struct area {
	uint64_t tag;
	/*
	 * tag of the entry with the size of the area; 0: there is none, so only the first `bytes`
	 * are checked
	 */
	uint64_t size_tag;
	uint64_t with;  /* another tag that must be present; 0: none */
	uint32_t bytes; /* bytes of one element of the area */
	uint32_t flags; /* PF_* rights that the segment must have */
	bool in_memory; /* the area can be outside the file, as .bss is */
};

static const struct area areas[] = {
	{DT_STRTAB, DT_STRSZ, DT_SYMTAB, 1, PF_R, false},
	{DT_SYMTAB, 0, DT_STRTAB, sizeof(ElfW(Sym)), PF_R, false},
	{DT_HASH, 0, DT_SYMTAB, 8, PF_R, false},
	{DT_GNU_HASH, 0, DT_SYMTAB, 16, PF_R, false},
	{DT_RELA, DT_RELASZ, DT_RELAENT, sizeof(ElfW(Rela)), PF_R, false},
	{DT_REL, DT_RELSZ, DT_RELENT, sizeof(ElfW(Rel)), PF_R, false},
	{DT_JMPREL, DT_PLTRELSZ, DT_PLTREL, sizeof(ElfW(Rel)) / 2, PF_R, false},
	{DT_INIT_ARRAY, DT_INIT_ARRAYSZ, 0, sizeof(void *), PF_R, false},
	{DT_FINI_ARRAY, DT_FINI_ARRAYSZ, 0, sizeof(void *), PF_R, false},
	{DT_VERSYM, 0, 0, 2, PF_R, false},
	{DT_VERNEED, 0, DT_VERNEEDNUM, sizeof(ElfW(Verneed)), PF_R, false},
	{DT_VERDEF, 0, DT_VERDEFNUM, sizeof(ElfW(Verdef)), PF_R, false},
	{DT_PLTGOT, 0, 0, sizeof(void *), PF_R, true},
	{DT_INIT, 0, 0, 1, PF_X, false},
	{DT_FINI, 0, 0, 1, PF_X, false},
};

static const struct {
	uint64_t tag, value, other_value;
} fixed[] = {
	{DT_SYMENT, sizeof(ElfW(Sym)), sizeof(ElfW(Sym))},
	{DT_RELAENT, sizeof(ElfW(Rela)), sizeof(ElfW(Rela))},
	{DT_RELENT, sizeof(ElfW(Rel)), sizeof(ElfW(Rel))},
	{DT_PLTREL, DT_RELA, DT_REL},
};

static int check_area(const struct image *image, const struct area *area)
{
	const ElfW(Dyn) *entry = find_tag(image, area->tag),
			*size = area->size_tag ? find_tag(image, area->size_tag) : NULL;
	uint64_t bytes = size ? size->d_un.d_val : area->bytes;
	const ElfW(Phdr) *segment;

	if (!entry)
		return size ? corrupt(image, "dynamic section lacks an address", "tag", area->tag)
			    : 0;
	if ((area->size_tag && !size) || (area->with && !find_tag(image, area->with)))
		return corrupt(image, "dynamic section lacks an entry that this address needs",
			       "tag", area->tag);
	segment = find_segment(image, entry->d_un.d_ptr, bytes, !area->in_memory);
	if (!segment || (segment->p_flags & area->flags) != area->flags || bytes % area->bytes)
		return corrupt(image, "address or size in the dynamic section", "tag", area->tag);
	return 0;
}

/* Check the names to which the dynamic section refers. */
static int check_names(const struct image *image)
{
	uint64_t bytes = find_tag(image, DT_STRSZ)->d_un.d_val;

	for (unsigned i = 0; i < image->n_dynamic; i++) {
		uint64_t tag = (uint64_t)image->dynamic[i].d_tag;

		if ((tag == DT_NEEDED || tag == DT_SONAME || tag == DT_RPATH ||
		     tag == DT_RUNPATH) &&
		    image->dynamic[i].d_un.d_val >= bytes)
			return corrupt(image, "name in the dynamic section", "tag", tag);
	}
	return 0;
}

static int check_dynamic(struct image *image)
{
	const ElfW(Dyn) *entry, *size;
	int rc = read_dynamic(image);

	for (size_t i = 0; i < sizeof(areas) / sizeof(areas[0]) && !rc; i++)
		rc = check_area(image, &areas[i]);
	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]) && !rc; i++) {
		entry = find_tag(image, fixed[i].tag);
		if (entry && entry->d_un.d_val != fixed[i].value &&
		    entry->d_un.d_val != fixed[i].other_value)
			rc = corrupt(image, "value in the dynamic section", "tag", fixed[i].tag);
	}
	if (rc)
		return rc;
	if (!find_tag(image, DT_SYMTAB) ||
	    !(find_tag(image, DT_HASH) || find_tag(image, DT_GNU_HASH)))
		return corrupt(image, "dynamic section lacks an address", "tag", DT_SYMTAB);
	entry = find_tag(image, DT_RELACOUNT);
	size = find_tag(image, DT_RELASZ);
	if (entry && (!size || entry->d_un.d_val > size->d_un.d_val / sizeof(ElfW(Rela))))
		return corrupt(image, "value in the dynamic section", "tag", DT_RELACOUNT);
	return check_names(image);
}

/* -- sections -- */

static bool section_fits(const struct image *image, const ElfW(Shdr) *section)
{
	bool in_file = section->sh_type != SHT_NOBITS;
	uint32_t flags = PF_R | (section->sh_flags & SHF_WRITE ? PF_W : 0) |
			 (section->sh_flags & SHF_EXECINSTR ? PF_X : 0);
	const ElfW(Phdr) *segment = find_segment(image, section->sh_addr, section->sh_size,
						 in_file);

	return segment && (segment->p_flags & flags) == flags &&
	       (!in_file ||
		section->sh_offset - segment->p_offset == section->sh_addr - segment->p_vaddr);
}

static uint64_t value_of(const struct image *image, uint64_t tag)
{
	const ElfW(Dyn) *entry = find_tag(image, tag);

	return entry ? entry->d_un.d_val : 0;
}

/*
 * Check that a section agrees with its segment and with the dynamic section, as the link editor has
 * written them.
 */
static int check_section(const struct image *image, const ElfW(Shdr) *section,
			 uint64_t *relocations)
{
	const ElfW(Phdr) *part = image->part;

	if (!(section->sh_flags & SHF_ALLOC) || section->sh_size == 0 ||
	    (section->sh_type == SHT_NOBITS && (section->sh_flags & SHF_TLS)))
		return 0;
	if (!section_fits(image, section))
		return corrupt(image, "a section is not inside a segment", "address",
			       section->sh_addr);
	if (section->sh_type == SHT_RELA || section->sh_type == SHT_REL)
		*relocations += section->sh_size;
	while (part->p_type != PT_DYNAMIC)
		part++;
	if (section->sh_type == SHT_DYNAMIC && section->sh_addr != part->p_vaddr)
		return corrupt(image, "dynamic section", "address", part->p_vaddr);
	if ((section->sh_type == SHT_INIT_ARRAY &&
	     section->sh_addr != value_of(image, DT_INIT_ARRAY)) ||
	    (section->sh_type == SHT_FINI_ARRAY &&
	     section->sh_addr != value_of(image, DT_FINI_ARRAY)) ||
	    (section->sh_type == SHT_DYNSYM && section->sh_addr != value_of(image, DT_SYMTAB)))
		return corrupt(image, "address in the dynamic section differs from its section",
			       "address", section->sh_addr);
	return 0;
}

static int check_sections(const struct image *image)
{
	const ElfW(Ehdr) *head = &image->head;
	uint64_t relocations = 0, described;
	ElfW(Shdr) section;
	int rc = 0;

	if (head->e_shnum == 0)
		return 0; /* the file has no section table: the dynamic linker does not need one */
	if (head->e_shnum > SECTIONS_MAX || head->e_shentsize != sizeof(section))
		return corrupt(image, "number or size of section headers", "number", head->e_shnum);
	for (unsigned i = 0; i < head->e_shnum && !rc; i++)
		rc = read_at(image, head->e_shoff + (uint64_t)i * sizeof(section), &section,
			     sizeof(section))
			     ? check_section(image, &section, &relocations)
			     : truncated(image);
	described = value_of(image, DT_RELASZ) + value_of(image, DT_RELSZ);
	if (!rc && relocations != described &&
	    relocations != described + value_of(image, DT_PLTRELSZ))
		rc = corrupt(image, "number of relocations", "bytes", relocations);
	return rc;
}

int gn_loader_check_whole(int fd, uint64_t size, char *why)
{
	struct image image = {.fd = fd, .size = size, .why = why};
	const ElfW(Ehdr) *head = &image.head;
	char theirs[24], ours[24];
	int rc;

	if (!read_at(&image, 0, &image.head, sizeof(image.head)) ||
	    memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 || head->e_ident[EI_CLASS] != CLASS ||
	    head->e_phentsize != sizeof(image.part[0]))
		return 0; /* not a shared object: the linker reports that */
	if (head->e_machine != __ehdr_start.e_machine) {
		snprintf(
			why, GN_WHY,
			"wrong machine type (file=%s, this machine=%s): install the plugin for this machine",
			machine_name(theirs, head->e_machine),
			machine_name(ours, __ehdr_start.e_machine));
		return -ENOEXEC;
	}
	rc = read_parts(&image);
	if (!rc)
		rc = check_dynamic(&image);
	return rc ? rc : check_sections(&image);
}

struct search {
	ElfW(Addr) address;
	bool found;
};

static int is_in_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct search *search = arg;

	(void)size;
	for (unsigned i = 0; i < info->dlpi_phnum && !search->found; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];

		search->found = part->p_type == PT_LOAD && (part->p_flags & PF_X) &&
				search->address - info->dlpi_addr - part->p_vaddr < part->p_memsz;
	}
	return search->found;
}

bool gn_loader_is_code(const void *address)
{
	struct search search = {.address = (ElfW(Addr))address};

	dl_iterate_phdr(is_in_object, &search);
	return search.found;
}
