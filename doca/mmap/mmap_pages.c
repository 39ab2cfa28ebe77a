/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mmap_pages.c - pages of the program that other processes can map: hold, replace, fork
 *
 * A held range has its own store (a memfd), which its importers get. If a range has pages in common
 * with a held range, it uses the store of the held range. Several such stores are merged, except
 * for those whose descriptor another process has. Then the range has runs of pages in several
 * stores. Replaced pages are put into a new store; no page is added to the old store.
 *
 * A child of fork(2) must get private copies, as of any private memory. The parent waits until the
 * child has made them. Stack pages of the forking thread are moved out of the memfds during the
 * fork, so writes of peers to them are lost during that time. The C library resets its locks in a
 * child before the child has copies. If such a lock is in a shared page and another thread of the
 * parent holds it, the reset also releases it in the parent.
 */
#include "mmap/mmap_pages.h"

#include "mmap/mmap_pages_move.h"
#include "mmap/mmap_pages_store.h"

#include <gantry/memfd.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE ((size_t)sysconf(_SC_PAGESIZE))
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* -- hold -- */

static struct gd_range pages_of(const void *addr, size_t length)
{
	uintptr_t from = (uintptr_t)addr;

	return (struct gd_range){from & ~(PAGE - 1), (from + length + PAGE - 1) & ~(PAGE - 1)};
}

/* Check whether the pieces can be shared and cover the whole range. */
static int check_pieces(const struct gd_piece *pieces, size_t n, const struct gd_range *range,
			bool write)
{
	uintptr_t at = range->from;

	for (size_t i = 0; i < n; i++) {
		const struct gd_piece *p = &pieces[i];

		if (p->from != at)
			return -EFAULT;
		at = p->to;
		if ((p->prot & PROT_READ) == 0 || (write && (p->prot & PROT_WRITE) == 0))
			return -EACCES;
		if (p->shared && !gd_store_of(p))
			return -EOPNOTSUPP;
	}
	return at == range->to ? 0 : -EFAULT;
}

/*
 * Returns a store, other than `but`, with pages of the pieces that another range holds; NULL: none.
 * Stale stores count only if `any` is set.
 */
static struct gd_store *find_neighbour(const struct gd_piece *pieces, size_t n,
				       const struct gd_store *but, bool any)
{
	for (size_t i = 0; i < n; i++) {
		struct gd_store *s = gd_store_place(&pieces[i]);

		if (s && s != but && (any || !s->is_stale) &&
		    gd_is_held(&(struct gd_range){pieces[i].from, pieces[i].to}))
			return s;
	}
	return NULL;
}

/*
 * Returns the store that contains exactly the pages of the range, because the range was held
 * before.
 */
static struct gd_store *find_former(const struct gd_piece *pieces, size_t n,
				    const struct gd_range *range)
{
	struct gd_store *s = n > 0 ? gd_store_place(&pieces[0]) : NULL;

	for (size_t i = 1; i < n; i++)
		if (gd_store_place(&pieces[i]) != s)
			return NULL;
	if (!s || s->is_common || s->is_stale || s->n_tracked != 1)
		return NULL;
	return s->tracked[0].from == range->from && s->tracked[0].to == range->to ? s : NULL;
}

/* Choose the store for a range, so that ranges with common pages use as few stores as possible. */
static int choose_store(const struct gd_piece *pieces, size_t n, const struct gd_range *range,
			bool common, struct gd_store **store_p, bool *is_new_p)
{
	*store_p = find_neighbour(pieces, n, NULL, false);
	if (!*store_p)
		*store_p = common ? gd_store_common() : find_former(pieces, n, range);
	*is_new_p = *store_p == NULL;
	return *is_new_p ? gd_store_make(common, store_p) : 0;
}

/*
 * Append to a list the pages of a piece that must move to `store`: all but those held in another
 * store.
 */
static int add_moving(const struct gd_piece *p, const struct gd_store *store,
		      struct gd_piece **list, size_t *n)
{
	bool in_store = gd_store_place(p) != NULL, stays;
	uintptr_t end;

	if (gd_store_place(p) == store)
		return 0;
	for (uintptr_t at = p->from; at < p->to; at = end) {
		struct gd_piece *more, part = *p;

		end = gd_held_until(at, p->to, &stays);
		if (stays && in_store)
			continue;
		part.offset += at - p->from;
		part.from = at;
		part.to = end;
		more = realloc(*list, (*n + 1) * sizeof(**list));
		if (!more)
			return -ENOMEM;
		more[(*n)++] = part;
		*list = more;
	}
	return 0;
}

