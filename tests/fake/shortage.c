/* SPDX-License-Identifier: BSD-3-Clause */
/* shortage.c - see shortage.h */
#include "fake/shortage.h"

#include "fake/allocator.h"

#include <dirent.h>
#include <dlfcn.h>
#include <grp.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <libconfig.h>

static struct shortage *current;
static long n_blocks, n_maps;

#ifdef ALLOCATOR_OURS
static __thread int spared;

bool shortage_can(void)
{
	return true;
}

__attribute__((constructor)) static void begin(void)
{
	const char *number = getenv(SHORTAGE_ENV);
	void *at;

	if (!number)
		return;
	at = mmap(NULL, sizeof(*current), PROT_READ | PROT_WRITE, MAP_SHARED, atoi(number), 0);
	if (at != MAP_FAILED)
		shortage_use(at);
}

static void note(struct shortage *s, void *caller)
{
	const char *name;
	Dl_info info;

	if (!dladdr(caller, &info) || !info.dli_fname)
		return;
	name = strrchr(info.dli_fname, '/');
	strncpy(s->file, name ? name + 1 : info.dli_fname, sizeof(s->file) - 1);
}

static bool is_our_own(void *caller)
{
	Dl_info info, own;

	return dladdr(caller, &info) && dladdr(&n_blocks, &own) && info.dli_fbase == own.dli_fbase;
}

static bool is_granted(void *caller)
{
	struct shortage *s = __atomic_load_n(&current, __ATOMIC_ACQUIRE);
	uint32_t n;

	if (!s || spared || (s->foreign && is_our_own(caller)))
		return true;
	n = __atomic_add_fetch(&s->n, 1, __ATOMIC_RELAXED);
	if (!s->at || n < s->at || (n > s->at && !s->lasts))
		return true;
	if (__atomic_fetch_add(&s->failed, 1, __ATOMIC_RELAXED) == 0)
		note(s, caller);
	errno = ENOMEM;
	return false;
}

static void hold(long blocks)
{
	__atomic_add_fetch(&n_blocks, blocks, __ATOMIC_RELAXED);
}

OURS void *mmap(void *at, size_t length, int rights, int flags, int fd, off_t offset)
{
	long got;

	if (!is_granted(__builtin_return_address(0)))
		return MAP_FAILED;
	got = syscall(SYS_mmap, at, length, rights, flags, fd, offset);
	if (got != -1 && !(flags & MAP_FIXED))
		__atomic_add_fetch(&n_maps, 1, __ATOMIC_RELAXED);
	return (void *)got;
}

OURS void *mmap64(void *at, size_t length, int rights, int flags, int fd, off_t offset)
{
	return mmap(at, length, rights, flags, fd, offset);
}

/* MREMAP_FIXED replaces a mapping at the new address, so the number of mappings decreases. */
OURS void *mremap(void *at, size_t length, size_t new_length, int flags, ...)
{
	void *to = NULL;
	va_list ap;
	long got;

	if (flags & MREMAP_FIXED) {
		va_start(ap, flags);
		to = va_arg(ap, void *);
		va_end(ap);
	}
	got = syscall(SYS_mremap, at, length, new_length, flags, to);
	if (got != -1 && (flags & MREMAP_FIXED))
		__atomic_sub_fetch(&n_maps, 1, __ATOMIC_RELAXED);
	return (void *)got;
}

OURS int munmap(void *at, size_t length)
{
	__atomic_sub_fetch(&n_maps, 1, __ATOMIC_RELAXED);
	return (int)syscall(SYS_munmap, at, length);
}

/* -- libconfig, and glibc's look-ups of users -- */

#define SPARED(type, call, decl, args) \
	OURS type call decl \
	{ \
		type(*next) decl; \
		type got; \
\
		spared++; \
		*(void **)&next = dlsym(RTLD_NEXT, #call); \
		got = next args; \
		spared--; \
		return got; \
	}

SPARED(int, config_read, (config_t * config, FILE *f), (config, f))
SPARED(config_setting_t *, config_setting_add,
       (config_setting_t * parent, const char *name, int type), (parent, name, type))
SPARED(int, config_setting_set_string, (config_setting_t * setting, const char *value),
       (setting, value))
SPARED(config_setting_t *, config_setting_get_elem, (const config_setting_t *setting, unsigned n),
       (setting, n))

SPARED(int, getpwuid_r,
       (uid_t uid, struct passwd *user, char *text, size_t size, struct passwd **user_p),
       (uid, user, text, size, user_p))
SPARED(int, getgrgid_r,
       (gid_t gid, struct group *group, char *text, size_t size, struct group **group_p),
       (gid, group, text, size, group_p))

OURS void config_init(config_t *config)
{
	void (*next)(config_t * config);

	spared++;
	*(void **)&next = dlsym(RTLD_NEXT, "config_init");
	next(config);
	spared--;
}

OURS void config_set_include_dir(config_t *config, const char *dir)
{
	void (*next)(config_t * config, const char *dir);

	spared++;
	*(void **)&next = dlsym(RTLD_NEXT, "config_set_include_dir");
	next(config, dir);
	spared--;
}
#else
bool shortage_can(void)
{
	return false;
}
#endif

void shortage_use(struct shortage *shortage)
{
	__atomic_store_n(&current, shortage, __ATOMIC_RELEASE);
}

long shortage_blocks(void)
{
	return __atomic_load_n(&n_blocks, __ATOMIC_RELAXED);
}

long shortage_maps(void)
{
	return __atomic_load_n(&n_maps, __ATOMIC_RELAXED);
}

long shortage_entries(const char *path)
{
	DIR *dir = opendir(path);
	long n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

long shortage_regions(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[1000];
	long n = 0;

	while (f && fgets(line, sizeof(line), f))
		n += strstr(line, "memfd:") != NULL;
	if (f)
		fclose(f);
	return n;
}
