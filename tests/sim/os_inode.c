/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * os_inode.c - inodes of the simulated file system: contents, names, and the effect of a power cut
 * on them
 *
 * An inode has two layers: contents as processes see them, and durable contents. Each change of the
 * layer that processes see is kept in a list of its inode until it is durable. A sync marks the
 * changes that it covers as safe. Changes reach the durable layer in the order in which they were
 * made, at the latest at a power cut, which keeps or loses the unsafe ones as drawn. So a safe
 * change is never overwritten by an older one. Changes of names are kept in the same way in one
 * list.
 */
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "disk.h"

#define BIRTH_EPOCH 1700000000u /* s of CLOCK_REALTIME when a run begins */
/* a change of more sectors than this is torn into at most about this many larger parts */
#define TEAR_PARTS 256u

enum change_kind {
	CHANGE_WRITE,
	CHANGE_ZERO,  /* the range is allocated and reads as zeroes */
	CHANGE_PUNCH, /* the range is a hole */
	CHANGE_SIZE,  /* the size becomes `offset` bytes */
	CHANGE_GROW,  /* the size becomes `offset` bytes unless it is larger */
	CHANGE_MODE,  /* `offset` has the permissions */
	CHANGE_XATTR, /* the data is a struct sim_xattr */
};

struct sim_change {
	struct sim_change *next;
	enum change_kind kind;
	bool safe; /* a power cut keeps it */
	uint64_t number;
	uint64_t offset, bytes;
	uint8_t data[];
};

/* A name that was created, removed (inode NULL), or renamed from `old` in the directory `from`. */
struct name_change {
	struct name_change *next, *previous;
	bool safe, kept;
	uint64_t number;
	struct sim_inode *dir, *inode, *from; /* from NULL: not a rename */
	char name[NAME_MAX + 1], old[NAME_MAX + 1];
};

static struct sim_inode *inodes;
static struct name_change *names, *last_name;
static uint64_t last_name_number;
static ino_t last_ino;

struct sim_inode *sim_inodes(void)
{
	return inodes;
}

/* -- changes of an inode -- */

static bool is_data(const struct sim_change *change)
{
	return change->kind < CHANGE_MODE;
}

/* Apply the bytes `from` to `to` of the change; apply a change without a range as a whole. */
static void apply_part(struct sim_contents *c, const struct sim_change *change, uint64_t from,
		       uint64_t to)
{
	switch (change->kind) {
	case CHANGE_WRITE:
		sim_contents_write(c, from, change->data + (from - change->offset), to - from);
		if (to > c->size)
			c->size = to;
		break;
	case CHANGE_ZERO:
		sim_contents_write(c, from, NULL, to - from);
		sim_contents_allocate(c, from, to);
		break;
	case CHANGE_PUNCH:
		sim_contents_drop(c, from, to);
		break;
	case CHANGE_GROW:
		if (change->offset > c->size)
			c->size = change->offset;
		break;
	case CHANGE_SIZE:
		sim_contents_set_size(c, change->offset);
		break;
	case CHANGE_MODE:
		c->mode = (c->mode & S_IFMT) | (mode_t)change->offset;
		break;
	case CHANGE_XATTR:
		sim_contents_set_xattr(c, (const struct sim_xattr *)change->data);
		break;
	}
}

static void apply(struct sim_contents *c, const struct sim_change *change)
{
	apply_part(c, change, change->offset, change->offset + change->bytes);
}

/* Apply or lose each sector of the change, or each of TEAR_PARTS parts, as drawn. */
static void apply_torn(struct sim_contents *c, const struct sim_change *change)
{
	uint64_t from = change->offset, end = from + change->bytes, to;
	uint64_t part = (change->bytes / TEAR_PARTS + SIM_SECTOR) / SIM_SECTOR * SIM_SECTOR;

	for (; from < end; from = to) {
		to = (from + part) / SIM_SECTOR * SIM_SECTOR;
		if (to > end)
			to = end;
		if (sim_draw(2) != 0)
			apply_part(c, change, from, to);
	}
}