static int list_moving(const struct gd_piece *pieces, size_t n, struct gd_store *store,
		       struct gd_piece **moving, size_t *n_moving)
{
	int rc = 0;

	for (size_t i = 0; i < n && rc == 0; i++)
		rc = add_moving(&pieces[i], store, moving, n_moving);
	for (size_t i = 0; i < *n_moving && rc == 0; i++)
		rc = gd_store_track(store, &(struct gd_range){(*moving)[i].from, (*moving)[i].to});
	return rc;
}

/* Move all mapped pages of store `from` to store `to`. */
static int move_store(struct gd_store *from, struct gd_store *to)
{
	struct gd_piece *pieces = NULL;
	size_t n = 0, kept = 0;
	int rc = gd_stores_mapped(&pieces, &n);

	for (size_t i = 0; i < n && rc == 0; i++) {
		if (pieces[i].fd != from->fd || !gd_store_place(&pieces[i]))
			continue;
		rc = gd_store_track(to, &(struct gd_range){pieces[i].from, pieces[i].to});
		pieces[kept++] = pieces[i];
	}
	if (rc == 0)
		rc = gd_pages_share(to->fd, pieces, kept);
	if (rc == 0)
		from->n_tracked = 0;
	free(pieces);
	return rc;
}

/* Merge into `store` the other stores of the range whose descriptor no other process has. */
static int merge_neighbours(const struct gd_range *range, struct gd_store *store)
{
	struct gd_piece *pieces = NULL;
	size_t n = 0;
	int rc = gd_maps_read(range->from, range->to, &pieces, &n);

	for (size_t i = 0; i < n && rc == 0; i++) {
		struct gd_store *s = find_neighbour(&pieces[i], 1, store, true);

		if (!s || s->is_given)
			continue;
		rc = move_store(s, store);
		gd_stores_sweep(); /* frees `s`, which is empty */
	}
	free(pieces);
	return rc;
}

static bool are_of_stores(const struct gd_piece *pieces, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (gd_store_of(&pieces[i]))
			return true;
	return false;
}

/* Move the current pages of the range into the store. *begun_p is set when pages can have moved. */
static int move_range(const struct gd_range *range, struct gd_store *store, bool *begun_p)
{
	struct gd_piece *pieces = NULL, *moving = NULL;
	size_t n = 0, n_moving = 0;
	int rc = gd_maps_read(range->from, range->to, &pieces, &n);

	if (rc == 0)
		rc = list_moving(pieces, n, store, &moving, &n_moving);
	if (rc == 0) {
		*begun_p = true;
		rc = gd_pages_share(store->fd, moving, n_moving);
		if (are_of_stores(moving, n_moving))
			/* sweep now: while the range is held, a sweep keeps its old pages */
			gd_stores_sweep();
	}
	free(moving);
	free(pieces);
	return rc;
}

/*
 * Allocate the missing pages of the range in all its stores. Otherwise an importer that touches
 * them first would allocate them, and the kernel would charge the cgroup of the importer.
 */
static int fill_holes(const struct gd_range *range, const struct gd_store *store)
{
	if (!gd_store_has_holes(store))
		return 0;
	return gantry_memfd_populate(-1, 0, (void *)range->from, range->to - range->from, 0);
}

static int hold_in(const struct gd_range *range, struct gd_store *store, bool is_new)
{
	bool begun = false;
	int rc = gd_held_reserve();

	if (rc == 0 && !is_new)
		rc = merge_neighbours(range, store);
	if (rc == 0)
		rc = move_range(range, store, &begun);
	if (rc == 0)
		rc = fill_holes(range, store);
	if (rc != 0 && is_new && !begun)
		gd_store_discard(store);
	if (rc == 0)
		gd_held_add(range);
	return rc;
}

static int hold(const struct gd_range *range, bool write, bool common)
{
	struct gd_piece *pieces = NULL;
	struct gd_store *store = NULL;
	bool is_new = false;
	size_t n = 0;
	int rc;

	gd_stores_sweep();
	rc = gd_maps_read(range->from, range->to, &pieces, &n);
	if (rc == 0)
		rc = check_pieces(pieces, n, range, write);
	if (rc == 0)
		rc = choose_store(pieces, n, range, common, &store, &is_new);
	free(pieces);
	return rc == 0 ? hold_in(range, store, is_new) : rc;
}

