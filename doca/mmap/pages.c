/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pages.c - which pages of the program are in the memfd, who holds them, and what becomes of them at a fork.
 *
 * A child of fork() has to have copies of its own, as of any private memory: the parent waits until the child has made
 * them. Pages of the stack that forks are taken out of the memfd during the fork: what a peer writes to them just then is lost.
 * The C library itself resets its locks in a child before that: one in a shared page that another thread of the parent
 * holds just then comes free too early.
 */
#include "mmap/pages.h"

#include "mmap/pages_move.h"

#include <gantry/memfd.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define PAGE ((size_t)sysconf(_SC_PAGESIZE))
#define ADDRESSES (1ull << 48)

struct range {
	uintptr_t from, to;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int memfd = -1;
static struct gd_file memfd_is;
static struct range *held, *tracked; /* tracked: offsets in use */
static size_t n_held, n_tracked;

/* -- the memfd -- */

static int make_memfd(void)
{
	struct rlimit limit;
	struct stat st;
	int rc;

	if (memfd >= 0)
		return 0;
	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < ADDRESSES)
		return -EFBIG; /* the kernel would send SIGXFSZ */
	memfd = gantry_memfd_create("gantry-doca", ADDRESSES, 0);
	if (memfd < 0)
		return memfd;
	rc = gantry_memfd_seal(memfd, 0);
	if (rc == 0 && fstat(memfd, &st) != 0)
		rc = -errno;
	if (rc != 0) {
		close(memfd);
		memfd = -1;
		return rc;
	}
	memfd_is = (struct gd_file){.device = st.st_dev, .inode = st.st_ino};
	return 0;
}

static bool is_in_place(const struct gd_piece *p)
{
	return p->shared && p->file.device == memfd_is.device && p->file.inode == memfd_is.inode && p->offset == p->from;
}

static bool is_ours(const struct gd_piece *p)
{
	return p->file.device == memfd_is.device && p->file.inode == memfd_is.inode;
}

/* Which of the pieces are to be moved; the rest is taken out of the list. */
static int choose(struct gd_piece *pieces, size_t *n_p, const struct range *range, bool write)
{
	uintptr_t at = range->from;
	size_t n = 0;

	for (size_t i = 0; i < *n_p; i++) {
		const struct gd_piece *p = &pieces[i];

		if (p->from != at)
			return -EFAULT;
		at = p->to;
		if ((p->prot & PROT_READ) == 0 || (write && (p->prot & PROT_WRITE) == 0))
			return -EACCES;
		if (p->shared && !is_ours(p))
			return -EOPNOTSUPP;
		if (!is_in_place(p))
			pieces[n++] = *p;
	}
	*n_p = n;
	return at == range->to ? 0 : -EFAULT;
}

/* -- lists of ranges -- */

static int add_range(struct range **list, size_t *n, const struct range *range)
{
	struct range *more = realloc(*list, (*n + 1) * sizeof(**list));

	if (more == NULL)
		return -ENOMEM;
	more[(*n)++] = *range;
	*list = more;
	return 0;
}

/* One range that holds all that overlap with it, or touch it, instead of those. */
static int track(const struct range *range)
{
	struct range all = *range;
	size_t kept = 0;

	for (size_t i = 0; i < n_tracked; i++) {
		if (tracked[i].to < all.from || tracked[i].from > all.to) {
			tracked[kept++] = tracked[i];
			continue;
		}
		all.from = tracked[i].from < all.from ? tracked[i].from : all.from;
		all.to = tracked[i].to > all.to ? tracked[i].to : all.to;
	}
	if (kept == n_tracked)
		return add_range(&tracked, &n_tracked, &all);
	tracked[kept] = all; /* where one of those was */
	n_tracked = kept + 1;
	return 0;
}

static bool is_held(const struct range *range)
{
	for (size_t i = 0; i < n_held; i++)
		if (held[i].from < range->to && held[i].to > range->from)
			return true;
	return false;
}

/* All pieces of the memfd that are mapped, also where the program has moved them to (mremap); the caller's to free. */
static int all_mapped(struct gd_piece **pieces_p, size_t *n_p)
{
	struct gd_piece *pieces = NULL;
	size_t n = 0, kept = 0;
	int rc = gd_maps_read(0, UINTPTR_MAX, &pieces, &n);

	for (size_t i = 0; i < n; i++)
		if (is_ours(&pieces[i]))
			pieces[kept++] = pieces[i];
	*pieces_p = pieces;
	*n_p = kept;
	return rc;
}

/* The first part of a range of the memfd that is mapped somewhere; empty, at its end, when none is. */
static struct range first_mapped(const struct gd_piece *pieces, size_t n, uintptr_t from, uintptr_t to)
{
	struct range first = {to, to};

	for (size_t i = 0; i < n; i++) {
		uintptr_t begin = (uintptr_t)pieces[i].offset, end = begin + (pieces[i].to - pieces[i].from);

		if (begin < from)
			begin = from;
		if (end > to)
			end = to;
		if (begin < end && begin < first.from)
			first = (struct range){begin, end};
	}
	return first;
}

static void punch(uintptr_t from, uintptr_t to)
{
	if (from < to)
		fallocate(memfd, FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE, (off_t)from, (off_t)(to - from));
}

