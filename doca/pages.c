/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pages.c - pages of the program become pages of a memfd, in place, while its threads go on.
 *
 * For 16 pages at a time: a pipe is given a reference to the old pages (vmsplice), they are copied into the memfd, and the
 * memfd is mapped over them. What threads, or system calls, wrote to the old pages after the copy is still to be read
 * from the pipe: each byte that differs from the copy is put into the new page, unless somebody has written it there meanwhile.
 * So nothing is lost. For some microseconds a thread can miss what was written last: an atomic counter or a lock that is
 * in use in those very pages could suffer, and frames of a stack must not be stale at all. The stack of the calling thread
 * is therefore left while its pages are moved; stacks of other threads should not be exported while they run.
 *
 * A child of fork() has to have copies of its own, as of any private memory: the parent waits until the child has made
 * them. Pages of the stack that forks are taken out of the memfd during the fork: what a peer writes to them just then is lost.
 */
#include "pages.h"

#include "maps.h"

#include <gantry/memfd.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>

#define PAGE ((size_t)sysconf(_SC_PAGESIZE))
#define BATCH (16 * PAGE) /* what a pipe usually holds */
#define ADDRESSES (1ull << 48)
#define STACK_BYTES (64 * 1024ul)
/* Whole pages of the heap hold what valgrind thinks nobody may look at; once they have moved it knows nothing of them. */
#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#else
#define VALGRIND_DISABLE_ERROR_REPORTING (void)0
#define VALGRIND_ENABLE_ERROR_REPORTING (void)0
#define VALGRIND_MAKE_MEM_DEFINED(addr, bytes) 0
#define VALGRIND_STACK_REGISTER(from, to) 0
#define VALGRIND_STACK_DEREGISTER(id) (void)(id)
#endif

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#define NO_SANITIZE __attribute__((no_sanitize("address"), no_sanitize("thread"), noinline))

struct range {
	uintptr_t from, to;
};

/*
 * Work on a list of pieces: what is done with each is `step`; on another stack when one of them is our own. It lies in memory
 * of its own, since a piece may be any part of the heap.
 */
struct work {
	int (*step)(struct work *w, const struct gd_piece *piece);
	const struct gd_piece *pieces;
	size_t n, batch, bytes;
	char *before, *after; /* BATCH each */
	int pipe[2];
	pid_t pid;
	int rc;
	ucontext_t here, there;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int memfd = -1;
static struct gd_file memfd_is;
static struct range *held, *tracked; /* tracked: offsets in use */
static size_t n_held, n_tracked;

/* -- moving pages: nothing here may look at what lies in them by ways that a sanitizer watches -- */

static NO_SANITIZE void touch(char *at, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += PAGE)
		__atomic_fetch_or(at + i, 0, __ATOMIC_RELAXED);
}

static NO_SANITIZE void mend(char *at, const char *before, const char *after, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		char was = before[i];

		if (was != after[i])
			__atomic_compare_exchange_n(at + i, &was, after[i], false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	}
}

static long sys_read_pipe(struct work *w, size_t bytes)
{
	size_t n = 0;

	while (n < bytes) {
		long got = syscall(SYS_read, w->pipe[0], w->after + n, bytes - n);

		if (got <= 0)
			break;
		n += (size_t)got;
	}
	return (long)n;
}

static uint32_t moves;

uint32_t gd_pages_moves(void)
{
	return __atomic_load_n(&moves, __ATOMIC_ACQUIRE);
}

static int map_over(uintptr_t at, size_t bytes, int prot)
{
	return syscall(SYS_mmap, at, bytes, prot, MAP_SHARED | MAP_FIXED, memfd, at) == (long)at ? 0 : -errno;
}

/* Make them pages of our own, not ones that the first write would replace. */
static void claim(uintptr_t at, size_t bytes)
{
	if (syscall(SYS_madvise, at, bytes, MADV_POPULATE_WRITE) != 0)
		touch((char *)at, bytes); /* before Linux 5.14 */
}