static struct sim_change *change_new(enum change_kind kind, uint64_t offset, uint64_t bytes,
				     const void *data, size_t n)
{
	struct sim_change *change = sim_host_alloc(sizeof(*change) + n);

	change->kind = kind;
	change->offset = offset;
	change->bytes = bytes;
	if (n != 0)
		memcpy(change->data, data, n);
	return change;
}

/* Make the change visible to processes. Takes ownership of it. */
static void make_change(struct sim_inode *inode, struct sim_change *change)
{
	apply(&inode->layers[SIM_SEEN], change);
	change->number = ++inode->n_changes;
	if (inode->fs != SIM_FS_DISK) {
		sim_host_free(change);
		return;
	}
	*inode->changes_end = change;
	inode->changes_end = &change->next;
}

static void remove_change(struct sim_inode *inode, struct sim_change **at)
{
	struct sim_change *change = *at;

	*at = change->next;
	if (inode->changes_end == &change->next)
		inode->changes_end = at;
	sim_host_free(change);
}

/*
 * Make safe changes durable, in their order among changes of one kind: data and attributes are
 * independent.
 */
static void settle(struct sim_inode *inode)
{
	struct sim_change **at = &inode->changes;
	bool waits[2] = {false, false};

	while (*at) {
		bool *wait = &waits[is_data(*at)];

		if ((*at)->safe && !*wait) {
			apply(&inode->layers[SIM_DURABLE], *at);
			remove_change(inode, at);
		} else {
			*wait = true;
			at = &(*at)->next;
		}
	}
}

static bool covers(const struct sim_cover *cover, const struct sim_change *change)
{
	if (change->number > cover->last_number || change->number < cover->first_number)
		return false;
	if (!is_data(change))
		return !cover->data_only;
	return change->bytes == 0 ||
	       (change->offset < cover->to && change->offset + change->bytes > cover->from);
}

/*
 * Let writeback fail: the disk has a drawn part of the covered data, and no later sync writes the
 * rest.
 */
static void lose(struct sim_inode *inode, const struct sim_cover *cover)
{
	for (struct sim_change *change = inode->changes; change; change = change->next) {
		if (!covers(cover, change) || change->kind != CHANGE_WRITE || change->safe)
			continue;
		if (sim_draw(2) != 0) {
			change->safe = true;
			continue;
		}
		/* the size is part of the inode, which is written separately and may succeed */
		change->kind = CHANGE_GROW;
		change->offset += change->bytes;
		change->bytes = 0;
	}
	inode->n_errors++;
	inode->error_reported = false;
}

static void make_safe(struct sim_inode *inode, const struct sim_cover *cover)
{
	for (struct sim_change *change = inode->changes; change; change = change->next)
		if (covers(cover, change))
			change->safe = true;
}

void sim_inode_sync(struct sim_inode *inode, const struct sim_cover *cover, bool fails)
{
	if (fails)
		lose(inode, cover);
	else
		make_safe(inode, cover);
	settle(inode);
}

void sim_inode_write(struct sim_inode *inode, uint64_t at, const void *from, size_t bytes)
{
	make_change(inode, change_new(CHANGE_WRITE, at, bytes, from, bytes));
}

void sim_inode_punch(struct sim_inode *inode, uint64_t at, uint64_t bytes)
{
	make_change(inode, change_new(CHANGE_PUNCH, at, bytes, NULL, 0));
}

void sim_inode_zero(struct sim_inode *inode, uint64_t at, uint64_t bytes)
{
	make_change(inode, change_new(CHANGE_ZERO, at, bytes, NULL, 0));
}

void sim_inode_allocate(struct sim_inode *inode, uint64_t at, uint64_t bytes)
{
	const struct sim_contents *c = &inode->layers[SIM_SEEN];
	uint64_t end = (at + bytes + SIM_PAGE - 1) / SIM_PAGE * SIM_PAGE, to;

	for (uint64_t from = at / SIM_PAGE * SIM_PAGE; from < end; from = to) {
		bool hole = sim_contents_have_hole(c, from, from + 1);

		for (to = from + SIM_PAGE;
		     to < end && sim_contents_have_hole(c, to, to + 1) == hole; to += SIM_PAGE)
			;
		if (hole)
			sim_inode_zero(inode, from, to - from);
	}
}

