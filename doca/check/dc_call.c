/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dc_call.c - the functions of the library below, and what surrounds each call
 *
 * Look-ups are lazy, because the library below can come after this one. A program that was linked
 * with a versioned symbol gets that version of the function.
 */
#include "check/dc.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "check/dc_report.h"
#include "check/dc_trouble.h"

__thread struct dc_thread dc_thread __attribute__((tls_model("initial-exec")));

static void *functions[DC_N_FUNCTIONS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void dc_lock(void)
{
	pthread_mutex_lock(&lock);
	dc_thread.has_lock = true;
}

void dc_unlock(void)
{
	dc_thread.has_lock = false;
	pthread_mutex_unlock(&lock);
}

uint64_t dc_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* -- look-up -- */

/* The tables of the dynamic section of the program that name versions. */
struct dynamic {
	const ElfW(Sym) *symbols;
	const char *strings;
	const ElfW(Half) *versions;
	const ElfW(Verneed) *needed;
	size_t n_needed, n_symbols;
};

/* An address of the dynamic section. The dynamic linker has relocated only some of them. */
static const void *address_of(const struct link_map *map, ElfW(Addr) value)
{
	return (const void *)(value < map->l_addr ? map->l_addr + value : value);
}

static void read_dynamic(const struct link_map *map, struct dynamic *d)
{
	const ElfW(Dyn) *e;
	const uint32_t *hash = NULL;

	for (e = map->l_ld; e->d_tag != DT_NULL; e++) {
		if (e->d_tag == DT_SYMTAB)
			d->symbols = address_of(map, e->d_un.d_ptr);
		else if (e->d_tag == DT_STRTAB)
			d->strings = address_of(map, e->d_un.d_ptr);
		else if (e->d_tag == DT_VERSYM)
			d->versions = address_of(map, e->d_un.d_ptr);
		else if (e->d_tag == DT_VERNEED)
			d->needed = address_of(map, e->d_un.d_ptr);
		else if (e->d_tag == DT_VERNEEDNUM)
			d->n_needed = e->d_un.d_val;
		else if (e->d_tag == DT_GNU_HASH)
			hash = address_of(map, e->d_un.d_ptr);
	}
	/* references come before the hashed definitions */
	d->n_symbols = hash ? hash[1] : 0;
}

static const char *version_name(const struct dynamic *d, ElfW(Half) version)
{
	const ElfW(Verneed) *need = d->needed;
	const ElfW(Vernaux) *aux;
	size_t i, j;

	for (i = 0; i < d->n_needed; i++) {
		aux = (const ElfW(Vernaux) *)((const char *)need + need->vn_aux);
		for (j = 0; j < need->vn_cnt; j++) {
			if ((aux->vna_other & 0x7fff) == (version & 0x7fff))
				return d->strings + aux->vna_name;
			aux = (const ElfW(Vernaux) *)((const char *)aux + aux->vna_next);
		}
		need = (const ElfW(Verneed) *)((const char *)need + need->vn_next);
	}
	return NULL;
}

/* The version of the symbol that the program was linked with, or NULL. */
static const char *version_of(const char *name)
{
	static struct dynamic d;
	static bool is_read;
	struct link_map *map;
	size_t i;

	if (!is_read) {
		map = dlopen(NULL, RTLD_LAZY);
		if (map)
			read_dynamic(map, &d);
		is_read = true;
	}
	if (!d.versions || !d.symbols || !d.strings)
		return NULL;
	for (i = 1; i < d.n_symbols; i++)
		if (d.symbols[i].st_shndx == SHN_UNDEF &&
		    !strcmp(d.strings + d.symbols[i].st_name, name))
			return d.versions[i] > 1 ? version_name(&d, d.versions[i]) : NULL;
	return NULL;
}

bool dc_has(uint16_t function)
{
	const char *name = dc_functions[function].name, *version;
	void *f = __atomic_load_n(&functions[function], __ATOMIC_RELAXED);

	if (f)
		return true;
	version = version_of(name);
	f = version ? dlvsym(RTLD_NEXT, name, version) : NULL;
	if (!f)
		f = dlsym(RTLD_NEXT, name);
	__atomic_store_n(&functions[function], f, __ATOMIC_RELAXED);
	return f != NULL;
}

void *dc_next(uint16_t function)
{
	void *f = __atomic_load_n(&functions[function], __ATOMIC_RELAXED);

	if (f)
		return f;
	if (!dc_has(function)) {
		fprintf(stderr,
			"gantry doca check: %s: no DOCA library has this function: "
			"link the program with the library, do not load it by dlopen()\n",
			dc_functions[function].name);
		abort();
	}
	return functions[function];
}

static bool was_linked;

static __attribute__((constructor)) void note_library(void)
{
	was_linked = dc_has(DC_doca_pe_create) || dc_has(DC_doca_mmap_create);
}

static int find_library(struct dl_phdr_info *info, size_t size, void *found)
{
	const char *name = strrchr(info->dlpi_name, '/');

	(void)size;
	if (name && (strstr(name, "libdoca") || strstr(name, "libgantry-doca")) &&
	    !strstr(name, "check"))
		*(const char **)found = info->dlpi_name;
	return 0;
}

void dc_refuse_dlopen(void)
{
	const char *name = NULL;

	if (was_linked)
		return;
	dl_iterate_phdr(find_library, &name);
	if (name)
		dc_record(
			"refused\t%d\t%s: the program loads this library by dlopen(): link the program with it",
			(int)getpid(), name);
}

/* -- calls -- */

bool dc_begin(struct dc_call *call)
{
	if (dc_thread.depth++ > 0) {
		call->nested = true;
		return true;
	}
	dc_lock();
	dc_rules_before(call);
	dc_replace_callbacks(call);
	if (dc_trouble_is_on)
		dc_trouble_before(call);
	dc_unlock();
	if (dc_trouble_is_on && call->function == DC_doca_pe_progress)
		dc_trouble_progress(call->objects[0]);
	return !call->refused;
}

void dc_end(struct dc_call *call)
{
	if (!call->nested) {
		if (dc_trouble_is_on && call->function == DC_doca_pe_progress)
			dc_trouble_end_progress(call->objects[0]);
		dc_lock();
		dc_rules_after(call);
		dc_unlock();
	}
	dc_thread.depth--;
}

/* -- threads -- */

struct start {
	void *(*run)(void *arg);
	void *arg;
};

static void *run_library_thread(void *arg)
{
	const struct start start = *(struct start *)arg;

	free(arg);
	dc_thread.depth = 1;
	return start.run(start.arg);
}

/* Mark the threads that the DOCA library creates: calls that they make are not the program's. */
__attribute__((visibility("default"))) int pthread_create(pthread_t *thread,
							  const pthread_attr_t *attr,
							  void *(*run)(void *), void *arg)
{
	static int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	struct start *start;
	int rc;

	if (!next)
		next = (__typeof__(next))dlsym(RTLD_NEXT, "pthread_create");
	if (dc_thread.depth == 0)
		return next(thread, attr, run, arg);
	start = malloc(sizeof(*start));
	if (!start)
		return 11; /* EAGAIN */
	*start = (struct start){run, arg};
	rc = next(thread, attr, run_library_thread, start);
	if (rc)
		free(start);
	return rc;
}