/* What is there now, whatever it is, into w->before. */
static int read_pages(struct work *w, uintptr_t at, size_t bytes)
{
	struct iovec to = {w->before, bytes}, from = {(void *)at, bytes};

	if (syscall(SYS_process_vm_readv, w->pid, &to, 1ul, &from, 1ul, 0ul) == (long)bytes)
		return 0;
	/* not allowed here: by way of the file, then */
	if (syscall(SYS_pwrite64, memfd, at, bytes, at) != (long)bytes || syscall(SYS_pread64, memfd, w->before, bytes, at) != (long)bytes)
		return errno != 0 ? -errno : -EIO;
	return 0;
}

static int move_batch(struct work *w, uintptr_t at, size_t bytes, int prot)
{
	struct iovec iov = {(void *)at, bytes};
	long kept = 0;
	int rc;

	if ((prot & PROT_WRITE) != 0) {
		claim(at, bytes);
		kept = syscall(SYS_vmsplice, w->pipe[1], &iov, 1ul, SPLICE_F_NONBLOCK);
	}
	rc = read_pages(w, at, bytes);
	if (rc == 0 && syscall(SYS_pwrite64, memfd, w->before, bytes, at) != (long)bytes)
		rc = errno != 0 ? -errno : -EIO;
	if (rc == 0)
		rc = map_over(at, bytes, prot);
	__atomic_fetch_add(&moves, 1, __ATOMIC_RELEASE);
	if (kept > 0)
		kept = sys_read_pipe(w, (size_t)kept);
	if (rc == 0 && kept > 0)
		mend((char *)at, w->before, w->after, (size_t)kept);
	return rc;
}

static int share_piece(struct work *w, const struct gd_piece *piece)
{
	int rc = 0;

	for (uintptr_t at = piece->from; at < piece->to && rc == 0; at += w->batch)
		rc = move_batch(w, at, piece->to - at < w->batch ? piece->to - at : w->batch, piece->prot);
	return rc;
}

/* A copy of its own for this process; the memfd keeps what it has. */
static int part_piece(struct work *w, const struct gd_piece *piece)
{
	size_t bytes = piece->to - piece->from;
	long copy = syscall(SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)w;
	if (copy < 0 && copy > -4096)
		return -errno;
	for (size_t done = 0; done < bytes;) {
		long n = syscall(SYS_pread64, memfd, copy + (long)done, bytes - done, piece->offset + done);

		if (n <= 0)
			return -EIO;
		done += (size_t)n;
	}
	syscall(SYS_mprotect, copy, bytes, piece->prot);
	return syscall(SYS_mremap, copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, piece->from) < 0 ? -errno : 0;
}

static int do_piece(struct work *w, const struct gd_piece *piece, int (*step)(struct work *w, const struct gd_piece *piece))
{
	int rc;

	VALGRIND_DISABLE_ERROR_REPORTING;
	rc = step(w, piece);
	VALGRIND_ENABLE_ERROR_REPORTING;
	(void)VALGRIND_MAKE_MEM_DEFINED(piece->from, piece->to - piece->from);
	return rc;
}

static int run_here(struct work *w)
{
	for (size_t i = 0; i < w->n && w->rc == 0; i++)
		w->rc = do_piece(w, &w->pieces[i], w->step);
	return w->rc;
}

static void run_there(unsigned high, unsigned low)
{
	run_here((struct work *)((uintptr_t)high << 32 | low));
}

/* The pages of the stack that we are on must be quiet meanwhile. */
static int run_on_another_stack(struct work *w)
{
	char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned id = VALGRIND_STACK_REGISTER(stack, stack + STACK_BYTES);

	if (stack == MAP_FAILED || getcontext(&w->there) != 0)
		return -ENOMEM;
	w->there.uc_stack = (stack_t){.ss_sp = stack, .ss_size = STACK_BYTES};
	w->there.uc_link = &w->here;
	makecontext(&w->there, (void (*)(void))run_there, 2, (unsigned)((uintptr_t)w >> 32), (unsigned)(uintptr_t)w);
	swapcontext(&w->here, &w->there);
	VALGRIND_STACK_DEREGISTER(id);
	munmap(stack, STACK_BYTES);
	return w->rc;
}