void sim_inode_grow(struct sim_inode *inode, uint64_t size)
{
	if (size > inode->layers[SIM_SEEN].size)
		make_change(inode, change_new(CHANGE_GROW, size, 0, NULL, 0));
}

bool sim_inode_has_hole(const struct sim_inode *inode, uint64_t from, uint64_t to)
{
	return sim_contents_have_hole(&inode->layers[SIM_SEEN], from, to);
}

size_t sim_inode_read(const struct sim_inode *inode, uint64_t at, void *to, size_t bytes)
{
	const struct sim_contents *c = &inode->layers[SIM_SEEN];

	if (at >= c->size)
		return 0;
	if (bytes > c->size - at)
		bytes = c->size - at;
	sim_contents_read(c, at, to, bytes);
	return bytes;
}

void sim_inode_set_mode(struct sim_inode *inode, mode_t permissions)
{
	make_change(inode, change_new(CHANGE_MODE, permissions & 07777, 0, NULL, 0));
}

void sim_inode_truncate(struct sim_inode *inode, uint64_t size)
{
	make_change(inode, change_new(CHANGE_SIZE, size, 0, NULL, 0));
}

void sim_inode_set_xattr(struct sim_inode *inode, const char *name, const void *value, size_t n)
{
	struct sim_xattr x = {.n = n};

	if (strlen(name) >= sizeof(x.name) || n > sizeof(x.value))
		sim_fail("attribute %s of %zu bytes", name, n);
	strcpy(x.name, name);
	memcpy(x.value, value, n);
	make_change(inode, change_new(CHANGE_XATTR, 0, 0, &x, sizeof(x)));
}

const struct sim_xattr *sim_inode_xattr(const struct sim_inode *inode, const char *name)
{
	return sim_contents_find_xattr(&inode->layers[SIM_SEEN], name);
}

/* -- names -- */

struct sim_inode *sim_dir_find(const struct sim_inode *dir, const char *name)
{
	const struct sim_entry *e =
		*sim_contents_find_entry((struct sim_contents *)&dir->layers[SIM_SEEN], name);

	return e ? e->inode : NULL;
}

static void apply_name(const struct name_change *change, enum sim_layer layer)
{
	if (change->from)
		sim_contents_set_entry(&change->from->layers[layer], change->old, NULL);
	sim_contents_set_entry(&change->dir->layers[layer], change->name, change->inode);
}

static void remove_name_change(struct name_change *change)
{
	*(change->previous != NULL ? &change->previous->next : &names) = change->next;
	*(change->next != NULL ? &change->next->previous : &last_name) = change->previous;
	sim_host_free(change);
}

/* Make the oldest changes of names durable, up to the first that is not safe. */
static void settle_names(void)
{
	while (names && names->safe) {
		apply_name(names, SIM_DURABLE);
		remove_name_change(names);
	}
}

static void change_name(struct sim_inode *dir, const char *name, struct sim_inode *inode,
			struct sim_inode *from, const char *old)
{
	struct name_change *change = sim_host_alloc(sizeof(*change));

	change->number = ++last_name_number;
	change->dir = dir;
	change->inode = inode;
	change->from = from;
	strcpy(change->name, name);
	strcpy(change->old, old);
	apply_name(change, SIM_SEEN);
	if (inode && sim_inode_type(inode) == S_IFDIR)
		inode->parent = dir;
	if (dir->fs != SIM_FS_DISK) {
		sim_host_free(change);
		return;
	}
	change->previous = last_name;
	*(last_name != NULL ? &last_name->next : &names) = change;
	last_name = change;
}

void sim_dir_add(struct sim_inode *dir, const char *name, struct sim_inode *inode)
{
	change_name(dir, name, inode, NULL, "");
}

void sim_dir_remove(struct sim_inode *dir, const char *name)
{
	change_name(dir, name, NULL, NULL, "");
}

void sim_dir_rename(struct sim_inode *from, const char *old, struct sim_inode *to, const char *name)
{
	change_name(to, name, sim_dir_find(from, old), from, old);
}

uint64_t sim_names_number(void)
{
	return last_name_number;
}