/* What of a tracked range is still mapped is tracked on, the rest of its memory is given back. 0 or -ENOMEM. */
static int sweep_range(const struct range *range, const struct gd_piece *pieces, size_t n)
{
	uintptr_t at = range->from;
	int rc = 0;

	if (is_held(range)) /* later */
		return track(range);
	while (at < range->to) {
		struct range used = first_mapped(pieces, n, at, range->to);

		punch(at, used.from);
		if (used.from < used.to && track(&used) != 0)
			rc = -ENOMEM;
		at = used.to;
	}
	return rc;
}

/* Give memory back that the program does not map any more and nobody holds. Without memory to tell, all is tracked as before. */
static void sweep(void)
{
	struct range *before = tracked;
	struct gd_piece *pieces = NULL;
	size_t n_before = n_tracked, n = 0;
	int rc = 0;

	if (n_tracked == 0)
		return;
	if (all_mapped(&pieces, &n) != 0) {
		free(pieces);
		return;
	}
	tracked = NULL;
	n_tracked = 0;
	for (size_t i = 0; i < n_before; i++)
		rc |= sweep_range(&before[i], pieces, n);
	if (rc != 0) {
		free(tracked);
		tracked = before;
		n_tracked = n_before;
		before = NULL;
	}
	free(before);
	free(pieces);
}

/* -- what others use -- */

static struct range pages_of(const void *addr, size_t length)
{
	uintptr_t from = (uintptr_t)addr;

	return (struct range){from & ~(PAGE - 1), (from + length + PAGE - 1) & ~(PAGE - 1)};
}

static int hold(const struct range *range, bool write)
{
	struct gd_piece *pieces = NULL;
	size_t n = 0;
	int rc = make_memfd();

	if (rc != 0)
		return rc;
	sweep();
	rc = gd_maps_read(range->from, range->to, &pieces, &n);
	if (rc == 0)
		rc = choose(pieces, &n, range, write);
	if (rc == 0)
		rc = track(range);
	if (rc == 0)
		rc = add_range(&held, &n_held, range);
	if (rc == 0) {
		rc = gd_pages_share(memfd, pieces, n);
		n_held -= rc != 0;
	}
	free(pieces);
	return rc;
}

int gd_pages_hold(const void *addr, size_t length, bool write, int *fd_p)
{
	struct range range = pages_of(addr, length);
	int rc = -EFAULT;

	pthread_mutex_lock(&lock);
	if (length > 0 && range.from < range.to && range.to < ADDRESSES)
		rc = hold(&range, write);
	*fd_p = memfd;
	pthread_mutex_unlock(&lock);
	return rc;
}

void gd_pages_drop(const void *addr, size_t length)
{
	struct range range = pages_of(addr, length);

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < n_held; i++)
		if (held[i].from == range.from && held[i].to == range.to) {
			held[i] = held[--n_held];
			break;
		}
	if (memfd >= 0)
		sweep();
	pthread_mutex_unlock(&lock);
}

/* -- fork: in the parent before it; in the parent and in the child after it -- */

static struct gd_piece *at_fork; /* what is mapped; pieces of the stack that forks come last */
static size_t n_at_fork, n_of_stack;
static int fork_pipe[2] = {-1, -1};

/* Put pieces of the memory area that holds `here` behind the others. */
static void stack_last(const char *here)
{
	n_of_stack = 0;
	for (size_t i = n_at_fork; i-- > 0;) {
		struct gd_piece p = at_fork[i];

		if ((uintptr_t)here < p.area_from || (uintptr_t)here >= p.area_to)
			continue;
		at_fork[i] = at_fork[n_at_fork - 1 - n_of_stack];
		at_fork[n_at_fork - 1 - n_of_stack] = p;
		n_of_stack++;
	}
}

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
	if (n_tracked == 0 || all_mapped(&at_fork, &n_at_fork) != 0)
		return;
	if (pipe2(fork_pipe, O_CLOEXEC) != 0)
		fork_pipe[0] = fork_pipe[1] = -1;
	stack_last(__builtin_frame_address(0));
	gd_pages_part(memfd, at_fork + n_at_fork - n_of_stack, n_of_stack);
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
	if (n_of_stack > 0)
		gd_pages_share(memfd, at_fork + n_at_fork - n_of_stack, n_of_stack);
	free(at_fork);
	at_fork = NULL;
	n_at_fork = n_of_stack = 0;
	pthread_mutex_unlock(&lock);
}

static void after_fork_child(void)
{
	for (size_t i = 0; i < n_at_fork - n_of_stack; i++)
		gd_pages_part_in_child(memfd, &at_fork[i]);
	if (fork_pipe[1] >= 0) {
		close(fork_pipe[0]);
		close(fork_pipe[1]);
		fork_pipe[0] = fork_pipe[1] = -1;
	}
	if (memfd >= 0)
		close(memfd);
	memfd = -1;
	free(at_fork);
	at_fork = NULL;
	n_at_fork = n_of_stack = n_tracked = n_held = 0;
	pthread_mutex_unlock(&lock);
}

/* Before any other library can: in a child, the first handler runs first, and what others write must not be the parent's. */
static __attribute__((constructor(101))) void watch_forks(void)
{
	pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}