/* Below the lowest page of the stack that is moved there must be one that the kernel lets grow. */
static __attribute__((noinline)) void deepen_stack(void)
{
	volatile char room[STACK_BYTES];

	room[0] = 0;
	(void)room[0];
}

static struct work *make_work(void)
{
	size_t page = PAGE, head = (sizeof(struct work) + page - 1) & ~(page - 1), bytes = head + 2 * BATCH;
	struct work *w = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int held_by_pipe;

	if (w == MAP_FAILED)
		return NULL;
	w->bytes = bytes;
	w->pid = getpid();
	w->before = (char *)w + head;
	w->after = w->before + BATCH;
	if (pipe2(w->pipe, O_CLOEXEC | O_NONBLOCK) != 0) {
		munmap(w, bytes);
		return NULL;
	}
	held_by_pipe = fcntl(w->pipe[1], F_GETPIPE_SZ);
	w->batch = held_by_pipe >= (int)BATCH ? BATCH : page; /* a user with many pipes gets small ones */
	return w;
}

static void free_work(struct work *w)
{
	close(w->pipe[0]);
	close(w->pipe[1]);
	munmap(w, w->bytes);
}

static int do_work(const struct gd_piece *pieces, size_t n, int (*step)(struct work *w, const struct gd_piece *piece))
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	struct work *w = n > 0 ? make_work() : NULL;
	bool on_it = false;
	int rc;

	if (w == NULL)
		return n > 0 ? -ENOMEM : 0;
	w->step = step;
	w->pieces = pieces;
	w->n = n;
	for (size_t i = 0; i < n; i++)
		if (here >= pieces[i].area_from && here < pieces[i].area_to) {
			on_it = true;
			if (pieces[i].main_stack)
				deepen_stack();
		}
	if (on_it)
		rc = run_on_another_stack(w);
	else
		rc = run_here(w);
	free_work(w);
	return rc;
}

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
	n_tracked = kept;
	return add_range(&tracked, &n_tracked, &all);
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

/* Give memory back that the program does not map any more and nobody holds. */
static void sweep(void)
{
	struct range *before = tracked;
	struct gd_piece *pieces = NULL;
	size_t n_before = n_tracked, n = 0;

	if (n_tracked == 0)
		return;
	if (all_mapped(&pieces, &n) != 0) {
		free(pieces);
		return;
	}
	tracked = NULL;
	n_tracked = 0;
	for (size_t i = 0; i < n_before; i++) {
		uintptr_t at = before[i].from, to = before[i].to;

		if (is_held(&before[i])) { /* later */
			track(&before[i]);
			continue;
		}
		while (at < to) {
			struct range used = first_mapped(pieces, n, at, to);

			punch(at, used.from);
			if (used.from < used.to)
				track(&used);
			at = used.to;
		}
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
		rc = do_work(pieces, n, share_piece);
		n_held -= rc != 0;
	}
	free(pieces);
	return rc;
}

int gd_pages_hold(const void *addr, size_t length, bool write, int *fd_p)
{
	struct range range = pages_of(addr, length);
	int rc = -EFAULT;

	gd_pages_watch_forks();
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
	do_work(at_fork + n_at_fork - n_of_stack, n_of_stack, part_piece);
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
	do_work(at_fork + n_at_fork - n_of_stack, n_of_stack, share_piece);
	free(at_fork);
	at_fork = NULL;
	n_at_fork = n_of_stack = 0;
	pthread_mutex_unlock(&lock);
}

static void after_fork_child(void)
{
	for (size_t i = 0; i < n_at_fork - n_of_stack; i++)
		do_piece(NULL, &at_fork[i], part_piece);
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

static void watch_forks(void)
{
	pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

void gd_pages_watch_forks(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch_forks);
}
