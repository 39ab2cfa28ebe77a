/* SPDX-License-Identifier: BSD-3-Clause */
#include "loader/loader.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <ltdl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/loader_priv.h"

#define SUFFIX ".so"

/* Result of searching a name. path NULL: there is no file of that name. */
struct entry {
	struct entry *next;
	char *path;
	void *ops;
	struct gn_plugin plugin; /* desc NULL: not usable, see why */
	char name[GN_PLUGIN_NAME_MAX];
	int rc; /* -errno: the reason why the plugin is not usable */
	char why[GN_WHY];
};

struct gn_loader {
	char **dirs;
	size_t n_dirs;
	char *dirs_text;
	struct entry *entries;
	bool probes;
	char error[GN_WHY + 4200];
};

/* Get the suffix of a directory in messages: "", or why it cannot have plugins. */
static const char *fault_of(const char *dir)
{
	struct stat st;

	if (stat(dir, &st))
		return errno == ENOENT   ? " (does not exist)"
		       : errno == EACCES ? " (permission denied)"
					 : "";
	if (!S_ISDIR(st.st_mode))
		return " (is not a directory)";
	return access(dir, R_OK) ? " (cannot be read)" : "";
}

#define FAULT_BYTES sizeof(" (is not a directory)") /* the longest text of fault_of() */

static int add_dirs(struct gn_loader *loader, const char *const *dirs, size_t n_dirs)
{
	size_t bytes = sizeof("no directory");
	char *at;

	for (size_t i = 0; i < n_dirs; i++)
		bytes += strlen(dirs[i]) + FAULT_BYTES + 2;
	loader->dirs = calloc(n_dirs + 1, sizeof(*loader->dirs));
	loader->dirs_text = malloc(bytes);
	if (!loader->dirs || !loader->dirs_text)
		return -ENOMEM;
	at = stpcpy(loader->dirs_text, n_dirs ? "" : "no directory");
	for (size_t i = 0; i < n_dirs; i++) {
		loader->dirs[i] = strdup(dirs[i]);
		if (!loader->dirs[i])
			return -ENOMEM;
		loader->n_dirs++;
		at = stpcpy(stpcpy(at, i ? ", " : ""), dirs[i]);
		at = stpcpy(at, fault_of(dirs[i]));
	}
	return 0;
}

int gn_loader_open(const char *const *dirs, size_t n_dirs, struct gn_loader **loader_p,
		   const char **text_p)
{
	struct gn_loader *loader = NULL;
	int rc;

	unsetenv("LTDL_LIBRARY_PATH");
	rc = -EPERM;
	*text_p =
		"cannot load plugins in a process with more rights than its user (setuid, setgid or file capabilities)";
	if (getauxval(AT_SECURE))
		goto out;
	rc = -EINVAL;
	*text_p = "plugin directories must be absolute paths, and not empty";
	for (size_t i = 0; i < n_dirs; i++)
		if (dirs[i][0] != '/')
			goto out;
	rc = -ENOMEM;
	*text_p = "out of memory";
	loader = calloc(1, sizeof(*loader));
	if (!loader || add_dirs(loader, dirs, n_dirs))
		goto out;
	/* lt_dlinit() fails only when out of memory */
	*text_p = "libltdl does not start: out of memory";
	if (lt_dlinit()) {
		lt_dlexit(); /* balances libltdl's initialisation count */
		goto out;
	}
	*text_p = NULL;
	*loader_p = loader;
	return 0;

out:
	gn_loader_close(&loader);
	return rc;
}

void gn_loader_probe(struct gn_loader *loader)
{
	loader->probes = true;
}

static void free_entry(struct entry *e)
{
	free(e->path);
	free(e->ops);
	free(e);
}

void gn_loader_close(struct gn_loader **loader_p)
{
	struct gn_loader *loader = *loader_p;
	struct entry *e, *next;

	*loader_p = NULL;
	if (!loader)
		return;
	for (e = loader->entries; e; e = next) {
		next = e->next;
		free_entry(e);
	}
	for (size_t i = 0; i < loader->n_dirs; i++)
		free(loader->dirs[i]);
	free(loader->dirs);
	free(loader->dirs_text);
	free(loader);
}