void sim_names_sync(const struct sim_inode *dir, uint64_t last_number)
{
	for (struct name_change *change = names; change && change->number <= last_number;
	     change = change->next)
		if (!dir || change->dir == dir || change->from == dir)
			change->safe = true;
	settle_names();
}

nlink_t sim_inode_links(const struct sim_inode *inode)
{
	nlink_t n = 0;

	if (sim_inode_type(inode) == S_IFDIR)
		return 2;
	for (const struct sim_inode *dir = inodes; dir; dir = dir->next)
		for (const struct sim_entry *e = dir->layers[SIM_SEEN].entries; e; e = e->next)
			n += e->inode == inode;
	return n;
}

static const struct sim_entry *find_name(const struct sim_inode *inode,
					 const struct sim_inode **dir_p)
{
	for (const struct sim_inode *dir = inodes; dir; dir = dir->next)
		for (const struct sim_entry *e = dir->layers[SIM_SEEN].entries; e; e = e->next)
			if (e->inode == inode) {
				*dir_p = dir;
				return e;
			}
	return NULL;
}

void sim_inode_path(const struct sim_inode *inode, char *out, size_t bytes)
{
	const struct sim_inode *dir;
	const struct sim_entry *e = find_name(inode, &dir);
	size_t n;

	snprintf(out, bytes, "%s", inode->parent == inode ? "/" : "");
	if (!e)
		return;
	sim_inode_path(dir, out, bytes);
	n = strlen(out);
	snprintf(out + n, bytes - n, "%s%s", n > 1 ? "/" : "", e->name);
}

/* -- inodes -- */

static void free_changes(struct sim_inode *inode)
{
	while (inode->changes)
		remove_change(inode, &inode->changes);
}

struct sim_inode *sim_inode_make(enum sim_fs fs, mode_t mode, uid_t uid)
{
	struct sim_inode *inode = sim_host_alloc(sizeof(*inode));

	inode->ino = ++last_ino;
	inode->fs = fs;
	inode->uid = uid;
	inode->birth_ns = sim_now();
	inode->changes_end = &inode->changes;
	inode->layers[SIM_SEEN].mode = inode->layers[SIM_DURABLE].mode = mode;
	inode->next = inodes;
	inodes = inode;
	return inode;
}

struct sim_inode *sim_inode_new(const struct sim_inode *dir, mode_t mode, uid_t uid)
{
	return sim_inode_make(dir->fs, mode, uid);
}

void sim_inode_stat(const struct sim_inode *inode, struct stat *st)
{
	const struct sim_contents *c = &inode->layers[SIM_SEEN];

	memset(st, 0, sizeof(*st));
	st->st_dev = inode->fs == SIM_FS_DISK ? makedev(253, 0) : makedev(0, 20u + inode->fs);
	st->st_ino = inode->ino;
	st->st_mode = c->mode;
	st->st_nlink = sim_inode_links(inode);
	st->st_uid = st->st_gid = inode->uid;
	st->st_size = (off_t)c->size;
	st->st_blksize = SIM_PAGE;
	for (size_t i = 0; i < c->n_pages; i++)
		st->st_blocks += c->pages[i] ? SIM_PAGE / 512 : 0;
	st->st_mtim.tv_sec = (time_t)(BIRTH_EPOCH + inode->birth_ns / 1000000000u);
	st->st_mtim.tv_nsec = (long)(inode->birth_ns % 1000000000u);
	st->st_atim = st->st_ctim = st->st_mtim;
}

off_t sim_inode_seek(const struct sim_inode *inode, off_t from, int whence)
{
	const struct sim_contents *c = &inode->layers[SIM_SEEN];
	uint64_t at = (uint64_t)from;

	if (from < 0 || at >= c->size)
		return -ENXIO;
	while (at < c->size && sim_contents_have_hole(c, at, at + 1) != (whence == SEEK_HOLE))
		at = (at / SIM_PAGE + 1) * SIM_PAGE;
	if (at >= c->size)
		return whence == SEEK_HOLE ? (off_t)c->size : -ENXIO;
	return (off_t)at;
}