int gd_pages_hold(const void *addr, size_t length, bool write, bool common)
{
	struct gd_range range = pages_of(addr, length);
	int rc = -EFAULT;

	pthread_mutex_lock(&lock);
	if (length > 0 && range.from < range.to && range.to < GD_ADDRESSES)
		rc = hold(&range, write, common);
	pthread_mutex_unlock(&lock);
	return rc;
}

void gd_pages_drop(const void *addr, size_t length)
{
	struct gd_range range = pages_of(addr, length);

	pthread_mutex_lock(&lock);
	gd_held_drop(&range);
	gd_stores_sweep();
	pthread_mutex_unlock(&lock);
}

/* -- give pages to other processes, and replace them -- */

static int add_run(struct gd_run *runs, unsigned max, unsigned *n, const struct gd_piece *p,
		   struct gd_store *s)
{
	struct gd_run *last = *n > 0 ? &runs[*n - 1] : NULL;

	if (!s)
		return -EFAULT;
	s->is_given = true;
	if (last && last->fd == s->fd && last->to == p->from) {
		last->to = p->to;
		return 0;
	}
	if (*n == max)
		return -EOPNOTSUPP;
	runs[(*n)++] = (struct gd_run){.fd = s->fd, .from = p->from, .to = p->to};
	return 0;
}

int gd_pages_give(const void *addr, size_t length, struct gd_run *runs, unsigned max)
{
	struct gd_range range = pages_of(addr, length);
	struct gd_piece *pieces = NULL;
	size_t n = 0;
	unsigned n_runs = 0;
	int rc;

	pthread_mutex_lock(&lock);
	rc = gd_maps_read(range.from, range.to, &pieces, &n);
	for (size_t i = 0; i < n && rc == 0; i++)
		rc = add_run(runs, max, &n_runs, &pieces[i], gd_store_place(&pieces[i]));
	pthread_mutex_unlock(&lock);
	free(pieces);
	if (rc == 0 &&
	    (n_runs == 0 || runs[0].from != range.from || runs[n_runs - 1].to != range.to))
		rc = -EFAULT; /* the program has unmapped a part */
	return rc != 0 ? rc : (int)n_runs;
}

/* List the pages of stores whose offsets are in the range, at any address. */
static int find_shared(const struct gd_range *range, struct gd_piece **pieces_p, size_t *n_p)
{
	struct gd_piece *pieces;
	size_t n, kept = 0;
	int rc = gd_stores_mapped(&pieces, &n);

	for (size_t i = 0; i < n; i++) {
		struct gd_piece p = pieces[i];
		uint64_t end = p.offset + (p.to - p.from);
		struct gd_store *s;

		if (p.offset >= range->to || end <= range->from)
			continue;
		if (end > range->to)
			p.to -= end - range->to;
		if (p.offset < range->from) {
			p.from += range->from - p.offset;
			p.offset = range->from;
		}
		s = gd_store_of(&p);
		s->is_stale = s->is_given;
		pieces[kept++] = p;
	}
	*pieces_p = pieces;
	*n_p = kept;
	return rc;
}

/* List the pages of the range that are in no store and that a device can have pinned. */
static int find_private(const struct gd_range *range, struct gd_piece **pieces_p, size_t *n_p)
{
	struct gd_piece *pieces = *pieces_p;
	size_t kept = *n_p;
	int rc = gd_maps_read(range->from, range->to, pieces_p, n_p);

	pieces = *pieces_p;
	for (size_t i = kept; i < *n_p; i++)
		if (!pieces[i].shared && (pieces[i].prot & PROT_WRITE) != 0)
			pieces[kept++] = pieces[i];
	*n_p = kept;
	return rc;
}

static int replace(const struct gd_range *range, bool pinned)
{
	struct gd_piece *pieces = NULL;
	struct gd_store *store = NULL;
	size_t n = 0;
	int rc = find_shared(range, &pieces, &n);

	if (rc == 0 && pinned)
		rc = find_private(range, &pieces, &n);
	if (rc == 0 && n > 0)
		rc = gd_store_make(false, &store);
	for (size_t i = 0; i < n && rc == 0; i++)
		rc = gd_store_track(store, &(struct gd_range){pieces[i].from, pieces[i].to});
	if (rc == 0 && n > 0)
		rc = gd_pages_share(store->fd, pieces, n);
	free(pieces);
	gd_stores_sweep();
	return rc;
}