/*
 * Get the -errno of a failed load. The linker reports a text only, but errno still has the cause if
 * a resource was exhausted.
 */
static int linker_errno(void)
{
	return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? -errno : -ENOEXEC;
}

/*
 * Map the file behind `link` permanently. libltdl resolves symbols lazily and does not report the
 * reason of a failure. So dlopen(3) is called first and must resolve all symbols. Returns NULL
 * after a failure, with *rc_p and why set; the file can be mapped nevertheless.
 */
static lt_dlhandle map_file(const char *link, int *rc_p, char *why, bool *is_mapped_p)
{
	lt_dlhandle handle = NULL;
	lt_dladvise advise;
	const char *text;
	void *probe;

	errno = 0;
	probe = dlopen(link, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (!probe && access(link, F_OK)) {
		*rc_p = -ENOEXEC;
		snprintf(
			why, GN_WHY,
			"does not load: /proc is not mounted, and the loader needs it to load an open file");
		return NULL;
	}
	if (!probe) {
		*rc_p = linker_errno();
		text = dlerror();
		if (!strncmp(text, link, strlen(link)))
			text += strlen(link) + strspn(text + strlen(link), ": ");
		snprintf(why, GN_WHY, "does not load: %s", text);
		return NULL;
	}
	*is_mapped_p = true;
	errno = 0;
	if (lt_dladvise_init(&advise)) {
		*rc_p = linker_errno();
		snprintf(why, GN_WHY, "libltdl: %s", lt_dlerror());
		dlclose(probe);
		return NULL;
	}
	if (!lt_dladvise_resident(&advise) && !lt_dladvise_local(&advise))
		handle = lt_dlopenadvise(link, advise);
	if (!handle) {
		*rc_p = linker_errno();
		snprintf(why, GN_WHY, "libltdl: %s", lt_dlerror());
	}
	lt_dladvise_destroy(&advise);
	dlclose(probe);
	return handle;
}

/*
 * Find the description. libltdl would derive the symbol prefix from the file name, which is a
 * number here, so this function builds the symbol name.
 */
static const struct gantry_plugin *find_symbol(lt_dlhandle handle, const char *name, char *why)
{
	char symbol[GN_PLUGIN_NAME_MAX + sizeof("_LTX_gantry_plugin")];
	const struct gantry_plugin *desc;

	snprintf(symbol, sizeof(symbol), "%s_LTX_gantry_plugin", name);
	for (char *c = symbol; *c; c++)
		if (*c == '-')
			*c = '_';
	desc = lt_dlsym(handle, symbol);
	if (!desc)
		desc = lt_dlsym(handle, "gantry_plugin");
	if (!desc)
		snprintf(
			why, GN_WHY,
			"not a gantry plugin of that name: it has no symbol %s, which GANTRY_PLUGIN(%.*s) defines",
			symbol, (int)strlen(name), symbol);
	return desc;
}

/*
 * A mapped file; one entry for each file. The linker knows it by the path /proc/self/fd/N, where N
 * is the number of the descriptor fd. So fd stays open as long as the file is mapped: if another
 * plugin got the same number N, the linker would return this file for it.
 */
struct mapped {
	struct mapped *next;
	dev_t dev;
	ino_t ino;
	int fd;
};

static pthread_mutex_t mapped_lock = PTHREAD_MUTEX_INITIALIZER;
static struct mapped *mapped_files;

/* Find the entry of a file; NULL: it was not mapped yet. mapped_lock is held. */
static const struct mapped *find_mapped(const struct stat *st)
{
	const struct mapped *m = mapped_files;

	while (m && (m->dev != st->st_dev || m->ino != st->st_ino))
		m = m->next;
	return m;
}

/* Map the file behind fd. Takes ownership of fd. */
static lt_dlhandle map_once(int fd, int *rc_p, char *why)
{
	/* allocated first, because a mapping cannot be undone */
	struct mapped *m = malloc(sizeof(*m));
	const struct mapped *known = NULL;
	struct stat st = {.st_ino = 0};
	lt_dlhandle handle = NULL;
	bool is_mapped = false;
	char link[40];

	if (!m) {
		*rc_p = -ENOMEM;
		snprintf(why, GN_WHY, "out of memory");
		close(fd);
		return NULL;
	}
	pthread_mutex_lock(&mapped_lock);
	if (!fstat(fd, &st))
		known = find_mapped(&st);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", known ? known->fd : fd);
	handle = map_file(link, rc_p, why, &is_mapped);
	if (!handle && *rc_p == -ENOMEM)
		is_mapped = true; /* it might be mapped: the linker does not report that */
	if (is_mapped && !known) {
		*m = (struct mapped){
			.next = mapped_files, .dev = st.st_dev, .ino = st.st_ino, .fd = fd};
		mapped_files = m;
	} else {
		free(m);
		close(fd);
	}
	pthread_mutex_unlock(&mapped_lock);
	return handle;
}

/* Fill e->plugin, or e->rc and e->why. */
static void load(struct entry *e, int fd)
{
	const struct gantry_plugin *desc;
	lt_dlhandle handle = map_once(fd, &e->rc, e->why);

	if (!handle)
		return;
	desc = find_symbol(handle, e->name, e->why);
	e->rc = desc ? gn_loader_check(desc, e->name, e->why) : -ENOEXEC;
	if (!e->rc)
		e->rc = gn_plugin_ops(desc, &e->ops, e->why);
	if (e->rc)
		return;
	e->plugin.ops = e->ops;
	e->plugin.path = e->path;
	e->plugin.desc = desc;
}

struct attempt {
	struct entry *e;
	int fd;
};

/* In the child process: load the plugin, and read all texts that a listing reads. */
static void attempt(void *arg)
{
	const struct attempt *a = arg;

	load(a->e, a->fd);
	if (a->e->plugin.desc)
		gn_loader_read_all(a->e->plugin.desc);
}

/*
 * Load a plugin, after a probe if enabled. Takes ownership of fd. Fills e->plugin, or e->rc and
 * e->why.
 */
static void probe_and_load(const struct gn_loader *loader, struct entry *e, int fd)
{
	struct attempt a = {e, fd};

	e->rc = loader->probes ? gn_loader_try_in_child(fd, attempt, &a, e->why) : 0;
	if (e->rc)
		close(fd);
	else
		load(e, fd);
}

/* Search DIR/NAME.so in each directory. NULL: out of memory. */
static struct entry *try_name(struct gn_loader *loader, const char *name)
{
	struct entry *e = calloc(1, sizeof(*e));
	int fd = -ENOENT;

	if (!e)
		return NULL;
	snprintf(e->name, sizeof(e->name), "%s", name);
	for (size_t i = 0; i < loader->n_dirs && fd == -ENOENT; i++) {
		free(e->path);
		if (asprintf(&e->path, "%s/%s" SUFFIX, loader->dirs[i], name) < 0) {
			free(e);
			return NULL;
		}
		fd = gn_loader_open_file(loader->dirs[i], strrchr(e->path, '/') + 1, e->why);
	}
	if (fd == -ENOENT) {
		free(e->path);
		e->path = NULL;
	} else if (fd >= 0) {
		probe_and_load(loader, e, fd);
	} else {
		e->rc = fd;
	}
	e->next = loader->entries;
	loader->entries = e;
	return e;
}

/*
 * Get the entry of a name. A plugin that failed to load is tried again, because the cause might be
 * gone.
 */
static struct entry *get_entry(struct gn_loader *loader, const char *name)
{
	struct entry **p = &loader->entries, *e;

	while (*p && (!(*p)->path || strcmp((*p)->name, name)))
		p = &(*p)->next;
	e = *p;
	if (e && e->plugin.desc)
		return e;
	if (e) {
		*p = e->next;
		free_entry(e);
	}
	return try_name(loader, name);
}

static int fail(struct gn_loader *loader, int rc, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int fail(struct gn_loader *loader, int rc, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(loader->error, sizeof(loader->error), fmt, args);
	va_end(args);
	return rc;
}

int gn_loader_find(struct gn_loader *loader, unsigned kind, const char *name,
		   const struct gn_plugin **plugin_p)
{
	struct entry *e;

	if (!gn_plugin_name_ok(name))
		return fail(
			loader, -EINVAL,
			"\"%.64s\" is not the name of a plugin: a-z, 0-9 and -, up to %d characters",
			name, GN_PLUGIN_NAME_MAX - 1);
	e = get_entry(loader, name);
	if (!e)
		return fail(loader, -ENOMEM, "out of memory");
	if (!e->path)
		return fail(loader, -ENOENT, "no plugin \"%s\" in %.4000s", name,
			    loader->dirs_text);
	if (!e->plugin.desc)
		return fail(loader, e->rc, "%.4000s: %s", e->path, e->why);
	if (kind && e->plugin.desc->kind != kind)
		return fail(loader, -ENOEXEC, "%.4000s: is %s, not %s", e->path,
			    gn_kind_phrase(e->plugin.desc->kind), gn_kind_phrase(kind));
	*plugin_p = &e->plugin;
	return 0;
}

const char *gn_loader_error(const struct gn_loader *loader)
{
	return loader->error;
}

const char *gn_loader_dirs(const struct gn_loader *loader)
{
	return loader->dirs_text;
}

/* -- listing -- */

struct found {
	size_t dir;
	char *name; /* file name without ".so" */
};

struct found_list {
	struct found *items;
	size_t n, capacity;
};

static int add_found(struct found_list *list, size_t dir, const char *file)
{
	size_t n = strlen(file), cut = strlen(SUFFIX);

	if (n <= cut || strcmp(file + n - cut, SUFFIX))
		return 0;
	if (list->n == list->capacity) {
		size_t capacity = list->capacity ? 2 * list->capacity : 32;
		struct found *items = realloc(list->items, capacity * sizeof(*items));

		if (!items)
			return -ENOMEM;
		list->items = items;
		list->capacity = capacity;
	}
	list->items[list->n].dir = dir;
	list->items[list->n].name = strndup(file, n - cut);
	if (!list->items[list->n].name)
		return -ENOMEM;
	list->n++;
	return 0;
}

static int read_dir(struct found_list *list, const char *path, size_t index)
{
	struct dirent *item;
	int rc = 0;
	DIR *dir;

	dir = opendir(path);
	if (!dir)
		return 0;
	while (!rc && (item = readdir(dir)))
		rc = add_found(list, index, item->d_name);
	closedir(dir);
	return rc;
}

static int by_name(const void *a, const void *b)
{
	const struct found *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	return order ? order : (x->dir > y->dir) - (x->dir < y->dir);
}

static int show(struct gn_loader *loader, const struct found *found, const char *hidden_by,
		int (*fn)(void *arg, const struct gn_plugin_file *file), void *arg)
{
	struct gn_plugin_file file = {.name = found->name};
	char *path, *why = NULL;
	struct entry *e;
	int rc = -ENOMEM;

	if (asprintf(&path, "%s/%s" SUFFIX, loader->dirs[found->dir], found->name) < 0)
		return -ENOMEM;
	file.path = path;
	if (!gn_plugin_name_ok(found->name)) {
		file.why = "not the name of a plugin: a-z, 0-9 and -";
	} else if (hidden_by) {
		if (asprintf(&why, "hidden by the plugin in %s", hidden_by) < 0)
			goto out;
		file.why = why;
	} else {
		e = get_entry(loader, found->name);
		if (!e)
			goto out;
		file.plugin = e->plugin.desc ? &e->plugin : NULL;
		file.why = e->plugin.desc ? NULL : e->path ? e->why : "the file was removed";
	}
	rc = fn(arg, &file);
out:
	free(why);
	free(path);
	return rc;
}

int gn_loader_each(struct gn_loader *loader,
		   int (*fn)(void *arg, const struct gn_plugin_file *file), void *arg)
{
	struct found_list list = {0};
	const char *first_dir = NULL;
	int rc = 0;

	for (size_t i = 0; i < loader->n_dirs && !rc; i++)
		rc = read_dir(&list, loader->dirs[i], i);
	if (list.n)
		qsort(list.items, list.n, sizeof(*list.items), by_name);
	for (size_t i = 0; i < list.n && !rc; i++) {
		bool again = i && !strcmp(list.items[i].name, list.items[i - 1].name);

		if (!again)
			first_dir = loader->dirs[list.items[i].dir];
		rc = show(loader, &list.items[i], again ? first_dir : NULL, fn, arg);
	}
	for (size_t i = 0; i < list.n; i++)
		free(list.items[i].name);
	free(list.items);
	return rc;
}