void sim_inode_fill(struct sim_inode *inode, const void *bytes, size_t n)
{
	free_changes(inode);
	for (int i = 0; i < SIM_LAYERS; i++) {
		sim_contents_drop(&inode->layers[i], 0,
				  (uint64_t)inode->layers[i].n_pages * SIM_PAGE);
		if (n != 0)
			sim_contents_write(&inode->layers[i], 0, bytes, n);
		inode->layers[i].size = n;
	}
}

void sim_inodes_clear(void)
{
	while (names)
		remove_name_change(names);
	while (inodes) {
		struct sim_inode *inode = inodes;

		inodes = inode->next;
		free_changes(inode);
		for (int i = 0; i < SIM_LAYERS; i++)
			sim_contents_free(&inode->layers[i]);
		sim_host_free(inode->target);
		sim_host_free(inode);
	}
	last_ino = 1;
	last_name_number = 0;
}

/* -- the power cut -- */

static bool same_name(const struct sim_inode *a, const char *a_name, const struct sim_inode *b,
		      const char *b_name)
{
	return a && a == b && strcmp(a_name, b_name) == 0;
}

static bool shares_name(const struct name_change *a, const struct name_change *b)
{
	return same_name(a->dir, a->name, b->dir, b->name) ||
	       same_name(a->dir, a->name, b->from, b->old) ||
	       same_name(a->from, a->old, b->dir, b->name) ||
	       same_name(a->from, a->old, b->from, b->old);
}

/*
 * Draw which changes of names the power cut keeps; it keeps each safe one. With a journal, it loses
 * a drawn number of the newest changes. Without a journal, draw for each change whether it is kept.
 * A kept change also keeps the older changes of the same name.
 */
static void draw_names(bool journals)
{
	uint32_t n = 0, n_safe = 0;

	for (struct name_change *change = names; change; change = change->next) {
		n++;
		if (change->safe)
			n_safe = n;
	}
	if (journals)
		n = n_safe + sim_draw(n - n_safe + 1);
	for (struct name_change *change = names; change; change = change->next) {
		change->kept = journals ? n != 0 : change->safe || sim_draw(2) != 0;
		n -= n != 0;
	}
	for (struct name_change *change = last_name; change && !journals; change = change->previous)
		for (struct name_change *later = change->next; later && !change->kept;
		     later = later->next)
			change->kept = later->kept && shares_name(change, later);
}

static void cut_names(bool journals)
{
	draw_names(journals);
	while (names) {
		if (names->kept)
			apply_name(names, SIM_DURABLE);
		remove_name_change(names);
	}
}

void sim_inode_cut(struct sim_inode *inode)
{
	struct sim_contents *durable = &inode->layers[SIM_DURABLE];

	for (const struct sim_change *change = inode->changes; change; change = change->next) {
		uint32_t fate = change->safe ? 0 : sim_draw(3);

		if (fate == 0)
			apply(durable, change);
		else if (fate == 1)
			apply_torn(durable, change);
	}
	free_changes(inode);
	sim_contents_copy(&inode->layers[SIM_SEEN], durable);
	inode->n_errors = 0;
	inode->error_reported = false;
}

static void forget_sockets(struct sim_contents *c)
{
	struct sim_entry **at = &c->entries;

	while (*at) {
		struct sim_entry *e = *at;

		if (sim_inode_type(e->inode) == S_IFSOCK) {
			*at = e->next;
			sim_host_free(e);
		} else {
			at = &e->next;
		}
	}
}

static void find_parents(void)
{
	for (struct sim_inode *dir = inodes; dir; dir = dir->next)
		for (struct sim_entry *e = dir->layers[SIM_SEEN].entries; e; e = e->next)
			if (sim_inode_type(e->inode) == S_IFDIR)
				e->inode->parent = dir;
}

void sim_inodes_cut(bool whole, bool journals)
{
	if (whole)
		cut_names(journals);
	for (struct sim_inode *inode = inodes; inode; inode = inode->next) {
		if (inode->fs == SIM_FS_DISK)
			sim_inode_cut(inode);
		for (int i = 0; whole && i < SIM_LAYERS; i++)
			if (inode->fs == SIM_FS_DISK)
				forget_sockets(&inode->layers[i]);
			else
				sim_contents_free(&inode->layers[i]);
	}
	find_parents();
}