int gd_pages_replace(const void *addr, size_t length, bool pinned)
{
	struct gd_range range = pages_of(addr, length);
	int rc;

	pthread_mutex_lock(&lock);
	rc = replace(&range, pinned);
	pthread_mutex_unlock(&lock);
	return rc;
}

/* -- fork handlers: in the parent before it; in the parent and in the child after it -- */

/* mapped pieces; those of the stack of the forking thread come last */
static struct gd_piece *at_fork;
static size_t n_at_fork, n_of_stack;
static int fork_pipe[2] = {-1, -1};

/*
 * Returns the adjacent writable mappings around `here`. A stack with pages in several memfds
 * consists of many mappings.
 */
static struct gd_range find_area(uintptr_t here)
{
	struct gd_range area = {here, here + 1};
	struct gd_piece *pieces = NULL;
	size_t n = 0;

	gd_maps_read(0, UINTPTR_MAX, &pieces, &n);
	for (size_t i = 0; i < n; i++) {
		const bool is_writable = (pieces[i].prot & PROT_WRITE) != 0;
		const bool joins = is_writable && pieces[i].from == area.to;

		if (pieces[i].from > here && !joins)
			break;
		if (!joins)
			area.from = pieces[i].from;
		area.to = is_writable ? pieces[i].to : 0;
	}
	free(pieces);
	return area;
}

/* Returns a range that contains the stack of this thread. */
static struct gd_range find_stack(uintptr_t here)
{
	struct gd_range stack = {0, 0};
	pthread_attr_t attr;
	size_t bytes;
	void *from;

	if (syscall(SYS_gettid) != getpid() && pthread_getattr_np(pthread_self(), &attr) == 0) {
		if (pthread_attr_getstack(&attr, &from, &bytes) == 0)
			stack = (struct gd_range){(uintptr_t)from, (uintptr_t)from + bytes};
		pthread_attr_destroy(&attr);
	}
	return here >= stack.from && here < stack.to ? stack : find_area(here);
}

/* Move the pieces of the stack that contains `here` to the end of the list. */
static void stack_last(uintptr_t here)
{
	const struct gd_range stack = find_stack(here);

	n_of_stack = 0;
	for (size_t i = n_at_fork; i-- > 0;) {
		struct gd_piece p = at_fork[i];

		if (p.to <= stack.from || p.from >= stack.to)
			continue;
		at_fork[i] = at_fork[n_at_fork - 1 - n_of_stack];
		at_fork[n_at_fork - 1 - n_of_stack] = p;
		n_of_stack++;
	}
}

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
	if (gd_stores_mapped(&at_fork, &n_at_fork) != 0 || n_at_fork == 0)
		return;
	if (pipe2(fork_pipe, O_CLOEXEC) != 0)
		fork_pipe[0] = fork_pipe[1] = -1;
	stack_last((uintptr_t)__builtin_frame_address(0));
	gd_pages_make_private(at_fork + n_at_fork - n_of_stack, n_of_stack);
}

static void after_fork_parent(void)
{
	char byte;

	if (fork_pipe[1] >= 0) {
		close(fork_pipe[1]);
		while (read(fork_pipe[0], &byte, 1) < 0 && errno == EINTR)
			;
		close(fork_pipe[0]);
		fork_pipe[0] = fork_pipe[1] = -1;
	}
	for (size_t i = n_at_fork - n_of_stack; i < n_at_fork; i++) {
		const int memfd = at_fork[i].fd;

		at_fork[i].fd = -1; /* the pages are private now */
		gd_pages_share(memfd, &at_fork[i], 1);
	}
	free(at_fork);
	at_fork = NULL;
	n_at_fork = n_of_stack = 0;
	pthread_mutex_unlock(&lock);
}

static void after_fork_child(void)
{
	for (size_t i = 0; i < n_at_fork - n_of_stack; i++)
		gd_pages_make_private_in_child(&at_fork[i]);
	if (fork_pipe[1] >= 0) {
		close(fork_pipe[0]);
		close(fork_pipe[1]);
		fork_pipe[0] = fork_pipe[1] = -1;
	}
	gd_stores_forget();
	free(at_fork);
	at_fork = NULL;
	n_at_fork = n_of_stack = 0;
	pthread_mutex_unlock(&lock);
}

/*
 * Register before any other library. In a child, the handler registered first runs first, and
 * handlers of other libraries must not write to pages of the parent.
 */
static __attribute__((constructor(101))) void watch_forks(void)
{
	pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}
